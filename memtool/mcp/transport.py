"""The transport: JSON-RPC over standard input and output, one message per line.

Requests are answered one after another, in order, so two verbs of one client never write at once;
the locks of the verbs protect against other processes. A request that waits can be cancelled. The
server ends only when the client closes the connection, after it has answered the requests sent
before. Standard output belongs to the protocol, so messages for the user go to standard error.

The official SDK is not used: it takes a second to load, and until then an agent's first request
would be answered without tools.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections import deque
from urllib.parse import unquote, urlsplit

from memtool.agents import AGENTS
from memtool.calls.output import tell
from memtool.errors import MemtoolError
from memtool.mcp.lines import INVALID, LineReader, Unreadable, has_valid_id, parse
from memtool.sessions.model import as_dict

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    Handler = Callable[["Client", dict[str, Any]], dict[str, Any]]
    Message = dict[str, Any]
    Received = Message | list[Any] | Unreadable

NO_METHOD, BAD_PARAMS = -32601, -32602
HANDSHAKES = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
"""Revisions of the protocol that begin with `initialize`, the newest first."""
WITH_BATCHES = ("2025-03-26",)
"""Revisions in which a line may be a list of messages."""
STATELESS = "2026-07-28"
"""The revision in which each request identifies its client."""
META = "io.modelcontextprotocol/"
COMPLETE: dict[str, Any] = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
"""Fields of every result in the stateless revision: it is complete, and must not be cached."""
MAX_NAME = 60
MAX_WAITING = 1_000
"""Messages that are read ahead while a request is answered."""
ROOTS_TIMEOUT_S = 5.0
ELICITATION_TIMEOUT_S = 600.0
"""How long a user may think. Most clients end the call before."""
ROOTS_CHANGED, CANCELLED = "notifications/roots/list_changed", "notifications/cancelled"
QUESTION = "question"
"""The key of our only question in a stateless result."""


class TransportError(Exception):
    """What ends the work on a request, and is answered by the transport."""


class RequestError(TransportError):
    """A request that is answered with an error; `data` is for programs."""

    def __init__(self, message: str, data: Mapping[str, Any] | None = None) -> None:
        super().__init__(message)
        self.data = data


class CancelledError(TransportError):
    """The client has cancelled the request that is being answered, so it gets no answer."""


class InputRequiredError(TransportError):
    """A stateless request that the client repeats with the answer to a question; has the result."""

    def __init__(self, result: dict[str, Any]) -> None:
        super().__init__()
        self.result = result


class Client:
    """The program at the other end: its messages, its name, and its capabilities."""

    def __init__(self, source: int, target: int) -> None:
        self._lines, self._target = LineReader(source), target
        self._waiting: deque[Received] = deque()
        self._request_count = 0
        self._roots: list[str] | None = None
        self.info: Mapping[str, Any] = {}
        self.capabilities: Mapping[str, Any] = {}
        self.version = ""
        """The revision of the handshake; empty before it."""
        self.is_stateless = False
        self.request_id: str | int | None = None
        """The id of the request that is being answered."""

    @property
    def name(self) -> str:
        """Its name; empty if it gives none, or one that is not printable."""
        own_name = self.info.get("name")
        name = " ".join(own_name.split())[:MAX_NAME] if isinstance(own_name, str) else ""
        return name if name.isprintable() else ""

    @property
    def can_ask(self) -> bool:
        """Whether it shows forms to its user. Without a mode it has only these."""
        modes = self.capabilities.get("elicitation")
        return isinstance(modes, dict) and (not modes or "form" in modes)

    def introduce(self, params: Mapping[str, Any]) -> None:
        """Read the client's details from a stateless request, which has them in `_meta`."""
        meta = as_dict(params.get("_meta"))
        self.is_stateless = meta.get(f"{META}protocolVersion") is not None
        if self.is_stateless:
            self.info = as_dict(meta.get(f"{META}clientInfo"))
            self.capabilities = as_dict(meta.get(f"{META}clientCapabilities"))

    def list_roots(self) -> list[str]:
        """Return the directories in which the client works, as reported by it.

        They are requested once, and again after the client reports a change. Stateless requests
        have none.
        """
        if "roots" not in self.capabilities or self.is_stateless:
            return []
        if self._roots is None:
            self._roots = []  # do not wait again for a client that does not answer
            self._roots = self._ask_roots()
        return self._roots

    def _ask_roots(self) -> list[str]:
        roots = as_dict(self._ask("roots/list", None, ROOTS_TIMEOUT_S)).get("roots")
        rows = roots if isinstance(roots, list) else []
        parts = [urlsplit(str(as_dict(row).get("uri"))) for row in rows]
        return [unquote(part.path) for part in parts if part.scheme == "file" and part.path]

    def ask_user(
        self, message: str, fields: Mapping[str, Any], params: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Show a form to the user; return the result of the elicitation, empty if none comes.

        Args:
            message: the question.
            fields: JSON schemas of the fields of the form, by name; all are optional.
            params: those of the request that is being answered.

        Raises:
            InputRequiredError: the request is stateless, and has no answer to this question yet.
            CancelledError: the client cancels the request.
        """
        form = {
            "message": message,
            "requestedSchema": {"type": "object", "properties": {**fields}},
        }
        if not self.is_stateless:
            return as_dict(self._ask("elicitation/create", form, ELICITATION_TIMEOUT_S))
        if params.get("requestState") == message:
            return as_dict(as_dict(params.get("inputResponses")).get(QUESTION))
        question = {"method": "elicitation/create", "params": {"mode": "form", **form}}
        raise InputRequiredError(
            {
                "resultType": "input_required",
                "inputRequests": {QUESTION: question},
                "requestState": message,  # an answer is to this question only
            }
        )

    def read_next(self) -> Received | None:
        """Return the next message of the client, None at the end of input."""
        while len(self._waiting) < MAX_WAITING:  # it may cancel what waits
            received = self._read(0)
            if received is None:
                break
            self._receive(received)
        while not self._waiting:
            received = self._read(None)
            if received is None:
                return None
            self._receive(received)
        return self._waiting.popleft()

    def send(self, message: Message | list[Message]) -> None:
        """Write a message or a batch. Raises BrokenPipeError if the client has disconnected."""
        data = to_line(message)
        while data:
            data = data[os.write(self._target, data) :]

    def _ask(self, method: str, params: Mapping[str, Any] | None, timeout_s: float) -> Any:
        """Send a request to the client; return its result, None if none comes in time.

        A ping that arrives meanwhile is answered, other messages are queued.

        Raises:
            CancelledError: the client cancels the request that is being answered.
        """
        self._request_count += 1
        own = f"memtool-{self._request_count}"
        self.send({"id": own, "method": method, **({} if params is None else {"params": params})})
        end = time.monotonic() + timeout_s
        while (received := self._read(max(0.0, end - time.monotonic()))) is not None:
            for message in received if isinstance(received, list) else [received]:
                if not isinstance(message, dict):
                    self._receive(message if isinstance(message, Unreadable) else [message])
                elif message.get("id") == own and "method" not in message:
                    return message.get("result")
                elif message.get("method") == "ping" and has_valid_id(message):
                    self.send({"id": message["id"], "result": {}})
                elif _is_same_id(_cancelled_id(message), self.request_id):
                    self._withdraw(own)
                    raise CancelledError
                else:
                    self._receive(message)
        self._withdraw(own)
        return None

    def _withdraw(self, own: str) -> None:
        self.send({"method": CANCELLED, "params": {"requestId": own}})

    def _receive(self, received: Received) -> None:
        """Queue a message, or act on a notification about what is queued."""
        if isinstance(received, dict) and received.get("method") == ROOTS_CHANGED:
            self._roots = None
        elif isinstance(received, dict) and received.get("method") == CANCELLED:
            self._cancel(_cancelled_id(received))
        else:
            self._waiting.append(received)

    def _cancel(self, id_: Any) -> None:
        """Drop the request with an id from the queue; the client expects no answer to it."""

        def is_cancelled(message: Any) -> bool:
            return isinstance(message, dict) and _is_same_id(message.get("id"), id_)

        for received in [*self._waiting]:
            if is_cancelled(received):
                self._waiting.remove(received)
            elif isinstance(received, list):
                received[:] = [message for message in received if not is_cancelled(message)]

    def _read(self, timeout_s: float | None) -> Received | None:
        """Read the next line; None at the end of input, or on a timeout."""
        while True:
            line = self._lines.read(timeout_s)
            if line is None or isinstance(line, Unreadable):
                return line
            if line.strip():
                return parse(line)


def to_line(message: Message | list[Message]) -> bytes:
    """Format a message or a batch as the line that is sent."""
    head = {"jsonrpc": "2.0"}
    whole = [head | row for row in message] if isinstance(message, list) else head | message
    text = json.dumps(whole, ensure_ascii=False, separators=(",", ":"))
    return text.encode(errors="replace") + b"\n"


def _cancelled_id(message: Mapping[str, Any]) -> Any:
    """Return the id that a notification cancels, None for any other message."""
    is_cancelled = message.get("method") == CANCELLED
    return as_dict(message.get("params")).get("requestId") if is_cancelled else None


def _is_same_id(id_: Any, other: Any) -> bool:
    return id_ is not None and type(id_) is type(other) and id_ == other


def run(
    about: Mapping[str, Any], capabilities: Mapping[str, Any], handlers: Mapping[str, Handler]
) -> None:
    """Answer requests until the client disconnects; `handlers` are by method.

    `about` has the `serverInfo` and the `instructions` for the handshake.
    """
    if sys.stdin is None or sys.stdout is None:
        raise MemtoolError(
            "cannot start the MCP server: it needs standard input and output",
            hint=f"memtool install {AGENTS[0]}",
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
    methods = {**first, **handlers}
    try:
        while (received := client.read_next()) is not None:
            reply = _reply_to_line(client, received, methods, about["serverInfo"])
            if reply:
                client.send(reply)
    except BrokenPipeError:  # the client has disconnected
        return


def _reply_to_line(
    client: Client,
    received: Received,
    methods: Mapping[str, Handler],
    server_info: Mapping[str, Any],
) -> Message | list[Message] | None:
    """Return the reply to a line, None if it needs none."""
    if isinstance(received, list) and client.version in WITH_BATCHES and received:
        replies = [_reply(client, member, methods, server_info) for member in received]
        return [reply for reply in replies if reply is not None]
    return _reply(client, received, methods, server_info)


def _reply(
    client: Client, message: Any, methods: Mapping[str, Handler], server_info: Mapping[str, Any]
) -> Message | None:
    """Return the reply to a message; None for a notification, a response or a cancelled request."""
    if isinstance(message, Unreadable):
        return _build_error(None, message.code, message.message)
    if isinstance(message, list):
        return _build_error(None, INVALID, "a batch is empty, or not part of this revision")
    if not isinstance(message, dict):
        return _build_error(None, INVALID, "a message is a JSON object")
    id_ = message["id"] if has_valid_id(message) else None
    method, params = message.get("method"), message.get("params")
    if method is None and ("result" in message or "error" in message):
        return None
    if not isinstance(method, str):
        return _build_error(id_, INVALID, "the message has no method")
    if "id" not in message:
        return None
    if id_ is None:
        return _build_error(None, INVALID, "the id is not a text or a whole number")
    params = {} if params is None else params
    if not isinstance(params, dict):
        return _build_error(id_, BAD_PARAMS, "params is not an object")
    client.introduce(params)
    client.request_id = id_
    try:
        return {"id": id_, **_build_reply(client, methods.get(method), params, server_info)}
    except CancelledError:
        return None
    finally:
        client.request_id = None


def _initialize(
    client: Client, params: Mapping[str, Any], about: Mapping[str, Any], able: Mapping[str, Any]
) -> dict[str, Any]:
    client.info = as_dict(params.get("clientInfo"))
    client.capabilities = as_dict(params.get("capabilities"))
    wanted = params.get("protocolVersion")
    client.version = wanted if wanted in HANDSHAKES else HANDSHAKES[0]
    return {"protocolVersion": client.version, "capabilities": able, **about}


def _build_reply(
    client: Client,
    handler: Handler | None,
    params: dict[str, Any],
    server_info: Mapping[str, Any],
) -> Message:
    """Build the reply to a request: its result or its error."""
    stamp = {"_meta": {f"{META}serverInfo": server_info}} if client.is_stateless else {}
    if handler is None:
        return {"error": {"code": NO_METHOD, "message": "there is no such method"}}
    try:
        result = handler(client, params)
    except InputRequiredError as needed:
        return {"result": stamp | needed.result}
    except RequestError as error:
        data = {"data": error.data} if error.data else {}
        return {"error": {"code": BAD_PARAMS, "message": str(error), **data}}
    return {"result": {**stamp, **(COMPLETE if client.is_stateless else {}), **result}}


def _build_error(id_: str | int | None, code: int, message: str) -> Message:
    return {"id": id_, "error": {"code": code, "message": message}}


def _take_stream(number: int, flags: int) -> int:
    """Duplicate a standard stream, and redirect the original to the null device.

    So no process that a verb starts can read requests or write into the protocol.
    """
    wire = os.dup(number)
    nothing = os.open(os.devnull, flags)
    os.dup2(nothing, number)
    os.close(nothing)
    return wire
