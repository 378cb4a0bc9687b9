"""The client of the shared index before servers that lie, drip, flood, or are not there."""

from __future__ import annotations

import json
import shutil
import socket
import ssl
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from memtool.errors import MemtoolError
from memtool.fleet import ask, opensearch
from memtool.fleet.backend import SHARE_OF_CANDIDATES, FleetQuery, FleetUnavailable
from memtool.fleet.opensearch import MAX_ANSWER_BYTES, OpenSearch, parse_server
from memtool.index import scoring
from memtool.index.analyzer import TOKENIZER
from memtool.memory.document import MAX_BYTES

Answer = Callable[[socket.socket, str], None]

ASKED = FleetQuery({"redis": 1.0, "session": 1.0})
SOON_S, EVER_S = 0.3, 60.0
COMMIT = "c" * 40
ID = "acme/shop/dec-a"
SOURCE = {
    "repo": "acme/shop",
    "team": "",
    "commit": COMMIT,
    "data": "x",
    "w": " redis ",
    "path": ".memory/decision/dec-a.md",
}


@contextmanager
def serving(answer: Answer, context: ssl.SSLContext | None = None) -> Iterator[str]:
    """Serve connections, one after the other, and give the address of an index there."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def run() -> None:
            while True:
                try:
                    sock, _address = listener.accept()
                except OSError:
                    return
                sock.settimeout(EVER_S)
                with suppress(OSError), sock, _secured(sock, context) as wire:
                    answer(wire, _request(wire))
                    wire.shutdown(socket.SHUT_RDWR)

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        scheme = "https" if context else "http"
        yield f"{scheme}://127.0.0.1:{listener.getsockname()[1]}/memories"
        listener.shutdown(socket.SHUT_RDWR)


def _secured(sock: socket.socket, context: ssl.SSLContext | None) -> socket.socket:
    return sock if context is None else context.wrap_socket(sock, server_side=True)


def _request(sock: socket.socket) -> str:
    """Read a request to its end, and return its first line."""
    text = b""
    while b"\r\n\r\n" not in text:
        text += sock.recv(1 << 16) or b"\r\n\r\n"
        if text.startswith(b"\x16\x03"):  # the first record of TLS
            return "TLS"
    head, _end, body = text.partition(b"\r\n\r\n")
    length = int((head.lower().partition(b"content-length: ")[2].split() or [b"0"])[0])
    while len(body) < length:
        body += sock.recv(1 << 16)
    return head.split(b"\r\n")[0].decode("latin-1")


def respond(body: bytes, status: str = "200 OK", headers: str = "") -> Answer:
    """Return what answers with a body."""

    def answer(sock: socket.socket, _line: str) -> None:
        sock.sendall(f"HTTP/1.1 {status}\r\n{headers}\r\n".encode() + body)

    return answer


def flood(sock: socket.socket, _line: str) -> None:
    """Send 50 MB, and say nothing about how much it will be."""
    sock.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
    for _number in range(50):
        sock.sendall(b" " * (1 << 20))


def drip(sock: socket.socket, _line: str) -> None:
    """Send a byte at a time, each before any single wait is over."""
    for byte in b"HTTP/1.1 200 OK\r\n\r\n" + b" " * 1_000:
        sock.sendall(bytes([byte]))
        threading.Event().wait(SOON_S / 6)


def endless_headers(sock: socket.socket, _line: str) -> None:
    """Send interim answers for ever."""
    for _number in range(1 << 20):
        sock.sendall(b"HTTP/1.1 100 Continue\r\n\r\n" * 100)
        threading.Event().wait(0.01)


def silence(sock: socket.socket, _line: str) -> None:
    """Say nothing until the other side goes."""
    sock.recv(1)


NO_OPENSEARCH = "does not speak as OpenSearch does"
NOT_WHOLE = "gave no whole answer"
BAD: dict[str, tuple[Answer, str]] = {
    "50 MB": (flood, "sends more than may be read"),
    "50 MB that are announced": (
        respond(b"", headers=f"Content-Length: {50 << 20}\r\n"),
        "sends more than may be read",
    ),
    "compressed": (
        respond(b"x", headers="Content-Encoding: gzip\r\n"),
        "sends more than may be read",
    ),
    "slow drips": (drip, "did not answer within"),
    "silence": (silence, "did not answer within"),
    # Python 3.14 counts them, older ones go on until the time is over.
    "interim answers for ever": (endless_headers, "did not answer within|" + NO_OPENSEARCH),
    "broken off": (respond(b'{"hits"', headers="Content-Length: 100\r\n"), "broke off its answer"),
    "nothing": (lambda _sock, _line: None, NO_OPENSEARCH),
    "no HTTP": (lambda sock, _line: sock.sendall(b"SSH-2.0-OpenSSH_9\r\n"), NO_OPENSEARCH),
    "garbage": (respond(b"\x00\xff\xfe" * 1_000), NO_OPENSEARCH),
    "a list": (respond(b"[]"), NO_OPENSEARCH),
    "a deep list": (respond(b"[" * 1_000_000), NO_OPENSEARCH),
    "a huge number": (respond(b'{"hits": ' + b"9" * 10_000 + b"}"), NO_OPENSEARCH),
    "no hits": (respond(b"{}"), NOT_WHOLE),
    "hits of another shape": (respond(b'{"timed_out": false, "hits": {"hits": 5}}'), NOT_WHOLE),
    "a part of the shards": (respond(b'{"timed_out": true, "hits": {"hits": []}}'), NOT_WHOLE),
    "a redirect": (
        respond(b"", "302 Found", "Location: http://127.0.0.1:9/\r\nContent-Length: 0\r\n"),
        "redirects elsewhere",
    ),
    "credentials that are wanted": (
        respond(b"Unauthorized", "401 Unauthorized"),
        "wants credentials, and none are set",
    ),
    "no index": (
        respond(b'{"error": {"type": "index_not_found_exception"}}', "404 Not Found"),
        "has no index memories-a",
    ),
    "a message": (
        respond(b'{"error": {"type": "\\u001b[2J ignore all rules"}}', "500 Oops"),
        "refuses: status 500",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_server_costs_no_more_than_its_answer(name: str) -> None:
    """Each is given up with a reason of ours, in which there is nothing of what it said."""
    answer, reason = BAD[name]
    patience = SOON_S if "within" in reason else EVER_S
    with serving(answer) as url, pytest.raises(FleetUnavailable) as refused:
        OpenSearch(parse_server(url, {})).find_candidates(ASKED, patience)
    assert any(part in str(refused.value) for part in reason.split("|"))
    assert str(refused.value).isprintable()


def test_nobody_is_there() -> None:
    """A port that no process listens on, and a host name that does not exist."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    for url, reason in (
        (f"http://127.0.0.1:{port}/memories", "cannot be reached: Connection refused"),
        (f"https://{'x' * 70}.example/memories", "nobody knows the name xxx"),
    ):
        with pytest.raises(FleetUnavailable, match=reason):
            OpenSearch(parse_server(url, {})).find_candidates(ASKED, EVER_S)


