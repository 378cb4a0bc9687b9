"""`--global`: every verb on the repository of the user's own memories, made when first written."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import Sandbox

import memtool
from memtool.errors import MemtoolError
from memtool.memory.short_ids import ShortIds
from memtool.store.context import Context

TEXT = "Deploys run on Tuesdays only."


@pytest.fixture
def place(sandbox: Sandbox) -> Path:
    """Where the global repository will be."""
    return Path(sandbox.env["XDG_DATA_HOME"]) / "memtool"


def git(place: Path, *args: str) -> str:
    done = subprocess.run(["git", *args], cwd=place, capture_output=True, text=True, check=True)
    return done.stdout


def remembered(sandbox: Sandbox, text: str = TEXT) -> str:
    """Remember something globally and return its id."""
    return str(sandbox.json("remember", "--global", text)["id"])


def test_the_first_write_makes_the_repository(sandbox: Sandbox, place: Path):
    """It is complete, private, on a fixed branch, and everything in it is committed."""
    done = sandbox.run("remember", "--global", TEXT)
    assert done.returncode == 0
    assert done.stderr.startswith("Remembered sem-")
    assert f"\nmemtool: the global repository is {place}\n" in done.stderr
    path = place / done.stdout.strip()
    assert "\nscope: global\n" in path.read_text()
    assert git(place, "log", "--format=%s", "main").splitlines() == [
        "memory: add Deploys run on Tuesdays only",
        "memory: begin",
    ]
    assert git(place, "status", "--porcelain") == ""
    assert place.stat().st_mode & 0o077 == 0
    assert os.listdir(place.parent) == [place.name]
    assert not list(sandbox.path.glob(".memory/**/*.md"))


@pytest.mark.slow
def test_many_processes_make_it_once(sandbox: Sandbox, place: Path):
    """One of several concurrent writers creates it, and no memory is lost."""
    running = [
        subprocess.Popen(
            [sys.executable, "-m", "memtool", "--global", "remember", f"Lesson {number}: {TEXT}"],
            cwd=sandbox.path,
            env=sandbox.env | {"MEMTOOL_SEED": f"{number}"},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        for number in range(6)
    ]
    errors = [process.communicate()[1].decode() for process in running]
    assert [process.returncode for process in running] == [0] * 6, errors
    subjects = git(place, "log", "--format=%s").splitlines()
    assert len(subjects) == 7
    assert subjects[-1] == "memory: begin"
    assert git(place, "status", "--porcelain") == ""
    assert os.listdir(place.parent) == [place.name]


def test_what_a_killed_process_left_is_swept(sandbox: Sandbox, place: Path):
    """A half-made repository is never used, and does not stay for long."""
    ended = subprocess.run(
        [sys.executable, "-c", "import os; print(os.getpid())"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    for name in (f".memtool-{ended}-half", f".memtool-{os.getpid()}-live", ".memtool-notes"):
        (place.parent / name / "git").mkdir(parents=True)
    remembered(sandbox)
    assert sorted(os.listdir(place.parent)) == [
        f".memtool-{os.getpid()}-live",
        ".memtool-notes",
        "memtool",
    ]


@pytest.mark.parametrize(
    "verb",
    [
        "list",
        "search deploys",
        "inject --prompt deploys",
        "status",
        "stats",
        "export",
        "check",
        "conflicts",
        "config",
        "alias",
        "auto",
        "eval none.jsonl",
        "log",
        "diff HEAD",
        "show dec-a",
        "pin dec-a",
        "forget dec-a --reason x",
        "supersede dec-a T",
        "redact",
        "remember x --dry-run",
        "new decision T --dry-run",
        "init --dry-run",
        "auto off --dry-run",
        "alias add idp keycloak --dry-run",
        "config search.limit 5 --dry-run",
    ],
)
def test_reading_and_dry_runs_make_nothing(sandbox: Sandbox, place: Path, verb: str):
    """Who only looks, or names what cannot be there, finds nothing and leaves nothing."""
    done = sandbox.run("--global", *verb.split())
    assert done.returncode in (0, 2)
    assert "a bug" not in done.stderr
    assert not place.parent.exists()


@pytest.mark.parametrize("verb", [("list",), ("search", "deploys"), ("export",)])
def test_an_absent_repository_answers_empty(sandbox: Sandbox, verb: tuple[str, ...]):
    """A missing repository is not an error; a note says how to begin."""
    done = sandbox.run(*verb, "--global")
    assert (done.returncode, done.stdout) == (0, "")
    assert 'memtool remember --global "TEXT" writes the first' in done.stderr


def test_init_makes_it_too(sandbox: Sandbox, place: Path):
    """Whoever wants to see the files first may; their place is always the same."""
    done = sandbox.run("init", "--global", "--directory", "notes")
    assert "the memories of the global repository are in .memory" in done.stderr
    assert not place.exists()
    for _twice in range(2):
        assert sandbox.run("init", "--global").returncode == 0
    assert git(place, "log", "--format=%s").splitlines() == ["memory: begin"]
    assert git(place, "status", "--porcelain") == ""


def test_the_flag_stands_anywhere(sandbox: Sandbox):
    """Before or after the verb, and in no repository at all."""
    id_ = remembered(sandbox)
    outside = sandbox.path.parent
    for args in (["--global", "list"], ["list", "--global"], ["--json", "--global", "show", id_]):
        done = sandbox.run(*args, cwd=outside, GIT_CEILING_DIRECTORIES=str(outside.parent))
        assert done.returncode == 0, done.stderr
        assert (id_ if "--json" in args else ShortIds((id_,)).shorten(id_)) in done.stdout


def test_two_repositories_are_refused(sandbox: Sandbox):
    """-C and --global cannot both be meant."""
    done = sandbox.run("list", "--global", "-C", ".")
    assert (done.returncode, done.stdout) == (2, "")
    assert "-C DIR and --global are two repositories" in done.stderr


def test_writing_verbs_commit_there(sandbox: Sandbox, place: Path):
    """Nobody else commits in the global repository, so that each change is one commit."""
    id_ = remembered(sandbox)
    for args in (
        ("pin", id_),
        ("supersede", id_, "Deploys run on Fridays only", "--body", "On Fridays only."),
        ("config", "search.limit", "7"),
        ("alias", "add", "idp", "keycloak"),
        ("new", "decision", "Write in short sentences", "--body", "They are read."),
    ):
        done = sandbox.run("--global", *args)
        assert done.returncode == 0, done.stderr
    assert len(git(place, "log", "--format=%s").splitlines()) == 7
    assert git(place, "status", "--porcelain") == ""
    assert {row["title"] for row in sandbox.json("list", "--global")["memories"]} == {
        "Deploys run on Fridays only",
        "Write in short sentences",
    }


def test_what_is_imported_is_global(sandbox: Sandbox, place: Path):
    """Every way in leaves the scope in the file; paths are those of the caller."""
    sandbox.write("CLAUDE.md", "# Style\n\n- Write in short sentences, as people read them.\n")
    done = sandbox.run("import", "claude", "CLAUDE.md", "--global")
    assert done.returncode == 0, done.stderr
    paths = list(place.glob(".memory/**/*.md"))
    memories = [path for path in paths if not path.name.startswith("_")]
    assert memories
    assert all("\nscope: global\n" in path.read_text() for path in memories)
    assert git(place, "status", "--porcelain") == ""


def test_a_hook_of_a_project_does_not_lead_astray(sandbox: Sandbox, place: Path):
    """Git's variables for hooks of the project do not apply to the global repository."""
    sandbox.write("f", "x")
    sandbox.commit()
    env = {"GIT_DIR": str(sandbox.path / ".git"), "GIT_INDEX_FILE": str(sandbox.path / "other")}
    assert sandbox.run("remember", "--global", TEXT, **env).returncode == 0
    assert len(git(place, "log", "--format=%s").splitlines()) == 2
    assert len(sandbox.git("log", "--format=%s").splitlines()) == 1


