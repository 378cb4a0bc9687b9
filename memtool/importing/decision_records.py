"""Decision records: architecture decision records (ADR) and Python Enhancement Proposals (PEP).

Each file of a directory becomes a decision. The headers of a PEP become keys. In an ADR, front
matter, lines such as `* Status: accepted`, a `## Date` section, and a `## Status` section with
lines such as `Superseded by [3. Keep files](0003-keep-files.md)` or `Supercedes ADR-2` become keys;
all other text stays in the body unchanged. A file with neither number nor status, or a template, is
not a record.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from urllib.parse import unquote

from memtool.importing import originals
from memtool.importing.originals import ForeignRecord, ImportRequest, Original
from memtool.memory import ids, schema
from memtool.memory.memory import Fields, FieldValue, Section, split_sections
from memtool.memory.schema import Problem
from memtool.value import Value

_FILE = re.compile(r"(?:adr[-_ ]*)?(\d{1,8})(?:[-_ .]+(.*))?$", re.IGNORECASE)
_TITLE_NUMBER = re.compile(
    r"(?:\[?adr[-_ ]?\d+\]?\s*[-.:)\u2013\u2014]?|adr\s*:|\d{1,8}\s*[.:)](?=\s))\s*", re.IGNORECASE
)
_NO_RECORDS = ("readme", "index", "template", "adr-template", "_")
_LINK_SECTIONS = frozenset({"links", "more information", "related", "related decisions"})
_OPENING_SECTIONS = frozenset({"context", "status", "decision", "context and problem statement"})
_DATES = ("date", "decided", "created")
_FRONT_TAKEN = frozenset({"status", *_DATES, "title", "tags", "supersedes", "superseded-by"})
_PLACEHOLDER = re.compile(r"\[[^\[\]]*\]|\{[^{}]*\}|<[^<>]*>")
_META = re.compile(
    r"\s{0,3}(?:[*+-]\s+)?[*_]{0,2}(status|date|tags|supersedes|superseded by)[*_]{0,2}\s*:"
    r"[*_]{0,2}\s*(.*)",
    re.IGNORECASE,
)
_EDGE = re.compile(
    r"\b(?P<older>super[sc]eded\s+by|replaced\s+by)\b|\b(?:super[sc]edes|replaces)\b", re.IGNORECASE
)
_LINK = re.compile(r"\]\(\s*<?([^)\s>]+)")
_NAMED = re.compile(r"\b(?:adr[-_ ]?)?(\d{1,8}(?:-[a-z][\w-]*)?)\b", re.IGNORECASE)
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")


class AdrStatus(Value):
    """The status of a record in its own words, and the names of related records."""

    state: str = ""
    date: str = ""
    tags: tuple[str, ...] = ()
    supersedes: tuple[str, ...] = ()
    superseded_by: tuple[str, ...] = ()

    def merge(self, other: AdrStatus) -> AdrStatus:
        """Combine both; the other's state and date take precedence if set."""
        return AdrStatus(
            state=other.state or self.state,
            date=other.date or self.date,
            tags=self.tags + other.tags,
            supersedes=self.supersedes + other.supersedes,
            superseded_by=self.superseded_by + other.superseded_by,
        )


def adr_drafts(path: str, request: ImportRequest) -> Iterator[ForeignRecord | Problem]:
    """Yield the decision record of a file, or those of a directory."""
    for item in originals.read_texts(path, request.top, _is_record_name):
        yield item if isinstance(item, Problem) else _build_adr(*item, path)


def _is_record_name(name: str) -> bool:
    return name.lower().endswith(".md") and not name.lower().startswith(_NO_RECORDS)


def _build_adr(source: Original, text: str, root: str) -> ForeignRecord | Problem:
    lines = text.split("\n")
    front, first = originals.front_matter(lines)
    body_lines = lines[first:]
    title, status, body = _parse_record(body_lines)
    status = _parse_front(front).merge(status)
    stem = source.path.rpartition("/")[2].removesuffix(".md")
    name_match = _FILE.match(stem)
    if not name_match and not status.state:
        return Problem(
            source.shown,
            1,
            "not-a-record",
            "neither its name has a number nor its text a status; it is passed over",
            "memtool new decision TITLE --body - takes any text",
            severity="warning",
        )
    place = posixpath.basename(source.path)
    if source.path != root:
        place = posixpath.relpath(source.path, root)
    folder = posixpath.dirname(place)
    title = title or _without_number(_join_value(front.get("title", ""))) or _title_from_name(stem)
    if _PLACEHOLDER.fullmatch(title):
        return Problem(
            source.shown,
            1,
            "not-a-record",
            "its title is a placeholder, as that of a template; it is passed over",
            "give it a title if it decides something",
            severity="warning",
        )
    return ForeignRecord(
        key=place,
        id=_build_id(stem),
        fields=_build_fields(status, title, front, name_match, folder),
        body=body,
        original=source,
        lines=(1, len(lines) - (not lines[-1])),
        names=_find_names(place, name_match),
        superseded_by=_resolve_names(status.superseded_by, folder),
    )


