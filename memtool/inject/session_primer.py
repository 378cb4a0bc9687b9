"""The primer: the text for an agent at the start of a session.

The parts come in the order of their value, and each takes from the budget that is left. A memory
that does not fit is left out whole. Ages count back from the start of this session, not from now:
hosts replay and cache the text, and it must still be true tomorrow.

The parts are: pinned memories, the last session, the work in progress, decisions and warnings about
files changed lately, memories since the last session, and titles of decisions (`title_list`). What
waits for a user is not among them: an agent must not decide it.
"""

from __future__ import annotations

from itertools import islice

from memtool.inject import further_titles, session_seen, title_list
from memtool.inject.answer import (
    build_global_pins,
    build_injected,
    build_limits,
    build_preamble,
    build_project_pins,
    cap_less_trusted,
    list_override_notices,
    place_disagreements,
    reserve_disagreements,
    reserve_limit_notices,
)
from memtool.inject.block import PREAMBLE, measure_frame
from memtool.inject.budget import BYTES_PER_TOKEN
from memtool.inject.candidates import GOVERNING, PINNED, PROJECT, Candidate
from memtool.inject.gather import collect_all, find_origins
from memtool.inject.tiers import BlockDraft, Tier, make_writer
from memtool.inject.title_list import TitleList
from memtool.memory import timestamps
from memtool.memory.trust import TRUST_LEVELS
from memtool.search import picks
from memtool.store import cochange
from memtool.store.provenance import find_head_commit
from memtool.store.tree import newest_first_key
from memtool.value import Value, format_count

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from memtool.inject.block import BlockFormat, InjectedBlock
    from memtool.inject.budget import Budget
    from memtool.inject.gather import GatherRequest, RepositoryCandidates
    from memtool.inject.session_seen import Start
    from memtool.inject.tiers import Cap, Write
    from memtool.store.context import Context
    from memtool.store.tree import Record

GUIDE = (
    "Before you choose or undo something: `memtool search WORDS`. When the user states a rule or a "
    "choice is made: `memtool remember TEXT`, `memtool new decision TITLE`. When a memory is "
    "wrong: `memtool supersede ID TITLE`.\n"
)
"""The line at the end: which verb is for which moment."""
CONTINUED = (
    "Team memory that is new to this session. Follow it unless it is marked; say so when you "
    "deviate."
)
"""Replaces the preamble in a session that has seen it already."""


class Recap(Value):
    """The last session: its last activity in Unix seconds, and its summary in lines."""

    moment: int
    summary: str = ""


def compose(
    tiers: Iterable[Tier],
    write: Write,
    form: BlockFormat,
    total_tokens: int,
    *,
    guide: str = GUIDE,
    preamble: str = PREAMBLE,
    repositories: Sequence[RepositoryCandidates] = (),
    expected: Iterable[Candidate] = (),
    limits: Sequence[Cap] = (),
) -> tuple[str, BlockDraft]:
    """Fill the budget tier by tier; return the text around them with the guide, and the entries.

    Conflicts of the shown memories of `repositories` come first; `expected` are candidates that may
    be shown. What the `limits` of the tiers left out comes before the guide. If not even the guide
    fits, the primer is empty.
    """
    room = total_tokens * BYTES_PER_TOKEN - measure_frame(form, preamble) - len(guide)
    draft = BlockDraft(write, form, room)
    if room < 0:
        return "", draft
    reserve_disagreements(draft, repositories, expected)
    for tier in tiers:
        draft.fill(tier)
    place_disagreements(draft, repositories)
    reserve_limit_notices(draft, limits)
    draft.place_notices()
    draft.texts += [guide] if guide else []
    return draft.render(preamble), draft


STATE = "state"
"""The tiers of a primer about the work, in addition to those of a block."""
MAX_STATE = 5
MAX_GOVERNING = 8
MAX_NEWS = 12
BEFORE, CHANGED, NEWS, TITLES = "before", "changed", "news", "titles"
"""The tiers that have no memories, only lines."""
MIN_SUMMARY = 200
"""Tokens for the last session if the budget names none for it ..."""
SUMMARY_PART = 4
"""... but at most this share of all."""
_MAX_EXAMINED = 40
"""Records of a part that are looked at, since some are shown already or do not fit."""
MAX_WEIGHED = 200
"""Records of a part that are weighed, the first ones: a store may hold thousands of one type."""


NO_TITLES = TitleList()


