"""Contracts: what each event of each agent host means for memtool, and how it is answered.

One row per event. Hosts send a JSON object on stdin, of which memtool reads the `Given`. Their
answers differ only in the JSON around one text, and in how silence is written. An event that is
too large or no JSON object is refused.

What hooks did is noted in `hook.log` in memtool's directory of the git directory; when it is full
it replaces `hook.log.old`. Where it cannot be written, nothing is. Beside it `events` names the
events of the last seconds, since a host may hand the same one to two installations.
"""

from __future__ import annotations

import json
import os

from memtool import tables
from memtool.agents import PATCH_HEADS
from memtool.store import files
from memtool.store.files import append_to_log, open_to_append, read_or_none, read_regular
from memtool.value import Value, digest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

START, PROMPT, EDIT, COMPACT, STOP, END = "start", "prompt", "edit", "compact", "stop", "end"
FAILURE, IGNORED = "failure", "ignored"
"""What an event means: a session begins (or goes on after its context was lost), the user asks,
the agent changed files, the context is about to be compacted, a turn is over, a session is over;
a command of the agent failed; or nothing."""
RESUME, OPEN = "resume", "open"
"""The source of a session that goes on with the context that it had; and of one that may do so, for
all that its host knows."""
MOST_INPUT = 16 << 20
"""Bytes of an event; a host sends the results of tools along."""
MOST_NAME = 200
"""Characters of the name of a session or an agent that are looked at."""
MOST_FILES = 50

SPECIFIC = '{{"hookSpecificOutput":{{"hookEventName":{name},"additionalContext":{text}}}}}'
CURSOR = '{{"additional_context":{text}}}'
PLUGIN = '{{"text":{text}}}'
UNHEARD = ""
"""For an event whose answer never reaches the model."""


class UnreadableEvent(Exception):
    """What a host sent is no event."""


class Contract(Value):
    """One event of one host.

    `event` is the argument of `memtool hook`, `name` the host's own name for it. `answer` is the
    template around the text, `silence` what is printed without a text.
    """

    host: str
    event: str
    name: str
    meaning: str
    answer: str = UNHEARD
    silence: str = ""

    def written(self, text: str) -> str:
        """Return what goes to stdout for a text; silence for none."""
        if not text or not self.answer:
            return self.silence
        return self.answer.format(name=json.dumps(self.name), text=json.dumps(text))


NOTHING = "{}"
CONTRACTS: tuple[Contract, ...] = (
    Contract("claude", "session-start", "SessionStart", START, SPECIFIC),
    Contract("claude", "subagent-start", "SubagentStart", START, SPECIFIC),
    Contract("claude", "user-prompt-submit", "UserPromptSubmit", PROMPT, SPECIFIC),
    Contract("claude", "post-tool-use", "PostToolUse", EDIT, SPECIFIC),
    Contract("claude", "post-tool-use-failure", "PostToolUseFailure", FAILURE),
    Contract("claude", "pre-compact", "PreCompact", COMPACT),
    Contract("claude", "stop", "Stop", STOP),
    Contract("claude", "session-end", "SessionEnd", END),
    Contract("codex", "session-start", "SessionStart", START, SPECIFIC),
    Contract("codex", "user-prompt-submit", "UserPromptSubmit", PROMPT, SPECIFIC),
    Contract("codex", "post-tool-use", "PostToolUse", EDIT, SPECIFIC),
    Contract("codex", "pre-compact", "PreCompact", COMPACT, silence=NOTHING),
    Contract("codex", "stop", "Stop", STOP, silence=NOTHING),
    Contract("codex", "session-end", "SessionEnd", END, silence=NOTHING),
    Contract("gemini", "session-start", "SessionStart", START, silence=NOTHING),
    Contract("gemini", "before-agent", "BeforeAgent", PROMPT, SPECIFIC, NOTHING),
    Contract("gemini", "after-tool", "AfterTool", EDIT, SPECIFIC, NOTHING),
    Contract("gemini", "after-agent", "AfterAgent", STOP, silence=NOTHING),
    Contract("gemini", "session-end", "SessionEnd", END, silence=NOTHING),
    Contract("cursor", "session-start", "sessionStart", START, CURSOR, NOTHING),
    Contract("cursor", "post-tool-use", "postToolUse", EDIT, CURSOR, NOTHING),
    Contract("cursor", "stop", "stop", STOP, silence=NOTHING),
    Contract("cursor", "session-end", "sessionEnd", END, silence=NOTHING),
    Contract("opencode", "session-start", "session.created", START, PLUGIN, '{"text":""}'),
    Contract("opencode", "prompt", "chat.message", PROMPT, PLUGIN, '{"text":""}'),
    Contract("opencode", "edit", "tool.execute.after", EDIT, PLUGIN, '{"text":""}'),
    Contract("opencode", "failure", "tool.execute.after", FAILURE, silence='{"text":""}'),
    Contract("opencode", "compacting", "session.compacting", COMPACT, silence='{"text":""}'),
    Contract("opencode", "idle", "session.idle", STOP, silence='{"text":""}'),
    Contract("opencode", "deleted", "session.deleted", END, silence='{"text":""}'),
)
"""Every event that memtool answers. Claude Code, Codex and Gemini read the same JSON; Gemini and
Cursor want JSON always, and Codex for a stop, where `{}` decides nothing. Gemini puts what a hook
says at the start before the first prompt, which then is no slash command any more: the primer comes
with that prompt's own answer."""
RETIRED: tuple[Contract, ...] = (
    Contract("gemini", "pre-compress", "PreCompress", IGNORED, silence=NOTHING),
)
"""Events that older versions of memtool asked for, and that still come where it was not installed
again. Gemini sends this one before every request to the model, summed up or not."""

