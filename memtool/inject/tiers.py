"""Tiers: the rows of a block, and the one loop that fills them.

A tier has a source of candidates, a maximum number of them, and a share of the tokens. Tiers are
filled in order, each from the budget that is left. A memory that does not fit is left out whole,
never cut inside a sentence.
"""

from __future__ import annotations

from memtool.inject.block import (
    escape_line,
    escape_value,
    quote_line,
    write_block,
    write_passage,
)
from memtool.inject.budget import BYTES_PER_TOKEN, estimate_tokens, measure_bytes
from memtool.inject.candidates import build_verdict
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Protocol

    from memtool.inject.block import BlockFormat, BlockItem, Passage
    from memtool.inject.candidates import Candidate, CandidateVerdict
    from memtool.inject.select import Chosen
    from memtool.memory.memory import Memory

    Write = Callable[[Candidate, bool], str]
    """Gives the text of a candidate, whole or as its statement."""

    class MemorySource(Protocol):
        """Whose memories a tier shows: how they are written, listed, and known to a session."""

        @property
        def scope(self) -> str:
            """The scope of its candidates."""

        @property
        def notice(self) -> str:
            """The notice before a block with one of its memories, once per session."""

        def build_passage(self, candidate: Candidate, *, is_whole: bool) -> Passage:
            """Return the text of a candidate, whole or its statement."""

        def build_item(self, entry: BlockEntry) -> BlockItem:
            """Return the item of a memory in the block."""

        def list_versions(self, entries: Iterable[BlockEntry]) -> tuple[tuple[str, str], ...]:
            """Return the versions that the session sees with these entries."""


WHOLE_TOKENS = 250
"""A memory is shown whole up to this size, else its statement."""


class BlockEntry(Value):
    """A candidate in the block, with its text."""

    candidate: Candidate
    text: str

    @property
    def tokens(self) -> int:
        """The tokens of its text."""
        return estimate_tokens(self.text)


class Cap:
    """A limit on some candidates of a tier or a block; `fill` counts it down.

    Without `tokens` only the number counts. Beyond a soft cap candidates come last, beyond any
    other they are left out. `notice` builds the sentences about those left out.
    """

    def __init__(
        self,
        holds: Callable[[Candidate], bool],
        reason: str,
        places: int,
        tokens: int | None = None,
        *,
        is_soft: bool = False,
        notice: Callable[[Sequence[Candidate]], Iterable[str]] = lambda _candidates: (),
    ) -> None:
        self.holds = holds
        self.reason = reason
        self.places = places
        self.tokens = tokens
        self.is_soft = is_soft
        self._notice = notice
        self._refused: dict[tuple[str, str], Candidate] = {}
        """By scope and id: several tiers may bring one memory."""

    def list_notices(self) -> list[str]:
        """Return the sentences about those left out."""
        return [*self._notice([*self._refused.values()])] if self._refused else []

    def is_beyond(self, candidate: Candidate, tokens: int) -> bool:
        """Return whether a candidate with these tokens would exceed the cap."""
        if not self.holds(candidate):
            return False
        return self.places < 1 or (self.tokens is not None and tokens > self.tokens)

    def refuse(self, candidate: Candidate) -> CandidateVerdict:
        """Note a candidate as left out, and return the verdict."""
        self._refused[candidate.scope, candidate.record.id] = candidate
        return build_verdict(candidate, self.reason, is_taken=False)

    def take(self, candidate: Candidate, tokens: int, places: int = 1) -> None:
        """Count a candidate."""
        if self.holds(candidate):
            self.places -= places
            self.tokens = None if self.tokens is None else self.tokens - tokens


