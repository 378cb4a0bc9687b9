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
from memtool.index import index, manifest, postings, reader, stored_fields
from memtool.index.index import open_catalog
from memtool.index.reader import StoredCatalog
from memtool.memory import timestamps
from memtool.memory.fields import DEFAULT_CATEGORIES
from memtool.search.features import Facts
from memtool.search.retrieve import Retriever, question
from memtool.store import cache
from memtool.store.cache import CorruptCache
from memtool.store.context import Context
from memtool.store.git import Git
from memtool.store.repository import discover
from memtool.store.snapshot import Tree
from tests.conftest import NOW, Sandbox

SECOND = timestamps.parse(NOW)


def opened(
    sandbox: Sandbox, where: Path | None = None, *, cached: bool = True, **options: Any
) -> reader.Catalog:
    """Open the catalog of a worktree."""
    env = sandbox.env | ({} if cached else {"MEMTOOL_NO_CACHE": "1"})
    return open_catalog(Context.at(str(where or sandbox.path), env), **options)


def asked(found: Tree, text: str = "tree lock") -> list[tuple[str, float, str]]:
    """What a question finds: path, score, body."""
    facts = Facts(found, SECOND, DEFAULT_CATEGORIES, dict)
    matches = Retriever(facts).best(question(text, {}), 30, facts.is_current)
    return sorted((one.record.path, one.raw, one.record.memory.body) for one in matches)


def known(found: reader.Catalog) -> list[object]:
    """What a damaged cache must not change."""
    ids = [record.id for record in found.records]
    return [asked(found), found.problems, found.lineage.superseded_by, ids]


@pytest.fixture
def filled(sandbox: Sandbox) -> Sandbox:
    """Forty committed memories."""
    for number in range(40):
        words = ("git tree", "lock of the index", "tree lock", "nothing")[number % 4]
        sandbox.memory(f"dec-{number:02}", f"{words} and {number}.\n")
    sandbox.commit()
    return sandbox


def git_state(sandbox: Sandbox) -> Path:
    return sandbox.path / ".git" / manifest.FILE


def indexes(sandbox: Sandbox) -> list[Path]:
    folder = sandbox.path / ".git" / "memtool" / postings.FOLDER
    return sorted(folder.iterdir()) if folder.exists() else []


