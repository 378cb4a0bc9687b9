"""The managed block of AGENTS.md and similar files.

Everything outside of the two marker lines keeps its bytes. A file without exactly one pair of
markers is refused, since our part of it would be unclear.

The file is part of the tree, so the block depends on the tree alone: not on commits, trust,
sessions or the user's own settings. `inject --into` and `install agents-md` write it, git's hook
renews it after a merge into the default branch, and `check` warns if it is out of date.
"""

from __future__ import annotations

import os

from memtool.errors import MemtoolError, find_reason
from memtool.index import index
from memtool.inject.block import BY_NAME, PREAMBLE, build_passage, make_boundary, write_passage
from memtool.inject.remarks import name_ids
from memtool.memory.schema import Problem
from memtool.store import files
from memtool.store.files import read_regular
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from memtool.inject.candidates import Candidate, Eligibility
    from memtool.store.context import Context
    from memtool.store.tree import Record, Tree

BEGIN = "<!-- memtool:begin -->"
END = "<!-- memtool:end -->"
FILES = (
    "AGENTS.md",
    "CLAUDE.md",
    "GEMINI.md",
    ".cursor/rules/memtool.mdc",
    ".github/copilot-instructions.md",
)
"""Files that agents read at the top of a repository."""
MAX_BYTES = 1 << 20
FORM = BY_NAME["markdown"]
"""The format of a block here."""
TREE_PREAMBLE = f"{PREAMBLE} Run `memtool inject --files PATH` before you change a file."
"""Such a block says the same in every clone: it names no commit, and what no tree can prove."""


class ManagedFile(Value):
    """A file in three parts; `block` is None if there is no pair of markers.

    The markers belong to the parts around the block. `line` is that of the first marker, from 1.
    """

    before: str
    block: str | None
    after: str
    line: int = 1

    @property
    def newline(self) -> str:
        """How lines end here: as the first marker does, else as the first line of the file."""
        line = self.before if self.block is not None else self.before.partition("\n")[0] + "\n"
        return "\r\n" if line.endswith("\r\n") else "\n"


def find_agent_files(read: Callable[[str], bytes | None]) -> dict[str, bytes]:
    """Return the files with a marker in them, by path; `read` may raise OSError for a link."""
    files = {}
    for path in FILES:
        try:
            data = read(path)
        except OSError:
            continue  # such as a link to another of these files
        if data is not None and BEGIN.encode() in data:
            files[path] = data
    return files


def read_at(top: str, path: str) -> bytes | None:
    """Return the bytes of a file, a little more than allowed of one too long; None if missing.

    Raises:
        OSError: it is a link, or not a file.
    """
    try:
        return read_regular(os.path.join(top, path), MAX_BYTES + 1)
    except (FileNotFoundError, NotADirectoryError):
        return None


def split(data: bytes, path: str) -> ManagedFile:
    """Split the bytes of a file at its markers.

    Raises:
        MemtoolError: it is not text, or has not exactly one pair of markers.
    """
    try:
        text = data.decode()
    except UnicodeDecodeError:
        raise MemtoolError(
            f"{path} is not UTF-8 text", hint="name a file such as AGENTS.md", code="not-utf8"
        ) from None
    lines = text.splitlines(keepends=True)
    places = [
        (number, line.strip()) for number, line in enumerate(lines) if line.strip() in (BEGIN, END)
    ]
    if not places:
        return ManagedFile(text, None, "")
    if [mark for _number, mark in places] != [BEGIN, END]:
        where = ", ".join(str(number + 1) for number, _mark in places)
        raise MemtoolError(
            f"{path} must have {BEGIN} and then {END} once: see line {where}",
            hint="remove the extra marks, or all of them; memtool adds them again",
            code="broken-block",
        )
    (first, _begin), (last, _end) = places
    return ManagedFile(
        "".join(lines[: first + 1]),
        "".join(lines[first + 1 : last]),
        "".join(lines[last:]),
        first + 1,
    )


def place_block(data: bytes | None, path: str, block: str, *, has_marks: bool = False) -> bytes:
    """Return a file with the block in its place, or at the end if it has none.

    An empty block is only added to a file without one if it is to have the marks (`has_marks`). If
    the file has no final line feed, neither has a new block: `remove_block` recognizes that.

    Raises:
        MemtoolError: as `split` does.
    """
    parts = split(data or b"", path)
    newline = parts.newline
    text = block.replace("\n", newline)
    if parts.block is not None:
        return (parts.before + text + parts.after).encode()
    if not (block or has_marks):
        return data or b""
    if parts.before and not parts.before.endswith("\n"):
        return f"{parts.before}{2 * newline}{BEGIN}{newline}{text}{END}".encode()
    gap = newline if parts.before else ""
    return f"{parts.before}{gap}{BEGIN}{newline}{text}{END}{newline}".encode()


