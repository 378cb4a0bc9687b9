from __future__ import annotations

import stat
from pathlib import Path

import pytest
from conftest import Sandbox

from memtool.authoring import draft
from memtool.commands.new import new, remember, supersede
from memtool.errors import MemtoolError
from memtool.memory import document

TEMPLATE = "## Chosen\n\n## Rationale\n"


def editor(sandbox: Sandbox, script: str) -> str:
    """Make a shell script that edits the file "$1", and return the command that runs it."""
    place = sandbox.path.parent / "an editor.sh"
    place.write_text(f"#!/bin/sh\n{script}\n")
    place.chmod(0o755)
    return f"'{place}' --wait"


def drafts(sandbox: Sandbox) -> list[Path]:
    return sorted(sandbox.path.glob(".git/memtool/drafts/*"))


def memories(sandbox: Sandbox) -> list[Path]:
    return sorted(sandbox.path.glob(".memory/*/*/*.md"))


@pytest.mark.parametrize(
    ("statement", "section", "body"),
    [
        ("", [], "## Chosen\n\n## Rationale\n"),
        ("It is so.", [], "It is so.\n"),
        ("\n\nIt is so.\r\nYes.\n\n", [], "It is so.\nYes.\n"),
        ("", ["rationale=small"], "## Rationale\n\nsmall\n"),
        ("It is so.", ["RATIONALE=small"], "It is so.\n\n## Rationale\n\nsmall\n"),
        ("", ["More=a=b", "Chosen=x"], "## Chosen\n\nx\n\n## More\n\na=b\n"),
        ("", ["A\nb=c"], "## A b\n\nc\n"),
        ("", ["A b=c", "Chosen="], "## A b\n\nc\n"),
    ],
)
def test_a_body_is_made_of_statement_sections_and_template(
    statement: str, section: list[str], body: str
):
    """Given sections take the place of the template's, and nothing that was said is lost."""
    assert draft.make_body(TEMPLATE, statement, section) == body


def test_the_teams_own_template_is_what_an_editor_shows(sandbox: Sandbox):
    """Its guidance is there to be replaced: a text that is only the template is none."""
    sandbox.write(".memory/_decision.md", "Say it in a sentence.\n\n## Why\n\nBecause …\n")
    with pytest.raises(MemtoolError, match="the text of the decision is empty"):
        new(sandbox.context(EDITOR="true"), "decision", "T", edit=True)
    (draft_path,) = drafts(sandbox)
    assert draft_path.read_text().endswith("---\nSay it in a sentence.\n\n## Why\n\nBecause …\n")
    made = new(sandbox.context(), "decision", "T", section=("why=x",), dry_run=True)
    assert made.text.endswith("---\n## Why\n\nx\n")


@pytest.mark.parametrize("data", [b"caf\xe9", None])
def test_a_template_that_cannot_be_read_is_passed_over(sandbox: Sandbox, data: bytes | None):
    """The shipped template is used instead."""
    if data is not None:
        sandbox.write(".memory/_decision.md", data)
    else:
        (sandbox.path / ".memory/_decision.md").mkdir()
    assert "## Rationale" in draft.read_template(sandbox.context(), "decision")


def test_what_a_template_asks_and_nobody_answered_is_not_written(sandbox: Sandbox):
    """Comments of the template and headings without a text are left out, subsections stay."""
    template = draft.read_template(sandbox.context(), "decision")
    text = template.replace("<!-- What holds from now on, in one sentence. -->", "We use Redis.")
    assert draft.fill_in_template(text, template) == "## Chosen\n\nWe use Redis.\n"
    assert draft.fill_in_template(template, template) == ""
    nested = "Text.\n\n## A\n\n### B\n\nMore.\n\n## C\n\n### D\n"
    assert draft.fill_in_template(nested, template) == "Text.\n\n## A\n\n### B\n\nMore.\n"


@pytest.mark.parametrize("verb", ["new", "supersede"])
def test_a_memory_without_a_text_is_refused_with_its_sections(sandbox: Sandbox, verb: str):
    """No terminal is here that an editor could be opened on."""
    sandbox.memory("dec-a")
    args = ("new", "decision") if verb == "new" else ("supersede", "dec-a")
    done = sandbox.run(*args, "Keep it")
    assert done.returncode == 2
    assert "a memory of type decision needs a text" in done.stderr
    assert "(of Options considered, Chosen, Constraints, Rationale)" in done.stderr
    assert len(memories(sandbox)) == 1


def test_the_text_may_come_from_stdin(sandbox: Sandbox):
    """`--body -` reads all of stdin as UTF-8, without a byte-order mark."""
    done = sandbox.run(
        "new", "decision", "T", "--body", "-", "--dry-run", stdin=b"\xef\xbb\xbfA\n\nB\n"
    )
    assert "\n---\nA\n\nB\n\n.memory/" in done.stdout


