"""Claude Code: hooks in settings.json, slash commands, a skill, and the server in .mcp.json."""

from __future__ import annotations

import os

from memtool.agents import COMMAND, EDIT, FAILURE, TASK
from memtool.hosts import edits
from memtool.hosts.edits import ConfigEdit, Prompt, Site, build_command_files, build_skill_file
from memtool.hosts.install import SAMPLE, Host, build_hooks, find_home

LOCAL_SETTINGS = "settings.local.json"
"""One user's settings for one project: a level that memtool reads but never writes."""
MATCHERS = {
    COMMAND: "Bash",
    EDIT: "Bash|Edit|MultiEdit|NotebookEdit|Read|Write",
    FAILURE: "Bash",
    TASK: "Agent|Task",
}
COMMAND_KEYS: dict[str, str | bool] = {
    "allowed-tools": "Bash(memtool:*)",
    "disable-model-invocation": True,
}
"""Permissions of a slash command; only the user may invoke it."""


def build_parts(site: Site) -> list[ConfigEdit]:
    """Build the hooks, slash commands and skill."""
    local = os.path.join(site.project, ".claude", LOCAL_SETTINGS)
    hook_edits = build_hooks("claude", site, "settings.json", levels=(local,), matchers=MATCHERS)
    return [
        *hook_edits,
        *build_command_files(site, "commands/{}.md", _format_command),
        build_skill_file(site),
    ]


def _format_command(prompt: Prompt) -> str:
    hint = {"argument-hint": f"[{prompt.arguments}]"} if prompt.arguments else {}
    return prompt.to_markdown(**COMMAND_KEYS, **hint)


def build_server(site: Site) -> ConfigEdit:
    """Build the MCP server entry, in a file next to Claude Code's directory."""
    inside = os.path.join(site.project, ".mcp.json")
    everywhere = f"{site.folder if site.is_user else site.other_folder}.json"
    if os.path.basename(everywhere) != ".claude.json":  # with CLAUDE_CONFIG_DIR it is inside
        everywhere = os.path.join(everywhere.removesuffix(".json"), ".claude.json")
    path, other = (everywhere, inside) if site.is_user else (inside, everywhere)
    return edits.build_server(site, path, (other,))


HOST = Host(
    name="claude",
    title="Claude Code",
    program="claude",
    folder=".claude",
    home=lambda env: env.get("CLAUDE_CONFIG_DIR") or os.path.join(find_home(env), ".claude"),
    parts=build_parts,
    reads_top_folder=False,
    tested_version="2.1.332",
    server=build_server,
    trust_hint="Claude Code reads hooks when it starts: restart it, "
    "and trust the folder if it asks",
    samples={
        "session-start": {**SAMPLE, "source": "startup", "model": "claude-opus-5-5"},
        "subagent-start": {
            **SAMPLE,
            "prompt_id": "p-1",
            "agent_id": "a-1",
            "agent_type": "general-purpose",
        },
        "user-prompt-submit": {
            **SAMPLE,
            "permission_mode": "default",
            "prompt_id": "p-1",
            "prompt": "{prompt}",
        },
    },
)
