"""The verbs that write a memory: `memtool new`, `remember`, its short form, and `supersede`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypedDict, Unpack

from memtool.authoring import citations, draft, resolve, write
from memtool.authoring.classification import classify
from memtool.authoring.write import WriteResult
from memtool.commands import _features, _filters, _settling
from memtool.commands._render import format_written as render
from memtool.errors import MemtoolError
from memtool.memory.fields import FIELDS
from memtool.memory.memory import Fields, Memory, first_sentence
from memtool.search.unsettled import Unsettled
from memtool.store.context import Context
from memtool.store.tree import Tree

__all__ = ["new", "remember", "render", "supersede"]

INHERITED_KEYS = {field.name for field in FIELDS if field.group == "retrieval"} | {"privacy"}
"""Keys that a new memory takes over from the old one: how it is found, and its privacy."""


class DraftOptions(TypedDict, total=False):
    """What a new memory contains in addition to type and title, and how it is written.

    Args:
        body: the text, or - to read it from stdin
        section: a section as NAME=TEXT; may be repeated
        category: a category (memtool help categories)
        tag: a keyword; may be repeated
        file: a file or glob that it governs; may be repeated
        source: commit:SHA, file:PATH#L1, url:…; may be repeated
        confidence: how sure you are: low, medium (default) or high
        importance: 0 to 1
        valid_through: the last day or moment on which it holds
        supersedes: a memory that it replaces; may be repeated
        set: a key (memtool help fields); may be repeated
        said_by_user: the user's own words, quoted
        id: the id, instead of a new one
        edit: open it in your editor first
        keep_citation: keep bad citations
        commit: commit this file only
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
    keep_citation: bool
    commit: bool
    dry_run: bool


def new(
    context: Context,
    type: Literal["decision", "semantic", "episodic", "state"],
    title: str,
    **options: Unpack[DraftOptions],
) -> WriteResult:
    """Record a decision, a fact, a failure or the state of the work.

    Types:
        decision   a choice between alternatives, with its reason
        semantic   a fact, rule or preference that stays true
        episodic   what happened: a failure, its cause and its fix
        state      where the work stands, and what comes next

    It prints the path of the new file. Without a text, or with --edit, your editor opens with the
    template of the type.

    What a memory says already is not written again. What is nearly the same is refused, unless you
    name that memory with --supersedes or --set related_to=ID.

    Example:
        memtool new decision "Keep sessions in Redis" --body "Sessions live in Redis." --tag auth
        memtool new episodic "Expired holds blocked seats" --section "Fix=Release them hourly."

    Args:
        type: decision, semantic, episodic or state
        title: the claim in one line
    """
    write.prepare(context, dry_run=options.get("dry_run", False))
    older = options.get("supersedes", ())
    ids = write.find_replaceable(context.tree(), older) if older else ()
    memory = _build_draft(context, type, title, options, ids)
    done = _submit_draft(context, memory, options)
    if not memory.items("tags") and not done.duplicate_of:
        fitting_tags = draft.propose_tags(context, memory)
        if fitting_tags:
            dry_run = options.get("dry_run")
            how = "--tag TAG" if dry_run else "tags: in its file, or --tag TAG the next time"
            context.notes.append(
                f"matching tags of other memories: {', '.join(fitting_tags)} ({how})"
            )
    _note_anchors(context, memory, done)
    return done


def remember(
    context: Context,
    *text: str,
    category: str = "",
    tag: tuple[str, ...] = (),
    file: tuple[str, ...] = (),
    said_by_user: str = "",
    keep_citation: bool = False,
    commit: bool = False,
    dry_run: bool = False,
) -> WriteResult:
    """Keep what the user stated, as a confirmed fact in their own words.

    The category follows from the words: what must not be done to a file becomes a warning. What an
    agent writes without --said-by-user is a candidate. A fact that a memory states already is not
    written again.

    Example:
        memtool remember "Deploys run on Tuesdays only, never before a holiday."
        memtool remember "Never log addresses of passengers." --file app/log.py

    Args:
        text: what to remember, or - to read it from stdin
        category: a category; by default, the words decide
        tag: a keyword; may be repeated
        file: a file or glob that it is about; may be repeated
        said_by_user: the user's own words, quoted
        keep_citation: keep bad citations
        commit: commit this file only
        dry_run: print the file instead of writing it
    """
    write.prepare(context, dry_run=dry_run)
    words = _filters.read_body(" ".join(text)).strip()
    if not words:
        raise MemtoolError(
            "cannot remember: the text is missing",
            hint='memtool remember "Deploys run on Tuesdays only."',
        )
    spoken = () if context.caller.agent else (f"human:{write.find_author(context)}",)
    vouching, quoted = draft.vouching_fields(context, said_by_user, spoken)
    memory = draft.build_draft(
        context,
        "semantic",
        first_sentence(words),
        body=words,
        section=quoted,
        fields={
            "category": category or classify(words, file),
            "confidence": "medium" if context.caller.agent and not quoted else "high",
            "tags": tag,
            "files": file,
            **vouching,
        },
    )
    write.refuse_blank(memory)
    memory = citations.check(context, memory, is_kept=keep_citation, dry_run=dry_run)
    done = write.write_new(context, memory, repeats="refuse", commit=commit, dry_run=dry_run)
    _note_anchors(context, memory, done)
    return done


