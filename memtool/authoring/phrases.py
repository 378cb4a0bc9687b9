"""Plain phrases of data files, matched in sentences of any language.

`introductions.tsv` explains the notation. Text and phrases are compared without case, apostrophes
and punctuation. Scripts without spaces between words (Chinese, Japanese, Thai) are compared by
their characters alone.
"""

from __future__ import annotations

from itertools import product

from memtool import tables
from memtool.value import Value

GAP = "…"
MAX_GAP = 5
"""Words that a gap stands for, at most; of a script without spaces, characters times four."""
_UNSPACED = ("ja", "th", "zh")
_ASCII = {
    **{code: " " for code in range(128) if not chr(code).isalnum()},
    **{ord(char): "" for char in "'`\u2019\u02bc"},
}
"""Characters of punctuation by what takes their place."""


class Phrase(Value):
    """One way to say it: the words before and after a gap, each with a space on both sides."""

    parts: tuple[str, ...]
    is_first: bool
    is_last: bool
    is_spaced: bool

    def find(self, text: str) -> tuple[int, int] | None:
        """Return where the phrase begins and ends in a normalised text, None if it is not there."""
        begin = text.find(self.parts[0])
        while begin >= 0 and not (self.is_first and begin):
            end = self._follow(text, begin)
            if end >= 0 and (not self.is_last or end == len(text)):
                return begin, end
            begin = text.find(self.parts[0], begin + 1)
        return None

    def _follow(self, text: str, begin: int) -> int:
        """Return where the last part ends if each part follows the one before it closely."""
        end = begin + len(self.parts[0])
        for part in self.parts[1:]:
            # The space after a part is the one before the next.
            at = text.find(part, end - 1 if self.is_spaced else end)
            between = text[end:at] if at >= 0 else ""
            distance = len(between.split()) if self.is_spaced else len(between) / 4
            if at < 0 or distance > MAX_GAP:
                return -1
            end = at + len(part)
        return end


class PhraseRow(Value):
    """The phrases of a row, and the exceptions to it."""

    name: str
    phrases: tuple[Phrase, ...]
    exceptions: tuple[Phrase, ...]

    def find(self, text: str) -> tuple[int, int] | None:
        """Return where its first phrase begins and ends in a normalised text, None without one."""
        place = next(filter(None, (phrase.find(text) for phrase in self.phrases)), None)
        if place is None or any(phrase.find(text) for phrase in self.exceptions):
            return None
        return place


def read_phrases(name: str) -> tuple[PhraseRow, ...]:
    """Return the rows of a table of phrases: name, language, phrases."""
    rows = []
    for first, language, phrases in tables.read_rows(name):
        is_spaced = language not in _UNSPACED
        texts = [text.strip() for text in phrases.split(";") if text.strip()]
        rows.append(
            PhraseRow(
                first,
                tuple(_parse(texts, is_spaced=is_spaced, is_exception=False)),
                tuple(_parse(texts, is_spaced=is_spaced, is_exception=True)),
            )
        )
    return tuple(rows)


def _parse(texts: list[str], *, is_spaced: bool, is_exception: bool) -> list[Phrase]:
    """Return a phrase for each combination of words that share a place."""
    phrases = []
    for text in texts:
        if text.startswith("-") != is_exception:
            continue
        bare = text.removeprefix("-")
        is_first, is_last = bare.startswith("^"), bare.endswith("$")
        words = bare.strip("^$").replace(GAP, f" {GAP} ").split()
        for choice in product(*(word.split("/") for word in words)):
            parts = " ".join(choice).split(GAP)
            plain = (_to_words(part) if is_spaced else _to_words(part).strip() for part in parts)
            phrases.append(Phrase(tuple(plain), is_first, is_last, is_spaced))
    return phrases


def normalize(text: str) -> str:
    """Return a text in lower case as words with one space around each, without punctuation."""
    if not text.isascii():
        from unicodedata import normalize as compose  # the tables are composed

        text = compose("NFC", text)
    return _to_words(text)


def _to_words(text: str) -> str:
    words = text.lower().translate(_ASCII)
    if not words.isascii():  # what may stand in an identifier is a letter, a digit or a mark
        words = "".join(
            char if char < "\x80" or f"a{char}".isidentifier() else " " for char in words
        )
    return f" {' '.join(words.split())} "
