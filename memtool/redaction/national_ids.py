"""Numbers that name a person or an account: national ids and IBANs, each judged by its check.

The rows of `data/national_ids.tsv` say in which shapes a number is written, and which name must
stand beside a shape that an order number has too. python-stdnum knows the checks; the few that it
lacks are here. It is imported once a number has a shape, and a name where it needs one.
"""

from __future__ import annotations

from functools import cache, lru_cache

from memtool import tables
from memtool.pattern import Pattern
from memtool.redaction.columns import find_cells

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    Check = tuple[str, str]
    """The name of a check, and the names of which one must stand near."""


def is_luhn(digits: str) -> bool:
    """Return whether the last digit is the check digit of the others (ISO/IEC 7812-1, annex B)."""
    return _find_check("luhn")(digits)


@cache
def _find_check(name: str) -> Callable[[str], bool]:
    """Return a check of this module, or the one of a module of python-stdnum, such as `es.dni`."""
    if name in _OWN_CHECKS:
        return _OWN_CHECKS[name]
    from importlib import import_module  # most texts hold no such number

    check: Callable[[str], bool] = import_module(f"stdnum.{name}").is_valid
    return check


def _is_national_insurance(text: str) -> bool:
    """Return whether the letters are ones that the United Kingdom gives out; it has no digit."""
    is_given = text[0] not in "DFIQUV" and text[1] not in "DFIOQUV" and text[8] in "ABCD"
    return is_given and text[:2] not in ("BG", "GB", "KN", "NK", "NT", "TN", "ZZ")


def _is_russian_insurance(digits: str) -> bool:
    """Return whether the last two digits of a SNILS are right."""
    return _sum_weighted(digits, range(9, 0, -1)) % 101 % 100 == int(digits[9:])


def _is_singaporean(text: str) -> bool:
    """Return whether the last letter of an NRIC or FIN is right."""
    letters = "JZIHGFEDCBA" if text[0] in "ST" else "XWUTRQPNMLK"
    total = _sum_weighted(text[1:8], (2, 7, 6, 5, 4, 3, 2)) + 4 * (text[0] in "TG")
    return text[0] in "STFG" and letters[total % 11] == text[8]


def _is_taiwanese(text: str) -> bool:
    """Return whether the last digit of an id of Taiwan is right."""
    place = "ABCDEFGHJKLMNPQRSTUVXYWZIO".index(text[0]) + 10
    total = place // 10 + place % 10 * 9 + _sum_weighted(text[1:], (8, 7, 6, 5, 4, 3, 2, 1, 1))
    return text[1] in "1289" and total % 10 == 0


def _is_uruguayan(digits: str) -> bool:
    """Return whether the last digit of a cédula of Uruguay is right."""
    return _sum_weighted(digits, (2, 9, 8, 7, 6, 3, 4, 1)) % 10 == 0


def _sum_weighted(digits: str, weights: Iterable[int]) -> int:
    return sum(int(digit) * weight for digit, weight in zip(digits, weights, strict=False))


_OWN_CHECKS: dict[str, Callable[[str], bool]] = {
    "gb.nino": _is_national_insurance,
    "ru.snils": _is_russian_insurance,
    "sg.nric": _is_singaporean,
    "tw.id": _is_taiwanese,
    "uy.ci": _is_uruguayan,
}

ROWS = tables.read_rows("redaction/national_ids")

_SHAPES: dict[str, list[Check]] = {}
for _country, _shapes, _names, _check in ROWS:
    for _shape in _shapes.split("|"):
        for _end in ("9", "A") if "*" in _shape else ("",):
            _SHAPES.setdefault(_shape.replace("*", _end), []).append((_check, _names))
_STARTS = frozenset(shape.split(" ", maxsplit=1)[0] for shape in _SHAPES)
_EVERY_NAME = "|".join(dict.fromkeys(row[2] for row in ROWS if row[2]))
MAX_WORDS = 7
"""Groups that a number is written in at most."""
MIN_DIGITS, MIN_LONG = 6, 14
"""Digits of a number, and characters of a word, that are looked at anyway."""

_AS_SHAPE = dict.fromkeys(range(48, 58), "9") | dict.fromkeys(range(65, 91), "A")
_WORD = Pattern(r"(?<![\w.+/@#$%-])[0-9A-Z][0-9A-Z./+-]{0,21}(?<=[0-9A-Z])(?![\w@%-]|[./:]\d)")
_SIGNS = Pattern(r"[ .+/-]")


NEAR = (
    Pattern(r"\d(?:[ ()./-]{0,3}\d){5,}"),
    *(
        Pattern(rf"{shape.replace('9', '[0-9]').replace('A', '[A-Z]')}(?![A-Z0-9])")
        for shape in _SHAPES
        if len(shape) < MIN_LONG and max(map(len, shape.split("A"))) < MIN_DIGITS
    ),
)
"""Where a number of many digits may be, or one of few between letters."""


@lru_cache(1)
def has_id(text: str, _lower: str = "") -> bool:
    """Return whether there may be a national id or an account number."""
    return any(
        sum(map(word.count, "0123456789")) > 3 or (len(word) > 15 and word.isupper())
        for word in text.replace(" ", "").split("\n")
        if len(word) > 7
    )


