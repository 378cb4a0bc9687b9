"""Where memtool can be installed: one module per host, and what they share."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from memtool.hosts.install import Host

GIT = "git"
PRE_COMMIT = "pre-commit"
AGENTS = ("claude", "codex", "gemini", "opencode", "cursor")
"""The agent hosts."""


def agent(name: str) -> Host:
    """Return an agent host, or the pre-commit framework, by its name."""
    module = f"memtool.hosts.{name.replace('-', '_')}"
    found: Host = __import__(module, fromlist=["HOST"]).HOST
    return found
