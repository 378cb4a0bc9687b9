"""Cursor: hooks in hooks.json, slash commands, a rule, and the server in mcp.json.

Cursor takes no context at a prompt, and agents in its cloud run no hook at the start: the rule
tells every agent what the skill tells elsewhere.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from memtool.hosts import edits
from memtool.hosts.contracts import EDIT
from memtool.hosts.edits import SKILL, ConfigEdit, WholeFile, commands, skill
from memtool.hosts.install import Host, Site, home_of, hooks

MATCHERS = {EDIT: "Write"}


def home(env: Mapping[str, str]) -> str:
    """Return the directory of all projects."""
    return os.path.join(home_of(env), ".cursor")


def parts(site: Site) -> list[ConfigEdit]:
    """Return hooks, slash commands and the rule; rules for all projects are not kept in files."""
    found = hooks(
        "cursor", site, "hooks.json", matchers=MATCHERS, start={"version": 1}, grouped=False
    )
    for prompt in commands():
        found.append(WholeFile(*site.at(f"commands/{prompt.name}.md"), prompt.bare()))
    if not site.is_user:
        rule = skill().markdown(alwaysApply=True)
        found.append(WholeFile(*site.at(f"rules/{SKILL}.mdc"), rule))
    return found


def server(site: Site) -> ConfigEdit:
    """Return the MCP server."""
    return edits.server(site, *site.at("mcp.json"))


HOST = Host(
    name="cursor",
    title="Cursor",
    program="cursor",
    folder=".cursor",
    home=home,
    parts=parts,
    server=server,
    trust="Cursor runs the hooks of a project only in a workspace that you trust: restart it",
)
