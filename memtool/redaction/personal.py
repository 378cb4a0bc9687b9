"""Personal data: e-mail addresses, telephone numbers, US social security numbers, payment cards.

Numbers of other countries and of accounts are in `national_ids`.
"""

from __future__ import annotations

from memtool import tables
from memtool.pattern import Pattern
from memtool.redaction.columns import find_cells
from memtool.redaction.entropy import is_sequence
from memtool.redaction.national_ids import is_luhn
from memtool.redaction.rows import read_list

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from re import Match

HARMLESS_DOMAINS = read_list("harmless_domains")
RESERVED_ENDINGS = read_list("reserved_endings")

FILE_ENDINGS = read_list("file_endings")

ROLES = read_list("roles")

SECOND_ADDRESS = read_list("name_placeholders")

PLACEHOLDER_HOSTS = read_list("host_placeholders")

TOP_NAMES = read_list("top_names")


def _parse_range(text: str) -> tuple[int, int]:
    low, _, high = text.partition("-")
    return int(low), int(high or low)


CARDS = tuple(
    (brand, tuple(map(_parse_range, first.split())), tuple(map(int, lengths.split())))
    for brand, first, lengths in tables.read_rows("redaction/cards")
)
"""Brand, ranges of the first digits, lengths."""


def has_at(_text: str, lower: str) -> bool:
    """Return whether there may be an address for mail, maybe spelled out."""
    return "@" in lower or any(sign in lower for sign in _SPELLED_SIGNS)


def find_emails(text: str, lower: str) -> Iterator[tuple[str, int, int]]:
    """Yield (kind, start, end) of the addresses of people."""
    at = text.find("@")
    while at >= 0:
        after = text.find("@", at + 1)
        address = _find_address(text, at)
        if address:
            yield "email", *address
        at = after
    if any(sign in lower for sign in _SPELLED_SIGNS):
        for sign in AT_SIGN.finditer(lower):
            host = SPELLED_HOST.match(lower, sign.end())
            local = SPELLED_NAME.search(lower, max(0, sign.start() - 64), sign.start())
            if host and local and _is_spelled_address(_DOTS.sub(".", local["local"]), sign, host):
                yield "email", local.start("local"), host.end("top")


SIGNS = ("@", "\uff20", "%40", "&#64;", "&#x40;", "&commat;")
"""The sign of an address as people, web pages and machines write it."""
NEAR = (
    Pattern(
        r"\s(?i:at|arroba)\s{1,3}(?=\S{1,60}(?:\.[A-Za-z]|\s?[\[({]|\s(?i:dot|punkt|punto)\b))"
    ),
    Pattern(r"[\[({<_-]\s?(?i:at|arroba)(?![a-z0-9])"),
)
"""Words that stand for that sign."""
_SPELLED_SIGNS = (
    " at ",
    "(at",
    "[at",
    "{at",
    "<at",
    "_at_",
    "-at-",
    "( at",
    "[ at",
    " @ ",
    "[@]",
    "(@)",
    "arroba",
    *SIGNS[1:],
)
_OPEN, _CLOSE = r"\s{0,2}(?:[\[({<]|_|-)\s?", r"\s?(?:[\])}>]|_|-)\s{0,2}"
_LABEL = r"[a-z0-9\xe0-\u024f](?:[a-z0-9\xe0-\u024f-]{0,61}[a-z0-9\xe0-\u024f])?"
SPELLED_NAME = Pattern(
    r"(?<![\w.%+@/-])_{0,2}(?P<local>(?:[a-z0-9][a-z0-9_-]{0,30}\s?[\[({<]\s?(?:dot|punkt|punto|\.)"
    r"\s?[\])}>]\s?){0,2}[a-z0-9](?:[a-z0-9._+-]{0,40}[a-z0-9])?)\Z"
)
AT_SIGN = Pattern(
    rf"(?P<sure>{_OPEN}(?:at|@|arroba){_CLOSE}|\uff20|%40|&#64;|&#x40;|&commat;)"
    r"|(?P<spaced>\s{1,2}(?:at|arroba)\s{1,2})|(?P<apart>\s@\s)"
)
_DOT = rf"(?:{_OPEN}(?:dot|punkt|punto|\.){_CLOSE}|\s{{1,2}}(?:dot|punkt|punto)\s{{1,2}}|\s\.\s|\.)"
SPELLED_HOST = Pattern(
    rf"(?P<host>{_LABEL}(?:{_DOT}{_LABEL}){{0,3}}?)(?P<dot>{_DOT})"
    r"(?P<top>[a-z]{2,24})(?![a-z0-9@(=\[]|_\w|\.[a-z0-9])"
)
"""The parts of an address in lower case whose signs are words, or written for machines."""
_NO_NAMES = read_list("no_names")
_NAMED_LOCAL = Pattern(r"[a-z]{2,}[._][a-z]+\d{0,4}$|[a-z]{3,}\d{1,4}$|[a-z]\.[a-z]{2,}$")


