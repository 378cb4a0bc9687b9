"""Settings: the table of options, and the values from the files of a project and of the user.

The table is the single source for defaults, validation, `memtool config` and the manual. Anything
unknown is an error, never a silent default.
"""

from __future__ import annotations

from memtool.errors import MemtoolError
from memtool.memory.fields import DEFAULT_CATEGORIES, PRIVATE_LABELS, UNKNOWN, Category
from memtool.memory.likeness import SAME
from memtool.store import toml
from memtool.store.toml import DEFAULT_ENTRY
from memtool.value import HEX, Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from memtool.store.trust_rules import TrustRule

    Row = (
        tuple[str, "Setting", str]
        | tuple[str, "Setting", str, tuple[float, float]]
        | tuple[str, "Setting", str, tuple[str, ...]]
    )

FORMAT = 1
"""The format of memory trees that this version writes: `upkeep/migration.py` leads to it."""
CONFIG_NAME = "config.toml"
DEFAULT_DIRECTORY = ".memory"

Scalar = str | int | float | bool
Setting = Scalar | tuple[str, ...] | dict[str, str]
"""The value of a setting: a scalar, a list of texts, or a table from fingerprints to reasons."""

ROWS: tuple[Row, ...] = (
    (
        "trust.ref",
        "",
        (
            "the ref whose tree is trusted; by default the remote's default branch as "
            "last fetched, whose own settings decide: no branch vouches for itself"
        ),
    ),
    (
        "trust.allowed_signers",
        "",
        ("path of the allowed-signers file on the trusted branch; read from the same settings"),
    ),
    ("search.limit", 10, "results of search and list when --limit is not given", (1, 100_000)),
    (
        "search.preset",
        "balanced",
        (
            "how much an answer to a prompt must hold: what probably "
            "answers it, or only what almost certainly does"
        ),
        ("balanced", "precision"),
    ),
    (
        "search.language",
        "english",
        (
            "the language of memories in Latin letters, whose endings do "
            "not count; other scripts say it themselves"
        ),
        (
            "english",
            "catalan",
            "czech",
            "danish",
            "dutch",
            "estonian",
            "finnish",
            "french",
            "german",
            "hungarian",
            "indonesian",
            "italian",
            "lithuanian",
            "norwegian",
            "polish",
            "portuguese",
            "romanian",
            "spanish",
            "swedish",
            "turkish",
        ),
    ),
    (
        "search.rerank",
        "score",
        (
            "the order of what answers a prompt: by relevance and all "
            "factors, by relevance alone, or by the last confirmation"
        ),
        ("score", "relevance", "newest"),
    ),
    (
        "search.degrade",
        "off",
        (
            "on looks at less where answers here were slow: over 300 ms at the "
            "95th percentile of the last 100; such an answer says so, and another machine may give "
            "another"
        ),
        ("off", "on"),
    ),
    (
        "search.access_boost",
        0.05,
        (
            "how much a memory gains that was shown a hundred times in this "
            "clone; one shown three times gains a third of it, and below that nothing. With 0 the "
            "same question is answered the same on every machine"
        ),
        (0, 0.2),
    ),
    (
        "search.semantic",
        "auto",
        (
            "auto finds memories by meaning too, if the extra semantic and a model are installed; "
            "only the user's own settings say so, as memtool --global config search.semantic off"
        ),
        ("auto", "off"),
    ),
    (
        "search.model",
        "",
        (
            "a directory with another sentence model, as /… or ~/…: a BERT with config.json, "
            "model.safetensors and tokenizer.json; only the user's own settings name it, as "
            "memtool --global config search.model ~/models/other"
        ),
    ),
    (
        "search.sessions",
        False,
        (
            "search also asks the private sessions of the clone where the "
            "memories do not answer, as with --deep; only the user's own settings say so, as "
            "memtool --global config search.sessions true"
        ),
    ),
    (
        "verify.online",
        False,
        (
            "memtool verify --online may ask the sites that memories cite, "
            "each with one HEAD request; only the user's own settings say so, as memtool --global "
            "config verify.online true"
        ),
    ),
    (
        "decay.preset",
        "steady",
        (
            "how memories fade: steady is slow, and in the ranking only "
            "freshness fades; by the others importance does, too: by the λ of the category, by "
            "half in 30 days and then ever slower, or by a twentieth a week"
        ),
        ("steady", "exponential", "half-life", "weekly"),
    ),
    (
        "decay.minimum_importance",
        0.1,
        (
            "maintain --weekly proposes to archive what decay has left "
            "less importance than this, times its own; never what is pinned or eternal, nor, until "
            "it is due for review, what is of high confidence"
        ),
        (0, 1),
    ),
    ("inject.budget_tokens", 2_000, "most tokens of an injected block", (0, 100_000)),
    ("inject.global", True, "inject the user's global memories with those of the project"),
    ("inject.hold", True, "hold a command once a session if a failure of it is on record"),
    (
        "inject.fleet",
        False,
        (
            "inject memories of other repositories after those of the project; only the user's "
            "own settings say so, as memtool --global config inject.fleet true"
        ),
    ),
    ("inject.max_pinned", 5, "most memories in the pinned tier", (0, 50)),
    ("inject.pinned_tokens", 400, "most tokens of the pinned tier", (0, 100_000)),
    ("inject.retrieval_most", 5, "most memories in the retrieval tier", (0, 50)),
    (
        "inject.titles",
        5,
        (
            "most titles below a block, one line each, of memories that may help but hold less of "
            "the prompt than an answer must"
        ),
        (0, 20),
    ),
    (
        "inject.title_tokens",
        800,
        (
            "most tokens of a list of all decisions in the text at the start of a session; a "
            "longer list is replaced by the five that commits named last, 0 means no list"
        ),
        (0, 10_000),
    ),
    ("inject.retrieval_tokens", 1_500, "most tokens of the retrieval tier", (0, 100_000)),
    (
        "inject.min_coverage",
        0.4,
        (
            "what an answer must hold of what a prompt says, counted in rare words; "
            "where it is not set, search.preset precision means 0.6"
        ),
        (0, 1),
    ),
    (
        "inject.sufficient_rare_words",
        2.4,
        (
            "rare words that are always enough; where it is not set, search.preset "
            "precision means 3.5"
        ),
        (0, 20),
    ),
    (
        "inject.min_rare_words",
        1.0,
        (
            "rare words that an answer must hold at least where a prompt has four "
            "or more words, or only everyday ones; small talk holds none"
        ),
        (0, 20),
    ),
    (
        "inject.threshold",
        0.6,
        (
            "drop what scores below this share of the best hit; where it is "
            "not set, search.preset precision means 0.8"
        ),
        (0, 1),
    ),
    ("inject.candidate_pool", 15, "how many of the best hits are looked at for a block", (1, 100)),
    ("inject.per_source", 2, "most memories of one source in a block", (1, 50)),
    (
        "inject.duplicate_threshold",
        SAME,
        ("from this likeness of two memories on, 0.5 to 1, the better one stands for both"),
        (0.5, 1),
    ),
    (
        "inject.digest_threshold",
        0.8,
        "share of the best score from which a digest comes first",
        (0, 1),
    ),
    (
        "inject.local_share",
        0.4,
        (
            "share of a tier that the less trusted get where there is "
            "something more trusted: of the pinned one what is not committed"
        ),
        (0, 1),
    ),
    (
        "inject.global_most",
        2,
        "most global memories in a block, in addition to the project's",
        (0, 50),
    ),
    (
        "inject.trust",
        "local",
        "least trust of what is injected",
        ("local", "committed", "trusted", "signed"),
    ),
    (
        "inject.unsettled",
        "mark",
        (
            "a memory that rests on what no longer holds, in a block: mark shows it with a line "
            "and what its premise is now, withhold shows only what its premise is now, unless it "
            "is pinned"
        ),
        ("mark", "withhold"),
    ),
    (
        "inject.ahead",
        "mark",
        (
            "what the trusted branch, as last fetched, has changed since this branch began: mark "
            "shows it in blocks, edit warnings, search and show, and hides nothing of this branch; "
            "off leaves it out, as on a release branch, in whose own settings it may stand"
        ),
        ("mark", "off"),
    ),
    (
        "inject.exclude_privacy",
        PRIVATE_LABELS,
        (
            "labels of privacy: memories with "
            "one are neither injected nor quoted in a digest, and search and list show them only "
            "to a person at a terminal, or where privacy:LABEL or the id asks for them"
        ),
    ),
    (
        "ledger.enabled",
        True,
        (
            "note in the git directory which memories were shown, and how long "
            "answers took; never what was asked"
        ),
    ),
    (
        "ledger.words",
        "off",
        (
            "on also keeps the words of searches without a hit, redacted, 200 of them for 90 days, "
            "so that a user can write what was missing; only the user's own settings say so, as "
            "memtool --global config ledger.words on"
        ),
        ("off", "on"),
    ),
    (
        "capture.auto",
        True,
        (
            "capture sessions and promote what they taught without being asked; "
            "off where the project or the user says so"
        ),
    ),
    (
        "capture.promote",
        False,
        (
            "when a session ends, make new candidates of what it taught: none "
            "is confirmed or committed, and only candidates change; only the user's own "
            "settings say so, as memtool --global config capture.promote true"
        ),
    ),
    (
        "capture.suggest",
        "on",
        (
            'tell an agent that a prompt such as "from now on …" may be worth keeping: '
            "at most three times a session"
        ),
        ("off", "on"),
    ),
    (
        "capture.traces",
        "off",
        (
            "list each error that was resolved in a session; off leaves out those of one session "
            "alone, unless the session is named"
        ),
        ("off", "on"),
    ),
    (
        "redaction.allow_emails",
        (),
        (
            "addresses that may be in memories, as ada@example.org, and domains whose addresses "
            "may, with all that lies below them, as example.org"
        ),
    ),
    (
        "redaction.author_emails",
        "allow",
        (
            "addresses in a key such as author, in a trailer such as Signed-off-by and in a "
            "licence: they may be in memories, or are redacted as in prose"
        ),
        ("allow", "redact"),
    ),
    (
        "redaction.allow",
        {},
        (
            "secrets that may be in memories, each by its fingerprint, as "
            "memtool redact --dry-run --json shows it, with the reason"
        ),
    ),
    (
        "check.duplicate_threshold",
        SAME,
        ("from this likeness on, 0 to 1, a new memory repeats another one and is refused"),
        (0, 1),
    ),
    (
        "maintain.max_active",
        3_000,
        (
            "living memories from which on maintain archives the least important, until nine "
            "tenths of this are left"
        ),
        (1, 10_000_000),
    ),
    (
        "maintain.schedule",
        (),
        (
            "the upkeep that maintain --due looks after, and that status says "
            "is due: nightly, weekly, monthly; without any, --due looks after all three"
        ),
        ("nightly", "weekly", "monthly"),
    ),
    (
        "maintain.prune_days",
        0,
        (
            "days after its end from which a session loses its messages; with "
            "0 only where all sessions together are at their limit"
        ),
        (0, 36_500),
    ),
    (
        "importance.learn",
        False,
        (
            "let maintain --weekly propose the importance of confirmed "
            "memories by how often they were used in this clone; only with --apply it is written"
        ),
    ),
    (
        "sessions.total_mb",
        1_000,
        ("most megabytes of all sessions together; from there on none begins"),
        (1, 1_000_000),
    ),
    (
        "promote.preset",
        "balanced",
        ("how much evidence a lesson of a session needs to become a memory: 4, 3 or 2 points"),
        ("conservative", "balanced", "aggressive"),
    ),
    (
        "extraction.enabled",
        True,
        (
            "read sessions for lessons; off where the project or the user "
            "says so, and then messages are stored and nothing is learned from them"
        ),
    ),
    (
        "extraction.categories",
        (),
        ("the categories that lessons may have, such as decision or error; all without any"),
    ),
    (
        "extraction.command",
        (),
        (
            "a program that reads sessions for lessons in place of the rules: "
            "prompt on stdin, JSON on stdout; run only from the user's own settings, as memtool "
            "--global config extraction.command claude,-p"
        ),
    ),
    (
        "extraction.resume",
        (),
        (
            "a program that goes on in the host's own session once that has "
            "ended, where {session} stands for its id, and else does as extraction.command: as "
            "memtool --global config extraction.resume "
            "claude,--resume,{session},--fork-session,-p,--tools="
        ),
    ),
    ("extraction.timeout_s", 180, "seconds that it may take for one session", (1, 3_600)),
    (
        "manager.enabled",
        False,
        (
            "after each session, let memtool curate plan in the background how "
            "candidates fit in: with capture.promote also those of that session, else those that "
            "were promoted before; the plan waits in memtool status, and nothing is applied; only "
            "the user's own settings say so, as memtool --global config manager.enabled true"
        ),
    ),
    (
        "purge.after_days",
        30,
        "days after which a forgotten memory may be removed for good",
        (0, 36_500),
    ),
    (
        "fleet.repositories",
        (),
        (
            "the repositories that search --fleet asks without a server: paths "
            "as /… or ~/…, globs of such, and remotes as https://… or git@…, which memtool fleet "
            "sync clones; only the user's own settings say so, as memtool --global config "
            "fleet.repositories ~/src/*,git@example.org:acme/billing.git"
        ),
    ),
    (
        "fleet.url",
        "",
        (
            "the server that search --fleet asks, with the name of the index, as "
            "https://host:9200/memories; http only to this machine; only the user's own settings "
            "name it, as memtool --global config fleet.url URL"
        ),
    ),
    (
        "fleet.allow",
        (),
        (
            "globs over org/name: the repositories whose memories may be shown; all "
            "without any; only the user's own settings say so"
        ),
    ),
    (
        "fleet.timeout_ms",
        300,
        (
            "milliseconds in which other repositories must have answered; "
            "then the answer is that of this one alone; only the user's own settings say so"
        ),
        (1, 60_000),
    ),
    (
        "fleet.team",
        "",
        (
            "the team that a repository belongs to, as team:NAME finds it in a fleet; "
            "a label that the repository gives itself"
        ),
    ),
    (
        "fleet.epoch",
        0,
        (
            "how often the history of the default branch was rewritten: memtool "
            "publish says when to raise it"
        ),
        (0, 1_000_000),
    ),
    (
        "commit.subject",
        "memory: {summary}",
        (
            "the subject of memtool's commits, with {summary} for what they do: as "
            "docs(memory): {summary} where conventional commits are required"
        ),
    ),
    (
        "commit.trailers",
        (),
        (
            "lines below the message of memtool's commits: Signed-off-by names the author, as the "
            "Developer Certificate of Origin asks, and others have a value, as Change-Type: docs"
        ),
    ),
    (
        "review.policy",
        "warn",
        "whether memtool review warns of a decision that a change does not mention, or fails",
        ("warn", "fail"),
    ),
    (
        "review.unsettled",
        "warn",
        (
            "whether memtool review warns of a confirmed memory that a change leaves unsettled, "
            "or fails"
        ),
        ("warn", "fail"),
    ),
)
"""Each option: `section.name`, default, purpose, and optionally the allowed values: minimum and
maximum of a number, or the texts to choose from.

Rows are plain tuples to keep the start of memtool fast; `BY_KEY` has them as `Option`.
"""
STRICT = (
    "inject.trust",
    "inject.exclude_privacy",
    "inject.budget_tokens",
    "inject.max_pinned",
    "inject.pinned_tokens",
    "inject.retrieval_most",
    "inject.retrieval_tokens",
    "inject.titles",
    "inject.local_share",
    "inject.global_most",
    "inject.unsettled",
)
"""Options that limit what an agent gets. The strictest value of user, trusted ref and worktree
applies: the last of the choices, the union of labels, or the smallest number."""
PERSONAL = frozenset(
    (
        "search.limit",
        "search.preset",
        "search.degrade",
        "search.semantic",
        "search.model",
        "search.sessions",
        "verify.online",
        "inject.budget_tokens",
        "inject.global",
        "inject.hold",
        "ledger.enabled",
        "ledger.words",
        "capture.auto",
        "capture.promote",
        "capture.suggest",
        "capture.traces",
        "promote.preset",
        "maintain.schedule",
        "maintain.prune_days",
        "sessions.total_mb",
        "extraction.enabled",
        "extraction.categories",
        "extraction.command",
        "extraction.resume",
        "extraction.timeout_s",
        "manager.enabled",
        "inject.fleet",
        "fleet.repositories",
        "fleet.url",
        "fleet.allow",
        "fleet.timeout_ms",
        "commit.subject",
        "commit.trailers",
        *STRICT,
    )
)
"""Options about the user. If a project does not set them, the user's global settings apply."""
USER_ONLY = {
    "search.semantic": "not used: only your own settings switch a model on or off",
    "search.model": "not used: only your own settings choose a model",
    "search.sessions": "not used: only your own settings open your sessions",
    "verify.online": "not used: only your own settings let sites be asked",
    "ledger.words": "not used: only your own settings let your words be kept",
    "capture.promote": "not used: only your own settings let sessions write candidates",
    "extraction.command": "not run: only your own settings choose a program",
    "extraction.resume": "not run: only your own settings choose a program",
    "manager.enabled": "not used: only your own settings start a manager",
    "inject.fleet": "not used: only your own settings let other repositories be heard",
    "fleet.repositories": "not used: only your own settings choose whom you ask",
    "fleet.url": "not used: only your own settings choose whom you ask",
    "fleet.allow": "not used: only your own settings choose whom you hear",
    "fleet.timeout_ms": "not used: only your own settings say how long you wait",
    "extraction.timeout_s": "not used: only your own settings bound your program",
}
"""Options that a project cannot set, with the message for one that does: no repository may choose
which programs run or which models are loaded on this machine."""
RETIRED = {
    "decay.accesses": "decay.preset says whether accesses count, see memtool help settings",
    "decay.half_life_days": "decay.preset half-life leaves half after 30 days",
    "extraction.confidence": "what the program finds counts from 0.75",
    "extraction.retries": "the program is asked once more where its answer is no JSON",
    "extractor.confidence": "what the program finds counts from 0.75",
    "extractor.retries": "the program is asked once more where its answer is no JSON",
    "maintain.archive_down_to": "maintain leaves nine tenths of maintain.max_active",
    "maintain.compress_days": "sessions are plain files; maintain.prune_days says when they go",
    "maintain.index_days": "maintain --monthly makes the index anew after four weeks",
    "maintain.kept_alive": "maintain leaves nine tenths of maintain.max_active",
    "maintain.often": "memtool confirm ID renews a memory, as does Upholds: ID in a commit",
    "sessions.session_mb": "a session holds 50 MB; sessions.total_mb limits all together",
}
"""Removed options, with their replacements; a file that still has one is read without it, and a
note says so."""
RENAMED = {
    "inject.share": "inject.min_coverage",
    "inject.most": "inject.sufficient_rare_words",
    "inject.floor": "inject.min_rare_words",
    "inject.looked_at": "inject.candidate_pool",
    "inject.pinned_most": "inject.max_pinned",
    "maintain.most_alive": "maintain.max_active",
    "search.access": "search.access_boost",
    "search.semantic": "search.model",
    "extractor.command": "extraction.command",
    "extractor.resume": "extraction.resume",
    "extractor.timeout_s": "extraction.timeout_s",
    "redaction.allow_domains": "redaction.allow_emails",
}
"""Old names of settings, which work for one version, with the names that they have now.

An old name may be that of a choice now; a text that is no choice means the old setting.
"""
JOINED = ("redaction.allow_domains",)
"""Old names of lists that are added to the list of the new name."""
CATEGORY_LIST_KEY = "extraction.categories"
BY_CATEGORY = frozenset(
    (
        "inject.min_coverage",
        "inject.sufficient_rare_words",
        "inject.min_rare_words",
        "inject.threshold",
    )
)
"""Numbers that may differ by category, such as `inject.threshold.decision`. In the file the setting
is then a table, with `default` for all other categories."""
_DEFAULT_VALUES: dict[str, Setting] = {row[0]: row[1] for row in ROWS}


