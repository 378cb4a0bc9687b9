"""The transport: JSON-RPC over standard input and output, one message per line.

Requests are answered one after another, in order, so two verbs of one client never write at once;
the locks of the verbs protect against other processes. The server ends only when the client closes
the connection, after it has answered the requests sent before. Standard output belongs to the
protocol, so messages for the user go to standard error.

The official SDK is not used: it takes a second to load, and until then an agent's first request
would be answered without tools.
"""

from __future__ import annotations

import json
import os
import select
import sys
from collections import deque
from urllib.parse import unquote, urlsplit

from memtool.calls.output import tell
from memtool.errors import MemtoolError
from memtool.sessions.model import as_dict, parse_json_row

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    Handler = Callable[["Client", dict[str, Any]], dict[str, Any]]

NO_METHOD, BAD_PARAMS, INTERNAL = -32601, -32602, -32603
HANDSHAKES = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
"""Revisions of the protocol that begin with `initialize`, the newest first."""
STATELESS = "2026-07-28"
"""The revision in which each request identifies its client."""
META = "io.modelcontextprotocol/"
COMPLETE: dict[str, Any] = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
"""Fields of every result in the stateless revision: it is complete, and must not be cached."""
MAX_NAME = 60
ROOTS_TIMEOUT_S = 5.0
ROOTS_CHANGED = "notifications/roots/list_changed"
_READ_BYTES = 1 << 16


class RequestError(Exception):
    """A request that is answered with an error; `data` is for programs."""

    def __init__(self, message: str, data: Mapping[str, Any] | None = None) -> None:
        super().__init__(message)
        self.data = data


class Client:
    """The program at the other end: its messages, its name, and its capabilities."""

    def __init__(self, source: int, target: int) -> None:
        self._source, self._target = source, target
        self._unread = b""
        self._waiting: deque[dict[str, Any]] = deque()
        self._request_count = 0
        self._is_closed = False
        self._roots: list[str] | None = None
        self.info: Mapping[str, Any] = {}
        self.capabilities: Mapping[str, Any] = {}

    @property
    def name(self) -> str:
        """Its name; empty if it gives none, or one that is not printable."""
        own_name = self.info.get("name")
        name = " ".join(own_name.split())[:MAX_NAME] if isinstance(own_name, str) else ""
        return name if name.isprintable() else ""

    def introduce(self, params: Mapping[str, Any]) -> bool:
        """Read the client's details from a stateless request; return False for another request."""
        meta = as_dict(params.get("_meta"))
        if meta.get(f"{META}protocolVersion") is None:
            return False
        self.info = as_dict(meta.get(f"{META}clientInfo"))
        self.capabilities = {}  # it answers no requests of ours while its own is open
        return True

    def list_roots(self) -> list[str]:
        """Return the directories in which the client works, as reported by it.

        They are requested once, and again after the client reports a change.
        """
        if "roots" not in self.capabilities:
            return []
        if self._roots is None:
            self._roots = []  # do not wait again for a client that does not answer
            self._roots = self._ask_roots()
        return self._roots

    def _ask_roots(self) -> list[str]:
        roots = as_dict(self._ask("roots/list")).get("roots")
        rows = roots if isinstance(roots, list) else []
        parts = [urlsplit(str(as_dict(row).get("uri"))) for row in rows]
        return [unquote(part.path) for part in parts if part.scheme == "file" and part.path]

    def read_next(self) -> dict[str, Any] | None:
        """Return the next message of the client, None at the end of input."""
        return self._waiting.popleft() if self._waiting else self._read()

    def send(self, message: Mapping[str, Any]) -> None:
        """Write a message. Raises BrokenPipeError if the client has disconnected."""
        text = json.dumps({"jsonrpc": "2.0", **message}, ensure_ascii=False)
        data = text.encode(errors="replace") + b"\n"
        while data:
            data = data[os.write(self._target, data) :]

    def _ask(self, method: str) -> Any:
        """Send a request to the client; return its result, None if none comes in time.

        Other messages that arrive meanwhile are queued.
        """
        self._request_count += 1
        own = f"memtool-{self._request_count}"
        self.send({"id": own, "method": method})
        while True:
            message = self._read(ROOTS_TIMEOUT_S)
            if message is None:
                return None
            if message.get("id") == own and "method" not in message:
                return message.get("result")
            self._waiting.append(message)

    def _read(self, seconds: float | None = None) -> dict[str, Any] | None:
        """Read the next line that is a message; None at the end of input, or on a timeout."""
        while True:
            line, feed, tail = self._unread.partition(b"\n")
            if feed:
                self._unread = tail
                message = parse_json_row(line)
                if message is not None:
                    if message.get("method") == ROOTS_CHANGED:
                        self._roots = None
                    return message
                continue
            if self._is_closed or not select.select([self._source], [], [], seconds)[0]:
                return None
            data = os.read(self._source, _READ_BYTES)
            self._unread += data or b"\n"  # the last line may have no line feed
            self._is_closed = not data


