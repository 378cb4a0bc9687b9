"""Hidden characters: a terminal, an editor or a review shows them wrongly or not at all."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

RANGES: tuple[tuple[int, int, str], ...] = (
    (0x00, 0x08, "a control character"),
    (0x0B, 0x0C, "a control character"),
    (0x0E, 0x1F, "a control character"),
    (0x7F, 0x9F, "a control character"),
    (0x61C, 0x61C, "a direction mark"),
    (0x180E, 0x180E, "a character of no width"),
    (0x200B, 0x200B, "a character of no width"),
    (0x200E, 0x200F, "a direction mark"),
    (0x2028, 0x2029, "a line break that is none to others"),
    (0x202A, 0x202E, "a direction mark"),
    (0x2060, 0x2064, "a character of no width"),
    (0x2066, 0x2069, "a direction mark"),
    (0x206A, 0x206F, "a character of no width"),
    (0xFEFF, 0xFEFF, "a byte-order mark inside the text"),
    (0xFFF9, 0xFFFB, "an annotation mark"),
    (0xE0000, 0xE007F, "a tag character"),
    (0xE0100, 0xE01EF, "a variation selector"),
)
"""First and last code point, and a name. No memory may hold these."""
JOINERS = "\u200c\u200d"
"""Scripts and emoji need them; beside a Latin letter they hide something: a warning."""

_PLAIN = frozenset(map(chr, range(0x20, 0x7F))) | frozenset("\t\n\r")


def find(text: str) -> Iterator[tuple[int, str, bool]]:
    """Yield line, name, and whether it is an error, of each hidden character, in order.

    A byte-order mark may begin the text; a carriage return may only be before a line feed.
    """
    text = text.removeprefix("\ufeff")
    used = set(text)
    suspects = {char for char in used - _PLAIN if _name(char) or char in JOINERS}
    if "\r" in used and text.count("\r") != text.count("\r\n"):
        suspects.add("\r")
    if not suspects:
        return
    for number, line in enumerate(text.split("\n"), 1):
        row = line.removesuffix("\r")
        if suspects.isdisjoint(row):
            continue
        for at, char in enumerate(row):
            if char not in suspects:
                continue
            if char not in JOINERS:
                shown = f"U+{ord(char):04X}"
                yield number, f"{_name(char) or 'a lone carriage return'} ({shown})", True
            elif row[at - 1 : at].isascii():
                yield number, f"a joiner (U+{ord(char):04X}) where nothing is joined", False


def _name(char: str) -> str:
    code = ord(char)
    return next((name for first, last, name in RANGES if first <= code <= last), "")
