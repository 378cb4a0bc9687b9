"""The agent hosts: one row for each, with all that memtool knows of it outside its installation.

A new host is a row here and, if memtool installs itself into it, a file `hosts/NAME.py`. Every hook
and every injection imports this module: it holds data only.
"""

from __future__ import annotations

from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

START, PROMPT, EDIT, COMPACT, STOP, END = "start", "prompt", "edit", "compact", "stop", "end"
COMMAND, TASK, FAILURE, IGNORED = "command", "task", "failure", "ignored"
"""Meanings of events: a session begins (or continues after its context was lost), the user sends a
prompt, the agent used a tool on files or ran a command, the context is about to be compacted, a
turn ends, a session ends; a command is about to run, a subagent is about to get its task, a command
of the agent failed, or none of these."""

SPECIFIC_ANSWER = '{{"hookSpecificOutput":{{"hookEventName":{name},"additionalContext":{text}}}}}'
CLINE_ANSWER = '{{"contextModification":{text}}}'
COPILOT_ANSWER = '{{"additionalContext":{text}}}'
CURSOR_ANSWER = '{{"additional_context":{text}}}'
PLUGIN_ANSWER = '{{"text":{text}}}'
HOLD_ANSWER = (
    '{{"hookSpecificOutput":{{"hookEventName":{name},"permissionDecision":"deny",'
    '"permissionDecisionReason":{text}}}}}'
)
COPILOT_HOLD_ANSWER = '{{"permissionDecision":"deny","permissionDecisionReason":{text}}}'
GEMINI_HOLD_ANSWER = '{{"decision":"deny","reason":{text}}}'
"""Templates of an event before a command: the only way to bring a text before it runs is not to
run it. Context that hosts take here reaches the model with the result."""
TASK_ANSWER = '{{"hookSpecificOutput":{{"hookEventName":{name},"updatedInput":{input}}}}}'
"""Template of an event before a subagent starts: its input, with the text behind its prompt."""
NO_ANSWER = ""
"""Template of an event whose answer never reaches the model."""
EMPTY_OBJECT = "{}"
EMPTY_TEXT = '{"text":""}'

INSTRUCTION_FILES = frozenset(("AGENTS.md", "CLAUDE.md", "GEMINI.md", "QWEN.md"))
"""Names of files that agents read as instructions, in any folder."""
RULE_FILES = (
    "*.instructions.md",
    "*.mdc",
    ".clinerules",
    ".clinerules-*",
    ".cursorrules",
    ".roorules",
    ".roorules-*",
    ".windsurfrules",
    "copilot-instructions.md",
)
"""Patterns of the names of files that agents read as rules, in any folder."""

# More would be too much to read at every prompt.
MAX_TOKENS = 2_500


class Event(Value):
    """One event of a host.

    `event` is the argument of `memtool hook`, `name` the host's own name for it. `answer` is the
    template around the text, `silence` the output if there is no text. `shows_messages`: the host
    shows the user a message that the model does not get.
    """

    event: str
    name: str
    meaning: str
    answer: str = NO_ANSWER
    silence: str = ""
    shows_messages: bool = False


class Agent(Value):
    """An agent host.

    `block_format` is the format of its blocks. `retired` are events that older versions of memtool
    registered, and that arrive until it is installed again. `max_tokens` limits a text: a host may
    put a longer one into a file and give the model only its path. `has_message_ids`: its
    transcripts give each message a unique id. `summary_mark` is what a compaction leaves in the
    transcript, for a host that sends no event for it. `transcript` is the path of a session's
    transcript, or of the file that holds all sessions, for a host whose events do not always name
    it; it is below `home`, a directory in that of the user, unless `home_variable` names another.
    `own_key` is a key of its events that no other host sends. `keys` are its names of what others
    name as on the right, in order of precedence; a dot leads into an object. Without a value of
    `subagent_key` the id of an agent is that of the main one. `foreign_keys` show a host that runs
    the hooks of others, in their words: those that such an event has, and with a ! those it lacks.
    """

    name: str
    block_format: str
    events: tuple[Event, ...]
    retired: tuple[Event, ...] = ()
    max_tokens: int = MAX_TOKENS
    has_message_ids: bool = True
    summary_mark: bytes = b""
    home: str = ""
    home_variable: str = ""
    transcript: str = ""
    own_key: str = ""
    keys: tuple[tuple[str, str], ...] = ()
    subagent_key: str = ""
    foreign_keys: tuple[str, ...] = ()

    def find_transcript(self, session: str, env: Mapping[str, str]) -> str:
        """Return the path of a session's transcript; empty if only the events name it."""
        is_name = session.replace("-", "").replace("_", "").isalnum()  # it comes from outside
        if not self.transcript or ("{session}" in self.transcript and not is_name):
            return ""
        home = env.get(self.home_variable) or f"{env.get('HOME', '')}/{self.home}"
        return f"{home}/{self.transcript.format(session=session)}"


