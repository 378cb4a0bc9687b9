"""Derived files: whatever is damaged below the derived directory costs time, never an answer.

The walk damages every file of the demo's clone in every way that there is, asks what a user and an
agent ask, and compares with the answers that need no cache. Each question is asked by a process of
its own, forked from this one, as each command and each hook is.
"""

from __future__ import annotations

import copy
import importlib
import io
import json
import os
import pkgutil
import random
import re
import shutil
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

import memtool
from memtool import demo
from memtool.cli import hooks
from memtool.cli import main as cli
from memtool.store import derived, facts
from memtool.store.repository import discover
from memtool.store.state import close_shared

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

NOW = "2026-11-20T16:00:00Z"
PROMPT = "how long is a seat held before it is paid?"
_TIMES = re.compile(r'"(elapsed_ms|p95_ms|samples)": ?[\d.]+')
NOBODY = 65534


class Answer(NamedTuple):
    """The output of a process, without elapsed times, and its exit code."""

    code: int
    stdout: str
    stderr: str


class Clone:
    """A clone of the demo that was used for a while, which can be damaged and made whole again."""

    def __init__(self, place: Path, env: Mapping[str, str]) -> None:
        self.top = place / "harbor"
        self.derived = self.top / ".git/memtool"
        self.env = {**env, "MEMTOOL_NOW": NOW, "MEMTOOL_NO_LEDGER": "1"}
        demo.build(self.env, str(self.top), dry_run=False)
        seat = next(self.top.glob(".memory/**/*seat*.md")).stem
        event = {"session_id": "", "cwd": str(self.top), "prompt": PROMPT}
        self.questions: dict[str, list[str]] = {
            "list": ["list", "--limit", "0", "--json"],
            "show": ["show", seat, "--json"],
            "search": ["search", "hold seats", "--json"],
            "inject": ["inject", "--prompt", PROMPT, "--json"],
            "why": ["why", seat, "--json"],
            "hook": ["hook", "claude", "user-prompt-submit", "--input", json.dumps(event)],
        }
        for call in (*self.questions.values(), ["drift"], ["conflicts"], ["stats"], ["check"]):
            self.run(call, {"MEMTOOL_NO_LEDGER": ""})
        self.expected = {name: self.ask(name, {"MEMTOOL_NO_CACHE": "1"}) for name in self.questions}
        self._rounds = 0
        self.whole = place / "whole"
        shutil.copytree(self.derived, self.whole, symlinks=True)

    def mend(self) -> None:
        """Put everything below the derived directory back as it was."""
        shutil.rmtree(self.derived, ignore_errors=True)
        if self.derived.exists():
            self.derived.unlink()
        shutil.copytree(self.whole, self.derived, symlinks=True)

    def files(self) -> list[Path]:
        """Return every file below the derived directory."""
        return sorted(path for path in self.derived.rglob("*") if path.is_file())

    def ask(self, name: str, env: Mapping[str, str] = {}, user: int = 0) -> Answer:
        """Ask one of the questions."""
        return self.run(self.questions[name], env, user)

    def run(self, args: list[str], env: Mapping[str, str] = {}, user: int = 0) -> Answer:
        """Run a command line in a process of its own, as another user if one is given."""
        outputs = [os.memfd_create(name) for name in ("stdout", "stderr")]
        child = os.fork()
        if not child:
            code = 99
            try:
                os.chdir(self.top)
                os.environ.clear()
                os.environ.update({**self.env, **env})
                if user:
                    os.setgroups([])
                    os.setgid(user)
                    os.setuid(user)
                for number, handle in enumerate(outputs, 1):
                    os.dup2(handle, number)
                sys.stdin = open(os.devnull)  # noqa: SIM115  # the process ends with it
                sys.stdout, sys.stderr = (
                    io.TextIOWrapper(os.fdopen(number, "wb", closefd=False), write_through=True)
                    for number in (1, 2)
                )
                hooks.LIMIT_S = 60.0  # of a machine with other work; no process is started then
                code = cli.main(args)
                close_shared()
                sys.stdout.flush()
                sys.stderr.flush()
            finally:
                os._exit(code)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        texts = []
        for handle in outputs:
            size = os.fstat(handle).st_size
            texts.append(os.pread(handle, size, 0).decode())
            os.close(handle)
        return Answer(code, _TIMES.sub("", texts[0]), texts[1])

    def load(self) -> None:
        """Load every module that the questions need, which another user may not read."""
        for module in pkgutil.walk_packages(memtool.__path__, "memtool."):
            if not module.name.startswith(("memtool.web", "memtool.mcp", "memtool.cli.__main__")):
                importlib.import_module(module.name)

    def faults(self, names: list[str] | None = None) -> list[str]:
        """Ask, and ask again; return what was answered otherwise than without a cache.

        The second time nothing is damaged any more, so that nothing is noted either.
        """
        problems = []
        self._rounds += 1
        order = list(names or self.questions)
        start = self._rounds % len(order)
        for attempt in ("first", "second"):
            for name in order[start:] + order[:start]:  # another one meets the damage each time
                got, expected = self.ask(name), self.expected[name]
                if attempt == "first":
                    got = got._replace(stderr=expected.stderr)
                if got != expected:
                    problems.append(f"{name}, {attempt} time: {got.code} {got.stderr[:200]}")
        return problems


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Clone:
    """A clone in which everything derived is present."""
    names = ("HOME", "PATH", "LANG", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_NOSYSTEM")
    env = {key: os.environ[key] for key in names if key in os.environ}
    env |= {
        f"GIT_{role}_{what}": "somebody@example.org"
        for role in ("AUTHOR", "COMMITTER")
        for what in ("NAME", "EMAIL")
    }
    return Clone(tmp_path_factory.mktemp("derived"), env)


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory, clone: Clone) -> Clone:
    """Another repository: the same memories but one, which reads otherwise."""
    second = Clone(tmp_path_factory.mktemp("other"), clone.env)
    memory = next(second.top.glob(".memory/**/*seat*.md"))
    memory.write_text(memory.read_text().replace("seat", "berth"))
    for call in (["commit", "-qam", "berths"], ["update-ref", "refs/remotes/origin/main", "HEAD"]):
        subprocess.run(["git", *call], cwd=second.top, env=second.env, check=True)
    shutil.rmtree(second.derived)
    for call in (*second.questions.values(), ["drift"], ["conflicts"], ["stats"], ["check"]):
        second.run(call, {"MEMTOOL_NO_LEDGER": ""})
    return second


