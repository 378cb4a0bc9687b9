from __future__ import annotations

import os
import random
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import Sandbox, make_memory
from redaction import corpus

from memtool.authoring import write
from memtool.commands.archive import archive, confirm, deprecate, pin, render, restore, unpin
from memtool.commands.config import config
from memtool.commands.digest import digest
from memtool.commands.init import init
from memtool.commands.new import new, remember, supersede
from memtool.commands.resolve import resolve
from memtool.commands.tag import tag
from memtool.errors import MemtoolError
from memtool.memory import document
from memtool.memory.memory import Memory
from memtool.redaction import find as detectors
from memtool.store import commits, git_locks
from memtool.store.context import Context

Run = Callable[..., object]

BY_ID: dict[str, Run] = {
    "supersede": lambda ws, id_="dec-a", **o: supersede(
        ws, id_, "Another way", body="It is another.", **o
    ),
    "confirm": lambda ws, id_="dec-a", **o: confirm(ws, id_, **o),
    "pin": lambda ws, id_="dec-a", **o: pin(ws, id_, **o),
    "unpin": lambda ws, id_="dec-pinned", **o: unpin(ws, id_, **o),
    "deprecate": lambda ws, id_="dec-a", **o: deprecate(ws, id_, **o),
    "archive": lambda ws, id_="dec-a", **o: archive(ws, id_, **o),
    "restore": lambda ws, id_="dec-archived", **o: restore(ws, id_, **o),
    "tag": lambda ws, id_="dec-a", **o: tag(ws, id_, add=("auth",), **o),
}
WITHOUT_ID: dict[str, Run] = {
    "new": lambda ws, **o: new(ws, "decision", "A new thing", body="It is new.", **o),
    "remember": lambda ws, **o: remember(ws, "It stays so.", **o),
    "config": lambda ws, **o: config(ws, "inject.budget_tokens", "1200", **o),
}
ALL = BY_ID | WITHOUT_ID


@pytest.fixture
def filled(sandbox: Sandbox) -> Sandbox:
    """A committed store with one memory in each state that a verb wants."""
    sandbox.memory("dec-a")
    sandbox.memory("dec-pinned", status="pinned")
    sandbox.memory("dec-archived", status="archived")
    sandbox.write("code.py", "one\n")
    sandbox.commit("begin")
    return sandbox


def everything(sandbox: Sandbox) -> dict[str, bytes]:
    """Return each file and directory of the worktree and of memtool's part of the git directory."""
    contents: dict[str, bytes] = {}
    git = str(sandbox.path / ".git")
    for folder, folders, names in os.walk(sandbox.path):
        if folder == git:
            folders[:] = [name for name in folders if name == "memtool"]
        for name in folders:
            contents[os.path.join(folder, name)] = b"directory"
        for name in (set(names) & {"index"}) if folder == git else names:
            contents[os.path.join(folder, name)] = Path(folder, name).read_bytes()
    return contents


@pytest.mark.parametrize("verb", ALL)
@pytest.mark.parametrize("options", [{}, {"commit": True}])
def test_a_dry_run_writes_nothing_at_all(filled: Sandbox, verb: str, options: dict[str, bool]):
    """No file, directory, lock or commit comes of `--dry-run`, in the git directory neither."""
    before, head = everything(filled), filled.git("rev-parse", "HEAD")
    ALL[verb](filled.context(), dry_run=True, **options)
    assert everything(filled) == before
    assert filled.git("rev-parse", "HEAD") == head


@pytest.mark.parametrize("verb", ALL)
def test_a_commit_holds_one_file_and_leaves_the_users_work_alone(filled: Sandbox, verb: str):
    """Staged, changed and untracked files of the user are not touched."""
    filled.write("staged.py", "staged\n")
    filled.write("code.py", "staged\n")
    filled.git("add", "staged.py", "code.py")
    filled.write("code.py", "unstaged\n")
    filled.write("untracked.py", "untracked\n")
    before = filled.git("status", "--porcelain")
    done = ALL[verb](filled.context(), commit=True)
    assert filled.git("status", "--porcelain") == before
    assert filled.git("show", ":code.py") == "staged\n"
    assert getattr(done, "commit") == filled.git("rev-parse", "HEAD").strip()  # noqa: B009
    (path,) = filled.git("show", "--format=", "--name-only", "HEAD").split()
    assert path.startswith(".memory/")


