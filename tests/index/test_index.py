"""Catalogs: like trees, without reading them; and never wrong, whatever their cache is like."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from memtool.errors import MemtoolError
from memtool.index import index, open_index, reader, stamps
from memtool.index.index import open_catalog
from memtool.index.reader import StoredCatalog
from memtool.index.scoring import parse_question
from memtool.index.stamps import Stamps
from memtool.memory import timestamps
from memtool.memory.fields import DEFAULT_CATEGORIES
from memtool.memory.memory import Memory
from memtool.redaction.mask import Mask
from memtool.search.features import Facts
from memtool.search.retrieve import Retriever
from memtool.store import cache, snapshot
from memtool.store.cache import CorruptCacheError
from memtool.store.context import Context
from memtool.store.git import Git
from memtool.store.repository import discover
from memtool.store.state import UnavailableError
from memtool.store.tree import Tree
from tests.conftest import NOW, Sandbox

SECOND = timestamps.parse(NOW)


def opened(
    sandbox: Sandbox, where: Path | None = None, *, cached: bool = True, **options: Any
) -> reader.Catalog:
    """Open the catalog of a worktree."""
    env = sandbox.env | ({} if cached else {"MEMTOOL_NO_CACHE": "1"})
    return open_catalog(Context.at(str(where or sandbox.path), env), **options)


def ask(tree: Tree, text: str = "tree lock") -> list[tuple[str, float, str]]:
    """Return the hits of a question: path, score, body."""
    facts = Facts(tree, SECOND, dict)
    matches = Retriever(facts).find_best(parse_question(text), 30, facts.is_current)
    return sorted((match.record.path, match.raw, match.record.memory.body) for match in matches)


def describe(catalog: reader.Catalog) -> list[object]:
    """Return everything that a damaged cache must not change."""
    ids = [record.id for record in catalog.records]
    return [ask(catalog), catalog.problems, catalog.lineage.superseded_by, ids]


@pytest.fixture
def filled(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> Sandbox:
    """Forty committed memories, and nothing that is open."""
    monkeypatch.setattr(open_index, "_open_indexes", {})
    for number in range(40):
        words = ("git tree", "lock of the index", "tree lock", "nothing")[number % 4]
        sandbox.memory(f"dec-{number:02}", f"{words} and {number}.\n")
    sandbox.commit()
    return sandbox


def databases(sandbox: Sandbox, folder: str = ".git/memtool/index") -> list[Path]:
    return sorted((sandbox.path / folder).glob("*.db"))


def contents(sandbox: Sandbox) -> bytes:
    """The index as it is on the disk, with what is in the log."""
    folder = sandbox.path / ".git/memtool/index"
    return b"".join(
        path.read_bytes() for path in sorted(folder.glob("*.db*")) if not path.name.endswith("-shm")
    )


def age(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let what was written just now count as written long ago."""
    monkeypatch.setattr("memtool.index.stamps.DOUBT_NS", -(10**9))


