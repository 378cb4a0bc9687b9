"""The analyzer: what the words of a text are called in the search index; the owner of PyStemmer.

Code is text too, so a name is found whole and by its parts: `store.FileLock` gives `store`,
`file`, `lock`, then `filelock` and `store.filelock`. The same holds for snake_case, paths,
versions, dates and error names. In the index stand its inner parts as well: `acquireWriteLock` is
found by `writelock`, `file_lock` by `filelock`. Words are lower-cased, freed of accents and stemmed
by Snowball, in the language of their script, which for Latin letters is English or the setting
search.language; writing without spaces (Chinese, Japanese, Thai) gives pairs of characters.

Nothing is dropped here: stop words only weigh less in a query. Plain ASCII, which is nearly every
text, needs no import; other text loads `unicodedata`.
"""

from __future__ import annotations

from memtool import tables

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


_MOST_KNOWN = 1 << 18

ENGLISH = "english"
AS_WRITTEN = ""
"""In place of a language: words are taken as they are, so that `stem` can be asked for later."""

_SCRIPTS = (
    (0x0370, 0x03FF, "greek"),
    (0x0400, 0x052F, "russian"),
    (0x0530, 0x058F, "armenian"),
    (0x0600, 0x06FF, "arabic"),
    (0x0900, 0x097F, "hindi"),
    (0x0B80, 0x0BFF, "tamil"),
)
"""The language by which words of other letters than Latin are stemmed."""

_stems: dict[tuple[str, str], str] = {}

_snowball: dict[str, Callable[[str], str]] = {}


def stem(word: str, language: str = ENGLISH) -> str:
    """Return the stem of a lower-case word, such as `connect` for `connections`.

    `language` is that of Latin letters, by its name in Snowball.
    """
    if language == AS_WRITTEN:
        return word
    found = _stems.get((word, language))
    if found is None:
        own = language if word.isascii() else _language(word, language)
        if own not in _snowball:
            import Stemmer  # compiled; loaded only once a word is asked for

            # Its own memory of words is slower than a dict, and not needed beside this one.
            _snowball[own] = Stemmer.Stemmer(own, 0).stemWord
        if len(_stems) >= _MOST_KNOWN:
            _stems.clear()
        found = _stems[word, language] = _snowball[own](word)
    return found


def _language(word: str, latin: str) -> str:
    """Return the language of the first letter that is of no Latin script."""
    for char in word:
        for first, last, language in _SCRIPTS:
            if first <= ord(char) <= last:
                return language
    return latin


TOKENIZER = "2"
"""Changes whenever any text would get other terms; part of the name of every index."""


MOST_LENGTH = 64
"""Characters of a term. A longer word is cut; a longer compound is known by its parts alone."""


STOP_WEIGHT = 0.3
"""Weight of a stop word in a query: dropping them costs error texts their `not`, `is` and `for`."""


_STOPS = tables.grouped("index/stop_words")
"""Stems of stop and question words: `english`, `foreign`, and `shared`, which mean something in
English or in code, too."""

_STOP_TERMS = frozenset(_STOPS["english"])

_FOREIGN_TERMS = frozenset(_STOPS["foreign"])

LEAST_FOREIGN = 2
"""From so many foreign stop words on a text is in another language than English."""


_JOINERS = "_-./:"

_LEVELS = (("/", ":"), (".",), ("-", "_"))
"""What joins names, loosest first: `a/b_c.d` is `a` and `b_c.d`, that is `b_c` and `d`."""


_SPACED = {code: " " for code in range(128) if not (chr(code).isalnum() or chr(code) in _JOINERS)}

_MOST_KNOWN = 1 << 18

_Analysed = tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]
"""The simple words, compounds and inner parts of a run without spaces."""

_known: dict[tuple[str, str], _Analysed] = {}


def terms(text: str, language: str = ENGLISH, *, is_indexed: bool = False) -> list[str]:
    """Return the terms of a text, with repeats: the simple words in order, then the compounds.

    `is_indexed` adds the inner parts of names, by which they are found: what a question needs not.
    """
    text = text.translate(_SPACED) if text.isascii() else _spaced(text)
    words: list[str] = []
    compounds: list[str] = []
    for raw in text.split():
        found = _known.get((raw, language))
        if found is None:
            if len(_known) >= _MOST_KNOWN:
                _known.clear()
            found = _known[raw, language] = _analysed(raw, language)
        words += found[0]
        if found[1]:
            compounds += found[1]
        if is_indexed and found[2]:
            compounds += found[2]
    return words + compounds


def spaced(text: str) -> str:
    """Return a text with a space for all that is in no word, so that spaces part its runs."""
    return text.translate(_SPACED) if text.isascii() else _spaced(text)


def of_run(run: str, language: str = ENGLISH) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the simple words of an indexed run, and its compounds with the inner parts.

    `terms` puts them together.
    """
    words, compounds, inner = _analysed(run, language)
    return words, compounds + inner


def query_terms(text: str, language: str = ENGLISH) -> dict[str, float]:
    """Return the terms of a question with their weights, in order of appearance.

    A stop word weighs 0.3. A term that is there twice weighs as much as once.
    """
    return {term: STOP_WEIGHT if is_stop(term) else 1.0 for term in terms(text, language)}


def is_stop(term: str) -> bool:
    """Tell whether a term is a stop or question word, so that it alone asks for nothing."""
    return term in _STOP_TERMS or term in _FOREIGN_TERMS


def shared_stops(found: Iterable[str]) -> frozenset[str]:
    """Return the words that are stop words in the language of these terms, though no others'."""
    foreign = 0
    for term in found:
        foreign += term in _FOREIGN_TERMS
        if foreign >= LEAST_FOREIGN:
            return frozenset(_STOPS["shared"])
    return frozenset()


