"""What may stand between an announcing word and its secret: signs, quotes, words of a sentence.

Every pattern is anchored where the announcement ends or begins, and every repeat is bounded.
"""

from __future__ import annotations

from memtool.gate import keywords
from memtool.gate.pattern import Pattern

GAP = (
    r"(?:[ \t|*]{0,20}(?:(?:str(?:ing)?|bytes|text|&str|String)\s?=\s?)?"
    r"|[ \t*]{0,4}\\?\n(?:\s{0,8}\n)?[ \t>*-]{0,12}(?:```\w{0,10}\n[ \t]{0,8}|value:[ \t]{0,3})?)"
)
"""Between a sign and its value: spaces, a type, or the end of the line and maybe a code fence."""

ASSIGN = Pattern(
    r"(?P<tail>[\w.-]{0,30}(?:\[\w{0,10}\])?)[\"'`*\\)\]]{0,4}[ \t]{0,12}"
    r"(?P<note>\([^()\n\0]{0,40}\)[*`]{0,2}[ \t]{0,2})?"
    r"(?P<sign>:=|=>|->|==|=|::|:|\|(?=[ \t])|\"[ \t]{0,2},|',|>|-(?= )"
    r"|[\u2192\uff1a\u4e3a\u662f\u306f\u2013\u2014])"
    rf"(?P<gap>{GAP})"
    r"(?P<open>\\?[\"'`]{1,3}|[*]{1,2}[`\"']?|\[|\(|<!\[CDATA\[)?"
)
KUBERNETES = Pattern(r"[\w.-]{0,30}[\"']?\s{0,3}\n[ \t]{1,16}value:[ \t]{0,3}(?P<open>[\"'])?")
ATTRIBUTE = Pattern(r"[\w.-]{0,30}[\"']\s{1,4}value\s?=\s?(?P<open>[\"'])")
FLAG = Pattern(r"(?P<tail>[\w-]{0,20})(?P<gap>[ \t]{1,3})(?P<open>[\"'])?")
SENTENCE = Pattern(
    r"(?P<glue>[^\n\0.!?;:=|\"`]{0,60}?)"
    rf"(?:(?<![\w])(?P<copula>{keywords.COPULA})"
    rf"(?:[ \t]{{1,3}}{keywords.FILLING}){{0,3}}[ \t]{{0,2}}"
    r"(?P<sign>[:=\u2192\u2013\u2014-]|->)?|(?P<colon>:|=|->|[\u2192\uff1a]))"
    r"[ \t]{1,4}(?P<open>\*{0,2}[\"'`\u201c\u2018\xab\u201e]|\*{1,2}|\()?"
)
QUOTED = Pattern(r"[^\n\0.!?;:=|\"`(]{0,60}?(?P<open>[\"`\u201c\xab(])")
PAIR = Pattern(
    r"[^\n\0.!?;=|]{0,40}?[\"'`*]{0,2}(?<![\w/])[\w.@+-]{2,40}[\"'`*]{0,2}"
    r"(?:[ \t]{0,2}(?:/|:|,|\band\b|\bpassword\b|&)[ \t]{0,2}){1,2}(?P<open>[\"'`*]{1,2})?"
)
"""A user's name before the password: `admin / …`."""

LEFT = Pattern(
    r"(?:^|[\s(\"'`*\u201c])(?P<value>[^\s\0\"'`\u201c\u201d]{6,200})[\"'`*\u201d]{0,3},?[ \t]{1,2}"
    r"(?:\(?(?:is|was|as|for|being|are|=|->|[\u2192\u2013\u2014-])[ \t]{1,2}"
    r"(?:[\w'/-]{1,16}[ \t]{1,2}){0,4}|\((?:[\w'/-]{1,16}[ \t]){0,3})[\"'`*]{0,2}[\w.-]{0,12}\Z"
)
"""The value before its announcement: `… is the password`."""

DIGITS = frozenset("0123456789")
SIGNS = DIGITS.union("\"'`\u201c\xab\u201e!@#$%&*=+~?:|")
IN_CALL = Pattern(r"\(\s{0,8}[\"'][\w.-]{0,40}\Z")
GIVEN = Pattern(
    r"(?:\b(?:with|using|setx|setenv|set|env|arg|export|add|secrets?|login \S{1,40}|user \S{1,40})"
    r"\s{1,2}|(?:^|[\s\[\"'`,])--?)[\w-]{0,40}\Z"
)
"""Before a word whose value follows after a space only: flags, `set`, `with password …`."""

CLOSES = {
    "\u201c": "\u201d",
    "\u2018": "\u2019",
    "\xab": "\xbb",
    "\u201e": "\u201c",
    "<![CDATA[": "]]",
}
"""Quotes that close with another sign than they open with."""

TRAIL = ".,;:)]}>'\"`\u201d\u2019"
"""What ends a sentence or a quote, and no value."""


def has_sign(text: str) -> bool:
    """Say whether a value may be to the right: it has a sign, or a quote stands before it."""
    if not SIGNS.isdisjoint(text):
        return True
    return not text.isascii() and any("\u4e00" <= char <= "\u9fff" for char in text)
