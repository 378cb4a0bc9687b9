"""The page of what agents were given: each block with its memories, by day, the newest first."""

from __future__ import annotations

from itertools import groupby

from memtool.commands.log import log
from memtool.sessions import store
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from memtool.commands.log import InjectionRow
    from memtool.store.context import Context
    from memtool.web.page import PageQuery

ROWS = 200
"""Memories of a page, in one block or in many."""
MAX_ROWS = 5_000


class DeliveredBlock(Value):
    """What one session was given at one moment: its memories in their order."""

    moment: str
    session: str
    has_prompt: bool
    rows: tuple[InjectionRow, ...]


def deliveries(context: Context, query: PageQuery) -> dict[str, Any]:
    """Return the blocks that agents were given in this clone; `limit` memories in all."""
    limit = query.number("limit", ROWS, MAX_ROWS) or ROWS
    answer = log(context, injected=True, limit=limit)
    blocks = group_blocks(answer.injections or ())
    sessions = set(store.open_sessions(context).ids())
    return {
        "title": "Given to agents",
        "days": [
            (day, tuple(some)) for day, some in groupby(blocks, key=lambda block: block.moment[:10])
        ],
        "sessions": sessions,
        "more": limit + ROWS if answer.has_more and limit < MAX_ROWS else 0,
        "notes": [*context.notes],
    }


def group_blocks(rows: Sequence[InjectionRow]) -> list[DeliveredBlock]:
    """Return rows of the ledger as the blocks that they were: one moment of one session each."""
    return [
        DeliveredBlock(moment, session, bool(prompt), tuple(some))
        for (moment, session, prompt), some in groupby(
            rows, key=lambda row: (row.moment, row.session, row.prompt)
        )
    ]