BY_EVENT: dict[tuple[str, str], Contract] = {
    (row.host, row.event): row for row in (*CONTRACTS, *RETIRED)
}

CAPS: dict[str, int] = {"claude": 2_500, "codex": 2_400}
"""Most tokens of a text, by host, which puts a longer one into a file and gives the model the path:
Claude Code above 10,000 characters, Codex above some 2,500 tokens."""
MOST_TOKENS = 2_500
"""The same for every other host: nobody wants to read more at every prompt."""

_EDITING = frozenset(tables.words("sessions/editing_tools"))
"""Tools that change files, as the hosts name them, in lower case."""
_HOOKED = ("<hook_context>", "</hook_context>")
"""Around what Gemini puts before the prompt."""
_PATHS = ("file_path", "notebook_path", "absolute_path", "target_file", "path")
"""Where a tool's input says which file it is about."""


class Given(Value):
    """The fields of an event; those that the host does not send are empty.

    `agent` names the subagent in which the event happened, which has a context of its own.
    `source` says why a session starts: startup, resume, clear, compact. `files` are written as the
    host writes them. `client` is the host that runs a hook which may be another's, where it says;
    `digest` is that of all that was sent. `command` is the command line that failed, `error` what
    the tool said.
    """

    session: str = ""
    agent: str = ""
    cwd: str = ""
    prompt: str = ""
    files: tuple[str, ...] = ()
    transcript: str = ""
    source: str = ""
    client: str = ""
    digest: str = ""
    command: str = ""
    error: str = ""


def most_tokens(host: str) -> int:
    """Return how many tokens a text for a host may have."""
    return CAPS.get(host, MOST_TOKENS)


def read(data: bytes) -> Given:
    """Read what a host sent.

    Raises:
        UnreadableEvent: it is no JSON object, or too large.
    """
    if len(data) > MOST_INPUT:
        raise UnreadableEvent(f"it has more than {MOST_INPUT:,} bytes")
    try:
        event = json.loads(data)
    except ValueError as error:
        raise UnreadableEvent(str(error)) from None
    except RecursionError:
        raise UnreadableEvent("it is nested too deeply") from None
    if not isinstance(event, dict):
        raise UnreadableEvent("it is no JSON object")
    roots = event.get("workspace_roots")
    cwd = event.get("cwd") or (roots[0] if isinstance(roots, list) and roots else "")
    return Given(
        session=_text(event.get("session_id") or event.get("conversation_id"))[:MOST_NAME],
        agent=_text(event.get("agent_id"))[:MOST_NAME],
        cwd=_path(cwd),
        prompt=_prompt(_text(event.get("prompt"))),
        files=tuple(_files(event)),
        transcript=_path(event.get("transcript_path")),
        source=_text(event.get("source"))[:MOST_NAME],
        client="cursor" if "cursor_version" in event else "",
        digest=digest(data),
        **_failure(event),
    )


def _failure(event: dict[str, Any]) -> dict[str, str]:
    """Return the command that failed and what the tool said; none where a user stopped it."""
    error, given = _text(event.get("error")), event.get("tool_input")
    command = _text(given.get("command")) if isinstance(given, dict) else ""
    if not (error and command) or event.get("is_interrupt"):
        return {}
    return {"command": command, "error": error}


def _prompt(text: str) -> str:
    """Return what the user typed, without what other hooks put before it."""
    while text.startswith(_HOOKED[0]) and _HOOKED[1] in text:
        text = text.partition(_HOOKED[1])[2].lstrip()
    return text


def _files(event: dict[str, Any]) -> list[str]:
    """Return the files of an event: what a tool changed, or what is named with a prompt."""
    found = [*_listed(event.get("files"))]
    tool = _text(event.get("tool_name"))
    given = event.get("tool_input")
    if isinstance(given, dict) and (not tool or tool.lower() in _EDITING):
        found += _listed(given.get(name) for name in _PATHS)
        for name in ("command", "input", "patch"):
            found += _patched(_text(given.get(name)))
    return list(dict.fromkeys(found))[:MOST_FILES]


