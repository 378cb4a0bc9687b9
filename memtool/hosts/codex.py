"""Codex: hooks in hooks.json, skills, and the server in config.toml.

Codex has no slash commands per project; instead these are skills that only the user can invoke,
such as `$remember`.
"""

from __future__ import annotations

import json
import os
import subprocess
import threading
from collections.abc import Iterable, Mapping
from typing import Any

from memtool.agents import COMMAND, EDIT
from memtool.hosts.edits import (
    COMMANDS,
    MARK,
    ConfigEdit,
    Hook,
    Site,
    TomlServer,
    WholeFile,
    build_command_skills,
    build_skill_file,
)
from memtool.hosts.install import SAMPLE, Host, build_hooks, find_home
from memtool.version import __version__

LIST_LIMIT_S = 5
MATCHERS = {COMMAND: "Bash|shell", EDIT: "apply_patch|Bash|Edit|shell|Write"}
EXPLICIT_POLICY = f"# {MARK}\npolicy:\n  allow_implicit_invocation: false\n"
"""Policy that prevents the model from choosing a skill itself."""


def build_parts(site: Site) -> list[ConfigEdit]:
    """Build the hooks and skills."""
    levels = tuple(
        os.path.join(folder, "config.toml") for folder in (site.folder, site.other_folder)
    )
    edits = build_hooks("codex", site, "hooks.json", levels=levels, matchers=MATCHERS)
    for name, skill in zip(COMMANDS, build_command_skills(site), strict=True):
        policy = site.find_paths(f"skills/{name}/agents/openai.yaml")
        edits += [skill, WholeFile(*policy, EXPLICIT_POLICY)]
    return [*edits, build_skill_file(site)]


def build_server(site: Site) -> ConfigEdit:
    """Build the MCP server entry."""
    path, elsewhere = site.find_paths("config.toml")
    return TomlServer(path, elsewhere, name=site.format_path(path), command=site.program)


def find_refusal(site: Site, env: Mapping[str, str]) -> str:
    """Report how many hooks Codex skips, by its own list; empty if none or unknown.

    Codex silently skips a hook until the user has accepted it.
    """
    wanted = [part for part in build_parts(site) if isinstance(part, Hook)]
    listed = _list_hooks(site.project, env)
    if listed is None:
        return ""
    rows = {str(row.get("command")): row for row in listed}
    run_count = sum(_is_run(rows.get(hook.command, {})) for hook in wanted)
    skipped = len(wanted) - run_count
    return f"Codex skips {skipped} of {len(wanted)} hooks without a word" if skipped else ""


def _is_run(row: Mapping[str, Any]) -> bool:
    is_accepted = row.get("isManaged") or row.get("trustStatus") == "trusted"
    return bool(is_accepted and row.get("enabled", True))


def _list_hooks(project: str, env: Mapping[str, str]) -> list[dict[str, Any]] | None:
    """Ask Codex for its hooks in a project; None if it does not answer in time."""
    client_info = {"clientInfo": {"name": "memtool", "version": __version__}}
    requests = (
        {"id": 1, "method": "initialize", "params": client_info},
        {"method": "initialized"},
        {"id": 2, "method": "hooks/list", "params": {"cwds": [project]}},
    )
    try:
        server = subprocess.Popen(
            ["codex", "app-server"],
            cwd=project,
            env=dict(env),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
    except OSError:
        return None
    timer = threading.Timer(LIST_LIMIT_S, server.kill)
    timer.start()
    try:
        return _request_hooks(server, requests)
    except (OSError, ValueError, KeyError, TypeError):
        return None
    finally:
        timer.cancel()
        server.kill()
        server.communicate()


def _request_hooks(
    server: subprocess.Popen[bytes], requests: Iterable[Mapping[str, Any]]
) -> list[dict[str, Any]] | None:
    assert server.stdin is not None
    assert server.stdout is not None
    server.stdin.write("".join(f"{json.dumps(row)}\n" for row in requests).encode())
    server.stdin.flush()
    for line in server.stdout:
        row = json.loads(line)
        if row.get("id") == 2:
            (project_hooks,) = row["result"]["data"]
            return list(project_hooks["hooks"])
    return None


_SAMPLE = {**SAMPLE, "model": "gpt-5.5-codex", "permission_mode": "default"}
HOST = Host(
    name="codex",
    title="Codex",
    program="codex",
    folder=".codex",
    home=lambda env: env.get("CODEX_HOME") or os.path.join(find_home(env), ".codex"),
    parts=build_parts,
    refusal=find_refusal,
    tested_version="0.169.0",
    server=build_server,
    trust_hint="Codex runs a hook only after you accept it: start codex and type /hooks; "
    "hooks of a project also need a trusted project",
    samples={
        "session-start": {**_SAMPLE, "source": "startup"},
        "user-prompt-submit": {**_SAMPLE, "turn_id": "1", "prompt": "{prompt}"},
    },
)
