"""`memtool init`: the memory directory of a repository."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from memtool.authoring import tree
from memtool.authoring.tree import Initialized
from memtool.commands import _features
from memtool.store.context import Context


def init(
    context: Context, *, directory: str = "", commit: bool = False, dry_run: bool = False
) -> Initialized:
    """Make the memory directory of a repository: settings, templates, and two lines for git.

    Doing it again adds only what is missing. The templates, .memory/_decision.md and so on, are
    yours to change. The lines in .gitattributes keep git from converting line ends in memories, and
    name the merge driver that memtool install git sets up. Offered are the hook, and the agent
    hosts that are used here and lack memtool; nothing is installed unasked.

    Example:
        memtool init --commit

    Args:
        directory: keep the memories here instead of .memory; .memtool.toml at the top says so
        commit: commit just these files
        dry_run: say which files would be written, write nothing
    """
    begun = tree.begin(context, directory, commit=commit, dry_run=dry_run)
    return begun if context.is_global else begun.replace(offers=tuple(_offers(context)))


FORMATTER_IGNORES = (".prettierignore", ".markdownlintignore", ".remarkignore")
"""Files that name what a formatter leaves alone: it would rewrite memories."""


def _offers(context: Context) -> Iterator[str]:
    """Yield commands for formatters, and what features offer."""
    for name in FORMATTER_IGNORES:
        data = context.project.file(name)
        if data is not None and not _is_named(context.directory, data):
            line = shlex.quote(f"{context.directory}/")
            # Behind a last line without its end, the line needs one before it.
            program = "echo" if not data or data.endswith(b"\n") else r"printf '\n%s\n'"
            yield f"{program} {line} >> {name}"
    yield from _features.offers(context)


def _is_named(directory: str, data: bytes) -> bool:
    """Tell whether a line of an ignore file is the memory directory."""
    rows = data.decode(errors="replace").splitlines()
    return directory in {row.strip().strip("/").removesuffix("/**") for row in rows}


def render(initialized: Initialized) -> str:
    """Return one line per file, then what to do next."""
    offers = [f"next: {command}" for command in initialized.offers]
    if not initialized.written:
        return "\n".join([f"{initialized.directory} is ready, nothing was missing", *offers])
    if initialized.dry_run:
        return "\n".join(f"would write {path}" for path in initialized.written)
    rows = [f"wrote {path}" for path in initialized.written]
    return "\n".join(
        [*rows, *offers, 'next: memtool new decision "TITLE", or memtool import adr DIR']
    )
