"""How well the rules read what people say, and how long they take.

    python bench/extraction.py [ROWS.jsonl]

Precision and recall on annotated messages: those of `tests/sessions/statements.jsonl`, on which the
rules were tuned, or rows of your own with `text` and `label` (keep, weak, oneoff, no). Then how
many messages let an agent be told to remember, and CPU seconds: 10,000 messages to findings, and
the support of 10,000 findings.
"""

from __future__ import annotations

import json
import sys
import time
from collections import Counter
from pathlib import Path

from memtool.sessions import promote
from memtool.sessions.extract.extraction import MAX_MESSAGES, extract
from memtool.sessions.model import Finding, Message, make_finding_id
from memtool.sessions.suggestion import asks_to_keep

ROWS = Path(__file__).parents[1] / "tests/sessions/statements.jsonl"
LABELS = ("keep", "weak", "oneoff", "no")


def measure_quality(path: Path) -> None:
    """Print precision, recall and suggestions on annotated messages."""
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    totals = Counter(row["label"] for row in rows)
    hits, suggestions = Counter[str](), Counter[str]()
    for row in rows:
        hits[row["label"]] += bool(extract([Message(1, "user", row["text"])], "ses-a"))
        suggestions[row["label"]] += asks_to_keep(row["text"])
    print(f"{len(rows)} messages: {', '.join(f'{totals[name]} {name}' for name in LABELS)}")
    for name, counts in (("findings", hits), ("suggestions", suggestions)):
        made = max(1, counts.total())
        print(
            f"  {name:<12} {counts.total():3}  precision {counts['keep'] / made:.2f}, "
            f"with weak {(counts['keep'] + counts['weak']) / made:.2f}, "
            f"recall {counts['keep'] / max(1, totals['keep']):.2f}"
        )


def measure_speed() -> None:
    """Print CPU seconds for as much as is ever read at once."""
    kinds = ("user", "assistant", "call", "failed", "ok")
    messages = [_make_message(n, kinds[n % len(kinds)]) for n in range(1, MAX_MESSAGES + 1)]
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


def _make_message(number: int, kind: str) -> Message:
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
    measure_quality(Path(sys.argv[1]) if sys.argv[1:] else ROWS)
    measure_speed()