class _Space:
    """The budget that a tier has left while it is filled: tokens, bytes, and its caps."""

    def __init__(self, max_tokens: int, room: int, caps: Sequence[Cap]) -> None:
        self._tokens = max_tokens
        self._room = room
        self._caps = caps

    @property
    def tokens(self) -> int:
        """The tokens left."""
        return max(0, min(self._tokens, self._room // BYTES_PER_TOKEN))

    def find_caps(self, entry: BlockEntry) -> list[Cap]:
        """Return the caps that an entry would exceed."""
        return [cap for cap in self._caps if cap.is_beyond(entry.candidate, entry.tokens)]

    def fits(self, entry: BlockEntry) -> bool:
        """Return whether there is room for an entry."""
        return entry.tokens <= self._tokens and measure_bytes(entry.text) <= self._room

    def add(self, entry: BlockEntry) -> None:
        """Count an entry."""
        self._take(entry.candidate, entry.tokens, measure_bytes(entry.text), places=1)

    def try_growing(
        self, entry: BlockEntry, larger: BlockEntry, below: BlockEntry | None = None
    ) -> bool:
        """Count a larger text of an entry, and one below it; return whether both fit."""
        tokens = larger.tokens - entry.tokens
        size = measure_bytes(larger.text) - measure_bytes(entry.text)
        below_tokens, below_size = (below.tokens, measure_bytes(below.text)) if below else (0, 0)
        is_beyond = (below is not None and bool(self.find_caps(below))) or any(
            cap.holds(entry.candidate) and cap.tokens is not None and tokens > cap.tokens
            for cap in self._caps
        )
        if tokens + below_tokens > self._tokens or size + below_size > self._room or is_beyond:
            return False
        self._take(entry.candidate, tokens, size, places=0)
        if below is not None:
            self.add(below)
        return True

    def _take(self, candidate: Candidate, tokens: int, size: int, *, places: int) -> None:
        self._tokens -= tokens
        self._room -= size
        for cap in self._caps:
            cap.take(candidate, tokens, places)


def fill(
    candidates: Iterable[Candidate],
    write: Write,
    *,
    max_memories: int,
    max_tokens: int,
    room: int,
    caps: Sequence[Cap] = (),
) -> tuple[list[BlockEntry], list[CandidateVerdict]]:
    """Take candidates in order while they fit into `max_tokens` and `room` bytes.

    Each enters as its statement; then, in the same order, supplements are added, and small memories
    are shown whole, as long as they fit. Candidates beyond one of the `caps` are left out, or come
    last if the cap is soft.
    """
    space = _Space(max_tokens, room, caps)
    entries: list[BlockEntry] = []
    verdicts: list[CandidateVerdict] = []
    waiting = list(candidates)
    first_round = len(waiting)
    for place, candidate in enumerate(waiting):  # it grows by what comes last
        if len(entries) >= max_memories:
            reason = f"the tier holds {max_memories}"
            verdicts.append(build_verdict(candidate, reason, is_taken=False))
            continue
        entry = _write_brief(candidate, write)
        beyond = space.find_caps(entry)
        hard = [cap for cap in beyond if not cap.is_soft]
        if place < first_round and beyond and not hard:
            waiting.append(candidate)
        elif hard:
            verdicts.append(hard[0].refuse(candidate))
        elif not space.fits(entry):
            reason = f"over budget: {entry.tokens} tokens, {space.tokens} left"
            verdicts.append(build_verdict(candidate, reason, is_taken=False))
        else:
            space.add(entry)
            entries.append(entry)
    entries = _grow(_add_supplements(entries, write, space), write, space)
    verdicts += [
        build_verdict(entry.candidate, f"{entry.tokens} tokens", is_taken=True) for entry in entries
    ]
    return entries, verdicts


def _write_brief(candidate: Candidate, write: Write) -> BlockEntry:
    """Return the entry of a candidate in the fewest bytes: its statement, unless all is shorter."""
    brief = write(candidate, False)
    whole = brief if _is_long(candidate.record.memory, brief) else write(candidate, True)
    return BlockEntry(candidate, min(whole, brief, key=measure_bytes))


def _add_supplements(
    entries: Sequence[BlockEntry], write: Write, space: _Space
) -> list[BlockEntry]:
    """Return the entries, each with its supplement below it if both still fit.

    A supplement is shown in brief, else by its title. One that is an entry of its own stays where
    it is.
    """
    places = {entry.candidate.record.id: place for place, entry in enumerate(entries)}
    supplied: list[BlockEntry] = []
    for place, entry in enumerate(entries):
        supplement = entry.candidate.supplement
        if supplement is None or places.get(supplement.record.id, place) < place:
            supplied.append(entry)
            continue
        larger = _write_brief(entry.candidate.replace(is_supplied=True), write)
        forms: list[BlockEntry | None] = [None]
        if supplement.record.id not in places:
            titled = supplement.replace(is_title_only=True)
            forms = [BlockEntry(form, write(form, False)) for form in (supplement, titled)]
        unit = [entry]
        for below in forms:
            if space.try_growing(entry, larger, below):
                unit = [larger] if below is None else [larger, below]
                places.setdefault(supplement.record.id, place)
                break
        supplied += unit
    return supplied


def _grow(entries: Sequence[BlockEntry], write: Write, space: _Space) -> list[BlockEntry]:
    """Return the entries, each whole if it is small enough and fits into the rest of the budget."""
    grown = []
    for entry in entries:
        candidate = entry.candidate
        if not _is_long(candidate.record.memory, entry.text):
            whole = BlockEntry(candidate, write(candidate, True))
            if whole.tokens <= WHOLE_TOKENS and space.try_growing(entry, whole):
                entry = whole  # noqa: PLW2901  # the same memory, larger
        grown.append(entry)
    return grown


def _is_long(memory: Memory, brief: str) -> bool:
    """Return whether a memory is always shown in brief; writing it adds to its size.

    Most are, and a whole one of some pages need then not be written, only to be left out.
    """
    least = len("".join(memory.body.split()))  # blank lines are not written
    return least > WHOLE_TOKENS * BYTES_PER_TOKEN and least > measure_bytes(brief)


class Tier(Value):
    """A row of a block: its name, the source of its candidates, and its limits.

    `choose` gets the candidates already in the block, and returns those worth showing, in order. At
    most `max_memories` of them are taken, in `max_tokens`, within the `caps` on the chosen ones. A
    tier with a `title` is a section of a primer; its `lines` come first, and without a limit if
    `max_tokens` is None. They are content, and marked as such, unless `is_quoted` is off.

    `source` writes candidates that are not from the usual repositories, and `reserved` bytes are
    kept for its notice.
    """

    name: str
    choose: Callable[[Sequence[Candidate]], Chosen] | None = None
    max_memories: int = 0
    max_tokens: int | None = None
    caps: Callable[[Sequence[Candidate]], Sequence[Cap]] = lambda _chosen: ()
    title: str = ""
    lines: tuple[str, ...] = ()
    is_quoted: bool = True
    source: MemorySource | None = None
    reserved: int = 0


class BlockDraft:
    """A block while its tiers are filled: the entries so far, and the bytes left."""

    def __init__(self, write: Write, form: BlockFormat, room: int) -> None:
        self.room = room
        self.form = form
        self.texts: list[str] = []
        self.entries: list[BlockEntry] = []
        self.verdicts: list[CandidateVerdict] = []
        self.sections: dict[str, int] = {}
        """The tokens of each section, by the name of its tier."""
        self.line_counts: dict[str, int] = {}
        """The lines of each section that fit, by the name of its tier."""
        self.sources: list[MemorySource] = []
        """Those of the tiers that bring their own."""
        self._notices: list[str] = []
        self._head: list[str] = []
        self._head_room = 0
        self._write = write

    def fill(self, tier: Tier) -> list[CandidateVerdict]:
        """Take the candidates of a tier, as far as they fit; return the verdict on each."""
        head, end = self._build_frame(tier.title)
        room = self.room - measure_bytes(head) - measure_bytes(end) - tier.reserved
        texts = self._fitting_lines(tier, room)
        self.line_counts[tier.name] = self.line_counts.get(tier.name, 0) + len(texts)
        fates: list[CandidateVerdict] = []
        if tier.choose is not None:
            write = self._write if tier.source is None else make_writer([tier.source], self.form)
            self.sources += [] if tier.source is None else [tier.source]
            chosen, dropped = tier.choose([entry.candidate for entry in self.entries])
            entries, fates = fill(
                chosen,
                write,
                max_memories=tier.max_memories,
                max_tokens=tier.max_tokens or 0,
                room=room,
                caps=tier.caps(chosen),
            )
            self.verdicts += dropped + fates
            self.entries += entries
            texts += [entry.text for entry in entries]
        if texts and tier.title:
            body = "".join(texts)
            end = "" if body.endswith(f"\n{end}") else end  # one blank line is enough
            texts = [f"{head}{body}{end}"]
            self.sections[tier.name] = self.sections.get(tier.name, 0) + estimate_tokens(texts[0])
        self._add(texts)
        return fates

    def _build_frame(self, title: str) -> tuple[str, str]:
        """Return the text before and after a section with this title; empty without one."""
        if not title:
            return "", ""
        head = self.form.section.format(title=escape_value(title, self.form.escapes))
        return head, self.form.section_end

    def _fitting_lines(self, tier: Tier, room: int) -> list[str]:
        """Return the first lines of a tier that fit into a number of bytes, and into its share."""
        if tier.max_tokens is not None:
            beyond = self.room - tier.max_tokens * BYTES_PER_TOKEN
            room -= max(0, beyond)
        lines = []
        for line in tier.lines:
            lines.append(quote_line(line) if tier.is_quoted else f"{escape_line(line)}\n")
            room -= measure_bytes(lines[-1])
            if room < 0:
                return lines[:-1]
        return lines

    def reserve_notices(self, sentences: Iterable[str]) -> bool:
        """Keep room for sentences of our own, unless they do not all fit; tell whether it did."""
        lines = [f"{escape_line(sentence)}\n" for sentence in sentences]
        is_room = measure_bytes("".join(lines)) <= self.room
        if is_room:
            self._notices += lines
            self.room -= measure_bytes("".join(lines))
        return is_room and bool(lines)

    def place_notices(self) -> None:
        """Put the reserved notices below the entries so far."""
        self.texts += self._notices
        self._notices = []

    def reserve_head(self, sentences: Iterable[str], max_lines: int) -> None:
        """Keep room for the longest of some sentences, of which `place_head` gets some."""
        sizes = sorted(
            (measure_bytes(f"{escape_line(line)}\n") for line in sentences), reverse=True
        )
        self._head_room = min(sum(sizes[:max_lines]), max(0, self.room))
        self.room -= self._head_room

    def place_head(self, sentences: Iterable[str]) -> None:
        """Put the sentences that fit below the preamble, and free the other room."""
        for line in map(escape_line, sentences):
            size = measure_bytes(f"{line}\n")
            if size > self._head_room:
                break
            self._head.append(line)
            self._head_room -= size
        self.room += self._head_room
        self._head_room = 0

    def _add(self, texts: Sequence[str]) -> None:
        self.texts += texts
        self.room -= measure_bytes("".join(texts))

    def add_titles(self, heading: str, rows: Sequence[str]) -> int:
        """Put as many rows as fit below everything else, after a heading if there is anything.

        Return the number of rows.
        """
        head = [f"{escape_line(heading)}\n"] if self.texts else []
        lines = [*head, *map(quote_line, rows)]
        while measure_bytes("".join(lines)) > self.room and len(lines) > len(head):
            lines.pop()
        count = len(lines) - len(head)
        if count:
            self._add(lines)
        return count

    def count_tokens(self, name: str) -> int:
        """Return the tokens of the entries of a tier."""
        return sum(entry.tokens for entry in self.entries if entry.candidate.tier == name)

    def render(self, preamble: str) -> str:
        """Return the block; empty if it has no entry."""
        return write_block(self.texts, self.form, "\n".join([preamble, *self._head]))


def make_writer(sources: Iterable[MemorySource], form: BlockFormat) -> Write:
    """Return a function that writes a candidate of any source."""
    by_scope = {source.scope: source for source in sources}

    def write(candidate: Candidate, is_whole: bool) -> str:  # noqa: FBT001  # one of two texts
        shown = by_scope[candidate.scope].build_passage(candidate, is_whole=is_whole)
        return write_passage(shown, form)

    return write
