"""`memtool promote`: what sessions taught, as memories."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from memtool.authoring import write
from memtool.errors import MemtoolError
from memtool.memory.changes import stem
from memtool.sessions import consent, findings, manager, model, store
from memtool.sessions import promote as promotion
from memtool.sessions.model import Finding, Head
from memtool.sessions.promote import Judged, Made, judge, note_waiting
from memtool.store import files, usage_log
from memtool.store.context import Context
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from memtool.authoring.write import Repeats

MOST_AT_ONCE = 100
"""Memories of one run: more at a time is nothing that a person reads."""


class FindingRow(Value):
    """A finding as the list shows it. `why` is what it lacks, or what became of it."""

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


class Promoted(Value):
    """All findings that were looked at, and the memories that were made of them."""

    json_fields = "preset findings memories commit dry_run"

    preset: str
    findings: tuple[FindingRow, ...]
    memories: tuple[Made, ...] = ()
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
    why: str = "",
    dismissed: bool = False,
    reopen: tuple[str, ...] = (),
    preset: Literal["", "conservative", "balanced", "aggressive"] = "",
    auto: bool = False,
    commit: bool = False,
    dry_run: bool = False,
) -> Promoted:
    """Make candidate memories of what sessions taught, as far as the evidence suffices.

    A finding is one statement with the messages that back it: what a person decided, wished or
    warned of, a command that failed and what resolved it. Its signals give points: a person's
    intent 5, a pin 5, two or more sessions 2, an error that was resolved 2, two or more agents 1,
    an importance of 0.7 or more 1. The preset says how many it needs: conservative 4 points,
    importance 0.4 and 50 characters; balanced 3, 0.25 and 30; aggressive 2, 0.15 and 20. What a
    person stated as a rule or asked to keep qualifies whatever its length.

    What qualifies goes through the same gate as memtool new, with session:ID#N as its sources, and
    starts as a candidate, or pinned where a person asked for that ("Please pin this: …"). A memory
    that says it already is strengthened instead. What was promoted and then forgotten is not
    promoted again. memtool why ID leads back to the messages. With the user's own setting
    capture.promote each session that ends is promoted so: candidates only, and no commit.

    What is worth nothing is dismissed: it is not proposed again, nor are the same words of another
    session. That stays in this clone, and goes with its session.

    Example:
        memtool promote --list
        memtool promote --commit
        memtool promote --finding f-3f2a9c41b7d0
        memtool promote --dismiss f-3f2a9c41b7d0 --why "it held for that day only"

    Args:
        session: only the findings of this session, by its id or the beginning of it
        list: show every finding with its points and what it lacks, promote nothing
        finding: promote this finding, whatever its points; may be repeated
        dismiss: never propose this finding again; may be repeated
        why: the reason for dismissing
        dismissed: show the findings that were dismissed, with --list beside the others
        reopen: take back that this finding was dismissed; may be repeated
        preset: how much evidence is needed, by default the setting promote.preset
        auto: as an automatic run does it: nothing while capture.auto is off, and of the memories
            that are there only candidates are strengthened
        commit: commit the memories, also those that an earlier promotion left uncommitted, and
            nothing else
        dry_run: say what would be promoted, write nothing
    """
    if dismiss or reopen:
        _refuse_both(dismiss, reopen, others=bool(finding or auto or commit or list or dismissed))
        return _set_aside(context, session, dismiss, reopen, why, dry_run=dry_run)
    if why:
        raise MemtoolError("a reason goes with dismissing", hint='--dismiss ID --why "REASON"')
    is_last = auto and bool(session) and consent.is_promoting(context)
    before = len(context.notes)
    try:
        done = _promoted(
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
        new = [one.id for one in done.memories if one.is_new]
        told = [f"candidates to look at: {', '.join(new)}"] if new else []
        manager.note(
            context, session, "; ".join([*told, *context.notes[before:]]) or "no candidate"
        )
        manager.go_on(context, session)
    is_whole = not done.is_list or (list and dismissed)
    return done if is_whole else _shown(context, done, dismissed=dismissed)


def _shown(context: Context, done: Promoted, *, dismissed: bool) -> Promoted:
    """Return a list without what was dismissed, or with that alone."""
    rows = [one for one in done.findings if one.dismissed == dismissed]
    hidden = len(done.findings) - len(rows)
    if dismissed and not rows:
        context.notes.append("nothing was dismissed")
    if hidden and not dismissed:
        what = "finding was" if hidden == 1 else "findings were"
        context.notes.append(f"{hidden} {what} dismissed; memtool promote --dismissed shows them")
    return done.replace(findings=tuple(rows))


def _refuse_both(dismiss: tuple[str, ...], reopen: tuple[str, ...], *, others: bool) -> None:
    """Raise MemtoolError where more is asked for than to dismiss, or to take that back."""
    if others or (dismiss and reopen):
        raise MemtoolError(
            "to dismiss findings, and to take that back, each goes alone",
            hint='memtool promote --dismiss ID --why "REASON", or memtool promote --reopen ID',
        )


def _set_aside(
    context: Context,
    session: str,
    dismiss: tuple[str, ...],
    reopen: tuple[str, ...],
    why: str,
    *,
    dry_run: bool,
) -> Promoted:
    """Dismiss findings, or take that back. Raises MemtoolError where one cannot be."""
    reason = write.one_line(context, why)
    sessions, heads, read = _read(context, session, is_kept=False, with_model=False)
    chosen = _meant(read, dismiss or reopen)
    name = context.settings.text("promote.preset")
    judged = judge(context, sessions, heads, read, model.PRESETS[name])
    meant = [one for one in judged if one.finding.id in chosen]
    for one in meant:
        if dismiss and one.memory:
            raise MemtoolError(
                f"{one.finding.id} is the memory {one.memory}",
                hint=f'memtool forget {one.memory} --why "REASON"',
                code="promoted",
            )
        if bool(one.dismissals) == bool(dismiss):
            state = one.lack if dismiss else "not dismissed"
            raise MemtoolError(
                f"{one.finding.id} is {state}",
                hint=f"memtool promote --reopen {one.finding.id}"
                if dismiss
                else "memtool promote --dismissed shows what is",
                code="dismissed",
            )
    if not dry_run:
        if dismiss:
            findings.dismiss(sessions, [one.finding for one in meant], reason, context.clock.now)
        else:
            findings.reopen(sessions, [gone for one in meant for gone in one.dismissals])
        usage_log.tell(context, "dismiss" if dismiss else "reopen", sorted(chosen))
        judged = judge(context, sessions, heads, read, model.PRESETS[name])
        promotion.count(context, sessions)
    rows = [_row(one) for one in judged if one.finding.id in chosen]
    return Promoted(name, tuple(rows), dry_run=dry_run, is_list=True)


def _read(
    context: Context, session: str, *, is_kept: bool, with_model: bool
) -> tuple[store.Sessions, list[Head], dict[str, Finding]]:
    """Return the sessions of this clone, and the findings of all of them or of one."""
    if session.startswith("f-"):
        raise MemtoolError(
            f"{session} is no session, but may be a finding",
            hint=f"memtool promote --finding {session}; memtool promote --list shows every finding",
            code="no-session",
        )
    sessions = store.opened(context)
    heads, wrong = sessions.heads()
    context.notes.extend(f"passed over: {one}" for one in wrong)
    ids = [sessions.head(sessions.find(session)).id] if session else [head.id for head in heads]
    read = findings.learned(context, sessions, ids, is_kept=is_kept, with_model=with_model)
    return sessions, heads, read


def _promoted(
    context: Context,
    session: str,
    finding: tuple[str, ...],
    preset: str,
    *,
    list: bool,
    auto: bool,
    commit: bool,
    dry_run: bool,
) -> Promoted:
    """Do as `promote` says."""
    name = preset or context.settings.text("promote.preset")
    if auto and not consent.is_capturing(context):
        context.notes.append("automatic promotion is off; memtool auto on switches it on again")
        return Promoted(name, (), dry_run=dry_run, is_list=list)
    writes = not (list or dry_run)
    if not list:
        write.prepare(context, dry_run=dry_run)
    # What somebody names is known already; nothing is read anew, or written, only to be refused.
    is_kept = not (dry_run or finding)
    sessions, heads, read = _read(
        context, session, is_kept=is_kept, with_model=writes and not finding
    )
    chosen = _meant(read, finding)
    if not read:
        context.notes.append(
            "no session has taught anything yet; memtool capture reads transcripts"
        )
    done = None
    with files.locked(context.repository.cache_dir, "promote.lock", is_needed=writes):
        judged = judge(context, sessions, heads, read, model.PRESETS[name], chosen)
        if list:
            return Promoted(name, tuple(map(_row, judged)), dry_run=dry_run, is_list=True)
        _refuse_settled(judged, chosen)
        wanted = [one for one in judged if not one.lack and one.finding.id in (chosen or read)]
        if len(wanted) > MOST_AT_ONCE:
            context.notes.append(f"{len(wanted) - MOST_AT_ONCE} more qualify: run it again")
        wanted = wanted[:MOST_AT_ONCE]
        named = [one.finding.id for one in wanted]
        with usage_log.act(context, "promote", *named, dry_run=dry_run or not wanted) as act:
            repeats: Repeats = "leave" if auto else "strengthen"
            made = _made(context, sessions, wanted, repeats, dry_run=dry_run)
            if commit and not dry_run:
                done = _committed(context, sessions, tuple(made.values()))
            act.subjects = tuple(name for one in made.values() for name in (one.finding, one.id))
        if writes:
            _note_denied(context, judged, made)
        if made and writes and (session or preset):  # others wait as well
            promotion.count(context, sessions)
        elif writes and not (session or preset):
            left = sum(not one.lack and one.finding.id not in made for one in judged)
            note_waiting(context.repository.cache_dir, left)
    rows = tuple(_row(one, made.get(one.finding.id)) for one in judged)
    return Promoted(name, rows, tuple(made.values()), done, dry_run)


def _made(
    context: Context,
    sessions: store.Sessions,
    wanted: Sequence[Judged],
    repeats: Repeats,
    *,
    dry_run: bool,
) -> dict[str, Made]:
    """Write the memory of each finding; return them by finding, without those that are refused.

    Raises:
        MemtoolError: the disk refuses; the message names those that are written.
    """
    made: dict[str, Made] = {}
    for one in promotion.by_moment(wanted):
        with files.naming([] if dry_run else [before.id for before in made.values()]):
            candidate = promotion.make(context, sessions, one, repeats, dry_run=dry_run)
        if candidate is not None:
            made[one.finding.id] = candidate
    return made


def _committed(context: Context, sessions: store.Sessions, made: tuple[Made, ...]) -> str | None:
    """Commit what was made, and what an earlier run made and no commit has; None for nothing."""
    new = {
        stem(path): path
        for letters, path in context.repository.git.status(context.directory)
        if letters in ("??", " A")
    }
    ids = {one.id for one in made}
    rows = {row.memory: row for row in promotion.promotions(sessions) if row.is_new} if new else {}
    left = [
        Made(rows[id_].finding, id_, path, is_new=True)
        for id_, path in new.items()
        if id_ in rows and id_ not in ids
    ]
    if left:
        names = ", ".join(one.id for one in left)
        context.notes.append(f"promoted before, and committed now: {names}")
    return promotion.commit(context, (*made, *left)) if made or left else None


def _note_denied(context: Context, judged: Sequence[Judged], made: Mapping[str, Made]) -> None:
    """Log what was denied, and note what contradicts a living memory."""
    for one in judged:
        if one.blocker:
            usage_log.tell(context, "deny", (one.finding.id, one.blocker), one.lack)
    new = {one.id for one in made.values() if one.is_new}
    if new:
        promotion.note_opposed(context, new)


def render(promoted: Promoted) -> str:
    """Return every finding where they are listed, else the path of each memory."""
    if promoted.is_list:
        return "\n".join(map(_finding_text, promoted.findings))
    rows = []
    contents = {row.id: row.content for row in promoted.findings}
    for made in promoted.memories if promoted.dry_run else ():
        what = "would be new" if made.is_new else f"would strengthen {made.id}"
        rows.append(f"{made.finding}  {what}: {contents[made.finding]}")
    if not promoted.dry_run:
        rows = list(dict.fromkeys(made.path for made in promoted.memories))
    return "\n".join(rows) or "nothing to promote; memtool promote --list shows what is lacking"


def _finding_text(row: FindingRow) -> str:
    named = ", ".join(row.signals) or "no signal"
    head = f"{row.id}  {row.category}  {row.points} points ({named})"
    where = f"{row.session}#{','.join(map(str, row.messages))}"
    return f"{head}\n  {row.content}\n  {where}: {row.why or 'qualifies'}"


def _meant(read: Mapping[str, Finding], wanted: tuple[str, ...]) -> frozenset[str]:
    """Return the ids of findings that are named, each by its id or the beginning of it.

    Raises:
        MemtoolError: one names none, or several.
    """
    found = set()
    for name in wanted:
        near = [id_ for id_ in read if id_.startswith(name)] if name else []
        if len(near) != 1:
            raise MemtoolError(
                f"{len(near)} findings begin with {name}"
                if near
                else f"there is no finding {name!r}",
                hint="memtool promote --list shows every finding",
                code="no-finding",
            )
        found.update(near)
    return frozenset(found)


def _refuse_settled(judged: Sequence[Judged], chosen: frozenset[str]) -> None:
    """Raise MemtoolError where a finding that is named was promoted or denied, and say why."""
    for one in judged:
        if one.finding.id in chosen and one.lack:
            raise MemtoolError(
                f"{one.finding.id} is not promoted: {one.lack}",
                hint=f"memtool promote --reopen {one.finding.id}"
                if one.dismissals
                else f"memtool restore {one.blocker}, or memtool remember says it anew"
                if one.blocker
                else f"memtool show {one.memory}",
                code="denied" if one.blocker or one.dismissals else "promoted",
            )


def _row(judged: Judged, made: Made | None = None) -> FindingRow:
    one = judged.finding
    why = judged.lack
    if made is not None:
        why = f"promoted: {made.id}" if made.is_new else f"{made.id} says so and was strengthened"
    return FindingRow(
        id=one.id,
        content=one.content,
        category=one.category,
        points=judged.points,
        signals=judged.signals,
        session=one.session,
        promoted=bool(judged.memory or made),
        why=why,
        memory=judged.memory or (made.id if made else ""),
        confidence=one.confidence,
        importance=one.importance,
        messages=one.messages,
        files=one.files,
        tags=one.tags,
        dismissed=bool(judged.dismissals),
    )
