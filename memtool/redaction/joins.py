"""The same text with its cuts closed: what stands in two pieces is searched as one.

A line end, a quoted-printable break, a backslash, a pair of quotes with an operator, emphasis or a
character without width may stand in the middle of a secret. A detector that reads the text as it
stands takes one half and is content, so it also reads these views. A place in a view is mapped
back to the place in the text; what lies between the pieces goes along with them.
"""

from __future__ import annotations

from bisect import bisect_right

from memtool.pattern import Pattern
from memtool.redaction.entropy import compute_entropy, compute_pair_share, is_wordlike

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence
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

SPACES = Pattern(r"[\xa0\u2000-\u200a\u202f\u205f\u3000]")
HYPHENS = Pattern(r"[\u2010-\u2012\u2212](?=\d)")
"""Spaces and hyphens that a line may not break at, and others that word processors write."""

_T = r"[\w+/=.~@-]"
TAGS = Pattern(
    r"(?<=[^\s>])</?(?:b|i|u|s|em|strong|mark|code|tt|span|small|big|ins|del|kbd|font|sub|sup)"
    r"(?:[ ][^<>\n]{0,80})?>(?=[^\s<])"
)
"""Tags of emphasis inside of a word."""
BREAK = Pattern(r"<(?:br|BR)[ \t]{0,2}/?>")
"""A line end as HTML writes it."""

EMPHASIS = Pattern(
    rf"[*~_`](?<={_T}[*~_`])(?:(?<=\*)(?<!/\*)\*{{0,2}}(?!/)|(?<=~)~|(?<=_)_|(?<=`)`?"
    rf"|(?<=\*)\*_|(?<=_)\*{{2}})(?={_T})"
)
"""Marks of emphasis inside of a word; no stars of a glob. The first character is looked for first:
that is fast."""
IN_NUMBER = Pattern(
    r"[*_~`](?:(?<=[\d)][*_~`])|(?<=\d [*_~`])|(?<=\d-[*_~`]))"
    r"(?:(?<=\*)\*?|(?<=_)_?|(?<=~)~|(?<=`))(?=[ -]?\d)"
)
"""The same between the groups of a number."""
OPENING = Pattern(r"_(?<![\w/.-]_)_?(?=[+(\d]|[\w.+-]{1,64}@)")
CLOSING = Pattern(r"_(?<=[\da-z]_)_?(?![\w/.(-])")
"""Underscores around a number or an address."""

BACKSLASH = Pattern(r"(?<=[^\s\\])[\\^]\r?\n[ \t]{0,40}(?=[^\s\\])")
"""A line that goes on behind a backslash, or a caret as in batch files."""

SOFT_BREAK = Pattern(r"(?<=[^\r\n=])=[ \t]{0,4}\r?\n(?=[^\r\n=])")
"""A line of quoted-printable that goes on (RFC 2045, 6.7)."""

ENCODED = Pattern(r"=(?:3D|40|2[0-9A-F]|3[AB]|5F)|(?:=[89A-F][0-9A-F]){2,8}")
"""The signs that quoted-printable encodes inside of secrets and addresses, and other letters."""

ESCAPED = Pattern(r"%[2-7][0-9A-Fa-f]|\\u00[2-7][0-9A-Fa-f]|(?<!\\)\\/")
"""Characters as addresses (RFC 3986, 2.1) and texts of JSON (RFC 8259, 7) write them."""


def _decode(escaped: str) -> str:
    return "/" if escaped == "\\/" else chr(int(escaped[-2:], 16))


