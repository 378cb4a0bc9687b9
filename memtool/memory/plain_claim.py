"""The normal form of a body: what formatters and editors change in it claims nothing."""

from __future__ import annotations

import re

from memtool.memory.memory import find_code_lines

_BULLET = re.compile(r"(?P<before>[ \t>]*)[*+](?=[ \t])")
_CODE_SPAN = re.compile(r"(?P<ticks>`+)(?:(?!`).|(?!(?P=ticks)(?!`))`+)*?(?P=ticks)(?!`)")
_UNDERLINED = re.compile(
    r"(?<![^\s(\[\"'*])(?<!\]\()(?P<mark>__?)(?=[^\s_])(?P<words>[^_*\n]*[^\s_*])(?P=mark)"
    r"(?![^\s.,;:!?)\]\"'*])"
)
"""Words between underscores that markdown shows as it shows words between stars."""


def find_plain_claim(body: str) -> str:
    """Return a body without differences that formatters make and readers do not see.

    These are line ends, blanks at the end of lines, empty lines at both ends, the sign of a bullet,
    and underscores in place of stars around the same words. In code only line ends are changed.
    """
    lines = body.replace("\r\n", "\n").split("\n")
    code = find_code_lines("\n".join(lines))
    texts = [line if at in code else _strip_markup(line) for at, line in enumerate(lines)]
    return "\n".join(texts).strip("\n")


def _strip_markup(line: str) -> str:
    line = (
        _BULLET.sub(r"\g<before>-", line.rstrip(), count=1)
        if _BULLET.match(line)
        else line.rstrip()
    )
    if "_" not in line:
        return line
    spans = list(_CODE_SPAN.finditer(line))
    if "`" in _CODE_SPAN.sub("", line):  # code that goes on in another line
        return line
    pieces, at = [], 0
    for span in spans:
        pieces += [_star(line[at : span.start()]), span[0]]
        at = span.end()
    return "".join([*pieces, _star(line[at:])])


def _star(text: str) -> str:
    return _UNDERLINED.sub(
        lambda m: f"{'*' * len(m['mark'])}{m['words']}{'*' * len(m['mark'])}", text
    )
