from __future__ import annotations

import inspect
import io
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from conftest import Sandbox

import memtool
from memtool.api import Project
from memtool.calls.signature import Parameter, read_interface
from memtool.commands import VERBS, Verb
from memtool.store.context import Context

TYPES = """
import memtool
from typing import assert_type
from memtool.api import Project
from memtool.commands.config import SettingsReport
from memtool.commands.list import MemoryList
from memtool.search.sources import SearchAnswer
from memtool.commands.session import SessionStarted
from memtool.authoring.write import ChangedMemories, WriteResult

project = memtool.open(".")
assert_type(project, Project)
assert_type(project.new("decision", "T", tag=("a",), commit=True), WriteResult)
assert_type(project.pin("dec-a"), ChangedMemories)
assert_type(project.list("type:decision", limit=3), MemoryList)
assert_type(project.search("words", "more"), SearchAnswer)
assert_type(project.config("inject.threshold"), SettingsReport)
assert_type(project.session_start(agent="a"), SessionStarted)
project.new("wish", "T")  # type: ignore[arg-type]
project.supersede()  # type: ignore[call-arg]
project.search("x", limit="many")  # type: ignore[arg-type]
"""


@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb.name)
def test_every_verb_is_a_method_with_its_signature(verb: Verb):
    """The API cannot lag behind the command line: both have the same functions."""
    run = read_interface(verb).run
    assert inspect.unwrap(vars(Project)[run.__name__]) is run
    assert run.__name__ == verb.function
    parameters = list(inspect.signature(run).parameters.values())
    assert parameters[0].annotation == "Context"


def test_no_verb_hides_what_a_workspace_has():
    """A verb that took the name of a workspace's attribute would break every other verb."""
    methods = {read_interface(verb).run.__name__ for verb in VERBS}
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


USUAL: tuple[Any, ...] = ("bogus", None, 1, 10**30, ["bogus"], object(), "x" * 300_000, "a\0b")
WRONG: tuple[Any, ...] = (
    "",
    -1,
    1.5,
    float("nan"),
    True,
    b"x",
    [1],
    [None],
    {},
    "\ud800",
    "../../etc",
    ["x" * 300_000],
    "9" * 9000,
    "a=b",
    "@",
    "(",
    "tag:",
    "0000-00-00",
    Path("nowhere"),
    "\x1b[31m",
)
"""What a caller may give by mistake, for any parameter."""
GIVEN = {
    "type": "decision",
    "title": "A new title",
    "from_": "jsonl",
    "path": "t.txt",
    "text": "No.",
    "transcript": "t.txt",
    "host": "claude",
    "event": "stop",
    "input": "t.txt",
    "range": "HEAD",
    "query": "sessions",
    "switch": "",
    "word": "w",
    "expansions": "v",
}
"""What the other parameters get meanwhile; whatever else must be given is an id."""


