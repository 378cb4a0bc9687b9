"""Gathering: what the project's and the user's repository know about a question.

What holds in all projects gives way to what a project says itself: where both say the same, or
contradict each other, only the project speaks. Otherwise they stand in one order, the project
first where nothing else decides.

Each side is searched and weighed by itself, with its own settings and its own trust. Of both
together one order is made, in which the global memories give way to what the project says.
"""

from __future__ import annotations

from memtool.errors import MemtoolError
from memtool.index import index
from memtool.index.reader import EXACT
from memtool.inject import candidates, select
from memtool.inject import candidates as candidate_list
from memtool.inject.block import (
    PREAMBLE,
    Injected,
    frame_bytes,
    passage,
    write_block,
    write_passage,
)
from memtool.inject.budget import BYTES_PER_TOKEN
from memtool.inject.candidates import (
    PINNED,
    RETRIEVAL,
    Candidate,
    CandidateVerdict,
    Eligibility,
    fill,
    verdict,
)
from memtool.inject.effective_lineage import standing
from memtool.inject.select import Wording
from memtool.inject.session_seen import Once, once
from memtool.search import answer_gate
from memtool.search.answer_gate import MOST_SHOWN
from memtool.search.prompt import search_prose
from memtool.search.retrieve import Found, Scope
from memtool.search.scope import scope_of, timed
from memtool.store.context import Context
from memtool.store.provenance import cite
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from memtool.inject.block import BlockFormat
    from memtool.inject.budget import Budget
    from memtool.inject.candidates import BlockEntry
    from memtool.store.provenance import Origin, Witness
    from memtool.store.tree import Record, Tree

NOTE = (
    "\nThose of scope global hold in all projects of this user: `memtool --global VERB` reads and "
    "corrects them."
)
"""Stands below the preamble of a block in which there is one."""
MAX_PROMPT = 1 << 20
"""Bytes of a prompt that are looked at; nobody asks with more."""


def yielding(
    own: Sequence[Candidate], others: Sequence[Candidate]
) -> tuple[list[Candidate], list[CandidateVerdict]]:
    """Return the global candidates that nothing of the project speaks for or against.

    `own` are those of the project, whether there is room for them or not.
    """
    against = _objections(own, others)
    kept = [one for number, one in enumerate(others) if number not in against]
    dropped = [
        verdict(others[number], reason, is_taken=False)
        for number, reason in sorted(against.items())
    ]
    return kept, dropped


def _objections(own: Sequence[Candidate], others: Sequence[Candidate]) -> dict[int, str]:
    """Return why some global candidates are left out, by their place in the list."""
    if not own or not others:
        return {}
    ours = [one.record.memory for one in own]
    theirs = [one.record.memory for one in others]
    found: dict[int, str] = {}
    for one, other in select.clashes([*ours, *theirs]):
        if one < len(ours) <= other:
            found.setdefault(other - len(ours), f"the project's {ours[one].id} says otherwise")
    said = [(memory.id, Wording(memory)) for memory in ours]
    for number, memory in enumerate(theirs):
        wording = Wording(memory)
        same = next(
            (id_ for id_, own in said if own.begin == wording.begin and own.words == wording.words),
            "",
        ) or next((id_ for id_, own in said if select.says_same(wording, own)), "")
        if same:
            found[number] = f"the project's {same} says the same"
    return found


def joined(
    own: Sequence[Candidate], others: Sequence[Candidate], threshold: float
) -> tuple[list[Candidate], list[CandidateVerdict]]:
    """Return both in one order, by weight and then the project's first.

    The order among those of one side stays, and what stands beside another for contradicting it
    stays with that one. What scores below a share of the best of both is dropped, as each side
    did by itself.
    """
    mine, theirs = _groups(own), _groups(others)
    groups: list[list[Candidate]] = []
    while mine and theirs:
        side = mine if _weight(mine[-1][0]) >= _weight(theirs[-1][0]) else theirs
        groups.append(side.pop())
    groups += reversed(mine or theirs)
    least = threshold * max((group[0].score or 0.0 for group in groups), default=0.0)
    kept: list[Candidate] = []
    dropped: list[CandidateVerdict] = []
    for group in groups:
        first = group[0]
        if first.score is None or first.related or first.score >= least:
            kept += group
        else:
            reason = f"below the threshold {least:.3f}, {threshold:g} of the best score"
            dropped += [verdict(one, reason, is_taken=False) for one in group]
    return kept, dropped


