"""Personal data: e-mail addresses, telephone numbers, US social security numbers, payment cards."""

from __future__ import annotations

from memtool.redaction.entropy import Pattern

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

HARMLESS_DOMAINS = frozenset(
    str.split(
        "example.com example.org example.net example.edu example.invalid "
        "localhost.localdomain users.noreply.github.com noreply.github.com"
    )
)
RESERVED_ENDINGS = frozenset(str.split("example invalid localhost test local localdomain"))
"""Top-level names that no mail reaches (RFC 2606, RFC 6762)."""

FILE_ENDINGS = frozenset(
    str.split(
        "png jpg jpeg gif svg webp ico js mjs cjs ts jsx tsx css scss html htm json yaml yml "
        "toml lock txt xml csv log conf cfg ini service timer socket target mount scope slice "
        "path device swap whl gz zip tar jar exe dll so o git rb go java kt cpp hpp sql bat "
        "ps1 vue env internal"
    )
)
"""Endings of files, packages and units, in the place of an address's top-level name."""

ROLES = frozenset(
    str.split(
        "git hg svn noreply no-reply no_reply donotreply do-not-reply do_not_reply dontreply "
        "bot bots mailer-daemon postmaster hostmaster webmaster abuse noc security "
        "notifications notification bounce bounces automation builds ci actions root nobody "
        "user users username"
    )
)
"""Mailboxes of machines and offices (RFC 2142), not of people."""

SECOND_ADDRESS = frozenset(
    str.split("name you your.name first.last firstname.lastname email someone me")
)

CARDS: tuple[tuple[str, tuple[tuple[int, int], ...], tuple[int, ...]], ...] = (
    ("visa", ((4, 4),), (13, 16, 19)),
    ("mastercard", ((51, 55), (2221, 2720)), (16,)),
    ("amex", ((34, 34), (37, 37)), (15,)),
    ("discover", ((6011, 6011), (644, 649), (65, 65)), (16, 19)),
    ("jcb", ((3528, 3589),), (16, 19)),
    ("diners", ((300, 305), (36, 36), (38, 39)), (14,)),
    ("unionpay", ((62, 62), (81, 81)), (16, 17, 18, 19)),
    ("maestro", ((5018, 5018), (5020, 5020), (5038, 5038), (6304, 6304), (6759, 6759)), (16,)),
)
"""Brand, ranges of the first digits, lengths (ISO/IEC 7812 as published by the brands)."""


def has_at(text: str, _lower: str = "") -> bool:
    """Return whether there may be an address for mail."""
    return "@" in text


def emails(text: str, _lower: str = "") -> Iterator[tuple[str, int, int]]:
    """Yield (kind, start, end) of the addresses of people."""
    at = text.find("@")
    while at >= 0:
        after = text.find("@", at + 1)
        found = _address(text, at)
        if found:
            yield "email", *found
        at = after


_SIGNS = Pattern(r"[-._+]")
_GROUPS = Pattern("[ -]")
LOCAL = Pattern(r"[A-Za-z0-9À-ɏ](?:[A-Za-z0-9À-ɏ._%+'-]{0,62}[A-Za-z0-9À-ɏ_+-])?$")
DOMAIN = Pattern(
    r"(?:[A-Za-z0-9À-ɏ](?:[A-Za-z0-9À-ɏ-]{0,61}[A-Za-z0-9À-ɏ])?\.){1,6}"
    r"(?P<top>[A-Za-z]{2,24})(?![\w@])"
)


def _address(text: str, at: int) -> tuple[int, int] | None:
    """Return the span of the person's address around an `@`, or None."""
    domain = DOMAIN.match(text, at + 1)
    if domain is None:
        return None
    reach = text[max(0, at - 64) : at]
    cut = len(reach)
    while cut and (reach[cut - 1].isalnum() or reach[cut - 1] in "._%+'-"):
        cut -= 1
    local = reach[cut:].lstrip("._%+'-")
    if not LOCAL.match(local):
        return None
    start = at - len(local)
    before = text[max(0, start - 3) : start]
    host = domain[0].lower()
    if before.endswith("://") and text[domain.end() : domain.end() + 1] in ("/", ":"):
        return None
    if (
        text[domain.end() : domain.end() + 1] == ":"
        and not text[domain.end() + 1 : domain.end() + 2].isspace()
    ):
        return None
    if is_harmless_address(local.lower(), host, domain["top"].lower()):
        return None
    return start, domain.end()


def is_harmless_address(local: str, host: str, top: str) -> bool:
    """Return whether an address (in lower case) belongs to a machine, an office or an example."""
    if top in FILE_ENDINGS or top in RESERVED_ENDINGS:
        return True
    if host in HARMLESS_DOMAINS or any(host.endswith("." + name) for name in HARMLESS_DOMAINS):
        return True
    plain = local.split("+", maxsplit=1)[0]
    if plain in ROLES or plain in SECOND_ADDRESS:
        return True
    parts = _SIGNS.split(plain)
    return (
        "noreply" in plain or "no-reply" in plain or "[bot]" in local
        or parts[-1] in ("bot", "bots") or (plain.endswith("bot") and len(plain) > 5)
    )  # fmt: skip


_OTHERS = bytes(code for code in range(256) if code not in b"0123456789")
_AS_ZERO = bytes.maketrans(b"123456789" + _OTHERS, b"0" * 9 + b" " * len(_OTHERS))
"""A table for `bytes.translate`: each digit is a zero, all else a space."""


