"""Cochanging: counts for `cochange` which files the last commits changed together.

How closely two files belong together is the share of commits that they have in common, of the
average number of both: a file that every commit touches belongs to none. Bounds are those of
code-maat, but for fewer commits in common, as young repositories have few.
"""

from __future__ import annotations

import os
from itertools import combinations

from memtool.errors import MemtoolError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from memtool.store.repository import Repository

COMMITS = 500
"""Commits that are looked at, without merges: these repeat what their branches say."""
MOST_FILES = 30
"""A commit of more files than this moves or formats, and says nothing about any two of them."""
LEAST_COMMON = 3
LEAST_SHARE = 0.3
MOST_COMPANIONS = 5


def commits(repository: Repository, directory: str, head: str) -> list[list[bytes]]:
    """Return the files of each of the last commits, memories left out; one git process.

    Nothing where git cannot say, as in a clone without the trees of older commits.
    """
    try:
        answer = repository.git.run(
            "log", f"--max-count={COMMITS}", "--no-merges", "--root", "--no-renames",
            "--no-ext-diff", "--name-only", "-z", "--format=%x00%H", "--end-of-options", head,
        )  # fmt: skip
    except MemtoolError:
        return []
    own = os.fsencode(f"{directory}/")
    cut = {commit.encode() for commit in repository.shallow_commits()}
    found: list[list[bytes]] = []
    is_id = is_cut = False
    for token in answer.split(b"\0"):
        if is_id:
            is_cut = token in cut  # seems to write all that it holds
            found.append([])
        elif token and not is_cut:
            path = token.removeprefix(b"\n") if not found[-1] else token
            if not path.startswith(own):
                found[-1].append(path)
        is_id = not token
    return found


def counted(changes: Iterable[list[bytes]]) -> bytes:
    """Return the lines of the table for the files of each commit."""
    alone: dict[bytes, int] = {}
    common: dict[tuple[bytes, bytes], int] = {}
    for change in changes:
        files = sorted({path for path in change if b"\n" not in path})
        if len(files) > MOST_FILES:
            continue
        for path in files:
            alone[path] = alone.get(path, 0) + 1
        for pair in combinations(files, 2):
            common[pair] = common.get(pair, 0) + 1
    near: dict[bytes, list[tuple[float, bytes]]] = {}
    for (one, other), count in common.items():
        share = 2 * count / (alone[one] + alone[other])
        if count >= LEAST_COMMON and share >= LEAST_SHARE:
            near.setdefault(one, []).append((-share, other))
            near.setdefault(other, []).append((-share, one))
    lines = [b""]
    for path in sorted(near):
        best = sorted(near[path])[:MOST_COMPANIONS]
        lines.append(b"\0".join([path, *(name for _share, name in best)]))
    return b"\n".join([*lines, b""])
