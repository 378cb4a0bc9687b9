"""What a new memory cites is there and holds, or it is refused with what to cite instead."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from web.conftest import Web

import memtool
from memtool.commands.new import new, remember, supersede
from memtool.errors import MemtoolError
from memtool.memory import document
from memtool.search.unsettled import Unsettled

if TYPE_CHECKING:
    from conftest import Sandbox

    from memtool.memory.memory import Memory

BODY = "Towers get a review of their fire stairs."
KEEP = "to write it as given: add --keep-citation"


@pytest.fixture
def code(sandbox: Sandbox) -> Sandbox:
    """One commit of code, and memories in each state."""
    sandbox.write("app/review.py", "one = 1\ntwo = 2\n")
    sandbox.commit("code")
    sandbox.memory("sem-old", title="Towers over 40 floors")
    sandbox.memory("sem-new", title="Towers over 50 floors", supersedes=("sem-old",))
    sandbox.memory("sem-proposed", status="candidate", supersedes=("sem-new",))
    sandbox.memory("sem-deprecated", status="deprecated")
    sandbox.memory("sem-ended", valid_through="2026-02-20")
    deleted = {"at": "2026-02-01T00:00:00Z", "by": "Ada", "was": "confirmed"}
    sandbox.memory("sem-deleted", status="deleted", deleted=deleted)
    sandbox.memory("sem-archived", status="archived")
    sandbox.memory("sem-2026-02-01-stairs-are-of-concrete-a1b2")
    return sandbox


def write(sandbox: Sandbox, **options: object) -> Memory:
    made = new(sandbox.context(), "decision", "A title", body=BODY, **options)  # type: ignore[arg-type]
    return document.read((sandbox.path / made.path).read_bytes(), made.path)


def refusal(sandbox: Sandbox, **options: object) -> MemtoolError:
    """Return the error with which `new` refuses; nothing is written."""
    before = sorted(sandbox.path.glob(".memory/**/*.md"))
    with pytest.raises(MemtoolError) as caught:
        write(sandbox, **options)
    assert sorted(sandbox.path.glob(".memory/**/*.md")) == before
    assert caught.value.hint.splitlines()[-1] == KEEP
    return caught.value


@pytest.mark.parametrize(
    ("options", "code_", "message", "hint"),
    [
        (
            {"source": ("file:review.py",)},
            "broken-source",
            "source: file:review.py does not exist",
            "did you mean --source file:app/review.py?",
        ),
        (
            {"source": ("file:app/reviews.py#L1",)},
            "broken-source",
            "source: file:app/reviews.py#L1 does not exist",
            "did you mean --source file:app/review.py?",
        ),
        (
            {"source": ("file:app/review.py#L2-L3",)},
            "broken-source",
            "source: file:app/review.py#L2-L3: app/review.py has only 2 lines",
            "cite all of it: --source file:app/review.py",
        ),
        (
            {"source": ("file:app#L1",)},
            "broken-source",
            "source: file:app#L1: app is a directory",
            "cite all of it: --source file:app",
        ),
        (
            {"file": ("src/elsewhere.rs",)},
            "no-such-file",
            "files: src/elsewhere.rs does not match any file",
            "use the path from the top of the repository, as git ls-files prints it",
        ),
        (
            {"set": ("files=app/reviw.py",)},
            "no-such-file",
            "files: app/reviw.py does not match any file",
            "did you mean --file app/review.py?",
        ),
        (
            {"source": ("memory:xyz-q9",)},
            "broken-link",
            "source: memory:xyz-q9 names a memory that does not exist",
            "memtool list",
        ),
        (
            {"source": ("memory:sem-archive",)},
            "broken-link",
            "source: memory:sem-archive names a memory that does not exist",
            "did you mean --source memory:sem-archived?",
        ),
        (
            {"source": ("memory:sem-a1b3",)},
            "broken-link",
            "source: memory:sem-a1b3 names a memory that does not exist",
            "did you mean --source memory:sem-2026-02-01-stairs-are-of-concrete-a1b2?",
        ),
        (
            {"source": ("memory:sem-old",)},
            "bad-premise",
            'source: memory:sem-old is superseded by "Towers over 50 floors" (sem-new)',
            "cite what holds now: --source memory:sem-new",
        ),
        (
            {"set": ("derived_from=sem-old",)},
            "bad-premise",
            'derived_from: sem-old is superseded by "Towers over 50 floors" (sem-new)',
            "cite what holds now: --set derived_from=sem-new",
        ),
        (
            {"source": ("memory:sem-deleted",)},
            "bad-premise",
            "source: memory:sem-deleted was forgotten",
            "cite what holds\nif it holds after all: memtool restore sem-deleted",
        ),
        (
            {"source": ("memory:sem-deprecated",)},
            "bad-premise",
            "source: memory:sem-deprecated is deprecated",
            "cite what holds\nif it holds after all: memtool restore sem-deprecated",
        ),
        (
            {"source": ("memory:sem-ended",)},
            "bad-premise",
            "source: memory:sem-ended has expired",
            "cite what holds",
        ),
        (
            {"id": "dec-own", "source": ("memory:dec-own",)},
            "bad-premise",
            "source: memory:dec-own is the memory itself",
            "cite what it rests on instead",
        ),
    ],
)
def test_what_leads_nowhere_is_refused(
    code: Sandbox, options: dict[str, object], code_: str, message: str, hint: str
) -> None:
    """The sentence says what is wrong, and the hint what to cite instead."""
    error = refusal(code, **options)
    assert (error.code, error.message) == (code_, message)
    assert error.hint == f"{hint}\n{KEEP}"
    write(code, keep_citation=True, **options)


def test_a_path_or_line_that_a_commit_does_not_have_is_refused(code: Sandbox) -> None:
    """The near path is one of that commit, whatever the worktree has."""
    commit = code.git("rev-parse", "HEAD").strip()[:12]
    (code.path / "app/review.py").rename(code.path / "app/moved.py")
    error = refusal(code, source=(f"file:app/revew.py@{commit}",))
    assert error.message == f"source: app/revew.py did not exist at commit {commit}"
    assert error.hint.startswith(f"did you mean --source file:app/review.py@{commit}?")
    error = refusal(code, source=(f"file:app/review.py#L9@{commit}",))
    assert error.message.endswith("app/review.py has only 2 lines")
    assert error.hint.startswith(f"cite all of it: --source file:app/review.py@{commit}")
    assert write(code, source=(f"file:app/review.py#L2@{commit}",))


def test_every_bad_citation_is_told_at_once(code: Sandbox) -> None:
    """Who corrects one does not run into the next."""
    error = refusal(code, source=("memory:sem-old", "file:nothing.py"), file=("app/reviews.py",))
    assert error.message.splitlines() == [
        "cannot write this: 3 of its citations do not hold:",
        "  source: file:nothing.py does not exist",
        "  files: app/reviews.py does not match any file",
        '  source: memory:sem-old is superseded by "Towers over 50 floors" (sem-new)',
    ]


def test_what_is_there_is_a_source(code: Sandbox) -> None:
    """Untracked and ignored files, folders, what only git's index has, and archived memories."""
    code.write("new.py", "x\n")
    code.write(".gitignore", "*.log\n")
    code.write("run.log", "x\n")
    (code.path / "app/review.py").unlink()
    files = ("new.py", "run.log", "app", "app/", "app/review.py")
    source = ("file:new.py#L1", "memory:sem-archived", "memory:sem-new", "session:s-1", "human:Bo")
    context = code.context()
    new(context, "decision", "A title", body=BODY, file=files, source=source)
    assert not [note for note in context.notes if "files:" in note or "source:" in note]


