"""Expansion: aliases, and near words for what occurs nowhere in the index.

Aliases are a table of common ones, and `aliases.toml` of the memory directory, in which
`word = ["other"]` adds one or replaces the row of the table, and `word = []` takes that row away.
An alias works both ways: where `db` stands for `database`, a question about a database also finds
`db`.

A word that no memory holds is looked for in other spellings: terms that begin with the word (`kube`
finds `kubernetes`), and terms that differ from it by at most a fifth of its letters, where both
begin with the same two. Terms are stems, and an error in an ending keeps the stemmer from taking it
off: so a term is compared with its endings, too (`paginaton` finds `pagin`, by `pagination`). A
word that is known stays what it is.
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
    """Gives the first so many terms of the index that begin with a prefix, sorted."""


ALIASES_NAME = "aliases.toml"

ALIAS_WEIGHT = 0.5
"""What a term of an alias weighs beside 1 for a word of the question."""

MOST_WORDS = 1_000

MOST_LENGTH = 100


Aliases = dict[str, tuple[str, ...]]


_TABLE = "search/aliases.toml"

DEFAULTS: Aliases = {
    word: tuple(others) for word, others in toml.read(tables.read(_TABLE).encode(), _TABLE).items()
}
"""What holds where `aliases.toml` says nothing else."""


def parse(data: bytes | None, path: str) -> Aliases:
    """Return the defaults with what a file says; None is no file.

    Raises:
        MemtoolError: the file is not TOML, or a row is not a list of words.
    """
    return DEFAULTS if data is None else merged(written(data, path))


def merged(own: Mapping[str, tuple[str, ...]]) -> Aliases:
    """Return the defaults with the rows of a file in their place, sorted by word."""
    both = DEFAULTS | dict(own)
    return {word: both[word] for word in sorted(both) if both[word]}


def written(data: bytes, path: str) -> Aliases:
    """Return just what the file says. Raises MemtoolError as `parse` does."""
    found: Aliases = {}
    for word, row in toml.read(data, path).items():
        others = [row] if isinstance(row, str) else row
        if not isinstance(others, list) or not all(isinstance(other, str) for other in others):
            raise _refusal(path, word, 'must be a list of words, such as ["authentication"]')
        found[key(word, path)] = tuple(key(other, path) for other in others)
    if len(found) > MOST_WORDS:
        raise _refusal(path, "", f"has {len(found):,} words, {MOST_WORDS:,} are allowed")
    return found


def key(text: str, path: str = "") -> str:
    """Return a word or phrase as aliases are compared: lower case, single spaces.

    Raises:
        MemtoolError: there is no word in it, or it is too long.
    """
    plain = " ".join(text.lower().split())
    if not analyzer.terms(plain) or len(plain) > MOST_LENGTH or not plain.isprintable():
        raise _refusal(path, repr(text), f"must hold a word, in at most {MOST_LENGTH} characters")
    return plain


def expand(
    weights: Mapping[str, float], aliases: Aliases, language: str = ENGLISH
) -> dict[str, float]:
    """Return the terms of a question with those of its aliases, at half the weight.

    `weights` is what `terms.query_terms` gives; a term that is already there keeps its weight. A
    phrase is called for where all of its words are in the question.
    """
    found = dict(weights)
    begins = frozenset(term[0] for term in weights)
    for word in sorted(aliases):
        for other in aliases[word]:
            for said, meant in ((word, other), (other, word)):
                # No stem begins otherwise than its word: most rows need no closer look.
                if said[0] in begins or not said[0].isalnum() or not said.isascii():
                    _add(found, weights, said, meant, language)
    return found


def _add(
    found: dict[str, float],
    weights: Mapping[str, float],
    said: str,
    meant: str,
    language: str,
) -> None:
    called = [weights.get(term, 0.0) for term in analyzer.terms(said, language)]
    weight = min(called, default=0.0) * ALIAS_WEIGHT
    if weight:
        for term, share in analyzer.query_terms(meant, language).items():
            if term not in weights:
                found[term] = max(found.get(term, 0.0), weight * share)


def _refusal(path: str, word: str, what: str) -> MemtoolError:
    where = " ".join(filter(None, (f"{path}:" if path else "an alias", word)))
    hint = f"edit {path}" if path else "memtool alias add WORD EXPANSION…"
    return MemtoolError(f"{where} {what}", hint=hint, code="bad-alias")


NEAR_WEIGHT = 0.5
"""What a near word weighs beside 1 for the word itself."""

MOST_UNKNOWN = 4
"""Words of a question that are looked for in other spellings, the first ones; most prompts hold
names and typing errors that are about nothing here."""

MOST_NEAR = 5
"""Near words that stand in for one; the commonest of them."""

MOST_READ = 2_000
"""Terms that are compared with one word."""

LEAST_LENGTH = 4

SHARE = 0.2

MOST_DISTANCE = 3

_endings: dict[str, str] = {}
"""What the stemmer takes off a word, each with the ending that has to leave the stem alone."""


def with_near_words(
    weights: Mapping[str, float], df: Callable[[str], int], beginning: Beginning
) -> dict[str, float]:
    """Return the weights of a question's terms with those of near words for the unknown ones.

    A term that is there already keeps its weight.
    """
    found = dict(weights)
    unknown = 0
    for term, weight in weights.items():
        if len(term) < LEAST_LENGTH or not term.isalpha() or is_stop(term) or df(term):
            continue
        unknown += 1
        if unknown > MOST_UNKNOWN:
            break
        for near in _nearest(term, df, beginning):
            if near not in weights:
                found[near] = max(found.get(near, 0.0), weight * NEAR_WEIGHT)
    return found


def _nearest(term: str, df: Callable[[str], int], beginning: Beginning) -> list[str]:
    """Return the terms that a word may mean: the nearest, then the commonest, then by name."""
    near = {one: 0 for one in beginning(term, MOST_READ) if one.isalpha()}
    most = min(MOST_DISTANCE, int(len(term) * SHARE))
    if most and not near:
        for start in (term[:2], term[:3]):
            known = beginning(start, MOST_READ + 1)
            if len(known) <= MOST_READ:
                break
        for one in known[:MOST_READ]:
            gap = distance(term, one, most) if abs(len(one) - len(term)) <= most else None
            gap = _inflected(term, one, most) if gap is None else gap
            if gap is not None:
                near[one] = gap
    ranked = [(gap, -count, one) for one, gap in near.items() if (count := df(one))]
    return [one for _gap, _count, one in sorted(ranked)[:MOST_NEAR]]


def _inflected(term: str, stem: str, most: int) -> int | None:
    """Return by how many letters a word differs from the nearest form of a stem, None for more."""
    size = len(stem)
    if not LEAST_LENGTH <= size <= len(term) or distance(term[:size], stem, most) is None:
        return None
    if not _endings:
        _endings.update(dict(tables.rows("search/endings")))
    gaps = [
        gap
        for ending, whole in _endings.items()
        if abs(size + len(ending) - len(term)) <= most
        and (gap := distance(term, stem + ending, most)) is not None
        and analyzer.stem(stem + whole) == stem
    ]
    return min(gaps, default=None)


def distance(one: str, other: str, most: int) -> int | None:
    """Return by how many letters two words differ, None if by more than `most`.

    A letter that is wrong, missing, too many, or in the place of its neighbour, counts one.
    """
    start = 0
    shorter = min(len(one), len(other))
    while start < shorter and one[start] == other[start]:
        start += 1
    one, other = one[start:], other[start:]
    if not one and not other:
        return 0
    if not most:
        return None
    tries = [(one[1:], other[1:]), (one[1:], other), (one, other[1:])]
    if one[:2] == other[1::-1] and len(one) > 1:
        tries.append((one[2:], other[2:]))
    found = [distance(left, right, most - 1) for left, right in tries]
    gaps = [gap for gap in found if gap is not None]
    return min(gaps) + 1 if gaps else None
