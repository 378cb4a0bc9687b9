"""Facts: what filters, matching and ranking may ask about the records of one tree at one moment.

Each fact is computed on first use and cached: lifecycle state, place in the lineage, words, and
origin, which costs a few git processes.
"""

from __future__ import annotations

import posixpath

from memtool.index import analyzer, scoring
from memtool.index.reader import Catalog
from memtool.index.text import list_texts
from memtool.memory import lifecycle, timestamps, visibility
from memtool.memory.drift import BROKEN
from memtool.memory.memory import is_generated
from memtool.memory.trust import TRUST_LEVELS
from memtool.memory.visibility import PRIVATE, STALE, find_private_label
from memtool.value import cached_property

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping
    from typing import Protocol

    from memtool.index.reader import IndexReader
    from memtool.memory.drift import Drift, Move
    from memtool.memory.lineage import Lineage
    from memtool.memory.trust import Origin
    from memtool.store.provenance import TrustLevels
    from memtool.store.tree import Record, Tree

    class FileWitness(Protocol):
        """Reports what happened to the files that records name."""

        def __call__(self, record: Record) -> Drift | None:
            """Return what happened to the files of a record, None if it names none."""

        def find(self, records: Iterable[Record]) -> dict[str, Drift]:
            """Return what happened to the files of records at once, by path."""

        def find_moves(self) -> Moves:
            """Return the renamed files, folders and globs that records name."""


PROPOSES_TO_REPLACE = " proposes to replace "
"""Between the new and the old id of a proposal."""