def _listed(values: Any) -> Iterator[str]:
    if isinstance(values, str) or not hasattr(values, "__iter__"):
        return
    yield from filter(None, map(_path, values))


def _patched(text: str) -> Iterable[str]:
    """Yield the files that a patch in the form of Codex changes."""
    if "*** " not in text:
        return
    for line in text.split("\n"):
        plain = line.strip()
        for head in PATCH_HEADS:
            if plain.startswith(head) and _path(plain[len(head) :].strip()):
                yield plain[len(head) :].strip()


def _text(value: object) -> str:
    """Return a text that can be written anywhere; what is no text is empty."""
    if not isinstance(value, str):
        return ""
    return value if value.isascii() else value.encode(errors="replace").decode()


def _path(value: object) -> str:
    """Return a path that the system can be asked about; empty for anything else."""
    if not isinstance(value, str) or "\0" in value:
        return ""
    try:
        os.fsencode(value)
    except UnicodeEncodeError:  # half of a surrogate pair
        return ""
    return value


EVENTS = "events"
TWIN_S = 5
"""Seconds in which the same event is the same one still, and none that happened again."""
MOST_EVENTS = 64 * 1024


def is_twin(directory: str, contract: Contract, given: Given, now: int) -> bool:
    """Tell whether another process answers this event; note that this one does where none is.

    A host that has memtool for the project and for the user runs both, most often at once.
    `directory` is the cache directory of the repository. Where it cannot be written, both answer.
    """
    key = f"{contract.host}:{contract.event}:{given.digest}"
    path = os.path.join(directory, EVENTS)
    try:
        handle = open_to_append(path)
        try:
            files.lock(handle)
            lines = read_regular(path, MOST_EVENTS).decode(errors="replace").splitlines()
            recent = [line for line in lines if _is_recent(line, now)]
            if any(line.endswith(f" {key}") for line in recent):
                return True
            os.ftruncate(handle, 0)
            os.write(handle, "".join(f"{line}\n" for line in (*recent, f"{now} {key}")).encode())
        finally:
            os.close(handle)
    except OSError:
        return False
    return False


def _is_recent(line: str, now: int) -> bool:
    moment = line.partition(" ")[0]
    return moment.isdecimal() and abs(now - int(moment)) < TWIN_S


SUMMARIES: dict[str, bytes] = {"gemini": b"<state_snapshot>"}
"""What stands in a transcript where the context was summed up, for a host that does not say so."""
MOST_TAIL = 4 << 20
"""Bytes at the end of a transcript that are searched for it."""


def last_summary(host: str, transcript: str) -> str:
    """Return where in a transcript the context was last summed up, as digits; empty for nowhere."""
    mark = SUMMARIES.get(host)
    if mark is None or not transcript:
        return ""
    try:
        handle, status = files.open_plain(transcript)
        try:
            start = max(0, status.st_size - MOST_TAIL)
            data = os.pread(handle, MOST_TAIL, start)
        finally:
            os.close(handle)
    except OSError:
        return ""
    found = data.rfind(mark)
    return str(start + found) if found >= 0 else ""


LOG_NAME = "hook.log"
FAILED = "failed: "
"""Begins the outcome of a hook that failed."""
FULL_LOG = 64 * 1024
MOST_ENTRY = 4 * 1024
"""Bytes of the log, and of one entry of it."""
LOG_VARIABLE = "MEMTOOL_LOG"
ERROR, ALL = "error", "all"
LEVELS = ("off", ERROR, ALL)
"""Values of the variable: which entries are kept; `error` for any other value."""


def is_kept(level: str, setting: str) -> bool:
    """Tell whether an entry of a level, `error` or `all`, is kept under a value of the variable."""
    most = setting if setting in LEVELS else ERROR
    return LEVELS.index(level) <= LEVELS.index(most)


def last_failure(directory: str) -> str:
    """Return the first line of the last entry of a failure, empty for none."""
    text = (read_or_none(os.path.join(directory, LOG_NAME)) or b"").decode(errors="replace")
    lines = (line for line in reversed(text.split("\n")) if not line.startswith(" "))
    return next((line for line in lines if f": {FAILED}" in line), "")


def note(directory: str, moment: str, what: str, how: str) -> None:
    """Append an entry: the moment, the event, and the outcome, which may have several lines."""
    lines = f"{moment} {what}: {how}".encode(errors="backslashreplace").splitlines()
    entry = b"\n  ".join(lines)[: MOST_ENTRY - 1] + b"\n"
    append_to_log(os.path.join(directory, LOG_NAME), entry, FULL_LOG)
