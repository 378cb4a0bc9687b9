"""`memtool import` and `export`: memories from other homes, and as JSON lines; and `migrate`."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Collection, Iterable, Iterator
from importlib import import_module
from typing import Annotated, Any

from memtool.authoring import draft, write
from memtool.commands import _filters
from memtool.errors import MemtoolError
from memtool.gate.checks import secrets
from memtool.gate.near_duplicates import THRESHOLD_KEY
from memtool.importing import SOURCES, base, claude_mem, jsonl, originals
from memtool.importing.base import Target
from memtool.importing.entries import StoreRequest
from memtool.importing.originals import ForeignRecord
from memtool.index import index
from memtool.memory import lifecycle, schema
from memtool.memory.fields import BY_NAME
from memtool.memory.memory import Fields
from memtool.memory.schema import Problem
from memtool.redaction.find import allowlist
from memtool.search import retrieve
from memtool.search.query import parse
from memtool.search.saved import text_of
from memtool.search.scope import scope_of
from memtool.store.commits import commit_files
from memtool.store.context import Context
from memtool.store.edits import is_interrupted
from memtool.store.provenance import SHORT
from memtool.store.tree import Record
from memtool.upkeep import migration
from memtool.upkeep.migration import StepDone
from memtool.value import Value, plural

SHOWN_PROBLEMS = 20
MOST_STDIN = 256 << 20
"""Most bytes that are read from stdin."""


class Imported(Value):
    """What became of the records: found = written + unchanged + skipped."""

    found: int
    written: int
    unchanged: int
    skipped: int
    problems: tuple[Problem, ...]
    memories: tuple[dict[str, str], ...]
    commit: str | None = None
    dry_run: bool = False

    @property
    def exit_code(self) -> int:
        """1 if a record could not be taken."""
        return int(any(problem.severity == "error" for problem in self.problems))


class Migrated(Value):
    """The steps from one format to another; `commit` is None for a plan, or where there is none."""

    json_names = (("old", "from"), ("new", "to"))

    old: int
    new: int
    steps: tuple[StepDone, ...]
    commit: str | None = None
    dry_run: bool = False


class Exported(Value):
    """One row per memory, sorted by id; as JSON just the list of them."""

    rows: tuple[dict[str, Any], ...]

    def plain(self) -> Any:
        """Return the rows as a list."""
        return list(self.rows)


def render(answer: Imported | Exported | Migrated) -> str:
    """Return one line of JSON per exported memory, the counts of an import, or a migration."""
    if isinstance(answer, Exported):
        return "".join(f"{jsonl.line(row)}\n" for row in answer.rows)
    return _migrated_text(answer) if isinstance(answer, Migrated) else _imported_text(answer)


def _migrated_text(done: Migrated) -> str:
    """Return a line for each step, and what comes next."""
    if not done.steps:
        return f"the memories have format {done.old}: nothing to migrate"
    rows = [f"from format {done.old} to {done.new}:"]
    if done.old == done.new:
        rows = [f"files of an older format than {done.new}, as from a branch that was merged:"]
    for step in done.steps:
        rows.append(f"  {step.name}: {plural(len(step.files), 'file')}")
    if done.commit:
        short = done.commit[:SHORT]
        rows.append(f"committed as {short}; git revert {short} takes it back")
    else:
        rows.append(f"nothing was changed; {migration.AGAIN} does it")
    return "\n".join(rows)


def _imported_text(imported: Imported) -> str:
    """Return the counts, then what was wrong with records, errors before warnings."""
    verb = "would be written" if imported.dry_run else "written"
    counts = (
        f"{imported.written:,} {verb}",
        f"{imported.unchanged:,} unchanged",
        f"{imported.skipped:,} skipped",
    )
    rows = [f"{imported.found:,} found: {', '.join(counts)}"]
    worst_first = sorted(imported.problems, key=lambda problem: problem.severity)
    for problem in worst_first[:SHOWN_PROBLEMS]:
        rows.append(f"{problem.severity}: {problem.text()}")
        rows += [f"  hint: {problem.hint}"] if problem.hint else []
    more = len(imported.problems) - SHOWN_PROBLEMS
    if more > 0:
        rows.append(f"and {more:,} more; --json lists all")
    if imported.commit:
        rows.append(f"committed as {imported.commit[:10]}")
    return "\n".join(rows)


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
) -> Imported:
    """Take over decision records, agent files, JSON, or the store of another tool as memories.

    Doing it again changes nothing: every record keeps its id. A record that has changed since is
    named with the command that supersedes its memory; no memory is ever overwritten. Whatever
    record cannot be taken is named too, such as one with a secret, and the others are written.

    A JSON line needs no --map for what it has under the keys of a memory, such as source,
    confidence and importance; what does not fit there is left out and named. Of the stores of other
    tools fields, dates and relations are mapped by tables, which docs/import.md shows; what has no
    place is named with its number. What a model wrote there unreviewed (mem0, claude-mem) becomes a
    candidate of low confidence; --set status=confirmed vouches for all of it.

    Imported memories do not expire, as they stood in their old home without end; --set
    temporal_class=long_term or medium_term has somebody look at them again.

    Example:
        memtool import adr docs/adr --commit
        memtool import basic-memory ~/basic-memory --dry-run
        memtool import claude-mem ~/.claude-mem --project shop
        memtool import jsonl records.jsonl.gz --map status=meta.status --set domain=billing
        memtool export tag:auth | memtool --global import jsonl -

    Args:
        from_: what the records are: adr (MADR, Nygard's form, log4brains), pep, claude (CLAUDE.md,
            AGENTS.md and GEMINI.md), jsonl, json (a list, or a table such as {"version": 2,
            "memories": [...]}), markdown (with a front matter, also of schema_version 1 and 2), or
            the tool that a store is of
        path: the file or directory, inside or outside of the repository; - reads JSON lines from
            stdin
        map: where a key of a memory is found in JSON or a store, as FIELD=JSON.PATH; also body and
            superseded_by; may be repeated
        set: a key for every memory as KEY=VALUE, in place of what the records say; may be repeated
        project: for claude-mem, whose entries are wanted; those of the repository's name without it
        redact: put [REDACTED:kind] in the place of secrets and personal data
        commit: commit all of them, in one commit
        dry_run: say what would be written, write nothing
    """
    write.prepare(context, dry_run=dry_run)
    target = Target(
        tree=context.tree(),
        tool=from_,
        overrides=_overrides(context, set) | ({"scope": "global"} if context.is_global else {}),
        categories=context.settings.categories,
        now=context.clock.now,
        allowed=allowlist(context.settings),
        redacts=redact,
        is_store=SOURCES[from_].is_store,
        threshold=context.settings.number(THRESHOLD_KEY),
        command=f"memtool import {from_} {shlex.quote(path)}",
    )
    if project and from_ != "claude-mem":
        raise MemtoolError(
            f"--project is for claude-mem, {from_} has no projects", hint="leave --project out"
        )
    is_stdin = path == "-"
    if is_stdin and from_ != "jsonl":
        raise MemtoolError(
            f"{from_} records are not read from stdin",
            hint=f"memtool import {from_} PATH, or ./- for a file of that name",
        )
    place = (
        jsonl.STDIN.path if is_stdin else originals.located(os.path.join(context.caller.cwd, path))
    )
    drafts = _drafts(context, from_, place, map, project, is_stdin=is_stdin)
    plan = base.plan(_of_project(context, drafts), place, target)
    if not plan.found and not plan.problems:
        raise MemtoolError(
            f"there is no record {'on stdin' if is_stdin else f'in {path}'}",
            hint=f"memtool import {from_} PATH wants {SOURCES[from_].wanted}",
            code="no-records",
        )
    _tell_expired(context, plan.placed)
    done = None
    paths = [one.path for one in plan.placed]
    if paths and not dry_run:
        base.write(context.repository, plan.placed)
    left = _uncommitted(context, plan.unchanged) if commit and not dry_run else []
    if left:
        context.notes.append(f"{len(left):,} of these were written before, and are committed now")
    if commit and not dry_run and (paths or left):
        where = jsonl.STDIN.shown if is_stdin else originals.tail(place)
        subject = f"memory: import {len(paths) + len(left)} from {where}"[:72]
        done = commit_files(context, [*paths, *left], subject, {"Memory-Import": from_})
    if from_ == "claude-mem":
        context.notes += filter(None, [claude_mem.unseen(place)])
    return Imported(
        found=plan.found,
        written=len(paths),
        unchanged=len(plan.unchanged),
        skipped=plan.skipped,
        problems=plan.problems,
        memories=tuple({"id": one.memory.id, "path": one.path} for one in plan.placed),
        commit=done,
        dry_run=dry_run,
    )


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
) -> Migrated | Imported:
    """Show what leads the memories to the newest format of this version; with --commit, do it.

    The format of all memories of a repository is one number in the config.toml of the memory
    directory; none means 1. Memories of a newer format than this version knows are read as far as
    it can read them, and never written. A migration changes keys that may change, settings, and
    where files lie; what a memory claims stays as it is. It is one commit, which git revert takes
    back, and done again it changes nothing but files that a merge brought from an older branch.

    With FROM and PATH another tool's store is taken over, as memtool import does: shown first, and
    with --commit written, as one commit.

    Example:
        memtool migrate
        memtool migrate --commit
        memtool migrate beads .beads/issues.jsonl

    Args:
        from_: take over a store of this kind, as memtool import does
        path: its file or directory
        to: the format to lead to, the newest without it
        project: for claude-mem, whose entries are wanted; those of the repository's name without it
        redact: put [REDACTED:kind] in the place of secrets and personal data of a store
        commit: do what is planned, as one commit
        dry_run: only show it, even with --commit
    """
    if from_:
        if to or not path:
            raise MemtoolError(
                "--to is a format of memtool's own memories"
                if to
                else f"where is the {from_} store?",
                hint=f"memtool migrate {from_} PATH",
            )
        if not commit:
            context.notes.append("nothing is written; the same with --commit does it")
        is_shown = dry_run or not commit
        return import_(
            context, from_, path, project=project, redact=redact, commit=commit, dry_run=is_shown
        )
    if project or redact:
        raise MemtoolError(
            "--project and --redact are for the store of another tool",
            hint="memtool migrate FROM PATH, as memtool import has them",
        )
    context.repository.refuse_bare("run memtool in a clone or linked worktree")
    context.project.refuse_absent()
    if commit and not dry_run:
        found, done = migration.migrate(context, to)
        return Migrated(found.old, found.new, found.steps, done)
    if is_interrupted(context.repository):
        context.notes.append("an earlier run was interrupted; --commit takes back what it wrote")
    found = migration.plan(context, to)
    return Migrated(found.old, found.new, found.steps, dry_run=dry_run)


def _tell_expired(context: Context, placed: Iterable[Record]) -> None:
    """Note how many memories have expired already by what their records say."""
    categories = context.settings.categories
    states = [lifecycle.state(one.memory, context.clock.now, categories) for one in placed]
    count = states.count(lifecycle.EXPIRED)
    if count:
        context.notes.append(
            f"{count:,} of them expired by what their store says, and are found with is:expired"
            " alone; --set temporal_class=medium_term has somebody look at them instead"
        )


def _uncommitted(context: Context, paths: Collection[str]) -> list[str]:
    """Return which memories no commit holds, as an import that was killed leaves them."""
    if not paths:
        return []
    status = context.repository.git.status(context.directory)
    new = {path for letters, path in status if letters in ("??", " A", "A ", "AM")}
    return sorted(new.intersection(paths))


def _drafts(
    context: Context,
    from_: str,
    place: str,
    pairs: tuple[str, ...],
    project: str,
    *,
    is_stdin: bool,
) -> Iterable[ForeignRecord | Problem]:
    top = context.repository.top
    if from_ == "jsonl":
        data = _filters.read_stdin(MOST_STDIN) if is_stdin else None
        categories = context.settings.categories
        return jsonl.drafts(place, top, pairs, categories=categories, stdin=data)
    source = SOURCES[from_]
    if pairs and not source.is_store:
        raise MemtoolError(
            f"--map is for JSON and stores of other tools, {from_} records have names of their own",
            hint="--set KEY=VALUE sets a key of every memory",
        )
    module, _, name = source.drafts.partition(".")
    drafts: Callable[[str, Any], Iterable[ForeignRecord | Problem]]
    drafts = getattr(import_module(f"memtool.importing.{module}"), name)
    if not source.is_store:
        return drafts(place, top)
    chosen = jsonl.field_map(pairs, {})
    asked = StoreRequest(
        top, tuple(context.settings.categories), context.clock.now, project, chosen
    )
    return drafts(place, asked)


def _of_project(
    context: Context, drafts: Iterable[ForeignRecord | Problem]
) -> Iterator[ForeignRecord | Problem]:
    """Yield drafts without scope: global, which no file of a project can have; one note counts."""
    count = 0
    for one in drafts:
        if isinstance(one, ForeignRecord) and not context.is_global:
            is_wider = one.fields.get("scope") == write.GLOBAL
            count += is_wider
            kept = {key: value for key, value in one.fields.items() if key != "scope"}
            yield one.replace(fields=kept) if is_wider else one
        else:
            yield one
    if count:
        what = plural(count, "record was", "records were")
        context.notes.append(
            f"{what} of scope global, and hold in this project alone; memtool --global import "
            "takes them for all your projects"
        )


def _overrides(context: Context, pairs: tuple[str, ...]) -> Fields:
    """Read `--set`. Raises MemtoolError for what cannot be the same in every memory, or at all."""
    types = [pair for pair in pairs if pair.startswith("type=")]
    found = draft.assigned([pair for pair in pairs if pair not in types])
    if types:
        found["type"] = types[-1].partition("=")[2]
    secrets.refuse_secrets("\n".join(pairs), allowlist(context.settings))
    if found.get("scope") == write.GLOBAL and not context.is_global:
        raise MemtoolError(
            "scope: global has no effect in the file of a project",
            hint="memtool --global import takes records for all your projects",
            code="foreign-scope",
        )
    for key, value in found.items():
        field = BY_NAME.get(key)
        fault = schema.value_fault(field, value, context.settings.categories) if field else ""
        if fault:
            raise MemtoolError(f"--set {key}: {fault}", hint=field.doc if field else "")
    return found


def export(
    context: Context, *filters: str, at: str | None = None, no_body: bool = False
) -> Exported:
    """Write memories as JSON lines: every key, the body and the path.

    From all of them memtool import jsonl makes the same files again, but for secrets, which are
    masked. Without filters everything
    is written, also what is superseded, archived or deleted; with filters what list finds with
    them.

    Example:
        memtool export > memories.jsonl
        memtool export type:decision is:pinned --at v1.0

    Args:
        filters: what they must match, as in memtool list; everything without any
        at: the memories of this revision instead of the worktree
        no_body: leave the bodies out
    """
    tree = index.open(context, at, exact=True)
    records = list(tree.records)
    if filters:
        scope = scope_of(context, tree, context.clock.now)
        records = retrieve.select(scope, parse(text_of(context, filters)))
    rows = [jsonl.row(record, has_body=not no_body) for record in records]
    return Exported(tuple(sorted(rows, key=lambda row: (str(row["id"]), str(row["path"])))))