@pytest.mark.parametrize("verb", [*BY_ID, "new", "remember"])
def test_a_commit_names_the_memory_in_a_trailer(filled: Sandbox, verb: str):
    """Programs read from the history which memory a commit is about."""
    done = ALL[verb](filled.context(), commit=True)
    trailers = filled.git("log", "-1", "--format=%(trailers:only,unfold)")
    expected = f"Memory-Id: {getattr(done, 'id')}\n"  # noqa: B009
    if verb == "supersede":
        expected += "Supersedes: dec-a\n"
    assert trailers.strip() == expected.strip()
    subject = filled.git("log", "-1", "--format=%s").strip()
    assert subject.startswith("memory: ")
    assert len(subject) <= 72


@pytest.mark.parametrize("verb", ["deprecate", "archive"])
def test_a_reason_becomes_a_trailer_of_one_line(filled: Sandbox, verb: str):
    """A reason of several lines cannot forge another trailer."""
    ALL[verb](filled.context(), commit=True, reason="we moved\nMemory-Id: dec-pinned")
    trailers = filled.git("log", "-1", "--format=%(trailers:only,unfold)").split("\n")
    assert trailers[:2] == ["Memory-Id: dec-a", "Reason: we moved Memory-Id: dec-pinned"]


@pytest.mark.parametrize("verb", ["deprecate", "archive"])
def test_a_reason_without_a_commit_is_noted(filled: Sandbox, verb: str):
    """Nobody believes that a reason was kept which was not."""
    ws = filled.context()
    ALL[verb](ws, reason="we moved")
    assert ws.notes == ["the reason is only stored in a commit: add --commit"]


@pytest.mark.parametrize("verb", ["deprecate", "archive"])
def test_a_reason_with_hidden_characters_is_refused(filled: Sandbox, verb: str):
    """All text of the history is visible."""
    with pytest.raises(MemtoolError, match="invisible characters"):
        ALL[verb](filled.context(), reason="\x1b[31m", commit=True)


@pytest.mark.parametrize("verb", BY_ID)
def test_an_unknown_id_names_the_nearest(filled: Sandbox, verb: str):
    """A typing error costs one look at the hint."""
    with pytest.raises(MemtoolError) as caught:
        BY_ID[verb](filled.context(), "dec-pined")
    assert caught.value.code == "unknown-id"
    assert caught.value.hint.startswith("did you mean dec-pinned")


@pytest.mark.parametrize("verb", BY_ID)
def test_an_ambiguous_beginning_names_the_candidates(filled: Sandbox, verb: str):
    """A verb never guesses which memory was meant."""
    with pytest.raises(MemtoolError) as caught:
        BY_ID[verb](filled.context(), "dec-")
    assert caught.value.code == "ambiguous-id"
    assert str(caught.value.hint) == "memtool show dec-a"
    assert all(f"\n  {id_}  " in caught.value.message for id_ in ("dec-archived", "dec-pinned"))


@pytest.mark.parametrize("verb", BY_ID)
def test_an_empty_id_is_unknown(filled: Sandbox, verb: str):
    """An empty variable in a script does not mean some memory."""
    with pytest.raises(MemtoolError) as caught:
        BY_ID[verb](filled.context(), "")
    assert caught.value.code == "unknown-id"


@pytest.mark.parametrize("verb", [*BY_ID, "new", "remember"])
def test_without_a_memory_directory_init_is_named(sandbox: Sandbox, verb: str):
    """A repository that never heard of memtool stays as it is."""
    (sandbox.path / ".memory").rmdir()
    with pytest.raises(MemtoolError) as caught:
        ALL[verb](sandbox.context())
    assert (caught.value.code, caught.value.hint) == ("no-memory", "memtool init")
    assert not (sandbox.path / ".memory").exists()


