"""The worktree as content: every file on disk, compared with what was committed last."""

from __future__ import annotations

import os

from memtool.gate import knowledge, taking
from memtool.gate.content import Content, Text
from memtool.gate.differences import merged
from memtool.gate.kin import Kin
from memtool.store import reading, snapshot

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from memtool.store.config import Config
    from memtool.store.repository import Repository

MOST_BYTES = 1 << 20
"""Bytes of a file that is no memory, such as the settings, that are searched for secrets."""


def take(
    repository: Repository,
    directory: str,
    settings: Config,
    now: int,
    env: Mapping[str, str],
    paths: tuple[str, ...] = (),
) -> Content:
    """Take the files on disk; with `paths` only those in or below them are looked at."""
    categories = settings.categories
    known = knowledge.load(repository, settings)
    whole = taking.read_whole(snapshot.of_worktree(repository, directory), categories, known)
    head = repository.git.head()
    parents = [head, *merged(repository, env)] if head else []
    by_path = {file.path: file for file in whole.files}
    chosen = [file for file in whole.files if is_chosen(file.path, paths)]
    others = (text for text in _others(repository, directory) if is_chosen(text.path, paths))
    return Content(
        repository=repository,
        directory=directory,
        settings=settings,
        now=now,
        files=chosen,
        texts=[*(Text(file.path, file.oid, file.text) for file in chosen), *others],
        steps=[
            taking.step_from(repository, directory, parent, by_path, categories)
            for parent in parents
        ],
        kin=Kin(whole.rows()),
        head=head,
        kind="worktree",
        is_whole=not paths,
        problems=whole.problems,
        records=whole.records,
        earlier=taking.earlier_versions(repository, directory, head, categories),
        was_parted=taking.parted(repository, directory, parents),
        known=None if paths else known,
    )


def is_chosen(path: str, paths: tuple[str, ...]) -> bool:
    """Tell whether a path is one of some paths, or below one; without any every path is."""
    return not paths or any(
        chosen in ("", path) or path.startswith(f"{chosen}/") for chosen in paths
    )


def _others(repository: Repository, directory: str) -> Iterator[Text]:
    """Yield the texts beside the memories: settings, templates, and what else git would take."""
    listed = repository.git.run(
        "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", directory
    )
    for raw in sorted(set(listed.split(b"\0")) - {b""}):
        path = os.fsdecode(raw)
        if snapshot.is_memory_path(path, directory):
            continue
        try:
            data = reading.read_regular(os.path.join(repository.top, path), MOST_BYTES)
        except OSError:
            continue  # it is gone, or a link, which is told elsewhere
        yield Text(path, "", data.decode(errors="replace"))
