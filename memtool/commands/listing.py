"""Listing: what `list`, `search` and `show` share: the row of a memory, scope, order, aliases."""

from __future__ import annotations

import time

from memtool.errors import MemtoolError
from memtool.memory import moments
from memtool.search import expansion
from memtool.search.retrieve import Scope
from memtool.store.provenance import Origin
from memtool.store.tree import Record, Tree
from memtool.value import Value
from memtool.workspace import Workspace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    SortKey = Callable[[Record], tuple[float | str, ...]]


class Row(Value):
    """A memory as a list shows it. `commit` is the full id of the last one, None without one."""

    id: str
    title: str
    type: str
    category: str
    status: str
    confidence: str
    path: str
    timestamp: str
    commit: str | None
    trust: str


SORTS: dict[str, SortKey] = {
    "newest": lambda record: (-record.memory.timestamp, record.id, record.path),
    "oldest": lambda record: (record.memory.timestamp, record.id, record.path),
    "importance": lambda record: (-record.memory.importance, record.id, record.path),
    "title": lambda record: (record.memory.title.casefold(), record.id, record.path),
    "id": lambda record: (record.id, record.path),
}
"""Orders that need no score. Every key ends in the id, so that no two memories are equal."""


def row(record: Record, origins: Mapping[str, Origin]) -> Row:
    """Return the row of a memory."""
    memory = record.memory
    origin = origins[record.path]
    return Row(
        id=record.id,
        title=memory.title,
        type=memory.type,
        category=memory.category,
        status=memory.status,
        confidence=memory.confidence,
        path=record.path,
        timestamp=memory.text("timestamp"),
        commit=origin.commit or None,
        trust=origin.trust,
    )


def scope(ws: Workspace, tree: Tree, now: int) -> Scope:
    """Return what a search of a tree needs to know, as seen at the second `now`."""
    return Scope(
        tree=tree,
        now=now,
        config=ws.settings,
        aliases=expansion.parse(aliases_file(ws), aliases_path(ws)),
        origins=lambda: ws.origins(tree, tree.records),
        accesses=lambda ids: _accesses(ws, ids),
        companions=lambda files: _companions(ws, tree, files),
    )


def _accesses(ws: Workspace, ids: Iterable[str]) -> Mapping[str, int]:
    from memtool.store import tallies  # only where a setting asks for them

    return tallies.accesses(ws.repository.cache_dir, ids)


def _companions(ws: Workspace, tree: Tree, files: tuple[str, ...]) -> tuple[str, ...]:
    basis = None if ws.is_global else ws.witness(tree).basis  # the files are a project's
    if basis is None:
        return ()
    from memtool.store import cochange  # most prompts come without files

    repository, directory = basis.repository, basis.directory
    return cochange.companions(repository, directory, basis.head, files, is_cached=ws.is_cached)


def timed(ws: Workspace, scope: Scope) -> Scope:
    """Return a scope with a time limit.

    What is asked as of another moment, of a revision or at a fixed clock is asked again to get the
    same answer: there nothing depends on the machine.
    """
    is_replay = ws.env.get("MEMTOOL_NOW") or scope.now != ws.now
    if is_replay or scope.tree.snapshot.kind != "worktree":
        return scope
    return scope.replace(clock=time.monotonic)


def aliases_path(ws: Workspace) -> str:
    """Return where the aliases stand, relative to the top."""
    return f"{ws.directory}/{expansion.ALIASES_NAME}"


def aliases_file(ws: Workspace) -> bytes | None:
    """Return the bytes of the aliases, of HEAD in a bare repository; None where there are none."""
    return ws.file(aliases_path(ws), "bad-alias")


def limit_of(ws: Workspace, limit: int | None) -> int:
    """Return how many results are wanted. Raises MemtoolError for less than none."""
    if limit is None:
        return ws.settings.count("search.limit")
    if limit < 0:
        raise MemtoolError(
            f"--limit is {limit}, less than none", hint="give a number from 0 up", code="bad-limit"
        )
    return limit


def tell_rest(ws: Workspace, shown: int, total: int, hint: str) -> None:
    """Note on stderr that there is more than was printed."""
    if shown < total:
        ws.notes.append(f"{shown} of {total} shown; {hint}")


def day(timestamp: str) -> str:
    """Return the UTC day of a moment as it stands in a memory."""
    return moments.date(moments.parse(timestamp))
