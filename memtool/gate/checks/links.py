"""The links check: do files, commits and ids that a memory names exist?

What a memory names may lie on another branch, or come later; `files` globs may also be ahead of
the code. So nothing here refuses a commit.
"""

from __future__ import annotations

import os

from memtool.gate.content import Content, File
from memtool.memory.fields import RELATIONS
from memtool.memory.schema import Problem, Source, parse_source
from memtool.memory.visibility import GONE
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from memtool.memory.memory import Memory

MOST_FOLDERS = 100
"""Directories or files that git is asked for one by one; for more, it lists everything."""


class NamedTarget(Value):
    """One thing that a file names: a `memory`, a `file`, a `glob`, or a `commit`, maybe with path.

    `target` is an id or a path; of a commit `text`, the source, says which.
    """

    file: File
    kind: str
    target: str
    line: int
    text: str


def check(content: Content) -> Iterator[Problem]:
    """Yield a warning for each name that leads nowhere."""
    # What is superseded or deleted may speak of what is gone.
    current = [file for file in content.files if file.memory and _is_current(file.memory, content)]
    wanted = [item for file in current for item in _wanted(file, content)]
    paths = _present(content, [item.target for item in wanted if item.kind in ("file", "glob")])
    unresolved = _unresolved(content, [item.text for item in wanted if item.kind == "commit"])
    is_there: dict[str, Callable[[NamedTarget], bool]] = {
        "memory": lambda item: content.kin.is_there(item.target),
        "commit": lambda item: item.text not in unresolved,
        "file": lambda item: item.target in paths,
        "glob": lambda item: item.target in paths,
    }
    lost = [item for item in wanted if not is_there[item.kind](item)]
    renamed = _renamed(content, lost)
    for item in lost:
        if (item.file.path, _clean(item.target)) not in renamed:
            code, what, hint = _FAULTS[item.kind]
            file, message = item.file, f"{item.text} {what}"
            id_ = file.memory.id if file.memory else ""
            yield Problem(file.path, item.line, code, message, hint, id_, "warning")


def _renamed(content: Content, lost: Sequence[NamedTarget]) -> frozenset[tuple[str, str]]:
    """Return the files that were renamed since a memory named them, each with the memory's path.

    `memtool drift` follows them, so they are not missing. Nothing is known before the first commit.
    """
    files = {
        item.file.path: item.file
        for item in lost
        if item.kind in ("file", "glob") and _fixed(item.target) == item.target
    }
    if not files or not content.head:
        return frozenset()
    from memtool.search import drift_verdict  # most memories name only what is there
    from memtool.store import snapshot
    from memtool.store.commit_files import CommitFiles
    from memtool.store.provenance import Witness
    from memtool.store.tree import Record

    repository = content.repository
    taken = snapshot.of_commit(repository, content.directory, content.head)
    records = [Record(one.memory, one.path, one.oid) for one in files.values() if one.memory]
    asked = [one for one in drift_verdict.questions(records, Witness(taken)) if one.base]
    head = CommitFiles(repository, content.head, is_worktree=content.kind == "worktree")
    return frozenset(
        (path, one.path)
        for path, (drift, _watched) in drift_verdict.judge(repository, head, asked).items()
        for one in drift.files
        if one.now not in ("", one.path)
    )


def _is_current(memory: Memory, content: Content) -> bool:
    return memory.status not in GONE and not content.kin.is_replaced(memory.id)


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


def _wanted(file: File, content: Content) -> Iterable[NamedTarget]:
    if file.known is None:
        return named(file, content.kin.is_there)
    return [NamedTarget(file, *name) for name in file.known.names]