def run(
    about: Mapping[str, Any], capabilities: Mapping[str, Any], handlers: Mapping[str, Handler]
) -> None:
    """Answer requests until the client disconnects; `handlers` are by method.

    `about` has the `serverInfo` and the `instructions` for the handshake.
    """
    if sys.stdin is None or sys.stdout is None:
        raise MemtoolError(
            "cannot start the MCP server: it needs standard input and output",
            hint="memtool install claude",
        )
    if sys.stdin.isatty():
        tell("memtool: this is for a host to start; end of input ends it")
    client = Client(_take_stream(0, os.O_RDONLY), _take_stream(1, os.O_WRONLY))
    first = {
        "initialize": lambda client, params: _initialize(client, params, about, capabilities),
        "server/discover": lambda _client, _params: {
            "supportedVersions": [STATELESS, *HANDSHAKES],
            "capabilities": capabilities,
            "instructions": about["instructions"],
        },
        "ping": lambda _client, _params: {},
    }
    try:
        while (message := client.read_next()) is not None:
            method, id_ = message.get("method"), message.get("id")
            if isinstance(method, str) and isinstance(id_, int | str):
                params = as_dict(message.get("params"))
                is_stateless = client.introduce(params)
                reply = _build_reply(client, {**first, **handlers}.get(method), params)
                if "result" in reply and is_stateless:
                    stamp = {"_meta": {f"{META}serverInfo": about["serverInfo"]}}
                    reply = {"result": {**stamp, **COMPLETE, **reply["result"]}}
                client.send({"id": id_, **reply})
    except BrokenPipeError:  # the client has disconnected
        return


def _initialize(
    client: Client, params: Mapping[str, Any], about: Mapping[str, Any], able: Mapping[str, Any]
) -> dict[str, Any]:
    client.info = as_dict(params.get("clientInfo"))
    client.capabilities = as_dict(params.get("capabilities"))
    wanted = params.get("protocolVersion")
    version = wanted if wanted in HANDSHAKES else HANDSHAKES[0]
    return {"protocolVersion": version, "capabilities": able, **about}


def _build_reply(client: Client, handler: Handler | None, params: dict[str, Any]) -> dict[str, Any]:
    """Build the reply to a request: its result or its error."""
    if handler is None:
        return {"error": {"code": NO_METHOD, "message": "there is no such method"}}
    try:
        return {"result": handler(client, params)}
    except RequestError as error:
        data = {"data": error.data} if error.data else {}
        return {"error": {"code": BAD_PARAMS, "message": str(error), **data}}


def _take_stream(number: int, flags: int) -> int:
    """Duplicate a standard stream, and redirect the original to the null device.

    So no process that a verb starts can read requests or write into the protocol.
    """
    wire = os.dup(number)
    nothing = os.open(os.devnull, flags)
    os.dup2(nothing, number)
    os.close(nothing)
    return wire
