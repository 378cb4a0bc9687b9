"""Quantities: numbers with their units, and versions, in one spelling each."""

from __future__ import annotations

UNITS: dict[str, tuple[str, float]] = {
    "ms": ("time", 0.001), "millisecond": ("time", 0.001), "s": ("time", 1), "sec": ("time", 1),
    "second": ("time", 1), "min": ("time", 60), "minute": ("time", 60), "h": ("time", 3600),
    "hour": ("time", 3600), "day": ("time", 86_400), "week": ("time", 604_800),
    "b": ("size", 1), "byte": ("size", 1), "kb": ("size", 1e3), "mb": ("size", 1e6),
    "gb": ("size", 1e9), "tb": ("size", 1e12), "kib": ("size", 2**10), "mib": ("size", 2**20),
    "gib": ("size", 2**30), "%": ("share", 0.01), "percent": ("share", 0.01),
}  # fmt: skip
"""Units in lower case and singular: what they measure, and how much of its base unit."""
_COUNTS = "zero one two three four five six seven eight nine ten eleven twelve"
NUMBERS: dict[str, int] = {word: number for number, word in enumerate(_COUNTS.split())} | {
    "fifteen": 15, "twenty": 20, "thirty": 30, "forty": 40, "fifty": 50, "sixty": 60,
    "ninety": 90, "hundred": 100, "thousand": 1000, "million": 1_000_000,
}  # fmt: skip
_LONGEST = 24
_DIGITS = frozenset("0123456789")
_STARTS = _DIGITS | frozenset("v^~><=")

Measured = tuple[str, str]
"""A kind (`time`, `size`, `share`, `number`) and the value in its base unit."""


def measure(word: str, after: str = "") -> tuple[Measured | None, int]:
    """Return what a word measures, or None, and how many words that takes: `10MB` 1, `10 MB` 2.

    Both words are in lower case. `1 min` and `60 s` are the same, `3.10` and `3.1` are not.
    """
    if len(word) > _LONGEST or not (word[:1] in _STARTS or word in NUMBERS):
        return None, 0
    digits, rest = _split(word)
    if not digits:
        if word in NUMBERS:
            digits, rest = str(NUMBERS[word]), ""
        elif word[:1] in ("v", "^", "~", ">", "<", "="):
            digits, rest = _split(word.lstrip("v^~=><"))
    if not digits:
        return None, 0
    if rest:
        unit = _unit(rest)
        return (_scaled(digits, unit), 1) if unit and digits.count(".") < 2 else (None, 0)
    unit = _unit(after) if digits.count(".") < 2 else None
    return (_scaled(digits, unit), 2) if unit else (("number", digits), 1)


def _unit(word: str) -> tuple[str, float] | None:
    return UNITS.get(word.removesuffix("s") if len(word) > 2 else word)


def _scaled(digits: str, unit: tuple[str, float]) -> Measured:
    return unit[0], f"{float(digits) * unit[1]:.12g}"


def _split(word: str) -> tuple[str, str]:
    """Split a number, with points and thousands' commas, from what follows it."""
    at = 0
    while at < len(word) and (word[at] in _DIGITS or word[at] in ".,"):
        at += 1
    digits = word[:at].replace(",", "").rstrip(".")
    is_number = digits[:1] in _DIGITS and ".." not in digits if digits else False
    return (digits, word[at:]) if is_number else ("", word)
