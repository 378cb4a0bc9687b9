"""Do the sources of memories resolve: which commits are here, and what stands in them at a path.

The one answer for `check`, `drift`, `verify` and `why`, for many sources at once and with few
processes. Nothing is fetched, and what a shallow or partial clone need not hold is unknown, never
missing. Whether a file that was there is still the same is the question of `search/drift_verdict`.
"""

from __future__ import annotations

import posixpath

from memtool.memory.schema import Source
from memtool.store.git import SUBMODULE, GitError
from memtool.store.provenance import LISTED_MOST
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from memtool.store.repository import Repository

OK, UNREACHABLE, MISSING, UNKNOWN = "ok", "unreachable", "missing", "unknown"
ABSENT = "absent"
"""The type of what a partial clone does not hold."""
AMBIGUOUS, UNUSABLE, UNBASED, NO_COMMIT = "ambiguous", "unusable", "unbased", "no commit"
"""Why a source is unknown, beside `ABSENT` and the type of a submodule: several commits begin so,
git cannot be asked about the path, no commit is known to look it up in, or that one is not here."""
BEYOND_GIT: dict[str, str] = {
    "human": "a person's word",
    "url": "a site, which is not asked",
    "session": "a session, private to the clone that held it",
    "tool": "what a tool answered",
}
"""Sources that git knows nothing of, and what they are."""


class Citation(Value):
    """A commit or file source, and the full id of the commit in which a file is looked up.

    `base` does not count where the source names a commit itself.
    """

    source: Source
    base: str = ""


class Resolution(Value):
    """What git has of a citation. `status` is ok, unreachable, missing or unknown.

    `commit` is the full id of the commit that was looked at, and `tip` the first tip to which the
    commit that the source names leads. `oid`, `type` and `size` are those of a file or folder that
    is there; of what is unknown `type` says why.
    """

    status: str
    commit: str = ""
    tip: str = ""
    oid: str = ""
    type: str = ""
    size: int = 0


def resolve(
    repository: Repository, citations: Iterable[Citation], tips: Iterable[str] = ()
) -> dict[Citation, Resolution]:
    """Return what became of citations; a commit must lead to one of the tips, where there are any.

    Of a file whose commit does not resolve, the answer is that of the commit.
    """
    wanted = set(citations)
    named = {one.source.commit for one in wanted if one.source.commit}
    states = commit_states(repository, named, tips)
    found, commits, places = {}, {}, {}
    for one in wanted:
        commits[one] = states.get(one.source.commit, Resolution(OK, one.base))
        path = posixpath.normpath(one.source.target)
        if one.source.kind == "commit" or commits[one].status != OK:
            found[one] = commits[one]
        elif not is_usable(path):
            found[one] = commits[one].replace(status=UNKNOWN, type=UNUSABLE)
        elif not commits[one].commit:
            found[one] = Resolution(UNKNOWN, type=UNBASED)
        else:
            places[one] = commits[one].commit, path
    with repository.git.reading():
        here = present_commits(repository, {commit for commit, _path in places.values()})
        objects = objects_at(repository, {place for place in places.values() if place[0] in here})
    lost = {place for place, info in objects.items() if info is None}
    submodules = _submodules(repository, lost)
    for one, place in places.items():
        info = objects.get(place)
        if place[0] not in here:
            found[one] = commits[one].replace(status=UNKNOWN, type=NO_COMMIT)
        elif info is None:
            kind = SUBMODULE if place in submodules else ""
            status = UNKNOWN if kind else MISSING
            found[one] = commits[one].replace(status=status, type=kind)
        else:
            oid, kind, size = info
            status = UNKNOWN if kind == ABSENT else OK
            found[one] = commits[one].replace(status=status, oid=oid, type=kind, size=size)
    return found


def is_usable(path: str) -> bool:
    """Tell whether git can be asked about a path that a memory names."""
    return (
        path not in (".", "..")
        and not path.startswith(("../", "/", ".git/"))
        and (path.isprintable())
    )


