"""What a shared index of three nodes survives, while memories are published and asked for.

    sudo python bench/fleet_faults.py

Three nodes of `tests/opensearch_cluster.py`, each with a small disk in memory, stand behind a
balancer on the loopback. One publisher writes repository after repository, one client asks; then
each node in turn is killed with SIGKILL, two are, one disk is filled, and one node stands still, as
if its network was cut. For each fault a row is printed: documents that were acknowledged while it
lasted, how many of all acknowledged ones are missing afterwards, and the questions that were
answered or fell back. At the end the index is deleted and published again. It needs root, for the
disks, and takes about ten minutes.
"""

from __future__ import annotations

import itertools
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from retrieval import ROOT

sys.path.insert(0, str(ROOT / "tests"))

from opensearch_cluster import HOST, Cluster, Node, why_not

from memtool.fleet import opensearch, publish
from memtool.fleet.backend import FleetQuery, FleetUnavailable
from memtool.fleet.opensearch import TEXT_FIELD, OpenSearch, SearchServer
from memtool.fleet.publish import Draft, Partition

DISK_MB = 200
BEFORE_S, DURING_S, SILENT_S = 4.0, 18.0, 45.0
PAUSE_S = 0.1
"""Between two repositories, and two questions: what is looked for is not speed."""
WITHIN_S = 2.0
EACH = 50
WORDS = [
    "redis",
    "session",
    "cache",
    "expire",
    "token",
    "queue",
    "worker",
    "page",
    "deploy",
    "retry",
]


def sh(*args: str, is_needed: bool = True) -> None:
    """Run a command."""
    subprocess.run(args, check=is_needed, capture_output=not is_needed)


class Balancer:
    """Passes each connection on to the next node that takes it."""

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self._next = itertools.count()
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        while True:
            client, _address = self._listener.accept()
            threading.Thread(target=self._pass, args=(client,), daemon=True).start()

    def _pass(self, client: socket.socket) -> None:
        start = next(self._next)
        for turn in range(len(self.nodes)):
            node = self.nodes[(start + turn) % len(self.nodes)]
            with suppress(OSError):
                server = socket.create_connection((HOST, node.port), timeout=0.5)
                server.settimeout(None)
                break
        else:
            client.close()
            return
        for one, other in ((client, server), (server, client)):
            threading.Thread(target=_pump, args=(one, other), daemon=True).start()


def _pump(one: socket.socket, other: socket.socket) -> None:
    with suppress(OSError):
        while data := one.recv(1 << 16):
            other.sendall(data)
    for sock in (one, other):
        with suppress(OSError):
            sock.shutdown(socket.SHUT_RDWR)


def draft_of(number: int) -> Draft:
    """Return what one repository has to publish."""
    name = f"team{number % 7}/service-{number:05}"
    documents = {}
    for count in range(EACH):
        words = " ".join(WORDS[(number * 7 + count * (n + 1)) % len(WORDS)] for n in range(6))
        id_ = f"sem-{count:03}"
        documents[id_] = {
            "repo": name, "id": id_, "gen": 1, "commit": "c" * 40, "type": "semantic", "tags": [],
            "path": f".memory/semantic/{id_}.md", "data": words, "size": 2 * len(words),
            TEXT_FIELD: f" \n {words} ",
        }  # fmt: skip
    return Draft(name, "c" * 40, "t" * 40, 1, documents, (), {})


_numbers = itertools.count()
"""No repository is published twice, so that what is found was written then."""


class Load:
    """One publisher and one client, until it ends."""

    def __init__(self, server: SearchServer) -> None:
        self.server = server
        self.acknowledged: list[int] = []
        self.failed = 0
        self.asked: list[tuple[float, bool]] = []
        self.longest = 0.0
        self._is_over = threading.Event()
        self._threads = [threading.Thread(target=one, daemon=True)
                         for one in (self._publish, self._ask)]  # fmt: skip
        for thread in self._threads:
            thread.start()

    def _publish(self) -> None:
        number = next(_numbers)
        while not self._is_over.is_set():
            made = draft_of(number)
            begun = time.monotonic()
            try:
                Partition(self.server, made.repository).write(made)
            except FleetUnavailable:
                self.failed += 1  # it is tried again, as the next run of a CI does
                continue
            finally:
                self.longest = max(self.longest, time.monotonic() - begun)
            self.acknowledged.append(number)
            time.sleep(PAUSE_S)
            number = next(_numbers)

    def _ask(self) -> None:
        backend = OpenSearch(self.server)
        for number in itertools.count():
            if self._is_over.wait(PAUSE_S):
                return
            weights = {WORDS[(number + n) % len(WORDS)]: 1.0 for n in range(4)}
            begun = time.monotonic()
            try:
                is_answered = bool(backend.candidates(FleetQuery(weights), WITHIN_S))
            except FleetUnavailable:
                is_answered = False
            self.asked.append((time.monotonic() - begun, is_answered))

    def end(self) -> None:
        self._is_over.set()
        for thread in self._threads:
            thread.join(120)


