"""The one error that users see: what is wrong, and what to do next."""

from __future__ import annotations

ERROR_CODES: dict[str, str] = {
    "agent": "an agent vouches for no memory; a person confirms it",
    "ambiguous": "several things have a name that begins so",
    "ambiguous-id": "several memories have an id that begins so",
    "bad-alias": "what is given is no alias",
    "bad-budget": "a budget that is no number of tokens, or too small",
    "bad-event": "what a host sent to a hook cannot be read",
    "bad-golden": "a line of a golden file is no golden query",
    "bad-limit": "a number that is too small",
    "bad-query": "the query is not in the query language",
    "bad-time": "what is given is no moment, date or age",
    "bare": "a bare repository has no worktree for this",
    "binary": "the file is no text",
    "block": "memtool's block of a file such as AGENTS.md cannot be read or written",
    "broken-settings": "the settings of a host cannot be read, so they are not changed",
    "bug": "memtool is at fault; the hint names the log file",
    "busy": "another process is at the same work",
    "changed": "a file was changed by somebody else meanwhile",
    "commit-refused": "git, or a hook of the repository, refused the commit",
    "config": "a setting is not known, or has a value that it cannot have",
    "damaged": "a derived file is damaged, and some files were written before that was found",
    "deleted": "the memory is deleted, and must be restored first",
    "denied": "the finding lacks something that promoting it needs",
    "detached": "no branch is checked out that could keep a commit",
    "dirty": "the file has changes that are not committed",
    "disk": "a file cannot be read or written",
    "dismissed": "the finding is dismissed already, or was not",
    "drifted": "what the memory says has gone from the code",
    "edited": "a file that memtool wrote was changed by hand",
    "editor": "the editor cannot be started, or was left without a result",
    "elsewhere": "a branch is checked out in another worktree, or not the one that is needed",
    "empty": "a text is needed, and there is none",
    "environment": "an environment variable of memtool has a value that it cannot have",
    "exists": "something of that name is there already",
    "fleet": "the server of the fleet did not answer as it must, or refused",
    "foreign-request": "a request over HTTP comes from another site, or names another host",
    "foreign-transcript": "the file is no transcript of a known host",
    "foreign-tree": "the memory directory belongs to another tool",
    "git": "git is missing, did not answer, or refused",
    "global": "the directory of the global memories cannot be used",
    "hook-taken": "a hook is there that memtool did not write and cannot keep",
    "id-taken": "another memory has the id",
    "index-behind": "the commit is made, but git's index could not follow",
    "ledger": "the statistics cannot be read",
    "login": "a request over HTTP comes from nobody that is logged in",
    "media-type": "the body of a request over HTTP is of another type than JSON",
    "merging": "a merge is not finished",
    "model": "the language model that was configured did not answer as it must",
    "model-absent": "no language model is configured, or it cannot be started",
    "no-commit": "there is no commit yet",
    "no-conflict": "these memories are in no conflict of that kind",
    "no-consent": "nobody agreed to run the command of a memory, or it may not run there at all",
    "no-directory": "the directory is not there",
    "no-file": "the file is not there",
    "no-filter-repo": "git-filter-repo, which rewrites history, is not installed",
    "no-finding": "no finding has the id",
    "no-fleet": "no repositories and no server are set that could be asked",
    "no-home": "the user has no home directory",
    "no-identity": "git does not know who commits",
    "no-job": "no job has the id",
    "no-json": "the body of a request over HTTP is no JSON object",
    "no-key": "there is no ssh key to sign with",
    "no-leak": "no version of any memory holds such a secret",
    "no-memory": "there is no memory directory",
    "no-message": "the session has no such message",
    "no-quote": "an agent names a person as the source, and quotes nobody",
    "no-records": "there is nothing that could be imported",
    "no-repository": "the directory is in no git repository",
    "no-revision": "the memory is in no commit, and replaces nothing to compare it with",
    "no-route": "there is nothing at that address",
    "no-semantic": "the package for semantic search is not installed",
    "no-session": "no session has the id",
    "no-ssh-keygen": "ssh-keygen, which makes and checks signatures, is missing or cannot be run",
    "no-step": "nothing happened to the memory that could be taken back",
    "no-trace": "the memory is no trace of a failure, so that there is nothing to run",
    "no-web": "the packages of the web view are not installed",
    "not-committed": "a file that the memory speaks of differs from HEAD",
    "not-deleted": "the memory is not forgotten, and cannot be purged",
    "not-due": "the memory was forgotten too lately to be purged",
    "not-empty": "the directory of a demo holds something, or is none",
    "not-here": "the file is left out of this sparse checkout",
    "not-pinned": "the memory is not pinned",
    "not-signed": "ssh-keygen did not sign",
    "nothing-to-sum-up": "no memory of the category is in use",
    "odd-settings": "a settings file has a shape that memtool does not edit",
    "outside": "the path is outside of the repository",
    "partial-commit": "a commit of some paths only, whose index would not be kept",
    "port-taken": "the port cannot be listened on",
    "promoted": "the finding is promoted already",
    "read-only": "the server only reads",
    "redaction": "without what must go the file would be no memory",
    "redaction-key": "the key for hashes cannot be read or made",
    "refused": "the host's settings are such that nothing may be installed",
    "rewrite": "git-filter-repo failed; nothing but its mirror was touched",
    "rewritten": "history was rewritten, so that nobody can tell which version is newer",
    "session-damaged": "a file of the session is not what was written",
    "session-ended": "the session has ended",
    "session-full": "the session may not grow any more",
    "sessions-full": "all sessions together may not grow any more",
    "several": "a memory replaced several others, and somebody else may have it",
    "shallow": "the clone does not have all of history",
    "shared-hooks": "the hooks are those of all repositories of a user or machine",
    "surface": "the verb runs in a process of its own only",
    "too-new": "the memories are of a newer format than this memtool writes",
    "too-slow": "the answer, or the body of a request, took too long",
    "unasked": "what would be installed runs for everybody, and was not asked for",
    "unknown-alias": "there is no such alias",
    "unknown-category": "there is no such category",
    "unknown-event": "the host has no such event",
    "unknown-format": "there is no such format of memories, or no step leads there",
    "unknown-id": "no memory has the id",
    "unknown-query": "there is no saved query of that name",
    "unknown-revision": "git knows no such revision",
    "unproven": "a rewritten history is not what it should be, and must not be pushed",
    "unrelated": "the commits have no common history",
    "usage": "the call is wrong; the hint says how it is meant",
}
"""Every code of an error and what it means; where a file is at fault, it may be a problem code."""


def reason_of(error: Exception) -> str:
    """Return why the operating system refused, in its words; or what another error says itself."""
    return getattr(error, "strerror", None) or str(error)


class MemtoolError(Exception):
    """Something the user can act on; printed as `memtool: message` and `hint: …`.

    `code` is a stable kebab-case name for programs, `exit_code` what the process ends with
    (1 problems found, 2 user, config or git error), `recoverable` whether the same call may
    succeed later or with other arguments.
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

    def __str__(self) -> str:
        return self.message  # which may have become more exact on the way up
