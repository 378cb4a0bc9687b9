"""Settings: one table of options, read from `config.toml` in the memory directory.

The table is the only place that names an option: it gives defaults, and through `options` it
validates, and is printed by `memtool config` and in the manual. Anything unknown is an error, never
a silent default.
"""

from __future__ import annotations

from memtool.errors import MemtoolError
from memtool.memory.categories import DEFAULT_CATEGORIES, Category
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    Row = (
        tuple[str, "Setting", str]
        | tuple[str, "Setting", str, tuple[float, float]]
        | tuple[str, "Setting", str, tuple[str, ...]]
    )

CONFIG_NAME = "config.toml"
POINTER_NAME = ".memtool.toml"
"""At the top of a repository: says in which directory the memories are, if not `.memory`."""
DEFAULT_DIRECTORY = ".memory"

Scalar = str | int | float | bool
Setting = Scalar | tuple[str, ...] | dict[str, str]
"""What a setting holds: a scalar, a list of texts, or a table from fingerprints to reasons."""

ROWS: tuple[Row, ...] = (
    ("trust.ref", "", ("the ref whose tree is trusted; by default the remote's default branch as "
      "last fetched, whose own settings decide: no branch vouches for itself")),
    ("trust.allowed_signers", "", ("path of the allowed-signers file inside the trusted ref; read "
      "from the same settings")),
    ("search.limit", 10, "results of search and list when --limit is not given", (1, 100_000)),
    ("search.preset", "balanced", ("how much an answer to a prompt must hold: what probably "
      "answers it, or only what almost certainly does"), ("balanced", "precision")),
    ("search.rerank", "score", ("the order of what answers a prompt: by relevance and all "
      "factors, by relevance alone, or by the last confirmation"),
     ("score", "relevance", "newest")),
    ("search.access", 0.0, ("how much a memory gains that was shown very often; with 0 the same "
      "question is answered the same on every machine"), (0, 0.2)),
    ("decay.formula", "exponential", ("how memories fade in the ranking: at the rate of their "
      "category, by half in a time and then ever slower, or by a twentieth a week"),
     ("exponential", "half-life", "weekly")),
    ("decay.half_life_days", 90.0, "days in which half-life leaves half of the freshness",
     (0.01, 36_500)),
    ("decay.accesses", False, ("let memories fade slower that were shown often in this clone; "
      "without it the same question is answered the same on every machine")),
    ("inject.budget_tokens", 2_000, "most tokens of an injected block", (0, 100_000)),
    ("inject.global", True, "inject the user's global memories beside those of the project"),
    ("inject.pinned_most", 5, "most memories in the pinned tier", (0, 50)),
    ("inject.pinned_tokens", 400, "most tokens of the pinned tier", (0, 100_000)),
    ("inject.retrieval_most", 5, "most memories in the retrieval tier", (0, 50)),
    ("inject.retrieval_tokens", 1_500, "most tokens of the retrieval tier", (0, 100_000)),
    ("inject.threshold", 0.5, ("drop what scores below this share of the best hit; where it is "
      "not set, search.preset precision means 0.7"), (0, 1)),
    ("inject.trust", "local", "least trust of what is injected",
     ("local", "committed", "trusted", "signed")),
    ("ledger.enabled", True, ("note in the git directory which memories were shown, and how long "
      "answers took; never what was asked")),
    ("capture.auto", True, ("capture sessions and promote what they taught without being asked; "
      "off where the project or the user says so")),
    ("redaction.allow_emails", (), "addresses that may stand in memories"),
    ("redaction.allow_domains", (), ("domains whose addresses may stand in memories, with all "
      "that lies below them")),
    ("redaction.allow", {}, ("secrets that may stand in memories, each by its fingerprint, as "
      "memtool redact --dry-run --json shows it, with the reason")),
    ("check.duplicate_threshold", 0.82, ("from this likeness on, 0 to 1, a new memory repeats "
      "another one and is refused"), (0, 1)),
    ("maintain.most_alive", 3_000, ("living memories from which on maintain archives the least "
      "important"), (1, 10_000_000)),
    ("maintain.kept_alive", 2_700, "living memories that it leaves then", (0, 10_000_000)),
    ("maintain.often", 3, ("accesses by which a memory outlives its time to live, and a candidate "
      "is confirmed before its first day is over"), (1, 1_000_000)),
    ("sessions.session_mb", 10, ("most megabytes of one session; near it, what is there is "
      "compressed"), (1, 10_000)),
    ("sessions.total_mb", 1_000, ("most megabytes of all sessions together; from there on none "
      "begins"), (1, 1_000_000)),
    ("promote.preset", "balanced", ("how much evidence a finding of a session needs to become a "
      "memory: 4, 3 or 2 points"), ("conservative", "balanced", "aggressive")),
    ("extractor.command", (), ("a program that reads sessions for findings in place of the rules: "
      "prompt on stdin, JSON on stdout; run only from the user's own settings, as memtool "
      "--global config extractor.command claude,-p")),
    ("extractor.timeout_s", 180, "seconds that it may take for one session", (1, 3_600)),
    ("extractor.retries", 1, "how often it is asked again where its answer is no JSON", (0, 5)),
    ("extractor.confidence", 0.75, "least confidence of what it finds", (0, 1)),
    ("purge.after_days", 30, "days after which a forgotten memory may be removed for good",
     (0, 36_500)),
    ("review.policy", "warn", ("what a decision that a change does not mention is to memtool "
      "review: told, or a failure"), ("warn", "fail")),
)  # fmt: skip
"""Each option: `section.name`, its default, what it is for, and what is allowed, if that is not
all of its type: the least and the most number, or the texts to choose from.

Rows are plain, so that a start of memtool makes nothing of them; `options` knows them by name.
"""
PERSONAL = frozenset(
    (
        "search.limit",
        "inject.budget_tokens",
        "inject.global",
        "ledger.enabled",
        "capture.auto",
        "sessions.session_mb",
        "sessions.total_mb",
        "extractor.command",
        "extractor.timeout_s",
        "extractor.retries",
        "extractor.confidence",
    )
)
"""Options about the user: where a project is silent, the settings beside their global memories
hold."""
_DEFAULT: dict[str, Setting] = {row[0]: row[1] for row in ROWS}
MOST_BYTES = 256 * 1024


