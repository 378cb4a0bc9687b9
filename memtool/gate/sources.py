"""The four sources of a check: git's index, a range of commits, the worktree, and history.

A hook inherits GIT_INDEX_FILE and GIT_DIR, and every git command runs with them: under `commit -a`
and `commit PATH` git uses a temporary index, and the worktree or the usual index would have other
bytes. Files are read by blob id, never by path.

For staged content only files that differ from HEAD are read. The other memories come from the
search index, so a commit of one memory takes about as long in a large tree as in a small one.

Hooks can be bypassed, so CI checks a range. A secret that one commit added and the next removed is
still in history, so secrets are searched for in every blob. Everything else is judged at the end of
the range, since a later commit may have fixed it. A claim counts as changed if at the end it
differs from when it was first confirmed; this also finds edits that only a merge made.

Blobs are read in batches, so that memory use does not grow with history. The commit and author of a
blob are only looked up if it contains a secret.
"""

from __future__ import annotations

import os
from itertools import chain

from memtool.errors import MemtoolError
from memtool.gate import gate, near_duplicates
from memtool.gate.checks import owners, secrets
from memtool.gate.checks.lineage import PURGES_VARIABLE
from memtool.gate.checks.secrets import Verdicts
from memtool.gate.content import (
    Content,
    File,
    ParentStep,
    SupersedeIndex,
    Text,
    find_new_paths,
    index_files,
    read_file,
    to_version,
)
from memtool.memory.changes import find_changed_keys, id_from_path, is_claim
from memtool.memory.document import MAX_BYTES
from memtool.memory.schema import Problem
from memtool.memory.trust import SHORT_ID_DIGITS
from memtool.redaction.find import build_allowlist, find
from memtool.store import config as config_file
from memtool.store import files, messages, snapshot, toml, versions
from memtool.store.files import POINTER_NAME
from memtool.store.git import LINK_MODES, REGULAR_MODES
from memtool.store.provenance import resolve_trusted
from memtool.store.repository import read_merge_heads
from memtool.store.snapshot import make_blob_hash
from memtool.store.tree import Record
from memtool.value import Value, split_batches

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from memtool.gate.content import CachedCheck
    from memtool.memory.changes import Version
    from memtool.store.config import Config
    from memtool.store.context import Context
    from memtool.store.git import Git, RawChange
    from memtool.store.repository import Repository
    from memtool.store.snapshot import Snapshot
    from memtool.store.versions import Stamp


def read_whole(
    tree: Snapshot,
    categories: Collection[str],
    cached_checks: Mapping[Stamp, CachedCheck] | None = None,
) -> tuple[list[File], list[Problem]]:
    """Read every file of a snapshot, sorted by path; cached ones are not parsed.

    Also returns the problems of files that could not be opened.
    """
    cached_checks = cached_checks or {}
    memory_files = []
    problems = list(tree.problems)
    hash_blob = make_blob_hash(tree.repository.object_format)
    for entry, data in tree.read():
        if isinstance(data, Problem):
            problems.append(data)
            continue
        mode = entry.mode or _read_mode(os.path.join(tree.repository.top, entry.path))
        oid = entry.oid or hash_blob(data)
        memory_files.append(
            read_file(entry.path, oid, mode, data, categories, cached_checks.get((entry.path, oid)))
        )
    return sorted(memory_files, key=lambda file: file.path), problems


def _read_mode(path: str) -> str:
    try:
        return "100755" if os.lstat(path).st_mode & 0o100 else "100644"
    except OSError:
        return "100644"


def _to_texts(memory_files: Iterable[File]) -> list[Text]:
    return [Text(file.path, file.oid, file.text) for file in memory_files]


def _compare_trees(
    context: Context,
    parents: Iterable[str],
    memory_files: Sequence[File],
    categories: Collection[str],
) -> list[ParentStep]:
    """Compare a whole tree with those of its parents."""
    steps = []
    new = {file.path: file.oid for file in memory_files}
    for commit in parents:
        tree = snapshot.snapshot_commit(context.repository, context.directory, commit)
        old = {entry.path: entry.oid for entry in tree.entries}
        before = versions.read_blobs(context.repository, old.items() - new.items(), categories)
        after = [to_version(file) for file in memory_files if old.get(file.path) != file.oid]
        steps.append(
            ParentStep(tuple(before[at] for at in sorted(before)), tuple(after), {}, commit)
        )
    return steps


