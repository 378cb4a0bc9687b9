"""The shared index on OpenSearch: where it is, how it is asked, what its documents hold.

HTTP by the standard library, since a cold search pays for every import. Everything that a server
says is untrusted: an answer has a size, a shape and one clock over all of it, redirects are not
followed, and a document that is not what `publish` writes is passed over. What it may cost is an
answer from the project's own memories; never a wrong one, and no hook that hangs.

The index is named by the end of `fleet.url` and the analyzer's version, so that terms of two
versions never meet. It holds memories, one document each, and for each repository a manifest, which
says up to which change of its memories it was published.

A server keeps no writer of an index from writing any document of it. So a repository or an
organisation may have an index of its own, which only its publisher may write. Questions go to a
view, an alias with a filter for each index: of an own index those documents are seen that are of
its repositories, and of every other one those that are not. Who writes cannot change it.
"""

from __future__ import annotations

import json
import os
import re
import socket
import ssl
from base64 import b64encode
from functools import cache
from http.client import HTTPConnection, HTTPException, HTTPResponse
from io import BufferedReader, RawIOBase
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

from memtool.errors import MemtoolError, reason_of
from memtool.fleet.backend import FleetCandidate, FleetUnavailable, share
from memtool.fleet.repositories import MOST_NAME
from memtool.index.analyzer import TOKENIZER
from memtool.index.scoring import K1, B
from memtool.memory.document import MAX_BYTES
from memtool.memory.schema import is_inside
from memtool.store.deadline import Deadline
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from memtool.fleet.backend import FleetQuery

MOST_ANSWER = 8 << 20
"""Bytes of an answer; a longer one is not read."""
MOST_TEXT = 3 * MAX_BYTES
"""Bytes of a memory as terms: names stand there whole, by their parts and by pairs of them."""
MOST_PATH = 1_000
"""Characters of a path."""
MOST_FETCHED = MOST_ANSWER // 2
"""Bytes of memories that are fetched for one question, by the sizes that they claim."""
LOOKED_AT = 3
"""So many times as many documents are named as are wanted: where one repository has more than its
share among them, others take their places."""
PORT = 9200
NO_OPENSEARCH = "does not speak as OpenSearch does"
REFUSED = (401, 403)
SHARDS = 2
MOST_INDEX = 255
"""Characters that the name of an index may have."""
VARIABLES = ("MEMTOOL_FLEET_USER", "MEMTOOL_FLEET_PASSWORD", "MEMTOOL_FLEET_KEY")

_HOST = re.compile(r"[0-9A-Za-z_.:%-]{1,253}")
_DOMAIN = re.compile(r"[a-z0-9][a-z0-9_-]{0,99}")
_NAME = re.compile(r"[^\s/*?,:\\]{1,100}/[^\s/*?,:\\]{1,100}")
_SCOPE = re.compile(r"[0-9A-Za-z._-]{1,100}(?:/[0-9A-Za-z._-]{1,100})?")
_COMMIT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_REASON = re.compile(r"[a-z_]{1,60}")
_TOKEN = re.compile(r"[\w-]+\.[\w-]+\.[\w-]+", re.ASCII)
"""A JSON web token: three parts, of which no key of OpenSearch's own has more than one."""


class FleetRefused(FleetUnavailable):
    """The server does not let in who asks, or not to this: asking again does not help."""


