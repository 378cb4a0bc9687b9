"""An import: from records to checked, linked and written memories, whatever they come from.

An importer reads files and yields records. Here they get ids, relations and sources, are checked as
whole files, and are compared with the tree. Only new memories are written; nothing in the tree is
ever changed. Refused is a record that occurs twice, that holds a secret, or that would not be read
back as it is; the others are written all the same.

Memories are append-only, so only the newer one names the older: a record that says what superseded
it gives that relation to the newer one. Relations that lead nowhere or in a circle are left out,
with a warning.
"""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from memtool.gate import near_duplicates
from memtool.gate.checks import secrets
from memtool.gate.checks.schema import hidden_characters
from memtool.importing import originals
from memtool.importing.originals import ForeignRecord
from memtool.memory import document, ids, schema, timestamps
from memtool.memory.fields import RELATIONS, Category, is_mutable
from memtool.memory.memory import Fields, FieldValue, Memory
from memtool.memory.schema import Problem
from memtool.redaction import find as redaction
from memtool.redaction.find import NOTHING, Allowlist
from memtool.store import files
from memtool.store.repository import Repository
from memtool.store.tree import Record, Tree
from memtool.value import Value

DEFAULTS: Fields = {"confidence": "medium", "temporal_class": "eternal"}
"""Keys of a record that does not set them. It must not expire because it moved."""
_ORDER = {"candidate": 0, "confirmed": 1, "deprecated": 2}
_HINTS = {
    "missing-key": "give it to every record with --set KEY=VALUE, or name its place with --map",
    "conflict-markers": "finish the merge in the record",
}


class Target(Value):
    """Where records go. `tool` names the importer, `overrides` wins over the keys of records.

    A record with a secret that is not `allowed` is refused, or with `redacts` imported without it.
    Of the entries of a store only relations to what is there are kept, and of those that are more
    alike than `threshold` one is taken; records that people wrote are left to the gate.
    """

    tree: Tree
    tool: str
    overrides: Fields
    categories: Mapping[str, Category]
    now: int
    allowed: Allowlist = NOTHING
    redacts: bool = False
    is_store: bool = False
    threshold: float = 1
    command: str = "memtool import FROM PATH"
    """What the user called, without options."""


class ImportPlan(Value):
    """What an import would do: what is `found` is placed, unchanged or skipped."""

    found: int
    unchanged: tuple[str, ...]
    """The paths of the memories that are there already."""
    skipped: int
    placed: tuple[Record, ...]
    problems: tuple[Problem, ...]


def plan(records: Iterable[ForeignRecord | Problem], path: str, target: Target) -> ImportPlan:
    """Decide what happens to the records that were read from an absolute path."""
    drafts: list[ForeignRecord] = []
    problems: list[Problem] = []
    for record in records:
        if isinstance(record, ForeignRecord):
            drafts.append(record)
        else:
            problems.append(record)
    unread = len({(p.path, p.line) for p in problems if p.severity == "error"})
    found = len(drafts) + unread
    drafts = [_visible(draft, problems) for draft in _unique(drafts, problems)]
    drafts = _admitted(drafts, target, problems)
    cited = _cited(drafts, path, target)
    named = _named(drafts, cited, target.tree, problems)
    faults: list[Problem] = []
    built = _built(named, cited, target, faults)
    said = _without_repetitions(named, built, target, problems)
    if said != named:  # relations lead elsewhere by now
        faults = []
        built = _built(said, cited, target, faults)
    problems += faults
    placed = []
    unchanged: list[str] = []
    entries = (entry.path for entry in target.tree.location.list_files().entries)
    paths = {path.rpartition("/")[2].removesuffix(".md"): path for path in entries}
    for draft, memory in built:
        existing = target.tree.get(memory.id)
        if existing is not None:
            problem = _difference(draft, memory, target)
            if problem:
                problems.append(problem)
            else:
                unchanged.append(existing.path)
        elif memory.id in paths:
            problems.append(
                draft.problem(
                    "duplicate-id",
                    f"{paths[memory.id]} has the id {memory.id} already, and is not readable",
                    "memtool status says what is wrong with it",
                )
            )
        else:
            directory = target.tree.location.directory
            placed.append(Record(memory, f"{directory}/{ids.place(memory)}", ""))
    return ImportPlan(
        found=found,
        unchanged=tuple(unchanged),
        skipped=found - len(unchanged) - len(placed),
        placed=tuple(sorted(placed, key=lambda one: one.memory.id)),
        problems=tuple(sorted(problems, key=lambda p: (p.path, p.line, p.code, p.message))),
    )


