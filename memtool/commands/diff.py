"""`memtool diff`: what changed between two revisions, in memory terms."""

from __future__ import annotations

from memtool.commands._render import columns
from memtool.errors import MemtoolError
from memtool.index import index
from memtool.memory.changes import Change, Version, compare, sentence
from memtool.redaction.mask import Mask
from memtool.store import versions
from memtool.store.context import Context
from memtool.store.git import GitError
from memtool.store.provenance import SHORT
from memtool.value import Value

WORKTREE = "worktree"


class Diff(Value):
    """Changes between two trees, sorted by id.

    `old` and `new` are commit ids, or `worktree`; `old` is empty before the first commit.
    """

    json_names = (("old", "from"), ("new", "to"))

    old: str
    new: str
    changes: tuple[Change, ...]


def diff(context: Context, range: str = "") -> Diff:
    """Show what changed between two revisions, in memory terms.

    A..B compares two revisions, A...B the second with where they parted, A alone compares with
    the worktree, and without a range the worktree is compared with HEAD. A confirmed memory whose
    claim was edited in place is marked as a silent edit.

    Example:
        memtool diff main..HEAD

    Args:
        range: A..B, A...B or A; an empty side of the dots is HEAD
    """
    old, new = _ends(context, range)
    categories = context.settings.categories
    if new:
        taken = context.snapshot(new)
        changes = compare(*versions.between(context.snapshot(old), taken, categories))
        titled = _titled(changes, versions.called(taken, _bare(changes), categories))
        return Diff(old, new, _masked(context, titled))
    tree = index.open(context, exact=True)
    if old and not tree.problems and versions.is_committed(tree, old):
        return Diff(old, WORKTREE, ())
    before = context.snapshot(old) if old else None
    changes = compare(*versions.uncommitted(tree, before, categories))
    records = [tree[id_] for id_ in sorted(_bare(changes)) if id_ in tree]
    known = {record.id: Version(record.path, record.memory) for record in records}
    return Diff(old, WORKTREE, _masked(context, _titled(changes, known)))


def render(diff: Diff) -> str:
    """Return one line per change, or that there is none."""
    ends = f"{diff.old[:SHORT] or 'nothing'}..{diff.new[:SHORT]}"
    if not diff.changes:
        return f"no memory changed in {ends}"
    rows = [(change.kind, change.id, _details(change)) for change in diff.changes]
    return "\n".join([ends, *columns(rows)])


def _details(change: Change) -> str:
    said = sentence(change)
    return f"{change.title} ({said})" if said and change.title else said or change.title


def _bare(changes: tuple[Change, ...]) -> frozenset[str]:
    """Return the ids of what was superseded while its own file stayed as it was."""
    return frozenset(change.id for change in changes if not change.path)


def _titled(changes: tuple[Change, ...], known: dict[str, Version]) -> tuple[Change, ...]:
    """Give those memories title and path, which comparing did not need to read."""
    bare = _bare(changes) & known.keys()
    return tuple(
        change.replace(title=known[change.id].title, path=known[change.id].path)
        if change.id in bare
        else change
        for change in changes
    )


def _masked(context: Context, changes: tuple[Change, ...]) -> tuple[Change, ...]:
    """Return changes in whose words no secret stands: history is not what the index masks."""
    mask = Mask(context.settings)
    return tuple(
        change.replace(title=mask.line(change.title), details=mask.details(change.details))
        for change in changes
    )


def _ends(context: Context, range_: str) -> tuple[str, str]:
    """Return the commit ids of both ends; empty for no commit yet, and for the worktree."""
    git = context.repository.git
    left, dots, right = range_.partition("..")
    is_merge_base = right.startswith(".")
    right = right.removeprefix(".") if dots else ""
    if not dots:
        context.repository.refuse_bare(f"memtool diff {left or 'HEAD~1'}..HEAD")
    if not range_:
        head = git.line("rev-parse", "--verify", "--quiet", "HEAD^{commit}", allowed=(0, 1))
        return head, ""
    if not dots:
        return git.rev(left), ""
    old, new = git.rev(left or "HEAD"), git.rev(right or "HEAD")
    if is_merge_base:
        try:
            old = git.line("merge-base", old, new)
        except GitError:
            raise MemtoolError(
                f"{left or 'HEAD'} and {right or 'HEAD'} have no commit in common",
                hint=f"memtool diff {left or 'HEAD'}..{right or 'HEAD'}",
                code="unrelated",
            ) from None
    return old, new
