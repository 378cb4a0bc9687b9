"""File rules: which files a text names, and which decisions and warnings govern them.

Somebody who names a file is about to work on it. What was decided about it, and what it is warned
of, is worth more to them than memories that merely share words with the text.
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

MOST_NAMED = 20
"""Files of a prompt that are looked for."""
MOST_READ = 20_000
"""Characters of a prompt in which names of files are looked for."""
MOST_RULES = 3
MOST_RULE_TOKENS = 500
"""Of all that governs files: the agent is in the middle of its work, or asked for something."""
_LOOKED_AT = 20
_AROUND = "\"'`<>()[]{},;:!?*@"
"""Characters around the name of a file in a sentence; hosts write `@src/a.py`."""


def named_files(context: Context, text: str, *, at: str | None = None) -> tuple[str, ...]:
    """Return the files that a text names, in its order, as paths that `inside` reads.

    These are files of the worktree, relative to the working directory or the top. At a revision
    nothing on disk counts: there every word with a slash is taken for a path.
    """
    top = context.repository.top
    found: dict[str, None] = {}
    for word in _words(text):
        if at is not None:
            if "/" in word:
                found[os.path.join(top or context.caller.cwd, word)] = None
        elif os.path.lexists(os.path.join(context.caller.cwd, word)):
            found[word] = None
        elif top and os.path.lexists(os.path.join(top, word)):
            found[os.path.join(top, word)] = None
    return tuple(found)


def named_alone(text: str) -> frozenset[str]:
    """Return the words of a text that may be names of files without their directories."""
    return frozenset(word for word in _words(text) if "/" not in word)


def _words(text: str) -> list[str]:
    """Return the words of a text that may be names of files, each once, the first of them."""
    found: dict[str, None] = {}
    for word in _likely(text[:MOST_READ]):
        if len(found) == MOST_NAMED:
            break
        found[word] = None
    return list(found)


def _likely(text: str) -> Iterator[str]:
    """Yield the words with a slash, or a dot inside."""
    for word in text.split():
        plain = word.lstrip(_AROUND).rstrip(f"{_AROUND}.")
        name, _colon, line = plain.partition(":")
        plain = name if line[:1].isdigit() else plain
        is_name = "/" in plain or "." in plain[1:]
        if is_name and "\0" not in plain and "//" not in plain and plain.strip("./"):
            yield plain


def rules_over(
    context: Context,
    grounds: Eligibility,
    files: Iterable[str],
    names: frozenset[str] = frozenset(),
) -> list[Record]:
    """Return the decisions and warnings about files that may be shown.

    The most trusted come first, of these the most important.

    `files` are paths from the top; memories themselves are no files that anything governs. `names`
    are file names without their directories, which mean each file of that name that a memory names.
    """
    paths = [path for path in files if not path.startswith(f"{context.directory}/")]
    if not paths and not names:
        return []
    from memtool.search import picks  # a prompt that names no file needs none

    tree = grounds.tree
    paths += picks.paths_called(tree, names) if names else []
    found = [one for one in picks.ruling_over(tree, paths) if not grounds.refusal(one)]
    found.sort(key=lambda one: candidates.most_trusted_first(one, grounds))
    return found[:_LOOKED_AT]


def before(rules: Sequence[Record], answering: Iterable[str]) -> list[Record]:
    """Return rules in order: those that answer the prompt, too, come first, in that order."""
    places = {id_: place for place, id_ in enumerate(answering)}
    return sorted(rules, key=lambda one: places.get(one.id, len(places)))


def inside(context: Context, files: Iterable[str]) -> tuple[str, ...]:
    """Return the paths from the top of the repository; those outside are no memory's concern."""
    top = context.repository.top or context.caller.cwd
    found = []
    for path in files:
        if not path or "\0" in path:
            continue
        folder, name = os.path.split(os.path.normpath(os.path.join(context.caller.cwd, path)))
        place = os.path.relpath(os.path.join(os.path.realpath(folder), name), top)
        if place != ".." and not place.startswith("../"):
            found.append(place)
    return tuple(found)
