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

from memtool.inject import candidates, session_seen
from memtool.inject.block import PREAMBLE, escaped, frame_bytes, quoted, write_block
from memtool.inject.candidates import Candidate
from memtool.inject.gather import (
    choose,
    choose_from,
    injected,
    origins_of,
    preamble_of,
    sides_of,
    silence_of,
    trust_caps,
    writer,
)
from memtool.memory import timestamps
from memtool.memory.trust import TRUST_LEVELS
from memtool.search import filters
from memtool.store import cochange
from memtool.store.provenance import head_of
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from memtool.inject.block import BlockFormat, Injected
    from memtool.inject.candidates import (
        BlockEntry,
        Budget,
        CandidateVerdict,
        Cap,
        Eligibility,
    )
    from memtool.inject.gather import GatherRequest, Side
    from memtool.inject.select import Chosen
    from memtool.inject.session_seen import Start
    from memtool.store.context import Context
    from memtool.store.provenance import Witness
    from memtool.store.snapshot import Record

    Choose = Callable[[Sequence[Candidate]], Chosen]

GUIDE = (
    "`memtool remember TEXT` writes down what the user said, `memtool new decision TITLE` what was "
    "decided and why; `memtool search WORDS` finds more than stands here.\n"
    "`memtool supersede ID TITLE` corrects what is wrong, `memtool forget ID --why TEXT` takes it "
    "out; no secret belongs in a memory.\n"
)
"""The two lines at the end. They say what there is, in no tone of command: hosts distrust that."""


class PrimerPart(Value):
    """One part: lines of text, or passages, the most important first.

    `choose` is told what is shown already, and returns what is worth showing; at most `most` of
    that is taken, within the `caps` on what was chosen. Lines and passages take `share` tokens at
    most; for lines alone None is no bound.
    """

    title: str
    lines: tuple[str, ...] = ()
    choose: Choose | None = None
    most: int = 0
    share: int | None = None
    caps: Callable[[Sequence[Candidate]], Sequence[Cap]] = lambda _chosen: ()


class Recap(Value):
    """The session before: when it was last heard of, in Unix seconds, and what was done in it.

    `count` says how many sessions there were before this one; `summary` may be several lines.
    """

    moment: int
    count: int
    summary: str = ""


class Primer(Value):
    """The text of a primer, empty where there is nothing to say, and what was decided about it.

    `taken` are the memories in it, in order, `lengths` the tokens of each part by its title.
    """

    text: str
    taken: tuple[BlockEntry, ...]
    verdicts: tuple[CandidateVerdict, ...]
    lengths: Mapping[str, int] = {}


NOTHING = Primer("", (), ())


def compose(
    parts: Sequence[PrimerPart],
    write: Callable[[Candidate, bool], str],
    form: BlockFormat,
    total_tokens: int,
    *,
    guide: str = GUIDE,
    preamble: str = PREAMBLE,
) -> Primer:
    """Fill the budget with parts, in order, and write the block around them and the guide.

    Where not even the guide fits, nothing is written.
    """
    room = total_tokens * candidates.BYTES_PER_TOKEN - frame_bytes(form, preamble) - len(guide)
    if room < 0:
        return NOTHING
    sections: list[str] = []
    taken: list[BlockEntry] = []
    verdicts: list[CandidateVerdict] = []
    lengths: dict[str, int] = {}
    for part in parts:
        head = form.section.format(title=escaped(part.title, form.head_escapes))
        most = room if part.share is None else min(room, part.share * candidates.BYTES_PER_TOKEN)
        left = (most if part.lines else room) - len(head.encode()) - len(form.section_end)
        texts = _fitting([quoted(line, form.escapes) for line in part.lines], left)
        if part.choose is not None:
            chosen, dropped = part.choose([one.candidate for one in taken])
            caps = part.caps(chosen)
            more, said = candidates.fill(chosen, write, part.most, part.share or 0, left, caps)
            verdicts += dropped + said
            taken += more
            texts += [one.text for one in more]
        if texts:
            body = "".join(texts)
            end = "" if body.endswith(f"\n{form.section_end}") else form.section_end  # blank lines
            sections.append(f"{head}{body}{end}")
            room -= len(sections[-1].encode())
            lengths[part.title] = candidates.tokens(sections[-1])
    sections += [guide] if guide else []
    text = write_block(sections, form, preamble) if sections else ""
    return Primer(text, tuple(taken), tuple(verdicts), lengths)


