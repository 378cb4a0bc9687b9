"""Exactness: whatever happens to a repository, a catalog answers as reading all of it does."""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from memtool.index import postings, reader, refresh, stamps, writing
from memtool.index.index import open_catalog
from memtool.index.reader import StoredCatalog
from memtool.index.scoring import parse_question
from memtool.memory import document, timestamps
from memtool.search.features import Facts
from memtool.search.retrieve import Retriever
from memtool.store.tree import Tree
from tests.conftest import NOW, Sandbox, make_memory

WORDS = [
    "git",
    "tree",
    "object",
    "cache",
    "lock",
    "index",
    "stash",
    "commit",
    "auth",
    "error",
    "naïve",
]
QUESTIONS = ("git tree lock", "the index of objects", "auth error in cache", "stash", "naive day")
SECOND = timestamps.parse(NOW)


def opened(sandbox: Sandbox, *, cached: bool = True, **options: Any) -> reader.Catalog:
    """Open the catalog of the sandbox's worktree."""
    env = {} if cached else {"MEMTOOL_NO_CACHE": "1"}
    return open_catalog(sandbox.context(**env), **options)


def answers(tree: Tree) -> list[object]:
    """Everything that a search may see of a tree."""
    facts = Facts(tree, SECOND, dict)
    reader = Retriever(facts)
    results: list[object] = []
    for text in QUESTIONS:
        question = reader.narrow(parse_question(text))
        results.append([reader.index.df(term) for term in question.weights])
        results.append(
            [reader.index.find_terms(text[:size], limit) for size in (0, 1, 2) for limit in (3, 99)]
        )
        for matches in (
            reader.find_best(question, 5, facts.is_current),
            reader.find_best(question, 40, lambda record: record.memory.type == "decision"),
            reader.rank(question, facts.is_current)[0],
            reader.rank(question, lambda _record: True)[0],
        ):
            by_path = sorted(matches, key=lambda match: match.record.path)
            results.append([(match.record.path, match.raw, match.through) for match in by_path])
            results += [sorted(facts.terms(match.record)) for match in by_path]
        everything = sorted(matches, key=lambda m: (-m.raw, m.record.id, m.record.path))
        for limit in (1, 5, 99):
            ranked, total = reader.rank(question, lambda _record: True, limit)
            assert total == len(everything)
            assert [m.raw for m in ranked] == [m.raw for m in everything[:limit]]
            results.append([(m.record.path, m.through) for m in ranked])
        results.append(reader.rank(question, facts.is_current, 5)[1])
    return results


def contents(tree: Tree) -> list[object]:
    """Everything that a tree is."""
    lineage = tree.lineage
    return [
        [(r.id, r.path, r.oid, r.memory.fields, r.memory.body) for r in tree.records],
        [(id_, tree[id_].path) for id_ in tree.ids],
        len(tree.records),
        [record.memory.timestamp for record in tree.records],
        tree.problems,
        {id_: olds for id_, olds in lineage.supersedes.items() if olds},
        (lineage.superseded_by, lineage.proposes, lineage.proposed_by),
        (lineage.find_forks(), lineage.find_cycles(), lineage.find_dangling()),
        (tree.location.kind, tree.location.name),
    ]


def assert_exact(sandbox: Sandbox, **options: Any) -> StoredCatalog:
    """Compare a catalog with the tree that is read and indexed as a whole."""
    quick = opened(sandbox, **options)
    slow = opened(sandbox, cached=False, **{k: v for k, v in options.items() if k != "exact"})
    assert isinstance(quick, StoredCatalog)
    assert answers(quick) == answers(slow)
    assert contents(quick) == contents(slow)
    assert [record.path for record in quick.pinned] == [record.path for record in slow.pinned]
    assert quick.verify(quick.records)
    return quick


