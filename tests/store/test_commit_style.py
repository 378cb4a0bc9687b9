"""The style of commits: template and trailers of the settings, and what a history suggests."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from conftest import Sandbox

from memtool.api import Project
from memtool.authoring import write
from memtool.errors import MemtoolError
from memtool.store import messages
from memtool.store.commit_style import (
    CONVENTIONAL,
    DEFAULT_SUBJECT,
    FAULTS,
    MAX_SUBJECT_CHARS,
    SUBJECT_KEY,
    TRAILERS_KEY,
    find_type,
    format_subject,
    guess_subject,
    suggest_subject,
)
from memtool.store.commits import build_message, commit_files
from memtool.store.edits import FileEdit, commit_edits

PLAIN = ("Add a login page", "Hold seats for a day", "web: faster", "Typo", "Bump axe to 2")
DOCS = ("feat: seats", "fix(web): login", "docs: tour", "chore: bump axe", "test: seats")
CHORE = ("feat: seats", "fix!: login", "chore(deps): bump axe", "ci: cache", "refactor: seats")


@pytest.mark.parametrize(
    ("template", "summary", "subject"),
    [
        (DEFAULT_SUBJECT, "add Hold a seat", "memory: add Hold a seat"),
        (CONVENTIONAL, "add Hold a seat.", "docs(memory): add Hold a seat"),
        ("{summary} [skip ci]", "add\nHold  a seat", "add Hold a seat [skip ci]"),
        (DEFAULT_SUBJECT, "add " + "seat " * 20, f"memory: add{' seat' * 11} …"),
        (CONVENTIONAL, "x" * 90, f"docs(memory): {'x' * 56} …"),
        ("{summary}", "set {summary}", "set {summary}"),
    ],
)
def test_a_subject_is_one_short_line(template: str, summary: str, subject: str) -> None:
    """It is cut between words if it can be, ends in no full stop, and no text is a template."""
    assert format_subject(template, summary) == subject
    assert len(subject) <= MAX_SUBJECT_CHARS


@pytest.mark.parametrize(
    ("key", "text", "fault"),
    [
        (SUBJECT_KEY, "chore: {summary}", ""),
        (SUBJECT_KEY, "chore: memory", "must contain {summary} once"),
        (SUBJECT_KEY, "", "must contain {summary} once"),
        (SUBJECT_KEY, "{summary} {summary}", "must contain {summary} once"),
        (SUBJECT_KEY, "chore:\n{summary}", "must be one line"),
        (SUBJECT_KEY, "\x1b[31m{summary}", "must be one line"),
        (SUBJECT_KEY, "\u202e{summary}", "must be one line"),
        (SUBJECT_KEY, "c" * 41 + "{summary}", "may have 40 characters"),
        (TRAILERS_KEY, "Signed-off-by", ""),
        (TRAILERS_KEY, "Reviewed-by: {author}", ""),
        (TRAILERS_KEY, "Change-Type: docs", ""),
        (TRAILERS_KEY, "Change-Type", "must have a value"),
        (TRAILERS_KEY, "Signed-off-by: ", "must have a value"),
        (TRAILERS_KEY, "memory-id: dec-a", "memtool writes itself"),
        (TRAILERS_KEY, "two words: x", "must be lines such as"),
        (TRAILERS_KEY, "A: b\nSupersedes: dec-a", "must be one line"),
        (TRAILERS_KEY, f"A: {'b' * 200}", "must be one line of at most 200"),
    ],
)
def test_a_setting_that_spoils_messages_is_refused(key: str, text: str, fault: str) -> None:
    """Nothing in it may begin a line, hide text, or pose as what memtool reads."""
    answer = FAULTS[key](text)
    assert answer.startswith(fault) if fault != "memtool writes itself" else fault in answer
    assert bool(answer) == bool(fault)


@pytest.mark.parametrize(
    ("subjects", "has_commitlint", "template"),
    [
        (DOCS, False, "docs(memory): {summary}"),
        (CHORE, False, "chore(memory): {summary}"),
        (("feat: a", "fix: b", "fix: c", "ci: d", "test: e"), False, "docs(memory): {summary}"),
        (PLAIN, False, ""),
        (PLAIN, True, ""),
        ((), False, ""),
        ((), True, "docs(memory): {summary}"),
        (("feat: a", "fix: b"), False, ""),
        ((*DOCS, *PLAIN), False, ""),
        ((*CHORE, *PLAIN), True, "chore(memory): {summary}"),
        (
            (*DOCS, "Merge branch 'x'", 'Revert "feat: y"', *["memory: add Z"] * 9),
            False,
            CONVENTIONAL,
        ),
    ],
)
def test_the_habit_of_a_history_is_guessed(
    subjects: Sequence[str], *, has_commitlint: bool, template: str
) -> None:
    """Most subjects must be conventional, or some where commitlint demands it; else no guess."""
    assert guess_subject(subjects, has_commitlint) == template
    assert not template or not FAULTS[SUBJECT_KEY](template)


@pytest.mark.parametrize(
    ("subject", "type_"),
    [
        ("fix: a typo", "fix"),
        ("fix(web): a typo", "fix"),
        ("fix(web)!: a typo", "fix"),
        ("fix a typo", ""),
        ("fix:a typo", ""),
        ("fix(): a typo", ""),
        ("fix: ", ""),
        ("net: fix a typo", ""),
        ("Fix: a typo", ""),
        ("see fix: a typo", ""),
    ],
)
def test_the_type_of_a_conventional_subject(subject: str, type_: str) -> None:
    """Only the usual types count: `net: fix` is the habit of other projects."""
    assert find_type(subject) == type_


@pytest.mark.parametrize(
    ("path", "text", "is_asked"),
    [
        ("commitlint.config.mjs", "export default {}", True),
        (".commitlintrc.yml", "extends: []", True),
        ("package.json", '{"commitlint": {"extends": []}}', True),
        ("package.json", '{"scripts": {"commitlint": "x"}}', False),
        ("package.json", "{", False),
        ("package.json", "3", False),
        ("docs/commitlint.config.js", "", False),
    ],
)
def test_commitlint_is_seen_by_its_files(
    sandbox: Sandbox, path: str, text: str, *, is_asked: bool
) -> None:
    """Its file at the top is enough, also before the first commit."""
    sandbox.write(path, text)
    expected = CONVENTIONAL if is_asked else ""
    assert suggest_subject(sandbox.context().repository) == expected


def test_only_the_last_200_subjects_count(sandbox: Sandbox) -> None:
    """A team that changed its habit is asked by what it does now."""
    sandbox.git("commit", "--quiet", "--allow-empty", "-m", "Begin")
    tree = sandbox.git("rev-parse", "HEAD^{tree}").strip()
    tip = sandbox.git("rev-parse", "HEAD").strip()
    for number in range(150):
        tip = sandbox.git("commit-tree", "-p", tip, "-m", f"Do {number}", tree).strip()
    for number in range(130):
        tip = sandbox.git("commit-tree", "-p", tip, "-m", f"fix: {number}", tree).strip()
    sandbox.git("reset", "--quiet", "--soft", tip)
    assert suggest_subject(sandbox.context().repository) == CONVENTIONAL


def test_the_message_is_in_the_style_of_the_settings(sandbox: Sandbox) -> None:
    """A sign-off has the author's name and address, and the own trailers are read as before."""
    sandbox.write(
        ".memory/config.toml",
        '[commit]\nsubject = "chore: {summary}"\n'
        'trailers = ["Change-Type: docs", "Signed-off-by"]\n',
    )
    text = build_message(sandbox.context(), "add X", {"Memory-Id": "dec-a"})
    author = sandbox.git("var", "GIT_AUTHOR_IDENT").rpartition(" ")[0].rpartition(" ")[0]
    assert text == (
        f"chore: add X\n\nMemory-Id: dec-a\nChange-Type: docs\nSigned-off-by: {author}\n"
    )
    assert messages.parse_trailers(text) == (("Memory-Id", "dec-a"),)


