"""One repository with a memory of every kind and state, the same bytes wherever it is built.

`build` makes it once; `answer` runs a command line in it and returns what it printed as text in
which nothing depends on the machine.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
from pathlib import Path
from typing import Any

from conftest import NOW, Sandbox

from memtool import installation

DATA = Path(__file__).parent / "sessions/data"
CLAUDE = "5f0c1d2e-8a47-4b1c-9d33-0a6f2b7c9e11"
"""The session that the sample transcript of Claude Code names."""

CONFIG = """\
# Settings of the shop.
[inject]
budget_tokens = 1800

[search]
limit = 12

[review]
policy = "warn"

[categories.task_progress]
ttl_days = 10
"""
QUERIES = """\
redis = "redis OR cache"

[open]
query = "is:candidate OR is:conflicted"
doc = "what somebody has to settle"
"""
GOLDEN = [
    {"qid": "q1", "query": "where do sessions live?", "expect": ["dec-redis"]},
    {"qid": "q2", "query": "how do we pay?", "expect": ["sem-retry"], "files": ["src/pay.py"]},
    {"qid": "q3", "query": "which queue runs jobs", "expect": ["dec-celery", "dec-no-celery"]},
    {"qid": "q4", "query": "where did sessions live?", "expect": ["dec-postgres"], "as_of": "80d"},
]
ADR = """\
# Use OpenAPI for the public interface

Date: 2026-01-05

## Status

Accepted

## Context

Clients need a contract.

## Decision

We describe the interface in OpenAPI.

## Consequences

