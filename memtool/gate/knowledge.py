"""Knowledge: which files of a tree an earlier check found right, and what it kept of them.

By path and blob, under the rules and settings of that check. So a check of a whole tree reads the
bytes of every file, and takes apart only those that it has not seen.
"""

from __future__ import annotations

import os

from memtool.gate import links, validity
from memtool.gate.checks.secrets import ROOM, RULES
from memtool.gate.recalled import Known
from memtool.store import cache

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from memtool.gate.content import Content, File
    from memtool.store.config import Config
    from memtool.store.repository import Repository
    from memtool.store.versions import Stamp

KIND = "right 1"


def load(repository: Repository, settings: Config) -> dict[Stamp, Known]:
    """Return what is known of files, by path and blob."""
    rows = cache.read_json(_path(repository, settings), KIND) or []
    return {
        (path, oid): Known(id_, status, tuple(olds), latest, tuple(map(tuple, names)))
        for path, oid, id_, status, olds, latest, names in rows
    }


def keep(content: Content, known: Mapping[Stamp, Known], spoiled: Collection[str]) -> None:
    """Keep what is known of the files of a whole tree; of those that are spoiled, nothing."""
    rows = {}
    for file in content.files:
        if file.memory is not None and file.path not in spoiled:
            rows[file.path, file.oid] = file.known or _known(file)
    if rows.keys() != known.keys():
        folder, name = os.path.split(_path(content.repository, content.settings))
        cache.keep_json(
            folder,
            name,
            KIND,
            [
                (*stamp, one.id, one.status, one.supersedes, one.latest, one.names)
                for stamp, one in rows.items()
            ],
            1,
            "right-",
        )


def _known(file: File) -> Known:
    memory = file.memory
    assert memory is not None
    return Known(
        memory.id,
        memory.status,
        memory.supersedes,
        validity.latest(memory),
        tuple((one.kind, one.target, one.line, one.said) for one in links.named(file)),
    )


def _path(repository: Repository, settings: Config) -> str:
    name = f"right-{cache.code_version(RULES, sorted(settings.categories))}"
    return os.path.join(repository.cache_dir, ROOM, name)
