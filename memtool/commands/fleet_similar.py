"""`memtool fleet similar`: what several repositories decided alike, to the contrary, or gave up."""

from __future__ import annotations

from typing import Any, Literal

from memtool.commands._render import columns
from memtool.errors import MemtoolError
from memtool.fleet import similar
from memtool.fleet.similar import KINDS, Comparison, FleetDecision, SharedDecision
from memtool.index import index
from memtool.memory import timestamps
from memtool.search import conflicts
from memtool.store.context import Context
from memtool.store.provenance import SHORT
from memtool.value import Value, plural

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

TEXT, MARKDOWN = "text", "markdown"
MOST_SECONDS = 3_600
MOST_NAMED = 20
"""Decisions of one group that are shown; a hundred repositories may have copied one."""


class FleetSimilar(Value):
    """What is shared, the contrary first; `about` is the id that was asked about, empty for all.

    `kinds` counts all groups by kind, also those beyond the limit. `compared` is how many memories
    were compared, of so many `repositories`, and `left_out` says what the time did not suffice for.
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
        """How many groups there are, with those beyond the limit."""
        return sum(self.kinds.values())

    @property
    def is_cut(self) -> bool:
        """Whether the time did not suffice."""
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
    """Say what other repositories decided alike, or to the contrary, and what they gave up.

    Compared are a memory and what the fleet has about it, or all decisions of this repository. Two
    say the same in nearly the same words, or where they state the same in title or first sentence;
    they contradict each other as for memtool conflicts. A repository that replaced a memory which
    another one still holds under the same id is listed, too. Each decision stands with its
    repository, its commit and what it replaced.

    With --all every decision of every repository on this machine is compared with all others, as
    memtool fleet sync left them: 10,000 take some seconds, 100,000 about a minute. What the time
    did not suffice for is said. A server is asked about some memories and never for all of them,
    so that --all is not for one.

    Words are compared, in English, and only title and first sentence for what is contrary: who
    puts the same decision quite differently is not found.

    Example:
        memtool fleet similar --all --format markdown > report.md

    Args:
        id: a memory of this repository, by id or words of it; by default all its decisions
        all: all decisions of all repositories of the fleet that are on this machine
        limit: most groups to show, 0 for all; the summary counts all of them
        seconds: time after which what was found is shown, and said to be cut
        format: text, or markdown for a report
    """
    if id and all:
        raise MemtoolError("an id and --all do not go together", hint=f"memtool fleet similar {id}")
    if not 1 <= seconds <= MOST_SECONDS:
        raise MemtoolError(
            f"--seconds {seconds} is not between 1 and {MOST_SECONDS:,}",
            hint="memtool fleet similar --seconds 60",
        )
    about = ""
    most = limit if limit > 0 else None
    if all:
        found = similar.compare_fleet(context, seconds, most)
    elif id:
        record = index.open(context).find(id)
        about = record.id
        if not similar.counts(record.memory):
            raise MemtoolError(
                f"{record.id} is a {record.memory.type}: only decisions and semantic memories "
                "claim what others may share",
                hint="memtool fleet similar compares all decisions of this repository",
            )
        found = similar.compare_project(context, [record], seconds, most)
    else:
        found = similar.compare_project(context, _decisions(context), seconds, most)
    return _answer(context, found, about).replace(format=format)


def _decisions(context: Context) -> list[Any]:
    tree = index.open(context)
    living = conflicts.living(tree, context.clock.now)
    return [one for one in living if one.memory.type == "decision" and similar.counts(one.memory)]


def _answer(context: Context, found: Comparison, about: str) -> FleetSimilar:
    total = sum(found.kinds.values())
    if found.left_out:
        context.notes.append(f"the time ran out: {found.left_out}; --seconds gives it longer")
    if len(found.shared) < total:
        context.notes.append(
            f"{len(found.shared)} of {total} groups are shown; --limit 0 shows all"
        )
    return FleetSimilar(
        about,
        found.shared,
        {kind: found.kinds[kind] for kind in KINDS if kind in found.kinds},
        found.compared,
        found.repositories,
        found.left_out,
        timestamps.render(context.clock.now),
    )


def render(found: FleetSimilar) -> str:
    """Return a group after the other and a line about all, as text or as markdown."""
    rows = _markdown(found) if found.format == MARKDOWN else _text(found)
    return "\n".join(rows)


def _text(found: FleetSimilar) -> Iterator[str]:
    for group in found.shared:
        yield f"{group.kind}: {group.reason}"
        yield from (f"  {row}" for row in columns(map(_row, _named(group))))
        if group.count > MOST_NAMED:
            yield f"  and {group.count - MOST_NAMED:,} more"
        yield ""
    yield _summary(found)


def _row(one: FleetDecision) -> Sequence[str]:
    replaced = f"replaces {', '.join(one.supersedes)}" if one.supersedes else ""
    return one.repository, _cited(one), one.date, one.title, one.value, replaced


def _cited(one: FleetDecision) -> str:
    return f"{one.id}@{one.commit[:SHORT] or 'local'}"


def _named(group: SharedDecision) -> Sequence[FleetDecision]:
    return group.decisions[:MOST_NAMED]


def _summary(found: FleetSimilar) -> str:
    kinds = ", ".join(f"{count:,} {kind}" for kind, count in found.kinds.items())
    what = plural(found.total, "group")
    told = f"{what} ({kinds})" if kinds else "nothing is shared"
    memories = plural(found.compared, "memory", "memories")
    whose = plural(found.repositories, "repository", "repositories")
    return f"{told} among {memories} of {whose}{', cut for time' if found.left_out else ''}"


def _markdown(found: FleetSimilar) -> Iterator[str]:
    """Yield the report. What others wrote stands in code spans, where nothing means anything."""
    yield "# Decisions that repositories share"
    yield ""
    yield f"{found.made[:10]}: {_summary(found)}."
    for kind, said in KINDS.items():
        groups = [one for one in found.shared if one.kind == kind]
        if groups:
            yield from ("", f"## {kind.capitalize()}: {said}")
        for group in groups:
            yield from ("", _code(group.reason), "")
            yield "| repository | decision | day | title | replaced |"
            yield "|---|---|---|---|---|"
            for one in _named(group):
                title = f"{one.title}: {one.value}" if one.value else one.title
                cells = (one.repository, _cited(one), one.date, title, ", ".join(one.supersedes))
                yield f"| {' | '.join(map(_code, cells))} |"
            if group.count > MOST_NAMED:
                yield from ("", f"And {group.count - MOST_NAMED:,} more.")


def _code(text: str) -> str:
    """Return a text as a code span of a table: no link, mention, mark or HTML in it counts."""
    plain_text = " ".join(text.replace("`", "'").replace("|", "¦").split())
    return f"`{plain_text}`" if plain_text else ""
