from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import ClassVar

import pytest

from memtool.store.sites import check_sites, is_public


class Site(BaseHTTPRequestHandler):
    """Answers each path by the status that it names, and keeps what was sent."""

    seen: ClassVar[list[tuple[str, str, dict[str, str]]]] = []

    def do_HEAD(self) -> None:
        self.seen.append((self.command, self.path, dict(self.headers)))
        word = self.path.strip("/").partition("?")[0]
        if word == "torn":
            self.wfile.write(b"nothing that one could read\r\n\r\n")
            return
        self.send_response(int(word))
        self.send_header("Location", "/404")
        self.end_headers()

    def log_message(self, *_args: object) -> None: ...


@pytest.fixture
def site() -> Iterator[str]:
    server = HTTPServer(("127.0.0.1", 0), Site)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    Site.seen.clear()
    yield f"http://someone:hidden@127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def test_one_request_tells_what_became_of_a_page(site: str) -> None:
    """A redirect is an answer and not followed; refusals and faults prove nothing."""
    paths = ("200", "302", "404", "410", "403", "500", "torn")
    results = check_sites(
        (f"{site}/{path}?a=b c" for path in paths), is_allowed=lambda _number: True
    )
    assert {path: results[f"{site}/{path}?a=b c"][0] for path in paths} == {
        "200": "ok",
        "302": "ok",
        "404": "dead",
        "410": "dead",
        "403": "unknown",
        "500": "unknown",
        "torn": "unknown",
    }
    assert sorted(path for _verb, path, _headers in Site.seen) == sorted(
        f"/{path}?a=b%20c" for path in paths
    )
    for verb, _path, headers in Site.seen:
        assert verb == "HEAD"
        assert not {"Authorization", "Cookie", "Referer"} & set(headers)
        assert "hidden" not in str(headers)


def test_what_is_not_of_the_internet_is_not_asked(site: str) -> None:
    """Nothing is sent there."""
    assert check_sites([f"{site}/404"])[f"{site}/404"][0] == "unknown"
    assert Site.seen == []


def test_what_does_not_answer_is_unknown() -> None:
    """A closed port, and a host name that does not exist."""
    results = check_sites(
        ["http://127.0.0.1:1/", "https://127.0.0.1:1/"], is_allowed=lambda _number: True
    )
    assert {status for status, _detail in results.values()} == {"unknown"}


@pytest.mark.parametrize(
    "number",
    [
        "127.0.0.1",
        "10.1.2.3",
        "172.16.0.1",
        "192.168.1.1",
        "169.254.169.254",
        "0.0.0.0",
        "100.64.0.1",
        "224.0.0.1",
        "::1",
        "::",
        "fe80::1%eth0",
        "fc00::1",
        "::ffff:10.0.0.1",
        "2002:7f00:1::",
        "ff02::1",
        "no number",
    ],
)
def test_numbers_of_machines_and_their_networks_are_private(number: str) -> None:
    """Whatever way they are written."""
    assert not is_public(number)


def test_numbers_of_the_internet_are_public() -> None:
    """Both families."""
    assert is_public("93.184.215.14")
    assert is_public("2606:2800:21f:cb07:6820:80da:af6b:8b2c")
