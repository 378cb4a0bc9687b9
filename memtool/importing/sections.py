"""Sections and rules: how a text that instructs agents is split into memories.

A section of prose is one memory. A list that states rules is one memory for each rule. What only
points elsewhere is none: links, a table of contents, a sentence about the file itself.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cache, lru_cache

from memtool import tables
from memtool.importing import originals
from memtool.memory import ids
from memtool.memory.memory import build_parser, split_sections
from memtool.value import Value

BEGIN_MARK, END_MARK = "<!-- memtool:begin", "<!-- memtool:end"
"""Lines between these were injected by memtool."""
MAX_SECTION_CHARS = 4_000
"""A section above this length is split at its inner headings."""
MAX_RULES = 60
"""A list with more items is data: it stays in its section."""
MIN_RULE_SHARE = 0.6
"""Share of the items of a list that must state a rule."""
MAX_WORDS_TO_VERB = 15
"""Words of a sentence among which one must demand something."""
MAX_TITLE_CHARS = 100
MAX_PREFIX_CHARS = 30
MAX_SHORT_CHARS = 60
"""A longer rule is understood without the heading above it."""
MAX_POINTER_WORDS = 16
MAX_READ_CHARS = 2_000
"""Characters of a paragraph in which titles and links are looked for."""
MAX_POINTING_CHARS = 20_000
"""A longer text says something, whatever it points to."""

_WORDS = tables.group_rows("importing/rule_words")
_IMPERATIVES = frozenset(_WORDS["imperative"])
_NORMATIVE = frozenset(_WORDS["normative"])
_FORBIDDING = frozenset(_WORDS["forbidding"])
_NEGATIVE_HEADINGS = frozenset(_WORDS["negative_heading"])
_NO_RULE_HEADINGS = frozenset(_WORDS["no_rules"])
_GENERIC = frozenset(_WORDS["generic"])
_CONDITIONS = frozenset(_WORDS["condition"])
_PROCEDURES = frozenset(_WORDS["procedure"])
_EXPLAINING_LABELS = frozenset(_WORDS["explaining_label"])

_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_DOCUMENT = r"[\w./~:@ -]{0,200}\.(?:md|mdc|mdx|markdown|txt|rst|adoc)"
_REFERENCE = re.compile(
    rf"!?\[[^\[\]]{{0,300}}\]\([^()]{{0,500}}\)|`@?{_DOCUMENT}`|@[\w./~-]+"
    rf"|(?<![\w`]){_DOCUMENT.replace(' ', '')}\b"
    r"|<?https?://[^\s>)]+>?"
)
_POINTING = re.compile(
    r"(?:for (?:\S+ ){1,8})?(?:please )?(?:also )?(?:see|refer to|consult|check out|look at|"
    r"documented in|described in|defined in|details (?:are )?in|more (?:details |information )?in|"
    r"read|full \S+ in|moved to|(?:this|it) is (?:in|a link to))\b",
    re.IGNORECASE,
)
_SELF = re.compile(
    r"(?:(?:this|the following|these) (?:file|document|guide|page|rules?|instructions?)\b"
    r"|(?:guidance|guidelines|instructions|rules|context|conventions|notes) (?:for|to)\b).*"
    r"\b(?:agents?|claude|copilot|cursor|gemini|codex|assistants?|ai|llms?|models?|contributors)\b",
    re.IGNORECASE | re.DOTALL,
)
_MARKUP = re.compile(r"(\*\*|__|~~)(.{1,300}?)\1")
_EMPHASIS = re.compile(r"(?<![\w*_])([*_])(?=\S)([^*_\n]{1,300}?)(?<=\S)\1(?![\w*_])")
_LINK = re.compile(r"!?\[([^\[\]]{0,300})\]\([^()]{0,500}\)")
_BULLET = re.compile(r"\s*(?:[-*+]|\d{1,9}[.)])(?:\s+|$)")
_CHECKBOX = re.compile(r"\[[ xX]\]\s+")
_NUMBERING = re.compile(r"^(?:\d+(?:\.\d+)*[.):]|[IVX]+\.)\s+(?=\S)")
_BOLD_LEAD = re.compile(r"(?:\*\*|__)([^*_]{8,90}?)[.:]?(?:\*\*|__)\s*[.:\u2013\u2014-]*")
_LABEL = re.compile(r"([^:.!?`]{2,40}):\s+(?=\S)")
_NUMBERED_LABEL = re.compile(r"[*_]*[^:*`]{2,30}[*_]*:[*_]*\s*[*_]*v?[\d./-]{3,}\S*[*_]*")
_FILE_NAME = re.compile(r"\s*[-:\u2013\u2014|(]*\s*\b(?:CLAUDE|AGENTS|GEMINI|QWEN)\.md\b\)?")
_SENTENCE_END = re.compile(r"[.!?\u3002](?=\s+[^a-z\s]|\s*$)")
_ABBREVIATION = re.compile(r"(?:\b(?:e\.g|i\.e|etc|vs|cf|approx|incl)|\b[A-Z])\.$")
_PLACES = ("in ", "for ", "on ", "at ", "with ", "inside ", "within ", "under ", "below ")
"""How an announcement begins that says where the rules of its list hold."""
_NO_MARKS = "\u274c\U0001f6ab\u2717\u2718\u26d4"


class HeadedSection(Value):
    """A section with the headings above it, none for the opening of a file.

    Lines count from 1 in the file; `text_line` is the first one of its text.
    """

    level: int
    headings: tuple[str, ...]
    first_line: int
    last_line: int
    text_line: int
    text: str


class Passage(Value):
    """What becomes one memory: a section, or a rule of a list.

    `headings` are those above it. `name` identifies it in its file; empty for the opening. `titles`
    are titles for it, each longer than the one before.
    """

    name: str
    headings: tuple[str, ...]
    titles: tuple[str, ...]
    first_line: int
    last_line: int
    text: str
    is_rule: bool = False


class _Block(Value):
    """A block of markdown at the top level. Lines count from 0, the last one is excluded."""

    kind: str
    first: int
    last: int
    items: tuple[tuple[int, int], ...] = ()


def split_file(text: str, name: str) -> list[HeadedSection]:
    """Split a file at headings of the first two levels, and long sections at all headings.

    A single first-level heading is the title of the file. The headings of sections begin with it,
    unless it only repeats the file name.
    """
    text = _blank_injected(text)
    lines = text.split("\n")
    all_sections = split_sections(text)
    tops = [section.title for section in all_sections if section.level == 1]
    is_plain_title = len(tops) == 1 and ids.make_slug(tops[0]) in (
        ids.make_slug(name),
        ids.make_slug(name.rpartition(".")[0]),
    )
    result = []
    path: list[tuple[int, str]] = []
    number = 0
    while number < len(all_sections):
        section = all_sections[number]
        last = number
        while last + 1 < len(all_sections) and all_sections[last + 1].level > max(section.level, 2):
            last += 1
        first_line, last_line = section.first_line, all_sections[last].last_line
        start = _find_text_start(lines, first_line, last_line, has_heading=section.level > 0)
        if last > number and sum(map(len, lines[start:last_line])) > MAX_SECTION_CHARS:
            last, last_line = number, section.last_line
        whole = "\n".join(lines[start:last_line]).strip("\n")
        path = [(level, title) for level, title in path if level < section.level]
        if section.level:
            path.append((section.level, originals.to_line(section.title, 80)))
        shown_headings = tuple(
            title for level, title in path if not (is_plain_title and level == 1)
        )
        if _has_text(whole):
            result.append(
                HeadedSection(
                    section.level, shown_headings, first_line, last_line, start + 1, whole
                )
            )
        number = last + 1
    return result


def _find_text_start(lines: Sequence[str], first: int, last: int, *, has_heading: bool) -> int:
    """Return the index of the first line of text below a heading, in either heading style."""
    at = first - 1
    if has_heading:
        at += 1 if lines[at].lstrip().startswith("#") else 2
    while at < last and not lines[at].strip():
        at += 1
    return at


def _blank_injected(text: str) -> str:
    """Blank the lines between memtool's marks, keeping line numbers."""
    blanked = []
    is_inside = False
    for line in text.split("\n"):
        is_inside = is_inside or line.strip().startswith(BEGIN_MARK)
        blanked.append("" if is_inside else line)
        if line.strip().startswith(END_MARK):
            is_inside = False
    return "\n".join(blanked)


