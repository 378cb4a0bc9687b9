"""The four sources of a check: git's index, a range of commits, the worktree, and history.

A hook inherits GIT_INDEX_FILE and GIT_DIR, and every question goes to git with them: under
`commit -a` and `commit PATH` the index in use is a temporary one, and the worktree or the usual
index would show other bytes. Files are read by blob id, never by path.

Only what differs from HEAD is looked at. What lies around it is known from the rows that an earlier
check kept, so a commit of one memory costs about the same in a small tree and in a large one.

Hooks can be bypassed, so this is what CI asks. What was put into one commit and taken out in the
next is still in history: secrets are looked for in every blob. All else is judged at the end of the
range, where a later commit may have mended it. A claim counts as changed when it is, at the end,
not what it was when it was first confirmed; edits that a merge alone made are found like this too.

Blobs are read in batches, so that the memory needed does not grow with history. Who committed one
is looked up only where something was found.
"""

from __future__ import annotations

import os
from itertools import chain

from memtool.gate import gate, near_duplicates
from memtool.gate.checks import owners, secrets
from memtool.gate.checks.lineage import PURGES, PURGING, purged_by
from memtool.gate.checks.secrets import Verdicts
from memtool.gate.content import (
    Content,
    File,
    Kin,
    ParentStep,
    Text,
    kin_of,
    new_paths,
    read,
    version_of,
)
from memtool.memory.changes import changed_keys, is_claim, stem
from memtool.memory.document import MAX_BYTES
from memtool.memory.schema import Problem
from memtool.redaction.find import allowlist, find
from memtool.store import config as config_file
from memtool.store import files, snapshot, toml, versions
from memtool.store.files import POINTER_NAME
from memtool.store.git import LINKS, REGULAR
from memtool.store.provenance import SHORT
from memtool.store.repository import merged
from memtool.store.snapshot import blob_hash
from memtool.store.tree import Record
from memtool.value import Value, batches

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from memtool.gate.content import Known
    from memtool.memory.changes import Version
    from memtool.store.config import Config
    from memtool.store.context import Context
    from memtool.store.git import Git, RawChange
    from memtool.store.repository import Repository
    from memtool.store.snapshot import Snapshot
    from memtool.store.versions import Stamp


def read_whole(
    taken: Snapshot, categories: Collection[str], known: Mapping[Stamp, Known] | None = None
) -> tuple[list[File], list[Problem]]:
    """Read every file of a snapshot, sorted by path; of those that are known only their bytes.

    Also returns what could not be opened.
    """
    known = known or {}
    found = []
    problems = list(taken.problems)
    hash_blob = blob_hash(taken.repository.object_format)
    for entry, data in taken.read():
        if isinstance(data, Problem):
            problems.append(data)
            continue
        mode = entry.mode or _mode_of(os.path.join(taken.repository.top, entry.path))
        oid = entry.oid or hash_blob(data)
        found.append(read(entry.path, oid, mode, data, categories, known.get((entry.path, oid))))
    return sorted(found, key=lambda file: file.path), problems


def _mode_of(path: str) -> str:
    try:
        return "100755" if os.lstat(path).st_mode & 0o100 else "100644"
    except OSError:
        return "100644"


def _texts_of(found: Iterable[File]) -> list[Text]:
    return [Text(file.path, file.oid, file.text) for file in found]


def _steps_from(
    context: Context,
    parents: Iterable[str],
    found: Sequence[File],
    categories: Collection[str],
) -> list[ParentStep]:
    """Compare a whole tree with those of commits."""
    steps = []
    new = {file.path: file.oid for file in found}
    for commit in parents:
        taken = snapshot.of_commit(context.repository, context.directory, commit)
        old = {entry.path: entry.oid for entry in taken.entries}
        before = versions.of_blobs(context.repository, old.items() - new.items(), categories)
        after = [version_of(file) for file in found if old.get(file.path) != file.oid]
        steps.append(
            ParentStep(tuple(before[at] for at in sorted(before)), tuple(after), {}, commit)
        )
    return steps


