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
NAMING_AGENTS = tuple(name for name in AGENTS if name != "cursor")
"""Those whose transcripts give each message an id that no other message has."""
PATCH_HEADS = ("*** Add File: ", "*** Update File: ", "*** Delete File: ", "*** Move to: ")
"""How the lines of a patch begin that name a file, as Codex and others write it."""
