"""The transport: standard input and output as a connection of the `mcp` package.

This module alone knows the event loop of the package, `server` its types. A client that closes the
connection ends it; nothing that a client sends does. Standard output belongs to the protocol, so
messages for a person go to standard error.

The package would cancel what is open when its input ends, so that `memtool mcp < FILE` printed
nothing, and would wait for ever where a client closes only the other direction. So its streams
pass through here: the end of the input is handed on when every request has its answer.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

import anyio
import anyio.to_thread
from mcp import types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.shared.exceptions import MCPError
from mcp.shared.message import SessionMessage

from memtool.cli.output import tell
from memtool.errors import MemtoolError
from memtool.version import __version__

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TextIO, TypeVar

    from mcp.server.context import ServerRequestContext

    Found = TypeVar("Found")
    RequestContext = ServerRequestContext[Any]

MOST_NAME = 60
CANCELLED = "notifications/cancelled"
ROOTS_TIMEOUT_S, LAST_ANSWERS_S = 5.0, 60.0


class Turns:
    """Calls run one after another in a thread.

    The loop stays free to answer, and no two verbs of one client write at once. The locks of the
    verbs keep other processes apart.
    """

    def __init__(self) -> None:
        self._one = anyio.CapacityLimiter(1)

    async def take(self, work: Callable[[], Found]) -> Found:
        """Do something when it is its turn, and to its end."""
        return await anyio.to_thread.run_sync(work, limiter=self._one)


def refused(message: str, code: str = "") -> MCPError:
    """Return the error of a request that is no call of a tool."""
    return MCPError(types.INVALID_PARAMS, message, {"code": code} if code else None)


def run(name: str, title: str, instructions: str, handlers: dict[str, Any]) -> None:
    """Answer requests with handlers, by the name that the package has for each, to the end."""
    if sys.stdin is None or sys.stdout is None:
        raise MemtoolError(
            "an MCP server needs standard input and output", hint="let a host run it"
        )
    if sys.stdin.isatty():
        tell("memtool: this is for a host to start; end of input ends it")
    server: Server[Any] = Server(
        name, version=__version__, title=title, instructions=instructions, **handlers
    )
    try:
        anyio.run(_serve, server)
    except BaseExceptionGroup as group:
        _left, other = group.split(ConnectionError)  # the client is gone, or hears nothing more
        if other is not None:
            raise


def client_of(context: RequestContext) -> str:
    """Return the name of the program at the other end; empty where it gives none, or an odd one."""
    client = context.session.client_params
    name = " ".join(client.client_info.name.split())[:MOST_NAME] if client is not None else ""
    return name if name.isprintable() else ""


async def roots(context: RequestContext) -> list[str]:
    """Return the directories that a client works in; none where it names none."""
    able = context.session.client_capabilities
    if able is None or able.roots is None:
        return []
    request = types.ListRootsRequest()
    try:
        found = await context.session.send_request(
            request, types.ListRootsResult, request_read_timeout_seconds=ROOTS_TIMEOUT_S
        )
    except (MCPError, ValueError):
        return []
    parts = [urlsplit(str(root.uri)) for root in found.roots]
    return [unquote(part.path) for part in parts if part.scheme == "file" and part.path]


class _InputLines:
    """Standard input, line by line. A read that is cancelled is abandoned in its thread."""

    def __init__(self, file: TextIO) -> None:
        self.file = file

    def __aiter__(self) -> _InputLines:
        return self

    async def __anext__(self) -> str:
        line = await anyio.to_thread.run_sync(self.file.readline, abandon_on_cancel=True)
        if not line:
            raise StopAsyncIteration
        return line


async def _serve(server: Server[Any]) -> None:
    lines: Any = _InputLines(_private_input())
    open_ = _OpenRequests()
    to_server, for_server = anyio.create_memory_object_stream[SessionMessage | Exception]()
    from_server, answers = anyio.create_memory_object_stream[SessionMessage]()

    async def hand_in() -> None:
        async with to_server:
            async for item in incoming:
                open_.add(item)
                await to_server.send(item)
            await open_.all_answered()

    async def hand_out() -> None:
        async with outgoing:
            async for item in answers:
                await outgoing.send(item)
                open_.settle(item.message)

    async with (
        stdio_server(stdin=lines) as (incoming, outgoing),
        anyio.create_task_group() as group,
    ):
        group.start_soon(hand_in)
        group.start_soon(hand_out)
        await server.run(for_server, from_server, server.create_initialization_options())


class _OpenRequests:
    """The requests that wait for an answer."""

    def __init__(self) -> None:
        self.ids: set[types.RequestId] = set()
        self.changed = anyio.Event()

    def add(self, item: SessionMessage | Exception) -> None:
        """Note a message of the client, if it is a request."""
        message = None if isinstance(item, Exception) else item.message
        if isinstance(message, types.JSONRPCRequest):
            self.ids.add(message.id)
        elif isinstance(message, types.JSONRPCNotification) and message.method == CANCELLED:
            self._drop((message.params or {}).get("requestId"))  # it gets no answer

    def settle(self, message: types.JSONRPCMessage) -> None:
        """Note a message to the client, if it is an answer."""
        if isinstance(message, types.JSONRPCResponse | types.JSONRPCError):
            self._drop(message.id)

    def _drop(self, id_: types.RequestId | None) -> None:
        if id_ in self.ids:
            self.ids.remove(id_)
            self.changed.set()

    async def all_answered(self) -> None:
        """Wait until nothing is open any more, but not for ever."""
        with anyio.move_on_after(LAST_ANSWERS_S):
            while self.ids:
                self.changed = anyio.Event()
                await self.changed.wait()


def _private_input() -> TextIO:
    """Return standard input as a file of its own: what a verb starts reads nothing of it."""
    wire = os.dup(0)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    return open(wire, encoding="utf-8", errors="replace")
