"""The launcher: starts Python without `site` where that is safe, and behaves as before."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

import pytest
import Stemmer
from conftest import Sandbox

import memtool
from memtool.hosts import launcher

ROOT = Path(memtool.__file__).parents[1]
TAIL = (ROOT / "templates" / "launcher").read_text().partition("\n")[2]


class Installed:
    """memtool in an environment of its own, and the sandbox that it is called in."""

    def __init__(self, place: Path, sandbox: Sandbox) -> None:
        venv.create(place, symlinks=True, with_pip=False)
        self.python = place / "bin" / "python"
        self.script = place / "bin" / "memtool"
        (self.site,) = place.glob("lib/python*/site-packages")
        self.sandbox = sandbox
        shutil.copytree(ROOT / "memtool", self.site / "memtool")
        shutil.copytree(ROOT / "templates", self.site / "memtool" / "templates")
        library = Path(Stemmer.__file__)
        (self.site / library.name).symlink_to(library)
        (self.site / "rest.pth").write_text(f"{library.parent}\n")  # what the hot verbs need not
        self.script.write_text(self.plain)
        self.script.chmod(0o755)

    @property
    def plain(self) -> str:
        return f"#!{self.python}\n{TAIL}"

    def run(self, *argv: str | Path, **env: str) -> tuple[int, str, str]:
        done = subprocess.run(
            argv, cwd=self.sandbox.path, env=self.sandbox.env | env, capture_output=True,
            text=True, check=False,
        )  # fmt: skip
        return done.returncode, done.stdout, done.stderr

    def fix(self) -> str:
        status, said, told = self.run(self.python, "-m", "memtool", "doctor", "--fix")
        assert (status, told) == (0, "")
        return said


@pytest.fixture
def installed(sandbox: Sandbox, tmp_path: Path) -> Installed:
    """An environment as pip leaves it, and two memories."""
    sandbox.memory("dec-a", "Sessions live in Redis.\n", title="Sessions in Redis")
    sandbox.memory("dec-b", "Backups are taken at noon.\n", title="Backups at noon")
    sandbox.commit()
    return Installed(tmp_path / "venv", sandbox)


def test_the_script_starts_without_site_and_answers_the_same(installed: Installed) -> None:
    """Once, with the permissions that it had; the doctor says so before and after."""
    calls = (
        ("search", "where", "do", "sessions", "live"),
        ("inject", "--prompt", "where do sessions live?"),
        ("check", "--staged"),
        ("hook", "claude", "session-start", "--input", "{}"),
        ("list",),
        ("--version",),
        ("serach",),
    )
    env = {"PATH": f"{installed.script.parent}:/usr/bin:/bin"}
    before = [installed.run(installed.script, *call) for call in calls]
    assert "starts slower than it could" in installed.run(installed.script, "doctor", **env)[1]
    assert f"{installed.script} starts Python without site" in installed.fix()
    first, *_doc, last = installed.script.read_text().splitlines()
    assert (first, last) == (f"#!{installed.python} -SP", "command()")
    assert installed.script.stat().st_mode & 0o777 == 0o755
    assert [installed.run(installed.script, *call) for call in calls] == before
    assert "without site" not in installed.fix()
    _status, said, _told = installed.run(installed.script, "doctor", **env)
    assert f"ok     command                    {installed.script}\n" in said


def test_site_runs_for_the_verbs_that_nobody_waits_for(installed: Installed) -> None:
    """And for a hot one when a module is missing: what it does is not lost, only later."""
    (installed.site / "sitecustomize.py").write_text("print('site ran')\n")
    text = launcher.without_site(str(installed.python), str(installed.site))
    installed.script.write_text(text)
    installed.run(installed.script, "search", "sessions")  # may build the index
    assert "site ran" not in installed.run(installed.script, "search", "sessions")[1]
    assert "site ran" in installed.run(installed.script, "list")[1]
    (installed.site / "elsewhere.pth").write_text(f"{installed.sandbox.path}\n")
    (installed.sandbox.path / "only_there.py").write_text("print('found')\n")
    script = (
        f"import sys\nsys.path.append({str(installed.site)!r})\nfrom memtool import loading\n"
        "sys.meta_path.append(loading.Site)\nimport only_there\nimport absent\n"
    )
    done = installed.run(installed.python, "-SP", "-c", script)
    assert done[:2] == (1, "site ran\nfound\n")
    assert done[2].endswith("ModuleNotFoundError: No module named 'absent'\n")


@pytest.mark.parametrize("change", ["more", "other python", "options", "link", "absent"])
def test_a_script_that_is_not_the_installers_is_left(installed: Installed, change: str) -> None:
    """Changed by somebody, for another Python, started in another way, or elsewhere."""
    script = installed.script
    if change == "more":
        script.write_text(installed.plain + "\n")
    elif change == "other python":
        script.write_text(f"#!{os.path.realpath(sys.executable)}\n{TAIL}")
    elif change == "options":
        script.write_text(f"#!{installed.python} -X dev\n{TAIL}")
    else:
        script.rename(script.with_name("other"))
    if change == "link":
        script.symlink_to("other")
    text = script.read_text() if script.exists() else ""
    assert "without site" not in installed.fix()
    assert (script.read_text() if script.exists() else "") == text


def test_a_checkout_is_left(installed: Installed) -> None:
    """Who works on memtool starts it as it was installed."""
    shutil.rmtree(installed.site / "memtool")
    (installed.site / "checkout.pth").write_text(f"{ROOT}\n")
    assert "without site" not in installed.fix()
    assert installed.script.read_text() == installed.plain


def test_install_says_what_it_changed(installed: Installed) -> None:
    """The script is not part of the project, so that it is told."""
    python = installed.python
    _status, _said, told = installed.run(python, "-m", "memtool", "install", "claude", "--dry-run")
    assert installed.script.read_text() == installed.plain
    _status, _said, told = installed.run(python, "-m", "memtool", "install", "claude", "--yes")
    assert f"{installed.script} now starts Python without site" in told
    _status, _said, told = installed.run(python, "-m", "memtool", "install", "claude", "--yes")
    assert "site" not in told
