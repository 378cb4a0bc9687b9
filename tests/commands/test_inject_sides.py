"""Inject on both sides: the project's memories and the user's, within one budget."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from conftest import Sandbox
from test_hot import ALLOWED, HEAVY
from watched import drive, libraries, warm

from memtool.commands.inject import inject
from memtool.inject import budget as budgets
from memtool.inject.block import InjectedBlock


@pytest.fixture
def everywhere(sandbox: Sandbox) -> Sandbox:
    """The global repository next to the sandbox's project, with a pinned memory and two others."""
    place = Path(sandbox.env["XDG_DATA_HOME"]) / "memtool"
    (place / ".memory").mkdir(parents=True)
    made = Sandbox(place, sandbox.env)
    made.git("init", "--quiet", "--initial-branch=main")
    made.memory("glo-pinned", "Never force-push.\n", status="pinned", scope="global")
    made.memory("glo-prose", "Prose is written in short sentences.\n", scope="global")
    made.memory("glo-deploy", "Deploys are announced in the channel.\n", scope="global")
    made.commit()
    return made


@pytest.fixture
def project(sandbox: Sandbox) -> Sandbox:
    """A committed project of two memories."""
    sandbox.memory("dec-deploy", "Deploys run from the release branch.\n", files=("deploy/*",))
    sandbox.memory("dec-other", "Sessions live in Redis.\n")
    sandbox.commit()
    return sandbox


def shown(injected: InjectedBlock) -> list[tuple[str, str, str]]:
    return [(item.id, item.tier, item.scope) for item in injected.items]


def test_both_sides_are_in_one_block(project: Sandbox, everywhere: Sandbox):
    """Pinned first, then what answers, the project before the user where scores are equal."""
    block = inject(project.context(), prompt="how do deploys work?")
    assert shown(block) == [
        ("glo-pinned", "pinned", "global"),
        ("dec-deploy", "retrieval", "project"),
        ("glo-deploy", "retrieval", "global"),
    ]
    head = everywhere.git("rev-parse", "HEAD").strip()
    assert f"[glo-deploy@{head[:7]}]" in block.text
    assert block.items[0].commit == head


def test_the_note_about_global_memories_is_said_once(project: Sandbox, everywhere: Sandbox):
    """It comes with the first of them, even if the preamble was shown before."""
    everywhere.memory("glo-pinned", "Never force-push.\n", status="archived", scope="global")
    ask = ("inject", "--session", "s", "--prompt")
    assert "--global VERB" not in project.run(*ask, "where do sessions live?").stdout
    assert "--global VERB" in project.run(*ask, "how is prose written?").stdout
    third = project.run(*ask, "how are deploys announced in the channel?").stdout
    assert "glo-deploy@" in third
    assert "--global VERB" not in third


def test_whose_it_is_stands_in_the_line_of_the_citation(project: Sandbox, everywhere: Sandbox):
    """It is told of global memories, in every format, with what it means."""
    for form in ("text", "markdown", "xml"):
        done = project.run("inject", "--prompt", "deploys", "--format", form)
        lines = done.stdout.splitlines()
        assert len([row for row in lines if "the user's own, all projects" in row]) == 2
        assert done.stdout.count("`memtool --global VERB`") == 1
    alone = project.run("inject", "--prompt", "deploys", "--no-global").stdout
    assert "all projects" not in alone
    assert [item["scope"] for item in project.json("inject", "--prompt", "deploys")["items"]] == [
        "global",
        "project",
        "global",
    ]


def test_the_project_speaks_for_itself(project: Sandbox, everywhere: Sandbox):
    """A global memory gives way to what the project says as well, pinned or found, or denies."""
    project.memory(
        "dec-push", "Force-push, your branch is your own.\n", title="Title of glo-pinned"
    )
    everywhere.memory("glo-same", "Sessions live in Redis.\n", title="Title of dec-other")
    everywhere.memory("glo-away", "Sessions do not live in Redis.\n", title="Sessions")
    block = inject(project.context(), prompt="do sessions live in redis?", explain=True)
    assert shown(block) == [
        ("glo-pinned", "pinned", "global"),
        ("dec-other", "retrieval", "project"),
    ]
    reasons = {verdict.id: verdict.reason for verdict in block.explain or ()}
    assert reasons["glo-same"] == "the project's dec-other says the same"
    assert reasons["glo-away"] == "it may contradict the project's dec-other"
    block = inject(project.context(), prompt="may I force-push?", explain=True)
    assert shown(block) == [("dec-push", "retrieval", "project")]
    reasons = {verdict.id: verdict.reason for verdict in block.explain or ()}
    assert reasons["glo-pinned"] == "it may contradict the project's dec-push"


