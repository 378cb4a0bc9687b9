"""Unsettled memories in a block: marked, with what their premise is now, or withheld for it.

A memory is unsettled if it rests on something that no longer holds: see `memory/premises.py`. The
walk uses the lineage of the tree, like `list`. A change that is less trusted than the memory is
marked as such and withholds nothing, so that no unmerged branch hides what is trusted.
"""

from __future__ import annotations

from memtool.inject.candidates import PINNED, Signal, Supplement
from memtool.inject.effective_lineage import RANK
from memtool.inject.remarks import MAX_NAMED_IDS, name_ids
from memtool.inject.supplements import is_withheld
from memtool.inject.tiers import Cap
from memtool.memory.drift import BROKEN as BROKEN_LEVEL
from memtool.memory.premises import BROKEN, REPLACED, describe_fault, find_premises
from memtool.value import Value, cached_property

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from memtool.inject.candidates import Candidate, Eligibility
    from memtool.memory.drift import FileDrift
    from memtool.memory.lineage import Lineage
    from memtool.memory.premises import Cause
    from memtool.search.features import FileWitness
    from memtool.search.retrieve import Scope
    from memtool.search.unsettled import Unsettled
    from memtool.store.provenance import TrustLevels
    from memtool.store.tree import Record, Tree

SETTING = "inject.unsettled"
WITHHOLD = "withhold"
UNSETTLED = "unsettled"
"""The field of an item, and the fact in a head, with the ids of what changed."""
BRIEF = "premise changed: ask"
"""The mark next to a title."""
MAX_UNSETTLED = 2
"""Unsettled memories that a block shows in addition to pinned ones."""
MAX_LINES = 2
"""Withheld memories that a block names; the others are counted."""
_UNPROVEN = ", not proven as its rule wants"
_LESS_TRUSTED = {
    "local": ", not committed",
    "committed": " on this branch, not merged",
    "trusted": ", not signed",
}
"""What a mark says of a change that has this trust, if the memory has more."""


class Change(Value):
    """A premise that changed, for one memory.

    `premise` is what no longer holds, and `via` the memory that rests on it, empty if that is the
    memory itself. `now` are the ids of what replaced it. `shortfall` says in what way the change is
    less trusted than the memory, empty if it is not; one that `is_sure` may withhold the memory.
    """

    premise: str
    via: str
    reason: str
    now: tuple[str, ...] = ()
    shortfall: str = ""
    is_sure: bool = False


