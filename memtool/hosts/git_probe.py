"""A proof that git runs the gate: a commit and a merge in a worktree that is removed again.

Each would bring a broken memory, which only the gate refuses. No branch moves, and the user's
worktree and index are not touched; the hooks of others run as at any commit.
"""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress

from memtool.errors import MemtoolError
from memtool.hosts import git
from memtool.hosts.diagnostics import ABSENT, BROKEN, GOOD, WARNING, Sign
from memtool.hosts.git_hooks import BROUGHT, GATES
from memtool.store.context import Context
from memtool.store.git import GitError
from memtool.store.repository import discover

NAME = "memtool-probe.md"
QUESTION = (
    "To prove that git runs memtool check, a commit and a merge with a broken memory are tried "
    "in a temporary worktree; your hooks run at both. Go on? [y/N] "
)
_PERSON = {
    f"GIT_{role}_{key}": value
    for role in ("AUTHOR", "COMMITTER")
    for key, value in (("NAME", "memtool"), ("EMAIL", "memtool@localhost"))
}


def probe(context: Context) -> tuple[Sign, ...]:
    """Try a commit and a merge, and return what became of each.

    Raises:
        MemtoolError: git can make no worktree here.
    """
    repository = context.repository
    if repository.is_bare or not repository.git.head():
        return (Sign("repository", "probe", ABSENT, "there is no commit to begin from"),)
    folder = git.hooks_folder(repository)
    with tempfile.TemporaryDirectory(prefix="memtool-") as room:
        place = os.path.join(room, "worktree")
        repository.git.run("worktree", "add", "--quiet", "--detach", place, "HEAD")
        try:
            for name in BROUGHT:  # what the tools of hooks look for at the top
                here = os.path.join(repository.top, name)
                if os.path.lexists(here) and not os.path.lexists(os.path.join(place, name)):
                    os.symlink(here, os.path.join(place, name))
            return tuple(_tried(context, place, folder))
        finally:
            with suppress(MemtoolError):
                repository.git.run("worktree", "remove", "--force", "--force", place)


def _tried(context: Context, place: str, folder: str) -> list[Sign]:
    """Try both in a worktree, with the hooks of a folder."""
    own = discover(place, context.caller.env).git
    path = f"{context.directory}/decision/{NAME}"
    os.makedirs(os.path.join(place, os.path.dirname(path)), exist_ok=True)
    with open(os.path.join(place, path), "w", encoding="utf-8") as file:
        file.write("This is no memory.\n")
    own.run("add", "--force", "--", path)
    tree = own.line("write-tree")
    head = own.rev("HEAD")
    other = own.run("commit-tree", "-p", head, "-m", "memtool: a probe", tree, env=_PERSON)
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
    found = []
    for hook, call in calls.items():
        try:
            own.run(*call, with_hooks=True, env=_PERSON, settings={"core.hooksPath": folder})
            said = None
        except GitError as error:
            said = error.stderr
        found.append(_sign(hook, said))
        own.run("reset", "--quiet", "--hard", head)
    return found


def _sign(hook: str, said: str | None) -> Sign:
    name = f"probe: {hook}"
    if said is None:
        what = "a broken memory went through: git does not run memtool check"
        return Sign("repository", name, BROKEN, what, "memtool install git")
    if NAME in said:
        return Sign("repository", name, GOOD, "memtool check refused a broken memory")
    rows = [row.strip() for row in said.splitlines() if not row.startswith("Not committing")]
    last = next(filter(None, reversed(rows)), "it says no reason")
    return Sign(
        "repository",
        name,
        WARNING,
        f"another hook refused first: {last}",
        "mend what that hook says, then probe again",
    )
