"""The whole past: secrets in any version of any file of the memory directory, in any ref.

Blobs are read in batches, so that the memory needed does not grow with history. Who committed one
is looked up only where something was found.
"""

from __future__ import annotations

from memtool.gate.checks import secrets
from memtool.gate.checks.secrets import Verdicts
from memtool.gate.content import Text
from memtool.redaction.find import allowlist
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from memtool.memory.problem import Problem
    from memtool.store.config import Config
    from memtool.store.git import Git
    from memtool.store.repository import Repository

MOST_BYTES = 1 << 20
BATCH_BYTES = 8 << 20
BATCH = 2_000


class Past(Value):
    """What was found in history: how many blobs were looked at, and the problems."""

    checked: int
    problems: tuple[Problem, ...]


def scan(repository: Repository, directory: str, settings: Config) -> Past:
    """Search every blob that any ref leads to."""
    git = repository.git
    allowed = allowlist(settings)
    verdicts = Verdicts(repository.cache_dir, settings)
    problems: list[Problem] = []
    checked = 0
    for batch in _batches(git, _objects(git, directory)):
        checked += len(batch)
        unseen = [row for row in batch if not verdicts.is_clean(row[0])]
        contents = git.blobs([oid for oid, _path in unseen], MOST_BYTES)
        for (oid, path), data in zip(unseen, contents, strict=True):
            text = Text(path, oid, data.decode(errors="replace"))
            found = secrets.find(text, allowed)
            if found:
                where = _where(git, oid, directory)
                problems.extend(secrets.problems(text.replace(where=where), found))
            else:
                verdicts.add(oid)
        verdicts.save()
    return Past(checked, tuple(sorted(problems, key=lambda p: (p.path, p.line, p.code, p.message))))


def _objects(git: Git, directory: str) -> list[tuple[str, str]]:
    """Return id and one path of everything below the directory in any commit, by id."""
    answer = git.run("rev-list", "--objects", "--all", "--full-history", "--", directory)
    found: dict[str, str] = {}
    for row in answer.decode(errors="replace").splitlines():
        oid, _space, path = row.partition(" ")
        if path.startswith(directory + "/"):
            found.setdefault(oid, path)
    return sorted(found.items())


def _batches(git: Git, rows: Sequence[tuple[str, str]]) -> Iterator[list[tuple[str, str]]]:
    """Yield the blobs among objects in batches; directories and submodules are left out."""
    if not rows:
        return
    asked = "".join(f"{oid}\n" for oid, _path in rows).encode()
    answer = git.run(
        "cat-file", "--batch-check=%(objecttype) %(objectsize)", "--buffer", stdin=asked
    )
    batch: list[tuple[str, str]] = []
    size = 0
    for row, told in zip(rows, answer.decode().splitlines(), strict=True):
        kind, _space, length = told.partition(" ")
        if kind != "blob":
            continue
        batch.append(row)
        size += min(int(length), MOST_BYTES)
        if size > BATCH_BYTES or len(batch) >= BATCH:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _where(git: Git, oid: str, directory: str) -> str:
    """Say which commit first held a blob, and who wrote it."""
    said = git.line(
        "log", "--all", "--full-history", "--reverse", f"--find-object={oid}",
        "--format=%h%x00%an%x00%as", "--abbrev=10", "--", directory,
    ).split("\n")[0]  # fmt: skip
    short, author, day = (*said.split("\0"), "", "")[:3]
    return f"in commit {short} by {author} on {day}"
