"""Remove secrets from files: new bytes for a file or for git's index, and the key of the hashes.

All other bytes stay as they were, and a memory stays a memory: if a mark in the frontmatter would
not parse as the same key, the key is written again, in quotes. An entry of the index keeps its
mode. The worktree is not touched and no filter is run, so unstaged changes stay unstaged.

`redaction`, which only handles texts, decides what a secret is and how it is marked.
"""

from __future__ import annotations

import os

from memtool.errors import MemtoolError
from memtool.memory import document
from memtool.memory.changes import find_changed_keys, is_redacted
from memtool.redaction.find import (
    MAX_CHARACTERS,
    Allowlist,
    compute_fingerprint,
    find,
    make_marks,
    mark_text,
)
from memtool.store.files import TEMP_PREFIX, explaining_errors, read_regular
from memtool.store.git import MAX_PATH_ARGUMENTS, REGULAR_MODES
from memtool.value import Value, split_batches

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from memtool.memory.memory import FieldValue, Memory
    from memtool.redaction.find import Strategy
    from memtool.store.git import IndexEntry
    from memtool.store.repository import Repository

MAX_BYTES = MAX_CHARACTERS

KEY_NAME = "redaction.key"
KEY_BYTES = 32

_PARTIAL = "next-index-"


class Removal(Value):
    """One detection without its text: kind, line from 1, and the fingerprint to allow it by."""

    kind: str
    line: int
    fingerprint: str


class Rewrite(Value):
    """The secrets in the bytes of a file, and the bytes without them."""

    removals: tuple[Removal, ...]
    data: bytes


class Rules(Value):
    """How files are rewritten: allowed findings, the form of marks, and valid categories.

    `key` is only used by the strategy `hash`; `categories` are those that memories may have.
    """

    allowed: Allowlist
    strategy: Strategy
    key: bytes
    categories: Collection[str]


def rewrite(data: bytes, path: str, rules: Rules) -> Rewrite:
    """Replace every detection in the bytes of a file. Bytes that are not UTF-8 stay as they are.

    Raises:
        MemtoolError: the file is not text or too large, or the secret is part of the memory's id
            or structure.
    """
    if len(data) > MAX_BYTES:
        raise MemtoolError(
            f"{path} has {len(data):,} bytes, the limit is {MAX_BYTES:,}",
            hint="name smaller files",
            code="too-large",
        )
    if b"\0" in data:
        raise MemtoolError(
            f"{path} is not text: it contains NUL bytes",
            hint="to remove the file: git rm PATH",
            code="binary",
        )
    text = data.decode(errors="surrogateescape")
    detections = find(text, rules.allowed)
    if not detections:
        return Rewrite((), data)
    removals = tuple(
        Removal(d.kind, d.line, compute_fingerprint(text[d.start : d.end])) for d in detections
    )
    places = make_marks(text, detections, rules.strategy, rules.key)
    after = mark_text(text, places).encode(errors="surrogateescape")
    memory = _parse_memory(data, path, rules)
    if memory is not None:
        header_end = len(text) - len(memory.body)
        in_body = mark_text(text, [(d, mark) for d, mark in places if d.start >= header_end])
        wanted = memory.with_body(in_body[header_end:])
        if not _is_same(wanted, after, path, rules):
            secrets = [(text[d.start : d.end], mark) for d, mark in places if d.start < header_end]
            rewritten = _rewrite_keys(in_body, wanted, path, secrets, rules)
            if rewritten is None:
                raise MemtoolError(
                    f"cannot redact {path}: the {removals[0].kind} in line {removals[0].line} is "
                    "part of the memory's id or structure",
                    hint=f"write the memory again without it\ngit rm -- {path}",
                    code="redaction",
                )
            after = rewritten
    return Rewrite(removals, after)


def _parse_memory(data: bytes, path: str, rules: Rules) -> Memory | None:
    try:
        return document.read(data, path, rules.categories)
    except document.Unreadable:
        return None


def _is_same(wanted: Memory, data: bytes, path: str, rules: Rules) -> bool:
    """Return whether bytes are the wanted memory, except for marks in its keys."""
    after = _parse_memory(data, path, rules)
    return (
        after is not None
        and (after.id, after.body) == (wanted.id, wanted.body)
        and all(
            is_redacted(wanted.fields.get(key), after.fields.get(key))
            for key in find_changed_keys(wanted, after)
        )
    )


