"""Queries to the fleet: one time limit for everything, and a note instead of a late answer.

The caller gets an answer or a note within the user's `fleet.timeout_ms`, however slow a server or a
disk is. Redaction of the question, backend, ranking and checks run in a separate thread, which the
caller abandons at the limit. If the fleet is not reached, the answer from the project's own
memories is unchanged.
"""

from __future__ import annotations

from memtool.errors import MemtoolError
from memtool.fleet import rank
from memtool.fleet.backend import (
    FleetQuery,
    FleetUnavailable,
    find_fleet_home,
    read_settings,
    require_settings,
)
from memtool.fleet.rank import FleetHit, ResultFilter
from memtool.fleet.repositories import find_name
from memtool.index import scoring
from memtool.index.analyzer import terms
from memtool.redaction import find as detectors
from memtool.redaction.mask import Mask
from memtool.search import filters
from memtool.search.query import Filter, Group, build_query_error, find_leaves
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import TypeVar

    from memtool.fleet.backend import Backend, FleetSettings
    from memtool.index.reader import IndexReader
    from memtool.index.scoring import Question
    from memtool.search.query import Query
    from memtool.store.context import Context

    Answer = TypeVar("Answer")

REPOSITORY, TEAM_NAME = ROUTING_FILTERS = ("repo", "team")
"""The filters that choose repositories; several values are alternatives."""
SUPPORTED_FILTERS = frozenset(
    (
        REPOSITORY,
        TEAM_NAME,
        "type",
        "category",
        "tag",
        "file",
        "status",
        "confidence",
        "importance",
        "since",
        "until",
        "source",
        "error",
        "task",
        "iteration",
        "environment",
        "id",
        "is",
    )
)
"""Filters that can be evaluated from the file of a memory alone."""
SUPPORTED_STATES = frozenset(("head", "alive", "due", "confirmed", "pinned", "deprecated"))
"""Values of `is:` that can be evaluated from the file alone."""

# Candidates for a block, in total and per repository (a block shows one per repository). More would
# cost time, as secrets must be masked in each whole memory.
MAX_BLOCK_CANDIDATES, MAX_PER_REPOSITORY = 15, 3


class FleetAnswer(Value):
    """Hits from other repositories, best first, and a note for the user.

    `total` counts all hits, also those beyond the limit; at most `FULL.weighed` are ranked.
    `is_reached` is False if there was no answer; `note` then explains why.
    """

    hits: tuple[FleetHit, ...] = ()
    note: str = ""
    is_reached: bool = True
    total: int = 0


class RoutedQuery(Value):
    """A query to the fleet: its target, and the query without the routing filters.

    `is_named` is True if it names repositories or teams; then only those are searched.
    """

    query: Query
    target: FleetQuery
    is_named: bool


def route(query: Query) -> RoutedQuery:
    """Split the filters that choose repositories from a query.

    Raises:
        MemtoolError: the query has no words, or a filter that needs a clone.
    """
    items = query.root.items if isinstance(query.root, Group) else (query.root,)
    query_filters = [item for item in items if isinstance(item, Filter)]
    content_items = tuple(
        item for item in items if not (isinstance(item, Filter) and item.name in ROUTING_FILTERS)
    )
    for leaf in find_leaves(query.root):
        if isinstance(leaf, Filter) and not _is_supported(leaf):
            raise build_query_error(
                query.text,
                leaf.at,
                leaf.end,
                f"cannot search other repositories by {leaf.name}:{leaf.value}",
                f"the filters for them are {', '.join(sorted(SUPPORTED_FILTERS))}",
            )
    content_query = (
        query.replace(root=Group(content_items)) if isinstance(query.root, Group) else query
    )
    if not content_query.words:
        raise MemtoolError(
            "cannot search other repositories: the query has no words",
            hint='memtool search --fleet "how do others retry payments" repo:acme/*',
            code="bad-query",
        )
    names = tuple(
        value if "/" in value else f"*/{value}" for value in _find_values(query_filters, REPOSITORY)
    )
    tags = [query_filter.value for query_filter in query_filters if query_filter.name == "tag"]
    types = [query_filter for query_filter in query_filters if query_filter.name == "type"]
    target = FleetQuery(
        {},
        repositories=names,
        teams=_find_values(query_filters, TEAM_NAME),
        types=_find_values(types, "type") if len(types) == 1 else (),
        tags=tuple(tags) if len(tags) == 1 and not set("*?").intersection(tags[0]) else (),
    )
    return RoutedQuery(content_query, target, bool(names or target.teams))


def _find_values(query_filters: Iterable[Filter], name: str) -> tuple[str, ...]:
    """Return the values of all filters of a name, split at commas."""
    values = (
        value
        for query_filter in query_filters
        if query_filter.name == name
        for value in query_filter.value.split(",")
    )
    return tuple(filter(None, values))


def _is_supported(leaf: Filter) -> bool:
    return leaf.name in SUPPORTED_FILTERS and (
        leaf.name != "is" or SUPPORTED_STATES.issuperset(leaf.value.lower().split(","))
    )


