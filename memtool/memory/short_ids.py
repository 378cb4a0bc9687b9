"""Short ids: what people and agents read and type in place of an id of up to 60 characters.

Also which ids a text can mean: a short id, the beginning of an id, or words of it.

    dec-2026-08-10-hold-a-seat-for-20-minutes-2g54    dec-2g54

The short form of an id depends on the ids of its tree alone, superseded and deleted memories
included, so equal trees show equal ids. Files, trailers, JSON and state keep whole ids.
"""

from __future__ import annotations

from bisect import bisect_left

from memtool.memory.ids import SUFFIX_LENGTH, TYPE_PREFIX
from memtool.value import Value, cached_property

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

MAX_WHOLE_CHARS = 20
"""An id that memtool did not make is shown whole up to this length."""
MIN_PARTS = 2
"""Hyphenated parts that the short form of such an id has at least."""
_PREFIXES = tuple(f"{prefix}-" for prefix in TYPE_PREFIX.values())
_DATE_END = len("dec-2026-08-10-")
_ID_LIKE = r"(?<![\w/.-])[a-z0-9][a-z0-9_-]{2,}(?![\w/-])(?!\.md)"


class IdParts(Value):
    """The parts of an id that memtool made: `dec`, `2026-08-10`, and `2g54`."""

    prefix: str
    date: str
    suffix: str

    @property
    def short(self) -> str:
        return f"{self.prefix}-{self.suffix}"

    @property
    def dated(self) -> str:
        return f"{self.prefix}-{self.date}-{self.suffix}"


def parse(id_: str) -> IdParts | None:
    """Return the parts of an id of the form TYPE-DATE-SLUG-SUFFIX, None for any other id."""
    if not id_.startswith(_PREFIXES):
        return None
    prefix, date = id_[:3], id_[4 : _DATE_END - 1]
    year, month, day = date[:4], date[5:7], date[8:]
    is_date = date[4:5] == date[7:8] == "-" and f"{year}{month}{day}".isdigit()
    slug, hyphen, suffix = id_[_DATE_END:].rpartition("-")
    if not (is_date and id_[_DATE_END - 1] == "-" and slug and hyphen):
        return None
    return IdParts(prefix, date, suffix) if len(suffix) == SUFFIX_LENGTH else None


class ShortIds:
    """The short forms of the ids of one tree."""

    def __init__(self, ids: Iterable[str]) -> None:
        self._ids = ids if isinstance(ids, list | tuple) else list(ids)
        self._shared: dict[str, set[str]] = {}

    def shorten(self, id_: str) -> str:
        """Return the shortest form that means this id alone.

        An id that memtool made loses its date and slug, or its slug alone if another id of the tree
        has the same type and suffix. Any other id keeps as many leading parts as no other id has.
        """
        parts = parse(id_)
        if parts is None:
            return self._shorten_foreign(id_)
        shared = self._find_shared(parts.suffix)
        return next((form for form in (parts.short, parts.dated) if form not in shared), id_)

    def shorten_in(self, text: str) -> str:
        """Shorten the ids of the tree in a sentence. Paths with an id stay as they are."""
        import re  # a tree that only finds ids does not need it

        def replace(match: re.Match[str]) -> str:
            return self.shorten(match[0]) if match[0] in self._id_set else match[0]

        return re.sub(_ID_LIKE, replace, text)

    @cached_property
    def _id_set(self) -> frozenset[str]:
        return frozenset(self._ids)

    def _find_shared(self, suffix: str) -> set[str]:
        """Return the ambiguous forms with a suffix: those of two ids, and those that are ids."""
        if suffix not in self._shared:
            near = self._ids_by_end.get(suffix, [])
            seen = set(near)
            shared: set[str] = set()
            for parts in filter(None, map(parse, near)):
                for form in (parts.short, parts.dated):
                    if form in seen:
                        shared.add(form)
                    seen.add(form)
            self._shared[suffix] = shared
        return self._shared[suffix]

    @cached_property
    def _ids_by_end(self) -> dict[str, list[str]]:
        """The ids by their last characters: only those with the same ones can share a form."""
        ids_by_end: dict[str, list[str]] = {}
        for id_ in self._ids:
            ids_by_end.setdefault(id_[-SUFFIX_LENGTH:], []).append(id_)
        return ids_by_end

    @cached_property
    def _sorted(self) -> Sequence[str]:
        return sorted(self._ids)

    def _shorten_foreign(self, id_: str) -> str:
        if len(id_) <= MAX_WHOLE_CHARS:
            return id_
        parts = id_.split("-")
        for count in range(MIN_PARTS, len(parts)):
            form = "-".join(parts[:count])
            if not self._begins_other(form, id_) and not find_short(form, self._ids):
                return form
        return id_

    def _begins_other(self, form: str, id_: str) -> bool:
        """Return whether another id begins with a text; in sorted order such ids are adjacent."""
        at = bisect_left(self._sorted, form)
        adjacent = self._sorted[at : at + 2]
        return any(other != id_ and other.startswith(form) for other in adjacent)


def find_short(text: str, ids: Iterable[str]) -> list[str]:
    """Return the ids with this short or dated form, in their order; two may share one."""
    head, hyphen, suffix = text.rpartition("-")
    if not hyphen or len(suffix) != SUFFIX_LENGTH or f"{head}-"[:4] not in _PREFIXES:
        return []
    if len(head) not in (3, _DATE_END - 1):
        return []
    beginning, end = f"{head}-", f"-{suffix}"
    near = [id_ for id_ in ids if id_.endswith(end) and id_.startswith(beginning)]
    return [id_ for id_ in near if (parts := parse(id_)) and text in (parts.short, parts.dated)]


def find_meant(text: str, ids: Sequence[str]) -> list[str]:
    """Return the ids that a text can mean, in their order: by their beginning, or by words."""
    return find_begun(text, ids) or find_by_words(text, ids)


def find_begun(text: str, ids: Sequence[str]) -> list[str]:
    """Return the ids with this short or dated form, else those that begin with the text."""
    if not text:
        return []
    return find_short(text, ids) or [id_ for id_ in ids if id_.startswith(text)]


def find_by_words(text: str, ids: Iterable[str]) -> list[str]:
    """Return the ids with all words of a text, whole (`keep-sessions`), else begun (`bill`)."""
    words = _split_words(text)
    if not words:
        return []
    near = [(id_, id_.split("-")) for id_ in ids if all(word in id_ for word in words)]
    return [id_ for id_, parts in near if all(word in parts for word in words)] or [
        id_
        for id_, parts in near
        if all(any(part.startswith(word) for part in parts) for word in words)
    ]


def _split_words(text: str) -> tuple[str, ...]:
    """Return the words of an id or a title; of a query with operators there are none."""
    if not text.isascii():
        import unicodedata  # as in a slug

        text = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()
    words = text.lower().replace("-", " ").replace("_", " ").replace("'", " ").split()
    return tuple(words) if all(map(str.isalnum, words)) else ()
