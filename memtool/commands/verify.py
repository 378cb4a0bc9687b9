"""`memtool verify`: whether sources resolve, are unchanged, and a recorded failure recurs."""

from __future__ import annotations

from collections import Counter

from memtool.commands._layout import Layout, shorten_commit
from memtool.errors import MemtoolError
from memtool.index import index
from memtool.memory import timestamps
from memtool.memory.trust import SHORT_ID_DIGITS, TRUST_LEVELS
from memtool.redaction.mask import Mask
from memtool.search.features import Facts
from memtool.search.verification import (
    BROKEN,
    RUN_VERDICTS,
    SOUND,
    STATUSES,
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
from memtool.store.sources import UNKNOWN
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from memtool.memory.trust import Origin
    from memtool.sessions.rerun import RerunPlan
    from memtool.store.provenance import ProvenanceReader
    from memtool.store.tree import Record


class VerifyReport(Value):
    """The verdicts at the commit `head`, "" before the first; counts are of all `checked`."""

    json_fields = "head checked sound weak broken unknown memories"

    head: str
    checked: int
    sound: int
    weak: int
    broken: int
    unknown: int
    memories: tuple[Verification, ...]
    has_all: bool = False
    """Whether the text has every source, not only those that changed."""

    @property
    def exit_code(self) -> int:
        """1 if a memory is broken, for scripts."""
        return int(self.broken > 0)


ONLINE_KEY = "verify.online"


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
    """Check that the sources of memories exist and still show what they showed.

        sound     all sources exist and are unchanged
        weak      a source changed, or was superseded
        broken    a cited commit, file, message or memory is gone; the exit code is 1
        unknown   only a person's word, which cannot be checked

    --run repeats the failed command of a trace in a copy of its commit, and asks first. --yes skips
    the question for trusted memories. The copy guards against accidents; it is not a security
    sandbox.

    Example:
        memtool verify --all
        memtool verify epi-bg2z --run

    Args:
        ids: these memories, by id or words; without any, all current ones
        all: also list what is sound or unknown
        online: also request each cited site once (setting verify.online)
        run: run the command of a trace again
        yes: with --run, do not ask
        seconds: with --run, the time limit of a run
        at: a revision instead of HEAD
    """
    if run:
        _refuse_run(context, ids, at)
    if online and not context.project.user_settings.setting(ONLINE_KEY):
        raise MemtoolError(
            "cannot verify online: your settings do not allow requests to cited sites",
            hint=f"memtool --global config {ONLINE_KEY} true",
            code="config",
        )
    tree = index.open(context, at, exact=True)
    facts = Facts(tree, context.clock.now, dict)
    wanted = [tree.find(id_) for id_ in dict.fromkeys(ids)]
    wanted = wanted or [record for record in tree.records if facts.is_current(record)]
    texts = [text for record in wanted for text in record.memory.items("source")]
    sessions = {}
    if any(text.startswith("session:") for text in texts):
        from memtool.sessions.evidence import check_messages  # most memories cite no session

        sessions = check_messages(context, texts)
    witness = context.provenance_reader(tree)
    ran = _rerun_trace(context, witness, wanted[0], seconds, yes=yes) if run else None
    categories = context.settings.categories
    sites = _ask_sites(texts) if online else {}
    verifications = verified(tree, witness, wanted, sessions, sites, context.clock.now, categories)
    verifications = _with_runs(context, verifications, ran)
    counts = Counter(verification.verdict for verification in verifications)
    mask = Mask(context.settings)
    shown = [
        _mask_texts(verification, mask)
        for verification in verifications
        if ids or all or verification.verdict in (BROKEN, WEAK)
    ]
    shown.sort(key=lambda verification: (VERDICTS.index(verification.verdict), verification.id))
    return VerifyReport(
        head="" if witness.basis is None else witness.basis.head,
        checked=len(verifications),
        sound=counts[SOUND],
        weak=counts[WEAK],
        broken=counts[BROKEN],
        unknown=counts[UNKNOWN],
        memories=tuple(shown),
        has_all=all or bool(ids),
    )


def _ask_sites(texts: Iterable[str]) -> dict[str, tuple[str, str]]:
    """Return the responses of cited sites, by address."""
    from memtool.store import sites  # loads network modules

    named = [text.removeprefix("url:") for text in texts if text.startswith("url:")]
    return sites.check_sites(filter(is_address, named))


def _refuse_run(context: Context, ids: tuple[str, ...], at: str | None) -> None:
    if len(ids) != 1 or at is not None:
        raise MemtoolError(
            "--run takes the id of one memory in the worktree", hint="memtool verify ID --run"
        )
    from memtool.sessions import rerun  # loaded only to run a command

    rerun.refuse_unattended(context)


def _rerun_trace(
    context: Context, witness: ProvenanceReader, record: Record, seconds: int, *, yes: bool
) -> TraceRun:
    """Run the command of a trace again, after the user agreed, and record the result in the audit.

    Raises:
        MemtoolError: it is not a trace, or the user did not agree.
    """
    from memtool.redaction.find import build_allowlist
    from memtool.sessions import rerun
    from memtool.store.landing import build_landings

    # Secrets are masked, so that no secret is part of the command.
    shown, landings = Mask(context.settings).memory(record.memory), build_landings(witness)
    planned = rerun.plan(context, shown, record.path, landings, seconds)
    allowed = build_allowlist(context.settings)
    if planned.obstacle:
        return rerun.run_trace(context, planned, allowed)
    origin = witness.origins([record])[record.path]
    _refuse_without_consent(context, planned, origin, yes=yes)
    with usage_log.audit(context, rerun.ACT, planned.id) as act:
        done = rerun.run_trace(context, planned, allowed)
        act.detail = f"{done.verdict}: {done.detail}"
    return done


def _refuse_without_consent(
    context: Context, planned: RerunPlan, origin: Origin, *, yes: bool
) -> None:
    """Ask at a terminal whether a command may run. Raises MemtoolError unless it may."""
    reaches = planned.environment.reaches
    if yes:
        why = "names places outside of the copy" if reaches else ""
        is_trusted = origin.trust in TRUST_LEVELS[TRUST_LEVELS.index("trusted") :]
        why = why if is_trusted else f"is only {origin.trust}, not trusted"
        if why:
            raise MemtoolError(
                f"nothing was run: {planned.id} {why}, so --yes is not enough",
                hint=f"memtool verify {planned.id} --run",
                code="no-consent",
            )
    elif not (context.caller.is_person and progress.can_prompt()):
        raise MemtoolError(
            "nothing was run: there is no terminal to ask for consent",
            hint=f"in a terminal: memtool verify {planned.id} --run\n"
            f"if you trust the memory: memtool verify {planned.id} --run --yes",
            code="no-consent",
        )
    elif not progress.confirm(_format_question(planned, origin)):
        raise MemtoolError(
            "nothing was run: the answer was not y", hint="answer y to run it", code="no-consent"
        )


def _format_question(planned: RerunPlan, origin: Origin) -> str:
    """Return what the user should know before a command of a memory is run."""
    from memtool.sessions import rerun

    environment = planned.environment
    by = f" by {origin.author}" if origin.author else ""
    at = f"commit {planned.commit[:SHORT_ID_DIGITS]}"
    if planned.has_landed:
        lost = environment.commit[:SHORT_ID_DIGITS]
        at += f", in which {lost} has landed; if it works there, of the one"
        at += " before"
    if planned.head != planned.commit:
        at += f", and of HEAD ({planned.head[:SHORT_ID_DIGITS]}) if it fails there"
    rows = [
        f"{planned.id}  {planned.title}",
        f"  command:   {rerun.format_command(environment)}",
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
    context: Context, verifications: Sequence[Verification], ran: TraceRun | None
) -> list[Verification]:
    """Return the verdicts with the result of each trace's last run."""
    if not any(verification.trace for verification in verifications):
        return [verification.replace(run=ran) for verification in verifications]
    from memtool.sessions import rerun

    results = rerun.read_results(context)
    updated = []
    for verification in verifications:
        result = results.get(verification.id)
        trace = verification.trace
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
                ran=rerun.format_moment(result),
            )
        updated.append(verification.replace(trace=trace, run=ran))
    return updated