def _has_text(text: str) -> bool:
    """Return whether there is text other than headings, comments and rulers."""
    shown = _COMMENT.sub("", text)
    return any(
        line.strip("-*_ \t=") and not line.lstrip().startswith("#") for line in shown.split("\n")
    )


def split_passages(text: str, name: str, label: str = "") -> list[Passage]:
    """Split a file into rules and sections; `label` says what the file is about, if known."""
    parts = split_file(text, name)
    tops = [part for part in parts if part.level == 1]
    passages: list[Passage] = []
    for part in parts:
        is_opening = part.level == 0 or (tops == [part] and len(parts) > 1)
        passages += _split_part(part, label, is_opening=is_opening)
    return passages


def _split_part(part: HeadedSection, label: str, *, is_opening: bool) -> Iterator[Passage]:
    """Yield the text of a section that remains without its rules, then its rules."""
    lines = part.text.split("\n")
    blocks = _read_blocks(part.text)
    removed: set[_Block] = set()
    rules = []
    heading = clean_heading(part.headings[-1]) if part.headings else ""
    for leaf in _group_by_heading(blocks):
        if leaf[0].kind == "heading":
            heading = clean_heading(lines[leaf[0].first])
        for intro, block in _find_rule_lists(lines, leaf, heading):
            removed.update([block, intro] if intro else [block])
            lead = _join(lines, intro) if intro else ""
            for item in block.items:
                text = _item_text(lines, *item)
                if text and not _is_pointer(text):
                    rules.append(_build_rule(part, item, text, heading, lead))
    remainder = _join_remaining(lines, blocks, removed) if removed else part.text
    if _has_text(remainder) and not says_nothing(remainder):
        titles = (
            _build_opening_titles(part, remainder, label)
            if is_opening
            else build_titles(part.headings, [label])
        )
        yield Passage(
            " > ".join(part.headings),
            part.headings,
            titles,
            part.first_line,
            part.last_line,
            remainder,
        )
    yield from rules


