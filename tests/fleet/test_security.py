"""A real server with the security plugin: what the printed roles allow, and what they do not."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from conftest import Sandbox
from fleet.conftest import push
from fleet_scene import Fleet
from opensearch_security import API, SecureCluster, SecureNode, why_not

from memtool.fleet import opensearch, publish
from memtool.fleet.backend import FleetQuery, FleetUnavailable
from memtool.fleet.opensearch import FleetAccessError, OpenSearch, SearchServer
from memtool.fleet.publish import PublishResult
from memtool.index.analyzer import TOKENIZER

pytestmark = pytest.mark.server

LIKE = f"memories-a-a{TOKENIZER}"
"""The index of another domain of trust, that is called `memories-a`."""
PASSWORD = "Plain-horse-7-battery"
ASKED = FleetQuery({"payment": 1.0, "retri": 1.0})
RETRY = "A failed payment of an invoice is retried three times, then the job is parked.\n"
PROMPT = "how is a failed payment of an invoice retried before the job is parked"


@pytest.fixture(scope="module")
def secure() -> Iterator[SecureNode]:
    """One node, without any rights granted yet."""
    if reason := why_not():
        pytest.skip(reason)
    with SecureCluster() as cluster:
        yield cluster.start_single()


class Door:
    """The indexes of a domain of trust, as its users see them: one user for each printed role."""

    def __init__(self, node: SecureNode, domain: str) -> None:
        self.node = node
        self.url = f"{node.url}/{domain}"
        self.index = opensearch.parse_server(self.url, {}).index
        self.prefix = domain
        self.printed: dict[str, Any] = {}

    def env(self, role: str, password: str = PASSWORD) -> dict[str, str]:
        """Return the environment of the user that has a role, or an empty one."""
        credentials = {
            "MEMTOOL_FLEET_USER": f"{self.prefix}-{role}",
            "MEMTOOL_FLEET_PASSWORD": password,
        }
        return {"MEMTOOL_FLEET_URL": self.url, "SSL_CERT_FILE": self.node.ca} | (
            credentials if role else {}
        )

    def server(self, role: str, **env: str) -> SearchServer:
        """Return the server as the user with a role asks it."""
        return opensearch.parse_server(self.url, env or self.env(role))

    def candidates(self, organisation: str) -> list[tuple[str, str]]:
        """Return repository and text of what a reader finds of an organisation."""
        for index in (self.index, f"{self.index}~*"):
            assert self.node.ask("POST", f"/{index}/_refresh")[0] == 200
        query = ASKED.replace(allow=(f"{organisation}/*",))
        candidates = OpenSearch(self.server("reader")).find_candidates(query, 60.0)
        return sorted(
            (candidate.repository, candidate.data.decode().rpartition("---\n")[2])
            for candidate in candidates
        )

    def init(self, project: Sandbox, scope: str = "") -> str:
        """Make an index as docs/fleet.md says, once its roles are given; return its name."""
        words = ("fleet", "init", "--replicas", "0", *(["--for", scope] if scope else []))
        shown = json.loads(project.run(*words, "--dry-run", "--json", **self.env("")).stdout)
        assert len(shown["roles"]) == 3 + bool(scope)
        self.give(shown["roles"])
        done = project.run(*words, **self.env("administrator"))
        assert done.returncode == 0, done.stderr
        index: str = shown["index"]
        assert f"{index} is made" in done.stdout
        return index

    def give(self, roles: dict[str, Any]) -> None:
        """Do as docs/fleet.md says: make the roles, and map to each the user of its name."""
        for name, role in roles.items():
            if (
                self.printed.setdefault(name, role) is not role
            ):  # it was printed before, and is there
                continue
            user = {"password": PASSWORD}
            for kind, body in (
                ("roles", role),
                ("internalusers", user),
                ("rolesmapping", {"users": [name], "backend_roles": [f"ci-{name}"]}),
            ):
                status, answer = self.node.ask("PUT", f"{API}/{kind}/{name}", body)
                assert status in (200, 201), answer


@pytest.fixture(scope="module")
def project(secure: SecureNode, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    """A repository on a machine that knows the authority of the node."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SSL_CERT_FILE", secure.ca)
        yield Fleet(tmp_path_factory.mktemp("init")).project


@pytest.fixture(scope="module")
def memories(secure: SecureNode, project: Sandbox) -> Door:
    """The index `memories`, made by memtool with its own roles, and a stranger who has none."""
    made = Door(secure, "memories")
    assert made.init(project) == made.index
    stranger = f"{API}/internalusers/{made.prefix}-stranger"
    assert secure.ask("PUT", stranger, {"password": PASSWORD})[0] == 201
    return made


