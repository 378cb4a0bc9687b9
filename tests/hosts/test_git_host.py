from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys

import pytest
import yaml
from conftest import PIPED, Sandbox

from memtool.authoring.tree import with_attributes
from memtool.commands.install import install, render, uninstall
from memtool.errors import MemtoolError
from memtool.hosts import diagnostics, git, git_probe
from memtool.hosts.git_hooks import BACKUP_SUFFIX, HOOKS

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
    assert len(install(sandbox.context(), "git").steps) == 6
    during = hooks(sandbox)
    assert set(during) == {*HOOKS, "commit-msg", f"post-merge{BACKUP_SUFFIX}"}
    assert all(during[name][1] & 0o100 for name in HOOKS)
    assert install(sandbox.context(), "git").steps == ()
    assert hooks(sandbox) == during
    assert len(uninstall(sandbox.context(), "git").steps) == 5
    assert hooks(sandbox) == before
    assert render(uninstall(sandbox.context(), "git"), PIPED) == "git: nothing to change"
    assert hooks(sandbox) == before


def test_a_dry_run_says_what_would_be_done(sandbox: Sandbox) -> None:
    """The same steps, and nothing is changed."""
    put(sandbox, "pre-commit", HOOK.format(0))
    before = hooks(sandbox)
    planned = install(sandbox.context(), "git", dry_run=True)
    assert hooks(sandbox) == before
    assert render(planned, PIPED).startswith("would change .git/hooks/pre-commit")
    assert install(sandbox.context(), "git").steps == planned.steps
    during = hooks(sandbox)
    out = uninstall(sandbox.context(), "git", dry_run=True)
    assert hooks(sandbox) == during
    assert uninstall(sandbox.context(), "git").steps == out.steps


SEEN = """\
#!/bin/sh
{ printf '%s\\n' "$0" "$#" "$@"; cat; } > "$(git rev-parse --show-toplevel)/seen"
exit 7
"""


def test_a_hook_of_the_user_behaves_to_the_byte_as_before(sandbox: Sandbox) -> None:
    """Its name, arguments, input and exit code are what they were without memtool."""
    put(sandbox, "pre-commit", SEEN)

    def run() -> tuple[int, str]:
        done = subprocess.run(
            [".git/hooks/pre-commit", "a b", ""],
            cwd=sandbox.path,
            env=sandbox.env,
            check=False,
            input=b"its input",
            capture_output=True,
        )
        return done.returncode, (sandbox.path / "seen").read_text()

    before = run()
    assert before == (7, ".git/hooks/pre-commit\n2\na b\n\nits input")
    install(sandbox.context(), "git")
    assert run() == before


def test_what_an_older_memtool_renamed_gets_its_name_back(sandbox: Sandbox) -> None:
    """A hook that finds its script by its own name runs again, and ours as well."""
    put(sandbox, "pre-commit", SEEN)
    before = hooks(sandbox)["pre-commit"]
    (sandbox.path / ".git/hooks/pre-commit").rename(
        sandbox.path / f".git/hooks/pre-commit{BACKUP_SUFFIX}"
    )
    put(sandbox, "pre-commit", "#!/bin/sh\n# installed by memtool: an older one\n")
    install(sandbox.context(), "git")
    assert set(hooks(sandbox)) == set(HOOKS)
    assert b"memtool check --staged" in hooks(sandbox)["pre-commit"][0]
    uninstall(sandbox.context(), "git")
    assert hooks(sandbox)["pre-commit"] == before


@pytest.mark.parametrize("text", ["#!/usr/bin/env python3\nimport sys\n", "#!/usr/bin/perl\n1;\n"])
def test_a_hook_that_is_no_shell_script_is_left_to_its_owner(sandbox: Sandbox, text: str) -> None:
    """The refusal says what to add, and the answer to it is accepted."""
    put(sandbox, "pre-commit", text)
    before = hooks(sandbox)
    with pytest.raises(MemtoolError, match="is not a shell script") as caught:
        install(sandbox.context(), "git")
    assert "memtool check --staged" in caught.value.hint
    assert hooks(sandbox) == before
    put(sandbox, "pre-commit", f"{text}# memtool check --staged\n")
    install(sandbox.context(), "git")
    assert hooks(sandbox)["pre-commit"][0] == f"{text}# memtool check --staged\n".encode()


