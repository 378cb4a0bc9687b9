"""The shared index on OpenSearch: its address, its queries, its documents.

It uses HTTP from the standard library, since every import slows down a cold search. All answers of
a server are untrusted: size, shape and total time are limited, redirects are not followed, and a
document that `publish` would not write is ignored. A bad server can cost foreign results, but never
cause a wrong result or a hook that hangs.

The name of the index is the end of `fleet.url` plus the analyzer's version, so that terms of
different versions never mix. It has one document per memory, and for each repository a manifest
that records the last published change of its memories.

Whoever may write to an index can write any document in it. So a repository or organisation may have
its own index, which only its publisher may write. Queries go to a view: an alias with a filter for
each index. In an own index, only documents of its repositories are visible; in every other index,
only documents of other repositories. Publishers cannot change the view.
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

from memtool.errors import MemtoolError, find_reason
from memtool.fleet.backend import FleetCandidate, FleetUnavailable, compute_share
from memtool.fleet.repositories import MAX_NAME_CHARS
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

MAX_ANSWER_BYTES = 8 << 20
"""Limit of an answer; a longer one is rejected."""
# The terms of a memory include names as a whole, their parts, and pairs of parts.
MAX_TERMS_BYTES = 3 * MAX_BYTES
MAX_PATH_CHARS = 1_000
MAX_FETCHED_BYTES = MAX_ANSWER_BYTES // 2
"""Total size of memories fetched for a query, by their claimed sizes."""
# More hits are requested than needed, to replace those of repositories above their share.
OVERFETCH_FACTOR = 3
DEFAULT_PORT = 9200
NOT_OPENSEARCH = "does not speak as OpenSearch does"
REFUSED_STATUSES = (401, 403)
SHARDS = 2
# OpenSearch's limit.
MAX_INDEX_CHARS = 255
VARIABLES = ("MEMTOOL_FLEET_USER", "MEMTOOL_FLEET_PASSWORD", "MEMTOOL_FLEET_KEY")

_HOST = re.compile(r"[0-9A-Za-z_.:%-]{1,253}")
_DOMAIN = re.compile(r"[a-z0-9][a-z0-9_-]{0,99}")
_NAME = re.compile(r"[^\s/*?,:\\]{1,100}/[^\s/*?,:\\]{1,100}")
_SCOPE = re.compile(r"[0-9A-Za-z._-]{1,100}(?:/[0-9A-Za-z._-]{1,100})?")
_COMMIT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_REASON = re.compile(r"[a-z_]{1,60}")
_TOKEN = re.compile(r"[\w-]+\.[\w-]+\.[\w-]+", re.ASCII)
"""A JSON web token has three parts; OpenSearch's own keys have only one."""


class FleetAccessError(FleetUnavailable):
    """The server rejects the credentials or their permissions; trying again does not help."""