def _mask_texts(verification: Verification, mask: Mask) -> Verification:
    """Mask secrets in the texts of a verdict."""
    return verification.replace(
        title=mask.line(verification.title),
        sources=tuple(
            source.replace(detail=mask.line(source.detail)) for source in verification.sources
        ),
    )


def render(report: VerifyReport, layout: Layout) -> str:
    """Return each memory with the sources that led to its verdict, then the counts."""
    lines = []
    for verification in report.memories:
        name = f"{layout.short(verification.id)}  {verification.title}"
        lines += layout.wrap(f"{verification.verdict}: {name}")
        for source in verification.sources:
            if not report.has_all and STATUSES[source.status][0] not in (BROKEN, WEAK):
                continue
            now = f" (now {source.now})" if source.status == "moved" else ""
            detail = layout.shorten(source.detail)
            text = f"{source.status}: {_shorten_source(source.source, layout)}: {detail}{now}"
            lines += layout.wrap(text, "  ")
        if verification.newer:
            newer = ", ".join(map(layout.short, verification.newer))
            lines.append(f"  a newer trace of its failure: {newer}")
        lines += _format_trace(verification)
    lines.append(
        f"{report.sound:,} sound, {report.weak:,} weak, {report.broken:,} broken, "
        f"{report.unknown:,} only stated by a person or tool"
    )
    first = next((v.id for v in report.memories if v.verdict == BROKEN), "")
    if first:
        command = f"memtool supersede {layout.short(first)} TITLE --source SOURCE"
        lines.append(f"To name a source that resolves: {command}")
    return "\n".join(lines)


