"""Promotion: which findings have enough evidence, and how one becomes a memory.

The journal of promotions is beside the sessions and maps findings to memories, so that nothing is
promoted twice, and nothing again that somebody has forgotten since. Two findings that say nearly
the same support each other. What becomes of a candidate after its first day is decided here too,
and so is the number of findings that wait, which a session that starts reads at no cost.
"""

from __future__ import annotations

import os

from memtool.errors import MemtoolError
from memtool.memory import moments
from memtool.sessions import journal
from memtool.sessions.model import fingerprint, printable
from memtool.store.reading import read_regular
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Literal

    from memtool.memory.memory import Fields, Memory
    from memtool.sessions.model import Finding, Head
    from memtool.sessions.store import Sessions

JOURNAL = "promotions.jsonl"
TYPES = {"decision": "decision", "architecture": "decision", "error": "episodic"}
"""The type of memory for a category; all others are semantic."""
MOST_LINE = 300
ROOT_STEPS = 100
"""Forks of forks that are followed: a circle in damaged heads ends there."""


class Promotion(Value):
    """One row: which finding became, or strengthened, which memory, and when."""

    finding: str
    fingerprint: str
    session: str
    memory: str
    moment: int
    is_new: bool = True


def type_of(finding: Finding) -> str:
    """Return the type of the memory that a finding becomes."""
    return TYPES.get(finding.category, "semantic")


def fields_of(finding: Finding, head: Head | None) -> Fields:
    """Return the keys of a finding as a candidate, with the messages that back it as sources."""
    return {
        "category": finding.category,
        "status": "candidate",
        "confidence": finding.confidence,
        "source": sources(finding),
        "tags": finding.tags,
        "files": finding.files,
        "importance": f"{finding.importance:g}",
        "error_signature": one_line(finding.field("error_signature")),
        "agent": one_line(finding.field("agent") or (head.agent if head else "")),
        "session": finding.session,
    }


def sources(finding: Finding) -> tuple[str, ...]:
    """Return the messages of a finding as sources: `session:ID#N`."""
    return tuple(f"session:{finding.session}#{number}" for number in finding.messages)


def one_line(text: str) -> str:
    """Return a text as a key of a memory holds it: one line, not too long."""
    return " ".join(printable(text).split())[:MOST_LINE]


def sections_of(finding: Finding, head: Head | None) -> Iterable[str]:
    """Yield the sections of a trace as `NAME=TEXT`; only an error with its fix has them all."""
    if type_of(finding) != "episodic" or not finding.field("fix"):
        return
    branch = f", on the branch {head.branch}" if head and head.branch else ""
    yield f"Command={_code(finding.field('command') or 'not known')}"
    yield f"Failure={_code(finding.field('failure'))}"
    yield f"Changes={_code(finding.field('changes') or 'no file was changed')}"
    yield f"Environment=Seen in session {finding.session}{branch}."
    yield f"Fix={finding.field('fix')}."


def _code(text: str) -> str:
    """Return a text as code that no part of it can end."""
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}\n{text}\n{fence}"


def promotions(sessions: Sessions) -> list[Promotion]:
    """Return what was promoted in this clone, oldest first. Raises MemtoolError."""
    rows, _torn = journal.read(os.path.join(sessions.directory, JOURNAL))
    kinds = {"finding": str, "fingerprint": str, "session": str, "memory": str, "moment": int}
    return [
        Promotion(**{name: row[name] for name in kinds}, is_new=row.get("is_new") is not False)
        for row in rows
        if all(type(row.get(name)) is kind for name, kind in kinds.items())
    ]


def record(
    sessions: Sessions, finding: Finding, memory: str, now: int, *, is_new: bool
) -> Promotion:
    """Note that a finding became a memory, or strengthened one. Raises MemtoolError."""
    made = Promotion(finding.id, fingerprint(finding.content), finding.session, memory, now, is_new)
    journal.append(os.path.join(sessions.directory, JOURNAL), [made.plain()])
    return made


def said_at(finding: Finding, head: Head | None) -> int:
    """Return the second in which a finding was last said, 0 where nobody knows."""
    text = finding.field("said")
    try:
        return moments.parse(text) if text else (head.started if head else 0)
    except ValueError:
        return head.started if head else 0


