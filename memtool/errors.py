"""The one error that users see: what is wrong, and what to do next."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

ERROR_CODES: dict[str, str] = {
    "agent": "only a user can confirm a memory, not an agent",
    "ambiguous-id": "several memories or sessions match",
    "bad-alias": "not a valid alias",
    "bad-event": "the input of a hook cannot be read",
    "bad-golden": "a line of the golden file is not a golden query",
    "bad-premise": "a memory cannot rest on itself, a global memory, or what no longer holds",
    "bad-query": "the query does not follow the query language",
    "bad-time": "not a moment, a date or an age",
    "bare": "a bare repository has no worktree",
    "binary": "the file is not text",
    "block": "memtool's block in a file such as AGENTS.md cannot be read or written",
    "broken-settings": "a settings file cannot be read or edited, so nothing was changed",
    "bug": "a bug in memtool; the hint names the log file",
    "busy": "another process is doing the same work",
    "changed": "another process changed a file in the meantime",
    "commit-refused": "git, or a hook of the repository, refused the commit",
    "config": "a setting is unknown, or its value is not valid",
    "damaged": "a derived file is damaged, and some files were already written",
    "deleted": "the memory is deleted and must be restored first",
    "denied": "the lesson does not meet a requirement for promotion",
    "detached": "no branch is checked out, so a commit would be lost",
    "dirty": "the file has uncommitted changes",
    "disk": "a file cannot be read or written",
    "dismissed": "the lesson is already dismissed, or was never dismissed",
    "drifted": "the code no longer has what the memory names",
    "edited": "a file that memtool wrote was edited by hand",
    "editor": "the editor failed, or the draft was empty",
    "elsewhere": "another worktree has the branch checked out, or this one does not",
    "empty": "a required text is empty",
    "environment": "an environment variable of memtool has a value that is not valid",
    "exists": "the name, id or directory is already taken",
    "fleet": "the server of the fleet refused, or gave an unexpected answer",
    "foreign-request": "an HTTP request comes from another site, or names another host",
    "foreign-transcript": "the file is not a transcript of a supported host",
    "foreign-tree": "the memory directory belongs to another tool",
    "git": "git is missing, did not answer, or refused",
    "global": "the directory of the global memories cannot be used",
    "hook-taken": "the hook is not memtool's alone, and it cannot extend it",
    "index-behind": "the commit was made, but git's index was not updated",
    "ledger": "the usage statistics cannot be read",
    "login": "an HTTP request without a valid login",
    "merging": "a merge is not finished",
    "model": "the configured language model cannot be started, or gave an unexpected answer",
    "no-answer": "the file is not an answer of this verb with --json",
    "no-commit": "the repository has no commit yet",
    "no-conflict": "the memories are not in an open conflict",
    "no-consent": "the act needs consent, which was not given or is not possible here",
    "no-directory": "the directory does not exist",
    "no-file": "the file does not exist or cannot be read",
    "no-finding": "no lesson matches",
    "no-fleet": "no other repositories and no server are configured",
    "no-home": "the user has no home directory",
    "no-identity": "git has no name and address for the author of a commit",
    "no-job": "unknown job",
    "no-json": "the body of an HTTP request is not a JSON object, or not declared as JSON",
    "no-key": "no ssh key to sign with",
    "no-leak": "no version of any memory has this secret",
    "no-memory": "the repository has no memory directory",
    "no-message": "the session has no such message",
    "no-quote": "an agent names a user as the source without quoting the user",
    "no-records": "nothing to import",
    "no-repository": "the directory is not in a git repository",
    "no-revision": "the memory is not committed, and has no older version to compare with",
    "no-route": "unknown address",
    "no-session": "no session matches",
    "no-step": "the memory has no change that could be undone",
    "no-trace": "the memory does not record a failed command, so there is nothing to run",
    "not-committed": "a file that the memory names differs from HEAD",
    "not-due": "the memory is not forgotten, or too recently to be purged",
    "not-here": "the file is not part of this sparse checkout",
    "not-installed": "a program or package that this needs is not installed",
    "not-pinned": "the memory is not pinned",
    "not-signed": "ssh-keygen did not sign",
    "nothing-to-sum-up": "the category has no active memory",
    "outside": "the path is outside the repository",
    "partial-commit": "git commit -- PATH uses a temporary index, so nothing can be restaged",
    "port-taken": "the port is in use",
    "promoted": "the lesson was already promoted",
    "read-only": "the server is read-only",
    "redaction": "the secret is part of the memory's id or structure",
    "redaction-key": "the key for hashes cannot be read or created",
    "refused": "the change was declined, or the host's settings forbid it",
    "rests-on-change": "what the memory rests on no longer holds",
    "rewrite": "git-filter-repo failed; only its mirror was changed",
    "rewritten": "history was rewritten, so versions cannot be ordered",
    "session-damaged": "a file of the session is damaged",
    "session-ended": "the session has ended",
    "session-full": "the session has reached its size limit",
    "sessions-full": "the sessions together have reached their size limit",
    "several": "the memory replaced several others that may already be in use elsewhere",
    "shallow": "the clone does not have all of history",
    "surface": "the verb can only be started from the command line",
    "too-new": "this memtool can read but not write the newer format of the memories",
    "too-slow": "the answer, or the body of a request, took too long",
    "unknown-alias": "unknown alias",
    "unknown-category": "unknown category",
    "unknown-event": "the host does not have this event",
    "unknown-format": "unknown format of memories, or no migration to it",
    "unknown-id": "no memory matches",
    "unknown-query": "no saved query has this name",
    "unknown-revision": "git does not know the revision",
    "unproven": "the rewritten history failed verification and must not be pushed",
    "unrelated": "the commits have no common history",
    "usage": "the call is wrong; the hint shows the right form",
}
"""Every error code and its meaning. If a file is at fault, the code may be a problem code."""
EXIT_CODES: dict[int, str] = {
    0: "success",
    1: "problems were found; stdout lists them",
    2: "the call, a setting, a file or the state of git is wrong; stderr says what to do",
    3: "a bug; stderr names the log file",
    130: "interrupted",
}
"""The exit codes of the command line."""


def find_reason(error: Exception) -> str:
    """Return the operating system's reason for a refusal, or the text of any other error."""
    return getattr(error, "strerror", None) or str(error)


class MemtoolError(Exception):
    """An error that the user can act on; printed as `memtool: message` and `hint: …`.

    `code` is a stable kebab-case name for programs, `exit_code` the exit code of the process
    (1 problems found, 2 user, config or git error), `recoverable` whether the same call may
    succeed later or with other arguments. `shorten` shortens the ids in its texts, for people.
    """

    def __init__(
        self,
        message: str,
        *,
        hint: str = "",
        code: str = "usage",
        exit_code: int = 2,
        recoverable: bool = True,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.code = code
        self.exit_code = exit_code
        self.recoverable = recoverable
        self.shorten: Callable[[str], str] = str

    @property
    def as_line(self) -> str:
        """The message and its hints, joined by semicolons."""
        return "; ".join(filter(None, (self.message, *self.hint.split("\n"))))

    def __str__(self) -> str:
        return self.message  # which may have become more exact on the way up


class UnclearIdError(MemtoolError):
    """No memory fits the text `wanted`, or several do: those with `ids`."""

    def __init__(
        self, message: str, *, hint: str, code: str, wanted: str, ids: tuple[str, ...] = ()
    ) -> None:
        super().__init__(message, hint=hint, code=code)
        self.wanted = wanted
        self.ids = ids
