"""Normal forms: states, dates, names and long texts of other tools, in the form of a memory.

Each comes in many spellings, and has one table or one function here, so that every importer reads
it in the same way.
"""

from __future__ import annotations

import re
import unicodedata

from memtool import value
from memtool.memory import schema, timestamps
from memtool.memory.fields import STATUSES

TITLE_LENGTH = 200
ID_LENGTH = 120

_STATES: dict[str, str] = {
    "confirmed": "accepted active adopted agreed approved closed complete completed decided done "
    "final finished hooked implementable implemented open released replaced resolved superceded "
    "superseded",
    "candidate": "deferred draft pending planned proposal proposed provisional rfc wip",
    "deprecated": "abandoned canceled cancelled declined deprecated obsolete rejected removed "
    "retired reverted withdrawn wontfix",
}
STATES: dict[str, str] = {
    **{status: status for status in STATUSES},
    **{word: status for status, words in _STATES.items() for word in words.split()},
    "in progress": "confirmed",
    "in review": "candidate",
    "under review": "candidate",
    "april fool": "deprecated",
}
"""The status of a memory for each state that records of decisions or issues are known to have.

A superseded record is confirmed: the one that replaces it says so.
"""

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS = (
    re.compile(r"(?P<year>\d{4})[-/](?P<month>\d{1,2})[-/](?P<day>\d{1,2})(?!\d)"),
    re.compile(r"(?P<day>\d{1,2})[-\s.]+(?P<month>[A-Za-z]{3,9})[-\s,.]+(?P<year>\d{4})(?!\d)"),
    re.compile(r"(?P<month>[A-Za-z]{3,9})\.?\s+(?P<day>\d{1,2})[a-z]{0,2},?\s+(?P<year>\d{4})"),
)
_NAIVE = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(\.\d+)?")


def state(text: str) -> str:
    """Return the status that a state such as `Accepted (2020-01-01)` means, or an empty text.

    The first two words or the first one decide; a template's `{proposed | accepted}` is no state,
    and what follows ` #` is a comment.
    """
    text = text.partition(" #")[0]
    words = re.findall("[a-z]+", text.lower())
    if not words or "|" in text:
        return ""
    return STATES.get(" ".join(words[:2])) or STATES.get(words[0], "")


def moment(text: str) -> str:
    """Return a date or time in one of the usual spellings as RFC 3339, or an empty text.

    A full RFC 3339 moment stays as it was written; a plain day begins at midnight UTC.
    """
    text = text.strip().strip("\"'")
    if _NAIVE.fullmatch(text):
        text += "Z"
    try:
        timestamps.parse(text)
        return text
    except ValueError:
        pass
    for pattern in _DAYS:
        found = pattern.search(text)
        if found:
            month = found["month"]
            number = int(month) if month.isdigit() else _month(month)
            try:
                day = f"{found['year']}-{number:02}-{int(found['day']):02}"
                return timestamps.render(timestamps.parse_date(day))
            except ValueError:
                continue
    return ""


def _month(name: str) -> int:
    start = name[:3].lower()
    return _MONTHS.index(start) + 1 if start in _MONTHS else 0


def line(text: str, most: int = schema.MAX_LINE) -> str:
    """Return text as one visible line: blanks joined, hidden characters dropped, the end cut."""
    shown = "".join(char for char in " ".join(text.split()) if schema.is_line(char))
    return shown if len(shown) <= most else shown[: most - 1].rstrip() + "…"


def body(text: str) -> str:
    """Return text as the body of a memory: no NUL, no lone surrogates, LF, one final line feed."""
    whole = text.replace("\0", "").replace("\r\n", "\n")
    whole = whole.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace").strip("\n")
    return f"{whole}\n" if whole.strip() else ""


def cut(text: str, most_bytes: int, where: str) -> str:
    """Return a body that fits, cut after a paragraph, with a last line that says where the rest is.

    A single paragraph that does not fit is cut after a word or character.
    """
    data = text.encode()
    if len(data) <= most_bytes:
        return text
    end = f"\n\n[cut here: the whole text of {len(data):,} bytes is in {where}]\n"
    kept = data[: max(most_bytes - len(end.encode()), 0)].decode(errors="ignore")
    for edge in ("\n\n", "\n", " "):
        head = kept.rpartition(edge)[0]
        if len(head) > len(kept) // 2:
            kept = head
            break
    return kept.rstrip() + end


def digest(text: str) -> str:
    """Return six hexadecimal digits that tell names apart which read the same as ids."""
    return value.digest(text.encode(errors="surrogatepass"), 3)


def as_id(name: str, prefix: str) -> str:
    """Return a name as an id; the prefix completes one that is too short, a digest a cut one."""
    if schema.is_id(name):
        return name
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode().lower()
    chosen = re.sub("[^a-z0-9._-]+", "-", plain).strip("-._")
    if len(chosen) < 3:
        chosen = f"{prefix}-{chosen or digest(name)}"
    return chosen if len(chosen) <= ID_LENGTH else suffixed(chosen, name)


def suffixed(id_: str, name: str) -> str:
    """Return an id with the digest of the full name behind it."""
    return f"{id_[: ID_LENGTH - 7].rstrip('-._')}-{digest(name)}"
