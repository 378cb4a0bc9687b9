"""The same text with its cuts closed: what stands in two pieces is searched as one.

A line end, a quoted-printable break, a backslash, a pair of quotes with an operator, emphasis or a
character without width may stand in the middle of a secret. A detector that reads the text as it
stands takes one half and is content, so it also reads these views. A place in a view is mapped
back to the place in the text; what lies between the pieces goes along with them.
"""

from __future__ import annotations

from bisect import bisect_right

from memtool.redaction.entropy import Pattern, bits, is_wordlike, pair_share

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from re import Match

    Cut = tuple[int, int, str]
    """Start and end of what is left out, and what stands in its place."""

_INVISIBLE = (
    r"[\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f"
    r"\ufe00-\ufe0f\ufeff]"
)
INVISIBLE = Pattern(rf"{_INVISIBLE}+")
"""Characters that are not seen: soft hyphens, zero-width spaces and joiners, directions."""

ENTITIES = Pattern(
    r"(?i:&(?:shy|zerowidthspace|zwn?j|nobreak|[lr]rm|wbr"
    r"|#0{0,4}(?:173|820[3-7]|829[0-9]|8288|65279)"
    r"|#x0{0,4}(?:ad|200[b-f]|206[0-9a-f]|feff));|<wbr\s?/?>)"
)
"""The same, as HTML writes them."""

_T = r"[\w+/=.~-]"
EMPHASIS = Pattern(
    rf"[*~_`<](?<={_T}[*~_`<])(?:(?<=\*)(?<!/\*)\*{{0,2}}(?!/)|(?<=~)~|(?<=_)_|(?<=`)`?"
    r"|(?<=\*)\*_|(?<=_)\*{2}"
    r"|(?<=<)/?(?:b|i|u|s|em|strong|mark|code|tt|span|small|big|ins|del|kbd|font|sub|sup)>)"
    rf"(?={_T})"
)
"""Marks of emphasis inside of a word; no stars of a glob. The first character is looked for first:
that is fast."""
OPENING = Pattern(r"_(?<![\w/.-]_)_?(?=[+(\d]|[\w.+-]{1,64}@)")
CLOSING = Pattern(r"_(?<=[\da-z]_)_?(?![\w/.(-])")
"""Underscores around a number or an address."""

BACKSLASH = Pattern(r"(?<=[^\s\\])\\\r?\n[ \t]{0,40}(?=[^\s\\])")
"""A line that goes on behind a backslash."""

SOFT_BREAK = Pattern(r"(?<=[^\s=])=[ \t]{0,4}\r?\n(?=[^\s=])")
"""A line of quoted-printable that goes on (RFC 2045, 6.7)."""

ENCODED = Pattern(r"=(?:3D|40|2[0-9A-F]|3[AB]|5F)")
"""The signs that quoted-printable encodes inside of secrets and addresses."""

_OPERATOR = r"(?:\+{1,2}|\.{1,2}|&|\|\||<>|~|,)"
CONCATENATION = Pattern(
    r"(?<=[^\s\"'`,=(\[{:])(?P<quote>\\?[\"'`])(?P<between>"
    rf"[ \t]{{0,20}}(?P<first>{_OPERATOR})?[ \t]{{0,20}}(?:[\\_]?[ \t]?\r?\n[ \t]{{0,60}})?"
    rf"(?P<second>{_OPERATOR})?[ \t]{{0,20}}[bBrRfFuU@$]{{0,2}}"
    r"|;?[ \t]{0,4}\n[ \t]{0,40}[$@\w.]{1,60}[ \t]{0,4}[.+]=[ \t]{0,4})"
    r"(?P=quote)(?=[^\s\"'`,)\]}:;])"
)
"""Two string literals that make one."""
_JOINING = Pattern(
    r"(?i:concat\w{0,8}|paste0|strcat|str_c|join)[ \t]{0,2}\([\[(]?[^()\[\]\n]{0,400}\Z"
)
_JOINED = Pattern(r"[^\[\]\n]{0,400}[\])][ \t]{0,2}\.(?:join|concat)\(")

_PIECE = r"[A-Za-z0-9_+/=.~-]"
_PIECE_CHARS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_+/=.~-"
_PIECE_ENDS = frozenset(_PIECE_CHARS)
INDENT = Pattern(r"[ \t]{0,60}(?:(?:#{1,3}|//[/!]?|>{1,3}|\*|--|;{1,2})(?![\w-])[ \t]{0,40}){0,6}")
"""The indent, comment or quote mark of a line."""
_TAIL = Pattern(rf"(?P<piece>{_PIECE}{{1,400}})(?P<after>[ \t]{{0,4}}.?)")
_KEY_SIGN = Pattern(r"[ \t]{0,4}[:=(\[{]")
"""Behind a name, and not behind a piece of a secret."""
_NO_PIECE = Pattern(r"[./~]|.*[^=]=[^=]|.{0,40}\.[a-z]{1,4}\Z|\d{1,4}[-/.]\d\d?[-/.]\d|v?\d+\.\d")
"""Paths, assignments, names of files, dates and versions."""
_PADDED = Pattern(r"[A-Za-z0-9+/]{15,}\Z")

