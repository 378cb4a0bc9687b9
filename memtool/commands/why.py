"""`memtool why`: the chain of sources behind a memory, down to commits and files."""

from __future__ import annotations

from collections.abc import Iterator

from memtool.index import index
from memtool.memory import timestamps
from memtool.memory.schema import parse_source
from memtool.sessions.model import Finding
from memtool.store import evidence
from memtool.store.context import Context
from memtool.store.evidence import Evidence
from memtool.store.history import History, tip
from memtool.store.provenance import SHORT, Origin
from memtool.store.snapshot import Record, Tree
from memtool.value import Value

MAX_DEPTH = 20
"""Memories that one chain may go through before it is cut."""
RELATIONS = ("supersedes", "derived_from")
"""Relations that a claim rests on, besides its sources."""


class Ground(Value):
    """One thing that a memory rests on, and what that rests on in turn.

    `source` is as it was written, or `supersedes:ID` and `derived_from:ID`; `status` is ok,
    missing, or unknown where nothing here can tell. Commit, author, date and trust are those of
    the commit, the file's last change, or the memory; empty where there is none.
    """

    source: str
    kind: str
    status: str
    detail: str
    commit: str = ""
    author: str = ""
    date: str = ""
    trust: str = ""
    sources: tuple[Ground, ...] = ()


class Why(Value):
    """A memory, who committed it, and what it rests on. `commit` is empty where none is known."""

    id: str
    title: str
    path: str
    commit: str
    author: str
    date: str
    trust: str
    sources: tuple[Ground, ...]


def why(context: Context, id: str, *, at: str | None = None) -> Why:
    """Show the chain of sources behind a memory, as a tree down to commits and files.

    Other memories that it cites, supersedes or is derived from are followed. Every memory is
    opened once; circles and very long chains are cut, and said to be. Nothing outside this clone
    is asked: what a person, a site or a tool said is named, not proved. Of a session of this clone
    the finding and the messages are shown.

    Example:
        memtool why dec-2026-02-22-keep-sessions-in-redis

    Args:
        id: the memory, by its id or words of it
        at: a revision instead of the worktree
    """
    tree = index.open(context, at, exact=True)
    record = tree.find(id)
    records = _reached(tree, record)
    texts = [text for each in records for text in each.memory.items("source")]
    origins = context.origins(tree, records)
    with History(context.repository) as history:
        found = evidence.resolve(history, tree.snapshot, tip(context.repository, at), texts)
    learned: dict[str, list[Finding]] = {}
    if any(text.startswith("session:") for text in texts):
        from memtool.sessions.evidence import findings, messages

        found |= messages(context, texts)
        learned = findings(context)
    grounds = _Grounds(tree, found, origins, learned).of(record)
    origin = origins[record.path]
    return Why(
        id=record.id,
        title=record.memory.title,
        path=record.path,
        commit=origin.commit,
        author=origin.author,
        date=_date(origin),
        trust=origin.trust,
        sources=grounds,
    )


def render(why: Why) -> str:
    """Return an indented tree, one line per source."""
    made = _made(why.commit, why.author, why.date) or (
        "not committed" if why.trust == "local" else "commit not known (shallow or partial clone)"
    )
    return "\n".join([f"{why.id}  {why.title}", f"  {made}, {why.trust}", *_rows(why.sources, 1)])


class _Grounds:
    """Opens each memory once, from the top; its state is which ones are open or done."""

    def __init__(
        self,
        tree: Tree,
        found: dict[str, Evidence],
        origins: dict[str, Origin],
        learned: dict[str, list[Finding]],
    ) -> None:
        self.tree = tree
        self.found = found
        self.origins = origins
        self.learned = learned
        self.open: list[str] = []
        self.done: set[str] = set()

    def of(self, record: Record) -> tuple[Ground, ...]:
        self.open.append(record.id)
        self.done.add(record.id)
        grounds = [self.ground(kind, target, text) for kind, target, text in _needs(record)]
        self.open.pop()
        return self.finding_grounds(record, grounds)

    def finding_grounds(self, record: Record, grounds: list[Ground]) -> tuple[Ground, ...]:
        """Put the findings that became a memory between it and the messages that back them."""
        found: list[Ground] = []
        for one in self.learned.get(record.id, ()):
            texts = [f"session:{one.session}#{number}" for number in one.messages]
            behind = tuple(ground for ground in grounds if ground.source in texts)
            if behind:
                found.append(
                    Ground(f"finding:{one.id}", "finding", "ok", one.content, sources=behind)
                )
        covered = {inner.source for ground in found for inner in ground.sources}
        return (*found, *(ground for ground in grounds if ground.source not in covered))

    def ground(self, kind: str, target: str, text: str) -> Ground:
        if text in self.found and kind != "memory":
            seen = self.found[text]
            return Ground(text, kind, seen.status, seen.detail, seen.commit, seen.author, seen.date)
        record = self.tree.by_id.get(target)
        if record is None:
            return Ground(text, kind, "missing", f"there is no memory {target}")
        origin = self.origins.get(record.path, Origin("", "", 0, ""))
        ground = Ground(
            source=text,
            kind=kind,
            status="ok",
            detail=record.memory.title,
            commit=origin.commit,
            author=origin.author,
            date=_date(origin),
            trust=origin.trust,
        )
        cut = ""
        if target in self.open:
            cut = "a circle: it stands above in this chain"
        elif target in self.done:
            cut = "its sources are shown elsewhere in this tree"
        elif len(self.open) >= MAX_DEPTH:
            cut = f"the chain goes on: memtool why {target}"
        if cut:
            return ground.replace(detail=f"{record.memory.title} ({cut})")
        return ground.replace(sources=self.of(record))


def _needs(record: Record) -> Iterator[tuple[str, str, str]]:
    """Yield (kind, target, text) of everything that a memory rests on, sources first."""
    for text in record.memory.items("source"):
        source = parse_source(text)
        yield source.kind, source.target, text
    for relation in RELATIONS:
        for id_ in record.memory.items(relation):
            yield relation, id_, f"{relation}:{id_}"


def _reached(tree: Tree, start: Record) -> list[Record]:
    """Return the memory and all that it rests on through others, sorted by id."""
    found = {start.id: start}
    todo = [start]
    while todo:
        for kind, target, _text in _needs(todo.pop()):
            near = tree.by_id.get(target) if kind in ("memory", *RELATIONS) else None
            if near is not None and near.id not in found:
                found[near.id] = near
                todo.append(near)
    return [found[id_] for id_ in sorted(found)]


def _rows(grounds: tuple[Ground, ...], depth: int) -> Iterator[str]:
    for ground in grounds:
        mark = {"ok": "", "missing": "MISSING: ", "unknown": ""}[ground.status]
        made = _made(ground.commit, ground.author, ground.date)
        said = ", ".join(filter(None, (made, ground.trust)))
        line = f"{'  ' * depth}{ground.source}  {mark}{ground.detail}"
        yield f"{line}  [{said}]" if said else line
        yield from _rows(ground.sources, depth + 1)


def _made(commit: str, author: str, date: str) -> str:
    return f"{commit[:SHORT]} {date[:10]} {author}".rstrip() if commit else ""


def _date(origin: Origin) -> str:
    return timestamps.render(origin.date) if origin.commit else ""
