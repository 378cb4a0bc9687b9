"""Git: one hardened place that runs nothing which a repository carries."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from conftest import Sandbox

from memtool.errors import MemtoolError
from memtool.store import provenance, repository
from memtool.store.git import Git, GitError
from memtool.store.repository import discover
from memtool.store.tree import read_tree


def plant(sandbox: Sandbox, canary: Path) -> None:
    """Make every setting that git would run point at a script that leaves a trace."""
    script = sandbox.path.parent / "evil"
    script.write_text(f'#!/bin/sh\necho "$0 $*" >> {canary}\ncat 2>/dev/null\nexit 0\n')
    script.chmod(0o755)
    hooks = sandbox.path.parent / "hooks"
    hooks.mkdir()
    for hook in (
        "pre-commit",
        "post-checkout",
        "reference-transaction",
        "post-index-change",
        "fsmonitor-watchman",
    ):
        (hooks / hook).symlink_to(script)
    settings = {
        "core.fsmonitor": script,
        "core.hooksPath": hooks,
        "core.pager": script,
        "core.editor": script,
        "core.sshCommand": script,
        "core.askPass": script,
        "core.alternateRefsCommand": script,
        "pager.log": script,
        "pager.diff": script,
        "diff.external": script,
        "diff.evil.command": script,
        "diff.evil.textconv": script,
        "filter.evil.clean": script,
        "filter.evil.smudge": script,
        "filter.evil.process": script,
        "filter.evil.required": "true",
        "merge.evil.driver": script,
        "gpg.program": script,
        "gpg.openpgp.program": script,
        "gpg.x509.program": script,
        "gpg.ssh.program": script,
        "log.showSignature": "true",
        "credential.helper": f"!{script}",
        "interactive.diffFilter": script,
        "uploadpack.packObjectsHook": script,
        "alias.log": f"!{script}",
        "alias.ls-files": f"!{script}",
        "remote.evil.url": str(sandbox.path),
        "remote.evil.uploadpack": script,
        "remote.evil.promisor": "true",
        "remote.evil.partialCloneFilter": "blob:none",
        "extensions.partialClone": "evil",
        "core.repositoryFormatVersion": "1",
        "protocol.allow": "always",
        "protocol.file.allow": "always",
        "protocol.ext.allow": "always",
        "trust.ref": "HEAD",
    }
    sandbox.write(".git/info/attributes", "* filter=evil diff=evil merge=evil\n")
    for key, value in settings.items():
        sandbox.git("config", key, str(value))


def test_reading_runs_nothing_that_the_settings_of_a_repository_name(
    sandbox: Sandbox, tmp_path: Path
) -> None:
    """Monitors, hooks, filters, diffs, pagers, signature programs, fetches: none of them starts."""
    sandbox.write("signers", "ada@example.org ssh-ed25519 AAAA\n")
    path = sandbox.memory("dec-a", "one\n")
    sandbox.write(".gitattributes", "* filter=evil diff=evil\n")
    sandbox.commit()
    for header in ("PGP SIGNATURE", "PGP MESSAGE", "SIGNED MESSAGE", "SSH SIGNATURE"):
        raw = sandbox.git("cat-file", "commit", "HEAD")
        signed = raw.replace(
            "\n\n", f"\ngpgsig -----BEGIN {header}-----\n \n AAAA\n -----END {header}-----\n\n", 1
        )
        (tmp_path / "raw").write_text(signed)
        commit = sandbox.git("hash-object", "-t", "commit", "-w", str(tmp_path / "raw")).strip()
        sandbox.git("update-ref", "refs/heads/main", commit)
    sandbox.git("update-ref", "refs/remotes/origin/main", "HEAD")
    sandbox.memory("dec-b")
    sandbox.git("add", ".memory")
    sandbox.memory("dec-a", "two\n")
    canary = tmp_path / "canary"
    plant(sandbox, canary)

    opened = discover(str(sandbox.path), sandbox.env)
    workspace = sandbox.context()
    for at in (None, ":index", "HEAD", "origin/main"):
        tree = read_tree(workspace.snapshot(at))
        assert tree.records
        origins = provenance.ProvenanceReader(tree.location, "", "signers").origins(tree.records)
        assert "signed" not in {origin.trust for origin in origins.values()}
    provenance.resolve_trusted(opened, "main")
    repository.find_foreign_tool(opened.top, ".memory")
    with pytest.raises(GitError):
        list(opened.git.blobs(["0123456789" * 4], 99))  # a promised object would be fetched
    (sandbox.path / ".git" / "objects" / "pack").mkdir(exist_ok=True)
    assert opened.git.line("hash-object", "--no-filters", path)
    assert not canary.exists(), canary.read_text()
    discover(str(sandbox.path / ".git"), sandbox.env).git.resolve("HEAD")
    assert not canary.exists(), canary.read_text()


def test_a_bare_repository_inside_the_memory_is_not_entered(
    sandbox: Sandbox, tmp_path: Path
) -> None:
    """A clone may bring a directory that git takes for a repository; no call runs in it."""
    sandbox.memory("dec-a")
    sandbox.git("init", "--quiet", "--bare", ".memory/trap")
    canary = tmp_path / "canary"
    (tmp_path / "evil").write_text(f"#!/bin/sh\ntouch {canary}\n")
    (tmp_path / "evil").chmod(0o755)
    sandbox.git("--git-dir=.memory/trap", "config", "core.fsmonitor", str(tmp_path / "evil"))
    sandbox.git("--git-dir=.memory/trap", "config", "core.bare", "false")
    sandbox.git("--git-dir=.memory/trap", "config", "core.worktree", str(sandbox.path))
    assert [record.id for record in sandbox.context().tree().records] == ["dec-a"]
    for at in (":index",):
        sandbox.context().snapshot(at)
    assert not canary.exists()


def test_blobs_come_in_order_and_missing_ones_are_told(sandbox: Sandbox) -> None:
    """Contents of any bytes are given as they are, also twice; a missing one is an error."""
    datas = [b"", b"\n", b"a\0b\n\nblob 3\n", bytes(range(256)) * 300]
    oids = []
    for number, data in enumerate(datas):
        sandbox.write(f"f{number}", data)
        oids.append(sandbox.git("hash-object", "-w", f"f{number}").strip())
    git = Git(str(sandbox.path), sandbox.env)
    order = [*oids, *reversed(oids)]
    assert list(git.blobs(order, 80_000)) == [*datas, *reversed(datas)]
    assert list(git.blobs([], 9)) == []
    assert list(git.blobs(order[:3], 1)) == [b"", b"\n", bytes(2)]  # larger ones are not loaded
    with pytest.raises(GitError, match="is missing"):
        list(git.blobs([oids[0], "0" * 40], 9))


def test_errors_are_one_sentence(sandbox: Sandbox, tmp_path: Path) -> None:
    """A failing git, a missing git and a missing directory are told, not traced."""
    git = Git(str(sandbox.path), sandbox.env)
    with pytest.raises(GitError, match=r"^git no-such-verb failed: ") as caught:
        git.run("no-such-verb")
    assert (caught.value.status, caught.value.exit_code) == (1, 2)
    with pytest.raises(MemtoolError, match="git is not installed"):
        # the search for a program uses the PATH of the process that is to be
        Git(str(sandbox.path), sandbox.env | {"PATH": str(tmp_path)}).run("status")
    with pytest.raises(MemtoolError, match="no directory"):
        Git(str(tmp_path / "absent"), sandbox.env).run("status")


@pytest.mark.parametrize(
    ("stderr", "expected"),
    [
        (
            b"fatal: Unable to create '/a/.git/index.lock': File exists.\n\nAnother git process",
            True,
        ),
        (b"fatal: cannot lock ref 'HEAD': is at 12 but expected 34", True),
        (b"error: could not lock config file .git/config.lock': File exists", True),
        (b"fatal: Unable to create '/a/.git/index.lock': Read-only file system", False),
        (b"fatal: Unable to create '/a/.git/index.lock': Permission denied", False),
        (b"your code is at fault: unlocked block, but expected a lock", False),
        (b"", False),
    ],
)
def test_locks_of_others_are_told_from_other_refusals(stderr: bytes, expected: bool) -> None:  # noqa: FBT001
    """Only what may succeed when another process is done is tried again."""
    assert GitError(("add",), 128, stderr).is_lock is expected


def test_paths_are_literal_and_answers_are_english(sandbox: Sandbox) -> None:
    """A path that looks like a pattern means itself, whatever the user's language is."""
    sandbox.write("*.md", "a")
    sandbox.write("b.md", "b")
    sandbox.commit()
    git = Git(str(sandbox.path), sandbox.env | {"LANG": "de_DE.UTF-8", "LANGUAGE": "de"})
    assert git.run("ls-files", "-z", "--", "*.md") == b"*.md\0"
    with pytest.raises(GitError, match="Not a valid object name"):
        git.run("cat-file", "-t", "nothing")
    assert os.fsdecode(git.run("rev-parse", "--git-dir").strip()) == ".git"


