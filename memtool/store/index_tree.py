"""The tree of git's index, without reading the entries: git keeps its id at the end of the file.

Git writes that part, the cache tree, before it calls the hooks of a commit, makes the commit of
it, and skips by it what is the same when it compares. In a tree of 100,000 files the entries are
11 MB, and to load them takes git as long as Python takes to start. Where anything is in doubt,
there is no answer, and git has to look at the entries.

Layout (gitformat-index): a head with the number of entries, the entries, extensions, a hash. An
extension is a name of four letters, a size, and so many bytes.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from memtool.store.repository import Repository

ENDS = (1 << 14, 1 << 20)
"""Bytes of the end of the file that are read: enough for 400 directories, or for 20,000."""
_HEAD_BYTES = 12
_HASH_BYTES = {"sha1": 20, "sha256": 32}
_TREE = b"TREE"
_BEHIND = frozenset({b"REUC", b"UNTR", b"FSMN", b"IEOT", b"EOIE"})
"""Extensions that say nothing about what the tree is. A sparse index has another one."""


def of(repository: Repository) -> str:
    """Return the id of the tree that the index holds, empty where only git can tell."""
    given = repository.git.env.get("GIT_INDEX_FILE", "index")
    base = repository.top if "GIT_INDEX_FILE" in repository.git.env else repository.git_dir
    size = _HASH_BYTES[repository.object_format]
    try:
        with open(os.path.join(base, given), "rb", 0) as file:
            whole = os.fstat(file.fileno()).st_size
            head = file.read(_HEAD_BYTES)
            for end in ENDS if head[:4] == b"DIRC" else ():
                file.seek(max(_HEAD_BYTES, whole - end))
                tree = _cache_tree(file.read()[:-size])
                if tree:
                    return _root(tree, int.from_bytes(head[8:], "big"), size)
    except OSError:
        pass
    return ""


def _cache_tree(tail: bytes) -> bytes:
    """Return the rows of the cache tree from the end of an index, nothing where it is not there."""
    at = tail.rfind(_TREE)
    while at >= 0:
        end = _end(tail, at)
        if _is_chain(tail, end):
            return tail[at + 8 : end]
        at = tail.rfind(_TREE, 0, at)
    return b""


def _end(tail: bytes, at: int) -> int:
    return at + 8 + int.from_bytes(tail[at + 4 : at + 8], "big")


def _is_chain(tail: bytes, at: int) -> bool:
    """Tell whether known extensions, one behind the other, fill the rest."""
    while at < len(tail) and tail[at : at + 4] in _BEHIND:
        at = _end(tail, at)
    return at == len(tail)


def _root(tree: bytes, entries: int, size: int) -> str:
    """Return the id of the first row: no path, all entries, some directories, the id.

    It counts -1 entries where something changed that is not written as a tree yet, or where the
    index holds what a commit cannot: conflicts, or files that are only intended to be added.
    """
    path, _end_of_path, rest = tree.partition(b"\0")
    counts, _line_feed, rest = rest.partition(b"\n")
    count = counts.partition(b" ")[0]
    if path or not count.isdigit() or int(count) != entries or len(rest) < size:
        return ""
    return rest[:size].hex()