MAX_SEARCHED_BYTES = 1 << 20
"""Bytes that are searched for secrets in a file that is not a memory, such as the settings."""
_NO_FILE_MODE = "000000"
"""The mode of a file that does not exist."""


def read_staged(context: Context, sides: Sequence[Sequence[RawChange]], head: str) -> Content:
    """Read the staged content below the memory directory; `sides` and `head` of `staged_changes`.

    Only files that differ from HEAD are read, in a merge those that differ from any parent. All
    are read if the settings change, and for the first commit.

    Raises:
        MemtoolError: the staged settings cannot be read, or git refuses.
    """
    repository, directory = context.repository, context.directory
    settings = _read_staged_settings(context, head, sides[0])
    categories = settings.categories
    parents = [head, *read_merge_heads(repository, context.caller.env)] if head else []
    deciding = (context.project.config_path, POINTER_NAME)
    is_whole = not head or any(row.path in deciding for row in sides[0])
    duplicate_index = None
    if is_whole:
        tree = snapshot.snapshot_index(repository, directory)
        memory_files, problems = read_whole(tree, categories)
        steps = _compare_trees(context, parents, memory_files, categories)
        supersede_index = index_files(memory_files)
    else:
        by_oid = _read_blobs(repository, directory, [row for side in sides for row in side])
        by_path = {
            row.path: read_file(row.path, row.oid, row.mode, by_oid[row.oid], categories)
            for side in sides
            for row in side
            if row.oid in by_oid and row.mode != _NO_FILE_MODE and _is_memory(row, directory)
        }
        memory_files, problems = [by_path[path] for path in sorted(by_path)], _find_faults(sides[0])
        steps = [
            _make_staged_step(side, directory, by_path, by_oid, categories).replace(commit=commit)
            for side, commit in zip(sides, parents, strict=True)
        ]
        records = [
            Record(file.memory, file.path, file.oid)
            for file in memory_files
            if file.memory is not None
        ]
        duplicate_index = near_duplicates.from_index(
            repository, directory, settings, parsed=records
        )
        supersede_index = SupersedeIndex((), duplicate_index)
    return Content(
        repository=repository,
        directory=directory,
        settings=settings,
        now=context.clock.now,
        files=memory_files,
        supersede_index=supersede_index,
        head=head,
        kind="index",
        is_whole=is_whole,
        texts=[*_to_texts(memory_files), *_read_staged_texts(repository, directory, sides[0])],
        steps=steps,
        problems=problems,
        new=find_new_paths(memory_files, steps),
        parents=parents,
        duplicate_index=duplicate_index,
        purges=frozenset(messages.split_names(context.caller.env.get(PURGES_VARIABLE, ""))),
        trusted=_resolve_trusted(context),
    )


def _read_staged_settings(context: Context, head: str, rows: Sequence[RawChange]) -> Config:
    """Return the settings that the commit will have."""
    git, path = context.repository.git, context.project.config_path
    staged = next((row for row in rows if row.path == path), None)
    if staged is not None:
        name = staged.oid if staged.mode.startswith("100") and staged.status != "U" else ""
    else:
        name = f"{head}:{path}" if head else ""
    (info,) = git.infos([name]) if name else (None,)
    if info is None or info[1] != "blob":
        return config_file.DEFAULTS
    return config_file.parse(next(git.blobs([info[0]], toml.MAX_BYTES)), path)


def _is_memory(row: RawChange, directory: str) -> bool:
    return (
        snapshot.is_memory_path(row.path, directory)
        and row.mode not in LINK_MODES
        and row.status != "U"
    )


def _read_blobs(
    repository: Repository, directory: str, rows: Sequence[RawChange]
) -> dict[str, bytes]:
    """Read old and new blobs of the memory files that differ, by blob id."""
    oids = {
        oid
        for row in rows
        if _is_memory(row, directory)
        for mode, oid in ((row.old_mode, row.old_oid), (row.mode, row.oid))
        if mode != _NO_FILE_MODE and mode not in LINK_MODES
    }
    wanted = sorted(oids)
    return dict(zip(wanted, repository.git.blobs(wanted, MAX_BYTES), strict=True))


