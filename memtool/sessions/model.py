"""The values of sessions: messages, heads, findings and ids.

This module owns these values, their conversion to and from journal rows, and the table of signals.
It uses neither disk nor clock. Everything is redacted before it is stored, and stays private to the
clone: only promotion turns a finding into a memory.
"""

from __future__ import annotations

from memtool.memory import timestamps
from memtool.memory.fields import CONFIDENCES
from memtool.memory.ids import ALPHABET, SUFFIX_LENGTH
from memtool.value import Value, digest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import Any, TypeVar

    V = TypeVar("V", bound=Value)

CUT = " …"
"""Marks the end of a call that was cut."""
FOLDER = "sessions"
"""Name of the directory of all sessions, below the private directory in the git directory."""


def parse_json(text: Any) -> Any:
    """Parse a text as JSON; None if it is not JSON."""
    import json

    try:
        return json.loads(text)
    except (TypeError, ValueError, RecursionError):
        return None


def parse_json_row(text: Any) -> dict[str, Any] | None:
    """Parse a text as a JSON object; None if it is not one."""
    value = parse_json(text)
    return value if isinstance(value, dict) else None


def to_json_line(row: Mapping[str, Any]) -> str:
    """Format a row as one line of JSON, with its line feed."""
    import json

    return json.dumps(row, ensure_ascii=False, separators=(",", ":")) + "\n"


def as_dict(value: Any) -> dict[str, Any]:
    """Return the value if it is a dict, else an empty dict."""
    return value if isinstance(value, dict) else {}


def as_list(value: Any) -> list[Any]:
    """Return the value if it is a list, else an empty list."""
    return value if isinstance(value, list) else []


_EMPTY: tuple[object, ...] = (None, "", 0, [])


def as_row(value: Value) -> dict[str, Any]:
    """Convert a value to a journal row, without empty optional fields."""
    optional = type(value).field_defaults
    return {
        name: field
        for name, field in value.plain().items()
        if name not in optional or field is False or field not in _EMPTY
    }


def read_row(kind: type[V], row: Mapping[str, Any]) -> V | None:
    """Read a value from a row; None if a field is missing or of the wrong type.

    Unknown keys are ignored: another version may have written them.
    """
    fields, keys = {}, dict(kind.json_names)
    try:
        for name in kind.field_names:
            key = keys.get(name, name)
            if key in row or name not in kind.field_defaults:
                fields[name] = _FIELD_READERS[kind.__annotations__[name]](row[key])
    except (KeyError, TypeError):
        return None
    return kind(**fields)


def _require_type(*types: type) -> Callable[[Any], Any]:
    def read(value: Any) -> Any:
        if type(value) not in types:
            raise TypeError
        return value

    return read


