"""Saved queries: names for queries that are asked again and again, in `queries.toml`.

    pinned-decisions = "type:decision is:pinned"

    [open]
    query = "is:candidate OR is:conflicted"
    doc = "what somebody has to look at"

`memtool search @open` asks the second; words behind the name narrow it.
"""

from __future__ import annotations

from memtool.errors import MemtoolError
from memtool.memory.schema import is_id
from memtool.search import query as language
from memtool.search.query import Either
from memtool.store.config import read_toml
from memtool.value import Value

QUERIES_NAME = "queries.toml"
SIGN = "@"
KEYS = ("query", "doc")
_SHORTEST = 3
"""Characters of an id; the name of a query may be shorter."""


class Saved(Value):
    """A saved query; `doc` says what it is for, and may be empty."""

    name: str
    query: str
    doc: str


def parse(data: bytes | None, path: str) -> dict[str, Saved]:
    """Return the saved queries of a file by name, sorted; None is no file.

    Raises:
        MemtoolError: it is not TOML, or a row is no query; the message names the row.
    """
    if data is None:
        return {}
    found = {}
    for name, row in sorted(read_toml(data, path).items()):
        table = {"query": row} if isinstance(row, str) else row
        if not _is_name(name):
            raise _refusal(path, repr(name), "must be a name of a-z 0-9 . _ -")
        if not isinstance(table, dict) or not isinstance(table.get("query"), str):
            raise _refusal(path, name, 'must be a query, or a table with query = "…"')
        unknown = sorted(set(table) - set(KEYS))
        if unknown:
            raise _refusal(path, f"{name}.{unknown[0]}", f"is not one of {', '.join(KEYS)}")
        doc = table.get("doc", "")
        if not isinstance(doc, str):
            raise _refusal(path, f"{name}.doc", "must be text")
        found[name] = Saved(name, _checked(path, name, table["query"]), doc)
    return found


def name_of(text: str) -> str | None:
    """Return the name that a query begins with, as in `@open redis`; None where it has none.

    The sign alone is the empty name, which no query has. What cannot be a name, such as
    `@angular/core`, is text, and so is everything in double quotes.
    """
    first, *_others = text.split(maxsplit=1) or [""]
    name = first.removeprefix(SIGN)
    return name if first.startswith(SIGN) and (not name or _is_name(name)) else None


def expand(text: str, name: str, known: dict[str, Saved], path: str) -> str:
    """Return the text of a query that begins with the name of a saved one.

    Raises:
        MemtoolError: no query is saved under that name; the hint says which are.
    """
    if name not in known:
        raise _unknown(name, known, path)
    query = known[name].query
    more = text.strip().removeprefix(SIGN + name).strip()
    if more and isinstance(language.parse(query).root, Either):
        query = f"({query})"  # OR binds loosest, and what follows narrows all of it
    return f"{query} {more}" if more else query


def _is_name(text: str) -> bool:
    return is_id(text.ljust(_SHORTEST, "-"))


def _checked(path: str, name: str, query: str) -> str:
    text = " ".join(query.split("\n")).strip()
    if not text:
        raise _refusal(path, name, "must not be empty")
    try:
        language.parse(text)
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
        hint = "there are " + ", ".join(SIGN + one for one in known)
    else:
        hint = f'write NAME = "QUERY" into {path}'
    quoted = f'{hint}; for the text itself write "{SIGN}{name}" in double quotes'
    return MemtoolError(
        f"no query is saved as {SIGN}{name}", hint=quoted if name else hint, code="unknown-query"
    )


def _refusal(path: str, name: str, what: str) -> MemtoolError:
    return MemtoolError(f"{path}: {name} {what}", hint=f"edit {path}", code="bad-query")
