"""The hook inside the real pre-commit framework, offline, and its entry in the configuration."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from conftest import Sandbox, make_memory

from memtool.commands.doctor import doctor
from memtool.commands.install import install, uninstall
from memtool.errors import MemtoolError
from memtool.hosts.diagnostics import ABSENT, GOOD, WARNING, CheckResult
from memtool.hosts.pre_commit import CONFIG, ENTRY, INSTALL_COMMAND
from memtool.memory import document

ROOT = Path(__file__).parents[2]
KEY = "AK" + "IA" + "QWERTYUIOPASDFGH"
PATH = ".memory/decision/2026-02/dec-new.md"


def offered() -> dict[str, dict[str, object]]:
    """Return the hooks that `.pre-commit-hooks.yaml` offers, by id."""
    rows = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    return {row["id"]: row for row in rows}


@pytest.fixture
def framed(sandbox: Sandbox) -> Sandbox:
    """A repository with the pre-commit framework, which runs the hook of this environment."""
    row = dict(offered()["memtool-check"])
    row.pop("minimum_pre_commit_version")
    row |= {"language": "system", "entry": f"{sys.executable} -m {row['entry']}"}
    config = {"repos": [{"repo": "local", "hooks": [row]}]}
    sandbox.write(".pre-commit-config.yaml", yaml.safe_dump(config))
    sandbox.memory("dec-old", "It was so before, for reasons of the time.\n")
    sandbox.write("notes.txt", "noted\n")
    sandbox.commit("begin")
    done = pre_commit(sandbox, "install", "-t", "pre-commit", "-t", "pre-merge-commit")
    assert done.returncode == 0, done.stderr
    return sandbox


@pytest.fixture
def both(framed: Sandbox) -> Sandbox:
    """The framework runs both offered hooks, the redacting one after the check."""
    rows = []
    for row in offered().values():
        row.pop("minimum_pre_commit_version")
        rows.append(row | {"language": "system", "entry": f"{sys.executable} -m {row['entry']}"})
    config = {"repos": [{"repo": "local", "hooks": rows}]}
    framed.write(".pre-commit-config.yaml", yaml.safe_dump(config))
    framed.git("commit", "--quiet", "--no-verify", "-am", "both hooks")
    return framed


def pre_commit(sandbox: Sandbox, *words: str) -> subprocess.CompletedProcess[str]:
    return run(sandbox, sys.executable, "-m", "pre_commit", *words)


def run(sandbox: Sandbox, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        words, cwd=sandbox.path, env=sandbox.env, capture_output=True, text=True, check=False
    )


def test_the_offered_hook_always_runs_and_asks_git() -> None:
    """With `files:` it would be skipped by a commit that only deletes."""
    row = offered()["memtool-check"]
    assert (row["always_run"], row["pass_filenames"]) == (True, False)
    assert (row["language"], row["entry"]) == ("python", "memtool check --staged")
    assert "pre-merge-commit" in row["stages"]  # type: ignore[operator]


def test_our_own_configuration_names_hooks_that_are_here() -> None:
    """This repository uses its own gate."""
    (repo,) = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"]
    hooks = {row["id"]: row["entry"] for row in repo["hooks"]}
    assert repo["repo"] == "local"
    assert hooks["memtool-check"] == "memtool check --staged"
    assert {"ruff-format", "ruff-check", "mypy"} <= set(hooks)


def test_a_secret_is_refused_and_unstaged_work_stays(framed: Sandbox) -> None:
    """The framework sets unstaged changes aside and brings them back."""
    framed.write(PATH, document.write(make_memory("dec-new", f"The key is {KEY}.\n")))
    framed.git("add", PATH)
    framed.write("notes.txt", "not staged\n")
    index = framed.git("ls-files", "--stage")
    done = run(framed, "git", "commit", "-m", "m")
    assert (done.returncode, "secret it contains" in done.stdout + done.stderr) == (1, True)
    assert KEY not in done.stdout + done.stderr
    assert framed.git("ls-files", "--stage") == index
    assert (framed.path / "notes.txt").read_text() == "not staged\n"


def test_a_good_memory_is_committed(framed: Sandbox) -> None:
    """Even if the worktree already has a worse version."""
    data = document.write(make_memory("dec-new", "We keep it in Redis.\n"))
    framed.write(PATH, data)
    framed.git("add", PATH)
    framed.write(PATH, document.write(make_memory("dec-new", f"The key is {KEY}.\n")))
    done = run(framed, "git", "commit", "-m", "m")
    assert done.returncode == 0, done.stdout + done.stderr
    assert framed.git("show", f"HEAD:{PATH}").encode() == data
    assert KEY in (framed.path / PATH).read_text()


def test_a_deletion_alone_is_refused(framed: Sandbox) -> None:
    """The trap of hooks that are given file names."""
    framed.memory("dec-x", "We keep it in Redis.\n")
    framed.memory("dec-y", "Ports are fixed.\n")
    framed.commit("two at once, of which one alone cannot be taken back")
    framed.git("rm", "--quiet", ".memory/decision/2026-02/dec-x.md")
    done = run(framed, "git", "commit", "-m", "m")
    assert (done.returncode, "removed" in done.stdout + done.stderr) == (1, True)


def test_every_way_to_commit_passes_both_hooks(both: Sandbox) -> None:
    """A harmless memory is committed by git in each of its ways, and by a verb."""
    path = both.memory("dec-new", "We keep the carts in Redis.\n")
    both.git("add", path)
    for words in (("-m", "plain"), ("--amend", "--no-edit")):
        done = run(both, "git", "commit", *words)
        assert done.returncode == 0, done.stdout + done.stderr
    for number, words in enumerate((("-am", "all"), ("-m", "path", "--", path))):
        both.memory("dec-new", "We keep the carts in Redis.\n", tags=(f"t{number}",))
        both.write("notes.txt", f"{number}\n")
        done = run(both, "git", "commit", *words)
        assert done.returncode == 0, done.stdout + done.stderr
    done = both.run("remember", "Deploys run on Tuesdays only.", "--commit")
    assert (done.returncode, both.git("log", "-1", "--format=%s").strip()) == (
        0,
        "memory: add Deploys run on Tuesdays only",
    ), done.stderr


def test_a_partly_staged_memory_is_committed_as_staged(both: Sandbox) -> None:
    """The framework sets the rest aside, and the verbs commit their own file alone."""
    path = both.memory("dec-new", "We keep the carts in Redis.\n")
    both.git("add", path)
    both.write("notes.txt", "not staged\n")
    data = (both.path / path).read_text()
    both.write(path, data + "\nMore.\n")
    done = run(both, "git", "commit", "-m", "part")
    assert done.returncode == 0, done.stdout + done.stderr
    assert both.git("show", f"HEAD:{path}") == data
    assert (both.path / path).read_text() == data + "\nMore.\n"
    assert (both.path / "notes.txt").read_text() == "not staged\n"


def test_a_secret_in_a_partial_commit_is_redacted_on_disk_and_not_committed(both: Sandbox) -> None:
    """Nothing is restaged there, so the commit is refused and can be repeated."""
    path = both.memory("dec-new", "We keep the carts in Redis.\n")
    both.git("add", path)
    both.memory("dec-new", f"We keep the carts in Redis.\n\nThe key is {KEY}.\n")
    done = run(both, "git", "commit", "-m", "m", "--", path)
    assert done.returncode == 1
    assert KEY not in done.stdout + done.stderr + (both.path / path).read_text()


@pytest.mark.slow
def test_every_verb_that_commits_passes_both_hooks(both: Sandbox) -> None:
    """The documented set-up accepts the commits of every verb."""
    both.write("adr/0001-x.md", "# 1. Use Kafka for events\n\nAccepted\n\nWe use Kafka.\n")
    words = {
        "new": ("semantic", "Carts expire", "--body", "Carts expire after a day.", "--id", "sem-a"),
        "supersede": ("sem-a", "Carts expire late", "--body", "After a week.", "--id", "sem-b"),
        "confirm": ("sem-b",),
        "pin": ("sem-b",),
        "unpin": ("sem-b",),
        "archive": ("sem-b",),
        "tag": ("sem-b", "--add", "cart"),
        "restore": ("sem-b",),
        "deprecate": ("sem-b",),
        "forget": ("sem-b", "--reason", "it is over"),
        "config": ("search.limit", "7"),
        "alias": ("add", "cart", "basket"),
        "import": ("adr", "adr"),
        "digest": ("--all",),
    }
    removals = [
        ("config", ("purge.after_days", "0")),
        ("purge", ("--apply",)),
        ("new", ("semantic", "Prices", "--body", "Prices hold no taxes.", "--id", "sem-c")),
        ("supersede", ("sem-c", "Taxes", "--body", "Prices hold all taxes.", "--id", "sem-d")),
        ("undo", ("sem-c",)),
    ]
    for verb, args in [*words.items(), *removals]:
        before = both.git("rev-parse", "HEAD")
        done = both.run(verb, *args, "--commit")
        assert done.returncode == 0, (verb, done.stderr)
        is_committed = both.git("rev-parse", "HEAD") != before
        assert is_committed or verb in {"confirm", "digest"}, (verb, done.stdout)
    assert "sem-d" not in both.git("ls-files")
    assert both.git("status", "--porcelain") == "?? adr/\n"


def test_the_refusal_of_a_hook_is_said_in_its_own_words(both: Sandbox) -> None:
    """The framework's first line says that another hook passed."""
    failing = {
        "id": "no",
        "name": "no fun",
        "language": "fail",
        "entry": "no fun today",
        "always_run": True,
    }
    config = yaml.safe_load((both.path / ".pre-commit-config.yaml").read_text())
    config["repos"][0]["hooks"].append(failing)
    both.write(".pre-commit-config.yaml", yaml.safe_dump(config))
    both.git("commit", "--quiet", "--no-verify", "-am", "three hooks")
    done = both.run("remember", "Deploys run on Tuesdays only.", "--commit")
    assert done.returncode == 2
    assert "written but not committed: the hook 'no fun' refused: no fun today" in done.stderr


