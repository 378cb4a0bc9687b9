"""Ranking: one table of the factors by which the relevance of a hit is multiplied.

Relevance comes from words. It is 0 to 1: the share of the best match, times the share of the
question that this match contains, so that scores of two questions can be compared. Hits without
relevance get no factor. Each factor is bounded and near 1, so that it orders hits of about equal
relevance but cannot promote an irrelevant one. The table has the order in which factors are shown.

Recency was measured on questions asked as of their day, recall@5 without and with it: PEPs .582 and
.645, tracked issues .883 and .900, ADRs .562 and .537 (two questions of 80; nDCG@10 .463 and .512).
Undated questions pay for it: PEPs .705 and .701, ADRs and issues nothing. An open file raises
nDCG@10 on tracked issues from .850 to .853 if the memory names it; its directory alone adds
nothing. Whether an issue was still open at that second adds nothing to its day: .900 with `action`
at 1.05 or 1.1, .887 at 1.15. The other factors have not been measured on real questions, so they
weigh little: no data set has the history that shows which files change together, or how often a
memory was shown. The weight of a category is the user's choice and counts fully. The number of
times a memory was shown is known to one clone only, so it weighs little, and nothing if a question
is asked as of another moment.
"""

from __future__ import annotations

import math

from memtool.memory import lifecycle
from memtool.memory.drift import BROKEN
from memtool.memory.lifecycle import PRESETS
from memtool.search.features import NO_MOVES, normalize_words
from memtool.store.tree import Record
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from memtool.index.reader import IndexReader
    from memtool.memory.lifecycle import Pace
    from memtool.memory.memory import Memory
    from memtool.search.drift import DriftWitness
    from memtool.search.features import Facts, Moves
    from memtool.store.provenance import TrustLevels

RECENCY_GAIN = 0.4
"""Gain of a memory confirmed this second; it fades by `decay.preset`."""

MIN_IMPORTANCE_FACTOR = 0.9
"""Factor for importance 0."""

IMPORTANCE_RANGE = 0.2
"""Added to MIN_IMPORTANCE_FACTOR at importance 1."""

GOVERNED_GAIN = 0.1
"""Gain for governing an open file."""

COMPANION_GAIN = 0.05
"""Gain for governing a file that, by git history, changes together with an open one."""

SAME_FOLDER_GAIN = 0.03
"""Gain for naming another file in the directory of an open one."""

TRIGGER_GAIN = 0.25

QUESTION_KIND_GAIN = 0.1

TYPE_GAIN = 0.03

OPEN_WORK_GAIN = 0.05

MAX_ACCESS_GAIN = 0.2

MIN_ACCESSES = 3
"""Accesses below this count for nothing: one or two are not yet a pattern."""

CONFIDENCE = {"low": 0.93, "medium": 1.0, "high": 1.05}

STATUS = {
    "pinned": 1.1,
    "confirmed": 1.0,
    "candidate": 0.85,
    "deprecated": 0.6,
    "archived": 0.7,
    "deleted": 0.5,
}

CURRENT = {True: 1.0, False: 0.7}

DUE = {True: 0.85, False: 1.0}
"""A memory due for review weighs as much as a candidate: its confirmation is out of date."""

BROKEN_FACTOR = 0.85
"""Same as a memory that is due; one that merely changed loses nothing."""

TRUST = {"local": 0.97, "committed": 1.0, "trusted": 1.02, "signed": 1.03}

SOURCE = {
    "commit": 1.02,
    "file": 1.02,
    "human": 1.01,
    "url": 1.01,
    "memory": 1.0,
    "tool": 0.99,
    "session": 0.98,
}
"""By kind of the best source: public, vouched for, from a program, or only in a private log."""

QUALITY = {"resolved": 1.03, "unresolved": 0.93}
"""If git can tell: whether all cited commits and files resolve, however many there are."""

KINDS = ("how", "what", "when", "where", "which", "who", "why")

KIND_TYPES = {"why": "decision", "how": "semantic", "when": "episodic"}
"""The memory type that usually answers a kind of question, for memories without question types."""


MAX_READ_CHARACTERS = 20_000
"""Characters of a text that are searched for trigger phrases."""

MAX_LEADING_WORDS = 12
"""Words at the beginning of a text that are searched for the kind of question."""