class SearchServer(Value):
    """A server and the index on it. `domain` is what the index is named by: a domain of trust."""

    host: str
    port: int
    domain: str
    is_tls: bool
    authorization: str = ""

    def __repr__(self) -> str:
        """Return its name: credentials are in no log."""
        return f"SearchServer({self.name!r})"

    @property
    def index(self) -> str:
        """The index of this version of the analyzer."""
        return f"{self.domain}-a{TOKENIZER}"

    @property
    def view(self) -> str:
        """The alias that is asked: all indexes of this version, each as its filter shows it."""
        return f"{self.domain}-all{TOKENIZER}"

    def own_index(self, scope: str) -> str:
        """Return the index of one repository, `org/name`, or of all of an `org`.

        Empty for a name that no index can have; names that differ in case alone have one index.
        """
        name = f"{self.index}~{_label(scope)}"
        return name if _SCOPE.fullmatch(scope) and len(name) <= MOST_INDEX else ""

    def indexes_of(self, repository: str) -> list[str]:
        """Return where a repository may be: in its own index, its organisation's, that of all."""
        own = (self.own_index(scope) for scope in (repository, repository.partition("/")[0]))
        return [*filter(None, own), self.index]

    @property
    def name(self) -> str:
        """What people call it: the address without what is secret."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'https' if self.is_tls else 'http'}://{host}:{self.port}/{self.domain}"

    def ask(
        self, method: str, path: str, body: object = None, *, within: float
    ) -> tuple[int, dict[str, Any]]:
        """Send a request and return the status and the JSON object of the answer.

        `body` is sent as JSON, a list as one line for each of its rows. `within` are seconds for
        all of it, but for the look-up of the name, which the system bounds.

        Raises:
            FleetUnavailable: there is no answer within that time, or none that may be read.
        """
        deadline = Deadline(within)
        data, kind = b"", "application/json"
        if isinstance(body, list):
            data = b"".join(json.dumps(row).encode() + b"\n" for row in body)
            kind = "application/x-ndjson"
        elif body is not None:
            data = json.dumps(body).encode()
        headers = {"Content-Type": kind, "Accept": "application/json", "Connection": "close"}
        if self.authorization:
            headers["Authorization"] = self.authorization
        connection = _Connection(self, deadline)
        try:
            connection.request(method, path, data or None, headers)
            answer = connection.getresponse()
            text = self._read(answer)
            # The security plugin refuses in plain words, and so do proxies.
            found = {} if answer.status in REFUSED else json.loads(text or b"{}")
        except (OSError, HTTPException, ValueError, RecursionError) as error:
            raise FleetUnavailable(self._failure(error, within)) from None
        finally:
            connection.end()
        if not isinstance(found, dict):
            raise FleetUnavailable(f"{self.name} {NO_OPENSEARCH}")
        return answer.status, found

    def _read(self, answer: HTTPResponse) -> bytes:
        """Return the body of an answer, if it may be read. Raises FleetUnavailable."""
        if 300 <= answer.status < 400:
            raise FleetUnavailable(f"{self.name} redirects elsewhere, which is not followed")
        is_long = (answer.length or 0) > MOST_ANSWER or answer.getheader("Content-Encoding")
        text = b"" if is_long else answer.read(MOST_ANSWER + 1)
        if is_long or len(text) > MOST_ANSWER:
            raise FleetUnavailable(f"{self.name} sends more than may be read")
        if answer.length:
            raise FleetUnavailable(f"{self.name} broke off its answer")
        return text

    def _failure(self, error: Exception, within: float) -> str:
        """Return in words of ours why there was no answer."""
        if isinstance(error, TimeoutError):
            return f"{self.name} did not answer within {within:.3g} s"
        if isinstance(error, ssl.SSLCertVerificationError):
            return f"{self.name} does not prove who it is: {error.verify_message}"
        if isinstance(error, ssl.SSLError):
            return f"{self.name} does not speak TLS"
        if isinstance(error, socket.gaierror):
            return f"nobody knows the name {self.host}"
        if isinstance(error, OSError) and error.strerror:
            return f"{self.name} cannot be reached: {reason_of(error)}"
        return f"{self.name} {NO_OPENSEARCH}"

    def get(self, method: str, path: str, body: object = None, *, within: float) -> dict[str, Any]:
        """Return the answer to a request that must succeed. Raises FleetUnavailable."""
        status, found = self.ask(method, path, body, within=within)
        if status not in (200, 201):
            raise self.refusal(status, found)
        return found

    def refusal(self, status: int, found: Mapping[str, Any]) -> FleetUnavailable:
        """Say why a request was refused, in words of ours and the server's name for it alone."""
        if status in REFUSED:
            why = "does not accept the credentials: they are wrong or expired"
            if status == 403:
                why = "accepts the credentials, which do not allow that: a role is missing"
            if not self.authorization:
                why = "wants credentials, and none are set"
            return FleetRefused(f"{self.name} {why} (status {status})")
        named = part(found, "error", "type")
        if named == "index_not_found_exception":
            return FleetUnavailable(f"{self.name} has no index {self.index}")
        known = isinstance(named, str) and _REASON.fullmatch(named)
        return FleetUnavailable(f"{self.name} refuses: {named if known else 'status'} {status}")


def _label(scope: str) -> str:
    """Return how a repository or an organisation is called in names of indexes and roles."""
    return scope.lower().replace("/", "~")


