from __future__ import annotations

import json
import os
import random
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import PIPED, Sandbox, make_memory
from redaction import corpus

import memtool
from memtool.commands.redact import RedactResult, redact, render
from memtool.errors import MemtoolError
from memtool.memory import document
from memtool.memory.changes import is_redaction
from memtool.redaction.find import compute_fingerprint
from memtool.store.context import Context
from memtool.store.git import GitError

MARK = "[REDACTED:github-token]"


def token(number: int = 1) -> str:
    """A token of a public format, drawn when the test runs."""
    return corpus.draw_value("ghp_{a36}", random.Random(number))


TOKEN, OTHER = token(1), token(2)


def staged(sandbox: Sandbox, path: str) -> str:
    return subprocess.run(
        ["git", "cat-file", "blob", f":{path}"],
        cwd=sandbox.path,
        env=sandbox.env,
        capture_output=True,
        check=True,
    ).stdout.decode()


def places(result: RedactResult) -> list[tuple[str, int, str]]:
    return [(spot.kind, spot.line, spot.where) for file in result.files for spot in file.findings]


@pytest.fixture
def path(sandbox: Sandbox) -> str:
    """A committed memory without a secret."""
    path = sandbox.memory("dec-a", "Line one.\n")
    sandbox.commit()
    return path


def text_of(body: str) -> str:
    return document.write(make_memory("dec-a", body)).decode()


def test_a_staged_file_is_redacted_in_both_places(sandbox: Sandbox, path: str) -> None:
    """Where the worktree is what is staged, both become the same redacted text."""
    sandbox.write(path, text_of(f"Line one.\nUse {TOKEN}, always.\n"))
    sandbox.git("add", path)
    done = redact(sandbox.context())
    assert staged(sandbox, path) == (sandbox.path / path).read_text()
    assert staged(sandbox, path) == text_of(f"Line one.\nUse {MARK}, always.\n")
    assert places(done) == [("github-token", 11, "both")]
    assert done.files[0].staged
    assert sandbox.git("status", "--porcelain") == f"M  {path}\n"
    assert (done.exit_code, redact(sandbox.context()).exit_code) == (1, 0)


def test_unstaged_edits_stay_unstaged(sandbox: Sandbox, path: str) -> None:
    """A partially staged file keeps its unstaged lines, and they are not staged."""
    sandbox.write(path, text_of(f"Line one.\nUse {TOKEN}.\n"))
    sandbox.git("add", path)
    sandbox.write(path, text_of(f"Line one.\nUse {TOKEN}.\nNot staged.\n"))
    done = redact(sandbox.context(), path)
    assert staged(sandbox, path) == text_of(f"Line one.\nUse {MARK}.\n")
    assert (sandbox.path / path).read_text() == text_of(f"Line one.\nUse {MARK}.\nNot staged.\n")
    assert places(done) == [("github-token", 11, "both")]
    assert sandbox.git("status", "--porcelain") == f"MM {path}\n"


def test_two_sides_that_differ_are_redacted_each_on_its_own(sandbox: Sandbox, path: str) -> None:
    """Each side loses its own secrets and gets nothing of the other."""
    sandbox.write(path, text_of(f"Staged {TOKEN}.\n"))
    sandbox.git("add", path)
    sandbox.write(path, text_of(f"Not staged.\nHere {OTHER}.\n"))
    done = redact(sandbox.context())
    assert staged(sandbox, path) == text_of(f"Staged {MARK}.\n")
    assert (sandbox.path / path).read_text() == text_of(f"Not staged.\nHere {MARK}.\n")
    assert places(done) == [("github-token", 10, "staged"), ("github-token", 11, "worktree")]
    assert "1 github-token in line 10 of the staged text; 1 github-token in line 11 of the " in (
        render(done, PIPED)
    )


def test_an_unstaged_secret_is_redacted_without_staging_anything(
    sandbox: Sandbox, path: str
) -> None:
    """A secret that is only in the worktree changes only there."""
    before = staged(sandbox, path)
    sandbox.write(path, text_of(f"Line one.\nUse {TOKEN}.\n"))
    done = redact(sandbox.context())
    assert staged(sandbox, path) == before
    assert (done.files[0].staged, places(done)) == (False, [("github-token", 11, "worktree")])