def test_an_older_hook_of_ours_is_brought_up_to_date(sandbox: Sandbox) -> None:
    """It is known by its mark and replaced, not kept."""
    install(sandbox.context(), "git")
    current = hooks(sandbox)
    older = "#!/bin/sh\n# installed by memtool: an older one\nexit 1\n"
    put(sandbox, "pre-commit", older, current["pre-commit"][1])
    assert len(install(sandbox.context(), "git").steps) == 1
    assert hooks(sandbox) == current


def test_somebody_elses_hook_over_ours_is_left_alone(sandbox: Sandbox) -> None:
    """Taking memtool out removes only what memtool wrote."""
    install(sandbox.context(), "git")
    put(sandbox, "pre-commit", "#!/bin/sh\n# another tool\n")
    uninstall(sandbox.context(), "git")
    assert hooks(sandbox) == {"pre-commit": (b"#!/bin/sh\n# another tool\n", 0o755)}


def test_the_repositorys_own_hooks_path_is_used(sandbox: Sandbox) -> None:
    """A relative path counts from the top, and the hook there works."""
    sandbox.git("config", "core.hooksPath", "tools/hooks")
    install(sandbox.context(), "git")
    assert set(hooks(sandbox, "tools/hooks")) == set(HOOKS)
    hook_files = (sandbox.path / ".git").glob("hooks/*")
    assert [path.name for path in hook_files if path.suffix != ".sample"] == []
    sandbox.memory("dec-a", supersedes=("dec-nowhere",))
    sandbox.git("add", ".memory")
    done = subprocess.run(
        ["git", "commit", "-m", "m"],
        cwd=sandbox.path,
        env=sandbox.env,
        check=False,
        capture_output=True,
    )
    assert (done.returncode, b"dangling" in done.stdout + done.stderr) == (1, True)


def test_hooks_of_all_repositories_are_not_touched(sandbox: Sandbox) -> None:
    """A global core.hooksPath belongs to the user."""
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
    """The hook runs at the top of the worktree, and must not import modules from there."""
    install(sandbox.context(), "git")
    for name in ("memtool/__init__.py", "memtool/cli/main.py", "sys.py", "os.py", "json.py"):
        sandbox.write(name, "open('owned', 'w')\nraise SystemExit(0)\n")
    sandbox.memory("dec-a", supersedes=("dec-nowhere",))
    sandbox.git("add", ".")
    done = subprocess.run(
        ["git", "commit", "-m", "m"],
        cwd=sandbox.path,
        env=sandbox.env,
        check=False,
        capture_output=True,
    )
    assert (done.returncode, (sandbox.path / "owned").exists()) == (1, False)


def without_python(sandbox: Sandbox) -> None:
    """Let the hooks look for memtool in an environment that is gone."""
    for name in HOOKS:
        place = sandbox.path / ".git/hooks" / name
        rows = place.read_text().split("\n")
        place.write_text(
            "\n".join(
                "python=/nowhere/python" if row.startswith("python=") else row for row in rows
            )
        )


@pytest.mark.parametrize("before", ["", "#!/bin/sh\nexit 0\n"])
def test_a_memtool_that_is_gone_refuses_only_memories(sandbox: Sandbox, before: str) -> None:
    """Without it nothing is checked: what touches a memory waits, everything else is committed."""
    if before:
        put(sandbox, "pre-commit", before)
    install(sandbox.context(), "git")
    without_python(sandbox)

    def commit(*words: str) -> tuple[int, bool]:
        done = subprocess.run(
            ["git", *words],
            cwd=sandbox.path,
            check=False,
            capture_output=True,
            env=sandbox.env | {"PATH": "/usr/bin:/bin"},
        )
        return done.returncode, b"memtool is not installed" in done.stderr

    sandbox.write("a", "a")
    sandbox.git("add", "a")
    assert commit("commit", "-m", "m") == (0, False)
    sandbox.git("checkout", "--quiet", "-b", "side")
    sandbox.memory("dec-a")
    sandbox.git("add", ".memory")
    assert commit("commit", "-m", "m") == (1, True)
    sandbox.git("commit", "--quiet", "--no-verify", "-m", "m")
    sandbox.git("checkout", "--quiet", "-b", "code", "main")
    sandbox.write("b", "b")
    sandbox.git("add", "b")
    assert commit("commit", "-m", "m") == (0, False)
    sandbox.git("checkout", "--quiet", "main")
    assert commit("merge", "--no-ff", "--no-edit", "code") == (0, False)
    assert commit("merge", "--no-ff", "--no-edit", "side") == (1, True)