def server_at(url: str, env: Mapping[str, str]) -> SearchServer:
    """Read the address of the shared index, and the credentials of the environment.

    Raises:
        MemtoolError: it is no such address, or its text holds credentials.
    """

    def refusal(what: str, hint: str = "https://search.example.org:9200/memories") -> MemtoolError:
        return MemtoolError(f"fleet.url {what}", hint=f"such as {hint}", code="config")

    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        raise refusal("is no address") from None
    if "@" in parts.netloc:
        raise MemtoolError(
            "fleet.url holds a user or a password, which belong into the environment",
            hint="set MEMTOOL_FLEET_USER and MEMTOOL_FLEET_PASSWORD, or MEMTOOL_FLEET_KEY",
            code="config",
        )
    if parts.scheme not in ("https", "http") or not host or not url.isascii():
        raise refusal("must begin with https:// and a host")
    if not _HOST.fullmatch(host):
        raise refusal("names no host")
    domain = parts.path.strip("/")
    if not _DOMAIN.fullmatch(domain) or parts.query or parts.fragment:
        raise refusal("must end with the name of an index, in small letters, and nothing behind it")
    if parts.scheme == "http" and not _is_loopback(host):
        raise refusal("goes over the network in the clear: http is for this machine alone")
    port = port or (443 if parts.scheme == "https" else PORT)
    return SearchServer(host, port, domain, parts.scheme == "https", _authorization(env))


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"  # what it leads to is looked at again, once it is connected


def _authorization(env: Mapping[str, str]) -> str:
    user, password, key = (env.get(name, "") for name in VARIABLES)
    if key and user:
        raise MemtoolError(
            "MEMTOOL_FLEET_KEY and MEMTOOL_FLEET_USER are two ways to log in",
            hint="unset one of them",
            code="config",
        )
    if bool(user) != bool(password) or ":" in user:
        raise MemtoolError(
            "MEMTOOL_FLEET_USER and MEMTOOL_FLEET_PASSWORD belong together, the user without :",
            hint="set both, or neither",
            code="config",
        )
    if key and not (key.isascii() and key.isprintable() and " " not in key):
        raise MemtoolError(
            "MEMTOOL_FLEET_KEY is no key: it holds what no header may",
            hint="copy it again",
            code="config",
        )
    if key:
        return f"{'Bearer' if _TOKEN.fullmatch(key) else 'ApiKey'} {key}"
    return "Basic " + b64encode(f"{user}:{password}".encode()).decode() if user else ""


class _Timed(RawIOBase):
    """What comes from a socket until a moment, however slowly it comes."""

    def __init__(self, sock: socket.socket, deadline: Deadline) -> None:
        self._sock = sock
        self._deadline = deadline

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        self._sock.settimeout(self._deadline.timeout_s())
        return self._sock.recv_into(buffer)


class _Wire:
    """The part of a socket that `http.client` uses, under one clock."""

    def __init__(self, sock: socket.socket, deadline: Deadline) -> None:
        self._sock = sock
        self._deadline = deadline

    def sendall(self, data: bytes) -> None:
        """Send all of some bytes."""
        view = memoryview(data)
        while view:
            self._sock.settimeout(self._deadline.timeout_s())
            view = view[self._sock.send(view) :]

    def makefile(self, *_mode: object) -> BufferedReader:
        """Return what comes back."""
        return BufferedReader(_Timed(self._sock, self._deadline))

    def close(self) -> None:
        """Do nothing: `http.client` is done with a connection before the answer is read."""


@cache
def _trust(*_places: str | None) -> ssl.SSLContext:
    """Return whom OpenSSL trusts by these variables; to read all authorities takes 20 ms."""
    context = ssl.create_default_context()
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context


class _Connection(HTTPConnection):
    """A connection whose every step ends at the same moment."""

    def __init__(self, server: SearchServer, deadline: Deadline) -> None:
        super().__init__(server.host, server.port)
        self._server = server
        self._deadline = deadline
        self._socket: socket.socket | None = None

    def end(self) -> None:
        """Close the socket, wherever the request got to."""
        if self._socket is not None:
            self._socket.close()

    def connect(self) -> None:
        """Connect to the first address of the name that takes it, and prove who is there."""
        server = self._server
        try:
            found = socket.getaddrinfo(server.host, server.port, type=socket.SOCK_STREAM)
        except UnicodeError:  # a part of the name is empty, or too long
            raise socket.gaierror from None
        while found:
            family, kind, protocol, _name, address = found.pop(0)
            sock = socket.socket(family, kind, protocol)
            try:
                # A host that is silent must not use up the time of those behind it.
                sock.settimeout(self._deadline.timeout_s() / (len(found) + 1))
                sock.connect(address)
                if not server.is_tls and not ip_address(str(address[0])).is_loopback:
                    raise OSError(0, "it is on another machine, and http is for this one alone")
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                if server.is_tls:
                    context = _trust(*map(os.environ.get, ("SSL_CERT_FILE", "SSL_CERT_DIR")))
                    sock.settimeout(self._deadline.timeout_s())
                    sock = context.wrap_socket(sock, server_hostname=server.host)
                break
            except ssl.SSLError:
                sock.close()
                raise
            except OSError:
                sock.close()
                if not found:
                    raise
        self._socket, self.sock = sock, _Wire(sock, self._deadline)


