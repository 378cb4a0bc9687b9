"""Rewriting history without a secret or a memory, in a mirror, with proof.

The plan shows where the leak is and what its removal costs everyone. git-filter-repo rewrites a
mirror in a new directory. This clone and all remotes stay unchanged; the commands that replace the
remotes are printed, for a person to run. A mirror that still contains the leak, or has lost
anything else, is refused. The secret is written only to a temporary file that its owner alone can
read, never into an argument.
"""

from __future__ import annotations

import importlib.util
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from memtool import installation
from memtool.errors import MemtoolError, find_reason
from memtool.gate import sources
from memtool.memory import short_ids
from memtool.memory.changes import id_from_path
from memtool.memory.trust import SHORT_ID_DIGITS
from memtool.redaction import find as redaction
from memtool.redaction.find import Allowlist
from memtool.store import usage_log
from memtool.store.config import FINGERPRINT_DIGITS
from memtool.store.context import Context
from memtool.store.git import LOCATION_VARIABLES, Git
from memtool.value import HEX, Value, split_batches

PROGRAM = "git-filter-repo"
MODULE = "git_filter_repo"
MEMORY = "memory"
"""The kind of a leak that is a memory, not a secret."""
CONSEQUENCES = (
    "Change the secret where it is used before anything else: whoever fetched has it already.",
    "Fetch all remotes first, and let everybody push: what is not here is not rewritten.",
    "Every commit from the first one that held it gets another id; links to the old ones break.",
    "Signatures of those commits and tags are lost; whoever signed has to sign again.",
    "Everybody has to clone again: a push from an old clone brings the leak back.",
    "Open pull requests have to be closed, and opened again from a new clone.",
    "Forks, caches, build logs and the forge's own copies keep it: ask the forge to remove them.",
    "A bare repository of your own keeps it until: git gc --prune=now.",
)
"""What a rewrite costs, with any tool."""
_SHOWN = 20
MAX_BYTES = 64 << 20
"""Maximum bytes of an object that is searched; larger ones are only counted."""
BATCH_BYTES = 16 << 20
BATCH = 2_000
"""Maximum bytes and number of objects that are read at once."""
_AT_ONCE = 100
"""Commits in one `git for-each-ref --contains`."""


class LeakingCommit(Value):
    """A commit that added, changed or removed the leak, or whose own message contains it."""

    commit: str
    day: str


class RewriteReport(Value):
    """What is to be removed, where it is, and what that costs; with `into`, the proof as well.

    `kind` is `memory`, or the kind of the secret. `name` is the memory's id, or the secret's
    fingerprint. `paths` are the files that contained it. `objects` counts the objects that contain
    it, `messages` the commits and tags among them, and `unread` the objects too large to search.
    `refs` are full names. `next` are commands.
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


class Leak(Value):
    """A leak: the plan to remove it, the ids of its objects, and the secret, empty for a memory."""

    plan: RewriteReport
    objects: frozenset[str]
    needle: bytes

    def __repr__(self) -> str:
        """Leave the secret out."""
        return f"Leak({self.plan})"


class Secret(Value):
    """A secret in versions of memories: its fingerprint, and the number of versions."""

    fingerprint: str
    kind: str
    versions: int


class LeakReport(Value):
    """All secrets in the history of the memories."""

    secrets: tuple[Secret, ...]


def find_leak_of_memory(git: Git, directory: str, name: str) -> Leak:
    """Find all files that ever contained a memory, named by its id, a short id or words of it.

    Raises:
        MemtoolError: no commit has one, or several match.
    """
    touches = [touch for touch in _find_touches(git, [directory]) if touch[2].endswith(".md")]
    ids = sorted({id_from_path(path) for _commit, _day, path, _oids in touches})
    meant = [name] if name in ids else short_ids.find_meant(name, ids)
    if len(meant) != 1:
        several = f"{len(meant)} memories of its history match" if meant else "no commit has"
        raise MemtoolError(
            f"cannot purge: {several} {name!r}",
            hint="\n".join(f"memtool purge --history {id_}" for id_ in meant[:_SHOWN])
            or "list all memories of the history: memtool log",
            code="ambiguous-id" if meant else "unknown-id",
        )
    (id_,) = meant
    touched = [touch for touch in touches if id_from_path(touch[2]) == id_]
    oids = {oid for _commit, _day, _path, pair in touched for oid in pair}
    paths = {path for _commit, _day, path, _pair in touched}
    commits = {commit: day for commit, day, _path, _pair in touched}
    return _build_leak(git, MEMORY, id_, paths, oids, commits)


def find_leak_of_secret(git: Git, directory: str, fingerprint: str) -> Leak:
    """Find a secret by its fingerprint: first in the memories, then in all objects.

    Raises:
        MemtoolError: no version of any memory contains it.
    """
    secrets = _find_secrets(git, directory, redaction.NOTHING)
    leaked = next(
        (secret for secret in secrets if redaction.compute_fingerprint(secret[1]) == fingerprint),
        None,
    )
    if leaked is None:
        raise MemtoolError(
            f"cannot purge: no memory ever had a secret with the fingerprint {fingerprint!r}",
            hint="memtool purge --history",
            code="no-leak",
        )
    kind, secret = leaked
    needle = secret.encode(errors="surrogateescape")
    objects, unread = find_objects_with(git, needle)
    blobs = {oid for oid, type_ in objects.items() if type_ == "blob"}
    messages = sum(type_ in ("commit", "tag") for type_ in objects.values())
    named = _find_paths(git, blobs)
    commits = {}
    paths = set()
    for commit, day, path, oids in _find_touches(git, named) if named else ():
        if not blobs.isdisjoint(oids):
            commits[commit] = day
            paths.add(path)
    for oid in sorted(oid for oid, type_ in objects.items() if type_ == "commit"):
        commits[oid] = git.line("show", "-s", "--format=%as", oid)
    return _build_leak(git, kind, fingerprint, paths, objects, commits, messages, unread, needle)


def _find_secrets(git: Git, directory: str, allowed: Allowlist) -> Iterator[tuple[str, str]]:
    """Yield kind and text of each secret in all versions of a directory's files."""
    for _commits, blobs in sources.list_history(git, directory):
        for data in git.blobs([oid for oid, _path in blobs], sources.MAX_SEARCHED_BYTES):
            text = data.decode(errors="surrogateescape")
            for detection in redaction.find(text, allowed):
                yield detection.kind, text[detection.start : detection.end]