def _make_staged_step(
    rows: Sequence[RawChange],
    directory: str,
    files: Mapping[str, File],
    by_oid: Mapping[str, bytes],
    categories: Collection[str],
) -> ParentStep:
    memory_rows = [row for row in rows if snapshot.is_memory_path(row.path, directory)]
    before = [
        versions.parse_version(by_oid[row.old_oid], row.path, categories)
        for row in memory_rows
        if row.old_oid in by_oid
    ]
    after = [
        to_version(files[row.path])
        for row in memory_rows
        if row.path in files and row.mode != _NO_FILE_MODE
    ]
    return ParentStep(tuple(before), tuple(after), {})


def _read_staged_texts(
    repository: Repository, directory: str, rows: Sequence[RawChange]
) -> list[Text]:
    """Return the texts of staged files that are not memories, such as the settings."""
    other_rows = [
        row
        for row in rows
        if row.mode not in (_NO_FILE_MODE, *LINK_MODES)
        and row.status != "U"
        and not snapshot.is_memory_path(row.path, directory)
    ]
    blobs = repository.git.blobs([row.oid for row in other_rows], MAX_SEARCHED_BYTES)
    return [
        Text(row.path, row.oid, data.decode(errors="replace"))
        for row, data in zip(other_rows, blobs, strict=True)
    ]


def _find_faults(rows: Sequence[RawChange]) -> list[Problem]:
    """Return the problems of links and other non-files, and of unfinished merges."""
    problems = []
    for row in rows:
        if row.status == "U":
            problems.append(snapshot.build_unmerged_problem(row.path))
        elif row.mode in LINK_MODES:
            problems.append(snapshot.build_link_problem(row.path))
    return problems


class ChangedFile(Value):
    """One file that a commit changed: its blob ids in the parents that have it, and its new one."""

    commit: str
    path: str
    olds: tuple[str, ...]
    oid: str


def read_range(context: Context, settings: Config, start: str, end: str) -> Content | None:
    """Read the commits reachable from `end` but not from `start`; all if `start` is empty.

    Both are full ids. None if no commit touches the memory directory.
    """
    repository, directory = context.repository, context.directory
    git = repository.git
    categories = settings.categories
    commits = git.line(
        "rev-list", "--topo-order", "--reverse", end, *([f"^{start}"] if start else [])
    ).split()
    touched = find_changed_files(git, commits, directory)
    protection = owners.find_protection(context, start, end)
    if not touched and (protection is None or not protection.changes):
        return None
    changed = frozenset(change.path for change in protection.changes) if protection else frozenset()
    cached_checks = gate.load_cached_checks(repository, settings)
    tree = snapshot.snapshot_commit(repository, directory, end)
    memory_files, problems = read_whole(tree, categories, cached_checks)
    return Content(
        repository=repository,
        directory=directory,
        settings=settings,
        now=context.clock.now,
        files=memory_files,
        supersede_index=index_files(memory_files),
        head=end,
        kind="commit",
        is_whole=True,
        texts=chain(
            _read_texts(repository, touched),
            _read_messages(git, sorted({row.commit for row in touched})),
        ),
        steps=[
            _make_range_step(repository, directory, touched, memory_files, categories).replace(
                commit=start
            )
        ],
        problems=problems,
        new=frozenset(row.path for row in touched if not row.olds),
        warned=frozenset(row.path for row in touched) | changed,
        cached_checks=cached_checks,
        protection=protection,
        trusted=_resolve_trusted(context),
    )


def _resolve_trusted(context: Context) -> str:
    """Return the commit of the trusted ref, empty if there is none."""
    try:
        return resolve_trusted(context.repository, context.project.trust_settings.text("trust.ref"))
    except MemtoolError:  # callers that need the ref report this themselves
        return ""


