"""`memtool undo`: take back what happened to a memory last, and say what that is in git."""

from __future__ import annotations

from memtool.authoring import undo as step
from memtool.authoring.undo import Undone
from memtool.commands import _features
from memtool.store.context import Context
from memtool.store.provenance import SHORT


def undo(
    context: Context, id: str, *, why: str = "", commit: bool = False, dry_run: bool = False
) -> Undone:
    """Take back the newest step of a memory: it was superseded, confirmed, archived or the like.

    A status is set back to what it was. A memory that replaced this one is removed, where no other
    branch or tag has it and nothing names it; git can bring it back, and the answer says how.
    Otherwise a new memory says again what this one said, and replaces it. What an undo took back
    counts no more: undo again to go further back.

    A conflict that memtool resolve settled is open again: at all sides, whichever is named.

    Example:
        memtool undo dec-2026-02-22-keep-sessions-in-redis --commit

    Args:
        id: the memory that it happened to, by its id or words of it
        why: the reason, kept in the message of the commit, or in a new memory
        commit: commit just this file
        dry_run: say what would be done, write nothing
    """
    done = step.undo(context, id, why, commit=commit, dry_run=dry_run)
    gone = [done.successor] if done.how == "superseded" else []
    if done.changes.get("status", ("", ""))[1] in ("deleted", "archived"):
        gone = [done.id]
    if gone:
        _features.follow_end(context, gone, commit=commit, dry_run=dry_run)
    if why and not done.commit and not dry_run and done.how != "superseded":
        context.notes.append("the reason is kept in a commit only: add --commit")
    if commit and not done.undoes and done.how != "superseded":
        context.notes.append("what was taken back was in no commit, so there is none to make")
    return done


def render(undone: Undone) -> str:
    """Return what was taken back, how it is in git, and the file."""
    by = f" by {undone.successor}" if undone.successor else ""
    where = f"commit {undone.undoes[:SHORT]}" if undone.undoes else "not committed"
    rows = [f"{'would take' if undone.dry_run else 'took'} back: {undone.step}{by} ({where})"]
    rows += [f"{key}: {old or '-'} -> {new or '-'}" for key, (old, new) in undone.changes.items()]
    if undone.also:
        rows.append(f"so it {'would be' if undone.dry_run else 'is'} for {', '.join(undone.also)}")
    return "\n".join([*rows, *_in_git(undone), undone.path])


def _in_git(undone: Undone) -> list[str]:
    """Return what was done as git sees it, and how to have it otherwise."""
    path, would = " ".join(undone.paths) or undone.path, undone.dry_run
    if undone.how == "superseded":
        stays = f"{undone.successor} stays, since {undone.reason}"
        return [f"git: {stays}; {'this would replace' if would else 'this replaces'} it"]
    if would:
        return []
    if undone.how == "discarded":
        return [f"git: it was in no commit; until git gc: git cat-file blob {undone.blob} > {path}"]
    what = "removes it" if undone.how == "removed" else "changes it back"
    if undone.commit:
        made = undone.commit[:SHORT]
        return [f"git: commit {made} {what}; git revert {made} takes that back"]
    if not undone.undoes:
        return ["git: the file is as HEAD has it again, in these keys"]
    return [f"git: not committed; git commit -- {path}, or git checkout -- {path}"]
