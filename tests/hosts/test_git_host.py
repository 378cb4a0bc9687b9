from __future__ import annotations

import os
import shutil
import stat
import subprocess

import pytest
from conftest import Sandbox

from memtool.authoring.tree import with_attributes
from memtool.commands.install import install, render, uninstall
from memtool.errors import MemtoolError
from memtool.hosts import git
from memtool.hosts.git import HOOKS, KEPT

HOOK = '#!/bin/sh\necho theirs ran with "$@" >> "$(git rev-parse --show-toplevel)/ran"\nexit {}\n'


def hooks(sandbox: Sandbox, folder: str = ".git/hooks") -> dict[str, tuple[bytes, int]]:
    place = sandbox.path / folder
    return {
        path.name: (path.read_bytes(), stat.S_IMODE(path.stat().st_mode))
        for path in sorted(place.iterdir())
        if not path.name.endswith(".sample")
    }


def put(sandbox: Sandbox, name: str, text: str, mode: int = 0o755) -> None:
    path = sandbox.write(f".git/hooks/{name}", text)
    path.chmod(mode)


def test_installing_and_taking_out_leaves_no_trace(sandbox: Sandbox) -> None:
    """Every byte and every permission is as before, and each may be done twice."""
    put(sandbox, "pre-commit", HOOK.format(0))
    put(sandbox, "post-merge", "#!/bin/sh\n", 0o644)
    put(sandbox, "commit-msg", HOOK.format(0))
    before = hooks(sandbox)
    assert len(install(sandbox.context(), "git").steps) == 7
    during = hooks(sandbox)
    assert set(during) == {*HOOKS, "commit-msg", f"pre-commit{KEPT}", f"post-merge{KEPT}"}
    assert all(during[name][1] & 0o100 for name in HOOKS)
    assert install(sandbox.context(), "git").steps == ()
    assert hooks(sandbox) == during
    assert len(uninstall(sandbox.context(), "git").steps) == 6
    assert hooks(sandbox) == before
    assert render(uninstall(sandbox.context(), "git")) == "git: nothing to change"
    assert hooks(sandbox) == before


def test_a_dry_run_says_what_would_be_done(sandbox: Sandbox) -> None:
    """The same steps, and nothing is changed."""
    put(sandbox, "pre-commit", HOOK.format(0))
    before = hooks(sandbox)
    planned = install(sandbox.context(), "git", dry_run=True)
    assert hooks(sandbox) == before
    assert render(planned).startswith("would rename ")
    assert install(sandbox.context(), "git").steps == planned.steps
    during = hooks(sandbox)
    out = uninstall(sandbox.context(), "git", dry_run=True)
    assert hooks(sandbox) == during
    assert uninstall(sandbox.context(), "git").steps == out.steps


@pytest.mark.parametrize("status", [0, 1])
def test_a_hook_that_was_there_still_runs_first(sandbox: Sandbox, status: int) -> None:
    """It gets its arguments, and its refusal counts."""
    put(sandbox, "pre-commit", HOOK.format(status))
    install(sandbox.context(), "git")
    sandbox.memory("dec-a")
    sandbox.git("add", ".memory")
    done = subprocess.run(
        ["git", "commit", "-m", "m"], cwd=sandbox.path, env=sandbox.env, check=False,
        capture_output=True,
    )  # fmt: skip
    assert (done.returncode, (sandbox.path / "ran").exists()) == (status, True)


def test_an_older_hook_of_ours_is_brought_up_to_date(sandbox: Sandbox) -> None:
    """It is known by its mark and replaced, not kept."""
    install(sandbox.context(), "git")
    current = hooks(sandbox)
    older = "#!/bin/sh\n# installed by memtool: an older one\nexit 1\n"
    put(sandbox, "pre-commit", older, current["pre-commit"][1])
    assert len(install(sandbox.context(), "git").steps) == 1
    assert hooks(sandbox) == current