TEXT_FIELD = "w"
MAPPING: dict[str, Any] = {
    "dynamic": "strict",
    "properties": {
        TEXT_FIELD: {
            "type": "text",
            "analyzer": "whitespace",
            "similarity": "memtool",
            "index_options": "freqs",
        },
        "repo": {
            "type": "keyword",
            "fields": {
                "lower": {"type": "keyword", "normalizer": "lowercase", "doc_values": False}
            },
        },
        **{name: {"type": "keyword"} for name in ("id", "team", "type", "tags", "of")},
        "gen": {"type": "long"},
        "size": {"type": "integer"},
        **{
            name: {"type": "keyword", "index": False, "doc_values": False}
            for name in ("commit", "path", "data", "tree", "version")
        },
        "count": {"type": "integer", "index": False},
    },
}
"""The fields of a document. A memory has `repo`; a manifest has `of`, `gen`, `commit`, `tree`,
`version` of memtool, and `count` of memories, and so is in no answer to a question.

`w` is the text as terms, as `scoring.searchable` writes it, so that the server's analyzer only
parts it at spaces; `gen` is the version of the document; `size` its bytes.
"""


def template(server: SearchServer, shards: int, replicas: int) -> dict[str, Any]:
    """Return the template of the index and of own ones, which gives them mapping and ranking.

    `memories-a*` would be true of the index of `memories-archive`; and no domain holds a tilde.
    """
    return {
        "index_patterns": _patterns(server),
        "template": {
            "settings": {
                "number_of_shards": shards,
                "number_of_replicas": replicas,
                "similarity": {"memtool": {"type": "BM25", "k1": K1, "b": B}},
            },
            "mappings": MAPPING,
        },
        "_meta": {"made by": "memtool fleet init"},
    }


def _patterns(server: SearchServer) -> list[str]:
    return [server.index, f"{server.index}~*"]


TEMPLATE_S = 5.0
"""Seconds for the first request of `prepare`, which asks little: a server that drips ends here."""


def prepare(
    server: SearchServer, shards: int, replicas: int, within: float, scope: str = ""
) -> bool:
    """Make the template, the index, the own one of a scope, and the view of all.

    Return whether the index, or the own one, is new. One that is there stays as it is: its number
    of shards is that of the day it was made.

    Raises:
        FleetUnavailable: the server refuses, or does not answer.
    """
    made = template(server, shards, replicas)
    first = min(within, TEMPLATE_S)
    server.get("PUT", f"/_index_template/memtool-{server.domain}", made, within=first)
    is_new = _make(server, server.index, None, within)
    if scope:
        one_shard = {"settings": {"number_of_shards": 1}}
        is_new = _make(server, server.own_index(scope), one_shard, within)
    found = server.get("GET", f"/{','.join(_patterns(server))}/_alias", within=within)
    server.get("POST", "/_aliases", {"actions": _showing(server, found)}, within=within)
    return is_new


def _showing(server: SearchServer, indexes: Iterable[str]) -> list[dict[str, Any]]:
    """Return the actions that make the view of some indexes.

    A document is seen in the narrowest index that is its repository's, and in no other.
    """
    scopes = {name: name[len(server.index) + 1 :].replace("~", "/") for name in sorted(indexes)}
    actions = []
    for name, scope in scopes.items():
        others = [one for one in scopes.values() if one and one != scope]
        within = [one for one in others if one.startswith(f"{scope}/")] if scope else others
        seen = {"filter": _claims([scope] if scope else []), "must_not": _claims(within)}
        actions.append({"add": {"index": name, "alias": server.view, "filter": {"bool": seen}}})
    return actions