def test_who_commits_must_be_known(sandbox: Sandbox, place: Path):
    """Without a name nothing is made, and the sentence says what to set."""
    nobody = {key: "" for key in sandbox.env if key.startswith(("GIT_AUTHOR", "GIT_COMMITTER"))}
    done = sandbox.run("remember", "--global", TEXT, EMAIL="", **nobody)
    assert done.returncode == 2
    assert "git has no author name" in done.stderr
    assert "git config --global user.name NAME" in done.stderr
    assert list(place.parent.iterdir()) == []


@pytest.mark.parametrize(
    ("template", "message"),
    [
        ("notes", "MEMTOOL_GLOBAL must be an absolute path, not 'notes'"),
        ("{tmp}/file", "the global repository {tmp}/file cannot be read: Not a directory"),
        (
            "{tmp}/full",
            "cannot use {tmp}/full for global memories: not empty, and not a git repository",
        ),
        (
            "{tmp}/project/inner",
            "cannot use {tmp}/project/inner for global memories: it is inside the repository",
        ),
        (
            "{tmp}/project/.git/x",
            "cannot use {tmp}/project/.git/x for global memories: it is inside the repository",
        ),
        (
            "{tmp}/bare",
            "cannot use {tmp}/bare for global memories: it is not the top of a worktree",
        ),
        ("{tmp}/file/below", "the global repository {tmp}/file/below cannot be"),
        ("/proc/memtool/global", "the global repository /proc/memtool/global cannot be made"),
    ],
)
def test_a_place_that_cannot_be_is_told(
    sandbox: Sandbox, tmp_path: Path, template: str, message: str
):
    """One sentence, a way out, and nothing half made."""
    (tmp_path / "file").write_text("x")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").write_text("x")
    (tmp_path / "bare" / ".git").mkdir(parents=True)
    git(tmp_path, "init", "--quiet", "--bare", "bare/.git")
    before = sorted(tmp_path.rglob("*"))
    named = template.format(tmp=tmp_path)
    done = sandbox.run("remember", "--global", TEXT, MEMTOOL_GLOBAL=named)
    assert (done.returncode, done.stdout) == (2, "")
    assert message.format(tmp=tmp_path) in done.stderr
    assert "hint: " in done.stderr
    assert sorted(tmp_path.rglob("*")) == before