class Config(Value):
    """The settings of one tree. `values` are those of its file, by dotted key.

    `personal` are the user's own values for options in PERSONAL, `rules` those of
    `[[trust.rules]]`. `format` is that of the whole tree, 1 if the file names none. `old_keys` are
    the keys in RENAMED and RETIRED that the file has.
    """

    values: dict[str, Setting]
    categories: dict[str, Category]
    personal: Mapping[str, Setting] = {}
    format: int = 1
    rules: tuple[TrustRule, ...] = ()
    old_keys: tuple[str, ...] = ()

    @property
    def is_newer(self) -> bool:
        """Whether the tree has a newer format, which this version can read but not write."""
        return self.format > FORMAT

    def setting(self, key: str) -> Setting:
        """Return the value of a setting or its default. Raises MemtoolError for an unknown key."""
        default = _DEFAULT_VALUES[key] if key in _DEFAULT_VALUES else find_option(key).default
        return self.values.get(key, self.personal.get(key, default))

    def with_user(self, user: Config) -> Config:
        """Return these settings with the user's own as fallback for options in PERSONAL."""
        personal = {key: value for key, value in user.values.items() if key in PERSONAL}
        return self.replace(personal=personal)

    def with_strictest(self, trusted: Iterable[Config]) -> Config:
        """Return these settings with the strictest value for each option in STRICT.

        `trusted` are the settings of trusted refs. One that does not set an option counts with the
        user's value or the default, so that no branch can loosen a limit on its own.
        """
        values = self.values.copy()
        for key in STRICT:
            fallback = self.personal.get(key, _DEFAULT_VALUES[key])
            candidates = [config.values.get(key, fallback) for config in trusted]
            candidates += [
                own_values[key] for own_values in (self.personal, self.values) if key in own_values
            ]
            if candidates and isinstance(_DEFAULT_VALUES[key], tuple):
                values[key] = tuple(
                    dict.fromkeys(t for value in candidates[::-1] for t in _to_texts(value))
                )
            elif candidates:
                values[key] = max(candidates, key=lambda value: rank_strictness(key, value))
        return self.replace(values=values)

    def number(self, key: str, category: str = "") -> float:
        """Return a numeric setting, with the category's own number if it has one."""
        own = f"{key}.{category}"
        return float(self._scalar(own if own in self.values else key))

    def count(self, key: str) -> int:
        """Return a whole-number setting."""
        return int(self._scalar(key))

    def text(self, key: str) -> str:
        """Return a text setting."""
        return str(self._scalar(key))

    @property
    def private_labels(self) -> frozenset[str]:
        """Privacy labels that are withheld from agents, digests and the fleet, in lower case."""
        return frozenset(label.lower() for label in self.texts("inject.exclude_privacy"))

    def texts(self, key: str) -> tuple[str, ...]:
        """Return a setting that is a list of texts, or the keys of one that is a table."""
        return _to_texts(self.setting(key))

    def _scalar(self, key: str) -> Scalar:
        value = self.setting(key)
        assert isinstance(value, Scalar)
        return value


