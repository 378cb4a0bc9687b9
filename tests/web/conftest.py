"""The application in process, and a real server on a made-up repository."""

from __future__ import annotations

import asyncio
import http.client
import json
import subprocess
import sys
import weakref
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import pytest

from memtool.calls.run import ServedRepository
from memtool.web import state
from memtool.web.app import ServedSite, build_application
from memtool.web.security import COOKIE, Guard

if TYPE_CHECKING:
    from conftest import Sandbox

PORT = 8765


class Reply:
    """A reply of the server."""

    def __init__(self, status: int, headers: dict[str, str], body: bytes) -> None:
        self.status = status
        self.headers = headers
        self.body = body
        self.text = body.decode()

    def json(self) -> Any:
        return json.loads(self.text)


class Web:
    """The application of one repository, asked in process as a browser that is logged in."""

    def __init__(self, sandbox: Sandbox, *, is_writing: bool = False) -> None:
        self.env = dict(sandbox.env)
        place = ServedRepository(str(sandbox.path), self.env, is_structured=True)
        self.guard = Guard(PORT)
        self.loop = asyncio.Runner()  # what a request begins goes on in the next one
        weakref.finalize(self, self.loop.close)
        self.app = build_application(ServedSite(place, self.guard, "project", is_writing))
        self.cookie = ""
        self.cookie = self.login(self.guard.link()).headers["set-cookie"].partition(";")[0]

    @property
    def nonce(self) -> str:
        return self.guard._sessions[self.cookie.removeprefix(f"{COOKIE}=")]

    def login(self, link: str) -> Reply:
        return self.ask("GET", link.removeprefix(f"http://{self.guard.site}"))

    def get(self, address: str, **headers: str) -> Reply:
        return self.ask("GET", address, **headers)

    def post(self, address: str, payload: Any, **headers: str) -> Reply:
        """Post JSON as a program with the token of the server."""
        own_headers = {"authorization": f"Bearer {self.guard.token}", "cookie": ""}
        own_headers["content-type"] = "application/json"
        return self.ask("POST", address, json.dumps(payload).encode(), **(own_headers | headers))

    def form(
        self, address: str, fields: dict[str, str] | list[tuple[str, str]], **headers: str
    ) -> Reply:
        """Post a form as the browser does."""
        own_headers = {"origin": f"http://{self.guard.site}", "sec-fetch-site": "same-origin"}
        own_headers["content-type"] = "application/x-www-form-urlencoded"
        return self.ask("POST", address, urlencode(fields).encode(), **(own_headers | headers))

    def ask(self, method: str, address: str, body: bytes = b"", **headers: str) -> Reply:
        path, _mark, query = address.partition("?")
        own_headers = {"host": self.guard.site, "cookie": self.cookie} | {
            name.replace("_", "-"): value for name, value in headers.items()
        }
        scope = {
            "type": "http",
            "http_version": "1.1",
            "method": method,
            "path": path,
            "raw_path": path.encode(),
            "query_string": query.encode(),
            "scheme": "http",
            "root_path": "",
            "server": ("127.0.0.1", PORT),
            "client": ("127.0.0.1", 1),
            "headers": [(k.encode(), v.encode()) for k, v in own_headers.items() if v],
        }
        sent: list[dict[str, Any]] = []
        parts = iter([{"type": "http.request", "body": body, "more_body": False}])

        async def receive() -> Any:
            return next(parts, None) or await asyncio.Event().wait()  # the client stays

        async def send(message: Any) -> None:
            sent.append(message)

        self.loop.run(self.app(scope, receive, send))
        reply_headers = {k.decode(): v.decode() for k, v in sent[0]["headers"]}
        return Reply(
            sent[0]["status"], reply_headers, b"".join(m.get("body", b"") for m in sent[1:])
        )


@pytest.fixture(autouse=True)
def _looks_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let each request see what changed just before, which a server sees within a second."""
    monkeypatch.setattr(state, "MAX_S", 0.0)


@pytest.fixture
def web(sandbox: Sandbox) -> Web:
    """The application over the empty repository of the test, which reads only."""
    return Web(sandbox)


@pytest.fixture
def writer(sandbox: Sandbox) -> Web:
    """The application that may write."""
    return Web(sandbox, is_writing=True)


class Running:
    """A server as a process of its own: its login link, its address, its token."""

    def __init__(self, process: subprocess.Popen[str], link: str, about: dict[str, Any]) -> None:
        self.process = process
        self.link = link
        self.url = about["url"]
        self.token = about["token"]
        self.port = int(self.url.rpartition(":")[2])

    def ask(self, path: str, payload: Any = None, **headers: str) -> Reply:
        """Ask as a program with the token, which posts what is given."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        own_headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        body = None if payload is None else json.dumps(payload)
        connection.request("POST" if body else "GET", path, body, own_headers | headers)
        answer = connection.getresponse()
        reply = Reply(answer.status, dict(answer.getheaders()), answer.read())
        connection.close()
        return reply


@contextmanager
def running(
    sandbox: Sandbox, code: str = "", flags: tuple[str, ...] = ("--write",)
) -> Iterator[Running]:
    """Run a server on the repository of a test, on a free port, that may write by default.

    `code` may shorten a deadline before it begins.
    """
    main = f"{code}\nfrom memtool.cli.main import command\ncommand()"
    argv = [sys.executable, "-c", main, "serve", "--port", "0", "--no-open", *flags]
    with subprocess.Popen(
        argv, cwd=sandbox.path, env=sandbox.env, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        line = process.stderr.readline()
        assert " at http://memtool-" in line, line
        about = json.loads((sandbox.path / ".git/memtool/serve.json").read_text())
        try:
            yield Running(process, line.split(" at ")[1].strip(), about)
        finally:
            process.terminate()
            stderr = process.stderr.read()
    assert "Traceback" not in stderr, stderr
    assert process.returncode == 0


@pytest.fixture
def server(sandbox: Sandbox) -> Iterator[Running]:
    """A real server; its file is gone when it ends."""
    with running(sandbox) as served:
        yield served
    assert not (sandbox.path / ".git/memtool/serve.json").exists()


@pytest.fixture
def serving(sandbox: Sandbox) -> Callable[..., AbstractContextManager[Running]]:
    """Run servers of the repository of the test."""
    return partial(running, sandbox)
