"""Commits of specific files: anything else that the user has staged stays as it is.

No commit is made if it would be lost, or would interfere with an unfinished operation of the user.
The files are written, and a note names the command that commits them.

To remove a file, its removal is committed from a separate index first, and only then is the file
deleted. So a refusal, or a full disk, leaves the file in place.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Mapping, Sequence
from contextlib import suppress

from memtool.errors import MemtoolError
from memtool.memory.trust import SHORT_ID_DIGITS
from memtool.redaction.find import clean_text
from memtool.store import commit_style, messages
from memtool.store.config import CONFIG_NAME
from memtool.store.files import TEMP_PREFIX, locked, remove
from memtool.store.git import MAX_PATH_ARGUMENTS, GitError
from memtool.store.git_locks import describe_lock, is_abandoned, run_patiently
from memtool.store.repository import Repository
from memtool.value import split_batches

TYPE_CHECKING = False
if TYPE_CHECKING:
    from memtool.store.context import Context

SHOWN_PATHS = 5
AGAIN = "run the same command again"
MESSAGE_HOOKS = ("commit-msg", "prepare-commit-msg")
MAX_HOOK_LINES, MAX_HOOK_CHARS = 8, 160
"""How much of a hook's output an error shows."""
_STYLE = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_SIGN_OFF_WORDS = ("signed-off", "sign-off", "signoff", "dco", "certificate of origin")
"""Words of hooks that ask for a Developer Certificate of Origin."""
_PASSED = ("Passed", "Skipped")
_DETAILS = ("- hook id:", "- exit code:", "- duration:", "- files were modified")
"""Beginnings of pre-commit's output lines that do not explain a failure."""
_COMMITTED_MESSAGE = "repository has been updated"
"""Part of git's message if the commit was made, but the index could not be written."""
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
"""Files in a git directory with the unfinished operation that each means, by priority.

A rebase comes first because it also leaves the files of a cherry-pick or a merge.
"""
MERGE, DETACHED, JUJUTSU = "merge", "detached", "jj"


def find_obstacle(repository: Repository) -> str:
    """Return the obstacle to a commit here; empty if there is none.

    It is the unfinished git operation, such as `rebase` or MERGE; or DETACHED if no branch would
    keep the commit; or JUJUTSU if HEAD is detached by that tool.
    """
    for name, what in _OPERATIONS:
        if os.path.exists(os.path.join(repository.git_dir, name)):
            return what
    if repository.git.line("symbolic-ref", "--quiet", "HEAD", allowed=(0, 1)):
        return ""
    return JUJUTSU if os.path.isdir(os.path.join(repository.top, ".jj")) else DETACHED


def explain_obstacle(obstacle: str) -> str:
    """Return a clause that explains the obstacle from `find_obstacle`."""
    if obstacle in (DETACHED, JUJUTSU):
        return "HEAD is detached, so that no branch would keep the commit"
    return f"{'an' if obstacle[0] in 'aeiou' else 'a'} {obstacle} is unfinished"


