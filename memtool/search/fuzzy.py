"""Near words: what stands in for a word of a question that stands nowhere in the index.

Only such words are looked for in other spellings: terms that begin with the word (`kube` finds
`kubernetes`), and terms that differ from it by at most a fifth of its letters, where both begin
with the same two. A word that is known stays what it is.
"""

from __future__ import annotations

from memtool.search.terms import is_stop

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    Beginning = Callable[[str, int], list[str]]
    """Gives the first so many terms of the index that begin with a prefix, sorted."""

WEIGHT = 0.5
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


def expand(
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
                found[near] = max(found.get(near, 0.0), weight * WEIGHT)
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
            if gap is not None:
                near[one] = gap
    ranked = [(gap, -count, one) for one, gap in near.items() if (count := df(one))]
    return [one for _gap, _count, one in sorted(ranked)[:MOST_NEAR]]


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