class SearchServer(Value):
    """A server and its index. `domain` is the first part of the index name: a domain of trust."""

    host: str
    port: int
    domain: str
    is_tls: bool
    authorization: str = ""

    def __repr__(self) -> str:
        """Return the name, without credentials, which must not get into logs."""
        return f"SearchServer({self.name!r})"

    @property
    def index(self) -> str:
        """The name of the index for this version of the analyzer."""
        return f"{self.domain}-a{TOKENIZER}"

    @property
    def view(self) -> str:
        """The alias for queries: all indexes of this version, with their filters."""
        return f"{self.domain}-all{TOKENIZER}"

    def find_own_index(self, scope: str) -> str:
        """Return the name of the own index of a repository, `org/name`, or of an `org`.

        Empty if the name is not valid for an index. Names that differ only in case share an index.
        """
        name = f"{self.index}~{_to_label(scope)}"
        return name if _SCOPE.fullmatch(scope) and len(name) <= MAX_INDEX_CHARS else ""

    def find_indexes(self, repository: str) -> list[str]:
        """Return the indexes that may have a repository: its own, its organisation's, common."""
        own = (self.find_own_index(scope) for scope in (repository, repository.partition("/")[0]))
        return [*filter(None, own), self.index]

    @property
    def name(self) -> str:
        """The address for messages, without secrets."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'https' if self.is_tls else 'http'}://{host}:{self.port}/{self.domain}"

    def send(
        self, method: str, path: str, body: object = None, *, timeout_s: float
    ) -> tuple[int, dict[str, Any]]:
        """Send a request and return the status and the JSON object of the answer.

        `body` is sent as JSON, a list as one line per row. `timeout_s` covers everything except the
        DNS lookup, which the system limits.

        Raises:
            FleetUnavailable: there is no valid answer within that time.
        """
        deadline = Deadline(timeout_s)
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
            # The security plugin and proxies refuse with plain text instead of JSON.
            values = {} if answer.status in REFUSED_STATUSES else json.loads(text or b"{}")
        except (OSError, HTTPException, ValueError, RecursionError) as error:
            raise FleetUnavailable(self._describe_failure(error, timeout_s)) from None
        finally:
            connection.close_socket()
        if not isinstance(values, dict):
            raise FleetUnavailable(f"{self.name} {NOT_OPENSEARCH}")
        return answer.status, values

    def _read(self, answer: HTTPResponse) -> bytes:
        """Read the body of an answer. Raises FleetUnavailable if it is not acceptable."""
        if 300 <= answer.status < 400:
            raise FleetUnavailable(f"{self.name} redirects elsewhere, which is not followed")
        is_long = (answer.length or 0) > MAX_ANSWER_BYTES or answer.getheader("Content-Encoding")
        text = b"" if is_long else answer.read(MAX_ANSWER_BYTES + 1)
        if is_long or len(text) > MAX_ANSWER_BYTES:
            raise FleetUnavailable(f"{self.name} sends more than may be read")
        if answer.length:
            raise FleetUnavailable(f"{self.name} broke off its answer")
        return text

    def _describe_failure(self, error: Exception, timeout_s: float) -> str:
        """Describe in our own words why there was no answer."""
        if isinstance(error, TimeoutError):
            return f"{self.name} did not answer within {timeout_s:.3g} s"
        if isinstance(error, ssl.SSLCertVerificationError):
            return f"{self.name} does not prove who it is: {error.verify_message}"
        if isinstance(error, ssl.SSLError):
            return f"{self.name} does not speak TLS"
        if isinstance(error, socket.gaierror):
            return f"nobody knows the name {self.host}"
        if isinstance(error, OSError) and error.strerror:
            return f"{self.name} cannot be reached: {find_reason(error)}"
        return f"{self.name} {NOT_OPENSEARCH}"

    def request(
        self, method: str, path: str, body: object = None, *, timeout_s: float
    ) -> dict[str, Any]:
        """Send a request that must succeed, and return the answer. Raises FleetUnavailable."""
        status, answer = self.send(method, path, body, timeout_s=timeout_s)
        if status not in (200, 201):
            raise self.build_error(status, answer)
        return answer

    def build_error(self, status: int, answer: Mapping[str, Any]) -> FleetUnavailable:
        """Build the error for a refused request; of the server's text only the type is used."""
        if status in REFUSED_STATUSES:
            why = "does not accept the credentials: they are wrong or expired"
            if status == 403:
                why = "accepts the credentials, which do not allow that: a role is missing"
            if not self.authorization:
                why = "wants credentials, and none are set"
            return FleetAccessError(f"{self.name} {why} (status {status})")
        error_type = find_value(answer, "error", "type")
        if error_type == "index_not_found_exception":
            return FleetUnavailable(f"{self.name} has no index {self.index}")
        is_readable = isinstance(error_type, str) and _REASON.fullmatch(error_type)
        return FleetUnavailable(
            f"{self.name} refuses: {error_type if is_readable else 'status'} {status}"
        )


def _to_label(scope: str) -> str:
    """Return the form of a scope in the names of indexes and roles."""
    return scope.lower().replace("/", "~")


