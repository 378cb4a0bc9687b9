"""Drift questions: the code that each memory names, and the commit to compare it with."""

from __future__ import annotations

from memtool.memory import sighting
from memtool.memory.sighting import NOTHING_SEEN, Sighting
from memtool.memory.subjects import Subjects, find_subjects
from memtool.store import sources
from memtool.store.git import GitError
from memtool.store.provenance import MAX_LISTED_PATHS
from memtool.store.sources import (
    LANDED,
    MISSING,
    OK,
    UNREACHABLE,
    Citation,
    find_present_commits,
    is_usable,
)
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from memtool.store.landing import Landings
    from memtool.store.provenance import Basis, ProvenanceReader
    from memtool.store.repository import Repository
    from memtool.store.tree import Record


class DriftBase(Value):
    """The commit that a memory is compared with, empty for none.

    `has_landed` means that it is the commit in which a lost one has landed.
    """

    commit: str
    has_landed: bool = False


_NOTHING: Mapping[str, DriftBase] = {}


class DriftQuestion(Value):
    """A memory to judge, and the commit to compare with.

    `citations` are its sources that git can look up. `seen` is what its author saw, if that counts
    more than the commit.
    """

    path: str
    oid: str
    subjects: Subjects
    base: DriftBase
    citations: tuple[Citation, ...] = ()
    seen: Sighting = NOTHING_SEEN

    @property
    def files(self) -> tuple[str, ...]:
        """The paths and globs that git can look up."""
        return tuple(filter(is_usable, self.subjects.files))


def find_bases(
    records: Sequence[Record],
    witness: ProvenanceReader,
    landings: Landings | None,
    stored: Mapping[str, DriftBase] = _NOTHING,
) -> dict[str, DriftBase]:
    """Return, by path, the commit of each memory's last confirmation, else of its claim.

    The commit of the claim is the one that added the file: whoever pinned or strengthened the
    memory later did not look at code. Only a candidate may still change its claim, so its last
    commit counts. Empty if no commit of this clone has it. `stored` has known results by path. A
    commit that is not in this clone is replaced by the one in which it landed, if `landings` know
    it.
    """
    basis = witness.basis
    origins = witness.origins(records)
    commits: dict[str, str] = {}
    for record in records:
        checked = record.memory.table("checked").get("commit", "")
        origin = origins[record.path]
        is_told = not origin.commit or origin.is_first or record.memory.status == "candidate"
        if checked or is_told:
            commits[record.path] = checked or origin.commit
        elif record.path in stored:
            commits[record.path] = stored[record.path].commit
    changed = sorted(record.path for record in records if record.path not in commits)
    if basis is not None and changed:
        commits |= find_adding_commits(basis.repository, basis.head, changed, basis.directory)
    landed: dict[tuple[str, str], str] = {}
    if basis is not None and landings is not None:
        here = find_present_commits(basis.repository, set(filter(None, commits.values())))
        lost = [(path, commit) for path, commit in commits.items() if commit and commit not in here]
        landed = landings.find_bringing_commits(lost) if lost else {}
    return {
        path: DriftBase(landed.get((path, commit), commit), (path, commit) in landed)
        for path, commit in commits.items()
    }


def find_adding_commits(
    repository: Repository, commit: str, paths: Sequence[str], directory: str = ""
) -> dict[str, str]:
    """Return the newest commit that added each path, empty if this clone does not know it.

    The history of `commit` is searched; all paths are below `directory`.
    """
    wanted = frozenset(paths)
    limit = list(paths) if len(paths) <= MAX_LISTED_PATHS else [directory] if directory else []
    try:
        rows = repository.git.log_raw(
            "log",
            "--full-history",
            "--topo-order",
            "--no-renames",
            "--diff-filter=A",
            "--format=%H",
            "--end-of-options",
            commit,
            "--",
            *limit,
            is_wanted=wanted.__contains__,
        )
    except GitError:  # a partial clone does not hold the folders of older commits
        rows = iter(())
    cut = repository.shallow_commits()
    commits: dict[str, str] = {}
    for at, row in rows:
        commits.setdefault(row.path, "" if at in cut else at)
    return {path: commits.get(path, "") for path in paths}


def build_questions(
    records: Sequence[Record],
    witness: ProvenanceReader,
    landings: Landings | None,
    stored: Mapping[str, DriftBase] = _NOTHING,
) -> list[DriftQuestion]:
    """Return each memory with its commit to compare with; `stored` is as for `find_bases`."""
    since = find_bases(records, witness, landings, stored)
    questions = []
    for record in records:
        memory, base = record.memory, since[record.path]
        subjects, seen = find_subjects(memory), sighting.parse_sighting(memory)
        citations = [
            Citation(source, base.commit, record.path, seen.find_second(source.commit))
            for source in subjects.sources
        ]
        is_at_hand = "commit" in memory.table("checked") and not base.has_landed
        questions.append(
            DriftQuestion(
                record.path,
                record.oid,
                subjects,
                base,
                tuple(citations),
                NOTHING_SEEN if is_at_hand else seen,
            )
        )
    return questions


RESOLVED, UNRESOLVED, UNTOLD = "resolved", "unresolved", ""


def judge_qualities(
    basis: Basis, questions: Sequence[DriftQuestion], landings: Landings | None
) -> dict[str, tuple[str, str]]:
    """Return, by path, whether all commits and files that a memory cites resolve.

    `resolved` and `unresolved` are final; empty if it cites none, or this clone cannot tell. Each
    comes with the trusted commit, if the answer depends on it.
    """
    cited = {citation for question in questions for citation in question.citations}
    tips = (basis.head, basis.trusted_head)
    resolved = sources.resolve(basis.repository, cited, tips, landings)
    qualities = {}
    for question in questions:
        rows = [(each.source.commit, resolved[each]) for each in question.citations]
        statuses = {row.status for _commit, row in rows}
        quality = RESOLVED if statuses and statuses <= {OK, LANDED} else UNTOLD
        quality = UNRESOLVED if statuses & {MISSING, UNREACHABLE} else quality
        is_open = any(commit and row.tip != basis.head for commit, row in rows)
        qualities[question.path] = quality, (basis.trusted_head or "none") if is_open else ""
    return qualities
