"""`memtool session diff`, `export`, `prune` and `delete`: the stored data of sessions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

from memtool.commands._layout import Layout
from memtool.commands._render import format_size
from memtool.errors import MemtoolError
from memtool.memory import timestamps
from memtool.memory.schema import parse_source
from memtool.sessions import findings, lifecycle, promote, retention, store
from memtool.sessions.model import Message, compute_fingerprint, format_second, to_json_line
from memtool.sessions.store import Sessions
from memtool.store import usage_log
from memtool.store.context import Context
from memtool.value import Value, format_count


class PruneResult(Value):
    """Sessions whose messages were removed; `size` is the bytes of all sessions afterwards."""

    ids: tuple[str, ...]
    freed: int
    size: int
    dry_run: bool = False


class DeletedSession(Value):
    """A deleted session, and the bytes that it took.

    `forks` are sessions that lost the findings they had inherited. `cited_by` are memories that
    name it as their source; they stay.
    """

    id: str
    freed: int
    forks: tuple[str, ...]
    cited_by: tuple[str, ...]


class DeletedSessions(Value):
    """The deleted sessions; `size` is the bytes of those that remain."""

    sessions: tuple[DeletedSession, ...]
    size: int
    dry_run: bool = False


class SessionSide(Value):
    """What only one of two sessions has: messages, findings as text, and files."""

    id: str
    messages: int
    findings: tuple[str, ...]
    files: tuple[str, ...]
    failed: tuple[str, ...]
    """Tool calls that failed and did not succeed later."""


class SessionDiff(Value):
    """Two sessions compared: what both have, and what only `a` or `b` has.

    `messages` counts shared ones: captured from the same lines, or from before a fork.
    """

    messages: int
    findings: tuple[str, ...]
    files: tuple[str, ...]
    a: SessionSide
    b: SessionSide


class ExportedSessions(Value):
    """All stored data of sessions: a row per session, message, checkpoint and finding."""

    rows: tuple[dict[str, Any], ...]
    format: str = "jsonl"

    def plain(self) -> Any:
        """Return the rows as a list."""
        return list(self.rows)


def session_diff(context: Context, a: str, b: str) -> SessionDiff:
    """Compare the messages, lessons, files and failures of two sessions.

    Example:
        memtool session diff ses-2026-02-22-k3f9 ses-2026-02-23-p2m7

    Args:
        a: a session, by id or its beginning
        b: another one
    """
    sessions = store.open_sessions(context)
    names = sessions.find(a), sessions.find(b)
    if names[0] == names[1]:
        raise MemtoolError(f"{a} and {b} are the same session", hint="memtool session list")
    first, second = (SessionContents(sessions, name) for name in names)
    return SessionDiff(
        messages=len(first.lines & second.lines),
        findings=tuple(
            first.findings_by_fingerprint[key]
            for key in sorted(
                first.findings_by_fingerprint.keys() & second.findings_by_fingerprint.keys()
            )
        ),
        files=tuple(sorted(first.files & second.files)),
        a=first.without(second),
        b=second.without(first),
    )


class SessionContents:
    """The comparable contents of a session."""

    def __init__(self, sessions: Sessions, name: str) -> None:
        head = sessions.head(name)  # refuses a damaged session
        owned = [(name, message) for message in sessions.messages(name)[0]]
        owned = [*lifecycle.collect_before(sessions, head), *owned]
        messages = [message for _owner, message in owned]
        self.name = name
        self.lines = {message.origin or (owner, message.number) for owner, message in owned}
        self.files = {path for message in messages for path in message.files}
        self.failed = [
            failure.call for failure in lifecycle.find_failures(messages) if not failure.fixed_by
        ]
        session_findings = findings.read_learned(sessions, name).findings
        self.findings_by_fingerprint = {
            compute_fingerprint(finding.content): finding.content for finding in session_findings
        }

    def without(self, other: SessionContents) -> SessionSide:
        """Return what this session has and `other` has not."""
        return SessionSide(
            id=self.name,
            messages=len(self.lines - other.lines),
            findings=tuple(
                text
                for key, text in self.findings_by_fingerprint.items()
                if key not in other.findings_by_fingerprint
            ),
            files=tuple(sorted(self.files - other.files)),
            failed=tuple(call for call in self.failed if call not in other.failed),
        )


def session_export(
    context: Context,
    *id: str,
    all: bool = False,
    format: Literal["jsonl", "markdown"] = "jsonl",
) -> ExportedSessions:
    """Print everything stored of sessions: messages, checkpoints and lessons.

    memtool capture reads the JSON lines again.

    Example:
        memtool session export ses-2026-02-22-k3f9 > session.jsonl
        memtool session export --all --format markdown

    Args:
        id: the sessions, by id or its beginning
        all: every session of this clone
        format: jsonl, or markdown to read it
    """
    sessions = store.open_sessions(context)
    names = [sessions.find(argument) for argument in id]
    if all:
        heads, wrong = sessions.heads()
        context.notes.extend(wrong)
        names = [head.id for head in sorted(heads, key=lambda head: (head.started, head.id))]
    elif not names:
        raise MemtoolError(
            "cannot export: the session is missing",
            hint="memtool session export ID\nmemtool session export --all\nmemtool session list",
        )
    rows: list[dict[str, Any]] = []
    for name in dict.fromkeys(names):
        try:
            rows += list(_export_rows(sessions, name))  # a session is exported whole or not at all
        except MemtoolError as error:
            if not all:
                raise
            context.notes.append(f"{name} is passed over: {error.message}")
    return ExportedSessions(tuple(rows), format)


def session_prune(context: Context, *, older_than: str = "", dry_run: bool = False) -> PruneResult:
    """Remove the messages of the sessions that ended first, to save space.

    It does so until all sessions fit into the setting sessions.total_mb. Lessons stay; memtool
    session delete removes them, too.

    Example:
        memtool session prune --dry-run
        memtool session prune --older-than 90d

    Args:
        older_than: prune those that ended before this date or age instead
        dry_run: list the sessions, write nothing
    """
    sessions = store.open_sessions(context)
    before = _parse_moment(context, older_than) if older_than else None
    done = retention.prune(sessions, before=before, dry_run=True)
    if done.ids and not dry_run:
        with usage_log.audit(context, "session-purge", *done.ids) as act:
            done = retention.prune(sessions, before=before)
            act.subjects = done.ids
    context.notes.extend(done.wrong)
    return PruneResult(done.ids, done.freed, done.size, dry_run)


def session_delete(
    context: Context, *id: str, older_than: str = "", dry_run: bool = False
) -> DeletedSessions:
    """Delete sessions for good, with their messages, checkpoints and lessons.

    There is no undo, and forks lose the lessons, too. Memories that were made of a session stay;
    use memtool forget for those. A later capture of the same transcript only takes what was said
    after the deletion.

    Example:
        memtool session delete ses-2026-02-22-k3f9
        memtool session delete --older-than 180d --dry-run

    Args:
        id: the sessions, by id or its beginning
        older_than: all that were last used before this date or age
        dry_run: list the sessions, write nothing
    """
    sessions = store.open_sessions(context)
    if bool(id) == bool(older_than):
        raise MemtoolError(
            "cannot delete: a session and --older-than exclude each other"
            if id
            else "cannot delete: the session is missing",
            hint="memtool session delete ID\nmemtool session delete --older-than 180d",
        )
    if id:
        names = list(dict.fromkeys(retention.find(sessions, argument) for argument in id))
    else:
        names = _find_unused(context, sessions, _parse_moment(context, older_than))
    cited = _find_citations(context) if names else {}
    done: list[DeletedSession] = []
    for name in names:
        with usage_log.audit(context, "session-purge", name, dry_run=dry_run) as act:
            gone = retention.delete(sessions, name, context.clock.now, dry_run=dry_run)
            act.detail = f"deleted, {gone.freed} bytes"
        context.notes.extend(gone.wrong)
        done.append(DeletedSession(name, gone.freed, gone.forks, cited.get(name, ())))
    if done and not dry_run:
        promote.count(context, sessions)
    size = retention.measure(sessions).size
    return DeletedSessions(tuple(done), size, dry_run)


def _find_unused(context: Context, sessions: Sessions, before: int) -> list[str]:
    """Return the sessions to which nothing was added since a moment, including damaged ones."""
    names = []
    for name in retention.measure_sizes(sessions):
        try:
            if retention.find_last_used(sessions, name) < before:
                names.append(name)
        except MemtoolError as error:
            context.notes.append(f"{name} is passed over: {error.message}")
    return names


def _parse_moment(context: Context, text: str) -> int:
    try:
        return timestamps.parse_when(text, context.clock.now)
    except ValueError:
        raise MemtoolError(
            f"{text!r} is not a time such as 180d or 2026-01-31",
            hint="the units are s, m, h, d, w and y",
        ) from None


def _find_citations(context: Context) -> dict[str, tuple[str, ...]]:
    """Return the ids of memories that cite a session, by id of the session."""
    try:
        tree = context.tree()
    except MemtoolError:  # there are no memories yet
        return {}
    ids_by_session: dict[str, list[str]] = {}
    for record in tree.records:
        sources = map(parse_source, record.memory.items("source"))
        session_ids = {
            source.target.partition("#")[0] for source in sources if source.kind == "session"
        }
        for name in session_ids:
            ids_by_session.setdefault(name, []).append(record.id)
    return {name: tuple(sorted(ids)) for name, ids in ids_by_session.items()}


def _export_rows(sessions: Sessions, name: str) -> Iterator[dict[str, Any]]:
    """Yield all stored data of a session, with moments as text."""
    head = sessions.head(name).plain()
    moments = {key: format_second(head[key]) for key in ("started", "ended")}
    yield {"session": name, **head, **moments}
    for message in sessions.messages(name)[0]:
        yield {"session": name, **_export_message(message)}
    for mark in store.read_checkpoints(sessions, name)[0]:
        fields = mark.plain()
        yield {
            "session": name,
            "checkpoint": fields.pop("message"),
            **fields,
            "moment": format_second(mark.moment),
        }
    learned = findings.read_learned(sessions, name)
    for finding in learned.findings:
        fields = finding.plain()
        yield {"session": name, "finding": fields.pop("id"), **fields, "from": finding.session}
    for gone in learned.dismissals:
        yield {"session": name, **gone.plain(), "moment": format_second(gone.moment)}


def _export_message(message: Message) -> dict[str, Any]:
    """Return a message with the keys that memtool capture reads, as in chat formats."""
    fields = message.plain()
    text, moment = fields.pop("text"), fields.pop("moment")
    return {
        "message": fields.pop("number"),
        "role": fields.pop("role"),
        "content": text,
        "timestamp": format_second(moment),
        **fields,
    }


def _format_diff(diff: SessionDiff) -> str:
    rows = [f"both: {format_count(diff.messages, 'message')}"]
    rows += [f"  found: {text}" for text in diff.findings]
    rows += [f"  files: {', '.join(diff.files)}"] * bool(diff.files)
    for side in (diff.a, diff.b):
        rows.append(f"only {side.id}: {format_count(side.messages, 'message')}")
        rows += [f"  found: {text}" for text in side.findings]
        rows += [f"  files: {', '.join(side.files)}"] * bool(side.files)
        rows += [f"  failed: {call}" for call in side.failed]
    return "\n".join(rows)


def render(
    answer: PruneResult | DeletedSessions | ExportedSessions | SessionDiff, _layout: Layout
) -> str:
    """Return the removed sessions and the remaining size, a diff, or an export."""
    if isinstance(answer, SessionDiff):
        return _format_diff(answer)
    if isinstance(answer, ExportedSessions):
        return _format_export(answer)
    would = "would " if answer.dry_run else ""
    if isinstance(answer, PruneResult):
        rows = [f"{would}prune {id_}" if would else f"pruned {id_}" for id_ in answer.ids]
        freed = f"{format_size(answer.freed)} freed, " if answer.ids else "nothing to prune, "
        return "\n".join([*rows, f"{freed}{format_size(answer.size)} kept"])
    rows = []
    for session in answer.sessions:
        verb = f"{would}delete" if would else "deleted"
        rows.append(f"{verb} {session.id}, {format_size(session.freed)}")
        if session.forks:
            rows.append(f"  with its lessons in {', '.join(session.forks)}")
        if session.cited_by:
            rows.append(f"  memories made of it stay: {', '.join(session.cited_by)}")
    rows.append(
        f"{'' if answer.sessions else 'nothing to delete, '}{format_size(answer.size)} kept"
    )
    return "\n".join(rows)


def _format_export(answer: ExportedSessions) -> str:
    if answer.format == "jsonl":
        return "".join(map(to_json_line, answer.rows))
    rows: list[str] = []
    for row in answer.rows:
        if "message" in row:
            rows += _format_message(row)
        elif "finding" in row:
            rows.append(f"- found, {row['category']}: {row['content']}")
        elif "dismissed" in row:
            rows.append(f"- {row['dismissed']} was dismissed: {row['reason'] or 'no reason given'}")
        elif "checkpoint" in row:
            rows += [f"- note after message {row['checkpoint']}: {row['note']}"] * bool(row["note"])
        else:
            rows += [*([""] if rows else []), f"# {row['session']} {row['title']}".rstrip(), ""]
            rows += [f"- {key}: {row[key]}" for key in _HEADER_KEYS if row[key]]
    return "\n".join(rows)


_HEADER_KEYS = (
    "status",
    "host",
    "agent",
    "started",
    "ended",
    "branch",
    "worktree",
    "parent",
    "summary",
)


def _format_message(row: dict[str, Any]) -> Iterator[str]:
    who = " ".join(filter(None, (row["role"], row["agent"], row["tool"], row["timestamp"])))
    yield from ("", f"## {row['message']} {who}", "")
    if row["call"]:
        yield f"    $ {row['call']}"
    for text in row["content"].split("\n"):
        yield f"    {text}".rstrip()  # indented, so that none of it is markup
