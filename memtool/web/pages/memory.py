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
from memtool.memory.memory import to_text
from memtool.search import conflicts
from memtool.store import provenance
from memtool.web.pages.lineage import has_lineage

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
    """Return a memory with the author of each part, its sources, and its history.

    A part that is unknown, as in a shallow clone or without a ledger, is left out with a note.
    """
    at, as_of = query.text("at") or None, query.text("as_of") or None
    shown = show(context, query.text("id"), at=at, as_of=as_of)
    notes = [*context.notes]

    def if_answered(ask: Callable[[], Answered]) -> Answered | None:
        try:
            return ask()
        except MemtoolError as error:
            notes.append(error.message)
            return None

    tree = index.open(context, at)
    is_only_there = shown.id not in tree  # on the trusted branch, in whose history it is found
    there = _trusted_commit(context) if is_only_there else at
    values = with_proof(
        shown,
        contrary=if_answered(lambda: find_contradicting(context, tree).get(shown.id, [])),
        blame=if_answered(lambda: blame(context, shown.id, at=there)),
        why=if_answered(lambda: why(context, shown.id, at=there)),
        log=if_answered(lambda: log(context, shown.id, at=there, limit=EVENTS)),
    )
    return values | {
        "is_only_there": is_only_there,
        "has_lineage": not is_only_there and has_lineage(tree, shown.id),
        "injected": if_answered(lambda: _read_injections(context, shown.id))
        if there is None
        else None,
        "at": at or "",
        "elsewhere": _features.find_links(context, shown.type),
        "notes": list(dict.fromkeys(notes)),
    }


def _trusted_commit(context: Context) -> str:
    """Return the commit of the trusted branch."""
    ref = context.project.trust_settings.text("trust.ref")
    return provenance.resolve_trusted(context.repository, ref)


def with_proof(
    shown: MemoryView,
    *,
    contrary: list[str] | None,
    blame: Blame | None,
    why: Why | None,
    log: Log | None,
) -> dict[str, Any]:
    """Return the part of the page that a commit decides; None if it is unknown."""
    return {
        "title": shown.title,
        "shown": shown,
        "keys": list_keys(shown),
        "links": list_links(shown),
        "contrary": contrary,
        "blame": blame,
        "why": why,
        "log": log,
        "injected": None,
        "at": "",
        "is_only_there": False,
        "has_lineage": True,
        "elsewhere": (),
        "notes": (),
    }


def find_contradicting(context: Context, tree: Tree) -> dict[str, list[str]]:
    """Return the ids that certainly contradict each memory, unless that was accepted."""
    cache_dir = context.repository.cache_dir if context.is_cached else ""
    contradicting: dict[str, set[str]] = {}
    for clash in conflicts.find_open_contradictions(tree, context.clock.now, cache_dir) or ():
        for id_ in clash.ids if clash.is_certain else ():
            contradicting.setdefault(id_, set()).update(clash.ids)
    return {id_: sorted(ids - {id_}) for id_, ids in contradicting.items()}


def list_keys(shown: MemoryView) -> list[tuple[str, str]]:
    """Return the keys of the file that head and links of the page do not show, in their order."""
    rows = ((key, to_text(shown.fields[key])) for key in sorted(shown.fields, key=order))
    return [(key, text) for key, text in rows if key not in (*HEAD_KEYS, *LINKS) and text]


def list_links(shown: MemoryView) -> list[tuple[str, tuple[str, ...]]]:
    """Return the memories that this one is related to, by the name of the relation."""
    own = [(name.replace("_", " "), shown.fields[name]) for name in LINKS if name in shown.fields]
    named = [(name, (ids,) if isinstance(ids, str) else tuple(ids)) for name, ids in own]
    reverse = [(name.replace("_", " "), ids) for name, ids in shown.relations.items() if ids]
    return [*named, *reverse]


def _read_injections(context: Context, id_: str) -> tuple[Any, ...]:
    return log(context, id_, injected=True, limit=INJECTIONS).injections or ()