ESCAPED_END = Pattern(r"(?<=[\w+/=.~-])(?:\\r)?\\n(?=[\w+/=.~-])")
"""A line end as a string literal writes it, inside of what may be one word."""
NUMBER_END = Pattern(r"(?<=\d)[ \t]{0,4}\r?\n")
"""A line that ends with a digit."""
_NUMBER_HEAD = Pattern(r"(?:[A-Z]{0,4}\d[\dA-Z]{0,30})(?![\w:])")
_GROUP = Pattern(r"[A-Z\d]{1,34}\Z")

LEAST_PIECE = 4
"""Characters of a piece at a line end; what is shorter is no more than a guess."""


class Joined:
    """A text with its cuts closed, and where its characters come from."""

    __slots__ = ("_ends", "_origins", "_places", "text")

    def __init__(self, text: str, cuts: list[Cut]) -> None:
        pieces: list[str] = []
        self._places: list[int] = []
        self._origins: list[int] = []
        self._ends: list[int] = []
        at = size = 0
        for start, end, instead in (*cuts, (len(text), len(text), "")):
            for piece, origin, stop in ((text[at:start], at, start), (instead, start, end)):
                if piece:
                    pieces.append(piece)
                    self._places.append(size)
                    self._origins.append(origin)
                    self._ends.append(stop)
                    size += len(piece)
            at = end
        self.text = "".join(pieces)

    def origins(self, start: int, end: int) -> Iterator[tuple[int, int]]:
        """Yield the spans of the text that a span of this view is made of, in order."""
        first = bisect_right(self._places, start) - 1
        last = bisect_right(self._places, end - 1) - 1
        for row in range(first, last + 1):
            place, origin, stop = self._places[row], self._origins[row], self._ends[row]
            length = self._places[row + 1] if row + 1 < len(self._places) else len(self.text)
            is_copy = length - place == stop - origin
            low = origin + max(0, start - place) if is_copy else origin
            high = min(stop, origin + end - place) if is_copy else stop
            yield low, high


def closed(text: str) -> Joined | None:
    """Return the view without the cuts that say what they are; None where the text has none."""
    cuts: list[Cut] = []
    if not text.isascii():
        cuts += [(*m.span(), "") for m in INVISIBLE.finditer(text)]
    if "&" in text or "<wbr" in text:
        cuts += [(*m.span(), "") for m in ENTITIES.finditer(text)]
    if any(mark in text for mark in ("*", "~~", "`", "_", "<")):
        cuts += [(*m.span(), "") for m in EMPHASIS.finditer(text)]
    if "_" in text and (opened := [(*m.span(), "") for m in OPENING.finditer(text)]):
        cuts += opened + [(*m.span(), "") for m in CLOSING.finditer(text)]
    if "\\\n" in text or "\\\r\n" in text:
        cuts += [(*m.span(), "") for m in BACKSLASH.finditer(text)]
    if "=\n" in text or "=\r\n" in text or "=3D" in text:
        cuts += _quoted_printable(text)
    if '"' in text or "'" in text:
        cuts += [(*m.span(), "") for m in CONCATENATION.finditer(text) if _is_one_string(m)]
    return Joined(text, _apart(cuts)) if cuts else None


def _apart(cuts: list[Cut]) -> list[Cut]:
    """Return cuts in order, without those that reach into another."""
    kept: list[Cut] = []
    for cut in sorted(cuts):
        if not kept or cut[0] >= kept[-1][1]:
            kept.append(cut)
    return kept


def _quoted_printable(text: str) -> list[Cut]:
    """Return the cuts of quoted-printable: its breaks, and the signs that it encodes."""
    is_sure = "=3D" in text or "quoted-printable" in text or "=C3=" in text or "=20" in text
    cuts: list[Cut] = []
    for match in SOFT_BREAK.finditer(text):
        start, end = match.span()
        padded = _PADDED.search(text, max(0, start - 400), start)
        is_padding = padded is not None and len(padded[0]) % 4 in (2, 3)
        tail = _TAIL.match(text, end)
        if is_sure or not is_padding or (tail and is_piece(tail["piece"])):
            cuts.append((start, end, ""))
    if cuts or "=3D" in text:
        cuts += [(*m.span(), chr(int(m[0][1:], 16))) for m in ENCODED.finditer(text)]
    return cuts


def _is_one_string(match: Match[str]) -> bool:
    """Return whether the literals before and behind are one string, and no arguments of a call."""
    if match["first"] and match["second"]:
        return False
    if "," not in (match["first"], match["second"]):
        return bool(match["first"] or match["second"] or match["between"].strip(" \t"))
    text, start = match.string, match.start()
    return bool(
        _JOINING.search(text, max(0, start - 440), start) or _JOINED.match(text, match.end())
    )