class PrimerInputs(Value):
    """The inputs of a primer's tiers.

    `state` and `governing` are candidates of the project: the state of the work, and the rules for
    files that a branch changed. `starts` are the sessions before this one; for a brief primer, the
    starts of this one. `recap` is the summary of the newest. A `brief` primer has only memories and
    news. `is_hurried` leaves out what takes long to derive. `limits` are those of the whole primer.
    """

    request: GatherRequest
    repositories: Sequence[RepositoryCandidates]
    shares: Budget
    recap: Recap | None
    starts: Sequence[Start]
    state: Sequence[Candidate] = ()
    governing: Sequence[Candidate] = ()
    titles: TitleList = NO_TITLES
    is_brief: bool = False
    is_hurried: bool = False
    limits: Sequence[Cap] = ()

    @property
    def own(self) -> RepositoryCandidates:
        """The project's candidates, or those of the user's repository if it is alone."""
        return self.repositories[0]

    @property
    def has_project(self) -> bool:
        """Whether there is a project."""
        return self.own.scope == PROJECT


def build_primer(
    request: GatherRequest,
    form: BlockFormat,
    shares: Budget,
    recap: Recap | None = None,
    *,
    is_brief: bool = False,
    is_hurried: bool = False,
) -> InjectedBlock:
    """Return the primer. The same tree, ledger, sessions and moment give the same bytes.

    `recap` is the last session's summary from the private sessions; without it the recorded starts
    say when it was. A primer of a revision or another moment has no sessions.

    A brief primer has the memories alone, and is empty without one: a resumed session has the rest
    in its context, and a subagent has no use for it. News are memories since the start before the
    newest. If `is_hurried`, a background process derives what takes long.

    Raises:
        MemtoolError: there is no memory directory, or no such revision or time.
    """
    starts = _find_starts(request, is_brief=is_brief)
    candidates = collect_all(request)
    inputs = PrimerInputs(
        request,
        candidates,
        shares,
        recap,
        starts,
        is_brief=is_brief,
        is_hurried=is_hurried,
        limits=build_limits(candidates),
    )
    if inputs.has_project:
        inputs = _with_work(inputs)
        work = [candidate.record for candidate in (*inputs.state, *inputs.governing)]
        if not request.exact and not inputs.own.grounds.tree.verify(work):
            exact = request.replace(exact=True)
            return build_primer(
                exact, form, shares, recap, is_brief=is_brief, is_hurried=is_hurried
            )
    repositories = inputs.repositories
    tiers = [tier for make in TIERS for tier in make(inputs)]
    pins = [pin for repository in repositories for pin in repository.pinned]
    preamble = build_preamble(repositories, pins, reminder=CONTINUED)
    guide = "" if is_brief else GUIDE
    has_lines = any(tier.lines for tier in tiers if tier.name != BEFORE)
    is_empty = not any(repository.grounds.tree.count for repository in repositories)
    if is_empty and not has_lines and not (recap and recap.summary):
        tiers, guide = [], ""
    text, draft = compose(
        tiers,
        make_writer(repositories, form),
        form,
        shares.total,
        guide=guide,
        preamble=preamble,
        repositories=repositories,
        expected=[*pins, *inputs.state, *inputs.governing],
        limits=inputs.limits,
    )
    shares = shares.for_bridge(draft.sections.get(PINNED, 0), draft.sections.get(BEFORE, 0))
    is_told = CHANGED in draft.sections
    injected = build_injected(request, repositories, draft, shares, is_told=is_told, text=text)
    return _report_titles(injected, inputs, draft)


def _report_titles(
    injected: InjectedBlock, inputs: PrimerInputs, draft: BlockDraft
) -> InjectedBlock:
    """Return the primer with its titles, their share of the budget, and that they were seen."""
    titles = [title for title, _line in inputs.titles.rows[: draft.line_counts.get(TITLES, 0)]]
    if not titles:
        return injected
    tokens = draft.sections[TITLES]
    budget = injected.budget.replace(
        bridge=max(0, injected.budget.bridge - tokens), added={TITLES: tokens}
    )
    versions = further_titles.list_versions(titles) if inputs.own.seen.session else []
    return injected.replace(
        budget=budget, further=tuple(titles), versions=(*injected.versions, *versions)
    )


def _find_starts(request: GatherRequest, *, is_brief: bool) -> list[Start]:
    cache = request.context.repository.cache_dir
    if is_brief:
        return session_seen.find_beginnings(cache, request.session)[:-1]
    return session_seen.find_earlier(cache, request.session)


