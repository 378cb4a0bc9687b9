"""`memtool forget`: a soft deletion with a reason; `restore` undoes it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from memtool.authoring import write
from memtool.authoring.tree import is_dirty
from memtool.authoring.write import Changed
from memtool.commands import _features, _render
from memtool.errors import MemtoolError
from memtool.index import index
from memtool.memory import memory, timestamps
from memtool.memory.memory import Fields, Memory
from memtool.search import retrieve
from memtool.search.query import parse
from memtool.search.saved import text_of
from memtool.search.scope import scope_of
from memtool.store.commits import commit_files
from memtool.store.context import Context
from memtool.value import Value, first_few

MOST = 50
"""Memories that a query forgets at once."""


class ForgetResult(Value):
    """What was forgotten, one change per memory."""

    forgotten: tuple[Changed, ...]


def forget(
    context: Context,
    *wanted: str,
    why: str = "",
    all: bool = False,
    commit: bool = False,
    dry_run: bool = False,
) -> ForgetResult:
    """Delete a memory softly: it is no longer listed, found or injected, and can be restored.

    The file stays, with the moment, the person and the reason written into it. Instead of an id a
    query may be given; where it finds several memories, --all is needed to forget them together.

    Example:
        memtool forget sem-2026-02-22-deploys-need-the-vpn --why "the VPN is gone" --commit

    Args:
        wanted: the memory, by its id or words of it, or a query
        why: the reason, required
        all: forget every memory that the query finds
        commit: commit just these files
        dry_run: say what would change, write nothing
    """
    if not why.strip():
        raise MemtoolError(
            "forgetting needs a reason",
            hint=f'memtool forget {" ".join(wanted) or "ID"} --why "REASON"',
        )
    write.prepare(context, begins=False, dry_run=dry_run)
    deleted = {
        "at": timestamps.render(context.clock.now),
        "by": write.author(context),
        "reason": why.strip(),
    }

    def forgotten(memory: Memory) -> Fields:
        if memory.status == "deleted":
            return {}
        return {"status": "deleted", "deleted": deleted | {"was": memory.status}}

    meant = _meant(context, wanted, all_=all)
    if len(meant) == 1:
        done = [
            write.change(
                context, meant[0], forgotten, "forget", commit=commit, dry_run=dry_run, reason=why
            )
        ]
    else:
        done = _together(context, meant, forgotten, why, commit=commit, dry_run=dry_run)
    gone = [one.id for one in done if one.changes]
    _features.follow_end(context, gone, commit=commit, dry_run=dry_run)
    return ForgetResult(tuple(done))


def _together(
    context: Context,
    ids: Sequence[str],
    forgotten: Callable[[Memory], Fields],
    why: str,
    *,
    commit: bool,
    dry_run: bool,
) -> list[Changed]:
    """Forget several memories, all or none, in one commit if asked."""
    done = write.change_all(context, ids, forgotten, "forget", dry_run=dry_run, reason=why)
    due = [one for one in done if commit and not dry_run and is_dirty(context.repository, one.path)]
    if not due:
        return done
    trailers = {"Memory-Id": ", ".join(one.id for one in due), "Reason": why}
    made = commit_files(context, [one.path for one in due], f"memory: forget {len(due)}", trailers)
    return [one.replace(commit=made) if one in due else one for one in done]


def render(forgotten: ForgetResult) -> str:
    """Return what changed in each memory, and how to undo it."""
    rows = [_render.changed(one) for one in forgotten.forgotten]
    done = [one.id for one in forgotten.forgotten if one.changes and not one.dry_run]
    if done:
        rows.append(f"undo: memtool restore {done[0] if len(done) == 1 else 'ID'}")
    return "\n".join(rows)


def _meant(context: Context, wanted: tuple[str, ...], *, all_: bool) -> tuple[str, ...]:
    """Return the ids that were meant: one that is named, or those that a query finds."""
    text = " ".join(wanted).strip()
    if not text:
        raise MemtoolError("nothing is named", hint='memtool forget ID --why "REASON"')
    try:
        return (context.tree().find(text).id,)
    except MemtoolError as error:
        is_known = error.code in ("unknown-id", "ambiguous-id")
        if not is_known or not any(mark in text for mark in ' :"'):
            raise
    query = parse(text_of(context, wanted))
    scope = scope_of(context, index.open(context, exact=True), context.clock.now)
    answer = retrieve.search_query(scope, query, MOST)
    context.notes.extend(answer.notes)
    # A digest only quotes the memory that is meant.
    found = tuple(
        hit.record.id for hit in answer.hits if not memory.is_generated(hit.record.memory)
    )
    if not found:
        raise MemtoolError(f"no memory answers {text!r}", hint="memtool list", code="unknown-id")
    if len(found) > 1 and not all_:
        raise MemtoolError(
            f"{len(found)} memories answer {text!r}: {first_few(found, 5, ', …')}",
            hint="name one, or forget them all with --all",
            code="ambiguous-id",
        )
    return found
