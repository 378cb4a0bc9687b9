"""Named ids: the memories that a text calls by name, such as `ADR-013` or `dec-k3f9`.

A text that names a memory asks for it, so the memory is looked up, however few words they share.
These are names, in any case and also in brackets, citations and paths:

    dec-2026-02-22-keep-sessions-k3f9     a whole id
    dec-k3f9, dec-2026-02-22-k3f9         its short forms; of other ids, their first parts
    ADR-013, ADR13, adr_0013, [ADR 13]    the word and number of a record, whatever joins them

The word is the one that the ids of a store begin with. So each project's own words count, without
a list: `cip-012-fees` is CIP 12. In ids that memtool made, the word and number are those of the
title or of the file that was imported: `dec-2026-02-22-dr-7-keep-sessions-k3f9` is DR 7, and
`adr-rfc-106-fees` is RFC 106. A date before the number is skipped, as in `adr-2023-06-19-024-fees`.
Records that were imported from files with a number only, such as `0075-results.md`, also answer to
the usual words, `RECORD_WORDS`.

Words that number other things name nothing: `issue 13`, `line 13`, `step 2`.
"""

from __future__ import annotations

from memtool import tables
from memtool.memory.ids import SUFFIX_LENGTH, TYPE_PREFIX
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

    from memtool.index.reader import IndexReader
    from memtool.search.features import Facts
    from memtool.store.tree import Record

NAMED = "named"
"""The ranking factor of a memory that the text names."""
NAMED_REASON = "named in the prompt"
"""Why such a memory is shown, also for the words of a search."""

RECORD_WORDS = frozenset({"adr", "kep", "pep", "rfc", "tep"})
"""The usual words for numbered records. One memory with such an id is enough."""

MAX_NAMES = 5
"""Names of one text that are answered."""

MAX_SHARING = 3
"""Memories that may share a name; if there are more, it names none of them."""

MAX_ATTEMPTS = 20
"""Names of one text that are looked up; a log has hundreds of words with a number."""

MAX_TEXT_CHARS = 20_000
"""Characters that are read, half of them at the end: the rest of a longer text was pasted."""

MIN_SERIES = 2
"""Different numbers that make a series of records, of a word in the titles of memories."""

MIN_TELLING_DIGITS = 3
"""Digits, written as in the id, that stand for the number of a record under another word."""

MAX_ID_CHARS = 120

_DIGITS = frozenset("0123456789")
_ID_CHARS = frozenset("abcdefghijklmnopqrstuvwxyz0123456789._-")
_OWN_WORDS = tuple(TYPE_PREFIX.values())
_OWN_PREFIXES = tuple(f"{word}-" for word in _OWN_WORDS)
_MIN_WORD_CHARS, _MAX_DIGITS = 2, 8
_DATE_PARTS = 3
_ANY_DATE = "????-??-??-"
_IMPORTED = "adr-"
"""The beginning of the ids that `memtool import adr` makes."""
_TITLED = (f"???-{_ANY_DATE}", _IMPORTED)
"""The beginnings of ids that a title or a file name in words follows, as patterns."""
_STOP = "."
_CHARS = (
    {ord(char): f" {_STOP} " for char in "!$%&+:;=?@\\^|~\u2013\u2014\u2026"}
    | {ord(char): " " for char in "#[](){}<>/*`\"'\u201c\u201d\u201e\u2018\u2019\u00ab\u00bb"}
    | {ord(","): _STOP, ord("\u2010"): "-", ord("\u2011"): "-"}
)
"""What a name may contain becomes a space, and what separates two words a full stop."""


_numbered_words: set[str] = set()


class Name(Value):
    """A name in a text: the word and digits of a record, or, without digits, an id."""

    word: str
    digits: str = ""


class RecordNumber(Value):
    """The number of a record according to its id; `word` is empty if the id has only a number."""

    word: str
    digits: str

    @property
    def number(self) -> str:
        return _without_zeros(self.digits)