def test_an_environment_without_memtool_is_gone_as_well(sandbox: Sandbox) -> None:
    """A Python that was made anew is there, and memtool is not in it."""
    install(sandbox.context(), "git")
    without_python(sandbox)
    for name in HOOKS:
        place = sandbox.path / ".git/hooks" / name
        place.write_text(place.read_text().replace("/nowhere/python", "/work/python"))
    bare = sandbox.path.parent / "python"
    bare.write_text(f'#!/bin/sh\nexec "{sys.executable}" -S "$@"\n')
    bare.chmod(0o755)
    for name in HOOKS:
        place = sandbox.path / ".git/hooks" / name
        place.write_text(place.read_text().replace("/work/python", f"'{bare}'"))
    sandbox.write("a", "a")
    sandbox.git("add", "a")
    done = subprocess.run(
        ["git", "commit", "-m", "m"],
        cwd=sandbox.path,
        check=False,
        capture_output=True,
        env=sandbox.env | {"PATH": "/usr/bin:/bin"},
    )
    assert (done.returncode, b"Traceback" in done.stderr) == (0, False)


HUSKY_HOOK = '#!/usr/bin/env sh\n. "$(dirname "$0")/h"'
HUSKY_H = """\
#!/usr/bin/env sh
n=$(basename "$0")
s=$(dirname "$(dirname "$0")")/$n
[ ! -f "$s" ] && exit 0
sh -e "$s" "$@"
exit $?
"""


def husky(sandbox: Sandbox) -> None:
    """Write what husky 9 makes, and a check of the team."""
    for name in HOOKS:
        sandbox.write(f".husky/_/{name}", HUSKY_HOOK).chmod(0o755)
    sandbox.write(".husky/_/h", HUSKY_H)
    sandbox.write(".husky/pre-commit", "echo TEAM LINT RAN\ntest ! -e LINT_FAILS\n")
    sandbox.git("config", "core.hooksPath", ".husky/_")


def tree(sandbox: Sandbox, folder: str) -> dict[str, bytes]:
    place = sandbox.path / folder
    return {
        str(path.relative_to(place)): path.read_bytes()
        for path in sorted(place.rglob("*"))
        if path.is_file()
    }


def committed(sandbox: Sandbox, *options: str) -> tuple[int, str]:
    done = subprocess.run(
        ["git", "commit", "-m", "m", *options],
        cwd=sandbox.path,
        env=sandbox.env,
        check=False,
        capture_output=True,
        text=True,
    )
    return done.returncode, done.stdout + done.stderr


def test_husky_keeps_its_hooks_and_gets_an_entry_of_its_own(sandbox: Sandbox) -> None:
    """Nothing is written into the folder that husky makes anew, and both run at a commit."""
    husky(sandbox)
    before, made = tree(sandbox, ".husky"), tree(sandbox, ".husky/_")
    install(sandbox.context(), "git")
    assert tree(sandbox, ".husky/_") == made
    assert sys.executable not in (sandbox.path / ".husky/pre-commit").read_text()
    sign = diagnostics.hooks(sandbox.context())
    assert (sign.state, sign.detail) == ("good", f"{', '.join(HOOKS)} through husky")
    sandbox.write("LINT_FAILS", "")
    sandbox.git("add", ".")
    code, output = committed(sandbox)
    assert code != 0
    assert "TEAM LINT RAN" in output
    (sandbox.path / "LINT_FAILS").unlink()
    sandbox.memory("dec-a", supersedes=("dec-nowhere",))
    sandbox.git("add", "--all")
    code, output = committed(sandbox)
    assert (code != 0, "dangling" in output) == (True, True)
    assert install(sandbox.context(), "git").steps == ()
    uninstall(sandbox.context(), "git")
    assert tree(sandbox, ".husky") == before


