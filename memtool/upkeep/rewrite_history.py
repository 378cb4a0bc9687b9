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
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from memtool import installation
from memtool.errors import MemtoolError, reason_of
from memtool.gate import sources
from memtool.redaction import find as redaction
from memtool.redaction.find import Allowlist
from memtool.store import usage_log
from memtool.store.config import FINGERPRINT_DIGITS
from memtool.store.context import Context
from memtool.store.git import LOCATION_VARIABLES, Git
from memtool.store.provenance import SHORT
from memtool.value import HEX, Value, batches

PROGRAM = "git-filter-repo"
MODULE = "git_filter_repo"
MEMORY = "memory"
"""The kind of a leak that is no secret."""
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
MOST_BYTES = 64 << 20
"""Bytes of an object that is searched; larger ones are only counted."""
BATCH_BYTES = 16 << 20
BATCH = 2_000
"""Bytes and number of the objects that are read at once."""
_AT_ONCE = 100
"""Commits in one `git for-each-ref --contains`."""


class LeakingCommit(Value):
    """A commit that added, changed or removed the leak, or whose own message holds it."""

    commit: str
    day: str


class Rewritten(Value):
    """What must go, where it is, what that costs, and with `into` the proof for the mirror there.

    `kind` is `memory`, or the kind of the secret; `name` is the id of the memory, or the
    fingerprint of the secret. `paths` are the files that held it, `objects` counts the objects that
    hold it, `messages` the commits and tags among them, `unread` objects too large to be searched.
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

    plan: Rewritten
    objects: frozenset[str]
    needle: bytes

    def __repr__(self) -> str:
        """Return what may be shown."""
        return f"Leak({self.plan})"


class Secret(Value):
    """A secret that versions of memories hold, by its fingerprint, and how many do."""

    fingerprint: str
    kind: str
    versions: int


class Leaked(Value):
    """All secrets in the history of the memories."""

    secrets: tuple[Secret, ...]


def leak_of_memory(git: Git, directory: str, id: str) -> Leak:
    """Find every file that ever held a memory. Raises MemtoolError where no commit has one."""
    touched = [
        (commit, day, path, oids)
        for commit, day, path, oids in _touches(git, [directory])
        if path.endswith(f"/{id}.md")
    ]
    if not touched:
        raise MemtoolError(
            f"no commit holds the memory {id!r}",
            hint="memtool log lists the memories of history; the id must be whole",
            code="unknown-id",
        )
    oids = {oid for _commit, _day, _path, pair in touched for oid in pair}
    paths = {path for _commit, _day, path, _pair in touched}
    commits = {commit: day for commit, day, _path, _pair in touched}
    return _leak(git, MEMORY, id, paths, oids, commits)


def leak_of_secret(git: Git, directory: str, fingerprint: str) -> Leak:
    """Find a secret by its fingerprint: first among the memories, then in every object there is.

    Raises:
        MemtoolError: no version of any memory holds it.
    """
    secrets = _secrets(git, directory, redaction.NOTHING)
    known = next((one for one in secrets if redaction.fingerprint(one[1]) == fingerprint), None)
    if known is None:
        raise MemtoolError(
            f"no version of any memory holds a secret with the fingerprint {fingerprint!r}",
            hint="memtool purge --history lists the fingerprints of those that do",
            code="no-leak",
        )
    kind, secret = known
    needle = secret.encode(errors="surrogateescape")
    found, unread = objects_with(git, needle)
    blobs = {oid for oid, type_ in found.items() if type_ == "blob"}
    messages = sum(type_ in ("commit", "tag") for type_ in found.values())
    named = _paths_of(git, blobs)
    commits = {}
    paths = set()
    for commit, day, path, oids in _touches(git, named) if named else ():
        if not blobs.isdisjoint(oids):
            commits[commit] = day
            paths.add(path)
    for oid in sorted(oid for oid, type_ in found.items() if type_ == "commit"):
        commits[oid] = git.line("show", "-s", "--format=%as", oid)
    return _leak(git, kind, fingerprint, paths, found, commits, messages, unread, needle)


def _secrets(git: Git, directory: str, allowed: Allowlist) -> Iterator[tuple[str, str]]:
    """Yield kind and text of each secret in each version of the files of a directory."""
    for batch in sources.history_blobs(git, directory):
        for data in git.blobs([oid for oid, _path, _size in batch], sources.MOST_BYTES):
            text = data.decode(errors="surrogateescape")
            for detection in redaction.find(text, allowed):
                yield detection.kind, text[detection.start : detection.end]


def _leak(
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
    """Return a leak with the plan to remove it; `commits` are their days by id."""
    oids = frozenset(objects)
    refs = _leading_to(git, sorted(commits))
    remotes = {ref.split("/")[2] for ref in refs if ref.startswith("refs/remotes/")}
    days = sorted((day, commit) for commit, day in commits.items())
    named = f"--secret {name}" if needle else f"--history {name}"
    plan = Rewritten(
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
        next=(f"memtool purge {named} --apply --into ../cleansed",),
        dry_run=True,
    )
    return Leak(plan, oids, needle)


def _touches(git: Git, paths: Collection[str]) -> Iterator[tuple[str, str, str, tuple[str, ...]]]:
    """Yield commit, day, path, and the blobs before and after, of all that any ref leads to."""
    rows = git.log_raw(
        "log", "--all", "-m", "--no-renames", "--full-history", "--format=%H %as", "--", *paths
    )
    for title, row in rows:
        commit, _space, day = title.partition(" ")
        yield commit, day, row.path, tuple(o for o in (row.old_oid, row.oid) if o.strip("0"))


def _paths_of(git: Git, blobs: Collection[str]) -> list[str]:
    """Return the paths under which git finds blobs, one of each at least."""
    rows = git.run("rev-list", "--objects", "--all").decode(errors="surrogateescape").splitlines()
    parted = (row.partition(" ") for row in rows)
    return sorted({path for oid, _space, path in parted if oid in blobs and path})


def _leading_to(git: Git, commits: list[str]) -> set[str]:
    """Return the refs that lead to any of some commits."""
    found: set[str] = set()
    for some in batches(commits, _AT_ONCE):
        asked = [f"--contains={commit}" for commit in some]
        found.update(git.run("for-each-ref", "--format=%(refname)", *asked).decode().splitlines())
    return found


def objects_with(git: Git, needle: bytes) -> tuple[dict[str, str], int]:
    """Return every object that holds some bytes, as types by id, and how many were too large."""
    found: dict[str, str] = {}
    unread = 0
    for batch in batches(_all_objects(git), BATCH, BATCH_BYTES, lambda row: row[2]):
        for (oid, type_, size), data in zip(
            batch, git.blobs([oid for oid, _type, _size in batch], MOST_BYTES), strict=True
        ):
            unread += size > MOST_BYTES
            if needle in data:
                found[oid] = type_
    return found, unread


def _all_objects(git: Git) -> list[tuple[str, str, int]]:
    """Return id, type and size of every object, also of those that no ref leads to."""
    answer = git.run(
        "cat-file", "--batch-all-objects", "--batch-check=%(objectname) %(objecttype) %(objectsize)"
    )
    rows = (row.split() for row in answer.decode().splitlines())
    return [(oid, type_, int(size)) for oid, type_, size in rows]


def contents(git: Git) -> tuple[int, dict[str, str], set[str]]:
    """Return the number of commits, the object of each ref by its full name, and all blobs.

    Of commits and blobs those count that any ref leads to.
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