def _is_spelled_address(local: str, sign: Match[str], behind: Match[str]) -> bool:
    """Return whether an address in words is one, and no sentence with `at` in it."""
    host, top = behind["host"], behind["top"]
    if top == "md" and sign[0] == "-at-":
        return False  # a file, whose name is written like that
    name = _DOTS.sub(".", f"{host}.{top}")
    is_dotted = behind["dot"] == "."
    if sign["apart"] and behind["dot"].strip() != ".":
        return False
    if sign["spaced"]:
        if local in _NO_NAMES or host in _NO_NAMES:
            return False
        if is_dotted and (
            not _NAMED_LOCAL.match(local) or local.rpartition(".")[2] in FILE_ENDINGS
        ):
            return False
    if sign["apart"] and is_dotted and not _NAMED_LOCAL.match(local):
        return False
    return not is_harmless_address(local, name, top)


_DOTS = Pattern(r"\s?[\[({<_-]?\s?(?:\bdot\b|\bpunkt\b|\bpunto\b|_dot_|\.)\s?[\])}>_-]?\s?")
_SIGNS = Pattern(r"[-._+]")
_GROUPS = Pattern("[ -]")
LOCAL = Pattern(r"[A-Za-z0-9À-ɏ](?:[A-Za-z0-9À-ɏ._%+'-]{0,62}[A-Za-z0-9À-ɏ_+-])?$")
DOMAIN = Pattern(
    r"(?:[A-Za-z0-9À-ɏ](?:[A-Za-z0-9À-ɏ-]{0,61}[A-Za-z0-9À-ɏ])?\.){1,6}"
    r"(?P<top>[A-Za-z]{2,24})(?![\w@])"
)


def _find_address(text: str, at: int) -> tuple[int, int] | None:
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
    if _ATTRIBUTE.match(text, domain.end()):
        return None
    if text[start : domain.end()].isupper() or _LOGIN.search(text, max(0, start - 100), start):
        return None
    if before.endswith("://") and text[domain.end() : domain.end() + 1] in ("/", ":"):
        return None
    if (
        text[domain.end() : domain.end() + 1] == ":"
        and not text[domain.end() + 1 : domain.end() + 2].isspace()
    ):
        return None
    if is_harmless_address(local.lower(), host, domain["top"].lower()):
        return None
    line = text.rfind("\n", 0, start) + 1
    if before.endswith("<") and _MESSAGE.match(text, line):
        return None
    return start, domain.end()


_ATTRIBUTE = Pattern(r"[(\[]|[ \t]?=(?!=)")
"""Behind the attribute of an object that is multiplied, called or assigned to."""
_MESSAGE = Pattern(
    r"[ \t>]{0,8}(?i:message-id|references|in-reply-to|content-id|resent-message-id):"
)
"""Headers that name messages in the form of an address (RFC 5322, 3.6.4)."""
_LOGIN = Pattern(
    r"(?:\b(?:ssh|scp|sftp|rsync|mosh|autossh|ssh-copy-id|sshfs)\b|\b(?:Host|HostName|ProxyJump)\b)"
    r"(?:[ \t]{1,3}[^\s@]{1,40}){0,6}[ \t]{1,3}['\"]?\Z"
)
"""Before the name of a user on a machine."""


