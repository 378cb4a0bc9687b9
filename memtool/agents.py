"""The agent hosts: the one list of them, in the order of every help page."""

from __future__ import annotations

PLAIN = "plain"
BLOCK_FORMATS: dict[str, str] = {
    "claude": "xml",
    "codex": "text",
    "gemini": "markdown",
    "opencode": "text",
    "cursor": "xml",
    PLAIN: "text",
}
"""The format of the block that each gets; `plain` stands for any other reader."""
AGENTS = tuple(name for name in BLOCK_FORMATS if name != PLAIN)