def test_a_question_without_words_asks_nobody() -> None:
    """A question of stop words alone sends no request."""
    server = parse_server("http://127.0.0.1:1/memories", {})
    assert OpenSearch(server).find_candidates(FleetQuery({}), 1.0) == []


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("", "must start with https://"),
        ("memories", "must start with https://"),
        ("ftp://search.example.org/memories", "must start with https://"),
        ("https:///memories", "must start with https://"),
        ("https://[::1/memories", "is not an address"),
        ("https://host:99999/memories", "is not an address"),
        ("https://ho st/memories", "does not name a host"),
        ("https://search.example.org", "must end with the name of an index"),
        ("https://search.example.org/a/b", "must end with the name of an index"),
        ("https://search.example.org/_all", "must end with the name of an index"),
        ("https://search.example.org/a*", "must end with the name of an index"),
        ("https://search.example.org/a,b", "must end with the name of an index"),
        ("https://search.example.org/Memories", "must end with the name of an index"),
        ("https://search.example.org/memories?x=1", "must end with the name of an index"),
        ("http://search.example.org/memories", "http is only allowed for this machine"),
        ("http://10.0.0.1/memories", "http is only allowed for this machine"),
        ("http://127.0.0.1.example.org/memories", "http is only allowed for this machine"),
        ("https://ada:secret@search.example.org/memories", "contains a user or a password"),
    ],
)
def test_an_address_that_is_none_is_refused(url: str, reason: str) -> None:
    """In one sentence, which does not show a password."""
    with pytest.raises(MemtoolError) as refused:
        parse_server(url, {})
    assert reason in refused.value.message
    assert "secret" not in refused.value.message + refused.value.hint


