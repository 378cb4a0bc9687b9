"""Deepening: what the private sessions of this clone say to a question, for `search --deep`.

The last level, below digests and memories: findings first, then messages. It is evidence that
nobody has vouched for, of this clone alone, so it is asked only on demand and shown apart.
"""

from __future__ import annotations

from memtool.commands import sessions as telling
from memtool.errors import MemtoolError
from memtool.index.analyzer import is_stop, terms
from memtool.search.snippet import snippet
from memtool.sessions import findings
from memtool.value import Value
from memtool.workspace import Workspace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from memtool.sessions.model import Head
    from memtool.sessions.store import Sessions

LEAST = 0.5
"""Share of what is asked that a finding or message must hold."""
MOST_SESSIONS = 200
MOST_BYTES = 64 << 20
"""Of sessions that are looked through, the newest first."""
ROLES = ("user", "assistant", "tool")
FINDING = "finding"


class Heard(Value):
    """A finding or message that holds what was asked. `kind` is `finding` or who spoke.

    `source` cites it as a memory would: `session:ID#N`. `score` is the share of the words of the
    question that it holds.
    """

    source: str
    kind: str
    moment: str
    score: float
    snippet: str


def heard(ws: Workspace, words: Sequence[str], limit: int) -> tuple[Heard, ...]:
    """Return what sessions say to the words of a question, the best first; there may be nothing.

    What cannot be read is passed over with a note, and so is what exceeds the bounds.
    """
    wanted = frozenset(term for word in words for term in terms(word) if not is_stop(term))
    if not wanted:
        return ()
    sessions = telling.opened(ws)
    found: dict[tuple[str, str], tuple[float, int, str]] = {}
    for head in _newest(ws, sessions):
        try:
            for kind, number, moment, said in _texts(sessions, head):
                if (kind, said) in found:  # a fork holds what its parent held
                    continue
                share = _share(wanted, said)
                if share >= LEAST:
                    at = moment or head.started
                    found[kind, said] = share, at, f"session:{head.id}#{number}"
        except MemtoolError as error:
            ws.notes.append(f"{head.id} is passed over: {error.message}")

    def rank(key: tuple[str, str]) -> tuple[float | str, ...]:
        share, at, source = found[key]
        return (-share, key[0] != FINDING, -at, source)

    best = []
    for kind, said in sorted(found, key=rank)[:limit]:
        share, at, source = found[kind, said]
        passage = snippet(said, wanted)
        best.append(Heard(source, kind, telling.moment(at), round(share, 6), passage))
    return tuple(best)


def text(found: Sequence[Heard]) -> str:
    """Return a heading, and two lines for each."""
    if not found:
        return ""
    rows = ["From private sessions of this clone, which nobody has vouched for:"]
    for one in found:
        rows.append(f"- {one.source}  {one.moment[:10]}  {one.kind}")
        rows.append(f"  {one.snippet}")
    return "\n".join(rows)


def _newest(ws: Workspace, sessions: Sessions) -> list[Head]:
    """Return the sessions to look through, the newest first, as far as the bounds allow."""
    heads, wrong = sessions.heads()
    ws.notes.extend(f"passed over: {one}" for one in wrong)
    heads.sort(key=lambda head: (-head.started, head.id))
    chosen: list[Head] = []
    room = MOST_BYTES
    for head in heads[:MOST_SESSIONS]:
        room -= sessions.size(head.id)
        if room < 0 and chosen:
            break
        chosen.append(head)
    if len(chosen) < len(heads):
        ws.notes.append(f"the {len(chosen)} newest of {len(heads)} sessions were looked through")
    return chosen


def _texts(sessions: Sessions, head: Head) -> Iterator[tuple[str, int, int, str]]:
    """Yield kind, number, second and text of findings and messages."""
    for one in findings.known(sessions, head.id).findings:
        if one.session == head.id:
            yield FINDING, one.messages[0] if one.messages else 0, 0, one.content
    messages, _torn = sessions.messages(head.id)
    for message in messages:
        if message.role in ROLES and message.text.strip():
            yield message.role, message.number, message.moment, message.text


def _share(wanted: Collection[str], text: str) -> float:
    """Return the share of terms that a text holds; 0 where a look at its letters tells enough."""
    plain = text.lower()
    likely = sum(term[: max(3, len(term) - 2)] in plain for term in wanted)
    if likely < LEAST * len(wanted):
        return 0.0
    held = set(terms(text))
    return sum(term in held for term in wanted) / len(wanted)
