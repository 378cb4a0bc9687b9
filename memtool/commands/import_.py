"""`memtool import` and `export`: memories from other tools, and as JSON lines; and `migrate`."""

from __future__ import annotations

import os
import shlex
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Annotated, Any, Literal

from memtool.authoring import draft, write
from memtool.commands import _filters
from memtool.commands._layout import Layout, shorten_commit
from memtool.errors import MemtoolError
from memtool.gate.checks import secrets
from memtool.importing import SOURCES, base, claude_mem, jsonl, originals, run, stores
from memtool.importing.base import ImportPlan
from memtool.importing.run import ImportOptions
from memtool.index import index
from memtool.memory import lifecycle, schema
from memtool.memory.fields import BY_NAME
from memtool.memory.memory import Fields, FieldValue
from memtool.memory.schema import Problem
from memtool.memory.short_ids import ShortIds
from memtool.redaction.find import build_allowlist
from memtool.search import readiness, retrieve, suggested_files
from memtool.search.query import parse
from memtool.search.saved import expand_words
from memtool.search.scope import build_scope, format_day
from memtool.store.commits import commit_files
from memtool.store.context import Context
from memtool.store.edits import is_interrupted
from memtool.store.tree import Record
from memtool.upkeep import migration
from memtool.upkeep.migration import StepDone
from memtool.value import Value, first_few, format_count

MAX_SHOWN_PROBLEMS, MAX_SHOWN_MEMORIES = 20, 20
MAX_SHOWN_HINTS, MAX_SHOWN_NAMES = 3, 3
AUTO = "auto"
"""The kind of records that is guessed."""
KINDS = (AUTO, *SOURCES)
MAX_STDIN_BYTES = 256 << 20


class ImportResult(Value):
    """Counts of the records: found = written + unchanged + skipped.

    A row of `memories` says what a record becomes, and where its status and date come from.
    `command` is the one that writes what a dry run shows; with `has_all` the text shows every row.
    """

    json_fields = "record_count written unchanged skipped problems memories commit dry_run updated"
    json_names = (("record_count", "found"),)

    record_count: int
    written: int
    unchanged: int
    skipped: int
    problems: tuple[Problem, ...]
    memories: tuple[dict[str, Any], ...]
    commit: str | None = None
    dry_run: bool = False
    updated: int = 0
    """How many of the written ones supersede a memory of an earlier import."""
    command: str = ""
    has_all: bool = False

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
    """Return in a dry run what each record becomes, then what needs a person, then counts."""
    rows = []
    shorten = _make_shortener(result, layout)
    if result.dry_run:
        shown = result.memories if result.has_all else result.memories[:MAX_SHOWN_MEMORIES]
        heads = layout.table(
            [(shorten(row["id"]), row["title"], row["status"], row["date"]) for row in shown],
            drop=(3,),
        )
        for head, row in zip(heads, shown, strict=True):
            rows += [head, *layout.wrap(_describe_origin(row, shorten), "    ")]
        hidden = len(result.memories) - len(shown)
        rows += [f"and {hidden:,} more (--all)"] if hidden else []
    rows += _format_problems(result, layout)
    rows += layout.wrap(_count_kinds(result))
    return "\n".join([*rows, _count_records(result)])


def _make_shortener(result: ImportResult, layout: Layout) -> Callable[[str], str]:
    """Return a function that shortens the ids of the tree, and those that it will have."""
    planned = ShortIds([row["id"] for row in result.memories])
    names = {row["id"] for row in result.memories}
    return lambda id_: planned.shorten(id_) if id_ in names else layout.short(id_)


def _describe_origin(row: Mapping[str, Any], shorten: Callable[[str], str]) -> str:
    """Return where a memory's status and date come from, what it replaces, and its files."""
    replaced = [shorten(id_) for id_ in row["supersedes"]]
    related = [shorten(id_) for id_ in row["related_to"]]
    suggested = row.get("suggested_files", ())
    parts = [
        row["category"] or row["type"],
        f"status: {row['status_from']}" if row["status_from"] else "",
        f"date: {row['date_from']}" if row["date_from"] else "",
        f"{_name_replacing(row['status'])} {', '.join(replaced)}" if replaced else "",
        f"related to {first_few(related, MAX_SHOWN_NAMES)}" if related else "",
        f"files: {first_few(row['files'], MAX_SHOWN_NAMES)}" if row["files"] else "",
        f"probably: {first_few(suggested, MAX_SHOWN_NAMES)}" if suggested else "",
    ]
    return "; ".join(filter(None, parts))


