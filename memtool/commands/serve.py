"""`memtool serve`: the memories in a browser, and the verbs over HTTP, on this machine alone.

The server is a surface like the command line, which starts it in place of calling a function here.
Here is only what every surface reads: the name, the options and the help.
"""

from __future__ import annotations

from typing import Never, NoReturn

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
    """Show the memories of this repository in a browser, and serve the verbs to programs.

    It listens on this machine alone. On a terminal the browser is opened with a link that logs in
    once; a program reads its address and token in serve.json of memtool's folder in the git
    directory, which only you may read. Nothing can be written unless --write is given, and then
    through the same gate as in the shell. Interrupt it to end it.

    It needs the extra `web`. docs/web.md says what there is to see, and how programs ask.

    Example:
        memtool serve

    Args:
        port: the port, 0 for a free one; by default MEMTOOL_PORT, else 8765
        write: let the browser and programs write, too
        no_open: print the link, do not open the browser
        verbose: write a line for each request on stderr, and the scores of what was found
    """
    del context, port, write, no_open, verbose
    raise MemtoolError(
        "the web view has a process of its own",
        hint="in a shell: memtool serve",
        code="surface",
    )


def render(_served: Never) -> str:
    """Return nothing: the answers go to the browser."""
    return ""
