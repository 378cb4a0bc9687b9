"""A made-up forge: comments of requests over HTTP, and a runner of GitHub's workflows.

The server answers as the API of GitHub or GitLab does for the few addresses that our templates use,
and remembers each request. The runner evaluates expressions and runs the shell parts of workflows
and of our action in real shells; actions of others are functions of the test.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qs, urlsplit

import yaml

ROOT = Path(__file__).parent.parent
BOT = "github-actions[bot]"


class Request(NamedTuple):
    """A request to the server: its token is the whole header."""

    method: str
    path: str
    token: str
    body: Any


class Forge:
    """The state of the server. `pulls` are answers by number; `is_closed` refuses every write."""

    def __init__(self) -> None:
        self.comments: list[dict[str, Any]] = []
        self.pulls: dict[str, dict[str, Any]] = {}
        self.requests: list[Request] = []
        self.is_closed = False
        self.address = ""

    @property
    def writes(self) -> list[tuple[str, str]]:
        """Method and path of each request that is no GET."""
        return [(row.method, row.path) for row in self.requests if row.method != "GET"]

    def add(self, body: str, login: str, number: int = 7) -> None:
        """Add a comment of somebody."""
        user = {"login": login, "id": 1 if login == BOT else 2}
        self.comments.append(
            {"id": len(self.comments) + 1, "body": body, "user": user, "on": str(number)}
        )

    def answer(self, request: Request) -> tuple[int, Any]:
        """Return status and body of the answer to a request."""
        address = urlsplit(request.path)
        parts = address.path.strip("/").split("/")
        if request.method != "GET" and self.is_closed:
            return 403, {"message": "Resource not accessible by integration"}
        match parts:
            case ["user"]:
                return 200, {"id": 1}
            case ["repos", "acme", "shop", "pulls", number]:
                return (200, self.pulls[number]) if number in self.pulls else (404, {})
            case ["projects", "12", "merge_requests", number]:
                return 200, self.pulls[number]
            case ["repos", "acme", "shop", "issues", number, "comments"]:
                return self._on_comments(request, number, parse_qs(address.query))
            case ["projects", "12", "merge_requests", number, "notes"]:
                return self._on_comments(request, number, parse_qs(address.query))
            case ["repos", "acme", "shop", "issues", "comments", id_]:
                return self._change(id_, request)
            case ["projects", "12", "merge_requests", _number, "notes", id_]:
                return self._change(id_, request)
        return 404, {}

    def _on_comments(
        self, request: Request, number: str, query: dict[str, list[str]]
    ) -> tuple[int, Any]:
        if request.method == "POST":
            self.add(request.body["body"], BOT, int(number))
            return 201, self.comments[-1]
        rows = [row for row in self.comments if row["on"] == number]
        size, page = int(query["per_page"][0]), int(query["page"][0])
        return 200, rows[size * (page - 1) : size * page]

    def _change(self, id_: str, request: Request) -> tuple[int, Any]:
        row = self.comments[int(id_) - 1]
        row["body"] = request.body["body"]
        return 200, row


@contextmanager
def serve(forge: Forge) -> Iterator[None]:
    """Serve a forge on a port of the loopback."""

    class Handler(BaseHTTPRequestHandler):
        def do_any(self) -> None:
            size = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(size)) if size else None
            token = self.headers.get("Authorization") or self.headers.get("PRIVATE-TOKEN") or ""
            request = Request(self.command, self.path, token, body)
            forge.requests.append(request)
            status, answer = forge.answer(request)
            data = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            if status == 302:
                self.send_header("Location", answer)
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_POST = do_PATCH = do_PUT = do_any  # noqa: N815  # names of http.server

        def log_message(self, *_arguments: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    forge.address = f"http://127.0.0.1:{server.server_port}"
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def install_programs(folder: Path) -> None:
    """Put memtool, python and a pip that only notes its arguments into a folder for PATH."""
    folder.mkdir()
    programs = {
        "memtool": f'exec "{sys.executable}" -P -m memtool "$@"',
        "python": f'exec "{sys.executable}" "$@"',
        "pip": f'echo "$@" >> "{folder}/pip.log"',
    }
    for name, line in programs.items():
        (folder / name).write_text(f"#!/bin/sh\n{line}\n")
        (folder / name).chmod(0o755)


_TOKEN = re.compile(r"'[^']*'|\|\||&&|[!=]=|[(),]|[\w.-]+")


def evaluate(expression: str, values: Mapping[str, Any]) -> Any:
    """Return the value of an expression of GitHub's workflows; what is absent is empty."""

    def look_up(path: str) -> Any:
        at: Any = values
        for part in path.split("."):
            at = at.get(part) if isinstance(at, dict) else None
        return "" if at is None else at

    words = []
    for token in _TOKEN.findall(expression):
        if token in ("||", "&&"):
            words.append({"||": "or", "&&": "and"}[token])
        elif token[0] in "'(),!=" or token == "format":
            words.append(token)
        else:
            words.append(f"look_up({token!r})")
    scope = {"look_up": look_up, "format": lambda text, *parts: text.format(*parts)}
    return eval(" ".join(words), scope)


