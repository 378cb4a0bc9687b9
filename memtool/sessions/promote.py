"""Promotion: findings with enough evidence become candidates, once.

It owns how findings support each other, what each lacks, the memory that one becomes, and what
becomes of a candidate after its first day. The journal of promotions is next to the sessions and
maps findings to memories, so that nothing is promoted twice, and nothing again that somebody has
forgotten since. Nothing is promoted that the gate refuses.

Curation is how candidates fit in with the memories that exist: a plan that a person accepts. Its
actions are kept where their ids exist and fit, they close no circle, and the two memories speak of
the same: a model's word alone is not enough.
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
from memtool.search.comparison import content_of
from memtool.search.word_join import FINDINGS, WordNumbers, joined
from memtool.sessions import findings, journal, model, traces
from memtool.sessions.extract import llm
from memtool.sessions.extract.llm import Model
from memtool.sessions.findings import Dismissal
from memtool.sessions.model import (
    Finding,
    Head,
    PromotionPreset,
    fingerprint,
    printable,
    read_row,
)
from memtool.sessions.store import Sessions
from memtool.sessions.traces import FailureFix
from memtool.store.commits import commit_files
from memtool.store.context import Context
from memtool.store.tree import Record, Tree
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence
    from typing import Any, Literal

    from memtool.authoring.write import Repeats

JOURNAL = "promotions.jsonl"
TYPES = {"decision": "decision", "architecture": "decision", "error": "episodic"}
"""The type of memory for a category; all others are semantic."""
MOST_LINE = 300
NO_COMMAND = "not known"
NO_CHANGES = "no file was changed"
"""Stand where a trace has no command or no edit."""
ROOT_STEPS = 100
"""Forks of forks that are followed: a circle in damaged heads ends there."""
FATAL = ("disk", "bare", "no-memory")
"""Codes of errors that the next finding would meet as well."""
QUARANTINE_S = 24 * 3600
FADE = 0.8
"""A candidate that nobody used weighs this much of its importance."""
BY = "memtool promote"
"""Who began the time of an old word again, where a key says so."""


class Promotion(Value):
    """One row of the journal: which finding became, or strengthened, which memory, and when."""

    finding: str
    fingerprint: str
    session: str
    memory: str
    moment: int
    is_new: bool = True


def promotions(sessions: Sessions) -> list[Promotion]:
    """Return what was promoted in this clone, oldest first. Raises MemtoolError."""
    rows, _torn = journal.read(os.path.join(sessions.directory, JOURNAL))
    return [one for row in rows if (one := read_row(Promotion, row)) is not None]


def supports(all_: Sequence[Finding], heads: Iterable[Head]) -> dict[str, tuple[int, int]]:
    """Return by the id of each finding how many sessions and agents say so, its own included.

    A fork repeats what its parent found, and is no second witness.
    """
    roots = _roots(heads)
    exact: dict[tuple[str, FailureFix | None], list[Finding]] = {}
    for one in all_:
        exact.setdefault((fingerprint(one.content), _fix(one)), []).append(one)
    groups = list(exact.values())
    near = _near([group[0] for group in groups])
    found: dict[str, tuple[int, int]] = {}
    for number, group in enumerate(groups):
        same = [one for other in (number, *near[number]) for one in groups[other]]
        sessions = {roots.get(one.session, one.session) for one in same}
        agents = {name for one in same if (name := one.field("agent"))}
        found |= dict.fromkeys((one.id for one in group), (len(sessions), max(1, len(agents))))
    return found


def _roots(heads: Iterable[Head]) -> dict[str, str]:
    """Return for each session the one that it was forked from in the end, itself without one."""
    parents = {head.id: head.parent for head in heads}
    found = {}
    for id_ in parents:
        root = id_
        for _step in range(ROOT_STEPS):
            if not parents.get(root):
                break
            root = parents[root]
        found[id_] = root
    return found


def _near(heads: Sequence[Finding]) -> list[list[int]]:
    """Return for each finding the others that say nearly the same, by their places."""
    memories = [_statement(one.content) for one in heads]
    numbers = WordNumbers()
    words = {at: numbers.of(one) for at, one in enumerate(memories)}
    near = joined(words, FINDINGS)
    pairs = {tuple(sorted((at, other))) for at, others in near for other in others}
    found: list[list[int]] = [[] for _one in heads]
    for one, other in sorted(pairs):
        fix = _fix(heads[one])
        if fix is not None and _is_other(fix, _fix(heads[other])):
            continue
        if comparison.likeness(memories[one], memories[other]) >= SAME:
            found[one].append(other)
            found[other].append(one)
    return found


def _statement(text: str) -> Memory:
    """Return a statement as a memory that compares with others; it has no id and is not written."""
    return Memory(fields={"type": "semantic", "title": text}, body="")


class Judged(Value):
    """A finding with its signals and points. `lack` says why it is not promoted, empty if it is to.

    `memory` is the id of what it was promoted to, empty where it was not.
    """

    finding: Finding
    head: Head | None
    signals: tuple[str, ...]
    points: int
    lack: str
    memory: str = ""
    blocker: str = ""
    """The memory because of which it is denied, empty where it is not."""
    dismissals: tuple[Dismissal, ...] = ()
    """Those that hold for it: its own, or of the same words in another session."""


def judge(
    context: Context,
    sessions: Sessions,
    heads: Sequence[Head],
    read: Mapping[str, Finding],
    preset: PromotionPreset,
    chosen: Collection[str] = (),
) -> list[Judged]:
    """Return findings with their points, those with most first.

    `read` are those to be judged, by id; all that is known of other sessions counts as witness.
    `chosen` are ids of findings that a person picked, which need no points.

    Raises:
        MemtoolError: a journal or the memories cannot be read.
    """
    known = findings.all_known(sessions, heads)
    all_ = {one.id: one for one in known.findings} | dict(read)
    support = supports(list(all_.values()), heads)
    before = _Before(context, sessions, known)
    by_id = {head.id: head for head in heads}
    judged = []
    for one in read.values():
        is_chosen = one.id in chosen
        meant = one.replace(signals=(*one.signals, model.INTENT)) if is_chosen else one
        signals = model.signals_of(meant, *support[one.id])
        total = model.points_of(signals)
        lack = "" if is_chosen else model.shortfall(one, total, preset)
        judged.append(before.verdict(Judged(one, by_id.get(one.session), signals, total, lack)))
    return sorted(judged, key=lambda one: (-one.points, -one.finding.importance, one.finding.id))


def by_moment(judged: Iterable[Judged]) -> list[Judged]:
    """Return findings in the order in which they were said: what is newer may replace the older."""
    return sorted(judged, key=lambda one: (_moment(one.finding, one.head), one.finding.id))


class _Before:
    """What was promoted before, and what the memories of the worktree say to a finding now."""

    def __init__(self, context: Context, sessions: Sessions, known: findings.Learned) -> None:
        self.known = known
        rows = promotions(sessions)
        self.by_finding = {row.finding: row.memory for row in rows}
        self.by_fingerprint = {row.fingerprint: row.memory for row in rows}
        records, self.lineage = _memories(context)
        self.by_id = {record.id: record for record in reversed(records)}
        self.by_source = {
            (source, record.memory.title): record.id
            for record in records
            for source in record.memory.items("source")
        }
        self.fixes = _fixes(context, records, self.lineage)
        self.dead = [
            record
            for record in records
            if record.memory.status == "deleted" or not self.lineage.is_head(record.id)
        ]
        self.threshold = context.settings.number(near_duplicates.THRESHOLD_KEY)

    def verdict(self, judged: Judged) -> Judged:
        """Return a finding with what it became: promoted, forgotten, or replaced since."""
        one = judged.finding
        made = self.by_finding.get(one.id) or self._made_of(one)
        if made and not self._is_deleted(made):
            return judged.replace(lack=f"promoted already: {made}", memory=made)
        if gone := self.known.dismissals_of(one):
            return judged.replace(lack=gone[-1].text, dismissals=gone)
        earlier = made or self.by_fingerprint.get(fingerprint(one.content), "")
        if earlier and self._is_deleted(earlier):
            return _denied(judged, earlier, "was forgotten; memtool restore brings it back")
        content, fix = _statement(one.content), _fix(one)
        for record in () if judged.lack else self.dead:
            memory = record.memory
            text = _statement(memory.statement or memory.title)
            is_near = comparison.likeness(content, text) >= self.threshold
            if not is_near or (fix is not None and _is_other(fix, traces.fix_of(memory))):
                continue
            if memory.status == "deleted":
                return _denied(judged, record.id, "was forgotten; memtool restore brings it back")
            newer = self._newest_successor(record.id)
            if newer is not None and newer.memory.timestamp >= _moment(one, judged.head):
                return _denied(judged, newer.id, f"has replaced {record.id}, which said so")
        newer_fix = "" if judged.lack else self._newer_fix(one, _moment(one, judged.head))
        return (
            _denied(judged, newer_fix, "has a newer fix of this failure") if newer_fix else judged
        )

    def _newer_fix(self, one: Finding, moment: int) -> str:
        """Return a living memory with another fix of the same failure since, empty for none."""
        fix = _fix(one)
        for record in () if fix is None else self.fixes.get(fix.signature, ()):
            is_later = record.memory.timestamp > moment
            if fix and is_later and _is_other(fix, traces.fix_of(record.memory)):
                return record.id
        return ""

    def _made_of(self, one: Finding) -> str:
        """Return the memory with a finding's sources and its title or failure, empty for none."""
        failure = " ".join(_one_line(one.field("error_signature")).split())
        for record in self.fixes.get(failure, ()):
            if set(_sources(one)).issubset(record.memory.items("source")):
                return record.id
        found = {self.by_source.get((source, one.title), "") for source in _sources(one)}
        return found.pop() if len(found) == 1 else ""

    def _is_deleted(self, id_: str) -> bool:
        record = self.by_id.get(id_)
        return record is not None and record.memory.status == "deleted"

    def _newest_successor(self, id_: str) -> Record | None:
        heads = self.lineage.heads_of(id_)
        found = [self.by_id[head] for head in heads if head in self.by_id]
        return max(found, key=lambda record: (record.memory.timestamp, record.id), default=None)


