"""Facts: what filters, matching and ranking may ask about the records of one tree at one moment.

Each fact is worked out when it is first asked for, and kept: the state in its life, the place in
its lineage, its words, and, at the price of a few git processes, where it comes from.
"""

from __future__ import annotations

from memtool.index import analyzer, scoring
from memtool.index.reader import Catalog
from memtool.index.text import fields
from memtool.memory import lifecycle, visibility
from memtool.memory.drift import BROKEN
from memtool.memory.memory import cited_path, is_file, is_generated
from memtool.memory.trust import TRUST_LEVELS
from memtool.memory.visibility import PRIVATE, STALE, private_label
from memtool.value import cached_property

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from memtool.index.reader import IndexReader
    from memtool.memory.drift import Drift
    from memtool.memory.lineage import Lineage
    from memtool.memory.trust import Origin
    from memtool.store.tree import Record, Tree


class Facts:
    """The facts of one tree, as seen at the second `now`.

    `lineage` is the tree's own unless another is given, such as one that trust has pruned. `trust`
    tells the level of a record; it is None where all are trusted alike. `withholds` are the labels
    of privacy that hide a memory, None where stale digests are not hidden either. `drift` tells
    what became of the files of a record, None where nobody asks for it.
    """

    def __init__(
        self,
        tree: Tree,
        now: int,
        origins: Callable[[], dict[str, Origin]],
        lineage: Lineage | None = None,
        language: str = analyzer.ENGLISH,
        trust: Callable[[Record], str] | None = None,
        withholds: Collection[str] | None = None,
        drift: Callable[[Record], Drift | None] | None = None,
    ) -> None:
        self.language = language
        self.level_of = trust
        self._drift = drift
        self.tree = tree
        self.lineage = tree.lineage if lineage is None else lineage
        self.now = now
        self.categories = tree.categories
        self._origins = origins
        self._states: dict[str, str] = {}
        self._flat: dict[str, str] = {}
        self._terms: dict[str, frozenset[str]] = {}
        self._heads: dict[str, list[Record]] = {}
        self.withheld: dict[str, tuple[str, str]] = (
            {} if withholds is None else _withheld(tree, self.lineage, withholds)
        )
        """By path the state, `PRIVATE` or `STALE`, and in one clause why."""

    @cached_property
    def origins(self) -> dict[str, Origin]:
        """Commit, author and trust by path; costs a few git processes."""
        return self._origins()

    @cached_property
    def conflicted(self) -> frozenset[str]:
        """The ids of heads that contend for one ancestor, and of memories in a circle."""
        groups = [fork.heads for fork in self.lineage.forks()] + list(self.lineage.cycles())
        return frozenset(id_ for group in groups for id_ in group)

    @cached_property
    def rivals(self) -> dict[str, tuple[str, ...]]:
        """The other heads of the forks that each memory is a head of, by id, sorted."""
        found: dict[str, set[str]] = {}
        for fork in self.lineage.forks():
            for head in fork.heads:
                found.setdefault(head, set()).update(fork.heads)
        return {id_: tuple(sorted(heads - {id_})) for id_, heads in found.items()}

    def state(self, record: Record) -> str:
        """Return the record's lifecycle state, such as `alive`."""
        found = self._states.get(record.path)
        if found is None:
            found = self._states[record.path] = self.tree.state(record, self.now)
        return found

    def hidden(self, record: Record) -> frozenset[str]:
        """Return the states for which the record is left out; empty for a living head."""
        withheld = self.withheld.get(record.path, ("", ""))[0]
        return visibility.hiding(
            self.state(record), withheld, is_head=self.lineage.is_head(record.id)
        )

    def is_current(self, record: Record) -> bool:
        """Tell whether the record is a living head, so that nothing hides it."""
        return (
            self.lineage.is_head(record.id)
            and self.state(record) == lifecycle.ALIVE
            and record.path not in self.withheld
        )

    @cached_property
    def catalog(self) -> Catalog:
        """The tree, of which the index is asked."""
        assert isinstance(self.tree, Catalog)
        return self.tree

    def current(self) -> Current:
        """Return which numbers of a catalog are current, answered from the columns of its index."""
        catalog = self.catalog
        others = catalog.numbers_of(self.lineage.superseded_by)
        if self.withheld:
            ids = {path.rpartition("/")[2][:-3] for path in self.withheld}
            others = others | catalog.numbers_of(ids)
        return Current(catalog.index, self.now, others)

    @cached_property
    def proposed(self) -> dict[str, tuple[str, ...]]:
        """What each living candidate would replace if somebody confirmed it, by id, sorted.

        Where something else has replaced a memory meanwhile, it would replace that.
        """
        found = {}
        for new, olds in self.lineage.proposes.items():
            record = self.tree.get(new)
            if record is None or record.memory.status != "candidate" or not self.is_current(record):
                continue
            heads = {head for old in olds for head in self.lineage.heads_of(old)} - {new}
            records = filter(None, map(self.tree.get, sorted(heads)))
            living = tuple(one.id for one in records if self.is_current(one))
            if living:
                found[new] = living
        return found

    @cached_property
    def proposals(self) -> dict[str, tuple[str, ...]]:
        """The candidates that would replace each memory, by id, sorted: see `proposed`."""
        found: dict[str, list[str]] = {}
        for new, olds in sorted(self.proposed.items()):
            for old in olds:
                found.setdefault(old, []).append(new)
        return {old: tuple(news) for old, news in found.items()}

    def told_proposals(self, id_: str) -> tuple[str, ...]:
        """Return which memory proposes to replace which, of those of which one is this."""
        pairs = [(id_, old) for old in self.proposed.get(id_, ())]
        pairs += [(new, id_) for new in self.proposals.get(id_, ())]
        return tuple(f"{new} proposes to replace {old}" for new, old in pairs)

    @cached_property
    def index(self) -> IndexReader:
        """The index of a catalog, in whose statistics only what is current counts."""
        return self.catalog.index.without_counting(self.current().hidden())

    def current_records(self) -> list[Record]:
        """Return the living heads, in any order."""
        is_head, withheld = self.lineage.is_head, self.withheld
        alive = self.tree.alive(self.now)
        return [one for one in alive if is_head(one.id) and one.path not in withheld]

    def count_current(self) -> int:
        """Return how many living heads there are."""
        superseded = self.tree.with_ids(self.lineage.superseded_by)
        hidden = {record.path for record in (*self.tree.not_alive(self.now), *superseded)}
        return self.tree.count - len(hidden.union(self.withheld))

    def is_due(self, record: Record) -> bool:
        """Tell whether the time of the record's category is over, so that somebody should look."""
        return self.tree.is_due(record, self.now)

    def is_drifted(self, record: Record) -> bool:
        """Tell whether a file that the record names is gone, or a name or cited lines of it are."""
        found = None if self._drift is None else self._drift(record)
        return found is not None and found.level == BROKEN

    def naming_files(self) -> list[Record]:
        """Return the living heads that name files, and perhaps others, by id."""
        found = filter(self.is_current, self.tree.naming_files(lambda _path: True))
        return sorted(found, key=lambda record: (record.id, record.path))

    def expired(self) -> set[int]:
        """Return the numbers of the heads of a catalog that their age alone hides."""
        found = self.catalog.index.expired(self.now)
        if found and self.lineage.superseded_by:
            found -= self.catalog.numbers_of(self.lineage.superseded_by)
        return found

    def not_alive(self) -> list[Record]:
        """Return the memories that are not alive, in any order."""
        return self.tree.not_alive(self.now)

    def due(self) -> list[Record]:
        """Return the memories that are due for review, in any order."""
        return self.tree.due(self.now)

    def trust(self, record: Record) -> int:
        """Return the place of the record's trust among `TRUST_LEVELS`."""
        return TRUST_LEVELS.index(self.origins[record.path].trust)

    def has_phrase(self, record: Record, phrase: str) -> bool:
        """Tell whether the words of a phrase stand in the record, next to each other."""
        if record.path not in self._flat:
            self._flat[record.path] = "\n".join(flat(text) for _key, text in fields(record))
        wanted = flat(phrase)
        return bool(wanted.strip()) and wanted in self._flat[record.path]

    def terms(self, record: Record) -> frozenset[str]:
        """Return the terms that the record holds."""
        if record.path not in self._terms:
            self._terms[record.path] = frozenset(self.text(record).decode().split())
        return self._terms[record.path]

    def text(self, record: Record) -> bytes:
        """Return the record as terms (see `scoring.searchable`), from the index where it is one."""
        text = self.tree.stored_text(record)
        if text:
            return text
        document = scoring.Document(record.path, fields(record))
        return scoring.searchable(document, self.language)[1]

    def heads(self, record: Record) -> list[Record]:
        """Return the heads for which the words of a superseded memory count; none for a head."""
        known = self._heads.get(record.path)
        if known is None:
            is_older = not self.lineage.is_head(record.id)
            if is_older and self.state(record) != lifecycle.DELETED:
                found = map(self.tree.get, self.lineage.heads_of(record.id))
                known = [head for head in found if head is not None]
            known = self._heads[record.path] = known or []
        return known

    def has_word(self, record: Record, word: str) -> bool:
        """Tell whether the record, or what it replaces as head, holds a form of the word."""
        wanted = analyzer.terms(word, self.language)
        if not self.terms(record).isdisjoint(wanted):
            return True
        if not self.lineage.is_head(record.id):
            return False
        older = map(self.tree.get, self.lineage.predecessors(record.id))
        return any(
            old is not None
            and not self.terms(old).isdisjoint(wanted)
            and self.state(old) != lifecycle.DELETED
            for old in older
        )


