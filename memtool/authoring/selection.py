"""The memories that a verb is about: several names, or one query."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from memtool.authoring import write
from memtool.authoring.write import PartRefusedError
from memtool.errors import MemtoolError
from memtool.index import index
from memtool.memory import lifecycle
from memtool.memory.memory import is_generated
from memtool.search import filters
from memtool.search.query import Filter, find_leaves, parse
from memtool.search.saved import expand_words, find_saved_name
from memtool.search.scope import build_scope, note_withheld, restricted_for
from memtool.store.context import Context
from memtool.store.tree import Tree
from memtool.value import Value, format_count

LIFTED_STATES = {
    "confirm": frozenset({lifecycle.EXPIRED}),
    "restore": frozenset({"archived", "deleted"}),
}
"""States that list leaves out by default and a verb does not, since it ends them."""
MAX_EXCEPTIONS = 3
"""Memories that a hint excludes from a query by id."""


class Selection(Value):
    """The selected memories: their ids, and the tree that has them."""

    tree: Tree
    ids: tuple[str, ...]
    words: tuple[str, ...] = ()
    """The words of the query; empty if each argument named one memory."""


def select_memories(
    context: Context, words: tuple[str, ...], verb: str, *, dry_run: bool
) -> Selection:
    """Return the memories that the words after a verb mean, each once.

    If one of them is a filter, all are one query, with the results of memtool list, and memories in
    the states that the verb ends. Else each one names a memory, by id or words.

    Raises:
        MemtoolError: there is no argument, a name means no memory or several, the query is not
            valid, or nothing matches it.
    """
    if not words:
        reason = ' --reason "REASON"' if verb == "forget" else ""
        raise MemtoolError("ID is missing", hint=f"memtool {verb} ID{reason}")
    if any(map(_has_filter, words)):
        return _find_matches(context, words, verb)
    write.prepare(context, begins=False, dry_run=dry_run)
    tree = write.open_current_tree(context, dry_run=dry_run)
    return Selection(tree, tuple(dict.fromkeys(tree.find(word).id for word in words)))


def _has_filter(word: str) -> bool:
    """Return whether an argument is a filter or a saved query.

    Raises:
        MemtoolError: it is neither, but looks like a filter.
    """
    if find_saved_name(word) is not None:
        return True
    return ":" in word and any(isinstance(leaf, Filter) for leaf in find_leaves(parse(word).root))


def _find_matches(context: Context, words: tuple[str, ...], verb: str) -> Selection:
    write.prepare(context, begins=False, dry_run=True)
    query = parse(expand_words(context, words))
    tree = index.open(context, exact=True)
    scope = restricted_for(context, build_scope(context, tree, context.clock.now))
    facts, lifted = scope.facts(), LIFTED_STATES.get(verb, frozenset())
    is_shown = filters.build_matcher(query, facts)
    is_hidden = filters.build_matcher(query, facts, is_hidden=True)
    ids: dict[str, None] = {}
    states: Counter[str] = Counter()
    for record in scope.tree.records:
        if is_generated(record.memory):
            continue  # a digest only quotes the memory that the user means
        if is_shown(record):
            ids[record.id] = None
        elif is_hidden(record):
            hiding = facts.find_hiding_states(record)
            if hiding <= lifted:
                ids[record.id] = None
            states.update(hiding - lifted & filters.IS_VALUES.keys())
    note_withheld(context, scope, query)
    if not ids:
        raise _build_empty_error(words, verb, states)
    return Selection(tree, tuple(ids), words)


def _build_empty_error(
    words: tuple[str, ...], verb: str, states: Mapping[str, int]
) -> MemtoolError:
    """Return the error of a query without a match; `states` count those that are left out."""
    command, text = shlex.join(words), " ".join(words)
    message = f'cannot {verb}: no memory matches "{text}"'
    hint = f"memtool list {command}"
    if states:
        state = max(sorted(states), key=states.__getitem__)
        message += f", except for {format_count(states[state], f'{state} one')}"
        hint = f"memtool {verb} {command} is:{state}"
    return MemtoolError(message, hint=hint, code="unknown-id")


@contextmanager
def naming_exceptions(selection: Selection, verb: str) -> Iterator[None]:
    """Add the query without the memories that cannot be changed to the hint of an error."""
    try:
        yield
    except PartRefusedError as error:
        if selection.words and len(error.ids) <= MAX_EXCEPTIONS:
            words = (*selection.words, *(f"-id:{id_}" for id_ in error.ids))
            error.hint = f"{error.hint}\nall others: memtool {verb} {shlex.join(words)}"
        raise
