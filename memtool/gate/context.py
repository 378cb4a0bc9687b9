"""Secrets that only the words beside them give away: `the admin password is …`, `API_KEY=…`.

An announcing word is found first; then one anchored look to the right, over at most 60 characters
of glue, and one to the left. The work for each word is bounded, so a text full of them is linear.
"""

from __future__ import annotations

from memtool.gate import columns, glue, keywords, values
from memtool.gate.fitting import Announcement, fits, is_sure_key
from memtool.gate.pattern import Pattern

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

BARE_VERBS = frozenset(("pass", "auth"))
"""Words of prose and code that announce something only where a sign assigns it."""

MOST_GLUE = 60
MOST_VALUE = 500
MOST_PER_LINE = 400
"""Announcing words looked at on one line; nobody writes more of them."""


def find(text: str, lower: str) -> Iterator[tuple[str, int, int]]:
    """Yield (kind, start, end) of what stands beside an announcing word."""
    for kind, pattern in keywords.patterns(lower):
        line_end = seen = 0
        for hit in pattern.finditer(lower):
            if hit.start() >= line_end:
                line_end = lower.find("\n", hit.end())
                line_end = len(lower) if line_end < 0 else line_end
                seen = 0
            seen += 1
            if seen <= MOST_PER_LINE:
                start = keywords.announced_from(lower, *hit.span())
                if start is not None:
                    span = _beside(Announcement(text, lower, start, hit.end(), kind))
                    if span is not None:
                        yield kind, *span
    yield from columns.find(text, lower)


def _beside(said: Announcement) -> tuple[int, int] | None:
    """Return the span of the secret beside an announcement."""
    span = None
    if glue.has_sign(said.lower[said.end : said.end + 110]):
        span = _assigned(said) or _given(said) or _told(said)
    if span is None and not glue.DIGITS.isdisjoint(
        said.lower[max(0, said.start - 160) : said.start]
    ):
        span = _before(said)
    return span


def _assigned(said: Announcement) -> tuple[int, int] | None:
    """Return the span of a value that a sign assigns, also in a table, an attribute, a manifest."""
    text = said.text
    match = glue.ASSIGN.match(text, said.end)
    if match:
        if keywords.is_tail_harmless(match["tail"]):
            return None
        in_call = match["open"] and glue.IN_CALL.search(text, max(0, said.start - 48), said.start)
        if match["sign"].endswith(",") and not in_call:
            return None
        if match["note"] and keywords.HASH_WORDS.search(match["note"].lower()):
            return None
        broken = "\n" in match["gap"]
        span = _value(text, match.end(), match["open"] or "", alone=broken)
        if span and fits(said, span, sure=not broken, quoted=bool(match["open"])):
            return span
    for pattern in (glue.KUBERNETES, glue.ATTRIBUTE):
        match = pattern.match(text, said.end)
        if match:
            span = _value(text, match.end(), match["open"] or "")
            if span and fits(said, span, sure=True, quoted=True):
                return span
    return None


def _given(said: Announcement) -> tuple[int, int] | None:
    """Return the span of a value that follows after a space: a flag's, a setting's."""
    lower, start = said.lower, said.start
    if said.word in BARE_VERBS:
        return None
    line = lower.rfind("\n", 0, start)
    is_setting = said.word in ("requirepass", "masterauth")
    if not is_setting and not glue.GIVEN.search(lower, max(0, start - 60, line), start):
        return None
    match = glue.FLAG.match(said.text, said.end)
    if match is None or keywords.is_tail_harmless(match["tail"]):
        return None
    span = _value(said.text, match.end(), match["open"] or "")
    return span if span and fits(said, span, sure=True, quoted=bool(match["open"])) else None


