from __future__ import annotations

import pytest
from conftest import Sandbox, make_memory

from memtool.authoring.resolve import find_newest
from memtool.commands.resolve import render, resolve
from memtool.errors import MemtoolError
from memtool.memory import document
from memtool.memory.memory import with_reason
from memtool.store import commits, files


@pytest.fixture
def merging(sandbox: Sandbox) -> Sandbox:
    """A merge that stopped since both branches made sem-same."""
    sandbox.memory("dec-a")
    sandbox.commit()
    sandbox.git("checkout", "--quiet", "-b", "side")
    sandbox.memory("dec-same", "Theirs.\n", title="Of them", tags=("t",))
    sandbox.commit()
    sandbox.git("checkout", "--quiet", "main")
    sandbox.memory("dec-same", "Ours.\n", title="Of us")
    sandbox.commit()
    sandbox.git("merge", "side", check=False)
    assert sandbox.git("ls-files", "--unmerged") != ""
    return sandbox


@pytest.mark.parametrize("ids", [(), ("dec-same",)])
def test_an_id_made_twice_becomes_two_memories(merging: Sandbox, ids: tuple[str, ...]):
    """Ours keeps the id, theirs every byte but the id; git commit concludes the merge."""
    theirs = merging.git("show", ":3:.memory/decision/2026-02/dec-same.md")
    ws = merging.context()
    (resolution,) = resolve(ws, *ids, keep="both").resolved
    assert resolution.ids == ("dec-same", resolution.id)
    assert (merging.path / resolution.path).read_text() == theirs.replace(
        "id: dec-same", f"id: {resolution.id}"
    )
    memory = document.read((merging.path / resolution.path).read_bytes(), resolution.path)
    assert (memory.title, memory.body) == ("Of them", "Theirs.\n")
    assert merging.git("ls-files", "--unmerged") == ""
    merging.git("commit", "--quiet", "--no-edit")
    assert merging.git("status", "--porcelain") == ""
    ids_there = [record.id for record in merging.context().tree().records]
    assert ids_there == sorted(["dec-a", resolution.id, "dec-same"])
    path = ".memory/decision/2026-02/dec-same.md"
    assert ws.notes == [f"git commit finishes the merge; dec-same now means {path}"]


def test_a_dry_run_leaves_the_merge_as_it_is(merging: Sandbox):
    """Nothing is staged, nothing is written."""
    before = merging.git("status", "--porcelain")
    done = resolve(merging.context(), keep="both", dry_run=True)
    layout = merging.layout()
    render(done, layout)
    assert layout.reports[0] == "Would settle dec-same"
    assert layout.reports[1].startswith("  it was made twice; one would be named dec-2026-02-22-of")
    assert merging.git("status", "--porcelain") == before


def test_only_git_concludes_a_merge(merging: Sandbox):
    """A commit of single files is impossible now."""
    with pytest.raises(MemtoolError, match="a merge is not finished") as caught:
        resolve(merging.context(), keep="both", commit=True)
    assert caught.value.hint == "leave out --commit\ngit commit"


def test_another_id_is_not_parted(merging: Sandbox):
    """Only what was made twice can become two."""
    with pytest.raises(MemtoolError, match="no two files have the id dec-a"):
        resolve(merging.context(), "dec-a", keep="both")


def test_a_memory_that_both_sides_changed_is_another_conflict(sandbox: Sandbox):
    """The hint says how git settles it."""
    sandbox.memory("dec-a", status="confirmed")
    sandbox.commit()
    sandbox.git("checkout", "--quiet", "-b", "side")
    sandbox.memory("dec-a", status="pinned")
    sandbox.commit()
    sandbox.git("checkout", "--quiet", "main")
    sandbox.memory("dec-a", status="archived")
    sandbox.commit()
    sandbox.git("merge", "side", check=False)
    with pytest.raises(MemtoolError, match="both sides of the merge changed") as caught:
        resolve(sandbox.context(), keep="both")
    assert "git checkout --ours" in caught.value.hint


def twice(sandbox: Sandbox) -> str:
    """Write two memories of one id in two directories; return the path of the older one."""
    path = sandbox.memory("dec-a", "First.\n")
    later = sandbox.memory("dec-b", "Second.\n", timestamp="2026-02-23T00:00:00Z")
    text = (sandbox.path / later).read_text().replace("dec-b", "dec-a")
    (sandbox.path / later).unlink()
    sandbox.write(".memory/other/dec-a.md", text)
    return path


