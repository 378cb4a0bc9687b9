"""Merges: memories that say the same are joined into one that supersedes them.

If several confirmed or pinned memories say the same, a new memory replaces them, with the words of
the best one and the evidence of all. A candidate that repeats another memory is deprecated instead.
Among several candidates, the best one gets the sources of the others. The result depends only on
the merged memories, so that two clones create the same file. Contradictions are left to people, and
so are memories that name each other in a relation: one was written knowing the other.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from memtool.gate import near_duplicates
from memtool.memory import document, ids, memory, timestamps
from memtool.memory.fields import CONFIDENCES, LIST_KINDS, RELATIONS
from memtool.memory.fields import FIELDS as FIELD_TABLE
from memtool.memory.lifecycle import find_confirmed_at, retire_fields
from memtool.memory.memory import Fields, FieldValue, Memory
from memtool.memory.schema import MAX_ITEMS, MAX_SOURCES
from memtool.redaction.find import build_allowlist, find
from memtool.search import comparison
from memtool.store.tree import Record, Tree
from memtool.upkeep.importance import BY
from memtool.upkeep.inputs import PlanInputs
from memtool.upkeep.steps import UpkeepStep, build_change
from memtool.value import Value, digest

_RANK = {"pinned": 2, "confirmed": 1}
_ALIKE = ("type", "scope", "valid_from", "valid_through", "environment")
"""Keys that must not differ: with different values, both memories hold."""
_OWN = frozenset(
    {"id", "timestamp", "deleted", "retired", "faded", "learned", "checked", "supersedes"}
)
"""Keys that a merged memory does not copy from the best one."""


class UnmergedGroup(Value):
    """Memories that say the same, and why they are not merged."""

    ids: tuple[str, ...]
    why: str


def plan(
    tree: Tree, inputs: PlanInputs, contradicted: Collection[str]
) -> tuple[list[UpkeepStep], list[UnmergedGroup]]:
    """Return the steps that leave each claim once, and the duplicates that cannot be merged."""
    pool = {
        record.id: record
        for record in inputs.find_living(tree)
        if record.path not in inputs.frozen
        and record.id not in contradicted
        and not memory.is_generated(record.memory)
    }
    groups, parted = _group(pool, inputs)
    steps: list[UpkeepStep] = []
    for best in sorted(groups):
        members = sorted(groups[best], key=_worth, reverse=True)
        confirmed = [record.memory for record in members if _is_confirmed(record.memory)]
        made = build_successor(confirmed, tree) if len(confirmed) > 1 else None
        fault = _find_fault(made, tree, inputs) if made is not None else ""
        if fault:
            parted.append(UnmergedGroup(tuple(sorted(memory.id for memory in confirmed)), fault))
        else:
            steps += _merge(members, made, inputs)
    return steps, sorted(parted, key=lambda group: group.ids)


def _group(
    pool: Mapping[str, Record], inputs: PlanInputs
) -> tuple[dict[str, list[Record]], list[UnmergedGroup]]:
    """Group duplicates by the id of the best one; also return those that cannot be merged.

    Each round compares the remaining memories, including the best of each group, until no two say
    the same.
    """
    threshold = inputs.config.number(near_duplicates.THRESHOLD_KEY)
    remaining = dict(pool)
    groups: dict[str, list[Record]] = {}
    parted: dict[tuple[str, ...], UnmergedGroup] = {}
    while True:
        judged = list(remaining.values())
        near = near_duplicates.DuplicateIndex(judged)
        twins = near_duplicates.find_duplicates(
            judged, near, threshold, inputs.now, inputs.config.categories
        )
        pairs = []
        for record, twin in zip(judged, twins, strict=True):
            if twin is None or not twin.is_whole or _knows(record.memory, twin.record.memory):
                continue
            why = _find_objection(record.memory, twin.record.memory)
            if why:
                ids = tuple(sorted((record.id, twin.record.id)))
                parted[ids] = UnmergedGroup(ids, why)
            else:
                pairs.append((record, twin.record))
        if not pairs:
            return groups, list(parted.values())
        for gone in _join(pairs, groups, threshold):
            del remaining[gone]


def _join(
    pairs: Iterable[tuple[Record, Record]], groups: dict[str, list[Record]], threshold: float
) -> list[str]:
    """Join the groups of pairs, and return the ids that others now represent, at least one.

    The better of a pair represents it. If it has joined another group in the same round, that
    group's best must say the same as well.
    """
    gone = []
    best_of: dict[str, Record] = {}
    ordered = [sorted(pair, key=_worth, reverse=True) for pair in pairs]
    for pair in sorted(ordered, key=lambda pair: [_worth(member) for member in pair], reverse=True):
        heads = [best_of.get(member.id, member) for member in pair]
        best, other = sorted(heads, key=_worth, reverse=True)
        if best.id == other.id or not (
            heads == pair or _say_the_same(best.memory, other.memory, threshold)
        ):
            continue
        groups.setdefault(best.id, [best]).extend(groups.pop(other.id, [other]))
        best_of.update((member.id, best) for member in groups[best.id])
        gone.append(other.id)
    return gone


def _say_the_same(memory: Memory, other: Memory, threshold: float) -> bool:
    """Return whether two memories may be merged although they were not paired."""
    return not (
        _knows(memory, other)
        or _find_objection(memory, other)
        or comparison.compare_memories(memory, other) < threshold
    )


def _knows(memory: Memory, other: Memory) -> bool:
    """Return whether one of two memories names the other: then both are intended."""
    return any(
        b.id in a.items(key)
        for a, b in ((memory, other), (other, memory))
        for key in (*RELATIONS, "conflicts_accepted")
    )


def _find_objection(memory: Memory, other: Memory) -> str:
    """Return the objection to merging two memories, empty if none."""
    return next(
        (f"their {key} differs" for key in _ALIKE if memory.text(key) != other.text(key)), ""
    )


def _is_confirmed(memory: Memory) -> bool:
    """Return whether a memory is confirmed or pinned."""
    return memory.status in _RANK


def _worth(record: Record) -> tuple[int, int, float, int, str]:
    """Sort key of duplicates: status, confidence, importance and age."""
    memory = record.memory
    sure = CONFIDENCES.index(memory.confidence)
    return _RANK.get(memory.status, 0), sure, memory.importance, memory.timestamp, memory.id


def _find_fault(made: Memory, tree: Tree, inputs: PlanInputs) -> str:
    """Return why a merged memory must not be written, empty if it may."""
    if made.id in tree:
        return f"{made.id}, which merged them, was taken back"
    data = document.write(made)
    if find(data.decode(), build_allowlist(inputs.config)):
        return "they hold a secret"
    try:
        document.read(data, "", inputs.config.categories)
    except document.Unreadable as error:
        return f"together they are no memory: {error.problems[0].message}"
    return ""


def _merge(members: Sequence[Record], made: Memory | None, inputs: PlanInputs) -> list[UpkeepStep]:
    """Return the steps that merge a group, best member first.

    `made` replaces the confirmed members, if there are several.
    """
    kept_member = members[0]
    weaker = [record for record in members[1:] if not _is_confirmed(record.memory)]
    steps = []
    if made is not None:
        why = f"{', '.join(made.supersedes)} say the same"
        path = f"{inputs.directory}/{ids.make_path(made)}"
        steps.append(UpkeepStep("merge", made.id, made.title, path, why, {}, made))
        kept_member = kept_member.replace(memory=made)
    elif not _is_confirmed(kept_member.memory):
        union = _unite("source", [record.memory for record in members])[:MAX_SOURCES]
        if len(union) > len(kept_member.memory.items("source")):
            names = ", ".join(sorted(record.id for record in weaker))
            steps.append(
                build_change("strengthen", kept_member, f"{names} say the same", source=union)
            )
    for record in sorted(weaker, key=lambda record: record.id):
        related = (*record.memory.items("related_to"), kept_member.id)[-MAX_ITEMS:]
        why = f"{kept_member.id} says the same"
        was = retire_fields(record.memory, inputs.now, BY)
        step = build_change(
            "deprecate", record, why, status="deprecated", related_to=related, **was
        )
        steps.append(step)
    return steps


def build_successor(members: Sequence[Memory], tree: Tree, files: tuple[str, ...] = ()) -> Memory:
    """Build the memory that replaces others; the best one comes first.

    `files`, if any, are used instead of the paths that they name.
    """
    best = members[0]
    ids = {memory.id for memory in members}
    fields: Fields = {key: value for key, value in best.fields.items() if key not in _OWN}
    for field in FIELD_TABLE:
        if field.kind in LIST_KINDS and field.name != "supersedes":
            union = tuple(item for item in _unite(field.name, members) if item not in ids)
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
        fields["conflicts_accepted"] = _take_first(fields.get("conflicts_accepted", ()), accepted)
    if any(memory.status == "pinned" for memory in members):
        fields["status"] = "pinned"
    if any(memory.text("temporal_class") == "eternal" for memory in members):
        fields["temporal_class"] = "eternal"
    if any("importance" in memory.fields for memory in members):
        fields["importance"] = f"{max(memory.importance for memory in members):g}"
    checked = max(members, key=lambda memory: (find_confirmed_at(memory), memory.id)).table(
        "checked"
    )
    if checked:
        fields["checked"] = checked
    second = max(memory.timestamp for memory in members)
    fields["confidence"] = max((m.confidence for m in members), key=CONFIDENCES.index)
    if files:
        fields["files"] = files
    fields["id"] = _make_id(best.type, second, best.title, [*sorted(ids), *files])
    fields["timestamp"] = timestamps.render(second)
    fields["supersedes"] = tuple(sorted(ids))[:MAX_ITEMS]
    return Memory(fields=fields, body=best.body)


def _make_id(type_: str, second: int, title: str, names: Iterable[str]) -> str:
    """Make the id of a merged memory, the same in every clone."""
    key = "\0".join(names).encode(errors="surrogateescape")
    return ids.make_id(type_, second, title, bytes.fromhex(digest(key, 4)))


def _unite(key: str, members: Iterable[Memory]) -> tuple[str, ...]:
    return _take_first(*(memory.items(key) for memory in members))


def _take_first(*lists: FieldValue) -> tuple[str, ...]:
    """Join lists without repeats, up to the maximum number of items of a key."""
    return tuple(dict.fromkeys(item for some in lists for item in some))[:MAX_ITEMS]
