"""The table of a run: how often the right decision was shown, at which cost, and beside what.

An event is a hit if one of the memories that it names is shown. Confidence intervals are over
repositories, drawn with replacement: the events of one repository are alike.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from replay import ALONE, BLOCK, EDITS, LIST, PARTS, PRIMER, PROMPTS, Answer, Row, Text

DRAWS = 2_000
SEED = 7
INTERVAL = (0.025, 0.975)
SESSION, UNLISTED, BELOW, FIVE, TEN, INDEX = (
    "session: primer, list, block, edits",
    "session without the list",
    "session and 5 titles below",
    "5 best titles",
    "10 best titles",
    "index of titles",
)
MAX_SIZE = 10**6
SIZES = ((1, 20), (20, 50), (50, MAX_SIZE))
"""The sizes of stores, in memories, each from the first number on and below the second."""
BLOCK_ALONE = "block alone"
TEXTS = (SESSION, BLOCK_ALONE)
"""The arms that show more than titles."""
ARMS = (SESSION, UNLISTED, BLOCK_ALONE, BELOW, FIVE, TEN, INDEX)
HEAD = (
    "prompt", "arm", "recall", "95 % by repository", "macro", "primer/list/block/edit", "tokens",
    "others", "no prose", "neutral: tokens", "records", "warned",
)  # fmt: skip


@dataclass(frozen=True)
class Shown:
    """What an arm shows for an event: the ids of memories, and the tokens of it all."""

    ids: frozenset[str]
    tokens: float


def show(row: Row, prompt: str, arm: str) -> Shown:
    """Return what an arm shows.

    The tokens of titles are those of an average line in the index of titles.
    """
    line = row.index_tokens / max(1, row.memories)
    if arm == INDEX:
        return Shown(frozenset(row.governing), row.index_tokens)
    answer = row.answers[prompt]
    if arm == BLOCK_ALONE:
        return Shown(frozenset(answer.parts[ALONE].ids), answer.parts[ALONE].tokens)
    if arm in (FIVE, TEN):
        titles = answer.ranked[: 5 if arm == FIVE else 10]
        return Shown(frozenset(titles), len(titles) * line)
    texts = [find_text(answer, part) for part in PARTS if (arm, part) != (UNLISTED, LIST)]
    ids = frozenset(id_ for text in texts for id_ in text.ids)
    tokens = sum(text.tokens for text in texts)
    if arm in (SESSION, UNLISTED):
        return Shown(ids, tokens)
    titles = [id_ for id_ in answer.ranked if id_ not in ids][:5]
    return Shown(ids.union(titles), tokens + len(titles) * line)


def find_text(answer: Answer, part: str) -> Text:
    """Return the text of a part; a run of older code may lack it."""
    return answer.parts.get(part) or Text()


def is_warned(row: Row, prompt: str) -> bool:
    """Return whether an edit brought a memory or a title."""
    return bool(find_text(row.answers[prompt], EDITS).ids)


def is_hit(row: Row, prompt: str, arm: str) -> bool:
    """Return whether an arm shows one of the memories that an event names."""
    return not show(row, prompt, arm).ids.isdisjoint(row.governing)


def count_others(row: Row, prompt: str, arm: str) -> int:
    """Return how many memories an arm shows that the event does not name."""
    if arm == INDEX:
        return row.memories - len(row.governing)
    return len(show(row, prompt, arm).ids.difference(row.governing))


def find_part(row: Row, prompt: str) -> str:
    """Return the first part of a session that shows the right memory, empty if none does."""
    answer, governing = row.answers[prompt], set(row.governing)
    return next((part for part in PARTS if governing & set(find_text(answer, part).ids)), "")


def is_bare(row: Row, prompt: str, arm: str) -> bool:
    """Return whether no memory that an event names is shown with a sentence of its text."""
    answer = row.answers[prompt]
    texts = [find_text(answer, part) for part in (PARTS if arm == SESSION else (ALONE,))]
    readable = {id_ for text in texts for id_ in set(text.ids).difference(text.without_prose)}
    return readable.isdisjoint(row.governing)


def mean(values: Iterable[float]) -> float:
    """Return the mean, 0 of nothing."""
    values = list(values)
    return sum(values) / len(values) if values else 0.0


def bootstrap(groups: Sequence[Sequence[float]]) -> tuple[float, float]:
    """Return the 95 % interval of the mean of all values, if whole groups are drawn."""
    draw = random.Random(SEED)
    means = sorted(
        mean(value for group in draw.choices(groups, k=len(groups)) for value in group)
        for _draw in range(DRAWS)
    )
    low, high = (means[min(DRAWS - 1, round(share * DRAWS))] for share in INTERVAL)
    return low, high


def by_repository(rows: Iterable[Row], value: Callable[[Row], float]) -> list[list[float]]:
    """Return a value of each row, grouped by repository."""
    groups: dict[str, list[float]] = defaultdict(list)
    for row in rows:
        groups[row.repository].append(value(row))
    return list(groups.values())


def is_neutral(row: Row) -> bool:
    """Return whether a commit names no record."""
    return not row.governing and not row.missing


def cells(rows: Sequence[Row], prompt: str, arm: str) -> tuple[str, ...]:
    """Return the row of the table for an arm."""
    events = [row for row in rows if not is_neutral(row)]
    neutral = [row for row in rows if is_neutral(row)]
    hits = by_repository(events, lambda row: is_hit(row, prompt, arm))
    low, high = bootstrap(hits)
    shown = [row for row in events if arm in TEXTS and is_hit(row, prompt, arm)]
    not_titles = arm in (SESSION, UNLISTED)
    parts = "" if arm != SESSION else "/".join(
        f"{mean(find_part(row, prompt) == part for row in events):.2f}"
        for part in (PRIMER, LIST, BLOCK, EDITS)
    )  # fmt: skip
    return (
        "any" if arm == INDEX else prompt,
        arm,
        f"{mean(hit for group in hits for hit in group):.3f}",
        f"{low:.2f} to {high:.2f}",
        f"{mean(map(mean, hits)):.2f}",
        parts,
        f"{mean(show(row, prompt, arm).tokens for row in events):,.0f}",
        f"{mean(count_others(row, prompt, arm) for row in events):.1f}",
        f"{mean(is_bare(row, prompt, arm) for row in shown):.2f}" if shown else "",
        f"{mean(show(row, prompt, arm).tokens for row in neutral):,.0f}" if neutral else "",
        f"{mean(count_others(row, prompt, arm) for row in neutral):.1f}" if neutral else "",
        f"{mean(is_warned(row, prompt) for row in neutral):.0%}" if neutral and not_titles else "",
    )


def format_table(rows: Iterable[Sequence[str]]) -> str:
    """Return rows as a table in Markdown, the first one as its head."""
    lines = [f"| {' | '.join(row)} |" for row in rows]
    columns = lines[0].count("|") - 1
    return "\n".join([lines[0], "|---" * columns + "|", *lines[1:]])


def format_scores(rows: Sequence[Row]) -> str:
    """Return the table of all arms with both prompts, and what it is about."""
    events = [row for row in rows if not is_neutral(row)]
    if not events:
        return "no events"
    arms = [(prompt, arm) for prompt in PROMPTS for arm in ARMS if arm != INDEX]
    table = [cells(rows, prompt, arm) for prompt, arm in [*arms, (PROMPTS[0], INDEX)]]
    names = {row.repository for row in events}
    refused = sum(bool(row.missing) for row in events)
    title = (
        f"{len(events)} events of {len(names)} repositories, {len(rows) - len(events)} neutral "
        f"commits; {refused} events name a record that the import refused"
    )
    return f"{title}\n\n{format_table([HEAD, *table])}"


def format_sizes(rows: Sequence[Row]) -> str:
    """Return a table by the size of the store, next to the cost of the index of titles."""
    head = ("memories", "events", *(f"recall, {prompt}" for prompt in PROMPTS), "index",
            *(f"tokens, {prompt}" for prompt in PROMPTS), "index")  # fmt: skip
    table = []
    for low, high in SIZES:
        events = [row for row in rows if low <= row.memories < high and not is_neutral(row)]
        if events:
            table.append((
                f"{low} to {high - 1}" if high < MAX_SIZE else f"{low} or more",
                f"{len(events)}",
                *(f"{mean(is_hit(row, prompt, SESSION) for row in events):.2f}"
                  for prompt in PROMPTS),
                f"{mean(is_hit(row, PROMPTS[0], INDEX) for row in events):.2f}",
                *(f"{mean(show(row, prompt, SESSION).tokens for row in events):,.0f}"
                  for prompt in PROMPTS),
                f"{mean(row.index_tokens for row in events):,.0f}",
            ))  # fmt: skip
    return format_table([head, *table])


def format_repositories(rows: Sequence[Row]) -> str:
    """Return a table with the recall of each repository."""
    head = ("repository", "group", "events", "memories", *(
        f"{arm}, {prompt}" for arm in (SESSION, FIVE) for prompt in PROMPTS
    ), "CPU s an event")  # fmt: skip
    table = []
    for name in dict.fromkeys(row.repository for row in rows):
        events = [row for row in rows if row.repository == name and not is_neutral(row)]
        if events:
            recalls = [mean(is_hit(row, prompt, arm) for row in events)
                       for arm in (SESSION, FIVE) for prompt in PROMPTS]  # fmt: skip
            table.append((
                name,
                events[0].group,
                f"{len(events)}",
                f"{mean(row.memories for row in events):.0f}",
                *(f"{recall:.2f}" for recall in recalls),
                f"{mean(row.seconds for row in events):.1f}",
            ))  # fmt: skip
    return format_table([head, *table])


def format_comparison(rows: Sequence[Row], before: Sequence[Row]) -> str:
    """Return the events that each arm wins and loses against another run, and its tokens."""
    old = {row.commit: row for row in before}
    pairs = [(row, old[row.commit]) for row in rows if row.commit in old]
    head = ("prompt", "arm", "events", "wins", "losses", "tokens", "neutral: tokens", "records")
    table = [compare(pairs, prompt, arm) for prompt in PROMPTS for arm in ARMS if arm != INDEX]
    return format_table([head, *table])


def compare(pairs: Sequence[tuple[Row, Row]], prompt: str, arm: str) -> tuple[str, ...]:
    """Return the row of the comparison for an arm, given the new and the old row of events."""
    events = [pair for pair in pairs if not is_neutral(pair[0])]
    neutral = [pair for pair in pairs if is_neutral(pair[0])]
    hits = [tuple(is_hit(row, prompt, arm) for row in pair) for pair in events]

    def count_tokens(row: Row) -> float:
        return show(row, prompt, arm).tokens

    def count_records(row: Row) -> float:
        return count_others(row, prompt, arm)

    return (
        prompt,
        arm,
        f"{len(events)}",
        f"{hits.count((True, False))}",
        f"{hits.count((False, True))}",
        f"{mean(count_tokens(new) - count_tokens(old) for new, old in events):+,.0f}",
        f"{mean(count_tokens(new) - count_tokens(old) for new, old in neutral):+,.0f}",
        f"{mean(count_records(new) - count_records(old) for new, old in neutral):+.1f}",
    )


def format_misses(rows: Sequence[Row], prompt: str) -> str:
    """Return the events that a session misses, with the rank of the memory in a search."""
    lines = []
    for row in rows:
        if not is_neutral(row) and not is_hit(row, prompt, SESSION):
            ranked = row.answers[prompt].ranked
            ranks = [str(ranked.index(id_) + 1) if id_ in ranked else "-" for id_ in row.governing]
            names = ", ".join(
                f"{id_} at {rank}" for id_, rank in zip(row.governing, ranks, strict=True)
            )
            lines.append(f"{row.repository} {row.commit[:10]} {prompt}: {names or 'refused'}")
    return "\n".join(lines)