def test_a_staged_secret_that_the_worktree_has_lost_is_redacted(
    sandbox: Sandbox, path: str
) -> None:
    """A fix that was not added again does not save the commit."""
    sandbox.write(path, text_of(f"Use {TOKEN}.\n"))
    sandbox.git("add", path)
    sandbox.write(path, text_of("Line one.\nMine.\n"))
    done = redact(sandbox.context())
    assert staged(sandbox, path) == text_of(f"Use {MARK}.\n")
    assert (sandbox.path / path).read_text() == text_of("Line one.\nMine.\n")
    assert places(done) == [("github-token", 10, "staged")]


def test_an_untracked_file_stays_untracked(sandbox: Sandbox, path: str) -> None:
    """Redacting does not add a file to git."""
    new = sandbox.memory("dec-b", f"Use {TOKEN}.\n")
    redact(sandbox.context())
    assert MARK in (sandbox.path / new).read_text()
    assert sandbox.git("status", "--porcelain") == f"?? {new}\n"
    sandbox.git("add", "--intent-to-add", new)
    sandbox.memory("dec-b", f"Use {OTHER}.\n")
    assert not redact(sandbox.context()).files[0].staged


def test_a_file_deleted_in_the_worktree_stays_deleted(sandbox: Sandbox, path: str) -> None:
    """Only what is staged of it is redacted, whether it is named or found."""
    for number, args in enumerate(((), (path,))):
        sandbox.write(path, text_of(f"Use {token(number)}.\n"))
        sandbox.git("add", path)
        (sandbox.path / path).unlink()
        done = redact(sandbox.context(), *args)
        assert staged(sandbox, path) == text_of(f"Use {MARK}.\n")
        assert places(done) == [("github-token", 10, "staged")]
        assert not (sandbox.path / path).exists()


def test_a_linked_worktree_has_its_own_index(sandbox: Sandbox, path: str) -> None:
    """The other worktree keeps what it has staged."""
    sandbox.git("worktree", "add", "-q", "../other", "-b", "other")
    other = Sandbox(sandbox.path.parent / "other", sandbox.env)
    for each in (sandbox, other):
        each.write(path, text_of(f"Use {TOKEN}.\n"))
        each.git("add", path)
    redact(other.context())
    assert staged(other, path) == text_of(f"Use {MARK}.\n") == (other.path / path).read_text()
    assert staged(sandbox, path) == text_of(f"Use {TOKEN}.\n")


def test_every_other_byte_is_kept(sandbox: Sandbox, path: str) -> None:
    """CRLF, a byte-order mark, a missing last line feed and Latin-1 bytes stay as they are."""
    data = b"\xef\xbb\xbfOne \xe9 \xff.\r\n\r\nUse " + TOKEN.encode() + b"\r\n\tlast\r"
    for name in ("docs/setup.txt", "docs/other.txt"):
        sandbox.write(name, data)
    sandbox.git("add", "docs/setup.txt")
    done = redact(sandbox.context(), "docs/setup.txt", "docs/other.txt")
    for name in ("docs/setup.txt", "docs/other.txt"):
        assert (sandbox.path / name).read_bytes() == data.replace(TOKEN.encode(), MARK.encode())
    assert [file.staged for file in done.files] == [False, True]
    assert sandbox.git("status", "--porcelain").splitlines() == [
        "A  docs/setup.txt",
        "?? docs/other.txt",
    ]


def test_line_ends_that_git_converts_stay_converted(sandbox: Sandbox, path: str) -> None:
    """A file with CRLF in the worktree and LF in the index is redacted as such."""
    sandbox.git("config", "core.autocrlf", "true")
    sandbox.write("a.txt", f"x {TOKEN}\r\n")
    sandbox.git("add", "a.txt")
    redact(sandbox.context(), "a.txt")
    assert (sandbox.path / "a.txt").read_bytes() == f"x {MARK}\r\n".encode()
    assert staged(sandbox, "a.txt") == f"x {MARK}\n"
    assert sandbox.git("status", "--porcelain") == "A  a.txt\n"


def test_modes_are_kept(sandbox: Sandbox, path: str) -> None:
    """An executable stays one, in the worktree and in the index."""
    place = sandbox.write("run.sh", f"export T={TOKEN}\n")
    place.chmod(0o755)
    sandbox.git("add", "run.sh")
    redact(sandbox.context(), "run.sh")
    assert stat.S_IMODE(place.stat().st_mode) == 0o755
    assert sandbox.git("ls-files", "--stage", "run.sh").startswith("100755 ")


