"""Decision records: MADR 2 to 4, Nygard's form (adr-tools) and log4brains.

What says where a record stands (front matter, `* Status:` lines, a `## Status` section) becomes
keys; everything else stays as it is written, in the body.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from urllib.parse import unquote

from memtool.memory import identity, strict
from memtool.memory.body import Section, sections
from memtool.memory.memory import Fields, FieldValue
from memtool.memory.problem import Problem
from memtool.upkeep import originals, standing, wording
from memtool.upkeep.draft import Draft
from memtool.upkeep.originals import Original
from memtool.upkeep.standing import Standing

_FILE = re.compile(r"(?:adr[-_ ]*)?(\d{1,8})(?:[-_ .]+(.*))?$", re.IGNORECASE)
_TITLE_NUMBER = re.compile(
    r"(?:\[?adr[-_ ]?\d+\]?\s*[-.:)\u2013\u2014]?|adr\s*:|\d{1,8}\s*[.:)](?=\s))\s*", re.IGNORECASE
)
_NO_RECORDS = ("readme", "index", "template", "adr-template", "_")
_LINK_SECTIONS = frozenset({"links", "more information", "related", "related decisions"})
_OPENING_SECTIONS = frozenset({"context", "status", "decision", "context and problem statement"})
_FRONT_TAKEN = frozenset({"status", "date", "title", "tags", "supersedes", "superseded-by"})


def drafts(path: str, top: str) -> Iterator[Draft | Problem]:
    """Yield the decision record of a file, or those of a directory."""
    for source in originals.walk(path, top, _is_record_name):
        if isinstance(source, Problem):
            yield source
            continue
        text = originals.read_text(source)
        yield text if isinstance(text, Problem) else _draft(source, text, path)


def _is_record_name(name: str) -> bool:
    return name.lower().endswith(".md") and not name.lower().startswith(_NO_RECORDS)


def _draft(source: Original, text: str, root: str) -> Draft | Problem:
    lines = text.split("\n")
    front, first = _front_matter(lines)
    body_lines = lines[first:]
    title, said, body = _read(body_lines)
    said = _of_front(front).joined(said)
    stem = source.path.rpartition("/")[2].removesuffix(".md")
    named = _FILE.match(stem)
    if not named and not said.state:
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
    title = title or _joined(front.get("title", "")) or _words(stem)
    return Draft(
        key=place,
        id=_id(stem),
        fields=_fields(said, title, front, named, folder),
        body=body,
        original=source,
        lines=(1, len(lines) - (not lines[-1])),
        names=_names(place, named),
        superseded_by=_targets(said.superseded_by, folder),
    )


def _read(lines: list[str]) -> tuple[str, Standing, str]:
    """Return title, standing and the body that is left when the lines of both are taken out."""
    found = sections("\n".join(lines))
    dropped: set[int] = set()  # numbers of lines from 1
    title = _title(found, lines, dropped)
    said = Standing()
    inner = (section.first_line for section in found if section.level)
    opening_end = next((line for line in inner if line not in dropped), len(lines) + 1)
    for number in range(1, opening_end):
        more = standing.of_line(lines[number - 1]) if number not in dropped else None
        if more is not None:
            said = said.joined(more)
            dropped.add(number)
    for section in found:
        name = section.title.strip(" :").lower() if section.level else ""
        if name == "status":
            said = standing.of_status(section, lines, dropped).joined(said)
        elif name in _LINK_SECTIONS:
            for line in section.text.split("\n"):
                if standing.EDGE.match(line.lstrip(" *+-")):
                    said = said.joined(standing.edges(line))
    body = "\n".join(line for number, line in enumerate(lines, 1) if number not in dropped)
    return title, said, body


def _fields(
    said: Standing, title: str, front: Fields, named: re.Match[str] | None, folder: str
) -> Fields:
    fields: Fields = {
        "type": "decision",
        "title": title,
        "status": wording.state(said.state) or "candidate",
        "supersedes": _targets(said.supersedes, folder),
    }
    day = wording.moment(said.date)
    if not day and named and len(named[1]) == 8:
        day = wording.moment(f"{named[1][:4]}-{named[1][4:6]}-{named[1][6:]}")
    if day:
        fields["timestamp"] = day
    elif said.date:
        fields["x-date"] = wording.line(said.date)
    tags = (wording.line(tag, 80) for tag in said.tags)
    fields["tags"] = tuple(dict.fromkeys(tag for tag in tags if tag))
    for key in sorted(front.keys() - _FRONT_TAKEN):
        value = wording.line(_joined(front[key]))
        name = re.sub("[^a-z0-9]+", "-", key.lower()).strip("-")[:60]
        if value and name:
            fields[f"x-{name}"] = value
    return {key: value for key, value in fields.items() if value != ()}


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
    number = _TITLE_NUMBER.match(chosen.title)
    return chosen.title[number.end() :] if number else chosen.title


def _front_matter(lines: list[str]) -> tuple[Fields, int]:
    """Return the front matter, and how many lines it takes; none is read line by line.

    Front matter of others is often not YAML (`status: [ADR-5](5.md)`), so what is not is read as
    plain `key: value` lines.
    """
    if lines[0].rstrip() != "---":
        return {}, 0
    end = next((n for n, line in enumerate(lines[1:], 1) if line.rstrip() in ("---", "...")), 0)
    if not end:
        return {}, 0
    try:
        return strict.read_header("\n".join(lines[1:end]) + "\n").fields, end + 1
    except strict.NotStrict:
        pairs = (line.partition(":") for line in lines[1:end] if line[:1].isalpha())
        return {key.strip(): rest.strip(" \"'") for key, colon, rest in pairs if colon}, end + 1


def _joined(value: FieldValue) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key} {text}" for key, text in value.items())
    return value if isinstance(value, str) else ", ".join(value)


def _of_front(front: Fields) -> Standing:
    words = {key.lower().replace("_", "-"): _joined(value) for key, value in front.items()}
    said = Standing(date=words.get("date", ""), tags=standing.tags_in(words.get("tags", "")))
    said = said.joined(standing.of_state(words.get("status", "")))
    for key in ("supersedes", "superseded-by"):
        if words.get(key):
            said = said.joined(standing.edges(f"{key.replace('-', ' ')} {words[key]}"))
    return said


def _id(stem: str) -> str:
    named = _FILE.match(stem)
    words = identity.slug(named[2] or "", 80) if named and named[2] else ""
    if named is None:
        return f"adr-{identity.slug(stem, 80)}"
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
