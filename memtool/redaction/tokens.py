"""Tokens with a vendor's prefix, by the rows of `data/token_formats.tsv`.

A token is anchored on its own alphabet and length, never on the text behind it, because in prose
that is a full stop or a bracket as often as a space.
"""

from __future__ import annotations

from functools import lru_cache

from memtool import tables
from memtool.pattern import Pattern
from memtool.redaction.entropy import is_filler, is_hex_or_uuid, is_wordlike, restlessness
from memtool.redaction.rows import read_list

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

ALPHABETS: dict[str, str] = {
    "hex": "[0-9a-fA-F]",
    "uuid": "[0-9a-fA-F-]",
    "upper": "[A-Z0-9]",
    "upper-dashed": "[A-Z0-9-]",
    "lower": "[a-z0-9]",
    "alnum": "[A-Za-z0-9]",
    "word": "[A-Za-z0-9_]",
    "dense": "[A-Za-z0-9_-]",
    "base64": "[A-Za-z0-9+/]",
    "dotted": "[A-Za-z0-9_.=-]",
}

LOOSE = 500
"""The most characters of a row whose length the vendor does not promise."""

ROWS = tuple(
    (kind, prefixes, alphabet, int(least), LOOSE if max_chars == "any" else int(max_chars))
    for kind, prefixes, alphabet, least, max_chars in tables.read_rows("redaction/token_formats")
)

SHORTEST = 16
"""The fewest characters of a token with its prefix."""


_WITHOUT_LETTERS = ("hex", "uuid", "upper", "upper-dashed")
"""Alphabets that words are not written in."""
_TAILS: dict[str, list[tuple[str, Pattern, bool]]] = {}
"""For each prefix, the shortest first: kind, what follows it, and whether that could be words."""
for _kind, _prefixes, _name, _least, _max_chars in ROWS:
    _letters = ALPHABETS[_name]
    _source = f"{_letters}{{{_least},{_max_chars}}}(?!{_letters}){'={0,2}' * (_name == 'base64')}"
    for _prefix in _prefixes.split():
        _tail = (_kind, Pattern(_source), _name not in _WITHOUT_LETTERS)
        _TAILS.setdefault(_prefix, []).append(_tail)
_TAILS = {prefix: _TAILS[prefix] for prefix in sorted(_TAILS, key=len)}


def has_prefix(text: str, _lower: str = "") -> bool:
    """Return whether a prefix is in a word that is long enough for a token."""
    long_words = _drop_short_words(text)
    return any(prefix in long_words for prefix in _TAILS)


def find(text: str, _lower: str = "") -> Iterator[tuple[str, int, int]]:
    """Yield (kind, start, end) of every token that begins with a known prefix."""
    long_words = _drop_short_words(text)
    kinds_at: dict[int, str] = {}
    for prefix in _TAILS:  # the shortest first: of several at one place the longest counts
        at = text.find(prefix) if prefix in long_words else -1
        while at >= 0:
            if _is_border(text, at):
                kinds_at[at] = prefix
            at = text.find(prefix, at + 1)
    done = 0
    for start in sorted(kinds_at):
        if start < done:  # inside of another prefix
            continue
        done = start + len(kinds_at[start])
        for kind, pattern, could_be_words in _TAILS[kinds_at[start]]:
            match = pattern.match(text, done)
            if match is None:
                continue
            token = match[0].rstrip(".-=") if text[match.end() - 1] in ".-" else match[0]
            if not is_filler(token) and not (could_be_words and _is_worded(token)):
                yield kind, start, done + len(token)
                break


def find_prefix(text: str, start: int) -> str:
    """Return the longest known prefix that begins at a place, empty for none."""
    return next((prefix for prefix in reversed(_TAILS) if text.startswith(prefix, start)), "")


def _is_worded(token: str) -> bool:
    """Return whether what is behind a prefix reads like words, as a name in code would."""
    digits = sum(map(str.isdigit, token))
    return is_wordlike(token, 0.6) and not (digits > 1 and restlessness(token) > 0.4)


SELF_NAMED = Pattern(
    r"(?<![\w./+@-])(?P<prefix>[A-Za-z][A-Za-z0-9]{0,15}(?:(?P<sign>[_.-])[A-Za-z0-9]{1,12}){1,3})(?P=sign)"
    r"(?P<rest>[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|[A-Za-z0-9]{20,120})(?![A-Za-z0-9_-])"
)
"""A string behind a prefix of two parts or more, as `acme_sk_…`."""
STRONG_PARTS = read_list("token_parts")
PARTS = STRONG_PARTS | read_list("weak_token_parts")
"""Parts of a prefix that say that what follows opens something; the others may name a release."""
_SIGNS = Pattern(r"[_.-]")


def find_self_named(text: str, _lower: str = "") -> Iterator[tuple[str, int, int]]:
    """Yield (kind, start, end) of tokens whose prefix says what they are, of whatever vendor."""
    for match in SELF_NAMED.finditer(text):
        parts = {part.lower() for part in _SIGNS.split(match["prefix"])}
        tail = match["rest"]
        is_strong = not parts.isdisjoint(STRONG_PARTS) or any(
            part.endswith(("key", "token", "secret")) and part != "key" for part in parts
        )
        if not (is_strong or parts & PARTS) or is_filler(tail) or tail.isalpha() or tail.isdigit():
            continue
        if is_hex_or_uuid(tail):
            is_token = is_strong or ("-" not in tail and len(tail) not in (40, 64))
        else:
            is_token = not is_wordlike(tail)
        if is_token and len(set(tail)) > 7:
            yield "vendor-token", match.start(), match.end()


def has_long_word(text: str, _lower: str = "") -> bool:
    """Return whether a word may be a token that is named by its prefix."""
    return any(
        not word.isalpha() and ("-" in word[16:] or max(map(len, _SIGNS.split(word))) > 19)
        for word in text.split()
        if len(word) > 25
    )


@lru_cache(1)
def _drop_short_words(text: str) -> str:
    return "\n".join([word for word in text.split() if len(word) >= SHORTEST])


def _is_border(text: str, at: int) -> bool:
    """Return whether a token may begin here: behind a sign, or an escaped line end."""
    before = text[at - 1 : at]
    is_sign = not (before.isascii() and before.isalnum())
    return is_sign or (before in "nrt" and text[at - 2 : at - 1] == "\\")
