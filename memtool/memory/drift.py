"""Drift: what became of the files that a memory names, since somebody last looked at them.

Pure rules over two versions of a text. That a file was touched says little: two of three such flags
are wrong. A memory is *broken* where a file is gone, where a distinctive name that stood there is
in none of its files any more, or where lines that it cites are no longer there; *changed* where
half of a file's lines are gone, or half of those with a distinctive name are in none of its files;
*touched* by any other change.
"""

from __future__ import annotations

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
MOST_NAMES = 200
"""Names of one memory that are looked for."""

_IDENTIFIER, _CAMEL = r"[A-Za-z_][A-Za-z0-9_]{4,127}", r"[a-z0-9][A-Z]"


class DriftCommit(Value):
    """A commit that changed a file; `broke` tells whether a memory is broken since then."""

    commit: str
    date: str
    subject: str
    broke: bool


class FileDrift(Value):
    """What became of one file. `now` is where it lies today, empty where it is gone.

    `why` is gone, name, lines, share, or empty; `name` is what is no longer there, or the reason
    for an unknown level; `lines` are the cited ones that are gone or have moved, to `lines_now`;
    `share` is how much of the file is no longer there, `naming` how many of its lines that hold a
    name of the memory are gone, and how many there were. `commits` are the last that changed it and
    the one that broke the memory, newest first, where somebody asked for them.
    """

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


class Drift(Value):
    """What became of the files of a memory since a commit, the worst level of all files first."""

    level: str
    since: str
    files: tuple[FileDrift, ...] = ()

    @property
    def share(self) -> float | None:
        """The share of the file that changed most, None where none was compared."""
        return max((one.share for one in self.files if one.share is not None), default=None)


def reason(drift: Drift) -> str:
    """Return in one clause what happened to the file that is worst off; empty for none."""
    for one in drift.files:
        if one.level == drift.level and one.level in (BROKEN, CHANGED, UNKNOWN):
            return clause(one)
    return ""


def mark(drift: Drift | None) -> str:
    """Return the warning that a broken memory is shown with, empty for any other."""
    if drift is None or drift.level != BROKEN:
        return ""
    return f"[DRIFTED] {reason(drift)} (checked at {drift.since[:10]})"


def clause(one: FileDrift) -> str:
    """Return what happened to one file."""
    where = one.now or one.path
    if one.level == UNKNOWN:
        return f"{one.path}: {one.name}"
    if one.why == "gone":
        return f"{one.path} is no longer there"
    if one.why == "name":
        return f"{one.name} is no longer in {where}"
    if one.why == "lines" and one.lines:
        return f"lines {one.lines[0]} to {one.lines[1]} of {one.path} have changed"
    renamed = f" (was {one.path})" if where != one.path else ""
    if one.lines and one.lines_now and not one.why:
        moved = f"{one.lines_now[0]} to {one.lines_now[1]} of {where}"
        return f"lines {one.lines[0]} to {one.lines[1]} are lines {moved}{renamed}"
    if one.share is None:
        return f"{where} was renamed{renamed}"
    if one.level == CHANGED and one.share < HALF and one.naming:
        gone, total = one.naming
        which = "the only line" if total == 1 else f"{gone} of the {total} lines"
        return f"of {where}, {which} with a name from this memory changed{renamed}"
    return f"{round(100 * one.share)} % of {where} has changed{renamed}"


def lines_about(drift: Drift) -> list[str]:
    """Return a line for each file, with the commits that changed it below."""
    return [line for one in drift.files for line in (clause(one), *map(_commit, one.commits))]


def _commit(one: DriftCommit) -> str:
    what = ", which broke it" if one.broke else ""
    return f"  {one.commit[:10]} {one.date[:10]} {one.subject}{what}"


def worst(levels: Iterable[str]) -> str:
    """Return the worst of some levels, `same` where there are none."""
    return min(levels, key=LEVELS.index, default=SAME)


def names(text: str) -> tuple[str, ...]:
    """Return the distinctive names of a text, sorted: `snake_case` and `camelCase` ones.

    Plain words gave false alarms, so they do not count.
    """
    import re  # a warm answer compares nothing

    found = set(re.findall(_IDENTIFIER, text))
    distinct = {one for one in found if "_" in one.strip("_") or re.search(_CAMEL, one)}
    return tuple(sorted(distinct)[:MOST_NAMES])


def holds(text: str, name: str) -> bool:
    """Tell whether a name stands in a text as a whole word."""
    at = text.find(name)
    while at >= 0:
        end = at + len(name)
        before, after = text[at - 1 : at], text[end : end + 1]
        if not (_in_word(before) or _in_word(after)):
            return True
        at = text.find(name, end)  # a name is a word: what begins in it is within a word
    return False


def _in_word(char: str) -> bool:
    return char == "_" or char.isalnum()


def lines_of(text: str) -> list[str]:
    """Return the lines of a text without blanks, so that an indentation changes nothing."""
    return ["".join(row.split()) for row in text.splitlines()]


def share(old: Counter[str], new: Counter[str]) -> float:
    """Return how much of the old lines is no longer among the new ones, from 0 to 1."""
    total = old.total()
    return 1 - (old & new).total() / total if total else 0.0


def counted(rows: Iterable[str]) -> Counter[str]:
    """Return how often each line stands in a text, empty ones left out."""
    from collections import Counter

    return Counter(row for row in rows if row)


def named_lines(old: Counter[str], now: Counter[str], names: Iterable[str]) -> tuple[int, int]:
    """Return how many of the lines that hold one of some names are gone, and how many there were.

    `now` are the lines of all files in which they may be today.
    """
    from collections import Counter

    wanted = tuple(names)
    naming = Counter(
        {row: count for row, count in old.items() if any(name in row for name in wanted)}
    )
    return naming.total() - (naming & now).total(), naming.total()


def place(old: list[str], new: list[str], lines: tuple[int, int]) -> tuple[int, int] | None:
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
    starts = _occurrences(wanted, [new[at] for at in filled])
    spans = ((filled[at], filled[at + len(wanted) - 1]) for at in starts)
    first, last = min(spans, key=lambda span: (abs(span[0] - begin), span), default=(-1, -1))
    return None if first < 0 else (first + 1, last + 1)


def _occurrences(wanted: list[str], rows: list[str]) -> Iterator[int]:
    """Yield where a run of lines begins among others (Knuth, Morris, Pratt 1977).

    The time grows with the number of lines, also if all of them are the same.
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


def cited(text: str, path: str) -> tuple[tuple[int, int], ...]:
    """Return the lines of a file that a text cites as `PATH:12-30` or `PATH#L12-L30`."""
    if path not in text:
        return ()
    import re

    form = re.compile(rf"(?<![\w/.-]){re.escape(path)}(?::|#L)(\d{{1,7}})(?:-L?(\d{{1,7}}))?(?!\w)")
    found = ((int(first), int(last or first)) for first, last in form.findall(text))
    return tuple(sorted({(first, last) for first, last in found if 0 < first <= last}))