def _build_leak(
    git: Git,
    kind: str,
    name: str,
    paths: Iterable[str],
    objects: Iterable[str],
    commits: Mapping[str, str],
    messages: int = 0,
    unread: int = 0,
    needle: bytes = b"",
) -> Leak:
    """Build a leak with its plan; `commits` maps commit ids to days."""
    oids = frozenset(objects)
    refs = _find_refs(git, sorted(commits))
    remotes = {ref.split("/")[2] for ref in refs if ref.startswith("refs/remotes/")}
    days = sorted((day, commit) for commit, day in commits.items())
    option = "--secret" if needle else "--history"
    plan = RewriteReport(
        kind=kind,
        name=name,
        paths=tuple(sorted(paths)),
        objects=len(oids),
        messages=messages,
        unread=unread,
        commits=tuple(LeakingCommit(commit, day) for day, commit in days),
        refs=tuple(sorted(refs)),
        remotes=tuple(sorted(remotes)),
        consequences=CONSEQUENCES if needle else CONSEQUENCES[1:],
        next=(f"memtool purge {option} {name} --apply --into ../cleansed",),
        dry_run=True,
    )
    return Leak(plan, oids, needle)


def _find_touches(
    git: Git, paths: Collection[str]
) -> Iterator[tuple[str, str, str, tuple[str, ...]]]:
    """Yield commit, day, path, and the blobs before and after, for all commits of all refs."""
    rows = git.log_raw(
        "log", "--all", "-m", "--no-renames", "--full-history", "--format=%H %as", "--", *paths
    )
    for title, row in rows:
        commit, _space, day = title.partition(" ")
        yield commit, day, row.path, tuple(o for o in (row.old_oid, row.oid) if o.strip("0"))


def _find_paths(git: Git, blobs: Collection[str]) -> list[str]:
    """Return the paths of blobs, at least one for each."""
    rows = git.run("rev-list", "--objects", "--all").decode(errors="surrogateescape").splitlines()
    parted = (row.partition(" ") for row in rows)
    return sorted({path for oid, _space, path in parted if oid in blobs and path})


def _find_refs(git: Git, commits: list[str]) -> set[str]:
    """Return the refs that contain any of the commits."""
    refs: set[str] = set()
    for some in split_batches(commits, _AT_ONCE):
        options = [f"--contains={commit}" for commit in some]
        refs.update(git.run("for-each-ref", "--format=%(refname)", *options).decode().splitlines())
    return refs