class Watched:
    """A repository with memories and a session; its files are compared and restored."""

    def __init__(self, sandbox: Sandbox) -> None:
        self.top = sandbox.path.parent
        self.env = sandbox.env | {"VISUAL": "true"}
        self.place = str(sandbox.path)
        project = self.project()
        self.memory = project.new(
            "decision", "Keep sessions in Postgres", body="Rows survive a restart.", commit=True
        ).id
        self.session = project.session_start(agent="a").id
        project.session_add(self.session, "hello there", role="user")
        sandbox.write("t.txt", "mail ada@example.com\n")
        sandbox.commit()
        self.files = self.read()

    def project(self) -> Project:
        return Project.at(self.place, self.env)

    def read(self) -> dict[str, bytes]:
        """Return every file outside the caches, by its path."""
        contents = {}
        for place, names, files in os.walk(self.top):
            names[:] = set(names) - {"objects", "hooks", "index", "logs", "refs"}
            _, is_git, private = f"{place}/".partition("/.git/")
            for name in files:
                if not is_git or (
                    private.startswith("memtool/sessions") and name != "findings.jsonl"
                ):
                    contents[f"{place}/{name}"] = Path(place, name).read_bytes()
        return contents

    def restore(self) -> None:
        """Put every file back."""
        now = self.read()
        for path in now.keys() - self.files.keys():
            Path(path).unlink()
        for path, data in self.files.items():
            if now.get(path) != data:
                Path(path).parent.mkdir(parents=True, exist_ok=True)
                Path(path).write_bytes(data)

    def argument_for(self, verb: Verb, parameter: Parameter) -> str:
        subject = self.session if verb.name.startswith("session") else self.memory
        return GIVEN.get(parameter.name, subject)

    def call(self, verb: Verb, wrong: Parameter, value: Any) -> None:
        """Call a verb with one wrong value; all others are right, and it is a dry run."""
        face = read_interface(verb, with_texts=False)
        places: list[Any] = []
        for parameter in face.positional:
            if parameter.name == wrong.name:
                places.append(value)
            elif parameter.is_required or parameter.is_many:
                places.append(self.argument_for(verb, parameter))
            else:
                places.append(parameter.default)
        names = {option.name: option.default for option in face.options} | {"commit": False}
        names = {name: names[name] for name in ("body",) if name in names}
        names |= {} if wrong.is_positional else {wrong.name: value}
        getattr(self.project(), verb.function)(*places, **names)

    def fault(self, verb: Verb, wrong: Parameter, value: Any) -> str:
        """Return what is wrong with the way in which a verb meets a wrong value."""
        try:
            self.call(verb, wrong, value)
        except memtool.MemtoolError as error:
            if not error.hint or len(error.message) > 20_000:
                return f"{error.message[:100]!r}, hint {error.hint!r}"
            return "a file is changed" if self.read() != self.files else ""
        except Exception as error:  # noqa: BLE001  # what may not leak
            return repr(error)[:200]
        self.restore()
        return ""


@pytest.fixture
def watched(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> Watched:
    """A repository to give wrong values in; nothing is on stdin, and the editor does nothing."""
    for name, value in (sandbox.env | {"VISUAL": "true"}).items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(sandbox.path)
    return Watched(sandbox)


@pytest.mark.parametrize("values", [USUAL, WRONG], ids=["usual", "rare"])
@pytest.mark.slow
def test_a_wrong_value_is_refused_and_nothing_is_changed(
    values: tuple[Any, ...], watched: Watched, monkeypatch: pytest.MonkeyPatch
):
    """Any value for any parameter of any verb: the verb takes it, or says what is wrong and how."""
    bad = []
    for verb in VERBS:
        for parameter in read_interface(verb, with_texts=False).parameters:
            for value in values:
                monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"")))
                fault = watched.fault(verb, parameter, value)
                if fault:
                    bad.append((verb.name, parameter.name, str(value)[:20], fault))
    assert bad == []


@pytest.mark.parametrize(
    ("verb", "args", "options", "message"),
    [
        ("auto", ("bogus",), {}, "switch is one of on, off, not 'bogus'"),
        ("install", ("bogus",), {}, "host is one of claude, "),
        ("session_add", ("ses-a", "hi"), {"role": "bogus"}, "role is one of user, "),
        ("session_list", (), {"status": "bogus"}, "status is one of open, "),
        ("search", ("x",), {"sort": "bogus"}, "sort is one of score, "),
        ("search", ("x",), {"limit": "many"}, "limit takes a whole number, not a text"),
        ("search", ("x",), {"limit": -1}, "limit must be 0 or more, not -1"),
        ("search", (["x"],), {}, "query takes a text, not a list"),
        ("new", ("decision", "T"), {"tag": "abc"}, "tag takes a list of texts, not a text"),
        ("new", ("decision", "T"), {"commit": "no"}, "commit takes true or false, not a text"),
        ("new", ("decision", "T"), {"tags": ["a"]}, "new has no argument 'tags'"),
        ("new", ("decision",), {}, "title is missing"),
        ("new", ("decision", None), {}, "title is missing"),
        ("new", ("decision", "T"), {"title": "T"}, "title has two values"),
        ("undo", ("dec-a", "dec-b"), {}, "undo takes 1 argument by position, not 2"),
    ],
)
def test_a_wrong_call_is_refused_in_words(
    sandbox: Sandbox, verb: str, args: tuple[Any, ...], options: dict[str, Any], message: str
):
    """No call ends in Python's own errors, and every refusal names the next step."""
    with pytest.raises(memtool.MemtoolError) as caught:
        getattr(Project.at(str(sandbox.path), sandbox.env), verb)(*args, **options)
    assert caught.value.message.startswith(message)
    assert caught.value.hint


