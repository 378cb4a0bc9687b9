"""Saved queries: those that have a name in `queries.toml`, and their parameters.

A query that is asked again and again has a name, in `queries.toml`:

    pinned-decisions = "type:decision is:pinned"

    [open]
    query = "is:candidate OR is:conflicted"
    doc = "what somebody has to look at"

    [recent]
    query = "tag:{tag} since:{age=30d}"

`memtool search @open` asks the second; words behind the name narrow it. The third has parameters:
`memtool list @recent tag=auth age=7d`. One with a value of its own may be left out.
"""

from __future__ import annotations

import re

from memtool.errors import MemtoolError
from memtool.search.query import Either, parse
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from memtool.store.context import Context

QUERIES_NAME = "queries.toml"

SIGN = "@"

SAVED_KEYS = ("query", "doc")

PARAMETER = re.compile(r"\{([a-z][a-z0-9_-]*)(?:=([^{}\"]*))?\}")
"""A place in a saved query that is filled in: `{days}`, or `{days=30d}` with a value of its own."""
_NAME = re.compile(r"[a-z][a-z0-9_-]*")
_ASSIGNED = re.compile(r'([a-z][a-z0-9_-]*)=("[^"]*"|\S+)')

_SHORTEST = 3
"""Characters of an id; the name of a query may be shorter."""


def text_of(context: Context, words: tuple[str, ...]) -> str:
    """Return the query that the words of a command line make.

    Raises:
        MemtoolError: they begin with the name of a query that is not saved, or cannot be read.
    """
    text = " ".join(words).strip()
    name = saved_name(text) if text.startswith(SIGN) else None
    if name is None:
        return text
    text = " ".join(map(_with_quotes, words)).strip()
    path = f"{context.directory}/{QUERIES_NAME}"
    return expand_saved(text, name, saved_queries(context), path)


def saved_queries(context: Context) -> dict[str, Saved]:
    """Return the saved queries of a repository by name. Raises MemtoolError as `parse_saved`."""
    path = f"{context.directory}/{QUERIES_NAME}"
    return parse_saved(context.project.file(path, "bad-query"), path)


class Saved(Value):
    """A saved query; `doc` says what it is for, and may be empty."""

    name: str
    query: str
    doc: str

    @property
    def parameters(self) -> dict[str, str]:
        """The values of its parameters where none is given, by name; empty for one that must be."""
        return {found[1]: found[2] or "" for found in PARAMETER.finditer(self.query)}

    @property
    def call(self) -> str:
        """How it is asked, such as `@recent tag=TAG`."""
        needed = [f"{name}={name.upper()}" for name, value in self.parameters.items() if not value]
        return " ".join([SIGN + self.name, *needed])

    def filled(self, values: Mapping[str, str]) -> str:
        """Return its text with values in the place of its parameters."""

        def value(found: re.Match[str]) -> str:
            text = values.get(found[1]) or found[2] or found[1]
            in_quotes = self.query.count('"', 0, found.start()) % 2
            return text if in_quotes or _is_simple(text) else f'"{text}"'

        return PARAMETER.sub(value, self.query)


def _is_simple(value: str) -> bool:
    """Tell whether a value is one word of a query, or of a filter, without quotes."""
    is_word = not any(char.isspace() or char in "():" for char in value)
    return is_word and value != "OR" and not value.startswith("-")


def parse_saved(data: bytes | None, path: str) -> dict[str, Saved]:
    """Return the saved queries of a file by name, sorted; None is no file.

    Raises:
        MemtoolError: it is not TOML, or a row is no query; the message names the row.
    """
    if data is None:
        return {}
    from memtool.store import toml

    found = {}
    for name, row in sorted(toml.read(data, path).items()):
        table = {"query": row} if isinstance(row, str) else row
        if not _is_saved_name(name):
            raise _refusal(path, repr(name), "must be a name of a-z 0-9 . _ -")
        if not isinstance(table, dict) or not isinstance(table.get("query"), str):
            raise _refusal(path, name, 'must be a query, or a table with query = "…"')
        unknown = sorted(set(table) - set(SAVED_KEYS))
        if unknown:
            raise _refusal(path, f"{name}.{unknown[0]}", f"is not one of {', '.join(SAVED_KEYS)}")
        doc = table.get("doc", "")
        if not isinstance(doc, str):
            raise _refusal(path, f"{name}.doc", "must be text")
        found[name] = Saved(name, _checked_query(path, name, table["query"]), doc)
    return found


