from __future__ import annotations

import pytest
from conftest import Sandbox

from memtool.commands.archive import confirm
from memtool.commands.drift import drift, render
from memtool.commands.inject import inject
from memtool.commands.review import render as render_review
from memtool.commands.review import review
from memtool.commands.search import search
from memtool.commands.show import show
from memtool.commands.status import status
from memtool.errors import MemtoolError

PAGES = "def fetch_pages():\n    return 1\n\n\ndef other():\n    return 2\n"
LINES = "".join(f"line {number}\n" for number in range(1, 41))


@pytest.fixture
def code(sandbox: Sandbox) -> Sandbox:
    """Five memories about four files, in one commit."""
    sandbox.write("src/pages.py", PAGES)
    sandbox.write("src/moved.py", LINES)
    sandbox.write("src/lines.py", LINES)
    sandbox.write("src/gone.py", "x = 1\n")
    sandbox.memory("dec-gone", "It is there.\n", files=("src/gone.py",))
    sandbox.memory("dec-lines", "Ten to twelve.\n", source=("file:src/lines.py#L10-L12",))
    sandbox.memory("dec-moved", "All of it.\n", files=("src/moved.py",))
    sandbox.memory("dec-name", "We call fetch_pages for each.\n", files=("src/pages.py",))
    sandbox.memory("dec-none", "It names no file.\n")
    sandbox.commit("one")
    return sandbox


def levels(sandbox: Sandbox, *ids: str, all: bool = True) -> dict[str, str]:
    found = drift(sandbox.context(), *ids, all=all)
    return {row.id: row.drift.level for row in found.memories}


def broken(code: Sandbox) -> str:
    """Take away a name, cited lines and a file; rename another. Return the commit."""
    code.write("src/pages.py", PAGES.replace("fetch_pages", "get_pages"))
    code.write("src/lines.py", LINES.replace("line 11\n", "line 11 and more\n"))
    code.git("rm", "-q", "src/gone.py")
    code.git("mv", "src/moved.py", "src/renamed.py")
    code.write("src/renamed.py", LINES + "one more\n")
    return code.commit("two")


def test_nothing_drifts_where_nothing_changed(code: Sandbox) -> None:
    """Memories that name files are looked at, the others are not."""
    found = drift(code.context(), all=True)
    assert (found.checked, found.memories, found.exit_code) == (4, (), 0)


def test_what_is_gone_breaks_a_memory_and_a_rename_does_not(code: Sandbox) -> None:
    """A file, a name and cited lines that are gone break; a renamed file is followed."""
    broken(code)
    found = drift(code.context(), all=True)
    assert {row.id: (row.drift.level, *(one.why for one in row.drift.files))
            for row in found.memories} == {
        "dec-gone": ("broken", "gone"),
        "dec-lines": ("broken", "lines"),
        "dec-name": ("broken", "name"),
        "dec-moved": ("touched", ""),
    }  # fmt: skip
    assert found.exit_code == 1
    text = render(found)
    assert "  fetch_pages is no longer in src/pages.py" in text
    assert "  lines 10 to 12 of src/lines.py have changed" in text
    assert "  2 % of src/renamed.py has changed (was src/moved.py)" in text or (
        "  0 % of src/renamed.py has changed (was src/moved.py)" in text
    )


def test_an_edit_is_no_flag_and_half_a_file_is_a_change(code: Sandbox) -> None:
    """That a file was touched says little, so it is shown with --all alone."""
    code.write("src/pages.py", PAGES + "# more\n")
    code.write("src/lines.py", "new\n" + LINES)
    code.write("src/moved.py", "".join(LINES.splitlines(keepends=True)[:15]))
    code.commit("two")
    assert levels(code) == {"dec-moved": "changed", "dec-lines": "touched", "dec-name": "touched"}
    assert levels(code, all=False) == {"dec-moved": "changed"}
    assert drift(code.context()).exit_code == 0


def test_a_folder_and_a_glob_break_with_their_last_file(sandbox: Sandbox) -> None:
    """One file of a set that goes breaks nothing."""
    for path in ("src/a.py", "src/b.py", "docs/a.md"):
        sandbox.write(path, path)
    sandbox.memory("dec-folder", files=("docs/",))
    sandbox.memory("dec-glob", files=("src/*.py",))
    sandbox.commit("one")
    sandbox.git("rm", "-q", "src/a.py")
    sandbox.commit("two")
    assert levels(sandbox) == {}
    sandbox.git("rm", "-q", "-r", "docs")
    sandbox.commit("three")
    assert levels(sandbox) == {"dec-folder": "broken"}


def test_what_cannot_be_told_is_no_flag(sandbox: Sandbox) -> None:
    """Links, binary files, large ones, commits that are not here, files that became folders."""
    sandbox.write("bytes", b"\0\1")
    sandbox.write("large", "x\n" * 600_000)
    sandbox.write("file", "x = 1\n")
    sandbox.write("a", "a\n")
    sandbox.memory("dec-bytes", files=("bytes",))
    sandbox.memory("dec-large", files=("large",))
    sandbox.memory("dec-file", files=("file",))
    checked = {"at": "2026-01-01T00:00:00Z", "by": "x", "commit": "f" * 40}
    sandbox.memory("dec-absent", files=("a",), checked=checked)
    sandbox.memory("dec-never", files=("no/such.py",))
    sandbox.memory("dec-beyond", source=("file:a#L90-L99",))
    sandbox.commit("one")
    sandbox.write("bytes", b"\0\2")
    sandbox.write("large", "y\n" * 600_000)
    sandbox.write("a", "a\nb\n")
    sandbox.git("rm", "-q", "file")
    sandbox.write("file/below", "x\n")
    sandbox.commit("two")
    assert levels(sandbox) == {
        "dec-absent": "unknown",
        "dec-bytes": "unknown",
        "dec-large": "unknown",
        "dec-file": "broken",
        "dec-beyond": "touched",
    }


