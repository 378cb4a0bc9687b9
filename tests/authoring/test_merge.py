"""Merges of real git: lifecycle edits never conflict with the driver, and are settled without."""

from __future__ import annotations

import itertools
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import Sandbox, make_memory

from memtool.api import Project
from memtool.authoring.tree import with_attributes
from memtool.commands.check import check
from memtool.commands.resolve import render, resolve
from memtool.commands.search import search
from memtool.errors import MemtoolError
from memtool.hosts import git as host
from memtool.memory import document
from memtool.memory.three_way import Sides
from memtool.store.merging import merge_texts

Act = Callable[[Any, str], object]

PAIRS: dict[str, tuple[Act, Act, str]] = {
    "dec-confirm-confirm": (
        lambda p, i: p.confirm(i),
        lambda p, i: p.confirm(i),
        "checked at 2026-03-03T12:00:00Z",
    ),
    "dec-pin-archive": (lambda p, i: p.pin(i), lambda p, i: p.archive(i), "status archived"),
    "dec-forget-forget": (
        lambda p, i: p.forget(i, reason="one"),
        lambda p, i: p.forget(i, reason="two"),
        "status deleted; deleted at 2026-03-02T12:00:00Z, by Ada, reason one | two, was confirmed",
    ),
    "dec-forget-confirm": (
        lambda p, i: p.forget(i, reason="one"),
        lambda p, i: p.confirm(i),
        "status deleted",
    ),
    "dec-confirm-forget": (
        lambda p, i: p.confirm(i),
        lambda p, i: p.forget(i, reason="two"),
        "status deleted",
    ),
    "dec-deprecate-pin": (lambda p, i: p.deprecate(i), lambda p, i: p.pin(i), "status deprecated"),
    "dec-deprecate-forget": (
        lambda p, i: p.deprecate(i),
        lambda p, i: p.forget(i, reason="two"),
        "status deleted",
    ),
    "dec-confirm-pin": (lambda p, i: p.confirm(i), lambda p, i: p.pin(i), "status pinned"),
    "dec-supersede-confirm": (
        lambda p, i: p.supersede(i, "Another title", body="Another text.\n"),
        lambda p, i: p.confirm(i),
        "checked at 2026-03-03T12:00:00Z",
    ),
}
"""Two acts on one memory in two branches, and what holds afterwards."""
CONFLICTING = 7
"""How many of them git's own text merge leaves with markers."""


