"""The text of a decision record: its title, status, dates, tags and relations, and the other text.

Facts are in front matter, in lines such as `* Status: accepted` or rows of a table before the first
section, in a section of metadata, and in the sections for the status, the date, the changes and the
links. Names and states may be in any language of the tables. Lines that are facts and nothing else
leave the text; a comment is never a fact.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from memtool.importing import originals, record_words
from memtool.importing.originals import State, fold_word
from memtool.importing.record_words import Edge
from memtool.memory.memory import Section
from memtool.value import Value

_KEY_LINE = re.compile(
    r"\s{0,3}(?:>\s?)?(?:[*+-]\s+)?(?:\*\*|__|[*_`])?"
    r"(?P<key>[^\W\d_](?:[\w '/.-]|\([^()]*\)){0,39})"
    r"(?:\*\*|__|[*_`])?\s*[:\uff1a](?:\*\*|__|[*_`])?(?=\s|$|[^\x00-\x7f])\s*(?P<value>.*)$"
)
_SEVERAL = re.compile(r"\s+[|\u00b7\u2022]\s+")
_ROW = re.compile(r"\s{0,3}\|(.*)\|\s*$")
_RULE_ROW = re.compile(r"[\s|:-]+$")
_BARE_KEY = re.compile(r"\s{0,3}(?:\*\*|__)(?P<key>[^*_:\uff1a]{2,40})[:\uff1a]?(?:\*\*|__)\s*$")
_COLLAPSE = re.compile(r"(?:<br\s*/?>|\\)\s*$")
_PLACEHOLDER = re.compile(
    r"\[[^\[\]]*\]|\{[^{}]*\}|<[^<>]*>|[(][^()]*[)]|\.\.\.|\u2026|[xX]{3,}|[nN]{4}"
)
_DEFINITION = re.compile(r"\s{0,3}\[[^\[\]]+\]:\s*\S+\s*$")
_TITLE_PREFIX = re.compile(
    r"(?:(?:architect\w* |any )?decision (?:record|document)s?(?: \(adr\))?"
    r"|adr|tep|kep|rfc|pep|mep|rfd|decision|feature name)"
    r"(?:[-_ #\u00a0]{0,2}(?:n[\u00b0\u00bao]\s?)?\d{1,8}[a-z]?(?![\w])\]?\s*[-.:|)\u2013\u2014]*"
    r"|\s*[:|\u2013\u2014]|\s+-(?=\s))\s*",
    re.IGNORECASE,
)
_TITLE_NUMBER = re.compile(
    r"(?:(?:\d{1,8}[a-z]?|n)\s*[.:)|\]](?=\s)|0\d{1,7}\s*[-\u2013\u2014](?=\s)|0\d{2,7}(?=\s)"
    r"|\d{3,8}\s*[-\u2013\u2014](?=\s)|\d{8}(?=\s)|\d{4}-\d\d-\d\d\s*[-.:|\u2013\u2014]?(?=\s)"
    r"|\u7b2c\s?\d{1,8}\s?\u6761)\s*",
    re.IGNORECASE,
)
_OWN_NUMBER = re.compile(
    r"[a-z]{2,6}[-_ #]{0,2}(?P<number>\d{1,8}[a-z]?)\]?\s*[-.:|)\u2013\u2014]+\s*", re.IGNORECASE
)
_KIND = re.compile(r"\[?(?P<kind>[a-z]{2,5})[-_ #]{0,2}\d{1,8}(?!\w)", re.IGNORECASE)
_WORD_COUNT = 12
"""Words of a line that is a state with a remark; a longer one is prose."""
_REMARK = re.compile(
    r"[\s*_~`)\]]*(?:$|[.,;:(\[<>/\u2013\u2014\u2192-]|\d|(?:by|in|on|at|as|since|with|am|durch|von|seit|el|por|em|"
    r"le|par|il|da|op|door|przez|dnia|\u0438|\u0432|and|und|et|y|e)\b)",
    re.IGNORECASE,
)
_STAGES = {"candidate": 1, "confirmed": 2, "pinned": 2, "deprecated": 3, "archived": 3}
"""How far a state has come: of several ones the furthest counts, in whatever order they are."""


_DATED = ("date", "created", "settled")
_NO_TITLES = frozenset({"-", "n/a", "na", "none", "tbd", "todo"})


class RecordFacts(Value):
    """What a record says of itself, in its own words.

    `state` is the text of its status. `date` is a moment, and `unread_date` a text that is not one
    or has two meanings. The surest date is that of the decision, then of its creation, its status,
    its first change.
    """

    state: str = ""
    date: str = ""
    date_from: str = ""
    date_rank: int = 9
    unread_date: str = ""
    unread_from: str = ""
    title: str = ""
    tags: tuple[str, ...] = ()
    edges: tuple[Edge, ...] = ()

    @property
    def has_support(self) -> bool:
        """Whether a relation is a support. Its line is kept: it may say why, or name others."""
        return any(edge.is_support for edge in self.edges)

    def merge(self, other: RecordFacts) -> RecordFacts:
        """Combine both: this one's state and title come first, and the surer date."""
        dated = other if other.date_rank < self.date_rank else self
        return RecordFacts(
            state=self.state or other.state,
            date=dated.date,
            date_from=dated.date_from,
            date_rank=dated.date_rank,
            unread_date=self.unread_date or other.unread_date,
            unread_from=self.unread_from or other.unread_from,
            title=self.title or other.title,
            tags=self.tags + other.tags,
            edges=self.edges + other.edges,
        )


