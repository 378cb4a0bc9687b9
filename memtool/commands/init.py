"""`memtool init`: the memory directory of a repository."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from memtool.authoring import tree
from memtool.authoring.tree import InitResult
from memtool.commands import _features
from memtool.commands._layout import Layout
from memtool.store import fetched
from memtool.store.context import Context


def init(
    context: Context, *, directory: str = "", commit: bool = False, dry_run: bool = False
) -> InitResult:
    """Create .memory/ in this repository: settings, templates, and two lines for git.

    Repeating it adds only what is missing. It installs nothing: its last lines name the commands
    for git's hooks, and for the agents in use here.

    Example:
        memtool init
        memtool init --commit

    Args:
        directory: keep the memories here instead of in .memory
        commit: commit these files only
        dry_run: list the files, write nothing
    """
    initialized = tree.begin(context, directory, commit=commit, dry_run=dry_run)
    return (
        initialized
        if context.is_global
        else initialized.replace(offers=tuple(_find_offers(context)))
    )


FORMATTER_IGNORES = (".prettierignore", ".markdownlintignore", ".remarkignore")
"""Ignore files of formatters: unless it is listed there, a formatter would rewrite memories."""


def _find_offers(context: Context) -> Iterator[str]:
    """Yield commands for formatters and for a fork, and those that features suggest."""
    for name in FORMATTER_IGNORES:
        data = context.project.read_file(name)
        if data is not None and not _is_ignored(context.directory, data):
            line = shlex.quote(f"{context.directory}/")
            # If the last line has no newline, one must come first.
            program = "echo" if not data or data.endswith(b"\n") else r"printf '\n%s\n'"
            yield f"{program} {line} >> {name}"
    proposed = fetched.find_upstream_branch(context.repository)
    if proposed and not context.project.trust_settings.text("trust.ref"):
        yield f"memtool config trust.ref {proposed}"
    yield from _features.list_offers(context)


def _is_ignored(directory: str, data: bytes) -> bool:
    """Return whether an ignore file lists the memory directory."""
    rows = data.decode(errors="replace").splitlines()
    return directory in {row.strip().strip("/").removesuffix("/**") for row in rows}


def render(initialized: InitResult, _layout: Layout) -> str:
    """Return a line per file, then the next commands."""
    offers = [f"next: {command}" for command in initialized.offers]
    if not initialized.written:
        return "\n".join([f"{initialized.directory} is ready, nothing was missing", *offers])
    if initialized.dry_run:
        return "\n".join(f"would write {path}" for path in initialized.written)
    rows = [f"wrote {path}" for path in initialized.written]
    return "\n".join(
        [*rows, *offers, 'next: memtool new decision "TITLE", or memtool import adr DIR']
    )