def parse_server(url: str, env: Mapping[str, str]) -> SearchServer:
    """Parse the address of the shared index, and read the credentials from the environment.

    Raises:
        MemtoolError: the address is invalid, or contains credentials.
    """

    def build_error(
        what: str, hint: str = "https://search.example.org:9200/memories"
    ) -> MemtoolError:
        return MemtoolError(f"fleet.url {what}", hint=f"for example {hint}", code="config")

    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        raise build_error("is not an address") from None
    if "@" in parts.netloc:
        raise MemtoolError(
            "fleet.url contains a user or a password, which belong in the environment",
            hint="set MEMTOOL_FLEET_USER and MEMTOOL_FLEET_PASSWORD, or MEMTOOL_FLEET_KEY",
            code="config",
        )
    if parts.scheme not in ("https", "http") or not host or not url.isascii():
        raise build_error("must start with https:// and a host")
    if not _HOST.fullmatch(host):
        raise build_error("does not name a host")
    domain = parts.path.strip("/")
    if not _DOMAIN.fullmatch(domain) or parts.query or parts.fragment:
        raise build_error("must end with the name of an index, in lower case")
    if parts.scheme == "http" and not _is_loopback(host):
        raise build_error("is not encrypted: http is only allowed for this machine")
    port = port or (443 if parts.scheme == "https" else DEFAULT_PORT)
    return SearchServer(host, port, domain, parts.scheme == "https", _build_authorization(env))


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"  # checked again after connecting


def _build_authorization(env: Mapping[str, str]) -> str:
    user, password, key = (env.get(name, "") for name in VARIABLES)
    if key and user:
        raise MemtoolError(
            "MEMTOOL_FLEET_KEY and MEMTOOL_FLEET_USER exclude each other",
            hint="unset one of them",
            code="config",
        )
    if bool(user) != bool(password) or ":" in user:
        raise MemtoolError(
            "MEMTOOL_FLEET_USER (without a colon) and MEMTOOL_FLEET_PASSWORD must both be set",
            hint="set both, or neither",
            code="config",
        )
    if key and not (key.isascii() and key.isprintable() and " " not in key):
        raise MemtoolError(
            "MEMTOOL_FLEET_KEY is not a key: it has characters that a header cannot have",
            hint="copy it again",
            code="config",
        )
    if key:
        return f"{'Bearer' if _TOKEN.fullmatch(key) else 'ApiKey'} {key}"
    return "Basic " + b64encode(f"{user}:{password}".encode()).decode() if user else ""


class _TimedReader(RawIOBase):
    """Reads from a socket up to a deadline, even if data arrives slowly."""

    def __init__(self, sock: socket.socket, deadline: Deadline) -> None:
        self._sock = sock
        self._deadline = deadline

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        self._sock.settimeout(self._deadline.timeout_s())
        return self._sock.recv_into(buffer)


class _TimedSocket:
    """The part of a socket that `http.client` uses, with a deadline."""

    def __init__(self, sock: socket.socket, deadline: Deadline) -> None:
        self._sock = sock
        self._deadline = deadline

    def sendall(self, data: bytes) -> None:
        """Send all bytes."""
        view = memoryview(data)
        while view:
            self._sock.settimeout(self._deadline.timeout_s())
            view = view[self._sock.send(view) :]

    def makefile(self, *_mode: object) -> BufferedReader:
        """Return a reader of the answer."""
        return BufferedReader(_TimedReader(self._sock, self._deadline))

    def close(self) -> None:
        """Do nothing: `http.client` is done with a connection before the answer is read."""


@cache
def _tls_context(*_places: str | None) -> ssl.SSLContext:
    """Create the TLS context; cached, as loading all authorities takes 20 ms."""
    context = ssl.create_default_context()
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context


class _Connection(HTTPConnection):
    """A connection with one deadline for all steps."""

    def __init__(self, server: SearchServer, deadline: Deadline) -> None:
        super().__init__(server.host, server.port)
        self._server = server
        self._deadline = deadline
        self._socket: socket.socket | None = None

    def close_socket(self) -> None:
        """Close the socket, also during a request."""
        if self._socket is not None:
            self._socket.close()

    def connect(self) -> None:
        """Connect to the first address that accepts, and verify the server."""
        server = self._server
        try:
            addresses = socket.getaddrinfo(server.host, server.port, type=socket.SOCK_STREAM)
        except UnicodeError:  # a part of the name is empty, or too long
            raise socket.gaierror from None
        while addresses:
            family, kind, protocol, _name, address = addresses.pop(0)
            sock = socket.socket(family, kind, protocol)
            try:
                # A silent address must leave time for the following ones.
                sock.settimeout(self._deadline.timeout_s() / (len(addresses) + 1))
                sock.connect(address)
                if not server.is_tls and not ip_address(str(address[0])).is_loopback:
                    raise OSError(0, "it is on another machine, and http is for this one alone")
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                if server.is_tls:
                    context = _tls_context(*map(os.environ.get, ("SSL_CERT_FILE", "SSL_CERT_DIR")))
                    sock.settimeout(self._deadline.timeout_s())
                    sock = context.wrap_socket(sock, server_hostname=server.host)
                break
            except ssl.SSLError:
                sock.close()
                raise
            except OSError:
                sock.close()
                if not addresses:
                    raise
        self._socket, self.sock = sock, _TimedSocket(sock, self._deadline)


