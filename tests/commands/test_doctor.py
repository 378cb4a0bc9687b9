"""The doctor: what is absent, old or broken is told, and nothing else is."""

from __future__ import annotations

import errno
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import PIPED, Keyring, Sandbox

from memtool import installation
from memtool.agents import AGENTS
from memtool.commands.doctor import doctor, render
from memtool.commands.install import install
from memtool.hosts import diagnostics
from memtool.hosts.diagnostics import ABSENT, BROKEN, GOOD, WARNING, CheckResult
from memtool.hosts.install import load_host
from memtool.store import files
from memtool.store.context import Context


@pytest.fixture
def ready(unhurried: Sandbox) -> Sandbox:
    """A repository with a memory, and this memtool on the path."""
    sandbox = unhurried
    sandbox.memory("dec-a", "Sessions live in Redis.\n", title="Keep sessions in Redis")
    sandbox.commit()
    sandbox.env["PATH"] = f"{Path(sys.executable).parent}:/usr/bin:/bin"
    return sandbox


def signs(sandbox: Sandbox, host: str = "", **env: str) -> dict[tuple[str, str], CheckResult]:
    results = doctor(sandbox.context(**env), host).signs
    return {(sign.area, sign.name): sign for sign in results}


def test_a_fresh_repository_is_fine(ready: Sandbox) -> None:
    """Parts that are not installed are absent, not broken."""
    results = signs(ready)
    assert {sign.state for sign in results.values()} <= {GOOD, ABSENT, WARNING}
    assert results["repository", "index"].detail == "1 memory, as in the files"
    assert results["repository", "hooks"].hint == "memtool install git"
    assert ready.run("doctor").returncode == 0


@pytest.mark.parametrize("host", AGENTS)
@pytest.mark.parametrize("user", [False, True])
def test_an_installed_host_works(ready: Sandbox, host: str, *, user: bool) -> None:
    """Its hooks are run, and what the agent would see is shown."""
    install(ready.context(), host, user=user)
    report = doctor(ready.context(), host)
    assert {sign.state for sign in report.signs} == {GOOD}
    assert any("dec-a" in sign.shown for sign in report.signs) == (host != "cline")
    expected = "nothing to say" if host == "cline" else "the agent sees"  # nothing governs a file
    assert expected in render(report, PIPED)
    assert report.exit_code == 0


def test_a_rehearsal_leaves_no_trace(ready: Sandbox) -> None:
    """Shown memories and the time of the last session are as before."""
    install(ready.context(), "claude")
    doctor(ready.context(), "claude")
    first = [sign.shown for sign in doctor(ready.context(), "claude").signs]
    assert first == [sign.shown for sign in doctor(ready.context(), "claude").signs]


def test_older_files_are_told(ready: Sandbox) -> None:
    """With the command that brings them up to date."""
    install(ready.context(), "claude")
    path = ready.path / ".claude/commands/pin.md"
    path.write_text(path.read_text() + "more\n")
    results = signs(ready, "claude")
    assert results["claude", "current"].state == WARNING
    assert ".claude/commands/pin.md" in results["claude", "current"].detail
    assert ("claude", "works: session-start") in results


def test_another_command_is_not_run(ready: Sandbox) -> None:
    """A repository may bring hooks along that look like ours."""
    install(ready.context(), "claude")
    path = ready.path / ".claude/settings.json"
    evil = ready.write("tools/memtool", "#!/bin/sh\ntouch owned\n")
    evil.chmod(0o755)
    path.write_text(path.read_text().replace("memtool", str(evil)))
    results = signs(ready, "claude")
    assert results["claude", "current"].state == WARNING
    assert ("claude", "works: session-start") not in results
    assert not (ready.path / "owned").exists()


def fake(folder: Path, name: str, text: str) -> None:
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(text)
    (folder / name).chmod(0o755)


@pytest.mark.parametrize(
    ("version", "state", "how"),
    [
        (f"{load_host('claude').tested_version} (Claude Code)", GOOD, "as tried"),
        ("3.0.0", GOOD, "newer than"),
        ("1.9.0", WARNING, "older than"),
    ],
)
def test_the_version_of_a_host_is_compared_with_the_tried_one(
    ready: Sandbox, version: str, state: str, how: str
) -> None:
    install(ready.context(), "claude")
    tools = ready.path.parent / "tools"
    fake(tools, "claude", f"#!/bin/sh\necho '{version}'\n")
    results = signs(ready, "claude", PATH=f"{tools}:{ready.env['PATH']}")
    assert results["claude", "version"].state == state
    assert how in results["claude", "version"].detail
    assert ("claude", "version") not in signs(ready, "claude")


