"""Records every answer and change in the usage log.

Recording never disturbs an answer: if the log cannot be written, the error is ignored.
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
"""The verb under which a failed hook is recorded."""
HASH_BYTES = 8
HOT_VERBS = ("check", "hook", "inject", "search")
"""Verbs for which an agent or a commit waits."""
MAX_NOTES_BYTES = {True: 256 * 1024, False: 16 * 1024}
"""Bytes of notes above which a verb moves them into the ledger, by whether the verb is hot."""
# About 500 and 30 injections. The move takes as long as several interpreter starts, so it is
# mostly left to verbs that are not hot.


def record_answer(context: Context, verb: str, answer: object, elapsed_ms: float) -> None:
    """Record an answer: how long it took, and the memories that it showed.

    Appending a line takes a fraction of a millisecond. If the file of notes is too large for this
    verb, it is moved into the ledger. A dry run records nothing.
    """
    if getattr(answer, "dry_run", False):
        return
    if getattr(answer, "versions", ()):
        from memtool.inject import session_seen

        session_seen.keep(context, answer)
    try:
        if not usage_log.is_enabled(context):
            return
        directory = context.repository.cache_dir
        size = usage_log.append_note(directory, _build_note(context, verb, answer, elapsed_ms))
        if size >= MAX_NOTES_BYTES[verb in HOT_VERBS]:
            from memtool.store import ledger  # imports SQLite

            ledger.fold(directory, is_patient=False)
    except (OSError, MemtoolError):
        return


def record_failure(context: Context) -> None:
    """Record that a hook failed, for the statistics and the audit."""
    try:
        if usage_log.is_enabled(context):
            usage_log.append_note(
                context.repository.cache_dir, Note(context.clock.now, FAILED, 0.0)
            )
            usage_log.log_done(context, FAILED, ())
    except (OSError, MemtoolError):
        return


def _build_note(context: Context, verb: str, answer: Any, elapsed_ms: float) -> Note:
    items = _ITEMS_BY_VERB[verb](answer) if verb in _ITEMS_BY_VERB else ()
    events = cache.take_events()
    entry = Note(
        context.clock.now,
        verb,
        elapsed_ms,
        items=items,
        depth=getattr(answer, "depth", ""),
        index=next((state for state in _INDEX_STATES if state in events), ""),
        is_damaged=cache.DAMAGED in events,
        waited_ms=files.take_waited_s() * 1000,
    )
    if verb == "search" and not (answer.total or answer.sessions):
        words = _redact_words(context, answer.query) if usage_log.has_words(context) else ""
        return entry.replace(prompt=hash_prompt(answer.query), words=words)
    if not hasattr(answer, "verdicts"):
        return entry
    verb = getattr(answer, "noted_as", verb)
    return entry.replace(verb=verb, prompt=hash_prompt(answer.prompt), session=answer.session)


def _redact_words(context: Context, query: str) -> str:
    """Return a query on one line without secrets and personal data; "" if it is too long."""
    from memtool.redaction.find import build_allowlist, clean_text  # rarely needed

    try:
        return " ".join(clean_text(query, build_allowlist(context.settings)).split())
    except MemtoolError:
        return ""


_INDEX_STATES = (cache.BUILT, cache.READ, cache.HIT)
"""Events of the index, the most expensive first."""


def hash_prompt(prompt: str) -> str:
    """Return the hash of a prompt in the ledger: 16 hexadecimal digits, "" for an empty prompt."""
    text = prompt.strip().encode(errors="surrogatepass")
    return digest(text, HASH_BYTES) if text else ""


def _list_shown_items(answer: Any) -> tuple[ShownItem, ...]:
    if not hasattr(answer, "verdicts"):  # `inject --into` has none
        return ()
    verdicts = {
        (verdict.id, verdict.repository): verdict for verdict in answer.verdicts if verdict.is_taken
    }
    return tuple(
        ShownItem(
            f"{item.repository}:{item.id}" if item.repository else item.id,
            item.tier,
            item.score,
            _format_reason(verdicts.get((item.id, item.repository))),
        )
        for item in answer.items
    )


def _format_reason(verdict: Any) -> str:
    """Return why a memory was taken: the factors other than 1, then the reason of the verdict."""
    if verdict is None:
        return ""
    factors = [f"{name} {value:.3g}" for name, value in verdict.factors.items() if value != 1]
    return "; ".join(filter(None, [" x ".join(factors), verdict.reason]))


_ITEMS_BY_VERB: dict[str, Callable[[Any], tuple[ShownItem, ...]]] = {
    "hook": _list_shown_items,
    "inject": _list_shown_items,
    "search": lambda answer: tuple(
        ShownItem(result.id, "", result.score) for result in answer.results if not result.repository
    ),
    "show": lambda answer: (ShownItem(answer.id),),
    **dict.fromkeys(
        ("new", "remember"),
        lambda answer: (ShownItem(answer.id),) if answer.duplicate_of else (),
    ),
}
"""The memories that an answer showed, by verb. Of other verbs only the time is recorded.

A new memory that repeats an old one counts as a use of the old one.
"""
