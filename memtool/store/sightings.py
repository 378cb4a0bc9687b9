"""Sightings: the state of the code that memories name, read from a commit or the worktree.

Memories without files and commits cost no git process; many others share a few.
"""

from __future__ import annotations

import os
import posixpath
from collections import Counter

from memtool.memory.sighting import (
    BLOB_DIGITS,
    COMMIT_DIGITS,
    SeenFile,
    Sighting,
    digest_lines,
    record_names,
    render,
)
from memtool.memory.subjects import find_names, find_subjects
from memtool.store.commit_files import MAX_BLOB_BYTES, BlobTexts
from memtool.store.files import read_regular
from memtool.store.git import MAX_PATH_ARGUMENTS
from memtool.store.provenance import read_authors
from memtool.store.sources import Citation, find_objects, is_usable, resolve

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from memtool.memory.memory import Memory
    from memtool.memory.subjects import Subjects
    from memtool.store.repository import Repository

MAX_EARLIER_COMMITS = 200
"""Commits before the cited ones that are checked for the same author date."""


def render_commit_sightings(
    repository: Repository, wanted: Sequence[tuple[str, Memory]]
) -> list[str]:
    """Return the line `saw` of each memory, for its code as of a commit.

    It is empty if none of the named code exists there. Commit ids are full; an empty id means that
    only the commits cited by the memory itself are recorded.
    """
    subjects = [find_subjects(memory) for _commit, memory in wanted]
    places = [
        {(commit, path) for path in _find_literal_paths(own) if commit}
        for (commit, _memory), own in zip(wanted, subjects, strict=True)
    ]
    infos = find_objects(repository, set().union(*places))
    blobs = []
    for own in places:
        info_by_path = {path: infos[commit, path] for commit, path in sorted(own)}
        blobs.append(
            {path: info[0] for path, info in info_by_path.items() if info and _is_small_blob(info)}
        )
    return _render_lines(repository, subjects, blobs, {})


def with_sightings(repository: Repository, memories: Sequence[Memory]) -> list[Memory]:
    """Return new memories with a sighting of the code that each names, as in the worktree.

    With it drift can be detected even if the commits of the branch are gone.
    """
    if not repository.is_created:  # a dry run does not create the global repository
        return list(memories)
    lines = render_worktree_sightings(repository, memories)
    return [
        memory.with_fields(checked={**memory.table("checked"), "saw": line}) if line else memory
        for memory, line in zip(memories, lines, strict=True)
    ]


def render_worktree_sightings(repository: Repository, memories: Sequence[Memory]) -> list[str]:
    """Return the line `saw` of each memory, for its code in the worktree; empty if there is none.

    Ignored files are left out. Changed files have the blob id that git would assign.
    """
    subjects = list(map(find_subjects, memories))
    paths = {path for own in subjects for path in _find_literal_paths(own)}
    blobs: dict[str, str] = {}
    texts: dict[str, bytes] = {}
    if paths:
        git, pathspecs = repository.git, sorted(paths) if len(paths) <= MAX_PATH_ARGUMENTS else []
        listed = {
            entry.path: entry.oid for entry in git.ls_files(*pathspecs) if entry.path in paths
        }
        infos = git.infos(list(listed.values()))
        entries_with_info = zip(listed.items(), infos, strict=True)
        blobs = {path: oid for (path, oid), info in entries_with_info if _is_small_blob(info)}
        changed = [path for _letters, path in git.status(*pathspecs) if path in paths]
        own = {
            path: data
            for path in changed
            if (data := _read_from_disk(repository, path)) is not None
        }
        for path in changed:
            blobs.pop(path, None)
        stdin = "".join(f"{path}\n" for path in own).encode(errors="surrogateescape")
        oids = git.run("hash-object", "--stdin-paths", stdin=stdin).decode().split() if own else ()
        for path, oid in zip(own, oids, strict=True):
            blobs[path], texts[oid] = oid, own[path]
    by_memory = [
        {path: blobs[path] for path in _find_literal_paths(own) if path in blobs}
        for own in subjects
    ]
    return _render_lines(repository, subjects, by_memory, texts)


def _find_literal_paths(subjects: Subjects) -> list[str]:
    """Return the named files without globs, which cannot have a sighting."""
    return [path for path in subjects.files if is_usable(path) and not set("*?") & set(path)]


def _is_small_blob(info: tuple[str, str, int] | None) -> bool:
    return info is not None and info[1] == "blob" and info[2] <= MAX_BLOB_BYTES


def _read_from_disk(repository: Repository, path: str) -> bytes | None:
    """Read a file of the worktree; None if it is missing, too large, or behind a link."""
    full = os.path.join(os.path.realpath(repository.top), path)
    if os.path.realpath(full) != full:
        return None
    try:
        data = read_regular(full, MAX_BLOB_BYTES + 1)
    except OSError:
        return None
    return data if len(data) <= MAX_BLOB_BYTES else None


def _render_lines(
    repository: Repository,
    subjects: Sequence[Subjects],
    blobs: Sequence[Mapping[str, str]],
    own: Mapping[str, bytes],
) -> list[str]:
    """Return a line for each memory from the blobs of its files; `own` are texts by blob."""
    cited = {Citation(source) for each in subjects for source in each.sources if source.commit}
    resolved = resolve(repository, cited) if cited else {}
    seconds = _read_unique_seconds(
        repository, {state.commit for state in resolved.values() if state.commit}
    )
    texts = BlobTexts(repository, own)
    lines = []
    for each, by_path in zip(subjects, blobs, strict=True):
        names = find_names(each) if by_path else ()
        pinned = {
            f"{posixpath.normpath(source.target)}@{source.commit[:COMMIT_DIGITS]}": (oid, source)
            for source in each.sources
            if source.kind == "file" and source.commit
            if (oid := resolved[Citation(source)].oid) and resolved[Citation(source)].type == "blob"
        }
        is_read = bool(names or each.cited)
        texts.load([*(by_path.values() if is_read else ()), *(oid for oid, _ in pinned.values())])
        files = {
            path: _build_seen_file(
                oid, texts, [lines for cited, lines in each.cited if cited == path]
            )
            for path, oid in by_path.items()
        }
        for key, (oid, source) in pinned.items():
            files[key] = _build_seen_file(oid, texts, [source.lines] if source.lines else [])
        bits = record_names(names, [texts.text(oid) or "" for oid in by_path.values() if names])
        authored = {
            source.commit[:COMMIT_DIGITS]: seconds[commit]
            for source in each.sources
            if source.commit and (commit := resolved[Citation(source)].commit) in seconds
        }
        sighting = Sighting(files, bits if names else None, authored)
        lines.append(render(sighting) if files or authored else "")
    return lines


def _read_unique_seconds(repository: Repository, commits: set[str]) -> dict[str, int]:
    """Return the author dates of commits, 0 if another recent commit has the same date."""
    if not commits:
        return {}
    recent = repository.git.line(
        "log",
        f"--max-count={MAX_EARLIER_COMMITS}",
        "--format=%H %at",
        "--end-of-options",
        *sorted(commits),
    )
    counts = Counter(row.partition(" ")[2] for row in set(recent.splitlines()))
    author_by_commit = read_authors(repository, commits)
    return {
        commit: second if counts[str(second)] <= 1 else 0
        for commit, (_name, second) in author_by_commit.items()
    }


def _build_seen_file(oid: str, texts: BlobTexts, cited: Iterable[tuple[int, int]]) -> SeenFile:
    lines = [digest_lines(texts.rows(oid), lines) for lines in cited]
    return SeenFile(oid[:BLOB_DIGITS], tuple(filter(None, lines)))