def _to_texts(value: Setting) -> tuple[str, ...]:
    return tuple(value) if isinstance(value, tuple | dict) else ()


def rank_strictness(key: str, value: Setting) -> float:
    """Return a number that orders the values of an option in STRICT; higher is stricter."""
    if isinstance(value, str):
        return BY_KEY[key].choices.index(value)
    if isinstance(value, tuple):
        return len(value)
    assert isinstance(value, int | float)
    return -value


DEFAULTS = Config(values={}, categories=DEFAULT_CATEGORIES)


def parse(data: bytes, path: str) -> Config:
    """Parse a config file.

    Raises:
        MemtoolError: it is not TOML, or has an unknown setting or an invalid value.
    """
    tables = toml.read(data, path)
    return parse_tables(tables, path) if tables else DEFAULTS


FINGERPRINT_DIGITS = 16
"""Hexadecimal digits of a secret's fingerprint in an allowlist."""
MAX_CATEGORY_NUMBER = 1_000_000
CATEGORY_KEYS = ("weight", "ttl_days", "decay_per_day", "temporal_class")


class Option(Value):
    """One setting `section.name`. Numbers are between `minimum` and `maximum`, inclusive.

    Texts in a list or table are not empty; the keys of a table are fingerprints of secrets.
    `is_personal` marks options in PERSONAL, `is_by_category` those in BY_CATEGORY.
    """

    key: str
    default: Setting
    doc: str
    minimum: float = 0
    maximum: float = 0
    choices: tuple[str, ...] = ()
    is_personal: bool = False
    is_by_category: bool = False


