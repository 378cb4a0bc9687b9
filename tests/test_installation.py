"""Whoever follows a hint, a page or a template installs this memtool, never another program."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from memtool import installation

ROOT = Path(__file__).parent.parent
WRITTEN = ("memtool", "templates", "docs", "tests", "bench", ".ci")
"""Folders whose files people read, run or copy."""
INSTALLS = re.compile(
    r"""\b(?:(?:pip3?|pipx|uv\ tool|uv\ pip|apt|apt-get)
    \s+(?:install|inject|upgrade|run)|uv\ add|uvx)\s+(?:-[-\w=]+\s+)*["'`]*
    memtool\b(?![-/.])|(?<![-\w])memtool\[\w""",
    re.VERBOSE,
)
"""A command that installs what is called `memtool` elsewhere, or an extra of it."""
UNDECIDED = re.compile(r"OWNER/REPOSITORY|io\.github\.OWNER|\bCONTACT\b")
PYTHON = f"{sys.executable} -m pip install"


@pytest.fixture
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return an environment without any installed distribution."""
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    return tmp_path


def put(environment: Path, installer: str = "pip", **origin: object) -> None:
    """Leave behind what an installer does, with a `direct_url.json` if there is an origin."""
    folder = environment / "git_memtool-0.1.0.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Name: git-memtool\nVersion: 0.1.0\n")
    (folder / "INSTALLER").write_text(f"{installer}\n")
    if origin:
        (folder / "direct_url.json").write_text(json.dumps(origin))


FROM_GIT = {"vcs": "git", "commit_id": "1ba1323aae"}
ORIGINS = {
    "an index": ({}, "'git-memtool[web]'", "--upgrade git-memtool"),
    "a folder": (
        {"url": "file:///srv/the%20tool", "dir_info": {}},
        "'/srv/the tool[web]'",
        "'/srv/the tool'",
    ),
    "an editable folder": (
        {"url": "file:///srv/tool", "dir_info": {"editable": True}},
        "-e '/srv/tool[web]'",
        "-e /srv/tool",
    ),
    "git": (
        {"url": "https://git.example/a.git", "vcs_info": FROM_GIT | {"requested_revision": "v1"}},
        "'git-memtool[web] @ git+https://git.example/a.git@v1'",
        "--upgrade 'git-memtool @ git+https://git.example/a.git@v1'",
    ),
    "git with a password": (
        {"url": "https://ada:pw@git.example/a.git", "vcs_info": FROM_GIT},
        "'git-memtool[web] @ git+https://git.example/a.git'",
        "--upgrade 'git-memtool @ git+https://git.example/a.git'",
    ),
    "git over ssh": (
        {"url": "ssh://git@git.example/a.git", "vcs_info": FROM_GIT},
        "'git-memtool[web] @ git+ssh://git@git.example/a.git'",
        "--upgrade 'git-memtool @ git+ssh://git@git.example/a.git'",
    ),
    "an archive": (
        {"url": "https://files.example/t.whl", "archive_info": {}},
        "'git-memtool[web] @ https://files.example/t.whl'",
        "--upgrade 'git-memtool @ https://files.example/t.whl'",
    ),
}


@pytest.mark.parametrize("origin", ORIGINS)
def test_a_hint_names_where_this_copy_came_from(environment: Path, origin: str) -> None:
    """An extra and a newer version come from the same place as memtool did, without passwords."""
    record, extra, newer = ORIGINS[origin]
    put(environment, **record)
    assert installation.install("web") == f"{PYTHON} {extra}"
    assert installation.upgrade_command() == f"{PYTHON} {newer}"


def test_a_clone_is_brought_up_to_date_by_git(environment: Path) -> None:
    """An installation from a clone is updated with the clone."""
    clone = environment / "clone"
    (clone / ".git").mkdir(parents=True)
    put(environment, url=clone.as_uri(), dir_info={"editable": True})
    assert installation.upgrade_command() == f"git -C {clone} pull && {PYTHON} -e {clone}"


def test_what_was_never_installed_is_installed_from_its_source(environment: Path) -> None:
    """A copy that is on the path alone names the folder that it lies in."""
    assert installation.install("web") == f"{PYTHON} -e '{ROOT}[web]'"
    assert installation.install_on_path() == f"pipx install -e {ROOT}"


@pytest.mark.parametrize(
    ("file", "tool"), [("pipx_metadata.json", "pipx"), ("uv-receipt.toml", "uv tool")]
)
def test_a_tool_of_its_own_environment_is_asked_again(
    environment: Path, file: str, tool: str
) -> None:
    """Installations by pipx or uv are changed by them, since pip may be missing."""
    put(environment)
    (environment / file).touch()
    assert installation.install("web") == f"{tool} install --force 'git-memtool[web]'"
    assert installation.install_on_path() == f"{tool} install git-memtool"
    assert installation.upgrade_command() == f"{tool} upgrade git-memtool"


def test_an_environment_of_uv_is_changed_by_uv(environment: Path) -> None:
    """It has no pip of its own."""
    put(environment, installer="uv")
    assert installation.install() == f"uv pip install --python {sys.executable} git-memtool"


def texts() -> Iterator[tuple[str, str]]:
    """Yield the name and text of every file that people read, run or copy.

    Left out are the changelog, and what a build makes of the project file.
    """
    paths = [path for name in WRITTEN for path in (ROOT / name).rglob("*")]
    paths += [path for path in ROOT.iterdir() if path.name not in ("CHANGELOG.md", "PKG-INFO")]
    for path in paths:
        if path.is_file() and path != Path(__file__) and "__pycache__" not in path.parts:
            yield path.relative_to(ROOT).as_posix(), path.read_text("utf-8", "replace")


def test_nothing_says_to_install_a_program_of_a_stranger() -> None:
    """`memtool` is an allocator on PyPI and another tool in Debian; ours is `git-memtool`."""
    assert INSTALLS.search('pip install "memtool[web]"')
    assert INSTALLS.search("pipx install\nmemtool")
    wrong = [(name, match[0]) for name, text in texts() if (match := INSTALLS.search(text))]
    assert wrong == []


def test_names_that_nobody_has_decided_stand_in_one_file() -> None:
    """The repository's address, the registry's namespace and the contact are filled in once."""
    assert [name for name, text in texts() if UNDECIDED.search(text)] == ["pyproject.toml"]


def test_workflows_install_from_a_variable_or_not_at_all() -> None:
    """A privileged workflow installs what its owner named, and stops if nothing is named."""
    for path in (ROOT / "templates/ci").rglob("*.yml"):
        text = path.read_text("utf-8")
        if path.parent.name == "ci":
            assert "MEMTOOL_INSTALL: ${{ vars.MEMTOOL_INSTALL }}\n" in text, path
        first, *remaining = re.findall(r"pip install (.*)", text) or [None]
        assert first == (None if "uses: ./" in text else '"${MEMTOOL_INSTALL:?}"'), path
        assert all(other.startswith('"git-memtool[') for other in remaining), path
