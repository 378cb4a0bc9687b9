"""Evidence: the messages and findings of private sessions behind a memory or a query.

This module finds the messages and findings that a memory is based on, quotes the message around a
finding, and searches findings and messages for the words of a query. None of them is reviewed, so
they are searched only on demand and shown apart. Sessions are private to a clone: a memory is not
at fault if another machine does not have them.
"""

from __future__ import annotations

from memtool.authoring.classification import strip_opening
from memtool.authoring.phrases import normalize
from memtool.errors import MemtoolError
from memtool.index.analyzer import is_stop, terms
from memtool.memory import timestamps
from memtool.memory.schema import parse_source
from memtool.search.snippet import extract_snippet
from memtool.search.sources import Passage
from memtool.sessions import promote, store
from memtool.sessions.extract.sentences import find_content_words
from memtool.sessions.findings import read_all_ever, read_learned
from memtool.sessions.model import Finding, Session, format_second, make_printable
from memtool.sessions.store import Sessions
from memtool.sessions.transcripts.markup import without_colours, without_own
from memtool.store.context import Context
from memtool.store.evidence import MAX_EXCERPT_CHARS, Evidence

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

KIND = "session"


def check_messages(context: Context, texts: Iterable[str]) -> dict[str, Evidence]:
    """Look up sources of the form `session:ID#N`, by their text; other sources are left out.

    Each session is read once. Sessions that are not here or cannot be read are left out.
    """
    wanted: dict[str, dict[str, str]] = {}
    for text in texts:
        source = parse_source(text)
        if source.kind == KIND:
            id_, _mark, number = source.target.partition("#")
            wanted.setdefault(id_, {})[text] = number
    sessions = store.open_sessions(context)
    evidence: dict[str, Evidence] = {}
    for id_, numbers in wanted.items():
        try:
            evidence |= _read_session(sessions, id_, numbers)
        except MemtoolError:
            continue
    return evidence


def _read_session(sessions: Sessions, id: str, numbers: dict[str, str]) -> dict[str, Evidence]:
    head = sessions.head(id)
    by_number = {str(message.number): message for message in sessions.messages(id)[0]}
    evidence = {}
    for text, number in numbers.items():
        message = by_number.get(number)
        if message is not None:
            is_tool = message.role == "tool" and message.tool
            who = message.tool if is_tool else message.agent or message.role
            excerpt = " ".join((message.text or message.call).split())
            ending = "…" if len(excerpt) > MAX_EXCERPT_CHARS else ""
            quote = f'{who}: "{excerpt[:MAX_EXCERPT_CHARS]}{ending}"'
            date = timestamps.render(message.moment) if message.moment > 0 else ""
            evidence[text] = Evidence(text, KIND, "ok", quote, date=date)
        elif number and head.status == "pruned":
            evidence[text] = Evidence(text, KIND, "unknown", "its messages were pruned")
        elif number:
            evidence[text] = Evidence(text, KIND, "missing", f"the session has no message {number}")
        else:
            summary = " ".join((head.title or head.summary).split())[:MAX_EXCERPT_CHARS]
            evidence[text] = Evidence(text, KIND, "ok", summary or "a session of this clone")
    return evidence


def find_findings(context: Context) -> dict[str, list[Finding]]:
    """Return the findings that became memories in this clone, by memory id, oldest first."""
    sessions = store.open_sessions(context)
    findings_by_id: dict[str, list[Finding]] = {}
    by_session: dict[str, dict[str, Finding]] = {}
    try:
        rows = promote.read_promotions(sessions)
    except MemtoolError:
        return {}
    for row in rows:
        if row.session not in by_session:
            try:
                by_session[row.session] = read_all_ever(sessions, row.session)
            except MemtoolError:
                by_session[row.session] = {}
        finding = by_session[row.session].get(row.finding)
        if finding is not None and finding not in findings_by_id.get(row.memory, ()):
            findings_by_id.setdefault(row.memory, []).append(finding)
    return findings_by_id


AROUND_CHARS = 140
"""Characters that a quote has before and after the statement, at most."""
MAX_READ_CHARS = 20_000
"""Of the message that is quoted."""
_SENTENCE_ENDS = str.maketrans({end: f"{end} " for end in "\u3002\uff01\uff1f"})
"""Ends of sentences in scripts without spaces, which a quote is cut at."""


