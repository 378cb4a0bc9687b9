"""A rewrite of history without a secret or a memory, in a mirror, with proof.

The plan says where the leak is and what its removal costs everybody. git-filter-repo applies it to
a mirror in a new directory; this clone and every remote stay as they are, and the commands that
replace the remote are printed, for a person to run. A mirror that still holds the leak, or lacks
anything else, is refused. The secret is written to a temporary file that only its owner can read,
never into an argument.
"""

from __future__ import annotations

import importlib.util
import os
import shlex
import shutil
import subprocess
import sys
import tempfile

from memtool.errors import MemtoolError
from memtool.redaction.find import allowlist
from memtool.store import usage_log
from memtool.store.config import FINGERPRINT_DIGITS
from memtool.store.context import Context
from memtool.store.git import LOCATION_VARIABLES, Git
from memtool.store.provenance import SHORT
from memtool.upkeep import leaks
from memtool.upkeep.leaks import Leak, LeakingCommit
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

PROGRAM = "git-filter-repo"
MODULE = "git_filter_repo"
MEMORY = "memory"
CONSEQUENCES = (
    "Change the secret where it is used before anything else: whoever fetched has it already.",
    "Fetch all remotes first, and let everybody push: what is not here is not rewritten.",
    "Every commit from the first one that held it gets another id; links to the old ones break.",
    "Signatures of those commits and tags are lost; whoever signed has to sign again.",
    "Everybody has to clone again: a push from an old clone brings the leak back.",
    "Open pull requests have to be closed, and opened again from a new clone.",
    "Forks, caches, build logs and the forge's own copies keep it: ask the forge to remove them.",
)
"""What a rewrite costs, whoever does it."""
_SHOWN = 20
_HEX = frozenset("0123456789abcdef")


class Proof(Value):
    """What is the same before and after: the number of commits, and of blobs without the leak.

    `refs` maps each ref that changed to the object that it named before.
    """

    commits: int
    blobs: int
    refs: dict[str, str]


class Rewritten(Value):
    """The plan of a rewrite, and with `into` the proof for the mirror there.

    `kind` to `unread` are those of the `Leak`, with `objects` counted; `next` are commands.
    """

    kind: str
    name: str
    paths: tuple[str, ...]
    objects: int
    messages: int
    unread: int
    commits: tuple[LeakingCommit, ...]
    refs: tuple[str, ...]
    remotes: tuple[str, ...]
    consequences: tuple[str, ...]
    next: tuple[str, ...]
    into: str = ""
    kept_commits: int = 0
    kept_blobs: int = 0
    dry_run: bool = False


class Secret(Value):
    """A secret that versions of memories hold, by its fingerprint, and how many do."""

    fingerprint: str
    kind: str
    versions: int


class Leaked(Value):
    """All secrets in the history of the memories."""

    secrets: tuple[Secret, ...]


def listed(context: Context) -> Leaked:
    """Return the secrets in history, but for those that the settings allow."""
    with context.repository.git.reading():
        found = leaks.known(context.repository.git, context.directory, allowlist(context.settings))
    return Leaked(tuple(Secret(name, kind, count) for name, (kind, count) in found.items()))


def rewrite(
    context: Context, ids: Sequence[str], secret: str, into: str, *, apply: bool
) -> Rewritten:
    """Return where a memory or a secret is in history; with `apply` remove it from a mirror.

    Raises:
        MemtoolError: nothing or too much is named, it is not there, or the rewrite fails.
    """
    if bool(secret) == bool(ids) or len(ids) > 1:
        raise MemtoolError(
            "--history needs one memory, or one secret",
            hint="memtool purge --history ID, or memtool purge --secret FINGERPRINT",
        )
    if secret and (len(secret) != FINGERPRINT_DIGITS or not _HEX.issuperset(secret)):
        raise MemtoolError(  # perhaps it is the secret itself: nobody is to see it
            "--secret takes a fingerprint, 16 digits of 0-9 a-f, never the secret itself",
            hint="memtool purge --history lists fingerprints",
        )
    if apply and not into:
        raise MemtoolError("--apply needs a new directory for the rewritten mirror",
                           hint="memtool purge … --apply --into ../cleansed")  # fmt: skip
    if context.repository.is_shallow:
        raise MemtoolError("this clone is shallow: it does not have all of history",
                           hint="git fetch --unshallow", code="shallow")  # fmt: skip
    git = context.repository.git
    with git.reading():
        if secret:
            leak = leaks.of_secret(git, context.directory, secret)
        else:
            leak = leaks.of_memory(git, context.directory, ids[0])
    if leak.unread:
        context.notes.append(
            f"{leak.unread} objects above {leaks.MOST_BYTES >> 20} MiB were not read"
        )
    if leak.objects and not leak.commits:
        context.notes.append(
            "no branch or tag leads to it: git reflog expire --expire=now --all and "
            "git gc --prune=now remove it here"
        )
    plan = _planned(leak)
    if not apply:
        return plan
    place = os.path.realpath(os.path.join(context.cwd, into))
    own = context.repository.top or context.repository.git_dir
    if os.path.commonpath([place, own]) == own:
        raise MemtoolError(f"{into} lies inside this repository",
                           hint="--into ../cleansed")  # fmt: skip
    with usage_log.act(context, "purge", leak.name, detail="history, in a mirror"):
        proof = _rewritten_mirror(context, place, leak)
    return plan.replace(
        into=place,
        kept_commits=proof.commits,
        kept_blobs=proof.blobs,
        next=_commands(context, place, proof),
        dry_run=False,
    )


