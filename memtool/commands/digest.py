"""`memtool digest`: a category on one page, as a memory that sums up the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from memtool.authoring import write
from memtool.errors import MemtoolError
from memtool.memory import ids
from memtool.memory.memory import Memory
from memtool.redaction.find import allowlist
from memtool.search.levels import digests_in_use
from memtool.sessions import findings
from memtool.store import files
from memtool.store.context import Context
from memtool.store.tree import Tree
from memtool.upkeep.digest import (
    EMPTY,
    UNCHANGED,
    Digest,
    DigestChange,
    committed,
    memories,
    sum_up,
    unquoted_labels,
    written,
)
from memtool.value import Value

LEAST = 2
"""Living memories of a category that `--all` sums up."""


class Digested(Value):
    """The digests that were looked at, and the commit of those that changed."""

    digests: tuple[DigestChange, ...]
    commit: str | None = None
    dry_run: bool = False


def digest(
    context: Context,
    category: str = "",
    *,
    all: bool = False,
    commit: bool = False,
    dry_run: bool = False,
) -> Digested:
    """Sum up the living memories of a category in one memory, a line each.

    The lines are grouped by domain, tag or folder, the most important first: title, first
    sentence, date and a link. The page tells 100 memories at most; it is a semantic memory with
    derived_from, found before those that it sums up where it answers as well. It depends on the
    memories alone, so that a digest is superseded only when one of them has changed, and is
    archived when none is left.

    If extractor.command is set among your own settings, that model words the lines; a sentence
    that the memory does not bear out is replaced by the memory's own.

    Example:
        memtool digest warning
        memtool digest --all --commit

    Args:
        category: the category to sum up, such as decision or warning
        all: all categories with two or more living memories
        commit: commit the digests, and nothing else
        dry_run: show the digests, write nothing
    """
    _refuse_unclear(context, category, all_=all)
    write.prepare(context, dry_run=dry_run)
    with files.locked(context.repository.cache_dir, "digest.lock", is_needed=not dry_run):
        tree = context.tree()
        planned = [
            sum_up(
                tree,
                name,
                context.clock.now,
                context.random_for,
                word=None if dry_run else lambda told: _worded(context, told),
                withholds=unquoted_labels(context.settings),
            )
            for name in ([category] if category else _worth(context, tree))
        ]
        for plan in planned:
            _refuse_nothing(plan, is_named=bool(category))
        pages: list[DigestChange] = []
        for plan in planned:
            new = [page.id for page in pages if page.change != UNCHANGED and not dry_run]
            with files.naming(new):
                pages.append(written(context, plan, dry_run=dry_run))
    done = None
    if commit and not dry_run:
        done = committed(context, pages)
    return Digested(tuple(pages), done, dry_run)


def render(digested: Digested) -> str:
    """Return the path of each digest that was written, or that nothing changed."""
    rows = []
    for page in digested.digests:
        if page.change == UNCHANGED:
            rows.append(f"{page.category}: nothing changed since {page.id}")
        elif page.change == "archived":
            verb = "would be archived" if digested.dry_run else "archived"
            rows.append(f"{page.category}: no memory is left; {', '.join(page.replaces)} {verb}")
        elif digested.dry_run:
            rows.append(f"{page.text}\n{page.path}")
        else:
            rows.append(page.path)
    return "\n".join(rows) or "no category has two living memories yet"


def _refuse_unclear(context: Context, category: str, *, all_: bool) -> None:
    """Raise MemtoolError unless one known category, or all of them, were asked for."""
    known = context.settings.categories
    if bool(category) == all_:
        what = "--all and a category do not go together" if all_ else "no category is named"
        raise MemtoolError(what, hint=f"memtool digest {category or 'decision'}, or --all")
    if category and category not in known:
        near = ids.nearest(category, sorted(known))
        meant = f"did you mean {' or '.join(near)}? " if near else ""
        raise MemtoolError(
            f"there is no category {category!r}",
            hint=f"{meant}the categories are {', '.join(known)}",
            code="unknown-category",
        )


def _refuse_nothing(plan: Digest, *, is_named: bool) -> None:
    if is_named and plan.change == EMPTY and not plan.replaces:
        raise MemtoolError(
            f"no living memory has the category {plan.category}",
            hint="memtool stats counts the memories of each category",
            code="nothing-to-sum-up",
        )


def _worth(context: Context, tree: Tree) -> list[str]:
    """Return the categories that have a digest, or enough memories for one."""
    now, known = context.clock.now, context.settings.categories
    labels = unquoted_labels(context.settings)
    have = {record.memory.category for record in digests_in_use(tree)}
    return sorted(
        name for name in known if name in have or len(memories(tree, name, now, labels)) >= LEAST
    )


def _worded(context: Context, told: Sequence[Memory]) -> Mapping[str, str]:
    """Return the words of the user's model, none where they have set none or it fails."""
    chosen = findings.model(context)
    if chosen is None:
        return {}
    from memtool.sessions.extract.llm import Unusable
    from memtool.upkeep.digest import words

    try:
        return words(chosen, allowlist(context.settings), told)
    except Unusable as error:
        context.notes.append(f"{error.message}; the memories' own words were used instead")
        return {}
