"""Merging memory files: what git's merge driver does, and files whose merge is unfinished.

Lifecycle keys are merged by `memory.three_way`, the claim by `git merge-file`, as git would without
a driver. A file that cannot be read as a memory is git's alone: nothing is ever decided by guess.
"""

from __future__ import annotations

from collections.abc import Sequence

from memtool.authoring import write
from memtool.authoring.tree import bytes_of
from memtool.errors import MemtoolError
from memtool.memory import document, three_way
from memtool.memory.changes import BODY, is_claim, stem
from memtool.memory.memory import as_text
from memtool.memory.three_way import Sides
from memtool.store import files
from memtool.store.commits import commit_files
from memtool.store.context import Context
from memtool.store.git import Git
from memtool.store.snapshot import is_memory_path
from memtool.value import Value

MARKERS = "conflict-markers"


class MergedText(Value):
    """The bytes of a merge, and whether both sides fit in; where not, it holds git's markers."""

    data: bytes
    is_clean: bool


class Finished(Value):
    """A file whose merge was finished: the keys in which it was divided, as they are, and all."""

    id: str
    path: str
    keys: dict[str, str]
    text: str
    commit: str | None


def merge_texts(git: Git, sides: Sides, path: str = "", *, knows_keys: bool = True) -> MergedText:
    """Merge a memory file: lifecycle keys by their rules, all else as git merges text.

    Raises:
        GitError: git refuses to merge such files, as where they are binary.
    """
    if not knows_keys:  # those of a newer format may mean something else
        return _by_git(git, sides)
    try:
        level = three_way.prepared(sides, path) if sides.base is not None else sides
    except document.Unreadable:
        level = sides
    merged = _by_git(git, level)
    if merged.is_clean and level is not sides:
        try:
            document.lines_of(merged.data, path)
        except document.Unreadable:  # such as a key that each side added at another place
            return _by_git(git, sides)
    return merged


def _by_git(git: Git, sides: Sides) -> MergedText:
    if sides.ours == sides.theirs:
        return MergedText(sides.ours, is_clean=True)
    return MergedText(*git.merge_texts(sides.base or b"", sides.ours, sides.theirs))


def finish(
    context: Context, wanted: Sequence[str], *, commit: bool, dry_run: bool
) -> list[Finished]:
    """Finish the merge of every file in which only lifecycle keys are divided, or of those named.

    The files are staged where git waits for that; the commit that concludes a merge is the user's.
    What is divided in its claim is noted, and stays as it is.

    Raises:
        MemtoolError: there are such files and none can be finished, or disk or git refuse.
    """
    repository = context.repository
    stages = unmerged(context)
    marked = {problem.path for problem in context.tree().problems if problem.code == MARKERS}
    named = [path for path in sorted({*stages, *marked}) if not wanted or _is_named(path, wanted)]
    if named and commit and stages:
        raise MemtoolError(
            "a merge is unfinished, and only git can conclude it",
            hint="leave out --commit, then git commit",
            code="merging",
        )
    done: list[Finished] = []
    left: list[str] = []
    with files.locked(repository.cache_dir, "write.lock", is_needed=not dry_run):
        for path in named:
            before = bytes_of(repository.top, path)
            one = _finished(context, path, before, stages.get(path, {}))
            if isinstance(one, str):
                left.append(f"{path} {one}")
                continue
            if not dry_run:
                with files.naming(other.path for other in done):
                    files.replace(repository.top, path, one.text.encode(), expected=before)
                    if path in stages:
                        repository.git.run("add", "--force", "--", path)
            done.append(one)
    if left and not done:
        more = f"; so are {len(left) - 1} more" if len(left) > 1 else ""
        raise MemtoolError(
            left[0] + more,
            hint="git diff shows both sides; keep one, then git add it",
            code="merging",
        )
    context.notes.extend(left)
    if commit and done and not dry_run:
        line = f"memory: finish the merge of {len(done)} memories"
        if len(done) == 1:
            line = write.subject("finish the merge of", write.read(context, done[0].text.encode()))
        trailers = {"Memory-Id": ", ".join(one.id for one in done)}
        commit_id = commit_files(context, [one.path for one in done], line, trailers)
        done = [one.replace(commit=commit_id) for one in done]
    return done


def unmerged(context: Context) -> dict[str, dict[str, str]]:
    """Return the blobs of each unmerged memory file by git's stages: 1 before, 2 ours, 3 theirs."""
    found: dict[str, dict[str, str]] = {}
    for entry in context.repository.git.ls_files(context.directory, options=("--unmerged",)):
        if is_memory_path(entry.path, context.directory):
            found.setdefault(entry.path, {})[entry.stage] = entry.oid
    return found


def _is_named(path: str, wanted: Sequence[str]) -> bool:
    return any(path == name or stem(path).startswith(name) for name in wanted)


def _finished(
    context: Context, path: str, data: bytes | None, stages: dict[str, str]
) -> Finished | str:
    """Return a file as both sides together have it, or why that cannot be known, as a clause."""
    oids = [stages[number] for number in ("1", "2", "3") if number in stages]
    blobs = dict(
        zip(sorted(stages), context.repository.git.blobs(oids, document.MAX_BYTES), strict=True)
    )
    if data is None or (stages and not {"2", "3"} <= set(stages)):
        return "was removed on one side and changed on the other"
    if stages and "1" not in stages:
        return f"was made twice: memtool resolve {stem(path)} --keep-both"
    sides = three_way.sides_of(data)
    if sides is None:
        if data != blobs.get("2"):
            return "was edited meanwhile: git add it if it is right"
        sides = Sides(None, blobs["2"], blobs["3"])  # a driver that failed left no markers
    sides = sides.replace(base=blobs.get("1", sides.base))
    merged = None
    try:
        level = three_way.prepared(sides, path)
        fields = [document.lines_of(text, path)[0] for text in (sides.ours, sides.theirs)]
        base = None if sides.base is None else document.lines_of(sides.base, path)[0]
    except document.Unreadable:
        return "is no memory on one of its sides"
    if level.ours == level.theirs:
        merged = MergedText(level.ours, is_clean=True)
    elif level.base is not None:
        merged = _by_git(context.repository.git, level)
    if merged is None or not merged.is_clean:
        ours, theirs = fields
        keys = sorted(key for key in {*ours, *theirs} if ours.get(key) != theirs.get(key))
        claim = [key for key in keys if is_claim(key) or key.startswith("x-")] or [BODY]
        return f"is divided in what it says ({', '.join(claim)})"
    memory = write.read(context, merged.data, path)
    keys_ = three_way.settle(base, *fields)
    shown = {
        key: as_text(value) or "none"
        for key, value in keys_.items()
        if fields[0].get(key) != fields[1].get(key)
    }
    return Finished(memory.id, path, shown, merged.data.decode(), None)
