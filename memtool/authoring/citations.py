"""Citations: what a new memory cites has to be there, and to hold.

A claim never changes, so a wrong source, path or premise is refused before it is written. The error
names what is near, or what took the place of a premise. The user may keep a citation as it is.

Global memories apply to all projects: their files and commits may be those of any repository, and
are not looked up.
"""

from __future__ import annotations

import posixpath

from memtool.authoring import write
from memtool.errors import MemtoolError
from memtool.memory import ids, short_ids
from memtool.memory.changes import id_from_path
from memtool.memory.fields import RELATIONS, SETTLED
from memtool.memory.premises import ENDED, MEMORY, MISSING, WITHOUT, describe_fault
from memtool.memory.schema import (
    find_lines_fault,
    find_source_fault,
    is_id,
    is_inside,
    is_line,
    parse_source,
)
from memtool.redaction.find import build_allowlist, clean_text
from memtool.search.unsettled import Unsettled
from memtool.store import named_paths
from memtool.value import Value, format_count

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from memtool.memory.memory import Fields, Memory
    from memtool.memory.schema import Source
    from memtool.store.context import Context
    from memtool.store.history import PathContent
    from memtool.store.repository import Repository
    from memtool.store.sources import Resolution
    from memtool.store.tree import Tree

    CitedSource = tuple[int, str, Source]
    """The number of a memory, one of its sources as a text, and the same parsed."""
    NumberedFault = tuple[int, "Fault"]

BROKEN_LINK, BROKEN_SOURCE, NO_SUCH_FILE = "broken-link", "broken-source", "no-such-file"
"""The codes of what is not there, as in `memtool check`."""
MAX_REMEDIES = 3
"""Bad citations of one memory for which an error has a hint."""
_KEEP = "to write it as given: add --keep-citation"
_FROM_THE_TOP = "use the path from the top of the repository, as git ls-files prints it"
_OPTIONS = {"source": "--source ", "files": "--file "}
"""The option that writes an item of a key; any other key has `--set KEY=`."""


class Fault(Value):
    """A citation that leads nowhere, or to a memory that no longer holds.

    `hint` is what to do. If `path` is not empty, it is not there, and the hint may be replaced by
    a path that is near: one of `commit`, or else of the worktree. `causes` are what a memory is
    settled on that keeps the citation. A fault that is not refused is only noted.
    """

    key: str
    item: str
    code: str
    message: str
    hint: str = ""
    path: str = ""
    commit: str = ""
    causes: tuple[str, ...] = ()
    is_refused: bool = True


def check(
    context: Context,
    memory: Memory,
    *,
    is_kept: bool,
    inherited: Collection[str] = (),
    dry_run: bool = False,
) -> Memory:
    """Return a new memory with whole ids in its citations, once they are found to be good.

    With `is_kept` a bad one is noted, and the memory is settled on what became of its premises.
    `inherited` are files that nobody typed: a correction has them from the memory that it corrects.

    Raises:
        MemtoolError: a short id is ambiguous, or a citation is bad. What is not valid is left to
            `write.validate`.
    """
    tree, (memory,), (faults,) = _look_up(context, [memory], dry_run=dry_run)
    faults = [
        fault.replace(is_refused=False)
        if fault.key == "files" and fault.item in inherited
        else fault
        for fault in faults
    ]
    return _settle(context, tree, memory, faults, is_kept=is_kept)


def check_together(
    context: Context, memories: Sequence[Memory], *, is_kept: bool, dry_run: bool
) -> list[Memory]:
    """Check several new memories, as `check` does for one; they may cite each other.

    Raises:
        MemtoolError: one cannot be written; the message has its number.
    """
    tree, memories, faults = _look_up(context, memories, dry_run=dry_run)
    checked = []
    for number, (memory, own) in enumerate(zip(memories, faults, strict=True), 1):
        try:
            checked.append(_settle(context, tree, memory, own, is_kept=is_kept))
        except MemtoolError as error:
            raise write.with_number(error, number) from None
    return checked


def cites_the_same(memory: Memory, other: Memory) -> bool:
    """Return whether two memories cite the same sources, files and memories."""
    return all(memory.items(key) == other.items(key) for key in ("source", "files", *RELATIONS))


def find_faults(context: Context, memories: Sequence[Memory]) -> list[list[Fault]]:
    """Return the paths, lines and commits of each memory that do not exist.

    Many memories cost a few git processes together.
    """
    faults: list[list[Fault]] = [[] for _memory in memories]
    if not context.is_global:
        for number, fault in _find_lost(context.repository, memories):
            faults[number].append(fault)
    return faults


