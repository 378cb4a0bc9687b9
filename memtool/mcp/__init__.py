"""The server of the Model Context Protocol: a thin surface that reads the verbs' signatures."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from memtool.calls.bind import Call


def serve(call: Call, env: Mapping[str, str]) -> int:
    """Serve what a command line names until the client leaves, and return the exit code."""
    from memtool.mcp import server  # it loads every verb

    return server.serve(call.directory, env, is_global=call.is_global, **call.options)