def test_what_gave_way_does_not_come_back_beside_what_it_conflicts_with(
    project: Sandbox, everywhere: Sandbox
):
    """A fork of global memories is settled if the project takes a side."""
    everywhere.memory("glo-old", "Sessions live in memory.\n")
    everywhere.memory(
        "glo-long",
        "Sessions live in Redis, as long as their user works.\n",
        supersedes=("glo-old",),
    )
    everywhere.memory(
        "glo-away", "Sessions do not live in Redis.\n", title="Sessions", supersedes=("glo-old",)
    )
    block = inject(project.context(), prompt="do sessions live in redis?", explain=True)
    assert {id_ for id_, _tier, _scope in shown(block)} == {"glo-pinned", "dec-other", "glo-long"}
    (long,) = (item for item in block.items if item.id == "glo-long")
    assert long.conflicts == ("glo-away",)


@pytest.mark.parametrize("budget", [0, 60, 120, 160, 200, 250, 300])
def test_one_budget_holds_for_both(project: Sandbox, everywhere: Sandbox, budget: int):
    """The whole text costs no more than was allowed, whoever's memories are in it."""
    block = inject(project.context(), prompt="how do deploys work?", budget=budget)
    assert budgets.estimate_tokens(block.text) <= budget


def test_they_can_be_left_out(project: Sandbox, everywhere: Sandbox):
    """By an option, by a setting of the project or of the user, and for a revision."""
    args = ("inject", "--prompt", "prose")
    assert "glo-prose" in project.run(*args).stdout
    assert project.run(*args, "--no-global").stdout == ""
    assert project.run(*args, "--at", "HEAD").stdout == ""
    project.write(".memory/config.toml", "[inject]\nglobal = false\n")
    assert project.run(*args).stdout == ""
    project.write(".memory/config.toml", "")
    everywhere.write(".memory/config.toml", "[inject]\nglobal = false\n")
    assert project.run(*args).stdout == ""


def test_as_of_a_moment_holds_for_both(project: Sandbox, everywhere: Sandbox):
    """Later memories of the user are not shown."""
    everywhere.write(".memory/config.toml", "[inject]\nglobal_most = 5\n")
    late = "2026-02-28T00:00:00Z"
    everywhere.memory("glo-late", "Prose has titles.\n", title="Prose titles", timestamp=late)
    then = inject(project.context(), prompt="prose titles", as_of="2026-02-25")
    assert [item.id for item in then.items] == ["glo-pinned", "glo-prose"]
    now = inject(project.context(), prompt="prose titles")
    assert {item.id for item in now.items} == {"glo-pinned", "glo-prose", "glo-late"}


def test_trust_is_that_of_its_own_repository(project: Sandbox, everywhere: Sandbox):
    """The bar of a project is about who writes in it, not about its user."""
    everywhere.write(".memory/config.toml", "[inject]\nglobal_most = 5\n")
    project.git("update-ref", "refs/remotes/origin/main", "HEAD")
    project.write(".memory/config.toml", '[inject]\ntrust = "trusted"\n')
    everywhere.memory("glo-new", "Prose is proofread.\n")
    block = inject(project.context(), prompt="prose proofread deploys")
    assert {item.id: item.trust for item in block.items} == {
        "glo-pinned": "committed",
        "glo-prose": "committed",
        "glo-deploy": "committed",
        "glo-new": "local",
        "dec-deploy": "trusted",
    }


def test_a_project_without_memories_gets_those_of_its_user(sandbox: Sandbox, everywhere: Sandbox):
    """Preferences hold in a project that has not begun; other verbs say that it has not."""
    (sandbox.path / ".memory").rmdir()
    assert [item.id for item in inject(sandbox.context(), prompt="prose").items] == [
        "glo-pinned",
        "glo-prose",
    ]
    assert sandbox.run("inject", "--prompt", "prose", "--no-global").returncode == 2
    assert sandbox.run("list").returncode == 2