def _look_up(
    context: Context, memories: Sequence[Memory], *, dry_run: bool
) -> tuple[Tree | None, Sequence[Memory], list[list[Fault]]]:
    """Return memories with whole ids, and the faults of each; the tree if they name memories."""
    tree = None
    if any(map(_names_memories, memories)):
        tree = write.open_current_tree(context, dry_run=dry_run)
        memories = [_with_whole_ids(memory, tree) for memory in memories]
    faults = find_faults(context, memories)
    if tree is not None:
        new_ids = {memory.id for memory in memories}
        for memory, own in zip(memories, faults, strict=True):
            own.extend(_find_premise_faults(context, tree, memory, new_ids))
    return tree, memories, faults


def _settle(
    context: Context, tree: Tree | None, memory: Memory, faults: Sequence[Fault], *, is_kept: bool
) -> Memory:
    """Note the faults of a memory, and settle it on those that it keeps, or refuse it."""
    refused = [fault for fault in faults if fault.is_refused]
    if refused and not is_kept:
        raise _build_refusal(context, tree, refused)
    allowed = build_allowlist(context.settings)
    notes = [
        clean_text(fault.message, allowed) + "; it is kept as given" * fault.is_refused
        for fault in faults
    ]
    context.notes += [note for note in notes if note not in context.notes]
    causes = [cause for fault in faults for cause in fault.causes]
    settled = tuple(dict.fromkeys((*memory.items(SETTLED), *causes)))
    return memory.with_fields(**{SETTLED: settled}) if causes else memory


def _build_refusal(context: Context, tree: Tree | None, faults: Sequence[Fault]) -> MemtoolError:
    """Return the error for bad citations: what is wrong, and what to cite instead."""
    hints = [
        line
        for fault in faults[:MAX_REMEDIES]
        for line in (_suggest_near(context, tree, fault) or fault.hint).splitlines()
    ]
    message = faults[0].message
    if faults[1:]:
        lines = "".join(f"\n  {fault.message}" for fault in faults)
        message = f"cannot write this: {len(faults)} of its citations do not hold:{lines}"
    allowed = build_allowlist(context.settings)
    hint = "\n".join(dict.fromkeys([*hints, _KEEP]))
    return MemtoolError(
        clean_text(message, allowed), hint=clean_text(hint, allowed), code=faults[0].code
    )


def _suggest_near(context: Context, tree: Tree | None, fault: Fault) -> str:
    """Return a hint with what is near a path or an id that is not there; empty if nothing is."""
    near = mark = ""
    if fault.path:
        git = context.repository.git
        paths = (
            git.names("ls-tree", "-r", "--name-only", "--full-tree", "-z", fault.commit)
            if fault.commit
            else named_paths.list_worktree_files(context.repository)
        )
        near = named_paths.find_nearest(fault.path, paths)
        source = parse_source(fault.item)
        mark = "file:" * (fault.key == "source")
        near += f"@{source.commit}" if near and fault.commit else ""
    elif fault.code == BROKEN_LINK and tree is not None:
        mark = MEMORY * (fault.key == "source")
        near = _find_near_id(fault.item.removeprefix(MEMORY), tree)
    return f"did you mean {_format_option(fault.key, mark + near)}?" if near else ""


def _find_near_id(wanted: str, tree: Tree) -> str:
    """Return the id that is most like a mistyped one, whole or short; empty if none is like it."""
    import difflib  # needed for a wrong id only

    if len(wanted) <= short_ids.MAX_WHOLE_CHARS:
        by_short = {tree.short_ids.shorten(id_): id_ for id_ in tree.ids}
        near = difflib.get_close_matches(wanted, by_short, n=1, cutoff=0.8)
        return by_short[near[0]] if near else ""
    return next(iter(ids.find_nearest(wanted, tree.ids, 1)), "")


def _format_option(key: str, item: str) -> str:
    return _OPTIONS.get(key, f"--set {key}=") + item


def _names_memories(memory: Memory) -> bool:
    is_cited = any(item.startswith(MEMORY) for item in memory.items("source"))
    return is_cited or any(memory.items(key) for key in RELATIONS[1:])


