"""OpenCode: a plugin, slash commands, a skill, and the server in opencode.json."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping

from memtool import templates
from memtool.hosts.edits import (
    ConfigEdit,
    Prompt,
    Server,
    Site,
    WholeFile,
    command_files,
    skill_file,
)
from memtool.hosts.install import Host, home_of

PLUGIN = "plugins/memtool.js"
SETTINGS = ("opencode.json", "opencode.jsonc")


def home(env: Mapping[str, str]) -> str:
    """Return the directory of all projects."""
    base = env.get("XDG_CONFIG_HOME") or os.path.join(home_of(env), ".config")
    return os.path.join(base, "opencode")


def parts(site: Site) -> list[ConfigEdit]:
    """Return the plugin, slash commands and the skill."""
    plugin = templates.read("hosts/opencode.js").replace("@PROGRAM@", json.dumps(site.program))
    texts = command_files(site, "command/{}.md", Prompt.markdown)
    return [WholeFile(*site.at(PLUGIN), plugin), *texts, skill_file(site)]


def server(site: Site) -> ConfigEdit:
    """Return the MCP server, in the settings that are there."""
    everywhere = site.folder if site.is_user else site.other
    here, there = (everywhere, site.project) if site.is_user else (site.project, everywhere)
    paths = [os.path.join(here, name) for name in SETTINGS]
    path = next(filter(os.path.lexists, paths), paths[0])
    return Server(
        path=path,
        elsewhere=tuple(os.path.join(there, name) for name in SETTINGS),
        name=site.shown(path),
        start={"$schema": "https://opencode.ai/config.json"},
        comments=True,
        key="mcp",
        entry={"type": "local", "command": [site.program, "mcp"], "enabled": True},
    )


HOST = Host(
    name="opencode",
    title="OpenCode",
    program="opencode",
    folder=".opencode",
    home=home,
    parts=parts,
    tried="1.18.33",
    server=server,
)