def flip(path: Path, at: int) -> None:
    """Flip one bit of a file."""
    data = bytearray(path.read_bytes() or b"\0")
    data[at] ^= 1 << (at % 8)
    path.write_bytes(data)


def flip_middle(path: Path) -> None:
    flip(path, path.stat().st_size // 2)


def cut_in_half(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def cut_last_byte(path: Path) -> None:
    os.truncate(path, max(path.stat().st_size - 1, 0))  # a write-ahead log may be empty


def empty(path: Path) -> None:
    os.truncate(path, 0)


def lengthen(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b"\0")


def randomize(path: Path) -> None:
    size = path.stat().st_size
    path.write_bytes(random.Random(size).randbytes(size))


def remove(path: Path) -> None:
    path.unlink()


def make_directory(path: Path) -> None:
    path.unlink()
    path.mkdir()


def make_link(path: Path) -> None:
    path.unlink()
    path.symlink_to("/nowhere/at/all")


DAMAGES: tuple[Callable[[Path], None], ...] = (
    flip_middle,
    cut_in_half,
    cut_last_byte,
    empty,
    lengthen,
    randomize,
    remove,
    make_directory,
    make_link,
)
DERIVED = {facts.FOLDER, derived.TREE_FOLDERS, derived.WORKTREE_INDEX_FOLDER}
KEPT = {"audit.log", "ledger.db", "ledger.db-shm", "ledger.db-wal", "sessions", "spool"}
"""What cannot be made again, of the things that are in the clone."""


def is_derived(clone: Clone, path: Path) -> bool:
    return path.relative_to(clone.derived).parts[0] in DERIVED


def test_every_file_is_derived_or_cannot_be_made_again(clone: Clone) -> None:
    """A new kind of file below the directory goes onto one of the two lists."""
    names = {path.relative_to(clone.derived).parts[0] for path in clone.files()}
    assert names - DERIVED - KEPT == set()
    assert {"index", "state"} <= names


def test_a_damaged_row_of_citations_is_made_again(clone: Clone) -> None:
    """No verb fails, whichever meets the row first, and the prompt hook answers."""
    clone.mend()
    (path,) = clone.derived.glob("state/*.db")
    places = [match.start() for match in re.finditer(rb"\.memory/", path.read_bytes())]
    assert clone.expected["hook"].stdout.strip()
    for number, first in enumerate(("list", "search", "inject", "hook")):
        clone.mend()
        for at in places[number::4]:
            flip(path, at)
        assert clone.faults([first]) == []


@pytest.mark.slow
def test_any_derived_file_may_be_damaged(clone: Clone) -> None:
    """Each file, all ways in turn: the same answers, and no note the second time."""
    clone.mend()
    paths = [path for path in clone.files() if is_derived(clone, path)]
    problems = []
    for number, path in enumerate(paths):
        damage = DAMAGES[number % len(DAMAGES)]
        clone.mend()
        damage(path)
        faults = clone.faults(["list", "search", "hook"])
        problems += [f"{damage.__name__} {path.name}: {fault}" for fault in faults]
    assert problems == []


@pytest.mark.slow
def test_any_bit_of_the_shared_database_may_be_flipped(clone: Clone) -> None:
    """The verbs that keep rows there answer as they did."""
    calls = (["conflicts", "--json"], ["check", "--json"])
    clone.mend()
    expected = [clone.run(call) for call in calls]
    (path,) = clone.derived.glob("state/*.db")
    size = path.stat().st_size
    chance = random.Random(size)
    for at in sorted(chance.sample(range(size), 20)):
        clone.mend()
        flip(path, at)
        assert [clone.run(call) for call in calls] == expected, at


def other_files(clone: Clone) -> list[Path]:
    """Return the derived files of a clone of another repository, below a directory of its own."""
    return [path for path in clone.files() if is_derived(clone, path)]


@pytest.mark.slow
def test_a_file_of_another_clone_gives_no_answer(clone: Clone, other: Clone) -> None:
    """A file that was swapped with another repository's, of the same kind, is taken for damaged."""
    problems = []
    for path in other_files(other):
        (own, *_) = clone.whole.glob(kind_of(other, path))
        clone.mend()
        shutil.copyfile(path, clone.derived / own.relative_to(clone.whole))
        faults = clone.faults(["list", "search", "inject"])
        problems += [f"{path.name}: {fault}" for fault in faults]
    assert problems == []


def kind_of(clone: Clone, path: Path) -> str:
    """Return a pattern for the files that hold the same in any clone."""
    folder, *inner = path.relative_to(clone.derived).parts
    if folder in DERIVED:
        return (
            f"{folder}/*{inner[0].partition('.')[2]}"
            if ".db" in inner[0]
            else f"{folder}/*[0-9a-f]"
        )
    return f"{folder}/{inner[0].partition('-')[0]}*" if inner else folder


@pytest.mark.slow
@pytest.mark.root
@pytest.mark.parametrize("is_owner", [True, False])
def test_files_that_cannot_be_read_cost_no_answer(clone: Clone, *, is_owner: bool) -> None:
    """Another user's files, which may be removed or not: each question is answered as without."""
    if not all(place.stat().st_mode & 0o001 for place in Path(cli.__file__).parents):
        pytest.skip("no other user can read the code that is tested")
    with tempfile.TemporaryDirectory() as name:
        os.chmod(name, 0o755)
        theirs = copy.copy(clone)
        theirs.top = Path(name, "harbor")
        theirs.env = {**clone.env, "HOME": name}
        theirs.derived = theirs.top / ".git/memtool"
        clone.mend()
        shutil.copytree(clone.top, theirs.top, symlinks=True)
        for path in (theirs.top, *theirs.top.rglob("*")):
            os.chown(path, NOBODY, NOBODY)
        for path in theirs.files():
            if is_derived(theirs, path):
                os.chmod(path, 0)
                for place in (path, path.parent):
                    os.chown(place, *((NOBODY, NOBODY) if is_owner else (0, 0)))
        theirs.load()
        theirs.questions = {
            name: [word.replace(str(clone.top), str(theirs.top)) for word in words]
            for name, words in clone.questions.items()
        }
        names = tuple(theirs.questions)
        got = {name: theirs.ask(name, user=NOBODY) for name in names}
        assert {name: (got[name].code, got[name].stdout) for name in names} == {
            name: (clone.expected[name].code, clone.expected[name].stdout) for name in names
        }
        if is_owner:
            assert theirs.ask("search", user=NOBODY).stderr == clone.expected["search"].stderr


def test_doctor_names_damage_and_mends_it(clone: Clone) -> None:
    """Any damaged file is named; after --fix there is nothing to name."""
    clone.mend()
    assert named(clone) == []
    problems = []
    paths = [path for path in clone.files() if is_derived(clone, path)]
    for number, path in enumerate(paths):
        damage = (flip_middle, cut_last_byte, make_directory)[number % 3]
        clone.mend()
        damage(path)
        if str(path.relative_to(clone.derived)) not in named(clone):
            problems.append(f"{damage.__name__} {path.name}: not named")
    assert problems == []
    clone.mend()
    for path in paths:
        flip_middle(path)
    fixed = json.loads(clone.run(["doctor", "--fix", "--json"]).stdout)
    assert "made the search index and the other derived files anew" in fixed["mended"]
    assert named(clone) == []
    assert clone.faults(["search"]) == []


def named(clone: Clone) -> list[str]:
    """Return the derived files that doctor would name."""
    damaged = derived.find_damaged_files(discover(str(clone.top), clone.env))
    return [os.path.relpath(path, clone.derived) for path in damaged]


PARTS = 4
"""Parts of the walk, so that several processes share it."""
MIN_FLIPS_PER_WRONG = 50
"""Of so many flipped bits one may change an answer, and one more in each part."""


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
def test_any_byte_of_any_derived_file_may_be_damaged(
    clone: Clone, capsys: pytest.CaptureFixture[str], part: int
) -> None:
    """Every file in every way, and bits of a header, of rows, and in between.

    No verb crashes. Nothing proves that an entry of an index of SQLite is not missing, so that a
    flipped bit in one may change answers (see `docs/limits.md`).
    """
    counts: dict[str, list[int]] = {}
    problems = []
    clone.mend()
    for path in [file for file in clone.files() if is_derived(clone, file)][part::PARTS]:
        size = path.stat().st_size
        is_rows = path.relative_to(clone.derived).parts[0] in DERIVED
        step = max(97, size // (16 if is_rows else 6))  # no row is shorter
        flips = [partial(flip, at=at) for at in range(0, size, step)]
        for damage in (*DAMAGES, *flips):
            clone.mend()
            damage(path)
            faults = clone.faults()
            kind = getattr(damage, "__name__", "flip")
            cases = counts.setdefault(kind, [0, 0])
            cases[0] += 1
            cases[1] += bool(faults)
            problems += [f"{damage} {path.name}: {fault}" for fault in faults]
    with capsys.disabled():
        for kind, (cases, wrong) in counts.items():
            print(f"\n{kind}: {cases} damages, {wrong} with another answer", end="")
    assert [
        problem for problem in problems if "Traceback" in problem or " time: 3" in problem
    ] == []
    flipped, wrong = counts.pop("flip", [0, 0])
    assert wrong <= 1 + flipped // MIN_FLIPS_PER_WRONG, "\n".join(problems)
    assert all(wrong == 0 for _cases, wrong in counts.values()), "\n".join(problems)