def saved_name(text: str) -> str | None:
    """Return the name that a query begins with, as in `@open redis`; None where it has none.

    The sign alone is the empty name, which no query has. What cannot be a name, such as
    `@angular/core`, is text, and so is everything in double quotes.
    """
    first, *_others = text.split(maxsplit=1) or [""]
    name = first.removeprefix(SIGN)
    return name if first.startswith(SIGN) and (not name or _is_saved_name(name)) else None


def expand_saved(text: str, name: str, known: dict[str, Saved], path: str) -> str:
    """Return the text of a query that begins with the name of a saved one.

    Raises:
        MemtoolError: no query is saved under that name; the hint says which are.
    """
    if name not in known:
        raise _unknown(name, known, path)
    saved = known[name]
    values, more = _values(saved, text.strip().removeprefix(SIGN + name).strip())
    query = saved.filled(values)
    if more and isinstance(parse(query).root, Either):
        query = f"({query})"  # OR binds loosest, and what follows narrows all of it
    return f"{query} {more}" if more else query


def _values(saved: Saved, more: str) -> tuple[dict[str, str], str]:
    """Take the values of parameters off the beginning of what follows a name.

    Raises:
        MemtoolError: there is no such parameter, a value cannot be in quotes, or one is missing.
    """
    wanted = saved.parameters
    values: dict[str, str] = {}
    while wanted and (found := _ASSIGNED.match(more)):
        name, value = found[1], found[2].strip('"')
        if name not in wanted:
            raise MemtoolError(
                f"{SIGN}{saved.name} has no parameter {name!r}",
                hint=f"it has {', '.join(wanted)}; a text with = goes in double quotes",
                code="bad-query",
            )
        if '"' in value:
            raise MemtoolError(
                f"{name} must not hold a double quote", hint=saved.call, code="bad-query"
            )
        values[name] = value
        more = more[found.end() :].lstrip()
    missing = [name for name, value in wanted.items() if not (values.get(name) or value)]
    if missing:
        raise MemtoolError(
            f"{SIGN}{saved.name} needs {', '.join(missing)}",
            hint=f"memtool search {saved.call}",
            code="bad-query",
        )
    return values, more


def _with_quotes(word: str) -> str:
    """Return a word of a command line whose value has spaces, `tag=a b`, with quotes around it."""
    name, equals, value = word.partition("=")
    has_spaces = any(map(str.isspace, value)) and '"' not in value
    return f'{name}="{value}"' if equals and has_spaces and _NAME.fullmatch(name) else word


def _is_saved_name(text: str) -> bool:
    from memtool.memory.schema import is_id

    return is_id(text.ljust(_SHORTEST, "-"))


def _checked_query(path: str, name: str, query: str) -> str:
    text = " ".join(query.split("\n")).strip()
    if not text:
        raise _refusal(path, name, "must not be empty")
    try:
        parse(Saved(name, text, "").filled({}))
    except MemtoolError as error:
        raise MemtoolError(
            f"{path}: {name}: {error.message}", hint=error.hint, code=error.code
        ) from None
    return text


def _unknown(name: str, known: dict[str, Saved], path: str) -> MemtoolError:
    import difflib  # only a wrong name pays for it

    near = difflib.get_close_matches(name, known, n=2)
    if near:
        hint = f"did you mean {' or '.join(SIGN + one for one in near)}?"
    elif known:
        hint = "there are " + ", ".join(one.call for one in known.values())
    else:
        hint = f'write NAME = "QUERY" into {path}'
    quoted = f'{hint}; for the text itself write "{SIGN}{name}" in double quotes'
    return MemtoolError(
        f"no query is saved as {SIGN}{name}", hint=quoted if name else hint, code="unknown-query"
    )


def _refusal(path: str, name: str, what: str) -> MemtoolError:
    return MemtoolError(f"{path}: {name} {what}", hint=f"edit {path}", code="bad-query")
