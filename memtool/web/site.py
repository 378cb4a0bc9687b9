"""The static site as a command: which commit, whether it may be shown, and where it goes."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from memtool import tables
from memtool.calls import output
from memtool.commands.site import BuiltSite, render
from memtool.errors import MemtoolError
from memtool.gate.checks.secrets import Verdicts, code
from memtool.index import index
from memtool.memory.changes import stem
from memtool.memory.fields import PRIVATE_LABELS
from memtool.memory.visibility import is_on_pages
from memtool.redaction.find import allowlist, find
from memtool.store import cache, derived, files
from memtool.store.blame import FileHistories
from memtool.store.context import Context
from memtool.store.history import History
from memtool.store.progress import Progress
from memtool.store.provenance import SHORT
from memtool.value import digest, first_few
from memtool.web.folder import SiteFolder
from memtool.web.site_pages import StaticSite

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from memtool.calls.bind import Call

MOST_BYTES = 16 << 20
"""Of a file that is searched for secrets."""
MOST_NAMED = 5
"""Places of secrets that the refusal names."""
ROOM = "site"
"""Where locks are, below the cache directory."""


def run(call: Call, env: Mapping[str, str]) -> int:
    """Build the site that a command line names, say what was built, and return the exit code.

    Raises:
        MemtoolError: it may not be shown, or not be written there.
    """
    if call.is_global:
        raise MemtoolError(
            "global memories are yours alone, and in no site", hint="memtool site DIR, in a project"
        )
    context = Context.at(call.directory, env)
    with Progress(sys.stderr, "reading the memories") as progress:
        built = derived.retry_if_damaged(
            context, lambda: build(context, progress, *call.positional, **call.options)
        )
    text = output.as_json(built) if call.as_json else output.as_text(render(built))
    output.write(text)
    for note in context.notes:
        output.tell(f"memtool: {output.visible(note)}", env, "note")
    return 0


def build(
    context: Context,
    progress: Progress,
    directory: str,
    *,
    at: str | None = None,
    title: str = "Memories",
    dry_run: bool = False,
) -> BuiltSite:
    """Build the site of a commit in a directory. See `memtool.commands.site`.

    Raises:
        MemtoolError: the commit holds a secret, or the directory is none to write.
    """
    place = os.path.realpath(os.path.join(context.caller.cwd, directory))
    if context.project.is_in_global:
        raise MemtoolError(
            "global memories are yours alone, and in no site", hint="memtool site DIR, in a project"
        )
    commit = context.repository.git.rev(at or "HEAD")
    fixed = context.at_commit(commit)
    _refuse_place(context, fixed.directory, place, directory)
    if at is None:
        _note_changes(context)
    lock = files.locked(
        os.path.join(context.repository.cache_dir, ROOM), digest(os.fsencode(place))
    )
    with lock, context.repository.git.reading():
        folder = SiteFolder(place)
        progress.begin("looking for secrets")
        clean = refuse_secrets(fixed, commit)
        progress.begin("reading the memories")
        left_out = _leave_out(fixed, commit, clean)
        with History(context.repository) as history:
            site = StaticSite(fixed, commit, title, _version(), left_out)
            pages = site.pages(
                FileHistories(context.repository.git, history, commit, fixed.directory)
            )
            tell = lambda count: progress.begin(f"{count:,} pages")  # noqa: E731  # it is one line
            done = folder.count(pages) if dry_run else folder.replace(pages, commit, tell)
    return BuiltSite(
        place,
        commit,
        len(site.records),
        len(left_out),
        done.files,
        done.written,
        done.removed,
        dry_run,
    )


def _refuse_place(context: Context, memories: str, place: str, given: str) -> None:
    """Raise MemtoolError where a site would lie among the memories, or over the repository."""
    repository = context.repository
    top = os.path.realpath(repository.top or repository.git_dir)
    taken = (
        (os.path.join(top, memories), "it is in the memory directory"),
        (os.path.realpath(repository.git_dir), "it is in the git directory"),
        (os.path.realpath(repository.common_dir), "it is in the git directory"),
    )
    for folder, why in taken:
        if place == folder or place.startswith(folder + os.sep):
            raise MemtoolError(f"{given} is no place for a site: {why}", hint="memtool site public")
    if place == top or top.startswith(place.rstrip(os.sep) + os.sep):
        raise MemtoolError(
            f"{given} is no place for a site: the repository lies there", hint="memtool site public"
        )


def _note_changes(context: Context) -> None:
    """Note that the worktree holds what HEAD does not: it is not in the site."""
    if context.repository.is_bare:
        return
    changed = context.repository.git.names(
        "status", "--porcelain", "-z", "--untracked-files=all", "--", context.directory
    )
    if changed:
        context.notes.append(
            f"what is not committed in {context.directory} is not in the site; it shows HEAD"
        )


def refuse_secrets(context: Context, commit: str) -> frozenset[str]:
    """Refuse a commit of which a file in the memory directory holds a secret or personal data.

    Returns the blobs, so that no memory is masked again.

    Raises:
        MemtoolError: one does; ids, lines and kinds are named, never what was found.
    """
    settings = context.settings
    kept = {key: value for key, value in settings.given.items() if key != "trust.ref"}
    verdicts = Verdicts(context.repository.cache_dir, settings.replace(given=kept))
    allowed = allowlist(settings)
    entries = [
        one
        for one in context.repository.git.ls_tree(commit, context.directory)
        if one.kind == "blob"
    ]
    clean = verdicts.clean(one.oid for one in entries)
    unseen = [one for one in entries if one.oid not in clean]
    blobs = context.repository.git.blobs([one.oid for one in unseen], MOST_BYTES)
    places: list[str] = []
    first: tuple[str, str] | None = None
    for one, data in zip(unseen, blobs, strict=True):
        found = find(data.decode(errors="replace"), allowed)
        named = stem(one.path) if one.path.endswith(".md") else one.path
        places += [f"{named}, line {each.line} ({each.kind})" for each in found]
        if not found:
            verdicts.add(one.oid)
        elif first is None:
            first = one.path, found[0].kind
    verdicts.save()
    if first is not None:
        raise MemtoolError(
            f"{commit[:SHORT]} holds what looks like a secret or personal data: "
            f"{first_few(places, MOST_NAMED, between='; ')}; nothing was written",
            hint=f"memtool redact {first[0]}, commit that, and run the same command again",
            code=code(first[1]),
            exit_code=1,
        )
    return frozenset(one.oid for one in entries)


def _leave_out(context: Context, commit: str, clean: frozenset[str]) -> frozenset[str]:
    """Open the memories of a commit but those that no site shows: forgotten and private ones.

    Returns the paths of these. `clean` are blobs without secrets.
    """
    labels = context.settings.private_labels.union(PRIVATE_LABELS)
    taken = context.snapshot(commit)
    found = index.open_files(context, taken, clean=clean)
    hidden = {one.path for one in found.records if not is_on_pages(one.memory, labels)}
    if hidden:
        entries = tuple(one for one in taken.entries if one.path not in hidden)
        found = index.open_files(context, taken.replace(entries=entries), clean=clean)
    index.keep(context, found, commit)
    return frozenset(hidden)


def _version() -> str:
    """Return a hash of what makes the pages: code, tables, templates. It is the same anywhere."""
    package = Path(__file__).parents[1]
    inside = package / "templates" / "web"
    templates = inside if inside.is_dir() else package.parent / "templates" / "web"
    code = [*package.rglob("*.py"), *package.rglob(f"{tables.FOLDER}/*.*")]
    paths = [*sorted(code), *sorted(templates.iterdir())]
    return cache.digest(*(digest(path.read_bytes(), 16) for path in paths), size=16)
