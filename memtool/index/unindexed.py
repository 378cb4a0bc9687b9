"""What a clone without an index can answer at once: what is pinned, and what governs files.

Building the index of many memories takes longer than an agent host waits. Until another process has
built it, an answer looks at few memories: each file's first bytes say whether it is one of them. It
owns when that is so, and which they are.
"""

from __future__ import annotations

import os

from memtool.store.files import read_regular

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from memtool.store.context import Context

LEAST_FILES = 2_000
"""Fewer memories are indexed within the time of a hook."""
MOST_READ = 300
"""Memories that such an answer looks at."""
_HEAD = 2_048
"""Bytes of a file that hold its keys."""
_PINNED = b"\nstatus: pinned"
_FILES = b"\nfiles:"
_RULING = (b"\ntype: decision", b"\ncategory: decision", b"\ncategory: warning")
_OLDER = b"\nsupersedes:"


def is_late(context: Context) -> bool:
    """Tell whether an index is missing that may be built, so that an answer would come late."""
    from memtool.index import index  # only who has many memories and no index is late

    return context.is_cached and not index.is_built(context)


def narrow(context: Context, files: Iterable[str]) -> bool:
    """Let a context see few memories, where there are many; return whether it does.

    `files` are paths from the top. What replaces a memory that is seen is seen as well.
    """
    from memtool.index import index

    repository, taken = context.repository, context.snapshot()
    paths = [entry.path for entry in taken.entries]
    if len(paths) < LEAST_FILES:
        return False
    heads = {path: _head(os.path.join(repository.top, path)) for path in paths}
    wanted = _parts(files)
    found = dict.fromkeys(path for path, head in heads.items() if _PINNED in head)
    if wanted:
        found |= dict.fromkeys(path for path, head in heads.items() if _may_rule(head, wanted))
    found = dict.fromkeys(list(found)[:MOST_READ])
    found |= _newer(heads, found)
    entries = tuple(entry for entry in taken.entries if entry.path in found)
    few = index.open_files(context, taken.replace(entries=entries), is_stored=False)
    few.is_partial = True
    context.opened = {}
    index.keep(context, few)
    return True


def is_partial(context: Context) -> bool:
    """Tell whether a context sees few of its memories, after `narrow`."""
    seen = None if context.opened is None else context.opened.get("")
    return seen is not None and seen.is_partial


def _head(path: str) -> bytes:
    """Return the keys of a memory, or the first bytes of its file; empty where it has none."""
    try:
        head = read_regular(path, _HEAD)
    except OSError:
        return b""
    return head.replace(b"\r\n", b"\n").partition(b"\n---")[0]


def _parts(files: Iterable[str]) -> list[bytes]:
    """Return what a pattern for one of the files holds at least: a wildcard or a part of a path."""
    found = {b"*": None} if (files := list(files)) else {}
    for path in files:
        for name in path.split("/"):
            found[os.fsencode(name)] = None
    return list(found)


def _may_rule(head: bytes, parts: Iterable[bytes]) -> bool:
    _before, mark, named = head.partition(_FILES)
    if not mark or not any(kind in head for kind in _RULING):
        return False
    return any(part in named for part in parts)


def _newer(heads: Mapping[str, bytes], found: Mapping[str, None]) -> dict[str, None]:
    """Return the memories that replace one of those found, and what replaces these."""
    later = {path: head.partition(_OLDER)[2] for path, head in heads.items() if _OLDER in head}
    newer: dict[str, None] = {}
    todo = list(found)
    while todo and len(newer) < MOST_READ:
        name = os.fsencode(os.path.basename(todo.pop()).removesuffix(".md"))
        more = [
            path
            for path, named in later.items()
            if name in named and path not in found and path not in newer
        ]
        newer |= dict.fromkeys(more)
        todo += more
    return newer
