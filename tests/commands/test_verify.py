from __future__ import annotations

import pytest
from conftest import PIPED, Sandbox

from memtool.commands.capture import capture
from memtool.commands.search import search
from memtool.commands.verify import VerifyReport, render, verify
from memtool.errors import MemtoolError
from memtool.index import index
from memtool.search.scope import build_drift_witness
from memtool.search.verification import STATUSES, VERDICTS, is_address
from memtool.store.git import Git

LINES = "".join(f"line {number}\n" for number in range(1, 41))


def verdicts(report: VerifyReport) -> dict[str, str]:
    return {memory.id: memory.verdict for memory in report.memories}


def statuses(sandbox: Sandbox, *ids: str) -> dict[str, str]:
    """Return what became of each source of all memories, or of some."""
    report = verify(sandbox.context(), *ids, all=True)
    return {source.source: source.status for memory in report.memories for source in memory.sources}


@pytest.fixture
def code(sandbox: Sandbox) -> Sandbox:
    """Two files, in the first commit."""
    sandbox.write("src/lines.py", LINES)
    sandbox.write("src/gone.py", "x = 1\n")
    sandbox.write("src/moved.py", LINES)
    sandbox.commit("one")
    return sandbox


def test_a_commit_must_lead_to_head(code: Sandbox) -> None:
    """One that a rebase left behind is here, and in no other clone; short ids will do."""
    first = code.git("rev-parse", "HEAD").strip()
    code.write("x", "x\n")
    stray = code.commit("left behind")
    code.git("reset", "--quiet", "--hard", first)
    code.memory("dec-good", source=(f"commit:{first}", f"commit:{first[:12]}"))
    code.memory("dec-left", source=(f"commit:{stray}",))
    code.memory("dec-never", source=(f"commit:{'f' * 40}",))
    code.memory("dec-at", source=(f"file:src/gone.py@{stray}", f"file:src/gone.py@{first[:12]}"))
    code.commit("two")
    report = verify(code.context(), all=True)
    assert verdicts(report) == {
        "dec-at": "broken",
        "dec-good": "sound",
        "dec-left": "broken",
        "dec-never": "broken",
    }
    assert statuses(code) == {
        f"commit:{first}": "ok",
        f"commit:{first[:12]}": "ok",
        f"commit:{stray}": "unreachable",
        f"commit:{'f' * 40}": "missing",
        f"file:src/gone.py@{stray}": "unreachable",
        f"file:src/gone.py@{first[:12]}": "ok",
    }
    assert report.exit_code == 1
    assert "leads to neither HEAD nor the trusted ref" in render(report, PIPED)


def test_a_commit_of_the_trusted_ref_counts(code: Sandbox) -> None:
    """A branch may lag behind what it cites."""
    code.git("checkout", "--quiet", "-b", "work")
    code.git("checkout", "--quiet", "main")
    code.write("x", "x\n")
    ahead = code.commit("ahead")
    code.git("checkout", "--quiet", "work")
    code.memory("dec-a", source=(f"commit:{ahead}",))
    code.commit("two")
    assert verdicts(verify(code.context())) == {"dec-a": "broken"}
    code.git("update-ref", "refs/remotes/origin/main", ahead)
    assert verdicts(verify(code.context(), all=True)) == {"dec-a": "sound"}


