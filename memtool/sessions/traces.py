"""Traces: how often a failure came, and how many runs it took until the command worked again.

A trace is one error signature in one command, over all captured sessions. It owns how failing runs
are counted, when a failure came back, and whether a memory of it was at hand.
"""

from __future__ import annotations

from memtool.errors import MemtoolError
from memtool.inject import session_seen
from memtool.memory.memory import sections
from memtool.sessions.extract.error_fix import command_of, failure_of
from memtool.sessions.extract.scene import Scene
from memtool.sessions.model import printable
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
    """One way from the first run that failed so to the run that worked, or to the session's end.

    `runs` counts the failing runs of the command from then on, whatever else they failed with;
    `has_memory` says that the session was shown a memory of the signature that is older.
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

    `to_green` are the failing runs until it worked, on average over the attempts that got there,
    None where none did; then the same for attempts with and without a memory. A regression is an
    attempt that began after an earlier one had worked.
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
    """What a memory of an error says: its signature, the command that failed, what resolved it.

    `changes` are the lines that were changed, empty where a memory does not say.
    """

    signature: str
    command: str
    fix: str
    changes: str = ""

    def is_same(self, other: FailureFix) -> bool:
        """Tell whether both name the same fix, with the same changes where both say which."""
        are_known = self.changes and other.changes
        return self.fix == other.fix and (not are_known or self.changes == other.changes)


def fix_of(memory: Memory) -> FailureFix | None:
    """Return what a memory says of a failure, None where it names no signature or no fix."""
    signature = memory.text("error_signature")
    texts = {part.title: part.text for part in sections(memory.body)} if signature else {}
    fix = texts.get("Fix", "")
    if not fix:
        return None
    return fix_of_texts(signature, texts.get("Command", ""), fix, texts.get("Changes", ""))


def fix_of_texts(signature: str, command: str, fix: str, changes: str = "") -> FailureFix:
    """Return a fix whose texts are compared without fences, white space and the last mark."""
    return FailureFix(
        " ".join(signature.split()),
        _unfenced(command).strip("` "),
        " ".join(fix.split()).rstrip("."),
        _unfenced(changes),
    )


def _unfenced(text: str) -> str:
    lines = (line for line in text.splitlines() if line.strip("`"))
    return " ".join(" ".join(lines).split())


def attempts_of(messages: Sequence[Message], session: str) -> list[Attempt]:
    """Return the attempts of one session in the order in which they began."""
    scene = Scene(messages, session)
    found: list[Attempt] = []
    going: dict[str, dict[str, int]] = {}
    for run in scene.runs:
        command = command_of(scene, run)
        if not command:
            continue
        current = going.setdefault(command, {})
        if run.is_ok is False:
            for at in current.values():
                found[at] = found[at].replace(runs=found[at].runs + 1)
            failure = failure_of(run.answer.text)
            signature = printable(failure.signature) if failure else ""
            if signature and signature not in current:
                current[signature] = len(found)
                moment = run.answer.moment
                found.append(
                    Attempt(signature, printable(command), session, moment, 1, is_green=False)
                )
        elif run.is_ok:
            for at in current.values():
                found[at] = found[at].replace(is_green=True)
            current.clear()
    return found


def traces(context: Context, sessions: Sessions, tree: Tree) -> tuple[FailureTrace, ...]:
    """Return the traces of all sessions that can be read: what came back most first."""
    known = _known(tree)
    heads = sorted(sessions.heads()[0], key=lambda head: (head.started, head.id))
    found: list[Attempt] = []
    for head in heads:
        try:
            messages, _torn = sessions.messages(head.id)
        except MemtoolError as error:
            context.notes.append(f"{head.id} is passed over: {error.message}")
            continue
        shown = {id_ for id_, _version in session_seen.read(context.repository.cache_dir, head.id)}
        found += (_with_memory(one, known, shown) for one in attempts_of(messages, head.id))
    return tuple(_summed(found))


def _known(tree: Tree) -> dict[str, list[Memory]]:
    known: dict[str, list[Memory]] = {}
    for record in tree.records:
        signature = record.memory.text("error_signature")
        if signature:
            known.setdefault(signature, []).append(record.memory)
    return known


def _with_memory(
    one: Attempt, known: Mapping[str, Sequence[Memory]], shown: Iterable[str]
) -> Attempt:
    """Return an attempt that knows whether its session was shown a memory that was there before."""
    older = (memory.id for memory in known.get(one.signature, ()) if memory.timestamp < one.moment)
    return one.replace(has_memory=not set(older).isdisjoint(shown))


def _summed(attempts: Iterable[Attempt]) -> Iterator[FailureTrace]:
    groups: dict[tuple[str, str], list[Attempt]] = {}
    for one in attempts:
        groups.setdefault((one.signature, one.command), []).append(one)
    made = [_trace(signature, command, own) for (signature, command), own in groups.items()]
    yield from sorted(made, key=lambda t: (-t.regressions, -t.runs, t.signature, t.command))


def _trace(signature: str, command: str, own: Sequence[Attempt]) -> FailureTrace:
    first_green = next((n for n, one in enumerate(own) if one.is_green), len(own))
    return FailureTrace(
        signature=signature,
        command=command,
        sessions=len({one.session for one in own}),
        attempts=len(own),
        runs=sum(one.runs for one in own),
        green=sum(one.is_green for one in own),
        regressions=len(own[first_green + 1 :]),
        with_memory=sum(one.has_memory for one in own),
        to_green=_mean(own),
        to_green_with_memory=_mean(one for one in own if one.has_memory),
        to_green_without=_mean(one for one in own if not one.has_memory),
    )


def _mean(attempts: Iterable[Attempt]) -> float | None:
    runs = [one.runs for one in attempts if one.is_green]
    return round(sum(runs) / len(runs), DIGITS) if runs else None