def test_the_same_id_in_two_directories_becomes_two(sandbox: Sandbox):
    """Git sees no conflict there; the older memory keeps the id."""
    path = twice(sandbox)
    sandbox.commit()
    (resolution,) = resolve(sandbox.context(), "dec-a", keep="both", commit=True).resolved
    assert (sandbox.path / path).read_text().endswith("First.\n")
    assert (sandbox.path / resolution.path).read_text().endswith("Second.\n")
    assert not (sandbox.path / ".memory/other/dec-a.md").exists()
    assert sandbox.git("status", "--porcelain") == ""
    assert sandbox.context().tree().problems == ()
    assert "Reason: dec-a was made twice" in sandbox.git("log", "-1", "--format=%B")


def test_several_ids_made_twice_are_named_together(sandbox: Sandbox):
    """They are told from two memories that are both to hold, which the reason is missing."""
    twice(sandbox)
    path = sandbox.memory("dec-c", "Third.\n")
    sandbox.write(".memory/other/dec-c.md", (sandbox.path / path).read_text())
    sandbox.memory("dec-d")
    with pytest.raises(MemtoolError, match="the reason is missing"):
        resolve(sandbox.context(), "dec-a", "dec-d", keep="both")
    done = resolve(sandbox.context(), "dec-a", "dec-c", keep="both").resolved
    assert [settled.ids[0] for settled in done] == ["dec-a", "dec-c"]


def test_an_id_made_twice_in_a_merge_is_told_from_a_conflict(merging: Sandbox):
    """Of memories that are named together, each must be in the merge."""
    with pytest.raises(MemtoolError, match="the reason is missing"):
        resolve(merging.context(), "dec-same", "dec-a", keep="both")
    path = ".memory/decision/2026-02/dec-same.md"
    (settled,) = resolve(merging.context(), "dec-same", path, keep="both").resolved
    assert settled.ids[0] == "dec-same"


@pytest.mark.parametrize("is_committed", [True, False])
def test_a_file_that_cannot_go_keeps_its_id(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch, *, is_committed: bool
):
    """Where the disk or a hook refuses, no second copy is left, and nothing was changed."""
    twice(sandbox)
    if is_committed:
        sandbox.commit()
    before = sandbox.git("status", "--porcelain", "-uall")

    real = files.remove

    def stays(root: str, path: str) -> None:
        if "/other/" in path:
            raise MemtoolError("it cannot be removed", code="disk")
        real(root, path)

    with monkeypatch.context() as patch:
        patch.setattr(files, "remove", stays)
        patch.setattr(commits, "remove", stays)
        with pytest.raises(MemtoolError, match="it cannot be removed"):
            resolve(sandbox.context(), "dec-a", keep="both")
    assert sandbox.git("status", "--porcelain", "-uall") == before
    if is_committed:
        sandbox.write(".git/hooks/pre-commit", "#!/bin/sh\necho no; exit 1\n").chmod(0o755)
        with pytest.raises(MemtoolError, match="nothing was removed: no"):
            resolve(sandbox.context(), "dec-a", keep="both", commit=True)
        assert sandbox.git("status", "--porcelain", "-uall") == before


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("", "## Rationale\n\nwhy\n"),
        ("Text.\n", "Text.\n\n## Rationale\n\nwhy\n"),
        ("Text.\n\n\n", "Text.\n\n## Rationale\n\nwhy\n"),
        ("## Rationale\n", "## Rationale\n\nwhy\n"),
        ("T.\n\n## Rationale\n\nold\n", "T.\n\n## Rationale\n\nold\n\nwhy\n"),
        ("## rationale\n\nold\n\n## Next\n\nx\n", "## rationale\n\nold\n\nwhy\n\n## Next\n\nx\n"),
        ("## Rationale\n\n## Next\n", "## Rationale\n\nwhy\n\n## Next\n"),
        ("T.\n\n## Rationale\n\nwhy\n", "T.\n\n## Rationale\n\nwhy\n"),
        ("```\n## Rationale\n```\n", "```\n## Rationale\n```\n\n## Rationale\n\nwhy\n"),
    ],
)
def test_the_reason_stands_under_rationale(body: str, expected: str):
    """In the section that is there, or in a new one at the end, and only once."""
    assert with_reason(body, "why") == expected
    assert with_reason(expected, "why") == expected


def test_the_newest_is_the_one_written_last():
    """Moments are compared, not their texts; then the id decides."""
    early = make_memory("dec-b", timestamp="2026-02-22T19:33:00Z")
    late = make_memory("dec-a", timestamp="2026-02-22T18:34:00-01:00")
    assert find_newest([early, late]).id == "dec-a"
    assert find_newest([early, make_memory("dec-a")]).id == "dec-b"
