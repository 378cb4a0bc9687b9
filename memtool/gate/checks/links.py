"""The links check: do files, commits and ids that a memory names exist?

A named target may be on another branch, or be added later; `files` globs may be ahead of the code.
So this check never refuses a commit. It refuses a range if one of its new memories names a commit
that does not exist: this can only be fixed before the merge.
"""

from __future__ import annotations

from memtool.gate.content import Content, File
from memtool.memory.changes import id_from_path
from memtool.memory.fields import RELATIONS
from memtool.memory.schema import Problem, parse_source
from memtool.memory.visibility import GONE
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from memtool.memory.drift import Drift
    from memtool.memory.memory import Memory
    from memtool.store.sources import Resolution

RENAMED = "renamed-file"
"""The code of the warning that files named by a memory were renamed."""


class NamedTarget(Value):
    """One target that a file names: a `memory`, `file`, `glob`, or `commit`, maybe with a path.

    `target` is an id or a path. For a commit its id is in `text`, the source.
    """

    file: File
    kind: str
    target: str
    line: int
    text: str

    @property
    def key(self) -> tuple[str, str]:
        """The path of the memory, and the text that names the target."""
        return self.file.path, self.text


def check(content: Content) -> Iterator[Problem]:
    """Yield a warning for each target that does not exist, for some in a range an error."""
    # Superseded and deleted memories may name what is gone.
    current = [file for file in content.files if file.memory and _is_current(file.memory, content)]
    wanted = [item for file in current for item in _list_targets(file, content)]
    paths = _find_present(
        content, [item.target for item in wanted if item.kind in ("file", "glob")]
    )
    unresolved = _find_unresolved(content, [item for item in wanted if item.kind == "commit"])
    # Another problem reports a file that cannot be read.
    unreadable = {id_from_path(file.path) for file in content.files if file.memory is None}
    target_exists: dict[str, Callable[[NamedTarget], bool]] = {
        "memory": lambda item: (
            item.target in unreadable or content.supersede_index.has_id(item.target)
        ),
        "commit": lambda item: item.key not in unresolved,
        "file": lambda item: item.target in paths,
        "glob": lambda item: item.target in paths,
    }
    lost = [item for item in wanted if not target_exists[item.kind](item)]
    renamed = _find_renamed(content, lost)
    if renamed:
        from memtool.store.named_paths import normalize
    for item in lost:
        drift = renamed.get(item.file.path)
        if item.kind == "commit":
            yield _make_commit_problem(item, unresolved[item.key], content)
        elif drift is None:
            yield _make_lost_problem(item)
        elif normalize(item.target) not in {move.path for move in drift.moves}:
            gone = {
                file_drift.path: file_drift.name
                for file_drift in drift.files
                if file_drift.why == "gone"
            }
            yield _make_lost_problem(item, gone.get(normalize(item.target), ""))
    for file in current:
        drift = renamed.get(file.path)
        problem = None if drift is None else _make_renamed_problem(file, drift, content)
        if problem is not None:
            yield problem


def _make_lost_problem(item: NamedTarget, probably: str = "") -> Problem:
    """Return the warning that a target does not exist; `probably` is where its file may be."""
    code, what, hint = _FAULTS[item.kind]
    memory = item.file.memory
    id_ = memory.id if memory else ""
    message = f"{item.text} {what}"
    if probably:
        message += f"; it probably moved to {probably}"
        hint = f"memtool supersede {id_} TITLE --file PATH"
    return Problem(item.file.path, item.line, code, message, hint, id_, "warning")


