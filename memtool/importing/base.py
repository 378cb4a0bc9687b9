"""Import: turn records of any format into checked and linked memories, and write them.

An importer reads files and yields records. This module adds ids, relations and sources, checks the
memories as whole files, and compares them with the tree. Only new memories are written; existing
ones never change. A record that changed since it was imported becomes a memory that supersedes the
one before, unless a person has corrected that one. A record that occurs twice, contains a secret,
or would not read back unchanged is refused; the others are still written.

Memories are append-only, so the newer one names the older: if a record names its successor, the
relation moves to the successor. Dangling and circular relations are left out, with a warning.
"""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from memtool.gate import near_duplicates
from memtool.gate.checks import secrets
from memtool.gate.checks.schema import find_hidden_characters
from memtool.importing import file_history, originals, settling
from memtool.importing.file_history import FileHistory
from memtool.importing.originals import ForeignRecord, Original
from memtool.memory import document, ids, premises, schema, timestamps
from memtool.memory.fields import RELATIONS, Category, is_mutable
from memtool.memory.memory import Fields, FieldValue, Memory
from memtool.memory.schema import Problem
from memtool.redaction import find as redaction
from memtool.redaction.find import NOTHING, Allowlist
from memtool.store import files, sightings
from memtool.store.repository import Repository
from memtool.store.tree import Record, Tree
from memtool.value import HEX, Value

DEFAULTS: Fields = {"confidence": "medium", "temporal_class": "eternal"}
"""Values of keys that a record does not set; an import must not make it expire."""
_STATUS_ORDER = {"candidate": 0, "confirmed": 1, "deprecated": 2}
_HINTS = {
    "missing-key": "give it to every record with --set KEY=VALUE, or name its place with --map",
    "conflict-markers": "finish the merge in the record",
}


BY_AGE = "by-age"
SETTLED_DAYS = 30


class Target(Value):
    """The destination and options of an import.

    `tool` names the importer; `overrides` replace keys of records. A record with a secret that is
    not `allowed` is refused, or with `redacts` imported without it. From a store, of entries more
    similar than `threshold` only one is imported; records written by people are left to the gate.
    Relations to records that are neither imported nor here are kept if it `keeps_unknown`.

    `default_status` is for records that have none: a status, or BY_AGE, which is confirmed once the
    trusted branch has the record for SETTLED_DAYS. `trusted_ref` is the setting of this name.
    """

    tree: Tree
    tool: str
    overrides: Fields
    categories: Mapping[str, Category]
    now: int
    allowed: Allowlist = NOTHING
    redacts: bool = False
    is_store: bool = False
    keeps_unknown: bool = False
    threshold: float = 1
    default_status: str = ""
    trusted_ref: str = ""
    command: str = "memtool import FROM PATH"
    """The user's command line without options, for hints."""


class ImportPlan(Value):
    """The result of planning: of `record_count` records, each is placed, unchanged or skipped.

    `unchanged` are the paths of memories that already exist, `updated` the ids of placed memories
    that supersede one of an earlier import. `origins` say, by id, where status and date of a placed
    memory come from.
    """

    record_count: int
    unchanged: tuple[str, ...]
    skipped: int
    placed: tuple[Record, ...]
    problems: tuple[Problem, ...]
    updated: frozenset[str] = frozenset()
    origins: Mapping[str, tuple[str, str]] = {}


def plan_import(
    records: Iterable[ForeignRecord | Problem], path: str, target: Target
) -> ImportPlan:
    """Plan the import of the records from an absolute path."""
    drafts: list[ForeignRecord] = []
    problems: list[Problem] = []
    for record in records:
        if isinstance(record, ForeignRecord):
            drafts.append(record)
        else:
            problems.append(record)
    unreadable_count = len({(p.path, p.line) for p in problems if p.severity == "error"})
    found_count = len(drafts) + unreadable_count
    drafts = [_remove_hidden(draft, problems) for draft in _remove_duplicates(drafts, problems)]
    drafts = _admit(drafts, target, problems)
    history = _read_history(drafts, path, target)
    drafts, citations = _complete(drafts, history, target)
    with_ids = _assign_ids(drafts, citations, target.tree, problems)
    faults: list[Problem] = []
    built = _build_memories(with_ids, citations, target, faults)
    distinct = _merge_repetitions(with_ids, built, target, problems)
    if distinct != with_ids:  # targets of relations have changed
        faults = []
        built = _build_memories(distinct, citations, target, faults)
    problems += faults
    placement = _place(built, target)
    problems += placement.problems
    return ImportPlan(
        record_count=found_count,
        unchanged=placement.unchanged,
        skipped=found_count - len(placement.unchanged) - len(placement.placed),
        placed=tuple(sorted(placement.placed, key=lambda record: record.memory.id)),
        problems=tuple(sorted(problems, key=lambda p: (p.path, p.line, p.code, p.message))),
        updated=placement.updated,
        origins=placement.origins,
    )


