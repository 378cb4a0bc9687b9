"""Names of sessions: drawn by memtool, or those of a host, always safe as one directory."""

from __future__ import annotations

from memtool.memory import timestamps
from memtool.memory.ids import ALPHABET, SUFFIX_LENGTH

FOLDER = "sessions"
"""Where they all are, below the directory of private files in the git directory."""
PREFIX = "ses"
MOST_LENGTH = 100
_HASH_BYTES = 8
_FIRST = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789")
_SAFE = _FIRST | frozenset("._-")


def draw(second: int, random: bytes) -> str:
    """Return `ses-<date>-<4 base32 characters>`; `random` gives at least 3 bytes."""
    bits = int.from_bytes(random[:3], "big")
    suffix = "".join(ALPHABET[bits >> 5 * place & 31] for place in range(SUFFIX_LENGTH))
    return f"{PREFIX}-{timestamps.date(second)}-{suffix}"


def is_name(text: str) -> bool:
    """Tell whether a text is the name of a directory that can lie nowhere else."""
    return 3 <= len(text) <= MOST_LENGTH and text[0] in _FIRST and _SAFE.issuperset(text)


def of_host(host: str, given: str) -> str:
    """Return the name for the id that a host gave its session: the id itself where it is safe."""
    return given if is_name(given) else hashed(host, given)


def hashed(host: str, given: str) -> str:
    """Return a name that does not tell the id that it stands for."""
    from _blake2 import blake2b  # hashlib would import OpenSSL

    data = given.encode(errors="surrogatepass")
    return f"{host}-{blake2b(data, digest_size=_HASH_BYTES).hexdigest()}"
