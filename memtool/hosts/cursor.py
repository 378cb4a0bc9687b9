"""Cursor: hooks in hooks.json, slash commands, a rule, and the server in mcp.json.

Cursor accepts no context at a prompt, and its cloud agents run no start hook. The rule therefore
gives every agent the text of the skill.
"""

from __future__ import annotations

import os

from memtool.agents import EDIT
from memtool.hosts import edits
from memtool.hosts.edits import (
    SKILL,
    ConfigEdit,
    Prompt,
    Site,
    WholeFile,
    build_command_files,
    load_skill,
)
from memtool.hosts.install import Host, build_hooks, find_home


def build_parts(site: Site) -> list[ConfigEdit]:
    """Build hooks, slash commands and the rule; Cursor has no files for rules of all projects."""
    part_edits = build_hooks(
        "cursor", site, "hooks.json", matchers={EDIT: "Write"}, start={"version": 1}, grouped=False
    )
    part_edits += build_command_files(site, "commands/{}.md", Prompt.to_plain)
    if not site.is_user:
        rule = load_skill().to_markdown(alwaysApply=True)
        part_edits.append(WholeFile(*site.find_paths(f"rules/{SKILL}.mdc"), rule))
    return part_edits


HOST = Host(
    name="cursor",
    title="Cursor",
    program="cursor",
    folder=".cursor",
    home=lambda env: os.path.join(find_home(env), ".cursor"),
    parts=build_parts,
    reads_top_folder=False,
    server=lambda site: edits.build_server(site, *site.find_paths("mcp.json")),
    trust_hint="Cursor runs the hooks of a project only in a workspace that you trust: restart it",
    samples={
        "session-start": {
            "conversation_id": "",
            "generation_id": "490b90b7",
            "model": "claude-4.6-sonnet",
            "cursor_version": "3.7.21",
            "workspace_roots": ["{project}"],
            "user_email": "ada@example.org",
            "transcript_path": None,
            "hook_event_name": "{name}",
            "session_id": "",
            "is_background_agent": False,
            "composer_mode": "agent",
        }
    },
)