def _parse_row(row: Row) -> Option:
    key, default, doc, *limits = row
    allowed: Any = limits[0] if limits else (0, 0)
    is_choice = isinstance(allowed[0], str)
    minimum, maximum = (0, 0) if is_choice else allowed
    return Option(
        key,
        default,
        doc,
        minimum,
        maximum,
        allowed if is_choice else (),
        is_personal=key in PERSONAL,
        is_by_category=key in BY_CATEGORY,
    )


OPTIONS: tuple[Option, ...] = tuple(map(_parse_row, ROWS))
BY_KEY: dict[str, Option] = {option.key: option for option in OPTIONS}


def find_option(key: str) -> Option:
    """Return the option of a key, which may end with an entry or category: `section.name.entry`.

    Raises:
        MemtoolError: there is none; the hint names the nearest ones or the replacement.
    """
    if key in RETIRED:
        raise MemtoolError(f"the setting {key} no longer exists", hint=RETIRED[key], code="config")
    if key in BY_KEY:
        return BY_KEY[key]
    table = BY_KEY.get(key.rpartition(".")[0])
    if table is not None and (isinstance(table.default, dict) or table.is_by_category):
        return table
    import difflib

    near = difflib.get_close_matches(key, BY_KEY, n=2, cutoff=0.4)
    hint = f"did you mean {' or '.join(near)}?" if near else "memtool config"
    raise MemtoolError(f"unknown setting {key!r}", hint=hint, code="config")


