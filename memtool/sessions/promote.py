"""Promotion: findings with enough evidence become candidates, once.

This module owns how findings support each other, what each one lacks, the memory that it becomes,
and what happens to a candidate after its first day. The journal of promotions is stored next to the
sessions and maps findings to memories, so that nothing is promoted twice, and nothing that a user
has since forgotten. The gate can refuse a promotion.

Curation fits candidates in with the existing memories: it makes a plan that a person accepts. An
action is only accepted if its ids exist, it creates no cycle, and both memories are about the same
subject: a model's word alone is not enough.
"""

from __future__ import annotations

import os

from memtool import templates
from memtool.authoring import draft, write
from memtool.errors import MemtoolError
from memtool.gate import near_duplicates
from memtool.index import index
from memtool.inject import session_seen
from memtool.memory import ids, lifecycle, timestamps
from memtool.memory.environment import SECTION
from memtool.memory.likeness import SAME
from memtool.memory.lineage import Lineage
from memtool.memory.memory import Memory
from memtool.memory.schema import is_inside
from memtool.memory.visibility import is_alive
from memtool.search import comparison, contradictions
from memtool.search.comparison import content_terms
from memtool.search.word_join import FINDINGS, WordNumbers, join_similar
from memtool.sessions import findings, journal, model, traces
from memtool.sessions.extract import llm
from memtool.sessions.extract.failures import compute_failure_key
from memtool.sessions.extract.llm import Model
from memtool.sessions.findings import Dismissal
from memtool.sessions.model import (
    Finding,
    PromotionPreset,
    Session,
    compute_fingerprint,
    make_printable,
    read_row,
)
from memtool.sessions.store import Sessions
from memtool.sessions.traces import FailureFix
from memtool.store.commits import commit_files
from memtool.store.context import Context
from memtool.store.messages import MEMORY_ID, PROPOSES
from memtool.store.tree import Record, Tree
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence
    from typing import Any, Literal

    from memtool.authoring.write import Repeats

JOURNAL = "promotions.jsonl"
TYPES = {"decision": "decision", "architecture": "decision", "error": "episodic"}
"""Memory type of each category; all others are semantic."""
MAX_LINE = 300
NO_COMMAND = "not known"
NO_CHANGES = "no file was changed"
"""Placeholders for a trace without a command or an edit."""
ROOT_STEPS = 100
"""Maximum depth of forks that are followed: damaged heads may form a cycle."""
FATAL = ("disk", "bare", "no-memory")
"""Error codes that would stop the next finding as well."""
QUARANTINE_S = 24 * 3600
FADE = 0.8
"""An unused candidate's importance is multiplied by this."""
BY = "memtool promote"
"""Recorded as `by` in `checked` if promotion restarts the time of an old statement."""


class Promotion(Value):
    """A row of the journal: which finding became or strengthened which memory, and when."""

    finding: str
    fingerprint: str
    session: str
    memory: str
    moment: int
    is_new: bool = True


def read_promotions(sessions: Sessions) -> list[Promotion]:
    """Return the promotions of this clone, oldest first. Raises MemtoolError."""
    rows, _torn = journal.read(os.path.join(sessions.directory, JOURNAL))
    return [promotion for row in rows if (promotion := read_row(Promotion, row)) is not None]


def count_supports(all_: Sequence[Finding], heads: Iterable[Session]) -> dict[str, tuple[int, int]]:
    """Count the sessions and agents that support each finding, including its own; by finding id.

    A fork repeats its parent's findings, so it is not a second witness.
    """
    roots = _find_roots(heads)
    exact: dict[tuple[str, FailureFix | None], list[Finding]] = {}
    for finding in all_:
        exact.setdefault((compute_fingerprint(finding.content), _build_fix(finding)), []).append(
            finding
        )
    groups = list(exact.values())
    near = _find_near([group[0] for group in groups])
    counts: dict[str, tuple[int, int]] = {}
    for number, group in enumerate(groups):
        same = [finding for other in (number, *near[number]) for finding in groups[other]]
        sessions = {roots.get(finding.session, finding.session) for finding in same}
        agents = {name for finding in same if (name := finding.field("agent"))}
        counts |= dict.fromkeys(
            (finding.id for finding in group), (len(sessions), max(1, len(agents)))
        )
    return counts


