"""Ranking: the factors by which the relevance of a hit is multiplied, one table.

Relevance comes from words (0 to 1: the share of the best match, times what that one holds of the
question, so that scores of two questions can be compared), and what is not relevant gets no factor
at all. Each factor is near 1 and bounded, so that it orders what is about equally relevant, and
cannot lift what is not. The table holds the order in which factors are shown.

Recency was measured on questions asked as of their day, recall@5 without and with it: PEPs .582
and .645, tracked issues .883 and .900, ADRs .562 and .537 (two questions of 80; nDCG@10 .463 and
.512). Undated questions pay for it: PEPs .705 and .701, ADRs and issues nothing. A file that is
open gives tracked issues nDCG@10 .850 to .853 where the memory names it, and its directory alone
nothing. Whether an issue was still open at that second adds nothing to its day: .900 where `action`
weighs 1.05 or 1.1, .887 at 1.15. All others have not been measured on real questions, so they weigh
little: no set holds the history that says which files change together, or what was shown how often.
The weight of a category is the user's, and counts whole. How often a memory was shown counts in one
clone alone, so it weighs little, and nothing where a question is asked again as of another moment.
"""

from __future__ import annotations

import math

from memtool.memory import lifecycle
from memtool.memory.drift import BROKEN
from memtool.memory.lifecycle import PRESETS, Fading
from memtool.search.features import flat, governed
from memtool.store.tree import Record
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from memtool.index.reader import IndexReader
    from memtool.memory.lifecycle import Pace
    from memtool.memory.memory import Memory
    from memtool.search.drift import DriftWitness
    from memtool.search.features import Facts
    from memtool.store.config import Config

RECENCY = 0.4
"""What a memory of this second gains; it fades by `decay.preset`."""

UNIMPORTANT = 0.9
"""What a memory of no importance weighs ..."""

IMPORTANCE = 0.2
"""... and how much more one of importance 1 does."""

GOVERNED = 0.1
"""What governing an open file gains ..."""

TOGETHER = 0.05
"""... what governing a file that git says changes together with it does ..."""

BESIDE = 0.03
"""... and what naming another file of its directory does."""

TRIGGERED = 0.25

KIND_SAID = 0.1

KIND_OF_TYPE = 0.03

WORK = 0.05

MOST_ACCESS = 0.2

LEAST_ACCESSES = 3
"""From so many on accesses count: one or two are no use yet."""

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
"""What is due for review counts as a candidate does: nobody vouches for it any more, or not yet."""

DRIFTED = 0.85
"""What a broken memory weighs, as one that is due does; one that changed loses nothing."""

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
"""By the kind of the best source: what anybody can look up, what somebody answers for, what a
program said, and what only one private log holds."""

QUALITY = {"resolved": 1.03, "unresolved": 0.93}
"""Where git can tell: whether every commit and file that is cited resolves, however many these are.
"""

KINDS = ("how", "what", "when", "where", "which", "who", "why")

KIND_TYPES = {"why": "decision", "how": "semantic", "when": "episodic"}
"""The type of memory that mostly answers a kind of question, where a memory does not say it."""


MOST_READ = 20_000
"""Characters of a text in which trigger phrases are looked for."""

MOST_LEAD = 12
"""Words at the beginning of a text among which the kind of the question is looked for."""


class Situation(Value):
    """What is asked, beside its words: by which files, in which kind of question, and so on.

    `companions` are the files that change together with `files`, which were not named. `words` is
    the text as `facts.flat` gives it. `trust` tells the level of a record, `drift` what became of
    the files that it names, and whether what it cites resolves; None where it counts for nothing.
    `accesses` tells how often an id was shown, None where nobody counts; that counts with `access`
    (0 to 0.2), and, where `is_counting` says so, slows the `fading`.
    """

    files: tuple[str, ...] = ()
    companions: tuple[str, ...] = ()
    words: str = ""
    kinds: frozenset[str] = frozenset()
    trust: Callable[[Record], str] | None = None
    drift: DriftWitness | None = None
    accesses: Callable[[str], int] | None = None
    access: float = 0.0
    fading: Fading = lifecycle.USUAL
    is_counting: bool = False


PLAIN = Situation()


class Subject:
    """A memory that is weighed, with all that a factor may ask about it.

    `kept` is the share that time has left of it, 0 to 1; worked out if it is not given.
    """

    __slots__ = ("_kept", "at", "facts", "memory", "record")

    def __init__(
        self, record: Record, facts: Facts, at: Situation, kept: float | None = None
    ) -> None:
        self.record = record
        self.memory = record.memory
        self.facts = facts
        self.at = at
        self._kept = kept

    @property
    def kept(self) -> float:
        """Share that time has left of the memory, 0 to 1."""
        if self._kept is None:
            at, now = self.at, self.facts.now
            accesses = at.accesses(self.record.id) if at.is_counting and at.accesses else None
            categories = self.facts.categories
            self._kept = lifecycle.kept(self.memory, now, categories, at.fading, accesses)
        return self._kept


