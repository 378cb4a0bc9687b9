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
"""The block format of each agent; `plain` is for any other reader."""
AGENTS = tuple(name for name in BLOCK_FORMATS if name != PLAIN)
NAMING_AGENTS = tuple(name for name in AGENTS if name != "cursor")
"""Agents whose transcripts give each message a unique id."""
PATCH_HEADS = ("*** Add File: ", "*** Update File: ", "*** Delete File: ", "*** Move to: ")
"""How the lines of a patch begin that name a file, as Codex and others write it."""