def commit_files(
    context: Context,
    paths: Sequence[str],
    summary: str,
    trailers: Mapping[str, str],
    body: str = "",
    *,
    removed: Sequence[str] = (),
    env: Mapping[str, str] | None = None,
    leaves_removal: bool = False,
) -> str | None:
    """Commit the worktree's content of `paths` and the removal of `removed`, and nothing else.

    The message is in the style of the settings, also of those that are committed now. The user's
    hooks and signing apply as in any commit; hooks also get the variables of `env`. Waits for locks
    of other processes. Removed files are deleted after the commit.

    Return the id of the commit. If there is an obstacle, return None: a note names the command that
    commits the files, and during a merge they are staged. A removal is refused then, unless
    `leaves_removal` allows to leave it uncommitted as well.

    Raises:
        MemtoolError: a hook or git refused, and the files are uncommitted. Or the commit is made,
            but git's index was not updated (`index-behind`), or a file could not be deleted.
    """
    repository = context.repository
    if any(path.rpartition("/")[2] == CONFIG_NAME for path in paths):
        context.enter(repository)  # read the settings again
    with locked(repository.cache_dir, "commit.lock"):
        drop_intent_to_add(repository, context.directory)
        obstacle = find_obstacle(repository)
        if obstacle and removed and not leaves_removal:
            raise _build_removal_error(obstacle)
        if obstacle:
            _remove_all(repository, removed)
            _leave_uncommitted(
                context, obstacle, [*paths, *removed], "removed" if removed else "written"
            )
            return None
        refusal = MessageRefusal(repository)
        try:
            message = build_message(context, summary, trailers, body)
            if removed:
                _commit_with_own_index(repository, paths, removed, message, env)
            elif _commit_only(repository, paths, message, env):
                return repository.git.resolve("HEAD")
        except MemtoolError as error:
            raise _build_commit_error(context, error, refusal, paths, removed) from None
        commit = _update_index(repository, paths, removed)
    try:
        _remove_all(repository, removed)
    except MemtoolError as error:
        error.message = f"commit {commit[:10]} is made, but {error.message}"
        raise
    return commit


def build_message(
    context: Context, summary: str, trailers: Mapping[str, str], body: str = ""
) -> str:
    """Return the message of a commit in the style of the settings.

    Raises:
        MemtoolError: a trailer names the author, and git knows none.
    """
    settings, author = context.settings, ""
    own_trailers = settings.texts(commit_style.TRAILERS_KEY)
    if own_trailers:
        ident = context.repository.git.line("var", "GIT_AUTHOR_IDENT")
        author = ident.rpartition(">")[0] + ">"  # the time follows
    subject = commit_style.format_subject(settings.text(commit_style.SUBJECT_KEY), summary)
    return messages.compose(
        subject, {**trailers, **commit_style.format_trailers(own_trailers, author)}, body
    )


class MessageRefusal:
    """Tells whether a hook refused the message of a commit: git wrote it down, and then failed.

    The hooks before that do not see the message.
    """

    def __init__(self, repository: Repository) -> None:
        self._repository = repository
        self._path = os.path.join(repository.git_dir, "COMMIT_EDITMSG")
        self._before = self._read_stamp()

    def _read_stamp(self) -> tuple[int, int]:
        try:
            status = os.stat(self._path)
        except OSError:
            return 0, 0
        return status.st_ino, status.st_mtime_ns

    def is_by_hook(self, error: MemtoolError) -> bool:
        """Return whether a hook caused this error of a commit that was tried meanwhile."""
        if not isinstance(error, GitError) or error.status != 1:  # git's own refusals end with 128
            return False
        if self._read_stamp() == self._before:
            return False
        words = [word for name in MESSAGE_HOOKS for word in ("--git-path", f"hooks/{name}")]
        # with_hooks: our own hardening names another folder
        answer = self._repository.git.run(
            "rev-parse", "--path-format=absolute", *words, with_hooks=True
        )
        return any(os.access(path, os.X_OK) for path in os.fsdecode(answer).splitlines())


def _commit_only(
    repository: Repository, paths: Sequence[str], message: str, env: Mapping[str, str] | None
) -> bool:
    """Commit files; return whether git's index was updated as well.

    Raises:
        MemtoolError: git or a hook refused; new files are removed from the index again.
    """
    before = repository.git.head()
    new = _list_untracked(repository, paths)
    if new:
        run_patiently(repository, ["add", "--intent-to-add", "--force"], new)
    try:
        run_patiently(repository, ["commit", "--only", *_commit_options(message)], paths, env)
    except MemtoolError as error:
        if _has_committed(repository, before, message, error):
            return False
        if new:
            with suppress(MemtoolError):  # the user must see the first error
                run_patiently(repository, ["rm", "--cached", "--quiet"], new)
        raise
    return True


