"""Probe that git runs the gate: try a commit and a merge in a temporary worktree.

Both would add a broken memory, which only the gate refuses. No branch moves, and the user's
worktree and index are not touched. All other hooks of the repository run as well.
"""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress

from memtool.errors import MemtoolError
from memtool.hosts import git
from memtool.hosts.diagnostics import ABSENT, BROKEN, GOOD, WARNING, CheckResult
from memtool.hosts.git_hooks import GATES, UNTRACKED_FILES
from memtool.store.context import Context
from memtool.store.git import GitError
from memtool.store.repository import discover

PROBE_NAME = "memtool-probe.md"
CONSENT_QUESTION = (
    "To prove that git runs memtool check, a commit and a merge with a broken memory are tried "
    "in a temporary worktree; your hooks run at both. Go on? [y/N] "
)
_IDENTITY = {
    f"GIT_{role}_{key}": value
    for role in ("AUTHOR", "COMMITTER")
    for key, value in (("NAME", "memtool"), ("EMAIL", "memtool@localhost"))
}


def run_probe(context: Context) -> tuple[CheckResult, ...]:
    """Try a commit and a merge, and return a result for each.

    Raises:
        MemtoolError: git cannot create a worktree here.
    """
    repository = context.repository
    if repository.is_bare or not repository.git.head():
        return (CheckResult("repository", "probe", ABSENT, "there is no commit to begin from"),)
    folder = git.find_hooks_folder(repository)
    with tempfile.TemporaryDirectory(prefix="memtool-") as temporary:
        worktree = os.path.join(temporary, "worktree")
        repository.git.run("worktree", "add", "--quiet", "--detach", worktree, "HEAD")
        try:
            for name in UNTRACKED_FILES:  # hook tools need these at the top
                source = os.path.join(repository.top, name)
                if os.path.lexists(source) and not os.path.lexists(os.path.join(worktree, name)):
                    os.symlink(source, os.path.join(worktree, name))
            return tuple(_try_hooks(context, worktree, folder))
        finally:
            with suppress(MemtoolError):
                repository.git.run("worktree", "remove", "--force", "--force", worktree)


def _try_hooks(context: Context, worktree: str, folder: str) -> list[CheckResult]:
    """Try both in a worktree, with the hooks of `folder`."""
    git_there = discover(worktree, context.caller.env).git
    path = f"{context.directory}/decision/{PROBE_NAME}"
    os.makedirs(os.path.join(worktree, os.path.dirname(path)), exist_ok=True)
    with open(os.path.join(worktree, path), "w", encoding="utf-8") as file:
        file.write("This is no memory.\n")
    git_there.run("add", "--force", "--", path)
    tree = git_there.line("write-tree")
    head = git_there.resolve("HEAD")
    other = git_there.run("commit-tree", "-p", head, "-m", "memtool: a probe", tree, env=_IDENTITY)
    calls = {
        GATES[0]: ("commit", "--quiet", "--no-gpg-sign", "--message=memtool: a probe"),
        GATES[1]: (
            "merge",
            "--quiet",
            "--no-ff",
            "--no-edit",
            "--no-gpg-sign",
            other.decode().strip(),
        ),
    }
    results = []
    for hook, call in calls.items():
        try:
            git_there.run(
                *call, with_hooks=True, env=_IDENTITY, settings={"core.hooksPath": folder}
            )
            output = None
        except GitError as error:
            output = error.stderr
        results.append(_judge(hook, output))
        git_there.run("reset", "--quiet", "--hard", head)
    return results


def _judge(hook: str, output: str | None) -> CheckResult:
    name = f"probe: {hook}"
    if output is None:
        what = "a broken memory went through: git does not run memtool check"
        return CheckResult("repository", name, BROKEN, what, "memtool install git")
    if PROBE_NAME in output:
        return CheckResult("repository", name, GOOD, "memtool check refused a broken memory")
    rows = [row.strip() for row in output.splitlines() if not row.startswith("Not committing")]
    last = next(filter(None, reversed(rows)), "it says no reason")
    return CheckResult(
        "repository",
        name,
        WARNING,
        f"another hook refused first: {last}",
        "mend what that hook says, then probe again",
    )
