"""Drift of the code that memories name, as of the checked content."""

from __future__ import annotations

from memtool.search import drift_questions, drift_verdict
from memtool.store import snapshot
from memtool.store.commit_files import CommitFiles
from memtool.store.landing import build_landings
from memtool.store.provenance import ProvenanceReader
from memtool.store.tree import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from memtool.gate.content import Content, File
    from memtool.memory.drift import Drift


def find_drift(content: Content, files: Iterable[File], *, is_landed: bool) -> dict[str, Drift]:
    """Return the drift of the files that committed memories name, by path of the memory.

    `is_landed` also looks for rewritten commits; without it the drift since these is unknown.
    """
    repository = content.repository
    witness = ProvenanceReader(
        snapshot.snapshot_commit(repository, content.directory, content.head)
    )
    landings = build_landings(witness) if is_landed else None
    records = [Record(file.memory, file.path, file.oid) for file in files if file.memory]
    questions = drift_questions.build_questions(records, witness, landings)
    questions = [question for question in questions if question.base.commit]
    head = CommitFiles(repository, content.head, is_worktree=content.kind == "worktree")
    judged = drift_verdict.judge(repository, head, questions)
    return {path: drift for path, (drift, _watched) in judged.items()}