def parse_tables(tables: dict[str, Any], path: str) -> Config:
    """Parse the tables of a config file.

    Raises:
        MemtoolError: it has an unknown setting or an invalid value.
    """
    number = tables.pop("format", 1)
    if type(number) is not int or number < 1:
        raise MemtoolError(
            f"{path}: format must be a whole number from 1",
            hint=f"git log -p -- {path}",
            code="config",
        )
    old_keys = _rename_settings(tables)
    read = _parse_newer if number > FORMAT else _parse_settings
    return read(tables, path).replace(format=number, old_keys=old_keys)


def _rename_settings(tables: dict[str, Any]) -> tuple[str, ...]:
    """Give settings their current names, drop the removed ones, and return the old names.

    A current name wins if set.
    """
    old_keys = []
    for old_key, key in RENAMED.items():
        old_section, old_name = old_key.split(".")
        section, name = key.split(".")
        if isinstance(tables.get(old_section), dict) and old_name in tables[old_section]:
            value = tables[old_section][old_name]
            choices = BY_KEY[old_key].choices if old_key in BY_KEY else ()
            if choices and (value in choices or not isinstance(value, str)):
                continue
            del tables[old_section][old_name]
            table = tables.setdefault(section, {})
            if isinstance(table, dict):  # anything else is refused later
                is_joined = old_key in JOINED and isinstance(value, list)
                if is_joined and isinstance(table.get(name), list):
                    value = [*table.pop(name), *value]
                table.setdefault(name, value)
            old_keys.append(old_key)
    for old_key in RETIRED:
        section, name = old_key.split(".")
        if isinstance(tables.get(section), dict) and tables[section].pop(name, None) is not None:
            old_keys.append(old_key)
    return tuple(old_keys)


