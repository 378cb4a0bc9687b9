"""The primer: what an agent is given when a session starts.

The parts come in the order of their worth, and each takes what the ones before it left. What does
not fit is left out whole. Distances in time are counted to the start of this session, never to
now: hosts replay and cache the text, and tomorrow it has to be as true.

Here the parts are collected: what is pinned, the session before, the state of the work, the
decisions and warnings about files changed lately, what came since the last session, and what waits
for a decision.
"""

from __future__ import annotations

from itertools import islice

from memtool.inject import session_seen
from memtool.inject.answer import (
    global_pins,
    injected,
    override_notices,
    preamble_of,
    project_pins,
    trust_caps,
)
from memtool.inject.block import PREAMBLE, frame_bytes
from memtool.inject.budget import BYTES_PER_TOKEN
from memtool.inject.candidates import GOVERNING, PINNED, PROJECT, Candidate
from memtool.inject.gather import collect_all, find_origins
from memtool.inject.tiers import BlockDraft, Tier, writer
from memtool.memory import timestamps
from memtool.memory.trust import TRUST_LEVELS
from memtool.search import picks
from memtool.store import cochange
from memtool.store.provenance import head_of
from memtool.store.tree import newest
from memtool.value import Value, plural

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from memtool.inject.block import BlockFormat, Injected
    from memtool.inject.budget import Budget
    from memtool.inject.gather import GatherRequest, RepositoryCandidates
    from memtool.inject.session_seen import Start
    from memtool.inject.tiers import Write
    from memtool.store.context import Context
    from memtool.store.tree import Record

GUIDE = (
    "`memtool remember TEXT` writes down what the user said, `memtool new decision TITLE` what was "
    "decided and why; `memtool search WORDS` finds more than stands here.\n"
    "`memtool supersede ID TITLE` corrects what is wrong, `memtool forget ID --why TEXT` takes it "
    "out; no secret belongs in a memory.\n"
)
"""The two lines at the end. They say what there is, in no tone of command: hosts distrust that."""


class Recap(Value):
    """The session before: when it was last heard of, in Unix seconds, and what was done in it.

    `count` says how many sessions there were before this one; `summary` may be several lines.
    """

    moment: int
    count: int
    summary: str = ""


def compose(
    tiers: Iterable[Tier],
    write: Write,
    form: BlockFormat,
    total_tokens: int,
    *,
    guide: str = GUIDE,
    preamble: str = PREAMBLE,
) -> tuple[str, BlockDraft]:
    """Fill the budget tier by tier; return the text around them and the guide, and what is in it.

    Where not even the guide fits, nothing is written.
    """
    room = total_tokens * BYTES_PER_TOKEN - frame_bytes(form, preamble) - len(guide)
    draft = BlockDraft(write, form, room)
    if room < 0:
        return "", draft
    for tier in tiers:
        draft.fill(tier)
    draft.texts += [guide] if guide else []
    return draft.written(preamble), draft


STATE = "state"
"""The tier of what a primer says about the work, beside those of a block."""
MOST_STATE = 5
MOST_GOVERNING = 8
MOST_NEWS = 12
MOST_WAITING = 6
BEFORE, CHANGED, NEWS, WAITING = "before", "changed", "news", "waiting"
"""The tiers that have no memories, only lines."""
LEAST_SUMMARY = 200
"""Tokens that the session before may take where the budget names none for it ..."""
SUMMARY_PART = 4
"""... but one of so many of all."""
_LOOKED_AT = 40
"""Records of a part that are looked at, since some are shown already or do not fit."""
MAX_WEIGHED = 200
"""Records of a part that are weighed, the first ones: a store may hold thousands of one type."""


