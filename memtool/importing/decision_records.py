"""Decision records: architecture decision records (ADR) and Python Enhancement Proposals (PEP).

Each file of a directory becomes a decision. Of a PEP the headers become keys. Of an ADR the
front matter, lines such as `* Status: accepted`, a `## Date` section, and a `## Status` section
with lines such as `Superseded by [3. Keep files](0003-keep-files.md)` or `Supercedes ADR-2` become
keys; everything else stays in the body as it is written. A file without a number and a status is no
record, and neither is a template.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from urllib.parse import unquote

from memtool.importing import originals
from memtool.importing.originals import ForeignRecord, Original
from memtool.memory import ids, schema
from memtool.memory.memory import Fields, FieldValue, Section, sections
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
    """The status of a record in its own words, with the names of related records."""

    state: str = ""
    date: str = ""
    tags: tuple[str, ...] = ()
    supersedes: tuple[str, ...] = ()
    superseded_by: tuple[str, ...] = ()

    def joined(self, other: AdrStatus) -> AdrStatus:
        """Return both; the other's state and date win where it has them."""
        return AdrStatus(
            state=other.state or self.state,
            date=other.date or self.date,
            tags=self.tags + other.tags,
            supersedes=self.supersedes + other.supersedes,
            superseded_by=self.superseded_by + other.superseded_by,
        )


def adr_drafts(path: str, top: str) -> Iterator[ForeignRecord | Problem]:
    """Yield the decision record of a file, or those of a directory."""
    for found in originals.texts(path, top, _is_record_name):
        yield found if isinstance(found, Problem) else _adr(*found, path)


def _is_record_name(name: str) -> bool:
    return name.lower().endswith(".md") and not name.lower().startswith(_NO_RECORDS)


def _adr(source: Original, text: str, root: str) -> ForeignRecord | Problem:
    lines = text.split("\n")
    front, first = originals.front_matter(lines)
    body_lines = lines[first:]
    title, status, body = _read(body_lines)
    status = _from_front(front).joined(status)
    stem = source.path.rpartition("/")[2].removesuffix(".md")
    named = _FILE.match(stem)
    if not named and not status.state:
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
    title = title or _without_number(_joined(front.get("title", ""))) or _words(stem)
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
        id=_id(stem),
        fields=_fields(status, title, front, named, folder),
        body=body,
        original=source,
        lines=(1, len(lines) - (not lines[-1])),
        names=_names(place, named),
        superseded_by=_targets(status.superseded_by, folder),
    )


def _joined(value: FieldValue) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key} {text}" for key, text in value.items())
    return value if isinstance(value, str) else ", ".join(value)


def _read(lines: list[str]) -> tuple[str, AdrStatus, str]:
    """Return title, status and the body that is left when the lines of both are taken out."""
    found = sections("\n".join(lines))
    dropped: set[int] = set()  # numbers of lines from 1
    title = _title(found, lines, dropped)
    status = AdrStatus()
    inner = (section.first_line for section in found if section.level)
    opening_end = next((line for line in inner if line not in dropped), len(lines) + 1)
    for number in range(1, opening_end):
        more = _from_line(lines[number - 1]) if number not in dropped else None
        if more is not None:
            status = status.joined(more)
            dropped.add(number)
    for section in found:
        name = section.title.strip(" :").lower() if section.level else ""
        if name == "status":
            status = _from_section(section, lines, dropped).joined(status)
        elif name == "date" and originals.moment(section.text):
            status = AdrStatus(date=section.text).joined(status)
            if "\n" not in section.text.strip():
                dropped.update(range(section.first_line, section.last_line + 1))
        elif name in _LINK_SECTIONS:
            for line in section.text.split("\n"):
                if _EDGE.match(line.lstrip(" *+-")):
                    status = status.joined(_edges(line))
    body = "\n".join(line for number, line in enumerate(lines, 1) if number not in dropped)
    return title, status, body


def _title(found: tuple[Section, ...], lines: list[str], dropped: set[int]) -> str:
    """Return the title of a record without its number, and drop its lines."""
    headings = [section for section in found if section.level]
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


