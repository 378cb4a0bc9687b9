"""The analyzer: turn text into the terms of the search index. It owns PyStemmer.

Code is text too, so a name is found whole and by its parts: `store.FileLock` gives `store`,
`file`, `lock`, then `filelock` and `store.filelock`. The same holds for snake_case, paths,
versions, dates and error names. The index also contains inner parts of names: `acquireWriteLock` is
found by `writelock`, `file_lock` by `filelock`. Words are lower-cased, stripped of accents and
stemmed by Snowball in the language of their script. For Latin letters that is English or the
setting search.language. Text without spaces (Chinese, Japanese, Thai) gives pairs of characters.

Nothing is dropped here: stop words only weigh less in a query. Plain ASCII, which nearly all text
is, needs no import; other text loads `unicodedata`.
"""

from __future__ import annotations

from memtool import tables

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


_MAX_CACHED = 1 << 18

ENGLISH = "english"
AS_WRITTEN = ""
"""Instead of a language: leave words unstemmed, so that the caller can `stem` them later."""

_SCRIPTS = (
    (0x0370, 0x03FF, "greek"),
    (0x0400, 0x052F, "russian"),
    (0x0530, 0x058F, "armenian"),
    (0x0600, 0x06FF, "arabic"),
    (0x0900, 0x097F, "hindi"),
    (0x0B80, 0x0BFF, "tamil"),
)
"""First and last code point of each script other than Latin, and its Snowball language."""

_stems: dict[tuple[str, str], str] = {}

_snowball: dict[str, Callable[[str], str]] = {}


def stem(word: str, language: str = ENGLISH) -> str:
    """Return the stem of a lower-case word, such as `connect` for `connections`.

    `language` is the Snowball name of the language for Latin letters.
    """
    if language == AS_WRITTEN:
        return word
    stemmed = _stems.get((word, language))
    if stemmed is None:
        word_language = language if word.isascii() else _find_language(word, language)
        if word_language not in _snowball:
            import Stemmer  # compiled; loaded only for the first word

            # PyStemmer's own cache is slower than this dict, so it is switched off.
            _snowball[word_language] = Stemmer.Stemmer(word_language, 0).stemWord
        if len(_stems) >= _MAX_CACHED:
            _stems.clear()
        stemmed = _stems[word, language] = _snowball[word_language](word)
    return stemmed


def _find_language(word: str, latin_language: str) -> str:
    """Return the language of the first letter that is not Latin, or `latin_language`."""
    for char in word:
        for first, last, language in _SCRIPTS:
            if first <= ord(char) <= last:
                return language
    return latin_language


TOKENIZER = "2"
"""To be changed whenever some text would give other terms; part of the name of every index."""


MAX_TERM_CHARS = 64
"""A longer word is cut; a longer compound is only found by its parts."""


# Dropping stop words would cost error messages their `not`, `is` and `for`.
STOP_WEIGHT = 0.3


_STOPS = tables.group_rows("index/stop_words")
"""Stems of stop and question words: `english`, `foreign`, and `shared`.

Shared ones also mean something in English or in code.
"""

_STOP_TERMS = frozenset(_STOPS["english"])

_FOREIGN_TERMS = frozenset(_STOPS["foreign"])

MIN_FOREIGN_STOPS = 2
"""A text with this many foreign stop words is not in English."""


_JOINERS = "_-./:"

_JOINER_LEVELS = (("/", ":"), (".",), ("-", "_"))
"""Joiners of names, loosest first: `a/b_c.d` is `a` and `b_c.d`, and that is `b_c` and `d`."""


_SEPARATORS = {
    code: " " for code in range(128) if not (chr(code).isalnum() or chr(code) in _JOINERS)
}

_MAX_CACHED = 1 << 18

_RunTerms = tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]
"""The simple words, compounds and inner parts of a run without spaces."""

_run_terms: dict[tuple[str, str], _RunTerms] = {}


def terms(text: str, language: str = ENGLISH, *, is_indexed: bool = False) -> list[str]:
    """Return the terms of a text, with repeats: the simple words in order, then the compounds.

    `is_indexed` adds the inner parts of names, which only the index needs, not a query.
    """
    text = text.translate(_SEPARATORS) if text.isascii() else _blank_unicode_separators(text)
    words: list[str] = []
    compounds: list[str] = []
    for run in text.split():
        run_terms = _run_terms.get((run, language))
        if run_terms is None:
            if len(_run_terms) >= _MAX_CACHED:
                _run_terms.clear()
            run_terms = _run_terms[run, language] = _analyze(run, language)
        words += run_terms[0]
        if run_terms[1]:
            compounds += run_terms[1]
        if is_indexed and run_terms[2]:
            compounds += run_terms[2]
    return words + compounds


def blank_separators(text: str) -> str:
    """Replace all characters that belong to no word by spaces, so that `split` gives the runs."""
    return text.translate(_SEPARATORS) if text.isascii() else _blank_unicode_separators(text)


