"""Gathering: what the project's and the user's repository know about a question.

Each side is searched and weighed by itself, with its own settings and its own trust. Of both
together one order is made, in which the global memories give way to what the project says: where
both say the same, or may contradict each other, only the project speaks. Otherwise they are in one
order, the project first where nothing else decides.
"""

from __future__ import annotations

from memtool.errors import MemtoolError
from memtool.index import index
from memtool.index.reader import EXACT
from memtool.inject import candidates as candidate_list
from memtool.inject import changed_here, file_rules, select
from memtool.inject.block import (
    PREAMBLE,
    REMINDER,
    BlockItem,
    Injected,
    escaped,
    frame_bytes,
    passage,
    write_block,
    write_passage,
)
from memtool.inject.candidates import (
    BYTES_PER_TOKEN,
    GLOBAL,
    GOVERNING,
    PINNED,
    PROJECT,
    RETRIEVAL,
    SUMMARY,
    Candidate,
    CandidateVerdict,
    Cap,
    Eligibility,
    fill,
    plan,
)
from memtool.inject.effective_lineage import RANK, standing
from memtool.inject.file_rules import MOST_RULE_TOKENS, MOST_RULES
from memtool.inject.select import no_threshold
from memtool.inject.session_seen import SILENCED, Once, notice, once
from memtool.memory.drift import BROKEN
from memtool.memory.trust import TRUST_LEVELS
from memtool.search import answer_gate
from memtool.search.answer_gate import search_prose
from memtool.search.retrieve import Found
from memtool.search.scope import drift_in, hurried, scope_of, trust_in
from memtool.store.provenance import cite
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from memtool.index.reader import IndexReader
    from memtool.inject.block import BlockFormat
    from memtool.inject.candidates import BlockEntry, Budget
    from memtool.inject.changed_here import LevelView
    from memtool.inject.fleet_tier import FleetTier, ForeignMemory
    from memtool.inject.select import Chosen, Threshold
    from memtool.memory.trust import Origin
    from memtool.search.retrieve import Scope
    from memtool.store.context import Context
    from memtool.store.provenance import Witness

    Write = Callable[[Candidate, bool], str]

    Fleet = Callable[[str, IndexReader], Sequence[ForeignMemory]]
    """Gives what other repositories may answer to a prompt, the best first, by how rare words are
    in the index of the project."""

NOTE = (
    "\nThose of scope global hold in all projects of this user: `memtool --global VERB` reads and "
    "corrects them."
)
"""Follows the preamble of a block in which there is one, once in a session."""
MOST_DRIFTED = 2
"""Broken memories that an answer shows with their marks, beside those that are pinned."""
MAX_PROMPT = 1 << 20
"""Bytes of a prompt that are looked at; nobody asks with more."""


class GatherRequest(Value):
    """What is asked, of which project, and in which session.

    `files` are paths from the top. `exact` checks every file for a change, `no_global` leaves out
    the user's memories, `explain` also finds out what was missed. `shown` are the versions that the
    session is shown already in the same answer. `fleet` asks other repositories about a prompt,
    None where the user does not want that.
    """

    context: Context
    prompt: str = ""
    files: tuple[str, ...] = ()
    session: str = ""
    at: str | None = None
    as_of: str | None = None
    explain: bool = False
    exact: bool = False
    no_global: bool = False
    shown: tuple[tuple[str, str], ...] = ()
    fleet: Fleet | None = None


class Side(Value):
    """What one repository has for a block, and what decides about it.

    `origins` is by path. `pinned`, `rules` and `hits` may be shown, rules being what governs the
    files that are named; `yielded` are verdicts about what gave way to the other side. `silenced`
    are the ids of what would answer as the trusted ref has it, and not as it was changed here,
    which `view` knows.
    """

    grounds: Eligibility
    view: LevelView
    witness: Witness
    silenced: tuple[str, ...]
    origins: dict[str, Origin]
    pinned: list[Candidate]
    rules: list[Candidate]
    hits: list[Candidate]
    found: Found
    once: Once
    freshness: str
    yielded: list[CandidateVerdict]

    @property
    def candidates(self) -> list[Candidate]:
        """Everything that may be shown."""
        return [*self.pinned, *self.rules, *self.hits]

    @property
    def unsaid(self) -> tuple[str, ...]:
        """What is silenced, and the session does not know so."""
        return tuple(id_ for id_ in self.silenced if (id_, SILENCED) not in self.once.seen)