_CLAUDE_EVENTS = (
    Event("session-start", "SessionStart", START, SPECIFIC_ANSWER, shows_messages=True),
    Event("subagent-start", "SubagentStart", START, SPECIFIC_ANSWER),
    Event("user-prompt-submit", "UserPromptSubmit", PROMPT, SPECIFIC_ANSWER),
    Event("pre-command", "PreToolUse", COMMAND, HOLD_ANSWER),
    Event("pre-task", "PreToolUse", TASK, TASK_ANSWER),
    Event("post-tool-use", "PostToolUse", EDIT, SPECIFIC_ANSWER),
    Event("post-tool-use-failure", "PostToolUseFailure", FAILURE, SPECIFIC_ANSWER),
    Event("pre-compact", "PreCompact", COMPACT),
    Event("stop", "Stop", STOP),
    Event("session-end", "SessionEnd", END),
)
# Claude Code, Codex, Gemini and Qwen Code read the same JSON. Gemini, Copilot and Cursor always
# require JSON; Codex requires it for a stop, and `{}` decides nothing.
_ROWS = (
    Agent(
        "claude",
        "xml",
        events=_CLAUDE_EVENTS,
        # A text above 10,000 characters goes into a file.
        max_tokens=2_500,
    ),
    Agent(
        "cline",
        "text",
        # Its other hooks do not run, or what they print does not reach the model.
        events=(Event("post-tool-use", "PostToolUse", EDIT, CLINE_ANSWER, EMPTY_OBJECT),),
        own_key="clineVersion",
        keys=(
            ("sessionContext.rootSessionId", "session_id"),
            ("taskId", "session_id"),
            ("workspaceRoots", "workspace_roots"),
            ("postToolUse.toolName", "tool_name"),
            ("postToolUse.parameters", "tool_input"),
        ),
        # Each of its agents has an id, also the first.
        subagent_key="parent_agent_id",
    ),
    Agent(
        "codex",
        "text",
        events=(
            Event("session-start", "SessionStart", START, SPECIFIC_ANSWER),
            Event("user-prompt-submit", "UserPromptSubmit", PROMPT, SPECIFIC_ANSWER),
            Event("pre-command", "PreToolUse", COMMAND, HOLD_ANSWER),
            Event("post-tool-use", "PostToolUse", EDIT, SPECIFIC_ANSWER),
            Event("pre-compact", "PreCompact", COMPACT, silence=EMPTY_OBJECT),
            Event("stop", "Stop", STOP, silence=EMPTY_OBJECT),
            Event("session-end", "SessionEnd", END, silence=EMPTY_OBJECT),
        ),
        # A text above about 2,500 tokens goes into a file.
        max_tokens=2_400,
    ),
    Agent(
        "copilot",
        "text",
        # A start hook runs at the same time as that of the first prompt, so neither knows what the
        # other shows: the session begins with the prompt instead.
        events=(
            Event("user-prompt-submitted", "userPromptSubmitted", PROMPT, COPILOT_ANSWER, "{}"),
            Event("pre-command", "preToolUse", COMMAND, COPILOT_HOLD_ANSWER, EMPTY_OBJECT),
            Event("post-tool-use", "postToolUse", EDIT, COPILOT_ANSWER, EMPTY_OBJECT),
            Event("pre-compact", "preCompact", COMPACT, silence=EMPTY_OBJECT),
            Event("agent-stop", "agentStop", STOP, silence=EMPTY_OBJECT),
            Event("session-end", "sessionEnd", END, silence=EMPTY_OBJECT),
        ),
        summary_mark=b'"type":"session.compaction_complete"',
        home=".copilot",
        home_variable="COPILOT_HOME",
        transcript="session-state/{session}/events.jsonl",
        own_key="sessionId",
        # The session id of a subagent is its own.
        keys=(
            ("agentId", "agent_id"),
            ("parentAgentId", "session_id"),
            ("sessionId", "session_id"),
            ("toolArgs", "tool_input"),
            ("toolName", "tool_name"),
            ("transcriptPath", "transcript_path"),
        ),
        # It also runs the hooks of Claude Code. Unlike Claude it sends a time, and unlike the
        # others that do, no transcript.
        foreign_keys=("session_id", "timestamp", "!transcript_path"),
    ),
    Agent(
        "cursor",
        "xml",
        events=(
            Event("session-start", "sessionStart", START, CURSOR_ANSWER, EMPTY_OBJECT),
            Event("post-tool-use", "postToolUse", EDIT, CURSOR_ANSWER, EMPTY_OBJECT),
            Event("stop", "stop", STOP, silence=EMPTY_OBJECT),
            Event("session-end", "sessionEnd", END, silence=EMPTY_OBJECT),
        ),
        has_message_ids=False,
        own_key="cursor_version",
    ),
    Agent(
        "gemini",
        "markdown",
        # Gemini puts the output of a start hook before the first prompt, so that a slash command
        # there no longer works: the primer comes with the answer to that prompt instead.
        events=(
            Event("session-start", "SessionStart", START, silence=EMPTY_OBJECT),
            Event("before-agent", "BeforeAgent", PROMPT, SPECIFIC_ANSWER, EMPTY_OBJECT),
            Event("before-command", "BeforeTool", COMMAND, GEMINI_HOLD_ANSWER, EMPTY_OBJECT),
            Event("after-tool", "AfterTool", EDIT, SPECIFIC_ANSWER, EMPTY_OBJECT),
            Event("after-agent", "AfterAgent", STOP, silence=EMPTY_OBJECT),
            Event("session-end", "SessionEnd", END, silence=EMPTY_OBJECT),
        ),
        # Gemini sends it before every request to the model, whether it compresses or not.
        retired=(Event("pre-compress", "PreCompress", IGNORED, silence=EMPTY_OBJECT),),
        summary_mark=b"<state_snapshot>",
    ),
    Agent(
        "opencode",
        "text",
        events=(
            Event("session-start", "session.created", START, PLUGIN_ANSWER, EMPTY_TEXT),
            Event("prompt", "chat.message", PROMPT, PLUGIN_ANSWER, EMPTY_TEXT),
            Event("command", "tool.execute.before", COMMAND, PLUGIN_ANSWER, EMPTY_TEXT),
            Event("edit", "tool.execute.after", EDIT, PLUGIN_ANSWER, EMPTY_TEXT),
            Event("failure", "tool.execute.after", FAILURE, silence=EMPTY_TEXT),
            Event("compacting", "session.compacting", COMPACT, silence=EMPTY_TEXT),
            Event("idle", "session.idle", STOP, silence=EMPTY_TEXT),
            Event("deleted", "session.deleted", END, silence=EMPTY_TEXT),
        ),
        home=".local/share",
        home_variable="XDG_DATA_HOME",
        transcript="opencode/opencode.db",
    ),
    Agent(
        "qwen",
        "markdown",
        # A resumed session has lost what its start hook printed, and a subagent gets nothing of any
        # hook, not even a changed task: the primer comes with the first prompt.
        events=(
            Event("session-start", "SessionStart", START),
            *(event for event in _CLAUDE_EVENTS[2:] if event.meaning != TASK),
        ),
    ),
)
BY_NAME: dict[str, Agent] = {row.name: row for row in _ROWS}
AGENTS = tuple(BY_NAME)
PLAIN = "plain"
BLOCK_FORMATS: dict[str, str] = {
    **{row.name: row.block_format for row in _ROWS},
    PLAIN: "text",
}
"""The block format of each agent; `plain` is for any other reader."""
PATCH_HEADS = ("*** Add File: ", "*** Update File: ", "*** Delete File: ", "*** Move to: ")
"""How the lines of a patch begin that name a file, as Codex and others write it."""