def remove_block(data: bytes, path: str) -> bytes | None:
    """Return a file as it was before the block was added; None if it has nothing else.

    Raises:
        MemtoolError: as `split` does.
    """
    parts = split(data, path)
    if parts.block is None:
        return data
    before = "".join(parts.before.splitlines(keepends=True)[:-1])
    end, *lines = parts.after.splitlines(keepends=True)
    if not (before or lines):
        return None
    if not lines and before.endswith(2 * parts.newline):
        before = before.removesuffix(parts.newline if end.endswith("\n") else 2 * parts.newline)
    return "".join((before, *lines)).encode()


def is_edited(block: str) -> bool:
    """Return whether a block was edited: its name is made of the content that memtool wrote."""
    text = block.replace("\r\n", "\n")
    boundary = text.partition("\n")[0].rpartition("(")[2].rstrip(")")
    head = FORM.opening.format(boundary=boundary, preamble=TREE_PREAMBLE)
    tail = FORM.closing.format(boundary=boundary)
    if not (text.startswith(head) and text.endswith(tail)):
        return bool(text.strip())
    return make_boundary(text[len(head) : -len(tail)]) != boundary


CATEGORIES = ("warning", "decision", "preference", "architecture", "pattern")
"""What stays true for longer than a piece of work."""
MAX_RULES = 40
ENDINGS = (".md", ".mdc", ".markdown", ".txt")
"""How the names of files end that hold text for agents; in anything else a block would break it."""
FAULTS = {
    "stale-block": "memtool's block does not say what the memories say now",
    "edited-block": "memtool's block was edited by hand, which the next refresh drops",
}


class Block(Value):
    """The result of writing a block; `state` is created, refreshed, unchanged or kept.

    A block is kept if it is not to be renewed now.
    """

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


def mark(context: Context, path: str, *, dry_run: bool = False, is_renewal: bool = False) -> Block:
    """Write the block of a tree into a file of the worktree; everything else keeps its bytes.

    A renewal only changes a block as memtool wrote it, on the default branch: if each branch wrote
    its own, merges would conflict.

    Raises:
        MemtoolError: the file is elsewhere, is not text, or has a broken pair of markers.
    """
    inside = _require_inside(context, path)
    if not inside.lower().endswith(ENDINGS):
        raise MemtoolError(
            f"cannot write to {inside}: the name must end with {', '.join(ENDINGS)}",
            hint="memtool inject --into AGENTS.md",
            code="block",
        )
    before = read_agent_file(context, inside)
    if is_renewal and not _is_renewable(context, inside, before):
        return Block(inside, "kept", "", dry_run)
    text = build_block(context)
    if before is not None and len(before) > MAX_BYTES:
        raise MemtoolError(
            f"cannot write to {inside}: it has more than {MAX_BYTES:,} bytes",
            hint="memtool inject --into AGENTS.md",
            code="block",
        )
    after = place_block(before, inside, text)
    state = "created" if before is None else "refreshed"
    state = "unchanged" if after == (before or b"") else state
    if state != "unchanged" and not dry_run:
        files.replace(context.repository.top, inside, after, expected=before)
    return Block(inside, state, text, dry_run)


def read_agent_file(context: Context, path: str) -> bytes | None:
    """Read a file of the worktree; None if it does not exist.

    Raises:
        MemtoolError: it is a link or no file, or cannot be read.
    """
    try:
        return read_at(context.repository.top, path)
    except OSError as error:
        raise MemtoolError(
            f"cannot read {path}: {find_reason(error)}",
            hint="name the file itself, not a link",
            code="block",
        ) from None


def _is_renewable(context: Context, path: str, data: bytes | None) -> bool:
    """Return whether a file has a block that nobody edited, and the default branch is out."""
    block = split(data, path).block if data is not None and len(data) <= MAX_BYTES else None
    return block is not None and not is_edited(block) and _is_on_default_branch(context)


def _is_on_default_branch(context: Context) -> bool:
    """Return whether the default branch is checked out: the remote's, else main or master."""
    from memtool.store.provenance import DEFAULT_BRANCHES
    from memtool.store.repository import read_symbolic_target

    git = context.repository.git
    head = git.line("symbolic-ref", "--quiet", "HEAD", allowed=(0, 1))
    symbolic, *remote = DEFAULT_BRANCHES
    target = read_symbolic_target(context.repository, symbolic) or next(
        (name for name in remote if git.line("rev-parse", "-q", "--verify", name, allowed=(0, 1))),
        "",
    )
    names = [target] if target else remote
    return head in [f"refs/heads/{name.removeprefix('refs/remotes/origin/')}" for name in names]


def format_block_result(block: Block) -> str:
    """Return the result in a line; for a dry run with the block."""
    if block.state == "kept":
        return f"{block.path} stays: it has no block to renew, or this is not the default branch"
    if block.state == "unchanged":
        return f"{block.path} is up to date"
    verb = {"created": "create", "refreshed": "refresh"}[block.state]
    if block.dry_run:
        return f"would {verb} {block.path}:\n\n{block.text}"
    return f"{block.state} {block.path}"


