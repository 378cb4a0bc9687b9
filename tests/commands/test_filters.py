from __future__ import annotations

import io

import pytest
from conftest import Sandbox

from memtool.cli.arguments import parse
from memtool.commands import _filters
from memtool.commands.list import list as list_
from memtool.commands.search import search
from memtool.errors import MemtoolError
from memtool.store.context import Context

QUERIES = ".memory/queries.toml"


@pytest.fixture
def workspace(sandbox: Sandbox) -> Context:
    """Three memories and two saved queries."""
    sandbox.memory("dec-a", "Sessions live in Redis.\n", tags=("auth",))
    sandbox.memory("dec-b", "Redis holds the cache.\n", status="pinned")
    sandbox.memory("sem-c", "Redis runs on port 6379.\n", type="semantic")
    sandbox.write(QUERIES, 'decisions = "type:decision"\nnear = "tag:auth OR is:pinned"\n')
    return sandbox.context()


def test_search_and_list_know_saved_queries(workspace: Context) -> None:
    """A name expands to its query, and words after it narrow it."""
    assert {row.id for row in list_(workspace, "@decisions").memories} == {"dec-a", "dec-b"}
    answer = search(workspace, "@decisions", "redis", "sessions")
    assert [result.id for result in answer.results] == ["dec-a", "dec-b"]
    assert answer.query == "type:decision redis sessions"
    assert [result.id for result in search(workspace, "@near cache").results] == ["dec-b"]


def test_a_saved_query_is_as_good_as_one_that_is_written_out(workspace: Context) -> None:
    """The same results, scores and order."""
    saved, written = search(workspace, "@decisions redis"), search(workspace, "type:decision redis")
    assert saved.results == written.results


def test_an_unknown_name_is_an_error_in_both(workspace: Context) -> None:
    """A typing mistake is not a search for something else."""
    for verb in (search, list_):
        with pytest.raises(MemtoolError, match="no saved query @decsions") as caught:
            verb(workspace, "@decsions")
        assert caught.value.hint.startswith("did you mean @decisions?")


def test_the_file_is_read_only_where_a_name_is_asked_for(
    sandbox: Sandbox, workspace: Context
) -> None:
    """A broken file of saved queries disturbs no other search."""
    sandbox.write(QUERIES, "=")
    assert search(workspace, "redis").total == 3
    with pytest.raises(MemtoolError, match="is not TOML"):
        search(workspace, "@decisions")


def test_a_link_in_the_place_of_the_file_is_not_followed(
    sandbox: Sandbox, workspace: Context
) -> None:
    """A link in a repository cannot expose another file."""
    (sandbox.path / QUERIES).unlink()
    (sandbox.path / QUERIES).symlink_to("/etc/hostname")
    with pytest.raises(MemtoolError, match="cannot be read"):
        list_(workspace, "@decisions")


def test_a_bare_repository_reads_them_from_head(sandbox: Sandbox, workspace: Context) -> None:
    """On a server the saved queries are those of the last commit."""
    sandbox.commit()
    sandbox.git("clone", "--quiet", "--bare", ".", "../bare.git")
    bare = Context.at(str(sandbox.path.parent / "bare.git"), sandbox.env)
    assert list_(bare, "@decisions", at="HEAD").total == 2


def test_a_limit_of_0_is_all_alike(sandbox: Sandbox):
    """Whatever has --limit means the same by 0."""
    for number in range(12):
        sandbox.memory(f"dec-{number:02}", "Redis holds the cache.\n")
    sandbox.commit()
    for verb in ("list", "search redis", "log"):
        rows = sandbox.json(*verb.split(), "--limit", "0")
        (items,) = [value for value in rows.values() if isinstance(value, list)]
        assert len(items) == 12, verb


@pytest.mark.parametrize("verb", ["list", "search x", "log", "stats", "eval", "session list"])
def test_a_limit_below_0_is_refused_alike(sandbox: Sandbox, verb: str):
    """One sentence for every verb that has --limit."""
    sandbox.memory("dec-a")
    done = sandbox.run(*verb.split(), "--limit", "-1")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "memtool: --limit must be 0 or more, not -1\nhint: 0 means all\n"
    if verb in ("list", "search x"):
        for option, zero in (("offset", "the first"), ("depth", "all steps")):
            with pytest.raises(
                MemtoolError, match=f"--{option} must be 0 or more, not -2"
            ) as caught:
                parse([*verb.split(), f"--{option}", "-2"])
            assert caught.value.hint == f"0 means {zero}"


@pytest.mark.parametrize(
    "verb",
    [
        "list",
        "new decision T",
        "init",
        "forget x --reason y",
        "diff",
        "check",
        "install git",
        "inject --into AGENTS.md",
        "maintain --apply",
    ],
)
def test_a_bare_repository_is_refused_alike(sandbox: Sandbox, verb: str):
    """One sentence for every verb that needs a work tree; the hint says what to run instead."""
    sandbox.memory("dec-a")
    sandbox.commit()
    sandbox.git("clone", "--quiet", "--bare", ".", "../bare.git")
    done = sandbox.run(*verb.split(), cwd=sandbox.path.parent / "bare.git")
    assert (done.returncode, done.stdout) == (2, "")
    refusal, hint = done.stderr.splitlines()
    assert refusal == "memtool: a bare repository has no worktree"
    assert hint.startswith("hint: ")


@pytest.mark.parametrize(("is_cut", "expected"), [(True, b"12345678"), (False, None)])
def test_stdin_is_read_up_to_a_size(
    monkeypatch: pytest.MonkeyPatch, *, is_cut: bool, expected: bytes | None
):
    """More is an error, or is cut off if an agent waits for the answer."""
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"123456789")))
    if expected is None:
        with pytest.raises(MemtoolError, match="longer than 8 bytes"):
            _filters.read_stdin(8, is_cut=is_cut)
    else:
        assert _filters.read_stdin(8, is_cut=is_cut) == expected


def test_a_closed_stdin_is_nothing_to_an_agent_and_an_error_to_a_person(
    monkeypatch: pytest.MonkeyPatch,
):
    """A host may start memtool with it closed."""
    monkeypatch.setattr("sys.stdin", None)
    assert _filters.read_stdin(8, is_cut=True) == b""
    with pytest.raises(MemtoolError, match="cannot read stdin"):
        _filters.read_stdin(8)
