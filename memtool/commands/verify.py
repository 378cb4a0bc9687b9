"""`memtool verify`: does each source resolve, show what it showed, and a failure come again."""

from __future__ import annotations

from collections import Counter

from memtool.errors import MemtoolError
from memtool.index import index
from memtool.memory import timestamps
from memtool.memory.trust import TRUST_LEVELS
from memtool.redaction.mask import Mask
from memtool.search.features import Facts
from memtool.search.verification import (
    BROKEN,
    RUN_VERDICTS,
    SOUND,
    VERDICTS,
    WEAK,
    TraceRun,
    Verification,
    is_address,
)
from memtool.search.verification import (
    verify as verified,
)
from memtool.store import progress, usage_log
from memtool.store.context import Context
from memtool.store.provenance import SHORT
from memtool.store.sources import UNKNOWN
from memtool.value import Value, plural

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from memtool.memory.trust import Origin
    from memtool.sessions.rerun import RerunPlan
    from memtool.store.provenance import Witness
    from memtool.store.tree import Record


class VerifyReport(Value):
    """The verdicts at a commit, empty before the first one; the counts are of all `checked`."""

    head: str
    checked: int
    sound: int
    weak: int
    broken: int
    unknown: int
    memories: tuple[Verification, ...]

    @property
    def exit_code(self) -> int:
        """1 where a memory is broken, for scripts."""
        return int(self.broken > 0)


CONSENT = "verify.online"


def verify(
    context: Context,
    *ids: str,
    all: bool = False,
    online: bool = False,
    run: bool = False,
    yes: bool = False,
    seconds: int = 60,
    at: str | None = None,
) -> VerifyReport:
    """Check every source of memories against this clone; nothing outside of it is asked.

    A commit must lead to HEAD or the trusted ref: one that a rebase left behind is in no other
    clone. A file must have been there when the memory was checked, and be there today, with the
    cited lines wherever they moved. A memory must be alive and the newest of its kind, a session of
    this clone must hold the message, an address must be one. Broken is a memory of which a source
    does not resolve, weak one whose source has changed or was replaced, or with a newer trace of
    its failure; unknown one that names only what people, programs or sites say. The verdict is that
    of the worst source, and how many there are counts for nothing. Where any is broken, the exit
    code is 1.

    With --online each site that is cited gets one HEAD request, where your own setting
    verify.online lets it: no redirect is followed, and nothing of your own network is asked.

    With --run the command of one trace is run again, as its section Environment records it: at the
    commit where it failed and, where it fails there alike, at HEAD. Each run has a copy of that
    commit, an empty home, few variables, no shell, and no network where the system lets it be taken
    away. You are shown the command and asked; --yes agrees without a question, only to a memory
    that is trusted and names no place outside of the copy. Nothing is ever run in CI, from a hook
    or a server. It holds; it is fixed, not fixed here, or its failure changed at HEAD; or it does
    not reproduce. What cannot be run stays unknown. The ledger keeps the result, no file does. It
    contains accidents and is no sandbox.

    Example:
        memtool verify --all
        memtool verify epi-2026-03-01-exports-time-out-k3vq --run

    Args:
        ids: these memories, by id or words; without any all that are current
        all: also what is sound or cannot be told
        online: also ask the sites, where your own settings have verify.online
        run: run the command of a trace again, after you were asked
        yes: with --run, agree without a question to what is trusted
        seconds: with --run, most seconds of one run
        at: memories and files of this revision instead of those of HEAD
    """
    if run:
        _refuse_run(context, ids, at)
    if online and not context.project.own_settings.setting(CONSENT):
        raise MemtoolError(
            "--online asks the sites that memories cite, which you have not allowed",
            hint=f"memtool --global config {CONSENT} true",
            code="config",
        )
    tree = index.open(context, at, exact=True)
    facts = Facts(tree, context.clock.now, dict)
    wanted = [tree.find(id_) for id_ in dict.fromkeys(ids)]
    wanted = wanted or [one for one in tree.records if facts.is_current(one)]
    texts = [text for one in wanted for text in one.memory.items("source")]
    sessions = {}
    if any(text.startswith("session:") for text in texts):
        from memtool.sessions.evidence import messages  # most memories cite none

        sessions = messages(context, texts)
    witness = context.witness(tree)
    ran = _run(context, witness, wanted[0], seconds, yes=yes) if run else None
    categories = context.settings.categories
    sites = _sites(texts) if online else {}
    found = verified(tree, witness, wanted, sessions, sites, context.clock.now, categories)
    found = _with_runs(context, found, ran)
    counts = Counter(one.verdict for one in found)
    mask = Mask(context.settings)
    shown = [_masked(one, mask) for one in found if ids or all or one.verdict in (BROKEN, WEAK)]
    shown.sort(key=lambda one: (VERDICTS.index(one.verdict), one.id))
    return VerifyReport(
        head="" if witness.basis is None else witness.basis.head,
        checked=len(found),
        sound=counts[SOUND],
        weak=counts[WEAK],
        broken=counts[BROKEN],
        unknown=counts[UNKNOWN],
        memories=tuple(shown),
    )


