"""The gate: every check in one table, run over one content.

`memtool check`, the hook and CI only differ in their content. The rules are the same.

Files without problems in a check of a whole tree are cached by path and blob id, as long as rules
and settings stay the same. The next check reads their bytes, but only parses the other files.
"""

from __future__ import annotations

from memtool.gate.checks import (
    duplicates,
    immutable_claims,
    lineage,
    links,
    owners,
    premises,
    schema,
    secrets,
    sightings,
)
from memtool.gate.checks.secrets import RULE_PACKAGES
from memtool.gate.content import CachedCheck
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
    "premises": premises.check,
    "sightings": sightings.check,
    "owners": owners.check,
    "validity": schema.check_dates,
}
"""Every check by its name, in the order of execution."""
_FILE_CHECKS = ("schema", "validity")
"""Checks that judge each file by itself: a file that passes them can be cached."""


def find_problems(
    content: Content, begin: Callable[[str], None] = lambda _name: None
) -> tuple[Problem, ...]:
    """Return the problems of all checks, each once, sorted by path, line and code.

    `begin` is called with the name of each check before it runs.
    """
    ids = {file.path: file.memory.id for file in content.files if file.memory is not None}
    all_problems = set()
    spoiled: set[str] = set()
    for name, check in CHECKS.items():
        begin(name)
        faults = list(check(content))
        if name in _FILE_CHECKS:
            spoiled.update(problem.path for problem in faults)
        all_problems |= {
            problem.replace(
                id=problem.id or ids.get(problem.path, ""),
                hint=problem.hint or f"edit {problem.path}",
            )
            for problem in faults
        }
    if content.cached_checks is not None:
        save_checks(content, content.cached_checks, spoiled)
    if content.warned is not None:
        all_problems = {
            p for p in all_problems if p.severity == "error" or p.path in content.warned
        }
    if content.settings.is_newer:
        all_problems = _with_newer_format(content, all_problems)
    if any('"' in problem.message or "'" in problem.message for problem in all_problems):
        from memtool.redaction.mask import Mask  # only problems quote text

        all_problems = set(map(Mask(content.settings).problem, all_problems))
    return tuple(sorted(all_problems, key=lambda p: (p.path, p.line, p.code, p.message, p.hint)))


STRICT_CODES = frozenset(
    {"hidden-character", "secret", "personal-data", "silent-edit", "removed", "unowned"}
)
"""Codes that stay errors in a tree with a newer format."""


def _with_newer_format(content: Content, problems: Collection[Problem]) -> set[Problem]:
    """Make problems warnings, since a newer format may have other rules, and add one about that."""
    from memtool import installation  # imported only for its hint

    lenient = {
        problem if problem.code in STRICT_CODES else problem.replace(severity="warning")
        for problem in problems
    }
    message = (
        f"the tree has format {content.settings.format}, and this memtool knows formats up to "
        f"{config_file.FORMAT}: problems in memories may be valid in the newer format"
    )
    path = f"{content.directory}/{config_file.CONFIG_NAME}"
    return lenient | {
        Problem(
            path, 0, "newer-format", message, installation.upgrade_command(), severity="warning"
        )
    }


KIND = "right 1"
"""The kind of these rows in the cache."""


def load_cached_checks(repository: Repository, settings: Config) -> dict[Stamp, CachedCheck]:
    """Load the cached checks of files, by path and blob id."""
    from memtool.store import kept

    rows = kept.read_json(repository.cache_dir, KIND, _make_cache_key(settings)) or []
    return {
        (path, oid): CachedCheck(id_, status, tuple(olds), latest, tuple(map(tuple, names)))
        for path, oid, id_, status, olds, latest, names in rows
    }


def save_checks(
    content: Content, cached_checks: Mapping[Stamp, CachedCheck], spoiled: Collection[str]
) -> None:
    """Cache the checks of the files of a whole tree, without files that have problems."""
    rows = {}
    for file in content.files:
        if file.memory is not None and file.path not in spoiled:
            rows[file.path, file.oid] = file.cached or _make_cached_check(file)
    if rows.keys() != cached_checks.keys():
        from memtool.store import kept

        data = [(*stamp, *check.plain().values()) for stamp, check in rows.items()]
        kept.write_json(content.repository.cache_dir, KIND, _make_cache_key(content.settings), data)


def _make_cached_check(file: File) -> CachedCheck:
    memory = file.memory
    assert memory is not None
    return CachedCheck(
        memory.id,
        memory.status,
        memory.supersedes,
        schema.find_latest(memory),
        tuple(
            (target.kind, target.target, target.line, target.text)
            for target in links.find_targets(file)
        ),
    )


def _make_cache_key(settings: Config) -> bytes:
    """Return the key of the rules and categories that the cache depends on."""
    return cache.compute_code_version(RULE_PACKAGES, sorted(settings.categories)).encode()
