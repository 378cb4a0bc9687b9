"""A small fleet of real repositories, and the project of a user who asks it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from conftest import Sandbox, environment_below

from memtool.fleet import git_backend
from memtool.fleet.backend import find_fleet_home
from memtool.fleet.git_backend import SyncReport


class Fleet:
    """A folder with repositories `src/ORG/NAME`, which lie there, and `far/ORG/NAME.git`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.env = environment_below(folder)
        self.project = self.repository("work/own/project")
        (self.project.path / ".memory").mkdir()

    def repository(self, place: str) -> Sandbox:
        """Make an empty repository on branch main."""
        path = self.folder / place
        path.mkdir(parents=True)
        made = Sandbox(path, self.env)
        made.git("init", "--quiet", "--initial-branch=main")
        return made

    def near(self, name: str, **bodies: str) -> Sandbox:
        """Make a repository with memories, each an id (with _ for -) and its body."""
        made = self.repository(f"src/{name}")
        for id_, body in bodies.items():
            made.memory(id_.replace("_", "-"), body)
        made.commit()
        return made

    def far(self, name: str, **bodies: str) -> Sandbox:
        """Make a repository that others fetch, and return a clone of it that may push there."""
        made = self.near(f"{name}-work", **bodies)
        place = self.folder / f"far/{name}.git"
        made.git("clone", "--quiet", "--bare", str(made.path), str(place))
        made.git("remote", "add", "origin", self.url(name))
        return made

    def url(self, name: str) -> str:
        """Return what `far` repositories are fetched by."""
        return f"file://{self.folder}/far/{name}.git"

    def set(self, *entries: str) -> None:
        """Set whom the user asks, with all the time in the world: machines are busy."""
        names = ",".join(entry.replace("SRC", f"{self.folder}/src") for entry in entries)
        for key, value in (("fleet.repositories", names), ("fleet.timeout_ms", "60000")):
            done = self.project.run("--global", "config", key, value)
            assert done.returncode == 0, done.stderr

    def write(self, *entries: str) -> None:
        """Write into the settings file whom the user asks, also what `config` would refuse."""
        self.set("~/src/*")
        path = Path(self.env["XDG_DATA_HOME"], "memtool", ".memory", "config.toml")
        names = [entry.replace("SRC", f"{self.folder}/src") for entry in entries]
        path.write_text(path.read_text().replace('["~/src/*"]', json.dumps(names)))

    @property
    def home(self) -> str:
        """Where clones and segments are kept."""
        return find_fleet_home(self.env)

    def sync(self) -> SyncReport:
        """Bring the fleet up to date."""
        return git_backend.sync(self.project.context())

    def drop(self, place: str) -> None:
        """Remove a repository."""
        shutil.rmtree(self.folder / place)