MOST_BYTES = 1 << 20
"""Bytes of a file that is no memory, such as the settings, that are searched for secrets."""
_NO_FILE = "000000"
"""The mode of a file that is not there."""


def of_staged(context: Context, sides: Sequence[Sequence[RawChange]], head: str) -> Content:
    """Take what is staged below the memory directory; `sides` and `head` are `staged_changes`.

    Only the files that differ from HEAD are looked at, in a merge those that differ from any
    parent; all are where the settings change, and in the first commit.

    Raises:
        MemtoolError: the staged settings cannot be read, or git refuses.
    """
    repository, directory = context.repository, context.directory
    settings = _staged_settings(context, head, sides[0])
    categories = settings.categories
    parents = [head, *merged(repository, context.caller.env)] if head else []
    deciding = (context.project.config_path, POINTER_NAME)
    is_whole = not head or any(row.path in deciding for row in sides[0])
    near = None
    if is_whole:
        taken = snapshot.of_index(repository, directory)
        found, problems = read_whole(taken, categories)
        steps = _steps_from(context, parents, found, categories)
        kin = kin_of(found)
    else:
        by_oid = _blobs(repository, directory, [row for side in sides for row in side])
        by_path = {
            row.path: read(row.path, row.oid, row.mode, by_oid[row.oid], categories)
            for side in sides
            for row in side
            if row.oid in by_oid and row.mode != _NO_FILE and _is_memory(row, directory)
        }
        found, problems = [by_path[path] for path in sorted(by_path)], _faults(sides[0])
        steps = [
            _staged_step(side, directory, by_path, by_oid, categories).replace(commit=commit)
            for side, commit in zip(sides, parents, strict=True)
        ]
        own = [Record(one.memory, one.path, one.oid) for one in found if one.memory is not None]
        near = near_duplicates.of_index(repository, directory, settings, known=own)
        kin = Kin((), near)
    return Content(
        repository=repository,
        directory=directory,
        settings=settings,
        now=context.clock.now,
        files=found,
        kin=kin,
        head=head,
        kind="index",
        is_whole=is_whole,
        texts=[*_texts_of(found), *_other_texts(repository, directory, sides[0])],
        steps=steps,
        problems=problems,
        new=new_paths(found, steps),
        parents=parents,
        near=near,
        purges=purged_by(context.caller.env.get(PURGING, "")),
    )


def _staged_settings(context: Context, head: str, rows: Sequence[RawChange]) -> Config:
    """Return the settings that the commit will hold."""
    git, path = context.repository.git, context.project.config_path
    staged = next((row for row in rows if row.path == path), None)
    if staged is not None:
        name = staged.oid if staged.mode.startswith("100") and staged.status != "U" else ""
    else:
        name = f"{head}:{path}" if head else ""
    (info,) = git.infos([name]) if name else (None,)
    if info is None or info[1] != "blob":
        return config_file.DEFAULTS
    return config_file.parse(next(git.blobs([info[0]], toml.MOST_BYTES)), path)


def _is_memory(row: RawChange, directory: str) -> bool:
    return (
        snapshot.is_memory_path(row.path, directory) and row.mode not in LINKS and row.status != "U"
    )


def _blobs(repository: Repository, directory: str, rows: Sequence[RawChange]) -> dict[str, bytes]:
    """Read both sides of the memory files that differ."""
    oids = {
        oid
        for row in rows
        if _is_memory(row, directory)
        for mode, oid in ((row.old_mode, row.old_oid), (row.mode, row.oid))
        if mode != _NO_FILE and mode not in LINKS
    }
    wanted = sorted(oids)
    return dict(zip(wanted, repository.git.blobs(wanted, MAX_BYTES), strict=True))


