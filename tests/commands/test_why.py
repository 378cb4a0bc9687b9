from __future__ import annotations

import os
from pathlib import Path

import pytest
from conftest import PIPED, Sandbox

from memtool.commands.why import MAX_DEPTH, Ground, render, why
from memtool.errors import MemtoolError
from memtool.store.context import Context


def grounds(sandbox: Sandbox, *source: str, at: str | None = None) -> dict[str, Ground]:
    """The grounds of a memory with these sources, by source."""
    sandbox.memory("dec-why", source=source)
    if at:
        sandbox.commit("memory", ".memory")
    return {ground.source: ground for ground in why(sandbox.context(), "dec-why", at=at).sources}


def test_a_commit_is_told_with_subject_author_and_date(sandbox: Sandbox) -> None:
    """A shortened id finds its commit; one that is not here is missing."""
    sandbox.write("code.py", "1\n")
    id_ = sandbox.commit("code: add one")
    by_source = grounds(sandbox, f"commit:{id_[:8]}", "commit:deadbeef", "commit:" + "0" * 64)
    assert by_source[f"commit:{id_[:8]}"] == Ground(
        f"commit:{id_[:8]}", "commit", "ok", "code: add one", id_, "Ada", "2026-02-01T03:00:00Z"
    )
    missing = by_source["commit:deadbeef"]
    assert (missing.status, missing.detail) == (
        "missing",
        "commit deadbeef is not in this clone",
    )
    assert by_source["commit:" + "0" * 64].status == "missing"


def test_only_commits_are_commits(sandbox: Sandbox) -> None:
    """Trees, blobs and branches with hexadecimal names are not taken for the commit."""
    sandbox.write("code.py", "1\n")
    sandbox.commit()
    tree = sandbox.git("rev-parse", "HEAD^{tree}").strip()
    sandbox.git("branch", "cafe")
    by_source = grounds(sandbox, f"commit:{tree}", "commit:cafe")
    assert {ground.status for ground in by_source.values()} == {"missing"}


def test_lines_of_a_file_are_quoted_with_their_last_commit(sandbox: Sandbox) -> None:
    """The first line with a word is shown; lines beyond the end are missing."""
    sandbox.write("code.py", "one\n---\ntwo\n")
    first = sandbox.commit("one")
    sandbox.write("code.py", "ONE\n---\ntwo\n")
    second = sandbox.commit("two")
    by_source = grounds(sandbox, "file:code.py#L2-L3", "file:code.py", "file:code.py#L9")
    part = by_source["file:code.py#L2-L3"]
    assert (part.status, part.detail, part.commit) == ("ok", '"two"', first)
    assert by_source["file:code.py"].commit == second
    assert by_source["file:code.py#L9"].detail == "code.py has only 3 lines"
    assert by_source["file:code.py#L9"].status == "missing"


def test_a_file_at_a_commit_is_read_there(sandbox: Sandbox) -> None:
    """`@SHA` asks the commit, whatever the worktree holds."""
    sandbox.write("code.py", "one\n")
    first = sandbox.commit("one")
    (sandbox.path / "code.py").unlink()
    sandbox.commit("two")
    named = f"file:code.py#L1@{first[:10]}"
    by_source = grounds(sandbox, named, "file:code.py", "file:code.py@deadbeef", f"file:no@{first}")
    assert (by_source[named].status, by_source[named].detail, by_source[named].commit) == (
        "ok",
        '"one"',
        first,
    )
    assert by_source["file:code.py"].detail == "code.py is not there"
    assert by_source["file:code.py@deadbeef"].detail == "commit deadbeef is not in this clone"
    assert by_source[f"file:no@{first}"].detail == f"no is not there at {first[:7]}"


def test_changes_of_the_worktree_are_said(sandbox: Sandbox) -> None:
    """Lines that differ from HEAD have no commit; removed files are gone; --at asks HEAD."""
    for name in ("a.py", "b.py", "c.py"):
        sandbox.write(name, "one\ntwo\n")
    id_ = sandbox.commit()
    sandbox.write("a.py", "one\nTWO\n")
    (sandbox.path / "b.py").unlink()
    sandbox.write("c.py", "one\r\ntwo\r\n")
    sources = ("file:a.py#L2", "file:b.py", "file:c.py#L2")
    by_source = grounds(sandbox, *sources)
    assert by_source["file:a.py#L2"].detail == '"TWO" (changed and not committed)'
    assert by_source["file:b.py"].detail == "b.py is gone from the worktree"
    assert by_source["file:c.py#L2"].commit == id_
    at_head = grounds(sandbox, *sources, at="HEAD")
    assert {(ground.status, ground.commit) for ground in at_head.values()} == {("ok", id_)}