@pytest.mark.parametrize("verb", ALL)
def test_the_tree_of_another_tool_is_left_alone(sandbox: Sandbox, verb: str):
    """A `.memory` directory of another tool is neither written nor committed."""
    sandbox.write(".memory/memory.jsonl", "{}\n")
    before = everything(sandbox)
    with pytest.raises(MemtoolError) as caught:
        ALL[verb](sandbox.context())
    assert caught.value.code == "foreign-tree"
    assert everything(sandbox) == before


@pytest.mark.parametrize("verb", ALL)
def test_a_bare_repository_is_not_written(filled: Sandbox, tmp_path: Path, verb: str):
    """It has no worktree to write to."""
    bare = tmp_path / "bare.git"
    filled.git("clone", "--quiet", "--bare", ".", str(bare))
    with pytest.raises(MemtoolError) as caught:
        ALL[verb](Context.at(str(bare), filled.env))
    assert caught.value.code == "bare"


@pytest.mark.parametrize("verb", [*BY_ID, "new", "remember"])
def test_a_file_of_a_sparse_checkout_is_missed_in_a_sentence(filled: Sandbox, verb: str):
    """A file that is not on disk cannot be changed; a new one can be written next to it."""
    filled.git("sparse-checkout", "set", "--no-cone", "/*", "!/.memory/decision/")
    ws = filled.context()
    if verb in ("supersede", "new", "remember"):
        ALL[verb](ws)
        return
    with pytest.raises(MemtoolError) as caught:
        ALL[verb](ws)
    assert caught.value.code == "not-here"


@pytest.mark.parametrize(
    "verb", ["pin", "deprecate", "archive", "unpin", "confirm", "supersede", "tag"]
)
def test_a_deleted_memory_must_be_restored_first(filled: Sandbox, verb: str):
    """No verb brings a deleted memory half back."""
    filled.memory(
        "dec-gone",
        status="deleted",
        deleted={"at": "2026-02-23T00:00:00Z", "by": "Ada", "reason": "wrong", "was": "pinned"},
    )
    with pytest.raises(MemtoolError, match=r"\(dec-gone\) is deleted"):
        BY_ID[verb](filled.context(), "dec-gone")


@pytest.mark.parametrize("verb", ["confirm", "pin", "deprecate", "archive"])
def test_a_change_keeps_every_other_byte(filled: Sandbox, verb: str):
    """Comments, order, quotes and line ends of a person's file stay as they are."""
    text = (
        "---\r\n# mine\r\ntype: 'decision'\r\nid: dec-mine\r\ntitle: \"T\"\r\n"
        "timestamp: 2026-02-22T19:33:00Z\r\nconfidence: low\r\n"
        "status: candidate # for now\r\nsource: [human:Ada]\r\n---\r\nBody\r\n\r\n"
    )
    place = filled.write(".memory/decision/dec-mine.md", text)
    BY_ID[verb](filled.context(), "dec-mine")
    before = [row for row in text.split("\n") if not row.startswith("status")]
    after = place.read_bytes().decode().split("\n")
    added = [row for row in after if row not in before]
    assert [row for row in after if row in before] == before
    assert added[0].startswith("status: ")
    assert all(row.endswith("\r") for row in added)


def test_a_change_that_changes_nothing_writes_nothing(filled: Sandbox):
    """Repeating a change is not an error, and makes no commit."""
    head = filled.git("rev-parse", "HEAD")
    changed = pin(filled.context(), "dec-pinned", commit=True)
    assert (changed.changes, changed.commit) == ({}, None)
    assert filled.git("rev-parse", "HEAD") == head
    layout = filled.layout()
    assert render(changed, layout) == ".memory/decision/2026-02/dec-pinned.md"
    assert layout.reports == ["dec-pinned  Title of dec-pinned: pinned already, nothing changed"]


def test_a_default_that_is_not_written_counts_as_there(filled: Sandbox):
    """A memory without a status is confirmed, so confirming it changes nothing."""
    assert unpin(filled.context(), "dec-a").changes == {}


