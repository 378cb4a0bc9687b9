"""Rewriting history: a leak leaves every commit of a mirror clone, and that is proven.

git-filter-repo does the work, in a new directory; the clone that it was made from, and every
remote, stay as they are. The secret goes into a file that its owner alone may read, never into an
argument, and that file is removed.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile

from memtool.errors import MemtoolError
from memtool.store.git import LOCATION_VARIABLES, Git
from memtool.upkeep import leaks
from memtool.upkeep.leaks import Leak
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

PROGRAM = "git-filter-repo"
MODULE = "git_filter_repo"
MEMORY = "memory"


class Proof(Value):
    """What was counted before and after: commits and refs, and the blobs that were not concerned.

    `refs` maps each ref that changed to the object that it named before.
    """

    commits: int
    blobs: int
    refs: dict[str, str]


def program(env: Mapping[str, str]) -> list[str]:
    """Return how git-filter-repo is started.

    Raises:
        MemtoolError: it is not installed.
    """
    if importlib.util.find_spec(MODULE) is not None:
        return [sys.executable, "-P", "-m", MODULE]
    found = shutil.which(PROGRAM, path=env.get("PATH"))
    if found is None:
        raise MemtoolError(
            f"{PROGRAM} is not installed, and nothing else rewrites history here",
            hint='pip install "memtool[purge]", then run the same command again',
            code="no-filter-repo",
        )
    return [found]


def rewrite(source: str, into: str, leak: Leak, directory: str, env: Mapping[str, str]) -> Proof:
    """Mirror a repository into a new directory, take the leak out there, and prove it.

    `source` is the git directory of the clone, `directory` that of its memories.

    Raises:
        MemtoolError: the directory is taken, a program fails, or the proof does; what is there
            must not be pushed then.
    """
    run = program(env)
    _refuse_taken(into)
    own = {name: value for name, value in env.items() if name not in LOCATION_VARIABLES}
    # The mirror is made of objects alone: no hook, no setting, no link into the clone.
    Git(source, own).run(
        "clone", "--quiet", "--mirror", "--no-local", "--template=", "--", source, into,
        env={"GIT_ALLOW_PROTOCOL": "file", "GIT_TERMINAL_PROMPT": "0"}, with_hooks=True,
    )  # fmt: skip
    mirror = Git(into, own | {"GIT_DIR": into})
    before = (_commits(mirror), leaks.refs(mirror), leaks.reachable(mirror))
    _filter(run, into, leak, own)
    for step in (("reflog", "expire", "--expire=now", "--all"), ("gc", "--quiet", "--prune=now")):
        mirror.run(*step, with_hooks=True)
    return _proven(mirror, leak, directory, *before)


def _refuse_taken(into: str) -> None:
    if os.path.lexists(into) or not os.path.isdir(os.path.dirname(into)):
        what = "is there already" if os.path.lexists(into) else "is in no directory that is there"
        raise MemtoolError(f"{into} {what}", hint="--into DIR names a new directory", code="exists")


def _filter(run: list[str], into: str, leak: Leak, env: Mapping[str, str]) -> None:
    """Run git-filter-repo in a mirror. Raises MemtoolError where it fails."""
    # --partial keeps every ref under its name; what it leaves behind is tidied up by the caller.
    args = ["--partial", "--force", "--quiet", "--prune-empty", "never", "--prune-degenerate",
            "never", "--replace-refs", "delete-no-add"]  # fmt: skip
    with tempfile.NamedTemporaryFile(dir=into, prefix="memtool-", delete=True) as rules:  # 0600
        if leak.needle:
            rules.write(_rule(leak))
            rules.flush()
            args += ["--replace-text", rules.name, "--replace-message", rules.name]
        else:
            args += ["--invert-paths", *(f"--path={path}" for path in leak.paths)]
        try:
            done = subprocess.run(
                [*run, *args], cwd=into, env=dict(env) | {"GIT_DIR": into}, check=False,
                stdin=subprocess.DEVNULL, capture_output=True,
            )  # fmt: skip
        except OSError as error:
            raise _failed(into, os.strerror(error.errno or 0)) from None
    if done.returncode:
        said = done.stderr if not leak.needle or leak.needle not in done.stderr else b""
        last = said.decode(errors="replace").strip().splitlines()[-1:]
        raise _failed(into, last[0] if last else f"it ended with status {done.returncode}")


def _rule(leak: Leak) -> bytes:
    """Return the line that replaces a secret: byte by byte, since it may hold line feeds."""
    pattern = "".join(f"\\x{byte:02x}" for byte in leak.needle)
    return f"regex:{pattern}==>[REDACTED:{leak.kind}]\n".encode()


def _commits(git: Git) -> int:
    return int(git.line("rev-list", "--all", "--count"))


def _proven(
    mirror: Git,
    leak: Leak,
    directory: str,
    commits: int,
    refs: dict[str, str],
    blobs: set[str],
) -> Proof:
    """Return what was counted. Raises MemtoolError where the leak is there, or more is gone."""
    now = leaks.refs(mirror)
    if leak.needle:
        left, _unread = leaks.holding(mirror, leak.needle)
        if left:
            raise _unproven(mirror, f"{len(left)} objects still hold the secret, such as binary "
                            "files, which it leaves alone")  # fmt: skip
    else:
        try:
            leaks.of_memory(mirror, directory, leak.name)
        except MemtoolError as error:
            if error.code != "unknown-id":
                raise
        else:
            raise _unproven(mirror, f"some commit still holds {leak.name}")
    count = _commits(mirror)
    if (count, now.keys()) != (commits, refs.keys()):
        raise _unproven(mirror, f"{commits} commits and {len(refs)} refs became {count} and "
                        f"{len(now)}")  # fmt: skip
    kept = blobs.difference(leak.objects)
    gone = kept - leaks.reachable(mirror)
    if gone:
        raise _unproven(mirror, f"{len(gone)} other files are gone as well")
    changed = {name: oid for name, oid in refs.items() if now[name] != oid}
    return Proof(commits, len(kept), changed)


def _failed(into: str, why: str) -> MemtoolError:
    return MemtoolError(
        f"{PROGRAM} failed: {why}",
        hint=f"nothing but {into} was touched; remove it",
        code="rewrite",
    )


def _unproven(mirror: Git, why: str) -> MemtoolError:
    return MemtoolError(
        f"the rewritten history is not what it should be: {why}",
        hint=f"do not push it; nothing but {mirror.directory} was touched",
        code="unproven",
    )