def find_changed_files(git: Git, commits: Sequence[str], directory: str) -> list[ChangedFile]:
    """Return the files that each commit changed below a directory, in order of commits.

    A merge only counts for files that differ from all its parents.
    """
    if not commits:
        return []
    rows = git.log_raw(
        "diff-tree",
        "--stdin",
        "-r",
        "-c",
        "--root",
        "--no-renames",
        "--",
        directory,
        stdin="\n".join(commits).encode() + b"\n",
    )
    changed_files = []
    for commit, row in rows:
        olds = {oid for mode, oid in row.olds if mode in REGULAR_MODES}
        oid = row.oid if row.mode in REGULAR_MODES else ""
        changed_files.append(ChangedFile(commit, row.path, tuple(sorted(olds)), oid))
    return changed_files


def _read_texts(repository: Repository, touched: Sequence[ChangedFile]) -> Iterator[Text]:
    """Yield every blob that the commits added, with the first commit that has it."""
    first: dict[str, ChangedFile] = {}
    for row in touched:
        if row.oid:
            first.setdefault(row.oid, row)
    for oids in split_batches(first, near_duplicates.BATCH_BLOBS):
        for oid, data in zip(oids, repository.git.blobs(oids, MAX_SEARCHED_BYTES), strict=True):
            row = first[oid]
            where = f"in commit {row.commit[:SHORT_ID_DIGITS]}"
            yield Text(row.path, oid, data.decode(errors="replace"), where)


_PEOPLE_TRAILERS = ("-by: ", "author: ", "cc: ")
"""Ends of trailer keys whose values name people, which is intended."""


def _read_messages(git: Git, commits: Sequence[str]) -> Iterator[Text]:
    """Yield the messages of commits, without the trailers that name people."""
    if not commits:
        return
    stdin = "".join(f"{commit}\n" for commit in commits).encode()
    answer = git.run("log", "--no-walk=unsorted", "--stdin", "-z", "--format=%H%n%B", stdin=stdin)
    for row in answer.decode(errors="replace").split("\0"):
        commit, _end, message = row.partition("\n")
        lines = message.splitlines()
        searched_lines = [
            line
            for line in lines
            if not f"{line.lower().partition(': ')[0]}: ".endswith(_PEOPLE_TRAILERS)
        ]
        if commit:
            yield Text(
                f"commit {commit[:SHORT_ID_DIGITS]}",
                commit,
                "\n".join(searched_lines),
                is_message=True,
            )


def _make_range_step(
    repository: Repository,
    directory: str,
    touched: Sequence[ChangedFile],
    memory_files: Sequence[File],
    categories: Collection[str],
) -> ParentStep:
    """Compare each memory as first confirmed with its version at the end of the range."""
    memory_changes = [row for row in touched if snapshot.is_memory_path(row.path, directory)]
    stamps = {(row.path, oid) for row in memory_changes for oid in (*row.olds, row.oid) if oid}
    version_by_stamp = versions.read_blobs(repository, stamps, categories) if stamps else {}
    first: dict[str, Version] = {}
    first_rows: dict[str, tuple[ChangedFile, str]] = {}
    where: dict[str, str] = {}
    for row in memory_changes:
        id_ = id_from_path(row.path)
        for oid in (*row.olds, row.oid):
            version = version_by_stamp.get((row.path, oid))
            if version is not None and version.memory is not None:
                first_version = first.get(id_)
                if (
                    first_version is None
                    or first_version.memory is None
                    or first_version.memory.status == "candidate"
                ):
                    first[id_], first_rows[id_] = version, (row, oid)
        if _changes_claim(row, version_by_stamp):
            where[id_] = f"in commit {row.commit[:SHORT_ID_DIGITS]}"
    touched_ids = {id_from_path(row.path) for row in memory_changes}
    ends = {
        id_from_path(file.path): to_version(file)
        for file in memory_files
        if id_from_path(file.path) in touched_ids
    }
    for id_ in _find_purged(repository.git, memory_changes, ends):
        first.pop(id_, None)
    last_rows = {
        id_from_path(row.path): (row, row.oid or row.olds[0]) for row in memory_changes if row.olds
    }
    wanted_blobs = {
        id_: first_rows[id_] if id_ in ends else last_rows.get(id_, first_rows[id_])
        for id_ in where
        if id_ in first
    }
    return ParentStep(
        before=tuple(first[id_] for id_ in sorted(first)),
        after=tuple(ends[id_] for id_ in sorted(ends)),
        where=where,
        holding_commits=_find_holders(repository.git, wanted_blobs) if wanted_blobs else {},
    )