def test_a_commit_takes_in_what_was_changed_before(filled: Sandbox):
    """Somebody who forgot `--commit` says it again with it, and the receipt names the commit."""
    pin(filled.context(), "dec-a")
    done = pin(filled.context(), "dec-a", commit=True)
    assert done.changes == {}
    assert done.commit == filled.git("rev-parse", "HEAD").strip()
    layout = filled.layout()
    render(done, layout)
    committed = f"committed as {done.commit[:7]}"
    assert layout.reports == [f"dec-a  Title of dec-a: pinned already, {committed}"]


def test_a_dry_run_says_what_would_change(filled: Sandbox):
    """The text of a dry run does not read as if it were done."""
    changed = pin(filled.context(), "dec-a", dry_run=True)
    layout = filled.layout()
    assert render(changed, layout) == ".memory/decision/2026-02/dec-a.md"
    assert layout.reports == ["Would change dec-a  Title of dec-a", "  status: - -> pinned"]


def test_a_result_of_a_change_that_no_reader_would_take_is_refused(filled: Sandbox):
    """A memory at the limit of size does not grow past it."""
    full = document.MAX_BYTES - len(document.write(make_memory("dec-full", "")))
    path = filled.memory("dec-full", "x" * (full - 1) + "\n")
    before = (filled.path / path).read_bytes()
    with pytest.raises(MemtoolError) as caught:
        pin(filled.context(), "dec-full")
    assert caught.value.code == "too-large"
    assert (filled.path / path).read_bytes() == before


def test_a_hook_that_refuses_leaves_the_file_and_says_so(filled: Sandbox):
    """The user's own hooks run; if one refuses, the file is written but not committed."""
    hook = filled.write(".git/hooks/pre-commit", "#!/bin/sh\necho not today >&2\nexit 1\n")
    hook.chmod(0o755)
    with pytest.raises(MemtoolError) as caught:
        pin(filled.context(), "dec-a", commit=True)
    assert caught.value.code == "commit-refused"
    assert "is written but not committed: not today" in caught.value.message
    assert "status: pinned" in (filled.path / ".memory/decision/2026-02/dec-a.md").read_text()
    assert filled.git("diff", "--cached", "--name-only") == ""


def test_a_locked_index_is_waited_for_and_told(filled: Sandbox, monkeypatch: pytest.MonkeyPatch):
    """Another git process that never ends does not hang memtool for ever."""
    monkeypatch.setattr(git_locks, "LOCK_TIMEOUT_S", 0.05)
    filled.write(".git/index.lock", "")
    with pytest.raises(MemtoolError) as caught:
        new(
            filled.context(),
            "decision",
            "T",
            id="dec-new",
            commit=True,
            body="It is so, and this is why.",
        )
    assert caught.value.code == "commit-refused"
    assert "another git process holds a lock" in caught.value.hint
    assert (filled.path / ".memory/decision/2026-03/dec-new.md").exists()


def test_a_file_in_the_place_of_a_directory_is_told(filled: Sandbox):
    """The error names the path, and the file stays."""
    filled.write(".memory/semantic", "in the way")
    with pytest.raises(MemtoolError) as caught:
        remember(filled.context(), "It stays so.")
    assert ".memory/semantic" in caught.value.message
    assert "file" in caught.value.message
    assert (filled.path / ".memory/semantic").read_text() == "in the way"