class Life:
    """Random things that happen to a repository."""

    def __init__(self, sandbox: Sandbox, seed: int) -> None:
        self.sandbox = sandbox
        self.draw = random.Random(seed)
        self.made = 0

    def files(self) -> list[Path]:
        return sorted((self.sandbox.path / ".memory").rglob("*.md"))

    def text(self) -> str:
        return " ".join(self.draw.choices(WORDS, k=self.draw.randrange(3, 30))) + ".\n"

    def add(self) -> None:
        ids = [path.stem for path in self.files()]
        for _each in range(self.draw.choice((1, 1, 3, 12))):
            self.made += 1
            fields: dict[str, Any] = {"title": self.text().strip()[:80]}
            if self.draw.random() < 0.4 and ids:
                fields["supersedes"] = (self.draw.choice(ids),)
            if self.draw.random() < 0.3:
                fields["status"] = self.draw.choice(("pinned", "archived", "candidate"))
            if self.draw.random() < 0.2:
                fields["status"] = "deleted"
                fields["deleted"] = {"at": "2026-02-25T00:00:00Z", "by": "Ada", "was": "confirmed"}
            if self.draw.random() < 0.2:
                fields["valid_through"] = self.draw.choice(("2026-02-23", "2026-06-01"))
            if self.draw.random() < 0.1:
                fields["valid_from"] = "2026-05-01"
            id_ = f"dec-{self.draw.choice('abc')}{self.made}"
            memory = make_memory(id_, self.text(), **fields)
            folder = self.draw.choice(("decision/2026-02", "semantic", "a-b", "a/c"))
            self.sandbox.write(f".memory/{folder}/{id_}.md", document.write(memory))

    def edit(self) -> None:
        for path in self.draw.sample(self.files(), min(2, len(self.files()))):
            path.write_text(path.read_text() + self.text())

    def edit_unseen(self) -> None:
        """Another text of the same size, and the time of the old one."""
        for path in self.draw.sample(self.files(), min(1, len(self.files()))):
            was = path.stat()
            text = path.read_text()
            path.write_text(text.replace("git", "log") if "git" in text else text.swapcase())
            os.utime(path, ns=(was.st_atime_ns, was.st_mtime_ns))

    def break_one(self) -> None:
        for path in self.draw.sample(self.files(), min(1, len(self.files()))):
            kind = self.draw.choice(("cut", "empty", "link", "binary", "twin", "mode"))
            if kind == "cut":
                path.write_text("---\nid: x\n")
            elif kind == "empty":
                path.write_text("")
            elif kind == "link":
                path.unlink()
                path.symlink_to("/etc/hostname")
            elif kind == "binary":
                path.write_bytes(b"\0\xff")
            elif kind == "twin":
                self.sandbox.write(f".memory/twins/{path.name}", path.read_bytes())
            else:
                path.write_text(path.read_text().replace("\n", "\r\n"))

    def remove(self) -> None:
        for path in self.draw.sample(self.files(), min(2, len(self.files()))):
            path.unlink()

    def rename(self) -> None:
        for path in self.draw.sample(self.files(), min(1, len(self.files()))):
            place = path.parent.parent / f"moved{self.draw.randrange(3)}" / path.name
            place.parent.mkdir(exist_ok=True)
            path.rename(place)

    def swap_folders(self) -> None:
        top = self.sandbox.path / ".memory"
        folders = sorted(path for path in top.iterdir() if path.is_dir() and not path.is_symlink())
        if len(folders) > 1:
            first, other = self.draw.sample(folders, 2)
            first.rename(top / "swapped")
            other.rename(first)
            (top / "swapped").rename(other)

    def commit(self) -> None:
        self.sandbox.git("add", "--all")
        self.sandbox.git("commit", "--quiet", "--allow-empty", "-m", "x")

    def stash(self) -> None:
        self.sandbox.git("stash", "--include-untracked", check=False)

    def pop(self) -> None:
        self.sandbox.git("stash", "pop", check=False)

    def reset(self) -> None:
        self.sandbox.git(
            "reset", "--quiet", "--hard", self.draw.choice(("HEAD", "HEAD~1")), check=False
        )

    def branch(self) -> None:
        name = self.draw.choice(("one", "two"))
        self.sandbox.git(
            "checkout",
            "--quiet",
            "--force",
            "-B",
            name,
            self.draw.choice(("HEAD", "HEAD~1")),
            check=False,
        )

    def switch(self) -> None:
        name = self.draw.choice(("one", "two", "main"))
        self.sandbox.git("checkout", "--quiet", "--force", name, check=False)

    def touch(self) -> None:
        for path in self.files():
            os.utime(path)

    def clean(self) -> None:
        shutil.rmtree(
            self.sandbox.path / ".memory" / self.draw.choice(("a-b", "a", "semantic")),
            ignore_errors=True,
        )

    def happen(self) -> str:
        deeds: list[Callable[[], None]] = [
            self.add,
            self.add,
            self.add,
            self.add,
            self.edit,
            self.edit_unseen,
            self.break_one,
            self.remove,
            self.rename,
            self.swap_folders,
            self.commit,
            self.commit,
            self.stash,
            self.pop,
            self.reset,
            self.branch,
            self.switch,
            self.touch,
            self.clean,
        ]
        deed = self.draw.choice(deeds)
        deed()
        return deed.__name__


