"""Importing: records of other homes to memories, the same ones every time.

An importer reads files and yields drafts: what each record says, and what other records call it.
Here the drafts get ids, relations and sources, are checked as whole files, and are compared with
what the tree holds. Only what is new is written; nothing in the tree is ever changed.
"""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterable, Mapping

from memtool.memory import document, identity, moments
from memtool.memory.fields import is_mutable
from memtool.memory.memory import Fields, Memory
from memtool.memory.problem import Problem
from memtool.redaction.find import NOTHING, Allowlist
from memtool.store import files
from memtool.store.repository import Repository
from memtool.store.tree import Tree
from memtool.upkeep import admitting, linking, originals, wording
from memtool.upkeep.draft import Draft
from memtool.value import Value

DEFAULTS: Fields = {"confidence": "medium", "temporal_class": "eternal"}
"""What a record has that does not say otherwise. It must not expire because it moved."""

_ORDER = {"candidate": 0, "confirmed": 1, "deprecated": 2}


class Target(Value):
    """Where records go. `tool` names the importer, `overrides` wins over what records say.

    A record with a secret that is not `allowed` is refused; with `redacts` it goes in without it.
    """

    tree: Tree
    tool: str
    overrides: Fields
    categories: Collection[str]
    now: int
    allowed: Allowlist = NOTHING
    redacts: bool = False


class Placed(Value):
    """A memory to be written, with its path from the top of the repository."""

    memory: Memory
    path: str


class Plan(Value):
    """What an import would do: `found` = to write + unchanged + skipped."""

    found: int
    unchanged: int
    skipped: int
    placed: tuple[Placed, ...]
    problems: tuple[Problem, ...]


def plan(records: Iterable[Draft | Problem], path: str, target: Target) -> Plan:
    """Decide what becomes of the records that were read from an absolute path."""
    drafts = []
    problems = []
    for record in records:
        if isinstance(record, Draft):
            drafts.append(record)
        else:
            problems.append(record)
    unread = len({(p.path, p.line) for p in problems if p.severity == "error"})
    found = len(drafts) + unread
    drafts, refused = _unique(drafts)
    problems += refused
    drafts, refused = admitting.admit(drafts, target.allowed, redacts=target.redacts)
    problems += refused
    cited = _cited(drafts, path, target)
    named, refused = _named(drafts, cited, target.tree)
    problems += refused
    built, refused = _built(named, cited, target)
    problems += refused
    placed = []
    unchanged = 0
    taken = _places(target.tree)
    for draft, memory in built:
        existing = target.tree.by_id.get(memory.id)
        if existing is not None:
            problem = _difference(draft, memory, target)
            unchanged += problem is None
            problems += [problem] if problem else []
        elif memory.id in taken:
            problems.append(
                draft.problem(
                    "duplicate-id",
                    f"{taken[memory.id]} has the id {memory.id} already, and is not readable",
                    "memtool status says what is wrong with it",
                )
            )
        else:
            directory = target.tree.snapshot.directory
            placed.append(Placed(memory, f"{directory}/{identity.place(memory)}"))
    return Plan(
        found=found,
        unchanged=unchanged,
        skipped=found - unchanged - len(placed),
        placed=tuple(sorted(placed, key=lambda one: one.memory.id)),
        problems=tuple(sorted(problems, key=lambda p: (p.path, p.line, p.code, p.message))),
    )


def write(repository: Repository, placed: Iterable[Placed]) -> None:
    """Write every planned memory, or none. Raises MemtoolError where the disk refuses one."""
    files.create_all(repository.top, [(one.path, document.write(one.memory)) for one in placed])


def _cited(drafts: list[Draft], path: str, target: Target) -> dict[str, Fields]:
    """Return for each draft what is known of its source: the citations, and a timestamp."""
    repository = target.tree.snapshot.repository
    name = originals.original(path, repository.top).name
    known = originals.Facts("", {}, "sha1")
    seconds: Mapping[str, int] = {}
    if name:
        known = originals.facts(repository, name)
        if any("timestamp" not in draft.fields for draft in drafts):
            seconds = originals.first_seconds(repository, name, known.head)
    same = originals.committed((draft.original for draft in drafts), known)
    cited: dict[str, Fields] = {}
    for draft in drafts:
        source = draft.original
        commit = known.head if source.name in same else ""
        file = originals.citation(source, draft.lines, commit)
        sources = [file] if file else []
        if not file or source.is_compressed:
            sources.append(originals.tool_citation(target.tool, source, draft.part))
        second = seconds.get(source.name, target.now)
        cited[draft.key] = {"source": tuple(sources), "timestamp": moments.render(second)}
    return cited


