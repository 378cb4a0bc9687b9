"""`memtool merge-file`: what git runs to merge a memory that both sides changed."""

from __future__ import annotations

import os

from memtool.commands._layout import Layout
from memtool.errors import MemtoolError, find_reason
from memtool.memory.three_way import Sides
from memtool.store import files
from memtool.store.context import Context
from memtool.store.merging import merge_texts
from memtool.value import Value


class MergedFile(Value):
    """The path of the memory, and the merged text, with conflict markers unless `is_clean`."""

    path: str
    is_clean: bool
    text: str
    dry_run: bool = False

    @property
    def exit_code(self) -> int:
        """1 if there is a conflict: git then leaves the file to the user."""
        return int(not self.is_clean)


def merge_file(
    context: Context, base: str, ours: str, theirs: str, path: str = "", *, dry_run: bool = False
) -> MergedFile:
    """Merge a memory that two branches changed.

    Git runs it; memtool install git sets it up. Keys such as status and tags are merged one by one:
    the stricter status, the later confirmation, the tags of both sides. The claim is merged as
    text; if that conflicts, git's markers are left in the file and the exit code is 1.

    Example:
        memtool merge-file base.md ours.md theirs.md .memory/decision/2026-02/dec-a.md

    Args:
        base: the common ancestor; an empty file if there is none
        ours: this side; the result is written here
        theirs: the other side
        path: the path of the memory in the repository, for messages
        dry_run: print the result, write nothing
    """
    texts = [_read_file(context, name) for name in (base, ours, theirs)]
    sides = Sides(texts[0] or None, texts[1], texts[2])
    is_known = not context.settings.is_newer
    merged = merge_texts(context.repository.git, sides, path, knows_keys=is_known)
    if not dry_run:
        folder, name = os.path.split(os.path.join(context.caller.cwd, ours))
        files.replace(folder, name, merged.data, expected=sides.ours)
    text = merged.data.decode(errors="replace")
    return MergedFile(path or ours, merged.is_clean, text, dry_run)


def _read_file(context: Context, name: str) -> bytes:
    try:
        return files.read_regular(os.path.join(context.caller.cwd, name))
    except (OSError, ValueError) as error:
        reason = find_reason(error)
        raise MemtoolError(
            f"cannot read {name}: {reason}",
            hint="memtool merge-file BASE OURS THEIRS",
            code="usage",
        ) from None


def render(merged: MergedFile, _layout: Layout) -> str:
    """Return the text of a dry run; otherwise nothing but a conflict, as git does."""
    if merged.dry_run:
        return merged.text
    return "" if merged.is_clean else f"memtool: {merged.path} conflicts in what it says"
