"""The gate on records of code: those that git contradicts, and code that moved on."""

from __future__ import annotations

import re

import pytest
from conftest import Sandbox

from memtool.commands.check import check

CODE = "def fetch_page(url):\n    return get(url)\n"


@pytest.fixture
def confirmed(sandbox: Sandbox) -> Sandbox:
    """A decision about a file, confirmed and not yet committed."""
    sandbox.write("src/page.py", CODE)
    sandbox.memory("dec-a", "Use fetch_page, see src/page.py:1-2.\n", files=("src/page.py",))
    sandbox.commit("begin")
    done = sandbox.run("confirm", "dec-a")
    assert done.returncode == 0, done.stderr
    return sandbox


def list_problems(sandbox: Sandbox, **options: str | bool) -> list[tuple[str, str, str]]:
    problems = check(sandbox.context(), **options).problems  # type: ignore[arg-type]
    return [(problem.code, problem.severity, problem.message) for problem in problems]


def edit(sandbox: Sandbox, pattern: str, new: str) -> None:
    path = next(sandbox.path.glob(".memory/**/dec-a.md"))
    text = path.read_text()
    assert re.search(pattern, text)
    path.write_text(re.sub(pattern, new, text))


def test_what_confirm_writes_is_right(confirmed: Sandbox) -> None:
    assert list_problems(confirmed) == []
    confirmed.git("add", "--all")
    assert list_problems(confirmed, staged=True) == []


@pytest.mark.parametrize(
    ("pattern", "new", "wrong"),
    [
        (r"src/page.py=\w+", "src/page.py=000000000000", "src/page.py"),
        (r"#L1-L2=\w+", "#L1-L2=00000000", "src/page.py"),
        (r"src/page.py=", "src/none.py=", "src/none.py"),
        (r"names=1", "names=0", "its names"),
    ],
)
def test_a_record_written_by_hand_is_refused(
    confirmed: Sandbox, pattern: str, new: str, wrong: str
) -> None:
    edit(confirmed, pattern, new)
    confirmed.git("add", "--all")
    ((code, severity, message),) = list_problems(confirmed, staged=True)
    assert (code, severity) == ("bad-record", "error")
    assert message.endswith(f"differ about {wrong}")
    assert confirmed.run("confirm", "dec-a").returncode == 0
    assert list_problems(confirmed) == []


def test_a_record_that_cannot_be_read_hides_no_memory(confirmed: Sandbox) -> None:
    """It is refused, but its memory can still be read."""
    edit(confirmed, r"saw: .*", "saw: nonsense")
    ((code, severity, message),) = list_problems(confirmed)
    assert (code, severity) == ("bad-record", "error")
    assert "'nonsense' is not PATH=BLOB" in message
    assert "Title of dec-a" in confirmed.run("show", "dec-a").stdout


def test_a_cited_commit_was_authored_when_it_is_recorded(sandbox: Sandbox) -> None:
    sandbox.write("src/page.py", CODE)
    at = sandbox.commit("begin")
    done = sandbox.run(
        *("new", "decision", "Pages", "--body", "It is so.", "--id", "dec-a"),
        *("--source", f"commit:{at}"),
    )
    assert done.returncode == 0, done.stderr
    assert list_problems(sandbox) == []
    edit(sandbox, rf"{at[:10]}=\d+", f"{at[:10]}=1")
    sandbox.git("add", "--all")
    ((code, _severity, message),) = list_problems(sandbox, staged=True)
    assert code == "bad-record"
    assert f"commit {at[:10]}" in message


def test_a_range_names_what_it_changed_after_it_was_confirmed(confirmed: Sandbox) -> None:
    """Confirmed again, it is as if it had been confirmed at the head."""
    confirmed.commit("confirm")
    base = confirmed.git("rev-parse", "HEAD~1").strip()
    assert list_problems(confirmed, range=f"{base}..HEAD") == []
    confirmed.write("src/page.py", CODE.replace("get(url)", "get(url, 5)"))
    confirmed.commit("change")
    ((code, severity, message),) = list_problems(confirmed, range=f"{base}..HEAD")
    assert (code, severity) == ("changed-since", "warning")
    assert message.startswith("lines 1 to 2 of src/page.py have changed")
    assert confirmed.run("confirm", "dec-a", "--still-holds").returncode == 0
    confirmed.commit("confirm again")
    assert list_problems(confirmed, range=f"{base}..HEAD") == []


def test_a_range_says_nothing_of_memories_that_it_leaves_alone(confirmed: Sandbox) -> None:
    base = confirmed.commit("confirm")
    confirmed.write("src/page.py", "pass\n")
    confirmed.commit("change")
    assert list_problems(confirmed, range=f"{base}..HEAD") == []


@pytest.mark.parametrize(
    "path",
    ["config/api_key.py", "src/password", "lib/access_token.rb", "x/private_key", "a/phone.py"],
)
def test_a_record_of_a_file_with_a_telling_name_is_no_secret(sandbox: Sandbox, path: str) -> None:
    """`api_key.py=3f2a91c0de12` is how a digest is written, and not an assignment."""
    sandbox.write(path, CODE)
    at = sandbox.commit("begin")
    done = sandbox.run(
        *("new", "decision", "Pages", "--body", f"It is so, see {path}:1-2.", "--id", "dec-a"),
        *("--file", path, "--source", f"file:{path}#L1-L2@{at}", "--commit"),
    )
    assert done.returncode == 0, done.stderr
    assert list_problems(sandbox) == []


def test_a_secret_in_a_record_is_one(confirmed: Sandbox) -> None:
    edit(confirmed, r"saw: .*", "saw: password=hunter2-Correct-Horse")
    codes = {code for code, _severity, _message in list_problems(confirmed)}
    assert {"secret", "bad-record"} <= codes