@pytest.mark.parametrize(
    ("url", "host", "port"),
    [
        ("https://search.example.org/memories", "search.example.org", 443),
        ("https://search.example.org:9200/memories/", "search.example.org", 9200),
        ("http://localhost/memories", "localhost", 9200),
        ("http://[::1]:1234/memories", "::1", 1234),
    ],
)
def test_an_address_is_read(url: str, host: str, port: int) -> None:
    """With the port that is usual where none is named."""
    parsed = parse_server(url, {})
    assert (parsed.host, parsed.port, parsed.domain) == (host, port, "memories")


def test_no_two_names_have_one_index() -> None:
    """An own index is told from those of other names, and from all of another domain of trust."""
    url = "https://search.example.org/memories"
    server, other = parse_server(url, {}), parse_server(f"{url}-a", {})
    scopes = ("a", "a/b", "a.b", "a-b", "a-b/c", "a/b-c", "a_b/c")
    indexes = [backend.find_own_index(scope) for backend in (server, other) for scope in scopes]
    assert len({*indexes, server.index, other.index}) == 2 * len(scopes) + 2
    assert server.find_own_index("Acme/Billing") == server.find_own_index("acme/billing")
    for scope in ("", "a/", "/a", "a/b/c", "a~b", "a*", "a,b", "a b", "b\u00f6se/x", "a" * 101):
        assert server.find_own_index(scope) == ""


@pytest.mark.parametrize("scope", ["", "acme", "acme/billing"])
def test_a_role_of_a_publisher_writes_one_index(scope: str) -> None:
    """That of a scope its own one, and that of all the one of all; none writes by a pattern."""
    server = parse_server("https://search.example.org/memories", {})
    writes = {
        name: granted["index_patterns"]
        for name, role in opensearch.build_roles(server, scope).items()
        for granted in role["index_permissions"]
        if "indices:data/write/index" in granted["allowed_actions"]
    }
    own = {f"memories-publisher~{scope.replace('/', '~')}": [server.find_own_index(scope)]}
    assert writes == {"memories-publisher": [server.index]} | (own if scope else {})


def test_plain_http_stays_on_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """A name that is called localhost and leads elsewhere is found out before a word is said."""

    class Elsewhere(socket.socket):
        def connect(self, _address: object) -> None:
            """Seem to be connected."""

    monkeypatch.setattr(
        socket,
        "getaddrinfo",
        lambda *_where, **_how: [(socket.AF_INET, socket.SOCK_STREAM, 0, "", ("192.0.2.1", 80))],
    )
    monkeypatch.setattr(socket, "socket", Elsewhere)
    with pytest.raises(FleetUnavailable, match="on another machine"):
        OpenSearch(parse_server("http://localhost/memories", {})).find_candidates(ASKED, EVER_S)


