"""Findings: statements extracted from sessions by rules or a model, and stored with each session.

This module owns the journal of findings, and when and by which reader a session is read. The
journal only grows: the last row of a finding counts, and a finding that later messages contradict
is withdrawn by a row of its own. Everything is derived from the messages, so a lost journal costs
only a model's wording. Dismissals by a person are rows of the same journal, and are deleted with
the session.

Findings of the repository's own history are in a journal beside the sessions. No message proves
them, so they are offered once, and only a person promotes them.
"""

from __future__ import annotations

import os
from contextlib import suppress
from functools import partial

from memtool.errors import MemtoolError
from memtool.memory import timestamps
from memtool.sessions import journal
from memtool.sessions.journal import Writer
from memtool.sessions.model import Finding, Message, compute_fingerprint, read_finding, read_row
from memtool.sessions.store import FINDINGS, Sessions, clean_texts
from memtool.store.context import Context
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import Any

    from memtool.sessions.extract.llm import Model
    from memtool.sessions.model import Session

    Extract = Callable[[Sequence[Message], str, str], tuple[Finding, ...]]

RULES = "rules-6"
"""Version of the rules. It changes whenever the same messages would give other findings."""
REREAD_DIVISOR = 20
"""A session is read again once one part in this many is new."""
MAX_FINDINGS = 10_000
"""Maximum findings read from one session."""
HISTORY = "git history"
"""What findings of commits have for a session; no session can be called so."""
HISTORY_FINDINGS = "history.jsonl"
REOPENED = "reopened"
"""Key of a row that takes back a dismissal; its value is the finding's id."""


class Dismissal(Value):
    """A finding that a person does not want to see again: its id and the fingerprint of its words.

    `moment` is the second of the dismissal; `reason` may be empty.
    """

    dismissed: str
    fingerprint: str
    session: str
    reason: str
    moment: int

    @property
    def text(self) -> str:
        """Day and reason of the dismissal, as lists show it."""
        day = f"dismissed on {timestamps.format_date(self.moment)}"
        return f"{day}: {self.reason}" if self.reason else day


class LearnedFindings(Value):
    """The findings of a session. `through` is the number of the last message that was read.

    `by` names the reader: `RULES`, or a model's command.
    """

    findings: tuple[Finding, ...]
    through: int = 0
    by: str = ""
    dismissals: tuple[Dismissal, ...] = ()

    def dismissals_of(self, finding: Finding) -> tuple[Dismissal, ...]:
        """Return the dismissals of a finding, including those of the same words elsewhere."""
        if not self.dismissals:
            return ()
        mark = compute_fingerprint(finding.content)
        return tuple(
            gone
            for gone in self.dismissals
            if finding.id == gone.dismissed or mark == gone.fingerprint
        )


def find_journal(sessions: Sessions, id: str) -> str:
    """Return the path of a session's findings, or of those of the history. Raises MemtoolError."""
    if id == HISTORY:
        return os.path.join(sessions.directory, HISTORY_FINDINGS)
    return sessions.path(id, FINDINGS)


def read_learned(sessions: Sessions, id: str) -> LearnedFindings:
    """Return the stored findings of a session. Raises MemtoolError if they cannot be read."""
    rows, _torn = journal.read(find_journal(sessions, id))
    return _parse_learned(rows, id)


def read_all_learned(sessions: Sessions, heads: Iterable[Session]) -> LearnedFindings:
    """Return all findings and dismissals of sessions and of the history.

    What cannot be read is skipped.
    """
    findings_by_id: dict[str, Finding] = {}
    gone: list[Dismissal] = []
    for id_ in (HISTORY, *(head.id for head in heads)):
        with suppress(MemtoolError):
            learned_here = read_learned(sessions, id_)
            findings_by_id |= {each.id: each for each in learned_here.findings}
            gone += learned_here.dismissals
    return LearnedFindings(tuple(findings_by_id.values()), dismissals=tuple(gone))


def offer(sessions: Sessions, findings: Iterable[Finding]) -> None:
    """Add findings of the history, all or none. Raises MemtoolError if they cannot be written."""
    with journal.explain_errors(sessions.directory, "written"):
        os.makedirs(sessions.directory, mode=journal.FOLDER_MODE, exist_ok=True)
    journal.append(find_journal(sessions, HISTORY), [finding.plain() for finding in findings])


def dismiss(sessions: Sessions, findings: Iterable[Finding], reason: str, moment: int) -> None:
    """Record that findings, and the same words in other sessions, are not to be proposed.

    Raises:
        MemtoolError: a journal cannot be written.
    """
    for finding in findings:
        row = Dismissal(
            finding.id, compute_fingerprint(finding.content), finding.session, reason, moment
        )
        journal.append(find_journal(sessions, finding.session), [row.plain()])


def reopen(sessions: Sessions, dismissals: Iterable[Dismissal]) -> None:
    """Take back dismissals. Raises MemtoolError if a journal cannot be written."""
    for dismissal in dismissals:
        row = {REOPENED: dismissal.dismissed, "session": dismissal.session}
        journal.append(find_journal(sessions, dismissal.session), [row])


