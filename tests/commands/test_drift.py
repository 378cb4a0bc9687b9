from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest
from conftest import PIPED, Sandbox

from memtool.commands.archive import confirm, pin
from memtool.commands.check import check
from memtool.commands.drift import drift, render
from memtool.commands.inject import inject
from memtool.commands.review import render as render_review
from memtool.commands.review import review
from memtool.commands.search import search
from memtool.commands.show import render as render_show
from memtool.commands.show import show
from memtool.commands.stats import render as render_stats
from memtool.commands.stats import stats
from memtool.commands.status import status
from memtool.errors import MemtoolError
from memtool.memory import drift as rules
from memtool.memory.trust import SHORT_ID_DIGITS
from memtool.store import bases
from memtool.store.commit_files import CommitFiles
from memtool.store.state import State, close_shared

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
    report = drift(sandbox.context(), *ids, all=all)
    return {row.id: row.drift.level for row in report.memories}


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
    report = drift(code.context(), all=True)
    assert (report.checked, report.memories, report.exit_code) == (4, (), 0)


def test_what_is_gone_breaks_a_memory_and_a_rename_does_not(code: Sandbox) -> None:
    """A file, a name and cited lines that are gone break; a renamed file is followed."""
    broken(code)
    report = drift(code.context(), all=True)
    assert {
        row.id: (row.drift.level, *(file.why for file in row.drift.files))
        for row in report.memories
    } == {
        "dec-gone": ("broken", "gone"),
        "dec-lines": ("broken", "lines"),
        "dec-name": ("broken", "name"),
        "dec-moved": ("touched", ""),
    }
    assert report.exit_code == 1
    text = render(report, PIPED)
    assert "  fetch_pages is no longer in src/pages.py" in text
    assert "  lines 10 to 12 of src/lines.py have changed" in text
    assert re.search(r"Touched \(1\):\n  dec-moved  .+  renamed\.py [02] %\n", text)
    text = render(drift(code.context(), "dec-moved"), PIPED)
    assert re.search(r"  [02] % of src/renamed\.py has changed \(was src/moved\.py\)", text)


def test_an_edit_is_no_flag_and_half_a_file_is_a_change(code: Sandbox) -> None:
    """That a file was touched says little, so it is shown with --all alone."""
    code.write("src/pages.py", PAGES + "# more\n")
    code.write("src/lines.py", "new\n" + LINES)
    code.write("src/moved.py", "".join(LINES.splitlines(keepends=True)[:15]))
    code.commit("two")
    assert levels(code) == {"dec-moved": "changed", "dec-lines": "touched", "dec-name": "touched"}
    assert levels(code, all=False) == {"dec-moved": "changed"}
    assert drift(code.context()).exit_code == 0


def test_the_name_of_a_file_need_not_stand_in_it(sandbox: Sandbox) -> None:
    """A text that names PageReader.ts does not speak of a class of that name, unless it does."""
    sandbox.write("src/PageReader.ts", "// PageReader.ts\nexport class PageReader {}\n")
    sandbox.memory("dec-file", "See PageReader.ts for it.\n", files=("src/PageReader.ts",))
    sandbox.memory("dec-class", "PageReader is in PageReader.ts.\n", files=("src/PageReader.ts",))
    sandbox.commit("one")
    sandbox.write("src/PageReader.ts", "// read\nexport class Reader {}\nexport const x = 1\n")
    sandbox.commit("two")
    assert levels(sandbox) == {"dec-file": "changed", "dec-class": "broken"}


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
    sandbox.git("rm", "-q", "src/b.py")
    sandbox.commit("four")
    assert levels(sandbox) == {"dec-folder": "broken", "dec-glob": "broken"}