def _planned(leak: Leak) -> Rewritten:
    named = f"--secret {leak.name}" if leak.needle else f"--history {leak.name}"
    return Rewritten(
        kind=leak.kind,
        name=leak.name,
        paths=leak.paths,
        objects=len(leak.objects),
        messages=leak.messages,
        unread=leak.unread,
        commits=leak.commits,
        refs=leak.refs,
        remotes=leak.remotes,
        consequences=CONSEQUENCES if leak.needle else CONSEQUENCES[1:],
        next=(f"memtool purge {named} --apply --into ../cleansed",),
        dry_run=True,
    )


def _commands(context: Context, into: str, proof: Proof) -> tuple[str, ...]:
    """Return the commands that put a mirror in the place of its remotes, and of this clone.

    The address of a remote may hold a password: the shell asks git for it.
    """
    mirror = shlex.quote(into)
    clone = shlex.quote(context.repository.top or context.repository.git_dir)
    names = context.repository.git.run("remote").decode(errors="replace").split()
    rows = []
    for remote in names:
        address = f'"$(git -C {clone} remote get-url --push {shlex.quote(remote)})"'
        prefix = f"refs/remotes/{remote}/"
        for ref, old in proof.refs.items():
            branch = ref.removeprefix(prefix)
            if ref.startswith(prefix) and branch != "HEAD":
                target = shlex.quote(f"refs/heads/{branch}")
                rows.append(f"git -C {mirror} push --force-with-lease={target}:{old} {address} "
                            f"{shlex.quote(ref)}:{target}")  # fmt: skip
        tags = [ref for ref in proof.refs if ref.startswith("refs/tags/")]
        if tags:
            rows.append(f"git -C {mirror} push --force {address} "
                        f"{' '.join(map(shlex.quote, tags))}")  # fmt: skip
    rows.append(f"git clone {mirror} {shlex.quote(into + '-clone')}  # in place of {clone}")
    return tuple(rows)


def text(plan: Rewritten | Leaked) -> str:
    """Return where the leak is, what its removal costs, and what to do next."""
    if isinstance(plan, Leaked):
        rows = [f"{one.fingerprint}  {one.kind}, versions: {one.versions}" for one in plan.secrets]
        return "\n".join(rows) or "no version of any memory holds a secret"
    what = f"the memory {plan.name}" if plan.kind == MEMORY else (
        f"the secret {plan.name} ({plan.kind})"
    )  # fmt: skip
    rows = [
        f"{what} stands in history",
        f"  objects that hold it: {plan.objects}, messages among them: {plan.messages}",
        *_named("file", plan.paths),
        *_named("commit", [f"{one.commit[:SHORT]} of {one.day}" for one in plan.commits]),
        *_named("ref", plan.refs),
        *_named("remote", plan.remotes),
        "",
        *(f"{number}. {line}" for number, line in enumerate(plan.consequences, 1)),
        "",
    ]
    if plan.into:
        rows += [
            (
                f"rewritten in {plan.into}: nothing there holds it any more; {plan.kept_commits} "
                f"commits and {plan.kept_blobs} other files are what they were"
            ),
            "nothing was pushed; these commands replace the remote, when everybody knows:",
        ]
    return "\n".join([*rows, *plan.next])


