"""The trusted branch's newer memories in a block: notices, and successors next to a memory.

A memory that only the trusted branch has yields to the memories of this branch: it takes no place
from one that says nearly the same.
"""

from __future__ import annotations

from memtool.inject.candidates import Signal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from memtool.search.retrieve import Scope
    from memtool.store.tree import Record

NEWER = "newer"
"""The field of an item with the ids of what replaces it on the trusted branch."""


def read_signal(scope: Scope) -> Signal | None:
    """Return the signal of the trusted branch for a scope; None without an overlay."""
    tree = scope.tree
    if tree.overlay is None:
        return None

    def describe(record: Record) -> str:
        return tree.short_ids.shorten_in(tree.find_notice(record))

    def details(record: Record) -> Mapping[str, Any]:
        newer = tree.find_newer_ids(record)
        return {NEWER: newer} if newer else {}

    return Signal(
        describe,
        details,
        companions=tree.find_newer_ids,
        is_guest=tree.is_from_overlay,
    )