def test_a_glob_without_a_file_is_only_noted(code: Sandbox) -> None:
    """It may be ahead of the code; one that matches a new file is silent."""
    code.write("lib/new.py", "x\n")
    context = code.context()
    new(context, "decision", "A title", body=BODY, file=("lib/**", "app/*.py", "src/**"))
    assert [note for note in context.notes if "files:" in note] == [
        "files: src/** does not match any file"
    ]


def test_short_ids_and_citations_become_whole_ids(code: Sandbox) -> None:
    """As other verbs read them; words are no id."""
    whole = "sem-2026-02-01-stairs-are-of-concrete-a1b2"
    made = write(
        code,
        source=("memory:sem-a1b2",),
        set=("derived_from=sem-a1b2", "related_to=sem-2026-02-01-a1b2"),
    )
    assert made.items("source") == (f"memory:{whole}",)
    assert made.items("derived_from") == made.items("related_to") == (whole,)
    commit = code.commit()[:10]
    made = supersede(code.context(), made.id, "B", body="B.", source=(f"memory:sem-a1b2@{commit}",))
    assert f"memory:{whole}\n" in made.text
    refusal(code, source=("memory:stairs",))


def test_what_is_kept_is_settled_at_once(code: Sandbox) -> None:
    """The causes of this moment are accepted, so that only a later change unsettles it."""
    code.memory("sem-first", title="First")
    code.memory("sem-a", title="A", supersedes=("sem-first",))
    code.memory("sem-b", title="B", supersedes=("sem-first",))
    premises = ("old", "first", "deleted", "deprecated", "ended", "nowhere")
    context = code.context()
    made = new(
        context,
        "decision",
        "A title",
        body=BODY,
        source=tuple(f"memory:sem-{name}" for name in premises),
        keep_citation=True,
    )
    memory = document.read((code.path / made.path).read_bytes(), made.path)
    assert memory.items("settled_on") == (
        "memory:sem-new",
        "memory:sem-a",
        "memory:sem-b",
        "without:sem-deleted",
        "without:sem-deprecated",
        "without:sem-ended",
        "without:sem-nowhere",
    )
    note = "source: memory:sem-deleted was forgotten; it is kept as given"
    assert note in context.notes
    later = code.context()
    assert Unsettled(later.tree(), later.clock.now).find([made.id]) == {}
    code.memory("sem-newest", title="Newest", supersedes=("sem-new",))
    later = code.context()
    assert [*Unsettled(later.tree(), later.clock.now).find([made.id])[made.id]] == [
        "memory:sem-newest"
    ]