def quote_messages(sessions: Sessions, statements: Iterable[Finding]) -> dict[str, str]:
    """Return the part of the message around each statement on one line, by the finding's id.

    A person's message comes first, and the last one of several. A statement is left out if it is
    all that the message says, or if the message cannot be read, for instance because it was pruned.
    """
    by_session: dict[str, list[Finding]] = {}
    for finding in statements:
        by_session.setdefault(finding.session, []).append(finding)
    quotes: dict[str, str] = {}
    for id_, findings_here in by_session.items():
        try:
            by_number = {message.number: message for message in sessions.messages(id_)[0]}
        except MemtoolError:
            continue
        for finding in findings_here:
            cited = [by_number[number] for number in finding.messages if number in by_number]
            sources = [message for message in cited if message.role == "user"] or cited
            if quote := _quote(sources[-1].text, finding.content) if sources else "":
                quotes[finding.id] = quote
    return quotes


def _quote(text: str, statement: str) -> str:
    """Return the passage of a text around a statement, empty if the text says nothing else."""
    typed = without_colours(without_own(text)[:MAX_READ_CHARS])
    plain = make_printable(typed).translate(_SENTENCE_ENDS)
    line = extract_snippet(plain, (), len(plain) + 2)
    if normalize(strip_opening(line)) == normalize(statement):
        return ""
    stated = extract_snippet(plain, find_content_words(statement), len(statement) + 2).strip("…")
    begin = line.find(stated)
    end = begin + len(stated)
    before, after = line[:begin], line[end:]
    if len(before) > AROUND_CHARS:
        before = "…" + before[-AROUND_CHARS:].partition(" ")[2]
    if len(after) > AROUND_CHARS:
        after = after[:AROUND_CHARS].rpartition(" ")[0] + "…"
    return before + stated + after


MIN_SHARE = 0.5
"""Minimum share of the query's terms that a finding or message must contain."""
MAX_SESSIONS = 200
MAX_SEARCHED_BYTES = 64 << 20
"""Limits of a search through sessions, newest first."""
ROLES = ("user", "assistant", "tool")
FINDING = "finding"


def search(context: Context, words: Sequence[str], limit: int) -> tuple[Passage, ...]:
    """Search sessions for the words of a query; return the best passages first, possibly none.

    A note reports sessions that cannot be read or that exceed the limits.
    """
    wanted = frozenset(term for word in words for term in terms(word) if not is_stop(term))
    if not wanted:
        return ()
    sessions = store.open_sessions(context)
    matches: dict[tuple[str, str], tuple[float, int, str]] = {}
    for head in _list_newest(context, sessions):
        try:
            for kind, number, moment, text in _iterate_texts(sessions, head):
                if (kind, text) in matches:  # a fork repeats its parent
                    continue
                share = _measure_share(wanted, text)
                if share >= MIN_SHARE:
                    at = moment or head.started
                    matches[kind, text] = share, at, f"session:{head.id}#{number}"
        except MemtoolError as error:
            context.notes.append(f"{head.id} is passed over: {error.message}")

    def rank(key: tuple[str, str]) -> tuple[float | str, ...]:
        share, at, source = matches[key]
        return (-share, key[0] != FINDING, -at, source)

    best = []
    for kind, text in sorted(matches, key=rank)[:limit]:
        share, at, source = matches[kind, text]
        passage = extract_snippet(text, wanted)
        best.append(Passage(source, kind, format_second(at), round(share, 6), passage))
    return tuple(best)


def _list_newest(context: Context, sessions: Sessions) -> list[Session]:
    """Return the sessions to search, newest first, within the limits."""
    heads, wrong = sessions.heads()
    context.notes.extend(f"passed over: {path}" for path in wrong)
    heads.sort(key=lambda head: (-head.started, head.id))
    chosen: list[Session] = []
    room = MAX_SEARCHED_BYTES
    for head in heads[:MAX_SESSIONS]:
        room -= sessions.size(head.id)
        if room < 0 and chosen:
            break
        chosen.append(head)
    if len(chosen) < len(heads):
        context.notes.append(f"the {len(chosen)} newest of {len(heads)} sessions were searched")
    return chosen


def _iterate_texts(sessions: Sessions, head: Session) -> Iterator[tuple[str, int, int, str]]:
    """Yield kind, message number, second and text of findings and messages."""
    for finding in read_learned(sessions, head.id).findings:
        if finding.session == head.id:
            yield FINDING, finding.messages[0] if finding.messages else 0, 0, finding.content
    messages, _torn = sessions.messages(head.id)
    for message in messages:
        if message.role in ROLES and message.text.strip():
            yield message.role, message.number, message.moment, message.text


def _measure_share(wanted: Collection[str], text: str) -> float:
    """Return the share of terms that a text contains; 0 if its letters alone rule it out."""
    plain = text.lower()
    likely = sum(term[: max(3, len(term) - 2)] in plain for term in wanted)
    if likely < MIN_SHARE * len(wanted):
        return 0.0
    held_terms = set(terms(text))
    return sum(term in held_terms for term in wanted) / len(wanted)