def _make_commit_problem(item: NamedTarget, resolution: Resolution, content: Content) -> Problem:
    """Return the problem of the commit that a source names, or of the path in it."""
    from memtool.store.sources import explain_absent

    named = parse_source(item.text).commit
    if resolution.commit:
        message = f"{item.target} did not exist at commit {named}"
        hint = f"git ls-tree -r --name-only {named}"
    else:
        why, hint = explain_absent(named, resolution)
        message = f"commit {named} {why}"
    id_ = item.file.memory.id if item.file.memory else ""
    severity = "warning"
    if _is_refused(item, resolution, content):
        severity = "error"
        hint += f"; memtool supersede {id_} TITLE --source commit:ID"
    path, line = item.file.path, item.line
    return Problem(path, line, "broken-source", f"source: {message}", hint, id_, severity)


def _is_refused(item: NamedTarget, resolution: Resolution, content: Content) -> bool:
    """Return whether a source refuses a range: its memory is new, and its commit never existed.

    If the author saw the commit, it was rewritten since. A memory on the trusted ref is accepted,
    since it can no longer be fixed.
    """
    if content.kind != "commit" or item.file.path not in content.new or item.file.memory is None:
        return False
    from memtool.memory.sighting import parse_sighting

    is_seen = (
        parse_sighting(item.file.memory).find_second(parse_source(item.text).commit) is not None
    )
    if is_seen and not resolution.commit:
        return False
    if not content.trusted:
        return True
    from memtool.store.sources import find_objects

    place = content.trusted, item.file.path
    return find_objects(content.repository, [place])[place] is None


def _make_renamed_problem(file: File, drift: Drift, content: Content) -> Problem | None:
    """Return one warning about all renamed files of a memory, None if there are none.

    A source may name an old path if `files` has the new one, since it is the origin of the claim.
    Renames that are not committed are left out: `maintain` makes its plan from HEAD.
    """
    memory = file.memory
    assert memory is not None
    infos = content.repository.git.infos([f"{content.head}:{move.path}" for move in drift.moves])
    moves = [
        move
        for move, info in zip(drift.moves, infos, strict=True)
        if move.now not in memory.items("files") and (move.commit or info is None)
    ]
    if not moves:
        return None
    import shlex  # few files are renamed

    from memtool.memory.drift import BROKEN
    from memtool.memory.trust import SHORT_ID_DIGITS

    first = min(moves, key=lambda move: move.is_probable)
    where = f" (renamed in {first.commit[:SHORT_ID_DIGITS]})" if first.commit else ""
    suffix = f"; {len(moves) - 1} more of its paths moved" if moves[1:] else ""
    what = "probably moved to" if first.is_probable else "is now"
    message = f"{first.path} {what} {first.now}{where}{suffix}"
    hint = "memtool maintain --only renames --apply"
    if any(move.is_probable for move in drift.moves) or drift.level == BROKEN:
        hint = f"memtool supersede {memory.id} TITLE --file {shlex.quote(first.now)}"
    line = file.find_line("files" if memory.items("files") else "source")
    return Problem(file.path, line, RENAMED, message, hint, memory.id, "warning")


def _find_renamed(content: Content, lost: Sequence[NamedTarget]) -> Mapping[str, Drift]:
    """Return the drift of the memories that may name renamed files, by path of the memory.

    Empty before the first commit.
    """
    files = {item.file.path: item.file for item in lost if item.kind in ("file", "glob")}
    if not files or not content.head:
        return {}
    from memtool.gate.code_drift import find_drift  # most memories only name existing files

    return find_drift(content, files.values(), is_landed=True)


def _is_current(memory: Memory, content: Content) -> bool:
    return memory.status not in GONE and not content.supersede_index.is_replaced(memory.id)


_FAULTS: dict[str, tuple[str, str, str]] = {
    "memory": ("broken-link", "names a memory that does not exist", "memtool list"),
    "file": (
        "broken-source",
        "does not exist",
        "use the path from the top of the repository, as git ls-files prints it",
    ),
    "glob": (
        "no-such-file",
        "does not match any file",
        "use paths from the top of the repository, as git ls-files prints them",
    ),
}
"""Code, message and hint for a missing target of each kind, except commits."""


