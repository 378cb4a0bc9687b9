"""The text that Claude Code adds to prompts and output, also where others copy them."""

from __future__ import annotations

import re

from memtool.sessions.transcripts.markup import find_inside, without_tags

_TAGS = (
    "bash-input",
    "bash-notification",
    "bash-stderr",
    "bash-stdout",
    "ci-monitor-event",
    "command-args",
    "command-contents",
    "command-message",
    "command-name",
    "ide_diagnostics",
    "ide_opened_file",
    "ide_selection",
    "local-command-caveat",
    "local-command-stderr",
    "local-command-stdout",
    "persisted-output",
    "system-reminder",
    "system_notification",
    "system_reminder",
    "task-notification",
    "teammate-message",
    "user-prompt-submit-hook",
)
"""Tags around text that the host adds to what people typed."""
_COMMAND = "<command-name>/"
"""Marks the host's text for a slash command."""
_REMINDERS = ("system-reminder", "persisted-output")
"""Tags around text that the host adds to tool output."""
_POINTER = re.compile(
    r"^(?:Read the output file to retrieve the (?:output|result)|Full transcript available at)"
    r"(?:: .*|\.)$\n?",
    re.MULTILINE,
)
"""A line below the notification of a task: where its output is."""
_NOTICES = (
    "[Image: source: ",
    "[Request interrupted by user",
    "Caveat: The messages below",
    "Stop hook feedback:",
    "This session is being continued from a previous conversation",
)
"""How texts start that the host writes as if a person had."""


def without_host_text(whole: str) -> str:
    """Return what a person typed of a prompt: of a slash command only its arguments."""
    if _COMMAND in whole:
        return find_inside(whole, "command-args") if "<command-args>" in whole else ""
    text = without_tags(whole, _TAGS)
    if text != whole:
        text = _POINTER.sub("", text)
    return "" if text.lstrip().startswith(_NOTICES) else text


def without_reminders(text: str) -> str:
    """Remove what the host adds to a tool's output."""
    return without_tags(text, _REMINDERS)
