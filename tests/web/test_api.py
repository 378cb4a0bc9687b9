from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from jsonschema import Draft202012Validator
from jsonschema.exceptions import best_match

import memtool
from memtool.errors import MemtoolError
from memtool.web import rest
from memtool.web.server import listen

if TYPE_CHECKING:
    from conftest import Sandbox

    Web = Any


def test_a_verb_answers_with_the_value_of_its_json(sandbox: Sandbox, web: Web):
    """By POST with an object, by GET from the address, with the same value."""
    sandbox.memory("dec-a", "Sessions live in Redis.\n")
    posted = web.post("/api/search", {"query": "redis", "limit": 3}).json()
    fetched = web.get("/api/search?query=redis&limit=3").json()
    for answer in (posted, fetched):
        del answer["value"]["elapsed_ms"]
    assert posted == fetched
    assert posted["value"]["results"][0]["id"] == "dec-a"
    assert web.get("/api/list?filters=type:decision").json()["value"]["total"] == 1


@pytest.mark.parametrize(
    ("path", "payload", "status", "code"),
    [
        ("/api/nothing", {}, 404, "no-route"),
        ("/api/search", {}, 400, "usage"),
        ("/api/search", {"query": 7}, 400, "usage"),
        ("/api/search", {"query": None}, 400, "usage"),
        ("/api/search", [], 400, "no-json"),
        ("/api/serch", {}, 404, "no-route"),
        ("/api/show", {"id": "x" * 10_001}, 422, "too-large"),
        ("/api/log", {"since": "2026-01-01"}, 422, "usage"),
        ("/api/show", {"id": "dec-none"}, 404, "unknown-id"),
        ("/api/show", {"id": "dec-a", "at": "nope"}, 404, "unknown-revision"),
        ("/api/search", {"query": "since:soon"}, 422, "bad-query"),
        ("/api/check", {"path": ["/etc/passwd"]}, 422, "outside"),
        ("/api/config", {}, 404, "no-route"),
    ],
)
def test_a_refusal_has_a_status_and_an_object(
    sandbox: Sandbox, web: Web, path: str, payload: Any, status: int, code: str
):
    """A program reads what is wrong and what to do, without an option of a shell in it."""
    sandbox.memory("dec-a")
    sandbox.commit()
    answer = web.post(path, payload)
    error = answer.json()["error"]
    assert (answer.status, error["code"]) == (status, code)
    assert "--" not in error["message"]
    assert "memtool " not in error["hint"]


def test_a_body_is_json_or_nothing(web: Web):
    """Another type, which another site could send, is refused; nothing means no arguments."""
    assert web.post("/api/status", {}, **{"content-type": "text/plain"}).status == 415
    own_headers = {"authorization": f"Bearer {web.guard.token}", "cookie": ""}
    assert web.ask("POST", "/api/status", **own_headers).status == 200
    assert web.ask("POST", "/api/status", b"{}", **own_headers).status == 415


@pytest.mark.parametrize(
    ("method", "path", "takes"),
    [
        ("GET", "/api/pin?id=dec-a", {"POST"}),
        ("DELETE", "/login", {"GET", "HEAD", "POST"}),
    ],
)
def test_another_method_is_refused_with_those_that_are_taken(
    web: Web, method: str, path: str, takes: set[str]
):
    """No GET writes, since a picture of a page could name its address."""
    answer = web.ask(method, path)
    assert (answer.status, set(answer.headers["allow"].split(", "))) == (405, takes)


def test_a_list_is_an_answer(sandbox: Sandbox, web: Web):
    """`export` returns a list with all rows, not an object."""
    sandbox.memory("dec-a")
    sandbox.memory("dec-b")
    answer = web.get("/api/export?filters=type:decision").json()
    assert [row["id"] for row in answer["value"]] == ["dec-a", "dec-b"]
    assert answer["notes"] == []


def test_a_job_does_not_begin_with_what_does_not_fit(writer: Web):
    """The caller is told at once, not when it asks after the job."""
    answer = writer.post("/api/maintain", {"nightly": 7})
    assert (answer.status, answer.json()["error"]["code"]) == (400, "usage")
    assert writer.get("/memory/get-status").json()["lastError"] is None