_CREDITS = (
    "authors?|contributors?|maintainers?|reviewers?|approvers?|editors?|"
    "co-?authored-by|signed-off-by|(?:reviewed|acked|reported|tested|suggested|helped)-by|committer"
)
_CREDIT = Pattern(
    rf"(?i)[ \t>*#/;\"'|-]{{0,20}}"
    rf"(?:(?:{_CREDITS})[\"'*]{{0,3}}[ \t]{{0,3}}[:=|]|copyright\b|\(c\)|\xa9|spdx-)"
)
_ITEM = Pattern(r"[ \t>#*]{0,20}-[ \t]")
MAX_CREDITS = 40
"""Lines of a list of authors that are looked at."""


def is_credit(text: str, at: int) -> bool:
    """Return whether an address credits somebody: in a key such as `authors`, a trailer, a licence.

    Who writes there has published the address.
    """
    line = text.rfind("\n", 0, at) + 1
    for _line in range(MAX_CREDITS):
        if _CREDIT.match(text, line, at):
            return True
        if line == 0 or not _ITEM.match(text, line):
            return False
        line = text.rfind("\n", 0, line - 1) + 1
        at = text.find("\n", line)
    return False


def is_harmless_address(local: str, host: str, top: str) -> bool:
    """Return whether an address (in lower case) belongs to a machine, an office or an example."""
    if top in FILE_ENDINGS or top in RESERVED_ENDINGS:
        return True
    if len(top) > 2 and top not in TOP_NAMES:
        return True
    if host.split(".")[-2] in PLACEHOLDER_HOSTS:
        return True
    if host in HARMLESS_DOMAINS or any(host.endswith("." + name) for name in HARMLESS_DOMAINS):
        return True
    if host.startswith(_LIST_HOSTS) or host in ("googlegroups.com", "groups.io"):
        return True
    plain = local.split("+", maxsplit=1)[0]
    if len(plain) == len(host.split(".")[-2]) == 1:  # as a@b.com
        return True
    if plain in ROLES or plain in SECOND_ADDRESS:
        return True
    parts = _SIGNS.split(plain)
    return (len(parts) > 1 and (parts[-1] in _LIST_ENDS or parts[0] in ROLES)) or (
        "noreply" in plain
        or "no-reply" in plain
        or "[bot]" in local
        or parts[-1] in ("bot", "bots")
        or (plain.endswith("bot") and len(plain) > 5)
    )


_LIST_HOSTS = ("lists.", "list.", "groups.", "mailman.")
_LIST_ENDS = frozenset(
    ("announce", "dev", "devel", "discuss", "list", "maintainers", "team", "users")
)
"""What the address of a mailing list or an office begins or ends with."""

_DAY = Pattern(r"(?:19|20)\d\d([-/.]?)\d\d\1\d\d(?!\d)")
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
    """Return whether a number is as long as one of a telephone, and no day."""
    if not has_number(text, 7):
        return False
    for match in LONG_NUMBER.finditer(text):
        day = _DAY.match(match[0])
        if sum(map(str.isdigit, match[0][day.end() :] if day else match[0])) > 6:
            return True
    return False


LONG_NUMBER = Pattern(r"\d(?:[ ()./-]{0,3}\d){6,}")


def has_social_number(text: str, _lower: str = "") -> bool:
    """Return whether a number is as long as a social security number."""
    return has_number(text, 9)


def has_card(text: str, _lower: str = "") -> bool:
    """Return whether a number is as long as one of a payment card."""
    return has_number(text, 13)


