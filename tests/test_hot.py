"""The hot path: what a warm `search` and `inject` load, open and start, and nothing else."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from conftest import Sandbox

from memtool import loading, packing

ALLOWED = {
    "Stemmer", "_bisect", "_blake2", "_cython", "_heapq", "_sha1", "__future__",
    "cython_runtime", "errno", "fcntl", "heapq", "itertools", "marshal", "math", "mmap", "zlib",
}  # fmt: skip
"""What memtool may load of the standard library beside what Python itself starts with."""

LEFT_ALONE = {
    "memtool.memory.document", "memtool.memory.fields", "memtool.search.filters",
    "memtool.index.build",
    "memtool.store.git", "memtool.store.snapshot", "memtool.store.whereabouts",
}  # fmt: skip
"""Modules of ours that plain words and a tree that did not change have no use for."""

ONLY_OF_MORE = {
    "memtool.gate.opposition", "memtool.gate.recalled", "memtool.gate.redaction",
    "memtool.gate.signatures", "memtool.inject.formats", "memtool.memory.lifecycle",
    "memtool.memory.marks", "memtool.store.versions",
}  # fmt: skip
"""Modules of ours for a commit that changes memories, or adds one that is like another."""

OF_SETTINGS = {"memtool.store.options"}
"""For a project that sets something; most set nothing, and their answers need not wait for it."""

ONLY_OF_LIKE = {
    "memtool.gate", "memtool.gate.opposition", "memtool.gate.quantities",
    "memtool.gate.statements", "memtool.memory.digest",
}  # fmt: skip
"""Modules of ours for a block of memories that are like each other, as those of `project`."""

MOST_MODULES = {"search": 54, "inject": 74}
"""Modules of ours that an answer may load: each takes a hundredth of an interpreter start."""

DRIVER = """
import sys
at_start = set(sys.modules)
opened, started = [], []
def watch(event, args):
    if event == "open" and isinstance(args[0], (str, bytes)):
        opened.append(args[0] if isinstance(args[0], str) else args[0].decode())
    elif event in ("subprocess.Popen", "os.posix_spawn", "os.fork", "os.exec", "os.system"):
        started.append(event)
sys.addaudithook(watch)
from memtool.cli.main import main
status = main(sys.argv[1:])
loaded = sorted(set(sys.modules) - at_start)
import json
print(json.dumps({"status": status, "loaded": loaded, "opened": opened, "started": started}),
      file=sys.stderr)
