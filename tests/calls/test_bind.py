"""One binding for every interface: the same bad call is refused with the same sentence."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from memtool.api import Project
from memtool.calls.bind import bind, split_arguments
from memtool.calls.procedures import HTTP, build_procedures
from memtool.calls.run import ServedRepository
from memtool.calls.signature import Parameter, Signature, read_interface
from memtool.cli.arguments import format_label, parse
from memtool.commands import BY_NAME
from memtool.errors import MemtoolError
from memtool.mcp import server
from memtool.web import rest

if TYPE_CHECKING:
    from conftest import Sandbox

ROUTES = build_procedures(HTTP)
TOOLS = server.list_tools(every=True)
NEW = {"type": "decision", "title": "T"}

Values = dict[str, Any]


def by_command_line(verb: str, values: Values, _sandbox: Sandbox) -> str:
    words = [verb]
    for parameter in read_interface(BY_NAME[verb]).parameters:
        for value in [values[parameter.name]] if parameter.name in values else []:
            is_option = not parameter.is_positional
            words.append(f"{format_label(parameter)}={value}" if is_option else str(value))
    with pytest.raises(MemtoolError) as caught:
        parse(words)
    return caught.value.message


def by_python(verb: str, values: Values, sandbox: Sandbox) -> str:
    face = read_interface(BY_NAME[verb])
    many = [p.name for p in face.positional if p.is_many and p.name in values]
    places = [values[name] for name in many]
    names = {name: value for name, value in values.items() if name not in many}
    with pytest.raises(MemtoolError) as caught:
        getattr(Project.at(str(sandbox.path), sandbox.env), verb)(*places, **names)
    return caught.value.message


def by_mcp(verb: str, values: Values, sandbox: Sandbox) -> str:
    served = server.ServerMethods(ServedRepository(str(sandbox.path), sandbox.env), TOOLS)
    client: Any = SimpleNamespace(name="acme", roots=tuple)
    answer = served.call_tool(client, {"name": verb, "arguments": values})
    assert answer["isError"]
    text: str = answer["content"][0]["text"]
    return text.partition("\nhint: ")[0]


def by_http(verb: str, values: Values, sandbox: Sandbox) -> str:
    place = ServedRepository(str(sandbox.path), sandbox.env)
    message: str = rest.ask(ROUTES[verb], values, place).body["error"]["message"]
    return message


@pytest.mark.parametrize("ask", [by_command_line, by_python, by_mcp, by_http])
@pytest.mark.parametrize(
    ("verb", "values", "wrong", "sentence"),
    [
        ("new", {"type": "decision"}, "title", "{} is missing"),
        ("new", {"title": "T", "type": "wish"}, "type", "{} is one of decision, semantic, "),
        ("new", {**NEW, "confidence": "sure"}, "confidence", "{} is one of low, medium, high, not"),
        ("new", {**NEW, "importance": "much"}, "importance", "{} takes a number, not "),
        ("search", {"query": "x", "limit": "5.5.5"}, "limit", "{} takes a whole number, not "),
        ("search", {"query": "x", "limit": -1}, "limit", "{} must be 0 or more, not -1"),
        (
            "search",
            {"query": "x", "limit": 10**30},
            "limit",
            "{} takes a whole number, not a number this large",
        ),
        ("show", {"id": "x" * 10_001}, "id", "{} has 10,001 characters, the limit is 10,000"),
        ("show", {"id": "a\0b"}, "id", "{} is not valid Unicode"),
    ],
)
def test_every_interface_refuses_with_the_same_sentence(
    sandbox: Sandbox, ask: Any, verb: str, values: Values, wrong: str, sentence: str
):
    """Only the name of the parameter is that of the interface."""
    sandbox.run("init")
    name = wrong
    if ask is by_command_line:
        face = read_interface(BY_NAME[verb])
        name = next(
            format_label(parameter) for parameter in face.parameters if parameter.name == wrong
        )
    assert ask(verb, values, sandbox).startswith(sentence.format(name))


@pytest.mark.parametrize("ask", [by_python, by_mcp, by_http])
def test_an_unknown_name_is_refused_with_the_same_sentence(sandbox: Sandbox, ask: Any):
    """A program gives arguments, a command line options; else the sentence is one."""
    sandbox.run("init")
    assert ask("new", NEW | {"catgory": "x"}, sandbox) == "new has no argument 'catgory'"
    with pytest.raises(MemtoolError, match="memtool new has no option --catgory"):
        parse(["new", "decision", "T", "--catgory", "x"])


SIGNATURE = Signature(
    title="greet",
    parameters={
        "who": Parameter(name="name", is_required=True, takes_blank=False, help="the name"),
        "for": Parameter(name="for_", is_many=True, default=(), max_items=2),
        "times": Parameter(name="times", kind=int, default=1, zero_means="all"),
    },
)


def test_values_have_the_names_and_types_of_the_verb():
    """An interface renames; lists become tuples, and what is not given has its default."""
    values = {"who": "Ada", "for": ["a", "b"], "times": None}
    assert bind(SIGNATURE, values) == {"name": "Ada", "for_": ("a", "b"), "times": 1}


@pytest.mark.parametrize(
    ("values", "message", "hint"),
    [
        ({}, "who is missing", "who: the name"),
        ({"who": None}, "who is missing", "who: the name"),
        ({"who": "\u00a0 "}, "who is empty", "who: the name"),
        ({"who": "a", "time": 1}, "greet has no argument 'time'", "did you mean times?"),
        ({"who": "a", "x": 1}, "greet has no argument 'x'", "it takes who, for, times"),
        ({"who": "a", "for": ["a"] * 3}, "for takes at most 2 items, not 3", ""),
        ({"who": "a", "times": -1}, "times must be 0 or more, not -1", "0 means all"),
    ],
)
def test_what_does_not_fit_is_refused_with_the_next_step(values: Values, message: str, hint: str):
    """The parameter is named as the caller gives it."""
    with pytest.raises(MemtoolError) as caught:
        bind(SIGNATURE, values)
    assert (caught.value.message, caught.value.hint) == (message, hint)


def test_values_are_spread_by_the_signature_of_the_verb():
    """By place in their order, any number of words one by one, and all options by name."""
    values = {"text": ("a", "b"), "id": "ses-a", "role": "user"}
    places, names = split_arguments(read_interface(BY_NAME["session add"]), values)
    assert places == ["ses-a", "a", "b"]
    assert (names["role"], names["file"], names["dry_run"]) == ("user", (), False)
