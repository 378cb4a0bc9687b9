"""Sites: where the files of one host are, for one project or for all projects of the user."""

from __future__ import annotations

import os
import sys

from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


class Site(Value):
    """One level of a host.

    `folder` is the host's directory, `other` that of the other level; `top` is where removing
    empty directories ends. `home` and `project` are the directories that the levels lie in.
    `program` runs memtool: its name where files are shared with others, who have it elsewhere.
    `verbs` are those that there are.
    """

    folder: str
    other: str
    top: str
    home: str
    project: str
    program: str
    verbs: frozenset[str]
    is_user: bool

    def at(self, name: str) -> tuple[str, tuple[str, ...]]:
        """Return the path of a file of the host, and where the other level has it."""
        return os.path.join(self.folder, name), (os.path.join(self.other, name),)

    def shown(self, path: str) -> str:
        """Return a path as the user knows it: from the top of the project, or from home."""
        if path.startswith(f"{self.project}/"):
            return path[len(self.project) + 1 :]
        return f"~{path[len(self.home) :]}" if path.startswith(f"{self.home}/") else path


def home_of(env: Mapping[str, str]) -> str:
    """Return the home directory of the user."""
    return env.get("HOME") or os.path.expanduser("~")


def program_of(env: Mapping[str, str]) -> str:
    """Return the path of the memtool that runs now; its name where only that is known."""
    import shutil

    beside = os.path.join(os.path.dirname(sys.executable), "memtool")
    if os.access(beside, os.X_OK):
        return beside
    return shutil.which("memtool", path=env.get("PATH")) or "memtool"
