"""Extraction: from the messages of a session to its findings, by rules alone.

Precision beats recall: what a person typed and what tools printed is evidence, an assistant's
proposal needs a yes behind it, and what was taken back later is no finding. A person takes back
what people said. What a tool has proved is taken back only by the tool, by git, or by a person who
says that it still fails: a "no" about something else leaves it alone.

Pure: no disk, no clock; the same messages give the same findings.
"""

from __future__ import annotations

import re

from memtool.sessions.extract import error_fix, user_rules
from memtool.sessions.extract.scene import Scene
from memtool.sessions.extract.sentences import content_words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from memtool.sessions.model import Finding, Message

RULES: dict[str, Callable[[Scene], Iterable[Finding]]] = {
    "user_rules": user_rules.find,
    "proposals": user_rules.find_agreed,
    "error_fix": error_fix.find,
}
"""Every rule, in the order in which their findings are kept where two say the same."""
MOST_MESSAGES = 10_000
"""Of a longer session the last ones are read."""
MOST_FINDINGS = 200


def extract(messages: Sequence[Message], session: str, agent: str = "") -> tuple[Finding, ...]:
    """Return the findings of a session in the order of their evidence.

    `agent` is who worked in it, unless a message says another.
    """
    scene = Scene(messages[-MOST_MESSAGES:], session, agent)
    found: dict[str, Finding] = {}
    for made in _remaining([one for rule in RULES.values() for one in rule(scene)], scene):
        known = found.get(made.id)
        found[made.id] = made if known is None else _joined(known, made)
    ordered = sorted(found.values(), key=lambda one: (one.messages, one.id))
    if len(ordered) > MOST_FINDINGS:
        best = sorted(ordered, key=lambda one: (-one.importance, one.messages, one.id))
        kept = {one.id for one in best[:MOST_FINDINGS]}
        ordered = [one for one in ordered if one.id in kept]
    return tuple(ordered)


def _joined(known: Finding, again: Finding) -> Finding:
    """Return a finding that was made twice: the first one with the evidence of both."""
    return known.replace(
        messages=tuple(sorted({*known.messages, *again.messages})),
        importance=max(known.importance, again.importance),
        signals=tuple(dict.fromkeys((*known.signals, *again.signals))),
    )


LEAST_SHARED = 2
"""Words with a meaning by which a later taking back is known to mean an earlier finding."""
LEAST_LIKE = 0.3
"""Share of its words that a finding has in common with the one that takes its place."""
MOST_BACK = 40
"""Messages behind a fix in which it can be undone by git."""

_LEADING = r"^(?:(?:hm+|oh|ok(?:ay)?|ah|um+|well|sorry|actually|wait|no)[,.!:]* )*"
_FAILS_STILL = re.compile(
    _LEADING + r"(?:(?:that|this|it)(?:'s| is| was| did| does)?(?:n't| not)"
    r" (?:it|work|help|fix|the (?:cause|reason|problem|fix))|(?:it's |it is |that )?still"
    r" (?:broken|failing|fails|crash|the same|not)|(?:please )?(?:revert|undo|roll back) (?:that|it"
    r"|this|the))",
    re.IGNORECASE,
)
_TAKES_BACK = re.compile(
    r"^(?:(?:hm+|oh|ok(?:ay)?|ah|um+|well|sorry|actually|wait)[,.!:]* )*(?:no\b(?! (?:problem"
    r"|worries|need|rush|idea|doubt|more))|nope|scratch that|never ?mind|forget (?:that|it|what)"
    r"|ignore that|on second thoughts?|(?:i(?:'ve)? )?changed my mind|(?:that|this|it)(?:'s| is"
    r"| was)?(?:n't| not) (?:right|correct|true)|that's wrong|i was wrong|wrong\b|cancel that"
    r"|we no longer|not any ?more)",
    re.IGNORECASE,
)
_CHANGED_MIND = re.compile(
    r"^(?:\w+[,.!:]* ){0,2}(?:scratch that|on second thoughts?|(?:i(?:'ve)? )?changed my mind"
    r"|forget what i said)",
    re.IGNORECASE,
)
"""Plain enough that one word in common says which finding is meant."""
_REPLACES = re.compile(
    r"\b(?:instead|actually|rather than|no longer|after all|from now on|not .+ anymore)\b",
    re.IGNORECASE,
)
_UNDOES = re.compile(
    r"\bgit (?:checkout (?:\S+ )?--|checkout \.|restore|revert|reset --hard|stash(?! list| pop"
    r"| show))"
)