def test_what_is_near_is_taken(sandbox: Sandbox):
    """Lists for tuples, a path for text, None for what is not given, any argument by its name."""
    project = Project.at(str(sandbox.path), sandbox.env)
    sandbox.write("a.py", "")
    made = project.new(
        title="Keep sessions in Postgres",
        type="decision",
        tag=["auth"],
        file=[Path("a.py")],
        body="Rows survive a restart.",
        confidence=None,
        importance=1,
    )
    assert project.list("tag:auth").memories[0].id == made.id
    assert project.show(id=made.id).plain()["importance"] == 1.0
    assert Project.at(str(sandbox.path), sandbox.env).inject(files=["a.py"]).items


RECORDS: list[dict[str, Any]] = [
    {
        "type": "decision",
        "title": "Keep sessions in Postgres",
        "body": "Rows survive a restart.",
        "tags": ["auth"],
        "source": ["url:https://example.org/a"],
        "importance": 0.9,
        "confidence": "high",
        "x-team": "edge",
        "action_required": True,
        "domain": None,
    },
    {"type": "semantic", "title": "Ports are fixed", "body": "A contract fixes all the ports."},
]


def test_many_memories_are_one_commit(sandbox: Sandbox):
    """Each is written as by `new`, with the keys that it has."""
    sandbox.write("a.txt", "a")
    sandbox.commit()
    project = Project.at(str(sandbox.path), sandbox.env)
    planned = project.add_many(RECORDS, commit=True, dry_run=True)
    assert (len(planned.memories), planned.commit, project.list().total) == (2, None, 0)
    done = project.add_many((record for record in RECORDS), commit=True)
    first = project.show(done.memories[0].id).plain()
    keys = ("tags", "source", "importance", "confidence", "x-team")
    assert {key: first[key] for key in keys} == {key: RECORDS[0][key] for key in keys}
    assert first["commit"] == done.commit == sandbox.git("rev-parse", "HEAD").strip()
    assert project.show(done.memories[1].id).plain()["source"] == ["human:Ada"]
    names = sandbox.git("show", "--name-only", "--format=%s", "HEAD").split("\n")
    assert names[0] == "memory: add 2"
    assert sorted(filter(None, names[2:])) == sorted(memory.path for memory in done.memories)
    assert project.check().problems == ()
    assert project.add_many([], commit=True).memories == ()


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (None, "a record is not a mapping"),
        ({"type": None}, "it has no type"),
        ({"body": None}, "it has no body"),
        ({"body": "  "}, "a memory of type semantic needs a text"),
        ({"body": "a\0b"}, "it holds NUL bytes"),
        ({"title": "\ud800"}, "title: has hidden characters"),
        ({"body": "\ud800"}, "not valid Unicode"),
        ({"type": "wish"}, "type is one of episodic"),
        ({"tags": "net"}, "tags: is a list"),
        ({"tags": [1]}, "tags has a value that is not valid"),
        ({"importance": 7}, "importance: "),
        ({"importance": float("nan")}, "importance: "),
        ({"confidence": object()}, "confidence has a value"),
        ({"tag": ["net"]}, "unknown key 'tag'"),
        ({5: 5}, "a key must be text, not int"),
        ({"deleted": {"at": "2026-01-01"}}, "cannot set deleted here"),
        ({"supersedes": ["dec-nothing"]}, 'no memory is called "dec-nothing"'),
        ({"id": "dec-known"}, "the id dec-known is taken"),
        ({"id": "../../x"}, "id: "),
        ({"body": "password = hunter2-Xk9fQ81zLw"}, ""),
        (
            {"title": RECORDS[0]["title"], "body": RECORDS[0]["body"]},
            "it says the same as memory 1",
        ),
        (
            {"title": "Never deploy on Friday", "body": "Nobody mends a release."},
            "says this already",
        ),
    ],
)
def test_one_bad_record_keeps_all_from_being_written(sandbox: Sandbox, wrong: Any, message: str):
    """All or none: the error names the record and what is wrong with it."""
    sandbox.memory(
        "dec-known",
        body="Nobody mends a release.\n",
        type="semantic",
        title="Never deploy on Friday",
    )
    bad = wrong and RECORDS[1] | wrong
    project = Project.at(str(sandbox.path), sandbox.env)
    with pytest.raises(memtool.MemtoolError) as caught:
        project.add_many([RECORDS[0], bad], commit=True)
    assert caught.value.message.startswith("memory 2: ")
    assert message in caught.value.message
    assert caught.value.hint
    assert project.list().total == 1


