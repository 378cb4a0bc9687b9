from __future__ import annotations

import os
import subprocess
from pathlib import Path

import git
import pytest
from conftest import Sandbox
from hypothesis import given
from hypothesis import strategies as st

from memtool.errors import MemtoolError
from memtool.memory import timestamps
from memtool.store.blame import match_lines
from memtool.store.git import Touch
from memtool.store.history import UNKNOWN_COMMIT, Commit, History, PathContent, resolve_tip
from memtool.store.repository import Repository, discover


def repository(sandbox: Sandbox, path: Path | None = None, **env: str) -> Repository:
    return discover(str(path or sandbox.path), sandbox.env | env)


def head(sandbox: Sandbox) -> str:
    return sandbox.git("rev-parse", "HEAD").strip()


def walked(sandbox: Sandbox, path: Path | None = None, **env: str) -> list[tuple[str, list[str]]]:
    """Subjects, newest first, with the paths that each commit touched below `.memory`."""
    opened = repository(sandbox, path, **env)
    with History(opened) as history:
        return [
            (history.commit(id_).subject, [touch.path for touch in touches])
            for id_, touches in history.walk(resolve_tip(opened), ".memory")
        ]


def test_a_commit_tells_author_date_subject_and_trailers(sandbox: Sandbox) -> None:
    """A commit is read with its date in UTC, its trailers, its pull request and co-authors."""
    sandbox.memory("dec-a")
    message = (
        "subject (#12)\n\nbody: not a trailer\n\nMemory-Id: dec-a\nReason: it is\n  so\n\n"
        "Co-authored-by: Bo <bo@example.org>\n"
    )
    id_ = sandbox.commit(message)
    with History(repository(sandbox)) as history:
        commit = history.commit(id_)
    assert commit == Commit(
        id_,
        "Ada",
        "ada@example.org",
        "2026-02-01T03:00:00Z",
        "subject (#12)",
        (("Memory-Id", "dec-a"), ("Reason", "it is so")),
        "#12",
        ("Bo",),
    )


def test_the_walk_tells_old_and_new_blobs_and_renames(sandbox: Sandbox) -> None:
    """Each commit comes with its files, their blobs before and after, and their old paths."""
    path = sandbox.memory("dec-a")
    first = sandbox.commit("one")
    old = sandbox.git("rev-parse", f"HEAD:{path}").strip()
    sandbox.git("mv", path, ".memory/dec-a.md")
    second = sandbox.commit("two")
    sandbox.git("rm", "-q", ".memory/dec-a.md")
    third = sandbox.commit("three")
    sandbox.write("code.py", "1\n")
    sandbox.commit("elsewhere")
    with History(repository(sandbox)) as history:
        assert list(history.walk(head(sandbox), ".memory")) == [
            (third, (Touch(".memory/dec-a.md", ".memory/dec-a.md", "", old),)),
            (second, (Touch(".memory/dec-a.md", path, old, old),)),
            (first, (Touch(path, path, old, ""),)),
        ]


def test_odd_names_and_links_do_not_confuse_the_walk(sandbox: Sandbox) -> None:
    """Colons, spaces, line feeds and links are only names; a link has no blob of a memory."""
    for name in (":dec a.md", "-rf.md", "dec\nb.md", "dec-ä.md"):
        sandbox.write(f".memory/{name}", "x\n")
    (sandbox.path / ".memory/dec-link.md").symlink_to("/etc/passwd")
    id_ = sandbox.commit("odd")
    with History(repository(sandbox)) as history:
        ((commit, touches),) = history.walk(id_, ".memory")
    assert commit == id_
    assert [(t.path.rpartition("/")[2], bool(t.oid)) for t in touches] == [
        ("-rf.md", True),
        (":dec a.md", True),
        ("dec\nb.md", True),
        ("dec-link.md", False),
        ("dec-ä.md", True),
    ]


