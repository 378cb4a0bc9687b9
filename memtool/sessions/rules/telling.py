"""What a person says resolved a failure that a tool had printed before."""

from __future__ import annotations

import re
from collections.abc import Iterator

from memtool.index.analyzer import is_stop, terms
from memtool.sessions.claim import Claim, paths_in, sentence
from memtool.sessions.points import RESOLVED
from memtool.sessions.rules import failing
from memtool.sessions.scene import Scene
from memtool.sessions.signature import Failure, failure_of
from memtool.sessions.speech import opening_off

TYPE_CHECKING = False
if TYPE_CHECKING:
    from memtool.sessions.message import Message

IMPORTANCE = 0.7
REACH = 30
"""Messages between a failure and the words that say how it was resolved."""
LEAST_TERMS = 2

_FIXED = re.compile(
    r"^(?:the (?:right |real |actual )?(?:fix|solution|answer) (?:is|was|turned out to be)(?: to)?"
    r"|(?:(?:i|we)(?:'ve| have)? )?(?:fixed|solved|resolved) (?:it|this|that|the [\w -]{1,40}?)"
    r" (?:by|with)|what (?:fixed|helped|solved)(?: it)? (?:is|was)) (?P<how>\S.+)$",
    re.IGNORECASE,
)


def find(scene: Scene) -> Iterator[Claim]:
    """Yield failures with the fix that a person names."""
    failed: tuple[Message, Failure] | None = None
    for message in scene.messages:
        if message.role == "tool" and message.is_ok is not True and message.number not in scene.own:
            failure = failure_of(message.text)
            failed = (message, failure) if failure is not None else failed
        for said in scene.said.get(message.number, ()):
            told = None if said.reason else _FIXED.match(opening_off(said.text))
            if told is None or failed is None or message.number - failed[0].number > REACH:
                continue
            if sum(not is_stop(term) for term in terms(told["how"])) >= LEAST_TERMS:
                yield _claim(*failed, said.number, said.place, told["how"])
                failed = None
                break


def _claim(answer: Message, failure: Failure, number: int, place: int, how: str) -> Claim:
    command = failing.normal(answer.call)
    what = failure.what.replace("`", "'")
    who = f"`{failing.cut(command)}` failed with `{what}`" if command else f"`{what}`"
    fields = {
        "command": failing.cut(command),
        "failure": failure.what,
        "fix": sentence(how).rstrip("."),
        "error_signature": failure.signature,
    }
    return Claim(
        category="error",
        content=f"{who}; the fix: {how.rstrip('.')}.",
        confidence="high",
        importance=IMPORTANCE,
        messages=(answer.number, number),
        place=place,
        signals=(RESOLVED,),
        files=paths_in(how),
        fields=tuple((name, text) for name, text in fields.items() if text),
    )
