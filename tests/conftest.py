"""Real repositories for tests: an empty global configuration, a fixed author and fixed dates."""

from __future__ import annotations

import io
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from memtool.cli import hooks, main
from memtool.commands._layout import Layout, build_layout
from memtool.hosts import contracts
from memtool.index import index
from memtool.memory import document, timestamps
from memtool.memory.fields import DEFAULT_CATEGORIES, Category
from memtool.memory.memory import FieldValue, Memory
from memtool.search.expansion import DEFAULTS
from memtool.search.retrieve import Scope
from memtool.search.scope import build_scope
from memtool.store.context import Context
from memtool.store.git import LOCATION_VARIABLES
from memtool.store.snapshot import Location
from memtool.store.state import close_shared
from memtool.store.tree import ReadTree, Record

HOST_VARIABLES = ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "GEMINI_CLI_HOME")
"""Where agent hosts keep the user's own settings, which no test may touch."""
AMPLE_S = 60.0
"""Seconds that a hook may take in tests of what it answers, not of when."""
MEMORY = "/dev/shm"
"""Where Linux has files that are in memory only."""
AMPLE_BYTES = 2 << 30
NOW = "2026-03-01T12:00:00Z"
"""What every test takes for now, unless it sets another clock."""
PIPED = Layout(lambda: None, timestamps.parse(NOW))
"""The layout of a pipe without any memories: ids stay whole, and have no titles."""

_PATIENT = settings(
    deadline=None,
    suppress_health_check=[
        HealthCheck.too_slow,
        HealthCheck.filter_too_much,
        HealthCheck.function_scoped_fixture,
    ],
)
settings.register_profile("quick", _PATIENT, max_examples=30, derandomize=True)
settings.register_profile("thorough", _PATIENT, max_examples=300)
settings.load_profile("quick")


LONG = Path(__file__).with_name("long.txt")
"""Tests that take longer than MAX_CASE_S, or MAX_ALL_S with all of their cases: slow ones, too.

MEMTOOL_LONG=write measures them again.
"""
MAX_CASE_S = 0.15
MAX_ALL_S = 3.0
_case_times_s: dict[str, list[float]] = {}
"""Seconds of the cases of each test that has no mark of its own, if they are measured."""


def _strip_case(node_id: str) -> str:
    return node_id.partition("[")[0]


