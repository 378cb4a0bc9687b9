"""Codex: hooks in hooks.json, skills, and the server in config.toml.

It has no slash commands of a project; these are skills that only the user calls, as `$remember`.
"""

from __future__ import annotations

import json
import os
import subprocess
import threading
from collections.abc import Iterable, Mapping
from typing import Any

from memtool.hosts.contracts import EDIT
from memtool.hosts.edits import (
    ARGUMENTS,
    MARK,
    ConfigEdit,
    Hook,
    Site,
    TomlServer,
    WholeFile,
    commands,
    skill_file,
)
from memtool.hosts.install import Host, home_of, hooks
from memtool.version import __version__

LIST_LIMIT_S = 5
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


def refusal(site: Site, env: Mapping[str, str]) -> str:
    """Return how many hooks Codex skips, as its own list of them says; empty for none, or unknown.

    It runs a hook only once the user accepted it, and skips it in silence before.
    """
    wanted = [part for part in parts(site) if isinstance(part, Hook)]
    known = _listed(site.project, env)
    if known is None:
        return ""
    rows = {str(row.get("command")): row for row in known}
    run = sum(_is_run(rows.get(hook.command, {})) for hook in wanted)
    skipped = len(wanted) - run
    return f"Codex skips {skipped} of {len(wanted)} hooks without a word" if skipped else ""


def _is_run(row: Mapping[str, Any]) -> bool:
    is_accepted = row.get("isManaged") or row.get("trustStatus") == "trusted"
    return bool(is_accepted and row.get("enabled", True))


def _listed(project: str, env: Mapping[str, str]) -> list[dict[str, Any]] | None:
    """Return the hooks that Codex knows in a project, None where it does not answer in time."""
    about = {"clientInfo": {"name": "memtool", "version": __version__}}
    asked = (
        {"id": 1, "method": "initialize", "params": about},
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
    clock = threading.Timer(LIST_LIMIT_S, server.kill)
    clock.start()
    try:
        return _answer(server, asked)
    except (OSError, ValueError, KeyError, TypeError):
        return None
    finally:
        clock.cancel()
        server.kill()
        server.communicate()


def _answer(
    server: subprocess.Popen[bytes], asked: Iterable[Mapping[str, Any]]
) -> list[dict[str, Any]] | None:
    assert server.stdin is not None
    assert server.stdout is not None
    server.stdin.write("".join(f"{json.dumps(row)}\n" for row in asked).encode())
    server.stdin.flush()
    for line in server.stdout:
        row = json.loads(line)
        if row.get("id") == 2:
            (found,) = row["result"]["data"]
            return list(found["hooks"])
    return None


HOST = Host(
    name="codex",
    title="Codex",
    program="codex",
    folder=".codex",
    home=lambda env: env.get("CODEX_HOME") or os.path.join(home_of(env), ".codex"),
    parts=parts,
    refusal=refusal,
    tried="0.169.0",
    server=server,
    trust="Codex runs a hook only after you accept it: start codex and type /hooks; "
    "hooks of a project also need a trusted project",
)