"""

CALLS = {
    "search": ("search", "where", "do", "sessions", "live"),
    "inject": ("inject", "--prompt", "where do sessions live?"),
}

PACKED = """
import sys
import memtool.cli.main
before = set(sys.modules)
from memtool import packing
print(*(module.__name__ for module in packing.imported(packing.ROOTS[sys.argv[1]])))
print(*before)
"""


@pytest.fixture
def project(sandbox: Sandbox) -> Sandbox:
    """A committed and published store with settings, a supersession, a pinned memory."""
    sandbox.write(".memory/config.toml", "# settings\n[search]\nlimit = 7\n")
    sandbox.memory("dec-pinned", "Never force-push.\n", status="pinned")
    sandbox.memory("dec-old", "Sessions live in Redis.\n", title="Sessions in Redis")
    sandbox.memory("dec-new", "Sessions live in Postgres.\n", supersedes=("dec-old",))
    for number in range(60):
        sandbox.memory(f"sem-{number:02}", f"Note {number} about part {number}.\n", type="semantic")
    sandbox.commit()
    sandbox.git("update-ref", "refs/remotes/origin/main", "HEAD")
    sandbox.git("symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/main")
    return sandbox


def drive(project: Sandbox, *args: str, **env: str) -> tuple[bytes, dict[str, list[str]]]:
    """Run memtool in a process that tells what it loaded, opened and started."""
    done = subprocess.run(
        [sys.executable, "-c", DRIVER, *args], cwd=project.path, env=project.env | env,
        capture_output=True, check=False,
    )  # fmt: skip
    *said, told = done.stderr.decode().splitlines()
    assert said == []
    found = json.loads(told)
    assert found["status"] == 0
    return done.stdout, found


def warm(project: Sandbox, *args: str) -> tuple[bytes, dict[str, list[str]]]:
    """Drive until files that were written just now are no longer doubted, and return that run."""
    for _run in range(100):
        answer, found = drive(project, *args)
        if not any(path.endswith(".md") for path in found["opened"]):
            break
    return answer, found


@pytest.mark.parametrize("call", CALLS)
def test_a_warm_answer_loads_little(project: Sandbox, call: str):
    """Every module of the standard library that costs time is left alone."""
    _answer, found = warm(project, *CALLS[call])
    loaded = {name.partition(".")[0].partition("_3_")[0] for name in found["loaded"]}
    assert loaded - ALLOWED - {"memtool"} == set()
    assert set(found["loaded"]) & LEFT_ALONE == set()
    assert sum(name.startswith("memtool") for name in found["loaded"]) <= MOST_MODULES[call]


@pytest.mark.parametrize("call", CALLS)
def test_a_warm_answer_starts_no_process(project: Sandbox, call: str):
    """Once the caches are there, git is not needed; not even to be installed."""
    expected, _found = warm(project, *CALLS[call])
    answer, found = drive(project, *CALLS[call], PATH="/nowhere")
    assert answer == expected != b""
    assert found["started"] == []


@pytest.mark.parametrize("call", CALLS)
def test_a_warm_answer_opens_few_files(project: Sandbox, call: str):
    """Few files, whatever their number: none of the memories."""
    _answer, found = warm(project, *CALLS[call])
    inside = [path for path in found["opened"] if path.startswith(str(project.path))]
    assert [path for path in inside if path.endswith(".md")] == []
    assert len(inside) <= 32


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("how", [(), ("--json",), ("--exact",), ("--explain",)])
def test_cold_warm_and_without_a_cache_are_the_same_bytes(
    project: Sandbox, call: str, how: tuple[str, ...]
):
    """The state of the caches is in no answer, before and after a change."""

    def answers() -> list[bytes]:
        found = []
        for env in ({}, {}, {"MEMTOOL_NO_CACHE": "1"}):
            done = project.run(*CALLS[call], *how, **env)
            data = json.loads(done.stdout) if how == ("--json",) else done.stdout + done.stderr
            if isinstance(data, dict):
                data.pop("elapsed_ms", None)
            found.append(json.dumps(data))
        return found

    first = set(answers())
    assert len(first) == 1
    project.memory("dec-late", "Sessions live longer than before.\n")
    second = set(answers())
    assert len(second) == 1
    assert first != second


@pytest.mark.parametrize("verb", loading.PACKED)
def test_a_pack_holds_what_a_warm_answer_loads(project: Sandbox, verb: str):
    """All of it, so that no module is looked for; and no more, which would only take time."""
    event = {"cwd": str(project.path), "session_id": "", "prompt": CALLS["inject"][-1]}
    call = {
        **CALLS,
        "check": ("check", "--staged"),
        "hook": ("hook", "claude", "user-prompt-submit", "--input", json.dumps(event)),
    }[verb]
    _answer, found = warm(project, *call)
    done = subprocess.run(
        [sys.executable, "-c", PACKED, verb], capture_output=True, text=True, check=True
    )
    packed, before = (set(row.split()) for row in done.stdout.splitlines())
    loaded = {name for name in found["loaded"] if name.startswith("memtool")} - OF_SETTINGS
    if verb in ("hook", "inject"):
        loaded -= ONLY_OF_LIKE
    assert packed == loaded - before, "packing.ROOTS names what a function imports"


def test_further_packs_hold_what_a_staged_memory_loads(project: Sandbox):
    """One of what every staged memory needs, one of what a text needs that is new."""
    project.memory("dec-late", "The password of backups is at noon.\n", title="Backups at noon")
    project.git("add", ".")
    project.git("write-tree")
    _answer, new = drive(project, "check", "--staged")
    _answer, known = drive(project, "check", "--staged")
    for found, verbs in ((new, packing.packs("check")), (known, packing.packs("check")[:2])):
        roots = " ".join(root for verb in verbs for root in packing.ROOTS[verb])
        done = subprocess.run(
            [sys.executable, "-c", PACKED.replace("packing.ROOTS[sys.argv[1]]", "sys.argv[1:]"),
             *roots.split()], capture_output=True, text=True, check=True,
        )  # fmt: skip
        packed, before = (set(row.split()) for row in done.stdout.splitlines())
        loaded = {name for name in found["loaded"] if name.startswith("memtool")}
        loaded -= {"memtool.loading", *OF_SETTINGS}
        assert packed == loaded - before, "packing.ROOTS names what a function imports"


def test_a_staged_memory_loads_little(project: Sandbox):
    """A new memory that was looked at before, and is like no other, needs none of the rest."""
    project.memory("dec-late", "Backups are taken at noon.\n", title="Backups at noon")
    project.git("add", ".")
    drive(project, "check", "--staged")
    answer, found = drive(project, "check", "--staged")
    loaded = {name.partition(".")[0].partition("_3_")[0] for name in found["loaded"]}
    assert answer == b""
    assert "memtool.gate.gate" in found["loaded"]
    assert loaded - ALLOWED - {"bisect", "memtool", "select"} == set()
    assert set(found["loaded"]) & ONLY_OF_MORE == set()
    assert len(found["started"]) == 2


def test_a_new_memory_that_names_much_loads_little(project: Sandbox):
    """What it names is looked up where git is asked anyway; patterns are not compiled again."""
    project.write("src/app.py", "pass\n")
    commit = project.commit()
    for name, said in (("page", "The login page asks for"), ("copy", "Nightly backups need")):
        project.memory(
            f"dec-{name}",
            f"{said} no password at all, as [[dec-new]] says.\n",
            title=said,
            source=(f"commit:{commit}", "file:src/app.py#L1", "memory:dec-pinned"),
            files=("src/app.py", "src"),
        )
        project.git("add", ".")
        project.git("write-tree")  # as `git commit` does
        answer, found = drive(project, "check", "--staged")
    loaded = {name.partition(".")[0].partition("_3_")[0] for name in found["loaded"]}
    assert answer == b""
    assert "memtool.gate.context" in found["loaded"]
    assert loaded - ALLOWED - {"memtool", "select", "_sre"} == set()
    assert len(found["started"]) == 2


def test_no_cache_keeps_nothing(project: Sandbox):
    """MEMTOOL_NO_CACHE leaves the git directory as it is."""
    env = {"MEMTOOL_NO_CACHE": "1", "MEMTOOL_NO_LEDGER": "1"}
    for call in CALLS.values():
        assert project.run(*call, **env).returncode == 0
    assert not (project.path / ".git" / "memtool").exists()


@pytest.mark.parametrize("call", CALLS)
def test_json_says_what_was_checked(project: Sandbox, call: str):
    """A small store is checked file by file, and --exact does so always."""
    assert project.json(*CALLS[call])["freshness"] == "exact"
    assert project.json(*CALLS[call], "--exact")["freshness"] == "exact"


def test_damaged_caches_cost_time_only(project: Sandbox):
    """Whatever stands in the cache, the answer is the same and no bug is reported."""
    expected = {name: project.run(*call).stdout for name, call in CALLS.items()}
    for bend in (lambda data: b"", lambda data: data[: len(data) // 2], lambda data: b"?" * 100):
        for place in sorted((project.path / ".git" / "memtool").rglob("*")):
            if place.is_file() and "ledger" not in place.name:
                place.write_bytes(bend(place.read_bytes()))
        for name, call in CALLS.items():
            done = project.run(*call)
            assert (done.returncode, done.stdout) == (0, expected[name])
