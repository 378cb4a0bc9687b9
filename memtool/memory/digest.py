"""Digests: what tells a summary that memtool wrote of other memories from one that a person wrote.

Its source names the tool, with a fingerprint of what was summed up. It says nothing of its own:
it repeats nobody, contradicts nobody, and is written anew when the fingerprint changes.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from memtool.memory.memory import Memory

SOURCE = "tool:digest/"
"""Begins the source of a digest that memtool wrote; the fingerprint of its inputs follows."""


def inputs_of(memory: Memory) -> str:
    """Return the fingerprint of what a digest sums up, empty for what is no such digest."""
    for source in memory.items("source"):
        if source.startswith(SOURCE):
            return source[len(SOURCE) :]
    return ""


def is_generated(memory: Memory) -> bool:
    """Tell whether memtool wrote a memory as the digest of others."""
    return bool(inputs_of(memory))
