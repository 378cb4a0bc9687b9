"""Wording: a long text in one short line, for checkpoints, summaries and lists."""

from __future__ import annotations

MOST_LINE = 120


def line(text: str, most: int = MOST_LINE) -> str:
    """Return the first line that says something, cut between words if it is long."""
    for row in text.split("\n"):
        words = " ".join(row.split())
        if words.strip("#`*->|= "):
            break
    else:
        return ""
    if len(words) <= most:
        return words
    cut = words[: most - 2]
    return f"{cut.rpartition(' ')[0] or cut} …"