def test_a_link_out_of_the_tree_is_not_followed(filled: Sandbox, tmp_path: Path):
    """No memory is ever written outside of the repository."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (filled.path / ".memory/semantic").symlink_to(outside)
    with pytest.raises(MemtoolError) as caught:
        remember(filled.context(), "It stays so.")
    assert caught.value.code == "symlink"
    assert list(outside.iterdir()) == []


@pytest.mark.parametrize("args", [("remember", "x" * 4000), ("pin", "dec-long")])
def test_a_full_disk_leaves_the_old_file_or_none(filled: Sandbox, args: tuple[str, ...]):
    """A write that breaks off half way leaves no trace."""
    filled.memory("dec-long", "y" * 4000 + "\n")
    before = {k: v for k, v in everything(filled).items() if "/.git/" not in k}
    done = subprocess.run(
        [sys.executable, "-m", "memtool", *args],
        # Byte code that is cut short would break every later import.
        cwd=filled.path,
        env=filled.env | {"PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        check=False,
        text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000)),
    )
    assert done.returncode == 2, done.stderr
    assert "File too large; nothing was changed" in done.stderr
    after = {k: v for k, v in everything(filled).items() if "/.git/" not in k}
    assert {k: v for k, v in after.items() if v != b"directory"} == {
        k: v for k, v in before.items() if v != b"directory"
    }


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ("a\0b", "not-utf8"),
        ("caf\udce9", "not-utf8"),
        ("<<<<<<< ours\n\n<<<<<<< ours\n>>>>>>> theirs\n", "conflict-markers"),
        ("x" * document.MAX_BYTES, "too-large"),
        ("red\x1b[31m", "hidden-character"),
        ("a\u200bb", "hidden-character"),
    ],
)
def test_a_body_that_no_reader_would_take_is_never_written(sandbox: Sandbox, body: str, code: str):
    """Everything that memtool writes, memtool reads."""
    with pytest.raises(MemtoolError) as caught:
        new(sandbox.context(), "decision", "T", body=body)
    assert caught.value.code == code
    assert list(sandbox.path.glob(".memory/**/*.md")) == []


def test_what_was_never_committed_goes_along_with_what_supersedes_it(sandbox: Sandbox):
    """A commit never names a memory that it does not hold."""
    sandbox.memory("dec-a")
    sandbox.commit()
    supersede(sandbox.context(), "dec-a", "B", body="Not so.")
    (second,) = sandbox.path.glob(".memory/**/*-b-*.md")
    supersede(sandbox.context(), second.stem, "C", body="Yet so.", commit=True)
    assert sandbox.git("status", "--porcelain", ".memory") == ""
    assert second.name in sandbox.git("show", "--name-only", "--format=", "HEAD")


@pytest.mark.parametrize("source", ["file:a.py#L9-L3", "file:a.py#L9-L3@0123abcd"])
def test_lines_are_named_forwards(sandbox: Sandbox, source: str):
    """Read backwards they would be the name of a file that is nowhere."""
    with pytest.raises(MemtoolError, match="names lines from 9 back to 3"):
        new(sandbox.context(), "decision", "T", body="It stays so.", source=(source,))


@pytest.mark.parametrize(
    ("env", "name"),
    [({}, "Ada"), ({"GIT_AUTHOR_NAME": ""}, "Bert"), ({"GIT_AUTHOR_NAME": " "}, "Bert")],
)
def test_the_author_is_who_git_would_name(sandbox: Sandbox, env: dict[str, str], name: str):
    """The variable of git wins over its setting."""
    sandbox.git("config", "user.name", "Bert")
    assert write.find_author(sandbox.context(**env)) == name


def test_the_author_is_the_account_where_git_knows_none(sandbox: Sandbox):
    """A machine without a git identity still has a source."""
    assert write.find_author(sandbox.context(GIT_AUTHOR_NAME="", USER="root")) == "root"
    assert write.find_author(sandbox.context(GIT_AUTHOR_NAME="", USER="")) == "unknown"


def test_init_first_then_all_verbs(sandbox: Sandbox):
    """A repository that init made takes every verb."""
    init(sandbox.context(), commit=True)
    written = new(
        sandbox.context(), "decision", "T", commit=True, body="It is so, and this is why."
    )
    pin(sandbox.context(), written.id, commit=True)
    assert sandbox.git("status", "--porcelain") == ""


def test_a_merge_that_is_not_finished_is_told(filled: Sandbox):
    """Git commits no single file during a merge; the new file is staged, with a note."""
    filled.git("checkout", "--quiet", "-b", "side")
    filled.write("code.py", "side\n")
    filled.commit()
    filled.git("checkout", "--quiet", "main")
    filled.write("code.py", "main\n")
    filled.commit()
    filled.git("merge", "side", check=False)
    context = filled.context()
    assert pin(context, "dec-a", commit=True).commit is None
    assert "is written and staged, not committed: a merge is unfinished" in context.notes[0]
    assert filled.git("diff", "--name-only", "--diff-filter=U").strip() == "code.py"


def test_a_linked_worktree_commits_on_its_own_branch(filled: Sandbox, tmp_path: Path):
    """Writing in a worktree leaves the files and the branch of the main one alone."""
    other = tmp_path / "other"
    filled.git("worktree", "add", "--quiet", "-b", "side", str(other))
    head = filled.git("rev-parse", "main")
    done = remember(Context.at(str(other), filled.env), "It stays so.", commit=True)
    assert filled.git("rev-parse", "side").strip() == done.commit
    assert filled.git("rev-parse", "main") == head
    assert not (filled.path / done.path).exists()
    assert (other / done.path).exists()


def test_the_first_commit_of_a_repository_may_be_a_memory(sandbox: Sandbox):
    """It can be committed on an unborn branch."""
    sandbox.write("staged.py", "staged\n")
    sandbox.git("add", "staged.py")
    done = new(sandbox.context(), "decision", "T", commit=True, body="It is so, and this is why.")
    assert sandbox.git("ls-tree", "-r", "--name-only", "HEAD").split() == [done.path]
    assert sandbox.git("status", "--porcelain") == "A  staged.py\n"


@pytest.mark.slow
def test_processes_that_write_at_once_lose_nothing(filled: Sandbox):
    """Each of several writers gets its file, its commit and its change, whoever comes first."""
    texts = {
        "Sessions": "Redis holds it.",
        "Questions": "Nobody may ask twice.",
        "Deploys": "Tuesdays are for deploys.",
    }
    calls = [
        ("new", "decision", title, "--body", text, "--commit") for title, text in texts.items()
    ]
    calls += [("pin", "dec-a", "--commit"), ("confirm", "dec-a", "--commit")]
    running = [
        subprocess.Popen(
            [sys.executable, "-m", "memtool", *call],
            cwd=filled.path,
            env=filled.env,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        for call in calls
    ]
    answers = [process.communicate() for process in running]
    failed = [
        err for process, (_out, err) in zip(running, answers, strict=True) if process.returncode
    ]
    assert failed == []
    assert len({out for out, _err in answers[:3]}) == 3
    assert filled.git("status", "--porcelain") == ""
    assert filled.context().tree()["dec-a"].memory.table("checked")
    assert filled.git("fsck", "--strict", "--no-dangling") == ""


def test_a_change_that_another_process_committed_is_committed(
    filled: Sandbox, monkeypatch: pytest.MonkeyPatch
):
    """If another commit included the change, the answer names that commit."""

    def overtaken(*args: object) -> str:
        filled.git("commit", "--all", "--quiet", "--message", "all of it")
        return commits.commit_files(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(write, "commit_files", overtaken)
    done = pin(filled.context(), "dec-a", commit=True)
    assert done.commit == filled.git("rev-parse", "HEAD").strip()
    assert filled.git("log", "-1", "--format=%s").strip() == "all of it"


def test_an_index_that_holds_half_of_what_was_committed_follows(
    filled: Sandbox, monkeypatch: pytest.MonkeyPatch
):
    """No change is lost if git read one file before the change and another after it."""
    path = filled.context().tree()["dec-a"].path

    def overtaken(*args: object) -> str:
        before = filled.git("rev-parse", f"HEAD:{path}").strip()
        filled.git("commit", "--all", "--quiet", "--message", "all of it")
        filled.git("update-index", "--cacheinfo", f"100644,{before},{path}")
        return commits.commit_files(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(write, "commit_files", overtaken)
    done = pin(filled.context(), "dec-a", commit=True)
    assert done.commit == filled.git("rev-parse", "HEAD").strip()
    assert filled.git("status", "--porcelain") == ""


SECRET = corpus.draw_value("ghp_{a36}", random.Random(1))
"""Of a public form, and nobody's."""


