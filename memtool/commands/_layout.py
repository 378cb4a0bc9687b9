"""The layout of text for people: one grid for all verbs.

A terminal has a width, cut cells and relative dates. A pipe gets the same lines whole, with ISO
days. Memories are named by their short ids, and by their titles where there is room.
"""

from __future__ import annotations

from memtool.errors import MemtoolError
from memtool.memory import timestamps
from memtool.memory.trust import SHORT_ID_DIGITS
from memtool.value import cached_property, format_count

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from memtool.memory.memory import Memory
    from memtool.store.context import Context
    from memtool.store.tree import Tree

MAX_PROSE_WIDTH = 100
"""Cells of a line of prose, and the right edge of a title line: longer ones are hard to read."""
MIN_TITLE_WIDTH = 44
"""Cells that a title keeps: other columns go before it is cut further."""
MAX_PADDED_WIDTH = 60
"""Cells to which a pipe pads a column; a longer cell shifts only its own row."""
MAX_ROWS = 3
"""Rows of a section in the text without --all. One more is shown rather than counted."""
WIDE_WIDTH = 100
"""Cells from which on a row has all its states, and its kind."""


class Layout:
    """Formats for one answer. `width` is that of the terminal in cells, 0 for a pipe.

    `read_tree` opens the memories that ids are of; None if they cannot be read. `has_trusted` says
    whether there is a trusted branch, so that it is worth a word if a memory is not on it.
    `reports` are lines for stderr: what was done, or that nothing was found. `hint` words
    a sentence with a command or an option for the interface; it must not quote a memory.
    """

    def __init__(
        self,
        read_tree: Callable[[], Tree | None],
        now: int,
        width: int = 0,
        has_trusted: Callable[[], bool] = lambda: True,
    ) -> None:
        self._read_tree = read_tree
        self._now = now
        self._has_trusted = has_trusted
        self.width = width
        self.reports: list[str] = []
        self.hint: Callable[[str], str] = str

    @cached_property
    def _tree(self) -> Tree | None:
        return self._read_tree()

    @cached_property
    def has_trusted(self) -> bool:
        """Whether there is a trusted branch."""
        return self._has_trusted()

    def report(self, *lines: str) -> None:
        """Write lines to stderr next to the answer: what was done, or that nothing was found."""
        self.reports += lines

    @property
    def is_wide(self) -> bool:
        """Whether a row has room for everything; so has every pipe."""
        return not self.width or self.width >= WIDE_WIDTH

    @property
    def prose_width(self) -> int:
        """The width of prose and title lines, 0 for a pipe."""
        return min(self.width, MAX_PROSE_WIDTH)

    def short(self, id_: str) -> str:
        """Return the short form of an id. An id that is not in the tree stays whole."""
        tree = self._tree
        return id_ if tree is None or id_ not in tree else tree.short_ids.shorten(id_)

    def memory(self, id_: str) -> Memory | None:
        """Return a memory of the tree, None for any other id."""
        record = None if self._tree is None else self._tree.get(id_)
        return None if record is None else record.memory

    def title(self, id_: str) -> str:
        """Return the title of a memory, empty if it is not in the tree."""
        memory = self.memory(id_)
        return "" if memory is None else memory.title

    def moment(self, id_: str) -> int:
        """Return when a memory was written, in Unix seconds; 0 if it is not in the tree."""
        memory = self.memory(id_)
        return 0 if memory is None else memory.timestamp

    def written(self, id_: str) -> str:
        """Return the age of a memory, empty if it is not in the tree."""
        moment = self.moment(id_)
        return self.when(moment) if moment else ""

    def name(self, id_: str) -> str:
        """Return short id and title of a memory: `dec-2g54  Hold a seat for 20 minutes`."""
        return f"{self.short(id_)}  {self.title(id_)}".rstrip()

    def quote(self, id_: str) -> str:
        """Return a memory within a sentence: `"Hold a seat for 20 minutes" (dec-2g54)`."""
        title = self.title(id_)
        return f'"{title}" ({self.short(id_)})' if title else self.short(id_)

    def cite(self, id_: str, commit: str | None) -> str:
        """Return `dec-2g54@abe7ae3`, without the commit if there is none."""
        return f"{self.short(id_)}@{shorten_commit(commit)}" if commit else self.short(id_)

    def shorten(self, text: str) -> str:
        """Shorten the ids of the tree in a sentence. Paths with an id stay as they are."""
        if text.count("-") < 2 or self._tree is None:  # nearly all whole ids have more
            return text
        return self._tree.short_ids.shorten_in(text)

    def when(self, moment: str | int) -> str:
        """Return the age of a moment on a terminal (`3 hours ago`), its UTC day in a pipe."""
        if moment == "":
            return ""
        second = timestamps.parse(moment) if isinstance(moment, str) else moment
        is_past = second <= self._now
        return (
            format_age(self._now - second)
            if self.width and is_past
            else timestamps.format_date(second)
        )

    def wrap(self, text: str, indent: str = "") -> list[str]:
        """Return prose in lines of the terminal's width; a pipe gets one line."""
        if not self.width or measure(indent + text) <= self.prose_width:
            return [indent + text] if text else []
        import textwrap

        return textwrap.wrap(
            text,
            self.prose_width,
            initial_indent=indent,
            subsequent_indent=indent,
            break_long_words=False,
            break_on_hyphens=False,
        )

    def title_line(self, title: str, right: str) -> list[str]:
        """Return a title with an id at the right edge; or below if there is no room."""
        room = self.prose_width - measure(title) - measure(right)
        if not self.width or not right:
            return [f"{title}  {right}".rstrip()]
        if room >= 2:
            return [title + " " * room + right]
        return [*self.wrap(title), right.rjust(self.prose_width)]

    def table(
        self,
        rows: Sequence[Sequence[str]],
        *,
        title: int = 1,
        drop: Sequence[int] = (),
        indent: str = "",
    ) -> list[str]:
        """Return a line per row, cells two spaces apart; empty columns are left out.

        If the column `title` would get under 44 cells, the columns `drop` go, in this order; only
        then it is cut. Other cells are never cut. Without a width nothing goes and nothing is cut.
        """
        if not rows:
            return []
        widths = [max(map(measure, column)) for column in zip(*rows, strict=True)]
        if self.width:
            room = self.width - len(indent)
            for column in drop:
                if _find_title_room(widths, title, room) >= min(MIN_TITLE_WIDTH, widths[title]):
                    break
                widths[column] = 0
            widths[title] = min(widths[title], max(_find_title_room(widths, title, room), 1))
        else:
            widths = [min(width, MAX_PADDED_WIDTH) for width in widths]
        return [
            indent
            + "  ".join(
                pad(clip(cell, width) if self.width and at == title else cell, width)
                for at, (cell, width) in enumerate(zip(row, widths, strict=True))
                if width
            ).rstrip()
            for row in rows
        ]

    def section(
        self,
        items: Sequence[Any],
        describe: Callable[[Any], Sequence[str]],
        command: str,
        *,
        is_whole: bool,
        drop: Sequence[int] = (),
    ) -> list[str]:
        """Return the first items as an indented table, and how many more `command` shows.

        Only those are described: to do that for all of many would read each of their files.
        """
        shown = items if is_whole or len(items) <= MAX_ROWS + 1 else items[:MAX_ROWS]
        hidden = len(items) - len(shown)
        footer = [self.hint(f"  and {hidden:,} more ({command})")] if hidden else []
        return [*self.table([*map(describe, shown)], drop=drop, indent="  "), *footer]


