from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from jsonschema import Draft202012Validator

from memtool.errors import MemtoolError
from memtool.web import rest
from memtool.web.server import listen

if TYPE_CHECKING:
    from typing import Any

    from conftest import Sandbox

    Web = Any


def test_a_verb_answers_with_the_value_of_its_json(sandbox: Sandbox, web: Web):
    """By POST with an object, by GET from the address, with the same value."""
    sandbox.memory("dec-a", "Sessions live in Redis.\n")
    posted = web.post("/api/search", {"query": "redis", "limit": 3}).json()
    asked = web.get("/api/search?query=redis&limit=3").json()
    for answer in (posted, asked):
        del answer["value"]["elapsed_ms"]
    assert posted == asked
    assert posted["value"]["results"][0]["id"] == "dec-a"
    assert web.get("/api/list?filters=type:decision").json()["value"]["total"] == 1


@pytest.mark.parametrize(("path", "given", "status", "code"), [
    ("/api/nothing", {}, 404, "no-route"),
    ("/api/search", {}, 400, "usage"),
    ("/api/search", {"query": 7}, 400, "usage"),
    ("/api/search", {"query": None}, 400, "usage"),
    ("/api/search", [], 400, "no-json"),
    ("/api/show", {"id": "dec-none"}, 404, "unknown-id"),
    ("/api/show", {"id": "dec-a", "at": "nope"}, 404, "unknown-revision"),
    ("/api/search", {"query": "since:soon"}, 422, "bad-query"),
    ("/api/check", {"path": ["/etc/passwd"]}, 422, "outside"),
    ("/api/config", {}, 404, "no-route"),
])  # fmt: skip
def test_a_refusal_has_a_status_and_an_object(
    sandbox: Sandbox, web: Web, path: str, given: Any, status: int, code: str
):
    """A program reads what is wrong and what to do, without an option of a shell in it."""
    sandbox.memory("dec-a")
    sandbox.commit()
    answer = web.post(path, given)
    error = answer.json()["error"]
    assert (answer.status, error["code"]) == (status, code)
    assert "--" not in error["message"]
    assert "memtool " not in error["hint"]


def test_a_body_is_json_or_nothing(web: Web):
    """Another type, which a page of another site could send, is refused."""
    assert web.post("/api/status", {}, **{"content-type": "text/plain"}).status == 415
    assert web.get("/api/pin?id=dec-a").status == 405


def test_the_openapi_document_is_sound(web: Web):
    """Every verb is in it with a schema that is one, and a call that fits is described by it."""
    document = web.get("/api/openapi.json").json()
    assert document["openapi"] == "3.1.0"
    assert len(document["paths"]) == len(rest.PROCEDURES) + 1
    for one in rest.PROCEDURES.values():
        Draft202012Validator.check_schema(one.input_schema)
    search = Draft202012Validator(rest.PROCEDURES["search"].input_schema)
    assert search.is_valid({"query": "x", "limit": 3})
    for wrong in ({}, {"query": ""}, {"query": "x", "limit": -1}, {"query": "x", "y": 1}):
        assert not search.is_valid(wrong)


def test_what_programs_write_is_a_file_of_the_repository(sandbox: Sandbox, writer: Web):
    """It goes through the same gate as in the shell, and names the program that wrote it."""
    given = {"type": "decision", "title": "Use Redis", "body": "For sessions.", "commit": True}
    made = writer.post("/api/new", given, memtool_agent="acme").json()["value"]
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
        said = {"session": "s1", "user": f"Never retry payments, {number}.", "assistant": "Fine."}
        assert writer.post("/memory/process", said).json()["count"] == 2
    found = writer.post("/memory/retrieve", {"query": "redis", "maxResults": 1}).json()
    assert [one["id"] for one in found["memories"]] == ["dec-a"]
    assert writer.get("/memory/stats").json()["totalItems"] == 1
    assert writer.get("/memory/get-status").json()["status"] == "ready"
    category = writer.get("/memory/get-category?category=decision").json()
    assert (category["itemCount"], "dec-a" in category["content"]) == (1, True)
    cleared = writer.post("/memory/clear-category", {"category": "decision"}).json()
    assert cleared == {"success": True, "itemsDeleted": 1}
    wrong = writer.post("/memory/retrieve", {})
    assert (wrong.status, wrong.json()["error"], wrong.json()["code"]) == (400, True, "usage")


def test_a_long_verb_is_a_job():
    """It is asked after by its id; what is not there is said."""
    jobs = rest.JobList()
    number = jobs.begin("maintain")
    assert (jobs.get(number)["status"], jobs.running) == ("running", ["maintain"])
    jobs.end(number, rest.refusal(MemtoolError("broken"), status=422))
    assert (jobs.get(number)["status"], jobs.last_error) == ("failed", "broken")


@pytest.mark.parametrize("host", ["0.0.0.0", "evil.test", "::", "192.168.0.1"])
def test_nothing_beyond_this_machine_is_listened_on(host: str):
    """No variable opens the server to a network."""
    with pytest.raises(MemtoolError, match="serves this machine alone"):
        listen({"MEMTOOL_HOST": host}, 0)


def test_a_taken_port_is_said(sandbox: Sandbox):
    """Another server on it is named as the reason, with the way to another port."""
    first = listen({}, 0)
    port = first[0].getsockname()[1]
    done = sandbox.run("serve", "--port", str(port), "--no-open")
    for one in first:
        one.close()
    assert done.returncode == 2
    assert f"port {port} cannot be used" in done.stderr
    assert "--port 0" in done.stderr


@pytest.mark.parametrize(("variable", "value"), [
    ("MEMTOOL_PORT", "x"), ("MEMTOOL_PORT", "99999"), ("MEMTOOL_API_URL", "http://evil.test"),
])  # fmt: skip
def test_a_wrong_setting_of_the_server_is_said(sandbox: Sandbox, variable: str, value: str):
    """One sentence, and no server."""
    port = ("--port", "0") if variable == "MEMTOOL_API_URL" else ()
    done = sandbox.run("serve", "--no-open", *port, **{variable: value})
    assert done.returncode == 2
    assert value in done.stderr
