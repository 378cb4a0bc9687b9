"""Resolving conflicts: one memory replaces all sides, all are accepted, or a shared id is split.

The claim of a memory is never edited. If one side holds, a new memory repeats its text, replaces
all sides and gives the reason. If both hold, each names the other as accepted.

Two branches can create the same id. The side that git calls ours keeps it. The other side gets a
new id and a new file; nothing else in it changes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence

from memtool.authoring import write
from memtool.authoring.merge import find_unmerged
from memtool.authoring.tree import find_dirty, read_bytes
from memtool.errors import MemtoolError
from memtool.memory import document, ids, timestamps
from memtool.memory.memory import Fields, Memory, with_reason
from memtool.search import conflicts
from memtool.search.conflicts import Conflict
from memtool.store import files
from memtool.store.commits import commit_files, discard
from memtool.store.context import Context
from memtool.store.messages import MEMORY_ID, REASON
from memtool.store.tree import Record
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from memtool.memory.lineage import Lineage

BOTH = "both"
NEWER = "newer"
MERGED = "merged"
_OWN = frozenset(
    {"id", "timestamp", "supersedes", "conflicts_accepted", "checked", "deleted", "retired"}
)
"""Keys that a new memory does not copy from the memory whose text it keeps."""


class Settlement(Value):
    """How a conflict ended.

    `kept_id` is the id whose text holds, `both`, or `merged`. `id` is the new memory, empty if both
    hold. `paths` are the written files, `text` is the file of the new memory.
    """

    json_names = (("kept_id", "kept"),)

    ids: tuple[str, ...]
    kept_id: str
    id: str
    path: str
    commit: str | None
    paths: tuple[str, ...]
    text: str
    dry_run: bool


def open_fork(lineage: Lineage, id_: str, replaced: Collection[str] = ()) -> str:
    """Describe a fork that a memory, or one of `replaced`, is a head of; empty if there is none.

    `replaced` are memories that it replaces, which `lineage` may not know yet.
    """
    for fork in lineage.find_forks():
        other_heads = [head for head in fork.heads if head != id_ and head not in replaced]
        if other_heads and len(other_heads) < len(fork.heads):
            verb = "replaces" if len(other_heads) == 1 else "replace"
            return (
                f"{' and '.join(other_heads)} {verb} {fork.ancestor} as well: memtool resolve "
                f'{" ".join((id_, *other_heads))} --keep {id_} --reason "REASON" settles that'
            )
    return ""


def find_newest(memories: Sequence[Memory]) -> Memory:
    """Return the newest memory; of several from the same second the one with the greatest id."""
    return max(memories, key=lambda memory: (memory.timestamp, memory.id))


def keep(
    context: Context,
    winner: Memory,
    ids: Sequence[str],
    why: str,
    *,
    commit: bool,
    dry_run: bool,
    is_pinned: bool = False,
) -> Settlement:
    """Write a new memory with the text of the winner that replaces all `ids`.

    Resolving vouches for the text: that of a candidate becomes confirmed.

    Raises:
        MemtoolError: an agent would vouch for a candidate.
    """
    if context.caller.agent and winner.status == "candidate":
        raise MemtoolError(
            f"cannot keep {write.quote_memory(winner)}: only the user can confirm a memory",
            hint=f"ask the user to run: memtool confirm {winner.id} --commit",
            code="agent",
        )
    own_fields: Fields = {key: value for key, value in winner.fields.items() if key not in _OWN}
    if winner.status == "candidate":
        del own_fields["status"]
    sources = dict.fromkeys((*winner.items("source"), write.find_speaker(context)))
    fields: Fields = own_fields | {
        "id": write.draw_id(context, winner.type, winner.title, " ".join(ids)),
        "timestamp": timestamps.render(context.clock.now),
        "source": tuple(sources),
        "supersedes": tuple(ids),
    }
    if is_pinned:
        fields["status"] = "pinned"
    memory = Memory(fields=fields, body=with_reason(winner.body, why))
    return write_settlement(context, memory, ids, winner.id, why, commit=commit, dry_run=dry_run)


def write_settlement(
    context: Context,
    memory: Memory,
    ids: Sequence[str],
    kept_id: str,
    why: str,
    *,
    commit: bool,
    dry_run: bool,
) -> Settlement:
    """Write the memory that replaces all sides."""
    made = write.write_new(context, memory, commit=commit, dry_run=dry_run, reason=why)
    paths = () if dry_run else (made.path,)
    return Settlement(
        tuple(ids), kept_id, made.id, made.path, made.commit, paths, made.text, dry_run
    )


def accept(
    context: Context, memories: Sequence[Memory], why: str, *, commit: bool, dry_run: bool
) -> Settlement:
    """Accept all of them: each names the others in `conflicts_accepted`, in one commit."""
    ids = tuple(memory.id for memory in memories)

    def add_acceptance(memory: Memory) -> Fields:
        accepted_ids = (id_ for id_ in ids if id_ != memory.id)
        earlier = memory.items("conflicts_accepted")
        return {"conflicts_accepted": tuple(dict.fromkeys((*earlier, *accepted_ids)))}

    changed = write.change_all(context, ids, add_acceptance, "accept", dry_run=dry_run).memories
    done = None
    if not dry_run:
        paths = sorted(find_dirty(context.repository, [change.path for change in changed]))
        if commit and paths:
            trailers = {MEMORY_ID: ", ".join(ids), REASON: why}
            line = write.summarize("keep both,", memories[0])
            done = commit_files(context, paths, line, trailers)
    touched = tuple(change.path for change in changed if change.changes)
    return Settlement(ids, BOTH, "", "", done, () if dry_run else touched, "", dry_run)


def settle_all(
    context: Context,
    conflict_list: Sequence[Conflict],
    memories: Mapping[str, Memory],
    wanted: str,
    why: str,
    *,
    commit: bool,
    dry_run: bool,
) -> list[Settlement]:
    """Resolve conflicts by keeping both, or the newest text: then one memory remains per cluster.

    A memory that lost in one cluster no longer counts in another.
    """
    clusters = conflicts.find_clusters(conflict_list)
    if wanted == BOTH:
        return [
            accept(context, [memories[i] for i in cluster.ids], why, commit=commit, dry_run=dry_run)
            for cluster in clusters
        ]
    replaced: dict[str, set[str]] = {}
    lost: set[str] = set()
    for cluster in clusters:
        sides = [id_ for id_ in cluster.ids if id_ not in lost]
        if len(sides) < 2:
            continue
        winner = find_newest([memories[id_] for id_ in sides]).id
        losers = {id_ for id_ in sides if id_ != winner}
        lost |= losers
        # The winner takes over what the losers had won, so that no memory is written only to be
        # replaced.
        gained = losers.union(*(replaced.pop(id_, ()) for id_ in losers))
        replaced.setdefault(winner, set()).update(gained)
    settled: list[Settlement] = []
    for winner, losers in replaced.items():
        with files.reporting_done(_written_ids(settled), commit=commit):
            settlement = keep(
                context,
                memories[winner],
                sorted({winner, *losers}),
                why,
                commit=commit,
                dry_run=dry_run,
                is_pinned=_is_pinned(winner, losers, memories, conflict_list),
            )
        settled.append(settlement)
    return settled


def _is_pinned(
    winner: str,
    losers: Collection[str],
    memories: Mapping[str, Memory],
    conflicts: Sequence[Conflict],
) -> bool:
    """Return whether the winner, or a loser that did not conflict with it, was pinned."""
    against = {id_ for conflict in conflicts if winner in conflict.ids for id_ in conflict.ids} - {
        winner
    }
    return any(memories[id_].status == "pinned" for id_ in {winner, *losers} - against)


def are_made_twice(context: Context, wanted: Sequence[str]) -> bool:
    """Return whether two memories have each of these ids, in a merge or in the tree."""
    unmerged = find_unmerged(context)
    if unmerged:
        return all(any(_is_named(path, (name,)) for path in unmerged) for name in wanted)
    shared_ids = Counter(record.id for record in context.tree().records)
    return all(shared_ids[name] > 1 for name in wanted)


def split_ids(
    context: Context, wanted: tuple[str, ...], *, commit: bool, dry_run: bool
) -> list[Settlement]:
    """Give one of two memories with the same id a new id: for the ids named, or for all.

    In an unfinished merge both sides are staged; the user makes the commit that concludes it.

    Raises:
        MemtoolError: no id is shared, a file conflicts in another way, or git refuses.
    """
    waiting = find_unmerged(context)
    if waiting:
        if commit:
            raise MemtoolError(
                "cannot commit: a merge is not finished",
                hint="leave out --commit\ngit commit",
                code="merging",
            )
        chosen = {path: sides for path, sides in waiting.items() if _is_named(path, wanted)}
        settled = [
            _split_unmerged(context, path, sides, dry_run=dry_run) for path, sides in chosen.items()
        ]
    else:
        settled = _split_tree(context, wanted, commit=commit, dry_run=dry_run)
    if not settled:
        raise MemtoolError(
            f"no two files have the id {' '.join(wanted)}" if wanted else "no id has two files",
            hint="memtool conflicts",
            code="no-conflict",
        )
    return settled


def _is_named(path: str, wanted: tuple[str, ...]) -> bool:
    name = path.rpartition("/")[2].removesuffix(".md")
    return not wanted or name in wanted or path in wanted


def _split_unmerged(
    context: Context, path: str, sides: dict[str, str], *, dry_run: bool
) -> Settlement:
    if set(sides) != {"2", "3"}:
        raise MemtoolError(
            f"both sides of the merge changed {path}; it is not two memories with one id",
            hint=f"git checkout --ours -- {path} (or --theirs)\ngit add -- {path}",
            code="merging",
        )
    git = context.repository.git
    ours, theirs = git.blobs([sides["2"], sides["3"]], document.MAX_BYTES)
    memory = write.read(context, ours, path)
    new_id, new_path, data = _rename(context, theirs, path, dry_run=dry_run)
    if not dry_run:
        top = context.repository.top
        try:
            files.replace(top, path, ours, expected=read_bytes(top, path))
        except MemtoolError:
            files.undo_create(top, [new_path])
            raise
        git.run("add", "--force", "--", path, new_path)
        context.notes.append(f"git commit finishes the merge; {memory.id} now means {path}")
    paths = () if dry_run else (path, new_path)
    return Settlement(
        (memory.id, new_id), BOTH, new_id, new_path, None, paths, data.decode(), dry_run
    )


def _split_tree(
    context: Context, wanted: tuple[str, ...], *, commit: bool, dry_run: bool
) -> list[Settlement]:
    """Split ids that are shared by files in different directories of the worktree."""
    tree = context.tree()
    settled: list[Settlement] = []
    for id_ in tree.ids:
        first = tree[id_]
        same = [record for record in tree.records if record.id == first.id]
        same.sort(key=lambda record: (record.memory.timestamp, record.path))
        for record in same[1:] if _is_named(f"/{first.id}.md", wanted) else ():
            top = context.repository.top
            data = read_bytes(top, record.path)
            if data is None:
                continue
            new_id, new_path, renamed = _rename(context, data, record.path, dry_run=dry_run)
            done = None
            if not dry_run:
                with files.reporting_done(_written_ids(settled), commit=commit):
                    done = _move_duplicate(context, record, new_id, new_path, commit=commit)
            paths = () if dry_run else (record.path, new_path)
            both, text = (first.id, new_id), renamed.decode()
            settled.append(Settlement(both, BOTH, new_id, new_path, done, paths, text, dry_run))
    return settled


def _written_ids(settled: list[Settlement]) -> list[str]:
    return [result.id for result in settled if not result.dry_run]


def _move_duplicate(
    context: Context, record: Record, new_id: str, new_path: str, *, commit: bool
) -> str | None:
    """Remove a file with a shared id, whose text has been copied to `new_path`.

    Raises:
        MemtoolError: disk or git refuse; unless a commit was made, the new file is removed again.
    """
    repository = context.repository
    before = repository.git.head()
    is_committed = bool(before and repository.git.ls_tree(before, record.path))
    line = write.summarize("give another id to", record.memory)
    trailers = {MEMORY_ID: new_id, REASON: f"{record.id} was made twice"}
    try:
        if not is_committed:
            discard(repository, [record.path])
        elif commit:
            return commit_files(context, [new_path], line, trailers, removed=[record.path])
        else:
            files.remove(repository.top, record.path)
    except MemtoolError:
        if repository.git.head() == before and read_bytes(repository.top, record.path) is not None:
            files.undo_create(repository.top, [new_path])
        raise
    return commit_files(context, [new_path], line, trailers) if commit else None


def _rename(context: Context, data: bytes, path: str, *, dry_run: bool) -> tuple[str, str, bytes]:
    """Write a memory under a new id; return the id, the path and the bytes."""
    memory = write.read(context, data, path)
    for attempt in range(write.DRAWS):
        random = context.random_id_bytes(path, str(attempt))
        new_id = ids.make_id(memory.type, memory.timestamp, memory.title, random)
        edited = document.edit(data, {"id": new_id}, path)
        place = f"{context.directory}/{ids.make_path(memory.with_fields(id=new_id))}"
        try:
            if not dry_run:
                files.create(context.repository.top, place, edited)
        except files.NameTakenError:
            continue
        return new_id, place, edited
    raise MemtoolError("cannot find a free id", hint="run the command again", code="exists")