def _place(built: Sequence[tuple[ForeignRecord, Memory]], target: Target) -> ImportPlan:
    """Compare the memories with the tree, and find the paths of the new ones."""
    placed: list[Record] = []
    unchanged: list[str] = []
    updated: set[str] = set()
    problems: list[Problem] = []
    location = target.tree.location
    entries = (entry.path for entry in location.list_files().entries)
    paths = {path.rpartition("/")[2].removesuffix(".md"): path for path in entries}
    origins: dict[str, tuple[str, str]] = {}
    latest: dict[str, str] = {}
    for draft, memory in built:
        existing = target.tree.get(memory.id)
        new = memory if existing is None else _find_difference(draft, memory, target)
        if isinstance(new, Problem):
            problems.append(new)
        elif new is None:
            unchanged.append(existing.path if existing else "")
            latest[memory.id] = _find_last_import(memory, target.tree).id
        elif new.id in paths:
            problems.append(
                draft.problem(
                    "duplicate-id",
                    f"{paths[new.id]} has the id {new.id} already, and is not readable",
                    "memtool status says what is wrong with it",
                )
            )
        else:
            placed.append(Record(new, f"{location.directory}/{ids.make_path(new)}", ""))
            origins[new.id] = (draft.status_from, draft.date_from)
            updated.update([new.id] if existing else [])
            latest[memory.id] = new.id
    exact = {draft.id for draft, _memory in built if draft.is_exact}
    placed = settling.cite_latest(placed, latest, exact)
    retired = _date_retirements(placed, built, target)
    placed = settling.settle(placed, target.tree, target.now, exact, retired)
    return ImportPlan(
        len(built), tuple(unchanged), 0, tuple(placed), tuple(problems), frozenset(updated), origins
    )


def _date_retirements(
    placed: Sequence[Record], built: Sequence[tuple[ForeignRecord, Memory]], target: Target
) -> dict[str, int]:
    """Return, by id, when each deprecated premise was so at the latest, in Unix seconds.

    Records rarely say it, so that is the last commit of the file.
    """
    cited = {id_ for record in placed for id_ in premises.find_premises(record.memory)}
    names = {
        memory.id: draft.original.name
        for draft, memory in built
        if memory.status == "deprecated" and memory.id in cited
    }
    files_ = sorted({*filter(None, names.values())})
    changes = file_history.find_last_changes(target.tree.location.repository, files_)
    return {id_: changes[name] for id_, name in names.items() if name in changes}


def write_memories(repository: Repository, placed: Sequence[Record]) -> None:
    """Write all planned memories or none. Raises MemtoolError if a write fails."""
    files.ignore_temporaries(repository.common_dir)
    with repository.git.open_objects():  # one process of git for all of them
        memories = sightings.with_sightings(repository, [record.memory for record in placed])
    items = []
    for record, memory in zip(placed, memories, strict=True):
        data = document.write(memory)
        is_too_long = len(data) > document.MAX_BYTES  # the text was cut to fit without sightings
        items.append((record.path, document.write(record.memory) if is_too_long else data))
    files.create_all(repository.top, items)


def _remove_duplicates(drafts: list[ForeignRecord], problems: list[Problem]) -> list[ForeignRecord]:
    """Keep the first draft of each key, with problems for the others."""
    first: dict[str, ForeignRecord] = {}
    for draft in drafts:
        first.setdefault(draft.key, draft)
    problems += [
        draft.problem(
            "duplicate-record",
            f"{originals.to_line(draft.key, 80)} stands in line "
            f"{first[draft.key].lines[0]} already",
            "give one of them another id",
        )
        for draft in drafts
        if first[draft.key] is not draft
    ]
    return list(first.values())