def _name_replacing(status: str) -> str:
    """Return what a memory does to those that it supersedes: a candidate replaces nothing yet."""
    return "once confirmed, replaces" if status == "candidate" else "replaces"


def _format_problems(result: ImportResult, layout: Layout) -> list[str]:
    """Return a line for each record with problems, refused ones first, then each hint once."""
    by_place: dict[tuple[str, str, int], list[Problem]] = {}
    for problem in sorted(result.problems, key=lambda problem: problem.severity):
        by_place.setdefault((problem.severity, problem.path, problem.line), []).append(problem)
    places = list(by_place) if result.has_all else list(by_place)[:MAX_SHOWN_PROBLEMS]
    rows: list[str] = []
    hints: dict[str, None] = {}
    for severity, path, line in places:
        problems = by_place[severity, path, line]
        mark = "refused: " if severity == "error" else ""
        where = f"{path}:{line}" if line else path
        what = "; ".join(dict.fromkeys(problem.message for problem in problems))
        rows += layout.wrap(layout.shorten(f"{mark}{where}: {what}" if where else f"{mark}{what}"))
        hints |= dict.fromkeys(problem.hint for problem in problems if problem.hint)
    hidden = len(by_place) - len(places)
    rows += [f"and {hidden:,} more (--all)"] if hidden > 0 else []
    for hint in [*hints][:MAX_SHOWN_HINTS]:
        rows += layout.wrap(f"hint: {layout.shorten(hint)}", "  ")
    return rows


def _count_kinds(result: ImportResult) -> str:
    """Return the kinds and statuses of the new memories, with how many replace or name something.

    Empty if there is nothing new.
    """
    if not result.memories:
        return ""
    kinds = Counter(row["category"] or row["type"] for row in result.memories)
    statuses = Counter(row["status"] for row in result.memories)
    replacing = sum(
        bool(row["supersedes"]) and row["status"] != "candidate" for row in result.memories
    )
    naming = sum(bool(row["files"]) for row in result.memories)
    parts = [
        ", ".join(f"{word.replace('_', ' ')} {count:,}" for word, count in kinds.most_common()),
        ", ".join(f"{count:,} {word}" for word, count in statuses.most_common()),
        f"{replacing:,} replace another" if replacing else "",
        f"{naming:,} name files" if naming else "",
    ]
    return "; ".join(filter(None, parts))


def _count_records(result: ImportResult) -> str:
    new = "new" if result.dry_run else "written"
    updates = f" ({result.updated:,} of them supersede an earlier import)" * bool(result.updated)
    counts = (
        f"{result.written:,} {new}{updates}",
        f"{result.unchanged:,} unchanged",
        f"{result.skipped:,} refused",
    )
    commit = f"; committed as {shorten_commit(result.commit)}" if result.commit else ""
    row = f"{format_count(result.record_count, 'record')}: {', '.join(counts)}{commit}"
    return f"{row}\nto write them: {result.command}" if result.dry_run and result.written else row


