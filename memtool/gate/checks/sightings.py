"""The check of sightings: does the recorded state of the code agree with git, and still hold?

Only new and changed memories are checked, and only if the clone has their commits.
"""

from __future__ import annotations

from memtool.gate.content import Content, File
from memtool.memory.schema import Problem
from memtool.memory.sighting import Sighting, parse, parse_sighting

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from memtool.memory.changes import Version


def check(content: Content) -> Iterator[Problem]:
    """Yield sightings that git contradicts, and code that a range changed since it was seen."""
    touched = {version.path for step in content.steps for version in step.after} | content.new
    files = [file for file in content.files if file.path in touched and file.memory]
    # A record was checked when it was written; later `files` may change without it.
    before = {
        (version.id, _find_record(version)) for step in content.steps for version in step.before
    }
    sighted = [
        file
        for file in files
        if file.memory
        and "saw" in (checked := file.memory.table("checked"))
        and (file.memory.id, tuple(checked.items())) not in before
    ]
    for file in sighted:
        assert file.memory is not None
        try:
            parse(file.memory.table("checked")["saw"])
        except ValueError as error:
            hint = f"memtool confirm {file.memory.id}"
            message = f"checked.saw cannot be read: {error}"
            yield Problem(file.path, file.find_line("checked"), "bad-record", message, hint)
    if sighted and not content.repository.is_partial:
        yield from _find_contradicted(content, sighted)
    if content.kind == "commit" and content.steps and files:
        yield from _find_drifted(content, files)


def _find_record(version: Version) -> tuple[tuple[str, str], ...]:
    """Return the key `checked` of a version, as items."""
    return () if version.memory is None else tuple(version.memory.table("checked").items())


def _find_contradicted(content: Content, files: Sequence[File]) -> Iterator[Problem]:
    """Yield an error for each sighting that differs from the commits that it names."""
    from memtool.store.sightings import render_commit_sightings
    from memtool.store.sources import find_present_commits

    repository = content.repository
    commits = {
        file.path: file.memory.table("checked").get("commit", "") for file in files if file.memory
    }
    present = find_present_commits(repository, set(filter(None, commits.values())))
    commit_by_path = {
        path: commit for path, commit in commits.items() if not commit or commit in present
    }
    checked_files = [file for file in files if file.path in commit_by_path]
    wanted = [(commit_by_path[file.path], file.memory) for file in checked_files if file.memory]
    for file, line in zip(checked_files, render_commit_sightings(repository, wanted), strict=True):
        assert file.memory is not None
        seen, actual = parse_sighting(file.memory), parse(line)
        wrong = _find_difference(seen, actual, is_confirmed=bool(commit_by_path[file.path]))
        if wrong:
            at = commit_by_path[file.path][:10] or "its commit"
            message = f"checked.saw and {at} differ about {wrong}"
            hint = f"memtool confirm {file.memory.id}"
            yield Problem(file.path, file.find_line("checked"), "bad-record", message, hint)


def _find_difference(seen: Sighting, actual: Sighting, *, is_confirmed: bool) -> str:
    """Return the first part of a sighting that differs from git, empty for none.

    Code that was seen in a worktree may never have been committed; only commits can be checked.
    """
    for path, file in seen.files.items():
        if (
            (is_confirmed or "@" in path)
            and actual.find_file(path) != file
            and path in actual.files
        ):
            return path
    for commit, second in seen.seconds.items():
        if second and actual.seconds.get(commit) not in (None, 0, second):
            return f"commit {commit}"
    if not is_confirmed:
        return ""
    absent = [path for path in seen.files if "@" not in path and path not in actual.files]
    if absent and not actual.files_digest:
        return absent[0]
    if seen.files_digest != actual.files_digest:
        return "its files"
    own, other = seen.names, actual.names
    is_same_text = own is not None and other is not None and own.count == other.count
    return "its names" if is_same_text and own != other else ""


def _find_drifted(content: Content, files: Sequence[File]) -> Iterator[Problem]:
    """Warn of memories whose code the range changed since they were written or confirmed.

    After a squash the code as it was seen can no longer be read.
    """
    from memtool.gate.code_drift import find_drift
    from memtool.memory.drift import BROKEN, CHANGED, summarize

    by_path = {file.path: file for file in files}
    for path, drift in find_drift(content, files, is_landed=False).items():
        file = by_path[path]
        if drift.level in (BROKEN, CHANGED) and file.memory is not None:
            message = f"{summarize(drift)}, in this range, since it was last checked"
            still = " --still-holds" if drift.level == BROKEN else ""
            hint = (
                f"before you squash it: memtool confirm {file.memory.id}{still}, "
                f"or memtool supersede {file.memory.id} TITLE"
            )
            line = file.find_line("files") or file.find_line("source")
            yield Problem(path, line, "changed-since", message, hint, file.memory.id, "warning")
