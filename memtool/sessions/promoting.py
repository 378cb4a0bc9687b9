"""Promoting: a finding as a memory, and the journal of what was promoted.

The journal stands beside the sessions and maps findings to memories, so that nothing is promoted
twice, and nothing again that somebody has forgotten since.
"""

from __future__ import annotations

import os

from memtool.memory import timestamps
from memtool.sessions import finding as findings
from memtool.sessions import journal
from memtool.sessions.claim import printable
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from memtool.memory.memory import Fields
    from memtool.sessions.finding import Finding
    from memtool.sessions.head import Head
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


class Draft(Value):
    """What a memory is made of: its type, keys, statement and sections as `NAME=TEXT`."""

    type: str
    title: str
    fields: Fields
    statement: str
    sections: tuple[str, ...] = ()


def draft(finding: Finding, head: Head | None) -> Draft:
    """Return a finding as a candidate memory, with the messages that back it as its sources."""
    fields: Fields = {
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
    type_ = TYPES.get(finding.category, "semantic")
    parts = tuple(_sections(finding, head)) if type_ == "episodic" else ()
    return Draft(type_, finding.title, fields, finding.content, parts)


def sources(finding: Finding) -> tuple[str, ...]:
    """Return the messages of a finding as sources: `session:ID#N`."""
    return tuple(f"session:{finding.session}#{number}" for number in finding.messages)


def one_line(text: str) -> str:
    """Return a text as a key of a memory holds it: one line, not too long."""
    return " ".join(printable(text).split())[:MOST_LINE]


def _sections(finding: Finding, head: Head | None) -> Iterable[str]:
    """Yield the sections of a trace, as far as the session tells; with a fix there are all."""
    if not finding.field("fix"):
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
    made = Promotion(
        finding.id, findings.fingerprint(finding.content), finding.session, memory, now, is_new
    )
    journal.append(os.path.join(sessions.directory, JOURNAL), [made.plain()])
    return made


def said_at(finding: Finding, head: Head | None) -> int:
    """Return the second in which a finding was last said, 0 where nobody knows."""
    text = finding.field("said")
    try:
        return timestamps.parse(text) if text else (head.started if head else 0)
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
