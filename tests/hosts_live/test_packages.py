"""Packages in the installers of real clients, and a session that has one beside an installation."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from conftest import Sandbox
from hosts_live.clients import CLAUDE, CODEX, COPILOT, GEMINI, Client, programs
from hosts_live.model_server import ModelServer
from hosts_live.packages import install_pinned
from hosts_live.team import DECISION, GUIDE, PINNED, QUESTION, ask, run

from memtool.hosts.packages import PACKAGES

pytestmark = pytest.mark.live

INSTALL_S = 120
BUNDLER = {"@anthropic-ai/mcpb": "2.1.2"}
CHECKS = {
    "claude": ("claude", "plugin", "validate"),
    "gemini": ("gemini", "extensions", "validate"),
}
"""The validator of a client, which takes the directory; the others validate as they install."""


def call(team: Sandbox, client: Client, url: str, *words: str) -> str:
    """Run a command of a client; return its output."""
    done = subprocess.run(
        [str(programs() / words[0]), *words[1:]],
        cwd=team.path,
        env={**team.env, **client.env(url)},
        check=False,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=INSTALL_S,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


@pytest.mark.parametrize("client", [CLAUDE, CODEX, COPILOT, GEMINI], ids=str)
def test_a_package_works_alone_and_beside_an_installation(
    client: Client, bare: Sandbox, model: ModelServer, tmp_path: Path
) -> None:
    """The client's validator and installer take it, and each memory appears once."""
    client.configure(bare, model.url)
    folder = str(tmp_path / "package")
    run(bare, "package", client.name, folder)
    if client.name in CHECKS:
        call(bare, client, model.url, *CHECKS[client.name], folder)
    for line in PACKAGES[client.name].install.replace("DIR", folder).splitlines():
        words = line.split()
        words += ["--consent", "--skip-settings"] if client.name == "gemini" else []
        call(bare, client, model.url, *words)
    for count in range(2):
        first = ask(bare, client, model, QUESTION)
        for text in (GUIDE, PINNED, DECISION):
            assert first.text.count(text) == 1, (text, count)
        run(bare, "install", client.name, "--yes")


def test_the_eval_suite_is_one_for_its_client(
    bare: Sandbox, model: ModelServer, tmp_path: Path
) -> None:
    """Each case runs with the plugin and without; only the former has memories of its repository.

    The made-up model answers nothing to the point: scores say nothing here.
    """
    folder, results = str(tmp_path / "package"), tmp_path / "results.json"
    run(bare, "package", "claude", folder)
    words = ("--runs", "1", "--scaffold", "--trust-plugin", "--no-publish", "--threshold", "0")
    call(
        bare, CLAUDE, model.url, "claude", "plugin", "eval", folder, *words, "--json", str(results)
    )
    cases = json.loads(results.read_text("utf-8"))["cases"]
    assert len(cases) >= 4
    runs = [run for case in cases for arm in case["arms"].values() for run in arm]
    assert [run.get("error") for run in runs] == [None] * 2 * len(cases)
    assert sum("Logs name bookings" in turn.text for turn in model.turns) == len(cases)


def test_a_bundle_is_one_for_its_tool(bare: Sandbox, tmp_path: Path) -> None:
    """mcpb reads the manifest and packs it."""
    tool = install_pinned("memtool-live-mcpb", BUNDLER) / ".bin" / "mcpb"
    folder = tmp_path / "package"
    run(bare, "package", "mcp", str(folder))
    for words in (("validate", "manifest.json"), ("pack", ".", str(tmp_path / "memtool.mcpb"))):
        done = subprocess.run(
            [tool, *words],
            cwd=folder,
            check=False,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=INSTALL_S,
        )
        assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "memtool.mcpb").stat().st_size > 500
