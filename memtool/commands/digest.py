"""`memtool digest`: a category on one page, as a memory that sums up the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext

from memtool.authoring import write
from memtool.authoring.tree import is_dirty
from memtool.errors import MemtoolError
from memtool.memory import ids
from memtool.memory.memory import Memory
from memtool.redaction.find import allowlist
from memtool.sessions import findings
from memtool.store import files
from memtool.store.commits import commit_files
from memtool.store.context import Context
from memtool.store.snapshot import Tree
from memtool.upkeep.digest import CHANGED, EMPTY, UNCHANGED, Digest, digests, memories, sum_up
from memtool.value import Value

LEAST = 2
"""Living memories of a category that `--all` sums up."""


class DigestChange(Value):
    """What became of the digest of a category: `new`, `changed`, `unchanged`, or `archived`.

    `id` and `path` are those of the digest that holds now. `told` counts its memories,
    `left_out` those beyond its bounds, `replaces` the digests before it.
    """

    category: str
    change: str
    id: str
    path: str
    told: int
    left_out: int
    replaces: tuple[str, ...]
    text: str = ""


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
    write.prepare(context)
    with nullcontext() if dry_run else files.locked(context.repository.cache_dir, "digest.lock"):
        tree = context.tree()
        planned = [
            sum_up(tree, name, context.now, context.settings.categories, context.random,
                           word=None if dry_run else lambda told: _worded(context, told))
            for name in ([category] if category else _worth(context, tree))
        ]  # fmt: skip
        for plan in planned:
            _refuse_nothing(plan, is_named=bool(category))
        pages = tuple(_written(context, plan, dry_run=dry_run) for plan in planned)
    done = None
    if commit and not dry_run:
        done = _committed(context, pages)
    return Digested(pages, done, dry_run)


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
    now, known = context.now, context.settings.categories
    have = {record.memory.category for record in digests(tree)}
    return sorted(
        name for name in known if name in have or len(memories(tree, name, now, known)) >= LEAST
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


def _written(context: Context, plan: Digest, *, dry_run: bool) -> DigestChange:
    """Write the digest of a plan, or archive the one that has nothing left to sum up."""
    old = tuple(one.id for one in plan.replaces)
    if plan.memory is None:
        first = plan.replaces[0]
        if plan.change == EMPTY:
            for one in plan.replaces:
                write.change(context, one.id, lambda _old: {"status": "archived"}, "archive",
                               dry_run=dry_run)  # fmt: skip
        change = "archived" if plan.change == EMPTY else plan.change
        gone = old if plan.change == EMPTY else ()
        return DigestChange(
            plan.category, change, first.id, first.path, plan.told, plan.left_out, gone
        )
    written = write.write_new(context, plan.memory, dry_run=dry_run)
    return DigestChange(
        plan.category, plan.change, written.id, written.path, plan.told, plan.left_out, old,
        written.text if dry_run else "",
    )  # fmt: skip


def _committed(context: Context, pages: Sequence[DigestChange]) -> str | None:
    """Commit what is not committed yet of the digests, in one commit; None where all is."""
    due = [page for page in pages if is_dirty(context.repository, page.path)]
    if not due:
        return None
    trailers = {"Memory-Id": ", ".join(page.id for page in due)}
    old = [id_ for page in due if page.change == CHANGED for id_ in page.replaces]
    if old:
        trailers["Supersedes"] = ", ".join(old)
    what = due[0].category if len(due) == 1 else f"{len(due)} categories"
    paths = [page.path for page in due]
    return commit_files(context.repository, paths, f"memory: digest {what}", trailers)