def test_a_sparse_checkout_stays_sparse(sandbox: Sandbox, path: str) -> None:
    """A memory that the worktree leaves out is redacted in the index, and stays out."""
    sandbox.write(path, text_of(f"Use {TOKEN}.\n"))
    sandbox.commit()
    sandbox.git("sparse-checkout", "set", "--no-cone", "/nothing")
    assert not (sandbox.path / path).exists()
    redact(sandbox.context())
    assert staged(sandbox, path) == text_of(f"Use {MARK}.\n")
    assert not (sandbox.path / path).exists()
    assert sandbox.git("status", "--porcelain") == f"M  {path}\n"


def test_a_memory_stays_a_memory(sandbox: Sandbox) -> None:
    """A mark in the frontmatter is quoted, and the change is what the gate calls a redaction."""
    password = corpus.draw_value("{a12}", random.Random(3))
    source = f"url:https://ada:{password}@git.acme.dev/a"
    memory = make_memory(
        "dec-a", f"A {TOKEN} b.\n", title=TOKEN, tags=("auth", OTHER), source=(source,)
    )
    path = sandbox.write(".memory/decision/2026-02/dec-a.md", document.write(memory))
    done = redact(sandbox.context())
    after = document.read(path.read_bytes())
    assert (after.title, after.items("tags")) == (MARK, ("auth", MARK))
    assert after.items("source") == ("url:https://ada:[REDACTED:url-password]@git.acme.dev/a",)
    assert after.body == f"A {MARK} b.\n"
    assert is_redaction(memory.body, after.body)
    assert len(done.files[0].findings) == 4
    assert redact(sandbox.context()).files == ()


def test_a_memory_that_a_mark_would_break_is_told_and_left_alone(sandbox: Sandbox) -> None:
    """A secret in what holds a memory together is for people to take out."""
    secret = corpus.draw_value("glpat-{l20}", random.Random(3))
    path = sandbox.path / sandbox.memory("dec-a", related_to=(secret,))
    text = path.read_text()
    sandbox.memory("dec-b", f"Use {TOKEN}.\n")
    with pytest.raises(MemtoolError, match="the gitlab-token in line"):
        redact(sandbox.context(), str(path))
    assert len(redact(sandbox.context()).files) == 1
    assert path.read_text() == text


def test_what_is_found_is_never_shown(sandbox: Sandbox, path: str) -> None:
    """Neither text nor JSON nor a dry run holds the secret; fingerprints name it."""
    sandbox.write(path, text_of(f"Use {TOKEN}, ask jane.roe@acme.dev.\n"))
    for args in (("--dry-run",), ("--dry-run", "--json"), ()):
        done = sandbox.run("redact", *args)
        assert done.returncode == 1
        assert TOKEN not in done.stdout + done.stderr
        assert "jane" not in done.stdout + done.stderr
        if "--json" in args:
            (file,) = json.loads(done.stdout)["files"]
            first = {"kind", "line", "fingerprint", "where"}
            assert [set(finding) for finding in file["findings"]] == [first, first]
    where = "in line 10 of the worktree"
    assert done.stdout == f"{path}: 1 email {where}; 1 github-token {where}\n"


def test_a_dry_run_writes_nothing(sandbox: Sandbox, path: str) -> None:
    """Files, index and git directory stay as they are, for every strategy."""
    sandbox.write(path, text_of(f"Use {TOKEN}.\n"))
    sandbox.git("add", path)
    before = staged(sandbox, path)
    for strategy in ("redact", "hash", "token"):
        done = redact(sandbox.context(), strategy=strategy, dry_run=True)  # type: ignore[arg-type]
        assert (done.exit_code, done.files[0].staged) == (1, True)
        assert render(done, PIPED).startswith("would redact:\n")
    assert staged(sandbox, path) == before == (sandbox.path / path).read_text()
    assert not (sandbox.path / ".git/memtool/redaction.key").exists()