def test_lefthook_gets_a_local_file(sandbox: Sandbox) -> None:
    """Its hooks stay; a local file of the user is not edited, and the lines are told."""
    sandbox.write("lefthook.yml", "pre-commit:\n  commands:\n    lint:\n      run: true\n")
    put(sandbox, "pre-commit", '#!/bin/sh\ncall_lefthook run "pre-commit" "$@"\n')
    before = hooks(sandbox)
    assert install(sandbox.context(), "git").steps[0] == "write lefthook-local.yml"
    assert hooks(sandbox) == before
    written = yaml.safe_load((sandbox.path / "lefthook-local.yml").read_text())
    for name in ("pre-commit", "pre-merge-commit"):
        assert "memtool check --staged" in written[name]["commands"]["memtool"]["run"]
    sign = diagnostics.hooks(sandbox.context())
    assert (sign.state, sign.hint) == ("warning", "lefthook install")
    assert install(sandbox.context(), "git").steps == ()
    uninstall(sandbox.context(), "git")
    assert not (sandbox.path / "lefthook-local.yml").exists()
    sandbox.write(".lefthook-local.yaml", "pre-push: {}\n")
    with pytest.raises(MemtoolError, match=r"lefthook-local\.yaml is yours") as caught:
        install(sandbox.context(), "git")
    assert "pre-merge-commit:" in caught.value.hint


@pytest.mark.parametrize(
    ("file", "text", "hook", "entry"),
    [
        (
            "package.json",
            '{"simple-git-hooks": {"pre-commit": "true"}}',
            "#!/bin/sh\ntrue\n",
            '{"simple-git-hooks": {"pre-commit": "memtool check --staged"}}',
        ),
        (
            ".overcommit.yml",
            "PreCommit: {}\n",
            "#!/usr/bin/env ruby\n# Overcommit\n",
            "PreCommit: {MemtoolCheck: {command: [memtool check --staged]}}\n",
        ),
    ],
)
def test_tools_whose_files_are_not_edited_are_told_the_lines(
    sandbox: Sandbox, file: str, text: str, hook: str, entry: str
) -> None:
    """Their hooks stay, and the entry that their user makes is found."""
    sandbox.write(file, text)
    put(sandbox, "pre-commit", hook)
    before = hooks(sandbox)
    with pytest.raises(MemtoolError, match="rewrites the hooks of this repository") as caught:
        install(sandbox.context(), "git")
    assert "memtool check --staged" in caught.value.hint
    assert hooks(sandbox) == before
    sandbox.write(file, entry)
    install(sandbox.context(), "git")
    assert hooks(sandbox)["pre-commit"] == before["pre-commit"]


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
            ["git", "merge", "--no-edit", name],
            cwd=sandbox.path,
            env=sandbox.env,
            check=False,
            capture_output=True,
            text=True,
        )
        output = done.stdout + done.stderr
        return (
            done.returncode,
            output.count("Both supersede dec-a"),
            output.count("\n  memtool resolve dec-"),
        )

    assert merge("side") == (0, 1, 1)
    sandbox.git("checkout", "--quiet", "behind")
    assert merge("main") == (0, 1, 1)
    sandbox.git("checkout", "--quiet", "-b", "calm")
    sandbox.memory("dec-d", "Queues are drained at night.\n")
    sandbox.commit()
    sandbox.git("checkout", "--quiet", "behind")
    assert merge("calm") == (0, 0, 0)


def test_unwritable_hooks_are_one_sentence(sandbox: Sandbox) -> None:
    """A file in place of the directory is reported in a sentence."""
    shutil.rmtree(sandbox.path / ".git" / "hooks", ignore_errors=True)
    sandbox.write(".git/hooks", "a file")
    done = sandbox.run("install", "git")
    assert (done.returncode, "cannot change " in done.stderr) == (2, True)
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
    assert git.read_driver(sandbox.context().repository) == git.build_driver()
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
    sandbox.write(
        ".memory/config.toml",
        """\
[trust]
allowed_signers = "keys/signers"
[[trust.rules]]
match = "type:decision,state tag:x"
require = "signed"
[[trust.rules]]
match = "path:.memory/semantic/2026-01"
require = "trusted"
""",
    )
    planned = install(sandbox.context(), "git", codeowners="@ada", dry_run=True)
    assert "change .github/CODEOWNERS" in planned.steps
    added = [row for row in planned.diff.splitlines() if row.startswith("+/")]
    assert added == [
        "+/.memory/decision/ @ada",
        "+/.memory/state/ @ada",
        "+/.memory/semantic/2026-01 @ada",
        "+/.memory/config.toml @ada",
        "+/.gitattributes @ada",
        "+/keys/signers @ada",
        "+/.github/CODEOWNERS @ada",
    ]
    with pytest.raises(MemtoolError, match=r"\.github/CODEOWNERS is not only memtool's"):
        install(sandbox.context(), "git", codeowners="@ada")
    assert (sandbox.path / ".github/CODEOWNERS").read_text() == "* @ada\n"


