"""`memtool package`: what `install` writes for a host, as its own kind of plugin or extension."""

from __future__ import annotations

import os
import shlex
from typing import Annotated

from memtool.commands._layout import Layout
from memtool.hosts.packages import PACKAGE_NAMES
from memtool.store.context import Context
from memtool.value import Value, format_count


class BuiltPackage(Value):
    """A package that was written, or would be: its directory, files and the next commands."""

    host: str
    directory: str
    files: tuple[str, ...]
    written: int
    install: tuple[str, ...]
    dry_run: bool = False


def package(
    context: Context,
    host: Annotated[str, PACKAGE_NAMES],
    directory: str,
    *,
    dry_run: bool = False,
) -> BuiltPackage:
    """Write a plugin or extension of memtool, to publish in your team.

    It has what `memtool install --mcp` writes, as the agent's own kind of package: an extension, or
    a marketplace with a plugin. Of mcp it is server.json for the MCP registry, and manifest.json
    for an MCP bundle.

    It needs memtool on the PATH of whoever installs it. Together with an installation in a project
    each memory still appears once.

    Example:
        memtool package claude dist/claude

    Args:
        host: {PACKAGE_NAMES}
        directory: the directory; must be absent, empty or an earlier package
        dry_run: list what would be written, write nothing
    """
    from memtool import installation
    from memtool.hosts.install import apply_steps
    from memtool.hosts.packages import PACKAGES, build_files, plan_package

    contents = build_files(host, installation.read_project())
    steps = plan_package(contents, os.path.normpath(os.path.join(context.caller.cwd, directory)))
    if not dry_run:
        apply_steps(steps)
    commands = PACKAGES[host].install.replace("DIR", shlex.quote(directory))
    return BuiltPackage(
        host,
        directory,
        tuple(contents),
        len(steps),
        tuple(commands.splitlines()),
        dry_run,
    )


def render(built: BuiltPackage, _layout: Layout) -> str:
    """Return the count of files, and the commands that install the package."""
    verb = "would write" if built.dry_run else "wrote"
    rows = [f"{verb} {built.directory}: {format_count(len(built.files), 'file')}"]
    if built.dry_run:
        rows += [f"  {path}" for path in built.files]
    return "\n".join([*rows, "next:", *(f"  {command}" for command in built.install)])
