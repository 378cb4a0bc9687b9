"""`memtool alias`: words that mean the same in a search."""

from __future__ import annotations

from typing import Literal

from memtool.authoring import write
from memtool.commands._layout import Layout
from memtool.errors import MemtoolError
from memtool.search import expansion
from memtool.search.scope import aliases_path, read_aliases_file
from memtool.store import toml
from memtool.store.context import Context
from memtool.value import Value, format_count


class Alias(Value):
    """A word and its expansions; `is_default` if they are built in."""

    word: str
    expansions: tuple[str, ...]
    is_default: bool


class Aliases(Value):
    """The aliases after the call; `changed` if the file was changed."""

    json_fields = "path aliases changed commit dry_run"

    path: str
    aliases: tuple[Alias, ...]
    changed: bool = False
    commit: str | None = None
    dry_run: bool = False
    is_whole_list: bool = False
    """Whether every word was asked for; then the text only counts the built-in ones."""


def alias(
    context: Context,
    action: Literal["list", "add", "remove"] = "list",
    word: str = "",
    *expansions: str,
    all: bool = False,
    commit: bool = False,
    dry_run: bool = False,
) -> Aliases:
    """List words that mean the same in a search, or add or remove one.

    A search for the word also finds its expansions, at half their weight, and the other way round.
    The common ones are built in; removing such a word switches it off in this repository.

    Example:
        memtool alias list
        memtool alias add idp "identity provider" keycloak

    Args:
        action: list, add or remove
        word: the word; list shows only this one
        expansions: words or phrases that mean the same
        all: list the built-in words as well
        commit: commit the file of aliases only
        dry_run: show what would change, write nothing
    """
    wanted = expansion.normalize_key(word) if word else ""
    if action == "list":
        if expansions:
            raise MemtoolError(
                "alias list takes a single word", hint="memtool alias add WORD EXPANSION"
            )
        return Aliases(
            aliases_path(context),
            _build_rows(read_aliases_file(context), context, wanted),
            is_whole_list=not (wanted or all),
        )
    if not wanted:
        raise MemtoolError(f"alias {action} needs a word", hint=f"memtool alias {action} WORD")
    if action == "add" and not expansions:
        raise MemtoolError(
            f"alias add {wanted} needs the words that it stands for",
            hint=f"memtool alias add {wanted} EXPANSION",
        )
    if action == "remove" and expansions:
        raise MemtoolError(
            "alias remove takes a single word", hint=f"memtool alias remove {wanted}"
        )
    added = tuple(dict.fromkeys(map(expansion.normalize_key, expansions)))
    path = aliases_path(context)
    done = write.edit_file(
        context,
        path,
        lambda before: _edit(before, path, action, wanted, added),
        f"{action} alias {wanted}",
        commit=commit,
        dry_run=dry_run,
    )
    rows = _build_rows(done.data, context, wanted)
    return Aliases(path, rows, done.changed, done.commit, dry_run)


def render(shown: Aliases, layout: Layout) -> str:
    """Return one line per word, and report whether the file was changed.

    Of the list of all words, those that are built in are only counted.
    """
    if shown.changed:
        would = "Would change" if shown.dry_run else "Changed"
        layout.report(f"{would} {shown.path}")
    hides_defaults = shown.is_whole_list
    listed = [row for row in shown.aliases if not (hides_defaults and row.is_default)]
    rows = layout.table([(row.word, ", ".join(row.expansions)) for row in listed])
    hidden = len(shown.aliases) - len(listed)
    if hidden:
        builtin = format_count(hidden, "built-in word")
        rows.append(f"{'and ' if rows else ''}{builtin} (memtool alias list --all)")
    return "\n".join(rows)


def _edit(data: bytes, path: str, action: str, word: str, added: tuple[str, ...]) -> bytes:
    """Return the content of the file with one row added or removed.

    Raises:
        MemtoolError: the file is broken, or does not have the word to remove.
    """
    own_aliases = expansion.read_aliases(data, path)
    spelled = next(
        (raw for raw in toml.read(data, path) if expansion.normalize_key(raw) == word), word
    )
    if action == "add":
        expansions = own_aliases.get(word, expansion.DEFAULTS.get(word, ()))
        row: list[str] | None = [*dict.fromkeys((*expansions, *added))]
    elif word not in expansion.merge_with_defaults(own_aliases):
        raise MemtoolError(f'no alias "{word}"', hint="memtool alias list", code="unknown-alias")
    else:
        row = [] if word in expansion.DEFAULTS else None
    return toml.set_key(data.decode(), (spelled,), row).encode()


def _build_rows(data: bytes | None, context: Context, word: str) -> tuple[Alias, ...]:
    path = aliases_path(context)
    own_aliases = {} if data is None else expansion.read_aliases(data, path)
    merged = expansion.merge_with_defaults(own_aliases)
    return tuple(
        Alias(term, expansions, term not in own_aliases)
        for term, expansions in merged.items()
        if not word or term == word
    )