def current_key(key: str) -> str:
    """Return the current name of a setting, which may end with a category."""
    if key in BY_KEY:
        return key
    section, entry = key.rpartition(".")[::2]
    return RENAMED.get(key) or (f"{RENAMED[section]}.{entry}" if section in RENAMED else key)


def format_old_keys(path: str, old_keys: tuple[str, ...]) -> str:
    """Format a sentence on the old names of settings that a file has, and on the removed ones."""
    renamed = [key for key in old_keys if key in RENAMED]
    clauses = []
    if renamed:
        is_are = "it is" if len(renamed) == 1 else "they are"
        names = ", ".join(RENAMED[key] for key in renamed)
        clauses.append(f"{path} names {', '.join(renamed)}; {is_are} called {names} now")
    clauses += [
        f"{path} sets {key}, which no longer exists: {RETIRED[key]}"
        for key in old_keys
        if key in RETIRED
    ]
    return "; ".join(clauses)


def _parse_newer(tables: Mapping[str, Any], path: str) -> Config:
    """Parse the settings of a newer format as far as this version knows them.

    An unknown `inject.trust` counts as the highest known level. If a trust rule is unknown, every
    memory must be signed.
    """
    rows: dict[str, Any] = {}
    rules: tuple[TrustRule, ...] = ()
    values: dict[str, Setting] = {}
    for section in sorted(tables, key="categories".__ne__):  # first: others may name categories
        table = tables[section]
        for name, value in table.items() if isinstance(table, dict) else ():
            try:
                config = _parse_settings({"categories": rows, section: {name: value}}, path)
            except MemtoolError:
                if f"{section}.{name}" == "inject.trust":
                    values["inject.trust"] = BY_KEY["inject.trust"].choices[-1]
                if (section, name) == ("trust", "rules"):
                    strictest = {"match": "id:*", "require": "signed"}
                    rules = _parse_settings({"trust": {"rules": [strictest]}}, path).rules
                continue
            values |= config.values
            rules += config.rules
            rows |= {name: value} if section == "categories" else {}
    return _parse_settings({"categories": rows}, path).replace(values=values, rules=rules)


