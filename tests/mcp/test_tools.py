from __future__ import annotations

import json
from pathlib import Path

import pytest

import memtool
from memtool.cli.arguments import interface
from memtool.commands import BY_NAME
from memtool.mcp.tools import CHOICES, EFFECTS, GLOBAL, READ, SETTABLE, SHAPES, Choice, tools
from memtool.memory.fields import BY_NAME as FIELDS

READING = {
    "search", "show", "list", "inject", "why", "log", "blame", "diff", "conflicts", "check",
    "status",
}  # fmt: skip
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
    writing = {parameter for verb in READING for parameter in tools()[verb].parameters}
    assert not {"commit", "dry_run"} & writing
    assert set(tools(read_only=True)) == READING
    assert [name for name, effect in EFFECTS.items() if effect["destructive_hint"]] == ["remove"]


def test_a_tool_that_writes_can_be_tried():
    """An agent may ask what would happen, and each tool that commits can also not."""
    for tool in tools().values():
        if tool.effect != READ:
            assert {"commit", "dry_run"} <= set(tool.parameters)


def test_settings_and_hosts_are_out_of_reach():
    """What decides what is trusted, checked or installed is no tool."""
    absent = {"init", "config", "install", "uninstall", "import", "export", "redact", "mcp", "eval"}
    assert not absent & set(tools())


def test_keys_that_decide_what_counts_cannot_be_set():
    """No agent marks its own memory as pinned, checked, accepted or private."""
    kept = {"status", "checked", "deleted", "conflicts_accepted", "privacy", "scope", "fade_rate"}
    assert set(SETTABLE) <= set(FIELDS)
    assert not kept & set(SETTABLE)


@pytest.mark.parametrize("name", [choice.verb for choice in CHOICES])
def test_a_schema_says_what_a_call_needs(name: str):
    """Every argument is described, required ones are named, unknown ones are refused."""
    schema = tools()[name].input_schema
    assert schema["additionalProperties"] is False
    assert set(schema["required"]) <= set(schema["properties"])
    for name_, one in schema["properties"].items():
        assert one["description"], name_
        assert "stdin" not in one["description"]
        assert "" not in one.get("enum", ())


def test_words_of_a_verb_name_arguments_as_the_tool_does():
    """`--keep` of the command line is `keep` here; options that a tool lacks are not told."""
    said = tools()["resolve"].description
    assert "`keep` both" in said
    assert "keep-both" not in said + json.dumps(tools()["resolve"].input_schema)
    assert "--" not in tools()["new"].description


def test_every_tool_has_a_shape_of_its_answer():
    """The structured answer is promised by a schema, and no shape is left over."""
    assert set(SHAPES) == {choice.verb for choice in CHOICES}


def test_schemas_stay_small():
    """A host puts all of this into the window of its agent: 5,200 tokens at most."""
    told = [(tool.description, tool.input_schema) for tool in tools().values()]
    assert len(json.dumps(told)) < 20_800


def test_the_documentation_lists_every_tool():
    """Each with its arguments, required ones in bold, in the table of its kind."""
    page = (Path(memtool.__file__).parents[1] / "docs" / "mcp.md").read_text(encoding="utf-8")
    reading, writing = page.partition("These write:")[::2]
    for tool in tools().values():
        required = tool.input_schema["required"]
        names = ", ".join(f"**{n}**" if n in required else n for n in tool.parameters)
        half = reading if tool.effect == READ else writing
        assert f"| `{tool.name}` | {names} | {tool.title} |" in half
