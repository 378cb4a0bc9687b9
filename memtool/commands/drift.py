"""`memtool drift`: which memories name files that have changed since."""

from __future__ import annotations

import posixpath
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from memtool.commands._layout import Layout, shorten_commit
from memtool.errors import MemtoolError
from memtool.index import index
from memtool.memory import drift as rules
from memtool.memory.drift import BROKEN, CHANGED, TOUCHED, UNKNOWN, Drift
from memtool.redaction.mask import Mask
from memtool.search.drift_history import with_commits
from memtool.search.features import Facts
from memtool.search.scope import build_drift_witness
from memtool.store.context import Context
from memtool.value import Value, format_count, plain


class DriftRow(Value):
    """A memory with its drift."""

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
            "reason": rules.summarize(drift),
            "files": plain(drift.files),
        }


class DriftReport(Value):
    """The drift at a commit; `checked` counts the memories that name files.

    `from_files` counts those that name only the file that they were imported from.
    """

    json_fields = "head checked broken changed touched unknown memories from_files"

    head: str
    checked: int
    broken: int
    changed: int
    touched: int
    unknown: int
    memories: tuple[DriftRow, ...]
    from_files: int = 0
    has_all: bool = False
    """Whether the text has every row."""
    is_detailed: bool = False
    """Whether the text has every file of each memory."""

    @property
    def exit_code(self) -> int:
        """1 if a memory is broken, for scripts."""
        return int(self.broken > 0)


MAX_EXPLAINED_MEMORIES = 50
"""Memories for which the commit that broke them is looked up."""


def drift(
    context: Context,
    *ids: str,
    all: bool = False,
    worktree: bool = False,
    since: str | None = None,
    at: str | None = None,
) -> DriftReport:
    """Find memories that no longer fit the code since they were last confirmed.

        broken    a file is gone, or it no longer has a name or lines that the memory cites
        changed   at least half of a file is different
        touched   a file has changed a little (only with --all)

    Exit code 1 means that one is broken.

    Example:
        memtool drift
        memtool drift epi-bg2z --worktree

    Args:
        ids: these memories, by id or words; without any, all current ones
        all: also list what was only touched, or cannot be compared
        worktree: compare with the worktree instead of HEAD
        since: compare with this revision instead of the last confirmation
        at: a revision instead of HEAD
    """
    if worktree:
        if at is not None:
            raise MemtoolError(
                "--worktree and --at exclude each other", hint="leave out one of them"
            )
        context.repository.refuse_bare("memtool drift --at HEAD")
    tree = index.open(context, at, exact=True)
    facts = Facts(tree, context.clock.now, dict)
    records = [tree.find(id_) for id_ in dict.fromkeys(ids)]
    records = records or facts.naming_files()
    witness = context.provenance_reader(tree)
    if witness.basis is None:
        raise MemtoolError(
            "cannot compare: the repository has no commit yet",
            hint="commit the memories together with the files that they name",
            code="no-commit",
        )
    base = "" if since is None else context.repository.git.resolve(since)
    drift_by_path = build_drift_witness(
        tree, lambda: context.provenance_reader(tree), base, is_worktree=worktree
    ).find(records)
    levels = Counter(memory_drift.level for memory_drift in drift_by_path.values())
    shown = {BROKEN, CHANGED, *((TOUCHED, UNKNOWN) if all else ())}
    mask = Mask(context.settings)
    rows = [
        DriftRow(record.id, mask.line(record.memory.title), drift_by_path[record.path])
        for record in records
        if record.path in drift_by_path and (drift_by_path[record.path].level in shown or ids)
    ]
    rows.sort(key=lambda row: (rules.LEVELS.index(row.drift.level), row.id))
    head = witness.basis.head
    for number, row in enumerate(rows[:MAX_EXPLAINED_MEMORIES]):
        if ids or row.drift.level == BROKEN:
            explained = with_commits(
                context.repository, row.drift, head, mask.line, only_broken=not ids
            )
            rows[number] = row.replace(drift=explained)
    return DriftReport(
        head=head,
        checked=len(drift_by_path),
        broken=levels[BROKEN],
        changed=levels[CHANGED],
        touched=levels[TOUCHED],
        unknown=levels[UNKNOWN],
        memories=tuple(rows),
        from_files=sum(
            record.path in drift_by_path and not record.memory.items("files") for record in records
        ),
        has_all=all,
        is_detailed=bool(ids),
    )


