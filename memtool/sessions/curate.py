"""Curation: how candidates fit in with the memories that exist, as a plan that a person accepts.

Nothing here writes. An action is kept where its ids exist and fit, it closes no circle, and the
two memories speak of the same: a model's word alone is not enough.
"""

from __future__ import annotations

from memtool import templates
from memtool.gate import contradictions
from memtool.gate.near_duplicates import content_of
from memtool.sessions.extract import llm
from memtool.sessions.model import printable, read_row
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

    from memtool.memory.lineage import Lineage
    from memtool.sessions.extract.llm import Model
    from memtool.store.tree import Record

PROMPT = "prompts/curate.md"
RELATIONS = ("supersedes", "resolves", "related_to")
PIN = "pin"
MOST_ACTIONS = 50
MOST_SENT = 120_000
MOST_SAID = 400
MOST_WHY = 200
MOST_STEPS = 1_000
"""Memories that a walk along `supersedes` goes through before a circle is assumed."""
LEAST_SHARED = 2
"""Words with a meaning that two memories share before one may say something of the other."""


class Action(Value):
    """One step: `do` is a relation from a candidate to another memory, or `pin` of one alone."""

    do: str = ""
    id: str = ""
    to: str = ""
    why: str = ""


def by_rules(candidates: Sequence[Record], others: Sequence[Record]) -> list[Action]:
    """Return what is plain without a model: a candidate that contradicts a memory replaces it."""
    records = [*others, *candidates]
    first = len(others)
    return [
        Action("supersedes", records[clash.other].id, records[clash.one].id, clash.reason)
        for clash in contradictions.find([record.memory for record in records])
        if clash.one < first <= clash.other
    ]


def by_model(model: Model, candidates: Sequence[Record], others: Sequence[Record]) -> list[Action]:
    """Return what a model proposes, as far as it can be read.

    Raises:
        Unusable: the model gave no answer that can be used.
    """
    rows = llm.ask(model, prompt(candidates, others), "actions")
    return [action for row in rows[:MOST_ACTIONS] if (action := _action(row)) is not None]


def prompt(candidates: Sequence[Record], others: Sequence[Record]) -> str:
    """Return what is sent: the instruction, all candidates, and the others as far as they fit.

    Those that share most words with a candidate come first.
    """
    import json

    wanted: set[str] = set().union(*(content_of(record.memory) for record in candidates))
    near = sorted(others, key=lambda r: (-len(wanted & content_of(r.memory)), r.id))
    rows, room = [], MOST_SENT
    for record in (*candidates, *near):
        memory = record.memory
        said = {
            "id": memory.id,
            "candidate": memory.status == "candidate",
            "type": memory.type,
            "category": memory.category,
            "title": memory.title,
            "says": memory.statement[:MOST_SAID],
        }
        row = json.dumps(said, ensure_ascii=False)
        if len(row) > room:
            break
        rows.append(row)
        room -= len(row)
    return templates.read(PROMPT) + "\n".join(rows) + "\n"


def _action(row: Any) -> Action | None:
    made = read_row(Action, row) if isinstance(row, dict) else None
    return made and made.replace(why=" ".join(printable(made.why).split())[:MOST_WHY])


def fitting(
    actions: Iterable[Action],
    candidates: Sequence[Record],
    others: Sequence[Record],
    lineage: Lineage,
) -> list[Action]:
    """Return the actions that can be carried out, each once, in their order.

    A memory is replaced by one candidate only, and is not pinned then; no candidate comes to
    replace itself.
    """
    own = {record.id: record for record in candidates}
    known = {record.id: record for record in others} | own
    found: list[Action] = []
    replaced: dict[str, str] = {}
    for action in actions:
        if any((action.do, action.id, action.to) == (a.do, a.id, a.to) for a in found):
            continue
        if action.do == PIN:
            is_fit = action.id in known and action.id not in own
            is_fit = is_fit and known[action.id].memory.status == "confirmed"
        else:
            is_fit = (
                action.do in RELATIONS
                and action.id in own
                and action.to in known
                and action.id != action.to
                and action.to not in own[action.id].memory.items(action.do)
                and speaks_of(own[action.id], known[action.to])
            )
        if is_fit and action.do == "supersedes":
            is_fit = action.to not in replaced and not _closes(action, replaced, lineage)
            if is_fit:
                replaced[action.to] = action.id
        if is_fit:
            found.append(action.replace(to="") if action.do == PIN else action)
    return [one for one in found if one.do != PIN or one.id not in replaced][:MOST_ACTIONS]


def speaks_of(one: Record, other: Record) -> bool:
    """Tell whether two memories speak of the same: they share words with a meaning, or a file."""
    shared = content_of(one.memory) & content_of(other.memory)
    files = set(one.memory.items("files")) & set(other.memory.items("files"))
    return len(shared) >= LEAST_SHARED or bool(files)


def _closes(action: Action, replaced: dict[str, str], lineage: Lineage) -> bool:
    """Tell whether a candidate would come to supersede itself, by this plan and what stands."""
    seen: set[str] = set()
    todo = [action.id]
    while todo and len(seen) < MOST_STEPS:
        id_ = todo.pop()
        if id_ == action.to:
            return True
        if id_ not in seen:
            seen.add(id_)
            todo += lineage.superseded_by.get(id_, ())
            todo += [replaced[id_]] if id_ in replaced else []
    return bool(todo)
