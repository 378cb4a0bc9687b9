"""Ids: how they are made, and the path that follows from one."""

from __future__ import annotations

from bisect import bisect_left

from memtool.memory import timestamps
from memtool.memory.memory import Memory
from memtool.value import HEX, digest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

TYPE_PREFIX = {"decision": "dec", "semantic": "sem", "episodic": "epi", "state": "sta"}
ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
"""Crockford's base32, lower case: no letter that is read as a digit."""
SUFFIX_LENGTH = 4
SLUG_LENGTH = 48


def slug(text: str, length: int = SLUG_LENGTH) -> str:
    """Return lower-case words joined by hyphens, cut at a word's end; `memory` if none remain."""
    import unicodedata  # only writing needs it

    ascii_text = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode().lower()
    words = "".join(c if c.isalnum() else " " for c in ascii_text).split()
    chosen = ""
    for word in words:
        longer = f"{chosen}-{word}" if chosen else word
        if len(longer) > length:
            break
        chosen = longer
    return chosen or (words[0][:length] if words else "memory")


def make_id(type_: str, second: int, title: str, random: bytes) -> str:
    """Return `<type>-<date>-<slug>-<4 base32 characters>`; `random` gives at least 3 bytes.

    Twenty bits follow the day and the words of the title: files are created create-only, so a
    collision inside one tree is drawn again. The bits are drawn for a text on a branch of a clone
    (`Context.random_for`), so between branches it needs the same title on the same day and the
    same suffix, one in a million.
    """
    bits = int.from_bytes(random[:3], "big")
    suffix = "".join(ALPHABET[bits >> 5 * place & 31] for place in range(SUFFIX_LENGTH))
    return f"{TYPE_PREFIX[type_]}-{timestamps.date(second)}-{slug(title)}-{suffix}"


def place(memory: Memory) -> str:
    """Return where a new memory goes below the memory directory: `<type>/<YYYY-MM>/<id>.md`."""
    return f"{memory.type}/{timestamps.date(memory.timestamp)[:7]}/{memory.id}.md"


def fingerprint(memory: Memory) -> str:
    """Return 16 hexadecimal digits of the claim's words: case and white space do not count.

    Two memories with the same fingerprint say the same thing in the same words.
    """
    words = f"{memory.type}\n{memory.title}\n{memory.body}".lower().split()
    return digest(" ".join(words).encode())


def without_commit(text: str) -> str:
    """Return the id of a citation such as `[ID@9ff17e5fd2]`, as blocks and answers write it.

    Any other text stays as it is: no id holds an `@`.
    """
    id_, at, commit = text.strip("[]").partition("@")
    is_commit = commit in ("local", "shallow") or (commit and HEX.issuperset(commit))
    return id_ if at and is_commit else text


def meant(wanted: str, ids: Iterable[str], *, by_words: bool = True) -> list[str]:
    """Return the ids that a text can mean, in the order of `ids`.

    These are the ids that begin with it. Where none does they are those that hold all of its words,
    whole (`keep-sessions`, or a title), and then those that hold words which begin so (`bill`).
    """
    known = list(ids)
    found = [id_ for id_ in known if id_.startswith(wanted)] if wanted else []
    words = _words(wanted) if by_words and not found else ()
    if not words:
        return found
    near = [(id_, id_.split("-")) for id_ in known if all(word in id_ for word in words)]
    return [id_ for id_, parts in near if all(word in parts for word in words)] or [
        id_
        for id_, parts in near
        if all(any(part.startswith(word) for part in parts) for word in words)
    ]


def _words(text: str) -> tuple[str, ...]:
    """Return the words of an id or a title; of a query with operators there are none."""
    if not text.isascii():
        import unicodedata  # as in a slug

        text = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()
    words = text.lower().replace("-", " ").replace("_", " ").replace("'", " ").split()
    return tuple(words) if all(map(str.isalnum, words)) else ()


MOST_COMPARED = 400
"""Ids that are compared letter by letter with a mistyped one: each takes a tenth of a ms."""


def nearest(wanted: str, ids: list[str], most: int = 3) -> list[str]:
    """Return the ids that somebody may have meant, best first.

    Of more than are compared these are those that sort next to the wanted one, and those that
    hold the longest of its words; they must be sorted.
    """
    import difflib

    holding = [known for known in ids if wanted in known]
    close = ids if len(ids) <= MOST_COMPARED else _likely(wanted, ids)
    return (holding + difflib.get_close_matches(wanted, close, n=most, cutoff=0.5))[:most]


def _likely(wanted: str, ids: list[str]) -> list[str]:
    share = MOST_COMPARED // 4
    at = bisect_left(ids, wanted)
    found = dict.fromkeys(ids[max(0, at - share) : at + share])
    for word in sorted(wanted.split("-"), key=len, reverse=True)[:2]:
        found |= dict.fromkeys([known for known in ids if word in known][:share])
    return list(found)