class Facts:
    """The facts of one tree, as of the second `now`.

    `lineage` is the tree's own unless another is passed, such as one pruned by trust. `trust`
    returns the level of a record; None if all are trusted alike. `withholds` are the privacy labels
    that hide a memory, None if stale digests are not hidden either. `drift` reports what happened
    to the files of a record, None if not needed.
    """

    def __init__(
        self,
        tree: Tree,
        now: int,
        origins: Callable[[], dict[str, Origin]],
        lineage: Lineage | None = None,
        language: str = analyzer.ENGLISH,
        trust: TrustLevels | None = None,
        withholds: Collection[str] | None = None,
        drift: FileWitness | None = None,
    ) -> None:
        self.language = language
        self.level_of = trust
        self.drift = drift
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
            {} if withholds is None else _find_withheld(tree, self.lineage, withholds)
        )
        """By path: the state, `PRIVATE` or `STALE`, and the reason in one clause."""

    @cached_property
    def origins(self) -> dict[str, Origin]:
        """Commit, author and trust by path; costs a few git processes."""
        return self._origins()

    @cached_property
    def conflicted(self) -> frozenset[str]:
        """The ids of heads that compete for one ancestor, and of memories in a cycle."""
        groups = [fork.heads for fork in self.lineage.find_forks()] + list(
            self.lineage.find_cycles()
        )
        return frozenset(id_ for group in groups for id_ in group)

    @cached_property
    def rivals(self) -> dict[str, tuple[str, ...]]:
        """The other heads of the forks that each memory is a head of, by id, sorted."""
        rivals: dict[str, set[str]] = {}
        for fork in self.lineage.find_forks():
            for head in fork.heads:
                rivals.setdefault(head, set()).update(fork.heads)
        return {id_: tuple(sorted(heads - {id_})) for id_, heads in rivals.items()}

    def state(self, record: Record) -> str:
        """Return the record's lifecycle state, such as `alive`."""
        state = self._states.get(record.path)
        if state is None:
            state = self._states[record.path] = self.tree.state(record, self.now)
        return state

    def find_hiding_states(self, record: Record) -> frozenset[str]:
        """Return the states that hide the record; empty for a current one."""
        withheld = self.withheld.get(record.path, ("", ""))[0]
        return visibility.hiding_states(
            self.state(record), withheld, is_head=self.lineage.is_head(record.id)
        )

    def is_current(self, record: Record) -> bool:
        """Return whether the record is a living head that nothing hides."""
        return (
            self.lineage.is_head(record.id)
            and self.state(record) == lifecycle.ALIVE
            and record.path not in self.withheld
        )

    @cached_property
    def catalog(self) -> Catalog:
        """The tree as a catalog, which has an index."""
        assert isinstance(self.tree, Catalog)
        return self.tree

    def build_current(self) -> CurrentDocuments:
        """Build the set of current documents from the columns of the index."""
        catalog = self.catalog
        superseded = catalog.find_numbers(self.lineage.superseded_by)
        if self.withheld:
            ids = {path.rpartition("/")[2][:-3] for path in self.withheld}
            superseded = superseded | catalog.find_numbers(ids)
        return CurrentDocuments(catalog.index, self.now, superseded)

    @cached_property
    def proposed(self) -> dict[str, tuple[str, ...]]:
        """The ids that each living candidate would replace once confirmed, by id, sorted.

        If another memory has replaced the proposed one meanwhile, the candidate would replace that.
        """
        proposed = {}
        for new, olds in self.lineage.proposes.items():
            record = self.tree.get(new)
            if record is None or record.memory.status != "candidate" or not self.is_current(record):
                continue
            heads = {head for old in olds for head in self.lineage.find_heads(old)} - {new}
            records = filter(None, map(self.tree.get, sorted(heads)))
            living = tuple(record.id for record in records if self.is_current(record))
            if living:
                proposed[new] = living
        return proposed

    @cached_property
    def proposals(self) -> dict[str, tuple[str, ...]]:
        """The candidates that would replace each memory, by id, sorted: see `proposed`."""
        proposals: dict[str, list[str]] = {}
        for new, olds in sorted(self.proposed.items()):
            for old in olds:
                proposals.setdefault(old, []).append(new)
        return {old: tuple(news) for old, news in proposals.items()}

    def describe_proposals(self, id_: str) -> tuple[str, ...]:
        """Describe the proposals that this memory takes part in, one line each."""
        pairs = [(id_, old) for old in self.proposed.get(id_, ())]
        pairs += [(new, id_) for new in self.proposals.get(id_, ())]
        return tuple(f"{new}{PROPOSES_TO_REPLACE}{old}" for new, old in pairs)

    @cached_property
    def index(self) -> IndexReader:
        """The index of a catalog, with statistics that count current memories only."""
        return self.catalog.index.without_counting(self.build_current().hidden())

    def find_current(self) -> list[Record]:
        """Return the living heads, in any order."""
        is_head, withheld = self.lineage.is_head, self.withheld
        alive = self.tree.alive(self.now)
        return [record for record in alive if is_head(record.id) and record.path not in withheld]

    def count_current(self) -> int:
        """Return the number of living heads."""
        superseded = self.tree.with_ids(self.lineage.superseded_by)
        hidden = {record.path for record in (*self.tree.not_alive(self.now), *superseded)}
        return self.tree.count - len(hidden.union(self.withheld))

    def is_due(self, record: Record) -> bool:
        """Return whether the record is due for review."""
        return self.tree.is_due(record, self.now)

    def is_expiring(self, record: Record) -> bool:
        """Return whether the record is current and expires soon."""
        soon = self.now + lifecycle.EXPIRES_SOON_DAYS * timestamps.DAY_S
        return self.is_current(record) and self.tree.state(record, soon + 1) == lifecycle.EXPIRED

    def is_drifted(self, record: Record) -> bool:
        """Return whether a file, name or cited lines that the record names are gone."""
        drift = None if self.drift is None else self.drift(record)
        return drift is not None and drift.level == BROKEN

    def expect_drift(self) -> None:
        """Judge the drift of all memories that name files at once, before each is asked for."""
        if self.drift is not None:
            self.drift.find(self.tree.naming_files(lambda _path: True))

    @cached_property
    def moves(self) -> Moves:
        """The renamed paths that records name."""
        return NO_MOVES if self.drift is None else self.drift.find_moves()

    def naming_files(self) -> list[Record]:
        """Return the living heads that name files, sorted by id."""
        records = filter(self.is_current, self.tree.naming_files(lambda _path: True))
        return sorted(records, key=lambda record: (record.id, record.path))

    def find_expired(self) -> set[int]:
        """Return the numbers of a catalog's heads that are hidden by age alone."""
        expired = self.catalog.index.find_expired(self.now)
        if expired and self.lineage.superseded_by:
            expired -= self.catalog.find_numbers(self.lineage.superseded_by)
        return expired

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
        """Return whether the words of a phrase occur in the record next to each other."""
        if record.path not in self._flat:
            self._flat[record.path] = "\n".join(
                normalize_words(text) for _key, text in list_texts(record)
            )
        wanted = normalize_words(phrase)
        return bool(wanted.strip()) and wanted in self._flat[record.path]

    def terms(self, record: Record) -> frozenset[str]:
        """Return the terms that the record contains."""
        if record.path not in self._terms:
            self._terms[record.path] = frozenset(self.text(record).decode().split())
        return self._terms[record.path]

    def text(self, record: Record) -> bytes:
        """Return the record as terms (see `scoring.searchable`), from the index if possible."""
        text = self.tree.stored_text(record)
        if text:
            return text
        document = scoring.Document(record.path, list_texts(record))
        return scoring.analyze_document(document, self.language)[1]

    def heads(self, record: Record) -> list[Record]:
        """Return the heads that get the score of a superseded memory; none for a head."""
        heads = self._heads.get(record.path)
        if heads is None:
            is_older = not self.lineage.is_head(record.id)
            if is_older and self.state(record) != lifecycle.DELETED:
                head_records = map(self.tree.get, self.lineage.find_heads(record.id))
                heads = [head for head in head_records if head is not None]
            heads = self._heads[record.path] = heads or []
        return heads

    def has_word(self, record: Record, word: str) -> bool:
        """Return whether the record, or one that it replaces as head, has a form of the word."""
        wanted = analyzer.terms(word, self.language)
        if not self.terms(record).isdisjoint(wanted):
            return True
        if not self.lineage.is_head(record.id):
            return False
        older = map(self.tree.get, self.lineage.find_predecessors(record.id))
        return any(
            old is not None
            and not self.terms(old).isdisjoint(wanted)
            and self.state(old) != lifecycle.DELETED
            for old in older
        )