def _claims(scopes: Sequence[str]) -> list[dict[str, Any]]:
    """Return filters for the documents that name one of some repositories and organisations.

    Names in small letters are compared, which a list of terms does in a third of the time that
    looking at either case takes.
    """
    names = [one for one in scopes if "/" in one]
    whole = [{"prefix": {"repo.lower": f"{one}/"}} for one in scopes if "/" not in one]
    return [*([{"terms": {"repo.lower": names}}] if names else []), *whole]


def _make(server: SearchServer, index: str, body: object, within: float) -> bool:
    status, found = server.ask("PUT", f"/{index}", body, within=within)
    if status == 400 and part(found, "error", "type") == "resource_already_exists_exception":
        return False
    if status != 200:
        raise server.refusal(status, found)
    return True


def roles(server: SearchServer, scope: str = "") -> dict[str, Any]:
    """Return the roles of the security plugin that asking and publishing need, in its own form.

    No role binds the publishers of an index to their own repositories: documents may be hidden from
    readers, never kept from writers. That of a scope may write its own index alone, and no other
    may. Each publisher sees which repositories have an index of their own.
    """
    everywhere = _patterns(server)
    reading = ["indices:data/read/search", "indices:data/read/mget*"]
    writing = [
        "indices:data/read/search",
        "indices:data/write/bulk*",
        "indices:data/write/index",
        "indices:data/write/delete",
        "indices:admin/refresh*",
    ]
    seeing = (everywhere, ["indices:data/read/get"])
    making = ["indices:admin/create", "indices:admin/aliases*"]
    return {
        f"{server.domain}-{name}": {
            "cluster_permissions": [cluster],
            "index_permissions": [
                {"index_patterns": patterns, "allowed_actions": actions}
                for patterns, actions in granted
            ],
        }
        for name, cluster, *granted in (
            ("reader", "indices:data/read/mget", (everywhere, reading)),
            ("publisher", "indices:data/write/bulk", ([server.index], writing), seeing),
            ("administrator", "indices:admin/index_template/put", (everywhere, making)),
            *(
                [
                    (
                        f"publisher~{_label(scope)}",
                        "indices:data/write/bulk",
                        ([server.own_index(scope)], writing),
                        seeing,
                    )
                ]
                if scope
                else ()
            ),
        )
    }


def document_id(repository: str, id_: str) -> str:
    """Return the name of the document of a memory."""
    return f"{repository}/{id_}"


def is_repository(name: str) -> bool:
    """Tell whether a text is a repository's name, `org/name`, that the index can hold.

    No forge has others than of ASCII, and letters that look like those of ASCII are none of them.
    """
    return bool(_NAME.fullmatch(name)) and name.isascii() and name.isprintable()


def is_commit(text: str) -> bool:
    """Tell whether a text is the full id of a commit."""
    return bool(_COMMIT.fullmatch(text))


def part(value: Any, *keys: str) -> Any:
    """Return what lies deep in objects of an answer, None where there is no such thing."""
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def query(asked: FleetQuery, within: float) -> dict[str, Any]:
    """Return the request for the names of documents: nothing of the question but terms is in it.

    Stop words are not asked for and nothing is counted, which makes it a third as much work.
    """
    words = list(asked.weights.items())
    filters = [
        _any(field, globs)
        for field, globs in (
            ("repo", asked.allow),
            ("repo", asked.repositories),
            ("team", asked.teams),
            ("tags", asked.tags),
        )
        if globs
    ]
    filters += [{"terms": {"type": list(asked.types)}}] if asked.types else []
    return {
        "query": {
            "bool": {
                "should": [
                    {"term": {TEXT_FIELD: {"value": word, "boost": weight}}}
                    for word, weight in words
                ],
                "minimum_should_match": 1,
                "filter": filters,
                "must_not": [{"term": {"repo": asked.without}}] if asked.without else [],
            }
        },
        "size": asked.most * LOOKED_AT,
        "track_total_hits": False,
        "timeout": f"{max(1, int(within * 1000))}ms",
        "_source": False,
        "docvalue_fields": ["repo", "size"],
    }


def _any(field: str, globs: Sequence[str]) -> dict[str, Any]:
    """Return the filter that lets pass what one of some globs names, whatever its case."""
    ways = [
        {"wildcard": {field: {"value": glob.replace("\\", "\\\\"), "case_insensitive": True}}}
        for glob in globs
    ]
    return {"bool": {"should": ways, "minimum_should_match": 1}}