def _weight(candidate: Candidate) -> float:
    """Return the score of what was found, and the importance of what is pinned."""
    return candidate.record.memory.importance if candidate.score is None else candidate.score


def _groups(candidates: Sequence[Candidate]) -> list[list[Candidate]]:
    """Return each candidate with those that were put beside it, the last ones first."""
    groups: list[list[Candidate]] = []
    for candidate in candidates:
        if candidate.beside and groups:
            groups[-1].append(candidate)
        else:
            groups.append([candidate])
    return groups[::-1]


class BlockItem(Value):
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


def grounds_of(context: Context, tree: Tree, now: int, witness: Witness) -> Eligibility:
    """Return what decides about the memories of a tree at one second."""
    least = context.settings.text("inject.trust")
    weighed = standing(tree, witness, least, context.settings.categories)
    scope = candidates.GLOBAL if context.is_global else candidates.PROJECT
    return Eligibility(tree, weighed, now, context.settings.categories, least, scope)


def origins_of(
    witness: Witness, grounds: Eligibility, candidates: Iterable[Candidate]
) -> dict[str, Origin]:
    """Ask git once about everything that may be shown."""
    records = {}
    for candidate in candidates:
        for record in (candidate.record, *grounds.beside(candidate.record)):
            records[record.path] = record
    return witness.origins(records.values())


def marks_of(record: Record, grounds: Eligibility) -> tuple[str, ...]:
    """Return the warnings that a memory is shown with."""
    marks = grounds.standing.marks(record.id)
    if record.memory.status == "candidate":
        marks = ("[CANDIDATE] nobody has confirmed it", *marks)
    return marks


def written(
    record: Record,
    grounds: Eligibility,
    origins: dict[str, Origin],
    form: BlockFormat,
    *,
    is_whole: bool,
    more: Sequence[str] = (),
) -> str:
    """Return a memory as it stands in the block; `more` are warnings beside its own."""
    origin = origins[record.path]
    marks = (*marks_of(record, grounds), *more)
    cited = cite(record.id, origin)
    scope = grounds.scope if grounds.scope != candidates.PROJECT else ""
    shown = passage(record.memory, cited, origin.trust, marks, is_whole=is_whole, scope=scope)
    return write_passage(shown, form)


def item_of(taken: BlockEntry, grounds: Eligibility, origins: dict[str, Origin]) -> BlockItem:
    """Return a memory of the block with what is known about it."""
    candidate = taken.candidate
    origin = origins[candidate.record.path]
    return BlockItem(
        id=candidate.record.id,
        tier=candidate.tier,
        scope=candidate.scope,
        score=candidates.rounded(candidate.score),
        tokens=taken.tokens,
        commit=origin.commit or None,
        trust=origin.trust,
        drift=None,
        conflicts=grounds.standing.conflicts(candidate.record.id),
        text=taken.text,
    )


def items_of(taken: Iterable[BlockEntry], sides: Iterable[Side]) -> tuple[BlockItem, ...]:
    """Return the memories of a block, each with what its own side knows about it."""
    by_scope = {side.grounds.scope: side for side in sides}
    found = ((one, by_scope[one.candidate.scope]) for one in taken)
    return tuple(item_of(one, side.grounds, side.origins) for one, side in found)


def versions_of(taken: Iterable[BlockEntry], sides: Iterable[Side]) -> tuple[tuple[str, str], ...]:
    """Return what the session sees of the memories of a block, side by side."""
    entries = list(taken)
    found = [
        side.once.versions(one for one in entries if one.candidate.scope == side.grounds.scope)
        for side in sides
    ]
    return sum(found, ())


def preamble_of(candidates: Iterable[Candidate]) -> str:
    """Return what stands above memories, with a note where one of them is global."""
    is_own = all(one.scope == candidate_list.PROJECT for one in candidates)
    return PREAMBLE if is_own else PREAMBLE + NOTE


