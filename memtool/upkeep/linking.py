"""Linking: what records call each other, turned into relations between ids.

A record that says by which it was superseded says so of the newer one: memories are append-only,
so only the newer one names the older. Edges that lead nowhere or in a circle are left out, told.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from memtool.memory import schema
from memtool.memory.fields import RELATIONS
from memtool.memory.memory import Fields
from memtool.memory.problem import Problem
from memtool.store.tree import Tree
from memtool.upkeep import wording
from memtool.upkeep.draft import Draft


def link(drafts: Sequence[Draft], tree: Tree) -> tuple[dict[str, Fields], list[Problem]]:
    """Return the relations of each draft by its key, and what was left out as warnings."""
    ids = _ids(drafts)
    warnings: list[Problem] = []
    older = _older(drafts, ids, tree, warnings)
    links: dict[str, Fields] = {}
    for draft in drafts:
        found: Fields = {}
        if "supersedes" in draft.fields or older[draft.id]:
            found["supersedes"] = older[draft.id]
        for relation in RELATIONS[1:]:
            if relation in draft.fields:
                found[relation] = _related(draft, relation, ids, warnings)
        links[draft.key] = found
    return links, warnings


def _older(
    drafts: Sequence[Draft], ids: Mapping[str, str], tree: Tree, warnings: list[Problem]
) -> dict[str, tuple[str, ...]]:
    """Return what each draft supersedes, by their ids."""
    by_id = {draft.id: draft for draft in drafts}
    older: dict[str, list[str]] = {id_: [] for id_ in by_id}
    for draft in drafts:
        for name in _names(draft, "supersedes"):
            id_ = ids.get(name, name)
            if id_ in by_id or id_ in tree.by_id:
                older[draft.id].append(id_)
            else:
                warnings.append(_dangling(draft, name, "supersedes"))
        for name in draft.superseded_by:
            newer = ids.get(name, name)
            if newer in by_id:
                older[newer].append(draft.id)
            elif newer not in tree.by_id:
                warnings.append(_dangling(draft, name, "is superseded by"))
            elif draft.id not in tree.lineage.predecessors(newer):
                warnings.append(_unsaid(draft, newer))
    kept, dropped = without_circles(
        {id_: tuple(dict.fromkeys(olds))[: schema.MAX_ITEMS] for id_, olds in older.items()}
    )
    warnings += [_circle(by_id[newer], old) for newer, old in dropped]
    return kept


def _circle(draft: Draft, old: str) -> Problem:
    return draft.problem(
        "cycle",
        f"that {draft.id} supersedes {old} is left out, it would close a circle",
        "correct one of the records",
        severity="warning",
    )


def _names(draft: Draft, relation: str) -> tuple[str, ...]:
    value = draft.fields.get(relation, ())
    return value if isinstance(value, tuple) else ()


def _ids(drafts: Sequence[Draft]) -> dict[str, str]:
    """Return the id for every name that means just one record. Keys win over other names."""
    meant: dict[str, set[str]] = {}
    for draft in drafts:
        for name in (draft.id, *draft.names):
            meant.setdefault(name, set()).add(draft.id)
    found = {name: next(iter(ids)) for name, ids in meant.items() if len(ids) == 1}
    return found | {draft.key: draft.id for draft in drafts}


def _related(
    draft: Draft, relation: str, ids: Mapping[str, str], warnings: list[Problem]
) -> tuple[str, ...]:
    found = []
    for name in _names(draft, relation):
        id_ = ids.get(name, name)
        if schema.is_id(id_):
            found.append(id_)
        else:
            warnings.append(_dangling(draft, name, relation))
    return tuple(dict.fromkeys(found))


def _dangling(draft: Draft, name: str, relation: str) -> Problem:
    return draft.problem(
        "dangling",
        f"{draft.id} {relation} {wording.line(name, 80)}, which is not here; that is left out",
        "import the other record too",
        severity="warning",
    )


def _unsaid(draft: Draft, newer: str) -> Problem:
    return draft.problem(
        "dangling",
        f"{draft.id} is superseded by {newer}, which is here, does not say so and stays so",
        f"memtool supersede {draft.id} TITLE says what holds instead",
        severity="warning",
    )


def without_circles(
    older: Mapping[str, tuple[str, ...]],
) -> tuple[dict[str, tuple[str, ...]], list[tuple[str, str]]]:
    """Return the edges without those that close a circle, and those, as (newer, older).

    A depth-first walk in the order of the ids, with an explicit stack: an edge back to a node that
    the walk is still inside of closes a circle.
    """
    state: dict[str, int] = {}  # 1 while inside, 2 when done
    dropped: list[tuple[str, str]] = []
    for root in sorted(older):
        stack = [(root, iter(sorted(older[root])))] if root not in state else []
        state.setdefault(root, 1)
        while stack:
            node, rest = stack[-1]
            for target in rest:
                if state.get(target) == 1:
                    dropped.append((node, target))
                elif target in older and target not in state:
                    state[target] = 1
                    stack.append((target, iter(sorted(older[target]))))
                    break
            else:
                state[node] = 2
                stack.pop()
    gone = set(dropped)
    kept = {
        newer: tuple(old for old in olds if (newer, old) not in gone)
        for newer, olds in older.items()
    }
    return kept, sorted(dropped)