def _remove_hidden(draft: ForeignRecord, problems: list[Problem]) -> ForeignRecord:
    """Remove the hidden characters that the gate refuses, with a warning."""
    hidden = (
        []
        if draft.is_exact
        else [finding for finding in find_hidden_characters(draft.body) if finding[2]]
    )
    if not hidden:
        return draft
    text = draft.body.replace("\r\n", "\n")
    unseen = {
        char
        for char in set(text)
        if any(finding[2] for finding in find_hidden_characters(f"a{char}"))
    }
    visible_text = "".join(char for char in text if char not in unseen)
    kinds = ", ".join(sorted({name for _line, name, _is_error in hidden})[:3])
    problems.append(
        draft.problem(
            "hidden-character",
            f"it holds what no reader sees, which is left out: {kinds}",
            severity="warning",
        )
    )
    return draft.replace(body=visible_text)


def _admit(
    drafts: Iterable[ForeignRecord], target: Target, problems: list[Problem]
) -> list[ForeignRecord]:
    """Refuse drafts with secrets or personal data, or redact them if `redacts` is set."""
    admitted = []
    for original_draft in drafts:
        existing = target.tree.get(original_draft.id)
        is_known = existing is not None and existing.memory.body == originals.to_body(
            original_draft.body
        )
        kinds = _find_kinds(original_draft, target.allowed, has_body=not is_known)
        draft = original_draft
        if kinds:
            redacted = _redact(original_draft, target.allowed)
            lasting = _find_kinds(redacted, target.allowed, has_body=True)
            if target.redacts:
                draft, kinds = redacted, lasting
        if kinds:
            ranked = sorted(kinds, key=lambda kind: (redaction.is_personal(kind), kind))
            message = f"it contains {', '.join(map(secrets.name_kind, ranked))}"
            remedy = _suggest_remedy(ranked, target, can_redact=not lasting)
            problem = draft.problem(secrets.find_code(ranked[0]), message, remedy)
            problems.append(problem.replace(line=_find_line(draft, ranked[0], target.allowed)))
        else:
            admitted.append(draft)
    return admitted


def _find_kinds(draft: ForeignRecord, allowed: Allowlist, *, has_body: bool) -> set[str]:
    """Return the kinds of secrets and personal data in a draft, searching its texts as one.

    A body that a memory has already was searched when that was written.
    """
    texts = ["id: " + draft.id, *_format_fields(draft.fields), draft.body if has_body else ""]
    return {detection.kind for detection in redaction.find("\n".join(texts), allowed)}


def _suggest_remedy(kinds: Sequence[str], target: Target, *, can_redact: bool) -> str:
    if not can_redact:
        return (
            "take it out of the record: --redact leaves titles, ids, and values that only their "
            "key gives away"
        )
    remedy = f"{target.command} --redact takes it out"
    if "email" in kinds:
        remedy += "; memtool config redaction.allow_emails DOMAIN lets addresses of a domain stand"
    return remedy


def _find_line(draft: ForeignRecord, kind: str, allowed: Allowlist) -> int:
    """Return the line of a detection, if the record is a whole file; else its first line."""
    first, last = draft.lines
    if first == 1 < last and not draft.original.is_compressed:
        text = originals.read_text(draft.original)
        detections = redaction.find(text, allowed) if isinstance(text, str) else ()
        first = next(
            (
                detection.line
                for detection in detections
                if detection.kind == kind and detection.line <= last
            ),
            first,
        )
    return first


def _redact(draft: ForeignRecord, allowed: Allowlist) -> ForeignRecord:
    """Redact the body and values of a draft, except id and title (the id is derived from it).

    A secret that is only recognized by its key stays, and is refused later.
    """

    def redact_value(value: FieldValue) -> FieldValue:
        if isinstance(value, dict):
            return {name: redact_text(text) for name, text in value.items()}
        return redact_text(value) if isinstance(value, str) else tuple(map(redact_text, value))

    def redact_text(text: str) -> str:
        return redaction.clean_text(text, allowed)

    unredacted = ("id", "title")
    fields = {k: v if k in unredacted else redact_value(v) for k, v in draft.fields.items()}
    return draft.replace(body=redact_text(draft.body), fields=fields)


