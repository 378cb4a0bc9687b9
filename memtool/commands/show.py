"""`memtool show`: one memory with everything derived from it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from memtool.commands._layout import Layout
from memtool.commands._render import (
    format_acts,
    format_authors,
    format_commit,
    format_kind,
    list_states,
)
from memtool.index import index
from memtool.memory import ids, lifecycle, timestamps
from memtool.memory.drift import SAME, TOUCHED, Drift, describe_base, describe_lines
from memtool.memory.fields import BY_NAME, NUMBER_KINDS, OWN_PREFIX, RELATIONS, order
from memtool.memory.memory import Fields, FieldValue, Section, split_sections, to_text
from memtool.memory.premises import MEMORY, REPLACED
from memtool.memory.trust import Origin, Proof
from memtool.search.features import Facts
from memtool.search.scope import MemoryRow, build_drift_witness, collect_row_fields
from memtool.search.stages import overlay_tree
from memtool.search.suggested_files import suggest_files
from memtool.search.unsettled import HOLDS, CauseReport, LinkedMemory, Unsettled, summarize
from memtool.store.context import Context
from memtool.store.history import UNKNOWN_COMMIT, Commit, History
from memtool.store.provenance import ProvenanceReader, cite
from memtool.store.tree import Record

REVERSE_RELATIONS = {
    "resolved_by": "resolves",
    "children": "parent",
    "blocks": "blocked_by",
    "derived": "derived_from",
}
"""The relation behind each reverse relation of the answer."""


MAX_LINKED = 10
"""Premises and conclusions that the text names without --all."""


class MemoryView(MemoryRow):
    """A memory in full.

    - `fields`: the keys of the file
    - `heads`: the heads of its lineage; itself if nothing supersedes it, none in a circle
    - `rivals`: the other sides of its fork
    - `proposals`: sentences on which candidate proposes to replace which, if it is one of them
    - `relations`: the ids that name this memory, by the reverse name of the relation
    - `premises`: what it rests on, and `conclusions`: what rests on it, both directly
    - `causes`: why it is unsettled, the nearest first; `unsettled` is the first one in words
    - `expires_at`: the last second on which it is alive, None if it does not expire
    - `due_at`: the last second before its review is due, None if it needs no review
    """

    json_optional = "notice newer pull_request co_authors suggested_files"

    fields: Fields
    body: str
    sections: tuple[Section, ...]
    superseded_by: tuple[str, ...]
    heads: tuple[str, ...]
    rivals: tuple[str, ...]
    proposals: tuple[str, ...]
    relations: dict[str, tuple[str, ...]]
    premises: tuple[LinkedMemory, ...]
    conclusions: tuple[LinkedMemory, ...]
    causes: tuple[CauseReport, ...]
    fingerprint: str
    state: str
    expires_at: str | None
    due_at: str | None
    author: str
    committed_at: str | None
    citation: str
    signed_by: tuple[Proof, ...] = ()
    """The signatures that make its trust `signed`: of its commit, or of its claim."""
    drift: Drift | None = None
    """Drift of the files that it names, None if it names none."""
    notice: str = ""
    """How the trusted branch has changed it, or that it exists only there."""
    newer: tuple[str, ...] = ()
    """Ids that replace it on the trusted branch, but not yet on this one."""
    pull_request: str = ""
    """The pull request of its commit, such as `#12`, "" if the message names none."""
    co_authors: tuple[str, ...] = ()
    """Co-authors of its commit."""
    suggested_files: tuple[str, ...] = ()
    """Files that it probably governs: an imported decision whose text names them."""
    has_all_keys: bool = False
    """Whether the text has every key; JSON always has."""

    def list_relations(self, keys: Iterable[str]) -> list[tuple[str, tuple[str, ...]]]:
        """Return the ids by some keys and by the reverse relations, by name, if there are any.

        What it is derived from or led to is left out if that is a premise or a conclusion.
        """
        linked = {memory.id for memory in (*self.premises, *self.conclusions)}
        named = [(key, self.fields[key]) for key in keys if key in self.fields]
        rows = [(name, (ids,) if isinstance(ids, str) else tuple(ids)) for name, ids in named]
        related = [
            (name, tuple(id_ for id_ in ids if not (name.startswith("derived") and id_ in linked)))
            for name, ids in (*rows, *self.relations.items())
        ]
        return [(name, ids) for name, ids in related if ids]

    def plain(self) -> dict[str, Any]:
        """Return one flat object: the row, every key of the frontmatter, then derived values."""
        fields = super().plain()
        del fields["has_all_keys"]
        keys = {
            key: _to_json_value(key, self.fields[key])
            for key in sorted(fields.pop("fields"), key=order)
        }
        relations = fields.pop("relations")
        answer = {name: fields.pop(name) for name in MemoryRow.field_names}
        answer.update((key, value) for key, value in keys.items() if key not in answer)
        return {**answer, **fields, **relations}


def show(
    context: Context,
    id: str,
    *,
    all: bool = False,
    at: str | None = None,
    as_of: str | None = None,
) -> MemoryView:
    """Show one memory: its text, its keys, and what other memories say about it.

    Example:
        memtool show dec-2g54
        memtool show dec-2g54 --at origin/main

    Args:
        id: the memory, by id or words
        all: also show keys that are rarely needed, and all conclusions
        at: a revision instead of the worktree
        as_of: a past time: a date, RFC 3339, or an age such as 30d
    """
    tree = index.open(context, at, as_of, exact=True)
    now = context.clock.parse_as_of(as_of)
    if at is None and as_of is None:
        tree = overlay_tree(context, tree, now)
    record = tree.find(id)
    origin = context.origins(tree, [record])[record.path]
    commit = UNKNOWN_COMMIT
    if origin.commit:
        with History(context.repository) as history:
            commit = history.commit(origin.commit)
    naming = tree.naming(record.id)
    reader = context.provenance_reader(tree)
    witness = build_drift_witness(tree, lambda: reader)
    drift = _with_commits(context, reader, witness(record))
    parts = split_sections(record.memory.body)
    facts, unsettled = Facts(tree, now, dict), Unsettled(tree, now, witness)
    return build_view(context, facts, unsettled, record, origin, commit, naming, drift).replace(
        sections=parts,
        has_all_keys=all,
        suggested_files=suggest_files(tree, [record]).get(record.id, ()),
    )


def build_view(
    context: Context,
    facts: Facts,
    unsettled: Unsettled,
    record: Record,
    origin: Origin,
    commit: Commit,
    naming: Iterable[Record],
    drift: Drift | None,
) -> MemoryView:
    """Build the view of a memory without its sections, which need a markdown parser.

    `commit` is that of its origin. `naming` must include every record with a relation to it.
    """
    memory, categories, now = record.memory, context.settings.categories, facts.now
    lineage = facts.tree.lineage
    end, due = lifecycle.find_expiry(memory, categories), lifecycle.find_due(memory, categories)
    causes = unsettled.explain(record.id)
    return MemoryView(
        **collect_row_fields(context, record, origin, now, summarize(causes)),
        fields=memory.fields,
        body=memory.body,
        sections=(),
        superseded_by=lineage.superseded_by.get(record.id, ()),
        heads=lineage.find_heads(record.id),
        rivals=facts.rivals.get(record.id, ()),
        proposals=facts.describe_proposals(record.id),
        relations=_find_reverse_relations(naming, record.id),
        premises=unsettled.link(unsettled.list_premises(record.id)),
        conclusions=unsettled.link(unsettled.find_conclusions(record.id)),
        causes=causes,
        fingerprint=ids.compute_fingerprint(memory),
        state=lifecycle.find_state(memory, now, categories),
        expires_at=None if end is None else timestamps.render(end),
        due_at=None if due is None else timestamps.render(due),
        author=origin.author,
        committed_at=timestamps.render(origin.date) if origin.commit else None,
        citation=cite(record.id, origin),
        signed_by=origin.proofs,
        drift=drift,
        notice=facts.tree.find_notice(record),
        newer=facts.tree.find_newer_ids(record),
        pull_request=commit.pull_request,
        co_authors=commit.co_authors,
    )


def render(shown: MemoryView, layout: Layout) -> str:
    """Return title and citation, author and state, the text, then what else there is to know."""
    rows = layout.title_line(shown.title, layout.cite(shown.id, shown.commit))
    by = f" by {format_authors(shown)}" if shown.author else ""
    states = list_states(layout, shown) or ["confirmed"]
    rows.append(" · ".join([f"{_name_kind(shown)}{by}, {layout.when(shown.timestamp)}", *states]))
    rows += layout.wrap(layout.shorten(shown.notice))
    facts = list(_list_facts(shown, layout))
    if shown.has_all_keys:
        facts += _list_remaining_keys(shown)
    facts.append(("Id", [shown.id], False))
    return "\n".join([*rows, "", shown.body.rstrip(), "", *_format_facts(facts, layout)])


def _name_kind(shown: MemoryView) -> str:
    """Return type and category, once if they are the same."""
    kind = format_kind(shown.category)
    return kind if kind == shown.type else f"{shown.type}, {kind}"


_Fact = tuple[str, list[str], bool]
"""A row of the facts: its name, its lines, and whether it needs attention."""
SHOWN_KEYS = ("files", "tags", "source")


def _list_facts(shown: MemoryView, layout: Layout) -> Iterator[_Fact]:
    """Yield what needs attention, then what a reader asks for first."""
    if shown.superseded_by:
        yield "Superseded by", _name_all(shown.superseded_by, layout), True
        heads = [id_ for id_ in shown.heads if id_ not in shown.superseded_by]
        yield "In use now", _name_all(heads, layout), True
    yield "Conflict", _name_all(shown.rivals, layout), True
    yield "Proposal", list(map(layout.shorten, shown.proposals)), True
    if shown.state != lifecycle.ALIVE:
        yield "State", [shown.state], True
    if shown.due and shown.due_at:
        yield "Review", [f"due since {layout.when(shown.due_at)}"], True
    yield "Unproven", [shown.unproven] * bool(shown.unproven), True
    yield "Unsettled", _list_causes(shown.causes, layout), True
    yield from _list_drift(shown.drift)
    limit = 0 if shown.has_all_keys else MAX_LINKED
    yield "Premises", _name_linked(shown.premises, limit, layout), False
    yield "Conclusions", _name_linked(shown.conclusions, limit, layout), False
    cited = {f"{MEMORY}{premise.id}" for premise in shown.premises}
    for key in SHOWN_KEYS:
        value = shown.fields.get(key, ())
        items = [*value] if isinstance(value, tuple) else [to_text(value)]
        items = [item for item in items if item not in cited]
        yield _name_key(key), [", ".join(items)] if key != "source" else items, False
    suggested = ", ".join(shown.suggested_files)
    accept = layout.hint(f"memtool confirm {layout.short(shown.id)} --accept-files adds them")
    yield "Probably", [f"{suggested} ({accept})"] if suggested else [], False
    for name, related in shown.list_relations(RELATIONS):
        yield _name_key(name), _name_all(related, layout), False
    if shown.expires_at and shown.state == lifecycle.ALIVE:
        yield "Until", [shown.expires_at], False
    if shown.due_at and not shown.due:
        yield "Review", [f"due after {shown.due_at[:10]}"], False
    signatures = [f"{proof.by} ({proof.how})" for proof in shown.signed_by]
    yield "Signed by", signatures, False


def _list_remaining_keys(shown: MemoryView) -> Iterator[_Fact]:
    """Yield the keys of the file that are not shown yet, then commit, path and fingerprint."""
    usual = {"id", "title", "type", "category", *SHOWN_KEYS, *RELATIONS}
    for key in sorted(shown.fields.keys() - usual, key=order):
        yield _name_key(key), [to_text(shown.fields[key])], False
    yield "Trust", [shown.trust], False
    yield "Commit", [format_commit(shown, digits=None)], False
    yield "Path", [shown.path], False
    yield "Fingerprint", [shown.fingerprint], False


def _name_key(key: str) -> str:
    return key if key.startswith(OWN_PREFIX) else key.replace("_", " ").capitalize()


def _name_all(ids: Iterable[str], layout: Layout) -> list[str]:
    return [layout.name(id_) for id_ in ids]


def _name_linked(linked: Sequence[LinkedMemory], limit: int, layout: Layout) -> list[str]:
    """Return a line for each of the first premises or conclusions, with its state if unusual.

    A limit of 0 is none.
    """
    shown = linked[: limit or None]
    hidden = len(linked) - len(shown)
    return [
        *(
            f"{layout.name(memory.id)}{f' ({memory.state})' if memory.state != HOLDS else ''}"
            for memory in shown
        ),
        *([layout.hint(f"and {hidden:,} more (--all shows them)")] if hidden else ()),
    ]


def _list_causes(causes: Sequence[CauseReport], layout: Layout) -> list[str]:
    """Return a line for each cause, then the acts that settle the first one."""
    lines = []
    for cause in causes:
        title = layout.title(cause.id) if cause.reason == REPLACED else ""
        lines.append(layout.shorten(cause.describe()) + (f": {title}" if title else ""))
    acts = format_acts(layout.short(causes[0].lowest)) if causes else []
    return [*lines, *map(layout.hint, acts)]


def _list_drift(drift: Drift | None) -> Iterator[_Fact]:
    if drift is None:
        return
    if drift.level != SAME:
        base = f" since {describe_base(drift)}" if drift.since else ""
        yield "Drift", [f"{drift.level}{base}", *describe_lines(drift)], drift.level != TOUCHED
    yield "Renamed", [f"{move.now} (was {move.path})" for move in drift.renames], False


def _format_facts(facts: Iterable[_Fact], layout: Layout) -> Iterator[str]:
    """Yield the lines of the facts, names in one column; facts without lines are left out."""
    shown = [fact for fact in facts if any(fact[1])]
    width = max(len(name) for name, _lines, _is_urgent in shown)
    for name, lines, is_urgent in shown:
        label = f"{'!' if is_urgent else ' '} {name.ljust(width)}  "
        for line in lines:
            wrapped = layout.wrap(line, " " * len(label))
            yield label + wrapped[0].lstrip()
            yield from wrapped[1:]
            label = " " * len(label)


def _with_commits(context: Context, reader: ProvenanceReader, drift: Drift | None) -> Drift | None:
    """Return the drift of a memory with the commits that changed its files."""
    if drift is None or drift.level == SAME or reader.basis is None:
        return drift
    from memtool.redaction.mask import Mask  # most memories have not drifted
    from memtool.search.drift_history import with_commits

    return with_commits(context.repository, drift, reader.basis.head, Mask(context.settings).line)


def _find_reverse_relations(naming: Iterable[Record], id_: str) -> dict[str, tuple[str, ...]]:
    """Return the sorted ids of the memories that name this one, by reverse relation."""
    naming = list(naming)
    return {
        name: tuple(sorted(other.id for other in naming if id_ in other.memory.items(relation)))
        for name, relation in REVERSE_RELATIONS.items()
    }


def _to_json_value(key: str, value: FieldValue) -> Any:
    """Convert the value of a key to its JSON type: numbers, booleans, lists."""
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
