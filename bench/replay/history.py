"""The public histories of the benchmark: their table, and git in a mirror of them."""

from __future__ import annotations

import os
import re
import subprocess
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

HERE = Path(__file__).resolve().parent
REPOSITORIES = HERE / "repos.toml"
NUMBER = r"^(?:[A-Za-z]+[-_ ]*)?0*(\d{1,5})(?=[-_ .]|$)"
"""The number of a record in the name of its file, such as adr-012-words.md or 0012-words.md."""
GROUPS = TUNING, JUDGED = "tuning", "judged"
_COMMIT = re.compile(rb"\x01(?=[0-9a-f]{40,64}\0)")
_FORMAT = "%x01%H%x00%P%x00%ct%x00%B%x00"


@dataclass(frozen=True)
class Source:
    """A public repository, as `repos.toml` describes it."""

    name: str
    group: str
    word: str
    folders: tuple[str, ...]
    records: str = ""
    number: str = NUMBER
    nested: bool = False
    not_code: tuple[str, ...] = ()


@dataclass(frozen=True)
class NotCode:
    """The names, endings and folders of files that are documentation, generated or locked."""

    names: frozenset[str]
    endings: tuple[str, ...]
    folders: frozenset[str]


@cache
def read_not_code(path: Path = REPOSITORIES) -> NotCode:
    """Return which files of any repository are not code, in lower case."""
    table = tomllib.loads(path.read_text())["not_code"]
    return NotCode(frozenset(table["names"]), tuple(table["endings"]), frozenset(table["folders"]))


def read_sources(path: Path = REPOSITORIES) -> list[Source]:
    """Return the rows of the table of repositories, in its order."""
    rows = tomllib.loads(path.read_text())["repository"]
    lists = ("folders", "not_code")
    return [
        Source(**row | {name: tuple(row[name]) for name in lists if name in row}) for row in rows
    ]


@dataclass(frozen=True)
class Commit:
    """A commit with the paths that it changed; `removed` are those that it deleted."""

    oid: str
    parents: tuple[str, ...]
    moment: int
    message: str
    paths: tuple[str, ...]
    removed: frozenset[str]


class History:
    """A clone, bare or not. Nothing is written into it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._env = {k: v for k, v in os.environ.items() if not k.startswith("GIT_")}
        self._env |= {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}

    @classmethod
    def find(cls, mirror: Path, name: str) -> History | None:
        """Return the clone of owner/name in a mirror, None if it is missing."""
        flat = name.replace("/", "+")
        places = (name, f"{name}.git", flat, f"{flat}/repo", f"{flat}.git")
        for place in (mirror / part for part in places):
            if (place / "objects").is_dir() or (place / ".git").exists():
                return cls(place)
        return None

    def output(self, *args: str) -> bytes:
        """Return what git prints. Raises CalledProcessError if it fails."""
        command = ["git", "-C", str(self.folder), "-c", "core.quotePath=false", *args]
        return subprocess.run(command, check=True, stdout=subprocess.PIPE, env=self._env).stdout

    def text(self, *args: str) -> str:
        """Return what git prints as a text without the last line end."""
        return self.output(*args).decode(errors="replace").rstrip("\n")

    @property
    def objects(self) -> str:
        """The folder of its objects."""
        return self.text("rev-parse", "--path-format=absolute", "--git-path", "objects")

    def has(self, oid: str) -> bool:
        """Return whether a commit is in the clone."""
        command = ["git", "-C", str(self.folder), "cat-file", "-e", f"{oid}^{{commit}}"]
        done = subprocess.run(command, check=False, stderr=subprocess.DEVNULL, env=self._env)
        return done.returncode == 0

    def read_commits(self, *revisions: str) -> Iterator[Commit]:
        """Yield commits without merges, the newest first."""
        output = self.output(
            "log", "--no-merges", "-z", "--name-status", "--no-renames", f"--format={_FORMAT}",
            *revisions,
        )  # fmt: skip
        for part in _COMMIT.split(output)[1:]:
            oid, parents, moment, message, rows = (
                field.decode(errors="replace") for field in part.split(b"\0", 4)
            )
            cells = [cell.strip("\n") for cell in rows.split("\0")]
            cells = [cell for cell in cells if cell]
            states, paths = cells[::2], cells[1::2]
            removed = (path for state, path in zip(states, paths, strict=False) if state == "D")
            yield Commit(
                oid, tuple(parents.split()), int(moment), message, tuple(paths), frozenset(removed)
            )

    def read_commit(self, oid: str) -> Commit:
        """Return one commit."""
        return next(self.read_commits("--max-count=1", oid))

    def list_files(self, revision: str, folders: tuple[str, ...]) -> list[str]:
        """Return the paths of the files below some folders."""
        listed = self.output("ls-tree", "-r", "-z", "--name-only", revision, "--", *folders)
        return [path.decode(errors="replace") for path in listed.split(b"\0") if path]

    def find_before(self, moment: int) -> str:
        """Return the newest commit of the default branch at a moment, empty if there is none."""
        return self.text("rev-list", "-1", f"--before={moment}", "--first-parent", "HEAD")
