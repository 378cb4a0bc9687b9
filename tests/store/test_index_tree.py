"""The tree of the index: what `git write-tree` says, or nothing."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest
from conftest import Sandbox

from memtool.gate import differences
from memtool.gate.differences import Difference
from memtool.store import index_tree
from memtool.store.repository import discover


def tree(sandbox: Sandbox, **env: str) -> str:
    return index_tree.of(discover(str(sandbox.path), sandbox.env | env))


def rows(sandbox: Sandbox) -> list[Difference]:
    return differences.differences(discover(str(sandbox.path), sandbox.env), ".memory")[0]


@pytest.fixture
def staged(sandbox: Sandbox) -> Sandbox:
    """A commit, and a change that is staged as `git commit` does before it calls the hook."""
    sandbox.memory("dec-a")
    sandbox.write("src/TREE/one.py", "pass\n")
    sandbox.commit()
    sandbox.memory("dec-b")
    sandbox.git("add", "--all")
    sandbox.git("write-tree")
    return sandbox


@pytest.mark.parametrize("version", ["2", "3", "4"])
def test_it_is_what_git_would_write(staged: Sandbox, version: str) -> None:
    """In every version of the index that git writes."""
    staged.git("update-index", f"--index-version={version}")
    assert tree(staged) == staged.git("write-tree").strip() != ""


@pytest.mark.parametrize(
    "setting", ["index.threads=2", "core.untrackedCache=true", "index.skipHash=true"]
)
def test_other_extensions_do_not_matter(staged: Sandbox, setting: str) -> None:
    """Git may write more behind the tree."""
    staged.write("new.txt", "x\n")
    staged.git("-c", setting, "add", "--all")
    staged.git("-c", setting, "write-tree")
    staged.git("-c", setting, "status")
    assert tree(staged) in ("", staged.git("write-tree").strip())


def test_it_is_in_a_repository_of_sha256(tmp_path: Path, environment: dict[str, str]) -> None:
    """Ids are as long as the repository's hash."""
    (tmp_path / "other").mkdir()
    sandbox = Sandbox(tmp_path / "other", environment)
    sandbox.git("init", "-q", "--object-format=sha256")
    sandbox.memory("dec-a")
    sandbox.git("add", "--all")
    assert tree(sandbox) in ("", sandbox.git("write-tree").strip())
    assert len(tree(sandbox)) == 64


def test_nothing_is_known_of_what_is_not_written(staged: Sandbox) -> None:
    """A change since, one that is only intended, a conflict: git has to look at the entries."""
    staged.write("src/two.py", "pass\n")
    staged.git("add", "--all")
    assert tree(staged) == ""
    staged.git("write-tree")
    assert tree(staged) != ""
    staged.write("src/three.py", "pass\n")
    staged.git("add", "--intent-to-add", "src/three.py")
    staged.git("write-tree")
    assert tree(staged) == ""


def test_a_conflict_has_no_tree(staged: Sandbox) -> None:
    """A merge that is not settled stages three versions of one file."""
    staged.commit()
    for branch, text in (("one", "1\n"), ("two", "2\n")):
        staged.git("checkout", "-q", "-b", branch, "HEAD~1" if branch == "two" else "HEAD")
        staged.write(".memory/sem-same.md", text)
        staged.commit()
    staged.git("merge", "one", check=False)
    assert tree(staged) == ""
    assert [row.status for row in rows(staged)] == ["U"]


def test_the_index_of_a_hook_is_asked(staged: Sandbox) -> None:
    """GIT_INDEX_FILE counts from the top of the worktree, and so for git."""
    expected = tree(staged)
    os.rename(staged.path / ".git/index", staged.path / ".git/next-index-1.lock")
    assert tree(staged) == ""
    assert tree(staged, GIT_INDEX_FILE=".git/next-index-1.lock") == expected
    assert tree(staged, GIT_INDEX_FILE=str(staged.path / ".git/next-index-1.lock")) == expected


def test_a_linked_worktree_has_its_own(staged: Sandbox) -> None:
    """Its index lies in its own git directory."""
    staged.commit()
    staged.git("worktree", "add", "-q", "../linked")
    linked = Sandbox(staged.path.parent / "linked", staged.env)
    linked.memory("dec-c")
    linked.git("add", "--all")
    expected = linked.git("write-tree").strip()
    assert tree(linked) == expected != tree(staged)


def test_a_damaged_index_is_not_believed(staged: Sandbox) -> None:
    """Whatever is cut off or bent, there is no answer, or the one that git gives."""
    path = staged.path / ".git/index"
    whole = path.read_bytes()
    expected = tree(staged)
    at = whole.rindex(b"TREE", 0, whole.rindex(b"TREE"))  # the last one is a directory
    bends = [whole[:end] for end in range(0, len(whole), 7)]
    bends += [whole[: at + n] + b"\xff" + whole[at + n + 1 :] for n in (0, 3, 4, 7, 8, 9, 10)]
    for data in bends:
        path.write_bytes(data)
        assert tree(staged) == ""
    path.write_bytes(whole)
    assert tree(staged) == expected


def test_differences_are_those_that_the_entries_tell(
    staged: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever is added, changed, deleted, renamed or made a link: the same rows either way."""
    draw = random.Random(5)
    for number in range(12):
        staged.memory(f"sem-{number}", f"Note {number}.\n", type="semantic")
    staged.commit()
    seen = []
    for _round in range(8):
        files = sorted((staged.path / ".memory").rglob("*.md"))
        one, two, three, four = draw.sample(files, 4)
        one.write_text(one.read_text() + "More.\n")
        two.unlink()
        three.rename(three.with_name(f"renamed-{three.name}"))
        four.unlink()
        four.symlink_to("nowhere")
        staged.write("program.py", f"print({_round})\n")
        staged.git("add", "--all")
        staged.git("write-tree")
        assert tree(staged)
        quick = rows(staged)
        with monkeypatch.context() as patch:
            patch.setattr(index_tree, "of", lambda _repository: "")
            assert rows(staged) == quick
        seen += quick
        staged.commit() if draw.random() < 0.5 else staged.git("reset", "-q", "--hard")
        for link in [path for path in (staged.path / ".memory").rglob("*") if path.is_symlink()]:
            link.unlink()
    assert {row.status for row in seen} == {"A", "M", "D", "T"}


def test_a_tree_that_is_not_written_is_not_needed(staged: Sandbox) -> None:
    """Where git knows the id but has not the tree, it looks at the entries."""
    expected = rows(staged)
    missing = staged.path / ".git/objects" / tree(staged)[:2] / tree(staged)[2:]
    missing.unlink()
    assert rows(staged) == expected != []
