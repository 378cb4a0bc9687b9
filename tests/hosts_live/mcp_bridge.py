"""A bridge from HTTP to `memtool mcp`: a process for each session, for clients without stdio."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Lock, Thread
from uuid import uuid4

SESSION = "Mcp-Session-Id"


class Session:
    """One server process. Its requests are sent one after another."""

    def __init__(self, place: Path, env: Mapping[str, str]) -> None:
        self.lock = Lock()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "memtool", "mcp"],
            cwd=place,
            env=env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )

    def send(self, line: bytes) -> bytes:
        """Send a message; return the answer, empty for a notification."""
        assert self.process.stdin
        assert self.process.stdout
        with self.lock:
            self.process.stdin.write(line + b"\n")
            self.process.stdin.flush()
            return self.process.stdout.readline() if "id" in json.loads(line) else b""

    def end(self) -> None:
        self.process.communicate(timeout=60)


@contextmanager
def bridge(place: Path, env: Mapping[str, str]) -> Iterator[str]:
    """Serve the memories of a repository over HTTP, and yield the address."""
    sessions: dict[str, Session] = {}

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            message = self.rfile.read(int(self.headers["Content-Length"]))
            name = self.headers.get(SESSION, "")
            if json.loads(message).get("method") == "initialize":
                name = uuid4().hex
                sessions[name] = Session(place, env)
            if name not in sessions:
                self.reply(404, b"", name)
                return
            answer = sessions[name].send(message.replace(b"\n", b" "))
            self.reply(200 if answer else 202, answer, name)

        def do_GET(self) -> None:
            self.reply(405, b"", "")

        def do_DELETE(self) -> None:
            self.reply(200, b"", "")

        def reply(self, status: int, body: bytes, session: str) -> None:
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            if session:
                self.send_header(SESSION, session)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_args: object) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/mcp"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
        for session in sessions.values():
            session.end()