def test_files_then_and_now(code: Sandbox) -> None:
    """A file and its lines are compared with what stood there when the memory was written."""
    code.memory("dec-lines", source=("file:src/lines.py#L10-L12",))
    code.memory("dec-shifted", source=("file:src/moved.py#L20",))
    code.memory("dec-beyond", source=("file:src/lines.py#L90-L99",))
    code.memory("dec-gone", source=("file:src/gone.py",))
    code.memory("dec-never", source=("file:no/such.py",))
    code.memory("dec-folder", source=("file:src",))
    base = code.commit("two")
    report = verify(code.context(), all=True)
    assert (report.sound, report.broken) == (4, 2)
    code.write("src/lines.py", LINES.replace("line 11\n", "line 11 and more\n"))
    code.git("mv", "src/moved.py", "src/renamed.py")
    code.write("src/renamed.py", "new\n" + LINES)
    code.git("rm", "-q", "src/gone.py")
    code.commit("three")
    report = verify(code.context(), all=True)
    rows = {memory.id: memory.sources[0] for memory in report.memories}
    assert {id_: (row.status, row.then, row.now) for id_, row in rows.items()} == {
        "dec-lines": ("changed", f"src/lines.py#L10-L12@{base[:10]}", "src/lines.py"),
        "dec-shifted": ("moved", f"src/moved.py#L20-L20@{base[:10]}", "src/renamed.py#L21-L21"),
        "dec-beyond": ("missing", f"src/lines.py#L90-L99@{base[:10]}", ""),
        "dec-gone": ("gone", f"src/gone.py@{base[:10]}", ""),
        "dec-never": ("missing", f"no/such.py@{base[:10]}", ""),
        "dec-folder": ("ok", f"src@{base[:10]}", "src"),
    }
    assert verdicts(report) == {
        "dec-beyond": "broken",
        "dec-gone": "broken",
        "dec-never": "broken",
        "dec-lines": "weak",
        "dec-folder": "sound",
        "dec-shifted": "sound",
    }
    assert "(now src/renamed.py#L21-L21)" in render(report, PIPED)
    assert "had only 40 lines" in rows["dec-beyond"].detail


def test_the_worst_source_decides_and_their_number_counts_nothing(code: Sandbox) -> None:
    """Ten persons prove nothing; one source that resolves is enough."""
    people = tuple(f"human:Person {number}" for number in range(10))
    code.memory("dec-said", source=people)
    code.memory("dec-one", source=(*people, "file:src/lines.py"))
    code.memory("dec-many", source=("file:src/lines.py", "file:src/moved.py"))
    code.memory("dec-bad", source=("file:src/lines.py", "file:no/such.py"))
    code.commit("two")
    assert verdicts(verify(code.context(), all=True)) == {
        "dec-said": "unknown",
        "dec-one": "sound",
        "dec-many": "sound",
        "dec-bad": "broken",
    }


def test_memories_must_be_alive_and_the_newest(sandbox: Sandbox) -> None:
    """Superseded, inactive and missing memories are reported as such."""
    sandbox.memory("dec-old")
    sandbox.memory("dec-new", supersedes=("dec-old",))
    sandbox.memory("dec-archived", status="archived")
    for name in ("old", "new", "archived", "nowhere"):
        sandbox.memory(f"sem-{name}", type="semantic", source=(f"memory:dec-{name}",))
    sandbox.commit("one")
    ids = [f"sem-{name}" for name in ("old", "new", "archived", "nowhere")]
    assert statuses(sandbox, *ids) == {
        "memory:dec-old": "superseded",
        "memory:dec-new": "ok",
        "memory:dec-archived": "out of use",
        "memory:dec-nowhere": "missing",
    }
    assert verdicts(verify(sandbox.context(), *ids)) == {
        "sem-old": "weak",
        "sem-new": "sound",
        "sem-archived": "weak",
        "sem-nowhere": "broken",
    }


def test_messages_of_sessions_are_looked_up_here(sandbox: Sandbox) -> None:
    """A session of another clone is unknown; a message that its session never had is missing."""
    sandbox.memory("dec-a")
    sandbox.commit("one")
    line = '{"role": "user", "content": "Deploys run on Tuesdays."}\n'
    done = capture(sandbox.context(), str(sandbox.write("../t.jsonl", line)), host="chat")
    texts = (f"session:{done.session}#1", f"session:{done.session}#9", "session:elsewhere#1")
    for number, text in enumerate(texts):
        sandbox.memory(f"dec-{number}0", source=(text,))
    sandbox.commit("two")
    assert statuses(sandbox, "dec-00", "dec-10", "dec-20") == dict(
        zip(texts, ("ok", "missing", "unknown"), strict=True)
    )


@pytest.mark.parametrize(
    ("text", "is_one"),
    [
        ("https://example.org/a?b#c", True),
        ("http://[::1]:80/", True),
        ("https://example.org:99999/", False),
        ("https://", False),
        ("ftp://example.org/", False),
        ("javascript:alert(1)", False),
        ("https://[::1", False),
        ("https://a b.org/", False),
        ("https://example.org/\u202e", False),
        ("example.org", False),
    ],
)
def test_an_address_is_judged_by_its_form(text: str, is_one: bool) -> None:  # noqa: FBT001  # a column
    """No site is asked."""
    assert is_address(text) is is_one


