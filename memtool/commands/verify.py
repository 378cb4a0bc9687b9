"""`memtool verify`: does each source of a memory resolve, and does it show what it showed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from memtool.errors import MemtoolError
from memtool.index import index
from memtool.redaction.mask import Mask
from memtool.search.features import Facts
from memtool.search.verification import (
    BROKEN,
    SOUND,
    VERDICTS,
    WEAK,
    Verification,
    is_address,
)
from memtool.search.verification import (
    verify as verified,
)
from memtool.store.context import Context
from memtool.store.reachability import UNKNOWN
from memtool.value import Value


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

    Example:
        memtool verify --all

    Args:
        ids: these memories, by id or words; without any all that are current
        all: also what is sound or cannot be told
        online: also ask the sites, where your own settings have verify.online
        at: memories and files of this revision instead of those of HEAD
    """
    if online and not context.own_settings.setting(CONSENT):
        raise MemtoolError(
            "--online asks the sites that memories cite, which you have not allowed",
            hint=f"memtool --global config {CONSENT} true",
            code="config",
        )
    tree = index.open(context, at, exact=True)
    facts = Facts(tree, context.now, context.settings.categories, dict)
    wanted = [tree.find(id_) for id_ in dict.fromkeys(ids)]
    wanted = wanted or [one for one in tree.records if facts.is_current(one)]
    texts = [text for one in wanted for text in one.memory.items("source")]
    sessions = {}
    if any(text.startswith("session:") for text in texts):
        from memtool.sessions.evidence import messages  # most memories cite none

        sessions = messages(context, texts)
    witness = context.witness(tree)
    categories = context.settings.categories
    sites = _sites(texts) if online else {}
    found = verified(tree, witness, wanted, sessions, sites, context.now, categories)
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
        if one.trace is not None and one.trace.reproduces is None:
            lines.append("  whether it still fails so is unknown: nothing was run")
    lines.append(
        f"{report.checked:,} memories: {report.sound:,} sound, {report.weak:,} weak, "
        f"{report.broken:,} broken, {report.unknown:,} unknown"
    )
    first = next((one.id for one in report.memories if one.verdict == BROKEN), "")
    if first:
        lines.append(
            f"hint: memtool supersede {first} TITLE --source SOURCE names one that resolves"
        )
    return "\n".join(lines)
