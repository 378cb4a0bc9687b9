"""What a change takes away, as text and as findings of a report of `memtool review`."""

from __future__ import annotations

from memtool.commands._layout import Layout, measure
from memtool.commands._render import format_acts
from memtool.memory.premises import ACTS, BROKEN, FAULTS
from memtool.reports.report import ERROR, WARNING, Finding, Task, TaskGroup, to_line
from memtool.search.premise_changes import VOUCHED, PremiseReview
from memtool.value import Value, first_few, format_count

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from memtool.search.premise_changes import Conclusion, PremiseChange

UNSETTLED = "unsettled"
"""The code of a finding about a conclusion."""
WARN, FAIL = "warn", "fail"
"""The values of a policy."""
MAX_CHANGES = 10
MAX_CONCLUSIONS = 10
MAX_MENTIONS = 5
"""Rows of the text for all premises, for one of them, and for places that name it."""
MAX_INDENTED = 6
"""Conclusions further up are indented no further."""
MAX_NAMED, MAX_SETTLED = 5, 10
TARGET = "the target branch"
"""Names the branch that the change goes into in a comment, which quotes no name of a branch."""
LOWEST = " and all that rest on the same directly"
HEADING = "Settle in this change (if one still holds, so does what rests on it):"


class PremisesPart(Value):
    """The premises of a review, and what their text needs.

    `branch` is the name of the branch that the change goes into, and `shorten` gives short ids.
    """

    review: PremiseReview
    branch: str
    policy: str
    shorten: Callable[[str], str]

    @property
    def is_refused(self) -> bool:
        """Whether a confirmed memory is left and the policy is to fail."""
        return self.policy == FAIL and self.review.vouched > 0


def count_unsettled(review: PremiseReview) -> str:
    """Return how many memories rest on what the change takes away; empty for none."""
    if not review.unsettled:
        return ""
    counted = format_count(review.unsettled, "memory rests", "memories rest")
    return f"{counted} on what this change takes away"


def format_part(part: PremisesPart, layout: Layout) -> list[str]:
    """Return the premises with what rests on them, how to settle, and what is settled."""
    review = part.review
    rows = []
    if review.changes:
        rows.append(count_unsettled(review))
        heading = ""
        for change in review.changes[:MAX_CHANGES]:
            lines = [*_format_change(change, part, layout)]
            same = 1 if change.reason == BROKEN and lines[0] == heading else 0
            rows += lines[same:]
            heading = lines[0]
        hidden = len(review.changes) - MAX_CHANGES
        if hidden > 0:
            rows.append(layout.hint(f"and {hidden:,} more premises (--json lists them)"))
        rows += _format_acts(part)
        if review.earlier:
            counted = format_count(review.earlier, "memory was", "memories were")
            rows.append(layout.hint(f"{counted} unsettled before (memtool list is:unsettled)"))
    if review.settled:
        names = [part.shorten(row.id) for row in review.settled]
        rows += layout.wrap(to_line(f"Settled by this change: {first_few(names, MAX_SETTLED)}"))
    if part.is_refused:
        counts = f"{review.vouched:,} confirmed"
        rows.append(to_line(f"Refused: {counts} (review.unsettled = fail on {part.branch})"))
    return rows


def _format_change(change: PremiseChange, part: PremisesPart, layout: Layout) -> Iterator[str]:
    """Yield the lines of one premise; of a broken one the first line is what is gone."""
    name = part.shorten(change.id)
    on_target = f", on {part.branch}" * change.on_target
    if change.reason == BROKEN:
        yield to_line(f"{change.detail}{on_target}")
        yield from _format_row("  ", f"names it: {change.title}", name, layout)
    else:
        yield from _format_row("", change.title, name, layout)
    for head in change.heads:
        place = f", on {part.branch}" * head.on_target
        text = f"is now{place}: {head.title}"
        yield from _format_row("  ", text, part.shorten(head.id), layout)
    if not change.heads and change.reason != BROKEN:
        yield f"  {_describe_fault(change)}{on_target}"
    for row in change.conclusions[:MAX_CONCLUSIONS]:
        depth = row.depth + (change.reason == BROKEN)
        text = f"{_label(row, depth, part.branch)}: {row.title}"
        indent = "  " * min(depth, MAX_INDENTED)
        yield from _format_row(indent, text, part.shorten(row.id), layout)
    hidden = change.count - sum(
        not row.was_unsettled for row in change.conclusions[:MAX_CONCLUSIONS]
    )
    if hidden > 0:
        yield layout.hint(f"  and {hidden:,} more (--json lists them)")
    for mention in change.mentions[:MAX_MENTIONS]:
        place = mention.path if mention.is_rule else f"{mention.path}:{mention.line}"
        text = f"in a digest ({mention.command})" if mention.command else f"named in {place}"
        yield from _format_row("  ", text, part.shorten(mention.id), layout)
    hidden = len(change.mentions) - MAX_MENTIONS
    if hidden > 0:
        yield layout.hint(f"  and {hidden:,} more places (--json lists them)")


