"""`memtool fleet similar`: what several repositories decided alike, to the contrary, or gave up."""

from __future__ import annotations

from typing import Any, Literal

from memtool.authoring.write import quote_memory
from memtool.commands._layout import Layout, shorten_commit, shorten_foreign
from memtool.errors import MemtoolError
from memtool.fleet import similar
from memtool.fleet.similar import KINDS, Comparison, FleetDecision, SharedDecision
from memtool.index import index
from memtool.memory import timestamps
from memtool.search import conflicts
from memtool.store.context import Context
from memtool.value import Value, format_count

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

TEXT, MARKDOWN = "text", "markdown"
MAX_TIME_LIMIT_S = 3_600
MAX_SHOWN_DECISIONS = 20
"""Decisions shown of one group; a hundred repositories may have copied one."""


class FleetSimilar(Value):
    """Groups of shared decisions, contrary ones first; `about` is the compared id, "" for all.

    `kinds` counts all groups by kind, including those beyond the limit. `compared` counts memories,
    `repositories` their repositories. `left_out` names what was not compared for lack of time.
    """

    json_fields = "about total kinds compared repositories is_cut left_out made shared"
    json_names = (("is_cut", "cut"),)

    about: str
    shared: tuple[SharedDecision, ...]
    kinds: dict[str, int]
    compared: int
    repositories: int
    left_out: str
    made: str
    format: str = TEXT

    @property
    def total(self) -> int:
        """The number of groups, including those beyond the limit."""
        return sum(self.kinds.values())

    @property
    def is_cut(self) -> bool:
        """Whether the time ran out."""
        return bool(self.left_out)


def fleet_similar(
    context: Context,
    id: str = "",
    *,
    all: bool = False,
    limit: int = 20,
    seconds: int = 60,
    format: Literal["text", "markdown"] = "text",
) -> FleetSimilar:
    """Compare decisions between repositories: alike, contrary or replaced.

    What is compared:
        (nothing)   each decision of this repository with those of the fleet
        ID          one memory with those of the fleet
        --all       all decisions of all repositories on this machine with each other

    Titles and first sentences are compared word by word, in English, so the same decision in quite
    different words is not found.

    Example:
        memtool fleet similar dec-8t7d
        memtool fleet similar --all --format markdown > report.md

    Args:
        id: a memory of this repository, by id or words
        all: compare all repositories on this machine
        limit: the number of groups to show, 0 for all
        seconds: stop after this time, and show what was found
        format: text, or markdown for a report
    """
    if id and all:
        raise MemtoolError("an id and --all exclude each other", hint=f"memtool fleet similar {id}")
    if not 1 <= seconds <= MAX_TIME_LIMIT_S:
        raise MemtoolError(
            f"--seconds must be between 1 and {MAX_TIME_LIMIT_S:,}, not {seconds}",
            hint="memtool fleet similar --seconds 60",
        )
    about = ""
    max_groups = limit if limit > 0 else None
    if all:
        comparison = similar.compare_fleet(context, seconds, max_groups)
    elif id:
        record = index.open(context).find(id)
        about = record.id
        if not similar.is_comparable(record.memory):
            raise MemtoolError(
                f"cannot compare {quote_memory(record.memory)}: only decisions and semantic "
                "memories can be compared",
                hint="all decisions: memtool fleet similar",
            )
        comparison = similar.compare_project(context, [record], seconds, max_groups)
    else:
        comparison = similar.compare_project(context, _list_decisions(context), seconds, max_groups)
    return _build_report(context, comparison, about).replace(format=format)


def _list_decisions(context: Context) -> list[Any]:
    tree = index.open(context)
    living = conflicts.find_living(tree, context.clock.now)
    return [
        record
        for record in living
        if record.memory.type == "decision" and similar.is_comparable(record.memory)
    ]


