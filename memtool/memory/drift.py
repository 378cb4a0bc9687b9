"""Drift: how the files that a memory names have changed since the memory was last checked.

Pure rules over two versions of a text. A changed file alone means little: two of three such flags
are wrong. A memory is *broken* if a file is gone, if a distinctive name is no longer in any of its
files, or if cited lines are gone; *changed* if half of a file's lines are gone, or half of the
lines with a distinctive name; *touched* after any other change.
"""

from __future__ import annotations

from memtool.memory.trust import SHORT_ID_DIGITS
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Iterable, Iterator

BROKEN, CHANGED, TOUCHED, UNKNOWN, SAME = "broken", "changed", "touched", "unknown", "same"
LEVELS = (BROKEN, CHANGED, TOUCHED, UNKNOWN, SAME)
"""From the worst on. What cannot be looked at is `unknown`, which is said and never a flag."""
HALF = 0.5
"""The share of lines that makes a file changed."""
MAX_LOST = 0.8
"""A new file that lacks no more of the lines of a gone one may be a part of it."""
MAX_SHOWN_MOVES = 3
"""Renamed paths of one memory that a note names."""
MAX_NAMES = 200
"""Names of one memory that are looked for."""

_IDENTIFIER, _CAMEL = r"[A-Za-z_][A-Za-z0-9_]{4,127}", r"[a-z0-9][A-Z]"


class DriftCommit(Value):
    """A commit that changed a file. `broke` is true if the memory has been broken since then."""

    commit: str
    date: str
    subject: str
    broke: bool


class FileDrift(Value):
    """The drift of one file. `now` is its path today, empty if it is gone.

    `why` is gone, name, lines, share, or empty. `name` is the missing identifier, the probable new
    path of a gone file, or the reason for an unknown level. `lines` are the cited lines that are
    gone or have moved to `lines_now`. `share` is the part of the file that is gone; `naming` is how
    many lines with a name of the memory are gone, and how many there were. `commits` are the latest
    that changed the file and the one that broke the memory, newest first, if requested.
    `since_landing`: the version that was checked is gone, so the share counts from the landing
    commit.
    """

    json_optional = "since_landing"

    path: str
    now: str
    level: str
    why: str = ""
    name: str = ""
    lines: tuple[int, int] | None = None
    share: float | None = None
    lines_now: tuple[int, int] | None = None
    naming: tuple[int, int] | None = None
    commits: tuple[DriftCommit, ...] = ()
    since_landing: bool = False


class Move(Value):
    """The path today of a file, folder or glob that a memory names as `path`.

    `commit` is the full id of the commit that renamed it, empty if it took several. `is_taken`:
    there are files at the old path again. `is_probable`: git does not call it a rename, but this
    file holds most of the old one, since its code was joined with other code or copied before.
    """

    path: str
    now: str
    commit: str = ""
    is_taken: bool = False
    is_probable: bool = False


class Drift(Value):
    """What became of the files of a memory since a commit, the worst level of all files first.

    `moves` are the paths that it names and that were renamed, or probably were. `has_landed` says
    that the commit at which the code was looked at is lost: then `since` is the one in which it
    landed.
    """

    json_optional = "has_landed"

    level: str
    since: str
    files: tuple[FileDrift, ...] = ()
    moves: tuple[Move, ...] = ()
    has_landed: bool = False

    @property
    def renames(self) -> tuple[Move, ...]:
        """The moves that git takes for renames, which alone govern anything."""
        return tuple(move for move in self.moves if not move.is_probable)

    @property
    def share(self) -> float | None:
        """The share of the file that changed most; None if no file was compared."""
        return max((file.share for file in self.files if file.share is not None), default=None)


def summarize(drift: Drift) -> str:
    """Return in one clause what happened to the file that is worst off; empty for none."""
    for file in drift.files:
        if file.level == drift.level and file.level in (BROKEN, CHANGED, UNKNOWN):
            return describe_file(file)
    return ""


def mark(drift: Drift | None) -> str:
    """Return the warning that a broken memory is shown with, empty for any other."""
    if drift is None or drift.level != BROKEN:
        return ""
    return f"[DRIFTED] {summarize(drift)} (checked at {describe_base(drift)})"


def describe_base(drift: Drift) -> str:
    """Return since which commit the code is compared, as people read it; empty for none."""
    at = drift.since[:SHORT_ID_DIGITS]
    return f"{at}, where it landed" if drift.has_landed else at


def format_renamed_mark(moves: Iterable[Move]) -> str:
    """Return the note for a memory that calls its files by older names."""
    shown = [
        f"{move.now} was {move.path}" + (" (other files are there today)" * move.is_taken)
        for move in moves
    ]
    suffix = f" and {len(shown) - MAX_SHOWN_MOVES} more" if len(shown) > MAX_SHOWN_MOVES else ""
    return f"[RENAMED] {', '.join(shown[:MAX_SHOWN_MOVES])}{suffix}" if shown else ""


def describe_file(file: FileDrift) -> str:
    """Return what happened to one file."""
    where = file.now or file.path
    if file.level == UNKNOWN:
        return f"{file.path}: {file.name}"
    if file.why == "gone":
        probably = f"; it probably moved to {file.name}" if file.name else ""
        return f"{file.path} is no longer there{probably}"
    if file.why == "name":
        return f"{file.name} is no longer in {where}"
    if file.why == "lines" and file.lines:
        return f"lines {file.lines[0]} to {file.lines[1]} of {file.path} have changed"
    renamed = f" (was {file.path})" if where != file.path else ""
    if file.lines and file.lines_now and not file.why:
        moved = f"{file.lines_now[0]} to {file.lines_now[1]} of {where}"
        return f"lines {file.lines[0]} to {file.lines[1]} are lines {moved}{renamed}"
    if file.share is None:
        return f"{where} was renamed{renamed}" if renamed else f"{where} has changed"
    if file.level == CHANGED and file.share < HALF and file.naming:
        gone, total = file.naming
        which = "the only line" if total == 1 else f"{gone} of the {total} lines"
        return f"of {where}, {which} with a name from this memory changed{renamed}"
    since = " since it landed" if file.since_landing else ""
    return f"{round(100 * file.share)} % of {where} has changed{since}{renamed}"