def wrapped(text: str) -> Joined | None:
    """Return the view without line ends between pieces of what is no word; None without any."""
    cuts: list[Cut] = []
    at = text.find("\n")
    first = 0
    while at >= 0:
        stop = text.find("\n", at + 1)
        line = text[first:at].rstrip()
        below = text[at + 1 : stop if stop >= 0 else len(text)]
        if line and below and line[-1] in _PIECE_ENDS:
            cuts += _line_end(text, _last_word(line), first + len(line), at + 1)
        first, at = at + 1, stop
    for match in ESCAPED_END.finditer(text) if "\\n" in text else ():
        head = _last_word(text[max(0, match.start() - 400) : match.start()])
        cuts += _line_end(text, head, *match.span())
    if "|" in text:
        cuts += _cell_ends(text)
    return Joined(text, _apart(cuts)) if cuts else None


def numbered(text: str) -> Joined | None:
    """Return the view without line ends inside of numbers in groups; None where there is none.

    Groups of four stay apart, as cards and accounts are written; what was cut inside of a group is
    one group again.
    """
    cuts: list[Cut] = []
    for match in NUMBER_END.finditer(text):
        indent = INDENT.match(text, match.end())
        end = indent.end() if indent else match.end()
        if _NUMBER_HEAD.match(text, end):
            start = match.start()
            group = _GROUP.search(text, max(0, start - 35), start)
            is_whole = group is not None and len(group[0]) == 4
            cuts.append((start, end, " " if is_whole else ""))
    return Joined(text, cuts) if cuts else None


def _last_word(line: str) -> str:
    """Return the letters, digits and signs of secrets that a line ends with."""
    word = line.rsplit(maxsplit=1)[-1]
    return word[len(word.rstrip(_PIECE_CHARS)) :]


def _line_end(text: str, head: str, start: int, end: int) -> Iterator[Cut]:
    """Yield the cut between the word at the end of a line and the first one of the next."""
    if not head or (head.isalpha() and head[1:].islower() and not _is_chance(head)):
        return
    indent = INDENT.match(text, end)
    end = indent.end() if indent else end
    tail = _TAIL.match(text, end)
    if tail is None or _KEY_SIGN.match(tail["after"]):
        return
    if _belong(head, tail["piece"], is_alone=not tail["after"].strip(" \t\"'`.,;)<\\")):
        yield start, end, ""


def _belong(head: str, tail: str, *, is_alone: bool) -> bool:
    """Return whether the last word of a line and the first of the next may be one secret.

    Where the second is alone on its line, one of them may be short or look like a part of a name.
    """
    if is_piece(head) and is_piece(tail):
        return True
    if not is_alone or not (_is_chance(head) and _is_chance(tail)):
        return False
    return is_piece(head) or (is_piece(tail) and len(tail) > 7)


def _is_chance(part: str) -> bool:
    """Return whether a word is more than a plain word, the name of a file or a date."""
    if _NO_PIECE.match(part) or sum(map(str.isalnum, part)) < 3:
        return False
    return not (part[1:].islower() and part.isalpha() and pair_share(part) > 0.4)


_CELL = Pattern(r"(?<=\|)[^|\n]{0,400}(?=\|)")


def _cell_ends(text: str) -> list[Cut]:
    """Return the cuts between a cell and the same cell of the next row, if that row goes on."""
    cuts: list[Cut] = []
    above: list[Match[str]] = []
    at = 0
    while at < len(text):
        stop = text.find("\n", at)
        stop = len(text) if stop < 0 else stop
        row: list[Match[str]] = []
        if text.find("|", at, stop) >= 0:
            row = list(_CELL.finditer(text, at, stop))
            filled = [cell for cell in row if cell[0].strip()]
            goes_on = len(filled) == 1 or (row and not row[0][0].strip())
            for tail in filled if goes_on and len(row) == len(above) else ():
                head = above[row.index(tail)]
                first, second = head[0].rstrip(" \t\"'`*"), tail[0].lstrip(" \t\"'`*")
                word = _last_word(first) if first.strip() else ""
                piece = _TAIL.match(second)
                if word and piece and _belong(word, piece["piece"], is_alone=True):
                    cuts.append((head.start() + len(first), tail.end() - len(second), ""))
        above = row
        at = stop + 1
    return cuts


def is_piece(part: str) -> bool:
    """Return whether a word at a line end may be a piece of what a machine drew."""
    part = part.rstrip("=.-~")
    if len(part) < LEAST_PIECE or "://" in part or _NO_PIECE.match(part):
        return False
    letters = sum(map(str.isalpha, part))
    digits = sum(map(str.isdigit, part))
    if not letters:
        return digits == len(part) > 5
    if is_wordlike(part) and digits < 2:
        return False
    if digits:
        return letters + digits > len(part) * 3 // 4 and bits(part) > 1.5
    inner = part[1:]
    is_mixed = not inner.islower() and not inner.isupper() and letters * 6 > len(part) * 5
    return (is_mixed and pair_share(part) < 0.5) or (len(part) > 4 and pair_share(part) < 0.2)
