"""Undo: the newest step of a memory's life, found in git, is taken back in git's own terms.

A step is a confirmation, a change of status, a supersession, or the acceptance of a contradiction.
A change of keys is changed back, of an acceptance at all sides. A memory that replaced others goes,
where nobody else can have it and nothing names it: its removal is a commit of its own, all that it
replaced holds again, and a file that was in no commit stays readable as a blob. Where others may
have it, nothing is removed: a new memory says again what the old one said, and replaces it. Where
it replaced several, no single memory can do that, and `git revert` is named instead.

A step that an undo took back counts no more, nor does that undo: undoing again goes further back.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from memtool.authoring import resolve, write
from memtool.authoring.tree import bytes_of
from memtool.errors import MemtoolError
from memtool.memory import changes
from memtool.memory.changes import Version, stem
from memtool.memory.memory import FieldValue, Memory, as_text
from memtool.store import files, usage_log, versions
from memtool.store.commits import commit_files, discard
from memtool.store.context import Context
from memtool.store.git import Touch
from memtool.store.history import History, tip
from memtool.store.provenance import SHORT
from memtool.store.tree import Record, Tree
from memtool.store.versions import stamps_of
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal

    How = Literal["changed", "removed", "discarded", "superseded"]

UNDOES = "Undoes"
"""The trailer of an undo: the commit whose step it takes back."""
LIFECYCLE = ("status", "checked", "deleted", "retired")
"""The keys that a step of a memory's life changes."""
ACCEPTS = "conflicts_accepted"
"""The key that names the other sides of a contradiction that may stay."""
SUPERSEDED, ACCEPTED = "superseded", "accepted"
STEPS = frozenset(
    {"confirmed", "pinned", "unpinned", "deprecated", "archived", "forgotten", "restored"}
)
"""Kinds of changes that are steps, beside `superseded` and `accepted`."""


class Step(Value):
    """What happened to a memory: its `kind`, and the commit, empty where it is in none yet.

    `fields` are the lifecycle keys as they were before, None for a key that was not there. A
    supersession has a `successor` instead; `is_whole` says that one commit made all of its file.
    An acceptance has the `sides` instead: the ids that each came to name.
    """

    kind: str
    commit: str
    fields: dict[str, FieldValue | None]
    successor: str = ""
    is_whole: bool = False
    sides: tuple[tuple[str, tuple[str, ...]], ...] = ()


