"""Answers of a clone without an index: pinned memories, and those that govern files.

Building the index of many memories takes longer than an agent host waits. Until another process has
built it, an answer considers only a few memories, selected by the first bytes of each file. This
module decides when that is necessary, and selects them.
"""

from __future__ import annotations

import os

from memtool.store.files import read_regular

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from memtool.store.context import Context

MIN_FILES = 2_000
"""Fewer memories can be indexed within the time of a hook."""
MAX_MEMORIES = 300
"""Memories that such an answer considers."""
_HEAD_BYTES = 2_048
"""Bytes at the beginning of a file that contain its keys."""
_PINNED = b"\nstatus: pinned"
_FILES = b"\nfiles:"
_GOVERNING_KINDS = (
    b"\ntype: decision",
    b"\ncategory: decision",
    b"\ncategory: pattern",
    b"\ncategory: preference",
    b"\ncategory: warning",
)
_SUPERSEDES = b"\nsupersedes:"


def is_late(context: Context) -> bool:
    """Return whether the index must be built first, so that an answer would come late."""
    from memtool.index import index  # imported only for many memories without an index

    return context.is_cached and not index.is_built(context)


def narrow(context: Context, files: Iterable[str]) -> bool:
    """Restrict a context with many memories to a few; return whether it was restricted.

    `files` are paths from the top. Memories that replace a selected one are selected as well.
    """
    from memtool.index import index

    repository, snapshot = context.repository, context.snapshot()
    paths = [entry.path for entry in snapshot.entries]
    if len(paths) < MIN_FILES:
        return False
    heads = {path: _read_head(os.path.join(repository.top, path)) for path in paths}
    wanted = _split_paths(files)
    selected = dict.fromkeys(path for path, head in heads.items() if _PINNED in head)
    if wanted:
        selected |= dict.fromkeys(path for path, head in heads.items() if _may_govern(head, wanted))
    selected = dict.fromkeys(list(selected)[:MAX_MEMORIES])
    selected |= _find_newer(heads, selected)
    entries = tuple(entry for entry in snapshot.entries if entry.path in selected)
    catalog = index.open_files(context, snapshot.replace(entries=entries), is_stored=False)
    catalog.is_partial = True
    context.trees_by_commit = {}
    index.register(context, catalog)
    return True


def is_partial(context: Context) -> bool:
    """Return whether a context was restricted by `narrow`."""
    seen = None if context.trees_by_commit is None else context.trees_by_commit.get("")
    return seen is not None and seen.is_partial


def _read_head(path: str) -> bytes:
    """Return the first bytes of a file, up to the end of its keys; empty if it cannot be read."""
    try:
        head = read_regular(path, _HEAD_BYTES)
    except OSError:
        return b""
    return head.replace(b"\r\n", b"\n").partition(b"\n---")[0]


def _split_paths(files: Iterable[str]) -> list[bytes]:
    """Return a wildcard and all parts of the paths: a pattern for a file contains one of them."""
    parts = {b"*": None} if (files := list(files)) else {}
    for path in files:
        for name in path.split("/"):
            parts[os.fsencode(name)] = None
    return list(parts)


def _may_govern(head: bytes, parts: Iterable[bytes]) -> bool:
    _before, mark, named = head.partition(_FILES)
    if not mark or not any(kind in head for kind in _GOVERNING_KINDS):
        return False
    return any(part in named for part in parts)


def _find_newer(heads: Mapping[str, bytes], selected: Mapping[str, None]) -> dict[str, None]:
    """Return the memories that replace a selected one, directly or over several steps."""
    superseding = {
        path: head.partition(_SUPERSEDES)[2] for path, head in heads.items() if _SUPERSEDES in head
    }
    newer: dict[str, None] = {}
    todo = list(selected)
    while todo and len(newer) < MAX_MEMORIES:
        name = os.fsencode(os.path.basename(todo.pop()).removesuffix(".md"))
        replacing = [
            path
            for path, named in superseding.items()
            if name in named and path not in selected and path not in newer
        ]
        newer |= dict.fromkeys(replacing)
        todo += replacing
    return newer
