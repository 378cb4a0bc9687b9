"""The check for silent edits: a committed claim never changes in place.

Every version is compared with the commit before: HEAD for a commit that is to come, also where it
amends one, since git does not tell a hook; all parents in a merge. A memory may go back to what an
earlier commit held, so that a silent edit can be undone.
"""

from __future__ import annotations

from memtool.gate.content import Content, ParentStep
from memtool.memory import changes
from memtool.memory.changes import Change, Version
from memtool.memory.schema import Problem

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_RESET = "or, while the commit is not shared: git reset --soft HEAD^, and commit again"


def check(content: Content) -> Iterator[Problem]:
    """Yield memories that were edited behind their confirmation, removed, moved or backdated."""
    found = [_of_step(step, content.purges) for step in content.steps]
    if not found:
        return
    for id_ in sorted({id_ for problems, _new in found for id_ in problems}):
        mine = [problems[id_] for problems, _new in found if id_ in problems]
        # A parent that never had the memory, or in which it is as it is now, is no accuser.
        accused = all(id_ in problems or id_ in new for problems, new in found)
        if not accused and not (_is_loss(mine) and not content.was_parted(id_)):
            continue
        for problem in mine[0]:
            if problem.code not in _UNDOABLE or not _is_undone(content, id_):
                yield problem


_UNDOABLE = frozenset({"silent-edit", "backdated"})


def _is_loss(mine: list[list[Problem]]) -> bool:
    """Tell whether a merge left out a memory that a parent has."""
    return all(problem.code == "removed" for problems in mine for problem in problems)


def _of_step(
    step: ParentStep, purges: frozenset[str]
) -> tuple[dict[str, list[Problem]], frozenset[str]]:
    """Return the problems since one commit, by id, and the ids that this commit did not have."""
    olds = {version.id: version for version in step.before}
    news = {version.id: version for version in step.after}
    found: dict[str, list[Problem]] = {}
    renamed = set()
    for change in changes.compare(step.before, step.after):
        from_id = str(change.details.get("from_id", ""))
        renamed.add(change.id if from_id else "")
        old, new = olds.get(from_id or change.id), news.get(change.id)
        if change.kind == "removed" and change.id in purges:
            continue
        problem = _problem(change, old, new, step.where.get(change.id, ""))
        if problem is not None:
            found.setdefault(change.id, []).append(problem)
    return found, frozenset(news.keys() - olds.keys() - renamed)


def _problem(
    change: Change, old: Version | None, new: Version | None, where: str
) -> Problem | None:
    """Return the problem that a change is; None for a change that is allowed."""
    if old is None or old.memory is None:
        return None
    place = f" {where}" if where else ""
    if change.kind == "removed":
        hint = f'git checkout HEAD -- {old.path}, then memtool forget {old.id} --why "…"'
        if old.memory.status == "deleted":
            hint = f"memtool purge {old.id} --apply --commit removes it, once it is due"
        return _make(
            change, old.path, 0, "removed", f"{old.id} was removed{place}; memories stay", hint
        )
    if change.kind == "moved":
        lay = str(change.details["from"])
        return _make(
            change,
            change.path,
            0,
            "moved",
            f"it was {lay}; memories keep their place and name{place}",
            f"git mv {change.path} {lay}",
        )
    if change.kind != "edited" or new is None or new.memory is None:
        return None
    if not change.details["silent"]:
        if old.memory.status != "candidate" and new.memory.status == "candidate":
            return _make(
                change,
                change.path,
                1,
                "unconfirmed",
                f"a confirmed memory became a candidate again{place}",
                f"memtool deprecate {change.id}, or memtool supersede {change.id} TITLE",
            ).replace(severity="warning")
        return None
    keys = [key for key in _keys(change) if changes.is_claim(key)]
    if "timestamp" in keys and new.memory.timestamp < old.memory.timestamp:
        return _make(
            change,
            change.path,
            1,
            "backdated",
            f"its timestamp was set back from {old.memory.text('timestamp')}{place}",
            f"git checkout HEAD -- {change.path}",
        )
    return _make(
        change,
        change.path,
        1,
        "silent-edit",
        f"a confirmed memory was changed in place: {', '.join(keys)}{place}",
        f"git checkout HEAD -- {change.path}, then memtool supersede {change.id} TITLE; {_RESET}",
    )


def _make(change: Change, path: str, line: int, code: str, message: str, hint: str) -> Problem:
    return Problem(path, line, code, message, hint, id=change.id)


def _keys(change: Change) -> tuple[str, ...]:
    keys = change.details["keys"]
    return keys if isinstance(keys, tuple) else ()


def _is_undone(content: Content, id_: str) -> bool:
    """Tell whether a memory is again what it was in a commit before the last one."""
    news = [version for step in content.steps for version in step.after if version.id == id_]
    for old in content.earlier(id_):
        for new in news[:1]:
            if old.memory is None or new.memory is None:
                continue
            keys = changes.changed_keys(old.memory, new.memory)
            if not any(map(changes.is_claim, keys)):
                return True
    return False