def _join_value(value: FieldValue) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key} {text}" for key, text in value.items())
    return value if isinstance(value, str) else ", ".join(value)


def _parse_record(lines: list[str]) -> tuple[str, AdrStatus, str]:
    """Return title, status, and the body without their lines."""
    all_sections = split_sections("\n".join(lines))
    dropped: set[int] = set()  # numbers of lines from 1
    title = _find_title(all_sections, lines, dropped)
    status = AdrStatus()
    inner = (section.first_line for section in all_sections if section.level)
    opening_end = next((line for line in inner if line not in dropped), len(lines) + 1)
    for number in range(1, opening_end):
        line_status = _parse_line(lines[number - 1]) if number not in dropped else None
        if line_status is not None:
            status = status.merge(line_status)
            dropped.add(number)
    for section in all_sections:
        name = section.title.strip(" :").lower() if section.level else ""
        if name == "status":
            status = _parse_section(section, lines, dropped).merge(status)
        elif name == "date" and originals.parse_moment(section.text):
            status = AdrStatus(date=section.text).merge(status)
            if "\n" not in section.text.strip():
                dropped.update(range(section.first_line, section.last_line + 1))
        elif name in _LINK_SECTIONS:
            for line in section.text.split("\n"):
                if _EDGE.match(line.lstrip(" *+-")):
                    status = status.merge(_parse_edges(line))
    body = "\n".join(line for number, line in enumerate(lines, 1) if number not in dropped)
    return title, status, body


def _find_title(all_sections: tuple[Section, ...], lines: list[str], dropped: set[int]) -> str:
    """Return the title of a record without its number; add its lines to `dropped`."""
    headings = [section for section in all_sections if section.level]
    chosen = next((section for section in headings if section.level == 1), None)
    if chosen is None and headings and headings[0].title.lower() not in _OPENING_SECTIONS:
        chosen = headings[0]
    if chosen is None:
        return ""
    dropped.add(chosen.first_line)
    if not lines[chosen.first_line - 1].lstrip().startswith("#"):
        dropped.add(chosen.first_line + 1)
    return _without_number(chosen.title)


def _without_number(title: str) -> str:
    number = _TITLE_NUMBER.match(title)
    return title[number.end() :] if number else title


def _build_fields(
    status: AdrStatus, title: str, front: Fields, name_match: re.Match[str] | None, folder: str
) -> Fields:
    fields: Fields = {
        "type": "decision",
        "title": title,
        "supersedes": _resolve_names(status.supersedes, folder),
    }
    if status.state:
        fields["status"] = originals.find_state(status.state) or "candidate"
    day = originals.parse_moment(status.date)
    if not day and name_match and len(name_match[1]) == 8:
        day = originals.parse_moment(
            f"{name_match[1][:4]}-{name_match[1][4:6]}-{name_match[1][6:]}"
        )
    if day:
        fields["timestamp"] = day
    elif status.date:
        fields["x-date"] = originals.to_line(status.date)
    tags = (originals.to_line(tag, 80) for tag in status.tags)
    fields["tags"] = tuple(dict.fromkeys(tag for tag in tags if tag))
    for key in sorted(front.keys() - _FRONT_TAKEN):
        value = originals.to_line(_join_value(front[key]))
        if key == "id" and name_match and value.lstrip("0") == name_match[1].lstrip("0"):
            continue  # already in the id of the memory
        name = re.sub("[^a-z0-9]+", "-", key.lower()).strip("-")[:60]
        if value and name:
            fields[f"x-{name}"] = value
    return {key: value for key, value in fields.items() if value != ()}


def _build_id(stem: str) -> str:
    name_match = _FILE.match(stem)
    words = ids.make_slug(name_match[2] or "", 80) if name_match and name_match[2] else ""
    if name_match is None:
        return f"adr-{ids.make_slug(stem, 80)}"
    return f"adr-{name_match[1]}-{words}" if words else f"adr-{name_match[1]}"