def test_staged_limits_to_files_with_staged_changes(sandbox: Sandbox, path: str) -> None:
    """Files that are not about to be committed are left alone, before the first commit too."""
    sandbox.write(path, text_of(f"Use {TOKEN}.\n"))
    new = sandbox.memory("dec-b", f"Use {TOKEN}.\n")
    sandbox.git("add", new)
    assert [file.path for file in redact(sandbox.context(), staged=True).files] == [new]
    assert TOKEN in (sandbox.path / path).read_text()
    sandbox.git("update-ref", "-d", "HEAD")
    sandbox.git("add", path)
    assert [file.path for file in redact(sandbox.context(), staged=True).files] == [path]


def test_hashes_compare_within_one_clone(sandbox: Sandbox, path: str) -> None:
    """The key is made on first use, private, and shared by all worktrees of the clone alone."""
    sandbox.write(path, text_of(f"A {TOKEN} b {OTHER} c {TOKEN}.\n"))
    redact(sandbox.context(), strategy="hash")
    key = sandbox.path / ".git/memtool/redaction.key"
    assert (stat.S_IMODE(key.stat().st_mode), key.stat().st_size) == (0o600, 32)
    first, second, third = (
        part.partition("]")[0] for part in (sandbox.path / path).read_text().split(MARK[:-1])[1:]
    )
    assert first == third != second
    sandbox.write("a.txt", TOKEN)
    redact(sandbox.context(), "a.txt", strategy="hash")
    assert (sandbox.path / "a.txt").read_text() == f"{MARK[:-1]}{first}]"
    key.unlink()
    sandbox.write("a.txt", TOKEN)
    redact(sandbox.context(), "a.txt", strategy="hash")
    assert (sandbox.path / "a.txt").read_text() != f"{MARK[:-1]}{first}]"


def test_a_broken_key_is_told(sandbox: Sandbox, path: str) -> None:
    """No file is redacted under half a key."""
    sandbox.write("a.txt", TOKEN)
    sandbox.write(".git/memtool/redaction.key", b"short")
    with pytest.raises(MemtoolError, match="is not a key: it has 5 bytes"):
        redact(sandbox.context(), "a.txt", strategy="hash")
    (sandbox.path / ".git/memtool/redaction.key").unlink()
    (sandbox.path / ".git/memtool/redaction.key").mkdir()
    with pytest.raises(MemtoolError, match="cannot be read or created") as caught:
        redact(sandbox.context(), "a.txt", strategy="hash")
    assert "--strategy token" in caught.value.hint
    assert (sandbox.path / "a.txt").read_text() == TOKEN


def test_what_the_settings_allow_is_left(sandbox: Sandbox, path: str) -> None:
    """Allowed addresses, domains and fingerprints are not findings."""
    sandbox.write(path, text_of(f"{TOKEN} a@acme.dev b@x.acme.io c@other.dev\n"))
    shown = redact(sandbox.context(), dry_run=True).files[0].findings
    mark = next(spot.fingerprint for spot in shown if spot.kind == "github-token")
    sandbox.write(
        ".memory/config.toml",
        '[redaction]\nallow_emails = ["A@acme.dev", "@Acme.io"]\n'
        f'[redaction.allow]\n{mark} = "of the public demo"\n',
    )
    redact(sandbox.context())
    assert f"{TOKEN} a@acme.dev b@x.acme.io [REDACTED:email]\n" in (sandbox.path / path).read_text()


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        ("nowhere.md", "no file nowhere.md"),
        ("no/where/at.md", "no file no/where/at.md"),
        (".memory", "'.memory' is a directory"),
        (".memory/", "'.memory/' is a directory"),
        ("", "'' is a directory"),
        (".", "'.' is a directory"),
        ("../outside.txt", "'../outside.txt' is not in this worktree"),
        ("/etc/hostname", "'/etc/hostname' is not in this worktree"),
        (".git/config", "'.git/config' is not in this worktree"),
        ("link", "'link' is a link or device"),
        ("out/outside.txt", "'out/outside.txt' is not in this worktree"),
        ("fifo", "'fifo' is a link or device"),
        ("a" * 300, ": File name too long"),
        ("a\0b", ": that is no file name"),
        ("binary", "binary is not text: it contains NUL bytes"),
        ("huge", "huge has 16,000,001 bytes, the limit is 16,000,000"),
        ("-rf", "no file -rf"),
    ],
)
def test_what_is_no_text_file_of_the_worktree_is_refused(
    sandbox: Sandbox, path: str, argument: str, message: str
) -> None:
    """Nothing is changed if one of several paths cannot be redacted."""
    sandbox.write("../outside.txt", TOKEN)
    sandbox.write("good.txt", TOKEN)
    sandbox.write("binary", b"\0" + TOKEN.encode())
    with sandbox.write("huge", TOKEN).open("ab") as file:
        file.truncate(16_000_001)
    (sandbox.path / "link").symlink_to("good.txt")
    (sandbox.path / "out").symlink_to("..")
    os.mkfifo(sandbox.path / "fifo")
    with pytest.raises(MemtoolError) as caught:
        redact(sandbox.context(), "good.txt", argument)
    assert message in caught.value.message
    assert caught.value.hint
    assert (sandbox.path / "good.txt").read_text() == TOKEN
    assert (sandbox.path.parent / "outside.txt").read_text() == TOKEN