def test_check_follows_the_renames_that_drift_follows(sandbox: Sandbox) -> None:
    """A file that was renamed is not missing, but told once; one that is gone is, for both."""
    sandbox.write("src/kept.py", LINES)
    sandbox.write("src/gone.py", "x = 1\n")
    sandbox.memory("dec-kept", source=("file:src/kept.py",), files=("src/kept.py",))
    sandbox.memory("dec-gone", files=("src/gone.py",))
    sandbox.commit("one")
    sandbox.git("mv", "src/kept.py", "src/renamed.py")
    sandbox.git("rm", "-q", "src/gone.py")
    problems = check(sandbox.context()).problems
    assert [(problem.id, problem.code) for problem in problems] == [("dec-gone", "no-such-file")]
    sandbox.commit("two")
    problems = check(sandbox.context()).problems
    assert [(problem.id, problem.code) for problem in problems] == [
        ("dec-gone", "no-such-file"),
        ("dec-kept", "renamed-file"),
    ]
    assert levels(sandbox) == {"dec-gone": "broken", "dec-kept": "touched"}


def test_a_line_that_moved_to_another_named_file_is_no_change(sandbox: Sandbox) -> None:
    """Names are looked for in all files of a memory."""
    sandbox.write("src/a.py", LINES + "limit = max_seats\n")
    sandbox.write("src/b.py", LINES)
    sandbox.memory("dec-two", "It is max_seats.\n", files=("src/a.py", "src/b.py"))
    sandbox.commit("one")
    sandbox.write("src/a.py", LINES)
    sandbox.write("src/b.py", LINES + "limit = max_seats\n")
    sandbox.commit("two")
    assert levels(sandbox) == {"dec-two": "touched"}


def test_a_reason_says_what_share_of_what(sandbox: Sandbox) -> None:
    """One line of three is not the whole file, even if it alone has a name of the memory."""
    sandbox.write("src/a.py", "one\nlimit = max_seats\nthree\n")
    sandbox.memory("dec-one", "It is max_seats.\n", files=("src/a.py",))
    sandbox.commit("one")
    sandbox.write("src/a.py", "one\nlimit = max_seats + 1\nthree\n")
    sandbox.commit("two")
    (row,) = drift(sandbox.context()).memories
    assert row.drift.files[0].share == 0.33
    only = "of src/a.py, the only line with a name from this memory changed"
    assert rules.summarize(row.drift) == only
    assert levels(sandbox) == {"dec-one": "changed"}


def test_many_cited_places_are_unknown_and_cost_no_time(sandbox: Sandbox) -> None:
    """A memory that cites a file a thousand times is not searched for a thousand times."""
    sandbox.write("src/a.py", "x\n" * 1000)
    cited = " ".join(f"src/a.py:{at}-{at + 500}" for at in range(1, 301))
    sandbox.memory("dec-many", f"{cited}\n", files=("src/a.py",))
    sandbox.commit("one")
    sandbox.write("src/a.py", "y\n" + "x\n" * 900)
    sandbox.commit("two")
    (row,) = drift(sandbox.context(), all=True).memories
    assert row.drift.level == "unknown"
    assert "more than 100 places of it are cited" in render(
        drift(sandbox.context(), all=True), PIPED
    )


def test_of_a_large_folder_only_its_end_is_seen(sandbox: Sandbox) -> None:
    """A change of one of many files does not say which is meant, so no change is flagged."""
    for number in range(60):
        sandbox.write(f"src/{number:02}.py", LINES)
    sandbox.memory("dec-all", files=("src/",))
    sandbox.memory("dec-glob", files=("src/*.py",))
    sandbox.commit("one")
    for number in range(60):
        sandbox.write(f"src/{number:02}.py", "other\n")
    sandbox.commit("two")
    assert levels(sandbox) == {}


