"""The fleet tier: memories of other repositories in a block, below all local tiers.

These memories are not reviewed here, and everyone who may write to one of those repositories could
try to reach the agent through this tier. So it is small, and stricter than any other:

- A memory must pass the answer gate by itself, with word frequencies from the project's own
  memories, which no other repository can change.
- There are at most `MAX_MEMORIES`, one per repository, within `MAX_BUDGET_PERCENT` of the budget
and
  the tokens that the local tiers leave. The score of one memory does not affect another, so none
  can suppress another.
- A memory is dropped if a local one in the block says the same, may contradict it, or has its id.
- A memory's own claims do not count: pinned status, triggers, tags, aliases, globs and accepted
  conflicts are ignored.

The gate is far stricter than the local one (`SHARE_FACTOR`, `RARE_WORDS_FACTOR`, `FLOOR_FACTOR`),
since among very many memories one always has a rare word of the prompt. Measured on stores of 60
memories, with all documents of the two other public sets of `bench/silence.py` as the fleet: `hit`
is questions with an answer in the fleet that is among the three shown; `own` is questions about the
store's own subject that get something; `talk` and `coding` are prompts about no project that do.

    gate                     hit    own    talk   coding
    the local one            .624   .697   .194   .578
    1.75, 1.7 and 2 times    .618   .292   .078   .267
    2, 2.5 and 3 times       .590   .090   .050   .078
    2.5, 3.3 and 2.5 times   .534   .022   .056   .111

On stores of 700 to 1,500 memories, whose word frequencies are more reliable, the same gates give
.624, .596, .534 and .466 for `hit`, and .438, .067, .000 and .000 for `own`.

Each memory is marked with its repository and commit. If the settings demand more trust than
`local`, the tier is empty. `fleet/ask.py` verifies the memories, masks secrets and enforces the
time limit.
"""

from __future__ import annotations

from memtool.fleet import ask
from memtool.fleet.backend import FLEET
from memtool.index.analyzer import ENGLISH
from memtool.index.scoring import parse_question
from memtool.index.text import SELF_DESCRIBING, to_plain_terms
from memtool.inject import select
from memtool.inject.block import BlockItem, build_passage, cite
from memtool.inject.budget import BYTES_PER_TOKEN
from memtool.inject.candidates import Candidate, build_verdict, round_score
from memtool.inject.remarks import Remarks
from memtool.inject.session_seen import notice_line
from memtool.inject.tiers import Cap, Tier
from memtool.memory.short_ids import ShortIds
from memtool.memory.trust import TRUST_LEVELS
from memtool.search import answer_gate
from memtool.search.answer_gate import Gatekeeper, Strictness
from memtool.search.comparison import ComparedText, says_same
from memtool.value import Value, digest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from memtool.fleet.rank import FleetHit
    from memtool.index.reader import IndexReader
    from memtool.inject.answer import TierInputs
    from memtool.inject.block import Passage
    from memtool.inject.candidates import CandidateVerdict, Eligibility
    from memtool.inject.session_seen import SeenMemories
    from memtool.inject.tiers import BlockEntry
    from memtool.store.context import Context

    Ask = Callable[[Context, str, IndexReader], Sequence[FleetHit]]
    """Returns hits from other repositories for a prompt, best first."""

ELSEWHERE = "of another repository, not reviewed here"
"""The note on a foreign memory."""
MAX_PROMPT_CHARS = 20_000
"""The fleet is searched for this beginning of a prompt, and must answer it."""
MAX_MEMORIES = 3
"""Memories of other repositories in a block."""
MAX_BUDGET_PERCENT = 15
"""Maximum share of the tokens of a block."""
SHARE_FACTOR, RARE_WORDS_FACTOR, FLOOR_FACTOR = 2.0, 2.5, 3.0
"""Factors on the local limits of the answer gate (`answer_gate.Strictness`)."""
NOTE = "\nThose of another repository are not reviewed here: check them before you rely on one."
"""Added to the preamble of the first block in a session that has such a memory."""


