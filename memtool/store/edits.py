"""Edits of files that become one commit together, all or none, here or on another branch.

In the worktree, an intent file lists the planned edits. If the process is killed, the next one
reverts edits that were written but not committed, and leaves files that have changed since. On
another branch, `git fast-import` creates the commit without the worktree and moves the branch last,
so there is nothing to recover.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence

from memtool.errors import MemtoolError
from memtool.memory.document import MAX_BYTES
from memtool.store import files
from memtool.store.commits import commit_files, find_remedy
from memtool.store.context import Context
from memtool.store.files import TEMP_PREFIX, read_or_none, read_regular
from memtool.store.git import GitError
from memtool.store.repository import Repository
from memtool.store.snapshot import make_blob_hash
from memtool.value import Value


class FileEdit(Value):
    """A planned change of a file. `before` is None for a new file, `after` for a removal."""

    path: str
    before: bytes | None
    after: bytes | None


FOLDER = "memtool"
INTENT_NAME = "maintain.intent"
"""File in the worktree's git directory that lists the edited files with old and new blobs."""
_MAX_INTENT_BYTES = 1 << 26


class RecoveryResult(Value):
    """The result of recovery from an interrupted run: files reverted, and files left alone."""

    reverted: tuple[str, ...] = ()
    unchanged: tuple[str, ...] = ()


def commit_edits(
    context: Context,
    edits: Sequence[FileEdit],
    summary: str,
    body: str,
    trailers: Mapping[str, str],
    again: str = "memtool maintain --apply; --branch NAME asks no hooks",
) -> str | None:
    """Write files and commit only them; return the id of the commit.

    `again` is the command for the hint of an error.

    Raises:
        MemtoolError: a file has changed meanwhile, or git refuses; all files are as before.
    """
    repository = context.repository
    _write_intent(repository, edits)
    try:
        with files.locked(repository.cache_dir, "write.lock"):
            for edit in edits:
                if edit.after is None:
                    _remove(repository, edit)
                elif edit.before is None:
                    files.create(repository.top, edit.path, edit.after)
                else:
                    files.replace(repository.top, edit.path, edit.after, expected=edit.before)
        paths = [edit.path for edit in edits]
        commit = commit_files(context, paths, summary, trailers, body)
    except MemtoolError as error:
        recover(repository)
        if error.code == "index-behind":  # the commit is made, and nothing is reverted
            raise
        remedy = find_remedy(error)
        raise MemtoolError(
            f"{error.message}; nothing was changed",
            hint=f"{remedy}\nthen: {again}" if remedy else f"fix it, then: {again}",
            code=error.code,
        ) from None
    except BaseException:
        recover(repository)
        raise
    _remove_intent(repository)
    return commit


def _remove(repository: Repository, edit: FileEdit) -> None:
    """Remove a file that is unchanged, because its content has moved to another one."""
    if _read_content(repository, edit.path) != edit.before:
        raise MemtoolError(
            f"{edit.path} was changed in the meantime", hint="run the command again", code="changed"
        )
    files.remove(repository.top, edit.path)


def is_interrupted(repository: Repository) -> bool:
    """Return whether a run was killed or is in progress, so that `recover` may be needed."""
    return os.path.exists(_intent_path(repository))


def recover(repository: Repository) -> RecoveryResult:
    """Revert the uncommitted edits of an interrupted run; the caller holds the lock.

    Raises:
        MemtoolError: git or the disk refuses.
    """
    writer, blobs_by_path = _read_intent(repository)
    if not blobs_by_path:
        _remove_intent(repository)
        return RecoveryResult()
    _sweep(repository, writer, blobs_by_path)
    hash_blob = make_blob_hash(repository.object_format)
    head = _read_head_blobs(repository, list(blobs_by_path))
    reverted, unchanged, settled = [], [], []
    for path, (before, after) in sorted(blobs_by_path.items()):
        data = _read_content(repository, path)
        current_oid = "" if data is None else hash_blob(data)
        if current_oid == after and head[path] == before:
            reverted.append(path)
        elif current_oid == head[path]:
            settled.append(path)
        else:
            unchanged.append(path)
    old_texts = repository.git.blobs([head[path] for path in reverted if head[path]], MAX_BYTES)
    for path in reverted:
        now = _read_content(repository, path)
        if head[path]:
            files.replace(repository.top, path, next(old_texts), expected=now)
        else:
            _unlink(repository, path)
    _reset(repository, {path: blobs_by_path[path][1] for path in (*reverted, *settled)})
    _remove_intent(repository)
    return RecoveryResult(tuple(reverted), tuple(unchanged))