_LOCAL = r"[2-9]\d\d[-. ]\d{4}"
_AREA = rf"(?:\([2-9]\d\d\) ?|[2-9]\d\d[-. ]){_LOCAL}"
PHONE = Pattern(
    r"[+(0-9](?<![\w.+/:@#-][+(0-9])(?<!\d [0-9])(?:"
    r"(?<=\+)[1-9]\d{0,2}(?:[ .\-/]{0,2}\(?\d{1,5}\)?){2,7}+"
    r"|(?<=0)0[1-9]\d{0,2}(?:[ .\-/]{1,2}\(?\d{1,5}\)?){1,6}\d{0,6}"
    rf"|(?<=\+)1[ .-]{_AREA}|(?<=1)[ .-]{_AREA}"
    rf"|(?<=\()[2-9]\d\d\) ?{_LOCAL}|(?<=[2-9])\d\d[-. ]{_LOCAL}"
    r"|(?<=\()0?\d{2,4}\)[ -]?\d{3,5}[ -]?\d{3,5}"
    r"|(?<=0)[1-9]\d{0,3}(?:(?P<sign>[ .-])\d{2,4}(?:(?:(?P=sign)| )\d{2,4}){0,3}|[ /-]\d{5,8})"
    r")(?![\w@]|[.:/-]\d| \d)"
)
"""With a country code, North American, or with the zero or brackets of an area code.

The first character is looked for first: that is fast.
"""
TEL_LINK = Pattern(
    r"(?:\b(?:tel|sms|callto|facetime|whatsapp)(?::|%3a)(?://)?|\bwa\.me/|\bt\.me/)"
    r"(?P<number>\+?[\d(][\d(). -]{5,20}\d)(?![\w@])"
)
_STRONG = (
    r"phone|telephone|tel|fax|whatsapp|sms|handy|telefon|mobil|handynummer|mobilnummer|"
    r"rufnummer|telefonnummer|t\xe9l\xe9phone|telephone|portable|tel\xe9fono|telefono|m\xf3vil|movil|celular|"
    r"cellulare|telefone|telem\xf3vel|telefoon|puhelin|msisdn|hotline|landline|cellphone|mobilephone|"
    r"телефон|тел|моб|電話|携帯|电话|手机|전화|휴대폰|मोबाइल|फ़ोन|फोन|"
    r"โทร|هاتف|جوال|טלפון|τηλ|κινητ|điện thoại"
)
_WEAK = r"call|ring|dial|mobile|cell|contact|text|signal|ll[aá]ma(?:me|nos|le)?|fijo|позвон|appelle"
_NAME = rf"(?P<name>{_STRONG}|{_WEAK})"
NUMBER = Pattern(
    r"[(+\d](?<![\w.+/@#-][(+\d])(?:(?<=\d)"
    r"|\+?\(?\d)\d{0,11}\)?(?:[ ./-]{0,2}\(?\d{1,12}\)?){0,6}+(?![\w@]|[.:/-]\d)"
)
"""Any number in groups. Possessive: a long row of digits can be cut into groups in many ways."""
SPOKEN = Pattern(
    rf"(?<![a-z0-9])(?:home|work|user|customer|office)?{_NAME}(?:[_ -]?(?:number|num|nr|no"
    rf"|nummer|home|work))?s?"
    r"(?![a-z0-9_])[^\d\n+]{0,24}(?:(?<=[?:>|-])\s{0,3}\n[^\d\n+]{0,24})?\Z"
)
FOLLOWED = Pattern(
    r"[\"'`)*]{0,2}[ \t]{0,2}[,(|:;/\u2013\u2014-]{0,2}[ \t]{0,2}"
    r"(?:(?:is|as|on|for|my|his|her|the|our|their|new|old|private|direct|home|work|office"
    r"|business)[ \t]{1,2}){0,4}"
    rf"{_NAME}(?![a-z])"
)
"""The word for a number before it and behind it."""
_COUNTED = Pattern(
    r"[\"'`)*]{0,2}[ \t]{0,2}(?:times|ms|s\b|sec|min|hours|days|bytes|kb|mb|gb|rows|users|calls"
    r"|requests|"
    r"tokens|lines|items|records|events|per\b|%|x\b|/s)"
)
_NO_PHONE = Pattern(
    r"\bids?\b|_id|_at\b|count|model|version|size|length|price|total|bytes|stack|limit|rate|screen|resolution|serial|display"
)


