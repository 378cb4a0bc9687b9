"""`memtool site`: the pages of the web view as static files, to publish.

The pages are built by an interface above the verbs, like the web view. This module has what every
interface reads: the name, the options, the help, and the result as text.
"""

from __future__ import annotations

from memtool.commands._layout import Layout
from memtool.errors import MemtoolError
from memtool.memory.trust import SHORT_ID_DIGITS
from memtool.store.context import Context
from memtool.value import Value, format_count


class BuiltSite(Value):
    """A static site that was built, or would be: its commit, and counts of its files.

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
    """Write the memories of a commit as a static web site.

    Every memory has a page with its history and sources. There are also lists, a timeline,
    conflicts, digests, and a search that needs no server. Private data is left out: sessions,
    usage, your global memories, and memories that are forgotten or labelled as private.

    A commit that holds a secret is refused. The directory is replaced as a whole. It needs the
    extra `web`; docs/web.md explains how to publish the site.

    Example:
        memtool site public
        memtool site public --at v1.0 --title "Memories of the shop"

    Args:
        directory: the directory; must be absent, empty or an earlier site
        at: the revision, by default HEAD
        title: the title of the site
        dry_run: list what would be written, write nothing
    """
    del context, directory, at, title, dry_run
    raise MemtoolError(
        "site can only be started from the command line",
        hint="memtool site DIR",
        code="surface",
    )


def render(built: BuiltSite, _layout: Layout) -> str:
    """Return the counts of the site, and how to open it."""
    omitted = f", {built.left_out} left out as private or forgotten" if built.left_out else ""
    memories = format_count(built.memories, "memory", "memories")
    revision = built.revision[:SHORT_ID_DIGITS]
    what = f"{memories} of {revision}{omitted}: {format_count(built.files, 'file')}"
    done = f"{built.written:,} written, {built.removed:,} removed"
    if built.dry_run:
        return f"would build {built.directory}: {what}, {done}"
    return f"built {built.directory}: {what}, {done}\nnext: open {built.directory}/index.html"
