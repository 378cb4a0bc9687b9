"""Memories of other repositories for an agent: `inject` and hooks over a real fleet of git."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys

import pytest
from fleet_scene import Fleet

from memtool.calls.run import ServedRepository, call
from memtool.cli import hooks
from memtool.fleet import ask
from memtool.fleet.backend import FleetCandidate, FleetQuery
from memtool.index import index
from memtool.mcp.server import list_tools

PROMPT = "how is a failed payment of an invoice retried before the job is parked"
RETRY = "A failed payment of an invoice is retried three times, then the job is parked.\n"


@pytest.fixture
def team(fleet: Fleet) -> Fleet:
    """A fleet of two repositories, one with an answer, and a project that asks it."""
    fleet.project.memory("dec-own", "Buttons are blue.\n")
    fleet.project.commit()
    fleet.near("acme/pay", dec_retry=RETRY)
    fleet.near("acme/shop", dec_cart="A cart is kept for a week.\n")
    fleet.set("SRC/acme/*")
    fleet.sync()
    switch(fleet)
    return fleet


def switch(fleet: Fleet, value: str = "true") -> None:
    done = fleet.project.run("--global", "config", "inject.fleet", value)
    assert done.returncode == 0, done.stderr


def hooked(fleet: Fleet, prompt: str = PROMPT, **env: str) -> str:
    """Return the answer of a hook to a prompt."""
    event = json.dumps({"cwd": str(fleet.project.path), "session_id": "s1", "prompt": prompt})
    done = fleet.project.run("hook", "claude", "user-prompt-submit", stdin=event, **env)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_inject_shows_it_and_says_why(team: Fleet) -> None:
    """The block holds the answer with its mark; --explain and --json name the repository."""
    box = team.project
    commit = subprocess.run(
        ["git", "rev-parse", "HEAD"],
        cwd=team.folder / "src/acme/pay",
        check=True,
        capture_output=True,
        text=True,
    ).stdout.strip()
    done = box.run("inject", "--prompt", PROMPT, "--explain")
    assert f"[acme/pay dec-retry@{commit[:7]}] " in done.stdout
    assert "dec-retry of acme/pay: taken as fleet: " in done.stderr
    answer = box.json("inject", "--prompt", PROMPT)
    (item,) = answer["items"]
    assert (item["id"], item["tier"], item["trust"]) == ("dec-retry", "fleet", "fleet")
    assert (item["repository"], item["commit"]) == ("acme/pay", commit)
    assert (answer["budget"]["fleet"], answer["depth"]) == (300, "fleet")


def test_it_is_off_unless_the_user_says_so(team: Fleet) -> None:
    """No setting of a project switches it on, and what is off loads nothing of it."""
    switch(team, "false")
    team.project.write(".memory/config.toml", "[inject]\nfleet = true\n")
    done = team.project.run("inject", "--prompt", PROMPT)
    assert done.stdout == ""
    assert "inject.fleet of .memory/config.toml is not used" in done.stderr
    argv = [sys.executable, "-X", "importtime", "-m", "memtool", "inject", "--prompt", PROMPT]
    place, env = team.project.path, team.env
    started = subprocess.run(argv, check=True, cwd=place, env=env, capture_output=True, text=True)
    assert "memtool.inject.gather" in started.stderr
    assert "memtool.fleet" not in started.stderr


def test_a_hook_shows_it_once_and_keeps_its_peace(team: Fleet) -> None:
    """A prompt gets it, the same session not again; a fleet that is gone is silence."""
    first = hooked(team)
    assert "acme/pay dec-retry@" in first
    assert "acme/pay" not in hooked(team)
    listed = team.project.run("log", "--injected").stdout
    assert "acme/pay:dec-retry" in listed
    shutil.rmtree(team.home)
    assert hooked(team, f"{PROMPT} again") == hooked(team, "thanks, go on")


def test_a_hook_waits_for_nobody_when_its_time_is_over(
    team: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However long the user would wait, the local answer must be given within the hook's limit."""
    team.project.memory("dec-retry-here", RETRY.replace("three times", "seven times"))
    monkeypatch.setattr(hooks, "LOCAL_SHARE", 1.0)
    answer = hooked(team)
    assert "seven times" in answer
    assert "[fleet" not in answer


def test_people_are_told_why_nobody_answers(team: Fleet) -> None:
    """The local answer still comes, with a note."""
    down = "http://127.0.0.1:9/memories"
    done = team.project.run("inject", "--prompt", PROMPT, MEMTOOL_FLEET_URL=down)
    assert (done.returncode, done.stdout) == (0, "")
    assert "no other repository answered: " in done.stderr


