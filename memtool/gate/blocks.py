"""Blocks between BEGIN and END lines: private keys, certificates, signatures."""

from __future__ import annotations

from memtool.gate.pattern import Pattern

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

PRIVATE_KEY = "private-key"
BEGIN = "-----BEGIN "
DASHES = "-----"
END = "-----END "
MOST_BLOCK = 16_000
BREAK = r"(?:(?:\\r)?\\n|[\s>|*#\"'+,;\\]){1,40}"
"""What separates the lines of a key: line ends (also escaped), indents, quotes, comments."""
LINES = (
    rf"(?:{BREAK}[A-Za-z][A-Za-z-]{{3,20}}: [^\n\\]{{0,200}}){{0,6}}"
    rf"(?:{BREAK}[A-Za-z0-9+/=]{{16,4000}}){{0,600}}"
)

_LINES = Pattern(LINES)


def blocks(text: str) -> Iterator[tuple[str, int, int]]:
    """Yield (label, start, end) of every BEGIN block; a private key's label is `private-key`.

    A block without its END line ends where its base64 does, so a truncated key is found too.
    """
    from memtool.gate.chance import is_filler  # most texts hold no block

    at = text.find(BEGIN)
    while at >= 0:
        start = at
        at = text.find(BEGIN, start + len(BEGIN))
        close = text.find(DASHES, start + len(BEGIN), start + 90)
        if close < 0 or "\n" in text[start:close]:
            continue
        stop = close + len(DASHES)
        limit = min(stop + MOST_BLOCK, at if at >= 0 else len(text))
        end = text.find(END, stop, limit)
        if end >= 0:
            tail = text.find(DASHES, end + len(END), end + 90)
            material = text[stop:end]
            end = tail + len(DASHES) if tail >= 0 else end + len(END)
        else:
            match = _LINES.match(text, stop, limit)
            end = match.end() if match else stop
            material = text[stop:end]
        if "PRIVATE KEY" not in text[start:close]:
            yield "block", start, end
        elif sum(char.isalnum() for char in material) >= 24 and not is_filler(material[:120]):
            yield PRIVATE_KEY, start, end
