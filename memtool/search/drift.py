"""Drift of the memories of a tree, by git: files at the commit that was checked, and at HEAD.

No history is walked: one `cat-file` says what stood at each checked commit, one `ls-tree` what
stands in HEAD. A renamed file is followed: to the same bytes elsewhere, or to a new file of its
name or folder that holds half of its lines. A glob or folder stands for a set: it is gone with its
last file, and names are looked for in its files of the same path.

The verdict on a memory depends on its bytes and on HEAD alone. It is kept as a row of one file,
`<cache>/drift/<scope>-<HEAD>`, mapped as that of provenance is: a warm answer reads its few rows
and starts no git. After plain commits all rows hold but those whose files were touched. A file that
is missing or damaged costs time, never the answer.
"""

from __future__ import annotations

import os
import posixpath
import sys
from bisect import bisect_left

from memtool.memory import drift as rules
from memtool.memory.drift import BROKEN, CHANGED, SAME, TOUCHED, UNKNOWN, Drift, FileDrift
from memtool.search.features import governed
from memtool.store import cache
from memtool.store.cache import GUARDED_BY_ROW, ROW_SECTIONS, CorruptCache, RowTable, Sections
from memtool.store.git import GitError
from memtool.store.provenance import is_straight
from memtool.value import Value, cached_property

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from memtool.store.provenance import Witness
    from memtool.store.repository import Repository
    from memtool.store.snapshot import Record, Tree

KIND = "drift 2"
KEPT = 4
TRIED = 2
"""Older tables that are looked at for rows that still hold."""
FEW = 2_000
"""A tree of no more memories is looked at as a whole, once one of them is asked for."""
MOST_BYTES = 1 << 20
"""A larger file is not compared."""
MOST_MEMBERS = 50
"""Files of a glob or folder that are compared; of a larger one only its end is seen."""
MOST_CANDIDATES = 20
"""Files that are compared with one that is gone."""
HELD_BYTES = 64 << 20
"""Of texts that are held while many memories are looked at."""
_REGULAR = ("100644", "100755")
_NEXT = "\x01"


class DriftQuestion(Value):
    """A memory that is to be looked at, and the commit since which; `files` are paths and globs."""

    path: str
    oid: str
    text: str
    files: tuple[str, ...]
    cited: tuple[tuple[str, tuple[int, int]], ...]
    base: str