def describe_lines(drift: Drift) -> list[str]:
    """Return a line for each file, with the commits that changed it below."""
    lines = [
        line for file in drift.files for line in (describe_file(file), *map(_commit, file.commits))
    ]
    return lines + [
        f"{move.path} probably moved to {move.now}" for move in drift.moves if move.is_probable
    ]


def _commit(commit: DriftCommit) -> str:
    what = ", which broke it" if commit.broke else ""
    return f"  {commit.commit[:SHORT_ID_DIGITS]} {commit.date[:10]} {commit.subject}{what}"


def find_worst(levels: Iterable[str]) -> str:
    """Return the worst of some levels; `same` if there are none."""
    return min(levels, key=LEVELS.index, default=SAME)


def find_names(text: str) -> tuple[str, ...]:
    """Return the distinctive names of a text, sorted: `snake_case` and `camelCase` ones.

    Plain words gave false alarms, so they do not count.
    """
    import re  # a warm answer compares nothing

    identifiers = set(re.findall(_IDENTIFIER, text))
    distinct = {
        identifier
        for identifier in identifiers
        if "_" in identifier.strip("_") or re.search(_CAMEL, identifier)
    }
    return tuple(sorted(distinct)[:MAX_NAMES])


def holds(text: str, name: str) -> bool:
    """Return whether a text contains a name as a whole word."""
    at = text.find(name)
    while at >= 0:
        end = at + len(name)
        before, after = text[at - 1 : at], text[end : end + 1]
        if not (_is_word_char(before) or _is_word_char(after)):
            return True
        at = text.find(name, end)  # a name is a word: what begins in it is within a word
    return False


def _is_word_char(char: str) -> bool:
    return char == "_" or char.isalnum()


def strip_lines(text: str) -> list[str]:
    """Return the lines of a text without blanks, so that an indentation changes nothing."""
    return ["".join(row.split()) for row in text.splitlines()]


def measure_share(old: Counter[str], new: Counter[str]) -> float:
    """Return the share of the old lines that are no longer in the new text, from 0 to 1."""
    total = old.total()
    return 1 - (old & new).total() / total if total else 0.0


def count_lines(rows: Iterable[str]) -> Counter[str]:
    """Count the occurrences of each line, without blank lines."""
    from collections import Counter

    return Counter(row for row in rows if row)


def count_named_lines(
    old: Counter[str], now: Counter[str], names: Iterable[str]
) -> tuple[int, int]:
    """Return how many of the lines that hold one of some names are gone, and how many there were.

    `now` are the lines of all files in which they may be today.
    """
    from collections import Counter

    wanted = tuple(names)
    naming = Counter(
        {row: count for row, count in old.items() if any(name in row for name in wanted)}
    )
    return naming.total() - (naming & now).total(), naming.total()


def find_lines(old: list[str], new: list[str], lines: tuple[int, int]) -> tuple[int, int] | None:
    """Return where cited lines are together in the new text, None if they are not.

    Empty lines between them do not count. Of several places it is the nearest. Lines beyond the end
    of the old text cite nothing, so that nothing can have happened to them.
    """
    begin, end = lines[0] - 1, lines[1]
    wanted = [row for row in old[begin:end] if row]
    if end > len(old) or not wanted:
        return lines
    if new[begin:end] == old[begin:end]:
        return lines
    begin += next(at for at, row in enumerate(old[begin:end]) if row)
    filled = [at for at, row in enumerate(new) if row]
    starts = _find_occurrences(wanted, [new[at] for at in filled])
    spans = ((filled[at], filled[at + len(wanted) - 1]) for at in starts)
    first, last = min(spans, key=lambda span: (abs(span[0] - begin), span), default=(-1, -1))
    return None if first < 0 else (first + 1, last + 1)


def _find_occurrences(wanted: list[str], rows: list[str]) -> Iterator[int]:
    """Yield the positions at which a run of lines occurs in others (Knuth, Morris, Pratt 1977).

    The time is linear in the number of lines, even if all of them are equal.
    """
    borders = [0] * len(wanted)
    length = 0
    for at in range(1, len(wanted)):
        while length and wanted[at] != wanted[length]:
            length = borders[length - 1]
        length += wanted[at] == wanted[length]
        borders[at] = length
    length = 0
    for at, row in enumerate(rows):
        while length and row != wanted[length]:
            length = borders[length - 1]
        length += row == wanted[length]
        if length == len(wanted):
            yield at - length + 1
            length = borders[length - 1]


def find_cited_lines(text: str, path: str) -> tuple[tuple[int, int], ...]:
    """Return the lines of a file that a text cites as `PATH:12-30` or `PATH#L12-L30`."""
    if path not in text:
        return ()
    import re

    form = re.compile(rf"(?<![\w/.-]){re.escape(path)}(?::|#L)(\d{{1,7}})(?:-L?(\d{{1,7}}))?(?!\w)")
    ranges = ((int(first), int(last or first)) for first, last in form.findall(text))
    return tuple(sorted({(first, last) for first, last in ranges if 0 < first <= last}))
