"""Tiers: the rows of a block, and the one loop that fills them.

A tier says where its candidates come from, how many of them it takes at most, and its share of the
tokens. Tiers are filled in order, each with what the ones before it left; what does not fit is left
out whole, never cut off inside a sentence.
"""

from __future__ import annotations

from memtool.inject.block import escaped, quoted, write_block, write_passage
from memtool.inject.budget import BYTES_PER_TOKEN, size, tokens
from memtool.inject.candidates import verdict
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
    """Gives the text of a candidate, whole or as its first paragraph."""

    class MemorySource(Protocol):
        """Whose memories a tier shows: how they are written, listed, and known to a session."""

        @property
        def scope(self) -> str:
            """The scope of its candidates."""

        @property
        def notice(self) -> str:
            """What a session is told once in front of a block with one of its memories."""

        def passage(self, candidate: Candidate, *, is_whole: bool) -> Passage:
            """Return a candidate as it is shown, whole or as its first paragraph."""

        def item(self, entry: BlockEntry) -> BlockItem:
            """Return what is listed of a memory in the block."""

        def versions(self, entries: Iterable[BlockEntry]) -> tuple[tuple[str, str], ...]:
            """Return what the session sees by these entries of it."""


WHOLE_TOKENS = 250
"""A memory is shown whole up to this size, else its first paragraph."""


class BlockEntry(Value):
    """A candidate in the block, as it is written there."""

    candidate: Candidate
    text: str

    @property
    def tokens(self) -> int:
        """What its text costs."""
        return tokens(self.text)


