"""Real OpenSearch nodes on this machine, from the distribution without plugins in Maven's cache.

`.ci/run` fetches it. A node listens on the loopback alone, on ports that it chooses itself, keeps
everything below one temporary folder, and is ended with it. OpenSearch refuses to run as root, so
that root starts it as nobody.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import time
import zipfile
from collections.abc import Sequence
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Self

VERSION = "2.19.1"
ARTIFACT = f"org.opensearch.distribution.integ-test-zip:opensearch:{VERSION}:zip"
NAME = f"opensearch-{VERSION}"
PLACE = f"org/opensearch/distribution/integ-test-zip/opensearch/{VERSION}/{NAME}.zip"
START_S = 180.0
"""Seconds that a node may take to answer, on a machine that is busy."""
NOBODY = 65534
HEAP = "512m"
HOST = "127.0.0.1"


def archive() -> Path:
    """Return where Maven keeps the distribution."""
    home = os.environ.get("MAVEN_REPOSITORY") or str(Path("~/.m2/repository").expanduser())
    return Path(home) / PLACE


def why_not() -> str:
    """Return in one sentence why no node can be started here; empty if one can."""
    if shutil.which("java") is None:
        return "OpenSearch needs Java, and there is none here"
    if not archive().is_file():
        return f"Maven's cache has no OpenSearch: mvn dependency:get -Dartifact={ARTIFACT}"
    return ""


class Node:
    """One node: a process with a folder of its own, which outlives it and holds its data.

    `host` is the address that it listens on, one of the loopback, and `user` whom root runs it as.
    """

    def __init__(self, cluster: Cluster, name: str, host: str = HOST, user: int = NOBODY) -> None:
        self.cluster = cluster
        self.name = name
        self.host = host
        self.user = user
        self.folder = cluster.folder / name
        self.process: subprocess.Popen[bytes] | None = None
        self.port = 0
        for part in ("data", "logs", "tmp"):
            (self.folder / part).mkdir(parents=True)
        shutil.copytree(cluster.distribution / "config", self.folder / "config")
        options = self.folder / "config" / "jvm.options"
        lines = options.read_text().splitlines(keepends=True)
        options.write_text("".join(line for line in lines if "logs/" not in line))
        self._hand_over()

    def _hand_over(self) -> None:
        """Give its folder to the user it runs as."""
        if os.geteuid() != 0:
            return
        for place in (self.folder, *self.folder.rglob("*")):
            os.chown(place, self.user, self.user)

    @property
    def url(self) -> str:
        return f"http://{self.host}:{self.port}"

    def start(self, settings: Sequence[str] = ()) -> None:
        """Start the process, with settings such as `cluster.name=x`; `wait` waits for it."""
        java = Path(os.path.realpath(shutil.which("java") or "")).parent.parent
        for file in (self.folder / "logs").glob("*.ports"):
            file.unlink()
        options = [
            f"node.name={self.name}",
            "node.portsfile=true",
            "http.port=0",
            "transport.port=0",
            f"network.host={self.host}",
            f"path.data={self.folder / 'data'}",
            f"path.logs={self.folder / 'logs'}",
            *self.cluster.settings,
            *settings,
        ]
        env = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.folder),
            "OPENSEARCH_JAVA_HOME": str(java),
            "OPENSEARCH_JAVA_OPTS": f"-Xms{self.cluster.heap} -Xmx{self.cluster.heap}",
            "OPENSEARCH_PATH_CONF": str(self.folder / "config"),
            "OPENSEARCH_TMPDIR": str(self.folder / "tmp"),
        }
        program = ["bash", str(self.cluster.distribution / "bin" / "opensearch")]
        as_user = {"user": self.user, "group": self.user, "extra_groups": []}
        with (self.folder / "out.txt").open("wb") as out:
            self.process = subprocess.Popen(
                [*program, *(f"-E{option}" for option in options)],
                env=env,
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                start_new_session=True,
                **(as_user if os.geteuid() == 0 else {}),
            )

    def wait(self) -> None:
        """Wait until it answers over HTTP. Raises AssertionError with its last words."""
        end = time.monotonic() + START_S
        while time.monotonic() < end:
            assert self.process is not None
            assert self.process.poll() is None, self.last_words()
            self.port = self._port("http")
            if self.port and self.answers("GET", "/"):
                return
            time.sleep(0.2)
        raise AssertionError(f"{self.name} does not answer: {self.last_words()}")

    def transport(self) -> str:
        """Wait for the address by which other nodes speak to it."""
        end = time.monotonic() + START_S
        while time.monotonic() < end:
            if port := self._port("transport"):
                return f"{self.host}:{port}"
            assert self.process is not None
            assert self.process.poll() is None, self.last_words()
            time.sleep(0.2)
        raise AssertionError(f"{self.name} has no port: {self.last_words()}")

    def _port(self, kind: str) -> int:
        try:
            text = (self.folder / "logs" / f"{kind}.ports").read_text()
        except FileNotFoundError:
            return 0
        ports = [line.rpartition(":")[2] for line in text.splitlines()]
        return next((int(port) for port in ports if port.isdigit()), 0)

    def answers(self, method: str, path: str) -> bool:
        """Tell whether a request is answered with 200."""
        connection = HTTPConnection(self.host, self.port, timeout=10)
        try:
            connection.request(method, path)
            return connection.getresponse().status == 200
        except (OSError, HTTPException):
            return False
        finally:
            connection.close()

    def last_words(self) -> str:
        """Return the end of what it printed."""
        return (self.folder / "out.txt").read_text(errors="replace")[-2_000:]

    def kill(self) -> None:
        """End it as a power cut does."""
        self.end(signal.SIGKILL)

    def end(self, how: signal.Signals = signal.SIGTERM) -> None:
        """End it, and wait until it is gone."""
        if self.process is None:
            return
        if self.process.poll() is None:
            os.killpg(self.process.pid, how)
            try:
                self.process.wait(30)
            except subprocess.TimeoutExpired:
                os.killpg(self.process.pid, signal.SIGKILL)
                self.process.wait()
        self.process = None


class Cluster:
    """Nodes below one temporary folder; a context that leaves nothing behind."""

    def __init__(self, settings: Sequence[str] = (), heap: str = HEAP) -> None:
        self.heap = heap
        # Below /tmp, which nobody may enter, and not in pytest's folder, which only its user may.
        self.folder = Path(tempfile.mkdtemp(prefix="memtool-opensearch-"))
        self.folder.chmod(0o755)
        self.settings = [
            "cluster.name=memtool-test",
            # What is tested is not how full the disk of this machine is.
            "cluster.routing.allocation.disk.threshold_enabled=false",
            *settings,
        ]
        self.nodes: list[Node] = []
        with zipfile.ZipFile(archive()) as packed:
            packed.extractall(self.folder)
        self.distribution = self.folder / NAME
        for program in (self.distribution / "bin").iterdir():
            program.chmod(0o755)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def close(self) -> None:
        """End every node, and remove all that they wrote."""
        for node in self.nodes:
            node.end(signal.SIGKILL)
        shutil.rmtree(self.folder, ignore_errors=True)

    def start_single(self, settings: Sequence[str] = ()) -> Node:
        """Start a cluster of one node, and wait for it."""
        node = Node(self, "n1")
        self.nodes.append(node)
        node.start(["discovery.type=single-node", *settings])
        node.wait()
        return node

    def several(self, nodes: Sequence[Node]) -> None:
        """Start nodes that are to find each other, and wait for them."""
        names = ",".join(node.name for node in nodes)
        self.nodes += nodes
        for node in nodes:
            self.begin(node, names)
        seeds = "".join(f"{node.transport()}\n" for node in nodes)
        for node in nodes:
            (node.folder / "config" / "unicast_hosts.txt").write_text(seeds)
        for node in nodes:
            node.wait()

    def begin(self, node: Node, names: str = "") -> None:
        """Start a node of several; `names` are all of them if the cluster is new."""
        first = [f"cluster.initial_cluster_manager_nodes={names}"] if names else []
        node.start(["discovery.seed_providers=file", *first])

    def again(self, *nodes: Node) -> None:
        """Start nodes of several once more, which keep their data and get other ports."""
        for node in nodes:
            self.begin(node)
        seeds = "".join(f"{node.transport()}\n" for node in self.nodes if node.process is not None)
        for other in self.nodes:
            (other.folder / "config" / "unicast_hosts.txt").write_text(seeds)
        for node in nodes:
            node.wait()
