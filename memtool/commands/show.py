"""`memtool show`: one memory with everything derived from it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from memtool.commands._render import columns
from memtool.index import index
from memtool.memory import ids, lifecycle, timestamps
from memtool.memory.drift import SAME, Drift, lines_about
from memtool.memory.fields import BY_NAME, NUMBER_KINDS, order
from memtool.memory.memory import Fields, FieldValue, Section, as_text, sections
from memtool.memory.trust import Origin, Proof
from memtool.search.features import Facts
from memtool.search.scope import MemoryRow, drift_in, row_fields
from memtool.store.context import Context
from memtool.store.provenance import SHORT, cite
from memtool.store.tree import Record, Tree

REVERSE = {
    "resolved_by": "resolves",
    "children": "parent",
    "blocks": "blocked_by",
    "derived": "derived_from",
}
"""The reverse of each relation, by its name in the answer."""


class MemoryView(MemoryRow):
    """A memory in full.

    `fields` are the keys of the file. `heads` are the memories that it leads to, itself where
    nothing supersedes it, none where it is part of a circle. `rivals` are the other sides of a fork
    that it is a side of, `proposals` say which unconfirmed memory proposes to replace which, where
    it is one of them. `relations` holds the ids
    that name this memory, by the reverse name of the relation. `expires_at` is the last second of
    its life, None where it has no end; `due_at` the last one before somebody should look at it
    again, None where nobody need.
    """

    fields: Fields
    body: str
    sections: tuple[Section, ...]
    superseded_by: tuple[str, ...]
    heads: tuple[str, ...]
    rivals: tuple[str, ...]
    proposals: tuple[str, ...]
    relations: dict[str, tuple[str, ...]]
    fingerprint: str
    state: str
    expires_at: str | None
    due_at: str | None
    author: str
    committed_at: str | None
    citation: str
    signed_by: tuple[Proof, ...] = ()
    """The signatures by which its trust is `signed`: of its commit, or of its claim."""
    drift: Drift | None = None
    """What became of the files that it names, None where it names none."""

    def plain(self) -> dict[str, Any]:
        """Return one flat object: the row, every key of the frontmatter, then what is derived."""
        fields = super().plain()
        keys = {
            key: _typed(key, self.fields[key]) for key in sorted(fields.pop("fields"), key=order)
        }
        relations = fields.pop("relations")
        answer = {name: fields.pop(name) for name in MemoryRow.field_names}
        answer.update((key, value) for key, value in keys.items() if key not in answer)
        return {**answer, **fields, **relations}


def show(
    context: Context, id: str, *, at: str | None = None, as_of: str | None = None
) -> MemoryView:
    """Show one memory: its keys, its text, and what follows from the other memories.

    Example:
        memtool show dec-2026-02-22-keep-sessions-in-redis

    Args:
        id: the memory, by its id or words of it
        at: the memory as it is in this revision instead of the worktree
        as_of: as it stood at this moment: a date, an RFC 3339 moment, or an age such as 30d
    """
    tree: Tree = index.open(context, at, as_of, exact=True)
    record = tree.find(id)
    origin = context.origins(tree, [record])[record.path]
    naming = tree.naming(record.id)
    drift = _drift(context, tree, record)
    now = context.clock.moment_of(as_of)
    parts = sections(record.memory.body)
    facts = Facts(tree, now, dict)
    return view_of(context, facts, record, origin, naming, drift).replace(sections=parts)


def view_of(
    context: Context,
    facts: Facts,
    record: Record,
    origin: Origin,
    naming: Iterable[Record],
    drift: Drift | None,
) -> MemoryView:
    """Return a memory in full but for its sections, which take a parser to find.

    `naming` are the records that name it in one of their relations, and perhaps others.
    """
    memory, categories, now = record.memory, context.settings.categories, facts.now
    lineage = facts.tree.lineage
    end, due = lifecycle.expires_at(memory, categories), lifecycle.due_at(memory, categories)
    return MemoryView(
        **row_fields(context, record, origin, now),
        fields=memory.fields,
        body=memory.body,
        sections=(),
        superseded_by=lineage.superseded_by.get(record.id, ()),
        heads=lineage.heads_of(record.id),
        rivals=facts.rivals.get(record.id, ()),
        proposals=facts.told_proposals(record.id),
        relations=_relations(naming, record.id),
        fingerprint=ids.fingerprint(memory),
        state=lifecycle.state(memory, now, categories),
        expires_at=None if end is None else timestamps.render(end),
        due_at=None if due is None else timestamps.render(due),
        author=origin.author,
        committed_at=timestamps.render(origin.date) if origin.commit else None,
        citation=cite(record.id, origin),
        signed_by=origin.proofs,
        drift=drift,
    )


def render(shown: MemoryView) -> str:
    """Return the title, the keys and what is derived as a table, and the body."""
    is_replaced = bool(shown.superseded_by) and shown.state == lifecycle.ALIVE
    state = "superseded" if is_replaced else shown.state
    derived = {
        "state": state + (f", until {shown.expires_at}" if shown.expires_at else ""),
        "review": ""
        if shown.due_at is None
        else f"due since {shown.due_at}"
        if shown.due
        else f"due after {shown.due_at}",
        "superseded_by": ", ".join(shown.superseded_by),
        "heads": ", ".join(shown.heads) if shown.superseded_by else "",
        "fork": f"with {', '.join(shown.rivals)} (memtool conflicts)" if shown.rivals else "",
        "proposal": "; ".join(shown.proposals),
        **{name: ", ".join(ids) for name, ids in shown.relations.items()},
        "path": shown.path,
        "trust": shown.trust,
        "signed_by": ", ".join(f"{one.by} ({one.how})" for one in shown.signed_by),
        "unproven": shown.unproven,
        "commit": shown.commit or "",
        "author": shown.author,
        "fingerprint": shown.fingerprint,
    }
    keys = {key: as_text(shown.fields[key]) for key in sorted(shown.fields, key=order)}
    keys.setdefault("category", shown.category)
    keys.setdefault("status", shown.status)
    rows = [(key, text) for key, text in keys.items() if key not in ("id", "title")]
    rows += _drift_rows(shown.drift)
    rows += [(key, text) for key, text in derived.items() if text]
    return "\n".join([shown.title, shown.citation, "", *columns(rows), "", shown.body])


def _drift(context: Context, tree: Tree, record: Record) -> Drift | None:
    """Return what became of the files of a memory, with the commits that changed them."""
    witness = context.witness(tree)
    found = drift_in(tree, lambda: witness)(record)
    if found is None or found.level == SAME or witness.basis is None:
        return found
    from memtool.redaction.mask import Mask  # most memories have not drifted
    from memtool.search.drift_history import with_commits

    return with_commits(context.repository, found, witness.basis.head, Mask(context.settings).line)


def _drift_rows(drift: Drift | None) -> list[tuple[str, str]]:
    if drift is None or drift.level == SAME:
        return []
    since = f" since {drift.since[:SHORT]}" if drift.since else ""
    return [("drift", drift.level + since), *(("", line) for line in lines_about(drift))]


def _relations(naming: Iterable[Record], id_: str) -> dict[str, tuple[str, ...]]:
    """Return the ids of the memories that name this one, by reverse relation, sorted."""
    naming = list(naming)
    return {
        name: tuple(sorted(other.id for other in naming if id_ in other.memory.items(relation)))
        for name, relation in REVERSE.items()
    }


def _typed(key: str, value: FieldValue) -> Any:
    """Return the value of a key as JSON means it: numbers and flags as such, lists as lists."""
    kind = BY_NAME[key].kind if key in BY_NAME else "line"
    if isinstance(value, tuple):
        return [*value]
    if not isinstance(value, str):
        return dict(value)
    if kind in NUMBER_KINDS:
        return float(value)
    if kind == "count":
        return int(value)
    return value == "true" if kind == "flag" else value
