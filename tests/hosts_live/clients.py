"""The clients, as npm brings them: how each is run headless and offline, and what its tools are.

All are installed by name into one cache directory, in the versions that `memtool/hosts` names as
tested. With `MEMTOOL_CLIENTS=newest` they are the newest ones, in a directory of their own.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from conftest import Sandbox
from hosts_live.model_server import Call
from hosts_live.packages import CACHE, install, locked

from memtool.hosts.install import load_host

IS_NEWEST = os.environ.get("MEMTOOL_CLIENTS") == "newest"
CLIENTS = CACHE / f"memtool-live-clients{'-newest' if IS_NEWEST else ''}"
PACKAGES = {
    "claude": "@anthropic-ai/claude-code",
    "cline": "cline",
    "codex": "@openai/codex",
    "copilot": "@github/copilot",
    "gemini": "@google/gemini-cli",
    "opencode": "opencode-ai",
    "qwen": "@qwen-code/qwen-code",
}
CLIENT_S = 240


@cache
def programs() -> Path:
    """Return the directory of the clients' programs; the tests skip where npm cannot bring them."""
    with locked(CLIENTS):
        if not all(map(is_current, PACKAGES)):
            # Without a version npm takes the newest one that supports its Node, which may be old.
            install(CLIENTS, *(f"{PACKAGES[name]}@{find_wanted(name)}" for name in PACKAGES))
        if not (_PLUGIN / "node_modules").exists():
            install(_PLUGIN, f"@opencode-ai/plugin@{version('opencode')}")
    return CLIENTS / "node_modules" / ".bin"


def find_pinned(name: str) -> str:
    """Return the version of a client with which memtool was tried."""
    return load_host(name).tested_version


def find_wanted(name: str) -> str:
    """Return the version of a client to install, or the name of the newest."""
    return "latest" if IS_NEWEST else find_pinned(name)


def is_installed(name: str) -> bool:
    """Return whether a client is in the cache."""
    return (CLIENTS / "node_modules" / PACKAGES[name] / "package.json").exists()


def is_current(name: str) -> bool:
    """Return whether a client is there in the wanted version; the newest is brought only once."""
    return is_installed(name) and (IS_NEWEST or version(name) == find_pinned(name))


_PLUGIN = CLIENTS / "opencode-plugin"
"""What OpenCode installs into each directory of settings at its first start, which takes long."""


def place_plugin(folder: Path) -> None:
    """Put what OpenCode would install into a directory of its settings."""
    folder.mkdir(parents=True, exist_ok=True)
    if (_PLUGIN / "node_modules").exists() and not (folder / "node_modules").exists():
        (folder / "node_modules").symlink_to(_PLUGIN / "node_modules")
        for name in ("package.json", "package-lock.json"):
            shutil.copy(_PLUGIN / name, folder / name)


def version(name: str) -> str:
    """Return the version of an installed client."""
    package = CLIENTS / "node_modules" / PACKAGES[name] / "package.json"
    return str(json.loads(package.read_text())["version"])


@dataclass(frozen=True)
class Client:
    """One client: its arguments, settings and tools.

    `env` and `settings` take the address of the model; settings are files below the home directory
    or, where they begin with `./`, the repository. `has_end`: it reports the end of a session also
    without a terminal.
    """

    name: str
    run: tuple[str, ...]
    resume: tuple[str, ...]
    env: Callable[[str], Mapping[str, str]]
    edit: Callable[[Path, str, str], tuple[Call, ...]]
    shell: Callable[[str], Call]
    search: str
    trust: Mapping[str, str] = field(default_factory=dict)
    has_end: bool = True
    settings: Callable[[str, Path], Mapping[str, str]] = field(default=lambda _url, _path: {})

    def __str__(self) -> str:
        return self.name

    def configure(self, team: Sandbox, url: str, **files: str) -> None:
        """Write the client's settings, for a model at this address; or others in their place."""
        home = Path(team.env["HOME"])
        for path, text in (files or self.settings(url, team.path)).items():
            place = team.path / path if path.startswith("./") else home / path
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(text)
        if self.name == "opencode":
            place_plugin(home / ".config" / "opencode")
            place_plugin(team.path / ".opencode")

    def ask(
        self, team: Sandbox, url: str, *prompt: str, resume: bool = False, **env: str
    ) -> subprocess.CompletedProcess[str]:
        """Run the client with a prompt in the team's repository, to its end."""
        call = [str(programs() / self.name), *(self.resume if resume else self.run), *prompt]
        return subprocess.run(
            call,
            cwd=team.path,
            env={**team.env, **self.env(url), **env},
            check=False,
            capture_output=True,
            text=True,
            timeout=CLIENT_S,
            stdin=subprocess.DEVNULL,
        )