def test_a_rule_that_is_no_folder_owns_all_memories(sandbox: Sandbox) -> None:
    """Forges know paths only, so less would not be what the rule says."""
    sandbox.write(".memory/config.toml", '[[trust.rules]]\nmatch = "tag:x"\nrequire = "signed"\n')
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
    """A link may lead anywhere; other hosts have no such lines."""
    (sandbox.path / "CODEOWNERS").symlink_to("elsewhere")
    with pytest.raises(MemtoolError, match="or is a link"):
        install(sandbox.context(), "git", codeowners="@ada", yes=True)
    with pytest.raises(MemtoolError, match="is an option of install git"):
        install(sandbox.context(), "claude", codeowners="@ada", yes=True)


def test_a_probe_proves_that_both_hooks_run(sandbox: Sandbox) -> None:
    """Both are refused in a worktree that is gone afterwards, and nothing of the user changes."""
    sandbox.memory("dec-a")
    sandbox.commit()
    sandbox.write("mine", "staged")
    sandbox.git("add", "mine")

    def state() -> tuple[str, ...]:
        return tuple(
            sandbox.git(*words)
            for words in (
                ["rev-parse", "HEAD"],
                ["status", "--porcelain"],
                ["worktree", "list"],
                ["show-ref"],
            )
        )

    before = state()
    done = sandbox.run("doctor", "--probe")
    assert (done.returncode, "nothing was run" in done.stderr) == (2, True)
    assert [sign.state for sign in git_probe.run_probe(sandbox.context())] == ["broken", "broken"]
    install(sandbox.context(), "git")
    sandbox.git("checkout", "--quiet", "--", ".")
    assert [sign.state for sign in git_probe.run_probe(sandbox.context())] == ["good", "good"]
    put(sandbox, "pre-merge-commit", "#!/bin/sh\necho lint is red >&2\nexit 1\n")
    signs = git_probe.run_probe(sandbox.context())
    assert [sign.state for sign in signs] == ["good", "warning"]
    assert "lint is red" in signs[1].detail
    assert state()[2] == before[2]
    assert (state()[0], state()[3]) == (before[0], before[3])
    assert "A  mine" in state()[1]


def test_a_probe_goes_the_way_of_husky(sandbox: Sandbox) -> None:
    """The folder of its hooks is in no commit, and belongs to this worktree."""
    husky(sandbox)
    sandbox.write(".husky/_/.gitignore", "*")
    sandbox.git("add", ".husky")
    sandbox.git("commit", "--quiet", "--no-verify", "-m", "begin")
    assert [sign.state for sign in git_probe.run_probe(sandbox.context())] == ["broken", "broken"]
    install(sandbox.context(), "git")
    assert [sign.state for sign in git_probe.run_probe(sandbox.context())] == ["good", "good"]


@pytest.mark.parametrize("written", [b"", b"# mine\n*.log\n"])
def test_uninstall_leaves_the_clone_as_it_was(sandbox: Sandbox, written: bytes) -> None:
    """Apart from memtool's own directory, which has the sessions."""
    exclude = sandbox.path / ".git/info/exclude"
    exclude.unlink(missing_ok=True)
    if written:
        exclude.parent.mkdir(exist_ok=True)
        exclude.write_bytes(written)

    def read_all() -> dict[str, bytes]:
        folder = sandbox.path / ".git"
        paths = [folder / "config", exclude, *(folder / "hooks").rglob("*")]
        return {str(path): path.read_bytes() for path in paths if path.is_file()}

    before = read_all()
    sandbox.run("init")
    sandbox.run("install", "git")
    sandbox.run("remember", "Queues are drained at night.")
    assert read_all() != before
    sandbox.run("uninstall", "git")
    assert read_all() == before
