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
    build_command_files,
    build_skill_file,
)
from memtool.hosts.install import Host, find_home

PLUGIN = "plugins/memtool.js"
SETTINGS = ("opencode.json", "opencode.jsonc")


def find_user_folder(env: Mapping[str, str]) -> str:
    """Return the directory of settings for all projects."""
    base = env.get("XDG_CONFIG_HOME") or os.path.join(find_home(env), ".config")
    return os.path.join(base, "opencode")


def build_parts(site: Site) -> list[ConfigEdit]:
    """Build the plugin, slash commands and skill."""
    plugin = templates.read("hosts/opencode.js").replace("@PROGRAM@", json.dumps(site.program))
    texts = build_command_files(site, "command/{}.md", Prompt.to_markdown)
    return [WholeFile(*site.find_paths(PLUGIN), plugin), *texts, build_skill_file(site)]


def build_server(site: Site) -> ConfigEdit:
    """Build the MCP server entry, in the settings file that exists."""
    everywhere = site.folder if site.is_user else site.other_folder
    here, there = (everywhere, site.project) if site.is_user else (site.project, everywhere)
    paths = [os.path.join(here, name) for name in SETTINGS]
    path = next(filter(os.path.lexists, paths), paths[0])
    return Server(
        path=path,
        elsewhere=tuple(os.path.join(there, name) for name in SETTINGS),
        name=site.format_path(path),
        start={"$schema": "https://opencode.ai/config.json"},
        comments=True,
        key="mcp",
        entry={"type": "local", "command": [site.program, "mcp"], "enabled": True},
    )


_SAMPLE = {"session_id": "", "cwd": "{project}", "prompt": "{prompt}", "files": []}
HOST = Host(
    name="opencode",
    title="OpenCode",
    program="opencode",
    folder=".opencode",
    home=find_user_folder,
    parts=build_parts,
    tested_version="1.18.33",
    server=build_server,
    samples={"session-start": _SAMPLE, "prompt": _SAMPLE},
)
