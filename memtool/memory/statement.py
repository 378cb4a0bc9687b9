"""The statement of a memory: what it claims in short, found in a body of any form.

An imported record is a document: before its decision there are a table of contents, lines such as
`Status: accepted`, a change log or what a template says. The claim is the first prose of a section
about the decision, as `data/section_names.tsv` lists them; without one, the first prose of all.
"""

from __future__ import annotations

from memtool import tables
from memtool.pattern import Pattern
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from re import Match

MAX_STATEMENT = 700
"""Characters of a statement, with the list that it announces; a digest's lead is as long."""
_MAX_MARK_WORDS = 5
"""Words of a text that is only a mark, such as `TODO: ask the team`."""
_MAX_ADDRESS_WORDS = 3
"""Words next to an address that say only what it is, such as `Implemented in`."""
_MAX_VALUE_WORDS = 12
"""Words after a label or a date, if they are not a sentence."""

_DECIDING = ("decision", "summary", "proposal")
"""The parts of a record that say what was decided, the best first."""
_REASON, _ASIDE, _NONE = "reason", "aside", ""
_PARAGRAPH, _LIST, _QUOTE, _CODE, _FIGURE = "paragraph", "list", "quote", "code", "figure"
_LABEL_LEVEL = 7
"""The level of a line such as `**Decision**`, which is below every heading."""

_MAX_LABEL_CHARS = 60
"""Characters of a line in which a label ends."""
_MAX_DATE_START = 16
"""Characters in which a date at the beginning of a text has its first digit."""
_TITLE_MARKS = (":", " \u2014 ", " \u2013 ", " - ")
_BULLETS = ("-", "*", "+", "\u2022")
_BOXES = ("[ ] ", "[x] ")
_MAX_NUMBER_CHARS = 4
_FENCES = ("```", "~~~")
_RULE_MARKS = "-=*_~^+#:. \t"
_TABLE_MARKS = f"{_RULE_MARKS}|"
_IMAGES = ("![", "[![")
_LABEL = Pattern(
    r"(?P<list>[-*+]\s+)?(?P<mark>\*\*|__|[*_:])?(?P<name>[^\W\d_][^:*|`\[\]<>]{0,40}?)"
    r"(?:\*\*|__|[*_])?\s?[:\uff1a](?:\*\*|__|[*_])?(?P<value>.*)$"
)
_BOLD = Pattern(r"(?:\*\*|__)(?P<name>[^*_]{1,60})(?:\*\*|__):?$")
_NUMBER = Pattern(r"[\W_]*(?:\d{1,3}(?:\.\d{1,3}){0,3}[.):]?\s+)?[\W_]*")
_TAIL = Pattern(r"\s*(?:\([^()]*\)|\{[^{}]*\}|<[^<>]*>)?[\s:\uff1a*_#=]*$")
_DATE = Pattern(
    r"\W{0,8}(?:\d{4}[-./]\d{1,2}[-./]\d{1,2}|\d{1,2}[-./]\d{1,2}[-./]\d{4}"
    r"|(?:\d{1,2}\w{0,2}\s)?[^\W\d_]{3,9}\.?\s(?:\d{1,2}\w{0,2},?\s)?\d{4})\b"
)
_OPTION = Pattern(r"(?:[^:]{1,40}:|[^\W\d_]{2,12}\b)?\W{0,4}(?P<name>[^\W\d_]{2,20} \w{1,2})\b")
"""Begins a claim that names an option by its letter or number: `Adopt **Option B**`."""
_TARGET = Pattern(r"(?<=\])(?:\([^()\s]*\)|\[[^\[\]]*\])")
_BRACKETS = Pattern(r"\{[^{}]*\}|\[[^\[\]]*\]|<[^<>]*>")
"""Links, and the gaps of a template: `[Index](README.md)` without its target, `{date}`."""
_GAP = Pattern(r"\{[^{}]*\}")
_WORD = Pattern(r"[^\W\d_]{2,}")
_SENTENCE_MARKS = (".", "!", "\u3002")
_SENTENCE_END = Pattern(r"[.!?](?=\s|$)|。")
_MARKED_END = Pattern(r"[.!?](?:\*\*|__|[)\"'`\u201d])*(?=\s|$)|。")
"""The end of a sentence, with the marks that end what is bold or in quotes."""
_words: dict[str, dict[str, str]] = {}
"""The tables, read when a body first needs them."""


def _load(name: str) -> dict[str, str]:
    """Return the last column of a table with the first."""
    if name not in _words:
        _words[name] = {row[-1]: row[0] for row in tables.read_rows(f"memory/{name}")}
    return _words[name]


