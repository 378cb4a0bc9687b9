"""Recording: every answer and change goes into the usage log.

Nothing here may disturb an answer: where notes cannot be kept, none are, and no error is shown.
"""

from __future__ import annotations

from memtool.errors import MemtoolError
from memtool.store import cache, files, usage_log
from memtool.store.usage_log import Note, ShownItem
from memtool.value import digest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from memtool.store.context import Context

FAILED = "hook-failed"
"""The verb under which a hook is noted that could not answer."""
HASH_BYTES = 8
HOT = ("check", "hook", "inject", "search")
"""Verbs that an agent or a commit waits for."""
FULL_BYTES = {True: 256 * 1024, False: 16 * 1024}
"""Size of the file of notes from which a hot verb and any other take it over: the notes of some
500 and 30 injections. It takes as long as several interpreter starts, so that the others do it."""


def note(context: Context, verb: str, answer: object, elapsed_ms: float) -> None:
    """Note an answer of a verb: how long it took, and the memories that it showed.

    A line is appended, which takes a fraction of a millisecond; when the file of notes is full for
    this verb, it is taken over into the ledger. A dry run leaves nothing behind, not even a note.
    """
    if getattr(answer, "dry_run", False):
        return
    if getattr(answer, "versions", ()):
        from memtool.inject import session_seen

        session_seen.keep(context, answer)
    try:
        if not usage_log.is_kept(context):
            return
        directory = context.repository.cache_dir
        size = usage_log.append_note(directory, _note(context.clock.now, verb, answer, elapsed_ms))
        if size >= FULL_BYTES[verb in HOT]:
            from memtool.store import ledger  # imports SQLite

            ledger.fold(directory, is_patient=False)
    except (OSError, MemtoolError):
        return


def note_failure(context: Context) -> None:
    """Note that a hook failed, for the statistics and the audit."""
    try:
        if usage_log.is_kept(context):
            usage_log.append_note(
                context.repository.cache_dir, Note(context.clock.now, FAILED, 0.0)
            )
            usage_log.tell(context, FAILED, ())
    except (OSError, MemtoolError):
        return


def _note(now: int, verb: str, answer: Any, elapsed_ms: float) -> Note:
    items = _SHOWN[verb](answer) if verb in _SHOWN else ()
    events = cache.take_events()
    one = Note(
        now,
        verb,
        elapsed_ms,
        items=items,
        depth=getattr(answer, "depth", ""),
        index=next((state for state in _STATES if state in events), ""),
        is_damaged=cache.DAMAGED in events,
        waited_ms=files.take_waited_s() * 1000,
    )
    if not hasattr(answer, "verdicts"):
        return one
    verb = getattr(answer, "noted_as", verb)
    return one.replace(verb=verb, prompt=hashed(answer.prompt), session=answer.session)


_STATES = (cache.BUILT, cache.READ, cache.HIT)
"""What may become of an index, the worst first."""


def hashed(prompt: str) -> str:
    """Return the hash by which the ledger knows a prompt: 16 digits, none for an empty one."""
    text = prompt.strip().encode(errors="surrogatepass")
    return digest(text, HASH_BYTES) if text else ""


def _injected(answer: Any) -> tuple[ShownItem, ...]:
    if not hasattr(answer, "verdicts"):  # it wrote the block of a file
        return ()
    verdicts = {(one.id, one.repository): one for one in answer.verdicts if one.is_taken}
    return tuple(
        ShownItem(
            f"{item.repository}:{item.id}" if item.repository else item.id,
            item.tier,
            item.score,
            _reason(verdicts.get((item.id, item.repository))),
        )
        for item in answer.items
    )


def _reason(verdict: Any) -> str:
    """Return why a memory was taken: the factors that made a difference, then the verdict."""
    if verdict is None:
        return ""
    factors = [f"{name} {value:.3g}" for name, value in verdict.factors.items() if value != 1]
    return "; ".join(filter(None, [" x ".join(factors), verdict.reason]))


_SHOWN: dict[str, Callable[[Any], tuple[ShownItem, ...]]] = {
    "hook": _injected,
    "inject": _injected,
    "search": lambda answer: tuple(
        ShownItem(one.id, "", one.score) for one in answer.results if not one.repository
    ),
    "show": lambda answer: (ShownItem(answer.id),),
    **dict.fromkeys(
        ("new", "remember"),
        lambda answer: (ShownItem(answer.id),) if answer.duplicate_of else (),
    ),
}
"""The memories that an answer showed, by verb; the other verbs only took their time.

A new memory that repeats an old one counts as a use of the old one.
"""
