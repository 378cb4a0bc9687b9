"""`memtool schema`: editors refuse what memtool refuses, and nothing that it takes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from conftest import PIPED, Sandbox

from memtool.commands.schema import render, schema
from memtool.value import plain

OWN = Path(__file__).parents[2] / ".memory"


class EditorLoader(yaml.SafeLoader):
    """YAML as editors read it: numbers and flags are such, moments are text."""


EditorLoader.yaml_implicit_resolvers = {
    first: [(tag, test) for tag, test in rows if not tag.endswith("timestamp")]
    for first, rows in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


@pytest.fixture
def validator(sandbox: Sandbox) -> Any:
    """The schema, which is one itself."""
    written = plain(schema(sandbox.context()))
    jsonschema.Draft202012Validator.check_schema(written)
    assert json.loads(render(schema(sandbox.context()), PIPED)) == written
    return jsonschema.Draft202012Validator(written)


@pytest.mark.skipif(not OWN.is_dir(), reason="a source archive has no memories")
def test_our_own_memories_fit(validator: Any) -> None:
    """Every file of this project, read as an editor reads it."""
    count = 0
    for path in sorted(OWN.rglob("*.md")):
        text = path.read_text()
        if path.name.startswith(("_", "README")) or not text.startswith("---\n"):
            continue
        fields = yaml.load(text.split("\n---\n")[0], EditorLoader)  # safe by its base
        assert [str(fault.message) for fault in validator.iter_errors(fields)] == [], path
        count += 1
    assert count > 50


def test_keys_are_those_of_memtool(sandbox: Sandbox, validator: Any) -> None:
    """A key that no memory has, a missing one, and a category of these settings."""
    sandbox.write(".memory/config.toml", "[categories.fashion]\nweight = 1.0\n")
    ours = plain(schema(sandbox.context()))
    assert "fashion" in ours["properties"]["category"]["enum"]
    fields = {
        "id": "dec-a",
        "timestamp": "2026-02-22T19:33:00Z",
        "type": "decision",
        "title": "T",
        "confidence": "high",
        "source": ["human:Ada"],
        "x-mine": "1",
    }
    assert validator.is_valid(fields)
    assert validator.is_valid(fields | {"importance": 0.5, "action_required": True, "title": 12})
    assert not validator.is_valid(fields | {"titel": "T"})
    assert not validator.is_valid(fields | {"source": []})
    assert not validator.is_valid({key: fields[key] for key in fields if key != "id"})


def test_it_needs_no_repository(sandbox: Sandbox) -> None:
    """An editor asks from anywhere."""
    done = sandbox.run("schema", "--json", "-C", "/")
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["required"][0] == "id"