class RankingContext(Value):
    """The context of a question besides its words: open files, kind of question, settings.

    `companions` are the files that usually change together with `files`. `words` is the text as
    normalized by `features.normalize_words`. `trust` returns the level of a record; `drift` returns
    what happened to the files that it names, and whether its sources resolve. Both may be None, and
    then count for nothing. `moves` maps renamed files, so that a memory is near under the new path
    too. `accesses` returns how often an id was shown, None if not counted. That count has the
    weight `access` (0 to 0.2), and slows the `fading` if that preset counts.
    """

    files: tuple[str, ...] = ()
    companions: tuple[str, ...] = ()
    words: str = ""
    kinds: frozenset[str] = frozenset()
    trust: TrustLevels | None = None
    drift: DriftWitness | None = None
    moves: Moves = NO_MOVES
    accesses: Callable[[str], int] | None = None
    access: float = 0.0
    fading: str = lifecycle.STEADY

    @property
    def is_counting(self) -> bool:
        """Whether accesses slow the fading."""
        return self.accesses is not None and PRESETS[self.fading].counts

    def expect(self, records: Collection[Record]) -> None:
        """Prefetch trust and drift of the memories that are weighed next."""
        if self.trust is not None:
            self.trust.prefetch(records)
        if self.drift is not None:
            self.drift.expect(records)


NO_CONTEXT = RankingContext()


class Subject:
    """A memory being weighed, with everything a factor may need.

    `retention` is the share of its weight that remains after fading, 0 to 1; computed if not given.
    """

    __slots__ = ("_retention", "context", "facts", "memory", "record")

    def __init__(
        self, record: Record, facts: Facts, context: RankingContext, retention: float | None = None
    ) -> None:
        self.record = record
        self.memory = record.memory
        self.facts = facts
        self.context = context
        self._retention = retention

    @property
    def retention(self) -> float:
        """Share of its weight that remains after fading, 0 to 1."""
        if self._retention is None:
            context, now = self.context, self.facts.now
            accesses = (
                context.accesses(self.record.id)
                if context.accesses and context.is_counting
                else None
            )
            categories = self.facts.categories
            self._retention = lifecycle.compute_retention(
                self.memory, now, categories, context.fading, accesses
            )
        return self._retention


class Factor(Value):
    """One row: `weigh` returns the factor of a subject, clamped to `minimum` and `maximum`.

    Memories of one kind share most factors. `varies` returns whether they may differ for a kind and
    a context. A factor that `fades` differs by age alone.
    """

    name: str
    minimum: float
    maximum: float
    doc: str
    weigh: Callable[[Subject], float]
    varies: Callable[[Memory, RankingContext], object] = lambda _kind, _at: False
    fades: bool = False

    def compute(self, subject: Subject) -> float:
        """Return the factor of a subject, within its bounds."""
        factor = self.weigh(subject)
        if self.minimum <= factor <= self.maximum:
            return factor
        return max(self.minimum, min(factor, self.maximum))


def parse_context(text: str, files: tuple[str, ...]) -> RankingContext:
    """Return the context of a text: its normalized words, and its kinds of question."""
    words = normalize_words(text[:MAX_READ_CHARACTERS])
    kinds = frozenset(word for word in words.split()[:MAX_LEADING_WORDS] if word in KINDS)
    return RankingContext(files=files, words=words, kinds=kinds)


def _importance(subject: Subject) -> float:
    retention = subject.retention if PRESETS[subject.context.fading].scales else 1.0
    return MIN_IMPORTANCE_FACTOR + IMPORTANCE_RANGE * subject.memory.importance * retention


def _category(subject: Subject) -> float:
    row = subject.facts.categories.get(subject.memory.category)
    return row.weight if row else 1.0


def is_near(record: Record, files: tuple[str, ...], moves: Moves = NO_MOVES) -> bool:
    """Return whether a memory governs one of the files, or names it as a source."""
    named = moves.list_governed_paths(record) if files else []
    if not named:
        return False
    from memtool.store.files import matches_or_contains  # most prompts come without files

    return any(matches_or_contains(entry, path) for entry in named for path in files)


def _files(subject: Subject) -> float:
    record, context = subject.record, subject.context
    if not context.files:
        return 1.0
    if is_near(record, context.files, context.moves):
        return 1 + GOVERNED_GAIN
    if is_near(record, context.companions, context.moves):
        return 1 + COMPANION_GAIN
    folders = {path.rpartition("/")[0] for path in context.files} - {""}
    is_beside = any(
        entry.rpartition("/")[0] in folders for entry in context.moves.list_governed_paths(record)
    )
    return 1 + SAME_FOLDER_GAIN if is_beside else 1.0