def _told(said: Announcement) -> tuple[int, int] | None:
    """Return the span of a value in the sentence that follows."""
    if said.word in BARE_VERBS:
        return None
    text, lower, end = said.text, said.lower, said.end
    at = end
    for _try in range(3):
        match = glue.SENTENCE.match(lower, at)
        if match is None or match.end() - end > MOST_GLUE + 30:
            break
        between = lower[end : match.end("glue")]
        if keywords.is_tail_harmless(_first_word(between)):
            break
        span = _value(text, match.end(), match["open"] or "")
        quoted = bool(match["open"]) and match["open"] != "("
        direct = bool(match["sign"] or match["colon"] or quoted)
        if span and fits(said, span, sure=direct and len(between) < 40, quoted=quoted):
            return span
        at = max(match.end("copula"), match.end("colon"))
    span = _quoted(said)
    if span is None and said.kind == "password":
        match = glue.PAIR.match(lower, end)
        span = _value(text, match.end(), match["open"] or "") if match else None
        value = text[span[0] : span[1]] if span else ""
        span = span if values.is_typed(value, 8) and values.is_mixed(value) else None
    return span


def _quoted(said: Announcement) -> tuple[int, int] | None:
    """Return the span of the next quoted value, if its form alone says enough."""
    match = glue.QUOTED.match(said.lower, said.end)
    if match is None or keywords.HASH_WORDS.search(said.lower, said.end, match.start("open")):
        return None
    span = _value(said.text, match.end(), match["open"])
    value = said.text[span[0] : span[1]] if span else ""
    is_password = said.kind == "password" and not said.word.startswith("pin")
    if values.is_dense(value, 14):
        return span
    return span if is_password and values.is_typed(value, 7) and values.is_mixed(value) else None


def _first_word(glue: str) -> str:
    match = _FIRST_WORD.match(glue)
    return match[1] if match else ""


def _before(said: Announcement) -> tuple[int, int] | None:
    """Return the span of a value that stands before: `… is the password`, `… as API key`."""
    text, start = said.text, said.start
    line = text.rfind("\n", 0, start) + 1
    match = glue.LEFT.search(text, max(0, start - 160, line - 1), start)
    if match is None or said.lower[said.end : said.end + 1].isalnum():
        return None
    value = match["value"].lstrip("(")
    begin = match.end("value") - len(value)
    value = value.rstrip(glue.TRAIL)
    end = begin + len(value)
    if keywords.HASH_WORDS.search(said.lower, end, start):
        return None
    if said.kind == "password":
        good = values.is_typed(value, 8) and values.is_mixed(value)
    else:
        good = values.is_hex_or_uuid(value) and is_sure_key(said)
    return (begin, end) if good or values.is_dense(value) else None


def _value(text: str, at: int, opened: str, *, alone: bool = False) -> tuple[int, int] | None:
    """Return the span of the value that begins here: up to its quote, or to a space or a mark."""
    quote = opened.strip("\\")[-1:] if opened != "<![CDATA[" else opened
    if quote and quote not in "([":
        close = glue.CLOSES.get(quote, quote)
        line = text.find("\n", at, at + MOST_VALUE)
        stop = text.find(close, at, line if line >= 0 else at + MOST_VALUE)
        if stop > at:
            end = stop - 1 if text[stop - 1] == "\\" else stop
            return _trimmed(text, at, end)
    match = _PLAIN.match(text, at)
    if match is None or (
        alone and text[match.end() : match.end() + 1] not in ("", "\n", "\r", "`", '"')
    ):
        return None
    value = match[0]
    cut = _CUT.search(value)
    if cut:
        value = value[: cut.start()]
    while value and value[-1] in glue.TRAIL and not (value[-1] == ")" and "(" in value):
        value = value[:-1]
    return (at, at + len(value)) if value else None


def _trimmed(text: str, start: int, end: int) -> tuple[int, int] | None:
    while start < end and text[start] in " \t":
        start += 1
    while end > start and text[end - 1] in " \t":
        end -= 1
    return (start, end) if end > start else None


_PLAIN = Pattern(r"[^\s\"'`<>\x00]{3,500}")
_CUT = Pattern(r";(?=[A-Za-z ]|$)|,(?=\w+[=:])|&(?=[\w.-]+=)|\\n|\\r|\|(?=\s|$)|/?\*/|\*\*")
_FIRST_WORD = Pattern(r"[ _'\u2019s-]{0,3}([a-z0-9]+)")
