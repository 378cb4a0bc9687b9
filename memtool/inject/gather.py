"""Gathering: what the project's and the user's repository know about a question.

Each repository is searched and weighed by itself, with its own settings and its own trust. Global
memories give way to what the project says: where both say the same, or may contradict each other,
only the project speaks.
"""

from __future__ import annotations

from memtool.errors import MemtoolError
from memtool.index import index
from memtool.inject import candidates as candidate_list
from memtool.inject import changed_here, digests, drifted, file_rules, select
from memtool.inject.block import BlockItem, passage
from memtool.inject.candidates import GLOBAL, GOVERNING, PROJECT, RETRIEVAL, Candidate, Eligibility
from memtool.inject.effective_lineage import RANK, best_level, compute_effective_lineage
from memtool.inject.select import no_threshold
from memtool.inject.session_seen import SILENCED, SeenMemories, seen_memories
from memtool.search.prose import search_prose
from memtool.search.retrieve import Found
from memtool.search.scope import drift_in, scope_of, trust_in
from memtool.search.stages import staged_for_any
from memtool.store.provenance import cite
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from memtool.inject.block import Passage
    from memtool.inject.candidates import CandidateVerdict, Signal
    from memtool.inject.changed_here import LevelView
    from memtool.inject.select import Chosen, Threshold
    from memtool.inject.tiers import BlockEntry
    from memtool.memory.trust import Origin
    from memtool.search.retrieve import Scope
    from memtool.store.context import Context
    from memtool.store.provenance import Witness
    from memtool.store.tree import Record

NOTE = (
    "\nThose of scope global hold in all projects of this user: `memtool --global VERB` reads and "
    "corrects them."
)
"""Follows the preamble of a block in which there is one, once in a session."""
ROLES: tuple[Callable[[list[Candidate], Eligibility, Scope, str], list[Candidate]], ...] = (
    digests.with_roles,
)
"""What gives candidates of a special kind their role, by what was searched and the prompt."""
SIGNALS: tuple[Callable[[Scope], Signal | None], ...] = (drifted.signal,)
"""What features tell of the memories of a scope."""
MAX_PROMPT = 1 << 20
"""Bytes of a prompt that are looked at; nobody asks with more."""