def _require_tuple(item: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda values: tuple(map(item, _require_type(list, tuple)(values)))


_FIELD_READERS: dict[str, Callable[[Any], Any]] = {
    "str": _require_type(str),
    "int": _require_type(int),
    "float": lambda value: float(_require_type(int, float)(value)),
    "bool": _require_type(bool),
    "bool | None": _require_type(bool, type(None)),
    "tuple[str, ...]": _require_tuple(_require_type(str)),
    "tuple[int, ...]": _require_tuple(_require_type(int)),
    "tuple[tuple[str, str], ...]": lambda pairs: tuple(
        (name, text) for name, text in _require_type(dict)(pairs).items() if isinstance(text, str)
    ),
    "Mapping[str, Any] | None": _require_type(dict, type(None)),
}
"""The reader of each field type, by annotation."""


ID_PREFIX = "ses"
MAX_ID_CHARS = 100
_FIRST = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789")
_SAFE = _FIRST | frozenset("._-")


def draw_id(second: int, random: bytes) -> str:
    """Return `ses-<date>-<4 base32 characters>`; `random` gives at least 3 bytes."""
    bits = int.from_bytes(random[:3], "big")
    suffix = "".join(ALPHABET[bits >> 5 * place & 31] for place in range(SUFFIX_LENGTH))
    return f"{ID_PREFIX}-{timestamps.format_date(second)}-{suffix}"


def is_id(text: str) -> bool:
    """Return whether a text is safe as a directory name: it cannot lead to another directory."""
    return 3 <= len(text) <= MAX_ID_CHARS and text[0] in _FIRST and _SAFE.issuperset(text)


def name_host_session(host: str, host_id: str) -> str:
    """Return the session id for a host's own id: the same if it is safe, else a hash."""
    return host_id if is_id(host_id) else hash_id(host, host_id)


def hash_id(host: str, host_id: str) -> str:
    """Return a session id that does not reveal the host's own id."""
    return f"{host}-{digest(host_id.encode(errors='surrogatepass'))}"


ROLES = ("user", "assistant", "tool", "system")


class Message(Value):
    """One message, redacted before it is stored.

    The role `user` is only for text that a person typed. Text that hosts add to a prompt, such as
    commands and summaries, has another role.
    """

    number: int
    """Position in the session, from 1; 0 before it is assigned."""
    role: str
    """`user` (typed by a person), `assistant`, `tool` (a tool's answer) or `system`."""
    text: str
    moment: int = 0
    """Unix seconds; 0 if unknown."""
    agent: str = ""
    """The agent that spoke or called a tool, such as `claude`."""
    tool: str = ""
    """The tool that was called or that answered."""
    call: str = ""
    """The arguments of the call in one line: a command line or a path."""
    is_ok: bool | None = None
    """Whether the tool reported success; None if this is not a result or it does not say."""
    files: tuple[str, ...] = ()
    """Paths that it touched, relative to the top of the repository if they are inside it."""
    origin: str = ""
    """Id of the transcript line that it came from."""
    state: str = ""
    """State of the worktree when a command failed, as lines of a FailureEnvironment; empty if
    unknown."""


def read_message(row: Mapping[str, Any]) -> Message | None:
    """Read a message from a row; None if a field is missing or of the wrong type."""
    message = read_row(Message, row)
    return message if message is not None and message.role in ROLES else None


STATUSES = ("open", "ended", "pruned")


class Session(Value):
    """A session's head. Times are Unix seconds, 0 if unset; texts are redacted, empty if unset."""

    id: str
    started: int = 0
    host: str = ""
    """The agent host that it was captured from, such as `claude`."""
    agent: str = ""
    """The agent at work, unless a message names another."""
    title: str = ""
    parent: str = ""
    """The session that it was forked from."""
    parent_messages: int = 0
    """Number of messages that the parent had at the fork."""
    worktree: str = ""
    """Top of the worktree in which it began."""
    branch: str = ""
    status: str = "open"
    """`open`, `ended`, or `pruned` (ended, and its messages were removed)."""
    ended: int = 0
    summary: str = ""


def read_head(row: Mapping[str, Any]) -> Session | None:
    """Read a session head from a row; None if a field is of the wrong type."""
    head = read_row(Session, row)
    return head if head and head.id and head.status in STATUSES else None


MAX_CONTENT_CHARS = 600
"""Maximum characters of a finding; a longer text is not a single statement."""
_FINDING_TEXTS = ("id", "session", "content", "title", "category")
READERS = BY_RULES, BY_MODEL = ("rules", "model")
"""Who found and worded it."""


class Finding(Value):
    """One statement about a project, redacted, with its evidence.

    `messages` are the numbers of the session's messages that support it, in order. `importance` is
    0 to 1. `signals` are names of `SIGNALS`. `fields` are pairs of name and text: `agent` (who
    worked), `said` (time of the last message), and for an error `command`, `failure`, `changes`,
    `fix` and `error_signature`. A finding of the history has no messages, but `commit` and `kind`.
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
    """Index of the sentence in the last message, from 0."""
    reader: str = BY_RULES
    """One of `READERS`."""

    def field(self, name: str) -> str:
        """Return one of `fields`, empty if absent."""
        return dict(self.fields).get(name, "")

    @property
    def sources(self) -> tuple[str, ...]:
        """The commit that states it, or the messages, as sources of a memory."""
        commit = self.field("commit")
        if commit:
            return (f"commit:{commit}",)
        return tuple(f"session:{self.session}#{number}" for number in self.messages)

    def plain(self) -> dict[str, Any]:
        """Return the finding as a JSON row."""
        return super().plain() | {"fields": dict(self.fields)}


def make_finding_id(session: str, content: str) -> str:
    """Return `f-` and 12 hex digits. The same statement in one session always gets the same id."""
    statement = f"{session}\n{_normalize(content)}"
    return f"f-{digest(statement.encode(errors='replace'), 6)}"


def compute_fingerprint(content: str) -> str:
    """Return 16 hex digits that identify a statement in any session."""
    return digest(_normalize(content).encode(errors="replace"))


def _normalize(content: str) -> str:
    """Remove what does not change a statement's meaning: case, white space, the final mark."""
    return " ".join(content.lower().split()).rstrip(".!")


def shorten_ids(ids: Sequence[str]) -> dict[str, str]:
    """Return the shortest unique beginning of each id of a finding, of at least four digits."""
    short = {}
    for id_ in ids:
        length = len("f-") + 4
        while length < len(id_) and any(o != id_ and o.startswith(id_[:length]) for o in ids):
            length += 1
        short[id_] = id_[:length]
    return short


def read_finding(row: Mapping[str, Any]) -> Finding | None:
    """Read a finding from a row; None if a field is missing, empty or out of range."""
    finding = read_row(Finding, row)
    is_whole = (
        finding is not None
        and all(getattr(finding, name) for name in _FINDING_TEXTS)
        and finding.confidence in CONFIDENCES
        and finding.reader in READERS
        and 0 <= finding.importance <= 1
    )
    return finding if is_whole else None


INTENT = "user-intent"
"""A person asked to remember it, or promotes it by hand."""
PIN = "pin"
"""A person asked to pin it."""
TWO_SESSIONS = "two-sessions"
"""Two or more sessions support it; forks of one session count once."""
RESOLVED = "resolved"
"""An error with its fix: the same command failed, then worked."""
TWO_AGENTS = "two-agents"
"""Two or more agents support it."""
IMPORTANT = "important"
"""Its importance is at least `MIN_IMPORTANT`."""
SIGNALS = {INTENT: 5, PIN: 5, TWO_SESSIONS: 2, TWO_AGENTS: 2, RESOLVED: 1, IMPORTANT: 1}
"""Points of each reason to promote a finding. What a rule alone recognises never has enough:
it needs a second session, a second agent, or a person."""
MIN_IMPORTANCE = 0.7


class PromotionPreset(Value):
    """What a finding needs to be promoted: points, importance, and characters of its content."""

    points: int
    importance: float
    characters: int


PRESETS = {
    "conservative": PromotionPreset(4, 0.4, 50),
    "balanced": PromotionPreset(3, 0.25, 30),
    "aggressive": PromotionPreset(2, 0.15, 20),
}


def collect_signals(finding: Finding, sessions: int, agents: int) -> tuple[str, ...]:
    """Return all signals of a finding in the order of the table.

    `sessions` and `agents` count those that support it, including its own.
    """
    derived = {
        TWO_SESSIONS: sessions > 1,
        TWO_AGENTS: agents > 1,
        IMPORTANT: finding.importance >= MIN_IMPORTANCE,
    }
    return tuple(name for name in SIGNALS if derived.get(name, name in finding.signals))


def count_points(signals: Iterable[str]) -> int:
    """Add up the points of signals; unknown signals count 0."""
    return sum(SIGNALS.get(name, 0) for name in set(signals))


def find_shortfall(finding: Finding, points: int, preset: PromotionPreset) -> str:
    """Explain what a finding lacks for a preset; empty if nothing.

    A statement with the signal `INTENT` or `PIN` lacks nothing, however short it is. A finding of
    the history always lacks a person who promotes it.
    """
    if finding.field("commit"):
        return "waits for a user"
    if PIN in finding.signals or INTENT in finding.signals:
        return ""
    if points < preset.points:
        return f"worth keeping? {points} of {preset.points} points"
    if finding.importance < preset.importance:
        return f"importance {finding.importance:g}, {preset.importance:g} needed"
    if len(finding.content) < preset.characters:
        return f"{len(finding.content)} characters, {preset.characters} needed"
    return ""


def format_second(second: int) -> str:
    """Format Unix seconds; empty for 0."""
    return timestamps.render(second) if second else ""


MAX_LINE = 120
"""Maximum characters of a short line in checkpoints, summaries and lists."""


def first_line(text: str) -> str:
    """Return the first line with content, cut between words if it is long."""
    rows = (" ".join(row.split()) for row in text.split("\n"))
    words = next((row for row in rows if row.strip("#`*->|= ")), "")
    if len(words) <= MAX_LINE:
        return words
    cut = words[: MAX_LINE - 2]
    return f"{cut.rpartition(' ')[0] or cut} …"


def make_printable(text: str) -> str:
    """Replace each unprintable character, such as an escape, with a space."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else " " for char in text)