The server is checked against it.
"""
Row = tuple[str, str, dict[str, Any]]

OLD: list[Row] = [
    (
        "dec-memcached",
        "Sessions live in Memcached.\n",
        {
            "title": "Keep sessions in Memcached",
            "timestamp": "2025-11-03T09:00:00Z",
            "files": ("src/auth.py",),
            "tags": ("auth", "sessions"),
        },
    ),
    (
        "dec-postgres",
        "Sessions live in Postgres.\n",
        {
            "title": "Keep sessions in Postgres",
            "timestamp": "2025-12-01T09:00:00Z",
            "files": ("src/auth.py",),
            "tags": ("auth", "sessions"),
            "supersedes": ("dec-memcached",),
        },
    ),
    (
        "dec-queue",
        "Jobs run in cron.\n",
        {"title": "Run jobs in cron", "timestamp": "2026-01-02T10:00:00+01:00"},
    ),
    (
        "sem-retry",
        "Payments are never retried without a key, as [pay](../../../src/pay.py) shows.\n",
        {
            "type": "semantic",
            "title": "Payments carry an idempotency key",
            "status": "pinned",
            "category": "warning",
            "confidence": "high",
            "importance": "0.9",
            "timestamp": "2026-02-10T08:00:00Z",
            "files": ("src/pay.py",),
            "source": ("file:src/pay.py#L1-L2", "human:Ada"),
            "trigger_phrases": ("how do we pay",),
            "aliases": ("idempotence",),
        },
    ),
    (
        "epi-timeout",
        "The export timed out after 30 s.\n\n## Cause\n\nNo index on orders.day.\n",
        {
            "type": "episodic",
            "title": "The export timed out",
            "category": "error",
            "error_signature": "TimeoutError: export.run",
            "environment": "staging",
            "timestamp": "2026-01-20T12:00:00Z",
            "source": ("tool:pytest", "file:src/gone.py"),
            "files": ("src/gone.py",),
            "task_id": "SHOP-12",
        },
    ),
]
"""What `origin/main` holds."""

NEW: list[Row] = [
    (
        "dec-redis",
        "Sessions live in Redis.\n\n## Chosen\n\nRedis, as they expire.\n",
        {
            "title": "Keep sessions in Redis",
            "timestamp": "2026-02-20T09:00:00Z",
            "category": "architecture",
            "confidence": "high",
            "importance": "0.8",
            "files": ("src/auth.py", "src/session/**"),
            "tags": ("auth", "redis", "sessions"),
            "supersedes": ("dec-postgres",),
            "domain": "identity",
            "x-ticket": "SHOP-7",
        },
    ),
    (
        "dec-queue-rq",
        "Jobs run in RQ.\n",
        {
            "title": "Run jobs in RQ",
            "supersedes": ("dec-queue",),
            "timestamp": "2026-02-11T09:00:00Z",
        },
    ),
    (
        "dec-queue-beat",
        "Jobs run in a thread of the server.\n",
        {
            "title": "Run jobs in a thread",
            "supersedes": ("dec-queue",),
            "timestamp": "2026-02-12T09:00:00Z",
        },
    ),
    (
        "dec-celery",
        "Use Celery for background jobs.\n",
        {"title": "Use Celery for jobs", "timestamp": "2026-02-13T09:00:00Z", "tags": ("jobs",)},
    ),
    (
        "dec-no-celery",
        "Do not use Celery for background jobs.\n",
        {"title": "Do not use Celery", "timestamp": "2026-02-14T09:00:00Z", "tags": ("jobs",)},
    ),
    (
        "sem-port",
        "The port of the server is 8080.\n",
        {
            "type": "semantic",
            "title": "The server listens on port 8080",
            "category": "discovery",
            "timestamp": "2026-02-15T09:00:00Z",
            "source": ("url:https://example.org/port",),
        },
    ),
    (
        "sem-port-again",
        "The port of the server is 8080, on all hosts.\n",
        {
            "type": "semantic",
            "title": "The server listens on port 8080 everywhere",
            "category": "discovery",
            "timestamp": "2026-02-16T09:00:00Z",
            "source": ("memory:sem-port",),
            "related_to": ("sem-port",),
        },
    ),
    (
        "sem-cents",
        "Money is kept in cents, as integers.\n",
        {
            "type": "semantic",
            "title": "Money is kept in cents",
            "category": "pattern",
            "status": "candidate",
            "timestamp": "2026-02-28T09:00:00Z",
            "confidence": "low",
            "source": (f"session:{CLAUDE}#1",),
            "session": CLAUDE,
        },
    ),
    (
        "sem-soap",
        "The partner speaks SOAP.\n",
        {"type": "semantic", "title": "The partner speaks SOAP", "status": "deprecated"},
    ),
    (
        "sem-jenkins",
        "Builds ran on Jenkins.\n",
        {"type": "semantic", "title": "Builds ran on Jenkins", "status": "archived"},
    ),
    (
        "sem-vpn",
        "Deploys need the VPN.\n",
        {
            "type": "semantic",
            "title": "Deploys need the VPN",
            "status": "deleted",
            "deleted": {
                "at": "2026-01-10T10:00:00Z",
                "by": "Ada",
                "reason": "the VPN is gone",
                "was": "confirmed",
            },
        },
    ),
    (
        "sta-release",
        "The release waits for translations.\n",
        {
            "type": "state",
            "title": "The release waits",
            "timestamp": "2026-01-15T09:00:00Z",
            "awaiting": "decision",
            "action_required": "true",
        },
    ),
    (
        "sta-invoices",
        "Invoices are half done: totals work, taxes do not.\n",
        {
            "type": "state",
            "title": "Invoices are half done",
            "timestamp": "2026-02-27T09:00:00Z",
            "task_id": "SHOP-31",
            "iteration": "2",
            "files": ("src/pay.py",),
            "blocked_by": ("dec-celery",),
        },
    ),
    (
        "sem-sale",
        "The sale ends in February.\n",
        {
            "type": "semantic",
            "title": "The sale ends in February",
            "valid_from": "2026-02-01",
            "valid_through": "2026-02-20",
        },
    ),
    (
        "sem-friday",
        "No deploys on Fridays.\n",
        {
            "type": "semantic",
            "title": "No deploys on Fridays",
            "category": "warning",
            "timestamp": "2026-02-02T09:00:00Z",
            "valid_through": "2026-03-05",
            "checked": {"at": "2026-02-03T09:00:00Z", "by": "Ada"},
        },
    ),
]
"""What came on this branch since."""

PAST = (
    "capture DATA/claude.jsonl --end",
    "capture DATA/codex.jsonl --end",
    "session start --agent claude --title 'Taxes on invoices'",
    "forget sem-soap --reason 'the partner moved to REST' --commit",
    f"promote {CLAUDE} --commit",
    "confirm sem-port --commit",
    "inject --prompt 'how do we pay?' --session s-old",
    "show dec-redis",
    "--global remember 'Ada prefers short commit messages.'",
    "inject --into AGENTS.md",
)
"""What was done with memtool before, a minute apart."""


def environment(home: Path) -> dict[str, str]:
    """Return an environment with nothing of this machine but git, the zone and the hash seed."""
    tools = home / "bin"
    tools.mkdir(parents=True)
    (tools / "git").symlink_to(str(shutil.which("git")))
    inherited = {
        k: os.environ[k] for k in ("TZ", "PYTHONHASHSEED", "PYTHONPATH") if k in os.environ
    }
    date = "2026-03-01T12:00:00Z"
    return inherited | {
        "PATH": str(tools),
        "HOME": str(home),
        "LC_ALL": "C.UTF-8",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_AUTHOR_NAME": "Ada",
        "GIT_AUTHOR_EMAIL": "ada@example.org",
        "GIT_AUTHOR_DATE": date,
        "GIT_COMMITTER_NAME": "Ada",
        "GIT_COMMITTER_EMAIL": "ada@example.org",
        "GIT_COMMITTER_DATE": date,
        "MEMTOOL_GLOBAL": str(home / "global"),
        "MEMTOOL_NOW": NOW,
        "MEMTOOL_SEED": "golden",
    }


def build(base: Path) -> Sandbox:
    """Make the repository below a directory, with commits, a remote, sessions and a ledger."""
    path = base / "shop"
    path.mkdir()
    scene = Sandbox(path, environment(base / "home"))
    scene.git("init", "--quiet", "--initial-branch=main")
    _files(scene)
    _rows(scene, OLD)
    _rows(scene, NEW[:1])
    first = scene.commit("begin the shop")
    scene.git("update-ref", "refs/remotes/origin/main", first)
    scene.git("symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/main")
    _rows(scene, NEW[1:8])
    scene.write("src/pay.py", "def pay(order, key):\n    return send(order, key)\n")
    scene.commit("jobs, ports and cents\n\nUpholds: sem-retry")
    _rows(scene, NEW[8:])
    scene.write("src/auth.py", "SESSIONS = 'redis'\nMINUTES = 30\n")
    (path / "src/gone.py").unlink()
    scene.commit("sessions in Redis")
    _past(scene)
    scene.git("tag", "v1")
    _loose_ends(scene)
    scene.env["MEMTOOL_NO_LEDGER"] = "1"
    return scene


def _files(scene: Sandbox) -> None:
    scene.write(".gitattributes", ".memory/** -text\n")
    scene.write(".memory/config.toml", CONFIG)
    scene.write(".memory/queries.toml", QUERIES)
    scene.write(".memory/aliases.toml", 'idp = ["identity provider", "keycloak"]\n')
    scene.write(".memory/golden.jsonl", "".join(json.dumps(row) + "\n" for row in GOLDEN))
    scene.write("docs/adr/0001-openapi.md", ADR)
    scene.write("src/auth.py", "SESSIONS = 'postgres'\n")
    scene.write("src/pay.py", "def pay(order):\n    return send(order)\n")
    scene.write("src/gone.py", "def export(): ...\n")
    scene.write("CLAUDE.md", "# The shop\n\n- Use pnpm, never npm.\n")


def _rows(scene: Sandbox, rows: list[Row]) -> None:
    for name, body, fields in rows:
        scene.memory(name, body, **fields)


def _past(scene: Sandbox) -> None:
    """Make the traces of verbs: sessions, acts, injections, a managed block, a global memory."""
    for minute, act in enumerate(PAST):
        scene.env["MEMTOOL_NOW"] = f"2026-03-01T11:{minute:02}:00Z"
        args, _stdin = words(act)
        status, _out, err = run(scene, args)
        assert status == 0, err
    scene.env["MEMTOOL_NOW"] = NOW
    scene.commit("a block for agents without hooks", "AGENTS.md")


def _loose_ends(scene: Sandbox) -> None:
    """Make uncommitted files: staged, new and broken ones."""
    scene.memory(
        "sem-staged",
        "Logs are kept for 14 days.\n",
        type="semantic",
        title="Logs are kept for 14 days",
    )
    scene.git("add", ".memory/semantic/2026-02/sem-staged.md")
    tip = scene.git("rev-parse", "v1").strip()
    scene.memory(
        "dec-loose",
        "Pages are rendered on the server.\n",
        files=("src/page.py",),
        title="Render pages on the server",
        source=(f"commit:{tip}", "file:src/auth.py#L2"),
        derived_from=("sem-port",),
        resolves=("epi-timeout",),
    )
    scene.write(".memory/semantic/2026-02/sem-broken.md", "---\nid: [sem-broken\n---\nBroken.\n")
    place = scene.path / ".memory/semantic/2026-02"
    shutil.copy(place / "sem-port.md", place / "sem-renamed.md")


def run(scene: Sandbox, args: tuple[str, ...], stdin: str = "") -> tuple[int, str, str]:
    """Run a command line in this process; return its exit code, stdout and stderr."""
    done = scene.run(*args, stdin=stdin)
    return done.returncode, done.stdout, done.stderr


VARYING = (
    (r'("[a-z0-9_]+_ms": )[0-9.]+', r"\1<ms>"),
    (r" *\b[0-9.]+ ms\b *", " <ms> "),
    # The slowest verbs, whose times also make the widths of their columns.
    (r"(?m)^verb +median +95th percentile +answers$", "verb  median  95th percentile  answers"),
    (r"(?m)^[a-z -]+ <ms>  <ms> \d+$", "<verb>  <ms>  <ms>  <answers>"),
    (r"(?m)^((?:caches|index|ledger|sessions) +)[0-9.]+ \w+ +\d+ files$", r"\1<size>"),
    (r'("part": "[^m]\w+",\s+"files": )\d+(,\s+"bytes": )\d+', r"\1<files>\2<bytes>"),
    (r'("size": )\d+', r"\1<bytes>"),
    (r'("damaged": \d+,\s+"bytes": )\d+', r"\1<bytes>"),  # the paths of this run are in sessions
    (r"\b[0-9.]+ KiB of\b", "<size> of"),
    (r'("(?:hits|updates)": )\d+', r"\1<n>"),  # files younger than two seconds are read again
    (r'("hit_share": )[0-9.]+', r"\1<n>"),
    (r"(?m)^index: current for [0-9.]+% (.*), updated for \d+", r"index: <n> \1, <n> updated"),
    (r'("freed": )[1-9]\d*', r"\1<bytes>"),
    (r"\brebuild index \([0-9,]+ bytes\)", "rebuild index (<bytes>)"),
    (r'("do": "rebuild",\s+"what": "index",\s+"why": "[^"]*",\s+"bytes": )\d+', r"\1<bytes>"),
    (r"\b\d+ [KM]?B\b", "<size>"),
    (r"\bplain-[0-9a-f]{16}\b", "plain-<hash of the path>"),
    (r'("error": \{[^}]*?"timestamp": )"[^"]*"', r'\1"<now>"'),
    (r"git version [0-9.]+(?: \([^)]*\))?", "git version <version>"),
    (r"\b0\.\d+\.\d+, Python [0-9.]+", "<version>, Python <version>"),
    (r"(?m)^  \S+ +byte code .*\n(?: +hint: .* -m compileall .*\n)?", ""),
    (r"(?m)^! memtool: byte code: .*\n(?: +hint: .* -m compileall .*\n)?", ""),
    (r"(?m)^\d+ checks passed", "<some> checks passed"),
    (r'\{\s+"area": "memtool",\s+"name": "byte code",[^}]*\},\s+', ""),
    (r'(?m)^ +"(?:memtool: byte code: |[^"]* -m compileall ).*",\n', ""),
)
"""What no two runs or machines have in common."""


def plain(scene: Sandbox, text: str) -> str:
    """Put names in the place of paths and of what varies."""
    base = str(scene.path.parent)
    places = {
        str(scene.path): "<repo>",
        f"{base}/home": "<home>",
        str(DATA): "<data>",
        base: "<base>",
        installation.install_on_path(): "<command that installs memtool>",
    }
    for path, name in places.items():
        text = text.replace(path, name)
    for pattern, instead in VARYING:
        text = re.sub(pattern, instead, text)
    return text


def shown(scene: Sandbox, line: str, result: tuple[int, str, str]) -> str:
    """Return one case of a golden file: the command line and what it printed."""
    status, out, err = result
    parts = [f"$ memtool {line}\n", f"exit {status}\n", out]
    if err:
        parts += ["--- stderr\n", err]
    return (
        plain(
            scene,
            "".join(part if part.endswith("\n") or not part else part + "\n" for part in parts),
        )
        + "\n"
    )


def words(line: str) -> tuple[tuple[str, ...], str]:
    """Split a command line; `<<< TEXT` at its end is what stdin holds."""
    head, _mark, stdin = line.partition(" <<< ")
    args = [word.replace("DATA/", f"{DATA}/") for word in shlex.split(head)]
    return tuple(args), stdin