class Premises:
    """What a block says about the premises of the memories of one tree, as of the second `now`.

    `lineage` is the one pruned by trust.
    """

    def __init__(
        self,
        tree: Tree,
        now: int,
        drift: FileWitness | None = None,
        trust: TrustLevels | None = None,
        lineage: Lineage | None = None,
        *,
        is_withholding: bool = False,
    ) -> None:
        self._tree = tree
        self._now = now
        self._drift = drift
        self._trust = trust
        self._lineage = lineage or tree.lineage
        self._is_withholding = is_withholding
        self._changes: dict[str, tuple[Change, ...]] = {}

    @cached_property
    def _unsettled(self) -> Unsettled:
        from memtool.search.unsettled import Unsettled  # most memories rest on nothing

        return Unsettled(self._tree, self._now, self._drift)

    def _find_causes(self, record: Record) -> Mapping[str, Cause]:
        if not find_premises(record.memory):
            return {}
        return self._unsettled.find([record.id]).get(record.id, {})

    def find_changes(self, record: Record) -> tuple[Change, ...]:
        """Return the changes that unsettle a memory, the nearest first."""
        changes = self._changes.get(record.id)
        if changes is None:
            changes = self._changes[record.id] = self._derive_changes(record)
        return changes

    def _derive_changes(self, record: Record) -> tuple[Change, ...]:
        by_premise: dict[tuple[str, str, str], list[Change]] = {}
        for name, cause in self._find_causes(record).items():
            *_above, lowest, premise = self._unsettled.find_chain(record.id, name)
            via = "" if lowest == record.id else lowest
            shortfall, is_sure = self._weigh(record, cause, premise)
            now = (cause.id,) if cause.reason == REPLACED and cause.id != premise else ()
            change = Change(premise, via, cause.reason, now, shortfall, is_sure)
            by_premise.setdefault((premise, via, cause.reason), []).append(change)
        return tuple(map(_merge, by_premise.values()))

    def _weigh(self, record: Record, cause: Cause, premise: str) -> tuple[str, bool]:
        """Return how a change is less trusted than a memory, and whether it may withhold it."""
        other = self._tree.get(cause.id)
        is_circle = cause.reason == REPLACED and cause.id == premise
        if self._trust is None or other is None or is_circle or cause.reason == BROKEN:
            return "", False  # no version of a memory says it, whose trust could be compared
        level = self._trust(other)
        if RANK[level] < RANK[self._trust(record)]:
            return _LESS_TRUSTED[level], False
        if cause.reason != REPLACED:
            return "", True
        is_granted = cause.id in self._lineage.find_heads(premise)
        return "" if is_granted else _UNPROVEN, is_granted

    # What the signal asks

    def list_ids(self, record: Record) -> tuple[str, ...]:
        """Return the ids that the causes of a memory name."""
        return tuple(dict.fromkeys(cause.id for cause in self._find_causes(record).values()))

    def describe(self, record: Record, where: str = "") -> str:
        """Return the mark of a memory; `where` says where its new premise is shown."""
        changes = self.find_changes(record)
        if not changes:
            return ""
        text = self._describe_change(changes[0], where)
        if changes[1:]:
            count = len(changes) - 1
            which = f"{count} more of its premises changed"
            text = f"{text} {which} (`memtool why {self._shorten(record.id)}`)."
        return text

    def _describe_change(self, change: Change, where: str) -> str:
        premise = self._shorten(change.premise)
        if change.via:
            premise = f"{premise}, on which {self._shorten(change.via)} rests,"
        if change.reason == BROKEN:
            what = f"{premise} {self._describe_break(change.premise)}"
            return f"PREMISE BROKEN: {what}; check the code first."
        what = self._describe_state(change, premise)
        if change.now[1:]:
            kind, advice = "IN CONFLICT", "ask the user which one holds before you rely on this"
        elif change.now:
            kind, advice = "CHANGED", "check this against it first"
        else:
            kind, advice = "GONE", "ask the user before you rely on this"
        return f"PREMISE {kind}{change.shortfall}: {what}{where}; {advice}."

    def _describe_state(self, change: Change, premise: str) -> str:
        if not change.now:
            return describe_fault(change.reason, premise)
        names = [*map(self._shorten, change.now[:MAX_NAMED_IDS])]
        hidden = len(change.now) - MAX_NAMED_IDS
        return f"{premise} is now {' or '.join([*names, *[f'{hidden} more'] * (hidden > 0)])}"

    def _describe_break(self, id_: str) -> str:
        """Return what became of the code that a memory names."""
        record = self._tree.get(id_)
        drift = None if record is None or self._drift is None else self._drift(record)
        for file in () if drift is None else drift.files:
            if file.level == BROKEN_LEVEL:
                return _describe_file(file)
        return "names code that is gone"

    def find_supplement(self, record: Record) -> Supplement | None:
        """Return what the first changed premise of a memory is now; None if it is not one thing."""
        changes = self.find_changes(record)
        if not changes or len(changes[0].now) != 1:
            return None
        other = self._tree.get(changes[0].now[0])
        return None if other is None else Supplement(other, self.describe(record, " (below)"))

    def find_withholding(self, record: Record) -> str:
        """Return the line that replaces a memory, if it is withheld; else empty."""
        sure = [change for change in self.find_changes(record) if change.is_sure]
        if not (self._is_withholding and sure):
            return ""
        id_, premise = self._shorten(record.id), self._shorten(sure[0].premise)
        what = self._describe_state(sure[0], f"{id_} rests on {premise}, which")
        return f"WITHHELD: {what} (memtool why {id_})."

    def signal(self) -> Signal:
        """Return the signal of these premises."""

        def details(record: Record) -> Mapping[str, Any]:
            ids = self.list_ids(record)
            return {UNSETTLED: ids} if ids else {}

        def facts(record: Record) -> Sequence[tuple[str, str]]:
            ids = [*map(self._shorten, self.list_ids(record))]
            return ((UNSETTLED, name_ids(ids)),) if ids else ()

        return Signal(
            self.describe,
            details,
            facts=facts,
            brief=lambda record: BRIEF if self.find_changes(record) else "",
            supplement=self.find_supplement,
            withholding=self.find_withholding,
        )

    def _shorten(self, id_: str) -> str:
        return self._tree.short_ids.shorten(id_)