def _fixes(
    context: Context, records: Iterable[Record], lineage: Lineage
) -> dict[str, list[Record]]:
    """Return the living memories that say how a failure was resolved, by its signature."""
    found: dict[str, list[Record]] = {}
    for record in records:
        signature = " ".join(record.memory.text("error_signature").split())
        if signature and _is_alive(context, record, lineage):
            found.setdefault(signature, []).append(record)
    return found


def _fix(finding: Finding) -> FailureFix | None:
    fix = finding.field("fix")
    command = finding.field("command") or NO_COMMAND
    signature = _one_line(finding.field("error_signature"))
    changes = finding.field("changes") or NO_CHANGES
    return traces.fix_of_texts(signature, command, fix, changes) if signature and fix else None


def _is_other(one: FailureFix, other: FailureFix | None) -> bool:
    """Tell whether two traces of the same failure of the same command name another fix each."""
    return (
        other is not None
        and (one.signature, one.command) == (other.signature, other.command)
        and not one.is_same(other)
    )


def _memories(context: Context) -> tuple[tuple[Record, ...], Lineage]:
    """Return the memories of the worktree; none where there is no place for them yet.

    A newer fix that is only proposed counts as the one that holds: what is found here is proposed.
    """
    try:
        tree = index.open(context, exact=True)
    except MemtoolError as error:
        if error.code != "no-memory":
            raise
        return (), Lineage(())
    return tuple(tree.records), tree.lineage.as_proposed