def find_objects_with(git: Git, needle: bytes) -> tuple[dict[str, str], int]:
    """Return the types, by id, of all objects that contain some bytes.

    Also return how many objects were too large to search.
    """
    paths_by_oid: dict[str, str] = {}
    unread = 0
    for batch in split_batches(_list_objects(git), BATCH, BATCH_BYTES, lambda row: row[2]):
        for (oid, type_, size), data in zip(
            batch, git.blobs([oid for oid, _type, _size in batch], MAX_BYTES), strict=True
        ):
            unread += size > MAX_BYTES
            if needle in data:
                paths_by_oid[oid] = type_
    return paths_by_oid, unread


def _list_objects(git: Git) -> list[tuple[str, str, int]]:
    """Return id, type and size of all objects, including unreachable ones."""
    answer = git.run(
        "cat-file", "--batch-all-objects", "--batch-check=%(objectname) %(objecttype) %(objectsize)"
    )
    rows = (row.split() for row in answer.decode().splitlines())
    return [(oid, type_, int(size)) for oid, type_, size in rows]


def read_contents(git: Git) -> tuple[int, dict[str, str], set[str]]:
    """Return the number of commits, the object of each ref by full name, and all blobs.

    Only commits and blobs that a ref leads to count.
    """
    rows = git.run("for-each-ref", "--format=%(objectname) %(refname)").decode(errors="replace")
    refs = {name: oid for oid, _space, name in (row.partition(" ") for row in rows.splitlines())}
    listed = git.run("rev-list", "--objects", "--no-object-names", "--all")
    answer = git.run(
        "cat-file", "--batch-check=%(objecttype) %(objectname)", "--buffer", stdin=listed
    )
    types = (row.split() for row in answer.decode().splitlines())
    blobs = {oid for type_, oid in types if type_ == "blob"}
    return int(git.line("rev-list", "--all", "--count")), refs, blobs


def list_leaks(context: Context) -> LeakReport:
    """Return the secrets in all versions of memories, except those that the settings allow."""
    kinds: dict[str, str] = {}
    versions: Counter[str] = Counter()
    git, allowed = context.repository.git, redaction.build_allowlist(context.settings)
    with git.open_objects():
        for kind, secret in _find_secrets(git, context.directory, allowed):
            name = redaction.compute_fingerprint(secret)
            kinds[name] = kind
            versions[name] += 1
    return LeakReport(tuple(Secret(name, kinds[name], versions[name]) for name in sorted(kinds)))


def rewrite(
    context: Context, ids: Sequence[str], secret: str, into: str, *, apply: bool
) -> RewriteReport:
    """Find a memory or a secret in history; with `apply`, remove it from a mirror.

    Raises:
        MemtoolError: not exactly one is named, it is not there, or the rewrite fails.
    """
    if bool(secret) == bool(ids) or len(ids) > 1:
        raise MemtoolError(
            "--history needs a single memory or secret",
            hint="memtool purge --history ID\nmemtool purge --secret FINGERPRINT",
        )
    if secret and (len(secret) != FINGERPRINT_DIGITS or not HEX.issuperset(secret)):
        raise MemtoolError(  # it may be the secret itself, so do not show it
            "--secret takes a fingerprint (16 digits of 0-9 a-f), not the secret itself",
            hint="memtool purge --history",
        )
    named = f"--secret {secret}" if secret else f"--history {ids[0]}"
    if apply and not into:
        raise MemtoolError(
            "--apply needs --into: a new directory for the rewritten mirror",
            hint=f"memtool purge {named} --apply --into ../cleansed",
        )
    if context.repository.is_shallow:
        raise MemtoolError(
            "cannot purge history from a shallow clone",
            hint="git fetch --unshallow",
            code="shallow",
        )
    git = context.repository.git
    with git.open_objects():
        if secret:
            leak = find_leak_of_secret(git, context.directory, secret)
        else:
            leak = find_leak_of_memory(git, context.directory, ids[0])
    plan = leak.plan
    if plan.unread:
        context.notes.append(f"{plan.unread} objects above {MAX_BYTES >> 20} MiB were not read")
    if plan.objects and not plan.commits:
        context.notes.append(
            "no branch or tag has it; to remove it here: git reflog expire --expire=now --all and "
            "git gc --prune=now"
        )
    if not apply:
        return plan
    place = os.path.realpath(os.path.join(context.caller.cwd, into))
    own = context.repository.top or context.repository.git_dir
    if os.path.commonpath([place, own]) == own:
        raise MemtoolError(
            f"--into must be outside this repository: {into}", hint="--into ../cleansed"
        )
    with usage_log.audit(context, "purge", plan.name, detail="history, in a mirror"):
        commits, blobs, changed = _rewrite_mirror(context, place, leak)
    return plan.replace(
        into=place,
        kept_commits=commits,
        kept_blobs=blobs,
        next=_build_commands(context, place, changed),
        dry_run=False,
    )