def find_lone_traces(all_: Iterable[Finding], heads: Iterable[Session]) -> set[str]:
    """Return the ids of the traces whose failure came in one session only, whatever its forks."""
    roots = _find_roots(heads)
    traces_by_failure: dict[str, list[Finding]] = {}
    for finding in all_:
        if signature := finding.field("error_signature"):
            traces_by_failure.setdefault(compute_failure_key(signature), []).append(finding)
    return {
        finding.id
        for same in traces_by_failure.values()
        if len({roots.get(finding.session, finding.session) for finding in same}) == 1
        for finding in same
    }


def _find_roots(heads: Iterable[Session]) -> dict[str, str]:
    """Map each session to the root of its forks, or to itself."""
    parents = {head.id: head.parent for head in heads}
    roots = {}
    for id_ in parents:
        root = id_
        for _step in range(ROOT_STEPS):
            if not parents.get(root):
                break
            root = parents[root]
        roots[id_] = root
    return roots


def _find_near(heads: Sequence[Finding]) -> list[list[int]]:
    """Return, for each finding, the indexes of the others that say nearly the same."""
    memories = [_to_memory(head.content) for head in heads]
    numbers = WordNumbers()
    words = {at: numbers.number(memory) for at, memory in enumerate(memories)}
    near = join_similar(words, FINDINGS)
    pairs = {tuple(sorted((at, other))) for at, neighbours in near for other in neighbours}
    neighbours: list[list[int]] = [[] for _head in heads]
    for first, other in sorted(pairs):
        fix = _build_fix(heads[first])
        if fix is not None and _is_other(fix, _build_fix(heads[other])):
            continue
        if comparison.compare_memories(memories[first], memories[other]) >= SAME:
            neighbours[first].append(other)
            neighbours[other].append(first)
    return neighbours


def _to_memory(text: str) -> Memory:
    """Wrap a statement in a memory for comparison; it has no id and is not written."""
    return Memory(fields={"type": "semantic", "title": text}, body="")


class JudgedFinding(Value):
    """A finding with its signals and points. `lack` says why it is not promoted, empty if it is.

    `memory` is the id of the memory that it was promoted to, empty if none.
    """

    finding: Finding
    head: Session | None
    signals: tuple[str, ...]
    points: int
    lack: str
    memory: str = ""
    blocker: str = ""
    """Id of the memory that blocks it, empty if none does."""
    dismissals: tuple[Dismissal, ...] = ()
    """Dismissals that apply: its own, or of the same words in another session."""
    is_lone: bool = False
    """Whether it is a trace of a failure that no other session resolved."""

    @property
    def is_question(self) -> bool:
        """Whether it is a statement that waits for a reviewer: the evidence does not suffice."""
        is_settled = self.memory or self.blocker or self.dismissals
        is_statement = not (self.finding.field("commit") or self.finding.field("fix"))
        return bool(self.lack) and is_statement and not is_settled


def judge(
    context: Context,
    sessions: Sessions,
    heads: Sequence[Session],
    read: Mapping[str, Finding],
    preset: PromotionPreset,
    chosen: Collection[str] = (),
) -> list[JudgedFinding]:
    """Judge findings and return them with their points, highest first.

    `read` are the findings to judge, by id; all findings of other sessions count as witnesses.
    `chosen` are ids of findings that a person picked, which need no points.

    Raises:
        MemtoolError: a journal or the memories cannot be read.
    """
    learned = findings.read_all_learned(sessions, heads)
    all_ = {finding.id: finding for finding in learned.findings} | dict(read)
    # A commit is no witness of what sessions taught, and needs none.
    taught = [finding for finding in all_.values() if not finding.field("commit")]
    support = count_supports(taught, heads)
    lone = find_lone_traces(taught, heads)
    before = PromotionHistory(context, sessions, learned)
    by_id = {head.id: head for head in heads}
    judged = []
    for finding in read.values():
        is_chosen = finding.id in chosen
        meant = finding.replace(signals=(*finding.signals, model.INTENT)) if is_chosen else finding
        signals = model.collect_signals(meant, *support.get(finding.id, (1, 1)))
        total = model.count_points(signals)
        lack = "" if is_chosen else model.find_shortfall(finding, total, preset)
        row = JudgedFinding(finding, by_id.get(finding.session), signals, total, lack)
        judged.append(before.judge(row.replace(is_lone=finding.id in lone and not is_chosen)))
    return sorted(judged, key=lambda row: (-row.points, -row.finding.importance, row.finding.id))


