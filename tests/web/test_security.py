from __future__ import annotations

import json
import urllib.error
import urllib.request
from typing import TYPE_CHECKING

import pytest

from memtool.errors import MemtoolError
from memtool.web.security import Guard

if TYPE_CHECKING:
    from typing import Any

    from conftest import Sandbox

    Running = Web = Any


@pytest.mark.parametrize(
    "host",
    ["evil.test", "evil.test:8765", "127.0.0.1", "localhost:1", "", "127.0.0.1:8765.evil.test"],
)
@pytest.mark.parametrize("path", ["/", "/health", "/login", "/static/style.css"])
def test_a_foreign_name_is_misdirected(web: Web, host: str, path: str):
    """A page that rebinds its own name to this machine gets nothing, not even health."""
    assert web.get(path, host=host).status == 421


def test_a_login_link_works_once(sandbox: Sandbox, web: Web):
    """It leads to the first page with a cookie that no script reads; a second use is refused."""
    link = web.guard.link()
    first = web.login(link)
    assert (first.status, first.headers["location"]) == (303, "/")
    assert "HttpOnly" in first.headers["set-cookie"]
    assert "SameSite=strict" in first.headers["set-cookie"]
    assert web.guard.token not in first.headers["set-cookie"]
    assert web.login(link).status == 403


def test_nobody_is_let_in_without_a_login(web: Web):
    """Neither without a cookie, nor with another one, nor with ours under another name."""
    assert web.get("/search", cookie="").status == 401
    assert web.get("/search", cookie="memtool=x").status == 401
    assert web.get("/search", host="localhost:8765").status == 401
    assert web.get("/search", authorization="Bearer x").status == 401
    assert web.get("/search").status == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "http://evil.test"},
        {"origin": "null"},
        {"origin": "http://127.0.0.1:1"},
        {"sec_fetch_site": "cross-site"},
        {"sec_fetch_site": "same-site"},
    ],
)
def test_another_site_cannot_ask(web: Web, headers: dict[str, str]):
    """A page of another origin, another port among them, is refused though it has our cookie."""
    assert web.get("/search", **headers).status == 403
    assert web.form("/do/pin", {"id": "dec-a"}, **headers).status == 403


def test_a_form_needs_an_origin_and_the_nonce_of_its_session(sandbox: Sandbox, writer: Web):
    """A request from another page changes nothing; one from ours is carried out."""
    path = sandbox.memory("dec-a")
    sandbox.commit()
    before = (sandbox.path / path).read_text()
    assert writer.form("/do/pin", {"id": "dec-a", "nonce": writer.nonce}, origin="").status == 403
    assert writer.form("/do/pin", {"id": "dec-a", "nonce": "x"}).status == 403
    assert (sandbox.path / path).read_text() == before
    done = writer.form("/do/pin", {"id": "dec-a", "nonce": writer.nonce, "next": "//evil.test"})
    assert (done.status, done.headers["location"]) == (303, "/")
    assert "status: pinned" in (sandbox.path / path).read_text()


def test_a_server_that_reads_writes_nothing(sandbox: Sandbox, web: Web):
    """Neither by a form nor by a program; dry runs are allowed."""
    sandbox.memory("dec-a")
    sandbox.commit()
    assert web.form("/do/pin", {"id": "dec-a", "nonce": web.nonce}).status == 403
    refused = web.post("/api/pin", {"id": "dec-a"})
    assert (refused.status, refused.json()["error"]["code"]) == (403, "read-only")
    assert web.post("/api/pin", {"id": "dec-a", "dry_run": True}).status == 200
    assert sandbox.git("status", "--porcelain") == ""


def test_every_answer_forbids_what_is_not_ours(web: Web):
    """A page runs no inline code, loads nothing from elsewhere, and sends no referrer."""
    for path in ("/search", "/health", "/static/script.js", "/nothing"):
        headers = web.get(path).headers
        assert "default-src 'none'" in headers["content-security-policy"]
        assert "unsafe" not in headers["content-security-policy"]
        assert headers["referrer-policy"] == "same-origin"


@pytest.mark.parametrize(
    "address",
    [
        "http://evil.test",
        "https://localhost",
        "http://0.0.0.0:1",
        "x",
        "http://localhost/x",
        "http://localhost:x",
    ],
)
def test_an_outside_address_is_of_this_machine(address: str):
    """MEMTOOL_API_URL cannot let another name in."""
    with pytest.raises(MemtoolError, match="must be an address on this machine"):
        Guard(1, address)


def test_a_tunnel_is_let_in():
    """MEMTOOL_API_URL names the port under which clients come."""
    assert "localhost:9000" in Guard(1, "http://localhost:9000").hosts


@pytest.mark.slow
def test_a_real_server_serves_its_owner_alone(sandbox: Sandbox, server: Running):
    """The file with the token is private; who has it asks, a long body and a foreign host not."""
    place = sandbox.path / ".git/memtool/serve.json"
    assert place.stat().st_mode & 0o777 == 0o600

    def ask(path: str, body: bytes | None = None, **headers: str) -> int:
        own_headers = {
            "Authorization": f"Bearer {server.token}",
            "Content-Type": "application/json",
        }
        request = urllib.request.Request(server.url + path, body, own_headers | headers)
        try:
            with urllib.request.urlopen(request, timeout=20) as answer:
                return int(answer.status)
        except urllib.error.HTTPError as error:
            return error.code

    assert ask("/api/search", json.dumps({"query": "x"}).encode()) == 200
    assert ask("/health", Authorization="") == 200
    assert ask("/", Authorization="") == 401
    assert ask("/health", Host="evil.test") == 421
    assert ask("/api/search", b'{"query": "' + b"x" * (1 << 20) + b'"}') == 413
    port = server.url.rpartition(":")[2]
    again = sandbox.process("serve", "--port", port, "--no-open")
    assert (again.returncode, "served already, at http://memtool-" in again.stderr) == (0, True)
    assert server.link not in again.stderr