@pytest.hookimpl(tryfirst=True)  # before marks choose
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    long = set(LONG.read_text().split())
    for item in items:
        if _strip_case(item.nodeid) in long:
            item.add_marker(pytest.mark.long)
            item.add_marker(pytest.mark.slow)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    is_marked = "slow" in report.keywords and "long" not in report.keywords
    if report.when == "call" and not is_marked:  # a fixture belongs to all who ask for it
        _case_times_s.setdefault(_strip_case(report.nodeid), []).append(report.duration)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Write the list again, if that is asked for; tests that did not run keep their rows."""
    if os.environ.get("MEMTOOL_LONG") != "write" or hasattr(session.config, "workerinput"):
        return
    long = set(LONG.read_text().split()) - _case_times_s.keys()
    for test, times_s in _case_times_s.items():
        if sum(times_s) > min(MAX_ALL_S, MAX_CASE_S * len(times_s)):
            long.add(test)
    LONG.write_text("".join(f"{test}\n" for test in sorted(long)))


def pytest_runtest_setup(item: pytest.Item) -> None:
    if os.geteuid() != 0 and item.get_closest_marker("root") is not None:
        pytest.skip("only root can become another user")


def pytest_configure() -> None:
    """Let processes that tests start be as on any terminal.

    A suite in the background ignores interrupts, and its children inherit that. Where Python
    writes no byte code, each of hundreds of processes would compile everything again. Git and
    memtool wait for the disk at each write: a fifth of the time, which memory does not take.
    """
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    sys.dont_write_bytecode = False
    if _holds_programs(MEMORY):
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", MEMORY)


def _holds_programs(directory: str) -> bool:
    """Return whether a directory has ample room, and programs in it may be run."""
    try:
        state = os.statvfs(directory)
    except (OSError, AttributeError):
        return False
    room = state.f_bavail * state.f_frsize
    return room >= AMPLE_BYTES and not state.f_flag & os.ST_NOEXEC and os.access(directory, os.W_OK)


class Sandbox:
    """A git repository in a temporary directory, with commands to fill it and to run memtool."""

    def __init__(self, path: Path, env: dict[str, str]) -> None:
        self.path = path
        self.env = env
        self.tick = 0

    def git(self, *args: str, check: bool = True) -> str:
        """Run git here and return its stdout; every commit is one hour after the one before."""
        self.tick += 1
        date = f"2026-02-{1 + self.tick // 24:02}T{self.tick % 24:02}:00:00Z"
        dates = {"GIT_AUTHOR_DATE": date, "GIT_COMMITTER_DATE": date}
        done = subprocess.run(
            ["git", *args],
            cwd=self.path,
            env=self.env | dates,
            capture_output=True,
            text=True,
            check=False,
        )
        if check and done.returncode:
            raise AssertionError(f"git {args}: {done.stderr}")
        return done.stdout

    def write(self, path: str, text: str | bytes) -> Path:
        """Write a file, with its directories."""
        place = self.path / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(text.encode() if isinstance(text, str) else text)
        return place

    def memory(self, id: str, body: str = "It is so.\n", **fields: FieldValue) -> str:
        """Write a valid memory file and return its path; keys are given as fields."""
        memory = make_memory(id, body, **fields)
        path = f".memory/{memory.type}/2026-02/{id}.md"
        self.write(path, document.write(memory))
        return path

    def commit(self, message: str = "change", *paths: str) -> str:
        """Commit everything (or some paths) and return the commit's id."""
        self.git("add", "--all", "--", *(paths or (".",)))
        self.git("commit", "--quiet", "--message", message)
        return self.head

    @property
    def head(self) -> str:
        """The id of the commit that is checked out."""
        with suppress(OSError):  # a file is read 20 times as fast as git starts
            name = (self.path / ".git/HEAD").read_text().removeprefix("ref: ").strip()
            return (self.path / ".git" / name).read_text().strip() if "/" in name else name
        return self.git("rev-parse", "HEAD").strip()

    def run(
        self, *args: str, stdin: str | bytes = "", cwd: Path | None = None, **env: str
    ) -> subprocess.CompletedProcess[str]:
        """Run `memtool` in this process, with streams of its own, and return what it printed.

        An answer to an agent host is given all the time it needs, so that a loaded machine
        changes nothing; and no event counts as handed over twice, as those of tests are alike.
        """
        streams = [
            io.TextIOWrapper(io.BytesIO(data), "utf-8", "backslashreplace")
            for data in (_bytes(stdin), b"", b"")
        ]
        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(cwd or self.path)
            for name in set(os.environ) - set(self.env | env):
                patch.delenv(name)
            for name, value in (self.env | env).items():
                patch.setenv(name, value)
            patch.setattr(hooks, "LIMIT_S", AMPLE_S)
            patch.setattr(contracts, "DUPLICATE_WINDOW_S", 0)
            for name, stream in zip(("stdin", "stdout", "stderr"), streams, strict=True):
                patch.setattr(sys, name, stream)
            status = main.main(args)
        close_shared()  # as a process does that ends
        out, err = (stream.buffer.getvalue().decode() for stream in streams[1:])
        return subprocess.CompletedProcess(args, status, out, err)

    def process(
        self, *args: str, stdin: str | bytes = "", cwd: Path | None = None, **env: str
    ) -> subprocess.CompletedProcess[str]:
        """Run `memtool` as a process of its own and return what it printed."""
        done = subprocess.run(
            [sys.executable, "-m", "memtool", *args],
            cwd=cwd or self.path,
            env=self.env | env,
            input=_bytes(stdin),
            capture_output=True,
            check=False,
        )
        return subprocess.CompletedProcess(
            args, done.returncode, done.stdout.decode(), done.stderr.decode()
        )

    def json(self, *args: str, **env: str) -> Any:
        """Run a verb with --json, expect success, and return what it answered."""
        done = self.run(*args, "--json", **env)
        assert done.returncode in (0, 1), done.stderr
        return json.loads(done.stdout)

    def context(self, **env: str) -> Context:
        """Open the repository in this process."""
        return Context.at(str(self.path), self.env | env)

    def layout(self, width: int = 0) -> Layout:
        """Return the layout of text about the worktree, for a terminal of some width or a pipe."""
        return build_layout(self.context(), width=width)

    def scope(self, **changes: Any) -> Scope:
        """Return what a search of the worktree needs to know, with the usual aliases."""
        ws = self.context()
        scope = build_scope(ws, index.open(ws), ws.clock.now)
        return scope.replace(**{"aliases": DEFAULTS, "accesses": None, **changes})


def _bytes(text: str | bytes) -> bytes:
    return text.encode() if isinstance(text, str) else text


