"""`memtool promote`: findings of sessions and of the history as memories."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

from memtool.authoring import write
from memtool.commands._layout import Layout, shorten_commit
from memtool.errors import MemtoolError
from memtool.memory.changes import id_from_path
from memtool.sessions import consent, evidence, findings, manager, model, store
from memtool.sessions import promote as promotion
from memtool.sessions.model import Finding, Session
from memtool.sessions.promote import (
    JudgedFinding,
    PromotedMemory,
    count_lessons,
    judge,
    note_waiting,
)
from memtool.store import files, usage_log
from memtool.store.context import Context
from memtool.value import Value, format_count

TYPE_CHECKING = False
if TYPE_CHECKING:
    from memtool.authoring.write import Repeats

GIT = "git"
"""Instead of a session: the findings of commits."""
MAX_MEMORIES_PER_RUN = 100
"""Memories of one run: a person would not read more."""


class FindingRow(Value):
    """A finding in the list. `why` is the evidence that it lacks, or what became of it."""

    id: str
    content: str
    category: str
    points: int
    signals: tuple[str, ...]
    session: str
    promoted: bool
    why: str
    memory: str
    confidence: str
    importance: float
    messages: tuple[int, ...]
    files: tuple[str, ...]
    tags: tuple[str, ...]
    dismissed: bool = False
    title: str = ""
    commit: str = ""
    """The commit that states it; empty if it is from a session."""
    reader: str = model.BY_RULES
    """Who found it: `rules` or `model`."""
    quote: str = ""
    """Of a question for a reviewer: the part of the message around it, empty if that is all."""


class PromoteResult(Value):
    """All findings that were judged, and the memories made from them."""

    json_fields = "preset findings memories commit dry_run"

    preset: str
    findings: tuple[FindingRow, ...]
    memories: tuple[PromotedMemory, ...] = ()
    commit: str | None = None
    dry_run: bool = False
    is_list: bool = False


def promote(
    context: Context,
    session: str = "",
    *,
    list: bool = False,
    finding: tuple[str, ...] = (),
    dismiss: tuple[str, ...] = (),
    reason: str = "",
    dismissed: bool = False,
    reopen: tuple[str, ...] = (),
    preset: Literal["", "conservative", "balanced", "aggressive"] = "",
    auto: bool = False,
    commit: bool = False,
    dry_run: bool = False,
) -> PromoteResult:
    """Turn what sessions taught into candidates: memories that a user must confirm.

    Points of a lesson:
        5   the user stated it, or asked to keep it
        2   two or more sessions; two or more agents
        1   a failure that was fixed; an importance of 0.7 or more

    A lesson needs 4 points (conservative), 3 (balanced) or 2 (aggressive), and some length. If a
    memory says it already, that memory gains importance instead. A dismissed lesson is never
    proposed again in this clone. What memtool import git found has no points: only --finding
    promotes it.

    Example:
        memtool promote --list
        memtool promote --commit
        memtool promote --dismiss f-3f2a --reason "it held for that day only"

    Args:
        session: only lessons of this session, by id or its beginning; git: of commits
        list: list the lessons and their points, promote nothing
        finding: promote this one, whatever its points; may be repeated
        dismiss: never propose this one again; may be repeated
        reason: the reason for dismissing
        dismissed: list the dismissed lessons
        reopen: take back a dismissal; may be repeated
        preset: conservative, balanced or aggressive
        auto: only do what an automatic run may do
        commit: commit promoted memories only
        dry_run: show what would be promoted, write nothing
    """
    if dismiss or reopen:
        _refuse_both(
            dismiss, reopen, has_others=bool(finding or auto or commit or list or dismissed)
        )
        return _dismiss_or_reopen(context, session, dismiss, reopen, reason, dry_run=dry_run)
    if reason:
        raise MemtoolError(
            "--reason needs --dismiss", hint='memtool promote --dismiss ID --reason "REASON"'
        )
    is_last = auto and bool(session) and consent.is_promoting(context)
    before = len(context.notes)
    try:
        done = _promote(
            context,
            session,
            finding,
            preset,
            list=list or dismissed,
            auto=auto,
            commit=commit,
            dry_run=dry_run,
        )
    except MemtoolError as error:
        if is_last:
            manager.note(context, session, f"nothing was promoted: {error.message}")
        raise
    if is_last:
        new = [memory.id for memory in done.memories if memory.is_new]
        summary = [f"candidates to look at: {', '.join(new)}"] if new else []
        manager.note(
            context, session, "; ".join([*summary, *context.notes[before:]]) or "no candidate"
        )
        manager.go_on(context, session)
    is_whole = not done.is_list or (list and dismissed)
    return done if is_whole else _filter_dismissed(context, done, dismissed=dismissed)


def _filter_dismissed(context: Context, done: PromoteResult, *, dismissed: bool) -> PromoteResult:
    """Return the result without dismissed findings, or with only those."""
    rows = [row for row in done.findings if row.dismissed == dismissed]
    hidden = len(done.findings) - len(rows)
    if dismissed and not rows:
        context.notes.append("nothing was dismissed")
    if hidden and not dismissed:
        what = "lesson was" if hidden == 1 else "lessons were"
        context.notes.append(f"{hidden} {what} dismissed: memtool promote --dismissed")
    return done.replace(findings=tuple(rows))


def _refuse_both(dismiss: tuple[str, ...], reopen: tuple[str, ...], *, has_others: bool) -> None:
    """Raise MemtoolError if --dismiss or --reopen is combined with another action."""
    if has_others or (dismiss and reopen):
        raise MemtoolError(
            "--dismiss and --reopen exclude each other and all other options",
            hint='memtool promote --dismiss ID --reason "REASON"\nmemtool promote --reopen ID',
        )


def _dismiss_or_reopen(
    context: Context,
    session: str,
    dismiss: tuple[str, ...],
    reopen: tuple[str, ...],
    reason: str,
    *,
    dry_run: bool,
) -> PromoteResult:
    """Dismiss findings, or reopen them. Raises MemtoolError if one cannot be."""
    reason = write.to_one_line(context, reason)
    sessions, heads, read = _read_findings(context, session, is_kept=False, with_model=False)
    chosen = _resolve_findings(read, dismiss or reopen)
    name = context.settings.text("promote.preset")
    judged = judge(context, sessions, heads, read, model.PRESETS[name])
    chosen_judgements = [judgement for judgement in judged if judgement.finding.id in chosen]
    for judgement in chosen_judgements:
        if dismiss and judgement.memory:
            raise MemtoolError(
                f"cannot dismiss: {judgement.finding.id} was promoted to {judgement.memory}",
                hint=f'memtool forget {judgement.memory} --reason "REASON"',
                code="promoted",
            )
        if bool(judgement.dismissals) == bool(dismiss):
            state = judgement.lack if dismiss else "not dismissed"
            raise MemtoolError(
                f"{judgement.finding.id} is {state}",
                hint=f"memtool promote --reopen {judgement.finding.id}"
                if dismiss
                else "memtool promote --dismissed",
                code="dismissed",
            )
    if not dry_run:
        if dismiss:
            findings.dismiss(
                sessions,
                [judgement.finding for judgement in chosen_judgements],
                reason,
                context.clock.now,
            )
        else:
            findings.reopen(
                sessions, [gone for judgement in chosen_judgements for gone in judgement.dismissals]
            )
        usage_log.log_done(context, "dismiss" if dismiss else "reopen", sorted(chosen))
        judged = judge(context, sessions, heads, read, model.PRESETS[name])
        promotion.count(context, sessions)
    rows = [_build_row(judgement) for judgement in judged if judgement.finding.id in chosen]
    return PromoteResult(name, tuple(rows), dry_run=dry_run, is_list=True)


def _read_findings(
    context: Context, session: str, *, is_kept: bool, with_model: bool
) -> tuple[store.Sessions, list[Session], dict[str, Finding]]:
    """Return the sessions of this clone, and the findings of all of them or of one."""
    sessions = store.open_sessions(context)
    heads, failures = sessions.heads()
    context.notes.extend(f"passed over: {reason}" for reason in failures)
    is_lesson = session.startswith("f-")
    ids = [] if session == GIT else [head.id for head in heads]
    if session and not is_lesson and session != GIT:
        ids = [sessions.head(sessions.find(session)).id]
    read = findings.learn_all(context, sessions, ids, is_kept=is_kept, with_model=with_model)
    if is_lesson or session in ("", GIT):
        offered = findings.read_learned(sessions, findings.HISTORY).findings
        read |= {finding.id: finding for finding in offered}
    if is_lesson:
        is_known = any(id_.startswith(session) for id_ in read)
        raise MemtoolError(
            f"cannot promote: {session} is a lesson, not a session"
            if is_known
            else f"cannot promote: no lesson begins with {session}",
            hint=f"memtool promote --finding {session}" if is_known else "memtool promote --list",
            code="no-session",
        )
    return sessions, heads, read


def _promote(
    context: Context,
    session: str,
    finding: tuple[str, ...],
    preset: str,
    *,
    list: bool,
    auto: bool,
    commit: bool,
    dry_run: bool,
) -> PromoteResult:
    name = preset or context.settings.text("promote.preset")
    if auto and not consent.is_capturing(context):
        context.notes.append("automatic promotion is off: memtool auto on")
        return PromoteResult(name, (), dry_run=dry_run, is_list=list)
    writes = not (list or dry_run)
    if not list:
        write.prepare(context, dry_run=dry_run)
    # A named finding was read before; do not read or write again only to refuse it.
    is_kept = not (dry_run or finding)
    sessions, heads, read = _read_findings(
        context, session, is_kept=is_kept, with_model=writes and not finding
    )
    chosen = _resolve_findings(read, finding)
    if not read:
        context.notes.append("no lessons yet; to read a transcript: memtool capture PATH")
    done = None
    with files.locked(context.repository.cache_dir, "promote.lock", is_needed=writes):
        judged = judge(context, sessions, heads, read, model.PRESETS[name], chosen)
        if list:
            shown = _without_lone(context, judged, session)
            questions = [judgement.finding for judgement in shown if judgement.is_question]
            quotes = evidence.quote_messages(sessions, questions)
            rows = tuple(
                _build_row(judgement).replace(quote=quotes.get(judgement.finding.id, ""))
                for judgement in shown
            )
            return PromoteResult(name, rows, dry_run=dry_run, is_list=True)
        _refuse_settled(judged, chosen)
        qualifying = [
            judgement
            for judgement in judged
            if not judgement.lack and judgement.finding.id in (chosen or read)
        ]
        if len(qualifying) > MAX_MEMORIES_PER_RUN:
            context.notes.append(
                f"{len(qualifying) - MAX_MEMORIES_PER_RUN} more qualify: run the command again"
            )
        qualifying = qualifying[:MAX_MEMORIES_PER_RUN]
        finding_ids = [judgement.finding.id for judgement in qualifying]
        with usage_log.audit(
            context, "promote", *finding_ids, dry_run=dry_run or not qualifying
        ) as act:
            repeats: Repeats = "leave" if auto else "strengthen"
            memories = _write_memories(context, sessions, qualifying, repeats, dry_run=dry_run)
            if commit and not dry_run:
                done = _commit_memories(context, sessions, tuple(memories.values()))
            act.subjects = tuple(
                name for memory in memories.values() for name in (memory.finding, memory.id)
            )
        if writes:
            _note_denied(context, judged, memories)
        if memories and writes and (session or preset):  # other findings wait, too
            promotion.count(context, sessions)
        elif writes and not (session or preset):
            lessons = count_lessons(judged, promoted=memories)
            note_waiting(context.repository.cache_dir, lessons)
    rows = tuple(_build_row(judgement, memories.get(judgement.finding.id)) for judgement in judged)
    return PromoteResult(name, rows, tuple(memories.values()), done, dry_run)


def _without_lone(
    context: Context, judged: Sequence[JudgedFinding], session: str
) -> Sequence[JudgedFinding]:
    """Leave out the traces of one session alone, unless a setting or a session asks for them."""
    if session or context.settings.text("capture.traces") == "on":
        return judged
    shown = [row for row in judged if not row.is_lone or row.memory or row.dismissals]
    if hidden := len(judged) - len(shown):
        what = "error was resolved" if hidden == 1 else "errors were resolved"
        context.notes.append(
            f"{hidden} {what} in one session alone: memtool config capture.traces on"
        )
    return shown


def _write_memories(
    context: Context,
    sessions: store.Sessions,
    qualifying: Sequence[JudgedFinding],
    repeats: Repeats,
    *,
    dry_run: bool,
) -> dict[str, PromotedMemory]:
    """Write the memory of each finding; return them by id of the finding, without refused ones.

    Raises:
        MemtoolError: writing failed; the message names the memories that were written.
    """
    memories: dict[str, PromotedMemory] = {}
    for judgement in promotion.sort_by_moment(qualifying):
        with files.reporting_done([] if dry_run else [before.id for before in memories.values()]):
            candidate = promotion.make(context, sessions, judgement, repeats, dry_run=dry_run)
        if candidate is not None:
            memories[judgement.finding.id] = candidate
    return memories


def _commit_memories(
    context: Context, sessions: store.Sessions, memories: tuple[PromotedMemory, ...]
) -> str | None:
    """Commit the new memories, and uncommitted ones of an earlier run; None if there are none."""
    new = {
        id_from_path(path): path
        for letters, path in context.repository.git.status(context.directory)
        if letters in ("??", " A")
    }
    ids = {memory.id for memory in memories}
    rows = (
        {row.memory: row for row in promotion.read_promotions(sessions) if row.is_new}
        if new
        else {}
    )
    uncommitted = [
        PromotedMemory(rows[id_].finding, id_, path, is_new=True)
        for id_, path in new.items()
        if id_ in rows and id_ not in ids
    ]
    if uncommitted:
        names = ", ".join(memory.id for memory in uncommitted)
        context.notes.append(f"promoted before, and committed now: {names}")
    return promotion.commit(context, (*memories, *uncommitted)) if memories or uncommitted else None


def _note_denied(
    context: Context, judged: Sequence[JudgedFinding], memories: Mapping[str, PromotedMemory]
) -> None:
    """Record denied findings in the audit, and note what contradicts a living memory."""
    for judgement in judged:
        if judgement.blocker:
            usage_log.log_done(
                context, "deny", (judgement.finding.id, judgement.blocker), judgement.lack
            )
    new = {memory.id for memory in memories.values() if memory.is_new}
    if new:
        promotion.note_contradictions(context, new)


def render(result: PromoteResult, layout: Layout) -> str:
    """Return the lessons of a list, else the path of each memory."""
    if result.is_list:
        return "\n".join(_format_lessons(result.findings, layout))
    contents = {row.id: row.content for row in result.findings}
    short = model.shorten_ids([row.id for row in result.findings])
    for memory in result.memories:
        if result.dry_run:
            what = "would be a new candidate" if memory.is_new else "would strengthen"
        else:
            what = "new candidate" if memory.is_new else "strengthens"
        id_ = "" if result.dry_run and memory.is_new else f" {layout.short(memory.id)}"
        layout.report(f"{short[memory.finding]}: {what}{id_}  {contents[memory.finding]}")
    if not result.memories:
        layout.report("nothing to promote; memtool promote --list shows what is lacking")
    if result.dry_run:
        return ""
    return "\n".join(dict.fromkeys(memory.path for memory in result.memories))


SIGNAL_WORDS = {
    model.INTENT: "the user said it",
    model.PIN: "the user asked to pin it",
    model.TWO_SESSIONS: "in several sessions",
    model.RESOLVED: "an error that was resolved",
    model.TWO_AGENTS: "to several agents",
    model.IMPORTANT: "important",
}
"""Each reason to promote a finding, as the list shows it."""


def _format_lessons(rows: Sequence[FindingRow], layout: Layout) -> Iterator[str]:
    """Yield the lessons that can be promoted, then those that cannot, each text once."""
    short = model.shorten_ids([row.id for row in rows])
    groups: dict[tuple[str, str], list[FindingRow]] = {}
    for row in rows:
        groups.setdefault((row.content, row.why), []).append(row)
    ready = [group for (_content, why), group in groups.items() if not why]
    waiting = [group for (_content, why), group in groups.items() if why]
    if ready:
        can = (
            "1 lesson can become a candidate"
            if len(ready) == 1
            else (f"{len(ready):,} lessons can become candidates")
        )
        yield f"{can}. All of them: memtool promote --commit"
    for group in (*ready, *waiting):
        yield from _format_lesson(group, short, layout)
    if ready:
        first = short[ready[0][0].id]
        yield from layout.wrap(
            f"One of them: memtool promote --finding {first}. "
            f"Never: memtool promote --dismiss {first}"
        )


def _format_lesson(
    rows: Sequence[FindingRow], short: Mapping[str, str], layout: Layout
) -> Iterator[str]:
    """Yield one lesson of one or several sessions: id, text, evidence, where it is from."""
    first = rows[0]
    label = f"{short[first.id]}  "
    margin = " " * len(label)
    text = f"{first.title}: {first.content}" if first.commit else first.content
    for number, line in enumerate(layout.wrap(text, margin)):
        yield label + line.lstrip() if not number else line
    if first.commit:
        yield from layout.wrap(f"{first.category}, commit {shorten_commit(first.commit)}", margin)
    else:
        named = [SIGNAL_WORDS.get(name, name) for name in first.signals]
        points = format_count(first.points, "point")
        readers = " and the ".join(sorted({row.reader for row in rows}, reverse=True))
        reasons = ", ".join(named) or "no evidence yet"
        line = f"{first.category}, found by the {readers}, {points}: {reasons}"
        yield from layout.wrap(line, margin)
        where = [f"{row.session}#{','.join(map(str, row.messages))}" for row in rows]
        yield from layout.wrap(", ".join(where), margin)
        if quote := next(filter(None, (row.quote for row in rows)), ""):
            yield from layout.wrap(f'in the message: "{quote}"', margin)
    if first.why:
        yield from layout.wrap(layout.shorten(first.why), margin)


def _resolve_findings(read: Mapping[str, Finding], wanted: tuple[str, ...]) -> frozenset[str]:
    """Return the ids of the named findings, each given by its id or a prefix.

    Raises:
        MemtoolError: a name fits no finding, or several.
    """
    ids = set()
    for name in wanted:
        matches = [id_ for id_ in read if id_.startswith(name)] if name else []
        if len(matches) != 1:
            raise MemtoolError(
                f"cannot promote: {len(matches) or 'no'} "
                f"{'lessons begin' if len(matches) > 1 else 'lesson begins'} with {name}",
                hint="memtool promote --list",
                code="no-finding",
            )
        ids.update(matches)
    return frozenset(ids)


def _refuse_settled(judged: Sequence[JudgedFinding], chosen: frozenset[str]) -> None:
    """Raise MemtoolError if a named finding was already promoted or denied."""
    for judgement in judged:
        if judgement.finding.id in chosen and judgement.lack:
            raise MemtoolError(
                f"cannot promote {judgement.finding.id}: {judgement.lack}",
                hint=f"memtool promote --reopen {judgement.finding.id}"
                if judgement.dismissals
                else f"memtool restore {judgement.blocker}\nor again: memtool remember TEXT"
                if judgement.blocker
                else f"memtool show {judgement.memory}",
                code="denied" if judgement.blocker or judgement.dismissals else "promoted",
            )


def _build_row(judged: JudgedFinding, memory: PromotedMemory | None = None) -> FindingRow:
    finding = judged.finding
    why = judged.lack
    if memory is not None:
        why = (
            f"promoted: {memory.id}"
            if memory.is_new
            else f"{memory.id} says so and was strengthened"
        )
    return FindingRow(
        id=finding.id,
        content=finding.content,
        category=finding.category,
        points=judged.points,
        signals=judged.signals,
        session="" if finding.field("commit") else finding.session,
        promoted=bool(judged.memory or memory),
        why=why,
        memory=judged.memory or (memory.id if memory else ""),
        confidence=finding.confidence,
        importance=finding.importance,
        messages=finding.messages,
        files=finding.files,
        tags=finding.tags,
        dismissed=bool(judged.dismissals),
        title=finding.title,
        commit=finding.field("commit"),
        reader=finding.reader,
    )