class OpenSearch:
    """The backend: candidates from a server, as far as they are what `publish` writes."""

    note = ""
    """Nothing is known of what the index lacks."""

    def __init__(self, server: SearchServer) -> None:
        self._server = server

    def candidates(self, asked: FleetQuery, within: float) -> list[FleetCandidate]:
        """Return the best documents by their words, the best first.

        It asks twice: for the names of more than are wanted, and for the texts of those that are
        left when no repository has more than its share.

        Raises:
            FleetUnavailable: there is no whole answer in that many seconds.
        """
        if not asked.weights:
            return []
        deadline = Deadline(within)
        body = query(asked, within)
        # By the statistics of all indexes: in a small one no word is rare, and little is found.
        way = "search_type=dfs_query_then_fetch&allow_partial_search_results=false"
        path = f"/{self._server.view}/_search?{way}"
        found = self._server.get("POST", path, body, within=self._left(deadline))
        chosen = self._chosen(found, asked.most)
        if not chosen:
            return []
        docs = [
            {"_index": index, "_id": id_, "routing": repository}
            for index, id_, repository in chosen
        ]
        path = f"/{self._server.index}/_mget?realtime=false&_source_includes={','.join(FETCHED)}"
        found = self._server.get("POST", path, {"docs": docs}, within=self._left(deadline))
        rows = found.get("docs")
        if not isinstance(rows, list):
            raise FleetUnavailable(f"{self._server.name} gave no whole answer")
        read = map(_candidate, rows[: len(chosen)])
        return [one for one in read if one and asked.admits(one.repository, one.team)]

    def _left(self, deadline: Deadline) -> float:
        try:
            return deadline.timeout_s()
        except TimeoutError:
            raise FleetUnavailable(f"{self._server.name} did not answer in time") from None

    def _chosen(self, found: Mapping[str, Any], most: int) -> list[tuple[str, str, str]]:
        """Return index, id and repository of what is to be fetched, of each repository its share.

        What lies in an index that is none of its repository's is passed over, whatever the view is.
        """
        rows = part(found, "hits", "hits")
        if found.get("timed_out") is not False or not isinstance(rows, list):
            raise FleetUnavailable(f"{self._server.name} gave no whole answer")
        named = [
            row
            for row in _named(rows[: most * LOOKED_AT])
            if row[0] in self._server.indexes_of(row[2])
        ]
        fair = share(most, len({repository for _index, _id, repository, _size in named}))
        chosen: list[tuple[str, str, str]] = []
        counts: dict[str, int] = {}
        total = 0
        for index, id_, repository, size in named:
            counts[repository] = counts.get(repository, 0) + 1
            total += size
            if counts[repository] <= fair and total <= MOST_FETCHED:
                chosen.append((index, id_, repository))
        return chosen[:most]


def _named(rows: Sequence[object]) -> Iterator[tuple[str, str, str, int]]:
    """Yield index, id, repository and claimed size of hits that a publisher can have written."""
    for row in rows:
        index, id_ = part(row, "_index"), part(row, "_id")
        repository, size = (_only(part(row, "fields", name)) for name in ("repo", "size"))
        if (
            isinstance(index, str)
            and isinstance(id_, str)
            and isinstance(repository, str)
            and type(size) is int
            and is_repository(repository)
            and id_.startswith(f"{repository}/")
            and 0 < size <= MAX_BYTES + MOST_TEXT
        ):
            yield index, id_, repository, size


def _only(values: object) -> object:
    """Return the one value of a field, None where there is none or more."""
    return values[0] if isinstance(values, list) and len(values) == 1 else None


FETCHED = ("repo", "team", "commit", "path", "data", TEXT_FIELD)


def _candidate(row: object) -> FleetCandidate | None:
    """Read a document; None for one that is gone, or that no publisher writes so."""
    texts = {name: part(row, "_source", name) for name in FETCHED}
    texts["team"] = texts["team"] or ""
    if not all(isinstance(text, str) for text in texts.values()):
        return None
    repository, team, commit, path, data, text = texts.values()
    try:
        read, terms = data.encode(), text.encode()
    except UnicodeEncodeError:  # half of a pair of UTF-16
        return None
    name = path.rpartition("/")[2]
    if (
        not is_repository(repository)
        or part(row, "_id") != document_id(repository, name.removesuffix(".md"))
        or not is_commit(commit)
        or not (is_inside(path) and path.isprintable() and path.endswith(".md"))
        or len(path) > MOST_PATH
        or len(team) > MOST_NAME
        or not team.isprintable()
        or not 0 < len(read) <= MAX_BYTES
        or len(terms) > MOST_TEXT
    ):
        return None
    return FleetCandidate(repository, commit, path, read, terms, team)