def _build_commands(context: Context, into: str, changed: Mapping[str, str]) -> tuple[str, ...]:
    """Return the commands that replace the remotes, and this clone, with the mirror.

    `changed` maps each changed ref to the object that it named before. A remote's address may
    contain a password, so the shell gets it from git.
    """
    mirror = shlex.quote(into)
    clone = shlex.quote(context.repository.top or context.repository.git_dir)
    names = context.repository.git.run("remote").decode(errors="replace").split()
    rows = []
    for remote in names:
        address = f'"$(git -C {clone} remote get-url --push {shlex.quote(remote)})"'
        prefix = f"refs/remotes/{remote}/"
        for ref, old in changed.items():
            branch = ref.removeprefix(prefix)
            if ref.startswith(prefix) and branch != "HEAD":
                target = shlex.quote(f"refs/heads/{branch}")
                rows.append(
                    f"git -C {mirror} push --force-with-lease={target}:{old} {address} "
                    f"{shlex.quote(ref)}:{target}"
                )
        tags = [ref for ref in changed if ref.startswith("refs/tags/")]
        if tags:
            rows.append(
                f"git -C {mirror} push --force {address} {' '.join(map(shlex.quote, tags))}"
            )
    new = shlex.quote(f"{into}-clone")
    main = "origin" if "origin" in names or not names else names[0]
    option = "" if main == "origin" else f"--origin {shlex.quote(main)} "
    rows.append(f"git clone {option}{mirror} {new}  # in place of {clone}")
    for remote in names:
        action = "set-url" if remote == main else "add"  # the clone must not push to the mirror
        rows.append(
            f"git -C {new} remote {action} {shlex.quote(remote)} "
            f'"$(git -C {clone} remote get-url {shlex.quote(remote)})"'
        )
    return tuple(rows)


