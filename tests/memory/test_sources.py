from __future__ import annotations

import pytest

from memtool.memory.sources import Source, parse


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("commit:0123abcd", Source("commit", "0123abcd", None, "0123abcd")),
        ("file:a/b.py", Source("file", "a/b.py")),
        ("file:a/b.py#L10-L24", Source("file", "a/b.py", (10, 24))),
        ("file:a/b.py#L10", Source("file", "a/b.py", (10, 10))),
        ("file:a/b.py@0123abcd", Source("file", "a/b.py", None, "0123abcd")),
        ("file:a/b.py#L1-L2@0123abcd", Source("file", "a/b.py", (1, 2), "0123abcd")),
        ("file:a@b.py", Source("file", "a@b.py")),
        ("file:c#.md", Source("file", "c#.md")),
        ("file:a#L0", Source("file", "a#L0")),
        ("file:a#L9-L2", Source("file", "a#L9-L2")),
        ("file:a#L2-L\u00b2", Source("file", "a#L2-L\u00b2")),
        ("file:@0123abcd", Source("file", "@0123abcd")),
        ("url:https://x.y/a#L1", Source("url", "https://x.y/a#L1")),
        ("human:Ada", Source("human", "Ada")),
        ("memory:dec-a", Source("memory", "dec-a")),
    ],
)
def test_sources_are_taken_apart(text: str, expected: Source) -> None:
    """What does not look like lines or a commit belongs to the path."""
    assert parse(text) == expected