def _find_holders(git: Git, wanted: Mapping[str, tuple[ChangedFile, str]]) -> dict[str, str]:
    """Return a commit that has the wanted blob, by memory id: the changing one, or a parent.

    `wanted` has the changed file and the blob id, by memory id.
    """
    commits = sorted({row.commit for row, oid in wanted.values() if oid != row.oid})
    stdin = "".join(f"{commit}\n" for commit in commits).encode()
    listed = git.run("rev-list", "--no-walk=unsorted", "--parents", "--stdin", stdin=stdin)
    parents = {ids[0]: ids[1:] for ids in map(str.split, listed.decode().splitlines())}
    holders = {}
    for id_, (row, oid) in wanted.items():
        candidates = [row.commit] if oid == row.oid else parents[row.commit]
        if len(candidates) > 1:  # a merge: one of its parents has it
            infos = git.infos([f"{commit}:{row.path}" for commit in candidates])
            candidates = [
                commit
                for commit, info in zip(candidates, infos, strict=True)
                if info is not None and info[0] == oid
            ]
        holders[id_] = candidates[0]
    return holders


def _changes_claim(row: ChangedFile, version_by_stamp: Mapping[Stamp, Version]) -> bool:
    """Return whether a commit removed a memory, or changed its claim."""
    new = version_by_stamp.get((row.path, row.oid))
    if new is None or new.memory is None:
        return True
    olds = [version_by_stamp[row.path, oid].memory for oid in row.olds]
    return any(
        old is not None and any(map(is_claim, find_changed_keys(old, new.memory))) for old in olds
    )


def _find_purged(
    git: Git, touched: Sequence[ChangedFile], ends: dict[str, Version]
) -> Iterator[str]:
    """Yield the ids that commits removed and name in a purge trailer."""
    removed: dict[str, set[str]] = {}
    for row in touched:
        if not row.oid and id_from_path(row.path) not in ends:
            removed.setdefault(row.commit, set()).add(id_from_path(row.path))
    for commit, ids in removed.items():
        yield from ids & messages.read_purged_ids(git, "--no-walk", commit)


def read_commit(context: Context, settings: Config, commit: str) -> Content:
    """Read the tree of a commit, without comparing it to its parents. `commit` is a full id."""
    repository, directory = context.repository, context.project.read_directory_at(commit)
    tree = snapshot.snapshot_commit(repository, directory, commit)
    memory_files, problems = read_whole(tree, settings.categories)
    return Content(
        repository=repository,
        directory=directory,
        settings=settings,
        now=context.clock.now,
        files=memory_files,
        supersede_index=index_files(memory_files),
        head=commit,
        kind="commit",
        is_whole=True,
        texts=_to_texts(memory_files),
        problems=problems,
        trusted=_resolve_trusted(context),
    )


def read_worktree(context: Context, paths: tuple[str, ...] = ()) -> Content:
    """Read the files on disk; with `paths` only those at or below them are checked."""
    repository, directory, settings = context.repository, context.directory, context.settings
    categories = settings.categories
    cached_checks = gate.load_cached_checks(repository, settings)
    all_files, problems = read_whole(
        snapshot.snapshot_worktree(repository, directory), categories, cached_checks
    )
    head = repository.git.head()
    parents = [head, *read_merge_heads(repository, context.caller.env)] if head else []
    steps = _compare_trees(context, parents, all_files, categories)
    chosen = [file for file in all_files if is_chosen(file.path, paths)]
    other_texts = (
        text for text in _read_worktree_texts(repository, directory) if is_chosen(text.path, paths)
    )
    return Content(
        repository=repository,
        directory=directory,
        settings=settings,
        now=context.clock.now,
        files=chosen,
        supersede_index=index_files(all_files),
        head=head,
        kind="worktree",
        is_whole=not paths,
        texts=[*_to_texts(chosen), *other_texts],
        steps=steps,
        problems=problems,
        new=find_new_paths(chosen, steps),
        parents=parents,
        cached_checks=None if paths else cached_checks,
        trusted=_resolve_trusted(context),
    )


