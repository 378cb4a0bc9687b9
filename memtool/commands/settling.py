"""Settling: how one conflict ends, with the reason kept where people look for it.

Nothing that a memory claims is edited. Where one side holds, a new memory says it again, replaces
all sides, and gives the reason; where both hold, each names the other as accepted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from memtool.commands import drafting, writing
from memtool.gate.conflicts import Conflict
from memtool.memory import moments
from memtool.memory.body import sections
from memtool.memory.memory import Fields, Memory
from memtool.store.commits import commit_files
from memtool.value import Value
from memtool.workspace import Workspace

BOTH = "both"
NEWER = "newer"
MERGED = "merged"
REASON_SECTION = "Rationale"
_OWN = frozenset({"id", "timestamp", "supersedes", "conflicts_accepted", "checked", "deleted"})
"""Keys that a new memory does not take over from the one whose text it keeps."""


class Settled(Value):
    """How a conflict ended.

    `kept` is the id whose text holds, `both`, or `merged`. `id` is the new memory, empty where
    both hold. `paths` are the files that were written, `text` what a new memory holds.
    """

    ids: tuple[str, ...]
    kept: str
    id: str
    path: str
    commit: str | None
    paths: tuple[str, ...]
    text: str
    dry_run: bool


def newest(memories: Sequence[Memory]) -> Memory:
    """Return the memory that was written last; of one second the one with the greater id."""
    return max(memories, key=lambda memory: (memory.timestamp, memory.id))


def keep(
    ws: Workspace,
    winner: Memory,
    ids: Sequence[str],
    why: str,
    *,
    commit: bool,
    dry_run: bool,
) -> Settled:
    """Write a new memory with the text of the winner, which replaces all of them."""
    kept: Fields = {key: value for key, value in winner.fields.items() if key not in _OWN}
    settler = writing.speaker(ws)
    sources = tuple(dict.fromkeys((*winner.items("source"), settler)))
    fields: Fields = kept | {
        "id": drafting.draw_id(ws, winner.type, winner.title),
        "timestamp": moments.render(ws.now),
        "source": sources,
        "supersedes": tuple(ids),
    }
    memory = Memory(fields=fields, body=with_reason(winner.body, why))
    return write(ws, memory, ids, winner.id, why, commit=commit, dry_run=dry_run)


def write(
    ws: Workspace,
    memory: Memory,
    ids: Sequence[str],
    kept: str,
    why: str,
    *,
    commit: bool,
    dry_run: bool,
) -> Settled:
    """Write the memory that replaces all sides."""

    def draw() -> str:
        return drafting.draw_id(ws, memory.type, memory.title)

    made = writing.write_new(ws, memory, draw=draw, commit=commit, dry_run=dry_run, reason=why)
    paths = () if dry_run else (made.path,)
    return Settled(tuple(ids), kept, made.id, made.path, made.commit, paths, made.text, dry_run)


def accept(
    ws: Workspace, memories: Sequence[Memory], why: str, *, commit: bool, dry_run: bool
) -> Settled:
    """Let all of them hold: each names the others in `conflicts_accepted`, in one commit."""
    ids = tuple(memory.id for memory in memories)

    def accepted(memory: Memory) -> Fields:
        others = (id_ for id_ in ids if id_ != memory.id)
        known = memory.items("conflicts_accepted")
        return {"conflicts_accepted": tuple(dict.fromkeys((*known, *others)))}

    # All must be possible before one is done.
    changed = [writing.change(ws, id_, accepted, "accept", dry_run=True) for id_ in ids]
    done = None
    if not dry_run:
        changed = [writing.change(ws, id_, accepted, "accept") for id_ in ids]
        paths = [change.path for change in changed if writing.is_dirty(ws.repository, change.path)]
        if commit and paths:
            trailers = {"Memory-Id": ", ".join(ids), "Reason": why}
            line = writing.subject("keep both,", memories[0])
            done = commit_files(ws.repository, paths, line, trailers)
    touched = tuple(change.path for change in changed if change.changes)
    return Settled(ids, BOTH, "", "", done, () if dry_run else touched, "", dry_run)


def settle_all(
    ws: Workspace,
    found: Sequence[Conflict],
    memories: Mapping[str, Memory],
    wanted: str,
    why: str,
    *,
    commit: bool,
    dry_run: bool,
) -> list[Settled]:
    """Settle conflicts one after the other, by keeping both or the newer text.

    What was settled counts for the next one: a text that lost opposes nothing any more, and a
    text that was kept stands in its new memory, as old as it was.
    """
    if wanted == BOTH:
        return [
            accept(ws, [memories[i] for i in one.ids], why, commit=commit, dry_run=dry_run)
            for one in found
        ]
    known = dict(memories)
    ages = {id_: memory.timestamp for id_, memory in memories.items()}
    stands: dict[str, str] = {}
    settled = []
    for conflict in found:
        sides = dict.fromkeys(stands.get(id_, id_) for id_ in conflict.ids)
        sides.pop("", None)
        if len(sides) < 2:
            continue
        winner = max(sides, key=lambda id_: (ages[id_], id_))
        one = keep(ws, known[winner], tuple(sides), why, commit=commit, dry_run=dry_run)
        settled.append(one)
        known[one.id] = writing.read(ws, one.text.encode())
        ages[one.id] = ages[winner]
        for id_ in [*stands, *sides]:
            current = stands.get(id_, id_)
            if current in sides:
                stands[id_] = one.id if current == winner else ""
    return settled


def with_reason(body: str, why: str) -> str:
    """Return a body that gives the reason, in its section Rationale or in a new one."""
    lines = body.rstrip("\n").split("\n")
    for section in sections(body):
        if section.title.lower() == REASON_SECTION.lower():
            if why in section.text:
                return body
            at = min(section.last_line, len(lines))
            while at > section.first_line and not lines[at - 1].strip():
                at -= 1
            rest = lines[at:]
            return "\n".join([*lines[:at], "", why, *rest]).rstrip("\n") + "\n"
    opening = body.rstrip("\n")
    return f"{opening}\n\n## {REASON_SECTION}\n\n{why}\n".lstrip("\n")
