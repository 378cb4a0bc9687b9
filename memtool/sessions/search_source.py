"""The private sessions of this clone as a source of a search, used last and on demand."""

from __future__ import annotations

from memtool.search.scope import NONE, SESSION
from memtool.search.sources import RoutedSource, SourceAnswer
from memtool.sessions import evidence

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from memtool.search.sources import SearchRequest

CONSENT = "search.sessions"
"""The user's setting that searches sessions if no memory answers."""
DEEP = "deep"
"""The option that always searches sessions."""


def read(request: SearchRequest) -> RoutedSource:
    """Return the source that searches sessions for a request."""
    return RoutedSource(lambda before: _answer(request, before))


def _answer(request: SearchRequest, before: Sequence[SourceAnswer]) -> SourceAnswer | None:
    is_deep = DEEP in request.options
    if not is_deep and all(answer.suffices() for answer in before):
        return None
    context = request.context
    matches = evidence.search(context, request.query.words, request.max_results)
    if not is_deep:
        context.notes.append(f"no memory matches: private sessions were searched ({CONSENT})")
    return SourceAnswer(depth=SESSION if matches else NONE, passages=matches)