def test_merges_tell_only_what_differs_from_all_parents(sandbox: Sandbox) -> None:
    """A clean merge changes nothing; one that rewrites a file by hand does."""
    path = sandbox.memory("dec-a", "base\n")
    sandbox.commit("base")
    sandbox.git("checkout", "-q", "-b", "side")
    sandbox.memory("dec-a", "side\n")
    sandbox.memory("dec-b")
    sandbox.commit("side")
    sandbox.git("checkout", "-q", "main")
    sandbox.memory("dec-a", "main\n")
    sandbox.commit("main")
    sandbox.git("merge", "-q", "side", check=False)
    sandbox.memory("dec-a", "both\n")
    sandbox.commit("merge")
    commits = walked(sandbox)
    assert commits[0] == ("merge", [path])
    assert {subject for subject, _paths in commits} == {"merge", "main", "side", "base"}


def test_a_branch_whose_files_were_dropped_in_the_merge_is_walked(sandbox: Sandbox) -> None:
    """History is not simplified: files that a merge dropped were still written."""
    sandbox.memory("dec-a")
    sandbox.commit("base")
    sandbox.git("checkout", "-q", "-b", "side")
    sandbox.memory("dec-b")
    sandbox.commit("lost")
    sandbox.git("checkout", "-q", "main")
    sandbox.git("merge", "-q", "-s", "ours", "-m", "ours", "side")
    assert "lost" in [subject for subject, _paths in walked(sandbox)]


