"""Globs of paths: `*` and `?` inside a name, `**` across directories, all else as it is written.

Square brackets are no classes: they stand in real file names (`app/[id]/page.tsx`).
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


def matches(pattern: str, path: str) -> bool:
    """Tell whether a glob matches a whole path."""
    return _aligned(
        [part for part in pattern.split("/") if part],
        [part for part in path.split("/") if part],
        "**",
        name_matches,
    )


def name_matches(pattern: str, name: str) -> bool:
    """Tell whether a glob matches one name or line, in which `/` means nothing."""
    return _aligned(pattern, name, "*", lambda one, char: one in ("?", char))


def governs(pattern: str, path: str) -> bool:
    """Tell whether a path is what a glob names, or lies in a directory that it names."""
    return matches(f"{pattern}/**", path)


def _aligned(
    pattern: Sequence[str], parts: Sequence[str], star: str, fits: Callable[[str, str], bool]
) -> bool:
    """Match greedily, and on failure let the last star take one part more: never exponential."""
    at = place = 0
    star_at, star_place = -1, 0
    while place < len(parts):
        if at < len(pattern) and pattern[at] == star:
            star_at, star_place = at, place
            at += 1
        elif at < len(pattern) and fits(pattern[at], parts[place]):
            at += 1
            place += 1
        elif star_at >= 0:
            star_place += 1
            at, place = star_at + 1, star_place
        else:
            return False
    return all(part == star for part in pattern[at:])