def test_what_git_does_not_track_is_never_quoted(sandbox: Sandbox, tmp_path: Path) -> None:
    """A memory cannot make memtool show secrets: no untracked files, links or git's own files."""
    (tmp_path / "secret").write_text("hunter2\n")
    sandbox.write(".env", "TOKEN=hunter2\n")
    (sandbox.path / "link").symlink_to(tmp_path / "secret")
    (sandbox.path / "linked").symlink_to(tmp_path)
    sandbox.git("config", "remote.origin.url", "https://hunter2@example.org")
    sandbox.git("add", "link", "linked")
    sandbox.git("commit", "-qm", "links")
    os.mkfifo(sandbox.path / "pipe")
    sources = [
        f"file:{path}#L1" for path in (".env", "link", "linked/secret", ".git/config", "pipe", ".")
    ]
    by_source = grounds(sandbox, *sources)
    assert "hunter2" not in str(by_source)
    assert {ground.source: ground.status for ground in by_source.values()} == {
        "file:.env#L1": "ok",
        "file:link#L1": "unknown",
        "file:linked/secret#L1": "unknown",
        "file:.git/config#L1": "unknown",
        "file:pipe#L1": "unknown",
        "file:.#L1": "unknown",
    }


def test_odd_files_are_named_and_not_quoted(sandbox: Sandbox) -> None:
    """Directories, binary and very large files are told as such; long lines are cut."""
    sandbox.write("d/a.bin", b"\0\1\2\n")
    sandbox.write("long.txt", "x" * 5_000 + "\n")
    sandbox.write("large.txt", b"x\n" * (3 << 20))
    sandbox.write("d/latin.txt", b"caf\xe9\n")
    id_ = sandbox.commit()
    by_source = grounds(
        sandbox,
        "file:d/",
        "file:d/a.bin#L1",
        "file:long.txt#L1",
        "file:large.txt#L1",
        "file:./d//latin.txt#L1",
    )
    assert (by_source["file:d/"].detail, by_source["file:d/"].commit) == ("d is a directory", id_)
    assert by_source["file:d/a.bin#L1"].detail == "(binary)"
    assert len(by_source["file:long.txt#L1"].detail) < 110
    assert by_source["file:large.txt#L1"].status == "unknown"
    assert by_source["file:./d//latin.txt#L1"].detail == '"caf\ufffd"'


def test_people_and_sites_are_leaves(sandbox: Sandbox) -> None:
    """Sources outside git are named, not proved."""
    by_source = grounds(sandbox, "human:Bob", "url:https://x.y", "session:s1#2", "tool:pytest")
    assert {(ground.status, ground.sources) for ground in by_source.values()} == {("unknown", ())}
    assert by_source["human:Bob"].detail == "a person's word"


def test_other_memories_are_followed(sandbox: Sandbox) -> None:
    """Cited, superseded and summed-up memories show their own sources and trust."""
    sandbox.write("code.py", "one\n")
    id_ = sandbox.commit("code")
    sandbox.memory("sem-base", source=(f"commit:{id_}",))
    sandbox.memory("sem-mid", source=("memory:sem-base",))
    made = sandbox.commit("memories")
    sandbox.memory(
        "dec-top",
        source=("memory:sem-mid", "memory:nope"),
        supersedes=("sem-base",),
        derived_from=("gone-id",),
    )
    report = why(sandbox.context(), "dec-top")
    assert (report.commit, report.trust) == ("", "local")
    mid, nope, base, gone = report.sources
    assert (mid.kind, mid.commit, mid.trust) == ("memory", made, "committed")
    assert mid.sources[0].sources[0].detail == "code"
    assert (nope.status, gone.status) == ("missing", "missing")
    assert base.source == "supersedes:sem-base"
    assert base.detail == "Title of sem-base (its sources are shown elsewhere in this tree)"
    assert render(report, sandbox.layout()).splitlines()[:-1] == [
        "Title of dec-top  dec-top",
        "not committed, sources: broken",
        "├─ cites sem-mid  Title of sem-mid  [unsettled, sources: weak]",
        "│  └─ cites sem-base  Title of sem-base  [sem-base is now dec-top]",
        f"│     └─ commit {id_[:7]}  code  (Ada, 2026-02-01)",
        "├─ MISSING: memory:nope  there is no memory nope",
        "├─ supersedes sem-base  Title of sem-base (its sources are shown elsewhere in this tree)",
        "└─ MISSING: derived_from:gone-id  there is no memory gone-id",
    ]


