"""Governing: the decisions and warnings that an agent hears of when it has changed a file."""

from __future__ import annotations

from memtool.commands.inject import Injected, inside
from memtool.commands.passages import item_of, origins_of, written
from memtool.commands.sides import Asked, side_of
from memtool.index.reader import Catalog
from memtool.inject import budget as budgets
from memtool.inject import formats, selection, tiers
from memtool.inject.block import frame_bytes, write_block
from memtool.inject.tiers import Candidate
from memtool.search import filters

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from memtool.workspace import Workspace

MOST = 3
MOST_TOKENS = 500
"""Of all of them: the agent is in the middle of its work."""
_LOOKED_AT = 20


def governing(
    ws: Workspace,
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
    paths = [path for path in inside(ws, files) if not path.startswith(f"{ws.directory}/")]
    side = side_of(ws, Asked(ws, "", (), session, None, None, explain=False), exact=exact)
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
        return governing(ws, files, for_=for_, budget=budget, session=session, exact=True)
    candidates = [Candidate(one, tiers.GOVERNING) for one in found[:_LOOKED_AT]]
    origins = origins_of(ws.witness(tree), grounds, candidates)
    form = formats.BY_NAME[formats.HOSTS[for_]]
    kept, verdicts = selection.choose(candidates, grounds, origins)
    fresh, seen_before = side.once.fresh(kept)

    def text_of(candidate: Candidate, is_whole: bool) -> str:  # noqa: FBT001  # one of two texts
        is_whole = is_whole and not candidate.is_brief
        return written(candidate.record, grounds, origins, form, is_whole=is_whole)

    most = min(budget, MOST_TOKENS)
    room = most * budgets.BYTES_PER_TOKEN - frame_bytes(form)
    taken, said = tiers.fill(fresh, text_of, MOST, most, room)
    return Injected(
        budget=budgets.plan(ws.settings, most, None),
        items=tuple(item_of(one, grounds, origins) for one in taken),
        text=write_block([one.text for one in taken], form),
        format=form.name,
        session=session,
        freshness=side.freshness,
        explain=None,
        verdicts=(*verdicts, *seen_before, *said),
        versions=side.once.versions(taken),
    )
