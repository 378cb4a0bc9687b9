"""The check for silent edits: a committed claim never changes in place.

Every version is compared with the commit before: HEAD for a commit that is to come, also where it
amends one, since git does not tell a hook; all parents in a merge. A memory may go back to what an
earlier commit held, so that a silent edit can be undone; and a memory may be taken out again that
replaced others, where these hold again. Files may lie elsewhere where the format of the tree is
another one: then a migration moved them, or was taken back.
"""

from __future__ import annotations

from memtool.errors import MemtoolError
from memtool.gate.content import Content, ParentStep
from memtool.memory import changes
from memtool.memory.changes import Change, Version
from memtool.memory.schema import Problem
from memtool.store import config as config_file
from memtool.store import snapshot, toml, versions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_RESET = "or, while the commit is not shared: git reset --soft HEAD^, and commit again"
_UNDOABLE = frozenset({"silent-edit", "backdated"})


def check(content: Content) -> Iterator[Problem]:
    """Yield memories that were edited behind their confirmation, removed, moved or backdated."""
    found = [_of_step(content, step) for step in content.steps]
    parted: set[str] | None = None
    for id_ in sorted({id_ for problems, _new in found for id_ in problems}):
        mine = [problems[id_] for problems, _new in found if id_ in problems]
        # A parent that never had the memory, or in which it is as it is now, is no accuser.
        if not all(id_ in problems or id_ in new for problems, new in found):
            if any(problem.code != "removed" for problems in mine for problem in problems):
                continue
            # Unless the merge left out what came with the other parent.
            parted = _ids_where_parted(content) if parted is None else parted
            if id_ in parted:
                continue
        for problem in mine[0]:
            if problem.code not in _UNDOABLE or not _is_undone(content, id_):
                yield problem


def _of_step(content: Content, step: ParentStep) -> tuple[dict[str, list[Problem]], frozenset[str]]:
    """Return the problems since one commit, by id, and the ids that this commit did not have."""
    olds = {version.id: version for version in step.before}
    news = {version.id: version for version in step.after}
    found: dict[str, list[Problem]] = {}
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
        problem = _problem(change, old, new, f" {where}" if where else "")
        if problem is not None and change.kind == "removed" and old is not None:
            problem = _taken_back(content, old, problem)
        if problem is not None:
            found.setdefault(change.id, []).append(problem)
    return found, frozenset(news.keys() - olds.keys() - renamed)


def _is_migrated(content: Content, step: ParentStep) -> bool:
    """Tell whether the settings name another format than those of the commit before."""
    path = f"{content.directory}/{config_file.CONFIG_NAME}"
    entries = content.repository.git.ls_tree(step.commit, path) if step.commit else []
    data = next(content.repository.git.blobs([entries[0].oid], toml.MOST_BYTES)) if entries else b""
    try:
        return config_file.parse(data, path).format != content.settings.format
    except MemtoolError:
        return False


def _problem(
    change: Change, old: Version | None, new: Version | None, place: str
) -> Problem | None:
    """Return the problem that a change is; None for a change that is allowed."""
    if old is None or old.memory is None:
        return None
    id_, path = change.id, change.path
    if change.kind == "removed":
        message = f"{old.id} was removed{place}; memories stay"
        hint = f'git checkout HEAD -- {old.path}, then memtool forget {old.id} --why "…"'
        if old.memory.status == "deleted":
            hint = f"memtool purge {old.id} --apply --commit removes it, once it is due"
        return Problem(old.path, 0, "removed", message, hint, id_)
    if change.kind == "moved":
        message = f"it was {change.details['from']}; memories keep their place and name{place}"
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
    hint = f"git checkout HEAD -- {path}"
    if "timestamp" in keys and new.memory.timestamp < old.memory.timestamp:
        message = f"its timestamp was set back from {old.memory.text('timestamp')}{place}"
        return Problem(path, 1, "backdated", message, hint, id_)
    message = f"a confirmed memory was changed in place: {', '.join(keys)}{place}"
    hint += f", then memtool supersede {id_} TITLE; {_RESET}"
    return Problem(path, 1, "silent-edit", message, hint, id_)


def _taken_back(content: Content, old: Version, problem: Problem) -> Problem:
    """Return the warning that the removal of a memory is where all that it replaced holds again.

    Then a supersession was taken back, as `git revert` does it: the older claims are heads, and
    nothing follows from the removed one. A merge must not leave out what came with a parent.
    """
    kin = content.kin
    replaced = old.memory.replaces if old.memory is not None else ()
    if not replaced or len(content.steps) != 1 or kin.is_replaced(old.id):
        return problem
    if not all(kin.is_there(id_) and not kin.is_replaced(id_) for id_ in replaced):
        return problem
    message = f"{old.id} was removed; {', '.join(replaced)} holds again"
    hint = f"git log -1 -- {old.path} says where it went; git revert brings it back"
    return problem.replace(message=message, hint=hint, severity="warning")


def _ids_where_parted(content: Content) -> set[str]:
    """Return the ids that were there where the parents of a merge parted."""
    git = content.repository.git
    bases = git.line("merge-base", "--octopus", *content.parents, allowed=(0, 1)).split()
    return {
        changes.stem(entry.path)
        for base in bases
        for entry in snapshot.of_commit(content.repository, content.directory, base).entries
    }


def _is_undone(content: Content, id_: str) -> bool:
    """Tell whether a memory is again what it was in a commit before the last one."""
    new = next((v for step in content.steps for v in step.after if v.id == id_), None)
    return (
        new is not None
        and new.memory is not None
        and any(
            old.memory is not None
            and not any(map(changes.is_claim, changes.changed_keys(old.memory, new.memory)))
            for old in _earlier(content, id_)
        )
    )


def _earlier(content: Content, id_: str) -> Sequence[Version]:
    """Return the versions of an id in the parents of the last commit."""
    if not content.parents:
        return ()
    repository = content.repository
    stamps = {
        (entry.path, entry.oid)
        for commit in repository.git.line("rev-parse", f"{content.parents[0]}^@").split()
        for entry in snapshot.of_commit(repository, content.directory, commit).entries
        if entry.path.endswith(f"/{id_}.md")
    }
    return list(versions.of_blobs(repository, stamps, content.settings.categories).values())
