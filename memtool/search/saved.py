"""Saved queries: named queries in `queries.toml`, and their parameters.

pinned-decisions = "type:decision is:pinned"

    [open]
    query = "is:candidate OR is:conflicted"
    doc = "what somebody has to look at"

    [recent]
    query = "tag:{tag} since:{age=30d}"

`memtool search @open` runs the second; words after the name narrow it. The third has parameters:
`memtool list @recent tag=auth age=7d`. A parameter with a default may be omitted.
"""

from __future__ import annotations

import re

from memtool.errors import MemtoolError
from memtool.search.query import Alternatives, parse
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from memtool.store.context import Context

QUERIES_NAME = "queries.toml"

SIGN = "@"

SAVED_KEYS = ("query", "doc")

PARAMETER = re.compile(r"\{([a-z][a-z0-9_-]*)(?:=([^{}\"]*))?\}")
"""A parameter in a saved query: `{days}`, or `{days=30d}` with a default."""
_NAME = re.compile(r"[a-z][a-z0-9_-]*")
_ASSIGNED = re.compile(r'([a-z][a-z0-9_-]*)=("[^"]*"|\S+)')

_MIN_ID_CHARACTERS = 3
"""Minimum length of an id, in characters; the name of a query may be shorter."""


def expand_words(context: Context, words: tuple[str, ...]) -> str:
    """Return the query in the words of a command line, with a saved query expanded.

    Raises:
        MemtoolError: they begin with an unknown name, or the saved queries cannot be read.
    """
    text = " ".join(words).strip()
    name = find_saved_name(text) if text.startswith(SIGN) else None
    if name is None:
        return text
    text = " ".join(map(_with_quotes, words)).strip()
    path = f"{context.directory}/{QUERIES_NAME}"
    return expand_saved(text, name, read_saved_queries(context), path)


def read_saved_queries(context: Context) -> dict[str, SavedQuery]:
    """Return the saved queries of a repository by name. Raises MemtoolError like `parse_saved`."""
    path = f"{context.directory}/{QUERIES_NAME}"
    return parse_saved(context.project.read_file(path, "bad-query"), path)


class SavedQuery(Value):
    """A saved query; `doc` describes it, and may be empty."""

    name: str
    query: str
    doc: str

    @property
    def parameters(self) -> dict[str, str]:
        """The default of each parameter, by name; empty for a required one."""
        return {match[1]: match[2] or "" for match in PARAMETER.finditer(self.query)}

    @property
    def call(self) -> str:
        """How to call it, such as `@recent tag=TAG`."""
        needed = [f"{name}={name.upper()}" for name, value in self.parameters.items() if not value]
        return " ".join([SIGN + self.name, *needed])

    def fill(self, values: Mapping[str, str]) -> str:
        """Return its text with parameters replaced by values."""

        def value(match: re.Match[str]) -> str:
            text = values.get(match[1]) or match[2] or match[1]
            in_quotes = self.query.count('"', 0, match.start()) % 2
            return text if in_quotes or _is_simple(text) else f'"{text}"'

        return PARAMETER.sub(value, self.query)


def _is_simple(value: str) -> bool:
    """Return whether a value is one word of a query or filter without quotes."""
    is_word = not any(char.isspace() or char in "():" for char in value)
    return is_word and value != "OR" and not value.startswith("-")


def parse_saved(data: bytes | None, path: str) -> dict[str, SavedQuery]:
    """Return the saved queries of a file by name, sorted; None is no file.

    Raises:
        MemtoolError: it is not TOML, or a row is not a query; the message names the row.
    """
    if data is None:
        return {}
    from memtool.store import toml

    queries = {}
    for name, row in sorted(toml.read(data, path).items()):
        table = {"query": row} if isinstance(row, str) else row
        if not _is_saved_name(name):
            raise _build_error(path, repr(name), "must be a name of a-z 0-9 . _ -")
        if not isinstance(table, dict) or not isinstance(table.get("query"), str):
            raise _build_error(path, name, 'must be a query, or a table with query = "…"')
        unknown = sorted(set(table) - set(SAVED_KEYS))
        if unknown:
            raise _build_error(
                path, f"{name}.{unknown[0]}", f"is not one of {', '.join(SAVED_KEYS)}"
            )
        doc = table.get("doc", "")
        if not isinstance(doc, str):
            raise _build_error(path, f"{name}.doc", "must be text")
        queries[name] = SavedQuery(name, _check_query(path, name, table["query"]), doc)
    return queries