def read_items(part: HeadedSection) -> Iterator[tuple[int, int, str]]:
    """Yield the first and last line and the text of each item of the lists of a section."""
    lines = part.text.split("\n")
    for block in _read_blocks(part.text):
        for item in block.items:
            text = _item_text(lines, *item)
            if text:
                end = part.text_line + _find_item_end(lines, item) - 1
                yield part.text_line + item[0], end, text


def _group_by_heading(blocks: Sequence[_Block]) -> Iterator[list[_Block]]:
    """Yield the blocks in groups that begin with a heading, except perhaps the first."""
    group: list[_Block] = []
    for block in blocks:
        if block.kind == "heading" and group:
            yield group
            group = []
        group.append(block)
    if group:
        yield group


def _find_rule_lists(
    lines: Sequence[str], leaf: Sequence[_Block], heading: str
) -> list[tuple[_Block | None, _Block]]:
    """Return the lists of rules of a part without inner headings, each with its announcement.

    None are returned if most of the part is something else: then the lists belong to the prose.
    """
    result: list[tuple[_Block | None, _Block]] = []
    sizes = {True: 0, False: 0}
    previous: _Block | None = None
    for block in leaf:
        is_intro = previous is not None and _announces(_join(lines, previous))
        intro = previous if is_intro else None
        lead = _join(lines, intro) if intro else ""
        is_rules = 2 <= len(block.items) <= MAX_RULES and _states_rules(
            [_item_text(lines, *item) for item in block.items],
            heading,
            lead,
            is_ordered=block.kind == "ordered",
        )
        if is_rules:
            result.append((intro, block))
        if block.kind != "heading" and not _announces(_join(lines, block)):
            sizes[is_rules] += len(_join(lines, block))
        previous = block if block.kind == "paragraph" else None
    return result if sizes[True] >= MIN_RULE_SHARE * sum(sizes.values()) else []


def _announces(paragraph: str) -> bool:
    return paragraph.rstrip("*_ \t").endswith(":") and not _is_pointer(paragraph)


@cache
def _block_parser():  # type: ignore[no-untyped-def]
    return build_parser(with_html=True).disable("inline")


def _blank(comment: re.Match[str]) -> str:
    return "\n" * comment[0].count("\n")