class _Heading:
    """A heading, and the part of a record that it names: found when first asked for."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._part: str | None = None

    @property
    def part(self) -> str:
        if self._part is None:
            self._part = _find_part(_normalize(self.text))
        return self._part


class _Block(Value):
    """A paragraph, list, table, quote or code of a document, below its headings.

    `label` is the part of the record that its own first words name, as in `Decision: Use Redis.`
    """

    kind: str
    label: str
    headings: tuple[_Heading, ...]
    lines: tuple[str, ...]

    @property
    def part(self) -> str:
        """What it is about: the part of the record that its label or the nearest heading names."""
        parts = (heading.part for heading in reversed(self.headings))
        return self.label or next(filter(None, parts), _NONE)


class _Claim(Value):
    """What a block says: the texts that are prose, one for a paragraph, several for a list."""

    block: _Block
    texts: tuple[str, ...]

    @property
    def text(self) -> str:
        """All of it on one line."""
        return " ".join(self.texts)

    @property
    def is_bold(self) -> bool:
        """Whether all of it is bold, as a heading is."""
        text = self.text
        return text.startswith("**") and text.endswith("**") and "**" not in text[2:-2]

    @property
    def is_bold_sentence(self) -> bool:
        """Whether it is bold and says something by itself."""
        return self.is_bold and _is_sentence(self.text)

    @property
    def announces(self) -> bool:
        """Whether it says little without what comes next.

        It ends in a colon, or in the comma of a sentence that goes on, or all of it is bold.
        """
        is_open = self.text.rstrip("*_ ").endswith((":", ",", "\uff1a"))
        return self.block.kind != _LIST and (self.is_bold or is_open)


def find_paragraph(body: str, *, is_record: bool = False) -> str:
    """Return the claim on one line, without a list that it announces; empty without any text.

    `is_record` tells that the body is a document, whose opening counts less than its decision.
    """
    claim, _announced = _find_claim(body, is_record=is_record)
    return claim.text if claim else ""


def find_statement(body: str, *, is_record: bool = False) -> str:
    """Return the claim on one line; one that ends in a colon comes with what it announces.

    `is_record` tells that the body is a document, whose opening counts less than its decision.
    """
    claim, announced = _find_claim(body, is_record=is_record)
    if claim is None:
        return ""
    if claim.block.kind == _LIST:
        return _join_items([], claim.texts)
    return _join_items([shorten(claim.text, MAX_STATEMENT)], announced)


def has_text(body: str) -> bool:
    """Return whether a body says anything: headings, rules and HTML comments say nothing."""
    return next(_iterate_blocks(body), None) is not None


def shorten(text: str, max_chars: int) -> str:
    """Cut a text after its last sentence that fits, or else between words."""
    if len(text) <= max_chars:
        return text
    ends = [match.end() for match in _SENTENCE_END.finditer(text, 0, max_chars - 2)]
    return f"{text[: ends[-1]] if ends else text[: max_chars - 2].rpartition(' ')[0]} …"


def _join_items(shown: list[str], items: Sequence[str]) -> str:
    """Return the lead and as many items as fit; an item is its first sentence."""
    size = sum(map(len, shown))
    for item in items:
        end = _SENTENCE_END.search(item, len(_find_mark(item)))
        text = item[: end.end()] if end else item
        size += 1 + len(text)
        if size > MAX_STATEMENT:
            break
        shown.append(text)
    else:
        return " ".join(shown)
    if not shown:
        return shorten(items[0], MAX_STATEMENT)
    return " ".join([*shown, "…"])


def _find_claim(body: str, *, is_record: bool) -> tuple[_Claim | None, tuple[str, ...]]:
    """Return the claim, and the items that it announces."""
    # Most memories begin with a sentence, and then a long body need not be taken into blocks. In a
    # record it may be a note on its status, so the decision is looked for.
    first = next(_iterate_blocks(body.lstrip("\n").partition("\n\n")[0]), None)
    opening = _read(first) if first and not first.headings else None
    is_aside = first is not None and first.part in (_REASON, _ASIDE)
    is_claim = opening and not is_aside and not opening.announces and _is_sentence(opening.text)
    if is_claim and not is_record:
        return opening, ()
    blocks = list(_iterate_blocks(body))
    if is_claim and not any(block.part == _DECIDING[0] for block in blocks):
        return opening, ()
    for claim in _rank_claims(blocks):
        following = blocks[blocks.index(claim.block) + 1 :]
        if claim.block.kind == _LIST:
            return _with_items(claim, following), ()
        if not (claim.announces or _is_open_before_list(claim, following)):
            return _name_option(claim, blocks), ()
        announced = _find_announced(claim, following)
        if claim.is_bold_sentence and not any(map(_find_mark, announced)):
            return claim, ()
        before = "" if any(map(_find_mark, announced)) else _drop_open_sentence(claim.text)
        if before:
            return claim.replace(texts=(before,)), ()
        if announced:
            return claim, announced
    return _find_fallback(blocks), ()


def _find_fallback(blocks: Sequence[_Block]) -> _Claim | None:
    """Return the first block that says anything at all, though it is no prose.

    Tables come after text, and code comes last. An image, the rule of a table, a table of contents,
    a label or the gaps of a template say nothing.
    """
    for kinds in ((_PARAGRAPH, _LIST, _QUOTE), (_FIGURE,), (_CODE,)):
        for block in blocks:
            lines = [line for line in block.lines if not _is_furniture(line, block)]
            if block.kind in kinds and lines:
                return _Claim(block, tuple(lines))
    return None


def _is_furniture(line: str, block: _Block) -> bool:
    """Return whether a line is about the document: an entry of its contents, a label, a gap."""
    if block.kind == _CODE:
        return False
    text = line[len(_find_mark(line)) :]
    is_entry = text.startswith("[") and "](#" in text
    is_gap = "{" in text and not _WORD.search(_GAP.sub("", text))
    beginning = block.lines[0] if block.kind == _QUOTE else text
    is_template = beginning.lower().strip("*_ >(").startswith(_list_placeholders("begins"))
    is_image = text.startswith(_IMAGES) or (block.kind == _FIGURE and not text.startswith("|"))
    is_rule = not text.strip(_TABLE_MARKS)
    is_label = _is_about_record(line, block)
    return any((is_entry, is_gap, is_template, is_image, is_rule, is_label))


def _is_sentence(text: str) -> bool:
    return text.rstrip("*_`)\"' ").endswith(_SENTENCE_MARKS) and "://" not in text


def _rank_claims(blocks: Sequence[_Block]) -> Iterator[_Claim]:
    """Yield what the blocks say in prose, the best first: what was decided, then in order."""
    for wanted in (*((part,) for part in _DECIDING), (_NONE, _REASON), (_ASIDE,)):
        for block in blocks:
            claim = _read(block) if block.part in wanted else None
            if claim is not None:
                yield claim


def _name_option(claim: _Claim, blocks: Sequence[_Block]) -> _Claim:
    """Return a claim such as `Option B` with the title of the section about this option."""
    match = _OPTION.match(claim.text)
    if match is None or ":" in claim.text[match.end() :]:
        return claim
    for heading in dict.fromkeys(heading for block in blocks for heading in block.headings):
        name, title = _split_heading(heading.text)
        if title and name.strip().lower() == match["name"].lower():
            return claim.replace(texts=(f"{claim.text} ({title.strip()})",))
    return claim


def _split_heading(text: str) -> tuple[str, str]:
    """Return the name and title of a heading such as `Option B: use Redis`, or empty."""
    for mark in _TITLE_MARKS:
        name, _mark, title = text.partition(mark)
        if title:
            return name, title
    return text, ""


def _is_open_before_list(claim: _Claim, following: Sequence[_Block]) -> bool:
    """Return whether a claim ends within a sentence, and the list that ends it comes next."""
    is_next = bool(following) and following[0].headings == claim.block.headings
    ends_in_word = claim.text[-1:].isalpha()
    return ends_in_word and is_next and following[0].kind == _LIST


def _drop_open_sentence(text: str) -> str:
    """Return a text without a last sentence that goes on; empty if there is none, or no other."""
    ends = [match.end() for match in _MARKED_END.finditer(text)]
    return text[: ends[-1]] if ends and ends[-1] < len(text) else ""


def _with_items(claim: _Claim, following: Sequence[_Block]) -> _Claim:
    """Return the claim of a list with all of its items, also those after empty lines."""
    texts = list(claim.texts)
    for block in following:
        if block.kind != _LIST or block.headings != claim.block.headings:
            break
        texts += _list_prose(block)
    return claim.replace(texts=tuple(texts))


def _find_announced(claim: _Claim, following: Sequence[_Block]) -> tuple[str, ...]:
    """Return the items of the list, or the text, that comes next below the same heading."""
    items: list[str] = []
    for block in following:
        if block.headings != claim.block.headings or (items and block.kind != _LIST):
            break
        if block.kind != _LIST:
            return (shorten(_join_sentence(following), MAX_STATEMENT // 2),)
        items += _list_items(block)
    return tuple(items)


def _join_sentence(blocks: Sequence[_Block]) -> str:
    """Return the first block, with those that come next as long as one ends in a comma."""
    text = ""
    for block in blocks:
        text = " ".join([text, *block.lines]).strip()
        if not text.endswith(","):
            break
    return text


def _read(block: _Block) -> _Claim | None:
    """Return what a block says in prose, None if nothing."""
    if block.kind == _LIST:
        texts = _list_prose(block)
        return _Claim(block, tuple(texts)) if texts else None
    if block.kind != _PARAGRAPH:
        return None
    lines = list(block.lines)
    while lines and _is_about_record(lines[0], block):
        del lines[0]
    text = " ".join(lines)
    return _Claim(block, (text,)) if lines and _is_prose(text) else None


def _list_items(block: _Block) -> list[str]:
    items: list[str] = []
    for line in block.lines:
        if _find_mark(line) or not items:
            items.append(line)
        else:
            items[-1] += f" {line}"
    return items


def _list_prose(block: _Block) -> list[str]:
    """Return the items of a list that say something about its subject."""
    return [
        item
        for item in _list_items(block)
        if not _is_about_record(item, block) and _is_prose(item[len(_find_mark(item)) :])
    ]


def _find_mark(line: str) -> str:
    """Return the mark of a list's item, with the blanks after it; empty for any other line."""
    mark = line.partition(" ")[0]
    is_number = mark[-1:] in (".", ")") and mark[:-1].isdigit() and len(mark) <= _MAX_NUMBER_CHARS
    if not (mark in _BULLETS or is_number):
        return ""
    text = line[len(mark) :].lstrip()
    if text[:4].lower() in _BOXES:
        text = text[4:].lstrip()
    return line[: len(line) - len(text)]