CODEX = """#!{python}
import json, sys
if "--version" in sys.argv:
    print("codex-cli 0.169.0")
    sys.exit()
for line in sys.stdin:
    row = json.loads(line)
    if row.get("method") == "hooks/list":
        print(json.dumps({{"method": "configWarning"}}))
        print(json.dumps({{"id": 2, "result": {{"data": [{{"hooks": {hooks}}}]}}}}), flush=True)
        break
"""


@pytest.mark.parametrize(
    ("count", "status", "detail"),
    [
        (7, "trusted", ""),
        (7, "untrusted", "skips 7 of 7"),
        (7, "modified", "skips 7 of 7"),
        (4, "trusted", "skips 3 of 7"),
        (0, "trusted", "skips 7 of 7"),
        (None, "", ""),
    ],
)
def test_codex_is_asked_which_hooks_it_skips(
    ready: Sandbox, count: int | None, status: str, detail: str
) -> None:
    """It says nothing itself; one that does not answer tells nothing."""
    install(ready.context(), "codex")
    registered = json.loads((ready.path / ".codex/hooks.json").read_text())["hooks"]
    commands = [hook["hooks"][0]["command"] for (hook,) in registered.values()]
    rows = [{"command": command, "trustStatus": status} for command in commands[:count]]
    tools = ready.path.parent / "tools"
    hooks = "no list" if count is None else repr(rows)
    fake(tools, "codex", CODEX.format(python=sys.executable, hooks=hooks))
    report = doctor(ready.context(PATH=f"{tools}:{ready.env['PATH']}"), "codex")
    refused = [sign.detail for sign in report.signs if sign.state == BROKEN]
    assert len(refused) == bool(detail)
    assert detail in "".join(refused)
    assert report.exit_code == bool(detail)


def test_a_host_that_works_is_silent_unless_it_is_named(ready: Sandbox) -> None:
    """What is wrong comes first, with its hint; what works is counted."""
    install(ready.context(), "claude")
    install(ready.context(), "cursor")
    (ready.path / ".cursor/commands/pin.md").unlink()
    output = ready.run("doctor").stdout
    assert "claude: " not in output
    assert re.search(
        r"^! cursor: current: missing or older: .+\n  hint: memtool install cursor brings",
        output,
        re.MULTILINE,
    )
    passed = sum(sign["state"] == GOOD for sign in ready.json("doctor")["signs"])
    assert output.endswith(f"\n{passed} checks passed (--verbose lists them)\n")
    rows = ready.run("doctor", "claude").stdout.splitlines()
    assert rows[0] == "claude"
    assert any(row.split()[:2] == ["ok", "works:"] and "the agent sees" in row for row in rows)


def test_a_program_that_is_gone_is_broken(ready: Sandbox) -> None:
    """The hooks of a project look for memtool on the path."""
    install(ready.context(), "gemini")
    results = signs(ready, PATH="/usr/bin:/bin")
    assert results["memtool", "command"].state == WARNING
    assert results["gemini", "works: session-start"].state == BROKEN
    assert "127" in results["gemini", "works: session-start"].detail
    done = ready.run("doctor", "gemini", "--json", PATH="/usr/bin:/bin")
    assert done.returncode == 1
    assert {sign["state"] for sign in json.loads(done.stdout)["signs"]} == {GOOD, BROKEN}