def test_somebody_elses_hook_over_ours_is_left_alone(sandbox: Sandbox) -> None:
    """Taking memtool out removes only what memtool wrote; a second one to keep is refused."""
    put(sandbox, "pre-commit", HOOK.format(0))
    install(sandbox.context(), "git")
    put(sandbox, "pre-commit", "#!/bin/sh\n# another tool\n")
    with pytest.raises(MemtoolError, match="somebody else's"):
        install(sandbox.context(), "git")
    uninstall(sandbox.context(), "git")
    assert hooks(sandbox)["pre-commit"][0] == b"#!/bin/sh\n# another tool\n"
    assert set(hooks(sandbox)) == {"pre-commit", f"pre-commit{KEPT}"}


def test_the_repositorys_own_hooks_path_is_used(sandbox: Sandbox) -> None:
    """A relative path counts from the top, and the hook there works."""
    sandbox.git("config", "core.hooksPath", "tools/hooks")
    install(sandbox.context(), "git")
    assert set(hooks(sandbox, "tools/hooks")) == set(HOOKS)
    left = (sandbox.path / ".git").glob("hooks/*")
    assert [path.name for path in left if path.suffix != ".sample"] == []
    sandbox.memory("dec-a", supersedes=("dec-nowhere",))
    sandbox.git("add", ".memory")
    done = subprocess.run(
        ["git", "commit", "-m", "m"], cwd=sandbox.path, env=sandbox.env, check=False,
        capture_output=True,
    )  # fmt: skip
    assert (done.returncode, b"dangling" in done.stdout + done.stderr) == (1, True)


def test_hooks_of_all_repositories_are_not_touched(sandbox: Sandbox) -> None:
    """A global core.hooksPath is somebody's own set up."""
    shared = sandbox.path.parent / "shared"
    shared.mkdir()
    settings = sandbox.path.parent / "gitconfig"
    settings.write_text(f"[core]\n\thooksPath = {shared}\n")
    with pytest.raises(MemtoolError, match="for all repositories"):
        install(sandbox.context(GIT_CONFIG_GLOBAL=str(settings)), "git")
    assert list(shared.iterdir()) == []


def test_a_linked_worktree_has_the_hooks_of_its_repository(sandbox: Sandbox) -> None:
    """Installing there is installing everywhere."""
    sandbox.write(".gitattributes", with_attributes(b"", ".memory"))
    sandbox.memory("dec-a")
    sandbox.commit()
    sandbox.git("worktree", "add", "--quiet", "../linked")
    linked = Sandbox(sandbox.path.parent / "linked", sandbox.env)
    install(linked.context(), "git")
    assert set(hooks(sandbox)) == set(HOOKS)
    assert install(sandbox.context(), "git").steps == ()


def test_a_path_with_blanks_and_quotes_works(sandbox: Sandbox) -> None:
    """The directory of a repository may be called anything."""
    odd = sandbox.path.parent / 'it\'s a "project" $HOME'
    odd.mkdir()
    there = Sandbox(odd, sandbox.env)
    there.git("init", "--quiet")
    put(there, "pre-commit", HOOK.format(0))
    install(there.context(), "git")
    there.memory("dec-a")
    there.git("add", ".")
    there.git("commit", "--quiet", "--message", "m")
    assert (odd / "ran").exists()


def test_a_repository_cannot_slip_its_own_memtool_in(sandbox: Sandbox) -> None:
    """The hook runs at the top of the worktree, whose modules must not be imported."""
    install(sandbox.context(), "git")
    for name in ("memtool/__init__.py", "memtool/cli/main.py", "sys.py", "os.py", "json.py"):
        sandbox.write(name, "open('owned', 'w')\nraise SystemExit(0)\n")
    sandbox.memory("dec-a", supersedes=("dec-nowhere",))
    sandbox.git("add", ".")
    done = subprocess.run(
        ["git", "commit", "-m", "m"], cwd=sandbox.path, env=sandbox.env, check=False,
        capture_output=True,
    )  # fmt: skip
    assert (done.returncode, (sandbox.path / "owned").exists()) == (1, False)


def test_a_memtool_that_is_gone_is_told(sandbox: Sandbox) -> None:
    """Without it nothing is checked, so the commit waits until somebody decides."""
    install(sandbox.context(), "git")
    for name in HOOKS:
        place = sandbox.path / ".git/hooks" / name
        rows = place.read_text().split("\n")
        place.write_text("\n".join(
            "python=/nowhere/python" if row.startswith("python=") else row for row in rows
        ))  # fmt: skip
    sandbox.write("a", "a")
    sandbox.git("add", "a")
    done = subprocess.run(
        ["git", "commit", "-m", "m"], cwd=sandbox.path, check=False, capture_output=True,
        env=sandbox.env | {"PATH": "/usr/bin:/bin"},
    )  # fmt: skip
    assert (done.returncode, b"memtool is not installed" in done.stderr) == (1, True)


