"""Python Enhancement Proposals: each becomes a decision, with its headers as keys."""

from __future__ import annotations

import re
from collections.abc import Iterator

from memtool.importing import normalise, originals
from memtool.importing.originals import ForeignRecord, Original
from memtool.memory import schema
from memtool.memory.memory import Fields
from memtool.memory.problem import Problem

ENDINGS = (".rst", ".txt", ".md")
_FILE = re.compile(r"pep-\d+\.[^.]*$")
_HEADER = re.compile(r"([A-Za-z][A-Za-z0-9-]*):[ \t]*(.*)")
_ADDRESS = re.compile(r" ?<[^<>@]*@[^<>]*>")
_TAGS = ("type", "topic")
_TAKEN = frozenset({"pep", "title", "status", "created", "superseded-by", "replaces", *_TAGS})
_PASSED_OVER = frozenset({"version", "last-modified", "content-type"})
"""Headers that repeat what version control knows better."""


def drafts(path: str, top: str) -> Iterator[ForeignRecord | Problem]:
    """Yield the PEP of a file, or those of a directory; index and other files are passed over."""
    for found in originals.texts(path, top, lambda name: name.lower().endswith(ENDINGS)):
        if isinstance(found, Problem):
            yield found
            continue
        source, text = found
        headers, body_line = read_headers(text)
        number = headers.get("pep", "")
        if number.isascii() and number.isdigit() and len(number) <= 6:
            if int(number):
                yield _draft(source, text, headers, body_line)
        elif source.path == path or _FILE.match(source.path.rpartition("/")[2].lower()):
            what = "it does not begin with a PEP: line with its number"
            hint = "memtool import adr takes decision records of other forms"
            yield Problem(source.shown, 1, "not-a-record", what, hint)


def read_headers(text: str) -> tuple[dict[str, str], int]:
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


def _draft(source: Original, text: str, headers: dict[str, str], body_line: int) -> ForeignRecord:
    number = int(headers["pep"])
    id_ = _id(number)
    created = normalise.moment(headers.get("created", ""))
    tags = [
        tag.strip().lower()
        for name in _TAGS
        for tag in headers.get(name, "").split(",")
        if tag.strip()
    ]
    fields: Fields = {
        "type": "decision",
        "title": headers.get("title") or f"PEP {number}",
        "status": normalise.state(headers.get("status", "")) or "candidate",
        "source": (f"url:https://peps.python.org/pep-{number:04}/",),
        "aliases": (f"PEP {number}",),
        "supersedes": _numbers(headers.get("replaces", "")),
    }
    if created:
        fields["timestamp"] = created
    if tags:
        fields["tags"] = tuple(dict.fromkeys(normalise.line(tag, 80) for tag in tags))
    for name in sorted(headers.keys() - _TAKEN - _PASSED_OVER):
        whole = normalise.line(headers[name], 4 * schema.MAX_LINE)  # bounds what the pattern sees
        value = normalise.line(_ADDRESS.sub("", whole))
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
        superseded_by=_numbers(headers.get("superseded-by", "")),
    )


def _numbers(text: str) -> tuple[str, ...]:
    return tuple(_id(int(number)) for number in re.findall(r"\d{1,6}", text))


def _id(number: int) -> str:
    return f"pep-{number:04}"