def _describe_fault(change: PremiseChange) -> str:
    """Return why a premise no longer holds, as a clause."""
    return FAULTS.get(change.reason, "{} supersedes itself").format("it")


def _label(row: Conclusion, depth: int, branch: str) -> str:
    """Return how a conclusion is related to the line above it."""
    label = "rests on it" if depth == 1 else "rests on that"
    if row.is_new:
        return f"new here, {label}"
    if row.on_target:
        return f"on {branch}, {label}"
    return f"{label}, as before" if row.was_unsettled else label


def _format_row(indent: str, text: str, name: str, layout: Layout) -> list[str]:
    """Return a text with an id at the right edge; of a long text, the id is on the next line."""
    text = to_line(text)  # an answer of --json may have been changed
    room = layout.prose_width - measure(indent + text) - measure(name)
    if not layout.width:
        return [f"{indent}{text}  {name}"]
    if room >= 2:
        return [indent + text + " " * room + name]
    return [*layout.wrap(text, indent), name.rjust(layout.prose_width)]


def _format_acts(part: PremisesPart) -> list[str]:
    lowest = [*dict.fromkeys(id_ for change in part.review.changes for id_ in change.lowest)]
    heading = HEADING
    if part.review.needs_target:
        heading = f"Take {part.branch} in first (git merge {part.branch}), then settle:"
    rows = [to_line(heading)]
    rows += [f"  {act}" for act in format_acts(to_line(part.shorten(lowest[0])))]
    if len(lowest) > 1:
        names = [part.shorten(id_) for id_ in lowest[1:]]
        rows.append("  " + to_line(f"and so for {first_few(names, MAX_NAMED, LOWEST)}"))
    return rows


# Reports


def build_findings(part: PremisesPart) -> Iterator[Finding]:
    """Yield a finding for each of the lowest conclusions, at a line of the change if there is one.

    The level counts what rests on it.
    """
    for change in part.review.changes:
        what = _describe(change, part)
        for lowest, above in _group_by_lowest(change):
            rows = (lowest, *above)
            is_vouched = any(row.status in VOUCHED and not row.was_unsettled for row in rows)
            counted = format_count(len(above), "memory", "memories")
            ending = f", and {counted} on that" if above else ""
            settled_id = change.id if change.reason == BROKEN else lowest.id
            hints = [command.format(part.shorten(settled_id)) for _when, command in ACTS]
            if part.review.needs_target:
                hints.insert(0, f"git merge {part.branch}")
            yield Finding(
                code=UNSETTLED,
                level=ERROR if part.policy == FAIL and is_vouched else WARNING,
                label="Rests on it:",
                by=lowest.title,
                message=f"{what}; {part.shorten(lowest.id)} rests on it{ending}",
                path=change.path or lowest.path,
                line=change.line if change.path else lowest.line,
                id=lowest.id,
                hint="\n".join(hints),
                is_task=True,
            )


def _describe(change: PremiseChange, part: PremisesPart) -> str:
    """Return what became of a premise, as a clause with short ids."""
    name = part.shorten(change.id)
    place = f", on {part.branch}" * change.on_target
    if change.heads:
        return f"{name} is now {' and '.join(part.shorten(h.id) for h in change.heads)}{place}"
    if change.reason == BROKEN:
        return f"{change.detail}, which {name} names{place}"
    return f"{name}: {_describe_fault(change)}{place}"


def _group_by_lowest(change: PremiseChange) -> list[tuple[Conclusion, list[Conclusion]]]:
    """Return each of the lowest conclusions with those that rest on it."""
    groups: list[tuple[Conclusion, list[Conclusion]]] = []
    for row in change.conclusions:
        if row.depth == 1:
            groups.append((row, []))
        else:
            groups[-1][1].append(row)
    return groups


def build_tasks(part: PremisesPart) -> Iterator[TaskGroup]:
    """Yield the conclusions of each premise as tasks, with the places that name them."""
    for change in part.review.changes:
        subject, titles = change.title or change.id, [head.title for head in change.heads]
        clause = "is now" if titles else f"no longer holds: {_describe_fault(change)}"
        if change.reason == BROKEN:
            subject, titles, clause = change.detail, [change.title], "is named by"
        yield TaskGroup(
            subject=subject,
            clause=clause,
            branch=part.branch if change.on_target else "",
            titles=tuple(titles),
            tasks=tuple(
                Task(row.depth, _label(row, row.depth, TARGET), part.shorten(row.id), row.title)
                for row in change.conclusions
            ),
            places=tuple(
                mention.command or f"{mention.path}:{mention.line}" for mention in change.mentions
            ),
        )
