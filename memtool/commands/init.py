"""`memtool init`: the memory directory of a repository."""

from __future__ import annotations

from memtool.authoring import tree
from memtool.authoring.tree import Initialized
from memtool.store.context import Context


def init(
    context: Context, *, directory: str = "", commit: bool = False, dry_run: bool = False
) -> Initialized:
    """Make the memory directory of a repository: settings, templates, and two lines for git.

    Doing it again adds only what is missing. The templates, .memory/_decision.md and so on, are
    yours to change. The lines in .gitattributes keep git from converting line ends in memories, and
    name the merge driver that memtool install git sets up.

    Example:
        memtool init --commit

    Args:
        directory: keep the memories here instead of .memory; .memtool.toml at the top says so
        commit: commit just these files
        dry_run: say which files would be written, write nothing
    """
    return tree.begin(context, directory, commit=commit, dry_run=dry_run)


def render(initialized: Initialized) -> str:
    """Return one line per file, then what to do next."""
    if not initialized.written:
        return f"{initialized.directory} is ready, nothing was missing"
    rows = [f"wrote {path}" for path in initialized.written]
    if initialized.dry_run:
        return "\n".join(f"would write {path}" for path in initialized.written)
    return "\n".join([*rows, 'next: memtool new decision "TITLE", or memtool import adr DIR'])
