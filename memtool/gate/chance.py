"""Telling chance from words: entropy, letter pairs, stretches of letters, fillers."""

from __future__ import annotations

from memtool.gate.pattern import Pattern

WORD_PAIRS = frozenset(
    str.split(
        "ab ac ad ag ai al am an ap ar as at ba be bl bu ca ce ch ck cl co ct da de di do ea "
        "ec ed ee ef el em en ep er es et ex fi fo ge ha he hi ho ic id ie if ig il im in io "
        "ir is it ke la le li ll lo ls lt ly ma me mi mo mp na nc nd ne ng ni no ns nt oc od "
        "ol om on op or os ot ou ow pa pe pl po pp pr pt ra re ri rm rn ro rr rs rt ry sc se "
        "sh si so sp ss st su ta te th ti to tr ts tt tu ty ue ul um un up ur us ut va ve wi"
    )
)
"""The 140 commonest letter pairs of code and documentation: 80 % of the pairs of words, 21 % of
the pairs of random letters."""

WORDLIKE_SHARE = 0.5
WORDED = Pattern(r"[A-Z]?[a-z]{2,}|[A-Z]{3,}")
"""A stretch as names are made of: it covers most of a name, a quarter of random base62, and
little of hex, whose letters are common pairs otherwise."""

FILLERS = Pattern(
    r"(?i)x{4}|\*{3}|\.{3}|example|placeholder|redacted|changeme|change[_-]me|your[_-]|"
    r"my[_-](?:secret|token|key|pass)|_here\b|-here\b|dummy|0{8}|1{8}|abcdefg|12345678(?:9|$)"
)


_CLASSES = {
    code: "0" if char.islower() else "1" if char.isupper() else "2" if char.isdigit() else "3"
    for code, char in enumerate(map(chr, range(128)))
}
"""Of an ASCII character the class: lower, upper, digit, other."""


def bits(text: str) -> float:
    """Return the Shannon entropy of a string in bits for each character, 0 for an empty one."""
    from math import log2  # a library of its own, and few texts get here

    size = len(text)
    counts = [text.count(char) for char in dict.fromkeys(text)]
    return log2(size) - sum([n * log2(n) for n in counts if n > 1]) / size if size else 0.0


def pair_share(text: str) -> float:
    """Return which share of the neighbouring letters are common pairs, 0 where there are none."""
    lower = text.lower()
    pairs = [lower[at : at + 2] for at in range(len(lower) - 1)]
    if not lower.isalpha():
        pairs = [pair for pair in pairs if pair.isalpha()]
    return sum(map(WORD_PAIRS.__contains__, pairs)) / len(pairs) if pairs else 0.0


def restlessness(text: str) -> float:
    """Return which share of the neighbours are of different class: lower, upper, digit, other."""
    size = len(text)
    if size < 2:
        return 0.0
    classes = text.translate(_CLASSES)
    if not text.isascii():
        classes = "".join(c if c < "4" else "2" if c.isdigit() else "3" for c in classes)
    changes: int = sum(map(str.__ne__, classes, classes[1:]))
    return changes / (size - 1)


def is_wordlike(text: str, share: float = WORDLIKE_SHARE) -> bool:
    """Say whether a string is made of words, as names, paths and identifiers are."""
    worded = sum(map(len, WORDED.findall(text)))
    return worded * 2 > len(text) and pair_share(text) > share


def is_camel(text: str) -> bool:
    """Say whether a string without digits is short words and abbreviations, as class names are."""
    worded = sum(map(len, WORDED.findall(text)))
    digits = sum(map(str.isdigit, text))
    return digits < 2 and worded * 5 > len(text) * 4 and pair_share(text) > 0.3


def is_filler(text: str) -> bool:
    """Say whether a string only shows where a secret would stand."""
    if FILLERS.search(text):
        return True
    return len(text) >= 12 and len(set(text)) < 5


def is_sequence(text: str) -> bool:
    """Say whether most neighbours follow each other in the character table, as in alphabets."""
    from itertools import pairwise  # as `math` in `bits`

    codes = list(map(ord, text))
    steps = [after - before for before, after in pairwise(codes)]
    return (steps.count(1) + steps.count(-1)) * 2 > len(text)
