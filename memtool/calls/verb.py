"""Running a verb: the same for the command line, the servers and the Python API.

A verb itself does not know whether it works on the global repository: what `--global` changes is
here.
"""

from __future__ import annotations

from memtool.errors import MemtoolError
from memtool.store import derived

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any, TypeVar

    from memtool.calls.signature import Interface
    from memtool.store.context import Context

    Shaped = TypeVar("Shaped")


def run_verb(
    context: Context,
    face: Interface,
    positional: Iterable[Any],
    options: Mapping[str, Any],
    shape: Callable[[Any], Shaped],
) -> tuple[Any, Shaped]:
    """Run a verb in a repository; return its value, and what `shape` makes of that.

    A value may read derived files when it is shaped; if one turns out to be damaged, the verb runs
    again. What is written to the global repository is committed, since no user works in it.

    Raises:
        MemtoolError: the verb refuses.
    """
    places, given = [*positional], dict(options)
    if context.is_global and "commit" in given:
        given["commit"] = True

    def ask() -> tuple[Any, Shaped]:
        value = face.run(context, *places, **given)
        return value, shape(value)

    try:
        return derived.retry_if_damaged(context, ask)
    except MemtoolError as error:
        _redirect_hint(context, error, face.name, places)
        raise


def _redirect_hint(
    context: Context, error: MemtoolError, verb: str, words: Iterable[object]
) -> None:
    """Make the hint of an error lead to the repository that is meant.

    On global memories its commands get `--global`; where a project does not know an id that a
    global memory has, it says so.
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
        if isinstance(word, str) and word in known:
            error.hint = f"it is a global memory: memtool --global {verb} {word}"
            return
