"""One binding for every interface: the same bad call is refused with the same sentence."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from memtool.api import Project
from memtool.calls.bind import bind, spread
from memtool.calls.procedures import HTTP, procedures
from memtool.calls.run import ServedRepository
from memtool.calls.signature import Parameter, Signature, interface
from memtool.cli.arguments import label, parse
from memtool.commands import BY_NAME
from memtool.errors import MemtoolError
from memtool.mcp import server
from memtool.web import rest

if TYPE_CHECKING:
    from conftest import Sandbox

ROUTES = procedures(HTTP)
TOOLS = server.tools(every=True)
NEW = {"type": "decision", "title": "T"}

Given = dict[str, Any]


def by_command_line(verb: str, given: Given, _sandbox: Sandbox) -> str:
    words = [verb]
    for parameter in interface(BY_NAME[verb]).parameters:
        for value in [given[parameter.name]] if parameter.name in given else []:
            is_option = not parameter.is_positional
            words.append(f"{label(parameter)}={value}" if is_option else str(value))
    with pytest.raises(MemtoolError) as caught:
        parse(words)
    return caught.value.message


def by_python(verb: str, given: Given, sandbox: Sandbox) -> str:
    face = interface(BY_NAME[verb])
    many = [p.name for p in face.positional if p.is_many and p.name in given]
    places = [given[name] for name in many]
    names = {name: value for name, value in given.items() if name not in many}
    with pytest.raises(MemtoolError) as caught:
        getattr(Project.at(str(sandbox.path), sandbox.env), verb)(*places, **names)
    return caught.value.message


def by_mcp(verb: str, given: Given, sandbox: Sandbox) -> str:
    served = server.Served(ServedRepository(str(sandbox.path), sandbox.env), TOOLS)
    client: Any = SimpleNamespace(name="acme", roots=tuple)
    answer = served.call_tool(client, {"name": verb, "arguments": given})
    assert answer["isError"]
    text: str = answer["content"][0]["text"]
    return text.partition("\nhint: ")[0]


def by_http(verb: str, given: Given, sandbox: Sandbox) -> str:
    place = ServedRepository(str(sandbox.path), sandbox.env)
    message: str = rest.ask(ROUTES[verb], given, place).body["error"]["message"]
    return message


@pytest.mark.parametrize("ask", [by_command_line, by_python, by_mcp, by_http])
@pytest.mark.parametrize(
    ("verb", "given", "wrong", "sentence"),
    [
        ("new", {"type": "decision"}, "title", "{} is missing"),
        ("new", {"title": "T", "type": "wish"}, "type", "{} is one of decision, semantic, "),
        ("new", {**NEW, "confidence": "sure"}, "confidence", "{} is one of low, medium, high, not"),
        ("new", {**NEW, "importance": "much"}, "importance", "{} takes a number, not "),
        ("search", {"query": "x", "limit": "5.5.5"}, "limit", "{} takes a whole number, not "),
        ("search", {"query": "x", "limit": -1}, "limit", "{} -1 is below 0"),
        ("search", {"query": "x", "limit": 10**30}, "limit", "{} takes a whole number, not one so"),
        ("show", {"id": "x" * 10_001}, "id", "{} has 10,001 characters, 10,000 are allowed"),
        ("show", {"id": "a\0b"}, "id", "{} is not Unicode text"),
    ],
)
def test_every_interface_refuses_with_the_same_sentence(
    sandbox: Sandbox, ask: Any, verb: str, given: Given, wrong: str, sentence: str
):
    """Only the name of the parameter is that of the interface."""
    sandbox.run("init")
    name = wrong
    if ask is by_command_line:
        face = interface(BY_NAME[verb])
        name = next(label(one) for one in face.parameters if one.name == wrong)
    assert ask(verb, given, sandbox).startswith(sentence.format(name))


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
    given = {"who": "Ada", "for": ["a", "b"], "times": None}
    assert bind(SIGNATURE, given) == {"name": "Ada", "for_": ("a", "b"), "times": 1}


@pytest.mark.parametrize(
    ("given", "message", "hint"),
    [
        ({}, "who is missing", "who: the name"),
        ({"who": None}, "who is missing", "who: the name"),
        ({"who": "\u00a0 "}, "who is empty", "who: the name"),
        ({"who": "a", "time": 1}, "greet has no argument 'time'", "did you mean times?"),
        ({"who": "a", "x": 1}, "greet has no argument 'x'", "it takes who, for, times"),
        ({"who": "a", "for": ["a"] * 3}, "for takes 2 items at most, not 3", ""),
        ({"who": "a", "times": -1}, "times -1 is below 0", "give a number, 0 for all"),
    ],
)
def test_what_does_not_fit_is_refused_with_the_next_step(given: Given, message: str, hint: str):
    """The parameter is named as the caller gives it."""
    with pytest.raises(MemtoolError) as caught:
        bind(SIGNATURE, given)
    assert (caught.value.message, caught.value.hint) == (message, hint)


def test_values_are_spread_by_the_signature_of_the_verb():
    """By place in their order, any number of words one by one, and all options by name."""
    values = {"text": ("a", "b"), "id": "ses-a", "role": "user"}
    places, names = spread(interface(BY_NAME["session add"]), values)
    assert places == ["ses-a", "a", "b"]
    assert (names["role"], names["file"], names["dry_run"]) == ("user", (), False)