class GatherRequest(Value):
    """What is asked, of which project, and in which session.

    `files` are paths from the top. `exact` checks every file for a change, `no_global` leaves out
    the user's memories, `explain` also finds out what was missed. `shown` are the versions that the
    session is shown already in the same answer.
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

    @property
    def is_replay(self) -> bool:
        """Whether it looks back, at a revision or a moment."""
        return self.at is not None or self.as_of is not None


class RepositoryCandidates(Value):
    """What one repository has for a block, and what decides about it.

    `origins` is by path. `pinned`, `rules` and `hits` may be shown, rules being what governs the
    files that are named; `yielded` are verdicts about what gave way to the other repository.
    `silenced` are the ids of what would answer as the trusted ref has it, and not as it was changed
    here, which `view` knows.
    """

    grounds: Eligibility
    view: LevelView
    silenced: tuple[str, ...]
    origins: dict[str, Origin]
    pinned: list[Candidate]
    rules: list[Candidate]
    hits: list[Candidate]
    found: Found
    seen: SeenMemories
    yielded: list[CandidateVerdict]

    @property
    def scope(self) -> str:
        """Whose memories these are: the project's or the user's."""
        return self.grounds.scope

    @property
    def notice(self) -> str:
        """What a session is told once in front of a block with one of them."""
        return NOTE if self.scope == GLOBAL else ""

    @property
    def candidates(self) -> list[Candidate]:
        """Everything that may be shown."""
        return [*self.pinned, *self.rules, *self.hits]

    @property
    def unreported_overrides(self) -> tuple[str, ...]:
        """What is silenced without the session knowing that."""
        return tuple(id_ for id_ in self.silenced if (id_, SILENCED) not in self.seen.seen)

    def speaking(self) -> list[Candidate]:
        """Return the candidates that may be shown, whether there is room for them or not."""
        return [one for one in self.candidates if not self.grounds.refusal(one.record)]

    def passage(self, candidate: Candidate, *, is_whole: bool) -> Passage:
        """Return a candidate as it is shown, whole or as its first paragraph."""
        record = candidate.record
        origin = self.origins[record.path]
        return passage(
            record.memory,
            cite(record.id, origin),
            origin.trust,
            self.grounds.marks(record),
            is_whole=is_whole and not candidate.is_brief,
            scope="" if self.scope == PROJECT else self.scope,
        )

    def item(self, entry: BlockEntry) -> BlockItem:
        """Return what is listed of a memory in the block."""
        candidate = entry.candidate
        record = candidate.record
        origin = self.origins[record.path]
        return BlockItem(
            id=record.id,
            tier=candidate.tier,
            scope=self.scope,
            score=candidate_list.rounded(candidate.score),
            tokens=entry.tokens,
            commit=origin.commit or None,
            trust=origin.trust,
            conflicts=self.grounds.conflicts(record.id),
            text=entry.text,
            unproven=self.grounds.unproven(record),
            **self.grounds.details(record),
        )

    def versions(self, entries: Iterable[BlockEntry]) -> tuple[tuple[str, str], ...]:
        """Return what the session sees by these entries."""
        return self.seen.versions(entries)

    def choose(
        self,
        candidates: Sequence[Candidate],
        threshold: Threshold = no_threshold,
        shown: Sequence[Candidate] = (),
    ) -> Chosen:
        """Choose from its candidates what the session has not seen; see `select.choose`."""
        kept, dropped = select.choose(candidates, self.grounds, self.origins, threshold, shown)
        gone = {one.id for one in self.yielded}  # not even beside what it conflicts with
        kept = [one for one in kept if one.record.id not in gone]
        fresh, seen_before = self.seen.fresh(kept)
        return fresh, dropped + seen_before


def collect_all(request: GatherRequest) -> list[RepositoryCandidates]:
    """Collect what there is for a block: from the project, and from the user's own repository.

    If one of them cannot be read, the other is enough: a project may have no memories yet, and a
    note says that global ones cannot be read.

    Raises:
        MemtoolError: as `index.open` does for the project.
    """
    context, other = request.context, None
    if request.at is None and not request.no_global and context.settings.setting("inject.global"):
        other = context.beside
    try:
        own = collect_candidates(context, request)
    except MemtoolError as error:
        if other is None or error.code != "no-memory":
            raise
        return [collect_candidates(other, request)]
    if other is None:
        return [own]
    try:
        users = collect_candidates(other, request)
    except MemtoolError as error:
        context.notes.append(f"global memories are passed over: {error}")
        return [own]

    context.notes.extend(f"global memories: {note}" for note in other.notes)
    other.notes.clear()  # they are reported
    speaking = own.speaking()
    pinned, yielded = select.yielding(speaking, users.pinned)
    hits, more = select.yielding(speaking, users.hits)
    return [own, users.replace(pinned=pinned, hits=hits, yielded=yielded + more)]


def collect_candidates(context: Context, request: GatherRequest) -> RepositoryCandidates:
    """Collect what one repository has for a block. Raises MemtoolError as `index.open` does."""
    view, least = _open(context, request)
    scope = _scope(context, view, context.clock.moment_of(request.as_of))
    grounds = _weigh(context, view, scope, least)
    # A search, too, must find what a file has not the trust to replace.
    scope = scope.replace(lineage=grounds.standing.lineage, refuses=grounds.refusal)
    found = _search(scope, request, grounds.gates.looked_at)
    pinned = candidate_list.pinned(grounds)
    ruling = (
        []
        if context.is_global
        else file_rules.rules_over(
            context, grounds, request.files, file_rules.named_alone(request.prompt)
        )
    )
    seen = [*(one.record for one in pinned), *(hit.record for hit in found.hits), *ruling]
    if not request.exact and not view.tree.verify(seen):
        # A file was rewritten in place, which only a check of every file is sure to see.
        return collect_candidates(context, request.replace(exact=True))
    context.notes.extend(found.notes)
    hits = _candidates_of(found, grounds, scope, request.prompt)
    rules = _rules_of(ruling, hits, grounds.scope)
    grounds = grounds.with_contradictions(seen)
    pinned, rules, hits = (with_conflicts(group, grounds) for group in (pinned, rules, hits))
    silenced = _overridden(context, request, view, grounds)
    if silenced:
        context.notes.append(changed_here.silence(silenced, view.ref))
    return RepositoryCandidates(
        grounds=grounds,
        view=view,
        silenced=silenced,
        origins=find_origins(view.witness, grounds, [*pinned, *rules, *hits]),
        pinned=pinned,
        rules=rules,
        hits=hits,
        found=found,
        seen=seen_memories(
            request.context,
            "" if request.is_replay else request.session,
            grounds.marks,
            request.shown,
        ),
        yielded=[],
    )


def collect_rules(request: GatherRequest) -> RepositoryCandidates:
    """Collect what governs the files of a request in the project, and nothing that answers.

    Raises:
        MemtoolError: as `index.open` does.
    """
    context = request.context
    own = collect_candidates(context, request.replace(files=()))
    grounds = own.grounds
    records = file_rules.rules_over(context, grounds, request.files)
    if not request.exact and not grounds.tree.verify(records):
        return collect_rules(request.replace(exact=True))
    rules = [Candidate(record, GOVERNING, scope=grounds.scope) for record in records]
    grounds = grounds.with_contradictions(records)
    silenced: tuple[str, ...] = ()
    if own.view.unsilenced is not None:
        there = grounds.replace(tree=own.view.unsilenced)
        governing = file_rules.rules_over(context, there, request.files)
        silenced = changed_here.silenced(own.view, governing)
    return own.replace(
        grounds=grounds,
        rules=rules,
        origins=find_origins(own.view.witness, grounds, rules),
        silenced=silenced,
    )


def _open(context: Context, request: GatherRequest) -> tuple[LevelView, str]:
    """Return a repository as its level of trust sees it, and the least trust of what is shown."""
    tree = index.open(context, request.at, request.as_of, exact=request.exact)
    witness = context.witness(tree)
    least = context.project.strict_settings.text("inject.trust")
    if context.is_global:  # the user's own, which seldom has a remote that could vouch for more
        least = min(least, best_level(witness), key=RANK.__getitem__)
    level = "" if request.is_replay else least
    now = context.clock.moment_of(request.as_of)
    return changed_here.view_of(context, tree, witness, level, now), least


def _scope(context: Context, view: LevelView, now: int) -> Scope:
    """Return what is searched of a repository, with what its own history says of it."""
    tree, witness = view.tree, view.witness
    return staged_for_any(context, scope_of(context, tree, now)).replace(
        trust=trust_in(tree, lambda: witness),
        best_trust=best_level(witness),
        drift=None if context.is_global else drift_in(tree, lambda: witness),
    )


def _weigh(context: Context, view: LevelView, scope: Scope, least: str) -> Eligibility:
    """Return what decides about the memories of a repository."""
    settings, rules = context.project.strict_settings, context.project.trust_rules
    categories = settings.categories
    lineage = compute_effective_lineage(
        view.tree, view.witness, least, scope.now, categories, rules
    )
    signals = (make(scope) for make in SIGNALS)
    return Eligibility(
        tree=view.tree,
        standing=lineage,
        now=scope.now,
        categories=categories,
        least_trust=least,
        scope=GLOBAL if context.is_global else PROJECT,
        gates=candidate_list.gates_of(settings),
        trust=scope.trust,
        changed=view.marks,
        withholds=settings.private_labels,
        signals=tuple(signal for signal in signals if signal is not None),
    )


def _search(scope: Scope, request: GatherRequest, most: int) -> Found:
    """Return what answers the prompt, or about so many; else what governs the files."""
    found = Found((), 0)
    if request.prompt.strip():
        found = search_prose(scope, request.prompt, request.files, most, explain=request.explain)
    if request.files and not found.hits:
        near = search_prose(scope, "", request.files, most)
        found = near.replace(
            notes=found.notes or near.notes,
            missed=found.missed,
            expired=found.expired,
            is_degraded=found.is_degraded,
        )
    return found


def _candidates_of(
    found: Found, grounds: Eligibility, scope: Scope, prompt: str
) -> list[Candidate]:
    """Return what was found, with the roles that features give it."""
    hits = [
        Candidate(
            hit.record,
            RETRIEVAL,
            hit.score,
            hit.factors,
            related=hit.related,
            scope=grounds.scope,
        )
        for hit in found.hits
    ]
    for assign in ROLES:
        hits = assign(hits, grounds, scope, prompt)
    return hits


def _rules_of(ruling: Sequence[Record], hits: Sequence[Candidate], whose: str) -> list[Candidate]:
    """Return what governs the files: what answers the prompt as well comes first."""
    answering = {one.record.id: one for one in hits}
    return [
        answering.get(one.id, Candidate(one, GOVERNING, scope=whose)).replace(tier=GOVERNING)
        for one in file_rules.before(ruling, answering)
    ]


def with_conflicts(candidates: Iterable[Candidate], grounds: Eligibility) -> list[Candidate]:
    """Return candidates that know what they conflict with."""
    found = ((one, grounds.conflicts(one.record.id)) for one in candidates)
    return [one.replace(against=ids) if ids else one for one, ids in found]


def _overridden(
    context: Context, request: GatherRequest, view: LevelView, grounds: Eligibility
) -> tuple[str, ...]:
    """Return the ids of what would be shown as the trusted ref has it, and not as it is here."""
    over = view.unsilenced
    if over is None:
        return ()
    scope = staged_for_any(context, scope_of(context, over, grounds.now))
    hits = _search(scope, request.replace(explain=False), grounds.gates.looked_at).hits
    rules = file_rules.rules_over(context, grounds.replace(tree=over), request.files)
    return changed_here.silenced(view, [*over.pinned, *(hit.record for hit in hits), *rules])


def find_origins(
    witness: Witness, grounds: Eligibility, candidates: Iterable[Candidate]
) -> dict[str, Origin]:
    """Ask git once about everything that may be shown; return the origins by path."""
    records = {}
    for candidate in candidates:
        for record in (candidate.record, *grounds.beside(candidate.record)):
            records[record.path] = record
    return witness.origins(records.values())
