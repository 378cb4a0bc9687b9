"""Whether drift and sources survive how teams merge: merged pull requests, landed in other ways.

    python bench/landing.py [--count 40] [--seed 7] [--examples 0] [--json] REPOSITORY ...

Each REPOSITORY is a clone of a public history, bare or not; nothing is written into it. Of its
merge commits `--count` are drawn whose branch has 1 to 30 commits, without merges, and was merged
without conflicts. Every branch gets memories that name files, lines, names, a folder, a commit of
the branch, and a file at such a commit. Half are confirmed, half only written; half at the last
commit of the branch, half in its middle. Their records are made by memtool itself.

Then the history is written three times, with the later trees of the first parents on top: with each
branch merged as it was (`merge`), as one commit (`squash`), and replayed commit by commit with its
author dates (`rebase`). Each is cloned, so that the commits of the branches are in no clone but the
first, and HEAD is moved along. At the landing and 1, 10 and 100 commits later memtool says how far
the memories have drifted, and whether their sources resolve.

Printed is how often the level is the one after a merge (in brackets: `touched` is `same`), how
often a memory is wrongly not called broken (missed) or wrongly so (invented), and how often nobody
can tell; next to it what comparing with the landing commit alone gives. Then, what became of cited
commits: `right` are those for which the commit that stands in their place is named.
"""

from __future__ import annotations

import argparse
import dataclasses
import itertools
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from memtool.memory import document, timestamps
from memtool.memory import drift as rules
from memtool.memory.drift import BROKEN, SAME, TOUCHED, UNKNOWN, Drift
from memtool.memory.memory import Memory
from memtool.search.scope import build_drift_witness
from memtool.search.verification import verify
from memtool.store import sightings
from memtool.store.context import Context

MERGE, SQUASH, REBASE = "merge", "squash", "rebase"
FLOWS = (SQUASH, REBASE)
HEAD, MIDDLE = "head", "middle"
CONFIRMED, WRITTEN = "confirmed", "written"
FILES, LINES, NAMES, FOLDER, COMMIT, PINNED = "files", "lines", "names", "folder", "commit", "file@"
DRIFTING = (FILES, LINES, NAMES, FOLDER)
CITING = (COMMIT, PINNED)
LATER = (0, 1, 10, 100)
"""Commits after the landing at which is judged."""
MAX_COMMITS = 30
MAX_BYTES = 1 << 20
MIN_SHARE_OF_SERIES = 0.6
"""The share of branches with two commits or more; in life there are more single ones."""
FORMAT = "%x01%H%x00%T%x00%P%x00%an%x00%ae%x00%at%x00%ct%x00%B%x00"


