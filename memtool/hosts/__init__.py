"""Where memtool can be installed: one module per host, and what they share."""

from __future__ import annotations

GIT = "git"
PRE_COMMIT = "pre-commit"
AGENTS = ("claude", "codex", "gemini", "opencode", "cursor")
"""The agent hosts."""
