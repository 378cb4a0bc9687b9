"""`memtool drift`: which memories name files that are no longer what they were."""

from __future__ import annotations

from collections import Counter
from typing import Any

from memtool.errors import MemtoolError
from memtool.index import index
from memtool.memory import drift as rules
from memtool.memory.drift import BROKEN, CHANGED, TOUCHED, UNKNOWN, Drift
from memtool.redaction.mask import Mask
from memtool.search.drift_history import with_commits
from memtool.search.features import Facts
from memtool.search.scope import drift_in
from memtool.store.context import Context
from memtool.store.provenance import SHORT
from memtool.value import Value, plain, plural


class DriftRow(Value):
    """A memory whose files are not what they were, and the commit since which."""

    id: str
    title: str
    drift: Drift

    def plain(self) -> dict[str, Any]:
        """Return the shape of `--json`: id, title, level, since, share, reason, files."""
        drift = self.drift
        return {
            "id": self.id,
            "title": self.title,
            "level": drift.level,
            "since": drift.since,
            "share": drift.share,
            "reason": rules.reason(drift),
            "files": plain(drift.files),
        }


class DriftReport(Value):
    """What was found at a commit; `checked` counts the memories that name files.

    `from_files` counts those of them that name only the file that they were taken from.
    """

    head: str
    checked: int
    broken: int
    changed: int
    touched: int
    unknown: int
    memories: tuple[DriftRow, ...]
    from_files: int = 0

    @property
    def exit_code(self) -> int:
        """1 where a memory is broken, for scripts."""
        return int(self.broken > 0)


MOST_EXPLAINED = 50
"""Memories for which the commit that broke them is looked up."""


def drift(
    context: Context,
    *ids: str,
    all: bool = False,
    worktree: bool = False,
    since: str | None = None,
    at: str | None = None,
) -> DriftReport:
    """Show which memories name files that are no longer what they were when somebody last looked.

    Compared is HEAD with the commit of the last confirm, else with the one that added the memory.
    Broken is a memory of which a file is gone and was not renamed, a name such as fetch_page is no
    longer in its files, or cited lines (PATH#L12-L30) are no longer there. Changed is one of which
    half of a file is. Named is the commit that broke it, and for memories that are asked for also
    the last three that changed each file. Where any is broken, the exit code is 1.

    Example:
        memtool drift --all

    Args:
        ids: these memories, by id or words; without any all that are current
        all: also what was only touched, and what cannot be told
        worktree: compare with the files of the worktree, changes that are not committed among them
        since: compare with this revision instead of the commit of each memory's last confirm
        at: memories and files of this revision instead of those of HEAD
    """
    if worktree:
        if at is not None:
            raise MemtoolError(
                "--worktree and --at name two states of the files", hint="give one of them"
            )
        context.repository.refuse_bare("memtool drift --at HEAD")
    tree = index.open(context, at, exact=True)
    facts = Facts(tree, context.clock.now, dict)
    wanted = [tree.find(id_) for id_ in dict.fromkeys(ids)]
    wanted = wanted or facts.naming_files()
    witness = context.witness(tree)
    if witness.basis is None:
        raise MemtoolError(
            "there is no commit yet to compare with",
            hint="git commit the memories with the files that they name",
            code="no-commit",
        )
    base = "" if since is None else context.repository.git.rev(since)
    found = drift_in(tree, lambda: context.witness(tree), base, is_worktree=worktree).of(wanted)
    levels = Counter(one.level for one in found.values())
    shown = {BROKEN, CHANGED, *((TOUCHED, UNKNOWN) if all else ())}
    mask = Mask(context.settings)
    rows = [
        DriftRow(one.id, mask.line(one.memory.title), found[one.path])
        for one in wanted
        if one.path in found and (found[one.path].level in shown or ids)
    ]
    rows.sort(key=lambda row: (rules.LEVELS.index(row.drift.level), row.id))
    head = witness.basis.head
    for number, row in enumerate(rows[:MOST_EXPLAINED]):
        if ids or row.drift.level == BROKEN:
            explained = with_commits(
                context.repository, row.drift, head, mask.line, only_broken=not ids
            )
            rows[number] = row.replace(drift=explained)
    return DriftReport(
        head=head,
        checked=len(found),
        broken=levels[BROKEN],
        changed=levels[CHANGED],
        touched=levels[TOUCHED],
        unknown=levels[UNKNOWN],
        memories=tuple(rows),
        from_files=sum(one.path in found and not one.memory.items("files") for one in wanted),
    )


def render(report: DriftReport) -> str:
    """Return a line for each memory with the reason, then its files, then the counts."""
    lines = []
    for row in report.memories:
        since = f" (since {row.drift.since[:SHORT]})" if row.drift.since else ""
        lines.append(f"{row.drift.level}: {row.id}  {row.title}{since}")
        lines += [f"  {line}" for line in rules.lines_about(row.drift)]
    naming = plural(report.checked, "memory names", "memories name")
    if report.from_files:
        naming += f" files, {report.from_files:,} of them only what they are taken from"
    else:
        naming += " files"
    lines.append(
        f"{naming}: {report.broken:,} broken, {report.changed:,} "
        f"changed, {report.touched:,} touched, {report.unknown:,} unknown"
    )
    first = next((row.id for row in report.memories if row.drift.level == BROKEN), "")
    if first:
        lines.append(
            f"hint: memtool supersede {first} TITLE corrects it; "
            f"memtool confirm {first} --still-holds says that it holds all the same"
        )
    return "\n".join(lines)
