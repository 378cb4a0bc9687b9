"""The server: sockets of this machine alone, the login link, and the file that programs read."""

from __future__ import annotations

import asyncio
import errno
import gc
import json
import os
import signal
import socket
import sys
import urllib.request
import webbrowser
from contextlib import suppress

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from memtool.calls.output import tell
from memtool.calls.run import ServedRepository
from memtool.errors import MemtoolError, find_reason
from memtool.store import files
from memtool.store.process import is_running
from memtool.web.app import ServedSite, build_application
from memtool.web.security import Guard

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

PORT = 8765
HOSTS = {"localhost": ("127.0.0.1", "::1"), "127.0.0.1": ("127.0.0.1",), "::1": ("::1",)}
"""Allowed values of MEMTOOL_HOST, and the addresses for each."""
FILE = "serve.json"
CONNECTIONS = 64
ASK_S = 5.0
HEAD_S, READ_S = 10.0, 30
"""Seconds that the head of a request may take to come, and that a client may leave an answer unread
before it is gone."""
HEADER_BYTES = 32 << 10
COLLECT = (10_000, 5, 1)
"""When the garbage collector looks for cycles: a page of a large store makes 100,000 objects that
would stay else, since the command line lets it rest."""


def serve(
    directory: str,
    env: Mapping[str, str],
    *,
    is_global: bool,
    port: int | None,
    write: bool,
    no_open: bool,
    verbose: bool,
) -> int:
    """Serve until interrupted, and return the exit code.

    Raises:
        MemtoolError: there are no memories here, or the port is taken.
    """
    place = ServedRepository(directory, env, is_global, is_structured=True)
    context = place.open()
    context.project.refuse_absent()
    number = _find_port(env, port)
    try:
        sockets = listen(env, number)
    except MemtoolError:
        link = _link_of_running(context.repository.cache_dir, number)
        if not link:
            raise
        _show(f"memtool: served already, at {link}", link, no_open=no_open)
        return 0
    try:
        number = sockets[0].getsockname()[1]
        guard = Guard(number, env.get("MEMTOOL_API_URL", ""))
        name = os.path.basename(context.repository.top or os.path.abspath(directory))
        app = build_application(ServedSite(place, guard, name or "memtool", write, verbose))
        link = guard.link()
        cache = context.repository.cache_dir
        url = f"http://{_format_host(sockets[0])}:{number}"
        before = _announce(cache, {"url": url, "token": guard.token, "pid": os.getpid()})
        about = f"memtool: {name} {'' if write else '(read only) '}at {link}"
        _show(about, link, no_open=no_open)
        _run(app, sockets)
        _withdraw(cache, before)
    finally:
        for socket_ in sockets:
            socket_.close()
    return 0


def _show(about: str, link: str, *, no_open: bool) -> None:
    """Print the login link, and open it if a person is at a terminal."""
    tell(about)
    if not no_open and sys.stdout is not None and sys.stdout.isatty():
        webbrowser.open(link)


