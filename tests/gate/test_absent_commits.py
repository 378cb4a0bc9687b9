"""A source that names a commit which does not exist is refused while it can still be mended."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from conftest import Sandbox

import memtool
from memtool.commands.check import check
from memtool.commands.new import new, supersede
from memtool.commands.verify import verify
from memtool.commands.why import why
from memtool.errors import MemtoolError

ABSENT = "deadbeef99"
BODY = "Sessions live in Redis, since web processes come and go.\n"


@pytest.fixture
def code(sandbox: Sandbox) -> Sandbox:
    """One commit of code."""
    sandbox.write("a.py", "one = 1\n")
    sandbox.commit("one")
    return sandbox


def twins(sandbox: Sandbox) -> str:
    """Make two commits whose ids begin alike; return how they begin."""
    tree = sandbox.git("rev-parse", "HEAD^{tree}").strip()
    person = "Ada <ada@example.org> 1767225600 +0000"
    earlier: dict[str, bytes] = {}
    for number in range(10_000):
        text = f"tree {tree}\nauthor {person}\ncommitter {person}\n\n{number}\n".encode()
        start = hashlib.sha1(b"commit %d\0%b" % (len(text), text)).hexdigest()[:4]
        if start in earlier:
            for data in (earlier[start], text):
                sandbox.write("commit", data)
                sandbox.git("hash-object", "-t", "commit", "-w", "commit")
            (sandbox.path / "commit").unlink()
            return start
        earlier[start] = text
    raise AssertionError("no two ids begin alike")


def refused(sandbox: Sandbox, source: str) -> tuple[str, str]:
    """Return the sentence and the hint with which `new` refuses a source; nothing is written."""
    done = sandbox.run("new", "decision", "Title", "--body", BODY, "--source", source)
    assert (done.returncode, done.stdout) == (2, ""), done.stderr
    assert not list(sandbox.path.glob(".memory/**/*.md"))
    sentence, hint, keep = done.stderr.splitlines()
    assert keep == "hint: to write it as given: add --keep-citation"
    return sentence.removeprefix("memtool: source: "), hint.removeprefix("hint: ")


@pytest.mark.parametrize("source", [f"commit:{ABSENT}", f"file:a.py#L1@{ABSENT}"])
def test_a_commit_that_is_not_here_is_refused(code: Sandbox, source: str) -> None:
    """An invented or mistyped id is not a source."""
    sentence, hint = refused(code, source)
    assert sentence == f"commit {ABSENT} is not in this clone"
    assert "git fetch --all" in hint


def test_what_several_ids_begin_with_is_refused(code: Sandbox) -> None:
    """More digits tell which of them is meant; for other verbs it is unknown until then."""
    start = twins(code)
    assert refused(code, f"commit:{start}") == (
        f"commit {start} is the beginning of several ids",
        "write more of its digits",
    )
    code.memory("dec-a", BODY, source=(f"commit:{start}",))
    code.commit()
    assert verify(code.context(), "dec-a").memories[0].verdict == "unknown"
    (problem,) = check(code.context()).problems
    assert problem.message == f"source: commit {start} is the beginning of several ids"


@pytest.mark.parametrize("kind", ["tag", "tree", "blob"])
def test_an_id_of_something_else_is_called_that(code: Sandbox, kind: str) -> None:
    """Git would take the tag for its commit, and a tree for nothing."""
    code.git("tag", "-a", "v1", "-m", "one")
    name = {"tag": "v1", "tree": "HEAD^{tree}", "blob": "HEAD:a.py"}[kind]
    id_ = code.git("rev-parse", name).strip()
    sentence = f"commit {id_} is the id of a {kind}, not of a commit"
    assert refused(code, f"commit:{id_}")[0] == sentence
    code.memory("dec-a", BODY, source=(f"commit:{id_}",))
    code.commit()
    assert verify(code.context(), "dec-a").memories[0].verdict == "broken"
    assert why(code.context(), "dec-a").sources[0].detail == sentence


@pytest.mark.parametrize("kind", ["branch", "tag"])
def test_a_name_that_looks_like_an_id_is_no_commit(code: Sandbox, kind: str) -> None:
    """It is a commit today and another one tomorrow; the hint gives the id of today's."""
    code.git(kind, "deadbeef12")
    sentence, hint = refused(code, "commit:deadbeef12")
    assert sentence == "commit deadbeef12 is the name of a branch or tag, not the id of a commit"
    id_ = code.git(*hint.removesuffix(" shows the id").split()[1:]).strip()
    assert new(code.context(), "decision", "T", body=BODY, source=(f"commit:{id_}",)).path


def test_a_text_that_is_no_id_never_reaches_git(code: Sandbox) -> None:
    """A line break in it would be a second question."""
    with pytest.raises(MemtoolError, match="source"):
        new(code.context(), "decision", "T", body=BODY, source=(f"commit:{ABSENT}\nHEAD",))


def test_a_commit_of_a_branch_that_nobody_merged_is_a_source(code: Sandbox) -> None:
    """It is enough that it is here: also for a range that does not lead to it."""
    base = code.git("rev-parse", "HEAD").strip()
    code.write("a.py", "two = 2\n")
    stray = code.commit("two")
    code.git("reset", "--quiet", "--hard", base)
    new(code.context(), "decision", "T", body=BODY, source=(f"commit:{stray[:12]}",), commit=True)
    assert check(code.context(), range=f"{base}..HEAD").problems == ()


