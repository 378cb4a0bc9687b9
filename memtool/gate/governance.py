"""Governance: which memories have a say in which files."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Iterator, Mapping
from urllib.parse import unquote

from memtool.memory import body, sources
from memtool.search import filters
from memtool.search.filters import ways_up
from memtool.store.tree import Record
from memtool.value import Value

RULING_STATUSES = frozenset(("confirmed", "pinned"))


class Rule(Value):
    """A memory that governs a file. `by` says how it names it: `files`, `source` or `link`."""

    record: Record
    by: str


def is_ruling(record: Record) -> bool:
    """Tell whether a memory is a decision or a warning that somebody vouches for."""
    memory = record.memory
    is_kind = memory.type == "decision" or memory.category in ("decision", "warning")
    return is_kind and memory.status in RULING_STATUSES


def rules(
    records: Iterable[Record], files: Mapping[str, tuple[str, ...]]
) -> dict[str, tuple[Rule, ...]]:
    """Return the memories that govern files, by the key of the file; files have several paths.

    Memories are sorted by id; one that names a file in several ways is there once.
    """
    exact: dict[str, list[Rule]] = {}
    patterns: dict[str, list[Rule]] = {}
    for record in records:
        for by, name in _named(record):
            plain = "/".join(part for part in name.split("/") if part)
            is_glob = by == "files" and ("*" in plain or "?" in plain)
            table = patterns if is_glob else exact
            table.setdefault(plain, []).append(Rule(record, by))
    found = {}
    for file, paths in files.items():
        rules = [rule for path in paths for above in ways_up(path) for rule in exact.get(above, ())]
        for pattern, those in patterns.items():
            if any(filters.governs(pattern, path) for path in paths):
                rules += those
        rules.sort(key=lambda rule: (rule.record.id, rule.record.path, _WAYS.index(rule.by)))
        first = {rule.record.path: rule for rule in reversed(rules)}
        found[file] = tuple(first[path] for path in sorted(first, key=lambda p: first[p].record.id))
    return found


_WAYS = ("files", "source", "link")


def _named(record: Record) -> Iterator[tuple[str, str]]:
    """Yield how a memory names files, and which: `files` may be globs, the others are paths."""
    for pattern in record.memory.items("files"):
        yield "files", pattern
    for text in record.memory.items("source"):
        source = sources.parse(text)
        if source.kind == "file":
            yield "source", posixpath.normpath(source.target)
    text = record.memory.body
    if "](" not in text and "]:" not in text:  # reading markdown costs a millisecond
        return
    for link in body.links(text):
        target = unquote(link.target.partition("#")[0].partition("?")[0])
        if link.kind == "url" and target and ":" not in target:
            # Renderers start at the file, people often at the top.
            for start in ("", posixpath.dirname(record.path)):
                path = posixpath.normpath(posixpath.join(start, target.lstrip("/")))
                if path != "." and not path.startswith("../"):
                    yield "link", path