class Factor(Value):
    """One row: `weigh` gives the factor of a subject, which is held between `least` and `most`.

    Memories of one kind have most factors in common. `varies` tells of a kind and a situation
    whether they may differ; a factor that `fades` differs by their age alone.
    """

    name: str
    least: float
    most: float
    doc: str
    weigh: Callable[[Subject], float]
    varies: Callable[[Memory, Situation], object] = lambda _kind, _at: False
    fades: bool = False

    def of(self, subject: Subject) -> float:
        """Return the factor of a subject, within its bounds."""
        factor = self.weigh(subject)
        if self.least <= factor <= self.most:
            return factor
        return max(self.least, min(factor, self.most))


def situation(text: str, files: tuple[str, ...]) -> Situation:
    """Return what a text asks beside its words; a kind of question is one of its first words."""
    words = flat(text[:MOST_READ])
    kinds = frozenset(word for word in words.split()[:MOST_LEAD] if word in KINDS)
    return Situation(files=files, words=words, kinds=kinds)


def fading_of(config: Config) -> Fading:
    """Return how the settings let memories fade."""
    return Fading(config.text("decay.preset"), config.number("decay.half_life_days"))


def is_counting(config: Config) -> bool:
    """Tell whether accesses slow the fading: as the settings say, else as the preset does."""
    is_set = "decay.accesses" in config.given
    preset = PRESETS[config.text("decay.preset")]
    return bool(config.setting("decay.accesses")) if is_set else preset.counts


def _importance(subject: Subject) -> float:
    kept = subject.kept if PRESETS[subject.at.fading.preset].scales else 1.0
    return UNIMPORTANT + IMPORTANCE * subject.memory.importance * kept


def _category(subject: Subject) -> float:
    row = subject.facts.categories.get(subject.memory.category)
    return row.weight if row else 1.0


def is_near(record: Record, files: tuple[str, ...]) -> bool:
    """Tell whether a memory governs one of the files, or names it as a source."""
    named = governed(record) if files else []
    if not named:
        return False
    from memtool.store.files import governs  # most prompts come without files

    return any(governs(entry, path) for entry in named for path in files)


def _files(subject: Subject) -> float:
    record, at = subject.record, subject.at
    if not at.files:
        return 1.0
    if is_near(record, at.files):
        return 1 + GOVERNED
    if is_near(record, at.companions):
        return 1 + TOGETHER
    folders = {path.rpartition("/")[0] for path in at.files} - {""}
    is_beside = any(entry.rpartition("/")[0] in folders for entry in governed(record))
    return 1 + BESIDE if is_beside else 1.0


def _trigger(subject: Subject) -> float:
    words = subject.at.words
    phrases = map(flat, subject.memory.items("trigger_phrases") if words else ())
    return 1 + TRIGGERED if any(p.strip() and p in words for p in phrases) else 1.0


def _source(subject: Subject) -> float:
    drift = subject.at.drift
    quality = "" if drift is None else drift.quality(subject.record)
    if quality:
        return QUALITY[quality]
    kinds = (source.partition(":")[0] for source in subject.memory.items("source"))
    return max((SOURCE.get(kind, 1.0) for kind in kinds), default=1.0)


def _question(subject: Subject) -> float:
    memory, kinds = subject.memory, subject.at.kinds
    if not kinds:
        return 1.0
    own = {word for kind in memory.items("question_types") for word in flat(kind).split()}
    if own:
        return 1.0 if kinds.isdisjoint(own) else 1 + KIND_SAID
    types = {KIND_TYPES.get(kind) for kind in kinds}
    return 1 + KIND_OF_TYPE if memory.type in types else 1.0


def _access(subject: Subject) -> float:
    at = subject.at
    count = at.accesses(subject.record.id) if at.access and at.accesses else 0
    return 1 + at.access * min(1.0, math.log10(1 + count) / 2) if count >= LEAST_ACCESSES else 1.0


def _is_broken(subject: Subject) -> bool:
    drift = subject.at.drift
    return drift is not None and drift.level(subject.record) == BROKEN


