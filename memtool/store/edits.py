"""Edits of files that become one commit together, all or none, here or on another branch.

Here, an intent file lists what is about to be written. A process that is killed leaves it behind,
and the next one reverts what was written and not committed; a file that somebody has changed since
then is left as it is. On another branch, `git fast-import` makes the commit from bytes alone and
moves the branch as its last act, so there is nothing to recover.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence

from memtool.errors import MemtoolError
from memtool.memory.document import MAX_BYTES
from memtool.store import files
from memtool.store.commits import commit_files
from memtool.store.context import Context
from memtool.store.files import TEMP_PREFIX, read_or_none, read_regular
from memtool.store.git import GitError
from memtool.store.repository import Repository
from memtool.store.snapshot import blob_hash
from memtool.value import Value


class FileEdit(Value):
    """A file as it is to be. `before` is None for a new one, `after` for one that goes away."""

    path: str
    before: bytes | None
    after: bytes | None


FOLDER = "memtool"
INTENT = "maintain.intent"
"""In the git directory of the worktree: which files are written, from and to which blob."""
_MOST_BYTES = 1 << 26


class Recovered(Value):
    """The recovery from an interrupted run: files that were reverted, and that were left alone."""

    undone: tuple[str, ...] = ()
    left: tuple[str, ...] = ()


def commit_edits(
    context: Context,
    edits: Sequence[FileEdit],
    subject: str,
    body: str,
    trailers: Mapping[str, str],
    again: str = "memtool maintain --apply; --branch NAME asks no hooks",
) -> str | None:
    """Write files and commit them alone; return the id of the commit.

    `again` is the command that a refusal names.

    Raises:
        MemtoolError: a file was changed meanwhile, or git refuses; all files are as they were.
    """
    repository = context.repository
    _note(repository, edits)
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
        done = commit_files(context, paths, subject, trailers, body)
    except MemtoolError as error:
        recover(repository)
        if error.code == "index-behind":  # the commit is made, and nothing is taken back
            raise
        raise MemtoolError(
            f"{error.message}; what was written is taken back",
            hint=f"mend that, then {again}",
            code=error.code,
        ) from None
    except BaseException:
        recover(repository)
        raise
    _forget(repository)
    return done


def _remove(repository: Repository, edit: FileEdit) -> None:
    """Remove a file whose bytes stand elsewhere by now."""
    if _bytes(repository, edit.path) != edit.before:
        raise MemtoolError(
            f"{edit.path} changed meanwhile", hint="run the same command again", code="changed"
        )
    files.remove(repository.top, edit.path)


def is_interrupted(repository: Repository) -> bool:
    """Tell whether a run was killed, or is at work, so that `recover` has something to do."""
    return os.path.exists(_place(repository))


def recover(repository: Repository) -> Recovered:
    """Revert what an interrupted run wrote and did not commit; the caller holds the lock.

    Raises:
        MemtoolError: git or the disk refuses.
    """
    writer, noted = _noted(repository)
    if not noted:
        _forget(repository)
        return Recovered()
    _sweep(repository, writer, noted)
    hash_blob = blob_hash(repository.object_format)
    head = _head_blobs(repository, list(noted))
    undone, left, settled = [], [], []
    for path, (before, after) in sorted(noted.items()):
        data = _bytes(repository, path)
        here = "" if data is None else hash_blob(data)
        if here == after and head[path] == before:
            undone.append(path)
        elif here == head[path]:
            settled.append(path)
        else:
            left.append(path)
    olds = repository.git.blobs([head[path] for path in undone if head[path]], MAX_BYTES)
    for path in undone:
        now = _bytes(repository, path)
        if head[path]:
            files.replace(repository.top, path, next(olds), expected=now)
        else:
            _unlink(repository, path)
    _reset(repository, {path: noted[path][1] for path in (*undone, *settled)})
    _forget(repository)
    return Recovered(tuple(undone), tuple(left))


def _reset(repository: Repository, wrote: Mapping[str, str]) -> None:
    """Make git's index hold what HEAD holds where it has what we wrote, or the mark of a new file.

    A `git commit` that was killed may have moved HEAD and not the index, or the index and not HEAD.
    """
    index = {entry.path: entry.oid for entry in repository.git.ls_files()} if wrote else {}
    head = _head_blobs(repository, list(wrote))
    empty = blob_hash(repository.object_format)(b"")
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


def _head_blobs(repository: Repository, paths: Sequence[str]) -> dict[str, str]:
    """Return the blob of each path in HEAD, empty for none."""
    found = repository.git.infos([f"HEAD:{path}" for path in paths])
    return {path: info[0] if info else "" for path, info in zip(paths, found, strict=True)}


def _bytes(repository: Repository, path: str) -> bytes | None:
    return read_or_none(os.path.join(repository.top, path), MAX_BYTES + 1)


_MAY_NOT = "give yourself permission, then run the same command again"


def _unlink(repository: Repository, path: str) -> None:
    with files.refusing(f"{path} cannot be removed", _MAY_NOT):
        os.unlink(os.path.join(repository.top, path))


def _place(repository: Repository) -> str:
    return os.path.join(repository.own_dir, FOLDER, INTENT)


def _note(repository: Repository, edits: Iterable[FileEdit]) -> None:
    hash_blob = blob_hash(repository.object_format)
    rows = {
        edit.path: ["" if data is None else hash_blob(data) for data in (edit.before, edit.after)]
        for edit in edits
    }
    data = json.dumps({"pid": os.getpid(), "files": rows}).encode()
    os.makedirs(repository.own_dir, mode=0o700, exist_ok=True)
    files.replace(repository.own_dir, f"{FOLDER}/{INTENT}", data, expected=None)


def _noted(repository: Repository) -> tuple[int, dict[str, tuple[str, str]]]:
    """Return the process that wrote files, and the blobs of each before and after."""
    try:
        note = json.loads(read_regular(_place(repository), _MOST_BYTES))
        rows = {path: (before, after) for path, (before, after) in note["files"].items()}
        return int(note["pid"]), rows
    except (OSError, ValueError, LookupError, AttributeError, TypeError):  # none, or not ours
        return 0, {}


def _sweep(repository: Repository, writer: int, paths: Iterable[str]) -> None:
    """Remove the files that a killed writer has not put in their place."""
    for folder in sorted({os.path.dirname(path) for path in paths}):
        place = os.path.join(repository.top, folder)
        for name in os.listdir(place) if os.path.isdir(place) else ():
            if name.startswith(f"{TEMP_PREFIX}{writer}-"):
                _unlink(repository, f"{folder}/{name}")


def _forget(repository: Repository) -> None:
    with files.refusing(f"{INTENT} cannot be removed", _MAY_NOT):
        try:
            os.unlink(_place(repository))
        except FileNotFoundError:
            return


HEADS = "refs/heads/"
PLAIN_FILE = "100644"


class Branch(Value):
    """A branch by its full name. `tip` is empty where it is not there yet.

    `worktree` is where it is checked out, empty for nowhere.
    """

    ref: str
    tip: str
    worktree: str


def find_branch(repository: Repository, name: str) -> Branch:
    """Return a branch by its short name.

    Raises:
        MemtoolError: no branch can have that name.
    """
    ref = HEADS + name.removeprefix(HEADS)
    git = repository.git
    is_name = name not in ("", "HEAD", "@") and not name.startswith("-") and name.isprintable()
    try:
        git.run("check-ref-format", ref if is_name else "")
    except GitError:
        raise MemtoolError(
            f"{name!r} is no name of a branch",
            hint="memtool maintain --apply --branch memtool/maintain",
            code="usage",
        ) from None
    tip = git.line("rev-parse", "--verify", "--quiet", f"{ref}^{{commit}}", allowed=(0, 1))
    return Branch(ref, tip, git.worktrees().get(ref, ""))


def base_of(repository: Repository, branch: Branch, head: str) -> tuple[str, int]:
    """Return the parent of the next commit on a branch, and how many commits of HEAD it lacks.

    A branch that HEAD contains continues from HEAD.
    """
    if not branch.tip or not head:
        return branch.tip or head, 0
    git = repository.git
    own = git.line("rev-list", "--count", f"{head}..{branch.tip}")
    if own == "0":
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
    """Commit files on a branch that begins at `base`, or moves there; return the commit's id.

    Raises:
        MemtoolError: git does not know who commits, or the branch was moved meanwhile.
    """
    text = message.encode(errors="replace")
    parts = [
        f"commit {branch.ref}\n".encode(),
        b"author %s\n" % _person(repository, "AUTHOR"),
        b"committer %s\n" % _person(repository, "COMMITTER"),
        b"data %d\n%s\n" % (len(text), text),
        f"from {base}\n".encode(),
    ]
    for edit in edits:
        if edit.after is None:
            parts.append(b"D %s\n" % _quoted(edit.path))
            continue
        mode = modes.get(edit.path, PLAIN_FILE).encode()
        parts.append(b"M %s inline %s\n" % (mode, _quoted(edit.path)))
        parts.append(b"data %d\n%s\n" % (len(edit.after), edit.after))
    parts.append(b"done\n")
    try:
        repository.git.run("fast-import", "--quiet", "--done", stdin=b"".join(parts))
    except GitError as error:
        if "Not updating" in error.stderr:
            raise MemtoolError(
                f"{branch.ref} was moved by somebody else meanwhile",
                hint="run the same command again",
                code="changed",
            ) from None
        raise
    return repository.git.rev(branch.ref)


def _person(repository: Repository, role: str) -> bytes:
    """Return name, address and time as git writes them in a commit."""
    try:
        return repository.git.run("var", f"GIT_{role}_IDENT").rstrip(b"\n")
    except GitError as error:
        raise MemtoolError(
            f"git does not know who commits: {error.message}",
            hint="git config user.name NAME, and user.email ADDRESS",
            code="no-identity",
        ) from None


def _quoted(path: str) -> bytes:
    """Return a path as fast-import reads any path."""
    raw = os.fsencode(path)
    for plain, escaped in ((b"\\", b"\\\\"), (b'"', b'\\"'), (b"\n", b"\\n")):
        raw = raw.replace(plain, escaped)
    return b'"%s"' % raw