def _format_fields(fields: Fields) -> Iterator[str]:
    for key, value in fields.items():
        for text in value if isinstance(value, tuple) else (value,):
            yield f"{key}: {text}"


def _read_history(drafts: Sequence[ForeignRecord], path: str, target: Target) -> FileHistory:
    """Read what git knows of the files; their dates only if a record needs them."""
    repository = target.tree.location.repository
    name = originals.build_original(path, repository.top).name
    if not name:
        return FileHistory()
    has_dates = any(
        "timestamp" not in draft.fields or _needs_age(draft, target) for draft in drafts
    )
    return file_history.read_history(repository, name, target.trusted_ref, has_dates=has_dates)


def _needs_age(draft: ForeignRecord, target: Target) -> bool:
    return target.default_status == BY_AGE and "status" not in draft.fields


def _complete(
    drafts: list[ForeignRecord], history: FileHistory, target: Target
) -> tuple[list[ForeignRecord], dict[str, Fields]]:
    """Return the drafts with the origin of status and date, and by key what they lack.

    That is their sources, and the date and status of those that have none of their own.
    """
    object_format = target.tree.location.repository.object_format
    committed_names = file_history.find_committed(
        (draft.original for draft in drafts), history.blobs, object_format
    )
    completed = []
    additions: dict[str, Fields] = {}
    for draft in drafts:
        source = draft.original
        commit = history.head if source.name in committed_names else ""
        file = originals.build_citation(source, draft.lines, commit)
        sources = [file] if file else []
        if not file or source.is_compressed:
            sources.append(originals.build_tool_citation(target.tool, source, draft.part))
        second = history.authored.get(source.name, target.now)
        added: Fields = {"source": tuple(sources), "timestamp": timestamps.render(second)}
        status_from, date_from = draft.status_from, draft.date_from
        if "timestamp" not in draft.fields:
            date_from = "first commit" if source.name in history.authored else "today"
        if "status" not in draft.fields and target.default_status:
            added["status"], status_from = _choose_status(source, history, target)
        additions[draft.key] = added
        completed.append(draft.replace(status_from=status_from, date_from=date_from))
    return completed, additions


def _choose_status(source: Original, history: FileHistory, target: Target) -> tuple[str, str]:
    """Return the status of a record that has none, and why, for a person."""
    if target.default_status != BY_AGE:
        return target.default_status, "--default-status"
    second = history.committed.get(source.name) if source.name in history.settled else None
    where = history.branch or "this branch"
    if second is None:
        return "candidate", f"none, and not on {where}" if source.name else "none"
    if target.now - second < SETTLED_DAYS * timestamps.DAY_S:
        return "candidate", f"none, and not yet {SETTLED_DAYS} days on {where}"
    return "confirmed", f"none, but on {where} since {timestamps.format_date(second)}"


def _assign_ids(
    drafts: list[ForeignRecord], citations: dict[str, Fields], tree: Tree, problems: list[Problem]
) -> list[ForeignRecord]:
    """Assign final ids: the draft's own, or with a suffix if that is in use."""
    by_id: dict[str, ForeignRecord] = {}
    for draft in drafts:
        id_ = draft.id
        if not draft.is_exact and (
            id_ in by_id or _has_other_origin(draft, citations[draft.key], tree)
        ):
            id_ = originals.with_suffix(id_, f"{draft.original.shown} {draft.key}")
        if id_ in by_id:
            problems.append(draft.problem("duplicate-record", f"a second record is called {id_}"))
            continue
        by_id[id_] = draft.replace(id=id_)
    return list(by_id.values())


def _has_other_origin(draft: ForeignRecord, citations: Fields, tree: Tree) -> bool:
    """Return whether the memory of this id has another source and another text."""
    existing = tree.get(draft.id)
    if existing is None:
        return False
    own = {originals.strip_version(source) for source in citations["source"]}
    return not own & _find_origins(existing.memory) and existing.memory.body != originals.to_body(
        draft.body
    )


