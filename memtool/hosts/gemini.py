"""Gemini CLI: hooks and the server in settings.json, slash commands in TOML, a skill."""

from __future__ import annotations

import os

from memtool.agents import COMMAND, EDIT
from memtool.hosts import edits
from memtool.hosts.contracts import RETIRED
from memtool.hosts.edits import ConfigEdit, Prompt, Site, build_command_files, build_skill_file
from memtool.hosts.install import SAMPLE, Host, build_hooks, find_home

SETTINGS = "settings.json"
MATCHERS = {COMMAND: "run_shell_command", EDIT: "replace|run_shell_command|write_file"}


def build_parts(site: Site) -> list[ConfigEdit]:
    """Build the hooks, slash commands and skill."""
    hook_edits = build_hooks("gemini", site, SETTINGS, matchers=MATCHERS, comments=True, unit=1000)
    return [
        *hook_edits,
        *build_command_files(site, "commands/{}.toml", Prompt.to_toml),
        build_skill_file(site),
    ]


def build_retired(site: Site) -> list[ConfigEdit]:
    """Build the hooks of older versions, to remove them."""
    return build_hooks("gemini", site, SETTINGS, comments=True, rows=RETIRED)


_SAMPLE = {**SAMPLE, "timestamp": "2026-11-22T05:00:00.000Z"}
HOST = Host(
    name="gemini",
    title="Gemini CLI",
    program="gemini",
    folder=".gemini",
    home=lambda env: os.path.join(env.get("GEMINI_CLI_HOME") or find_home(env), ".gemini"),
    parts=build_parts,
    reads_top_folder=False,
    tested_version="0.61.0",
    retired=build_retired,
    server=lambda site: edits.build_server(site, *site.find_paths(SETTINGS), comments=True),
    trust_hint="Gemini CLI reads the files of a project only in a folder that you trust: "
    "restart it, and see /permissions and /hooks there",
    samples={
        "session-start": {**_SAMPLE, "source": "startup"},
        "before-agent": {**_SAMPLE, "prompt": "{prompt}"},
    },
)
