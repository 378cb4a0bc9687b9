"""GitHub Copilot CLI: hooks in a file of their own, skills, and the server in mcp.json.

Copilot has no slash commands per project; instead these are skills that only the user can invoke,
such as `/remember`. It also reads the skills and servers of Claude Code.
"""

from __future__ import annotations

import os

from memtool.agents import COMMAND, EDIT
from memtool.hosts import edits
from memtool.hosts.edits import ConfigEdit, Site, build_command_skills, build_skill_file
from memtool.hosts.install import Host, build_hooks, find_home

MATCHERS = {COMMAND: "bash", EDIT: "apply_patch|bash|create|edit"}


def build_parts(site: Site) -> list[ConfigEdit]:
    """Build the hooks and skills."""
    parts = build_hooks(
        "copilot",
        site,
        "hooks/memtool.json",
        matchers=MATCHERS,
        start={"version": 1},
        grouped=False,
        command_key="bash",
        timeout_key="timeoutSec",
    )
    parts += build_command_skills(site, **{"disable-model-invocation": True})
    return [*parts, build_skill_file(site)]


def build_server(site: Site) -> ConfigEdit:
    """Build the MCP server entry; Copilot also reads that of Claude Code in a project."""
    inside, everywhere = "mcp.json", "mcp-config.json"
    path = os.path.join(site.folder, everywhere if site.is_user else inside)
    other = os.path.join(site.other_folder, inside if site.is_user else everywhere)
    return edits.build_server(site, path, (os.path.join(site.project, ".mcp.json"), other))


_SAMPLE = {"sessionId": "", "timestamp": 1795808328545, "cwd": "{project}"}
HOST = Host(
    name="copilot",
    title="GitHub Copilot CLI",
    program="copilot",
    folder=".github",
    sign=".github/hooks",
    home=lambda env: env.get("COPILOT_HOME") or os.path.join(find_home(env), ".copilot"),
    parts=build_parts,
    tested_version="1.0.102",
    server=build_server,
    trust_hint="GitHub Copilot CLI runs the hooks of a project only in a folder that you trust: "
    "restart it there",
    samples={
        "user-prompt-submitted": {**_SAMPLE, "prompt": "{prompt}"},
    },
)
