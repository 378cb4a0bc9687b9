"""What a shared index of three nodes survives, while memories are published and asked for.

    sudo python bench/fleet_faults.py          all faults
    sudo python bench/fleet_faults.py manager  those with this in their name

Three nodes of `tests/opensearch_cluster.py`, each with a small disk in memory, stand behind a
balancer on the loopback. One publisher writes repository after repository, one client asks; then
each node in turn is killed with SIGKILL, two are, one disk is filled, one node stands still, and
one is cut off from the two others, which it reaches and is reached by no more. The balancer and
with it publisher and client may then reach all three, only those two, or only the one. For each
fault a row is printed: documents that were acknowledged while it lasted, how many of all
acknowledged ones are missing afterwards, and the questions that were answered or fell back. At the
end the index is deleted and published again.

It needs root, `unshare` and `ip`: for the disks, and for a network of its own, in which each node
has a user and an address, so that packets from one to another can be lost (`Network`). It takes
about twenty minutes.
"""

from __future__ import annotations

import itertools
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from retrieval import ROOT

sys.path.insert(0, str(ROOT / "tests"))

from opensearch_cluster import Cluster, Node, why_not

from memtool.fleet import opensearch, publish
from memtool.fleet.backend import FleetQuery, FleetUnavailable
from memtool.fleet.opensearch import TERMS_FIELD, OpenSearch, SearchServer
from memtool.fleet.publish import Partition, Publication

DISK_MB = 200
BEFORE_S, DURING_S, SILENT_S, CUT_S = 4.0, 18.0, 45.0, 60.0
"""What is silent is given up by the others after 30 to 40 seconds."""
WHOLE_S = 120.0
"""So long it is waited until a cluster is whole by itself; then an administrator helps."""
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


NAMESPACE = "MEMTOOL_BENCH_NAMESPACE"
"""Set where this process has a network of its own already."""


def enter_network() -> None:
    """Run this program again in a network of its own, which has nothing but a loopback."""
    if os.environ.get(NAMESPACE) is None:
        os.environ[NAMESPACE] = "1"
        os.execvp("unshare", ["unshare", "--net", sys.executable, *sys.argv])


class Network:
    """The loopback of this namespace, as a network of nodes between which packets can be lost.

    OpenSearch is content with few open files on the loopback only, so that no wires are made
    between nodes. Instead what the user of a node sends has the address of that node, and what goes
    from one address to another can be routed to a device that nobody reads. So connections that are
    there fall silent, and new ones find nobody, as where a cable is cut; a refusal would tell them.
    """

    NOWHERE = "66"
    """The table of routes that lead to nothing."""

    def __init__(self) -> None:
        sh("ip", "link", "set", "lo", "up")
        sh("ip", "tuntap", "add", "dev", "nowhere", "mode", "tun")
        sh("ip", "link", "set", "nowhere", "up")
        Path("/proc/sys/net/ipv4/conf/nowhere/route_localnet").write_text("1")
        sh("ip", "route", "add", "default", "dev", "nowhere", "table", self.NOWHERE)
        # The table of this machine's addresses is asked first; rules of ours must come before it.
        sh("ip", "rule", "add", "pref", "100", "lookup", "local")
        sh("ip", "rule", "del", "pref", "0")
        self._lost: list[tuple[str, ...]] = []

    def node(self, cluster: Cluster, number: int) -> Node:
        """Return a new node with an address and a user of its own."""
        user, host = str(USER + number), f"127.0.1.{number}"
        sh("ip", "route", "add", "local", "127.0.0.0/8", "dev", "lo", "src", host, "table", user)
        sh("ip", "rule", "add", "pref", "50", "uidrange", f"{user}-{user}", "lookup", user)
        return Node(cluster, f"n{number}", host, USER + number)

    def lose(self, senders: Sequence[Node], receivers: Sequence[Node]) -> None:
        """Lose what some nodes send to others, until `heal`."""
        for first, other in itertools.product(senders, receivers):
            rule = ("pref", "10", "from", first.host, "to", other.host, "lookup", self.NOWHERE)
            sh("ip", "rule", "add", *rule)
            self._lost.append(rule)

    def heal(self) -> None:
        """Let all packets arrive again."""
        while self._lost:
            sh("ip", "rule", "del", *self._lost.pop())


USER = 61_000
"""Below the numbers of the users that nodes run as."""


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
                server = socket.create_connection((node.host, node.port), timeout=0.5)
                server.settimeout(None)
                break
        else:
            client.close()
            return
        for source, other in ((client, server), (server, client)):
            threading.Thread(target=_pump, args=(source, other), daemon=True).start()