def test_the_openapi_document_is_sound(web: Web):
    """Every route of programs is in it, and nothing that is not: what it refers to is there."""
    document = web.get("/api/openapi.json").json()
    assert document["openapi"] == "3.1.0"
    names = {name for name in document["paths"] if name.startswith("/api/")}
    assert names == {
        *(f"/api/{name}" for name in rest.PROCEDURES),
        "/api/jobs/{id}",
        "/api/openapi.json",
    }
    reads = {name for name, path_item in document["paths"].items() if "get" in path_item}
    assert reads >= {"/health", "/memory/stats", "/memory/get-status", "/api/search"}
    assert not reads & {"/api/pin", "/memory/checkpoint", "/memory/clear-category"}
    parts = document["components"]
    for place in re.findall(r'"#/components/(.+?)"', json.dumps(document)):
        kind, _slash, name = place.partition("/")
        assert parts[kind][name]


def test_a_schema_of_a_call_is_what_is_checked(web: Web):
    """Matching arguments are accepted, and others are refused."""
    for procedure in rest.PROCEDURES.values():
        Draft202012Validator.check_schema(procedure.input_schema)
    search = Draft202012Validator(rest.PROCEDURES["search"].input_schema)
    for payload, fits in (
        ({"query": "x", "limit": 3}, True),
        ({}, False),
        ({"query": ""}, False),
        ({"query": "\x1f"}, False),
        ({"query": "x", "limit": -1}, False),
        ({"query": "x", "y": 1}, False),
        ({"query": "x", "at": "y" * 10_001}, False),
    ):
        assert search.is_valid(payload) == fits
        assert (web.post("/api/search", payload).status < 400) == fits


ROOT = Path(memtool.__file__).parents[1]
ANSWERED: list[tuple[str, dict[str, Any]]] = [
    ("/api/search", {"query": "redis", "explain": True}),
    ("/api/show", {"id": "dec-a"}),
    ("/api/list", {}),
    ("/api/inject", {"prompt": "redis sessions"}),
    ("/api/inject", {"primer": True}),
    ("/api/why", {"id": "dec-a"}),
    ("/api/log", {}),
    ("/api/log", {"injected": True}),
    ("/api/log", {"audit": True}),
    ("/api/blame", {"id": "dec-a"}),
    ("/api/diff", {"range": "HEAD~1..HEAD"}),
    ("/api/conflicts", {}),
    ("/api/check", {}),
    ("/api/status", {}),
    ("/api/stats", {}),
    ("/api/drift", {}),
    ("/api/verify", {}),
    ("/api/review", {"range": "HEAD~1..HEAD"}),
    ("/api/export", {}),
    ("/api/session-list", {}),
    ("/api/remember", {"text": "Deploys run on Tuesdays.", "dry_run": True}),
    ("/api/pin", {"id": "dec-b", "dry_run": True}),
    ("/api/forget", {"id": "dec-a", "reason": "x", "dry_run": True}),
    ("/api/promote", {"list": True}),
    ("/api/auto", {}),
    ("/api/maintain", {"dry_run": True}),
    ("/memory/context", {"session": "s", "message": "x"}),
    ("/memory/retrieve", {"query": "redis"}),
    ("/memory/get-stats", {}),
    ("/memory/get-status", {}),
    ("/memory/get-category", {"category": "decision"}),
]


def test_an_answer_is_what_the_document_says(sandbox: Sandbox, writer: Web):
    """Names and types of all that is sent: a program may be written by the document alone."""
    sandbox.memory("dec-a", "Sessions live in Redis.\n")
    sandbox.commit()
    sandbox.memory("dec-b", "Sessions live in Postgres.\n", supersedes=("dec-a",))
    sandbox.commit()
    document = writer.get("/api/openapi.json").json()
    for path, payload in ANSWERED:
        answer = writer.post(path, payload, prefer="wait")
        assert answer.status == 200, f"{path}: {answer.text}"
        described = document["paths"][path]["post"]["responses"]["200"]["content"]
        schema = described["application/json"]["schema"] | {"components": document["components"]}
        wrong = best_match(Draft202012Validator(schema).iter_errors(answer.json()))
        assert wrong is None, f"{path}: {wrong}"


def test_what_programs_write_is_a_file_of_the_repository(sandbox: Sandbox, writer: Web):
    """It goes through the same gate as in the shell, and names the program that wrote it."""
    payload = {"type": "decision", "title": "Use Redis", "body": "For sessions.", "commit": True}
    made = writer.post("/api/new", payload, memtool_agent="acme").json()["value"]
    assert "tool:acme" in (sandbox.path / made["path"]).read_text()
    assert sandbox.git("status", "--porcelain") == ""
    token = "ghp_" + "k7Qm2Zx9Lw4Tn8Vb3Rj6Hd5Pf1Sg0Yc2AeUi"
    refused = writer.post("/api/remember", {"text": f"The token is {token}."})
    assert refused.status == 422
    assert token not in refused.text