def test_a_correction_may_cite_what_it_corrects(code: Sandbox) -> None:
    """What a memory supersedes is none of its premises."""
    made = supersede(code.context(), "sem-new", "Over 60", body="60.", source=("memory:sem-new",))
    assert "settled_on" not in made.text


def test_files_that_nobody_typed_are_only_noted(code: Sandbox) -> None:
    """A memory whose file is gone can be corrected; a path that is typed again is refused."""
    code.memory("dec-gone", files=("app/gone.py",))
    context = code.context()
    supersede(context, "dec-gone", "Gone", body="It is gone.", dry_run=True)
    assert "files: app/gone.py does not match any file" in context.notes
    with pytest.raises(MemtoolError, match=r"files: app/gone\.py does not match"):
        supersede(code.context(), "dec-gone", "Gone", body="It is.", file=("app/gone.py",))


def test_a_global_memory_is_cited_only_by_its_like(code: Sandbox) -> None:
    """Nobody else has it. A global memory may name files and commits of any project."""
    place = code.run("--global", "remember", "Ada prefers short messages.").stdout.strip()
    id_ = place.rpartition("/")[2].removesuffix(".md")
    error = refusal(code, source=(f"memory:{id_}",))
    assert error.message == (
        f"source: memory:{id_} is one of your global memories, which nobody else has"
    )
    cites = ("--global", "new", "decision", "Short", "--body", "Be short.")
    assert code.run(*cites, "--source", "memory:sem-new").returncode == 2
    named = ("--file", "a.py", "--source", "commit:deadbeef99", "--source", f"memory:{id_}")
    assert code.run(*cites, *named).returncode == 0


def test_remember_and_add_many_refuse_too(code: Sandbox) -> None:
    """Of many memories none is written; they may cite each other."""
    with pytest.raises(MemtoolError, match=r"files: a\.py does not match any file"):
        remember(code.context(), "Never edit a.py by hand.", file=("a.py",))
    assert remember(code.context(), "Never edit it.", file=("a.py",), keep_citation=True).id
    project = memtool.open(str(code.path))
    first = {"type": "decision", "title": "One", "body": "First of two.", "id": "dec-one"}
    second = {"type": "decision", "title": "Two", "body": "Stairs are wide.", "source": []}
    bad = second | {"source": ["memory:dec-one", "memory:sem-old"]}
    with pytest.raises(MemtoolError, match="memory 2: source: memory:sem-old is superseded by"):
        project.add_many([first, bad])
    done = project.add_many([first, bad], keep_citation=True)
    assert "settled_on:\n  - memory:sem-new\n" in done.memories[1].text


def test_a_draft_that_is_refused_is_kept(code: Sandbox) -> None:
    """What was typed into the editor is not lost."""
    editor = "sed -i s/human:Ada/memory:sem-old/"
    done = code.run("new", "decision", "Edited", "--body", BODY, "--edit", EDITOR=editor)
    assert done.returncode == 2
    assert "memory:sem-old is superseded by" in done.stderr
    path = done.stderr.rpartition("the draft is in ")[2].strip()
    assert BODY in (code.path / path).read_text()


def test_a_secret_in_a_path_is_not_repeated(code: Sandbox) -> None:
    """The message quotes what was typed."""
    token = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    error = refusal(code, source=(f"file:{token}.py",))
    assert token not in error.message + error.hint


def test_each_interface_refuses_and_keeps(code: Sandbox) -> None:
    """The command line names the option, HTTP the argument, a form the box to tick."""
    words = ("new", "decision", "A title", "--body", BODY, "--source", "memory:sem-old")
    done = code.run(*words)
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1] == f"hint: {KEEP}"
    done = code.run(*words, "--keep-citation", "--dry-run")
    assert done.returncode == 0
    assert "is superseded by" in done.stderr
    assert "  - memory:sem-new\n" in done.stdout
    web = Web(code, is_writing=True)
    payload = {"type": "decision", "title": "A title", "body": BODY, "file": ["app/reviews.py"]}
    refused = web.post("/api/new", payload)
    assert refused.status == 422
    assert "files: app/reviews.py does not match any file" in refused.text
    assert "keep_citation" in refused.json()["error"]["hint"]
    answer = web.post("/api/new", payload | {"keep_citation": True, "dry_run": True})
    assert answer.status == 200
    fields = {"nonce": web.nonce, "form": "new", "page": "/new", "step": "show"}
    fields |= {"type": "decision", "title": "A title", "body": BODY, "file": "app/reviews.py"}
    page = web.form("/do/new", fields)
    assert page.status == 422
    assert 'name="keep_citation"' in page.text
    assert web.form("/do/new", fields | {"keep_citation": "true"}).status == 200