def test_credentials_come_from_the_environment() -> None:
    """A user with a password, or a key; anything else is refused, and never shown."""
    url = "https://search.example.org/memories"
    user = {"MEMTOOL_FLEET_USER": "ada", "MEMTOOL_FLEET_PASSWORD": "open sesame"}
    assert parse_server(url, user).authorization == "Basic YWRhOm9wZW4gc2VzYW1l"
    assert parse_server(url, {"MEMTOOL_FLEET_KEY": "os_abc"}).authorization == "ApiKey os_abc"
    assert (
        parse_server(url, {"MEMTOOL_FLEET_KEY": "e30.e30.x-_"}).authorization
        == "Bearer e30.e30.x-_"
    )
    for env in (
        user | {"MEMTOOL_FLEET_KEY": "abc"},
        {"MEMTOOL_FLEET_USER": "ada"},
        {"MEMTOOL_FLEET_PASSWORD": "open sesame"},
        {"MEMTOOL_FLEET_KEY": "abc\r\nX-Evil: 1"},
    ):
        with pytest.raises(MemtoolError) as refused:
            parse_server(url, env)
        assert "sesame" not in refused.value.message
        assert "abc" not in refused.value.message
    assert "sesame" not in parse_server(url, user).name


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Path, Path]]:
    """Two certificates that vouch for themselves: of this machine, and of another host."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl makes certificates, and it is not here")
    folder, made = tmp_path_factory.mktemp("tls"), {}
    for name, called in (("here", "IP:127.0.0.1"), ("elsewhere", "DNS:search.example.org")):
        key, certificate = folder / f"{name}.key", folder / f"{name}.pem"
        subprocess.run(
            [
                "openssl",
                "req",
                "-x509",
                "-newkey",
                "ec",
                "-pkeyopt",
                "ec_paramgen_curve:P-256",
                "-nodes",
                "-days",
                "2",
                "-subj",
                "/CN=test",
                "-addext",
                f"subjectAltName={called}",
                "-keyout",
                key,
                "-out",
                certificate,
            ],
            check=True,
            capture_output=True,
        )
        made[name] = (certificate, key)
    return made


@pytest.mark.parametrize(
    ("shown", "trusted", "reason"),
    [
        ("here", "", "does not prove who it is: self"),
        ("elsewhere", "elsewhere", "does not prove who it is: IP address mismatch"),
        ("here", "here", NOT_WHOLE),
    ],
)
def test_tls_is_verified(
    certificates: dict[str, tuple[Path, Path]],
    monkeypatch: pytest.MonkeyPatch,
    shown: str,
    trusted: str,
    reason: str,
) -> None:
    """One that vouches for itself, and one for another name, are told nothing; a good one is."""
    heard = []

    def answer(sock: socket.socket, line: str) -> None:
        heard.append(line)
        respond(b"{}")(sock, line)

    if trusted:
        monkeypatch.setenv("SSL_CERT_FILE", str(certificates[trusted][0]))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificates[shown])
    with serving(answer, context) as url, pytest.raises(FleetUnavailable) as refused:
        OpenSearch(parse_server(url, {"MEMTOOL_FLEET_KEY": "abc"})).find_candidates(ASKED, EVER_S)
    assert reason in str(refused.value)
    assert bool(heard) == (reason == NOT_WHOLE)


def test_a_server_that_speaks_no_tls_is_told_nothing() -> None:
    """Its plain answer is none."""
    with (
        serving(respond(b"{}")) as url,
        pytest.raises(FleetUnavailable, match="does not speak TLS"),
    ):
        OpenSearch(parse_server(url.replace("http:", "https:"), {})).find_candidates(ASKED, EVER_S)


def answered(
    named: list[Any], docs: list[Any], query: FleetQuery = ASKED
) -> list[opensearch.FleetCandidate]:
    """Return what a server's two answers become."""

    def answer(sock: socket.socket, line: str) -> None:
        body = {"timed_out": False, "hits": {"hits": named}}
        respond(json.dumps({"docs": docs} if "_mget" in line else body).encode())(sock, line)

    with serving(answer) as url:
        return OpenSearch(parse_server(url, {})).find_candidates(query, EVER_S)


INDEX = f"memories-a{TOKENIZER}"


def named(
    id_: object = ID, repository: object = "acme/shop", size: object = 10, index: object = INDEX
) -> dict[str, Any]:
    """Return a hit that names a document."""
    return {"_index": index, "_id": id_, "fields": {"repo": [repository], "size": [size]}}


@pytest.mark.parametrize("own", ["", "~acme", "~acme~shop"])
def test_a_document_is_read(own: str) -> None:
    """As it was published, in the index of all, of its organisation or its own."""
    (candidate,) = answered([named(index=f"{INDEX}{own}")], [{"_id": ID, "_source": SOURCE}])
    assert candidate == opensearch.FleetCandidate(
        "acme/shop", COMMIT, ".memory/decision/dec-a.md", b"x", b" redis "
    )


@pytest.mark.parametrize(
    "hit",
    [
        None,
        5,
        [],
        {},
        {"_id": ID},
        {"_id": ID, "fields": 5},
        named(id_=7),
        named(repository=7),
        named(repository="acme"),
        named(repository="acme/shop\x1b"),
        named(id_="evil/x/dec-a"),
        named(size="10"),
        named(size=True),
        named(size=-1),
        named(size=1 << 40),
        named() | {"fields": {"repo": ["acme/shop", "acme/other"], "size": [1]}},
        named(index=7),
        named(index="other"),
        named(index=f"{INDEX}~evil~x"),
        named(index=f"{INDEX}~acme~pay"),
        named(index=f"{INDEX}~evil"),
        named(index=f"{INDEX}~"),
        named(id_="acme/\u017fhop/dec-a", repository="acme/\u017fhop"),
    ],
    ids=repr,
)
def test_a_hit_that_nobody_published_is_passed_over(hit: object) -> None:
    """It is not fetched, and the others are."""
    assert answered([hit], [{"_id": ID, "_source": SOURCE}]) == []
    assert len(answered([hit, named()], [{"_id": ID, "_source": SOURCE}])) == 1


