"""`memtool new`: a memory from the template of its type."""

from __future__ import annotations

import os
from typing import Literal

from memtool.authoring import draft as drafts
from memtool.authoring import write
from memtool.authoring.write import Written
from memtool.authoring.write import render_written as render
from memtool.errors import MemtoolError
from memtool.memory.memory import Memory
from memtool.store.context import Context
from memtool.store.tree import Tree

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
    memory = drafts.draft(
        context,
        type,
        title,
        body=body,
        section=section,
        extra=set,
        fields={
            "id": id,
            "category": category,
            "confidence": confidence,
            "source": source,
            "tags": tag,
            "files": file,
            "supersedes": replaceable(context.tree(), supersedes) if supersedes else (),
            "importance": "" if importance is None else f"{importance:g}",
            "valid_through": valid_through,
        },
    )
    return finish(context, memory, has_own_id=bool(id), edit=edit, commit=commit, dry_run=dry_run)


def finish(
    context: Context, memory: Memory, *, has_own_id: bool, edit: bool, commit: bool, dry_run: bool
) -> Written:
    """Check, edit, write and commit a draft, as asked; what is said already is not written."""
    draft = ""
    if edit and not dry_run:
        write.check(context, memory)
        draft = drafts.draft_path(context, memory.id)
        edited = drafts.edit(context, memory)
        has_own_id = has_own_id or edited.id != memory.id
        memory = edited
    draw = None if has_own_id else lambda: drafts.draw_id(context, memory.type, memory.title)
    try:
        if draft and memory.supersedes:
            memory = memory.with_fields(supersedes=replaceable(context.tree(), memory.supersedes))
        write.check(context, memory)
        twin = write.twin_of(context, memory)
        if twin is not None and (memory.supersedes or not twin.is_exact):
            raise write.refusal(twin, memory)
        if twin is not None:
            written = write.strengthen(context, twin, commit=commit, dry_run=dry_run)
        else:
            written = write.write_new(context, memory, draw=draw, commit=commit, dry_run=dry_run)
    except MemtoolError as error:
        if draft:
            error.hint = "; ".join(filter(None, (error.hint, f"the draft is kept in {draft}")))
        raise
    if draft:
        os.unlink(draft)
    return written


def replaceable(tree: Tree, wanted: tuple[str, ...]) -> tuple[str, ...]:
    """Return the full ids of memories that may be superseded: they exist and are heads.

    Raises:
        MemtoolError: one is not there, is deleted, or something superseded it already.
    """
    found = []
    for name in wanted:
        record = tree.find(name)
        write.refuse_deleted(record.memory)
        if not tree.lineage.is_head(record.id):
            raise write.superseded(tree, record.id, "memtool supersede")
        found.append(record.id)
    return tuple(dict.fromkeys(found))