def _parse_settings(tables: dict[str, Any], path: str) -> Config:
    categories = dict(DEFAULT_CATEGORIES)
    for name, row in _require_table(tables.pop("categories", {}), "categories", path).items():
        categories[name] = _parse_category(
            name, _require_table(row, f"categories.{name}", path), path
        )
    rules: tuple[TrustRule, ...] = ()
    if isinstance(tables.get("trust"), dict) and "rules" in tables["trust"]:
        from memtool.store import trust_rules  # most projects have none

        rules = trust_rules.parse_rules(tables["trust"].pop("rules"), path, categories)
    values: dict[str, Setting] = {}
    for section, table in tables.items():
        for name, value in _require_table(table, section, path).items():
            key = f"{section}.{name}"
            if key in BY_CATEGORY and isinstance(value, dict) and value:
                values |= _parse_by_category(find_option(key), value, categories, path)
            else:
                values[key] = check_value(find_option(key), value, path)
    category_list = values.get(CATEGORY_LIST_KEY)
    unknown = set(category_list).difference(categories) if isinstance(category_list, tuple) else ()
    if unknown:
        raise _build_error(
            path, CATEGORY_LIST_KEY, f"has unknown categories: {', '.join(sorted(unknown))}"
        )
    return Config(values=values, categories=categories, rules=rules)


def _parse_by_category(
    row: Option, table: Mapping[str, object], categories: Mapping[str, Category], path: str
) -> dict[str, Setting]:
    """Parse a setting with a number per category; the default has the key of the option itself."""
    values: dict[str, Setting] = {}
    for name, value in table.items():
        if name != DEFAULT_ENTRY and name not in categories:
            raise _build_error(path, f"{row.key}.{name}", "is not a category")
        key = row.key if name == DEFAULT_ENTRY else f"{row.key}.{name}"
        values[key] = check_value(row.replace(key=key), value, path)
    return values


