"""The ranges of commits that pages about a range propose."""

from __future__ import annotations

from contextlib import suppress

from memtool.errors import MemtoolError
from memtool.memory import timestamps
from memtool.memory.trust import CITED_DIGITS
from memtool.store import provenance
from memtool.store.git import GitError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from memtool.store.context import Context

WEEK_S = 7 * timestamps.DAY_S
RECENT = 10
"""Commits of the range that is proposed last."""
MANY = 1_000
"""Commits of a proposed range that are counted."""


def propose_ranges(context: Context) -> list[tuple[str, str, int]]:
    """Return the ranges of commits that a reader may mean: name, range, and number of commits.

    Those without a commit, or that this clone cannot tell, are left out; so is one that equals
    another.
    """
    week = timestamps.render(context.clock.now - WEEK_S)
    proposed: dict[tuple[str, ...], tuple[str, str, int]] = {}
    for name, range_ in (
        ("This branch", f"{_find_trusted(context)}..HEAD"),
        ("The last week", f"{_find_commit(context, f'--before={week}')}..HEAD"),
        ("The last merge", "{0}^1..{0}".format(_find_commit(context, "--merges"))),
        (f"The last {RECENT} commits", f"HEAD~{RECENT}..HEAD"),
    ):
        if range_.startswith((".", "^")):
            continue
        with suppress(GitError):
            commits = context.repository.git.line("rev-list", f"--max-count={MANY}", range_, "--")
            same = tuple(commits.split())
            if same:
                proposed.setdefault(same, (name, range_, len(same)))
    return list(proposed.values())


def title_range(name: str, range_: str, ranges: Iterable[tuple[str, str, int]]) -> str:
    """Return the title of a page about a range, in words if it is one of those proposed."""
    words = {proposed: label[0].lower() + label[1:] for label, proposed, _count in ranges}
    return f"{name}: {words.get(range_, range_)}" if range_ else name


def _find_trusted(context: Context) -> str:
    """Return the name of the trusted branch, empty if there is none."""
    ref = context.project.trust_settings.text("trust.ref")
    try:
        is_there = bool(provenance.resolve_trusted(context.repository, ref))
    except MemtoolError:  # the settings name a branch that is not here
        return ""
    return provenance.format_trusted_ref(context.repository, ref) if is_there else ""


def _find_commit(context: Context, option: str) -> str:
    """Return the newest commit of a kind by its first digits, empty if there is none."""
    try:
        line = context.repository.git.line("rev-list", "--max-count=1", option, "HEAD", "--")
    except GitError:  # there is no commit yet
        return ""
    return line[:CITED_DIGITS]
