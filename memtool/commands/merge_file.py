"""`memtool merge-file`: what git runs to merge a memory that both sides changed."""

from __future__ import annotations

import os

from memtool.authoring import merge
from memtool.errors import MemtoolError, reason_of
from memtool.memory.three_way import Sides
from memtool.store import files
from memtool.store.context import Context
from memtool.value import Value


class MergedFile(Value):
    """The path of the memory, whether both sides fit in, and the text, with markers where not."""

    path: str
    is_clean: bool
    text: str
    dry_run: bool = False

    @property
    def exit_code(self) -> int:
        """1 where something conflicts, which tells git to leave the file to the user."""
        return int(not self.is_clean)


def merge_file(
    context: Context, base: str, ours: str, theirs: str, path: str = "", *, dry_run: bool = False
) -> MergedFile:
    """Merge a memory that two branches changed. Git runs it; memtool install git tells it to.

    Lifecycle keys are merged one by one, whatever lines they are on: the more restrictive status,
    the later confirmation, the tags of both, the reasons of both. Which branch is merged into which
    makes no difference. What the memory claims is merged as any text; where that conflicts, git's
    markers are left there, the exit code is 1, and the file is yours to settle. A file that is no
    memory is merged as git would, and so is one of a tree of a newer format.

    The attribute merge=memtool in .gitattributes, which memtool init writes, names the driver. A
    clone without it merges as git does, and memtool resolve then settles what is divided in
    lifecycle keys only.

    Example:
        memtool merge-file base.md ours.md theirs.md .memory/decision/2026-02/dec-a.md

    Args:
        base: a file with the text that both sides began with; an empty one if there is none
        ours: a file with the text of this side, in whose place the result is written
        theirs: a file with the text of the other side
        path: where the memory is in the repository, for messages
        dry_run: print the result, write nothing
    """
    texts = [_read(context, name) for name in (base, ours, theirs)]
    sides = Sides(texts[0] or None, texts[1], texts[2])
    is_known = not context.settings.is_newer
    merged = merge.merge_texts(context.repository.git, sides, path, knows_keys=is_known)
    if not dry_run:
        folder, name = os.path.split(os.path.join(context.caller.cwd, ours))
        files.replace(folder, name, merged.data, expected=sides.ours)
    text = merged.data.decode(errors="replace")
    return MergedFile(path or ours, merged.is_clean, text, dry_run)


def _read(context: Context, name: str) -> bytes:
    try:
        return files.read_regular(os.path.join(context.caller.cwd, name))
    except (OSError, ValueError) as error:
        reason = reason_of(error)
        raise MemtoolError(
            f"{name} cannot be read: {reason}",
            hint="memtool merge-file BASE OURS THEIRS, three files",
            code="usage",
        ) from None


def render(merged: MergedFile) -> str:
    """Return the result of a dry run; else only that something conflicts, as git does."""
    if merged.dry_run:
        return merged.text
    return "" if merged.is_clean else f"memtool: {merged.path} conflicts in what it says"