def read_terminal(terminal: int) -> str:
    """Return all output of a terminal after its other end is closed; it comes in parts."""
    output = b""
    with suppress(OSError):
        while data := os.read(terminal, 1 << 16):
            output += data
    return output.decode()


def make_memory(id: str = "dec-a", body: str = "It is so.\n", **fields: FieldValue) -> Memory:
    """Return a valid memory; fields override the defaults."""
    base: dict[str, FieldValue] = {
        "id": id,
        "timestamp": "2026-02-22T19:33:00Z",
        "type": "decision",
        "title": f"Title of {id}",
        "confidence": "medium",
        "source": ("human:Ada",),
    }
    return Memory(fields=base | fields, body=body)


def make_tree(
    *records: Record, categories: Mapping[str, Category] = DEFAULT_CATEGORIES
) -> ReadTree:
    """Return a tree of records that are in no repository."""
    nowhere = Location(None, ".memory", "worktree", "worktree")  # type: ignore[arg-type]
    return ReadTree(nowhere, records, (), categories)


class Keyring:
    """Signing keys of some people, made once; the principal of each is `NAME@example.org`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name in ("ann", "bob", "eve"):
            make = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", self.path(name)]
            subprocess.run(make, check=True)

    def path(self, name: str) -> str:
        """Return the file of a person's private key."""
        return str(self.folder / name)

    def line(self, name: str, options: str = "") -> str:
        """Return a person's line of an allowed-signers file."""
        public = Path(f"{self.path(name)}.pub").read_text()
        return f"{name}@example.org {options}{' ' if options else ''}{public}"

    def sign_as(self, sandbox: Sandbox, name: str) -> None:
        """Sign each commit as a person from now on; an empty name stops signing."""
        settings = {"gpg.format": "ssh", "user.signingKey": f"{self.path(name)}.pub"}
        for key, value in settings.items() if name else ():
            sandbox.git("config", key, value)
        sandbox.git("config", "commit.gpgSign", "true" if name else "false")


@pytest.fixture(scope="session")
def keyring(tmp_path_factory: pytest.TempPathFactory) -> Keyring:
    """The keys of ann, bob and eve."""
    if shutil.which("ssh-keygen") is None:
        pytest.skip("ssh-keygen makes and checks signatures, and it is not here")
    return Keyring(tmp_path_factory.mktemp("keys"))


def environment_below(folder: Path) -> dict[str, str]:
    """Return the environment of every process: no user settings, one author, one clock.

    The hooks of the tests find the memtool that is tested, whatever the user's own path has. New
    repositories have no sample hooks, and no commit looks whether git should tidy up: that is half
    the time of a commit.
    """
    home = folder / "home"
    home.mkdir()
    inherited = {k: v for k, v in os.environ.items() if k not in LOCATION_VARIABLES}
    for name in HOST_VARIABLES:
        inherited.pop(name, None)
    own = os.path.dirname(sys.executable)
    return inherited | {
        "PATH": os.pathsep.join(filter(None, (own, inherited.get("PATH")))),
        "HOME": str(home),
        "XDG_CONFIG_HOME": str(home / ".config"),
        "XDG_DATA_HOME": str(home / ".local"),
        "XDG_CACHE_HOME": str(home / ".cache"),
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_TEMPLATE_DIR": str(Path(__file__).parent / "git_template"),
        "GIT_AUTHOR_NAME": "Ada",
        "GIT_AUTHOR_EMAIL": "ada@example.org",
        "GIT_COMMITTER_NAME": "Ada",
        "GIT_COMMITTER_EMAIL": "ada@example.org",
        "MEMTOOL_NOW": NOW,
        "MEMTOOL_SEED": "test",
    }


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """The environment of every process of a test."""
    return environment_below(tmp_path)


@pytest.fixture
def sandbox(tmp_path: Path, environment: dict[str, str]) -> Sandbox:
    """A repository on branch main with an empty memory directory and no commit yet."""
    path = tmp_path / "project"
    path.mkdir()
    made = Sandbox(path, environment)
    made.git("init", "--quiet", "--initial-branch=main")
    (path / ".memory").mkdir()
    return made


@pytest.fixture
def unhurried(sandbox: Sandbox) -> Sandbox:
    """The repository, where hooks that are processes of their own have ample time as well."""
    site = sandbox.path.parent / "unhurried" / "sitecustomize.py"
    site.parent.mkdir()
    site.write_text(f"from memtool.cli import hooks\nhooks.LIMIT_S = {AMPLE_S}\n")
    sandbox.env["PYTHONPATH"] = str(site.parent)
    return sandbox