def test_nobody_is_set(fleet: Fleet) -> None:
    """Who switches it on without a fleet is told how to set one."""
    fleet.project.memory("dec-own", "Buttons are blue.\n")
    switch(fleet)
    done = fleet.project.run("inject", "--prompt", PROMPT)
    assert (done.returncode, done.stdout) == (0, "")
    assert "inject.fleet is on, but no other repositories are set" in done.stderr


def test_a_primer_and_an_edit_have_nothing_of_it(team: Fleet) -> None:
    """Without a question the fleet is not asked."""
    assert "[fleet" not in team.project.run("inject", "--primer").stdout
    assert "[fleet" not in team.project.run("inject", "--files", "src/pay.py").stdout


def test_a_secret_in_a_prompt_is_no_term(team: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    """Secrets are removed from a prompt before the fleet is asked."""
    heard: list[FleetQuery] = []

    class Listening:
        note = ""

        def find_candidates(self, query: FleetQuery, timeout_s: float) -> list[FleetCandidate]:
            heard.append(query)
            return []

    monkeypatch.setattr(ask, "choose_backend", lambda _context, _whom: Listening())
    context = team.project.context()
    own = index.open(context).index
    secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    ask.find_hits_for_prompt(context, f"deploy fails with token {secret} in the pipeline", own)
    (query,) = heard
    assert "pipelin" in query.weights
    assert not any("ghp" in term or "a1b2" in term for term in query.weights)


def test_what_is_shown_holds_no_secret(fleet: Fleet) -> None:
    """A secret that another repository committed is masked before an agent reads it."""
    fleet.project.memory("dec-own", "Buttons are blue.\n")
    key = "AKIA" + "IOSFODNN7EXAMPLQ"
    fleet.near("acme/pay", dec_retry=f"{RETRY[:-1]} The key of the payment job is {key}.\n")
    fleet.set("SRC/acme/*")
    fleet.sync()
    switch(fleet)
    shown = fleet.project.run("inject", "--prompt", PROMPT).stdout
    assert "acme/pay dec-retry@" in shown
    assert key not in shown
    assert "[REDACTED:" in shown


def test_hostile_repositories_get_one_place(team: Fleet) -> None:
    """Stuffed memories and a flood take one of three places each; with fleet.allow none."""
    words = [word for word in f"{PROMPT} {RETRY}".replace(".", "").split() if len(word) > 3]
    evil = team.repository("src/evil/stuffed")
    for at in range(5):
        turned = words[at:] + words[:at]
        evil.memory(
            f"dec-stuffed-{at}",
            " ".join((turned * 4)[:40]) + ".\n",
            status="pinned",
            importance="1",
            trigger_phrases=(PROMPT,),
        )
    evil.commit()
    flood = team.repository("src/evil/flood")
    for at in range(150):
        turned = words[at % 11 :] + words[: at % 11]
        flood.memory(f"dec-flood-{at:03}", f"{' '.join(turned)} {at}.\n")
    flood.commit()
    team.set("SRC/acme/*", "SRC/evil/*")
    team.sync()
    shown = [
        item["repository"] for item in team.project.json("inject", "--prompt", PROMPT)["items"]
    ]
    assert sorted(shown) == ["acme/pay", "evil/flood", "evil/stuffed"]
    assert team.project.run("--global", "config", "fleet.allow", "acme/*").returncode == 0
    shown = [
        item["repository"] for item in team.project.json("inject", "--prompt", PROMPT)["items"]
    ]
    assert shown == ["acme/pay"]


def test_programs_get_it_with_its_mark(team: Fleet) -> None:
    """Over MCP and HTTP an answer carries tier, trust and repository."""
    pytest.importorskip("starlette")
    from web.conftest import Web

    over_http = Web(team.project).post("/api/inject", {"prompt": PROMPT}).json()["value"]
    place = ServedRepository(str(team.project.path), team.env, is_structured=True)
    over_mcp = call(list_tools()["inject"], {"prompt": PROMPT}, place).structured
    assert over_mcp is not None
    for answer in (over_http, over_mcp):
        (item,) = answer["items"]
        assert (item["tier"], item["trust"], item["repository"]) == ("fleet", "fleet", "acme/pay")
        assert "acme/pay dec-retry@" in answer["text"]