@pytest.mark.parametrize(
    ("stdin", "message"),
    [
        (b"one\ncaf\xe9\n", "stdin is not UTF-8 (line 2)"),
        ("é".encode() * 40_000, "stdin is longer than 65,536 bytes"),
        (b"a\0b", "it holds NUL bytes"),
    ],
)
def test_what_is_no_text_on_stdin_is_told(sandbox: Sandbox, stdin: bytes, message: str):
    """Other encodings, endless input and binaries are refused before anything is written."""
    done = sandbox.run("new", "decision", "T", "--body", "-", stdin=stdin)
    assert done.returncode == 2
    assert f"{message}\nhint: " in done.stderr
    assert memories(sandbox) == []


def test_an_editor_edits_the_memory_before_it_is_written(sandbox: Sandbox):
    """The edited text is written, and no draft remains."""
    command = editor(
        sandbox, 'sed -i "s/^title: .*/title: Better/; s/^## Chosen/&\\n\\nRedis/" "$2"'
    )
    done = sandbox.run("new", "decision", "T", "--edit", EDITOR=command)
    (place,) = memories(sandbox)
    memory = document.read(place.read_bytes())
    receipt = f"Wrote {sandbox.layout().short(memory.id)}  Better\n"
    assert (done.returncode, done.stderr.partition("  decision;")[0]) == (0, receipt)
    assert memory.title == "Better"
    assert "## Chosen\n\nRedis\n" in memory.body
    assert drafts(sandbox) == []


def test_what_an_editor_prints_is_not_the_answer(sandbox: Sandbox):
    """`path=$(memtool new … --edit)` gets the path alone."""
    command = editor(sandbox, "echo noise")
    done = sandbox.process(
        "new", "decision", "T", "--body", "So.", "--id", "dec-a", "--edit", EDITOR=command
    )
    assert done.stdout == ".memory/decision/2026-03/dec-a.md\n"
    assert done.stderr == "noise\nWrote dec-a  T\n  decision; not committed (--commit does it)\n"


def test_visual_wins_over_editor(sandbox: Sandbox):
    """The variables have the order that git and others give them."""
    command = editor(sandbox, "exit 7")
    done = sandbox.run("new", "decision", "T", "--edit", VISUAL=command, EDITOR="true")
    assert "ended with status 7" in done.stderr


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("exit 3", "ended with status 3"),
        ("kill -9 $$", "ended with status -9"),
        ('echo broken > "$2"', "it does not start with a block between two lines of ---"),
        ('sed -i "s/^type: .*/type: fact/" "$2"', "type: 'fact' is not one of"),
        ('printf "\\377" >> "$2"', "it is not UTF-8 text; nothing was written"),
        ('sed -i "s/^id: .*/id: dec-taken/" "$2"', "the id dec-taken is taken"),
    ],
)
def test_a_draft_that_cannot_be_written_is_kept(sandbox: Sandbox, script: str, message: str):
    """Whatever goes wrong after the editor was opened, the text is not lost."""
    sandbox.memory("dec-taken")
    done = sandbox.run(
        "new", "decision", "T", "--body", "So.", "--edit", EDITOR=editor(sandbox, script)
    )
    assert done.returncode == 2
    assert message in done.stderr
    (draft,) = drafts(sandbox)
    assert f"the draft is in {draft}" in done.stderr
    assert len(memories(sandbox)) == 1
    assert stat.S_IMODE(draft.parent.stat().st_mode) == 0o700


@pytest.mark.parametrize("script", [': > "$2"', 'rm "$2"'])
def test_an_emptied_draft_means_no(sandbox: Sandbox, script: str):
    """As in git, an empty text calls it off, and nothing stays behind."""
    done = sandbox.run(
        "new", "decision", "T", "--body", "So.", "--edit", EDITOR=editor(sandbox, script)
    )
    assert done.returncode == 2
    assert "nothing was written: the draft is empty" in done.stderr
    assert (memories(sandbox), drafts(sandbox)) == ([], [])


@pytest.mark.parametrize("command", ["no-such-editor", "'unclosed", "/", " "])
def test_an_editor_that_cannot_be_started_is_told(sandbox: Sandbox, command: str):
    """The hint says what to set; the draft is kept."""
    done = sandbox.run("new", "decision", "T", "--edit", EDITOR=command)
    assert done.returncode == 2
    assert f"cannot start the editor {command!r}" in done.stderr
    assert "hint: set EDITOR" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_wrong_option_is_told_before_the_editor_opens(sandbox: Sandbox):
    """Nobody writes a text for a memory that is refused for its options."""
    done = sandbox.run(
        "new", "decision", "T", "--edit", "--importance", "2", EDITOR=editor(sandbox, "echo opened")
    )
    assert "importance: 2 is not between 0 and 1" in done.stderr
    assert "opened" not in done.stderr