def _denied(judged: Judged, id_: str, why: str) -> Judged:
    return judged.replace(lack=f"denied: {id_} {why}", blocker=id_)


def _moment(finding: Finding, head: Head | None) -> int:
    """Return the second in which a finding was last repeated, 0 where it is unknown."""
    try:
        return timestamps.parse(finding.field("said"))
    except ValueError:
        return head.started if head else 0


def count(context: Context, sessions: Sessions) -> None:
    """Store how many findings would be promoted now, for the start of the next session.

    Where they cannot be judged, the number of before stays.
    """
    try:
        heads, _wrong = sessions.heads()
        preset = model.PRESETS[context.settings.text("promote.preset")]
        read = {one.id: one for one in findings.all_known(sessions, heads).findings}
        judged = judge(context, sessions, heads, read, preset)
    except MemtoolError:
        return
    note_waiting(context.repository.cache_dir, sum(not one.lack for one in judged))


def note_waiting(cache_dir: str, number: int) -> None:
    """Store how many findings wait; not where it is the same, or the disk refuses."""
    if number == session_seen.waiting(cache_dir):
        return
    try:
        journal.put(os.path.join(cache_dir, session_seen.WAITING), b"%d\n" % number)
    except MemtoolError:
        return


class Made(Value):
    """A memory that a finding became, or that it strengthened because it says so already."""

    finding: str
    id: str
    path: str
    is_new: bool
    supersedes: tuple[str, ...] = ()