def _analysed(raw: str, language: str) -> _Analysed:
    """Return the terms of a run without spaces; compounds come smallest first."""
    name = raw.strip(_JOINERS)
    if _is_plain(name):  # as nearly all are
        return (stem(name.lower()[:MOST_LENGTH], language),), (), ()
    words: list[str] = []
    compounds: list[str] = []
    inner: list[str] = []
    _take(name, 0, words, compounds, inner, language)
    known = dict.fromkeys(compounds)
    return (
        tuple(words),
        tuple(known),
        tuple(one for one in dict.fromkeys(inner) if one not in known),
    )


def _is_plain(name: str) -> bool:
    """Tell whether a name is one word: ASCII without joiners and humps."""
    return (
        name.isascii()
        and name.isalnum()
        and (name[1:].islower() or name.isupper() or name.isdigit())
    )


def _take(
    name: str,
    level: int,
    words: list[str],
    compounds: list[str],
    inner: list[str],
    language: str,
) -> None:
    """Add the terms of a name that joiners of this level and below hold together.

    Its inner parts are every two words that are next to each other, written as one.
    """
    name = name.strip(_JOINERS)
    if _is_plain(name):
        words.append(stem(name.lower()[:MOST_LENGTH], language))
    if not name or _is_plain(name):
        return
    while level < len(_LEVELS) and not (_LEVELS[level][0] in name or _LEVELS[level][-1] in name):
        level += 1
    first = ""
    if level < len(_LEVELS):
        first = _LEVELS[level][0]
        parts = [part for part in name.replace(_LEVELS[level][-1], first).split(first) if part]
        for part in parts:
            _take(part, level + 1, words, compounds, inner, language)
    else:
        parts = _humps(name) if name.isascii() else _syllables(name)
        words += [stem(part.casefold()[:MOST_LENGTH], language) for part in parts]
        if not name.isascii():
            return
    if len(parts) > 1 and len(name) <= MOST_LENGTH:
        compounds.append(stem(name.casefold(), language))
    if first == "." and _is_version(parts):
        compounds.append(".".join(parts)[1:])
    elif first in {"", "-"}:
        inner += _inner(parts, language)


def _inner(parts: list[str], language: str) -> list[str]:
    """Return every two words of a name that are next to each other, written as one."""
    pairs = zip(parts, parts[1:], strict=False)  # noqa: RUF007  # itertools is one more import
    return [
        stem((one + other).lower(), language)
        for one, other in pairs
        if one.isalpha() and other.isalpha() and len(one) + len(other) <= MOST_LENGTH
    ]


def _is_version(parts: list[str]) -> bool:
    """Tell whether names that dots join are a version with a `v`, which may be left out."""
    first, *others = parts
    return (
        bool(others) and first[0] in "vV" and first[1:].isdigit() and all(map(str.isdigit, others))
    )


def _humps(name: str) -> list[str]:
    """Split `readHTTPFile` into `read`, `HTTP`, `File`; `APIs` and `utf8` stay whole."""
    if name[1:].islower() or name.isupper() or name.isdigit():
        return [name]
    starts = [0]
    for i in range(1, len(name)):
        if not name[i].isupper():
            continue
        rest = name[i + 1 :]
        if not name[i - 1].isupper() or (rest[:1].islower() and rest != "s"):
            starts.append(i)
    return [name[a:b] for a, b in zip(starts, [*starts[1:], len(name)], strict=True)]


def _spaced(text: str) -> str:
    """Do for any text what one table does for ASCII: a space for all that is in no word.

    Compatible forms become one and accents go: `Café`, in whatever width, is found by `cafe`. The
    breve of Russian `й` is none: endings, and so stems, differ by it.
    """
    import unicodedata

    apart = unicodedata.normalize("NFKD", text)
    apart = apart.replace("\u0438\u0306", "\u0439").replace("\u0418\u0306", "\u0419")
    bare = dict.fromkeys(range(0x300, 0x370))
    whole = unicodedata.normalize("NFC", apart.translate(bare))
    table: dict[int, str] = dict(_SPACED)
    for char in set(whole):
        if not char.isascii() and not char.isalnum() and unicodedata.category(char)[0] != "M":
            table[ord(char)] = " "
    return whole.translate(table)


_UNSPACED = (
    (0x0E00, 0x0EFF),  # Thai, Lao
    (0x1000, 0x109F),  # Burmese
    (0x1780, 0x17FF),  # Khmer
    (0x3040, 0x30FF),  # Japanese syllables
    (0x3400, 0x9FFF),  # Chinese characters
    (0xAC00, 0xD7AF),  # Korean: has spaces, but joins endings to its words
    (0xF900, 0xFAFF),
    (0x20000, 0x3FFFF),
)


def _is_unspaced(char: str) -> bool:
    return any(first <= ord(char) <= last for first, last in _UNSPACED)


def _syllables(name: str) -> list[str]:
    """Split a name that holds writing without spaces: pairs of its characters, and other words."""
    parts: list[str] = []
    start = 0
    for i in range(1, len(name) + 1):
        if i < len(name) and _is_unspaced(name[i]) == _is_unspaced(name[start]):
            continue
        run = name[start:i]
        if not _is_unspaced(run[0]):
            parts += _humps(run)
        elif len(run) == 1:
            parts.append(run)
        else:
            parts += [run[k : k + 2] for k in range(len(run) - 1)]
        start = i
    return parts