def test_a_merge_tells_what_it_brought(sandbox: Sandbox) -> None:
    """Clean merges are checked before they are made, fast-forwards after they came.

    What contradicts each other since is shown side by side, and nothing where nothing does.
    """
    sandbox.memory("dec-a", "Sessions live in Redis.\n")
    sandbox.commit()
    install(sandbox.context(), "git")
    sandbox.git("checkout", "--quiet", "-b", "side")
    sandbox.memory("dec-b", "Sessions live in Postgres.\n", supersedes=("dec-a",))
    sandbox.commit()
    sandbox.git("checkout", "--quiet", "main")
    sandbox.memory("dec-c", "Sessions live in signed cookies.\n", supersedes=("dec-a",))
    sandbox.commit()
    sandbox.git("branch", "--quiet", "behind")

    def merge(name: str) -> tuple[int, int, int]:
        done = subprocess.run(
            ["git", "merge", "--no-edit", name], cwd=sandbox.path, env=sandbox.env, check=False,
            capture_output=True, text=True,
        )  # fmt: skip
        said = done.stdout + done.stderr
        return (
            done.returncode,
            said.count("both replace dec-a"),
            said.count("memtool resolve dec-b"),
        )

    assert merge("side") == (0, 3, 1)
    sandbox.git("checkout", "--quiet", "behind")
    assert merge("main") == (0, 2, 1)
    sandbox.git("checkout", "--quiet", "-b", "calm")
    sandbox.memory("dec-d", "Queues are drained at night.\n")
    sandbox.commit()
    sandbox.git("checkout", "--quiet", "behind")
    assert merge("calm") == (0, 0, 0)


def test_unwritable_hooks_are_one_sentence(sandbox: Sandbox) -> None:
    """A file where the directory should be is told, not traced."""
    shutil.rmtree(sandbox.path / ".git" / "hooks", ignore_errors=True)
    sandbox.write(".git/hooks", "a file")
    done = sandbox.run("install", "git")
    assert (done.returncode, "cannot be changed" in done.stderr) == (2, True)
    assert os.listdir(sandbox.path / ".memory") == []


def test_the_merge_driver_is_set_up_and_taken_out_again(sandbox: Sandbox) -> None:
    """The settings of the clone get their bytes back; the attribute, which is shared, stays."""
    sandbox.write(".gitattributes", "*.png binary")
    config = sandbox.path / ".git/config"
    config.write_text(config.read_text() + "# mine\n[alias]\n\tst = status\n")
    before = config.read_bytes()
    planned = install(sandbox.context(), "git", dry_run=True)
    assert planned.steps[-2:] == ("change .git/config", "change .gitattributes")
    assert config.read_bytes() == before
    install(sandbox.context(), "git")
    attributes = (sandbox.path / ".gitattributes").read_text()
    assert attributes == "*.png binary\n.memory/** -text\n.memory/**/*.md merge=memtool\n"
    assert git.driver_of(sandbox.context().repository) == git.driver()
    assert git.is_driver_named(sandbox.context().repository, ".memory")
    sandbox.git("config", "merge.memtool.driver", "memtool merge-file %O %A %B")
    assert install(sandbox.context(), "git").steps == ("change .git/config",)
    assert install(sandbox.context(), "git").steps == ()
    assert "change .git/config" in uninstall(sandbox.context(), "git").steps
    assert config.read_bytes() == before
    assert (sandbox.path / ".gitattributes").read_text() == attributes


def test_the_driver_is_not_named_where_no_memories_are(sandbox: Sandbox) -> None:
    """A repository without a memory directory gets no line into a file that others share."""
    (sandbox.path / ".memory").rmdir()
    install(sandbox.context(), "git")
    assert not (sandbox.path / ".gitattributes").exists()


OWNED = """\
# >>> memtool: who must review changes of memories
/.memory/decision/ @shop/payments
/.memory/config.toml @shop/payments
/.gitattributes @shop/payments
/CODEOWNERS @shop/payments
# <<< memtool
"""