def test_a_place_that_git_ignores_may_lie_inside(sandbox: Sandbox, tmp_path: Path):
    """It may be in a home directory under version control that ignores it."""
    sandbox.write(".gitignore", "/inner\n")
    inner = str(tmp_path / "project" / "inner")
    assert sandbox.run("remember", "--global", TEXT, MEMTOOL_GLOBAL=inner).returncode == 0
    assert sandbox.git("status", "--porcelain", "inner") == ""


def test_no_home_is_no_place(sandbox: Sandbox):
    """Global memories need one; a project gets along without, and without a word."""
    none = {"HOME": "", "XDG_DATA_HOME": ""}
    done = sandbox.run("list", "--global", **none)
    assert done.returncode == 2
    assert "cannot find the global memories: HOME is not set" in done.stderr
    done = sandbox.run("inject", "--prompt", "x", **none)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_a_repository_of_the_user_is_taken_as_it_is(sandbox: Sandbox, tmp_path: Path):
    """One made with git init, or cloned, only gets the memory directory."""
    mine = tmp_path / "mine"
    mine.mkdir()
    git(mine, "init", "--quiet", "--initial-branch=trunk")
    done = sandbox.run("remember", "--global", TEXT, MEMTOOL_GLOBAL=str(mine))
    assert done.returncode == 0, done.stderr
    assert len(git(mine, "log", "--format=%s", "trunk").splitlines()) == 2


def test_a_detached_head_is_read_and_not_written(sandbox: Sandbox, place: Path):
    """A commit on no branch would be lost at the next checkout."""
    id_ = remembered(sandbox)
    git(place, "checkout", "--quiet", "--detach")
    for args in (("remember", "More."), ("pin", id_), ("auto", "off")):
        done = sandbox.run("--global", *args)
        assert done.returncode == 2
        assert "has no branch checked out" in done.stderr
        assert f"hint: git -C {place} switch main" in done.stderr
    assert git(place, "status", "--porcelain") == ""
    assert sandbox.json("list", "--global")["total"] == 1


def test_a_project_that_does_not_know_an_id_points_to_it(sandbox: Sandbox):
    """Whatever the verb, the hint is the command that works."""
    id_ = remembered(sandbox)
    for verb in ("show", "pin", "why"):
        done = sandbox.run(verb, id_)
        assert done.returncode == 2
        assert f"hint: memtool --global {verb} {id_}\n" in done.stderr
    assert "memtool search dec-none" in sandbox.run("show", "dec-none").stderr


def test_hints_of_global_memories_name_the_flag(sandbox: Sandbox):
    """The suggested command works where the first one did."""
    remembered(sandbox)
    done = sandbox.run("--global", "show", "dec-none")
    assert "hint: memtool --global search dec-none\n" in done.stderr