def test_a_dry_run_opens_no_editor(sandbox: Sandbox):
    """A dry run shows the draft and writes none."""
    done = sandbox.run(
        "new", "decision", "T", "--edit", "--dry-run", EDITOR=editor(sandbox, "echo opened")
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert not (sandbox.path / ".git/memtool").exists()


def test_a_relation_that_was_typed_in_the_editor_is_looked_up(sandbox: Sandbox):
    """An edited draft may supersede heads only, and their ids are written in full."""
    sandbox.memory("dec-old")
    sandbox.memory("dec-older")
    sandbox.memory("dec-newer", supersedes=("dec-older",))
    with_old = editor(sandbox, 'sed -i "s/^  - dec-old$/  - dec-older/" "$2"')
    ws = sandbox.context(EDITOR=with_old)
    with pytest.raises(MemtoolError) as caught:
        supersede(ws, "dec-old", "T", body="So.", edit=True)
    assert caught.value.code == "not-a-head"
    assert "the draft is in" in caught.value.hint


def test_a_place_for_drafts_that_cannot_be_made_is_told(sandbox: Sandbox):
    """A file in place of the drafts directory is reported in a sentence."""
    sandbox.write(".git/memtool/drafts", "in the way")
    with pytest.raises(MemtoolError) as caught:
        new(sandbox.context(EDITOR="true"), "decision", "T", edit=True)
    assert (caught.value.code, caught.value.hint) == ("disk", "leave out --edit")


@pytest.mark.parametrize(
    ("pairs", "expected"),
    [
        (["domain=billing"], {"domain": "billing"}),
        (["domain=a=b"], {"domain": "a=b"}),
        (["aliases=one, two", "aliases=three"], {"aliases": ("one", "two", "three")}),
        (["x-team=core"], {"x-team": "core"}),
        ([], {}),
    ],
)
def test_set_reads_keys_and_values(pairs: list[str], expected: dict[str, object]):
    """Lists take commas and repetition, all else is text."""
    assert draft.parse_assignments(pairs) == expected


@pytest.mark.parametrize(
    ("pair", "message", "hint"),
    [
        ("domain", "--set takes KEY=VALUE, not 'domain'", "--set domain=billing"),
        ("", "--set takes KEY=VALUE, not ''", "--set domain=billing"),
        (
            "domian=x",
            "unknown key 'domian'",
            "did you mean domain?\nfor a key of your own: --set x-domian=x",
        ),
        ("zzz=1", "unknown key 'zzz'", "--set x-zzz=1"),
        ("=1", "unknown key ''", "--set x-name=1"),
        ("x-=1", "unknown key 'x-'", "--set x-name=1"),
        ("x-a: b=1", "unknown key 'x-a: b'", "--set x-a--b=1"),
        ("id=dec-b", "cannot set id with --set", "it has an option of its own, --id"),
        ("deleted=now", "cannot set deleted with --set", "memtool forget writes it"),
    ],
)
def test_set_refuses_what_it_must_not_write(pair: str, message: str, hint: str):
    """A key that no memory has, or that has its own verb, is told with the way to do it."""
    with pytest.raises(MemtoolError) as caught:
        draft.parse_assignments([pair])
    assert (caught.value.message, caught.value.hint) == (message, hint)


def test_anchors_are_offered_where_drift_has_nothing_to_check(sandbox: Sandbox) -> None:
    """Names in its files with words of the text are offered with their lines, and nothing else."""
    code = (
        "import x\n\ndef fetch_pages(url):\n    get(url)\n\n    return 1\n\nclass PageCache: ...\n"
    )
    sandbox.write("src/pages.py", code)
    sandbox.write("bytes", b"def fetch_pages\0")
    (sandbox.path / "link").symlink_to("src/pages.py")
    statement = "Each of the pages is fetched three times."

    def noted(text: str, *files: str) -> list[str]:
        context = sandbox.context()
        remember(context, text, file=files, keep_citation=True, dry_run=True)
        return [note for note in context.notes if "drift" in note]

    (note,) = noted(statement, "src/pages.py")
    assert note.endswith("name fetch_pages or src/pages.py#L3-L6 in its text, which it checks too")
    context = sandbox.context()
    new(
        context,
        "decision",
        "Pages are fetched",
        body=statement,
        file=("src/pages.py",),
        dry_run=True,
    )
    assert any("fetch_pages or src/pages.py#L3-L6" in note for note in context.notes)
    assert noted(f"{statement} See fetch_pages.", "src/pages.py") == []
    assert noted(f"{statement} See src/pages.py#L3-L6.", "src/pages.py") == []
    assert noted("Deploys run on Tuesdays.", "src/pages.py") == []
    for path in ("bytes", "link", "src", "src/*.py", "nothing.py", "x" * 300):
        assert noted(statement, path) == []