def _merge(changes: Sequence[Change]) -> Change:
    """Return what became of one premise as one change, without what is less trusted."""
    trusted = [change for change in changes if not change.shortfall] or changes
    ids = dict.fromkeys(id_ for change in trusted for id_ in change.now)
    is_sure = any(change.is_sure for change in trusted)
    return trusted[0].replace(now=tuple(sorted(ids)), is_sure=is_sure)


def _describe_file(file: FileDrift) -> str:
    where = file.now or file.path
    if file.why == "name":
        return f"names {file.name}, which is no longer in {where}"
    if file.why == "lines" and file.lines:
        first, last = file.lines
        return f"cites lines {first} to {last} of {file.path}, which have changed"
    return f"names {file.path}, which is gone"


def read_signal(scope: Scope) -> Signal:
    """Return the signal of premises for a scope, with the setting as the scope has it."""
    is_withholding = scope.config.text(SETTING) == WITHHOLD
    return Premises(
        scope.tree,
        scope.now,
        scope.drift,
        scope.trust,
        scope.lineage,
        is_withholding=is_withholding,
    ).signal()


def build_tree_signal(tree: Tree, now: int) -> Signal:
    """Return the signal of premises as a tree alone tells it, without trust or code."""
    return Premises(tree, now).signal()


def cap_unsettled(sides: Sequence[Eligibility]) -> Cap:
    """Return the cap on unsettled memories that are marked; one notice counts those left out."""
    by_scope = {grounds.scope: grounds for grounds in sides}

    def holds(candidate: Candidate) -> bool:
        grounds = by_scope[candidate.scope]
        return (
            candidate.tier != PINNED
            and UNSETTLED in grounds.details(candidate.record)
            and not is_withheld(candidate, grounds)
        )

    reason = f"a block holds {MAX_UNSETTLED} that rest on what has changed"
    return Cap(holds, reason, MAX_UNSETTLED, notice=lambda left_out: [_count(len(left_out))])


def cap_withheld(sides: Sequence[Eligibility]) -> Cap:
    """Return the cap on withheld memories that nothing stands in for: none is shown."""
    by_scope = {grounds.scope: grounds for grounds in sides}

    def list_lines(candidates: Sequence[Candidate]) -> list[str]:
        lines = [
            by_scope[candidate.scope].find_withholding(candidate.record)
            for candidate in candidates[:MAX_LINES]
        ]
        hidden = len(candidates) - MAX_LINES
        return [*lines, _count(hidden)] if hidden > 0 else lines

    return Cap(
        lambda candidate: is_withheld(candidate, by_scope[candidate.scope]),
        f"withheld ({SETTING})",
        0,
        notice=list_lines,
    )


def _count(count: int) -> str:
    """Return the sentence about unsettled memories that are left out."""
    what = "1 memory that answers this rests on what has changed and is left out"
    if count != 1:
        what = f"{count} memories that answer this rest on what has changed and are left out"
    return f"{what} (memtool list is:unsettled)."