def answer(asked: GatherRequest, form: BlockFormat, shares: Budget) -> Injected:
    """Return the block for a prompt and files.

    Pinned memories come first, then the decisions and warnings that govern a file that is named,
    then what search found, then what other repositories say. `shares` bounds the whole text. Global
    memories are left out for a revision, and so is the fleet.

    Raises:
        MemtoolError: there is no memory directory, or no such revision or time.
    """
    context = asked.context
    named = file_rules.inside(context, file_rules.named_files(context, asked.prompt, at=asked.at))
    asked = asked.replace(files=tuple(dict.fromkeys([*asked.files, *named])))
    sides = sides_of(asked)
    write = writer(sides, form)
    preamble = preamble_of(sides, (one for side in sides for one in side.candidates))
    room = shares.total * BYTES_PER_TOKEN - frame_bytes(form, preamble)
    last = fitting(silence_of(sides), form, room)
    room -= len("".join(last).encode())
    settings = context.strict_settings
    few, drifted = global_cap(sides), drifted_cap(sides)
    taken, verdicts, left_out = _pinned(asked, sides, write, shares.pinned, room, few)
    verdicts += left_out
    used = sum(one.tokens for one in taken)
    shares = shares.to_retrieval(used)
    room -= sum(len(one.text.encode()) for one in taken)
    chosen, dropped = choose(sides, GOVERNING, shown=[one.candidate for one in taken])
    share = min(MOST_RULE_TOKENS, shares.retrieval)
    caps = [few, drifted, *trust_caps(sides, chosen, MOST_RULES, share)]
    ruling, reasons = fill(chosen, write, MOST_RULES, share, room, caps)
    taken += ruling
    verdicts += dropped + reasons
    ruled = sum(one.tokens for one in ruling)
    room -= sum(len(one.text.encode()) for one in ruling)
    threshold = answer_gate.threshold(settings)
    chosen, dropped = choose(sides, RETRIEVAL, threshold, [one.candidate for one in taken])
    chosen = [one.replace(tier=SUMMARY) if select.is_digest(one) else one for one in chosen]
    most = settings.count("inject.retrieval_most")
    left = shares.retrieval - ruled
    caps = [few, drifted, *trust_caps(sides, chosen, most, left)]
    more, reasons = fill(chosen, write, most, left, room, caps)
    summed = sum(one.tokens for one in more if one.candidate.tier == SUMMARY)
    shares = shares.to_retrieval(used, summed)
    taken += more
    verdicts += dropped + reasons
    for side in sides:
        verdicts += side.yielded + _not_found(side)
    room -= sum(len(one.text.encode()) for one in more)
    texts = [*(one.text for one in taken), *last, *fitting(drift_of(drifted), form, room)]
    preamble = preamble_of(sides, (one.candidate for one in taken))
    beside = None
    if asked.fleet is not None and asked.prompt.strip() and (asked.at, asked.as_of) == (None, None):
        shares, beside = _beside(asked, sides, form, shares, texts)
        texts += beside.texts
        preamble += beside.preamble
    text = write_block(texts, form, preamble)
    answered = injected(asked, sides, shares, form, text, taken, verdicts, is_told=bool(last))
    return answered if beside is None else answered.replace(
        items=answered.items + beside.items,
        verdicts=answered.verdicts + beside.verdicts,
        versions=answered.versions + beside.versions,
    )  # fmt: skip


