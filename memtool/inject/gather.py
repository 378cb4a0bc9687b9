"""Gathering: the candidates of the project's and of the user's repository for a request.

Each repository is searched and weighed by itself, with its own settings and its own trust. Global
memories yield to the project: if both say the same, or may contradict each other, only the
project's memory is shown.
"""

from __future__ import annotations

from memtool.errors import MemtoolError
from memtool.index import index
from memtool.inject import (
    ahead_notes,
    changed_here,
    digests,
    disagreements,
    drifted,
    file_rules,
    file_ties,
    premises,
    select,
    supplements,
)
from memtool.inject import candidates as candidate_list
from memtool.inject.block import NOT_MERGED, BlockItem, build_passage, cite, describe_trust
from memtool.inject.candidates import GLOBAL, GOVERNING, PROJECT, RETRIEVAL, Candidate, Eligibility
from memtool.inject.effective_lineage import RANK, compute_effective_lineage, find_best_level
from memtool.inject.select import no_threshold
from memtool.inject.session_seen import SILENCED, SeenMemories, read_seen
from memtool.search.features import no_moves
from memtool.search.prose import search_prose
from memtool.search.retrieve import SearchResult
from memtool.search.scope import build_drift_witness, build_scope
from memtool.search.stages import overlay_tree, with_general_stages, with_matchers
from memtool.store.provenance import TrustLevels
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
    from memtool.store.provenance import ProvenanceReader
    from memtool.store.tree import Record

NOTE = "\nThe user's own are read and corrected with `memtool --global VERB`."
"""Follows the preamble of a block in which there is one, once in a session."""
USERS_OWN = "the user's own, all projects"
"""The note on a global memory."""
ROLES: tuple[Callable[[list[Candidate], Eligibility, Scope, str], list[Candidate]], ...] = (
    digests.with_roles,
)
"""Functions that give special candidates their role, from the scope and the prompt."""
SIGNALS: tuple[Callable[[Scope], Signal | None], ...] = (
    drifted.read_signal,
    ahead_notes.read_signal,
    premises.read_signal,
)
"""What features tell of the memories of a scope, by its settings and its lineage."""
MAX_PROMPT = 1 << 20
"""Bytes of a prompt that are analysed; no real question is longer."""


