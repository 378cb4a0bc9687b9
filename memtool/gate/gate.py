"""The gate: every check in one table, run over one content.

`memtool check`, the hook and CI differ in the content that they bring. The rules are the same.

Files in which a check of a whole tree found nothing wrong are remembered by path and blob, as long
as rules and settings stay the same. The next check reads their bytes and parses only the others.
"""

from __future__ import annotations

from memtool.gate.checks import (
    duplicates,
    immutable_claims,
    lineage,
    links,
    owners,
    schema,
    secrets,
)
from memtool.gate.checks.secrets import RULES
from memtool.gate.content import Known
from memtool.memory.schema import Problem
from memtool.store import cache
from memtool.store import config as config_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

    from memtool.gate.content import Content, File
    from memtool.store.config import Config
    from memtool.store.repository import Repository
    from memtool.store.versions import Stamp

CHECKS: dict[str, Callable[[Content], Iterable[Problem]]] = {
    "schema": schema.check,
    "secrets": secrets.check,
    "silent": immutable_claims.check,
    "lineage": lineage.check,
    "claims": duplicates.check,
    "links": links.check,
    "owners": owners.check,
    "validity": schema.check_dates,
}
"""Every check by its name, in the order in which they run."""
_OF_FILES = ("schema", "validity")
"""Checks that judge each file by itself: one that they pass needs no second look."""


def problems(
    content: Content, begin: Callable[[str], None] = lambda _name: None
) -> tuple[Problem, ...]:
    """Return what every check finds, each once, sorted by path, line and code.

    `begin` is called with the name of each check before it runs.
    """
    ids = {file.path: file.memory.id for file in content.files if file.memory is not None}
    found = set()
    spoiled: set[str] = set()
    for name, check in CHECKS.items():
        begin(name)
        faults = list(check(content))
        if name in _OF_FILES:
            spoiled.update(problem.path for problem in faults)
        found |= {
            problem.replace(
                id=problem.id or ids.get(problem.path, ""),
                hint=problem.hint or f"edit {problem.path}",
            )
            for problem in faults
        }
    if content.known is not None:
        keep(content, content.known, spoiled)
    if content.warned is not None:
        found = {p for p in found if p.severity == "error" or p.path in content.warned}
    if content.settings.is_newer:
        found = _of_newer(content, found)
    if any('"' in one.message or "'" in one.message for one in found):
        from memtool.redaction.mask import Mask  # what is right quotes nothing

        found = set(map(Mask(content.settings).problem, found))
    return tuple(sorted(found, key=lambda p: (p.path, p.line, p.code, p.message, p.hint)))


STRICT_CODES = frozenset(
    {"hidden-character", "secret", "personal-data", "silent-edit", "removed", "unowned"}
)
"""Errors of a tree of any format, also of one that is newer."""


def _of_newer(content: Content, found: Collection[Problem]) -> set[Problem]:
    """Return problems as warnings where a newer format may have other rules, and that it is so."""
    from memtool import installation  # reads how memtool was installed

    known = {one if one.code in STRICT_CODES else one.replace(severity="warning") for one in found}
    message = (
        f"the tree has format {content.settings.format}, and this memtool knows formats up to "
        f"{config_file.FORMAT}: what it has against memories may be right there"
    )
    path = f"{content.directory}/{config_file.CONFIG_NAME}"
    return known | {
        Problem(path, 0, "newer-format", message, installation.upgrade(), severity="warning")
    }


KIND = "right 1"
"""What is kept of files."""


def load(repository: Repository, settings: Config) -> dict[Stamp, Known]:
    """Return what is known of files, by path and blob."""
    from memtool.store import kept

    rows = kept.read_json(repository.cache_dir, KIND, _basis(settings)) or []
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
        from memtool.store import kept

        data = [(*stamp, *one.plain().values()) for stamp, one in rows.items()]
        kept.write_json(content.repository.cache_dir, KIND, _basis(content.settings), data)


def _known(file: File) -> Known:
    memory = file.memory
    assert memory is not None
    return Known(
        memory.id,
        memory.status,
        memory.supersedes,
        schema.latest(memory),
        tuple((one.kind, one.target, one.line, one.text) for one in links.named(file)),
    )


def _basis(settings: Config) -> bytes:
    """Return what it depends on besides the files: the rules and the categories."""
    return cache.code_version(RULES, sorted(settings.categories)).encode()