def _build_report(context: Context, comparison: Comparison, about: str) -> FleetSimilar:
    total = sum(comparison.kinds.values())
    if comparison.left_out:
        context.notes.append(f"out of time: {comparison.left_out}; for more: --seconds")
    if len(comparison.shared) < total:
        context.notes.append(
            f"{len(comparison.shared)} of {total} groups are shown (--limit 0: all)"
        )
    return FleetSimilar(
        about,
        comparison.shared,
        {kind: comparison.kinds[kind] for kind in KINDS if kind in comparison.kinds},
        comparison.compared,
        comparison.repositories,
        comparison.left_out,
        timestamps.render(context.clock.now),
    )


def render(report: FleetSimilar, layout: Layout) -> str:
    """Return the groups and a summary, as text or as markdown."""
    rows = _format_markdown(report) if report.format == MARKDOWN else _format_text(report, layout)
    return "\n".join(rows)


def _format_text(report: FleetSimilar, layout: Layout) -> Iterator[str]:
    for group in report.shared:
        yield f"{group.kind}: {group.reason}"
        decisions = [*map(_format_decision, _limit_decisions(group))]
        yield from layout.table(decisions, title=3, drop=(5,), indent="  ")
        if group.count > MAX_SHOWN_DECISIONS:
            yield f"  and {group.count - MAX_SHOWN_DECISIONS:,} more"
        yield ""
    yield _format_summary(report)


def _format_decision(decision: FleetDecision) -> Sequence[str]:
    olds = ", ".join(map(shorten_foreign, decision.supersedes))
    replaced = f"supersedes {olds}" if olds else ""
    return (
        decision.repository,
        _format_citation(decision),
        decision.date,
        decision.title,
        decision.value,
        replaced,
    )


def _format_citation(decision: FleetDecision) -> str:
    return f"{shorten_foreign(decision.id)}@{shorten_commit(decision.commit) or 'local'}"


def _limit_decisions(group: SharedDecision) -> Sequence[FleetDecision]:
    return group.decisions[:MAX_SHOWN_DECISIONS]


def _format_summary(report: FleetSimilar) -> str:
    kinds = ", ".join(f"{count:,} {kind}" for kind, count in report.kinds.items())
    what = format_count(report.total, "group")
    groups = f"{what} ({kinds})" if kinds else "nothing is shared"
    memories = format_count(report.compared, "memory", "memories")
    whose = format_count(report.repositories, "repository", "repositories")
    return f"{groups} among {memories} of {whose}{', cut for time' if report.left_out else ''}"


def _format_markdown(report: FleetSimilar) -> Iterator[str]:
    """Yield the report. Texts of other repositories are in code spans, so that no markup counts."""
    yield "# Decisions that repositories share"
    yield ""
    yield f"{report.made[:10]}: {_format_summary(report)}."
    for kind, meaning in KINDS.items():
        groups = [shared_group for shared_group in report.shared if shared_group.kind == kind]
        if groups:
            yield from ("", f"## {kind.capitalize()}: {meaning}")
        for group in groups:
            yield from ("", _format_code_span(group.reason), "")
            yield "| repository | decision | day | title | replaced |"
            yield "|---|---|---|---|---|"
            for decision in _limit_decisions(group):
                title = f"{decision.title}: {decision.value}" if decision.value else decision.title
                cells = (
                    decision.repository,
                    _format_citation(decision),
                    decision.date,
                    title,
                    ", ".join(map(shorten_foreign, decision.supersedes)),
                )
                yield f"| {' | '.join(map(_format_code_span, cells))} |"
            if group.count > MAX_SHOWN_DECISIONS:
                yield from ("", f"And {group.count - MAX_SHOWN_DECISIONS:,} more.")


def _format_code_span(text: str) -> str:
    """Return a text as a code span for a table, in which no link, mention or HTML counts."""
    plain_text = " ".join(text.replace("`", "'").replace("|", "¦").split())
    return f"`{plain_text}`" if plain_text else ""
