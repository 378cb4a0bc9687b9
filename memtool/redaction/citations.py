"""Ids, paths and sources in the header of a memory, which are no prose.

memtool writes these keys itself: a file called `bypass-gate.md` is cited by its name, and nobody
announces a password with it. So they are left out of the search by context. A known token or a
password inside an address is found there like anywhere.
"""

from __future__ import annotations

from functools import cache

from memtool.pattern import Pattern

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
    "cause": Pattern(r"(?:memory|without):[a-z0-9][a-z0-9._-]*\Z"),
    "source": Pattern(r"(?:(?:commit|memory|session|tool):[\w./-]+|file:(?!\w+://)[^?=&\n]+)\Z"),
}
"""What an item looks like that only names a thing; a value behind `=` may be a secret."""
_SAW = "  saw: "
_DIGEST = r"[0-9a-f]{12}(?:#L\d{1,9}-L\d{1,9}=[0-9a-f]{8}(?:\.\d{1,9})?)*"
_SIGHTING = Pattern(
    rf"(?:[^\s=#]+=(?:{_DIGEST}|\d{{1,11}}|[0-9a-f]{{1,50}}\.\d{{1,3}})(?: |\Z))+\Z"
)
"""The record of the code that a memory saw: paths with digests of one length."""


@cache
def _read_forms() -> dict[str, str]:
    """Return what the items of each key are, empty for words of somebody."""
    from memtool.memory.fields import FIELDS  # few headers hold what looks like a secret

    forms = {"id": "id", "ids": "id", "paths": "path", "sources": "source", "causes": "cause"}
    return {"session": "id"} | {field.name: forms.get(field.kind, "") for field in FIELDS}


def find_header_end(text: str) -> int:
    """Return where the header of a memory ends, 0 where a text begins without one."""
    opening = _OPENING.match(text) if text.startswith("---") else None
    closing = _CLOSING.search(text, opening.end() - 1) if opening else None
    return closing.end() if closing else 0


def find_spans(text: str) -> Iterator[tuple[int, int]]:
    """Yield the places of the ids, paths and sources in the header of a memory, in order."""
    end = find_header_end(text)
    form = ""
    at = 0
    while at < end:
        stop = text.find("\n", at)
        key = _KEY.match(text, at, stop)
        if key is not None:
            form = _read_forms().get(key["key"], "")
        elif text.startswith(_SAW, at) and _SIGHTING.match(text, at + len(_SAW), stop):
            yield at + len(_SAW), stop
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