def _commit_with_own_index(
    repository: Repository,
    paths: Sequence[str],
    removed: Sequence[str],
    message: str,
    env: Mapping[str, str] | None,
) -> None:
    """Commit files and removals from a separate index.

    Raises:
        MemtoolError: git or a hook refused; the user's index is unchanged.
    """
    before = repository.git.head()
    name = f"{TEMP_PREFIX}{os.getpid()}-{os.urandom(4).hex()}-index"
    index_path = os.path.join(repository.cache_dir, name)
    index_env = {"GIT_INDEX_FILE": index_path}
    try:
        repository.git.run("read-tree", "HEAD", env=index_env)
        run_patiently(
            repository, ["rm", "--cached", "--quiet", "--ignore-unmatch"], removed, index_env
        )
        if paths:
            run_patiently(repository, ["add", "--force"], paths, index_env)
        run_patiently(
            repository, ["commit", *_commit_options(message)], None, {**(env or {}), **index_env}
        )
    except MemtoolError as error:
        if not _has_committed(repository, before, message, error):
            raise
    finally:
        for leftover in (index_path, f"{index_path}.lock"):
            with suppress(OSError):
                os.unlink(leftover)


def _build_commit_error(
    context: Context,
    error: MemtoolError,
    refusal: MessageRefusal,
    paths: Sequence[str],
    removed: Sequence[str],
) -> MemtoolError:
    """Build the error of a failed commit: state of the files, reason, and a hint."""
    repository = context.repository
    if removed:
        outcome, again = "nothing was removed", AGAIN
    else:
        is_new = bool(_list_untracked(repository, paths))
        outcome = f"{_format_files(paths)} written but not committed"
        again = _build_command(paths, is_new=is_new)
    if refusal.is_by_hook(error):
        words = _read_hook_words(error)
        reason = "\n  ".join(["a hook refused the message", *words])
        hint = f"{_suggest_setting(context, words)}\nthen: {again}"
    else:
        reason = _find_reason(repository, error)
        hint = _build_hint(repository, error, again, () if removed else paths)
    return MemtoolError(f"{outcome}: {reason}", hint=hint, code="commit-refused")


def find_remedy(error: MemtoolError) -> str:
    """Return what the hint of a refused commit says to do before the commit is tried again."""
    return error.hint.rpartition("\n")[0]


def _read_hook_words(error: MemtoolError) -> list[str]:
    """Return the first lines that a hook printed, redacted and without control characters."""
    stderr = error.stderr if isinstance(error, GitError) else ""
    lines = [
        "".join(filter(str.isprintable, line.expandtabs(1))).strip()
        for line in _STYLE.sub("", stderr).splitlines()
        if not line.endswith(_PASSED) and not line.startswith(_DETAILS)
    ]
    text = "\n".join([line for line in lines if line][:MAX_HOOK_LINES])
    rows = clean_text(text).splitlines()
    return [row if len(row) <= MAX_HOOK_CHARS else f"{row[: MAX_HOOK_CHARS - 1]}…" for row in rows]


def _suggest_setting(context: Context, words: Sequence[str]) -> str:
    """Return the command for the setting that a hook on messages probably asks for."""
    settings = context.settings
    trailers = settings.texts(commit_style.TRAILERS_KEY)
    text = " ".join(words).lower()
    if any(word in text for word in _SIGN_OFF_WORDS) and commit_style.SIGN_OFF not in trailers:
        names = ",".join([*trailers, commit_style.SIGN_OFF])
        return f"memtool config {commit_style.TRAILERS_KEY} {shlex.quote(names)}"
    fitting = commit_style.suggest_subject(context.repository) or commit_style.CONVENTIONAL
    if fitting == settings.text(commit_style.SUBJECT_KEY):
        return f"memtool config {commit_style.SUBJECT_KEY} TEMPLATE"
    return f'memtool config {commit_style.SUBJECT_KEY} "{fitting}"'