class DriftWitness:
    """What became of the files of the memories of one tree, as HEAD or its own commit has them."""

    def __init__(self, tree: Tree, witness: Callable[[], Witness], since: str = "") -> None:
        """Take a tree; `since` is a commit to compare with instead of each memory's own."""
        self._tree = tree
        self._since = since
        self._ask = witness
        self._known: dict[str, Drift] = {}
        self._table: RowTable | None = None
        self._is_read = False

    @cached_property
    def _witness(self) -> Witness:
        return self._ask()

    @property
    def _is_cached(self) -> bool:
        return self._witness.is_cached and not self._since

    def __call__(self, record: Record) -> Drift | None:
        """Return what became of the files of a memory, None where it names none."""
        found = self._known.get(record.path)
        if found is None and governed(record) and self._witness.basis is not None:
            found = self._kept(record)
            if found is None:
                is_small = len(self._tree.ids) <= FEW and self._is_cached
                self.of(self._tree.records if is_small else [record])
                found = self._known.get(record.path)
        return found

    def level(self, record: Record) -> str:
        """Return the level of a memory, `same` where it names no files."""
        found = self(record)
        return SAME if found is None else found.level

    def of(self, records: Iterable[Record]) -> dict[str, Drift]:
        """Return what became of the files of memories by path; those that name none are not in it.

        What was not known before is kept.
        """
        basis = self._witness.basis
        wanted = [one for one in records if governed(one)]
        if basis is None or not wanted:
            return {}
        found = {one.path: drift for one in wanted if (drift := self._kept(one)) is not None}
        missing = [one for one in wanted if one.path not in found]
        if missing:
            asked = list(_asked(missing, self._witness))
            if self._since:
                asked = [one.replace(base=self._since) for one in asked]
            fresh = looked_at(basis.repository, basis.head, [one for one in asked if one.base])
            rows = {one.path: _row(one, *fresh[one.path]) for one in asked if one.path in fresh}
            found |= {path: drift for path, (drift, _watched) in fresh.items()}
            found |= {one.path: _unbased(one) for one in asked if not one.base}
            if self._is_cached and rows:
                known = {} if self._table is None else self._table.rows()
                self._keep(known | rows)
        self._known |= found
        return found

    def broken(self, records: Iterable[Record]) -> dict[str, str]:
        """Return by id, in order, why memories are broken."""
        records = list(records)
        found = self.of(records)
        return {
            one.id: rules.reason(found[one.path])
            for one in records
            if one.path in found and found[one.path].level == BROKEN
        }

    def _kept(self, record: Record) -> Drift | None:
        """Return what is known of a memory, without looking at its files."""
        found = self._known.get(record.path)
        if found is not None or not self._is_cached:
            return found
        if not self._is_read:
            self._is_read = True
            self._table = self._read()
        try:
            row = None if self._table is None else self._table.row(record.path)
        except CorruptCache:
            self._table = row = None
        if row is None or row[0] != record.oid:
            return None
        found = self._known[record.path] = _drift(row)
        return found

    def _read(self) -> RowTable | None:
        basis = self._witness.basis
        assert basis is not None
        try:
            return _table(cache.mapped(os.path.join(self._folder, self._name(basis.head))))
        except CorruptCache:
            pass
        rows = self._older()
        if not rows:
            return None
        self._keep(rows)
        return self._table

    def _older(self) -> dict[str, list[str]]:
        """Return the rows of an older table that still hold."""
        basis = self._witness.basis
        assert basis is not None
        repository = basis.repository
        if repository.is_partial:
            return {}
        scope = self._name("")
        for name in cache.newest(self._folder, scope)[:TRIED]:
            head = name.removeprefix(scope)
            try:
                if is_straight(repository, head, basis.head):
                    table = _table(cache.mapped(os.path.join(self._folder, name)))
                    touched = _tokens(repository, head, basis.head)
                    return {
                        path: row
                        for path, row in table.rows().items()
                        if touched.isdisjoint(row[3].split(_NEXT))
                    }
            except (CorruptCache, GitError):
                continue
        return {}

    def _keep(self, rows: Mapping[str, list[str]]) -> None:
        basis = self._witness.basis
        assert basis is not None
        data = cache.pack(KIND, (), cache.row_sections(rows), GUARDED_BY_ROW)
        self._table = _table(memoryview(data))
        cache.write(self._folder, self._name(basis.head), data, KEPT)

    @property
    def _folder(self) -> str:
        assert self._witness.basis is not None
        return os.path.join(self._witness.basis.repository.cache_dir, "drift")

    def _name(self, head: str) -> str:
        basis = self._witness.basis
        assert basis is not None
        cut = ",".join(sorted(basis.repository.shallow_commits()))
        return f"{cache.digest(KIND, sys.byteorder, basis.directory, cut)}-{head}"


def _table(raw: memoryview) -> RowTable:
    """Return the rows of a file: blob, commit, level, what it depends on, files. By memory.

    Raises:
        CorruptCache: it is no such file, or damaged where a row is looked for.
    """
    table = RowTable(Sections(raw, KIND, ROW_SECTIONS))
    table.check()
    return table


def _row(asked: DriftQuestion, drift: Drift, watched: Iterable[str]) -> list[str]:
    import json

    files = json.dumps([[getattr(one, name) for name in FileDrift.field_names]
                        for one in drift.files], separators=(",", ":"))  # fmt: skip
    kept = _NEXT.join(sorted(watched))
    return [asked.oid, asked.base, drift.level, kept, files]


def _drift(row: list[str]) -> Drift:
    _oid, base, level, _kept, rows = row
    if rows == "[]":
        return Drift(level, base)
    import json  # most memories have not drifted

    files = []
    for path, now, how, why, name, lines, share in json.loads(rows):
        cited = None if lines is None else (lines[0], lines[1])
        files.append(FileDrift(path, now, how, why, name, cited, share))
    return Drift(level, base, tuple(files))


def _unbased(asked: DriftQuestion) -> Drift:
    files = tuple(FileDrift(path, path, UNKNOWN, "", "not committed yet") for path in asked.files)
    return Drift(UNKNOWN, "", files)