def _staged_step(
    rows: Sequence[RawChange],
    directory: str,
    files: Mapping[str, File],
    by_oid: Mapping[str, bytes],
    categories: Collection[str],
) -> ParentStep:
    mine = [row for row in rows if snapshot.is_memory_path(row.path, directory)]
    before = [
        versions.of_bytes(by_oid[row.old_oid], row.path, categories)
        for row in mine
        if row.old_oid in by_oid
    ]
    after = [
        version_of(files[row.path]) for row in mine if row.path in files and row.mode != _NO_FILE
    ]
    return ParentStep(tuple(before), tuple(after), {})


def _other_texts(repository: Repository, directory: str, rows: Sequence[RawChange]) -> list[Text]:
    """Return the texts of staged files that are no memories, such as the settings."""
    mine = [
        row
        for row in rows
        if row.mode not in (_NO_FILE, *LINKS)
        and row.status != "U"
        and not snapshot.is_memory_path(row.path, directory)
    ]
    blobs = repository.git.blobs([row.oid for row in mine], MOST_BYTES)
    return [
        Text(row.path, row.oid, data.decode(errors="replace"))
        for row, data in zip(mine, blobs, strict=True)
    ]


def _faults(rows: Sequence[RawChange]) -> list[Problem]:
    """Return what a memory tree must not hold, and what is not merged yet."""
    found = []
    for row in rows:
        if row.status == "U":
            found.append(snapshot.unmerged(row.path))
        elif row.mode in LINKS:
            found.append(snapshot.not_a_file(row.path))
    return found


class ChangedFile(Value):
    """One file that a commit changed: its blobs in the parents that have it, and its new one."""

    commit: str
    path: str
    olds: tuple[str, ...]
    oid: str


def of_range(context: Context, settings: Config, start: str, end: str) -> Content | None:
    """Take the commits that lead to `end` and not to `start`; with no start, all that lead there.

    Both are full ids. None where no commit touches the memory directory.
    """
    repository, directory = context.repository, context.directory
    git = repository.git
    categories = settings.categories
    commits = git.line(
        "rev-list", "--topo-order", "--reverse", end, *([f"^{start}"] if start else [])
    ).split()
    touched = touches(git, commits, directory)
    protection = owners.protection(context, start, end)
    if not touched and (protection is None or not protection.changes):
        return None
    changed = frozenset(one.path for one in protection.changes) if protection else frozenset()
    known = gate.load(repository, settings)
    taken = snapshot.of_commit(repository, directory, end)
    found, problems = read_whole(taken, categories, known)
    return Content(
        repository=repository,
        directory=directory,
        settings=settings,
        now=context.clock.now,
        files=found,
        kin=kin_of(found),
        head=end,
        kind="commit",
        is_whole=True,
        texts=chain(
            _texts(repository, touched),
            _messages(git, sorted({row.commit for row in touched})),
        ),
        steps=[
            _range_step(repository, directory, touched, found, categories).replace(commit=start)
        ],
        problems=problems,
        new=frozenset(row.path for row in touched if not row.olds),
        warned=frozenset(row.path for row in touched) | changed,
        known=known,
        protection=protection,
    )