FACTORS = (
    Factor(
        "recency",
        1.0,
        1 + RECENCY,
        "1.4 when confirmed just now, fading to 1 by decay.preset; pinned memories do not fade",
        lambda subject: 1 + RECENCY * subject.kept,
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
        "0.85 for a memory whose category's time is over since somebody confirmed it",
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
        "0.9 for importance 0, 1 where nobody said, 1.1 for 1; "
        "by each decay.preset but steady of what time has left of it",
        _importance,
        fades=True,
    ),
    Factor(
        "trust",
        0.97,
        1.03,
        "local, committed, trusted or signed",
        lambda subject: TRUST[subject.at.trust(subject.record)] if subject.at.trust else 1.0,
        varies=lambda _kind, at: at.trust,
    ),
    Factor(
        "drift",
        DRIFTED,
        1.0,
        "0.85 for a memory that is broken: a file that it names is "
        "gone, or a name or cited lines of it are",
        lambda subject: DRIFTED if _is_broken(subject) else 1.0,
        varies=lambda _kind, at: at.drift,
    ),
    Factor(
        "source",
        0.93,
        1.03,
        "1.03 where all commits and files that it cites resolve, 0.93 "
        "where one does not (see memtool verify); else by its best source: a person or page "
        "before a tool, and that before a private session",
        _source,
        varies=lambda _kind, _at: True,
    ),
    Factor(
        "files",
        1.0,
        1 + GOVERNED,
        "1.1 where it governs a file that is open, 1.05 where it "
        "governs one that changes together with it in git, 1.03 where it names one in the same "
        "directory",
        _files,
        varies=lambda _kind, at: at.files,
    ),
    Factor(
        "trigger",
        1.0,
        1 + TRIGGERED,
        "1.25 where one of its trigger phrases is said",
        _trigger,
        varies=lambda kind, at: at.words and kind.text("trigger_phrases"),
    ),
    Factor(
        "question",
        1.0,
        1 + KIND_SAID,
        "1.1 where its question types name the kind of the "
        "question (how, why, …); without any 1.03 where its type mostly answers that",
        _question,
        varies=lambda kind, at: at.kinds and kind.text("question_types"),
    ),
    Factor(
        "action",
        1.0,
        1 + WORK,
        "1.05 where somebody has to act on it",
        lambda subject: 1 + WORK * (subject.memory.text("action_required") == "true"),
    ),
    Factor(
        "awaiting",
        1.0,
        1 + WORK,
        "1.05 where it waits for a decision or implementation",
        lambda subject: 1 + WORK * bool(subject.memory.text("awaiting")),
    ),
    Factor(
        "access",
        1.0,
        1 + MOST_ACCESS,
        "up to the setting search.access more, for a memory "
        "that was shown a hundred times; nothing below three times",
        _access,
        varies=lambda _kind, at: at.access and at.accesses,
    ),
)

_FADING = tuple(factor for factor in FACTORS if factor.fades)


class KindWeights(Value):
    """What memories of one kind have in common for one question.

    `sample` is one of them, as far as they are alike. `factors` has all factors, 1 for those that
    each memory is asked for: `varying`. `most` bounds the product of all that do not fade. `pace`
    is how they fade from when they were written, None where there is more to it.
    """

    sample: Record
    factors: dict[str, float]
    varying: tuple[Factor, ...]
    most: float
    pace: Pace | None


class Weigher:
    """Weighs the documents of a catalog for one question: what all of a kind have, only once.

    Most documents that are looked at are not among the best; for these no memory is opened.
    """

    def __init__(self, index: IndexReader, facts: Facts, at: Situation) -> None:
        self._index = index
        self._facts = facts
        self._at = at
        self._kinds: dict[tuple[int, int], KindWeights] = {}

    def most(self, number: int) -> float:
        """Return the most that the product of all factors can be; nothing is unpacked for it."""
        kind, kept = self._of_kind(number)
        sample = Subject(kind.sample, self._facts, self._at, 1.0 if kept is None else kept)
        return math.prod((factor.of(sample) for factor in _FADING), start=kind.most)

    def weigh(self, number: int, record: Record) -> dict[str, float]:
        """Return every factor of a document, as `weigh` does."""
        kind, kept = self._of_kind(number)
        subject = Subject(record, self._facts, self._at, kept)
        return kind.factors | {factor.name: factor.of(subject) for factor in kind.varying}

    def _of_kind(self, number: int) -> tuple[KindWeights, float | None]:
        """Return the kind of a document and what is left of it, None where it must be opened."""
        part, local = self._index.part(number)
        place = (part.first, part.memories.row(local).kind)
        kind = self._kinds.get(place)
        if kind is None:
            kind = self._kinds[place] = self._weights(part.memories.kind(local))
        if kind.pace is None:
            return kind, None
        return kind, kind.pace.kept(self._facts.now - part.memories.written(local))

    def _weights(self, memory: Memory) -> KindWeights:
        facts, at, sample = self._facts, self._at, Record(memory, "", "")
        subject = Subject(sample, facts, at)
        factors: dict[str, float] = {}
        varying: list[Factor] = []
        for factor in FACTORS:
            is_varying = factor.fades or factor.varies(memory, at)
            factors[factor.name] = 1.0 if is_varying else factor.of(subject)
            varying += [factor] if is_varying else []
        reach = (factor.most for factor in varying if not factor.fades)
        most = math.prod([*factors.values(), *reach]) * _ROUNDED
        is_plain = not (at.is_counting or memory.text("checked"))
        pace = lifecycle.pace(memory, facts.categories, at.fading) if is_plain else None
        return KindWeights(sample, factors, tuple(varying), most, pace)


_ROUNDED = 1.0 + 1e-9
"""A product of the same factors in another order differs by less."""


def weigh(record: Record, facts: Facts, at: Situation = PLAIN) -> dict[str, float]:
    """Return every factor of a record by name, in the order of the table."""
    subject = Subject(record, facts, at)
    return {factor.name: factor.of(subject) for factor in FACTORS}
