"""Answers: the block for a prompt and files, filled tier by tier.

`TIERS` has a row for each tier, in order. A caller may add tiers below them.
"""

from __future__ import annotations

from memtool.index.reader import EXACT
from memtool.inject import (
    changed_here,
    disagreements,
    drifted,
    file_rules,
    further_titles,
    premises,
    select,
)
from memtool.inject.block import (
    PREAMBLE,
    REMINDER,
    InjectedBlock,
    escape_line,
    measure_frame,
)
from memtool.inject.budget import BYTES_PER_TOKEN, plan
from memtool.inject.candidates import (
    GOVERNING,
    PINNED,
    PROJECT,
    RETRIEVAL,
    SUMMARY,
    Candidate,
    CandidateVerdict,
)
from memtool.inject.file_rules import MAX_RULE_TOKENS, MAX_RULES
from memtool.inject.gather import collect_all
from memtool.inject.select import no_threshold
from memtool.inject.session_seen import SILENCED, notice_line
from memtool.inject.tiers import BlockDraft, Cap, Tier, make_writer
from memtool.search import answer_gate
from memtool.value import Value, first_few

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from memtool.inject.block import BlockFormat
    from memtool.inject.budget import Budget
    from memtool.inject.candidates import Eligibility
    from memtool.inject.gather import GatherRequest, RepositoryCandidates
    from memtool.inject.select import Chosen, Threshold
    from memtool.inject.tiers import MemorySource

    MakeTier = Callable[["TierInputs"], Tier]
    """Builds a tier from the inputs of a block. The tier may have no candidates."""


class TierInputs(Value):
    """The inputs of a tier: the request, the candidates collected for it, and the block so far.

    `limits` apply to the whole block.
    """

    request: GatherRequest
    repositories: Sequence[RepositoryCandidates]
    shares: Budget
    draft: BlockDraft
    limits: Sequence[Cap]

    @property
    def retrieval_tokens(self) -> int:
        """The tokens left to answer a prompt, after the pinned tier."""
        return self.shares.for_retrieval(self.draft.count_tokens(PINNED)).retrieval


def build_project_pins(
    repositories: Sequence[RepositoryCandidates], max_pins: int, share: int
) -> Tier:
    """Build the tier of the project's pins; of the user's pins if there is no project."""
    own = repositories[0]
    return Tier(
        PINNED,
        lambda shown: own.choose(own.pinned, shown=shown),
        max_memories=max_pins,
        max_tokens=share,
        caps=lambda chosen: cap_less_trusted(own, chosen, max_pins, share),
    )


def build_global_pins(repositories: Sequence[RepositoryCandidates], share: int) -> Tier:
    """Build the tier of the user's own pins, in addition to those of a project."""
    # A tier of its own: a project that fills its tier must not crowd out the user's pins.
    groups = [(repository, repository.pinned) for repository in repositories[1:]]
    return Tier(
        PINNED,
        lambda shown: choose_in_order(groups, shown=shown),
        max_memories=repositories[0].grounds.gates.global_most,
        max_tokens=share,
    )


def _build_project_pins(inputs: TierInputs) -> Tier:
    max_pins = inputs.request.context.project.strict_settings.count("inject.max_pinned")
    return build_project_pins(inputs.repositories, max_pins, inputs.shares.pinned)


def _build_global_pins(inputs: TierInputs) -> Tier:
    tier = build_global_pins(inputs.repositories, inputs.shares.pinned)
    return tier.replace(caps=lambda _chosen: inputs.limits)


def _build_rules(inputs: TierInputs) -> Tier:
    share = min(MAX_RULE_TOKENS, inputs.retrieval_tokens)
    return Tier(
        GOVERNING,
        lambda shown: choose_in_order(
            [(repository, repository.rules) for repository in inputs.repositories], shown=shown
        ),
        max_memories=MAX_RULES,
        max_tokens=share,
        caps=lambda chosen: _answer_caps(inputs, chosen, MAX_RULES, share),
    )


def _build_hits(inputs: TierInputs) -> Tier:
    settings = inputs.request.context.project.strict_settings
    threshold = answer_gate.choose_threshold(settings)
    max_hits = settings.count("inject.retrieval_most")
    share = inputs.retrieval_tokens - inputs.draft.count_tokens(GOVERNING)

    def choose(shown: Sequence[Candidate]) -> Chosen:
        hits = [(repository, repository.hits) for repository in inputs.repositories]
        chosen, dropped = choose_in_order(hits, threshold, shown)
        return [
            candidate.replace(tier=candidate.role.tier) if candidate.role else candidate
            for candidate in chosen
        ], dropped

    return Tier(
        RETRIEVAL,
        choose,
        max_memories=max_hits,
        max_tokens=share,
        caps=lambda chosen: _answer_caps(inputs, chosen, max_hits, share),
    )