@pytest.fixture
def parted(sandbox: Sandbox, prepared: Path) -> Sandbox:
    """Branches `one` and `two`, in which the pairs were done; nothing is merged yet."""
    if not any(prepared.iterdir()):
        part(sandbox)
        shutil.copytree(sandbox.path, prepared, symlinks=True, dirs_exist_ok=True)
    else:
        shutil.rmtree(sandbox.path)
        shutil.copytree(prepared, sandbox.path, symlinks=True)
    return sandbox


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the repository of `parted` is kept: making it costs most of these tests."""
    return tmp_path_factory.mktemp("parted")


def part(sandbox: Sandbox) -> None:
    sandbox.write(".gitattributes", with_attributes(b"", ".memory"))
    for number, id_ in enumerate(PAIRS):
        sandbox.memory(id_, f"Text number {number} of {id_ * 2}.\n", tags=(f"t{number}",))
    sandbox.commit()
    for day, branch in ((2, "one"), (3, "two")):
        sandbox.git("switch", "--quiet", "--create", branch, "main")
        project = opened(sandbox, day)
        for id_, acts in PAIRS.items():
            acts[day - 2](project, id_)
        sandbox.commit(branch)


def opened(sandbox: Sandbox, day: int) -> Any:
    env = sandbox.env | {"MEMTOOL_NOW": f"2026-03-{day:02}T12:00:00Z"}
    return Project.at(str(sandbox.path), env)


def with_driver(sandbox: Sandbox) -> None:
    sandbox.git("config", "merge.memtool.driver", host.build_driver())


def merge(sandbox: Sandbox, name: str, *branches: str) -> str:
    """Merge branches into the first one, and return the id of the tree; empty for a conflict."""
    sandbox.git("switch", "--quiet", "--create", name, branches[0])
    for branch in branches[1:]:
        sandbox.git("merge", "--quiet", "--no-edit", branch, check=False)
        if sandbox.git("ls-files", "--unmerged"):
            return ""
    assert "MERGE_HEAD" not in {path.name for path in (sandbox.path / ".git").iterdir()}
    return sandbox.git("rev-parse", "HEAD^{tree}").strip()


def test_two_branches_with_the_driver_never_conflict(parted: Sandbox) -> None:
    """Both orders give the same tree, which passes the gate, with what each pair is to give."""
    with_driver(parted)
    tree = merge(parted, "one-two", "one", "two")
    assert tree == merge(parted, "two-one", "two", "one") != ""
    assert {p.severity for p in check(parted.context()).problems} <= {"warning"}
    for id_, (_first, _two, wanted) in PAIRS.items():
        memory = parted.context().tree()[id_].memory
        rows = [f"{key} {show_value(value)}" for key, value in memory.fields.items()]
        for part in wanted.split("; "):
            assert any(row.startswith(part) for row in rows), (id_, rows)
    parted.git("config", "--unset", "merge.memtool.driver")
    assert merge(parted, "undriven", "one", "two") == ""
    resolve(parted.context())
    parted.git("commit", "--quiet", "--no-edit")
    assert parted.git("rev-parse", "HEAD^{tree}").strip() == tree


def show_value(value: Any) -> str:
    return ", ".join(f"{k} {v}" for k, v in value.items()) if isinstance(value, dict) else value


def test_without_the_driver_nothing_is_missed_and_one_call_settles_all(parted: Sandbox) -> None:
    """The memories are found meanwhile, and the result is that of the driver in either order."""
    assert merge(parted, "one-two", "one", "two") == ""
    waiting = len(set(parted.git("diff", "--name-only", "--diff-filter=U").split()))
    assert waiting == CONFLICTING
    manifest = parted.path / ".git/memtool/manifest"
    for again in ("new", "kept", "touched", "built again"):
        if again == "touched":
            for path in parted.path.rglob("*.md"):
                os.utime(path, (1, 1))
        if again == "built again":
            manifest.unlink(missing_ok=True)
        context = parted.context()
        ids = {hit.id for hit in search(context, "Text number", limit=50).results}
        assert ids >= {"dec-confirm-confirm", "dec-confirm-pin"}
        assert not ids & {"dec-pin-archive"}
        assert f"{waiting} memories are in an unfinished merge" in "".join(context.notes), again
    assert check(parted.context()).exit_code == 1
    planned = resolve(parted.context(), dry_run=True)
    layout = parted.layout()
    assert render(planned, layout).startswith(".memory/decision/2026-02/dec-confirm-confirm.md\n")
    assert layout.reports[0].startswith(
        ".memory/decision/2026-02/dec-confirm-confirm.md: would be merged, "
    )
    assert parted.git("ls-files", "--unmerged")
    with pytest.raises(MemtoolError, match="a merge is not finished"):
        resolve(parted.context(), commit=True)
    done = resolve(parted.context())
    assert [settled.text for settled in done.finished] == [
        settled.text for settled in planned.finished
    ]
    assert len(done.finished) == waiting
    assert parted.git("ls-files", "--unmerged") == ""
    parted.git("commit", "--quiet", "--no-edit")
    first = parted.git("rev-parse", "HEAD^{tree}")
    assert merge(parted, "two-one", "two", "one") == ""
    resolve(parted.context())
    parted.git("commit", "--quiet", "--no-edit")
    assert parted.git("rev-parse", "HEAD^{tree}") == first


ACTS: tuple[Act, ...] = (
    lambda p, i: p.confirm(i),
    lambda p, i: p.pin(i),
    lambda p, i: p.unpin(i),
    lambda p, i: p.archive(i),
    lambda p, i: p.deprecate(i),
    lambda p, i: p.forget(i, reason=f"why of {i}"),
    lambda p, i: p.restore(i),
)


@pytest.mark.parametrize(
    "seed",
    [1, *(pytest.param(number, marks=pytest.mark.slow) for number in range(2, 101))],
)
def test_random_histories_of_lifecycle_edits_never_conflict(sandbox: Sandbox, seed: int) -> None:
    """Three branches that did what they liked give one tree, in whichever order they are merged."""
    draw = random.Random(seed)
    sandbox.write(".gitattributes", with_attributes(b"", ".memory"))
    ids = [f"dec-{letter}" for letter in "abcd"]
    for id_ in ids:
        status = {"status": "candidate"} if draw.random() < 0.3 else {}
        sandbox.memory(id_, f"Text of {id_ * 3}.\n", tags=("a", "b"), **status)
    sandbox.commit()
    with_driver(sandbox)
    branches = ["one", "two", "three"]
    for number, branch in enumerate(branches):
        sandbox.git("switch", "--quiet", "--create", branch, "main")
        for step in range(4):
            project = opened(sandbox, 2 + 3 * step + number)
            id_ = draw.choice(ids)
            try:
                if draw.random() < 0.3:
                    tag(sandbox, id_, draw)
                else:
                    draw.choice(ACTS)(project, id_)
            except MemtoolError:  # such as pinning what is deleted
                continue
        sandbox.git("commit", "--quiet", "--all", "--allow-empty", "--message", branch)
    orders = list(itertools.permutations(branches))
    trees = {merge(sandbox, f"m{n}", *order) for n, order in enumerate(draw.sample(orders, 2))}
    assert len(trees) == 1
    assert "" not in trees
    assert {p.code for p in check(sandbox.context()).problems if p.severity == "error"} == set()


def tag(sandbox: Sandbox, id_: str, draw: random.Random) -> None:
    """Change tags or importance, as people do with an editor."""
    path = sandbox.path / f".memory/decision/2026-02/{id_}.md"
    tags = tuple(draw.sample("abcdef", draw.randint(0, 4)))
    changes: dict[str, Any] = {"tags": tags, "importance": f"0.{draw.randint(1, 9)}"}
    path.write_bytes(document.edit(path.read_bytes(), changes))


def test_a_claim_that_both_changed_is_left_with_gits_markers(sandbox: Sandbox) -> None:
    """The lifecycle around it is merged; resolve says what is divided and changes nothing."""
    sandbox.write(".gitattributes", with_attributes(b"", ".memory"))
    path = sandbox.memory("dec-a", "It is so.\n", status="candidate")
    sandbox.commit()
    for branch, text, status in (("one", "It is one.\n", "pinned"), ("two", "Two.\n", "archived")):
        sandbox.git("switch", "--quiet", "--create", branch, "main")
        sandbox.memory("dec-a", text, status=status)
        sandbox.commit()
    with_driver(sandbox)
    assert merge(sandbox, "m", "one", "two") == ""
    text = (sandbox.path / path).read_text()
    assert "status: archived\n" in text
    assert text.endswith("<<<<<<< ours\nIt is one.\n=======\nTwo.\n>>>>>>> theirs\n")
    with pytest.raises(MemtoolError, match=r"divided in what it says \(body\)"):
        resolve(sandbox.context())
    assert (sandbox.path / path).read_text() == text
    (sandbox.path / path).write_text(text.split("<<<<<<<")[0] + "Both.\n")
    with pytest.raises(MemtoolError, match="git add it"):
        resolve(sandbox.context())


@pytest.mark.parametrize("broken", ["no-such-python", "true-but-empty"])
def test_a_driver_that_is_gone_leaves_gits_markers(parted: Sandbox, broken: str) -> None:
    """No side is lost if the program is missing or no longer has memtool."""
    command = host.build_driver().replace(sys.executable, "/nowhere/python")
    if broken == "true-but-empty":
        command = command.replace("memtool merge-file", f"{sys.executable} -I -c 'import nothing'")
    parted.git("config", "merge.memtool.driver", command)
    parted.env["PATH"] = "/usr/bin:/bin"
    assert merge(parted, "m", "one", "two") == ""
    text = (parted.path / ".memory/decision/2026-02/dec-pin-archive.md").read_text()
    assert "<<<<<<< ours\nstatus: pinned\n=======\nstatus: archived\n>>>>>>> theirs\n" in text
    assert len(resolve(parted.context()).finished) == CONFLICTING


def test_one_side_left_by_a_failed_driver_is_settled_from_gits_index(parted: Sandbox) -> None:
    """A driver that only fails leaves no markers, and what theirs did is not lost."""
    parted.git("config", "merge.memtool.driver", "false")
    assert merge(parted, "m", "one", "two") == ""
    assert len(resolve(parted.context()).finished) == len(PAIRS) - 1
    assert parted.context().tree()["dec-pin-archive"].memory.status == "archived"


def test_markers_that_were_committed_are_settled_in_a_commit(parted: Sandbox) -> None:
    """Also those of one file alone; there is no merge any more that git would conclude."""
    merge(parted, "m", "one", "two")
    parted.git("add", "--all")
    parted.git("commit", "--quiet", "--no-edit")
    (settled,) = resolve(parted.context(), "dec-pin-archive", commit=True).finished
    assert (settled.keys, settled.commit) == (
        {"status": "archived"},
        parted.git("rev-parse", "HEAD").strip(),
    )
    assert parted.git("log", "-1", "--format=%s").strip() == (
        "memory: finish the merge of Title of dec-pin-archive"
    )
    assert len(resolve(parted.context(), commit=True).finished) == CONFLICTING - 1
    assert parted.git("status", "--porcelain") == ""
    assert check(parted.context()).exit_code == 0


def test_what_is_no_memory_is_merged_as_git_would(sandbox: Sandbox) -> None:
    """An empty base, a template, settings, too large a file, one key added at two places."""
    git = sandbox.context().repository.git
    assert merge_texts(git, Sides(None, b"a\n", b"b\n")).is_clean is False
    merged = merge_texts(git, Sides(b"a\nb\nc\nd\n", b"A\nb\nc\nd\n", b"a\nb\nc\nD\n"))
    assert (merged.data, merged.is_clean) == (b"A\nb\nc\nD\n", True)
    whole = document.write(make_memory(files=("a", "b"), related_to=("dec-x",)))
    ours = whole.replace(b"files:", b"domain: one\nfiles:")
    theirs = whole.replace(b"---\nIt", b"domain: two\n---\nIt")
    assert merge_texts(git, Sides(whole, ours, theirs)) == merge_texts(
        git, Sides(whole, ours, theirs), "x.md"
    )
    with pytest.raises(MemtoolError, match="binary"):
        merge_texts(git, Sides(b"a\0", b"b\0", b"c\0"))


@pytest.mark.parametrize("args", [("a", "b", "nowhere"), (".", "a", "a"), ("a", "b\0", "a")])
def test_files_that_cannot_be_read_are_a_usage_error(
    sandbox: Sandbox, args: tuple[str, ...]
) -> None:
    """Nothing is written, and git's own merge is what the driver runs then."""
    sandbox.write("a", "a\n")
    sandbox.write("b", "b\n")
    with pytest.raises(MemtoolError, match=r"cannot read|not valid Unicode"):
        Project.at(str(sandbox.path), sandbox.env).merge_file(
            *(str(sandbox.path / name) for name in args)
        )
    assert (sandbox.path / "b").read_text() == "b\n"