def test_the_commit_of_a_style_has_it(sandbox: Sandbox) -> None:
    """A hook that demands it would refuse the commit that sets it otherwise."""
    sandbox.memory("dec-a")
    sandbox.commit()
    context = sandbox.context()
    write.set_option(context, SUBJECT_KEY, "docs(memory): {summary}", commit=True, dry_run=False)
    write.set_option(context, TRAILERS_KEY, ("Signed-off-by",), commit=True, dry_run=False)
    subjects = sandbox.git("log", "-2", "--format=%s|%(trailers:key=Signed-off-by)").split("\n")
    assert subjects[0].startswith("docs(memory): set commit.trailers|Signed-off-by: ")
    assert "docs(memory): set commit.subject|" in subjects


def test_what_is_read_of_commits_does_not_depend_on_the_subject(sandbox: Sandbox) -> None:
    """Log, undo and the gate go by trailers and files."""
    sandbox.write(".memory/config.toml", '[commit]\nsubject = "Ticket 7 - {summary}"\n')
    sandbox.memory("dec-a")
    sandbox.commit()
    sandbox.json("archive", "dec-a", "--reason", "it is over", "--commit")
    assert sandbox.git("log", "-1", "--format=%s") == "Ticket 7 - archive Title of dec-a\n"
    newest = sandbox.json("log", "dec-a")["events"][0]
    assert (newest["kind"], newest["reason"]) == ("archived", "it is over")
    sandbox.json("undo", "dec-a", "--commit")
    assert sandbox.git("log", "-1", "--format=%s") == "Ticket 7 - undo Title of dec-a\n"
    assert sandbox.json("show", "dec-a")["status"] == "confirmed"
    assert sandbox.json("check", "--range", "HEAD~2..HEAD")["problems"] == []


