"""Cursor: hooks in hooks.json, slash commands, a rule, and the server in mcp.json.

Cursor takes no context at a prompt, and agents in its cloud run no hook at the start: the rule
gives every agent the text of the skill.
"""

from __future__ import annotations

import os

from memtool.hosts import edits
from memtool.hosts.contracts import EDIT
from memtool.hosts.edits import SKILL, ConfigEdit, Prompt, Site, WholeFile, command_files, skill
from memtool.hosts.install import Host, home_of, hooks


def parts(site: Site) -> list[ConfigEdit]:
    """Return hooks, slash commands and the rule; rules for all projects are not kept in files."""
    found = hooks(
        "cursor", site, "hooks.json", matchers={EDIT: "Write"}, start={"version": 1}, grouped=False
    )
    found += command_files(site, "commands/{}.md", Prompt.bare)
    if not site.is_user:
        rule = skill().markdown(alwaysApply=True)
        found.append(WholeFile(*site.at(f"rules/{SKILL}.mdc"), rule))
    return found


HOST = Host(
    name="cursor",
    title="Cursor",
    program="cursor",
    folder=".cursor",
    home=lambda env: os.path.join(home_of(env), ".cursor"),
    parts=parts,
    looks_up=False,
    server=lambda site: edits.server(site, *site.at("mcp.json")),
    trust="Cursor runs the hooks of a project only in a workspace that you trust: restart it",
)
