"""Settling conflicts: one memory replaces all sides, or all are accepted, or an id becomes two.

Nothing that a memory claims is edited. Where one side holds, a new memory repeats its text,
replaces all sides and gives the reason; where both hold, each names the other as accepted.

An id that was made on two branches is the one conflict that their files can have. The side that
git calls ours keeps it; the other one gets a new id and file, and every byte besides.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from memtool.authoring import write
from memtool.authoring.merge import unmerged
from memtool.authoring.tree import bytes_of, is_dirty
from memtool.errors import MemtoolError
from memtool.memory import document, ids, timestamps
from memtool.memory.memory import Fields, Memory, sections
from memtool.search import conflicts
from memtool.search.conflicts import Conflict
from memtool.store import files
from memtool.store.commits import commit_files, discard
from memtool.store.context import Context
from memtool.store.tree import Record
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from memtool.memory.lineage import Lineage

BOTH = "both"
NEWER = "newer"
MERGED = "merged"
REASON_SECTION = "Rationale"
_OWN = frozenset(
    {"id", "timestamp", "supersedes", "conflicts_accepted", "checked", "deleted", "retired"}
)
"""Keys that a new memory does not take over from the one whose text it keeps."""


class Settled(Value):
    """How a conflict ended.

    `kept` is the id whose text holds, `both`, or `merged`. `id` is the new memory, empty where
    both hold. `paths` are the files that were written, `text` what a new memory holds.
    """

    ids: tuple[str, ...]
    kept: str
    id: str
    path: str
    commit: str | None
    paths: tuple[str, ...]
    text: str
    dry_run: bool


def open_fork(lineage: Lineage, id_: str, replaced: Collection[str] = ()) -> str:
    """Return what to say of a fork of which a memory is a side, or `replaced` some; else nothing.

    `lineage` may not know yet that the memory replaces these.
    """
    for fork in lineage.forks():
        others = [head for head in fork.heads if head != id_ and head not in replaced]
        if others and len(others) < len(fork.heads):
            verb = "replaces" if len(others) == 1 else "replace"
            return (
                f"{' and '.join(others)} {verb} {fork.ancestor} as well: memtool resolve "
                f'{" ".join((id_, *others))} --keep {id_} --why "REASON" settles that'
            )
    return ""


def newest(memories: Sequence[Memory]) -> Memory:
    """Return the memory that was written last; of one second the one with the greater id."""
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
) -> Settled:
    """Write a new memory with the text of the winner, which replaces all of them.

    Whoever settles vouches for it: a text that was a candidate is confirmed by that.

    Raises:
        MemtoolError: an agent would vouch for a candidate.
    """
    if context.caller.agent and winner.status == "candidate":
        raise MemtoolError(
            f"an agent vouches for no memory, and keeping {winner.id} would",
            hint=f"a person runs: memtool confirm {winner.id} --commit",
            code="agent",
        )
    kept: Fields = {key: value for key, value in winner.fields.items() if key not in _OWN}
    if winner.status == "candidate":
        del kept["status"]
    sources = dict.fromkeys((*winner.items("source"), write.speaker(context)))
    fields: Fields = kept | {
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
    kept: str,
    why: str,
    *,
    commit: bool,
    dry_run: bool,
) -> Settled:
    """Write the memory that replaces all sides."""
    made = write.write_new(context, memory, commit=commit, dry_run=dry_run, reason=why)
    paths = () if dry_run else (made.path,)
    return Settled(tuple(ids), kept, made.id, made.path, made.commit, paths, made.text, dry_run)


def accept(
    context: Context, memories: Sequence[Memory], why: str, *, commit: bool, dry_run: bool
) -> Settled:
    """Let all of them hold: each names the others in `conflicts_accepted`, in one commit."""
    ids = tuple(memory.id for memory in memories)

    def accepted(memory: Memory) -> Fields:
        others = (id_ for id_ in ids if id_ != memory.id)
        known = memory.items("conflicts_accepted")
        return {"conflicts_accepted": tuple(dict.fromkeys((*known, *others)))}

    changed = write.change_all(context, ids, accepted, "accept", dry_run=dry_run)
    done = None
    if not dry_run:
        paths = [change.path for change in changed if is_dirty(context.repository, change.path)]
        if commit and paths:
            trailers = {"Memory-Id": ", ".join(ids), "Reason": why}
            line = write.subject("keep both,", memories[0])
            done = commit_files(context, paths, line, trailers)
    touched = tuple(change.path for change in changed if change.changes)
    return Settled(ids, BOTH, "", "", done, () if dry_run else touched, "", dry_run)


def settle_all(
    context: Context,
    found: Sequence[Conflict],
    memories: Mapping[str, Memory],
    wanted: str,
    why: str,
    *,
    commit: bool,
    dry_run: bool,
) -> list[Settled]:
    """Settle conflicts by keeping both or the newer text: of each cluster one memory is left.

    What lost opposes nothing any more. A text that wins over some and loses to another leaves what
    it won over to that one, so that nothing is written only to be replaced.
    """
    clusters = conflicts.clusters(found)
    if wanted == BOTH:
        return [
            accept(context, [memories[i] for i in one.ids], why, commit=commit, dry_run=dry_run)
            for one in clusters
        ]
    replaced: dict[str, set[str]] = {}
    lost: set[str] = set()
    for cluster in clusters:
        sides = [id_ for id_ in cluster.ids if id_ not in lost]
        if len(sides) < 2:
            continue
        winner = newest([memories[id_] for id_ in sides]).id
        losers = {id_ for id_ in sides if id_ != winner}
        lost |= losers
        gained = losers.union(*(replaced.pop(id_, ()) for id_ in losers))
        replaced.setdefault(winner, set()).update(gained)
    settled: list[Settled] = []
    for winner, losers in replaced.items():
        with files.naming(_written(settled), commit=commit):
            one = keep(
                context,
                memories[winner],
                sorted({winner, *losers}),
                why,
                commit=commit,
                dry_run=dry_run,
                is_pinned=_is_pinned(winner, losers, memories, found),
            )
        settled.append(one)
    return settled


def _is_pinned(
    winner: str, losers: Collection[str], memories: Mapping[str, Memory], found: Sequence[Conflict]
) -> bool:
    """Tell whether a text was pinned: the one that holds, or one that said nothing against it."""
    against = {id_ for one in found if winner in one.ids for id_ in one.ids} - {winner}
    return any(memories[id_].status == "pinned" for id_ in {winner, *losers} - against)


def with_reason(body: str, why: str) -> str:
    """Return a body that gives the reason, in its section Rationale or in a new one."""
    lines = body.rstrip("\n").split("\n")
    for section in sections(body):
        if section.title.lower() == REASON_SECTION.lower():
            if why in section.text:
                return body
            at = min(section.last_line, len(lines))
            while at > section.first_line and not lines[at - 1].strip():
                at -= 1
            rest = lines[at:]
            return "\n".join([*lines[:at], "", why, *rest]).rstrip("\n") + "\n"
    opening = body.rstrip("\n")
    return f"{opening}\n\n## {REASON_SECTION}\n\n{why}\n".lstrip("\n")


def split_ids(
    context: Context, wanted: tuple[str, ...], *, commit: bool, dry_run: bool
) -> list[Settled]:
    """Give one of two memories with the same id a new one: for the ids named, or for all.

    In an unfinished merge both sides are staged; the commit that concludes it is the user's.

    Raises:
        MemtoolError: none was made twice, a file conflicts in another way, or git refuses.
    """
    waiting = unmerged(context)
    if waiting:
        if commit:
            raise MemtoolError(
                "a merge is unfinished, and only git can conclude it",
                hint="leave out --commit, then git commit",
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
            f"{' '.join(wanted)} was not made twice" if wanted else "no id was made twice",
            hint="memtool conflicts lists what contradicts each other",
            code="no-conflict",
        )
    return settled


def _is_named(path: str, wanted: tuple[str, ...]) -> bool:
    name = path.rpartition("/")[2].removesuffix(".md")
    return not wanted or name in wanted or path in wanted


def _split_unmerged(
    context: Context, path: str, sides: dict[str, str], *, dry_run: bool
) -> Settled:
    if set(sides) != {"2", "3"}:
        raise MemtoolError(
            f"{path} was changed on both sides, not made twice",
            hint=f"keep one side with git checkout --ours or --theirs -- {path}, then git add it",
            code="merging",
        )
    git = context.repository.git
    ours, theirs = git.blobs([sides["2"], sides["3"]], document.MAX_BYTES)
    memory = write.read(context, ours, path)
    new_id, new_path, data = _renamed(context, theirs, path, dry_run=dry_run)
    if not dry_run:
        top = context.repository.top
        try:
            files.replace(top, path, ours, expected=bytes_of(top, path))
        except MemtoolError:
            files.take_back(top, [new_path])
            raise
        git.run("add", "--force", "--", path, new_path)
        context.notes.append(f"git commit concludes the merge; what names {memory.id} means {path}")
    paths = () if dry_run else (path, new_path)
    return Settled((memory.id, new_id), BOTH, new_id, new_path, None, paths, data.decode(), dry_run)


def _split_tree(
    context: Context, wanted: tuple[str, ...], *, commit: bool, dry_run: bool
) -> list[Settled]:
    """Split ids that two files of the worktree have, in different directories."""
    tree = context.tree()
    settled: list[Settled] = []
    for id_ in tree.ids:
        first = tree[id_]
        same = [record for record in tree.records if record.id == first.id]
        same.sort(key=lambda record: (record.memory.timestamp, record.path))
        for record in same[1:] if _is_named(f"/{first.id}.md", wanted) else ():
            top = context.repository.top
            data = bytes_of(top, record.path)
            if data is None:
                continue
            new_id, new_path, renamed = _renamed(context, data, record.path, dry_run=dry_run)
            done = None
            if not dry_run:
                with files.naming(_written(settled), commit=commit):
                    done = _moved(context, record, new_id, new_path, commit=commit)
            paths = () if dry_run else (record.path, new_path)
            both, text = (first.id, new_id), renamed.decode()
            settled.append(Settled(both, BOTH, new_id, new_path, done, paths, text, dry_run))
    return settled


def _written(settled: list[Settled]) -> list[str]:
    return [one.id for one in settled if not one.dry_run]


def _moved(
    context: Context, record: Record, new_id: str, new_path: str, *, commit: bool
) -> str | None:
    """Remove the file of an id that was made twice, whose text is at another path now.

    Raises:
        MemtoolError: disk or git refuse; unless there is a commit, the new file is taken back.
    """
    repository = context.repository
    before = repository.git.head()
    is_committed = bool(before and repository.git.ls_tree(before, record.path))
    line = write.subject("give another id to", record.memory)
    trailers = {"Memory-Id": new_id, "Reason": f"{record.id} was made twice"}
    try:
        if not is_committed:
            discard(repository, [record.path])
        elif commit:
            return commit_files(context, [new_path], line, trailers, removed=[record.path])
        else:
            files.remove(repository.top, record.path)
    except MemtoolError:
        if repository.git.head() == before and bytes_of(repository.top, record.path) is not None:
            files.take_back(repository.top, [new_path])
        raise
    return commit_files(context, [new_path], line, trailers) if commit else None


def _renamed(context: Context, data: bytes, path: str, *, dry_run: bool) -> tuple[str, str, bytes]:
    """Write a memory under a new id; return the id, its path, and the bytes."""
    memory = write.read(context, data, path)
    for attempt in range(write.DRAWS):
        random = context.random_for(path, str(attempt))
        new_id = ids.make_id(memory.type, memory.timestamp, memory.title, random)
        edited = document.edit(data, {"id": new_id}, path)
        place = f"{context.directory}/{ids.place(memory.with_fields(id=new_id))}"
        try:
            if not dry_run:
                files.create(context.repository.top, place, edited)
        except files.NameTaken:
            continue
        return new_id, place, edited
    raise MemtoolError("no free id was found", hint="run the same command again", code="id-taken")
