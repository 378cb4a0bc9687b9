"""Python Enhancement Proposals: files that begin with headers such as `PEP:`, `Title:`, `Status:`.

The headers become keys, all other text stays in the body unchanged.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from memtool.importing import originals
from memtool.importing.originals import ForeignRecord, ImportRequest, Original
from memtool.memory import schema
from memtool.memory.memory import Fields
from memtool.memory.schema import Problem

PEP_ENDINGS = (".rst", ".txt", ".md")
MAX_DIGITS = 6
MAX_HEADER_CHARS = 8_000
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
    """Yield the PEP of a file, or those of a directory; other files are skipped."""
    for item in originals.read_texts(path, request.top, _is_pep_name):
        if isinstance(item, Problem):
            yield item
            continue
        source, text = item
        if is_pep(text):
            yield from build_pep(source, text)
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


def is_pep(text: str) -> bool:
    """Return whether a text begins with the headers of a PEP."""
    number = parse_pep_headers(text[:MAX_HEADER_CHARS])[0].get("pep", "")
    return number.isascii() and number.isdigit() and len(number) <= MAX_DIGITS


def build_pep(source: Original, text: str) -> Iterator[ForeignRecord | Problem]:
    """Yield the record of a PEP, or why it is not one; and what its status says if unknown."""
    headers, body_line = parse_pep_headers(text)
    number = int(headers["pep"])
    if not number:
        yield originals.left_out(source, "it is the index of the PEPs")
        return
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
        "source": (f"url:https://peps.python.org/pep-{number:04}/",),
        "aliases": (f"PEP {number}",),
        "supersedes": _parse_pep_ids(headers.get("replaces", "")),
    }
    status = originals.match_state(headers.get("status", ""))
    if status or headers.get("status"):
        fields["status"] = status.status if status else "candidate"
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
    record = ForeignRecord(
        key=id_,
        id=id_,
        fields=fields,
        body="\n".join(lines[body_line - 1 :]),
        original=source,
        lines=(1, len(lines) - (not lines[-1])),
        superseded_by=_parse_pep_ids(headers.get("superseded-by", "")),
        premises=_parse_pep_ids(headers.get("requires", "")),
        status_from=status.shown if status else "",
        date_from="Created" if created else "",
    )
    if "status" in fields and not status:
        yield originals.unknown_state(record, headers["status"])
    yield record


def _parse_pep_ids(text: str) -> tuple[str, ...]:
    return tuple(_build_pep_id(int(number)) for number in re.findall(r"\d{1,6}", text))


def _build_pep_id(number: int) -> str:
    return f"pep-{number:04}"