def _title_from_name(stem: str) -> str:
    name_match = _FILE.match(stem)
    words = (
        (name_match[2] if name_match and name_match[2] else stem)
        .replace("-", " ")
        .replace("_", " ")
    )
    return words[:1].upper() + words[1:]


def _find_names(place: str, name_match: re.Match[str] | None) -> tuple[str, ...]:
    """Return the names by which other records may refer to this one.

    These are its path, its file name, and its number with the directory.
    """
    folder, name = posixpath.split(place)
    names = [place.removesuffix(".md"), name]
    if name_match:
        names.append(f"{folder}#{int(name_match[1])}")
    return tuple(names)


def _resolve_names(names: tuple[str, ...], folder: str) -> tuple[str, ...]:
    """Resolve the names in a record of a directory to names of records.

    A record in the same directory is named by id, since it may be in the tree already.
    """
    targets = []
    for name in names:
        path = unquote(name.partition("#")[0].partition("?")[0]).removeprefix("./")
        stem = re.sub(r"\.(md|html)$", "", path)
        if name.isdigit():
            targets.append(f"{folder}#{int(name)}")
        elif "/" not in path and not folder and stem:
            targets.append(_build_id(stem))
        elif stem:
            targets.append(posixpath.normpath(posixpath.join(folder, stem)).lstrip("/"))
    return tuple(dict.fromkeys(targets))


def _parse_front(front: Fields) -> AdrStatus:
    words = {key.lower().replace("_", "-"): _join_value(value) for key, value in front.items()}
    day = next((words[key] for key in _DATES if words.get(key)), "")
    status = AdrStatus(date=day, tags=_parse_tags(words.get("tags", "")))
    status = status.merge(_parse_state(words.get("status", "")))
    for key in ("supersedes", "superseded-by"):
        if words.get(key):
            status = status.merge(_parse_edges(f"{key.replace('-', ' ')} {words[key]}"))
    return status


def _parse_line(line: str) -> AdrStatus | None:
    """Parse a line such as `* Status: accepted`; None for any other."""
    match = _META.match(line)
    if match is None:
        return None
    name, text = match[1].lower(), match[2].strip()
    if name == "status":
        return _parse_state(text)
    if name == "date":
        return AdrStatus(date=text) if originals.parse_moment(text) else None
    if name == "tags":
        return AdrStatus(tags=_parse_tags(text))
    return _parse_edges(f"{name} {text}")


def _parse_state(text: str) -> AdrStatus:
    """Parse the text after `Status:`."""
    return AdrStatus(state=text).merge(_parse_edges(text)) if text else AdrStatus()


def _parse_section(section: Section, lines: list[str], dropped: set[int]) -> AdrStatus:
    """Parse a status section, and add its lines without other text to `dropped`.

    Of several states the last one counts, as newer ones are added below.
    """
    status = AdrStatus()
    own = range(section.first_line, section.last_line + 1)
    retained = []
    for number in own[1:]:
        text = lines[number - 1].strip(" \t*_+->#")
        line_status = _parse_line(lines[number - 1]) or _parse_status_line(text)
        if line_status is not None:
            status = status.merge(line_status)
        if text and (line_status is None or _has_more_text(text, line_status)):
            retained.append(number)
    blank = {number for number in own if not lines[number - 1].strip()}
    removed = set(own) - blank - {own[0], *retained}
    removed |= {number for number in blank if number - 1 in removed}
    dropped.update(removed if retained else own)
    return status


def _parse_status_line(text: str) -> AdrStatus | None:
    if "://" not in text and _EDGE.match(text):
        status = _parse_edges(text)
        return status.merge(AdrStatus(state="superseded")) if status.superseded_by else status
    if originals.find_state(text) and len(text.split()) <= 12:
        return AdrStatus(date=text if _DAY.search(text) else "").merge(_parse_state(text))
    return None


def _has_more_text(text: str, status: AdrStatus) -> bool:
    if status.supersedes or status.superseded_by or not status.state:
        return False
    return len(_DAY.sub("", text).split()) > 1


def _parse_tags(text: str) -> tuple[str, ...]:
    """Split a line at commas, or at blanks if there are none."""
    parts = text.split(",") if "," in text else text.split()
    return tuple(part.strip(" []\"'#`") for part in parts)


def _parse_edges(text: str) -> AdrStatus:
    """Parse `superseded by` and `supersedes` with the records after each."""
    status = AdrStatus()
    matches = list(_EDGE.finditer(text))
    for number, verb in enumerate(matches):
        end = matches[number + 1].start() if number + 1 < len(matches) else len(text)
        following = text[verb.end() : end]
        links = tuple(link for link in _LINK.findall(following) if "://" not in link)
        names = links if "](" in following else tuple(_NAMED.findall(_DAY.sub("", following)))
        status = status.merge(
            AdrStatus(superseded_by=names) if verb["older"] else AdrStatus(supersedes=names)
        )
    return status