def _fields(
    status: AdrStatus, title: str, front: Fields, named: re.Match[str] | None, folder: str
) -> Fields:
    fields: Fields = {
        "type": "decision",
        "title": title,
        "status": originals.state(status.state) or "candidate",
        "supersedes": _targets(status.supersedes, folder),
    }
    day = originals.moment(status.date)
    if not day and named and len(named[1]) == 8:
        day = originals.moment(f"{named[1][:4]}-{named[1][4:6]}-{named[1][6:]}")
    if day:
        fields["timestamp"] = day
    elif status.date:
        fields["x-date"] = originals.line(status.date)
    tags = (originals.line(tag, 80) for tag in status.tags)
    fields["tags"] = tuple(dict.fromkeys(tag for tag in tags if tag))
    for key in sorted(front.keys() - _FRONT_TAKEN):
        value = originals.line(_joined(front[key]))
        if key == "id" and named and value.lstrip("0") == named[1].lstrip("0"):
            continue  # the id of the memory holds it
        name = re.sub("[^a-z0-9]+", "-", key.lower()).strip("-")[:60]
        if value and name:
            fields[f"x-{name}"] = value
    return {key: value for key, value in fields.items() if value != ()}


def _id(stem: str) -> str:
    named = _FILE.match(stem)
    words = ids.slug(named[2] or "", 80) if named and named[2] else ""
    if named is None:
        return f"adr-{ids.slug(stem, 80)}"
    return f"adr-{named[1]}-{words}" if words else f"adr-{named[1]}"


def _words(stem: str) -> str:
    named = _FILE.match(stem)
    words = (named[2] if named and named[2] else stem).replace("-", " ").replace("_", " ")
    return words[:1].upper() + words[1:]


def _names(place: str, named: re.Match[str] | None) -> tuple[str, ...]:
    """Return what other records may call this one: its path, its file name, its number.

    A number counts within its directory.
    """
    folder, name = posixpath.split(place)
    names = [place.removesuffix(".md"), name]
    if named:
        names.append(f"{folder}#{int(named[1])}")
    return tuple(names)


def _targets(names: tuple[str, ...], folder: str) -> tuple[str, ...]:
    """Return what the records are called that a record in a directory names.

    Beside it that is their id, by which the tree may know one that is not imported now.
    """
    found = []
    for name in names:
        path = unquote(name.partition("#")[0].partition("?")[0]).removeprefix("./")
        stem = re.sub(r"\.(md|html)$", "", path)
        if name.isdigit():
            found.append(f"{folder}#{int(name)}")
        elif "/" not in path and not folder and stem:
            found.append(_id(stem))
        elif stem:
            found.append(posixpath.normpath(posixpath.join(folder, stem)).lstrip("/"))
    return tuple(dict.fromkeys(found))


def _from_front(front: Fields) -> AdrStatus:
    words = {key.lower().replace("_", "-"): _joined(value) for key, value in front.items()}
    day = next((words[key] for key in _DATES if words.get(key)), "")
    status = AdrStatus(date=day, tags=_tags(words.get("tags", "")))
    status = status.joined(_from_state(words.get("status", "")))
    for key in ("supersedes", "superseded-by"):
        if words.get(key):
            status = status.joined(_edges(f"{key.replace('-', ' ')} {words[key]}"))
    return status


def _from_line(line: str) -> AdrStatus | None:
    """Read a line such as `* Status: accepted`, None for any other."""
    found = _META.match(line)
    if found is None:
        return None
    name, text = found[1].lower(), found[2].strip()
    if name == "status":
        return _from_state(text)
    if name == "date":
        return AdrStatus(date=text) if originals.moment(text) else None
    if name == "tags":
        return AdrStatus(tags=_tags(text))
    return _edges(f"{name} {text}")


def _from_state(text: str) -> AdrStatus:
    """Read the words behind `Status:`."""
    return AdrStatus(state=text).joined(_edges(text)) if text else AdrStatus()


def _from_section(section: Section, lines: list[str], dropped: set[int]) -> AdrStatus:
    """Read a section on the status, and add the lines that say nothing else to `dropped`.

    Of several states the last one counts, as they are written one below the other.
    """
    status = AdrStatus()
    own = range(section.first_line, section.last_line + 1)
    kept = []
    for number in own[1:]:
        text = lines[number - 1].strip(" \t*_+->#")
        more = _from_line(lines[number - 1]) or _from_status_line(text)
        if more is not None:
            status = status.joined(more)
        if text and (more is None or _says_more(text, more)):
            kept.append(number)
    blank = {number for number in own if not lines[number - 1].strip()}
    gone = set(own) - blank - {own[0], *kept}
    gone |= {number for number in blank if number - 1 in gone}
    dropped.update(gone if kept else own)
    return status