class RecordText(Value):
    """A record: title, facts, remaining text. `kind` is the word before the number in its title."""

    title: str
    kind: str
    facts: RecordFacts
    body: str
    is_decision: bool
    """Whether it has a section for its decision, and one for the reasons."""


DECISION_DATE, CREATION_DATE, STATUS_DATE, FIRST_CHANGE = range(1, 5)
"""Ranks of dates, the surest first."""


def parse_record(lines: list[str], number: str = "") -> RecordText:
    """Read the lines of a record in markdown, without its front matter."""
    visible = _without_comments("\n".join(lines)).split("\n")
    sections = _find_sections(visible)
    dropped: set[int] = set()  # numbers of lines from 1
    heading = _find_title(sections)
    title = kind = ""
    if heading is not None:
        title = strip_number(heading.title, number)
        match = _KIND.match(heading.title)
        kind = match["kind"].lower() if match else ""
        dropped.add(heading.first_line)
        if not lines[heading.first_line - 1].lstrip().startswith("#"):
            dropped.add(heading.first_line + 1)
    facts = _parse_opening(sections, heading, visible, dropped)
    status = RecordFacts()
    for section in sections:
        if section.level and section is not heading:
            status = status.merge(_parse_section(section, visible, dropped))
    facts = facts.merge(status)
    headings = [section.title for section in sections if section.level]
    return RecordText(
        title=title,
        kind=kind,
        facts=facts,
        body="\n".join(line for number, line in enumerate(lines, 1) if number not in dropped),
        is_decision=any(record_words.find_key(name, "decision") for name in headings)
        and any(record_words.find_key(name, "context") for name in headings),
    )


def parse_front(fields: Mapping[str, str]) -> tuple[RecordFacts, frozenset[str]]:
    """Read the keys of front matter; return the facts, and the keys that say nothing else."""
    facts = RecordFacts()
    fact_keys: set[str] = set()
    stage, stage_key = RecordFacts(), ""
    for key, value in fields.items():
        key_facts = _parse_fact(key, value, is_front=True)
        if key_facts is None:
            continue
        if record_words.find_key(key, "stage") and not record_words.find_key(key, "status"):
            stage, stage_key = key_facts, key
            continue
        if not key_facts.has_support:
            fact_keys.add(key)
        facts = facts.merge(key_facts)
    if stage.state and not facts.state:
        fact_keys.add(stage_key)
        facts = facts.merge(stage)
    return facts, frozenset(fact_keys)


def strip_number(title: str, number: str = "") -> str:
    """Remove the word and number that a title begins with, and the code marks around it.

    With the number of its file, any word before that number goes, as in `CIP-012: Fees`.
    """
    plain = title.strip().strip("#").strip()
    for _ in range(2):
        inner = plain[1:] if plain[:1] == "[" and "]" in plain else plain
        prefix = _TITLE_PREFIX.match(inner) or _TITLE_NUMBER.match(inner)
        if prefix is None and number:
            own = _OWN_NUMBER.match(inner)
            is_same = own and own["number"].lower().lstrip("0") == number.lower().lstrip("0")
            prefix = own if is_same else None
        plain = inner[prefix.end() :] if prefix else plain
    plain = plain.strip().lstrip("-\u2013\u2014:|").strip()
    if plain[:1] == plain[-1:] == "`" and plain.count("`") == 2:
        plain = plain[1:-1]
    return plain


