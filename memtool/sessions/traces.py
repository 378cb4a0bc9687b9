"""Traces: how often a failure occurred, and how many runs it took until the command worked again.

A trace is one error signature in one command, over all captured sessions. This module owns how
failing runs are counted, when a failure has recurred, and whether the agent had seen a memory of
it.
"""

from __future__ import annotations

from memtool.errors import MemtoolError
from memtool.inject import session_seen
from memtool.memory.memory import split_sections
from memtool.sessions.extract import error_fix
from memtool.sessions.extract.commands import find_targets
from memtool.sessions.extract.failures import compute_failure_key
from memtool.sessions.extract.scene import Scene
from memtool.sessions.model import make_printable
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from memtool.memory.memory import Memory
    from memtool.sessions.model import Message
    from memtool.sessions.store import Sessions
    from memtool.store.context import Context
    from memtool.store.tree import Tree

DIGITS = 2


class Attempt(Value):
    """The runs from the first one with this failure to the one that worked, or the session's end.

    `runs` counts the failing runs of the command from then on, whatever the error. `has_memory` is
    true if the session was shown an older memory of the signature.
    """

    signature: str
    command: str
    session: str
    moment: int
    runs: int
    is_green: bool
    has_memory: bool = False


class FailureTrace(Value):
    """All attempts at one signature in one command.

    `to_green` is the mean number of failing runs until the command worked, over the attempts that
    succeeded; None if none did. The other two are the same for attempts with and without a memory.
    A regression is an attempt that began after an earlier one had succeeded.
    """

    signature: str
    command: str
    sessions: int
    attempts: int
    runs: int
    green: int
    regressions: int
    with_memory: int
    to_green: float | None
    to_green_with_memory: float | None
    to_green_without: float | None


class FailureFix(Value):
    """The contents of an error's memory: signature, command and fix.

    `changes` are the changed lines, empty if the memory has none.
    """

    signature: str
    command: str
    fix: str
    changes: str = ""

    def is_same(self, other: FailureFix) -> bool:
        """Return whether both have the same fix, with the same changes if both record them."""
        are_known = self.changes and other.changes
        return self.fix == other.fix and (not are_known or self.changes == other.changes)


def parse_fix(memory: Memory) -> FailureFix | None:
    """Read the fix that a memory records; None if it has no signature or no fix."""
    signature = memory.text("error_signature")
    texts = {part.title: part.text for part in split_sections(memory.body)} if signature else {}
    fix = texts.get("Fix", "")
    if not fix:
        return None
    return build_fix(signature, texts.get("Command", ""), fix, texts.get("Changes", ""))


def build_fix(signature: str, command: str, fix: str, changes: str = "") -> FailureFix:
    """Build a fix with normalised texts: without fences, extra white space and the final mark."""
    return FailureFix(
        " ".join(signature.split()),
        _strip_fence(command).strip("` "),
        " ".join(fix.split()).rstrip("."),
        _strip_fence(changes),
    )


def _strip_fence(text: str) -> str:
    lines = (line for line in text.splitlines() if line.strip("`"))
    return " ".join(" ".join(lines).split())


def find_attempts(messages: Sequence[Message], session: str) -> list[Attempt]:
    """Return the attempts of one session in the order they began."""
    return [
        Attempt(
            make_printable(episode.failure.signature),
            make_printable(episode.line),
            session,
            episode.run.answer.moment,
            episode.failing,
            is_green=episode.worked >= 0,
        )
        for episode in error_fix.find_episodes(Scene(messages, session))
    ]


def find_traces(context: Context, sessions: Sessions, tree: Tree) -> tuple[FailureTrace, ...]:
    """Return the traces of all readable sessions, most regressions first."""
    memories = _memories_by_failure(tree)
    heads = sorted(sessions.heads()[0], key=lambda head: (head.started, head.id))
    attempts: list[Attempt] = []
    for head in heads:
        try:
            messages, _torn = sessions.messages(head.id)
        except MemtoolError as error:
            context.notes.append(f"{head.id} is passed over: {error.message}")
            continue
        shown = {id_ for id_, _version in session_seen.read(context.repository.cache_dir, head.id)}
        attempts += (
            _with_memory(attempt, memories, shown) for attempt in find_attempts(messages, head.id)
        )
    return tuple(_sum_up(attempts))


def _memories_by_failure(tree: Tree) -> dict[str, list[Memory]]:
    memories: dict[str, list[Memory]] = {}
    for record in tree.records:
        signature = record.memory.text("error_signature")
        if signature:
            memories.setdefault(compute_failure_key(signature), []).append(record.memory)
    return memories


def _with_memory(
    attempt: Attempt, memories: Mapping[str, Sequence[Memory]], shown: Iterable[str]
) -> Attempt:
    """Set whether the attempt's session was shown a memory that already existed."""
    older = (
        memory.id
        for memory in memories.get(compute_failure_key(attempt.signature), ())
        if memory.timestamp < attempt.moment
    )
    return attempt.replace(has_memory=not set(older).isdisjoint(shown))


def _sum_up(attempts: Iterable[Attempt]) -> Iterator[FailureTrace]:
    groups: dict[object, list[Attempt]] = {}
    for attempt in attempts:
        key = compute_failure_key(attempt.signature), find_targets(attempt.command)
        groups.setdefault(key, []).append(attempt)
    made = [_trace(own[0].signature, own[0].command, own) for own in groups.values()]
    yield from sorted(made, key=lambda t: (-t.regressions, -t.runs, t.signature, t.command))


def _trace(signature: str, command: str, own: Sequence[Attempt]) -> FailureTrace:
    first_green = next((n for n, attempt in enumerate(own) if attempt.is_green), len(own))
    return FailureTrace(
        signature=signature,
        command=command,
        sessions=len({attempt.session for attempt in own}),
        attempts=len(own),
        runs=sum(attempt.runs for attempt in own),
        green=sum(attempt.is_green for attempt in own),
        regressions=len(own[first_green + 1 :]),
        with_memory=sum(attempt.has_memory for attempt in own),
        to_green=_mean_runs(own),
        to_green_with_memory=_mean_runs(attempt for attempt in own if attempt.has_memory),
        to_green_without=_mean_runs(attempt for attempt in own if not attempt.has_memory),
    )


def _mean_runs(attempts: Iterable[Attempt]) -> float | None:
    runs = [attempt.runs for attempt in attempts if attempt.is_green]
    return round(sum(runs) / len(runs), DIGITS) if runs else None
