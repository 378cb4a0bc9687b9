"""Tokens that begin with a vendor's prefix: the table of `prefixes`, as patterns."""

from __future__ import annotations

from memtool.gate.chance import is_filler, is_wordlike
from memtool.gate.pattern import Pattern
from memtool.gate.prefixes import ALPHABETS, ROWS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator


class _Row:
    """A row as it is looked for: what follows the prefix, and whether that could be words."""

    __slots__ = ("follows", "is_lettered", "kind")

    def __init__(self, kind: str, alphabet: str, least: int, most: int) -> None:
        letters = ALPHABETS[alphabet]
        tail = "={0,2}" if alphabet == "base64" else ""
        self.kind = kind
        self.follows = Pattern(rf"{letters}{{{least},{most}}}(?!{letters}){tail}")
        self.is_lettered = alphabet not in ("hex", "uuid", "upper")


_BY_PREFIX: dict[str, list[_Row]] = {}
for _kind, _prefix, _alphabet, _few, _many in ROWS:
    _BY_PREFIX.setdefault(_prefix, []).append(_Row(_kind, _alphabet, _few, _many))


def _branches() -> str:
    """Return a pattern of every prefix, branched by first character, the longest first."""
    by_first: dict[str, list[str]] = {}
    for prefix in sorted(_BY_PREFIX, key=lambda prefix: (-len(prefix), prefix)):
        rest = "".join(char if char.isalnum() else f"\\{char}" for char in prefix[1:])
        by_first.setdefault(prefix[0], []).append(rest)
    return "|".join(f"{first}(?:{'|'.join(by_first[first])})" for first in sorted(by_first))


_ANY_PREFIX = Pattern(rf"(?:(?<![A-Za-z0-9])|(?<=\\[nrt]))(?:{_branches()})")


def find(text: str) -> Iterator[tuple[str, int, int]]:
    """Yield (kind, start, end) of every token that begins with a known prefix."""
    for hit in _ANY_PREFIX.finditer(text):
        start, body = hit.span()
        for row in _BY_PREFIX[hit[0]]:
            match = row.follows.match(text, body)
            if match is None:
                continue
            token = match[0].rstrip(".-=") if text[match.end() - 1] in ".-" else match[0]
            if not is_filler(token) and not (row.is_lettered and is_wordlike(token, 0.6)):
                yield row.kind, start, body + len(token)
                break
