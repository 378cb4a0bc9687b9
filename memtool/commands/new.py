"""The verbs that write a memory: `memtool new`, `remember`, its short form, and `supersede`."""

from __future__ import annotations

from typing import Literal, TypedDict, Unpack

from memtool.authoring import draft, resolve, write
from memtool.authoring.write import Written
from memtool.commands import _features, _filters
from memtool.commands._render import written as render
from memtool.errors import MemtoolError
from memtool.memory.fields import FIELDS
from memtool.memory.memory import Fields, Memory, title_of
from memtool.sessions.extract.user_rules import category_of
from memtool.store.context import Context

__all__ = ["new", "remember", "render", "supersede"]

INHERITED = {field.name for field in FIELDS if field.group == "retrieval"} | {"privacy"}
"""Keys that the new memory takes over: what it is found by, and how it is to be handled."""


class DraftOptions(TypedDict, total=False):
    """What a new memory holds beside its type and title, and what is done with it.

    Args:
        body: the text, or - to read it from stdin
        section: a section of the body as NAME=TEXT; may be repeated
        category: a row of the category table
        tag: a key word; may be repeated
        file: a file or glob that it governs; may be repeated
        source: where it comes from, such as commit:SHA, file:PATH#L1-L9 or url:…; may be repeated
        confidence: how sure you are, medium by default
        importance: 0 to 1
        valid_through: last day or moment on which it holds
        supersedes: id of a memory that it replaces; may be repeated
        set: any other key as KEY=VALUE; may be repeated
        said_by_user: the user's own words for it, quoted
        id: the id, instead of a made one
        edit: open it in your editor before it is written; a dry run opens none
        commit: commit just this file
        dry_run: print the file instead of writing it
    """

    body: str
    section: tuple[str, ...]
    category: str
    tag: tuple[str, ...]
    file: tuple[str, ...]
    source: tuple[str, ...]
    confidence: Literal["", "low", "medium", "high"]
    importance: float | None
    valid_through: str
    supersedes: tuple[str, ...]
    set: tuple[str, ...]
    said_by_user: str
    id: str
    edit: bool
    commit: bool
    dry_run: bool


def new(
    context: Context,
    type: Literal["decision", "semantic", "episodic", "state"],
    title: str,
    **options: Unpack[DraftOptions],
) -> Written:
    """Write a memory from the template of its type, and print its path.

    The file goes to .memory/TYPE/YEAR-MONTH/ID.md. Without --body and --section your editor opens
    with the template, .memory/_TYPE.md; what is left empty there is not written. Without a terminal
    a text is needed. Without --source you are the source.

    What a living memory says already, in the same words, is not written again: that memory gains
    0.1 of importance instead. What one says nearly so (check.duplicate_threshold), or in one of its
    sentences, and what has the title of one of its type is refused, unless the new memory names it
    in --supersedes or --set related_to=ID. Where no --tag is given, tags of other memories that fit
    are proposed.

    Example:
        memtool new decision "Keep sessions in Redis" --body "Sessions live in Redis." --tag auth

    Args:
        type: a choice, a stable fact, a trace of what happened, or where the work stands
        title: one line that says it
        category: a row of the category table, by default the type's
    """
    write.prepare(context, dry_run=options.get("dry_run", False))
    older = options.get("supersedes", ())
    ids = write.replaceable(context.tree(), older) if older else ()
    memory = _drafted(context, type, title, options, ids)
    done = _submitted(context, memory, options)
    if not memory.items("tags") and not done.duplicate_of:
        fitting = draft.proposed_tags(context, memory)
        if fitting:
            dry_run = options.get("dry_run")
            how = "--tag TAG" if dry_run else "tags: in its file, or --tag TAG the next time"
            context.notes.append(f"tags of other memories fit: {', '.join(fitting)} ({how})")
    _note_anchors(context, memory, done)
    return done


def remember(
    context: Context,
    *text: str,
    category: str = "",
    tag: tuple[str, ...] = (),
    file: tuple[str, ...] = (),
    said_by_user: str = "",
    commit: bool = False,
    dry_run: bool = False,
) -> Written:
    """Write down what the user said, as a confirmed fact in their own words.

    Its words decide the category, and the answer says which; what they forbid about a file is a
    warning. What an agent writes without the user's words is its own, and a candidate. What a
    living memory says already is not written again, as with memtool new.

    Example:
        memtool remember "Deploys run on Tuesdays only, never before a holiday."

    Args:
        text: what to remember, or - to read it from stdin
        category: a row of the category table, by default what its words are
        tag: a key word; may be repeated
        file: a file or glob that it is about; may be repeated
        said_by_user: the user's own words for it, quoted
        commit: commit just this file
        dry_run: print the file instead of writing it
    """
    write.prepare(context, dry_run=dry_run)
    words = _filters.body_text(" ".join(text)).strip()
    if not words:
        raise MemtoolError(
            "there is nothing to remember",
            hint='memtool remember "Deploys run on Tuesdays only."',
        )
    spoken = () if context.caller.agent else (f"human:{write.author(context)}",)
    vouching, quoted = draft.vouched(context, said_by_user, spoken)
    memory = draft.draft(
        context,
        "semantic",
        title_of(words),
        body=words,
        section=quoted,
        fields={
            "category": category or category_of(words, file),
            "confidence": "medium" if context.caller.agent and not quoted else "high",
            "tags": tag,
            "files": file,
            **vouching,
        },
    )
    write.refuse_blank(memory)
    done = write.write_new(context, memory, repeats="refuse", commit=commit, dry_run=dry_run)
    if not category and not done.duplicate_of:
        context.notes.append(f"filed as {memory.category}; --category takes another")
    _note_anchors(context, memory, done)
    return done