def _list_targets(file: File, content: Content) -> Iterable[NamedTarget]:
    if file.cached is None:
        return find_targets(file, content.supersede_index.has_id)
    return [NamedTarget(file, *name) for name in file.cached.names]


def find_targets(
    file: File, is_there: Callable[[str], bool] = lambda _id: False
) -> Iterator[NamedTarget]:
    """Yield the targets that a memory names, except those that it supersedes.

    Links of the body are left out if all its possible links lead to existing memories.
    """
    memory = file.memory
    assert memory is not None
    for key in RELATIONS[1:]:  # the lineage check handles supersedes
        for id_ in memory.items(key):
            yield NamedTarget(file, "memory", id_, file.find_line(key), f"{key}: {id_}")
    line = file.find_line("source")
    for text in memory.items("source"):
        source = parse_source(text)
        kind = "commit" if source.commit else source.kind
        if kind in ("memory", "commit", "file"):
            yield NamedTarget(file, kind, source.target, line, text)
    for glob in memory.items("files"):
        yield NamedTarget(file, "glob", glob, file.find_line("files"), f"files: {glob}")
    if "[[" in memory.body and not all(map(is_there, _find_linked_ids(memory.body))):
        from memtool.memory.memory import find_links  # markdown-it: six interpreter starts

        for link in find_links(memory.body):
            if link.kind == "memory":
                at, shown = file.body_line + link.line - 1, f"[[{link.target}]]"
                yield NamedTarget(file, "memory", link.target, at, shown)


def _find_linked_ids(body: str) -> list[str]:
    """Return every id in double brackets, also those in code; an empty id if it is unclear."""
    if "\\" in body or "&" in body:  # escapes change the id
        return [""]
    return [part.partition("]]")[0].strip() for part in body.split("[[")[1:]]


def _find_present(content: Content, wanted: Sequence[str]) -> frozenset[str]:
    """Return the paths and globs that match a file of the tree, or a directory with files."""
    if not wanted:
        return frozenset()
    from memtool.store.named_paths import find_present

    # Git can only look names up in the tree of a commit.
    tree = content.head if content.kind == "commit" else ""
    return find_present(content.repository, wanted, tree, with_worktree=content.kind == "worktree")


def _find_unresolved(
    content: Content, items: Sequence[NamedTarget]
) -> dict[tuple[str, str], Resolution]:
    """Return the resolutions of sources whose commit does not exist or does not have their path.

    The commit may be on any branch, or have been rewritten since.
    """
    if not items:
        return {}
    from memtool.store.sources import AMBIGUOUS, MISSING, Citation, resolve

    cited = {item.key: Citation(parse_source(item.text)) for item in items}
    resolved = resolve(content.repository, cited.values())
    resolutions = {key: resolved[citation] for key, citation in cited.items()}
    lost = [
        item
        for item in items
        if resolutions[item.key].status == MISSING and not resolutions[item.key].commit
    ]
    if lost and content.head:
        resolutions |= _resolve_landed(content, lost)
    return {
        key: resolution
        for key, resolution in resolutions.items()
        if resolution.status == MISSING or resolution.type == AMBIGUOUS
    }


def _resolve_landed(
    content: Content, items: Sequence[NamedTarget]
) -> dict[tuple[str, str], Resolution]:
    """Resolve sources whose commit is not in this clone, but may have been rewritten."""
    from memtool.memory.sighting import parse_sighting
    from memtool.store.landing import Landings
    from memtool.store.provenance import Basis
    from memtool.store.sources import Citation, resolve

    repository = content.repository
    basis = Basis(repository, content.directory, content.head, content.trusted, "")
    cited = {}
    for item in items:
        source = parse_source(item.text)
        memory = item.file.memory
        second = parse_sighting(memory).find_second(source.commit) if memory is not None else None
        cited[item.key] = Citation(source, "", item.file.path, second)
    resolved = resolve(repository, cited.values(), (), Landings(basis))
    return {key: resolved[citation] for key, citation in cited.items()}