HITS = 15
"""How many of the best hits are looked at, since some are shown already or do not fit."""


class GatherRequest(Value):
    """What is asked of each side, and where the session is that asks."""

    project: Context
    prompt: str
    files: tuple[str, ...]
    session: str = ""
    at: str | None = None
    as_of: str | None = None
    explain: bool = False


class Side(Value):
    """What one repository has for a block, and what decides about it.

    `pinned` and `hits` may be shown; `yielded` are verdicts about what gave way to the other side.
    """

    grounds: Eligibility
    origins: dict[str, Origin]
    pinned: list[Candidate]
    hits: list[Candidate]
    found: Found
    most: int
    once: Once
    freshness: str
    yielded: list[CandidateVerdict]

    @property
    def candidates(self) -> list[Candidate]:
        """Everything that may be shown."""
        return [*self.pinned, *self.hits]


def sides_of(asked: GatherRequest, *, with_global: bool, exact: bool) -> list[Side]:
    """Return what there is for an answer: the project's side, and the global one if there is one.

    Where one of them cannot be had, the other stands alone: a project may have no memories yet,
    and for global ones that cannot be read there is a note.
    """
    context = asked.project
    other = context.beside if with_global and context.settings.setting("inject.global") else None
    try:
        own = side_of(context, asked, exact=exact)
    except MemtoolError as error:
        if other is None or error.code != "no-memory":
            raise
        return [side_of(other, asked, exact=exact)]
    if other is None:
        return [own]
    try:
        side = side_of(other, asked, exact=exact)
    except MemtoolError as error:
        context.notes.append(f"global memories are passed over: {error}")
        return [own]

    context.notes.extend(f"global memories: {note}" for note in other.notes)
    other.notes.clear()  # they are told
    speaking = [one for one in own.candidates if not own.grounds.objection(one.record.memory)]
    pinned, yielded = yielding(speaking, side.pinned)
    hits, more = yielding(speaking, side.hits)
    return [own, side.replace(pinned=pinned, hits=hits, yielded=yielded + more)]


def side_of(context: Context, asked: GatherRequest, *, exact: bool) -> Side:
    """Look at what one repository has for an answer."""
    tree = index.open(context, asked.at, asked.as_of, exact=exact)
    witness = context.witness(tree)
    grounds = grounds_of(context, tree, context.moment_of(asked.as_of), witness)
    pinned = candidate_list.pinned(grounds)
    scope = _scope(context, grounds)
    found = _retrieved(scope, asked.prompt, asked.files, explain=asked.explain)
    seen = [one.record for one in pinned] + [hit.record for hit in found.hits]
    if not exact and not tree.verify(seen):
        # A file was rewritten in place, which only a check of every file is sure to see.
        return side_of(context, asked, exact=True)
    context.notes.extend(found.notes)
    hits = [
        Candidate(
            hit.record, candidate_list.RETRIEVAL, hit.score, hit.factors,
            related=hit.related, scope=grounds.scope,
        )
        for hit in found.hits
    ]  # fmt: skip
    pinned_most = context.settings.count("inject.pinned_most")
    at_hand = [one.record.memory for one in (*pinned[:pinned_most], *hits)]
    grounds = grounds.replace(standing=select.known(grounds.standing, at_hand))
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


def _against(candidates: Iterable[Candidate], grounds: Eligibility) -> list[Candidate]:
    """Return candidates that know what they contradict."""
    found = ((one, grounds.standing.conflicts(one.record.id)) for one in candidates)
    return [one.replace(against=ids) if ids else one for one, ids in found]


def choose(
    sides: Iterable[Side], tier: str, threshold: float = 0.0, shown: Sequence[Candidate] = ()
) -> tuple[list[Candidate], list[CandidateVerdict]]:
    """Choose from each side by itself, and put what they have into one order."""
    chosen: list[Candidate] = []
    verdicts: list[CandidateVerdict] = []
    for side in sides:
        candidates = side.pinned if tier == candidate_list.PINNED else side.hits
        kept, dropped = select.choose(
            candidates, side.grounds, side.origins, threshold, shown, side.most
        )
        gone = {one.id for one in side.yielded}  # not even beside what it contradicts
        fresh, seen_before = side.once.fresh([one for one in kept if one.record.id not in gone])
        verdicts += dropped + seen_before
        if not (chosen and fresh):
            chosen = chosen or fresh
            continue

        chosen, below = joined(chosen, fresh, threshold)
        verdicts += below
    return chosen, verdicts