def read_all_ever(sessions: Sessions, id: str) -> dict[str, Finding]:
    """Return all findings a session ever had, including withdrawn ones. Raises MemtoolError."""
    rows, _torn = journal.read(find_journal(sessions, id))
    return {finding.id: finding for finding in map(read_finding, rows) if finding is not None}


def learn(
    sessions: Sessions,
    id: str,
    extract: Extract | None = None,
    by: str = RULES,
    *,
    is_kept: bool = True,
) -> LearnedFindings:
    """Update the findings of a session and return them; `extract` defaults to the rules.

    Nothing is done if the same reader or a model has read all messages already, or if the settings
    switch findings off. Findings that are no longer extracted are withdrawn, including those of
    categories that are no longer wanted; those of a parent stay. `is_kept` false writes nothing.

    Raises:
        MemtoolError: the session does not exist, or cannot be read or written.
    """
    before = read_learned(sessions, id)
    last = sessions.read_last(id)
    head = sessions.head(id)
    by = reader_name(sessions, by)
    # Findings outlive the messages.
    if last is None or head.status == "pruned" or not sessions.is_extracting:
        return before
    if before.through >= last.number and (before.by == by or _is_better(before.by, by)):
        return before
    from memtool.sessions.extract import extraction  # imported late: it compiles many patterns

    extract = extract or extraction.extract
    messages, _torn = sessions.messages(id)
    read = messages[-extraction.MAX_MESSAGES :]
    first, through = read[0].number, read[-1].number
    extracted = extract(read, id, head.agent or head.host)
    made = {
        finding.id: finding
        for finding in extracted
        if finding.category in (sessions.categories or {finding.category})
    }
    clean = clean_texts(
        {text for finding in made.values() for text in list_texts(finding)}, sessions.allowed
    )
    made = {
        id_: finding
        for id_, finding in made.items()
        if all(clean[t] == t for t in list_texts(finding))
    }
    if not is_kept:
        rows = [finding.plain() for finding in before.findings]
        return _parse_learned(rows + _build_news(before, made, id, first), id).replace(
            through=through, by=by
        )
    with Writer(sessions.path(id, FINDINGS)) as writer:
        rows, _bad = journal.parse(writer.read_whole())
        now = _parse_learned(rows, id)
        if before.through < through <= now.through:
            return now  # another process has read it meanwhile
        news = [*_build_news(now, made, id, first), {"through": through, "by": by, "session": id}]
        writer.append(news)
    return _parse_learned(rows + news, id)


