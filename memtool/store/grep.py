"""Words in the files of a commit or of git's index, found by git."""

from __future__ import annotations

import os
import re

from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection

    from memtool.store.git import Git

TIMEOUT_S = 20.0
MAX_LINES_OF_FILE = 20


class WordPlace(Value):
    """A word in a line of a file; lines count from 1."""

    path: str
    line: int
    word: str


def find_words(
    git: Git, words: Collection[str], commit: str = "", excluded_directory: str = ""
) -> list[WordPlace]:
    """Return where whole words are in the texts of a commit, or of git's index, by path and line.

    Of one file only the first 20 lines are returned. A word goes on with letters, digits, `_`, `-`
    and `.`, so that a short id is not found in a longer one.

    Raises:
        MemtoolError: git did not answer within 20 seconds.
    """
    if not words:
        return []
    pattern = "|".join(re.escape(word) for word in sorted(words))
    pathspecs = [":(top)"]
    if excluded_directory:
        pathspecs.append(f":(top,exclude,literal){excluded_directory}")
    answer = git.run(
        "grep",
        "--extended-regexp",
        "--full-name",
        "--line-number",
        "--no-color",
        "--no-recurse-submodules",
        "--null",
        "--only-matching",
        f"--max-count={MAX_LINES_OF_FILE}",
        "-I",
        "-f",
        "-",
        commit or "--cached",
        "--",
        *pathspecs,
        stdin=f"(^|[^A-Za-z0-9_.-])({pattern})($|[^A-Za-z0-9_-])".encode(),
        allowed=(0, 1),
        env={"GIT_LITERAL_PATHSPECS": "0"},
        timeout_s=TIMEOUT_S,
    )
    hits: set[tuple[str, int, str]] = set()
    wanted = re.compile(pattern)
    prefix = f"{commit}:" if commit else ""
    at = 0
    while at < len(answer):
        path_end = answer.index(b"\0", at)
        number_end = answer.index(b"\0", path_end + 1)
        line_end = answer.index(b"\n", number_end + 1)
        path = os.fsdecode(answer[at:path_end]).removeprefix(prefix)
        match = wanted.search(os.fsdecode(answer[number_end + 1 : line_end]))
        if match:
            hits.add((path, int(answer[path_end + 1 : number_end]), match[0]))
        at = line_end + 1
    return [WordPlace(*place) for place in sorted(hits)]
