"""The names that clients of other memory servers know, and long verbs as jobs."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import pytest

from memtool.web import clients

if TYPE_CHECKING:
    from conftest import Sandbox

    Web = Any

PATIENT_S = 60.0
TALK = """\
User: Remember: we decided to keep sessions in Redis because Postgres was too slow for them.
Assistant: Noted. Sessions stay in Redis.
User: Always run the migrations before you deploy, never after.
Assistant: Migrations run first.
"""
SCHEDULE = '[maintain]\nschedule = ["nightly"]\n'
TOKEN = "ghp_" + "k7Qm2Zx9Lw4Tn8Vb3Rj6Hd5Pf1Sg0Yc2AeUi"


def ended(web: Web, job: dict[str, Any]) -> dict[str, Any]:
    """Ask after a job until it has ended."""
    until = time.monotonic() + PATIENT_S
    while job["status"] == "running":
        assert time.monotonic() < until
        time.sleep(0.02)
        job = web.get(f"/api/jobs/{job['id']}").json()
    return job


def test_a_conversation_is_memorized(sandbox: Sandbox, writer: Web):
    """Its findings are counted; a second time it is the same session, and nothing is new."""
    sandbox.memory("dec-a")
    sandbox.commit()
    payload = {"conversationText": TALK, "branchId": "main", "sessionId": "s1"}
    done = writer.post("/memory/memorize", payload).json()
    assert done["itemsExtracted"] > 0
    assert done["categoriesUpdated"] == []  # findings wait; no category has another memory
    again = writer.post("/memory/memorize", payload).json()
    assert again == done | {"itemsExtracted": 0}
    sessions = writer.get("/api/session-list").json()["value"]["sessions"]
    assert [session["id"] for session in sessions] == [done["resourceId"]]


def test_a_conversation_changes_categories_if_the_user_wants_candidates(
    sandbox: Sandbox, writer: Web
):
    """With capture.promote what qualifies becomes a candidate, and its category is named."""
    sandbox.memory("dec-a")
    sandbox.commit()
    assert sandbox.run("--global", "config", "capture.promote", "true").returncode == 0
    payload = {"conversationText": TALK, "sessionId": "s1"}
    done = writer.post("/memory/memorize", payload).json()
    candidates = sandbox.json("list", "status:candidate")["memories"]
    assert done["categoriesUpdated"] == sorted({row["category"] for row in candidates}) != []
    again = writer.post("/memory/memorize", payload).json()
    assert (again["itemsExtracted"], again["categoriesUpdated"]) == (0, [])


def test_a_secret_is_not_memorized(sandbox: Sandbox, writer: Web):
    """Neither in a file nor in an answer."""
    sandbox.memory("dec-a")
    done = writer.post("/memory/memorize", {"conversationText": f"User: the token is {TOKEN}"})
    assert done.status == 200
    shown = writer.get(f"/api/session-show?id={done.json()['resourceId']}")
    assert TOKEN not in done.text + shown.text
    paths = [path for path in sandbox.path.rglob("*") if path.is_file()]
    assert not [path for path in paths if TOKEN.encode() in path.read_bytes()]


def test_memories_are_retrieved_with_what_they_cost(sandbox: Sandbox, web: Web):
    """No more than asked for; tokens and milliseconds are numbers."""
    for name in ("dec-a", "dec-b"):
        sandbox.memory(name, "Sessions live in Redis.\n", source=("human:ada",))
    answer = web.post("/memory/retrieve", {"query": "redis", "maxResults": 1}).json()
    (memory,) = answer["memories"]
    assert (memory["extractedAt"], memory["lastAccessed"], memory["accessCount"]) == (
        memory["timestamp"],
        "2026-03-01T12:00:00Z",
        1,
    )
    assert memory["source"] == ["human:ada"]
    assert answer["totalTokens"] > 0
    assert answer["retrievalTime"] >= 0
    assert web.post("/memory/retrieve", {"query": "zebra"}).json()["totalTokens"] == 0


def test_stats_say_when_upkeep_is_due(sandbox: Sandbox, writer: Web):
    """The newest memory, and the moment of the next upkeep if the settings name a schedule."""
    sandbox.memory("dec-a", timestamp="2026-02-01T10:00:00Z")
    sandbox.commit()
    stats = writer.get("/memory/get-stats").json()
    assert stats == writer.get("/memory/stats").json()
    assert (stats["totalItems"], stats["totalCategories"]) == (1, 1)
    assert stats["lastMemorized"] == "2026-02-01T10:00:00Z"
    assert (stats["nextMaintenance"], stats["nextMaintenanceReason"]) == (None, clients.NO_SCHEDULE)
    sandbox.write(".memory/config.toml", SCHEDULE)
    sandbox.commit()
    stats = writer.get("/memory/get-stats").json()
    assert stats["nextMaintenance"] == "2026-03-01T12:00:00Z"
    assert stats["nextMaintenanceReason"] is None
    done = writer.post("/memory/run-maintenance", {"type": "nightly"}).json()
    assert (done["success"], done["results"]["dry_run"]) == (True, False)
    assert done["duration"] >= 0
    assert writer.get("/memory/get-stats").json()["nextMaintenance"] == "2026-03-02T11:00:00Z"


@pytest.mark.parametrize("period", clients.PERIODS)
def test_upkeep_of_each_period_can_be_tried(sandbox: Sandbox, web: Web, period: str):
    """A server that only reads says what would be done."""
    sandbox.memory("dec-a")
    sandbox.commit()
    done = web.post("/memory/run-maintenance", {"type": period, "dry_run": True})
    assert done.json()["success"], done.text
    assert sandbox.git("log", "--format=%s").splitlines() == ["change"]


def test_a_category_is_cleared_and_comes_back(sandbox: Sandbox, writer: Web):
    """Tried, nothing is deleted; done, all of it is, and each memory can be restored."""
    for name in ("dec-a", "dec-b"):
        sandbox.memory(name)
    sandbox.commit()
    payload = {"category": "decision", "commit": True, "why": "by its old name"}
    tried = writer.post("/memory/clear-category", payload | {"dry_run": True}).json()
    assert tried == {"success": True, "itemsDeleted": 2}
    assert writer.get("/memory/get-category?category=decision").json()["itemCount"] == 2
    assert writer.post("/memory/clear-category", payload).json() == tried
    assert writer.get("/memory/get-category?category=decision").json() == {
        "category": "decision",
        "content": "",
        "lastUpdated": None,
        "itemCount": 0,
    }
    assert writer.post("/api/show", {"id": "dec-a"}).json()["value"]["deleted"]["reason"] == (
        "by its old name"
    )
    nothing = writer.post("/memory/clear-category", payload)
    assert (nothing.status, nothing.json()) == (200, {"success": True, "itemsDeleted": 0})
    assert writer.post("/api/restore", {"id": "dec-a", "commit": True}).status == 200
    assert "dec-a" in writer.get("/memory/get-category?category=decision").json()["content"]


def test_a_category_is_summed_up(sandbox: Sandbox, writer: Web):
    """By a page of its main memories; by its digest, word for word, once it has one."""
    for name in ("dec-a", "dec-b", "dec-c"):
        sandbox.memory(name, f"{name} is how it is done here.\n", title=f"As {name} says")
    sandbox.commit()
    made = writer.get("/memory/get-category?category=decision").json()
    assert made["itemCount"] == 3
    assert made["content"].startswith("3 memories hold in the category decision: As dec-a says; ")
    assert sandbox.run("digest", "decision", "--commit").returncode == 0
    (digest,) = sandbox.json("list", "tag:digest")["memories"]
    answer = writer.get("/memory/get-category?category=decision").json()
    assert answer["content"] == sandbox.json("show", digest["id"])["body"]
    assert (answer["itemCount"], answer["lastUpdated"]) == (3, made["lastUpdated"])
    assert digest["id"] not in answer["content"]


def test_a_digest_with_a_forgotten_memory_is_no_summary(sandbox: Sandbox, writer: Web):
    """It would repeat what was forgotten, so the page is made anew."""
    for name in ("dec-a", "dec-b"):
        sandbox.memory(name, f"{name} is how it is done here.\n", title=f"As {name} says")
    sandbox.commit()
    assert sandbox.run("digest", "decision", "--commit").returncode == 0
    (path,) = sandbox.path.glob(".memory/**/dec-a.md")
    path.unlink()
    sandbox.commit()
    answer = writer.get("/memory/get-category?category=decision").json()
    assert answer["itemCount"] == 1
    assert "As dec-b says" in answer["content"]
    assert "As dec-a says" not in answer["content"]


def test_a_made_summary_is_short(sandbox: Sandbox, writer: Web):
    """The most important memories are on it, and how many more there are."""
    for number in range(25):
        sandbox.memory(f"dec-{number:02}", title=f"Rule {number}", importance=f"0.{number:02}")
    sandbox.commit()
    answer = writer.get("/memory/get-category?category=decision").json()
    lines = [line for line in answer["content"].split("\n") if line.startswith("- ")]
    assert (answer["itemCount"], len(lines)) == (25, 20)
    assert "Rule 24" in lines[0]
    assert "5 more are less important" in answer["content"]


def test_a_session_is_known_to_the_next_server(sandbox: Sandbox, writer: Web):
    """Its id follows from the name that the client gave, and no exchange is taken for another."""
    sandbox.memory("dec-a")
    sandbox.commit()
    payload = {"session_id": "s1", "user_message": "yes", "claude_response": "Done."}
    first = writer.post("/memory/process", payload).json()
    again = writer.post("/memory/process", payload).json()
    assert (first["count"], again) == (2, first)
    shown = writer.get(f"/api/session-show?id={first['session']}").json()["value"]
    assert [message["text"] for message in shown["messages"]] == ["yes", "Done."] * 2
    assert writer.post("/memory/process", {"session": "s1"}).json()["count"] == 0


def test_a_checkpoint_answers_at_once(sandbox: Sandbox, writer: Web):
    """It is a job that is asked after by its address; who prefers to wait gets its answer."""
    sandbox.memory("dec-a")
    sandbox.commit()
    begun = writer.post("/memory/memorize", {"conversationText": TALK, "sessionId": "s1"}).json()
    answer = writer.post("/memory/checkpoint", {"session": "s1", "trigger": "session_end"})
    assert answer.status == 202
    job = answer.json()
    assert answer.headers["location"] == f"/api/jobs/{job['id']}"
    done = ended(writer, job)
    assert (done["status"], done["value"]["session"]) == ("done", begun["resourceId"])
    waited = writer.post("/memory/checkpoint", {"session": "s1"}, prefer="respond-async, wait=60")
    assert (waited.status, waited.json()["session"]) == (200, begun["resourceId"])


def test_a_job_fails_with_its_error(sandbox: Sandbox, writer: Web):
    """The error is that of the verb, and the status of the server says it until a job succeeds."""
    sandbox.memory("dec-a")
    sandbox.commit()
    payload = {"session": "ses-2026-01-01-none"}
    job = writer.post("/api/promote", payload)
    assert job.status == 202
    failed = ended(writer, job.json())
    assert (failed["status"], failed["error"]["code"]) == ("failed", "no-session")
    assert writer.get("/memory/get-status").json() == {
        "status": "error",
        "lastError": failed["error"]["message"],
        "maintenanceInProgress": False,
    }
    assert writer.post("/api/promote", payload, prefer="wait").status == 404
    assert writer.post("/api/maintain", {"nightly": True}, prefer="wait=5").status == 200
    assert writer.get("/memory/get-status").json()["status"] == "ready"
    assert writer.get("/api/jobs/job-99").status == 404


@pytest.mark.parametrize(
    ("name", "payload", "status", "message"),
    [
        ("retrieve", {}, 400, "query is missing"),
        ("retrieve", {"query": " "}, 400, "query is empty"),
        ("retrieve", {"query": 7}, 400, "query takes a text"),
        ("retrieve", {"query": "x", "maxResults": -1}, 400, "maxResults must be 0 or more, not -1"),
        ("retrieve", {"query": "since:soon"}, 422, "since"),
        ("memorize", {"conversationText": ""}, 400, "conversationText is empty"),
        ("process", {"user": "x"}, 400, "session is missing"),
        ("process", {"sessionId": "x" * 10_001}, 422, "sessionId has 10,001 characters"),
        ("get-category", {"category": ""}, 400, "category is empty"),
        ("get-category", {"category": "nope"}, 422, "'nope' is not one of decision,"),
        ("clear-category", {"category": "nope"}, 422, "'nope' is not one of decision,"),
        ("clear-category", {"category": "decision", "dryrun": True}, 400, "has no field 'dryrun'"),
        ("run-maintenance", {"type": "yearly"}, 400, "type is one of nightly"),
        ("context", [], 400, "not a JSON object"),
        ("forget-all", {}, 404, "no page at /memory/forget-all"),
    ],
)
def test_a_refusal_is_as_these_clients_read_it(
    writer: Web, name: str, payload: Any, status: int, message: str
):
    """One flat object with a code, a sentence, and what to do."""
    answer = writer.post(f"/memory/{name}", payload)
    error = answer.json()
    assert (answer.status, error["error"]) == (status, True)
    assert message in error["message"]
    assert error.keys() == {"error", "code", "message", "context"}
    assert error["context"].keys() == {"hint", "recoverable"}


@pytest.mark.parametrize(
    "name", [route.name for route in clients.NAMES.values() if route.effect != "read"]
)
def test_a_server_that_reads_only_writes_under_no_name(sandbox: Sandbox, web: Web, name: str):
    """It is refused at once, before a job begins."""
    sandbox.memory("dec-a")
    values = {"session": "s", "category": "decision", "conversationText": "x", "type": "full"}
    fields = clients.NAMES[name].fields
    payload = {key: value for key, value in values.items() if key in fields}
    answer = web.post(f"/memory/{name}", payload)
    assert (answer.status, answer.json()["code"]) == (403, "read-only")


def test_a_program_without_the_token_is_told_so(web: Web):
    """As an object, not as a page."""
    answer = web.post("/memory/retrieve", {"query": "x"}, authorization="Bearer wrong")
    assert (answer.status, answer.json()["code"]) == (401, "login")