def make(
    context: Context, sessions: Sessions, judged: Judged, repeats: Repeats, *, dry_run: bool
) -> Made | None:
    """Write the memory of one finding; None if it is refused.

    The same failure with the same fix is one memory, with all sources. Another fix of it supersedes
    the candidates that have an older one; of what somebody has confirmed, curation proposes it. A
    memory that says it already is strengthened or left, as `repeats` has it. What a person asked to
    pin is pinned, where somebody promotes it. A refusal by the gate is noted, and keeps no other
    finding from being promoted.
    """
    one = judged.finding
    memory = memory_of(context, judged)
    if repeats != "leave" and model.PIN in one.signals:
        memory = memory.with_fields(status="pinned")
    try:
        same, older = _same_failure(context, one)
        if older:
            memory = memory.with_fields(supersedes=tuple(record.id for record in older))
        if same is None:
            written = write.write_new(context, memory, repeats=repeats, dry_run=dry_run)
        elif repeats == "leave" and same.memory.status != "candidate":
            written = write.left(same, dry_run=dry_run)
        else:
            written = write.strengthen(context, same, memory, dry_run=dry_run)
    except MemtoolError as error:
        if error.code in FATAL:
            raise
        context.notes.append(f"{one.id} is not promoted: {error.message}")
        return None
    is_new = written.duplicate_of is None
    replaced = memory.supersedes if is_new else ()
    for id_ in replaced:
        context.notes.append(f"{written.id} is to replace {id_}, which has an older fix")
    if not dry_run:
        row = Promotion(
            one.id, fingerprint(one.content), one.session, written.id, context.clock.now, is_new
        )
        journal.append(os.path.join(sessions.directory, JOURNAL), [row.plain()])
    return Made(one.id, written.id, written.path, is_new, replaced)


def _same_failure(context: Context, one: Finding) -> tuple[Record | None, list[Record]]:
    """Return the living memory that says the same of a failure, and candidates with another fix."""
    fix = _fix(one)
    if fix is None:
        return None, []
    records, lineage = _memories(context)
    known = _fixes(context, records, lineage).get(fix.signature, [])
    fixes = {record.id: traces.fix_of(record.memory) for record in known}
    for record in known:
        found = fixes[record.id]
        if found is not None and fix.is_same(found):
            return record, []
    candidates = (record for record in known if record.memory.status == "candidate")
    return None, [record for record in candidates if _is_other(fix, fixes[record.id])]


def memory_of(context: Context, judged: Judged) -> Memory:
    """Return the candidate that a finding becomes, with the messages that back it as sources.

    It has the date of the last message, so that what was said before a decision stays older than
    it. Where its time would be over already, that begins now.
    """
    one, head = judged.finding, judged.head
    top = context.repository.top
    said = _moment(one, head)
    second = said if 0 < said <= context.clock.now else context.clock.now
    # Files that are not in the worktree would only look drifted.
    files = [
        path for path in one.files if is_inside(path) and os.path.lexists(os.path.join(top, path))
    ]
    type_ = TYPES.get(one.category, "semantic")
    made = draft.draft(
        context,
        type_,
        one.title,
        body=one.content,
        section=tuple(_sections(one, head)) if type_ == "episodic" else (),
        fields={
            "id": ids.make_id(type_, second, one.title, context.random_for(one.title, one.content)),
            "timestamp": timestamps.render(second),
            "category": one.category,
            "status": "candidate",
            "confidence": one.confidence,
            "source": _sources(one),
            "tags": one.tags,
            "files": tuple(files),
            "importance": f"{one.importance:g}",
            "error_signature": _one_line(one.field("error_signature")),
            "agent": _one_line(one.field("agent") or (head.agent if head else "")),
            "session": one.session,
        },
        extra=(),
    )
    tags = (*one.tags, *draft.proposed_tags(context, made))
    made = made.with_fields(tags=tags) if tags else made
    if lifecycle.state(made, context.clock.now, context.settings.categories) == lifecycle.EXPIRED:
        made = made.with_fields(checked={"at": timestamps.render(context.clock.now), "by": BY})
    return made


