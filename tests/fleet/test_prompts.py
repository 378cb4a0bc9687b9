"""What an agent hears of other repositories: `inject` and hooks over a real fleet of git."""

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
from memtool.mcp.server import tools

PROMPT = "how is a failed payment of an invoice retried before the job is parked"
RETRY = "A failed payment of an invoice is retried three times, then the job is parked.\n"


@pytest.fixture
def team(fleet: Fleet) -> Fleet:
    """A fleet of two repositories, of which one answers, and a project that hears it."""
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
    """What a hook answers to a prompt."""
    event = json.dumps({"cwd": str(fleet.project.path), "session_id": "s1", "prompt": prompt})
    done = fleet.project.run("hook", "claude", "user-prompt-submit", stdin=event, **env)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_inject_shows_it_and_says_why(team: Fleet) -> None:
    """The block holds the answer with its mark; --explain and --json say whose it is."""
    box = team.project
    commit = subprocess.run(
        ["git", "rev-parse", "HEAD"],
        cwd=team.folder / "src/acme/pay",
        check=True,
        capture_output=True,
        text=True,
    ).stdout.strip()
    done = box.run("inject", "--prompt", PROMPT, "--explain")
    assert f"[fleet acme/pay@{commit[:10]}]" in done.stdout
    assert "dec-retry of acme/pay: taken as fleet: " in done.stderr
    found = box.json("inject", "--prompt", PROMPT)
    (item,) = found["items"]
    assert (item["id"], item["tier"], item["trust"]) == ("dec-retry", "fleet", "fleet")
    assert (item["repository"], item["commit"]) == ("acme/pay", commit)
    assert (found["budget"]["fleet"], found["depth"]) == (300, "fleet")


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
    assert "[fleet acme/pay@" in first
    assert "[fleet" not in hooked(team)
    listed = team.project.run("log", "--injected").stdout
    assert "acme/pay:dec-retry" in listed
    shutil.rmtree(team.home)
    assert hooked(team, f"{PROMPT} again") == hooked(team, "thanks, go on")


def test_a_hook_waits_for_nobody_when_its_time_is_over(
    team: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However long the user would wait, the local answer must be given within the hook's limit."""
    team.project.memory("dec-retry-here", RETRY.replace("three times", "seven times"))
    monkeypatch.setattr(hooks, "OWN_SHARE", 1.0)
    answer = hooked(team)
    assert "seven times" in answer
    assert "[fleet" not in answer


def test_people_are_told_why_nobody_answers(team: Fleet) -> None:
    """The local answer comes all the same, with a note."""
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
    assert "inject.fleet is on, and there is nobody to ask" in done.stderr


def test_a_primer_and_an_edit_have_nothing_of_it(team: Fleet) -> None:
    """Nobody asked, so nobody else answers."""
    assert "[fleet" not in team.project.run("inject", "--primer").stdout
    assert "[fleet" not in team.project.run("inject", "--files", "src/pay.py").stdout


def test_a_secret_in_a_prompt_is_no_term(team: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    """What redaction finds in a prompt is taken out before anybody is asked."""
    heard: list[FleetQuery] = []

    class Listening:
        note = ""

        def candidates(self, asked: FleetQuery, within: float) -> list[FleetCandidate]:
            heard.append(asked)
            return []

    monkeypatch.setattr(ask, "backend_of", lambda _context, _whom: Listening())
    context = team.project.context()
    own = index.open(context).index
    secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    ask.hits_for_prompt(context, f"deploy fails with token {secret} in the pipeline", own)
    (asked,) = heard
    assert "pipelin" in asked.weights
    assert not any("ghp" in term or "a1b2" in term for term in asked.weights)


def test_what_is_shown_holds_no_secret(fleet: Fleet) -> None:
    """A secret that another repository committed is masked before an agent reads it."""
    fleet.project.memory("dec-own", "Buttons are blue.\n")
    key = "AKIA" + "IOSFODNN7EXAMPLQ"
    fleet.near("acme/pay", dec_retry=f"{RETRY[:-1]} The key of the payment job is {key}.\n")
    fleet.set("SRC/acme/*")
    fleet.sync()
    switch(fleet)
    shown = fleet.project.run("inject", "--prompt", PROMPT).stdout
    assert "[fleet acme/pay@" in shown
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
    shown = [one["repository"] for one in team.project.json("inject", "--prompt", PROMPT)["items"]]
    assert sorted(shown) == ["acme/pay", "evil/flood", "evil/stuffed"]
    assert team.project.run("--global", "config", "fleet.allow", "acme/*").returncode == 0
    shown = [one["repository"] for one in team.project.json("inject", "--prompt", PROMPT)["items"]]
    assert shown == ["acme/pay"]


def test_programs_get_it_with_its_mark(team: Fleet) -> None:
    """Over MCP and HTTP an answer carries tier, trust and repository."""
    pytest.importorskip("starlette")
    from web.conftest import Web

    over_http = Web(team.project).post("/api/inject", {"prompt": PROMPT}).json()["value"]
    place = ServedRepository(str(team.project.path), team.env, is_structured=True)
    over_mcp = call(tools()["inject"], {"prompt": PROMPT}, place).structured
    assert over_mcp is not None
    for found in (over_http, over_mcp):
        (item,) = found["items"]
        assert (item["tier"], item["trust"], item["repository"]) == ("fleet", "fleet", "acme/pay")
        assert "[fleet acme/pay@" in found["text"]
