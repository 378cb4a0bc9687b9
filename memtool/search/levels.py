"""Levels: digests, then memories, then private sessions are searched for an answer.

The next level is searched if the one before does not suffice. A level suffices if one passage
passes the answer gate and contains every name in the question: a file, an id, a version, a
quotation. For a memory the passage is the whole memory. For a digest it is one line, because a page
about a hundred memories has the words of almost any question; and the line must have no less of the
question than the best memory.

A sufficient digest comes first, and the memories follow. A generated digest with an outdated source
is never sufficient. Private sessions are searched if the user agreed to it (search.sessions), or by
search --deep.
"""

from __future__ import annotations

from memtool.index import scoring
from memtool.index.scoring import Document, content_terms
from memtool.memory.memory import is_generated
from memtool.memory.visibility import GONE
from memtool.search import answer_gate, retrieve
from memtool.search.answer_gate import LEADING_HITS, Gatekeeper
from memtool.search.retrieve import Retriever
from memtool.search.scope import DIGEST, MEMORY, NONE, is_digest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from memtool.search.features import Facts
    from memtool.search.retrieve import Hit, Scope
    from memtool.store.tree import Record, Tree

MAX_READ = 4_000
"""Characters of a question that are searched for names."""
MAX_NAMES = 20
MIN_ID_PARTS = 3
_AROUND = "\"'`<>()[]{},;:!?*@“”„«»"
_QUOTES = '"`'


def find_digests_in_use(tree: Tree) -> list[Record]:
    """Return the generated digests in use, by id."""
    return [
        record
        for record in tree.records
        if record.memory.status not in GONE
        and tree.lineage.is_head(record.id)
        and is_generated(record.memory)
    ]


def choose_level(scope: Scope, text: str, hits: Sequence[Hit]) -> tuple[tuple[Hit, ...], str]:
    """Return the hits, sufficient digests first, and the first level that suffices.

    For the level of memories, one of the best must suffice; if none does, the level is `none`.
    """
    suffices = Sufficiency(scope, text, [hit.record for hit in hits])
    ahead = [
        hit
        for hit in hits
        if is_digest(hit.record.memory) and suffices.is_sufficient_digest(hit.record)
    ]
    if ahead:
        return (*ahead, *(hit for hit in hits if hit not in ahead)), DIGEST
    enough = any(suffices.is_answer(hit.record) for hit in hits[:LEADING_HITS])
    return tuple(hits), MEMORY if enough else NONE


class Sufficiency:
    """Tests whether a record suffices for one question. Without informative words, none does.

    `records` are the records that were found, best first.
    """

    def __init__(self, scope: Scope, text: str, records: Sequence[Record]) -> None:
        self._facts: Facts = scope.facts()
        self._language = scope.language
        literal_question, question = retrieve.parse_questions(scope, text)
        self._names = find_names(text)
        self._keeper: Gatekeeper | None = None
        if content_terms(question):
            reader = Retriever(self._facts)
            self._keeper = Gatekeeper(
                literal_question,
                reader.with_near_words(question),
                reader.index.count,
                reader.index.df,
                *answer_gate.read_limits(scope.config),
            )
        best = [record for record in records if not is_digest(record.memory)][:LEADING_HITS]
        self._min_share = max([1.0, *(self._measure_share(record) for record in best)])
        """The minimum for a line of a digest."""

    def is_answer(self, record: Record) -> bool:
        """Return whether a memory is an answer by itself."""
        memory = record.memory
        keys = ("files", "tags", "aliases", "source", "supersedes")
        whole = [memory.id, memory.title, memory.body, *(" ".join(memory.items(k)) for k in keys)]
        return self._measure_share(record) >= 1.0 and self._names_all(" ".join(whole))

    def is_sufficient_digest(self, record: Record, max_characters: int | None = None) -> bool:
        """Return whether one line of a digest is an answer, if all its sources are current.

        Of a digest with more than `max_characters` only the first paragraph counts.
        """
        memory = record.memory
        if is_generated(memory):
            derived = map(self._facts.tree.get, memory.items("derived_from"))
            if not all(record is not None and self._facts.is_current(record) for record in derived):
                return False
        is_brief = max_characters is not None and len(memory.body) > max_characters
        text = memory.statement if is_brief else memory.body
        keeper, min_share = self._keeper, self._min_share
        return keeper is not None and any(
            keeper.measure_text(self._to_terms(title, line), memory.category) >= min_share
            and self._names_all(f"{title} {line}")
            for title, line in split_passages(text)
        )

    def _measure_share(self, record: Record) -> float:
        if self._keeper is None:
            return 0.0
        return self._keeper.measure_text(self._facts.text(record), record.memory.category)

    def _to_terms(self, title: str, line: str) -> bytes:
        document = Document("", (("title", title), ("body", line)))
        return scoring.analyze_document(document, self._language)[1]

    def _names_all(self, text: str) -> bool:
        plain = " ".join(text.casefold().split())
        return all(_has_name(plain, name) for name in self._names)


def split_passages(body: str) -> Iterator[tuple[str, str]]:
    """Yield the list items and paragraphs of a digest as (bold text, other text).

    The first paragraph is split at semicolons, the form in which memtool writes it.
    """
    for number, paragraph in enumerate(body.split("\n\n")):
        texts: list[str] = []
        for line in paragraph.split("\n"):
            if texts and not line.lstrip().startswith(("- ", "* ")):
                texts[-1] += f" {line}"
            else:
                texts.append(line)
        lines = texts if number else [item for line in texts for item in line.split(";")]
        for text in lines:
            before, _mark, tail = text.partition("**")
            title, mark, after = tail.partition("**")
            yield (title, f"{before}{after}") if mark else ("", text)


def find_names(text: str) -> tuple[str, ...]:
    """Return the names in a question, in lower case: quotations, files, versions and ids.

    A word is a name if it has a dot inside and is not an abbreviation, or two slashes; if it is `v`
    and a number; or if it has letters, digits and two hyphens.
    """
    text = text[:MAX_READ].casefold()
    names: dict[str, None] = {}
    for quote in _QUOTES:
        parts = text.split(quote)
        for quoted in parts[1 : len(parts) - 1 : 2]:
            if quoted.strip():
                names[" ".join(quoted.split())] = None
    for word in text.split():
        plain = word.strip(_AROUND).rstrip(f".{_AROUND}")
        if _is_name(plain):
            names[plain] = None
    return tuple(names)[:MAX_NAMES]


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
    return has_both and len(parts) >= MIN_ID_PARTS and all(parts)


def _has_name(text: str, name: str) -> bool:
    """Return whether a lower-case text has a name as a word; a path's last part is enough."""
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