def sort_by_moment(judged: Iterable[JudgedFinding]) -> list[JudgedFinding]:
    """Sort findings by the time they were said: a newer one may replace an older one."""
    return sorted(judged, key=lambda row: (_find_moment(row.finding, row.head), row.finding.id))


class PromotionHistory:
    """Earlier promotions, and what the worktree's memories say about a finding now."""

    def __init__(
        self, context: Context, sessions: Sessions, learned: findings.LearnedFindings
    ) -> None:
        self.learned = learned
        rows = read_promotions(sessions)
        self.by_finding = {row.finding: row.memory for row in rows}
        self.by_fingerprint = {row.fingerprint: row.memory for row in rows}
        records, self.lineage = _read_memories(context)
        self.by_id = {record.id: record for record in reversed(records)}
        self.by_source = {
            (source, record.memory.title): record.id
            for record in records
            for source in record.memory.items("source")
        }
        self.fixes = _index_fixes(context, records, self.lineage)
        self.dead = [
            record
            for record in records
            if record.memory.status == "deleted" or not self.lineage.is_head(record.id)
        ]
        self.threshold = context.settings.number(near_duplicates.THRESHOLD_KEY)

    def judge(self, judged: JudgedFinding) -> JudgedFinding:
        """Set what became of a finding: promoted, dismissed, forgotten or replaced."""
        finding = judged.finding
        made = self.by_finding.get(finding.id) or self._find_made_memory(finding)
        if made and not self._is_deleted(made):
            return judged.replace(lack=f"promoted already: {made}", memory=made)
        if gone := self.learned.dismissals_of(finding):
            return judged.replace(lack=gone[-1].text, dismissals=gone)
        earlier = made or self.by_fingerprint.get(compute_fingerprint(finding.content), "")
        if earlier and self._is_deleted(earlier):
            return _deny(judged, earlier, "was forgotten; memtool restore brings it back")
        content, fix = _to_memory(finding.content), _build_fix(finding)
        for record in () if judged.lack else self.dead:
            memory = record.memory
            text = _to_memory(memory.statement or memory.title)
            is_near = comparison.compare_memories(content, text) >= self.threshold
            if not is_near or (fix is not None and _is_other(fix, traces.parse_fix(memory))):
                continue
            if memory.status == "deleted":
                return _deny(judged, record.id, "was forgotten; memtool restore brings it back")
            newer = self._find_newest_successor(record.id)
            if newer is not None and newer.memory.timestamp >= _find_moment(finding, judged.head):
                return _deny(judged, newer.id, f"has replaced {record.id}, which said so")
        newer_fix = (
            "" if judged.lack else self._find_newer_fix(finding, _find_moment(finding, judged.head))
        )
        return _deny(judged, newer_fix, "has a newer fix of this failure") if newer_fix else judged

    def _find_newer_fix(self, finding: Finding, moment: int) -> str:
        """Return the id of a live memory with a newer, different fix of the failure; else empty."""
        fix = _build_fix(finding)
        for record in () if fix is None else self.fixes.get(fix.signature, ()):
            is_later = record.memory.timestamp > moment
            if fix and is_later and _is_other(fix, traces.parse_fix(record.memory)):
                return record.id
        return ""

    def _find_made_memory(self, finding: Finding) -> str:
        """Return the id of the memory with a finding's sources and title or failure, else empty."""
        failure = " ".join(_to_one_line(finding.field("error_signature")).split())
        for record in self.fixes.get(failure, ()):
            if set(finding.sources).issubset(record.memory.items("source")):
                return record.id
        successors = {self.by_source.get((source, finding.title), "") for source in finding.sources}
        return successors.pop() if len(successors) == 1 else ""

    def _is_deleted(self, id_: str) -> bool:
        record = self.by_id.get(id_)
        return record is not None and record.memory.status == "deleted"

    def _find_newest_successor(self, id_: str) -> Record | None:
        heads = self.lineage.find_heads(id_)
        records = [self.by_id[head] for head in heads if head in self.by_id]
        return max(records, key=lambda record: (record.memory.timestamp, record.id), default=None)


