"""`memtool undo`: revert the last step of a memory, and explain the state in git."""

from __future__ import annotations

from memtool.authoring import undo as step
from memtool.authoring.undo import Undone
from memtool.commands import _features
from memtool.commands._layout import Layout, shorten_commit
from memtool.commands._render import describe_changes
from memtool.store.context import Context


def undo(
    context: Context, id: str, *, reason: str = "", commit: bool = False, dry_run: bool = False
) -> Undone:
    """Take back the last change of a memory.

    Repeat it to go further back. What happens if the last change was:
        a new status        it gets its former status
        other tags          it gets its former tags
        superseded          the newer memory is removed if only this branch has it; else a new
                            memory repeats the old one and replaces the newer one
        settled             what it rests on counts as changed again
        resolved conflict   the conflict is open again for all memories in it

    Example:
        memtool undo dec-2g54 --commit

    Args:
        id: the memory, by id or words
        reason: the reason, for the commit or the new memory
        commit: commit this file only
        dry_run: show what would be done, write nothing
    """
    done = step.undo(context, id, reason, commit=commit, dry_run=dry_run)
    gone = [done.successor] if done.how == "superseded" else []
    if done.changes.get("status", ("", ""))[1] in ("deleted", "archived"):
        gone = [done.id]
    if gone:
        _features.follow_end(context, gone, commit=commit, dry_run=dry_run)
    if reason and not done.commit and not dry_run and done.how != "superseded":
        context.notes.append("the reason is only stored in a commit: add --commit")
    if commit and not done.undoes and done.how != "superseded":
        context.notes.append("the change was never committed, so there is nothing to commit")
    return done


def render(undone: Undone, layout: Layout) -> str:
    """Return the path, and report the step that was taken back and its state in git."""
    by = f" by {layout.short(undone.successor)}" if undone.successor else ""
    where = f"in {shorten_commit(undone.undoes)}" if undone.undoes else "not committed"
    took = "Would take back" if undone.dry_run else "Took back"
    layout.report(f'{took} "{undone.step}{by}" ({where}): {layout.name(undone.id)}')
    layout.report(*describe_changes(undone.changes))
    if undone.also:
        also = ", ".join(map(layout.short, undone.also))
        layout.report(f"  the same for {also}")
    layout.report(*_describe_in_git(undone, layout))
    return undone.path


def _describe_in_git(undone: Undone, layout: Layout) -> list[str]:
    """Return lines on the state in git, and how to revert the undo."""
    path, would = " ".join(undone.paths) or undone.path, undone.dry_run
    if undone.how == "superseded":
        stays = f"{layout.short(undone.successor)} stays, since {undone.reason}"
        return [f"  {stays}; {'a new memory would replace' if would else 'this replaces'} it"]
    if would:
        return []
    if undone.how == "discarded":
        blob = f"git cat-file blob {undone.blob} > {path}"
        return [f"  it was in no commit; until git gc this brings it back: {blob}"]
    what = "removes it" if undone.how == "removed" else "changes it back"
    if undone.commit:
        short_id = shorten_commit(undone.commit)
        return [f"  commit {short_id} {what}; git revert {short_id} takes that back"]
    if not undone.undoes:
        return ["  in these keys the file is as in HEAD again"]
    return [f"  not committed: git commit -- {path}, or git checkout -- {path}"]
