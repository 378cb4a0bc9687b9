"""Extraction: find the findings in a session's messages, by rules alone.

Precision beats recall. Text that a person typed and output of tools are evidence. An assistant's
proposal needs a yes after it, and a statement that is retracted later is not a finding. A person
retracts what people said. A fix that a tool has proved is retracted only by the tool, by git, or by
a person who says that it still fails: a "no" about something else does not affect it.

Pure: no disk, no clock; the same messages always give the same findings.
"""

from __future__ import annotations

import re

from memtool.sessions.extract import error_fix, user_rules
from memtool.sessions.extract.commands import normalize_command
from memtool.sessions.extract.failures import find_failure
from memtool.sessions.extract.scene import Scene
from memtool.sessions.extract.sentences import find_content_words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from memtool.sessions.model import Finding, Message

RULES: dict[str, Callable[[Scene], Iterable[Finding]]] = {
    "user_rules": user_rules.find,
    "proposals": user_rules.find_agreed,
    "error_fix": error_fix.find,
}
"""All rules. If two make the same finding, the earlier one's text is kept."""
MAX_MESSAGES = 10_000
"""Maximum messages that are read: the last ones of a longer session."""
MAX_FINDINGS = 200


def extract(messages: Sequence[Message], session: str, agent: str = "") -> tuple[Finding, ...]:
    """Return the findings of a session, ordered by their evidence.

    `agent` is the one at work, unless a message names another.
    """
    scene = Scene(messages[-MAX_MESSAGES:], session, agent)
    findings_by_id: dict[str, Finding] = {}
    for made in _select_remaining(
        [finding for rule in RULES.values() for finding in rule(scene)], scene
    ):
        earlier = findings_by_id.get(made.id)
        findings_by_id[made.id] = made if earlier is None else _join(earlier, made)
    ordered = sorted(findings_by_id.values(), key=lambda finding: (finding.messages, finding.id))
    if len(ordered) > MAX_FINDINGS:
        best = sorted(
            ordered, key=lambda finding: (-finding.importance, finding.messages, finding.id)
        )
        chosen_ids = {finding.id for finding in best[:MAX_FINDINGS]}
        ordered = [finding for finding in ordered if finding.id in chosen_ids]
    return tuple(ordered)


def _join(earlier: Finding, again: Finding) -> Finding:
    """Merge a finding that was made twice: the first one, with the evidence of both."""
    return earlier.replace(
        messages=tuple(sorted({*earlier.messages, *again.messages})),
        importance=max(earlier.importance, again.importance),
        signals=tuple(dict.fromkeys((*earlier.signals, *again.signals))),
    )


MIN_SHARED = 2
"""Content words that a retraction must share with an earlier finding."""
MIN_LIKE = 0.3
"""Share of its words that a finding must have in common with its replacement."""
MAX_BACK = 40
"""Number of messages after a fix in which git can undo it."""

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
"""So plain that one shared word identifies the finding."""
_REPLACES = re.compile(
    r"\b(?:instead|actually|rather than|no longer|after all|from now on|not .+ anymore)\b",
    re.IGNORECASE,
)
_UNDOES = re.compile(
    r"\bgit (?:checkout (?:\S+ )?--|checkout \.|restore|revert|reset --hard|stash(?! list| pop"
    r"| show))"
)


def _select_remaining(findings: list[Finding], scene: Scene) -> list[Finding]:
    """Drop the findings that were retracted later; keep the order."""
    proved = {at for at, finding in enumerate(findings) if finding.category == "error"}
    stated = sorted(set(range(len(findings))) - proved, key=lambda at: _end(findings[at]))
    gone = _find_taken_back(findings, proved, stated, scene) | _find_undone(findings, proved, scene)
    gone |= _find_replaced(findings, [at for at in stated if at not in gone])
    return [finding for at, finding in enumerate(findings) if at not in gone]


def _end(finding: Finding) -> tuple[int, int]:
    return finding.messages[-1], finding.place


def _find_taken_back(
    findings: list[Finding], proved: set[int], stated: list[int], scene: Scene
) -> set[int]:
    """Return the indexes of findings that a person retracts: the recent ones, or those named.

    Recent are the findings since the person's last message.
    """
    words = [set(find_content_words(finding.content)) for finding in findings]
    gone: set[int] = set()
    for sentence in (
        sentence for message in scene.people for sentence in scene.sentences[message.number]
    ):
        text = sentence.text.replace("\u2019", "'")
        fails_still = _FAILS_STILL.match(text)
        if not (fails_still or _TAKES_BACK.match(text)):
            continue
        since = max(scene.last_human_before(sentence.number), 1)
        own = set(find_content_words(text))
        here = (sentence.number, sentence.place)
        earlier = [at for at in stated if at not in gone and _end(findings[at]) < here]
        named = {at for at in earlier if len(own & words[at]) >= MIN_SHARED}
        near = {at for at in earlier if findings[at].messages[-1] >= since}
        in_same = {at for at in near if findings[at].messages[-1] == sentence.number}
        if not (near or named) and _CHANGED_MIND.match(text):
            named = {at for at in earlier if own & words[at]}
        gone |= (named & near) or in_same or near or named
        if fails_still:
            gone |= {at for at in proved if since <= findings[at].messages[-1] < sentence.number}
    return gone


def _find_undone(findings: list[Finding], proved: set[int], scene: Scene) -> set[int]:
    """Return the indexes of fixes that git undid or whose failure recurred."""
    gone: set[int] = set()
    for run in scene.runs if proved else ():
        if not run.is_command:
            continue
        undoes = bool(_UNDOES.search(run.call.call)) and run.is_ok is not False
        failure = find_failure(run.answer.text) if run.is_ok is False else None
        for at in proved if undoes or failure else ():
            finding = findings[at]
            behind = run.answer.number - finding.messages[-1]
            if behind <= 0:
                continue
            is_again = (
                failure is not None
                and failure.what == finding.field("failure")
                and normalize_command(run.call.call) == finding.field("command")
            )
            names_it = (
                any(path in run.call.call for path in finding.files)
                or "--hard" in run.call.call
                or run.call.call.rstrip().endswith(" .")
            )
            if is_again or (undoes and behind <= MAX_BACK and finding.files and names_it):
                gone.add(at)
    return gone


def _find_replaced(findings: list[Finding], alive: list[int]) -> set[int]:
    """Return the indexes of findings that a later decision or rule on the same subject replaces."""
    words = {at: set(find_content_words(findings[at].content)) for at in alive}
    gone: set[int] = set()
    for late in (at for at in alive if _REPLACES.search(findings[at].content)):
        for at in alive:
            if _end(findings[at]) >= _end(findings[late]):
                continue
            shared = len(words[at] & words[late])
            least = max(MIN_SHARED, MIN_LIKE * min(len(words[at]), len(words[late])))
            if findings[at].category == findings[late].category and shared >= least:
                gone.add(at)
    return gone
