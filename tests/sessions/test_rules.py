from __future__ import annotations

import pytest

from memtool.sessions.extract.commands import normalize_command
from memtool.sessions.extract.extraction import extract
from memtool.sessions.extract.failures import find_failure
from memtool.sessions.model import INTENT, PIN, RESOLVED, Message

KEY_ERROR = 'Traceback (most recent call last):\n  File "app/a.py", line 3, in load\nKeyError: "X"'


def talk(*rows: tuple[str, str]) -> list[Message]:
    """Messages by role; `run: COMMAND` is a command that worked, `broken: COMMAND` one that did
    not, and `edit` changes a file."""
    made: list[Message] = []
    for role, text in rows:
        number = len(made) + 1
        kind, _colon, call = role.partition(": ")
        if kind in ("run", "broken", "edit"):
            tool = "Edit" if kind == "edit" else "Bash"
            made.append(Message(number, "assistant", "", tool=tool, call=call))
            made.append(Message(number + 1, "tool", text, tool=tool, is_ok=kind != "broken"))
        else:
            made.append(Message(number, role, text))
    return made


def kinds(*rows: tuple[str, str]) -> list[tuple[str, tuple[int, ...]]]:
    return [(finding.category, finding.messages) for finding in extract(talk(*rows), "ses-a")]


def test_what_memtool_itself_printed_is_no_evidence():
    """Its own failures do not come back as errors of the project."""
    rows = [
        ("broken: memtool check", KEY_ERROR),
        ("edit: app/a.py", ""),
        ("run: memtool check", ""),
    ]
    assert kinds(*rows) == []


def test_a_failure_with_its_fix_says_how():
    """Command, failure, signature, files and fix are kept, with both answers as evidence."""
    (finding,) = extract(
        talk(("broken: pytest -q", KEY_ERROR), ("edit: app/a.py", "ok"), ("run: pytest -q", "ok")),
        "ses-a",
    )
    assert (
        finding.content == '`pytest -q` failed with `KeyError: "X"`; changing app/a.py resolved it.'
    )
    assert (finding.messages, finding.files, finding.signals) == (
        (2, 6),
        ("app/a.py",),
        (RESOLVED,),
    )
    assert finding.field("error_signature") == 'KeyError: "X" at app/a.py:load'
    assert finding.field("command") == "pytest -q"


@pytest.mark.parametrize(
    "rows",
    [
        [("broken: pytest", KEY_ERROR), ("run: pytest", "ok")],
        [("broken: pytest", KEY_ERROR), ("run: cat app/a.py", "x"), ("run: pytest", "ok")],
        [
            ("edit: app/a.py", "ok"),
            ("broken: pytest", KEY_ERROR),
            ("edit: app/a.py", "ok"),
            ("run: pytest", "ok"),
        ],
        [
            ("broken: pytest", "E  AssertionError: assert 1 == 2"),
            ("edit: b.py", ""),
            ("run: pytest", "ok"),
        ],
        [
            ("broken: ruff check", "b.py:1:8: F401 [*] `os` imported but unused"),
            ("edit: b.py", ""),
            ("run: ruff check", "ok"),
        ],
        [("broken: cat a", "cat: a: No such file"), ("edit: a", ""), ("run: cat a", "")],
        [("broken: pytest", KEY_ERROR), ("edit: app/a.py", "ok")],
        [
            ("broken: pytest", KEY_ERROR),
            ("edit: app/a.py", "ok"),
            ("run: pytest", "ok"),
            ("broken: pytest", KEY_ERROR),
        ],
        [
            ("broken: pytest", KEY_ERROR),
            ("edit: app/a.py", "ok"),
            ("run: pytest", "ok"),
            ("run: git checkout -- app/a.py", ""),
        ],
        [
            ("broken: pytest", KEY_ERROR),
            ("edit: app/a.py", "ok"),
            ("run: pytest", "ok"),
            ("user", "no, it is still broken"),
        ],
    ],
    ids=[
        "flaky",
        "only looked",
        "own work",
        "planned",
        "style",
        "reading",
        "not seen to work",
        "came back",
        "undone",
        "denied",
    ],
)
def test_what_was_not_resolved_is_no_finding(rows: list[tuple[str, str]]):
    """Flaky, planned, own and returning failures, and fixes that were taken back, are left out."""
    assert kinds(*rows) == []


def test_a_command_is_quoted_without_its_dressing():
    """Directory, environment and redirections do not make another command."""
    for line in (
        "cd app && pytest -q",
        "CI=1 pytest -q 2>&1 | tail -5",
        "pytest  -q || true",
        'export A=$(b -c 1) && cd "x y" && pytest -q',
    ):
        assert normalize_command(line) == "pytest -q"


FOREIGN = """Traceback:
  File "/srv/x/app/b.py", line 1, in f
  File "/usr/lib/python3/json.py", line 2, in g"""


