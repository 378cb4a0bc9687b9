"""Memories as resources `memory://ID`: pages of them, one as text, ids that begin so.

Only living heads are listed; any memory can be read by its id.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from itertools import islice, takewhile

from memtool.calls.output import visible
from memtool.commands.show import render, show
from memtool.errors import MemtoolError
from memtool.index import index
from memtool.memory.schema import is_id
from memtool.search.scope import scope_of
from memtool.store.context import Context

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from memtool.store.tree import Record

SCHEME = "memory://"
TEMPLATE = f"{SCHEME}{{id}}"
MIME_TYPE = "text/plain"
PAGE = 100
"""Memories of one page, and completions of one answer: as many as the protocol allows."""


def resource_page(context: Context, cursor: str) -> tuple[list[Record], str]:
    """Return the living heads after the id in `cursor`, sorted, and the cursor of the next page.

    An empty cursor asks for the first page, and says that there is no next one.

    Raises:
        MemtoolError: the cursor is not one of ours, or there are no memories.
    """
    if cursor and not is_id(cursor):
        raise MemtoolError(f"{cursor[:60]!r} is no cursor", hint="list from the beginning")
    found = list(islice(_current(context, cursor, is_after=True), PAGE + 1))
    return found[:PAGE], found[PAGE - 1].id if len(found) > PAGE else ""


def described(record: Record) -> dict[str, Any]:
    """Return how a memory is listed."""
    memory = record.memory
    kind = (
        f"{memory.type}/{memory.category}",
        memory.status,
        f"{memory.confidence} confidence",
    )
    return {
        "uri": SCHEME + record.id,
        "name": record.id,
        "title": visible(memory.title),
        "description": ", ".join(kind),
        "mimeType": MIME_TYPE,
        "annotations": {"lastModified": memory.text("timestamp")},
    }


def read_resource(context: Context, uri: str) -> str:
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
    found = (record.id for record in _current(context, prefix, is_after=False))
    return tuple(islice(takewhile(lambda id_: id_.startswith(prefix), found), PAGE))


def _current(context: Context, start: str, *, is_after: bool) -> Iterator[Record]:
    """Yield the living heads from an id on, or from the one after it."""
    catalog = index.open(context)
    facts = scope_of(context, catalog, context.clock.now).facts()
    find = bisect_right if is_after else bisect_left
    for id_ in islice(catalog.ids, find(catalog.ids, start), None):
        record = catalog[id_]
        if facts.is_current(record):
            yield record
