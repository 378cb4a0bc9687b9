from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest

from memtool import templates
from memtool.sessions.extract import llm, statements
from memtool.sessions.extract.llm import Model, Unusable
from memtool.sessions.model import IMPORTANT, INTENT, Message

PROGRAM = str(Path(__file__).parent / "model_program.py")
BLOCK = '<memory-context id="1a2b3c4d5e6f">\nsecret rule\n</memory-context>'
HEARD = "Turns out the webhook signature is computed over the raw body, not the JSON."


def model_of(tmp_path: Path, mode: str, timeout_s: float = 20) -> Model:
    env = {"PATH": os.environ["PATH"], "ASKED": str(tmp_path / "asked.txt"), "GIT_DIR": "/x/.git"}
    return Model((sys.executable, PROGRAM, mode), timeout_s, env)


def count_calls(tmp_path: Path) -> int:
    return (tmp_path / "asked.txt").read_text(encoding="utf-8").count("\0")


@pytest.mark.parametrize("mode", ["good", "fenced", "wrapped"])
def test_json_is_found_bare_fenced_and_wrapped(tmp_path: Path, mode: str):
    """Text around the JSON does not matter."""
    (row,) = llm.ask(model_of(tmp_path, mode), "x", "findings")
    assert row["messages"] == [1]
    assert count_calls(tmp_path) == 1


@pytest.mark.parametrize(
    ("mode", "message"),
    [
        ("prose", 'did not answer with JSON {"findings": […]}'),
        ("partial", 'did not answer with JSON {"findings": […]}'),
        ("list", 'did not answer with JSON {"findings": […]}'),
        ("fails", "ended with status 1: not logged in  [31m"),
        ("huge", "said more than 1,000,000 bytes"),
    ],
)
def test_other_answers_are_refused_after_the_retries(tmp_path: Path, mode: str, message: str):
    """Each is asked once more, then told in one clause without control characters."""
    with pytest.raises(Unusable) as caught:
        llm.ask(model_of(tmp_path, mode), "x", "findings")
    assert caught.value.message.endswith(message)
    assert count_calls(tmp_path) == 2


def test_an_answer_may_come_at_the_second_try(tmp_path: Path):
    """A model that chats first is asked again."""
    assert len(llm.ask(model_of(tmp_path, "second"), "x", "findings")) == 1


def test_a_program_that_hangs_is_ended_with_its_children(tmp_path: Path):
    """After the time limit nothing that it started is left."""
    with pytest.raises(Unusable, match="did not answer within 1 seconds"):
        llm.ask(model_of(tmp_path, "hangs", timeout_s=1), "x", "findings")
    child = int((tmp_path / "asked.txt.pid").read_text(encoding="utf-8"))
    for _wait in range(100):
        if not is_running(child):
            break
        time.sleep(0.05)
    assert not is_running(child)


def is_running(process: int) -> bool:
    try:
        state = Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    except OSError:
        return False
    return state[0] != "Z"


def test_a_program_that_is_not_there_is_asked_once(tmp_path: Path):
    """A program that cannot be started is named."""
    model = Model(("no-such-program",), 5, {"PATH": str(tmp_path)})
    with pytest.raises(Unusable, match="no-such-program cannot be started"):
        llm.ask(model, "x", "findings")


def test_it_runs_in_an_empty_place_with_memtool_switched_off(tmp_path: Path):
    """No settings of a repository reach it, and an agent's own hooks stay silent."""
    place, off, git_dir, inside = llm.ask(model_of(tmp_path, "where"), "x", "findings")
    assert place != os.getcwd()
    assert (off, git_dir, inside) == ("1", None, [])
    assert not os.path.exists(place)


def read_contents(tmp_path: Path, mode: str, *texts: str, role: str = "user") -> list[str]:
    messages = [Message(n, role, text) for n, text in enumerate(texts, 1)]
    made = llm.extract(model_of(tmp_path, mode), messages, "ses-a")
    return [finding.content for finding in made]


def test_what_messages_support_is_found_in_the_words_of_the_model(tmp_path: Path):
    """The finding replaces the one of the rules, with its own evidence."""
    assert read_contents(tmp_path, "good", HEARD) == [
        "The webhook signature is computed over the raw body."
    ]


def test_what_no_message_supports_is_dropped(tmp_path: Path):
    """An invented quote is not a finding, nor is text of the assistant alone."""
    assert read_contents(tmp_path, "good", "Please fix the footer.") == []
    assert read_contents(tmp_path, "good", HEARD, role="assistant") == []


def test_a_model_cannot_drop_what_a_person_asked_to_keep(tmp_path: Path):
    """Intent of a person stays, whatever the model leaves out; other findings may go."""
    wish = "Remember: always use uv in this repository."
    assert read_contents(tmp_path, "empty", wish, HEARD) == ["Always use uv in this repository."]