def sent(sandbox: Sandbox, server: SearchServer) -> PublishResult:
    """Publish what the remote has."""
    context = sandbox.context()
    return publish.publish(context, server, publish.build_publication(context))


@pytest.fixture
def shop(fleet: Fleet) -> Sandbox:
    """The repository acme/shop, with two memories that its remote has."""
    made = fleet.repository("src/shop")
    made.git("remote", "add", "origin", "https://git.example.org/acme/shop.git")
    made.memory("dec-retry", RETRY)
    made.memory("dec-gone", "Sessions live in redis.\n")
    made.commit()
    push(made)
    return made


@pytest.fixture
def asker(fleet: Fleet) -> Sandbox:
    """A project of a user who asks, with a generous timeout."""
    fleet.project.memory("dec-own", "An invoice has blue buttons.\n")
    fleet.project.commit()
    for key, value in (("fleet.timeout_ms", "60000"), ("inject.fleet", "true")):
        assert fleet.project.run("--global", "config", key, value).returncode == 0
    return fleet.project


def test_a_publisher_publishes_and_a_reader_asks(
    memories: Door, shop: Sandbox, asker: Sandbox
) -> None:
    """All that the two are for, by memtool itself: first, again, newer with a sweep, late."""
    publisher = memories.env("publisher")
    done = shop.run("publish", **publisher)
    assert (done.returncode, "published acme/shop" in done.stdout) == (0, True), done.stderr
    assert "nothing is written" in shop.run("publish", **publisher).stdout
    context = shop.context()
    old = publish.build_publication(context)
    (shop.path / ".memory/decision/2026-02/dec-gone.md").unlink()
    shop.commit()
    push(shop)
    newer = sent(shop, memories.server("publisher"))
    assert (newer.state, newer.memories, newer.deleted) == ("published", 1, 1)
    late = publish.publish(context, memories.server("publisher"), old)
    assert (late.state, late.written) == ("late", 0)
    reader = memories.env("reader")
    answer = json.loads(asker.run("search", "--fleet", PROMPT, "--json", **reader).stdout)
    theirs = [result["repository"] for result in answer["results"] if result["trust"] == "fleet"]
    assert theirs == ["acme/shop"]
    block = asker.run("inject", "--prompt", PROMPT, **reader)
    assert "[acme/shop dec-" in block.stdout
    status = asker.run("fleet", "status", **reader)
    assert memories.url in status.stdout
    alike = asker.run("fleet", "similar", **reader)
    assert alike.returncode in (0, 1), alike.stderr
    assert not alike.stderr


EVERYBODY = ("reader", "publisher", "administrator", "stranger")
FORBIDDEN: dict[str, tuple[str, str, Any, Sequence[str]]] = {
    "read": ("POST", "/INDEX/_search", {}, ("administrator", "stranger")),
    "write": ("PUT", "/INDEX/_doc/x", {"repo": "evil/x"}, ("reader", "administrator", "stranger")),
    "delete": ("DELETE", "/INDEX/_doc/x", None, ("reader", "administrator", "stranger")),
    "refresh": ("POST", "/INDEX/_refresh", None, ("reader", "administrator", "stranger")),
    "make the index": ("PUT", "/INDEX", None, ("reader", "publisher", "stranger")),
    "put a template": (
        "PUT",
        "/_index_template/x",
        {"index_patterns": ["x*"]},
        ("reader", "publisher", "stranger"),
    ),
    "name the index": (
        "POST",
        "/_aliases",
        {"actions": [{"add": {"index": "INDEX", "alias": "stolen"}}]},
        ("reader", "publisher", "stranger"),
    ),
    "name another index": (
        "POST",
        "/_aliases",
        {"actions": [{"add": {"index": "private", "alias": "INDEX-x"}}]},
        EVERYBODY,
    ),
    "delete the index": ("DELETE", "/INDEX", None, EVERYBODY),
    "close the index": ("POST", "/INDEX/_close", None, EVERYBODY),
    "change the mapping": (
        "PUT",
        "/INDEX/_mapping",
        {"properties": {"x": {"type": "keyword"}}},
        EVERYBODY,
    ),
    "make another index": ("PUT", "/other", None, EVERYBODY),
    "read another index": ("POST", "/private/_search", {}, EVERYBODY),
    "read all indexes": ("POST", "/_all/_search", {}, EVERYBODY),
    "write into another index": ("PUT", "/private/_doc/2", {}, EVERYBODY),
    "read an index of a like name": ("POST", f"/{LIKE}/_search", {}, EVERYBODY),
    "write into an index of a like name": ("PUT", f"/{LIKE}/_doc/2", {}, EVERYBODY),
    "see the cluster": ("GET", "/_cluster/state", None, EVERYBODY),
    "see the nodes": ("GET", "/_nodes", None, EVERYBODY),
    "see the indexes": ("GET", "/_cat/indices", None, EVERYBODY),
    "see the roles": ("GET", f"{API}/roles", None, EVERYBODY),
}