def _with_work(inputs: PrimerInputs) -> PrimerInputs:
    """Return the inputs with the candidates about the work, weighed with those that are pinned."""
    own = inputs.own
    state, governing = _find_state(own), _find_governing(own)
    records = [candidate.record for candidate in (*own.pinned, *state, *governing)]
    grounds = own.grounds.with_contradictions(records)
    origins = own.origins | find_origins(own.view.witness, grounds, [*state, *governing])
    own = own.replace(grounds=grounds, origins=origins)
    titles = NO_TITLES
    if not inputs.is_brief:
        shown = [*own.pinned, *state[:MAX_STATE], *governing[:MAX_GOVERNING]]
        ids = {candidate.record.id for candidate in shown}
        context = inputs.request.context
        titles = title_list.build_list(context, own, ids, is_hurried=inputs.is_hurried)
    return inputs.replace(
        repositories=[own, *inputs.repositories[1:]],
        state=state,
        governing=governing,
        titles=titles,
    )


def _presentable(
    own: RepositoryCandidates, records: Iterable[Record], limit: int | None = None
) -> list[Record]:
    """Return the first of some records that may be shown."""
    return list(
        islice((record for record in records if not own.grounds.find_refusal(record)), limit)
    )


def _presentable_confirmed(
    own: RepositoryCandidates, records: Iterable[Record], limit: int | None = None
) -> list[Record]:
    """Return the first presentable records that are not candidates."""
    return _presentable(
        own, (record for record in records if record.memory.status != "candidate"), limit
    )


def begin(context: Context, session: str, *, is_resumed: bool = False) -> None:
    """Record the start of a session, so that the next one can be told the news since then."""
    repository = context.repository
    try:
        session_seen.begin(
            repository.cache_dir,
            session,
            context.clock.now,
            find_head_commit(repository),
            is_resumed=is_resumed,
        )
    except OSError:
        return


def _build_pins(inputs: PrimerInputs) -> Iterator[Tier]:
    max_pins = inputs.request.context.project.strict_settings.count("inject.max_pinned")
    share = inputs.shares.pinned
    yield build_project_pins(inputs.repositories, max_pins, share).replace(title="Always applies")
    title = "Always applies, in all projects of the user"
    yield build_global_pins(inputs.repositories, share).replace(title=title)


def _build_overrides(inputs: PrimerInputs) -> Iterator[Tier]:
    yield Tier(
        CHANGED,
        title="Edited on this branch",
        lines=tuple(list_override_notices(inputs.repositories)),
    )