def is_placeholder(title: str) -> bool:
    """Return whether a title is still to be filled in."""
    return bool(_PLACEHOLDER.fullmatch(title.strip("` "))) or (
        record_words.find_key(title, "template") is not None
    )


def _without_comments(text: str) -> str:
    """Blank the comments of a text; its lines stay."""
    parts = []
    place = 0
    while True:
        start = text.find("<!--", place)
        end = text.find("-->", start) if start >= 0 else -1
        if end < 0:
            parts.append(text[place:])
            return "".join(parts)
        parts.append(text[place:start] + "\n" * text.count("\n", start, end))
        place = end + 3


_ATX = re.compile(r" {0,3}(#{1,6})(?:[ \t]+(.*?))?(?:[ \t]+#+)?[ \t]*$")
_UNDERLINE = re.compile(r" {0,3}(?:(=+)|-{2,})[ \t]*$")
_FENCE = re.compile(r" {0,3}(`{3,}(?=[^`]*$)|~{3,})")
_NO_PARAGRAPH = re.compile(r"\s{4}|\s*(?:[-*+>|#=]|\d+[.)]\s)|\s*$")


def _find_sections(lines: list[str]) -> tuple[Section, ...]:
    """Split the lines of a record at its headings, which are not in code or comments.

    The parser of markdown would take most of the time of an import.
    """
    starts: list[tuple[str, int, int, int]] = []  # title, level, first line, first line of text
    fence = ""
    for number, line in enumerate(lines, 1):
        mark = _FENCE.match(line)
        if fence or mark:
            if mark and not fence:
                fence = mark[1]
            elif mark and mark[1].startswith(fence) and not line.strip().strip(fence[0]):
                fence = ""
            continue
        heading = _ATX.match(line)
        if heading:
            starts.append((heading[2] or "", len(heading[1]), number, number + 1))
            continue
        underline = _UNDERLINE.match(line)
        if underline and number > 1 and _is_title_line(number - 1, lines):
            level = 1 if underline[1] else 2
            starts.append((lines[number - 2].strip(), level, number - 1, number + 1))
    sections = []
    for index, (title, level, first, text_start) in enumerate(starts):
        last = starts[index + 1][2] - 1 if index + 1 < len(starts) else len(lines)
        text = "\n".join(lines[text_start - 1 : last]).strip()
        sections.append(Section(title, level, first, last, text))
    return tuple(sections)


def _is_title_line(number: int, lines: list[str]) -> bool:
    """Return whether a line is a paragraph of its own, so that a line below makes it a heading."""
    before = lines[number - 2] if number > 1 else ""
    is_first = not before.strip() or bool(_ATX.match(before) or _UNDERLINE.match(before))
    return is_first and not _NO_PARAGRAPH.match(lines[number - 1])


def _find_title(sections: tuple[Section, ...]) -> Section | None:
    """Return the heading that is the title: the first one of level 1 that names no usual section.

    Without one it is the first heading of all, if that names none.
    """
    headings = [section for section in sections if section.level]
    tops = [section for section in headings if section.level == 1]
    chosen = tops[:1] or headings[:1]
    if not chosen or _is_usual(chosen[0].title):
        return None
    return chosen[0]


def _is_usual(title: str) -> bool:
    return bool(
        record_words.find_key(
            title, "status", "date", "meta", "context", "decision", "links", "history"
        )
    )


def _parse_opening(
    sections: tuple[Section, ...], heading: Section | None, lines: list[str], dropped: set[int]
) -> RecordFacts:
    """Read the facts before the first section that is not the title."""
    inner = (section.first_line for section in sections if section.level and section is not heading)
    end = next(inner, len(lines) + 1)
    return _parse_lines(range(1, end), lines, dropped)


