"""An import as a whole: from a kind of records and a path to a plan, and to files."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from typing import Any

from memtool.authoring import citations, write
from memtool.gate.near_duplicates import THRESHOLD_KEY
from memtool.importing import SOURCES, base
from memtool.importing.base import ImportPlan, Target
from memtool.importing.originals import ForeignRecord, ImportRequest
from memtool.memory.memory import Fields, FieldValue
from memtool.memory.schema import Problem
from memtool.redaction.find import build_allowlist
from memtool.store.context import Context
from memtool.value import Value, format_count


class ImportOptions(Value):
    """What a user may ask of an import.

    `overrides` are keys of every memory, `places` say where a key is found in entries. `project`
    is the one of a store that has several. With `redacts`, secrets and personal data are taken
    out. `default_status` is for records without a status of their own; empty for the usual rule.
    `stdin` is read instead of a file.
    """

    overrides: Mapping[str, FieldValue] = {}
    places: Mapping[str, Sequence[str]] = {}
    project: str = ""
    redacts: bool = False
    default_status: str = ""
    stdin: bytes | None = None


USUAL = ImportOptions()


def plan_source(
    context: Context, name: str, path: str, shown: str, options: ImportOptions = USUAL
) -> ImportPlan:
    """Plan the import of a file or directory, given by its absolute path.

    `shown` is the path as the user wrote it, for hints.
    """
    source = SOURCES[name]
    settings = context.settings
    scope: Fields = {"scope": write.GLOBAL} if context.is_global else {}
    target = Target(
        tree=context.tree(),
        tool=name,
        overrides={**options.overrides, **scope},
        categories=settings.categories,
        now=context.clock.now,
        allowed=build_allowlist(settings),
        redacts=options.redacts,
        is_store=source.is_store,
        keeps_unknown=source.keeps_unknown,
        threshold=settings.number(THRESHOLD_KEY),
        default_status=options.default_status or source.default_status,
        trusted_ref=context.project.trust_settings.text("trust.ref"),
        command=f"memtool import {name} {shlex.quote(shown)}".rstrip(),
    )
    records = _without_global_scope(context, read_records(context, name, path, options))
    plan = base.plan_import(records, path, target)
    return plan.replace(problems=(*plan.problems, *_warn_of_lost(context, plan)))


def _warn_of_lost(context: Context, plan: ImportPlan) -> Iterator[Problem]:
    """Yield a warning for each file and commit that the new memories name and that is not there."""
    memories = [record.memory for record in plan.placed]
    for record, faults in zip(plan.placed, citations.find_faults(context, memories), strict=True):
        for fault in faults:
            message, hint = fault.message, fault.hint
            yield Problem(record.path, 0, fault.code, message, hint, record.id, "warning")


def read_records(
    context: Context, name: str, path: str, options: ImportOptions = USUAL
) -> Iterable[ForeignRecord | Problem]:
    """Read the records of a file or directory, with the problems of those that are none."""
    module, _, function = SOURCES[name].drafts.partition(".")
    drafts: Callable[[str, Any], Iterable[ForeignRecord | Problem]]
    drafts = getattr(import_module(f"memtool.importing.{module}"), function)
    request = ImportRequest(
        context.repository.top,
        tuple(context.settings.categories),
        context.clock.now,
        options.project,
        options.places,
        options.stdin,
        context.caller.env,
        context.is_global,
    )
    return drafts(path, request)


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