def _remaining(findings: list[Finding], scene: Scene) -> list[Finding]:
    """Return the findings that nothing later took back, in their order."""
    proved = {at for at, one in enumerate(findings) if one.category == "error"}
    said = sorted(set(range(len(findings))) - proved, key=lambda at: _end(findings[at]))
    gone = _taken_back(findings, proved, said, scene) | _undone(findings, proved, scene)
    gone |= _replaced(findings, [at for at in said if at not in gone])
    return [one for at, one in enumerate(findings) if at not in gone]


def _end(finding: Finding) -> tuple[int, int]:
    return finding.messages[-1], finding.place


def _taken_back(
    findings: list[Finding], proved: set[int], said: list[int], scene: Scene
) -> set[int]:
    """Return what a person takes back: what was said since they spoke before, or is named."""
    words = [set(content_words(one.content)) for one in findings]
    gone: set[int] = set()
    for sentence in (one for message in scene.people for one in scene.said[message.number]):
        text = sentence.text.replace("\u2019", "'")
        fails_still = _FAILS_STILL.match(text)
        if not (fails_still or _TAKES_BACK.match(text)):
            continue
        since = max(scene.human_before(sentence.number), 1)
        own = set(content_words(text))
        here = (sentence.number, sentence.place)
        earlier = [at for at in said if at not in gone and _end(findings[at]) < here]
        named = {at for at in earlier if len(own & words[at]) >= LEAST_SHARED}
        near = {at for at in earlier if findings[at].messages[-1] >= since}
        in_same = {at for at in near if findings[at].messages[-1] == sentence.number}
        if not (near or named) and _CHANGED_MIND.match(text):
            named = {at for at in earlier if own & words[at]}
        gone |= (named & near) or in_same or near or named
        if fails_still:
            gone |= {at for at in proved if since <= findings[at].messages[-1] < sentence.number}
    return gone


def _undone(findings: list[Finding], proved: set[int], scene: Scene) -> set[int]:
    """Return what tools take back: the fix was undone by git, or the same failure came again."""
    gone: set[int] = set()
    for run in scene.runs if proved else ():
        if not run.is_command:
            continue
        undoes = bool(_UNDOES.search(run.call.call)) and run.is_ok is not False
        failure = error_fix.failure_of(run.answer.text) if run.is_ok is False else None
        for at in proved if undoes or failure else ():
            one = findings[at]
            behind = run.answer.number - one.messages[-1]
            if behind <= 0:
                continue
            is_again = (
                failure is not None
                and failure.what == one.field("failure")
                and error_fix.normal(run.call.call) == one.field("command")
            )
            names_it = (
                any(path in run.call.call for path in one.files)
                or "--hard" in run.call.call
                or run.call.call.rstrip().endswith(" .")
            )
            if is_again or (undoes and behind <= MOST_BACK and one.files and names_it):
                gone.add(at)
    return gone


def _replaced(findings: list[Finding], alive: list[int]) -> set[int]:
    """Return what a later decision or rule about the same replaces."""
    words = {at: set(content_words(findings[at].content)) for at in alive}
    gone: set[int] = set()
    for late in (at for at in alive if _REPLACES.search(findings[at].content)):
        for at in alive:
            if _end(findings[at]) >= _end(findings[late]):
                continue
            shared = len(words[at] & words[late])
            least = max(LEAST_SHARED, LEAST_LIKE * min(len(words[at]), len(words[late])))
            if findings[at].category == findings[late].category and shared >= least:
                gone.add(at)
    return gone
