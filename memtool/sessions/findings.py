"""Findings: what sessions taught, extracted by rules or a model and stored with each session.

It owns the journal of findings, and when a session is read and by what. The journal only grows: a
finding is what its last row says; one that later messages took back is withdrawn by a row of its
own. All of that is derived from the messages, so that a lost journal costs nothing but the words of
a model. What a person dismissed is a row of the same journal, and goes with its session.
"""

from __future__ import annotations

import os
from contextlib import suppress
from functools import partial

from memtool.errors import MemtoolError
from memtool.memory import timestamps
from memtool.sessions import journal
from memtool.sessions.journal import Writer
from memtool.sessions.model import Finding, Message, fingerprint, read_finding, read_row
from memtool.sessions.store import FINDINGS, Sessions, clean_texts
from memtool.store.context import Context
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import Any

    from memtool.sessions.extract.llm import Model
    from memtool.sessions.model import Head

    Extract = Callable[[Sequence[Message], str, str], tuple[Finding, ...]]

RULES = "rules-5"
"""Changes whenever the same messages would give other findings."""
WORTH_SHARE = 20
"""A session is read again when a twentieth of it is new."""
MOST_FINDINGS = 10_000
"""Findings of one session that are read."""
REOPENED = "reopened"
"""The key of a row that takes a dismissal back; its value is the id of the finding."""


class Dismissal(Value):
    """A finding that a person wants to see no more: its id and its words' fingerprint.

    `moment` is the second in which it was dismissed; the `reason` may be empty.
    """

    dismissed: str
    fingerprint: str
    session: str
    reason: str
    moment: int

    @property
    def text(self) -> str:
        """The day and the reason, as the list says why it is not proposed."""
        day = f"dismissed on {timestamps.date(self.moment)}"
        return f"{day}: {self.reason}" if self.reason else day


class Learned(Value):
    """The findings of a session; `through` is the last message that they were made from.

    `by` is who read the messages: `RULES`, or the name of a model's command.
    """

    findings: tuple[Finding, ...]
    through: int = 0
    by: str = ""
    dismissals: tuple[Dismissal, ...] = ()

    def dismissals_of(self, one: Finding) -> tuple[Dismissal, ...]:
        """Return those that hold for a finding: its own, and of the same words elsewhere."""
        if not self.dismissals:
            return ()
        said = fingerprint(one.content)
        return tuple(
            gone for gone in self.dismissals if one.id == gone.dismissed or said == gone.fingerprint
        )


def known(sessions: Sessions, id: str) -> Learned:
    """Return what is kept of a session. Raises MemtoolError where it cannot be read."""
    rows, _torn = journal.read(sessions.path(id, FINDINGS))
    return _learned(rows, id)


def all_known(sessions: Sessions, heads: Iterable[Head]) -> Learned:
    """Return the findings and dismissals of sessions together; one that cannot be read has none."""
    found: dict[str, Finding] = {}
    gone: list[Dismissal] = []
    for head in heads:
        with suppress(MemtoolError):
            one = known(sessions, head.id)
            found |= {each.id: each for each in one.findings}
            gone += one.dismissals
    return Learned(tuple(found.values()), dismissals=tuple(gone))


def dismiss(sessions: Sessions, found: Iterable[Finding], reason: str, moment: int) -> None:
    """Keep that findings are not to be proposed, nor the same words of another session.

    Raises:
        MemtoolError: a journal cannot be written.
    """
    for one in found:
        row = Dismissal(one.id, fingerprint(one.content), one.session, reason, moment)
        journal.append(sessions.path(one.session, FINDINGS), [row.plain()])


def reopen(sessions: Sessions, dismissals: Iterable[Dismissal]) -> None:
    """Take dismissals back. Raises MemtoolError where a journal cannot be written."""
    for one in dismissals:
        row = {REOPENED: one.dismissed, "session": one.session}
        journal.append(sessions.path(one.session, FINDINGS), [row])


def ever(sessions: Sessions, id: str) -> dict[str, Finding]:
    """Return all findings that a session ever had, withdrawn ones too. Raises MemtoolError."""
    rows, _torn = journal.read(sessions.path(id, FINDINGS))
    return {one.id: one for one in map(read_finding, rows) if one is not None}


