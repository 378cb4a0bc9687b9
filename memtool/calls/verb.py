"""Running a verb, for the command line, the servers and the Python API.

Verbs do not know whether they work on the global repository: this module implements `--global`.
"""

from __future__ import annotations

from memtool.commands._layout import build_layout
from memtool.errors import MemtoolError
from memtool.store import derived

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any, TypeVar

    from memtool.calls.signature import Interface
    from memtool.commands._layout import Layout
    from memtool.store.context import Context

    Shaped = TypeVar("Shaped")


def run_verb(
    context: Context,
    face: Interface,
    positional: Iterable[Any],
    options: Mapping[str, Any],
    shape: Callable[[Any, Layout], Shaped],
    *,
    width: int = 0,
) -> tuple[Any, Shaped]:
    """Run a verb in a repository; return its value, and the result of `shape` for it.

    `shape` also gets the layout for text of `width` cells, 0 for no limit. It may read derived
    files; if one is damaged, the verb runs again. Changes of the global repository are always
    committed.

    Raises:
        MemtoolError: the verb refuses.
    """
    # No user works in the global repository, so no one else would commit there.
    places, all_options = [*positional], dict(options)
    if context.is_global and "commit" in all_options:
        all_options["commit"] = True

    def layout() -> Layout:
        has_index = not options.get("dry_run")
        return build_layout(context, options.get("at"), width, has_index=has_index)

    def ask() -> tuple[Any, Shaped]:
        value = face.run(context, *places, **all_options)
        return value, shape(value, layout())

    try:
        return derived.retry_if_damaged(context, ask)
    except MemtoolError as error:
        from memtool.calls import refusal  # most calls are not refused

        refusal.adapt_error(context, error, face.name, places, all_options)
        error.shorten = layout().shorten
        raise
