"""The check for silent edits: a committed claim never changes in place.

Every version is compared with the previous commit. For a new commit that is HEAD, even with
`--amend`, which git does not report to a hook; for a merge it is all parents. Three changes are
allowed: a memory may return to its version in an earlier commit, which undoes a silent edit; a
memory that replaced others may be removed if these hold again; and a whole commit may be reverted
(`gate/reverts.py`). Files may move if the format of the tree changes: then a migration moved them,
or was reverted.
"""

from __future__ import annotations

from memtool.errors import MemtoolError
from memtool.gate.content import Content, ParentStep
from memtool.memory import changes
from memtool.memory.changes import Change, Version
from memtool.memory.schema import Problem
from memtool.memory.trust import SHORT_ID_DIGITS
from memtool.store import config as config_file
from memtool.store import snapshot, toml, versions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_RESET = "or, if the commit is not shared: git reset --soft HEAD^, and commit again"
_UNDOABLE = frozenset({"silent-edit", "backdated"})


def check(content: Content) -> Iterator[Problem]:
    """Yield memories that were edited after their confirmation, removed, moved or backdated."""
    problems = list(_find_problems(content))
    if problems and len(content.steps) == 1:  # a merge must not drop a parent's memories
        from memtool.gate import reverts

        problems = reverts.explain_reverts(content, problems)
    yield from problems


def _find_problems(content: Content) -> Iterator[Problem]:
    step_results = [_check_step(content, step) for step in content.steps]
    base_ids: set[str] | None = None
    for id_ in sorted({id_ for problems, _new in step_results for id_ in problems}):
        problem_lists = [problems[id_] for problems, _new in step_results if id_ in problems]
        # A parent without the memory, or with the present version, proves that no edit was made.
        if not all(id_ in problems or id_ in new for problems, new in step_results):
            if any(problem.code != "removed" for problems in problem_lists for problem in problems):
                continue
            # Unless the merge dropped a memory of the other parent.
            base_ids = _find_base_ids(content) if base_ids is None else base_ids
            if id_ in base_ids:
                continue
        for problem in problem_lists[0]:
            if problem.code not in _UNDOABLE or not _is_undone(content, id_):
                yield problem


def _check_step(
    content: Content, step: ParentStep
) -> tuple[dict[str, list[Problem]], frozenset[str]]:
    """Return the problems since one parent, by id, and the ids that this parent lacks."""
    olds = {version.id: version for version in step.before}
    news = {version.id: version for version in step.after}
    problems: dict[str, list[Problem]] = {}
    renamed = set()
    is_migrated: bool | None = None
    for change in changes.compare(step.before, step.after):
        from_id = str(change.details.get("from_id", ""))
        renamed.add(change.id if from_id else "")
        old, new = olds.get(from_id or change.id), news.get(change.id)
        if change.kind == "removed" and change.id in content.purges:
            continue
        if change.kind == "moved" and not from_id:
            is_migrated = _is_migrated(content, step) if is_migrated is None else is_migrated
            if is_migrated:
                continue
        where = step.where.get(change.id, "")
        holder = _find_holder(content, step, change.id)
        problem = _find_problem(change, old, new, f" {where}" if where else "", holder)
        if problem is not None and change.kind == "removed" and old is not None:
            problem = _allow_undo(content, old, problem)
        if problem is not None:
            problems.setdefault(change.id, []).append(problem)
    return problems, frozenset(news.keys() - olds.keys() - renamed)


def _is_migrated(content: Content, step: ParentStep) -> bool:
    """Return whether the settings have another format than those of the parent."""
    path = f"{content.directory}/{config_file.CONFIG_NAME}"
    entries = content.repository.git.ls_tree(step.commit, path) if step.commit else []
    data = next(content.repository.git.blobs([entries[0].oid], toml.MAX_BYTES)) if entries else b""
    try:
        return config_file.parse(data, path).format != content.settings.format
    except MemtoolError:
        return False


def _find_holder(content: Content, step: ParentStep, id_: str) -> str:
    """Return a revision that has the old version of a memory in a step."""
    if content.kind == "commit":
        return step.holding_commits.get(id_, step.commit)[:SHORT_ID_DIGITS]
    return "HEAD" if step.commit == content.head else step.commit[:SHORT_ID_DIGITS]


