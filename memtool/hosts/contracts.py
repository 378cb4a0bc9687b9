"""Contracts: what each event of each agent host means to memtool, and how to answer it.

The table of agents has one row per event. Hosts send a JSON object on stdin, from which memtool
reads a `HookEvent`. The answers of hosts differ only in the JSON around the text, and in the output
without a text. An event that is too large or not a JSON object is refused.

Hooks log to `hook.log` in memtool's cache directory; a full log becomes `hook.log.old`. If it
cannot be written, nothing is logged. `events` next to it lists the events of the last seconds,
because a host may send the same event to two installations.
"""

from __future__ import annotations

import json
import os

from memtool import tables
from memtool.agents import BY_NAME, PATCH_HEADS, TASK, Agent, Event
from memtool.store import files
from memtool.store.files import append_to_log, open_to_append, read_or_none, read_regular
from memtool.value import Value, digest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from typing import Any

RESUME, OPEN = "resume", "open"
"""Source of a session that continues with its context, and of one that may do so (the host cannot
tell)."""
# Hosts include the results of tools in an event.
MAX_EVENT_BYTES = 16 << 20
MAX_NAME_CHARS = 200
"""Characters of the name of a session or an agent; the rest is cut off."""
MAX_FILES = 50


class UnreadableEvent(Exception):
    """The input from a host is not an event."""


class Contract(Event):
    """One event of one host, as the table of agents has it, with the name of the host."""

    host: str = ""

    def format_output(self, text: str, message: str = "", task: str = "") -> str:
        """Return the output for a text and a message to the user, `silence` if both are empty.

        `task` is the input of a subagent's tool, as JSON; the text goes behind its prompt.
        """
        output = self.silence
        if text and self.answer:
            fields = {"name": json.dumps(self.name), "text": json.dumps(text)}
            if self.meaning == TASK:
                fields["input"] = _add_to_prompt(task, text)
            output = self.answer.format(**fields)
        if not (message and self.shows_messages):
            return output
        inner = output.removeprefix("{").removesuffix("}")
        return f'{{"systemMessage":{json.dumps(message)}{"," if inner else ""}{inner}}}'


def _add_to_prompt(task: str, text: str) -> str:
    """Return the input of a task as JSON, with a text behind its prompt."""
    tool_input = json.loads(task or "{}")
    prompt = _clean_text(tool_input.get("prompt"))
    return json.dumps({**tool_input, "prompt": f"{prompt}\n\n{text}"})


def _bind(agent: Agent, events: Iterable[Event]) -> Iterator[Contract]:
    for row in events:
        yield Contract(
            row.event,
            row.name,
            row.meaning,
            row.answer,
            row.silence,
            row.shows_messages,
            agent.name,
        )


CONTRACTS: tuple[Contract, ...] = tuple(
    contract for agent in BY_NAME.values() for contract in _bind(agent, agent.events)
)
RETIRED: tuple[Contract, ...] = tuple(
    contract for agent in BY_NAME.values() for contract in _bind(agent, agent.retired)
)
BY_EVENT: dict[tuple[str, str], Contract] = {
    (row.host, row.event): row for row in (*CONTRACTS, *RETIRED)
}

_EDITING_TOOLS = frozenset(tables.read_words("sessions/editing_tools"))
"""Hosts' names of tools that change files, in lower case."""
_READING_TOOLS = frozenset(("read", "read_file", "view"))
_SHELL_TOOLS = frozenset(
    ("bash", "exec_command", "execute_command", "local_shell", "run_shell_command", "shell")
)
_TASK_TOOLS = frozenset(("agent", "task"))
EDITING, READING, SHELL, DELEGATING = "edit", "read", "shell", "task"
"""What a tool does: it changes files, shows one, runs a command, or starts a subagent."""
_HOOK_CONTEXT = ("<hook_context>", "</hook_context>")
"""Markers around the context that Gemini puts before the prompt."""
_PATH_KEYS = ("file_path", "notebook_path", "absolute_path", "target_file", "path")
"""Keys of a tool's input that name its file."""


