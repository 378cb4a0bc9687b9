"""Answers: the block for a prompt and files, filled tier by tier.

`TIERS` has a row for each tier, in order. Whoever calls may add rows below them.
"""

from __future__ import annotations

from memtool.index.reader import EXACT
from memtool.inject import changed_here, drifted, file_rules, select
from memtool.inject.block import PREAMBLE, REMINDER, Injected, frame_bytes
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
from memtool.inject.file_rules import MOST_RULE_TOKENS, MOST_RULES
from memtool.inject.gather import collect_all, collect_rules
from memtool.inject.select import no_threshold
from memtool.inject.session_seen import SILENCED, notice
from memtool.inject.tiers import BlockDraft, Cap, Tier, writer
from memtool.search import answer_gate
from memtool.value import Value

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
    """Makes a tier from what there is for a block; one without candidates if it has none."""


class TierInputs(Value):
    """What a tier is made from: the request, what was collected for it, and the block so far.

    `limits` hold for the whole block.
    """

    request: GatherRequest
    repositories: Sequence[RepositoryCandidates]
    shares: Budget
    draft: BlockDraft
    limits: Sequence[Cap]

    @property
    def retrieval_tokens(self) -> int:
        """What may answer a prompt, by what was pinned."""
        return self.shares.to_retrieval(self.draft.spent(PINNED)).retrieval


def project_pins(repositories: Sequence[RepositoryCandidates], most: int, share: int) -> Tier:
    """Return the tier of what is pinned in the project; in the user's repository if it is alone."""
    own = repositories[0]
    return Tier(
        PINNED,
        lambda shown: own.choose(own.pinned, shown=shown),
        max_memories=most,
        max_tokens=share,
        caps=lambda chosen: trust_caps(own, chosen, most, share),
    )


def global_pins(repositories: Sequence[RepositoryCandidates], share: int) -> Tier:
    """Return the tier of the user's own pins beside a project, with places of its own.

    A project that fills its tier must not silence them.
    """
    others = [(one, one.pinned) for one in repositories[1:]]
    return Tier(
        PINNED,
        lambda shown: choose_in_order(others, shown=shown),
        max_memories=repositories[0].grounds.gates.global_most,
        max_tokens=share,
    )


def _project_pins(inputs: TierInputs) -> Tier:
    most = inputs.request.context.project.strict_settings.count("inject.pinned_most")
    return project_pins(inputs.repositories, most, inputs.shares.pinned)


def _global_pins(inputs: TierInputs) -> Tier:
    tier = global_pins(inputs.repositories, inputs.shares.pinned)
    return tier.replace(caps=lambda _chosen: inputs.limits)


def _rules(inputs: TierInputs) -> Tier:
    share = min(MOST_RULE_TOKENS, inputs.retrieval_tokens)
    return Tier(
        GOVERNING,
        lambda shown: choose_in_order(
            [(one, one.rules) for one in inputs.repositories], shown=shown
        ),
        max_memories=MOST_RULES,
        max_tokens=share,
        caps=lambda chosen: _answer_caps(inputs, chosen, MOST_RULES, share),
    )


def _hits(inputs: TierInputs) -> Tier:
    settings = inputs.request.context.project.strict_settings
    threshold = answer_gate.threshold(settings)
    most = settings.count("inject.retrieval_most")
    share = inputs.retrieval_tokens - inputs.draft.spent(GOVERNING)

    def choose(shown: Sequence[Candidate]) -> Chosen:
        hits = [(one, one.hits) for one in inputs.repositories]
        chosen, dropped = choose_in_order(hits, threshold, shown)
        return [one.replace(tier=one.role.tier) if one.role else one for one in chosen], dropped

    return Tier(
        RETRIEVAL,
        choose,
        max_memories=most,
        max_tokens=share,
        caps=lambda chosen: _answer_caps(inputs, chosen, most, share),
    )


PINNED_TIERS: tuple[MakeTier, ...] = (_project_pins, _global_pins)
TIERS: tuple[MakeTier, ...] = (*PINNED_TIERS, _rules, _hits)
"""The tiers of an answer, in order: what is pinned, what governs the files that are named, and what
the search found."""


def build_block(
    request: GatherRequest, form: BlockFormat, shares: Budget, added: Iterable[MakeTier] = ()
) -> Injected:
    """Return the block for a prompt and files.

    `shares` bounds the whole text. The tiers that are `added` follow below all others. Global
    memories are left out for a revision.

    Raises:
        MemtoolError: there is no memory directory, or no such revision or time.
    """
    request = _with_named_files(request)
    inputs = _inputs(request, form, shares)
    draft = inputs.draft
    is_told = draft.reserve_notices(override_notices(inputs.repositories))
    for make in TIERS:
        draft.fill(make(inputs))
    _report_omissions(inputs)
    granted: dict[str, int] = {}
    for make in added:
        tier = make(inputs)
        draft.fill(tier)
        if tier.max_tokens:
            granted[tier.name] = tier.max_tokens
    shares = shares.to_retrieval(draft.spent(PINNED), draft.spent(SUMMARY)).replace(added=granted)
    return injected(request, inputs.repositories, draft, shares, is_told=is_told)


