"""The page of a memory, read like a document: what is wrong with it, its text, and its proof."""

from __future__ import annotations

from memtool.commands import _features
from memtool.commands.blame import blame
from memtool.commands.log import log
from memtool.commands.show import show
from memtool.commands.why import why
from memtool.errors import MemtoolError
from memtool.index import index
from memtool.memory.drift import BROKEN, CHANGED, TOUCHED, UNKNOWN, describe_file
from memtool.memory.fields import RELATIONS, order
from memtool.memory.memory import to_text
from memtool.search import conflicts
from memtool.search.features import PROPOSES_TO_REPLACE
from memtool.store import ledger, provenance
from memtool.value import Value
from memtool.web.actions import find_actions
from memtool.web.pages.lineage import has_lineage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, TypeVar

    from memtool.commands.blame import Blame, BlamePart
    from memtool.commands.log import InjectionRow, Log
    from memtool.commands.show import MemoryView
    from memtool.commands.why import Ground, Why
    from memtool.memory.drift import Drift, DriftCommit
    from memtool.store.context import Context
    from memtool.store.tree import Tree
    from memtool.web.page import PageQuery

    Answered = TypeVar("Answered")

EVENTS = 30
INJECTIONS = 10
HEAD_KEYS = ("id", "title", "type", "category", "status", "confidence", "timestamp")
TOLD_KEYS = ("source", "tags", "files", "checked", "deleted", "valid_through")
"""Keys that the page tells in words of its own."""
ACCEPTED = "conflicts_accepted"
LINKS = (*RELATIONS, ACCEPTED)
WORDS = {
    "supersedes": "Replaces",
    "related_to": "Read also",
    "resolves": "Settles",
    "derived_from": "Comes from",
    "parent": "Belongs to",
    "blocked_by": "Waits for",
    ACCEPTED: "Holds beside",
    "resolved_by": "Settled by",
    "children": "Has parts",
    "blocks": "Holds up",
    "derived": "Led to",
}
"""Words for each relation to other memories, the reverse ones last."""
OWN_DOUBTS = ("circle", "dispute", "source")
"""Kinds of doubts that no other warning of the page is about."""


class DriftReason(Value):
    """What became of the code since the memory was checked.

    `facts` are clauses, one for each file that is as bad as the worst. `since` is the commit at
    which it was checked, `commit` the one that broke it, else the last that changed the file; None
    if unknown. `is_broken` is False if half of a file has changed.
    """

    facts: tuple[str, ...]
    since: str
    commit: DriftCommit | None
    is_broken: bool


class MemoryUse(Value):
    """How many answers in this clone gave a memory to agents, found it by a search, or opened it.

    Each comes with the second of the last one, 0 for none. `rows` are the last that agents got.
    """

    by_agents: tuple[int, int]
    by_searches: tuple[int, int]
    by_readers: tuple[int, int]
    rows: tuple[InjectionRow, ...]


def memory(context: Context, query: PageQuery) -> dict[str, Any]:
    """Return a memory with its warnings, the author of each part, its sources, and its history.

    A part that is unknown, as in a shallow clone or without a ledger, is left out with a note.
    """
    at, as_of = query.text("at") or None, query.text("as_of") or None
    shown = show(context, query.text("id"), at=at, as_of=as_of)
    notes = [*context.notes]

    def if_answered(ask: Callable[[], Answered]) -> Answered | None:
        try:
            return ask()
        except MemtoolError as error:
            notes.append(error.message)
            return None

    tree = index.open(context, at)
    is_only_there = shown.id not in tree  # on the trusted branch, in whose history it is found
    there = _trusted_commit(context) if is_only_there else at
    values = with_proof(
        shown,
        contrary=if_answered(lambda: find_contradicting(context, tree).get(shown.id, [])),
        blame=if_answered(lambda: blame(context, shown.id, at=there)),
        why=if_answered(lambda: why(context, shown.id, at=there)),
        log=if_answered(lambda: log(context, shown.id, at=there, limit=EVENTS)),
    )
    events = values["log"].events if values["log"] else None
    return values | {
        "find_actions": None if there or as_of else lambda: find_actions(context, shown, events),
        "is_only_there": is_only_there,
        "has_lineage": not is_only_there and has_lineage(tree, shown.id),
        "use": if_answered(lambda: _read_use(context, shown.id)) if there is None else None,
        "at": at or "",
        "elsewhere": _features.find_links(context, shown.type),
        "notes": list(dict.fromkeys(notes)),
    }


def _trusted_commit(context: Context) -> str:
    """Return the commit of the trusted branch."""
    ref = context.project.trust_settings.text("trust.ref")
    return provenance.resolve_trusted(context.repository, ref)


def with_proof(
    shown: MemoryView,
    *,
    contrary: list[str] | None,
    blame: Blame | None,
    why: Why | None,
    log: Log | None,
) -> dict[str, Any]:
    """Return the part of the page that a commit decides; None if it is unknown."""
    drift = explain_drift(shown.drift)
    facts = drift.facts if drift else ()
    doubts = [doubt for doubt in (why.doubts if why else ()) if doubt.kind in OWN_DOUBTS]
    return {
        "title": shown.title,
        "shown": shown,
        "drift": drift,
        "doubts": [doubt for doubt in doubts if not any(fact in doubt.text for fact in facts)],
        "writer": find_writer(shown, blame),
        "grounds": list_grounds(why) if why else [],
        "notice": word_notice(shown),
        "proposals": [tuple(line.split(PROPOSES_TO_REPLACE)) for line in shown.proposals],
        "confirmed": _read_table(shown, "checked"),
        "forgotten": _read_table(shown, "deleted"),
        "keys": list_keys(shown),
        "linked": (("Rests on", shown.premises), ("Rests on this", shown.conclusions)),
        "links": list_links(shown),
        "files": list_file_notes(shown),
        "contrary": contrary or (),
        "blame": blame,
        "why": why,
        "log": log,
        "use": None,
        "at": "",
        "is_only_there": False,
        "has_lineage": True,
        "elsewhere": (),
        "notes": (),
    }


