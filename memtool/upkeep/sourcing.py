"""Sourcing: which memories name what is not there. It is told, not mended."""

from __future__ import annotations

from memtool.gate import links, taking
from memtool.gate.content import Content
from memtool.gate.kin import Kin

TYPE_CHECKING = False
if TYPE_CHECKING:
    from memtool.memory.problem import Problem
    from memtool.store.tree import Tree
    from memtool.upkeep.steps import Grounds


def dangling(tree: Tree, grounds: Grounds) -> list[Problem]:
    """Return a problem for each name that leads nowhere in the commit that a tree was read from."""
    taken = tree.snapshot
    whole = taking.read_whole(taken, grounds.config.categories)
    content = Content(
        repository=taken.repository,
        directory=taken.directory,
        settings=grounds.config,
        now=grounds.now,
        files=whole.files,
        texts=(),
        steps=(),
        kin=Kin(whole.rows()),
        head=taken.name,
        kind=taken.kind,
        is_whole=True,
        records=whole.records,
        earlier=lambda _id: (),
    )
    return sorted(links.check(content), key=lambda one: (one.path, one.line, one.message))
