"""The scene of a session: its messages, prepared once for all rules."""

from __future__ import annotations

from memtool import tables
from memtool.memory import timestamps
from memtool.memory.environment import parse_exit_code
from memtool.memory.memory import first_sentence
from memtool.sessions.extract.sentences import Sentence, find_tags, split_sentences
from memtool.sessions.model import (
    MAX_CONTENT_CHARS,
    Finding,
    Message,
    make_finding_id,
    make_printable,
)
from memtool.sessions.transcripts.markup import is_own_call
from memtool.value import Value, cached_property

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

MAX_MOMENT = 250_000_000_000
"""Later times cannot be formatted as a date."""

EDITORS = frozenset(tables.read_words("sessions/editing_tools"))
"""Names of tools that change files, lower case, of all hosts."""
_SHELL_SIGNS = ("bash", "shell", "exec", "terminal", "command")


def runs_command(call: Message) -> bool:
    """Return whether a tool call runs a command line."""
    name = call.tool.lower()
    if call.call.split(" ", 1)[0] in EDITORS:  # a patch passed to the shell
        return False
    return bool(call.call) and any(sign in name for sign in _SHELL_SIGNS)


class ToolRun(Value):
    """A tool call with its answer; `is_ok` is None if it is unknown whether it worked."""

    call: Message
    answer: Message
    is_ok: bool | None

    @property
    def is_edit(self) -> bool:
        """Whether it changed files, as far as known."""
        named = {self.call.tool.lower(), *self.call.call.split(" ", 1)[:1]}
        return not named.isdisjoint(EDITORS) and self.is_ok is not False

    @property
    def edited(self) -> tuple[str, ...]:
        """The paths that it changed, as far as the call names them."""
        path = self.call.call
        return self.call.files or ((path,) if path and " " not in path else ())

    @property
    def is_command(self) -> bool:
        """Whether it ran a command line."""
        return runs_command(self.call)


class Scene:
    """The messages of a session in order, the sentences that people typed, and the tool runs."""

    def __init__(self, messages: Sequence[Message], session: str = "", agent: str = "") -> None:
        self.messages = messages
        self.by_number = {message.number: message for message in messages}
        self.session = session
        self.agent = agent
        self.people = [message for message in messages if message.role == "user"]
        self.sentences: dict[int, tuple[Sentence, ...]] = {
            message.number: split_sentences(message.number, message.text) for message in self.people
        }

    def build_finding(
        self,
        category: str,
        content: str,
        importance: float,
        messages: tuple[int, ...],
        *,
        confidence: str = "medium",
        place: int = 0,
        signals: tuple[str, ...] = (),
        files: tuple[str, ...] = (),
        fields: Mapping[str, str] | None = None,
    ) -> Finding:
        """Build a finding of this session; empty `fields` are left out."""
        content = make_printable(content)[:MAX_CONTENT_CHARS]
        backing = [self.by_number[number] for number in messages]
        moments = [
            message.moment for message in reversed(backing) if 0 < message.moment < MAX_MOMENT
        ]
        texts = {name: _strip_invisible(text) for name, text in (fields or {}).items()}
        texts |= {
            "agent": next((message.agent for message in backing if message.agent), self.agent),
            "said": timestamps.render(moments[0]) if moments else "",
        }
        return Finding(
            id=make_finding_id(self.session, content),
            session=self.session,
            content=content,
            title=first_sentence(content),
            category=category,
            confidence=confidence,
            importance=importance,
            messages=messages,
            files=files,
            tags=find_tags(content),
            signals=signals,
            fields=tuple((name, text) for name, text in texts.items() if text),
            place=place,
        )

    @cached_property
    def runs(self) -> list[ToolRun]:
        """The answered calls, in the order of their answers."""
        waiting: list[Message] = []
        runs: list[ToolRun] = []
        for message in self.messages:
            if message.role == "assistant" and message.tool:
                waiting.append(message)
            elif message.role == "tool":
                call = _take_call(message, waiting)
                if call is not None:
                    runs.append(ToolRun(call, message, _find_outcome(message)))
        return runs

    @cached_property
    def own(self) -> frozenset[int]:
        """Numbers of answers that memtool gave itself, which are not evidence."""
        return frozenset(run.answer.number for run in self.runs if is_own_call(run.call))

    def last_human_before(self, number: int) -> int:
        """Return the number of the last message of a person before `number`, 0 if none."""
        return max(
            (message.number for message in self.people if message.number < number), default=0
        )


def _take_call(answer: Message, waiting: list[Message]) -> Message | None:
    """Remove and return the call that an answer belongs to: the oldest open one that matches.

    An answer that names its own call needs none.
    """
    for n, call in enumerate(waiting):
        if call.tool == answer.tool and (not answer.call or call.call == answer.call):
            return waiting.pop(n)
    if answer.call or (answer.tool and answer.files):
        return answer
    return waiting.pop(0) if waiting and not answer.tool else None


def _find_outcome(answer: Message) -> bool | None:
    """Return whether a call worked, by the host's report or by the first line of the text."""
    if answer.is_ok is not None:
        return answer.is_ok
    code = parse_exit_code(answer.text)
    return None if code is None else code == 0


def _strip_invisible(text: str) -> str:
    """Replace unprintable characters, but keep the lines."""
    return "\n".join(map(make_printable, text.split("\n")))