def _with_named_files(request: GatherRequest) -> GatherRequest:
    context = request.context
    named = file_rules.named_files(context, request.prompt, at=request.at)
    files = [*request.files, *file_rules.inside(context, named)]
    return request.replace(files=tuple(dict.fromkeys(files)))


def _inputs(request: GatherRequest, form: BlockFormat, shares: Budget) -> TierInputs:
    """Return what the tiers are made from, with an empty block."""
    repositories = collect_all(request)
    everything = [one for repository in repositories for one in repository.candidates]
    frame = frame_bytes(form, preamble_of(repositories, everything))
    room = shares.total * BYTES_PER_TOKEN - frame
    draft = BlockDraft(writer(repositories, form), form, room)
    limits = [make([one.grounds for one in repositories]) for make in LIMITS]
    return TierInputs(request, repositories, shares, draft, limits)


def _report_omissions(inputs: TierInputs) -> None:
    """Tell, below what answers, what is left out for a reason that the agent should know."""
    draft = inputs.draft
    draft.reserve_notices(filter(None, (cap.notice for cap in inputs.limits)))
    draft.place_notices()
    for repository in inputs.repositories:
        draft.verdicts += repository.yielded + _not_found(repository)


def _not_found(repository: RepositoryCandidates) -> list[CandidateVerdict]:
    """Return verdicts about what the hits replace, and what was not found for one reason."""
    grounds = repository.grounds
    replaced = grounds.standing.lineage.supersedes
    olds = {old for hit in repository.hits for old in replaced.get(hit.record.id, ())}
    records = [grounds.tree[old] for old in sorted(olds) if old in grounds.tree]
    reasons = [(record.id, grounds.objection(record.memory)) for record in records]
    reasons += [(one.record.id, one.reason) for one in repository.found.missed]
    return [
        CandidateVerdict(id_, RETRIEVAL, is_taken=False, reason=reason, scope=grounds.scope)
        for id_, reason in reasons
    ]


def crowded_out(request: GatherRequest, form: BlockFormat) -> list[CandidateVerdict]:
    """Return the pinned memories for which there is no room in the tier, with the reasons.

    Raises:
        MemtoolError: as `build_block` does.
    """
    context = request.context
    inputs = _inputs(
        request, form, plan(context.project.strict_settings, context.caller.budget_tokens, None)
    )
    fates = [fate for make in PINNED_TIERS for fate in inputs.draft.fill(make(inputs))]
    return [fate for fate in fates if not fate.is_taken]


def build_rules_block(request: GatherRequest, form: BlockFormat, budget_tokens: int) -> Injected:
    """Return what governs files that were changed, the most important first; often nothing.

    Raises:
        MemtoolError: there is no memory directory.
    """
    own = collect_rules(request)
    most = min(budget_tokens, MOST_RULE_TOKENS)
    room = most * BYTES_PER_TOKEN - frame_bytes(form, preamble_of([own], own.rules))
    draft = BlockDraft(writer([own], form), form, room)
    is_told = draft.reserve_notices(override_notices([own]))
    draft.fill(
        Tier(
            GOVERNING,
            lambda shown: own.choose(own.rules, shown=shown),
            max_memories=MOST_RULES,
            max_tokens=most,
        )
    )
    draft.place_notices()
    shares = plan(request.context.project.strict_settings, most, None)
    return injected(request, [own], draft, shares, is_told=is_told)


def injected(
    request: GatherRequest,
    repositories: Sequence[RepositoryCandidates],
    draft: BlockDraft,
    shares: Budget,
    *,
    is_told: bool,
    text: str | None = None,
) -> Injected:
    """Return a block with what is known about the memories in it; `text` is its own if not given.

    `is_told` says whether it also names what was taken out of use here.
    """
    sources: list[MemorySource] = [*repositories, *draft.sources]
    by_scope = {source.scope: source for source in sources}
    shown = [entry.candidate for entry in draft.entries]
    if text is None:
        text = draft.written(preamble_of(repositories, shown, draft.sources))
    versions: list[tuple[str, str]] = []
    if repositories[0].seen.session and text:
        versions += map(notice, unseen_notices(repositories, shown, draft.sources))
    for source in sources:
        own = [entry for entry in draft.entries if entry.candidate.scope == source.scope]
        versions += source.versions(own)
    for repository in repositories if is_told else ():
        if repository.seen.session:
            versions += [(id_, SILENCED) for id_ in repository.unreported_overrides]
    freshness = (one.view.tree.freshness for one in repositories)
    return Injected(
        budget=shares,
        items=tuple(by_scope[entry.candidate.scope].item(entry) for entry in draft.entries),
        text=text,
        format=draft.form.name,
        session=request.session,
        freshness=next((one for one in freshness if one != EXACT), EXACT),
        expired=sum(one.found.expired for one in repositories),
        silenced=tuple(id_ for one in repositories for id_ in one.silenced),
        prompt=request.prompt,
        verdicts=tuple(draft.verdicts),
        versions=tuple(versions),
        degraded=any(one.found.is_degraded for one in repositories),
    )