@pytest.mark.parametrize("option", ["--depth=1", "--filter=blob:none"])
def test_a_clone_that_need_not_hold_it_says_so(code: Sandbox, tmp_path: Path, option: str) -> None:
    """It cannot tell, so it writes; the gate is silent."""
    code.write(".memory/config.toml", "")
    code.commit("two")
    code.git("config", "uploadpack.allowFilter", "true")
    code.git("clone", "--quiet", option, f"file://{code.path}", str(tmp_path / "clone"))
    clone = Sandbox(tmp_path / "clone", code.env)
    base = clone.git("rev-parse", "HEAD").strip()
    options = ("--body", BODY, "--source", f"commit:{ABSENT}", "--commit")
    done = clone.run("new", "decision", "T", *options)
    assert done.returncode == 0, done.stderr
    assert f"commit {ABSENT} is not in this clone; this clone is shallow or partial" in done.stderr
    assert check(clone.context(), range=f"{base}..HEAD").problems == ()


def test_every_way_to_a_new_memory_refuses_it(code: Sandbox) -> None:
    """A correction, many at once, and a source that was written in the editor."""
    old = new(code.context(), "decision", "Old", body=BODY)
    source = (f"commit:{ABSENT}",)
    with pytest.raises(MemtoolError, match="is not in this clone"):
        supersede(code.context(), old.id, "New", body="In Postgres.", source=source)
    record = {"type": "decision", "title": "Many", "body": "Ports are fixed.", "source": source}
    with pytest.raises(MemtoolError, match=f"memory 1: source: commit {ABSENT} is not"):
        memtool.open(str(code.path)).add_many([record])
    editor = f"sed -i s/human:Ada/commit:{ABSENT}/"
    done = code.run("new", "decision", "Edited", "--body", "Mail.", "--edit", EDITOR=editor)
    assert done.returncode == 2
    assert "is not in this clone" in done.stderr
    assert "the draft is in" in done.stderr
    assert len(list(code.path.glob(".memory/**/*.md"))) == 1


def ranged(sandbox: Sandbox, base: str) -> list[tuple[str, str]]:
    """Return what a range from a commit says of sources: severity and message."""
    problems = check(sandbox.context(), range=f"{base}..HEAD").problems
    return [
        (problem.severity, problem.message)
        for problem in problems
        if problem.code == "broken-source"
    ]


def test_a_range_refuses_a_new_memory_with_a_commit_that_nobody_has(code: Sandbox) -> None:
    """A hook and a check of what is there only warn, and so does a range of others' memories."""
    base = code.git("rev-parse", "HEAD").strip()
    code.memory("dec-a", BODY, source=(f"commit:{ABSENT}", f"file:b.py@{base[:10]}"))
    code.git("add", ".")
    first = f"source: b.py did not exist at commit {base[:10]}"
    second = f"source: commit {ABSENT} is not in this clone"
    staged = check(code.context(), staged=True).problems
    assert [(problem.severity, problem.message) for problem in staged] == [
        ("warning", first),
        ("warning", second),
    ]
    added = code.commit()
    done = code.run("check", "--range", f"{base}..HEAD")
    assert (done.returncode, "memtool supersede dec-a TITLE" in done.stdout) == (1, True)
    assert ranged(code, base) == [("error", first), ("error", second)]
    code.memory("dec-a", BODY, source=(f"commit:{ABSENT}",), status="pinned")
    code.commit()
    assert ranged(code, added) == [("warning", second)]


def test_the_hint_of_a_range_mends_it(code: Sandbox) -> None:
    """A correction takes the place of what names the commit."""
    base = code.git("rev-parse", "HEAD").strip()
    code.memory("dec-a", BODY, source=(f"commit:{ABSENT}",))
    code.commit()
    source = (f"commit:{base}",)
    supersede(code.context(), "dec-a", "In Redis", body=BODY, source=source, commit=True)
    assert ranged(code, base) == []


def test_a_range_after_the_merge_says_no_more(code: Sandbox) -> None:
    """Merged memories cannot be mended: their commits may have been rewritten there."""
    base = code.git("rev-parse", "HEAD").strip()
    code.memory("dec-a", BODY, source=(f"commit:{ABSENT}",))
    code.commit()
    code.git("update-ref", "refs/remotes/origin/main", "HEAD")
    code.memory("dec-b", "Ports are fixed.\n", source=("commit:deadbeef98",))
    code.commit()
    assert [severity for severity, _message in ranged(code, base)] == ["error"]


def test_a_commit_that_was_rewritten_since_is_not_refused(code: Sandbox) -> None:
    """Its author had it when the memory was written, which the record of the memory says."""
    base = code.git("rev-parse", "HEAD").strip()
    code.write("a.py", "two = 2\n")
    gone = code.commit("two")
    made = new(code.context(), "decision", "T", body=BODY, source=(f"commit:{gone}",))
    assert f"{gone[:10]}=" in made.text
    code.commit("the memory")
    code.git("reset", "--quiet", "--soft", base)
    code.git("commit", "--quiet", "--message", "squashed")
    code.git("reflog", "expire", "--expire=now", "--all")
    code.git("gc", "--quiet", "--prune=now")
    assert ("error", f"source: commit {gone} is not in this clone") not in ranged(code, base)