def test_a_dry_run_prints_the_result(sandbox: Sandbox) -> None:
    """Nothing is written; a conflict is exit code 1."""
    for name, status in (("o", "confirmed"), ("a", "pinned"), ("b", "archived")):
        sandbox.write(name, document.write(make_memory(status=status)))
    done = sandbox.run("merge-file", "o", "a", "b", "--dry-run")
    assert (done.returncode, "status: archived" in done.stdout) == (0, True)
    assert b"pinned" in (sandbox.path / "a").read_bytes()
    sandbox.write("b", document.write(make_memory(title="Another", status="archived")))
    sandbox.write("a", document.write(make_memory(title="Other", status="pinned")))
    done = sandbox.run("merge-file", "o", "a", "b")
    assert (done.returncode, done.stdout) == (1, "memtool: a conflicts in what it says\n")
    assert b"<<<<<<< ours\ntitle: Other" in (sandbox.path / "a").read_bytes()


@pytest.mark.slow
def test_a_rebase_uses_the_driver_too(parted: Sandbox) -> None:
    """Sides are swapped there, which makes no difference."""
    with_driver(parted)
    tree = merge(parted, "m", "one", "two")
    parted.git("switch", "--quiet", "--create", "rebased", "two")
    done = subprocess.run(
        ["git", "rebase", "--quiet", "one"], cwd=parted.path, env=parted.env, check=False
    )
    assert (done.returncode, parted.git("rev-parse", "HEAD^{tree}").strip()) == (0, tree)