def roots(heads: Iterable[Head]) -> dict[str, str]:
    """Return for each session the one that it was forked from in the end, itself without one."""
    parents = {head.id: head.parent for head in heads}
    found = {}
    for id_ in parents:
        root = id_
        for _step in range(ROOT_STEPS):
            if not parents.get(root):
                break
            root = parents[root]
        found[id_] = root
    return found


LIKENESS = 0.7
"""Two findings with this likeness say the same: words that people speak differ more than files."""
MOST_COMPARED = 12
"""Findings that one is compared with in full: those that share most words."""


class Support(Value):
    """How many sessions and agents say what a finding says, its own included."""

    sessions: int
    agents: int


def supports(all_: Sequence[Finding], roots: Mapping[str, str]) -> dict[str, Support]:
    """Return the support of each finding by its id.

    `roots` maps a session to the one that it was forked from in the end: a fork repeats what its
    parent heard, and is no second witness.
    """
    exact: dict[str, list[int]] = {}
    for at, one in enumerate(all_):
        exact.setdefault(fingerprint(one.content), []).append(at)
    groups = list(exact.values())
    near = _near([all_[group[0]] for group in groups])
    found: dict[str, Support] = {}
    for number, group in enumerate(groups):
        same = [at for other in (number, *near[number]) for at in groups[other]]
        sessions = {roots.get(all_[at].session, all_[at].session) for at in same}
        agents = {name for at in same if (name := all_[at].field("agent"))}
        for at in group:
            found[all_[at].id] = Support(len(sessions), max(1, len(agents)))
    return found


def _near(heads: Sequence[Finding]) -> list[list[int]]:
    """Return for each finding the others that say nearly the same, by their places."""
    from memtool.gate import near_duplicates  # a session that starts reads but a number here

    memories = [as_memory(one) for one in heads]
    words = [near_duplicates.words_in(one) for one in memories]
    near = near_duplicates.joined(words, MOST_COMPARED)
    pairs = {tuple(sorted((at, other))) for at, others in enumerate(near) for other in others}
    found: list[list[int]] = [[] for _one in heads]
    for one, other in sorted(pairs):
        if near_duplicates.likeness(memories[one], memories[other]) >= LIKENESS:
            found[one].append(other)
            found[other].append(one)
    return found


def as_memory(finding: Finding) -> Memory:
    """Return a finding as a memory that compares with others; it has no id and is not written."""
    from memtool.memory.memory import Memory

    return Memory(fields={"type": "semantic", "title": finding.content}, body="")


QUARANTINE_S = 24 * 3600
FADE = 0.8
"""A candidate that nobody looked at weighs this much of its importance."""


class Quarantine(Value):
    """`wait`, `confirm`, `fade`, or `none` for what is no candidate; and the importance by then.

    Nothing is written here. `memtool maintain` proposes the change of the file, and commits it when
    it is asked to; a file that says `faded` does so no second time.
    """

    state: Literal["none", "wait", "confirm", "fade"]
    importance: float


def quarantine(status: str, importance: float, written: int, accesses: int, now: int) -> Quarantine:
    """Return what becomes of a memory; `written` and `now` are seconds, accesses since then.

    A clock that runs behind the one that wrote it lets it wait.
    """
    if status != "candidate":
        return Quarantine("none", importance)
    if now - written < QUARANTINE_S:
        return Quarantine("wait", importance)
    if accesses > 0:
        return Quarantine("confirm", importance)
    return Quarantine("fade", round(importance * FADE, 4))


WAITING = "waiting"
_MOST_WAITING = 20


def note_waiting(directory: str, count: int) -> None:
    """Note the number beside the sessions; not if it is there, or the disk refuses."""
    if count == waiting(directory):
        return
    try:
        journal.put(os.path.join(directory, WAITING), b"%d\n" % count)
    except MemtoolError:
        return


def waiting(directory: str) -> int:
    """Return the number that was noted last, 0 for none."""
    try:
        said = read_regular(os.path.join(directory, WAITING), _MOST_WAITING).strip()
    except OSError:
        return 0
    return int(said) if said.isdigit() else 0