def text(plan: RewriteReport | LeakReport) -> str:
    """Format where the leak is, what its removal costs, and what to do next."""
    if isinstance(plan, LeakReport):
        rows = [
            f"{secret.fingerprint}  {secret.kind}, versions: {secret.versions}"
            for secret in plan.secrets
        ]
        if not rows:
            return "no version of any memory holds a secret"
        rows.append("To plan the removal of one: memtool purge --secret FINGERPRINT")
        return "\n".join(rows)
    what = (
        f"the memory {plan.name}"
        if plan.kind == MEMORY
        else (f"the secret {plan.name} ({plan.kind})")
    )
    rows = [
        f"{what} stands in history",
        f"  objects that hold it: {plan.objects}, messages among them: {plan.messages}",
        *_format_names("file", plan.paths),
        *_format_names(
            "commit",
            [f"{commit.commit[:SHORT_ID_DIGITS]} of {commit.day}" for commit in plan.commits],
        ),
        *_format_names("ref", plan.refs),
        *_format_names("remote", plan.remotes),
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


def _format_names(kind: str, names: Sequence[str]) -> list[str]:
    rows = [f"  {kind} {name}" for name in names[:_SHOWN]]
    hidden = len(names) - len(rows)
    return [*rows, f"  and {hidden} more"] if hidden else rows


def _rewrite_mirror(context: Context, into: str, leak: Leak) -> tuple[int, int, dict[str, str]]:
    """Mirror the repository into a new directory, remove the leak there, and prove it.

    Raises:
        MemtoolError: the directory exists, a program fails, or the proof does. The mirror must not
            be pushed then.
    """
    program = _find_program(context.caller.env)
    if os.path.lexists(into) or not os.path.isdir(os.path.dirname(into)):
        what = "is there already" if os.path.lexists(into) else "is in no directory that is there"
        raise MemtoolError(
            f"{into} {what}", hint="name a new directory with --into DIR", code="exists"
        )
    source = context.repository.common_dir
    own = {
        name: value for name, value in context.caller.env.items() if name not in LOCATION_VARIABLES
    }
    # The mirror contains only objects: no hooks, no settings, no links into the clone.
    Git(source, own).run(
        "clone",
        "--quiet",
        "--mirror",
        "--no-local",
        "--template=",
        "--",
        source,
        into,
        env={"GIT_ALLOW_PROTOCOL": "file", "GIT_TERMINAL_PROMPT": "0"},
        with_hooks=True,
    )
    mirror = Git(into, own | {"GIT_DIR": into})
    before = read_contents(mirror)
    _filter(program, into, leak, own)
    for step in (("reflog", "expire", "--expire=now", "--all"), ("gc", "--quiet", "--prune=now")):
        mirror.run(*step, with_hooks=True)
    return _prove(mirror, leak, context.directory, before)


def _find_program(env: Mapping[str, str]) -> list[str]:
    """Return the command that starts git-filter-repo.

    Raises:
        MemtoolError: it is not installed.
    """
    if importlib.util.find_spec(MODULE) is not None:
        return [sys.executable, "-P", "-m", MODULE]
    program = shutil.which(PROGRAM, path=env.get("PATH"))
    if program is None:
        raise MemtoolError(
            f"cannot rewrite history: {PROGRAM} is not installed",
            hint=f"{installation.install('purge')}\nthen run the command again",
            code="not-installed",
        )
    return [program]


def _filter(program: list[str], into: str, leak: Leak, env: Mapping[str, str]) -> None:
    """Run git-filter-repo in a mirror. Raises MemtoolError if it fails."""
    # --partial keeps the names of all refs; the caller removes what it leaves behind.
    args = [
        "--partial",
        "--force",
        "--quiet",
        "--prune-empty",
        "never",
        "--prune-degenerate",
        "never",
        "--replace-refs",
        "delete-no-add",
    ]
    with tempfile.NamedTemporaryFile(dir=into, prefix="memtool-", delete=True) as rules:  # 0600
        if leak.needle:
            rules.write(_format_rule(leak))
            rules.flush()
            args += ["--replace-text", rules.name, "--replace-message", rules.name]
        else:
            args += ["--invert-paths", *(f"--path={path}" for path in leak.plan.paths)]
        try:
            done = subprocess.run(
                [*program, *args],
                cwd=into,
                env=dict(env) | {"GIT_DIR": into},
                check=False,
                stdin=subprocess.DEVNULL,
                capture_output=True,
            )
        except OSError as error:
            raise _failure(into, find_reason(error)) from None
    if done.returncode:
        is_safe = not leak.needle or leak.needle not in done.stderr
        last = done.stderr.decode(errors="replace").strip().splitlines()[-1:] if is_safe else []
        raise _failure(into, last[0] if last else f"it ended with status {done.returncode}")


def _format_rule(leak: Leak) -> bytes:
    """Format the rule that replaces a secret, byte by byte, since it may contain line feeds."""
    pattern = "".join(f"\\x{byte:02x}" for byte in leak.needle)
    return f"regex:{pattern}==>[REDACTED:{leak.plan.kind}]\n".encode()


def _failure(into: str, why: str) -> MemtoolError:
    return MemtoolError(
        f"{PROGRAM} failed: {why}",
        hint=f"only {into} was changed: remove it",
        code="rewrite",
    )


def _prove(
    mirror: Git, leak: Leak, directory: str, before: tuple[int, dict[str, str], set[str]]
) -> tuple[int, int, dict[str, str]]:
    """Prove that only the leak is gone; return the counts and the changed refs.

    These are the number of commits, the number of blobs without the leak, and the object that each
    changed ref named before.

    Raises:
        MemtoolError: the leak is still there, or more than the leak is gone.
    """
    commits, refs, blobs = before

    def failure(why: str) -> MemtoolError:
        return MemtoolError(
            f"the rewritten history failed verification: {why}",
            hint=f"do not push it; only {mirror.directory} was changed",
            code="unproven",
        )

    count, now, left_blobs = read_contents(mirror)
    if leak.needle:
        remaining, _unread = find_objects_with(mirror, leak.needle)
        if remaining:
            raise failure(
                f"objects that still hold the secret: {len(remaining)}, such as binary "
                "files, which it leaves alone"
            )
    else:
        touches = _find_touches(mirror, [directory])
        if any(id_from_path(path) == leak.plan.name for _commit, _day, path, _oids in touches):
            raise failure(f"some commit still holds {leak.plan.name}")
    if (count, now.keys()) != (commits, refs.keys()):
        raise failure(f"{commits} commits and {len(refs)} refs became {count} and {len(now)}")
    reachable = blobs.difference(leak.objects)
    gone = reachable - left_blobs
    if gone:
        raise failure(f"{len(gone)} other files are gone as well")
    changed = {name: oid for name, oid in refs.items() if now[name] != oid}
    return commits, len(reachable), changed
