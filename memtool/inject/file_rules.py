"""File rules: the decisions and warnings that govern a file."""

from __future__ import annotations

import posixpath
from urllib.parse import unquote

from memtool.index.reader import Catalog
from memtool.inject import block, select
from memtool.inject import budget as budgets
from memtool.inject.block import Injected, frame_bytes, inside, write_block
from memtool.inject.candidates import GOVERNING, Candidate, fill
from memtool.inject.gather import GatherRequest, item_of, origins_of, side_of, written
from memtool.memory import memory, sources
from memtool.search import filters
from memtool.search.filters import ways_up
from memtool.store.tree import Record
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from memtool.store.context import Context

MOST = 3
MOST_TOKENS = 500
"""Of all of them: the agent is in the middle of its work."""
_LOOKED_AT = 20


def governing(
    context: Context,
    files: Iterable[str],
    *,
    for_: str,
    budget: int,
    session: str,
    exact: bool = False,
) -> Injected:
    """Return what governs files that were changed, the most important first; often nothing.

    Raises:
        MemtoolError: there is no memory directory.
    """
    paths = [
        path for path in inside(context, files) if not path.startswith(f"{context.directory}/")
    ]
    side = side_of(
        context, GatherRequest(context, "", (), session, None, None, explain=False), exact=exact
    )
    grounds = side.grounds
    found = [
        one
        for one in filters.ruling_over(grounds.tree, paths)
        if not grounds.objection(one.memory)
    ] if paths else []  # fmt: skip
    found.sort(key=lambda one: (-one.memory.importance, -one.memory.timestamp, one.id))
    tree = grounds.tree
    assert isinstance(tree, Catalog)
    if not exact and not tree.verify(found[:_LOOKED_AT]):
        return governing(context, files, for_=for_, budget=budget, session=session, exact=True)
    candidates = [Candidate(one, GOVERNING) for one in found[:_LOOKED_AT]]
    origins = origins_of(context.witness(tree), grounds, candidates)
    form = block.BY_NAME[block.HOSTS[for_]]
    kept, verdicts = select.choose(candidates, grounds, origins)
    fresh, seen_before = side.once.fresh(kept)

    def text_of(candidate: Candidate, is_whole: bool) -> str:  # noqa: FBT001  # one of two texts
        is_whole = is_whole and not candidate.is_brief
        return written(candidate.record, grounds, origins, form, is_whole=is_whole)

    most = min(budget, MOST_TOKENS)
    room = most * budgets.BYTES_PER_TOKEN - frame_bytes(form)
    taken, said = fill(fresh, text_of, MOST, most, room)
    return Injected(
        budget=budgets.plan(context.settings, most, None),
        items=tuple(item_of(one, grounds, origins) for one in taken),
        text=write_block([one.text for one in taken], form),
        format=form.name,
        session=session,
        freshness=side.freshness,
        explain=None,
        verdicts=(*verdicts, *seen_before, *said),
        versions=side.once.versions(taken),
    )


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
    for link in memory.links(text):
        target = unquote(link.target.partition("#")[0].partition("?")[0])
        if link.kind == "url" and target and ":" not in target:
            # Renderers start at the file, people often at the top.
            for start in ("", posixpath.dirname(record.path)):
                path = posixpath.normpath(posixpath.join(start, target.lstrip("/")))
                if path != "." and not path.startswith("../"):
                    yield "link", path
