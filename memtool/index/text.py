"""The searchable text of a memory: its fields, its body, and its day in words."""

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
"""Keys whose words find a memory, in addition to its body and day."""


SELF_DESCRIBING = frozenset(
    {"tags", "aliases", "trigger_phrases", "question_types", "domain", "feature"}
)
"""Keys by which a memory describes itself, outside its text.

A block does not show them, so they do not count across levels of trust.
"""


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


def _is_boilerplate(key: str, text: str) -> bool:
    """Return whether a text is a source whose name does not describe the content."""
    return key == "source" and text.startswith(("session:", "tool:"))


_MAX_CACHED_DAYS = 1 << 12

_days: dict[int, str] = {}


def list_texts(record: Record) -> tuple[tuple[str, str], ...]:
    """Return the searchable texts of a memory, each with its key.

    A list gives one text per item. The day is in words, `22 February 2026`, as people search for
    it. A session or a tool that is a source is left out: its name does not describe the content.
    """
    memory = record.memory
    values = memory.fields
    texts = []
    for key in TEXT_KEYS:
        value = values.get(key)
        if isinstance(value, tuple):
            texts += [(key, item) for item in value if item and not _is_boilerplate(key, item)]
        elif value and isinstance(value, str):
            texts.append((key, value))
    texts.append(("day", _format_day(memory.timestamp // timestamps.DAY_S)))
    texts.append(("body", memory.body))
    return tuple(texts)


def to_plain_terms(record: Record, language: str) -> bytes:
    """Return a memory as terms without its self-description (see `scoring.analyze_document`)."""
    texts = tuple(field for field in list_texts(record) if field[0] not in SELF_DESCRIBING)
    return scoring.analyze_document(scoring.Document(record.path, texts), language)[1]


def _format_day(number: int) -> str:
    """Return a day in words; `number` counts days since 1970."""
    day_text = _days.get(number)
    if day_text is None:
        if len(_days) >= _MAX_CACHED_DAYS:
            _days.clear()
        year, month, day = timestamps.format_date(number * timestamps.DAY_S).split("-")
        day_text = _days[number] = f"{int(day)} {MONTHS[int(month) - 1]} {year}"
    return day_text
