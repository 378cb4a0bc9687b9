"""`memtool inject` with a prompt that names a memory: it is shown, whatever else it shares."""

from __future__ import annotations

import json

import pytest
from conftest import Sandbox

from memtool.commands.inject import inject
from memtool.inject.block import InjectedBlock

PROMPT = "speed up the wheel build by implementing ADR013 (#1604)"
PROOFS = "Fraud proofs are gossiped between light nodes.\n"


def ids(injected: InjectedBlock) -> list[str]:
    return [item.id for item in injected.items]


def why(injected: InjectedBlock) -> dict[str, str]:
    return {verdict.id: verdict.reason for verdict in injected.explain or ()}


@pytest.fixture
def project(sandbox: Sandbox) -> Sandbox:
    """A committed store of a numbered record and two other memories."""
    sandbox.memory("adr-013-fraud-proofs", PROOFS, title="Fraud proofs")
    sandbox.memory("dec-wheel", "The wheel build takes hatchling.\n", title="Wheel build")
    sandbox.memory("dec-lint", "Ruff formats the sources.\n", title="Ruff")
    sandbox.commit()
    return sandbox


def test_a_named_memory_comes_first(project: Sandbox) -> None:
    """It passes gate and threshold, and keeps no other answer out."""
    block = inject(project.context(), prompt=PROMPT, explain=True)
    assert ids(block) == ["adr-013-fraud-proofs", "dec-wheel"]
    assert why(block)["adr-013-fraud-proofs"].startswith("named in the prompt; ")
    assert "named" not in why(block)["dec-wheel"]
    assert ids(inject(project.context(), prompt="ship ADR-013 today")) == ["adr-013-fraud-proofs"]


def test_the_threshold_drops_no_named_memory(project: Sandbox) -> None:
    """The strictest settings concern what nobody named."""
    for name in ("min_coverage", "threshold"):
        project.run("config", f"inject.{name}", "1")
    project.commit()
    assert "adr-013-fraud-proofs" in ids(inject(project.context(), prompt=PROMPT))


def test_a_hook_shows_a_named_memory(project: Sandbox) -> None:
    """A host gets the same as the command line."""
    event = json.dumps({"cwd": str(project.path), "session_id": "a", "prompt": PROMPT})
    done = project.run("hook", "claude", "user-prompt-submit", "--input", event)
    assert "Fraud proofs are gossiped" in done.stdout


@pytest.mark.parametrize(
    "fields",
    [
        {"status": "archived"},
        {"status": "deleted"},
        {"status": "deprecated"},
        {"expires": "2026-02-23"},
        {"privacy": ("private",)},
    ],
)
def test_a_name_opens_no_door(project: Sandbox, fields: dict[str, str]) -> None:
    """What an agent may not see stays hidden, also if the prompt names it."""
    project.memory("adr-013-fraud-proofs", PROOFS, title="Fraud proofs", **fields)
    project.commit()
    assert ids(inject(project.context(), prompt=PROMPT)) == ["dec-wheel"]


def test_a_name_makes_no_memory_trusted(project: Sandbox) -> None:
    """A file of the worktree with a fitting id is refused if the project asks for commits."""
    project.memory("adr-014-more", "Blocks are pruned.\n", title="Pruning")
    assert ids(inject(project.context(), prompt="speed up ADR 14")) == ["adr-014-more"]
    project.run("config", "inject.trust", "committed")
    project.commit("settings", ".memory/config.toml")
    assert ids(inject(project.context(), prompt="speed up ADR 14")) == []


def test_the_head_of_a_named_memory_is_shown(project: Sandbox) -> None:
    """A prompt with an old number gets what holds now."""
    project.memory(
        "dec-proofs", "Proofs are pulled.\n", title="Pull", supersedes=("adr-013-fraud-proofs",)
    )
    project.commit()
    assert "dec-proofs" in ids(inject(project.context(), prompt=PROMPT))
    assert "adr-013-fraud-proofs" not in ids(inject(project.context(), prompt=PROMPT))


def test_more_of_one_source_are_shown_if_all_are_named(project: Sandbox) -> None:
    """The limit for one source is for what was only found."""
    for number in (14, 15, 16):
        project.memory(
            f"adr-{number:03}-a",
            f"Rule {'abcdefghijklmnopq'[number]} holds for {number} places.\n",
            title=f"Title {number}",
            source=("url:https://example.org/all",),
        )
    project.commit()
    block = inject(project.context(), prompt="adr-14, adr-15 and adr-16 of the wheel")
    assert {"adr-014-a", "adr-015-a", "adr-016-a"} <= set(ids(block))


def test_the_budget_holds(project: Sandbox) -> None:
    """A named memory that does not fit is left out, and the reason is given."""
    project.memory("adr-013-fraud-proofs", "Fraud proofs are gossiped. " * 200, title="Fraud")
    project.commit()
    block = inject(project.context(), prompt=PROMPT, budget=150, explain=True)
    assert "adr-013-fraud-proofs" not in ids(block)
    assert why(block)["adr-013-fraud-proofs"].startswith("named in the prompt; over budget")