class Config(Value):
    """The settings of one tree. `given` holds what the file says, by dotted key.

    `personal` is what the user's own file says of the options that are about them.
    """

    given: dict[str, Setting]
    categories: dict[str, Category]
    personal: Mapping[str, Setting] = {}

    def setting(self, key: str) -> Setting:
        """Return a setting or its default. Raises MemtoolError for an unknown key."""
        default = _DEFAULT[key] if key in _DEFAULT else _table_of(key)
        return self.given.get(key, self.personal.get(key, default))

    def over(self, user: Config) -> Config:
        """Return these settings above the user's own, as far as they are about the user."""
        personal = {key: value for key, value in user.given.items() if key in PERSONAL}
        return self.replace(personal=personal)

    def number(self, key: str) -> float:
        """Return a numeric setting."""
        return float(self._scalar(key))

    def count(self, key: str) -> int:
        """Return a whole-number setting."""
        return int(self._scalar(key))

    def text(self, key: str) -> str:
        """Return a text setting."""
        return str(self._scalar(key))

    def texts(self, key: str) -> tuple[str, ...]:
        """Return a setting that is a list of texts, or the names of one that is a table."""
        value = self.setting(key)
        return tuple(value) if isinstance(value, tuple | dict) else ()

    def _scalar(self, key: str) -> Scalar:
        value = self.setting(key)
        assert isinstance(value, Scalar)
        return value


DEFAULTS = Config(given={}, categories=DEFAULT_CATEGORIES)


def _table_of(key: str) -> Setting:
    """Return the default of the table that a key is an entry of. Raises MemtoolError for none."""
    from memtool.store import options

    return options.option(key).default


def parse(data: bytes, path: str) -> Config:
    """Read a config file.

    Raises:
        MemtoolError: it is not TOML, or holds a setting that does not exist or cannot be so.
    """
    tables = read_toml(data, path)
    if not tables:
        return DEFAULTS
    from memtool.store import options  # most files hold comments alone

    return options.parsed(tables, path)


def read_toml(data: bytes, path: str) -> dict[str, Any]:
    """Parse TOML bytes. Raises MemtoolError with the line where they are wrong."""
    if len(data) > MOST_BYTES:
        raise MemtoolError(f"{path} has {len(data):,} bytes, {MOST_BYTES:,} are allowed",
                           hint=f"edit {path}", code="config")  # fmt: skip
    try:
        text = data.decode()
        from memtool.store import plain_toml  # where there is no file, nothing reads one

        known = plain_toml.read(text)
        if known is not None:
            return known
        import tomllib  # more than an interpreter start, so only where it is needed

        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # of TOML, UTF-8, digits or brackets
        raise MemtoolError(f"{path} is not TOML: {error}", hint=f"edit {path}",
                           code="config") from None  # fmt: skip
