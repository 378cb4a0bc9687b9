"""File rules: which files a text names, and which decisions, warnings and conventions govern them.

A user who names a file is about to work on it. Decisions and warnings about it are worth more than
memories that merely share words with the text.
"""

from __future__ import annotations

import os

from memtool.inject import candidates

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from memtool.inject.candidates import Eligibility
    from memtool.store.context import Context
    from memtool.store.tree import Record

MAX_NAMED = 20
"""Files of a prompt that are looked for."""
MAX_READ = 20_000
"""Characters of a prompt in which names of files are looked for."""
MAX_RULES = 3
MAX_RULE_TOKENS = 500
"""Of all that governs files: the agent is in the middle of its work, or asked for something."""
_MAX_RECORDS = 20
_PUNCTUATION = "\"'`<>()[]{},;:!?*@"
"""Characters around the name of a file in a sentence; hosts write `@src/a.py`."""


def find_named_files(context: Context, text: str, *, at: str | None = None) -> tuple[str, ...]:
    """Return the files that a text names, in its order, as paths for `paths_from_top`.

    These are files of the worktree, relative to the working directory or the top. At a revision
    nothing on disk counts: there every word with a slash is taken for a path.
    """
    top = context.repository.top
    names: dict[str, None] = {}
    for word in _split_words(text):
        if at is not None:
            if "/" in word:
                names[os.path.join(top or context.caller.cwd, word)] = None
        elif os.path.lexists(os.path.join(context.caller.cwd, word)):
            names[word] = None
        elif top and os.path.lexists(os.path.join(top, word)):
            names[os.path.join(top, word)] = None
    return tuple(names)


def find_bare_names(text: str) -> frozenset[str]:
    """Return the words of a text that may be names of files without their directories."""
    return frozenset(word for word in _split_words(text) if "/" not in word)


def _split_words(text: str) -> list[str]:
    """Return the words of a text that may be names of files, each once, the first of them."""
    words: dict[str, None] = {}
    for word in _find_likely_paths(text[:MAX_READ]):
        if len(words) == MAX_NAMED:
            break
        words[word] = None
    return list(words)


def _find_likely_paths(text: str) -> Iterator[str]:
    """Yield the words with a slash, or a dot inside."""
    for word in text.split():
        plain = word.lstrip(_PUNCTUATION).rstrip(f"{_PUNCTUATION}.")
        name, _colon, line = plain.partition(":")
        plain = name if line[:1].isdigit() else plain
        is_name = "/" in plain or "." in plain[1:]
        if is_name and "\0" not in plain and "//" not in plain and plain.strip("./"):
            yield plain


def find_rules_over(
    context: Context,
    grounds: Eligibility,
    files: Iterable[str],
    names: frozenset[str] = frozenset(),
) -> list[Record]:
    """Return the decisions and warnings about files that may be shown, then the conventions.

    Of each, the most trusted come first, then the most important.

    `files` are paths from the top; memory files are governed by nothing. `names` are file names
    without their directories, which mean every file of that name that a memory names.
    """
    paths = [path for path in files if not path.startswith(f"{context.directory}/")]
    if not paths and not names:
        return []
    from memtool.search import picks  # a prompt that names no file needs none
    from memtool.store import renames

    tree = grounds.tree
    moves = grounds.moves()
    if (
        tree.location.kind == "worktree"
    ):  # an agent edits files that it has renamed and not committed
        paths += renames.find_staged_renames(context.repository, paths)
    paths += picks.find_paths_called(tree, names, moves) if names else []
    records = [
        record
        for record in picks.find_ruling(tree, paths, moves, picks.is_governing)
        if not grounds.find_refusal(record)
    ]
    records.sort(
        key=lambda record: (not picks.is_ruling(record), candidates.trust_order(record, grounds))
    )
    return records[:_MAX_RECORDS]


def order_rules(rules: Sequence[Record], answering: Iterable[str]) -> list[Record]:
    """Return rules in order: those that answer the prompt, too, come first, in that order."""
    places = {id_: place for place, id_ in enumerate(answering)}
    return sorted(rules, key=lambda record: places.get(record.id, len(places)))


def paths_from_top(context: Context, files: Iterable[str]) -> tuple[str, ...]:
    """Return the paths from the top of the repository, without those outside of it."""
    top = context.repository.top or context.caller.cwd
    paths = []
    for path in files:
        if not path or "\0" in path:
            continue
        folder, name = os.path.split(os.path.normpath(os.path.join(context.caller.cwd, path)))
        place = os.path.relpath(os.path.join(os.path.realpath(folder), name), top)
        if place != ".." and not place.startswith("../"):
            paths.append(place)
    return tuple(paths)