def find_phones(text: str, lower: str) -> Iterator[tuple[str, int, int]]:
    """Yield (kind, start, end) of telephone numbers in the spellings that give them away.

    These are numbers with a country or area code, North American ones, links, and bare numbers
    with the word for it on either side.
    """
    for match in PHONE.finditer(text):
        if _is_spelled_phone(match[0]):
            yield "phone", match.start(), match.end()
    for match in TEL_LINK.finditer(lower) if ":" in text or "/" in text else ():
        if 7 <= sum(map(str.isdigit, match["number"])) <= 15:
            yield "phone", *match.span("number")
    for match in NUMBER.finditer(text):
        if _is_beside_its_word(match[0], lower, *match.span()):
            yield "phone", match.start(), match.end()
    for _head, start, end in find_cells(text, lower, _is_phone_heading):
        number = NUMBER.match(text[start:end])
        digits = "".join(filter(str.isdigit, text[start:end]))
        if number and number.end() == end - start and _is_named_phone(number[0], digits, "phone"):
            yield "phone", start, end


def _is_beside_its_word(number: str, lower: str, start: int, end: int) -> bool:
    """Return whether a number has the word for a telephone before or behind it."""
    digits = "".join(filter(str.isdigit, number))
    if not 7 <= len(digits) <= 15 or _DAY.match(number) or _COUNTED.match(lower, end):
        return False
    before = SPOKEN.search(lower, max(0, start - 60), start)
    word = before or FOLLOWED.match(lower, end)
    if word is None or (before and _NO_PHONE.search(lower, before.end("name"), start)):
        return False
    return _is_named_phone(number, digits, word["name"])


def _is_phone_heading(head: str) -> bool:
    """Return whether the heading of a column is a word for telephone numbers."""
    return SPOKEN.search(head) is not None and not _NO_PHONE.search(head)


def _is_spelled_phone(number: str) -> bool:
    """Return whether a number in groups has the length of one, and is no date or amount."""
    digits = "".join(char for char in number if char.isdigit())
    if _MONTH.match(number[-7:]):
        return False
    if number[0] == "+":
        is_long = 8 <= len(digits) <= 15
    elif digits.startswith("00"):
        groups = number.split(" ")
        keeps_zero = len(groups) < 3 or groups[1][:1] != "0" or groups[0][2:] in ZERO_CODES
        is_long = (
            11 <= len(digits) <= 16 and keeps_zero and (digits[2] not in "17" or len(digits) == 13)
        )
    elif number[0] == "0":
        max_digits = 12 if sum(not char.isdigit() for char in number) == 1 else 11
        is_long = 9 <= len(digits) <= max_digits and not is_sequence(digits)
        pairs = number.replace("-", " ").replace(".", " ").split(" ")
        if len(pairs) > 2 and _is_counting(pairs):
            return False  # 01 02 03 04 05
    elif number[0] == "(":
        is_long = 9 <= len(digits) <= 12
    else:
        is_long = len(digits) in (10, 11)
    return is_long and not _is_counted(number) and not _is_fictional(number)


_IPV4 = Pattern(r"\(?(?:(?:25[0-5]|2[0-4]\d|1?\d?\d)(?:\.(?!\)|$)|\)?$)){4}")

ZERO_CODES = frozenset(("39", "225", "241", "242", "378", "379"))
"""Country codes behind which the zero of an area code stays (national numbering plans)."""


def _is_counting(groups: list[str]) -> bool:
    """Return whether numbers grow by the same step."""
    from itertools import pairwise  # few texts need it

    numbers = [int(group) for group in groups if group.isdecimal()]
    steps = {after - before for before, after in pairwise(numbers)}
    return len(numbers) == len(groups) and len(steps) == 1