def _parse_lines(
    numbers: range, lines: list[str], dropped: set[int], *, is_meta: bool = False
) -> RecordFacts:
    """Read key lines and rows of tables; add those that are facts to `dropped`."""
    facts = RecordFacts()
    header: list[str] = []
    for number in numbers:
        line = lines[number - 1]
        if number in dropped or not line.strip():
            header = header if line.strip() else []
            continue
        row = _ROW.match(line)
        if row and _RULE_ROW.match(line):
            if number - 1 in dropped or header:
                dropped.add(number)
            continue
        line_facts = None
        if row:
            cells = [cell.strip() for cell in row[1].split("|")]
            if header and len(header) == len(cells):
                line_facts = _merge_all(zip(header, cells, strict=True), is_meta=is_meta)
            elif _is_header(cells, number, lines):
                header = cells
                dropped.add(number)
                continue
            elif len(cells) == 2:
                line_facts = _parse_fact(_plain(cells[0]), cells[1], is_front=is_meta)
        else:
            header = []
            line_facts = _parse_key_line(number, lines, dropped, is_meta=is_meta)
        if line_facts is not None:
            facts = facts.merge(line_facts)
            dropped.update(() if line_facts.has_support else (number,))
    return facts


def _is_header(cells: list[str], number: int, lines: list[str]) -> bool:
    """Return whether a row of a table has the names of facts, with their values below."""
    below = lines[number] if number < len(lines) else ""
    names = [_plain(cell) for cell in cells]
    return (
        len(cells) > 1
        and bool(_ROW.match(below) and _RULE_ROW.match(below))
        and all(record_words.find_key(name, "status", "date", "created", "tags") for name in names)
    )


def _plain(text: str) -> str:
    return text.strip(" *_`:\uff1a")


def _merge_all(
    pairs: Iterator[tuple[str, str]] | zip[tuple[str, str]], *, is_meta: bool
) -> RecordFacts | None:
    merged = None
    for key, value in pairs:
        facts = _parse_fact(_plain(key), value, is_front=is_meta)
        if facts is not None:
            merged = facts if merged is None else merged.merge(facts)
    return merged


def _parse_key_line(
    number: int, lines: list[str], dropped: set[int], *, is_meta: bool
) -> RecordFacts | None:
    """Read a line such as `* Status: accepted`, or several on one line; None for any other."""
    line = _COLLAPSE.sub("", lines[number - 1])[: record_words.MAX_LINE_CHARS]
    parts = _SEVERAL.split(line)
    matches = [_KEY_LINE.match(part) for part in parts]
    if len(parts) > 1 and all(matches):
        pairs = [(match["key"], match["value"]) for match in matches if match]
        return _merge_all(iter(pairs), is_meta=is_meta)
    match = _KEY_LINE.match(line)
    bare = _BARE_KEY.match(line) if match is None or not _plain(match["value"]) else None
    key = match["key"] if match else bare["key"] if bare else ""
    value = match["value"] if match else ""
    if key and not value.strip(" *_") and record_words.find_key(key, "status", "date", "created"):
        below = next((n for n in (number + 1, number + 2) if _has_text(n, lines)), 0)
        if not below or _KEY_LINE.match(lines[below - 1]) or lines[below - 1].startswith("#"):
            return RecordFacts()
        facts = _parse_fact(key, lines[below - 1].strip(" *_>-"), is_front=is_meta)
        if facts is not None and (facts.state or facts.date):
            dropped.add(below)
        return facts
    if record_words.find_relation(key) in record_words.SUPPORTS:
        value = " ".join([value, *_find_continuation(number, lines)])
    return _parse_fact(key, value, is_front=is_meta) if key else None


def _find_continuation(number: int, lines: list[str]) -> Iterator[str]:
    """Yield the indented lines that go on with the value of a key."""
    for line in lines[number:]:
        text = line.strip()
        if not text or line[:1] not in (" ", "\t") or text[0] in "*+-|" or _KEY_LINE.match(line):
            return
        yield text


def _has_text(number: int, lines: list[str]) -> bool:
    return number <= len(lines) and bool(lines[number - 1].strip())


def _parse_fact(key: str, value: str, *, is_front: bool) -> RecordFacts | None:
    """Read the value of a key; None if the key is not one of a record."""
    value = value.strip().strip("*").strip()
    relation = record_words.find_relation(key)
    if relation:
        edges = record_words.find_targets(relation, value) or record_words.find_edges(value)
        if relation in record_words.SUPPORTS:  # many a key `Requires` names no record
            return RecordFacts(edges=edges) if edges else None
        return RecordFacts(edges=edges) if is_front or relation != "related_to" or edges else None
    meanings = ("status", "stage", *_DATED, "tags", "title", *(("name",) if is_front else ()))
    word = record_words.find_key(key, *meanings)
    if word is None:
        return None
    if word.meaning in ("status", "stage"):
        return _parse_state(value, key)
    if word.meaning in _DATED:
        rank = CREATION_DATE if word.meaning == "created" else DECISION_DATE
        facts = _parse_date(value, key, rank, is_day_first=word.is_day_first, is_front=is_front)
        is_state = word.meaning == "settled" and facts is not None and bool(facts.date)
        return facts.replace(state=key) if facts and is_state else facts
    if word.meaning == "tags":
        return RecordFacts(tags=_parse_tags(value))
    return RecordFacts(title="" if fold_word(value) in _NO_TITLES else value)


