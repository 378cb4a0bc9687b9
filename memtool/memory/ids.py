"""Ids: how they are made, and the path that follows from one."""

from __future__ import annotations

from bisect import bisect_left

from memtool import tables
from memtool.memory import timestamps
from memtool.memory.memory import Memory
from memtool.value import HEX, digest

TYPE_PREFIX = {"decision": "dec", "semantic": "sem", "episodic": "epi", "state": "sta"}
ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
"""Crockford's base32, lower case: no letter that is read as a digit."""
SUFFIX_LENGTH = 4
_SUFFIX_BITS = 5 * SUFFIX_LENGTH
_MULTIPLIER = 5
"""Of a linear congruential generator: with an odd step it visits all 2^20 values (Hull-Dobell)."""
TITLE_SLUG_LENGTH = 40
SLUG_LENGTH = 48


def make_slug(text: str, length: int = SLUG_LENGTH) -> str:
    """Return lower-case words joined by hyphens, cut at a word's end; `memory` if none remain."""
    words = _split_words(text)
    chosen = ""
    for word in words:
        longer = f"{chosen}-{word}" if chosen else word
        if len(longer) > length:
            break
        chosen = longer
    return chosen or (words[0][:length] if words else "memory")


def _split_words(text: str) -> list[str]:
    import unicodedata  # only writing needs it

    ascii_text = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode().lower()
    return "".join(c if c.isalnum() else " " for c in ascii_text).split()


def make_id(type_: str, second: int, title: str, random: bytes) -> str:
    """Return `TYPE-DATE-SLUG-SUFFIX`; `random` gives at least 3 bytes.

    Type and suffix are the short form of the id, one of 804,320 for each type, and it is shared by
    chance: files are created create-only, so a whole id that is taken is drawn again, and a short
    form that two memories share is shown with its date (see `short_ids`).
    """
    date, slug = timestamps.format_date(second), _make_title_slug(title)
    return f"{TYPE_PREFIX[type_]}-{date}-{slug}-{_make_suffix(random)}"


def _make_title_slug(title: str) -> str:
    """Return a slug that, if it has to be cut, does not end in a word such as `a` or `before`."""
    words = make_slug(title, TITLE_SLUG_LENGTH).split("-")
    if len(words) < len(_split_words(title)):
        endings = tables.read_words("memory/function_words")
        while len(words) > 1 and words[-1] in endings:
            words.pop()
    return "-".join(words)


def _make_suffix(random: bytes) -> str:
    """Return four characters with a digit and a letter, so that no suffix is a word or a year."""
    bits = int.from_bytes(random[:3], "big")
    while True:
        suffix = "".join(ALPHABET[bits >> 5 * place & 31] for place in range(SUFFIX_LENGTH))
        if not (suffix.isdigit() or suffix.isalpha()):
            return suffix
        bits = (_MULTIPLIER * bits + 1) % (1 << _SUFFIX_BITS)


def make_path(memory: Memory) -> str:
    """Return the path of a new memory below the memory directory: `<type>/<YYYY-MM>/<id>.md`."""
    return f"{memory.type}/{timestamps.format_date(memory.timestamp)[:7]}/{memory.id}.md"


def compute_fingerprint(memory: Memory) -> str:
    """Return 16 hexadecimal digits of the claim's words: case and white space do not count.

    Two memories with the same fingerprint say the same thing in the same words.
    """
    words = f"{memory.type}\n{memory.title}\n{memory.body}".lower().split()
    return digest(" ".join(words).encode())


def split_citation(text: str) -> tuple[str, str]:
    """Return id and commit of a citation such as `[ID@9ff17e5fd2]`; the commit is empty if missing.

    Any other text is returned unchanged: no id contains an `@`.
    """
    id_, at, commit = text.strip("[]").partition("@")
    if at and commit in ("local", "shallow"):
        return id_, ""
    return (id_, commit) if commit and HEX.issuperset(commit) else (text, "")


def without_commit(text: str) -> str:
    """Return the id of a citation, and any other text unchanged."""
    return split_citation(text)[0]


MAX_COMPARED = 400
"""Ids that are compared letter by letter with a mistyped one: each takes a tenth of a ms."""


def find_nearest(wanted: str, ids: list[str], limit: int = 3) -> list[str]:
    """Return the ids most similar to a mistyped one, best first; `ids` must be sorted.

    Of a long list only those that sort next to it, or contain its longest words, are compared.
    """
    import difflib

    holding = [id_ for id_ in ids if wanted in id_]
    close = ids if len(ids) <= MAX_COMPARED else _find_likely(wanted, ids)
    return (holding + difflib.get_close_matches(wanted, close, n=limit, cutoff=0.5))[:limit]


def _find_likely(wanted: str, ids: list[str]) -> list[str]:
    share = MAX_COMPARED // 4
    at = bisect_left(ids, wanted)
    likely = dict.fromkeys(ids[max(0, at - share) : at + share])
    for word in sorted(wanted.split("-"), key=len, reverse=True)[:2]:
        likely |= dict.fromkeys([id_ for id_ in ids if word in id_][:share])
    return list(likely)
