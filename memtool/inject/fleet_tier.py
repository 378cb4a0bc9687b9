"""The fleet tier: what memories of other repositories add to an answer, below all local tiers.

Nobody here vouches for them, and whoever may write to one of those repositories may try to speak
through this tier. So it is small, and its rules are stricter than those of any other:

- a memory must answer the prompt by itself, by the answer gate and by how rare words are in the
  memories of the project, which no other repository can change;
- there are at most `MOST` of them, one of a repository, in `PERCENT` of the budget and in what the
  local tiers leave over; no score of one decides about another, so that none silences another;
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

from memtool.index import scoring
from memtool.index.analyzer import ENGLISH
from memtool.index.stored_fields import SELF_DESCRIBING, plain_text
from memtool.inject import select
from memtool.inject.block import BlockItem, passage, write_passage
from memtool.inject.candidates import FLEET, Candidate, Cap, fill, rounded, verdict
from memtool.inject.select import Wording, says_same
from memtool.inject.session_seen import notice
from memtool.memory.trust import TRUST_LEVELS
from memtool.search import answer_gate
from memtool.search.answer_gate import Strictness
from memtool.store.provenance import SHORT
from memtool.value import Value, digest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from memtool.inject.block import BlockFormat
    from memtool.inject.candidates import BlockEntry, CandidateVerdict, Eligibility
    from memtool.inject.session_seen import Once
    from memtool.store.config import Config
    from memtool.store.snapshot import Record

MOST_PROMPT = 20_000
"""Characters of a prompt that others are asked about, and must answer."""
MOST = 3
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


class ForeignMemory(Value):
    """A memory of another repository that may answer a prompt.

    `record` holds the memory with secrets masked, its path there and an id of its bytes. `commit`
    is the full id of the commit it was read from, `text` the memory as terms in English, `score`
    about 1 for the best.
    """

    record: Record
    repository: str
    commit: str
    text: bytes
    score: float
    factors: Mapping[str, float] = {}


class LocalAnswer(Value):
    """What the fleet tier comes after: `speaking` are all local candidates that may be shown.

    `grounds` are those of the project, `once` knows what the session has seen, and `form` and
    `settings` are those of the block.
    """

    grounds: Eligibility
    speaking: Sequence[Candidate]
    once: Once
    settings: Config
    form: BlockFormat


class FleetTier(Value):
    """The tier as it stands in the block, and what the session has seen by it.

    `preamble` is what the session has to be told about it, empty where it was told.
    """

    texts: tuple[str, ...] = ()
    items: tuple[BlockItem, ...] = ()
    verdicts: tuple[CandidateVerdict, ...] = ()
    versions: tuple[tuple[str, str], ...] = ()
    preamble: str = ""


def objection(grounds: Eligibility) -> str:
    """Return why the fleet is not asked, though it could be; empty where it is."""
    if grounds.least_trust == TRUST_LEVELS[0]:
        return ""
    return (
        f"the fleet was not asked: inject.trust is {grounds.least_trust}, which nothing of it has"
    )


def tier(
    prompt: str, found: Sequence[ForeignMemory], local: LocalAnswer, share: int, room: int
) -> FleetTier:
    """Return what of the fleet is shown beside a local answer, often nothing.

    `found` are in order, the best first; `share` is a number of tokens, `room` one of bytes.
    """
    told = NOTE if notice(NOTE) not in local.once.seen else ""
    candidates, verdicts = _answering(prompt, found, local)
    reasons = [_objection(one, local) for one in candidates]
    verdicts += [
        verdict(one, reason, is_taken=False)
        for one, reason in zip(candidates, reasons, strict=True)
        if reason
    ]
    candidates = [one for one, why in zip(candidates, reasons, strict=True) if not why]
    candidates, dropped = select.yielding(local.speaking, candidates)
    candidates, repeated = _unlike(candidates)
    verdicts += [*dropped, *repeated]
    names = dict.fromkeys(one.repository for one in candidates)
    caps = [_one_of(name) for name in names]

    def write(candidate: Candidate, is_whole: bool) -> str:  # noqa: FBT001  # one of two texts
        shown = passage(
            candidate.record.memory,
            f"{candidate.record.id}@{candidate.commit[:SHORT]}",
            FLEET,
            _marks(candidate, local.grounds),
            is_whole=is_whole,
        )
        return write_passage(shown, local.form)

    left = room - len(told.encode())
    taken, fates = fill(candidates, write, MOST, share, max(0, left), caps)
    verdicts += fates
    if not taken:
        return FleetTier(verdicts=tuple(verdicts))
    versions = [_version(one.candidate) for one in taken]
    return FleetTier(
        texts=tuple(one.text for one in taken),
        items=tuple(map(_item, taken)),
        verdicts=tuple(verdicts),
        versions=(*([notice(NOTE)] if told else []), *versions) if local.once.session else (),
        preamble=told,
    )


def _one_of(repository: str) -> Cap:
    return Cap(lambda one: one.repository == repository, f"one of {repository} is shown", 1)


def _answering(
    prompt: str, found: Sequence[ForeignMemory], local: LocalAnswer
) -> tuple[list[Candidate], list[CandidateVerdict]]:
    """Return what holds enough of a prompt to answer it, and why the rest does not."""
    index = local.grounds.index
    said = scoring.question(prompt)
    usual, special = answer_gate.limits(local.settings)
    strictness = {category: _stricter(one) for category, one in special.items()}
    keeper = answer_gate.Gatekeeper(said, said, index.count, index.df, _stricter(usual), strictness)
    categories = [one.record.memory.category for one in found]
    texts = [
        one.text
        if SELF_DESCRIBING.isdisjoint(one.record.memory.fields)
        else plain_text(one.record, ENGLISH)
        for one in found
    ]
    shares = [keeper.share(*pair) for pair in zip(texts, categories, strict=True)]
    candidates = [_candidate(one) for one in found]
    kept, dropped = [], []
    passing = answer_gate.which_pass(shares)
    for candidate, share, passes in zip(candidates, shares, passing, strict=True):
        if passes:
            kept.append(candidate)
        else:
            dropped.append(verdict(candidate, answer_gate.objection(share), is_taken=False))
    return kept, dropped


def _stricter(usual: Strictness) -> Strictness:
    return Strictness(min(1.0, SHARE * usual.share), WORDS * usual.most, FLOOR * usual.floor)


def _candidate(one: ForeignMemory) -> Candidate:
    """Return a memory as a candidate, without the conflicts that it says are accepted."""
    memory = one.record.memory
    return Candidate(
        one.record.replace(memory=memory.with_fields(conflicts_accepted=None)),
        FLEET,
        one.score,
        one.factors,
        scope=FLEET,
        repository=one.repository,
        commit=one.commit,
    )


def _objection(candidate: Candidate, local: LocalAnswer) -> str:
    """Return why a memory of the fleet is not shown whatever else is; empty where it may be."""
    memory = candidate.record.memory
    if memory.id in local.grounds.tree.by_id:
        return "the project has a memory of this id"
    if _version(candidate) in local.once.seen:
        return "this session has seen it"
    return local.grounds.objection(memory)


def _unlike(candidates: Sequence[Candidate]) -> select.Chosen:
    """Return those that no earlier one says nearly as well, and why the rest is left out."""
    kept: list[Candidate] = []
    dropped: list[CandidateVerdict] = []
    said: list[tuple[Candidate, Wording]] = []
    for candidate in candidates:
        wording = Wording(candidate.record.memory)
        same = next(
            (one for one, other in said if wording.is_equal(other) or says_same(wording, other)),
            None,
        )
        if same is None:
            said.append((candidate, wording))
            kept.append(candidate)
        else:
            reason = f"{same.record.id} of {same.repository} says the same"
            dropped.append(verdict(candidate, reason, is_taken=False))
    return kept, dropped


def _marks(candidate: Candidate, grounds: Eligibility) -> tuple[str, ...]:
    """Return where a memory is from, and the warnings that it is shown with."""
    memory = candidate.record.memory
    marks = [f"[fleet {candidate.repository}@{candidate.commit[:SHORT]}]"]
    due = grounds.due_since(memory)
    if due:
        marks.append(f"[DUE] for review since {due}")
    return tuple(marks)


def _version(candidate: Candidate) -> tuple[str, str]:
    """Return the line by which a session knows that it has seen a memory of the fleet."""
    name = f"{candidate.repository}\n{candidate.record.path}"
    return f"{FLEET}-{digest(name.encode(errors='replace'))}", candidate.record.oid


def _item(taken: BlockEntry) -> BlockItem:
    candidate = taken.candidate
    return BlockItem(
        id=candidate.record.id,
        tier=FLEET,
        scope=FLEET,
        score=rounded(candidate.score),
        tokens=taken.tokens,
        commit=candidate.commit,
        trust=FLEET,
        drift=None,
        drift_level=None,
        conflicts=(),
        text=taken.text,
        repository=candidate.repository,
    )