def build_layout(
    context: Context, at: str | None = None, width: int = 0, *, has_index: bool = True
) -> Layout:
    """Build the layout of an answer about the memories of the worktree, or of a revision.

    Without the index the files are read, and nothing is written: a dry run leaves no trace.
    """

    def read_tree() -> Tree | None:
        from memtool.index import index
        from memtool.search.stages import overlay_tree

        notes = [*context.notes]
        try:
            if has_index and at is None:  # with memories of the trusted branch, as in a search
                return overlay_tree(context, index.open(context), context.clock.now)
            if has_index:
                return index.open(context, at)
            return index.open_files(context, context.snapshot(at), is_stored=False)
        except MemtoolError:  # the answer itself needed no memories
            return None
        finally:
            context.notes[:] = notes

    def has_trusted() -> bool:
        from memtool.store.provenance import resolve_trusted  # hooks and checks show no trust

        ref = context.project.trust_settings.text("trust.ref")
        try:
            return bool(resolve_trusted(context.repository, ref))
        except MemtoolError:  # the settings name a ref that is not here
            return True

    return Layout(read_tree, context.clock.now, width, has_trusted)


_MINUTE_S, _HOUR_S, _DAY_S = 60, 3_600, timestamps.DAY_S
_AGES = (
    (_HOUR_S, _MINUTE_S, "minute"),
    (_DAY_S, _HOUR_S, "hour"),
    (14 * _DAY_S, _DAY_S, "day"),
    (70 * _DAY_S, 7 * _DAY_S, "week"),
    (730 * _DAY_S, 30.44 * _DAY_S, "month"),
)
"""Rows of (age below which it counts, seconds of the unit, unit); above them come years."""


def format_age(seconds: int) -> str:
    """Format an age: `3 hours ago`, `yesterday`, `11 days ago`, `4 weeks ago`, `3 months ago`."""
    if seconds < _MINUTE_S:
        return "just now"
    if _DAY_S <= seconds < 2 * _DAY_S:
        return "yesterday"
    for limit, unit_s, unit in _AGES:
        if seconds < limit:
            return f"{format_count(int(seconds / unit_s), unit)} ago"
    return f"{format_count(int(seconds / (365.25 * _DAY_S)), 'year')} ago"


def shorten_foreign(id_: str) -> str:
    """Return the short form of an id of another repository, whose other ids are not at hand."""
    from memtool.memory.short_ids import ShortIds  # only the fleet needs it

    return ShortIds((id_,)).shorten(id_)


def shorten_commit(commit: str | None) -> str:
    """Return the first digits of a commit id; empty for none."""
    return (commit or "")[:SHORT_ID_DIGITS]


def measure(text: str) -> int:
    """Return the width of a text in terminal cells: wide characters take two, accents none."""
    if text.isascii():
        return len(text)
    return sum(map(_measure_character, text))


def _measure_character(character: str) -> int:
    import unicodedata

    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def clip(text: str, width: int) -> str:
    """Cut a text to a width in cells; the last cell of a cut text is `…`."""
    if measure(text) <= width:
        return text
    cells, end = 0, 0
    for end, character in enumerate(text):  # noqa: B007  # `end` is used below
        cells += _measure_character(character)
        if cells > width - 1:
            break
    return text[:end].rstrip() + "…"


def pad(text: str, width: int) -> str:
    """Fill a text with spaces up to a width in cells."""
    return text + " " * (width - measure(text))


def _find_title_room(widths: Sequence[int], title: int, room: int) -> int:
    """Return the cells that the other columns leave to the title."""
    fixed = [width for at, width in enumerate(widths) if at != title and width]
    return room - sum(fixed) - 2 * len(fixed)
