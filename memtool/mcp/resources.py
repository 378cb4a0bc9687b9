"""Resources: the memories as `memory://ID`, to be listed page by page, read and completed.

Only living heads are listed, sorted by id; any memory can be read by its id.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from itertools import islice

from memtool.cli.output import visible
from memtool.commands.show import render, show
from memtool.errors import MemtoolError
from memtool.index import index
from memtool.memory.schema import is_id
from memtool.search.scope import scope_of
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from memtool.store.context import Context
    from memtool.store.tree import Record

SCHEME = "memory://"
TEMPLATE = f"{SCHEME}{{id}}"
MIME_TYPE = "text/plain"
PAGE = 100
"""Memories of one page, and completions of one answer: as many as the protocol allows."""


class ResourcePage(Value):
    """A page of resources; `cursor` asks for the next one, empty at the end."""

    resources: tuple[Resource, ...]
    cursor: str


class Resource(Value):
    """A memory as a resource."""

    uri: str
    id: str
    title: str
    description: str
    modified: str


def page(context: Context, cursor: str) -> ResourcePage:
    """Return the memories behind the one that a cursor names.

    Raises:
        MemtoolError: the cursor is not one of ours, or there are no memories.
    """
    if cursor and not is_id(cursor):
        raise MemtoolError(f"{cursor[:60]!r} is no cursor", hint="list from the beginning")
    found = list(islice(_current(context, cursor, is_after=True), PAGE + 1))
    shown = found[:PAGE]
    return ResourcePage(
        tuple(_resource(record) for record in shown),
        shown[-1].id if len(found) > len(shown) else "",
    )


def read(context: Context, uri: str) -> str:
    """Return a memory as text: its title, citation, keys, what is derived from it, and its body.

    Raises:
        MemtoolError: the address is none of ours, or no memory has that id.
    """
    id_ = uri.removeprefix(SCHEME).rstrip("/")
    if not uri.startswith(SCHEME) or not is_id(id_):
        raise MemtoolError(f"{uri[:200]!r} is not {TEMPLATE}", hint="list the resources")
    shown = show(context, id_)
    if shown.id != id_:  # `show` also takes the beginning of an id
        raise MemtoolError(f"no memory has the id {id_!r}", hint=SCHEME + shown.id)
    return visible(render(shown))


def complete(context: Context, prefix: str) -> tuple[str, ...]:
    """Return the ids of living heads that begin so, sorted, as many as one answer may hold."""
    found: list[str] = []
    for record in _current(context, prefix, is_after=False):
        if not record.id.startswith(prefix) or len(found) == PAGE:
            break
        found.append(record.id)
    return tuple(found)


def _current(context: Context, start: str, *, is_after: bool) -> Iterator[Record]:
    """Yield the living heads from an id on, or from the one after it."""
    catalog = index.open(context)
    facts = scope_of(context, catalog, context.now).facts()
    find = bisect_right if is_after else bisect_left
    first = find(catalog.records, start, key=lambda record: record.id)
    last = ""
    for number in range(first, len(catalog.records)):
        record = catalog.records[number]
        if record.id != last and facts.is_current(record):
            yield record
        last = record.id


def _resource(record: Record) -> Resource:
    memory = record.memory
    return Resource(
        uri=SCHEME + record.id,
        id=record.id,
        title=visible(memory.title),
        description=f"{memory.type}/{memory.category}, {memory.status}, "
        f"{memory.confidence} confidence",
        modified=memory.text("timestamp"),
    )
