"""Extraction: find the findings in a session's messages, by rules alone.

Precision beats recall. Text that a person typed and output of tools are evidence. A statement that
is taken back in the next message is not a finding. A fix that a tool has proved is taken back only
by the tool, by git, or by a person who says that it still fails.

Pure: no disk, no clock; the same messages always give the same findings.
"""

from __future__ import annotations

import re

from memtool.sessions.extract import error_fix, statements
from memtool.sessions.extract.commands import normalize_command
from memtool.sessions.extract.failures import find_failure
from memtool.sessions.extract.scene import Scene
from memtool.sessions.model import INTENT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from memtool.sessions.model import Finding, Message

MAX_MESSAGES = 10_000
"""Maximum messages that are read: the last ones of a longer session."""
MAX_STATEMENTS = 3
"""Statements of a session that a reviewer is shown, the best ones; what a person asked to remember
is always shown."""
MAX_FINDINGS = 200
MAX_BACK = 40
"""Number of messages after a fix in which git can undo it."""
_UNDOES = re.compile(
    r"\bgit (?:checkout (?:\S+ )?--|checkout \.|restore|revert|reset --hard|stash(?! list| pop"
    r"| show))"
)


def extract(messages: Sequence[Message], session: str, agent: str = "") -> tuple[Finding, ...]:
    """Return the findings of a session, ordered by their evidence.

    `agent` is the one at work, unless a message names another.
    """
    scene = Scene(messages[-MAX_MESSAGES:], session, agent)
    stated = _choose_best(_join_same(_drop_retracted([*statements.find(scene)], scene)))
    fixes = _join_same(_drop_undone([*error_fix.find(scene)], scene))
    findings = sorted(
        [*stated, *fixes], key=lambda finding: (finding.messages, finding.place, finding.id)
    )
    return tuple(findings[-MAX_FINDINGS:])


def _join_same(findings: Iterable[Finding]) -> list[Finding]:
    """Merge findings that say the same: the first one, with the evidence of all."""
    by_id: dict[str, Finding] = {}
    for made in findings:
        earlier = by_id.get(made.id)
        by_id[made.id] = (
            made
            if earlier is None
            else earlier.replace(
                messages=tuple(sorted({*earlier.messages, *made.messages})),
                importance=max(earlier.importance, made.importance),
                signals=tuple(dict.fromkeys((*earlier.signals, *made.signals))),
            )
        )
    return list(by_id.values())


def _choose_best(stated: list[Finding]) -> list[Finding]:
    """Return what a person asked to remember, and the best of the others up to the limit."""
    ranked = sorted(
        stated,
        key=lambda finding: (INTENT not in finding.signals, -finding.importance, finding.messages),
    )
    wish_count = sum(INTENT in finding.signals for finding in stated)
    return ranked[: max(wish_count, MAX_STATEMENTS)]


def _drop_retracted(stated: list[Finding], scene: Scene) -> list[Finding]:
    """Drop what a person takes back at the beginning of their next message."""
    gone: set[int] = set()
    for message in scene.people:
        if statements.is_retraction(scene.sentences[message.number]):
            gone.add(scene.last_human_before(message.number))
    return [finding for finding in stated if finding.messages[-1] not in gone]


def _drop_undone(fixes: list[Finding], scene: Scene) -> list[Finding]:
    """Drop fixes that git undid, that a person denies, or whose failure came again."""
    denials = [
        message.number
        for message in (scene.people if fixes else ())
        if statements.is_denial_of_fix(scene.sentences[message.number])
    ]
    return [
        fix
        for fix in fixes
        if not any(
            scene.last_human_before(number) <= fix.messages[-1] < number for number in denials
        )
        and not _is_undone(fix, scene)
    ]


def _is_undone(fix: Finding, scene: Scene) -> bool:
    for run in scene.runs:
        behind = run.answer.number - fix.messages[-1]
        if not run.is_command or behind <= 0:
            continue
        call = run.call.call
        if run.is_ok is False:
            failure = find_failure(run.answer.text)
            if (
                failure is not None
                and failure.what == fix.field("failure")
                and normalize_command(call) == fix.field("command")
            ):
                return True
        elif _UNDOES.search(call) and behind <= MAX_BACK and fix.files:
            names_it = any(path in call for path in fix.files)
            if names_it or "--hard" in call or call.rstrip().endswith(" ."):
                return True
    return False