def has_number(text: str, least: int) -> bool:
    """Return whether a number may have so many digits, however they are grouped.

    The patterns take the digits of every script. Of a text that is not ASCII they are counted.
    """
    if not text.isascii():
        return sum(map(str.isdecimal, text)) >= least
    return b"0" * least in text.encode().translate(_AS_ZERO, b" -./()")


def has_phone(text: str, _lower: str = "") -> bool:
    """Return whether a number is as long as one of a telephone: eight digits behind a plus."""
    return has_number(text, 8 if "+" in text else 9)


def has_social_number(text: str, _lower: str = "") -> bool:
    """Return whether a number is as long as a social security number."""
    return has_number(text, 9)


def has_card(text: str, _lower: str = "") -> bool:
    """Return whether a number is as long as one of a payment card."""
    return has_number(text, 13)


_LOCAL = r"[2-9]\d\d[-. ]\d{4}"
_AREA = rf"(?:\([2-9]\d\d\) ?|[2-9]\d\d[-. ]){_LOCAL}"
PHONE = Pattern(
    r"[+(1-9](?<![\w.+/=:@#-][+(1-9])(?:"
    r"(?<=\+)[1-9]\d{0,2}(?:[ .\-/]{0,2}\(?\d{1,5}\)?){2,6}"
    rf"|(?<=\+)1[ .-]{_AREA}|(?<=1)[ .-]{_AREA}"
    rf"|(?<=\()[2-9]\d\d\) ?{_LOCAL}|(?<=[2-9])\d\d[-. ]{_LOCAL}"
    r")(?![\w@]|[.,:/-]\d)"
)
"""With a country code, or North American. The first character is looked for first: that is fast."""
SPOKEN = Pattern(
    r"\b(?:phone|telephone|tel|mobile|cell|fax|call|ring|whatsapp|sms|handy|telefon|mobil|"
    r"téléphone|teléfono|phone number|hotline|contact)\b[^\d\n+]{0,24}?"
    r"(?P<number>(?:\(?0\d{1,5}\)?|00[1-9]\d{0,2}|\(?[2-9]\d{2}\)?)"
    r"(?:[ ./-]{0,2}\d{2,8}){1,5})(?![\w@]|[.,:/-]\d)"
)


def phones(text: str, lower: str) -> Iterator[tuple[str, int, int]]:
    """Yield (kind, start, end) of numbers with a country code, North American ones, named ones."""
    for match in PHONE.finditer(text):
        digits = sum(char.isdigit() for char in match[0])
        international = match[0].startswith("+")
        is_long = 8 <= digits <= 15 if international else digits in (10, 11)
        if is_long and not _is_counted(match[0]) and not _is_fictional(match[0]):
            yield "phone", match.start(), match.end()
    for match in SPOKEN.finditer(lower):
        number = match["number"]
        digits = sum(char.isdigit() for char in number)
        if (9 <= digits <= 14 and not number.isdigit()) or (
            10 <= digits <= 12 and number[0] == "0"
        ):
            yield "phone", match.start("number"), match.end("number")


def _is_counted(number: str) -> bool:
    """Return whether it is an amount with a decimal point, or one digit over and over."""
    groups = number.split(".")
    return len({char for char in number if char.isdigit()}) < 3 or len(groups) == 2


def _is_fictional(number: str) -> bool:
    """Return whether it is North American and kept free for stories: 555-0100 to 555-0199."""
    digits = "".join(char for char in number if char.isdigit())
    return digits[-7:-2] == "55501" and len(digits) in (10, 11)


SSN = Pattern(r"\d(?<![\w.+/-]\d)(?<!9)\d\d(?<!000)(?<!666)-(?!00)\d\d-(?!0000)\d{4}(?![\w-]|\.\d)")
NAMED_SSN = Pattern(
    r"(?:\bssn\b|social security(?: number| no\.?)?)[^\d\n]{0,24}"
    r"(?P<number>(?!000|666|9)\d{3}[ -]?(?!00)\d\d[ -]?(?!0000)\d{4})(?![\w-])"
)


def social_numbers(text: str, lower: str) -> Iterator[tuple[str, int, int]]:
    """Yield (kind, start, end) of numbers in the ranges that are issued."""
    for match in SSN.finditer(text):
        yield "ssn", match.start(), match.end()
    if "ssn" in lower or "social sec" in lower:
        for match in NAMED_SSN.finditer(lower):
            yield "ssn", match.start("number"), match.end("number")


CARD = Pattern(r"\d(?<![\w.+/-]\d)(?:[ -]?\d){12,18}(?![\w-]|[.,]\d)")


def cards(text: str, _lower: str = "") -> Iterator[tuple[str, int, int]]:
    """Yield (kind, start, end) of numbers with a brand's first digits, length and a right sum."""
    for match in CARD.finditer(text):
        digits = match[0].replace(" ", "").replace("-", "")
        if " " in match[0] or "-" in match[0]:
            groups = _GROUPS.split(match[0])
            if not 2 < len(groups) < 6 or len(groups[0]) != 4:
                continue
        elif len(digits) not in (14, 15, 16):
            continue
        if _brand(digits) and luhn(digits) and len(set(digits)) > 1:
            yield "card", match.start(), match.end()


def _brand(digits: str) -> str:
    for name, ranges, lengths in CARDS:
        if len(digits) in lengths and any(
            low <= int(digits[: len(str(low))]) <= high for low, high in ranges
        ):
            return name
    return ""


def luhn(digits: str) -> bool:
    """Return whether the last digit is the check digit of the others (ISO/IEC 7812-1, annex B)."""
    total = 0
    for place, char in enumerate(reversed(digits)):
        value = int(char) * (1 + place % 2)
        total += value - 9 if value > 9 else value
    return total % 10 == 0
