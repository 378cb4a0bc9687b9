"""The staged content: exactly the bytes that the next commit will hold, as git's index has them.

A hook inherits GIT_INDEX_FILE and GIT_DIR, and every question goes to git with them: under
`commit -a` and `commit PATH` the index in use is a temporary one, and the worktree or the usual
index would show other bytes. Files are read by blob id, never by path.

Only what differs from HEAD is looked at. What lies around it is known from the rows that an earlier
check kept, so a commit of one memory costs about the same in a small tree and in a large one.
"""

from __future__ import annotations

from memtool.gate import taking
from memtool.gate.content import Content, File, Step, Text, read, version_of
from memtool.gate.differences import NO_MODE, Difference, merged
from memtool.gate.kin import Kin, row_of
from memtool.gate.lineage import PURGING, purged_by
from memtool.memory.document import MAX_BYTES
from memtool.memory.problem import Problem
from memtool.store import config as config_file
from memtool.store import snapshot
from memtool.store.tree import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from memtool.memory.changes import Version
    from memtool.store.config import Config
    from memtool.store.repository import Repository

MOST_BYTES = 1 << 20
_LINKS = ("120000", "160000")


def take(
    repository: Repository,
    directory: str,
    now: int,
    env: Mapping[str, str],
    sides: Sequence[Sequence[Difference]],
    head: str,
) -> Content:
    """Take what is staged below the memory directory: the sides of `differences.of_index`.

    Raises:
        MemtoolError: the staged settings cannot be read, or git refuses.
    """
    config_path = f"{directory}/{config_file.CONFIG_NAME}"
    settings = _settings(repository, config_path, head, sides[0])
    deciding = (config_path, config_file.POINTER_NAME)
    if not head or any(row.path in deciding for row in sides[0]):
        return _whole(repository, directory, settings, now, env, head, sides)
    return _part(repository, directory, settings, now, env, sides)


def _settings(repository: Repository, path: str, head: str, rows: Sequence[Difference]) -> Config:
    """Return the settings that the commit will hold."""
    staged = next((row for row in rows if row.path == path), None)
    if staged is not None:
        name = staged.oid if staged.mode.startswith("100") and staged.status != "U" else ""
    else:
        name = f"{head}:{path}" if head else ""
    (info,) = repository.git.infos([name]) if name else (None,)
    if info is None or info[1] != "blob":
        return config_file.DEFAULTS
    return config_file.parse(next(repository.git.blobs([info[0]], config_file.MOST_BYTES)), path)


def _whole(
    repository: Repository,
    directory: str,
    settings: Config,
    now: int,
    env: Mapping[str, str],
    head: str,
    rows: Sequence[Sequence[Difference]],
) -> Content:
    """Look at every staged file: the settings changed, or it is the first commit."""
    whole = taking.read_whole(snapshot.of_index(repository, directory), settings.categories)
    parents = [head, *merged(repository, env)] if head else []
    by_path = {file.path: file for file in whole.files}
    return Content(
        repository=repository,
        directory=directory,
        settings=settings,
        now=now,
        files=whole.files,
        texts=[*whole.texts(), *_other_texts(repository, directory, rows[0])],
        steps=[
            taking.step_from(repository, directory, parent, by_path, settings.categories)
            for parent in parents
        ],
        kin=Kin(whole.rows()),
        head=head,
        kind="index",
        is_whole=True,
        problems=whole.problems,
        records=whole.records,
        earlier=taking.earlier_versions(repository, directory, head, settings.categories),
        was_parted=taking.parted(repository, directory, parents),
        purges=purged_by(env.get(PURGING, "")),
    )


