"""The fleet tier: what memories of other repositories add to an answer, below all local tiers.

Nobody here vouches for them, and whoever may write to one of those repositories may try to speak
through this tier. So it is small, and its rules are stricter than those of any other:

- a memory must answer the prompt by itself, by the answer gate and by how rare words are in the
  memories of the project, which no other repository can change;
- there are at most `MAX_MEMORIES` of them, one of a repository, in `PERCENT` of the budget and in
  what the local tiers leave over; no score of one decides about another, so that none silences
  another;
- what a local memory of the answer says as well, or may contradict, gives way to it, and so does
  what has the id of a local one;
- nothing that a memory says of itself counts: it is not pinned, its triggers, tags, aliases, globs
  and the conflicts that it calls accepted are passed over.

The gate is far stricter than the local one (`SHARE`, `WORDS`, `FLOOR`), since among very many
memories there is always one with a rare word of a prompt. Measured from stores of 60 memories, with
all documents of the two other public sets of `bench/silence.py` as the fleet: `hit`, questions with
an answer in the fleet that have it among three; `own`, questions about the store's own subject that
get something; `talk` and `coding`, prompts about no project that do.

    gate                     hit    own    talk   coding
    the local one            .624   .697   .194   .578
    1.75, 1.7 and 2 times    .618   .292   .078   .267
    2, 2.5 and 3 times       .590   .090   .050   .078
    2.5, 3.3 and 2.5 times   .534   .022   .056   .111

From stores of 700 to 1,500 memories, which know better how rare a word is, the same gates give
.624, .596, .534 and .466 of the hits, and .438, .067, .000 and .000 of the questions about their
own.

Each is marked with its repository and the commit that it was read from. Where the settings demand
more trust than `local`, nothing of the fleet has it. Who brings memories (`fleet/ask.py`) has
checked them, masked secrets in them, and kept the time.
"""

from __future__ import annotations

from memtool.fleet import ask
from memtool.fleet.backend import FLEET
from memtool.index.analyzer import ENGLISH
from memtool.index.scoring import question
from memtool.index.text import SELF_DESCRIBING, plain_text
from memtool.inject import select
from memtool.inject.block import BlockItem, passage
from memtool.inject.budget import BYTES_PER_TOKEN
from memtool.inject.candidates import Candidate, rounded, verdict
from memtool.inject.session_seen import notice
from memtool.inject.tiers import Cap, Tier
from memtool.memory.trust import TRUST_LEVELS
from memtool.search import answer_gate
from memtool.search.answer_gate import Gatekeeper, Strictness
from memtool.search.comparison import ComparedText, says_same
from memtool.store.provenance import SHORT
from memtool.value import Value, digest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from memtool.fleet.rank import FleetHit
    from memtool.index.reader import IndexReader
    from memtool.inject.answer import TierInputs
    from memtool.inject.block import Passage
    from memtool.inject.candidates import CandidateVerdict, Eligibility
    from memtool.inject.session_seen import SeenMemories
    from memtool.inject.tiers import BlockEntry
    from memtool.store.context import Context

    Ask = Callable[[Context, str, IndexReader], Sequence[FleetHit]]
    """Gives what other repositories may answer to a prompt, the best first."""

MAX_PROMPT = 20_000
"""Characters of a prompt that others are asked about, and must answer."""
MAX_MEMORIES = 3
"""Memories of other repositories in one block."""
PERCENT = 15
"""Share of all tokens of a block that they get at most."""
SHARE, WORDS, FLOOR = 2.0, 2.5, 3.0
"""By how much an answer of the fleet must hold more than a local one: of the prompt, in rare words,
and at least (`answer_gate.Strictness`)."""
NOTE = (
    "\nThose of trust fleet are of other repositories, which their marks name: nobody of this one "
    "vouches for them."
)
"""Follows the preamble of a block in which there is one, once in a session."""