def write(repository: Repository, placed: Iterable[Record]) -> None:
    """Write every planned memory, or none. Raises MemtoolError where the disk refuses one."""
    files.ignore_temporaries(repository.common_dir)
    files.create_all(repository.top, [(one.path, document.write(one.memory)) for one in placed])


def _unique(drafts: list[ForeignRecord], problems: list[Problem]) -> list[ForeignRecord]:
    """Return the first draft of each key."""
    first: dict[str, ForeignRecord] = {}
    for draft in drafts:
        first.setdefault(draft.key, draft)
    problems += [
        draft.problem(
            "duplicate-record",
            f"{originals.line(draft.key, 80)} stands in line {first[draft.key].lines[0]} already",
            "give one of them another id",
        )
        for draft in drafts
        if first[draft.key] is not draft
    ]
    return list(first.values())


def _visible(draft: ForeignRecord, problems: list[Problem]) -> ForeignRecord:
    """Return a draft without the characters of its text that no reader sees, and no gate takes."""
    hidden = [] if draft.is_exact else [one for one in hidden_characters(draft.body) if one[2]]
    if not hidden:
        return draft
    text = draft.body.replace("\r\n", "\n")
    unseen = {char for char in set(text) if any(one[2] for one in hidden_characters(f"a{char}"))}
    kept = "".join(char for char in text if char not in unseen)
    kinds = ", ".join(sorted({name for _line, name, _is_error in hidden})[:3])
    problems.append(
        draft.problem(
            "hidden-character",
            f"it holds what no reader sees, which is left out: {kinds}",
            severity="warning",
        )
    )
    return draft.replace(body=kept)


def _admitted(
    drafts: Iterable[ForeignRecord], target: Target, problems: list[Problem]
) -> list[ForeignRecord]:
    """Return the drafts without secrets and personal data; `redacts` takes these out of them."""
    admitted = []
    for given in drafts:
        draft, kinds = given, _kinds(given, target.allowed)
        if kinds and target.redacts:
            draft = _redacted(given, target.allowed)
            kinds = _kinds(draft, target.allowed)
        if kinds:
            ranked = sorted(kinds, key=lambda kind: (redaction.is_personal(kind), kind))
            message = f"it holds {', '.join(ranked)}"
            problem = draft.problem(secrets.code(ranked[0]), message, _remedy(ranked, target))
            problems.append(problem.replace(line=_line_of(draft, ranked[0], target.allowed)))
        else:
            admitted.append(draft)
    return admitted


def _kinds(draft: ForeignRecord, allowed: Allowlist) -> set[str]:
    """Return the kinds of secrets and personal data in all texts of a draft, searched as one."""
    texts = ["id: " + draft.id, *_texts(draft.fields), draft.body]
    return {detection.kind for detection in redaction.find("\n".join(texts), allowed)}


def _remedy(kinds: Sequence[str], target: Target) -> str:
    if target.redacts:
        return "it stands in the title, or is known by its key alone: correct the record"
    remedy = f"{target.command} --redact takes it out"
    if "email" in kinds:
        remedy += "; memtool config redaction.allow_domains DOMAIN lets addresses of a domain stand"
    return remedy


def _line_of(draft: ForeignRecord, kind: str, allowed: Allowlist) -> int:
    """Return the first line with what was detected, where a record has a file for itself."""
    first, last = draft.lines
    if first == 1 < last and not draft.original.is_compressed:
        text = originals.read_text(draft.original)
        found = redaction.find(text, allowed) if isinstance(text, str) else ()
        first = next((one.line for one in found if one.kind == kind and one.line <= last), first)
    return first


def _redacted(draft: ForeignRecord, allowed: Allowlist) -> ForeignRecord:
    """Return a draft with marks in its body and values; not in the title, which its id is made of.

    A secret that is known by its key alone stays, and is refused.
    """

    def without(value: FieldValue) -> FieldValue:
        if isinstance(value, dict):
            return {name: text_without(text) for name, text in value.items()}
        return text_without(value) if isinstance(value, str) else tuple(map(text_without, value))

    def text_without(text: str) -> str:
        return redaction.redact(text, redaction.find(text, allowed))

    kept = ("id", "title")
    fields = {k: v if k in kept else without(v) for k, v in draft.fields.items()}
    return draft.replace(body=text_without(draft.body), fields=fields)