class PrimerInputs(Value):
    """What the tiers of a primer are made from.

    `state` and `governing` are candidates of the project: where the work stands, and what governs
    the files that a branch changed. `starts` are the sessions before this one, or of a brief
    primer the beginnings of this one; `recap` is what is known of the newest. In a `brief` primer
    there are memories and news alone.
    """

    request: GatherRequest
    repositories: Sequence[RepositoryCandidates]
    shares: Budget
    recap: Recap | None
    starts: Sequence[Start]
    state: Sequence[Candidate] = ()
    governing: Sequence[Candidate] = ()
    is_brief: bool = False

    @property
    def own(self) -> RepositoryCandidates:
        """What the project has, or the user's repository if it is alone."""
        return self.repositories[0]

    @property
    def has_project(self) -> bool:
        """Whether there is a project."""
        return self.own.scope == PROJECT


def prime(
    request: GatherRequest,
    form: BlockFormat,
    shares: Budget,
    recap: Recap | None = None,
    *,
    is_brief: bool = False,
) -> Injected:
    """Return the primer. The same tree, ledger, sessions and moment give the same bytes.

    `recap` is what the private sessions know of the one before; without it the beginnings that
    were noted here say when that was. A look back at a revision or a moment knows of no sessions.

    A brief one has the memories alone, and is nothing without one: a session that is resumed has
    the rest in its context, and a subagent no use for it. News are what came since the beginning
    before the newest.

    Raises:
        MemtoolError: there is no memory directory, or no such revision or time.
    """
    starts = _starts(request, is_brief=is_brief)
    inputs = PrimerInputs(request, collect_all(request), shares, recap, starts, is_brief=is_brief)
    if inputs.has_project:
        inputs = _with_work(inputs)
        work = [one.record for one in (*inputs.state, *inputs.governing)]
        if not request.exact and not inputs.own.grounds.tree.verify(work):
            exact = request.replace(exact=True)
            return prime(exact, form, shares, recap, is_brief=is_brief)
    repositories = inputs.repositories
    tiers = [tier for make in TIERS for tier in make(inputs)]
    preamble = preamble_of(repositories, (one for side in repositories for one in side.pinned))
    guide = "" if is_brief else GUIDE
    has_lines = any(tier.lines for tier in tiers if tier.name != BEFORE)
    is_empty = not any(one.grounds.tree.count for one in repositories)
    if is_empty and not has_lines and not (recap and recap.summary):
        tiers, guide = [], ""
    write = writer(repositories, form, with_awaiting=True)
    text, draft = compose(tiers, write, form, shares.total, guide=guide, preamble=preamble)
    shares = shares.to_bridge(draft.sections.get(PINNED, 0), draft.sections.get(BEFORE, 0))
    is_told = CHANGED in draft.sections
    return injected(request, repositories, draft, shares, is_told=is_told, text=text)


def _starts(request: GatherRequest, *, is_brief: bool) -> list[Start]:
    cache = request.context.repository.cache_dir
    if is_brief:
        return session_seen.beginnings(cache, request.session)[:-1]
    return session_seen.earlier(cache, request.session)


def _with_work(inputs: PrimerInputs) -> PrimerInputs:
    """Return the inputs with the candidates about the work, weighed with those that are pinned."""
    own = inputs.own
    state, governing = _state(own), _governing(own)
    records = [one.record for one in (*own.pinned, *state, *governing)]
    grounds = own.grounds.with_contradictions(records)
    origins = own.origins | find_origins(own.view.witness, grounds, [*state, *governing])
    own = own.replace(grounds=grounds, origins=origins)
    return inputs.replace(
        repositories=[own, *inputs.repositories[1:]], state=state, governing=governing
    )


def _current(
    own: RepositoryCandidates, records: Iterable[Record], most: int | None = None
) -> list[Record]:
    """Return the first of some records that may be shown."""
    return list(islice((one for one in records if not own.grounds.refusal(one)), most))


def _confirmed(
    own: RepositoryCandidates, records: Iterable[Record], most: int | None = None
) -> list[Record]:
    """Return the first of some records that may be shown and are no candidates."""
    return _current(own, (one for one in records if one.memory.status != "candidate"), most)


def begin(context: Context, session: str, *, is_resumed: bool = False) -> None:
    """Note that a session begins now, so that the next one can be told what came since."""
    repository = context.repository
    try:
        session_seen.begin(
            repository.cache_dir,
            session,
            context.clock.now,
            head_of(repository),
            is_resumed=is_resumed,
        )
    except OSError:
        return