def replaced(side: Side) -> list[CandidateVerdict]:
    """Return verdicts about what the hits replace: it would have answered too."""
    grounds = side.grounds
    replaced = grounds.standing.lineage.supersedes
    olds = {old for hit in side.hits for old in replaced.get(hit.record.id, ())}
    records = [grounds.tree.by_id[old] for old in sorted(olds) if old in grounds.tree.by_id]
    return [
        candidate_list.verdict(
            Candidate(record, candidate_list.RETRIEVAL, scope=grounds.scope),
            grounds.objection(record.memory),
            is_taken=False,
        )
        for record in records
    ]


def missed(side: Side) -> list[CandidateVerdict]:
    """Return verdicts about what would have been found but for one reason."""
    return [
        CandidateVerdict(one.record.id, candidate_list.RETRIEVAL, is_taken=False, reason=one.reason,
                scope=side.grounds.scope)
        for one in side.found.missed
    ]  # fmt: skip


def _scope(context: Context, grounds: Eligibility) -> Scope:
    """Return what is searched. It, too, must find what a file has not the trust to replace."""
    found = scope_of(context, grounds.tree, grounds.now)
    return timed(context, found).replace(lineage=grounds.standing.lineage)


def _retrieved(scope: Scope, prompt: str, files: tuple[str, ...], *, explain: bool) -> Found:
    """Return what answers the prompt; where nothing does, what governs the files."""
    found = Found((), 0)
    if prompt.strip():
        found = search_prose(scope, prompt, files, HITS, explain=explain)
    if files and not found.hits:
        near = search_prose(scope, "", files, HITS)
        found = near.replace(notes=found.notes or near.notes, missed=found.missed)
    return found


def answer(
    asked: GatherRequest, form: BlockFormat, shares: Budget, *, exact: bool, no_global: bool
) -> Injected:
    """Return the block for a prompt and files: pinned memories first, then what search found.

    `shares` bounds the whole text. Global memories are left out for a revision.
    """
    context = asked.project
    sides = sides_of(asked, with_global=asked.at is None and not no_global, exact=exact)
    by_scope = {side.grounds.scope: side for side in sides}

    def text_of(candidate: Candidate, is_whole: bool) -> str:  # noqa: FBT001  # one of two texts
        side = by_scope[candidate.scope]
        return written(candidate.record, side.grounds, side.origins, form, is_whole=is_whole)

    preamble = preamble_of(candidate for side in sides for candidate in side.candidates)
    room = shares.total * BYTES_PER_TOKEN - frame_bytes(form, preamble)
    chosen, verdicts = choose(sides, PINNED)
    count = context.settings.count
    taken, reasons = fill(chosen, text_of, count("inject.pinned_most"), shares.pinned, room)
    verdicts += reasons
    shares = shares.after_pinned(sum(one.tokens for one in taken))
    room -= sum(len(one.text.encode()) for one in taken)
    threshold = answer_gate.preset(context.settings).threshold
    chosen, dropped = choose(sides, RETRIEVAL, threshold, [one.candidate for one in taken])
    more, reasons = fill(chosen, text_of, count("inject.retrieval_most"), shares.retrieval, room)
    taken += more
    verdicts += dropped + reasons
    for side in sides:
        verdicts += side.yielded + replaced(side) + missed(side)
    preamble = preamble_of(one.candidate for one in taken)
    return Injected(
        budget=shares,
        items=items_of(taken, sides),
        text=write_block([one.text for one in taken], form, preamble),
        format=form.name,
        session=asked.session,
        freshness=next((side.freshness for side in sides if side.freshness != EXACT), EXACT),
        explain=None,
        prompt=asked.prompt,
        verdicts=tuple(verdicts),
        versions=versions_of(taken, sides),
    )