_OPERATOR = r"(?:\+{1,2}|\.{1,2}|&|\|\||<>|~|,)"
CONCATENATION = Pattern(
    r"(?P<quote>[\\\"'`](?:(?<=[^\s\"'`,=(\[{:][\\\"'`])|(?<=\d [\\\"'`]))"
    r"(?:(?<=\\)[\"'`]|(?<!\\)))"
    r"(?P<between>"
    rf"[ \t]{{0,20}}(?P<first>{_OPERATOR})?[ \t]{{0,20}}(?:[\\_]?[ \t]?\r?\n[ \t]{{0,60}})?"
    rf"(?P<second>{_OPERATOR})?[ \t]{{0,20}}[bBrRfFuU@$]{{0,2}}"
    r"|\)?\s{0,20}\.(?:concat|append|plus|add)\("
    r"|;?[ \t]{0,4}\n[ \t]{0,40}[$@\w.]{1,60}[ \t]{0,4}[.+]=[ \t]{0,4})"
    r"(?P=quote)(?=[^\s\"'`,)\]}:;]| \d)"
)
"""Two string literals that make one."""
LITERALS = Pattern(r"[\"'`][ \t]{0,3}(?:\.{1,2}|\+|&|~|<>|\|\|)\s{0,20}[\"'`]")
"""Where there may be two: an operator between quotes."""
_JOINING = Pattern(
    r"(?i:concat\w{0,8}|paste0|strcat|str_c|join)[ \t]{0,2}\([\[(]?[^()\[\]\n]{0,400}\Z"
)
_JOINED = Pattern(r"[^\[\]\n]{0,400}[\])][ \t]{0,2}\.(?:join|concat)\(")

ESCAPED_END = Pattern(r"(?<!\\)(?:\\r)?\\n")
"""A line end as a string literal writes it."""

UNSEEN = ((("",), INVISIBLE, ""), (("",), SPACES, " "), (("",), HYPHENS, "-"))
MARKED = (
    (("<br", "<BR"), BREAK, "\n"),
    (("&", "<wbr"), ENTITIES, ""),
    (("</",), TAGS, ""),
    (("\\\n", "\\\r\n", "^\n", "^\r\n"), BACKSLASH, ""),
    (("\\n",), ESCAPED_END, "\n"),
)
"""Parts of a text that has a cut, its pattern, and what is in its place."""

_PIECE = r"[A-Za-z0-9_+/=.~-]"
INDENT = Pattern(
    r"\+?[ \t]{0,60}(?:(?:#{1,3}|//[/!]?|>{1,3}|\*|--|;{1,2})(?![\w-])[ \t]{0,40}){0,6}"
)
"""The indent, comment or quote mark of a line."""
_TAIL = Pattern(rf"(?P<piece>{_PIECE}{{1,400}})(?P<after>[ \t]{{0,4}}.?)")
_HEAD = Pattern(rf"{_PIECE}{{1,400}}\Z")
_AFTER = Pattern(r"[ \t]{0,4}.?")
_NO_PIECE = Pattern(
    r"[./~]|.*[^=]=[^=]|.{0,40}\.[a-z]{1,4}\Z|\d{1,4}[-/.]\d\d?[-/.]\d|v?\d+(?:\.\d+)+(?!\w)"
)
"""Paths, assignments, names of files, dates and versions."""
_PADDED = Pattern(r"[A-Za-z0-9+/]{15,}\Z")

LINE_END = Pattern(r"(?<=[^\s|,;:!?)\]}>])(?<![>|][-+])[ \t]{0,2}\r?\n(?=[^\r\n])")
"""A line end behind what may be a word, and another line."""
_WORD = Pattern(r"[^\s|<>(){}\[\]]{1,400}")
_NAMED = Pattern(r"(?P<name>[A-Za-z_][\w.-]*)(?:[:(\[{]|[ \t]{1,4}=|=[\"'`]?[^\s=,;)\]}\"'`])")
_PLAIN = Pattern(r"[-+*_`'\"($]*(?:[A-Za-z]?[a-z]*|[A-Z]{1,12})(?:'[a-z]{1,2})?[.,;:!?'\")`*_]*\Z")
"""A plain word with what is around it, or signs alone, such as the dash of a list."""
_ADDRESSED = Pattern(r"@|\bat\b|arroba")
GAP = "\n\0\n"
"""In place of lines that a view leaves out: nothing is found across it."""
LINES_ABOVE = 2
MIN_PIECE = 4
"""Characters of a piece at a line end; what is shorter is no more than a guess."""


class JoinedText:
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

    def map_back(self, start: int, end: int) -> tuple[int, int]:
        """Return where the first character of a span of this view is, and where its last ends."""
        spans = list(self.origins(start, end))
        return spans[0][0], spans[-1][1]

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