def _with_whole_ids(memory: Memory, tree: Tree) -> Memory:
    """Return a memory with whole ids in sources and relations; `supersedes` has them already."""
    changed: Fields = {}
    for key in ("source", *RELATIONS[1:]):
        mark = MEMORY * (key == "source")
        before = memory.items(key)
        items = [
            mark + _find_whole_id(item.removeprefix(mark), tree) if item.startswith(mark) else item
            for item in before
        ]
        if (*items,) != before:
            changed[key] = tuple(dict.fromkeys(items))
    return memory.with_fields(**changed)


def _find_whole_id(named: str, tree: Tree) -> str:
    """Return the id that a text is the short form or a citation of, and any other text as it is."""
    id_ = ids.without_commit(named)
    if id_ in tree:
        return id_
    matches = short_ids.find_begun(id_, tree.ids)
    is_short = bool(short_ids.find_short(id_, matches))
    if is_short or (len(matches) == 1 and tree.short_ids.shorten(matches[0]) == id_):
        return tree.find(named).id  # of two that share a short id, the commit tells which
    return named


def _find_lost(repository: Repository, memories: Sequence[Memory]) -> Iterator[NumberedFault]:
    """Yield what memories name in the worktree and in commits that is not there."""
    cited = [
        (number, text, source)
        for number, memory in enumerate(memories)
        for text in memory.items("source")
        if is_line(text) and not (find_source_fault(text) or find_lines_fault(text))
        if (source := parse_source(text)).kind == "file" or source.commit
    ]
    here = [row for row in cited if not row[2].commit]
    in_commits = [row for row in cited if row[2].commit]
    files = [
        (number, path)
        for number, memory in enumerate(memories)
        for path in memory.items("files")
        if is_line(path) and is_inside(path)
    ]
    if here or files:
        yield from _find_lost_paths(repository, here, files)
    if in_commits:
        yield from _find_lost_commits(repository, in_commits)


def _find_lost_paths(
    repository: Repository, sources: Sequence[CitedSource], files: Sequence[tuple[int, str]]
) -> Iterator[NumberedFault]:
    """Yield the sources and files that the worktree does not have."""
    named = {path for _number, path in files} | {source.target for *_row, source in sources}
    present = named_paths.find_present(repository, named, with_worktree=True)
    globs = [name for name in named - present if named_paths.is_glob(name)]
    present |= named_paths.find_untracked(repository, globs)
    for number, text, source in sources:
        if source.target not in present:
            message = f"source: {text} does not exist"
            fault = Fault("source", text, BROKEN_SOURCE, message, _FROM_THE_TOP, source.target)
            yield number, fault
        elif source.lines:
            from memtool.store.evidence import read_from_disk  # few sources name lines

            content = read_from_disk(repository.top, posixpath.normpath(source.target))
            yield from _find_lost_lines(number, text, source, content)
    for number, path in files:
        if path not in present:
            message = f"files: {path} does not match any file"
            fault = Fault("files", path, NO_SUCH_FILE, message, _FROM_THE_TOP, path)
            yield number, fault.replace(is_refused=not named_paths.is_glob(path))


def _find_lost_commits(
    repository: Repository, sources: Sequence[CitedSource]
) -> Iterator[NumberedFault]:
    """Yield the sources whose commit is not here, or does not have their path or lines."""
    from memtool.store.history import MAX_FILE_BYTES, PathContent
    from memtool.store.sources import MISSING, OK, Citation, resolve

    resolved = resolve(repository, {Citation(source) for *_row, source in sources})
    states = [resolved[Citation(source)] for *_row, source in sources]
    oids = sorted(
        {
            state.oid
            for (*_row, source), state in zip(sources, states, strict=True)
            if source.lines and state.status == OK and state.type == "blob"
        }
    )
    blobs = dict(zip(oids, repository.git.blobs(oids, MAX_FILE_BYTES), strict=True))
    for (number, text, source), state in zip(sources, states, strict=True):
        if not state.commit:
            yield number, _build_commit_fault(text, source, state)
        elif state.status == MISSING:
            message = f"source: {source.target} did not exist at commit {source.commit}"
            hint = f"git ls-tree -r --name-only {source.commit}"
            fault = Fault("source", text, BROKEN_SOURCE, message, hint, source.target)
            yield number, fault.replace(commit=state.commit)
        elif len(blobs.get(state.oid, b"")) <= MAX_FILE_BYTES and state.oid in blobs:
            content = PathContent("file", blobs[state.oid])
            yield from _find_lost_lines(number, text, source, content)


