"""OpenCode: the document that `opencode export` prints, of messages and their parts.

Where OpenCode keeps its sessions has changed more than once; what it exports has not.
"""

from __future__ import annotations

from memtool.sessions.message import Message
from memtool.sessions.transcripts.context import moment_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from memtool.sessions.transcripts.context import Context

AGENT = "opencode"
FINISHED = {"completed": True, "error": False}


def knows(row: Mapping[str, Any]) -> bool:
    """Tell whether a document is an exported session, or a line one of its messages."""
    if isinstance(row.get("parts"), list):
        return isinstance(row.get("info"), dict)
    held = row.get("messages")
    return isinstance(row.get("info"), dict) and isinstance(held, list)


def read(row: Mapping[str, Any], context: Context) -> Iterator[Message]:
    """Yield the messages of a document, or of one message."""
    if not knows(row):
        return
    info = row["info"]
    is_whole = isinstance(row.get("messages"), list)
    session, directory = info.get("id" if is_whole else "sessionID"), info.get("directory")
    if isinstance(session, str) and not context.session:
        context.session = session
    if isinstance(directory, str):
        context.cwd = directory
    for message in row["messages"] if is_whole else [row]:
        if isinstance(message, dict) and isinstance(message.get("info"), dict):
            parts = message.get("parts")
            yield from _message(message["info"], parts if isinstance(parts, list) else [], context)


def _message(info: Mapping[str, Any], parts: list[Any], context: Context) -> Iterator[Message]:
    role = info.get("role")
    moment = _moment(info)
    for number, part in enumerate(parts):
        if not isinstance(part, dict) or part.get("synthetic") or part.get("ignored"):
            continue  # what the host puts into a prompt
        origin = str(part.get("id") or f"{info.get('id')}:{number}")
        text = part.get("text")
        if part.get("type") == "text" and isinstance(text, str) and text.strip():
            if role == "user":
                yield Message(0, "user", text, moment=moment, origin=origin)
            elif role == "assistant":
                yield Message(0, "assistant", text, moment=moment, agent=AGENT, origin=origin)
        elif part.get("type") == "tool" and isinstance(part.get("state"), dict):
            yield from _tool(part, part["state"], context, moment, origin)


def _tool(
    part: Mapping[str, Any], state: Mapping[str, Any], context: Context, moment: int, origin: str
) -> Iterator[Message]:
    """Yield a call, and its answer where it has come."""
    moment = _moment(state) or moment
    yield context.called(origin, str(part.get("tool")), state.get("input"), moment=moment,
                         agent=AGENT, origin=origin)  # fmt: skip
    status = state.get("status")
    if isinstance(status, str) and status in FINISHED:
        text = state.get("output" if status == "completed" else "error")
        yield context.answered(
            origin, text if isinstance(text, str) else "", is_ok=_worked(state), moment=moment,
            agent=AGENT, origin=f"{origin}:answer",
        )  # fmt: skip


def _worked(state: Mapping[str, Any]) -> bool:
    """Tell whether a call worked: it was finished, and a command that it ran did not fail."""
    facts = state.get("metadata")
    code = facts.get("exit") if isinstance(facts, dict) else None
    return FINISHED[state["status"]] and not (type(code) is int and code)


def _moment(row: Mapping[str, Any]) -> int:
    time = row.get("time")
    return moment_of(time.get("created", time.get("start"))) if isinstance(time, dict) else 0
