"""The table of frontmatter fields, and the table of categories.

It validates (`schema`), orders and writes (`document`), is the reference in the manual, and
says which keys are the *claim* of a memory: those never change once it is confirmed and committed.
"""

from __future__ import annotations

from memtool.value import Value

TYPES = ("episodic", "semantic", "decision", "state")
STATUSES = ("candidate", "confirmed", "pinned", "deprecated", "archived", "deleted")
CONFIDENCES = ("low", "medium", "high")
SCOPES = ("project", "global")
TEMPORAL_CLASSES = ("eternal", "long_term", "medium_term", "short_term", "ephemeral")
AWAITING = ("decision", "implementation")
CAUSE_KINDS = ("memory", "without")
SOURCE_KINDS = ("commit", "file", "url", "human", "session", "tool", "memory")
RELATIONS = ("supersedes", "related_to", "resolves", "derived_from", "parent", "blocked_by")

# Kinds of values: `line` is one line of text, `when` a moment or a plain date, `ids`, `words`,
# `sources` and `causes` are lists, `mapping` is a small table of lines.
KINDS = (
    "id",
    "moment",
    "when",
    "choice",
    "category",
    "line",
    "flag",
    "count",
    "number",
    "share",
    "words",
    "paths",
    "ids",
    "sources",
    "causes",
    "mapping",
)
LIST_KINDS = frozenset({"words", "paths", "ids", "sources", "causes"})
NUMBER_KINDS = frozenset({"number", "share"})


class Field(Value):
    """One key. `mutable` keys may change after confirmation; all others belong to the claim."""

    name: str
    kind: str
    group: str
    doc: str
    required: bool = False
    mutable: bool = False
    choices: tuple[str, ...] = ()
    block: bool = False
    """Written one item a line, for lists that are reviewed and blamed item by item."""
    default: str = ""


FIELDS: tuple[Field, ...] = (
    Field("id", "id", "identity", "the file name without .md", required=True),
    Field(
        "timestamp",
        "moment",
        "identity",
        "when it was written, RFC 3339 with a zone",
        required=True,
    ),
    Field(
        "type", "choice", "identity", "what kind of memory this is", required=True, choices=TYPES
    ),
    Field("title", "line", "identity", "one line that says it", required=True),
    Field("category", "category", "identity", "a row of the category table; by default the type's"),
    Field(
        "status",
        "choice",
        "lifecycle",
        "its place in its life",
        mutable=True,
        choices=STATUSES,
        default="confirmed",
    ),
    Field(
        "confidence",
        "choice",
        "identity",
        "how sure the author is",
        required=True,
        choices=CONFIDENCES,
    ),
    Field(
        "source",
        "sources",
        "identity",
        "where the claim comes from, at least one",
        required=True,
        block=True,
    ),
    Field("tags", "words", "retrieval", "key words to find it by", mutable=True),
    Field("files", "paths", "retrieval", "files or globs that it governs", mutable=True),
    Field("supersedes", "ids", "relations", "the memories that this one replaces", block=True),
    Field("related_to", "ids", "relations", "memories worth reading with it", block=True),
    Field("resolves", "ids", "relations", "open questions or errors that it settles", block=True),
    Field("derived_from", "ids", "relations", "memories that it sums up", block=True),
    Field("parent", "ids", "relations", "the larger work that it belongs to", block=True),
    Field("blocked_by", "ids", "relations", "memories that must be settled first", block=True),
    Field("valid_from", "when", "validity", "not active before this moment or day"),
    Field("valid_through", "when", "validity", "not active after this moment or day", mutable=True),
    Field("aliases", "words", "retrieval", "other names for its subject"),
    Field("trigger_phrases", "words", "retrieval", "phrases in a prompt that call for it"),
    Field("question_types", "words", "retrieval", "kinds of question it answers: how, why, what"),
    Field("domain", "line", "retrieval", "area of the product"),
    Field("feature", "line", "retrieval", "feature of the product"),
    Field("importance", "share", "retrieval", "0 to 1; 0.5 when absent", mutable=True),
    Field(
        "scope",
        "choice",
        "retrieval",
        "this project; global for every project of "
        "the user, in their own repository alone (memtool --global)",
        choices=SCOPES,
        default="project",
    ),
    Field(
        "temporal_class",
        "choice",
        "retrieval",
        "how long it lasts, instead of its category: "
        "eternal has no end, long_term and medium_term are reviewed after 180 and 30 days, "
        "short_term and ephemeral expire after 21 and 14",
        choices=TEMPORAL_CLASSES,
    ),
    Field("fade_rate", "number", "retrieval", "decay per day, instead of the category's"),
    Field("action_required", "flag", "work", "a user has to act on it: true or false"),
    Field("awaiting", "choice", "work", "what it waits for", choices=AWAITING),
    Field("task_id", "line", "work", "the task that it belongs to"),
    Field("iteration", "count", "work", "which attempt at the task"),
    Field("error_signature", "line", "work", "exception type and top frame"),
    Field("environment", "line", "work", "where it was seen"),
    Field("agent", "line", "work", "the agent that wrote it"),
    Field("session", "line", "work", "the session that it comes from"),
    Field("privacy", "words", "governance", "labels for handling", mutable=True),
    Field(
        "checked",
        "mapping",
        "governance",
        "last confirmation: at, by, commit, and saw: the state of the code that was looked at",
        mutable=True,
        choices=("at", "by", "commit", "saw"),
    ),
    Field(
        "settled_on",
        "causes",
        "governance",
        "it holds although what it rests on changed: memory:ID, a premise is now that memory; "
        "without:ID, that premise no longer holds",
        mutable=True,
        block=True,
    ),
    Field(
        "deleted",
        "mapping",
        "governance",
        "soft deletion: at, by, reason, the status it had",
        mutable=True,
        choices=("at", "by", "reason", "was"),
    ),
    Field(
        "retired",
        "mapping",
        "governance",
        "archived or deprecated before a user confirmed "
        "that it replaces others: at, by, the status it had",
        mutable=True,
        choices=("at", "by", "was"),
    ),
    Field(
        "faded",
        "mapping",
        "governance",
        "end of the first day of an unused candidate: at, by, and the importance it had",
        mutable=True,
        choices=("at", "by", "was"),
    ),
    Field(
        "learned",
        "mapping",
        "governance",
        "importance learned from use: at, by, the importance that it was, and the one it came to",
        mutable=True,
        choices=("at", "by", "was", "to"),
    ),
    Field(
        "conflicts_accepted",
        "ids",
        "governance",
        "contradictions that were accepted",
        mutable=True,
        block=True,
    ),
)

