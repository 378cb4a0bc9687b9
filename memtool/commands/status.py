"""`memtool status`: how the memories stand."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from memtool.memory import lifecycle, moments
from memtool.memory.problem import Problem
from memtool.store import provenance
from memtool.store.tree import lineage_problems
from memtool.value import Value
from memtool.workspace import Workspace

EXPIRES_SOON_DAYS = 14


class Status(Value):
    """Counts of one tree, what waits for somebody, and what is wrong.

    `alive` are heads that list and search show; the other counts are of all memories. `revision`
    is the commit that HEAD or --at names, empty before the first commit.
    """

    directory: str
    revision: str
    trusted_ref: str
    total: int
    alive: int
    superseded: int
    types: dict[str, int]
    statuses: dict[str, int]
    states: dict[str, int]
    uncommitted: tuple[str, ...]
    candidates: tuple[str, ...]
    expiring: tuple[str, ...]
    problems: tuple[Problem, ...]

    @property
    def exit_code(self) -> int:
        """1 where something is wrong, for scripts; warnings do not count."""
        return int(any(problem.severity == "error" for problem in self.problems))


def status(ws: Workspace, *, at: str | None = None, as_of: str | None = None) -> Status:
    """Show how many memories there are, what waits for somebody, and what is wrong.

    Where a file is no memory, or a relation leads nowhere, the exit code is 1.

    Example:
        memtool status

    Args:
        at: a revision instead of the worktree
        as_of: the moment to look from: a date, an RFC 3339 moment, or an age such as 30d
    """
    tree = ws.tree(at, as_of)
    now = ws.moment_of(as_of)
    categories = ws.settings.categories
    memories = [record.memory for record in tree.records]
    states = {memory.id: lifecycle.state(memory, now, categories) for memory in memories}
    heads = [memory for memory in memories if tree.lineage.is_head(memory.id)]
    living = [memory for memory in heads if states[memory.id] == lifecycle.ALIVE]
    soon = now + EXPIRES_SOON_DAYS * moments.DAY_S
    origins = ws.origins(tree, tree.records)
    git = ws.repository.git
    head = git.head()
    ws.notes.clear()  # the problems are the answer here
    return Status(
        directory=ws.directory,
        revision=tree.snapshot.name if at else head,
        trusted_ref=provenance.resolve_trusted(ws.repository, ws.trust_settings.text("trust.ref")),
        total=len(memories),
        alive=len(living),
        superseded=len(memories) - len(heads),
        types=_counted(memory.type for memory in memories),
        statuses=_counted(memory.status for memory in memories),
        states=_counted(states.values()),
        uncommitted=tuple(
            record.id for record in tree.records if origins[record.path].trust == "local"
        ),
        candidates=tuple(memory.id for memory in living if memory.status == "candidate"),
        expiring=tuple(
            memory.id
            for memory in living
            if (lifecycle.expires_at(memory, categories) or soon + 1) <= soon
        ),
        problems=(*tree.problems, *lineage_problems(tree)),
    )


def render(status: Status) -> str:
    """Return a short report: counts first, then what somebody should do."""
    rows = [
        f"{status.directory} at {status.revision[: provenance.SHORT] or 'no commit yet'}",
        f"{status.alive} alive of {status.total} memories, {status.superseded} superseded",
        f"types: {_listed(status.types)}",
        f"statuses: {_listed(status.statuses)}",
    ]
    for name, ids, hint in (
        ("not committed", status.uncommitted, "git add and git commit them"),
        ("waiting to be confirmed", status.candidates, "memtool confirm ID"),
        (f"expiring within {EXPIRES_SOON_DAYS} days", status.expiring, "memtool confirm ID"),
    ):
        if ids:
            more = f", and {len(ids) - 5} more" if len(ids) > 5 else ""
            rows.append(f"{name} ({hint}): {', '.join(ids[:5])}{more}")
    for problem in status.problems:
        rows.append(problem.text())
        if problem.hint:
            rows.append(f"  hint: {problem.hint}")
    return "\n".join(rows)


def _counted(names: Iterable[str]) -> dict[str, int]:
    counts = Counter(names)
    return {name: counts[name] for name in sorted(counts)}


def _listed(counts: dict[str, int]) -> str:
    return ", ".join(f"{count} {name}" for name, count in counts.items()) or "none"