def _parse_date(
    value: str, key: str, rank: int, *, is_day_first: bool, is_front: bool
) -> RecordFacts | None:
    moment = originals.parse_moment(value, is_day_first=is_day_first)
    if moment:
        return RecordFacts(date=moment, date_from=key, date_rank=rank)
    has_digit = any(char.isdigit() for char in value)
    if (is_front and has_digit) or originals.parse_moment(value, is_day_first=True):
        return RecordFacts(unread_date=value, unread_from=key)
    return RecordFacts() if is_front or not value else None


def _parse_state(text: str, key: str) -> RecordFacts:
    """Read the text of a status: its state, its relations, and the date of an acceptance."""
    text = text.partition(" #")[0].strip()
    edges = record_words.find_edges(text)
    state = originals.match_state(text)
    is_older = any(edge.relation == "superseded_by" for edge in edges)
    moment = ""
    if state and not is_older and state.status != "deprecated":
        moment = originals.parse_moment(text)
    return RecordFacts(
        state="superseded" if is_older and not _has_own_end(state) else text,
        date=moment,
        date_from=key if moment else "",
        date_rank=STATUS_DATE if moment else 9,
        edges=edges,
    )


def _has_own_end(state: State | None) -> bool:
    """Return whether a state says more of the end of a record than that it is superseded."""
    return state is not None and (state.is_superseded or state.status == "deprecated")


def _parse_tags(text: str) -> tuple[str, ...]:
    """Split a line at commas, or at blanks if there are none."""
    parts = text.split(",") if "," in text else text.split()
    return tuple(part.strip(" []\"'#`") for part in parts)


def _parse_section(section: Section, lines: list[str], dropped: set[int]) -> RecordFacts:
    """Read a section that holds facts by its name; nothing in any other."""
    key = record_words.find_key(
        section.title, "status", "date", "created", "meta", "history", "links", "tags"
    )
    own = range(section.first_line, section.last_line + 1)
    relation = record_words.find_relation(section.title)
    if key is None and relation in record_words.SUPPORTS:
        section_lines = lines[section.first_line : section.last_line]
        return RecordFacts(edges=tuple(_find_supports(relation, section_lines)))
    if key is None:  # a heading such as `### Status: Approved`
        pair = _KEY_LINE.match(section.title)
        facts = _parse_fact(pair["key"], pair["value"], is_front=False) if pair else None
        if facts is None:
            return RecordFacts()
        dropped.add(section.first_line)
        return facts
    if key.meaning == "status":
        return _parse_status_section(section, lines, dropped)
    if key.meaning in ("date", "created", "tags"):
        facts = _parse_fact(
            section.title.strip(" :"), section.text.partition("\n")[0], is_front=False
        )
        if facts is not None and "\n" not in section.text.strip():
            dropped.update(own)
        return facts or RecordFacts()
    if key.meaning == "meta":
        facts = _parse_lines(own[1:], lines, dropped, is_meta=True)
        remaining = (lines[n - 1] for n in own[1:] if n not in dropped)
        if all(not text.strip() or _DEFINITION.match(text) for text in remaining):
            dropped.update(own)
        return facts
    texts = [lines[number - 1] for number in own[1:]]
    if key.meaning == "history":
        return _find_first_change(section.title, texts, is_day_first=key.is_day_first)
    edges = [
        edge
        for text in texts
        if record_words.starts_with_relation(text)
        for edge in record_words.find_edges(text)
    ]
    return RecordFacts(edges=tuple(edges))


def _find_supports(relation: str, lines: list[str]) -> Iterator[Edge]:
    """Yield the records that the items of a list or table below such a heading begin with."""
    for line in lines:
        item = line.lstrip(" \t*+-|")
        if record_words.starts_with_relation(item):
            yield from record_words.find_edges(item)
        elif item != line.lstrip():
            edges = record_words.find_targets(relation, item)
            yield from (edge for edge in edges if edge.target.path or edge.target.kind)


