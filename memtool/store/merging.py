"""Merging the texts of a memory file: lifecycle keys by their rules, the claim as git merges text.

`memory.three_way` has the rules. A file that cannot be read as a memory is merged by git alone:
nothing is guessed.
"""

from __future__ import annotations

from memtool.memory import document, three_way
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from memtool.memory.three_way import Sides
    from memtool.store.git import Git


class MergedText(Value):
    """The bytes of a merge; unless `is_clean`, they contain git's conflict markers."""

    data: bytes
    is_clean: bool


def merge_texts(git: Git, sides: Sides, path: str = "", *, knows_keys: bool = True) -> MergedText:
    """Merge a memory file: lifecycle keys by their rules, everything else as git merges text.

    Raises:
        GitError: git refuses to merge the files, for example because they are binary.
    """
    if not knows_keys:  # keys of a newer format may have another meaning
        return merge_by_git(git, sides)
    try:
        level = three_way.prepare_sides(sides, path) if sides.base is not None else sides
    except document.Unreadable:
        level = sides
    merged = merge_by_git(git, level)
    if merged.is_clean and level is not sides:
        try:
            document.read_field_lines(merged.data, path)
        except document.Unreadable:  # for example a key that both sides added, in different places
            return merge_by_git(git, sides)
    return merged


def merge_by_git(git: Git, sides: Sides) -> MergedText:
    """Merge a file as git merges text.

    Raises:
        GitError: git refuses to merge the files, for example because they are binary.
    """
    if sides.ours == sides.theirs:
        return MergedText(sides.ours, is_clean=True)
    return MergedText(*git.merge_texts(sides.base or b"", sides.ours, sides.theirs))