SAID = Message(1, "user", f"{HEARD} The limit is 300 and lives in app/hooks.py.")


@pytest.mark.parametrize(
    ("content", "is_supported"),
    [
        ("The webhook signature is computed over the raw body.", True),
        ("The limit of 300 lives in app/hooks.py.", True),
        ("The limit of 400 lives in app/hooks.py.", False),
        ("The limit of 300 lives in app/other.py.", False),
        ("The webhook signature must be verified by the gateway team before every release.", False),
        ("Raw body.", False),
    ],
)
def test_every_name_and_most_words_must_have_been_said(content: str, is_supported: bool):  # noqa: FBT001
    """Another number or path is another claim, and so is a longer tale."""
    assert llm.is_supported(content, [SAID]) is is_supported


@pytest.mark.parametrize(
    "change",
    [
        {"category": "gossip"},
        {"confidence": 0.74},
        {"confidence": "high"},
        {"confidence": True},
        {"confidence": 7},
        {"messages": [2]},
        {"messages": ["1"]},
        {"messages": []},
        {"messages": 1},
        {"messages": [1, 99]},
        {"content": ""},
        {"content": 5},
        {"content": "webhook signature raw body " * 40},
        {"content": "webhook signature raw body " * 12},
        {"category": ["decision"]},
        {"category": {}},
        {"importance": [], "confidence": []},
        {"messages": [[1]]},
    ],
    ids=str,
)
def test_a_malformed_or_unsure_finding_is_dropped_alone(change: dict[str, object]):
    """Each row is checked by itself; a missing or odd row is not an error."""
    from sessions.model_program import RAW

    row = {"messages": [1]} | RAW | change
    assert llm._build_finding(row, {1: SAID}, "ses-a", "") is None
    assert llm._build_finding(RAW, {1: SAID}, "ses-a", "") is not None
    assert llm._build_finding([row], {1: SAID}, "ses-a", "") is None


def test_a_message_that_was_pasted_supports_nothing():
    """As for the rules: nobody typed 26 sentences. A tool's output may be as long."""
    from sessions.model_program import RAW

    pasted = f"{HEARD} " + "Then the client sends it. " * 25
    by_number = {1: Message(1, "user", pasted), 2: Message(2, "tool", pasted), 3: SAID}
    made = [
        llm._build_finding(RAW | {"messages": numbers}, by_number, "ses-a", "")
        for numbers in ([1], [2], [1, 3])
    ]
    assert [finding is None for finding in made] == [True, False, False]


def test_the_prompt_names_the_longest_statement_that_counts():
    """A model that does not know the limit would word most findings in vain."""
    assert f"at most {statements.MAX_WORDS} words" in templates.read(llm.PROMPT)


@pytest.mark.parametrize("tags", [5, "api", None, {}, [5, None]], ids=str)
def test_odd_tags_are_passed_over(tags: object):
    """They are the least part of a finding, and no reason to lose it."""
    from sessions.model_program import RAW

    made = llm._build_finding(RAW | {"tags": tags}, {1: SAID}, "ses-a", "")
    assert made is not None


def test_a_model_cannot_turn_round_what_a_person_said(tmp_path: Path):
    """Dropping the single word `never` keeps the support, but not the statement."""
    wish = "We never store the webhook signature of the raw body."
    assert read_contents(tmp_path, "turned", f"Remember: {wish}") == [wish]


def test_points_of_intent_come_from_the_rules_alone(tmp_path: Path):
    """A model cannot claim that a person meant it: the rules must have heard it."""
    wish = Message(1, "user", f"Remember that {HEARD[10:]}")
    plain = Message(1, "user", HEARD)
    model = model_of(tmp_path, "good")
    (meant,) = llm.extract(model, [wish], "ses-a")
    (heard,) = llm.extract(model, [plain], "ses-a")
    assert (meant.signals, heard.signals) == ((INTENT,), ())
    assert IMPORTANT not in heard.signals


def test_a_prompt_is_bounded_and_holds_the_last_messages():
    """A long log is cut at its beginning, a long output in its middle, our own block everywhere."""
    messages = [Message(n, "user", f"message {n} " + "word " * 500) for n in range(1, 300)]
    messages.append(Message(300, "tool", "first " + "x" * 50_000 + " last"))
    messages.append(Message(301, "user", f"{BLOCK} hello"))
    text = llm.build_prompt(messages)
    assert len(text) < llm.MAX_SENT + 5_000
    assert ('"n": 1,' in text, '"n": 299,' in text) == (False, True)
    assert ("first x" in text, "x last" in text, "secret rule" in text) == (True, True, False)