def test_the_api_opens_it(sandbox: Sandbox, place: Path, monkeypatch: pytest.MonkeyPatch):
    """A program gets the same: an absent one is empty, the first write makes it and commits."""
    for name, value in sandbox.env.items():
        monkeypatch.setenv(name, value)
    project = memtool.open(global_=True)
    assert project.list().memories == ()
    assert project.remember(TEXT, dry_run=True).commit is None
    assert not place.exists()
    written = project.remember(TEXT)
    assert written.commit == git(place, "rev-parse", "HEAD").strip()
    assert [row.id for row in project.list().memories] == [written.id]
    assert project.show(written.id).fields["scope"] == "global"


def test_settings_of_the_user_lie_below_those_of_the_project(sandbox: Sandbox):
    """The user's settings apply in all projects that have none; others are the project's alone."""
    sandbox.run("config", "--global", "search.limit", "3")
    sandbox.run("config", "--global", "review.policy", "fail")
    settings = sandbox.context().settings
    assert (settings.count("search.limit"), settings.text("review.policy")) == (3, "warn")
    assert sandbox.json("config", "search.limit")["settings"][0]["is_personal"] is True
    output = sandbox.run("config", "search.limit").stdout
    assert output.startswith("search.limit = 3  (set for all your projects; default 10)")
    sandbox.write(".memory/config.toml", "[search]\nlimit = 8\n")
    assert sandbox.context().settings.count("search.limit") == 8


@pytest.mark.parametrize("data", ["[inject\n", "[inject]\nbudget = 1\n"])
def test_a_broken_file_of_the_user_breaks_no_project(sandbox: Sandbox, place: Path, data: str):
    """The project's memories are injected as ever, with one note."""
    remembered(sandbox)
    (place / ".memory" / "config.toml").write_text(data)
    sandbox.memory("dec-a", "Deploys are slow.\n", title="Deploys")
    done = sandbox.run("inject", "--prompt", "deploys")
    assert done.returncode == 0
    assert "[dec-a] decision, " in done.stdout
    assert done.stderr.startswith(f"memtool: global memories in {place} are passed over: ")
    assert done.stderr.count("\n") == 1
    assert sandbox.run("list", "--global").returncode == 2


def test_a_file_in_the_place_of_the_directory_is_noted_once(sandbox: Sandbox, tmp_path: Path):
    """A wrong variable makes a note, and other memories still work."""
    (tmp_path / "file").write_text("x")
    sandbox.memory("dec-a", "Deploys are slow.\n", title="Deploys")
    done = sandbox.run("inject", "--prompt", "deploys", MEMTOOL_GLOBAL=str(tmp_path / "file"))
    assert "[dec-a] decision, " in done.stdout
    assert done.stderr.startswith(f"memtool: global memories in {tmp_path}/file are passed over: ")
    assert done.stderr.count("\n") == 1


def test_the_place_of_the_user_may_be_a_project(sandbox: Sandbox):
    """There the memories are not shown twice."""
    sandbox.memory("dec-a", "Deploys are slow.\n", title="Deploys")
    ws = sandbox.context(MEMTOOL_GLOBAL=str(sandbox.path))
    assert ws.global_context is None
    done = sandbox.run("inject", "--prompt", "deploys", MEMTOOL_GLOBAL=str(sandbox.path))
    assert done.stdout.count("[dec-a] decision, ") == 1


def test_a_project_looks_once_for_global_memories(
    sandbox: Sandbox, place: Path, monkeypatch: pytest.MonkeyPatch
):
    """Where there are none, that is all it costs."""
    looked = []
    stat = os.stat

    def counted(path, *args, **options):
        if str(path).startswith(str(place)):
            looked.append(path)
        return stat(path, *args, **options)

    monkeypatch.setattr(os, "stat", counted)
    ws = sandbox.context()
    assert (ws.global_context, ws.settings.personal) == (None, {})
    assert looked == [str(place / ".git")]


def test_opening_an_absent_one_asks_for_no_repository(sandbox: Sandbox):
    """Its git knows the settings of the user, and of everything else nothing."""
    ws = Context.at_global(sandbox.env)
    assert not ws.repository.is_created
    assert ws.repository.git.head() == ""
    with pytest.raises(MemtoolError, match="no global memories yet"):
        ws.repository.git.run("log")
