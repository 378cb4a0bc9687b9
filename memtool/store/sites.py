"""Sites: one HEAD request for each address that a memory cites, only if the user has enabled it.

Addresses come from memories, which are untrusted. So no request goes to this machine or its
network, whatever a name resolves to. Only the path is sent, redirects are not followed, proxies are
not used, and only the status is read.
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
TIMEOUT_S = 5.0
"""Time limit for each step of a request: the connection, and the response."""
MAX_CONNECTIONS = 8
_GONE_STATUSES = (404, 410)
_OK_STATUSES = range(200, 400)
_PORTS = {"http": 80, "https": 443}
_UNQUOTED_CHARS = "/%:@!$&'()*+,;=~-._?"


def is_public(address: str) -> bool:
    """Return whether an IP address belongs to the public internet."""
    try:
        ip = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return False
    inner = getattr(ip, "ipv4_mapped", None) or getattr(ip, "sixtofour", None)
    return ip.is_global and not ip.is_multicast and (inner is None or is_public(str(inner)))


def check_sites(
    addresses: Iterable[str],
    *,
    timeout_s: float = TIMEOUT_S,
    is_allowed: Callable[[str], bool] = is_public,
) -> dict[str, tuple[str, str]]:
    """Check addresses in parallel; return a status (ok, dead or unknown) and a clause for each.

    `is_allowed` decides whether an IP address may be contacted.
    """
    wanted = sorted(set(addresses))
    with ThreadPoolExecutor(MAX_CONNECTIONS) as pool:
        answers = pool.map(lambda address: _check_site(address, timeout_s, is_allowed), wanted)
        return dict(zip(wanted, answers, strict=True))


def _check_site(
    address: str, timeout_s: float, is_allowed: Callable[[str], bool]
) -> tuple[str, str]:
    parts = urlsplit(address)
    host, port = parts.hostname or "", parts.port or _PORTS[parts.scheme]
    path = quote(parts.path or "/", safe=_UNQUOTED_CHARS) + (
        f"?{quote(parts.query, safe=_UNQUOTED_CHARS)}" if parts.query else ""
    )
    try:
        rows = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        ips = [str(row[4][0]) for row in rows]
        if not ips or not all(map(is_allowed, ips)):
            return UNKNOWN, "it is no site of the internet, so nobody asked"
        # Connect to the checked IP address, since the name may resolve to another one next time.
        connection = socket.create_connection((ips[0], port), timeout_s)
        with connection:
            wrapped = connection
            if parts.scheme == "https":
                wrapped = ssl.create_default_context().wrap_socket(connection, server_hostname=host)
            status = _request_status(wrapped, host, port, path, timeout_s)
    except (OSError, ValueError, http.client.HTTPException):
        return UNKNOWN, "the site did not answer"
    if status in _GONE_STATUSES:
        return DEAD, f"the site answers {status}: there is no such page"
    if status in _OK_STATUSES:
        return OK, f"the site answers {status}"
    return UNKNOWN, f"the site answers {status}"


def _request_status(
    connection: socket.socket, host: str, port: int, path: str, timeout_s: float
) -> int:
    request = http.client.HTTPConnection(host, port, timeout=timeout_s)
    request.sock = connection
    try:
        request.request("HEAD", path, headers={"User-Agent": "memtool"})
        return request.getresponse().status
    finally:
        request.close()
