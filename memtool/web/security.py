"""Authentication: hosts, origins, the login link, sessions of browsers, the token of programs.

Every port of this machine is the same site to a browser, and cookies cross ports. So the browser is
redirected to a name of its own below `.localhost`, which no other page knows; its cookie holds the
id of a session of this process, never the token, and is valid under that name only. Pages of other
origins are refused: the Host must be ours (against rebinding), and so must Origin and
Sec-Fetch-Site if a browser sends them.
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
"""Paths that need no login; neither do the style and the script, below STATIC."""
STATIC = "/static/"
SAFE = ("GET", "HEAD")
LINK_S = 600
"""Seconds for which a login link is good."""
MAX_SESSIONS = 32
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


class DeniedError(MemtoolError):
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
    """The caller. A person has a session, and a nonce for the forms of its pages."""

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
        """Create names and tokens.

        Args:
            port: the port of the server.
            outside: MEMTOOL_API_URL, another address, such as the local end of a tunnel.
        """
        self.site = f"memtool-{secrets.token_hex(5)}.localhost:{port}"
        self.token = secrets.token_urlsafe(32)
        self.hosts = {self.site, *(f"{name}:{port}" for name in LOOPBACK)}
        if port == 80:
            self.hosts |= {self.site.removesuffix(":80"), *LOOPBACK}
        if outside:
            self.hosts.add(find_outside_host(outside))
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
            raise DeniedError(
                403,
                "this login link is already used, or too old",
                hint="get a new one: memtool serve",
                code="login",
            )
        while len(self._sessions) >= MAX_SESSIONS:
            self._sessions.pop(next(iter(self._sessions)))
        session = secrets.token_urlsafe(24)
        self._sessions[session] = secrets.token_urlsafe(24)
        return session

    def visitor(self, method: str, path: str, headers: Mapping[str, str]) -> Visitor:
        """Return the caller; `headers` are by their names in lower case.

        Raises:
            DeniedError: the host or origin is foreign, or the caller is not logged in.
        """
        host = headers.get("host", "").lower()
        if host not in self.hosts:
            raise DeniedError(
                421,
                "unknown host name for this server",
                hint="use the address that memtool serve printed",
                code="foreign-request",
            )
        if path in OPEN or path.startswith(STATIC):
            return Visitor(is_known=False)
        self._refuse_foreign(headers)
        credentials = headers.get("authorization", "")
        if credentials:
            kind, _space, token = credentials.partition(" ")
            if kind.lower() == "bearer" and _is_same(token.strip(), self.token):
                return Visitor(is_known=True)
            raise _unknown_error("wrong token for this server")
        session = _read_cookie(headers.get("cookie", ""))
        nonce = self._sessions.get(session, "") if host == self.site else ""
        if not nonce:
            raise _unknown_error("you are not logged in")
        if method not in SAFE and not headers.get("origin"):
            raise _foreign_error()
        return Visitor(is_known=True, session=session, nonce=nonce)

    def _refuse_foreign(self, headers: Mapping[str, str]) -> None:
        origin = headers.get("origin")
        if origin is not None and origin.lower() not in self.origins:
            raise _foreign_error()
        if headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
            raise _foreign_error()


def refuse_form(visitor: Visitor, nonce: str) -> None:
    """Raise DeniedError if a form is not from a page that was shown to this session."""
    if not visitor.nonce or not _is_same(nonce, visitor.nonce):
        raise DeniedError(
            403,
            "this form is from another session",
            hint="load the page again",
            code="login",
        )


def find_outside_host(address: str) -> str:
    """Return host and port of MEMTOOL_API_URL, which must be on this machine.

    Raises:
        MemtoolError: it is not such an address.
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
            f"MEMTOOL_API_URL must be an address on this machine, not {address[:80]!r}",
            hint="MEMTOOL_API_URL=http://localhost:9000\nunset MEMTOOL_API_URL",
            code="config",
        )
    return f"{host}:{port}"


def _is_same(token: str, own: str) -> bool:
    return hmac.compare_digest(token.encode(errors="replace"), own.encode())


def _read_cookie(header: str) -> str:
    for pair in header.split(";"):
        name, _equals, value = pair.strip().partition("=")
        if name == COOKIE:
            return value
    return ""


def _unknown_error(message: str) -> DeniedError:
    return DeniedError(
        401,
        message,
        hint="open the link that memtool serve printed; programs send the token of serve.json",
        code="login",
    )


def _foreign_error() -> DeniedError:
    return DeniedError(
        403,
        "the request comes from another site",
        hint="open the page itself",
        code="foreign-request",
    )
