"""Recalling: what the sessions of this clone say to the sources of a memory.

Sessions are private, so that on another machine nothing is known of them; that is said, and no
fault of the memory.
"""

from __future__ import annotations

from memtool.commands import sessions as telling
from memtool.errors import MemtoolError
from memtool.memory import sources, timestamps
from memtool.sessions import learning, promoting
from memtool.sessions.finding import Finding
from memtool.sessions.store import Sessions
from memtool.store.context import Context
from memtool.store.evidence import EXCERPT, Evidence

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

KIND = "session"


def messages(context: Context, texts: Iterable[str]) -> dict[str, Evidence]:
    """Return what became of sources `session:ID#N`, by their text; other sources are left out.

    Each session is read once. One that is not here, or cannot be read, is left out as well.
    """
    wanted: dict[str, dict[str, str]] = {}
    for text in texts:
        source = sources.parse(text)
        if source.kind == KIND:
            id_, _mark, number = source.target.partition("#")
            wanted.setdefault(id_, {})[text] = number
    kept = telling.opened(context)
    found: dict[str, Evidence] = {}
    for id_, numbers in wanted.items():
        try:
            found |= _of_session(kept, id_, numbers)
        except MemtoolError:
            continue
    return found


def _of_session(kept: Sessions, id: str, numbers: dict[str, str]) -> dict[str, Evidence]:
    head = kept.head(id)
    by_number = {str(message.number): message for message in kept.messages(id)[0]}
    found = {}
    for text, number in numbers.items():
        message = by_number.get(number)
        if message is not None:
            is_tool = message.role == "tool" and message.tool
            who = message.tool if is_tool else message.agent or message.role
            said = " ".join((message.text or message.call).split())
            quote = f'{who}: "{said[:EXCERPT]}{"…" if len(said) > EXCERPT else ""}"'
            date = timestamps.render(message.moment) if message.moment > 0 else ""
            found[text] = Evidence(text, KIND, "ok", quote, date=date)
        elif number and head.status == "pruned":
            found[text] = Evidence(text, KIND, "unknown", "its messages were pruned")
        elif number:
            found[text] = Evidence(text, KIND, "missing", f"the session has no message {number}")
        else:
            summary = " ".join((head.title or head.summary).split())[:EXCERPT]
            found[text] = Evidence(text, KIND, "ok", summary or "a session of this clone")
    return found


def findings(context: Context) -> dict[str, list[Finding]]:
    """Return the findings that became memories here, by the ids of these, oldest first."""
    kept = telling.opened(context)
    found: dict[str, list[Finding]] = {}
    known: dict[str, dict[str, Finding]] = {}
    try:
        rows = promoting.promotions(kept)
    except MemtoolError:
        return {}
    for row in rows:
        if row.session not in known:
            try:
                known[row.session] = learning.ever(kept, row.session)
            except MemtoolError:
                known[row.session] = {}
        one = known[row.session].get(row.finding)
        if one is not None and one not in found.get(row.memory, ()):
            found.setdefault(row.memory, []).append(one)
    return found
