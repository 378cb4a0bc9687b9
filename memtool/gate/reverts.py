"""Reverts: changes that the gate would refuse, except that they revert a whole earlier commit.

Messages do not reliably name the reverted commit: many name none, and a squash drops them. So
content is compared. A commit is reverted if every memory that it touched is as it was before it;
for a merge these are its changes to its first parent. Git is only queried for paths of problems.
"""

from __future__ import annotations

import shlex

from memtool.gate.content import Content
from memtool.memory.changes import BODY, Version, find_changed_keys, id_from_path, is_claim
from memtool.memory.schema import Problem
from memtool.memory.trust import CITED_DIGITS, SHORT_ID_DIGITS
from memtool.store import snapshot, versions
from memtool.store.git import REGULAR_MODES, GitError
from memtool.value import Value, first_few

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from memtool.gate.content import ParentStep
    from memtool.memory.memory import Memory

CODES = frozenset({"removed", "silent-edit", "backdated", "unconfirmed"})
"""The problems that a revert may explain."""
MAX_PATHS = 200
"""Paths that git is queried for by name; for more, all commits that touched memories."""
MAX_REVERTS = 20
"""Commits reverted at once; removing a whole folder looks like reverting hundreds."""
MAX_SUBJECT_CHARS = 72
MAX_TITLE_CHARS = 200
MAX_NAMED = 3
"""Memories of each kind that a message names."""


class EarlierCommit(Value):
    """A commit, with the blob ids before and after of each memory file that it touched.

    A blob id is empty if there was or is no file.
    """

    id: str
    subject: str
    is_merge: bool
    blobs: dict[str, tuple[str, str]]


class Revert(Value):
    """A reverted commit, with the versions of each of its files before and after it."""

    commit: EarlierCommit
    files: dict[str, tuple[Version | None, Version | None]]


def explain_reverts(content: Content, problems: Sequence[Problem]) -> list[Problem]:
    """Replace the problems that a revert explains by one warning for each revert.

    `problems` are those of `content.steps`, which must be a single step.
    """
    (step,) = content.steps
    by_path: dict[str, list[Problem]] = {}
    for problem in problems:
        if problem.code in CODES:
            by_path.setdefault(problem.path, []).append(problem)
    if not by_path or not content.head:
        return list(problems)
    olds = {version.id: version for version in step.before}
    news = {version.id: version for version in step.after}
    explained = [
        (
            revert,
            [
                problem
                for path in revert.files
                for problem in by_path.get(path, ())
                if _explains(revert, problem, olds, news)
            ],
        )
        for revert in _find_reverts(content, step, by_path)
    ]
    # The commit that explains most, then the one that made the change before a merge of it.
    explained.sort(key=lambda pair: (-len(pair[1]), pair[0].commit.is_merge))
    reasons: dict[Problem, Revert] = {}
    for revert, revert_problems in explained:
        for problem in revert_problems:
            reasons.setdefault(problem, revert)
    if len({revert.commit.id for revert in reasons.values()}) > MAX_REVERTS:
        return list(problems)
    result = []
    reported: set[str] = set()
    for problem in problems:
        reason = reasons.get(problem)
        if reason is None:
            result.append(problem)
        elif reason.commit.id not in reported:
            reported.add(reason.commit.id)
            result.append(_make_warning(content, reason, problem))
    return result


def _find_reverts(content: Content, step: ParentStep, paths: Collection[str]) -> list[Revert]:
    """Return the reverted commits that touched any of these paths, newest first."""
    repository = content.repository
    commits = _find_earlier_commits(content, paths)
    if not commits:
        return []
    changed = {version.path: version for version in step.after}
    gone = {version.path for version in step.before} - changed.keys()
    entries = snapshot.snapshot_commit(repository, content.directory, content.head).entries
    unchanged_oids = {
        entry.path: entry.oid for entry in entries if entry.path not in gone | changed.keys()
    }
    present = unchanged_oids.keys() | changed.keys()
    ids = set(map(id_from_path, present))
    commits = [
        commit
        for commit in commits
        if all(
            path in present if before else id_from_path(path) not in ids
            for path, (before, _after) in commit.blobs.items()
        )
    ]
    stamps = {
        (path, oid)
        for commit in commits
        for path, blobs in commit.blobs.items()
        for oid in (*blobs, unchanged_oids.get(path, ""))
        if oid
    }
    old_versions = versions.read_blobs(repository, stamps, content.settings.categories)
    now = changed | {
        path: old_versions[path, oid]
        for path, oid in unchanged_oids.items()
        if (path, oid) in old_versions
    }
    reverts = [
        Revert(
            commit,
            {
                path: (old_versions.get((path, before)), old_versions.get((path, after)))
                for path, (before, after) in commit.blobs.items()
            },
        )
        for commit in commits
    ]
    return [
        revert
        for revert in reverts
        if all(_is_as_before(*pair, now.get(path)) for path, pair in revert.files.items())
    ]


