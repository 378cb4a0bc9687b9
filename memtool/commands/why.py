"""`memtool why`: the chain of sources behind a memory, down to commits and files."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence

from memtool.commands._layout import Layout
from memtool.commands._render import format_authors, format_commit
from memtool.index import index
from memtool.inject.effective_lineage import EffectiveLineage, compute_effective_lineage
from memtool.memory import timestamps
from memtool.memory.drift import BROKEN as DRIFTED
from memtool.memory.drift import CHANGED, Drift
from memtool.memory.drift import summarize as summarize_drift
from memtool.memory.lifecycle import ALIVE
from memtool.memory.premises import describe_cause
from memtool.memory.schema import parse_source
from memtool.memory.trust import LOCAL, SHORT_ID_DIGITS, Origin, Proof
from memtool.search.features import Facts
from memtool.search.scope import build_drift_witness, find_trust_gap
from memtool.search.unsettled import CauseReport, Unsettled, summarize
from memtool.search.verification import (
    BROKEN,
    SOUND,
    STATUSES,
    WEAK,
    CheckedSource,
    Verification,
    verify,
)
from memtool.sessions.model import Finding
from memtool.store.context import Context
from memtool.store.evidence import Evidence, collect_citations, gather_evidence
from memtool.store.history import UNKNOWN_COMMIT, Commit, History, resolve_tip
from memtool.store.landing import build_landings
from memtool.store.tree import Record, Tree
from memtool.value import Value

MAX_DEPTH = 20
"""Memories in one chain before it is cut."""
RELATIONS = ("supersedes", "derived_from")
"""Relations that support a claim, in addition to its sources."""


class Ground(Evidence):
    """One source of a memory, with its own sources.

    `source` is as written, or `supersedes:ID` or `derived_from:ID`. `status` is ok, missing, or
    unknown if it cannot be checked here. Commit, author, date and trust are those of the commit,
    the file's last change, or the memory; "" if there is none. `drift` and `verdict` are the
    results of memtool drift and memtool verify for a memory, "" for other sources. `cause` is how
    it no longer holds, for a premise that nobody has settled.
    """

    json_optional = "cause pull_request co_authors"

    trust: str = ""
    drift: str = ""
    verdict: str = ""
    sources: tuple[Ground, ...] = ()
    pull_request: str = ""
    """The pull request of the commit, such as `#12`, "" if the message names none."""
    co_authors: tuple[str, ...] = ()
    """Co-authors of the commit."""
    cause: str = ""
    """The clause of a premise that is out, or unsettled itself; empty for any other source."""


class Doubt(Value):
    """A reason not to rely on a memory without a look.

    `kind` says of what: circle, replaced, state, premise, drift, source, dispute, conflict,
    candidate, unproven, local or due. `text` is a clause; `way` follows it with the command that
    helps, and may be empty.
    """

    kind: str
    text: str
    way: str = ""


class Why(Value):
    """A memory, who committed it, and its sources. `commit` is "" if unknown.

    - `signed_by`: the signatures that make its trust `signed`
    - `unproven`: what it lacks to fulfil its trust rule, "" for nothing
    - `proposals`: sentences on which candidate proposes to replace which, if it is one of them
    - `advice`: one line on whether to act on the memory, and what to do otherwise
    - `pull_request`, such as `#12`, and `co_authors`: set if the commit names them
    - `doubts`: every reason against it, the most serious first; `advice` names the first
    """

    json_fields = (
        "id title path commit author date trust signed_by unproven drift verdict proposals advice "
        "sources pull_request co_authors"
    )
    json_optional = "pull_request co_authors"

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
    pull_request: str = ""
    co_authors: tuple[str, ...] = ()
    doubts: tuple[Doubt, ...] = ()


def why(context: Context, id: str, *, at: str | None = None) -> Why:
    """Trace where a memory comes from.

    Its sources are a tree, down to commits and files. Memories that it cites, supersedes or is
    derived from are followed. Each has its trust, and the results of drift and verify. The last
    line says whether you can act on it.

    Example:
        memtool why dec-2g54

    Args:
        id: the memory, by id or words
        at: a revision instead of the worktree
    """
    tree = index.open(context, at, exact=True)
    record = tree.find(id)
    return next(build_chains(context, tree, [record], resolve_tip(context.repository, at)))


def build_chains(
    context: Context,
    tree: Tree,
    wanted: Sequence[Record],
    head: str,
    *,
    is_private: bool = True,
    public_commits: Container[str] | None = None,
) -> Iterator[Why]:
    """Yield the chain of sources behind each wanted memory, in order.

    `head` is the commit of the tree. `is_private` includes the sessions of this clone. With
    `public_commits`, a source with any other commit is reported as missing.
    """
    records = _collect_reached(tree, wanted)
    texts = [text for each in records for text in each.memory.items("source")]
    origins = context.origins(tree, records)
    witness, categories = context.provenance_reader(tree), context.settings.categories
    with History(context.repository) as history:
        cited = collect_citations(records, head)
        evidence_by_source = gather_evidence(history, tree.location, cited, build_landings(witness))
        named = {source_evidence.commit for source_evidence in evidence_by_source.values()}
        named |= {origin.commit for origin in origins.values()}
        commits = {id_: history.commit(id_) for id_ in sorted(named) if id_}
    if public_commits is not None:
        evidence_by_source = {
            text: _limit_to_commits(source_evidence, public_commits, head)
            for text, source_evidence in evidence_by_source.items()
        }
    learned: dict[str, list[Finding]] = {}
    if is_private and any(text.startswith("session:") for text in texts):
        from memtool.sessions.evidence import check_messages, find_findings

        evidence_by_source |= check_messages(context, texts)
        learned = find_findings(context)
    drift_witness = build_drift_witness(tree, lambda: witness)
    drifted = drift_witness.find(records)
    unsettled = Unsettled(tree, context.clock.now, drift_witness)
    sessions = {
        text: source_evidence
        for text, source_evidence in evidence_by_source.items()
        if text.startswith("session:")
    }
    checked = {
        verification.id: verification
        for verification in verify(
            tree, witness, records, sessions, {}, context.clock.now, categories
        )
    }
    facts = Facts(tree, context.clock.now, dict)
    min_trust = context.project.strict_settings.text("inject.trust")
    effective_lineage = compute_effective_lineage(
        tree, witness, min_trust, context.clock.now, categories, context.project.trust_rules
    )
    for record in wanted:
        grounds = GroundFinder(
            unsettled, evidence_by_source, origins, commits, learned, drifted, checked
        ).find(record)
        origin = origins[record.path]
        commit = commits.get(origin.commit, UNKNOWN_COMMIT)
        drift, verification = drifted.get(record.path), checked[record.id]
        lacking = find_trust_gap(context, record, origin)
        states = facts.state(record), facts.is_due(record)
        judgement_facts = (*states, lacking, origins, drifted, verification)
        causes = unsettled.explain(record.id)
        judgement = Judgement(tree, effective_lineage, record, causes, *judgement_facts)
        yield Why(
            id=record.id,
            title=record.memory.title,
            path=record.path,
            commit=origin.commit,
            author=origin.author,
            date=_format_date(origin),
            trust=origin.trust,
            signed_by=origin.proofs,
            unproven=lacking,
            drift=drift.level if drift else "",
            verdict=verification.verdict,
            proposals=facts.describe_proposals(record.id),
            advice=judgement.advice(),
            sources=grounds,
            pull_request=commit.pull_request,
            co_authors=commit.co_authors,
            doubts=tuple(judgement.find_all()),
        )


def _limit_to_commits(
    source_evidence: Evidence, public_commits: Container[str], head: str
) -> Evidence:
    """Return the evidence for a source; missing if its commit is not one of `public_commits`.

    The name of `head` is removed from the detail, since everything is about that commit.
    """
    if not source_evidence.commit or source_evidence.commit in public_commits:
        return source_evidence.replace(
            detail=source_evidence.detail.replace(f" at {head[:SHORT_ID_DIGITS]}", "")
        )
    detail = f"{source_evidence.commit[:SHORT_ID_DIGITS]} does not lead to this revision"
    return Evidence(source_evidence.source, source_evidence.kind, "missing", detail)


_CONFLICTS = " (memtool conflicts)"


class Judgement(Value):
    """The facts on which advice about a memory depends; `origins` and `drifted` are by path."""

    tree: Tree
    effective_lineage: EffectiveLineage
    record: Record
    causes: tuple[CauseReport, ...]
    state: str
    is_due: bool
    unproven: str
    origins: dict[str, Origin]
    drifted: dict[str, Drift]
    verification: Verification

    def advice(self) -> str:
        """Return whether to act on the memory, according to the most serious doubt."""
        for doubts, words in (
            (self.refusals(), "do not act on it"),
            (self.breaks(), "look before you act on it"),
            (self.doubts(), "ask before you act on it"),
            (self.cautions(), "act on it with care"),
        ):
            doubt = next(doubts, None)
            if doubt is not None:
                return f"{words}: {doubt.text}{doubt.way}"
        if self.verification.verdict != SOUND:
            return "you can act on it, but it is only a person's word: nothing here can prove it"
        return "you can act on it: its sources resolve, and the code that it names still fits"

    def find_all(self) -> Iterator[Doubt]:
        """Yield every doubt, the most serious first."""
        yield from self.refusals()
        yield from self.breaks()
        yield from self.doubts()
        yield from self.cautions()

    def refusals(self) -> Iterator[Doubt]:
        newer = self.effective_lineage.lineage.find_heads(self.record.id)
        if not newer:
            yield Doubt("circle", "memories replace each other in a circle", " (memtool check)")
        elif len(newer) > 1:
            yield Doubt("replaced", f"{' and '.join(newer)} have replaced it", _CONFLICTS)
        elif newer[0] != self.record.id:
            yield Doubt("replaced", f"{newer[0]} has replaced it")
        if self.record.memory.status == "deprecated" or self.state != ALIVE:
            state = self.record.memory.status if self.state == ALIVE else self.state
            yield Doubt("state", f"it is {state}")

    def breaks(self) -> Iterator[Doubt]:
        if self.causes:
            lowest = self.causes[0].lowest
            still = f"; if {lowest} still holds: memtool confirm {lowest} --still-holds"
            yield Doubt("premise", f"it is unsettled, since {summarize(self.causes)}", still)
        drift = self.drifted.get(self.record.path)
        correction = f"; memtool supersede {self.record.id} TITLE corrects it"
        if drift is not None and drift.level == DRIFTED:
            yield Doubt("drift", summarize_drift(drift), correction)
        if self.verification.verdict == BROKEN and not self.is_cause_worst():
            yield Doubt("source", self.worst_source(), correction)

    def doubts(self) -> Iterator[Doubt]:
        id_, origin = self.record.id, self.origins[self.record.path]
        for other_id in self.effective_lineage.disputes.get(id_, ()):
            if id_ in self.tree.lineage.find_predecessors(other_id):
                yield Doubt("dispute", f"{other_id} is to replace it, and is trusted less")
            else:
                yield Doubt("dispute", f"it is to replace {other_id}, which is trusted more")
        for rival_id in self.effective_lineage.find_rivals(id_):
            both = self.record.memory, self.tree[rival_id].memory
            named = [id_ for memory in both for id_ in memory.items("conflicts_accepted")]
            if rival_id not in named and id_ not in named:
                yield Doubt("conflict", f"{rival_id} replaces the same memory", _CONFLICTS)
        if self.record.memory.status == "candidate":
            yield Doubt("candidate", "nobody has confirmed it", f" (memtool confirm {id_})")
        if self.unproven:
            yield Doubt("unproven", self.unproven)
        if origin.trust == LOCAL.trust:
            yield Doubt("local", "no commit has it as it is here")

    def cautions(self) -> Iterator[Doubt]:
        if self.verification.verdict == WEAK and not self.is_cause_worst():
            yield Doubt("source", self.worst_source())
        drift = self.drifted.get(self.record.path)
        confirmation = f"memtool confirm {self.record.id}"
        if drift is not None and drift.level == CHANGED:
            yield Doubt(
                "drift", summarize_drift(drift), f"; {confirmation} says that it still holds"
            )
        if self.is_due:
            yield Doubt("due", "its review is due", f" ({confirmation})")

    def is_cause_worst(self) -> bool:
        """Return whether its premises alone are behind the verdict, which the causes explain."""
        worst = self.find_worst_sources()
        return bool(self.causes and worst) and all(source.kind == "memory" for source in worst)

    def find_worst_sources(self) -> list[CheckedSource]:
        """Return the sources that caused the verdict."""
        return [
            source
            for source in self.verification.sources
            if STATUSES[source.status][0] == self.verification.verdict
        ]

    def worst_source(self) -> str:
        """Return the source that caused the verdict, and why; else the newer trace."""
        for source in self.find_worst_sources():
            return f"{source.source}: {source.detail}"
        return f"{', '.join(self.verification.newer)} is a newer trace of its failure"


def render(why: Why, layout: Layout) -> str:
    """Return a tree with a line per source, and the advice."""
    rows = layout.title_line(why.title, layout.cite(why.id, why.commit))
    states = [*_list_doubts(why, layout)]
    signatures = " and ".join(f"by {proof.by} ({proof.how})" for proof in why.signed_by)
    states += [f"signed {signatures}"] * bool(signatures)
    states += [why.unproven] * bool(why.unproven)
    rows += [", ".join(states)] * bool(states)
    rows += _format_grounds(why.sources, layout, layout.when(why.date))
    rows += map(layout.shorten, why.proposals)
    advice = layout.hint(layout.shorten(why.advice[0].upper() + why.advice[1:]))
    return "\n".join([*rows, *layout.wrap(advice)])


def _list_doubts(subject: Why | Ground, layout: Layout) -> Iterator[str]:
    """Yield what is unusual: where it is, and the results of drift and verification."""
    if subject.trust == "local":
        yield "not committed"
    elif isinstance(subject, Why) and not subject.commit:
        yield "commit not known (shallow or partial clone)"
    elif subject.trust == "committed" and layout.has_trusted:
        yield "not merged"
    if isinstance(subject, Ground) and subject.cause:
        yield layout.shorten(subject.cause)
    if subject.drift in (DRIFTED, CHANGED):
        yield f"drift: {subject.drift}"
    if subject.verdict in (WEAK, BROKEN):
        yield f"sources: {subject.verdict}"


class GroundFinder:
    """Collects the sources of a memory; each memory is expanded once, depth first."""

    def __init__(
        self,
        unsettled: Unsettled,
        evidence_by_source: dict[str, Evidence],
        origins: dict[str, Origin],
        commits: Mapping[str, Commit],
        learned: dict[str, list[Finding]],
        drifted: dict[str, Drift],
        checked: dict[str, Verification],
    ) -> None:
        self.tree = unsettled.tree
        self.unsettled = unsettled
        self.evidence_by_source = evidence_by_source
        self.origins = origins
        self.commits = commits
        self.learned = learned
        self.drifted = drifted
        self.checked = checked
        self.open: list[str] = []
        self.done: set[str] = set()

    def find(self, record: Record) -> tuple[Ground, ...]:
        self.open.append(record.id)
        self.done.add(record.id)
        grounds = [self.ground(kind, target, text) for kind, target, text in _list_needs(record)]
        self.open.pop()
        return self.finding_grounds(record, grounds)

    def finding_grounds(self, record: Record, grounds: list[Ground]) -> tuple[Ground, ...]:
        """Insert the findings that became a memory between it and their messages."""
        grouped: list[Ground] = []
        for finding in self.learned.get(record.id, ()):
            texts = [f"session:{finding.session}#{number}" for number in finding.messages]
            behind = tuple(ground for ground in grounds if ground.source in texts)
            if behind:
                grouped.append(
                    Ground(
                        f"finding:{finding.id}", "finding", "ok", finding.content, sources=behind
                    )
                )
        covered = {inner.source for ground in grouped for inner in ground.sources}
        return (*grouped, *(ground for ground in grounds if ground.source not in covered))

    def ground(self, kind: str, target: str, text: str) -> Ground:
        if text in self.evidence_by_source and kind != "memory":
            seen = self.evidence_by_source[text]
            return self.with_people(
                Ground(text, kind, seen.status, seen.detail, seen.commit, seen.author, seen.date)
            )
        record = self.tree.get(target)
        if record is None:
            return Ground(text, kind, "missing", f"there is no memory {target}")
        origin = self.origins.get(record.path, Origin("", "", 0, ""))
        ground = self.with_people(
            Ground(
                source=text,
                kind=kind,
                status="ok",
                detail=record.memory.title,
                commit=origin.commit,
                author=origin.author,
                date=_format_date(origin),
                trust=origin.trust,
                drift=self.drifted[record.path].level if record.path in self.drifted else "",
                verdict=self.checked[record.id].verdict if record.id in self.checked else "",
                cause=self.describe_cause(kind, target),
            )
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
        return ground.replace(sources=self.find(record))

    def describe_cause(self, kind: str, target: str) -> str:
        """Return how a premise of the open memory no longer holds; empty if it does."""
        above = self.open[-1]
        if kind == "supersedes" or not self.unsettled.lineage.is_head(above):
            return ""
        cause = self.unsettled.find_through(above, target)
        if cause is None:
            return ""
        return describe_cause(cause) if cause.is_direct else "unsettled"

    def with_people(self, ground: Ground) -> Ground:
        """Add the pull request and co-authors of a ground's commit."""
        commit = self.commits.get(ground.commit, UNKNOWN_COMMIT)
        return ground.replace(pull_request=commit.pull_request, co_authors=commit.co_authors)