def test_addresses_are_unknown_or_malformed(sandbox: Sandbox) -> None:
    """A site may say anything tomorrow."""
    sandbox.memory("dec-a", source=("url:https://example.org/adr/7",))
    sandbox.memory("dec-b", source=("url:not an address",))
    sandbox.commit("one")
    assert verdicts(verify(sandbox.context(), all=True)) == {"dec-a": "unknown", "dec-b": "broken"}


def test_a_trace_is_current_until_a_newer_one_has_its_signature(code: Sandbox) -> None:
    """Whether it reproduces is left to whoever runs it."""
    first = code.git("rev-parse", "HEAD").strip()
    fields = {"type": "episodic", "error_signature": "TimeoutError: export"}
    code.memory("epi-old", source=(f"commit:{first}",), **fields)
    code.memory("epi-new", timestamp="2026-02-23T00:00:00Z", **fields)
    code.commit("two")
    rows = {memory.id: memory for memory in verify(code.context(), all=True).memories}
    old, new = rows["epi-old"], rows["epi-new"]
    assert (old.verdict, old.newer) == ("weak", ("epi-new",))
    assert old.trace is not None
    assert new.trace is not None
    assert (old.trace.pointer, old.trace.current, old.trace.reproduces) == (True, False, None)
    assert (new.verdict, new.trace.pointer, new.trace.current) == ("unknown", None, True)


def test_before_the_first_commit_nothing_of_git_is_told(sandbox: Sandbox) -> None:
    """A person's word is still reported as stated."""
    sandbox.memory("dec-a", source=("file:a.py", "human:Ada", f"commit:{'f' * 40}"))
    report = verify(sandbox.context(), all=True)
    assert (report.head, report.unknown, report.exit_code) == ("", 1, 0)
    assert set(statuses(sandbox).values()) == {"unknown", "stated"}


@pytest.mark.parametrize("option", ["--depth=1", "--filter=blob:none", "--filter=tree:0"])
def test_a_clone_that_lacks_history_is_not_proof_of_a_lie(code: Sandbox, option: str) -> None:
    """Missing history is unknown, never broken."""
    first = code.git("rev-parse", "HEAD").strip()
    code.git("config", "uploadpack.allowFilter", "true")
    code.write("src/own.py", "one\ntwo\n")
    code.memory("dec-commit", source=(f"commit:{first}",))
    code.memory("dec-file", source=("file:src/own.py#L1-L2",))
    code.memory("dec-folder", source=("file:src",))
    code.memory("dec-never", source=(f"commit:{'f' * 40}",))
    code.commit("two")
    code.write("src/own.py", "one\nsecond\n")
    code.commit("three")
    place = code.path.parent / "clone"
    code.git("clone", "--quiet", option, f"file://{code.path}", str(place))
    code.path.rename(code.path.parent / "unreachable")
    report = verify(Sandbox(place, code.env).context(), all=True)
    assert report.broken == 0

    assert {memory.id for memory in report.memories if memory.verdict == "unknown"} >= {
        "dec-file",
        "dec-never",
    }


def test_bad_input_gets_a_sentence(code: Sandbox) -> None:
    """Unknown ids and revisions, paths out of the repository, links, submodules, binary files."""
    (code.path / "link").symlink_to("src/lines.py")
    code.write("bytes", b"\0\1")
    for number, path in enumerate(
        ("link", "bytes", ".git/config", "src/lines.py/below", "x" * 300)
    ):
        code.memory(f"dec-{number}0", source=(f"file:{path}#L1-L2",))
    code.memory("dec-sub", source=("file:sub",))
    code.git("add", "--all")
    code.git("update-index", "--add", "--cacheinfo", f"160000,{'1' * 40},sub")
    code.git("commit", "--quiet", "-m", "two")
    assert statuses(code)["file:sub"] == "unknown"
    assert set(statuses(code).values()) <= {"ok", "missing", "unknown"}
    for call in (
        lambda: verify(code.context(), "dec-nowhere"),
        lambda: verify(code.context(), at="--output=x"),
    ):
        with pytest.raises(MemtoolError):
            call()


def test_every_status_has_a_verdict() -> None:
    """The table is whole."""
    assert {verdict for verdict, _doc in STATUSES.values()} <= set(VERDICTS)


