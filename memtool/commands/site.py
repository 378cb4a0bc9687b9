"""`memtool site`: the pages of the web view as static files, for everybody who may read them.

Pages are made by a surface above the verbs, as the web view itself. Here is what every surface
reads: the name, the options, the help, and the result as text.
"""

from __future__ import annotations

from memtool.errors import MemtoolError
from memtool.store.context import Context
from memtool.store.provenance import SHORT
from memtool.value import Value, plural


class BuiltSite(Value):
    """A site that was built, or would be: the commit, and what became of its files.

    `left_out` counts memories that are labelled as private or forgotten.
    """

    directory: str
    revision: str
    memories: int
    left_out: int
    files: int
    written: int
    removed: int
    dry_run: bool = False


def site(
    context: Context,
    directory: str,
    *,
    at: str | None = None,
    title: str = "Memories",
    dry_run: bool = False,
) -> BuiltSite:
    """Write the memories of a commit as a static site: files for any browser and any server.

    Every memory has a page with its proof, its lineage and what it replaced; beside them are
    status, timeline, conflicts, digests and lists, and a search that needs no server. Links are
    relative, so that it works from a disk and below any address. What only this clone knows is not
    in it: no sessions, no findings, no use, no worktree, no global memories; and no memory that is
    forgotten or labelled as private. The bytes are the same for a commit wherever they are made.

    Nothing is written while the commit holds a secret. The folder is replaced as a whole, pages
    that are the same stay, and nothing goes that memtool has not written.

    It needs the extra `web`. docs/web.md says how to publish it.

    Example:
        memtool site public

    Args:
        directory: the folder; it must be absent, empty, or an earlier site
        at: the revision to show, by default HEAD
        title: what the site calls itself
        dry_run: say what would be written, write nothing
    """
    del context, directory, at, title, dry_run
    raise MemtoolError(
        "the static site is made by the command line",
        hint="in a shell: memtool site DIR",
        code="surface",
    )


def render(built: BuiltSite) -> str:
    """Return what was built, and where to look at it."""
    left = f", {built.left_out} left out as private or forgotten" if built.left_out else ""
    memories = plural(built.memories, "memory", "memories")
    what = f"{memories} of {built.revision[:SHORT]}{left}: {plural(built.files, 'file')}"
    done = f"{built.written:,} written, {built.removed:,} removed"
    if built.dry_run:
        return f"would build {built.directory}: {what}, {done}"
    return f"built {built.directory}: {what}, {done}\nnext: open {built.directory}/index.html"