MAX_NAMED_FILES = 3
"""Files that the first line of a block names."""
PINNED_TIERS: tuple[MakeTier, ...] = (_build_project_pins, _build_global_pins)
TIERS: tuple[MakeTier, ...] = (*PINNED_TIERS, _build_rules, _build_hits)
"""The tiers of an answer, in order: pinned memories, rules for the named files, search hits."""


def build_block(
    request: GatherRequest, form: BlockFormat, shares: Budget, added: Iterable[MakeTier] = ()
) -> InjectedBlock:
    """Build the block for a prompt and files.

    `shares` bounds the whole text. The `added` tiers come last. A block of a revision has no
    global memories.

    Raises:
        MemtoolError: the memory directory, the revision or the time does not exist.
    """
    request = _with_named_files(request)
    inputs = _build_inputs(request, form, shares)
    draft = inputs.draft
    is_told = draft.reserve_notices(list_override_notices(inputs.repositories))
    for make in TIERS:
        draft.fill(make(inputs))
    _report_omissions(inputs)
    place_disagreements(draft, inputs.repositories)
    granted: dict[str, int] = {}
    for make in added:
        tier = make(inputs)
        draft.fill(tier)
        if tier.max_tokens:
            granted[tier.name] = tier.max_tokens
    shares = shares.for_retrieval(draft.count_tokens(PINNED), draft.count_tokens(SUMMARY)).replace(
        added=granted
    )
    has_content = bool(draft.texts)
    titles = _add_titles(inputs)
    injected = build_injected(
        request,
        inputs.repositories,
        draft,
        shares,
        is_told=is_told,
        text=None if has_content else draft.render(further_titles.LEAD),
        has_preamble=has_content,
        reminder=_choose_reminder(request),
    )
    further = tuple(title for title, _line in titles)
    versions = further_titles.list_versions(further) if request.session else []
    return injected.replace(
        further=further,
        versions=(*injected.versions, *versions),
    )


def _add_titles(inputs: TierInputs) -> Sequence[tuple[further_titles.Title, str]]:
    """Put titles of further memories below a block that answers a prompt; return them."""
    own, draft = inputs.repositories[0], inputs.draft
    max_titles = inputs.request.context.project.strict_settings.count(further_titles.SETTING)
    if not (max_titles and inputs.request.prompt.strip()):
        return ()
    shown = [entry.candidate for entry in draft.entries]
    titles = further_titles.choose(own, shown, max_titles)
    count = draft.add_titles(further_titles.HEADING, [line for _title, line in titles])
    return titles[:count]


def _choose_reminder(request: GatherRequest) -> str:
    """Return the first line of a later block: what its memories have to do with the request."""
    if request.prompt.strip() or not request.files:
        return REMINDER
    return format_governed(request.files)


def format_governed(files: Sequence[str]) -> str:
    """Return the first line of a block of rules for files that nobody has changed yet."""
    names = escape_line(first_few(files, MAX_NAMED_FILES))
    return f"{names} {'is' if len(files) == 1 else 'are'} governed by:"


def _with_named_files(request: GatherRequest) -> GatherRequest:
    context = request.context
    named = file_rules.find_named_files(context, request.prompt, at=request.at)
    files = [*request.files, *file_rules.paths_from_top(context, named)]
    return request.replace(files=tuple(dict.fromkeys(files)))


def _build_inputs(request: GatherRequest, form: BlockFormat, shares: Budget) -> TierInputs:
    """Build the inputs of the tiers, with an empty block."""
    repositories = collect_all(request)
    everything = [candidate for repository in repositories for candidate in repository.candidates]
    preamble = build_preamble(repositories, everything, reminder=_choose_reminder(request))
    frame = measure_frame(form, preamble)
    room = shares.total * BYTES_PER_TOKEN - frame
    draft = BlockDraft(make_writer(repositories, form), form, room)
    reserve_disagreements(draft, repositories, everything)
    limits = [make([repository.grounds for repository in repositories]) for make in LIMITS]
    return TierInputs(request, repositories, shares, draft, limits)


def _report_omissions(inputs: TierInputs) -> None:
    """Add notices about memories that were left out for a reason the agent should know."""
    draft = inputs.draft
    reserve_limit_notices(draft, inputs.limits)
    draft.place_notices()
    for repository in inputs.repositories:
        draft.verdicts += repository.yielded + _explain_not_found(repository)


