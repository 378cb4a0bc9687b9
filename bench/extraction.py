"""How well the rules read sessions, and how long they take.

    python bench/extraction.py

Precision and recall by category on the annotated sessions of `tests/sessions/annotated`: one half
was there while the rules were written, the other one was looked at when they were done. Then CPU
seconds: 10,000 messages to findings, and the support of 10,000 findings.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from pathlib import Path

# In place of this directory, in which another script is called sessions.
sys.path[0] = str(Path(__file__).resolve().parents[1] / "tests")

from sessions.annotation import Score, half, matched  # noqa: E402

from memtool.sessions import promote  # noqa: E402
from memtool.sessions.extract import MAX_MESSAGES, extract  # noqa: E402
from memtool.sessions.model import (  # noqa: E402
    Finding,
    Message,
    make_finding_id,
)


def quality(name: str) -> None:
    """Print a row per category, and one for all."""
    made, right, wanted = Counter[str](), Counter[str](), Counter[str]()
    sessions = half(name)
    for session in sessions:
        findings = extract(session.messages, session.name)
        made.update(finding.category for finding in findings)
        right.update(finding.category for finding, _expected in matched(findings, session.expected))
        wanted.update(expected.category for expected in session.expected)
    empty = sum(not session.expected for session in sessions)
    print(f"{name}: {len(sessions)} sessions, {empty} of them with nothing to keep")
    for category in sorted(made | wanted):
        row(category, Score(made[category], right[category], wanted[category]))
    row("all", Score(made.total(), right.total(), wanted.total()))


def row(name: str, score: Score) -> None:
    print(
        f"  {name:<12} precision {score.precision:.3f} ({score.right}/{score.made})"
        f"  recall {score.recall:.3f} ({score.right}/{score.wanted})"
    )


def speed() -> None:
    """Print CPU seconds for as much as is ever read at once."""
    kinds = ("user", "assistant", "call", "failed", "ok")
    messages = [_message(n, kinds[n % len(kinds)]) for n in range(1, MAX_MESSAGES + 1)]
    began = time.process_time()
    learned = extract(messages, "ses-a")
    print(
        f"{len(messages):,} messages: {time.process_time() - began:.2f} s, {len(learned)} findings"
    )
    texts = [f"Part {n} of tool {n % 977} reads file src/m{n}.py at start." for n in range(10_000)]
    findings = [
        Finding(make_finding_id("s", text), f"s{n % 50}", text, text, "pattern", "high", 0.5, (1,))
        for n, text in enumerate(texts)
    ]
    began = time.process_time()
    promote.count_supports(findings, [])
    print(f"{len(findings):,} findings compared: {time.process_time() - began:.2f} s")


def _message(number: int, kind: str) -> Message:
    log = "2026-11-02 10:11:12 INFO request served in 12 ms\n" * 60
    if kind == "user":
        text = f"From now on use tool{number} for part {number % 97}. Please fix the footer."
        return Message(number, "user", text)
    if kind == "assistant":
        return Message(number, "assistant", "I will look at it and run the tests. " * 20)
    if kind == "call":
        return Message(number, "assistant", "", tool="Bash", call=f"pytest tests/t{number % 50}.py")
    text = log + f"E   KeyError: 'x{number % 7}'" if kind == "failed" else log
    return Message(number, "tool", text, tool="Bash", is_ok=kind == "ok")


if __name__ == "__main__":
    quality("tuning")
    quality("heldout")
    speed()