def _texts(fields: Fields) -> Iterator[str]:
    for key, value in fields.items():
        for text in value if isinstance(value, tuple) else (value,):
            yield f"{key}: {text}"


def _cited(drafts: list[ForeignRecord], path: str, target: Target) -> dict[str, Fields]:
    """Return the citations and a timestamp for each draft, from what git knows of its file."""
    repository = target.tree.location.repository
    name = originals.original(path, repository.top).name
    head, blobs = originals.facts(repository, name) if name else ("", {})
    seconds: Mapping[str, int] = {}
    if any("timestamp" not in draft.fields for draft in drafts):
        seconds = originals.first_seconds(repository, name, head)
    same = originals.committed(
        (draft.original for draft in drafts), blobs, repository.object_format
    )
    cited: dict[str, Fields] = {}
    for draft in drafts:
        source = draft.original
        commit = head if source.name in same else ""
        file = originals.citation(source, draft.lines, commit)
        sources = [file] if file else []
        if not file or source.is_compressed:
            sources.append(originals.tool_citation(target.tool, source, draft.part))
        second = seconds.get(source.name, target.now)
        cited[draft.key] = {"source": tuple(sources), "timestamp": timestamps.render(second)}
    return cited


def _named(
    drafts: list[ForeignRecord], cited: dict[str, Fields], tree: Tree, problems: list[Problem]
) -> list[ForeignRecord]:
    """Give each draft the id that it keeps: its own, or with a suffix where that is in use."""
    by_id: dict[str, ForeignRecord] = {}
    for draft in drafts:
        id_ = draft.id
        if not draft.is_exact and (id_ in by_id or _is_foreign(draft, cited[draft.key], tree)):
            id_ = originals.suffixed(id_, f"{draft.original.shown} {draft.key}")
        if id_ in by_id:
            problems.append(draft.problem("duplicate-record", f"a second record is called {id_}"))
            continue
        by_id[id_] = draft.replace(id=id_)
    return list(by_id.values())


def _is_foreign(draft: ForeignRecord, cited: Fields, tree: Tree) -> bool:
    """Tell whether the tree's memory of this id came from elsewhere and says something else."""
    existing = tree.get(draft.id)
    if existing is None:
        return False
    own = {originals.place_of(source) for source in cited["source"]}
    theirs = {originals.place_of(source) for source in existing.memory.items("source")}
    return not own & theirs and existing.memory.body != originals.body(draft.body)


def _without_repetitions(
    drafts: list[ForeignRecord],
    built: Sequence[tuple[ForeignRecord, Memory]],
    target: Target,
    problems: list[Problem],
) -> list[ForeignRecord]:
    """Return the drafts without those that say what another one or a memory of the tree says.

    The gate would refuse them. Of a store of another tool what says the same is left out, and
    relations to it lead to the one that stays. Whatever else repeats another one is related to it:
    then the gate lets it pass.
    """
    tree = target.tree
    new = {
        f"{draft.id}.md": draft
        for draft, memory in built
        if memory.id not in tree and not draft.is_exact
    }
    records = [Record(one, f"{one.id}.md", "") for _draft, one in built if one.id not in tree]
    judged = [record for record in records if record.path in new]
    if not judged:
        return drafts
    near = near_duplicates.Neighbours([*tree.records, *records])
    found = near_duplicates.twins(judged, near, target.threshold, target.now, target.categories)
    stays: dict[str, str] = {}
    related: dict[str, str] = {}
    for record, twin in zip(judged, found, strict=True):
        if twin is None or (twin.record.path in new and _age(record) < _age(twin.record)):
            continue
        other = twin.record
        is_left_out = target.is_store and twin.is_like
        (stays if is_left_out else related)[record.id] = other.id
        what = "it is left out" if is_left_out else "it is kept, and related to that"
        shown = redaction.redact(other.memory.title, redaction.find(other.memory.title))
        problems.append(
            new[record.path].problem(
                "duplicate",
                f"{record.id} says {twin.how} {other.id}, {shown!r}; {what}",
                near_duplicates.hint(other.id, is_exact=twin.is_exact),
                severity="warning",
            )
        )
    gone = {draft.id: draft for draft in drafts if draft.id in stays}
    heirs: dict[str, list[str]] = {}
    for id_, draft in gone.items():
        heir = stays[id_]
        while heir in stays:  # each is younger than the one that it repeats
            heir = stays[heir]
        heirs.setdefault(heir, []).extend((draft.id, draft.key, *draft.names))
    return [
        _with_relation(draft, related).replace(names=(*draft.names, *heirs.get(draft.id, ())))
        for draft in drafts
        if draft.id not in gone
    ]


