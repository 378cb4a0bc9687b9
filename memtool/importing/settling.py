"""Premises of new memories of an import: which version of a record they cite, what they accept.

A record cites the present text of another one. If that has changed since it was imported, its
latest import is the premise. A record that is younger than the change of its premise cites it on
purpose, and accepts that change. An exact memory is written as it was exported.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence

from memtool.memory import premises
from memtool.memory.memory import Memory
from memtool.memory.premises import DEPRECATED, REPLACED, Cause
from memtool.search.unsettled import Unsettled
from memtool.store.tree import ReadTree, Record, Tree


def cite_latest(
    placed: Sequence[Record], latest: Mapping[str, str], exact: Collection[str]
) -> list[Record]:
    """Return the memories with sources that name the latest import of each record.

    `latest` has its id, by the id of the record.
    """
    names = {
        premises.MEMORY + old: premises.MEMORY + new for old, new in latest.items() if old != new
    }
    cited = []
    for record in placed:
        sources = record.memory.items("source")
        new_sources = tuple(dict.fromkeys(names.get(source, source) for source in sources))
        is_same = new_sources == sources or record.id in exact
        cited.append(record if is_same else _with_field(record, "source", new_sources))
    return cited


def settle(
    placed: Sequence[Record],
    tree: Tree,
    now: int,
    exact: Collection[str],
    retired: Mapping[str, int],
) -> list[Record]:
    """Return the memories with `settled_on`: what changed their premises before their own date.

    A memory that replaces others does so at its date. `retired` has the Unix seconds by which each
    deprecated one was so; without them, nothing accepts that.
    """
    records = {record.id: record for record in (*tree.records, *placed)}
    todo = {record.id for record in placed if premises.find_premises(record.memory)} - {*exact}
    while todo:  # an accepted change may lead to the next one, as when its memory is deprecated
        whole = ReadTree(tree.location, records.values(), categories=tree.categories)
        causes = Unsettled(whole, now).find(sorted(todo))
        todo.clear()
        for id_, own in causes.items():
            memory = records[id_].memory
            names = [
                cause.name
                for cause in own.values()
                if cause.is_direct and _date_change(cause, whole, retired) < memory.timestamp
            ]
            if names:
                accepted = (*memory.items("settled_on"), *names)
                records[id_] = _with_field(records[id_], "settled_on", accepted)
                todo.add(id_)
    return [records[record.id] for record in placed]


def _date_change(cause: Cause, tree: Tree, retired: Mapping[str, int]) -> float:
    """Return the Unix second of a cause; infinite if it is not known."""
    if cause.reason == DEPRECATED:
        return retired.get(cause.id, math.inf)
    newer = tree.get(cause.id)
    return math.inf if cause.reason != REPLACED or newer is None else newer.memory.timestamp


def _with_field(record: Record, key: str, value: tuple[str, ...]) -> Record:
    fields = record.memory.fields | {key: value}
    return record.replace(memory=Memory(fields=fields, body=record.memory.body))