@lru_cache(maxsize=4)
def _read_blocks(text: str) -> tuple[_Block, ...]:
    """Return the blocks at the top level of a text; comments between them are none."""
    blocks: list[_Block] = []
    items: list[tuple[int, int]] = []
    for token in _block_parser().parse(_COMMENT.sub(_blank, text)):
        if token.type == "list_item_open" and token.level == 1 and token.map:
            items.append((token.map[0], token.map[1]))
        elif token.level == 0 and token.nesting >= 0 and token.map:
            kind = token.type.removesuffix("_open").removesuffix("_list")
            blocks.append(_Block(kind, token.map[0], token.map[1]))
            items = []
        elif token.level == 0 and token.type.endswith("_list_close"):
            blocks[-1] = blocks[-1].replace(items=tuple(items))
    return tuple(blocks)


def _join(lines: Sequence[str], block: _Block) -> str:
    return " ".join(line.strip() for line in lines[block.first : block.last]).strip()


def _item_text(lines: Sequence[str], first: int, last: int) -> str:
    """Return the text of an item of a list without its mark and indentation."""
    mark = _BULLET.match(lines[first])
    width = mark.end() if mark else 0
    text = [lines[first][width:]]
    for line in lines[first + 1 : last]:
        blanks = len(line) - len(line.lstrip())
        text.append(line[min(width, blanks) :])
    return _CHECKBOX.sub("", "\n".join(text).strip(), count=1)


def _first_paragraph(text: str) -> str:
    """Return the first paragraph of an item on one line, without what is nested in it."""
    rows: list[str] = []
    for line in text.split("\n"):
        if rows and (not line.strip() or _BULLET.match(line) or line.lstrip().startswith("```")):
            break
        rows.append(line.strip())
    return " ".join(rows)


def _join_remaining(
    lines: Sequence[str], blocks: Sequence[_Block], removed: Collection[_Block]
) -> str:
    """Return the text without the removed blocks, and without headings that nothing follows."""
    remaining = [block for block in blocks if block not in removed]
    rows: list[str] = []
    for number, block in enumerate(remaining):
        following = remaining[number + 1] if number + 1 < len(remaining) else None
        if block.kind == "heading" and (
            following is None
            or (
                following.kind == "heading"
                and _find_level(lines[following.first]) <= _find_level(lines[block.first])
            )
        ):
            continue
        rows += ["", *lines[block.first : block.last]]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(rows)).strip("\n")


def _find_level(line: str) -> int:
    text = line.lstrip()
    return len(text) - len(text.lstrip("#")) or 2


def _states_rules(texts: Sequence[str], heading: str, lead: str, *, is_ordered: bool) -> bool:
    """Return whether a list states rules, one an item."""
    if _forbids_by(heading) or _forbids_by(lead):
        return True
    words = _split_words(heading)
    labels = {label[1].lower() for text in texts if (label := _LABEL.match(to_plain(text)))}
    is_explanation = not labels.isdisjoint(_EXPLAINING_LABELS)
    is_procedure = words[:1] != [] and words[0] in _PROCEDURES
    if is_explanation or is_procedure or _NO_RULE_HEADINGS.intersection(words):
        return False
    if _CONDITIONS.union({"to"}).intersection(_split_words(lead)):
        return False
    count = sum(_is_rule(text, is_ordered=is_ordered) for text in texts)
    return count >= MIN_RULE_SHARE * len(texts)


def _is_rule(text: str, *, is_ordered: bool) -> bool:
    """Return whether an item demands or forbids something; steps of a procedure do not."""
    plain = to_plain(_first_paragraph(text))
    if not plain or plain.endswith("?"):
        return False
    label = _LABEL.match(plain)
    words = _split_words(find_sentence(plain))
    opening = words[:1] if label is None else _split_words(plain[label.end() :])[:1]
    if _NORMATIVE.intersection(words[:MAX_WORDS_TO_VERB]):
        return True
    return not is_ordered and bool(_IMPERATIVES.intersection(opening))


def _forbids_by(heading: str) -> bool:
    """Return whether what stands under a heading or announcement is to be avoided."""
    return heading.lower().rstrip(": .!").strip("*_ ") in _NEGATIVE_HEADINGS


def has_prohibition(text: str) -> bool:
    """Return whether the first paragraph of a text forbids something."""
    words = _split_words(to_plain(_first_paragraph(text)))
    return words[:1] in (["no"], ["not"]) or bool(_FORBIDDING.intersection(words[:12]))