def _index_fixes(
    context: Context, records: Iterable[Record], lineage: Lineage
) -> dict[str, list[Record]]:
    """Index the live memories that record a fix by their error signature."""
    records_by_signature: dict[str, list[Record]] = {}
    for record in records:
        signature = " ".join(record.memory.text("error_signature").split())
        if signature and _is_alive(context, record, lineage):
            records_by_signature.setdefault(signature, []).append(record)
    return records_by_signature


def _build_fix(finding: Finding) -> FailureFix | None:
    fix = finding.field("fix")
    command = finding.field("command") or NO_COMMAND
    signature = _to_one_line(finding.field("error_signature"))
    changes = finding.field("changes") or NO_CHANGES
    return traces.build_fix(signature, command, fix, changes) if signature and fix else None


def _is_other(fix: FailureFix, other: FailureFix | None) -> bool:
    """Return whether two fixes of the same failure of the same command differ."""
    return (
        other is not None
        and (fix.signature, fix.command) == (other.signature, other.command)
        and not fix.is_same(other)
    )


def _read_memories(context: Context) -> tuple[tuple[Record, ...], Lineage]:
    """Read the memories of the worktree; none if there is no memory directory yet.

    A newer fix that is only proposed counts as current: promotion itself only proposes.
    """
    try:
        tree = index.open(context, exact=True)
    except MemtoolError as error:
        if error.code != "no-memory":
            raise
        return (), Lineage(())
    return tuple(tree.records), tree.lineage.as_proposed


def _deny(judged: JudgedFinding, id_: str, why: str) -> JudgedFinding:
    return judged.replace(lack=f"denied: {id_} {why}", blocker=id_)


def _find_moment(finding: Finding, head: Session | None) -> int:
    """Return when a finding was last said, in Unix seconds; 0 if unknown."""
    try:
        return timestamps.parse(finding.field("said"))
    except ValueError:
        return head.started if head else 0


def count(context: Context, sessions: Sessions) -> None:
    """Store how many findings could be promoted now, for the start of the next session.

    If they cannot be judged, the previous number stays.
    """
    try:
        heads, _wrong = sessions.heads()
        preset = model.PRESETS[context.settings.text("promote.preset")]
        read = {
            finding.id: finding for finding in findings.read_all_learned(sessions, heads).findings
        }
        judged = judge(context, sessions, heads, read, preset)
    except MemtoolError:
        return
    note_waiting(context.repository.cache_dir, count_lessons(judged))


def count_lessons(judged: Iterable[JudgedFinding], promoted: Collection[str] = ()) -> int:
    """Count the statements that could be promoted, without the findings `promoted` by id.

    Sessions that taught the same taught one lesson.
    """
    ready = (row.finding for row in judged if not row.lack)
    return len({finding.content for finding in ready if finding.id not in promoted})


def note_waiting(cache_dir: str, number: int) -> None:
    """Store how many findings wait, unless the number is unchanged or the disk refuses."""
    if number == session_seen.count_waiting(cache_dir):
        return
    try:
        journal.write_file(os.path.join(cache_dir, session_seen.WAITING), b"%d\n" % number)
    except MemtoolError:
        return


class PromotedMemory(Value):
    """A memory that a finding became, or that it strengthened because both say the same."""

    finding: str
    id: str
    path: str
    is_new: bool
    supersedes: tuple[str, ...] = ()