def missing(server: SearchServer, numbers: list[int]) -> int:
    """Return how many acknowledged documents are gone."""
    gone = 0
    for number in numbers:
        made = draft_of(number)
        docs = [{"_id": opensearch.document_id(made.repository, id_), "routing": made.repository}
                for id_ in made.documents]  # fmt: skip
        path = f"/{server.index}/_mget?_source=false"
        found = server.get("POST", path, {"docs": docs}, within=60)["docs"]
        gone += sum(not row.get("found") for row in found)
    return gone


def settled(server: SearchServer) -> float:
    """Wait until all copies are there again; return the seconds that took."""
    begun = time.monotonic()
    while time.monotonic() - begun < 300:
        with suppress(FleetUnavailable):
            found = server.get("GET", "/_cluster/health", within=10)
            if found.get("status") == "green" and found.get("number_of_nodes") == 3:
                return time.monotonic() - begun
        time.sleep(0.5)
    return float("inf")


def row(
    called: str,
    server: SearchServer,
    act: Callable[[], Any],
    undo: Callable[[], Any],
    during_s: float = DURING_S,
) -> None:
    """Let a fault happen under load, take it back, and print what became of it."""
    load = Load(server)
    time.sleep(BEFORE_S)
    before, first = len(load.acknowledged), len(load.asked)
    act()
    time.sleep(during_s)
    during, last = len(load.acknowledged) - before, len(load.asked)
    undo()
    recovered = settled(server)
    time.sleep(BEFORE_S)
    load.end()
    asked = load.asked[first:last]
    good = [seconds for seconds, is_answered in asked if is_answered]
    lost = missing(server, load.acknowledged)
    print(f"| {called} | {during * EACH:,} | {len(load.acknowledged) * EACH:,} | {lost} | "
          f"{len(good)} / {len(asked) - len(good)} | {load.longest:.1f} s | {recovered:.0f} s |",
          flush=True)  # fmt: skip


def halt(node: Node, how: signal.Signals) -> None:
    """Let a node stand still, or go on: to the others it is as if its network was cut."""
    assert node.process is not None
    os.killpg(node.process.pid, how)


def fill(node: Node) -> None:
    """Leave no byte on the disk of a node."""
    with suppress(OSError), (node.folder / "data" / "full").open("wb") as file:
        while True:
            file.write(bytes(1 << 20))
            file.flush()


def main() -> None:
    if reason := why_not() or ("" if os.geteuid() == 0 else "disks of their own need root"):
        raise SystemExit(reason)
    publish.REQUEST_S, publish.PAUSES_S = 10.0, (0.5, 1.0, 2.0)
    cluster = Cluster()
    disks = []
    try:
        nodes = [Node(cluster, name) for name in ("n1", "n2", "n3")]
        for node in nodes:
            data = str(node.folder / "data")
            sh("mount", "-t", "tmpfs", "-o", f"size={DISK_MB}m,mode=777", "none", data)
            disks.append(data)
        cluster.several(nodes)
        balancer = Balancer()
        balancer.nodes = nodes
        server = opensearch.server_at(f"http://127.0.0.1:{balancer.port}/memories", {})
        opensearch.prepare(server, shards=2, replicas=1, within=60)
        settled(server)
        n2, n3 = nodes[1:]
        print("| fault | acknowledged while it lasts | in all | lost | questions answered / fallen "
              "back | longest publish of 50 | whole again after |\n|---|---|---|---|---|---|---|",
              flush=True)  # fmt: skip
        for node in nodes:
            row(f"kill -9 of {node.name}", server, node.kill, lambda node=node: cluster.again(node))
        row("kill -9 of n2 and n3", server, lambda: (n2.kill(), n3.kill()),
            lambda: cluster.again(n2, n3))  # fmt: skip
        row("full disk of n3", server, lambda: fill(n3),
            lambda: ((n3.folder / "data" / "full").unlink(), retried(server)))  # fmt: skip
        row("n3 is silent (SIGSTOP)", server, lambda: halt(n3, signal.SIGSTOP),
            lambda: halt(n3, signal.SIGCONT), SILENT_S)  # fmt: skip
        server.get("DELETE", f"/{server.index}", within=60)
        opensearch.prepare(server, shards=2, replicas=1, within=60)
        for number in range(40):
            made = draft_of(number)
            Partition(server, made.repository).write(made)
        print(f"deleted and published again: {missing(server, list(range(40)))} of {40 * EACH:,} "
              "documents are missing")  # fmt: skip
    finally:
        for node in cluster.nodes:
            node.kill()
        for data in disks:
            sh("umount", data, is_needed=False)
        cluster.close()


def retried(server: SearchServer) -> None:
    """Let shards be placed again that failed too often, as an administrator does."""
    with suppress(FleetUnavailable):
        server.get("POST", "/_cluster/reroute?retry_failed=true", within=60)


if __name__ == "__main__":
    main()
