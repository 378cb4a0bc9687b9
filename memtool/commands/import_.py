"""`memtool import` and `export`: memories from other tools, and as JSON lines; and `migrate`."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Collection, Iterable, Iterator
from importlib import import_module
from typing import Annotated, Any

from memtool.authoring import draft, write
from memtool.commands import _filters
from memtool.commands._layout import Layout, shorten_commit
from memtool.errors import MemtoolError
from memtool.gate.checks import secrets
from memtool.gate.near_duplicates import THRESHOLD_KEY
from memtool.importing import SOURCES, base, claude_mem, jsonl, originals, suggest_source
from memtool.importing.base import Target
from memtool.importing.entries import StoreRequest
from memtool.importing.originals import ForeignRecord
from memtool.index import index
from memtool.memory import lifecycle, schema
from memtool.memory.fields import BY_NAME
from memtool.memory.memory import Fields
from memtool.memory.schema import Problem
from memtool.redaction.find import build_allowlist
from memtool.search import retrieve
from memtool.search.query import parse
from memtool.search.saved import expand_words
from memtool.search.scope import build_scope, format_day
from memtool.store.commits import commit_files
from memtool.store.context import Context
from memtool.store.edits import is_interrupted
from memtool.store.tree import Record
from memtool.upkeep import migration
from memtool.upkeep.migration import StepDone
from memtool.value import Value, format_count

MAX_SHOWN_PROBLEMS, MAX_SHOWN_MEMORIES = 20, 20
MAX_STDIN_BYTES = 256 << 20


class ImportResult(Value):
    """Counts of the records: found = written + unchanged + skipped."""

    json_names = (("record_count", "found"),)

    record_count: int
    written: int
    unchanged: int
    skipped: int
    problems: tuple[Problem, ...]
    memories: tuple[dict[str, str], ...]
    commit: str | None = None
    dry_run: bool = False

    @property
    def exit_code(self) -> int:
        """1 if a record could not be imported."""
        return int(any(problem.severity == "error" for problem in self.problems))


class MigrationResult(Value):
    """The steps from one format to another; `commit` is None for a plan, or without any change."""

    json_names = (("old", "from"), ("new", "to"))

    old: int
    new: int
    steps: tuple[StepDone, ...]
    commit: str | None = None
    dry_run: bool = False


class ExportResult(Value):
    """One row per memory, sorted by id; in JSON just the list."""

    rows: tuple[dict[str, Any], ...]

    def plain(self) -> Any:
        """Return the rows as a list."""
        return list(self.rows)


def render(answer: ImportResult | ExportResult | MigrationResult, layout: Layout) -> str:
    """Return a JSON line per exported memory, counts of an import, or steps of a migration."""
    if isinstance(answer, ExportResult):
        return "".join(f"{jsonl.format_line(row)}\n" for row in answer.rows)
    return (
        _format_migration(answer)
        if isinstance(answer, MigrationResult)
        else _format_import(answer, layout)
    )


def _format_migration(done: MigrationResult) -> str:
    """Return a line for each step, and the next command."""
    if not done.steps:
        return f"the memories have format {done.old}: nothing to migrate"
    rows = [f"from format {done.old} to {done.new}:"]
    if {step.name for step in done.steps} == {migration.RECORDING}:
        rows = [f"the memories have format {done.old}, and there is something to add:"]
    elif done.old == done.new:
        rows = [f"files of an older format than {done.new}, as from a branch that was merged:"]
    for step in done.steps:
        rows.append(f"  {step.name}: {format_count(len(step.files), 'file')}")
    if done.commit:
        short = shorten_commit(done.commit)
        rows.append(f"committed as {short}; git revert {short} takes it back")
    else:
        rows.append(f"nothing was changed; {migration.AGAIN} does it")
    return "\n".join(rows)


def _format_import(result: ImportResult, layout: Layout) -> str:
    """Return in a dry run each memory, then the problems, errors before warnings, then counts."""
    rows = []
    if result.dry_run:
        shown = result.memories[:MAX_SHOWN_MEMORIES]
        rows += layout.table(
            [(layout.short(row["id"]), row["title"], row["status"], row["date"]) for row in shown],
            drop=(3, 2),
        )
        hidden = len(result.memories) - len(shown)
        rows += [f"and {hidden:,} more (--json has all)"] if hidden else []
    worst_first = sorted(result.problems, key=lambda problem: problem.severity)
    for problem in worst_first[:MAX_SHOWN_PROBLEMS]:
        mark = "refused: " if problem.severity == "error" else "warning: "
        rows += layout.wrap(f"{mark}{layout.shorten(problem.text())}")
        rows += layout.wrap(f"hint: {layout.shorten(problem.hint)}" * bool(problem.hint), "  ")
    hidden = len(result.problems) - MAX_SHOWN_PROBLEMS
    rows += [f"and {hidden:,} more problems (--json has all)"] if hidden > 0 else []
    return "\n".join([*rows, _count_records(result)])


def _count_records(result: ImportResult) -> str:
    new = "new" if result.dry_run else "written"
    counts = (
        f"{result.written:,} {new}",
        f"{result.unchanged:,} unchanged",
        f"{result.skipped:,} refused",
    )
    commit = f"; committed as {shorten_commit(result.commit)}" if result.commit else ""
    return f"{format_count(result.record_count, 'record')}: {', '.join(counts)}{commit}"


def import_(
    context: Context,
    from_: Annotated[str, SOURCES],
    path: str,
    *,
    map: tuple[str, ...] = (),
    set: tuple[str, ...] = (),
    project: str = "",
    redact: bool = False,
    commit: bool = False,
    dry_run: bool = False,
) -> ImportResult:
    """Take over existing records as memories.

    From:
        adr, pep      decision records: MADR, Nygard, log4brains; Python's PEPs
        claude        CLAUDE.md, AGENTS.md, GEMINI.md
        markdown      files with front matter
        json, jsonl   lists and exports of other tools; --map FIELD=JSON.PATH
        other tools   mcp-memory, mem0, beads, claude-mem, basic-memory, memory-bank, serena: the
                      store of that tool

    A record that cannot be taken over is reported, such as one with a secret, and the others are
    written. Repeating an import changes nothing, and overwrites no memory. Imported memories do not
    expire. docs/import.md shows what becomes of each field.

    Example:
        memtool import adr docs/adr --dry-run
        memtool import jsonl records.jsonl.gz --map status=meta.status --set domain=billing
        memtool export tag:auth | memtool --global import jsonl -

    Args:
        from_: what the records are, see above
        path: the file or directory; - reads JSON lines from stdin
        map: where a key is found in JSON; may be repeated
        set: a key of every memory; may be repeated
        project: with claude-mem, the project; default: this repository
        redact: replace secrets and personal data by [REDACTED:kind]
        commit: commit all of them, in one commit
        dry_run: show what each record becomes, write nothing
    """
    write.prepare(context, dry_run=dry_run)
    target = Target(
        tree=context.tree(),
        tool=from_,
        overrides=_parse_overrides(context, set)
        | ({"scope": "global"} if context.is_global else {}),
        categories=context.settings.categories,
        now=context.clock.now,
        allowed=build_allowlist(context.settings),
        redacts=redact,
        is_store=SOURCES[from_].is_store,
        threshold=context.settings.number(THRESHOLD_KEY),
        command=f"memtool import {from_} {shlex.quote(path)}",
    )
    if project and from_ != "claude-mem":
        raise MemtoolError(
            f"cannot import: --project is for claude-mem, {from_} has no projects",
            hint="leave --project out",
        )
    is_stdin = path == "-"
    if is_stdin and from_ != "jsonl":
        raise MemtoolError(
            f"cannot import: {from_} records cannot be read from stdin",
            hint=f"memtool import {from_} PATH",
        )
    source_path = (
        jsonl.STDIN.path if is_stdin else originals.locate(os.path.join(context.caller.cwd, path))
    )
    drafts = _read_drafts(context, from_, source_path, map, project, is_stdin=is_stdin)
    plan = base.plan_import(_without_global_scope(context, drafts), source_path, target)
    if not plan.record_count and not plan.problems:
        raise MemtoolError(
            f"cannot import: no records {'on stdin' if is_stdin else f'in {path}'}",
            hint=f"{from_} takes {SOURCES[from_].description}",
            code="no-records",
        )
    _note_expired(context, plan.placed)
    done = None
    paths = [record.path for record in plan.placed]
    if paths and not dry_run:
        base.write_memories(context.repository, plan.placed)
    uncommitted = _find_uncommitted(context, plan.unchanged) if commit and not dry_run else []
    if uncommitted:
        context.notes.append(
            f"{len(uncommitted):,} of these were already written, and are now committed"
        )
    if commit and not dry_run and (paths or uncommitted):
        source_name = jsonl.STDIN.shown if is_stdin else originals.tail(source_path)
        summary = f"import {len(paths) + len(uncommitted)} from {source_name}"
        done = commit_files(context, [*paths, *uncommitted], summary, {"Memory-Import": from_})
    if from_ == "claude-mem":
        context.notes += filter(None, [claude_mem.find_unread_log(source_path)])
    return ImportResult(
        record_count=plan.record_count,
        written=len(paths),
        unchanged=len(plan.unchanged),
        skipped=plan.skipped,
        problems=plan.problems,
        memories=tuple(_describe_placed(record) for record in plan.placed),
        commit=done,
        dry_run=dry_run,
    )


def _describe_placed(record: Record) -> dict[str, str]:
    memory = record.memory
    return {
        "id": memory.id,
        "path": record.path,
        "title": memory.title,
        "status": memory.status,
        "date": format_day(memory.text("timestamp")),
    }


def migrate(
    context: Context,
    from_: Annotated[str, SOURCES] = "",
    path: str = "",
    *,
    to: int = 0,
    project: str = "",
    redact: bool = False,
    commit: bool = False,
    dry_run: bool = False,
) -> MigrationResult | ImportResult:
    """Bring the memories to the newest format.

    Without --commit it only shows what would change. It is one commit, which git revert takes back.
    Claims do not change.

    Run it in the clones of those who wrote the memories: only there it can record the code that
    they were checked against. With FROM and PATH it imports the store of another tool, see memtool
    import.

    Example:
        memtool migrate
        memtool migrate --commit
        memtool migrate beads .beads/issues.jsonl

    Args:
        from_: a kind of records to import
        path: its file or directory
        to: the format, instead of the newest
        project: with claude-mem, the project; default: this repository
        redact: replace its secrets and personal data by [REDACTED:kind]
        commit: do it, as one commit
        dry_run: only show it, even with --commit
    """
    if from_:
        if to or not path:
            raise MemtoolError(
                "cannot migrate: --to is for the format of memtool's own memories"
                if to
                else f"cannot migrate: the path of the {from_} store is missing",
                hint=f"memtool migrate {from_} PATH",
            )
        if not commit:
            context.notes.append("nothing was written; add --commit to do it")
        is_shown = dry_run or not commit
        return import_(
            context, from_, path, project=project, redact=redact, commit=commit, dry_run=is_shown
        )
    if project or redact:
        raise MemtoolError(
            "cannot migrate: --project and --redact are for the store of another tool",
            hint="memtool migrate beads PATH",
        )
    context.repository.refuse_bare("run memtool in a clone or linked worktree")
    context.project.refuse_absent()
    if commit and not dry_run:
        plan, done = migration.migrate(context, to)
        return MigrationResult(plan.old, plan.new, plan.steps, done)
    if is_interrupted(context.repository):
        context.notes.append("an earlier run was interrupted; --commit removes what it wrote")
    plan = migration.plan(context, to)
    return MigrationResult(plan.old, plan.new, plan.steps, dry_run=dry_run)


def _note_expired(context: Context, placed: Iterable[Record]) -> None:
    """Note how many memories have already expired according to their records."""
    categories = context.settings.categories
    states = [
        lifecycle.find_state(record.memory, context.clock.now, categories) for record in placed
    ]
    count = states.count(lifecycle.EXPIRED)
    if count:
        context.notes.append(
            f"{count:,} of them have expired in their store, and are only found with is:expired;"
            " to review them instead: --set temporal_class=medium_term"
        )


def _find_uncommitted(context: Context, paths: Collection[str]) -> list[str]:
    """Return the memories that are not committed, as a killed import leaves them."""
    if not paths:
        return []
    status = context.repository.git.status(context.directory)
    new = {path for letters, path in status if letters in ("??", " A", "A ", "AM")}
    return sorted(new.intersection(paths))


def _read_drafts(
    context: Context,
    from_: str,
    source_path: str,
    pairs: tuple[str, ...],
    project: str,
    *,
    is_stdin: bool,
) -> Iterable[ForeignRecord | Problem]:
    top = context.repository.top
    if from_ == "jsonl":
        data = _filters.read_stdin(MAX_STDIN_BYTES) if is_stdin else None
        categories = context.settings.categories
        return jsonl.drafts(source_path, top, pairs, categories=categories, stdin=data)
    source = SOURCES[from_]
    if pairs and not source.is_store:
        raise MemtoolError(
            f"cannot import: --map is for JSON and stores of other tools, not for {from_}",
            hint="to set a key of every memory: --set KEY=VALUE",
        )
    module, _, name = source.drafts.partition(".")
    drafts: Callable[[str, Any], Iterable[ForeignRecord | Problem]]
    drafts = getattr(import_module(f"memtool.importing.{module}"), name)
    if not source.is_store:
        return drafts(source_path, top)
    field_map = jsonl.build_field_map(pairs, {})
    request = StoreRequest(
        top, tuple(context.settings.categories), context.clock.now, project, field_map
    )
    return drafts(source_path, request)


def _without_global_scope(
    context: Context, drafts: Iterable[ForeignRecord | Problem]
) -> Iterator[ForeignRecord | Problem]:
    """Yield drafts, in a project without `scope: global`; one note counts those that had it."""
    count = 0
    for item in drafts:
        if isinstance(item, ForeignRecord) and not context.is_global:
            is_wider = item.fields.get("scope") == write.GLOBAL
            count += is_wider
            fields = {key: value for key, value in item.fields.items() if key != "scope"}
            yield item.replace(fields=fields) if is_wider else item
        else:
            yield item
    if count:
        what = format_count(count, "record was", "records were")
        context.notes.append(
            f"{what} of scope global, but only apply to this project; for all projects: "
            "memtool --global import"
        )


def _parse_overrides(context: Context, pairs: tuple[str, ...]) -> Fields:
    """Parse `--set`. Raises MemtoolError for a key that may not be set, or an invalid value."""
    types = [pair for pair in pairs if pair.startswith("type=")]
    overrides = draft.parse_assignments([pair for pair in pairs if pair not in types])
    if types:
        overrides["type"] = types[-1].partition("=")[2]
    secrets.refuse_secrets("\n".join(pairs), build_allowlist(context.settings))
    if overrides.get("scope") == write.GLOBAL and not context.is_global:
        raise MemtoolError(
            "cannot import: scope: global has no effect in a project",
            hint="for all your projects: memtool --global import",
            code="foreign-scope",
        )
    for key, value in overrides.items():
        field = BY_NAME.get(key)
        fault = schema.find_value_fault(field, value, context.settings.categories) if field else ""
        if fault:
            raise MemtoolError(f"--set {key}: {fault}", hint=field.doc if field else "")
    return overrides


def export(
    context: Context, *filters: str, at: str | None = None, no_body: bool = False
) -> ExportResult:
    """Write memories as JSON lines: every key, the body and the path.

    Secrets are masked. Without filters everything is written, including superseded, archived and
    deleted memories. memtool import jsonl reads the lines again.

    Example:
        memtool export > memories.jsonl
        memtool export type:decision is:pinned --at v1.0

    Args:
        filters: filters as in memtool list; without any, all memories
        at: a revision instead of the worktree
        no_body: leave out the bodies
    """
    tree = index.open(context, at, exact=True)
    records = list(tree.records)
    if filters:
        scope = build_scope(context, tree, context.clock.now)
        records = retrieve.find_records(scope, parse(expand_words(context, filters)))
    rows = [jsonl.build_row(record, has_body=not no_body) for record in records]
    return ExportResult(tuple(sorted(rows, key=lambda row: (str(row["id"]), str(row["path"])))))


def _refuse_missing_kind(words: list[str], directory: str) -> None:
    """Refuse `memtool import docs/adr`: the kind of records comes first."""
    if len(words) != 1 or words[0] in SOURCES:
        return
    kind = suggest_source(os.path.join(directory, os.path.expanduser(words[0])))
    raise MemtoolError(
        "cannot import: the kind of records comes first",
        hint=f"memtool import {kind or 'KIND'} {shlex.quote(words[0])}"
        + ("" if kind else f"\nKIND is one of {', '.join(SOURCES)}"),
    )


MISREADINGS = {"import": _refuse_missing_kind}
"""Refusals of arguments that are often misread, by verb; they get the words and that of -C."""
