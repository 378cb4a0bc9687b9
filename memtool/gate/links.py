"""The links check: do the memories, files and commits that a memory names exist. Warnings only.

What a memory names may lie on another branch, or come later; `files` globs may also be ahead of
the code. So nothing here refuses a commit.
"""

from __future__ import annotations

import os

from memtool.gate.content import Content, File
from memtool.memory import sources
from memtool.memory.fields import RELATIONS
from memtool.memory.problem import Problem
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from memtool.memory.memory import Memory

MOST_FOLDERS = 100
"""Directories that git is asked for one by one; for more, it lists everything."""


class Wanted(Value):
    """One thing that a file names: a `memory`, a `file`, a `glob`, or a `commit`, maybe with path.

    `target` is an id, a path, or `COMMIT` or `COMMIT:PATH`.
    """

    file: File
    kind: str
    target: str
    line: int
    said: str


def check(content: Content) -> Iterator[Problem]:
    """Yield a warning for each name that leads nowhere."""
    # What is superseded or deleted may speak of what is gone.
    current = [file for file in content.files if file.memory and _is_current(file.memory, content)]
    wanted = [item for file in current for item in _wanted(file)]
    paths = _Paths(content, [item.target for item in wanted if item.kind in ("file", "glob")])
    commits = _resolved(content, [item.target for item in wanted if item.kind == "commit"])
    for item in wanted:
        code, what, hint = _FAULTS[item.kind]
        is_there = {
            "memory": content.kin.is_there,
            "commit": commits.__contains__,
        }.get(item.kind, paths.is_there)
        if not is_there(item.target):
            id_ = item.file.memory.id if item.file.memory else ""
            message = f"{item.said} {what}"
            yield Problem(
                item.file.path, item.line, code, message, hint, id=id_, severity="warning"
            )


def _is_current(memory: Memory, content: Content) -> bool:
    return memory.status not in ("deleted", "archived") and not content.kin.newer(memory.id)


_FAULTS: dict[str, tuple[str, str, str]] = {
    "memory": ("broken-link", "names a memory that is not here", "memtool list shows every id"),
    "commit": ("broken-source", "is not in this clone", "git fetch --all brings what is missing"),
    "file": (
        "broken-source",
        "is not there",
        "write the path from the top of the repository, as git ls-files shows it",
    ),
    "glob": (
        "no-such-file",
        "matches no file",
        "write paths from the top of the repository, as git ls-files shows them",
    ),
}
"""Code, message and hint for each kind of name that leads nowhere."""


def _wanted(file: File) -> Iterable[Wanted]:
    if file.known is None:
        return named(file)
    return [Wanted(file, *name) for name in file.known.names]


def named(file: File) -> Iterator[Wanted]:
    """Yield what a memory names, other than what it supersedes."""
    memory = file.memory
    assert memory is not None
    for key in RELATIONS[1:]:  # what supersedes names is the lineage check's
        for id_ in memory.items(key):
            yield Wanted(file, "memory", id_, file.line_of(key), f"{key}: {id_}")
    line = file.line_of("source")
    for text in memory.items("source"):
        source = sources.parse(text)
        if source.kind == "file" and source.commit:
            yield Wanted(file, "commit", f"{source.commit}:{source.target}", line, text)
        elif source.kind in ("memory", "commit", "file"):
            yield Wanted(file, source.kind, source.target, line, text)
    for glob in memory.items("files"):
        yield Wanted(file, "glob", glob, file.line_of("files"), f"files: {glob}")
    if "[[" in memory.body:
        from memtool.memory import body  # markdown-it: six interpreter starts

        for link in body.links(memory.body):
            if link.kind == "memory":
                shown = f"[[{link.target}]]"
                yield Wanted(file, "memory", link.target, file.body_line + link.line - 1, shown)


class _Paths:
    """The files of the tree that names are looked up in, as far as names ask for them."""

    def __init__(self, content: Content, wanted: Iterable[str]) -> None:
        self._top = content.repository.top if content.kind == "worktree" else ""
        folders = sorted({_folder(path) for path in wanted})
        self._paths = _listed(content, folders) if folders else []
        self._known: dict[str, bool] = {}

    def is_there(self, pattern: str) -> bool:
        """Tell whether a path or glob names a file, or a directory with files."""
        if pattern not in self._known:
            self._known[pattern] = self._is_there(pattern)
        return self._known[pattern]

    def _is_there(self, pattern: str) -> bool:
        from bisect import bisect_left

        from memtool.search import globs

        if self._top and os.path.lexists(os.path.join(self._top, pattern)):
            return True
        clean = "/".join(part for part in pattern.split("/") if part not in ("", "."))
        start = _fixed(clean)
        for path in self._paths[bisect_left(self._paths, start) :]:
            if not path.startswith(start):
                return False
            if globs.governs(clean, path):
                return True
        return not clean  # the top itself


def _fixed(pattern: str) -> str:
    """Return what stands before the first wildcard."""
    ends = [at for at in (pattern.find("*"), pattern.find("?")) if at >= 0]
    return pattern[: min(ends)] if ends else pattern


def _folder(pattern: str) -> str:
    """Return the directory that holds all that a pattern can match; empty for the top."""
    folder = _fixed(pattern).rpartition("/")[0]
    return "/".join(part for part in folder.split("/") if part not in ("", "."))


def _listed(content: Content, folders: Sequence[str]) -> list[str]:
    """Return the files below directories, sorted."""
    some = [] if "" in folders or len(folders) > MOST_FOLDERS else folders
    git = content.repository.git
    if content.kind == "commit":
        answer = git.run(
            "ls-tree", "-r", "-z", "--name-only", "--full-tree", content.head, "--", *some
        )
    else:
        answer = git.run("ls-files", "-z", "--", *some)
    return sorted({os.fsdecode(path) for path in answer.split(b"\0") if path})


def _resolved(content: Content, wanted: Iterable[str]) -> frozenset[str]:
    """Return which of the commits, or paths in commits, this clone has.

    In a shallow clone every one of them counts as there, since nobody can tell.
    """
    names = sorted(set(wanted))
    if not names or content.repository.is_shallow:
        return frozenset(names)
    asked = "".join(f"{name if ':' in name else name + '^{commit}'}\n" for name in names)
    rows = content.repository.git.run(
        "cat-file", "--batch-check=%(objectname)", stdin=asked.encode(errors="surrogateescape")
    )
    answers = rows.decode(errors="replace").splitlines()
    return frozenset(
        name
        for name, row in zip(names, answers, strict=True)
        if row.endswith(" ambiguous") or " " not in row
    )