class Undone(Value):
    """What was taken back, and how.

    `how` is `changed` (keys of the memory were changed back), `removed` (a commit removes the
    memory that replaced it), `discarded` (that memory was in no commit) or `superseded` (a new
    memory replaces that one, for the `reason`). `undoes` is the commit of the step, empty where it
    was in none. `blob` has the bytes of what was discarded. `also` are other memories for which the
    same was taken back, `paths` the files that were changed or removed for it.
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
    """Take back the newest step of a memory.

    Raises:
        MemtoolError: there is no memory or step, what replaced it cannot be taken back alone, or
            disk or git refuse. Nothing was changed then.
    """
    write.prepare(context, begins=False, dry_run=dry_run)
    reason = write.one_line(context, why)
    tree = context.tree()
    record = tree.find(wanted)
    step = newest_step(context, tree, record, commit=commit and not dry_run)
    if step.kind == SUPERSEDED:
        return _supersession(context, tree, record, step, reason, commit=commit, dry_run=dry_run)
    if step.kind == ACCEPTED:
        return _acceptance(context, tree, record, step, reason, commit=commit, dry_run=dry_run)
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


def _acceptance(
    context: Context,
    tree: Tree,
    record: Record,
    step: Step,
    why: str,
    *,
    commit: bool,
    dry_run: bool,
) -> Undone:
    """Let no side of a contradiction accept the others any more, in one commit."""
    sides = dict(step.sides)
    ids = [id_ for id_ in sides if id_ in tree]

    def before(memory: Memory) -> dict[str, FieldValue | None]:
        left = (one for one in memory.items(ACCEPTS) if one not in sides[memory.id])
        return {ACCEPTS: tuple(left) or None}

    own, *others = write.change_all(context, ids, before, "undo", dry_run=dry_run, reason=why)
    done = None
    if commit and step.commit and not dry_run:
        trailers = {"Memory-Id": ", ".join(ids), UNDOES: step.commit}
        trailers |= {"Reason": why} if why else {}
        paths = [one.path for one in (own, *others)]
        line = write.subject("undo", record.memory)
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
        paths=() if dry_run else tuple(one.path for one in (own, *others)),
    )


def newest_step(context: Context, tree: Tree, record: Record, *, commit: bool) -> Step:
    """Return the newest step of a memory that is still in force.

    With `commit` one that was taken back already, without a commit, is no reason to go further.

    Raises:
        MemtoolError: there is none, as far as history goes.
    """
    successors = tree.lineage.superseded_by.get(record.id, ())
    head = tip(context.repository)
    stored = context.snapshot(head) if head else None
    before, after = versions.uncommitted(tree, stored, context.settings.categories)
    found = _step(record, successors, before, after)
    pending = _taken_back(record, before, after)
    if found is not None and not (commit and _is_undone(context, head, record, before)):
        return found
    if not (commit and pending):
        changed = {version.id for version in after}
        found, is_cut_off = _committed_step(context, head, record, successors, changed)
        if found is not None:
            return found
    if pending:
        raise MemtoolError(
            f"what happened to {record.id} last is taken back already, and not committed",
            hint=f'git commit -m "MESSAGE" -- {" ".join(pending)}',
            code="dirty",
        )
    if not (head and context.repository.git.ls_tree(head, record.path)):
        raise MemtoolError(
            f"{record.id} is in no commit, so git knows nothing that happened to it",
            hint=f"memtool show {record.id}",
            code="no-step",
        )
    raise MemtoolError(
        f"nothing happened to {record.id} since it was written"
        + (", as far as the history of this clone goes" if is_cut_off else ""),
        hint="git fetch --unshallow" if is_cut_off else _instead(record),
        code="no-step",
    )


def _committed_step(
    context: Context,
    head: str,
    record: Record,
    successors: Sequence[str],
    changed: Collection[str],
) -> tuple[Step | None, bool]:
    """Return the newest step in history that is in force, and whether history is cut off.

    `changed` are the ids of memories that were changed since HEAD.
    """
    names, later = {record.id, *successors}, set(changed)
    undone: set[str] = set()
    with History(context.repository) as history:
        for id_, touches in history.walk(head, context.directory) if head else ():
            mine = [touch for touch in touches if stem(touch.path) in names]
            if not mine or id_ in history.boundary:
                continue
            found = None
            undoes = history.commit(id_).trailer(UNDOES)
            undone.add(undoes)
            if not (undoes or id_ in undone):
                found = _step(record, successors, *_sides(context, mine))
                if found is not None and found.kind == ACCEPTED:  # at other memories as well
                    sides = [touch for touch in touches if stem(touch.path) in dict(found.sides)]
                    found = _step(record, successors, *_sides(context, sides))
            if found is not None:
                is_whole = found.is_whole and found.successor not in later
                return found.replace(commit=id_, is_whole=is_whole), False
            later |= {stem(touch.path) for touch in mine}
        return None, bool(history.boundary)


def _is_undone(context: Context, head: str, record: Record, before: Sequence[Version]) -> bool:
    """Tell whether the keys in the worktree are those from before the newest step at HEAD."""
    stored = next((one.memory for one in before if one.id == record.id), None)
    if stored is None:
        return False
    last, _is_cut_off = _committed_step(context, head, record.replace(memory=stored), (), ())
    now = record.memory.fields
    return (
        last is not None
        and bool(last.fields)
        and all(now.get(key) == value for key, value in last.fields.items())
    )


def _taken_back(record: Record, before: Sequence[Version], after: Sequence[Version]) -> list[str]:
    """Return the files in which the worktree lacks what HEAD says happened to a memory."""
    news = {version.id: version for version in after}
    paths = [
        version.path
        for version in before
        if record.id in _replaced(version) and record.id not in _replaced(news.get(version.id))
    ]
    keys = (*LIFECYCLE, ACCEPTS)
    return paths + [
        version.path
        for version in before
        if version.id == record.id
        and version.memory is not None
        and any(version.memory.fields.get(key) != record.memory.fields.get(key) for key in keys)
    ]


def _instead(record: Record) -> str:
    """Return what to run for a memory that nothing happened to."""
    if record.memory.status == "deleted":
        return f"memtool restore {record.id}"
    if replaced := record.memory.items("supersedes"):
        return f"memtool undo {replaced[0]} takes back that it was replaced"
    return f'memtool forget {record.id} --why "REASON" deletes it softly'


def _sides(
    context: Context, touches: Sequence[Touch]
) -> tuple[tuple[Version, ...], tuple[Version, ...]]:
    """Return files as they were before a commit, and as it left them."""
    read = versions.of_blobs(context.repository, stamps_of(touches), context.settings.categories)
    before = (read[one.old_path, one.old_oid] for one in touches if one.old_oid)
    return tuple(before), tuple(read[one.path, one.oid] for one in touches if one.oid)


def _step(
    record: Record,
    successors: Sequence[str],
    before: Sequence[Version],
    after: Sequence[Version],
) -> Step | None:
    """Return what happened to a memory between two states, if it is still in force."""
    olds = {version.id: version for version in before}
    news = {version.id: version for version in after}
    for id_ in successors:
        was, is_now = (_replaced(side.get(id_)) for side in (olds, news))
        if record.id in is_now and record.id not in was:
            return Step(SUPERSEDED, "", {}, id_, id_ not in olds)
    if sides := _accepting(record, olds, news):
        return Step(ACCEPTED, "", {}, sides=tuple(sides.items()))
    old, new = olds.get(record.id), news.get(record.id)
    if old is None or new is None or old.memory is None or new.memory is None:
        return None
    kinds = [one.kind for one in changes.changes(old, new) if one.kind in STEPS]
    was_fields, now_fields = old.memory.fields, new.memory.fields
    keys = [key for key in LIFECYCLE if was_fields.get(key) != now_fields.get(key)]
    is_in_force = all(record.memory.fields.get(key) == now_fields.get(key) for key in keys)
    if not (kinds and is_in_force):
        return None
    return Step(kinds[0], "", {key: was_fields.get(key) for key in keys})


def _accepting(
    record: Record, olds: Mapping[str, Version], news: Mapping[str, Version]
) -> dict[str, tuple[str, ...]]:
    """Return the ids that a memory came to accept and still does, with those that they did.

    An id whose versions are not given has none.
    """

    def named(version: Version | None) -> tuple[str, ...]:
        return version.memory.items(ACCEPTS) if version and version.memory else ()

    def gained(id_: str) -> tuple[str, ...]:
        known = named(olds.get(id_))
        return tuple(one for one in named(news.get(id_)) if one not in known)

    now = record.memory.items(ACCEPTS)
    own = tuple(one for one in gained(record.id) if one in now) if record.id in olds else ()
    if not own:
        return {}
    ids = (record.id, *own)
    return {record.id: own} | {
        other: tuple(one for one in gained(other) if one in ids) for other in own
    }


def _replaced(version: Version | None) -> tuple[str, ...]:
    """Return what a version of a memory replaces."""
    return () if version is None or version.memory is None else version.memory.replaces


def _supersession(
    context: Context,
    tree: Tree,
    record: Record,
    step: Step,
    why: str,
    *,
    commit: bool,
    dry_run: bool,
) -> Undone:
    """Take back that another memory replaced this one, and all others that it replaced."""
    new = tree[step.successor]
    _refuse_entangled(tree, record, new)
    kept = _why_kept(context, tree, new, step)
    also = tuple(id_ for id_ in new.memory.supersedes if id_ != record.id)
    if kept and also:
        others = ", ".join((record.id, *also))
        bring = f"git revert {step.commit[:SHORT]} brings them back; "
        raise MemtoolError(
            f"{new.id} replaced {others}, and {kept}: it is not removed",
            hint=f"{bring if step.is_whole and step.commit else ''}"
            f"memtool supersede {new.id} TITLE says what holds now",
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
        reason=kept,
        dry_run=dry_run,
        also=also,
        paths=() if dry_run or kept else (new.path,),
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
    with usage_log.act(context, "undo", record.id, new.id, detail=why, dry_run=dry_run):
        if dry_run:
            return done
        if not step.commit:
            data = bytes_of(repository.top, new.path) or b""
            blob = repository.git.run("hash-object", "-w", "--stdin", stdin=data).decode().strip()
            discard(repository, [new.path])
            return done.replace(blob=blob)
        if not commit:
            files.remove(repository.top, new.path)
            return done
        trailers = {"Memory-Id": record.id, UNDOES: step.commit} | ({"Reason": why} if why else {})
        line = write.subject("undo", record.memory)
        made = commit_files(context, (), line, trailers, removed=[new.path], leaves_removal=True)
        return done.replace(commit=made)


def _refuse_entangled(tree: Tree, record: Record, new: Record) -> None:
    """Raise MemtoolError where a supersession cannot be taken back alone."""
    lineage = tree.lineage
    newer = lineage.superseded_by.get(new.id, ())
    if newer:
        raise MemtoolError(
            f"{new.id}, which replaced {record.id}, was replaced by {', '.join(newer)} since",
            hint=f"memtool undo {new.id} first, or memtool supersede "
            f"{(lineage.heads_of(new.id) or newer)[0]} TITLE",
            code="not-a-head",
        )
    for old in dict.fromkeys((record.id, *new.memory.supersedes)):
        beside = [id_ for id_ in lineage.superseded_by.get(old, ()) if id_ != new.id]
        if beside:
            raise MemtoolError(
                f"{new.id} and {', '.join(beside)} both replace {old}",
                hint=f'memtool resolve {new.id} {beside[0]} --keep ID --why "REASON"',
                code="fork",
            )


def _why_kept(context: Context, tree: Tree, new: Record, step: Step) -> str:
    """Return why a memory that replaced another must stay, as a clause; empty where it may go."""
    for other in tree.records:
        if other.id != new.id and _names(other.memory, new.id):
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
    texts = (as_text(value) for value in memory.fields.values())
    return id_ in memory.body or any(id_ in text for text in texts)
