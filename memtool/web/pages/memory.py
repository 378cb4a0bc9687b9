"""The page of a memory: its text, and the proof of it."""

from __future__ import annotations

from memtool.commands import _features
from memtool.commands.blame import blame
from memtool.commands.log import log
from memtool.commands.show import show
from memtool.commands.why import why
from memtool.errors import MemtoolError
from memtool.index import index
from memtool.memory.fields import order
from memtool.memory.memory import as_text
from memtool.search import conflicts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar

    from memtool.commands.blame import Blame
    from memtool.commands.log import Log
    from memtool.commands.show import MemoryView
    from memtool.commands.why import Why
    from memtool.store.context import Context
    from memtool.store.tree import Tree
    from memtool.web.page import PageQuery

    Answered = TypeVar("Answered")

EVENTS = 30
INJECTIONS = 10
HEAD_KEYS = ("id", "title", "type", "category", "status", "confidence", "timestamp")
LINKS = ("supersedes", "related_to", "resolves", "derived_from", "parent")
"""Keys that the head of the page shows."""


def memory(context: Context, query: PageQuery) -> dict[str, Any]:
    """Return a memory with who wrote each part, what it rests on, and what happened to it.

    What cannot be found out, as in a shallow clone or without a ledger, is left out with a note.
    """
    at, as_of = query.text("at") or None, query.text("as_of") or None
    shown = show(context, query.text("id"), at=at, as_of=as_of)
    notes = [*context.notes]

    def asked(ask: Callable[[], Answered]) -> Answered | None:
        try:
            return ask()
        except MemtoolError as error:
            notes.append(error.message)
            return None

    values = with_proof(
        shown,
        contrary=asked(lambda: contrary(context, index.open(context, at)).get(shown.id, [])),
        blame=asked(lambda: blame(context, shown.id, at=at)),
        why=asked(lambda: why(context, shown.id, at=at)),
        log=asked(lambda: log(context, shown.id, at=at, limit=EVENTS)),
    )
    return values | {
        "injected": asked(lambda: _injections(context, shown.id)) if at is None else None,
        "at": at or "",
        "elsewhere": _features.links(context, shown.type),
        "notes": list(dict.fromkeys(notes)),
    }


def with_proof(
    shown: MemoryView,
    *,
    contrary: list[str] | None,
    blame: Blame | None,
    why: Why | None,
    log: Log | None,
) -> dict[str, Any]:
    """Return what the page of a memory shows of a commit; None for what cannot be found out."""
    return {
        "title": shown.title,
        "shown": shown,
        "keys": keys(shown),
        "links": links(shown),
        "contrary": contrary,
        "blame": blame,
        "why": why,
        "log": log,
        "injected": None,
        "at": "",
        "elsewhere": (),
        "notes": (),
    }


def contrary(context: Context, tree: Tree) -> dict[str, list[str]]:
    """Return the ids of what certainly contradicts each memory, where nobody accepted that."""
    cache_dir = context.repository.cache_dir if context.is_cached else ""
    found: dict[str, set[str]] = {}
    for one in conflicts.open_contradictions(tree, context.clock.now, cache_dir) or ():
        for id_ in one.ids if one.is_certain else ():
            found.setdefault(id_, set()).update(one.ids)
    return {id_: sorted(ids - {id_}) for id_, ids in found.items()}


def keys(shown: MemoryView) -> list[tuple[str, str]]:
    """Return the keys of the file that head and links of the page do not show, in their order."""
    rows = ((key, as_text(shown.fields[key])) for key in sorted(shown.fields, key=order))
    return [(key, text) for key, text in rows if key not in (*HEAD_KEYS, *LINKS) and text]


def links(shown: MemoryView) -> list[tuple[str, tuple[str, ...]]]:
    """Return the memories that this one is related to, by the name of the relation."""
    own = [(name.replace("_", " "), shown.fields[name]) for name in LINKS if name in shown.fields]
    named = [(name, (ids,) if isinstance(ids, str) else tuple(ids)) for name, ids in own]
    reverse = [(name.replace("_", " "), ids) for name, ids in shown.relations.items() if ids]
    return [*named, *reverse]


def _injections(context: Context, id_: str) -> tuple[Any, ...]:
    return log(context, id_, injected=True, limit=INJECTIONS).injections or ()