def _pump(source: socket.socket, other: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(1 << 16):
            other.sendall(data)
    for sock in (source, other):
        with suppress(OSError):
            sock.shutdown(socket.SHUT_RDWR)


def draft_of(number: int) -> Publication:
    """Return what one repository has to publish."""
    name = f"team{number % 7}/service-{number:05}"
    documents = {}
    for count in range(EACH):
        words = " ".join(WORDS[(number * 7 + count * (n + 1)) % len(WORDS)] for n in range(6))
        id_ = f"sem-{count:03}"
        documents[id_] = {
            "repo": name,
            "id": id_,
            "gen": 1,
            "commit": "c" * 40,
            "type": "semantic",
            "tags": [],
            "path": f".memory/semantic/{id_}.md",
            "data": words,
            "size": 2 * len(words),
            TERMS_FIELD: f" \n {words} ",
        }
    return Publication(name, "c" * 40, "t" * 40, 1, documents, (), {})


_numbers = itertools.count()
"""No repository is published twice, so that what is found was written then."""


class Load:
    """One publisher and one client, until it ends."""

    def __init__(self, server: SearchServer) -> None:
        self.server = server
        self.acknowledged: list[int] = []
        self.failed = 0
        self.requests: list[tuple[float, bool]] = []
        self.longest = 0.0
        self._is_over = threading.Event()
        self._threads = [
            threading.Thread(target=loop, daemon=True) for loop in (self._publish, self._ask)
        ]
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
                is_answered = bool(backend.find_candidates(FleetQuery(weights), WITHIN_S))
            except FleetUnavailable:
                is_answered = False
            self.requests.append((time.monotonic() - begun, is_answered))

    def end(self) -> None:
        self._is_over.set()
        for thread in self._threads:
            thread.join(120)


def missing(server: SearchServer, numbers: list[int]) -> int:
    """Return how many acknowledged documents are gone."""
    gone = 0
    for number in numbers:
        made = draft_of(number)
        docs = [
            {"_id": opensearch.build_document_id(made.repository, id_), "routing": made.repository}
            for id_ in made.documents
        ]
        path = f"/{server.index}/_mget?_source=false"
        rows = server.request("POST", path, {"docs": docs}, timeout_s=60)["docs"]
        gone += sum(not row.get("found") for row in rows)
    return gone


def settled(server: SearchServer, cluster: Cluster) -> float:
    """Wait until all copies are there again; return the seconds that took, infinite if too many.

    Each node must see it so: one that was cut off does not know at once what it missed.
    """
    begun = time.monotonic()
    while time.monotonic() - begun < WHOLE_S:
        with suppress(FleetUnavailable):
            states = [
                server.replace(host=node.host, port=node.port).request(
                    "GET", "/_cluster/health?local=true", timeout_s=3
                )
                for node in cluster.nodes
            ]
            if all(
                state.get("status") == "green" and state.get("number_of_nodes") == len(states)
                for state in states
            ):
                return time.monotonic() - begun
        time.sleep(0.5)
    return float("inf")


def row(
    called: str,
    server: SearchServer,
    cluster: Cluster,
    act: Callable[[], Any],
    undo: Callable[[], Any],
    during_s: float = DURING_S,
) -> None:
    """Let a fault happen under load, take it back, and print what became of it."""
    if not all(word in called for word in sys.argv[1:]):
        return
    load = Load(server)
    time.sleep(BEFORE_S)
    before, first = len(load.acknowledged), len(load.requests)
    act()
    time.sleep(during_s)
    during, last = len(load.acknowledged) - before, len(load.requests)
    undo()
    recovered = settled(server, cluster)
    whole = f"{recovered:.0f} s"
    if recovered > WHOLE_S:
        retried(server)
        whole = f"{WHOLE_S:.0f} s, and {settled(server, cluster):.0f} s after a reroute"
    time.sleep(BEFORE_S)
    load.end()
    requests = load.requests[first:last]
    good = [seconds for seconds, is_answered in requests if is_answered]
    lost = missing(server, load.acknowledged)
    print(
        f"| {called} | {during * EACH:,} | {len(load.acknowledged) * EACH:,} | {lost} | "
        f"{len(good)} / {len(requests) - len(good)} | {load.longest:.1f} s | {whole} |",
        flush=True,
    )


def halt(node: Node, how: signal.Signals) -> None:
    """Pause or resume a node."""
    assert node.process is not None
    os.killpg(node.process.pid, how)


def elect(server: SearchServer, cluster: Cluster, node: Node) -> None:
    """Let a node be the manager of the cluster, by taking the vote from all others for a moment."""
    names = ",".join(other.name for other in cluster.nodes if other is not node)
    path = "/_cluster/voting_config_exclusions"
    server.request("POST", f"{path}?node_names={names}", timeout_s=60)
    server.request("DELETE", f"{path}?wait_for_removal=false", timeout_s=60)
    settled(server, cluster)


def busiest(server: SearchServer, nodes: Sequence[Node]) -> tuple[Node, int]:
    """Return the node that has most primary shards, which write first, and how many it has."""
    state = server.request(
        "GET", f"/_cluster/state/nodes,routing_table/{server.index}", timeout_s=60
    )
    tables = state["routing_table"]["indices"][server.index]["shards"].values()
    homes = [
        state["nodes"][copy["node"]]["name"]
        for table in tables
        for copy in table
        if copy["primary"]
    ]
    return max(((node, homes.count(node.name)) for node in nodes), key=lambda pair: pair[1])


REACHED = ("all", "the others", "only it")
"""Whom the balancer reaches while a node is cut off."""


def cut_off(
    server: SearchServer,
    cluster: Cluster,
    balancer: Balancer,
    network: Network,
    reached: str,
    *,
    is_manager: bool = False,
    is_heard: bool = False,
    hears: bool = False,
) -> None:
    """Cut one node with primary shards off from the others, in one direction or in both."""
    nodes = balancer.nodes
    node, count = busiest(server, nodes)
    other_nodes = [other for other in nodes if other is not node]
    elect(server, cluster, node if is_manager else other_nodes[0])
    called = "not heard by the others" if hears else "deaf to the others" if is_heard else "cut off"

    def act() -> None:
        if not is_heard:
            network.lose([node], other_nodes)
        if not hears:
            network.lose(other_nodes, [node])
        balancer.nodes = dict(zip(REACHED, (nodes, other_nodes, [node]), strict=True))[reached]

    def undo() -> None:
        network.heal()
        balancer.nodes = nodes

    row(
        f"{'the manager' if is_manager else 'another node'}, with {count} of 2 primary shards, is "
        f"{called}; reached: {reached}",
        server,
        cluster,
        act,
        undo,
        CUT_S,
    )


def fill(node: Node) -> None:
    """Leave no byte on the disk of a node."""
    with suppress(OSError), (node.folder / "data" / "full").open("wb") as file:
        while True:
            file.write(bytes(1 << 20))
            file.flush()


def main() -> None:
    if os.geteuid() != 0 or not (shutil.which("ip") and shutil.which("unshare")):
        raise SystemExit("disks and a network of their own need root, and the programs ip, unshare")
    if reason := why_not():
        raise SystemExit(reason)
    enter_network()
    network = Network()
    publish.REQUEST_TIMEOUT_S, publish.PAUSES_S = 10.0, (0.5, 1.0, 2.0)
    cluster = Cluster()
    disks = []
    try:
        nodes = [network.node(cluster, number) for number in (1, 2, 3)]
        for node in nodes:
            data = str(node.folder / "data")
            sh("mount", "-t", "tmpfs", "-o", f"size={DISK_MB}m,mode=777", "none", data)
            disks.append(data)
        cluster.several(nodes)
        balancer = Balancer()
        balancer.nodes = nodes
        server = opensearch.parse_server(f"http://127.0.0.1:{balancer.port}/memories", {})
        opensearch.prepare(server, shards=2, replicas=1, timeout_s=60)
        settled(server, cluster)
        n2, n3 = nodes[1:]
        print(
            "| fault | acknowledged while it lasts | in all | lost | questions answered / fallen "
            "back | longest publish of 50 | whole again after |\n|---|---|---|---|---|---|---|",
            flush=True,
        )
        for node in nodes:
            row(
                f"kill -9 of {node.name}",
                server,
                cluster,
                node.kill,
                lambda node=node: cluster.again(node),
            )
        row(
            "kill -9 of n2 and n3",
            server,
            cluster,
            lambda: (n2.kill(), n3.kill()),
            lambda: cluster.again(n2, n3),
        )
        row(
            "full disk of n3",
            server,
            cluster,
            lambda: fill(n3),
            lambda: ((n3.folder / "data" / "full").unlink(), retried(server)),
        )
        row(
            "n3 is silent (SIGSTOP)",
            server,
            cluster,
            lambda: halt(n3, signal.SIGSTOP),
            lambda: halt(n3, signal.SIGCONT),
            SILENT_S,
        )
        for is_manager, reached in itertools.product((False, True), REACHED):
            cut_off(server, cluster, balancer, network, reached, is_manager=is_manager)
        cut_off(server, cluster, balancer, network, "all", is_manager=True, hears=True)
        cut_off(server, cluster, balancer, network, "all", is_heard=True)
        server.request("DELETE", f"/{server.index}", timeout_s=60)
        opensearch.prepare(server, shards=2, replicas=1, timeout_s=60)
        for number in range(40):
            made = draft_of(number)
            Partition(server, made.repository).write(made)
        print(
            f"deleted and published again: {missing(server, list(range(40)))} of {40 * EACH:,} "
            "documents are missing"
        )
    finally:
        for node in cluster.nodes:
            node.kill()
        for data in disks:
            sh("umount", data, is_needed=False)
        cluster.close()


def retried(server: SearchServer) -> None:
    """Let shards be placed again that failed five times, which OpenSearch leaves to people."""
    with suppress(FleetUnavailable):
        server.request("POST", "/_cluster/reroute?retry_failed=true", timeout_s=60)


if __name__ == "__main__":
    main()
