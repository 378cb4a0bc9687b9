"""Foreign trees: a `.memory` directory that another tool made is theirs, and left alone."""

from __future__ import annotations

import os

from memtool.errors import MemtoolError
from memtool.store import files

MARKS: tuple[tuple[str, str], ...] = (
    ("memory.json", "the MCP memory server"),
    ("memory.jsonl", "the MCP memory server"),
    ("MEMORY.md", "a MEMORY.md tool"),
    ("mem.yaml", "MEM"),
    ("brain.md", "brain.md"),
    ("wiki", "memwiki"),
    ("projectbrief.md", "a memory bank"),
    ("activeContext.md", "a memory bank"),
    ("basic-memory.db", "basic-memory"),
    ("beads.db", "beads"),
    ("issues.jsonl", "beads"),
)
"""Files by which the trees of other tools are known, and whose they are."""


def owner(top: str, directory: str) -> str | None:
    """Return whose tree a directory is, None where nothing shows that it is not ours."""
    path = os.path.join(top, directory)
    try:
        names = {n for n in os.listdir(path) if not n.startswith((".", "_", "README"))}
    except OSError:
        return None
    if "config.toml" in names or not names:
        return None
    for mark, tool in MARKS:
        if mark in names:
            return tool
    ours = {"decision", "semantic", "episodic", "state", "aliases.toml", "queries.toml"}
    if names & ours or any(_is_memory(os.path.join(path, name)) for name in sorted(names)[:20]):
        return None
    return "another tool"


def _is_memory(path: str) -> bool:
    """Tell whether a file begins as a memory does, so that one without any settings is ours."""
    if not path.endswith(".md"):
        return False
    try:
        head = files.read_regular(path, 4096)
    except OSError:
        return False
    return head.startswith(b"---") and b"\nid:" in head and b"\ntimestamp:" in head


def refuse(top: str, directory: str) -> None:
    """Raise MemtoolError where the directory is another tool's."""
    tool = owner(top, directory)
    if tool is not None:
        raise MemtoolError(
            f"{directory} belongs to {tool}, memtool does not touch it",
            hint="memtool init --directory NAME keeps the memories of memtool in another place",
            code="foreign-tree",
        )
