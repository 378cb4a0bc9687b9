"""`memtool auto`: whether anything is captured unasked, and who said no."""

from __future__ import annotations

import pytest
from conftest import Sandbox

from memtool.commands.auto import auto, render
from memtool.errors import MemtoolError


def test_it_is_on_until_somebody_says_no(sandbox: Sandbox):
    """The project may, in its own settings; the rest of the file stays."""
    sandbox.write(".memory/config.toml", "# ours\n[search]\nlimit = 7\n")
    assert render(auto(sandbox.context())) == "automatic capture is on"
    shown = auto(sandbox.context(), "off")
    assert (shown.on, shown.off_by, shown.changed) == (False, (".memory/config.toml",), True)
    assert not sandbox.context().is_capturing
    text = (sandbox.path / ".memory" / "config.toml").read_text()
    assert text == "# ours\n[search]\nlimit = 7\n\n[capture]\nauto = false\n"
    assert auto(sandbox.context(), "on").on
    assert sandbox.context().is_capturing


def test_a_dry_run_changes_nothing(sandbox: Sandbox):
    """It only says what would be."""
    shown = auto(sandbox.context(), "off", dry_run=True)
    assert render(shown).splitlines() == [
        "automatic capture is off, by .memory/config.toml",
        "would change .memory/config.toml",
    ]
    assert sandbox.context().is_capturing


def test_commit_takes_just_the_settings(sandbox: Sandbox):
    """What else is staged stays staged."""
    sandbox.write("other", "x")
    sandbox.git("add", "other")
    shown = auto(sandbox.context(), "off", commit=True)
    assert sandbox.git("show", "--format=", "--name-only").split() == [".memory/config.toml"]
    assert shown.commit == sandbox.git("rev-parse", "HEAD").strip()


def test_no_project_switches_on_what_its_user_switched_off(sandbox: Sandbox):
    """The user's no holds in all projects, also where one says yes."""
    sandbox.write(".memory/config.toml", "[capture]\nauto = true\n")
    assert sandbox.run("auto", "--global", "off").returncode == 0
    assert not sandbox.context().is_capturing
    assert sandbox.json("auto")["off_by"] == ["your global settings"]
    assert sandbox.json("auto", "on")["on"] is False
    assert sandbox.run("auto", "--global", "on").returncode == 0
    assert sandbox.context().is_capturing


def test_one_process_is_switched_off_by_its_environment(sandbox: Sandbox):
    """MEMTOOL_OFF holds whatever the files say."""
    ws = sandbox.context(MEMTOOL_OFF="1")
    assert not ws.is_capturing
    assert auto(ws).off_by == ("MEMTOOL_OFF",)


def test_a_broken_file_is_told_and_left_alone(sandbox: Sandbox):
    """A switch must not make it worse."""
    sandbox.write(".memory/config.toml", "[capture\n")
    for switch in ("", "off"):
        with pytest.raises(MemtoolError, match="is not TOML"):
            auto(sandbox.context(), switch)  # type: ignore[arg-type]  # one of the choices
    assert (sandbox.path / ".memory" / "config.toml").read_text() == "[capture\n"
