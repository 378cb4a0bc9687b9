"""The static site as a command: which commit, whether it may be published, and where it goes."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from memtool import tables
from memtool.calls import output
from memtool.commands._layout import build_layout
from memtool.commands.site import BuiltSite, render
from memtool.errors import MemtoolError
from memtool.gate.checks.secrets import Verdicts, find_code
from memtool.index import index
from memtool.memory.changes import id_from_path
from memtool.memory.fields import PRIVATE_LABELS
from memtool.memory.lifecycle import DELETED
from memtool.memory.trust import SHORT_ID_DIGITS
from memtool.memory.visibility import is_on_pages
from memtool.redaction.find import build_allowlist, find
from memtool.store import cache, derived, files
from memtool.store.blame import FileHistories
from memtool.store.context import Context
from memtool.store.history import History
from memtool.store.progress import Progress
from memtool.value import digest, first_few
from memtool.web.folder import SiteFolder
from memtool.web.site_map import build_maps
from memtool.web.site_pages import SitePart, StaticSite

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from memtool.calls.bind import Call

MAX_BYTES = 16 << 20
"""Of a file that is searched for secrets."""
MAX_NAMED = 5
"""Places of secrets that the refusal names."""
PARTS = (SitePart("/map", "Map", build_maps),)
"""Pages of features: delete the row of one to remove it."""
ROOM = "site"
"""Where locks are, below the cache directory."""


def run(call: Call, env: Mapping[str, str]) -> int:
    """Build the site for a command line, report it, and return the exit code.

    Raises:
        MemtoolError: it may not be published, or not be written there.
    """
    if call.is_global:
        raise MemtoolError(
            "global memories are private and never published", hint="in a project: memtool site DIR"
        )
    context = Context.at(call.directory, env)
    with Progress(sys.stderr, "reading the memories") as progress:
        built = derived.retry_if_damaged(
            context, lambda: build(context, progress, *call.positional, **call.options)
        )
    text = (
        output.to_json(built)
        if call.as_json
        else output.to_text(render(built, build_layout(context)))
    )
    output.write(text)
    for note in context.notes:
        output.tell(f"memtool: {output.make_visible(note)}", env, "note")
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
        MemtoolError: the commit contains a secret, or the directory cannot be used.
    """
    place = os.path.realpath(os.path.join(context.caller.cwd, directory))
    if context.project.is_in_global:
        raise MemtoolError(
            "global memories are private and never published", hint="in a project: memtool site DIR"
        )
    commit = context.repository.git.resolve(at or "HEAD")
    fixed = context.at_commit(commit)
    _refuse_place(context, fixed.directory, place, directory)
    if at is None:
        _note_changes(context)
    lock = files.locked(
        os.path.join(context.repository.cache_dir, ROOM), digest(os.fsencode(place))
    )
    with lock, context.repository.git.open_objects():
        folder = SiteFolder(place)
        progress.begin("looking for secrets")
        clean = refuse_secrets(fixed, commit)
        progress.begin("reading the memories")
        left_out = _leave_out(fixed, commit, clean)
        with History(context.repository) as history:
            site = StaticSite(fixed, commit, title, _compute_version(), left_out, PARTS)
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


def _refuse_place(context: Context, memories: str, place: str, written: str) -> None:
    """Raise MemtoolError if the site would go among the memories, or over the repository."""
    repository = context.repository
    top = os.path.realpath(repository.top or repository.git_dir)
    overlap = (
        (os.path.join(top, memories), "it is in the memory directory"),
        (os.path.realpath(repository.git_dir), "it is in the git directory"),
        (os.path.realpath(repository.common_dir), "it is in the git directory"),
    )
    for folder, why in overlap:
        if place == folder or place.startswith(folder + os.sep):
            raise MemtoolError(
                f"cannot write a site to {written}: {why}", hint="memtool site public"
            )
    if place == top or top.startswith(place.rstrip(os.sep) + os.sep):
        raise MemtoolError(
            f"cannot write a site to {written}: the repository is there",
            hint="memtool site public",
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
            f"the site shows HEAD: uncommitted changes in {context.directory} are not in it"
        )


def refuse_secrets(context: Context, commit: str) -> frozenset[str]:
    """Refuse a commit with a secret or personal data in a file of the memory directory.

    Returns the blobs, so that no memory is masked again.

    Raises:
        MemtoolError: there is one; ids, lines and kinds are named, never the secret.
    """
    settings = context.settings
    values = {key: value for key, value in settings.values.items() if key != "trust.ref"}
    verdicts = Verdicts(context.repository.cache_dir, settings.replace(values=values))
    allowed = build_allowlist(settings)
    entries = [
        entry
        for entry in context.repository.git.ls_tree(commit, context.directory)
        if entry.kind == "blob"
    ]
    clean = verdicts.find_clean(entry.oid for entry in entries)
    unseen = [entry for entry in entries if entry.oid not in clean]
    blobs = context.repository.git.blobs([entry.oid for entry in unseen], MAX_BYTES)
    places: list[str] = []
    first: tuple[str, str] | None = None
    for entry, data in zip(unseen, blobs, strict=True):
        findings = find(data.decode(errors="replace"), allowed)
        named = id_from_path(entry.path) if entry.path.endswith(".md") else entry.path
        places += [f"{named}, line {each.line} ({each.kind})" for each in findings]
        if not findings:
            verdicts.add(entry.oid)
        elif first is None:
            first = entry.path, findings[0].kind
    verdicts.save()
    if first is not None:
        raise MemtoolError(
            f"nothing was written: {commit[:SHORT_ID_DIGITS]} may contain secrets or personal "
            "data: "
            f"{first_few(places, MAX_NAMED, between='; ')}",
            hint=f"memtool redact {first[0]}\ngit commit -- {first[0]}\nthen run the command again",
            code=find_code(first[1]),
            exit_code=1,
        )
    return frozenset(entry.oid for entry in entries)


def _leave_out(context: Context, commit: str, clean: frozenset[str]) -> frozenset[str]:
    """Open the memories of a commit but those that no site shows: forgotten and private ones.

    Returns the paths of these. `clean` are blobs without secrets.
    """
    labels = context.settings.private_labels.union(PRIVATE_LABELS)
    snapshot = context.snapshot(commit)
    catalog = index.open_files(context, snapshot, clean=clean)
    hidden = {record.path for record in catalog.records if not is_on_pages(record.memory, labels)}
    if hidden:
        concealed = frozenset(
            record.id
            for record in catalog.records
            if record.path in hidden and record.memory.status != DELETED
        )
        entries = tuple(entry for entry in snapshot.entries if entry.path not in hidden)
        catalog = index.open_files(context, snapshot.replace(entries=entries), clean=clean)
        catalog.concealed = concealed
    index.register(context, catalog, commit)
    return frozenset(hidden)


def _compute_version() -> str:
    """Return a hash of what makes the pages: code, tables, templates. It is the same anywhere."""
    package = Path(__file__).parents[1]
    inside = package / "templates" / "web"
    templates = inside if inside.is_dir() else package.parent / "templates" / "web"
    code = [*package.rglob("*.py"), *package.rglob(f"{tables.FOLDER}/*.*")]
    paths = [*sorted(code), *sorted(templates.iterdir())]
    return cache.digest(*(digest(path.read_bytes(), 16) for path in paths), size=16)