def build_block(context: Context, at: str | None = None) -> str:
    """Return the block of the worktree or of a revision; empty if there is nothing to write."""
    # A commit hook seldom makes a block.
    from memtool.inject import candidates, premises, select
    from memtool.inject.candidates import Eligibility
    from memtool.inject.effective_lineage import from_structure
    from memtool.inject.session_primer import compose
    from memtool.inject.tiers import Tier
    from memtool.memory.trust import LOCAL

    settings = context.settings.replace(personal={})
    tree = index.open(context, at, exact=True)
    grounds = Eligibility(
        tree,
        from_structure(tree),
        context.clock.now,
        settings.categories,
        "local",
        withholds=settings.private_labels,
        signals=(premises.build_tree_signal(tree, context.clock.now),),
    )
    pinned = candidates.find_pinned(grounds)
    rules = _format_rules(tree, grounds)
    origins = {pin.record.path: LOCAL for pin in pinned}
    origins |= {
        other.path: LOCAL for pin in pinned for other in grounds.find_companions(pin.record)
    }

    def format_candidate(candidate: Candidate, is_whole: bool) -> str:  # noqa: FBT001  # one of two texts
        record = candidate.record
        short_id = tree.short_ids.shorten(record.id)
        remarks = grounds.find_remarks(record)
        return write_passage(
            build_passage(record.memory, short_id, remarks, is_whole=is_whole), FORM
        )

    tiers = [
        Tier(
            candidates.PINNED,
            lambda shown: select.choose(pinned, grounds, origins, shown=shown),
            max_memories=settings.count("inject.max_pinned"),
            max_tokens=settings.count("inject.pinned_tokens"),
            title="Always applies",
        ),
        Tier(
            "rules",
            title="Decisions, warnings and conventions",
            lines=tuple(rules),
            is_quoted=False,
        ),
    ]
    if not pinned and not rules:
        return ""
    budget = settings.count("inject.budget_tokens")
    return compose(tiers, format_candidate, FORM, budget, guide="", preamble=TREE_PREAMBLE)[0]


def _format_rules(tree: Tree, grounds: Eligibility) -> list[str]:
    """Return a line for each memory that stays true, the most important first."""
    from memtool.search import picks
    from memtool.search.scope import is_digest

    wanted = (("type", "decision"), ("type", "semantic"), *(("category", c) for c in CATEGORIES))
    rules = [
        record
        for record in picks.pick(tree, *wanted)
        if record.memory.category in CATEGORIES
        and record.memory.status == "confirmed"
        and not is_digest(record.memory)
        and not grounds.find_objection(record.memory)
    ]
    rules.sort(
        key=lambda record: (
            -record.memory.importance,
            -record.memory.timestamp,
            record.id,
            record.path,
        )
    )
    return [_format_rule(record, grounds) for record in rules[:MAX_RULES]]


def _format_rule(record: Record, grounds: Eligibility) -> str:
    """Return the line of a memory: its title, the first file that it names, and its marks."""
    shorten = grounds.tree.short_ids.shorten
    files, rivals = record.memory.items("files"), grounds.find_rivals(record.id)
    where = f" ({files[0]}{', …' if files[1:] else ''})" if files else ""
    conflict = f" (conflicts with {name_ids([*map(shorten, rivals)])}: ask)" if rivals else ""
    briefs = "".join(f" ({brief})" for brief in grounds.list_briefs(record))
    return f"- {shorten(record.id)} {record.memory.title}{where}{conflict}{briefs}"


def find_problems(
    context: Context, held_in: Mapping[str, bytes], at: str | None = None
) -> list[Problem]:
    """Return a warning for each outdated block, in files by path.

    `held_in` are their bytes, `at` their commit, None for the worktree.
    """
    problems = []
    expected: str | None = None
    for path, data in held_in.items():
        try:
            parts = split(data, path)
        except MemtoolError as error:
            problems.append(_build_problem(path, 1, error.code, error.message, error.hint))
            continue
        if parts.block is None:
            continue
        if expected is None:
            expected = build_block(context, at)
        if parts.block.replace("\r\n", "\n") != expected:
            code = "edited-block" if is_edited(parts.block) else "stale-block"
            hint = f"memtool inject --into {path}"
            problems.append(_build_problem(path, parts.line, code, FAULTS[code], hint))
    return problems


def _build_problem(path: str, line: int, code: str, message: str, hint: str) -> Problem:
    return Problem(path, line, code, message, hint, severity="warning")


def _require_inside(context: Context, path: str) -> str:
    """Return a path from the top. Raises MemtoolError if no such file is allowed there."""
    top = context.repository.top
    context.repository.refuse_bare("run it in a clone")
    full = os.path.normpath(os.path.join(os.path.realpath(context.caller.cwd), path))
    inside = os.path.relpath(full, os.path.realpath(top)).replace(os.sep, "/")
    parts = inside.split("/")
    is_own = inside.startswith(f"{context.directory}/")
    if is_own or inside == "." or parts[0] == ".." or ".git" in parts:
        raise MemtoolError(
            f"cannot write to {path}: it must be a file of the repository, outside "
            f"{context.directory}",
            hint="memtool inject --into AGENTS.md",
            code="outside",
        )
    return inside