@pytest.fixture
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small bounds, so that a few files reach all of them; times that are trusted sooner."""
    monkeypatch.setattr(stamps, "DOUBT_NS", 20_000_000)
    monkeypatch.setattr(refresh, "MAX_SINGLE_LOOKUPS", 3)
    monkeypatch.setattr(writing, "MIN_CHANGES", 8)
    monkeypatch.setattr(postings, "CHUNK_SIZE", 8)


@pytest.mark.slow
@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 24))]
)
def test_any_history_gives_the_answers_of_a_full_rebuild(
    sandbox: Sandbox, seed: int, hurried: None
) -> None:
    """Adds, edits, deletes, renames, checkouts, stashes, resets: nothing is missed or stale."""
    life = Life(sandbox, seed)
    for _each in range(4):
        life.add()
        life.commit()
    history = []
    for _step in range(20):
        history += [life.happen() for _each in range(life.draw.choice((1, 1, 3)))]
        try:
            assert_exact(sandbox)
        except AssertionError as error:
            raise AssertionError(history) from error


def test_odd_files_are_seen_as_reading_sees_them(sandbox: Sandbox, hurried: None) -> None:
    """Pipes, folders named like memories, deep trees, odd names, huge and torn files."""
    top = sandbox.path / ".memory"
    sandbox.memory("dec-a", "git tree\n")
    steps: list[Callable[[], object]] = [
        lambda: os.mkfifo(top / "pipe.md"),
        (top / "folder.md").mkdir,
        lambda: (top / "folder.md" / "inner.md").write_text("---\n"),
        lambda: (top / Path(*"abcdefghijklmnop")).mkdir(parents=True),
        (top / "decision" / ".git").mkdir,
        Path(os.fsdecode(os.fsencode(top) + b"/\xff\xfe.md")).touch,
        lambda: (top / "line\nbreak.md").write_text("x"),
        lambda: (top / "big.md").write_text("---\n" + "x" * 70_000),
        lambda: (top / "big.md").write_text("x"),
        lambda: (top / "README.md").write_text("x"),
        lambda: (top / ".tmp-1.md").write_text("x"),
        (top / "pipe.md").unlink,
        lambda: (top / "dangling.md").symlink_to("nowhere"),
        lambda: (top / "loop").symlink_to("."),
        lambda: (top / "decision").rename(top / "other"),
        lambda: (top / "decision").write_text("a file now"),
        lambda: shutil.rmtree(top / "folder.md"),
        lambda: (top / "folder.md").write_text("a file now"),
        lambda: sandbox.memory("sem-b", "<<<<<<< a\n=======\n>>>>>>> b\n", type="semantic"),
        lambda: shutil.rmtree(top),
        lambda: top.write_text("a file now"),
        top.unlink,
        top.mkdir,
    ]
    for step in steps:
        step()
        for _twice in range(2):
            assert_exact(sandbox)


def test_the_past_is_exact_too(sandbox: Sandbox, hurried: None) -> None:
    """Later memories have no part in statistics, lineage, twins or terms."""
    life = Life(sandbox, 99)
    for day in range(1, 25):
        life.made += 1
        olds = (f"dec-{day - 3:02}",) if day % 4 == 0 else ()
        memory = make_memory(
            f"dec-{day:02}", life.text(), supersedes=olds, timestamp=f"2026-02-{day:02}T00:00:00Z"
        )
        for folder in ("a", "b")[: 1 + (day % 7 == 0)]:
            sandbox.write(f".memory/{folder}/dec-{day:02}.md", document.write(memory))
    for as_of in range(SECOND - 30 * timestamps.DAY_S, SECOND, 5 * timestamps.DAY_S):
        assert_exact(sandbox, as_of=as_of)
        life.edit()