def _claude_env(url: str) -> dict[str, str]:
    return {
        "ANTHROPIC_API_KEY": "made-up",
        "ANTHROPIC_BASE_URL": url,
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTOUPDATER": "1",
        "DISABLE_ERROR_REPORTING": "1",
        "DISABLE_TELEMETRY": "1",
        "IS_SANDBOX": "1",
    }


def _claude_edit(path: Path, old: str, new: str) -> tuple[Call, ...]:
    edit = {"file_path": str(path), "old_string": old, "new_string": new}
    return Call("Read", {"file_path": str(path)}), Call("Edit", edit)


def _codex_settings(url: str, path: Path) -> dict[str, str]:
    return {
        ".codex/config.toml": f"""\
model = "gpt-5.5"
model_provider = "fake"
[model_providers.fake]
name = "fake"
base_url = "{url}/v1"
env_key = "FAKE_KEY"
wire_api = "responses"
request_max_retries = 0
stream_max_retries = 0
[projects."{path}"]
trust_level = "trusted"
"""
    }


def _codex_edit(path: Path, old: str, new: str) -> tuple[Call, ...]:
    patch = f"*** Begin Patch\n*** Update File: {path}\n@@\n-{old}\n+{new}\n*** End Patch\n"
    return (Call("apply_patch", {"freeform": patch}),)


def _gemini_env(url: str) -> dict[str, str]:
    return {
        "GEMINI_API_KEY": "made-up",
        "GOOGLE_GEMINI_BASE_URL": url,
        "GEMINI_CLI_TRUST_WORKSPACE": "true",
    }


def _gemini_settings(_url: str, _path: Path) -> dict[str, str]:
    return {".gemini/settings.json": json.dumps(_GEMINI_SETTINGS)}


_GEMINI_SETTINGS = {"security": {"auth": {"selectedType": "gemini-api-key"}}}
GEMINI_COMPACTING = {
    ".gemini/settings.json": json.dumps(
        {**_GEMINI_SETTINGS, "model": {"compressionThreshold": 0.00001}}
    )
}
"""Settings with which every request sums up the context first."""


def _gemini_edit(path: Path, old: str, new: str) -> tuple[Call, ...]:
    edit = {
        "file_path": str(path),
        "old_string": old,
        "new_string": new,
        "instruction": "change it",
    }
    return (Call("replace", edit),)


def _opencode_settings(url: str, _path: Path) -> dict[str, str]:
    settings: dict[str, Any] = {
        "model": "fake/made-up",
        "provider": {
            "fake": {
                "npm": "@ai-sdk/anthropic",
                "options": {"baseURL": f"{url}/v1", "apiKey": "made-up"},
                "models": {"made-up": {"limit": {"context": 200_000, "output": 8_000}}},
            }
        },
    }
    return {".config/opencode/opencode.json": json.dumps(settings)}


def _opencode_edit(path: Path, old: str, new: str) -> tuple[Call, ...]:
    edit = {"filePath": str(path), "oldString": old, "newString": new}
    return Call("read", {"filePath": str(path)}), Call("edit", edit)


def _cline_settings(url: str, _path: Path) -> dict[str, str]:
    name = "openai-compatible"
    model = {"provider": name, "apiKey": "made-up", "model": "made-up", "baseUrl": f"{url}/v1"}
    providers = {name: {"settings": model, "updatedAt": "2026-11-27T20:03:40.714Z"}}
    settings = {"version": 1, "lastUsedProvider": name, "modes": {}, "providers": providers}
    return {".cline/data/settings/providers.json": json.dumps(settings)}


def _cline_edit(path: Path, old: str, new: str) -> tuple[Call, ...]:
    edit = {"path": str(path), "old_text": old, "new_text": new}
    return Call("read_files", {"files": [{"path": str(path)}]}), Call("editor", edit)


def _copilot_env(url: str) -> dict[str, str]:
    return {
        "COPILOT_AUTO_UPDATE": "false",
        "COPILOT_MODEL": "made-up",
        "COPILOT_OFFLINE": "true",
        "COPILOT_PROVIDER_API_KEY": "made-up",
        "COPILOT_PROVIDER_BASE_URL": f"{url}/v1",
    }


