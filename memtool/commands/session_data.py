"""`memtool session diff`, `export`, `prune` and `delete`: what is stored of sessions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

from memtool.commands._render import size_text
from memtool.errors import MemtoolError
from memtool.memory import timestamps
from memtool.memory.schema import parse_source
from memtool.sessions import findings, lifecycle, promote, retention, store
from memtool.sessions.model import Message, fingerprint, json_line, moment_text
from memtool.sessions.store import Sessions
from memtool.store import usage_log
from memtool.store.context import Context
from memtool.value import Value, plural


class Freed(Value):
    """Sessions whose messages were removed; `size` is what all sessions take now, in bytes."""

    ids: tuple[str, ...]
    freed: int
    size: int
    dry_run: bool = False


class DeletedSession(Value):
    """A session that is gone, and the bytes that it took.

    `forks` are those that lost the findings that they had from it, `cited_by` the memories that
    name it as their source, which stay.
    """

    id: str
    freed: int
    forks: tuple[str, ...]
    cited_by: tuple[str, ...]


class DeletedSessions(Value):
    """Sessions that were deleted; `size` is what those that are left take, in bytes."""

    sessions: tuple[DeletedSession, ...]
    size: int
    dry_run: bool = False


class SessionSide(Value):
    """What one of two sessions has alone: messages, findings as text, and files."""

    id: str
    messages: int
    findings: tuple[str, ...]
    files: tuple[str, ...]
    failed: tuple[str, ...]
    """Calls of tools that failed and were not seen to work."""


class SessionDiff(Value):
    """Two sessions side by side; what both have counts once.

    `messages` counts those that were taken from the same lines, and what was said before a fork.
    """

    messages: int
    findings: tuple[str, ...]
    files: tuple[str, ...]
    a: SessionSide
    b: SessionSide


class ExportedSessions(Value):
    """All that is stored of sessions, one row a session, message, checkpoint and finding."""

    rows: tuple[dict[str, Any], ...]
    format: str = "jsonl"

    def plain(self) -> Any:
        """Return the rows as a list."""
        return list(self.rows)


def session_diff(context: Context, a: str, b: str) -> SessionDiff:
    """Show what two sessions share, and what each has alone: messages, findings, files, failures.

    Findings are the same where they say the same but for case, spaces and the last full stop.

    Example:
        memtool session diff ses-2026-02-22-k3f9 ses-2026-02-23-p2m7

    Args:
        a: the one session, by its id or the beginning of it
        b: the other one
    """
    sessions = store.opened(context)
    names = sessions.find(a), sessions.find(b)
    if names[0] == names[1]:
        raise MemtoolError(f"{a} and {b} are the same session", hint="memtool session list")
    one, other = (_Held(sessions, name) for name in names)
    return SessionDiff(
        messages=len(one.lines & other.lines),
        findings=tuple(one.said[key] for key in sorted(one.said.keys() & other.said.keys())),
        files=tuple(sorted(one.files & other.files)),
        a=one.without(other),
        b=other.without(one),
    )


class _Held:
    """What a session holds that can be compared."""

    def __init__(self, sessions: Sessions, name: str) -> None:
        head = sessions.head(name)  # a damaged one is refused
        owned = [(name, one) for one in sessions.messages(name)[0]]
        owned = [*lifecycle.before(sessions, head), *owned]
        messages = [one for _owner, one in owned]
        self.name = name
        self.lines = {one.origin or (owner, one.number) for owner, one in owned}
        self.files = {path for one in messages for path in one.files}
        self.failed = [one.call for one in lifecycle.failures(messages) if not one.fixed_by]
        known = findings.known(sessions, name).findings
        self.said = {fingerprint(one.content): one.content for one in known}

    def without(self, other: _Held) -> SessionSide:
        """Return what this one has and the other has not."""
        return SessionSide(
            id=self.name,
            messages=len(self.lines - other.lines),
            findings=tuple(text for key, text in self.said.items() if key not in other.said),
            files=tuple(sorted(self.files - other.files)),
            failed=tuple(call for call in self.failed if call not in other.failed),
        )


def session_export(
    context: Context,
    *id: str,
    all: bool = False,
    format: Literal["jsonl", "markdown"] = "jsonl",
) -> ExportedSessions:
    """Print all that is stored of sessions: what they are, their messages, checkpoints, findings.

    Everything is as it is stored, secrets cut out. memtool capture reads the lines of JSON again.

    Example:
        memtool session export ses-2026-02-22-k3f9 > session.jsonl
        memtool session export --all --format markdown

    Args:
        id: the session, by its id or the beginning of it; may be several
        all: every session of this clone
        format: lines of JSON, or a text to read
    """
    sessions = store.opened(context)
    names = [sessions.find(one) for one in id]
    if all:
        heads, wrong = sessions.heads()
        context.notes.extend(wrong)
        names = [head.id for head in sorted(heads, key=lambda head: (head.started, head.id))]
    elif not names:
        raise MemtoolError(
            "no session is named",
            hint="memtool session export ID, or --all; memtool session list shows them",
        )
    rows: list[dict[str, Any]] = []
    for name in dict.fromkeys(names):
        try:
            rows += list(_rows(sessions, name))  # all of it, or nothing
        except MemtoolError as error:
            if not all:
                raise
            context.notes.append(f"{name} is passed over: {error.message}")
    return ExportedSessions(tuple(rows), format)


def session_prune(context: Context, *, older_than: str = "", dry_run: bool = False) -> Freed:
    """Remove the messages of the sessions that ended first, when all are too large.

    The setting sessions.total_mb says how large they may be together. What was learned from the
    messages stays; memtool session delete removes that too.

    Example:
        memtool session prune --dry-run
        memtool session prune --older-than 90d

    Args:
        older_than: those that ended before this instead, however large: an age, or a date
        dry_run: say which sessions would be pruned, write nothing
    """
    sessions = store.opened(context)
    before = _moment(context, older_than) if older_than else None
    done = retention.prune(sessions, before=before, dry_run=True)
    if done.ids and not dry_run:
        with usage_log.act(context, "session-purge", *done.ids) as act:
            done = retention.prune(sessions, before=before)
            act.subjects = done.ids
    context.notes.extend(done.wrong)
    return Freed(done.ids, done.freed, done.size, dry_run)


def session_delete(
    context: Context, *id: str, older_than: str = "", dry_run: bool = False
) -> DeletedSessions:
    """Delete sessions for good: messages, checkpoints and findings, also those that forks have.

    There is no way back, so look with --dry-run, or take them out with memtool session export.
    A later capture of the same transcript takes only what was said after the deletion. Memories
    that were made of a session stay; memtool forget is for those. The audit keeps that it was
    deleted, as memtool log --audit shows.

    Example:
        memtool session delete ses-2026-02-22-k3f9
        memtool session delete --older-than 180d --dry-run

    Args:
        id: the session, by its id or the beginning of it; may be several
        older_than: all to which nothing was added since: an age such as 180d, or a date
        dry_run: say what would be deleted, write nothing
    """
    sessions = store.opened(context)
    if bool(id) == bool(older_than):
        raise MemtoolError(
            "sessions are named, or --older-than is given, not both"
            if id
            else "no session is named",
            hint="memtool session delete ID, or memtool session delete --older-than 180d",
        )
    if id:
        names = list(dict.fromkeys(retention.find(sessions, one) for one in id))
    else:
        names = _unused(context, sessions, _moment(context, older_than))
    cited = _cited(context) if names else {}
    done: list[DeletedSession] = []
    for name in names:
        with usage_log.act(context, "session-purge", name, dry_run=dry_run) as act:
            gone = retention.delete(sessions, name, context.clock.now, dry_run=dry_run)
            act.detail = f"deleted, {gone.freed} bytes"
        context.notes.extend(gone.wrong)
        done.append(DeletedSession(name, gone.freed, gone.forks, cited.get(name, ())))
    if done and not dry_run:
        promote.count(context, sessions)
    size = retention.stored(sessions).size
    return DeletedSessions(tuple(done), size, dry_run)


def _unused(context: Context, sessions: Sessions, before: int) -> list[str]:
    """Return the sessions to which nothing was added since a moment, damaged ones too."""
    found = []
    for name in retention.sizes(sessions):
        try:
            if retention.last_used(sessions, name) < before:
                found.append(name)
        except MemtoolError as error:
            context.notes.append(f"{name} is passed over: {error.message}")
    return found


def _moment(context: Context, text: str) -> int:
    try:
        return timestamps.parse_when(text, context.clock.now)
    except ValueError:
        raise MemtoolError(
            f"{text!r} is not a time such as 180d or 2026-01-31",
            hint="s, m, h, d, w and y are seconds to years",
        ) from None


def _cited(context: Context) -> dict[str, tuple[str, ...]]:
    """Return the memories that name a session as their source, by its id."""
    try:
        tree = context.tree()
    except MemtoolError:  # sessions are older than the first memory
        return {}
    found: dict[str, list[str]] = {}
    for record in tree.records:
        sources = map(parse_source, record.memory.items("source"))
        of = {one.target.partition("#")[0] for one in sources if one.kind == "session"}
        for name in of:
            found.setdefault(name, []).append(record.id)
    return {name: tuple(sorted(ids)) for name, ids in found.items()}


def _rows(sessions: Sessions, name: str) -> Iterator[dict[str, Any]]:
    """Yield everything that is stored of a session, moments as text."""
    head = sessions.head(name).plain()
    moments = {key: moment_text(head[key]) for key in ("started", "ended")}
    yield {"session": name, **head, **moments}
    for one in sessions.messages(name)[0]:
        yield {"session": name, **_message(one)}
    for mark in store.checkpoints(sessions, name)[0]:
        fields = mark.plain()
        yield {
            "session": name,
            "checkpoint": fields.pop("message"),
            **fields,
            "moment": moment_text(mark.moment),
        }
    learned = findings.known(sessions, name)
    for found in learned.findings:
        fields = found.plain()
        yield {"session": name, "finding": fields.pop("id"), **fields, "from": found.session}
    for gone in learned.dismissals:
        yield {"session": name, **gone.plain(), "moment": moment_text(gone.moment)}


def _message(one: Message) -> dict[str, Any]:
    """Return a message as chats have it, with the keys that memtool capture reads."""
    fields = one.plain()
    text, moment = fields.pop("text"), fields.pop("moment")
    return {
        "message": fields.pop("number"),
        "role": fields.pop("role"),
        "content": text,
        "timestamp": moment_text(moment),
        **fields,
    }


def _diff_text(diff: SessionDiff) -> str:
    rows = [f"both: {plural(diff.messages, 'message')}"]
    rows += [f"  found: {text}" for text in diff.findings]
    rows += [f"  files: {', '.join(diff.files)}"] * bool(diff.files)
    for side in (diff.a, diff.b):
        rows.append(f"only {side.id}: {plural(side.messages, 'message')}")
        rows += [f"  found: {text}" for text in side.findings]
        rows += [f"  files: {', '.join(side.files)}"] * bool(side.files)
        rows += [f"  failed: {call}" for call in side.failed]
    return "\n".join(rows)


def render(answer: Freed | DeletedSessions | ExportedSessions | SessionDiff) -> str:
    """Return what went and what is left, or the sessions themselves."""
    if isinstance(answer, SessionDiff):
        return _diff_text(answer)
    if isinstance(answer, ExportedSessions):
        return _exported_text(answer)
    would = "would " if answer.dry_run else ""
    if isinstance(answer, Freed):
        rows = [f"{would}prune {id_}" if would else f"pruned {id_}" for id_ in answer.ids]
        freed = f"{size_text(answer.freed)} freed, " if answer.ids else "nothing to prune, "
        return "\n".join([*rows, f"{freed}{size_text(answer.size)} kept"])
    rows = []
    for one in answer.sessions:
        verb = f"{would}delete" if would else "deleted"
        rows.append(f"{verb} {one.id}, {size_text(one.freed)}")
        if one.forks:
            rows.append(f"  with its findings in {', '.join(one.forks)}")
        if one.cited_by:
            rows.append(f"  memories made of it stay: {', '.join(one.cited_by)}")
    rows.append(f"{'' if answer.sessions else 'nothing to delete, '}{size_text(answer.size)} kept")
    return "\n".join(rows)


def _exported_text(answer: ExportedSessions) -> str:
    if answer.format == "jsonl":
        return "".join(map(json_line, answer.rows))
    rows: list[str] = []
    for row in answer.rows:
        if "message" in row:
            rows += _message_text(row)
        elif "finding" in row:
            rows.append(f"- found, {row['category']}: {row['content']}")
        elif "dismissed" in row:
            rows.append(f"- {row['dismissed']} was dismissed: {row['reason'] or 'no reason given'}")
        elif "checkpoint" in row:
            rows += [f"- note after message {row['checkpoint']}: {row['note']}"] * bool(row["note"])
        else:
            rows += [*([""] if rows else []), f"# {row['session']} {row['title']}".rstrip(), ""]
            rows += [f"- {key}: {row[key]}" for key in _SHOWN if row[key]]
    return "\n".join(rows)


_SHOWN = ("status", "host", "agent", "started", "ended", "branch", "worktree", "parent", "summary")


def _message_text(row: dict[str, Any]) -> Iterator[str]:
    who = " ".join(filter(None, (row["role"], row["agent"], row["tool"], row["timestamp"])))
    yield from ("", f"## {row['message']} {who}", "")
    if row["call"]:
        yield f"    $ {row['call']}"
    for text in row["content"].split("\n"):
        yield f"    {text}".rstrip()  # never a heading, a fence or a link of this text