def _link_of_running(cache: str, port: int) -> str:
    """Return a new login link from this repository's server on a port; empty if there is none."""
    about = _read_announced(cache)
    url = str(about.get("url"))
    if not url.endswith(f":{port}"):
        return ""
    try:
        token = {"Authorization": f"Bearer {about.get('token')}"}
        request = urllib.request.Request(f"{url}/login", b"", token)  # noqa: S310  # ours
        direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # never by a proxy
        with direct.open(request, timeout=ASK_S) as answer:
            return str(json.load(answer)["url"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return ""


class Connection(H11Protocol):
    """Drops a connection if the head of a request does not arrive in time.

    Without this, slow connections could take all places and lock out everyone else.
    """

    _late: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for the first request."""
        super().connection_made(transport)
        self._expect()

    def data_received(self, data: bytes) -> None:
        """Take bytes of a head or a body."""
        super().data_received(data)
        self._expect()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no more."""
        super().connection_lost(exc)
        if self._late is not None:
            self._late.cancel()

    def _expect(self) -> None:
        """Drop the connection later, unless a request is there that is not answered yet."""
        if self.cycle is not None and not self.cycle.response_complete:
            if self._late is not None:
                self._late.cancel()
                self._late = None
        elif self._late is None:
            self._late = asyncio.get_running_loop().call_later(HEAD_S, self.transport.abort)


def _run(app: object, sockets: list[socket.socket]) -> None:
    config = uvicorn.Config(
        app,  # type: ignore[arg-type]  # the type of an application is its own in each package
        http=Connection,
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        limit_concurrency=CONNECTIONS,
        timeout_keep_alive=5,
        timeout_graceful_shutdown=3,
        h11_max_incomplete_event_size=HEADER_BYTES,
    )
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # it ends like an interrupt
    gc.freeze()  # loaded modules stay loaded
    gc.set_threshold(*COLLECT)
    try:
        uvicorn.Server(config).run(sockets=sockets)
    except KeyboardInterrupt:  # how a server ends
        return


def listen(env: Mapping[str, str], port: int) -> list[socket.socket]:
    """Return sockets bound to a port of this machine; 0 takes a free one.

    Raises:
        MemtoolError: MEMTOOL_HOST does not name this machine, or the port is taken.
    """
    named = env.get("MEMTOOL_HOST") or "localhost"
    if named.strip("[]") not in HOSTS:
        raise MemtoolError(
            f"MEMTOOL_HOST must be an address of this machine, not {named[:60]!r}",
            hint=f"MEMTOOL_HOST is one of {', '.join(HOSTS)}\nfrom another machine: ssh -L",
            code="config",
        )
    addresses = HOSTS[named.strip("[]")]
    sockets: list[socket.socket] = []
    for address in addresses:
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        opened = None
        try:
            # Named as TCP, so that asyncio sends each part of an answer at once: 40 ms else.
            opened = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
            if family == socket.AF_INET6:
                opened.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if hasattr(socket, "TCP_USER_TIMEOUT"):  # Linux; connections have it from here
                opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, READ_S * 1000)
            opened.bind((address, sockets[0].getsockname()[1] if sockets else port))
            opened.listen(128)
        except OSError as error:
            if opened is not None:
                opened.close()
            # Without IPv6 no other process has the port there either.
            if sockets and error.errno != errno.EADDRINUSE:
                continue
            for bound in sockets:
                bound.close()
            raise MemtoolError(
                f"cannot use port {port}: {find_reason(error)}",
                hint="use a free port: memtool serve --port 0",
                code="port-taken",
            ) from None
        sockets.append(opened)
    return sockets


def _find_port(env: Mapping[str, str], port: int | None) -> int:
    text = env.get("MEMTOOL_PORT", "")
    if port is None and text and not (text.isascii() and text.isdigit()):
        raise MemtoolError(
            f"MEMTOOL_PORT must be a port, not {text[:20]!r}",
            hint="MEMTOOL_PORT=8765\nunset MEMTOOL_PORT",
            code="config",
        )
    number = port if port is not None else int(text[:6]) if text else PORT
    if not 0 <= number < 1 << 16:
        raise MemtoolError(f"{number} is not a port", hint="a port is a number up to 65535")
    return number


def _format_host(bound: socket.socket) -> str:
    return "[::1]" if bound.family == socket.AF_INET6 else "127.0.0.1"


def _announce(cache: str, about: Mapping[str, object]) -> dict[str, object]:
    """Write the server's address and token for programs of the same user.

    Return the entry of another server of this repository, which is restored later.
    """
    before = _read_announced(cache)
    try:
        os.makedirs(cache, mode=0o700, exist_ok=True)
        files.write_private(cache, FILE, json.dumps(about).encode() + b"\n")
    except OSError as error:
        raise MemtoolError(f"cannot write {FILE}: {find_reason(error)}", code="disk") from None
    return before


def _withdraw(cache: str, before: Mapping[str, object]) -> None:
    """Remove the file, unless another server has written its own or still runs since before."""
    if _read_announced(cache).get("pid") != os.getpid():
        return
    with suppress(OSError, MemtoolError):
        os.unlink(os.path.join(cache, FILE))
        pid = before.get("pid")
        if isinstance(pid, int) and pid > 0 and pid != os.getpid() and is_running(pid):
            _announce(cache, before)


def _read_announced(cache: str) -> dict[str, object]:
    """Return the content of the file; nothing if it cannot be read."""
    try:
        announced = json.loads(files.read_regular(os.path.join(cache, FILE)))
    except (OSError, ValueError):
        return {}
    return announced if isinstance(announced, dict) else {}