def supersede(
    context: Context,
    old: str,
    title: str,
    *,
    type: Literal["", "decision", "semantic", "episodic", "state"] = "",
    **options: Unpack[DraftOptions],
) -> Written:
    """Correct a memory: write a new one that takes its place. The old file keeps every byte.

    Type, category, scope and what it is found by (tags, files, aliases, trigger phrases, domain
    and the like) are those of the old memory unless they are given, and a pinned one stays pinned.
    Two heads of a fork are joined with --supersedes OTHER.

    Example:
        memtool supersede dec-2026-02-22-keep-sessions-in-redis "Keep sessions in Postgres" --edit

    Args:
        old: the memory to replace, by its id or words of it; nothing may supersede it yet
        title: one line that says what holds now
        type: what kind of memory, by default that of the old one
        supersedes: id of another memory that it replaces as well; may be repeated
        id: the id of the new memory, instead of a made one
        commit: commit just this file, with the trailers Memory-Id and Supersedes
    """
    dry_run = options.get("dry_run", False)
    write.prepare(context, dry_run=dry_run, begins=False)
    tree = write.current(context, dry_run=dry_run)
    ids = write.replaceable(tree, (old, *options.get("supersedes", ())))
    replaced = tree[ids[0]].memory
    memory = _drafted(context, type or replaced.type, title, options, ids, replaced)
    done = _submitted(context, memory, options)
    still_open = "" if memory.proposes else resolve.open_fork(tree.lineage, done.id, ids)
    context.notes += filter(None, [still_open])
    return done


def _drafted(
    context: Context,
    type_: str,
    title: str,
    options: DraftOptions,
    supersedes: tuple[str, ...],
    replaced: Memory | None = None,
) -> Memory:
    """Return the memory that is to be written; one that replaces another inherits from it."""
    vouching, quoted = draft.vouched(
        context, options.get("said_by_user", ""), options.get("source", ())
    )
    inherited: Fields = {}
    if replaced is not None:
        inherited = {key: value for key, value in replaced.fields.items() if key in INHERITED}
        if not context.is_global:
            inherited.pop("scope", None)  # one of old, which has no effect in a project
        if type_ == replaced.type:
            inherited["category"] = replaced.text("category")
        if replaced.status == "pinned" and (quoted or not context.caller.agent):
            vouching["status"] = "pinned"
    importance = options.get("importance")
    given: Fields = vouching | {
        "id": options.get("id", ""),
        "category": options.get("category", ""),
        "confidence": options.get("confidence", ""),
        "tags": options.get("tag", ()),
        "files": options.get("file", ()),
        "supersedes": supersedes,
        "importance": "" if importance is None else f"{importance:g}",
        "valid_through": options.get("valid_through", ""),
    }
    return draft.draft(
        context,
        type_,
        title,
        body=_filters.body_text(options.get("body", "")),
        section=(*options.get("section", ()), *quoted),
        extra=options.get("set", ()),
        fields=inherited | {key: value for key, value in given.items() if value},
    )


def _submitted(context: Context, memory: Memory, options: DraftOptions) -> Written:
    """Write a draft, and rebuild the digests that quote what it supersedes."""
    commit, dry_run = options.get("commit", False), options.get("dry_run", False)
    done = draft.submit(
        context,
        memory,
        has_own_id=bool(options.get("id")),
        edit=options.get("edit", False),
        commit=commit,
        dry_run=dry_run,
    )
    if memory.proposes:
        olds = ", ".join(memory.proposes)
        context.notes.append(
            f"it proposes to replace {olds}, which holds until memtool confirm {done.id}"
        )
    if memory.replaces:
        _features.follow_end(context, memory.replaces, commit=commit, dry_run=dry_run)
    return done


def _note_anchors(context: Context, memory: Memory, done: Written) -> None:
    """Say how drift could notice that a memory no longer fits the files that it names."""
    offered = "" if done.duplicate_of else draft.proposed_anchors(context, memory)
    if offered:
        context.notes.append(
            f"drift would see the end of its files only; it checks {offered} as well"
        )
