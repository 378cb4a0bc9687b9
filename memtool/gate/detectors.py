"""The table of detectors, in the order in which they may name what several of them see."""

from __future__ import annotations

from memtool.gate import context, entropy, personal, prefixes, shapes, userinfo

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Found = tuple[str, int, int]
"""Kind, start and end of one finding."""

DETECTORS: tuple[tuple[str, Callable[[str, str], Iterator[Found]]], ...] = (
    ("shapes", lambda text, _lower: shapes.find(text)),
    ("prefixes", lambda text, _lower: prefixes.find(text)),
    ("userinfo", lambda text, _lower: userinfo.find(text)),
    ("context", context.find),
    ("cards", lambda text, _lower: personal.cards(text)),
    ("social numbers", personal.social_numbers),
    ("emails", lambda text, _lower: personal.emails(text)),
    ("phones", personal.phones),
    ("entropy", entropy.find),
)