def test_more_commits_than_one_batch_keep_their_order(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Batches of commits join without a gap, newest first."""
    monkeypatch.setattr("memtool.store.history.COMMITS_PER_BATCH", 2)
    for number in range(5):
        sandbox.memory("dec-a", f"{number}\n")
        sandbox.commit(f"c{number}")
    assert [subject for subject, _paths in walked(sandbox)] == ["c4", "c3", "c2", "c1", "c0"]


def test_blame_names_the_commit_of_each_line(sandbox: Sandbox) -> None:
    """Lines keep their commit through a rename, and a range limits the answer."""
    sandbox.write("a.txt", "one\ntwo\nthree\n")
    first = sandbox.commit("one")
    sandbox.git("mv", "a.txt", "b.txt")
    sandbox.commit("move")
    sandbox.write("b.txt", "one\nTWO\nthree\n")
    third = sandbox.commit("two")
    with History(repository(sandbox)) as history:
        assert history.blame(third, "b.txt") == {1: first, 2: third, 3: first}
        assert history.blame(third, "b.txt", (2, 2)) == {2: third}
        assert history.find_newest([first, third]) == third
        assert history.find_last_commit(third, "b.txt") == third
        assert (history.find_newest([]), history.find_last_commit(third, "nothing")) == ("", "")


def test_newest_follows_the_graph_and_not_the_dates(sandbox: Sandbox) -> None:
    """A child is newer than its parent, whatever their clocks said."""
    sandbox.write("a", "1")
    first = sandbox.commit("one")
    sandbox.write("a", "2")
    sandbox.git("add", "-A")
    env = sandbox.env | {"GIT_AUTHOR_DATE": "2001-01-01T00:00:00Z"}
    subprocess.run(["git", "commit", "-qm", "backdated"], cwd=sandbox.path, env=env, check=True)
    with History(repository(sandbox)) as history:
        assert history.find_newest([first, head(sandbox)]) == head(sandbox)


def test_blame_passes_over_no_commit(sandbox: Sandbox) -> None:
    """A list of commits to ignore does not give their lines to another author."""
    sandbox.write("a.txt", "one\n")
    sandbox.commit("one")
    sandbox.write("a.txt", "ONE\n")
    second = sandbox.commit("two")
    sandbox.write(".git/ignored", f"{second}\n")
    sandbox.git("config", "blame.ignoreRevsFile", str(sandbox.path / ".git/ignored"))
    with History(repository(sandbox)) as history:
        assert history.blame(second, "a.txt") == {1: second}


def test_blame_of_a_file_that_is_not_there_is_an_error(sandbox: Sandbox) -> None:
    """An error of git comes as one sentence."""
    sandbox.write("a", "1")
    id_ = sandbox.commit()
    with (
        History(repository(sandbox)) as history,
        pytest.raises(MemtoolError, match="no such path"),
    ):
        history.blame(id_, "--output=x")
    assert not (sandbox.path / "x").exists()


def test_what_a_commit_holds_is_told_by_kind(sandbox: Sandbox) -> None:
    """Files come with their bytes, everything else by its name only."""
    sandbox.write("d/a.txt", "one\n")
    (sandbox.path / "link").symlink_to("/etc/passwd")
    id_ = sandbox.commit()
    with History(repository(sandbox)) as history:
        stored = {
            path: history.read_path(id_, path) for path in ("d/a.txt", "d", "link", "no", "d/x")
        }
    assert {path: blob and (blob.kind, blob.data) for path, blob in stored.items()} == {
        "d/a.txt": ("file", b"one\n"),
        "d": ("directory", b""),
        "link": ("link", b""),
        "no": None,
        "d/x": None,
    }


def test_an_unborn_head_has_no_tip(sandbox: Sandbox) -> None:
    """Before the first commit there is no tip, and a named revision is an error."""
    assert resolve_tip(repository(sandbox)) == ""
    with pytest.raises(MemtoolError, match='no revision "--all"'):
        resolve_tip(repository(sandbox), "--all")


def test_a_range_is_no_revision(sandbox: Sandbox) -> None:
    """A..B names two commits, but one is required."""
    sandbox.memory("dec-a")
    sandbox.commit()
    with pytest.raises(MemtoolError, match=r'no revision "HEAD\.\.HEAD"'):
        resolve_tip(repository(sandbox), "HEAD..HEAD")


def test_every_kind_of_checkout_has_the_same_history(sandbox: Sandbox, tmp_path: Path) -> None:
    """Worktrees, detached heads, bare clones, submodules and GIT_DIR give the same commits."""
    path = sandbox.memory("dec-a")
    sandbox.commit("one")
    sandbox.git("worktree", "add", "-q", "--detach", str(tmp_path / "linked"))
    sandbox.git("clone", "-q", "--bare", ".", str(tmp_path / "bare.git"))
    outer = Sandbox(tmp_path / "outer", sandbox.env)
    outer.path.mkdir()
    outer.git("init", "-q")
    outer.git(
        "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(sandbox.path), "sub"
    )
    expected = [("one", [path])]
    assert walked(sandbox, sandbox.path / ".memory" / "decision") == expected
    for place in (tmp_path / "linked", tmp_path / "bare.git", tmp_path / "outer" / "sub"):
        assert walked(sandbox, place) == expected
    by_hand = {"GIT_DIR": str(sandbox.path / ".git"), "GIT_WORK_TREE": str(sandbox.path)}
    assert walked(sandbox, tmp_path, **by_hand) == expected


def test_a_shallow_clone_knows_its_boundary(sandbox: Sandbox, tmp_path: Path) -> None:
    """Authors before the boundary are unknown to this clone."""
    sandbox.memory("dec-a")
    sandbox.commit("one")
    sandbox.memory("dec-b")
    last = sandbox.commit("two")
    sandbox.git("clone", "-q", "--depth=1", f"file://{sandbox.path}", str(tmp_path / "shallow"))
    opened = repository(sandbox, tmp_path / "shallow")
    assert opened.shallow_commits() == {last}
    with History(opened) as history:
        assert history.find_author_commit(last) == UNKNOWN_COMMIT
        assert history.commit(last).subject == "two"


def test_settings_of_the_repository_start_nothing(sandbox: Sandbox, tmp_path: Path) -> None:
    """Monitors, diff drivers, filters, aliases and signature programs are not run."""
    sandbox.write(".gitattributes", "* diff=evil filter=evil\n")
    sandbox.write("a.txt", "one\n")
    sandbox.memory("dec-a")
    id_ = sandbox.commit("one")
    canary = tmp_path / "canary"
    script = tmp_path / "evil.sh"
    script.write_text(f"#!/bin/sh\ntouch {canary}\ncat\n")
    script.chmod(0o755)
    for key in (
        "core.fsmonitor",
        "diff.evil.textconv",
        "diff.evil.command",
        "diff.external",
        "core.pager",
        "filter.evil.clean",
        "filter.evil.smudge",
        "gpg.program",
        "alias.blame",
        "core.sshCommand",
    ):
        sandbox.git("config", key, str(script))
    sandbox.git("config", "log.showSignature", "true")
    with History(repository(sandbox)) as history:
        assert history.blame(id_, "a.txt") == {1: id_}
        assert [commit for commit, _touches in history.walk(id_, ".memory")] == [id_]
        history.read_path(id_, "a.txt")
        history.find_last_commit(id_, "a.txt")
    assert not canary.exists()


def test_commits_that_nobody_can_read_stay_silent(
    sandbox: Sandbox, capfd: pytest.CaptureFixture[str]
) -> None:
    """A commit with an unknown encoding, a broken date or no author line gives empty texts."""
    tree = sandbox.git("write-tree").strip()
    made = []
    for number, lines in enumerate(
        (
            "author A <a@x> 1 +0000\ncommitter A <a@x> 1 +0000\nencoding nonsense",
            "author A <a@x> 1 +0000\ncommitter A <a@x> 1 +0000\nencoding hex",
            "author A <a@x> 99999999999999999999 +0000\ncommitter A <a@x> 1 +0000",
            "author nobody\ncommitter nobody",
            "author \x1b[31mA\x07 <a@x> 1 +zzzz\ncommitter A <a@x> 1 +0000",
        )
    ):
        source = sandbox.path / f"commit{number}"
        source.write_text(f"tree {tree}\n{lines}\n\nsubject\n")
        made.append(
            sandbox.git("hash-object", "-t", "commit", "-w", "--literally", str(source)).strip()
        )
    with History(repository(sandbox)) as history:
        assert [history.commit(id_).id for id_ in made] == made
        assert history.commit("1" * 40) == UNKNOWN_COMMIT.replace(id="1" * 40)
    assert capfd.readouterr().err == ""


def test_history_is_as_gitpython_reads_it(sandbox: Sandbox) -> None:
    """An independent reader gives the same commits, blame and old files."""
    sandbox.write("a.txt", "one\ntwo\n")
    first = sandbox.commit("one\n\nbody\n\nReason: because\nMemory-Id: dec-a\n")
    sandbox.git("mv", "a.txt", "b.txt")
    os.symlink("b.txt", sandbox.path / "link")
    sandbox.write("b.txt", "one\n2\n")
    second = sandbox.commit("two")
    with History(repository(sandbox)) as history, git.Repo(sandbox.path) as repo:
        for id_ in (first, second):
            commit, expected = history.commit(id_), repo.commit(id_)
            assert (commit.author, commit.email) == (expected.author.name, expected.author.email)
            assert commit.date == timestamps.render(expected.authored_date)
            assert commit.subject == expected.summary
            assert list(commit.trailers) == expected.trailers_list
        blamed = repo.blame_incremental(second, "b.txt")
        assert history.blame(second, "b.txt") == {
            line: entry.commit.hexsha for entry in blamed for line in entry.linenos
        }
        assert history.blame(second, "b.txt", (2, 2)) == {2: second}
        data = repo.commit(second).tree.join("b.txt").data_stream.read()
        assert history.read_path(second, "b.txt") == PathContent("file", data)
        assert history.read_path(second, "link") == PathContent("link")
        assert history.read_path(second, ".") == PathContent("directory")
        assert history.read_path(second, "a.txt") is None
        assert history.commit("1" * 40) == UNKNOWN_COMMIT.replace(id="1" * 40)
        with pytest.raises(MemtoolError):
            history.blame(second, "a.txt")


def test_repositories_that_name_objects_by_sha256_have_a_history(
    sandbox: Sandbox, tmp_path: Path
) -> None:
    """Walk, commits and blame work there too."""
    new = tmp_path / "new"
    sandbox.git("init", "-q", "--object-format=sha256", str(new))
    (new / ".memory").mkdir()
    (new / ".memory" / "a.md").write_text("one\n")
    for args in (("add", "."), ("commit", "-q", "-m", "first")):
        sandbox.git("-C", str(new), *args)
    assert walked(sandbox, new) == [("first", [".memory/a.md"])]
    opened = repository(sandbox, new)
    with History(opened) as history:
        assert history.blame(resolve_tip(opened), ".memory/a.md") == {1: resolve_tip(opened)}
        assert history.find_last_commit(resolve_tip(opened), ".memory/a.md") == resolve_tip(opened)


def test_no_process_outlives_its_history(sandbox: Sandbox) -> None:
    """Leaving the block ends the processes that answered it."""
    sandbox.memory("dec-a")
    id_ = sandbox.commit()
    before = _children()
    with History(repository(sandbox)) as history:
        history.commit(id_)
        assert _children() > before
    assert _children() == before


def _children() -> set[str]:
    path = f"/proc/self/task/{os.getpid()}/children"
    if not os.path.exists(path):
        pytest.skip("the kernel does not list children")
    with open(path) as file:
        return set(file.read().split())


def test_settings_given_by_variables_stay(sandbox: Sandbox) -> None:
    """Git settings in the environment, such as a safe.directory, apply with the hardening."""
    sandbox.memory("dec-a")
    sandbox.commit("one")
    variables = {
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "core.abbrev",
        "GIT_CONFIG_VALUE_0": "x",
    }
    with pytest.raises(MemtoolError, match=r"core\.abbrev|abbrev length"):
        walked(sandbox, **variables)


def test_broken_settings_are_no_empty_history(sandbox: Sandbox) -> None:
    """Where git itself cannot read the repository its complaint is shown."""
    sandbox.memory("dec-a")
    sandbox.commit("one")
    with (sandbox.path / ".git/config").open("a") as file:
        file.write("[core\n broken")
    with pytest.raises(MemtoolError, match="bad config"):
        resolve_tip(repository(sandbox))


def test_a_missing_object_is_told(sandbox: Sandbox) -> None:
    """A commit that is gone from the object store ends in one sentence."""
    sandbox.memory("dec-a")
    first = sandbox.commit("one")
    sandbox.memory("dec-b")
    sandbox.commit("two")
    (sandbox.path / f".git/objects/{first[:2]}/{first[2:]}").unlink()
    with pytest.raises(MemtoolError, match=first):
        walked(sandbox)


LINES = st.lists(st.sampled_from([b"a", b"b", b"c", b""]), max_size=12)


@given(LINES, LINES)
def test_matched_lines_are_equal_and_in_order(before: list[bytes], after: list[bytes]) -> None:
    """Every pair holds the same line, and no line is matched twice."""
    pairs = sorted(match_lines(before, after))
    assert all(before[old] == after[new] for old, new in pairs)
    assert [new for _old, new in pairs] == sorted({new for _old, new in pairs})
    assert len({old for old, _new in pairs}) == len(pairs)


@given(LINES)
def test_an_unchanged_file_is_matched_whole(lines: list[bytes]) -> None:
    """Nothing of a file that did not change counts as new."""
    assert sorted(match_lines(lines, lines)) == [(n, n) for n in range(len(lines))]
