"""Secrets in base64: a word that is decoded once, and holds a token, a password or an address."""

from __future__ import annotations

from memtool.pattern import Pattern
from memtool.redaction import assignments, shapes, tokens
from memtool.redaction.entropy import decode_base64

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

WORD = Pattern(r"(?<![A-Za-z0-9+/_=-])[A-Za-z0-9+/_-]{24,4096}={0,2}(?![A-Za-z0-9+/_=-])")
FINDERS = (tokens.find, shapes.find, shapes.find_userinfo, assignments.find)
"""What is looked for in a decoded word; the first to find something names the kind."""
KINDS: tuple[str, ...] = tuple(
    {row[0]: None for row in tokens.ROWS}
    | {row.kind: None for row in shapes.ROWS}
    | dict.fromkeys(("private-key", "url-password", "secret"))
)


def find(text: str, _lower: str = "") -> Iterator[tuple[str, int, int]]:
    """Yield (kind, start, end) of every word that holds a secret once it is decoded."""
    for match in WORD.finditer(text):
        kind = _find_kind(decode_base64(match[0]))
        if kind:
            yield kind, *match.span()


def _find_kind(decoded: str) -> str:
    """Return the kind of the first secret in a decoded word, empty for none."""
    lower = decoded.lower()
    kinds = (kind for finder in FINDERS for kind, _start, _end in finder(decoded, lower))
    return next(kinds, "") if decoded else ""
