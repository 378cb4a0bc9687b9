"""`memtool new`: a memory from the template of its type."""

from __future__ import annotations

from typing import Literal

from memtool.authoring import draft, write
from memtool.authoring.write import Written
from memtool.commands import _filters
from memtool.commands._render import written as render
from memtool.store.context import Context

__all__ = ["new", "render"]


def new(
    context: Context,
    type: Literal["decision", "semantic", "episodic", "state"],
    title: str,
    *,
    body: str = "",
    section: tuple[str, ...] = (),
    category: str = "",
    tag: tuple[str, ...] = (),
    file: tuple[str, ...] = (),
    source: tuple[str, ...] = (),
    confidence: Literal["", "low", "medium", "high"] = "",
    importance: float | None = None,
    valid_through: str = "",
    supersedes: tuple[str, ...] = (),
    set: tuple[str, ...] = (),
    id: str = "",
    edit: bool = False,
    commit: bool = False,
    dry_run: bool = False,
) -> Written:
    """Write a memory from the template of its type, and print its path.

    The file goes to .memory/TYPE/YEAR-MONTH/ID.md. Without --body and --section the template,
    .memory/_TYPE.md, stands there to be filled in. Without --source you are the source.

    What a living memory says already, in the same words, is not written again: that memory gains
    0.1 of importance instead. What one says nearly so (see the setting check.duplicate_threshold)
    is refused, unless the new memory names it in --supersedes or --set related_to=ID.

    Example:
        memtool new decision "Keep sessions in Redis" --body "Sessions live in Redis." --tag auth

    Args:
        type: a choice, a stable fact, a trace of what happened, or where the work stands
        title: one line that says it
        body: the text, or - to read it from stdin
        section: a section of the body as NAME=TEXT; may be repeated
        category: a row of the category table, by default the type's
        tag: a key word; may be repeated
        file: a file or glob that it governs; may be repeated
        source: where it comes from, such as commit:SHA, file:PATH#L1-L9 or url:…; may be repeated
        confidence: how sure you are, medium by default
        importance: 0 to 1
        valid_through: last day or moment on which it holds
        supersedes: id of a memory that it replaces; may be repeated
        set: any other key as KEY=VALUE; may be repeated
        id: the id, instead of a made one
        edit: open it in your editor before it is written; a dry run opens none
        commit: commit just this file
        dry_run: print the file instead of writing it
    """
    write.prepare(context)
    memory = draft.draft(
        context,
        type,
        title,
        body=_filters.body_text(body),
        section=section,
        extra=set,
        fields={
            "id": id,
            "category": category,
            "confidence": confidence,
            "source": source,
            "tags": tag,
            "files": file,
            "supersedes": write.replaceable(context.tree(), supersedes) if supersedes else (),
            "importance": "" if importance is None else f"{importance:g}",
            "valid_through": valid_through,
        },
    )
    return draft.submit(
        context, memory, has_own_id=bool(id), edit=edit, commit=commit, dry_run=dry_run
    )