def test_an_unchanged_worktree_is_opened_without_reading_a_memory(
    filled: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second opening takes everything from the cache: no file is opened, nothing written."""
    age(filled, monkeypatch)
    first = ask(opened(filled))
    before = contents(filled)
    monkeypatch.setattr("memtool.store.snapshot.read_file", lambda *_a: pytest.fail("read"))
    catalog = opened(filled)
    assert isinstance(catalog, StoredCatalog)
    assert len(ask(catalog)) == 30 == len(first)
    assert ask(catalog) == first
    assert contents(filled) == before


def test_a_changed_file_is_read_and_the_database_stays(
    filled: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One edit costs one file."""
    age(filled, monkeypatch)
    opened(filled)
    before = databases(filled)
    filled.memory("dec-07", "An unheard word: xylophone.\n")
    read: list[str] = []
    real = snapshot.read_file
    monkeypatch.setattr(
        snapshot, "read_file", lambda top, path: read.append(path) or real(top, path)
    )
    catalog = opened(filled)
    assert [path for path, *_columns in ask(catalog, "xylophone")] == [
        ".memory/decision/2026-02/dec-07.md"
    ]
    assert read == [".memory/decision/2026-02/dec-07.md"]
    assert databases(filled) == before


def test_a_broken_file_is_told_of_as_long_as_it_is_there(
    filled: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A new file that is not a memory is a problem at every opening, until it is gone."""
    age(filled, monkeypatch)
    opened(filled)
    broken = filled.path / ".memory/decision/2026-02/broken.md"
    broken.write_text("no frontmatter")
    for _opening in range(3):
        (problem,) = opened(filled).problems
        assert problem.path == ".memory/decision/2026-02/broken.md"
    broken.unlink()
    for _opening in range(2):
        assert opened(filled).problems == ()


def test_what_is_as_before_leaves_nothing_behind(
    filled: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An edit that was taken back, and files that were only touched."""
    age(filled, monkeypatch)
    expected = describe(opened(filled))
    place = filled.path / ".memory/decision/2026-02/dec-07.md"
    before = place.read_bytes()
    filled.memory("dec-07", "An unheard word: xylophone.\n")
    opened(filled)
    place.write_bytes(before)
    opened(filled)
    version = opened(filled).index.parts[0].memories.version
    for file in place.parent.iterdir():
        os.utime(file, ns=(1, 1))
    catalog = opened(filled, exact=True)
    assert describe(catalog) == expected
    assert catalog.index.parts[0].memories.version == version  # no memory was written again
    assert catalog.index.find_terms("xylo", 5) == []


def test_many_changes_are_written_and_very_many_build_anew(
    filled: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Changes go into the database that there is, until building is faster."""
    age(filled, monkeypatch)
    opened(filled)
    before = databases(filled)
    for number in range(20):
        filled.memory(f"dec-x{number:02}", f"quartz {number}\n")
    assert len(ask(opened(filled), "quartz")) == 20
    assert databases(filled) == before
    for number in range(20, 90):
        filled.memory(f"dec-x{number:02}", f"quartz {number}\n")
    assert len(opened(filled).records) == 130
    assert databases(filled) != before


def test_folders_alone_are_checked_where_files_are_many(
    filled: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Then git and replaced files are seen, rewriting in place only by an exact check."""
    age(filled, monkeypatch)
    monkeypatch.setattr(stamps, "MAX_EXACT_FILES", 10)
    assert opened(filled).freshness == "exact"
    assert opened(filled).freshness == "dir-exact"
    path = filled.path / ".memory/decision/2026-02/dec-07.md"
    text = path.read_text()
    path.write_text(text.replace("nothing", "zebra and nothing"))
    old = opened(filled)
    assert ask(old, "zebra") == []
    assert not old.verify([old["dec-07"]])
    exact = opened(filled, exact=True)
    assert exact.freshness == "exact"
    assert len(ask(exact, "zebra")) == 1
    filled.git("checkout", "--", ".memory")
    path.with_suffix(".new").write_text(text.replace("nothing", "okapi"))
    path.with_suffix(".new").rename(path)
    catalog = opened(filled)
    assert (catalog.freshness, len(ask(catalog, "okapi")), len(ask(catalog, "zebra"))) == (
        "dir-exact",
        1,
        0,
    )
    filled.git("stash", "--quiet")
    assert ask(opened(filled), "okapi") == []
    filled.git("stash", "pop", "--quiet")
    assert len(ask(opened(filled), "okapi")) == 1
    filled.git("rm", "-rq", "--cached", ".memory")
    filled.git("commit", "-qm", "gone")
    filled.git("checkout", "-q", "--force", "HEAD~1")
    filled.git("checkout", "-q", "--force", "main")
    assert len(opened(filled).records) == 0


def test_a_file_that_was_new_when_it_was_read_is_read_again(filled: Sandbox) -> None:
    """A second change in the same instant may leave the same size and times."""
    opened(filled)
    (entry,) = open_index._open_indexes.values()
    assert len(Stamps(entry.rows).doubtful[".memory/decision/2026-02"]) == 40
    path = filled.path / ".memory/decision/2026-02/dec-07.md"
    path.write_text(path.read_text().replace("nothing", "walrus!"))
    assert len(ask(opened(filled), "walrus")) == 1


def test_a_process_that_asks_again_opens_nothing_again(
    filled: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The open index is reused as long as its rows are the same."""
    age(filled, monkeypatch)
    first = ask(opened(filled))
    first_index = opened(filled).index
    assert opened(filled).index is first_index
    assert ask(opened(filled)) == first
    filled.process("show", "dec-01")
    assert opened(filled).index is first_index
    filled.memory("dec-07", "An unheard word: xylophone.\n")
    filled.process("search", "xylophone")  # which writes it
    catalog = opened(filled)
    assert catalog.index is not first_index
    assert len(ask(catalog, "xylophone")) == 1


def test_what_was_opened_is_read_on_when_the_index_has_changed_since(
    filled: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An answer reads its own snapshot to the end, whatever the process opens meanwhile."""
    age(filled, monkeypatch)
    before = opened(filled).index
    filled.memory("dec-07", "An unheard word: xylophone.\n")
    assert len(ask(opened(filled), "xylophone")) == 1
    assert before.df("lock") == 20
    assert before.df("xylophon") == 0


def test_what_is_kept_open_is_bounded(filled: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither the memories that were read nor the worktrees grow without end."""
    age(filled, monkeypatch)
    first = ask(opened(filled))
    first_index = opened(filled).index
    monkeypatch.setattr(open_index, "MAX_CACHED_MEMORIES", 5)
    assert ask(opened(filled)) == first
    assert opened(filled).index is not first_index
    monkeypatch.setattr(open_index, "MAX_OPEN", 1)
    ((own, entry),) = open_index._open_indexes.items()
    monkeypatch.setattr(open_index, "_open_indexes", {("elsewhere", "", 0, 0): entry})
    assert ask(opened(filled)) == first
    assert list(open_index._open_indexes) == [own]


def test_the_past_is_not_kept_for_the_present(
    filled: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A question about the past does not affect the next answer."""
    age(filled, monkeypatch)
    first = ask(opened(filled))
    assert ask(opened(filled, as_of=SECOND - 10_000_000)) == []
    assert ask(opened(filled)) == first


def test_verify_sees_a_hit_that_moved(filled: Sandbox) -> None:
    """Of the memories that are shown, none may have changed after the check."""
    catalog = opened(filled)
    assert catalog.verify(catalog.records[:10])
    path = filled.path / catalog.records[3].path
    path.write_text(path.read_text() + "more\n")
    assert not catalog.verify(catalog.records[:10])
    assert catalog.verify(catalog.records[4:])
    path.unlink()
    assert not catalog.verify([catalog.records[3]])


def test_a_new_worktree_begins_with_a_copy(
    filled: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each has an index in its own git directory; shared files are parsed and indexed once."""
    other = tmp_path / "other"
    filled.git("worktree", "add", "--quiet", str(other), "-b", "other")
    expected = ask(opened(filled))
    monkeypatch.setattr("memtool.index.build.build", lambda *_a: pytest.fail("built"))
    monkeypatch.setattr("memtool.memory.document.read", lambda *_a: pytest.fail("parsed"))
    assert ask(opened(filled, other)) == expected
    monkeypatch.undo()
    (other / ".memory/decision/2026-02/dec-02.md").unlink()
    assert len(ask(opened(filled, other))) == len(expected) - 1
    assert len(opened(filled, other).records) == 39
    assert len(opened(filled).records) == 40
    assert len(databases(filled, ".git/worktrees/other/memtool/index")) == 1


def test_a_worktree_of_another_branch_differs_from_its_copy(
    filled: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files that differ are read again; no other version is left."""
    filled.git("checkout", "--quiet", "-b", "other")
    filled.memory("dec-07", "An unheard word: xylophone.\n")
    (filled.path / ".memory/decision/2026-02/dec-02.md").unlink()
    filled.commit()
    filled.git("checkout", "--quiet", "main")
    opened(filled)
    other = tmp_path / "other"
    filled.git("worktree", "add", "--quiet", str(other), "other")
    monkeypatch.setattr("memtool.index.build.build", lambda *_a: pytest.fail("built"))
    catalog, plain = opened(filled, other), opened(filled, other, cached=False)
    assert [record.path for record in catalog.records] == sorted(catalog.blobs)
    monkeypatch.undo()
    assert describe(catalog) == describe(plain)
    assert len(ask(catalog, "xylophone")) == 1


@pytest.mark.slow
def test_processes_that_build_at_once_all_answer(filled: Sandbox) -> None:
    """One builds, the others wait for it; no leftovers."""
    code = (
        "from memtool.index import index; from memtool.store.context import Context\n"
        "print(len(index.open(Context.at('.')).records))"
    )
    children = [
        subprocess.Popen(
            [sys.executable, "-c", code],
            cwd=filled.path,
            env=filled.env,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        for _each in range(4)
    ]
    for child in children:
        out, err = child.communicate()
        assert (child.returncode, out.strip(), err) == (0, b"40", b"")
    assert len(databases(filled)) == 1


def damages(data: bytes) -> list[bytes]:
    """Ways in which a file may be damaged."""
    flipped = []
    for place in range(0, len(data), max(1, len(data) // 60)):
        copy = bytearray(data)
        copy[place] ^= 1 << (place % 8)
        flipped.append(bytes(copy))
    return [b"", data[: len(data) // 2], data[:-1], data + b"\0", *flipped]


def test_a_damaged_cache_costs_time_only(filled: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    """Truncated, lengthened or flipped anywhere: the answer is that of the files."""
    age(filled, monkeypatch)
    filled.memory("dec-40", "A tree lock.\n", supersedes=("dec-02",))
    (filled.path / ".memory/broken.md").write_text("---\n")
    expected = describe(opened(filled, cached=False))
    index.drop(discover(str(filled.path), filled.env))
    opened(filled)
    open_index._open_indexes.clear()
    (place,) = databases(filled)
    whole, wrong = place.read_bytes(), 0
    for data in damages(whole):
        open_index._open_indexes.clear()
        for file in place.parent.iterdir():
            if file.suffix and file != place:
                file.unlink()
        place.write_bytes(data)
        pointer = place.with_name(place.name.rsplit("-", 2)[0])
        cache.write(str(place.parent), pointer.name, "state 2", place.name.encode())
        try:
            wrong += describe(opened(filled)) != expected
        except (CorruptCacheError, UnavailableError):
            open_index._open_indexes.clear()
            assert index.drop(discover(str(filled.path), filled.env))
            assert describe(opened(filled)) == expected
            assert describe(opened(filled)) == expected
            place.parent.mkdir(exist_ok=True)
    assert wrong <= 1


def test_a_missing_cache_is_made_again(filled: Sandbox) -> None:
    """The database, its pointer or the folder may be removed at any time."""
    expected = ask(opened(filled))
    folder = filled.path / ".git/memtool/index"
    for pattern in ("*.db", "*[0-9a-f]", "*.db-*", ".", ".."):
        for gone in list(folder.glob(pattern)) if "." not in pattern[:1] else [folder / pattern]:
            if gone.is_dir():
                shutil.rmtree(gone.resolve())
            else:
                gone.unlink()
        assert ask(opened(filled)) == expected
        assert opened(filled).notes == []
        assert databases(filled)


def test_a_cache_that_cannot_be_written_gives_one_note(filled: Sandbox) -> None:
    """The index is then in memory, and the answer the same."""
    expected = ask(opened(filled))
    shutil.rmtree(filled.path / ".git/memtool")
    (filled.path / ".git/memtool").write_text("in the way")
    catalog = opened(filled)
    assert ask(catalog) == expected
    assert len(catalog.notes) == 1
    assert "is not stored" in catalog.notes[0]


def test_without_a_cache_nothing_is_written(filled: Sandbox) -> None:
    """The slow way reads everything and leaves nothing behind."""
    catalog = opened(filled, cached=False)
    assert (catalog.freshness, len(ask(catalog))) == ("exact", 30)
    assert not (filled.path / ".git/memtool").exists()


def test_revisions_and_the_index_are_read_as_trees(filled: Sandbox) -> None:
    """`at` gives the memories of a commit or of git's index, whatever the worktree holds."""
    (filled.path / ".memory/decision/2026-02/dec-02.md").unlink()
    assert len(opened(filled).records) == 39
    assert len(opened(filled, at="HEAD").records) == 40
    assert len(opened(filled, at=":index").records) == 40
    with pytest.raises(MemtoolError, match="nothing"):
        opened(filled, at="nothing")


def test_a_revision_takes_over_what_the_index_holds(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only files that differ are read from git; masked, faulty and divided ones are as without."""
    sandbox.memory("sem-same")
    sandbox.memory("sem-secret", "password: Tr0ub4dor&3x\n")
    later = sandbox.memory("sem-later", "It was so.\n")
    half = (sandbox.path / sandbox.memory("sem-half")).read_text()
    marked = half.replace(
        "confidence: medium\n", "<<<<<<< a\nconfidence: low\n=======\nconfidence: high\n>>>>>>> b\n"
    )
    assert marked != half
    sandbox.write(".memory/semantic/2026-02/sem-half.md", marked)
    sandbox.write(".memory/semantic/2026-02/sem-broken.md", "no memory\n")
    sandbox.commit()
    sandbox.memory("sem-later", "It is so now.\n")
    opened(sandbox)
    read: list[str] = []
    ask = Git.blobs

    def counted(git: Git, oids: Any, limit: int) -> Any:
        read.extend(oids)
        return ask(git, oids, limit)

    monkeypatch.setattr(Git, "blobs", counted)
    stored = opened(sandbox, at="HEAD")
    assert len(read) == 3
    bare = opened(sandbox, at="HEAD", cached=False)
    assert stored.records == bare.records
    assert stored.problems == bare.problems != ()
    assert stored["sem-later"].memory.body == "It was so.\n"
    assert stored["sem-later"].path == later


def test_what_returns_is_searched_for_secrets_only_if_it_had_some(
    filled: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A switch of branches and back shows what was shown, and masks what was masked."""
    read: list[str] = []
    mask = Mask.read

    def noted(own: Mask, memory: Memory, data: bytes, oid: str = "") -> Memory:
        read.append(memory.id)
        return mask(own, memory, data, oid)

    filled.memory("dec-secret", "password: Tr0ub4dor&3x\n")
    filled.commit()
    before = opened(filled).records
    filled.git("switch", "-q", "-c", "other")
    for name in ("dec-secret", "dec-05", "dec-06"):
        filled.memory(name, "It is so now.\n")
    filled.commit()
    assert opened(filled).records != before
    monkeypatch.setattr(Mask, "read", noted)
    filled.git("switch", "-q", "main")
    assert opened(filled).records == before
    assert read == ["dec-secret"]


def test_a_sparse_checkout_is_read_with_what_it_left_out(filled: Sandbox) -> None:
    """Files that are not on disk come from git's index."""
    filled.git("sparse-checkout", "set", "--no-cone", "/*", "!/.memory/decision/2026-02/dec-0*")
    assert not (filled.path / ".memory/decision/2026-02/dec-07.md").exists()
    catalog = opened(filled)
    assert (len(catalog.records), catalog.freshness) == (40, "exact")


def test_a_bare_repository_needs_a_revision(filled: Sandbox, tmp_path: Path) -> None:
    """It has no worktree to read."""
    filled.git("clone", "--quiet", "--bare", ".", str(tmp_path / "bare.git"))
    with pytest.raises(MemtoolError, match="bare"):
        opened(filled, tmp_path / "bare.git")
    assert len(opened(filled, tmp_path / "bare.git", at="HEAD").records) == 40


def test_a_linked_memory_directory_is_not_followed(filled: Sandbox, tmp_path: Path) -> None:
    """Neither as a whole nor below: links are problems."""
    opened(filled)
    shutil.move(filled.path / ".memory/decision", tmp_path / "elsewhere")
    (filled.path / ".memory/decision").symlink_to(tmp_path / "elsewhere")
    catalog = opened(filled)
    assert (len(catalog.records), [problem.code for problem in catalog.problems]) == (
        0,
        ["symlink"],
    )
    shutil.move(filled.path / ".memory", tmp_path / "all")
    (filled.path / ".memory").symlink_to(tmp_path / "all")
    catalog = opened(filled)
    assert (len(catalog.records), [problem.code for problem in catalog.problems]) == (
        0,
        ["symlink"],
    )


def test_the_past_is_seen_without_what_came_later(sandbox: Sandbox) -> None:
    """`as_of` changes records, statistics, lineage and twins, as reading the tree does."""
    sandbox.memory("dec-old", "The tree is a lock.\n", timestamp="2026-01-01T00:00:00Z")
    sandbox.memory("dec-new", "The tree is none.\n", supersedes=("dec-old",))
    sandbox.memory("dec-mid", "A lock.\n", timestamp="2026-01-02T00:00:00Z")
    second = timestamps.parse("2026-01-15T00:00:00Z")
    for as_of in (second, second - 864_000 * 4, SECOND):
        quick, slow = opened(sandbox, as_of=as_of), opened(sandbox, as_of=as_of, cached=False)
        assert ask(quick) == ask(slow)
        assert [record.id for record in quick.records] == [record.id for record in slow.records]
        assert quick.lineage.superseded_by == slow.lineage.superseded_by


def test_other_categories_give_another_index(filled: Sandbox) -> None:
    """How long memories live depends on them, and so does what is a memory."""
    opened(filled)
    context, uncached = filled.context(), filled.context(MEMTOOL_NO_CACHE="1")
    some = {name: row for name, row in DEFAULT_CATEGORIES.items() if name != "decision"}
    for path in sorted((filled.path / ".memory").rglob("*.md"))[:3]:
        path.write_text(path.read_text().replace("---\n", "---\ncategory: decision\n", 1))
    context.project.settings = uncached.project.settings = context.settings.replace(categories=some)
    quick, slow = open_catalog(context), open_catalog(uncached)
    assert quick.problems == slow.problems
    assert len(quick.problems) == 3
    assert len(opened(filled).records) == 40


def test_find_names_a_memory_by_the_beginning_of_its_id(filled: Sandbox) -> None:
    """As in a tree; unknown ids are refused with what is near."""
    catalog = opened(filled)
    assert catalog.find("dec-07").path.endswith("dec-07.md")
    with pytest.raises(MemtoolError, match='"dec-0" matches 10 memories'):
        catalog.find("dec-0")
    with pytest.raises(MemtoolError, match="no memory is called"):
        catalog.find("dec-99")


def test_an_empty_tree_finds_nothing(sandbox: Sandbox) -> None:
    """No memory, no directory: an empty catalog."""
    catalog = opened(sandbox)
    assert (catalog.records, catalog.count, catalog.ids, ask(catalog)) == ((), 0, [], [])
    shutil.rmtree(sandbox.path / ".memory")
    assert len(opened(sandbox).records) == 0
    assert len(opened(sandbox).records) == 0


def test_the_first_memory_of_an_empty_tree_is_found(sandbox: Sandbox) -> None:
    """The index of nothing, which has no average length to score by, is built anew."""
    assert opened(sandbox).count == 0
    sandbox.memory("dec-a", "Sessions are kept in redis.\n")
    (row,) = ask(opened(sandbox), "redis")
    assert row[0].endswith("/dec-a.md")


def test_stored_records_equal_those_of_a_tree(filled: Sandbox) -> None:
    """Values compare by what they are, not by how they were read."""
    catalog, plain = opened(filled), opened(filled, cached=False)
    assert catalog.records == plain.records
    assert catalog.records[0].memory == plain.records[0].memory
    assert catalog.records[0].memory.with_body("x").body == "x"
    assert catalog.records[0].memory.with_fields(title="x").title == "x"
    assert repr(catalog.records[0]).startswith("Record(memory=Memory(fields=")
    assert [catalog[id_] for id_ in catalog.ids] == [plain[id_] for id_ in plain.ids]
    assert catalog.get("dec-99") is plain.get("dec-99") is None
    with pytest.raises(KeyError):
        plain["dec-99"]
    with pytest.raises(CorruptCacheError):  # who asks so has the id from there
        catalog["dec-99"]


def test_opening_and_asking_load_little(filled: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    """The unchanged way imports neither what builds nor what parses."""
    age(filled, monkeypatch)
    opened(filled)
    opened(filled)
    code = (
        "import sys; from memtool.index.index import open_catalog\n"
        "from memtool.memory.fields import DEFAULT_CATEGORIES as known\n"
        "from memtool.search.features import Facts\n"
        "from memtool.index.scoring import parse_question\n"
        "from memtool.search.retrieve import Retriever\n"
        "from memtool.store.context import Context\n"
        "found = open_catalog(Context.at('.'))\n"
        f"facts = Facts(found, {SECOND}, dict)\n"
        "best = Retriever(facts).find_best(parse_question('tree lock'), 30, facts.is_current)\n"
        "assert best and all(one.record.memory.body for one in best)\n"
        "print(*sys.modules)"
    )
    path = os.pathsep.join(entry for entry in sys.path if entry)
    done = subprocess.run(
        [sys.executable, "-S", "-c", code],
        cwd=filled.path,
        check=True,
        env=filled.env | {"PYTHONPATH": path},
        capture_output=True,
        text=True,
    )
    heavy = {
        "numpy",
        "bm25s",
        "re",
        "json",
        "typing",
        "contextlib",
        "hashlib",
        "subprocess",
        "yaml",
        "tomllib",
        "enum",
        "dataclasses",
        "memtool.index.build",
        "memtool.memory.document",
    }
    assert set(done.stdout.split()) & heavy == set()
