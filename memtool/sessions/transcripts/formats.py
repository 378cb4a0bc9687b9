"""The formats of transcripts: for each host, how to recognise its lines and read their messages.

Only text that a person typed gets the role `user`. Hosts store tool answers, summaries, reminders
and their own commands under the same role. Each reader has its own rules to tell them apart.
"""

from __future__ import annotations

from memtool.sessions.transcripts.aider import knows_aider, read_aider
from memtool.sessions.transcripts.chat import knows_chat, read_chat
from memtool.sessions.transcripts.claude import knows_claude, read_claude
from memtool.sessions.transcripts.codex import knows_codex, read_codex
from memtool.sessions.transcripts.copilot import knows_copilot, read_copilot
from memtool.sessions.transcripts.cursor import knows_cursor, read_cursor
from memtool.sessions.transcripts.gemini import knows_gemini, read_gemini
from memtool.sessions.transcripts.history import (
    knows_claude_history,
    knows_codex_history,
    read_claude_history,
    read_codex_history,
)
from memtool.sessions.transcripts.opencode import (
    knows_opencode,
    read_opencode,
    read_opencode_database,
)
from memtool.sessions.transcripts.plain_text import read_text
from memtool.sessions.transcripts.qwen import knows_qwen, read_qwen
from memtool.sessions.transcripts.specstory import knows_specstory, read_specstory
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any

    from memtool.sessions.model import Message
    from memtool.sessions.transcripts.markup import TranscriptContext

    ReadDatabase = Callable[[str, str, Sequence[str]], dict[str, Any]]


class Format(Value):
    """How one format is recognised and read: by its rows of JSON, or by all lines of a text.

    A file with a `session_key` holds the sessions of many, under this key of its rows;
    `directory_key` is that of the directory in which a session ran, empty if no row has it.
    `read_database` is for a host that has all sessions in an SQLite database: from its path, the
    name of a session and the worktrees to a row, of the named session or of the last one.
    """

    knows: Callable[[Any], bool]
    read: Callable[[Any, TranscriptContext], Iterator[Message]]
    is_text: bool = False
    session_key: str = ""
    directory_key: str = ""
    read_database: ReadDatabase | None = None

    @property
    def is_copy(self) -> bool:
        """Whether it tells of sessions of which the host has a transcript of its own."""
        return self.is_text or bool(self.session_key)


PLAIN = "plain"
FORMATS: dict[str, Format] = {
    "claude": Format(knows_claude, read_claude),
    "codex": Format(knows_codex, read_codex),
    "copilot": Format(knows_copilot, read_copilot),
    "gemini": Format(knows_gemini, read_gemini),
    "opencode": Format(knows_opencode, read_opencode, read_database=read_opencode_database),
    "qwen": Format(knows_qwen, read_qwen),
    "cursor": Format(knows_cursor, read_cursor),
    "chat": Format(knows_chat, read_chat),
    "claude-history": Format(
        knows_claude_history,
        read_claude_history,
        session_key="sessionId",
        directory_key="project",
    ),
    "codex-history": Format(knows_codex_history, read_codex_history, session_key="session_id"),
    "aider": Format(knows_aider, read_aider, is_text=True),
    "specstory": Format(knows_specstory, read_specstory, is_text=True),
    PLAIN: Format(lambda _rows: True, read_text, is_text=True),
}
"""All formats; the first one that knows most rows, or that knows a text, is chosen."""