def _sites(texts: Iterable[str]) -> dict[str, tuple[str, str]]:
    """Return what the sites of some sources answer, by address."""
    from memtool.store import sites  # loads what speaks to networks

    named = [text.removeprefix("url:") for text in texts if text.startswith("url:")]
    return sites.asked(filter(is_address, named))


def _refuse_run(context: Context, ids: tuple[str, ...], at: str | None) -> None:
    if len(ids) != 1 or at is not None:
        raise MemtoolError(
            "--run takes one trace, as it stands in the worktree", hint="memtool verify ID --run"
        )
    from memtool.sessions import rerun  # it starts processes, which nothing else here does

    rerun.refuse_unattended(context)


def _run(
    context: Context, witness: Witness, record: Record, seconds: int, *, yes: bool
) -> TraceRun:
    """Run the command of a trace again, once somebody agreed; the audit keeps what it said.

    Raises:
        MemtoolError: it is no trace, or nobody agreed.
    """
    from memtool.redaction.find import allowlist
    from memtool.sessions import rerun

    # Marks stand in the place of secrets, so that no secret is a part of what is run.
    planned = rerun.plan(context, Mask(context.settings).memory(record.memory), seconds)
    allowed = allowlist(context.settings)
    if planned.obstacle:
        return rerun.carry_out(context, planned, allowed)
    origin = witness.origins([record])[record.path]
    _refuse_unagreed(context, planned, origin, yes=yes)
    with usage_log.act(context, rerun.ACT, planned.id) as act:
        done = rerun.carry_out(context, planned, allowed)
        act.detail = f"{done.verdict}: {done.detail}"
    return done


def _refuse_unagreed(context: Context, planned: RerunPlan, origin: Origin, *, yes: bool) -> None:
    """Ask somebody at a terminal whether a command may run. Raises MemtoolError unless it may."""
    reaches = planned.environment.reaches
    if yes:
        why = "names places outside of the copy" if reaches else ""
        is_trusted = origin.trust in TRUST_LEVELS[TRUST_LEVELS.index("trusted") :]
        why = why if is_trusted else f"is only {origin.trust}, not trusted"
        if why:
            raise MemtoolError(
                f"{planned.id} {why}, so that --yes is not enough; nothing was run",
                hint=f"memtool verify {planned.id} --run shows the command and asks",
                code="no-consent",
            )
    elif not (context.caller.is_person and progress.can_ask()):
        raise MemtoolError(
            "nobody is here to be asked; nothing was run",
            hint=f"memtool verify {planned.id} --run in a terminal, or --yes for a trusted memory",
            code="no-consent",
        )
    elif not progress.agrees(_question(planned, origin)):
        raise MemtoolError("nothing was run", hint="answer y to run it", code="no-consent")