def _asked(records: Sequence[Record], witness: Witness) -> Iterator[DriftQuestion]:
    """Yield memories with the commit at which each was last confirmed, or that has its bytes."""
    from memtool.memory.schema import parse_source  # only what is not known is read

    origins = witness.origins(records)
    for record in records:
        memory = record.memory
        checked = memory.table("checked").get("commit", "")
        sources = [parse_source(one) for one in memory.items("source")]
        cited = {
            (posixpath.normpath(one.target), one.lines)
            for one in sources
            if one.kind == "file" and one.lines
        }
        files = [posixpath.normpath(one) for one in memory.items("files")]
        files += [posixpath.normpath(one.target) for one in sources if one.kind == "file"]
        text = f"{memory.title}\n{memory.body}"
        for path in files:
            cited.update((path, lines) for lines in rules.cited(text, path))
        usable = dict.fromkeys(path for path in files if _is_usable(path))
        base = checked or origins[record.path].commit
        yield DriftQuestion(
            record.path, record.oid, text, tuple(usable), tuple(sorted(cited)), base
        )


def _is_usable(path: str) -> bool:
    return (
        path not in (".", "..")
        and not path.startswith(("../", "/", ".git/"))
        and (path.isprintable())
    )


def _tokens(repository: Repository, old: str, new: str) -> set[str]:
    """Return what rows may depend on of the changes between two commits.

    That is the paths with the folders above them, and of new files name, folder and blob.
    """
    found = {"/"}
    for row in repository.git.diff_raw("diff-tree", "-r", "--no-renames", old, new):
        found.add(row.path)
        at = row.path.rfind("/")
        while at > 0 and (above := row.path[: at + 1]) not in found:
            found.add(above)
            at = row.path.rfind("/", 0, at)
        if row.status != "D":
            folder, _slash, name = row.path.rpartition("/")
            found |= {f"+{name}", f"+{folder}/", f"={row.oid}"}
    return found


class HeadFiles:
    """The files of one commit by path and by blob."""

    def __init__(self, repository: Repository, commit: str) -> None:
        # Git is asked about one path a line.
        listed = [one for one in repository.git.ls_tree(commit) if "\n" not in one.path]
        self.modes = {one.path: one.mode for one in listed}
        self.oids = {one.path: one.oid for one in listed if one.mode in _REGULAR}
        self.order = sorted(self.modes)
        self.by_oid: dict[str, list[str]] = {}
        self.by_name: dict[str, list[str]] = {}
        self.by_folder: dict[str, list[str]] = {}
        for path in sorted(self.oids):
            folder, _slash, name = path.rpartition("/")
            self.by_oid.setdefault(self.oids[path], []).append(path)
            self.by_name.setdefault(name, []).append(path)
            self.by_folder.setdefault(folder, []).append(path)

    def below(self, start: str) -> Iterator[str]:
        """Yield the paths that begin with a text."""
        at = bisect_left(self.order, start)
        while at < len(self.order) and self.order[at].startswith(start):
            yield self.order[at]
            at += 1

    def near(self, path: str, oid: str) -> list[str]:
        """Return the files that a gone one may have become: of its bytes, its name, its folder."""
        folder, _slash, name = path.rpartition("/")
        ending = posixpath.splitext(name)[1]
        beside = [one for one in self.by_folder.get(folder, ()) if one.endswith(ending)]
        found = (self.by_oid.get(oid, ()), self.by_name.get(name, ()), beside)
        return list(dict.fromkeys(one for those in found for one in those))[:MOST_CANDIDATES]


class Texts:
    """Blobs as texts, a bounded number of them at a time; None for what is no text."""

    def __init__(self, repository: Repository) -> None:
        self._git = repository.git
        self._held: dict[str, str | None] = {}
        self._rows: dict[str, list[str]] = {}
        self._counts: dict[str, Counter[str]] = {}
        self._size = 0

    def load(self, oids: Iterable[str]) -> None:
        """Read what is not held; of too much all is dropped first."""
        wanted = list(dict.fromkeys(oids))
        if self._size > HELD_BYTES:
            for held in (self._held, self._rows, self._counts):
                held.clear()
            self._size = 0
        missing = [oid for oid in wanted if oid not in self._held]
        for oid, data in zip(missing, self._git.blobs(missing, MOST_BYTES), strict=True):
            self._size += len(data)
            try:
                is_text = len(data) <= MOST_BYTES and b"\0" not in data
                self._held[oid] = data.decode() if is_text else None
            except UnicodeDecodeError:
                self._held[oid] = None

    def text(self, oid: str) -> str | None:
        """Return a text that was loaded, None for what is none."""
        return self._held[oid]

    def rows(self, oid: str) -> list[str]:
        """Return the lines of a text without blanks."""
        if oid not in self._rows:
            self._rows[oid] = rules.lines_of(self._held[oid] or "")
        return self._rows[oid]

    def counts(self, oid: str) -> Counter[str]:
        """Return how often each line stands in a text."""
        if oid not in self._counts:
            self._counts[oid] = rules.counted(self.rows(oid))
        return self._counts[oid]