def test_a_path_is_relative_to_where_one_stands(sandbox: Sandbox, path: str) -> None:
    """From below, the same file is meant as in any other command."""
    sandbox.write("docs/a.txt", TOKEN)
    ws = Context.at(str(sandbox.path / "docs"), sandbox.env)
    assert [file.path for file in redact(ws, "a.txt", "../docs/a.txt").files] == ["docs/a.txt"]


def test_a_file_that_is_no_memory_is_passed_over_when_all_are_looked_through(
    sandbox: Sandbox, path: str
) -> None:
    """One broken file does not prevent redacting the others."""
    sandbox.write(".memory/broken.md", b"---\n\0\n")
    sandbox.write(".memory/torn.md", f"no memory, but {TOKEN}")
    ws = sandbox.context()
    assert [file.path for file in redact(ws).files] == [".memory/torn.md"]
    assert ws.notes == ["passed over: .memory/broken.md is not text: it contains NUL bytes"]


def test_an_unfinished_merge_is_refused(sandbox: Sandbox, path: str) -> None:
    """The index holds three versions then, and none of them is to be chosen here."""
    sandbox.git("checkout", "-q", "-b", "side")
    sandbox.write(path, text_of("Side.\n"))
    sandbox.commit()
    sandbox.git("checkout", "-q", "main")
    sandbox.write(path, text_of(f"Main {TOKEN}.\n"))
    sandbox.commit()
    sandbox.git("merge", "side", check=False)
    before = (sandbox.path / path).read_bytes()
    with pytest.raises(MemtoolError, match="has a merge conflict"):
        redact(sandbox.context())
    assert (sandbox.path / path).read_bytes() == before


def test_a_locked_index_changes_nothing(sandbox: Sandbox, path: str) -> None:
    """The index is written first, so a refusal leaves the worktree alone."""
    sandbox.write(path, text_of(f"Use {TOKEN}.\n"))
    sandbox.git("add", path)
    sandbox.write(".git/index.lock", "")
    with pytest.raises(GitError, match=r"index\.lock"):
        redact(sandbox.context())
    assert TOKEN in (sandbox.path / path).read_text()


def hook(sandbox: Sandbox, command: str) -> None:
    place = sandbox.write(
        ".git/hooks/pre-commit", f"#!/bin/sh\n{command} >>.git/hook.log 2>&1\nexit 0\n"
    )
    place.chmod(0o755)


@pytest.mark.parametrize(
    ("args", "holds"), [((), "staged"), (("-a",), "worktree"), (("--", "PATH"), "refused")]
)
def test_a_hook_restages_what_is_committed_but_not_under_a_path(
    sandbox: Sandbox, path: str, args: tuple[str, ...], holds: str
) -> None:
    """Plain and -a commits hold the redacted bytes; with a path the index would keep the secret."""
    hook(sandbox, f"{sys.executable} -m memtool redact")
    sandbox.write(path, text_of(f"Use {TOKEN}.\n"))
    sandbox.git("add", path)
    sandbox.write(path, text_of(f"Use {TOKEN}.\nMine.\n"))
    sandbox.git("commit", "-q", "-m", "x", *(path if arg == "PATH" else arg for arg in args))
    log = (sandbox.path / ".git/hook.log").read_text()
    committed = sandbox.git("show", f"HEAD:{path}")
    mine = "Mine.\n" if holds == "worktree" else ""
    if holds == "refused":
        assert "cannot redact during git commit -- PATH" in log
        assert (sandbox.path / path).read_text() == text_of(f"Use {TOKEN}.\nMine.\n")
    else:
        assert committed == text_of(f"Use {MARK}.\n{mine}")
        assert (sandbox.path / path).read_text() == text_of(f"Use {MARK}.\nMine.\n")
        assert TOKEN not in sandbox.git("show", f":{path}")