@pytest.mark.parametrize("records", [None, 5, "abc", {"type": "decision"}])
def test_what_is_no_list_of_records_is_refused(sandbox: Sandbox, records: Any):
    """A single record is not a list of records."""
    with pytest.raises(memtool.MemtoolError, match="takes a list of mappings"):
        Project.at(str(sandbox.path), sandbox.env).add_many(records)


def test_a_refused_commit_takes_the_batch_back(sandbox: Sandbox):
    """All or none holds for git's answer, too."""
    sandbox.write("a.txt", "a")
    sandbox.commit()
    hook = sandbox.write(".git/hooks/pre-commit", "#!/bin/sh\necho not today >&2\nexit 1\n")
    hook.chmod(0o755)
    project = Project.at(str(sandbox.path), sandbox.env)
    with pytest.raises(memtool.MemtoolError, match=r"none of 2 is written: .*not today"):
        project.add_many(RECORDS, commit=True)
    assert sandbox.git("status", "--porcelain") == ""
    assert project.list().total == 0


@pytest.mark.parametrize("directory", [None, 5, b".", "a\0b", "x" * 300_000, ["."], "\ud800"])
def test_what_is_no_directory_is_refused(directory: Any):
    """`memtool.open` checks its argument as the verbs do."""
    with pytest.raises(memtool.MemtoolError) as caught:
        memtool.open(directory)
    assert caught.value.hint


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
        [
            sys.executable,
            "-m",
            "mypy",
            "--strict",
            "--follow-imports=silent",
            "--config-file",
            str(root / "pyproject.toml"),
            f"--cache-dir={root / '.mypy_cache'}",
            str(snippet),
        ],
        cwd=root,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.startswith("Success"), done.stdout + done.stderr


def test_an_old_keyword_means_the_new_one_and_is_noted(sandbox: Sandbox):
    """For one version; given by both names, the new one counts."""
    sandbox.memory("dec-a")
    sandbox.commit()
    project = memtool.open(sandbox.path)
    report = project.forget("dec-a", why="it was a guess", dry_run=True)
    assert report == project.forget("dec-a", reason="it was a guess", dry_run=True)
    assert project.notes == ["why is called reason now"]
    both = project.forget("dec-a", why="old", reason="it was a guess", dry_run=True)
    assert both == report
    with pytest.raises(memtool.MemtoolError, match="no id has two files"):
        project.resolve(keep_both=True)
    with pytest.raises(memtool.MemtoolError) as caught:
        project.forget("dec-a", wyh="x")
    assert caught.value.hint == "did you mean reason?"
