"""`memtool init`: the memory directory of a repository."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from memtool.authoring import adoption, tree, write
from memtool.authoring.adoption import Adopted, Offer
from memtool.authoring.tree import InitResult
from memtool.commands import _features
from memtool.commands._layout import Layout, shorten_commit
from memtool.search import readiness
from memtool.store import commit_style, fetched, files
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
    plan = _build_plan(offers) if has_history else ()
    if asks:
        is_asked = confirm("\n".join([*_format_plan(plan), f"{QUESTION} [y/N] "]))
    chosen = possible if is_asked else []
    dirty = adoption.list_dirty(context) if chosen else frozenset()
    initialized = tree.begin(context, directory, commit=commit and not chosen, dry_run=dry_run)
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
    later = Context(context.repository, context.caller.env, context.caller.cwd)
    done = adoption.commit_adoption(later, paths, adopted.lines)
    context.notes += [note for note in later.notes if note not in context.notes]
    readiness.leave_index(later)
    return initialized.replace(commit=done, lines=adopted.lines, plan=())


QUESTION = "set all of this up, in one commit?"
MAX_NAME_WIDTH = 40


def _build_plan(offers: Sequence[Offer]) -> tuple[dict[str, str], ...]:
    return tuple(
        {"name": offer.name, "what": offer.what, "command": offer.command}
        for offer in offers
        if offer.apply is not None
    )


def _format_plan(plan: Sequence[Mapping[str, str]]) -> list[str]:
    """Return a line for each thing that can be set up, with its name for --only."""
    width = min(max((len(row["name"]) for row in plan), default=0), MAX_NAME_WIDTH)
    rows = [f"  {row['name']:{width}}  {row['what']}" for row in plan]
    return ["found here:", *rows] if rows else []


FORMATTER_IGNORES = (".prettierignore", ".markdownlintignore", ".remarkignore")
"""Ignore files of formatters: unless it is listed there, a formatter would rewrite memories."""


def _find_offers(context: Context) -> Iterator[Offer]:
    """Yield what features offer, what formatters need, and the trusted branch of a fork."""
    yield from _offer_subject(context)
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


SUBJECT_KEY = "commit.subject"


def _offer_subject(context: Context) -> Iterator[Offer]:
    """Yield the subject of commits that fits the history, unless the user has set one."""
    subject = commit_style.suggest_subject(context.repository)
    if subject and context.settings.text(SUBJECT_KEY) == commit_style.DEFAULT_SUBJECT:
        command = f"memtool config {SUBJECT_KEY} {shlex.quote(subject)}"
        what = f"commits of memtool read {subject!r}, as yours do"
        yield Offer(SUBJECT_KEY, what, command, partial(_set_subject, subject))


def _set_subject(subject: str, context: Context) -> Adopted:
    path = context.project.config_path
    write.set_option(context, SUBJECT_KEY, subject, commit=False, dry_run=False)
    return Adopted((path,), (f"{SUBJECT_KEY}: {subject}",))


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
    plan = _format_plan(initialized.plan)
    if initialized.dry_run:
        return "\n".join([*(f"would write {path}" for path in initialized.written), *plan])
    rows = [f"wrote {path}" for path in initialized.written]
    rows += [f"set up {line}" for line in initialized.lines]
    short = shorten_commit(initialized.commit)
    if not rows:
        commit_note = f"; committed as {short}" if short else ""
        rows = [f"{initialized.directory} is ready, nothing was missing{commit_note}"]
    if short and initialized.lines:
        rows.append(
            f"committed as {short}; git revert {short} takes it back, and memtool uninstall --all "
            "what is not in the tree"
        )
    planned = {row["command"] for row in initialized.plan}
    if plan:
        rows += [*plan, "next: memtool init --yes, or memtool init --only NAME"]
    rows += [f"next: {command}" for command in initialized.offers if command not in planned]
    if initialized.written and not initialized.commit:
        rows.append("next: memtool init --commit")
    if initialized.written and not initialized.lines:
        rows.append('next: memtool new decision "TITLE"')
    return "\n".join(rows)
