"""Finishing a merge of memory files that git left open.

Lifecycle keys are merged by `memory.three_way`, the claim as git does without a driver.
"""

from __future__ import annotations

from collections.abc import Sequence

from memtool.authoring import write
from memtool.authoring.tree import read_bytes
from memtool.errors import MemtoolError
from memtool.memory import document, three_way
from memtool.memory.changes import BODY, id_from_path, is_claim
from memtool.memory.memory import to_text
from memtool.memory.three_way import Sides
from memtool.store import files
from memtool.store.commits import commit_files
from memtool.store.context import Context
from memtool.store.merging import MergedText, merge_by_git
from memtool.store.messages import MEMORY_ID
from memtool.store.snapshot import is_memory_path
from memtool.value import Value

MARKERS = "conflict-markers"


class FinishedMerge(Value):
    """A file whose merge was finished: the merged values of conflicting keys, and its text."""

    id: str
    path: str
    keys: dict[str, str]
    text: str
    commit: str | None


def finish(
    context: Context, wanted: Sequence[str], *, commit: bool, dry_run: bool
) -> list[FinishedMerge]:
    """Finish the merge of every file whose conflict is in lifecycle keys only, or of those named.

    Unmerged files are staged; the user makes the commit that concludes the merge. A file with a
    conflict in its claim is left unchanged, with a note.

    Raises:
        MemtoolError: none of the conflicting files can be finished, or disk or git refuse.
    """
    repository = context.repository
    stages = find_unmerged(context)
    marked = {problem.path for problem in context.tree().problems if problem.code == MARKERS}
    named = [path for path in sorted({*stages, *marked}) if not wanted or _is_named(path, wanted)]
    if named and commit and stages:
        raise MemtoolError(
            "cannot commit: a merge is not finished",
            hint="leave out --commit\ngit commit",
            code="merging",
        )
    done: list[FinishedMerge] = []
    unfinished: list[str] = []
    with files.locked(repository.cache_dir, "write.lock", is_needed=not dry_run):
        for path in named:
            before = read_bytes(repository.top, path)
            merged = _finish_file(context, path, before, stages.get(path, {}))
            if isinstance(merged, str):
                unfinished.append(f"{path} {merged}")
                continue
            if not dry_run:
                with files.reporting_done(other.path for other in done):
                    files.replace(repository.top, path, merged.text.encode(), expected=before)
                    if path in stages:
                        repository.git.run("add", "--force", "--", path)
            done.append(merged)
    if unfinished and not done:
        suffix = f"; so are {len(unfinished) - 1} more" if len(unfinished) > 1 else ""
        raise MemtoolError(
            unfinished[0] + suffix,
            hint="git diff\nkeep one side, then: git add PATH",
            code="merging",
        )
    context.notes.extend(unfinished)
    if commit and done and not dry_run:
        line = f"finish the merge of {len(done)} memories"
        if len(done) == 1:
            line = write.summarize(
                "finish the merge of", write.read(context, done[0].text.encode())
            )
        trailers = {MEMORY_ID: ", ".join(merged.id for merged in done)}
        commit_id = commit_files(context, [merged.path for merged in done], line, trailers)
        done = [merged.replace(commit=commit_id) for merged in done]
    return done


def find_unmerged(context: Context) -> dict[str, dict[str, str]]:
    """Return the blobs of each unmerged memory file by git's stages: 1 base, 2 ours, 3 theirs."""
    stages_by_path: dict[str, dict[str, str]] = {}
    for entry in context.repository.git.ls_files(context.directory, options=("--unmerged",)):
        if is_memory_path(entry.path, context.directory):
            stages_by_path.setdefault(entry.path, {})[entry.stage] = entry.oid
    return stages_by_path


def _is_named(path: str, wanted: Sequence[str]) -> bool:
    return any(path == name or id_from_path(path).startswith(name) for name in wanted)


def _finish_file(
    context: Context, path: str, data: bytes | None, stages: dict[str, str]
) -> FinishedMerge | str:
    """Merge a file; return the result, or the reason why it cannot be merged, as a clause."""
    oids = [stages[number] for number in ("1", "2", "3") if number in stages]
    blobs = dict(
        zip(sorted(stages), context.repository.git.blobs(oids, document.MAX_BYTES), strict=True)
    )
    if data is None or (stages and not {"2", "3"} <= set(stages)):
        return "was removed on one side and changed on the other"
    if stages and "1" not in stages:
        return f"was made twice: memtool resolve {id_from_path(path)} --keep both"
    sides = three_way.split_sides(data)
    if sides is None:
        if data != blobs.get("2"):
            return "was edited meanwhile: git add it if it is right"
        sides = Sides(None, blobs["2"], blobs["3"])  # a driver that failed left no markers
    sides = sides.replace(base=blobs.get("1", sides.base))
    merged = None
    try:
        level = three_way.prepare_sides(sides, path)
        fields = [document.read_field_lines(text, path)[0] for text in (sides.ours, sides.theirs)]
        base = None if sides.base is None else document.read_field_lines(sides.base, path)[0]
    except document.Unreadable:
        return "is no memory on one of its sides"
    if level.ours == level.theirs:
        merged = MergedText(level.ours, is_clean=True)
    elif level.base is not None:
        merged = merge_by_git(context.repository.git, level)
    if merged is None or not merged.is_clean:
        ours, theirs = fields
        keys = sorted(key for key in {*ours, *theirs} if ours.get(key) != theirs.get(key))
        claim = [key for key in keys if is_claim(key) or key.startswith("x-")] or [BODY]
        return f"is divided in what it says ({', '.join(claim)})"
    memory = write.read(context, merged.data, path)
    settled = three_way.settle(base, *fields)
    shown = {
        key: to_text(value) or "none"
        for key, value in settled.items()
        if fields[0].get(key) != fields[1].get(key)
    }
    return FinishedMerge(memory.id, path, shown, merged.data.decode(), None)
