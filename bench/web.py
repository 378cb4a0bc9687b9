"""The web view under load, beside a static file server and datasette over the same rows.

    python bench/web.py [--seconds N] [--changes N] [--datasette PROGRAM] [1000]

The real `memtool serve --write` runs on a clone of a tree of `corpus`, as a process of its own; the
load comes from this one, over as many connections as a row says. Beside it `python -m http.server`
serves the same pages as files, and datasette the same memories as rows of SQLite with its full-text
search, if it is installed. `CPU` is what the server used for a request, and `x static` is that in
units of what the static server used for the status page in the same run.
"""

from __future__ import annotations

import argparse
import asyncio
import compileall
import gzip
import http.client
import itertools
import json
import os
import random
import re
import shutil
import socket
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import quote

from corpus import ENV, NOW, make, vocabulary

import memtool
from memtool.memory import document, timestamps
from memtool.memory.memory import Memory

CONNECTIONS = 4
WRITERS = 8
HISTORY = 10
"""Commits of one memory each on top of that of all: the last changes are such as teams make."""
STAMP_S = 1.1
"""A kept page may be so old: see `memtool/web/state.py`."""
LENGTH = re.compile(rb"content-length: *(\d+)", re.IGNORECASE)
DATASETTE = """\
create table memories (id text primary key, type text, category text, title text, body text);
create virtual table memories_fts using fts5 (title, body, content=memories);
"""


