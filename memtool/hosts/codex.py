"""Codex: hooks in hooks.json, skills, and the server in config.toml.

It has no slash commands of a project; these are skills that only the user calls, as `$remember`.
"""

from __future__ import annotations

import os

from memtool.hosts.contracts import EDIT
from memtool.hosts.edits import (
    ARGUMENTS,
    MARK,
    ConfigEdit,
    TomlServer,
    WholeFile,
    commands,
    skill_file,
)
from memtool.hosts.install import Host, Site, home_of, hooks

MATCHERS = {EDIT: "apply_patch|Edit|Write"}
EXPLICIT = f"# {MARK}\npolicy:\n  allow_implicit_invocation: false\n"
"""Keeps a skill out of what the model chooses from."""


def parts(site: Site) -> list[ConfigEdit]:
    """Return hooks and skills."""
    levels = tuple(os.path.join(folder, "config.toml") for folder in (site.folder, site.other))
    found = hooks("codex", site, "hooks.json", levels=levels, matchers=MATCHERS)
    for prompt in commands():
        text = prompt.markdown(name=prompt.name).replace(ARGUMENTS, "(what the user wrote)")
        found.append(WholeFile(*site.at(f"skills/{prompt.name}/SKILL.md"), text))
        found.append(WholeFile(*site.at(f"skills/{prompt.name}/agents/openai.yaml"), EXPLICIT))
    return [*found, skill_file(site)]


def server(site: Site) -> ConfigEdit:
    """Return the MCP server."""
    path, elsewhere = site.at("config.toml")
    return TomlServer(path, elsewhere, name=site.shown(path), command=site.program)


HOST = Host(
    name="codex",
    title="Codex",
    program="codex",
    folder=".codex",
    home=lambda env: env.get("CODEX_HOME") or os.path.join(home_of(env), ".codex"),
    parts=parts,
    server=server,
    trust="Codex runs a hook only after you accept it: start codex and type /hooks; "
    "hooks of a project also need a trusted project",
)
