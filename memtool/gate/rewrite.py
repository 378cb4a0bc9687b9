"""Take secrets out of files: new bytes for a file, for git's index, and the key of the hashes.

All other bytes stay as they were, and a memory stays a memory: where a mark in the frontmatter
would not read back as the same key, the key is written again, in quotes. In the index an entry
keeps its mode; the worktree is not touched and no filter is run, so what is not staged stays so.

`redaction`, which knows texts alone, decides what a secret is and how it is marked.
"""

from __future__ import annotations

import os

from memtool.errors import MemtoolError
from memtool.memory import document
from memtool.memory.changes import changed_keys, is_redacted
from memtool.redaction.find import MOST_CHARACTERS, Allowlist, find, fingerprint, marked, marks
from memtool.store.files import TEMP_PREFIX, read_regular, refusing
from memtool.store.git import ARGUMENTS, REGULAR
from memtool.value import Value, batches

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from memtool.memory.memory import FieldValue, Memory
    from memtool.redaction.find import Strategy
    from memtool.store.git import IndexEntry
    from memtool.store.repository import Repository

MOST_BYTES = MOST_CHARACTERS

KEY_NAME = "redaction.key"
KEY_LENGTH = 32

_PARTIAL = "next-index-"


class Removal(Value):
    """One detection as it may be shown: its kind, its line from 1, and the name to allow it by."""

    kind: str
    line: int
    fingerprint: str


class Rewrite(Value):
    """What was found in the bytes of a file, and the bytes without it."""

    found: tuple[Removal, ...]
    data: bytes


class Rules(Value):
    """How files are rewritten: what is allowed, by which marks, and what a memory may be.

    `key` is for the strategy `hash` alone; `categories` are those that memories may name.
    """

    allowed: Allowlist
    strategy: Strategy
    key: bytes
    categories: Collection[str]


def rewrite(data: bytes, path: str, rules: Rules) -> Rewrite:
    """Replace every detection in the bytes of a file. Bytes that are no UTF-8 keep their places.

    Raises:
        MemtoolError: it is no text, is too large, or what is to go holds a memory together.
    """
    if len(data) > MOST_BYTES:
        raise MemtoolError(
            f"{path} has {len(data):,} bytes, {MOST_BYTES:,} can be looked through",
            hint="name smaller files",
            code="too-large",
        )
    if b"\0" in data:
        raise MemtoolError(
            f"{path} is no text: it holds NUL bytes",
            hint="name text files; a secret in another file goes with git rm",
            code="binary",
        )
    text = data.decode(errors="surrogateescape")
    detections = find(text, rules.allowed)
    if not detections:
        return Rewrite((), data)
    found = tuple(Removal(d.kind, d.line, fingerprint(text[d.start : d.end])) for d in detections)
    places = marks(text, detections, rules.strategy, rules.key)
    after = marked(text, places).encode(errors="surrogateescape")
    memory = _memory(data, path, rules)
    if memory is not None:
        header_end = len(text) - len(memory.body)
        in_body = marked(text, [(d, mark) for d, mark in places if d.start >= header_end])
        wanted = memory.with_body(in_body[header_end:])
        if not _is_same(wanted, after, path, rules):
            secrets = [(text[d.start : d.end], mark) for d, mark in places if d.start < header_end]
            rewritten = _rewritten(in_body, wanted, path, secrets, rules)
            if rewritten is None:
                raise MemtoolError(
                    f"{path} would be no memory without the {found[0].kind} in line "
                    f"{found[0].line}",
                    hint="write the memory anew without it, and git rm this file",
                    code="redaction",
                )
            after = rewritten
    return Rewrite(found, after)


def _memory(data: bytes, path: str, rules: Rules) -> Memory | None:
    try:
        return document.read(data, path, rules.categories)
    except document.Unreadable:
        return None


def _is_same(wanted: Memory, data: bytes, path: str, rules: Rules) -> bool:
    """Return whether bytes are the memory that is wanted, but for marks in its keys."""
    after = _memory(data, path, rules)
    return (
        after is not None
        and (after.id, after.body) == (wanted.id, wanted.body)
        and all(
            is_redacted(wanted.fields.get(key), after.fields.get(key))
            for key in changed_keys(wanted, after)
        )
    )


def _rewritten(
    text: str, wanted: Memory, path: str, secrets: Sequence[tuple[str, str]], rules: Rules
) -> bytes | None:
    """Return a text with the keys that hold secrets written again, None where that is no memory."""
    changes = {
        key: new for key, old in wanted.fields.items() if (new := _marked(old, secrets)) != old
    }
    try:
        after = document.edit(text.encode(), changes, path)
    except document.Unreadable:
        return None
    is_clean = not find(after.decode(), rules.allowed)
    return after if is_clean and _is_same(wanted, after, path, rules) else None


