"""Extraction by a language model: what is sent, and what of the answer is believed.

Only redacted messages are sent. A finding is believed where its words stand in the messages that
it names, and a person or a tool said one of them; the points that need a person's intent come from
the rules, never from the model.
"""

from __future__ import annotations

from memtool import templates
from memtool.memory.fields import CONFIDENCES
from memtool.memory.memory import title_of
from memtool.memory.signs import NEGATORS, word_set
from memtool.search.terms import is_stop, terms
from memtool.sessions import extracting
from memtool.sessions import finding as findings
from memtool.sessions import model as models
from memtool.sessions.claim import paths_in, printable, sentence, tags_of
from memtool.sessions.finding import Finding
from memtool.sessions.points import INTENT, PIN, RESOLVED
from memtool.sessions.transcripts.markup import without_own

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

    from memtool.sessions.message import Message
    from memtool.sessions.model import Model

PROMPT = "prompts/extract.md"
CATEGORIES = (
    "decision", "preference", "pattern", "architecture", "warning", "error", "discovery",
)  # fmt: skip
"""A tuple: what a model answers need not be hashable."""
MOST_SENT = 120_000
"""Characters of a log that are sent: those of the last messages."""
MOST_SAID = 4_000
MOST_PRINTED = 1_200
"""Characters of one message: of what was said, and of what a tool printed."""
MOST_FINDINGS = 50
MOST_MESSAGES = 12
LEAST_TERMS = 3
LEAST_SUPPORT = 0.6
"""Share of the words of a finding that stand in the messages it names."""
LEAST_SAME = 0.5
"""Share of its words that a finding of the rules has in common with one that rewords it."""
_DENIALS = NEGATORS | word_set("against nothing nobody")
HIGH = 0.9
"""From this confidence on it is `high`; below, `medium`."""


def extract(
    model: Model, least: float, messages: Sequence[Message], session: str, agent: str = ""
) -> tuple[Finding, ...]:
    """Return the findings of a session as a model words them, as far as its messages say so.

    `least` is the confidence that the model must have. What a person asked to keep, and what tools
    show to be resolved, stays whether or not the model kept it.

    Raises:
        Unusable: the model gave no answer that can be used.
    """
    ruled = extracting.extract(messages, session, agent)
    if not messages:
        return ruled
    rows = models.ask(model, prompt(messages), "findings")
    by_number = {message.number: message for message in messages}
    found: dict[str, Finding] = {}
    for row in rows[:MOST_FINDINGS]:
        made = _finding(row, by_number, session, agent, least)
        if made is not None and not any(_is_opposite(made, one) for one in ruled):
            found.setdefault(made.id, _backed(made, ruled))
    kept = [one for one in ruled if _is_wanted(one) and not _is_reworded(one, found.values())]
    found |= {one.id: one for one in kept}
    return tuple(sorted(found.values(), key=lambda one: (one.messages, one.id)))


def prompt(messages: Sequence[Message]) -> str:
    """Return what is sent: the instruction, and the last messages as far as they fit."""
    import json

    rows: list[str] = []
    room = MOST_SENT
    for message in reversed(messages):
        said = {
            "n": message.number,
            "role": message.role,
            "tool": message.tool,
            "call": message.call[:MOST_PRINTED],
            "ok": message.is_ok,
            "text": _clipped(message),
        }
        row = json.dumps({k: v for k, v in said.items() if v not in ("", None)}, ensure_ascii=False)
        if len(row) > room:
            break
        rows.append(row)
        room -= len(row)
    return templates.read(PROMPT) + "\n".join(reversed(rows)) + "\n"


def _clipped(message: Message) -> str:
    """Return the text of a message, of a long output its beginning and its end."""
    if message.role != "tool":
        return without_own(message.text)[:MOST_SAID]
    text = message.text
    half = MOST_PRINTED // 2
    return text if len(text) <= MOST_PRINTED else f"{text[:half]}\n[…]\n{text[-half:]}"