def _explain_not_found(repository: RepositoryCandidates) -> list[CandidateVerdict]:
    """Return verdicts on memories that the hits replace, and on those the search rejected."""
    grounds = repository.grounds
    replaced = grounds.standing.lineage.supersedes
    olds = {old for hit in repository.hits for old in replaced.get(hit.record.id, ())}
    records = [grounds.tree[old] for old in sorted(olds) if old in grounds.tree]
    reasons = [(record.id, grounds.find_objection(record.memory)) for record in records]
    reasons += [(miss.record.id, miss.reason) for miss in repository.search_result.missed]
    return [
        CandidateVerdict(id_, RETRIEVAL, is_taken=False, reason=reason, scope=grounds.scope)
        for id_, reason in reasons
    ]


def find_crowded_out(request: GatherRequest, form: BlockFormat) -> list[CandidateVerdict]:
    """Return the pinned memories that do not fit into their tier, with the reasons.

    Raises:
        MemtoolError: as `build_block` does.
    """
    context = request.context
    inputs = _build_inputs(
        request, form, plan(context.project.strict_settings, context.caller.budget_tokens, None)
    )
    fates = [fate for make in PINNED_TIERS for fate in inputs.draft.fill(make(inputs))]
    return [fate for fate in fates if not fate.is_taken]


def reserve_disagreements(
    draft: BlockDraft, repositories: Iterable[RepositoryCandidates], candidates: Iterable[Candidate]
) -> None:
    """Keep room for the lines about conflicts of some candidates, which may be shown."""
    candidates = list(candidates)
    lines = [
        line for repository in repositories for line in repository.list_disagreements(candidates)
    ]
    draft.reserve_head(lines, disagreements.MAX_LINES)


def place_disagreements(draft: BlockDraft, repositories: Iterable[RepositoryCandidates]) -> None:
    """Put the lines about conflicts of the shown memories in front of them."""
    shown = [entry.candidate for entry in draft.entries]
    lines = [line for repository in repositories for line in repository.list_disagreements(shown)]
    draft.place_head(lines[: disagreements.MAX_LINES])


def build_injected(
    request: GatherRequest,
    repositories: Sequence[RepositoryCandidates],
    draft: BlockDraft,
    shares: Budget,
    *,
    is_told: bool,
    text: str | None = None,
    has_preamble: bool = True,
    lead: str = "",
    reminder: str = REMINDER,
) -> InjectedBlock:
    """Build a block with the details of its memories; `text` is rendered if None.

    `lead` and `reminder` are those of `build_preamble`, which a text without `has_preamble` lacks.
    `is_told` says whether the text names the memories that were taken out of use here.
    """
    sources: list[MemorySource] = [*repositories, *draft.sources]
    by_scope = {source.scope: source for source in sources}
    shown = [entry.candidate for entry in draft.entries]
    if text is None:
        preamble = build_preamble(repositories, shown, draft.sources, lead=lead, reminder=reminder)
        text = draft.render(preamble)
    versions: list[tuple[str, str]] = []
    if repositories[0].seen.session and text and has_preamble:
        versions += map(notice_line, unseen_notices(repositories, shown, draft.sources))
    for source in sources:
        own = [entry for entry in draft.entries if entry.candidate.scope == source.scope]
        versions += source.list_versions(own)
    for repository in repositories if is_told else ():
        if repository.seen.session:
            versions += [(id_, SILENCED) for id_ in repository.unreported_overrides]
    freshness = (repository.view.tree.freshness for repository in repositories)
    return InjectedBlock(
        budget=shares,
        items=tuple(by_scope[entry.candidate.scope].build_item(entry) for entry in draft.entries),
        text=text,
        format=draft.form.name,
        session=request.session,
        freshness=next((freshness for freshness in freshness if freshness != EXACT), EXACT),
        expired=sum(repository.search_result.expired for repository in repositories),
        silenced=tuple(id_ for repository in repositories for id_ in repository.silenced),
        prompt=request.prompt,
        verdicts=tuple(draft.verdicts),
        versions=tuple(versions),
        degraded=any(repository.search_result.is_degraded for repository in repositories),
        semantic=repositories[0].search_result.semantic,
    )


def unseen_notices(
    repositories: Sequence[RepositoryCandidates],
    shown: Iterable[Candidate],
    fleet_sources: Iterable[MemorySource] = (),
) -> list[str]:
    """Return the notices about the shown memories that the session has not seen yet."""
    scopes = {candidate.scope for candidate in shown}
    wanted = [PREAMBLE]
    wanted += [
        source.notice
        for source in (*repositories, *fleet_sources)
        if source.scope in scopes and source.notice
    ]
    seen = repositories[0].seen.seen  # a session has one history, in its own clone
    return [text for text in wanted if notice_line(text) not in seen]