def _shorten_source(source: str, layout: Layout) -> str:
    """Return a source with a short commit id, or a short id of a memory."""
    kind, _colon, target = source.partition(":")
    if kind == "commit":
        return f"commit:{shorten_commit(target)}"
    if kind in ("memory", "derived_from"):
        return f"{kind}:{layout.short(target)}"
    return source


_YES_NO = {True: "yes", False: "no", None: "unknown"}


def _format_trace(verification: Verification) -> list[str]:
    """Return lines on how far a failure is proven, and on the runs of this call."""
    trace = verification.trace
    if trace is None:
        return _format_run(verification.run) if verification.run is not None else []
    outcome = f"{trace.result}, as run on {trace.ran[:10]}" if trace.result else "nothing was run"
    row = (
        f"  trace: pointer {_YES_NO[trace.pointer]}, current {_YES_NO[trace.current]}, "
        f"reproduces {_YES_NO[trace.reproduces]}"
    )
    return (
        [row, *_format_run(verification.run)]
        if verification.run is not None
        else [f"{row} ({outcome})"]
    )


def _format_run(run: TraceRun) -> list[str]:
    lines = [f"  {run.verdict}: {run.detail}"]
    lines += [f"    otherwise here: {what}" for what in run.differs]
    for trace_run in run.runs:
        network = "no network" if trace_run.is_network_off else "the network was not cut off"
        where = "" if trace_run.commit == run.commit else "HEAD, "
        ended = "" if trace_run.exit is None else f", exit code {trace_run.exit}"
        lines.append(
            f"    at {where}{trace_run.commit[:SHORT_ID_DIGITS]}: {trace_run.detail}{ended} "
            f"({trace_run.seconds:.1f} s, {network})"
        )
        if trace_run.outcome != "passed":
            lines += [f"      | {line}" for line in trace_run.output.splitlines()]
    return lines