def is_chosen(path: str, paths: tuple[str, ...]) -> bool:
    """Return whether a path is at or below one of these paths; true if there are none."""
    return not paths or any(
        chosen in ("", path) or path.startswith(f"{chosen}/") for chosen in paths
    )


def _read_worktree_texts(repository: Repository, directory: str) -> Iterator[Text]:
    """Yield the texts of files that are not memories: settings, templates and all others in git."""
    listed = repository.git.names(
        "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", directory
    )
    hash_blob = make_blob_hash(repository.object_format)
    for path in sorted(set(listed)):
        if snapshot.is_memory_path(path, directory):
            continue
        data = files.read_or_none(os.path.join(repository.top, path), MAX_SEARCHED_BYTES)
        if data is not None:  # neither gone nor a link, which is reported elsewhere
            yield Text(path, hash_blob(data), data.decode(errors="replace"))


MAX_BATCH_BYTES = 8 << 20
MAX_BATCH_OBJECTS = 2_000


class HistoryScan(Value):
    """The number of blobs that were checked in history, and their problems."""

    checked: int
    problems: tuple[Problem, ...]


def scan_history(context: Context) -> HistoryScan:
    """Search every blob reachable from any ref for secrets, and the commit messages.

    One batch of them is in memory, however long the history is.
    """
    repository, directory, settings = context.repository, context.directory, context.settings
    git = repository.git
    allowed = build_allowlist(settings)
    verdicts = Verdicts(repository.cache_dir, settings)
    problems: list[Problem] = []
    checked = 0
    with git.open_objects():
        for commits, blobs in list_history(git, directory):
            checked += len(blobs)
            clean = verdicts.find_clean((*commits, *(oid for oid, _path in blobs)))
            unseen = [row for row in blobs if row[0] not in clean]
            contents = git.blobs([oid for oid, _path in unseen], MAX_SEARCHED_BYTES)
            texts = (
                Text(path, oid, data.decode(errors="replace"))
                for (oid, path), data in zip(unseen, contents, strict=True)
            )
            messages = _read_messages(git, [commit for commit in commits if commit not in clean])
            for text in chain(texts, messages):
                detections = find(text.text, allowed)
                unexpected = secrets.drop_expected(text.path, detections, directory, settings)
                if unexpected:
                    where = "" if text.is_message else _describe_origin(git, text.oid, directory)
                    problems.extend(secrets.make_problems(text.replace(where=where), unexpected))
                elif not detections:
                    verdicts.add(text.oid)
            verdicts.save()
    return HistoryScan(
        checked, tuple(sorted(problems, key=lambda p: (p.path, p.line, p.code, p.message)))
    )


def list_history(git: Git, directory: str) -> Iterator[tuple[list[str], list[tuple[str, str]]]]:
    """Yield the commits that touch a directory, with the id and path of every blob below it.

    They come in batches, each object once. The path is the first that git lists for the blob.
    """
    rows = git.read_lines("rev-list", "--objects", "--all", "--full-history", "--", directory)
    objects = (row.decode(errors="replace").partition(" ") for row in rows)
    for part in split_batches(objects, MAX_BATCH_OBJECTS):
        commits = [oid for oid, space, _path in part if not space]
        below = [(oid, path) for oid, _space, path in part if path.startswith(directory + "/")]
        infos = git.infos([oid for oid, _path in below])
        sizes = {info[0]: info[2] for info in infos if info and info[1] == "blob"}
        blobs = [
            (oid, path, min(sizes[oid], MAX_SEARCHED_BYTES)) for oid, path in below if oid in sizes
        ]
        for batch in split_batches(blobs, 0, MAX_BATCH_BYTES, lambda row: row[2]):
            yield commits, [row[:2] for row in batch]
            commits = []
        if commits:
            yield commits, []


def _describe_origin(git: Git, oid: str, directory: str) -> str:
    """Return the first commit with a blob and its author, for a message."""
    line = git.line(
        "log",
        "--all",
        "--full-history",
        "--reverse",
        f"--find-object={oid}",
        "--format=%h%x00%an%x00%as",
        "--abbrev=10",
        "--",
        directory,
    ).split("\n")[0]
    short, author, day = (*line.split("\0"), "", "")[:3]
    return f"in commit {short} by {author} on {day}"
