"""The scene of a session: its messages made ready for the rules, once for all of them."""

from __future__ import annotations

from memtool import tables
from memtool.memory import timestamps
from memtool.memory.memory import title_of
from memtool.sessions.extract.sentences import Sentence, sentences, tags_of
from memtool.sessions.model import MOST_CONTENT, Finding, Message, finding_id, printable
from memtool.sessions.transcripts.markup import is_own_call
from memtool.value import Value, cached_property

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

MOST_MOMENT = 250_000_000_000
"""No calendar of ours goes further."""

EDITORS = frozenset(tables.words("sessions/editing_tools"))
"""Tools that change files, lower case, whichever host names them."""
_SHELL_SIGNS = ("bash", "shell", "exec", "terminal", "command")


class ToolRun(Value):
    """A call of a tool with its answer; `is_ok` None where it is unknown whether it worked."""

    call: Message
    answer: Message
    is_ok: bool | None

    @property
    def is_edit(self) -> bool:
        """Whether it changed files, as far as it reported."""
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
        name = self.call.tool.lower()
        if self.call.call.split(" ", 1)[0] in EDITORS:  # a patch that is given to the shell
            return False
        return bool(self.call.call) and any(sign in name for sign in _SHELL_SIGNS)


class Scene:
    """The messages of one session in order, with the sentences of its people and its tool runs."""

    def __init__(self, messages: Sequence[Message], session: str = "", agent: str = "") -> None:
        self.messages = messages
        self.by_number = {message.number: message for message in messages}
        self.session = session
        self.agent = agent
        self.people = [message for message in messages if message.role == "user"]
        self.said: dict[int, tuple[Sentence, ...]] = {
            message.number: sentences(message.number, message.text) for message in self.people
        }

    def finding(
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
        """Return a finding of this session; `fields` that are empty are left out."""
        content = printable(content)[:MOST_CONTENT]
        backing = [self.by_number[number] for number in messages]
        moments = [one.moment for one in reversed(backing) if 0 < one.moment < MOST_MOMENT]
        texts = {name: _shown(text) for name, text in (fields or {}).items()}
        texts |= {
            "agent": next((one.agent for one in backing if one.agent), self.agent),
            "said": timestamps.render(moments[0]) if moments else "",
        }
        return Finding(
            id=finding_id(self.session, content),
            session=self.session,
            content=content,
            title=title_of(content),
            category=category,
            confidence=confidence,
            importance=importance,
            messages=messages,
            files=files,
            tags=tags_of(content),
            signals=signals,
            fields=tuple((name, text) for name, text in texts.items() if text),
            place=place,
        )

    @cached_property
    def runs(self) -> list[ToolRun]:
        """The calls that were answered, in the order of their answers."""
        waiting: list[Message] = []
        found: list[ToolRun] = []
        for message in self.messages:
            if message.role == "assistant" and message.tool:
                waiting.append(message)
            elif message.role == "tool":
                call = _call_of(message, waiting)
                if call is not None:
                    found.append(ToolRun(call, message, outcome(message)))
        return found

    @cached_property
    def own(self) -> frozenset[int]:
        """The numbers of answers that memtool itself gave, which are no evidence of anything."""
        return frozenset(run.answer.number for run in self.runs if is_own_call(run.call))

    @cached_property
    def before(self) -> dict[int, Message]:
        """For the number of each person's message: what the assistant said last before it."""
        found: dict[int, Message] = {}
        last: Message | None = None
        for message in self.messages:
            if message.role == "assistant" and message.text and not message.tool:
                last = message
            elif message.role == "user":
                if last is not None:
                    found[message.number] = last
                last = None
        return found

    def human_before(self, number: int) -> int:
        """Return the number of the last message of a person before another, 0 for none."""
        return max((one.number for one in self.people if one.number < number), default=0)


def _call_of(answer: Message, waiting: list[Message]) -> Message | None:
    """Take the call that an answer belongs to: the oldest open one with its command, or its tool.

    An answer that says itself what was called needs none.
    """
    for n, call in enumerate(waiting):
        if call.tool == answer.tool and (not answer.call or call.call == answer.call):
            return waiting.pop(n)
    if answer.call or (answer.tool and answer.files):
        return answer
    return waiting.pop(0) if waiting and not answer.tool else None


def outcome(answer: Message) -> bool | None:
    """Tell whether a call worked: what the host said, else what the text ends or begins with."""
    if answer.is_ok is not None:
        return answer.is_ok
    edges = f"{answer.text[:300]}\n{answer.text[-1500:]}".lower()
    for mark in ("exit code ", "exit code: ", "exit status ", "exited with code "):
        _before, found, after = edges.rpartition(mark)
        if found:
            digits = after.lstrip().split()[0].strip(".,)]") if after.split() else ""
            if digits.isdigit():
                return digits == "0"
    if any(
        mark in edges for mark in ("traceback (most recent", "\nfatal: ", "npm err!", "panic: ")
    ):
        return False
    return None


def _shown(text: str) -> str:
    """Return a text without characters that cannot be shown; lines stay lines."""
    return "\n".join(map(printable, text.split("\n")))