def fleet_tier(inputs: TierInputs, hear: Ask = ask.hits_for_prompt) -> Tier:
    """Return what of other repositories may stand below a local answer, often nothing.

    No revision and no moment of the project knows what they say today.
    """
    request, own = inputs.request, inputs.repositories[0]
    if request.is_replay or not request.prompt.strip():
        return Tier(FLEET)
    context, least = request.context, own.grounds.least_trust
    if least != TRUST_LEVELS[0]:
        context.notes.append(
            f"the fleet was not asked: inject.trust is {least}, which nothing of it has"
        )
        return Tier(FLEET)
    left = max(0, inputs.draft.room) // BYTES_PER_TOKEN
    share = min(inputs.shares.total * PERCENT // 100, left)
    if not share:
        return Tier(FLEET)
    prompt = request.prompt[:MAX_PROMPT]
    hits = hear(context, prompt, own.grounds.index)
    return Tier(
        FLEET,
        lambda _shown: _choose(inputs, prompt, hits),
        max_memories=MAX_MEMORIES,
        max_tokens=share,
        caps=_one_of_each,
        source=ForeignSource(own.grounds, own.seen),
        reserved=0 if notice(NOTE) in own.seen.seen else len(NOTE.encode()),
    )


class ForeignSource(Value):
    """How a memory of another repository is written, listed, and known to a session.

    `grounds` are those of the project.
    """

    grounds: Eligibility
    seen: SeenMemories
    scope: str = FLEET
    notice: str = NOTE

    def passage(self, candidate: Candidate, *, is_whole: bool) -> Passage:
        """Return a candidate as it is shown, marked with where it is from."""
        memory = candidate.record.memory
        commit = candidate.commit[:SHORT]
        marks = [f"[fleet {candidate.repository}@{commit}]"]
        due = self.grounds.due_since(memory)
        if due:
            marks.append(f"[DUE] for review since {due}")
        return passage(memory, f"{memory.id}@{commit}", FLEET, tuple(marks), is_whole=is_whole)

    def item(self, entry: BlockEntry) -> BlockItem:
        """Return what is listed of a memory in the block."""
        candidate = entry.candidate
        return BlockItem(
            id=candidate.record.id,
            tier=FLEET,
            scope=FLEET,
            score=rounded(candidate.score),
            tokens=entry.tokens,
            commit=candidate.commit,
            trust=FLEET,
            text=entry.text,
            repository=candidate.repository,
        )

    def versions(self, entries: Iterable[BlockEntry]) -> tuple[tuple[str, str], ...]:
        """Return what the session sees by these entries."""
        if not self.seen.session:
            return ()
        return tuple(_version(entry.candidate) for entry in entries)


def _choose(inputs: TierInputs, prompt: str, hits: Sequence[FleetHit]) -> select.Chosen:
    """Return what answers the prompt, and what nothing local says as well or contradicts."""
    candidates, verdicts = _answering(inputs, prompt, hits)
    kept = []
    for candidate in candidates:
        reason = _objection(candidate, inputs)
        if reason:
            verdicts.append(verdict(candidate, reason, is_taken=False))
        else:
            kept.append(candidate)
    local = [one for repository in inputs.repositories for one in repository.speaking()]
    kept, dropped = select.yielding(local, kept)
    kept, repeated = _without_duplicates(kept)
    return kept, [*verdicts, *dropped, *repeated]


def _one_of_each(candidates: Sequence[Candidate]) -> list[Cap]:
    return [_one_of(name) for name in dict.fromkeys(one.repository for one in candidates)]


def _one_of(repository: str) -> Cap:
    return Cap(lambda one: one.repository == repository, f"one of {repository} is shown", 1)


def _answering(inputs: TierInputs, prompt: str, hits: Sequence[FleetHit]) -> select.Chosen:
    """Return what holds enough of a prompt to answer it, and why the rest does not."""
    index = inputs.repositories[0].grounds.index
    asked = question(prompt)
    usual, special = answer_gate.limits(inputs.request.context.project.strict_settings)
    strictness = {category: _stricter(one) for category, one in special.items()}
    keeper = Gatekeeper(asked, asked, index.count, index.df, _stricter(usual), strictness)
    shares = [keeper.share(_text_of(hit), hit.record.memory.category) for hit in hits]
    kept, dropped = [], []
    for hit, share, passes in zip(hits, shares, answer_gate.which_pass(shares), strict=True):
        candidate = _candidate(hit)
        if passes:
            kept.append(candidate)
        else:
            dropped.append(verdict(candidate, answer_gate.objection(share), is_taken=False))
    return kept, dropped


def _text_of(hit: FleetHit) -> bytes:
    """Return a memory as terms in English, without what it says of itself."""
    if SELF_DESCRIBING.isdisjoint(hit.record.memory.fields):
        return hit.candidate.text
    return plain_text(hit.record, ENGLISH)


def _stricter(usual: Strictness) -> Strictness:
    return Strictness(min(1.0, SHARE * usual.share), WORDS * usual.most, FLOOR * usual.floor)


def _candidate(hit: FleetHit) -> Candidate:
    """Return a memory as a candidate, without the conflicts that it says are accepted."""
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
    """Return why a memory of the fleet is not shown whatever else is; empty where it may be."""
    own = inputs.repositories[0]
    memory = candidate.record.memory
    if memory.id in own.grounds.tree:
        return "the project has a memory of this id"
    if _version(candidate) in own.seen.seen:
        return "this session has seen it"
    return own.grounds.objection(memory)


def _without_duplicates(candidates: Sequence[Candidate]) -> select.Chosen:
    """Return those that no earlier one says nearly as well, and why the rest is left out."""
    kept: list[tuple[Candidate, ComparedText]] = []
    dropped: list[CandidateVerdict] = []
    for candidate in candidates:
        text = ComparedText(candidate.record.memory)
        same = next(
            (one for one, other in kept if text.has_words_of(other) or says_same(text, other)),
            None,
        )
        if same is None:
            kept.append((candidate, text))
        else:
            reason = f"{same.record.id} of {same.repository} says the same"
            dropped.append(verdict(candidate, reason, is_taken=False))
    return [candidate for candidate, _text in kept], dropped


def _version(candidate: Candidate) -> tuple[str, str]:
    """Return the line by which a session knows that it has seen a memory of the fleet."""
    name = f"{candidate.repository}\n{candidate.record.path}"
    return f"{FLEET}-{digest(name.encode(errors='replace'))}", candidate.record.oid
