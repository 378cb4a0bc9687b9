"""`memtool digest`: a category on one page, as a memory that sums up the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from memtool.authoring import write
from memtool.commands._layout import Layout
from memtool.errors import MemtoolError
from memtool.index import index
from memtool.memory import ids
from memtool.memory.memory import Memory
from memtool.redaction.find import build_allowlist
from memtool.search.levels import find_digests_in_use
from memtool.sessions import findings
from memtool.store import files
from memtool.store.context import Context
from memtool.store.tree import Tree
from memtool.upkeep.digest import (
    EMPTY,
    UNCHANGED,
    CategorySummary,
    Digest,
    DigestChange,
    commit_digests,
    find_members,
    sum_up,
    summarize,
    unquoted_labels,
    write_digest,
)
from memtool.value import Value, format_count

MIN_MEMORIES = 2
"""Living memories that a category needs for a digest with `--all`."""


class CategoryRow(Value):
    """A category, how many active memories it has, and the id of its digest, "" if it has none."""

    category: str
    memories: int
    digest: str


class DigestResult(Value):
    """The digests, changed or not, and the commit of those that changed.

    If no category was named, `categories` lists them, and nothing was written.
    """

    json_optional = "categories"

    digests: tuple[DigestChange, ...]
    commit: str | None = None
    dry_run: bool = False
    categories: tuple[CategoryRow, ...] | None = None


def digest(
    context: Context,
    category: str = "",
    *,
    all: bool = False,
    commit: bool = False,
    dry_run: bool = False,
) -> DigestResult:
    """Sum up the memories of a category on one page, with a line for each.

    A digest is a memory itself: title, first sentence, date and link of at most 100 memories,
    grouped by domain, tag or directory. It is renewed when one of them changes. The model of the
    setting extraction.command writes the lines, if one is set.

    Example:
        memtool digest
        memtool digest warning
        memtool digest --all --commit

    Args:
        category: a category, such as warning; without one, list them
        all: all categories with two or more memories
        commit: commit the digests only
        dry_run: print the digests, write nothing
    """
    if not (category or all):
        return DigestResult((), dry_run=dry_run, categories=_list_categories(context))
    _refuse_unclear(context, category, all_=all)
    write.prepare(context, dry_run=dry_run)
    with files.locked(context.repository.cache_dir, "digest.lock", is_needed=not dry_run):
        tree = context.tree()
        plans = [
            sum_up(
                tree,
                name,
                context.clock.now,
                context.random_id_bytes,
                word=None if dry_run else lambda quoted: _reword_with_model(context, quoted),
                withholds=unquoted_labels(context.settings),
            )
            for name in ([category] if category else _find_categories(context, tree))
        ]
        for plan in plans:
            _refuse_nothing(plan, is_named=bool(category))
        pages: list[DigestChange] = []
        for plan in plans:
            new = [page.id for page in pages if page.change != UNCHANGED and not dry_run]
            with files.reporting_done(new):
                pages.append(write_digest(context, plan, dry_run=dry_run))
    commit_id = None
    if commit and not dry_run:
        commit_id = commit_digests(context, pages)
    return DigestResult(tuple(pages), commit_id, dry_run)


def read_summary(context: Context, category: str) -> CategorySummary:
    """Return the summary of a known category: its digest, else a shorter page made now."""
    labels = context.settings.private_labels
    return summarize(index.open(context), category, context.clock.now, labels)


def render(result: DigestResult, layout: Layout) -> str:
    """Return the path of each written digest, or a table of the categories."""
    if result.categories is not None:
        rows = [
            (
                row.category,
                format_count(row.memories, "memory", "memories"),
                f"digest {layout.short(row.digest)}, {layout.written(row.digest)}"
                if row.digest
                else "no digest",
            )
            for row in result.categories
        ]
        command = "memtool digest CATEGORY, or memtool digest --all"
        return "\n".join([*layout.table(rows, title=2), f"To write one: {command}"])
    parts = []
    for page in result.digests:
        if page.change == UNCHANGED:
            layout.report(f"{page.category}: nothing changed since {layout.short(page.id)}")
        elif page.change == "archived":
            verb = "would be archived" if result.dry_run else "archived"
            olds = ", ".join(map(layout.short, page.replaces))
            layout.report(f"{page.category}: no memory is left; {olds} {verb}")
        else:
            parts.append(f"{page.text}\n{page.path}" if result.dry_run else page.path)
    if not result.digests:
        layout.report("no category has two active memories yet")
    return "\n".join(parts)


def _refuse_unclear(context: Context, category: str, *, all_: bool) -> None:
    """Raise MemtoolError unless there is one known category, or --all."""
    categories = context.settings.categories
    if category and all_:
        raise MemtoolError(
            "--all and a category exclude each other", hint=f"memtool digest {category}"
        )
    if category and category not in categories:
        suggestions = ids.find_nearest(category, sorted(categories))
        suggestion_text = f"did you mean {' or '.join(suggestions)}? " if suggestions else ""
        raise MemtoolError(
            f"unknown category {category!r}",
            hint=f"{suggestion_text}the categories are {', '.join(categories)}",
            code="unknown-category",
        )


def _refuse_nothing(plan: Digest, *, is_named: bool) -> None:
    if is_named and plan.change == EMPTY and not plan.replaces:
        raise MemtoolError(
            f"cannot write a digest: no active memory has the category {plan.category}",
            hint="memtool stats",
            code="nothing-to-sum-up",
        )


def _list_categories(context: Context) -> tuple[CategoryRow, ...]:
    """Return the categories with active memories, those with most first."""
    tree, categories = context.tree(), context.settings.categories
    labels = unquoted_labels(context.settings)
    digests = {record.memory.category: record.id for record in find_digests_in_use(tree)}
    rows = [
        CategoryRow(
            name,
            len(find_members(tree, name, context.clock.now, labels)),
            digests.get(name, ""),
        )
        for name in categories
    ]
    filled = [row for row in rows if row.memories or row.digest]
    return tuple(sorted(filled, key=lambda row: (-row.memories, row.category)))


def _find_categories(context: Context, tree: Tree) -> list[str]:
    """Return the categories with a digest, or with enough memories for one."""
    now, categories = context.clock.now, context.settings.categories
    labels = unquoted_labels(context.settings)
    digested = {record.memory.category for record in find_digests_in_use(tree)}
    return sorted(
        name
        for name in categories
        if name in digested or len(find_members(tree, name, now, labels)) >= MIN_MEMORIES
    )


def _reword_with_model(context: Context, quoted: Sequence[Memory]) -> Mapping[str, str]:
    """Return the lines as the user's model words them; empty without a model, or if it fails."""
    model = findings.read_model(context)
    if model is None:
        return {}
    from memtool.sessions.extract.llm import Unusable
    from memtool.upkeep.digest import ask_model

    try:
        return ask_model(model, build_allowlist(context.settings), quoted)
    except Unusable as error:
        context.notes.append(f"{error.message}; the memories' own words were used instead")
        return {}
