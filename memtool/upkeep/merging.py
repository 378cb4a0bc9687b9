"""Merging: memories that say the same become one, and the others say which.

Where several that somebody vouched for say the same, a new memory with the words of the best and
the evidence of all replaces them. A candidate that repeats another memory is deprecated instead;
of several candidates the best gets the sources of the others. What merging makes depends on the
merged memories alone, so that two clones make the same file. What contradicts another memory, or
names it in a relation, is left to people.
"""

from __future__ import annotations

from memtool.memory import digest, document, identity, moments
from memtool.memory.fields import CONFIDENCES, LIST_KINDS
from memtool.memory.fields import FIELDS as FIELD_TABLE
from memtool.memory.lifecycle import confirmed_at
from memtool.memory.memory import FieldValue, Memory
from memtool.memory.schema import MAX_ITEMS
from memtool.redaction.find import allowlist, find
from memtool.upkeep.grouping import Parted, group, is_standing, worth
from memtool.upkeep.steps import Grounds, Step, changing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from memtool.memory.memory import Fields
    from memtool.store.tree import Record, Tree

_OWN = frozenset({"id", "timestamp", "deleted", "faded", "checked", "supersedes"})
"""Keys that a merged memory does not take over from the best as they are."""
MOST_SOURCES = 50
"""Sources that the best of several candidates has with those of the others."""


def plan(
    tree: Tree, grounds: Grounds, contradicted: Collection[str]
) -> tuple[list[Step], list[Parted]]:
    """Return the steps that leave each claim said once, and the twins that cannot be merged."""
    pool = {
        record.id: record
        for record in grounds.living(tree)
        if record.path not in grounds.frozen
        and record.id not in contradicted
        and not digest.is_generated(record.memory)
    }
    groups, parted = group(pool, grounds)
    steps: list[Step] = []
    for best in sorted(groups):
        members = sorted(groups[best], key=worth, reverse=True)
        standing = [record.memory for record in members if is_standing(record.memory)]
        made = _joined(standing, tree) if len(standing) > 1 else None
        fault = _fault(made, tree, grounds) if made is not None else ""
        if fault:
            parted.append(Parted(tuple(sorted(memory.id for memory in standing)), fault))
        else:
            steps += _merged(members, made, grounds.directory)
    return steps, sorted(parted, key=lambda one: one.ids)


def _fault(made: Memory, tree: Tree, grounds: Grounds) -> str:
    """Return why a merged memory must not be written, empty for no reason."""
    if made.id in tree.by_id:
        return f"{made.id}, which merged them, was taken back"
    data = document.write(made)
    if find(data.decode(), allowlist(grounds.config)):
        return "they hold a secret"
    try:
        document.read(data, "", grounds.config.categories)
    except document.Unreadable as error:
        return f"together they are no memory: {error.problems[0].message}"
    return ""


def _merged(members: Sequence[Record], made: Memory | None, directory: str) -> list[Step]:
    """Return the steps that make one memory of some, the best first; `made` replaces several."""
    kept = members[0]
    weaker = [record for record in members[1:] if not is_standing(record.memory)]
    steps = []
    if made is not None:
        why = f"{', '.join(made.supersedes)} say the same"
        path = f"{directory}/{identity.place(made)}"
        steps.append(Step("merge", made.id, made.title, path, why, {}, made))
        kept = kept.replace(memory=made)
    elif not is_standing(kept.memory):
        union = _union("source", [record.memory for record in members])[:MOST_SOURCES]
        if len(union) > len(kept.memory.items("source")):
            names = ", ".join(sorted(record.id for record in weaker))
            steps.append(changing("strengthen", kept, f"{names} say the same", source=union))
    for record in sorted(weaker, key=lambda record: record.id):
        related = (*record.memory.items("related_to"), kept.id)[-MAX_ITEMS:]
        why = f"{kept.id} says the same"
        step = changing("deprecate", record, why, status="deprecated", related_to=related)
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
    second = _latest(members)
    fields["confidence"] = max((m.confidence for m in members), key=CONFIDENCES.index)
    fields["id"] = _id(best.type, second, best.title, members)
    fields["timestamp"] = moments.render(second)
    fields["supersedes"] = tuple(sorted(ids))[:MAX_ITEMS]
    return Memory(fields=fields, body=best.body)


def _id(type_: str, second: int, title: str, members: Iterable[Memory]) -> str:
    """Return the id of the memory that replaces some: any clone gives it the same one."""
    from _blake2 import blake2b  # hashlib would import OpenSSL

    names = "\0".join(sorted(memory.id for memory in members))
    return identity.make_id(type_, second, title, blake2b(names.encode(), digest_size=4).digest())


def _latest(members: Iterable[Memory]) -> int:
    return max(memory.timestamp for memory in members)


def _union(key: str, members: Iterable[Memory]) -> tuple[str, ...]:
    return _first(*(memory.items(key) for memory in members))


def _first(*lists: FieldValue) -> tuple[str, ...]:
    """Return the items of lists, each once, as many as a key may have."""
    return tuple(dict.fromkeys(item for some in lists for item in some))[:MAX_ITEMS]