def unseen_notices(
    repositories: Sequence[RepositoryCandidates],
    shown: Iterable[Candidate],
    others: Iterable[MemorySource] = (),
) -> list[str]:
    """Return what has to be said about memories, and the session was not told yet."""
    scopes = {one.scope for one in shown}
    wanted = [PREAMBLE]
    wanted += [one.notice for one in (*repositories, *others) if one.scope in scopes and one.notice]
    seen = repositories[0].seen.seen  # a session has one past, in the clone that it works in
    return [text for text in wanted if notice(text) not in seen]


def preamble_of(
    repositories: Sequence[RepositoryCandidates],
    shown: Iterable[Candidate],
    others: Iterable[MemorySource] = (),
) -> str:
    """Return what precedes memories: the preamble once per session, with the notices about them.

    After that one short line remains, since a block must never be read as instruction.
    """
    unseen = unseen_notices(repositories, shown, others)
    return "".join(unseen if PREAMBLE in unseen else [REMINDER, *unseen])


def override_notices(repositories: Iterable[RepositoryCandidates]) -> list[str]:
    """Return what is to be said about memories that were taken out of use here, once in a session.

    An agent must not take for granted that nothing was decided, only because somebody edited or
    removed a file that the trusted ref still has.
    """
    sentences = []
    for one in repositories:
        if one.unreported_overrides:
            verb = "memtool" if one.scope == PROJECT else "memtool --global"
            what = changed_here.silence(one.unreported_overrides, one.view.ref)
            sentences.append(f"[CHANGED] {what} (`{verb} show ID --at {one.view.ref}`)")
    return sentences


def choose_in_order(
    groups: Iterable[tuple[RepositoryCandidates, Sequence[Candidate]]],
    threshold: Threshold = no_threshold,
    shown: Sequence[Candidate] = (),
) -> Chosen:
    """Choose from candidates of each repository by itself, and put all into one order.

    `threshold` gives a share of the best score, `shown` is what is in the block already. Where
    nothing else decides the first repository comes first.
    """
    chosen: list[Candidate] = []
    verdicts: list[CandidateVerdict] = []
    for repository, candidates in groups:
        fresh, dropped = repository.choose(candidates, threshold, shown)
        verdicts += dropped
        if chosen and fresh:
            chosen, dropped = select.joined(chosen, fresh, threshold)
            verdicts += dropped
        else:
            chosen = chosen or fresh
    return chosen, verdicts


def _global_cap(sides: Sequence[Eligibility]) -> Cap:
    """Return the limit on the user's memories in a block, which stand beside the project's."""
    first = sides[0]
    most = first.gates.global_most
    reason = f"a block holds {most} global memories (inject.global_most)"
    return Cap(lambda one: first.scope == PROJECT and one.scope != PROJECT, reason, most)


LIMITS: tuple[Callable[[Sequence[Eligibility]], Cap], ...] = (
    _global_cap,
    drifted.broken_cap,
)
"""The limits on memories of a kind in a whole block."""


def _answer_caps(
    inputs: TierInputs, chosen: Sequence[Candidate], most: int, share: int
) -> list[Cap]:
    """Return the limits of a tier that answers."""
    caps = trust_caps(inputs.repositories[0], chosen, most, share)
    return [*inputs.limits, *caps]


def trust_caps(
    own: RepositoryCandidates, chosen: Sequence[Candidate], most: int, share: int
) -> list[Cap]:
    """Return what the less trusted of the project may take of a tier beside the more trusted.

    Of the pinned tier it is what nobody committed, and all that it gets; of what answers a prompt
    it is whatever has less trust than the best, and it gets what those leave over as well.
    """
    project = [one for one in chosen if one.scope == own.scope]
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
            lambda one: one.scope == own.scope and ranks.get(one.record.path, below) < below,
            reason,
            places,
            max(1, int(share * own.grounds.gates.local_share)),
            is_soft=not is_pinned,
        )
    ]
