"""Merges: memories that say the same, joined into one that supersedes them.

Where several that are confirmed or pinned say the same, a new memory with the words of the best and
the evidence of all replaces them. A candidate that repeats another memory is deprecated instead; of
several candidates the best gets the sources of the others. The result depends on the merged
memories alone, so that two clones make the same file. What contradicts another memory is left to
people, and so is what names the other one in a relation: it was written knowing it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from memtool.gate import near_duplicates
from memtool.memory import document, ids, memory, timestamps
from memtool.memory.fields import CONFIDENCES, LIST_KINDS, RELATIONS
from memtool.memory.fields import FIELDS as FIELD_TABLE
from memtool.memory.lifecycle import confirmed_at, retired
from memtool.memory.memory import Fields, FieldValue, Memory
from memtool.memory.schema import MAX_ITEMS, MOST_SOURCES
from memtool.redaction.find import allowlist, find
from memtool.search import comparison
from memtool.store.tree import Record, Tree
from memtool.upkeep.importance import BY
from memtool.upkeep.inputs import PlanInputs
from memtool.upkeep.steps import UpkeepStep, changing
from memtool.value import Value, digest

_RANK = {"pinned": 2, "confirmed": 1}
_ALIKE = ("type", "scope", "valid_from", "valid_through", "environment")
"""Keys in which memories that say the same may differ, and then both hold."""
_OWN = frozenset(
    {"id", "timestamp", "deleted", "retired", "faded", "learned", "checked", "supersedes"}
)
"""Keys that a merged memory does not copy from the best one."""


class Parted(Value):
    """Memories that say the same, and why they are not merged."""

    ids: tuple[str, ...]
    why: str


def plan(
    tree: Tree, inputs: PlanInputs, contradicted: Collection[str]
) -> tuple[list[UpkeepStep], list[Parted]]:
    """Return the steps that leave each claim once, and the duplicates that cannot be merged."""
    pool = {
        record.id: record
        for record in inputs.living(tree)
        if record.path not in inputs.frozen
        and record.id not in contradicted
        and not memory.is_generated(record.memory)
    }
    groups, parted = _group(pool, inputs)
    steps: list[UpkeepStep] = []
    for best in sorted(groups):
        members = sorted(groups[best], key=_worth, reverse=True)
        confirmed = [record.memory for record in members if _is_confirmed(record.memory)]
        made = _joined(confirmed, tree) if len(confirmed) > 1 else None
        fault = _fault(made, tree, inputs) if made is not None else ""
        if fault:
            parted.append(Parted(tuple(sorted(memory.id for memory in confirmed)), fault))
        else:
            steps += _merged(members, made, inputs)
    return steps, sorted(parted, key=lambda one: one.ids)


def _group(
    pool: Mapping[str, Record], inputs: PlanInputs
) -> tuple[dict[str, list[Record]], list[Parted]]:
    """Return memories that say the same, by the id of the best of them, and what cannot be merged.

    Each round compares what is left, the best of each group among it, until no two say the same.
    """
    threshold = inputs.config.number(near_duplicates.THRESHOLD_KEY)
    left = dict(pool)
    groups: dict[str, list[Record]] = {}
    parted: dict[tuple[str, ...], Parted] = {}
    while True:
        judged = list(left.values())
        near = near_duplicates.Neighbours(judged)
        found = near_duplicates.twins(judged, near, threshold, inputs.now, inputs.config.categories)
        pairs = []
        for record, twin in zip(judged, found, strict=True):
            if twin is None or not twin.is_like or _knows(record.memory, twin.record.memory):
                continue
            why = _objection(record.memory, twin.record.memory)
            if why:
                ids = tuple(sorted((record.id, twin.record.id)))
                parted[ids] = Parted(ids, why)
            else:
                pairs.append((record, twin.record))
        if not pairs:
            return groups, list(parted.values())
        for gone in _join(pairs, groups, threshold):
            del left[gone]


def _join(
    pairs: Iterable[tuple[Record, Record]], groups: dict[str, list[Record]], threshold: float
) -> list[str]:
    """Join the groups of pairs, and return the ids that are represented now; one at least.

    The better of a pair represents it. Where it has joined another group in the same round, the
    best of that must say the same, too.
    """
    gone = []
    best_of: dict[str, Record] = {}
    ordered = [sorted(pair, key=_worth, reverse=True) for pair in pairs]
    for pair in sorted(ordered, key=lambda pair: [_worth(one) for one in pair], reverse=True):
        heads = [best_of.get(one.id, one) for one in pair]
        best, other = sorted(heads, key=_worth, reverse=True)
        if best.id == other.id or not (
            heads == pair or _say_the_same(best.memory, other.memory, threshold)
        ):
            continue
        groups.setdefault(best.id, [best]).extend(groups.pop(other.id, [other]))
        best_of.update((one.id, best) for one in groups[best.id])
        gone.append(other.id)
    return gone


def _say_the_same(one: Memory, other: Memory, threshold: float) -> bool:
    """Tell whether two memories that were not paired may be merged all the same."""
    return not (
        _knows(one, other) or _objection(one, other) or comparison.likeness(one, other) < threshold
    )


def _knows(one: Memory, other: Memory) -> bool:
    """Tell whether one of two memories names the other: then both are meant."""
    return any(
        b.id in a.items(key)
        for a, b in ((one, other), (other, one))
        for key in (*RELATIONS, "conflicts_accepted")
    )


def _objection(one: Memory, other: Memory) -> str:
    """Return what speaks against merging two memories, empty for nothing."""
    return next((f"their {key} differs" for key in _ALIKE if one.text(key) != other.text(key)), "")


def _is_confirmed(memory: Memory) -> bool:
    """Tell whether a memory is confirmed or pinned."""
    return memory.status in _RANK


def _worth(record: Record) -> tuple[int, int, float, int, str]:
    """Sort key of memories that say the same: by status, confidence, importance, and age."""
    memory = record.memory
    sure = CONFIDENCES.index(memory.confidence)
    return _RANK.get(memory.status, 0), sure, memory.importance, memory.timestamp, memory.id


def _fault(made: Memory, tree: Tree, inputs: PlanInputs) -> str:
    """Return why a merged memory must not be written, empty for no reason."""
    if made.id in tree:
        return f"{made.id}, which merged them, was taken back"
    data = document.write(made)
    if find(data.decode(), allowlist(inputs.config)):
        return "they hold a secret"
    try:
        document.read(data, "", inputs.config.categories)
    except document.Unreadable as error:
        return f"together they are no memory: {error.problems[0].message}"
    return ""


def _merged(members: Sequence[Record], made: Memory | None, inputs: PlanInputs) -> list[UpkeepStep]:
    """Return the steps that make one memory of some, the best first; `made` replaces several."""
    kept = members[0]
    weaker = [record for record in members[1:] if not _is_confirmed(record.memory)]
    steps = []
    if made is not None:
        why = f"{', '.join(made.supersedes)} say the same"
        path = f"{inputs.directory}/{ids.place(made)}"
        steps.append(UpkeepStep("merge", made.id, made.title, path, why, {}, made))
        kept = kept.replace(memory=made)
    elif not _is_confirmed(kept.memory):
        union = _union("source", [record.memory for record in members])[:MOST_SOURCES]
        if len(union) > len(kept.memory.items("source")):
            names = ", ".join(sorted(record.id for record in weaker))
            steps.append(changing("strengthen", kept, f"{names} say the same", source=union))
    for record in sorted(weaker, key=lambda record: record.id):
        related = (*record.memory.items("related_to"), kept.id)[-MAX_ITEMS:]
        why = f"{kept.id} says the same"
        was = retired(record.memory, inputs.now, BY)
        step = changing("deprecate", record, why, status="deprecated", related_to=related, **was)
        steps.append(step)
    return steps


def _joined(members: Sequence[Memory], tree: Tree) -> Memory:
    """Return the memory that replaces several, the best of which comes first."""
    best = members[0]
    ids = {memory.id for memory in members}
    fields: Fields = {key: value for key, value in best.fields.items() if key not in _OWN}
    for field in FIELD_TABLE:
        if field.kind in LIST_KINDS and field.name != "supersedes":
            union = tuple(item for item in _union(field.name, members) if item not in ids)
            if union:
                fields[field.name] = union
            else:
                fields.pop(field.name, None)
    accepting = {
        record.id
        for record in tree.records
        if not ids.isdisjoint(record.memory.items("conflicts_accepted"))
    }
    accepted = (*best.items("conflicts_accepted"), *sorted(accepting - ids))
    if accepted:
        fields["conflicts_accepted"] = _first(fields.get("conflicts_accepted", ()), accepted)
    if any(memory.status == "pinned" for memory in members):
        fields["status"] = "pinned"
    if any(memory.text("temporal_class") == "eternal" for memory in members):
        fields["temporal_class"] = "eternal"
    if any("importance" in memory.fields for memory in members):
        fields["importance"] = f"{max(memory.importance for memory in members):g}"
    checked = max(members, key=lambda memory: (confirmed_at(memory), memory.id)).table("checked")
    if checked:
        fields["checked"] = checked
    second = max(memory.timestamp for memory in members)
    fields["confidence"] = max((m.confidence for m in members), key=CONFIDENCES.index)
    fields["id"] = _id(best.type, second, best.title, members)
    fields["timestamp"] = timestamps.render(second)
    fields["supersedes"] = tuple(sorted(ids))[:MAX_ITEMS]
    return Memory(fields=fields, body=best.body)


def _id(type_: str, second: int, title: str, members: Iterable[Memory]) -> str:
    """Return the id of the memory that replaces some: any clone gives it the same one."""
    names = "\0".join(sorted(memory.id for memory in members))
    return ids.make_id(type_, second, title, bytes.fromhex(digest(names.encode(), 4)))


def _union(key: str, members: Iterable[Memory]) -> tuple[str, ...]:
    return _first(*(memory.items(key) for memory in members))


def _first(*lists: FieldValue) -> tuple[str, ...]:
    """Return the items of lists, each once, as many as a key may have."""
    return tuple(dict.fromkeys(item for some in lists for item in some))[:MAX_ITEMS]