def import_(
    context: Context,
    from_: Annotated[str, KINDS],
    path: str = "",
    *,
    map: tuple[str, ...] = (),
    set: tuple[str, ...] = (),
    project: str = "",
    default_status: str = "",
    suggest_files: Literal["on", "accept", "off"] = "on",
    redact: bool = False,
    commit: bool = False,
    dry_run: bool = False,
    all: bool = False,
) -> ImportResult:
    """Import existing records as memories.

    From:
        PATH alone    guesses what the records there are
        adr, pep      decision records: MADR, Nygard, log4brains; Python's PEPs
        claude        CLAUDE.md, AGENTS.md, GEMINI.md, QWEN.md
        rules         rules of Cursor, Copilot, Cline, Roo, Windsurf and others
        hosts         what agent hosts remember by themselves; PATH is your home directory
        markdown      files with frontmatter
        json, jsonl   lists and exports of other tools; --map FIELD=JSON.PATH
        other tools   mcp-memory, mem0, beads, claude-mem, basic-memory, memory-bank, obsidian,
                      serena: the store of that tool
        git           no memories but lessons of commit messages: memtool import git --help

    A record that cannot be taken over is reported, such as one with a secret, and the others are
    written. A repeated import adds what is new; a record that changed supersedes its memory.
    docs/import.md has the details.

    Example:
        memtool import docs/adr --dry-run
        memtool import jsonl records.jsonl.gz --map status=meta.status --set domain=billing
        memtool export tag:auth | memtool --global import jsonl -

    Args:
        from_: what the records are, see above
        path: the file or directory; - reads JSON lines from stdin
        map: where a key is found in JSON; may be repeated
        set: a key of every memory; may be repeated
        project: with claude-mem, instead of this repository
        default_status: for records without one, instead of their age
        suggest_files: accept writes those that texts name, off none
        redact: put [REDACTED:kind] for secrets
        commit: commit all of them, in one commit
        dry_run: show what each record becomes, write nothing
        all: show every record and problem
    """
    write.prepare(context, dry_run=dry_run)
    if project and from_ not in ("claude-mem", AUTO):
        raise MemtoolError(
            f"cannot import: --project is for claude-mem, {from_} has no projects",
            hint="leave --project out",
        )
    if default_status:
        _refuse_misfit("--default-status", "status", default_status, context)
    from_, source_path = _find_source(context, from_, path)
    options = _read_options(context, from_, path, map, set)
    options = options.replace(project=project, redacts=redact, default_status=default_status)
    plan = run.plan_source(context, from_, source_path, path, options)
    is_stdin = path == "-"
    if not plan.record_count and not plan.problems:
        raise MemtoolError(
            f"cannot import: no records {'on stdin' if is_stdin else f'in {path or from_}'}",
            hint=f"{from_} takes {SOURCES[from_].description}",
            code="no-records",
        )
    suggested = suggested_files.suggest_planned(context.tree, plan.placed)
    plan = plan.replace(placed=suggested_files.settle_files(suggest_files, plan.placed, suggested))
    probable = suggested if suggest_files == suggested_files.ON else {}
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
    if paths and not dry_run:
        readiness.leave_index(context)
    if from_ == "claude-mem":
        context.notes += filter(None, [claude_mem.find_unread_log(source_path)])
    words = ["memtool import", from_, shlex.quote(path) if path else "", "--commit"]
    return ImportResult(
        record_count=plan.record_count,
        written=len(paths),
        unchanged=len(plan.unchanged),
        skipped=plan.skipped,
        problems=plan.problems,
        memories=tuple(
            _describe_placed(record, plan, probable.get(record.id, ())) for record in plan.placed
        ),
        commit=done,
        dry_run=dry_run,
        updated=len(plan.updated),
        command=" ".join(filter(None, words)),
        has_all=all,
    )


def _find_source(context: Context, from_: str, path: str) -> tuple[str, str]:
    """Return the kind of records, guessed if it is to be, and the real path.

    Raises:
        MemtoolError: there is no path, or no kind fits.
    """
    if path == "-":
        if from_ != "jsonl":
            raise MemtoolError(
                f"cannot import: {from_} records cannot be read from stdin",
                hint=f"memtool import {from_} PATH",
            )
        return from_, jsonl.STDIN.path
    if not path:
        if from_ == AUTO or SOURCES[from_].needs_path:
            raise MemtoolError(
                f"cannot import {from_}: PATH is missing", hint=f"memtool import {from_} PATH"
            )
        return from_, context.repository.top
    source_path = originals.locate(os.path.join(context.caller.cwd, path))
    if from_ != AUTO:
        return from_, source_path
    kind = stores.guess_source(source_path, context.repository.top)
    if not kind:
        raise MemtoolError(
            f"cannot import: it is not clear what the records in {path} are",
            hint=f"memtool import adr {shlex.quote(path)}\nor another of {', '.join(SOURCES)}",
        )
    context.notes.append(f"read as: memtool import {kind} {shlex.quote(path)}")
    return kind, source_path


