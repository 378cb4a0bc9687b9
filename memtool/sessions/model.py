"""What sessions are made of: messages, heads, findings with their points, and ids.

It owns these values, the way from and to a row of a journal, and the table of signals. There is
no disk and no clock here. Everything is redacted before it is stored, and private to the clone:
only promotion makes a memory of a finding.
"""

from __future__ import annotations

from memtool.memory import timestamps
from memtool.memory.fields import CONFIDENCES
from memtool.memory.ids import ALPHABET, SUFFIX_LENGTH
from memtool.value import Value, digest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any, TypeVar

    V = TypeVar("V", bound=Value)

CUT = " …"
"""Ends a call that was too long to be kept whole."""
FOLDER = "sessions"
"""Where they all are, below the directory of private files in the git directory."""


def json_value(text: Any) -> Any:
    """Return what a text holds as JSON; None where it is none."""
    import json

    try:
        return json.loads(text)
    except (TypeError, ValueError, RecursionError):
        return None


def json_row(text: Any) -> dict[str, Any] | None:
    """Return the JSON object that a text holds; None where it holds none."""
    held = json_value(text)
    return held if isinstance(held, dict) else None


def json_line(row: Mapping[str, Any]) -> str:
    """Return a row as one line of JSON, with its line feed."""
    import json

    return json.dumps(row, ensure_ascii=False, separators=(",", ":")) + "\n"


def dict_of(value: Any) -> dict[str, Any]:
    """Return a value that is a dict; for anything else an empty one."""
    return value if isinstance(value, dict) else {}


def list_of(value: Any) -> list[Any]:
    """Return a value that is a list; for anything else an empty one."""
    return value if isinstance(value, list) else []


_EMPTY: tuple[object, ...] = (None, "", 0, [])


def row_of(value: Value) -> dict[str, Any]:
    """Return a value as a row of a journal, without optional fields that are empty."""
    optional = type(value).field_defaults
    return {
        name: field
        for name, field in value.plain().items()
        if name not in optional or field is False or field not in _EMPTY
    }


def read_row(kind: type[V], row: Mapping[str, Any]) -> V | None:
    """Return the value of a row; None where a field is missing or of another type.

    Keys that are no field are ignored: another version may have written them.
    """
    fields = {}
    try:
        for name in kind.field_names:
            if name in row or name not in kind.field_defaults:
                fields[name] = _FIELD_READERS[kind.__annotations__[name]](row[name])
    except (KeyError, TypeError):
        return None
    return kind(**fields)


def _one_of(*types: type) -> Callable[[Any], Any]:
    def read(value: Any) -> Any:
        if type(value) not in types:
            raise TypeError
        return value

    return read


