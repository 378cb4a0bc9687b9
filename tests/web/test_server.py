"""The server on real sockets: writers at once, slow clients, two servers, a lost repository."""

from __future__ import annotations

import json
import os
import socket
import struct
import subprocess
import sys
import sysconfig
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import memtool
from memtool import installation
from memtool.web.server import CONNECTIONS

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager
    from typing import Any

    from conftest import Sandbox

    Running = Any
    Serving = Callable[..., AbstractContextManager[Running]]

WRITERS, EACH = 8, 3
WORDS = "amber birch cedar delta ember flint grove heron iris jasper kelp lotus"
HASTE = "from memtool.web import app, server; server.HEAD_S = 3; server.READ_S = app.BODY_S = 2"
PATIENCE_S = 30.0


@pytest.mark.slow
def test_eight_writers_at_once_lose_nothing(sandbox: Sandbox, server: Running) -> None:
    """Each answer names a path that is in HEAD, each id is there once, and nothing is left over."""
    begin = threading.Barrier(WRITERS)

    def write(client: int) -> list[str]:
        begin.wait(PATIENCE_S)
        paths = []
        for number in range(EACH):
            answer = server.ask("/api/new", _build_body(client, number))
            assert answer.status == 200, answer.text
            paths.append(answer.json()["value"]["path"])
        return paths

    with ThreadPoolExecutor(WRITERS) as pool:
        paths = [path for some in pool.map(write, range(WRITERS)) for path in some]
    assert len(set(paths)) == WRITERS * EACH
    assert set(paths) == set(sandbox.git("ls-tree", "-r", "--name-only", "HEAD").split())
    assert sandbox.git("status", "--porcelain") == ""
    assert len(sandbox.git("log", "--format=%H").split()) == WRITERS * EACH


@pytest.mark.slow
def test_a_slow_client_is_dropped_and_the_others_are_answered(
    sandbox: Sandbox, serving: Serving
) -> None:
    """Single bytes, a head or body that never ends, an answer that is never read."""
    for number in range(40):
        sandbox.memory(f"dec-{number}", f"{number} " + WORDS * 100)
    with serving(HASTE) as server:
        assert server.ask("/api/list", {}).status == 200  # the index is there
        token = f"Authorization: Bearer {server.token}"
        head = f"POST /api/list HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\n{token}\r\n"
        head += "Content-Type: application/json\r\nContent-Length: "
        never, drop, body, unread = (_connect(server) for _client in range(4))
        body.sendall(f"{head}9\r\n\r\n{{".encode())
        unread.sendall(f"{head}2\r\n\r\n{{}}".encode() * 2_000)
        with pytest.raises(OSError, match=r"reset|pipe"):  # noqa: PT012  # whichever byte it is
            for byte in f"{head}9\r\nX-Long: {'x' * 3_000}".encode():
                drop.sendall(bytes([byte]))
                assert server.ask("/health").status == 200
                time.sleep(0.02)
        assert never.recv(1) == b""
        assert body.recv(100).startswith(b"HTTP/1.1 408 ")
        with pytest.raises(ConnectionResetError):  # noqa: PT012
            end = time.monotonic() + PATIENCE_S
            while time.monotonic() < end:
                unread.send(b" ")
                time.sleep(0.1)
        assert server.ask("/health").status == 200
        for sock in (never, drop, body, unread):
            sock.close()


@pytest.mark.parametrize("ending", [b"", b"5\r\n", b"not a length\r\n"])
@pytest.mark.parametrize("path", ["/api/list", "/nothing", "/new"])
def test_a_client_that_closes_early_is_no_error(server: Running, path: str, ending: bytes) -> None:
    """Its request is dropped without a traceback, which the fixture looks for in stderr."""
    head = (
        f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\n"
        f"Authorization: Bearer {server.token}\r\nContent-Type: application/json\r\n"
    )
    for length in ("Content-Length: 900", "Transfer-Encoding: chunked"):
        for is_reset in (False, True):
            client = _connect(server)
            client.sendall(f"{head}{length}\r\n\r\n".encode() + ending)
            if is_reset:
                client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            client.close()
    assert server.ask("/health").status == 200