def find_named(
    mentions: Sequence[tuple[Name, ...]], facts: Facts, is_shown: Callable[[Record], bool]
) -> list[Record]:
    """Return the memories that are mentioned and may be shown, in the order of the mentions.

    Of a superseded memory these are the heads that replace it.
    """
    if not mentions:
        return []
    index = facts.catalog.index
    named: dict[str, Record] = {}
    answered = 0
    for names in mentions[:MAX_ATTEMPTS]:
        ids = next(filter(None, (_find_ids(name, index, facts) for name in names)), [])
        records = _find_shown(ids, facts, is_shown)
        if 0 < len(records) <= MAX_SHARING:
            named |= records
            answered += 1
        if answered >= MAX_NAMES:
            break
    return list(named.values())


def find_mentions(text: str) -> list[tuple[Name, ...]]:
    """Return the possible names in a text, the surest kind first: the first one that exists counts.

    Each is one place in the text. `adr-013-fees` is an id, or else a record's word and number.
    """
    if _DIGITS.isdisjoint(text) and not any(prefix in text.lower() for prefix in _OWN_PREFIXES):
        return []
    mentions = dict.fromkeys(
        names for line in _shorten(text).lower().splitlines() for names in _read_line(line)
    )
    return sorted(mentions, key=lambda names: not any(map(_is_sure, names)))


def find_numbers(text: str, words: Collection[str]) -> dict[Name, Name]:
    """Return the numbered records of some words that a text names: without zeros, and as written.

    Unlike in `find_mentions` a text of any length is read to its end, and an id is not looked up.
    """
    numbers: dict[Name, Name] = {}
    for line in text.lower().splitlines():
        if _DIGITS.isdisjoint(line) or not any(word in line for word in words):
            continue
        for name in (name for names in _read_line(line) for name in names):
            if name.digits and name.word in words:
                number = Name(name.word, _without_zeros(name.digits))
                longest = max(numbers.get(number, name), name, key=lambda name: len(name.digits))
                numbers[number] = longest
    return numbers


def list_words(ids: Iterable[str]) -> frozenset[str]:
    """Return the words by which numbered records with these ids may be called."""
    unusual = (id_ for id_ in ids if not _is_plain_adr(id_))
    numbers = filter(None, map(read_number, unusual))
    return RECORD_WORDS.union(number.word for number in numbers if number.word)


def _is_plain_adr(id_: str) -> bool:
    """Return whether an id is such as `adr-0024-fees`, whose word is a usual one: most are."""
    return id_.startswith(_IMPORTED) and id_[len(_IMPORTED) :][:1] in _DIGITS


def find_by_number(name: Name, facts: Facts) -> list[str]:
    """Return the ids of the records with a word and number; none if too many have them."""
    ids = _find_numbered(name, facts.catalog.index, facts)
    return ids if len(ids) <= MAX_SHARING else []


def read_number(id_: str) -> RecordNumber | None:
    """Return the word and number that an id begins with, or the title or file name in it."""
    is_titled, slug = _cut_slug(id_)
    parts = slug.replace("_", "-").split("-")
    word = parts[0].rstrip("0123456789")
    parts[:1] = [part for part in (word, parts[0][len(word) :]) if part]
    if word:
        del parts[0]
    if word and not _is_record_word(word):
        return None
    if _is_date(parts):
        parts = [part for part in parts[_DATE_PARTS:][:1] if len(part) >= MIN_TELLING_DIGITS]
    if not parts or not _is_number(parts[0]):
        return None
    if is_titled and not word and not parts[0].startswith("0"):
        return None  # a title such as "30 seconds are enough"
    return RecordNumber(word, parts[0])