def _from_status_line(text: str) -> AdrStatus | None:
    if "://" not in text and _EDGE.match(text):
        status = _edges(text)
        return status.joined(AdrStatus(state="superseded")) if status.superseded_by else status
    if originals.state(text) and len(text.split()) <= 12:
        return AdrStatus(date=text if _DAY.search(text) else "").joined(_from_state(text))
    return None


def _says_more(text: str, status: AdrStatus) -> bool:
    if status.supersedes or status.superseded_by or not status.state:
        return False
    return len(_DAY.sub("", text).split()) > 1


def _tags(text: str) -> tuple[str, ...]:
    """Return the words of a line, or its parts between commas where it has some."""
    parts = text.split(",") if "," in text else text.split()
    return tuple(part.strip(" []\"'#`") for part in parts)


def _edges(text: str) -> AdrStatus:
    """Read `superseded by` and `supersedes` with the records behind each of them."""
    status = AdrStatus()
    found = list(_EDGE.finditer(text))
    for number, verb in enumerate(found):
        end = found[number + 1].start() if number + 1 < len(found) else len(text)
        behind = text[verb.end() : end]
        links = tuple(link for link in _LINK.findall(behind) if "://" not in link)
        names = links if "](" in behind else tuple(_NAMED.findall(_DAY.sub("", behind)))
        status = status.joined(
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
"""Headers that repeat what version control knows better."""


def pep_drafts(path: str, top: str) -> Iterator[ForeignRecord | Problem]:
    """Yield the PEP of a file, or those of a directory; index and other files are passed over."""
    for found in originals.texts(path, top, lambda name: name.lower().endswith(PEP_ENDINGS)):
        if isinstance(found, Problem):
            yield found
            continue
        source, text = found
        headers, body_line = pep_headers(text)
        number = headers.get("pep", "")
        if number.isascii() and number.isdigit() and len(number) <= 6:
            if int(number):
                yield _pep(source, text, headers, body_line)
        elif source.path == path or _PEP_FILE.match(source.path.rpartition("/")[2].lower()):
            what = "it does not begin with a PEP: line with its number"
            hint = "memtool import adr takes decision records of other forms"
            yield Problem(source.shown, 1, "not-a-record", what, hint)


def pep_headers(text: str) -> tuple[dict[str, str], int]:
    """Return the headers by their lower-case names, and the line on which the body begins.

    A header goes on in the lines below it that begin with a blank. In markdown they may be
    between fences of `---`.
    """
    headers: dict[str, str] = {}
    lines = text.split("\n")
    number = 1 if lines[0].rstrip() == "---" else 0
    name = ""
    while number < len(lines):
        line = lines[number].rstrip()
        found = _HEADER.match(line)
        if name and line[:1] in (" ", "\t") and line.strip():
            headers[name] = f"{headers[name]} {line.strip()}".strip()
        elif found:
            name = found[1].lower()
            headers.setdefault(name, found[2].strip())
        else:
            break
        number += 1
    if number < len(lines) and lines[number].rstrip() == "---":
        number += 1
    return headers, number + 1


def _pep(source: Original, text: str, headers: dict[str, str], body_line: int) -> ForeignRecord:
    number = int(headers["pep"])
    id_ = _pep_id(number)
    created = originals.moment(headers.get("created", ""))
    tags = [
        tag.strip().lower()
        for name in _PEP_TAGS
        for tag in headers.get(name, "").split(",")
        if tag.strip()
    ]
    fields: Fields = {
        "type": "decision",
        "title": headers.get("title") or f"PEP {number}",
        "status": originals.state(headers.get("status", "")) or "candidate",
        "source": (f"url:https://peps.python.org/pep-{number:04}/",),
        "aliases": (f"PEP {number}",),
        "supersedes": _pep_ids(headers.get("replaces", "")),
    }
    if created:
        fields["timestamp"] = created
    if tags:
        fields["tags"] = tuple(dict.fromkeys(originals.line(tag, 80) for tag in tags))
    for name in sorted(headers.keys() - _PEP_TAKEN - _REPEATED):
        whole = originals.line(headers[name], 4 * schema.MAX_LINE)  # bounds what the pattern sees
        value = originals.line(_ADDRESS.sub("", whole))
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
        superseded_by=_pep_ids(headers.get("superseded-by", "")),
    )


def _pep_ids(text: str) -> tuple[str, ...]:
    return tuple(_pep_id(int(number)) for number in re.findall(r"\d{1,6}", text))


def _pep_id(number: int) -> str:
    return f"pep-{number:04}"
