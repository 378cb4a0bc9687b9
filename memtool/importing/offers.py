"""Offers of imports: the stores of a repository that `memtool init` can take over."""

from __future__ import annotations

import os
import shlex
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from functools import partial

from memtool.authoring.adoption import Adopted, Change, Offer
from memtool.errors import MemtoolError
from memtool.importing import base, run, stores
from memtool.importing.originals import ForeignRecord
from memtool.importing.stores import Store
from memtool.memory.schema import Problem
from memtool.store.context import Context
from memtool.value import format_count


def find_stores(context: Context) -> list[Store]:
    """Return the stores among the files of the worktree that git does not ignore."""
    options = ("-z", "--cached", "--others", "--exclude-standard")
    names = context.repository.git.names("ls-files", *options)
    own = f"{context.directory}/"
    return stores.find_stores(name for name in names if not name.startswith(own))


def find_offers(context: Context) -> Iterator[Offer]:
    """Yield an offer for each store with records that are not in the tree."""
    ids = _list_ids(context)
    for store in find_stores(context):
        path = os.path.join(context.repository.top, store.path)
        try:
            items = list(run.read_records(context, store.source, path))
        except MemtoolError:  # what cannot be read is told by the import itself
            continue
        new = [item for item in items if isinstance(item, ForeignRecord) and item.id not in ids]
        if new:
            yield Offer(
                _name_store(store),
                f"{store.what} ({len(new):,})",
                f"memtool import {store.source} {shlex.quote(store.path)}",
                partial(_import_store, store),
            )


def _name_store(store: Store) -> str:
    return store.first if store.path == "." else store.path


def _list_ids(context: Context) -> Collection[str]:
    """Return the ids of the tree; empty if there is none yet, or one of another tool."""
    with suppress(MemtoolError):  # its notes are not those of this verb
        return Context(context.repository, context.caller.env, context.caller.cwd).tree().ids
    return ()


def find_changes(context: Context) -> Iterator[Change]:
    """Yield the imported stores that would add or change memories if they were imported again."""
    stores_here = find_stores(context)
    ids = _list_ids(context) if stores_here else ()
    for store in stores_here:
        path = os.path.join(context.repository.top, store.path)
        try:
            items = list(run.read_records(context, store.source, path))
            if not any(isinstance(item, ForeignRecord) and item.id in ids for item in items):
                continue
            plan = run.plan_source(context, store.source, path, store.path)
        except MemtoolError:  # the import itself says why
            continue
        changed = len(plan.updated) + sum(problem.code == "changed" for problem in plan.problems)
        new = len(plan.placed) - len(plan.updated)
        counts = [f"{changed:,} changed"] * bool(changed) + [f"{new:,} new"] * bool(new)
        if counts:
            yield Change(
                f"{', '.join(counts)} in {store.path} since it was imported",
                f"memtool import {store.source} {shlex.quote(store.path)}",
            )


def _import_store(store: Store, context: Context) -> Adopted:
    """Import a store, and tell how many of its records came in."""
    path = os.path.join(context.repository.top, store.path)
    plan = run.plan_source(context, store.source, path, store.path)
    base.write_memories(context.repository, plan.placed)
    if plan.problems:
        context.notes.append(
            f"{_name_store(store)}: {_count_problems(plan.problems)}: "
            f"memtool import {store.source} {shlex.quote(store.path)} --dry-run"
        )
    count = f"{len(plan.placed):,} of {plan.record_count:,}"
    paths = tuple(record.path for record in plan.placed)
    return Adopted(paths, (f"{_name_store(store)}: {store.what}, {count}",))


def _count_problems(problems: Sequence[Problem]) -> str:
    """Return how many records were refused, and how many warnings there are."""
    refused = sum(problem.severity == "error" for problem in problems)
    counts = [f"{refused:,} refused"] * bool(refused)
    warnings = len(problems) - refused
    counts += [format_count(warnings, "warning")] * bool(warnings)
    return ", ".join(counts)
