"""Asking the fleet: one clock over everything, and a sentence in place of an answer that is late.

Whoever asks gets an answer or a note within the user's `fleet.timeout_ms`, whatever a server or a
disk does: redaction of the question, backend, ranking and checks run in a thread of their own, and
nobody waits for it any longer than that. A fleet that is not reached costs nothing else: the answer
of the project's own memories is what it was.
"""

from __future__ import annotations

from memtool.errors import MemtoolError
from memtool.fleet import rank
from memtool.fleet.backend import (
    FleetQuery,
    FleetUnavailable,
    home_of,
    required,
    settings_of,
)
from memtool.fleet.rank import FleetHit, ResultFilter
from memtool.fleet.repositories import name_of
from memtool.index import scoring
from memtool.index.analyzer import terms
from memtool.redaction import find as detectors
from memtool.redaction.mask import Mask
from memtool.search import filters
from memtool.search.query import Filter, Group, bad_query, leaves
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

REPOSITORY, TEAM_NAME = WHOM = ("repo", "team")
"""The filters that say whom to ask; several are alternatives."""
KNOWN = frozenset(
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
"""Filters that can be said of a memory of another repository: it stands in its file."""
KNOWN_STATES = frozenset(("head", "alive", "due", "confirmed", "pinned", "deprecated"))
"""What `is:` can ask of one."""


MOST_HEARD, OF_ONE = 15, 3
"""Memories among which those for a block are chosen, and how many of them may be of one repository,
of which a block holds one: each costs the time to take secrets out of all of it."""


class FleetAnswer(Value):
    """What other repositories say, the best first; `note` is what people should hear about it.

    `total` is how many answer, with those beyond the limit; no more than `FULL.weighed` are ranked.
    `is_reached` is False where there is no answer, which `note` then explains.
    """

    hits: tuple[FleetHit, ...] = ()
    note: str = ""
    is_reached: bool = True
    total: int = 0


class RoutedQuery(Value):
    """A query to the fleet: whom it asks, and what is left of it for their memories.

    `is_named` tells that it names repositories or teams, so that nobody else is meant.
    """

    query: Query
    which: FleetQuery
    is_named: bool


def route(query: Query) -> RoutedQuery:
    """Take the parts of a query that say whom to ask out of it.

    Raises:
        MemtoolError: it has no words, or a filter that only a clone can answer.
    """
    items = query.root.items if isinstance(query.root, Group) else (query.root,)
    given = [item for item in items if isinstance(item, Filter)]
    rest = tuple(one for one in items if not (isinstance(one, Filter) and one.name in WHOM))
    for leaf in leaves(query.root):
        if isinstance(leaf, Filter) and not _is_known(leaf):
            raise bad_query(
                query.text,
                leaf.at,
                leaf.end,
                f"other repositories cannot be asked by {leaf.name}:{leaf.value}",
                f"filters for them are {', '.join(sorted(KNOWN))}",
            )
    kept = query.replace(root=Group(rest)) if isinstance(query.root, Group) else query
    if not kept.words:
        raise MemtoolError(
            "other repositories are asked by words, and the query has none",
            hint='memtool search --fleet "how do others retry payments" repo:acme/*',
            code="bad-query",
        )
    names = tuple(one if "/" in one else f"*/{one}" for one in _values(given, REPOSITORY))
    tags = [one.value for one in given if one.name == "tag"]
    types = [one for one in given if one.name == "type"]
    which = FleetQuery(
        {},
        repositories=names,
        teams=_values(given, TEAM_NAME),
        types=_values(types, "type") if len(types) == 1 else (),
        tags=tuple(tags) if len(tags) == 1 and not set("*?").intersection(tags[0]) else (),
    )
    return RoutedQuery(kept, which, bool(names or which.teams))


def _values(given: Iterable[Filter], name: str) -> tuple[str, ...]:
    """Return the values of the filters of a name, each of several with commas between them."""
    found = (value for one in given if one.name == name for value in one.value.split(","))
    return tuple(filter(None, found))


def _is_known(leaf: Filter) -> bool:
    return leaf.name in KNOWN and (
        leaf.name != "is" or KNOWN_STATES.issuperset(leaf.value.lower().split(","))
    )


def ask(
    context: Context,
    asked: Question,
    own: IndexReader,
    *,
    most: int,
    text: str,
    routed: RoutedQuery | None = None,
    of_one: int = 0,
) -> FleetAnswer:
    """Return what other repositories answer, at most so many memories, within the user's time.

    `own` is the index of the project, whose statistics rank the answers. `text` is the question as
    it was said: its kind counts. `routed` says whom to ask, and its filters hold. Of one repository
    at most `of_one` answer, 0 for all. Of the question nothing but terms leaves this process, and
    none of a secret in it. The repository at hand is not asked.

    Raises:
        MemtoolError: nobody is set to ask, or a filter cannot take its value.
    """
    whom = required(context)
    by = result_filter(context, text)
    if routed is not None:
        query = routed.query
        test = filters.matcher(query, by.facts, words_match=query.is_by_words)
        by = by.replace(test=test)
    statistics = own.statistics(asked.weights)
    within = whom.within
    if context.caller.deadline is not None:
        within = min(within, context.caller.deadline.left_s())

    def answer() -> FleetAnswer:
        sent = rank.question_of(without_secrets(asked, text), statistics)
        if not sent.weights:
            return FleetAnswer(note="such words stand everywhere, so no other repository was asked")
        backend = backend_of(context, whom)
        name = "" if context.project.is_in_global else name_of(context.repository)
        which = sent if routed is None else routed.which
        wanted = which.replace(weights=sent.weights, allow=whom.allow, without=name)
        found = backend.candidates(wanted, within)
        hits, total = rank.shown(asked, found, statistics, by, most, of_one)
        return FleetAnswer(tuple(hits), backend.note, total=total)

    try:
        return _within(answer, within)
    except FleetUnavailable as error:
        return FleetAnswer(note=f"no other repository answered: {error}", is_reached=False)
    except MemtoolError as error:
        hint = f"; {error.hint}" if error.hint else ""
        note = f"no other repository was asked: {error}{hint}"
        return FleetAnswer(note=note, is_reached=False)


def result_filter(context: Context, text: str = "") -> ResultFilter:
    """Return by what is chosen what of others is shown to this user; `text` is what was asked."""
    config = context.settings
    return ResultFilter(
        facts=rank.facts_of(context.repository, context.clock.now, config),
        config=config,
        labels=context.project.strict_settings.private_labels,
        mask=Mask(config),
        text=text,
    )


def hits_for_prompt(context: Context, prompt: str, own: IndexReader) -> Sequence[FleetHit]:
    """Return what other repositories may answer to a prompt, for the block of an agent.

    Where there is no answer a note says why, which a hook shows nobody.
    """
    if not settings_of(context).is_set:
        context.notes.append(
            "inject.fleet is on, and there is nobody to ask: memtool --global config "
            "fleet.repositories '~/src/*' sets whom"
        )
        return ()
    asked = scoring.question(prompt)
    found = ask(context, asked, own, most=MOST_HEARD, text=prompt, of_one=OF_ONE)
    if not found.is_reached:
        context.notes.append(found.note)
    return found.hits


def without_secrets(asked: Question, text: str) -> Question:
    """Return a question without the terms that stand only in secrets and personal data of its text.

    Words that were searched for one by one are also looked at as if they stood in one line.
    """
    gone: set[str] = set()
    for line in dict.fromkeys((text, text.replace("\n", " "))):
        found = detectors.find(line)
        kept = detectors.marked(line, detectors.marks(line, found))
        secret = " ".join(line[one.start : one.end] for one in found)
        gone |= set(terms(secret)) - set(terms(kept))
    if not gone:
        return asked
    weights = {term: weight for term, weight in asked.weights.items() if term not in gone}
    return asked.replace(weights=weights)


def backend_of(context: Context, whom: FleetSettings) -> Backend:
    """Return whom the settings name: a server, else the repositories of this machine."""
    if whom.url:
        from memtool.fleet import opensearch  # one of two is asked

        return opensearch.OpenSearch(opensearch.server_at(whom.url, context.caller.env))
    from memtool.fleet.git_backend import GitBackend

    return GitBackend(home_of(context.caller.env), context.clock.now)


def _within(work: Callable[[], Answer], seconds: float) -> Answer:
    """Return what some work returns, or raises, in a thread; after some seconds nobody waits.

    Raises:
        FleetUnavailable: it is not done by then.
    """
    from threading import Thread  # only who asks others needs one

    done: list[Answer] = []
    failed: list[BaseException] = []

    def run() -> None:
        try:
            done.append(work())
        except BaseException as error:  # noqa: BLE001  # it is raised again, where it is waited for
            failed.append(error)

    if seconds > 0:
        thread = Thread(target=run, daemon=True)
        thread.start()
        thread.join(seconds)
    if failed:
        raise failed[0]
    if not done:
        raise FleetUnavailable(f"there was no answer within {seconds * 1000:.0f} ms")
    return done[0]
