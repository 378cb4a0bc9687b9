"""Qwen Code: hooks and the server in settings.json, slash commands in TOML, a skill."""

from __future__ import annotations

import os

from memtool.agents import COMMAND, EDIT, FAILURE
from memtool.hosts import edits
from memtool.hosts.edits import ConfigEdit, Prompt, Site, build_command_files, build_skill_file
from memtool.hosts.install import SAMPLE, Host, build_hooks, find_home

SETTINGS = "settings.json"
MATCHERS = {
    COMMAND: "run_shell_command",
    EDIT: "edit|notebook_edit|read_file|run_shell_command|write_file",
    FAILURE: "run_shell_command",
}


def build_parts(site: Site) -> list[ConfigEdit]:
    """Build the hooks, slash commands and skill."""
    hook_edits = build_hooks("qwen", site, SETTINGS, matchers=MATCHERS, comments=True, unit=1000)
    return [
        *hook_edits,
        *build_command_files(site, "commands/{}.toml", Prompt.to_toml),
        build_skill_file(site),
    ]


_SAMPLE = {**SAMPLE, "timestamp": "2026-11-27T19:37:54.240Z", "permission_mode": "yolo"}
HOST = Host(
    name="qwen",
    title="Qwen Code",
    program="qwen",
    folder=".qwen",
    home=lambda env: env.get("QWEN_HOME") or os.path.join(find_home(env), ".qwen"),
    parts=build_parts,
    reads_top_folder=False,
    tested_version="0.24.4",
    server=lambda site: edits.build_server(site, *site.find_paths(SETTINGS), comments=True),
    trust_hint="Qwen Code reads hooks when it starts: restart it, and see /hooks there",
    samples={
        "session-start": {**_SAMPLE, "source": "startup", "model": "qwen3-coder-plus"},
        "user-prompt-submit": {
            **_SAMPLE,
            "prompt_id": "p-1",
            "prompt": "{prompt}",
            "submitted_prompt": "{prompt}",
        },
    },
)
