from __future__ import annotations

import json
from pathlib import Path

import pytest

import memtool
from memtool.cli.arguments import interface
from memtool.commands import BY_NAME
from memtool.mcp.tools import CHOICES, COMMON, EFFECTS, GLOBAL, READ, SETTABLE, Choice, tools
from memtool.memory.fields import BY_NAME as FIELDS

READING = {
    "search", "show", "list", "inject", "why", "log", "blame", "diff", "conflicts", "check",
    "status",
}  # fmt: skip
EVERY = tools(every=True)
MOST_COMMON_BYTES, MOST_BYTES = 8_000, 21_500
"""Of what a host sends with every request: of the tools that are there unasked, and of all."""
NEVER = {"edit", "exact", "id_", "all_", "run", "map", "floor", "keep_both"}
"""Parameters that open an editor, read or write files of the caller's choice, or act at large."""


@pytest.mark.parametrize("choice", CHOICES, ids=lambda choice: choice.verb)
def test_a_tool_has_parameters_of_its_verb_in_their_order(choice: Choice):
    """What the table chooses is there, and what is positional comes as the verb takes it."""
    names = [parameter.name for parameter in interface(BY_NAME[choice.verb]).parameters]
    chosen = [name for name in choice.parameters if name != GLOBAL]
    assert chosen == [name for name in names if name in chosen]
    assert {choice.joined, *choice.inside, *choice.required} - {""} <= set(chosen)
    assert not NEVER & set(chosen)


def test_what_only_reads_is_told_apart():
    """A host may let the reading tools run unasked; it must not take a writing one for such."""
    assert {choice.verb for choice in CHOICES if choice.effect == READ} == READING
    writing = {parameter for verb in READING for parameter in EVERY[verb].parameters}
    assert not {"commit", "dry_run"} & writing
    assert set(tools(every=True, read_only=True)) == READING
    assert [name for name, effect in EFFECTS.items() if effect["destructiveHint"]] == ["remove"]


def test_a_tool_that_writes_can_be_tried():
    """An agent may ask what would happen, and each tool that commits can also not."""
    for tool in EVERY.values():
        if tool.effect != READ:
            assert {"commit", "dry_run"} <= set(tool.parameters)


def test_settings_and_hosts_are_out_of_reach():
    """What decides what is trusted, checked or installed is no tool."""
    absent = {"init", "config", "install", "uninstall", "import", "export", "redact", "mcp", "eval"}
    assert not absent & set(EVERY)


def test_keys_that_decide_what_counts_cannot_be_set():
    """No agent marks its own memory as pinned, checked, accepted or private."""
    kept = {"status", "checked", "deleted", "conflicts_accepted", "privacy", "scope", "fade_rate"}
    assert set(SETTABLE) <= set(FIELDS)
    assert not kept & set(SETTABLE)


@pytest.mark.parametrize("name", [choice.verb for choice in CHOICES])
def test_a_schema_says_what_a_call_needs(name: str):
    """Every argument is described, required ones are named, unknown ones are refused."""
    schema = EVERY[name].input_schema
    assert schema["additionalProperties"] is False
    assert set(schema["required"]) <= set(schema["properties"])
    for name_, one in schema["properties"].items():
        assert one["description"], name_
        assert "stdin" not in one["description"]
        assert "" not in one.get("enum", ())


def test_words_of_a_verb_name_arguments_as_the_tool_does():
    """`--keep` of the command line is `keep` here; options that a tool lacks are not told."""
    said = EVERY["resolve"].description
    assert "`keep` both" in said
    assert "keep-both" not in said + json.dumps(EVERY["resolve"].input_schema)
    assert "--" not in EVERY["new"].description


@pytest.mark.parametrize(("every", "most"), [(False, MOST_COMMON_BYTES), (True, MOST_BYTES)])
def test_descriptions_stay_small(*, every: bool, most: int):
    """A host puts all of this into the window of its agent, in every request."""
    told = [
        {"name": tool.name, "description": tool.description, "inputSchema": tool.input_schema}
        for tool in tools(every=every).values()
    ]
    assert len(json.dumps(told)) < most


def test_an_agent_is_offered_what_it_needs_often():
    """To find, read, write and correct; the rest is there for who asks for it."""
    assert set(tools()) == set(COMMON)
    assert set(tools(read_only=True)) == {"search", "show", "list", "inject"}


def test_the_documentation_lists_every_tool():
    """Each with its arguments, required ones in bold, in the table of its kind."""
    page = (Path(memtool.__file__).parents[1] / "docs" / "mcp.md").read_text(encoding="utf-8")
    reading, writing = page.partition("These write:")[::2]
    for tool in EVERY.values():
        required = tool.input_schema["required"]
        names = ", ".join(f"**{n}**" if n in required else n for n in tool.parameters)
        half = reading if tool.effect == READ else writing
        assert f"| `{tool.name}` | {names} | {tool.title} |" in half
