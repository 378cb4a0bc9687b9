"""Sources: resolve the commits and files that memories cite.

`check`, `drift`, `verify` and `why` all use this, for many sources at once and with few processes.
Nothing is fetched. An object that a shallow or partial clone may lack is unknown, never missing.
`search/drift_verdict` decides whether a cited file has changed since.
"""

from __future__ import annotations

import posixpath

from memtool.memory.schema import Source
from memtool.memory.trust import SHORT_ID_DIGITS
from memtool.store.git import SUBMODULE_MODE, GitError
from memtool.store.landing import BROUGHT, LostCommit
from memtool.store.provenance import MAX_LISTED_PATHS, read_authors
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from memtool.store.landing import Landings
    from memtool.store.repository import Repository

OK, UNREACHABLE, MISSING, UNKNOWN = "ok", "unreachable", "missing", "unknown"
LANDED = "landed"
"""The status of a commit that was rewritten by a squash, a rebase or an amend."""
ABSENT = "absent"
"""The type of an object that a partial clone lacks."""
AMBIGUOUS, UNUSABLE, NO_BASE, NO_COMMIT = "ambiguous", "unusable", "unbased", "no commit"
UNRECORDED, SQUASHED = "unrecorded", "squashed"
"""Further reasons why a source is unknown, in addition to ABSENT and SUBMODULE_MODE.

The id is ambiguous; git cannot look up the path; there is no base commit; the base commit is not
here; a missing commit may have landed with the memory, but the memory has no record that it ever
existed; the file is not in the commit in which its own one landed.
"""
REF = "ref"
"""Reason why a commit is missing: the id is the name of a branch or tag."""
BEYOND_GIT: dict[str, str] = {
    "human": "a person's word",
    "url": "a site, which is not asked",
    "session": "a session, private to the clone that held it",
    "tool": "what a tool answered",
}
"""Kinds of sources outside of git, with a description."""


class Citation(Value):
    """A commit or file source of a memory.

    `base` is the full id of the commit in which to look up a file, unless the source names one.
    `path` is that of the citing memory. `second` is the author date of the commit according to the
    memory, None if not recorded. Both serve to find a rewritten commit.
    """

    source: Source
    base: str = ""
    path: str = ""
    second: int | None = None


class Resolution(Value):
    """The result for a citation. `status` is ok, landed, unreachable, missing or unknown.

    `commit` is the full id of the resolved commit; for a landed one it is the commit in which it
    landed, and `how` the method by which that was found. `tip` is the first tip that contains the
    named commit. `oid`, `type` and `size` are those of an existing file or folder. For an unknown
    source or a missing commit, `type` is the reason, or empty.
    """

    status: str
    commit: str = ""
    tip: str = ""
    oid: str = ""
    type: str = ""
    size: int = 0
    how: str = ""


def resolve(
    repository: Repository,
    citations: Iterable[Citation],
    tips: Iterable[str] = (),
    landings: Landings | None = None,
) -> dict[Citation, Resolution]:
    """Resolve citations. If there are tips, a commit must be contained in one of them.

    If the commit of a file does not resolve, the file has the same result. With `landings`
    rewritten commits are searched.
    """
    wanted = set(citations)
    commit_names = {citation.source.commit for citation in wanted if citation.source.commit}
    states = resolve_commits(repository, commit_names, tips)
    landed = _resolve_landed(repository, wanted, states, landings) if landings is not None else {}
    resolutions, commit_states_by_citation, places = {}, {}, {}
    for citation in wanted:
        state = states.get(citation.source.commit, Resolution(OK, citation.base))
        commit_states_by_citation[citation] = landed.get(citation, state)
        path = posixpath.normpath(citation.source.target)
        if citation.source.kind == "commit" or commit_states_by_citation[citation].status not in (
            OK,
            LANDED,
        ):
            resolutions[citation] = commit_states_by_citation[citation]
        elif not is_usable(path):
            resolutions[citation] = commit_states_by_citation[citation].replace(
                status=UNKNOWN, type=UNUSABLE
            )
        elif not commit_states_by_citation[citation].commit:
            resolutions[citation] = Resolution(UNKNOWN, type=NO_BASE)
        else:
            places[citation] = commit_states_by_citation[citation].commit, path
    with repository.git.open_objects():
        present = find_present_commits(repository, {commit for commit, _path in places.values()})
        objects = find_objects(
            repository, {place for place in places.values() if place[0] in present}
        )
    lost = {place for place, info in objects.items() if info is None}
    submodules = _find_submodules(repository, lost)
    for citation, place in places.items():
        info = objects.get(place)
        if place[0] not in present:
            resolutions[citation] = commit_states_by_citation[citation].replace(
                status=UNKNOWN, type=NO_COMMIT
            )
        elif info is None:
            kind = SUBMODULE_MODE if place in submodules else ""
            kind = kind or (
                SQUASHED if commit_states_by_citation[citation].status == LANDED else ""
            )
            status = UNKNOWN if kind else MISSING
            resolutions[citation] = commit_states_by_citation[citation].replace(
                status=status, type=kind
            )
        else:
            oid, kind, size = info
            status = UNKNOWN if kind == ABSENT else commit_states_by_citation[citation].status
            resolutions[citation] = commit_states_by_citation[citation].replace(
                status=status, oid=oid, type=kind, size=size
            )
    return resolutions


