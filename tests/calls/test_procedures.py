from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import memtool
from memtool.calls.procedures import (
    CHOICES,
    EFFECTS,
    GLOBAL,
    HTTP,
    READ,
    SETTABLE,
    Choice,
    build_procedures,
)
from memtool.calls.run import ServedRepository
from memtool.calls.signature import read_interface
from memtool.calls.wording import reword, with_routes, with_tools, with_tools_quoted
from memtool.commands import BY_NAME
from memtool.mcp.server import COMMON, ServerMethods, list_tools
from memtool.mcp.transport import Client, to_line
from memtool.memory.fields import BY_NAME as FIELDS

READING = {
    "search",
    "show",
    "list",
    "inject",
    "why",
    "log",
    "blame",
    "diff",
    "conflicts",
    "check",
    "status",
}
EVERY = list_tools(every=True)
MAX_COMMON_BYTES, MAX_BYTES = 9_000, 21_000
"""Of the list of tools as it is sent: of those that are there unasked, and of all."""
NEVER = {"edit", "exact", "id_", "all_", "run", "map", "floor"}
"""Parameters that open an editor, read or write files of the caller's choice, or act at large."""


TOOLS = [choice for choice in CHOICES if choice.tool]


@pytest.mark.parametrize("choice", TOOLS, ids=lambda choice: choice.verb)
def test_a_tool_has_parameters_of_its_verb_in_their_order(choice: Choice):
    """The parameters chosen by the table, positional ones as the verb takes them."""
    names = [parameter.name for parameter in read_interface(BY_NAME[choice.verb]).parameters]
    chosen = [name for name in choice.tool if name != GLOBAL]
    assert chosen == [name for name in names if name in chosen]
    assert {choice.joined, *choice.inside, *choice.required} - {""} <= set(chosen)
    assert not NEVER & set(chosen)


def test_what_only_reads_is_told_apart():
    """A host may let the reading tools run unasked; it must not take a writing one for such."""
    assert {choice.verb for choice in TOOLS if choice.effect == READ} == READING
    writing = {parameter for verb in READING for parameter in EVERY[verb].parameters}
    assert not {"commit", "dry_run"} & writing
    assert set(list_tools(every=True, read_only=True)) == READING
    destructive = [name for name, effect in EFFECTS.items() if effect["destructiveHint"]]
    assert destructive == ["remove", "revert"]
    assert not EFFECTS["revert"]["idempotentHint"]  # to undo again goes further back


def test_a_tool_that_writes_can_be_tried():
    """An agent may ask what would happen, and each tool that commits can also not."""
    for tool in EVERY.values():
        if tool.effect != READ:
            assert {"commit", "dry_run"} <= set(tool.parameters)


def test_settings_and_hosts_are_out_of_reach():
    """No tool decides which files are trusted, checked or installed."""
    absent = {"init", "config", "install", "uninstall", "import", "export", "redact", "mcp", "eval"}
    assert not absent & set(EVERY)


def test_keys_that_decide_what_counts_cannot_be_set():
    """No agent marks its own memory as pinned, checked, accepted or private."""
    fixed = {"status", "checked", "deleted", "conflicts_accepted", "privacy", "scope", "fade_rate"}
    assert set(SETTABLE) <= set(FIELDS)
    assert not fixed & set(SETTABLE)


@pytest.mark.parametrize("name", [choice.verb for choice in TOOLS])
def test_a_schema_says_what_a_call_needs(name: str):
    """Every argument is described, required ones are named, unknown ones are refused."""
    schema = EVERY[name].input_schema
    assert schema["additionalProperties"] is False
    assert set(schema["required"]) <= set(schema["properties"])
    for name_, field in schema["properties"].items():
        assert field.get("description") or field["enum"], name_
        assert "stdin" not in field.get("description", "")
        assert "" not in field.get("enum", ())


def test_words_of_a_verb_name_arguments_as_the_tool_does():
    """`--keep` of the command line is `keep` here; options that a tool lacks are not told."""
    description = EVERY["resolve"].description
    assert "`keep` both" in description
    assert "made twice, on" not in description
    assert "--" not in EVERY["new"].description


@pytest.mark.parametrize(("every", "limit_bytes"), [(False, MAX_COMMON_BYTES), (True, MAX_BYTES)])
def test_descriptions_stay_small(*, every: bool, limit_bytes: int):
    """A host puts all of this into the window of its agent, in every request."""
    served = ServerMethods(ServedRepository(".", {}), list_tools(every=every))
    sent = to_line({"id": 1, "result": served.list_tools(Client(0, 1), {})})
    assert len(sent) < limit_bytes


def test_an_agent_is_offered_what_it_needs_often():
    """To find, read, write and correct; the rest is there for who asks for it."""
    assert set(list_tools()) == set(COMMON)
    assert set(list_tools(read_only=True)) == {"search", "show", "list", "inject"}