def _build_commit_fault(text: str, source: Source, state: Resolution) -> Fault:
    """Return the fault of a commit that is not here; a shallow or partial clone cannot tell."""
    from memtool.store.sources import AMBIGUOUS, MISSING, explain_absent

    why, hint = explain_absent(source.commit, state)
    message = f"source: commit {source.commit} {why}"
    is_refused = state.status == MISSING or state.type == AMBIGUOUS
    if not is_refused:
        message += "; this clone is shallow or partial, so check the id"
    return Fault("source", text, BROKEN_SOURCE, message, hint, is_refused=is_refused)


def _find_lost_lines(
    number: int, text: str, source: Source, content: PathContent | None
) -> Iterator[NumberedFault]:
    """Yield a source whose lines are beyond the end of its file. Links are not followed."""
    from memtool.store.evidence import split_rows

    if source.lines is None or content is None or content.kind not in ("file", "directory"):
        return
    rows = split_rows(content.data) if content.kind == "file" else []
    if source.lines[1] > len(rows):
        what = f"has only {format_count(len(rows), 'line')}"
        what = "is a directory" if content.kind == "directory" else what
        message = f"source: {text}: {source.target} {what}"
        at = f"@{source.commit}" if source.commit else ""
        hint = f"cite all of it: --source file:{source.target}{at}"
        yield number, Fault("source", text, BROKEN_SOURCE, message, hint)


def _find_premise_faults(
    context: Context, tree: Tree, memory: Memory, new_ids: Collection[str]
) -> Iterator[Fault]:
    """Yield what a memory rests on and should not. What it supersedes is no premise."""
    state = Unsettled(tree, context.clock.now)
    cited = [("source", text) for text in memory.items("source") if text.startswith(MEMORY)]
    cited += [("derived_from", id_) for id_ in memory.items("derived_from")]
    for key, item in cited:
        id_ = item.removeprefix(MEMORY)
        if id_ == memory.id:
            message = f"{key}: {item} is the memory itself"
            yield _build_premise_fault(key, item, message, "cite what it rests on instead")
        elif id_ in memory.supersedes or id_ in new_ids or not is_id(id_):
            continue
        elif not tree.lineage.is_head(id_):
            yield _build_superseded_fault(state, key, item)
        elif (why := state.find_fault(id_)) == MISSING:
            yield _build_link_fault(context, key, item)
        elif why:
            hint = "cite what holds"
            if why != ENDED:
                hint += f"\nif it holds after all: memtool restore {id_}"
            message = describe_fault(why, f"{key}: {item}")
            yield _build_premise_fault(key, item, message, hint, (WITHOUT + id_,))


def _build_premise_fault(
    key: str, item: str, message: str, hint: str, causes: tuple[str, ...] = ()
) -> Fault:
    return Fault(key=key, item=item, code="bad-premise", message=message, hint=hint, causes=causes)


def _build_link_fault(context: Context, key: str, item: str) -> Fault:
    """Return the fault of an id that no memory here has; global memories are not cited here."""
    id_ = item.removeprefix(MEMORY)
    causes = (WITHOUT + id_,)
    own = context.global_context
    if own is not None:
        listed = [id_from_path(entry.path) for entry in own.snapshot().entries]
        if id_ in listed or short_ids.find_short(id_, listed):
            message = f"{key}: {item} is one of your global memories, which nobody else has"
            hint = f"state it here too, and cite that: memtool --global show {id_}"
            return _build_premise_fault(key, item, message, hint, causes)
    message = f"{key}: {item} names a memory that does not exist"
    return Fault(key, item, BROKEN_LINK, message, "memtool list", causes=causes)


def _build_superseded_fault(state: Unsettled, key: str, item: str) -> Fault:
    """Return the fault of a premise that others replace, with the one to cite instead."""
    tree, id_ = state.tree, item.removeprefix(MEMORY)
    heads = tree.lineage.find_heads(id_)
    message = f"{key}: {item} is superseded"
    if not heads:
        message += " in a circle"
        causes: tuple[str, ...] = (WITHOUT + id_,)
        return _build_premise_fault(key, item, message, "memtool conflicts", causes)
    title = f" by {write.quote_memory(tree[heads[0]].memory)}"
    message += title if len(heads) == 1 else f" by:{tree.list_titles(heads)}"
    newest = max(heads, key=lambda head: (tree[head].memory.timestamp, head))
    option = _format_option(key, MEMORY * (key == "source") + newest)
    hint = f"cite what holds now: {option}" + "\nmemtool conflicts" * (len(heads) > 1)
    causes = tuple(MEMORY + head for head in heads)
    causes += tuple(WITHOUT + head for head in heads if state.find_fault(head))
    return _build_premise_fault(key, item, message, hint, causes)