def is_due(sessions: Sessions, id: str) -> bool:
    """Return whether an open session has enough new messages to be read again.

    Every reading covers the whole session, so it is only worth it after a certain share is new.
    Commands that show findings update them anyway.

    Raises:
        MemtoolError: the session does not exist or cannot be read.
    """
    last = sessions.read_last(id)
    through = read_learned(sessions, id).through
    return (
        sessions.is_extracting
        and last is not None
        and last.number - through >= max(1, through // REREAD_DIVISOR)
    )


def _build_news(
    before: LearnedFindings, made: Mapping[str, Finding], id: str, first: int
) -> list[dict[str, Any]]:
    """Return the rows that update the findings.

    Findings of a parent stay, and so do those supported by messages before the first one read.
    """
    there = {finding.id: finding for finding in before.findings}
    gone = [
        finding.id
        for finding in there.values()
        if finding.session == id
        and finding.id not in made
        and min(finding.messages, default=0) >= first
    ]
    rows = [finding.plain() for finding in made.values() if there.get(finding.id) != finding]
    return rows + [{"withdrawn": id_} for id_ in gone]


def _is_better(before: str, by: str) -> bool:
    """Return whether a model has read the session: rules need not replace its wording."""
    model, _for, wanted = before.partition(_FOR)
    rules, _for, now = by.partition(_FOR)
    return rules == RULES and bool(model) and not model.startswith("rules-") and wanted == now


_FOR = " for "


def reader_name(sessions: Sessions, name: str) -> str:
    """Return a reader's name in the journal, with the wanted categories.

    With other categories it counts as another reader.
    """
    return f"{name}{_FOR}{', '.join(sessions.categories)}" if sessions.categories else name


def _parse_learned(rows: Iterable[Mapping[str, Any]], id: str) -> LearnedFindings:
    """Parse journal rows.

    A fork starts with its parent's rows, whose `through` does not count for the fork.
    """
    findings_by_id: dict[str, Finding] = {}
    gone: dict[str, Dismissal] = {}
    through, by = 0, ""
    for row in rows:
        if isinstance(row.get("withdrawn"), str):
            findings_by_id.pop(row["withdrawn"], None)
        elif type(row.get("through")) is int:
            if row.get("session") == id:
                through, by = row["through"], str(row.get("by", ""))
        elif isinstance(row.get(REOPENED), str):
            gone.pop(row[REOPENED], None)
        elif (dismissal := read_row(Dismissal, row)) is not None:
            gone[dismissal.dismissed] = dismissal
        elif (finding := read_finding(row)) is not None:
            findings_by_id[finding.id] = finding
    return LearnedFindings(
        tuple(findings_by_id.values())[:MAX_FINDINGS], through, by, tuple(gone.values())
    )


def list_texts(finding: Finding) -> tuple[str, ...]:
    """Return all texts of a finding, to be checked for secrets."""
    return (
        finding.content,
        finding.title,
        *finding.files,
        *finding.tags,
        *(text for _name, text in finding.fields),
    )


COMMAND, RESUME = "extraction.command", "extraction.resume"
SESSION = "{session}"
"""Placeholder for the session id in the words of a program."""
MAX_MODEL_SESSIONS = 20
"""Maximum sessions that a model reads in one run; each may take minutes."""


def read_model(context: Context) -> Model | None:
    """Return the user's model, None if none is set.

    A program named in a repository's settings is never run: the user who cloned it has not chosen
    it.
    """
    return _read_program(context, COMMAND)


def resume_model(context: Context, head: Session) -> Model | None:
    """Return the user's program that resumes the host's own session, None if it cannot.

    The program must belong to the session's host, or to no host, such as a wrapper; and the session
    must have ended, so that nothing else is running in it. It runs in the worktree in which the
    session began, because hosts look up sessions by directory.
    """
    program = _read_program(context, RESUME)
    if program is None:
        return None
    # Imported late: only needed if a program is set.
    from memtool.sessions.transcripts.formats import FORMATS

    if not any(SESSION in word for word in program.argv[1:]):
        note = f"{RESUME} does not say where the id goes, as {SESSION}; it is not run"
        context.notes.extend({note}.difference(context.notes))
        return None
    is_own = head.host in FORMATS and not FORMATS[head.host].is_copy
    is_of_host = is_own and program.name not in FORMATS.keys() - {head.host}
    if not is_of_host or head.status != "ended" or not os.path.isdir(head.worktree):
        return None
    first, *words = program.argv
    argv = (first, *(word.replace(SESSION, head.id) for word in words))
    return program.replace(argv=argv, place=head.worktree)


def _read_program(context: Context, key: str) -> Model | None:
    from memtool.sessions.extract.llm import Model

    context.project.note_unused(key)
    own = context.project.user_settings
    argv = own.texts(key)
    if not argv:
        return None
    return Model(argv, own.number("extraction.timeout_s"), context.caller.env)


def learn_all(
    context: Context,
    sessions: Sessions,
    ids: Iterable[str],
    *,
    is_kept: bool = True,
    with_model: bool = True,
) -> dict[str, Finding]:
    """Update the findings of sessions, and return them by id.

    A model reads sessions that it has not read yet, newest first: the host's program resumes its
    own session, or else the prompt program reads it. A model that fails is not used again. The
    rules read the sessions that no model has read. A session that cannot be read is skipped with a
    note.
    """
    usual = read_model(context) if with_model else None
    is_resuming = with_model and _read_program(context, RESUME) is not None
    findings_by_id: dict[str, Finding] = {}
    sessions_left = MAX_MODEL_SESSIONS
    for id_ in sorted(ids, reverse=True):
        try:
            own = resume_model(context, sessions.head(id_)) if is_resuming else None
            if own and sessions_left > 0 and _is_unread(sessions, id_, own):
                sessions_left -= 1
                is_resuming = _is_read_by(own, context, sessions, id_)
            if (
                usual
                and not (own and is_resuming)
                and sessions_left > 0
                and _is_unread(sessions, id_, usual)
            ):
                sessions_left -= 1
                if not _is_read_by(usual, context, sessions, id_):
                    usual = None
            read = _learn_by_rules(sessions, id_, is_kept=is_kept)
        except MemtoolError as error:
            context.notes.append(f"{id_} is passed over: {error.message}")
            continue
        findings_by_id |= {finding.id: finding for finding in read.findings}
    return dict(sorted(findings_by_id.items()))


def _learn_by_rules(sessions: Sessions, id: str, *, is_kept: bool) -> LearnedFindings:
    """Update a session by the rules; if the disk refuses, without writing."""
    try:
        return learn(sessions, id, is_kept=is_kept)
    except MemtoolError as error:
        if not is_kept or error.code != "disk":
            raise
    return learn(sessions, id, is_kept=False)


def _is_unread(sessions: Sessions, id: str, chosen: Model) -> bool:
    before, last = read_learned(sessions, id), sessions.read_last(id)
    is_read = last is None or (
        before.through >= last.number and before.by == reader_name(sessions, chosen.name)
    )
    return sessions.is_extracting and not is_read


def _is_read_by(chosen: Model, context: Context, sessions: Sessions, id: str) -> bool:
    """Let the model read a session; return whether it succeeded."""
    from memtool.sessions.extract import llm

    try:
        learn(sessions, id, partial(llm.extract, chosen), chosen.name)
    except llm.Unusable as error:
        other_readers = "other readers" if chosen.place else "the rules"
        context.notes.append(f"{error.message}; {other_readers} were used instead")
        return False
    return True
