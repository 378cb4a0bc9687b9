"""The private sessions of this clone as a source of a search, asked last and on demand."""

from __future__ import annotations

from memtool.search.scope import NONE, SESSION
from memtool.search.sources import Asked, SourceAnswer
from memtool.sessions import evidence

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from memtool.search.sources import SearchRequest

CONSENT = "search.sessions"
"""The setting of the user alone by which sessions are asked where no memory answers."""
DEEP = "deep"
"""The option by which they are asked in any case."""


def read(request: SearchRequest) -> Asked:
    """Return how sessions answer a request."""
    return Asked(lambda before: _answer(request, before))


def _answer(request: SearchRequest, before: Sequence[SourceAnswer]) -> SourceAnswer | None:
    is_deep = DEEP in request.options
    if not is_deep and all(one.suffices() for one in before):
        return None
    context = request.context
    found = evidence.search(context, request.query.words, request.most)
    if not is_deep:
        context.notes.append(f"no memory answers: private sessions were asked ({CONSENT})")
    return SourceAnswer(depth=SESSION if found else NONE, passages=found)