def _sources(finding: Finding) -> tuple[str, ...]:
    return tuple(f"session:{finding.session}#{number}" for number in finding.messages)


def _one_line(text: str) -> str:
    return " ".join(printable(text).split())[:MOST_LINE]


def _sections(finding: Finding, head: Head | None) -> Iterable[str]:
    """Yield the sections of a trace as `NAME=TEXT`; only an error with its fix has them all."""
    if not finding.field("fix"):
        return
    branch = f", on the branch {head.branch}" if head and head.branch else ""
    yield f"Command={_code(finding.field('command') or NO_COMMAND)}"
    yield f"Failure={_code(finding.field('failure'))}"
    yield f"Changes={_code(finding.field('changes') or NO_CHANGES)}"
    seen = f"Seen in session {finding.session}{branch}."
    yield f"{SECTION}={seen}\n\n{finding.field('environment')}".rstrip()
    yield f"Fix={finding.field('fix')}."


def _code(text: str) -> str:
    """Return a text in a code fence that nothing in it can close."""
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}\n{text}\n{fence}"


def alive_heads(context: Context, tree: Tree) -> list[Record]:
    """Return the heads that are alive, deprecated ones too: what a candidate has to go with."""
    return [record for record in tree.records if _is_alive(context, record, tree.lineage)]


def _is_alive(context: Context, record: Record, lineage: Lineage) -> bool:
    memory, categories = record.memory, context.settings.categories
    return lineage.is_head(record.id) and is_alive(memory, context.clock.now, categories)


def note_opposed(context: Context, ids: Collection[str]) -> None:
    """Note which of the candidates just made contradict another memory: both are kept."""
    alive = alive_heads(context, context.tree())
    new = [record for record in alive if record.id in ids]
    others = [record for record in alive if record.id not in ids]
    dates = {record.id: record.memory.timestamp for record in alive}
    for action in by_rules(new, others):
        what = (
            "memtool curate proposes what to do"
            if dates[action.id] >= dates[action.to]
            else f"it was said before that; memtool archive {action.id} if it no longer holds"
        )
        context.notes.append(f"{action.id} may contradict {action.to}; {what}")


def commit(context: Context, made: Sequence[Made]) -> str | None:
    """Commit what was made, in one commit and alone. Raises MemtoolError where git refuses."""
    ids = sorted({one.id for one in made})
    paths = sorted({one.path for one in made})
    what = ids[0] if len(ids) == 1 else f"{len(ids)} findings of sessions"
    trailers = {"Memory-Id": ", ".join(ids)}
    older = sorted({id_ for one in made for id_ in one.supersedes})
    if older:
        trailers[write.PROPOSES] = ", ".join(older)
    return commit_files(context, paths, f"memory: promote {what}", trailers)


def quarantine(
    status: str, added: int | None, now: int, *, is_used: bool
) -> Literal["none", "wait", "confirm", "fade"]:
    """Return what becomes of a memory: `none` for what is no candidate.

    `added` is the second of the commit that added its file, not the date in it, which may be that
    of an old word; None for one that is not committed, which waits. A clock that
    runs behind the committer's lets it wait. Nothing is written here:
    `memtool maintain` proposes the change of the file.
    """
    if status != "candidate":
        return "none"
    if added is None or now - added < QUARANTINE_S:
        return "wait"
    return "confirm" if is_used else "fade"


PROMPT = "prompts/curate.md"
RELATIONS = ("supersedes", "resolves", "related_to")
PIN = "pin"
MOST_ACTIONS = 50
MOST_SAID = 400
MOST_WHY = 200
MOST_STEPS = 1_000
"""Memories that a walk along `supersedes` goes through before a circle is assumed."""
LEAST_SHARED = 2
"""Words with a meaning that two memories share before one may say something of the other."""


class Action(Value):
    """One step: `do` is a relation from a candidate to another memory, or `pin` of one alone."""

    do: str = ""
    id: str = ""
    to: str = ""
    why: str = ""