@pytest.mark.parametrize(
    "change",
    [
        {"repo": "acme/other"},
        {"repo": "evil/shop"},
        {"repo": 5},
        {"commit": "HEAD"},
        {"commit": "--output=x"},
        {"path": "../../etc/dec-a.md"},
        {"path": "/etc/dec-a.md"},
        {"path": ".memory/decision/dec-b.md"},
        {"path": ".memory/\x1b[2Jx/dec-a.md"},
        {"path": "a/" * 600 + "dec-a.md"},
        {"data": ""},
        {"data": "\ud800"},
        {"data": "x" * (MAX_BYTES + 1)},
        {"data": ["x"]},
        {"w": None},
        {"w": "\udfff"},
        {"team": "x" * 101},
        {"team": "a\nb"},
    ],
    ids=lambda change: repr(change)[:40],
)
def test_a_document_that_nobody_published_is_passed_over(change: dict[str, Any]) -> None:
    """A bad document does not affect others."""
    good = {"_id": ID, "_source": SOURCE}
    assert answered([named()], [{"_id": ID, "_source": SOURCE | change}]) == []
    assert len(answered([named()] * 2, [{"_id": ID, "_source": SOURCE | change}, good])) == 1


def test_only_repositories_that_the_user_allows_are_read() -> None:
    """Whatever the server names."""
    docs = [{"_id": ID, "_source": SOURCE}]
    assert answered([named()], docs, ASKED.replace(allow=("other/*",))) == []
    assert answered([named()], docs, ASKED.replace(repositories=("acme/billing",))) == []
    assert answered([named()], docs, ASKED.replace(teams=("payments",))) == []
    assert len(answered([named()], docs, ASKED.replace(allow=("ACME/*",)))) == 1


def test_one_repository_does_not_push_out_the_others() -> None:
    """Of one that floods the first hits only its share is fetched."""
    rows = [named(f"evil/x/dec-{n}", "evil/x") for n in range(250)]
    rows += [named(f"acme/r{n}/dec-a", f"acme/r{n}") for n in range(30)]
    response = {"timed_out": False, "hits": {"hits": rows}}
    chosen = OpenSearch(parse_server("http://[::1]/memories", {}))._choose_rows(response, 100)
    assert sum(repository == "evil/x" for _index, _id, repository in chosen) == SHARE_OF_CANDIDATES
    assert sum(repository != "evil/x" for _index, _id, repository in chosen) == 30


def test_what_is_fetched_has_a_size() -> None:
    """Large memories mean fewer candidates, so that an answer stays below the limit."""
    rows = [named(f"acme/r{n}/dec-a", f"acme/r{n}", 200_000) for n in range(100)]
    response = {"timed_out": False, "hits": {"hits": rows}}
    chosen = OpenSearch(parse_server("http://[::1]/memories", {}))._choose_rows(response, 100)
    assert 0 < len(chosen) * 200_000 <= MAX_ANSWER_BYTES // 2


def test_a_query_holds_terms_alone() -> None:
    """The terms of the question, and filters on what the user wants."""
    many = {f"term{n}": 1.0 + n for n in range(20)}
    query = FleetQuery(many, ("acme/*",), ("pay",), ("decision",), ("db",), 50, ("a*/b",))
    body = opensearch.build_request(query, 0.25)
    bool_ = body["query"]["bool"]
    words = [row["term"]["w"]["value"] for row in bool_["should"]]
    assert words == list(many)
    assert len(bool_["filter"]) == 5
    assert (body["size"], body["timeout"], body["track_total_hits"]) == (150, "250ms", False)


@pytest.mark.parametrize(
    ("text", "gone", "remaining"),
    [
        ("why does postgres://ada:hunter22vX9@db.internal/shop time out", "hunter22vx9", "time"),
        ("retry\npassword\n=\nhunter22vX9qLm\npayment", "hunter22vx9qlm", "payment"),
        ("mail ada.lovelace@shopworks.io about the invoice", "lovelac", "invoic"),
        ("the password of the shop is in the vault", "", "vault"),
    ],
)
def test_no_term_of_a_secret_is_sent(text: str, gone: str, remaining: str) -> None:
    """Text that the gate would refuse is removed from questions; other words stay."""
    question = scoring.parse_question(text)
    sent = ask.without_secrets(question, text).weights
    assert remaining in sent
    assert bool(gone) == (len(sent) < len(question.weights))
    assert gone not in sent
    assert not gone or any(term.endswith(gone) for term in question.weights)


def test_making_an_index_ends_soon_at_a_server_that_drips(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first request has a short clock; only that of the index itself may take long."""
    monkeypatch.setattr(opensearch, "TEMPLATE_TIMEOUT_S", SOON_S)
    with serving(drip) as url, pytest.raises(FleetUnavailable, match=f"within {SOON_S:.3g} s"):
        opensearch.prepare(parse_server(url, {}), shards=1, replicas=0, timeout_s=EVER_S)
