"""Sides: what the project's repository and the user's global one each have for a block.

Each side is searched and weighed by itself, with its own settings and its own trust. Of both
together one order is made, in which the global memories give way to what the project says.
"""

from __future__ import annotations

from memtool.commands import listing
from memtool.commands.once import Once, once
from memtool.commands.passages import grounds_of, marks_of, origins_of
from memtool.errors import MemtoolError
from memtool.inject import contrary, selection, tiers
from memtool.inject.tiers import Candidate, Grounds, Verdict
from memtool.search.answer_gate import MOST_SHOWN
from memtool.search.prompt import search_prose
from memtool.search.retrieve import Found, Scope
from memtool.value import Value
from memtool.workspace import Workspace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from memtool.store.provenance import Origin

HITS = 15
"""How many of the best hits are looked at, since some are shown already or do not fit."""


class Asked(Value):
    """What is asked of each side, and where the session is that asks."""

    project: Workspace
    prompt: str
    files: tuple[str, ...]
    session: str
    at: str | None
    as_of: str | None
    explain: bool


class Side(Value):
    """What one repository has for a block, and what decides about it.

    `pinned` and `hits` may be shown; `yielded` are verdicts about what gave way to the other side.
    """

    grounds: Grounds
    origins: dict[str, Origin]
    pinned: list[Candidate]
    hits: list[Candidate]
    found: Found
    most: int
    once: Once
    freshness: str
    yielded: list[Verdict]

    @property
    def candidates(self) -> list[Candidate]:
        """Everything that may be shown."""
        return [*self.pinned, *self.hits]


def sides_of(asked: Asked, *, with_global: bool, exact: bool) -> list[Side]:
    """Return what there is for an answer: the project's side, and the global one if there is one.

    Where one of them cannot be had, the other stands alone: a project may have no memories yet,
    and for global ones that cannot be read there is a note.
    """
    ws = asked.project
    other = ws.beside if with_global and ws.settings.setting("inject.global") else None
    try:
        own = side_of(ws, asked, exact=exact)
    except MemtoolError as error:
        if other is None or error.code != "no-memory":
            raise
        return [side_of(other, asked, exact=exact)]
    if other is None:
        return [own]
    try:
        side = side_of(other, asked, exact=exact)
    except MemtoolError as error:
        ws.notes.append(f"global memories are passed over: {error}")
        return [own]
    from memtool.inject import worlds  # most users have none

    ws.notes.extend(f"global memories: {note}" for note in other.notes)
    other.notes.clear()  # they are told
    speaking = [one for one in own.candidates if not own.grounds.objection(one.record.memory)]
    pinned, yielded = worlds.yielding(speaking, side.pinned)
    hits, more = worlds.yielding(speaking, side.hits)
    return [own, side.replace(pinned=pinned, hits=hits, yielded=yielded + more)]


def side_of(ws: Workspace, asked: Asked, *, exact: bool) -> Side:
    """Look at what one repository has for an answer."""
    tree = ws.catalog(asked.at, asked.as_of, exact=exact)
    witness = ws.witness(tree)
    grounds = grounds_of(ws, tree, ws.moment_of(asked.as_of), witness)
    pinned = tiers.pinned(grounds)
    scope = _scope(ws, grounds)
    found = _retrieved(scope, asked.prompt, asked.files, explain=asked.explain)
    seen = [one.record for one in pinned] + [hit.record for hit in found.hits]
    if not exact and not tree.verify(seen):
        # A file was rewritten in place, which only a check of every file is sure to see.
        return side_of(ws, asked, exact=True)
    ws.notes.extend(found.notes)
    hits = [
        Candidate(
            hit.record, tiers.RETRIEVAL, hit.score, hit.factors,
            related=hit.related, scope=grounds.scope,
        )
        for hit in found.hits
    ]  # fmt: skip
    pinned_most = ws.settings.count("inject.pinned_most")
    at_hand = [one.record.memory for one in (*pinned[:pinned_most], *hits)]
    grounds = grounds.replace(standing=contrary.known(grounds.standing, at_hand))
    pinned, hits = _against(pinned, grounds), _against(hits, grounds)
    return Side(
        grounds=grounds,
        origins=origins_of(witness, grounds, [*pinned, *hits]),
        pinned=pinned,
        hits=hits,
        found=found,
        most=MOST_SHOWN,
        once=once(
            asked.project, asked.session, lambda record: marks_of(record, grounds),
            is_replay=asked.at is not None or asked.as_of is not None,
        ),
        freshness=tree.freshness,
        yielded=[],
    )  # fmt: skip


def _against(candidates: Iterable[Candidate], grounds: Grounds) -> list[Candidate]:
    """Return candidates that know what they contradict."""
    found = ((one, grounds.standing.conflicts(one.record.id)) for one in candidates)
    return [one.replace(against=ids) if ids else one for one, ids in found]


def choose(
    sides: Iterable[Side], tier: str, threshold: float = 0.0, shown: Sequence[Candidate] = ()
) -> tuple[list[Candidate], list[Verdict]]:
    """Choose from each side by itself, and put what they have into one order."""
    chosen: list[Candidate] = []
    verdicts: list[Verdict] = []
    for side in sides:
        candidates = side.pinned if tier == tiers.PINNED else side.hits
        kept, dropped = selection.choose(
            candidates, side.grounds, side.origins, threshold, shown, side.most
        )
        gone = {one.id for one in side.yielded}  # not even beside what it contradicts
        fresh, seen_before = side.once.fresh([one for one in kept if one.record.id not in gone])
        verdicts += dropped + seen_before
        if not (chosen and fresh):
            chosen = chosen or fresh
            continue
        from memtool.inject import worlds

        chosen, below = worlds.joined(chosen, fresh, threshold)
        verdicts += below
    return chosen, verdicts


def replaced(side: Side) -> list[Verdict]:
    """Return verdicts about what the hits replace: it would have answered too."""
    grounds = side.grounds
    replaced = grounds.standing.lineage.supersedes
    olds = {old for hit in side.hits for old in replaced.get(hit.record.id, ())}
    records = [grounds.tree.by_id[old] for old in sorted(olds) if old in grounds.tree.by_id]
    return [
        tiers.verdict(
            Candidate(record, tiers.RETRIEVAL, scope=grounds.scope),
            grounds.objection(record.memory),
            is_taken=False,
        )
        for record in records
    ]


def missed(side: Side) -> list[Verdict]:
    """Return verdicts about what would have been found but for one reason."""
    return [
        Verdict(one.record.id, tiers.RETRIEVAL, is_taken=False, reason=one.reason,
                scope=side.grounds.scope)
        for one in side.found.missed
    ]  # fmt: skip


def _scope(ws: Workspace, grounds: Grounds) -> Scope:
    """Return what is searched. It, too, must find what a file has not the trust to replace."""
    found = listing.scope(ws, grounds.tree, grounds.now)
    return listing.timed(ws, found).replace(lineage=grounds.standing.lineage)


def _retrieved(scope: Scope, prompt: str, files: tuple[str, ...], *, explain: bool) -> Found:
    """Return what answers the prompt; where nothing does, what governs the files."""
    found = Found((), 0)
    if prompt.strip():
        found = search_prose(scope, prompt, files, HITS, explain=explain)
    if files and not found.hits:
        near = search_prose(scope, "", files, HITS)
        found = near.replace(notes=found.notes or near.notes, missed=found.missed)
    return found
