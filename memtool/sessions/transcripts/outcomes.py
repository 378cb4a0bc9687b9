"""Outcomes that hosts write into the output of a tool: exit codes and errors, as text."""

from __future__ import annotations

import re

_EXIT_CODE = re.compile(
    r"^(?:Error: )?(?:Exit code:?|Process exited with code|The command failed with exit code:) "
    r"(?P<code>-?\d+)\b"
)
_PRINTED = "Output:"
"""The line before a tool's own output, or its start."""
_MAX_HEAD_LINES = 8
_REFUSALS = ("<tool_use_error>", "The user doesn't want to ", "[Request interrupted by user")
"""How the outputs of tools start that did not run, or not to their end."""
_DONE = "The command completed successfully."
_GEMINI_FRAME = ("<untrusted_context>", "</untrusted_context>")
"""Lines around a tool's output."""
_GEMINI_EXIT_CODE = "Exit Code: "
_GEMINI_PRINTED = "Output: "
_GEMINI_ADDED = (_GEMINI_EXIT_CODE, "Process Group PGID: ")
"""How the lines about a shell command start."""


def split_outcome(text: str) -> tuple[str, bool | None]:
    """Return a tool's own output, and whether it worked; None if the text does not say so.

    The lines about the command that come before its output are left out.
    """
    if text.startswith(_REFUSALS):
        return text, False
    rows = text.split("\n")
    head = rows[:_MAX_HEAD_LINES]
    ends = [number for number, row in enumerate(head) if row.strip() == _PRINTED]
    codes = [
        match["code"] for row in head[: ends[0] if ends else 1] if (match := _EXIT_CODE.match(row))
    ]
    if codes:
        start = ends[0] + 1 if ends else 0
        return "\n".join(rows[start:]), int(codes[-1]) == 0
    if rows[0].strip() == _DONE:
        return "\n".join(rows[ends[0] + 1 :]) if ends else "", True
    printed, is_ok = split_gemini_outcome(text)
    return printed, is_ok


def split_gemini_outcome(text: str) -> tuple[str, bool | None]:
    """Return a tool's output without the lines of Gemini CLI, and whether its command worked."""
    rows = [row for row in text.split("\n") if row not in _GEMINI_FRAME]
    codes = [row for row in rows if row.startswith(_GEMINI_EXIT_CODE)]
    if not any(row.startswith(_GEMINI_PRINTED) for row in rows):
        return "\n".join(rows), None
    lines = [row.removeprefix(_GEMINI_PRINTED) for row in rows if not row.startswith(_GEMINI_ADDED)]
    return "\n".join(lines), codes[-1] == f"{_GEMINI_EXIT_CODE}0" if codes else None
