"""Evidence: does a source of a memory resolve here, and what does it say.

Only git and the worktree are asked. A file is read where git tracks it, never through links, and
never from the git directory: a memory is untrusted, and must not make memtool show secrets.
"""

from __future__ import annotations

import errno
import os
import posixpath
import stat
from collections.abc import Iterable

from memtool.memory.schema import Source, parse_source
from memtool.store.files import read_regular
from memtool.store.history import MAX_FILE_BYTES, NOBODY, Commit, History, Stored
from memtool.store.provenance import SHORT
from memtool.store.snapshot import Location
from memtool.store.sources import (
    ABSENT,
    AMBIGUOUS,
    BEYOND_GIT,
    MISSING,
    Citation,
    Resolution,
    resolve,
)
from memtool.value import Value

EXCERPT = 100
"""Characters of a file's line that are shown."""
_WORDS = {
    "directory": "is a directory",
    "link": "is a link or device, or lies behind a link",
    "submodule": "is a submodule",
    "large": f"is larger than {MAX_FILE_BYTES >> 20} MiB",
}


class Evidence(Value):
    """What became of one source. `status` is ok, missing, or unknown where git cannot say.

    `detail` is one clause for people; commit, author and date are those of the commit that is the
    source, or that last changed the file or the lines; empty where there is none.
    """

    source: str
    kind: str
    status: str
    detail: str
    commit: str = ""
    author: str = ""
    date: str = ""


def evidence(
    history: History, location: Location, head: str, wanted: Iterable[str]
) -> dict[str, Evidence]:
    """Look sources up, by their text; files are those of the snapshot unless they name a commit.

    `head` is the commit that a worktree or tree belongs to, empty before the first one. Sources
    that only a person, a site or a session can answer for are unknown, memories are not looked up.
    """
    cited = {text: Citation(parse_source(text), head) for text in sorted(set(wanted))}
    resolved = resolve(
        location.repository,
        (one for one in cited.values() if one.source.kind in ("commit", "file")),
    )
    found = {}
    for text, citation in cited.items():
        source = citation.source
        if source.kind not in ("commit", "file"):
            found[text] = Evidence(text, source.kind, "unknown", BEYOND_GIT.get(source.kind, ""))
        elif source.commit and not resolved[citation].commit:
            found[text] = _absent(history, text, source, resolved[citation])
        elif source.kind == "commit":
            commit = history.commit(resolved[citation].commit)
            found[text] = _with(
                commit, text, source, commit.subject or "a commit without a message"
            )
        else:
            found[text] = _file(history, location, text, source, resolved[citation])
    return found


def _absent(history: History, text: str, source: Source, resolution: Resolution) -> Evidence:
    detail = f"commit {source.commit} is not in this clone"
    if resolution.type == AMBIGUOUS:
        detail = f"several commits begin with {source.commit}"
    elif history.boundary:
        detail = f"{detail}, which is shallow"
    return Evidence(text, source.kind, resolution.status, detail)


def _file(
    history: History, location: Location, text: str, source: Source, resolution: Resolution
) -> Evidence:
    path, at = posixpath.normpath(source.target), resolution.commit
    is_held = at and resolution.status != MISSING and resolution.type != ABSENT
    committed = history.stored(at, path) if is_held else None
    is_here = location.kind == "worktree" and not source.commit
    present = _on_disk(location.repository.top, path) if is_here else committed
    if present is None and os.path.exists(
        os.path.join(location.repository.git_dir, "info", "sparse-checkout")
    ):
        present = committed
    where = "" if is_here else f" at {at[:SHORT]}"
    if present is None and resolution.type == ABSENT:
        return Evidence(text, "file", "unknown", f"this partial clone does not hold {path}{where}")
    if present is None:
        gone = f"{path} is not there{where}"
        if committed:
            gone = f"{path} is gone from the worktree"
        return Evidence(text, "file", "missing", gone)
    if path.split("/")[0] == ".git":
        return Evidence(text, "file", "unknown", f"{path} is git's own")
    kind = present.kind if committed is None or present.kind != "file" else committed.kind
    if kind != "file":
        status = "ok" if kind == "directory" and not source.lines else "unknown"
        last = history.author_of(history.last(at, path)) if committed else NOBODY
        return _with(last, text, source, f"{path} {_WORDS[kind]}", status)
    if committed is None:
        return Evidence(text, "file", "ok", f"{path} is there, but not committed")
    if source.lines is None:
        state = "" if present == committed else ", changed and not committed"
        return _with(
            history.author_of(history.last(at, path)), text, source, f"{path}{where}{state}"
        )
    return _lines(history, at, text, source, present, committed)


def _lines(
    history: History, at: str, text: str, source: Source, present: Stored, committed: Stored
) -> Evidence:
    """Return the text of some lines of a file, and who wrote them last."""
    assert source.lines is not None
    first, last = source.lines
    path = posixpath.normpath(source.target)
    rows = present.data.replace(b"\r\n", b"\n").split(b"\n")  # as git may check files out
    rows = rows[:-1] if rows[-1] == b"" else rows
    if last > len(rows):
        return Evidence(text, "file", "missing", f"{path} has only {len(rows)} lines")
    wanted = rows[first - 1 : last]
    excerpt = _excerpt(wanted)
    if committed.data.replace(b"\r\n", b"\n").split(b"\n")[first - 1 : last] != wanted:
        return Evidence(text, "file", "ok", f"{excerpt} (changed and not committed)")
    blamed = history.blame(at, path, source.lines)
    return _with(history.author_of(history.newest(blamed.values())), text, source, excerpt)


def _excerpt(rows: list[bytes]) -> str:
    if any(b"\0" in row for row in rows):
        return "(binary)"
    said = (" ".join(row.decode(errors="replace").split()) for row in rows)
    line = next((row for row in said if any(map(str.isalnum, row))), "")
    return f'"{line[:EXCERPT]}{"…" if len(line) > EXCERPT else ""}"'


def _with(commit: Commit, text: str, source: Source, detail: str, status: str = "ok") -> Evidence:
    if commit == NOBODY:
        return Evidence(text, source.kind, status, detail)
    return Evidence(text, source.kind, status, detail, commit.id, commit.author, commit.date)


def _on_disk(top: str, path: str) -> Stored | None:
    """Read a file of the worktree, where no part of its path is a link."""
    full = os.path.join(os.path.realpath(top), path)
    if os.path.realpath(full) != full:
        return Stored("link")
    try:
        mode = os.lstat(full).st_mode
        if stat.S_ISDIR(mode):
            return Stored("directory")
        data = read_regular(full, MAX_FILE_BYTES + 1)
    except OSError as error:
        return Stored("link") if error.errno == errno.ELOOP else None
    return Stored("large") if len(data) > MAX_FILE_BYTES else Stored("file", data)
