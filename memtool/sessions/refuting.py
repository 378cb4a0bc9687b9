"""Refuting: what later messages take back. A finding holds at the end of its session or not."""

from __future__ import annotations

import re

from memtool.index.analyzer import is_stop, terms
from memtool.sessions.claim import Claim
from memtool.sessions.rules import failing
from memtool.sessions.scene import Scene
from memtool.sessions.signature import failure_of

LEAST_SHARED = 2
"""Words with a meaning by which a later taking back is known to mean an earlier claim."""
LEAST_LIKE = 0.3
"""Share of its words that a claim has in common with the one that takes its place."""

_TAKES_BACK = re.compile(
    r"^(?:(?:hm+|oh|ok(?:ay)?|ah|um+|well|sorry|actually|wait)[,.!:]* )*(?:no\b(?! (?:problem"
    r"|worries"
    r"|need|rush|idea|doubt|more))|nope|scratch that|never ?mind|forget (?:that|it|what)"
    r"|ignore that"
    r"|on second thoughts?|(?:i(?:'ve)? )?changed my mind|(?:that|this|it)(?:'s| is| was)?(?:n't"
    r"| not)"
    r" (?:it|right|correct|true|the (?:cause|reason|problem))|that's wrong|(?:it's |it is )?still"
    r" (?:broken|failing|fails|crash|the same|not)|(?:please )?(?:revert|undo|roll back) (?:that|it"
    r"|this|the)|i was wrong|wrong\b|cancel that|we no longer|not any ?more)",
    re.IGNORECASE,
)
_CHANGED_MIND = re.compile(
    r"^(?:\w+[,.!:]* ){0,2}(?:scratch that|on second thoughts?|(?:i(?:'ve)? )?changed my mind"
    r"|forget what i said)",
    re.IGNORECASE,
)
"""Plain enough that one word in common says which claim is meant."""
_ASSISTANT_TAKES_BACK = re.compile(
    r"\b(?:that|this|it) (?:was|is)(?:n't| not) (?:it|the (?:cause|reason|problem|culprit))\b"
    r"|\b(?:i was|my .{1,40} was) (?:wrong|mistaken|incorrect)\b|\bred herring\b"
    r"|\b(?:you're|you are) right\b.*\b(?:not|wrong)\b",
    re.IGNORECASE,
)
_REPLACES = re.compile(
    r"\b(?:instead|actually|rather than|no longer|after all|from now on|not .+ anymore)\b",
    re.IGNORECASE,
)
_UNDOES = re.compile(
    r"\bgit (?:checkout (?:\S+ )?--|checkout \.|restore|revert|reset --hard|stash(?! list| pop"
    r"| show))"
)
MOST_BACK = 40
"""Messages behind a claim in which it can be undone by git or fail again."""


def remaining(claims: list[Claim], scene: Scene) -> list[Claim]:
    """Return the claims that nothing later took back, in their order."""
    gone: set[int] = set()
    order = sorted(range(len(claims)), key=lambda at: _end(claims[at]))
    _take_back(claims, order, scene, gone)
    _undo(claims, scene, gone)
    _replace(claims, order, gone)
    return [claim for at, claim in enumerate(claims) if at not in gone]


def _end(claim: Claim) -> tuple[int, int]:
    return claim.messages[-1], claim.place


def _take_back(claims: list[Claim], order: list[int], scene: Scene, gone: set[int]) -> None:
    """What a person takes back: what was said or done since they spoke before, or is named."""
    words = [_words(claim.content) for claim in claims]
    for message in scene.people:
        for said in scene.said[message.number]:
            if not _TAKES_BACK.match(said.text.replace("\u2019", "'")):
                continue
            since = scene.human_before(message.number)
            here = (said.number, said.place)
            own = _words(said.text)
            earlier = [at for at in order if at not in gone and _end(claims[at]) < here]
            named = {at for at in earlier if len(own & words[at]) >= LEAST_SHARED}
            near = {at for at in earlier if claims[at].messages[-1] >= max(since, 1)}
            in_same = {at for at in near if claims[at].messages[-1] == said.number}
            if not (near or named) and _CHANGED_MIND.match(said.text):
                named = {at for at in earlier if claims[at].is_said and own & words[at]}
            gone.update((named & near) or in_same or near or named)
    for message in scene.messages:
        if message.role == "assistant" and _ASSISTANT_TAKES_BACK.search(message.text):
            gone.update(
                at for at in order
                if not claims[at].is_said
                and message.number - MOST_BACK <= claims[at].messages[-1] < message.number
                and (claims[at].category == "discovery"
                     or claims[at].messages[-1] >= scene.human_before(message.number))
            )  # fmt: skip


def _undo(claims: list[Claim], scene: Scene, gone: set[int]) -> None:
    """What tools take back: the fix was undone by git, or the same failure came again."""
    errors = [at for at, claim in enumerate(claims) if claim.category == "error"]
    if not errors:
        return
    for run in scene.runs:
        if not run.is_command:
            continue
        undoes = bool(_UNDOES.search(run.call.call)) and run.is_ok is not False
        failure = failure_of(run.answer.text) if run.is_ok is False else None
        for at in errors if undoes or failure else ():
            claim = claims[at]
            fields = dict(claim.fields)
            if run.answer.number <= claim.messages[-1]:
                continue
            is_near = run.answer.number - claim.messages[-1] <= MOST_BACK
            is_again = (
                failure is not None
                and failure.what == fields.get("failure")
                and failing.normal(run.call.call) == fields.get("command")
            )
            names_it = (
                not claim.files
                or any(path in run.call.call for path in claim.files)
                or ("--hard" in run.call.call or run.call.call.rstrip().endswith(" ."))
            )
            if is_again or (undoes and is_near and claim.files and names_it):
                gone.add(at)


def _replace(claims: list[Claim], order: list[int], gone: set[int]) -> None:
    """What a later decision or rule about the same replaces."""
    alive = [at for at in order if at not in gone and claims[at].category != "error"]
    latest = [at for at in alive if _REPLACES.search(claims[at].content)]
    words = {at: _words(claims[at].content) for at in alive}
    for late in latest:
        for at in alive:
            if (
                _end(claims[at]) >= _end(claims[late])
                or claims[at].category != claims[late].category
            ):
                continue
            shared = len(words[at] & words[late])
            if shared >= LEAST_SHARED and shared >= LEAST_LIKE * min(
                len(words[at]), len(words[late])
            ):
                gone.add(at)


def _words(text: str) -> frozenset[str]:
    return frozenset(term for term in terms(text) if not is_stop(term))
