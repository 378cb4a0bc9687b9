"""`memtool forget`: a soft deletion with a reason; `restore` undoes it."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence

from memtool.authoring import write
from memtool.authoring.tree import is_dirty
from memtool.authoring.write import ChangeResult
from memtool.commands import _features, _render
from memtool.commands._layout import Layout
from memtool.errors import MemtoolError
from memtool.index import index
from memtool.memory import memory, timestamps
from memtool.memory.memory import Fields, Memory
from memtool.search import retrieve
from memtool.search.query import parse
from memtool.search.saved import expand_words
from memtool.search.scope import build_scope
from memtool.store.commits import commit_files
from memtool.store.context import Context
from memtool.store.messages import MEMORY_ID, REASON
from memtool.value import Value

MAX_MEMORIES = 50
"""Memories that one query may forget."""


class ForgetResult(Value):
    """The change of each forgotten memory."""

    forgotten: tuple[ChangeResult, ...]


def forget(
    context: Context,
    *wanted: str,
    reason: str = "",
    all: bool = False,
    commit: bool = False,
    dry_run: bool = False,
) -> ForgetResult:
    """Delete a memory, with a reason.

    It is no longer found or shown; memtool restore brings it back. The file stays, with the reason,
    the time and your name in it; memtool purge removes it later.

    With a query instead of an id, --all forgets everything that it finds.

    Example:
        memtool forget sem-gnq8 --reason "the VPN is gone" --commit
        memtool forget tag:vpn --all --reason "the VPN is gone"

    Args:
        wanted: the memory, by id or words, or a query
        reason: the reason, required
        all: forget every memory that the query finds
        commit: commit these files only
        dry_run: show what would change, write nothing
    """
    if not reason.strip():
        raise MemtoolError(
            "cannot forget: the reason is missing",
            hint=f'memtool forget {" ".join(wanted) or "ID"} --reason "REASON"',
        )
    write.prepare(context, begins=False, dry_run=dry_run)
    deleted = {
        "at": timestamps.render(context.clock.now),
        "by": write.find_author(context),
        "reason": reason.strip(),
    }

    def changes(memory: Memory) -> Fields:
        if memory.status == "deleted":
            return {}
        return {"status": "deleted", "deleted": deleted | {"was": memory.status}}

    ids = _resolve_ids(context, wanted, all_=all)
    if len(ids) == 1:
        done = [
            write.change(
                context, ids[0], changes, "forget", commit=commit, dry_run=dry_run, reason=reason
            )
        ]
    else:
        done = _forget_together(context, ids, changes, reason, commit=commit, dry_run=dry_run)
    gone = [change.id for change in done if change.changes]
    _features.follow_end(context, gone, commit=commit, dry_run=dry_run)
    return ForgetResult(tuple(done))


def _forget_together(
    context: Context,
    ids: Sequence[str],
    changes: Callable[[Memory], Fields],
    reason: str,
    *,
    commit: bool,
    dry_run: bool,
) -> list[ChangeResult]:
    """Forget several memories, all or none, with `commit` in one commit."""
    done = write.change_all(context, ids, changes, "forget", dry_run=dry_run, reason=reason)
    uncommitted = [
        change
        for change in done
        if commit and not dry_run and is_dirty(context.repository, change.path)
    ]
    if not uncommitted:
        return done
    trailers = {MEMORY_ID: ", ".join(change.id for change in uncommitted), REASON: reason}
    commit_id = commit_files(
        context,
        [change.path for change in uncommitted],
        f"forget {len(uncommitted)}",
        trailers,
    )
    return [
        change.replace(commit=commit_id) if change in uncommitted else change for change in done
    ]


def render(result: ForgetResult, layout: Layout) -> str:
    """Return the path of each memory, and report what was forgotten."""
    return "\n".join(_render.format_changed(change, layout) for change in result.forgotten)


def _resolve_ids(context: Context, wanted: tuple[str, ...], *, all_: bool) -> tuple[str, ...]:
    """Return the id of the named memory, or the ids that a query finds."""
    text = " ".join(wanted).strip()
    if not text:
        raise MemtoolError(
            "cannot forget: the id is missing", hint='memtool forget ID --reason "REASON"'
        )
    try:
        return (context.tree().find(text).id,)
    except MemtoolError as error:
        is_known = error.code in ("unknown-id", "ambiguous-id")
        if not is_known or not any(mark in text for mark in ' :"'):
            raise
    query = parse(expand_words(context, wanted))
    tree = index.open(context, exact=True)
    scope = build_scope(context, tree, context.clock.now)
    answer = retrieve.search_query(scope, query, MAX_MEMORIES)
    context.notes.extend(answer.notes)
    # A digest only quotes the memory that the user means.
    ids = tuple(hit.record.id for hit in answer.hits if not memory.is_generated(hit.record.memory))
    if not ids:
        raise MemtoolError(
            f'cannot forget: no memory matches "{text}"', hint="memtool list", code="unknown-id"
        )
    if len(ids) > 1 and not all_:
        query_text = shlex.join(wanted)
        raise MemtoolError(
            f'cannot forget: "{text}" matches {len(ids)} memories:{tree.list_titles(ids)}',
            hint=f'memtool forget {ids[0]} --reason "REASON"\n'
            f'all of them: memtool forget {query_text} --all --reason "REASON"',
            code="ambiguous-id",
        )
    return ids