def check_value(row: Option, value: object, path: str) -> Setting:
    """Return a value in the type of its option. Raises MemtoolError if it is invalid."""
    if isinstance(row.default, tuple):
        if not isinstance(value, list | tuple) or not all(map(_is_nonempty_text, value)):
            raise _build_error(path, row.key, "must be a list of texts that are not empty")
        if row.choices and not set(value).issubset(row.choices):
            raise _build_error(path, row.key, f"may contain only {', '.join(row.choices)}")
        _check_style(row, value, path)
        return tuple(value)
    if isinstance(row.default, dict):
        return _check_reasons(row, value, path)
    wanted = type(row.default)
    if wanted is float and isinstance(value, int) and not isinstance(value, bool):
        value = float(value)
    if not isinstance(value, str | int | float) or type(value) is not wanted:
        names = {str: "text", int: "a whole number", float: "a number", bool: "true or false"}
        raise _build_error(path, row.key, f"must be {names[wanted]}")
    if row.choices and value not in row.choices:
        raise _build_error(path, row.key, f"must be one of {', '.join(row.choices)}")
    if (
        isinstance(value, int | float)
        and wanted is not bool
        and not row.minimum <= value <= row.maximum
    ):
        raise _build_error(path, row.key, f"must be between {row.minimum:g} and {row.maximum:g}")
    _check_style(row, (value,), path)
    return value


def _check_style(row: Option, texts: Iterable[Any], path: str) -> None:
    """Raise MemtoolError if a setting of commits has a text that is not allowed."""
    if not row.key.startswith("commit."):
        return
    from memtool.store.commit_style import FAULTS  # few projects set these

    for fault in filter(None, map(FAULTS[row.key], texts)):
        raise _build_error(path, row.key, fault)


def _check_reasons(row: Option, value: object, path: str) -> dict[str, str]:
    if not isinstance(value, dict) or not all(map(_is_nonempty_text, value.values())):
        raise _build_error(path, row.key, 'must be a table of lines FINGERPRINT = "REASON"')
    for name in value:
        if len(name) != FINGERPRINT_DIGITS or not HEX.issuperset(name):
            raise _build_error(
                path, f"{row.key}.{name}", f"must be named by {FINGERPRINT_DIGITS} of 0-9 a-f"
            )
    return {name: value[name] for name in sorted(value)}


def _is_nonempty_text(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _require_table(value: object, name: str, path: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise _build_error(path, name, "must be a table")
    return value


def _parse_category(name: str, row: Mapping[str, Any], path: str) -> Category:
    from memtool.memory.fields import TEMPORAL_CLASSES
    from memtool.memory.schema import is_id

    where = f"categories.{name}"
    if not is_id(name):
        raise _build_error(path, where, "must be a name of 3 or more of a-z 0-9 . _ -")
    unknown = sorted(set(row) - {*CATEGORY_KEYS, "doc"})
    if unknown:
        raise _build_error(
            path, f"{where}.{unknown[0]}", f"is not one of {', '.join(CATEGORY_KEYS)}"
        )
    for key in CATEGORY_KEYS[:3]:
        value = row.get(key, 0)
        if (
            isinstance(value, bool)
            or not isinstance(value, int | float)
            or not 0 <= value <= MAX_CATEGORY_NUMBER  # also refuses nan
        ):
            raise _build_error(path, f"{where}.{key}", f"must be from 0 to {MAX_CATEGORY_NUMBER:,}")
    base = DEFAULT_CATEGORIES.get(name, UNKNOWN)
    temporal_class = row.get("temporal_class", base.temporal_class)
    if temporal_class not in TEMPORAL_CLASSES:
        raise _build_error(
            path, f"{where}.temporal_class", f"must be one of {', '.join(TEMPORAL_CLASSES)}"
        )
    return Category(
        name=name,
        weight=float(row.get("weight", base.weight)),
        ttl_days=int(row.get("ttl_days", base.ttl_days)),
        decay_per_day=float(row.get("decay_per_day", base.decay_per_day)),
        lambda_per_day=float(row.get("decay_per_day", base.lambda_per_day)),
        temporal_class=temporal_class,
        doc=str(row.get("doc", base.doc)),
    )


def _build_error(path: str, key: str, what: str) -> MemtoolError:
    """Build the error for an invalid setting; without a path it came from memtool config."""
    if not path:
        return MemtoolError(f"{key} {what}", hint=f"memtool config {key} VALUE", code="config")
    return MemtoolError(
        f"{path}: {key} {what}", hint=f"edit {path}\nmemtool config KEY VALUE", code="config"
    )