def make(
    context: Context, sessions: Sessions, judged: JudgedFinding, repeats: Repeats, *, dry_run: bool
) -> PromotedMemory | None:
    """Write the memory of one finding; None if it is refused.

    The same failure with the same fix is one memory, with all sources. A different fix supersedes
    the candidates with an older one; for confirmed memories, curation proposes that. `repeats` says
    whether a memory that already says the same is strengthened or left alone. If a person asked to
    pin the finding, its memory is pinned, but only if a person promotes it. A refusal by the gate
    is noted, and does not stop other promotions.
    """
    finding = judged.finding
    memory = build_memory(context, judged)
    if repeats != "leave" and model.PIN in finding.signals:
        memory = memory.with_fields(status="pinned")
    try:
        same, older = _find_same_failure(context, finding)
        if older:
            memory = memory.with_fields(supersedes=tuple(record.id for record in older))
        if same is None:
            written = write.write_new(context, memory, repeats=repeats, dry_run=dry_run)
        elif repeats == "leave" and same.memory.status != "candidate":
            written = write.unwritten(same, dry_run=dry_run)
        else:
            written = write.strengthen(context, same, memory, dry_run=dry_run)
    except MemtoolError as error:
        if error.code in FATAL:
            raise
        context.notes.append(f"{finding.id} was not promoted: {error.message}")
        return None
    is_new = written.duplicate_of is None
    replaced = memory.supersedes if is_new else ()
    for id_ in replaced:
        context.notes.append(f"{written.id} would replace {id_}, which has an older fix")
    if not dry_run:
        row = Promotion(
            finding.id,
            compute_fingerprint(finding.content),
            finding.session,
            written.id,
            context.clock.now,
            is_new,
        )
        journal.append(os.path.join(sessions.directory, JOURNAL), [row.plain()])
    return PromotedMemory(finding.id, written.id, written.path, is_new, replaced)


def _find_same_failure(context: Context, finding: Finding) -> tuple[Record | None, list[Record]]:
    """Return the live memory with the same fix of a failure, and candidates with another fix."""
    fix = _build_fix(finding)
    if fix is None:
        return None, []
    records, lineage = _read_memories(context)
    same_signature = _index_fixes(context, records, lineage).get(fix.signature, [])
    fixes = {record.id: traces.parse_fix(record.memory) for record in same_signature}
    for record in same_signature:
        earlier_fix = fixes[record.id]
        if earlier_fix is not None and fix.is_same(earlier_fix):
            return record, []
    candidates = (record for record in same_signature if record.memory.status == "candidate")
    return None, [record for record in candidates if _is_other(fix, fixes[record.id])]


def build_memory(context: Context, judged: JudgedFinding) -> Memory:
    """Build the candidate that a finding becomes, with its messages or commit as sources.

    It is dated to the last message or the commit, so that it stays older than any decision made
    after that. If its time would already be over, its time starts now.
    """
    finding, head = judged.finding, judged.head
    top = context.repository.top
    moment = _find_moment(finding, head)
    second = moment if 0 < moment <= context.clock.now else context.clock.now
    # Files that are not in the worktree would only be reported as drifted.
    files = [
        path
        for path in finding.files
        if is_inside(path) and os.path.lexists(os.path.join(top, path))
    ]
    type_ = TYPES.get(finding.category, "semantic")
    made = draft.build_draft(
        context,
        type_,
        finding.title,
        body=finding.content,
        section=tuple(_build_sections(finding, head)) if type_ == "episodic" else (),
        fields={
            "id": ids.make_id(
                type_,
                second,
                finding.title,
                context.random_id_bytes(finding.title, finding.content),
            ),
            "timestamp": timestamps.render(second),
            "category": finding.category,
            "status": "candidate",
            "confidence": finding.confidence,
            "source": finding.sources,
            "tags": finding.tags,
            "files": tuple(files),
            "importance": f"{finding.importance:g}",
            "error_signature": _to_one_line(finding.field("error_signature")),
            "agent": _to_one_line(finding.field("agent") or (head.agent if head else "")),
            "session": "" if finding.session == findings.HISTORY else finding.session,
        },
        extra=(),
    )
    tags = (*finding.tags, *draft.propose_tags(context, made))
    made = made.with_fields(tags=tags) if tags else made
    if (
        lifecycle.find_state(made, context.clock.now, context.settings.categories)
        == lifecycle.EXPIRED
    ):
        made = made.with_fields(checked={"at": timestamps.render(context.clock.now), "by": BY})
    return made


def _to_one_line(text: str) -> str:
    return " ".join(make_printable(text).split())[:MAX_LINE]