class HookEvent(Value):
    """An event as a host sent it; a field that the host does not send is empty.

    `agent` is the subagent in which the event happened; it has its own context. `source` is why a
    session starts: startup, resume, clear or compact. `files` have the host's spelling. `client` is
    set if the event itself shows that another host runs the hook. `digest` covers the whole input.
    `action` is what the tool does, of those that matter here. `command` is the command line of a
    shell tool, `error` the message of one that failed. `task` is the input of the tool that starts
    a subagent, as JSON.
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
    action: str = ""
    command: str = ""
    error: str = ""
    task: str = ""


def max_tokens(host: str) -> int:
    """Return the maximum number of tokens in a text for a host."""
    return BY_NAME[host].max_tokens


def read(data: bytes) -> HookEvent:
    """Parse the input of a hook.

    Raises:
        UnreadableEvent: it is not a JSON object, or too large.
    """
    if len(data) > MAX_EVENT_BYTES:
        raise UnreadableEvent(f"it has more than {MAX_EVENT_BYTES:,} bytes")
    try:
        event = json.loads(data)
    except ValueError as error:
        raise UnreadableEvent(str(error)) from None
    except RecursionError:
        raise UnreadableEvent("it is nested too deeply") from None
    if not isinstance(event, dict):
        raise UnreadableEvent("it is no JSON object")
    for agent in BY_NAME.values():
        for name, key in agent.keys:
            value = _look_up(event, name)
            if value:
                event.setdefault(key, value)
        if agent.subagent_key and agent.own_key in event and not event.get(agent.subagent_key):
            event["agent_id"] = ""
    roots = event.get("workspace_roots")
    tool_input = _parse_arguments(event.get("tool_input"))
    tool_input = tool_input if isinstance(tool_input, dict) else {}
    action = _find_action(_clean_text(event.get("tool_name")))
    is_task = action == DELEGATING
    cwd = event.get("cwd") or (roots[0] if isinstance(roots, list) and roots else "")
    return HookEvent(
        session=_clean_text(event.get("session_id") or event.get("conversation_id"))[
            :MAX_NAME_CHARS
        ],
        agent=_clean_text(event.get("agent_id"))[:MAX_NAME_CHARS],
        cwd=_clean_path(cwd),
        prompt=_clean_prompt(_clean_text((tool_input if is_task else event).get("prompt"))),
        files=tuple(_find_files(event, tool_input, action)),
        transcript=_clean_path(event.get("transcript_path")),
        source=_clean_text(event.get("source"))[:MAX_NAME_CHARS],
        client=_find_client(event),
        digest=digest(data),
        action=action,
        command=_read_command(tool_input) if action == SHELL else "",
        error="" if event.get("is_interrupt") else _clean_text(event.get("error")),
        task=json.dumps(tool_input) if is_task else "",
    )


def _find_client(event: Mapping[str, Any]) -> str:
    """Return the host that an event shows by itself, "" if it may be any."""
    for agent in BY_NAME.values():
        if agent.own_key and agent.own_key in event:
            return agent.name
    for agent in BY_NAME.values():
        signs = [
            name[1:] not in event if name.startswith("!") else bool(event.get(name))
            for name in agent.foreign_keys
        ]
        if signs and all(signs):
            return agent.name
    return ""


def _find_action(tool: str) -> str:
    """Return what a tool does, "" for any that does not matter here."""
    name = tool.lower()
    rows = (
        (EDITING, _EDITING_TOOLS),
        (READING, _READING_TOOLS),
        (SHELL, _SHELL_TOOLS),
        (DELEGATING, _TASK_TOOLS),
    )
    return next((action for action, names in rows if name in names), "")


def _read_command(tool_input: Mapping[str, Any]) -> str:
    """Return the command line of a shell tool; it may be a list of words."""
    command = tool_input.get("command") or tool_input.get("cmd")
    if not isinstance(command, list):
        return _clean_text(command)
    words = [word for word in map(_clean_text, command) if word]
    return " ".join("'" + word.replace("'", "'\\''") + "'" for word in words)


def _look_up(event: Mapping[str, Any], name: str) -> Any:
    """Return the value of a key, where a dot leads into an object; None if there is none."""
    value: Any = event
    for part in name.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    return value


def _clean_prompt(text: str) -> str:
    """Return the prompt without the context that hooks put before it."""
    while text.startswith(_HOOK_CONTEXT[0]) and _HOOK_CONTEXT[1] in text:
        text = text.partition(_HOOK_CONTEXT[1])[2].lstrip()
    return text


def _find_files(event: Mapping[str, Any], tool_input: Mapping[str, Any], action: str) -> list[str]:
    """Return the files that a tool changed or showed, or that come with a prompt."""
    paths = [*_valid_paths(event.get("files"))]
    is_nameless = not _clean_text(event.get("tool_name"))
    if is_nameless or action in (EDITING, READING):
        paths += _valid_paths(tool_input.get(name) for name in _PATH_KEYS)
    if is_nameless or action == EDITING:
        for name in ("command", "input", "patch"):
            paths += _find_patched_files(_clean_text(tool_input.get(name)))
    return list(dict.fromkeys(paths))[:MAX_FILES]


def _parse_arguments(value: Any) -> Any:
    """Return the arguments of a tool, which may come as the text of a JSON object or a patch."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value) if value.lstrip().startswith("{") else {"patch": value}
    except (ValueError, RecursionError):
        return {}


def _valid_paths(values: Any) -> Iterator[str]:
    if isinstance(values, str) or not hasattr(values, "__iter__"):
        return
    yield from filter(None, map(_clean_path, values))


def _find_patched_files(text: str) -> Iterable[str]:
    """Yield the files that a patch in Codex's format changes."""
    if "*** " not in text:
        return
    for line in text.split("\n"):
        stripped = line.strip()
        for head in PATCH_HEADS:
            if stripped.startswith(head) and _clean_path(stripped[len(head) :].strip()):
                yield stripped[len(head) :].strip()


def _clean_text(value: object) -> str:
    """Return a text that can be encoded as UTF-8; empty for any other type."""
    if not isinstance(value, str):
        return ""
    return value if value.isascii() else value.encode(errors="replace").decode()


def _clean_path(value: object) -> str:
    """Return a path that the operating system accepts; empty for anything else."""
    if not isinstance(value, str) or "\0" in value:
        return ""
    try:
        os.fsencode(value)
    except UnicodeEncodeError:  # half of a surrogate pair
        return ""
    return value


EVENTS_NAME = "events"
# An identical event within this time is a second delivery, not a second event.
DUPLICATE_WINDOW_S = 5
MAX_EVENTS_BYTES = 64 * 1024


def is_duplicate(directory: str, contract: Contract, event: HookEvent, now: int) -> bool:
    """Return whether another process answers this event; if not, record that this one does.

    A host with memtool installed for both the project and the user runs both, usually at once.
    `directory` is the cache directory of the repository. If it cannot be written, both answer.
    """
    key = f"{contract.host}:{contract.event}:{event.digest}"
    path = os.path.join(directory, EVENTS_NAME)
    try:
        handle = open_to_append(path)
        try:
            files.lock(handle)
            lines = read_regular(path, MAX_EVENTS_BYTES).decode(errors="replace").splitlines()
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
    return moment.isdecimal() and abs(now - int(moment)) < DUPLICATE_WINDOW_S


MAX_TAIL_BYTES = 4 << 20
"""Bytes at the end of a transcript that are searched for the mark of a compaction."""


def find_last_summary(host: str, transcript: str) -> str:
    """Return the byte offset of the last compaction in a transcript, as digits; empty if none."""
    mark = BY_NAME[host].summary_mark
    if not (mark and transcript):
        return ""
    try:
        handle, status = files.open_plain(transcript)
        try:
            start = max(0, status.st_size - MAX_TAIL_BYTES)
            data = os.pread(handle, MAX_TAIL_BYTES, start)
        finally:
            os.close(handle)
    except OSError:
        return ""
    position = data.rfind(mark)
    return str(start + position) if position >= 0 else ""


LOG_NAME = "hook.log"
FAILURE_PREFIX = "failed: "
"""Prefix of the outcome of a failed hook."""
MAX_LOG_BYTES = 64 * 1024
MAX_ENTRY_BYTES = 4 * 1024
LOG_VARIABLE = "MEMTOOL_LOG"
ERROR, ALL = "error", "all"
LEVELS = ("off", ERROR, ALL)
"""Values of the variable; any other value means `error`."""


def is_logged(level: str, setting: str) -> bool:
    """Return whether to log an entry of a level, `error` or `all`, at a value of the variable."""
    threshold = setting if setting in LEVELS else ERROR
    return LEVELS.index(level) <= LEVELS.index(threshold)


def find_last_failure(directory: str) -> str:
    """Return the first line of the last logged failure; empty if none."""
    text = (read_or_none(os.path.join(directory, LOG_NAME)) or b"").decode(errors="replace")
    lines = (line for line in reversed(text.split("\n")) if not line.startswith(" "))
    return next((line for line in lines if f": {FAILURE_PREFIX}" in line), "")


def log_outcome(directory: str, moment: str, what: str, how: str) -> None:
    """Log a moment, an event (`what`) and its outcome (`how`), which may have several lines."""
    lines = f"{moment} {what}: {how}".encode(errors="backslashreplace").splitlines()
    entry = b"\n  ".join(lines)[: MAX_ENTRY_BYTES - 1] + b"\n"
    append_to_log(os.path.join(directory, LOG_NAME), entry, MAX_LOG_BYTES)