def _is_named_phone(number: str, digits: str, name: str) -> bool:
    """Return whether a number beside the word for it is as long as one, and no amount or time."""
    if number.isdigit() and digits[:2] in ("16", "17") and len(digits) in (10, 13):
        return False  # a time
    if _is_counted(number) or _is_fictional(number):
        return False
    is_weak = _WEAK_NAME.match(name) is not None
    least = (8 if " " in number else 9) if is_weak else 7
    max_digits = 12 if is_weak and not digits.startswith("00") else 15
    return least <= len(digits) <= max_digits


_WEAK_NAME = Pattern(rf"(?:{_WEAK})$")


_POSTCODE = Pattern(r"\d{5}-\d{4}$")


def _is_counted(number: str) -> bool:
    """Return whether it is an amount, an American post code, or one digit over and over."""
    groups = number.split(".")
    is_amount = len(groups) == 2 and not any(sign in number for sign in " /(+")
    if _POSTCODE.match(number) or _IPV4.match(number):
        return True
    return len({char for char in number if char.isdigit()}) < 3 or is_amount


def _is_fictional(number: str) -> bool:
    """Return whether it is North American and nobody's: 555-0100 to 555-0199, or directories."""
    digits = "".join(char for char in number if char.isdigit())
    is_free = digits[-7:-2] == "55501" or digits[-7:] == "5551212"
    return is_free and len(digits) in (10, 11)


SSN = Pattern(r"\d(?<![\w.+/-]\d)(?<!9)\d\d(?<!000)(?<!666)-(?!00)\d\d-(?!0000)\d{4}(?![\w-]|\.\d)")
NAMED_SSN = Pattern(
    r"(?:\bssn\b|social security(?: number| no\.?)?)[^\d\n]{0,24}"
    r"(?P<number>(?!000|666|9)\d{3}[ -]?(?!00)\d\d[ -]?(?!0000)\d{4})(?![\w-])"
)


_MONTH = Pattern(r"(?:0[1-9]|1[0-2])-(?:19|20)\d\d")


def find_social_numbers(text: str, lower: str) -> Iterator[tuple[str, int, int]]:
    """Yield (kind, start, end) of numbers in the ranges that are issued."""
    for match in SSN.finditer(text):
        if not _MONTH.match(match[0], 4):  # a day with a year, behind a number
            yield "ssn", match.start(), match.end()
    if "ssn" in lower or "social sec" in lower:
        for match in NAMED_SSN.finditer(lower):
            yield "ssn", match.start("number"), match.end("number")


CARD_GROUPS = ([4, 6, 5], [4, 6, 4], [4, 3, 3, 3])
"""How numbers of fewer than 16 digits are grouped; the others are in fours."""
CARD = Pattern(r"\d(?<![\w.+/-]\d)(?:[ -]?\d){12,18}(?![\w-]|\.\d)")


def find_cards(text: str, _lower: str = "") -> Iterator[tuple[str, int, int]]:
    """Yield (kind, start, end) of numbers with a brand's first digits, length and a right sum."""
    for match in CARD.finditer(text):
        digits = match[0].replace(" ", "").replace("-", "")
        if " " in match[0] or "-" in match[0]:
            groups = _GROUPS.split(match[0])
            sizes = [len(group) for group in groups]
            if not 2 < len(groups) < 6 or (set(sizes[:-1]) != {4} and sizes not in CARD_GROUPS):
                continue
        elif len(digits) not in (14, 15, 16):
            continue
        if _find_brand(digits) and is_luhn(digits) and len(set(digits)) > 1:
            yield "card", match.start(), match.end()


def _find_brand(digits: str) -> str:
    for name, ranges, lengths in CARDS:
        if len(digits) in lengths and any(
            low <= int(digits[: len(str(low))]) <= high for low, high in ranges
        ):
            return name
    return ""
