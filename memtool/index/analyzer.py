"""The analyzer: what the words of a text are called in the search index; the owner of PyStemmer.

Code is text too, so a name is found whole and by its parts: `store.FileLock` gives `store`,
`file`, `lock`, then `filelock` and `store.filelock`. The same holds for snake_case, paths,
versions, dates and error names. Words are lower-cased, freed of accents and stemmed (Snowball,
English); writing without spaces (Chinese, Japanese, Thai) gives pairs of characters.

Nothing is dropped here: stop words only weigh less in a query. Plain ASCII, which is nearly every
text, needs no import; other text loads `unicodedata`.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


_MOST_KNOWN = 1 << 18

_stems: dict[str, str] = {}

_snowball: list[Callable[[str], str]] = []


def stem(word: str) -> str:
    """Return the stem of a lower-case word, such as `connect` for `connections`."""
    found = _stems.get(word)
    if found is None:
        if not _snowball:
            import Stemmer  # compiled; loaded only once a word is asked for

            # Its own memory of words is slower than a dict, and not needed beside this one.
            _snowball.append(Stemmer.Stemmer("english", 0).stemWord)
        if len(_stems) >= _MOST_KNOWN:
            _stems.clear()
        found = _stems[word] = _snowball[0](word)
    return found


TOKENIZER = "1"
"""Changes whenever any text would get other terms; part of the name of every index."""


MOST_LENGTH = 64
"""Characters of a term. A longer word is cut; a longer compound is known by its parts alone."""


STOP_WEIGHT = 0.3
"""Weight of a stop word in a query: dropping them costs error texts their `not`, `is` and `for`."""


_STOP_STEMS = (
    "a about am an and ani are as at be been but by can could d did do doe for from had has have he"
    " her him his how i if in into is it just ll m me my no not of on or our re s she should so"
    " some such t than that the their them then there these they this those to us ve was we were"
    " what when where whi which who whom whose will with would you your"
)

_STOP_TERMS = frozenset(_STOP_STEMS.split())
"""Stems of stop and question words; `ani`, `doe` and `whi` are any, does and why."""


_JOINERS = "_-./:"

_LEVELS = (("/", ":"), (".",), ("-", "_"))
"""What joins names, loosest first: `a/b_c.d` is `a` and `b_c.d`, that is `b_c` and `d`."""


_SPACED = {code: " " for code in range(128) if not (chr(code).isalnum() or chr(code) in _JOINERS)}

_MOST_KNOWN = 1 << 18

_known: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {}


def terms(text: str) -> list[str]:
    """Return the terms of a text, with repeats: the simple words in order, then the compounds."""
    text = text.translate(_SPACED) if text.isascii() else _spaced(text)
    words: list[str] = []
    compounds: list[str] = []
    for raw in text.split():
        found = _known.get(raw)
        if found is None:
            if len(_known) >= _MOST_KNOWN:
                _known.clear()
            found = _known[raw] = _analysed(raw)
        words += found[0]
        if found[1]:
            compounds += found[1]
    return words + compounds


def spaced(text: str) -> str:
    """Return a text with a space for all that is in no word, so that spaces part its runs."""
    return text.translate(_SPACED) if text.isascii() else _spaced(text)


def of_run(run: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the simple words and the compounds of a run; `terms` puts them together."""
    return _analysed(run)


def query_terms(text: str) -> dict[str, float]:
    """Return the terms of a question with their weights, in order of appearance.

    A stop word weighs 0.3. A term that is there twice weighs as much as once.
    """
    return {term: STOP_WEIGHT if is_stop(term) else 1.0 for term in terms(text)}


def is_stop(term: str) -> bool:
    """Tell whether a term is a stop or question word, so that it alone asks for nothing."""
    return term in _STOP_TERMS


def _analysed(raw: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the simple words of a run without spaces, and its compounds, smallest first."""
    name = raw.strip(_JOINERS)
    if _is_plain(name):  # as nearly all are
        return (stem(name.lower()[:MOST_LENGTH]),), ()
    words: list[str] = []
    compounds: list[str] = []
    _take(name, 0, words, compounds)
    return tuple(words), tuple(dict.fromkeys(compounds))


def _is_plain(name: str) -> bool:
    """Tell whether a name is one word: ASCII without joiners and humps."""
    return (
        name.isascii()
        and name.isalnum()
        and (name[1:].islower() or name.isupper() or name.isdigit())
    )


def _take(name: str, level: int, words: list[str], compounds: list[str]) -> None:
    """Add the words and compounds of a name that joiners of this level and below hold together."""
    name = name.strip(_JOINERS)
    if not name:
        return
    while level < len(_LEVELS) and not (_LEVELS[level][0] in name or _LEVELS[level][-1] in name):
        level += 1
    if level < len(_LEVELS):
        first, *others = _LEVELS[level]
        unified = name
        for joiner in others:
            unified = unified.replace(joiner, first)
        parts = [part for part in unified.split(first) if part]
        for part in parts:
            if _is_plain(part):
                words.append(stem(part.lower()[:MOST_LENGTH]))
            else:
                _take(part, level + 1, words, compounds)
    else:
        parts = _humps(name) if name.isascii() else _syllables(name)
        words += [stem(part.casefold()[:MOST_LENGTH]) for part in parts]
        if not name.isascii():
            return
    if len(parts) > 1 and len(name) <= MOST_LENGTH:
        compounds.append(stem(name.casefold()))


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

    Compatible forms become one and accents go: `Café`, in whatever width, is found by `cafe`.
    """
    import unicodedata

    apart = unicodedata.normalize("NFKD", text)
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
