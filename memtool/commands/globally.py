"""Globally: what a surface does where a verb works on global memories, or should have.

`--global` stands once, here: a verb itself does not know which repository it works on.
"""

from __future__ import annotations

from memtool.errors import MemtoolError
from memtool.workspace import Workspace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any


def options(ws: Workspace, run: Callable[..., Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of a verb as it is run in a repository.

    What is written to the global one is committed: nobody else would do it. A dry run leaves it
    unmade.
    """
    found = dict(given)
    ws.is_dry = bool(found.get("dry_run"))
    if ws.is_global and "commit" in (run.__kwdefaults__ or {}):
        found["commit"] = True
    return found


def pointed(ws: Workspace, error: MemtoolError, verb: str, words: Iterable[object]) -> None:
    """Let the hint of an error lead to the repository that is meant.

    Of global memories it names commands that work on them; where a project does not know an id
    that a global memory has, it says so.
    """
    if ws.is_global and "--global" not in error.hint:
        words_of = error.hint.split(" ")
        error.hint = " ".join(f"{w} --global" if w == "memtool" else w for w in words_of)
        if error.code == "commit-refused":
            for command in ("git commit", "git config"):
                there = f"git -C {ws.repository.top}{command[3:]}"
                error.hint = error.hint.replace(command, there)
    if error.code != "unknown-id" or ws.beside is None:
        return
    try:
        known = ws.beside.catalog()
    except MemtoolError:
        return
    for word in words:
        if isinstance(word, str) and word in known.by_id:
            error.hint = f"it is a global memory: memtool --global {verb} {word}"
            return
