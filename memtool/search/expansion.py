"""Expansion: aliases, and near words for words that are not in the index.

Aliases come from a built-in table and from `aliases.toml` in the memory directory. There, `word =
["other"]` adds a row or replaces a built-in one, and `word = []` removes it. An alias works both
ways: if `db` stands for `database`, a question about a database also finds `db`.

A word that no memory contains is searched in other spellings: terms that begin with the word
(`kube` finds `kubernetes`), and terms that differ from it by at most a fifth of its letters, if
both begin with the same two. Terms are stems, and an error in an ending keeps the stemmer from
removing it. So a term is also compared with its endings (`paginaton` finds `pagin`, by
`pagination`). A known word is not expanded.
"""

from __future__ import annotations

from memtool import tables
from memtool.errors import MemtoolError
from memtool.index import analyzer
from memtool.index.analyzer import ENGLISH, is_stop
from memtool.store import toml

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    Beginning = Callable[[str, int], list[str]]
    """Returns the first terms of the index that begin with a prefix, sorted; the number is the
    limit."""


ALIASES_NAME = "aliases.toml"

ALIAS_WEIGHT = 0.5
"""Weight of an alias term, relative to 1 for a word of the question."""

MAX_WORDS = 1_000

MAX_LENGTH = 100


Aliases = dict[str, tuple[str, ...]]


_TABLE = "search/aliases.toml"

DEFAULTS: Aliases = {
    word: tuple(synonyms)
    for word, synonyms in toml.read(tables.read(_TABLE).encode(), _TABLE).items()
}
"""Aliases that apply unless `aliases.toml` overrides them."""


def parse(data: bytes | None, path: str) -> Aliases:
    """Return the defaults combined with a file's aliases; None if there is no file.

    Raises:
        MemtoolError: the file is not TOML, or a row is not a list of words.
    """
    return DEFAULTS if data is None else merge_with_defaults(read_aliases(data, path))


def merge_with_defaults(own: Mapping[str, tuple[str, ...]]) -> Aliases:
    """Return the defaults overridden by the rows of a file, sorted by word."""
    both = DEFAULTS | dict(own)
    return {word: both[word] for word in sorted(both) if both[word]}


def read_aliases(data: bytes, path: str) -> Aliases:
    """Return only the file's own aliases. Raises MemtoolError like `parse`."""
    aliases: Aliases = {}
    for word, row in toml.read(data, path).items():
        synonyms = [row] if isinstance(row, str) else row
        if not isinstance(synonyms, list) or not all(isinstance(other, str) for other in synonyms):
            raise _build_error(path, word, 'must be a list of words, such as ["authentication"]')
        aliases[normalize_key(word, path)] = tuple(normalize_key(other, path) for other in synonyms)
    if len(aliases) > MAX_WORDS:
        raise _build_error(path, "", f"has {len(aliases):,} words, the limit is {MAX_WORDS:,}")
    return aliases


def normalize_key(text: str, path: str = "") -> str:
    """Return a word or phrase in the form in which aliases are compared: lower case, single spaces.

    Raises:
        MemtoolError: it has no word, or is too long.
    """
    plain = " ".join(text.lower().split())
    if not analyzer.terms(plain) or len(plain) > MAX_LENGTH or not plain.isprintable():
        raise _build_error(
            path, repr(text), f"must contain a word, and at most {MAX_LENGTH} characters"
        )
    return plain


def expand(
    weights: Mapping[str, float], aliases: Aliases, language: str = ENGLISH
) -> dict[str, float]:
    """Add the terms of aliases to those of a question, at half the weight.

    `weights` come from `terms.query_terms`; a term that is already there keeps its weight. A phrase
    applies if all of its words are in the question.
    """
    expanded = dict(weights)
    begins = frozenset(term[0] for term in weights)
    for word in sorted(aliases):
        for other in aliases[word]:
            for alias, meant in ((word, other), (other, word)):
                # A stem begins with the letter of its word, so most rows need no closer look.
                if alias[0] in begins or not alias[0].isalnum() or not alias.isascii():
                    _add(expanded, weights, alias, meant, language)
    return expanded


def _add(
    sums: dict[str, float],
    weights: Mapping[str, float],
    alias: str,
    meant: str,
    language: str,
) -> None:
    called = [weights.get(term, 0.0) for term in analyzer.terms(alias, language)]
    weight = min(called, default=0.0) * ALIAS_WEIGHT
    if weight:
        for term, share in analyzer.query_terms(meant, language).items():
            if term not in weights:
                sums[term] = max(sums.get(term, 0.0), weight * share)


