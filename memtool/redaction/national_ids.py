"""Numbers that name a person or an account: national ids and IBANs, each with its own check.

The rows of `data/national_ids.tsv` say in which shapes a number is written, and which name must
stand beside a shape that an order number has too. Checks are those that the issuing offices
publish; an id without one has a date in it.
"""

from __future__ import annotations

from functools import lru_cache

from memtool import tables
from memtool.redaction.columns import find_cells
from memtool.redaction.entropy import Pattern

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

CAPITALS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
DNI = "TRWAGMYFPDXBNJZSQVHLCKE"
HETU = "0123456789ABCDEFHJKLMNPRSTUVWXY"
CURP = "0123456789ABCDEFGHIJKLMN\xd1OPQRSTUVWXYZ"
_ODD_PLACES = dict(
    zip(
        "0123456789" + CAPITALS,
        [
            1,
            0,
            5,
            7,
            9,
            13,
            15,
            17,
            19,
            21,
            1,
            0,
            5,
            7,
            9,
            13,
            15,
            17,
            19,
            21,
            2,
            4,
            18,
            20,
            11,
            3,
            6,
            8,
            12,
            14,
            16,
            10,
            22,
            25,
            24,
            23,
        ],
        strict=True,
    )
)
"""What a letter or digit at an odd place of an Italian tax code counts."""
_TIMES = (
    "0123456789",
    "1234067895",
    "2340178956",
    "3401289567",
    "4012395678",
    "5987604321",
    "6598710432",
    "7659821043",
    "8765932104",
    "9876543210",
)
_TURNS = (
    "0123456789",
    "1576283094",
    "5803796142",
    "8916043527",
    "9453126870",
    "4286573901",
    "2793806415",
    "7046913258",
)
"""The dihedral group of order ten and its permutation, by which Verhoeff's check works."""


def luhn(digits: str) -> bool:
    """Return whether the last digit is the check digit of the others (ISO/IEC 7812-1, annex B)."""
    total = 0
    for place, char in enumerate(reversed(digits)):
        value = int(char) * (1 + place % 2)
        total += value - 9 if value > 9 else value
    return total % 10 == 0


def verhoeff(digits: str) -> bool:
    """Return whether the last digit is Verhoeff's check digit of the others."""
    check = "0"
    for place, char in enumerate(reversed(digits)):
        check = _TIMES[int(check)][int(_TURNS[place % 8][int(char)])]
    return check == "0"


def mod_11_10(digits: str) -> bool:
    """Return whether the last digit is right by ISO 7064, MOD 11,10."""
    check = 5
    for char in digits[:-1]:
        check = (((check or 10) * 2) % 11 + int(char)) % 10
    return ((check or 10) * 2 % 11 + int(digits[-1])) % 10 == 1


def weighted_sum(digits: str, weights: Sequence[int]) -> int:
    """Return the sum of digits, each times its weight; the rest of the digits do not count."""
    return sum(int(char) * weight for char, weight in zip(digits, weights, strict=False))


def is_date(digits: str, order: str = "ymd") -> bool:
    """Return whether six digits are a day of some century; `order` says which two are what."""
    pairs = dict(zip(order, (digits[0:2], digits[2:4], digits[4:6]), strict=True))
    return 1 <= int(pairs["m"]) <= 12 and 1 <= int(pairs["d"]) <= 31


def _modulo_11(digits: str, weights: Sequence[int], *, ten: str = "0") -> bool:
    """Return whether the digit after the weighted ones makes the sum a multiple of eleven."""
    check = -weighted_sum(digits, weights) % 11
    last = digits[len(weights)]
    return last == (ten if check == 10 else str(check))


def _two_rounds(digits: str) -> bool:
    """Return whether an Estonian or Lithuanian code has its check digit."""
    check = weighted_sum(digits, (1, 2, 3, 4, 5, 6, 7, 8, 9, 1)) % 11
    if check == 10:
        check = weighted_sum(digits, (3, 4, 5, 6, 7, 8, 9, 1, 2, 3)) % 11 % 10
    return digits[0] in "123456" and is_date(digits[1:7]) and int(digits[10]) == check


def _argentina(digits: str) -> bool:
    return digits[:2] in ("20", "23", "24", "27") and _modulo_11(
        digits, (5, 4, 3, 2, 7, 6, 5, 4, 3, 2), ten="9"
    )


def _australia(digits: str) -> bool:
    return weighted_sum(digits, (1, 4, 3, 7, 5, 8, 6, 9, 10)) % 11 == 0