def _find_first_change(title: str, lines: list[str], *, is_day_first: bool) -> RecordFacts:
    """Return the earliest date that an entry of a list or table of changes begins with."""
    entries = []
    for line in lines:
        entry = line.lstrip(" \t*+-|#_[`(")[:60]
        if entry != line or entry[:1].isdigit():
            entries.append(re.split(r"\s[|\u2013\u2014-]\s|: ", entry, maxsplit=1)[0])
    first_numbers = [int(match[1]) for match in map(_TWO_DIGITS.match, entries) if match]
    is_day_first = is_day_first or any(number > MAX_MONTH for number in first_numbers)
    moments = [originals.parse_moment(entry, is_day_first=is_day_first) for entry in entries]
    first = min(filter(None, moments), default="")
    if not first:
        return RecordFacts()
    return RecordFacts(date=first, date_from=title.strip(" :"), date_rank=FIRST_CHANGE)


MAX_MONTH = 12
_TWO_DIGITS = re.compile(r"(\d{1,2})[-/]\d{1,2}[-/]\d{4}")


def _parse_status_section(section: Section, lines: list[str], dropped: set[int]) -> RecordFacts:
    """Read a status section, and add its lines without other text to `dropped`.

    Its first line is the state, whatever it says; further ones are if they are short. Of several
    known states the furthest counts.
    """
    own = range(section.first_line, section.last_line + 1)
    states: list[RecordFacts] = []
    facts = RecordFacts()
    first_text = ""
    retained = []
    for number in own[1:]:
        line = lines[number - 1]
        text = line.strip(" \t*_+->#\u2022")
        if not text:
            continue
        line_facts, is_whole = _parse_status_line(line, text, is_first=not first_text)
        if not is_whole:
            retained.append(number)
        if line_facts is not None:
            facts = facts.merge(line_facts.replace(state="", date="", date_from="", date_rank=9))
            if line_facts.state:
                states.append(line_facts)
            elif line_facts.date:
                facts = facts.merge(
                    RecordFacts(
                        date=line_facts.date,
                        date_from=line_facts.date_from,
                        date_rank=line_facts.date_rank,
                    )
                )
        first_text = first_text or text
    furthest = max(states, key=_measure_stage, default=None)
    if furthest is not None:
        facts = facts.merge(furthest.replace(edges=()))
    elif first_text:
        facts = facts.replace(state=first_text)
    blank = {number for number in own if not lines[number - 1].strip()}
    removed = set(own) - blank - {own[0], *retained}
    removed |= {number for number in blank if number - 1 in removed}
    dropped.update(removed if retained else own)
    return facts


def _measure_stage(facts: RecordFacts) -> tuple[int, bool]:
    state = originals.match_state(facts.state)
    return (_STAGES.get(state.status, 3), state.is_superseded) if state else (0, False)


def _parse_status_line(line: str, text: str, *, is_first: bool) -> tuple[RecordFacts | None, bool]:
    """Read a line of a status section; return its facts, and whether it says nothing else."""
    key = _KEY_LINE.match(line)
    key_facts = _parse_fact(key["key"], key["value"], is_front=False) if key else None
    if key_facts is not None:
        return key_facts, not key_facts.has_support
    row = _ROW.match(line)
    if row:
        cells = [cell.strip() for cell in row[1].split("|")]
        text = next((cell for cell in cells if originals.find_state(cell)), cells[0])
    edges = record_words.find_edges(text) if "://" not in text or "](" in text else ()
    state = originals.match_state(line if "[" in line else text) or originals.match_state(text)
    if edges and record_words.starts_with_relation(text):
        is_older = any(edge.relation == "superseded_by" for edge in edges)
        only = all(edge.is_replacement for edge in edges)
        return RecordFacts(
            state=(text if state else "superseded") if is_older else "", edges=edges
        ), only
    if state is None:
        return (RecordFacts(edges=edges) if edges else None), False
    remark = text[text.find(state.words) + len(state.words) :]
    is_short = len(text.split()) <= _WORD_COUNT
    if not is_first and not (is_short and _REMARK.match(remark)):
        return (RecordFacts(edges=edges) if edges else None), False
    facts = _parse_state(text, "Status")
    is_whole = bool(facts.edges) and all(edge.is_replacement for edge in facts.edges)
    bare = re.sub(r"\d{4}-\d\d-\d\d", "", text)
    is_bare = len(bare.split()) <= len(state.words.split())
    return facts, is_bare or (is_whole and is_short)
