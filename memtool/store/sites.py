"""Sites: one HEAD request for each address that a memory cites, only where the user wants it.

An address comes from a memory, which is untrusted: nothing of this machine or its network is asked,
whatever its name resolves to; nothing is sent but the path; no redirect is followed, no proxy used,
no answer read beyond its status.
"""

from __future__ import annotations

import http.client
import ipaddress
import socket
import ssl
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import quote, urlsplit

from memtool.store.sources import OK, UNKNOWN

DEAD = "dead"
LIMIT_S = 5.0
"""Seconds for each step of one request: the connection, and the answer."""
AT_ONCE = 8
_GONE = (404, 410)
_FINE = range(200, 400)
_PORTS = {"http": 80, "https": 443}
_KEPT = "/%:@!$&'()*+,;=~-._?"


def is_public(address: str) -> bool:
    """Tell whether an IP address is one of the internet, and none of a machine or its network."""
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return False
    inner = getattr(found, "ipv4_mapped", None) or getattr(found, "sixtofour", None)
    return found.is_global and not found.is_multicast and (inner is None or is_public(str(inner)))


def asked(
    addresses: Iterable[str],
    *,
    limit_s: float = LIMIT_S,
    may_ask: Callable[[str], bool] = is_public,
) -> dict[str, tuple[str, str]]:
    """Return a status (ok, dead or unknown) and a clause for each address, asked some at a time.

    `may_ask` tells whether an IP address may be asked at all.
    """
    wanted = sorted(set(addresses))
    with ThreadPoolExecutor(AT_ONCE) as pool:
        answers = pool.map(lambda address: _ask(address, limit_s, may_ask), wanted)
        return dict(zip(wanted, answers, strict=True))


def _ask(address: str, limit_s: float, may_ask: Callable[[str], bool]) -> tuple[str, str]:
    parts = urlsplit(address)
    host, port = parts.hostname or "", parts.port or _PORTS[parts.scheme]
    path = quote(parts.path or "/", safe=_KEPT) + (
        f"?{quote(parts.query, safe=_KEPT)}" if parts.query else ""
    )
    try:
        rows = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        numbers = [str(row[4][0]) for row in rows]
        if not numbers or not all(map(may_ask, numbers)):
            return UNKNOWN, "it is no site of the internet, so nobody asked"
        # The number that was judged is connected to, not what the name may resolve to next.
        connection = socket.create_connection((numbers[0], port), limit_s)
        with connection:
            wrapped = connection
            if parts.scheme == "https":
                wrapped = ssl.create_default_context().wrap_socket(connection, server_hostname=host)
            status = _status(wrapped, host, port, path, limit_s)
    except (OSError, ValueError, http.client.HTTPException):
        return UNKNOWN, "the site did not answer"
    if status in _GONE:
        return DEAD, f"the site answers {status}: there is no such page"
    if status in _FINE:
        return OK, f"the site answers {status}"
    return UNKNOWN, f"the site answers {status}"


def _status(connection: socket.socket, host: str, port: int, path: str, limit_s: float) -> int:
    request = http.client.HTTPConnection(host, port, timeout=limit_s)
    request.sock = connection
    try:
        request.request("HEAD", path, headers={"User-Agent": "memtool"})
        return request.getresponse().status
    finally:
        request.close()
