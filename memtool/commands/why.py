"""`memtool why`: the chain of sources behind a memory, down to commits and files."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence

from memtool.index import index
from memtool.inject.effective_lineage import EffectiveLineage, compute_effective_lineage
from memtool.memory import timestamps
from memtool.memory.drift import BROKEN as DRIFTED
from memtool.memory.drift import CHANGED, UNKNOWN, Drift, reason
from memtool.memory.lifecycle import ALIVE
from memtool.memory.schema import parse_source
from memtool.memory.trust import LOCAL, Origin, Proof
from memtool.search.features import Facts
from memtool.search.scope import drift_in, told_trust, unproven
from memtool.search.verification import (
    BROKEN,
    SOUND,
    STATUSES,
    WEAK,
    Verification,
    verify,
)
from memtool.sessions.model import Finding
from memtool.store.context import Context
from memtool.store.evidence import Evidence, evidence
from memtool.store.history import History, tip
from memtool.store.provenance import SHORT
from memtool.store.tree import Record, Tree
from memtool.value import Value

MAX_DEPTH = 20
"""Memories that one chain may go through before it is cut."""
RELATIONS = ("supersedes", "derived_from")
"""Relations that a claim rests on, besides its sources."""


class Ground(Evidence):
    """One thing that a memory rests on, and what that rests on in turn.

    `source` is as it was written, or `supersedes:ID` and `derived_from:ID`; `status` is ok,
    missing, or unknown where nothing here can tell. Commit, author, date and trust are those of
    the commit, the file's last change, or the memory; empty where there is none. `drift` and
    `verdict` are what memtool drift and memtool verify say of a memory, empty for anything else.
    """

    trust: str = ""
    drift: str = ""
    verdict: str = ""
    sources: tuple[Ground, ...] = ()


class Why(Value):
    """A memory, who committed it, and what it rests on. `commit` is empty where none is known.

    `signed_by` are the signatures by which its trust is `signed`, `unproven` says what it lacks to
    fulfil its trust rule, empty for nothing. `proposals` say which unconfirmed memory proposes to
    replace which, where it is one of them. `advice` says in one line whether a person may act on
    it, and what to do otherwise.
    """

    id: str
    title: str
    path: str
    commit: str
    author: str
    date: str
    trust: str
    signed_by: tuple[Proof, ...]
    unproven: str
    drift: str
    verdict: str
    proposals: tuple[str, ...]
    advice: str
    sources: tuple[Ground, ...]


def why(context: Context, id: str, *, at: str | None = None) -> Why:
    """Show the chain of sources behind a memory, as a tree down to commits and files.

    Other memories that it cites, supersedes or is derived from are followed. Every memory is
    opened once; circles and very long chains are cut, and said to be. Nothing outside this clone
    is asked: what a person, a site or a tool said is named, not proved. Of a session of this clone
    the finding and the messages are shown. Each memory has its trust, and what memtool drift and
    memtool verify say of it; the last line says whether one may act on it.

    Example:
        memtool why dec-2026-02-22-keep-sessions-in-redis

    Args:
        id: the memory, by its id or words of it
        at: a revision instead of the worktree
    """
    tree = index.open(context, at, exact=True)
    record = tree.find(id)
    return next(chains(context, tree, [record], tip(context.repository, at)))


def chains(
    context: Context,
    tree: Tree,
    wanted: Sequence[Record],
    head: str,
    *,
    is_private: bool = True,
    known: Container[str] | None = None,
) -> Iterator[Why]:
    """Yield the chain of sources behind each of some memories, in their order.

    `head` is the commit that the tree belongs to. `is_private` asks the sessions of this clone,
    too. With `known` a source that is another commit than one of these is missing.
    """
    records = _reached(tree, wanted)
    texts = [text for each in records for text in each.memory.items("source")]
    origins = context.origins(tree, records)
    with History(context.repository) as history:
        found = evidence(history, tree.location, head, texts)
    if known is not None:
        found = {text: _within(one, known, head) for text, one in found.items()}
    learned: dict[str, list[Finding]] = {}
    if is_private and any(text.startswith("session:") for text in texts):
        from memtool.sessions.evidence import findings, messages

        found |= messages(context, texts)
        learned = findings(context)
    witness, categories = context.witness(tree), context.settings.categories
    drifted = drift_in(tree, lambda: witness).of(records)
    sessions = {text: one for text, one in found.items() if text.startswith("session:")}
    checked = {
        one.id: one
        for one in verify(tree, witness, records, sessions, {}, context.clock.now, categories)
    }
    facts = Facts(tree, context.clock.now, dict)
    least = context.project.strict_settings.text("inject.trust")
    weighed = compute_effective_lineage(
        tree, witness, least, context.clock.now, categories, context.project.trust_rules
    )
    for record in wanted:
        grounds = _Grounds(tree, found, origins, learned, drifted, checked).of(record)
        origin = origins[record.path]
        drift, verification = drifted.get(record.path), checked[record.id]
        lacking = unproven(context, record, origin)
        states = facts.state(record), facts.is_due(record)
        judged = (*states, lacking, origins, drifted, verification)
        yield Why(
            id=record.id,
            title=record.memory.title,
            path=record.path,
            commit=origin.commit,
            author=origin.author,
            date=_date(origin),
            trust=origin.trust,
            signed_by=origin.proofs,
            unproven=lacking,
            drift=drift.level if drift else "",
            verdict=verification.verdict,
            proposals=facts.told_proposals(record.id),
            advice=_Judgement(tree, weighed, record, *judged).advice(),
            sources=grounds,
        )


def _within(one: Evidence, known: Container[str], head: str) -> Evidence:
    """Return what became of a source, missing where its commit is none of those that are known.

    All is said of `head`, which no detail needs to name.
    """
    if not one.commit or one.commit in known:
        return one.replace(detail=one.detail.replace(f" at {head[:SHORT]}", ""))
    detail = f"{one.commit[:SHORT]} does not lead to this revision"
    return Evidence(one.source, one.kind, "missing", detail)


class _Judgement(Value):
    """What is known of a memory and of those that it rests on; `origins` and `drifted` by path."""

    tree: Tree
    standing: EffectiveLineage
    record: Record
    state: str
    is_due: bool
    unproven: str
    origins: dict[str, Origin]
    drifted: dict[str, Drift]
    verification: Verification

    def advice(self) -> str:
        """Return whether a person may act on the memory, by the worst that is known of it."""
        for doubts, words in (
            (self.refusals(), "do not act on it"),
            (self.breaks(), "look before you act on it"),
            (self.doubts(), "ask before you act on it"),
            (self.cautions(), "act on it with care"),
        ):
            found = next(doubts, "")
            if found:
                return f"{words}: {found}"
        if self.verification.verdict != SOUND:
            return "it may be acted on; it rests on somebody's word, which nothing here can prove"
        return "it may be acted on: its sources resolve, and none of its files is broken"

    def refusals(self) -> Iterator[str]:
        newer = self.standing.lineage.heads_of(self.record.id)
        if not newer:
            yield "memories replace each other in a circle (memtool check)"
        elif len(newer) > 1:
            yield f"{' and '.join(newer)} have replaced it (memtool conflicts)"
        elif newer[0] != self.record.id:
            yield f"{newer[0]} has replaced it"
        if self.record.memory.status == "deprecated" or self.state != ALIVE:
            yield f"it is {self.record.memory.status if self.state == ALIVE else self.state}"

    def breaks(self) -> Iterator[str]:
        drift = self.drifted.get(self.record.path)
        correction = f"memtool supersede {self.record.id} TITLE corrects it"
        if drift is not None and drift.level == DRIFTED:
            yield f"{reason(drift)}; {correction}"
        if self.verification.verdict == BROKEN:
            yield f"{self.worst_source()}; {correction}"

    def doubts(self) -> Iterator[str]:
        id_, origin = self.record.id, self.origins[self.record.path]
        for one in self.standing.disputes.get(id_, ()):
            if id_ in self.tree.lineage.predecessors(one):
                yield f"{one} is to replace it, and is trusted less"
            else:
                yield f"it is to replace {one}, which is trusted more"
        for one in self.standing.rivals(id_):
            both = self.record.memory, self.tree[one].memory
            named = [id_ for memory in both for id_ in memory.items("conflicts_accepted")]
            if one not in named and id_ not in named:
                yield f"{one} replaces the same memory (memtool conflicts)"
        if self.record.memory.status == "candidate":
            yield f"nobody has confirmed it (memtool confirm {id_})"
        if self.unproven:
            yield self.unproven
        if origin.trust == LOCAL.trust:
            yield "no commit has it as it is here"

    def cautions(self) -> Iterator[str]:
        if self.verification.verdict == WEAK:
            yield self.worst_source()
        for id_ in self.record.memory.items("derived_from"):
            base = self.tree.get(id_)
            drift = None if base is None else self.drifted.get(base.path)
            if base is not None and not self.tree.lineage.is_head(id_):
                yield f"it is derived from {id_}, which was replaced"
            elif drift is not None and drift.level == DRIFTED:
                yield f"it is derived from {id_}, and {reason(drift)}"
        drift = self.drifted.get(self.record.path)
        if drift is not None and drift.level == CHANGED:
            yield f"{reason(drift)}; memtool confirm {self.record.id} says that it still holds"
        if self.is_due:
            yield f"its review is due (memtool confirm {self.record.id})"

    def worst_source(self) -> str:
        """Return the source that gave the verdict, and why; else the newer trace that did."""
        for one in self.verification.sources:
            if STATUSES[one.status][0] == self.verification.verdict:
                return f"{one.source}: {one.detail}"
        return f"{', '.join(self.verification.newer)} is a newer trace of its failure"


def render(why: Why) -> str:
    """Return a tree, one line per source, and the advice."""
    made = _made(why.commit, why.author, why.date) or (
        "not committed" if why.trust == "local" else "commit not known (shallow or partial clone)"
    )
    by = " and ".join(f"by {one.by} ({one.how})" for one in why.signed_by)
    trust = told_trust(f"{why.trust} {by}".rstrip(), why.unproven)
    facts = ", ".join(filter(None, (made, trust, *_judged(why))))
    rows = _rows(why.sources)
    return "\n".join([f"{why.id}  {why.title}", f"  {facts}", *rows, *why.proposals, why.advice])


def _judged(one: Why | Ground) -> tuple[str, str]:
    """Return what drift and verification say, where they say anything."""
    is_told = one.drift in (DRIFTED, CHANGED, UNKNOWN)
    is_checked = one.verdict not in ("", UNKNOWN)
    return f"drift: {one.drift}" if is_told else "", f"sources: {one.verdict}" * is_checked


class _Grounds:
    """Opens each memory once, from the top; its state is which ones are open or done."""

    def __init__(
        self,
        tree: Tree,
        found: dict[str, Evidence],
        origins: dict[str, Origin],
        learned: dict[str, list[Finding]],
        drifted: dict[str, Drift],
        checked: dict[str, Verification],
    ) -> None:
        self.tree = tree
        self.found = found
        self.origins = origins
        self.learned = learned
        self.drifted = drifted
        self.checked = checked
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
        record = self.tree.get(target)
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
            drift=self.drifted[record.path].level if record.path in self.drifted else "",
            verdict=self.checked[record.id].verdict if record.id in self.checked else "",
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


def _reached(tree: Tree, wanted: Iterable[Record]) -> list[Record]:
    """Return some memories and all that they rest on through others, sorted by id."""
    found = {one.id: one for one in wanted}
    todo = [*found.values()]
    while todo:
        for kind, target, _text in _needs(todo.pop()):
            near = tree.get(target) if kind in ("memory", *RELATIONS) else None
            if near is not None and near.id not in found:
                found[near.id] = near
                todo.append(near)
    return [found[id_] for id_ in sorted(found)]


def _rows(grounds: tuple[Ground, ...], indent: str = "  ") -> Iterator[str]:
    for number, ground in enumerate(grounds, 1):
        is_last = number == len(grounds)
        mark = {"ok": "", "missing": "MISSING: ", "unknown": ""}[ground.status]
        made = _made(ground.commit, ground.author, ground.date)
        said = ", ".join(filter(None, (made, ground.trust, *_judged(ground))))
        line = f"{indent}{'└─' if is_last else '├─'} {ground.source}  {mark}{ground.detail}"
        yield f"{line}  [{said}]" if said else line
        yield from _rows(ground.sources, f"{indent}{'   ' if is_last else '│  '}")


def _made(commit: str, author: str, date: str) -> str:
    return f"{commit[:SHORT]} {date[:10]} {author}".rstrip() if commit else ""


def _date(origin: Origin) -> str:
    return timestamps.render(origin.date) if origin.commit else ""
