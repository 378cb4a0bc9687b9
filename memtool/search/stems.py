"""Stems: the Snowball stem of an English word; the one owner of PyStemmer.

Each distinct word is stemmed once in a process. Words of other languages mostly stay themselves.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_MOST_KNOWN = 1 << 18
_known: dict[str, str] = {}
_snowball: list[Callable[[str], str]] = []


def stem(word: str) -> str:
    """Return the stem of a lower-case word, such as `connect` for `connections`."""
    found = _known.get(word)
    if found is None:
        if not _snowball:
            import Stemmer  # compiled; loaded only once a word is asked for

            # Its own memory of words is slower than a dict, and not needed beside this one.
            _snowball.append(Stemmer.Stemmer("english", 0).stemWord)
        if len(_known) >= _MOST_KNOWN:
            _known.clear()
        found = _known[word] = _snowball[0](word)
    return found
