"""Leaks: which objects, commits, branches and remotes hold a secret or a memory that must go.

Nothing is changed here, and no result contains a secret but as `needle`.
"""

from __future__ import annotations

from memtool.errors import MemtoolError
from memtool.redaction import find as redaction
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from memtool.redaction.find import Allowlist
    from memtool.store.git import Git

MOST_BYTES = 64 << 20
"""Of an object that is searched; larger ones are only counted."""
BATCH_BYTES = 16 << 20
BATCH = 2_000
_AT_ONCE = 100
"""Commits in one `git for-each-ref --contains`."""


class LeakingCommit(Value):
    """A commit that added, changed or removed the leak, or whose own message holds it."""

    commit: str
    day: str


class Leak(Value):
    """What must go, and where it is. `kind` is `memory`, or the kind of the secret.

    `name` is the id of the memory, or the fingerprint of the secret. `paths` are the files that
    held it, `objects` the ids of objects that hold it, `messages` counts the commits and tags among
    them, `unread` objects too large to be searched. `refs` are full names. `needle` is the secret,
    empty for a memory.
    """

    kind: str
    name: str
    paths: tuple[str, ...]
    objects: tuple[str, ...]
    messages: int
    commits: tuple[LeakingCommit, ...]
    refs: tuple[str, ...]
    remotes: tuple[str, ...]
    unread: int
    needle: bytes = b""

    def __repr__(self) -> str:
        """Return what may be shown."""
        return f"Leak({self.kind}, {self.name})"


def known(git: Git, directory: str, allowed: Allowlist) -> dict[str, tuple[str, int]]:
    """Return the secrets in versions of memories: kind and number of versions, by fingerprint."""
    found: dict[str, tuple[str, int]] = {}
    for kind, secret in _secrets(git, directory, allowed):
        name = redaction.fingerprint(secret)
        found[name] = kind, found.get(name, ("", 0))[1] + 1
    return dict(sorted(found.items()))


def of_memory(git: Git, directory: str, id: str) -> Leak:
    """Find every file that a memory ever had. Raises MemtoolError where no commit has one."""
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
    return _leak(git, "memory", id, paths, oids, commits, 0, 0)


def of_secret(git: Git, directory: str, fingerprint: str) -> Leak:
    """Find a secret by its fingerprint: first among the memories, then in every object there is.

    Raises:
        MemtoolError: no version of any memory holds it.
    """
    kind, secret = _secret(git, directory, fingerprint)
    needle = secret.encode(errors="surrogateescape")
    found, unread = holding(git, needle)
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
    return _leak(git, kind, fingerprint, paths, set(found), commits, messages, unread, needle)


def _secret(git: Git, directory: str, fingerprint: str) -> tuple[str, str]:
    """Return kind and text of a secret that some version of a memory holds."""
    for kind, secret in _secrets(git, directory, redaction.NOTHING):
        if redaction.fingerprint(secret) == fingerprint:
            return kind, secret
    raise MemtoolError(
        f"no version of any memory holds a secret with the fingerprint {fingerprint!r}",
        hint="memtool purge --history lists the fingerprints of those that do",
        code="no-leak",
    )


def _secrets(git: Git, directory: str, allowed: Allowlist) -> Iterator[tuple[str, str]]:
    """Yield kind and text of each secret in each version of the files of a directory."""
    listed = git.run("rev-list", "--objects", "--all", "--full-history", "--", directory)
    rows = (row.partition(" ") for row in listed.decode(errors="replace").splitlines())
    named = sorted({oid for oid, _space, path in rows if path.startswith(directory + "/")})
    infos = zip(named, git.infos(named), strict=True)
    blobs = [(oid, info[1], info[2]) for oid, info in infos if info and info[1] == "blob"]
    for batch in _batches(blobs):
        for data in git.blobs([oid for oid, _type, _size in batch], 1 << 20):
            text = data.decode(errors="surrogateescape")
            for detection in redaction.find(text, allowed):
                yield detection.kind, text[detection.start : detection.end]


def _leak(
    git: Git,
    kind: str,
    name: str,
    paths: Collection[str],
    objects: Collection[str],
    commits: dict[str, str],
    messages: int,
    unread: int,
    needle: bytes = b"",
) -> Leak:
    leading = _leading_to(git, sorted(commits))
    remotes = {ref.split("/")[2] for ref in leading if ref.startswith("refs/remotes/")}
    return Leak(
        kind=kind,
        name=name,
        paths=tuple(sorted(paths)),
        objects=tuple(sorted(objects)),
        messages=messages,
        commits=tuple(
            LeakingCommit(commit, day)
            for day, commit in sorted((day, commit) for commit, day in commits.items())
        ),
        refs=tuple(sorted(leading)),
        remotes=tuple(sorted(remotes)),
        unread=unread,
        needle=needle,
    )


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
    for first in range(0, len(commits), _AT_ONCE):
        asked = [f"--contains={commit}" for commit in commits[first : first + _AT_ONCE]]
        found.update(git.run("for-each-ref", "--format=%(refname)", *asked).decode().splitlines())
    return found


def holding(git: Git, needle: bytes) -> tuple[dict[str, str], int]:
    """Return every object that holds some bytes, as types by id, and how many were too large."""
    found: dict[str, str] = {}
    unread = 0
    for batch in _batches(_all_objects(git)):
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


def _batches(rows: Iterable[tuple[str, str, int]]) -> Iterator[list[tuple[str, str, int]]]:
    batch: list[tuple[str, str, int]] = []
    size = 0
    for row in rows:
        batch.append(row)
        size += row[2]
        if size > BATCH_BYTES or len(batch) >= BATCH:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def reachable(git: Git) -> set[str]:
    """Return the ids of all blobs that any ref leads to."""
    listed = git.run("rev-list", "--objects", "--no-object-names", "--all")
    answer = git.run(
        "cat-file", "--batch-check=%(objecttype) %(objectname)", "--buffer", stdin=listed
    )
    rows = (row.split() for row in answer.decode().splitlines())
    return {oid for type_, oid in rows if type_ == "blob"}


def refs(git: Git) -> dict[str, str]:
    """Return the object that each ref names, by its full name."""
    rows = git.run("for-each-ref", "--format=%(objectname) %(refname)").decode(errors="replace")
    return {name: oid for oid, _space, name in (row.partition(" ") for row in rows.splitlines())}