def _reset(repository: Repository, wrote: Mapping[str, str]) -> None:
    """Reset index entries that have our content, or are intent-to-add entries, to HEAD.

    A killed `git commit` may have updated HEAD but not the index, or the index but not HEAD.
    """
    index = {entry.path: entry.oid for entry in repository.git.ls_files()} if wrote else {}
    head = _read_head_blobs(repository, list(wrote))
    empty = make_blob_hash(repository.object_format)(b"")
    stdin = b"".join(
        os.fsencode(path) + b"\0"
        for path, after in wrote.items()
        if index.get(path, "") != head[path]
        and (index.get(path, "") in (after, empty) or head[path] == after)
    )
    if stdin:
        repository.git.run(
            "reset", "--quiet", "--pathspec-from-file=-", "--pathspec-file-nul", stdin=stdin
        )


def _read_head_blobs(repository: Repository, paths: Sequence[str]) -> dict[str, str]:
    """Return the blob of each path in HEAD; empty if there is none."""
    infos = repository.git.infos([f"HEAD:{path}" for path in paths])
    return {path: info[0] if info else "" for path, info in zip(paths, infos, strict=True)}


def _read_content(repository: Repository, path: str) -> bytes | None:
    return read_or_none(os.path.join(repository.top, path), MAX_BYTES + 1)


_PERMISSION_HINT = "give yourself permission, then run the same command again"


def _unlink(repository: Repository, path: str) -> None:
    with files.explaining_errors(f"{path} cannot be removed", _PERMISSION_HINT):
        os.unlink(os.path.join(repository.top, path))


def _intent_path(repository: Repository) -> str:
    return os.path.join(repository.worktree_cache_dir, FOLDER, INTENT_NAME)


def _write_intent(repository: Repository, edits: Iterable[FileEdit]) -> None:
    hash_blob = make_blob_hash(repository.object_format)
    rows = {
        edit.path: ["" if data is None else hash_blob(data) for data in (edit.before, edit.after)]
        for edit in edits
    }
    data = json.dumps({"pid": os.getpid(), "files": rows}).encode()
    os.makedirs(repository.worktree_cache_dir, mode=0o700, exist_ok=True)
    files.replace(repository.worktree_cache_dir, f"{FOLDER}/{INTENT_NAME}", data, expected=None)


def _read_intent(repository: Repository) -> tuple[int, dict[str, tuple[str, str]]]:
    """Read the intent: process id of the writer, and old and new blob of each path."""
    try:
        note = json.loads(read_regular(_intent_path(repository), _MAX_INTENT_BYTES))
        rows = {path: (before, after) for path, (before, after) in note["files"].items()}
        return int(note["pid"]), rows
    except (OSError, ValueError, LookupError, AttributeError, TypeError):  # missing or invalid
        return 0, {}


def _sweep(repository: Repository, writer: int, paths: Iterable[str]) -> None:
    """Remove the temporary files of a killed writer."""
    for folder in sorted({os.path.dirname(path) for path in paths}):
        place = os.path.join(repository.top, folder)
        for name in os.listdir(place) if os.path.isdir(place) else ():
            if name.startswith(f"{TEMP_PREFIX}{writer}-"):
                _unlink(repository, f"{folder}/{name}")


def _remove_intent(repository: Repository) -> None:
    with files.explaining_errors(f"{INTENT_NAME} cannot be removed", _PERMISSION_HINT):
        try:
            os.unlink(_intent_path(repository))
        except FileNotFoundError:
            return