def why_hidden(record: Record, facts: Facts) -> str:
    """Return why a search leaves a memory out; empty where it does not."""
    newer = facts.lineage.superseded_by.get(record.id, ())
    why = visibility.why_hidden(record.memory, facts.state(record), newer, facts.categories)
    return why or facts.withheld.get(record.path, ("", ""))[1]


class Current:
    """Which documents are living heads, by number; `superseded` are those that others hide."""

    def __init__(self, index: IndexReader, now: int, superseded: set[int]) -> None:
        self.superseded = superseded
        living = (part.living(part.memories.not_alive(now)) for part in index.parts)
        self._hidden = frozenset(superseded.union(*living))

    def __call__(self, number: int) -> bool:
        """Tell whether a document is a living head."""
        return number not in self._hidden

    def hidden(self) -> frozenset[int]:
        """Return the numbers of all others."""
        return self._hidden

    def among(self, numbers: set[int]) -> set[int]:
        """Return those of some numbers that are of living heads."""
        return numbers - self._hidden


def _withheld(tree: Tree, lineage: Lineage, labels: Collection[str]) -> dict[str, tuple[str, str]]:
    """Return by path what is hidden for its labels, and the digests that must not be read."""
    wanted = frozenset(label.lower() for label in labels)
    found = {
        record.path: (PRIVATE, f"labelled {private_label(record.memory, wanted)}")
        for record in tree.of_kinds(lambda kind: bool(private_label(kind, wanted)))
    }
    for record in tree.of_kinds(lambda kind: bool(kind.fields.get("derived_from"))):
        if not is_generated(record.memory):
            continue
        for id_ in record.memory.items("derived_from"):
            quoted = tree.get(id_)
            is_gone = quoted is None or quoted.memory.status == lifecycle.DELETED
            if quoted is None or is_gone or not lineage.is_head(id_) or quoted.path in found:
                found.setdefault(record.path, (STALE, f"it quotes {id_}, which no longer holds"))
                break
    return found


DOCUMENT_ENDINGS = (
    ".adoc",
    ".asciidoc",
    ".jsonl",
    ".markdown",
    ".md",
    ".mdc",
    ".org",
    ".rst",
    ".txt",
)
"""Files of these kinds are what a memory is taken from, not code that it governs."""


def governed(record: Record, *, with_documents: bool = True) -> list[str]:
    """Return the globs and paths that a memory names in `files` and in its file sources.

    `with_documents` false leaves out sources that are documents.
    """
    memory = record.memory
    if with_documents:
        return memory.named_paths()
    cited = map(cited_path, filter(is_file, memory.items("source")))
    code = (path for path in cited if not path.lower().endswith(DOCUMENT_ENDINGS))
    return [*memory.items("files"), *code]


_SPACED = {code: " " for code in range(128) if not chr(code).isalnum()}


def flat(text: str) -> str:
    """Return the words of a text between single spaces, without case or punctuation."""
    plain = text.casefold().translate(_SPACED)
    if not plain.isascii():
        plain = "".join(char if char.isalnum() else " " for char in plain)
    return f" {' '.join(plain.split())} "
