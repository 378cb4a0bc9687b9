"""Where memtool can be installed: one module per host, and what they share."""

from __future__ import annotations

from memtool.agents import AGENTS

GIT = "git"
PRE_COMMIT = "pre-commit"
HOSTS = (*AGENTS, GIT, PRE_COMMIT)
