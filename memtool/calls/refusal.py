"""Refusals of a verb: their texts name the verb, and their commands fit the repository.

Lower layers do not know which verb was called, nor that a memory may be elsewhere: on the trusted
branch, among the global memories, or in history.
"""

from __future__ import annotations

import os
import re
import shlex

from memtool.errors import MemtoolError, UnclearIdError
from memtool.memory.trust import SHORT_ID_DIGITS
from memtool.redaction.mask import Mask
from memtool.store import history, provenance, versions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from memtool.store.context import Context
    from memtool.store.versions import Stamp

_COMMAND = re.compile(r"(?<![\w./-])memtool (?!--global)(?=[a-z-])")


def adapt_error(
    context: Context,
    error: MemtoolError,
    verb: str,
    words: Sequence[object],
    options: Mapping[str, Any],
) -> None:
    """Name the verb in an error about an id, and make its commands fit the repository."""
    notes = [*context.notes]
    try:
        if isinstance(error, UnclearIdError):
            _explain(context, error, verb, words, options)
    finally:
        context.notes[:] = notes
    if context.is_global:
        error.hint = _COMMAND.sub("memtool --global ", error.hint)
        if error.code == "commit-refused":
            for command in ("git commit", "git config"):
                there = f"git -C {context.repository.top}{command[3:]}"
                error.hint = error.hint.replace(command, there)


def _explain(
    context: Context,
    error: UnclearIdError,
    verb: str,
    words: Sequence[object],
    options: Mapping[str, Any],
) -> None:
    if error.ids:
        if error.wanted in words:
            error.message = f"cannot {verb}: {error.message}"
            error.hint = _format_command(verb, words, options, error.wanted, error.ids[0])
        return
    at = options.get("at")
    try:
        _explain_removed(context, error, at)
        if at is None:
            _explain_trusted(context, error)
        _explain_global(context, error, verb, words, options)
    except MemtoolError:  # the revision, the trusted branch or the global memories are not there
        return


def _format_command(
    verb: str, words: Sequence[object], options: Mapping[str, Any], wanted: str, id_: str
) -> str:
    """Return the command line that was called, with an id in place of a text."""
    named = [id_ if word == wanted else str(word) for word in words if word not in ("", None)]
    reason = [' --reason "REASON"'] if options.get("reason") else []
    return "".join([f"memtool {verb} {shlex.join(named)}", *reason])


def _explain_removed(context: Context, error: UnclearIdError, at: str | None) -> None:
    """Name the commit that removed the memory."""
    repository, wanted = context.repository, error.wanted
    removed = history.find_removed(repository, context.directory, wanted, at)
    if removed is None:
        return
    title = _read_title(context, (removed.path, removed.oid))
    named = f"{wanted} ({title})" if title else wanted
    if removed.is_at_head and os.path.lexists(os.path.join(repository.top, removed.path)):
        error.message = f"{named} cannot be read"
        error.hint = f"memtool check {shlex.quote(removed.path)}"
    elif removed.is_at_head:
        error.message = f"{named} was removed from the worktree, and HEAD still has it"
        error.hint = f"git checkout HEAD -- {shlex.quote(removed.path)}"
    else:
        error.message = f"{named} was removed in {removed.commit[:SHORT_ID_DIGITS]}"
        error.hint = f"memtool log {wanted}"


def _explain_trusted(context: Context, error: UnclearIdError) -> None:
    """Hint at the memory on the trusted branch."""
    repository, wanted = context.repository, error.wanted
    setting = context.project.trust_settings.text("trust.ref")
    commit = provenance.resolve_trusted(repository, setting)
    if not commit or commit == repository.git.head():
        return
    stamp = history.find_path_at(repository, context.directory, commit, wanted)
    if stamp is None:
        return
    ref = provenance.format_trusted_ref(repository, setting)
    command = f"memtool show {shlex.quote(wanted)} --at {ref}"
    if "was removed" in error.message:
        error.hint += f"\n{command}"
    else:
        title = _read_title(context, stamp)
        error.message = f"{wanted}{f' ({title})' if title else ''} is on {ref}, not on this branch"
        error.hint = command


def _explain_global(
    context: Context,
    error: UnclearIdError,
    verb: str,
    words: Sequence[object],
    options: Mapping[str, Any],
) -> None:
    """Hint at the global memory of this id."""
    if context.is_global or context.global_context is None or error.wanted not in words:
        return
    from memtool.index import index  # needed for an unknown id only

    record = index.open(context.global_context).find(error.wanted, by_words=False)
    error.message = f'"{record.memory.title}" ({error.wanted}) is a global memory'
    command = _format_command(verb, words, options, error.wanted, error.wanted)
    error.hint = command.replace("memtool ", "memtool --global ", 1)


def _read_title(context: Context, stamp: Stamp) -> str:
    """Return the title of a version of a memory, masked; empty if it cannot be read."""
    repository, categories = context.repository, context.settings.categories
    memory = versions.read_blobs(repository, [stamp], categories)[stamp].memory
    return "" if memory is None else Mask(context.settings).line(memory.title)
