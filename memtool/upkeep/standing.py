"""Standing: where a decision record says it stands, in any of the usual spellings.

A state, a date, tags, and which records it supersedes or was superseded by: `* Status: accepted`,
`Superseded by [3. Keep files](0003-keep-files.md)`, `Supercedes ADR-2`.
"""

from __future__ import annotations

import re

from memtool.memory.body import Section
from memtool.upkeep import wording
from memtool.value import Value

_META = re.compile(
    r"\s{0,3}(?:[*+-]\s+)?[*_]{0,2}(status|date|tags|supersedes|superseded by)[*_]{0,2}\s*:"
    r"[*_]{0,2}\s*(.*)",
    re.IGNORECASE,
)
EDGE = re.compile(
    r"\b(?P<older>super[sc]eded\s+by|replaced\s+by)\b|\b(?:super[sc]edes|replaces)\b", re.IGNORECASE
)
_LINK = re.compile(r"\]\(\s*<?([^)\s>]+)")
_NAMED = re.compile(r"\b(?:adr[-_ ]?)?(\d{1,8}(?:-[a-z][\w-]*)?)\b", re.IGNORECASE)
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")


class Standing(Value):
    """What a record says of itself: words as written, and the records that it names."""

    state: str = ""
    date: str = ""
    tags: tuple[str, ...] = ()
    supersedes: tuple[str, ...] = ()
    superseded_by: tuple[str, ...] = ()

    def joined(self, other: Standing) -> Standing:
        """Return both; the other's state and date win where it has them."""
        return Standing(
            state=other.state or self.state,
            date=other.date or self.date,
            tags=self.tags + other.tags,
            supersedes=self.supersedes + other.supersedes,
            superseded_by=self.superseded_by + other.superseded_by,
        )


def of_line(line: str) -> Standing | None:
    """Read a line such as `* Status: accepted`, None for any other."""
    found = _META.match(line)
    if found is None:
        return None
    name, text = found[1].lower(), found[2].strip()
    if name == "status":
        return of_state(text)
    if name == "date":
        return Standing(date=text) if wording.moment(text) else None
    if name == "tags":
        return Standing(tags=tags_in(text))
    return edges(f"{name} {text}")


def of_state(text: str) -> Standing:
    """Read the words behind `Status:`."""
    return Standing(state=text).joined(edges(text)) if text else Standing()


def of_status(section: Section, lines: list[str], dropped: set[int]) -> Standing:
    """Read a section on the status, and note the lines that say nothing more as dropped.

    Of several states the last one counts, as they are written one below the other.
    """
    standing = Standing()
    own = range(section.first_line, section.last_line + 1)
    kept = []
    for number in own[1:]:
        text = lines[number - 1].strip(" \t*_+->#")
        said = of_line(lines[number - 1]) or _of_status_line(text)
        if said is not None:
            standing = standing.joined(said)
        if text and (said is None or _says_more(text, said)):
            kept.append(number)
    blank = {number for number in own if not lines[number - 1].strip()}
    gone = set(own) - blank - {own[0], *kept}
    gone |= {number for number in blank if number - 1 in gone}
    dropped.update(gone if kept else own)
    return standing


def _of_status_line(text: str) -> Standing | None:
    if "://" not in text and EDGE.match(text):
        said = edges(text)
        return said.joined(Standing(state="superseded")) if said.superseded_by else said
    if wording.state(text) and len(text.split()) <= 12:
        return Standing(date=text if _DAY.search(text) else "").joined(of_state(text))
    return None


def _says_more(text: str, said: Standing) -> bool:
    if said.supersedes or said.superseded_by or not said.state:
        return False
    return len(_DAY.sub("", text).split()) > 1


def tags_in(text: str) -> tuple[str, ...]:
    """Return the words of a line, or its parts between commas where it has some."""
    parts = text.split(",") if "," in text else text.split()
    return tuple(part.strip(" []\"'#`") for part in parts)


def edges(text: str) -> Standing:
    """Read `superseded by` and `supersedes` with the records behind each of them."""
    standing = Standing()
    found = list(EDGE.finditer(text))
    for number, verb in enumerate(found):
        end = found[number + 1].start() if number + 1 < len(found) else len(text)
        behind = text[verb.end() : end]
        links = tuple(link for link in _LINK.findall(behind) if "://" not in link)
        names = links if "](" in behind else tuple(_NAMED.findall(_DAY.sub("", behind)))
        standing = standing.joined(
            Standing(superseded_by=names) if verb["older"] else Standing(supersedes=names)
        )
    return standing
