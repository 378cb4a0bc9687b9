"""The table of detectors, in the order in which they may name what several of them see.

Each has a trigger, without which it finds nothing, and is loaded once a text pulls that.
"""

from __future__ import annotations

from memtool.gate import prefixes, shapes, triggers

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Found = tuple[str, int, int]
    """Kind, start and end of one finding."""
    Detector = tuple[str, Callable[[str, str], bool], Callable[[str, str], Iterator[Found]]]
    """Name, trigger, and what finds; both are given a text and the same in lower case."""


def _tokens(text: str, _lower: str) -> Iterator[Found]:
    from memtool.gate import tokens

    return tokens.find(text)


def _userinfo(text: str, _lower: str) -> Iterator[Found]:
    from memtool.gate import userinfo

    return userinfo.find(text)


def _context(text: str, lower: str) -> Iterator[Found]:
    from memtool.gate import context

    return context.find(text, lower)


def _cards(text: str, _lower: str) -> Iterator[Found]:
    from memtool.gate import personal

    return personal.cards(text)


def _social_numbers(text: str, lower: str) -> Iterator[Found]:
    from memtool.gate import personal

    return personal.social_numbers(text, lower)


def _emails(text: str, _lower: str) -> Iterator[Found]:
    from memtool.gate import personal

    return personal.emails(text)


def _phones(text: str, lower: str) -> Iterator[Found]:
    from memtool.gate import personal

    return personal.phones(text, lower)


def _entropy(text: str, lower: str) -> Iterator[Found]:
    from memtool.gate import entropy

    return entropy.find(text, lower)


DETECTORS: tuple[Detector, ...] = (
    ("shapes", shapes.may_hold, lambda text, _lower: shapes.find(text)),
    ("tokens", prefixes.may_hold, _tokens),
    ("userinfo", triggers.is_addressed, _userinfo),
    ("context", triggers.is_announced, _context),
    ("cards", triggers.is_card_long, _cards),
    ("social numbers", triggers.is_social_long, _social_numbers),
    ("emails", triggers.is_mailed, _emails),
    ("phones", triggers.is_phone_long, _phones),
    ("entropy", triggers.is_mixed, _entropy),
)