class GatherRequest(Value):
    """A request: its prompt and files, the project, and the session.

    `files` are paths from the top. `exact` checks every file for a change, `no_global` leaves out
    the user's memories, `explain` also collects missed memories. `is_hurried` uses stored renames
    only. `shown` are the versions that the session sees in the same answer. Without `has_pins` the
    pinned memories come by another way.
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
    is_hurried: bool = False
    shown: tuple[tuple[str, str], ...] = ()
    has_pins: bool = True

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
    search_result: SearchResult
    seen: SeenMemories
    yielded: list[CandidateVerdict]

    @property
    def scope(self) -> str:
        """Whose memories these are: the project's or the user's."""
        return self.grounds.scope

    @property
    def notice(self) -> str:
        """The notice before a block with one of its memories, once per session."""
        return NOTE if self.scope == GLOBAL else ""

    @property
    def candidates(self) -> list[Candidate]:
        """Everything that may be shown."""
        return [*self.pinned, *self.rules, *self.hits]

    @property
    def unreported_overrides(self) -> tuple[str, ...]:
        """Memories that are silenced without a notice yet in this session."""
        return tuple(id_ for id_ in self.silenced if (id_, SILENCED) not in self.seen.seen)

    def presentable(self) -> list[Candidate]:
        """Return the candidates that may be shown, whether there is room for them or not."""
        return [
            candidate
            for candidate in self.candidates
            if not self.grounds.find_refusal(candidate.record)
        ]

    def build_passage(self, candidate: Candidate, *, is_whole: bool) -> Passage:
        """Return the text of a candidate, whole or its statement."""
        record = candidate.record
        origin = self.origins[record.path]
        remarks = self.grounds.find_remarks(record, is_supplied=candidate.is_supplied)
        tie = (candidate.tie,) if candidate.tie else ()
        trust = describe_trust(origin, find_best_level(self.view.witness))
        if any(note.endswith(NOT_MERGED) for note in remarks.notes):
            trust = tuple(note for note in trust if note != NOT_MERGED)  # it is said already
        whose = () if self.scope == PROJECT else (USERS_OWN,)
        return build_passage(
            record.memory,
            cite(self.grounds.tree.short_ids.shorten(record.id), origin.commit),
            remarks.replace(
                marks=(*candidate.marks, *remarks.marks),
                notes=(*tie, *whose, *trust, *remarks.notes),
            ),
            is_whole=is_whole and not candidate.is_brief,
            is_title_only=candidate.is_title_only,
        )

    def build_item(self, entry: BlockEntry) -> BlockItem:
        """Return the item of a memory in the block."""
        candidate = entry.candidate
        record = candidate.record
        origin = self.origins[record.path]
        return BlockItem(
            id=record.id,
            tier=candidate.tier,
            scope=self.scope,
            score=candidate_list.round_score(candidate.score),
            tokens=entry.tokens,
            commit=origin.commit or None,
            trust=origin.trust,
            conflicts=self.grounds.find_conflicts(record.id),
            text=entry.text,
            unproven=self.grounds.find_unproven(record),
            **self.grounds.details(record),
        )

    def list_versions(self, entries: Iterable[BlockEntry]) -> tuple[tuple[str, str], ...]:
        """Return the versions that the session sees with these entries."""
        return self.seen.list_versions(entries)

    def list_disagreements(self, candidates: Iterable[Candidate]) -> list[str]:
        """Return a line for each conflict of its memories among these candidates."""
        ids = (candidate.record.id for candidate in candidates if candidate.scope == self.scope)
        return disagreements.list_lines(self.grounds, ids)

    def choose(
        self,
        candidates: Sequence[Candidate],
        threshold: Threshold = no_threshold,
        shown: Sequence[Candidate] = (),
    ) -> Chosen:
        """Choose from its candidates those that the session has not seen; see `select.choose`."""
        chosen, dropped = select.choose(candidates, self.grounds, self.origins, threshold, shown)
        gone = {
            yielded.id for yielded in self.yielded
        }  # not even next to a memory that they conflict with
        chosen = [candidate for candidate in chosen if candidate.record.id not in gone]
        fresh, seen_before = self.seen.split_fresh(chosen)
        supplied, withheld = supplements.add_supplements(fresh, self.grounds, self.seen, shown)
        return supplied, dropped + seen_before + withheld


def collect_all(request: GatherRequest) -> list[RepositoryCandidates]:
    """Collect the candidates for a block from the project and the user's own repository.

    If one of them cannot be read, the other is enough: a project may have no memories yet, and a
    note reports unreadable global ones.

    Raises:
        MemtoolError: as `index.open_catalog` does for the project.
    """
    context, other = request.context, None
    if request.at is None and not request.no_global and context.settings.setting("inject.global"):
        other = context.global_context
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
    speaking = own.presentable()
    pinned, yielded = select.yield_to(speaking, users.pinned)
    hits, dropped_too = select.yield_to(speaking, users.hits)
    return [own, users.replace(pinned=pinned, hits=hits, yielded=yielded + dropped_too)]


def collect_candidates(context: Context, request: GatherRequest) -> RepositoryCandidates:
    """Collect what one repository has for a block. Raises MemtoolError as `index.open` does."""
    view, least = _open(context, request)
    scope = _build_scope(context, view, context.clock.parse_as_of(request.as_of))
    if context.caller.is_resident:
        scope = with_matchers(context, scope, request.prompt)
    grounds = _weigh(context, view, scope, least, is_hurried=request.is_hurried)
    # A search must also find a memory that a file has not the trust to replace.
    scope = scope.replace(lineage=grounds.standing.lineage, refuses=grounds.find_refusal)
    result = _search(scope, request, grounds.gates.candidate_pool)
    pinned = candidate_list.find_pinned(grounds) if request.has_pins else []
    ruling = (
        []
        if context.is_global
        else file_rules.find_rules_over(
            context, grounds, request.files, file_rules.find_bare_names(request.prompt)
        )
    )
    ties = [] if request.prompt.strip() else _find_ties(context, request, view, grounds, ruling)
    seen = [
        *(candidate.record for candidate in pinned),
        *(hit.record for hit in result.hits),
        *ruling,
        *(candidate.record for candidate in ties),
    ]
    if not request.exact and not view.tree.verify(seen):
        # A file was rewritten in place, which only a check of every file is sure to see.
        return collect_candidates(context, request.replace(exact=True))
    context.notes.extend(result.notes)
    hits = _build_hit_candidates(result, grounds, scope, request.prompt)
    rules = [*_build_rule_candidates(ruling, hits, grounds.scope), *ties]
    grounds = grounds.with_contradictions(seen)
    pinned, rules, hits = (with_conflicts(group, grounds) for group in (pinned, rules, hits))
    further = [Candidate(hit.record, RETRIEVAL) for hit in result.further]
    silenced = _find_overridden(context, request, view, grounds)
    if silenced:
        context.notes.append(changed_here.override_notice(silenced, view.ref))
    return RepositoryCandidates(
        grounds=grounds,
        view=view,
        silenced=silenced,
        origins=find_origins(view.witness, grounds, [*pinned, *rules, *hits, *further]),
        pinned=pinned,
        rules=rules,
        hits=hits,
        search_result=result,
        seen=read_seen(
            request.context,
            "" if request.is_replay else request.session,
            grounds.list_warnings,
            request.shown,
        ),
        yielded=[],
    )


def collect_ungoverned(request: GatherRequest) -> RepositoryCandidates:
    """Collect what the project has without the files of a request: its pins, and no rule or hit.

    Raises:
        MemtoolError: as `index.open` does.
    """
    return collect_candidates(request.context, request.replace(files=(), is_hurried=True))


def collect_rules(request: GatherRequest) -> RepositoryCandidates:
    """Collect what governs the files of a request in the project, and nothing that answers.

    Raises:
        MemtoolError: as `index.open` does.
    """
    return add_rules(collect_ungoverned(request), request)


def add_rules(own: RepositoryCandidates, request: GatherRequest) -> RepositoryCandidates:
    """Return the candidates of the project with the rules for the files of a request."""
    own = with_rules(own, request, _find_file_rules)
    if own.view.trusted is None:
        return own
    there = own.grounds.replace(tree=own.view.trusted)
    governing = file_rules.find_rules_over(request.context, there, request.files)
    return own.replace(silenced=changed_here.find_silenced(own.view, governing))


def _find_file_rules(own: RepositoryCandidates, request: GatherRequest) -> list[Candidate]:
    context, grounds = request.context, own.grounds
    ruling = file_rules.find_rules_over(context, grounds, request.files)
    rules = [Candidate(record, GOVERNING, scope=grounds.scope) for record in ruling]
    ties = _find_ties(context, request.replace(is_hurried=True), own.view, grounds, ruling)
    return [*rules, *ties]


def with_rules(
    own: RepositoryCandidates,
    request: GatherRequest,
    find: Callable[[RepositoryCandidates, GatherRequest], list[Candidate]],
) -> RepositoryCandidates:
    """Return the candidates of the project with the rules that a function finds among them."""
    rules = find(own, request)
    records = [candidate.record for candidate in rules]
    if not request.exact and not own.grounds.tree.verify(records):
        exact = request.replace(exact=True)
        return with_rules(collect_ungoverned(exact), exact, find)
    grounds = own.grounds.with_contradictions(records)
    origins = find_origins(own.view.witness, grounds, rules)
    return own.replace(grounds=grounds, rules=rules, origins=origins, silenced=())


def _find_ties(
    context: Context,
    request: GatherRequest,
    view: LevelView,
    grounds: Eligibility,
    ruling: Iterable[Record],
) -> list[Candidate]:
    """Return the records that probably govern the files of a request."""
    if context.is_global or not request.files:
        return []
    basis = view.witness.basis
    return file_ties.find_ties(
        context,
        grounds,
        request.files,
        {record.id for record in ruling},
        "" if basis is None else basis.head,
        is_hurried=request.is_hurried,
    )


def _open(context: Context, request: GatherRequest) -> tuple[LevelView, str]:
    """Return the view of a repository at its level of trust, and the lowest trust that is shown."""
    tree = index.open(context, request.at, request.as_of, exact=request.exact)
    witness = context.provenance_reader(tree)
    least = context.project.strict_settings.text("inject.trust")
    if context.is_global:  # the user's own, which seldom has a remote that could vouch for more
        least = min(least, find_best_level(witness), key=RANK.__getitem__)
    level = "" if request.is_replay else least
    now = context.clock.parse_as_of(request.as_of)
    view = changed_here.build_view(context, tree, witness, level, now)
    if request.is_replay:
        return view, least
    tree = overlay_tree(context, view.tree, now)
    return view.replace(tree=tree, witness=view.witness.with_overlay(tree.overlay)), least


def _build_scope(context: Context, view: LevelView, now: int) -> Scope:
    """Return the search scope of a repository, with its own history."""
    tree, witness = view.tree, view.witness
    return with_general_stages(context, build_scope(context, tree, now)).replace(
        trust=TrustLevels(tree, lambda: witness),
        best_trust=find_best_level(witness),
        drift=None if context.is_global else build_drift_witness(tree, lambda: witness),
    )


def _weigh(
    context: Context, view: LevelView, scope: Scope, least: str, *, is_hurried: bool
) -> Eligibility:
    """Return what decides about the memories of a repository."""
    settings, rules = context.project.strict_settings, context.project.trust_rules
    categories = settings.categories
    lineage = compute_effective_lineage(
        view.tree, view.witness, least, scope.now, categories, rules
    )
    drift = scope.drift
    strict = scope.replace(config=settings, lineage=lineage.lineage)
    signals = (make(strict) for make in SIGNALS)
    return Eligibility(
        tree=view.tree,
        standing=lineage,
        now=scope.now,
        categories=categories,
        least_trust=least,
        scope=GLOBAL if context.is_global else PROJECT,
        gates=candidate_list.read_gates(settings),
        trust=scope.trust,
        changed=view.marks,
        withholds=settings.private_labels,
        signals=tuple(signal for signal in signals if signal is not None),
        moves=no_moves if drift is None else lambda: drift.find_stored_moves(is_hurried=is_hurried),
    )


def _search(scope: Scope, request: GatherRequest, max_hits: int) -> SearchResult:
    """Return the search result for the prompt, at most `max_hits`; without a prompt none."""
    result = SearchResult((), 0)
    if request.prompt.strip():
        result = search_prose(
            scope, request.prompt, request.files, max_hits, explain=request.explain
        )
    if request.files and not result.hits:
        near = search_prose(scope, "", request.files, max_hits)
        result = near.replace(
            notes=result.notes or near.notes,
            missed=result.missed,
            expired=result.expired,
            is_degraded=result.is_degraded,
            semantic=result.semantic,
        )
    return result


def _build_hit_candidates(
    result: SearchResult, grounds: Eligibility, scope: Scope, prompt: str
) -> list[Candidate]:
    """Return the hits as candidates, with the roles that features give them."""
    hits = [
        Candidate(
            hit.record,
            RETRIEVAL,
            hit.score,
            hit.factors,
            related=hit.related,
            topic=hit.topic,
            scope=grounds.scope,
        )
        for hit in result.hits
    ]
    for assign in ROLES:
        hits = assign(hits, grounds, scope, prompt)
    return hits


def _build_rule_candidates(
    ruling: Sequence[Record], hits: Sequence[Candidate], whose: str
) -> list[Candidate]:
    """Return the file rules as candidates; those that also answer the prompt come first."""
    answering = {hit.record.id: hit for hit in hits}
    return [
        answering.get(record.id, Candidate(record, GOVERNING, scope=whose)).replace(tier=GOVERNING)
        for record in file_rules.order_rules(ruling, answering)
    ]


def with_conflicts(candidates: Iterable[Candidate], grounds: Eligibility) -> list[Candidate]:
    """Return candidates with the ids of the memories that they conflict with."""
    with_ids = (
        (candidate, grounds.find_conflicts(candidate.record.id)) for candidate in candidates
    )
    return [candidate.replace(against=ids) if ids else candidate for candidate, ids in with_ids]


def _find_overridden(
    context: Context, request: GatherRequest, view: LevelView, grounds: Eligibility
) -> tuple[str, ...]:
    """Return the ids that would be shown in the trusted version, but not as changed here."""
    over = view.trusted
    if over is None:
        return ()
    scope = with_general_stages(context, build_scope(context, over, grounds.now))
    hits = _search(scope, request.replace(explain=False), grounds.gates.candidate_pool).hits
    rules = file_rules.find_rules_over(context, grounds.replace(tree=over), request.files)
    return changed_here.find_silenced(view, [*over.pinned, *(hit.record for hit in hits), *rules])


def find_origins(
    witness: ProvenanceReader, grounds: Eligibility, candidates: Iterable[Candidate]
) -> dict[str, Origin]:
    """Ask git once about everything that may be shown; return the origins by path."""
    records = {}
    for candidate in candidates:
        for record in (candidate.record, *grounds.find_companions(candidate.record)):
            records[record.path] = record
        supplement = grounds.find_supplement(candidate.record)
        if supplement is not None:
            records[supplement.record.path] = supplement.record
    return witness.origins(records.values())
