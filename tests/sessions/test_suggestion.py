"""The line that tells an agent that a prompt may be worth keeping."""

from __future__ import annotations

import pytest
from commands.test_hook import CLAUDE, ask, project  # noqa: F401  # a fixture
from conftest import Sandbox

from memtool.sessions.suggestion import LINE, asks_to_keep

RULE = "From now on, always run the linter before you commit."


@pytest.mark.parametrize(
    "prompt",
    [
        "Remember that the staging database is shared.",
        "keep in mind: no new dependencies",
        RULE,
        "Never touch the generated files.",
        "I told you not to use emojis.",
        "make this a rule",
        "update your rules so that you never do this again",
        "stop doing that",
        "À partir de maintenant, réponds en français.",
        "请记住, 我们只用中文回答",
    ],
)
def test_words_that_ask_to_keep_something(prompt: str):
    """In several languages, by what people say when something is to last."""
    assert asks_to_keep(prompt)


@pytest.mark.parametrize(
    "prompt",
    [
        "",
        "fix the login page",
        "why does it never load?",
        "should we always retry?",
        "for now always use the old one",
        "spec:\n" + "The client must always send a header. " * 200,
        "```\nnever\n```",
    ],
)
def test_other_prompts_do_not(prompt: str):
    """A task, a question, the moment, and pasted text."""
    assert not asks_to_keep(prompt)


def test_an_agent_is_told_once_a_prompt_and_three_times_a_session(project: Sandbox):  # noqa: F811
    """The line comes with the block, or alone; another session is told again."""
    assert ask(project, CLAUDE, prompt=RULE).count(LINE) == 1
    assert LINE not in ask(project, CLAUDE, prompt=RULE)
    prompts = [f"Never change part {number} without a test." for number in range(4)]
    assert [LINE in ask(project, CLAUDE, prompt=prompt) for prompt in prompts] == [
        True,
        True,
        False,
        False,
    ]
    assert LINE in ask(project, CLAUDE, prompt=RULE, session_id="another")


def test_it_can_be_switched_off(project: Sandbox):  # noqa: F811
    """By the project, or by the user for themselves."""
    assert project.run("config", "capture.suggest", "off").returncode == 0
    assert LINE not in ask(project, CLAUDE, prompt=RULE)
