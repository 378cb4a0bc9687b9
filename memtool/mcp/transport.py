"""The transport: JSON-RPC over standard input and output, one message a line.

Requests are answered one after another, in the order in which they came, so no two verbs of one
client write at once; the locks of the verbs keep other processes apart. A client that closes the
connection ends it, after what it asked before is answered; nothing else that it sends does.
Standard output belongs to the protocol, so messages for a person go to standard error.

The SDK of the protocol takes a second to load, before which the first request of an agent is
answered without tools.
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
from memtool.sessions.model import dict_of, json_row

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    Handler = Callable[["Client", dict[str, Any]], dict[str, Any]]

NO_METHOD, BAD_PARAMS, INTERNAL = -32601, -32602, -32603
HANDSHAKES = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
"""Revisions of the protocol that begin with `initialize`, the newest first."""
STATELESS = "2026-07-28"
"""The revision in which each request says who asks."""
META = "io.modelcontextprotocol/"
COMPLETE: dict[str, Any] = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
"""What every result of the stateless revision says: it is whole, and nothing of it is kept."""
MOST_NAME = 60
ROOTS_TIMEOUT_S = 5.0
ROOTS_CHANGED = "notifications/roots/list_changed"
_READ_BYTES = 1 << 16


class Refused(Exception):
    """A request that is answered with an error; `data` is for programs."""

    def __init__(self, message: str, data: Mapping[str, Any] | None = None) -> None:
        super().__init__(message)
        self.data = data


class Client:
    """The program at the other end: what it said of itself, and what it may be asked."""

    def __init__(self, source: int, target: int) -> None:
        self._source, self._target = source, target
        self._left = b""
        self._waiting: deque[dict[str, Any]] = deque()
        self._asked = 0
        self._is_closed = False
        self._roots: list[str] | None = None
        self.info: Mapping[str, Any] = {}
        self.capabilities: Mapping[str, Any] = {}

    @property
    def name(self) -> str:
        """Its name; empty where it gives none, or one that cannot be written on a line."""
        given = self.info.get("name")
        name = " ".join(given.split())[:MOST_NAME] if isinstance(given, str) else ""
        return name if name.isprintable() else ""

    def introduce(self, params: Mapping[str, Any]) -> bool:
        """Note what a request of the stateless revision says of the client; tell if it is one."""
        meta = dict_of(params.get("_meta"))
        if meta.get(f"{META}protocolVersion") is None:
            return False
        self.info = dict_of(meta.get(f"{META}clientInfo"))
        self.capabilities = {}  # it asks its user nothing while a request is open
        return True

    def roots(self) -> list[str]:
        """Return the directories that the client works in; none where it names none.

        They are asked for again when the client says that they have changed.
        """
        if "roots" not in self.capabilities:
            return []
        if self._roots is None:
            self._roots = []  # a client that does not answer is not waited for again
            self._roots = self._asked_roots()
        return self._roots

    def _asked_roots(self) -> list[str]:
        found = dict_of(self._ask("roots/list")).get("roots")
        rows = found if isinstance(found, list) else []
        parts = [urlsplit(str(dict_of(row).get("uri"))) for row in rows]
        return [unquote(part.path) for part in parts if part.scheme == "file" and part.path]

    def next(self) -> dict[str, Any] | None:
        """Return the next message of the client, None at the end."""
        return self._waiting.popleft() if self._waiting else self._read()

    def send(self, message: Mapping[str, Any]) -> None:
        """Write a message. Raises BrokenPipeError where the client is gone."""
        text = json.dumps({"jsonrpc": "2.0", **message}, ensure_ascii=False)
        data = text.encode(errors="replace") + b"\n"
        while data:
            data = data[os.write(self._target, data) :]

    def _ask(self, method: str) -> Any:
        """Ask the client something; return the result, None where none comes in time.

        What else it sends meanwhile has to wait.
        """
        self._asked += 1
        own = f"memtool-{self._asked}"
        self.send({"id": own, "method": method})
        while True:
            message = self._read(ROOTS_TIMEOUT_S)
            if message is None:
                return None
            if message.get("id") == own and "method" not in message:
                return message.get("result")
            self._waiting.append(message)

    def _read(self, seconds: float | None = None) -> dict[str, Any] | None:
        """Read the next line that is a message; None at the end, or when the time is over."""
        while True:
            line, feed, rest = self._left.partition(b"\n")
            if feed:
                self._left = rest
                found = json_row(line)
                if found is not None:
                    if found.get("method") == ROOTS_CHANGED:
                        self._roots = None
                    return found
                continue
            if self._is_closed or not select.select([self._source], [], [], seconds)[0]:
                return None
            data = os.read(self._source, _READ_BYTES)
            self._left += data or b"\n"  # the last line may have no line feed
            self._is_closed = not data


def run(
    about: Mapping[str, Any], capabilities: Mapping[str, Any], handlers: Mapping[str, Handler]
) -> None:
    """Answer requests by handlers, by method, until the client leaves.

    `about` is the `serverInfo` and the `instructions` that a client is told first.
    """
    if sys.stdin is None or sys.stdout is None:
        raise MemtoolError(
            "an MCP server needs standard input and output", hint="let a host run it"
        )
    if sys.stdin.isatty():
        tell("memtool: this is for a host to start; end of input ends it")
    client = Client(_taken(0, os.O_RDONLY), _taken(1, os.O_WRONLY))
    first = {
        "initialize": lambda client, params: _initialized(client, params, about, capabilities),
        "server/discover": lambda _client, _params: {
            "supportedVersions": [STATELESS, *HANDSHAKES],
            "capabilities": capabilities,
            "instructions": about["instructions"],
        },
        "ping": lambda _client, _params: {},
    }
    try:
        while (message := client.next()) is not None:
            method, id_ = message.get("method"), message.get("id")
            if isinstance(method, str) and isinstance(id_, int | str):
                given = dict_of(message.get("params"))
                is_stateless = client.introduce(given)
                reply = _reply(client, {**first, **handlers}.get(method), given)
                if "result" in reply and is_stateless:
                    stamp = {"_meta": {f"{META}serverInfo": about["serverInfo"]}}
                    reply = {"result": {**stamp, **COMPLETE, **reply["result"]}}
                client.send({"id": id_, **reply})
    except BrokenPipeError:  # the client hears nothing more
        return


def _initialized(
    client: Client, params: Mapping[str, Any], about: Mapping[str, Any], able: Mapping[str, Any]
) -> dict[str, Any]:
    client.info = dict_of(params.get("clientInfo"))
    client.capabilities = dict_of(params.get("capabilities"))
    wanted = params.get("protocolVersion")
    version = wanted if wanted in HANDSHAKES else HANDSHAKES[0]
    return {"protocolVersion": version, "capabilities": able, **about}


def _reply(client: Client, handler: Handler | None, params: dict[str, Any]) -> dict[str, Any]:
    """Return the result of a request, or the error."""
    if handler is None:
        return {"error": {"code": NO_METHOD, "message": "there is no such method"}}
    try:
        return {"result": handler(client, params)}
    except Refused as error:
        data = {"data": error.data} if error.data else {}
        return {"error": {"code": BAD_PARAMS, "message": str(error), **data}}


def _taken(number: int, flags: int) -> int:
    """Return a standard stream as a file of its own: what a verb starts reads or writes nothing."""
    wire = os.dup(number)
    nothing = os.open(os.devnull, flags)
    os.dup2(nothing, number)
    os.close(nothing)
    return wire