def test_run_on_all_files(framed: Sandbox) -> None:
    """With nothing staged there is nothing to refuse; with a secret staged there is."""
    done = pre_commit(framed, "run", "--all-files")
    assert done.returncode == 0, done.stdout + done.stderr
    framed.write(PATH, document.write(make_memory("dec-new", f"The key is {KEY}.\n")))
    framed.git("add", PATH)
    assert pre_commit(framed, "run", "--all-files").returncode == 1


OTHERS = "repo: https://example.org/hooks\n    rev: v1\n    hooks:\n"
LAYOUTS = {
    "indented": f"# ours\nrepos:\n  - {OTHERS}      - id: one # first\n      - id: two\n",
    "flush": "repos:\n-   repo: meta\n    hooks:\n    -   id: identity\n    # -   id: more\n",
    "keys after it": "repos:\n- repo: meta\n  hooks:\n  - id: identity\n\n# no\nfail_fast: true\n",
    "no final line feed": "exclude: ^x/\nrepos:\n  - repo: meta\n    hooks: [{id: identity}]",
    "carriage returns": "repos:\r\n  - repo: meta\r\n    hooks:\r\n      - id: identity\r\n",
    "folded text": "repos:\n- repo: local\n  hooks:\n  - id: a\n    name: a\n    language: fail\n"
    "    entry: |\n      no\n\n      - repo: x\n\n\nci:\n  skip: [a]\n",
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_uninstalling_gives_back_the_bytes_of_a_configuration(
    sandbox: Sandbox, layout: str
) -> None:
    """Comments, order and line ends stay; ours is the last repo; a second time changes nothing."""
    path = sandbox.write(CONFIG, LAYOUTS[layout])
    before = path.read_bytes()
    done = install(sandbox.context(), "pre-commit", yes=True)
    assert done.steps == (f"change {CONFIG}",)
    assert "+" in done.diff
    assert not [
        row for row in done.diff.splitlines()[2:] if row.startswith("-") and layout[0] != "n"
    ]
    old, new = yaml.safe_load(before), yaml.safe_load(path.read_bytes())
    assert new == old | {"repos": [*old["repos"], *yaml.safe_load(ENTRY)]}
    assert install(sandbox.context(), "pre-commit").steps == ()
    assert uninstall(sandbox.context(), "pre-commit", yes=True).steps == (f"change {CONFIG}",)
    assert path.read_bytes() == before
    assert uninstall(sandbox.context(), "pre-commit").steps == ()


def test_a_configuration_that_memtool_made_goes_with_the_entry(sandbox: Sandbox) -> None:
    """Where there was none, none is left; pre-commit accepts what was written meanwhile."""
    done = sandbox.run("install", "pre-commit")
    assert (done.returncode, done.stdout) == (0, f"write {CONFIG}\n"), done.stderr
    assert "pre-commit install -t pre-commit -t pre-merge-commit" in done.stderr
    assert pre_commit(sandbox, "validate-config").returncode == 0
    assert sandbox.run("uninstall", "--all", "--yes").returncode == 0
    assert not (sandbox.path / CONFIG).exists()


def test_a_dry_run_shows_the_lines_of_the_entry(sandbox: Sandbox) -> None:
    """As a diff; the file of others changes only with --yes or an answer."""
    path = sandbox.write(CONFIG, LAYOUTS["indented"])
    done = sandbox.run("install", "pre-commit", "--dry-run")
    assert done.returncode == 0, done.stderr
    added = [row[1:] for row in done.stdout.splitlines() if row.startswith("+ ")]
    assert added == [f"  {row}" for row in ENTRY.splitlines()]
    assert sandbox.run("install", "pre-commit").returncode == 2
    assert path.read_text() == LAYOUTS["indented"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("repos: [\n", "pre-commit would refuse"),
        ("fail_fast: true\n", "Missing required key: repos"),
        ("repos:\n- repo: local\n  hooks: 7\n", "Expected array"),
        ("repos: []\n", "on lines of their own"),
        ("repos: [{repo: meta, hooks: [{id: identity}]}]\n", "on lines of their own"),
        ("{repos: [], fail_fast: true}\n", "on lines of their own"),
        (b"repos: \xff\n", "pre-commit would refuse"),
    ],
)
def test_an_odd_configuration_is_refused(sandbox: Sandbox, text: str | bytes, message: str) -> None:
    """In one sentence with a hint, and unchanged."""
    path = sandbox.write(CONFIG, text)
    before = path.read_bytes()
    done = sandbox.run("install", "pre-commit", "--yes")
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr.splitlines()[0]
    assert done.stderr.splitlines()[1].startswith("hint: ")
    assert path.read_bytes() == before