def _merge_repetitions(
    drafts: list[ForeignRecord],
    built: Sequence[tuple[ForeignRecord, Memory]],
    target: Target,
    problems: list[Problem],
) -> list[ForeignRecord]:
    """Handle drafts that repeat another draft or a memory, which the gate would refuse.

    From a store of another tool, a repetition is left out, and relations to it lead to the
    remaining one. Any other repetition gets a relation to the original, so that the gate accepts
    it.
    """
    tree = target.tree
    new = {
        f"{draft.id}.md": draft
        for draft, memory in built
        if memory.id not in tree and not draft.is_exact
    }
    records = [
        Record(memory, f"{memory.id}.md", "") for _draft, memory in built if memory.id not in tree
    ]
    checked = [record for record in records if record.path in new]
    if not checked:
        return drafts
    neighbours = near_duplicates.DuplicateIndex([*tree.records, *records])
    twins = near_duplicates.find_duplicates(
        checked, neighbours, target.threshold, target.now, target.categories
    )
    replacements: dict[str, str] = {}
    related: dict[str, str] = {}
    for record, twin in zip(checked, twins, strict=True):
        if twin is None or (twin.record.path in new and _age_key(record) < _age_key(twin.record)):
            continue
        other = twin.record
        is_left_out = target.is_store and twin.is_whole
        (replacements if is_left_out else related)[record.id] = other.id
        what = "it is left out" if is_left_out else "it is kept, and related to that"
        shown = redaction.clean_text(other.memory.title)
        problems.append(
            new[record.path].problem(
                "duplicate",
                f"{record.id} says {twin.how} {other.id}, {shown!r}; {what}",
                near_duplicates.make_hint(other.id, is_exact=twin.is_exact),
                severity="warning",
            )
        )
    dropped = {draft.id: draft for draft in drafts if draft.id in replacements}
    names_by_heir: dict[str, list[str]] = {}
    for id_, draft in dropped.items():
        heir = replacements[id_]
        while heir in replacements:  # ends, as each repeats an older one
            heir = replacements[heir]
        names_by_heir.setdefault(heir, []).extend((draft.id, draft.key, *draft.names))
    return [
        _with_relation(draft, related).replace(
            names=(*draft.names, *names_by_heir.get(draft.id, ()))
        )
        for draft in drafts
        if draft.id not in dropped
    ]


def _with_relation(draft: ForeignRecord, related: Mapping[str, str]) -> ForeignRecord:
    if draft.id not in related:
        return draft
    names = (*draft.items("related_to"), related[draft.id])
    return draft.replace(fields=draft.fields | {"related_to": names})


def _age_key(record: Record) -> tuple[int, str]:
    return record.memory.timestamp, record.id


def _build_memories(
    drafts: list[ForeignRecord],
    citations: dict[str, Fields],
    target: Target,
    problems: list[Problem],
) -> list[tuple[ForeignRecord, Memory]]:
    """Build and check all memories; repeat without refused ones and relations to them."""
    while True:
        warnings: list[Problem] = []
        links = _resolve_links(drafts, target, warnings)
        built = []
        for draft in drafts:
            memory = _build_memory(draft, links[draft.key], citations[draft.key], target.overrides)
            problem = _find_fault(draft, memory, target)
            if problem is None:
                built.append((draft, memory))
            else:
                problems.append(problem)
        if len(built) == len(drafts):
            problems += warnings
            return built
        drafts = [draft for draft, _memory in built]


def _build_memory(
    draft: ForeignRecord, links: Links, citations: Fields, overrides: Fields
) -> Memory:
    relations = links.relations
    own = {key: value for key, value in draft.fields.items() if key not in relations}
    if draft.is_exact:
        return Memory(fields=own | relations | overrides, body=draft.body)
    fields = DEFAULTS | citations | own | relations | overrides | {"id": draft.id}
    source_lists = [
        overrides.get("source", ()),
        draft.fields.get("source", ()),
        citations["source"],
    ]
    sources = [source for items in source_lists if isinstance(items, tuple) for source in items]
    sources += [f"{premises.MEMORY}{id_}" for id_ in links.premises]
    fields["source"] = tuple(dict.fromkeys(sources))[: schema.MAX_ITEMS]
    fields = {key: value for key, value in fields.items() if value not in ("", ())}
    title = fields.get("title")
    if isinstance(title, str):
        fields["title"] = originals.to_line(title, originals.MAX_TITLE_CHARS)
    header = len(document.write(Memory(fields=fields, body="")))
    where = draft.original.shown
    text = originals.to_body(draft.body)
    memory = Memory(fields=fields, body=text)
    if not memory.has_text:  # the gate requires a text, so repeat the title
        text = f"{memory.title}\n" + (f"\n{text}" if text else "")
    return memory.with_body(originals.cut_body(text, document.MAX_BYTES - header, where))