def commit_states(
    repository: Repository, named: Iterable[str], tips: Iterable[str] = ()
) -> dict[str, Resolution]:
    """Return what became of commits, by the maybe shortened ids that name them.

    `ok` are those that lead to one of the tips, without tips those that are here: a commit that is
    merely here, as a rebase leaves it behind, is in no other clone. One process, and one more for
    each tip to which the ones before did not lead.
    """
    wanted = sorted(set(named))
    try:
        full = _full_ids(repository, wanted) if wanted else {}
    except GitError:  # what a partial clone does not hold
        return dict.fromkeys(wanted, Resolution(UNKNOWN))
    reached: dict[str, str] = {}
    lost = {id_ for id_ in full.values() if id_ not in ("", AMBIGUOUS)}
    ends = [tip for tip in tips if tip]
    for tip in ends:
        if lost:
            asked = "".join(f"{line}\n" for line in (*sorted(lost), f"^{tip}"))
            answer = repository.git.run("rev-list", "--stdin", stdin=asked.encode())
            behind = lost.intersection(answer.decode().split())
            reached |= dict.fromkeys(lost - behind, tip)
            lost = behind
    is_whole = not repository.shallow_commits() and not repository.is_partial
    found = {}
    for name, id_ in full.items():
        if id_ == AMBIGUOUS:
            found[name] = Resolution(UNKNOWN, type=AMBIGUOUS)
        elif not id_:
            found[name] = Resolution(MISSING if is_whole else UNKNOWN)
        else:
            status = UNREACHABLE if ends and id_ in lost else OK
            found[name] = Resolution(status, id_, reached.get(id_, ""))
    return found


def _full_ids(repository: Repository, wanted: list[str]) -> dict[str, str]:
    """Return the full ids of shortened ones: empty for none, `AMBIGUOUS` for several."""
    answer = repository.git.run(
        "cat-file",
        "--batch-check=%(objectname)",
        stdin="".join(f"{name}^{{commit}}\n" for name in wanted).encode(),
    )
    found = {}
    for name, row in zip(wanted, answer.decode().splitlines(), strict=True):
        if row.endswith(" ambiguous"):
            found[name] = AMBIGUOUS
        else:  # a branch may have a hexadecimal name, and is not what was meant
            found[name] = row if row.startswith(name) and " " not in row else ""
    return found


def present_commits(repository: Repository, commits: Iterable[str]) -> frozenset[str]:
    """Return those of some commits that are here."""
    order = sorted(commits)
    if repository.is_partial:  # a question about an object that is not here would end git
        return repository.git.present().intersection(order)
    infos = repository.git.infos([f"{commit}^{{commit}}" for commit in order])
    return frozenset(one for one, info in zip(order, infos, strict=True) if info)


def objects_at(
    repository: Repository, wanted: Iterable[tuple[str, str]]
) -> dict[tuple[str, str], tuple[str, str, int] | None]:
    """Return id, type and size of what was at paths in commits, None where nothing was.

    The type is `ABSENT` where a partial clone does not hold it.
    """
    order = sorted(wanted)
    if not repository.is_partial:
        infos = repository.git.infos([f"{base}:{path}" for base, path in order])
        return dict(zip(order, infos, strict=True))
    present = repository.git.present()
    found: dict[tuple[str, str], tuple[str, str, int] | None] = {}
    for base in dict.fromkeys(base for base, _path in order):
        paths = [path for other, path in order if other == base]
        try:
            listed = repository.git.ls_tree(base, *paths, recursive=False, with_folders=True)
            rows = {one.path: one.oid for one in listed}
        except GitError:  # not even its folders are here
            found |= {(base, path): ("", ABSENT, 0) for path in paths}
            continue
        here = [path for path in paths if rows.get(path) in present]
        infos = repository.git.infos([rows[path] for path in here])
        found |= {(base, path): (rows[path], ABSENT, 0) for path in paths if path in rows}
        found |= {(base, path): info for path, info in zip(here, infos, strict=True)}
    return {key: found.get(key) for key in order}


def _submodules(
    repository: Repository, places: Iterable[tuple[str, str]]
) -> frozenset[tuple[str, str]]:
    """Return which places hold a submodule, of whose commit git knows nothing here."""
    by_base: dict[str, list[str]] = {}
    for base, path in sorted(places):
        by_base.setdefault(base, []).append(path)
    found = set()
    for base, paths in by_base.items():
        if len(paths) > LISTED_MOST:
            entries = repository.git.files_below(base)
            modes = {path: entries[path][0] for path in paths if path in entries}
        else:
            rows = repository.git.ls_tree(base, *paths, recursive=False)
            modes = {row.path: row.mode for row in rows}
        found |= {(base, path) for path, mode in modes.items() if mode == SUBMODULE}
    return frozenset(found)