class Server:
    """A server as a process of its own, with its port, its token and its CPU clock."""

    def __init__(self, argv: list[str], folder: Path, port: int = 0, pattern: str = "") -> None:
        self.began = time.perf_counter()
        self.process = subprocess.Popen(
            argv, cwd=folder, env=ENV, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        )
        assert self.process.stderr
        self.port, self.token = port, ""
        if pattern:
            line = self.process.stderr.readline()
            if not re.search(pattern, line):
                raise SystemExit(f"{argv} said {line!r}")
        threading.Thread(target=self.process.stderr.read, daemon=True).start()
        while port and not _listens(port):
            if self.process.poll() is not None:
                raise SystemExit(f"{argv} ended with {self.process.returncode}")
            time.sleep(0.05)
        self.clock = (~self.process.pid << 3) | 2  # the CPU clock of another process, on Linux

    @property
    def age_s(self) -> float:
        return time.perf_counter() - self.began

    def request(self, path: str, arguments: dict[str, Any] | None = None) -> bytes:
        """Return the bytes of a request: a page, or a procedure with its arguments."""
        body = json.dumps(arguments).encode() if arguments is not None else b""
        rows = [f"{'POST' if body else 'GET'} {path} HTTP/1.1", f"Host: 127.0.0.1:{self.port}"]
        rows += [f"Authorization: Bearer {self.token}"] * bool(self.token)
        rows += ["Content-Type: application/json", f"Content-Length: {len(body)}"] * bool(body)
        return "\r\n".join([*rows, "", ""]).encode() + body

    def ask(self, path: str) -> http.client.HTTPResponse:
        """Return the answer to a request for a page, as far as its head."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=600)
        connection.request("GET", path, headers={"Authorization": f"Bearer {self.token}"})
        return connection.getresponse()

    def get(self, path: str) -> tuple[int, bytes]:
        """Return the status and body of a page."""
        answer = self.ask(path)
        return answer.status, answer.read()

    def cpu_s(self) -> float:
        return time.clock_gettime(self.clock)

    def memory_mb(self) -> dict[str, int]:
        """Return what the process holds, of its own and of mapped files, and held at its most."""
        rows = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        sizes_kb = {row.partition(":")[0]: row.split()[1] for row in rows if row[-2:] == "kB"}
        return {name: int(sizes_kb[name]) // 1024 for name in ("VmRSS", "RssAnon", "VmHWM")}

    def leave(self) -> None:
        self.process.terminate()
        self.process.wait(30)


class Asker(asyncio.Protocol):
    """One connection that sends the next request when an answer is there, until the time is up."""

    def __init__(self, requests: Iterator[bytes], ends: float, times: list[float]) -> None:
        self.requests, self.ends, self.times = requests, ends, times
        self.buffer = bytearray()
        self.closed = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self.ask()

    def ask(self) -> None:
        self.began = time.perf_counter()
        self.buffer.clear()
        self.transport.write(next(self.requests))

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        head, mark, body = self.buffer.partition(b"\r\n\r\n")
        length = LENGTH.search(head)
        if not mark:
            return
        if length is None:
            if not body.endswith(b"0\r\n\r\n"):
                return
        elif len(body) < int(length[1]):
            return
        if b" 200 " not in head[:16]:
            raise SystemExit(f"{self.buffer[:400]!r}")
        now = time.perf_counter()
        self.times.append(now - self.began)
        if now > self.ends or head.startswith(b"HTTP/1.0"):
            self.transport.close()
        else:
            self.ask()

    def connection_lost(self, _error: Exception | None) -> None:
        self.closed.set_result(None)


async def _load(server: Server, requests: Iterator[bytes], width: int, ends: float) -> list[float]:
    times: list[float] = []

    async def run_connection() -> None:
        while time.perf_counter() < ends:  # http.server answers once for a connection
            _transport, asker = await asyncio.get_running_loop().create_connection(
                lambda: Asker(requests, ends, times), "127.0.0.1", server.port
            )
            await asker.closed

    await asyncio.gather(*(run_connection() for _connection in range(width)))
    return times


class Table:
    """The printed table, and how long each row is measured."""

    def __init__(self, count: int, seconds: float) -> None:
        self.count, self.seconds = count, seconds
        self.static_ms = 0.0

    def row(self, what: str, value: str) -> None:
        print(f"{what:<38}{self.count:>8}  {value}", flush=True)

    def load(
        self, what: str, server: Server, requests: Sequence[bytes], width: int = CONNECTIONS
    ) -> None:
        """Ask for a while and print how many answers came, how fast, and at what cost."""
        endless = itertools.cycle(requests)
        asyncio.run(_load(server, endless, width, time.perf_counter() + 0.2))  # warm
        began, used = time.perf_counter(), server.cpu_s()
        times = asyncio.run(_load(server, endless, width, began + self.seconds))
        rate = len(times) / (time.perf_counter() - began)
        cpu_ms = (server.cpu_s() - used) * 1000 / len(times)
        self.static_ms = self.static_ms or cpu_ms
        self.row(
            f"{what}, {width} conn.",
            f"{rate:>7,.0f}/s  {spread(times)}  CPU {cpu_ms:.2f} ms"
            f" = {cpu_ms / self.static_ms:.2f} x static",
        )


def spread(times: Sequence[float]) -> str:
    """Return median and 95th percentile of seconds."""
    ordered = sorted(times)
    p50, p95 = ordered[len(ordered) // 2], ordered[len(ordered) * 95 // 100]
    return f"p50 {p50 * 1000:>6.1f}  p95 {p95 * 1000:>6.1f} ms"


def serve(repository: Path) -> Server:
    """Start `memtool serve` on a free port and return it when it prints its address."""
    argv = [sys.executable, "-P", "-m", "memtool", "serve", "--write", "--no-open", "--port", "0"]
    server = Server(argv, repository, pattern=" at http://memtool-")
    about = json.loads((repository / ".git/memtool/serve.json").read_text())
    server.port, server.token = int(about["url"].rpartition(":")[2]), about["token"]
    return server


def start(table: Table, repository: Path, how: str) -> Server:
    """Start a server, and print when its first page is there, and when that page is whole."""
    server = serve(repository)
    link_s = server.age_s
    answer = server.ask("/")
    first_s = server.age_s  # a page that waits for the index is sent in two parts
    answer.read()
    while answer.status == 503:
        answer = server.ask("/")
        answer.read()
    table.row(
        f"start {how}",
        f"link {link_s:.2f} s, first / {first_s:.2f} s, whole after {server.age_s:.2f} s",
    )
    return server


def pages(table: Table, server: Server, ids: list[str], words: list[str], folder: Path) -> None:
    """Print cached pages next to the same pages as files, and the size of each page."""
    paths = {
        "status": "/",
        "memory": f"/m/{ids[0]}",
        "search": f"/search?q={quote(words[0])}",
        "timeline": "/timeline",
        "conflicts": "/conflicts",
        "map": "/map",
        "map by tag": "/map?by=tag",
        "health": "/report",
    }
    weights = []
    folder.mkdir()
    for name, path in paths.items():
        status, body = server.get(path)
        if status != 200:
            raise SystemExit(f"{path} is answered with {status}")
        (folder / f"{name}.html").write_bytes(body)
        weights.append(f"{name} {len(gzip.compress(body)) / 1024:.1f}")
    port = _free()
    argv = [sys.executable, "-m", "http.server", str(port), "--bind", "127.0.0.1"]
    static = Server(argv, folder, port)
    for name in ("status", "memory"):
        table.load(f"static {name}", static, [static.request(f"/{name}.html")])
    static.leave()
    for name in ("status", "memory", "search"):
        table.load(f"kept {name}", server, [server.request(paths[name])])
    table.row("page weight, kB gzipped", ", ".join(weights))


def searches(table: Table, server: Server, questions: list[str]) -> None:
    """Print searches, each with other words."""
    requests = [server.request(f"/search?q={quote(question)}") for question in questions]
    called = [server.request("/api/search", {"query": question}) for question in questions]
    for width in (1, CONNECTIONS):
        table.load("search page", server, requests, width)
        table.load("search API", server, called, width)


def rivals(
    table: Table, program: str, memories: list[Memory], folder: Path, questions: list[str]
) -> None:
    """Print datasette over the same rows: the page of a row, and the page of a search."""
    path = shutil.which(program)
    if path is None:
        print(
            f"{program} is not installed, so there is nothing beside the searches: "
            "`pip install datasette`, or name the program with --datasette."
        )
        return
    with sqlite3.connect(folder / "memories.db") as rows:
        rows.executescript(DATASETTE)
        rows.executemany(
            "insert into memories values (?, ?, ?, ?, ?)",
            [(m.id, m.type, m.fields["category"], m.title, m.body) for m in memories],
        )
        rows.execute("insert into memories_fts (memories_fts) values ('rebuild')")
    rows.close()
    port = _free()
    server = Server(
        [path, "memories.db", "--port", str(port), "--setting", "num_sql_threads", "3"],
        folder,
        port,
    )
    table.load("datasette row", server, [server.request(f"/memories/memories/{memories[0].id}")])
    query = "/memories/memories?_size=25&_searchmode=raw&_search="
    requests = [
        server.request(query + quote(" OR ".join(f'"{word}"' for word in question.split())))
        for question in questions
    ]
    for width in (1, CONNECTIONS):
        table.load("datasette search page", server, requests, width)
    server.leave()


def commit(repository: Path, number: int) -> None:
    """Commit one new memory."""
    second = timestamps.parse(NOW) - 3600 + number
    id_ = f"dec-{timestamps.format_date(second)}-change-{number:03}"
    memory = Memory(
        fields={
            "id": id_,
            "timestamp": timestamps.render(second),
            "type": "decision",
            "title": f"Return the change number {number}",
            "category": "decision",
            "confidence": "medium",
            "source": ("human:bench",),
            "tags": (),
        },
        body=f"A change of the benchmark, number {number}.\n",
    )
    path = repository / ".memory/decision" / timestamps.format_date(second)[:7] / f"{id_}.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(document.write(memory))
    _git(repository, "add", str(path))
    _git(repository, "commit", "-q", "-m", id_)


def changes(table: Table, server: Server, repository: Path, ids: list[str], count: int) -> None:
    """Print how long pages take after a commit of one memory, each being the first in turn."""
    pages = {"/": "status", f"/m/{ids[0]}": "memory", "/search?q=return": "search", "/map": "map"}
    times: dict[str, list[float]] = {page: [] for page in pages}
    used: dict[str, list[float]] = {page: [] for page in pages}
    for number in range(count):
        commit(repository, HISTORY + number)
        time.sleep(STAMP_S)
        for page in [*pages][number % len(pages) :] + [*pages][: number % len(pages)]:
            began, cpu_s = time.perf_counter(), server.cpu_s()
            status, _body = server.get(page)
            times[page].append(time.perf_counter() - began)
            used[page].append(server.cpu_s() - cpu_s)
            if status != 200:
                raise SystemExit(f"{page} is answered with {status}")
    for page, name in pages.items():
        table.row(
            f"{name} after each of {count} changes",
            f"{spread(times[page])}  CPU {spread(used[page])}",
        )


def writers(table: Table, server: Server, repository: Path, each: int, words: list[str]) -> None:
    """Print how many memories eight clients write at once, and how many of these are in git."""
    draw = random.Random(5)
    texts = [[" ".join(draw.choices(words, k=60)) for _ in range(each)] for _ in range(WRITERS)]
    begin = threading.Barrier(WRITERS)

    def write(bodies: list[str]) -> list[str]:
        headers = {"Authorization": f"Bearer {server.token}", "Content-Type": "application/json"}
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=600)
        begin.wait()
        paths = []
        for body in bodies:
            fields = {"type": "semantic", "title": body[:60].strip(), "body": body, "commit": True}
            connection.request("POST", "/api/new", json.dumps(fields), headers)
            answer = json.loads(connection.getresponse().read())
            if "error" in answer:
                raise SystemExit(f"a writer is answered with {answer}")
            paths.append(answer["value"]["path"])
        return paths

    began = time.perf_counter()
    with ThreadPoolExecutor(WRITERS) as pool:
        acknowledged = [path for paths in pool.map(write, texts) for path in paths]
    took = time.perf_counter() - began
    there = set(_git(repository, "ls-tree", "-r", "--name-only", "HEAD").splitlines())
    committed = sum(path in there for path in acknowledged)
    table.row(
        f"{WRITERS} writers, {each} commits each",
        f"{took:.1f} s, {len(acknowledged)} acknowledged, {committed} in HEAD",
    )


def _git(repository: Path, *args: str) -> str:
    done = subprocess.run(
        ["git", "-C", str(repository), *args], env=ENV, check=True, capture_output=True, text=True
    )
    return done.stdout


def _free() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


def _listens(port: int) -> bool:
    with socket.socket() as sock:
        return sock.connect_ex(("127.0.0.1", port)) == 0


def measure(count: int, args: argparse.Namespace, keep: Path, words: list[str]) -> None:
    """Print the rows of one number of memories."""
    table = Table(count, args.seconds)
    draw = random.Random(3)
    questions = [
        " ".join(draw.choices(words[40:6_000], k=draw.randrange(1, 6))) for _ in range(997)
    ]
    with tempfile.TemporaryDirectory(prefix="memtool-web-") as temporary:
        folder = Path(temporary)
        repository = folder / "clone"
        _git(folder, "clone", "-q", str(make(keep, count)), str(repository))
        paths = sorted((repository / ".memory").rglob("*-*.md"))
        memories = [document.read(path.read_bytes(), str(path)) for path in paths]
        ids = [memory.id for memory in draw.sample(memories, 20)]
        for number in range(HISTORY):
            commit(repository, number)
        start(table, repository, "in a new clone").leave()
        server = start(table, repository, "with an index")
        try:
            pages(table, server, ids, questions, folder / "pages")
            searches(table, server, questions)
            rivals(table, args.datasette, memories, folder, questions)
            changes(table, server, repository, ids, args.changes)
            writers(table, server, repository, args.writes, words)
            memory_mb = server.memory_mb()
            table.row(
                "memory at the end",
                f"{memory_mb['VmRSS']} MB, {memory_mb['RssAnon']} of them its "
                f"own, the rest mapped files; {memory_mb['VmHWM']} at most",
            )
        finally:
            server.leave()


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("counts", nargs="*", type=int, default=[1_000])
    parser.add_argument("--seconds", type=float, default=2.0, help="how long a row is measured")
    parser.add_argument("--changes", type=int, default=21)
    parser.add_argument("--writes", type=int, default=5, help="of each writer")
    parser.add_argument("--datasette", default="datasette", help="the program, or its path")
    args = parser.parse_args()
    compileall.compile_dir(os.path.dirname(memtool.__file__), quiet=2)
    keep = Path(os.environ.get("MEMTOOL_BENCH_DIR") or Path(tempfile.gettempdir(), "memtool-bench"))
    words = vocabulary()
    for count in args.counts:
        measure(count, args, keep, words)


if __name__ == "__main__":
    main()
