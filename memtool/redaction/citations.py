"""Ids, paths and sources in the header of a memory, which are no prose.

memtool writes these keys itself: a file called `bypass-gate.md` is cited by its name, and nobody
announces a password with it. So they are left out of the search by context. A known token or a
password inside an address is found there like anywhere.
"""

from __future__ import annotations

from functools import cache

from memtool.redaction.entropy import Pattern

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_OPENING = Pattern(r"---[ \t]*\r?\n")
_CLOSING = Pattern(r"\n---[ \t]*\r?(?:\n|\Z)")
_KEY = Pattern(r"(?P<key>[a-z_]+):[ \t]*")
_ITEM = Pattern(r"\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\n]|'')*'|[^\s,\[\]\"'-][^,\[\]\r\n]*|-[^\s,\[\]]+")
_FORMS = {
    "id": Pattern(r"[a-z0-9][a-z0-9._-]*\Z"),
    "path": Pattern(r"(?!\w+://)[^=&\n]+\Z"),
    "source": Pattern(r"(?:(?:commit|memory|session|tool):[\w./-]+|file:(?!\w+://)[^?=&\n]+)\Z"),
}
"""What an item looks like that only names a thing; a value behind `=` may be a secret."""


@cache
def _forms() -> dict[str, str]:
    """Return what the items of each key are, empty for words of somebody."""
    from memtool.memory.fields import FIELDS  # few headers hold what looks like a secret

    forms = {"id": "id", "ids": "id", "paths": "path", "sources": "source"}
    return {"session": "id"} | {field.name: forms.get(field.kind, "") for field in FIELDS}


def header_end(text: str) -> int:
    """Return where the header of a memory ends, 0 where a text begins without one."""
    opening = _OPENING.match(text) if text.startswith("---") else None
    closing = _CLOSING.search(text, opening.end() - 1) if opening else None
    return closing.end() if closing else 0


def spans(text: str) -> Iterator[tuple[int, int]]:
    """Yield the places of the ids, paths and sources in the header of a memory, in order."""
    end = header_end(text)
    form = ""
    at = 0
    while at < end:
        stop = text.find("\n", at)
        key = _KEY.match(text, at, stop)
        if key is not None:
            form = _forms().get(key["key"], "")
        elif not text.startswith((" ", "-"), at):
            form = ""
        for item in _ITEM.finditer(text, key.end() if key else at, stop) if form else ():
            start, last = item.span()
            while text[last - 1] == " ":
                last -= 1
            is_quoted = text[start] in "\"'"
            inner = text[start + is_quoted : last - is_quoted]
            if _FORMS[form].match(inner):
                yield start, last
        at = stop + 1