def _austria(digits: str) -> bool:
    check = weighted_sum(digits, (3, 7, 9, 0, 5, 8, 4, 2, 1, 6)) % 11
    return is_date(digits[4:], "dmy") and check == int(digits[3])


def _belgium(digits: str) -> bool:
    check = int(digits[9:])
    fits = any(97 - int(born + digits[:9]) % 97 == check for born in ("", "2"))
    return fits and int(digits[2:4]) % 20 <= 12 and int(digits[4:6]) <= 31


def _brazil(digits: str) -> bool:
    first = -weighted_sum(digits, range(10, 1, -1)) % 11 % 10
    second = -weighted_sum(digits, range(11, 1, -1)) % 11 % 10
    return len(set(digits)) > 1 and digits[9:] == f"{first}{second}"


def _bulgaria(digits: str) -> bool:
    check = weighted_sum(digits, (2, 4, 8, 5, 10, 9, 7, 3, 6)) % 11 % 10
    month = int(digits[2:4]) % 20
    return 1 <= month <= 12 and 1 <= int(digits[4:6]) <= 31 and check == int(digits[9])


def _chile(text: str) -> bool:
    check = -weighted_sum(text[-2::-1], (2, 3, 4, 5, 6, 7, 2, 3)) % 11
    return text[-1] == ("K" if check == 10 else str(check))


def _china(text: str) -> bool:
    weights = (7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2)
    is_born = text[6:8] in ("19", "20") and is_date(text[8:14])
    return is_born and text[17] == "10X98765432"[weighted_sum(text[:17], weights) % 11]


def _czechia(digits: str) -> bool:
    month = int(digits[2:4]) % 50 % 20
    is_right = int(digits) % 11 == 0 or (int(digits[:9]) % 11 == 10 and digits[9] == "0")
    return 1 <= month <= 12 and 1 <= int(digits[4:6]) <= 31 and is_right


def _denmark(digits: str) -> bool:
    return is_date(digits, "dmy")


def _finland(text: str) -> bool:
    check = int(text[:6] + text[-4:-1]) % 31
    return is_date(text, "dmy") and text[-1] == HETU[check]


def _france(text: str) -> bool:
    digits = text.replace("2A", "19").replace("2B", "18")
    if not digits.isdecimal():
        return False
    is_born = 1 <= int(digits[3:5]) <= 12 or 20 <= int(digits[3:5]) <= 42
    return digits[0] in "123478" and is_born and 97 - int(digits[:13]) % 97 == int(digits[13:])


def _germany(digits: str) -> bool:
    times = sorted(map(digits[:10].count, set(digits[:10])))[::-1]
    return digits[0] != "0" and times[:2] in ([2, 1], [3, 1]) and mod_11_10(digits)


def _greece(digits: str) -> bool:
    return is_date(digits, "dmy") and luhn(digits)


def _iceland(digits: str) -> bool:
    is_right = weighted_sum(digits, (3, 2, 7, 6, 5, 4, 3, 2, 1)) % 11 == 0
    return is_date(digits, "dmy") and digits[9] in "089" and is_right


def _india(digits: str) -> bool:
    return digits[0] not in "01" and verhoeff(digits)


def _ireland(text: str) -> bool:
    extra = (ord(text[8]) - 64) * 9 if text[8:] and text[8] != "W" else 0
    return text[7] == f"W{CAPITALS}"[(weighted_sum(text[:7], range(8, 1, -1)) + extra) % 23]


def _italy(text: str) -> bool:
    value = sum(
        _ODD_PLACES[char] if place % 2 == 0 else int(char, 36) - 10 * char.isalpha()
        for place, char in enumerate(text[:15])
    )
    return text[8] in "ABCDEHLMPRST" and text[15] == CAPITALS[value % 26]


def _japan(digits: str) -> bool:
    check = 11 - weighted_sum(digits, (6, 5, 4, 3, 2, 7, 6, 5, 4, 3, 2)) % 11
    return int(digits[11]) == (check if check < 10 else 0)


def _korea(digits: str) -> bool:
    check = (11 - weighted_sum(digits, (2, 3, 4, 5, 6, 7, 8, 9, 2, 3, 4, 5)) % 11) % 10
    return is_date(digits) and digits[6] in "12345678" and int(digits[12]) == check


