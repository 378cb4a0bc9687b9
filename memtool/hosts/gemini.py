"""Gemini CLI: hooks and the server in settings.json, slash commands in TOML, a skill."""

from __future__ import annotations

import os

from memtool.hosts import edits
from memtool.hosts.contracts import EDIT, RETIRED
from memtool.hosts.edits import ConfigEdit, Prompt, Site, command_files, skill_file
from memtool.hosts.install import Host, home_of, hooks

SETTINGS = "settings.json"
MATCHERS = {EDIT: "write_file|replace"}


def parts(site: Site) -> list[ConfigEdit]:
    """Return hooks, slash commands and the skill."""
    found = hooks("gemini", site, SETTINGS, matchers=MATCHERS, comments=True, unit=1000)
    return [*found, *command_files(site, "commands/{}.toml", Prompt.toml), skill_file(site)]


def retired(site: Site) -> list[ConfigEdit]:
    """Return the hooks that are asked for no longer."""
    return hooks("gemini", site, SETTINGS, comments=True, rows=RETIRED)


HOST = Host(
    name="gemini",
    title="Gemini CLI",
    program="gemini",
    folder=".gemini",
    home=lambda env: os.path.join(env.get("GEMINI_CLI_HOME") or home_of(env), ".gemini"),
    parts=parts,
    looks_up=False,
    tried="0.61.0",
    retired=retired,
    server=lambda site: edits.server(site, *site.at(SETTINGS), comments=True),
    trust="Gemini CLI reads the files of a project only in a folder that you trust: "
    "restart it, and see /permissions and /hooks there",
)
