"""Commits of just some files: what else the user has staged stays as it is.

Where a commit would be lost, or would get in the way of what the user has begun, none is made: the
files are written, and a note says what commits them.

A file is removed by git's index first: its removal is committed from an index of its own, and only
then does the file go. So a refusal, or a full disk, leaves the file where it is.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping, Sequence
from contextlib import suppress

from memtool.errors import MemtoolError
from memtool.store.files import TEMP_PREFIX, locked, remove
from memtool.store.git import ARGUMENTS, GitError
from memtool.store.git_locks import is_left, lock_text, run_patiently
from memtool.store.repository import Repository
from memtool.value import batches

TYPE_CHECKING = False
if TYPE_CHECKING:
    from memtool.store.context import Context

SHOWN_PATHS = 5
_PASSED = ("Passed", "Skipped")
_DETAILS = ("- hook id:", "- exit code:", "- duration:", "- files were modified")
"""Lines of the pre-commit framework that do not say what is wrong."""
_UPDATED = "repository has been updated"
"""What git says where it made a commit, and could not write its index then."""
_OPERATIONS = (
    ("rebase-merge", "rebase"),
    ("rebase-apply/applying", "am"),
    ("rebase-apply", "rebase"),
    ("BISECT_LOG", "bisect"),
    ("CHERRY_PICK_HEAD", "cherry-pick"),
    ("REVERT_HEAD", "revert"),
    ("sequencer", "cherry-pick or revert"),
    ("MERGE_HEAD", "merge"),
)
"""Names in a git directory, and what is unfinished there. A rebase also picks, and also merges."""
MERGE, DETACHED, JUJUTSU = "merge", "detached", "jj"


def operation(repository: Repository) -> str:
    """Return what stands in the way of a commit here, empty where nothing does.

    It is the operation of git that is unfinished, such as `rebase` or `MERGE`; or, where no branch
    would keep the commit, `DETACHED`, or `JUJUTSU` where that tool keeps HEAD so.
    """
    for name, what in _OPERATIONS:
        if os.path.exists(os.path.join(repository.git_dir, name)):
            return what
    if repository.git.line("symbolic-ref", "--quiet", "HEAD", allowed=(0, 1)):
        return ""
    return JUJUTSU if os.path.isdir(os.path.join(repository.top, ".jj")) else DETACHED


def reason_of(what: str) -> str:
    """Return why `operation` keeps a commit from being made, as a clause."""
    if what in (DETACHED, JUJUTSU):
        return "HEAD is detached, so that no branch would keep the commit"
    return f"{'an' if what[0] in 'aeiou' else 'a'} {what} is unfinished"


def commit_files(
    context: Context,
    paths: Sequence[str],
    subject: str,
    trailers: Mapping[str, str],
    body: str = "",
    *,
    removed: Sequence[str] = (),
    env: Mapping[str, str] | None = None,
    leaves_removal: bool = False,
) -> str | None:
    """Commit the worktree's content of some paths, and that others are `removed`, and nothing else.

    The user's hooks and signing apply as in any commit; hooks also get the variables of `env`.
    Waits for locks of other processes. Files are removed once the commit of it is made. Return the
    id of the commit, None where an `operation` stands in the way: a note says what commits the
    files then; during a merge they are staged. A removal is refused there, unless `leaves_removal`
    says that it goes the same way.

    Raises:
        MemtoolError: a hook or git refused; the files are left as they are, uncommitted. Or it is
            committed, and git's index did not follow (`index-behind`), or a file stayed.
    """
    repository = context.repository
    said = message(subject, trailers, body)
    with locked(repository.cache_dir, "commit.lock"):
        drop_intended(repository, context.directory)
        what = operation(repository)
        if what and removed and not leaves_removal:
            raise _unfinished(what)
        if what:
            _remove_all(repository, removed)
            _leave(context, what, [*paths, *removed], "removed" if removed else "written")
            return None
        try:
            if removed:
                _commit_apart(repository, paths, removed, said, env)
            elif _commit_only(repository, paths, said, env):
                return repository.git.rev("HEAD")
        except MemtoolError as error:
            raise _refused(repository, error, paths, removed) from None
        done = _follow(repository, paths, removed)
    try:
        _remove_all(repository, removed)
    except MemtoolError as error:
        error.message = f"commit {done[:10]} is made, but {error.message}"
        raise
    return done


def _commit_only(
    repository: Repository, paths: Sequence[str], said: str, env: Mapping[str, str] | None
) -> bool:
    """Commit files; return whether git's index has them as well.

    Raises:
        MemtoolError: git or a hook refused; new files are out of its index again.
    """
    before = repository.git.head()
    new = _untracked(repository, paths)
    if new:
        run_patiently(repository, ["add", "--intent-to-add", "--force"], new)
    try:
        run_patiently(repository, ["commit", "--only", *_options(said)], paths, env)
    except MemtoolError as error:
        if _is_made(repository, before, said, error):
            return False
        if new:
            with suppress(MemtoolError):  # the first refusal is what the user must see
                run_patiently(repository, ["rm", "--cached", "--quiet"], new)
        raise
    return True


def _commit_apart(
    repository: Repository,
    paths: Sequence[str],
    removed: Sequence[str],
    said: str,
    env: Mapping[str, str] | None,
) -> None:
    """Commit files and removals from an index of its own.

    Raises:
        MemtoolError: git or a hook refused; the user's index is as it was.
    """
    before = repository.git.head()
    name = f"{TEMP_PREFIX}{os.getpid()}-{os.urandom(4).hex()}-index"
    place = os.path.join(repository.cache_dir, name)
    own = {"GIT_INDEX_FILE": place}
    try:
        repository.git.run("read-tree", "HEAD", env=own)
        run_patiently(repository, ["rm", "--cached", "--quiet", "--ignore-unmatch"], removed, own)
        if paths:
            run_patiently(repository, ["add", "--force"], paths, own)
        run_patiently(repository, ["commit", *_options(said)], None, {**(env or {}), **own})
    except MemtoolError as error:
        if not _is_made(repository, before, said, error):
            raise
    finally:
        for left in (place, f"{place}.lock"):
            with suppress(OSError):
                os.unlink(left)


def _refused(
    repository: Repository, error: MemtoolError, paths: Sequence[str], removed: Sequence[str]
) -> MemtoolError:
    """Return why there is no commit, what became of the files, and what to do."""
    reason = _reason(repository, error)
    if removed:
        outcome, hint = "nothing was removed", _hint(repository, error, ())
    else:
        is_new = bool(_untracked(repository, paths))
        outcome = f"{_counted(paths)} written but not committed"
        hint = _hint(repository, error, paths, is_new=is_new)
    return MemtoolError(f"{outcome}: {reason}", hint=hint, code="commit-refused")


def _follow(repository: Repository, paths: Sequence[str], removed: Sequence[str]) -> str:
    try:
        return follow_head(repository, [*removed, *paths])
    except MemtoolError as error:
        if removed:
            error.hint += f", then rm {' '.join(removed)}"
        raise


def _leave(context: Context, what: str, paths: Sequence[str], how: str) -> None:
    """Leave files to a later commit, during a merge to its own, and note which."""
    repository = context.repository
    files = f"{_counted(paths)} {how}"
    if what == MERGE:
        try:
            run_patiently(repository, ["add", "--force"], paths)
        except MemtoolError as error:
            raise MemtoolError(
                f"{files} but not staged: {_reason(repository, error)}",
                hint=f"git add -- {_named(paths)}, and the commit of the merge takes it in",
                code="commit-refused",
            ) from None
        context.notes.append(
            f"{files} and staged, not committed: {reason_of(what)}, and its commit takes "
            "that in (git merge --abort takes it away)"
        )
        return
    note = f"{files}, not committed: {reason_of(what)}; "
    if what == JUJUTSU:
        context.notes.append(f"{note}jj takes it into its own commit: jj commit {_named(paths)}")
        return
    later = f"git add -- {_named(paths)} && git commit -- {_named(paths)}"
    if what == DETACHED:
        context.notes.append(f"{note}git switch BRANCH, then {later}")
        return
    known = set(paths) - set(_untracked(repository, paths))
    if known:
        note += f"its --abort takes back changes of {_named(sorted(known))}; "
    context.notes.append(f"{note}when it is over: {later}")


def intended(repository: Repository, directory: str) -> list[str]:
    """Return the memories that git's index only intends to hold, as a killed commit leaves them.

    With such an entry git refuses to stash and to rebase.
    """
    options = ("--name-only", "--diff-filter=A", "--ignore-submodules", "-z")
    return repository.git.names("diff", *options, "--", directory)


def drop_intended(repository: Repository, directory: str) -> list[str]:
    """Take these entries out of the index, where the files are new again; return their paths."""
    paths = intended(repository, directory)
    if paths:
        run_patiently(repository, ["rm", "--cached", "--quiet", "--ignore-unmatch"], paths)
    return paths


def discard(repository: Repository, paths: Sequence[str]) -> None:
    """Remove files that no commit holds, from git's index first.

    Raises:
        MemtoolError: git or the disk refuses; the files that are left are named.
    """
    if paths:
        run_patiently(
            repository, ["rm", "--cached", "--quiet", "--force", "--ignore-unmatch"], paths
        )
    _remove_all(repository, paths)


def _remove_all(repository: Repository, paths: Sequence[str]) -> None:
    """Remove files, as many as can be removed. Raises MemtoolError with those that cannot."""
    left: list[str] = []
    for path in paths:
        try:
            remove(repository.top, path)
        except MemtoolError as error:
            left.append(path)
            reason = error.message
    if left:
        more = f"; so are {len(left) - 1} more" if len(left) > 1 else ""
        raise MemtoolError(f"{reason}{more}", hint=f"rm {' '.join(left)}", code="disk")


def _options(said: str) -> list[str]:
    return ["--quiet", "--cleanup=verbatim", "--no-edit", f"--message={said}"]


def _is_made(repository: Repository, before: str, said: str, error: MemtoolError) -> bool:
    """Tell whether git made a commit with this message, though it failed afterwards."""
    head = repository.git.head()
    if head == before:
        return False
    if isinstance(error, GitError) and _UPDATED in error.stderr:
        return True
    return repository.git.line("log", "-1", "--format=%B", head).strip() == said.strip()


def follow_head(repository: Repository, paths: Sequence[str]) -> str:
    """Let git's index follow HEAD, which a commit has just moved, and return the commit.

    Raises:
        MemtoolError: git cannot write its index; the commit is made all the same.
    """
    done = repository.git.rev("HEAD")
    try:
        run_patiently(repository, ["reset", "--quiet"], paths)
    except MemtoolError as error:
        raise MemtoolError(
            f"it is commit {done[:10]}, but git's index could not follow: "
            f"{_reason(repository, error)}",
            hint=f"git reset -- {_named(paths)}",
            code="index-behind",
        ) from None
    return done


def _unfinished(what: str) -> MemtoolError:
    """Return why nothing is removed: it would be lost, or conclude what the user has begun."""
    return MemtoolError(
        f"nothing was removed: {reason_of(what)}",
        hint=f"{finish(what)}, then run the same command again",
        code="merging",
    )


def finish(what: str) -> str:
    """Return the command that ends what `operation` names."""
    if what in (DETACHED, JUJUTSU):
        return "git switch BRANCH"
    if what == "bisect":
        return "git bisect reset"
    return f"git {what} --continue or --abort"


def message(subject: str, trailers: Mapping[str, str], body: str = "") -> str:
    """Return a commit message: a first line, paragraphs between, and trailers at the end."""
    # A line feed in a value would begin another trailer.
    lines = "".join(f"{key}: {' '.join(value.split())}\n" for key, value in trailers.items())
    parts = (" ".join(subject.split()) + "\n", body.strip("\n"), lines)
    return "\n".join(part if part.endswith("\n") else f"{part}\n" for part in parts if part)


def _counted(paths: Sequence[str]) -> str:
    if len(paths) <= SHOWN_PATHS:
        return f"{', '.join(paths)} is" if len(paths) == 1 else f"{', '.join(paths)} are"
    return f"{len(paths)} files are"


def _untracked(repository: Repository, paths: Sequence[str]) -> list[str]:
    known: set[str] = set()
    for some in batches(paths, ARGUMENTS):
        known.update(repository.git.names("ls-files", "-z", "--", *some))
    return [path for path in paths if path not in known]


def _reason(repository: Repository, error: MemtoolError) -> str:
    if isinstance(error, GitError):
        if error.is_lock:
            known = lock_text(repository, error.lock)
            return known or _refusal(error.stderr) or error.message
        return _refusal(error.stderr) or error.message
    return error.message


def _refusal(said: str) -> str:
    """Return the line that says why git or a hook refused, empty where none does.

    The pre-commit framework lists every hook with its outcome, and below one that failed its id,
    its exit code and what it printed.
    """
    lines = [
        line.strip()
        for line in said.splitlines()
        if line.strip() and not line.endswith(_PASSED) and not line.startswith(_DETAILS)
    ]
    if not lines:
        return ""
    name, dots, _outcome = lines[0].partition("...")
    if dots and lines[0].endswith("Failed"):
        return f"the hook {name!r} refused: {lines[1] if len(lines) > 1 else 'it says no reason'}"
    return lines[0].removeprefix("fatal: ")


def _hint(
    repository: Repository, error: MemtoolError, paths: Sequence[str], *, is_new: bool = False
) -> str:
    again = "run the same command again"
    if paths:
        named = _named(paths)  # git commits by name only what it knows
        again = (
            f"git add -- {named} && git commit -- {named}" if is_new else f"git commit -- {named}"
        )
    if isinstance(error, GitError):
        if error.is_lock and is_left(repository, error.lock):
            return f"rm {shlex.quote(error.lock)}, then {again}"
        if error.is_sealed:
            return f"git cannot write here, as in the sandbox of an agent; commit later: {again}"
        if error.is_lock:
            return f"another git process holds a lock; when it is done: {again}"
        if (
            "Please tell me who you are" in error.stderr
            or "user.email" in error.stderr
            or ("empty ident name" in error.stderr)
        ):
            return f"git config user.name NAME and user.email ADDRESS, then {again}"
        if paths and "sparse-checkout" in error.stderr:
            top = shlex.quote(paths[0].partition("/")[0])
            return f"git sparse-checkout add {top}, then {again}"
    return f"mend what git says, then {again}"


def _named(paths: Sequence[str]) -> str:
    """Return paths for a command line; of many the directory, or the directories, of all."""
    some: Sequence[str] = paths
    if len(paths) > SHOWN_PATHS:
        above = os.path.commonpath(paths)
        some = [above] if above else sorted({path.partition("/")[0] for path in paths})
    return " ".join(map(shlex.quote, some))
