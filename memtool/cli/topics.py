"""Help topics: what several verbs have in common, from the tables of the code.

A topic is a row of `TOPICS`; `memtool help NAME` prints it.
"""

from __future__ import annotations

from collections.abc import Callable

from memtool.calls.docstring import Rows
from memtool.errors import EXIT_CODES
from memtool.memory.fields import CATEGORIES, FIELDS
from memtool.search.evaluation import GOLDEN_NAME
from memtool.search.expansion import ALIASES_NAME
from memtool.search.filters import FILTERS
from memtool.search.query import FILTER_VALUES, STATES
from memtool.search.saved import QUERIES_NAME
from memtool.store.config import CONFIG_NAME, OPTIONS, Option
from memtool.store.repository import ENVIRONMENT
from memtool.store.signatures import FOLDER
from memtool.store.usage_log import LEDGER
from memtool.value import Value

COMMON_OPTIONS = (
    ("--json", "print JSON, also for errors"),
    ("-C DIR", "work in the repository of this directory"),
    ("--global", "work on your global memories, which apply to all of your projects"),
    ("--no-pager", "never use a pager"),
    ("-h, --help", "print the help of the verb"),
)
"""The options of every verb, and their help."""

QUERY_SYNTAX = (
    ("words", "at least one must occur; rare words count more"),
    ("ADR-013, dec-2g54", "the memory that is named comes first, in any spelling: ADR 13"),
    ('"a phrase"', "must occur as it is"),
    ("-word", "must not occur; also before a phrase or a filter"),
    ("OR, ( )", "alternatives; parentheses with nothing but words in them are text"),
    ("NAME:VALUE", "a filter; all filters must match"),
    ("@NAME", f"a query saved in .memory/{QUERIES_NAME}; more words may follow"),
)
"""What a query may contain."""

MARKS = (
    ("CONFLICT", "it contradicts another memory; ask the user which one holds"),
    ("PREMISE", "what it rests on changed, is gone or in conflict; check that first"),
    ("WITHHELD", "another memory is not shown, since its premise is now this one"),
    ("DRIFTED", "the code that it names has changed or is gone"),
    ("UNSETTLED", "what it rests on no longer holds; memtool show says what settles it"),
    ("CANDIDATE", "it is not confirmed yet"),
    ("UNPROVEN", "it lacks the proof that its trust rule asks for"),
    ("RENAMED", "files that it names were renamed"),
)
"""The marks of memories that an agent is shown, most urgent first, and their meanings."""

FILES = (
    (".memory/TYPE/YEAR-MONTH/ID.md", "a memory: keys between two lines ---, then the text"),
    (".memory/_TYPE.md", "the template of a type, which you may change"),
    (f".memory/{CONFIG_NAME}", "the settings (memtool config)"),
    (f".memory/{ALIASES_NAME}", "words that mean the same (memtool alias)"),
    (f".memory/{QUERIES_NAME}", "saved queries: NAME = 'QUERY', used as @NAME"),
    (f".memory/{GOLDEN_NAME}", "queries with the memories they should find (memtool eval)"),
    (f".memory/{FOLDER}/", "signatures (memtool sign)"),
    (".memtool.toml", "names another directory than .memory"),
    (".gitattributes", "how git merges memories (memtool install git)"),
    (".git/memtool/", "private to this clone: sessions, search index, logs"),
    (f".git/memtool/{LEDGER}", "which memories were shown, and how often (memtool stats)"),
    (".git/memtool/hook.log", "errors of the hooks that agents run"),
)
"""The files that memtool reads and writes, and what they hold."""


class Topic(Value):
    """A row of the table. `build` returns the paragraphs and tables of the page."""

    name: str
    summary: str
    build: Callable[[], list[str | Rows]]


def _build_filters() -> list[str | Rows]:
    filters = tuple(
        (f"{row.name}:", f"{row.doc} ({FILTER_VALUES[row.name]})") for row in FILTERS.values()
    )
    return [
        (
            "Queries have words and filters: the same in search, list, export and the verbs that "
            "change memories, such as confirm."
        ),
        Rows("query", QUERY_SYNTAX),
        Rows("filters", filters),
        (
            "Superseded, deleted, archived and expired memories are left out unless a filter "
            "names that state, such as is:superseded. A shell needs quotes around > and <."
        ),
    ]


def _build_states() -> list[str | Rows]:
    return [
        "The filter is:STATE finds the memories in a state.",
        Rows("states", tuple(STATES.items())),
    ]


def _build_marks() -> list[str | Rows]:
    return [
        "A memory that is shown to an agent may have a mark. One without a mark is settled.",
        Rows("marks", MARKS),
    ]


def _build_files() -> list[str | Rows]:
    return [
        "These are the files of memtool. Those in .git/ are never committed.",
        Rows("files", FILES),
    ]


def _build_exit_codes() -> list[str | Rows]:
    codes = tuple((str(code), meaning) for code, meaning in EXIT_CODES.items())
    return ["Every command ends with one of these codes.", Rows("exit codes", codes)]


def _build_options() -> list[str | Rows]:
    return [
        "Every verb takes these options, before or after its name.",
        Rows("options", COMMON_OPTIONS),
        "--option VALUE and --option=VALUE mean the same. After -- every word is an argument.",
    ]


def _build_settings() -> list[str | Rows]:
    return [
        "memtool config KEY explains a setting, memtool config KEY VALUE changes it.",
        Rows("settings and their defaults", tuple((o.key, format_default(o)) for o in OPTIONS)),
    ]


def format_default(option: Option) -> str:
    """Return the default of a setting as it is written; `none` if it is empty."""
    if option.default in ("", (), {}):
        return "none"
    if isinstance(option.default, tuple):
        return ", ".join(map(str, option.default))
    text = str(option.default)
    return text.lower() if isinstance(option.default, bool) else text


def _build_environment() -> list[str | Rows]:
    return [
        "memtool reads these variables, and git reads its own, such as GIT_AUTHOR_NAME.",
        Rows("variables", tuple(ENVIRONMENT.items())),
    ]


def _build_fields() -> list[str | Rows]:
    return [
        (
            "A memory begins with these keys, between two lines of ---. "
            "memtool new --set KEY=VALUE writes one."
        ),
        Rows("keys", tuple((field.name, field.doc) for field in FIELDS)),
    ]


def _build_categories() -> list[str | Rows]:
    return [
        (
            "A category decides how much a memory counts, and after how many days it is due for "
            "review. memtool new --category NAME chooses it."
        ),
        Rows("categories", tuple((c.name, f"{c.doc} ({c.ttl_days} days)") for c in CATEGORIES)),
    ]


_TABLE = (
    Topic("filters", "the words and filters of a query", _build_filters),
    Topic("states", "the values of is:, such as due and drifted", _build_states),
    Topic("marks", "the marks of memories that agents are shown", _build_marks),
    Topic("fields", "the keys at the top of a memory", _build_fields),
    Topic("categories", "the categories of memories", _build_categories),
    Topic("files", "the files of memtool, and what they hold", _build_files),
    Topic("settings", "every setting and its default", _build_settings),
    Topic("environment", "the environment variables", _build_environment),
    Topic("options", "the options of every verb: --json, -C, --global", _build_options),
    Topic("exit-codes", "the exit codes of a command", _build_exit_codes),
)
TOPICS = {topic.name: topic for topic in _TABLE}
"""Every topic by name, in the order of the overview."""