def _beside(
    asked: GatherRequest,
    sides: Sequence[Side],
    form: BlockFormat,
    shares: Budget,
    texts: Sequence[str],
) -> tuple[Budget, FleetTier]:
    """Return the shares with that of the fleet, and what it says beside the local texts."""
    from memtool.inject import fleet_tier  # off unless the user wants it

    assert asked.fleet is not None
    own = sides[0]
    refused = fleet_tier.objection(own.grounds)
    if refused:
        asked.context.notes.append(refused)
        return shares, fleet_tier.FleetTier()
    frame = frame_bytes(
        form, preamble_of(sides, (one for side in sides for one in side.candidates))
    )
    room = shares.total * BYTES_PER_TOKEN - frame - len("".join(texts).encode())
    share = min(shares.total * fleet_tier.PERCENT // 100, max(0, room) // BYTES_PER_TOKEN)
    speaking = [
        one for side in sides for one in side.candidates if not side.grounds.refusal(one.record)
    ]
    local = fleet_tier.LocalAnswer(
        own.grounds, speaking, own.once, asked.context.strict_settings, form
    )
    prompt = asked.prompt[: fleet_tier.MOST_PROMPT]
    found = asked.fleet(prompt, own.grounds.index) if share else ()
    return shares.replace(fleet=share), fleet_tier.tier(prompt, found, local, share, room)


def _pinned(
    asked: GatherRequest, sides: Sequence[Side], write: Write, share: int, room: int, few: Cap
) -> tuple[list[BlockEntry], list[CandidateVerdict], list[CandidateVerdict]]:
    """Return what is in the pinned tier, what is not worth it, and what became of the rest.

    The user's global pins have places and tokens of their own: a project that fills its tier
    must not silence them.
    """
    chosen, dropped = choose(sides[:1], PINNED)
    most = asked.context.strict_settings.count("inject.pinned_most")
    caps = trust_caps(sides, chosen, most, share)
    taken, verdicts = fill(chosen, write, most, share, room, caps)
    room -= sum(len(one.text.encode()) for one in taken)
    chosen, yielded = choose(sides[1:], PINNED, shown=[one.candidate for one in taken])
    more, reasons = fill(chosen, write, few.places, share, room, [few])
    return taken + more, dropped + yielded, verdicts + reasons


def crowded_out(asked: GatherRequest, form: BlockFormat) -> list[CandidateVerdict]:
    """Return the pinned memories for which there is no room in the tier, with the reasons.

    Raises:
        MemtoolError: as `answer` does.
    """
    sides = sides_of(asked)
    shares = plan(asked.context.strict_settings, asked.context.budget_tokens, None)
    preamble = preamble_of(sides, (one for side in sides for one in side.candidates))
    room = shares.total * BYTES_PER_TOKEN - frame_bytes(form, preamble)
    few = global_cap(sides)
    _taken, _dropped, verdicts = _pinned(
        asked, sides, writer(sides, form), shares.pinned, room, few
    )
    return [one for one in verdicts if not one.is_taken]


def governing(asked: GatherRequest, form: BlockFormat, budget: int) -> Injected:
    """Return what governs files that were changed, the most important first; often nothing.

    `budget` is a number of tokens.

    Raises:
        MemtoolError: there is no memory directory.
    """
    context = asked.context
    side = side_of(context, asked.replace(files=()))
    grounds, tree = side.grounds, side.grounds.tree
    found = file_rules.rules_over(context, grounds, asked.files)
    if not asked.exact and not tree.verify(found):
        return governing(asked.replace(exact=True), form, budget)
    rules = [Candidate(one, GOVERNING, scope=grounds.scope) for one in found]
    grounds = grounds.with_contradictions(found)
    side = side.replace(grounds=grounds)
    side = side.replace(origins=origins_of(side.witness, grounds, rules), silenced=())
    if side.view.silenced is not None:
        there = grounds.replace(tree=side.view.silenced)
        held = file_rules.rules_over(context, there, asked.files)
        side = side.replace(silenced=changed_here.silenced(side.view, held))
    fresh, verdicts = choose_from(side, rules)
    most = min(budget, MOST_RULE_TOKENS)
    preamble = preamble_of([side], rules)
    room = most * BYTES_PER_TOKEN - frame_bytes(form, preamble)
    last = fitting(silence_of([side]), form, room)
    room -= len("".join(last).encode())
    taken, reasons = fill(fresh, writer([side], form), MOST_RULES, most, room)
    text = write_block([*(one.text for one in taken), *last], form, preamble)
    shares = plan(context.strict_settings, most, None)
    return injected(asked, [side], shares, form, text, taken, verdicts + reasons,
                    is_told=bool(last))  # fmt: skip


def injected(
    asked: GatherRequest,
    sides: Sequence[Side],
    shares: Budget,
    form: BlockFormat,
    text: str,
    taken: Sequence[BlockEntry],
    verdicts: Iterable[CandidateVerdict],
    *,
    is_told: bool,
) -> Injected:
    """Return a block with what each side knows about the memories in it.

    `is_told` says whether it also names what was taken out of use here.
    """
    by_scope = {side.grounds.scope: side for side in sides}
    versions: list[tuple[str, str]] = []
    if sides[0].once.session and text:
        versions += map(notice, notices(sides, (one.candidate for one in taken)))
    for scope, side in by_scope.items():
        versions += side.once.versions(one for one in taken if one.candidate.scope == scope)
        versions += [(id_, SILENCED) for id_ in side.unsaid if is_told and side.once.session]
    return Injected(
        budget=shares,
        items=tuple(_item(one, by_scope[one.candidate.scope]) for one in taken),
        text=text,
        format=form.name,
        session=asked.session,
        freshness=next((side.freshness for side in sides if side.freshness != EXACT), EXACT),
        expired=sum(side.found.expired for side in sides),
        silenced=tuple(id_ for side in sides for id_ in side.silenced),
        prompt=asked.prompt,
        verdicts=tuple(verdicts),
        versions=tuple(versions),
        degraded=any(side.found.is_degraded for side in sides),
    )


def _item(taken: BlockEntry, side: Side) -> BlockItem:
    candidate = taken.candidate
    origin = side.origins[candidate.record.path]
    drift = side.grounds.drift_of(candidate.record)
    return BlockItem(
        id=candidate.record.id,
        tier=candidate.tier,
        scope=candidate.scope,
        score=candidate_list.rounded(candidate.score),
        tokens=taken.tokens,
        commit=origin.commit or None,
        trust=origin.trust,
        drift=None if drift is None else drift.share,
        drift_level=None if drift is None else drift.level,
        conflicts=side.grounds.conflicts(candidate.record.id),
        text=taken.text,
        unproven=side.grounds.unproven(candidate.record),
    )


def sides_of(asked: GatherRequest) -> list[Side]:
    """Return what there is for an answer: the project's side, and the global one if there is one.

    Where one of them cannot be read, the other is enough: a project may have no memories yet,
    and for global ones that cannot be read there is a note.

    Raises:
        MemtoolError: as `index.open` does for the project.
    """
    context, other = asked.context, None
    if asked.at is None and not asked.no_global and context.settings.setting("inject.global"):
        other = context.beside
    try:
        own = side_of(context, asked)
    except MemtoolError as error:
        if other is None or error.code != "no-memory":
            raise
        return [side_of(other, asked)]
    if other is None:
        return [own]
    try:
        side = side_of(other, asked)
    except MemtoolError as error:
        context.notes.append(f"global memories are passed over: {error}")
        return [own]

    context.notes.extend(f"global memories: {note}" for note in other.notes)
    other.notes.clear()  # they are reported
    speaking = [one for one in own.candidates if not own.grounds.refusal(one.record)]
    pinned, yielded = select.yielding(speaking, side.pinned)
    hits, more = select.yielding(speaking, side.hits)
    return [own, side.replace(pinned=pinned, hits=hits, yielded=yielded + more)]


def side_of(context: Context, asked: GatherRequest) -> Side:
    """Look at what one repository has for an answer. Raises MemtoolError as `index.open` does."""
    tree = index.open(context, asked.at, asked.as_of, exact=asked.exact)
    witness = context.witness(tree)
    settings = context.strict_settings
    least, categories = settings.text("inject.trust"), settings.categories
    has_trusted_ref = witness.basis is not None and bool(witness.basis.trusted_at)
    best = TRUST_LEVELS[2 if has_trusted_ref else 1]
    if context.is_global:  # the user's own, which seldom has a remote that could vouch for more
        least = min(least, best, key=RANK.__getitem__)
    now = context.moment_of(asked.as_of)
    is_replay = asked.at is not None or asked.as_of is not None
    view = changed_here.view_of(context, tree, witness, "" if is_replay else least, now)
    tree, witness = view.tree, view.witness
    weighed = standing(tree, witness, least, now, categories, context.trust_rules)
    scope = GLOBAL if context.is_global else PROJECT
    gates = candidate_list.gates_of(settings)
    trust = trust_in(tree, lambda: witness)
    drift = None if context.is_global else drift_in(tree, lambda: witness)
    grounds = Eligibility(tree, weighed, now, categories, least, scope, gates, trust, view.marks,
                          settings.private_labels, drift)  # fmt: skip
    pinned = candidate_list.pinned(grounds)
    # A search, too, must find what a file has not the trust to replace.
    searched = hurried(context, scope_of(context, tree, now)).replace(
        lineage=weighed.lineage,
        trust=trust,
        best_trust=best,
        refuses=grounds.refusal,
        drift=drift,
    )
    found = _retrieved(searched, asked, gates.looked_at)
    ruling = [] if context.is_global else file_rules.rules_over(
        context, grounds, asked.files, file_rules.named_alone(asked.prompt)
    )  # fmt: skip
    seen = [one.record for one in pinned] + [hit.record for hit in found.hits] + ruling
    if not asked.exact and not tree.verify(seen):
        # A file was rewritten in place, which only a check of every file is sure to see.
        return side_of(context, asked.replace(exact=True))
    context.notes.extend(found.notes)
    hits = [
        Candidate(
            hit.record, RETRIEVAL, hit.score, hit.factors, related=hit.related, scope=scope
        )
        for hit in found.hits
    ]  # fmt: skip
    hits = _judged(hits, searched, asked.prompt)
    grounds = grounds.with_contradictions([*(one.record for one in (*pinned, *hits)), *ruling])
    pinned, hits = _against(pinned, grounds), _against(hits, grounds)
    answering = {one.record.id: one for one in hits}
    rules = [
        answering.get(one.id, Candidate(one, GOVERNING, scope=scope)).replace(tier=GOVERNING)
        for one in file_rules.before(ruling, answering)
    ]
    rules = _against(rules, grounds)
    silenced: tuple[str, ...] = ()
    over = view.silenced
    if over is not None:
        there = hurried(context, scope_of(context, over, now))
        would = _retrieved(there, asked.replace(explain=False), gates.looked_at).hits
        silenced = changed_here.silenced(view, [
            *over.pinned,
            *(hit.record for hit in would),
            *file_rules.rules_over(context, grounds.replace(tree=over), asked.files),
        ])  # fmt: skip
    if silenced:
        context.notes.append(changed_here.silence(silenced, view.ref))
    return Side(
        grounds=grounds,
        view=view,
        witness=witness,
        silenced=silenced,
        origins=origins_of(witness, grounds, [*pinned, *rules, *hits]),
        pinned=pinned,
        rules=rules,
        hits=hits,
        found=found,
        once=once(
            asked.context,
            "" if is_replay else asked.session,
            grounds.marks,
            asked.shown,
        ),
        freshness=tree.freshness,
        yielded=[],
    )


def _retrieved(scope: Scope, asked: GatherRequest, most: int) -> Found:
    """Return what answers the prompt, or about so many; else what governs the files."""
    found = Found((), 0)
    if asked.prompt.strip():
        found = search_prose(scope, asked.prompt, asked.files, most, explain=asked.explain)
    if asked.files and not found.hits:
        near = search_prose(scope, "", asked.files, most)
        found = near.replace(
            notes=found.notes or near.notes,
            missed=found.missed,
            expired=found.expired,
            is_degraded=found.is_degraded,
        )
    return found


def _judged(hits: list[Candidate], scope: Scope, prompt: str) -> list[Candidate]:
    """Return what was found, with the digests of which no line answers the prompt marked so."""
    if not prompt.strip() or not any(map(select.is_digest, hits)):
        return hits
    from memtool.search import levels  # few stores have digests

    sufficiency = levels.Sufficiency(scope, prompt, [one.record for one in hits])
    most = candidate_list.WHOLE_TOKENS * BYTES_PER_TOKEN
    return [
        one.replace(suffices=sufficiency.digest(one.record, most)) if select.is_digest(one) else one
        for one in hits
    ]


def _against(candidates: Iterable[Candidate], grounds: Eligibility) -> list[Candidate]:
    """Return candidates that know what they conflict with."""
    found = ((one, grounds.conflicts(one.record.id)) for one in candidates)
    return [one.replace(against=ids) if ids else one for one, ids in found]


def origins_of(
    witness: Witness, grounds: Eligibility, candidates: Iterable[Candidate]
) -> dict[str, Origin]:
    """Ask git once about everything that may be shown; return the origins by path."""
    records = {}
    for candidate in candidates:
        for record in (candidate.record, *grounds.beside(candidate.record)):
            records[record.path] = record
    return witness.origins(records.values())


def writer(
    sides: Iterable[Side], form: BlockFormat, *, with_awaiting: bool = False
) -> Callable[[Candidate, bool], str]:
    """Return what writes a candidate of any side, whole or as its first paragraph.

    `with_awaiting` adds a warning to what waits for somebody.
    """
    by_scope = {side.grounds.scope: side for side in sides}

    def write(candidate: Candidate, is_whole: bool) -> str:  # noqa: FBT001  # one of two texts
        record, side = candidate.record, by_scope[candidate.scope]
        origin = side.origins[record.path]
        marks = side.grounds.marks(record)
        if with_awaiting and record.memory.text("awaiting"):
            marks = (*marks, f"[AWAITING] {record.memory.text('awaiting')}")
        shown = passage(
            record.memory,
            cite(record.id, origin),
            origin.trust,
            marks,
            is_whole=is_whole and not candidate.is_brief,
            scope="" if candidate.scope == PROJECT else candidate.scope,
        )
        return write_passage(shown, form)

    return write


def notices(sides: Sequence[Side], candidates: Iterable[Candidate]) -> list[str]:
    """Return what has to be said about memories that the session was not given yet."""
    wanted = [PREAMBLE]
    if any(one.scope == GLOBAL for one in candidates):
        wanted.append(NOTE)
    seen = sides[0].once.seen  # a session has one past, in the clone that it works in
    return [text for text in wanted if notice(text) not in seen]


def preamble_of(sides: Sequence[Side], candidates: Iterable[Candidate]) -> str:
    """Return what precedes memories: the preamble once per session, with a note about global ones.

    After that one short line remains, since a block must never be read as instruction.
    """
    unsaid = notices(sides, candidates)
    return "".join(unsaid if PREAMBLE in unsaid else [REMINDER, *unsaid])


def silence_of(sides: Iterable[Side]) -> list[str]:
    """Return what is to be said about memories that were taken out of use here, once in a session.

    An agent must not take for granted that nothing was decided, only because somebody edited or
    removed a file that the trusted ref still has.
    """
    said = []
    for side in sides:
        if side.unsaid:
            verb = "memtool" if side.grounds.scope == PROJECT else "memtool --global"
            told = changed_here.silence(side.unsaid, side.view.ref)
            said.append(f"[CHANGED] {told} (`{verb} show ID --at {side.view.ref}`)")
    return said


def fitting(said: Iterable[str], form: BlockFormat, room: int) -> list[str]:
    """Return sentences as lines of a block; none where there are fewer bytes than all need."""
    lines = [f"{escaped(sentence, form.escapes)}\n" for sentence in said]
    return lines if len("".join(lines).encode()) <= room else []


def global_cap(sides: Sequence[Side]) -> Cap:
    """Return the limit on the global memories of a block, which stand beside the project's."""
    most = sides[0].grounds.gates.global_most
    reason = f"a block holds {most} global memories (inject.global_most)"
    is_beside = sides[0].grounds.scope == PROJECT
    return Cap(lambda one: is_beside and one.scope == GLOBAL, reason, most)


def drifted_cap(sides: Sequence[Side]) -> Cap:
    """Return the limit on broken memories of an answer: where many are, one line says so.

    Half of a store may be broken after a rewrite of the code; the places are for what still holds.
    """
    by_scope = {side.grounds.scope: side.grounds for side in sides}

    def holds(one: Candidate) -> bool:
        found = by_scope[one.scope].drift_of(one.record)
        return found is not None and found.level == BROKEN

    return Cap(holds, f"a block holds {MOST_DRIFTED} that have drifted from the code", MOST_DRIFTED)


def drift_of(cap: Cap) -> list[str]:
    """Return what is to be said about memories that were left out as broken."""
    if not cap.refused:
        return []
    what = "1 more answers" if cap.refused == 1 else f"{cap.refused} more answer"
    return [f"[DRIFTED] {what} this, left out: what they name is gone (`memtool drift`)"]


def trust_caps(
    sides: Sequence[Side], chosen: Sequence[Candidate], most: int, share: int
) -> list[Cap]:
    """Return what the less trusted of the project may take of a tier beside the more trusted.

    Of the pinned tier it is what nobody committed, and all that it gets; of what answers a prompt
    it is whatever has less trust than the best, and it gets what those leave over as well.
    """
    own = sides[0]
    project = [one for one in chosen if one.scope == own.grounds.scope]
    ranks = {
        one.record.path: own.grounds.rank(one.record, own.origins[one.record.path].trust)
        for one in project
    }
    best = max(ranks.values(), default=0)
    is_pinned = any(one.tier == PINNED for one in project)
    below = min(best, 1) if is_pinned else best
    places = max(1, int(most * own.grounds.gates.local_share))
    reason = f"beside the more trusted, uncommitted memories get {places} of {most} places"
    return [
        Cap(
            lambda one: (
                one.scope == own.grounds.scope and ranks.get(one.record.path, below) < below
            ),
            reason,
            places,
            max(1, int(share * own.grounds.gates.local_share)),
            is_soft=not is_pinned,
        )
    ]


def choose(
    sides: Iterable[Side],
    tier: str,
    threshold: Threshold = no_threshold,
    shown: Sequence[Candidate] = (),
) -> Chosen:
    """Choose from a tier of each side by itself, and put what they have into one order.

    `threshold` gives a share of the best score, `shown` is what is in the block already.
    """
    chosen: list[Candidate] = []
    verdicts: list[CandidateVerdict] = []
    for side in sides:
        tiers = {PINNED: side.pinned, GOVERNING: side.rules, RETRIEVAL: side.hits}
        candidates = tiers[tier]
        fresh, dropped = choose_from(side, candidates, threshold, shown)
        verdicts += dropped
        if chosen and fresh:
            chosen, dropped = select.joined(chosen, fresh, threshold)
            verdicts += dropped
        else:
            chosen = chosen or fresh
    return chosen, verdicts


def choose_from(
    side: Side,
    candidates: Sequence[Candidate],
    threshold: Threshold = no_threshold,
    shown: Sequence[Candidate] = (),
) -> Chosen:
    """Choose from candidates of one side what its session has not seen; see `select.choose`."""
    kept, dropped = select.choose(candidates, side.grounds, side.origins, threshold, shown)
    gone = {one.id for one in side.yielded}  # not even beside what it conflicts with
    fresh, seen_before = side.once.fresh([one for one in kept if one.record.id not in gone])
    return fresh, dropped + seen_before


def _not_found(side: Side) -> list[CandidateVerdict]:
    """Return verdicts about what the hits replace, and what was not found for one reason."""
    grounds = side.grounds
    replaced = grounds.standing.lineage.supersedes
    olds = {old for hit in side.hits for old in replaced.get(hit.record.id, ())}
    records = [grounds.tree.by_id[old] for old in sorted(olds) if old in grounds.tree.by_id]
    reasons = [(record.id, grounds.objection(record.memory)) for record in records]
    reasons += [(one.record.id, one.reason) for one in side.found.missed]
    return [
        CandidateVerdict(id_, RETRIEVAL, is_taken=False, reason=reason, scope=grounds.scope)
        for id_, reason in reasons
    ]