def listed(context: Context) -> Leaked:
    """Return the secrets in versions of memories, but for those that the settings allow."""
    kinds: dict[str, str] = {}
    versions: Counter[str] = Counter()
    git, allowed = context.repository.git, redaction.allowlist(context.settings)
    with git.reading():
        for kind, secret in _secrets(git, context.directory, allowed):
            name = redaction.fingerprint(secret)
            kinds[name] = kind
            versions[name] += 1
    return Leaked(tuple(Secret(name, kinds[name], versions[name]) for name in sorted(kinds)))


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
    if secret and (len(secret) != FINGERPRINT_DIGITS or not HEX.issuperset(secret)):
        raise MemtoolError(  # perhaps it is the secret itself: nobody is to see it
            "--secret takes a fingerprint, 16 digits of 0-9 a-f, never the secret itself",
            hint="memtool purge --history lists fingerprints",
        )
    if apply and not into:
        raise MemtoolError(
            "--apply needs a new directory for the rewritten mirror",
            hint="memtool purge … --apply --into ../cleansed",
        )
    if context.repository.is_shallow:
        raise MemtoolError(
            "this clone is shallow: it does not have all of history",
            hint="git fetch --unshallow",
            code="shallow",
        )
    git = context.repository.git
    with git.reading():
        if secret:
            leak = leak_of_secret(git, context.directory, secret)
        else:
            leak = leak_of_memory(git, context.directory, ids[0])
    plan = leak.plan
    if plan.unread:
        context.notes.append(f"{plan.unread} objects above {MOST_BYTES >> 20} MiB were not read")
    if plan.objects and not plan.commits:
        context.notes.append(
            "no branch or tag leads to it: git reflog expire --expire=now --all and "
            "git gc --prune=now remove it here"
        )
    if not apply:
        return plan
    place = os.path.realpath(os.path.join(context.caller.cwd, into))
    own = context.repository.top or context.repository.git_dir
    if os.path.commonpath([place, own]) == own:
        raise MemtoolError(f"{into} lies inside this repository", hint="--into ../cleansed")
    with usage_log.act(context, "purge", plan.name, detail="history, in a mirror"):
        commits, blobs, changed = _rewritten_mirror(context, place, leak)
    return plan.replace(
        into=place,
        kept_commits=commits,
        kept_blobs=blobs,
        next=_commands(context, place, changed),
        dry_run=False,
    )


