"""Bare strings of high entropy, and how chance differs from words, hashes and media.

The rule is: more than 4.0 bits a character over more than 20 characters. In text about code it
also fits class names, paths, checksums and images, so a candidate must besides not read like
words, not be one of the public forms, and not follow a word that names it as harmless.
"""

from __future__ import annotations

from memtool.redaction.pattern import Pattern
from memtool.redaction.randomness import (
    bits,
    is_camel,
    is_filler,
    is_sequence,
    is_wordlike,
    restlessness,
)
from memtool.redaction.shapes import blocks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

LEAST_LENGTH = 21
LEAST_BITS = 4.0
MOST_ALIKE = 16
"""So many different characters have no more than 4 bits."""
MOST_LENGTH = 200
"""Secrets without any context are shorter; what is longer is media or a certificate."""

CANDIDATE = Pattern(r"(?<![A-Za-z0-9+/_-])[A-Za-z0-9+/_-]{21,}")

PUBLIC = Pattern(
    r"(?:sha-?\d{1,3}|md5|h1|blake\w{1,3}|npm|pip|go)[-_:]|"  # checksums
    r"AAAA[BCE]3Nza|AAAAC|AAAAE2V|ssh-|"  # public keys
    r"iVBORw0K|/9j/|R0lGOD|UklGR|JVBERi0|H4sI|UEsD|PHN2Zy|PD94bWw|Qk[0-3]|AAAB|T2dnUw|"  # media
    r"MI[IGH]|LS0tLS1CRUdJTi|"  # certificates, which `shapes` knows
    r"0[1-7][0-9A-HJKMNP-TV-Z]{24}$|"  # ULID
    r"Qm[1-9A-HJ-NP-Za-km-z]{44}$|baf[a-z2-7]{50,}$|z6Mk|npub1|bc1|addr1|cosmos1|"  # addresses
    r"_Z[A-Z0-9]|_R[A-Z]|\?\?|"  # mangled names
    r"[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}|"
    r"(?:[0-9a-fA-F]+|[0-9]+[a-z]?)$|\d{4}-\d\d-\d\d"
)
"""Forms that anybody may see."""

BEFORE = Pattern(
    r"(?:\b(?:[a-z_]{0,20}(?:sha-?\d{3}|digest|checksum|revision)|"
    r"sha-?\d{0,2}|sha\d?_\d+|md5|crc\d*|h1|hash(?:es|ed)?|check ?sum|integrity|"
    r"fingerprint|thumbprint|e-?tag|commit|blob|tree|pub(?:lic)?[ _-]?key|pubkey|"
    r"verif(?:y|ying)[ _-]?key|cursor|offset|(?:page|next|lock|change|client)[ _-]?token|"
    r"nonce|[un]uid|ulid|"
    r"ksuid|nanoid|cuid|guid|"
    r"[a-z]{0,20}_?ids?|identifier|(?:code_)?challenge|cid|request|trace|span|correlation|address|wallet|"
    r"ssh-[a-z0-9-]+|ecdsa-\S+|image|"
    r"signature|sig|sri|cert(?:ificate)?|media|png|jpe?g|gif|font|svg|icon|thumbnail|avatar|"
    r"build|slug|hashed|file|folder|class|function|symbol|branch|nix|store|cache[ _-]?key|"
    r"snapshot|artifact|bundle|chunk|asset|video|document|doc|sheet|"
    r"base64|data|encoded|payload|sample|alphabet)"
    r"[\"'`*]*\s*(?:is|was|of|=|:|:=|=>|->|\||\()?\s*[\"'`*(\[{<|]*|base64,|\$)\Z"
)
"""The text before a string that is no secret."""


def has_mixed_word(text: str, _lower: str = "") -> bool:
    """Return whether a word is long enough, of enough different characters."""
    return any(len(word) >= LEAST_LENGTH and len(set(word)) > MOST_ALIKE for word in text.split())


def find(text: str, lower: str) -> Iterator[tuple[str, int, int]]:
    """Yield (kind, start, end) of bare strings that only chance makes."""
    encoded = [(first, last) for label, first, last in blocks(text) if label == "block"][::-1]
    for hit in CANDIDATE.finditer(text):
        start, end = hit.span()
        start += text[start] in "nrt" and text[start - 1 : start] == "\\"  # an escaped line end
        while encoded and encoded[-1][1] <= start:
            encoded.pop()
        token = text[start:end].rstrip("-/_")
        size = len(token)
        if not LEAST_LENGTH <= size <= MOST_LENGTH or (
            token.isalpha() and restlessness(token) < 0.3
        ):
            continue
        if len(set(token)) <= MOST_ALIKE or bits(token) <= LEAST_BITS:
            continue
        if is_wordlike(token) or is_camel(token) or _is_composed(token) or is_sequence(token):
            continue
        if is_filler(token) or PUBLIC.match(token):
            continue
        if BEFORE.search(lower, max(0, start - 32), start):
            continue
        if _is_in_address(text, start) or _is_in_block(text, start, end):
            continue
        if (encoded and encoded[-1][0] <= start) or _is_encoded_text(token):
            continue
        tail = text[end : end + 2]
        padding = len(tail) - len(tail.lstrip("=")) if size == end - start else 0
        yield "high-entropy", start, start + size + padding


def _is_composed(token: str) -> bool:
    """Return whether a string is composed of words, numbers and hashes, as paths and pod names are.

    It is not if the other parts are most of it, or if one of them has enough entropy alone.
    """
    parts = _JOINED.split(token)
    if len(parts) == 1:
        return False
    random = [part for part in parts if not _NAME_PART.match(part) and not is_wordlike(part)]
    if any(len(part) >= LEAST_LENGTH and bits(part) > LEAST_BITS for part in random):
        return False
    return sum(map(len, random)) * 10 < 7 * sum(map(len, parts)) or len(parts) * 6 > len(token)


_JOINED = Pattern(r"[/_+-]")
_NAME_PART = Pattern(r"(?:[A-Z]?[a-z]{2,}\d{0,3}|[A-Z]{2,}\d{0,3}|[0-9a-f]{6,}|v?\d+|x\d+)$")


def _is_in_address(text: str, start: int) -> bool:
    """Return whether the word up to here holds `://`, a host with a path, or a digest mark."""
    word = text[max(0, start - 300) : start]
    cut = max(word.rfind(mark) for mark in " \n\t\"'`<>(|")
    word = word[cut + 1 :]
    return (
        "://" in word
        or "www." in word
        or "@sha" in word
        or "arn:" in word
        or (word[:1] in "/~" and len(word) > 1)
    )


def _is_encoded_text(token: str) -> bool:
    """Return whether it is base64 of plain text, as cursors and settings are."""
    from binascii import a2b_base64

    size = len(token) // 4 * 4
    decoded = a2b_base64(token[:size].replace("-", "+").replace("_", "/"))
    return len(decoded) > 12 and all(32 <= byte < 127 or byte in (9, 10, 13) for byte in decoded)


def _is_in_block(text: str, start: int, end: int) -> bool:
    """Return whether the string is a whole line of a block of such lines, as encoded media is."""
    if end - start < 48:
        return False
    first = text.rfind("\n", max(0, start - 20), start) + 1
    last = text.find("\n", end, end + 20)
    above = text[max(0, first - 20) : max(0, first - 1)].strip()
    below = text[last + 1 : last + 21] if last >= 0 else ""
    return _is_encoded(above) or _is_encoded(below.strip())


def _is_encoded(line: str) -> bool:
    if len(line) < 8 or " " in line or "\0" in line:  # blanked text was no media
        return False
    return not is_wordlike(line) and bits(line) > 2.5
