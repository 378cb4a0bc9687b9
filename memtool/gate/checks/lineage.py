"""The lineage check: dangling ids, cycles and forks."""

from __future__ import annotations

from memtool.gate.content import Content, File
from memtool.memory.schema import Problem
from memtool.store.messages import read_purged_ids
from memtool.value import first_few

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from memtool.memory.lineage import Lineage

PURGES_VARIABLE = "MEMTOOL_PURGES"
"""The environment variable with the purged ids, for the hook, which has no message yet."""


def check(content: Content) -> Iterator[Problem]:
    """Yield cycles, missing and duplicate ids, superseded non-heads, and forks."""
    files = {file.memory.id: file for file in content.files if file.memory is not None}
    gone = {
        version.id
        for step in content.steps
        for version in step.before
        if not content.supersede_index.has_id(version.id)
    }
    lineage = content.supersede_index.build_lineage(files.keys() | gone)
    yield from _find_duplicate_ids(content)
    yield from _find_similar_names(content)
    yield from _find_cycles(files, lineage)
    yield from _find_dangling(content, files, gone, lineage)
    non_head_problems = list(_find_non_heads(content, files, lineage))
    yield from non_head_problems
    yield from _find_forks(files, lineage, {problem.id for problem in non_head_problems})


def _find_cycles(files: dict[str, File], lineage: Lineage) -> Iterator[Problem]:
    for cycle in lineage.find_cycles():
        id_list = first_few(cycle, 5)
        for id_ in cycle:
            if id_ in files:
                message = f"it supersedes itself, through {id_list}"
                yield _make_problem(
                    files[id_], "cycle", message, "remove one supersedes of the cycle"
                )


def _find_dangling(
    content: Content, files: dict[str, File], gone: set[str], lineage: Lineage
) -> Iterator[Problem]:
    for newer, missing in lineage.find_dangling():
        if content.supersede_index.has_id(missing) or not (newer in files or missing in gone):
            continue
        if missing in content.purges or _is_purged(content, missing):
            continue
        path = content.supersede_index.find_rows(newer)[0].path
        line = files[newer].find_line("supersedes") if newer in files else 1
        message = f"it supersedes {missing}, which does not exist here"
        hint = f"git log --all -- '*{missing}.md'"
        yield Problem(path, line, "dangling", message, hint, newer)


def _is_purged(content: Content, id_: str) -> bool:
    """Return whether an earlier commit purged a memory and names it in its trailer."""
    if not content.head:
        return False
    return id_ in read_purged_ids(content.repository.git, f"--grep={id_}", content.head, "--")


def _find_non_heads(
    content: Content, files: dict[str, File], lineage: Lineage
) -> Iterator[Problem]:
    """Yield new memories that supersede a memory that is not a head.

    In a merge and in old commits this is a fork, which its author could not see.
    """
    if content.kind == "commit" or len(content.steps) != 1:
        return
    (step,) = content.steps
    new = {version.id for version in step.after} - {version.id for version in step.before}
    for id_ in sorted(new & files.keys()):
        memory = files[id_].memory
        if memory is None or memory.status == "deleted":
            continue
        own_lineage = {id_, *lineage.find_predecessors(id_)}
        for old in memory.supersedes:
            successors = [
                n for n in lineage.superseded_by.get(old, ()) if n not in own_lineage | new
            ]
            if successors:
                heads = [
                    head for head in lineage.find_heads(old) if head not in own_lineage
                ] or successors
                message = (
                    f"it supersedes {old}, which is already superseded by {', '.join(successors)}"
                )
                hint = f"supersede {' and '.join(heads)} instead, or as well"
                yield _make_problem(files[id_], "not-a-head", message, hint)


def _find_forks(files: dict[str, File], lineage: Lineage, reported: set[str]) -> Iterator[Problem]:
    for fork in lineage.find_forks():
        named = " and ".join(fork.heads[:5]) + (" and more" if len(fork.heads) > 5 else "")
        message = f"{named} both replace {fork.ancestor}"
        hint = f"memtool resolve {' '.join(fork.heads)} --keep newer --reason TEXT"
        for head in fork.heads:
            if head in files and head not in reported:
                yield _make_problem(files[head], "fork", message, hint).replace(severity="warning")


def _find_duplicate_ids(content: Content) -> Iterator[Problem]:
    hint = "change the id and file name of the newer one"
    for file in content.files:
        for row in content.supersede_index.find_rows(file.memory.id) if file.memory else ():
            if row.path != file.path:
                yield _make_problem(
                    file, "duplicate-id", f"{row.path} has the same id {row.id}", hint, "id"
                )


def _find_similar_names(content: Content) -> Iterator[Problem]:
    """Yield files whose names only differ in case or Unicode form from another file's."""
    path_by_name: dict[str, str] = {}
    unusual = []
    for file in content.files:
        name = file.path.rpartition("/")[2]
        if name.isascii() and name == name.lower():
            path_by_name.setdefault(name, file.path)
        else:
            unusual.append((name, file.path))
    for name, path in unusual:
        import unicodedata

        folded = unicodedata.normalize("NFC", name).casefold()
        rows = content.supersede_index.find_rows(folded.removesuffix(".md"))
        other_path = path_by_name.setdefault(folded, rows[0].path if rows else path)
        if other_path != path:
            message = f"{other_path} has the same name except for case or Unicode form"
            hint = f"git mv {path} to another name, and change the id"
            yield Problem(path, 0, "duplicate-id", f"{message}: many disks keep only one", hint)


def _make_problem(
    file: File, code: str, message: str, hint: str, key: str = "supersedes"
) -> Problem:
    id_ = file.memory.id if file.memory else ""
    return Problem(file.path, file.find_line(key), code, message, hint, id_)
