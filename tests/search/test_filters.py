"""Filters and globs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from conftest import Sandbox

from memtool.errors import MemtoolError
from memtool.memory import timestamps
from memtool.search.features import Facts
from memtool.search.filters import FILTERS, IS_VALUES, build_matcher
from memtool.search.query import FILTER_VALUES, parse, with_depth
from memtool.store.context import Context
from memtool.store.files import matches, matches_name, matches_or_contains

if TYPE_CHECKING:
    from conftest import Sandbox


NOW = timestamps.parse("2026-03-01T12:00:00Z")


def facts_of(ws: Context) -> Facts:
    tree = ws.tree()
    return Facts(tree, ws.clock.now, lambda: ws.origins(tree, tree.records))


def find_ids(sandbox: Sandbox, query: str) -> list[str]:
    """Return the ids that satisfy a query."""
    facts = facts_of(sandbox.context())
    matches = build_matcher(parse(query), facts)
    return [record.id for record in facts.tree.records if matches(record)]


@pytest.fixture
def filled(sandbox: Sandbox) -> Sandbox:
    """A repository with one memory of each kind that filters tell apart."""
    sandbox.memory(
        "dec-redis",
        "Sessions live in Redis.\n",
        title="Keep sessions in Redis",
        tags=("auth", "storage-hot"),
        files=("src/session/*.py", "docs/"),
        importance="0.8",
        confidence="high",
        timestamp="2026-02-20T10:00:00Z",
        source=("commit:0123abcd", "file:docs/storage.md#L10-L24@0123abcd"),
        task_id="PAY-12",
    )
    sandbox.memory(
        "epi-config",
        "It failed at start.\n",
        type="episodic",
        error_signature="KeyError: CONFIG in load_config",
        confidence="low",
        timestamp="2026-02-25T10:00:00Z",
        source=("human:Ada Lovelace",),
        session="ses-12",
        iteration="3",
        environment="Python 3.12, Ubuntu",
        privacy=("internal",),
    )
    sandbox.memory(
        "dec-pinned", status="pinned", category="architecture", related_to=("dec-redis",)
    )
    sandbox.memory("dec-draft", status="candidate", parent=("dec-redis",), supersedes=("dec-gone",))
    sandbox.commit()
    sandbox.memory("sem-local", type="semantic", timestamp="2026-02-28T10:00:00Z")
    return sandbox


ANSWERS = [
    ("type:episodic", {"epi-config"}),
    ("type:Semantic", {"sem-local"}),
    ("category:architecture", {"dec-pinned"}),
    ("category:error", {"epi-config"}),
    ("tag:auth", {"dec-redis"}),
    ("tag:STORAGE*", {"dec-redis"}),
    ("tag:storage", set()),
    ("file:src/session/store.py", {"dec-redis"}),
    ("file:./src/session/store.py", {"dec-redis"}),
    ("file:docs/deep/page.md", {"dec-redis"}),
    ("file:src", {"dec-redis"}),
    ("file:src/**", {"dec-redis"}),
    ("file:storage.md", {"dec-redis"}),
    ("file:store.py", set()),
    ("file:tests", set()),
    ("status:candidate", {"dec-draft"}),
    ("confidence:high", {"dec-redis"}),
    ("confidence:<medium", {"epi-config"}),
    ("confidence:>=high", {"dec-redis"}),
    ("importance:>0.5", {"dec-redis"}),
    ("importance:=0.8", {"dec-redis"}),
    ("importance:<0.5", set()),
    ("since:2026-02-25", {"epi-config", "sem-local"}),
    ("since:3d", {"sem-local"}),
    ("until:2026-02-20", {"dec-redis"}),
    ("until:2026-02-20T09:00:00Z", set()),
    ("since:2026-02-24 until:3d", {"epi-config"}),
    ("source:commit", {"dec-redis"}),
    ("source:commit:0123", {"dec-redis"}),
    ('source:"ada love"', {"epi-config"}),
    ("source:url", set()),
    ("author:ada", {"dec-redis", "epi-config", "dec-pinned", "dec-draft"}),
    ("author:bob", set()),
    ('error:"KeyError: CONFIG"', {"epi-config"}),
    ("error:keyerror", {"epi-config"}),
    ("error:key", set()),
    ("task:PAY-12", {"dec-redis"}),
    ("task:pay-*", {"dec-redis"}),
    ("type:episodic,semantic", {"epi-config", "sem-local"}),
    ("category:error,architecture", {"epi-config", "dec-pinned"}),
    ("status:pinned,Candidate", {"dec-pinned", "dec-draft"}),
    ("session:ses-1*", {"epi-config"}),
    ("session:ses", set()),
    ("iteration:3", {"epi-config"}),
    ("iteration:>=2", {"epi-config"}),
    ("iteration:<3", set()),
    ("environment:ubuntu", {"epi-config"}),
    ('environment:"python 3.12"', {"epi-config"}),
    ("environment:py", set()),
    ("privacy:internal", {"epi-config"}),
    ("privacy:*nal", {"epi-config"}),
    ("supersedes:dec-gone", {"dec-draft"}),
    ("related:dec-redis", {"dec-pinned"}),
    ("related:dec-pinned", {"dec-redis"}),
    ("parent:redis", {"dec-draft"}),
    ("-parent:dec-redis type:decision", {"dec-redis", "dec-pinned"}),
    ("id:dec-*", {"dec-redis", "dec-pinned", "dec-draft"}),
    ("id:dec-redis", {"dec-redis"}),
    ("id:redis", set()),
    ("is:pinned", {"dec-pinned"}),
    ("is:candidate", {"dec-draft"}),
    ("is:local", {"sem-local"}),
    ("is:committed", {"dec-redis", "epi-config", "dec-pinned", "dec-draft"}),
    ("is:trusted", set()),
    ("is:alive", {"dec-redis", "epi-config", "dec-pinned", "dec-draft", "sem-local"}),
    ("-type:decision", {"epi-config", "sem-local"}),
    ("type:decision -is:pinned -is:candidate", {"dec-redis"}),
    ("is:pinned OR is:candidate", {"dec-pinned", "dec-draft"}),
    ("type:decision (is:pinned OR confidence:high)", {"dec-redis", "dec-pinned"}),
    ('"sessions live in redis"', {"dec-redis"}),
    ('"live sessions"', set()),
    ('"redis auth"', set()),  # two fields, not next to each other
    ("redis", {"dec-redis"}),
    ("session", {"dec-redis"}),
    ("redis failed", {"dec-redis", "epi-config"}),
    ("redis type:episodic", set()),
    ("type:episodic OR redis", {"dec-redis", "epi-config"}),
    ("type:decision -redis", {"dec-pinned", "dec-draft"}),
]


def test_each_filter_finds_what_it_names(filled: Sandbox) -> None:
    """The documented meaning of every filter, on memories that differ in it."""
    facts = facts_of(filled.context())
    wrong = {}
    for text, expected in ANSWERS:
        matches = build_matcher(parse(text), facts)
        answer = {record.id for record in facts.tree.records if matches(record)}
        if answer != expected:
            wrong[text] = answer
    assert wrong == {}


def test_every_filter_is_covered() -> None:
    """The table of answers exercises every row of the filter table, but for those of a fleet."""
    used = {
        text.partition(":")[0].split()[-1].lstrip("-(") for text, _ids in ANSWERS if ":" in text
    }
    assert set(FILTERS) - {"repo", "team"} <= used


BAD_VALUES = [
    "type:foo",
    "category:none",
    "status:done",
    "confidence:sure",
    "confidence:>=",
    "importance:high",
    "importance:>2",
    "importance:nan",
    "since:yesterday",
    "until:2026-13-01",
    "error:!!",
    "environment:!!",
    "iteration:two",
    "iteration:>=-1",
    "type:state,foo",
    "type:state,",
    "is:nice",
]


@pytest.mark.parametrize("text", BAD_VALUES)
def test_a_bad_value_is_refused_at_its_place(filled: Sandbox, text: str) -> None:
    """A value that a filter cannot take is an error with the caret under the filter."""
    with pytest.raises(MemtoolError) as caught:
        find_ids(filled, f"redis {text}")
    _message, shown, carets = caught.value.message.split("\n")
    assert caught.value.code == "bad-query"
    assert shown[carets.index("^") :] == text


def old_ones(sandbox: Sandbox) -> None:
    sandbox.memory("dec-old", "Sessions are in Postgres.\n")
    sandbox.memory("dec-new", supersedes=("dec-old",))
    sandbox.memory("dec-archived", status="archived")
    sandbox.memory(
        "dec-deleted",
        status="deleted",
        deleted={"at": "2026-02-25T00:00:00Z", "by": "Ada", "reason": "wrong"},
    )
    sandbox.memory("dec-expired", valid_through="2026-02-25")
    sandbox.memory("dec-pending", valid_from="2026-04-01")


LIFTED = [
    ("", {"dec-new"}),
    ("is:superseded", {"dec-old"}),
    ("is:head", {"dec-new"}),
    ("status:archived", {"dec-archived"}),
    ("is:archived", {"dec-archived"}),
    ("status:deleted", {"dec-deleted"}),
    ("status:deleted,archived", {"dec-archived", "dec-deleted"}),
    ("supersedes:dec-old", {"dec-new"}),
    ("is:expired", {"dec-expired"}),
    ("is:pending", {"dec-pending"}),
    ("id:dec-old", {"dec-old"}),
    ("id:dec-deleted", {"dec-deleted"}),
    ("id:dec-*", {"dec-new"}),
    ("-is:superseded", {"dec-new"}),
    ("-status:archived", {"dec-new"}),
    ("is:superseded OR is:expired", {"dec-old", "dec-expired"}),
    ("(is:superseded type:state) OR postgres", {"dec-new"}),  # by the words of what it replaces
    ("-(is:superseded) OR is:expired", {"dec-new", "dec-expired"}),
]


def test_what_is_no_longer_alive_is_left_out_unless_asked_for(sandbox: Sandbox) -> None:
    """A filter that names a state lifts exactly that exclusion, for what satisfies the filter."""
    old_ones(sandbox)
    answers = {text: set(find_ids(sandbox, text)) for text, _expected in LIFTED}
    assert answers == dict(LIFTED)


def test_relations_go_as_many_steps_as_asked(sandbox: Sandbox) -> None:
    """One step by default, 0 for all; circles end, and what replaces one memory may be replaced."""
    for name, above in (("sta-b", "sta-a"), ("sta-c", "sta-b"), ("sta-d", "sta-c")):
        sandbox.memory(name, type="state", parent=(above,), related_to=("sta-a",))
    sandbox.memory("sta-a", type="state", parent=("sta-d",))
    for name, older in (("dec-b", "dec-a"), ("dec-c", "dec-b")):
        sandbox.memory(name, supersedes=(older,))
    sandbox.memory("dec-a")
    facts = facts_of(sandbox.context())

    def search_ids(text: str, depth: int | None = None) -> str:
        test = build_matcher(with_depth(parse(text), depth), facts)
        return " ".join(record.id for record in facts.tree.records if test(record))

    assert search_ids("parent:sta-a") == "sta-b"
    assert search_ids("parent:sta-a", 2) == "sta-b sta-c"
    assert search_ids("parent:sta-a", 0) == search_ids("parent:sta-a", 99) == "sta-b sta-c sta-d"
    assert search_ids("related:sta-b") == "sta-a"
    assert search_ids("related:sta-b", 2) == "sta-a sta-c sta-d"
    assert search_ids("supersedes:dec-a") == "dec-b"
    assert search_ids("supersedes:dec-a", 0) == "dec-b dec-c"
    for text, depth, message in (
        ("parent:none", 1, 'no memory is called "none"'),
        ("parent:sta", 1, '"sta" matches 4 memories'),
        ("type:state", 2, "--depth needs a relation"),
    ):
        with pytest.raises(MemtoolError, match=message) as caught:
            search_ids(text, depth)
        assert caught.value.hint


def test_conflicted_are_the_heads_of_a_fork_and_the_members_of_a_circle(sandbox: Sandbox) -> None:
    """Both kinds of contradiction in the lineage are found, and nothing else."""
    sandbox.memory("dec-base")
    sandbox.memory("dec-one", supersedes=("dec-base",))
    sandbox.memory("dec-two", supersedes=("dec-base",))
    sandbox.memory("dec-round", supersedes=("dec-trip",))
    sandbox.memory("dec-trip", supersedes=("dec-round",))
    sandbox.memory("dec-calm")
    assert find_ids(sandbox, "is:conflicted") == ["dec-one", "dec-round", "dec-trip", "dec-two"]


def test_git_is_asked_only_if_a_filter_needs_it(sandbox: Sandbox) -> None:
    """A query without author or trust costs no git process for provenance."""
    sandbox.memory("dec-a")
    tree = sandbox.context().tree()

    def never() -> Any:
        raise AssertionError("origins were asked for")

    facts = Facts(tree, NOW, never)
    matches = build_matcher(parse("a type:decision -is:pinned since:1y"), facts)
    assert [record.id for record in tree.records if matches(record)] == ["dec-a"]
    with pytest.raises(AssertionError):
        build_matcher(parse("is:local"), facts)(tree.records[0])


def test_every_filter_says_what_it_takes() -> None:
    """The language and the meaning of filters have the same names, and `is:` the same values."""
    assert list(FILTERS) == list(FILTER_VALUES)
    assert FILTER_VALUES["is"] == "one of " + ", ".join(IS_VALUES)


MATCHES = [
    ("src/a.py", "src/a.py", True),
    ("src/a.py", "src/b.py", False),
    ("src/*.py", "src/a.py", True),
    ("src/*.py", "src/deep/a.py", False),
    ("src/**/*.py", "src/a.py", True),
    ("src/**/*.py", "src/deep/er/a.py", True),
    ("**/a.py", "a.py", True),
    ("**", "any/thing", True),
    ("s?c/a.py", "src/a.py", True),
    ("app/[id]/page.tsx", "app/[id]/page.tsx", True),
    ("app/[id]/page.tsx", "app/i/page.tsx", False),
    ("a/**/b/**/c", "a/x/b/y/z/c", True),
    ("a/**/b/**/c", "a/x/y/z/c", False),
    ("", "a", False),
]


@pytest.mark.parametrize(("pattern", "path", "expected"), MATCHES)
def test_a_glob_matches_whole_paths(pattern: str, path: str, expected: object) -> None:
    """Stars stay inside a name, double stars cross directories, brackets are themselves."""
    assert matches(pattern, path) is expected


def test_a_directory_governs_what_lies_in_it() -> None:
    """A memory about a directory is about its files, but not about its name's extensions."""
    assert matches_or_contains("src/auth/", "src/auth/login.py")
    assert matches_or_contains("src/auth", "src/auth/deep/login.py")
    assert not matches_or_contains("src/auth", "src/authority.py")


def test_many_stars_take_no_exponential_time() -> None:
    """A hostile glob costs a product of lengths at worst."""
    assert not matches_name("*a" * 100 + "b", "a" * 2_000)
    assert not matches("/".join(["**", "a"] * 50) + "/b", "/".join("a" * 400))
