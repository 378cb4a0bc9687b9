"""Evidence: whether a source of a memory resolves here, and its content.

Only git and the worktree are read, never through links and never from the git directory: memories
are untrusted, and must not make memtool show secrets.
"""

from __future__ import annotations

import errno
import os
import posixpath
import stat
from collections.abc import Iterable, Mapping

from memtool.memory.schema import Source, parse_source
from memtool.memory.sighting import parse_sighting
from memtool.memory.trust import SHORT_ID_DIGITS
from memtool.store.files import read_regular
from memtool.store.history import (
    MAX_FILE_BYTES,
    UNKNOWN_COMMIT,
    Commit,
    History,
    PathContent,
    format_landing,
)
from memtool.store.landing import Landings
from memtool.store.snapshot import Location
from memtool.store.sources import (
    ABSENT,
    BEYOND_GIT,
    MISSING,
    SQUASHED,
    UNRECORDED,
    Citation,
    Resolution,
    explain_absent,
    resolve,
)
from memtool.store.tree import Record
from memtool.value import Value

MAX_EXCERPT_CHARS = 100
"""Length of the excerpt from a file's line."""
_WORDS = {
    "directory": "is a directory",
    "link": "is a link or device, or lies behind a link",
    "submodule": "is a submodule",
    "large": f"is larger than {MAX_FILE_BYTES >> 20} MiB",
}


class Evidence(Value):
    """The result for one source. `status` is ok, missing, or unknown if git cannot tell.

    `detail` is a clause for the user; commit, author and date are those of the commit that is the
    source, or that last changed the file or the lines; empty if there is none.
    """

    source: str
    kind: str
    status: str
    detail: str
    commit: str = ""
    author: str = ""
    date: str = ""


def collect_citations(records: Iterable[Record], head: str) -> dict[str, Citation]:
    """Return the sources of memories by text; if several memories cite one, the first counts.

    `head` is the commit of the worktree or tree, empty before the first commit.
    """
    cited: dict[str, Citation] = {}
    for record in records:
        sighting = parse_sighting(record.memory)
        for text in record.memory.items("source"):
            source = parse_source(text)
            second = sighting.find_second(source.commit)
            cited.setdefault(text, Citation(source, head, record.path, second))
    return cited


def gather_evidence(
    history: History, location: Location, cited: Mapping[str, Citation], landings: Landings | None
) -> dict[str, Evidence]:
    """Look up sources by text. A file is that of the snapshot unless the source names a commit.

    Sources of other kinds, such as a person, a site or a session, are unknown.
    """
    resolved = resolve(
        location.repository,
        (citation for citation in cited.values() if citation.source.kind in ("commit", "file")),
        landings=landings,
    )
    evidence_by_source = {}
    for text, citation in cited.items():
        source = citation.source
        if source.kind not in ("commit", "file"):
            evidence_by_source[text] = Evidence(
                text, source.kind, "unknown", BEYOND_GIT.get(source.kind, "")
            )
        elif source.commit and (
            not resolved[citation].commit or resolved[citation].type in (UNRECORDED, SQUASHED)
        ):
            evidence_by_source[text] = _build_absent(history, text, source, resolved[citation])
        elif source.kind == "commit":
            commit = history.commit(resolved[citation].commit)
            subject = commit.subject or "a commit without a message"
            how = resolved[citation].how
            landed = f"{format_landing(commit, how)}: " if how else ""
            evidence_by_source[text] = _build_evidence(commit, text, source, landed + subject)
        else:
            evidence_by_source[text] = _check_file(
                history, location, text, source, resolved[citation]
            )
    return evidence_by_source


def _build_absent(history: History, text: str, source: Source, resolution: Resolution) -> Evidence:
    detail = f"commit {source.commit} {explain_absent(source.commit, resolution)[0]}"
    if resolution.type == SQUASHED:
        detail = (
            f"landed as {resolution.commit[:SHORT_ID_DIGITS]}, which does not hold {source.target}"
        )
    if history.boundary and not resolution.type:
        detail = f"{detail}, which is shallow"
    return Evidence(text, source.kind, resolution.status, detail)