def _fitting(lines: Iterable[str], room: int) -> list[str]:
    """Return the first lines that fit into a number of bytes."""
    kept = []
    for line in lines:
        room -= len(line.encode())
        if room < 0:
            break
        kept.append(line)
    return kept


STATE = "state"
"""The tier of what a primer says about the work, beside those of a block."""
MOST_STATE = 5
MOST_GOVERNING = 8
MOST_NEWS = 12
MOST_WAITING = 6
PINNED_TITLE = "Pinned"
PINNED_GLOBAL_TITLE = "Pinned by the user for all projects"
BEFORE = "The session before"
CHANGED = "Changed here"
LEAST_SUMMARY = 200
"""Tokens that the session before may take where the budget names none for it ..."""
SUMMARY_PART = 4
"""... but one of so many of all."""
_LOOKED_AT = 40
"""Records of a part that are looked at, since some are shown already or do not fit."""
MAX_WEIGHED = 200
"""Records of a part that are weighed, the first ones: a store may hold thousands of one type."""


class View(Value):
    """The project's side as a primer sees it, and who knows its commits."""

    side: Side
    witness: Witness

    @property
    def grounds(self) -> Eligibility:
        return self.side.grounds

    def current(self, records: Iterable[Record], most: int | None = None) -> list[Record]:
        """Return the first of some records that may be shown."""
        found = (one for one in records if not self.grounds.refusal(one))
        return list(islice(found, most))

    def confirmed(self, records: Iterable[Record], most: int | None = None) -> list[Record]:
        """Return the first of some records that may be shown and are no candidates."""
        return self.current((one for one in records if one.memory.status != "candidate"), most)