def explain_hidden(record: Record, facts: Facts) -> str:
    """Return the reason why a search leaves a memory out; empty if it does not."""
    newer = facts.lineage.superseded_by.get(record.id, ())
    why = visibility.hidden_reason(record.memory, facts.state(record), newer, facts.categories)
    return why or facts.withheld.get(record.path, ("", ""))[1]


class CurrentDocuments:
    """The current documents of an index, by number; `superseded` are hidden by others."""

    def __init__(self, index: IndexReader, now: int, superseded: set[int]) -> None:
        self.superseded = superseded
        living = (part.select_living(part.memories.find_not_alive(now)) for part in index.parts)
        self._hidden = frozenset(superseded.union(*living))

    def __call__(self, number: int) -> bool:
        """Return whether a document is current."""
        return number not in self._hidden

    def hidden(self) -> frozenset[int]:
        """Return the numbers of all documents that are not current."""
        return self._hidden

    def select(self, numbers: set[int]) -> set[int]:
        """Return the numbers among `numbers` that are current."""
        return numbers - self._hidden


def _find_withheld(
    tree: Tree, lineage: Lineage, labels: Collection[str]
) -> dict[str, tuple[str, str]]:
    """Return, by path, memories hidden for their labels, and stale digests."""
    wanted = frozenset(label.lower() for label in labels)
    withheld = {
        record.path: (PRIVATE, f"labelled {find_private_label(record.memory, wanted)}")
        for record in tree.of_kinds(lambda kind: bool(find_private_label(kind, wanted)))
    }
    for record in tree.of_kinds(lambda kind: bool(kind.fields.get("derived_from"))):
        if not is_generated(record.memory):
            continue
        for id_ in record.memory.items("derived_from"):
            quoted = tree.get(id_)
            is_gone = quoted is None or quoted.memory.status == lifecycle.DELETED
            if quoted is None or is_gone or not lineage.is_head(id_) or quoted.path in withheld:
                withheld.setdefault(record.path, (STALE, f"it quotes {id_}, which no longer holds"))
                break
    return withheld