@pytest.mark.parametrize(
    "args",
    [
        ("new", "decision", "T", "--body", f"Use {SECRET}."),
        ("new", "decision", "T", "--section", f"Chosen={SECRET}"),
        ("new", "decision", f"Use {SECRET}", "--body", "It stays so."),
        ("new", "decision", "T", "--body", "It stays so.", "--tag", SECRET),
        ("new", "decision", "T", "--body", "So.", "--set", f"x-note={SECRET}", "--dry-run"),
        ("remember", f"The token is {SECRET}."),
        ("supersede", "dec-a", "T", "--body", SECRET),
        ("forget", "dec-a", "--reason", f"it named {SECRET}"),
    ],
)
def test_no_verb_writes_a_secret(sandbox: Sandbox, args: tuple[str, ...]) -> None:
    """Wherever the secret is, nothing is written, and the refusal does not show it."""
    sandbox.memory("dec-a")
    sandbox.commit()
    done = sandbox.run(*args)
    assert done.returncode == 2
    assert "contains a github token: " in done.stderr
    assert "memtool config redaction.allow." in done.stderr
    assert SECRET not in done.stderr + done.stdout
    assert sandbox.git("status", "--porcelain") == ""


def test_a_memory_with_an_old_secret_can_still_be_put_away(sandbox: Sandbox) -> None:
    """A secret that it already holds does not prevent archiving or forgetting it."""
    sandbox.memory("dec-a", f"Use {SECRET}.\n")
    assert sandbox.json("archive", "dec-a")["changes"] == {"status": ["", "archived"]}
    assert sandbox.run("forget", "dec-a", "--reason", "it leaked").returncode == 0


