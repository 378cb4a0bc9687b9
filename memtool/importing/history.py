"""The history of a repository as findings: what its commit messages state.

Commits are read from the newest, so that a revert is known before what it takes back. Merges are
left out, since the commits of their branch speak for themselves. Memory is bounded by the ids of
the commits and by what may be offered.
"""

from __future__ import annotations

import heapq

from memtool.errors import MemtoolError
from memtool.importing.commit_messages import Statement, Undoing, find_undoing, read_statement
from memtool.memory import timestamps
from memtool.sessions import findings
from memtool.sessions.model import Finding, compute_fingerprint, make_finding_id
from memtool.sessions.store import clean_texts
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from memtool.redaction.find import Allowlist
    from memtool.sessions.findings import LearnedFindings
    from memtool.store.repository import Repository

BATCH = 256
"""Commits that are read at once."""
MAX_COMMIT_BYTES = 1 << 16
"""A longer commit is a squash of many, and is not read."""
MAX_FILES = 20
"""A commit that changed more files governs none of them."""
PER = 1_000
IMPORTANCE = 0.1
"""Importance of a finding for each point of weight: below what counts as important."""


class CommitText(Value):
    """A commit with its time in Unix seconds and its message."""

    id: str
    second: int
    message: str


class HistoryFindings(Value):
    """What a history offers, best first, and how many of its commits stated nothing new.

    `commit_count` is without merges. `known_count` counts statements that were offered before,
    `secret_count` those left out because of a secret, `further_count` those beyond the limit.
    """

    findings: tuple[Finding, ...]
    commit_count: int
    known_count: int
    secret_count: int
    further_count: int


def list_commits(repository: Repository, start: str, end: str) -> list[str]:
    """Return the ids of all commits up to `end` that `start` lacks, newest first, without merges.

    `start` may be empty. Raises MemtoolError if git fails.
    """
    excluded = [f"^{start}"] if start else []
    return repository.git.run("rev-list", "--no-merges", end, *excluded, "--").decode().split()


def read_commits(repository: Repository, ids: Sequence[str]) -> Iterator[CommitText]:
    """Yield commits in order; one that is broken or too long is left out."""
    with repository.git.open_objects() as objects:
        for at in range(0, len(ids), BATCH):
            some = ids[at : at + BATCH]
            for id_, data in zip(some, objects.blobs(some, MAX_COMMIT_BYTES), strict=True):
                commit = _parse_commit(id_, data)
                if commit is not None:
                    yield commit


def _parse_commit(id_: str, data: bytes) -> CommitText | None:
    """Parse a commit object; a message that is not in the encoding it names is Latin-1."""
    head, _blank, message = data.partition(b"\n\n")
    fields = dict(row.partition(b" ")[::2] for row in reversed(head.split(b"\n")))
    try:
        second = int(fields[b"author"].rsplit(b" ", 2)[1])
        timestamps.render(second)
    except (KeyError, IndexError, ValueError, OverflowError):
        return None
    try:
        text = message.decode(fields.get(b"encoding", b"utf-8").decode("ascii"))
    except (UnicodeDecodeError, LookupError):
        text = message.decode("latin-1")
    return CommitText(id_, second, text)


class _Undone:
    """The commits that later ones took back."""

    def __init__(self) -> None:
        self._ids: dict[str, str] = {}
        self._subjects: dict[str, int] = {}

    def add(self, undoing: Undoing) -> None:
        self._ids.update((id_[:7], id_) for id_ in undoing.commits)
        if undoing.subject and not undoing.commits:
            self._subjects[undoing.subject] = self._subjects.get(undoing.subject, 0) + 1

    def take(self, commit: CommitText) -> bool:
        """Return whether a commit was taken back; a revert by subject takes back one commit."""
        if commit.id.startswith(self._ids.get(commit.id[:7], " ")):
            return True
        subject = commit.message.strip().partition("\n")[0].strip()
        number = self._subjects.get(subject, 0)
        if number:
            self._subjects[subject] = number - 1
        return number > 0


