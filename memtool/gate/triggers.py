"""Triggers: what a text must hold before it is worth to load a detector and its patterns.

Each says no only where its detector finds nothing, in one pass over the bytes. Ordinary prose
passes them all, which costs a hook a tenth of what the detectors do.
"""

from __future__ import annotations

LEAST_LENGTH = 21
"""Characters of a bare string that entropy judges, at least."""
MOST_ALIKE = 16
"""So many different characters have no more than 4 bits."""

ANNOUNCING = (
    *str.split(
        "pass pwd pw psw kata pin cred login auth secret token jeton geheim chave bearer cookie "
        "salt dsn jwt webhook key kennwort contrase clave senha hasł haslo wachtwoord lösenord "
        "adgangskode parola şifre salasana heslo jelszó пароль 密码 密碼 口令 パスワード 비밀번호 "
        "schlüssel clé токен секрет ключ 密钥 令牌 トークン 토큰"
    ),
    *("log in", "logs in", "pat ", 'pat"', "pat'", "pat`", "pat:", "pat="),
)
"""What stands in every announcing word: a text without any of it has none."""

_LETTERS = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_DIGITS = b"0123456789"


def _classes(sign: bytes, members: bytes, others: bytes = b"") -> bytes:
    """Return a table for `bytes.translate`: a sign for the members, maybe one for other ASCII."""
    rest = bytes(range(128)) if not others else others * 128
    table = bytearray(rest + bytes(range(128, 256)))
    for member in members:
        table[member] = sign[0]
    return bytes(table)


HEX = _classes(b"0", b"0123456789abcdef")
WORD = _classes(b"a", _LETTERS + _DIGITS + b"_-")
NUMBER = _classes(b"0", _DIGITS)
_ALONE = _classes(b"0", _DIGITS, b" ")
_BREAKS = bytes(code if code in _LETTERS + _DIGITS + b"+/_-" else 32 for code in range(256))


def is_announced(_text: str, lower: str) -> bool:
    """Say whether a word may announce a secret."""
    for word in ANNOUNCING:  # noqa: SIM110  # a generator would cost more than the search
        if word in lower:
            return True
    return False


def is_addressed(text: str, _lower: str) -> bool:
    """Say whether there may be an address with a user in it."""
    return "://" in text and "@" in text


def is_mailed(text: str, _lower: str) -> bool:
    """Say whether there may be an address for mail."""
    return "@" in text


def is_card_long(text: str, _lower: str) -> bool:
    """Say whether there are as many digits as a payment card has."""
    return has_digits(text, 13, b" -")


def is_social_long(text: str, _lower: str) -> bool:
    """Say whether there are as many digits as a social security number has."""
    return has_digits(text, 9, b" -")


def is_phone_long(text: str, _lower: str) -> bool:
    """Say whether there are as many digits as a telephone number has: eight behind a plus."""
    return has_digits(text, 8 if "+" in text else 9, b" -./()")


def has_digits(text: str, least: int, between: bytes) -> bool:
    """Say whether a text has so many digits with nothing but some signs between them.

    The patterns take the digits of other scripts as well; for these it is always true.
    """
    data = text.encode(errors="surrogatepass")
    return b"0" * least in data.translate(_ALONE, between) or has_foreign_digits(text)


def has_foreign_digits(text: str) -> bool:
    """Say whether a text has digits that are not those of ASCII."""
    return not text.isascii() and any(char.isdecimal() for char in set(text) if not char.isascii())


def is_mixed(text: str, _lower: str) -> bool:
    """Say whether a text has a string that is long and mixed enough, and not composed of words."""
    is_whole = "\\" not in text  # of an escaped line end a candidate leaves out the letter
    data = text.encode("ascii", "replace").translate(_BREAKS).decode()
    for word in set(data.split()):
        is_long = len(word) >= LEAST_LENGTH and len(set(word)) > MOST_ALIKE
        if is_long and not (is_whole and _is_plainly_composed(word.rstrip("-/_"))):
            return True
    return False


def _is_plainly_composed(token: str) -> bool:
    """Say whether `entropy` takes a string for composed, for reasons that need no pattern."""
    parts = token.replace("/", "-").replace("_", "-").replace("+", "-").split("-")
    rest = [
        len(part)
        for part in parts
        if not (
            part.isdigit()
            or (len(part) > 1 and part.isalpha() and (part.islower() or part.isupper()))
        )
    ]
    total = sum(map(len, parts))
    return len(parts) > 1 and max(rest, default=0) < LEAST_LENGTH and sum(rest) * 10 < 7 * total
