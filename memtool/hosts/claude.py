"""Claude Code: hooks in settings.json, slash commands, a skill, and the server in .mcp.json."""

from __future__ import annotations

import os

from memtool.hosts import edits
from memtool.hosts.contracts import EDIT, FAILURE
from memtool.hosts.edits import ConfigEdit, Prompt, Site, command_files, skill_file
from memtool.hosts.install import Host, home_of, hooks

LOCAL = "settings.local.json"
"""Settings of one user for one project: a level of its own, which is looked at, never written."""
MATCHERS = {EDIT: "Edit|Write|MultiEdit|NotebookEdit", FAILURE: "Bash"}
ALLOWED: dict[str, str | bool] = {
    "allowed-tools": "Bash(memtool:*)",
    "disable-model-invocation": True,
}
"""What a slash command may do without a question, and that only the user calls it."""


def parts(site: Site) -> list[ConfigEdit]:
    """Return hooks, slash commands and the skill."""
    local = os.path.join(site.project, ".claude", LOCAL)
    found = hooks("claude", site, "settings.json", levels=(local,), matchers=MATCHERS)
    return [*found, *command_files(site, "commands/{}.md", _command), skill_file(site)]


def _command(prompt: Prompt) -> str:
    hint = {"argument-hint": f"[{prompt.arguments}]"} if prompt.arguments else {}
    return prompt.markdown(**ALLOWED, **hint)


def server(site: Site) -> ConfigEdit:
    """Return the MCP server, in a file next to the directory of Claude Code."""
    inside = os.path.join(site.project, ".mcp.json")
    everywhere = f"{site.folder if site.is_user else site.other}.json"
    if os.path.basename(everywhere) != ".claude.json":  # CLAUDE_CONFIG_DIR holds it inside
        everywhere = os.path.join(everywhere.removesuffix(".json"), ".claude.json")
    path, other = (everywhere, inside) if site.is_user else (inside, everywhere)
    return edits.server(site, path, (other,))


HOST = Host(
    name="claude",
    title="Claude Code",
    program="claude",
    folder=".claude",
    home=lambda env: env.get("CLAUDE_CONFIG_DIR") or os.path.join(home_of(env), ".claude"),
    parts=parts,
    looks_up=False,
    tried="2.1.197",
    server=server,
    trust="Claude Code reads hooks when it starts: restart it, and trust the folder if it asks",
)
