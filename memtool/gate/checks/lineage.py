"""The lineage check: dangling ids, cycles and forks."""

from __future__ import annotations

from memtool.gate.content import Content, File
from memtool.memory.schema import Problem
from memtool.value import first_few

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from memtool.memory.lineage import Lineage

PURGES = "Purges"
"""The trailer of a commit that removes memories for good; its values are their ids."""
PURGING = "MEMTOOL_PURGES"
"""The variable by which a purge names them to the hook, which sees no message yet."""


def purged_by(values: str) -> frozenset[str]:
    """Return the ids in values of the trailer, between commas or spaces."""
    return frozenset(values.replace(",", " ").split())


def check(content: Content) -> Iterator[Problem]:
    """Yield circles, missing and doubled ids, heads passed over, and forks, of the files."""
    files = {file.memory.id: file for file in content.files if file.memory is not None}
    gone = {
        version.id
        for step in content.steps
        for version in step.before
        if not content.kin.is_there(version.id)
    }
    lineage = content.kin.around(files.keys() | gone)
    yield from _doubled(content)
    yield from _alike(content)
    yield from _circles(files, lineage)
    yield from _dangling(content, files, gone, lineage)
    passed = list(_passed_over(content, files, lineage))
    yield from passed
    yield from _forks(files, lineage, {problem.id for problem in passed})


def _circles(files: dict[str, File], lineage: Lineage) -> Iterator[Problem]:
    for cycle in lineage.cycles():
        others = first_few(cycle, 5)
        for id_ in cycle:
            if id_ in files:
                message = f"it supersedes itself, through {others}"
                yield _of(files[id_], "cycle", message, "drop one supersedes of the circle")


def _dangling(
    content: Content, files: dict[str, File], gone: set[str], lineage: Lineage
) -> Iterator[Problem]:
    for newer, missing in lineage.dangling():
        if content.kin.is_there(missing) or not (newer in files or missing in gone):
            continue
        if missing in content.purges or _is_purged(content, missing):
            continue
        path = content.kin.rows(newer)[0].path
        line = files[newer].line_of("supersedes") if newer in files else 1
        message = f"it supersedes {missing}, which is not here"
        hint = f"git log --all -- '*{missing}.md' tells where it went"
        yield Problem(path, line, "dangling", message, hint, newer)


def _is_purged(content: Content, id_: str) -> bool:
    """Tell whether an earlier commit removed a memory for good and names it in its trailer."""
    if not content.head:
        return False
    answer = content.repository.git.run(
        "log",
        "--fixed-strings",
        f"--grep={id_}",
        f"--format=%(trailers:key={PURGES},valueonly,separator=%x20)",
        content.head,
        "--",
    )
    return id_ in purged_by(answer.decode(errors="replace"))


def _passed_over(content: Content, files: dict[str, File], lineage: Lineage) -> Iterator[Problem]:
    """Yield new memories that supersede one which another memory superseded before.

    In a merge and in old commits this is a fork, which nobody could have known of.
    """
    if content.kind == "commit" or len(content.steps) != 1:
        return
    (step,) = content.steps
    new = {version.id for version in step.after} - {version.id for version in step.before}
    for id_ in sorted(new & files.keys()):
        memory = files[id_].memory
        if memory is None or memory.status == "deleted":
            continue
        own = {id_, *lineage.predecessors(id_)}
        for old in memory.supersedes:
            others = [n for n in lineage.superseded_by.get(old, ()) if n not in own | new]
            if others:
                heads = [head for head in lineage.heads_of(old) if head not in own] or others
                message = f"it supersedes {old}, which {', '.join(others)} superseded before"
                hint = f"supersede {' and '.join(heads)} instead, or as well"
                yield _of(files[id_], "not-a-head", message, hint)


def _forks(files: dict[str, File], lineage: Lineage, reported: set[str]) -> Iterator[Problem]:
    for fork in lineage.forks():
        named = " and ".join(fork.heads[:5]) + (" and more" if len(fork.heads) > 5 else "")
        message = f"{named} both replace {fork.ancestor}"
        hint = f"memtool supersede {fork.heads[0]} TITLE --supersedes {fork.heads[1]}"
        for head in fork.heads:
            if head in files and head not in reported:
                yield _of(files[head], "fork", message, hint).replace(severity="warning")


def _doubled(content: Content) -> Iterator[Problem]:
    hint = "give the newer one another id and file name"
    for file in content.files:
        for row in content.kin.rows(file.memory.id) if file.memory else ():
            if row.path != file.path:
                yield _of(file, "duplicate-id", f"{row.path} has the same id {row.id}", hint, "id")


def _alike(content: Content) -> Iterator[Problem]:
    """Yield files whose names differ from another one's only in case or in Unicode form."""
    plain: dict[str, str] = {}
    odd = []
    for file in content.files:
        name = file.path.rpartition("/")[2]
        if name.isascii() and name == name.lower():
            plain.setdefault(name, file.path)
        else:
            odd.append((name, file.path))
    for name, path in odd:
        import unicodedata

        folded = unicodedata.normalize("NFC", name).casefold()
        rows = content.kin.rows(folded.removesuffix(".md"))
        twin = plain.setdefault(folded, rows[0].path if rows else path)
        if twin != path:
            message = f"{twin} has the same name but for case or Unicode form"
            hint = f"git mv {path} to another name, and give it another id"
            yield Problem(path, 0, "duplicate-id", f"{message}: many disks keep only one", hint)


def _of(file: File, code: str, message: str, hint: str, key: str = "supersedes") -> Problem:
    id_ = file.memory.id if file.memory else ""
    return Problem(file.path, file.line_of(key), code, message, hint, id_)