def close_cuts(text: str) -> JoinedText | None:
    """Return the view without the cuts that say what they are; None where the text has none."""
    cuts: list[Cut] = []
    for needles, pattern, instead in MARKED if text.isascii() else (*UNSEEN, *MARKED):
        if any(needle in text for needle in needles):
            cuts += [(*match.span(), instead) for match in pattern.finditer(text)]
    if any(mark in text for mark in ("*", "~~", "`", "_")):
        cuts += _find_emphasis(text)
    if "=\n" in text or "=\r\n" in text or "=3D" in text:
        cuts += _find_quoted_printable(text)
    if "%" in text or "\\" in text:
        cuts += [(*match.span(), _decode(match[0])) for match in ESCAPED.finditer(text)]
    if ">" in text or "|" in text:
        cuts += _find_folded(text)
    if '"' in text or "'" in text:
        cuts += [(*m.span(), "") for m in CONCATENATION.finditer(text) if _is_one_string(m)]
    return _view_around(text, _drop_overlapping(cuts))


FOLD = Pattern(
    r":[ \t]{1,4}[>|][-+\d]{0,2}[ \t]{0,4}\r?\n"
    r"(?P<lines>(?:\+?[ \t]{1,40}[^\s:#-][^\s:]{0,400}[ \t]{0,4}(?:\r?\n|$)){2,40})"
)
"""A block of YAML whose lines are one word each."""
_FOLD_END = Pattern(r"[ \t]{0,4}\r?\n\+?[ \t]{1,40}(?=\S)")


def _find_folded(text: str) -> list[Cut]:
    """Return the line ends in blocks of YAML whose lines are one word each."""
    return [
        (*end.span(), "")
        for block in FOLD.finditer(text)
        for end in _FOLD_END.finditer(text, block.start("lines"), block.end("lines"))
    ]


def _find_emphasis(text: str) -> list[Cut]:
    """Return the marks of emphasis inside of words and numbers, and underscores around them."""
    marks = [(*match.span(), "") for match in EMPHASIS.finditer(text)]
    marks += [(*match.span(), "") for match in IN_NUMBER.finditer(text)]
    if "_" in text:
        marks += [(*match.span(), "") for match in OPENING.finditer(text)]
        if any(text[start] == "_" for start, _end, _nothing in marks):
            marks += [(*match.span(), "") for match in CLOSING.finditer(text)]
    return marks


def _drop_overlapping(cuts: list[Cut]) -> list[Cut]:
    """Return cuts in order, without those that reach into another."""
    remaining_cuts: list[Cut] = []
    for cut in sorted(cuts):
        if not remaining_cuts or cut[0] >= remaining_cuts[-1][1]:
            remaining_cuts.append(cut)
    return remaining_cuts


def _find_quoted_printable(text: str) -> list[Cut]:
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
        cuts += [
            (*m.span(), bytes.fromhex(m[0].replace("=", "")).decode(errors="replace"))
            for m in ENCODED.finditer(text)
        ]
    return cuts


def _is_one_string(match: Match[str]) -> bool:
    """Return whether the literals before and behind are one string, and no arguments of a call."""
    if match["first"] and match["second"]:
        return False
    if "," not in (match["first"], match["second"]):
        is_sure = bool(match["first"] or match["second"] or match["between"].strip(" \t"))
        return is_sure or _is_between_pieces(match)
    text, start = match.string, match.start()
    return bool(
        _JOINING.search(text, max(0, start - 440), start) or _JOINED.match(text, match.end())
    )


def _is_between_pieces(match: Match[str]) -> bool:
    """Return whether two literals that touch are the halves of what a machine drew."""
    text, start = match.string, match.start()
    head = _HEAD.search(text, max(0, start - 400), start)
    tail = _TAIL.match(text, match.end())
    return bool(head and tail and is_piece(head[0]) and is_piece(tail["piece"]))


def join_unbroken(text: str, starts: Collection[int] = ()) -> JoinedText | None:
    """Return the view without line ends between words of which one is no plain word, or None.

    Nothing goes on at one of `starts`.
    """
    cuts: list[Cut] = []
    at = text.find("\n")
    while at >= 0:
        line_end = LINE_END.search(text, max(0, at - 3), at + 2)
        at = text.find("\n", at + 1)
        if line_end is None:
            continue
        start, end = line_end.span()
        indent = INDENT.match(text, end)
        end = indent.end() if indent else end
        tail = _WORD.match(text, end)
        if tail is None or end in starts or _is_name(text, end):
            continue
        is_plain = _PLAIN.match(tail[0]) is not None and not _goes_on(text, start)
        if not is_plain or _ADDRESSED.search(text, max(0, start - 80), end + 80):
            cuts.append((start, end, ""))
    return _view_around(text, cuts)


