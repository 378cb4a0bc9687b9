"""A real OpenSearch for the tests that are marked `server`, and repositories that are published."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest
from conftest import Sandbox
from fleet.cluster import Cluster, Node, why_not

from memtool.fleet import opensearch
from memtool.fleet.opensearch import SearchServer

_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def node() -> Iterator[Node]:
    """One node for all tests of a process."""
    if reason := why_not():
        pytest.skip(reason)
    with Cluster() as cluster:
        yield cluster.one()


@pytest.fixture
def server(node: Node) -> SearchServer:
    """An index of its own on the node, as `memtool fleet init` makes it."""
    found = opensearch.server_at(f"{node.url}/test{next(_numbers)}", {})
    assert opensearch.prepare(found, shards=2, replicas=0, within=60)
    return found


@pytest.fixture
def remote(sandbox: Sandbox) -> Sandbox:
    """The repository acme/shop, of which `push` says that the remote has what is committed."""
    sandbox.git("remote", "add", "origin", "https://git.example.org/acme/shop.git")
    return sandbox


def push(sandbox: Sandbox) -> str:
    """Let the remote's default branch be what is checked out, and return its commit."""
    sandbox.git("update-ref", "refs/remotes/origin/main", "HEAD")
    return sandbox.git("rev-parse", "HEAD").strip()