def find_ids(text: str, lower: str) -> Iterator[tuple[str, int, int]]:
    """Yield (kind, start, end) of national ids whose check is right."""
    words = [(match.start(), match.end()) for match in _WORD.finditer(text)]
    done = 0
    for at, (start, stop) in enumerate(words):
        if start < done or text[start:stop].translate(_AS_SHAPE) not in _STARTS:
            continue
        best = end = 0
        for low, high in words[at : at + MAX_WORDS]:
            if low > start and (low != end + 1 or text[end] != " "):
                break
            end = high
            rows = _SHAPES.get(text[start:end].translate(_AS_SHAPE))
            if rows and not _goes_on(text, start, end) and _is_right(text, lower, start, end, rows):
                best = end
        if best:
            done = best
            yield "national-id", start, best
    yield from _find_below_names(text, lower)


def _find_below_names(text: str, lower: str) -> Iterator[tuple[str, int, int]]:
    """Yield (kind, start, end) of the ids in columns that are named after them."""
    for head, start, end in find_cells(
        text, lower, lambda head: is_beside(head, 0, 0, _EVERY_NAME)
    ):
        plain = _SIGNS.sub("", text[start:end])
        rows = _SHAPES.get(text[start:end].translate(_AS_SHAPE), ())
        if len(set(plain)) > 2 and any(
            names and is_beside(head, 0, 0, names) and is_valid(check, text[start:end])
            for check, names in rows
        ):
            yield "national-id", start, end


def _goes_on(text: str, start: int, end: int) -> bool:
    """Return whether more groups of digits stand before or behind: it is part of another number."""
    before, behind = text[max(0, start - 2) : start], text[end : end + 2]
    return (before[:1].isdigit() and before[1:] in (" ", "-")) or (
        behind[1:].isdigit() and behind[:1] in (" ", "-")
    )


def _is_right(text: str, lower: str, start: int, end: int, rows: list[Check]) -> bool:
    """Return whether a number of a known shape passes a check, near a name where it needs one."""
    plain = _SIGNS.sub("", text[start:end])
    if len(set(plain)) < 3 or "12345678" in plain or "98765432" in plain:  # an example
        return False
    for check, names in rows:
        if names and not is_beside(lower, start, end, names):
            continue
        if is_valid(check, text[start:end]):
            return True
    return False


def is_valid(check: str, number: str) -> bool:
    """Return whether a number is right, as it is written or without the signs in it."""
    is_right = _find_check(check)
    try:
        return is_right(_SIGNS.sub("", number)) or (check not in _OWN_CHECKS and is_right(number))
    except LookupError:  # python-stdnum has a gap in a table, such as a county of China
        return False


MAX_BEFORE = 48
MAX_AFTER = 28


def is_beside(lower: str, start: int, end: int, names: str) -> bool:
    """Return whether one of some names (a pattern) stands near a place on the same line.

    It may stand at the end of the line above, which then ends with a question mark, a colon or the
    sign of a block of YAML.
    """
    top = lower.rfind("\n", 0, start) + 1
    if _LABEL_END.search(lower, max(0, top - 8), top):
        top = lower.rfind("\n", 0, top - 1) + 1
    stop = lower.find("\n", end)
    stop = len(lower) if stop < 0 else stop
    pattern = _NAMES.get(names)
    if pattern is None:
        spaced = names.replace(" ", "[ _-]")
        pattern = _NAMES[names] = Pattern(rf"(?<![^\W_])(?:{spaced})")
    before = pattern.search(lower, max(top, start - MAX_BEFORE), start)
    return bool(before or pattern.search(lower, end, min(stop, end + MAX_AFTER)))


_NAMES: dict[str, Pattern] = {}
_LABEL_END = Pattern(r"[?:][ \t]{0,2}(?:[>|][-+]?)?[ \t]{0,2}\r?\n\Z")

IBAN = Pattern(
    r"(?<![A-Za-z0-9])[A-Za-z]{2}\d\d(?:[ -]?[A-Za-z0-9]{4}){2,7}(?:[ -]?[A-Za-z0-9]{1,4})?"
    r"(?![A-Za-z0-9])"
)


def find_ibans(text: str, _lower: str = "") -> Iterator[tuple[str, int, int]]:
    """Yield (kind, start, end) of account numbers whose length and sum are right."""
    at = 0
    while match := IBAN.search(text, at):
        start = match.start()
        at = start + 2
        end = _find_iban_end(text, start, match.end())
        if end:
            yield "iban", start, end
            at = end


def _find_iban_end(text: str, start: int, end: int) -> int:
    """Return where the longest account number ends that begins at a place, 0 if none does."""
    from stdnum import iban  # most texts hold no such number

    while end - start > MIN_IBAN:
        number = text[start:end]
        is_whole = not text[end : end + 1].isalnum() and len(set(number[4:])) > 3
        if is_whole and iban.is_valid(number, check_country=False):
            return end
        end -= 1
    return 0


MIN_IBAN = 14
"""The shortest account number has a character more (Norway)."""