def _latvia(digits: str) -> bool:
    check = (1 + weighted_sum(digits, (10, 5, 8, 4, 2, 1, 6, 3, 7, 9))) % 11 % 10
    return digits[:2] in ("32", "33") or (is_date(digits, "dmy") and int(digits[10]) == check)


def _malaysia(digits: str) -> bool:
    return is_date(digits) and 1 <= int(digits[6:8]) <= 59


def _mexico(text: str) -> bool:
    value = sum(CURP.index(char) * (18 - place) for place, char in enumerate(text[:17]))
    return is_date(text[4:10]) and text[10] in "HMX" and int(text[17]) == -value % 10


def _netherlands(digits: str) -> bool:
    return int(digits) > 0 and weighted_sum(digits, (9, 8, 7, 6, 5, 4, 3, 2, -1)) % 11 == 0


def _nhs(digits: str) -> bool:
    return _modulo_11(digits, range(10, 1, -1), ten="none")


def _nino(text: str) -> bool:
    return (
        text[0] not in "DFIQUV"
        and text[1] not in "DFIQUVO"
        and text[8] in "ABCD"
        and text[:2] not in ("BG", "GB", "KN", "NK", "NT", "TN", "ZZ")
    )


def _norway(digits: str) -> bool:
    day, month = int(digits[:2]) % 40, int(digits[2:4]) % 40
    is_born = 1 <= day <= 31 and 1 <= month <= 12
    first = weighted_sum(digits, (3, 7, 6, 1, 8, 9, 4, 5, 2, 1)) % 11 == 0
    return is_born and first and weighted_sum(digits, (5, 4, 3, 2, 7, 6, 5, 4, 3, 2, 1)) % 11 == 0


def _poland(digits: str) -> bool:
    month = int(digits[2:4]) % 20
    is_born = 1 <= month <= 12 and 1 <= int(digits[4:6]) <= 31
    return is_born and weighted_sum(digits, (1, 3, 7, 9, 1, 3, 7, 9, 1, 3, 1)) % 10 == 0


def _portugal(digits: str) -> bool:
    check = -weighted_sum(digits, range(9, 1, -1)) % 11 % 10
    return digits[0] in "123" and int(digits[8]) == check


def _romania(digits: str) -> bool:
    check = weighted_sum(digits, (2, 7, 9, 1, 4, 6, 3, 5, 8, 2, 7, 9)) % 11
    return (
        digits[0] != "0" and is_date(digits[1:7]) and int(digits[12]) == min(check, 1 + check % 10)
    )


def _singapore(text: str) -> bool:
    shift = 4 if text[0] in "TG" else 0
    letters = "JZIHGFEDCBA" if text[0] in "ST" else "XWUTRQPNMLK"
    return (
        text[0] in "STFG"
        and text[8] == letters[(weighted_sum(text[1:8], (2, 7, 6, 5, 4, 3, 2)) + shift) % 11]
    )


def _slovenia(digits: str) -> bool:
    """Return whether it is a number of the countries of former Yugoslavia."""
    is_born = 1 <= int(digits[:2]) <= 31 and 1 <= int(digits[2:4]) <= 12 and digits[4] in "09"
    return is_born and _modulo_11(digits, (7, 6, 5, 4, 3, 2, 7, 6, 5, 4, 3, 2))


def _south_africa(digits: str) -> bool:
    return is_date(digits) and digits[10] in "012" and luhn(digits)


def _spain(text: str) -> bool:
    digits = text[:-1].translate({88: "0", 89: "1", 90: "2"})
    return digits.isdecimal() and text[-1] == DNI[int(digits) % 23]


def _sweden(digits: str) -> bool:
    short = digits[-10:]
    is_born = 1 <= int(short[2:4]) <= 12 and 1 <= int(short[4:6]) % 60 <= 31
    return is_born and luhn(short)


def _switzerland(digits: str) -> bool:
    return digits.startswith("756") and weighted_sum(digits, (1, 3) * 6 + (1,)) % 10 == 0