@pytest.mark.parametrize(
    "before", [None, b"", b"\n", b"* @ada\n", b"* @ada", b"* @ada\r\n", b"\xff"]
)
def test_lines_for_code_owners_come_and_go(sandbox: Sandbox, before: bytes | None) -> None:
    """They are at the end, once; taken out, every byte is as before."""
    path = sandbox.path / "CODEOWNERS"
    if before is not None:
        path.write_bytes(before)
    install(sandbox.context(), "git", codeowners="@shop/payments", yes=True)
    during = path.read_bytes()
    assert during.endswith((OWNED.rstrip("\n").encode(), OWNED.encode()))
    assert install(sandbox.context(), "git", codeowners="@shop/payments").steps == ()
    install(sandbox.context(), "git", codeowners="@shop/payments,ada@example.org", yes=True)
    assert path.read_bytes().count(b"/.memory/decision/ @shop/payments ada@example.org\n") == 1
    assert path.read_bytes().count(b">>> memtool") == 1
    uninstall(sandbox.context(), "git")
    assert (path.read_bytes() if path.exists() else None) == before


def test_the_file_that_the_forge_reads_gets_the_lines(sandbox: Sandbox) -> None:
    """Its first place counts, lines of others stay, and the folders are those of the rules."""
    sandbox.write(".github/CODEOWNERS", "* @ada\n")
    sandbox.write("docs/CODEOWNERS", "* @bob\n")
    sandbox.write(".memory/config.toml", """\
[trust]
allowed_signers = "keys/signers"
[[trust.rules]]
match = "type:decision,state tag:x"
require = "signed"
[[trust.rules]]
match = "path:.memory/semantic/2026-01"
require = "trusted"
""")  # fmt: skip
    planned = install(sandbox.context(), "git", codeowners="@ada", dry_run=True)
    assert "change .github/CODEOWNERS" in planned.steps
    added = [row for row in planned.diff.splitlines() if row.startswith("+/")]
    assert added == [
        "+/.memory/decision/ @ada", "+/.memory/state/ @ada", "+/.memory/semantic/2026-01 @ada",
        "+/.memory/config.toml @ada", "+/.gitattributes @ada", "+/keys/signers @ada",
        "+/.github/CODEOWNERS @ada",
    ]  # fmt: skip
    with pytest.raises(MemtoolError, match=r"\.github/CODEOWNERS is not memtool's alone"):
        install(sandbox.context(), "git", codeowners="@ada")
    assert (sandbox.path / ".github/CODEOWNERS").read_text() == "* @ada\n"


def test_a_rule_that_is_no_folder_owns_all_memories(sandbox: Sandbox) -> None:
    """Forges know paths only, so less would not be what the rule says."""
    sandbox.write(".memory/config.toml",
                  '[[trust.rules]]\nmatch = "tag:x"\nrequire = "signed"\n')  # fmt: skip
    install(sandbox.context(), "git", codeowners="@ada", yes=True)
    rows = (sandbox.path / "CODEOWNERS").read_text().splitlines()[1:-1]
    assert rows == ["/.memory/ @ada", "/.gitattributes @ada", "/CODEOWNERS @ada"]


@pytest.mark.parametrize("team", ["", " ", "payments", "@", "@a b", "@a\n* @eve", "a@b", "@a #x"])
def test_who_owns_is_not_guessed(sandbox: Sandbox, team: str) -> None:
    """Nobody, or what no forge takes for a name, changes nothing."""
    with pytest.raises(MemtoolError, match="code owner"):
        install(sandbox.context(), "git", codeowners=team, yes=True)
    assert not (sandbox.path / "CODEOWNERS").exists()


def test_a_link_for_code_owners_is_refused(sandbox: Sandbox) -> None:
    """What it leads to may be anybody's; another host has no such lines."""
    (sandbox.path / "CODEOWNERS").symlink_to("elsewhere")
    with pytest.raises(MemtoolError, match="or it is a link"):
        install(sandbox.context(), "git", codeowners="@ada", yes=True)
    with pytest.raises(MemtoolError, match="belongs to git"):
        install(sandbox.context(), "claude", codeowners="@ada", yes=True)