def _find_fault(draft: ForeignRecord, memory: Memory, target: Target) -> Problem | None:
    """Return why a memory cannot be written and read back unchanged; None if it can."""
    try:
        data = document.write(memory)
        is_same = document.read(data, f"{memory.id}.md", target.categories) == memory
    except document.Unreadable as error:
        first = error.problems[0]
        hint = _HINTS.get(first.code, "correct the record, or use --set and --map")
        return draft.problem(first.code, first.message, hint)
    except UnicodeEncodeError:
        return draft.problem("not-utf8", "it holds half of a character", "correct the record")
    if not (memory.has_text or draft.is_exact or memory.status == "candidate"):
        return draft.problem("no-text", "it says no more than a heading", "give it a text")
    return None if is_same else draft.problem("bad-value", "it would not read back as it is", "")


class Links(Value):
    """The relations of a record to memories, by their key, and the ids of its premises."""

    relations: Fields
    premises: tuple[str, ...]


def _resolve_links(
    drafts: Sequence[ForeignRecord], target: Target, warnings: list[Problem]
) -> dict[str, Links]:
    """Return the links of each draft by its key, with warnings for those left out."""
    ids = _map_names(drafts)
    older = _resolve_supersedes(drafts, ids, target.tree, warnings)
    links: dict[str, Links] = {}
    existing_ids = None if target.keeps_unknown else {*ids.values(), *target.tree.ids}

    def resolve(draft: ForeignRecord, relation: str, names: Iterable[str]) -> tuple[str, ...]:
        return _resolve_names(draft, relation, names, ids, existing_ids, warnings)

    for draft in drafts:
        relations: Fields = {}
        if "supersedes" in draft.fields or older[draft.id]:
            relations["supersedes"] = older[draft.id]
        for relation in RELATIONS[1:]:
            if relation in draft.fields:
                relations[relation] = resolve(draft, relation, draft.items(relation))
        bases = resolve(draft, "rests on", draft.premises)
        links[draft.key] = Links(
            relations, tuple(id_ for id_ in bases if id_ not in older[draft.id])
        )
    return links


def _map_names(drafts: Sequence[ForeignRecord]) -> dict[str, str]:
    """Map unambiguous names to ids. A key takes precedence over other names."""
    ids_by_name: dict[str, set[str]] = {}
    for draft in drafts:
        for name in (draft.id, *draft.names):
            ids_by_name.setdefault(name, set()).add(draft.id)
    unique_names = {name: next(iter(ids)) for name, ids in ids_by_name.items() if len(ids) == 1}
    return unique_names | {draft.key: draft.id for draft in drafts}


