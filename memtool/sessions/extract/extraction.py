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
    from collections.abc import Iterable, Iterator, Sequence

    from memtool.sessions.extract.scene import ToolRun
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
    if not fixes:
        return []
    gone: list[Finding] = []  # another one may say the same, and hold
    for message in scene.people:
        if statements.is_denial_of_fix(scene.sentences[message.number]):
            since = scene.last_human_before(message.number)
            gone += (fix for fix in fixes if since <= fix.messages[-1] < message.number)
    for run in scene.runs:
        earlier = [fix for fix in fixes if fix.messages[-1] < run.answer.number]
        if earlier and run.is_command:
            gone += _find_undone(earlier, run)
    return [fix for fix in fixes if fix not in gone]


def _find_undone(fixes: list[Finding], run: ToolRun) -> Iterator[Finding]:
    """Yield the fixes that a later run undoes, or whose failure it shows again."""
    call = run.call.call
    if run.is_ok is False:
        failure = find_failure(run.answer.text)
        command = normalize_command(call)
        for fix in fixes if failure is not None else ():
            if failure and (failure.what, command) == (fix.field("failure"), fix.field("command")):
                yield fix
    elif _UNDOES.search(call):
        is_whole = "--hard" in call or call.rstrip().endswith(" .")
        for fix in fixes:
            is_near = run.answer.number - fix.messages[-1] <= MAX_BACK
            if is_near and fix.files and (is_whole or any(path in call for path in fix.files)):
                yield fix