def _check_file(
    history: History, location: Location, text: str, source: Source, resolution: Resolution
) -> Evidence:
    path, at = posixpath.normpath(source.target), resolution.commit
    has_content = at and resolution.status != MISSING and resolution.type != ABSENT
    committed = history.read_path(at, path) if has_content else None
    is_here = location.kind == "worktree" and not source.commit
    present = read_from_disk(location.repository.top, path) if is_here else committed
    if present is None and os.path.exists(
        os.path.join(location.repository.git_dir, "info", "sparse-checkout")
    ):
        present = committed
    where = "" if is_here else f" at {at[:SHORT_ID_DIGITS]}"
    if present is None and resolution.type == ABSENT:
        return Evidence(text, "file", "unknown", f"this partial clone does not hold {path}{where}")
    if present is None:
        detail = f"{path} is not there{where}"
        if committed:
            detail = f"{path} is gone from the worktree"
        return Evidence(text, "file", "missing", detail)
    if path.split("/")[0] == ".git":
        return Evidence(text, "file", "unknown", f"{path} is git's own")
    kind = present.kind if committed is None or present.kind != "file" else committed.kind
    if kind != "file":
        status = "ok" if kind == "directory" and not source.lines else "unknown"
        last_commit = (
            history.find_author_commit(history.find_last_commit(at, path))
            if committed
            else UNKNOWN_COMMIT
        )
        return _build_evidence(last_commit, text, source, f"{path} {_WORDS[kind]}", status)
    if committed is None:
        return Evidence(text, "file", "ok", f"{path} is there, but not committed")
    if source.lines is None:
        state = "" if present == committed else ", changed and not committed"
        return _build_evidence(
            history.find_author_commit(history.find_last_commit(at, path)),
            text,
            source,
            f"{path}{where}{state}",
        )
    return _check_lines(history, at, text, source, present, committed)


def _check_lines(
    history: History,
    at: str,
    text: str,
    source: Source,
    present: PathContent,
    committed: PathContent,
) -> Evidence:
    """Return an excerpt of some lines of a file, with the commit that wrote them last."""
    assert source.lines is not None
    first, last = source.lines
    path = posixpath.normpath(source.target)
    rows = split_rows(present.data)
    if last > len(rows):
        return Evidence(text, "file", "missing", f"{path} has only {len(rows)} lines")
    wanted = rows[first - 1 : last]
    excerpt = _build_excerpt(wanted)
    if committed.data.replace(b"\r\n", b"\n").split(b"\n")[first - 1 : last] != wanted:
        return Evidence(text, "file", "ok", f"{excerpt} (changed and not committed)")
    blamed = history.blame(at, path, source.lines)
    return _build_evidence(
        history.find_author_commit(history.find_newest(blamed.values())), text, source, excerpt
    )


def split_rows(data: bytes) -> list[bytes]:
    """Return the lines of a file, as git counts them, in whatever form it checked them out."""
    rows = data.replace(b"\r\n", b"\n").split(b"\n")
    return rows[:-1] if rows[-1] == b"" else rows


def _build_excerpt(rows: list[bytes]) -> str:
    if any(b"\0" in row for row in rows):
        return "(binary)"
    texts = (" ".join(row.decode(errors="replace").split()) for row in rows)
    line = next((row for row in texts if any(map(str.isalnum, row))), "")
    return f'"{line[:MAX_EXCERPT_CHARS]}{"…" if len(line) > MAX_EXCERPT_CHARS else ""}"'


def _build_evidence(
    commit: Commit, text: str, source: Source, detail: str, status: str = "ok"
) -> Evidence:
    if commit == UNKNOWN_COMMIT:
        return Evidence(text, source.kind, status, detail)
    return Evidence(text, source.kind, status, detail, commit.id, commit.author, commit.date)


def read_from_disk(top: str, path: str) -> PathContent | None:
    """Read a path of the worktree, unless a part of it is a link; None if nothing is there."""
    full = os.path.join(os.path.realpath(top), path)
    if os.path.realpath(full) != full:
        return PathContent("link")
    try:
        mode = os.lstat(full).st_mode
        if stat.S_ISDIR(mode):
            return PathContent("directory")
        data = read_regular(full, MAX_FILE_BYTES + 1)
    except OSError as error:
        return PathContent("link") if error.errno == errno.ELOOP else None
    return PathContent("large") if len(data) > MAX_FILE_BYTES else PathContent("file", data)