def test_the_framework_gets_changed_files_and_an_untouched_index(
    sandbox: Sandbox, path: str
) -> None:
    """Under pre-commit a fixer that stages would cost the user their unstaged edits."""
    sandbox.write(path, text_of(f"Use {TOKEN}.\n"))
    sandbox.git("add", path)
    ws = sandbox.context(PRE_COMMIT="1")
    done = redact(ws, path)
    assert (done.exit_code, done.files[0].staged) == (1, False)
    assert MARK in (sandbox.path / path).read_text()
    assert TOKEN in staged(sandbox, path)
    assert "git add the files again" in ws.notes[0]


def test_the_hook_entry_runs_what_there_is() -> None:
    """The entry for the framework names this verb and only takes memories."""
    text = (Path(memtool.__file__).parents[1] / ".pre-commit-hooks.yaml").read_text()
    entry = text.partition("- id: memtool-redact\n")[2].partition("- id:")[0]
    assert "  entry: memtool redact\n" in entry
    assert r"  files: ^\.memory/.*\.md$" + "\n" in entry


FRAMEWORK = """
repos:
  - repo: local
    hooks:
      - id: memtool-redact
        name: memtool redact
        entry: {} -m memtool redact
        language: system
        files: ^\\.memory/.*\\.md$
"""


def test_the_real_framework_keeps_unstaged_edits(sandbox: Sandbox, path: str) -> None:
    """The commit is refused, the file redacted for adding again, and no edit of others is lost."""
    sandbox.write(".pre-commit-config.yaml", FRAMEWORK.format(sys.executable))
    other = sandbox.memory("dec-b", "As it was.\n")
    sandbox.commit()
    sandbox.write(path, text_of(f"Use {TOKEN}.\n"))
    sandbox.git("add", path)
    sandbox.memory("dec-b", "Not staged.\n")
    run = [sys.executable, "-m", "pre_commit", "run"]
    for expected in (1, 0):
        done = subprocess.run(
            run, cwd=sandbox.path, env=sandbox.env, capture_output=True, text=True, check=False
        )
        assert done.returncode == expected, done.stdout
        assert "Not staged." in (sandbox.path / other).read_text()
        assert (sandbox.path / path).read_text() == text_of(f"Use {MARK}.\n")
        assert TOKEN not in done.stdout
        sandbox.git("add", path)
    assert staged(sandbox, path) == text_of(f"Use {MARK}.\n")
    assert "As it was." in staged(sandbox, other)


def test_explained_is_what_gave_a_secret_away_and_nothing_is_written(sandbox: Sandbox) -> None:
    """By which word or prefix, what the value is like, and how to allow it; never the value."""
    password = "Wm4xTq9" + "ZbR2c"
    table = f"| env | passwort |\n|---|---|\n| prod | {password} |"
    text = f"{table}\n\nkey {TOKEN}\nask jo@corp-mail.org\n"
    path = sandbox.write("notes.md", text)
    done = sandbox.run("redact", "notes.md", "--explain")
    assert done.returncode == 1
    assert path.read_text() == text
    lines = done.stdout.splitlines()
    assert lines[0] == (
        "notes.md:3: a password, by the word 'passwort': \"| prod | [REDACTED:password] |\""
    )
    assert "12 characters (small letters, capitals, digits) of 3.6 bits each" in lines[1]
    mark = compute_fingerprint(password)
    assert lines[2] == f'  harmless: memtool config redaction.allow.{mark} "REASON"'
    assert "by the prefix" in lines[3]
    assert "by its form" in lines[6]
    for secret in (password, TOKEN, "jo@corp-mail.org"):
        assert secret not in done.stdout
    spots = sandbox.json("redact", "notes.md", "--explain")["files"][0]["findings"]
    assert spots[0]["by"] == "the word 'passwort'"
    plain = sandbox.json("redact", "notes.md", "--dry-run")["files"][0]["findings"]
    assert "by" not in plain[0]