def render(report: DriftReport, layout: Layout) -> str:
    """Return the memories by level, those of one cause together, then the counts."""
    rows: list[str] = []
    if report.is_detailed:
        for row in report.memories:
            rows += _format_memory(row, layout)
    else:
        for level in (BROKEN, CHANGED, TOUCHED, UNKNOWN):
            rows += _format_level(level, report, layout)
    levels = {level: getattr(report, level) for level in (BROKEN, CHANGED, TOUCHED, UNKNOWN)}
    counts = [f"{count:,} {level}" for level, count in levels.items() if count]
    naming = format_count(report.checked, "memory names", "memories name")
    state = f"{naming} code: {', '.join(counts) or 'none has changed'}"
    rows.append(state if report.checked else "no memory names code")
    if report.from_files:
        rows.append(
            "1 of them names only the file that it comes from."
            if report.from_files == 1
            else f"{report.from_files:,} of them name only the file that they come from."
        )
    if report.broken:
        rows += [
            "Not true any more: memtool supersede ID TITLE",
            "Still true: memtool confirm ID --still-holds",
        ]
    return "\n".join(rows)


def _format_memory(row: DriftRow, layout: Layout) -> list[str]:
    """Return one memory with what became of each of its files."""
    since = f" since {rules.describe_base(row.drift)}" if row.drift.since else ""
    lines = layout.title_line(f"{row.title}: {row.drift.level}{since}", layout.short(row.id))
    for line in rules.describe_lines(row.drift):
        lines += layout.wrap(line.strip(), "    " if line.startswith(" ") else "  ")
    return lines


def _format_level(level: str, report: DriftReport, layout: Layout) -> list[str]:
    """Return a heading and the memories of one level, none if there are none."""
    rows = [row for row in report.memories if row.drift.level == level]
    if not rows:
        return []
    heading = f"{level.capitalize()} ({len(rows):,}):"
    if level == BROKEN:
        return [heading, *_format_causes(rows, layout)]
    command = "memtool drift --all"

    def describe(row: DriftRow) -> tuple[str, ...]:
        return layout.short(row.id), row.title, _describe_share(row.drift)

    return [heading, *layout.section(rows, describe, command, is_whole=report.has_all, drop=(2,))]


def _format_causes(rows: Iterable[DriftRow], layout: Layout) -> Iterator[str]:
    """Yield each cause with the commit that brought it, and below it the memories."""
    groups: dict[tuple[str, ...], list[DriftRow]] = {}
    for row in rows:
        groups.setdefault(tuple(_describe_cause(row.drift, layout)), []).append(row)
    for cause, members in groups.items():
        for line in cause:
            yield from layout.wrap(line, "  ")
        table = [(layout.short(row.id), row.title) for row in members]
        yield from layout.table(table, indent="    ")


def _describe_cause(drift: Drift, layout: Layout) -> Iterator[str]:
    """Yield what happened to the broken files, and which commit did it."""
    for file in drift.files:
        if file.level != BROKEN:
            continue
        yield rules.describe_file(file)
        for commit in file.commits:
            if commit.broke:
                short_id = shorten_commit(commit.commit)
                yield f"({short_id} {commit.subject}, {layout.when(commit.date)})"


def _describe_share(drift: Drift) -> str:
    """Return the worst file and how much of it has changed: `holds.py 67 %`."""
    worst = next((file for file in drift.files if file.level == drift.level), None)
    if worst is None or worst.share is None or worst.level == UNKNOWN:
        return rules.summarize(drift)
    return f"{posixpath.basename(worst.now or worst.path)} {round(100 * worst.share)} %"