def _part(
    repository: Repository,
    directory: str,
    settings: Config,
    now: int,
    env: Mapping[str, str],
    rows: Sequence[Sequence[Difference]],
) -> Content:
    """Look at the files that differ from HEAD, or in a merge from any parent."""
    from memtool.gate import near_duplicates

    categories = settings.categories
    by_oid = _blobs(repository, directory, [row for side in rows for row in side])
    files = {
        row.path: read(row.path, row.oid, row.mode, by_oid[row.oid], categories)
        for side in rows
        for row in side
        if row.oid in by_oid and row.mode != NO_MODE and _is_memory(row, directory)
    }
    steps = [_step(side, directory, files, by_oid, categories) for side in rows]
    parents = ["HEAD", *merged(repository, env)]
    own = [
        Record(file.memory, file.path, file.oid)
        for file in files.values()
        if file.memory is not None
    ]
    near = near_duplicates.of_staged(repository, directory, categories, rows[0], own)
    return Content(
        repository=repository,
        directory=directory,
        settings=settings,
        now=now,
        files=[files[path] for path in sorted(files)],
        texts=[
            *(Text(file.path, file.oid, file.text) for file in files.values()),
            *_other_texts(repository, directory, rows[0]),
        ],
        steps=steps,
        kin=Kin((row_of(record.memory, record.path) for record in own), near.rows),
        head="HEAD",
        kind="index",
        is_whole=False,
        problems=_faults(rows[0]),
        records=lambda: _records(repository, directory, categories),
        earlier=taking.earlier_versions(repository, directory, "HEAD", categories),
        was_parted=taking.parted(repository, directory, parents),
        near=near,
        purges=purged_by(env.get(PURGING, "")),
    )


def _is_memory(row: Difference, directory: str) -> bool:
    return (
        snapshot.is_memory_path(row.path, directory)
        and row.mode not in _LINKS
        and row.status != "U"
    )


def _blobs(repository: Repository, directory: str, rows: Sequence[Difference]) -> dict[str, bytes]:
    """Read both sides of the memory files that differ."""
    oids = {
        oid
        for row in rows
        if _is_memory(row, directory)
        for mode, oid in ((row.old_mode, row.old_oid), (row.mode, row.oid))
        if mode != NO_MODE and mode not in _LINKS
    }
    wanted = sorted(oids)
    return dict(zip(wanted, repository.git.blobs(wanted, MAX_BYTES), strict=True))


def _step(
    rows: Sequence[Difference],
    directory: str,
    files: Mapping[str, File],
    by_oid: Mapping[str, bytes],
    categories: Collection[str],
) -> Step:
    mine = [row for row in rows if snapshot.is_memory_path(row.path, directory)]
    before = [
        _version(by_oid[row.old_oid], row.path, categories) for row in mine if row.old_oid in by_oid
    ]
    after = [
        version_of(files[row.path]) for row in mine if row.path in files and row.mode != NO_MODE
    ]
    return Step(tuple(before), tuple(after), {})


def _version(data: bytes, path: str, categories: Collection[str]) -> Version:
    from memtool.store import versions  # most commits only add memories

    return versions.of_bytes(data, path, categories)


def _other_texts(repository: Repository, directory: str, rows: Sequence[Difference]) -> list[Text]:
    """Return the texts of staged files that are no memories, such as the settings."""
    mine = [
        row
        for row in rows
        if row.mode not in (NO_MODE, *_LINKS)
        and row.status != "U"
        and not snapshot.is_memory_path(row.path, directory)
    ]
    blobs = repository.git.blobs([row.oid for row in mine], MOST_BYTES)
    return [
        Text(row.path, row.oid, data.decode(errors="replace"))
        for row, data in zip(mine, blobs, strict=True)
    ]


def _faults(rows: Sequence[Difference]) -> list[Problem]:
    """Return what a memory tree must not hold, and what is not merged yet."""
    found = []
    for row in rows:
        if row.status == "U":
            found.append(snapshot.unmerged(row.path))
        elif row.mode in _LINKS:
            found.append(snapshot.not_a_file(row.path))
    return found


def _records(
    repository: Repository, directory: str, categories: Collection[str]
) -> Sequence[Record]:
    return taking.read_whole(snapshot.of_index(repository, directory), categories).records()
