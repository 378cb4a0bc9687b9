"""File rules: who names a governed file is given what governs it, first."""

from __future__ import annotations

import pytest
from conftest import Sandbox

from memtool.commands.inject import inject
from memtool.inject.block import InjectedBlock
from memtool.inject.file_rules import find_named_files

CHARGE = "app/billing/charge.py"


@pytest.fixture
def billing(sandbox: Sandbox) -> Sandbox:
    """Two files, a decision and a warning about one of them, and what only shares words."""
    sandbox.write(CHARGE, "x\n")
    sandbox.write("app/web/page.py", "x\n")
    sandbox.memory(
        "dec-charge",
        "Money is kept in cents.\n\n## Rationale\n\nFloats lie.\n",
        files=("app/billing/*.py",),
        title="Keep money in cents",
    )
    sandbox.memory(
        "sem-cards",
        "Never log card numbers.\n",
        type="semantic",
        category="warning",
        source=(f"file:{CHARGE}#L1",),
    )
    sandbox.memory(
        "sem-style",
        "Change notes accordingly, please, in the log of changes.\n",
        type="semantic",
        title="Please change the notes accordingly",
    )
    sandbox.memory("sem-page", "Pages are plain HTML.\n", type="semantic", files=("app/web/",))
    sandbox.commit()
    return sandbox


def ask(billing: Sandbox, prompt: str, **options: object) -> InjectedBlock:
    """The block for a prompt."""
    block = inject(billing.context(), prompt=prompt, **options)  # type: ignore[arg-type]
    assert isinstance(block, InjectedBlock)
    return block


@pytest.mark.parametrize(
    "prompt",
    [
        f"Please change {CHARGE} accordingly.",
        f"Please change the notes accordingly in {CHARGE}",
        "Please change charge.py accordingly",
        f"@{CHARGE}:12 please, change the log of changes",
    ],
)
@pytest.mark.parametrize("at", [None, "HEAD"])
def test_what_governs_a_named_file_comes_first(billing: Sandbox, prompt: str, at: str | None):
    """Decision and warning precede memories that share more words with the prompt."""
    items = [(item.id, item.tier) for item in ask(billing, prompt, at=at).items]
    assert sorted(items[:2]) == [("dec-charge", "governing"), ("sem-cards", "governing")]
    assert "sem-page" not in [id_ for id_, _tier in items]


def test_of_two_rules_the_one_that_answers_comes_first_and_whole(billing: Sandbox):
    """Who asks about the decision reads all of it, before the warning."""
    block = ask(billing, f"why is money kept in cents in {CHARGE}?")
    assert [item.id for item in block.items][:2] == ["dec-charge", "sem-cards"]
    assert "Floats lie" in block.items[0].text


def test_a_session_is_given_a_rule_once(billing: Sandbox):
    """The rule that a prompt brought is not brought again by the next one."""
    ask = ("inject", "--session", "s", "--prompt", f"rename {CHARGE}")
    assert "sem-cards@" in billing.run(*ask).stdout
    assert billing.run(*ask).stdout == ""


def test_rules_leave_room_for_the_answer(billing: Sandbox):
    """However many rules a file has, three are shown, within their share."""
    for number, word in enumerate(("retry", "limit", "audit", "queue", "lock")):
        billing.memory(f"dec-{number}xx", f"The {word} is decided.\n", files=("app/",))
    block = ask(billing, f"please change the notes accordingly for {CHARGE}")
    assert [item.tier for item in block.items].count("governing") == 3
    assert "sem-style" in [item.id for item in block.items]


@pytest.mark.parametrize(
    ("prompt", "named"),
    [
        ("see app/billing/charge.py", ["app/billing/charge.py"]),
        (
            "see @app/billing/charge.py:12, and `app/web/page.py`.",
            ["app/billing/charge.py", "app/web/page.py"],
        ),
        ("(app/billing/charge.py) app/billing/charge.py", ["app/billing/charge.py"]),
        ("see app/billing/", ["app/billing/"]),
        ("and/or 1.5 e.g. https://x.org/a.py a/b/c.py ... / . ..", []),
        ("x" * 100_000 + " app/billing/charge.py", []),
        ("a\0/b \ud800/c.py ~/x.py", []),
    ],
)
def test_files_of_a_prompt_are_those_that_are_there(
    billing: Sandbox, prompt: str, named: list[str]
):
    """Words that look like files count where such a file is."""
    assert list(find_named_files(billing.context(), prompt)) == named