def _pins(inputs: PrimerInputs) -> Iterator[Tier]:
    most = inputs.request.context.project.strict_settings.count("inject.pinned_most")
    share = inputs.shares.pinned
    yield project_pins(inputs.repositories, most, share).replace(title="Pinned")
    title = "Pinned by the user for all projects"
    yield global_pins(inputs.repositories, share).replace(title=title)


def _overrides(inputs: PrimerInputs) -> Iterator[Tier]:
    yield Tier(CHANGED, title="Changed here", lines=tuple(override_notices(inputs.repositories)))


def _session_before(inputs: PrimerInputs) -> Iterator[Tier]:
    """Yield what is said of one session before: how long ago it was, and what was done in it.

    It is the newest that was recorded, else the newest that began here. Neither its text nor its
    date is ever that of another one.
    """
    if inputs.is_brief or inputs.request.is_replay or not inputs.has_project:
        return
    recap, starts, now = inputs.recap, inputs.starts, inputs.request.context.clock.now
    newest = starts[-1].moment if starts else 0
    moment = recap.moment if recap else newest
    if moment <= 0 or moment > now:
        return
    count = max(recap.count if recap else 0, len(starts))
    more = " or more" if count == len(starts) >= session_seen.KEPT_SESSIONS else ""
    sessions = f"{count:,}{more} session{'' if count == 1 else 's'} before this one"
    if moment < newest <= now:
        sessions += ", the last of them not recorded"
    when = f"{_distance(now - moment)} earlier, on {timestamps.date(moment)}; {sessions}"
    lines = (when, *(recap.summary.split("\n") if recap and recap.summary else ()))
    shares = inputs.shares
    share = shares.summary or min(LEAST_SUMMARY, shares.total // SUMMARY_PART)
    yield Tier(BEFORE, title="The session before", lines=lines, max_tokens=share)


_STEPS = (("day", 86_400), ("hour", 3_600), ("minute", 60))


def _distance(seconds: int) -> str:
    """Return a distance in time as people say it, in the largest unit that fits."""
    for name, length in _STEPS:
        number = seconds // length
        if number:
            return plural(number, name)
    return "less than a minute"


def _work(inputs: PrimerInputs) -> Iterator[Tier]:
    own, share = inputs.own, inputs.shares.total
    yield _own_tier(STATE, "State of the work", own, inputs.state, MOST_STATE, share)
    title = "Decisions and warnings about files changed lately"
    yield _own_tier(GOVERNING, title, own, inputs.governing, MOST_GOVERNING, share)


def _own_tier(
    name: str,
    title: str,
    own: RepositoryCandidates,
    candidates: Sequence[Candidate],
    most: int,
    share: int,
) -> Tier:
    return Tier(
        name,
        lambda shown: own.choose(candidates, shown=shown),
        max_memories=most,
        max_tokens=share,
        caps=lambda chosen: trust_caps(own, chosen, most, share),
        title=title,
    )


def _news(inputs: PrimerInputs) -> Iterator[Tier]:
    if inputs.starts and inputs.has_project:
        since = inputs.starts[-1]
        title = f"New since the session of {timestamps.date(since.moment)}"
        yield Tier(NEWS, title=title, lines=_news_since(inputs.own, since))


def _candidates(inputs: PrimerInputs) -> Iterator[Tier]:
    """Yield the memories that wait for a confirmation."""
    if inputs.is_brief or not inputs.has_project:
        return
    grounds = inputs.own.grounds
    proposals = picks.picked(grounds.tree, ("status", "candidate"))
    waiting = _current(inputs.own, proposals, MAX_WEIGHED + 1)
    if not waiting:
        return
    count = plural(len(waiting), "candidate")
    if len(waiting) > MAX_WEIGHED:
        count = f"more than {MAX_WEIGHED:,} candidates"
    lines = []
    for record in waiting[:MOST_WAITING]:
        olds = grounds.standing.proposed.get(record.id, ())
        lines.append(_line(record, f"to replace {', '.join(olds[:2])}:" if olds else ""))
    title = f"{count} that nobody has confirmed (memtool confirm ID)"
    yield Tier(WAITING, title=title, lines=tuple(lines))


def _findings(inputs: PrimerInputs) -> Iterator[Tier]:
    """Yield how many findings may become memories; a revision knows of none."""
    taken = inputs.own.grounds.tree.location
    if inputs.is_brief or not inputs.has_project or taken.kind != "worktree":
        return
    count = session_seen.waiting(taken.repository.cache_dir)
    if count:
        what = plural(count, "finding")
        line = "`memtool promote --list` shows them, `memtool promote --commit` keeps them."
        yield Tier(WAITING, title=f"{what} with enough evidence for a memory", lines=(line,))


TIERS: tuple[Callable[[PrimerInputs], Iterator[Tier]], ...] = (
    _pins,
    _overrides,
    _session_before,
    _work,
    _news,
    _candidates,
    _findings,
)
"""The tiers of a primer, in the order of their worth."""


def _state(own: RepositoryCandidates) -> list[Candidate]:
    """Return where the work stands: plans, progress, open questions, and what waits for someone."""
    records = picks.picked(own.grounds.tree, ("type", "state"), ("awaiting", picks.ANY))
    weighed = _confirmed(own, records, MAX_WEIGHED)
    return [Candidate(one, STATE) for one in _looked_at(own, weighed)]


def _looked_at(own: RepositoryCandidates, records: Sequence[Record]) -> list[Record]:
    """Return the first of some records, and behind them the first of those most trusted."""
    first, rest = records[:_LOOKED_AT], records[_LOOKED_AT:]
    trust = own.grounds.trust
    if not rest or trust is None:
        return list(first)
    best = max(map(trust, records), key=TRUST_LEVELS.index)
    return [*first, *[one for one in rest if trust(one) == best][:_LOOKED_AT]]


def _governing(own: RepositoryCandidates) -> list[Candidate]:
    """Return the decisions and warnings about what a branch changed, the most important first."""
    taken, basis = own.grounds.tree.location, own.view.witness.basis
    if basis is None:
        return []
    files = cochange.changed(
        taken.repository,
        taken.directory,
        basis.head,
        basis.trusted_at,
        is_checked_out=taken.kind == "worktree",
        is_cached=own.view.witness.is_cached,
    )
    if not files:
        return []
    records = picks.ruling_over(own.grounds.tree, files, with_documents=False)
    records.sort(key=lambda one: -one.memory.importance)
    weighed = _confirmed(own, records, MAX_WEIGHED)
    return [Candidate(one, GOVERNING) for one in _looked_at(own, weighed)]


def _news_since(own: RepositoryCandidates, since: Start) -> tuple[str, ...]:
    """Return a line for each memory that came since a session, the newest first."""
    tree, standing = own.grounds.tree, own.grounds.standing
    taken = tree.location
    head = own.view.witness.basis.head if own.view.witness.basis is not None else ""
    paths = cochange.arrived(taken.repository, taken.directory, since.head, head)
    written_since = tree.written_after(since.moment)
    ids = {path.rpartition("/")[2].removesuffix(".md") for path in paths}
    known = [tree[id_] for id_ in ids if id_ in tree]
    records = {record.path: record for record in (*written_since, *known)}
    lines = []
    for record in _confirmed(own, sorted(records.values(), key=newest)):
        rivals = {*standing.rivals(record.id), *standing.disputes.get(record.id, ())}
        olds = standing.lineage.supersedes.get(record.id, ())
        what = "added"
        if rivals:
            what = f"disputed with {', '.join(sorted(rivals)[:2])}"
        elif olds:
            what = f"supersedes {', '.join(olds[:2])}"
        lines.append(_line(record, what))
    if len(lines) > MOST_NEWS:
        lines[MOST_NEWS:] = [f"and {len(lines) - MOST_NEWS:,} more: memtool log"]
    return tuple(lines)


def _line(record: Record, what: str = "") -> str:
    day = timestamps.date(record.memory.timestamp)
    return f"{day} {what}{' ' if what else ''}{record.id}: {record.memory.title}"