def _with_relation(draft: ForeignRecord, related: Mapping[str, str]) -> ForeignRecord:
    if draft.id not in related:
        return draft
    names = (*draft.items("related_to"), related[draft.id])
    return draft.replace(fields=draft.fields | {"related_to": names})


def _age(record: Record) -> tuple[int, str]:
    return record.memory.timestamp, record.id


def _built(
    drafts: list[ForeignRecord],
    cited: dict[str, Fields],
    target: Target,
    problems: list[Problem],
) -> list[tuple[ForeignRecord, Memory]]:
    """Build and check every memory; again without the refused ones, whose relations go too."""
    while True:
        warnings: list[Problem] = []
        links = _links(drafts, target, warnings)
        built = []
        for draft in drafts:
            memory = _memory(draft, links[draft.key], cited[draft.key], target.overrides)
            problem = _fault(draft, memory, target)
            if problem is None:
                built.append((draft, memory))
            else:
                problems.append(problem)
        if len(built) == len(drafts):
            problems += warnings
            return built
        drafts = [draft for draft, _memory in built]


def _memory(draft: ForeignRecord, links: Fields, cited: Fields, overrides: Fields) -> Memory:
    own = {key: value for key, value in draft.fields.items() if key not in links}
    if draft.is_exact:
        return Memory(fields=own | links | overrides, body=draft.body)
    fields = DEFAULTS | cited | own | links | overrides | {"id": draft.id}
    given = [overrides.get("source", ()), draft.fields.get("source", ()), cited["source"]]
    sources = [source for items in given if isinstance(items, tuple) for source in items]
    fields["source"] = tuple(dict.fromkeys(sources))
    fields = {key: value for key, value in fields.items() if value not in ("", ())}
    title = fields.get("title")
    if isinstance(title, str):
        fields["title"] = originals.line(title, originals.TITLE_LENGTH)
    header = len(document.write(Memory(fields=fields, body="")))
    where = draft.original.shown
    text = originals.body(draft.body)
    memory = Memory(fields=fields, body=text)
    if not memory.has_text:  # the gate takes no memory without: of such a record the title is one
        text = f"{memory.title}\n" + (f"\n{text}" if text else "")
    return memory.with_body(originals.cut(text, document.MAX_BYTES - header, where))


def _fault(draft: ForeignRecord, memory: Memory, target: Target) -> Problem | None:
    """Return what keeps a memory from being a file that reads back as itself, or None."""
    try:
        data = document.write(memory)
        same = document.read(data, f"{memory.id}.md", target.categories) == memory
    except document.Unreadable as error:
        first = error.problems[0]
        hint = _HINTS.get(first.code, "correct the record, or use --set and --map")
        return draft.problem(first.code, first.message, hint)
    except UnicodeEncodeError:
        return draft.problem("not-utf8", "it holds half of a character", "correct the record")
    if not (memory.has_text or draft.is_exact or memory.status == "candidate"):
        return draft.problem("no-text", "it says no more than a heading", "give it a text")
    return None if same else draft.problem("bad-value", "it would not read back as it is", "")


def _links(
    drafts: Sequence[ForeignRecord], target: Target, warnings: list[Problem]
) -> dict[str, Fields]:
    """Return the relations of each draft by its key; what is left out is a warning."""
    ids = _ids(drafts)
    older = _older(drafts, ids, target.tree, warnings)
    links: dict[str, Fields] = {}
    known = {*ids.values(), *target.tree.ids} if target.is_store else None
    for draft in drafts:
        found: Fields = {}
        if "supersedes" in draft.fields or older[draft.id]:
            found["supersedes"] = older[draft.id]
        for relation in RELATIONS[1:]:
            if relation in draft.fields:
                found[relation] = _related(draft, relation, ids, known, warnings)
        links[draft.key] = found
    return links