def test_the_documentation_lists_every_tool():
    """Each with its arguments, required ones in bold, in the table of its kind."""
    page = (Path(memtool.__file__).parents[1] / "docs" / "mcp.md").read_text(encoding="utf-8")
    reading, writing = page.partition("These write:")[::2]
    for tool in EVERY.values():
        required = tool.input_schema["required"]
        names = ", ".join(f"**{n}**" if n in required else n for n in tool.parameters)
        half = reading if tool.effect == READ else writing
        assert f"| `{tool.name}` | {names} | {tool.title} |" in half


ROUTES = build_procedures(HTTP)


def test_programs_get_every_parameter_that_a_program_may_give():
    """All of a verb's own but what needs a terminal; no global memories unless they are served."""
    assert set(ROUTES["search"].parameters) >= {"query", "offset", "depth", "why_not", "explain"}
    assert "session-add" in ROUTES
    excluded = {"edit", "format", "global", "into", "write", "fix", "online", "run", "yes"}
    for name, route in ROUTES.items():
        assert not excluded & set(route.parameters), name
        assert set(route.input_schema["required"]) <= set(route.parameters)


def test_what_decides_who_is_trusted_is_no_procedure():
    """Settings, hosts, hooks, imports, purging and programs are out of reach over HTTP."""
    absent = {
        "config",
        "alias",
        "install",
        "uninstall",
        "hook",
        "import",
        "purge",
        "redact",
        "eval",
    }
    assert not absent & set(ROUTES)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("--at and --injected exclude each other", "`at` and `injected` exclude each other"),
        ('no revision "--at=x"', 'no revision "--at=x"'),
        ("git log --oneline --all; it lists commits", "git log --oneline --all; it lists commits"),
        ("memtool show ID; --injected names them", "memtool show ID; `injected` names them"),
        (
            'memtool forget ID --reason "A, B", or --all',
            'memtool forget ID --reason "A, B", or `all`',
        ),
        ("git commit x, or leave out --still-holds", "git commit x, or leave out `still_holds`"),
    ],
)
def test_a_refusal_names_arguments_and_not_options(text: str, expected: str):
    """Text by the user and shell commands stay as they are."""
    assert reword(text, EVERY["log"]) == expected


@pytest.mark.parametrize(
    ("hint", "expected"),
    [
        ("memtool list --all shows them", "POST /api/list `all` shows them"),
        ("memtool session add ID, or memtool init", "POST /api/session-add ID, or memtool init"),
        ("memtool status lists why", "POST /api/status lists why"),
        ("memtool --global new keeps it for all", "memtool --global new keeps it for all"),
    ],
)
def test_a_hint_over_http_names_a_route(hint: str, expected: str):
    """A command that has a route is told as that; any other one is for a shell."""
    assert with_routes(hint) == expected


OFFERED = list_tools()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("memtool show ID --at REV", "`show` ID `at` REV"),
        ("all memories: memtool list", "all memories: `list`"),
        ("memtool --global show dec-a", "`show` `global` dec-a"),
        ("memtool -C ../x show dec-a", "`show` `directory` ../x dec-a"),
        ("memtool -C DIR status", "the user can run memtool -C DIR status"),
        ("Cite as [ID]; `memtool show ID` prints it", "Cite as [ID]; `show` ID prints it"),
        ("memtool confirm dec-a --commit", "the user can run memtool confirm dec-a --commit"),
        ("gone (`memtool drift`).", "gone (the user can run `memtool drift`)."),
        ("ask the user to run: memtool confirm a", "ask the user to run: memtool confirm a"),
        ("memtool search --deep", "the user can run memtool search --deep"),
        ("memtool conflicts", "the user can run memtool conflicts"),
        ("memtool adds them again", "memtool adds them again"),
        ('"memtool show it" contradicts it', '"memtool show it" contradicts it'),
        ("git init\nmemtool init", "the user can run git init\nthe user can run memtool init"),
        ("git keeps it", "git keeps it"),
    ],
)
def test_a_hint_to_an_agent_names_a_tool(text: str, expected: str):
    """A command that no offered tool can do is the user's; texts of a user are left alone."""
    assert with_tools(text, OFFERED) == expected


def test_a_quoted_command_of_ours_is_named_as_well():
    """In a sentence that quotes no memory."""
    text = '"memtool show ID", or "memtool confirm ID"'
    assert with_tools_quoted(text, OFFERED) == '`show` ID, or the user\'s "memtool confirm ID"'


def test_tools_speak_of_no_command():
    """Neither a description nor a schema names the command line."""
    for every in (False, True):
        served = ServerMethods(ServedRepository(".", {}), list_tools(every=every))
        text = json.dumps(served.list_tools(Client(0, 1), {}))
        assert not re.findall(r"memtool [a-z]+|--[a-z]+", text)
