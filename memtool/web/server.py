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
from memtool.errors import MemtoolError, reason_of
from memtool.store import files
from memtool.store.process import is_running
from memtool.web.app import ServedSite, application
from memtool.web.security import Guard

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

PORT = 8765
HOSTS = {"localhost": ("127.0.0.1", "::1"), "127.0.0.1": ("127.0.0.1",), "::1": ("::1",)}
"""What MEMTOOL_HOST may say, and what is listened on then."""
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
    """Serve until somebody interrupts it, and return the exit code.

    Raises:
        MemtoolError: there are no memories here, or the port is taken.
    """
    place = ServedRepository(directory, env, is_global, is_structured=True)
    context = place.open()
    context.project.refuse_absent()
    number = _port(env, port)
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
        app = application(ServedSite(place, guard, name or "memtool", write, verbose))
        link = guard.link()
        cache = context.repository.cache_dir
        url = f"http://{_host(sockets[0])}:{number}"
        before = _announce(cache, {"url": url, "token": guard.token, "pid": os.getpid()})
        about = f"memtool: {name} {'' if write else '(read only) '}at {link}"
        _show(about, link, no_open=no_open)
        _run(app, sockets)
        _withdraw(cache, before)
    finally:
        for one in sockets:
            one.close()
    return 0


def _show(about: str, link: str, *, no_open: bool) -> None:
    """Tell the link, and open it where a person is at a terminal."""
    tell(about)
    if not no_open and sys.stdout is not None and sys.stdout.isatty():
        webbrowser.open(link)


def _link_of_running(cache: str, port: int) -> str:
    """Return a new login link of the server of this repository on a port; empty where none is."""
    about = _announced(cache)
    url = str(about.get("url"))
    if not url.endswith(f":{port}"):
        return ""
    try:
        token = {"Authorization": f"Bearer {about.get('token')}"}
        asked = urllib.request.Request(f"{url}/login", b"", token)  # noqa: S310  # ours
        direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # never by a proxy
        with direct.open(asked, timeout=ASK_S) as answer:
            return str(json.load(answer)["url"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return ""


class Connection(H11Protocol):
    """A connection that is dropped where a head does not come in time, byte by byte or never.

    Without this as many of them as there may be would keep everybody else out.
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
    gc.freeze()  # what is loaded stays
    gc.set_threshold(*COLLECT)
    try:
        uvicorn.Server(config).run(sockets=sockets)
    except KeyboardInterrupt:  # how a server ends
        return


def listen(env: Mapping[str, str], port: int) -> list[socket.socket]:
    """Return sockets that are bound to a port of this machine, 0 for a free one.

    Raises:
        MemtoolError: MEMTOOL_HOST is no name of this machine, or the port is taken.
    """
    named = env.get("MEMTOOL_HOST") or "localhost"
    if named.strip("[]") not in HOSTS:
        raise MemtoolError(
            f"MEMTOOL_HOST is {named[:60]!r}, and memtool serves this machine alone",
            hint=f"MEMTOOL_HOST is one of {', '.join(HOSTS)}; a tunnel (ssh -L) leads here",
            code="config",
        )
    addresses = HOSTS[named.strip("[]")]
    found: list[socket.socket] = []
    for address in addresses:
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        one = None
        try:
            # Named as TCP, so that asyncio sends each part of an answer at once: 40 ms else.
            one = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
            if family == socket.AF_INET6:
                one.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if hasattr(socket, "TCP_USER_TIMEOUT"):  # Linux; connections have it from here
                one.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, READ_S * 1000)
            one.bind((address, found[0].getsockname()[1] if found else port))
            one.listen(128)
        except OSError as error:
            if one is not None:
                one.close()
            if found and error.errno != errno.EADDRINUSE:  # no IPv6 here: nobody else has it
                continue
            for bound in found:
                bound.close()
            raise MemtoolError(
                f"port {port} cannot be used: {reason_of(error)}",
                hint="memtool serve --port 0 takes a free one",
                code="port-taken",
            ) from None
        found.append(one)
    return found


def _port(env: Mapping[str, str], port: int | None) -> int:
    text = env.get("MEMTOOL_PORT", "")
    if port is None and text and not (text.isascii() and text.isdigit()):
        raise MemtoolError(
            f"MEMTOOL_PORT is {text[:20]!r}, which is no port",
            hint="MEMTOOL_PORT=8765, or unset it",
            code="config",
        )
    number = port if port is not None else int(text[:6]) if text else PORT
    if not 0 <= number < 1 << 16:
        raise MemtoolError(f"{number} is no port", hint="a port is a number up to 65535")
    return number


def _host(bound: socket.socket) -> str:
    return "[::1]" if bound.family == socket.AF_INET6 else "127.0.0.1"


def _announce(cache: str, about: Mapping[str, object]) -> dict[str, object]:
    """Write where the server is, and its token, for programs of the same user.

    Return what another server of this repository had written, which is its own again later.
    """
    before = _announced(cache)
    try:
        os.makedirs(cache, mode=0o700, exist_ok=True)
        files.put(cache, FILE, json.dumps(about).encode() + b"\n")
    except OSError as error:
        raise MemtoolError(f"{FILE} cannot be written: {reason_of(error)}", code="disk") from None
    return before


def _withdraw(cache: str, before: Mapping[str, object]) -> None:
    """Remove the file, unless another server has written its own or still runs since before."""
    if _announced(cache).get("pid") != os.getpid():
        return
    with suppress(OSError, MemtoolError):
        os.unlink(os.path.join(cache, FILE))
        pid = before.get("pid")
        if isinstance(pid, int) and pid > 0 and pid != os.getpid() and is_running(pid):
            _announce(cache, before)


def _announced(cache: str) -> dict[str, object]:
    """Return what the file says, nothing where there is none that can be read."""
    try:
        found = json.loads(files.read_regular(os.path.join(cache, FILE)))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