def test_a_client_of_another_server_finds_its_names(sandbox: Sandbox, writer: Web):
    """An exchange is taken into a session; counts, categories and answers have their fields."""
    sandbox.memory("dec-a", "Sessions live in Redis.\n")
    sandbox.commit()
    first = writer.post("/memory/context", {"session": "s1", "message": "hello"}).json()
    assert first["primer"]
    second = writer.post("/memory/context", {"session": "s1", "message": "redis sessions"}).json()
    assert "Redis" in second["text"]
    for number in (1, 2):
        payload = {
            "session": "s1",
            "user": f"Never retry payments, {number}.",
            "assistant": "Fine.",
        }
        assert writer.post("/memory/process", payload).json()["count"] == 2
    answer = writer.post("/memory/retrieve", {"query": "redis", "maxResults": 1}).json()
    assert [memory["id"] for memory in answer["memories"]] == ["dec-a"]
    assert writer.get("/memory/stats").json()["totalItems"] == 1
    assert writer.get("/memory/get-status").json()["status"] == "ready"
    category = writer.get("/memory/get-category?category=decision").json()
    assert (category["itemCount"], "dec-a" in category["content"]) == (1, True)
    cleared = writer.post("/memory/clear-category", {"category": "decision"}).json()
    assert cleared == {"success": True, "itemsDeleted": 1}
    wrong = writer.post("/memory/retrieve", {})
    assert (wrong.status, wrong.json()["error"], wrong.json()["code"]) == (400, True, "usage")


def test_a_long_verb_is_a_job():
    """It is polled by its id; an unknown id is reported."""
    jobs = rest.JobList()
    number = jobs.begin("maintain")
    assert (jobs.get(number)["status"], jobs.running) == ("running", ["maintain"])
    jobs.end(number, rest.build_refusal(MemtoolError("broken")))
    assert (jobs.get(number)["status"], jobs.last_error) == ("failed", "broken")


@pytest.mark.parametrize("host", ["0.0.0.0", "evil.test", "::", "192.168.0.1"])
def test_nothing_beyond_this_machine_is_listened_on(host: str):
    """No variable opens the server to a network."""
    with pytest.raises(MemtoolError, match="must be an address of this machine"):
        listen({"MEMTOOL_HOST": host}, 0)


def test_a_taken_port_is_said(sandbox: Sandbox):
    """Another server on it is named as the reason, with the way to another port."""
    first = listen({}, 0)
    port = first[0].getsockname()[1]
    done = sandbox.run("serve", "--port", str(port), "--no-open")
    for listener in first:
        listener.close()
    assert done.returncode == 2
    assert f"cannot use port {port}" in done.stderr
    assert "--port 0" in done.stderr


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("MEMTOOL_PORT", "x"),
        ("MEMTOOL_PORT", "99999"),
        ("MEMTOOL_API_URL", "http://evil.test"),
    ],
)
def test_a_wrong_setting_of_the_server_is_said(sandbox: Sandbox, variable: str, value: str):
    """One sentence, and no server."""
    port = ("--port", "0") if variable == "MEMTOOL_API_URL" else ()
    done = sandbox.run("serve", "--no-open", *port, **{variable: value})
    assert done.returncode == 2
    assert value in done.stderr


def test_the_programs_of_the_documentation_work(sandbox: Sandbox, server: Any):
    """The client of three lines and the curl commands, as printed on the page."""
    sandbox.memory("dec-a", "Sessions live in Redis.\n")
    page = (ROOT / "docs" / "web.md").read_text(encoding="utf-8")
    program = page.split("```python\n")[1].partition("```")[0]
    shown = 'print(ask("search", query="where do sessions live?")["results"][0]["id"])'
    assert shown.removeprefix("print(").partition("[0]")[0] in page
    done = subprocess.run(
        [sys.executable, "-c", program + shown],
        cwd=sandbox.path,
        env=sandbox.env,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout, done.stderr) == ("dec-a\n", "")
    command = page.split("curl -s http")[1].partition("```")[0]
    script = f"curl -s http{command}".replace("127.0.0.1:8765", server.url.removeprefix("http://"))
    if shutil.which("curl"):
        answers = subprocess.run(
            ["sh", "-ec", script],
            env=sandbox.env | {"TOKEN": server.token},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        assert answers.count('"id":"dec-a"') == 2


def test_an_old_argument_means_the_new_one_and_is_noted(sandbox: Sandbox, web: Web):
    """In an object and in an address, for one version."""
    sandbox.memory("dec-a")
    payload = {"id": "dec-a", "why": "gone", "dry_run": True}
    answer = web.post("/api/forget", payload)
    assert (answer.status, answer.json()["notes"][0]) == (200, "why is called reason now")