def _trigger(subject: Subject) -> float:
    words = subject.context.words
    phrases = map(normalize_words, subject.memory.items("trigger_phrases") if words else ())
    return 1 + TRIGGER_GAIN if any(p.strip() and p in words for p in phrases) else 1.0


def _source(subject: Subject) -> float:
    drift = subject.context.drift
    quality = "" if drift is None else drift.find_quality(subject.record)
    if quality:
        return QUALITY[quality]
    kinds = (source.partition(":")[0] for source in subject.memory.items("source"))
    return max((SOURCE.get(kind, 1.0) for kind in kinds), default=1.0)


def _question(subject: Subject) -> float:
    memory, kinds = subject.memory, subject.context.kinds
    if not kinds:
        return 1.0
    own = {
        word for kind in memory.items("question_types") for word in normalize_words(kind).split()
    }
    if own:
        return 1.0 if kinds.isdisjoint(own) else 1 + QUESTION_KIND_GAIN
    types = {KIND_TYPES.get(kind) for kind in kinds}
    return 1 + TYPE_GAIN if memory.type in types else 1.0


def _access(subject: Subject) -> float:
    context = subject.context
    count = context.accesses(subject.record.id) if context.access and context.accesses else 0
    return (
        1 + context.access * min(1.0, math.log10(1 + count) / 2) if count >= MIN_ACCESSES else 1.0
    )


def _is_broken(subject: Subject) -> bool:
    drift = subject.context.drift
    return drift is not None and drift.find_level(subject.record) == BROKEN


FACTORS = (
    Factor(
        "recency",
        1.0,
        1 + RECENCY_GAIN,
        "1.4 when confirmed just now, fading to 1 by decay.preset; pinned memories do not fade",
        lambda subject: 1 + RECENCY_GAIN * subject.retention,
        fades=True,
    ),
    Factor(
        "status",
        0.5,
        1.1,
        "pinned before confirmed before candidate before deprecated",
        lambda subject: STATUS[subject.memory.status],
    ),
    Factor(
        "current",
        0.7,
        1.0,
        "0.7 for a memory that is superseded, where it is asked for",
        lambda subject: CURRENT[subject.facts.lineage.is_head(subject.record.id)],
        varies=lambda _kind, _at: True,
    ),
    Factor(
        "due",
        0.85,
        1.0,
        "0.85 for a memory whose category's time is over since it was confirmed",
        lambda subject: DUE[subject.facts.is_due(subject.record)],
        varies=lambda _kind, _at: True,
    ),
    Factor("category", 0.5, 2.0, "the weight of the category, held between 0.5 and 2", _category),
    Factor(
        "confidence",
        0.93,
        1.05,
        "low, medium or high",
        lambda subject: CONFIDENCE[subject.memory.confidence],
    ),
    Factor(
        "importance",
        0.9,
        1.1,
        "0.9 for importance 0, 1 if unset, 1.1 for 1; "
        "by each decay.preset but steady of what time has left of it",
        _importance,
        fades=True,
    ),
    Factor(
        "trust",
        0.97,
        1.03,
        "local, committed, trusted or signed",
        lambda subject: (
            TRUST[subject.context.trust(subject.record)] if subject.context.trust else 1.0
        ),
        varies=lambda _kind, at: at.trust,
    ),
    Factor(
        "drift",
        BROKEN_FACTOR,
        1.0,
        "0.85 for a memory that is broken: a file that it names is "
        "gone, or a name or cited lines of it are",
        lambda subject: BROKEN_FACTOR if _is_broken(subject) else 1.0,
        varies=lambda _kind, at: at.drift,
    ),
    Factor(
        "source",
        0.93,
        1.03,
        "1.03 where all commits and files that it cites resolve, 0.93 "
        "where one does not (see memtool verify); else by its best source: a user or page "
        "before a tool, and that before a private session",
        _source,
        varies=lambda _kind, _at: True,
    ),
    Factor(
        "files",
        1.0,
        1 + GOVERNED_GAIN,
        "1.1 where it governs a file that is open, 1.05 where it "
        "governs one that changes together with it in git, 1.03 where it names one in the same "
        "directory",
        _files,
        varies=lambda _kind, at: at.files,
    ),
    Factor(
        "trigger",
        1.0,
        1 + TRIGGER_GAIN,
        "1.25 where one of its trigger phrases is said",
        _trigger,
        varies=lambda kind, at: at.words and kind.text("trigger_phrases"),
    ),
    Factor(
        "question",
        1.0,
        1 + QUESTION_KIND_GAIN,
        "1.1 where its question types name the kind of the "
        "question (how, why, …); without any 1.03 where its type mostly answers that",
        _question,
        varies=lambda kind, at: at.kinds and kind.text("question_types"),
    ),
    Factor(
        "action",
        1.0,
        1 + OPEN_WORK_GAIN,
        "1.05 if a user has to act on it",
        lambda subject: 1 + OPEN_WORK_GAIN * (subject.memory.text("action_required") == "true"),
    ),
    Factor(
        "awaiting",
        1.0,
        1 + OPEN_WORK_GAIN,
        "1.05 where it waits for a decision or implementation",
        lambda subject: 1 + OPEN_WORK_GAIN * bool(subject.memory.text("awaiting")),
    ),
    Factor(
        "access",
        1.0,
        1 + MAX_ACCESS_GAIN,
        "up to the setting search.access_boost more, for a memory "
        "that was shown a hundred times; nothing below three times",
        _access,
        varies=lambda _kind, at: at.access and at.accesses,
    ),
)

