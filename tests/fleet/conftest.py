"""Fixtures of the fleet: a few repositories, or a real OpenSearch (marked `server`)."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import Sandbox
from fleet_scene import Fleet
from opensearch_cluster import Cluster, Node, why_not

from memtool.fleet import opensearch
from memtool.fleet.opensearch import SearchServer

_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def node() -> Iterator[Node]:
    """One node for all tests of a process."""
    if reason := why_not():
        pytest.skip(reason)
    with Cluster() as cluster:
        yield cluster.start_single()


@pytest.fixture
def server(node: Node) -> SearchServer:
    """An index of its own on the node, as `memtool fleet init` makes it."""
    prepared = opensearch.parse_server(f"{node.url}/test{next(_numbers)}", {})
    assert opensearch.prepare(prepared, shards=2, replicas=0, timeout_s=60)
    return prepared


@pytest.fixture
def remote(sandbox: Sandbox) -> Sandbox:
    """The repository acme/shop, of which `push` says that the remote has what is committed."""
    sandbox.git("remote", "add", "origin", "https://git.example.org/acme/shop.git")
    return sandbox


def push(sandbox: Sandbox) -> str:
    """Let the remote's default branch be what is checked out, and return its commit."""
    sandbox.git("update-ref", "refs/remotes/origin/main", "HEAD")
    return sandbox.git("rev-parse", "HEAD").strip()


@pytest.fixture
def fleet(tmp_path: Path) -> Fleet:
    """An empty fleet."""
    return Fleet(tmp_path)


@pytest.fixture(scope="module")
def acme(tmp_path_factory: pytest.TempPathFactory) -> Fleet:
    """Three repositories that were synced, for tests that only ask."""
    made = Fleet(tmp_path_factory.mktemp("acme"))
    made.project.memory("dec-own", "We keep sessions in memory.\n", tags=("sessions",))
    made.project.memory("sem-own", "Deploys go out on Tuesdays.\n", type="semantic")
    made.project.commit()
    shop = made.near(
        "acme/shop",
        dec_redis="We keep sessions in redis, since postgres was too slow for sessions.\n",
        dec_queue="Jobs go through celery; redis is its broker.\n",
    )
    shop.memory("sem-login", "Sessions end after a day.\n", type="semantic", tags=("auth",))
    shop.memory("dec-old", "Sessions live in cookies.\n")
    shop.memory("dec-new", "Sessions no longer live in cookies.\n", supersedes=("dec-old",))
    shop.memory("dec-secret", "The sessions of the board.\n", privacy=("confidential",))
    shop.memory("sta-past", "Sessions are being moved.\n", type="state", valid_through="2026-02-25")
    shop.write(".memory/config.toml", '[fleet]\nteam = "web"\n')
    shop.commit()
    made.near("acme/pay", dec_retry="A payment is tried again three times, then parked.\n")
    made.far("other/billing", dec_ledger="The ledger keeps sessions of payments in postgres.\n")
    made.set("SRC/acme/*", made.url("other/billing"))
    assert not [row.problem for row in made.sync().state.repositories if row.problem]
    return made