BY_NAME: dict[str, Field] = {field.name: field for field in FIELDS}
ORDER: dict[str, int] = {field.name: number for number, field in enumerate(FIELDS)}
REQUIRED: tuple[str, ...] = tuple(field.name for field in FIELDS if field.required)
PRIVATE_LABELS = ("private", "personal", "confidential")
"""Labels of `privacy` that keep a memory from agents, digests, pages and other repositories.

`inject.exclude_privacy` begins as this list. A project may shorten it for agents and digests;
nothing labelled so is ever published, or on a page of a site.
"""
SETTLED = "settled_on"
"""The key with the causes that a memory holds in spite of."""
OWN_PREFIX = "x-"
"""Keys that begin so are the user's own: one line of text each, never interpreted."""


def is_mutable(key: str) -> bool:
    """Return whether a key may change in a confirmed memory (lifecycle, governance, the user's)."""
    field = BY_NAME.get(key)
    return field.mutable if field else key.startswith(OWN_PREFIX)


def order(key: str) -> tuple[int, str]:
    """Sort key of canonical writing: the table's order, then the user's own keys by name."""
    return (ORDER.get(key, len(FIELDS)), key)


class Category(Value):
    """One row.

    `weight` is a rank factor around 1, `ttl_days` 0 means for ever, `decay_per_day` is the rate of
    steady fading per day and `lambda_per_day` that of exponential fading (see `lifecycle.PRESETS`).
    """

    name: str
    weight: float
    ttl_days: int
    decay_per_day: float
    lambda_per_day: float
    temporal_class: str
    doc: str


CATEGORIES: tuple[Category, ...] = (
    Category("decision", 1.2, 90, 0.003, 0.03, "long_term", "a choice between alternatives"),
    Category("architecture", 1.2, 180, 0.002, 0.03, "long_term", "how the parts fit together"),
    Category("pattern", 1.1, 180, 0.003, 0.03, "long_term", "how things are done here"),
    Category("warning", 1.15, 30, 0.01, 0.05, "medium_term", "a trap, and how to avoid it"),
    Category("discovery", 1.0, 21, 0.02, 0.05, "medium_term", "something found out"),
    Category("error", 1.1, 90, 0.01, 0.05, "medium_term", "a failure and what fixed it"),
    Category("preference", 1.1, 365, 0.001, 0.01, "long_term", "how the user wants it"),
    Category("file_change", 0.8, 21, 0.05, 0.1, "short_term", "what was changed, and why"),
    Category("task_progress", 0.8, 14, 0.1, 0.1, "ephemeral", "where the work stands"),
)
UNKNOWN = Category("", 1.0, 0, 0.003, 0.03, "long_term", "")
"""The defaults of a category that is in no table, or whose settings are incomplete."""
EPISODE_PER_DAY = 0.1
"""The exponential rate of an episodic memory that names no category: what happened fades faster
than the errors among it, which are named as such."""

DEFAULT_BY_TYPE = {
    "decision": "decision",
    "semantic": "pattern",
    "episodic": "error",
    "state": "task_progress",
}
"""The category of a memory that names none."""

DEFAULT_CATEGORIES: dict[str, Category] = {row.name: row for row in CATEGORIES}
