"""`memtool new`: a memory from the template of its type."""

from __future__ import annotations

from typing import Literal

from memtool.commands import drafting, writing
from memtool.commands.writing import Written
from memtool.commands.writing import render_written as render
from memtool.memory.fields import BY_NAME
from memtool.memory.memory import Memory
from memtool.workspace import Workspace

__all__ = ["new", "render"]


def new(
    ws: Workspace,
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

    The file goes to .memory/TYPE/YEAR-MONTH/ID.md. Without --body the headings of the template
    stand there to be filled in. Without --source you are the source.

    Example:
        memtool new decision "Keep sessions in Redis" --body "Sessions live in Redis." --tag auth

    Args:
        type: what kind of memory: a decision, a stable fact, a trace of what happened, a state
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
        edit: open it in your editor before it is written
        commit: commit just this file
        dry_run: print the file instead of writing it
    """
    writing.prepare(ws)
    memory = drafting.draft(
        ws,
        type,
        title,
        body=body,
        section=section,
        extra=set,
        fields={
            "id": id,
            "category": category or BY_NAME["category"].default,
            "confidence": confidence,
            "source": source,
            "tags": tag,
            "files": file,
            "supersedes": replaceable(ws, supersedes),
            "importance": "" if importance is None else f"{importance:g}",
            "valid_through": valid_through,
        },
    )
    return finish(ws, memory, has_own_id=bool(id), edit=edit, commit=commit, dry_run=dry_run)


def finish(
    ws: Workspace, memory: Memory, *, has_own_id: bool, edit: bool, commit: bool, dry_run: bool
) -> Written:
    """Check, edit, write and commit a draft, as asked."""
    if edit:
        writing.check(ws, memory)
        memory = drafting.edit(ws, memory)
    draw = None if has_own_id else lambda: drafting.draw_id(ws, memory.type, memory.title)
    return writing.write_new(ws, memory, draw=draw, commit=commit, dry_run=dry_run)


def replaceable(ws: Workspace, wanted: tuple[str, ...]) -> tuple[str, ...]:
    """Return the full ids of memories that may be superseded: they exist and are heads.

    Raises:
        MemtoolError: one is not there, or something superseded it already; the hint offers that.
    """
    from memtool.errors import MemtoolError

    if not wanted:
        return ()
    tree = ws.tree()
    found = []
    for name in wanted:
        id_ = tree.find(name).id
        if not tree.lineage.is_head(id_):
            newer = tree.lineage.superseded_by[id_]
            heads = tree.lineage.heads_of(id_) or newer
            raise MemtoolError(
                f"{id_} is superseded already, by {', '.join(newer)}",
                hint=f"memtool supersede {heads[0]} TITLE",
                code="not-a-head",
            )
        found.append(id_)
    return tuple(dict.fromkeys(found))
