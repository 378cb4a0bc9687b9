"""Evidence: what the private sessions of this clone hold about a memory or a question.

It answers which messages and findings are behind a memory, and searches findings and messages for
the words of a question. Nobody has reviewed any of it, so it is searched only on demand and shown
apart. Sessions are private to a clone: that another machine has none of them is no fault of the
memory.
"""

from __future__ import annotations

from memtool.errors import MemtoolError
from memtool.index.analyzer import is_stop, terms
from memtool.memory import timestamps
from memtool.memory.schema import parse_source
from memtool.search.snippet import snippet
from memtool.search.sources import Passage
from memtool.sessions import promote, store
from memtool.sessions.findings import ever, known
from memtool.sessions.model import Finding, Head, moment_text
from memtool.sessions.store import Sessions
from memtool.store.context import Context
from memtool.store.evidence import EXCERPT, Evidence

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

KIND = "session"


def messages(context: Context, texts: Iterable[str]) -> dict[str, Evidence]:
    """Return what became of sources `session:ID#N`, by their text; other sources are left out.

    Each session is read once. One that is not here, or cannot be read, is left out as well.
    """
    wanted: dict[str, dict[str, str]] = {}
    for text in texts:
        source = parse_source(text)
        if source.kind == KIND:
            id_, _mark, number = source.target.partition("#")
            wanted.setdefault(id_, {})[text] = number
    kept = store.opened(context)
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
    kept = store.opened(context)
    found: dict[str, list[Finding]] = {}
    known: dict[str, dict[str, Finding]] = {}
    try:
        rows = promote.promotions(kept)
    except MemtoolError:
        return {}
    for row in rows:
        if row.session not in known:
            try:
                known[row.session] = ever(kept, row.session)
            except MemtoolError:
                known[row.session] = {}
        one = known[row.session].get(row.finding)
        if one is not None and one not in found.get(row.memory, ()):
            found.setdefault(row.memory, []).append(one)
    return found


LEAST = 0.5
"""Share of what is asked that a finding or message must hold."""
MOST_SESSIONS = 200
MOST_BYTES = 64 << 20
"""Of sessions that are looked through, the newest first."""
ROLES = ("user", "assistant", "tool")
FINDING = "finding"


def search(context: Context, words: Sequence[str], limit: int) -> tuple[Passage, ...]:
    """Return what sessions say to the words of a question, the best first; there may be nothing.

    What cannot be read is passed over with a note, and so is what exceeds the bounds.
    """
    wanted = frozenset(term for word in words for term in terms(word) if not is_stop(term))
    if not wanted:
        return ()
    sessions = store.opened(context)
    found: dict[tuple[str, str], tuple[float, int, str]] = {}
    for head in _newest(context, sessions):
        try:
            for kind, number, moment, said in _texts(sessions, head):
                if (kind, said) in found:  # a fork holds what its parent held
                    continue
                share = _share(wanted, said)
                if share >= LEAST:
                    at = moment or head.started
                    found[kind, said] = share, at, f"session:{head.id}#{number}"
        except MemtoolError as error:
            context.notes.append(f"{head.id} is passed over: {error.message}")

    def rank(key: tuple[str, str]) -> tuple[float | str, ...]:
        share, at, source = found[key]
        return (-share, key[0] != FINDING, -at, source)

    best = []
    for kind, said in sorted(found, key=rank)[:limit]:
        share, at, source = found[kind, said]
        passage = snippet(said, wanted)
        best.append(Passage(source, kind, moment_text(at), round(share, 6), passage))
    return tuple(best)


def _newest(context: Context, sessions: Sessions) -> list[Head]:
    """Return the sessions to look through, the newest first, as far as the bounds allow."""
    heads, wrong = sessions.heads()
    context.notes.extend(f"passed over: {one}" for one in wrong)
    heads.sort(key=lambda head: (-head.started, head.id))
    chosen: list[Head] = []
    room = MOST_BYTES
    for head in heads[:MOST_SESSIONS]:
        room -= sessions.size(head.id)
        if room < 0 and chosen:
            break
        chosen.append(head)
    if len(chosen) < len(heads):
        context.notes.append(
            f"the {len(chosen)} newest of {len(heads)} sessions were looked through"
        )
    return chosen


def _texts(sessions: Sessions, head: Head) -> Iterator[tuple[str, int, int, str]]:
    """Yield kind, number, second and text of findings and messages."""
    for one in known(sessions, head.id).findings:
        if one.session == head.id:
            yield FINDING, one.messages[0] if one.messages else 0, 0, one.content
    messages, _torn = sessions.messages(head.id)
    for message in messages:
        if message.role in ROLES and message.text.strip():
            yield message.role, message.number, message.moment, message.text


def _share(wanted: Collection[str], text: str) -> float:
    """Return the share of terms that a text holds; 0 where its letters alone rule it out."""
    plain = text.lower()
    likely = sum(term[: max(3, len(term) - 2)] in plain for term in wanted)
    if likely < LEAST * len(wanted):
        return 0.0
    held = set(terms(text))
    return sum(term in held for term in wanted) / len(wanted)
