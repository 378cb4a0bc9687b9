from __future__ import annotations

import inspect
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import Sandbox

import memtool
from memtool.api import Project
from memtool.cli.arguments import interface
from memtool.commands import VERBS, Verb
from memtool.store.context import Context

TYPES = """
import memtool
from typing import assert_type
from memtool.api import Project
from memtool.commands.config import SettingsReport
from memtool.commands.list import MemoryList
from memtool.commands.search import Searched
from memtool.commands.session import Begun
from memtool.authoring.write import Changed, Written

project = memtool.open(".")
assert_type(project, Project)
assert_type(project.new("decision", "T", tag=("a",), commit=True), Written)
assert_type(project.pin("dec-a"), Changed)
assert_type(project.list("type:decision", limit=3), MemoryList)
assert_type(project.search("words", "more"), Searched)
assert_type(project.config("inject.threshold"), SettingsReport)
assert_type(project.session_start(agent="a"), Begun)
project.new("wish", "T")  # type: ignore[arg-type]
project.pin()  # type: ignore[call-arg]
project.search("x", limit="many")  # type: ignore[arg-type]
"""


@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb.name)
def test_every_verb_is_a_method_with_its_signature(verb: Verb):
    """The API cannot lag behind the command line: both have the same functions."""
    run = interface(verb).run
    assert inspect.unwrap(vars(Project)[run.__name__]) is run
    assert run.__name__ == verb.function
    parameters = list(inspect.signature(run).parameters.values())
    assert parameters[0].annotation == "Context"


def test_no_verb_hides_what_a_workspace_has():
    """A verb that took the name of a workspace's attribute would break every other verb."""
    methods = {interface(verb).run.__name__ for verb in VERBS}
    assert not methods & {*dir(Context), "repository", "env", "cwd", "notes"}


def test_a_project_does_what_the_command_line_does(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
):
    """Write, find, correct and read back through `memtool.open`."""
    for name, value in sandbox.env.items():
        monkeypatch.setenv(name, value)
    project = memtool.open(str(sandbox.path))
    made = project.new(
        "decision",
        "Keep sessions in Redis",
        tag=("auth",),
        commit=True,
        body="It is so, and this is why.",
    )
    assert [row.id for row in project.list("tag:auth").memories] == [made.id]
    newer = project.supersede(
        made.id, "Keep sessions in Postgres", body="It is so, and this is why."
    )
    assert project.show(made.id).superseded_by == (newer.id,)
    assert project.config("search.limit").settings[0].value == 10
    assert project.status().total == 2
    assert sandbox.json("show", newer.id) == project.show(newer.id).plain()


def test_a_refusal_is_a_memtool_error(tmp_path: Path):
    """The package has one error, under its own name."""
    with pytest.raises(memtool.MemtoolError) as caught:
        memtool.open(str(tmp_path / "nowhere"))
    assert caught.value.code == "no-directory"


def test_an_unknown_name_of_the_package_is_an_attribute_error():
    """The lazy names do not swallow mistakes."""
    with pytest.raises(AttributeError, match="no attribute 'opne'"):
        memtool.opne  # noqa: B018


@pytest.mark.slow
def test_types_are_seen_by_a_type_checker(tmp_path: Path):
    """A caller's mistakes in names, counts and types are found before anything runs."""
    pytest.importorskip("mypy")
    snippet = tmp_path / "snippet.py"
    snippet.write_text(TYPES)
    root = Path(memtool.__file__).parents[1]
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent",
         "--config-file", str(root / "pyproject.toml"), f"--cache-dir={root / '.mypy_cache'}",
         str(snippet)],
        cwd=root, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.stdout.startswith("Success"), done.stdout + done.stderr