def _goes_on(text: str, end: int) -> bool:
    """Return whether a line ends in capitals and digits that may be a piece of a key."""
    if not text[end - 1].isupper() and not text[end - 1].isdigit():
        return False
    head = _HEAD.search(text, max(0, end - 80), end)
    return head is not None and head[0].isupper() and len(head[0]) > 7 and is_piece(head[0])


def _view_around(text: str, cuts: list[Cut]) -> JoinedText | None:
    """Return the view of the lines around cuts, without those further away; None without a cut."""
    remaining_cuts: list[Cut] = []
    seen = 0
    for cut in cuts:
        if cut[1] < seen:  # on a line that is in the view already, which may be long
            remaining_cuts.append(cut)
            continue
        first = cut[0]
        for _line in range(LINES_ABOVE + 1):
            first = text.rfind("\n", seen, max(seen, first))
        if first + 1 > seen:
            remaining_cuts.append((seen, first + 1, GAP))
        remaining_cuts.append(cut)
        seen = text.find("\n", cut[1]) + 1 or len(text)
    return JoinedText(text, [*remaining_cuts, (seen, len(text), "")]) if remaining_cuts else None


WINDOW_LINES = 6
"""Lines on both sides of a finding in which another may show once it is blanked."""


def make_windows(
    text: str, spans: Sequence[tuple[int, int]], lines: int = WINDOW_LINES
) -> JoinedText:
    """Return the view of the lines around spans, which are in order of where they begin."""
    gaps: list[Cut] = []
    seen = 0
    line_end = -1
    for start, end in spans:
        if end <= line_end:
            continue  # on the line of the span before
        line_end = text.find("\n", end)
        line_end = len(text) if line_end < 0 else line_end
        first, last = start, line_end + 1
        for _line in range(lines):
            last = text.find("\n", last) + 1 or len(text)
        for _line in range(lines + 1):
            first = text.rfind("\n", seen, max(seen, first))
        if first + 1 > seen:
            gaps.append((seen, first + 1, GAP))
        seen = max(seen, min(last, len(text)))
    return JoinedText(text, [*gaps, (seen, len(text), "")])


def _is_name(text: str, at: int) -> bool:
    """Return whether a line begins with the name of what it assigns, calls or describes."""
    match = _NAMED.match(text, at)
    return match is not None and not (len(match["name"]) > 15 and is_piece(match["name"]))


def is_rest(text: str, start: int, end: int) -> bool:
    """Return whether a word goes on with what the line above ends with, and is none of its own."""
    part = text[start:end]
    after = _AFTER.match(text, end)
    if after is None or _is_name(text, start):
        return False
    if is_piece(part):
        return True
    if _NO_PIECE.match(part) or sum(map(str.isalnum, part)) < 3:
        return False
    is_alone = not after[0].strip(" \t\"'`.,;)<\\\r\n")
    is_plain = part.isalpha() and part[1:].islower() and compute_pair_share(part) > 0.4
    return is_alone and not is_plain


def is_piece(part: str) -> bool:
    """Return whether a word at a line end may be a piece of what a machine drew."""
    part = part.rstrip("=.-~")
    if len(part) < MIN_PIECE or "://" in part or _NO_PIECE.match(part):
        return False
    letters = sum(map(str.isalpha, part))
    digits = sum(map(str.isdigit, part))
    if not letters:
        return digits == len(part) > 5
    if is_wordlike(part) and digits < 2:
        return False
    if digits:
        return letters + digits > len(part) * 3 // 4 and compute_entropy(part) > 1.5
    inner = part[1:]
    is_mixed = not inner.islower() and not inner.isupper() and letters * 6 > len(part) * 5
    return (is_mixed and compute_pair_share(part) < 0.5) or (
        len(part) > 4 and compute_pair_share(part) < 0.2
    )