def _update_index(repository: Repository, paths: Sequence[str], removed: Sequence[str]) -> str:
    try:
        return update_index_to_head(repository, [*removed, *paths])
    except MemtoolError as error:
        if removed:
            error.hint += f"\nrm {' '.join(removed)}"
        raise


def _leave_uncommitted(context: Context, obstacle: str, paths: Sequence[str], how: str) -> None:
    """Leave files to a later commit, or stage them during a merge, and add a note."""
    repository = context.repository
    files = f"{_format_files(paths)} {how}"
    if obstacle == MERGE:
        try:
            run_patiently(repository, ["add", "--force"], paths)
        except MemtoolError as error:
            raise MemtoolError(
                f"{files} but not staged: {_find_reason(repository, error)}",
                hint=f"git add -- {_quote_paths(paths)}",
                code="commit-refused",
            ) from None
        context.notes.append(
            f"{files} and staged, not committed: {explain_obstacle(obstacle)}, "
            "and its commit takes "
            "that in (git merge --abort discards it)"
        )
        return
    note = f"{files}, not committed: {explain_obstacle(obstacle)}; "
    if obstacle == JUJUTSU:
        context.notes.append(
            f"{note}jj takes it into its own commit: jj commit {_quote_paths(paths)}"
        )
        return
    later = f"git add -- {_quote_paths(paths)} && git commit -- {_quote_paths(paths)}"
    if obstacle == DETACHED:
        context.notes.append(f"{note}git switch BRANCH, then {later}")
        return
    tracked = set(paths) - set(_list_untracked(repository, paths))
    if tracked:
        note += f"its --abort takes back changes of {_quote_paths(sorted(tracked))}; "
    context.notes.append(f"{note}when it is over: {later}")


def list_intent_to_add(repository: Repository, directory: str) -> list[str]:
    """List the memories with an intent-to-add entry in git's index, left by a killed commit.

    With such an entry git refuses to stash and to rebase.
    """
    options = ("--name-only", "--diff-filter=A", "--ignore-submodules", "-z")
    return repository.git.names("diff", *options, "--", directory)


def drop_intent_to_add(repository: Repository, directory: str) -> list[str]:
    """Remove intent-to-add entries from the index, so the files are untracked; return the paths."""
    paths = list_intent_to_add(repository, directory)
    if paths:
        run_patiently(repository, ["rm", "--cached", "--quiet", "--ignore-unmatch"], paths)
    return paths


def discard(repository: Repository, paths: Sequence[str]) -> None:
    """Remove uncommitted files, from git's index first.

    Raises:
        MemtoolError: git or the disk refuses; it names the files that remain.
    """
    if paths:
        run_patiently(
            repository, ["rm", "--cached", "--quiet", "--force", "--ignore-unmatch"], paths
        )
    _remove_all(repository, paths)


def _remove_all(repository: Repository, paths: Sequence[str]) -> None:
    """Remove as many files as possible. Raises MemtoolError with those that remain."""
    remaining: list[str] = []
    for path in paths:
        try:
            remove(repository.top, path)
        except MemtoolError as error:
            remaining.append(path)
            reason = error.message
    if remaining:
        remaining_text = f"; so are {len(remaining) - 1} more" if len(remaining) > 1 else ""
        raise MemtoolError(
            f"{reason}{remaining_text}", hint=f"rm {' '.join(remaining)}", code="disk"
        )


def _commit_options(message: str) -> list[str]:
    return ["--quiet", "--cleanup=verbatim", "--no-edit", f"--message={message}"]


def _has_committed(repository: Repository, before: str, message: str, error: MemtoolError) -> bool:
    """Return whether git made the commit with this message before it failed."""
    head = repository.git.head()
    if head == before:
        return False
    if isinstance(error, GitError) and _COMMITTED_MESSAGE in error.stderr:
        return True
    return repository.git.line("log", "-1", "--format=%B", head).strip() == message.strip()