def _taiwan(text: str) -> bool:
    place = "ABCDEFGHJKLMNPQRSTUVXYWZIO".index(text[0]) + 10
    return text[1] in "1289" and (
        (place // 10 + place % 10 * 9 + weighted_sum(text[1:], (8, 7, 6, 5, 4, 3, 2, 1, 1))) % 10
        == 0
    )


def _thailand(digits: str) -> bool:
    check = (11 - weighted_sum(digits, range(13, 1, -1)) % 11) % 10
    return digits[0] != "0" and int(digits[12]) == check


def _turkey(digits: str) -> bool:
    odd, even = weighted_sum(digits, (1, 0) * 4 + (1,)), weighted_sum(digits, (0, 1) * 4)
    check = (odd * 7 - even) % 10
    last = (odd + even + check) % 10
    return digits[0] != "0" and digits[9:] == f"{check}{last}"


def _ukraine(digits: str) -> bool:
    return weighted_sum(digits, (-1, 5, 7, 9, 4, 6, 10, 5, 7)) % 11 % 10 == int(digits[9])


def _uruguay(digits: str) -> bool:
    return weighted_sum(digits, (2, 9, 8, 7, 6, 3, 4, 1)) % 10 == 0


def _russia(digits: str) -> bool:
    return weighted_sum(digits, range(9, 0, -1)) % 101 % 100 == int(digits[9:])


ROWS = tables.read_rows("redaction/national_ids")

_SHAPES: dict[str, list[tuple[Callable[[str], bool], str]]] = {}
for _country, _shapes, _names, _check in ROWS:
    for _shape in _shapes.split("|"):
        for _end in ("9", "A") if "*" in _shape else ("",):
            _SHAPES.setdefault(_shape.replace("*", _end), []).append((globals()[_check], _names))
_STARTS = frozenset(shape.split(" ", maxsplit=1)[0] for shape in _SHAPES)
_EVERY_NAME = "|".join(dict.fromkeys(row[2] for row in ROWS if row[2]))
MAX_WORDS = 7
"""Groups that a number is written in at most."""

_AS_SHAPE = dict.fromkeys(range(48, 58), "9") | dict.fromkeys(range(65, 91), "A")
_WORD = Pattern(r"(?<![\w.+/@#$%-])[0-9A-Z][0-9A-Z./+-]{0,21}(?<=[0-9A-Z])(?![\w@%-]|[./:]\d)")
_SIGNS = Pattern(r"[ .+/-]")


@lru_cache(1)
def has_id(text: str, _lower: str = "") -> bool:
    """Return whether there may be a national id or an account number."""
    return any(
        sum(map(word.count, "0123456789")) > 5 or (len(word) > 15 and word.isupper())
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
            names and is_beside(head, 0, 0, names) and check(plain) for check, names in rows
        ):
            yield "national-id", start, end


def _goes_on(text: str, start: int, end: int) -> bool:
    """Return whether more groups of digits stand before or behind: it is part of another number."""
    before, behind = text[max(0, start - 2) : start], text[end : end + 2]
    return (before[:1].isdigit() and before[1:] in (" ", "-")) or (
        behind[1:].isdigit() and behind[:1] in (" ", "-")
    )


def _is_right(
    text: str, lower: str, start: int, end: int, rows: list[tuple[Callable[[str], bool], str]]
) -> bool:
    """Return whether a number of a known shape passes a check, near a name where it needs one."""
    plain = _SIGNS.sub("", text[start:end])
    if len(set(plain)) < 3:
        return False
    for check, names in rows:
        if names and not is_beside(lower, start, end, names):
            continue
        if check(plain):
            return True
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

IBAN_LENGTHS = {
    country: int(length) for country, length in tables.read_rows("redaction/iban_lengths")
}

IBAN = Pattern(
    r"(?<![A-Za-z0-9])[A-Za-z]{2}\d\d(?:[ -]?[A-Za-z0-9]{4}){2,7}(?:[ -]?[A-Za-z0-9]{1,4})?"
    r"(?![A-Za-z0-9])"
)


def find_ibans(text: str, _lower: str = "") -> Iterator[tuple[str, int, int]]:
    """Yield (kind, start, end) of account numbers with the length and sum of their country."""
    at = 0
    while match := IBAN.search(text, at):
        start = match.start()
        at = start + 2
        size = IBAN_LENGTHS.get(match[0][:2].upper(), 0)
        plain, end = "", start
        while end < match.end() and len(plain) < size:
            plain += text[end] if text[end].isalnum() else ""
            end += 1
        if size and len(plain) == size and is_iban(plain.upper()):
            is_whole = not text[end : end + 1].isalnum()
            if is_whole:
                yield "iban", start, end
                at = end


def is_iban(plain: str) -> bool:
    """Return whether an account number without spaces is right by ISO 7064, MOD 97-10."""
    digits = "".join(str(int(char, 36)) for char in plain[4:] + plain[:4])
    return int(digits) % 97 == 1 and len(set(plain[4:])) > 2
