"""A range of commits as content: every blob that they brought, and the tree at its end.

Hooks can be bypassed, so this is what CI asks. What was put into one commit and taken out in the
next is still in history: secrets are looked for in every blob. All else is judged at the end of the
range, where a later commit may have mended it. A claim counts as changed when it is, at the end,
not what it was when it was first confirmed; edits that a merge alone made are found like this too.
"""

from __future__ import annotations

import os

from memtool.gate import knowledge, taking
from memtool.gate.content import Content, Step, Text, version_of
from memtool.gate.kin import Kin
from memtool.gate.lineage import PURGES, purged_by
from memtool.memory.changes import changed_keys, is_claim, stem
from memtool.store import snapshot, versions
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from memtool.memory.changes import Version
    from memtool.store.config import Config
    from memtool.store.git import Git
    from memtool.store.repository import Repository
    from memtool.store.versions import Stamp

SHORT = 10
MOST_BYTES = 1 << 20
BATCH = 500
"""Blobs that are in memory at once."""
_REGULAR = ("100644", "100755")


class Touched(Value):
    """One file that a commit changed: its blobs in the parents that have it, and its new one."""

    commit: str
    path: str
    olds: tuple[str, ...]
    oid: str


def take(
    repository: Repository, directory: str, settings: Config, now: int, start: str, end: str
) -> Content | None:
    """Take the commits that lead to `end` and not to `start`; with no start, all that lead there.

    Both are full ids. None where no commit touches the memory directory.
    """
    git = repository.git
    categories = settings.categories
    commits = git.line(
        "rev-list", "--topo-order", "--reverse", end, *([f"^{start}"] if start else [])
    ).split()
    touched = touches(git, commits, directory)
    if not touched:
        return None
    known = knowledge.load(repository, settings)
    whole = taking.read_whole(snapshot.of_commit(repository, directory, end), categories, known)
    return Content(
        repository=repository,
        directory=directory,
        settings=settings,
        now=now,
        files=whole.files,
        texts=_texts(repository, touched),
        steps=[_step(repository, directory, touched, whole, categories)],
        kin=Kin(whole.rows()),
        head=end,
        kind="commit",
        is_whole=True,
        problems=whole.problems,
        records=whole.records,
        earlier=lambda _id: (),
        warned=frozenset(row.path for row in touched),
        added=frozenset(row.path for row in touched if not row.olds),
        known=known,
    )


def touches(git: Git, commits: Sequence[str], directory: str) -> list[Touched]:
    """Return what each commit changed below a directory, in the order of the commits.

    Of a merge only files count that differ from all its parents.
    """
    if not commits:
        return []
    answer = git.run(
        "diff-tree", "--stdin", "-r", "-c", "--root", "--raw", "-z", "--no-abbrev",
        "--no-renames", "--", directory, stdin="\n".join(commits).encode() + b"\n",
    )  # fmt: skip
    found = []
    commit = ""
    tokens = iter(answer.split(b"\0"))
    for token in tokens:
        if not token.startswith(b":"):
            commit = token.decode() or commit
            continue
        parents = len(token) - len(token.lstrip(b":"))
        parts = token[parents:].decode().split()
        modes, oids = parts[: parents + 1], parts[parents + 1 : 2 * parents + 2]
        path = os.fsdecode(next(tokens))
        olds = [oid for mode, oid in zip(modes[:-1], oids[:-1], strict=True) if mode in _REGULAR]
        oid = oids[-1] if modes[-1] in _REGULAR else ""
        found.append(Touched(commit, path, tuple(sorted(set(olds))), oid))
    return found


def _texts(repository: Repository, touched: Sequence[Touched]) -> Iterator[Text]:
    """Yield every blob that the commits brought, with the first commit that has it."""
    first: dict[str, Touched] = {}
    for row in touched:
        if row.oid:
            first.setdefault(row.oid, row)
    oids = list(first)
    for at in range(0, len(oids), BATCH):
        some = oids[at : at + BATCH]
        for oid, data in zip(some, repository.git.blobs(some, MOST_BYTES), strict=True):
            row = first[oid]
            where = f"in commit {row.commit[:SHORT]}"
            yield Text(row.path, oid, data.decode(errors="replace"), where)


def _step(
    repository: Repository,
    directory: str,
    touched: Sequence[Touched],
    whole: taking.Whole,
    categories: Collection[str],
) -> Step:
    """Compare each memory as it was first confirmed with what it is at the end of the range."""
    mine = [row for row in touched if snapshot.is_memory_path(row.path, directory)]
    stamps = {(row.path, oid) for row in mine for oid in (*row.olds, row.oid) if oid}
    read = versions.of_blobs(repository, stamps, categories) if stamps else {}
    first: dict[str, Version] = {}
    where: dict[str, str] = {}
    for row in mine:
        id_ = stem(row.path)
        for oid in (*row.olds, row.oid):
            version = read.get((row.path, oid))
            if version is not None and version.memory is not None:
                known = first.get(id_)
                if known is None or known.memory is None or known.memory.status == "candidate":
                    first[id_] = version
        if _is_claimed(row, read):
            where[id_] = f"in commit {row.commit[:SHORT]}"
    touched_ids = {stem(row.path) for row in mine}
    ends = {
        stem(file.path): version_of(file) for file in whole.files if stem(file.path) in touched_ids
    }
    for id_ in _purged(repository.git, mine, ends):
        first.pop(id_, None)
    return Step(
        before=tuple(first[id_] for id_ in sorted(first)),
        after=tuple(ends[id_] for id_ in sorted(ends)),
        where=where,
    )


def _is_claimed(row: Touched, read: Mapping[Stamp, Version]) -> bool:
    """Tell whether a commit removed a memory, or changed its claim."""
    new = read.get((row.path, row.oid))
    if new is None or new.memory is None:
        return True
    olds = [read[row.path, oid].memory for oid in row.olds]
    return any(
        old is not None and any(map(is_claim, changed_keys(old, new.memory))) for old in olds
    )


def _purged(git: Git, touched: Sequence[Touched], ends: dict[str, Version]) -> Iterator[str]:
    """Yield the ids that commits removed and name in their trailer."""
    removed: dict[str, set[str]] = {}
    for row in touched:
        if not row.oid and stem(row.path) not in ends:
            removed.setdefault(row.commit, set()).add(stem(row.path))
    for commit, ids in removed.items():
        said = git.line(
            "log", "-1", f"--format=%(trailers:key={PURGES},valueonly,separator=%x20)", commit
        )
        yield from ids & purged_by(said)
