"""Parting: one id that was made twice, on two branches, becomes two.

This is the one conflict that memories of different branches can have. The side that git calls
ours keeps the id; the other one gets a new id and file, and every byte besides.
"""

from __future__ import annotations

import os

from memtool.commands import writing
from memtool.commands.settling import BOTH, Settled
from memtool.errors import MemtoolError
from memtool.memory import document, identity
from memtool.memory.memory import Memory
from memtool.store import files
from memtool.store.commits import commit_files
from memtool.store.snapshot import is_memory_path
from memtool.workspace import Workspace


def part_all(
    ws: Workspace, wanted: tuple[str, ...], *, commit: bool, dry_run: bool
) -> list[Settled]:
    """Part the ids that are named, or every id that was made twice.

    In an unfinished merge both sides are staged; the commit that concludes it is the user's.

    Raises:
        MemtoolError: none was made twice, a file conflicts in another way, or git refuses.
    """
    unmerged = _unmerged(ws)
    if unmerged:
        if commit:
            raise MemtoolError(
                "a merge is unfinished, and only git can conclude it",
                hint="leave out --commit, then git commit",
                code="merging",
            )
        chosen = {path: sides for path, sides in unmerged.items() if _is_named(path, wanted)}
        settled = [
            _part_unmerged(ws, path, sides, dry_run=dry_run) for path, sides in chosen.items()
        ]
    else:
        settled = _part_tree(ws, wanted, commit=commit, dry_run=dry_run)
    if not settled:
        raise MemtoolError(
            f"{' '.join(wanted)} was not made twice" if wanted else "no id was made twice",
            hint="memtool conflicts lists what contradicts each other",
            code="no-conflict",
        )
    return settled


def _unmerged(ws: Workspace) -> dict[str, dict[str, str]]:
    """Return the blobs of each unmerged memory file by git's stages: 1 before, 2 ours, 3 theirs."""
    answer = ws.repository.git.run("ls-files", "--unmerged", "-z", "--", ws.directory)
    found: dict[str, dict[str, str]] = {}
    for row in answer.split(b"\0")[:-1]:
        meta, _tab, raw = row.partition(b"\t")
        _mode, oid, stage = meta.decode().split()
        path = os.fsdecode(raw)
        if is_memory_path(path, ws.directory):
            found.setdefault(path, {})[stage] = oid
    return found


def _is_named(path: str, wanted: tuple[str, ...]) -> bool:
    name = path.rpartition("/")[2].removesuffix(".md")
    return not wanted or name in wanted or path in wanted


def _part_unmerged(ws: Workspace, path: str, sides: dict[str, str], *, dry_run: bool) -> Settled:
    if set(sides) != {"2", "3"}:
        raise MemtoolError(
            f"{path} was changed on both sides, not made twice",
            hint=f"keep one side with git checkout --ours or --theirs -- {path}, then git add it",
            code="merging",
        )
    blobs = ws.repository.git.blobs([sides["2"], sides["3"]], document.MAX_BYTES)
    ours, theirs = blobs
    memory = writing.read(ws, ours, path)
    new_id, new_path, data = _renamed(ws, theirs, path, dry_run=dry_run)
    if not dry_run:
        top = ws.repository.top
        files.replace(top, path, ours, expected=writing.bytes_of(top, path))
        ws.repository.git.run("add", "--force", "--", path, new_path)
        ws.notes.append(f"git commit concludes the merge; what names {memory.id} means {path}")
    paths = () if dry_run else (path, new_path)
    return Settled((memory.id, new_id), BOTH, new_id, new_path, None, paths, data.decode(), dry_run)


def _part_tree(
    ws: Workspace, wanted: tuple[str, ...], *, commit: bool, dry_run: bool
) -> list[Settled]:
    """Part ids that two files of the worktree have, which lie in different directories."""
    tree = ws.tree()
    settled = []
    for first in tree.by_id.values():
        same = [record for record in tree.records if record.id == first.id]
        same.sort(key=lambda record: (record.memory.timestamp, record.path))
        for record in same[1:] if _is_named(f"/{first.id}.md", wanted) else ():
            top = ws.repository.top
            data = writing.bytes_of(top, record.path)
            if data is None:
                continue
            new_id, new_path, renamed = _renamed(ws, data, record.path, dry_run=dry_run)
            done = None
            if not dry_run:
                _remove(top, record.path)
                if commit:
                    done = _committed(ws, record.path, new_path, record.memory, new_id)
            paths = () if dry_run else (record.path, new_path)
            settled.append(
                Settled((first.id, new_id), BOTH, new_id, new_path, done, paths,
                        renamed.decode(), dry_run)
            )  # fmt: skip
    return settled


def _committed(ws: Workspace, old_path: str, new_path: str, memory: Memory, new_id: str) -> str:
    trailers = {"Memory-Id": new_id, "Reason": f"{memory.id} was made twice"}
    line = writing.subject("give another id to", memory)
    known = ws.repository.git.run("ls-files", "-z", "--", old_path)
    return commit_files(
        ws.repository, [old_path, new_path] if known else [new_path], line, trailers
    )


def _remove(top: str, path: str) -> None:
    try:
        os.unlink(os.path.join(top, path))
    except OSError as error:
        raise MemtoolError(
            f"{path} cannot be removed: {os.strerror(error.errno or 0)}",
            hint=f"git rm {path}",
            code="disk",
        ) from None


def _renamed(ws: Workspace, data: bytes, path: str, *, dry_run: bool) -> tuple[str, str, bytes]:
    """Write a memory under a new id; return the id, its path, and the bytes."""
    memory = writing.read(ws, data, path)
    for _attempt in range(writing.DRAWS):
        new_id = identity.make_id(memory.type, memory.timestamp, memory.title, ws.random(3))
        edited = document.edit(data, {"id": new_id}, path)
        place = f"{ws.directory}/{identity.place(memory.with_fields(id=new_id))}"
        try:
            if not dry_run:
                files.create(ws.repository.top, place, edited)
        except files.Taken:
            continue
        return new_id, place, edited
    raise MemtoolError("no free id was found", hint="run the same command again", code="id-taken")