def _copilot_settings(_url: str, path: Path) -> dict[str, str]:
    return {".copilot/config.json": json.dumps({"trustedFolders": [str(path)]})}


def _copilot_edit(path: Path, old: str, new: str) -> tuple[Call, ...]:
    edit = {"path": str(path), "old_str": old, "new_str": new}
    return Call("view", {"path": str(path)}), Call("edit", edit)


def _qwen_env(url: str) -> dict[str, str]:
    return {
        "OPENAI_API_KEY": "made-up",
        "OPENAI_BASE_URL": f"{url}/v1",
        "OPENAI_MODEL": "made-up",
        "QWEN_CODE_SUPPRESS_YOLO_WARNING": "1",
    }


def _qwen_settings(_url: str, _path: Path) -> dict[str, str]:
    memory = ("enableManagedAutoMemory", "enableManagedAutoDream", "enableAutoSkill")
    return {".qwen/settings.json": json.dumps({"memory": dict.fromkeys(memory, False)})}


def _qwen_edit(path: Path, old: str, new: str) -> tuple[Call, ...]:
    edit = {"file_path": str(path), "old_string": old, "new_string": new}
    return Call("read_file", {"file_path": str(path)}), Call("edit", edit)


CLAUDE = Client(
    "claude",
    run=("-p", "--dangerously-skip-permissions"),
    resume=("-p", "--dangerously-skip-permissions", "--continue"),
    env=_claude_env,
    edit=_claude_edit,
    shell=lambda command: Call("Bash", {"command": command, "description": "run"}),
    search="mcp__memtool__search",
)
_CODEX = ("--dangerously-bypass-hook-trust", "--dangerously-bypass-approvals-and-sandbox")
CODEX = Client(
    "codex",
    run=("exec", *_CODEX),
    resume=("exec", *_CODEX, "resume", "--last"),
    env=lambda _url: {"FAKE_KEY": "made-up"},
    edit=_codex_edit,
    shell=lambda command: Call("exec_command", {"cmd": command}),
    search="mcp__memtool.search",
    settings=_codex_settings,
)
GEMINI = Client(
    "gemini",
    run=("-y", "-m", "gemini-2.5-flash", "-p"),
    resume=("-y", "-m", "gemini-2.5-flash", "--resume", "latest", "-p"),
    env=_gemini_env,
    edit=_gemini_edit,
    shell=lambda command: Call("run_shell_command", {"command": command}),
    search="mcp_memtool_search",
    settings=_gemini_settings,
)
OPENCODE = Client(
    "opencode",
    run=("run",),
    resume=("run", "--continue"),
    env=lambda _url: {
        "OPENCODE_DISABLE_AUTOUPDATE": "1",
        "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
        "OPENCODE_DISABLE_MODELS_FETCH": "1",
    },
    edit=_opencode_edit,
    shell=lambda command: Call("bash", {"command": command, "description": "run"}),
    search="memtool_search",
    settings=_opencode_settings,
)
CLINE = Client(
    "cline",
    run=("--auto-approve", "true", "-P", "openai-compatible", "-m", "made-up"),
    resume=(),
    env=lambda _url: {},
    edit=_cline_edit,
    shell=lambda command: Call("run_commands", {"commands": [command]}),
    search="",
    settings=_cline_settings,
)
COPILOT = Client(
    "copilot",
    run=("--allow-all-tools", "-p"),
    resume=("--allow-all-tools", "--continue", "-p"),
    env=_copilot_env,
    edit=_copilot_edit,
    shell=lambda command: Call("bash", {"command": command, "description": "run"}),
    search="memtool-search",
    settings=_copilot_settings,
)
QWEN = Client(
    "qwen",
    run=("--auth-type", "openai", "-y"),
    resume=("--auth-type", "openai", "-y", "--continue"),
    env=_qwen_env,
    edit=_qwen_edit,
    shell=lambda command: Call("run_shell_command", {"command": command, "is_background": False}),
    search="mcp__memtool__search",
    settings=_qwen_settings,
    has_end=False,
)
FULL = (CLAUDE, CODEX, COPILOT, GEMINI, OPENCODE, QWEN)
"""Clients whose hooks answer a prompt; Cline's answer a tool only."""
ALL = tuple(sorted((*FULL, CLINE), key=str))
