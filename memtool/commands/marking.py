"""Marking: the block of a file such as AGENTS.md, for agents that no hook tells anything.

It is part of the tree, so it depends on the tree alone: no commit, no trust, no session, none of
the user's own settings. `inject --write` puts it there, `check` warns where it is out of date.
"""

from __future__ import annotations

import os

from memtool.errors import MemtoolError
from memtool.inject import marked, primer, tiers
from memtool.inject.block import passage, write_passage
from memtool.inject.formats import BY_NAME
from memtool.inject.marked import TREE_PREAMBLE
from memtool.inject.primer import Part
from memtool.inject.selection import choose
from memtool.inject.standing import structural
from memtool.inject.tiers import Candidate, Grounds
from memtool.memory.problem import Problem
from memtool.search import filters
from memtool.store import files
from memtool.store.provenance import LOCAL
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from memtool.store.tree import Tree
    from memtool.workspace import Workspace

FORM = BY_NAME[marked.FORMAT]
CATEGORIES = ("warning", "decision", "preference", "architecture", "pattern")
"""What stays true for longer than a piece of work."""
MOST_RULES = 40
ENDINGS = (".md", ".mdc", ".markdown", ".txt")
"""How the names of files end that hold text for agents; in anything else a block would break it."""
FAULTS = {
    "stale-block": "memtool's block does not say what the memories say now",
    "edited-block": "memtool's block was edited by hand, which the next refresh drops",
}


class Block(Value):
    """A file whose block was written, or would be; `state` is created, refreshed or unchanged."""

    path: str
    state: str
    text: str
    dry_run: bool

    def plain(self) -> dict[str, Any]:
        """Return the shape of `--json`, where only a dry run holds the text."""
        fields = super().plain()
        if not self.dry_run:
            del fields["text"]
        return fields


def mark(ws: Workspace, path: str, *, dry_run: bool = False) -> Block:
    """Put the block of a tree into a file of the worktree; everything else keeps its bytes.

    Raises:
        MemtoolError: the file lies elsewhere, is no text, or holds a broken pair of markers.
    """
    inside = _inside(ws, path)
    if not inside.lower().endswith(ENDINGS):
        raise MemtoolError(
            f"{inside} is no text for agents, whose name ends with {', '.join(ENDINGS)}",
            hint="memtool inject --write AGENTS.md",
            code="block",
        )
    text = block(ws)
    try:
        before = marked.read_at(ws.repository.top, inside)
    except OSError as error:
        raise MemtoolError(
            f"{inside} is no plain file that can be read: {os.strerror(error.errno or 0)}",
            hint="name a file itself, not a link to it",
            code="block",
        ) from None
    if before is not None and len(before) > marked.MOST_BYTES:
        raise MemtoolError(
            f"{inside} has more than {marked.MOST_BYTES:,} bytes, which no agent reads",
            hint="memtool inject --write AGENTS.md",
            code="block",
        )
    after = marked.placed(before, inside, text)
    state = "created" if before is None else "refreshed"
    state = "unchanged" if after == (before or b"") else state
    if state != "unchanged" and not dry_run:
        files.replace(ws.repository.top, inside, after, expected=before)
    return Block(inside, state, text, dry_run)


def rendered(block: Block) -> str:
    """Return what was done in a line; of a dry run also the block."""
    if block.state == "unchanged":
        return f"{block.path} is up to date"
    verb = {"created": "create", "refreshed": "refresh"}[block.state]
    if block.dry_run:
        return f"would {verb} {block.path}:\n\n{block.text}"
    return f"{block.state} {block.path}"


def block(ws: Workspace, at: str | None = None) -> str:
    """Return the block of the worktree or of a revision; empty where there is nothing to say."""
    settings = ws.settings.replace(personal={})
    tree = ws.catalog(at, exact=True)
    grounds = Grounds(tree, structural(tree), ws.now, settings.categories, "local")
    pinned = tiers.pinned(grounds)
    rules = _rules(tree, grounds)
    origins = {one.record.path: LOCAL for one in pinned}
    origins |= {other.path: LOCAL for one in pinned for other in grounds.beside(one.record)}

    def text_of(candidate: Candidate, is_whole: bool) -> str:  # noqa: FBT001  # one of two texts
        memory = candidate.record.memory
        marks = grounds.standing.marks(memory.id)
        shown = passage(memory, memory.id, "", marks, is_whole=is_whole)
        facts = tuple(fact for fact in shown.facts if fact[0] != "trust")
        return write_passage(shown.replace(facts=facts), FORM)

    parts = [
        Part("Pinned", (), lambda taken: choose(pinned, grounds, origins, shown=taken),
             settings.count("inject.pinned_most"), settings.count("inject.pinned_tokens")),
        Part("Decisions, warnings and conventions", tuple(rules)),
    ]  # fmt: skip
    if not pinned and not rules:
        return ""
    budget = settings.count("inject.budget_tokens")
    return primer.compose(parts, text_of, FORM, budget, preamble=TREE_PREAMBLE).text


def _rules(tree: Tree, grounds: Grounds) -> list[str]:
    """Return a line for each memory that stays true, the most important first."""
    wanted = (("type", "decision"), ("type", "semantic"), *(("category", c) for c in CATEGORIES))
    found = [
        one
        for one in filters.picked(tree, *wanted)
        if one.memory.category in CATEGORIES
        and one.memory.status == "confirmed"
        and not grounds.objection(one.memory)
    ]
    found.sort(key=lambda one: (-one.memory.importance, -one.memory.timestamp, one.id, one.path))
    return [f"{one.id}: {one.memory.title}" for one in found[:MOST_RULES]]


def problems(ws: Workspace, found: Mapping[str, bytes], at: str | None = None) -> list[Problem]:
    """Return a warning for each block, of files by path, that is not what it would be now.

    `at` is the commit that the files are of, None for the worktree.
    """
    told = []
    expected: str | None = None
    for path, data in found.items():
        try:
            held = marked.split(data, path)
        except MemtoolError as error:
            told.append(_problem(path, 1, error.code, error.message, error.hint))
            continue
        if held.block is None:
            continue
        if expected is None:
            expected = block(ws, at)
        if held.block.replace("\r\n", "\n") == expected:
            continue
        code = "edited-block" if marked.is_edited(held.block) else "stale-block"
        hint = f"memtool inject --write {path}"
        told.append(_problem(path, held.line, code, FAULTS[code], hint))
    return told


def _problem(path: str, line: int, code: str, message: str, hint: str) -> Problem:
    return Problem(path, line, code, message, hint, severity="warning")


def _inside(ws: Workspace, path: str) -> str:
    """Return a path from the top. Raises MemtoolError for one where no such file may be."""
    top = ws.repository.top
    if not top:
        raise MemtoolError("a bare repository has no files to write to", code="bare")
    full = os.path.normpath(os.path.join(os.path.realpath(ws.cwd), path))
    inside = os.path.relpath(full, os.path.realpath(top)).replace(os.sep, "/")
    parts = inside.split("/")
    is_own = inside.startswith(f"{ws.directory}/")
    if is_own or inside == "." or parts[0] == ".." or ".git" in parts:
        raise MemtoolError(
            f"{path} is no place for a block: it must be a file of the repository, beside "
            f"{ws.directory}",
            hint="memtool inject --write AGENTS.md",
            code="outside",
        )
    return inside