def supersede(
    context: Context,
    old: str,
    title: str,
    *,
    type: Literal["", "decision", "semantic", "episodic", "state"] = "",
    with_conclusions: bool = False,
    **options: Unpack[DraftOptions],
) -> WriteResult:
    """Correct a memory: write a new one that replaces it.

    The old one stays readable. Type, category, tags, files and the like carry over unless you name
    others, and a pinned memory stays pinned. To join two memories that replace the same one, name
    the second with --supersedes.

    What rests on the old memory is unsettled then. If the new one only says the same in other
    words, --with-conclusions settles that in the same commit.

    Example:
        memtool supersede dec-2g54 "Hold a seat for 25 minutes" --body "Banks are slow."
        memtool supersede dec-2g54 "Hold a seat for 25 minutes" --edit --commit

    Args:
        old: the memory to replace, by id or words; nothing may supersede it yet
        title: what holds now, in one line
        type: decision, semantic, episodic or state
        with_conclusions: only the words change: what rests on the old one holds
        supersedes: another memory that it replaces; may be repeated
        id: the id, instead of a new one
        commit: commit this file only
    """
    dry_run = options.get("dry_run", False)
    write.prepare(context, dry_run=dry_run, begins=False)
    tree = write.open_current_tree(context, dry_run=dry_run)
    ids = write.find_replaceable(tree, (old, *options.get("supersedes", ())))
    replaced = tree[ids[0]].memory
    memory = _build_draft(context, type or replaced.type, title, options, ids, replaced)
    inherited = () if options.get("file") else replaced.items("files")
    settles = _find_settled(context, tree, memory) if with_conclusions else ()
    done = _submit_draft(context, memory, options, inherited, settles)
    if with_conclusions:
        context.notes.append(_settling.describe_settled(settles, ids, dry_run=dry_run))
    elif memory.replaces and not dry_run:
        _settling.note_reach(context, ids)
    unsettled = Unsettled(tree, context.clock.now)
    lost_premises = _settling.describe_lost_premises(unsettled, memory, ids)
    still_open = "" if memory.proposes else resolve.open_fork(tree.lineage, done.id, ids)
    context.notes += filter(None, [lost_premises, still_open])
    return done


def _build_draft(
    context: Context,
    type_: str,
    title: str,
    options: DraftOptions,
    supersedes: tuple[str, ...],
    replaced: Memory | None = None,
) -> Memory:
    """Build the memory to write; it inherits from the memory that it replaces."""
    vouching, quoted = draft.vouching_fields(
        context, options.get("said_by_user", ""), options.get("source", ())
    )
    inherited: Fields = {}
    if replaced is not None:
        inherited = {key: value for key, value in replaced.fields.items() if key in INHERITED_KEYS}
        if not context.is_global:
            inherited.pop("scope", None)  # older versions wrote it; no effect in a project
        if type_ == replaced.type:
            inherited["category"] = replaced.text("category")
        if replaced.status == "pinned" and (quoted or not context.caller.agent):
            vouching["status"] = "pinned"
    importance = options.get("importance")
    own_fields: Fields = vouching | {
        "id": options.get("id", ""),
        "category": options.get("category", ""),
        "confidence": options.get("confidence", ""),
        "tags": options.get("tag", ()),
        "files": options.get("file", ()),
        "supersedes": supersedes,
        "importance": "" if importance is None else f"{importance:g}",
        "valid_through": options.get("valid_through", ""),
    }
    return draft.build_draft(
        context,
        type_,
        title,
        body=_filters.read_body(options.get("body", "")),
        section=(*options.get("section", ()), *quoted),
        extra=options.get("set", ()),
        fields=inherited | {key: value for key, value in own_fields.items() if value},
    )


def _find_settled(context: Context, tree: Tree, memory: Memory) -> list[str]:
    """Return what rests on the memories that a draft replaces, to be settled with it.

    Raises:
        MemtoolError: the draft only proposes to replace them.
    """
    if memory.proposes:
        raise MemtoolError(
            f"cannot settle what rests on {memory.proposes[0]}: a candidate replaces nothing, and "
            "only the user can confirm it",
            hint="leave out --with-conclusions",
            code="agent",
        )
    return _settling.find_conclusions(Unsettled(tree, context.clock.now), memory.supersedes)


def _submit_draft(
    context: Context,
    memory: Memory,
    options: DraftOptions,
    inherited: tuple[str, ...] = (),
    settles: Sequence[str] = (),
) -> WriteResult:
    """Write a draft, and rebuild the digests that quote superseded memories.

    `inherited` are the files that it has from the memory that it corrects; `settles` are memories
    that accept it as a cause.
    """
    commit, dry_run = options.get("commit", False), options.get("dry_run", False)
    done = draft.submit_draft(
        context,
        memory,
        has_own_id=bool(options.get("id")),
        edit=options.get("edit", False),
        commit=commit,
        dry_run=dry_run,
        is_kept=options.get("keep_citation", False),
        inherited=inherited,
        settles=settles,
    )
    if memory.proposes:
        olds = ", ".join(memory.proposes)
        context.notes.append(f"it proposes to replace {olds}; to do it: memtool confirm {done.id}")
    if memory.replaces:
        _features.follow_end(context, memory.replaces, commit=commit, dry_run=dry_run)
    return done


def _note_anchors(context: Context, memory: Memory, done: WriteResult) -> None:
    """Suggest identifiers or lines by which drift could detect changes in the named files."""
    anchors = "" if done.duplicate_of else draft.propose_anchors(context, memory)
    if anchors:
        context.notes.append(
            f"drift only notices when its files are removed; name {anchors}, which it checks too"
        )
