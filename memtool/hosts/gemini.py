"""Gemini CLI: hooks and the server in settings.json, slash commands in TOML, a skill."""

from __future__ import annotations

import os
from collections.abc import Mapping

from memtool.hosts import edits
from memtool.hosts.contracts import EDIT
from memtool.hosts.edits import SKILL, ConfigEdit, WholeFile, commands, skill
from memtool.hosts.install import Host, Site, home_of, hooks

SETTINGS = "settings.json"
MATCHERS = {EDIT: "write_file|replace"}


def home(env: Mapping[str, str]) -> str:
    """Return the directory of all projects."""
    return os.path.join(env.get("GEMINI_CLI_HOME") or home_of(env), ".gemini")


def parts(site: Site) -> list[ConfigEdit]:
    """Return hooks, slash commands and the skill."""
    found = hooks("gemini", site, SETTINGS, matchers=MATCHERS, comments=True, unit=1000)
    for prompt in commands():
        found.append(WholeFile(*site.at(f"commands/{prompt.name}.toml"), prompt.toml()))
    text = skill().markdown(name=SKILL)
    return [*found, WholeFile(*site.at(f"skills/{SKILL}/SKILL.md"), text)]


def server(site: Site) -> ConfigEdit:
    """Return the MCP server."""
    return edits.server(site, *site.at(SETTINGS), comments=True)


HOST = Host(
    name="gemini",
    title="Gemini CLI",
    program="gemini",
    folder=".gemini",
    home=home,
    parts=parts,
    server=server,
    trust="Gemini CLI reads the files of a project only in a folder that you trust: "
    "restart it, and see /permissions and /hooks there",
)
