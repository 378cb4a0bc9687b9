"""Which commits changed the files of a memory since it was checked, and which one broke it.

One `git log` for each file, for those alone that somebody looks at: no answer waits for it.
"""

from __future__ import annotations

from memtool.memory import drift as rules
from memtool.memory import timestamps
from memtool.memory.drift import BROKEN, Drift, DriftCommit, FileDrift
from memtool.store.commit_files import BlobTexts
from memtool.store.git import GitError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from memtool.store.git import RawChange
    from memtool.store.repository import Repository

SHOWN = 3
"""Commits of a file that are named, beside the one that broke it."""
MOST_COMMITS = 200
"""Commits of a file that are looked at."""
MOST_FILES = 20
"""Files of a memory whose commits are looked up, the worst first."""


def with_commits(
    repository: Repository,
    drift: Drift,
    head: str,
    clean: Callable[[str], str],
    *,
    only_broken: bool = False,
) -> Drift:
    """Return a drift with the last commits of each file since then, newest first.

    The one since which the memory is broken is among them, however old it is; `clean` masks what
    it says. Where git cannot say, as in a shallow clone, there are none.
    """
    if not drift.since:
        return drift
    files = list(drift.files)
    for number, one in enumerate(files[:MOST_FILES]):
        if one.level == BROKEN or not only_broken:
            try:
                found = _commits(repository, one, drift.since, head)
            except GitError:
                continue
            commits = tuple(each.replace(subject=clean(each.subject)) for each in found)
            files[number] = one.replace(commits=commits)
    return drift.replace(files=tuple(files))


def _commits(
    repository: Repository, one: FileDrift, since: str, head: str
) -> tuple[DriftCommit, ...]:
    paths = list(dict.fromkeys(path for path in (one.path, one.now) if path))
    rows = repository.git.log_raw(
        "log",
        "--topo-order",
        "--no-renames",
        "--format=%H %ct %s",
        f"--max-count={MOST_COMMITS}",
        "--end-of-options",
        f"{since}..{head}",
        "--",
        *paths,
    )
    changes: dict[str, list[RawChange]] = {}
    for title, row in rows:
        changes.setdefault(title, []).append(row)
    cause = _cause(repository, one, since, changes) if one.level == BROKEN else ""
    titles = list(changes)
    shown = [title for at, title in enumerate(titles) if at < SHOWN or title == cause]
    return tuple(_named(title, is_cause=title == cause) for title in shown)


def _named(title: str, *, is_cause: bool) -> DriftCommit:
    commit, second, subject = (*title.split(" ", 2), "")[:3]
    return DriftCommit(commit, timestamps.render(int(second)), subject, is_cause)


def _cause(
    repository: Repository, one: FileDrift, since: str, changes: dict[str, list[RawChange]]
) -> str:
    """Return the commit after which the file was never whole again; empty where none is found."""
    if one.why == "gone":
        return next(
            (title for title, rows in changes.items() if any(row.status == "D" for row in rows)), ""
        )
    versions = [
        (title, row.oid) for title, rows in changes.items() for row in rows if row.status != "D"
    ]
    found = ""
    for title, is_broken in zip(
        (title for title, _oid in versions),
        _broken(repository, one, since, [oid for _title, oid in versions]),
        strict=True,
    ):
        if not is_broken:
            break
        found = title
    return found


def _broken(repository: Repository, one: FileDrift, since: str, oids: Sequence[str]) -> list[bool]:
    """Tell for versions of a file whether the memory is broken in them."""
    (was,) = repository.git.infos([f"{since}:{one.path}"])
    texts = BlobTexts(repository)
    texts.load([*oids, *([was[0]] if was else [])])
    if one.why == "name":
        return [not rules.holds(texts.text(oid) or "", one.name) for oid in oids]
    if was is None or one.lines is None:
        return [False for _oid in oids]
    old = texts.rows(was[0])
    return [rules.place(old, texts.rows(oid), one.lines) is None for oid in oids]