class Writing(Value):
    """Who wrote a text, and in which commit; texts are empty if that is unknown."""

    commit: str
    author: str
    date: str
    pull_request: str = ""
    co_authors: tuple[str, ...] = ()


def find_writer(shown: MemoryView, blame: Blame | None) -> BlamePart | Writing:
    """Return who wrote the text of a memory, else who changed its file last.

    Who confirmed or archived it has changed the file, and not what it says.
    """
    first = next(iter((*blame.sections, *blame.fields)), None) if blame is not None else None
    if first is not None and first.commit:
        return first
    date, commit = shown.committed_at or "", shown.commit or ""
    return Writing(commit, shown.author, date, shown.pull_request, shown.co_authors)


def explain_drift(drift: Drift | None) -> DriftReason | None:
    """Return why a memory may no longer fit the code; None if no file is broken or changed."""
    if drift is None or drift.level not in (BROKEN, CHANGED):
        return None
    worst = [file for file in drift.files if file.level == drift.level]
    commits = [commit for file in worst for commit in file.commits]
    cause = next((commit for commit in commits if commit.broke), None)
    facts = tuple(dict.fromkeys(map(describe_file, worst)))
    is_broken = drift.level == BROKEN
    if cause is None and not is_broken:
        cause = next(iter(commits), None)
    return DriftReason(facts, drift.since, cause, is_broken)


def list_grounds(why: Why) -> list[Ground]:
    """Return the sources of a memory; one that it cites and also comes from is there once."""
    cited = {ground.source.partition(":")[2] for ground in why.sources if ground.kind == "memory"}
    return [
        ground
        for ground in why.sources
        if ground.kind != "derived_from" or ground.source.partition(":")[2] not in cited
    ]


def word_notice(shown: MemoryView) -> str:
    """Return in words how the trusted branch differs, without the memories that are newer there.

    Verbs begin it in capitals: `NEWER ON origin/main: ID`.
    """
    state, on, details = shown.notice.partition(" ON ")
    if not on or not state.isupper():
        return shown.notice[:1].upper() + shown.notice[1:]
    where, colon, text = details.partition(": ")
    return f"{state.capitalize()} on {where}{'' if shown.newer else colon + text}"


def _read_table(shown: MemoryView, key: str) -> Mapping[str, str]:
    """Return a key of the file with parts, such as who confirmed it and when; empty without it."""
    value = shown.fields.get(key, {})
    return value if not isinstance(value, str | tuple) else {}


def find_contradicting(context: Context, tree: Tree) -> dict[str, list[str]]:
    """Return the ids that certainly contradict each memory, unless that was accepted."""
    contradicting: dict[str, set[str]] = {}
    clashes = conflicts.find_open_contradictions(tree, context.clock.now, context.cache_dir)
    for clash in clashes or ():
        for id_ in clash.ids if clash.is_certain else ():
            contradicting.setdefault(id_, set()).update(clash.ids)
    return {id_: sorted(ids - {id_}) for id_, ids in contradicting.items()}


def list_keys(shown: MemoryView) -> list[tuple[str, str]]:
    """Return the keys of the file that no other part of the page shows, in their order."""
    rows = ((key, to_text(shown.fields[key])) for key in sorted(shown.fields, key=order))
    hidden = {*HEAD_KEYS, *LINKS, *TOLD_KEYS}
    return [
        (key.replace("_", " ").capitalize(), text)
        for key, text in rows
        if key not in hidden and text
    ]


def list_links(shown: MemoryView) -> list[tuple[str, tuple[str, ...]]]:
    """Return the memories that it is related to, without premises and conclusions, by relation."""
    return [(WORDS[name], ids) for name, ids in shown.list_relations(LINKS)]


def list_file_notes(shown: MemoryView) -> list[tuple[str, str]]:
    """Return each file that a memory governs, with what no warning says about it, or empty."""
    drift = shown.drift
    notes: dict[str, str] = {}
    if drift is not None:
        notes = {
            file.path: describe_file(file)
            for file in drift.files
            if file.level in (TOUCHED, UNKNOWN)
        }
        notes |= {move.path: f"now {move.now}" for move in drift.renames}
    files = shown.fields.get("files", ())
    paths = (files,) if isinstance(files, str) else tuple(files)
    return [(path, notes.get(path, "")) for path in paths]


def _read_use(context: Context, id_: str) -> MemoryUse:
    """Return how a memory was used in this clone."""
    rows = log(context, id_, injected=True, limit=INJECTIONS).injections or ()
    with ledger.open_ledger(context.repository.cache_dir) as usage:
        counts = usage.count_by_verb(id_)
    blocks = [counts[verb] for verb in ledger.INJECT_VERBS if verb in counts]
    return MemoryUse(
        (sum(count for count, _last in blocks), max((last for _count, last in blocks), default=0)),
        counts.get("search", (0, 0)),
        counts.get("show", (0, 0)),
        rows,
    )
