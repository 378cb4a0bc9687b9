"""Who may ask: hosts, origins, the login link, sessions of browsers, the token of programs.

Every port of this machine is the same site to a browser, and cookies cross ports. So the browser is
sent to a name of its own below `.localhost`, which no other page knows; its cookie holds the id of
a session of this process, never the token, and counts under that name only. A page of another
origin cannot ask: the Host must be ours (against rebinding), and so must Origin and Sec-Fetch-Site
be where a browser sends them.
"""

from __future__ import annotations

import hmac
import secrets
import time
from urllib.parse import urlsplit

from memtool.errors import MemtoolError
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

COOKIE = "memtool"
LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
OPEN = ("/health", "/login")
"""What answers without a login; so do the style and the script, below STATIC."""
STATIC = "/static/"
SAFE = ("GET", "HEAD")
LINK_S = 600
"""Seconds for which a login link is good."""
MOST_SESSIONS = 32
HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
        "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    # Under no-referrer a browser sends `Origin: null` with a form, which no page of ours is.
    "referrer-policy": "same-origin",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}
"""What every answer says to a browser."""


class Denied(MemtoolError):
    """A request that is refused with a status of HTTP of its own."""

    def __init__(
        self,
        status: int,
        message: str,
        *,
        hint: str = "",
        code: str = "usage",
        recoverable: bool = True,
    ) -> None:
        super().__init__(message, hint=hint, code=code, recoverable=recoverable)
        self.status = status


class Visitor(Value):
    """Who asks. A person has a session, and a nonce that the forms of its pages carry."""

    is_known: bool
    session: str = ""
    nonce: str = ""

    @property
    def is_person(self) -> bool:
        """Whether a browser asks that was logged in, and no program."""
        return bool(self.session)


class Guard:
    """What lets requests in. Its state is the sessions and login links of one process."""

    def __init__(self, port: int, outside: str = "") -> None:
        """Make names and tokens.

        Args:
            port: where the server listens.
            outside: MEMTOOL_API_URL, under which clients reach it as well, such as the local end
                of a tunnel.
        """
        self.site = f"memtool-{secrets.token_hex(5)}.localhost:{port}"
        self.token = secrets.token_urlsafe(32)
        self.hosts = {self.site, *(f"{name}:{port}" for name in LOOPBACK)}
        if port == 80:
            self.hosts |= {self.site.removesuffix(":80"), *LOOPBACK}
        if outside:
            self.hosts.add(outside_host(outside))
        self.origins = {f"http://{host}" for host in self.hosts}
        self._links: dict[str, float] = {}
        self._sessions: dict[str, str] = {}

    def link(self) -> str:
        """Return a link that logs a browser in, once."""
        key = secrets.token_urlsafe(24)
        self._links[key] = time.monotonic() + LINK_S
        return f"http://{self.site}/login?token={key}"

    def login(self, key: str, host: str) -> str:
        """Return the id of a new session for a login link.

        Raises:
            Denied: the link was used, is too old or none of ours.
        """
        ends = self._links.pop(key, 0.0)
        if ends < time.monotonic() or host != self.site:
            raise Denied(
                403,
                "this login link was used already, or is too old",
                hint="memtool serve, in the same repository, makes a new one",
                code="login",
            )
        while len(self._sessions) >= MOST_SESSIONS:
            self._sessions.pop(next(iter(self._sessions)))
        session = secrets.token_urlsafe(24)
        self._sessions[session] = secrets.token_urlsafe(24)
        return session

    def visitor(self, method: str, path: str, headers: Mapping[str, str]) -> Visitor:
        """Return who asks; `headers` are by their names in small letters.

        Raises:
            Denied: the host or origin is foreign, or nobody is logged in.
        """
        host = headers.get("host", "").lower()
        if host not in self.hosts:
            raise Denied(
                421,
                "this server is not known by that name",
                hint="use the address that memtool serve prints",
                code="foreign-request",
            )
        if path in OPEN or path.startswith(STATIC):
            return Visitor(is_known=False)
        self._refuse_foreign(headers)
        given = headers.get("authorization", "")
        if given:
            kind, _space, token = given.partition(" ")
            if kind.lower() == "bearer" and _is_same(token.strip(), self.token):
                return Visitor(is_known=True)
            raise _nobody("the token is not that of this server")
        session = _cookie(headers.get("cookie", ""))
        nonce = self._sessions.get(session, "") if host == self.site else ""
        if not nonce:
            raise _nobody("nobody is logged in")
        if method not in SAFE and not headers.get("origin"):
            raise _foreign()
        return Visitor(is_known=True, session=session, nonce=nonce)

    def _refuse_foreign(self, headers: Mapping[str, str]) -> None:
        origin = headers.get("origin")
        if origin is not None and origin.lower() not in self.origins:
            raise _foreign()
        if headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
            raise _foreign()


def refuse_form(visitor: Visitor, nonce: str) -> None:
    """Raise Denied where a form is not of a page that this session was shown."""
    if not visitor.nonce or not _is_same(nonce, visitor.nonce):
        raise Denied(
            403,
            "this form is not of a page of this session",
            hint="load the page again",
            code="login",
        )


def outside_host(address: str) -> str:
    """Return host and port of MEMTOOL_API_URL, which must be on this machine.

    Raises:
        MemtoolError: it is no such address.
    """
    try:
        parts = urlsplit(address)
        port = parts.port or 80
    except ValueError:
        parts, port = urlsplit(""), 0
    host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname or ""
    is_own = host in LOOPBACK or host.endswith(".localhost")
    if parts.scheme != "http" or not is_own or parts.path not in ("", "/") or parts.query:
        raise MemtoolError(
            f"MEMTOOL_API_URL is {address[:80]!r}, which is no address on this machine",
            hint="MEMTOOL_API_URL=http://localhost:9000, or unset it",
            code="config",
        )
    return f"{host}:{port}"


def _is_same(given: str, own: str) -> bool:
    return hmac.compare_digest(given.encode(errors="replace"), own.encode())


def _cookie(header: str) -> str:
    for pair in header.split(";"):
        name, _equals, value = pair.strip().partition("=")
        if name == COOKIE:
            return value
    return ""


def _nobody(message: str) -> Denied:
    return Denied(
        401,
        message,
        hint="open the link that memtool serve prints; a program sends the token of serve.json",
        code="login",
    )


def _foreign() -> Denied:
    return Denied(
        403,
        "the request comes from another site",
        hint="open the page itself",
        code="foreign-request",
    )
