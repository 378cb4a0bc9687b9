"""Line ends: a checkout with CRLF holds the same memories as any other."""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import Sandbox

BODY = "Deploys of the shop run on Tuesdays only.\nNever before a holiday.\n"
PROMPT = "when do deploys of the shop run?"
AUTO, TEXT = "* text=auto eol=crlf\n", "*.md text eol=crlf\n"


def cloned(sandbox: Sandbox, place: Path, autocrlf: str) -> Sandbox:
    """Clone a repository with a setting for line ends."""
    sandbox.git(
        "clone", "--quiet", "--config", f"core.autocrlf={autocrlf}", str(sandbox.path), str(place)
    )
    return Sandbox(place, sandbox.env)


@pytest.mark.parametrize(
    ("autocrlf", "attributes"), [("true", ""), ("false", AUTO), ("false", TEXT)]
)
def test_a_checkout_with_crlf_is_what_was_committed(
    sandbox: Sandbox, tmp_path: Path, autocrlf: str, attributes: str
):
    """Trust, citation, the block and the check are those of a checkout with LF."""
    path = sandbox.memory("dec-a", BODY)
    sandbox.write(".gitattributes", attributes)
    sandbox.commit()
    plain = cloned(sandbox, tmp_path / "lf", "false")
    (tmp_path / "lf" / path).write_bytes((sandbox.path / path).read_bytes())
    other = cloned(sandbox, tmp_path / "crlf", autocrlf)
    assert b"\r\n" in (other.path / path).read_bytes()
    for args in (
        ("inject", "--prompt", PROMPT),
        ("list",),
        ("show", "dec-a"),
        ("log",),
        ("check",),
    ):
        expected = plain.run(*args)
        for env in ({}, {"MEMTOOL_NO_CACHE": "1"}):
            done = other.run(*args, **env)
            assert (done.returncode, done.stdout) == (expected.returncode, expected.stdout), args
    assert other.json("list")["memories"][0]["trust"] == "trusted"
    assert other.json("status")["uncommitted"] == []


def test_a_new_memory_of_such_a_checkout_is_its_commit(sandbox: Sandbox, tmp_path: Path):
    """A file with CRLF is read as git will store it, before and after."""
    sandbox.memory("dec-a", BODY)
    sandbox.commit()
    other = cloned(sandbox, tmp_path / "crlf", "true")
    path = other.memory("dec-new", "Builds run nightly.\n")
    place = other.path / path
    place.write_bytes(place.read_bytes().replace(b"\n", b"\r\n"))
    assert other.json("show", "dec-new")["body"] == "Builds run nightly.\n"
    other.commit()
    assert other.json("show", "dec-new")["trust"] == "committed"


def test_where_git_converts_nothing_crlf_is_a_change(sandbox: Sandbox, tmp_path: Path):
    """Committed with CRLF it is what it is; changed to CRLF it is not what was committed."""
    path = sandbox.memory("dec-a", BODY)
    place = sandbox.path / path
    lf = place.read_bytes()
    place.write_bytes(lf.replace(b"\n", b"\r\n"))
    sandbox.commit()
    assert sandbox.json("show", "dec-a")["trust"] == "committed"
    place.write_bytes(lf)
    sandbox.commit()
    place.write_bytes(lf.replace(b"\n", b"\r\n"))
    assert sandbox.json("show", "dec-a")["trust"] == "local"


def test_a_lifecycle_change_there_commits_one_line(sandbox: Sandbox, tmp_path: Path):
    """The verb edits the file as it is on disk, and git stores it without the other line ends."""
    path = sandbox.memory("dec-a", BODY, status="confirmed")
    sandbox.commit()
    other = cloned(sandbox, tmp_path / "crlf", "true")
    assert other.run("deprecate", "dec-a", "--reason", "moved", "--commit").returncode == 0
    assert other.git("show", "--numstat", "--format=", "HEAD").split() == ["1", "1", path]
    assert other.run("check").returncode == 0