@pytest.fixture(scope="module")
def private(memories: Door) -> Door:
    """The index next to a private one and that of another domain of trust."""
    for name in ("private", LIKE):
        assert memories.node.ask("PUT", f"/{name}/_doc/1?refresh=true", {})[0] == 201
    return memories


@pytest.mark.parametrize("what", FORBIDDEN)
def test_a_role_does_no_more_than_it_is_for(private: Door, what: str) -> None:
    """The server itself refuses everything else, whatever the client."""
    method, path, body, refused = FORBIDDEN[what]
    filled = json.loads(json.dumps(body).replace("INDEX", private.index))
    path = path.replace("INDEX", private.index)
    statuses = {
        role: private.server(role).send(method, path, filled, timeout_s=60)[0] for role in refused
    }
    assert statuses == dict.fromkeys(refused, 403)


def test_a_bulk_writes_no_other_index(private: Door) -> None:
    """A publisher's request may name any index in its lines: each is judged by itself."""
    lines = [{"index": {"_index": index, "_id": "x"}} for index in ("private", LIKE)]
    rows = [row for line in lines for row in (line, {"repo": "evil/x"})]
    answer = private.server("publisher").request("POST", "/_bulk", rows, timeout_s=60)
    assert [item["index"]["status"] for item in answer["items"]] == [403, 403]


WRONG = "does not accept the credentials: they are wrong or expired (status 401)"
NONE = "wants credentials, and none are set (status 401)"
MISSING = "accepts the credentials, which do not allow that: a role is missing (status 403)"


@pytest.mark.parametrize(
    ("role", "password", "reason"),
    [
        ("reader", "not the password", WRONG),
        ("nobody", PASSWORD, WRONG),
        ("", "", NONE),
        ("stranger", PASSWORD, MISSING),
    ],
)
def test_a_refusal_is_one_sentence(
    memories: Door, shop: Sandbox, asker: Sandbox, role: str, password: str, reason: str
) -> None:
    """Who is unknown and who may not are told apart; hooks say nothing, and no secret shows."""
    env = memories.env(role, password)
    init = asker.run("fleet", "init", **env)
    published = shop.run("publish", **env)
    search = asker.run("search", "--fleet", "invoice", **env)
    event = json.dumps({"session_id": "s1", "prompt": "which invoice has blue buttons?"})
    hook = asker.run("hook", "claude", "user-prompt-submit", stdin=event, **env)
    assert [done.returncode for done in (init, published, search, hook)] == [2, 2, 0, 0]
    for done in (init, published, search):
        assert f"{memories.url} {reason}" in done.stderr
    for done in (init, published):
        assert all(line.startswith("hint: ") for line in done.stderr.splitlines()[1:])
        assert "MEMTOOL_FLEET_USER and MEMTOOL_FLEET_PASSWORD" in done.stderr
    assert "dec-own" in hook.stdout
    assert (hook.stderr, "[fleet" in hook.stdout) == ("", False)
    shown = "".join(f"{done.stdout}{done.stderr}" for done in (init, published, search, hook))
    assert not any(secret in shown for secret in (PASSWORD, "not the password", "Basic"))


def test_a_reader_who_publishes_is_told_which_role_it_takes(memories: Door, shop: Sandbox) -> None:
    """One request is made, and nothing is written."""
    done = shop.run("publish", **memories.env("reader"))
    assert (done.returncode, MISSING in done.stderr, "publisher" in done.stderr) == (2, True, True)


@pytest.mark.parametrize(
    ("seconds", "reason"), [(600, ""), (-3_600, WRONG)], ids=["valid", "expired"]
)
def test_a_token_of_ci_is_a_key(memories: Door, seconds: int, reason: str) -> None:
    """A JSON web token says who asks, by the role that the server maps it to, until it expires."""
    token = memories.node.cluster.token("robot", [f"ci-{memories.prefix}-reader"], seconds)
    backend = OpenSearch(memories.server("", MEMTOOL_FLEET_KEY=token))
    if not reason:
        assert isinstance(backend.find_candidates(ASKED, 60.0), list)
        return
    with pytest.raises(FleetAccessError) as refused:
        backend.find_candidates(ASKED, 60.0)
    assert str(refused.value) == f"{memories.url} {reason}"
    assert token not in str(refused.value)


