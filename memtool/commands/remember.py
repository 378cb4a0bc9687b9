"""`memtool remember`: the short form of `new`, in the user's own words."""

from __future__ import annotations

from memtool.authoring import draft, write
from memtool.authoring.write import Written
from memtool.commands import _filters
from memtool.commands._render import written as render
from memtool.errors import MemtoolError
from memtool.memory.memory import title_of
from memtool.store.context import Context

__all__ = ["remember", "render"]


def remember(
    context: Context,
    *text: str,
    category: str = "preference",
    tag: tuple[str, ...] = (),
    file: tuple[str, ...] = (),
    commit: bool = False,
    dry_run: bool = False,
) -> Written:
    """Write down what the user said, as a confirmed fact in their own words.

    What a living memory says already is not written again, as with memtool new.

    Example:
        memtool remember "Deploys run on Tuesdays only, never before a holiday."

    Args:
        text: what to remember, or - to read it from stdin
        category: a row of the category table
        tag: a key word; may be repeated
        file: a file or glob that it is about; may be repeated
        commit: commit just this file
        dry_run: print the file instead of writing it
    """
    write.prepare(context)
    words = _filters.body_text(" ".join(text)).strip()
    if not words:
        raise MemtoolError(
            "there is nothing to remember",
            hint='memtool remember "Deploys run on Tuesdays only."',
        )
    memory = draft.draft(
        context,
        "semantic",
        title_of(words),
        body=words,
        fields={
            "category": category,
            "confidence": "high",
            "source": (f"human:{write.author(context)}",),  # whoever writes it down for them
            "tags": tag,
            "files": file,
        },
    )
    return write.write_new(context, memory, repeats="refuse", commit=commit, dry_run=dry_run)
