"""Where memtool can be installed: one module per host, all in one table."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from memtool.hosts.install import Host

GIT = "git"
AGENTS = ("claude", "codex", "gemini", "opencode", "cursor")
"""The agent hosts; the module of each holds a `HOST`."""


def agent(name: str) -> Host:
    """Return an agent host by its name."""
    found: Host = __import__(f"memtool.hosts.{name}", fromlist=["HOST"]).HOST
    return found
