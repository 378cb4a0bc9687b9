"""Opposition: two statements that cannot both hold, found by their signs, subjects and values.

Precise rather than eager: the smaller subject lies whole within the larger one, so that what
holds in tests does not oppose what holds in production; and where values differ, one does alone.
"""

from __future__ import annotations

from memtool.gate.statements import Statement, statements
from memtool.memory.memory import is_generated
from memtool.memory.signs import TYPES
from memtool.search.terms import is_stop, terms
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from memtool.memory.memory import Memory

OPPOSITION = "opposition"
VALUES = "values"
MOST_EXTRA = 2
"""Terms by which the larger subject may be narrower than the smaller one."""


class Opposed(Value):
    """Two memories, by their place in the list that was asked, and the sentences that clash."""

    one: int
    other: int
    kind: str
    reason: str


def kind_of(one: Statement, other: Statement, *, is_related: bool) -> str:
    """Return `opposition`, `values`, or an empty text where both statements can hold.

    `is_related` says that the memories share a file, a tag or a word of their titles: only then
    is a subject of a single term enough.
    """
    small, large = sorted((one, other), key=lambda s: (len(s.subject), s.text))
    extra = len(large.subject) - len(small.subject)
    if small.concept != large.concept or small.is_key != large.is_key:
        return ""
    if extra > min(MOST_EXTRA, len(small.subject)) or not small.subject <= large.subject:
        return ""
    if len(small.subject) < 2 and not (is_related and extra < 2):
        return ""
    if small.sign != large.sign:
        has_same = small.values == large.values or not small.values or not large.values
        return OPPOSITION if has_same else ""
    return VALUES if _differs_once(small, large) and _is_said(one) and _is_said(other) else ""


def _is_said(statement: Statement) -> bool:
    """Tell whether a value is said of something: `Python 3.12 Release Schedule` only names it.

    Nor is it where a memory speaks of itself, as `This page lists ...` does.
    """
    words = statement.text.split()
    is_sentence = words[0].lower() != "this" and any(word[0].islower() for word in words)
    return statement.is_key or is_sentence


def _differs_once(one: Statement, other: Statement) -> bool:
    if [kind for kind, _v in one.values] != [kind for kind, _v in other.values]:
        return False
    pairs = zip(one.values, other.values, strict=True)
    return sum(mine != theirs for mine, theirs in pairs) == 1


def opposed(one: Memory, other: Memory) -> tuple[str, str]:
    """Return kind and reason of the first clash of two memories, empty where there is none."""
    ((kind, reason),) = opposed_to(one, [other])
    return kind, reason


def opposed_to(one: Memory, others: Sequence[Memory]) -> list[tuple[str, str]]:
    """Return kind and reason of the first clash of a memory with each of others."""
    mine: list[Statement] | None = None
    found = []
    for other in others:
        clash = None
        if one.type in TYPES and other.type in TYPES:
            mine = said_by(one) if mine is None else mine
            clash = next(iter(_clashes([one, other], [mine, said_by(other)])), None)
        found.append((clash.kind, clash.reason) if clash else ("", ""))
    return found


def oppositions(memories: Sequence[Memory]) -> list[Opposed]:
    """Return every two memories that clash, once each, in the order of the list."""
    return _clashes(memories, [said_by(memory) for memory in memories])


def said_by(memory: Memory) -> list[Statement]:
    """Return the statements that may clash: those of a type that can contradict another.

    A digest that memtool wrote states nothing but what its sources state.
    """
    may_clash = memory.type in TYPES and not is_generated(memory)
    return list(statements(memory)) if may_clash else []


def _clashes(memories: Sequence[Memory], lists: Sequence[Sequence[Statement]]) -> list[Opposed]:
    """Return the clashes of memories by their statements.

    A clash needs the smaller subject to lie within the larger one, so its rarest term leads to
    every statement that it can clash with: the cost follows the pairs that share a rare term.
    """
    said = [(at, statement) for at, own in enumerate(lists) for statement in own]
    found: dict[tuple[int, int], Opposed] = {}
    for sign in (1, -1):
        against = [(at, s) for at, s in said if s.sign == -sign]
        _meet(memories, [(at, s) for at, s in said if s.sign == sign], against, found)
        valued = [(at, s) for at, s in said if s.sign == sign and s.values]
        _meet(memories, valued, valued, found)
    return [found[pair] for pair in sorted(found)]


def _meet(
    memories: Sequence[Memory],
    asking: Sequence[tuple[int, Statement]],
    asked: Sequence[tuple[int, Statement]],
    found: dict[tuple[int, int], Opposed],
) -> None:
    """Compare every statement with those that hold its rarest term; keep the first clash."""
    if not asking or not asked:
        return
    postings: dict[str, list[tuple[int, Statement]]] = {}
    for at, statement in asked:
        for term in statement.subject:
            postings.setdefault(term, []).append((at, statement))
    for at, statement in asking:
        if not postings.keys() >= statement.subject:
            continue  # one of its terms stands nowhere else
        rarest = min(statement.subject, key=lambda term: (len(postings[term]), term))
        for other_at, other in postings[rarest]:
            pair = (min(at, other_at), max(at, other_at))
            if at == other_at or pair in found or len(other.subject) < len(statement.subject):
                continue
            one, two = memories[pair[0]], memories[pair[1]]
            kind = kind_of(statement, other, is_related=True)
            if kind and (len(statement.subject) > 1 or is_related(one, two)):
                first, second = (statement, other) if at < other_at else (other, statement)
                found[pair] = Opposed(*pair, kind, f"{_quoted(first)} against {_quoted(second)}")


def is_related(one: Memory, other: Memory) -> bool:
    """Tell whether two memories share a file, a tag, or a word of their titles."""
    return any(
        not set(mine).isdisjoint(theirs)
        for mine, theirs in (
            (one.items("files"), other.items("files")),
            (one.items("tags"), other.items("tags")),
            (_content(one.title), _content(other.title)),
        )
    )


def _content(title: str) -> Iterator[str]:
    return (term for term in terms(title) if not is_stop(term))


def _quoted(statement: Statement) -> str:
    text = statement.text if len(statement.text) <= 100 else statement.text[:99] + "…"
    return f'"{text.rstrip(".")}"'