def _ids(drafts: Sequence[ForeignRecord]) -> dict[str, str]:
    """Return the id for every name that means just one record. Keys win over other names."""
    meant: dict[str, set[str]] = {}
    for draft in drafts:
        for name in (draft.id, *draft.names):
            meant.setdefault(name, set()).add(draft.id)
    found = {name: next(iter(ids)) for name, ids in meant.items() if len(ids) == 1}
    return found | {draft.key: draft.id for draft in drafts}


def _older(
    drafts: Sequence[ForeignRecord], ids: Mapping[str, str], tree: Tree, warnings: list[Problem]
) -> dict[str, tuple[str, ...]]:
    """Return what each draft supersedes, by their ids."""
    by_id = {draft.id: draft for draft in drafts}
    older: dict[str, list[str]] = {id_: [] for id_ in by_id}
    for draft in drafts:
        for name in draft.items("supersedes"):
            id_ = ids.get(name, name)
            if id_ in by_id or id_ in tree:
                older[draft.id].append(id_)
            else:
                warnings.append(_dangling(draft, name, "supersedes"))
        for name in draft.superseded_by:
            newer = ids.get(name, name)
            if newer in by_id:
                older[newer].append(draft.id)
            elif newer not in tree:
                warnings.append(_dangling(draft, name, "is superseded by"))
            elif draft.id not in tree.lineage.as_proposed.predecessors(newer):
                warnings.append(
                    draft.problem(
                        "dangling",
                        f"{draft.id} is superseded by {newer}, which is here, does not say so and "
                        "stays so",
                        f"memtool supersede {draft.id} TITLE says what holds instead",
                        severity="warning",
                    )
                )
    kept, dropped = without_circles(
        {id_: tuple(dict.fromkeys(olds))[: schema.MAX_ITEMS] for id_, olds in older.items()}
    )
    warnings += [
        by_id[newer].problem(
            "cycle",
            f"that {newer} supersedes {old} is left out, it would close a circle",
            "correct one of the records",
            severity="warning",
        )
        for newer, old in dropped
    ]
    return kept


def _related(
    draft: ForeignRecord,
    relation: str,
    ids: Mapping[str, str],
    known: Collection[str] | None,
    warnings: list[Problem],
) -> tuple[str, ...]:
    """Return ids of a relation, of those that are `known`; None knows all."""
    found = []
    for name in draft.items(relation):
        id_ = ids.get(name) or (name if known is None else originals.as_id(name, "rec"))
        if id_ in known if known is not None else schema.is_id(id_):
            found += [id_] if id_ != draft.id else []
        else:
            warnings.append(_dangling(draft, name, relation))
    return tuple(dict.fromkeys(found))


def _dangling(draft: ForeignRecord, name: str, relation: str) -> Problem:
    return draft.problem(
        "dangling",
        f"{draft.id} {relation} {originals.line(name, 80)}, which is not here; that is left out",
        "import the other record too",
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


def _difference(draft: ForeignRecord, memory: Memory, target: Target) -> Problem | None:
    """Return the problem that a record says something else than its memory, None if it does not.

    Only what the record says counts, and not what people may have changed since. There is no
    difference where the memory was superseded by one with the new words of the record.
    """
    existing = target.tree[memory.id].memory
    given = {"title", "type", "supersedes", *draft.fields, *target.overrides}
    claims = sorted(key for key in given if not is_mutable(key) and key not in ("id", "source"))
    other = [
        key for key in claims if (memory.fields.get(key) or "") != (existing.fields.get(key) or "")
    ]
    if memory.body != existing.body:
        other.append("body")
    successors = target.tree.lineage.as_proposed.successors(memory.id)
    if other:
        tree = target.tree
        if any(tree[id_].memory.body == memory.body for id_ in successors if id_ in tree):
            return None
        heads = target.tree.lineage.heads_of(memory.id) or (memory.id,)
        return draft.problem(
            "changed",
            f"{memory.id} stays as it is, the record has another {', '.join(other)}",
            f"memtool supersede {heads[0]} {shlex.quote(memory.title)}",
            severity="warning",
        )
    if _ORDER.get(memory.status, -1) > _ORDER.get(existing.status, 3):
        verb = "confirm" if memory.status == "confirmed" else "deprecate"
        return draft.problem(
            "changed",
            f"{memory.id} is still {existing.status}, the record became {memory.status}",
            f"memtool {verb} {memory.id}",
            severity="warning",
        )
    return None