def _build_error(path: str, word: str, what: str) -> MemtoolError:
    where = " ".join(filter(None, (f"{path}:" if path else "an alias", word)))
    hint = f"edit {path}" if path else "memtool alias add WORD EXPANSION"
    return MemtoolError(f"{where} {what}", hint=hint, code="bad-alias")


NEAR_WEIGHT = 0.5
"""Weight of a near word, relative to 1 for the word itself."""

MAX_UNKNOWN = 4
"""Words of a question that are searched in other spellings, the first ones. Most prompts have names
and typing errors that concern nothing here."""

MAX_NEAR = 5
"""Near words that replace one word; the most common ones."""

MAX_READ = 2_000
"""Terms that are compared with one word."""

MIN_LENGTH = 4

MAX_DISTANCE_SHARE = 0.2

MAX_DISTANCE = 3

_endings: dict[str, str] = {}
"""Suffixes that the stemmer removes, each with the ending that must leave the stem unchanged."""


def with_near_words(
    weights: Mapping[str, float], df: Callable[[str], int], beginning: Beginning
) -> dict[str, float]:
    """Add near words for the unknown terms of a question to its weights.

    A term that is already there keeps its weight.
    """
    expanded = dict(weights)
    unknown = 0
    for term, weight in weights.items():
        if len(term) < MIN_LENGTH or not term.isalpha() or is_stop(term) or df(term):
            continue
        unknown += 1
        if unknown > MAX_UNKNOWN:
            break
        for near in _find_nearest(term, df, beginning):
            if near not in weights:
                expanded[near] = max(expanded.get(near, 0.0), weight * NEAR_WEIGHT)
    return expanded


def _find_nearest(term: str, df: Callable[[str], int], beginning: Beginning) -> list[str]:
    """Return the terms that a word may mean: nearest, then most common, then by name."""
    near = {word: 0 for word in beginning(term, MAX_READ) if word.isalpha()}
    max_distance = min(MAX_DISTANCE, int(len(term) * MAX_DISTANCE_SHARE))
    if max_distance and not near:
        for start in (term[:2], term[:3]):
            words = beginning(start, MAX_READ + 1)
            if len(words) <= MAX_READ:
                break
        for word in words[:MAX_READ]:
            gap = (
                measure_distance(term, word, max_distance)
                if abs(len(word) - len(term)) <= max_distance
                else None
            )
            gap = _measure_inflection(term, word, max_distance) if gap is None else gap
            if gap is not None:
                near[word] = gap
    ranked = [(gap, -count, word) for word, gap in near.items() if (count := df(word))]
    return [word for _gap, _count, word in sorted(ranked)[:MAX_NEAR]]


def _measure_inflection(term: str, stem: str, max_distance: int) -> int | None:
    """Return the distance of a word to the nearest form of a stem, None if it is too large."""
    size = len(stem)
    if (
        not MIN_LENGTH <= size <= len(term)
        or measure_distance(term[:size], stem, max_distance) is None
    ):
        return None
    if not _endings:
        _endings.update(dict(tables.read_rows("search/endings")))
    gaps = [
        gap
        for ending, whole in _endings.items()
        if abs(size + len(ending) - len(term)) <= max_distance
        and (gap := measure_distance(term, stem + ending, max_distance)) is not None
        and analyzer.stem(stem + whole) == stem
    ]
    return min(gaps, default=None)


def measure_distance(first: str, other: str, max_distance: int) -> int | None:
    """Return the edit distance of two words, None if it is above `max_distance`.

    A wrong, missing, extra or transposed letter counts as one edit.
    """
    start = 0
    shorter = min(len(first), len(other))
    while start < shorter and first[start] == other[start]:
        start += 1
    first, other = first[start:], other[start:]
    if not first and not other:
        return 0
    if not max_distance:
        return None
    tries = [(first[1:], other[1:]), (first[1:], other), (first, other[1:])]
    if first[:2] == other[1::-1] and len(first) > 1:
        tries.append((first[2:], other[2:]))
    distances = [measure_distance(head, right, max_distance - 1) for head, right in tries]
    gaps = [gap for gap in distances if gap is not None]
    return min(gaps) + 1 if gaps else None
