"""AGENTS.md as a host: the managed block, for every agent that reads this file.

The block itself is made by `inject.agents_md`. Git's hook renews it after a merge into the default
branch; on other branches it stays, so that they do not conflict over it.
"""

from __future__ import annotations

import os

from memtool.hosts import git, git_hooks
from memtool.hosts.install import FileStep, InstallPlan
from memtool.inject import agents_md

TYPE_CHECKING = False
if TYPE_CHECKING:
    from memtool.store.context import Context

PATH = "AGENTS.md"


def plan_install(context: Context) -> InstallPlan:
    """Plan to add the block, or to bring it up to date.

    Raises:
        MemtoolError: the file cannot be read, or its marks are not one pair.
    """
    top = context.repository.top
    before = agents_md.read_agent_file(context, PATH)
    text = agents_md.build_block(context)
    after = agents_md.place_block(before, PATH, text, has_marks=True)
    path = os.path.join(top, PATH)
    steps = () if after == before else (FileStep("edit", path, data=after, before=before),)
    notes = []
    if not text:
        notes.append(f"nothing is pinned or confirmed yet, so the block in {PATH} is empty")
    site = git.find_hook_site(context.repository, context.directory)
    if not git_hooks.find_gate_hook(site, "post-merge"):
        notes.append("git's hook renews the block after merges: memtool install git")
    return InstallPlan(steps, tuple(notes))


def plan_uninstall(context: Context) -> InstallPlan:
    """Plan to remove the block, and the file if it has nothing else.

    Raises:
        MemtoolError: the file cannot be read, or its marks are not one pair.
    """
    top = context.repository.top
    path, before = os.path.join(top, PATH), agents_md.read_agent_file(context, PATH)
    after = agents_md.remove_block(before, PATH) if before is not None else None
    if before is None or after == before:
        return InstallPlan(())
    if after is None:
        return InstallPlan((FileStep("remove", path, target=top, before=before),))
    return InstallPlan((FileStep("edit", path, data=after, before=before),))
