"""Drift history: the commits that changed a memory's files, and the one that broke it.

It runs one `git log` per file, only for memories that a user looks at: no answer waits for it.
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

MAX_SHOWN_COMMITS = 3
"""Commits of a file that are listed, in addition to the one that broke it."""
MAX_COMMITS = 200
"""Commits of a file that are examined."""
MAX_FILES = 20
"""Files of a memory whose commits are looked up, worst first."""


def with_commits(
    repository: Repository,
    drift: Drift,
    head: str,
    clean: Callable[[str], str],
    *,
    only_broken: bool = False,
) -> Drift:
    """Add to a drift the last commits of each file since then, newest first.

    They include the commit that broke the memory, however old, and the one in which the examined
    code landed. `clean` masks commit subjects. There are none if git cannot tell, as in a shallow
    clone.
    """
    if not drift.since:
        return drift
    files = list(drift.files)
    for number, file in enumerate(files[:MAX_FILES]):
        if file.level == BROKEN or not only_broken:
            try:
                since = f"{drift.since}^" if drift.has_landed else drift.since
                commit_rows = _find_commits(repository, file, since, head)
            except GitError:
                continue
            commits = tuple(each.replace(subject=clean(each.subject)) for each in commit_rows)
            files[number] = file.replace(commits=commits)
    return drift.replace(files=tuple(files))


def _find_commits(
    repository: Repository, file: FileDrift, since: str, head: str
) -> tuple[DriftCommit, ...]:
    paths = list(dict.fromkeys(path for path in (file.path, file.now) if path))
    rows = repository.git.log_raw(
        "log",
        "--topo-order",
        "--no-renames",
        "--format=%H %ct %s",
        f"--max-count={MAX_COMMITS}",
        "--end-of-options",
        f"{since}..{head}",
        "--",
        *paths,
    )
    changes: dict[str, list[RawChange]] = {}
    for title, row in rows:
        changes.setdefault(title, []).append(row)
    cause = _find_cause(repository, file, since, changes) if file.level == BROKEN else ""
    titles = list(changes)
    shown = [title for at, title in enumerate(titles) if at < MAX_SHOWN_COMMITS or title == cause]
    return tuple(_untitled_commit(title, is_cause=title == cause) for title in shown)


def _untitled_commit(title: str, *, is_cause: bool) -> DriftCommit:
    commit, second, subject = (*title.split(" ", 2), "")[:3]
    return DriftCommit(commit, timestamps.render(int(second)), subject, is_cause)


def _find_cause(
    repository: Repository, file: FileDrift, since: str, changes: dict[str, list[RawChange]]
) -> str:
    """Return the commit since which the file has been broken; empty if none is found."""
    if file.why == "gone":
        return next(
            (title for title, rows in changes.items() if any(row.status == "D" for row in rows)), ""
        )
    versions = [
        (title, row.oid) for title, rows in changes.items() for row in rows if row.status != "D"
    ]
    cause = ""
    for title, is_broken in zip(
        (title for title, _oid in versions),
        _find_broken(repository, file, since, [oid for _title, oid in versions]),
        strict=True,
    ):
        if not is_broken:
            break
        cause = title
    return cause


def _find_broken(
    repository: Repository, file: FileDrift, since: str, oids: Sequence[str]
) -> list[bool]:
    """Tell for each version of a file whether it breaks the memory."""
    (was,) = repository.git.infos([f"{since}:{file.path}"])
    texts = BlobTexts(repository)
    texts.load([*oids, *([was[0]] if was else [])])
    if file.why == "name":
        return [not rules.holds(texts.text(oid) or "", file.name) for oid in oids]
    if was is None or file.lines is None or file.since_landing:  # what was cited is not here
        return [False for _oid in oids]
    old = texts.rows(was[0])
    return [rules.find_lines(old, texts.rows(oid), file.lines) is None for oid in oids]