def _resolve_supersedes(
    drafts: Sequence[ForeignRecord], ids: Mapping[str, str], tree: Tree, warnings: list[Problem]
) -> dict[str, tuple[str, ...]]:
    """Return the ids that each draft supersedes, by id."""
    by_id = {draft.id: draft for draft in drafts}
    older: dict[str, list[str]] = {id_: [] for id_ in by_id}
    for draft in drafts:
        for name in draft.items("supersedes"):
            id_ = ids.get(name, name)
            if id_ in by_id or id_ in tree:
                older[draft.id].append(id_)
            else:
                warnings.append(_dangling_warning(draft, name, "supersedes"))
        for name in draft.superseded_by:
            newer = ids.get(name, name)
            if newer in by_id:
                older[newer].append(draft.id)
            elif newer not in tree:
                warnings.append(_dangling_warning(draft, name, "is superseded by"))
            elif draft.id not in tree.lineage.as_proposed.find_predecessors(newer):
                warnings.append(
                    draft.problem(
                        "dangling",
                        f"{draft.id} is superseded by {newer}, which is here, does not say so and "
                        "stays so",
                        f"memtool supersede {draft.id} TITLE says what holds instead",
                        severity="warning",
                    )
                )
    acyclic, dropped = without_cycles(
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
    return acyclic


def _resolve_names(
    draft: ForeignRecord,
    relation: str,
    names: Iterable[str],
    ids: Mapping[str, str],
    existing_ids: Collection[str] | None,
    warnings: list[Problem],
) -> tuple[str, ...]:
    """Return the ids of a relation that are in `existing_ids` (None: any valid id)."""
    related = []
    for name in names:
        id_ = ids.get(name) or (name if existing_ids is None else originals.to_id(name, "rec"))
        if id_ in existing_ids if existing_ids is not None else schema.is_id(id_):
            related += [id_] if id_ != draft.id else []
        else:
            warnings.append(_dangling_warning(draft, name, relation))
    return tuple(dict.fromkeys(related))


def _dangling_warning(draft: ForeignRecord, name: str, relation: str) -> Problem:
    return draft.problem(
        "dangling",
        f"{draft.id} {relation} {originals.to_line(name, 80)}, which is not here; that is left out",
        "import the other record too",
        severity="warning",
    )


def without_cycles(
    older: Mapping[str, tuple[str, ...]],
) -> tuple[dict[str, tuple[str, ...]], list[tuple[str, str]]]:
    """Remove the edges that close a cycle; return the rest, and the removed (newer, older).

    A depth-first walk in the order of ids, with an explicit stack: an edge to a node on the current
    path closes a cycle.
    """
    state: dict[str, int] = {}  # 1 on the current path, 2 done
    dropped: list[tuple[str, str]] = []
    for root in sorted(older):
        stack = [(root, iter(sorted(older[root])))] if root not in state else []
        state.setdefault(root, 1)
        while stack:
            node, remaining = stack[-1]
            for target in remaining:
                if state.get(target) == 1:
                    dropped.append((node, target))
                elif target in older and target not in state:
                    state[target] = 1
                    stack.append((target, iter(sorted(older[target]))))
                    break
            else:
                state[node] = 2
                stack.pop()
    dropped_edges = set(dropped)
    acyclic = {
        newer: tuple(old for old in olds if (newer, old) not in dropped_edges)
        for newer, olds in older.items()
    }
    return acyclic, sorted(dropped)


def _find_difference(
    draft: ForeignRecord, memory: Memory, target: Target
) -> Memory | Problem | None:
    """Compare a record with its existing memory, and with those that supersede it.

    Return None if one of them says the same; else the memory that supersedes the last one. If that
    cannot be, because a person corrected it meanwhile, return a warning. Users may have changed
    other keys than claims. A file that is the one which was imported has not changed, however it is
    read today.
    """
    tree = target.tree
    existing = tree[memory.id].memory
    last = _find_last_import(memory, tree)
    heads = tree.lineage.find_heads(memory.id) or (memory.id,)
    head = tree[heads[0]].memory if heads[0] in tree else existing
    changed_keys = _find_changed_keys(draft, memory, existing, target)
    if last is existing and not changed_keys:
        return _find_status_change(draft, memory, existing)
    repeats_last = (memory.title, memory.body) == (last.title, last.body)
    if (last is not existing and repeats_last) or (head is not last and head.body == memory.body):
        return None
    if _is_same_file(draft, last, target):
        return _find_status_change(draft, memory, existing) if last is existing else None
    is_imported = not _find_origins(memory).isdisjoint(_find_origins(last))
    if len(heads) == 1 and head.id == last.id and is_imported and not draft.is_exact:
        return _build_successor(draft, memory, existing, head, target)
    return draft.problem(
        "changed",
        f"{memory.id} stays as it is, the record has another {', '.join(changed_keys) or 'text'}",
        f"memtool supersede {heads[0]} {shlex.quote(memory.title)}",
        severity="warning",
    )


def _find_last_import(memory: Memory, tree: Tree) -> Memory:
    """Return the memory of a record's last import: the one that is here, or one that followed."""
    ids_ = [memory.id, *_find_later(tree, memory.id)]
    versions = [tree[id_].memory for id_ in ids_ if id_ in tree]
    later = (version for version in reversed(versions) if _is_import_of(memory, version))
    return next(later, tree[memory.id].memory)


def _find_origins(memory: Memory) -> set[str]:
    """Return the files and records of other tools that a memory cites, without their version."""
    return {
        originals.strip_version(source)
        for source in memory.items("source")
        if source.startswith(("file:", "tool:import-"))
    }


def _is_import_of(memory: Memory, version: Memory) -> bool:
    """Return whether a memory that supersedes the one of a record is a later import of it."""
    digest = version.id.removeprefix(memory.id[: originals.MAX_ID_CHARS - 7]).removeprefix("-")
    is_same = len(digest) == 6 and HEX.issuperset(digest)
    return version.id == memory.id or (
        is_same and not _find_origins(memory).isdisjoint(_find_origins(version))
    )


def _find_changed_keys(
    draft: ForeignRecord, memory: Memory, existing: Memory, target: Target
) -> list[str]:
    """Return the keys of the record's claim that differ from those of a memory."""
    record_keys = {"title", "type", "supersedes", *draft.fields, *target.overrides}
    if _list_related(memory) == _list_related(existing):
        record_keys -= {*RELATIONS[1:]}  # an earlier version took the words for other relations
    changed_keys = [
        key
        for key in sorted(record_keys - {"id", "source"})
        if (not is_mutable(key) or (key == "files" and key in draft.fields))
        and (memory.fields.get(key) or "") != (existing.fields.get(key) or "")
    ]
    return [*changed_keys, "body"] if memory.body != existing.body else changed_keys


def _list_related(memory: Memory) -> set[str]:
    """Return the ids that a memory names in any relation, and those that it rests on."""
    related = {id_ for relation in RELATIONS[1:] for id_ in memory.items(relation)}
    return related.union(premises.find_premises(memory))


def _find_later(tree: Tree, id_: str) -> Iterator[str]:
    """Yield the ids that supersede a memory, and those that supersede them, as proposed."""
    lineage = tree.lineage.as_proposed
    waiting, seen = [id_], {id_}
    while waiting:
        for newer in lineage.find_successors(waiting.pop()):
            if newer not in seen:
                seen.add(newer)
                waiting.append(newer)
                yield newer


def _is_same_file(draft: ForeignRecord, version: Memory, target: Target) -> bool:
    """Return whether the file of a record is still the one that a memory cites."""
    name = draft.original.name
    commits = [
        source.rpartition("@")[2]
        for source in version.items("source")
        if name and "@" in source and originals.strip_version(source) == f"file:{name}"
    ]
    repository = target.tree.location.repository
    return any(file_history.is_unchanged(repository, draft.original, commit) for commit in commits)


def _build_successor(
    draft: ForeignRecord, memory: Memory, existing: Memory, head: Memory, target: Target
) -> Memory:
    """Build the memory of a record that has changed: it supersedes the last one of its imports."""
    new_names = [
        id_ for id_ in memory.items("supersedes") if id_ not in existing.items("supersedes")
    ]
    keeps_status = "status" not in draft.fields or head.status == "pinned"
    own_fields: Fields = {"status": head.status} if keeps_status else {}
    if "files" in head.fields and "files" not in draft.fields:
        own_fields["files"] = head.fields["files"]  # as a person accepted them
    id_ = originals.with_suffix(memory.id, f"{head.id}\n{memory.title}\n{memory.body}")
    return Memory(
        fields=memory.fields
        | own_fields
        | {
            "id": id_,
            "supersedes": (head.id, *new_names),
            "timestamp": timestamps.render(target.now),
        },
        body=memory.body,
    )


def _find_status_change(draft: ForeignRecord, memory: Memory, existing: Memory) -> Problem | None:
    """Return a warning if the record itself says that its decision has gone on."""
    if "status" not in draft.fields:
        return None
    if _STATUS_ORDER.get(memory.status, -1) > _STATUS_ORDER.get(existing.status, 3):
        verb = "confirm" if memory.status == "confirmed" else "deprecate"
        return draft.problem(
            "changed",
            f"{memory.id} is still {existing.status}, the record became {memory.status}",
            f"memtool {verb} {memory.id}",
            severity="warning",
        )
    return None