def find_saved_name(text: str) -> str | None:
    """Return the name at the beginning of a query, as in `@open redis`; None if there is none.

    The sign alone is the empty name, which no query has. Text that cannot be a name, such as
    `@angular/core`, is plain text, and so is everything in double quotes.
    """
    first, *_values = text.split(maxsplit=1) or [""]
    name = first.removeprefix(SIGN)
    return name if first.startswith(SIGN) and (not name or _is_saved_name(name)) else None


def expand_saved(text: str, name: str, queries: dict[str, SavedQuery], path: str) -> str:
    """Return the text of a query that begins with the name of a saved one.

    Raises:
        MemtoolError: no query is saved under that name; the hint lists similar or all names.
    """
    if name not in queries:
        raise _unknown_name_error(name, queries, path)
    saved = queries[name]
    values, query_tail = _split_values(saved, text.strip().removeprefix(SIGN + name).strip())
    query = saved.fill(values)
    if query_tail and isinstance(parse(query).root, Alternatives):
        query = f"({query})"  # OR binds loosest, and what follows narrows all of it
    return f"{query} {query_tail}" if query_tail else query


def _split_values(saved: SavedQuery, text: str) -> tuple[dict[str, str], str]:
    """Split the text after a name into parameter values and the remaining query.

    Raises:
        MemtoolError: an unknown parameter, a value with a double quote, or a missing value.
    """
    wanted = saved.parameters
    values: dict[str, str] = {}
    while wanted and (match := _ASSIGNED.match(text)):
        name, value = match[1], match[2].strip('"')
        if name not in wanted:
            raise MemtoolError(
                f"{SIGN}{saved.name} has no parameter {name!r}",
                hint=f"its parameters are {', '.join(wanted)}\nput a text with = in double quotes",
                code="bad-query",
            )
        if '"' in value:
            raise MemtoolError(
                f"{name} must not contain a double quote", hint=saved.call, code="bad-query"
            )
        values[name] = value
        text = text[match.end() :].lstrip()
    missing = [name for name, value in wanted.items() if not (values.get(name) or value)]
    if missing:
        raise MemtoolError(
            f"{SIGN}{saved.name} needs {', '.join(missing)}",
            hint=f"memtool search {saved.call}",
            code="bad-query",
        )
    return values, text


def _with_quotes(word: str) -> str:
    """Quote the value in a command-line word if it has spaces, as in `tag=a b`."""
    name, equals, value = word.partition("=")
    has_spaces = any(map(str.isspace, value)) and '"' not in value
    return f'{name}="{value}"' if equals and has_spaces and _NAME.fullmatch(name) else word


def _is_saved_name(text: str) -> bool:
    from memtool.memory.schema import is_id

    return is_id(text.ljust(_MIN_ID_CHARACTERS, "-"))


def _check_query(path: str, name: str, query: str) -> str:
    text = " ".join(query.split("\n")).strip()
    if not text:
        raise _build_error(path, name, "must not be empty")
    try:
        parse(SavedQuery(name, text, "").fill({}))
    except MemtoolError as error:
        raise MemtoolError(
            f"{path}: {name}: {error.message}", hint=error.hint, code=error.code
        ) from None
    return text


def _unknown_name_error(name: str, queries: dict[str, SavedQuery], path: str) -> MemtoolError:
    import difflib  # only a wrong name pays for it

    near = difflib.get_close_matches(name, queries, n=2)
    if near:
        hint = f"did you mean {' or '.join(SIGN + name for name in near)}?"
    elif queries:
        hint = "the saved queries are " + ", ".join(saved.call for saved in queries.values())
    else:
        hint = f'write NAME = "QUERY" into {path}'
    quoted = f'{hint}; for the text itself write "{SIGN}{name}" in double quotes'
    return MemtoolError(
        f"no saved query {SIGN}{name}", hint=quoted if name else hint, code="unknown-query"
    )


def _build_error(path: str, name: str, what: str) -> MemtoolError:
    return MemtoolError(f"{path}: {name} {what}", hint=f"edit {path}", code="bad-query")
