r"""Escaping: what is shown of a text that nobody vouches for.

The order matters and never changes: first everything that a reader cannot see is shown as
`\u{..}`, then the format's own characters are escaped, then every line is prefixed. Nothing is
normalised or unescaped afterwards, since that could make new marks out of harmless characters.
"""

from __future__ import annotations

Escapes = tuple[tuple[str, str], ...]
"""What to write instead of a character, in the order in which it is done: `&` comes first."""

PREFIX = "|"
"""Begins every line of content, so that no fence, heading, turn or tag can begin one."""

_SPACES = frozenset("\t\u00a0\u202f\u3000")
"""Not printable to Python, but only space: tabs of code, spaces of French and Japanese."""

_VARIATION = "\ufe0f"
"""Makes an emoji of the character before it; alone, or after ASCII, it could only hide data."""

_BLANK = frozenset(
    map(
        chr,
        (
            0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x180B, 0x180C, 0x180D, 0x180F, 0x2800,
            0x3164, 0xFFA0, *range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0),
        ),
    )
)  # fmt: skip
"""Printable to Python, but drawn as nothing: fillers, joiners and variation selectors."""


def visible(text: str) -> str:
    r"""Show control, direction, tag and zero-width characters as `\u{..}`, line feeds included."""
    if text.isascii() and text.isprintable():
        return text
    shown = []
    before = ""
    for char in text:
        is_emoji = char == _VARIATION and before > "\x7f" and before not in _BLANK
        is_seen = (char.isprintable() and char not in _BLANK) or char in _SPACES
        shown.append(char if is_seen or is_emoji else f"\\u{{{ord(char):x}}}")
        before = char
    return "".join(shown)


def escaped(text: str, escapes: Escapes) -> str:
    """Return one line of text, visible, with the characters of a format replaced, in order."""
    text = visible(text)
    for char, entity in escapes:
        text = text.replace(char, entity)
    return text


def quoted(line: str, escapes: Escapes) -> str:
    """Return one line of content, prefixed, with its line feed."""
    shown = escaped(line, escapes)
    return f"{PREFIX} {shown}\n" if shown else f"{PREFIX}\n"


def quoted_lines(text: str, escapes: Escapes) -> str:
    """Return a text as prefixed lines; no text gives no line.

    Only a line feed ends a line (with the carriage return before it). Everything else that some
    program takes for a line's end is shown instead.
    """
    if not text:
        return ""
    rows = text.replace("\r\n", "\n").split("\n")
    if text.isascii() and "".join(rows).isprintable():  # nothing in it has to be shown
        shown = "\n".join(rows)
        for char, entity in escapes:
            shown = shown.replace(char, entity)
        return "".join([f"{PREFIX} {row}\n" if row else f"{PREFIX}\n" for row in shown.split("\n")])
    return "".join(quoted(row, escapes) for row in rows)