def _finding(
    row: Any, by_number: Mapping[int, Message], session: str, agent: str, least: float
) -> Finding | None:
    """Return what one row of the answer says, None where it is malformed, unsure or unsupported."""
    if not isinstance(row, dict) or row.get("category") not in CATEGORIES:
        return None
    content, numbers = row.get("content"), row.get("messages")
    confidence, importance = _share(row.get("confidence")), _share(row.get("importance"))
    if not isinstance(content, str) or not isinstance(numbers, list) or confidence < least:
        return None
    content = sentence(printable(content))
    cited = [by_number[n] for n in numbers if type(n) is int and n in by_number]
    if len(content) > findings.MOST_CONTENT or not 0 < len(cited) == len(numbers) <= MOST_MESSAGES:
        return None
    if not is_supported(content, cited):
        return None
    given = row.get("tags")
    tags = [tag for tag in given if isinstance(tag, str)] if isinstance(given, list) else []
    known = {message.agent for message in cited if message.agent}
    who = min(known) if known else agent
    return Finding(
        id=findings.make_id(session, content),
        session=session,
        content=content,
        title=title_of(content),
        category=row["category"],
        confidence=CONFIDENCES[2] if confidence >= HIGH else CONFIDENCES[1],
        importance=round(max(importance, 0.0), 2),
        messages=tuple(sorted({message.number for message in cited})),
        files=tuple(path for path in paths_in(content)),
        tags=tags_of(" ".join([content, *tags])),
        fields=(("agent", who),) if who else (),
    )


def is_supported(content: str, cited: Sequence[Message]) -> bool:
    """Tell whether messages say what a finding says: its words, and every name and number in it.

    One of them at least must be a person's or a tool's.
    """
    if not any(message.role in ("user", "tool") for message in cited):
        return False
    wanted = _content(content)
    said = set().union(*map(_words_of, cited))
    names = {term for term in wanted if not term.isalpha()}
    shared = len(wanted & said)
    return len(wanted) >= LEAST_TERMS and names <= said and shared >= LEAST_SUPPORT * len(wanted)


def _words_of(message: Message) -> frozenset[str]:
    return _content(f"{without_own(message.text)}\n{message.call}")


def _content(text: str) -> frozenset[str]:
    return frozenset(term for term in terms(text) if not is_stop(term))


def _share(value: Any) -> float:
    """Return a number from 0 to 1, -1 for anything else."""
    if type(value) not in (int, float) or not 0 <= value <= 1:
        return -1.0
    return float(value)


def _is_wanted(one: Finding) -> bool:
    return not {INTENT, PIN, RESOLVED}.isdisjoint(one.signals)


def _is_reworded(one: Finding, others: Iterable[Finding]) -> bool:
    return any(_is_same(one, other) for other in others)


def _is_same(one: Finding, other: Finding) -> bool:
    mine, theirs = _content(one.content), _content(other.content)
    has_common = not set(one.messages).isdisjoint(other.messages)
    return has_common and len(mine & theirs) >= LEAST_SAME * min(len(mine), len(theirs))


def _is_opposite(made: Finding, one: Finding) -> bool:
    """Tell whether a model says of the same what the rules heard denied, or the other way round.

    All words of `never retry payments` but one stand in `retry payments`.
    """
    return _is_same(made, one) and is_denial(made.content) != is_denial(one.content)


def is_denial(text: str) -> bool:
    """Tell whether a statement says what is not, or not to be; `X, not Y` says what is."""
    said = text.lower().replace("\u2019", "'").replace("n't", " not")
    return not _DENIALS.isdisjoint(said.partition(", not ")[0].partition(", never ")[0].split())


def _backed(made: Finding, ruled: Sequence[Finding]) -> Finding:
    """Return a finding with the signals and fields that the rules found for the same."""
    for one in ruled:
        if _is_same(made, one):
            kept = tuple(name for name in one.signals if name in (INTENT, PIN, RESOLVED))
            fields = dict(one.fields) | dict(made.fields)
            return made.replace(signals=kept, fields=tuple(fields.items()))
    return made