def _question(planned: RerunPlan, origin: Origin) -> str:
    """Return what somebody should know before a command of a memory is run."""
    from memtool.sessions import rerun

    environment = planned.environment
    by = f" by {origin.author}" if origin.author else ""
    at = f"commit {planned.commit[:SHORT]}"
    if planned.head != planned.commit:
        at += f", and of HEAD ({planned.head[:SHORT]}) if it fails there"
    rows = [
        f"{planned.id}  {planned.title}",
        f"  command:   {rerun.shown(environment)}",
        f"  directory: {environment.cwd} in a copy of {at}",
        f"  expected:  {planned.signature or 'the failure that it recorded'}",
        f"  written:   {origin.trust}{by}",
        f"  limits:    {planned.limit_s} s each; empty home, few variables, if possible no network",
        "Whoever wrote the memory chose the command. A copy contains accidents; it is no sandbox.",
    ]
    if environment.reaches:
        rows.append(f"It names places outside of the copy: {', '.join(environment.reaches)}")
    return "\n".join([*rows, "run it? [y/N] "])


def _with_runs(
    context: Context, found: Sequence[Verification], ran: TraceRun | None
) -> list[Verification]:
    """Return verdicts with what the last run of each trace said."""
    if not any(one.trace for one in found):
        return [one.replace(run=ran) for one in found]
    from memtool.sessions import rerun

    known = rerun.results(context)
    made = []
    for one in found:
        result = known.get(one.id)
        trace = one.trace
        if trace is not None and ran is not None:
            trace = trace.replace(
                reproduces=RUN_VERDICTS[ran.verdict][0],
                result=ran.verdict,
                ran=timestamps.render(context.clock.now),
            )
        elif trace is not None and result is not None:
            trace = trace.replace(
                reproduces=RUN_VERDICTS[result.verdict][0],
                result=result.verdict,
                ran=rerun.moment_of(result),
            )
        made.append(one.replace(trace=trace, run=ran))
    return made


def _masked(one: Verification, mask: Mask) -> Verification:
    """Return a verdict with texts as they may be shown."""
    return one.replace(
        title=mask.line(one.title),
        sources=tuple(source.replace(detail=mask.line(source.detail)) for source in one.sources),
    )


def render(report: VerifyReport) -> str:
    """Return a line for each memory, one for each of its sources, and the counts."""
    lines = []
    for one in report.memories:
        lines.append(f"{one.verdict}: {one.id}  {one.title}")
        for source in one.sources:
            now = f" (now {source.now})" if source.status == "moved" else ""
            lines.append(f"  {source.status}: {source.source}: {source.detail}{now}")
        if one.newer:
            lines.append(f"  a newer trace of its failure: {', '.join(one.newer)}")
        lines += _of_trace(one)
    memories = plural(report.checked, "memory", "memories")
    lines.append(
        f"{memories}: {report.sound:,} sound, {report.weak:,} weak, "
        f"{report.broken:,} broken, {report.unknown:,} unknown"
    )
    first = next((one.id for one in report.memories if one.verdict == BROKEN), "")
    if first:
        lines.append(
            f"hint: memtool supersede {first} TITLE --source SOURCE names one that resolves"
        )
    return "\n".join(lines)


_TOLD = {True: "yes", False: "no", None: "unknown"}


def _of_trace(one: Verification) -> list[str]:
    """Return the lines on how far a failure is proven, and on the runs that were just made."""
    trace = one.trace
    if trace is None:
        return _of_run(one.run) if one.run is not None else []
    known = f"{trace.result}, as run on {trace.ran[:10]}" if trace.result else "nothing was run"
    row = (
        f"  trace: pointer {_TOLD[trace.pointer]}, current {_TOLD[trace.current]}, "
        f"reproduces {_TOLD[trace.reproduces]}"
    )
    return [row, *_of_run(one.run)] if one.run is not None else [f"{row} ({known})"]


def _of_run(run: TraceRun) -> list[str]:
    lines = [f"  {run.verdict}: {run.detail}"]
    lines += [f"    otherwise here: {what}" for what in run.differs]
    for one in run.runs:
        network = "no network" if one.is_network_off else "the network was not cut off"
        where = "" if one.commit == run.commit else "HEAD, "
        ended = "" if one.exit is None else f", exit code {one.exit}"
        lines.append(
            f"    at {where}{one.commit[:SHORT]}: {one.detail}{ended} "
            f"({one.seconds:.1f} s, {network})"
        )
        if one.outcome != "passed":
            lines += [f"      | {line}" for line in one.output.splitlines()]
    return lines