@pytest.mark.slow
def test_a_glob_may_match_fifty_thousand_files(sandbox: Sandbox) -> None:
    """They are listed once, and none of them is opened."""
    rows = [f"M 100644 :1 src/d{n % 200}/{n}.py" for n in range(50_000)]
    head = "blob\nmark :1\ndata 2\nx\n\ncommit refs/heads/many\ncommitter A <a@b.c> 0 +0000\n"
    stream = f"{head}data 0\n" + "\n".join(rows) + "\n"
    subprocess.run(
        ["git", "fast-import", "--quiet"],
        cwd=sandbox.path,
        env=sandbox.env,
        input=stream.encode(),
        check=True,
    )
    sandbox.git("checkout", "--quiet", "many")
    sandbox.memory("dec-all", files=("src/**",))
    sandbox.memory("dec-one", files=("src/d7/7.py",))
    sandbox.commit("one")
    sandbox.git("rm", "-q", "src/d7/7.py")
    sandbox.commit("two")
    assert levels(sandbox) == {"dec-one": "broken"}  # others of its bytes were there before
    sandbox.git("rm", "-q", "-r", "src")
    sandbox.commit("three")
    assert levels(sandbox) == {"dec-all": "broken", "dec-one": "broken"}


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
        "dec-absent": "touched",  # since the commit that brought the memory
        "dec-bytes": "unknown",
        "dec-large": "unknown",
        "dec-file": "broken",
        "dec-beyond": "touched",
    }


def test_it_is_the_same_with_and_without_rows(code: Sandbox) -> None:
    """Rows that a commit did not touch are taken over; the answer is that of a first look."""
    levels(code)  # the rows of the first commit
    broken(code)
    cached = drift(code.context(), all=True)
    again = drift(code.context(), all=True)
    bare = drift(code.context(MEMTOOL_NO_CACHE="1"), all=True)
    assert cached == again == bare
    code.git("mv", "src/renamed.py", "src/elsewhere.py")
    code.write("src/gone.py", "x = 1\n")
    code.commit("three")
    assert drift(code.context(), all=True) == drift(code.context(MEMTOOL_NO_CACHE="1"), all=True)
    assert levels(code) == {"dec-lines": "broken", "dec-name": "broken", "dec-moved": "touched"}


