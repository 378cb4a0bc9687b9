"""Memories as resources `memory://ID`: list them by page, read one as text, complete ids.

Only active heads are listed; any memory can be read by its id.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from itertools import islice, takewhile

from memtool.calls.output import make_visible
from memtool.calls.wording import with_tools
from memtool.commands._layout import build_layout
from memtool.commands.show import render, show
from memtool.errors import MemtoolError
from memtool.index import index
from memtool.memory.schema import is_id
from memtool.search.scope import build_scope
from memtool.store.context import Context

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from memtool.calls.procedures import Procedure
    from memtool.store.tree import Record

SCHEME = "memory://"
TEMPLATE = f"{SCHEME}{{id}}"
MIME_TYPE = "text/plain"
PAGE = 100
"""Memories of one page, and completions of one answer: the limit of the protocol."""


def list_page(context: Context, cursor: str) -> tuple[list[Record], str]:
    """Return the active heads after the id in `cursor`, sorted, and the cursor of the next page.

    An empty cursor means the first page; a returned empty cursor means that there is no next one.

    Raises:
        MemtoolError: the cursor is not valid, or the memory directory does not exist.
    """
    if cursor and not is_id(cursor):
        raise MemtoolError(f"{cursor[:60]!r} is not a cursor", hint="list from the beginning")
    records = list(islice(_current_from(context, cursor, is_after=True), PAGE + 1))
    return records[:PAGE], records[PAGE - 1].id if len(records) > PAGE else ""


def describe_memory(record: Record) -> dict[str, Any]:
    """Build the entry of a memory in a list."""
    memory = record.memory
    kind = (
        f"{memory.type}/{memory.category}",
        memory.status,
        f"{memory.confidence} confidence",
    )
    return {
        "uri": SCHEME + record.id,
        "name": record.id,
        "title": make_visible(memory.title),
        "description": ", ".join(kind),
        "mimeType": MIME_TYPE,
        "annotations": {"lastModified": memory.text("timestamp")},
    }


def read_resource(context: Context, uri: str, tools: Mapping[str, Procedure]) -> str:
    """Return a memory as text: its title, citation, keys, lineage and body. Hints name `tools`.

    Raises:
        MemtoolError: the address is not valid, or no memory has that id.
    """
    id_ = uri.removeprefix(SCHEME).rstrip("/")
    if not uri.startswith(SCHEME) or not is_id(id_):
        raise MemtoolError(f"{uri[:200]!r} is not {TEMPLATE}", hint="list the resources")
    shown = show(context, id_)
    if shown.id != id_:  # `show` also takes the beginning of an id
        raise MemtoolError(f'no memory is called "{id_}"', hint=SCHEME + shown.id)
    layout = build_layout(context)
    layout.hint = lambda text: with_tools(text, tools)
    return make_visible(render(shown, layout))


def complete(context: Context, prefix: str) -> tuple[str, ...]:
    """Return the ids of active heads with a prefix, sorted, up to `PAGE`."""
    ids = (record.id for record in _current_from(context, prefix, is_after=False))
    return tuple(islice(takewhile(lambda id_: id_.startswith(prefix), ids), PAGE))


def _current_from(context: Context, start: str, *, is_after: bool) -> Iterator[Record]:
    """Yield the active heads from an id on, or with `is_after` from the next one."""
    catalog = index.open(context)
    facts = build_scope(context, catalog, context.clock.now).facts()
    find = bisect_right if is_after else bisect_left
    for id_ in islice(catalog.ids, find(catalog.ids, start), None):
        record = catalog[id_]
        if facts.is_current(record):
            yield record