def fill(text: object, values: Mapping[str, Any]) -> str:
    """Return a text with its expressions evaluated."""
    return re.sub(r"\$\{\{(.*?)\}\}", lambda match: str(evaluate(match[1], values)), str(text))


class Step(NamedTuple):
    """A step that ran: its name or action, its exit code and its output."""

    name: str
    status: int
    output: str


class Runner:
    """Runs the steps of one job in a checkout; `actions` are those of others, by name."""

    def __init__(
        self,
        checkout: Path,
        env: dict[str, str],
        event_name: str,
        event: dict[str, Any],
        actions: Mapping[str, Callable[[dict[str, str]], None]],
        **github: str,
    ) -> None:
        self.checkout = checkout
        self.temp = checkout.parent / f"{checkout.name}-temp"
        self.temp.mkdir(exist_ok=True)
        self.files = {name: self.temp / name for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}
        self.env = env | {
            "RUNNER_TEMP": str(self.temp),
            "GITHUB_WORKSPACE": str(checkout),
            "GITHUB_REPOSITORY": "acme/shop",
            **{name: str(path) for name, path in self.files.items()},
        }
        self.actions = actions
        self.steps: list[Step] = []
        self.values: dict[str, Any] = {
            "github": {
                "event_name": event_name,
                "event": event,
                "repository": "acme/shop",
                "actor": "ada",
                "token": "run-token",
                **github,
            },
            "vars": {"MEMTOOL_INSTALL": "git-memtool @ git+ssh://git.example/memtool@0123"},
            "runner": {"temp": str(self.temp)},
        }

    @property
    def log(self) -> str:
        """The output of all steps."""
        return "".join(step.output for step in self.steps)

    def run_workflow(self, name: str) -> int:
        """Run the only job of a template; return 1 if it fails, 0 if not or if it is skipped."""
        text = (ROOT / "templates/ci" / name).read_text("utf-8")
        workflow = yaml.safe_load(text)
        (job,) = workflow["jobs"].values()
        values = self.values | {"steps": {}}
        values["env"] = {key: fill(value, values) for key, value in workflow.get("env", {}).items()}
        if "if" in job and not evaluate(job["if"], values):
            return 0
        return self._run_steps(job["steps"], values)

    def _run_steps(self, steps: list[dict[str, Any]], values: dict[str, Any]) -> int:
        for step in steps:
            if "if" in step and not evaluate(str(step["if"]), values):
                continue
            inputs = {key: fill(value, values) for key, value in step.get("with", {}).items()}
            env = values["env"] | {
                key: fill(value, values) for key, value in step.get("env", {}).items()
            }
            if "run" in step:
                status = self._run_shell(step, env)
            else:
                status = self._use(step["uses"], inputs, values)
            outputs = self.files["GITHUB_OUTPUT"]
            if "id" in step:
                rows = outputs.read_text().splitlines() if outputs.exists() else []
                values["steps"][step["id"]] = {
                    "outputs": dict(row.split("=", 1) for row in rows),
                    "outcome": "failure" if status else "success",
                }
            outputs.unlink(missing_ok=True)
            if status and not step.get("continue-on-error"):
                return 1
        return 0

    def _run_shell(self, step: dict[str, Any], env: dict[str, str]) -> int:
        options = ("--noprofile", "--norc", "-eo", "pipefail") if "shell" in step else ("-e",)
        done = subprocess.run(
            ["bash", *options, "-c", step["run"]],
            cwd=self.checkout,
            env=self.env | env,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        self.steps.append(Step(step["run"], done.returncode, done.stdout))
        return done.returncode

    def _use(self, name: str, inputs: dict[str, str], values: dict[str, Any]) -> int:
        if name.startswith("./"):
            action = yaml.safe_load((ROOT / "templates/ci/action/action.yml").read_text("utf-8"))
            defaults = {
                key: fill(row.get("default", ""), values) for key, row in action["inputs"].items()
            }
            inner = values | {"inputs": defaults | inputs, "steps": {}}
            return self._run_steps(action["runs"]["steps"], inner)
        try:
            self.actions[name.partition("@")[0]](inputs)
        except FileNotFoundError as error:
            self.steps.append(Step(name, 1, str(error)))
            return 1
        return 0