def test_rows_of_many_commits_say_what_a_first_look_does(
    code: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files and memories come, go and come back; a few rows are asked for on the way."""
    monkeypatch.setattr("memtool.search.drift.MAX_JUDGED_AT_ONCE", 0)
    levels(code)
    (memory,) = (str(p.relative_to(code.path)) for p in code.path.rglob("dec-name.md"))
    before = (code.path / memory).read_text()
    steps: list[tuple[str, str | None]] = [
        ("src/pages.py", PAGES.replace("fetch_pages", "get_pages")),
        (memory, before.replace("fetch_pages", "get_pages")),
        ("src/gone.py", None),
        (memory, before),
        ("src/gone.py", "x = 1\n"),
        ("src/pages.py", PAGES),
        ("docs/else.md", "nothing\n"),
    ]
    for number, (path, text) in enumerate(steps):
        if text is None:
            code.git("rm", "-q", path)
        else:
            code.write(path, text)
        code.commit(f"step {number}")
        show(code.context(), ("dec-gone", "dec-name")[number % 2])  # only one row
        if number % 3 == 2:
            cached, bare = code.context(), code.context(MEMTOOL_NO_CACHE="1")
            assert drift(cached, all=True) == drift(bare, all=True)
    assert drift(code.context(), all=True) == drift(code.context(MEMTOOL_NO_CACHE="1"), all=True)
    assert status(code.context()).drifted == status(code.context(MEMTOOL_NO_CACHE="1")).drifted


def test_a_search_after_a_commit_looks_at_it_once(
    code: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a large tree only what may be shown is looked at: one list of files, and one writing."""
    monkeypatch.setattr("memtool.search.drift.MAX_JUDGED_AT_ONCE", 0)
    drift(code.context())
    broken(code)
    done = []
    listed, written = CommitFiles.__init__, bases.write

    def listing(self: CommitFiles, *args: object, **options: object) -> None:
        done.append("listed")
        listed(self, *args, **options)  # type: ignore[arg-type]

    def writing(cache_dir: str, table: str, *args: object) -> None:
        done.extend(["written"] * (table == bases.DRIFT))
        written(cache_dir, table, *args)  # type: ignore[arg-type]

    monkeypatch.setattr(CommitFiles, "__init__", listing)
    monkeypatch.setattr(bases, "write", writing)
    hits = search(code.context(), "title", limit=2).results
    assert done == ["listed", "written"]
    assert search(code.context(), "title", limit=2).results == hits
    assert done == ["listed", "written"]


def test_a_broken_memory_is_marked_and_ranked_a_little_lower(code: Sandbox) -> None:
    """Search, show, status, the block and is:drifted say what is gone, and since when."""
    first = code.git("rev-parse", "HEAD").strip()
    before = search(code.context(), "fetch_pages").results[0]
    broken(code)
    hit = search(code.context(), "fetch_pages").results[0]
    mark = (
        f"[DRIFTED] fetch_pages is no longer in src/pages.py (checked at {first[:SHORT_ID_DIGITS]})"
    )
    assert (before.drift, before.factors["drift"]) == ("", 1.0)
    assert (hit.drift, hit.factors["drift"]) == (mark, 0.85)
    block = inject(code.context(), prompt="do we call fetch_pages for each")
    warning = "DRIFTED: fetch_pages is no longer in src/pages.py; check the code first\n"
    assert warning in block.text
    assert (block.items[0].drift_level, block.items[0].drift) == ("broken", 0.25)
    assert sorted(hit.id for hit in search(code.context(), "is:drifted").results) == [
        "dec-gone",
        "dec-lines",
        "dec-name",
    ]
    assert show(code.context(), "dec-name").drift is not None
    assert status(code.context()).drifted == ("dec-gone", "dec-lines", "dec-name")


def test_a_block_holds_few_broken_memories_and_counts_the_rest(sandbox: Sandbox) -> None:
    """After a rewrite the places are for intact memories; pinned ones stay."""
    kinds = ("apples", "pears", "plums", "cherries", "quinces")
    for kind in kinds:
        sandbox.write(f"src/{kind}.py", "x = 1\n")
        body = f"The market sells {kind} in boxes, {kind[::-1]} on shelf {kind}ish.\n"
        sandbox.memory(f"dec-{kind}", body, title=f"Sell {kind}", files=(f"src/{kind}.py",))
    sandbox.memory("dec-figs", "Figs are green.\n", files=("src/apples.py",), status="pinned")
    sandbox.memory("dec-sound", "The market sells nuts in boxes by weight.\n", title="Sell nuts")
    sandbox.commit("one")
    question = "what does the market sell in boxes?"
    assert "DRIFTED" not in inject(sandbox.context(), prompt=question).text
    sandbox.git("rm", "-q", "-r", "src")
    sandbox.commit("two")
    block = inject(sandbox.context(), prompt=question, explain=True)
    drift_levels = {item.id: item.drift_level for item in block.items}
    assert list(drift_levels.values()).count("broken") == 3
    assert {"dec-sound", "dec-figs"} <= set(drift_levels)
    assert "3 more that answer are left out: the code that they name is gone" in block.text
    assert block.explain is not None
    assert sum("have drifted from the code" in verdict.reason for verdict in block.explain) == 3


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
    confirm(code.context(), "dec-gone", still_holds=True)
    confirm(code.context(), "dec-gone", still_holds=True, dry_run=True)
    confirm(code.context(), "dec-moved", still_holds=True)
    figures = stats(code.context(), all=True)
    assert figures.still_holds == {"gone": 1, "name": 1}
    assert "by rule: gone 1, name 1" in render_stats(figures, PIPED)


def test_what_looks_at_no_code_moves_nothing_forward(code: Sandbox) -> None:
    """A pin committed after the change does not confirm; an edited candidate is new."""
    code.memory("dec-draft", "We call fetch_pages.\n", files=("src/pages.py",), status="candidate")
    code.commit("a draft")
    broken(code)
    expected = {"dec-name": "broken", "dec-gone": "broken", "dec-draft": "broken"}
    assert levels(code, *expected) == expected
    pin(code.context(), "dec-name", commit=True)
    code.memory("dec-gone", "It is there.\n", files=("src/gone.py",), importance="0.9")
    code.memory("dec-draft", "We call get_pages.\n", files=("src/pages.py",), status="candidate")
    code.commit("three")
    expected["dec-draft"] = "same"
    assert levels(code, *expected) == expected
    report = drift(code.context(MEMTOOL_NO_CACHE="1"), all=True)
    assert report == drift(code.context(), all=True)
    confirm(code.context(), "dec-name", still_holds=True, commit=True)
    assert levels(code, "dec-name") == {"dec-name": "same"}


def test_confirm_records_what_was_looked_at(code: Sandbox) -> None:
    """A file that differs from HEAD is not what HEAD holds."""
    code.write("src/pages.py", PAGES + "# more\n")
    with pytest.raises(MemtoolError, match=r"src/pages\.py has uncommitted") as caught:
        confirm(code.context(), "dec-name")
    assert caught.value.code == "not-committed"
    confirm(code.context(), "dec-moved", dry_run=True)


def test_review_says_which_decision_a_change_breaks(code: Sandbox) -> None:
    """Decisions that were broken before are not counted."""
    first = code.git("rev-parse", "HEAD").strip()
    second = broken(code)
    code.write("src/pages.py", PAGES.replace("fetch_pages", "get_pages") + "# more\n")
    code.commit("three")
    rows = render_review(review(code.context(), f"{first}..HEAD"), code.layout())
    assert "\n    BREAKS IT: src/gone.py is no longer there" in rows
    later = render_review(review(code.context(), f"{second}..HEAD"), code.layout())
    assert "BREAKS IT" not in later


def test_damaged_rows_cost_time_alone(code: Sandbox) -> None:
    """They are made again."""
    broken(code)
    expected = levels(code)
    close_shared()
    (path,) = code.path.glob(".git/memtool/state/*.db")
    data = path.read_bytes()
    assert b"broken" in data
    path.write_bytes(data.replace(b"broken", b"braken"))
    assert levels(code) == expected
    close_shared()
    assert State.find_damaged_files(str(code.path / ".git/memtool/state")) == []


def test_a_worktree_begins_with_the_rows_of_another(code: Sandbox, tmp_path: Path) -> None:
    """And a commit there leaves these as they are."""
    expected = levels(code)
    code.git("worktree", "add", "-q", "-b", "side", str(tmp_path / "side"))
    side = Sandbox(tmp_path / "side", code.env)
    assert levels(side) == expected
    broken(side)
    assert drift(side.context(), all=True) == drift(side.context(MEMTOOL_NO_CACHE="1"), all=True)
    assert levels(side)["dec-name"] == "broken"
    assert levels(code) == expected


def test_there_must_be_a_commit(sandbox: Sandbox) -> None:
    """Without one there is nothing to compare with."""
    sandbox.memory("dec-a", files=("a.py",))
    with pytest.raises(MemtoolError, match="no commit yet"):
        drift(sandbox.context())


def test_since_compares_with_another_commit(code: Sandbox) -> None:
    """Changes before that commit are not reported, and the result is not cached."""
    first = code.git("rev-parse", "HEAD").strip()
    second = broken(code)
    assert drift(code.context(), since=second).broken == 0
    assert drift(code.context(), since=first).broken == drift(code.context()).broken == 3
    with pytest.raises(MemtoolError, match="no revision"):
        drift(code.context(), since="--output=x")


def test_submodules_and_links_are_unknown_only_where_they_changed(sandbox: Sandbox) -> None:
    """Nothing of them can be compared; one that is the same has not drifted."""
    for name in ("link", "turned"):
        os.symlink("a", sandbox.path / name)
    sandbox.write("a", "a\n")
    sandbox.write("plain", "a\n")
    oids = ("1" * 40, "2" * 40)
    for name in ("kept", "moved"):
        sandbox.git("update-index", "--add", "--cacheinfo", f"160000,{oids[0]},{name}")
    for name in ("link", "turned", "plain", "kept", "moved"):
        sandbox.memory(f"dec-{name}", files=(name,))
    sandbox.git("add", "link", "turned", "a", "plain", ".memory")
    sandbox.git("commit", "--quiet", "-m", "one")
    assert levels(sandbox) == {}
    for name, target in (("turned", "plain"), ("plain", "a")):
        (sandbox.path / name).unlink()
        os.symlink(target, sandbox.path / name)
    sandbox.git("update-index", "--cacheinfo", f"160000,{oids[1]},moved")
    sandbox.git("add", "turned", "plain")
    sandbox.git("commit", "--quiet", "-m", "two")
    report = drift(sandbox.context(), all=True)
    assert {row.id: rules.summarize(row.drift) for row in report.memories} == {
        "dec-moved": "moved: it is a link or a submodule",
        "dec-plain": "plain: it is a link or a submodule",
        "dec-turned": "turned: it is a link or a submodule",
    }


def cloned(sandbox: Sandbox, *options: str) -> Sandbox:
    place = sandbox.path.parent / "clone"
    sandbox.git("clone", "--quiet", *options, f"file://{sandbox.path}", str(place))
    return Sandbox(Path(place), sandbox.env)


def test_a_shallow_clone_knows_not_and_says_so(code: Sandbox) -> None:
    """It ends after the commits at which the memories were checked."""
    broken(code)
    report = drift(cloned(code, "--depth=1").context(), all=True)
    reasons = {rules.summarize(row.drift).partition(": ")[2] for row in report.memories}
    assert (report.broken, report.unknown) == (0, 4)
    assert reasons == {"this clone ends before the commit that wrote it"}


@pytest.mark.parametrize("without", ["blob:none", "tree:0"])
def test_a_partial_clone_fetches_nothing(code: Sandbox, without: str) -> None:
    """Missing objects are not taken for files that never existed."""
    code.git("config", "uploadpack.allowFilter", "true")
    broken(code)
    clone = cloned(code, f"--filter={without}")
    code.path.rename(code.path.parent / "unreachable")
    drift_levels = {row.id: row.drift.level for row in drift(clone.context(), all=True).memories}
    assert set(drift_levels.values()) == {"unknown"}
    assert {drift_levels[f"dec-{name}"] for name in ("gone", "lines", "name")} == {"unknown"}
    assert show(clone.context(), "dec-name").drift is not None


def test_merges_that_cross_do_not_matter(code: Sandbox) -> None:
    """No history is walked, so two merge bases give the verdict that a table gives."""
    code.git("branch", "other")
    code.write("src/pages.py", PAGES + "# here\n")
    commit = code.commit("here")
    code.git("checkout", "--quiet", "other")
    code.write("src/lines.py", LINES + "there\n")
    code.commit("there")
    code.git("merge", "--quiet", "--no-edit", commit)
    code.git("checkout", "--quiet", "main")
    code.git("merge", "--quiet", "--no-edit", "other^1")
    levels(code)
    broken(code)
    code.git("checkout", "--quiet", "other")
    code.write("more", "x\n")
    code.commit("more")
    code.git("merge", "--quiet", "--no-edit", "main")
    assert len(code.git("merge-base", "--all", "HEAD^1", "HEAD^2~1").split()) >= 1
    report = drift(code.context(), all=True)
    assert report == drift(code.context(MEMTOOL_NO_CACHE="1"), all=True)
    assert report.broken == 3


def test_clocks_in_the_future_do_not_matter(sandbox: Sandbox) -> None:
    """Commits count, and not their dates: neither that of a check nor those of git."""
    sandbox.write("a.py", "def fetch_pages(): ...\n")
    first = sandbox.commit("one")
    checked = {"at": "2099-01-01T00:00:00Z", "by": "x", "commit": first}
    sandbox.memory("dec-a", "It calls fetch_pages.\n", files=("a.py",), checked=checked)
    sandbox.commit("two")
    sandbox.write("a.py", "def get_pages(): ...\n")
    sandbox.git("add", "a.py")
    future = sandbox.env | {"GIT_COMMITTER_DATE": "2098-01-01T00:00:00Z"}
    command = ["git", "commit", "--quiet", "-m", "rename it"]
    subprocess.run(command, cwd=sandbox.path, env=future, check=True)
    sandbox.write("a.py", "def get_pages(): ...\n# more\n")
    sandbox.commit("more")
    (row,) = drift(sandbox.context()).memories
    assert [(commit.subject, commit.broke) for commit in row.drift.files[0].commits] == [
        ("more", False),
        ("rename it", True),
    ]


def test_the_commit_that_broke_it_is_named(code: Sandbox) -> None:
    """For a name, cited lines and a file; show names the last three of each file as well."""
    broken(code)
    for number in range(4):
        code.write("src/pages.py", PAGES.replace("fetch_pages", "get_pages") + f"# {number}\n")
        code.commit(f"more {number}")
    rows = {row.id: row.drift.files[0].commits for row in drift(code.context()).memories}
    causes = {
        id_: [commit.subject for commit in commits if commit.broke] for id_, commits in rows.items()
    }
    assert causes == {"dec-gone": ["two"], "dec-lines": ["two"], "dec-name": ["two"]}
    shown = show(code.context(), "dec-name")
    assert shown.drift is not None
    assert [commit.subject for commit in shown.drift.files[0].commits] == [
        "more 3",
        "more 2",
        "more 1",
        "two",
    ]
    assert "two, which broke it" in render_show(shown, code.layout())
    assert "  more" not in render(drift(code.context(), "dec-none"), PIPED)


def test_a_secret_in_the_subject_of_a_commit_is_masked(code: Sandbox) -> None:
    """Commit subjects are masked like memories."""
    token = "ghp_" + "a1B2c3D4e5" * 3 + "F6g7H8"
    code.git("rm", "-q", "src/gone.py")
    code.commit(f"remove {token}")
    text = render(drift(code.context(), "dec-gone"), PIPED)
    assert "which broke it" in text
    assert token not in render(drift(code.context()), PIPED)
    assert token not in text


def test_cited_lines_that_moved_are_followed(code: Sandbox) -> None:
    """If the same lines occur twice, the nearest place counts."""
    code.write("src/lines.py", "new\n" + LINES + LINES)
    code.commit("two")
    (row,) = drift(code.context(), "dec-lines").memories
    (file,) = row.drift.files
    assert (file.level, file.lines, file.lines_now) == ("touched", (10, 12), (11, 13))
    assert "  lines 10 to 12 are lines 11 to 13 of src/lines.py" in render(
        drift(code.context(), "dec-lines"), PIPED
    )


def test_the_worktree_can_be_looked_at(code: Sandbox) -> None:
    """Files that are not committed count there alone, and nothing of it is kept."""
    levels(code)
    code.write("src/pages.py", PAGES.replace("fetch_pages", "get_pages"))
    (code.path / "src/gone.py").unlink()
    (code.path / "src/lines.py").unlink()
    os.symlink("pages.py", code.path / "src/lines.py")
    (code.path / "src/moved.py").rename(code.path / "src/renamed.py")
    report = drift(code.context(), all=True, worktree=True)
    assert {row.id: row.drift.level for row in report.memories} == {
        "dec-gone": "broken",
        "dec-name": "broken",
        "dec-lines": "unknown",
        "dec-moved": "touched",
    }
    assert levels(code) == {}
    with pytest.raises(MemtoolError, match="exclude each other"):
        drift(code.context(), worktree=True, at="HEAD")
