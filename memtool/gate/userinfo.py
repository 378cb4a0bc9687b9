"""Passwords inside addresses: `scheme://user:password@host`, and tokens in the user's place."""

from __future__ import annotations

from memtool.gate import values
from memtool.gate.chance import is_filler
from memtool.gate.pattern import Pattern

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

HARMLESS = frozenset(str.split("user username pass password passwd pwd secret x-oauth-basic token"))


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


def find(text: str) -> Iterator[tuple[str, int, int]]:
    """Yield (kind, start, end) of the secret part of addresses."""
    for match in _USERINFO.finditer(text):
        user, password = match["user"], match["password"]
        if password is None:
            if values.is_dense(user) or values.is_hex_or_uuid(user):
                yield "url-password", *match.span("user")
            continue
        port = _PORT.match(password)
        if port and "@" not in password[: port.end()]:
            continue
        slash = password.find("/")
        cut = password.rfind("@", 0, slash) if slash > 0 else password.rfind("@")
        if cut > 0 and "@" in password and slash > cut:
            password = password[:cut]
        is_example = _EXAMPLE_HOST.match(text, match.end()) and not values.is_dense(password, 12)
        if is_real(user, password) and not is_example:
            start = match.start("password")
            yield "url-password", start, start + len(password)


def is_real(user: str, password: str) -> bool:
    """Say whether a password in an address is more than a placeholder."""
    lower = password.lower()
    if lower in HARMLESS or lower == user.lower() or lower in values.PLACEHOLDER_WORDS:
        return False
    if password[0] in "$<{%[*" and _PLACEHOLDER.match(password):
        return False
    return not is_filler(password) and len(set(password)) > 2