ONCE: dict[str, Run] = {
    "new": lambda ws: new(
        ws, "decision", "A new thing", commit=True, body="It is so, and this is why."
    ),
    "edited": lambda ws: new(ws, "decision", "A new thing", body="It stays so.", edit=True),
    "remember": lambda ws: remember(ws, "It stays so.", commit=True),
    "supersede": lambda ws: supersede(
        ws, "dec-a", "Another way", commit=True, body="It is so, and this is why."
    ),
    "kept": lambda ws: resolve(ws, "dec-a", "dec-pinned", keep="newer", reason="it is"),
    "merged": lambda ws: resolve(ws, "dec-a", "dec-pinned", merge="Both", body="Both.", reason="x"),
    "digest": lambda ws: digest(ws, "decision"),
    "pin": lambda ws: pin(ws, "dec-a", commit=True),
    "archive": lambda ws: archive(ws, "dec-pinned"),
}


SUMMARIES = ("add ", "archive ", "pin ", "settle ", "supersede ")
"""What the summary of a commit begins with, whose title is searched again."""


@pytest.mark.parametrize("name", ONCE)
def test_a_memory_is_serialised_and_searched_once(
    filled: Sandbox, monkeypatch: pytest.MonkeyPatch, name: str
):
    """Each text once: a draft and what an editor leaves of it are two, and so is a reason."""
    searched: list[str] = []
    written: list[Memory] = []
    find, serialise = detectors.find, document.write

    def search(text: str, *args: object) -> object:
        if not text.startswith(SUMMARIES):
            searched.append(text)
        return find(text, *args)  # type: ignore[arg-type]

    def write_out(memory: Memory) -> bytes:
        written.append(memory)
        return serialise(memory)

    monkeypatch.setattr(detectors, "find", search)
    monkeypatch.setattr(document, "write", write_out)
    ONCE[name](filled.context(EDITOR="sed -i s/new/newer/"))
    texts = 2 if name in ("edited", "kept", "merged") else 1
    assert len(searched) == len(set(searched)) == texts
    memories = 2 if name == "edited" else 1
    assert len(written) == (0 if name in ("pin", "archive") else memories)