def _last_session_tier(inputs: PrimerInputs) -> Iterator[Tier]:
    """Yield the summary of the newest recorded session, with how long ago it was."""
    if inputs.is_brief or inputs.request.is_replay or not inputs.has_project:
        return
    recap, starts, now = inputs.recap, inputs.starts, inputs.request.context.clock.now
    if recap is None or not recap.summary or not 0 < recap.moment <= now:
        return
    is_last = not starts or starts[-1].moment <= recap.moment
    title = (
        f"Last {'' if is_last else 'recorded '}session, {timestamps.format_date(recap.moment)} "
        f"({_format_distance(now - recap.moment)} before this one)"
    )
    shares = inputs.shares
    share = shares.summary or min(MIN_SUMMARY, shares.total // SUMMARY_PART)
    lines = tuple(recap.summary.split("\n"))
    yield Tier(BEFORE, title=title, lines=lines, max_tokens=share)


_STEPS = (("day", 86_400), ("hour", 3_600), ("minute", 60))


def _format_distance(seconds: int) -> str:
    """Return a distance in time as people say it, in the largest unit that fits."""
    for name, length in _STEPS:
        number = seconds // length
        if number:
            return format_count(number, name)
    return "less than a minute"


def _work(inputs: PrimerInputs) -> Iterator[Tier]:
    yield _own_tier(STATE, "Work in progress", inputs, inputs.state, MAX_STATE)
    title = "Decisions and warnings about files changed lately"
    yield _own_tier(GOVERNING, title, inputs, inputs.governing, MAX_GOVERNING)


def _own_tier(
    name: str,
    title: str,
    inputs: PrimerInputs,
    candidates: Sequence[Candidate],
    max_memories: int,
) -> Tier:
    own, share = inputs.own, inputs.shares.total
    return Tier(
        name,
        lambda shown: own.choose(candidates, shown=shown),
        max_memories=max_memories,
        max_tokens=share,
        caps=lambda chosen: [
            *inputs.limits,
            *cap_less_trusted(own, chosen, max_memories, share),
        ],
        title=title,
    )


def _build_news(inputs: PrimerInputs) -> Iterator[Tier]:
    if inputs.starts and inputs.has_project:
        since = inputs.starts[-1]
        title = f"New since the session of {timestamps.format_date(since.moment)}"
        yield Tier(NEWS, title=title, lines=_find_news_since(inputs.own, since))


def _build_titles(inputs: PrimerInputs) -> Iterator[Tier]:
    titles = inputs.titles
    yield Tier(TITLES, title=titles.heading, lines=tuple(line for _title, line in titles.rows))


TIERS: tuple[Callable[[PrimerInputs], Iterator[Tier]], ...] = (
    _build_pins,
    _build_overrides,
    _last_session_tier,
    _work,
    _build_news,
    _build_titles,
)
"""The tiers of a primer, in the order of their worth."""


def _find_state(own: RepositoryCandidates) -> list[Candidate]:
    """Return the state of the work: plans, progress, open questions, and pending decisions."""
    records = picks.pick(own.grounds.tree, ("type", "state"), ("awaiting", picks.ANY))
    weighed = _presentable_confirmed(own, records, MAX_WEIGHED)
    return [Candidate(record, STATE) for record in _first_trusted(own, weighed)]


def _first_trusted(own: RepositoryCandidates, records: Sequence[Record]) -> list[Record]:
    """Return the first of some records, and behind them the first of those most trusted."""
    first, remaining = records[:_MAX_EXAMINED], records[_MAX_EXAMINED:]
    trust = own.grounds.trust
    if not remaining or trust is None:
        return list(first)
    best = max(map(trust, records), key=TRUST_LEVELS.index)
    return [*first, *[record for record in remaining if trust(record) == best][:_MAX_EXAMINED]]


def _find_governing(own: RepositoryCandidates) -> list[Candidate]:
    """Return decisions and warnings about files that a branch changed, the most important first."""
    location, basis = own.grounds.tree.location, own.view.witness.basis
    if basis is None:
        return []
    files = cochange.find_changed_files(
        location.repository,
        location.directory,
        basis.head,
        basis.trusted_head,
        is_checked_out=location.kind == "worktree",
        is_cached=own.view.witness.is_cached,
    )
    if not files:
        return []
    grounds = own.grounds
    records = picks.find_ruling(grounds.tree, files, grounds.moves())
    records.sort(key=lambda record: -record.memory.importance)
    weighed = _presentable_confirmed(own, records, MAX_WEIGHED)
    return [Candidate(record, GOVERNING) for record in _first_trusted(own, weighed)]


def _find_news_since(own: RepositoryCandidates, since: Start) -> tuple[str, ...]:
    """Return a line for each memory that came since a session, the newest first."""
    tree, standing = own.grounds.tree, own.grounds.standing
    short = tree.short_ids
    location = tree.location
    head = own.view.witness.basis.head if own.view.witness.basis is not None else ""
    paths = cochange.find_arrived(location.repository, location.directory, since.head, head)
    written_since = tree.written_after(since.moment)
    ids = {path.rpartition("/")[2].removesuffix(".md") for path in paths}
    named_records = [tree[id_] for id_ in ids if id_ in tree]
    records = {record.path: record for record in (*written_since, *named_records)}
    lines = []
    in_order = sorted(
        records.values(),
        key=lambda record: (tree.is_from_overlay(record), newest_first_key(record)),
    )
    for record in _presentable_confirmed(own, in_order):
        rivals = {*standing.find_rivals(record.id), *standing.disputes.get(record.id, ())}
        olds = standing.lineage.supersedes.get(record.id, ())
        what = ""
        if rivals:
            what = f"in conflict with {', '.join(map(short.shorten, sorted(rivals)[:2]))}"
        elif olds:
            what = f"supersedes {', '.join(map(short.shorten, olds[:2]))}"
        if tree.is_from_overlay(record):
            what = short.shorten_in(tree.find_notice(record))
        day = timestamps.format_date(record.memory.timestamp)
        lines.append(
            f"{day} {short.shorten(record.id)} {record.memory.title}{f' ({what})' if what else ''}"
        )
    if len(lines) > MAX_NEWS:
        lines[MAX_NEWS:] = [f"and {len(lines) - MAX_NEWS:,} more: memtool log"]
    return tuple(lines)
