"""`memtool alias`: words that mean the same in a search."""

from __future__ import annotations

from typing import Literal

from memtool.authoring import write
from memtool.commands._render import columns
from memtool.errors import MemtoolError
from memtool.search import expansion
from memtool.search.scope import aliases_file, aliases_path
from memtool.store import toml
from memtool.store.context import Context
from memtool.value import Value


class Alias(Value):
    """A word and its expansions; `is_default` where the file does not set them."""

    word: str
    expansions: tuple[str, ...]
    is_default: bool


class Aliases(Value):
    """The aliases that hold after the call. `changed` says that the file is another one now."""

    path: str
    aliases: tuple[Alias, ...]
    changed: bool = False
    commit: str | None = None
    dry_run: bool = False


def alias(
    context: Context,
    action: Literal["list", "add", "remove"] = "list",
    word: str = "",
    *expansions: str,
    commit: bool = False,
    dry_run: bool = False,
) -> Aliases:
    """List the words that mean the same in a search, or add or remove one.

    A question that holds the word is also searched for what it stands for, at half the weight, and
    the other way round. Common ones are built in; removing one of those switches it off here. They
    are kept in aliases.toml of the memory directory.

    Example:
        memtool alias add idp "identity provider" keycloak

    Args:
        action: list, add or remove
        word: the word; with list only its row is shown
        expansions: what it stands for: words or phrases
        commit: commit just the file of aliases
        dry_run: say what would change, write nothing
    """
    wanted = expansion.key(word) if word else ""
    if action == "list":
        if expansions:
            raise MemtoolError("list takes one word", hint="memtool alias add WORD EXPANSION…")
        return Aliases(aliases_path(context), _rows(aliases_file(context), context, wanted))
    if not wanted:
        raise MemtoolError(f"{action} needs a word", hint=f"memtool alias {action} WORD")
    if action == "add" and not expansions:
        raise MemtoolError(
            f"{wanted} stands for nothing yet", hint=f"memtool alias add {wanted} EXPANSION…"
        )
    if action == "remove" and expansions:
        raise MemtoolError("remove takes one word", hint=f"memtool alias remove {wanted}")
    added = tuple(dict.fromkeys(map(expansion.key, expansions)))
    path = aliases_path(context)
    done = write.edit_file(
        context,
        path,
        lambda before: _edited(before, path, action, wanted, added),
        f"memory: {action} alias {wanted}",
        commit=commit,
        dry_run=dry_run,
    )
    rows = _rows(done.data, context, wanted)
    return Aliases(path, rows, done.changed, done.commit, dry_run)


def render(shown: Aliases) -> str:
    """Return one line per word, and whether the file was changed."""
    rows = columns(
        (row.word, ", ".join(row.expansions), "(default)" if row.is_default else "")
        for row in shown.aliases
    )
    if shown.changed:
        rows.append(("would change " if shown.dry_run else "changed ") + shown.path)
    return "\n".join(rows)


def _edited(data: bytes, path: str, action: str, word: str, added: tuple[str, ...]) -> bytes:
    """Return the file with a row more or less.

    Raises:
        MemtoolError: the file is broken, or there is no such word to remove.
    """
    own = expansion.written(data, path)
    spelled = next((raw for raw in toml.read(data, path) if expansion.key(raw) == word), word)
    if action == "add":
        known = own.get(word, expansion.DEFAULTS.get(word, ()))
        row: list[str] | None = [*dict.fromkeys((*known, *added))]
    elif word not in expansion.merged(own):
        raise MemtoolError(
            f"{word} is no alias", hint="memtool alias list shows them", code="unknown-alias"
        )
    else:
        row = [] if word in expansion.DEFAULTS else None
    return toml.set_key(data.decode(), (spelled,), row).encode()


def _rows(data: bytes | None, context: Context, word: str) -> tuple[Alias, ...]:
    path = aliases_path(context)
    own = {} if data is None else expansion.written(data, path)
    found = expansion.merged(own)
    return tuple(
        Alias(one, others, one not in own)
        for one, others in found.items()
        if not word or one == word
    )