def test_a_contradiction_is_noted_when_it_is_written(sandbox: Sandbox) -> None:
    """Both statements are quoted, on the command line and in Python, and the memory is written."""
    sandbox.run("remember", "Always deploy the shop on Friday evenings.")
    done = sandbox.run("remember", "Never deploy the shop on Friday evenings.")
    assert done.returncode == 0
    (old, new) = sorted(path.stem for path in sandbox.path.glob(".memory/semantic/*/*.md"))
    old_short, new_short = map(sandbox.layout().short, (old, new))
    assert f"it may contradict {old_short}: " in done.stderr
    resolve = f"memtool resolve {new_short} {old_short} --keep newer"
    for words in ("Always deploy", "Never deploy", resolve):
        assert words in done.stderr
    context = sandbox.context()
    write.write_new(context, make_memory("sem-c", "Money is kept in cents.\n"), repeats="refuse")
    assert context.notes == []
    done = sandbox.run("supersede", old, "Never on Fridays", "--body", "Never.")
    assert (done.returncode, "contradict" in done.stderr) == (0, False)


@pytest.mark.parametrize(
    "args",
    [
        ("archive", "dec-a", "--reason", f"it named {SECRET}"),
        ("deprecate", "dec-a", "--reason", f"it named {SECRET}"),
        ("resolve", "dec-a", "dec-b", "--keep", "newer", "--reason", f"it named {SECRET}"),
        ("config", "search.token", SECRET),
        ("config", "trust.ref", SECRET),
        ("alias", "add", "key", SECRET),
    ],
)
def test_no_reason_and_no_setting_holds_a_secret(sandbox: Sandbox, args: tuple[str, ...]) -> None:
    """It would be in a commit message or in a shared file; nothing is changed."""
    sandbox.memory("dec-a")
    sandbox.memory("dec-b", "It is not so.\n")
    head = sandbox.commit()
    done = sandbox.run(*args, "--commit")
    assert (done.returncode, SECRET in done.stderr + done.stdout) == (2, False), done.stderr
    assert (sandbox.git("status", "--porcelain"), sandbox.git("rev-parse", "HEAD").strip()) == (
        "",
        head,
    )


def test_a_title_with_an_old_secret_is_masked_in_a_message(sandbox: Sandbox) -> None:
    """The memory can be put away, and the message does not repeat it."""
    sandbox.memory("dec-a", title=f"Use {SECRET}")
    sandbox.commit()
    assert sandbox.run("archive", "dec-a", "--commit").returncode == 0
    assert SECRET not in sandbox.git("log", "-1", "--format=%B")


def test_what_says_nothing_is_not_remembered(sandbox: Sandbox):
    """A comment alone is refused before it is written, as check would refuse it after."""
    done = sandbox.run("remember", "<!-- x -->")
    assert done.returncode == 2
    assert "it has no text" in done.stderr
    assert list((sandbox.path / ".memory").rglob("*.md")) == []


def test_a_tag_loses_its_sign(sandbox: Sandbox):
    """A tag that is written with a number sign is the tag without it."""
    done = sandbox.json("remember", "Deploys run on Tuesdays.", "--tag", "#Web Team")
    assert "tags: [Web Team]" in done["text"]


def test_a_drawn_id_has_a_free_short_form(sandbox: Sandbox) -> None:
    """A seed draws the same suffix each time, and the second memory draws on."""
    paths = [new_path(sandbox, f"Claim {number}") for number in range(3)]
    suffixes = [path.rpartition("-")[2] for path in paths]
    assert len(set(suffixes)) == 3


def test_a_short_form_of_the_trusted_branch_is_not_drawn(sandbox: Sandbox) -> None:
    """It is not in the worktree, and would be shared after the next pull."""
    first = new_path(sandbox, "Claim 1")
    theirs = sandbox.commit("theirs")
    sandbox.git("update-ref", "refs/remotes/origin/main", theirs)
    (sandbox.path / first).unlink()
    second = new_path(sandbox, "Claim 2")
    assert first.rpartition("-")[2] != second.rpartition("-")[2]


def test_without_a_free_short_form_a_memory_is_still_written(sandbox: Sandbox) -> None:
    """Its id is then shown with the date; after 20 draws it was refused."""
    paths = {new_path(sandbox, f"Claim {number}") for number in range(25)}
    assert len(paths) == 25


def new_path(sandbox: Sandbox, title: str) -> str:
    """Write a memory by a new call, as a process of its own would, and return its path."""
    done = sandbox.run("new", "semantic", title, "--body", f"{title} holds here alone.")
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()
