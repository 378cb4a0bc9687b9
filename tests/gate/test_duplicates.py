from __future__ import annotations

from typing import Any

import pytest
from conftest import Sandbox

TEXT = "Sessions live in Redis because the cookie store grew past four kilobytes.\n"
YES = {"title": "Use Celery for jobs", "body": "Use Celery for background jobs.\n"}
NO = {"title": "Do not use Celery", "body": "Do not use Celery for background jobs.\n"}


def list_problems(sandbox: Sandbox, *args: str) -> list[tuple[str, str, str]]:
    """Return (code, id, severity) of what the claims check finds."""
    answer: Any = sandbox.json("check", *args)
    return [
        (row["code"], row["id"], row["severity"])
        for row in answer["problems"]
        if row["code"] in ("duplicate", "conflict")
    ]


@pytest.fixture
def filled(sandbox: Sandbox) -> Sandbox:
    """Two committed memories."""
    sandbox.memory("dec-a", TEXT, title="Sessions in Redis")
    sandbox.memory("dec-jobs", **YES)
    sandbox.commit()
    return sandbox


def test_a_staged_twin_is_refused(filled: Sandbox):
    """Exact and near twins of a committed memory are errors, each told once."""
    filled.memory("dec-b", TEXT, title="Sessions in Redis")
    filled.memory("dec-c", TEXT + "Ask.\n", title="Sessions in Redis", related_to=("dec-b",))
    assert list_problems(filled, "--staged") == []
    filled.git("add", "--all")
    expected = [("duplicate", "dec-b", "error"), ("duplicate", "dec-c", "error")]
    assert list_problems(filled, "--staged") == expected
    assert filled.run("check", "--staged").returncode == 1


def test_what_history_holds_already_is_a_warning(filled: Sandbox):
    """A commit must not fail for what another one brought in, nor a lifecycle change."""
    filled.memory("dec-b", TEXT, title="Sessions in Redis")
    filled.commit()
    assert list_problems(filled) == [("duplicate", "dec-b", "warning")]
    filled.memory("dec-b", TEXT, title="Sessions in Redis", importance="0.9")
    filled.git("add", "--all")
    assert list_problems(filled, "--staged") == []
    assert filled.run("check", "--staged").returncode == 0


def test_a_contradiction_is_a_warning_until_it_is_accepted(filled: Sandbox):
    """It does not refuse a commit: which side holds is for people to say."""
    filled.memory("dec-no", **NO)
    filled.git("add", "--all")
    assert list_problems(filled, "--staged") == [("conflict", "dec-no", "warning")]
    filled.memory("dec-no", **NO, conflicts_accepted=("dec-jobs",))
    filled.git("add", "--all")
    assert list_problems(filled, "--staged") == []


def test_a_range_tells_what_it_adds(filled: Sandbox):
    """CI sees the same as the hook, at the end of the range."""
    filled.memory("dec-b", TEXT, title="Sessions in Redis")
    filled.memory("dec-no", **NO)
    filled.commit()
    assert list_problems(filled, "--range", "HEAD~1..HEAD") == [
        ("duplicate", "dec-b", "error"),
        ("conflict", "dec-no", "warning"),
    ]


def test_a_superseding_memory_may_say_nearly_the_same(filled: Sandbox):
    """A small correction is not a duplicate of the memory it corrects."""
    filled.memory("dec-b", TEXT + "Ask.\n", title="Sessions in Redis", supersedes=("dec-a",))
    filled.git("add", "--all")
    assert list_problems(filled, "--staged") == []


def test_a_merge_is_not_refused_for_what_its_sides_say(filled: Sandbox):
    """Both branches had their own gate; twins that only the merge joins are warnings."""
    filled.git("checkout", "--quiet", "-b", "side")
    filled.memory(
        "dec-b", "Cookies hold nothing but a name, and last for one day.\n", title="Cookies"
    )
    filled.commit()
    filled.git("checkout", "--quiet", "main")
    filled.memory(
        "dec-c", "Cookies hold nothing but a name, and last for one day.\n", title="Cookies"
    )
    filled.commit()
    filled.git("merge", "--quiet", "--no-commit", "side")
    assert list_problems(filled, "--staged") == [("duplicate", "dec-c", "warning")]
    assert filled.run("check", "--staged").returncode == 0
