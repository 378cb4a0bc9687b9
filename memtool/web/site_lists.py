"""The lists of the static site: memories by month, category, type, status and tag."""

from __future__ import annotations

from memtool.memory import timestamps
from memtool.value import Value, split_batches
from memtool.web import words
from memtool.web.site_links import to_file_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from memtool.store.tree import Record


LISTED = 200
"""Memories of one page of a list."""
KINDS = {"month": "By month", "category": "By category", "type": "By type", "status": "By status"}


class ListPage(Value):
    """A page of a list; `kind` and `subject` say of what, such as `type` and `type decision`.

    A section is a heading, empty for none, the memories below it, the newest first, and how many
    more there are. `newer` and `older` are files of the same list, empty for none.
    """

    file: str
    kind: str
    subject: str
    name: str
    title: str
    sections: tuple[tuple[str, tuple[Record, ...], int], ...]
    newer: str = ""
    older: str = ""


def build_lists(records: Sequence[Record]) -> Iterator[ListPage]:
    """Yield the pages of each list; a new memory changes the last page of it."""
    ordered = sorted(records, key=lambda record: (record.memory.timestamp, record.id))
    for kind in KINDS:
        grouped: dict[str, list[Record]] = {}
        for record in ordered:
            month = timestamps.format_date(record.memory.timestamp)[:7]
            value = month if kind == "month" else str(getattr(record.memory, kind))
            grouped.setdefault(value, []).append(record)
        for value in sorted(grouped):
            parts = [*split_batches(grouped[value], LISTED)]
            files = [
                f"list/{kind}-{to_file_name(value)}-{at}.html" for at in range(1, len(parts) + 1)
            ]
            for at, some in enumerate(parts):
                of = f", part {at + 1}" if len(parts) > 1 else ""
                yield ListPage(
                    files[at],
                    kind,
                    f"{kind} {value}",
                    value,
                    f"Memories: {kind} {value}{of}",
                    (("", tuple(some[::-1]), 0),),
                    files[at + 1] if at + 1 < len(parts) else "",
                    files[at - 1] if at else "",
                )


def build_tag_lists(records: Sequence[Record]) -> list[ListPage]:
    """Return the pages of tags: those that begin alike are on one."""
    tagged: dict[str, list[Record]] = {}
    for record in sorted(records, key=lambda record: (-record.memory.timestamp, record.id)):
        for tag in dict.fromkeys(record.memory.items("tags")):
            tagged.setdefault(tag, []).append(record)
    sizes = {tag: min(LISTED, len(some)) for tag, some in tagged.items()}
    lists = []
    for prefix, tags in words.split(sizes, LISTED).items():
        sections = tuple(
            (tag, tuple(tagged[tag][:LISTED]), len(tagged[tag]) - sizes[tag]) for tag in tags
        )
        name = f"{prefix}…" if len(tags) > 1 else tags[0]
        lists.append(
            ListPage(
                f"list/tags-{to_file_name(prefix)}.html", "tag", "", name, f"Tags: {name}", sections
            )
        )
    return lists