def test_circles_are_cut_and_said(sandbox: Sandbox) -> None:
    """A memory that rests on itself is told, and the tree ends."""
    sandbox.memory("dec-a", source=("memory:dec-b",))
    sandbox.memory("dec-b", source=("memory:dec-a",))
    report = why(sandbox.context(), "dec-a")
    (second,) = report.sources
    assert "circle" in second.sources[0].detail
    sandbox.memory("dec-a", source=("memory:dec-a",))
    assert "circle" in why(sandbox.context(), "dec-a").sources[0].detail


def test_long_chains_and_diamonds_are_bounded(sandbox: Sandbox) -> None:
    """Hundreds of memories that cite each other give a small tree, with the cut marked."""
    for number in range(300):
        near = tuple(f"memory:dec-{n}" for n in (number + 1, number + 2) if n < 300)
        sandbox.memory(f"dec-{number}", source=near or ("human:Ada",))
    text = render(why(sandbox.context(), "dec-0"), PIPED)
    assert f"the chain goes on: memtool why dec-{MAX_DEPTH}" in text
    assert len(text.splitlines()) < 3 * MAX_DEPTH


def test_a_shallow_clone_says_that_it_cannot_tell(sandbox: Sandbox, tmp_path: Path) -> None:
    """Commits may lie beyond the boundary, and its own authors are not believed."""
    sandbox.write("code.py", "one\n")
    id_ = sandbox.commit("code")
    sandbox.memory("dec-a", source=(f"commit:{id_}", "file:code.py#L1", "file:code.py"))
    sandbox.commit("memory")
    sandbox.write("other.py", "one\n")
    sandbox.commit("other")
    sandbox.git("clone", "-q", "--depth=1", f"file://{sandbox.path}", str(tmp_path / "shallow"))
    report = why(Context.at(str(tmp_path / "shallow"), sandbox.env), "dec-a")
    assert [(g.status, g.commit, g.author) for g in report.sources] == [
        ("unknown", "", ""),
        ("ok", "", ""),
        ("ok", "", ""),
    ]
    assert "shallow" in report.sources[0].detail
    assert "commit not known (shallow or partial clone)" in render(report, PIPED)


def test_an_unborn_head_and_a_bare_repository_are_answered(
    sandbox: Sandbox, tmp_path: Path
) -> None:
    """Sources are reported before the first commit and without a worktree."""
    sandbox.write("code.py", "one\n")
    by_source = grounds(sandbox, "file:code.py#L1", "commit:0123abcd")
    assert by_source["file:code.py#L1"].detail == "code.py is there, but not committed"
    assert by_source["commit:0123abcd"].status == "missing"
    id_ = sandbox.commit()
    sandbox.git("clone", "-q", "--bare", ".", str(tmp_path / "bare.git"))
    bare = Context.at(str(tmp_path / "bare.git"), sandbox.env)
    assert why(bare, "dec-why", at="HEAD").sources[0].commit == id_


@pytest.mark.parametrize(
    ("wanted", "at", "code"),
    [
        ("nothing", None, "unknown-id"),
        ("dec-why", "--exec=x", "unknown-revision"),
        ("dec-why", "", "unknown-revision"),
        ("dec", None, "ambiguous-id"),
    ],
)
def test_bad_arguments_are_answered_in_words(
    sandbox: Sandbox, wanted: str, at: str | None, code: str
) -> None:
    """Unknown and ambiguous ids, and revisions that are none, are the user's errors."""
    sandbox.memory("dec-why")
    sandbox.memory("dec-other")
    sandbox.commit()
    with pytest.raises(MemtoolError) as caught:
        why(sandbox.context(), wanted, at=at)
    assert caught.value.code == code


def test_the_json_is_nested(sandbox: Sandbox) -> None:
    """The promised names are there, on every level."""
    sandbox.memory("dec-a", source=("memory:dec-b",))
    sandbox.memory("dec-b")
    sandbox.commit()
    answer = sandbox.json("why", "dec-a")
    assert {"id", "title", "commit", "author", "date", "trust", "sources"} <= set(answer)
    inner = answer["sources"][0]["sources"][0]
    assert (inner["source"], inner["kind"], inner["status"]) == ("human:Ada", "human", "unknown")


def advice(sandbox: Sandbox, id_: str = "dec-a") -> str:
    return sandbox.run("why", id_).stdout.splitlines()[-1]