def touches(git: Git, commits: Sequence[str], directory: str) -> list[ChangedFile]:
    """Return what each commit changed below a directory, in the order of the commits.

    Of a merge only files count that differ from all its parents.
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
    found = []
    for commit, row in rows:
        olds = {oid for mode, oid in row.olds if mode in REGULAR}
        oid = row.oid if row.mode in REGULAR else ""
        found.append(ChangedFile(commit, row.path, tuple(sorted(olds)), oid))
    return found


def _texts(repository: Repository, touched: Sequence[ChangedFile]) -> Iterator[Text]:
    """Yield every blob that the commits brought, with the first commit that has it."""
    first: dict[str, ChangedFile] = {}
    for row in touched:
        if row.oid:
            first.setdefault(row.oid, row)
    for some in batches(first, near_duplicates.BATCH):
        for oid, data in zip(some, repository.git.blobs(some, MOST_BYTES), strict=True):
            row = first[oid]
            where = f"in commit {row.commit[:SHORT]}"
            yield Text(row.path, oid, data.decode(errors="replace"), where)


_PEOPLE = ("-by: ", "author: ", "cc: ")
"""End the keys of trailers that name people, who are meant to be named there."""


def _messages(git: Git, commits: Sequence[str]) -> Iterator[Text]:
    """Yield the messages of commits, without the trailers that name people."""
    if not commits:
        return
    stdin = "".join(f"{commit}\n" for commit in commits).encode()
    answer = git.run("log", "--no-walk=unsorted", "--stdin", "-z", "--format=%H%n%B", stdin=stdin)
    for row in answer.decode(errors="replace").split("\0"):
        commit, _end, message = row.partition("\n")
        lines = message.splitlines()
        kept = [
            line for line in lines if not f"{line.lower().partition(': ')[0]}: ".endswith(_PEOPLE)
        ]
        if commit:
            yield Text(f"commit {commit[:SHORT]}", commit, "\n".join(kept), is_message=True)


def _range_step(
    repository: Repository,
    directory: str,
    touched: Sequence[ChangedFile],
    found: Sequence[File],
    categories: Collection[str],
) -> ParentStep:
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
    ends = {stem(file.path): version_of(file) for file in found if stem(file.path) in touched_ids}
    for id_ in _purged(repository.git, mine, ends):
        first.pop(id_, None)
    return ParentStep(
        before=tuple(first[id_] for id_ in sorted(first)),
        after=tuple(ends[id_] for id_ in sorted(ends)),
        where=where,
    )


def _is_claimed(row: ChangedFile, read: Mapping[Stamp, Version]) -> bool:
    """Tell whether a commit removed a memory, or changed its claim."""
    new = read.get((row.path, row.oid))
    if new is None or new.memory is None:
        return True
    olds = [read[row.path, oid].memory for oid in row.olds]
    return any(
        old is not None and any(map(is_claim, changed_keys(old, new.memory))) for old in olds
    )


def _purged(git: Git, touched: Sequence[ChangedFile], ends: dict[str, Version]) -> Iterator[str]:
    """Yield the ids that commits removed and name in their trailer."""
    removed: dict[str, set[str]] = {}
    for row in touched:
        if not row.oid and stem(row.path) not in ends:
            removed.setdefault(row.commit, set()).add(stem(row.path))
    for commit, ids in removed.items():
        ids_named = git.line(
            "log", "-1", f"--format=%(trailers:key={PURGES},valueonly,separator=%x20)", commit
        )
        yield from ids & purged_by(ids_named)


def of_commit(context: Context, settings: Config, commit: str) -> Content:
    """Take the tree of a commit as it stands, whatever came before it. `commit` is a full id."""
    repository, directory = context.repository, context.project.directory_at(commit)
    taken = snapshot.of_commit(repository, directory, commit)
    found, problems = read_whole(taken, settings.categories)
    return Content(
        repository=repository,
        directory=directory,
        settings=settings,
        now=context.clock.now,
        files=found,
        kin=kin_of(found),
        head=commit,
        kind="commit",
        is_whole=True,
        texts=_texts_of(found),
        problems=problems,
    )


def of_worktree(context: Context, paths: tuple[str, ...] = ()) -> Content:
    """Take the files on disk; with `paths` only those in or below them are looked at."""
    repository, directory, settings = context.repository, context.directory, context.settings
    categories = settings.categories
    known = gate.load(repository, settings)
    whole, problems = read_whole(snapshot.of_worktree(repository, directory), categories, known)
    head = repository.git.head()
    parents = [head, *merged(repository, context.caller.env)] if head else []
    steps = _steps_from(context, parents, whole, categories)
    chosen = [file for file in whole if is_chosen(file.path, paths)]
    others = (text for text in _others(repository, directory) if is_chosen(text.path, paths))
    return Content(
        repository=repository,
        directory=directory,
        settings=settings,
        now=context.clock.now,
        files=chosen,
        kin=kin_of(whole),
        head=head,
        kind="worktree",
        is_whole=not paths,
        texts=[*_texts_of(chosen), *others],
        steps=steps,
        problems=problems,
        new=new_paths(chosen, steps),
        parents=parents,
        known=None if paths else known,
    )


def is_chosen(path: str, paths: tuple[str, ...]) -> bool:
    """Tell whether a path is one of some paths, or below one; without any every path is."""
    return not paths or any(
        chosen in ("", path) or path.startswith(f"{chosen}/") for chosen in paths
    )


def _others(repository: Repository, directory: str) -> Iterator[Text]:
    """Yield the texts that are no memories: settings, templates, and what else git would take."""
    listed = repository.git.names(
        "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", directory
    )
    hash_blob = blob_hash(repository.object_format)
    for path in sorted(set(listed)):
        if snapshot.is_memory_path(path, directory):
            continue
        data = files.read_or_none(os.path.join(repository.top, path), MOST_BYTES)
        if data is not None:  # it is not gone, nor a link, which is reported elsewhere
            yield Text(path, hash_blob(data), data.decode(errors="replace"))


BATCH_BYTES = 8 << 20
HISTORY_BATCH = 2_000


class HistoryScan(Value):
    """What was found in history: how many blobs were looked at, and the problems."""

    checked: int
    problems: tuple[Problem, ...]


def scan(context: Context) -> HistoryScan:
    """Search every blob that any ref leads to, and the messages of their commits."""
    repository, directory, settings = context.repository, context.directory, context.settings
    git = repository.git
    allowed = allowlist(settings)
    verdicts = Verdicts(repository.cache_dir, settings)
    problems: list[Problem] = []
    checked = 0
    for batch in history_blobs(git, directory):
        checked += len(batch)
        clean = verdicts.clean(oid for oid, _path, _size in batch)
        unseen = [row for row in batch if row[0] not in clean]
        contents = git.blobs([oid for oid, _path, _size in unseen], MOST_BYTES)
        for (oid, path, _size), data in zip(unseen, contents, strict=True):
            text = Text(path, oid, data.decode(errors="replace"))
            found = find(text.text, allowed)
            told = secrets.unexpected(path, found, directory, settings)
            if told:
                where = _where(git, oid, directory)
                problems.extend(secrets.problems(text.replace(where=where), told))
            elif not found:
                verdicts.add(oid)
        verdicts.save()
    commits = git.line("rev-list", "--all", "--full-history", "--", directory).split()
    clean = verdicts.clean(commits)
    for text in _messages(git, [one for one in commits if one not in clean]):
        found = find(text.text, allowed)
        problems.extend(secrets.problems(text, found))
        if not found:
            verdicts.add(text.oid)
    verdicts.save()
    return HistoryScan(
        checked, tuple(sorted(problems, key=lambda p: (p.path, p.line, p.code, p.message)))
    )


def history_blobs(git: Git, directory: str) -> Iterator[list[tuple[str, str, int]]]:
    """Yield id, path and size of every blob below a directory in any commit, in batches, by id.

    Of several paths of a blob it is the one that git lists first.
    """
    answer = git.run("rev-list", "--objects", "--all", "--full-history", "--", directory)
    found: dict[str, str] = {}
    for row in answer.decode(errors="replace").splitlines():
        oid, _space, path = row.partition(" ")
        if path.startswith(directory + "/"):
            found.setdefault(oid, path)
    oids = sorted(found)
    infos = zip(oids, git.infos(oids), strict=True)
    blobs = [(oid, found[oid], info[2]) for oid, info in infos if info and info[1] == "blob"]
    return batches(blobs, HISTORY_BATCH, BATCH_BYTES, lambda blob: min(blob[2], MOST_BYTES))


def _where(git: Git, oid: str, directory: str) -> str:
    """Say which commit first held a blob, and who wrote it."""
    found = git.line(
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
    short, author, day = (*found.split("\0"), "", "")[:3]
    return f"in commit {short} by {author} on {day}"