def test_files_that_are_no_memories_are_told_of_both(project: Sandbox, everywhere: Sandbox):
    """A note says which repository each file belongs to."""
    everywhere.write(".memory/decision/broken.md", "no memory")
    done = project.run("inject", "--prompt", "prose")
    assert "glo-prose" in done.stdout
    assert done.stderr.startswith("memtool: global memories: 1 file is not a memory")


def test_a_session_sees_a_global_memory_once(project: Sandbox, everywhere: Sandbox):
    """It is not shown again in the same session, even after the other one was."""
    args = ("inject", "--prompt", "deploys", "--session", "s1")
    assert "glo-deploy" in project.run(*args).stdout
    assert project.run(*args).stdout == ""
    everywhere.memory("glo-deploy", "Deploys are announced by mail.\n", scope="global")
    assert [item["id"] for item in project.json(*args)["items"]] == ["glo-deploy"]


def test_same_trees_same_bytes(project: Sandbox, everywhere: Sandbox):
    """Cold, warm, without a cache and with another hash seed it is the same answer."""
    args = ("inject", "--prompt", "how do deploys and prose work?", "--json")
    answers = {
        json.dumps(json.loads(project.run(*args, **env).stdout))
        for env in ({}, {}, {"PYTHONHASHSEED": "7"}, {"MEMTOOL_NO_CACHE": "1"})
    }
    assert len(answers) == 1


def test_what_was_shown_of_the_other_side_has_its_title(project: Sandbox, everywhere: Sandbox):
    """The ledger of a project knows the global memories that were injected here."""
    assert project.run("inject", "--prompt", "deploys").returncode == 0
    used = project.json("stats")["most_injected"]
    assert {row["id"]: row["title"] for row in used}["glo-deploy"] == "Title of glo-deploy"


def test_two_warm_sides_are_still_hot(project: Sandbox, everywhere: Sandbox):
    """Once the caches are there, no git is started and little is loaded for both sides."""
    args = ("inject", "--prompt", "how do deploys work?")
    expected, trace = warm(project, *args)
    assert b"glo-deploy" in expected
    assert libraries(trace) & HEAVY <= ALLOWED["inject"]
    answer, trace = drive(project, *args, PATH="/nowhere")
    assert (answer, trace["started"]) == (expected, [])


def test_global_alone_is_marked_too(project: Sandbox, everywhere: Sandbox):
    """`inject --global` is the block of the user's own memories."""
    answer = project.json("inject", "--global", "--prompt", "deploys")
    assert [(item["id"], item["scope"]) for item in answer["items"]] == [
        ("glo-pinned", "global"),
        ("glo-deploy", "global"),
    ]


@pytest.mark.parametrize("how", [(), ("--json",), ("--format", "json")])
def test_switched_off_it_is_silent(project: Sandbox, everywhere: Sandbox, how: tuple[str, ...]):
    """MEMTOOL_OFF gives the empty answer, in its shape, whatever is there."""
    done = project.run("inject", "--prompt", "deploys", *how, MEMTOOL_OFF="1")
    assert (done.returncode, done.stderr) == (0, "")
    assert (json.loads(done.stdout)["items"] == []) if how else (done.stdout == "")


def test_the_environment_sets_the_budget(project: Sandbox, everywhere: Sandbox):
    """MEMTOOL_BUDGET overrides the setting, options override both, nonsense is reported."""
    ws = project.context(MEMTOOL_BUDGET="120")
    assert inject(ws, prompt="deploys").budget.total == 120
    assert inject(ws, prompt="deploys", budget=300).budget.total == 300
    assert inject(ws, prompt="deploys", remaining=100_000).budget.total == 5_000
    for wrong in ("many", "-5", "1e3", "١٢", "9" * 40):
        done = project.run("inject", "--prompt", "deploys", MEMTOOL_BUDGET=wrong)
        assert (done.returncode, done.stdout) == (2, "")
        assert f"MEMTOOL_BUDGET must be a number of tokens, not {wrong!r}" in done.stderr