def test_a_hook_of_that_id_counts_whoever_wrote_it(sandbox: Sandbox) -> None:
    """It is not there twice; one that was edited since is left to the user."""
    text = LAYOUTS["indented"].replace("id: two", "id: memtool-check")
    path = sandbox.write(CONFIG, text)
    assert install(sandbox.context(), "pre-commit", yes=True).steps == ()
    with pytest.raises(MemtoolError, match="was edited by hand"):
        uninstall(sandbox.context(), "pre-commit", yes=True)
    assert path.read_text() == text


def test_the_installed_entry_runs_in_the_framework(sandbox: Sandbox) -> None:
    """A commit with a secret is refused, one without is made."""
    for words in (("install", "pre-commit"), ("init", "--commit")):
        assert sandbox.run(*words).returncode == 0
    assert pre_commit(sandbox, "install", "-t", "pre-commit").returncode == 0
    path = {"PATH": f"{Path(sys.executable).parent}:{sandbox.env['PATH']}"}
    for text, expected in ((f"The key is {KEY}.\n", 1), ("We keep it in Redis.\n", 0)):
        sandbox.write(PATH, document.write(make_memory("dec-new", text)))
        sandbox.git("add", "-A")
        done = subprocess.run(
            ["git", "commit", "-m", "m"],
            cwd=sandbox.path,
            env=sandbox.env | path,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == expected, done.stdout + done.stderr
        assert ("secret it contains" in done.stdout + done.stderr) == bool(expected)


def test_doctor_sees_whether_the_framework_runs_the_hook(sandbox: Sandbox) -> None:
    """The entry is shared by all clones, the hook of git is not."""

    def sign() -> CheckResult:
        return next(result for result in doctor(sandbox.context()).signs if result.name == "hooks")

    assert sign().state == ABSENT
    install(sandbox.context(), "pre-commit")
    assert (sign().state, sign().hint) == (WARNING, INSTALL_COMMAND)
    assert pre_commit(sandbox, *INSTALL_COMMAND.split()[1:]).returncode == 0
    assert (sign().state, "memtool-check" in sign().detail) == (GOOD, True)


def test_git_gets_no_second_check_where_the_framework_runs_it(framed: Sandbox) -> None:
    """`install git` adds the merge driver and what the framework has no hook for."""
    folder = framed.path / ".git" / "hooks"
    theirs = (folder / "pre-commit").read_bytes()
    assert install(framed.context(), "git").steps
    ours = {path.name for path in folder.iterdir() if b"by memtool" in path.read_bytes()}
    assert ours == {"post-merge"}
    assert (folder / "pre-commit").read_bytes() == theirs
    assert install(framed.context(), "git").steps == ()
    signs = {result.name: result.state for result in doctor(framed.context()).signs}
    assert (signs["hooks"], signs["merge driver"]) == (GOOD, GOOD)


def test_an_install_reads_each_configuration_once_under_its_lock(sandbox: Sandbox) -> None:
    """Without a question there is one plan, made while other processes wait."""
    from memtool.hosts import install as hosts

    plans: list[str] = []

    def plan_of(name: str) -> hosts.InstallPlan:
        plans.append(name)
        return hosts.InstallPlan(())

    for dry_run in (False, True):
        hosts.install_hosts(
            sandbox.context(), ["git"], plan_of, yes=True, dry_run=dry_run, every=False
        )
    assert plans == ["git", "git"]