def _read_options(
    context: Context, from_: str, path: str, map_: tuple[str, ...], set_: tuple[str, ...]
) -> ImportOptions:
    """Read the options that need checks, and the lines on stdin."""
    if map_ and not SOURCES[from_].takes_map:
        raise MemtoolError(
            f"cannot import: --map is for JSON and stores of other tools, not for {from_}",
            hint="to set a key of every memory: --set KEY=VALUE",
        )
    return ImportOptions(
        overrides=_parse_overrides(context, set_),
        places=jsonl.build_field_map(map_),
        stdin=_filters.read_stdin(MAX_STDIN_BYTES) if path == "-" else None,
    )


def _describe_placed(
    record: Record, plan: ImportPlan, suggested: tuple[str, ...]
) -> dict[str, Any]:
    memory = record.memory
    status_from, date_from = plan.origins.get(memory.id, ("", ""))
    row: dict[str, Any] = {
        "id": memory.id,
        "path": record.path,
        "title": memory.title,
        "type": memory.type,
        "category": memory.text("category"),
        "status": memory.status,
        "status_from": status_from,
        "date": format_day(memory.text("timestamp")),
        "date_from": date_from,
        "supersedes": list(memory.items("supersedes")),
        "related_to": list(memory.items("related_to")),
        "files": list(memory.items("files")),
    }
    return row | ({"suggested_files": suggested} if suggested else {})


def migrate(
    context: Context, *, to: int = 0, commit: bool = False, dry_run: bool = False
) -> MigrationResult:
    """Bring the memories to the newest format.

    Without --commit it only shows what would change. It is one commit, which git revert takes back.
    Claims do not change.

    Run it in the clones of those who wrote the memories: only there it can record the code that
    they were checked against.

    Example:
        memtool migrate
        memtool migrate --commit

    Args:
        to: the format, instead of the newest
        commit: do it, as one commit
        dry_run: only show it, even with --commit
    """
    context.repository.refuse_bare("run memtool in a clone or linked worktree")
    context.project.refuse_absent()
    if commit and not dry_run:
        plan, done = migration.migrate(context, to)
        readiness.leave_index(context)
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
        _refuse_misfit(f"--set {key}", key, value, context)
    return overrides


def _refuse_misfit(option: str, key: str, value: FieldValue, context: Context) -> None:
    """Raise MemtoolError if the value of an option does not fit a key."""
    field = BY_NAME.get(key)
    fault = schema.find_value_fault(field, value, context.settings.categories) if field else ""
    if fault:
        raise MemtoolError(f"{option}: {fault}", hint=field.doc if field else "")


def export(context: Context, *filters: str, at: str | None = None) -> ExportResult:
    """Write memories as JSON lines: every key, the body and the path.

    Secrets are masked. Without filters everything is written, including superseded, archived and
    deleted memories. memtool import jsonl reads the lines again.

    Example:
        memtool export > memories.jsonl
        memtool export type:decision is:pinned --at v1.0

    Args:
        filters: filters as in memtool list; without any, all memories
        at: a revision instead of the worktree
    """
    tree = index.open(context, at, exact=True)
    records = list(tree.records)
    if filters:
        scope = build_scope(context, tree, context.clock.now)
        records = retrieve.find_records(scope, parse(expand_words(context, filters)))
    rows = [jsonl.build_row(record) for record in records]
    return ExportResult(tuple(sorted(rows, key=lambda row: (str(row["id"]), str(row["path"])))))


def _add_missing_kind(words: list[str], directory: str) -> list[str]:
    """Read `memtool import docs/adr` as an import of a kind that is to be guessed."""
    if len(words) != 1 or words[0] in KINDS:
        return words
    path = os.path.join(directory, os.path.expanduser(words[0]))
    if os.path.exists(path) or not words[0].replace("-", "").isalnum():
        return [AUTO, *words]
    raise MemtoolError(
        f"cannot import: {words[0]!r} is neither a path here nor a kind of records",
        hint=f"memtool import adr PATH\nor another of {', '.join(SOURCES)}",
    )


def _refuse_store(words: list[str], _directory: str) -> list[str]:
    """Refuse the store of another tool, which `import` takes."""
    if words:
        raise MemtoolError(
            "migrate is for memtool's own memories; import takes over those of another tool",
            hint=" ".join(["memtool import", *map(shlex.quote, words), "--dry-run"]),
        )
    return words


READINGS = {"import": _add_missing_kind, "migrate": _refuse_store}
"""Corrections of arguments, by verb; they get the words and that of -C."""