class FilePair(Value):
    """A file as it was and is. `new` is empty where it is gone, `fault` says why nobody knows."""

    path: str
    now: str
    old: str
    new: str
    fault: str = ""


STEP = 100
"""Memories whose texts are read at once."""


def looked_at(
    repository: Repository, commit: str, asked: Sequence[DriftQuestion]
) -> dict[str, tuple[Drift, set[str]]]:
    """Return what became of the files of memories, with what that depends on, by path."""
    if not asked:
        return {}
    head = HeadFiles(repository, commit)
    with repository.git.reading():
        pairs, watched = _pairs(repository, head, asked)
        texts = Texts(repository)
        found = {}
        for start in range(0, len(asked), STEP):
            some = asked[start : start + STEP]
            # A text is read where anything of its memory differs: a name may have moved.
            differing = [
                one for one in some if any(pair.old != pair.new for pair in pairs[one.path])
            ]
            texts.load(
                oid
                for one in differing
                for pair in pairs[one.path]
                for oid in (pair.old, pair.new)
                if oid and not pair.fault
            )
            for one in some:
                found[one.path] = (_verdict(one, pairs[one.path], texts), watched[one.path])
    return found


def _pairs(
    repository: Repository, head: HeadFiles, asked: Sequence[DriftQuestion]
) -> tuple[dict[str, list[FilePair]], dict[str, set[str]]]:
    git = repository.git
    bases = sorted({one.base for one in asked})
    known = dict(zip(bases, git.infos([f"{base}^{{commit}}" for base in bases]), strict=True))
    members = {}
    watched: dict[str, set[str]] = {}
    for one in asked:
        watched[one.path] = tokens = set()
        for file in one.files:
            paths, token = _members(head, file)
            tokens.add(token)
            members[one.path, file] = paths
    wanted = {
        (one.base, path)
        for one in asked
        if known[one.base]
        for file in one.files
        for path in (file, *members[one.path, file])
    }
    order = sorted(wanted)
    infos = git.infos([f"{base}:{path}" for base, path in order])
    there = dict(zip(order, infos, strict=True))
    pairs: dict[str, list[FilePair]] = {}
    gone: list[tuple[DriftQuestion, FilePair]] = []
    for one in asked:
        rows = pairs[one.path] = []
        for file in one.files:
            if not known[one.base]:
                rows.append(FilePair(file, file, "", "?", f"commit {one.base[:10]} is not here"))
                continue
            known_file = there.get((one.base, file))
            was_file = known_file is not None and known_file[1] == "blob"
            for path in (() if was_file else members[one.path, file]) or (file,):
                pair = _pair(head, path, there.get((one.base, path)))
                if pair is not None:
                    rows.append(pair)
                    if not pair.new and not pair.fault:
                        gone.append((one, pair))
    _follow(repository, head, gone, pairs, watched)
    return pairs, watched


def _members(head: HeadFiles, file: str) -> tuple[tuple[str, ...], str]:
    """Return the files of a glob or folder, none for a file, and what they depend on."""
    if file in head.modes:
        return (), file
    from memtool.search import filters  # few memories name more than files

    star = min((at for at in (file.find("*"), file.find("?")) if at >= 0), default=-1)
    start = file[:star].rpartition("/")[0] + "/" if star >= 0 else f"{file}/"
    found = []
    for path in head.below("" if start == "/" else start):
        if star < 0 or filters.governs(file, path):
            found.append(path)
            if len(found) > MOST_MEMBERS:  # of so many nobody could say which is meant
                return (path,), start
    return tuple(found), start if star >= 0 or found else file


def _pair(head: HeadFiles, path: str, info: tuple[str, str, int] | None) -> FilePair | None:
    """Return a file as it was and is, None where there is nothing to compare."""
    if info is None or info[1] == "missing":
        return None  # it was not there when the memory was written, so it was not what was meant
    mode = head.modes.get(path, "")
    if info[1] != "blob" or (mode and mode not in _REGULAR):
        if not mode and info[1] == "tree" and not any(head.below(f"{path}/")):
            return FilePair(path, "", info[0], "")
        is_same = info[1] == "tree" and not mode
        return None if is_same else FilePair(path, path, "", "?", "it is a link or a submodule")
    new = head.oids.get(path, "")
    if info[0] != new and info[2] > MOST_BYTES:
        return FilePair(path, path, "", "?", "it is larger than 1 MiB")
    return FilePair(path, path if new else "", info[0], new)