def prime(
    asked: GatherRequest,
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
    context = asked.context
    sides = sides_of(asked)
    most = context.strict_settings.count("inject.pinned_most")
    parts = [
        PrimerPart(
            PINNED_TITLE,
            choose=lambda taken: choose(sides[:1], candidates.PINNED, shown=taken),
            most=most,
            share=shares.pinned,
            caps=lambda chosen: trust_caps(sides, chosen, most, shares.pinned),
        ),
        *(
            PrimerPart(
                PINNED_GLOBAL_TITLE,
                choose=lambda taken: choose(sides[1:], candidates.PINNED, shown=taken),
                most=sides[0].grounds.gates.global_most,
                share=shares.pinned,
            )
            for _global in sides[1:]
        ),
    ]
    parts.append(PrimerPart(CHANGED, tuple(silence_of(sides))))
    own = sides[0]
    if own.grounds.scope == candidates.PROJECT:
        tree = own.grounds.tree
        view = View(own, own.witness)
        state, governing = _state(view), _governing(view)
        shown = [one.record for one in (*own.pinned, *state, *governing)]
        sides[0] = own.replace(grounds=own.grounds.with_contradictions(shown))
        view = View(sides[0], own.witness)
        find = session_seen.beginnings if is_brief else session_seen.earlier
        starts = find(context.repository.cache_dir, asked.session)
        starts = starts[:-1] if is_brief else starts
        since = starts[-1] if starts else None
        if asked.at is None and asked.as_of is None and not is_brief:
            parts += _before(recap, starts, context.now, shares)
        seen, more = _own_parts(view, shares, since, state, governing, is_brief=is_brief)
        if not asked.exact and not tree.verify(seen):
            return prime(asked.replace(exact=True), form, shares, recap, is_brief=is_brief)
        parts += more
    preamble = preamble_of(sides, (one for side in sides for one in side.pinned))
    made = NOTHING
    is_told = any(part.lines for part in parts if part.title != BEFORE)
    if is_told or (recap and recap.summary) or any(side.grounds.tree.by_id for side in sides):
        write = writer(sides, form, with_awaiting=True)
        guide = "" if is_brief else GUIDE
        made = compose(parts, write, form, shares.total, guide=guide, preamble=preamble)
    pinned = sum(made.lengths.get(title, 0) for title in (PINNED_TITLE, PINNED_GLOBAL_TITLE))
    shares = shares.to_bridge(pinned, made.lengths.get(BEFORE, 0))
    return injected(asked, sides, shares, form, made.text, made.taken, made.verdicts,
                    is_told=CHANGED in made.lengths)  # fmt: skip


def begin(context: Context, session: str, *, is_resumed: bool = False) -> None:
    """Note that a session begins now, so that the next one can be told what came since."""
    repository = context.repository
    try:
        session_seen.begin(
            repository.cache_dir, session, context.now, head_of(repository), is_resumed=is_resumed
        )
    except OSError:
        return


def _before(
    recap: Recap | None, starts: Sequence[Start], now: int, shares: Budget
) -> list[PrimerPart]:
    """Return the part about one session before: how long ago it was, and what was done in it.

    It is the newest that was recorded, else the newest that began here. Neither its text nor its
    date is ever that of another one.
    """
    newest = starts[-1].moment if starts else 0
    moment = recap.moment if recap else newest
    if moment <= 0 or moment > now:
        return []
    count = max(recap.count if recap else 0, len(starts))
    more = " or more" if count == len(starts) >= session_seen.KEPT_SESSIONS else ""
    sessions = f"{count:,}{more} session{'' if count == 1 else 's'} before this one"
    if moment < newest <= now:
        sessions += ", the last of them not recorded"
    when = f"{_distance(now - moment)} earlier, on {timestamps.date(moment)}; {sessions}"
    lines = (when, *(recap.summary.split("\n") if recap and recap.summary else ()))
    share = shares.summary or min(LEAST_SUMMARY, shares.total // SUMMARY_PART)
    return [PrimerPart(BEFORE, lines, share=share)]


_STEPS = (("day", 86_400), ("hour", 3_600), ("minute", 60))


def _distance(seconds: int) -> str:
    """Return a distance in time as people say it, in the largest unit that fits."""
    for name, length in _STEPS:
        number = seconds // length
        if number:
            return f"{number:,} {name}{'' if number == 1 else 's'}"
    return "less than a minute"


def _own_parts(
    view: View,
    shares: Budget,
    since: Start | None,
    state: Sequence[Candidate],
    governing: Sequence[Candidate],
    *,
    is_brief: bool,
) -> tuple[list[Record], list[PrimerPart]]:
    """Return every record that may be shown as part of the project's own, and these parts."""
    view.side.origins.update(origins_of(view.witness, view.grounds, [*state, *governing]))
    title = "Decisions and warnings about files changed lately"
    found = [
        PrimerPart(name, (), _choice(view, own), most, shares.total,
                   _caps(view, most, shares.total))
        for name, own, most in (
            ("State of the work", state, MOST_STATE), (title, governing, MOST_GOVERNING),
        )
    ]  # fmt: skip
    news = _news(view, since) if since is not None else ()
    if since is not None and news:
        found.append(PrimerPart(f"New since the session of {timestamps.date(since.moment)}", news))
    if is_brief:
        return [one.record for one in (*state, *governing)], found
    proposals = filters.picked(view.grounds.tree, ("status", "candidate"))
    waiting = view.current(proposals, MAX_WEIGHED + 1)
    if waiting:
        count = f"{len(waiting):,} candidate{'' if len(waiting) == 1 else 's'}"
        if len(waiting) > MAX_WEIGHED:
            count = f"more than {MAX_WEIGHED:,} candidates"
        proposed = view.grounds.standing.proposed
        lines = tuple(
            _line(one, f"to replace {', '.join(olds[:2])}:" if olds else "")
            for one in waiting[:MOST_WAITING]
            for olds in [proposed.get(one.id, ())]
        )
        found.append(PrimerPart(f"{count} that nobody has confirmed (memtool confirm ID)", lines))
    taken = view.grounds.tree.snapshot  # a revision knows of no findings
    findings = session_seen.waiting(taken.repository.cache_dir) if taken.kind == "worktree" else 0
    if findings:
        count = f"{findings:,} finding{'' if findings == 1 else 's'}"
        how = "`memtool promote --list` shows them, `memtool promote --commit` keeps them."
        found.append(PrimerPart(f"{count} with enough evidence for a memory", (how,)))
    return [one.record for one in (*state, *governing)], found


def _caps(view: View, most: int, share: int) -> Callable[[Sequence[Candidate]], Sequence[Cap]]:
    return lambda chosen: trust_caps([view.side], chosen, most, share)


def _choice(view: View, candidates: Sequence[Candidate]) -> Choose:
    return lambda taken: choose_from(view.side, candidates, shown=taken)


def _state(view: View) -> list[Candidate]:
    """Return where the work stands: plans, progress, open questions, and what waits for someone."""
    found = filters.picked(view.grounds.tree, ("type", "state"), ("awaiting", filters.ANY))
    return [Candidate(one, STATE) for one in _looked_at(view, view.confirmed(found, MAX_WEIGHED))]


def _looked_at(view: View, records: Sequence[Record]) -> list[Record]:
    """Return the first of some records, and behind them the first of those most trusted."""
    first, rest = records[:_LOOKED_AT], records[_LOOKED_AT:]
    trust = view.grounds.trust
    if not rest or trust is None:
        return list(first)
    best = max(map(trust, records), key=TRUST_LEVELS.index)
    return [*first, *[one for one in rest if trust(one) == best][:_LOOKED_AT]]


def _governing(view: View) -> list[Candidate]:
    """Return the decisions and warnings about what a branch changed, the most important first."""
    taken, basis = view.grounds.tree.snapshot, view.witness.basis
    if basis is None:
        return []
    files = cochange.changed(taken.repository, taken.directory, basis.head, basis.trusted_at,
                           is_checked_out=taken.kind == "worktree",
                           is_cached=view.witness.is_cached)  # fmt: skip
    if not files:
        return []
    found = filters.ruling_over(view.grounds.tree, files, with_documents=False)
    found.sort(key=lambda one: -one.memory.importance)
    weighed = view.confirmed(found, MAX_WEIGHED)
    return [Candidate(one, candidates.GOVERNING) for one in _looked_at(view, weighed)]


def _news(view: View, since: Start) -> tuple[str, ...]:
    """Return a line for each memory that came since a session, the newest first."""
    taken = view.grounds.tree.snapshot
    head = view.witness.basis.head if view.witness.basis is not None else ""
    paths = cochange.arrived(taken.repository, taken.directory, since.head, head)
    written_since = filters.written_after(view.grounds.tree, since.moment)
    ids = {path.rpartition("/")[2].removesuffix(".md") for path in paths}
    known = [view.grounds.tree.by_id[id_] for id_ in ids if id_ in view.grounds.tree.by_id]
    records = {record.path: record for record in (*written_since, *known)}
    lines = []
    for record in view.confirmed(sorted(records.values(), key=filters.newest)):
        standing = view.grounds.standing
        rivals = {*standing.rivals(record.id), *standing.disputes.get(record.id, ())}
        olds = view.grounds.standing.lineage.supersedes.get(record.id, ())
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