def learn(
    sessions: Sessions,
    id: str,
    extract: Extract | None = None,
    by: str = RULES,
    *,
    is_kept: bool = True,
) -> Learned:
    """Bring the findings of a session up to date, and return them; by default the rules read it.

    Nothing is done where the same reader, or a model, has read all messages before, or where the
    settings want no findings. Findings that it made then and does not make now are withdrawn, also
    those of categories that are no longer wanted; those of a parent stay. `is_kept` false writes
    nothing.

    Raises:
        MemtoolError: there is no such session, or it cannot be read or written.
    """
    before = known(sessions, id)
    last = sessions.last(id)
    head = sessions.head(id)
    by = reader_of(sessions, by)
    # Findings outlive the messages.
    if last is None or head.status == "pruned" or not sessions.is_extracting:
        return before
    if before.through >= last.number and (before.by == by or _is_better(before.by, by)):
        return before
    from memtool.sessions import extract as rules  # with all its patterns, when needed

    extract = extract or rules.extract
    messages, _torn = sessions.messages(id)
    read = messages[-rules.MOST_MESSAGES :]
    first, through = read[0].number, read[-1].number
    found = extract(read, id, head.agent or head.host)
    made = {one.id: one for one in found if one.category in (sessions.categories or {one.category})}
    clean = clean_texts({text for one in made.values() for text in _texts(one)}, sessions.allowed)
    made = {id_: one for id_, one in made.items() if all(clean[t] == t for t in _texts(one))}
    if not is_kept:
        rows = [one.plain() for one in before.findings]
        return _learned(rows + _news(before, made, id, first), id).replace(through=through, by=by)
    with Writer(sessions.path(id, FINDINGS)) as writer:
        rows, _bad = journal.parse(writer.whole())
        now = _learned(rows, id)
        if before.through < through <= now.through:
            return now  # somebody has read it meanwhile
        news = [*_news(now, made, id, first), {"through": through, "by": by, "session": id}]
        writer.append(news)
    return _learned(rows + news, id)