def _follow(
    repository: Repository,
    head: HeadFiles,
    gone: Sequence[tuple[DriftQuestion, FilePair]],
    pairs: Mapping[str, list[FilePair]],
    watched: Mapping[str, set[str]],
) -> None:
    """Put where a file lies today in the place of one that is gone, where it was renamed."""
    near = [(one, pair, head.near(pair.path, pair.old)) for one, pair in gone]
    order = sorted({(one.base, path) for one, _pair, paths in near for path in paths})
    infos = repository.git.infos([f"{base}:{path}" for base, path in order])
    is_new = {key for key, info in zip(order, infos, strict=True) if info is None}
    texts = Texts(repository)
    moved: dict[tuple[str, str], bool] = {}
    for one, pair, paths in near:
        folder, _slash, name = pair.path.rpartition("/")
        watched[one.path].update({pair.path, f"+{name}", f"+{folder}/", f"={pair.old}"})
        best, least = "", rules.HALF
        for path in (path for path in paths if (one.base, path) in is_new):
            new = head.oids[path]
            if new == pair.old:
                best = path
                break
            if (pair.old, new) not in moved:
                texts.load([pair.old, new])
                is_text = texts.text(pair.old) is not None and texts.text(new) is not None
                counts = texts.counts(pair.old)
                own = rules.share(counts, texts.counts(new)) if is_text and counts else 1.0
                moved[pair.old, new] = own <= least
            if moved[pair.old, new] and not best:
                best = path
        if best:
            watched[one.path].add(best)
            rows = pairs[one.path]
            rows[rows.index(pair)] = pair.replace(now=best, new=head.oids[best])


def _verdict(asked: DriftQuestion, pairs: Sequence[FilePair], texts: Texts) -> Drift:
    """Judge a memory by its files."""
    if all(pair.old == pair.new for pair in pairs):
        moved = [FileDrift(one.path, one.now, TOUCHED) for one in pairs if one.path != one.now]
        return Drift(TOUCHED if moved else SAME, asked.base, tuple(moved))
    compared = [pair for pair in pairs if not pair.fault and pair.new]
    texts_now = [texts.text(pair.new) for pair in compared]
    is_whole = None not in texts_now and not any(pair.fault for pair in pairs)
    names = rules.names(asked.text) if is_whole else ()
    absent = [one for one in names if not any(rules.holds(text or "", one) for text in texts_now)]
    files = [_judged(asked, pair, texts, names, absent) for pair in pairs]
    level = rules.worst(one.level for one in files)
    shown = [one for one in files if one.level != SAME]
    shown.sort(key=lambda one: (rules.LEVELS.index(one.level), one.path))
    return Drift(level, asked.base, tuple(shown))


def _judged(
    asked: DriftQuestion, pair: FilePair, texts: Texts, names: Sequence[str], absent: Sequence[str]
) -> FileDrift:
    path, now = pair.path, pair.now
    if pair.fault:
        return FileDrift(path, now, UNKNOWN, "", pair.fault)
    if pair.old == pair.new:
        return FileDrift(path, now, SAME if path == now else TOUCHED)
    if not pair.new:
        return FileDrift(path, "", BROKEN, "gone", "", None, 1.0)
    old, new = texts.text(pair.old), texts.text(pair.new)
    if old is None or new is None:
        return FileDrift(path, now, UNKNOWN, "", "it is no text of up to 1 MiB")
    share = round(rules.share(texts.counts(pair.old), texts.counts(pair.new)), 2)
    lost = next((name for name in absent if rules.holds(old, name)), "")
    if lost:
        return FileDrift(path, now, BROKEN, "name", lost, None, share)
    for cited, lines in asked.cited:
        if cited == path and not rules.is_kept(texts.rows(pair.old), texts.rows(pair.new), lines):
            return FileDrift(path, now, BROKEN, "lines", "", lines, share)
    stood = [name for name in names if rules.holds(old, name)]
    named = rules.named_share(texts.rows(pair.old), texts.counts(pair.new), stood)
    if share >= rules.HALF or named >= rules.HALF:
        return FileDrift(path, now, CHANGED, "share", "", None, max(share, round(named, 2)))
    return FileDrift(path, now, TOUCHED, "", "", None, share)
