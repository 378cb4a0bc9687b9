"""`memtool mcp`: the verbs as tools of an agent, over the Model Context Protocol.

The server is an interface like the command line, which starts it instead of calling a verb. This
module only has what every interface reads: the name, the options and the help.
"""

from __future__ import annotations

from typing import Never, NoReturn

from memtool.commands._layout import Layout
from memtool.errors import MemtoolError
from memtool.store.context import Context


def mcp(
    context: Context, *, all: bool = False, read_only: bool = False, structured: bool = False
) -> NoReturn:
    """Serve the memories to an agent over the Model Context Protocol.

    By default it offers the tools search, show, list, inject, remember, new and supersede; --all
    adds status, resolve, forget and the others. Every tool takes part of the agent's window.
    Memories are also resources: memory://ID. docs/mcp.md shows the settings of each agent.

    Example:
        memtool mcp --read-only

    Args:
        all: offer every tool
        read_only: offer only tools that read
        structured: also answer with JSON
    """
    del context, all, read_only, structured
    raise MemtoolError(
        "mcp can only be started from the command line",
        hint="memtool mcp",
        code="surface",
    )


def render(_served: Never, _layout: Layout) -> str:
    """Return nothing: standard output belongs to the protocol."""
    return ""