def _find_problem(
    change: Change, old: Version | None, new: Version | None, place: str, holder: str
) -> Problem | None:
    """Return the problem of a change, None if it is allowed.

    `place` names the commit that made it, `holder` is a revision that has the old version.
    """
    if old is None or old.memory is None:
        return None
    id_, path = change.id, change.path
    if change.kind == "removed":
        message = f"{old.id} was removed{place}; memories are never deleted"
        hint = f'git checkout {holder} -- {old.path}, then memtool forget {old.id} --reason "…"'
        if old.memory.status == "deleted":
            hint = f"once it is due: memtool purge {old.id} --apply --commit"
        return Problem(old.path, 0, "removed", message, hint, id_)
    if change.kind == "moved":
        message = f"it was moved from {change.details['from']}; memories keep their path{place}"
        return Problem(path, 0, "moved", message, f"git mv {path} {change.details['from']}", id_)
    if change.kind != "edited" or new is None or new.memory is None:
        return None
    if not change.details["silent"]:
        if old.memory.status == "candidate" or new.memory.status != "candidate":
            return None
        message = f"a confirmed memory became a candidate again{place}"
        hint = f"memtool deprecate {id_}, or memtool supersede {id_} TITLE"
        return Problem(path, 1, "unconfirmed", message, hint, id_, "warning")
    all_keys = change.details["keys"]
    keys = [key for key in all_keys if changes.is_claim(key)] if isinstance(all_keys, tuple) else []
    hint = f"git checkout {holder} -- {path}"
    if "timestamp" in keys and new.memory.timestamp < old.memory.timestamp:
        message = f"its timestamp was set back from {old.memory.text('timestamp')}{place}"
        return Problem(path, 1, "backdated", message, hint, id_)
    message = f"a confirmed memory was changed in place: {', '.join(keys)}{place}"
    hint += f", then memtool supersede {id_} TITLE; {_RESET}"
    return Problem(path, 1, "silent-edit", message, hint, id_)


def _allow_undo(content: Content, old: Version, problem: Problem) -> Problem:
    """Return a warning instead of the problem if all memories that the removed one replaced hold.

    Then a supersession was undone, as `memtool undo` does it: the older memories are heads again,
    and nothing supersedes the removed one. A merge must not drop a parent's memories this way.
    """
    supersede_index = content.supersede_index
    replaced = old.memory.replaces if old.memory is not None else ()
    if not replaced or len(content.steps) != 1 or supersede_index.is_replaced(old.id):
        return problem
    if not all(
        supersede_index.has_id(id_) and not supersede_index.is_replaced(id_) for id_ in replaced
    ):
        return problem
    message = f"{old.id} was removed; {', '.join(replaced)} is in force again"
    hint = f"git log -1 -- {old.path}, then git revert that commit"
    return problem.replace(message=message, hint=hint, severity="warning")


def _find_base_ids(content: Content) -> set[str]:
    """Return the ids in the merge bases of a merge's parents."""
    git = content.repository.git
    bases = git.line("merge-base", "--octopus", *content.parents, allowed=(0, 1)).split()
    return {
        changes.id_from_path(entry.path)
        for base in bases
        for entry in snapshot.snapshot_commit(content.repository, content.directory, base).entries
    }


def _is_undone(content: Content, id_: str) -> bool:
    """Return whether a memory has the same claim as before the last commit."""
    new = next((v for step in content.steps for v in step.after if v.id == id_), None)
    return (
        new is not None
        and new.memory is not None
        and any(
            old.memory is not None
            and not any(map(changes.is_claim, changes.find_changed_keys(old.memory, new.memory)))
            for old in _read_earlier(content, id_)
        )
    )


def _read_earlier(content: Content, id_: str) -> Sequence[Version]:
    """Return the versions of an id in the parents of the last commit."""
    if not content.parents:
        return ()
    repository = content.repository
    stamps = {
        (entry.path, entry.oid)
        for commit in repository.git.line("rev-parse", f"{content.parents[0]}^@").split()
        for entry in snapshot.snapshot_commit(repository, content.directory, commit).entries
        if entry.path.endswith(f"/{id_}.md")
    }
    return list(versions.read_blobs(repository, stamps, content.settings.categories).values())