def by_rules(candidates: Sequence[Record], others: Sequence[Record]) -> list[Action]:
    """Return what is plain without a model: a candidate that contradicts a memory replaces it.

    So does one that has another fix for the same failure of the same command.
    """
    records = [*others, *candidates]
    first = len(others)
    fixes = [traces.fix_of(record.memory) for record in records]
    return [
        Action("supersedes", candidate.id, other.id, f"another fix of {fix.signature}")
        for candidate, fix in zip(candidates, fixes[first:], strict=True)
        for other, known in zip(others, fixes, strict=False)
        if fix is not None and _is_other(fix, known) and other.id not in candidate.memory.supersedes
    ] + [
        Action("supersedes", records[clash.other].id, records[clash.one].id, clash.reason)
        for clash in contradictions.find([record.memory for record in records])
        if clash.one < first <= clash.other
        and records[clash.one].id not in records[clash.other].memory.supersedes
    ]


def by_model(model: Model, candidates: Sequence[Record], others: Sequence[Record]) -> list[Action]:
    """Return what a model proposes, as far as it can be read.

    Raises:
        Unusable: the model gave no answer that can be used.
    """
    rows = llm.ask(model, curation_prompt(candidates, others), "actions")
    return [action for row in rows[:MOST_ACTIONS] if (action := _action(row)) is not None]


def curation_prompt(candidates: Sequence[Record], others: Sequence[Record]) -> str:
    """Return what is sent: the instruction, all candidates, and the others as far as they fit.

    Those that share most words with a candidate come first.
    """
    wanted: set[str] = set().union(*(content_of(record.memory) for record in candidates))
    near = sorted(others, key=lambda r: (-len(wanted & content_of(r.memory)), r.id))
    rows = (
        {
            "id": memory.id,
            "candidate": memory.status == "candidate",
            "type": memory.type,
            "category": memory.category,
            "title": memory.title,
            "says": memory.statement[:MOST_SAID],
        }
        for memory in (record.memory for record in (*candidates, *near))
    )
    return templates.read(PROMPT) + "\n".join(llm.fitting_rows(rows)) + "\n"


def _action(row: Any) -> Action | None:
    made = read_row(Action, row) if isinstance(row, dict) else None
    return made and made.replace(why=" ".join(printable(made.why).split())[:MOST_WHY])


def fitting(
    actions: Iterable[Action],
    candidates: Sequence[Record],
    others: Sequence[Record],
    lineage: Lineage,
) -> list[Action]:
    """Return the actions that can be carried out, each once, in their order.

    A memory is replaced by one candidate only, by none that is older, and is not pinned then; no
    candidate comes to replace itself.
    """
    own = {record.id: record for record in candidates}
    known = {record.id: record for record in others} | own
    found: list[Action] = []
    replaced: dict[str, str] = {}
    for action in actions:
        if any((action.do, action.id, action.to) == (a.do, a.id, a.to) for a in found):
            continue
        if action.do == PIN:
            is_fit = action.id in known and action.id not in own
            is_fit = is_fit and known[action.id].memory.status == "confirmed"
        else:
            is_fit = (
                action.do in RELATIONS
                and action.id in own
                and action.to in known
                and action.id != action.to
                and action.to not in own[action.id].memory.items(action.do)
                and speaks_of(own[action.id], known[action.to])
            )
        if is_fit and action.do == "supersedes":
            is_later = own[action.id].memory.timestamp >= known[action.to].memory.timestamp
            is_fit = is_later and action.to not in replaced
            is_fit = is_fit and not _closes(action, replaced, lineage)
            if is_fit:
                replaced[action.to] = action.id
        if is_fit:
            found.append(action.replace(to="") if action.do == PIN else action)
    return [one for one in found if one.do != PIN or one.id not in replaced][:MOST_ACTIONS]


def speaks_of(one: Record, other: Record) -> bool:
    """Tell whether two memories speak of the same: they share words with a meaning, or a file."""
    shared = content_of(one.memory) & content_of(other.memory)
    files = set(one.memory.items("files")) & set(other.memory.items("files"))
    return len(shared) >= LEAST_SHARED or bool(files)


def _closes(action: Action, replaced: dict[str, str], lineage: Lineage) -> bool:
    """Tell whether a candidate would come to supersede itself, by this plan and what is stored."""
    seen: set[str] = set()
    todo = [action.id]
    while todo and len(seen) < MOST_STEPS:
        id_ = todo.pop()
        if id_ == action.to:
            return True
        if id_ not in seen:
            seen.add(id_)
            todo += lineage.as_proposed.superseded_by.get(id_, ())
            todo += [replaced[id_]] if id_ in replaced else []
    return bool(todo)