def test_it_is_the_same_with_and_without_the_table(code: Sandbox) -> None:
    """Rows that a commit did not touch are taken over; the answer is that of a first look."""
    levels(code)  # the table of the first commit
    broken(code)
    kept = drift(code.context(), all=True)
    again = drift(code.context(), all=True)
    bare = drift(code.context(MEMTOOL_NO_CACHE="1"), all=True)
    assert kept == again == bare
    code.git("mv", "src/renamed.py", "src/elsewhere.py")
    code.write("src/gone.py", "x = 1\n")
    code.commit("three")
    assert drift(code.context(), all=True) == drift(code.context(MEMTOOL_NO_CACHE="1"), all=True)
    assert levels(code) == {"dec-lines": "broken", "dec-name": "broken", "dec-moved": "touched"}


def test_a_broken_memory_is_marked_and_ranked_a_little_lower(code: Sandbox) -> None:
    """Search, show, status, the block and is:drifted say what is gone, and since when."""
    first = code.git("rev-parse", "HEAD").strip()
    before = search(code.context(), "fetch_pages").results[0]
    broken(code)
    found = search(code.context(), "fetch_pages").results[0]
    mark = f"[DRIFTED] fetch_pages is no longer in src/pages.py (checked at {first[:10]})"
    assert (before.drift, before.factors["drift"]) == ("", 1.0)
    assert (found.drift, found.factors["drift"]) == (mark, 0.85)
    block = inject(code.context(), prompt="do we call fetch_pages for each")
    assert mark in block.text
    assert (block.items[0].drift_level, block.items[0].drift) == ("broken", 0.25)
    assert sorted(hit.id for hit in search(code.context(), "is:drifted").results) == [
        "dec-gone", "dec-lines", "dec-name",
    ]  # fmt: skip
    assert show(code.context(), "dec-name").drift is not None
    assert status(code.context()).drifted == ("dec-gone", "dec-lines", "dec-name")


def test_confirm_wants_a_word_for_what_is_broken(code: Sandbox) -> None:
    """It is refused, then told and recorded; from there on it has not drifted."""
    broken(code)
    with pytest.raises(MemtoolError, match="fetch_pages is no longer in") as caught:
        confirm(code.context(), "dec-name")
    assert caught.value.code == "drifted"
    context = code.context()
    confirm(context, "dec-name", still_holds=True, commit=True)
    assert any("fetch_pages is no longer in" in note for note in context.notes)
    assert levels(code, "dec-name") == {"dec-name": "same"}


def test_confirm_records_what_was_looked_at(code: Sandbox) -> None:
    """A file that differs from HEAD is not what HEAD holds."""
    code.write("src/pages.py", PAGES + "# more\n")
    with pytest.raises(MemtoolError, match=r"src/pages\.py differs from HEAD") as caught:
        confirm(code.context(), "dec-name")
    assert caught.value.code == "not-committed"
    confirm(code.context(), "dec-moved", dry_run=True)


def test_review_says_which_decision_a_change_breaks(code: Sandbox) -> None:
    """What was broken before the change is not its doing."""
    first = code.git("rev-parse", "HEAD").strip()
    second = broken(code)
    code.write("src/pages.py", PAGES.replace("fetch_pages", "get_pages") + "# more\n")
    code.commit("three")
    rows = render_review(review(code.context(), f"{first}..HEAD"))
    assert "  BREAKS IT: src/gone.py is no longer there" in rows
    assert "BREAKS IT" not in render_review(review(code.context(), f"{second}..HEAD"))


def test_a_damaged_table_costs_time_alone(code: Sandbox) -> None:
    """It is made again."""
    broken(code)
    expected = levels(code)
    folder = code.path / ".git/memtool/drift"
    for file in folder.iterdir():
        raw = bytearray(file.read_bytes())
        raw[-20:] = b"#" * 20
        file.write_bytes(bytes(raw))
    assert levels(code) == expected


def test_there_must_be_a_commit(sandbox: Sandbox) -> None:
    """Without one there is nothing to compare with."""
    sandbox.memory("dec-a", files=("a.py",))
    with pytest.raises(MemtoolError, match="no commit yet"):
        drift(sandbox.context())


def test_since_compares_with_another_commit(code: Sandbox) -> None:
    """What a change took away before that commit is not told, and nothing of it is kept."""
    first = code.git("rev-parse", "HEAD").strip()
    second = broken(code)
    assert drift(code.context(), since=second).broken == 0
    assert drift(code.context(), since=first).broken == drift(code.context()).broken == 3
    with pytest.raises(MemtoolError, match="no revision"):
        drift(code.context(), since="--output=x")