def _build_sections(finding: Finding, head: Session | None) -> Iterable[str]:
    """Yield the sections of a trace as `NAME=TEXT`; nothing if the finding has no fix."""
    if not finding.field("fix"):
        return
    branch = f", on the branch {head.branch}" if head and head.branch else ""
    yield f"Command={_fence(finding.field('command') or NO_COMMAND)}"
    yield f"Failure={_fence(finding.field('failure'))}"
    yield f"Changes={_fence(finding.field('changes') or NO_CHANGES)}"
    seen = f"Seen in session {finding.session}{branch}."
    yield f"{SECTION}={seen}\n\n{finding.field('environment')}".rstrip()
    yield f"Fix={finding.field('fix')}."


def _fence(text: str) -> str:
    """Wrap a text in a code fence that it cannot close."""
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}\n{text}\n{fence}"


def find_alive_heads(context: Context, tree: Tree) -> list[Record]:
    """Return the live heads, including deprecated ones: a candidate has to fit in with them."""
    return [record for record in tree.records if _is_alive(context, record, tree.lineage)]


def _is_alive(context: Context, record: Record, lineage: Lineage) -> bool:
    memory, categories = record.memory, context.settings.categories
    return lineage.is_head(record.id) and is_alive(memory, context.clock.now, categories)


def note_contradictions(context: Context, ids: Collection[str]) -> None:
    """Note which new candidates contradict another memory; both are kept."""
    alive = find_alive_heads(context, context.tree())
    new = [record for record in alive if record.id in ids]
    other_records = [record for record in alive if record.id not in ids]
    dates = {record.id: record.memory.timestamp for record in alive}
    for action in propose_by_rules(new, other_records):
        what = (
            "memtool curate proposes what to do"
            if dates[action.id] >= dates[action.to]
            else f"it was said before that; memtool archive {action.id} if it no longer holds"
        )
        context.notes.append(f"{action.id} may contradict {action.to}; {what}")


def commit(context: Context, made: Sequence[PromotedMemory]) -> str | None:
    """Commit the new memories alone, in one commit. Raises MemtoolError if git refuses."""
    ids = sorted({promoted.id for promoted in made})
    paths = sorted({promoted.path for promoted in made})
    what = ids[0] if len(ids) == 1 else f"{len(ids)} findings of sessions"
    trailers = {MEMORY_ID: ", ".join(ids)}
    older = sorted({id_ for promoted in made for id_ in promoted.supersedes})
    if older:
        trailers[PROPOSES] = ", ".join(older)
    return commit_files(context, paths, f"promote {what}", trailers)


def judge_quarantine(
    status: str, added: int | None, now: int, *, is_used: bool
) -> Literal["none", "wait", "confirm", "fade"]:
    """Decide what happens to a candidate; `none` for any other memory.

    `added` is the second of the commit that added its file. It is not the date inside the file,
    which may be that of an old statement. None means not committed, which waits. If the clock is
    behind the committer's, the candidate waits. Nothing is written here: `memtool maintain`
    proposes the change.
    """
    if status != "candidate":
        return "none"
    if added is None or now - added < QUARANTINE_S:
        return "wait"
    return "confirm" if is_used else "fade"


PROMPT = "prompts/curate.md"
RELATIONS = ("supersedes", "resolves", "related_to")
PIN = "pin"
MAX_ACTIONS = 50
MAX_STATEMENT_CHARS = 400
MAX_WHY = 200
MAX_STEPS = 1_000
"""Maximum memories visited along `supersedes` before a cycle is assumed."""
MIN_SHARED = 2
"""Content words that two memories must share before one may be related to the other."""


class Action(Value):
    """One step: `do` is a relation from candidate `id` to memory `to`, or `pin` for `id` alone."""

    do: str = ""
    id: str = ""
    to: str = ""
    why: str = ""


def propose_by_rules(candidates: Sequence[Record], confirmed: Sequence[Record]) -> list[Action]:
    """Propose what needs no model: a candidate replaces the memory that it contradicts.

    It also replaces a memory with another fix for the same failure of the same command.
    """
    records = [*confirmed, *candidates]
    first = len(confirmed)
    fixes = [traces.parse_fix(record.memory) for record in records]
    return [
        Action("supersedes", candidate.id, other.id, f"another fix of {fix.signature}")
        for candidate, fix in zip(candidates, fixes[first:], strict=True)
        for other, other_fix in zip(confirmed, fixes, strict=False)
        if fix is not None
        and _is_other(fix, other_fix)
        and other.id not in candidate.memory.supersedes
    ] + [
        Action("supersedes", records[clash.other].id, records[clash.first].id, clash.reason)
        for clash in contradictions.find([record.memory for record in records])
        if clash.first < first <= clash.other
        and records[clash.first].id not in records[clash.other].memory.supersedes
    ]