TERMS_FIELD = "w"
MAPPING: dict[str, Any] = {
    "dynamic": "strict",
    "properties": {
        TERMS_FIELD: {
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
"""The fields of a document. A memory has `repo`. A manifest has `of`, `gen`, `commit`, `tree`,
`version` of memtool, and `count` of memories; without `repo` it never matches a query.

`w` is the text as terms, as `scoring.searchable` writes it, so that the server's analyzer only
splits it at spaces; `gen` is the version of the document; `size` its bytes.
"""


def build_template(server: SearchServer, shards: int, replicas: int) -> dict[str, Any]:
    """Build the template of all indexes: mapping and ranking."""
    # Not `memories-a*`, which would match the index of `memories-archive`. A domain has no tilde.
    return {
        "index_patterns": _index_patterns(server),
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


def _index_patterns(server: SearchServer) -> list[str]:
    return [server.index, f"{server.index}~*"]


TEMPLATE_TIMEOUT_S = 5.0
"""Limit for the first, small request of `prepare`, to give up early on a very slow server."""


def prepare(
    server: SearchServer, shards: int, replicas: int, timeout_s: float, scope: str = ""
) -> bool:
    """Create the template, the index, the own index of a scope, and the view.

    Return whether the index, or with a scope its own index, is new. An existing one is not changed,
    also not its number of shards.

    Raises:
        FleetUnavailable: the server refuses, or does not answer.
    """
    index_template = build_template(server, shards, replicas)
    template_timeout_s = min(timeout_s, TEMPLATE_TIMEOUT_S)
    server.request(
        "PUT",
        f"/_index_template/memtool-{server.domain}",
        index_template,
        timeout_s=template_timeout_s,
    )
    is_new = _create_index(server, server.index, None, timeout_s)
    if scope:
        one_shard = {"settings": {"number_of_shards": 1}}
        is_new = _create_index(server, server.find_own_index(scope), one_shard, timeout_s)
    indexes = server.request(
        "GET", f"/{','.join(_index_patterns(server))}/_alias", timeout_s=timeout_s
    )
    server.request(
        "POST", "/_aliases", {"actions": _build_view_actions(server, indexes)}, timeout_s=timeout_s
    )
    return is_new


def _build_view_actions(server: SearchServer, indexes: Iterable[str]) -> list[dict[str, Any]]:
    """Build the actions that create the view of indexes.

    A document is visible only in the narrowest index of its repository.
    """
    scopes = {name: name[len(server.index) + 1 :].replace("~", "/") for name in sorted(indexes)}
    actions = []
    for name, scope in scopes.items():
        other_scopes = [other for other in scopes.values() if other and other != scope]
        narrower = (
            [other for other in other_scopes if other.startswith(f"{scope}/")]
            if scope
            else other_scopes
        )
        visible = {
            "filter": _scope_filters([scope] if scope else []),
            "must_not": _scope_filters(narrower),
        }
        actions.append({"add": {"index": name, "alias": server.view, "filter": {"bool": visible}}})
    return actions


def _scope_filters(scopes: Sequence[str]) -> list[dict[str, Any]]:
    """Build filters for the documents of repositories and organisations."""
    # Terms on a lower-case field take a third of the time of a case-insensitive query.
    names = [scope for scope in scopes if "/" in scope]
    organisations = [
        {"prefix": {"repo.lower": f"{scope}/"}} for scope in scopes if "/" not in scope
    ]
    return [*([{"terms": {"repo.lower": names}}] if names else []), *organisations]


def _create_index(server: SearchServer, index: str, body: object, timeout_s: float) -> bool:
    status, answer = server.send("PUT", f"/{index}", body, timeout_s=timeout_s)
    if status == 400 and find_value(answer, "error", "type") == "resource_already_exists_exception":
        return False
    if status != 200:
        raise server.build_error(status, answer)
    return True


def build_roles(server: SearchServer, scope: str = "") -> dict[str, Any]:
    """Build the roles for querying and publishing, in the format of the security plugin.

    No role can limit publishers to documents of their own repositories: the plugin can hide
    documents from readers, but not protect them from writers. So the role of a scope may write only
    its own index, and no other role may. Publishers can see which repositories have an own index.
    """
    all_indexes = _index_patterns(server)
    reading = ["indices:data/read/search", "indices:data/read/mget*"]
    writing = [
        "indices:data/read/search",
        "indices:data/write/bulk*",
        "indices:data/write/index",
        "indices:data/write/delete",
        "indices:admin/refresh*",
    ]
    looking_up = (all_indexes, ["indices:data/read/get"])
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
            ("reader", "indices:data/read/mget", (all_indexes, reading)),
            ("publisher", "indices:data/write/bulk", ([server.index], writing), looking_up),
            ("administrator", "indices:admin/index_template/put", (all_indexes, making)),
            *(
                [
                    (
                        f"publisher~{_to_label(scope)}",
                        "indices:data/write/bulk",
                        ([server.find_own_index(scope)], writing),
                        looking_up,
                    )
                ]
                if scope
                else ()
            ),
        )
    }


def build_document_id(repository: str, id_: str) -> str:
    """Build the id of the document of a memory."""
    return f"{repository}/{id_}"


def is_repository(name: str) -> bool:
    """Return whether a text is a repository name, `org/name`, that the index accepts."""
    # Forges only have ASCII names; this rejects look-alike letters.
    return bool(_NAME.fullmatch(name)) and name.isascii() and name.isprintable()


def is_commit(text: str) -> bool:
    """Return whether a text is the full id of a commit."""
    return bool(_COMMIT.fullmatch(text))


def find_value(value: Any, *keys: str) -> Any:
    """Return the value at a path of keys in an answer; None if missing."""
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def build_request(fleet_query: FleetQuery, timeout_s: float) -> dict[str, Any]:
    """Build the request for matching documents; it has only terms of the question."""
    # Without stop words and total counts it takes a third of the time.
    words = list(fleet_query.weights.items())
    filters = [
        _any_glob_filter(field, globs)
        for field, globs in (
            ("repo", fleet_query.allow),
            ("repo", fleet_query.repositories),
            ("team", fleet_query.teams),
            ("tags", fleet_query.tags),
        )
        if globs
    ]
    filters += [{"terms": {"type": list(fleet_query.types)}}] if fleet_query.types else []
    return {
        "query": {
            "bool": {
                "should": [
                    {"term": {TERMS_FIELD: {"value": word, "boost": weight}}}
                    for word, weight in words
                ],
                "minimum_should_match": 1,
                "filter": filters,
                "must_not": [{"term": {"repo": fleet_query.excluded}}]
                if fleet_query.excluded
                else [],
            }
        },
        "size": fleet_query.limit * OVERFETCH_FACTOR,
        "track_total_hits": False,
        "timeout": f"{max(1, int(timeout_s * 1000))}ms",
        "_source": False,
        "docvalue_fields": ["repo", "size"],
    }


def _any_glob_filter(field: str, globs: Sequence[str]) -> dict[str, Any]:
    """Build a filter that matches any of the globs, ignoring case."""
    ways = [
        {"wildcard": {field: {"value": glob.replace("\\", "\\\\"), "case_insensitive": True}}}
        for glob in globs
    ]
    return {"bool": {"should": ways, "minimum_should_match": 1}}


class OpenSearch:
    """The backend: candidates from a server, without those that `publish` would not write."""

    note = ""  # always empty, as it is not known what the index lacks

    def __init__(self, server: SearchServer) -> None:
        self._server = server

    def find_candidates(self, query: FleetQuery, timeout_s: float) -> list[FleetCandidate]:
        """Return the best documents by their words, best first.

        It sends two requests: for the ids of more documents than needed, and for the texts of those
        that remain after limiting each repository to its share.

        Raises:
            FleetUnavailable: there is no complete answer within `timeout_s`.
        """
        if not query.weights:
            return []
        deadline = Deadline(timeout_s)
        body = build_request(query, timeout_s)
        # dfs: statistics over all indexes. In a small index no word is rare, and little would
        # match.
        parameters = "search_type=dfs_query_then_fetch&allow_partial_search_results=false"
        path = f"/{self._server.view}/_search?{parameters}"
        answer = self._server.request("POST", path, body, timeout_s=self._remaining_s(deadline))
        chosen = self._choose_rows(answer, query.limit)
        if not chosen:
            return []
        docs = [
            {"_index": index, "_id": id_, "routing": repository}
            for index, id_, repository in chosen
        ]
        path = f"/{self._server.index}/_mget?realtime=false&_source_includes={','.join(FETCHED)}"
        answer = self._server.request(
            "POST", path, {"docs": docs}, timeout_s=self._remaining_s(deadline)
        )
        rows = answer.get("docs")
        if not isinstance(rows, list):
            raise FleetUnavailable(f"{self._server.name} gave no whole answer")
        read = map(_parse_candidate, rows[: len(chosen)])
        return [
            candidate
            for candidate in read
            if candidate and query.admits(candidate.repository, candidate.team)
        ]

    def _remaining_s(self, deadline: Deadline) -> float:
        try:
            return deadline.timeout_s()
        except TimeoutError:
            raise FleetUnavailable(f"{self._server.name} did not answer in time") from None

    def _choose_rows(self, answer: Mapping[str, Any], limit: int) -> list[tuple[str, str, str]]:
        """Choose the index, id and repository of documents to fetch, within repository shares.

        A document in an index that is not for its repository is ignored, whatever the view says.
        """
        rows = find_value(answer, "hits", "hits")
        if answer.get("timed_out") is not False or not isinstance(rows, list):
            raise FleetUnavailable(f"{self._server.name} gave no whole answer")
        valid_rows = [
            row
            for row in _parse_hits(rows[: limit * OVERFETCH_FACTOR])
            if row[0] in self._server.find_indexes(row[2])
        ]
        max_each = compute_share(
            limit, len({repository for _index, _id, repository, _size in valid_rows})
        )
        chosen: list[tuple[str, str, str]] = []
        counts: dict[str, int] = {}
        total = 0
        for index, id_, repository, size in valid_rows:
            counts[repository] = counts.get(repository, 0) + 1
            total += size
            if counts[repository] <= max_each and total <= MAX_FETCHED_BYTES:
                chosen.append((index, id_, repository))
        return chosen[:limit]


def _parse_hits(rows: Sequence[object]) -> Iterator[tuple[str, str, str, int]]:
    """Yield index, id, repository and claimed size of the hits that are valid."""
    for row in rows:
        index, id_ = find_value(row, "_index"), find_value(row, "_id")
        repository, size = (
            _only_value(find_value(row, "fields", name)) for name in ("repo", "size")
        )
        if (
            isinstance(index, str)
            and isinstance(id_, str)
            and isinstance(repository, str)
            and type(size) is int
            and is_repository(repository)
            and id_.startswith(f"{repository}/")
            and 0 < size <= MAX_BYTES + MAX_TERMS_BYTES
        ):
            yield index, id_, repository, size


def _only_value(values: object) -> object:
    """Return the only value of a field; None if there are none or several."""
    return values[0] if isinstance(values, list) and len(values) == 1 else None


FETCHED = ("repo", "team", "commit", "path", "data", TERMS_FIELD)


def _parse_candidate(row: object) -> FleetCandidate | None:
    """Parse a document; None if it is missing or not valid."""
    texts = {name: find_value(row, "_source", name) for name in FETCHED}
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
        or find_value(row, "_id") != build_document_id(repository, name.removesuffix(".md"))
        or not is_commit(commit)
        or not (is_inside(path) and path.isprintable() and path.endswith(".md"))
        or len(path) > MAX_PATH_CHARS
        or len(team) > MAX_NAME_CHARS
        or not team.isprintable()
        or not 0 < len(read) <= MAX_BYTES
        or len(terms) > MAX_TERMS_BYTES
    ):
        return None
    return FleetCandidate(repository, commit, path, read, terms, team)
