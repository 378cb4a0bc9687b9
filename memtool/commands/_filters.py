"""What several verbs read: standard input, `--global`.

`--global` stands once, here: a verb itself does not know which repository it works on.
"""

from __future__ import annotations

import sys

from memtool.errors import MemtoolError
from memtool.store.context import Context

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any


def received(most: int) -> bytes:
    """Return everything that stands on stdin.

    Raises:
        MemtoolError: stdin is closed, or holds more bytes than that.
    """
    if sys.stdin is None:
        raise MemtoolError("there is no stdin to read from", hint="give the text as an argument")
    data = sys.stdin.buffer.read(most + 1)
    if len(data) > most:
        raise MemtoolError(
            f"what stands on stdin is longer than {most:,} bytes",
            hint="split it, or leave out what is not text",
            code="too-large",
        )
    return data


def options(context: Context, run: Callable[..., Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of a verb as it is run in a repository.

    What is written to the global one is committed: nobody else would do it. A dry run leaves it
    unmade.
    """
    found = dict(given)
    context.is_dry = bool(found.get("dry_run"))
    if context.is_global and "commit" in (run.__kwdefaults__ or {}):
        found["commit"] = True
    return found


def pointed(context: Context, error: MemtoolError, verb: str, words: Iterable[object]) -> None:
    """Let the hint of an error lead to the repository that is meant.

    Of global memories it names commands that work on them; where a project does not know an id
    that a global memory has, it says so.
    """
    if context.is_global and "--global" not in error.hint:
        words_of = error.hint.split(" ")
        error.hint = " ".join(f"{w} --global" if w == "memtool" else w for w in words_of)
        if error.code == "commit-refused":
            for command in ("git commit", "git config"):
                there = f"git -C {context.repository.top}{command[3:]}"
                error.hint = error.hint.replace(command, there)
    if error.code != "unknown-id" or context.beside is None:
        return
    from memtool.index import index  # only where a project does not know an id

    try:
        known = index.open(context.beside)
    except MemtoolError:
        return
    for word in words:
        if isinstance(word, str) and word in known.by_id:
            error.hint = f"it is a global memory: memtool --global {verb} {word}"
            return