def propose_by_model(
    model: Model, candidates: Sequence[Record], confirmed: Sequence[Record]
) -> list[Action]:
    """Return the readable actions that a model proposes.

    Raises:
        Unusable: the model gave no usable answer.
    """
    rows = llm.ask(model, build_curation_prompt(candidates, confirmed), "actions")
    return [action for row in rows[:MAX_ACTIONS] if (action := _parse_action(row)) is not None]


def build_curation_prompt(candidates: Sequence[Record], confirmed: Sequence[Record]) -> str:
    """Build the prompt: the instruction, all candidates, and as many other memories as fit.

    Those that share most words with a candidate come first.
    """
    wanted: set[str] = set().union(*(content_terms(record.memory) for record in candidates))
    near = sorted(confirmed, key=lambda r: (-len(wanted & content_terms(r.memory)), r.id))
    rows = (
        {
            "id": memory.id,
            "candidate": memory.status == "candidate",
            "type": memory.type,
            "category": memory.category,
            "title": memory.title,
            "says": memory.statement[:MAX_STATEMENT_CHARS],
        }
        for memory in (record.memory for record in (*candidates, *near))
    )
    return templates.read(PROMPT) + "\n".join(llm.take_fitting_rows(rows)) + "\n"


def _parse_action(row: Any) -> Action | None:
    made = read_row(Action, row) if isinstance(row, dict) else None
    return made and made.replace(why=" ".join(make_printable(made.why).split())[:MAX_WHY])


def select_fitting(
    actions: Iterable[Action],
    candidates: Sequence[Record],
    confirmed: Sequence[Record],
    lineage: Lineage,
) -> list[Action]:
    """Select the actions that can be carried out, each once, in order.

    A memory is replaced by at most one candidate, which must not be older, and is not pinned then.
    No candidate may supersede itself.
    """
    own = {record.id: record for record in candidates}
    records_by_id = {record.id: record for record in confirmed} | own
    chosen_actions: list[Action] = []
    replaced: dict[str, str] = {}
    for action in actions:
        if any((action.do, action.id, action.to) == (a.do, a.id, a.to) for a in chosen_actions):
            continue
        if action.do == PIN:
            is_fit = action.id in records_by_id and action.id not in own
            is_fit = is_fit and records_by_id[action.id].memory.status == "confirmed"
        else:
            is_fit = (
                action.do in RELATIONS
                and action.id in own
                and action.to in records_by_id
                and action.id != action.to
                and action.to not in own[action.id].memory.items(action.do)
                and is_about_same(own[action.id], records_by_id[action.to])
            )
        if is_fit and action.do == "supersedes":
            is_later = own[action.id].memory.timestamp >= records_by_id[action.to].memory.timestamp
            is_fit = is_later and action.to not in replaced
            is_fit = is_fit and not _closes(action, replaced, lineage)
            if is_fit:
                replaced[action.to] = action.id
        if is_fit:
            chosen_actions.append(action.replace(to="") if action.do == PIN else action)
    return [action for action in chosen_actions if action.do != PIN or action.id not in replaced][
        :MAX_ACTIONS
    ]


def is_about_same(record: Record, other: Record) -> bool:
    """Return whether two memories are about the same subject: shared content words or a file."""
    shared = content_terms(record.memory) & content_terms(other.memory)
    files = set(record.memory.items("files")) & set(other.memory.items("files"))
    return len(shared) >= MIN_SHARED or bool(files)


def _closes(action: Action, replaced: dict[str, str], lineage: Lineage) -> bool:
    """Return whether an action would make a candidate supersede itself.

    Both this plan and the stored lineage count.
    """
    seen: set[str] = set()
    todo = [action.id]
    while todo and len(seen) < MAX_STEPS:
        id_ = todo.pop()
        if id_ == action.to:
            return True
        if id_ not in seen:
            seen.add(id_)
            todo += lineage.as_proposed.superseded_by.get(id_, ())
            todo += [replaced[id_]] if id_ in replaced else []
    return bool(todo)
