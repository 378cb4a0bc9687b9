"""`memtool supersede`: the way to correct a memory."""

from __future__ import annotations

from typing import Literal

from memtool.authoring import draft, write
from memtool.authoring.write import Written
from memtool.commands import _filters
from memtool.commands._render import written as render
from memtool.memory.fields import FIELDS
from memtool.memory.memory import Fields
from memtool.store.context import Context

__all__ = ["render", "supersede"]

INHERITED = {field.name for field in FIELDS if field.group == "retrieval"} | {"privacy"}
"""Keys that the new memory takes over: what it is found by, and how it is to be handled."""


def supersede(
    context: Context,
    old: str,
    title: str,
    *,
    type: Literal["", "decision", "semantic", "episodic", "state"] = "",
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
    """Correct a memory: write a new one that takes its place. The old file keeps every byte.

    Type, category, scope and what it is found by (tags, files, aliases, trigger phrases, domain
    and the like) are those of the old memory unless they are given, and a pinned one stays pinned.
    Two heads of a fork are joined with --supersedes OTHER.

    Example:
        memtool supersede dec-2026-02-22-keep-sessions-in-redis "Keep sessions in Postgres" --commit

    Args:
        old: the memory to replace, by its id or the beginning of it; nothing may supersede it yet
        title: one line that says what holds now
        type: what kind of memory, by default that of the old one
        body: the text, or - to read it from stdin
        section: a section of the body as NAME=TEXT; may be repeated
        category: a row of the category table
        tag: a key word; may be repeated
        file: a file or glob that it governs; may be repeated
        source: where it comes from, such as commit:SHA, file:PATH#L1-L9 or url:…; may be repeated
        confidence: how sure you are, medium by default
        importance: 0 to 1
        valid_through: last day or moment on which it holds
        supersedes: id of another memory that it replaces as well; may be repeated
        set: any other key as KEY=VALUE; may be repeated
        id: the id of the new memory, instead of a made one
        edit: open it in your editor before it is written; a dry run opens none
        commit: commit just this file, with the trailers Memory-Id and Supersedes
        dry_run: print the file instead of writing it
    """
    write.prepare(context, begins=False)
    tree = write.current(context, dry_run=dry_run)
    ids = write.replaceable(tree, (old, *supersedes))
    replaced = tree.by_id[ids[0]].memory
    kind = type or replaced.type
    inherited = {key: value for key, value in replaced.fields.items() if key in INHERITED}
    if kind == replaced.type:
        inherited["category"] = replaced.text("category")
    if replaced.status == "pinned":
        inherited["status"] = "pinned"
    given: Fields = {
        "id": id,
        "category": category,
        "confidence": confidence,
        "source": source,
        "tags": tag,
        "files": file,
        "supersedes": ids,
        "importance": "" if importance is None else f"{importance:g}",
        "valid_through": valid_through,
    }
    memory = draft.draft(
        context,
        kind,
        title,
        body=_filters.body_text(body),
        section=section,
        extra=set,
        fields=inherited | {key: value for key, value in given.items() if value},
    )
    return draft.submit(
        context, memory, has_own_id=bool(id), edit=edit, commit=commit, dry_run=dry_run
    )