def update_index_to_head(repository: Repository, paths: Sequence[str]) -> str:
    """Update git's index to HEAD for some paths after a commit, and return the commit.

    Raises:
        MemtoolError: git cannot write its index; the commit exists nevertheless.
    """
    commit = repository.git.resolve("HEAD")
    try:
        run_patiently(repository, ["reset", "--quiet"], paths)
    except MemtoolError as error:
        raise MemtoolError(
            f"commit {commit[:SHORT_ID_DIGITS]} was made, but git's index was not updated: "
            f"{_find_reason(repository, error)}",
            hint=f"git reset -- {_quote_paths(paths)}",
            code="index-behind",
        ) from None
    return commit


def _build_removal_error(obstacle: str) -> MemtoolError:
    """Build the error for a removal that would be lost, or would end the user's operation."""
    return MemtoolError(
        f"nothing was removed: {explain_obstacle(obstacle)}",
        hint=f"{finish_command(obstacle)}\nthen run the command again",
        code="merging",
    )


def finish_command(obstacle: str) -> str:
    """Return the command that ends the obstacle from `find_obstacle`."""
    if obstacle in (DETACHED, JUJUTSU):
        return "git switch BRANCH"
    if obstacle == "bisect":
        return "git bisect reset"
    return f"git {obstacle} --continue or --abort"


def _format_files(paths: Sequence[str]) -> str:
    if len(paths) <= SHOWN_PATHS:
        return f"{', '.join(paths)} is" if len(paths) == 1 else f"{', '.join(paths)} are"
    return f"{len(paths)} files are"


def _list_untracked(repository: Repository, paths: Sequence[str]) -> list[str]:
    tracked: set[str] = set()
    for batch in split_batches(paths, MAX_PATH_ARGUMENTS):
        tracked.update(repository.git.names("ls-files", "-z", "--", *batch))
    return [path for path in paths if path not in tracked]


def _find_reason(repository: Repository, error: MemtoolError) -> str:
    if isinstance(error, GitError):
        if error.is_lock:
            lock_reason = describe_lock(repository, error.lock)
            return lock_reason or _find_refusal_line(error.stderr) or error.message
        return _find_refusal_line(error.stderr) or error.message
    return error.message


def _find_refusal_line(stderr: str) -> str:
    """Return the line of stderr that explains why git or a hook refused; empty if none does.

    The pre-commit framework lists every hook with its outcome, and below a failed one its id, exit
    code and output.
    """
    lines = [
        line.strip()
        for line in stderr.splitlines()
        if line.strip() and not line.endswith(_PASSED) and not line.startswith(_DETAILS)
    ]
    if not lines:
        return ""
    name, dots, _outcome = lines[0].partition("...")
    if dots and lines[0].endswith("Failed"):
        return f"the hook {name!r} refused: {lines[1] if len(lines) > 1 else 'it says no reason'}"
    return lines[0].removeprefix("fatal: ")


def _build_command(paths: Sequence[str], *, is_new: bool) -> str:
    """Return the command that commits files; git commits only tracked files by name."""
    named = _quote_paths(paths)
    return f"git add -- {named} && git commit -- {named}" if is_new else f"git commit -- {named}"


def _build_hint(
    repository: Repository, error: MemtoolError, again: str, paths: Sequence[str]
) -> str:
    if isinstance(error, GitError):
        if error.is_lock and is_abandoned(repository, error.lock):
            return f"rm {shlex.quote(error.lock)}, then {again}"
        if error.is_read_only:
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


def _quote_paths(paths: Sequence[str]) -> str:
    """Return paths for a command line; for many paths their common directory or directories."""
    shown: Sequence[str] = paths
    if len(paths) > SHOWN_PATHS:
        common = os.path.commonpath(paths)
        shown = [common] if common else sorted({path.partition("/")[0] for path in paths})
    return " ".join(map(shlex.quote, shown))