def _resolve_landed(
    repository: Repository,
    citations: Iterable[Citation],
    states: Mapping[str, Resolution],
    landings: Landings,
) -> dict[Citation, Resolution]:
    """Resolve citations whose commit is not in history but has landed in another one.

    If the memory has no record of the commit, the commit may be made up: the result is unknown.
    """
    lost = {
        citation: states[citation.source.commit]
        for citation in citations
        if citation.source.commit
        and citation.path
        and states[citation.source.commit].status != OK
        and states[citation.source.commit].type in ("", REF)
    }
    author_by_commit = read_authors(
        repository, {state.commit for state in lost.values() if state.commit}
    )
    seconds = {
        citation: author_by_commit.get(state.commit, ("", 0))[1]
        if citation.second is None
        else citation.second
        for citation, state in lost.items()
    }
    wanted = {
        citation: LostCommit(citation.path, citation.source.commit, seconds[citation])
        for citation in lost
    }
    landing_by_commit = landings.find(wanted.values())
    landed = {}
    for citation, state in lost.items():
        landing = landing_by_commit.get(wanted[citation])
        if landing is None:
            continue
        if landing.how != BROUGHT or citation.second is not None:
            landed[citation] = Resolution(LANDED, landing.commit, how=landing.how)
        elif state.status != UNKNOWN and landings.has_landed(landing.commit):
            landed[citation] = Resolution(UNKNOWN, landing.commit, type=UNRECORDED)
    return landed


def is_usable(path: str) -> bool:
    """Return whether git can look up a path that a memory names."""
    return (
        path not in (".", "..")
        and not path.startswith(("../", "/", ".git/"))
        and (path.isprintable())
    )


def resolve_commits(
    repository: Repository, named: Iterable[str], tips: Iterable[str] = ()
) -> dict[str, Resolution]:
    """Resolve commits by full or shortened ids.

    `ok` are commits that a tip contains, or without tips all that are here. A commit that is here
    but in no tip, such as one left by a rebase, is in no other clone. Costs one process, and one
    more for each tip until all commits are found.
    """
    wanted = sorted(set(named))
    try:
        full_ids = _find_full_ids(repository, wanted)
        kinds = _find_other_kinds(repository, [name for name, id_ in full_ids.items() if not id_])
    except GitError:  # a partial clone lacks the objects
        return dict.fromkeys(wanted, Resolution(UNKNOWN))
    tip_by_commit: dict[str, str] = {}
    lost = {id_ for id_ in full_ids.values() if id_}
    present_tips = [tip for tip in tips if tip]
    for tip in present_tips:
        if lost:
            stdin = "".join(f"{line}\n" for line in (*sorted(lost), f"^{tip}"))
            answer = repository.git.run("rev-list", "--stdin", stdin=stdin.encode())
            remaining = lost.intersection(answer.decode().split())
            tip_by_commit |= dict.fromkeys(lost - remaining, tip)
            lost = remaining
    is_whole = not repository.shallow_commits() and not repository.is_partial
    states = {}
    for name, id_ in full_ids.items():
        if not id_:
            is_missing = is_whole and kinds[name] != AMBIGUOUS
            states[name] = Resolution(MISSING if is_missing else UNKNOWN, type=kinds[name])
        else:
            status = UNREACHABLE if present_tips and id_ in lost else OK
            states[name] = Resolution(status, id_, tip_by_commit.get(id_, ""))
    return states


def _find_full_ids(repository: Repository, names: list[str]) -> dict[str, str]:
    """Return the full ids of shortened ones; empty if there is no match or several."""
    rows = _look_up(repository, [f"{name}^{{commit}}" for name in names])
    full_ids = {}
    for name, (id_, kind) in zip(names, rows, strict=True):
        # A branch with a hexadecimal name must not match.
        full_ids[name] = id_ if kind == "commit" and id_.startswith(name) else ""
    return full_ids