_FADING = tuple(factor for factor in FACTORS if factor.fades)


class KindWeights(Value):
    """What memories of one kind have in common for one question.

    `sample` is one of them, reduced to what they share. `factors` has all factors, with 1 for those
    in `varying`, which each memory is asked for. `maximum` bounds the product of all that do not
    fade. `pace` is how they fade from the time they were written, None if that is not enough to
    know.
    """

    sample: Record
    factors: dict[str, float]
    varying: tuple[Factor, ...]
    maximum: float
    pace: Pace | None


class Weigher:
    """Weighs the documents of a catalog for one question, computing shared factors once per kind.

    Most documents examined are not among the best; their memories are never opened.
    """

    def __init__(self, index: IndexReader, facts: Facts, context: RankingContext) -> None:
        self._index = index
        self._facts = facts
        self._context = context
        self._kinds: dict[tuple[int, int], KindWeights] = {}

    def maximum(self, number: int) -> float:
        """Return an upper bound for the product of all factors, without opening the memory."""
        kind, retention = self._find_kind(number)
        sample = Subject(
            kind.sample, self._facts, self._context, 1.0 if retention is None else retention
        )
        return math.prod((factor.compute(sample) for factor in _FADING), start=kind.maximum)

    def weigh(self, number: int, record: Record) -> dict[str, float]:
        """Return every factor of a document, as `weigh` does."""
        kind, retention = self._find_kind(number)
        subject = Subject(record, self._facts, self._context, retention)
        return kind.factors | {factor.name: factor.compute(subject) for factor in kind.varying}

    def _find_kind(self, number: int) -> tuple[KindWeights, float | None]:
        """Return the kind of a document and its retention, None if it must be opened."""
        part, local = self._index.find_part(number)
        place = (part.first, part.memories.row(local).kind)
        kind = self._kinds.get(place)
        if kind is None:
            kind = self._kinds[place] = self._compute_weights(part.memories.kind(local))
        if kind.pace is None:
            return kind, None
        return kind, kind.pace.retention(self._facts.now - part.memories.written(local))

    def _compute_weights(self, memory: Memory) -> KindWeights:
        facts, context, sample = self._facts, self._context, Record(memory, "", "")
        subject = Subject(sample, facts, context)
        factors: dict[str, float] = {}
        varying: list[Factor] = []
        for factor in FACTORS:
            is_varying = factor.fades or factor.varies(memory, context)
            factors[factor.name] = 1.0 if is_varying else factor.compute(subject)
            varying += [factor] if is_varying else []
        reach = (factor.maximum for factor in varying if not factor.fades)
        maximum = math.prod([*factors.values(), *reach]) * _ROUNDING_MARGIN
        is_plain = not (context.is_counting or memory.text("checked"))
        pace = lifecycle.find_pace(memory, facts.categories, context.fading) if is_plain else None
        return KindWeights(sample, factors, tuple(varying), maximum, pace)


_ROUNDING_MARGIN = 1.0 + 1e-9
"""A product of the same factors in another order differs by less than this."""


def weigh(record: Record, facts: Facts, context: RankingContext = NO_CONTEXT) -> dict[str, float]:
    """Return every factor of a record by name, in the order of the table."""
    subject = Subject(record, facts, context)
    return {factor.name: factor.compute(subject) for factor in FACTORS}
