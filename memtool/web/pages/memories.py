"""The list of memories that a filter matches, to decide about several at once."""

from __future__ import annotations

from memtool.commands.list import list as list_memories
from memtool.errors import MemtoolError
from memtool.memory.lifecycle import EXPIRES_SOON_DAYS
from memtool.value import Value
from memtool.web.actions import SEVERAL
from memtool.web.page import MAX_ROWS
from memtool.web.pages.search import IN_FORM
from memtool.web.refusals import SHELL, word_refusal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from memtool.store.context import Context
    from memtool.web.page import PageQuery

SHOWN = 50
MAX_OFFSET = 1_000_000


class Heading(Value):
    """The title of a list, what its memories have in common, and what it says if it is empty."""

    title: str
    about: str
    empty: str


HEADINGS = {
    "": Heading(
        "Memories",
        "All that is in use, the newest first.",
        "There are no memories yet.",
    ),
    "is:archived": Heading(
        "Archived",
        "These were archived. A search finds them only if it asks for them.",
        "Nothing is archived.",
    ),
    "is:candidate": Heading(
        "Candidates",
        "No user has confirmed these yet. Agents see that; some expire if no user does.",
        "There are no candidates.",
    ),
    "is:conflicted": Heading(
        "In conflict",
        "Each contradicts another memory, or replaces the same one as another.",
        "No memory contradicts another one.",
    ),
    "is:deleted": Heading(
        "Forgotten",
        "These were forgotten, with a reason. They can be restored.",
        "Nothing was forgotten.",
    ),
    "is:deprecated": Heading(
        "Deprecated",
        "Agents are not shown these any more; a search still finds them.",
        "Nothing is deprecated.",
    ),
    "is:drifted": Heading(
        "Drifted from the code",
        "The code that these name has changed since they were confirmed.",
        "All memories still fit the code that they name.",
    ),
    "is:due": Heading(
        "Due for review",
        "These were last confirmed long ago. Confirm what still holds.",
        "Nothing is due for review.",
    ),
    "is:expired": Heading(
        "Expired",
        "The time of these is over, so they are not shown. Confirm one to bring it back.",
        "Nothing has expired.",
    ),
    "is:expiring": Heading(
        "Expiring soon",
        f"The time of these is over within {EXPIRES_SOON_DAYS} days. Confirm what still holds.",
        f"Nothing expires within {EXPIRES_SOON_DAYS} days.",
    ),
    "is:local": Heading(
        "Not committed",
        "These are in no commit yet, so no other clone has them.",
        "All memories are committed.",
    ),
    "is:pinned": Heading(
        "Pinned",
        "Every session of an agent begins with these.",
        "Nothing is pinned.",
    ),
    "is:superseded": Heading(
        "Replaced",
        "A newer memory has taken the place of each of these.",
        "No memory was replaced.",
    ),
    "is:unsettled": Heading(
        "Unsettled",
        "What these rest on was replaced, or no longer holds. Say of each whether it still holds.",
        "All memories rest on what holds.",
    ),
}
"""The heading of each list that other pages lead to, by its filter."""
SORTS = {
    "newest": "newest first",
    "oldest": "oldest first",
    "importance": "most important first",
    "accessed": "most used first",
    "title": "by title",
}
"""The orders of a list, and their words."""


def memories(context: Context, query: PageQuery) -> dict[str, Any]:
    """Return the memories that match a filter; all in use without one."""
    words, sort = query.text("q"), query.text("sort", "newest")
    if sort not in SORTS:
        raise MemtoolError(f"unknown order {sort[:40]!r}", hint=f"one of {', '.join(SORTS)}")
    limit = query.number("limit", SHOWN) or MAX_ROWS
    offset = query.number("offset", 0, MAX_OFFSET)
    text = words if ":" in words else f'Memories with "{words}"'
    heading = HEADINGS.get(words.lower(), Heading(text, "", "No memory matches."))
    values: dict[str, Any] = {
        "title": heading.title,
        "heading": heading,
        "query": query,
        "words": words,
        "sort": sort,
        "sorts": SORTS,
        "error": None,
        "refused": None,
        "rows": (),
        "total": 0,
        "first": offset,
        "before": None,
        "after": None,
        "expired": 0,
        "several": SEVERAL,
        "notes": [],
    }
    try:
        listed = list_memories(
            context,
            *([words] if words else ()),
            limit=limit,
            offset=offset,
            sort=sort,  # type: ignore[arg-type]
        )
    except MemtoolError as error:
        if error.code not in IN_FORM:
            raise
        return values | {"error": error, "refused": word_refusal(error, error.hint)}
    end = offset + len(listed.memories)
    return values | {
        "rows": listed.memories,
        "total": listed.total,
        "before": max(0, offset - limit) if offset else None,
        "after": end if listed.memories and end < listed.total else None,
        "expired": listed.expired,
        "notes": [note for note in context.notes if not SHELL.search(note)],
    }
