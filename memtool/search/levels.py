"""Levels: where an answer is looked for: digests, then memories, then private sessions.

Each level is asked by itself where the one before does not suffice. It suffices where one passage
of it holds as much of the question as an answer must (the pass mark of the answer gate), and what
the question names: a file, an id, a version, a quotation. A passage of a memory is all of it. Of a
digest it is one line, since a page about a hundred memories has the words of almost any question;
and the line must hold no less of it than the best of the memories do.

A digest that suffices comes before all else, and the memories follow. One that memtool wrote, and
that tells what no longer holds, suffices for nothing. Private sessions are asked where the user has
agreed to it (search.sessions), or by search --deep.
"""

from __future__ import annotations

from memtool.index import scoring
from memtool.index.scoring import Document, telling
from memtool.memory.memory import is_generated
from memtool.memory.visibility import GONE
from memtool.search import answer_gate, retrieve
from memtool.search.answer_gate import LEADERS, Gatekeeper
from memtool.search.retrieve import Retriever
from memtool.search.scope import DIGEST, MEMORY, NONE, is_digest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from memtool.search.features import Facts
    from memtool.search.retrieve import Hit, Scope
    from memtool.store.tree import Record, Tree

MOST_READ = 4_000
"""Characters of a question in which names are looked for."""
MOST_NAMES = 20
LEAST_ID_PARTS = 3
_AROUND = "\"'`<>()[]{},;:!?*@“”„«»"
_QUOTES = '"`'


def digests_in_use(tree: Tree) -> list[Record]:
    """Return the digests in use that memtool wrote, by id."""
    return [
        record
        for record in tree.records
        if record.memory.status not in GONE
        and tree.lineage.is_head(record.id)
        and is_generated(record.memory)
    ]


def climb(scope: Scope, text: str, hits: Sequence[Hit]) -> tuple[tuple[Hit, ...], str]:
    """Return hits with the digests first that suffice, and the first level that does.

    Of the memories one of the best must suffice; where none does, the level is `none`.
    """
    suffices = Sufficiency(scope, text, [hit.record for hit in hits])
    ahead = [hit for hit in hits if is_digest(hit.record.memory) and suffices.digest(hit.record)]
    if ahead:
        return (*ahead, *(hit for hit in hits if hit not in ahead)), DIGEST
    enough = any(suffices.memory(hit.record) for hit in hits[:LEADERS])
    return tuple(hits), MEMORY if enough else NONE


class Sufficiency:
    """What one question asks of a level. One without telling words is answered by no level.

    `found` are the records that were found, the best first.
    """

    def __init__(self, scope: Scope, text: str, found: Sequence[Record]) -> None:
        self._facts: Facts = scope.facts()
        self._language = scope.language
        said, asked = retrieve.questions(scope, text)
        self._names = named(text)
        self._keeper: Gatekeeper | None = None
        if telling(asked):
            reader = Retriever(self._facts)
            self._keeper = Gatekeeper(
                said,
                reader.readable(asked),
                reader.index.count,
                reader.index.df,
                *answer_gate.limits(scope.config),
            )
        best = [one for one in found if not is_digest(one.memory)][:LEADERS]
        self._most = max([1.0, *(self._share(one) for one in best)])
        """What a line of a digest must hold."""

    def memory(self, record: Record) -> bool:
        """Tell whether a memory is an answer by itself."""
        memory = record.memory
        keys = ("files", "tags", "aliases", "source", "supersedes")
        whole = [memory.id, memory.title, memory.body, *(" ".join(memory.items(k)) for k in keys)]
        return self._share(record) >= 1.0 and self._names_all(" ".join(whole))

    def digest(self, record: Record, most: int | None = None) -> bool:
        """Tell whether one line of a digest is an answer, if what it sums up still holds.

        Of one of more than `most` characters the first paragraph alone counts.
        """
        memory = record.memory
        if is_generated(memory):
            found = map(self._facts.tree.get, memory.items("derived_from"))
            if not all(one is not None and self._facts.is_current(one) for one in found):
                return False
        is_brief = most is not None and len(memory.body) > most
        text = memory.statement if is_brief else memory.body
        keeper, least = self._keeper, self._most
        return keeper is not None and any(
            keeper.share(self._terms(title, line), memory.category) >= least
            and self._names_all(f"{title} {line}")
            for title, line in passages(text)
        )

    def _share(self, record: Record) -> float:
        if self._keeper is None:
            return 0.0
        return self._keeper.share(self._facts.text(record), record.memory.category)

    def _terms(self, title: str, line: str) -> bytes:
        document = Document("", (("title", title), ("body", line)))
        return scoring.searchable(document, self._language)[1]

    def _names_all(self, text: str) -> bool:
        plain = " ".join(text.casefold().split())
        return all(_holds(plain, name) for name in self._names)


def passages(body: str) -> Iterator[tuple[str, str]]:
    """Yield the passages of a digest with what each puts in bold: items of lists and paragraphs.

    Those of a first paragraph are parted by semicolons, as memtool writes it.
    """
    for number, paragraph in enumerate(body.split("\n\n")):
        found: list[str] = []
        for line in paragraph.split("\n"):
            if found and not line.lstrip().startswith(("- ", "* ")):
                found[-1] += f" {line}"
            else:
                found.append(line)
        lines = found if number else [one for line in found for one in line.split(";")]
        for text in lines:
            before, _mark, rest = text.partition("**")
            title, mark, after = rest.partition("**")
            yield (title, f"{before}{after}") if mark else ("", text)


def named(text: str) -> tuple[str, ...]:
    """Return what a question names, in small letters: quotations, files, versions and ids.

    A word is such a name where it has a dot inside and is no abbreviation, or two slashes; where it
    is `v` and a number; and where it has letters, digits and two hyphens.
    """
    text = text[:MOST_READ].casefold()
    found: dict[str, None] = {}
    for quote in _QUOTES:
        parts = text.split(quote)
        for quoted in parts[1 : len(parts) - 1 : 2]:
            if quoted.strip():
                found[" ".join(quoted.split())] = None
    for word in text.split():
        plain = word.strip(_AROUND).rstrip(f".{_AROUND}")
        if _is_name(plain):
            found[plain] = None
    return tuple(found)[:MOST_NAMES]


def _is_name(word: str) -> bool:
    if "//" in word or not any(map(str.isalnum, word)):
        return False
    if "/" in word and ("." in word or word.count("/") > 1):
        return True
    parts = word.split(".")
    if len(parts) > 1 and all(parts[1:]):  # also `.gitignore`
        return any(len(part) > 1 or part.isdigit() for part in parts)
    if word[:1] == "v" and word[1:].isdigit():
        return True
    parts = word.split("-")
    has_both = any(map(str.isalpha, word)) and any(map(str.isdigit, word))
    return has_both and len(parts) >= LEAST_ID_PARTS and all(parts)


def _holds(text: str, name: str) -> bool:
    """Tell whether a text in small letters holds a name by itself; of a path its end is enough."""
    ways = {name, name.removeprefix("v") if name[1:2].isdigit() else name}
    if "/" in name and " " not in name:
        ways.add(name.rpartition("/")[2] or name)
    for way in ways:
        at = text.find(way)
        while at >= 0:
            end = at + len(way)
            if not (text[at - 1 : at].isalnum() or text[end : end + 1].isalnum()):
                return True
            at = text.find(way, at + 1)
    return False