def test_one_process_reads_in_several_rounds(sandbox: Sandbox) -> None:
    """Sizes first, then contents; a large blob is not loaded, and the last round sees new ones."""
    git = Git(str(sandbox.path), sandbox.env)
    small, large, empty = (
        sandbox.git("hash-object", "-w", str(sandbox.write(name, data))).strip()
        for name, data in (("a", "small\n\nfile"), ("b", "x" * 70_000), ("c", b""))
    )
    with git.open_objects() as objects:
        assert list(git.blobs([small, large, small, empty], 100)) == [
            b"small\n\nfile",
            bytes(101),
            b"small\n\nfile",
            b"",
        ]
        late = sandbox.git("hash-object", "-w", str(sandbox.write("d", "late"))).strip()
        assert list(git.blobs([late, large], 70_000)) == [b"late", b"x" * 70_000]
        assert objects.infos([late, "HEAD", "no such name"]) == [(late, "blob", 4), None, None]
        with pytest.raises(GitError, match=f"object {'1' * 40} is missing"):
            list(git.blobs(["1" * 40], 100))
        assert list(git.blobs([], 100)) == []
    assert list(git.blobs([small], 100)) == [b"small\n\nfile"]


def test_a_reading_inside_another_uses_its_process(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The inner one leaves it running: else each later blob would start git again."""
    git, start, started = Git(str(sandbox.path), sandbox.env), Git.start, []
    monkeypatch.setattr(
        Git, "start", lambda self, *args: started.append(args) or start(self, *args)
    )
    oid = sandbox.git("hash-object", "-w", str(sandbox.write("a", "text"))).strip()
    with git.open_objects():
        with git.open_objects():
            assert list(git.blobs([oid], 100)) == [b"text"]
        assert list(git.blobs([oid], 100)) == [b"text"]
    assert len(started) == 1
    assert list(git.blobs([oid], 100)) == [b"text"]
    assert len(started) == 2


def test_a_damaged_object_ends_a_reading_with_what_git_says(sandbox: Sandbox) -> None:
    """Git ends in the middle of an answer, and nothing waits for it."""
    git = Git(str(sandbox.path), sandbox.env)
    oid = sandbox.git("hash-object", "-w", str(sandbox.write("a", "text" * 999))).strip()
    place = sandbox.path / ".git/objects" / oid[:2] / oid[2:]
    place.chmod(0o644)
    place.write_bytes(place.read_bytes()[:20])
    with pytest.raises(GitError, match="git cat-file failed"):
        list(git.blobs([oid], 10_000))


def test_a_git_that_waits_without_end_is_given_up_with_a_way_to_see_why(sandbox: Sandbox) -> None:
    """A pipe in place of .gitignore makes git wait for a writer."""
    os.mkfifo(sandbox.path / ".gitignore")
    git = Git(str(sandbox.path), sandbox.env)
    with pytest.raises(MemtoolError, match="git ls-files did not answer") as caught:
        git.run("ls-files", "--others", "--exclude-standard", timeout_s=0.2)
    assert "is .gitignore or .gitattributes a pipe?" in caught.value.hint


def test_a_shallow_clone_says_that_it_lacks_a_revision(sandbox: Sandbox) -> None:
    """CI clones one commit, and asks for the one before it."""
    sandbox.memory("dec-a")
    sandbox.commit()
    sandbox.git("clone", "--quiet", "--depth=1", f"file://{sandbox.path}", "../shallow")
    with pytest.raises(MemtoolError, match="shallow clone") as refused:
        Git(str(sandbox.path.parent / "shallow"), sandbox.env).resolve("HEAD~1")
    assert refused.value.hint.startswith("git fetch --unshallow\n")


def test_where_a_revision_is_missing_the_branch_here_is_named(sandbox: Sandbox) -> None:
    """Examples say `main`, and many repositories are on another branch."""
    sandbox.write("a", "1\n")
    sandbox.commit()
    git = sandbox.context().repository.git
    for branch in ("master", "größe/x"):
        sandbox.git("branch", "--move", branch)
        with pytest.raises(MemtoolError, match='no revision "main"') as refused:
            git.resolve("main")
        assert refused.value.message.endswith(f"; the branch is {branch}")
    sandbox.git("checkout", "--quiet", "--detach")
    with pytest.raises(MemtoolError, match='no revision "main"') as refused:
        git.resolve("main")
    assert refused.value.hint == "git log --oneline --all"


def test_a_long_answer_comes_line_by_line_and_a_failure_is_told(sandbox: Sandbox) -> None:
    """Lines come while git runs, whole ones only, and what fails is an error as of any verb."""
    sandbox.write("a.txt", "a\n")
    sandbox.commit("first")
    git = Git(str(sandbox.path), sandbox.env)
    assert list(git.read_lines("log", "--format=%s")) == [b"first"]
    next(git.read_lines("rev-list", "--all"))  # who asks for no more ends git
    with pytest.raises(GitError, match="git rev-list failed"):
        list(git.read_lines("rev-list", "no-such-revision"))
