"""Hosts in which memtool can be installed: one module each, and the code that they share."""

from __future__ import annotations

from memtool.agents import AGENTS

AGENTS_MD = "agents-md"
GIT = "git"
PRE_COMMIT = "pre-commit"
HOSTS = (*AGENTS, AGENTS_MD, GIT, PRE_COMMIT)
