"""A check of a whole tree with what earlier ones kept, and without."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from conftest import Sandbox

from memtool.commands.check import check
from memtool.gate import acquaintance, kept, neighbours
from memtool.memory.problem import Problem

TEXT = (
    "the cache keeps every token of a session until its window ends and the queue drains into"
    " one table that the worker reads by name after each deploy of the billing service"
)
WORDS = TEXT.split()
NAMES = [f"dec-{letter}" for letter in "abcdefghijklmn"]


def room(sandbox: Sandbox) -> Path:
    return sandbox.path / ".git" / "memtool" / "gate"


def told(sandbox: Sandbox) -> tuple[Problem, ...]:
    return check(sandbox.context()).problems


def told_anew(sandbox: Sandbox) -> tuple[Problem, ...]:
    for kind in ("near", "right"):
        for path in room(sandbox).glob(f"{kind}-*"):
            path.unlink()
    return told(sandbox)


def change(sandbox: Sandbox, draw: random.Random) -> None:
    """Write, edit, replace or remove a memory, mostly one that is like others."""
    name = draw.choice(NAMES)
    path = sandbox.path / f".memory/decision/2026-02/{name}.md"
    if path.exists() and draw.random() < 0.3:
        path.unlink()
        return
    words = list(WORDS)
    for _edit in range(draw.choice((0, 0, 1, 2, 20))):
        words[draw.randrange(len(words))] = draw.choice(("alpha", "beta", "gamma", "delta"))
    old = draw.choice([other for other in NAMES if other != name])
    hidden = "\u200b" if draw.random() < 0.1 else ""
    sandbox.memory(
        name,
        " ".join(words) + f"{hidden}.\n",
        status=draw.choice(("confirmed", "confirmed", "deprecated", "deleted", "candidate"))
        if draw.random() < 0.5
        else "confirmed",
        supersedes=(old,) if draw.random() < 0.2 else (),
        files=("src/*.py",) if draw.random() < 0.2 else (),
        title=draw.choice(("Session cache", f"Title of {name}")),
    )


@pytest.mark.parametrize("seed", range(12))
def test_what_was_kept_gives_the_answers_of_looking_anew(
    sandbox: Sandbox, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However files change between checks, a kept answer never stands where a new one differs."""
    draw = random.Random(seed)
    if seed % 3 == 1:  # numbers become common, and uncommon again
        for module in (neighbours, acquaintance):
            monkeypatch.setattr(module, "MOST_HOLDING", 4)
    if seed % 3 == 2:
        monkeypatch.setattr(acquaintance, "MOST_MOVED", 5)
    for _memory in range(8):
        change(sandbox, draw)
    sandbox.commit()
    for _step in range(6):
        told(sandbox)
        for _change in range(draw.choice((0, 1, 1, 2))):
            change(sandbox, draw)
        if draw.random() < 0.3:
            sandbox.git("add", "--all")
            sandbox.git("commit", "--quiet", "--allow-empty", "--message", "change")
        mine = told(sandbox)
        assert mine == told(sandbox)
        assert mine == told_anew(sandbox)


def test_a_twin_that_became_another_memory_is_none(sandbox: Sandbox) -> None:
    """What two texts had in common is forgotten with one of them."""
    sandbox.memory("dec-a", " ".join(WORDS) + ".\n")
    sandbox.memory("dec-b", " ".join(WORDS) + " Always.\n")
    assert "duplicate" in {problem.code for problem in told(sandbox)}
    sandbox.memory("dec-a", "Nothing here reminds of anything said elsewhere.\n", title="Other")
    assert told(sandbox) == ()


def test_a_range_is_judged_alike_with_what_was_kept(sandbox: Sandbox) -> None:
    """CI may keep its cache or not."""
    sandbox.memory("dec-a", " ".join(WORDS) + ".\n")
    sandbox.commit()
    told(sandbox)
    sandbox.memory("dec-b", " ".join(WORDS) + ".\n", files=("nowhere/*.py",))
    sandbox.commit()
    mine = check(sandbox.context(), range="HEAD~..HEAD").problems
    assert {problem.code for problem in mine} == {"duplicate", "no-such-file"}
    for path in room(sandbox).iterdir():
        path.unlink()
    assert check(sandbox.context(), range="HEAD~..HEAD").problems == mine


@pytest.mark.parametrize("damage", [b"", b"junk", b"00000000\n[]", None])
def test_damage_costs_time_alone(sandbox: Sandbox, damage: bytes | None) -> None:
    """A file whose checksum is wrong is as good as none; None flips one bit in its middle."""
    sandbox.memory("dec-a", " ".join(WORDS) + ".\n")
    sandbox.memory("dec-b", " ".join(WORDS) + ".\n")
    sandbox.commit()
    mine = told(sandbox)
    files = sorted(room(sandbox).glob("*-*"))
    assert {path.name.partition("-")[0] for path in files} >= {"near", "right"}
    for path in files:
        if not path.name.startswith("clean-"):
            data = path.read_bytes()
            middle = len(data) // 2
            flipped = data[:middle] + bytes([data[middle] ^ 4]) + data[middle + 1 :]
            path.write_bytes(flipped if damage is None else damage)
    assert told(sandbox) == mine


def test_a_rule_that_changes_forgets_what_was_kept(tmp_path: Path) -> None:
    """What is kept under one name is not found under another, and only the last is there."""
    kept.store(str(tmp_path), "near", kept.rules(0.5), [1])
    assert kept.load(str(tmp_path), "near", kept.rules(0.5)) == [1]
    assert kept.load(str(tmp_path), "near", kept.rules(0.6)) is None
    kept.store(str(tmp_path), "near", kept.rules(0.6), [2])
    assert len(list((tmp_path / "gate").iterdir())) == 1