PEP_ENDINGS = (".rst", ".txt", ".md")
_PEP_FILE = re.compile(r"pep-\d+\.[^.]*$")
_HEADER = re.compile(r"([A-Za-z][A-Za-z0-9-]*):[ \t]*(.*)")
_ADDRESS = re.compile(r" ?<[^<>@]*@[^<>]*>")
_PEP_TAGS = ("type", "topic")
_PEP_TAKEN = frozenset(
    {"pep", "title", "status", "created", "superseded-by", "replaces", *_PEP_TAGS}
)
_REPEATED = frozenset({"version", "last-modified", "content-type"})
"""Headers that version control makes redundant."""


def pep_drafts(path: str, request: ImportRequest) -> Iterator[ForeignRecord | Problem]:
    """Yield the PEP of a file, or those of a directory; index and other files are skipped."""
    for item in originals.read_texts(path, request.top, _is_pep_name):
        if isinstance(item, Problem):
            yield item
            continue
        source, text = item
        headers, body_line = parse_pep_headers(text)
        number = headers.get("pep", "")
        if number.isascii() and number.isdigit() and len(number) <= 6:
            if int(number):
                yield _build_pep(source, text, headers, body_line)
        elif source.path == path or _PEP_FILE.match(source.path.rpartition("/")[2].lower()):
            what = "it does not begin with a PEP: line with its number"
            hint = "for decision records of other forms: memtool import adr PATH"
            yield Problem(source.shown, 1, "not-a-record", what, hint)


def _is_pep_name(name: str) -> bool:
    return name.lower().endswith(PEP_ENDINGS)


def parse_pep_headers(text: str) -> tuple[dict[str, str], int]:
    """Return the headers by lower-case name, and the first line of the body.

    Lines that begin with a blank continue a header. In markdown, headers may be between `---`
    fences.
    """
    headers: dict[str, str] = {}
    lines = text.split("\n")
    number = 1 if lines[0].rstrip() == "---" else 0
    name = ""
    while number < len(lines):
        line = lines[number].rstrip()
        match = _HEADER.match(line)
        if name and line[:1] in (" ", "\t") and line.strip():
            headers[name] = f"{headers[name]} {line.strip()}".strip()
        elif match:
            name = match[1].lower()
            headers.setdefault(name, match[2].strip())
        else:
            break
        number += 1
    if number < len(lines) and lines[number].rstrip() == "---":
        number += 1
    return headers, number + 1


def _build_pep(
    source: Original, text: str, headers: dict[str, str], body_line: int
) -> ForeignRecord:
    number = int(headers["pep"])
    id_ = _build_pep_id(number)
    created = originals.parse_moment(headers.get("created", ""))
    tags = [
        tag.strip().lower()
        for name in _PEP_TAGS
        for tag in headers.get(name, "").split(",")
        if tag.strip()
    ]
    fields: Fields = {
        "type": "decision",
        "title": headers.get("title") or f"PEP {number}",
        "status": originals.find_state(headers.get("status", "")) or "candidate",
        "source": (f"url:https://peps.python.org/pep-{number:04}/",),
        "aliases": (f"PEP {number}",),
        "supersedes": _parse_pep_ids(headers.get("replaces", "")),
    }
    if created:
        fields["timestamp"] = created
    if tags:
        fields["tags"] = tuple(dict.fromkeys(originals.to_line(tag, 80) for tag in tags))
    for name in sorted(headers.keys() - _PEP_TAKEN - _REPEATED):
        whole = originals.to_line(headers[name], 4 * schema.MAX_LINE)  # limits the pattern's input
        value = originals.to_line(_ADDRESS.sub("", whole))
        if value and len(name) <= 60:
            fields[f"x-{name}"] = value
    lines = text.split("\n")
    return ForeignRecord(
        key=id_,
        id=id_,
        fields=fields,
        body="\n".join(lines[body_line - 1 :]),
        original=source,
        lines=(1, len(lines) - (not lines[-1])),
        superseded_by=_parse_pep_ids(headers.get("superseded-by", "")),
    )


def _parse_pep_ids(text: str) -> tuple[str, ...]:
    return tuple(_build_pep_id(int(number)) for number in re.findall(r"\d{1,6}", text))


def _build_pep_id(number: int) -> str:
    return f"pep-{number:04}"