def test_the_last_line_says_whether_to_act_on_it(sandbox: Sandbox) -> None:
    """From written to broken to superseded: the worst that is known comes first."""
    sandbox.write("app/page.py", "def fetch_page():\n    return 1\n")
    id_ = sandbox.commit()
    about = {"files": ("app/page.py",), "source": (f"commit:{id_}",)}
    body = "`fetch_page` makes the page.\n"
    sandbox.memory("dec-a", body, status="candidate", **about)
    assert advice(sandbox).startswith("Ask before you act on it: nobody has confirmed it")
    sandbox.memory("dec-a", body, **about)
    assert advice(sandbox) == "Ask before you act on it: no commit has it as it is here"
    sandbox.commit()
    assert advice(sandbox).startswith("You can act on it: its sources resolve")
    sandbox.memory("dec-b", source=("human:Ada",), derived_from=("dec-a",))
    sandbox.commit()
    assert advice(sandbox, "dec-b").startswith("You can act on it, but it is only a person's word")
    sandbox.write("app/page.py", "def other():\n    return 2\n")
    sandbox.commit()
    assert "Look before you act on it: fetch_page is no longer in app/page.py" in advice(sandbox)
    tree = sandbox.run("why", "dec-b").stdout.splitlines()
    assert tree[1] == "sources: weak"
    assert tree[2].startswith("├─ stated by Ada")
    cause = "what dec-a cites is gone"
    assert tree[3] == f"└─ derived from dec-a  Title of dec-a  [{cause}, drift: broken]"
    assert tree[4].startswith(f"   └─ commit {id_[:7]}")
    sandbox.memory("dec-c", supersedes=("dec-a",), source=("commit:deadbeef",))
    sandbox.commit()
    assert advice(sandbox) == "Do not act on it: dec-c has replaced it"
    assert advice(sandbox, "dec-c").startswith("Look before you act on it: commit:deadbeef: ")
    sandbox.memory("dec-d", status="deprecated", source=("human:Ada",))
    assert advice(sandbox, "dec-d") == "Do not act on it: it is deprecated"
    answer = sandbox.json("why", "dec-a")
    assert (answer["drift"], answer["verdict"]) == ("broken", "sound")
    assert answer["advice"].capitalize() == advice(sandbox).capitalize()


def test_what_is_around_a_memory_counts_as_well(sandbox: Sandbox) -> None:
    """Its successors, related memories and sources; half-changed and due ones."""
    sandbox.write("a.py", "def fetch_page():\n    return 1\n")
    sandbox.write("b.py", "one = 1\ntwo = 2\n")
    sandbox.memory("dec-a", "`fetch_page` is called.\n", files=("a.py",))
    sandbox.memory("dec-b", "It rests on a.\n", derived_from=("dec-a",))
    sandbox.memory("dec-c", files=("b.py",))
    sandbox.memory("sem-d", type="semantic", category="warning", timestamp="2025-01-01T00:00:00Z")
    sandbox.memory("dec-old")
    sandbox.memory("dec-left", "The left side.\n", supersedes=("dec-old",))
    sandbox.memory("dec-right", "The right one.\n", supersedes=("dec-old",))
    sandbox.memory("dec-x", supersedes=("dec-y",))
    sandbox.memory("dec-y", supersedes=("dec-x",))
    sandbox.commit()
    sandbox.write("a.py", "def get_page():\n    return 1\n")
    sandbox.write("b.py", "one = 1\nthree = 3\n")
    sandbox.commit()
    assert {id_: advice(sandbox, id_) for id_ in ("dec-b", "dec-c", "sem-d")} == {
        "dec-b": "Look before you act on it: it is unsettled, since what dec-a cites is gone; if "
        "dec-b still holds: memtool confirm dec-b --still-holds",
        "dec-c": "Act on it with care: 50 % of b.py has changed; memtool confirm dec-c says that "
        "it still holds",
        "sem-d": "Act on it with care: its review is due (memtool confirm sem-d)",
    }
    assert {id_: advice(sandbox, id_) for id_ in ("dec-old", "dec-left", "dec-x")} == {
        "dec-old": "Do not act on it: dec-left and dec-right have replaced it (memtool conflicts)",
        "dec-left": "Ask before you act on it: dec-right replaces the same memory (memtool "
        "conflicts)",
        "dec-x": "Do not act on it: memories replace each other in a circle (memtool check)",
    }
    sandbox.memory("dec-new", supersedes=("dec-c",))
    assert advice(sandbox, "dec-c").endswith(": dec-new is to replace it, and is trusted less")
    assert advice(sandbox, "dec-new").endswith(": it is to replace dec-c, which is trusted more")
