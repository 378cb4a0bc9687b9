"""Packages: what `install` writes for a host, in the form that its own installer takes."""

from __future__ import annotations

import json
import os
import tomllib
from pathlib import Path
from typing import Any

import pytest
from conftest import PIPED, Sandbox

from memtool import installation
from memtool.commands.install import install
from memtool.commands.package import package, render
from memtool.errors import MemtoolError
from memtool.hosts.packages import PACKAGE_NAMES, PACKAGES
from memtool.version import __version__

ROOT = Path(__file__).parents[2]
AGENTS = tuple(name for name in PACKAGE_NAMES if PACKAGES[name].host)


def read_all(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): path.read_text("utf-8")
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


@pytest.mark.parametrize("name", AGENTS)
def test_a_package_has_what_an_installation_writes(sandbox: Sandbox, name: str) -> None:
    """The same hooks, commands and skills; nothing of an installation is missing."""
    before = read_all(sandbox.path)
    install(sandbox.context(), name)
    installed = {
        path.partition("/")[2]: text
        for path, text in read_all(sandbox.path).items()
        if path not in before and not path.startswith(".git/")
    }
    package(sandbox.context(), name, "dist")
    packaged = read_all(sandbox.path / "dist" / PACKAGES[name].folder)
    (hooks,) = (text for path, text in installed.items() if path.endswith(".json"))
    assert packaged[PACKAGES[name].hooks] == hooks
    texts = {path: text for path, text in installed.items() if not path.endswith(".json")}
    assert len(texts) > 10
    assert {path: packaged.get(path) for path in texts} == texts


@pytest.mark.parametrize("name", PACKAGE_NAMES)
def test_manifests_name_the_version_and_the_server(sandbox: Sandbox, name: str) -> None:
    """All are JSON objects. Those of agents start `memtool mcp` from the PATH."""
    package(sandbox.context(), name, "dist")
    files = read_all(sandbox.path / "dist")
    documents: dict[str, dict[str, Any]] = {
        path: json.loads(files[path]) for path in PACKAGES[name].manifests
    }
    assert __version__ in {row.get("version") for row in documents.values()}
    if PACKAGES[name].host:
        servers = [row["mcpServers"] for row in documents.values() if "mcpServers" in row]
        assert [row for row in servers if isinstance(row, dict)] == [
            {"memtool": {"command": "memtool", "args": ["mcp"]}}
        ]
        assert f"Version {__version__}," in files[os.path.join(PACKAGES[name].folder, "README.md")]


def test_the_registry_reads_what_pyproject_says(sandbox: Sandbox) -> None:
    """Names that nobody has decided yet stand in pyproject.toml alone."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    package(sandbox.context(), "mcp", "dist")
    entry = json.loads((sandbox.path / "dist/server.json").read_text("utf-8"))
    owner = project["urls"]["Repository"].split("/")[3]
    assert entry["name"] == f"io.github.{owner}/{project['name']}"
    assert entry["repository"]["url"] == project["urls"]["Repository"]
    assert project["description"].startswith(entry["description"])
    assert len(entry["description"]) <= 100
    assert entry["packages"][0]["identifier"] == project["name"]


def test_a_package_is_written_again_in_place(sandbox: Sandbox) -> None:
    """Only what differs; a dry run writes nothing and lists the files."""
    planned = package(sandbox.context(), "claude", "dist", dry_run=True)
    assert not (sandbox.path / "dist").exists()
    assert "  .claude-plugin/plugin.json\n" in render(planned, PIPED)
    first = package(sandbox.context(), "claude", "dist")
    assert first.written == len(first.files)
    plugin = sandbox.path / "dist/.claude-plugin/plugin.json"
    text = plugin.read_text("utf-8")
    plugin.write_text(text.replace(__version__, "0.0.1"), "utf-8")
    assert package(sandbox.context(), "claude", "dist").written == 1
    assert plugin.read_text("utf-8") == text


@pytest.mark.parametrize("path", ["dist", "dist/notes.txt"])
def test_files_of_others_are_not_mixed_with_a_package(sandbox: Sandbox, path: str) -> None:
    """A file, or a directory with other files, is refused before anything is written."""
    sandbox.write(path, "mine\n")
    before = read_all(sandbox.path)
    with pytest.raises(MemtoolError) as refused:
        package(sandbox.context(), "gemini", "dist")
    assert refused.value.code == "exists"
    assert read_all(sandbox.path) == before


def test_a_package_needs_the_description_of_an_installer(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A copy that runs from its source says how to install it."""
    monkeypatch.setattr(installation, "DISTRIBUTION", "git-memtool-elsewhere")
    with pytest.raises(MemtoolError) as refused:
        package(sandbox.context(), "claude", "dist")
    assert refused.value.code == "not-installed"
    assert "install" in refused.value.hint