def _find_other_kinds(repository: Repository, names: list[str]) -> dict[str, str]:
    """Return why names are no commits: the type of the object, REF, AMBIGUOUS, or empty if missing.

    git only reports an ambiguous id if asked for the bare name.
    """
    kinds = {}
    for name, (id_, kind) in zip(names, _look_up(repository, names), strict=True):
        if kind in ("missing", "ambiguous"):
            kinds[name] = AMBIGUOUS if kind == "ambiguous" else ""
        else:
            kinds[name] = kind if id_.startswith(name) else REF
    return kinds


def _look_up(repository: Repository, names: list[str]) -> list[tuple[str, str]]:
    """Return id and type of the objects with these names, or the name and git's error word."""
    if not names:
        return []
    answer = repository.git.run(
        "cat-file",
        "--batch-check=%(objectname) %(objecttype)",
        stdin="".join(f"{name}\n" for name in names).encode(),
    )
    rows = (row.partition(" ") for row in answer.decode().splitlines())
    return [(id_, kind) for id_, _space, kind in rows]


def explain_absent(named: str, resolution: Resolution) -> tuple[str, str]:
    """Return a clause that explains why an id names no commit, and a hint."""
    kind = resolution.type
    if kind == AMBIGUOUS:
        return "is the beginning of several ids", "write more of its digits"
    if kind == UNRECORDED:
        at = resolution.commit[:SHORT_ID_DIGITS]
        hint = f"git show {at} shows what landed with the memory"
        return f"is not in this clone; {at} brought the memory and may hold it", hint
    if kind == REF:
        hint = f"git log -1 --format=%H {named} shows the id"
        return "is the name of a branch or tag, not the id of a commit", hint
    if kind:
        return f"is the id of a {kind}, not of a commit", "git log --oneline shows ids of commits"
    hint = "git log --all --oneline shows the commits that are; git fetch --all brings more"
    return "is not in this clone", hint


def find_present_commits(repository: Repository, commits: Iterable[str]) -> frozenset[str]:
    """Return the commits that are in this clone."""
    order = sorted(commits)
    if repository.is_partial:  # git would exit at a request for an object that is not here
        return repository.git.list_objects().intersection(order)
    infos = repository.git.infos([f"{commit}^{{commit}}" for commit in order])
    return frozenset(commit for commit, info in zip(order, infos, strict=True) if info)


def find_objects(
    repository: Repository, wanted: Iterable[tuple[str, str]]
) -> dict[tuple[str, str], tuple[str, str, int] | None]:
    """Return id, type and size of the objects at paths in commits; None if there is none.

    The type is ABSENT if a partial clone lacks the object.
    """
    order = sorted(wanted)
    if not repository.is_partial:
        infos = repository.git.infos([f"{base}:{path}" for base, path in order])
        return dict(zip(order, infos, strict=True))
    present = repository.git.list_objects()
    info_by_place: dict[tuple[str, str], tuple[str, str, int] | None] = {}
    for base in dict.fromkeys(base for base, _path in order):
        paths = [path for base_of_path, path in order if base_of_path == base]
        try:
            listed = repository.git.ls_tree(base, *paths, recursive=False, with_folders=True)
            rows = {entry.path: entry.oid for entry in listed}
        except GitError:  # the partial clone lacks its trees
            info_by_place |= {(base, path): ("", ABSENT, 0) for path in paths}
            continue
        present_paths = [path for path in paths if rows.get(path) in present]
        infos = repository.git.infos([rows[path] for path in present_paths])
        info_by_place |= {(base, path): (rows[path], ABSENT, 0) for path in paths if path in rows}
        info_by_place |= {
            (base, path): info for path, info in zip(present_paths, infos, strict=True)
        }
    return {key: info_by_place.get(key) for key in order}


def _find_submodules(
    repository: Repository, places: Iterable[tuple[str, str]]
) -> frozenset[tuple[str, str]]:
    """Return the places that are submodules, whose commits are not in this repository."""
    by_base: dict[str, list[str]] = {}
    for base, path in sorted(places):
        by_base.setdefault(base, []).append(path)
    submodules = set()
    for base, paths in by_base.items():
        if len(paths) > MAX_LISTED_PATHS:
            entries = repository.git.files_below(base)
            modes = {path: entries[path][0] for path in paths if path in entries}
        else:
            rows = repository.git.ls_tree(base, *paths, recursive=False)
            modes = {row.path: row.mode for row in rows}
        submodules |= {(base, path) for path, mode in modes.items() if mode == SUBMODULE_MODE}
    return frozenset(submodules)
