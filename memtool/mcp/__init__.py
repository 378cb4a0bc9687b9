"""The server of the Model Context Protocol, a thin layer over the signatures of the verbs."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from memtool.calls.bind import Call


def serve(call: Call, env: Mapping[str, str]) -> int:
    """Serve the repository of a command line until the client disconnects; return the exit code."""
    from memtool.mcp import server  # it loads every verb

    return server.serve(call.directory, env, is_global=call.is_global, **call.options)
