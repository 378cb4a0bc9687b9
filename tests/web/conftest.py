"""The application in process, and a real server on a made-up repository."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import pytest

from memtool.rpc.call import ServedRepository
from memtool.web.app import ServedSite, application
from memtool.web.security import COOKIE, Guard

if TYPE_CHECKING:
    from conftest import Sandbox

PORT = 8765


class Reply:
    """What came back."""

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
        self.app = application(ServedSite(place, self.guard, "project", is_writing))
        self.cookie = ""
        self.cookie = self.login(self.guard.link()).headers["set-cookie"].partition(";")[0]

    @property
    def nonce(self) -> str:
        return self.guard._sessions[self.cookie.removeprefix(f"{COOKIE}=")]

    def login(self, link: str) -> Reply:
        return self.ask("GET", link.removeprefix(f"http://{self.guard.site}"))

    def get(self, address: str, **headers: str) -> Reply:
        return self.ask("GET", address, **headers)

    def post(self, address: str, given: Any, **headers: str) -> Reply:
        """Post JSON as a program with the token of the server."""
        known = {"authorization": f"Bearer {self.guard.token}", "cookie": ""}
        known["content-type"] = "application/json"
        return self.ask("POST", address, json.dumps(given).encode(), **(known | headers))

    def form(self, address: str, fields: dict[str, str], **headers: str) -> Reply:
        """Post a form as the browser does."""
        known = {"origin": f"http://{self.guard.site}", "sec-fetch-site": "same-origin"}
        known["content-type"] = "application/x-www-form-urlencoded"
        return self.ask("POST", address, urlencode(fields).encode(), **(known | headers))

    def ask(self, method: str, address: str, body: bytes = b"", **headers: str) -> Reply:
        path, _mark, query = address.partition("?")
        known = {"host": self.guard.site, "cookie": self.cookie} | {
            name.replace("_", "-"): value for name, value in headers.items()
        }
        scope = {
            "type": "http", "http_version": "1.1", "method": method, "path": path,
            "raw_path": path.encode(), "query_string": query.encode(), "scheme": "http",
            "root_path": "", "server": ("127.0.0.1", PORT), "client": ("127.0.0.1", 1),
            "headers": [(k.encode(), v.encode()) for k, v in known.items() if v],
        }  # fmt: skip
        sent: list[dict[str, Any]] = []
        parts = iter([{"type": "http.request", "body": body, "more_body": False}])

        async def receive() -> Any:
            return next(parts, None) or await asyncio.Event().wait()  # the client stays

        async def send(message: Any) -> None:
            sent.append(message)

        asyncio.run(self.app(scope, receive, send))
        found = {k.decode(): v.decode() for k, v in sent[0]["headers"]}
        return Reply(sent[0]["status"], found, b"".join(m.get("body", b"") for m in sent[1:]))


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

    def __init__(self, link: str, about: dict[str, Any]) -> None:
        self.link = link
        self.url = about["url"]
        self.token = about["token"]


@pytest.fixture
def server(sandbox: Sandbox) -> Iterator[Running]:
    """A real server on the repository of the test, on a free port, that may write."""
    argv = [sys.executable, "-m", "memtool", "serve", "--port", "0", "--no-open", "--write"]
    with subprocess.Popen(
        argv, cwd=sandbox.path, env=sandbox.env, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        line = process.stderr.readline()
        assert " at http://memtool-" in line, line
        place = sandbox.path / ".git/memtool/serve.json"
        yield Running(line.split(" at ")[1].strip(), json.loads(place.read_text()))
        process.terminate()
        process.stderr.read()
    assert not place.exists()