def _split_words(text: str) -> list[str]:
    return re.findall(r"[a-z][a-z'-]*", text.lower().replace("\u2019", "'"))


def to_plain(text: str) -> str:
    """Return a line of markdown without emphasis, links and marks at its start."""
    plain = _LINK.sub(r"\1", text[:MAX_READ_CHARS])
    plain = _MARKUP.sub(r"\2", plain)
    plain = _EMPHASIS.sub(r"\2", plain)
    start = 0
    while start < len(plain) and not (plain[start].isalnum() or plain[start] in "`\"'<([{@#$.~/\\"):
        start += 1
    return plain[start:].strip() or plain.strip()


def clean_heading(text: str) -> str:
    """Return a heading without its mark, numbering, emphasis, emoji and final colon."""
    plain = to_plain(text.strip().lstrip("#").strip().rstrip("#").strip())
    plain = _FILE_NAME.sub("", plain).strip() or plain
    plain = to_plain(_NUMBERING.sub("", plain, count=1)).rstrip(":").strip().replace("`", "")
    return plain.capitalize() if plain.isupper() and " " in plain else plain


def find_sentence(text: str) -> str:
    """Return the first sentence of a paragraph without its final stop, cut at a word."""
    line = originals.to_line(to_plain(text), 2_000)
    for end in _SENTENCE_END.finditer(line):
        if end.start() > 2 and not _ABBREVIATION.search(line[: end.end()]):
            line = line[: end.start()]
            break
    line = line.rstrip(" .:;")
    if len(line) <= MAX_TITLE_CHARS:
        return line
    cut = line[: MAX_TITLE_CHARS - 1]
    return f"{cut.rpartition(' ')[0] or cut}\u2026"


def _build_rule(
    part: HeadedSection, item: tuple[int, int], text: str, heading: str, lead: str
) -> Passage:
    """Build the passage of an item; what announces or negates it stands before its text."""
    paragraph = _first_paragraph(text)
    bold = _BOLD_LEAD.match(paragraph)
    is_label = bool(bold) and len(_split_words(bold[1])) >= 3 if bold else False
    sentence = find_sentence(bold[1] if bold and is_label else paragraph)
    is_negated = text[:1] in _NO_MARKS and not has_prohibition(text)
    negation = next(filter(_forbids_by, (lead.strip("*_ :"), heading)), "")
    negation = clean_heading(negation) if negation else "Don't" if is_negated else ""
    place = clean_heading(lead) if lead.lower().startswith(_PLACES) else ""
    prefix = "" if has_prohibition(text) else negation
    prefix = prefix or place or (heading if _needs_prefix(heading, sentence) else "")
    is_short = len(prefix) <= MAX_PREFIX_CHARS
    titles = [f"{prefix}: {sentence}" if prefix and is_short else sentence]
    announcement = prefix if prefix in (negation, place) else ""
    body = f"{announcement}:\n\n- {_indent(text)}" if announcement else text
    longer = [f"{heading}: {sentence}"] if heading and heading not in titles[0] else []
    return Passage(
        sentence,
        part.headings,
        tuple(dict.fromkeys(titles + longer)),
        part.text_line + item[0],
        part.text_line + _find_item_end(part.text.split("\n"), item) - 1,
        body,
        is_rule=True,
    )


def _indent(text: str) -> str:
    return text.replace("\n", "\n  ")


def _find_item_end(lines: Sequence[str], item: tuple[int, int]) -> int:
    last = item[1]
    while last > item[0] + 1 and not lines[last - 1].strip():
        last -= 1
    return last


def _needs_prefix(heading: str, sentence: str) -> bool:
    """Return whether a short rule is understood only with the topic above it."""
    words = _split_words(heading)
    if not words or len(heading) > MAX_PREFIX_CHARS or len(sentence) > MAX_SHORT_CHARS:
        return False
    if words[-1] in _GENERIC or words[0] in _IMPERATIVES or _LABEL.match(sentence):
        return False
    stems = {word.rstrip("s") for word in words}
    return not stems.intersection(word.rstrip("s") for word in _split_words(sentence))


def says_enough(heading: str) -> bool:
    """Return whether a heading is a title by itself: it has a word that is not generic."""
    words = re.findall(r"[^\W\d_][\w'-]*", heading.lower())
    return any(word not in _GENERIC for word in words)