def _list_needs(record: Record) -> Iterator[tuple[str, str, str]]:
    """Yield (kind, target, text) of each source, then of each supporting relation."""
    for text in record.memory.items("source"):
        source = parse_source(text)
        yield source.kind, source.target, text
    for relation in RELATIONS:
        for id_ in record.memory.items(relation):
            yield relation, id_, f"{relation}:{id_}"


def _collect_reached(tree: Tree, wanted: Iterable[Record]) -> list[Record]:
    """Return the wanted memories and all memories behind them, sorted by id."""
    records_by_id = {record.id: record for record in wanted}
    todo = [*records_by_id.values()]
    while todo:
        for kind, target, _text in _list_needs(todo.pop()):
            target_record = tree.get(target) if kind in ("memory", *RELATIONS) else None
            if target_record is not None and target_record.id not in records_by_id:
                records_by_id[target_record.id] = target_record
                todo.append(target_record)
    return [records_by_id[id_] for id_ in sorted(records_by_id)]


def _format_grounds(
    grounds: Sequence[Ground], layout: Layout, when: str, indent: str = ""
) -> Iterator[str]:
    """Yield a line per source; `when` is the age of the memory that cites them."""
    for number, ground in enumerate(grounds, 1):
        is_last = number == len(grounds)
        mark = "MISSING: " if ground.status == "missing" else ""
        line = f"{indent}{'└─' if is_last else '├─'} {mark}{_describe_ground(ground, layout, when)}"
        doubts = ", ".join(_list_doubts(ground, layout))
        yield f"{line}  [{doubts}]" if doubts else line
        below = f"{indent}{'   ' if is_last else '│  '}"
        yield from _format_grounds(ground.sources, layout, layout.when(ground.date), below)


def _describe_ground(ground: Ground, layout: Layout, when: str) -> str:
    """Return one source in words."""
    target = ground.source.partition(":")[2]
    is_cut = ground.detail.removeprefix(layout.title(target))
    if ground.kind in (*RELATIONS, "memory") and ground.status == "ok":
        relation = "cites" if ground.kind == "memory" else ground.kind.replace("_", " ")
        return f"{relation} {layout.name(target)}{layout.shorten(is_cut) if is_cut else ''}"
    if ground.kind == "human":
        return ", ".join(filter(None, (f"stated by {target}", when)))
    is_commit = ground.kind == "commit"
    number = f" ({ground.pull_request})" if ground.pull_request else ""
    source = f"commit {target[:SHORT_ID_DIGITS]}{number}" if is_commit else ground.source
    commit = "" if is_commit else format_commit(ground)
    who = ", ".join(filter(None, (commit, format_authors(ground), layout.when(ground.date))))
    return f"{source}  {layout.shorten(ground.detail)}{f'  ({who})' if who else ''}"


def _format_date(origin: Origin) -> str:
    return timestamps.render(origin.date) if origin.commit else ""
