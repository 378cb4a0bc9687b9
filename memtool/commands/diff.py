"""`memtool diff`: what changed between two revisions, in memory terms."""

from __future__ import annotations

from collections import Counter

from memtool.commands._layout import Layout, shorten_commit
from memtool.commands._render import format_changes
from memtool.errors import MemtoolError
from memtool.index import index
from memtool.memory.changes import Change, Version, compare, describe_change
from memtool.redaction.mask import Mask
from memtool.store import versions
from memtool.store.context import Context
from memtool.store.git import GitError
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
    """Compare the memories of two revisions: added, superseded, confirmed or edited.

        (nothing)   the worktree with HEAD
        A           the worktree with A
        A..B        B with A
        A...B       B with the commit where it left A

    A confirmed memory whose claim was edited in place is marked as a silent edit.

    Example:
        memtool diff
        memtool diff main..HEAD

    Args:
        range: A, A..B or A...B; an empty side is HEAD
    """
    old, new = _parse_range(context, range)
    categories = context.settings.categories
    if new:
        snapshot = context.snapshot(new)
        changes = compare(*versions.compare_snapshots(context.snapshot(old), snapshot, categories))
        titled_changes = _with_titles(
            changes, versions.read_by_id(snapshot, _find_pathless_ids(changes), categories)
        )
        return Diff(old, new, _mask_changes(context, titled_changes))
    tree = index.open(context, exact=True)
    if old and not tree.problems and versions.is_committed(tree, old):
        return Diff(old, WORKTREE, ())
    before = context.snapshot(old) if old else None
    changes = compare(*versions.find_uncommitted(tree, before, categories))
    records = [tree[id_] for id_ in sorted(_find_pathless_ids(changes)) if id_ in tree]
    versions_by_id = {record.id: Version(record.path, record.memory) for record in records}
    return Diff(old, WORKTREE, _mask_changes(context, _with_titles(changes, versions_by_id)))


MARKS = {"added": "+", "removed": "-"}
"""The mark of a change; all others have `~`."""


def render(diff: Diff, layout: Layout) -> str:
    """Return one line per change, then how many there are of each kind."""
    ends = f"{shorten_commit(diff.old) or 'nothing'}..{_name_end(diff.new)}"
    if not diff.changes:
        layout.report(f"no memory changed in {ends}")
        return ""
    rows = [
        (
            MARKS.get(change.kind, "~"),
            layout.short(change.id),
            change.title,
            layout.shorten(_describe(change)),
        )
        for change in diff.changes
    ]
    kinds = Counter(change.kind for change in diff.changes)
    counts = ", ".join(f"{count:,} {kind}" for kind, count in kinds.items())
    return "\n".join([*format_changes(layout, rows), f"{ends}: {counts}"])


def _name_end(commit: str) -> str:
    return commit if commit == WORKTREE else shorten_commit(commit)


def _describe(change: Change) -> str:
    """Return kind and details of a change; a mark says enough of added and removed memories."""
    details = {name: value for name, value in change.details.items() if name != "supersedes"}
    description = describe_change(change.replace(details=details))
    words = [change.kind] * (change.kind not in MARKS) + [description] * bool(description)
    colon = " " if description.startswith("by ") else ": "
    return f"({colon.join(words)})" if words else ""


def _find_pathless_ids(changes: tuple[Change, ...]) -> frozenset[str]:
    """Return the ids of changes without a path: memories superseded by another file."""
    return frozenset(change.id for change in changes if not change.path)


def _with_titles(
    changes: tuple[Change, ...], versions_by_id: dict[str, Version]
) -> tuple[Change, ...]:
    """Add title and path to changes without them; the comparison does not read those files."""
    pathless_ids = _find_pathless_ids(changes) & versions_by_id.keys()
    return tuple(
        change.replace(title=versions_by_id[change.id].title, path=versions_by_id[change.id].path)
        if change.id in pathless_ids
        else change
        for change in changes
    )


def _mask_changes(context: Context, changes: tuple[Change, ...]) -> tuple[Change, ...]:
    """Mask secrets in the texts of changes: old versions are not masked by the index."""
    mask = Mask(context.settings)
    return tuple(
        change.replace(title=mask.line(change.title), details=mask.details(change.details))
        for change in changes
    )


def _parse_range(context: Context, range_: str) -> tuple[str, str]:
    """Return the commits of both ends; "" for no commit yet (first) or the worktree (second)."""
    git = context.repository.git
    start_name, dots, end_name = range_.partition("..")
    is_merge_base = end_name.startswith(".")
    end_name = end_name.removeprefix(".") if dots else ""
    if not dots:
        context.repository.refuse_bare(f"memtool diff {start_name or 'HEAD~1'}..HEAD")
    if not range_:
        head = git.line("rev-parse", "--verify", "--quiet", "HEAD^{commit}", allowed=(0, 1))
        return head, ""
    if not dots:
        return git.resolve(start_name), ""
    old, new = git.resolve(start_name or "HEAD"), git.resolve(end_name or "HEAD")
    if is_merge_base:
        try:
            old = git.line("merge-base", old, new)
        except GitError:
            raise MemtoolError(
                f"{start_name or 'HEAD'} and {end_name or 'HEAD'} have no commit in common",
                hint=f"memtool diff {start_name or 'HEAD'}..{end_name or 'HEAD'}",
                code="unrelated",
            ) from None
    return old, new