@pytest.mark.parametrize("answer", ["exec sleep 60", "echo hello", "echo '[1]'", "exit 2"])
def test_an_answer_that_the_host_cannot_take_is_broken(
    ready: Sandbox, answer: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Too late, not its format, or an exit code that blocks."""
    monkeypatch.setattr("memtool.hosts.diagnostics.TIMEOUT_S", 1)
    install(ready.context(), "gemini")
    tools = ready.path.parent / "tools"
    tools.mkdir()
    (tools / "memtool").write_text(f"#!/bin/sh\n{answer}\n")
    (tools / "memtool").chmod(0o755)
    results = signs(ready, "gemini", PATH=f"{tools}:/usr/bin:/bin")
    assert results["gemini", "works: session-start"].state == BROKEN


def test_a_hook_that_fails_in_silence_is_broken(ready: Sandbox) -> None:
    """The agent hears nothing of broken settings, but whoever asks the doctor does."""
    install(ready.context(), "claude")
    ready.write(".memory/config.toml", "[inject\n")
    results = signs(ready, "claude")
    assert results["claude", "works: user-prompt-submit"].state == BROKEN
    assert "config.toml" in results["claude", "works: user-prompt-submit"].detail
    assert not (ready.path / ".git/memtool/hook.log").exists()


def test_what_hooks_wrote_into_their_log_is_told(ready: Sandbox) -> None:
    """The last failure of this week, but not successes or older failures."""
    ready.run("hook", "claude", "stop", stdin="no json")
    event = json.dumps({"session_id": "s", "prompt": "redis?"})
    ready.run("hook", "claude", "user-prompt-submit", stdin=event, MEMTOOL_LOG="all")
    sign = signs(ready)["repository", "hook log"]
    assert sign.state == WARNING
    assert "hook claude stop: failed: cannot read the input of the hook" in sign.detail
    assert sign.hint.startswith(str(ready.path / ".git/memtool/hook.log"))
    later = signs(ready, MEMTOOL_NOW="2099-01-01")["repository", "hook log"]
    assert later.state == GOOD


def test_a_bare_repository_has_no_agent(ready: Sandbox) -> None:
    """That is an answer, too."""
    bare = ready.path.parent / "bare.git"
    ready.git("clone", "--quiet", "--bare", str(ready.path), str(bare))
    done = ready.run("doctor", "claude", cwd=bare)
    assert (done.returncode, "bare" in done.stdout) == (0, True)


def test_broken_settings_of_a_host_are_told(ready: Sandbox) -> None:
    """With their place, and the other hosts are still looked at."""
    install(ready.context(), "claude")
    install(ready.context(), "codex")
    ready.write(".claude/settings.json", '{"a": }')
    results = signs(ready)
    assert "settings.json:1:7 is not JSON" in results["claude", "current"].detail
    assert results["codex", "current"].state == GOOD


def test_broken_settings_of_memtool_are_told(ready: Sandbox) -> None:
    """As everything else that a verb would end with."""
    ready.write(".memory/config.toml", "[inject\n")
    results = signs(ready)
    assert results["repository", "settings"].state == BROKEN
    assert ready.run("doctor").returncode == 1


def test_a_trusted_ref_that_is_gone_is_told(ready: Sandbox) -> None:
    """It would make every memory untrusted."""
    ready.write(".memory/config.toml", '[trust]\nref = "origin/gone"\n')
    assert signs(ready)["repository", "trusted"].state == BROKEN


def test_a_broken_ledger_is_put_aside(ready: Sandbox) -> None:
    """Only statistics are lost."""
    ready.run("search", "sessions")
    place = ready.path / ".git/memtool"
    (place / "ledger.db").write_bytes(b"no database at all, but long enough to be looked at\n" * 9)
    assert signs(ready)["repository", "ledger"].state == BROKEN
    mended = doctor(ready.context(), fix=True)
    assert "put a broken ledger aside: statistics begin anew" in mended.mended
    aside = signs(ready)["repository", "ledger"]
    assert (aside.state, "when a damaged one was put aside" in aside.detail) == (WARNING, True)
    (place / "ledger.db.broken").unlink()
    assert signs(ready)["repository", "ledger"].state == GOOD
    (place / "ledger.db").write_bytes(b"no database at all, but long enough to be looked at\n" * 9)
    assert "renamed to ledger.db.broken: counting starts again" in ready.run("stats").stderr


def test_a_cache_that_tells_other_than_the_files_is_made_anew(
    ready: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever it was that went wrong with it."""
    ready.run("search", "sessions")
    looked: list[str] = []

    def once(ws: object) -> CheckResult:
        looked.append("")
        return CheckResult("repository", "index", GOOD if len(looked) > 1 else BROKEN, "")

    monkeypatch.setattr(diagnostics, "_index", once)
    place = ready.path / ".git/memtool/index"
    (place / "left-over").write_text("")
    mended = doctor(ready.context(), fix=True)
    assert "made the search index and the other derived files anew" in mended.mended
    assert place.is_dir()
    assert not (place / "left-over").exists()


def test_byte_code_that_is_missing_is_reported(
    ready: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If Python does not write it, every start compiles it again; else the first start does."""
    from memtool import version

    package = tmp_path / "memtool"
    shutil.copytree(
        Path(version.__file__).parent / "memory", package, ignore=shutil.ignore_patterns("*.pyc")
    )
    monkeypatch.setattr(version, "__file__", str(package / "version.py"))
    count = len(list(package.glob("*.py")))
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    assert signs(ready)["memtool", "byte code"].state == GOOD
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    sign = signs(ready)["memtool", "byte code"]
    assert (sign.state, sign.detail, sign.hint) == (
        WARNING,
        f"{count} modules are compiled anew at every start",
        f"{sys.executable} -m compileall -q {package}",
    )
    subprocess.run(shlex.split(sign.hint), check=True)
    assert signs(ready)["memtool", "byte code"].state == GOOD


def test_the_switch_is_told(ready: Sandbox) -> None:
    """Who switched memtool off should find out why agents get nothing."""
    assert signs(ready, MEMTOOL_OFF="1")["memtool", "switch"].state == WARNING


def test_without_a_memory_directory_it_says_so(sandbox: Sandbox) -> None:
    """And what to do."""
    (sandbox.path / ".memory").rmdir()
    results = signs(sandbox)
    assert results["repository", "settings"].hint == "memtool init"


def test_half_a_merge_driver_is_named(ready: Sandbox) -> None:
    """The attribute without the setting, the setting without the attribute, and an older one."""

    def read_driver() -> tuple[str, str]:
        sign = signs(ready)["repository", "merge driver"]
        return sign.state, sign.hint

    assert read_driver() == (ABSENT, "memtool install git")
    install(ready.context(), "git")
    assert read_driver() == (GOOD, "")
    ready.git("config", "merge.memtool.driver", "memtool merge-file %O %A %B %P")
    assert read_driver() == (WARNING, "memtool install git brings it up to date")
    ready.git("config", "--remove-section", "merge.memtool")
    assert read_driver() == (WARNING, "memtool install git")
    install(ready.context(), "git")
    (ready.path / ".gitattributes").unlink()
    assert read_driver() == (WARNING, "memtool init adds the line")


def test_a_memory_that_was_cut_off_is_in_the_last_commit(ready: Sandbox) -> None:
    """Doctor, status and check name the command that brings it back; nothing does it unasked."""
    path = ready.path / ".memory/decision/2026-02/dec-a.md"
    data = path.read_bytes()
    for part in (b"", data[:40], data[: len(data) // 2]):
        path.write_bytes(part)
        sign = signs(ready)["repository", "memories"]
        name = ".memory/decision/2026-02/dec-a.md"
        assert (sign.state, sign.hint) == (
            BROKEN,
            f"git checkout HEAD -- {name} brings back the whole file",
        )
        assert ready.run("doctor", "--fix").returncode == 1
        assert path.read_bytes() == part
        for verb in ("status", "check"):
            done = ready.run(verb)
            assert (done.returncode, sign.hint in done.stdout + done.stderr) == (1, True)
    path.write_bytes(data[:-5])  # a memory still, and nothing that check refuses
    short = signs(ready)["repository", "memories"]
    assert (short.state, short.hint) == (WARNING, sign.hint)
    path.write_bytes(data + b"More.\n")
    assert signs(ready)["repository", "memories"].state == GOOD
    ready.git(*sign.hint.split()[1:5])
    assert path.read_bytes() == data
    assert signs(ready)["repository", "memories"].detail == "1 can be read"


def test_a_lock_a_full_disk_and_drift_are_seen(
    ready: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    ready.memory("dec-b", "The page is made there.\n", files=("app/gone.py",))
    ready.write("app/gone.py", "page = 1\n")
    ready.commit()
    ready.git("rm", "--quiet", "app/gone.py")
    ready.commit()
    lock = ready.write(".git/index.lock", "")
    os.utime(lock, (lock.stat().st_mtime - 7_200,) * 2)
    results = signs(ready)
    sign = results["repository", "lock"]
    assert (sign.state, sign.hint) == (BROKEN, f"rm {lock}")
    assert "has been there for 2 hours, and no git process works" in sign.detail
    lock.unlink()
    assert results["repository", "drift"].detail == "1 memory names files: 1 broken, 0 unknown"
    assert results["repository", "storage"].state == GOOD
    answer = ready.json("doctor")
    assert (answer["healthy"], "memtool drift shows why" in answer["recommendations"]) == (
        True,
        True,
    )
    assert any(issue.startswith("repository: drift: ") for issue in answer["issues"])
    assert "drifted from the code: 1" in ready.json("status")["issues"]

    def full(*_args: object, **_named: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(files, "write_private", full)
    sign = signs(ready)["repository", "storage"]
    assert (sign.state, "No space left on device" in sign.detail) == (BROKEN, True)
    assert not ready.json("doctor")["healthy"]


def test_details_are_shown_when_asked_for(ready: Sandbox) -> None:
    install(ready.context(), "claude")
    assert "| " not in ready.run("doctor").stdout
    assert ready.run("doctor", "-v").stdout.count("works: ") > 1
    assert ready.run("status", "-v").returncode == 2


def test_what_is_due_and_an_extra_that_is_missing_are_seen(
    ready: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Due reviews are counted; a missing extra is reported only if a setting needs it."""
    results = signs(ready)
    assert (results["memtool", "extras"].state, results["repository", "due"].state) == (GOOD, GOOD)
    ready.memory("sem-old", type="semantic", category="warning", timestamp="2024-01-01T00:00:00Z")
    monkeypatch.setattr(diagnostics, "find_spec", lambda _name: None)
    results = signs(ready)
    assert results["memtool", "extras"].state == ABSENT
    sign = results["repository", "due"]
    assert (sign.state, sign.detail) == (WARNING, "1 of 2 memories are due for review")
    assert "memtool list is:due" in sign.hint
    assert ready.run("--global", "config", "search.model", "~/model").returncode == 0
    sign = signs(ready)["memtool", "extras"]
    assert (sign.state, sign.hint) == (WARNING, installation.install("semantic"))


def test_trust_rules_are_looked_at(ready: Sandbox, keyring: Keyring) -> None:
    """No ref, no signers, a line without a key, an owner without a key, unsigned memories."""
    rules = '[[trust.rules]]\nmatch = "type:decision"\nowners = ["ann@example.org"]\n'
    assert ("repository", "owners") not in signs(ready)

    def owners() -> tuple[str, str]:
        ready.commit()
        ready.git("update-ref", "refs/remotes/origin/main", "HEAD")
        sign = signs(ready)["repository", "owners"]
        return sign.state, sign.detail

    ready.write(".memory/config.toml", rules)
    assert signs(ready)["repository", "owners"].detail == (
        "1 trust rules hold nowhere: there is no trusted ref"
    )
    ready.git("update-ref", "refs/remotes/origin/main", "HEAD")
    assert signs(ready)["repository", "owners"].detail == (
        "1 trust rules are not in the trusted ref yet"
    )
    assert owners() == (BROKEN, "rules want signatures, and trust.allowed_signers is not set")
    ready.write(".memory/config.toml", f'[trust]\nallowed_signers = "keys"\n{rules}')
    assert owners() == (BROKEN, "rules want signatures, and keys is not in the trusted ref")
    ready.write("keys", b"\xff\nann@example.org ssh-ed25519 AAAA\n" + keyring.line("bob").encode())
    state, detail = owners()
    assert state == WARNING
    assert detail.split("; ") == [
        "line 1 of keys is no key",
        "line 2 of keys is no key",
        "ann@example.org is no principal of keys",
    ]
    ready.write("keys", "# people\n\n" + keyring.line("ann", 'namespaces="git,memtool"'))
    state, detail = owners()
    assert (state, detail) == (
        WARNING,
        "1 memories of the trusted ref are not signed as their rule wants",
    )
    sign = signs(ready)["repository", "owners"]
    id_ = re.search(r"memtool sign (\S+)", sign.hint)[1]
    assert ready.run("sign", id_, "--key", keyring.path("ann")).returncode == 0
    assert owners() == (GOOD, "1 rules, 1 principals, nothing unsigned")
    empty = ready.path.parent / "empty"
    empty.mkdir()
    git = shutil.which("git")
    assert git is not None
    (empty / "git").symlink_to(git)
    result = signs(ready, PATH=str(empty))["repository", "owners"]
    assert (result.state, "ssh-keygen is not on the PATH" in result.detail) == (BROKEN, True)


def test_the_tree_is_read_once(ready: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    """All checks look at the same memories, however many checks there are."""
    reads = []
    whole = Context.tree
    monkeypatch.setattr(Context, "tree", lambda *args: reads.append(args) or whole(*args))
    doctor(ready.context())
    assert len(reads) == 1


def test_a_store_that_changed_since_its_import_is_told(ready: Sandbox) -> None:
    """With the command that brings the changes, and silence once they are here."""
    ready.write("docs/adr/0001-a.md", "# 1. A\n\n## Status\n\nAccepted\n\nText.\n")
    ready.commit()
    assert ("repository", "stores") not in signs(ready)
    ready.run("import", "adr", "docs/adr", "--commit")
    assert ("repository", "stores") not in signs(ready)
    ready.write("docs/adr/0001-a.md", "# 1. A\n\n## Status\n\nAccepted\n\nAnother text.\n")
    ready.write("docs/adr/0002-b.md", "# 2. B\n\n## Status\n\nAccepted\n\nMore to say.\n")
    sign = signs(ready)["repository", "stores"]
    assert sign.detail == "1 changed, 1 new in docs/adr since it was imported"
    assert sign.hint == "memtool import adr docs/adr"
    ready.run("import", "adr", "docs/adr")
    assert ("repository", "stores") not in signs(ready)


def job(sandbox: Sandbox, host: str = "", **env: str) -> dict[tuple[str, str], CheckResult]:
    results = doctor(sandbox.context(**env), host, ci=True).signs
    return {(sign.area, sign.name): sign for sign in results}


def test_a_job_with_cline_does_not_fail_for_want_of_a_governed_file(ready: Sandbox) -> None:
    """Its hooks speak of files only, and the sample is of none that a memory governs."""
    install(ready.context(), "cline")
    assert ("cline", "silent") not in job(ready, "cline")


def test_a_job_fails_where_its_agent_would_be_silent(ready: Sandbox) -> None:
    """Nothing installed, another agent installed, memtool switched off, no memory."""
    assert job(ready)["agents", "installed"].state == BROKEN
    install(ready.context(), "claude")
    assert {sign.state for sign in job(ready, "claude").values()} == {GOOD}
    assert ("agents", "installed") not in job(ready)
    assert job(ready, "gemini")["gemini", "installed"].state == BROKEN
    silent = job(ready, "claude", MEMTOOL_OFF="1")["claude", "silent"]
    assert (silent.state, silent.hint) == (BROKEN, "unset MEMTOOL_OFF")
    assert job(ready, MEMTOOL_OFF="1")["memtool", "switch"].state == BROKEN
    ready.git("rm", "--quiet", *ready.git("ls-files", "*dec-a*").split())
    assert job(ready, "claude")["claude", "silent"].state == BROKEN
    assert ready.run("doctor", "--ci", "claude").returncode == 1


def test_a_job_is_warned_of_half_a_clone(ready: Sandbox, tmp_path: Path) -> None:
    """As actions/checkout leaves it: one commit, and no branch of the remote."""
    install(ready.context(), "claude")
    ready.commit()
    clone = Sandbox(tmp_path / "clone", ready.env)
    clone.path.mkdir()
    clone.git("init", "--quiet")
    clone.git("remote", "add", "origin", ready.path.as_uri())
    ready.git("commit", "--quiet", "--allow-empty", "--message", "more")
    clone.git("fetch", "--quiet", "--depth=1", "origin", "HEAD")
    clone.git("checkout", "--quiet", "--detach", "FETCH_HEAD")
    results = job(clone, "claude")
    assert results["repository", "history"].state == WARNING
    assert "fetch-depth: 0" in results["repository", "reviewed"].hint
    assert clone.run("doctor", "--ci", "claude").returncode == 0
    clone.git("fetch", "--quiet", "--unshallow", "origin")
    clone.git("fetch", "--quiet", "origin")
    clone.git("remote", "set-head", "origin", "--auto")
    assert job(clone, "claude")["repository", "history"].state == GOOD
    assert ("repository", "reviewed") not in job(clone, "claude")
