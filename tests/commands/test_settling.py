from __future__ import annotations

import pytest
from conftest import make_memory

from memtool.authoring.resolve import newest, with_reason


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("", "## Rationale\n\nwhy\n"),
        ("Text.\n", "Text.\n\n## Rationale\n\nwhy\n"),
        ("Text.\n\n\n", "Text.\n\n## Rationale\n\nwhy\n"),
        ("## Rationale\n", "## Rationale\n\nwhy\n"),
        ("T.\n\n## Rationale\n\nold\n", "T.\n\n## Rationale\n\nold\n\nwhy\n"),
        ("## rationale\n\nold\n\n## Next\n\nx\n", "## rationale\n\nold\n\nwhy\n\n## Next\n\nx\n"),
        ("## Rationale\n\n## Next\n", "## Rationale\n\nwhy\n\n## Next\n"),
        ("T.\n\n## Rationale\n\nwhy\n", "T.\n\n## Rationale\n\nwhy\n"),
        ("```\n## Rationale\n```\n", "```\n## Rationale\n```\n\n## Rationale\n\nwhy\n"),
    ],
)
def test_the_reason_stands_under_rationale(body: str, expected: str):
    """In the section that is there, or in a new one at the end, and only once."""
    assert with_reason(body, "why") == expected
    assert with_reason(expected, "why") == expected


def test_the_newest_is_the_one_written_last():
    """Moments are compared, not their texts; then the id decides."""
    early = make_memory("dec-b", timestamp="2026-02-22T19:33:00Z")
    late = make_memory("dec-a", timestamp="2026-02-22T18:34:00-01:00")
    assert newest([early, late]).id == "dec-a"
    assert newest([early, make_memory("dec-a")]).id == "dec-b"
