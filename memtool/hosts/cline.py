"""Cline: a script as hook, and workflows as slash commands.

The text of its other hooks does not reach the model, so memories come with the first edit, and by
the block of AGENTS.md, which it reads.
"""

from __future__ import annotations

import os

from memtool.hosts.contracts import CONTRACTS
from memtool.hosts.edits import (
    MARK,
    ConfigEdit,
    Prompt,
    Site,
    WholeFile,
    build_command_files,
    guard_command,
)
from memtool.hosts.install import Host, find_home


def build_parts(site: Site) -> list[ConfigEdit]:
    """Build the scripts; the slash commands only for a project, which has a directory for them."""
    parts: list[ConfigEdit] = [
        WholeFile(
            *site.find_paths(f"hooks/{row.name}"),
            f"#!/bin/sh\n# {MARK}\n{guard_command(site.program, ('hook', 'cline', row.event))}\n",
            is_executable=True,
        )
        for row in CONTRACTS
        if row.host == "cline"
    ]
    if not site.is_user:
        parts += build_command_files(site, "workflows/{}.md", Prompt.to_plain)
    return parts


HOST = Host(
    name="cline",
    title="Cline",
    program="cline",
    folder=".clinerules",
    home=lambda env: os.path.join(find_home(env), ".cline"),
    parts=build_parts,
    tested_version="3.0.65",
    trust_hint="Cline takes text from a hook only after a tool ran; for what its sessions begin "
    "with: memtool install agents-md",
)