def test_the_shell_gets_json_and_an_exit_code(code: Sandbox) -> None:
    """0 if no source is broken, else 1."""
    code.memory("dec-a", source=("file:src/gone.py",))
    code.commit("two")
    assert code.run("verify").returncode == 0
    code.git("rm", "-q", "src/gone.py")
    code.commit("three")
    assert code.run("verify").returncode == 1
    answer = code.json("verify", "dec-a")
    assert (answer["broken"], answer["memories"][0]["verdict"]) == (1, "broken")
    assert sorted(answer["memories"][0]["sources"][0]) == [
        "commit",
        "detail",
        "kind",
        "now",
        "source",
        "status",
        "then",
    ]


def weights(sandbox: Sandbox, **env: str) -> dict[str, float]:
    """Return the factor `source` of what a search finds, by id."""
    results = search(sandbox.context(**env), "harbour", explain=True).results
    return {hit.id: hit.factors["source"] for hit in results}


def test_what_resolves_ranks_a_little_higher(code: Sandbox) -> None:
    """Git decides if it can, whatever the number; with and without the table alike."""
    first = code.git("rev-parse", "HEAD").strip()
    code.write("x", "x\n")
    stray = code.commit("left behind")
    code.git("branch", "left")
    code.git("reset", "--quiet", "--hard", first)
    for name, source in {
        "one": (f"commit:{first}",),
        "many": (f"commit:{first}", "file:src/lines.py", "human:Ada"),
        "left": (f"commit:{stray}", "file:src/lines.py"),
        "never": ("file:no/such.py",),
        "said": ("human:Ada", "human:Bob"),
    }.items():
        code.memory(f"dec-{name}", f"The harbour is {name}.\n", source=source)
    code.commit("two")
    expected = {
        "dec-one": 1.03,
        "dec-many": 1.03,
        "dec-left": 0.93,
        "dec-never": 0.93,
        "dec-said": 1.01,
    }
    assert weights(code) == weights(code, MEMTOOL_NO_CACHE="1") == weights(code) == expected
    code.write("y", "y\n")
    code.commit("three")  # rows are taken over
    assert weights(code) == expected
    code.git("update-ref", "refs/remotes/origin/main", stray)
    assert weights(code) == expected | {"dec-left": 1.03}
    assert weights(code, MEMTOOL_NO_CACHE="1") == expected | {"dec-left": 1.03}
    code.git("update-ref", "-d", "refs/remotes/origin/main")
    assert weights(code) == expected
    code.git("merge", "--quiet", "--no-edit", "left")
    assert weights(code) == weights(code, MEMTOOL_NO_CACHE="1") == expected | {"dec-left": 1.03}


def test_a_warm_answer_starts_no_git_for_it(code: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    """Even if a cited commit leads nowhere."""
    code.memory("dec-a", source=(f"commit:{'f' * 40}",))
    code.commit("two")
    context = code.context()
    tree = index.open(context, exact=True)

    def quality() -> str:
        witness = context.provenance_reader(tree)
        return build_drift_witness(tree, lambda: witness).find_quality(tree["dec-a"])

    assert quality() == "unresolved"
    monkeypatch.setattr(Git, "run", None)
    monkeypatch.setattr(Git, "start", None)
    assert quality() == "unresolved"


def test_sites_are_asked_only_where_the_user_lets_them(sandbox: Sandbox) -> None:
    """A project cannot allow it; addresses outside the internet are never fetched."""
    urls = ("http://127.0.0.1:9/", "http://localhost/", "http://[::1]/", "http://169.254.169.254/")
    sandbox.memory("dec-a", source=tuple(f"url:{url}" for url in urls))
    sandbox.write(".memory/config.toml", "[verify]\nonline = true\n")
    sandbox.commit("one")
    with pytest.raises(MemtoolError, match="do not allow requests") as caught:
        verify(sandbox.context(), online=True)
    assert caught.value.code == "config"
    assert sandbox.run("--global", "config", "verify.online", "true").returncode == 0
    (row,) = verify(sandbox.context(), all=True, online=True).memories
    assert {(source.status, source.detail) for source in row.sources} == {
        ("unknown", "it is no site of the internet, so nobody asked")
    }
