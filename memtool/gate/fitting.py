"""Which values an announcing word may have: other ones for a password than for a token."""

from __future__ import annotations

from memtool.gate import keywords, values
from memtool.gate.pattern import Pattern

WEAK = frozenset(
    ("login", "log in", "logs in", "auth", "pass", "cred", "creds", "credential", "credentials")
)
"""Words of common prose: their value must look like a password by itself, unless it is quoted."""

_KEY = Pattern(r"[ _.-]?keys?\Z")


class Announcement:
    """A word from `start` to `end` that announces a secret of a kind: `password` or `secret`.

    It is no `Value`, since a text has very many of them and nobody keeps one.
    """

    __slots__ = ("end", "kind", "lower", "start", "text", "word")

    def __init__(self, text: str, lower: str, start: int, end: int, kind: str) -> None:
        self.text = text
        self.lower = lower
        self.start = start
        self.end = end
        self.kind = kind
        self.word = lower[start:end]


def fits(said: Announcement, span: tuple[int, int], *, sure: bool, quoted: bool) -> bool:
    """Say whether the value is one that its announcing word may have.

    `sure` means that a sign assigns the value, and not a sentence.
    """
    if said.kind == "password":
        return _fits_password(said, span, sure=sure, quoted=quoted)
    return _fits_token(said, span, sure=sure, quoted=quoted)


def _fits_password(said: Announcement, span: tuple[int, int], *, sure: bool, quoted: bool) -> bool:
    value, word = said.text[span[0] : span[1]], said.word
    if values.is_hex_or_uuid(value):
        return sure and not keywords.HASH_WORDS.search(said.lower[said.start : span[0]])
    if word.startswith("pin"):
        return sure and value.isdigit() and 4 <= len(value) <= 8
    if word == "pass" and sure and values.is_typed(value, 8):
        return not values.is_named(value) or value.isalnum()
    if word in WEAK and not quoted:
        return values.is_typed(value, 8) and values.is_mixed(value)
    if quoted and values.is_phrase(value):
        return True
    if sure and value.isdigit():
        return 6 <= len(value) <= 9 and len(set(value)) > 2
    return values.is_typed(value, 5 if sure and quoted else 6, sure=sure) or values.is_dense(value)


def _fits_token(said: Announcement, span: tuple[int, int], *, sure: bool, quoted: bool) -> bool:
    value, word = said.text[span[0] : span[1]], said.word
    line = said.lower.rfind("\n", 0, said.start) + 1
    between = said.lower[max(0, said.start - 24, line) : span[0]]
    if values.is_hex_or_uuid(value):
        if keywords.HASH_WORDS.search(between.replace("_", " ")):
            return False
        if "-" in value and keywords.REQUEST_TOKENS.search(between):
            return False
        return word.rstrip("s") not in ("salt", "cookie", "webhook") and is_sure_key(said)
    plain = is_sure_key(said)
    if values.is_dense(value, 12 if plain and sure else 16):
        return True
    assigned = (sure and quoted) or "=" in between[-4:]
    return plain and assigned and _is_signed(value)


def _is_signed(value: str) -> bool:
    """Say whether it is a made-up secret with signs or digits, at least eight characters."""
    has_digit = any(char.isdigit() for char in value)
    return has_digit and values.is_typed(value, 8) and not values.is_named(value)


def is_sure_key(said: Announcement) -> bool:
    """Say whether a key is secret by its name, or written as a variable of the environment."""
    word = said.word
    if not word.rstrip("s").endswith("key"):
        return True
    head = _KEY.split(word)[0]
    return (
        head in keywords.SURE_KEYS
        or keywords.is_sure_ending(head)
        or said.text[said.start : said.end].isupper()
    )