def _tuple_of(item: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda values: tuple(map(item, _one_of(list, tuple)(values)))


_FIELD_READERS: dict[str, Callable[[Any], Any]] = {
    "str": _one_of(str),
    "int": _one_of(int),
    "float": lambda value: float(_one_of(int, float)(value)),
    "bool": _one_of(bool),
    "bool | None": _one_of(bool, type(None)),
    "tuple[str, ...]": _tuple_of(_one_of(str)),
    "tuple[int, ...]": _tuple_of(_one_of(int)),
    "tuple[tuple[str, str], ...]": lambda pairs: tuple(
        (name, text) for name, text in _one_of(dict)(pairs).items() if isinstance(text, str)
    ),
    "Mapping[str, Any] | None": _one_of(dict, type(None)),
}
"""How the fields of rows are read, by their annotation."""


ID_PREFIX = "ses"
MOST_ID = 100
_FIRST = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789")
_SAFE = _FIRST | frozenset("._-")


def draw_id(second: int, random: bytes) -> str:
    """Return `ses-<date>-<4 base32 characters>`; `random` gives at least 3 bytes."""
    bits = int.from_bytes(random[:3], "big")
    suffix = "".join(ALPHABET[bits >> 5 * place & 31] for place in range(SUFFIX_LENGTH))
    return f"{ID_PREFIX}-{timestamps.date(second)}-{suffix}"


def is_id(text: str) -> bool:
    """Tell whether a text is the name of a directory that can lie nowhere else."""
    return 3 <= len(text) <= MOST_ID and text[0] in _FIRST and _SAFE.issuperset(text)


def id_of_host(host: str, given: str) -> str:
    """Return the name for the id that a host gave its session: the id itself where it is safe."""
    return given if is_id(given) else hashed_id(host, given)


def hashed_id(host: str, given: str) -> str:
    """Return a name for an id that does not reveal the id."""
    return f"{host}-{digest(given.encode(errors='surrogatepass'))}"


ROLES = ("user", "assistant", "tool", "system")


class Message(Value):
    """One message. Everything in it is redacted before it is stored.

    Only what a person typed has the role `user`: what hosts put into a prompt, commands and
    summaries of theirs has not.
    """

    number: int
    """Its place in the session, from 1; 0 before it has one."""
    role: str
    """`user` a person, `assistant`, `tool` what a tool answered, or `system`."""
    text: str
    moment: int = 0
    """Unix seconds; 0 where it is unknown."""
    agent: str = ""
    """Who spoke or called: `claude`, `codex`, or a name."""
    tool: str = ""
    """The tool that was called, or that answered."""
    call: str = ""
    """What it was called with, in one line: a command line, or a path."""
    is_ok: bool | None = None
    """Whether a tool reported success; None for what is no result, or does not say."""
    files: tuple[str, ...] = ()
    """Paths that it touched, from the top of the repository where they lie below it."""
    origin: str = ""
    """Names the line of the transcript that it came from."""
    state: str = ""
    """What the worktree was when a command failed, as lines of an Environment; empty if unknown."""


def read_message(row: Mapping[str, Any]) -> Message | None:
    """Return the message of a row, None where a field is missing or of the wrong type."""
    found = read_row(Message, row)
    return found if found is not None and found.role in ROLES else None


STATUSES = ("open", "ended", "pruned")


class Head(Value):
    """A session. Moments are Unix seconds, 0 for none; texts are redacted, empty for none."""

    id: str
    started: int = 0
    host: str = ""
    """The agent host that it was captured from, such as `claude`."""
    agent: str = ""
    """Who works, unless a message names another."""
    title: str = ""
    parent: str = ""
    """The session that it was forked from."""
    parent_messages: int = 0
    """How many messages the parent had by then."""
    worktree: str = ""
    """The top of the worktree in which it began."""
    branch: str = ""
    status: str = "open"
    """`open`, `ended`, or `pruned`: ended, and its messages were removed."""
    ended: int = 0
    summary: str = ""


def read_head(row: Mapping[str, Any]) -> Head | None:
    """Return the head of a row, None where a field is of the wrong type."""
    found = read_row(Head, row)
    return found if found and found.id and found.status in STATUSES else None


MOST_CONTENT = 600
"""Characters of a statement; what is longer is no single statement."""
_FINDING_TEXTS = ("id", "session", "content", "title", "category")


class Finding(Value):
    """One statement about a project, redacted, with its evidence.

    `messages` are the numbers of the messages of the session that back it, in order; `importance`
    is 0 to 1; `signals` are names of `SIGNALS`. `fields` are pairs of a name and a text:
    `agent` (who worked), `said` (the moment of the last message), and for an error `command`,
    `failure`, `changes`, `fix` and `error_signature`.
    """

    id: str
    session: str
    content: str
    title: str
    category: str
    confidence: str
    importance: float
    messages: tuple[int, ...]
    files: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    signals: tuple[str, ...] = ()
    fields: tuple[tuple[str, str], ...] = ()
    place: int = 0
    """Which sentence of the last message says it, from 0."""

    def field(self, name: str) -> str:
        """Return one of `fields`, empty where it is absent."""
        return dict(self.fields).get(name, "")

    def plain(self) -> dict[str, Any]:
        """Return the row of a finding, as JSON has it."""
        return super().plain() | {"fields": dict(self.fields)}


def finding_id(session: str, content: str) -> str:
    """Return `f-` and 12 hexadecimal digits: the same statement of a session is one finding."""
    statement = f"{session}\n{_normal(content)}"
    return f"f-{digest(statement.encode(errors='replace'), 6)}"


def fingerprint(content: str) -> str:
    """Return 16 hexadecimal digits of a statement, the same in every session."""
    return digest(_normal(content).encode(errors="replace"))


def _normal(content: str) -> str:
    """Return a statement without what does not change it: case, white space, its last mark."""
    return " ".join(content.lower().split()).rstrip(".!")


def read_finding(row: Mapping[str, Any]) -> Finding | None:
    """Return the finding of a row, None where a field is missing, empty or out of its range."""
    found = read_row(Finding, row)
    is_whole = (
        found is not None
        and all(getattr(found, name) for name in _FINDING_TEXTS)
        and found.confidence in CONFIDENCES
        and 0 <= found.importance <= 1
    )
    return found if is_whole else None


INTENT = "user-intent"
"""A person stated it as a rule, decision or wish, asked to keep it, or promotes it by hand."""
PIN = "pin"
"""A person asked to pin it."""
TWO_SESSIONS = "two-sessions"
"""Two or more sessions say so, forks of one counting once."""
RESOLVED = "resolved"
"""An error with what resolved it: the same command failed, then worked."""
TWO_AGENTS = "two-agents"
"""Two or more agents say so."""
IMPORTANT = "important"
"""Its importance is `LEAST_IMPORTANT` or more."""
SIGNALS = {INTENT: 5, PIN: 5, TWO_SESSIONS: 2, RESOLVED: 2, TWO_AGENTS: 1, IMPORTANT: 1}
"""The reasons to keep a finding, with the points of each."""
LEAST_IMPORTANT = 0.7


class PromotionPreset(Value):
    """What a finding needs to be promoted: points, importance, and characters of its statement."""

    points: int
    importance: float
    characters: int


PRESETS = {
    "conservative": PromotionPreset(4, 0.4, 50),
    "balanced": PromotionPreset(3, 0.25, 30),
    "aggressive": PromotionPreset(2, 0.15, 20),
}


def signals_of(finding: Finding, sessions: int, agents: int) -> tuple[str, ...]:
    """Return all signals of a finding in the order of the table.

    `sessions` and `agents` count those that say the same, its own included.
    """
    derived = {
        TWO_SESSIONS: sessions > 1,
        TWO_AGENTS: agents > 1,
        IMPORTANT: finding.importance >= LEAST_IMPORTANT,
    }
    return tuple(name for name in SIGNALS if derived.get(name, name in finding.signals))


def points_of(signals: Iterable[str]) -> int:
    """Return the points of signals; unknown ones have none."""
    return sum(SIGNALS.get(name, 0) for name in set(signals))


def shortfall(finding: Finding, points: int, preset: PromotionPreset) -> str:
    """Return what a finding lacks for a preset, empty where it lacks nothing.

    What a person stated as a rule or asked to keep may be as short as it is.
    """
    if PIN in finding.signals or INTENT in finding.signals:
        return ""
    if points < preset.points:
        return f"{points} of {preset.points} points"
    if finding.importance < preset.importance:
        return f"importance {finding.importance:g}, {preset.importance:g} needed"
    if len(finding.content) < preset.characters:
        return f"{len(finding.content)} characters, {preset.characters} needed"
    return ""


def moment_text(second: int) -> str:
    """Return a second as text, empty for none."""
    return timestamps.render(second) if second else ""


MOST_LINE = 120
"""Characters of a text in one short line, for checkpoints, summaries and lists."""


def line(text: str) -> str:
    """Return the first line that says something, cut between words if it is long."""
    rows = (" ".join(row.split()) for row in text.split("\n"))
    words = next((row for row in rows if row.strip("#`*->|= ")), "")
    if len(words) <= MOST_LINE:
        return words
    cut = words[: MOST_LINE - 2]
    return f"{cut.rpartition(' ')[0] or cut} …"


def printable(text: str) -> str:
    """Return a text with a space for each character that cannot be shown, such as an escape."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else " " for char in text)