def test_an_api_key_is_refused_by_this_version(memories: Door) -> None:
    """Only newer servers than this one know such keys: it is told as any wrong credentials are."""
    backend = OpenSearch(memories.server("", MEMTOOL_FLEET_KEY="os_0123456789"))
    with pytest.raises(FleetAccessError, match="wrong or expired"):
        backend.find_candidates(ASKED, 60.0)


def test_a_server_that_nobody_vouches_for_is_told_nothing(
    memories: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its certificate is of an authority that this machine does not know."""
    monkeypatch.delenv("SSL_CERT_FILE")
    with pytest.raises(FleetUnavailable, match="does not prove who it is"):
        OpenSearch(memories.server("reader")).find_candidates(ASKED, 60.0)


@pytest.fixture(scope="module")
def trust(secure: SecureNode, project: Sandbox) -> Door:
    """An index where acme/billing, evil/x and all of the organisation org have their own."""
    made = Door(secure, "trust")
    for scope in ("", "acme/billing", "Evil/X", "org", "org/own"):
        made.init(project, scope)
    return made


def written(made: Sandbox, name: str, text: str) -> publish.Publication:
    """Return what a repository would publish that has one memory, and calls itself so."""
    made.git("remote", "add", "origin", f"https://git.example.org/{name}.git")
    made.memory("dec-retry", text)
    made.commit()
    push(made)
    return publish.build_publication(made.context())


def named(draft: publish.Publication, name: str) -> publish.Publication:
    """Return a draft that says it is of another repository."""
    documents = {id_: document | {"repo": name} for id_, document in draft.documents.items()}
    return draft.replace(repository=name, documents=documents)


def put(door: Door, role: str, index: str, draft: publish.Publication) -> int:
    """Write a draft into an index past memtool's protocol; return the status of its document."""
    ((id_, document),) = draft.documents.items()
    action = {"index": {"_id": f"{draft.repository}/{id_}", "routing": draft.repository}}
    path = f"/{door.index}{index}/_bulk"
    (item,) = door.server(role).request("POST", path, [action, document], timeout_s=60)["items"]
    status = item["index"]["status"]
    assert isinstance(status, int)
    return status


TRUE, FALSE = "A failed payment is retried three times.\n", "A payment is never retried.\n"


def test_only_its_publisher_speaks_for_a_repository(trust: Door, fleet: Fleet) -> None:
    """Other claims to its name are refused by the server, or invisible to readers."""
    honest = fleet.repository("src/billing")
    made = written(honest, "acme/billing", TRUE)
    done = publish.publish(honest.context(), trust.server("publisher~acme~billing"), made)
    assert (done.index, done.written) == (f"{trust.index}~acme~billing", 1)
    forged = written(fleet.repository("src/forged"), "acme/billing", FALSE)
    newer = forged.replace(gen=forged.gen + 1)
    for role in ("publisher", "publisher~evil~x"):
        with pytest.raises(FleetAccessError, match="status 403"):
            publish.publish(honest.context(), trust.server(role), newer)
        assert put(trust, role, "~acme~billing", forged) == 403
    assert put(trust, "publisher~evil~x", "", forged) == 403
    for name in ("acme/billing", "ACME/Billing"):
        assert put(trust, "publisher", "", named(forged, name)) == 201
        assert put(trust, "publisher~evil~x", "~evil~x", named(forged, name)) == 201
    assert trust.candidates("acme") == [("acme/billing", TRUE)]


def test_an_organisation_speaks_for_what_has_no_index(trust: Door, fleet: Fleet) -> None:
    """Its publisher writes all of its repositories but the one that has an own index."""
    box = fleet.repository("src/org")
    made = written(box, "org/other", TRUE)
    publisher = trust.server("publisher~org")
    done = publish.publish(box.context(), publisher, made)
    assert (done.index, done.written) == (f"{trust.index}~org", 1)
    with pytest.raises(FleetAccessError, match="status 403"):
        publish.publish(box.context(), publisher, named(made, "org/own"))
    for name in ("org/own", "acme/billing"):
        assert put(trust, "publisher~org", "~org", named(made, name)) == 201
    assert put(trust, "publisher", "", named(made, "org/any")) == 201
    assert trust.candidates("org") == [("org/other", TRUE)]


def test_who_has_no_own_index_is_published_as_before(trust: Door, fleet: Fleet) -> None:
    """In the index of all, and its later runs find it there."""
    box = fleet.repository("src/tools")
    made = written(box, "free/tools", TRUE)
    for state in ("published", "unchanged"):
        done = publish.publish(box.context(), trust.server("publisher"), made)
        assert (done.index, done.state) == (trust.index, state)
    assert trust.candidates("free") == [("free/tools", TRUE)]