def analyze_run(run: str, language: str = ENGLISH) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the simple words of an indexed run, and its compounds with the inner parts."""
    words, compounds, inner = _analyze(run, language)
    return words, compounds + inner


def query_terms(text: str, language: str = ENGLISH) -> dict[str, float]:
    """Return the terms of a query with their weights, in order of appearance.

    A stop word weighs 0.3. Repeated terms do not weigh more.
    """
    return {term: STOP_WEIGHT if is_stop(term) else 1.0 for term in terms(text, language)}


def is_stop(term: str) -> bool:
    """Return whether a term is a stop or question word, which asks for nothing by itself."""
    return term in _STOP_TERMS or term in _FOREIGN_TERMS


def find_shared_stops(text_terms: Iterable[str]) -> frozenset[str]:
    """Return the `shared` stop words if these terms are not in English, else none."""
    foreign = 0
    for term in text_terms:
        foreign += term in _FOREIGN_TERMS
        if foreign >= MIN_FOREIGN_STOPS:
            return frozenset(_STOPS["shared"])
    return frozenset()


def _analyze(run: str, language: str) -> _RunTerms:
    """Return the terms of a run without spaces; compounds come smallest first."""
    name = run.strip(_JOINERS)
    if _is_plain(name):  # as nearly all are
        return (stem(name.lower()[:MAX_TERM_CHARS], language),), (), ()
    words: list[str] = []
    compounds: list[str] = []
    inner: list[str] = []
    _add_terms(name, 0, words, compounds, inner, language)
    unique_compounds = dict.fromkeys(compounds)
    return (
        tuple(words),
        tuple(unique_compounds),
        tuple(part for part in dict.fromkeys(inner) if part not in unique_compounds),
    )


def _is_plain(name: str) -> bool:
    """Return whether a name is one word: ASCII without joiners and humps."""
    return (
        name.isascii()
        and name.isalnum()
        and (name[1:].islower() or name.isupper() or name.isdigit())
    )


def _add_terms(
    name: str,
    level: int,
    words: list[str],
    compounds: list[str],
    inner: list[str],
    language: str,
) -> None:
    """Add the terms of a name whose parts are joined by joiners of this level or a tighter one."""
    name = name.strip(_JOINERS)
    if _is_plain(name):
        words.append(stem(name.lower()[:MAX_TERM_CHARS], language))
    if not name or _is_plain(name):
        return
    while level < len(_JOINER_LEVELS) and not (
        _JOINER_LEVELS[level][0] in name or _JOINER_LEVELS[level][-1] in name
    ):
        level += 1
    joiner = ""
    if level < len(_JOINER_LEVELS):
        joiner = _JOINER_LEVELS[level][0]
        parts = [
            part for part in name.replace(_JOINER_LEVELS[level][-1], joiner).split(joiner) if part
        ]
        for part in parts:
            _add_terms(part, level + 1, words, compounds, inner, language)
    else:
        parts = _split_humps(name) if name.isascii() else _split_unspaced(name)
        words += [stem(part.casefold()[:MAX_TERM_CHARS], language) for part in parts]
        if not name.isascii():
            return
    if len(parts) > 1 and len(name) <= MAX_TERM_CHARS:
        compounds.append(stem(name.casefold(), language))
    if joiner == "." and _is_version(parts):
        compounds.append(".".join(parts)[1:])
    elif joiner in {"", "-"}:
        inner += _join_adjacent(parts, language)


def _join_adjacent(parts: list[str], language: str) -> list[str]:
    """Join each two adjacent words of a name into one."""
    pairs = zip(parts, parts[1:], strict=False)  # noqa: RUF007  # itertools is one more import
    return [
        stem((first + second).lower(), language)
        for first, second in pairs
        if first.isalpha() and second.isalpha() and len(first) + len(second) <= MAX_TERM_CHARS
    ]


def _is_version(parts: list[str]) -> bool:
    """Return whether parts joined by dots are a version such as `v1.2`."""
    major, *minors = parts
    return (
        bool(minors) and major[0] in "vV" and major[1:].isdigit() and all(map(str.isdigit, minors))
    )


def _split_humps(name: str) -> list[str]:
    """Split `readHTTPFile` into `read`, `HTTP`, `File`; `APIs` and `utf8` stay whole."""
    if name[1:].islower() or name.isupper() or name.isdigit():
        return [name]
    starts = [0]
    for i in range(1, len(name)):
        if not name[i].isupper():
            continue
        following = name[i + 1 :]
        if not name[i - 1].isupper() or (following[:1].islower() and following != "s"):
            starts.append(i)
    return [name[a:b] for a, b in zip(starts, [*starts[1:], len(name)], strict=True)]


def _blank_unicode_separators(text: str) -> str:
    """Replace all characters that belong to no word by spaces, in a text beyond ASCII.

    Compatible forms are unified and accents removed: `Café`, in whatever width, is found by `cafe`.
    """
    import unicodedata

    decomposed = unicodedata.normalize("NFKD", text)
    # The breve of Russian `й` stays: it distinguishes endings, and so stems.
    decomposed = decomposed.replace("\u0438\u0306", "\u0439").replace("\u0418\u0306", "\u0419")
    accents = dict.fromkeys(range(0x300, 0x370))
    composed = unicodedata.normalize("NFC", decomposed.translate(accents))
    table: dict[int, str] = dict(_SEPARATORS)
    for char in set(composed):
        if not char.isascii() and not char.isalnum() and unicodedata.category(char)[0] != "M":
            table[ord(char)] = " "
    return composed.translate(table)


_UNSPACED_SCRIPTS = (
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
    return any(first <= ord(char) <= last for first, last in _UNSPACED_SCRIPTS)


def _split_unspaced(name: str) -> list[str]:
    """Split a name with text of an unspaced script: into pairs of its characters, and words."""
    parts: list[str] = []
    start = 0
    for i in range(1, len(name) + 1):
        if i < len(name) and _is_unspaced(name[i]) == _is_unspaced(name[start]):
            continue
        run = name[start:i]
        if not _is_unspaced(run[0]):
            parts += _split_humps(run)
        elif len(run) == 1:
            parts.append(run)
        else:
            parts += [run[k : k + 2] for k in range(len(run) - 1)]
        start = i
    return parts