def find_statements(commits: Iterator[CommitText]) -> Iterator[tuple[CommitText, Statement]]:
    """Yield what commits state, newest first, without what was taken back and what is repeated."""
    undone = _Undone()
    seen: set[str] = set()
    for commit in commits:
        if undone.take(commit):
            continue
        undoing = find_undoing(commit.message)
        if undoing is not None:
            undone.add(undoing)
        statement = read_statement(commit.message)
        if statement is None or (mark := compute_fingerprint(statement.text)) in seen:
            continue
        seen.add(mark)
        yield commit, statement


def find_findings(
    repository: Repository,
    ids: Sequence[str],
    per_thousand: int,
    before: LearnedFindings,
    allowed: Allowlist,
    directory: str,
) -> HistoryFindings:
    """Return what commits offer that was not offered before: the weightiest, then the newest.

    `before` are all findings that this history ever gave, which count against the limit, and all
    dismissals. Memories, which are in `directory`, are not among the files of a finding.

    Raises:
        MemtoolError: git fails.
    """
    known_commits = {finding.field("commit") for finding in before.findings}
    known_marks = {compute_fingerprint(finding.content) for finding in before.findings}
    known_marks |= {dismissal.fingerprint for dismissal in before.dismissals}
    room = max(0, -(-len(ids) // PER) * per_thousand - len(known_commits.intersection(ids)))
    best: list[tuple[int, int, CommitText, Statement]] = []
    known_count = new_count = 0
    for commit, statement in find_statements(read_commits(repository, ids)):
        if commit.id in known_commits or compute_fingerprint(statement.text) in known_marks:
            known_count += 1
            continue
        new_count += 1
        heapq.heappush(best, (statement.weight, -new_count, commit, statement))
        if len(best) > room:
            heapq.heappop(best)
    best.sort(reverse=True)
    statements = [(commit, statement) for *_rank, commit, statement in best]
    files = _list_files(repository, [commit.id for commit, _statement in statements], directory)
    made = [_make_finding(*pair, files.get(pair[0].id, ())) for pair in statements]
    texts = {text for finding in made for text in findings.list_texts(finding)}
    clean = clean_texts(texts, allowed)
    safe = [
        finding
        for finding in made
        if all(clean[text] == text for text in findings.list_texts(finding))
    ]
    return HistoryFindings(
        tuple(safe), len(ids), known_count, len(made) - len(safe), new_count - len(best)
    )


def _make_finding(commit: CommitText, statement: Statement, files: tuple[str, ...]) -> Finding:
    return Finding(
        id=make_finding_id(findings.HISTORY, statement.text),
        session=findings.HISTORY,
        content=statement.text,
        title=statement.title,
        category="decision",
        confidence="medium",
        importance=round(IMPORTANCE * statement.weight, 2),
        messages=(),
        files=files,
        fields=(
            ("commit", commit.id),
            ("kind", statement.kind),
            ("said", timestamps.render(commit.second)),
        ),
    )


def _list_files(
    repository: Repository, ids: Sequence[str], directory: str
) -> dict[str, tuple[str, ...]]:
    """Return the files of each commit; none for a boundary of a shallow clone, or without trees."""
    cut = repository.shallow_commits()
    wanted = [id_ for id_ in ids if id_ not in cut]
    files: dict[str, tuple[str, ...]] = {}
    for at in range(0, len(wanted), BATCH):
        stdin = "".join(f"{id_}\n" for id_ in wanted[at : at + BATCH]).encode()
        try:
            rows = repository.git.log_raw(
                *("diff-tree", "--stdin", "-r", "--root", "--no-renames"), stdin=stdin
            )
            changed: dict[str, list[str]] = {}
            for id_, change in rows:
                if not change.path.startswith(f"{directory}/"):
                    changed.setdefault(id_.strip(), []).append(change.path)
        except MemtoolError:  # a partial clone may lack trees
            continue
        files |= {
            id_: tuple(path for path in paths if path.isprintable())
            for id_, paths in changed.items()
            if len(paths) <= MAX_FILES
        }
    return files