def is_due(sessions: Sessions, id: str) -> bool:
    """Tell whether enough is new that a session is read again while it goes on.

    All of it is read each time, so that it pays only from a share of it on; who asks for the
    findings has them brought up to date anyway.

    Raises:
        MemtoolError: there is no such session, or it cannot be read.
    """
    last = sessions.last(id)
    through = known(sessions, id).through
    return (
        sessions.is_extracting
        and last is not None
        and last.number - through >= max(1, through // WORTH_SHARE)
    )


def _news(
    before: Learned, made: Mapping[str, Finding], id: str, first: int
) -> list[dict[str, Any]]:
    """Return the rows that bring findings up to date.

    Those of a parent stay, and those backed by messages before the first that was read.
    """
    there = {one.id: one for one in before.findings}
    gone = [
        one.id
        for one in there.values()
        if one.session == id and one.id not in made and min(one.messages, default=0) >= first
    ]
    rows = [one.plain() for one in made.values() if there.get(one.id) != one]
    return rows + [{"withdrawn": id_} for id_ in gone]


def _is_better(before: str, by: str) -> bool:
    """Tell whether a model has read it before, whose words rules need not replace."""
    model, _for, wanted = before.partition(_FOR)
    rules, _for, now = by.partition(_FOR)
    return rules == RULES and bool(model) and not model.startswith("rules-") and wanted == now


_FOR = " for "


def reader_of(sessions: Sessions, name: str) -> str:
    """Return what a reader is called in the journal: other categories make it another reader."""
    return f"{name}{_FOR}{', '.join(sessions.categories)}" if sessions.categories else name


def _learned(rows: Iterable[Mapping[str, Any]], id: str) -> Learned:
    """Read rows; a fork begins with those of its parent, whose reading is none of its own."""
    found: dict[str, Finding] = {}
    gone: dict[str, Dismissal] = {}
    through, by = 0, ""
    for row in rows:
        if isinstance(row.get("withdrawn"), str):
            found.pop(row["withdrawn"], None)
        elif type(row.get("through")) is int:
            if row.get("session") == id:
                through, by = row["through"], str(row.get("by", ""))
        elif isinstance(row.get(REOPENED), str):
            gone.pop(row[REOPENED], None)
        elif (dismissal := read_row(Dismissal, row)) is not None:
            gone[dismissal.dismissed] = dismissal
        elif (one := read_finding(row)) is not None:
            found[one.id] = one
    return Learned(tuple(found.values())[:MOST_FINDINGS], through, by, tuple(gone.values()))


def _texts(one: Finding) -> tuple[str, ...]:
    """Return all that a finding says: messages are redacted, and so is what is made of them."""
    return (one.content, one.title, *one.files, *one.tags, *(text for _name, text in one.fields))


COMMAND, RESUME = "extractor.command", "extractor.resume"
SESSION = "{session}"
"""Stands in the words of a program for the id of a session."""
MOST_ASKED = 20
"""Sessions of one run that a model reads; each may take minutes."""


def model(context: Context) -> Model | None:
    """Return the user's model, None where they have set none.

    A program that the settings of a repository name is not run: whoever clones it has not chosen
    it.
    """
    return _program(context, COMMAND)


def resumed(context: Context, head: Head) -> Model | None:
    """Return the user's program that goes on in the host's own session, None where it cannot.

    That is one of the host itself, by its name, or one that has the name of no host, such as a
    wrapper, in a session that has ended: nobody is at work there. It runs in the worktree in which
    the session began, as hosts look for sessions by that.
    """
    program = _program(context, RESUME)
    if program is None:
        return None
    from memtool.sessions.transcripts.formats import FORMATS  # only where a program is set

    if not any(SESSION in word for word in program.argv[1:]):
        note = f"{RESUME} does not say where the id goes, as {SESSION}; it is not run"
        context.notes.extend({note}.difference(context.notes))
        return None
    is_of_host = head.host in FORMATS and program.name not in FORMATS.keys() - {head.host}
    if not is_of_host or head.status != "ended" or not os.path.isdir(head.worktree):
        return None
    first, *words = program.argv
    argv = (first, *(word.replace(SESSION, head.id) for word in words))
    return program.replace(argv=argv, place=head.worktree)


def _program(context: Context, key: str) -> Model | None:
    from memtool.sessions.extract.llm import Model

    context.project.note_unused(key)
    own = context.project.own_settings
    argv = own.texts(key)
    if not argv:
        return None
    timeout_s, retries = own.number("extractor.timeout_s"), own.count("extractor.retries")
    return Model(argv, timeout_s, retries, context.caller.env)


def learned(
    context: Context,
    sessions: Sessions,
    ids: Iterable[str],
    *,
    is_kept: bool = True,
    with_model: bool = True,
) -> dict[str, Finding]:
    """Bring sessions up to date, and return their findings by id.

    A model reads what it has not read yet, the newest sessions first: the host of a session goes on
    in it, or else the program that reads a prompt. One that has failed is not asked again, and the
    rules read what no model has. A session that cannot be read is passed over with a note.
    """
    usual = model(context) if with_model else None
    is_resuming = with_model and _program(context, RESUME) is not None
    found: dict[str, Finding] = {}
    left = MOST_ASKED
    for id_ in sorted(ids, reverse=True):
        try:
            own = resumed(context, sessions.head(id_)) if is_resuming else None
            if own and left > 0 and _is_unread(sessions, id_, own):
                left -= 1
                is_resuming = _is_read_by(own, context, sessions, id_)
            if (
                usual
                and not (own and is_resuming)
                and left > 0
                and _is_unread(sessions, id_, usual)
            ):
                left -= 1
                if not _is_read_by(usual, context, sessions, id_):
                    usual = None
            read = _by_rules(sessions, id_, is_kept=is_kept)
        except MemtoolError as error:
            context.notes.append(f"{id_} is passed over: {error.message}")
            continue
        found |= {one.id: one for one in read.findings}
    return dict(sorted(found.items()))


def _by_rules(sessions: Sessions, id: str, *, is_kept: bool) -> Learned:
    """Bring a session up to date by the rules; where the disk refuses, without writing."""
    try:
        return learn(sessions, id, is_kept=is_kept)
    except MemtoolError as error:
        if not is_kept or error.code != "disk":
            raise
    return learn(sessions, id, is_kept=False)


def _is_unread(sessions: Sessions, id: str, chosen: Model) -> bool:
    before, last = known(sessions, id), sessions.last(id)
    is_read = last is None or (
        before.through >= last.number and before.by == reader_of(sessions, chosen.name)
    )
    return sessions.is_extracting and not is_read


def _is_read_by(chosen: Model, context: Context, sessions: Sessions, id: str) -> bool:
    """Let the model read a session; return whether it gave an answer."""
    from memtool.sessions.extract import llm

    extract = partial(
        llm.extract, chosen, context.project.own_settings.number("extractor.confidence")
    )
    try:
        learn(sessions, id, extract, chosen.name)
    except llm.Unusable as error:
        others = "other readers" if chosen.place else "the rules"
        context.notes.append(f"{error.message}; {others} were used instead")
        return False
    return True