class Git:
    """Git in one repository, without the user's settings."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.env = os.environ | {
            "GIT_CONFIG_GLOBAL": os.devnull,
            "MEMTOOL_GLOBAL": str(folder / "none"),
            "GIT_AUTHOR_NAME": "Ada",
            "GIT_AUTHOR_EMAIL": "ada@example.org",
            "GIT_COMMITTER_NAME": "Ada",
            "GIT_COMMITTER_EMAIL": "ada@example.org",
        }

    def output(self, *args: str, stdin: bytes = b"", codes: tuple[int, ...] = (0,)) -> bytes:
        """Return what a command prints. Raises CalledProcessError for another exit code."""
        command = ["git", "-C", str(self.folder), "-c", "core.quotePath=false", *args]
        done = subprocess.run(command, check=False, capture_output=True, input=stdin, env=self.env)
        if done.returncode not in codes:
            sys.stderr.buffer.write(done.stderr)
            raise subprocess.CalledProcessError(done.returncode, command)
        return done.stdout

    def text(self, *args: str, stdin: bytes = b"", codes: tuple[int, ...] = (0,)) -> str:
        """Return what a command prints as a text without the last line end."""
        return self.output(*args, stdin=stdin, codes=codes).decode(errors="replace").rstrip("\n")


@dataclass(frozen=True)
class FileChange:
    """A path that a commit changed, with its new mode and blob; both are zeros if it is gone."""

    mode: str
    blob: str
    path: bytes

    @property
    def is_text(self) -> bool:
        """Whether it is a regular file that a memory can name."""
        path = self.path.decode(errors="replace")
        return self.mode in ("100644", "100755") and not set(path) & set('*?"\n\ufffd')

    def line(self) -> bytes:
        """Return the command for git fast-import."""
        if not self.mode.strip("0"):
            return b"D %b\n" % self.path
        return b"M %b %b %b\n" % (self.mode.encode(), self.blob.encode(), self.path)


@dataclass(frozen=True)
class Commit:
    """A commit of the public history, with what it changed against its first parent."""

    oid: str
    tree: str
    parents: tuple[str, ...]
    author: str
    email: str
    authored: int
    committed: int
    message: str
    changes: tuple[FileChange, ...]

    @property
    def subject(self) -> str:
        """The first line of the message."""
        return self.message.split("\n", 1)[0]


@dataclass
class Case:
    """A memory, and what was judged of it by flow and commits since the landing.

    `kind` is what it names, `place` where in the branch it was written, `basis` whether it was
    confirmed there, and `cited` the number of the commit of the branch that it cites.
    """

    id: str
    kind: str
    place: str
    basis: str
    memory: Memory
    cited: int
    levels: dict[tuple[str, int], str] = field(default_factory=dict)
    simple: dict[tuple[str, int], str] = field(default_factory=dict)
    """The levels that the commit which brought the memory gives."""
    reasons: dict[tuple[str, int], str] = field(default_factory=dict)
    sources: dict[tuple[str, int], tuple[str, str, str]] = field(default_factory=dict)
    """The verdict, the status of the source, and the commit that is named."""

    @property
    def path(self) -> str:
        """Where the memory is stored."""
        return f".memory/semantic/{self.memory.text('timestamp')[:7]}/{self.id}.md"


@dataclass
class Branch:
    """A pull request: its merge, the position of that among the first parents, and its commits.

    `cases` are by the number of the commit in which the memories are committed, which is one more
    than that of the last commit for those that were confirmed at the end. `replayed` is what each
    commit of a rebase changes, empty if it has conflicts. `new` are the commits of the branch with
    the memories in them, `landed` by flow those that stand for them, the landing last.
    """

    number: int
    position: int
    merge: Commit
    commits: list[Commit]
    cases: dict[int, list[Case]] = field(default_factory=dict)
    replayed: list[tuple[FileChange, ...]] = field(default_factory=list)
    new: list[str] = field(default_factory=list)
    landed: dict[str, list[str]] = field(default_factory=dict)

    @property
    def base(self) -> str:
        """The commit on which the branch began."""
        return self.commits[0].parents[0]

    def number_of(self, place: str) -> int:
        """Return the number of the last commit or of the one in the middle, -1 for none."""
        end = len(self.commits) - 1
        return end if place == HEAD else (end - 1) // 2

    def commit_with_memories(self, number: int) -> Commit:
        """Return a commit of the branch, or the one after the last, which has memories alone."""
        if number < len(self.commits):
            return self.commits[number]
        last, later = self.commits[-1], self.commits[-1].authored + 60
        return dataclasses.replace(last, authored=later, message="Memories\n", changes=())

    def stands_for(self, flow: str, number: int) -> str:
        """Return the commit that replaces one of the branch after its landing."""
        if flow == MERGE:
            return self.new[number]
        return self.landed[flow][number if flow == REBASE else -1]

    @property
    def all_cases(self) -> list[Case]:
        """All memories of the branch."""
        return [case for cases in self.cases.values() for case in cases]


def read_changes(raw: Sequence[bytes]) -> tuple[FileChange, ...]:
    """Return the changes of `--raw -z` output, split at NUL."""
    changes = []
    for header, path in zip(raw[::2], raw[1::2], strict=False):
        _old, mode, _oid, blob, _status = header.lstrip(b"\n").decode().split(" ")
        changes.append(FileChange(mode, blob, path))
    return tuple(changes)


def read_commits(git: Git, *revisions: str) -> list[Commit]:
    """Return commits with their changes against the first parent, the oldest first."""
    options = ("--reverse", "-z", "--raw", "--no-renames", "--no-abbrev", "--topo-order")
    output = git.output(
        "log", *options, "--diff-merges=first-parent", f"--format={FORMAT}", *revisions
    )
    commits = []
    for part in output.split(b"\x01")[1:]:
        *fields, raw = part.split(b"\0", 8)
        oid, tree, parents, author, email, authored, committed, message = (
            field.decode(errors="replace") for field in fields
        )
        rows = [row for row in raw.split(b"\0") if row.strip(b"\n")]
        commits.append(
            Commit(
                oid,
                tree,
                tuple(parents.split()),
                re.sub(r"[<>\n]", "", author) or "nobody",
                re.sub(r"[<>\n ]", "", email),
                int(authored),
                int(committed),
                message,
                read_changes(rows),
            )
        )
    return commits


def draw_branches(
    git: Git, chain: Sequence[Commit], count: int, draw: random.Random
) -> list[Branch]:
    """Return the branches of some merge commits, in the order of their landing."""
    merges = [
        position
        for position, commit in enumerate(chain[: -max(LATER)])
        if position and len(commit.parents) == 2 and commit.parents[0] == chain[position - 1].oid
    ]
    draw.shuffle(merges)
    branches: list[Branch] = []
    singles = round(count * (1 - MIN_SHARE_OF_SERIES))
    for position in merges:
        if len(branches) == count:
            break
        branch = read_branch(git, chain[position], position)
        if branch is None or (len(branch.commits) == 1 and not singles):
            continue
        singles -= len(branch.commits) == 1
        branches.append(branch)
    return sorted(branches, key=lambda branch: branch.position)


def read_branch(git: Git, merge: Commit, position: int) -> Branch | None:
    """Return the branch of a merge commit, None if it cannot be landed in other ways."""
    ours, theirs = merge.parents
    listed = git.text("rev-list", "--parents", "--reverse", f"--max-count={MAX_COMMITS + 1}",
                      "--topo-order", f"{ours}..{theirs}").splitlines()  # fmt: skip
    rows = [line.split() for line in listed]
    is_series = all(len(row) == 2 for row in rows) and all(
        after[1] == before[0] for before, after in itertools.pairwise(rows)
    )
    if not 0 < len(rows) <= MAX_COMMITS or not is_series:
        return None
    merged = git.text("merge-tree", "--write-tree", ours, theirs, codes=(0, 1)).splitlines()
    if merged != [merge.tree]:  # conflicts, or something else was committed
        return None
    commits = read_commits(git, "--max-count=" + str(len(rows)), f"{ours}..{theirs}")
    if not any(change.is_text for change in merge.changes):
        return None
    named = re.search(r"#(\d+)", merge.subject)
    return Branch(int(named[1]) if named else position, position, merge, commits)


def replay(git: Git, branch: Branch) -> list[tuple[FileChange, ...]]:
    """Return the changes of each commit as a rebase makes it; nothing if there are conflicts."""
    onto = git.text("rev-parse", f"{branch.merge.parents[0]}^{{tree}}")
    replayed = []
    for commit in branch.commits:
        before = git.text("rev-parse", f"{commit.parents[0]}^{{tree}}")
        base = git.text("commit-tree", "-m", "base", before)
        ours = git.text("commit-tree", "-m", "ours", "-p", base, onto)
        theirs = git.text("commit-tree", "-m", "theirs", "-p", base, commit.tree)
        merged = git.text("merge-tree", "--write-tree", ours, theirs, codes=(0, 1)).splitlines()
        if len(merged) != 1:
            return []
        replayed.append(diff(git, onto, merged[0]))
        onto = merged[0]
    return replayed if onto == branch.merge.tree else []


def diff(git: Git, old: str, new: str) -> tuple[FileChange, ...]:
    """Return what differs between two trees."""
    output = git.output("diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-abbrev", old, new)
    return read_changes(output.split(b"\0")[:-1])


@dataclass(frozen=True)
class AddedLines:
    """Lines of a file that a branch has added, by their number, and how many lines the file has."""

    path: str
    lines: dict[int, str]
    count: int


def added_lines(git: Git, base: str, commit: Commit) -> list[AddedLines]:
    """Return for each text that a branch has changed up to a commit the lines that it added."""
    added = []
    for change in diff(git, base, commit.oid):
        if not change.is_text:
            continue
        path = change.path.decode()
        data = git.output("cat-file", "blob", change.blob)
        try:
            text = data.decode()
        except UnicodeDecodeError:
            continue
        if "\0" in text or not text.strip() or len(data) > MAX_BYTES:
            continue
        output = git.output("diff", "-U0", "--no-renames", "--no-color", "--no-ext-diff",
                           base, commit.oid, "--", f":(top,literal){path}")  # fmt: skip
        lines: dict[int, str] = {}
        at = 0
        for row in output.decode(errors="replace").split("\n"):
            hunk = re.match(r"@@ -\S+ \+(\d+)", row)
            if hunk:
                at = int(hunk[1])
            elif at and row.startswith("+"):
                lines[at] = row[1:]
                at += 1
        added.append(AddedLines(path, lines, len(text.split("\n")) - text.endswith("\n")))
    return added


def choose_subjects(
    changed: Sequence[AddedLines], draw: random.Random
) -> dict[str, tuple[list[str], list[str], str]]:
    """Return by kind the files, the file sources and the text of a memory about a branch."""
    subjects: dict[str, tuple[list[str], list[str], str]] = {}
    if not changed:
        return subjects
    some = draw.sample(changed, min(len(changed), draw.randint(1, 3)))
    subjects[FILES] = ([file.path for file in some], [], "")
    file = draw.choice(changed)
    filled = [number for number, text in file.lines.items() if text.strip()]
    if filled:
        first = draw.choice(filled)
        last = min(file.count, first + draw.randint(0, 7))
        subjects[LINES] = ([], [f"file:{file.path}#L{first}-L{last}"], "")
    for file in draw.sample(changed, len(changed)):
        path_words = set(re.findall(r"\w+", file.path))
        names = [
            name
            for name in rules.find_names("\n".join(file.lines.values()))
            if name not in path_words
        ]
        if names:
            some_names = draw.sample(names, min(len(names), draw.randint(1, 2)))
            subjects[NAMES] = ([file.path], [], f"It goes through {' and '.join(some_names)}.")
            break
    folders = sorted({file.path.rpartition("/")[0] for file in changed} - {""})
    if folders:
        subjects[FOLDER] = ([draw.choice(folders) + "/"], [], "")
    return subjects


def make_cases(
    git: Git, branch: Branch, place: str, ids: Iterator[int], draw: random.Random
) -> None:
    """Give a branch the memories of somebody who has its commits up to a place before them."""
    number = branch.number_of(place)
    if number < 0:
        return
    commit = branch.commits[number]
    changed = added_lines(git, branch.base, commit)
    subjects = choose_subjects(changed, draw)
    if changed:
        cited = f"file:{draw.choice(changed).path}"
        subjects |= {COMMIT: ([], ["commit:"], ""), PINNED: ([], [cited], "")}
    for basis in (CONFIRMED, WRITTEN):
        for kind, (files, sources, text) in subjects.items():
            id_ = f"sem-{next(ids):06}"
            memory = Memory(
                fields={
                    "id": id_,
                    "timestamp": timestamps.render(commit.authored),
                    "type": "semantic",
                    "title": f"What pull request {branch.number} is about",
                    "status": "confirmed",
                    "confidence": "medium",
                    "source": tuple(sources or ["human:Ada"]),
                },
                body=f"{text or 'It is as it is for a reason.'}\n",
            )
            memory = memory.with_fields(files=tuple(files)) if files else memory
            cited_number = draw.randint(0, number) if kind == COMMIT else number
            case = Case(id_, kind, place, basis, memory, cited_number)
            # A memory that names no commit of the branch is committed together with its code.
            is_together = basis == WRITTEN and kind not in CITING
            branch.cases.setdefault(number if is_together else number + 1, []).append(case)


def record(context: Context, rows: Sequence[tuple[Branch, Case]]) -> None:
    """Put into memories the commits that they name, and what memtool records of the code."""
    wanted = []
    for branch, case in rows:
        number = branch.number_of(case.place)
        memory = case.memory
        if case.kind == COMMIT:
            memory = memory.with_fields(source=(f"commit:{branch.new[case.cited]}",))
        elif case.kind == PINNED:
            source = f"{memory.items('source')[0]}@{branch.new[case.cited][:10]}"
            memory = memory.with_fields(source=(source,))
        wanted.append((branch.commits[number].oid, memory))
    # Branch by branch: the history below a later branch holds the public commits of an earlier one,
    # authored in the same seconds as its own.
    by_branch = itertools.groupby(zip(rows, wanted, strict=True), lambda pair: pair[0][0].position)
    lines = [
        line
        for _position, pairs in by_branch
        for line in sightings.render_commit_sightings(
            context.repository, [each for _row, each in pairs]
        )
    ]
    for (branch, case), (_commit, memory), line in zip(rows, wanted, lines, strict=True):
        checked = {"saw": line} if line else {}
        if case.basis == CONFIRMED:
            number = branch.number_of(case.place)
            at = timestamps.render(branch.commits[number].authored + 60)
            checked |= {"at": at, "by": "Ada", "commit": branch.new[number]}
        case.memory = memory.with_fields(checked=checked) if checked else memory


class History:
    """Commits for git fast-import; what `add` returns stands for one until they are written."""

    def __init__(self, git: Git) -> None:
        self._git = git
        self._parts: list[bytes] = []
        self._count = 0

    def add(
        self,
        ref: str,
        parents: Sequence[str],
        author: Commit,
        message: str,
        changes: Iterable[FileChange],
        cases: Iterable[Case],
        committed: int,
    ) -> str:
        """Add a commit on top of its first parent, and return a placeholder for it."""
        self._count += 1
        by = f"author {author.author} <{author.email}> {author.authored} +0000"
        data = message.encode()
        head = f"commit {ref}\nmark :{self._count}\n{by}\n"
        head += f"committer Ada <ada@example.org> {committed} +0000\ndata {len(data)}\n"
        links = [f"{'merge' if n else 'from'} {parent}\n" for n, parent in enumerate(parents)]
        self._parts += [head.encode(), data, b"\n", "".join(links).encode()]
        # What is removed goes first: a folder may take the place of a file.
        self._parts += sorted((change.line() for change in changes), key=lambda row: row[:1])
        for case in cases:
            text = document.write(case.memory)
            head = f"M 100644 inline {case.path}\ndata {len(text)}\n"
            self._parts += [head.encode(), text, b"\n"]
        self._parts.append(b"\n")
        return f":{self._count}"

    def write(self) -> dict[str, str]:
        """Write the commits, and return their ids."""
        marks = self._git.folder / "marks"
        options = ("--quiet", "--force", f"--export-marks={marks}")
        self._git.output("fast-import", *options, stdin=b"".join(self._parts))
        rows = (line.split() for line in marks.read_text().splitlines())
        return {row[0]: row[1] for row in rows}


def write_branches(git: Git, context: Context, branches: Sequence[Branch]) -> None:
    """Write the commits of the branches with their memories, up to the next that need ids."""
    rows = [(branch, case) for branch in branches for case in branch.all_cases]
    is_first = [case.basis == WRITTEN and case.kind not in CITING for _branch, case in rows]
    record(context, [row for row, first in zip(rows, is_first, strict=True) if first])
    later = [row for row, first in zip(rows, is_first, strict=True) if not first]
    for place in (MIDDLE, HEAD, ""):
        history = History(git)
        for branch in branches:
            end = branch.number_of(place) + 1 if place else len(branch.commits) + 1
            for number in range(len(branch.new), end):
                commit = branch.commit_with_memories(number)
                tip = branch.new[-1] if branch.new else branch.base
                branch.new.append(
                    history.add(
                        f"refs/branches/{branch.position}",
                        [tip],
                        commit,
                        commit.message,
                        commit.changes,
                        branch.cases.get(number, ()),
                        commit.committed,
                    )
                )
        ids = history.write()
        for branch in branches:
            branch.new = [ids.get(commit, commit) for commit in branch.new]
        record(context, [row for row in later if row[1].place == place])


def write_flow(
    git: Git, flow: str, chain: Sequence[Commit], branches: Sequence[Branch]
) -> dict[int, str]:
    """Write the history of a flow, and return its commit for each position of the chain."""
    first = branches[0].position
    last = branches[-1].position + max(LATER)
    by_position = {branch.position: branch for branch in branches}
    history = History(git)
    ref = f"refs/heads/{flow}"
    tip = chain[first - 1].oid
    tips: dict[int, str] = {}
    for position in range(first, last + 1):
        branch = by_position.get(position)
        commit = chain[position]
        if branch is None:
            tip = history.add(
                ref, [tip], commit, commit.message, commit.changes, (), commit.committed
            )
        else:
            branch.landed[flow] = land(history, ref, flow, tip, branch)
            tip = branch.landed[flow][-1]
        tips[position] = tip
    ids = history.write()
    for branch in branches:
        branch.landed[flow] = [ids[commit] for commit in branch.landed[flow]]
    return {position: ids[commit] for position, commit in tips.items()}


def land(history: History, ref: str, flow: str, tip: str, branch: Branch) -> list[str]:
    """Land a branch on top of a commit, and return the commits that replace its own."""
    merge = branch.merge
    if flow == REBASE and branch.replayed:
        landed = []
        for number, changes in enumerate([*branch.replayed, ()]):
            commit = branch.commit_with_memories(number)
            cases = branch.cases.get(number, ())
            tip = history.add(ref, [tip], commit, commit.message, changes, cases, merge.committed)
            landed.append(tip)
        return landed
    if flow == MERGE:
        parents, message = [tip, branch.new[-1]], merge.message
    else:
        parents = [tip]
        title = branch.commits[-1].subject
        bullets = "\n\n".join(f"* {commit.message.strip()}" for commit in branch.commits)
        message = f"{title} (#{branch.number})\n\n{bullets}\n"
    return [
        history.add(ref, parents, merge, message, merge.changes, branch.all_cases, merge.committed)
    ]


def clone(git: Git, flow: str, folder: Path) -> Git:
    """Return a fresh clone of the history of a flow, without anything else."""
    git.text("clone", "-q", "--bare", "--no-local", "--single-branch", "--branch", flow,
             f"file://{git.folder}", str(folder))  # fmt: skip
    fresh = Git(folder)
    fresh.text("symbolic-ref", "HEAD", "refs/heads/main")
    return fresh


def refuse_originals(git: Git, branches: Sequence[Branch]) -> None:
    """Raise SystemExit if a clone holds a commit of a branch, so that it would prove nothing."""
    commits = "\n".join(commit for branch in branches for commit in branch.new)
    lines = git.text("cat-file", "--batch-check", stdin=commits.encode()).splitlines()
    if not all(line.endswith(" missing") for line in lines):
        raise SystemExit(f"{git.folder} holds commits of the branches that were landed")


def judge(git: Git, flow: str, branches: Sequence[Branch], tips: dict[int, str]) -> None:
    """Let memtool judge the memories of all branches, at each distance from their landing."""
    points = [
        (branch.position + later, later, branch)
        for branch in branches
        for later in LATER
        if flow != REBASE or branch.replayed
    ]
    for position, later, branch in sorted(points, key=lambda point: point[:2]):
        git.text("update-ref", "refs/heads/main", tips[position])
        judge_branch(Context.at(str(git.folder), git.env), flow, later, branch)


def judge_branch(context: Context, flow: str, later: int, branch: Branch) -> None:
    """Let memtool judge the memories of one branch as of HEAD."""
    key = flow, later
    tree = context.tree("HEAD")
    cases = {case.id: case for case in branch.all_cases}
    rows = [(cases[record.id], record) for record in tree.records if record.id in cases]
    wanted = [record for case, record in rows if case.kind in DRIFTING]
    drifts = build_drift_witness(tree, lambda: context.provenance_reader(tree)).find(wanted)
    simple: dict[str, Drift] = {}
    for number, own in branch.cases.items():
        paths = {case.path for case in own}
        brought = [record for record in wanted if record.path in paths]
        landing = branch.stands_for(flow, number)
        simple |= build_drift_witness(tree, lambda: context.provenance_reader(tree), landing).find(
            brought
        )
    for case, record in rows:
        if record.path in drifts:
            case.levels[key] = drifts[record.path].level
            case.reasons[key] = rules.summarize(drifts[record.path])
            case.simple[key] = simple[record.path].level
    citing = [(case, record) for case, record in rows if case.kind in CITING]
    records = [record for _case, record in citing]
    now, categories = context.clock.now, context.settings.categories
    verdicts = verify(tree, context.provenance_reader(tree), records, {}, {}, now, categories)
    for (case, _record), verdict in zip(citing, verdicts, strict=True):
        (source,) = verdict.sources
        case.sources[key] = verdict.verdict, source.status, source.commit
        case.reasons[key] = source.detail


@dataclass
class DriftRow:
    """How the levels of some cases compare with those after a merge."""

    name: str
    cases: int = 0
    equal: int = 0
    close: int = 0
    missed: int = 0
    invented: int = 0
    unknown: int = 0
    simple: int = 0
    simple_close: int = 0

    def count(self, merged: str, level: str, simple: str) -> None:
        """Count one case by its levels after a merge, otherwise, and by the landing commit."""
        self.cases += 1
        self.equal += merged == level
        self.close += is_close(merged, level)
        self.missed += merged == BROKEN != level
        self.invented += level == BROKEN != merged
        self.unknown += level == UNKNOWN != merged
        self.simple += merged == simple
        self.simple_close += is_close(merged, simple)


@dataclass
class SourceRow:
    """The verdicts on the sources of some cases."""

    name: str
    cases: int = 0
    equal: int = 0
    resolved: int = 0
    right: int = 0
    broken: int = 0
    unknown: int = 0

    def count(self, merged: str, verdict: str, *, is_right: bool) -> None:
        """Count one case by its verdict after a merge and otherwise."""
        self.cases += 1
        self.equal += merged == verdict
        self.resolved += verdict not in (BROKEN, UNKNOWN)
        self.right += is_right
        self.broken += verdict == BROKEN
        self.unknown += verdict == UNKNOWN


def is_close(merged: str, level: str) -> bool:
    """Tell whether two levels are alike for whoever does not care what was only touched."""
    return merged == level or {merged, level} == {SAME, TOUCHED}


def drift_rows(branches: Sequence[Branch]) -> list[DriftRow]:
    """Return the rows of the first table."""
    rows: dict[str, DriftRow] = {}
    for flow in FLOWS:
        for place in (HEAD, MIDDLE):
            names = [f"{flow}, {place}: {kind}" for kind in DRIFTING]
            names.append(f"{flow}, {place}, all without folders")
            rows |= {name: DriftRow(name) for name in names}
        for what in (CONFIRMED, WRITTEN, "all"):
            name = f"{flow}, {what} without folders"
            rows[name] = DriftRow(name)
    for branch in branches:
        for case in branch.all_cases:
            for (flow, later), level in case.levels.items():
                if flow == MERGE:
                    continue
                names = [f"{flow}, {case.place}: {case.kind}"]
                if case.kind != FOLDER:
                    names += [
                        f"{flow}, {case.place}, all without folders",
                        f"{flow}, {case.basis} without folders",
                        f"{flow}, all without folders",
                    ]
                for name in names:
                    simple = case.simple[flow, later]
                    rows[name].count(case.levels[MERGE, later], level, simple)
    return list(rows.values())


def source_rows(branches: Sequence[Branch]) -> list[SourceRow]:
    """Return the rows of the table of cited commits."""
    rows = {}
    for flow in (MERGE, *FLOWS):
        for kind in CITING:
            name = f"{flow}: {kind}"
            rows[name] = SourceRow(name)
    for branch in branches:
        for case in branch.all_cases:
            for (flow, later), (verdict, _status, commit) in case.sources.items():
                is_right = bool(commit) and commit == branch.stands_for(flow, case.cited)
                merged = case.sources[MERGE, later][0]
                rows[f"{flow}: {case.kind}"].count(merged, verdict, is_right=is_right)
    return list(rows.values())


def differences(branches: Sequence[Branch]) -> list[dict[str, Any]]:
    """Return the cases that have another level or verdict than after a merge."""
    rows = []
    for branch in branches:
        for case in branch.all_cases:
            judged = case.levels | {key: row[0] for key, row in case.sources.items()}
            for (flow, later), level in judged.items():
                if level != judged[MERGE, later]:
                    rows.append(
                        {
                            "merge": branch.merge.oid,
                            "memory": case.id,
                            "flow": flow,
                            "kind": case.kind,
                            "place": case.place,
                            "basis": case.basis,
                            "later": later,
                            "merged": judged[MERGE, later],
                            "level": level,
                            "simple": case.simple.get((flow, later), ""),
                            "why merged": case.reasons[MERGE, later],
                            "why": case.reasons[flow, later],
                            "text": document.write(case.memory).decode(),
                        }
                    )
    return rows


def share(part: int, whole: int) -> str:
    """Return a share in percent."""
    return f"{100 * part / whole:.4g}" if whole else "-"


def print_tables(drifts: Sequence[DriftRow], sources: Sequence[SourceRow]) -> None:
    """Print both tables, in percent but for the counts."""
    form = "{:38}{:>7}{:>16}{:>8}{:>9}{:>9}{:>18}"
    print(form.format("", "cases", "equal", "missed", "invented", "unknown", "landing alone"))
    for row in drifts:
        equal = f"{share(row.equal, row.cases)} ({share(row.close, row.cases)})"
        simple = f"{share(row.simple, row.cases)} ({share(row.simple_close, row.cases)})"
        print(
            form.format(row.name, row.cases, equal, row.missed, row.invented, row.unknown, simple)
        )
    form = "{:38}{:>7}{:>16}{:>10}{:>8}{:>8}{:>9}"
    print("\n" + form.format("", "cases", "as merged", "resolved", "right", "broken", "unknown"))
    for cited in sources:
        counts = (cited.equal, cited.resolved, cited.right, cited.broken, cited.unknown)
        print(form.format(cited.name, cited.cases, *(share(n, cited.cases) for n in counts)))


def play(source: Path, count: int, draw: random.Random, ids: Iterator[int]) -> list[Branch]:
    """Return branches of a public history with what memtool said of their memories."""
    began = time.perf_counter()
    public = Git(source)
    with tempfile.TemporaryDirectory(prefix="memtool-landing-") as name:
        forge = Git(Path(name) / "forge")
        forge.folder.mkdir()
        forge.text("init", "-q", "--bare", "-b", "main")
        forge.text("config", "pack.window", "0")  # a clone is thrown away
        objects = public.text("rev-parse", "--path-format=absolute", "--git-path", "objects")
        (forge.folder / "objects" / "info" / "alternates").write_text(f"{objects}\n")
        chain = read_commits(public, "--first-parent", "HEAD")
        branches = draw_branches(forge, chain, count, draw)
        if not branches:
            raise SystemExit(f"no branch of {source} can be landed in other ways")
        for branch in branches:
            branch.replayed = replay(forge, branch)
            for place in (HEAD, MIDDLE):
                make_cases(forge, branch, place, ids, draw)
        write_branches(forge, Context.at(str(forge.folder), forge.env), branches)
        for flow in (MERGE, *FLOWS):
            tips = write_flow(forge, flow, chain, branches)
            fresh = clone(forge, flow, Path(name) / flow)
            if flow != MERGE:
                refuse_originals(fresh, branches)
            judge(fresh, flow, branches, tips)
    replayed = sum(bool(branch.replayed) for branch in branches)
    print(
        f"{source}: {len(branches)} branches, {replayed} of them rebased without conflicts, "
        f"{sum(len(branch.all_cases) for branch in branches)} memories, "
        f"{time.perf_counter() - began:.0f} s",
        file=sys.stderr,
    )
    return branches


def main() -> None:
    """Play all histories and print what became of the memories."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("repositories", nargs="+", type=Path, metavar="REPOSITORY")
    parser.add_argument("--count", type=int, default=40, help="branches of each history")
    parser.add_argument("--seed", type=int, default=7, help="of the draw")
    parser.add_argument("--examples", type=int, default=0, help="differences to print")
    parser.add_argument("--json", action="store_true", help="counts and all differences as JSON")
    options = parser.parse_args()
    ids = itertools.count(1)
    branches: list[Branch] = []
    for source in options.repositories:  # each by itself, so that their order does not count
        branches += play(source, options.count, random.Random(options.seed), ids)
    drifts, sources = drift_rows(branches), source_rows(branches)
    different = differences(branches)
    if options.json:
        counted = {
            "drift": [dataclasses.asdict(row) for row in drifts],
            "sources": [dataclasses.asdict(row) for row in sources],
        }
        print(json.dumps(counted | {"differences": different}, indent=1))
        return
    print_tables(drifts, sources)
    for row in different[: options.examples]:
        print("\n" + "\n".join(f"{key}: {value}" for key, value in row.items()))


if __name__ == "__main__":
    main()