def _unique(drafts: list[Draft]) -> tuple[list[Draft], list[Problem]]:
    first: dict[str, Draft] = {}
    for draft in drafts:
        first.setdefault(draft.key, draft)
    problems = [
        draft.problem(
            "duplicate-record",
            f"{wording.line(draft.key, 80)} stands in line {first[draft.key].lines[0]} already",
            "give one of them another id",
        )
        for draft in drafts
        if first[draft.key] is not draft
    ]
    return list(first.values()), problems


def _named(
    drafts: list[Draft], cited: dict[str, Fields], tree: Tree
) -> tuple[list[Draft], list[Problem]]:
    """Give each draft the id that it keeps: its own, or with a suffix where that is taken."""
    problems = []
    by_id: dict[str, Draft] = {}
    for draft in drafts:
        id_ = draft.id
        if not draft.is_exact and (id_ in by_id or _is_foreign(draft, cited[draft.key], tree)):
            id_ = wording.suffixed(id_, f"{draft.original.shown} {draft.key}")
        if id_ in by_id:
            problems.append(draft.problem("duplicate-record", f"a second record is called {id_}"))
            continue
        by_id[id_] = draft.replace(id=id_)
    return list(by_id.values()), problems


def _is_foreign(draft: Draft, cited: Fields, tree: Tree) -> bool:
    """Tell whether the tree's memory of this id came from elsewhere and says something else."""
    existing = tree.by_id.get(draft.id)
    if existing is None:
        return False
    own = {originals.place_of(source) for source in cited["source"]}
    theirs = {originals.place_of(source) for source in existing.memory.items("source")}
    return not own & theirs and existing.memory.body != wording.body(draft.body)


def _built(
    drafts: list[Draft], cited: dict[str, Fields], target: Target
) -> tuple[list[tuple[Draft, Memory]], list[Problem]]:
    """Build and check every memory. What is refused takes its relations with it, so look again."""
    refused: list[Problem] = []
    while True:
        links, warnings = linking.link(drafts, target.tree)
        built = []
        faults = []
        for draft in drafts:
            memory = _memory(draft, links[draft.key], cited[draft.key], target.overrides)
            problem = _fault(draft, memory, target)
            if problem is None:
                built.append((draft, memory))
            else:
                faults.append(problem)
        if not faults:
            return built, refused + warnings
        refused += faults
        drafts = [draft for draft, _memory in built]


def _memory(draft: Draft, links: Fields, cited: Fields, overrides: Fields) -> Memory:
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
        fields["title"] = wording.line(title, wording.TITLE_LENGTH)
    header = len(document.write(Memory(fields=fields, body="")))
    where = draft.original.shown
    text = wording.cut(wording.body(draft.body), document.MAX_BYTES - header, where)
    return Memory(fields=fields, body=text)


def _fault(draft: Draft, memory: Memory, target: Target) -> Problem | None:
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
    return None if same else draft.problem("bad-value", "it would not read back as it is", "")


_HINTS = {
    "missing-key": "give it to every record with --set KEY=VALUE, or name its place with --map",
    "conflict-markers": "finish the merge in the record",
}


def _difference(draft: Draft, memory: Memory, target: Target) -> Problem | None:
    """Return the problem that a record says something else than its memory, None if it does not.

    Only what the record says counts, and not what people may have changed since. A memory that was
    superseded by one with the new words of the record has heard of them.
    """
    existing = target.tree.by_id[memory.id].memory
    said = {"title", "type", "supersedes", *draft.fields, *target.overrides}
    claims = sorted(key for key in said if not is_mutable(key) and key not in ("id", "source"))
    other = [
        key for key in claims if (memory.fields.get(key) or "") != (existing.fields.get(key) or "")
    ]
    if memory.body != existing.body:
        other.append("body")
    successors = target.tree.lineage.successors(memory.id)
    if other:
        known = target.tree.by_id
        if any(known[id_].memory.body == memory.body for id_ in successors if id_ in known):
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


def _places(tree: Tree) -> dict[str, str]:
    return {
        entry.path.rpartition("/")[2].removesuffix(".md"): entry.path
        for entry in tree.snapshot.entries
    }
