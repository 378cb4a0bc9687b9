"""Tests of `memtool search`."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pytest
from conftest import PIPED

from memtool.commands.inject import inject
from memtool.commands.search import render, search
from memtool.errors import MemtoolError
from memtool.index import stamps

if TYPE_CHECKING:
    from conftest import Sandbox

FIELDS = [
    "id",
    "title",
    "type",
    "category",
    "status",
    "confidence",
    "score",
    "path",
    "timestamp",
    "commit",
    "trust",
    "due",
    "unproven",
    "unsettled",
    "snippet",
    "factors",
]


@pytest.fixture
def filled(sandbox: Sandbox) -> Sandbox:
    """A repository with a committed and a local memory about sessions."""
    sandbox.memory("dec-redis", "Sessions live in Redis.\n", title="Keep sessions in Redis")
    sandbox.commit()
    sandbox.memory("dec-ttl", "Sessions expire after a day.\n", type="semantic")
    return sandbox


def test_the_json_is_the_documented_shape(filled: Sandbox) -> None:
    """Programs may rely on every field of the contract, in its order."""
    head = filled.git("rev-parse", "HEAD").strip()
    answer = filled.json("search", "sessions", "redis")
    assert list(answer) == [
        "query",
        "total",
        "elapsed_ms",
        "freshness",
        "depth",
        "semantic",
        "results",
        "expired",
    ]
    assert (answer["query"], answer["total"]) == ("sessions redis", 2)
    first, second = answer["results"]
    assert list(first) == list(second) == FIELDS
    assert first["id"] == "dec-redis"
    assert first["commit"] == head
    assert first["trust"] == "committed"
    assert first["timestamp"] == "2026-02-22T19:33:00Z"
    assert first["path"] == ".memory/decision/2026-02/dec-redis.md"
    assert first["snippet"] == "Sessions live in Redis."
    assert first["factors"]["relevance"] == 1
    assert (second["commit"], second["trust"]) == (None, "local")


def test_numbers_are_rounded_the_same_everywhere(filled: Sandbox) -> None:
    """Scores have six digits, so that they read and compare well."""
    for result in search(filled.context(), "sessions redis").results:
        for number in (result.score, *result.factors.values()):
            assert number == round(number, 6)


@pytest.mark.parametrize(
    "text",
    ["error: sessions in redis (os error 2", 'tag: redis "sessions', "redis sessions: key:1 OR"],
)
def test_a_pasted_message_is_a_query(filled: Sandbox, text: str) -> None:
    """Program output is searched as it is; apparent operators make a note."""
    done = filled.run("search", text)
    assert done.returncode == 0
    assert "dec-redis" in done.stdout
    assert "so it is read as text" in done.stderr


def test_the_same_question_gives_the_same_answer(filled: Sandbox) -> None:
    """Nothing but the time that it took differs, whatever the hash seed."""

    def answer(seed: str) -> Any:
        result = filled.json("search", "sessions redis", PYTHONHASHSEED=seed)
        return result | {"elapsed_ms": 0}

    assert answer("1") == answer("2") == answer("3")


def test_the_text_form_cites_each_result(filled: Sandbox) -> None:
    """Rank, title, citation, passage, what it is, its day and what is unusual, in three lines."""
    head = filled.git("rev-parse", "HEAD").strip()
    text = render(search(filled.context(), "sessions redis"), PIPED)
    assert text.splitlines()[:4] == [
        f"1. Keep sessions in Redis  [dec-redis@{head[:7]}]",
        "   Sessions live in Redis.",
        "   decision · 2026-02-22 · not merged",
        "",
    ]
    assert "  [dec-ttl]\n" in text
    assert text.splitlines()[-1].endswith(" · 2026-02-22 · not committed")


def test_explain_shows_the_factors(filled: Sandbox) -> None:
    """The score is explained factor by factor, and by what was replaced."""
    filled.memory("dec-newer", "It is Valkey.\n", title="Valkey", supersedes=("dec-redis",))
    text = render(search(filled.context(), "redis", explain=True), PIPED)
    assert "= relevance 1 x recency 1." in text
    assert "found by the words of dec-redis, which it replaces" in text
    assert "relevance" not in render(search(filled.context(), "redis"), PIPED)


def test_limits(filled: Sandbox) -> None:
    """One result, all results and the default are fine; less than 0 is not."""
    ws = filled.context()
    assert len(search(ws, "sessions", limit=0).results) == 2
    first = search(ws, "sessions", limit=1)
    assert (first.total, len(first.results)) == (2, 1)
    assert ws.notes == ["1 of 2 shown; --limit 0 shows all"]
    assert len(search(ws, "sessions", limit=10**6).results) == 2


def test_the_default_limit_is_a_setting(filled: Sandbox) -> None:
    """`search.limit` applies without --limit."""
    filled.write(".memory/config.toml", "[search]\nlimit = 1\n")
    assert len(search(filled.context(), "sessions").results) == 1


@pytest.mark.parametrize("sort", ["newest", "oldest", "title", "id", "importance"])
def test_results_may_be_sorted_otherwise(filled: Sandbox, sort: Any) -> None:
    """Every order is total."""
    filled.memory(
        "dec-0", "Sessions.\n", title="A", importance="0.9", timestamp="2026-01-01T00:00:00Z"
    )
    ids = [result.id for result in search(filled.context(), "sessions", sort=sort).results]
    last = sort == "newest"
    assert ids.index("dec-0") == (2 if last else 0)


@pytest.mark.parametrize("text", ["", "  "])
def test_an_empty_question_is_refused(filled: Sandbox, text: str) -> None:
    """Searching for nothing is a mistake that points to list."""
    with pytest.raises(MemtoolError) as caught:
        search(filled.context(), text)
    assert caught.value.hint.endswith("memtool list")


def test_a_revision_is_searched_as_it_was(filled: Sandbox) -> None:
    """`--at` sees what was committed, and an unknown revision is told."""
    assert [result.id for result in search(filled.context(), "sessions", at="HEAD").results] == [
        "dec-redis"
    ]
    with pytest.raises(MemtoolError, match="no revision"):
        search(filled.context(), "sessions", at="nowhere")


def test_a_moment_is_searched_as_it_was(sandbox: Sandbox) -> None:
    """`--as-of` leaves out what was written later, and with it what it replaced then."""
    sandbox.memory("dec-old", "Redis.\n", timestamp="2026-02-01T00:00:00Z")
    sandbox.memory("dec-new", "Redis.\n", timestamp="2026-02-20T00:00:00Z", supersedes=("dec-old",))
    ws = sandbox.context()
    assert [result.id for result in search(ws, "redis").results] == ["dec-new"]
    assert [result.id for result in search(ws, "redis", as_of="2026-02-10").results] == ["dec-old"]
    assert search(ws, "redis", as_of="2020-01-01").total == 0
    with pytest.raises(MemtoolError, match="not a time"):
        search(ws, "redis", as_of="then")


def test_a_file_that_is_no_memory_is_told_and_passed_over(filled: Sandbox) -> None:
    """A broken or unreadable neighbour does not hide the others."""
    filled.write(".memory/decision/2026-02/dec-broken.md", "no frontmatter")
    locked = filled.write(".memory/decision/2026-02/dec-locked.md", "---\n")
    locked.chmod(0)
    os.symlink("/etc/passwd", filled.path / ".memory/dec-link.md")
    ws = filled.context()
    assert search(ws, "sessions").total == 2
    assert "3 files are not memories" in ws.notes[0]


def test_nothing_found_is_said_on_stderr_only(filled: Sandbox) -> None:
    """An empty answer is an empty stdout and success."""
    done = filled.run("search", "kubernetes")
    assert (done.returncode, done.stdout) == (0, "")
    assert "no memory matches" in done.stderr


def test_a_bad_query_is_an_error_with_a_place(filled: Sandbox) -> None:
    """The command line shows the query and the caret under each other, and exits with 2."""
    done = filled.run("search", "redis typ:decision")
    assert done.returncode == 2
    _message, shown, carets, hint = done.stderr.splitlines()
    assert shown[carets.index("^") :] == "typ:decision"
    assert hint.startswith("hint: did you mean type:?")


def test_a_huge_query_is_answered(filled: Sandbox) -> None:
    """A query of a hundred kilobytes does not fail."""
    assert search(filled.context(), "sessions " + "wörd x" * 17_000).total == 2


def test_a_bare_repository_is_searched_by_revision(filled: Sandbox) -> None:
    """Without a worktree a commit is searched, with the settings and aliases of HEAD."""
    filled.write(".memory/aliases.toml", 'sitting = ["session"]\n')
    filled.commit()
    filled.git("clone", "--quiet", "--bare", ".", "../bare.git")
    done = filled.run("-C", "../bare.git", "search", "sitting", "--at", "HEAD")
    assert "dec-redis" in done.stdout


def test_explaining_names_what_is_not_shown(filled: Sandbox) -> None:
    """Results hidden by their state are listed on stderr, with the reason."""
    filled.memory("dec-gone", "Sessions, once more.\n", status="archived")
    done = filled.run("search", "sessions", "--explain")
    assert "not shown: dec-gone: archived" in done.stderr
    assert "dec-gone" not in done.stdout
    assert "dec-gone" not in filled.run("search", "sessions").stderr


def test_a_hit_that_was_rewritten_in_place_is_read_again(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If only directories are checked, hits are still shown as their files are now."""
    monkeypatch.setattr(stamps, "MAX_EXACT_FILES", 0)
    monkeypatch.setattr(stamps, "DOUBT_NS", 0)  # young files would be read again in any case
    path = sandbox.path / sandbox.memory("dec-a", "The gateway listens on port 8080.\n")
    sandbox.commit()
    for ask in (_searched, _injected):
        assert "8080" in ask(sandbox)
    path.write_text(path.read_text().replace("8080", "9090"))
    for ask in (_searched, _injected):
        assert "9090" in ask(sandbox)


def _searched(sandbox: Sandbox) -> str:
    return search(sandbox.context(), "gateway port").results[0].snippet


def _injected(sandbox: Sandbox) -> str:
    return inject(sandbox.context(), prompt="which gateway port do we listen on?").text