class Cap:
    """What some candidates may take together of a tier, or of a whole block; `fill` counts it down.

    Without `tokens` only the number counts. What is beyond a soft one comes last, what is beyond
    another one not at all. `notice` gives the sentence about those that a cap left out, by their
    number.
    """

    def __init__(
        self,
        holds: Callable[[Candidate], bool],
        reason: str,
        places: int,
        tokens: int | None = None,
        *,
        is_soft: bool = False,
        notice: Callable[[int], str] | None = None,
    ) -> None:
        self.holds = holds
        self.reason = reason
        self.places = places
        self.tokens = tokens
        self.is_soft = is_soft
        self._notice = notice
        self._refused = 0

    @property
    def notice(self) -> str:
        """What the block says about those that were left out; empty for nothing."""
        return self._notice(self._refused) if self._notice and self._refused else ""

    def is_beyond(self, candidate: Candidate, tokens: int) -> bool:
        """Tell whether a candidate of so many tokens would take too much."""
        if not self.holds(candidate):
            return False
        return self.places < 1 or (self.tokens is not None and tokens > self.tokens)

    def refuse(self, candidate: Candidate) -> CandidateVerdict:
        """Count a candidate as left out, and return the verdict."""
        self._refused += 1
        return verdict(candidate, self.reason, is_taken=False)

    def take(self, candidate: Candidate, tokens: int, places: int = 1) -> None:
        """Count what a candidate takes."""
        if self.holds(candidate):
            self.places -= places
            self.tokens = None if self.tokens is None else self.tokens - tokens


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

    Each enters as its first paragraph; then what is small enough is shown whole, in the same
    order, as long as that fits too. What is beyond one of the `caps` is left out, or taken after
    all others where the cap is soft.
    """
    entries: list[BlockEntry] = []
    wholes: list[str] = []
    verdicts: list[CandidateVerdict] = []
    waiting = list(candidates)
    first_round = len(waiting)
    for place, candidate in enumerate(waiting):  # it grows by what comes last
        if len(entries) >= max_memories:
            reason = f"the tier holds {max_memories}"
            verdicts.append(verdict(candidate, reason, is_taken=False))
            continue
        brief = write(candidate, False)
        whole = brief if _is_long(candidate.record.memory, brief) else write(candidate, True)
        entry = BlockEntry(candidate, min(whole, brief, key=size))
        beyond = [cap for cap in caps if cap.is_beyond(candidate, entry.tokens)]
        hard = [cap for cap in beyond if not cap.is_soft]
        if place < first_round and beyond and not hard:
            waiting.append(candidate)
        elif hard:
            verdicts.append(hard[0].refuse(candidate))
        elif entry.tokens > max_tokens or size(entry.text) > room:
            left = max(0, min(max_tokens, room // BYTES_PER_TOKEN))
            reason = f"over budget: {entry.tokens} tokens, {left} left"
            verdicts.append(verdict(candidate, reason, is_taken=False))
        else:
            max_tokens -= entry.tokens
            room -= size(entry.text)
            for cap in caps:
                cap.take(candidate, entry.tokens)
            entries.append(entry)
            wholes.append(whole)
    entries = _grown(entries, wholes, max_tokens, room, caps)
    verdicts += [verdict(one.candidate, f"{one.tokens} tokens", is_taken=True) for one in entries]
    return entries, verdicts


def _grown(
    entries: Sequence[BlockEntry],
    wholes: Sequence[str],
    max_tokens: int,
    room: int,
    caps: Sequence[Cap],
) -> list[BlockEntry]:
    """Return the entries, each whole where that is small enough and fits into what is left."""
    grown = []
    for entry, whole in zip(entries, wholes, strict=True):
        cost = tokens(whole)
        more, more_bytes = cost - entry.tokens, size(whole) - size(entry.text)
        is_beyond = any(
            cap.holds(entry.candidate) and cap.tokens is not None and more > cap.tokens
            for cap in caps
        )
        if cost > WHOLE_TOKENS or more > max_tokens or more_bytes > room or is_beyond:
            grown.append(entry)
            continue
        for cap in caps:
            cap.take(entry.candidate, more, 0)
        max_tokens -= more
        room -= more_bytes
        grown.append(BlockEntry(entry.candidate, whole))
    return grown


def _is_long(memory: Memory, brief: str) -> bool:
    """Tell whether a memory is shown in brief whatever room there is; writing it adds to its size.

    Most are, and a whole one of some pages need then not be written, only to be left out.
    """
    least = len(memory.body.strip("\r\n"))
    return least > WHOLE_TOKENS * BYTES_PER_TOKEN and least > size(brief)


class Tier(Value):
    """One row of a block: its name, where its candidates come from, and what it may take.

    `choose` is given the candidates that are in the block already, and returns what is worth
    showing, in order. At most `max_memories` of that are taken, in `max_tokens`, within the `caps`
    on what was chosen. A tier with a `title` is a section of a primer; `lines` come first in it,
    and without a limit where `max_tokens` is None.

    `source` writes the candidates where they are not of the repositories that every tier knows,
    and `reserved` bytes are kept for its notice.
    """

    name: str
    choose: Callable[[Sequence[Candidate]], Chosen] | None = None
    max_memories: int = 0
    max_tokens: int | None = None
    caps: Callable[[Sequence[Candidate]], Sequence[Cap]] = lambda _chosen: ()
    title: str = ""
    lines: tuple[str, ...] = ()
    source: MemorySource | None = None
    reserved: int = 0


class BlockDraft:
    """A block whose tiers are being filled: what is in it so far, and the bytes that are left."""

    def __init__(self, write: Write, form: BlockFormat, room: int) -> None:
        self.room = room
        self.form = form
        self.texts: list[str] = []
        self.entries: list[BlockEntry] = []
        self.verdicts: list[CandidateVerdict] = []
        self.sections: dict[str, int] = {}
        """The tokens of each section, by the name of its tier."""
        self.sources: list[MemorySource] = []
        """Those of the tiers that bring their own."""
        self._notices: list[str] = []
        self._write = write

    def fill(self, tier: Tier) -> list[CandidateVerdict]:
        """Take what a tier chooses, as far as it fits; return what became of each of them."""
        head, end = self._frame(tier.title)
        room = self.room - size(head) - size(end) - tier.reserved
        texts = self._lines(tier, room)
        fates: list[CandidateVerdict] = []
        if tier.choose is not None:
            write = self._write if tier.source is None else writer([tier.source], self.form)
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
            self.sections[tier.name] = self.sections.get(tier.name, 0) + tokens(texts[0])
        self._add(texts)
        return fates

    def _frame(self, title: str) -> tuple[str, str]:
        """Return what stands around a section of this title; nothing without one."""
        if not title:
            return "", ""
        head = self.form.section.format(title=escaped(title, self.form.head_escapes))
        return head, self.form.section_end

    def _lines(self, tier: Tier, room: int) -> list[str]:
        """Return the first lines of a tier that fit into a number of bytes, and into its share."""
        if tier.max_tokens is not None:
            beyond = self.room - tier.max_tokens * BYTES_PER_TOKEN
            room -= max(0, beyond)
        lines = []
        for line in tier.lines:
            lines.append(quoted(line, self.form.escapes))
            room -= size(lines[-1])
            if room < 0:
                return lines[:-1]
        return lines

    def reserve_notices(self, sentences: Iterable[str]) -> bool:
        """Keep room for sentences of our own, unless they do not all fit; tell whether it did."""
        lines = [f"{escaped(sentence, self.form.escapes)}\n" for sentence in sentences]
        is_room = size("".join(lines)) <= self.room
        if is_room:
            self._notices += lines
            self.room -= size("".join(lines))
        return is_room and bool(lines)

    def place_notices(self) -> None:
        """Put the sentences that were reserved below what is in the block so far."""
        self.texts += self._notices
        self._notices = []

    def _add(self, texts: Sequence[str]) -> None:
        self.texts += texts
        self.room -= size("".join(texts))

    def spent(self, name: str) -> int:
        """Return the tokens of the entries of a tier."""
        return sum(entry.tokens for entry in self.entries if entry.candidate.tier == name)

    def written(self, preamble: str) -> str:
        """Return the block; empty where there is nothing in it."""
        return write_block(self.texts, self.form, preamble)


def writer(
    sources: Iterable[MemorySource], form: BlockFormat, *, with_awaiting: bool = False
) -> Write:
    """Return what writes a candidate of any source.

    `with_awaiting` adds a warning to what waits for a person.
    """
    by_scope = {source.scope: source for source in sources}

    def write(candidate: Candidate, is_whole: bool) -> str:  # noqa: FBT001  # one of two texts
        shown = by_scope[candidate.scope].passage(candidate, is_whole=is_whole)
        awaiting = candidate.record.memory.text("awaiting") if with_awaiting else ""
        if awaiting:
            shown = shown.replace(marks=(*shown.marks, f"[AWAITING] {awaiting}"))
        return write_passage(shown, form)

    return write
