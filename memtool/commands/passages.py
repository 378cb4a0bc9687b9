"""Passages: what `inject` and the primer share: the grounds of a decision, and how one is shown."""

from __future__ import annotations

from memtool.inject import tiers
from memtool.inject.block import passage, write_passage
from memtool.inject.standing import standing
from memtool.inject.tiers import Grounds
from memtool.store.provenance import cite
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from memtool.inject.formats import Format
    from memtool.inject.tiers import Candidate, Taken
    from memtool.store.provenance import Origin, Witness
    from memtool.store.tree import Record, Tree
    from memtool.workspace import Workspace


class Item(Value):
    """One memory of the block. `text` is how it stands there, `tokens` what that costs.

    `scope` is `global` for a memory of the user's, else `project`.
    `commit` is None for what is in no commit, `score` for what was not searched, `drift` where
    it is not known.
    """

    id: str
    tier: str
    scope: str
    score: float | None
    tokens: int
    commit: str | None
    trust: str
    drift: float | None
    conflicts: tuple[str, ...]
    text: str


def grounds_of(ws: Workspace, tree: Tree, now: int, witness: Witness) -> Grounds:
    """Return what decides about the memories of a tree at one second."""
    least = ws.settings.text("inject.trust")
    weighed = standing(tree, witness, least, ws.settings.categories)
    scope = tiers.GLOBAL if ws.is_global else tiers.PROJECT
    return Grounds(tree, weighed, now, ws.settings.categories, least, scope)


def origins_of(
    witness: Witness, grounds: Grounds, candidates: Iterable[Candidate]
) -> dict[str, Origin]:
    """Ask git once about everything that may be shown."""
    records = {}
    for candidate in candidates:
        for record in (candidate.record, *grounds.beside(candidate.record)):
            records[record.path] = record
    return witness.origins(records.values())


def marks_of(record: Record, grounds: Grounds) -> tuple[str, ...]:
    """Return the warnings that a memory is shown with."""
    marks = grounds.standing.marks(record.id)
    if record.memory.status == "candidate":
        marks = ("[CANDIDATE] nobody has confirmed it", *marks)
    return marks


def written(
    record: Record,
    grounds: Grounds,
    origins: dict[str, Origin],
    form: Format,
    *,
    is_whole: bool,
    more: Sequence[str] = (),
) -> str:
    """Return a memory as it stands in the block; `more` are warnings beside its own."""
    origin = origins[record.path]
    marks = (*marks_of(record, grounds), *more)
    cited = cite(record.id, origin)
    scope = grounds.scope if grounds.scope != tiers.PROJECT else ""
    shown = passage(record.memory, cited, origin.trust, marks, is_whole=is_whole, scope=scope)
    return write_passage(shown, form)


def item_of(taken: Taken, grounds: Grounds, origins: dict[str, Origin]) -> Item:
    """Return a memory of the block with what is known about it."""
    candidate = taken.candidate
    origin = origins[candidate.record.path]
    return Item(
        id=candidate.record.id,
        tier=candidate.tier,
        scope=candidate.scope,
        score=tiers.rounded(candidate.score),
        tokens=taken.tokens,
        commit=origin.commit or None,
        trust=origin.trust,
        drift=None,
        conflicts=grounds.standing.conflicts(candidate.record.id),
        text=taken.text,
    )