def _shorten(text: str) -> str:
    """Return the beginning and end of a long text, without the words that are cut."""
    if len(text) <= MAX_TEXT_CHARS:
        return text
    beginning, end = text[: MAX_TEXT_CHARS // 2], text[-MAX_TEXT_CHARS // 2 :]
    return f"{beginning.rsplit(None, 1)[0]}\n{end.split(None, 1)[-1]}"


def _read_line(line: str) -> Iterator[tuple[Name, ...]]:
    if _DIGITS.isdisjoint(line) and not any(prefix in line for prefix in _OWN_PREFIXES):
        return
    before = series = ""
    for token in line.translate(_CHARS).split():
        body = token.strip("._-").removesuffix(".md")
        parts = body.replace("_", "-").split("-")
        names = [Name(body)] if _may_be_id(body, parts) else []
        names += _read_numbers(before, parts)
        if series and _is_number(body):  # `ADRs 3, 13 and 24`
            names = names or [Name(series, body)]
        elif body and (body != "and" or before.isalpha()):
            series = body[:-1] if body[:-1] in RECORD_WORDS and body[-1] == "s" else ""
        if names:
            yield tuple(names)
        before = "" if token.endswith(_STOP) else parts[-1]


def _read_numbers(before: str, parts: Sequence[str]) -> Iterator[Name]:
    """Yield each word and number next to each other, the word perhaps in the token before.

    `dec` before a number may be the month, and a number in a date is none of a record.
    """
    if _is_date(parts) or _is_date(parts[1:]):
        return
    before = "" if before in _OWN_WORDS else before
    for word, part in zip((before, *parts), parts, strict=False):
        glued = part.rstrip("0123456789")
        if glued:
            word, part = glued, part[len(glued) :]  # noqa: PLW2901  # as in adr013
        if _is_number(part) and _is_record_word(word):
            is_plural = word[:-1] in RECORD_WORDS and word.endswith("s")
            yield Name(word[:-1] if is_plural else word, part)


def _is_record_word(word: str) -> bool:
    """Return whether a word may be one for records, unlike `step` and `line`."""
    if not (len(word) >= _MIN_WORD_CHARS and word.isascii() and word.isalpha()):
        return False
    if not _numbered_words:
        lists = map(tables.read_words, ("search/numbered_words", "memory/function_words"))
        _numbered_words.update(*lists)
    return word not in _numbered_words


def _is_number(part: str) -> bool:
    return 0 < len(part) <= _MAX_DIGITS and _DIGITS.issuperset(part)


def _is_date(parts: Sequence[str]) -> bool:
    """Return whether parts begin with a year, a month and a day."""
    sizes = [len(part) for part in parts[:_DATE_PARTS] if _DIGITS.issuperset(part)]
    return sizes == [4, 2, 2]


def _may_be_id(body: str, parts: Sequence[str]) -> bool:
    """Return whether a token may be an id: it has a hyphen, and is no mere word or number."""
    return (
        "-" in body
        and len(body) <= MAX_ID_CHARS
        and _ID_CHARS.issuperset(body)
        and (body.startswith(_OWN_PREFIXES) or not _DIGITS.isdisjoint(body))
        and any(part.isalpha() for part in parts)
    )


def _is_sure(name: Name) -> bool:
    return name.word in RECORD_WORDS if name.digits else name.word.startswith(_OWN_PREFIXES)


def _cut_slug(id_: str) -> tuple[bool, str]:
    """Return whether the rest of an id is a title or file name in words, and that rest."""
    if id_.startswith(_IMPORTED) and not _DIGITS.issuperset(id_[len(_IMPORTED) :][:1]):
        return True, id_[len(_IMPORTED) :]
    from memtool.memory import short_ids  # few texts name a memory

    parts = short_ids.parse(id_)
    if parts is None:
        return False, id_
    return True, id_[len(f"{parts.prefix}-{parts.date}-") : -len(f"-{parts.suffix}")]


def _find_ids(name: Name, index: IndexReader, facts: Facts) -> list[str]:
    """Return the ids that a name means, sorted."""
    return _find_numbered(name, index, facts) if name.digits else _find_by_id(name.word, index)


def _find_by_id(text: str, index: IndexReader) -> list[str]:
    """Return the id that is a text, whole or in short, or that alone begins with its parts."""
    from memtool.memory import short_ids

    if text in (ids := index.match_ids(f"{text}*")):
        return [text]
    head, _hyphen, suffix = text.rpartition("-")
    if len(suffix) == SUFFIX_LENGTH and text.startswith(_OWN_PREFIXES):
        short = short_ids.find_short(text, index.match_ids(f"{head}-*-{suffix}"))
        if short:
            return short
    begun = [id_ for id_ in ids if id_.startswith(f"{text}-")]
    first, *others = text.split("-")
    is_telling = len(others) > 1 or (_is_record_word(first) and first not in _OWN_WORDS)
    return begun if len(begun) == 1 and is_telling else []


def _find_numbered(name: Name, index: IndexReader, facts: Facts) -> list[str]:
    """Return the ids of the records with a word and number."""
    number = _without_zeros(name.digits)

    def match(word: str, *patterns: str) -> dict[str, RecordNumber]:
        ids = index.match_ids(*patterns)
        read = {id_: own for id_ in ids if (own := read_number(id_)) is not None}
        return {id_: own for id_, own in read.items() if (own.word, own.number) == (word, number)}

    def match_begun(word: str) -> dict[str, RecordNumber]:
        starts = (f"{word}[-_]", word)
        begun = [f"{start}{zeros}{number}*" for start in starts for zeros in ("", "0*")]
        return match(word, *begun, f"{word}[-_]{_ANY_DATE}*{number}*")

    word = name.word
    titled = [f"{start}{word}*{number}*" for start in _TITLED]
    ids = match_begun(word) | _keep_series(word, match(word, *titled), index)
    if not ids and word in RECORD_WORDS:
        ids = match("", f"{number}*", f"0*{number}*", f"???-{_ANY_DATE}0*{number}*")
        imported = match_begun("adr").items()
        ids |= {id_: own for id_, own in imported if _is_called(facts.tree.get(id_), name, own)}
    return sorted(ids)


def _keep_series(
    word: str, ids: dict[str, RecordNumber], index: IndexReader
) -> dict[str, RecordNumber]:
    """Return the ids of titles with a number, unless it may be anything, as in `Redis 7 is out`.

    It is that of a record if the word is usual, the number has zeros, or it is one of a series.
    """
    if not ids or word in RECORD_WORDS or any(own.digits[0] == "0" for own in ids.values()):
        return ids
    patterns = [f"{start}{word}{joint}[0-9]*" for start in _TITLED for joint in ("", "-")]
    series = map(read_number, index.match_ids(*patterns))
    numbers = {own.number for own in series if own is not None and own.word == word}
    return ids if len(numbers) >= MIN_SERIES else {}


def _is_called(record: Record | None, name: Name, own: RecordNumber) -> bool:
    """Return whether an imported record, an ADR by its id, is called by another usual word.

    Its title or file has that word. Or else neither begins with another one, and the digits are the
    same: in a project with both, RFC 106 is not ADR 106.
    """
    if record is None:
        return False
    title = _split_letters(record.memory.title)
    paths = [source.partition("@")[0] for source in record.memory.items("source")]
    folders_and_files = [part for path in paths for part in _split_letters(path)]
    if not {name.word, f"{name.word}s"}.isdisjoint((*title, *folders_and_files)):
        return True
    files = [_split_letters(path.rpartition("/")[2]) for path in paths]
    has_other_word = any(words[0] in RECORD_WORDS for words in (title, *files) if words)
    is_same = own.digits == name.digits and len(own.digits) >= MIN_TELLING_DIGITS
    return is_same and not has_other_word


def _split_letters(text: str) -> list[str]:
    """Return the runs of letters in a text, in lower case."""
    return "".join(char if char.isalpha() else " " for char in text.lower()).split()


def _find_shown(
    ids: Iterable[str], facts: Facts, is_shown: Callable[[Record], bool]
) -> dict[str, Record]:
    """Return the memories of ids that may be shown, or else the heads that replace them, by id."""
    shown: dict[str, Record] = {}
    for record in filter(None, map(facts.tree.get, ids)):
        candidates = [record] if is_shown(record) else facts.heads(record)
        shown |= {head.id: head for head in candidates if is_shown(head)}
    return shown


def _without_zeros(digits: str) -> str:
    return digits.lstrip("0") or "0"