def _marked(value: FieldValue, secrets: Sequence[tuple[str, str]]) -> FieldValue:
    if isinstance(value, dict):
        return {name: _without(text, secrets) for name, text in value.items()}
    if isinstance(value, tuple):
        return tuple(_without(text, secrets) for text in value)
    return _without(value, secrets)


def _without(text: str, secrets: Sequence[tuple[str, str]]) -> str:
    for secret, mark in secrets:
        text = text.replace(secret, mark)
    return text


def refuse_partial_commit(env: Mapping[str, str]) -> None:
    """Raise MemtoolError inside `git commit -- PATH`: its index is a copy that git throws away.

    What is restaged there would be committed, while the index itself keeps the secret.
    """
    if os.path.basename(env.get("GIT_INDEX_FILE", "")).startswith(_PARTIAL):
        raise MemtoolError(
            "nothing can be restaged inside git commit -- PATH, which commits from a copy of "
            "the index",
            hint="memtool redact PATH, then git commit without a path",
            code="partial-commit",
        )


def staged(repository: Repository, paths: Sequence[str]) -> dict[str, IndexEntry]:
    """Return the regular files that the index holds at some paths, or below them.

    Raises:
        MemtoolError: a merge is unfinished at one of them.
    """
    found: dict[str, IndexEntry] = {}
    for some in batches(paths, ARGUMENTS):
        for entry in repository.git.ls_files(*some):
            if entry.stage != "0":
                raise MemtoolError(
                    f"a merge is unfinished in {entry.path}",
                    hint=f"keep one side, then git add {entry.path}",
                    code="conflict-markers",
                )
            if entry.mode in REGULAR:
                found[entry.path] = entry
    return found


def changed(repository: Repository) -> set[str]:
    """Return the paths whose staged content differs from HEAD, without deleted ones."""
    git = repository.git
    tree = git.head()
    if not tree:
        return set(git.names("ls-files", "-z"))
    options = ("--cached", "--name-only", "--no-renames", "--diff-filter=d", "-z")
    return set(git.names("diff-index", *options, tree))


def restage(repository: Repository, contents: Iterable[tuple[IndexEntry, bytes]]) -> None:
    """Put new bytes into the index, all at once.

    Raises:
        GitError: the index is locked or cannot be written; it is as it was.
    """
    git = repository.git
    rows = b""
    sparse = b""
    for entry, data in contents:
        oid = git.run("hash-object", "-w", "--stdin", "--no-filters", stdin=data).strip()
        path = os.fsencode(entry.path) + b"\0"
        rows += b"%s %s\t%s" % (entry.mode.encode(), oid, path)
        sparse += path if entry.is_skipped else b""
    if rows:
        git.run("update-index", "-z", "--index-info", stdin=rows)
    if sparse:  # a new entry has forgotten that the worktree leaves it out
        git.run("update-index", "-z", "--skip-worktree", "--stdin", stdin=sparse)


def key(directory: str) -> bytes:
    """Return the key for hashes of secrets in this clone, made in a directory on first use.

    The directory is inside the git directory, which no push sends. The key comes from the system's
    randomness, never from a seed, which somebody might know.

    Raises:
        MemtoolError: it can be neither read nor made.
    """
    path = os.path.join(directory, KEY_NAME)
    what = f"the key for hashes, {path}, cannot be read or made"
    with refusing(what, "use --strategy token, which needs no key", "redaction-key"):
        try:
            found = read_regular(path, KEY_LENGTH + 1)
        except FileNotFoundError:
            _make(directory, path)
            found = read_regular(path, KEY_LENGTH + 1)
    if len(found) != KEY_LENGTH:
        raise MemtoolError(
            f"{path} is no key: it has {len(found)} bytes, not {KEY_LENGTH}",
            hint="remove it; hashes made from now on compare with none made before",
            code="redaction-key",
        )
    return found


def _make(directory: str, path: str) -> None:
    """Write a whole key, or leave the one that another process wrote first."""
    os.makedirs(directory, mode=0o700, exist_ok=True)
    temp = os.path.join(directory, f"{TEMP_PREFIX}{os.getpid()}-{os.urandom(4).hex()}-{KEY_NAME}")
    handle = os.open(temp, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        os.write(handle, os.urandom(KEY_LENGTH))
        os.fsync(handle)
        os.link(temp, path)
    except FileExistsError:
        pass
    finally:
        os.close(handle)
        os.unlink(temp)