@pytest.mark.slow
def test_more_connections_than_the_limit_are_refused_until_some_end(serving: Serving) -> None:
    """Idle connections are dropped, so new clients do not wait for long."""
    with serving(HASTE) as server:
        sockets = [_connect(server) for _client in range(CONNECTIONS)]
        assert server.ask("/health").status == 503
        for sock in sockets:
            assert sock.recv(1) == b""
            sock.close()
        assert server.ask("/health").status == 200


@pytest.mark.slow
def test_two_servers_of_one_repository_share_it(sandbox: Sandbox, serving: Serving) -> None:
    """Programs find the last that began, and the first again when that one ends."""
    sandbox.memory("dec-a", "Redis keeps the sessions.\n")
    sandbox.commit()
    place = sandbox.path / ".git/memtool/serve.json"
    with serving() as first:
        announced = place.read_text()
        with serving() as second:
            assert json.loads(place.read_text())["url"] == second.url
            for number, server in enumerate((first, second)):
                written = server.ask("/api/new", _build_body(number, 0))
                assert written.status == 200, written.text
            for server in (first, second):
                assert server.ask("/api/list", {}).json()["value"]["total"] == 3
        assert json.loads(place.read_text()) == json.loads(announced)
        assert first.ask("/api/list", {}).status == 200
    assert not place.exists()


@pytest.mark.slow
def test_a_server_goes_on_when_its_repository_is_lost_or_rewritten(
    sandbox: Sandbox, serving: Serving
) -> None:
    """A page names the problem while it lasts; afterwards it works again."""
    sandbox.memory("dec-a", "Redis keeps the sessions.\n")
    sandbox.commit()
    sandbox.memory("dec-b", "Redis is gone.\n")
    sandbox.commit()
    place, away = sandbox.path / ".git", sandbox.path / "away"
    with serving() as server:
        assert _until(server, "/m/dec-b", 200).status == 200
        sandbox.git("reset", "--quiet", "--hard", "HEAD~1")
        sandbox.git("reflog", "expire", "--expire=now", "--all")
        sandbox.git("gc", "--quiet", "--prune=now")
        gone = _until(server, "/m/dec-b", 404)
        assert "dec-b" in gone.text
        assert _until(server, "/m/dec-a", 200).status == 200
        place.rename(away)
        lost = _until(server, "/", 422).text
        assert "is not in a git repository" in lost
        refused = server.ask("/api/list", {}).json()["error"]
        assert (refused["code"], "-C" in refused["hint"]) == ("no-repository", False)
        away.rename(place)
        assert "dec-a" in _until(server, "/search?q=redis", 200).text


@pytest.mark.parametrize("name", ["jinja2", "starlette", "uvicorn"])
def test_a_missing_package_is_one_sentence(sandbox: Sandbox, tmp_path: Path, name: str) -> None:
    """All that is installed but one package is on the path, as without the extra."""
    packages = tmp_path / "packages"
    packages.mkdir()
    for package in Path(sysconfig.get_path("purelib")).iterdir():
        if not package.name.startswith((name, "__editable__", "memtool")):
            (packages / package.name).symlink_to(package)
    path = f"{packages}{os.pathsep}{Path(memtool.__file__).parents[1]}"
    done = subprocess.run(
        [sys.executable, "-S", "-m", "memtool", "serve", "--no-open", "--port", "0"],
        check=False,
        capture_output=True,
        text=True,
        cwd=sandbox.path,
        env={**sandbox.env, "PYTHONPATH": path},
    )
    assert done.returncode == 2
    assert done.stderr == (
        f"memtool: cannot start the web view: {name} is not installed\n"
        f"hint: {installation.install('web')}\n"
    )


def _build_body(client: int, number: int) -> dict[str, Any]:
    """Return what makes a memory that is like no other one."""
    word = f"{WORDS.split()[client]}{number}"
    body = " ".join(f"{word}{other}" for other in WORDS.split())
    return {"type": "semantic", "title": f"{word} is told", "body": body, "commit": True}


def _connect(server: Running) -> socket.socket:
    return socket.create_connection(("127.0.0.1", server.port), PATIENCE_S)


def _until(server: Running, path: str, status: int) -> Any:
    """Ask until the answer has a status: a page may be a second old."""
    end = time.monotonic() + PATIENCE_S
    while (reply := server.ask(path)).status != status and time.monotonic() < end:
        time.sleep(0.1)
    assert reply.status == status, reply.text
    return reply
