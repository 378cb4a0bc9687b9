"""`memtool init`: the memory directory of a repository."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from functools import partial

from memtool.authoring import adoption, tree
from memtool.authoring.adoption import Adopted, Offer
from memtool.authoring.tree import InitResult
from memtool.commands import _features
from memtool.commands._layout import Layout, shorten_commit
from memtool.search import readiness
from memtool.store import fetched, files
from memtool.store.context import Context
from memtool.store.progress import can_prompt, confirm


def init(
    context: Context,
    *,
    directory: str = "",
    yes: bool = False,
    only: tuple[str, ...] = (),
    commit: bool = False,
    dry_run: bool = False,
) -> InitResult:
    """Create .memory/ in this repository: settings, templates, and two lines for git.

    It looks around for decision records, agent files and stores of other tools, for the manager of
    git's hooks, and for agents in use. On a terminal it asks once whether to set them up, in one
    commit; elsewhere it does so with --yes or --only. Repeating it adds what is missing.

    Example:
        memtool init
        memtool init --dry-run
        memtool init --only docs/adr,git

    Args:
        directory: keep the memories here instead of in .memory
        yes: set up all that was found here
        only: set up just these names of the plan; may be repeated
        commit: commit the files of .memory/ in any case
        dry_run: show the files and the plan, write nothing
    """
    context.repository.refuse_bare("run memtool init in a clone")
    offers = [] if context.is_global else list(_find_offers(context))
    possible = adoption.choose_offers(offers, only)
    is_asked = bool(yes or only)
    has_history = bool(offers and context.repository.git.head())
    asks = has_history and bool(possible) and not (is_asked or dry_run) and can_prompt()
    if asks:
        is_asked = confirm("\n".join([*_format_plan(offers), f"{QUESTION} [y/N] "]))
    chosen = possible if is_asked else []
    dirty = adoption.list_dirty(context) if chosen else frozenset()
    initialized = tree.begin(context, directory, commit=commit and not chosen, dry_run=dry_run)
    plan = tuple(_format_plan(offers)) if has_history else ()
    waiting = [offer.command for offer in offers if offer not in chosen or dry_run]
    initialized = initialized.replace(offers=tuple(waiting), plan=() if asks else plan)
    if not chosen or dry_run:
        return initialized
    adopted = adoption.apply_offers(context, chosen)
    changed = dict.fromkeys(
        (*initialized.written, *tree.find_uncommitted_own(context), *adopted.paths)
    )
    paths = [path for path in changed if path not in dirty]
    if len(paths) < len(changed):
        context.notes.append(
            "files that had uncommitted changes are left for you to commit: git status"
        )
    done = adoption.commit_adoption(context, paths, adopted.lines)
    readiness.leave_index(Context(context.repository, context.caller.env, context.caller.cwd))
    return initialized.replace(commit=done, lines=adopted.lines, plan=())


QUESTION = "set all of this up, in one commit?"
MAX_NAME_WIDTH = 40


def _format_plan(offers: Sequence[Offer]) -> list[str]:
    """Return a line for each thing that can be set up, with its name for --only."""
    rows = [(offer.name, offer.what) for offer in offers if offer.apply is not None]
    width = min(max((len(name) for name, _what in rows), default=0), MAX_NAME_WIDTH)
    return ["found here:", *(f"  {name:{width}}  {what}" for name, what in rows)] if rows else []


FORMATTER_IGNORES = (".prettierignore", ".markdownlintignore", ".remarkignore")
"""Ignore files of formatters: unless it is listed there, a formatter would rewrite memories."""


def _find_offers(context: Context) -> Iterator[Offer]:
    """Yield what features offer, what formatters need, and the trusted branch of a fork."""
    yield from _features.list_offers(context)
    for name in FORMATTER_IGNORES:
        data = context.project.read_file(name)
        if data is not None and not _is_ignored(context.directory, data):
            line = shlex.quote(f"{context.directory}/")
            # If the last line has no newline, one must come first.
            program = "echo" if not data or data.endswith(b"\n") else r"printf '\n%s\n'"
            what = f"a line in {name}, so that formatters leave memories alone"
            yield Offer(name, what, f"{program} {line} >> {name}", partial(_ignore, name))
    proposed = fetched.find_upstream_branch(context.repository)
    if proposed and not context.project.trust_settings.text("trust.ref"):
        yield Offer("trust.ref", proposed, f"memtool config trust.ref {proposed}")


def _ignore(name: str, context: Context) -> Adopted:
    """Add the memory directory to an ignore file of a formatter."""
    top = context.repository.top
    before = tree.read_bytes(top, name)
    data = before or b""
    gap = b"" if not data or data.endswith(b"\n") else b"\n"
    new = data + gap + f"{context.directory}/\n".encode()
    files.replace(top, name, new, expected=before)
    return Adopted((name,), (f"{name}: {context.directory}/",))


def _is_ignored(directory: str, data: bytes) -> bool:
    """Return whether an ignore file lists the memory directory."""
    rows = data.decode(errors="replace").splitlines()
    return directory in {row.strip().strip("/").removesuffix("/**") for row in rows}


def render(initialized: InitResult, _layout: Layout) -> str:
    """Return a line per file, what was set up or can be, and the next commands."""
    plan = list(initialized.plan)
    if initialized.dry_run:
        return "\n".join([*(f"would write {path}" for path in initialized.written), *plan])
    rows = [f"wrote {path}" for path in initialized.written]
    rows += [f"set up {line}" for line in initialized.lines]
    if not rows:
        rows = [f"{initialized.directory} is ready, nothing was missing"]
    short = shorten_commit(initialized.commit or "")
    if short and initialized.lines:
        rows.append(
            f"committed as {short}; git revert {short} takes it back, and memtool uninstall --all "
            "what is not in the tree"
        )
    if plan:
        rows += [*plan, "next: memtool init --yes, or memtool init --only NAME"]
    else:
        rows += [f"next: {command}" for command in initialized.offers]
    is_new = initialized.written and not (plan or initialized.lines)
    return "\n".join([*rows, *(['next: memtool new decision "TITLE"'] if is_new else [])])