def list_governed_paths(record: Record) -> list[str]:
    """Return the globs and paths that a memory names in `files`, and its sources that are code."""
    return record.memory.named_paths()


class Moves:
    """Today's paths of the renamed files, folders and globs that memories name."""

    def __init__(self, by_path: Mapping[str, tuple[str, tuple[Move, ...]]]) -> None:
        """Take the blob and the moves of each memory, by its path."""
        self._by_path = by_path

    def find(self, record: Record) -> tuple[Move, ...]:
        """Return the renamed paths that a memory names."""
        oid, moves = self._by_path.get(record.path, ("", ()))
        return tuple(m for m in moves if not m.is_probable) if oid == record.oid else ()

    def list_governed_paths(self, record: Record) -> list[str]:
        """Return the governed paths, plus today's name of each renamed one."""
        names = list_governed_paths(record)
        moves = self.find(record)
        clean = {posixpath.normpath(name) for name in names} if moves else ()
        return [*names, *(move.now for move in moves if move.path in clean)]

    def list_current_paths(self) -> set[str]:
        """Return today's paths of what was renamed."""
        return {move.now for _oid, moves in self._by_path.values() for move in moves}

    def find_old_paths(self, files: Iterable[str]) -> tuple[str, ...]:
        """Return the old paths by which memories name renamed files, sorted."""
        from memtool.store.files import matches_or_contains  # most files were not

        moves = {move for _oid, own in self._by_path.values() for move in own}
        return tuple(
            sorted(
                {
                    to_old_path(move, file)
                    for file in files
                    for move in moves
                    if not move.is_probable and matches_or_contains(move.now, file)
                }
            )
        )

    def naming_files(self, tree: Tree, fits: Callable[[str], bool]) -> list[Record]:
        """Return the memories of a tree that name a matching path, under its old or new name."""
        records = tree.naming_files(fits)
        paths = {record.path for record in records}
        moved = [
            path
            for path, (_oid, moves) in self._by_path.items()
            if path not in paths and any(fits(move.now) for move in moves)
        ]
        renamed = (tree.get(path.rpartition("/")[2].removesuffix(".md")) for path in moved)
        return records + [record for record in renamed if record is not None and self.find(record)]


def to_old_path(move: Move, file: str) -> str:
    """Return the old path of a file that a moved path governs."""
    if file == move.now:
        return move.path
    start, was = (_before_wildcard(path) for path in (move.now, move.path))
    return f"{was}{file[len(start) :]}"


def _before_wildcard(pattern: str) -> str:
    star = min((at for at in (pattern.find("*"), pattern.find("?")) if at >= 0), default=-1)
    return pattern if star < 0 else pattern[: pattern.rfind("/", 0, star) + 1]


NO_MOVES = Moves({})


def no_moves() -> Moves:
    """Return no moves, for callers that need a function."""
    return NO_MOVES


_SPACED = {code: " " for code in range(128) if not chr(code).isalnum()}


def normalize_words(text: str) -> str:
    """Return the words of a text between single spaces, without case or punctuation."""
    plain = text.casefold().translate(_SPACED)
    if not plain.isascii():
        plain = "".join(char if char.isalnum() else " " for char in plain)
    return f" {' '.join(plain.split())} "