def age(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let what was written just now count as written long ago."""
    monkeypatch.setattr("memtool.index.manifest.DOUBT_NS", -(10**9))


def test_an_unchanged_worktree_is_opened_without_reading_a_memory(
    filled: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second opening takes everything from the cache: no file is opened, nothing written."""
    age(filled, monkeypatch)
    first = asked(opened(filled))
    before = git_state(filled).read_bytes()
    monkeypatch.setattr(index, "Refresh", lambda *_a, **_k: pytest.fail("not unchanged"))
    found = opened(filled)
    assert isinstance(found, StoredCatalog)
    assert len(asked(found)) == 30 == len(first)
    assert asked(found) == first
    assert git_state(filled).read_bytes() == before


def test_a_changed_file_is_read_and_the_segment_stays(
    filled: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One edit costs one file: the segment and the state are those of before."""
    age(filled, monkeypatch)
    opened(filled)
    filled.memory("dec-07", "An unheard word: xylophone.\n")
    found = opened(filled)
    assert [path for path, *_rest in asked(found, "xylophone")] == [
        ".memory/decision/2026-02/dec-07.md"
    ]
    assert isinstance(found, StoredCatalog)
    assert [part.index.count for part in found.parts.parts] == [40, 1]
    assert len(indexes(filled)) == 1


def test_a_broken_file_is_told_of_as_long_as_it_is_there(
    filled: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A new file that is no memory is a problem at every opening, until it is gone."""
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


def test_what_is_as_before_is_in_the_segment_again(
    filled: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An edit that was taken back, and files that were only touched, leave nothing behind."""
    age(filled, monkeypatch)
    opened(filled)
    place = filled.path / ".memory/decision/2026-02/dec-07.md"
    before = place.read_bytes()
    filled.memory("dec-07", "An unheard word: xylophone.\n")
    opened(filled)
    place.write_bytes(before)
    for file in place.parent.iterdir():
        os.utime(file, ns=(1, 1))
    opened(filled, exact=True)
    kept = manifest.load(str(filled.path / ".git"))
    assert kept is not None
    assert (kept.dead, kept.carrying) == (frozenset(), [])
    found = opened(filled)
    assert isinstance(found, StoredCatalog)
    assert [part.index.count for part in found.parts.parts] == [40]


def test_many_changes_are_kept_with_the_state_and_very_many_make_a_segment(
    filled: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The state carries what is in no segment, until there is too much of it."""
    age(filled, monkeypatch)
    opened(filled)
    for number in range(20):
        filled.memory(f"dec-x{number:02}", f"quartz {number}\n")
    opened(filled)
    monkeypatch.setattr(index.Refresh, "carry", lambda *_a: pytest.fail("read again"))
    found = opened(filled)
    assert isinstance(found, StoredCatalog)
    assert [part.index.count for part in found.parts.parts] == [40, 20]
    assert len(asked(found, "quartz")) == 20
    monkeypatch.undo()
    for number in range(20, 80):
        filled.memory(f"dec-x{number:02}", f"quartz {number}\n")
    found = opened(filled)
    assert isinstance(found, StoredCatalog)
    assert [part.index.count for part in found.parts.parts] == [120]
    assert len(indexes(filled)) == 2


def test_folders_alone_are_checked_where_files_are_many(
    filled: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Then git and replaced files are seen, rewriting in place only by an exact check."""
    age(filled, monkeypatch)
    monkeypatch.setattr(manifest, "FEW_FILES", 10)
    assert opened(filled).freshness == "exact"
    assert opened(filled).freshness == "dir-exact"
    path = filled.path / ".memory/decision/2026-02/dec-07.md"
    text = path.read_text()
    path.write_text(text.replace("nothing", "zebra and nothing"))
    old = opened(filled)
    assert asked(old, "zebra") == []
    assert not old.verify([old.by_id["dec-07"]])
    exact = opened(filled, exact=True)
    assert exact.freshness == "exact"
    assert len(asked(exact, "zebra")) == 1
    filled.git("checkout", "--", ".memory")
    path.with_suffix(".new").write_text(text.replace("nothing", "okapi"))
    path.with_suffix(".new").rename(path)
    found = opened(filled)
    assert (found.freshness, len(asked(found, "okapi")), len(asked(found, "zebra"))) == (
        "dir-exact", 1, 0)  # fmt: skip
    filled.git("stash", "--quiet")
    assert asked(opened(filled), "okapi") == []
    filled.git("stash", "pop", "--quiet")
    assert len(asked(opened(filled), "okapi")) == 1
    filled.git("rm", "-rq", "--cached", ".memory")
    filled.git("commit", "-qm", "gone")
    filled.git("checkout", "-q", "--force", "HEAD~1")
    filled.git("checkout", "-q", "--force", "main")
    assert len(opened(filled).records) == 0


def test_a_file_that_was_new_when_it_was_read_is_read_again(filled: Sandbox) -> None:
    """A second change in the same instant may leave the same size and times."""
    opened(filled)
    kept = manifest.load(str(filled.path / ".git"))
    assert kept is not None
    assert len(kept.doubtful[".memory/decision/2026-02"]) == 40
    path = filled.path / ".memory/decision/2026-02/dec-07.md"
    number = kept.place_of(".memory/decision/2026-02")
    assert number is not None
    path.write_text(path.read_text().replace("nothing", "walrus!"))
    kept.folder(number)
    assert len(asked(opened(filled), "walrus")) == 1


def test_a_process_that_asks_again_maps_nothing_again(
    filled: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is mapped is kept for the next call, as long as its files are the same."""
    age(filled, monkeypatch)
    mapped: list[str] = []
    real = cache.mapped
    monkeypatch.setattr(cache, "mapped", lambda path: mapped.append(path) or real(path))
    first = asked(opened(filled))
    asked(opened(filled))
    mapped.clear()
    assert asked(opened(filled)) == first
    assert mapped == []
    for file in indexes(filled)[0].iterdir():
        file.write_bytes(file.read_bytes())
    assert asked(opened(filled)) == first
    assert mapped != []


def test_what_is_kept_open_is_bounded(filled: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither the memories that were read nor the worktrees grow without end."""
    age(filled, monkeypatch)
    first = asked(opened(filled))
    assert asked(opened(filled)) == first
    kept = opened(filled).parts
    assert opened(filled).parts is kept
    monkeypatch.setattr(index, "MOST_READ", 5)
    assert asked(opened(filled)) == first
    assert opened(filled).parts is not kept
    monkeypatch.setattr(index, "MOST_HELD", 1)
    own = str(filled.path / ".git")
    monkeypatch.setattr(index, "_held", {"elsewhere": index._held[own]})
    assert asked(opened(filled)) == first
    assert list(index._held) == [own]


def test_the_past_is_not_kept_for_the_present(
    filled: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was asked as of a moment leaves the next answer whole."""
    age(filled, monkeypatch)
    first = asked(opened(filled))
    assert asked(opened(filled, as_of=SECOND - 10_000_000)) == []
    assert asked(opened(filled)) == first


def test_verify_sees_a_hit_that_moved(filled: Sandbox) -> None:
    """Of the memories that are shown, none may have changed after the check."""
    found = opened(filled)
    assert found.verify(found.records[:10])
    path = filled.path / found.records[3].path
    path.write_text(path.read_text() + "more\n")
    assert not found.verify(found.records[:10])
    assert found.verify(found.records[4:])
    path.unlink()
    assert not found.verify([found.records[3]])


def test_two_worktrees_share_a_segment(filled: Sandbox, tmp_path: Path) -> None:
    """Each has a state in its own git directory; what both hold is indexed once."""
    other = tmp_path / "other"
    filled.git("worktree", "add", "--quiet", str(other), "-b", "other")
    expected = asked(opened(filled))
    assert asked(opened(filled, other)) == expected
    assert len(indexes(filled)) == 1
    (other / ".memory/decision/2026-02/dec-02.md").unlink()
    assert len(asked(opened(filled, other))) == len(expected) - 1
    assert len(opened(filled, other).records) == 39
    assert len(opened(filled).records) == 40
    assert (filled.path / ".git/worktrees/other" / manifest.FILE).exists()


@pytest.mark.slow
def test_processes_that_build_at_once_all_answer(filled: Sandbox) -> None:
    """Without a cache each builds, one keeps; no lock, no leftovers."""
    code = (
        "from memtool.index import index; from memtool.store.context import Context\n"
        "print(len(index.open(Context.at('.')).records))"
    )
    children = [
        subprocess.Popen([sys.executable, "-c", code], cwd=filled.path, env=filled.env,
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for _each in range(4)
    ]  # fmt: skip
    for child in children:
        out, err = child.communicate()
        assert (child.returncode, out.strip(), err) == (0, b"40", b"")
    assert len(indexes(filled)) == 1
    assert [path.name for path in git_state(filled).parent.glob(".tmp*")] == []


def damages(data: bytes) -> list[bytes]:
    """Ways in which a file may be damaged."""
    flipped = []
    for place in range(0, len(data), max(1, len(data) // 60)):
        copy = bytearray(data)
        copy[place] ^= 1 << (place % 8)
        flipped.append(bytes(copy))
    return [b"", data[: len(data) // 2], data[:-1], data + b"\0", *flipped]


@pytest.mark.parametrize(
    "name", ["manifest", stored_fields.FILE, postings.SIDECAR, "data.csc.index.npy"]
)
def test_a_damaged_cache_costs_time_only(
    filled: Sandbox, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Truncated, lengthened or flipped anywhere: the answer is that of the files."""
    age(filled, monkeypatch)
    filled.memory("dec-40", "A tree lock.\n", supersedes=("dec-02",))
    (filled.path / ".memory/broken.md").write_text("---\n")
    plain = opened(filled, cached=False)
    expected = known(plain)
    opened(filled)
    (place,) = [git_state(filled)] if name == "manifest" else [indexes(filled)[0] / name]
    whole, kept = place.read_bytes(), git_state(filled).read_bytes()
    for data in damages(whole):
        place.write_bytes(data)
        try:
            assert known(opened(filled)) == expected
        except CorruptCache:
            assert index.drop(discover(str(filled.path), filled.env))
            assert known(opened(filled)) == expected
            assert known(opened(filled)) == expected
        git_state(filled).write_bytes(kept)
    assert not [path for path in indexes(filled) if path.name.startswith(".tmp")]


def test_a_missing_cache_is_made_again(filled: Sandbox) -> None:
    """Segments, state, or one file of a segment may be removed at any time."""
    expected = asked(opened(filled))
    (index,) = indexes(filled)
    for gone in (index, git_state(filled), index / stored_fields.FILE, index / postings.SIDECAR,
                 filled.path / ".git/memtool"):  # fmt: skip
        if gone.is_dir():
            shutil.rmtree(gone)
        else:
            gone.unlink()
        assert asked(opened(filled)) == expected
        assert opened(filled).notes == []
        assert (indexes(filled), git_state(filled).exists()) == ([index], True)


def test_a_cache_that_cannot_be_written_gives_one_note(filled: Sandbox) -> None:
    """The index is then in memory, and the answer the same."""
    expected = asked(opened(filled))
    shutil.rmtree(filled.path / ".git/memtool")
    (filled.path / ".git/memtool").write_text("in the way")
    found = opened(filled)
    assert asked(found) == expected
    assert len(found.notes) == 1
    assert "is not kept" in found.notes[0]


def test_without_a_cache_nothing_is_written(filled: Sandbox) -> None:
    """The slow way reads everything and leaves nothing behind."""
    found = opened(filled, cached=False)
    assert (found.freshness, len(asked(found))) == ("exact", 30)
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
    marked = half.replace("confidence: medium\n", "<<<<<<< a\nconfidence: low\n=======\n"
                          "confidence: high\n>>>>>>> b\n")  # fmt: skip
    assert marked != half
    sandbox.write(".memory/semantic/2026-02/sem-half.md", marked)
    sandbox.write(".memory/semantic/2026-02/sem-broken.md", "no memory\n")
    sandbox.commit()
    sandbox.memory("sem-later", "It is so now.\n")
    opened(sandbox)
    read: list[str] = []
    ask = Git.blobs

    def counted(git: Git, oids: Any, most: int) -> Any:
        read.extend(oids)
        return ask(git, oids, most)

    monkeypatch.setattr(Git, "blobs", counted)
    kept = opened(sandbox, at="HEAD")
    assert len(read) == 3
    bare = opened(sandbox, at="HEAD", cached=False)
    assert kept.records == bare.records
    assert kept.problems == bare.problems != ()
    assert kept.by_id["sem-later"].memory.body == "It was so.\n"
    assert kept.by_id["sem-later"].path == later


def test_a_sparse_checkout_is_read_with_what_it_left_out(filled: Sandbox) -> None:
    """Files that are not on disk come from git's index."""
    filled.git("sparse-checkout", "set", "--no-cone", "/*", "!/.memory/decision/2026-02/dec-0*")
    assert not (filled.path / ".memory/decision/2026-02/dec-07.md").exists()
    found = opened(filled)
    assert (len(found.records), found.freshness) == (40, "exact")


def test_a_bare_repository_needs_a_revision(filled: Sandbox, tmp_path: Path) -> None:
    """There is no worktree to look at."""
    filled.git("clone", "--quiet", "--bare", ".", str(tmp_path / "bare.git"))
    with pytest.raises(MemtoolError, match="bare"):
        opened(filled, tmp_path / "bare.git")
    assert len(opened(filled, tmp_path / "bare.git", at="HEAD").records) == 40


def test_a_linked_memory_directory_is_not_followed(filled: Sandbox, tmp_path: Path) -> None:
    """Neither as a whole nor below: links are problems."""
    opened(filled)
    shutil.move(filled.path / ".memory/decision", tmp_path / "elsewhere")
    (filled.path / ".memory/decision").symlink_to(tmp_path / "elsewhere")
    found = opened(filled)
    assert (len(found.records), [one.code for one in found.problems]) == (0, ["symlink"])
    shutil.move(filled.path / ".memory", tmp_path / "all")
    (filled.path / ".memory").symlink_to(tmp_path / "all")
    found = opened(filled)
    assert (len(found.records), [one.code for one in found.problems]) == (0, ["symlink"])


def test_the_past_is_seen_without_what_came_later(sandbox: Sandbox) -> None:
    """`as_of` changes records, statistics, lineage and twins, as reading the tree does."""
    sandbox.memory("dec-old", "The tree is a lock.\n", timestamp="2026-01-01T00:00:00Z")
    sandbox.memory("dec-new", "The tree is none.\n", supersedes=("dec-old",))
    sandbox.memory("dec-mid", "A lock.\n", timestamp="2026-01-02T00:00:00Z")
    second = timestamps.parse("2026-01-15T00:00:00Z")
    for as_of in (second, second - 864_000 * 4, SECOND):
        quick, slow = opened(sandbox, as_of=as_of), opened(sandbox, as_of=as_of, cached=False)
        assert asked(quick) == asked(slow)
        assert [one.id for one in quick.records] == [one.id for one in slow.records]
        assert quick.lineage.superseded_by == slow.lineage.superseded_by


def test_other_categories_give_another_index(filled: Sandbox) -> None:
    """How long memories live depends on them, and so does what is a memory."""
    opened(filled)
    context, uncached = filled.context(), filled.context(MEMTOOL_NO_CACHE="1")
    some = {name: row for name, row in DEFAULT_CATEGORIES.items() if name != "decision"}
    for path in sorted((filled.path / ".memory").rglob("*.md"))[:3]:
        path.write_text(path.read_text().replace("---\n", "---\ncategory: decision\n", 1))
    context.settings = uncached.settings = context.settings.replace(categories=some)
    quick, slow = open_catalog(context), open_catalog(uncached)
    assert quick.problems == slow.problems
    assert len(quick.problems) == 3
    assert len(opened(filled).records) == 40


def test_find_names_a_memory_by_the_beginning_of_its_id(filled: Sandbox) -> None:
    """As in a tree; unknown ids are refused with what is near."""
    found = opened(filled)
    assert found.find("dec-07").path.endswith("dec-07.md")
    with pytest.raises(MemtoolError, match="10 memories begin"):
        found.find("dec-0")
    with pytest.raises(MemtoolError, match="no memory has"):
        found.find("dec-99")


def test_an_empty_tree_is_false_and_finds_nothing(sandbox: Sandbox) -> None:
    """No memory, no directory: an empty catalog."""
    found = opened(sandbox)
    assert (len(found.records), bool(found.by_id), list(found.by_id), asked(found)) == (
        0, False, [], [])  # fmt: skip
    shutil.rmtree(sandbox.path / ".memory")
    assert len(opened(sandbox).records) == 0
    assert len(opened(sandbox).records) == 0


def test_stored_records_equal_those_of_a_tree(filled: Sandbox) -> None:
    """Values compare by what they are, not by how they were read."""
    found, plain = opened(filled), opened(filled, cached=False)
    assert list(found.records) == list(plain.records)
    assert found.records[0].memory == plain.records[0].memory
    assert found.records[0].memory.replace(body="x").body == "x"
    assert found.records[0].memory.with_fields(title="x").title == "x"
    assert repr(found.records[0]).startswith("Record(memory=StoredMemory(fields=")
    assert found.records[0].plain() == plain.records[0].plain()
    assert found.records[-1] == found.records[39]
    assert list(found.records[3:5]) == list(plain.records[3:5])
    assert dict(found.by_id.items()) == plain.by_id
    with pytest.raises(KeyError):
        found.by_id["dec-99"]


def test_few_postings_are_touched(filled: Sandbox) -> None:
    """A question costs the postings of its words, less where the first ones decide."""
    for number in range(400):
        filled.memory(f"sem-{number:03}", f"common words here {'rare' * (number % 97 == 0)}\n")
    found = opened(filled)
    assert isinstance(found, StoredCatalog)
    index: Any = found.parts.parts[0].index
    asked(found, "rare")
    assert index.touched <= 10
    asked(found, "common rare words here")
    assert index.touched <= 10 + 5 + 4 * 440


def test_opening_and_asking_load_little(filled: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    """The unchanged way imports neither what builds nor what parses."""
    age(filled, monkeypatch)
    opened(filled)
    opened(filled)
    code = (
        "import sys; from memtool.index.index import open_catalog\n"
        "from memtool.memory.fields import DEFAULT_CATEGORIES as known\n"
        "from memtool.search.features import Facts\n"
        "from memtool.search.retrieve import Retriever, question\n"
        "from memtool.store.context import Context\n"
        "found = open_catalog(Context.at('.'))\n"
        f"facts = Facts(found, {SECOND}, known, dict)\n"
        "best = Retriever(facts).best(question('tree lock', {}), 30, facts.is_current)\n"
        "assert best and all(one.record.memory.body for one in best)\n"
        "print(*sys.modules)"
    )
    path = os.pathsep.join(entry for entry in sys.path if entry)
    done = subprocess.run([sys.executable, "-S", "-c", code], cwd=filled.path, check=True,
                          env=filled.env | {"PYTHONPATH": path}, capture_output=True,
                          text=True)  # fmt: skip
    heavy = {
        "numpy", "bm25s", "re", "json", "typing", "functools", "contextlib", "datetime",
        "hashlib", "subprocess", "yaml", "tomllib", "enum", "dataclasses",
        "memtool.index.build", "memtool.memory.document",
    }  # fmt: skip
    assert set(done.stdout.split()) & heavy == set()
