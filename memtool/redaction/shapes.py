"""Secrets known by their shape: key blocks, web tokens, headers, webhooks, passwords of addresses.

The rows of `data/shapes.toml` are searched for only where one of their needles is in the text.
Every repeat is bounded, so the work grows with the length of the text and not faster.
"""

from __future__ import annotations

from memtool.pattern import Pattern
from memtool.redaction.entropy import (
    PLACEHOLDER_WORDS,
    PRIVATE_KEY,
    find_key_blocks,
    is_dense,
    is_filler,
    is_hex_or_uuid,
    is_typed,
    is_wordlike,
    looks_like_password,
)
from memtool.redaction.rows import read_list, read_patterns
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator


class Shape(Value):
    """A row of `data/shapes.toml`, which says what its fields are."""

    kind: str
    needles: tuple[str, ...]
    pattern: Pattern
    word: int = 0
    near: str = ""


ROWS = tuple(
    Shape(
        kind=row["kind"],
        needles=tuple(row["needles"]),
        pattern=Pattern(row["pattern"]),
        word=row.get("word", 0),
        near=row.get("near", "").strip(),
    )
    for row in read_patterns("shapes")["shape"]
)
_NEEDLES = tuple(dict.fromkeys(needle for row in ROWS for needle in row.needles))

WORDED = frozenset({"authorization", "session-cookie", "password"})
"""Shapes whose secret could be a plain word; the others say enough by their form."""


def find(text: str, _lower: str = "") -> Iterator[tuple[str, int, int]]:
    """Yield (kind, start, end) of every shape."""
    for row in choose_rows(text):
        for match in row.pattern.finditer(text):
            group = "secret" if "secret" in match.re.groupindex else 0
            secret = match[group].rstrip("." if row.kind != "putty-key" else "\r\n")
            if _is_real(row.kind, secret):
                start = match.start(group)
                yield row.kind, start, start + len(secret)
    if any(name in text for name in CALLS):
        yield from _find_arguments(text)
    for label, start, end in find_key_blocks(text):
        if label == PRIVATE_KEY:
            yield label, start, end


CALLS = (
    "uth(",
    "uth=(",
    "uth = (",
    "UTH(",
    "ogin(",
    "redential(",
    "redentials(",
    "onnect(",
    "onnection(",
)
"""The ends of the names of calls that log in."""
_CALL = Pattern(
    r"(?:uth(?: ?= ?)?|UTH|ogin|redentials?|onnect(?:ion)?)\("
    r"(?P<arguments>(?:[^()\n\0\"']{0,40}(?:\"[^\"\n\0]{0,100}\"|'[^'\n\0]{0,100}')){2,5})"
)
_ARGUMENT = Pattern(r"(?:\"([^\"]{8,100})\"|'([^']{8,100})')")


def _find_arguments(text: str) -> Iterator[tuple[str, int, int]]:
    """Yield (kind, start, end) of passwords behind a user's name in a call that logs in."""
    for call in _CALL.finditer(text):
        for match in _ARGUMENT.finditer(text, call.start("arguments"), call.end()):
            group = match.lastindex or 0
            if looks_like_password(match[group]):
                yield "password", *match.span(group)
                break


def choose_rows(text: str) -> list[Shape]:
    """Return the rows of which a text may hold a match."""
    there = {needle for needle in _NEEDLES if needle in text}
    longest = max(map(len, text.split()), default=0) if there else 0
    return [row for row in ROWS if longest >= row.word and not there.isdisjoint(row.needles)]


def _is_real(kind: str, secret: str) -> bool:
    if kind == "password-hash":
        return len(set(secret[-20:])) > 5
    if is_filler(secret):
        return False
    if kind not in WORDED:
        return True
    if kind == "password":
        return is_typed(secret, 4, sure=True) and not secret.isdigit()
    has_digit = any(char.isdigit() for char in secret)
    return (has_digit or (not secret.islower() and len(secret) > 15)) and not is_wordlike(secret)


HARMLESS = read_list("url_passwords")

_USERINFO = Pattern(
    r"://(?P<user>[^\s:/@\"'`<>]{0,100})"
    r"(?::(?P<password>[^\s\"'`<>\x00]{1,200}))?@(?=[A-Za-z0-9\[$<{])"
)
_EXAMPLE_HOST = Pattern(
    r"(?:[\w-]{1,63}\.){0,5}(?:example\.(?:com|org|net)|\w{1,63}\.example)(?![\w.-])"
)
"""Hosts that are nobody's (RFC 2606)."""
_PORT = Pattern(r"\d{1,5}(?:[/?#]|$)")
_PLACEHOLDER = Pattern(r"\$\{|\$[A-Za-z_]\w*$|\$\(|<|\{|%[A-Za-z_(]+|\[|\*")


def has_userinfo(text: str, _lower: str = "") -> bool:
    """Return whether there may be an address with a user in it."""
    return "://" in text and "@" in text


def find_userinfo(text: str, _lower: str = "") -> Iterator[tuple[str, int, int]]:
    """Yield (kind, start, end) of the secret part of addresses."""
    for match in _USERINFO.finditer(text):
        user, password = match["user"], match["password"]
        if password is None:
            if is_dense(user) or is_hex_or_uuid(user):
                yield "url-password", *match.span("user")
            continue
        port = _PORT.match(password)
        if port and "@" not in password[: port.end()]:
            continue
        slash = password.find("/")
        cut = password.rfind("@", 0, slash) if slash > 0 else password.rfind("@")
        if cut > 0 and "@" in password and slash > cut:
            password = password[:cut]
        is_example = _EXAMPLE_HOST.match(text, match.end()) and not is_dense(password, 12)
        if is_dense(user, 20) or is_hex_or_uuid(user):
            yield "url-password", *match.span("user")
        if _is_real_password(user, password) and not is_example:
            start = match.start("password")
            yield "url-password", start, start + len(password)


def _is_real_password(user: str, password: str) -> bool:
    """Return whether a password in an address is more than a placeholder."""
    lower = password.lower()
    if lower in HARMLESS or lower == user.lower() or lower in PLACEHOLDER_WORDS:
        return False
    if password[0] in "$<{%[*" and _PLACEHOLDER.match(password):
        return False
    return not is_filler(password) and len(set(password)) > 2
