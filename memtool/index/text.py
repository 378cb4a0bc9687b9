"""The text of a memory that is searched: its fields and its body as words, and the day in words."""

from __future__ import annotations

from memtool.index import scoring
from memtool.memory import timestamps

TYPE_CHECKING = False
if TYPE_CHECKING:
    from memtool.store.tree import Record


TEXT_KEYS = (
    "title",
    "tags",
    "category",
    "id",
    "aliases",
    "trigger_phrases",
    "question_types",
    "domain",
    "feature",
    "error_signature",
    "environment",
    "task_id",
    "files",
    "source",
)
"""Keys whose words find a memory, as do its body and its day."""


SELF_DESCRIBING = frozenset(
    {"tags", "aliases", "trigger_phrases", "question_types", "domain", "feature"}
)
"""Keys by which a memory says what it is about, in no words of its text: nobody reads them in a
block, so that they count for nothing across levels of trust."""


MONTHS = (
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)


def _is_session(key: str, text: str) -> bool:
    return key == "source" and text.startswith("session:")


_MOST_DAYS = 1 << 12

_days: dict[int, str] = {}


def fields(record: Record) -> tuple[tuple[str, str], ...]:
    """Return the texts of a memory in which words and phrases are looked for, each by its key.

    A list gives one text per item. The day is there in words, `22 February 2026`, as people ask
    for it. A session that is a source is not: its name says nothing about what was said in it.
    """
    memory = record.memory
    own = memory.fields
    found = []
    for key in TEXT_KEYS:
        value = own.get(key)
        if isinstance(value, tuple):
            found += [(key, item) for item in value if item and not _is_session(key, item)]
        elif value and isinstance(value, str):
            found.append((key, value))
    found.append(("day", _day(memory.timestamp // timestamps.DAY_S)))
    found.append(("body", memory.body))
    return tuple(found)


def plain_text(record: Record, language: str) -> bytes:
    """Return a memory as terms without what it says of itself (see `scoring.searchable`)."""
    kept = tuple(field for field in fields(record) if field[0] not in SELF_DESCRIBING)
    return scoring.searchable(scoring.Document(record.path, kept), language)[1]


def _day(number: int) -> str:
    """Return a day since 1970 in words."""
    found = _days.get(number)
    if found is None:
        if len(_days) >= _MOST_DAYS:
            _days.clear()
        year, month, day = timestamps.date(number * timestamps.DAY_S).split("-")
        found = _days[number] = f"{int(day)} {MONTHS[int(month) - 1]} {year}"
    return found