BRANCH_PREFIX = "refs/heads/"
PLAIN_FILE_MODE = "100644"


class Branch(Value):
    """A branch by its full name. `tip` is empty if the branch does not exist yet.

    `worktree` is the path where it is checked out, empty if nowhere.
    """

    ref: str
    tip: str
    worktree: str


def find_branch(repository: Repository, name: str) -> Branch:
    """Return a branch by its short name.

    Raises:
        MemtoolError: the name is not valid for a branch.
    """
    ref = BRANCH_PREFIX + name.removeprefix(BRANCH_PREFIX)
    git = repository.git
    is_name = name not in ("", "HEAD", "@") and not name.startswith("-") and name.isprintable()
    try:
        git.run("check-ref-format", ref if is_name else "")
    except GitError:
        raise MemtoolError(
            f"{name!r} is not a valid branch name",
            hint="memtool maintain --apply --branch memtool/maintain",
            code="usage",
        ) from None
    tip = git.line("rev-parse", "--verify", "--quiet", f"{ref}^{{commit}}", allowed=(0, 1))
    return Branch(ref, tip, git.worktrees().get(ref, ""))


def find_parent(repository: Repository, branch: Branch, head: str) -> tuple[str, int]:
    """Return the parent of the next commit on a branch, and the number of HEAD's commits it lacks.

    If HEAD contains the branch, the parent is HEAD.
    """
    if not branch.tip or not head:
        return branch.tip or head, 0
    git = repository.git
    own_count = git.line("rev-list", "--count", f"{head}..{branch.tip}")
    if own_count == "0":
        return head, 0
    return branch.tip, int(git.line("rev-list", "--count", f"{branch.tip}..{head}"))


def commit_to_branch(
    repository: Repository,
    branch: Branch,
    base: str,
    edits: Iterable[FileEdit],
    modes: Mapping[str, str],
    message: str,
) -> str:
    """Commit edits on a branch with `base` as parent; return the commit's id.

    Raises:
        MemtoolError: git has no identity for the commit, or the branch has moved meanwhile.
    """
    text = message.encode(errors="replace")
    parts = [
        f"commit {branch.ref}\n".encode(),
        b"author %s\n" % _read_identity(repository, "AUTHOR"),
        b"committer %s\n" % _read_identity(repository, "COMMITTER"),
        b"data %d\n%s\n" % (len(text), text),
        f"from {base}\n".encode(),
    ]
    for edit in edits:
        if edit.after is None:
            parts.append(b"D %s\n" % _quote_path(edit.path))
            continue
        mode = modes.get(edit.path, PLAIN_FILE_MODE).encode()
        parts.append(b"M %s inline %s\n" % (mode, _quote_path(edit.path)))
        parts.append(b"data %d\n%s\n" % (len(edit.after), edit.after))
    parts.append(b"done\n")
    try:
        repository.git.run("fast-import", "--quiet", "--done", stdin=b"".join(parts))
    except GitError as error:
        if "Not updating" in error.stderr:
            raise MemtoolError(
                f"another process moved {branch.ref} in the meantime",
                hint="run the command again",
                code="changed",
            ) from None
        raise
    return repository.git.resolve(branch.ref)


def _read_identity(repository: Repository, role: str) -> bytes:
    """Return name, address and time in git's format."""
    try:
        return repository.git.run("var", f"GIT_{role}_IDENT").rstrip(b"\n")
    except GitError as error:
        raise MemtoolError(
            f"cannot commit: git has no author: {error.message}",
            hint="git config user.name NAME\ngit config user.email ADDRESS",
            code="no-identity",
        ) from None


def _quote_path(path: str) -> bytes:
    """Quote a path for fast-import."""
    raw = os.fsencode(path)
    for plain, escaped in ((b"\\", b"\\\\"), (b'"', b'\\"'), (b"\n", b"\\n")):
        raw = raw.replace(plain, escaped)
    return b'"%s"' % raw
