"""Drift: what became of the files that a memory names, since somebody last looked at them.

Pure rules over two versions of a text. That a file was touched says little: two of three such flags
are wrong. A memory is *broken* where a file is gone, where a distinctive name that stood there is
in none of its files any more, or where lines that it cites are no longer there; *changed* where
half of a file's lines, or of those with a distinctive name, are; *touched* by any other change.
"""

from __future__ import annotations

from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Iterable

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
    `share` is how much of the file is no longer there. `commits` are the last that changed it and
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
        at = text.find(name, at + 1)
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


def named_share(old: Iterable[str], new: Counter[str], wanted: Iterable[str]) -> float:
    """Return how many of the lines that hold one of some names are gone, from 0 to 1."""
    names_ = tuple(wanted)
    if not names_:
        return 0.0
    held = counted(row for row in old if any(name in row for name in names_))
    return share(held, new)


def place(old: list[str], new: list[str], lines: tuple[int, int]) -> tuple[int, int] | None:
    """Return where cited lines stand together in the new text, None where they do not.

    Of several places it is the nearest. Lines beyond the end of the old text cite nothing, so that
    nothing can have happened to them.
    """
    begin, count = lines[0] - 1, lines[1] - lines[0] + 1
    wanted = old[begin : lines[1]]
    if lines[1] > len(old) or not any(wanted):
        return lines
    places = [
        at for at, row in enumerate(new) if row == wanted[0] and new[at : at + count] == wanted
    ]
    at = min(places, key=lambda at: (abs(at - begin), at), default=None)
    return None if at is None else (at + 1, at + count)


def cited(text: str, path: str) -> tuple[tuple[int, int], ...]:
    """Return the lines of a file that a text cites as `PATH:12-30` or `PATH#L12-L30`."""
    if path not in text:
        return ()
    import re

    form = re.compile(rf"(?<![\w/.-]){re.escape(path)}(?::|#L)(\d{{1,7}})(?:-L?(\d{{1,7}}))?(?!\w)")
    found = ((int(first), int(last or first)) for first, last in form.findall(text))
    return tuple(sorted({(first, last) for first, last in found if 0 < first <= last}))
