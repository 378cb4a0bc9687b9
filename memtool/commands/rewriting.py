"""Rewriting: the plan by which a leak leaves history, for `memtool purge --history`.

It shows where the leak stands and what its removal costs everybody. What is applied is applied to
a mirror; the commands that replace the remote are printed, for a person to run.
"""

from __future__ import annotations

import os
import shlex

from memtool.commands import auditing
from memtool.errors import MemtoolError
from memtool.redaction.find import allowlist
from memtool.store.options import FINGERPRINT_DIGITS
from memtool.upkeep import leaks, rewriting_history
from memtool.upkeep.leaks import SHORT, Leak
from memtool.value import Value
from memtool.workspace import Workspace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from memtool.upkeep.rewriting_history import Proof

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


class Seen(Value):
    """A commit that holds the leak, or that added or removed it."""

    commit: str
    day: str


class Rewritten(Value):
    """The plan of a rewrite, and with `into` what was proven of the mirror there.

    `name` is the id of the memory, or the fingerprint of the secret. `objects`, `messages` and
    `unread` count what holds it, commits and tags that say it, and what was too large to look into.
    """

    kind: str
    name: str
    paths: tuple[str, ...]
    objects: int
    messages: int
    unread: int
    commits: tuple[Seen, ...]
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


def listed(ws: Workspace) -> Leaked:
    """Return the secrets that history holds, but for those that the settings allow."""
    with ws.repository.git.reading():
        found = leaks.known(ws.repository.git, ws.directory, allowlist(ws.settings))
    return Leaked(tuple(Secret(name, kind, count) for name, (kind, count) in found.items()))


def rewrite(ws: Workspace, ids: Sequence[str], secret: str, into: str, *, apply: bool) -> Rewritten:
    """Return where a memory or a secret stands in history; with `apply` take it out of a mirror.

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
    if ws.repository.is_shallow:
        raise MemtoolError("this clone is shallow: it does not have all of history",
                           hint="git fetch --unshallow", code="shallow")  # fmt: skip
    git = ws.repository.git
    with git.reading():
        if secret:
            leak = leaks.of_secret(git, ws.directory, secret)
        else:
            leak = leaks.of_memory(git, ws.directory, ids[0])
    if leak.unread:
        ws.notes.append(f"{leak.unread} objects above {leaks.MOST_BYTES >> 20} MiB were not read")
    if leak.objects and not leak.commits:
        ws.notes.append("no branch or tag leads to it: git reflog expire --expire=now --all and "
                        "git gc --prune=now remove it here")  # fmt: skip
    plan = _planned(leak)
    if not apply:
        return plan
    place = os.path.realpath(os.path.join(ws.cwd, into))
    if os.path.commonpath([place, ws.repository.top or ws.repository.git_dir]) in (
        ws.repository.top, ws.repository.git_dir
    ):  # fmt: skip
        raise MemtoolError(f"{into} lies inside this repository",
                           hint="--into ../cleansed")  # fmt: skip
    with auditing.act(ws, "purge", leak.name, detail="history, in a mirror"):
        proof = rewriting_history.rewrite(
            ws.repository.common_dir, place, leak, ws.directory, ws.env
        )
    return plan.replace(
        into=place,
        kept_commits=proof.commits,
        kept_blobs=proof.blobs,
        next=_commands(ws, place, proof),
        dry_run=False,
    )


def text(plan: Rewritten | Leaked) -> str:
    """Return where it stands, what its removal costs, and what to do next."""
    if isinstance(plan, Leaked):
        rows = [f"{one.fingerprint}  {one.kind}, versions: {one.versions}" for one in plan.secrets]
        return "\n".join(rows) or "no version of any memory holds a secret"
    what = f"the memory {plan.name}" if plan.kind == rewriting_history.MEMORY else (
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


def _planned(leak: Leak) -> Rewritten:
    named = f"--secret {leak.name}" if leak.needle else f"--history {leak.name}"
    return Rewritten(
        kind=leak.kind,
        name=leak.name,
        paths=leak.paths,
        objects=len(leak.objects),
        messages=leak.messages,
        unread=leak.unread,
        commits=tuple(Seen(one.commit, one.day) for one in leak.commits),
        refs=leak.refs,
        remotes=leak.remotes,
        consequences=CONSEQUENCES if leak.needle else CONSEQUENCES[1:],
        next=(f"memtool purge {named} --apply --into ../cleansed",),
        dry_run=True,
    )


def _commands(ws: Workspace, into: str, proof: Proof) -> tuple[str, ...]:
    """Return the commands that put a mirror in the place of its remotes, and of this clone.

    The address of a remote may hold a password: the shell asks git for it.
    """
    mirror, clone = shlex.quote(into), shlex.quote(ws.repository.top or ws.repository.git_dir)
    names = ws.repository.git.run("remote").decode(errors="replace").split()
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