def _rewrite_keys(
    text: str, wanted: Memory, path: str, secrets: Sequence[tuple[str, str]], rules: Rules
) -> bytes | None:
    """Write the keys that contain secrets again; None if the result is not a memory."""
    changes = {
        key: new
        for key, old in wanted.fields.items()
        if (new := _mark_secrets(old, secrets)) != old
    }
    try:
        after = document.edit(text.encode(), changes, path)
    except document.Unreadable:
        return None
    is_clean = not find(after.decode(), rules.allowed)
    return after if is_clean and _is_same(wanted, after, path, rules) else None


def _mark_secrets(value: FieldValue, secrets: Sequence[tuple[str, str]]) -> FieldValue:
    if isinstance(value, dict):
        return {name: _replace_secrets(text, secrets) for name, text in value.items()}
    if isinstance(value, tuple):
        return tuple(_replace_secrets(text, secrets) for text in value)
    return _replace_secrets(value, secrets)


def _replace_secrets(text: str, secrets: Sequence[tuple[str, str]]) -> str:
    for secret, mark in secrets:
        text = text.replace(secret, mark)
    return text


def refuse_partial_commit(env: Mapping[str, str]) -> None:
    """Raise MemtoolError inside `git commit -- PATH`, whose index is a temporary copy."""
    # A restaged file would be committed, while the index itself keeps the secret.
    if os.path.basename(env.get("GIT_INDEX_FILE", "")).startswith(_PARTIAL):
        raise MemtoolError(
            "cannot redact during git commit -- PATH, which uses a temporary index",
            hint="memtool redact PATH\ngit commit",
            code="partial-commit",
        )


def find_staged(repository: Repository, paths: Sequence[str]) -> dict[str, IndexEntry]:
    """Return the index entries of regular files at these paths, or below them, by path.

    Raises:
        MemtoolError: one of them has an unfinished merge.
    """
    entries: dict[str, IndexEntry] = {}
    for batch in split_batches(paths, MAX_PATH_ARGUMENTS):
        for entry in repository.git.ls_files(*batch):
            if entry.stage != "0":
                raise MemtoolError(
                    f"{entry.path} has a merge conflict",
                    hint=f"keep one side, then: git add -- {entry.path}",
                    code="conflict-markers",
                )
            if entry.mode in REGULAR_MODES:
                entries[entry.path] = entry
    return entries


def find_changed(repository: Repository) -> set[str]:
    """Return the paths whose staged content differs from HEAD, without deleted files."""
    git = repository.git
    tree = git.head()
    if not tree:
        return set(git.names("ls-files", "-z"))
    options = ("--cached", "--name-only", "--no-renames", "--diff-filter=d", "-z")
    return set(git.names("diff-index", *options, tree))


def restage(repository: Repository, contents: Iterable[tuple[IndexEntry, bytes]]) -> None:
    """Write new bytes into the index, all at once.

    Raises:
        GitError: the index is locked or cannot be written; it is unchanged.
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
    if sparse:  # a new entry has lost its skip-worktree bit
        git.run("update-index", "-z", "--skip-worktree", "--stdin", stdin=sparse)


def load_key(directory: str) -> bytes:
    """Load the key for hashes of secrets in this clone; it is created on first use.

    `directory` is inside the git directory, so it is never pushed. The key comes from the system's
    randomness, since a seed might be known.

    Raises:
        MemtoolError: the key can neither be read nor created.
    """
    path = os.path.join(directory, KEY_NAME)
    what = f"the key for hashes, {path}, cannot be read or created"
    with explaining_errors(
        what, "use --strategy token, which does not need a key", "redaction-key"
    ):
        try:
            key = read_regular(path, KEY_BYTES + 1)
        except FileNotFoundError:
            _create_key(directory, path)
            key = read_regular(path, KEY_BYTES + 1)
    if len(key) != KEY_BYTES:
        raise MemtoolError(
            f"{path} is not a key: it has {len(key)} bytes, not {KEY_BYTES}",
            hint=f"rm {path} (new hashes will differ from old ones)",
            code="redaction-key",
        )
    return key


def _create_key(directory: str, path: str) -> None:
    """Write a complete key, unless another process wrote one first."""
    os.makedirs(directory, mode=0o700, exist_ok=True)
    temp = os.path.join(directory, f"{TEMP_PREFIX}{os.getpid()}-{os.urandom(4).hex()}-{KEY_NAME}")
    handle = os.open(temp, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        os.write(handle, os.urandom(KEY_BYTES))
        os.fsync(handle)
        os.link(temp, path)
    except FileExistsError:
        pass
    finally:
        os.close(handle)
        os.unlink(temp)