def _is_about_record(line: str, block: _Block) -> bool:
    """Return whether a line is a label with a value, such as `**Owner:** Ada`."""
    match = _find_label(line)
    if match is None:
        return False
    name = match["name"].strip().lower()
    part = _find_part(name)
    if name in _load("record_labels") or part == _ASIDE:
        return True
    if part or block.part in _DECIDING or not (match["list"] or match["mark"]):
        return False
    value = match["value"].strip("*_ ")
    words = len(_WORD.findall(value))
    is_sentence = value.endswith((".", "!", "?")) and words > _MAX_ADDRESS_WORDS
    return bool(value) and words <= _MAX_VALUE_WORDS and not is_sentence


def _is_prose(text: str) -> bool:
    """Return whether a text says something: no link alone, date of a change, address, template."""
    if not any(map(str.isalpha, text)):
        return False
    plain = text.lower().strip("*_ >(")
    if plain.rstrip("*_ .!)") in _list_placeholders("whole"):
        return False
    if plain.startswith(_list_placeholders("begins")):
        return False
    if plain.startswith(_list_placeholders("mark")) and len(plain.split()) <= _MAX_MARK_WORDS:
        return False
    if text.rstrip("*_ ").endswith("?") and not _SENTENCE_END.search(text, 0, len(text) // 2):
        return False
    if "[" in text or "{" in text or "<" in text:
        outside = _BRACKETS.sub("", _TARGET.sub("", text))
        if not _WORD.search(outside):
            return False
    date = _DATE.match(text) if any(map(str.isdigit, text[:_MAX_DATE_START])) else None
    if date and len(_WORD.findall(text[date.end() :])) <= _MAX_VALUE_WORDS:
        return False
    if "://" in text or "@" in text:
        pieces = text.replace("](", "] (").split()
        plain = " ".join(piece for piece in pieces if "://" not in piece and "@" not in piece)
        return len(_WORD.findall(plain)) > _MAX_ADDRESS_WORDS
    return not (text[0] in "*_" and text[0] == text[-1] and text[:2] not in ("**", "__"))


def _list_placeholders(where: str) -> tuple[str, ...]:
    return tuple(text for text, row in _load("placeholder_texts").items() if row == where)


def _without_comments(body: str) -> str:
    """Return a body without HTML comments, which readers do not see; one in a code span stays."""
    at = body.find("<!--")
    if at < 0:
        return body
    pieces, start = [], 0
    while at >= 0:
        if body[at - 1 : at] == "`":
            at = body.find("<!--", at + 4)
            continue
        end = body.find("-->", at + 4)
        pieces.append(body[start:at])
        start = len(body) if end < 0 else end + 3
        at = body.find("<!--", start)
    return "".join([*pieces, body[start:]])


class _Reader:
    """Reads the blocks of a document from its lines."""

    def __init__(self) -> None:
        self._above: dict[int, _Heading] = {}
        self._lines: list[str] = []
        self._fence = ""
        self._label = ""

    def read(self, line: str) -> Iterator[_Block]:
        """Yield the block that a line ends."""
        text = line.strip()
        if self._fence:
            self._lines.append(text)
            if text.startswith(self._fence) and not text.strip(self._fence[0]):
                yield from self.end()
        elif self._is_underline(text):
            self._begin_section(1 if text[0] == "=" else 2, self._lines[0])
            self._lines.clear()
        elif text.startswith(_FENCES):
            yield from self.end()
            self._fence = text[:3]
            self._lines.append(text)
        elif not text.strip(_RULE_MARKS) or _is_link_target(text):
            yield from self.end()
        elif level := _find_level(text):
            yield from self.end()
            self._begin_section(level, text.strip("#= \t"))
        else:
            yield from self._add(text)

    def _add(self, text: str) -> Iterator[_Block]:
        """Add a line of text, which begins a new block if it has a label or is a list's first."""
        name, value = _find_section_label(text)
        if name:
            yield from self.end()
            if not value:
                self._begin_section(_LABEL_LEVEL, name)
                return
            self._label = _find_part(name)
        elif self._lines and _find_mark(text) and not _find_mark(self._lines[0]):
            yield from self.end()
        self._lines.append(text)

    def end(self) -> Iterator[_Block]:
        """Yield the block that has been read, if there is one."""
        if self._lines:
            kind = _CODE if self._fence else _find_kind(self._lines)
            yield _Block(kind, self._label, tuple(self._above.values()), tuple(self._lines))
        self._lines.clear()
        self._fence = self._label = ""

    def _is_underline(self, text: str) -> bool:
        is_rule = len(text) > 1 and not text.strip(text[0]) and text[0] in "=-~^*"
        return is_rule and len(self._lines) == 1 and _find_kind(self._lines) == _PARAGRAPH

    def _begin_section(self, level: int, heading: str) -> None:
        for depth in [depth for depth in self._above if depth >= level]:
            del self._above[depth]
        self._above[level] = _Heading(heading)


def _iterate_blocks(body: str) -> Iterator[_Block]:
    """Yield the parts of a document that say something, with the headings above them.

    Headings begin with `#` or, as in AsciiDoc, with `=`, or are underlined.
    """
    reader = _Reader()
    for line in _without_comments(body).splitlines():
        yield from reader.read(line)
    yield from reader.end()


def _is_link_target(text: str) -> bool:
    """Return whether a line says where a link of the text leads: `[summary]: #summary`."""
    return text[0] == "[" and "]: " in text[:_MAX_LABEL_CHARS]


def _find_level(text: str) -> int:
    """Return the level of a heading, 0 for any other line."""
    sign = text[0]
    level = len(text) - len(text.lstrip(sign))
    is_heading = sign == "#" or (sign == "=" and text[level : level + 1] == " ")
    return level if is_heading and level < _LABEL_LEVEL else 0


def _find_part(name: str) -> str:
    """Return the part of a record that a section of this name is."""
    return _load("section_names").get(name, _NONE)


def _normalize(heading: str) -> str:
    """Return a heading in lower case, without signs, number, or what is in brackets at its end."""
    start = _NUMBER.match(heading)
    return _TAIL.sub("", heading[start.end() if start else 0 :]).lower()


def _find_section_label(text: str) -> tuple[str, str]:
    """Return the section that a line such as `**Decision:** we use Redis` begins, and its text."""
    bold = _BOLD.match(text) if text[0] in "*_" else None
    if bold:
        name = _normalize(bold["name"])
        return (name, "") if _find_part(name) else ("", "")
    label = _find_label(text)
    if label is None or label["list"] or label["name"][0].islower():
        return "", ""
    name = _normalize(label["name"])
    return (name, label["value"].strip("*_ ")) if _find_part(name) else ("", "")


def _find_label(text: str) -> Match[str] | None:
    """Return the match of a line such as `Owner: Ada`, None for any other."""
    start = text[:_MAX_LABEL_CHARS]
    label = _LABEL.match(text) if ":" in start or "\uff1a" in start else None
    return None if label is None or label["value"].startswith("//") else label


def _find_kind(lines: Sequence[str]) -> str:
    if _find_mark(lines[0]):
        return _LIST
    if all(line.startswith(">") for line in lines):
        return _QUOTE
    is_image = all(line.startswith(_IMAGES) and line.endswith(")") for line in lines)
    is_tag = all(line.startswith("<") and line.endswith(">") for line in lines)
    is_table = all(line.startswith(("|", "+-", "+=")) for line in lines)
    return _FIGURE if is_image or is_tag or is_table or lines[0].startswith("..") else _PARAGRAPH