HOOK = """#!/bin/sh
printf '\\033[31minput: \\033[0m%s\\n\\n' "$(head -1 "$1")" >&2
{test} && exit 0
echo '{words}' >&2
exit 1
"""


def install_hook(sandbox: Sandbox, test: str, words: str, name: str = "commit-msg") -> None:
    """Install a hook that lets a message pass if a shell test on it says so."""
    hook = sandbox.write(f".git/hooks/{name}", HOOK.format(test=test, words=words))
    hook.chmod(0o755)


def test_a_refused_subject_is_told_with_its_setting(sandbox: Sandbox) -> None:
    """The hint names the template that the history suggests; with it the commit is made."""
    for subject in CHORE:
        sandbox.write("seats", subject)
        sandbox.commit(subject)
    install_hook(sandbox, 'grep -q "^[a-z]*(*[a-z]*)*: " "$1" && ! grep -q ^memory "$1"', "no type")
    path = sandbox.memory("dec-a")
    with pytest.raises(MemtoolError) as caught:
        commit_files(sandbox.context(), [path], "add X", {})
    error = caught.value
    assert error.code == "commit-refused"
    assert error.message.split("\n") == [
        f"{path} is written but not committed: a hook refused the message",
        "  input: memory: add X",
        "  no type",
    ]
    setting, again = error.hint.split("\n")
    assert setting == 'memtool config commit.subject "chore(memory): {summary}"'
    assert again == f"then: git add -- {path} && git commit -- {path}"
    sandbox.json("config", "commit.subject", "chore(memory): {summary}")
    assert commit_files(sandbox.context(), [path], "add X", {})


def test_a_missing_sign_off_is_told_with_its_setting(sandbox: Sandbox) -> None:
    """The hint keeps the trailers that are set already."""
    install_hook(sandbox, 'grep -q "^Signed-off-by: " "$1"', "DCO: sign your work")
    sandbox.write(".memory/config.toml", '[commit]\ntrailers = ["Change-Type: docs"]\n')
    path = sandbox.memory("dec-a")
    with pytest.raises(MemtoolError) as caught:
        commit_files(sandbox.context(), [path], "add X", {})
    setting = caught.value.hint.split("\n")[0]
    assert setting == "memtool config commit.trailers 'Change-Type: docs,Signed-off-by'"
    sandbox.json("config", "commit.trailers", "Change-Type: docs,Signed-off-by")
    assert commit_files(sandbox.context(), [path], "add X", {})


def test_the_words_of_a_hook_are_data(sandbox: Sandbox) -> None:
    """They come without control characters and secrets, and only the first lines of them."""
    secret = "ghp_" + "a1B2c3D4e5" * 3 + "f6G7h8"
    install_hook(sandbox, "false", f"{secret}\n" + "x" * 300 + "\nline" * 30 + "\x1b]0;title\x07")
    path = sandbox.memory("dec-a")
    with pytest.raises(MemtoolError) as caught:
        commit_files(sandbox.context(), [path], "add X", {})
    lines = caught.value.message.split("\n")
    assert len(lines) == 9
    assert all(line.isprintable() and len(line) < 170 for line in lines[1:])
    assert secret not in caught.value.message


def test_another_hook_is_not_taken_for_one_on_messages(sandbox: Sandbox) -> None:
    """Neither a setting nor a message helps where a pre-commit hook refuses."""
    install_hook(sandbox, "true", "")
    sandbox.write(".git/hooks/pre-commit", "#!/bin/sh\necho lint >&2\nexit 1\n").chmod(0o755)
    path = sandbox.memory("dec-a")
    with pytest.raises(MemtoolError, match=r"not committed: lint$") as caught:
        commit_files(sandbox.context(), [path], "add X", {})
    assert "memtool config" not in caught.value.hint


def test_what_takes_everything_back_passes_the_setting_on(sandbox: Sandbox) -> None:
    """Where a refusal leaves no file, the hint still names the setting first."""
    install_hook(sandbox, "false", "no type")
    sandbox.memory("dec-b")
    setting = f'memtool config commit.subject "{CONVENTIONAL}"'
    record = {"type": "decision", "title": "Hold a seat", "body": "For a day."}
    project = Project.at(str(sandbox.path), sandbox.env)
    with pytest.raises(MemtoolError, match="none of 1 is written") as caught:
        project.add_many([record], commit=True)
    assert caught.value.hint.split("\n") == [setting, "then write them again"]
    edits = [FileEdit(".memory/_note.md", None, b"x")]
    with pytest.raises(MemtoolError, match="nothing was changed") as caught:
        commit_edits(sandbox.context(), edits, "note", "", {}, "memtool maintain --apply")
    assert caught.value.hint.split("\n") == [setting, "then: memtool maintain --apply"]
    assert not (sandbox.path / ".memory/_note.md").exists()
