"""`memtool serve`: the memories in a browser, and the verbs over HTTP, on this machine alone.

The server is an interface like the command line, which starts it instead of calling a verb. This
module only has what every interface reads: the name, the options and the help.
"""

from __future__ import annotations

from typing import Never, NoReturn

from memtool.commands._layout import Layout
from memtool.errors import MemtoolError
from memtool.store.context import Context


def serve(
    context: Context,
    *,
    port: int | None = None,
    write: bool = False,
    no_open: bool = False,
    verbose: bool = False,
) -> NoReturn:
    """Browse the memories in a browser, and offer the verbs to programs over HTTP.

    It listens on this machine only, and is read-only without --write. Programs find the address and
    their token in .git/memtool/serve.json. It needs the extra `web`; docs/web.md has the rest.

    Example:
        memtool serve
        memtool serve --write --no-open

    Args:
        port: the port, 0 for a free one; default: MEMTOOL_PORT, else 8765
        write: allow changes
        no_open: print the link, do not open the browser
        verbose: log each request on stderr, and show scores
    """
    del context, port, write, no_open, verbose
    raise MemtoolError(
        "serve can only be started from the command line",
        hint="memtool serve",
        code="surface",
    )


def render(_served: Never, _layout: Layout) -> str:
    """Return nothing: the answers go to the browser."""
    return ""