def build_preamble(
    repositories: Sequence[RepositoryCandidates],
    shown: Iterable[Candidate],
    fleet_sources: Iterable[MemorySource] = (),
    *,
    lead: str = "",
    reminder: str = REMINDER,
) -> str:
    """Build the text before the memories: the preamble, once per session, and the notices.

    Later blocks have the `reminder` in its place. `lead` comes first in any case, and instead of
    the reminder.
    """
    unseen = unseen_notices(repositories, shown, fleet_sources)
    if PREAMBLE in unseen:
        return "".join([f"{lead}\n" if lead else "", *unseen])
    return "".join([lead or reminder, *unseen])


def list_override_notices(repositories: Iterable[RepositoryCandidates]) -> list[str]:
    """Return a notice on the memories taken out of use here, each once per session."""
    # An agent must not assume that nothing was decided, only because a file that the trusted ref
    # still has was edited or removed here.
    sentences = []
    for repository in repositories:
        if repository.unreported_overrides:
            verb = "memtool" if repository.scope == PROJECT else "memtool --global"
            view = repository.view
            tree = view.trusted or view.tree
            names = first_few(
                [*map(tree.short_ids.shorten, repository.unreported_overrides)],
                changed_here.MAX_NAMED_MEMORIES,
            )
            sentences.append(
                f"Not shown, since edited on this branch and not merged yet: {names} "
                f"(`{verb} show ID --at {view.ref}`)"
            )
    return sentences


def choose_in_order(
    groups: Iterable[tuple[RepositoryCandidates, Sequence[Candidate]]],
    threshold: Threshold = no_threshold,
    shown: Sequence[Candidate] = (),
) -> Chosen:
    """Choose from the candidates of each repository separately, and merge them in one order.

    `threshold` gives a share of the best score, `shown` is already in the block. On a tie the
    first repository comes first.
    """
    chosen: list[Candidate] = []
    verdicts: list[CandidateVerdict] = []
    for repository, candidates in groups:
        fresh, dropped = repository.choose(candidates, threshold, shown)
        verdicts += dropped
        if chosen and fresh:
            chosen, dropped = select.merge_by_weight(chosen, fresh, threshold)
            verdicts += dropped
        else:
            chosen = chosen or fresh
    return chosen, verdicts


def _cap_global(sides: Sequence[Eligibility]) -> Cap:
    """Return the limit on the user's memories in a block that also has the project's."""
    first = sides[0]
    max_global = first.gates.global_most
    reason = f"a block holds {max_global} global memories (inject.global_most)"
    return Cap(
        lambda candidate: first.scope == PROJECT and candidate.scope != PROJECT, reason, max_global
    )


GENERAL_LIMITS: tuple[Callable[[Sequence[Eligibility]], Cap], ...] = (
    premises.cap_withheld,
    premises.cap_unsettled,
)
"""The limits on a kind of memory in a block, a primer or a warning."""
LIMITS = (_cap_global, drifted.cap_broken, *GENERAL_LIMITS)
"""The limits on a kind of memory in a whole block."""


def build_limits(repositories: Iterable[RepositoryCandidates]) -> list[Cap]:
    """Return the limits on a primer or a warning."""
    return [make([repository.grounds for repository in repositories]) for make in GENERAL_LIMITS]


def reserve_limit_notices(draft: BlockDraft, limits: Iterable[Cap]) -> None:
    """Keep room for what the limits say about the memories that they left out."""
    for cap in limits:
        draft.reserve_notices(cap.list_notices())


def _answer_caps(
    inputs: TierInputs, chosen: Sequence[Candidate], max_answers: int, share: int
) -> list[Cap]:
    """Return the limits of a tier that answers."""
    caps = cap_less_trusted(inputs.repositories[0], chosen, max_answers, share)
    return [*inputs.limits, *caps]


def cap_less_trusted(
    own: RepositoryCandidates, chosen: Sequence[Candidate], max_answers: int, share: int
) -> list[Cap]:
    """Return the limit on the less trusted memories of the project in a tier.

    Among pins the limit is hard, and on uncommitted memories. Among answers it is on all that have
    less trust than the best one, and soft: they may also take the places that remain.
    """
    project = [candidate for candidate in chosen if candidate.scope == own.scope]
    project = [candidate for candidate in project if not own.grounds.is_guest(candidate.record)]
    ranks = {
        candidate.record.path: own.grounds.rank(
            candidate.record, own.origins[candidate.record.path].trust
        )
        for candidate in project
    }
    best = max(ranks.values(), default=0)
    is_pinned = any(candidate.tier == PINNED for candidate in project)
    below = min(best, 1) if is_pinned else best
    places = max(1, int(max_answers * own.grounds.gates.local_share))
    reason = f"beside the more trusted, uncommitted memories get {places} of {max_answers} places"
    return [
        Cap(
            lambda candidate: (
                candidate.scope == own.scope and ranks.get(candidate.record.path, below) < below
            ),
            reason,
            places,
            max(1, int(share * own.grounds.gates.local_share)),
            is_soft=not is_pinned,
        )
    ]
