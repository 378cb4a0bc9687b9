"""Undo: find the newest step of a memory's lifecycle in git, and reverse it.

A step is a confirmation, a settling, a change of status or tags, a supersession, or the acceptance
of a contradiction. Changed keys get their old values; an acceptance is reversed on all sides.

A memory that replaced others is removed if no other branch or clone can have it and nothing names
it, except memories that accepted it as a cause: they no longer do. Its removal is a commit of its
own, and the memories it replaced are heads again. If it was in no commit, its bytes stay readable
as a blob. If others may have it, nothing is removed: a new memory repeats the text of the old one,
and replaces it. If it replaced several, no single memory can do that, and the error suggests `git
revert` instead.

A step that was undone, and its undo, no longer count: undoing again goes further back.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager

from memtool.authoring import resolve, write
from memtool.authoring.tree import read_bytes, refuse_dirty
from memtool.errors import MemtoolError
from memtool.memory import changes
from memtool.memory.changes import Version, id_from_path
from memtool.memory.fields import SETTLED
from memtool.memory.memory import Fields, FieldValue, Memory, to_text
from memtool.memory.premises import MEMORY, accept
from memtool.memory.trust import SHORT_ID_DIGITS
from memtool.store import files, usage_log, versions
from memtool.store.commits import commit_files, discard
from memtool.store.context import Context
from memtool.store.git import Touch
from memtool.store.history import History, resolve_tip
from memtool.store.messages import (
    MEMORY_ID,
    REASON,
    UNDOES,
    filter_trailers,
    find_values,
    name_memories,
)
from memtool.store.tree import Record, Tree
from memtool.store.versions import list_stamps
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal

    How = Literal["changed", "removed", "discarded", "superseded"]

LIFECYCLE = ("status", "checked", "deleted", "retired", SETTLED)
"""The keys that a step may change."""
ACCEPTS = "conflicts_accepted"
"""The key that names the other sides of an accepted contradiction."""
TAGS = "tags"
SUPERSEDED, ACCEPTED, TAGGED = "superseded", "accepted", "tagged"
STEPS = frozenset(
    {
        "confirmed",
        "pinned",
        "unpinned",
        "deprecated",
        "archived",
        "forgotten",
        "restored",
        "settled",
    }
)
"""Kinds of changes that are steps, in addition to `superseded`, `accepted` and `tagged`."""


class Step(Value):
    """A step in the life of a memory: its `kind`, and its commit, empty if not committed yet.

    `fields` are the previous values of the changed keys, None for a key that did not exist. A
    supersession has a `successor` instead; `is_whole` means that its file has not changed since the
    step created it. An acceptance has `sides` instead: the ids that each side began to name.
    """

    kind: str
    commit: str
    fields: dict[str, FieldValue | None]
    successor: str = ""
    is_whole: bool = False
    sides: tuple[tuple[str, tuple[str, ...]], ...] = ()


class Undone(Value):
    """What was taken back, and how.

    `how` is `changed` (keys of the memory got their old values), `removed` (a commit removes the
    memory that replaced it), `discarded` (that memory was in no commit) or `superseded` (a new
    memory replaces that one, for the `reason`). `undoes` is the commit of the step, empty if it
    was in none. `blob` has the bytes of a discarded memory. `also` are other memories for which the
    same step was undone, `paths` the files that were changed or removed.
    """

    id: str
    step: str
    how: How
    undoes: str
    path: str
    changes: dict[str, tuple[str, str]]
    successor: str = ""
    reason: str = ""
    blob: str = ""
    commit: str | None = None
    dry_run: bool = False
    also: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()


def undo(context: Context, wanted: str, why: str, *, commit: bool, dry_run: bool) -> Undone:
    """Undo the newest step of a memory.

    Raises:
        MemtoolError: the memory or a step does not exist, the memory that replaced it cannot be
            undone alone, or disk or git refuse. Then nothing was changed.
    """
    write.prepare(context, begins=False, dry_run=dry_run)
    reason = write.to_one_line(context, why)
    tree = context.tree()
    record = tree.find(wanted)
    step = find_newest_step(context, tree, record, commit=commit and not dry_run)
    if step.kind == SUPERSEDED:
        return _undo_supersession(
            context, tree, record, step, reason, commit=commit, dry_run=dry_run
        )
    if step.kind == ACCEPTED:
        return _undo_acceptance(context, tree, record, step, reason, commit=commit, dry_run=dry_run)
    done = write.change(
        context,
        record.id,
        lambda _memory: step.fields,
        "undo",
        commit=commit and bool(step.commit),
        dry_run=dry_run,
        reason=reason,
        trailers={UNDOES: step.commit},
    )
    return Undone(
        id=record.id,
        step=step.kind,
        how="changed",
        undoes=step.commit,
        path=done.path,
        changes=done.changes,
        commit=done.commit,
        dry_run=dry_run,
        paths=() if dry_run else (done.path,),
    )


def _undo_acceptance(
    context: Context,
    tree: Tree,
    record: Record,
    step: Step,
    why: str,
    *,
    commit: bool,
    dry_run: bool,
) -> Undone:
    """Remove the acceptance from all sides of a contradiction, in one commit."""
    sides = dict(step.sides)
    ids = [id_ for id_ in sides if id_ in tree]

    def earlier_acceptance(memory: Memory) -> dict[str, FieldValue | None]:
        remaining = (id_ for id_ in memory.items(ACCEPTS) if id_ not in sides[memory.id])
        return {ACCEPTS: tuple(remaining) or None}

    own, *partners = write.change_all(
        context, ids, earlier_acceptance, "undo", dry_run=dry_run, reason=why
    ).memories
    done = None
    if commit and step.commit and not dry_run:
        trailers = {MEMORY_ID: ", ".join(ids), UNDOES: step.commit}
        trailers |= {REASON: why} if why else {}
        paths = [change.path for change in (own, *partners)]
        line = write.summarize("undo", record.memory)
        done = commit_files(context, paths, line, trailers)
    return Undone(
        id=record.id,
        step=ACCEPTED,
        how="changed",
        undoes=step.commit,
        path=own.path,
        changes=own.changes,
        commit=done,
        dry_run=dry_run,
        also=tuple(ids[1:]),
        paths=() if dry_run else tuple(change.path for change in (own, *partners)),
    )


def find_newest_step(context: Context, tree: Tree, record: Record, *, commit: bool) -> Step:
    """Return the newest step of a memory that is still in effect.

    With `commit`, a step that was undone in the worktree only is not skipped for an older one: the
    undo has to be committed first.

    Raises:
        MemtoolError: there is none in the available history.
    """
    successors = tree.lineage.superseded_by.get(record.id, ())
    head = resolve_tip(context.repository)
    stored = context.snapshot(head) if head else None
    before, after = versions.find_uncommitted(tree, stored, context.settings.categories)
    step = _find_step(record, successors, before, after)
    pending = _find_taken_back(record, before, after)
    if step is not None and not (commit and _is_undone(context, head, record, before)):
        return step
    if not (commit and pending):
        changed = {version.id for version in after}
        step, is_cut_off = _find_committed_step(context, head, record, successors, changed)
        if step is not None:
            return step
    if pending:
        raise MemtoolError(
            f"cannot undo: the last change of {write.quote_memory(record.memory)} is already "
            "undone, but not committed",
            hint=f'git commit -m "MESSAGE" -- {" ".join(pending)}',
            code="dirty",
        )
    if not (head and context.repository.git.ls_tree(head, record.path)):
        raise MemtoolError(
            f"cannot undo: {write.quote_memory(record.memory)} was never committed",
            hint=f"memtool show {record.id}",
            code="no-step",
        )
    raise MemtoolError(
        f"cannot undo: {write.quote_memory(record.memory)} has not changed since it was written"
        + (", as far as this shallow clone shows" if is_cut_off else ""),
        hint="git fetch --unshallow" if is_cut_off else _alternative_command(record),
        code="no-step",
    )


def _find_committed_step(
    context: Context,
    head: str,
    record: Record,
    successors: Sequence[str],
    changed: Collection[str],
) -> tuple[Step | None, bool]:
    """Return the newest step in history that is in effect, and whether history is truncated.

    `changed` are the ids of memories that differ from HEAD.
    """
    names, later = {record.id, *successors}, set(changed)
    undone: set[str] = set()
    with History(context.repository) as history:
        for id_, touches in history.walk(head, context.directory) if head else ():
            mine = [touch for touch in touches if id_from_path(touch.path) in names]
            if not mine or id_ in history.boundary:
                continue
            newest = None
            undoes = find_values(filter_trailers(history.commit(id_).trailers, names), UNDOES)
            undone.update(undoes)
            if not (undoes or id_ in undone):
                newest = _find_step(record, successors, *_split_sides(context, mine))
                if newest is not None and newest.kind == ACCEPTED:  # at other memories as well
                    sides = [
                        touch for touch in touches if id_from_path(touch.path) in dict(newest.sides)
                    ]
                    newest = _find_step(record, successors, *_split_sides(context, sides))
            if newest is not None:
                is_whole = newest.is_whole and newest.successor not in later
                return newest.replace(commit=id_, is_whole=is_whole), False
            later |= {id_from_path(touch.path) for touch in mine}
        return None, bool(history.boundary)


def _is_undone(context: Context, head: str, record: Record, before: Sequence[Version]) -> bool:
    """Return whether the worktree has the keys from before the newest step at HEAD."""
    stored = next((version.memory for version in before if version.id == record.id), None)
    if stored is None:
        return False
    last, _is_cut_off = _find_committed_step(context, head, record.replace(memory=stored), (), ())
    now = record.memory.fields
    return (
        last is not None
        and bool(last.fields)
        and all(now.get(key) == value for key, value in last.fields.items())
    )


def _find_taken_back(
    record: Record, before: Sequence[Version], after: Sequence[Version]
) -> list[str]:
    """Return the files in which the worktree has undone a step of a memory at HEAD."""
    news = {version.id: version for version in after}
    paths = [
        version.path
        for version in before
        if record.id in _replaced_ids(version)
        and record.id not in _replaced_ids(news.get(version.id))
    ]
    keys = (*LIFECYCLE, ACCEPTS, TAGS)
    return paths + [
        version.path
        for version in before
        if version.id == record.id
        and version.memory is not None
        and any(version.memory.fields.get(key) != record.memory.fields.get(key) for key in keys)
    ]


def _alternative_command(record: Record) -> str:
    """Return the command to suggest for a memory without a step."""
    if record.memory.status == "deleted":
        return f"memtool restore {record.id}"
    if replaced := record.memory.items("supersedes"):
        return f"memtool undo {replaced[0]} takes back that it was replaced"
    return f'memtool forget {record.id} --reason "REASON" deletes it softly'


def _split_sides(
    context: Context, touches: Sequence[Touch]
) -> tuple[tuple[Version, ...], tuple[Version, ...]]:
    """Return the versions of files before a commit and after it."""
    read = versions.read_blobs(
        context.repository, list_stamps(touches), context.settings.categories
    )
    before = (read[touch.old_path, touch.old_oid] for touch in touches if touch.old_oid)
    return tuple(before), tuple(read[touch.path, touch.oid] for touch in touches if touch.oid)


def _find_step(
    record: Record,
    successors: Sequence[str],
    before: Sequence[Version],
    after: Sequence[Version],
) -> Step | None:
    """Return the step of a memory between two states, if it is still in effect."""
    olds = {version.id: version for version in before}
    news = {version.id: version for version in after}
    for id_ in successors:
        was, is_now = (_replaced_ids(side.get(id_)) for side in (olds, news))
        if record.id in is_now and record.id not in was:
            return Step(SUPERSEDED, "", {}, id_, id_ not in olds)
    if sides := _find_accepting(record, olds, news):
        return Step(ACCEPTED, "", {}, sides=tuple(sides.items()))
    old, new = olds.get(record.id), news.get(record.id)
    if old is None or new is None or old.memory is None or new.memory is None:
        return None
    kinds = [change.kind for change in changes.find_changes(old, new) if change.kind in STEPS]
    was_fields, now_fields = old.memory.fields, new.memory.fields
    keys = [key for key in LIFECYCLE if was_fields.get(key) != now_fields.get(key)]
    if not kinds and was_fields.get(TAGS) != now_fields.get(TAGS):
        kinds, keys = [TAGGED], [TAGS]
    is_in_force = all(record.memory.fields.get(key) == now_fields.get(key) for key in keys)
    if not (kinds and is_in_force):
        return None
    return Step(kinds[0], "", {key: was_fields.get(key) for key in keys})


def _find_accepting(
    record: Record, olds: Mapping[str, Version], news: Mapping[str, Version]
) -> dict[str, tuple[str, ...]]:
    """Return by id what each side of an acceptance began to accept; empty if there is none.

    The first side is the memory itself, with the ids that it still accepts. A side without versions
    in `olds` and `news` has no ids.
    """

    def accepted_ids(version: Version | None) -> tuple[str, ...]:
        return version.memory.items(ACCEPTS) if version and version.memory else ()

    def find_gained(id_: str) -> tuple[str, ...]:
        earlier = accepted_ids(olds.get(id_))
        return tuple(id_ for id_ in accepted_ids(news.get(id_)) if id_ not in earlier)

    now = record.memory.items(ACCEPTS)
    own = tuple(id_ for id_ in find_gained(record.id) if id_ in now) if record.id in olds else ()
    if not own:
        return {}
    ids = (record.id, *own)
    return {record.id: own} | {
        other: tuple(id_ for id_ in find_gained(other) if id_ in ids) for other in own
    }


def _replaced_ids(version: Version | None) -> tuple[str, ...]:
    """Return the ids that a version of a memory replaces."""
    return () if version is None or version.memory is None else version.memory.replaces


def _undo_supersession(
    context: Context,
    tree: Tree,
    record: Record,
    step: Step,
    why: str,
    *,
    commit: bool,
    dry_run: bool,
) -> Undone:
    """Undo that a memory replaced this one, and all others that it replaced."""
    new = tree[step.successor]
    _refuse_entangled(tree, record, new)
    reason = _find_reason_to_keep(context, tree, new, step)
    also = tuple(id_ for id_ in new.memory.supersedes if id_ != record.id)
    if reason and also:
        names = ", ".join((record.id, *also))
        bring = f"to get them back: git revert {step.commit[:SHORT_ID_DIGITS]}\n"
        raise MemtoolError(
            f"cannot undo: {new.id} replaced {names}, and {reason}",
            hint=f"{bring if step.is_whole and step.commit else ''}"
            f"memtool supersede {new.id} TITLE",
            code="several",
        )
    done = Undone(
        id=record.id,
        step=SUPERSEDED,
        how="removed" if step.commit else "discarded",
        undoes=step.commit,
        path=new.path,
        changes={},
        successor=new.id,
        reason=reason,
        dry_run=dry_run,
        also=also,
        paths=() if dry_run or reason else (new.path,),
    )
    if done.reason:
        settled = resolve.keep(
            context,
            record.memory,
            [new.id],
            why or f"{new.id} was taken back.",
            commit=commit,
            dry_run=dry_run,
        )
        return done.replace(
            how="superseded", path=settled.path, commit=settled.commit, paths=settled.paths
        )
    repository = context.repository
    cause = MEMORY + new.id
    accepting = [other for other in tree.records if cause in other.memory.items(SETTLED)]
    if not dry_run:
        done = done.replace(paths=(*done.paths, *(other.path for other in accepting)))
    with (
        usage_log.audit(context, "undo", record.id, new.id, detail=why, dry_run=dry_run),
        _unsettling(
            context, accepting, cause, is_clean=commit and bool(step.commit), dry_run=dry_run
        ) as changed,
    ):
        if dry_run:
            return done
        if not step.commit:
            data = read_bytes(repository.top, new.path) or b""
            blob = repository.git.run("hash-object", "-w", "--stdin", stdin=data).decode().strip()
            discard(repository, [new.path])
            return done.replace(blob=blob)
        if not commit:
            files.remove(repository.top, new.path)
            return done
        names = name_memories([record.id, *(other.id for other in accepting)])
        trailers = {MEMORY_ID: names, UNDOES: step.commit} | ({REASON: why} if why else {})
        line = write.summarize("undo", record.memory)
        made = commit_files(
            context, changed, line, trailers, removed=[new.path], leaves_removal=True
        )
        return done.replace(commit=made)


@contextmanager
def _unsettling(
    context: Context, accepting: Sequence[Record], cause: str, *, is_clean: bool, dry_run: bool
) -> Iterator[list[str]]:
    """Take a cause out of what memories accept; yield their paths. If the body fails, it is back.

    Raises:
        MemtoolError: with `is_clean` one of them has changes that are not committed.
    """
    paths = [record.path for record in accepting]
    ids = [record.id for record in accepting]
    if is_clean:
        refuse_dirty(context.repository, paths, "cannot undo what was settled with it")

    def without(memory: Memory) -> dict[str, FieldValue | None]:
        return {SETTLED: tuple(name for name in memory.items(SETTLED) if name != cause) or None}

    def again(memory: Memory) -> Fields:
        return {SETTLED: accept(memory, (cause,))}

    if paths:
        write.change_all(context, ids, without, "undo", dry_run=dry_run)
    try:
        yield paths
    except BaseException:
        if paths and not dry_run:
            write.change_all(context, ids, again, "undo")
        raise


def _refuse_entangled(tree: Tree, record: Record, new: Record) -> None:
    """Raise MemtoolError if a supersession cannot be undone alone."""
    lineage = tree.lineage
    newer = lineage.superseded_by.get(new.id, ())
    if newer:
        raise MemtoolError(
            f"cannot undo: {new.id}, which replaced {record.id}, is superseded by "
            f"{', '.join(newer)}",
            hint=f"memtool undo {new.id}\nmemtool supersede "
            f"{(lineage.find_heads(new.id) or newer)[0]} TITLE",
            code="not-a-head",
        )
    for old in dict.fromkeys((record.id, *new.memory.supersedes)):
        siblings = [id_ for id_ in lineage.superseded_by.get(old, ()) if id_ != new.id]
        if siblings:
            raise MemtoolError(
                f"cannot undo: {new.id} and {', '.join(siblings)} both replace {old}",
                hint=f'memtool resolve {new.id} {siblings[0]} --keep ID --reason "REASON"',
                code="fork",
            )


def _find_reason_to_keep(context: Context, tree: Tree, new: Record, step: Step) -> str:
    """Return why the replacing memory must stay, as a clause; empty if it may be removed."""
    for other in tree.records:
        if other.id != new.id and _names(other.memory.with_fields(**{SETTLED: None}), new.id):
            return f"{other.id} names it"
    if not step.is_whole:
        return "it was changed since it was written"
    if step.commit:
        git = context.repository.git
        branch = git.line("symbolic-ref", "--quiet", "HEAD", allowed=(0, 1))
        refs = git.line(
            "for-each-ref", f"--contains={step.commit}", "--format=%(refname) %(refname:short)"
        )
        for row in refs.splitlines():
            ref, _space, name = row.partition(" ")
            if ref != branch and not ref.endswith("/HEAD"):
                return f"{name} has it"
    return ""


def _names(memory: Memory, id_: str) -> bool:
    texts = (to_text(value) for value in memory.fields.values())
    return id_ in memory.body or any(id_ in text for text in texts)