def _named(kind: str, names: Sequence[str]) -> list[str]:
    rows = [f"  {kind} {name}" for name in names[:_SHOWN]]
    more = len(names) - len(rows)
    return [*rows, f"  and {more} more"] if more else rows


def _rewritten_mirror(context: Context, into: str, leak: Leak) -> Proof:
    """Mirror the repository into a new directory, remove the leak there, and prove it.

    Raises:
        MemtoolError: the directory exists, a program fails, or the proof does; the mirror must not
            be pushed then.
    """
    program = _program(context.env)
    if os.path.lexists(into) or not os.path.isdir(os.path.dirname(into)):
        what = "is there already" if os.path.lexists(into) else "is in no directory that is there"
        raise MemtoolError(f"{into} {what}", hint="--into DIR names a new directory", code="exists")
    source = context.repository.common_dir
    own = {name: value for name, value in context.env.items() if name not in LOCATION_VARIABLES}
    # The mirror is made of objects alone: no hook, no setting, no link into the clone.
    Git(source, own).run(
        "clone", "--quiet", "--mirror", "--no-local", "--template=", "--", source, into,
        env={"GIT_ALLOW_PROTOCOL": "file", "GIT_TERMINAL_PROMPT": "0"}, with_hooks=True,
    )  # fmt: skip
    mirror = Git(into, own | {"GIT_DIR": into})
    before = (_commits(mirror), leaks.refs(mirror), leaks.reachable(mirror))
    _filter(program, into, leak, own)
    for step in (("reflog", "expire", "--expire=now", "--all"), ("gc", "--quiet", "--prune=now")):
        mirror.run(*step, with_hooks=True)
    return _proven(mirror, leak, context.directory, *before)


def _program(env: Mapping[str, str]) -> list[str]:
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


def _filter(program: list[str], into: str, leak: Leak, env: Mapping[str, str]) -> None:
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
                [*program, *args], cwd=into, env=dict(env) | {"GIT_DIR": into}, check=False,
                stdin=subprocess.DEVNULL, capture_output=True,
            )  # fmt: skip
        except OSError as error:
            raise _failed(into, os.strerror(error.errno or 0)) from None
    if done.returncode:
        is_safe = not leak.needle or leak.needle not in done.stderr
        last = done.stderr.decode(errors="replace").strip().splitlines()[-1:] if is_safe else []
        raise _failed(into, last[0] if last else f"it ended with status {done.returncode}")


def _rule(leak: Leak) -> bytes:
    """Return the line that replaces a secret: byte by byte, since it may hold line feeds."""
    pattern = "".join(f"\\x{byte:02x}" for byte in leak.needle)
    return f"regex:{pattern}==>[REDACTED:{leak.kind}]\n".encode()


def _failed(into: str, why: str) -> MemtoolError:
    return MemtoolError(
        f"{PROGRAM} failed: {why}",
        hint=f"nothing but {into} was touched; remove it",
        code="rewrite",
    )


def _proven(
    mirror: Git,
    leak: Leak,
    directory: str,
    commits: int,
    refs: dict[str, str],
    blobs: set[str],
) -> Proof:
    """Return the proof. Raises MemtoolError where the leak is left, or more than it is gone."""

    def failed(why: str) -> MemtoolError:
        return MemtoolError(
            f"the rewritten history is not what it should be: {why}",
            hint=f"do not push it; nothing but {mirror.directory} was touched",
            code="unproven",
        )

    now = leaks.refs(mirror)
    if leak.needle:
        left, _unread = leaks.holding(mirror, leak.needle)
        if left:
            raise failed(f"{len(left)} objects still hold the secret, such as binary "
                            "files, which it leaves alone")  # fmt: skip
    else:
        try:
            leaks.of_memory(mirror, directory, leak.name)
        except MemtoolError as error:
            if error.code != "unknown-id":
                raise
        else:
            raise failed(f"some commit still holds {leak.name}")
    count = _commits(mirror)
    if (count, now.keys()) != (commits, refs.keys()):
        raise failed(f"{commits} commits and {len(refs)} refs became {count} and "
                        f"{len(now)}")  # fmt: skip
    kept = blobs.difference(leak.objects)
    gone = kept - leaks.reachable(mirror)
    if gone:
        raise failed(f"{len(gone)} other files are gone as well")
    changed = {name: oid for name, oid in refs.items() if now[name] != oid}
    return Proof(commits, len(kept), changed)


def _commits(git: Git) -> int:
    return int(git.line("rev-list", "--all", "--count"))
