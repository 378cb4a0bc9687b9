"""Publishing to a real server: twice, late, killed, doubled, rewritten, and what must not leave."""

from __future__ import annotations

from typing import Any

import pytest
from conftest import Sandbox
from fleet.conftest import push

from memtool.fleet import publish
from memtool.fleet.opensearch import SearchServer

pytestmark = pytest.mark.server


def sent(sandbox: Sandbox, server: SearchServer) -> publish.Published:
    """Publish what the remote has."""
    context = sandbox.context()
    return publish.publish(context, server, publish.draft(context))


def documents(server: SearchServer) -> dict[str, dict[str, Any]]:
    """Return the memories in the index by id."""
    server.get("POST", f"/{server.index}/_refresh", within=60)
    body = {"size": 1_000, "query": {"exists": {"field": "repo"}}}
    found = server.get("POST", f"/{server.index}/_search", body, within=60)
    return {hit["_id"]: hit["_source"] for hit in found["hits"]["hits"]}


def test_it_is_published_once(remote: Sandbox, server: SearchServer) -> None:
    """The second run of one commit writes nothing."""
    remote.memory("dec-a", "Sessions live in Redis.\n")
    remote.memory("dec-b", "Queues live in Redis.\n")
    remote.commit()
    push(remote)
    first, second = sent(remote, server), sent(remote, server)
    assert (first.state, first.written, second.state, second.written) == (
        "published", 2, "unchanged", 0,
    )  # fmt: skip
    assert sorted(documents(server)) == ["acme/shop/dec-a", "acme/shop/dec-b"]