def named(file: File, is_there: Callable[[str], bool] = lambda _id: False) -> Iterator[NamedTarget]:
    """Yield what a memory names, other than what it supersedes.

    Links of the body are left out where all that may be one leads to a memory that is there.
    """
    memory = file.memory
    assert memory is not None
    for key in RELATIONS[1:]:  # what supersedes names is the lineage check's
        for id_ in memory.items(key):
            yield NamedTarget(file, "memory", id_, file.line_of(key), f"{key}: {id_}")
    line = file.line_of("source")
    for text in memory.items("source"):
        source = parse_source(text)
        kind = "commit" if source.commit else source.kind
        if kind in ("memory", "commit", "file"):
            yield NamedTarget(file, kind, source.target, line, text)
    for glob in memory.items("files"):
        yield NamedTarget(file, "glob", glob, file.line_of("files"), f"files: {glob}")
    if "[[" in memory.body and not all(map(is_there, _linked(memory.body))):
        from memtool.memory.memory import links  # markdown-it: six interpreter starts

        for link in links(memory.body):
            if link.kind == "memory":
                at, shown = file.body_line + link.line - 1, f"[[{link.target}]]"
                yield NamedTarget(file, "memory", link.target, at, shown)


def _linked(body: str) -> list[str]:
    """Return every id in double brackets, also those in code; an empty one where it is unclear."""
    if "\\" in body or "&" in body:  # escapes: what is read is not what is written
        return [""]
    return [part.partition("]]")[0].strip() for part in body.split("[[")[1:]]


def _present(content: Content, wanted: Iterable[str]) -> frozenset[str]:
    """Return which paths and globs name a file of the tree, or a directory with files."""
    names = sorted(set(wanted))
    # Only a commit is a tree that git can look names up in.
    tree = content.head if content.kind == "commit" else ""
    known = _stored(content, tree, names) if tree else {}
    folders = sorted({_folder(path) for path in names if path not in known})
    paths = _listed(content, tree, folders) if folders else []
    top = content.repository.top if content.kind == "worktree" else ""
    return frozenset(
        name for name in names if (known[name] if name in known else _is_there(name, paths, top))
    )


def _is_there(pattern: str, paths: Sequence[str], top: str) -> bool:
    from bisect import bisect_left

    from memtool.store.files import governs

    if top and os.path.lexists(os.path.join(top, pattern)):
        return True
    clean = _clean(pattern)
    start = _fixed(clean)
    for path in paths[bisect_left(paths, start) :]:
        if not path.startswith(start):
            return False
        if governs(clean, path):
            return True
    return not clean  # the top itself


def _fixed(pattern: str) -> str:
    """Return what is before the first wildcard."""
    ends = [at for at in (pattern.find("*"), pattern.find("?")) if at >= 0]
    return pattern[: min(ends)] if ends else pattern


def _folder(pattern: str) -> str:
    """Return the directory that holds all that a pattern can match; empty for the top."""
    return _clean(_fixed(pattern).rpartition("/")[0])


def _clean(path: str) -> str:
    return "/".join(part for part in path.split("/") if part not in ("", "."))


def _stored(content: Content, tree: str, names: Iterable[str]) -> dict[str, bool]:
    """Tell of names without wildcards whether a tree has them, as files or directories."""
    from memtool.store.sources import MISSING, Citation, is_usable, resolve

    plain = {
        name: Citation(Source("file", path), tree)
        for name in names
        if (path := _clean(name)) == _fixed(path) and path and is_usable(path)
    }
    resolved = resolve(content.repository, plain.values())
    return {name: resolved[one].status != MISSING for name, one in plain.items()}


def _listed(content: Content, tree: str, folders: Sequence[str]) -> list[str]:
    """Return the files below directories, sorted."""
    some = [] if "" in folders or len(folders) > MOST_FOLDERS else folders
    git = content.repository.git
    listing = ("ls-tree", "-r", "--name-only", "--full-tree", tree) if tree else ("ls-files",)
    return sorted({*git.names(*listing, "-z", "--", *some)})


def _unresolved(content: Content, texts: Sequence[str]) -> frozenset[str]:
    """Return which sources name a commit, or a path in one, that is missing from this clone.

    It may be on any branch, and what several commits begin with is one of them.
    """
    if not texts:
        return frozenset()
    from memtool.store.sources import MISSING, Citation, resolve

    cited = {text: Citation(parse_source(text)) for text in texts}
    resolved = resolve(content.repository, cited.values())
    return frozenset(text for text, one in cited.items() if resolved[one].status == MISSING)
