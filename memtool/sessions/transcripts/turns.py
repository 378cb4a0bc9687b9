"""The turns of a conversation that is plain text, and where code is fenced in it."""

from __future__ import annotations

import re

from memtool.agents import AGENTS
from memtool.sessions.model import Message
from memtool.value import Value, digest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

NOBODY = "system"
"""The role of text without a known speaker."""
SPEAKERS = {
    **dict.fromkeys(("user", "human", "me", "you", "prompt"), "user"),
    **dict.fromkeys(
        (
            *AGENTS,
            "agent",
            "ai",
            "assistant",
            "bot",
            "chatgpt",
            "claude code",
            "copilot",
            "github copilot",
            "gpt",
            "model",
        ),
        "assistant",
    ),
    **dict.fromkeys(("output", "tool"), "tool"),
    "system": NOBODY,
}
"""Names that start a turn, as in `User:`, `**User:**`, `## User` or `### Assistant`."""
_FENCE = re.compile(r"^ {0,3}(?P<mark>`{3,}|~{3,})(?P<info>[^`]*)$")


class Turn(Value):
    """One turn of a speaker, as lines; `moment` is 0 if the text does not give it."""

    role: str
    lines: list[str]
    moment: int = 0

    @property
    def messages(self) -> Iterator[Message]:
        """The turn as a message, none if it is empty."""
        body = "\n".join(self.lines).strip("\n")
        if body.strip():
            yield Message(0, self.role, body, moment=self.moment)


class Fence(Value):
    """A line that opens or closes code: its mark, such as three backticks, and the language."""

    mark: str
    info: str

    def closes(self, opening: Fence) -> bool:
        """Return whether it ends the code that another fence began."""
        return not self.info and self.mark.startswith(opening.mark)


def parse_fence(row: str) -> Fence | None:
    """Parse a line as a fence; None if it is not one."""
    match = _FENCE.match(row.rstrip()) if row.lstrip()[:3] in ("```", "~~~") else None
    return Fence(match["mark"], match["info"].strip()) if match else None


def with_fences(rows: Sequence[str]) -> Iterator[tuple[bool, str]]:
    """Yield (is fenced, line); the opening fence counts as code, the closing one does not."""
    opening: Fence | None = None
    for row in rows:
        opening = follow_fence(row, opening)
        yield opening is not None, row


def follow_fence(row: str, opening: Fence | None) -> Fence | None:
    """Return the fence that is open behind a line, given the one before it."""
    fence = parse_fence(row)
    if opening is None:
        return fence
    return None if fence is not None and fence.closes(opening) else opening


def with_origins(messages: Iterable[Message]) -> Iterator[Message]:
    """Give each message an origin that stays when the text grows.

    It is a hash of the message, and the number of equal ones up to it.
    """
    counts: dict[str, int] = {}
    for message in messages:
        call = f"\n{message.tool}\n{message.call}" if message.tool else ""
        name = digest(f"{message.role}{call}\n{message.text}".encode(errors="surrogatepass"))
        counts[name] = counts.get(name, 0) + 1
        yield message.replace(origin=f"{name}-{counts[name]}")
