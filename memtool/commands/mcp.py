"""`memtool mcp`: the verbs as tools of an agent, over the Model Context Protocol.

The server is a surface like the command line, which starts it in place of calling a function here.
Here is only what every surface reads: the name, the options and the help.
"""

from __future__ import annotations

from typing import Never, NoReturn

from memtool.errors import MemtoolError
from memtool.store.context import Context


def mcp(
    context: Context, *, all: bool = False, read_only: bool = False, structured: bool = False
) -> NoReturn:
    """Serve the memories of this repository to an agent, over the Model Context Protocol.

    A host starts it and talks to it through standard input and output, until it closes them. The
    tools are verbs: search, show, list, inject, remember and supersede. Hosts send what describes
    them with every request to the model, so the rest is offered only with --all: why, log, blame,
    diff, conflicts, check and status read; new, resolve, confirm, pin, unpin, restore, undo and
    forget write. Memories are resources, too: memory://ID. What another process changes is seen by
    the next call.

    Where the directory is in no repository, the client is asked which one it works in. docs/mcp.md
    shows how each host is told of it.

    Example:
        memtool mcp --read-only

    Args:
        all: offer every tool
        read_only: offer only the tools that read
        structured: answer programs with the value of --json beside the text
    """
    del context, all, read_only, structured
    raise MemtoolError(
        "an MCP server has a process of its own, whose input and output it speaks through",
        hint="let the host run: memtool mcp",
        code="surface",
    )


def render(_served: Never) -> str:
    """Return nothing: standard output belongs to the protocol."""
    return ""