def _find_earlier_commits(content: Content, paths: Collection[str]) -> list[EarlierCommit]:
    """Return the earlier commits that touched any of these paths, newest first."""
    repository, directory = content.repository, content.directory
    wanted = sorted(paths) if len(paths) <= MAX_PATHS else [directory]
    try:
        commits = repository.git.line(
            "rev-list", "--full-history", content.head, "--", *wanted
        ).split()
    except GitError:
        if not repository.is_partial:
            raise
        return []  # the clone does not have the trees of history
    cut_off = repository.shallow_commits()  # these seem to add all of their files
    stdin = "".join(f"{commit}\n" for commit in commits if commit not in cut_off).encode()
    if not stdin:
        return []
    rows = repository.git.log_raw(
        "log",
        "--no-walk=unsorted",
        "--stdin",
        "--format=%H%x09%P%x09%s",
        "--no-show-signature",
        "--diff-merges=first-parent",
        "--no-renames",
        "--root",
        "--",
        directory,
        stdin=stdin,
    )
    touched: dict[str, dict[str, tuple[str, str]]] = {}
    for title, row in rows:
        if snapshot.is_memory_path(row.path, directory):
            before = row.old_oid if row.old_mode in REGULAR_MODES else ""
            after = row.oid if row.mode in REGULAR_MODES else ""
            touched.setdefault(title, {})[row.path] = (before, after)
    earlier = []
    for title, blobs in touched.items():
        id_, parents, subject = title.split("\t", 2)
        earlier.append(EarlierCommit(id_, subject, " " in parents, blobs))
    return earlier


def _is_as_before(before: Version | None, after: Version | None, now: Version | None) -> bool:
    """Return whether all changes of a commit to a memory are gone.

    Changes by later commits do not count: git merges them into a revert.
    """
    if before is None or now is None:
        return before is now
    if before.memory is None or now.memory is None:
        return False
    differing = _differing_keys(before.memory, now.memory)
    if after is None:
        return not any(map(is_claim, differing))
    if after.memory is None:
        return False
    return differing.isdisjoint(_differing_keys(before.memory, after.memory))


def _differing_keys(old: Memory, new: Memory) -> set[str]:
    """Return the keys that differ, including those of the lifecycle and `body`."""
    names = old.fields.keys() | new.fields.keys()
    keys = {name for name in names if old.fields.get(name) != new.fields.get(name)}
    return keys if old.body == new.body else {*keys, BODY}


def _explains(
    revert: Revert, problem: Problem, olds: Mapping[str, Version], news: Mapping[str, Version]
) -> bool:
    """Return whether a problem consists only of what the revert changed back."""
    before, after = revert.files.get(problem.path, (None, None))
    if problem.code == "removed":
        return before is None and after is not None
    memories = [
        version.memory
        for version in (olds.get(problem.id), news.get(problem.id), before, after)
        if version is not None and version.memory is not None
    ]
    if len(memories) < 4:
        return False
    old, new, earlier, later = memories
    if problem.code == "unconfirmed":
        keys = {"status"}
    elif earlier.status == "candidate" != new.status:
        return False  # its present text was never confirmed
    else:
        keys = set(filter(is_claim, find_changed_keys(old, new)))
    return keys.isdisjoint(_differing_keys(old, later) | _differing_keys(new, earlier))


def _make_warning(content: Content, revert: Revert, problem: Problem) -> Problem:
    """Return the warning that a commit is reverted, to replace one of its problems."""
    removed = [
        after for before, after in revert.files.values() if before is None and after is not None
    ]
    subject = _to_one_line(revert.commit.subject, MAX_SUBJECT_CHARS)
    clauses = "; ".join(_describe_consequences(content, revert, removed))
    titles = [_to_one_line(version.title, MAX_TITLE_CHARS) for version in removed]
    return problem.replace(
        line=0,
        code="reverted",
        message=f'commit {revert.commit.id[:SHORT_ID_DIGITS]} "{subject}" is taken back: {clauses}',
        hint=_make_lesson_command(revert.commit.id, subject, titles),
        severity="warning",
    )


def _describe_consequences(
    content: Content, revert: Revert, removed: Sequence[Version]
) -> Iterator[str]:
    """Yield clauses: which memories are gone, which hold again, and which are restored."""
    if removed:
        named = [f'{gone.id} "{_to_one_line(gone.title, MAX_TITLE_CHARS)}"' for gone in removed]
        yield f"{first_few(named, MAX_NAMED)} {'are' if named[1:] else 'is'} gone"
    kin = content.supersede_index
    memories = [version.memory for version in removed if version.memory is not None]
    replaced = {id_ for memory in memories for id_ in memory.replaces}
    holding = sorted(id_ for id_ in replaced if kin.has_id(id_) and not kin.is_replaced(id_))
    if holding:
        yield f"{first_few(holding, MAX_NAMED)} {'hold' if holding[1:] else 'holds'} again"
    states = []
    for before, after in revert.files.values():
        if before is None or before.memory is None:
            continue
        if after is None or after.memory is None:
            states.append(f"{before.id} is there again")
        elif before.memory.status != after.memory.status:
            states.append(f"the status of {before.id} is {before.memory.status} again")
        else:
            states.append(f"{before.id} is as it was before")
    if states:
        yield first_few(states, MAX_NAMED, between="; ")


def _make_lesson_command(commit: str, subject: str, titles: Sequence[str]) -> str:
    """Return the command that records the reverted attempt as a memory."""
    cited = commit[:CITED_DIGITS]  # it is stored, and must stay unique for longer than text
    recorded = f" It had recorded: {first_few(titles, MAX_NAMED, between='; ')}." if titles else ""
    words = [
        *("memtool", "new", "episodic", f"Reverted: {titles[0] if len(titles) == 1 else subject}"),
        *("--source", f"commit:{cited}"),
        *("--body", f'Commit {cited} "{subject}" was reverted.{recorded}'),
    ]
    return shlex.join(words)


def _to_one_line(text: str, max_chars: int) -> str:
    """Return a text without control characters on one line, cut to a length."""
    line = " ".join("".join(char if char.isprintable() else " " for char in text).split())
    return line if len(line) <= max_chars else f"{line[: max_chars - 1]}…"