def ask_fleet(
    context: Context,
    question: Question,
    own: IndexReader,
    *,
    limit: int,
    text: str,
    routed: RoutedQuery | None = None,
    max_per_repository: int = 0,
) -> FleetAnswer:
    """Search other repositories, for at most `limit` memories, within the user's time limit.

    `own` is the index of the project; its statistics rank the hits. `text` is the original
    question, whose kind affects the ranking. `routed` gives the target and filters. Each repository
    gives at most `max_per_repository` hits, 0 for all. Only terms of the question leave this
    process, and none from a secret in it. The current repository is not searched.

    Raises:
        MemtoolError: no fleet is configured, or a filter has an invalid value.
    """
    fleet = require_settings(context)
    shown_by = build_result_filter(context, text)
    if routed is not None:
        query = routed.query
        test = filters.build_matcher(query, shown_by.facts, words_match=query.is_by_words)
        shown_by = shown_by.replace(test=test)
    statistics = own.statistics(question.weights)
    timeout_s = fleet.timeout_s
    if context.caller.deadline is not None:
        timeout_s = min(timeout_s, context.caller.deadline.remaining_s())

    def find_answer() -> FleetAnswer:
        fleet_query = rank.build_query(without_secrets(question, text), statistics)
        if not fleet_query.weights:
            return FleetAnswer(note="such words stand everywhere, so no other repository was asked")
        backend = choose_backend(context, fleet)
        name = "" if context.project.is_in_global else find_name(context.repository)
        target = fleet_query if routed is None else routed.target
        request = target.replace(weights=fleet_query.weights, allow=fleet.allow, excluded=name)
        candidates = backend.find_candidates(request, timeout_s)
        hits, total = rank.select_shown(
            question, candidates, statistics, shown_by, limit, max_per_repository
        )
        return FleetAnswer(tuple(hits), backend.note, total=total)

    try:
        return _run_with_timeout(find_answer, timeout_s)
    except FleetUnavailable as error:
        return FleetAnswer(note=f"no other repository answered: {error}", is_reached=False)
    except MemtoolError as error:
        note = f"no other repository was asked: {error.as_line}"
        return FleetAnswer(note=note, is_reached=False)


def build_result_filter(context: Context, text: str = "") -> ResultFilter:
    """Build the filter of foreign memories for this user; `text` is the question."""
    config = context.settings
    return ResultFilter(
        facts=rank.build_facts(context.repository, context.clock.now, config),
        config=config,
        labels=context.project.strict_settings.private_labels,
        mask=Mask(config),
        text=text,
    )


def find_hits_for_prompt(context: Context, prompt: str, own: IndexReader) -> Sequence[FleetHit]:
    """Search other repositories for a prompt, for the block of an agent.

    Without an answer, a note gives the reason; a hook does not show it.
    """
    if not read_settings(context).is_set:
        context.notes.append(
            "inject.fleet is on, but no other repositories are set: memtool --global config "
            "fleet.repositories '~/src/*'"
        )
        return ()
    question = scoring.parse_question(prompt)
    answer = ask_fleet(
        context,
        question,
        own,
        limit=MAX_BLOCK_CANDIDATES,
        text=prompt,
        max_per_repository=MAX_PER_REPOSITORY,
    )
    if not answer.is_reached:
        context.notes.append(answer.note)
    return answer.hits


def without_secrets(question: Question, text: str) -> Question:
    """Remove the terms that appear only in secrets and personal data of the question's text.

    Separate words are also checked joined to one line.
    """
    secret_terms: set[str] = set()
    for line in dict.fromkeys((text, text.replace("\n", " "))):
        findings = detectors.find(line)
        masked = detectors.redact(line, findings)
        secret = " ".join(line[finding.start : finding.end] for finding in findings)
        secret_terms |= set(terms(secret)) - set(terms(masked))
    if not secret_terms:
        return question
    weights = {
        term: weight for term, weight in question.weights.items() if term not in secret_terms
    }
    return question.replace(weights=weights)


def choose_backend(context: Context, fleet: FleetSettings) -> Backend:
    """Return the configured backend: a server, or the repositories on this machine."""
    if fleet.url:
        from memtool.fleet import opensearch  # only one backend is needed

        return opensearch.OpenSearch(opensearch.parse_server(fleet.url, context.caller.env))
    from memtool.fleet.git_backend import GitBackend

    return GitBackend(find_fleet_home(context.caller.env), context.clock.now)


def _run_with_timeout(work: Callable[[], Answer], seconds: float) -> Answer:
    """Run a function in a thread and return its result; stop waiting after `seconds`.

    Raises:
        FleetUnavailable: it did not finish in time. Its own exceptions are passed on.
    """
    from threading import Thread  # only queries to the fleet need it

    results: list[Answer] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            results.append(work())
        except BaseException as error:  # noqa: BLE001  # raised again in the waiting thread
            errors.append(error)

    if seconds > 0:
        thread = Thread(target=run, daemon=True)
        thread.start()
        thread.join(seconds)
    if errors:
        raise errors[0]
    if not results:
        raise FleetUnavailable(f"there was no answer within {seconds * 1000:.0f} ms")
    return results[0]