def _commands(context: Context, into: str, changed: Mapping[str, str]) -> tuple[str, ...]:
    """Return the commands that put a mirror in the place of its remotes, and of this clone.

    `changed` has the object that each ref named before, where that is another one now.

    The address of a remote may hold a password: the shell asks git for it.
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
    rows.append(f"git clone {mirror} {shlex.quote(into + '-clone')}  # in place of {clone}")
    return tuple(rows)


def text(plan: Rewritten | Leaked) -> str:
    """Return where the leak is, what its removal costs, and what to do next."""
    if isinstance(plan, Leaked):
        rows = [f"{one.fingerprint}  {one.kind}, versions: {one.versions}" for one in plan.secrets]
        return "\n".join(rows) or "no version of any memory holds a secret"
    what = (
        f"the memory {plan.name}"
        if plan.kind == MEMORY
        else (f"the secret {plan.name} ({plan.kind})")
    )
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


def _rewritten_mirror(context: Context, into: str, leak: Leak) -> tuple[int, int, dict[str, str]]:
    """Mirror the repository into a new directory, remove the leak there, and prove it.

    Raises:
        MemtoolError: the directory exists, a program fails, or the proof does; the mirror must not
            be pushed then.
    """
    program = _program(context.caller.env)
    if os.path.lexists(into) or not os.path.isdir(os.path.dirname(into)):
        what = "is there already" if os.path.lexists(into) else "is in no directory that is there"
        raise MemtoolError(f"{into} {what}", hint="--into DIR names a new directory", code="exists")
    source = context.repository.common_dir
    own = {
        name: value for name, value in context.caller.env.items() if name not in LOCATION_VARIABLES
    }
    # The mirror is made of objects alone: no hook, no setting, no link into the clone.
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
    before = contents(mirror)
    _filter(program, into, leak, own)
    for step in (("reflog", "expire", "--expire=now", "--all"), ("gc", "--quiet", "--prune=now")):
        mirror.run(*step, with_hooks=True)
    return _proven(mirror, leak, context.directory, before)


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
            hint=f"{installation.install('purge')}, then run the same command again",
            code="no-filter-repo",
        )
    return [found]


def _filter(program: list[str], into: str, leak: Leak, env: Mapping[str, str]) -> None:
    """Run git-filter-repo in a mirror. Raises MemtoolError where it fails."""
    # --partial keeps every ref under its name; what it leaves behind is tidied up by the caller.
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
            rules.write(_rule(leak))
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
            raise _failed(into, reason_of(error)) from None
    if done.returncode:
        is_safe = not leak.needle or leak.needle not in done.stderr
        last = done.stderr.decode(errors="replace").strip().splitlines()[-1:] if is_safe else []
        raise _failed(into, last[0] if last else f"it ended with status {done.returncode}")


def _rule(leak: Leak) -> bytes:
    """Return the line that replaces a secret: byte by byte, since it may hold line feeds."""
    pattern = "".join(f"\\x{byte:02x}" for byte in leak.needle)
    return f"regex:{pattern}==>[REDACTED:{leak.plan.kind}]\n".encode()


def _failed(into: str, why: str) -> MemtoolError:
    return MemtoolError(
        f"{PROGRAM} failed: {why}",
        hint=f"nothing but {into} was touched; remove it",
        code="rewrite",
    )


def _proven(
    mirror: Git, leak: Leak, directory: str, before: tuple[int, dict[str, str], set[str]]
) -> tuple[int, int, dict[str, str]]:
    """Return what is the same before and after, and what changed.

    These are the number of commits, the number of blobs without the leak, and the object that each
    changed ref named before.

    Raises:
        MemtoolError: the leak is left, or more than it is gone.
    """
    commits, refs, blobs = before

    def failed(why: str) -> MemtoolError:
        return MemtoolError(
            f"the rewritten history is not what it should be: {why}",
            hint=f"do not push it; nothing but {mirror.directory} was touched",
            code="unproven",
        )

    count, now, left_blobs = contents(mirror)
    if leak.needle:
        left, _unread = objects_with(mirror, leak.needle)
        if left:
            raise failed(
                f"{len(left)} objects still hold the secret, such as binary "
                "files, which it leaves alone"
            )
    else:
        try:
            leak_of_memory(mirror, directory, leak.plan.name)
        except MemtoolError as error:
            if error.code != "unknown-id":
                raise
        else:
            raise failed(f"some commit still holds {leak.plan.name}")
    if (count, now.keys()) != (commits, refs.keys()):
        raise failed(f"{commits} commits and {len(refs)} refs became {count} and {len(now)}")
    kept = blobs.difference(leak.objects)
    gone = kept - left_blobs
    if gone:
        raise failed(f"{len(gone)} other files are gone as well")
    changed = {name: oid for name, oid in refs.items() if now[name] != oid}
    return commits, len(kept), changed