@pytest.mark.parametrize(
    ("text", "signature"),
    [
        (KEY_ERROR, 'KeyError: "X" at app/a.py:load'),
        (
            "TypeError: x is not a function\n    at run (src/a.js:3:9)\n    at main (src/b.js:1:1)",
            "TypeError: x is not a function at src/a.js:run",
        ),
        (
            "error[E0382]: borrow of moved value\n  --> src/main.rs:4:5",
            "error[E0382]: borrow of moved value at src/main.rs",
        ),
        ("panic: nil map\n\ngoroutine 1:\n\tmain.go:9 +0x1d", "panic: nil map at main.go"),
        ("fatal: not a git repository", "fatal: not a git repository"),
        ("npm ERR! code ERESOLVE\nnpm ERR! more", "npm ERR! code ERESOLVE"),
        (f"{FOREIGN}\nValueError: bad", "ValueError: bad at app/b.py:f"),
        ("\x1b[31mValueError: red\x1b[0m", "ValueError: red"),
        (
            "src/io.c: In function 'f':\nsrc/io.c:5:3: error: expected ';'",
            "error: expected ';' at src/io.c",
        ),
        (
            "app/a.py:3: error: Incompatible types  [assignment]\nFound 1 error in 1 file",
            "error: Incompatible types [assignment] at app/a.py",
        ),
        (
            "app/a.py:9: in f\n    g()\nE   Failed: DID NOT RAISE <class 'ValueError'>",
            "Failed: DID NOT RAISE <class 'ValueError'> at app/a.py:f",
        ),
        (
            "app/a.py:1:8: F401 [*] `os` imported but unused\nFound 1 error.",
            "F401 [*] `os` imported but unused at app/a.py",
        ),
        (
            "F401 [*] `os` imported but unused\n --> app/a.py:1:8\n  |",
            "F401 [*] `os` imported but unused at app/a.py",
        ),
    ],
)
def test_a_signature_is_type_and_top_frame(text: str, signature: str):
    """The exception, and the innermost frame of the project itself, in several languages."""
    failure = find_failure(text)
    assert failure is not None
    assert failure.signature == signature


def test_an_output_without_a_failure_has_no_signature():
    """Where nothing says what failed, nothing is made up."""
    assert find_failure("3 files changed") is None
    assert find_failure("UTF8 text\nRFC 3339 is kept") is None
    assert find_failure("") is None


@pytest.mark.parametrize(
    ("later", "is_kept"),
    [
        ("No, don't use npm here.", True),
        ("nope, wrong table", True),
        ("Scratch that, keep the footer as it was.", True),
        ("no, it is still broken", False),
        ("that didn't fix it", False),
        ("please revert that", False),
    ],
)
def test_what_a_tool_has_proved_outlives_a_no_about_something_else(later: str, *, is_kept: bool):
    """Only who says that it still fails, or undoes it, takes back a fix that was seen to work."""
    rows = [
        ("broken: pytest -q", KEY_ERROR),
        ("edit: app/a.py", "ok"),
        ("run: pytest -q", "ok"),
        ("user", later),
    ]
    assert ("error" in [category for category, _messages in kinds(*rows)]) == is_kept


def test_what_is_taken_back_is_gone_and_the_rest_stays():
    """Scratch that means what was said last, not what was said long before."""
    rows = [
        ("user", "Always keep carts in Postgres."),
        ("assistant", "OK."),
        ("user", "From now on write the docs in German."),
        ("user", "scratch that"),
    ]
    assert kinds(*rows) == [("preference", (1,))]


def test_asking_to_keep_and_to_pin_are_signals():
    """A person's wish counts as intent, and a pin as a pin in addition."""
    (remembered,) = extract(talk(("user", "Remember that the crons run in UTC.")), "ses-a")
    (pinned,) = extract(talk(("user", "Pin this: the crons run in UTC.")), "ses-a")
    assert (remembered.signals, pinned.signals) == ((INTENT,), (INTENT, PIN))
    assert kinds(("user", "pin the version of the requests package")) == []


def test_an_answer_may_say_itself_what_was_called():
    """Messages that agents add one by one need no call before the answer."""
    messages = [
        Message(1, "tool", KEY_ERROR, tool="Bash", call="pytest", is_ok=False),
        Message(2, "tool", "done", tool="Edit", files=("app/a.py",), is_ok=True),
        Message(3, "tool", "ok", tool="Bash", call="pytest", is_ok=True),
    ]
    (finding,) = extract(messages, "ses-a")
    assert (finding.messages, finding.files) == ((1, 3), ("app/a.py",))


def test_a_patch_given_to_the_shell_is_an_edit():
    """Some agents patch files by a command; the fix names the files, not the patch."""
    messages = [
        Message(1, "tool", KEY_ERROR, tool="shell", call="pytest", is_ok=False),
        Message(2, "tool", "", tool="shell", call="apply_patch << E", files=("a.py",), is_ok=True),
        Message(3, "tool", "ok", tool="shell", call="pytest", is_ok=True),
    ]
    (finding,) = extract(messages, "ses-a")
    assert finding.field("fix") == "Changing a.py"


def test_nothing_that_cannot_be_shown_gets_into_a_finding():
    """Escapes, bells and characters that turn the direction of text become spaces."""
    odd = "KeyError: \x07\x1b]0;t\x07 'a\u202e'"
    (finding,) = extract(
        talk(("broken: make\x07", odd), ("edit: a.py", "ok"), ("run: make\x07", "ok")), "ses-a"
    )
    texts = [finding.content, finding.title, *dict(finding.fields).values()]
    assert all(line.isprintable() for text in texts for line in text.split("\n"))


def test_a_variable_that_is_set_anew_is_the_fix():
    """The same program, failing without it and working with it."""
    memory = "FATAL ERROR: Reached heap limit Allocation failed"
    rows = [("broken: A=1 npm run build", memory), ("run: A=1 B=2 npm run build", "built")]
    (finding,) = extract(talk(*rows), "ses-a")
    assert finding.content == f"`npm run build` failed with `{memory}`; setting `B=2` resolved it."
    assert kinds(("broken: B=2 npm test", memory), ("run: npm test", "built")) == []