def build_fleet_tier(inputs: TierInputs, find_hits: Ask = ask.find_hits_for_prompt) -> Tier:
    """Build the tier of foreign memories, often empty; always for a replay.

    A replay looks at the past, and today's foreign memories do not belong to it.
    """
    request, own = inputs.request, inputs.repositories[0]
    if request.is_replay or not request.prompt.strip():
        return Tier(FLEET)
    context, min_trust = request.context, own.grounds.least_trust
    if min_trust != TRUST_LEVELS[0]:
        context.notes.append(
            f"the fleet was not asked: inject.trust is {min_trust}, which no memory of it has"
        )
        return Tier(FLEET)
    room_tokens = max(0, inputs.draft.room) // BYTES_PER_TOKEN
    max_tokens = min(inputs.shares.total * MAX_BUDGET_PERCENT // 100, room_tokens)
    if not max_tokens:
        return Tier(FLEET)
    prompt = request.prompt[:MAX_PROMPT_CHARS]
    hits = find_hits(context, prompt, own.grounds.index)
    return Tier(
        FLEET,
        lambda _shown: _choose(inputs, prompt, hits),
        max_memories=MAX_MEMORIES,
        max_tokens=max_tokens,
        caps=_cap_repositories,
        source=ForeignSource(own.grounds, own.seen, _collect_ids(hits)),
        reserved=0 if notice_line(NOTE) in own.seen.seen else len(NOTE.encode()),
    )


class ForeignSource(Value):
    """Formats foreign memories, and identifies them to a session.

    `grounds` are those of the project. `short_ids` are those of the hits, by repository: the other
    ids of a foreign repository are not at hand, and the commit of a citation tells them apart.
    """

    grounds: Eligibility
    seen: SeenMemories
    short_ids: Mapping[str, ShortIds] = {}
    scope: str = FLEET
    notice: str = NOTE

    def build_passage(self, candidate: Candidate, *, is_whole: bool) -> Passage:
        """Format a candidate, cited with its repository and commit."""
        repository, id_ = candidate.repository, candidate.record.id
        short_id = self.short_ids.get(repository, ShortIds([id_])).shorten(id_)
        return build_passage(
            candidate.record.memory,
            f"{repository} {cite(short_id, candidate.commit)}",
            Remarks(notes=(ELSEWHERE,)),
            is_whole=is_whole,
        )

    def build_item(self, entry: BlockEntry) -> BlockItem:
        """Build the entry of a memory in the list of the block."""
        candidate = entry.candidate
        return BlockItem(
            id=candidate.record.id,
            tier=FLEET,
            scope=FLEET,
            score=round_score(candidate.score),
            tokens=entry.tokens,
            commit=candidate.commit,
            trust=FLEET,
            text=entry.text,
            repository=candidate.repository,
        )

    def list_versions(self, entries: Iterable[BlockEntry]) -> tuple[tuple[str, str], ...]:
        """Return the versions of memories that these entries show to the session."""
        if not self.seen.session:
            return ()
        return tuple(_version(entry.candidate) for entry in entries)


def _collect_ids(hits: Iterable[FleetHit]) -> dict[str, ShortIds]:
    ids: dict[str, list[str]] = {}
    for hit in hits:
        ids.setdefault(hit.candidate.repository, []).append(hit.record.id)
    return {repository: ShortIds(dict.fromkeys(named)) for repository, named in ids.items()}


def _choose(inputs: TierInputs, prompt: str, hits: Sequence[FleetHit]) -> select.Chosen:
    """Choose the memories that answer the prompt and that no local one repeats or contradicts."""
    candidates, verdicts = _select_answers(inputs, prompt, hits)
    chosen = []
    for candidate in candidates:
        reason = _objection(candidate, inputs)
        if reason:
            verdicts.append(build_verdict(candidate, reason, is_taken=False))
        else:
            chosen.append(candidate)
    local = [
        local_candidate
        for repository in inputs.repositories
        for local_candidate in repository.presentable()
    ]
    chosen, dropped = select.yield_to(local, chosen)
    chosen, duplicates = _remove_duplicates(chosen)
    return chosen, [*verdicts, *dropped, *duplicates]


def _cap_repositories(candidates: Sequence[Candidate]) -> list[Cap]:
    return [
        _cap_repository(name)
        for name in dict.fromkeys(candidate.repository for candidate in candidates)
    ]


def _cap_repository(repository: str) -> Cap:
    return Cap(
        lambda candidate: candidate.repository == repository, f"one of {repository} is shown", 1
    )


def _select_answers(inputs: TierInputs, prompt: str, hits: Sequence[FleetHit]) -> select.Chosen:
    """Choose the hits that pass the answer gate, with verdicts on those that fail."""
    index = inputs.repositories[0].grounds.index
    prompt_question = parse_question(prompt)
    usual, special = answer_gate.read_limits(inputs.request.context.project.strict_settings)
    strictness = {category: _stricter(limits) for category, limits in special.items()}
    keeper = Gatekeeper(
        prompt_question, prompt_question, index.count, index.df, _stricter(usual), strictness
    )
    shares = [keeper.measure_text(_find_terms(hit), hit.record.memory.category) for hit in hits]
    passed, dropped = [], []
    for hit, share, passes in zip(hits, shares, answer_gate.select_passing(shares), strict=True):
        candidate = _build_candidate(hit)
        if passes:
            passed.append(candidate)
        else:
            dropped.append(
                build_verdict(candidate, answer_gate.format_objection(share), is_taken=False)
            )
    return passed, dropped


def _find_terms(hit: FleetHit) -> bytes:
    """Return the English terms of a memory, without its self-describing fields."""
    if SELF_DESCRIBING.isdisjoint(hit.record.memory.fields):
        return hit.candidate.text
    return to_plain_terms(hit.record, ENGLISH)


def _stricter(usual: Strictness) -> Strictness:
    return Strictness(
        min(1.0, SHARE_FACTOR * usual.min_coverage),
        RARE_WORDS_FACTOR * usual.sufficient_rare_words,
        FLOOR_FACTOR * usual.min_rare_words,
    )


def _build_candidate(hit: FleetHit) -> Candidate:
    """Build a candidate from a hit, ignoring its accepted conflicts."""
    memory = hit.record.memory
    return Candidate(
        hit.record.replace(memory=memory.with_fields(conflicts_accepted=None)),
        FLEET,
        hit.score,
        hit.factors,
        scope=FLEET,
        repository=hit.candidate.repository,
        commit=hit.candidate.commit,
    )


def _objection(candidate: Candidate, inputs: TierInputs) -> str:
    """Return why a memory is not shown, independent of the others; empty if it may be."""
    own = inputs.repositories[0]
    memory = candidate.record.memory
    if memory.id in own.grounds.tree:
        return "the project has a memory of this id"
    if _version(candidate) in own.seen.seen:
        return "this session has seen it"
    return own.grounds.find_objection(memory)


def _remove_duplicates(candidates: Sequence[Candidate]) -> select.Chosen:
    """Drop candidates that say the same as an earlier one, with verdicts on them."""
    chosen: list[tuple[Candidate, ComparedText]] = []
    dropped: list[CandidateVerdict] = []
    for candidate in candidates:
        text = ComparedText(candidate.record.memory)
        same = next(
            (
                earlier
                for earlier, other in chosen
                if text.has_same_words(other) or says_same(text, other)
            ),
            None,
        )
        if same is None:
            chosen.append((candidate, text))
        else:
            reason = f"{same.record.id} of {same.repository} says the same"
            dropped.append(build_verdict(candidate, reason, is_taken=False))
    return [candidate for candidate, _text in chosen], dropped


def _version(candidate: Candidate) -> tuple[str, str]:
    """Return the key and version by which a session records a foreign memory as seen."""
    name = f"{candidate.repository}\n{candidate.record.path}"
    return f"{FLEET}-{digest(name.encode(errors='replace'))}", candidate.record.oid
