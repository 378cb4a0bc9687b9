"""Derived files: whatever is damaged below the derived directory costs time, never an answer.

The walk damages every file of the demo's clone in every way that there is, asks what a user and an
agent ask, and compares with the answers that need no cache. Each question is asked by a process of
its own, forked from this one, as each command and each hook is.
"""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

from memtool import demo
from memtool.cli import main as cli

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

NOW = "2026-11-20T16:00:00Z"
PROMPT = "how long is a seat held before it is paid?"
_TIMES = re.compile(r'"(elapsed_ms|p95_ms|samples)": ?[\d.]+')
NOBODY = 65534


class Answer(NamedTuple):
    """What a process printed, without the time that it took, and its exit code."""

    code: int
    stdout: str
    stderr: str


class Clone:
    """A clone of the demo that was used for a while, which can be damaged and made whole again."""

    def __init__(self, place: Path, env: Mapping[str, str]) -> None:
        self.top = place / "harbor"
        self.derived = self.top / ".git/memtool"
        self.env = {**env, "MEMTOOL_NOW": NOW, "MEMTOOL_NO_LEDGER": "1"}
        demo.build(self.env, str(self.top), dry_run=False)
        seat = next(self.top.glob(".memory/**/*seat*.md")).stem
        event = {"session_id": "", "cwd": str(self.top), "prompt": PROMPT}
        self.questions: dict[str, list[str]] = {
            "list": ["list", "--limit", "0", "--json"],
            "show": ["show", seat, "--json"],
            "search": ["search", "hold seats", "--json"],
            "inject": ["inject", "--prompt", PROMPT, "--json"],
            "why": ["why", seat, "--json"],
            "hook": ["hook", "claude", "user-prompt-submit", "--input", json.dumps(event)],
        }
        self.expected = {name: self.ask(name, {"MEMTOOL_NO_CACHE": "1"}) for name in self.questions}
        for call in (*self.questions.values(), ["drift"], ["review"], ["conflicts"], ["status"]):
            self.run(call)
        self._whole = place / "whole"
        shutil.copytree(self.derived, self._whole, symlinks=True)

    def mend(self) -> None:
        """Put everything below the derived directory back as it was."""
        shutil.rmtree(self.derived, ignore_errors=True)
        if self.derived.exists():
            self.derived.unlink()
        shutil.copytree(self._whole, self.derived, symlinks=True)

    def files(self) -> list[Path]:
        """Return every file below the derived directory."""
        return sorted(path for path in self.derived.rglob("*") if path.is_file())

    def ask(self, name: str, env: Mapping[str, str] = {}, user: int = 0) -> Answer:
        """Ask one of the questions."""
        return self.run(self.questions[name], env, user)

    def run(self, args: list[str], env: Mapping[str, str] = {}, user: int = 0) -> Answer:
        """Run a command line in a process of its own, as another user if one is given."""
        outputs = [os.memfd_create(name) for name in ("stdout", "stderr")]
        child = os.fork()
        if not child:
            code = 99
            try:
                os.chdir(self.top)
                os.environ.clear()
                os.environ.update({**self.env, **env})
                if user:
                    os.setgroups([])
                    os.setgid(user)
                    os.setuid(user)
                for number, handle in enumerate(outputs, 1):
                    os.dup2(handle, number)
                sys.stdin = open(os.devnull)  # noqa: SIM115  # the process ends with it
                sys.stdout, sys.stderr = (
                    io.TextIOWrapper(os.fdopen(number, "wb", closefd=False), write_through=True)
                    for number in (1, 2)
                )
                code = cli.main(args)
                sys.stdout.flush()
                sys.stderr.flush()
            finally:
                os._exit(code)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        texts = []
        for handle in outputs:
            size = os.fstat(handle).st_size
            texts.append(os.pread(handle, size, 0).decode())
            os.close(handle)
        return Answer(code, _TIMES.sub("", texts[0]), texts[1])

    def faults(self, names: Iterator[str] | list[str] | None = None) -> list[str]:
        """Ask, and ask again; return what was answered otherwise than without a cache.

        The second time nothing is damaged any more, so that nothing is noted either.
        """
        found = []
        for attempt in ("first", "second"):
            for name in names or self.questions:
                got, expected = self.ask(name), self.expected[name]
                if attempt == "first":
                    got = got._replace(stderr=expected.stderr)
                if got != expected:
                    found.append(f"{name}, {attempt} time: {got.code} {got.stderr[:200]}")
        return found


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Clone:
    """A clone in which everything derived is present."""
    kept = ("HOME", "PATH", "LANG", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_NOSYSTEM")
    env = {key: os.environ[key] for key in kept if key in os.environ}
    return Clone(tmp_path_factory.mktemp("derived"), env)


def flip(path: Path, at: int) -> None:
    """Flip one bit of a file."""
    data = bytearray(path.read_bytes())
    data[at] ^= 1 << (at % 8)
    path.write_bytes(data)


def test_a_damaged_row_of_citations_is_made_again(clone: Clone) -> None:
    """No verb fails, whichever meets the row first, and the prompt hook answers."""
    (table,) = clone.derived.glob("citations/table-*")
    assert clone.expected["hook"].stdout.strip()
    for number, first in enumerate(("list", "search", "inject", "hook")):
        clone.mend()
        flip(table, table.stat().st_size // 2 + 900 * number)
        assert clone.faults([first]) == []
        assert clone.faults() == []