def build_titles(headings: Sequence[str], labels: Iterable[str] = ()) -> tuple[str, ...]:
    """Return titles for a section, the shortest first: its heading, then with one above it.

    A heading that says too little is never a title alone, if there is one above it or a label.
    """
    shown = [clean for clean in map(clean_heading, headings) if clean]
    names = [*shown[-2::-1], *filter(None, labels)] if shown else list(filter(None, labels))
    if not shown:
        return tuple(names)
    last = shown[-1]
    longer = [f"{name}: {last}" for name in names if not _repeats(name, last)]
    return tuple(dict.fromkeys([last, *longer] if says_enough(last) or not longer else longer))


def _repeats(name: str, heading: str) -> bool:
    words = set(_split_words(heading))
    return name.lower() == heading.lower() or (bool(words) and words <= set(_split_words(name)))


def _build_opening_titles(part: HeadedSection, text: str, label: str) -> tuple[str, ...]:
    """Return titles for the opening of a file: its first sentence, then the title of the file."""
    lines = text.split("\n")
    kinds = [(block.kind, _join(lines, block)) for block in _read_blocks(text)]
    tells = [pair for pair in kinds if pair[0] != "heading" and not _is_about_itself(pair[1])]
    paragraph = tells[0][1] if tells and tells[0][0] == "paragraph" else ""
    sentence = find_sentence(paragraph)
    names = [sentence] if len(_split_words(sentence)) > 2 and ":" not in sentence else []
    names += [name for name in (*map(clean_heading, part.headings[-1:]), label) if name]
    names = names or [find_sentence(text.strip().split("\n")[0].lstrip("#>-* "))]
    return tuple(dict.fromkeys(filter(None, names)))


def says_nothing(text: str) -> bool:
    """Return whether a text only points elsewhere, announces what is gone, or speaks of itself."""
    if len(text) > MAX_POINTING_CHARS:
        return False
    lines = text.split("\n")
    rows = []
    for block in _read_blocks(text):
        if block.kind in ("heading", "hr", "html_block"):
            continue
        if block.items:
            items = [_item_text(lines, first, last) for first, last in block.items]
            rows += [_is_pointer(item) for item in items if item]
        elif block.kind == "paragraph":
            paragraph = _join(lines, block)
            is_dateline = _is_dateline(lines[block.first : block.last])
            rows.append(is_dateline or _is_pointer(paragraph) or _is_about_itself(paragraph))
        else:
            return False
    return all(rows)


def _is_about_itself(paragraph: str) -> bool:
    """Return whether a paragraph only says what the file is for, or announces what follows."""
    plain = to_plain(paragraph)
    if len(plain.split()) > 40:
        return False
    return bool(_SELF.match(plain)) or plain.endswith(":")


def _is_pointer(text: str) -> bool:
    """Return whether a paragraph or item only names another place to read."""
    if len(text) > MAX_READ_CHARS:
        return False
    line = " ".join(text.split())
    references = list(_REFERENCE.finditer(line))
    if not references:
        return False
    plain = to_plain(_REFERENCE.sub(" ", line))
    words = _split_words(plain)
    if _CONDITIONS.intersection(words) or _NORMATIVE.intersection(words):
        return False
    if not words:
        return True
    if _is_entry(line, references[0]):
        return True
    before = _split_words(to_plain(line[: references[0].start()]))
    after = _split_words(line[references[-1].end() :])
    is_label = (
        len(before) <= 4 and not after and line[: references[0].start()].rstrip()[-1:] in ":-"
    )
    is_pointing = bool(_POINTING.match(to_plain(line))) and len(words) <= MAX_POINTER_WORDS
    return is_label or is_pointing


def _is_entry(line: str, reference: re.Match[str]) -> bool:
    """Return whether a line is an entry of an index: it begins with a link, or with a document."""
    start = to_plain(line[: reference.start()]).strip("*_ ")
    is_link = "](" in reference[0]
    return not start and (is_link or bool(re.search(_DOCUMENT, reference[0])))


def _is_dateline(paragraph: Sequence[str]) -> bool:
    """Return whether each line is a label with a number, as in `Last updated: 2025-04-01`."""
    return all(_NUMBERED_LABEL.fullmatch(line.strip()) for line in paragraph)
