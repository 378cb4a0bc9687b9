"""The words of decision records: names of keys and headings, and relations to other records.

A relation is a word of the table with the name of another record right after it (in Japanese also
before it): a link, a file name, a word such as ADR with a number, or a number that ends the clause.
All other numbers in the text of a record are not relations.

A record rests on the one that it requires, depends on, is based on or amends: that is its premise.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache, lru_cache
from urllib.parse import unquote

from memtool import tables
from memtool.importing.originals import fold_word
from memtool.value import Value

DATE_ORDERS = frozenset({"English", "Japanese"})
"""Languages in which a date in numbers does not begin with the day for certain."""
ENDINGS = (".md", ".markdown", ".mdx", ".rst", ".adoc", ".asciidoc")
MAX_LINE_CHARS = 4_000
"""Characters of a line in which relations are searched."""

_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")
_NO_LETTERS = re.compile(r"^(?:[\W\d_]+)|[\W_]+$")


SUPPORTS = ("premise", "conclusion")
"""Relations of a record to one that it rests on, and to one that rests on it."""


class KeyWord(Value):
    """What a key or heading means, and in which languages."""

    meaning: str
    languages: frozenset[str]

    @property
    def is_day_first(self) -> bool:
        """Whether the day comes first in a date such as 03/04/2024 under this key."""
        return DATE_ORDERS.isdisjoint(self.languages)


class Target(Value):
    """Another record, as a relation names it: by the path of its file, or by its number.

    `kind` is the word before the number, such as `adr`, in lower case; empty if there is none.
    """

    path: str = ""
    kind: str = ""
    number: str = ""


class Edge(Value):
    """A relation to another record: `supersedes`, `superseded_by`, `related_to`, or a support.

    Of the last, `premise` is what the record rests on, and `conclusion` what rests on the record.
    """

    relation: str
    target: Target

    @property
    def is_replacement(self) -> bool:
        """Whether one of the two records takes the place of the other."""
        return self.relation in ("supersedes", "superseded_by")

    @property
    def is_support(self) -> bool:
        """Whether one of the two records rests on the other."""
        return self.relation in SUPPORTS


@cache
def _load_keys() -> dict[str, dict[str, KeyWord]]:
    """Return the meanings of each folded word."""
    keys: dict[str, dict[str, KeyWord]] = {}
    for word, language, meaning in tables.read_rows("importing/record_words"):
        meanings = keys.setdefault(fold_word(word), {})
        key = meanings.get(meaning, KeyWord(meaning, frozenset()))
        meanings[meaning] = key.replace(languages=key.languages | {language})
    return keys


def find_key(name: str, *meanings: str) -> KeyWord | None:
    """Return what a key, heading or file name means, if it has one of the meanings."""
    keys = _load_keys().get(_fold_name(name), {})
    return next((keys[meaning] for meaning in meanings if meaning in keys), None)


@lru_cache(maxsize=4_096)
def _fold_name(name: str) -> str:
    """Fold a name such as `2. Status:`, `creation-date` or `supersededBy`."""
    words = _CAMEL.sub(" ", name) if name.isascii() else name
    return fold_word(_NO_LETTERS.sub("", words.replace("-", " ").replace("_", " ")))


def find_relation(name: str) -> str:
    """Return the relation that a key is, such as `superseded-by`; empty if it is none."""
    return _load_relations()[0].get(_fold_name(name), "")


@cache
def _load_relations() -> tuple[dict[str, str], re.Pattern[str], re.Pattern[str]]:
    """Return the relation of each folded word, and the patterns of words after and before."""
    rows = tables.read_rows("importing/relation_words")
    relations = {fold_word(word): relation for word, _language, relation, _place in rows}
    patterns = []
    for place in ("after", "before"):
        words = sorted({row[0] for row in rows if row[3] == place}, key=len, reverse=True)
        joined = "|".join(re.escape(word).replace(r"\ ", r"[\s_-]+") for word in words)
        edge = r"(?<![^\W_])" if place == "after" else ""
        end = r"(?![^\W_])" if place == "after" else ""
        patterns.append(re.compile(f"{edge}(?:{joined}){end}", re.IGNORECASE))
    return relations, patterns[0], patterns[1]


_NEGATION = re.compile(
    r"(?:\b(?:not|never|nor|nicht|nie|pas|no|n\u00e3o|non|niet|\u043d\u0435)"
    r"|\b(?:will|would|to|may|might|could|can|should)(?: be)?)\s*[*_]*$",
    re.IGNORECASE,
)
_NUMBER = r"\d{1,8}[a-z]?"
_LINK = re.compile(r"!?\[(?P<text>[^\[\]]*)\]\(\s*<?(?P<target>[^()\s<>]*)>?[^()]*\)")
_WIKI_LINK = re.compile(r"\[\[(?P<target>[^\[\]|]+)(?:\|[^\[\]]*)?\]\]")
_REFERENCE = re.compile(r"\[(?P<text>[^\[\]]+)\](?:\[[^\[\]]*\])?")
_PATH = re.compile(
    rf"(?P<target>(?:[\w.~+-]*/)*(?:[a-z]{{2,5}}[-_])?{_NUMBER}[-_][\w.+-]*\w|[\w./+-]+"
    rf"(?:{'|'.join(re.escape(ending) for ending in ENDINGS)}))(?![\w/])",
    re.IGNORECASE,
)
_KIND = r"[a-z]{2,9}"
_NAMED = re.compile(
    rf"(?P<kind>{_KIND})[-_ \u00a0]{{0,2}}(?:n[\u00b0\u00bao]\.?\s?|#)?"
    rf"(?P<number>{_NUMBER})(?![\w.]*\w)",
    re.IGNORECASE,
)
_BARE = re.compile(
    rf"(?P<number>{_NUMBER})(?=\s*(?:$|[,;)\]\u3001\u3002]|\.(?:\s|$)|&|\(|-\s|[\u2013\u2014]"
    r"|(?:and|und|et|y|e|en|i|oraz|\u0438)\s))",
    re.IGNORECASE,
)
_NOUNS = "|".join(
    (
        *("the", "in", "decision", "record", "entscheidung", "la", "le", "d\u00e9cision", "el"),
        *("decisi\u00f3n", "decis\u00e3o", "decisione", "beslissing", "besluit", "decyzja"),
        *(
            "decyzj\u0119",
            "\u0440\u0435\u0448\u0435\u043d\u0438\u0435",
            "\u0440\u0435\u0448\u0435\u043d\u0438\u0435\u043c",
        ),
    )
)
"""Words that may be between a relation and the name of a record."""
_LEAD = re.compile(
    r"[\s:\uff1a*_(\"'`\u201c\u00ab>=\u2192|-]*" + rf"(?:(?:{_NOUNS})\s+){{0,4}}" + r"[\"'`(*]*",
    re.IGNORECASE,
)
_CHAIN = re.compile(
    r"[\s*_`\"')]*(?:\([^()]*\)\s*)?(?:,|;|&|\u3001|\band\b|\bund\b|\bet\b|\by\b|\be\b|\ben\b|\bi\b|\boraz\b|\u0438|\u3068)+\s*"
    r"(?:and\s|und\s)?",
    re.IGNORECASE,
)
_ADDRESS = re.compile(r"[a-z][a-z0-9+.-]*:", re.IGNORECASE)
_RECORD_FILE = re.compile(rf"(?:[a-z]{{2,5}}[-_])?{_NUMBER}[-_.]", re.IGNORECASE)
_DAY = re.compile(r"\d{4}-\d\d-\d\d(?![\w-])")


def find_edges(text: str) -> tuple[Edge, ...]:
    """Return the relations in a text: words of the table next to the names of records."""
    return tuple(edge for line in text.split("\n") for edge in _find_line_edges(line))


def find_targets(relation: str, text: str) -> tuple[Edge, ...]:
    """Return the records that a value of a key begins with, such as `[ADR-3](3.md), ADR-4`."""
    line = text.partition("\n")[0][:MAX_LINE_CHARS]
    return tuple(Edge(relation, target) for target in _read_targets(line, 0))


def starts_with_relation(text: str) -> bool:
    """Return whether a line begins with a relation, such as `Supersedes [3](3.md)`."""
    return bool(_load_relations()[1].match(text.lstrip(" \t*+->_#|")))


def _find_line_edges(line: str) -> Iterator[Edge]:
    relations, after, before = _load_relations()
    line = line[:MAX_LINE_CHARS]
    for match in after.finditer(line):
        if not _NEGATION.search(line[max(match.start() - 20, 0) : match.start()]):
            relation = relations[fold_word(re.sub(r"[\s_-]+", " ", match[0]))]
            yield from (Edge(relation, target) for target in _read_targets(line, match.end()))
    for match in before.finditer(line):
        names = [name for pattern in (_LINK, _NAMED) for name in pattern.finditer(line)]
        ended = [name for name in names if name.end() <= match.start() <= name.end() + 1]
        for name in ended[:1]:
            yield from (
                Edge(relations[fold_word(match[0])], target)
                for target in _read_targets(line, name.start())
            )


def _read_targets(line: str, start: int) -> Iterator[Target]:
    """Yield the records that are named from a place on, as far as one follows the other."""
    lead = _LEAD.match(line, start)
    place = lead.end() if lead else start
    kind = ""
    while True:
        read = _read_target(line, place, kind)
        if read is None:
            return
        target, place = read
        if target is not None:
            yield target
            kind = target.kind
        chain = _CHAIN.match(line, place)
        if chain is None:
            return
        place = chain.end()


def _read_target(line: str, start: int, kind: str) -> tuple[Target | None, int] | None:
    """Return the record that is named at a place, None for a page on the web, and its end."""
    if _DAY.match(line, start):
        return None
    for pattern in (_WIKI_LINK, _LINK, _REFERENCE):
        link = pattern.match(line, start)
        if link:
            groups = link.groupdict()
            return _read_link(groups.get("text", ""), groups.get("target", "")), link.end()
    for pattern in (_PATH, _NAMED, _BARE):
        match = pattern.match(line, start)
        if match:
            groups = match.groupdict()
            if groups.get("target"):
                return _read_path(groups["target"]), match.end()
            own = (groups.get("kind") or kind).lower()
            return Target(kind=own, number=groups["number"].lower()), match.end()
    return None


def _read_link(text: str, address: str) -> Target | None:
    path = _read_path(address) if address else None
    if path is not None:
        return path
    if _ADDRESS.match(address):
        return None
    for pattern in (_NAMED, _BARE):
        match = pattern.match(text.strip())
        if match:
            groups = match.groupdict()
            return Target(kind=(groups.get("kind") or "").lower(), number=groups["number"].lower())
    return None


def _read_path(address: str) -> Target | None:
    """Return the record that a path or address leads to; None if that is not a file's name."""
    path = unquote(address.partition("#")[0].partition("?")[0]).removeprefix("./").rstrip("/")
    name = path.rpartition("/")[2]
    if _ADDRESS.match(path):
        is_file = _RECORD_FILE.match(name) and name.endswith((*ENDINGS, ".html"))
        return Target(path=f"/{name}") if is_file else None
    return Target(path=path) if name else None
