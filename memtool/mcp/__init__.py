"""The server of the Model Context Protocol: a thin surface that reads the verbs' signatures."""

from __future__ import annotations

from memtool.errors import MemtoolError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from memtool.cli.arguments import Call

PACKAGES = ("anyio", "mcp", "mcp_types")


def serve(call: Call, env: Mapping[str, str]) -> int:
    """Serve what a command line names until the client leaves, and return the exit code.

    Raises:
        MemtoolError: the package that speaks the protocol is not installed, or is an older one.
    """
    try:
        from memtool.mcp import server
    except ImportError as error:
        if (error.name or "").partition(".")[0] not in PACKAGES:
            raise
        raise MemtoolError(
            "memtool mcp needs the package mcp, version 2 or later",
            hint='pip install "memtool[mcp]"',
            code="no-mcp",
        ) from None
    return server.serve(call.directory, env, is_global=call.is_global, **call.options)
