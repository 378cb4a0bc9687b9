"""The summary of a session by rules: what was asked, touched, failed, fixed and found."""

from __future__ import annotations

from memtool.sessions.wording import line
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from memtool.sessions.message import Message

MOST_ASKED = 3
MOST_FILES = 12
MOST_FAILURES = 5
MOST_FINDINGS = 5


class Failure(Value):
    """A call of a tool that failed. `fixed_by` is the message in which the same call worked."""

    number: int
    call: str
    said: str
    fixed_by: int = 0


def summary(messages: Sequence[Message], findings: Sequence[str]) -> str:
    """Return some lines about a session; `findings` are the titles of what was found in it."""
    asked = [line(one.text) for one in messages if one.role == "user"]
    asked = [one for one in asked if one]
    touched = list(dict.fromkeys(path for one in messages for path in one.files))
    failed = failures(messages)
    rows = [f"asked: {one}" for one in asked[:MOST_ASKED]]
    rows += _more("asked", len(asked) - MOST_ASKED)
    if touched:
        more = len(touched) - MOST_FILES
        rest = f" and {more} more" if more > 0 else ""
        rows.append(f"files: {', '.join(touched[:MOST_FILES])}{rest}")
    for one in failed[:MOST_FAILURES]:
        fixed = f"worked in message {one.fixed_by}" if one.fixed_by else "not seen to work"
        rows.append(f"failed: {one.call} in message {one.number}, {fixed}: {one.said}")
    rows += _more("failed", len(failed) - MOST_FAILURES)
    rows += [f"found: {one}" for one in findings[:MOST_FINDINGS]]
    rows += _more("found", len(findings) - MOST_FINDINGS)
    return "\n".join(rows) or "nothing was said"


def failures(messages: Sequence[Message]) -> list[Failure]:
    """Return the calls that failed, each once, with the message in which the same one worked."""
    found: dict[tuple[str, str], Failure] = {}
    for one in messages:
        if one.role != "tool" or one.is_ok is None:
            continue
        key = one.tool, one.call
        if not one.is_ok:
            said = line(_last_line(one.text))
            found[key] = Failure(one.number, line(one.call) or one.tool or "a tool", said)
        elif key in found and not found[key].fixed_by:
            found[key] = found[key].replace(fixed_by=one.number)
    return list(found.values())


def _last_line(text: str) -> str:
    """Return the last line that says something, where most tools say what was wrong."""
    return next((row for row in reversed(text.split("\n")) if row.strip("-= \t")), "")


def _more(what: str, count: int) -> list[str]:
    return [f"{what}: {count} more"] if count > 0 else []
