"""File pairs: the files of memories as they were, paired with those that HEAD has.

One `cat-file` reads what existed at each checked commit, one `ls-tree` what exists in HEAD. History
is queried only for files that are gone. If git detected a rename, it is followed, see `moves`;
otherwise the new file is one with the same bytes, or a new file of that name or folder with half of
its lines. If the commit is lost, the memory's own record tells which files it saw.
"""

from __future__ import annotations

from memtool.memory import drift as rules
from memtool.memory import sighting
from memtool.memory.drift import Move
from memtool.memory.sighting import SeenFile
from memtool.memory.trust import SHORT_ID_DIGITS
from memtool.search import moves
from memtool.search.drift_questions import DriftQuestion, find_adding_commits
from memtool.store import renames
from memtool.store.commit_files import MAX_BLOB_BYTES, MAX_CANDIDATES, BlobTexts, CommitFiles
from memtool.store.files import matches_or_contains
from memtool.store.git import REGULAR_MODES, SUBMODULE_MODE, GitError
from memtool.store.sources import ABSENT, find_objects, find_present_commits, is_usable
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from memtool.store.renames import Removals, Rename
    from memtool.store.repository import Repository

ObjectInfo = tuple[str, str, int]
"""Id, type and size of an object, as `git cat-file` reports them."""
MAX_MEMBERS = 50
"""Files of a glob or folder that are compared; of a larger one only its removal is detected."""
MAX_PARTS = 3
"""Files that are listed as probable successors of a gone one."""


class FilePair(Value):
    """A file as it was and is. `new` is empty if it is gone; `fault` is why it cannot be compared.

    `is_set` marks a glob that no longer matches any file, with one of its former files. `probably`
    are files that a gone one may have become. `seen` is the recorded file if its bytes are not in
    this clone; `old` is then its blob as it landed, empty if unknown.
    """

    path: str
    now: str
    old: str
    new: str
    fault: str = ""
    is_set: bool = False
    probably: tuple[str, ...] = ()
    seen: SeenFile | None = None

    @property
    def is_as_before(self) -> bool:
        return self.old == self.new and self.seen is None

    def with_move(self, path: str, oid: str) -> FilePair:
        """Return the pair of a file that moved, possibly unchanged since it was recorded."""
        if self.seen is not None and oid.startswith(self.seen.blob):
            return self.replace(now=path, old=oid, new=oid, seen=None)
        return self.replace(now=path, new=oid)


class FilePairs(Value):
    """The answer, by the path of each memory: pairs of files, tokens that they depend on, moves.

    A token is a path, or the mark of a name, folder or blob that could change the answer.
    """

    pairs: dict[str, list[FilePair]]
    watched: dict[str, set[str]]
    moves: dict[str, list[Move]]


def find_pairs(
    repository: Repository, head: CommitFiles, questions: Sequence[DriftQuestion], texts: BlobTexts
) -> FilePairs:
    """Return the file pairs of memories; texts that were compared stay in `texts`."""
    finder = _PairFinder(repository, head, questions)
    finder.pair_files()
    finder.follow_in_history(texts)
    finder.follow_similar(texts)
    finder.note_probable_moves()
    return FilePairs(finder.pairs, finder.watched, finder.moves)


class _PairFinder:
    """Pairs the files of memories in passes: each replaces pairs of files that the last found gone.

    `_there` has what existed at each checked commit, `_recorded` the blobs in this clone by their
    recorded first digits, and `_whole` the commits that changed code along with a memory.
    """

    def __init__(
        self, repository: Repository, head: CommitFiles, questions: Sequence[DriftQuestion]
    ) -> None:
        self._repository = repository
        self._head = head
        self._questions = questions
        self.pairs: dict[str, list[FilePair]] = {}
        self.watched: dict[str, set[str]] = {}
        self.moves: dict[str, list[Move]] = {}
        self._members: dict[tuple[str, str], tuple[str, ...]] = {}
        for question in questions:
            self.watched[question.path] = tokens = set()
            for file in question.files:
                self._members[question.path, file], token = _find_members(head, file)
                tokens.add(token)
        self._present = find_present_commits(
            repository, {question.base.commit for question in questions}
        )
        wanted = {
            (question.base.commit, path)
            for question in questions
            if question.base.commit in self._present
            for file in question.files
            for path in (file, *self._members[question.path, file])
        }
        self._there = find_objects(repository, wanted)
        self._recorded = self._find_recorded_blobs()
        self._whole = self._find_commits_with_code()
        self._lost_members: dict[tuple[str, str], str] = {}
        self._removals: Removals | None = None

    def pair_files(self) -> None:
        """Pair each file with that of the same path in HEAD."""
        for question in self._questions:
            is_present = question.base.commit in self._present
            self.pairs[question.path] = list(
                self._find_pairs_at(question) if is_present else _build_unknown_pairs(question)
            )

    def _find_pairs_at(self, question: DriftQuestion) -> Iterator[FilePair]:
        """Yield the pairs of a memory whose commit is here."""
        if _is_as_recorded(self._head, question):
            for file, oid in _find_plain_blobs(self._head, question).items():
                yield FilePair(file, file, oid, oid)
            return
        for file in question.files:
            if question.seen.find_file(file) is None:
                yield from self._find_named_pairs(question, file)
            elif pair := self._find_recorded_pair(question, file):
                yield pair

    def _find_named_pairs(self, question: DriftQuestion, file: str) -> Iterator[FilePair]:
        """Yield the pairs of a file, or of the members of a glob or folder."""
        base, members = question.base.commit, self._members[question.path, file]
        info = self._there.get((base, file))
        if info is not None and info[1] == "blob":
            members = ()
        is_absent = not members and file not in self._head.entries and info is None
        if is_absent and (lost := self._find_lost_member(base, file)):
            yield FilePair(file, "", lost, "", is_set=True)
        for path in members or (file,):
            info = self._there.get((base, path))
            pair = _build_pair(self._head, path, info)
            if info is None and self._head.entries.get(path, ("",))[0] == SUBMODULE_MODE:
                pair = self._build_submodule_pair(base, path)
            if pair is not None:
                yield pair

    def _find_recorded_pair(self, question: DriftQuestion, path: str) -> FilePair | None:
        """Return the pair of a file whose blob is recorded, None if it was perhaps never committed.

        If the commit changed code along with the memory, as a squash does, it left the file out;
        otherwise the file may come later.
        """
        seen = question.seen.find_file(path)
        assert seen is not None
        info = self._there.get((question.base.commit, path))  # usually the blob that was recorded
        mode, now = self._head.entries.get(path, ("", ""))
        if now.startswith(seen.blob):
            return FilePair(path, path, now, now)
        if info is not None and info[0].startswith(seen.blob):
            return _build_pair(self._head, path, info)
        if seen.blob in self._recorded:
            return _build_pair(self._head, path, self._recorded[seen.blob])
        is_whole = question.base.has_landed or question.base.commit in self._whole
        if not (mode or info or is_whole):
            return None  # the worktree held it, and maybe no commit ever did
        if mode and mode not in REGULAR_MODES:
            return FilePair(path, path, "", "?", "it is a link or a submodule")
        old = info[0] if info is not None and info[1] == "blob" else ""
        return FilePair(path, path if mode else "", old, now, seen=seen)

    def _find_lost_member(self, base: str, file: str) -> str:
        """Return one former file of a glob that matches none today; empty if there is none."""
        if (base, file) not in self._lost_members:
            self._lost_members[base, file] = self._read_lost_member(base, file)
        return self._lost_members[base, file]

    def _read_lost_member(self, base: str, file: str) -> str:
        folder = _find_glob_folder(file)
        if folder is None:
            return ""
        try:
            rows = self._repository.git.ls_tree(base, *([folder] if folder else []))
        except GitError:  # a partial clone does not hold the folder
            return ""
        return next((row.oid for row in rows if matches_or_contains(file, row.path)), "")

    def _build_submodule_pair(self, base: str, path: str) -> FilePair | None:
        """Return the pair of a submodule: git lists its commit but does not have it."""
        try:
            rows = self._repository.git.ls_tree(base, path, recursive=False)
        except GitError:
            rows = []
        if not rows or self._head.entries[path][1] == rows[0].oid:
            return None
        return FilePair(path, path, "", "?", "it is a link or a submodule")

    def _find_recorded_blobs(self) -> dict[str, ObjectInfo]:
        """Return the blobs in this clone, by the recorded first digits.

        Blobs that the commit or HEAD has are not looked up.
        """
        wanted = set()
        for question in self._questions:
            for path, seen in question.seen.files.items():
                info = self._there.get((question.base.commit, path))
                blobs = (info[0] if info else "", self._head.entries.get(path, ("", ""))[1])
                if not any(oid.startswith(seen.blob) for oid in blobs):
                    wanted.add(seen.blob)
        if self._repository.is_partial:  # a question about an absent object would end git
            return {}
        order = sorted(wanted)
        infos = zip(order, self._repository.git.infos(order), strict=True)
        return {digits: info for digits, info in infos if info is not None and info[1] == "blob"}

    def _find_commits_with_code(self) -> set[str]:
        """Return the commits without a recorded file that changed more than memories.

        Only commits that added a memory are examined, and only if HEAD lacks the file as well.
        """
        lacking = {
            (question.base.commit, _find_memory_folder(question.path))
            for question in self._questions
            if not question.base.has_landed
            for path in question.seen.files
            if path in question.files
            and path not in self._head.entries
            and self._there.get((question.base.commit, path), "") is None
        }
        whole = set()
        for commit, folder in lacking:
            try:
                changes = self._repository.git.diff_raw(
                    "diff-tree", "-r", "--root", "--no-commit-id", "--no-renames", commit
                )
            except GitError:  # a partial clone does not hold the folders of its parent
                continue
            if not all(change.path.startswith(folder) for change in changes):
                whole.add(commit)
        return whole

    def follow_in_history(self, texts: BlobTexts) -> None:
        """Replace gone files by those that renames in history lead to."""
        wanted = self._find_lost_paths()
        followed, self._removals = moves.follow_paths(self._repository, self._head, list(wanted))
        for named, result in followed.items():
            question = wanted[named]
            is_done = any(move.path == named.path for move in self.moves.get(question.path, ()))
            if result.move is not None and not is_done:
                self._apply_move(question, named, result.files, result.move)
        for question, pair, rename in self._find_replaced(texts):
            move = Move(pair.path, rename.current_path, rename.commit, is_taken=True)
            self.moves.setdefault(question.path, []).append(move)
            self._replace(question, pair, rename.current_path)

    def _apply_move(
        self,
        question: DriftQuestion,
        named: moves.NamedPath,
        files: Sequence[moves.FollowedFile],
        move: Move,
    ) -> None:
        """Note the move of a path that a memory names, and pair its files with those of today."""
        is_taken = bool(self._members[question.path, named.path])
        self.moves.setdefault(question.path, []).append(move.replace(is_taken=is_taken))
        tokens, rows = self.watched[question.path], self.pairs[question.path]
        tokens |= {named.path, move.now, f"{move.now}/", f"{_find_glob_folder(move.now)}/"}
        if question.base.commit not in self._present:
            return  # there is nothing to compare with
        rows[:] = [pair for pair in rows if pair.new or pair.path != named.path]
        for moved in files[:MAX_MEMBERS]:
            tokens |= {moved.path, moved.now}
            rows.append(self._follow_pair(question, named.base, moved))

    def _replace(self, question: DriftQuestion, pair: FilePair, path: str) -> None:
        """Replace a pair of a memory by that with another file of HEAD."""
        self.watched[question.path].add(path)
        rows = self.pairs[question.path]
        rows[rows.index(pair)] = pair.with_move(path, self._head.oids[path])

    def _find_lost_paths(self) -> dict[moves.NamedPath, DriftQuestion]:
        """Return the paths that may have been renamed, each with the memory that names it.

        Renames before the last confirmation are looked up from the commit that added the memory.
        """
        wanted: dict[moves.NamedPath, DriftQuestion] = {}
        earlier: list[tuple[DriftQuestion, str]] = []
        for question in self._questions:
            rows = self.pairs[question.path]
            judged = {pair.path for pair in rows if pair.old or pair.new or pair.fault}
            base, is_present = question.base.commit, question.base.commit in self._present
            for file in (file for file in question.files if file not in self._head.entries):
                if is_present:
                    start = _find_glob_folder(file)
                    wanted[moves.NamedPath(question.path, file, base, start)] = question
                has_members = bool(self._members[question.path, file])
                if not is_present or (file not in judged and not has_members):
                    earlier.append((question, file))
        begun = self._find_beginnings([question for question, _file in earlier])
        for question, file in earlier:
            for base in begun.get(question.path, ()):
                start = _find_glob_folder(file)
                wanted[moves.NamedPath(question.path, file, base, start)] = question
        return wanted

    def _find_beginnings(self, questions: Sequence[DriftQuestion]) -> dict[str, tuple[str, str]]:
        """Return the commit that added each memory, and the one before it.

        A squash renames a file and adds the memory that names the old path in one commit.
        """
        paths = sorted({question.path for question in questions if "\0" not in question.path})
        if not paths:
            return {}
        rows = find_adding_commits(self._repository, self._head.commit, paths)
        return {path: (commit, f"{commit}^") for path, commit in rows.items() if commit}

    def _find_replaced(self, texts: BlobTexts) -> list[tuple[DriftQuestion, FilePair, Rename]]:
        """Return files that were renamed before others, with few common lines, took their paths."""
        likely = [
            (question, pair)
            for question in self._questions
            for pair in self.pairs[question.path]
            if _has_other_file(question, pair, texts)
        ]
        paths = {pair.path for _question, pair in likely}
        bases = {question.base.commit for question, _pair in likely}
        head = self._head
        renamed, _removals = renames.follow_renames(
            self._repository, head.commit, head.oids, paths, bases
        )
        return [
            (question, pair, renamed[pair.path])
            for question, pair in likely
            if pair.path in renamed
            and is_usable(renamed[pair.path].current_path)
            and self._is_since(renamed[pair.path].commit, question.base.commit)
        ]

    def _is_since(self, commit: str, base: str) -> bool:
        """Return whether a commit is not an ancestor of another one."""
        return bool(self._repository.git.line("rev-list", "--max-count=1", commit, f"^{base}"))

    def _follow_pair(
        self, question: DriftQuestion, base: str, moved: moves.FollowedFile
    ) -> FilePair:
        """Return the pair of a file that was followed from `base` on."""
        is_base = base == question.base.commit
        old = moved.oid if is_base else self._find_blob(question.base.commit, moved.names)
        new, seen = self._head.oids[moved.now], question.seen.find_file(moved.path)
        if seen is None or old.startswith(seen.blob):
            return FilePair(moved.path, moved.now, old or new, new)
        return FilePair(moved.path, "", old, "", seen=seen).with_move(moved.now, new)

    def _find_blob(self, commit: str, names: Sequence[str]) -> str:
        """Return the blob of a renamed file at a commit, empty if it was not there."""
        there = find_objects(self._repository, {(commit, name) for name in names})
        return next((info[0] for info in there.values() if info and info[1] == "blob"), "")

    def follow_similar(self, texts: BlobTexts) -> None:
        """Replace files that are still gone by new ones with the same bytes or half of the lines.

        A file with part of the lines is listed as a probable successor.
        """
        gone = [
            (question, pair, self._find_candidates(pair))
            for question in self._questions
            for pair in self.pairs[question.path]
            if not (pair.new or pair.fault or pair.is_set)
        ]
        wanted = {(question.base.commit, path) for question, _pair, paths in gone for path in paths}
        were = find_objects(self._repository, wanted)
        is_new = {key for key, info in were.items() if info is None}
        similarity = _Similarity(self._head, texts)
        for question, pair, paths in gone:
            folder, _slash, name = pair.path.rpartition("/")
            tokens = self.watched[question.path]
            tokens.update({pair.path, f"+{name}", f"+{folder}/", f"={pair.old}"})
            new_paths = [path for path in paths if (question.base.commit, path) in is_new]
            best, parts = similarity.find_successors(pair, new_paths)
            if best:
                self._replace(question, pair, best)
            elif parts:
                tokens.update(parts)
                rows = self.pairs[question.path]
                rows[rows.index(pair)] = pair.replace(probably=parts)

    def _find_candidates(self, pair: FilePair) -> list[str]:
        """Return the files of HEAD that a gone file may have become."""
        assert self._removals is not None
        added = self._removals.list_added_with(pair.path)[:MAX_CANDIDATES]
        similar = self._head.find_similar(pair.path, pair.old)
        return [
            path
            for path in dict.fromkeys((*similar, *added))
            if path in self._head.oids and is_usable(path)
        ]

    def note_probable_moves(self) -> None:
        """Note a move for each file that a memory names and that another one has replaced."""
        for question in self._questions:
            moved_paths = {move.path for move in self.moves.get(question.path, ())}
            for pair in self.pairs[question.path]:
                is_named = pair.path in question.files and pair.path not in moved_paths
                if is_named and pair.now not in ("", pair.path) and is_usable(pair.now):
                    is_same = pair.new == pair.old
                    guess = Move(pair.path, pair.now, is_probable=not is_same)
                    self.moves.setdefault(question.path, []).append(guess)


class _Similarity:
    """How much of a gone file is in new ones; each pair of blobs is compared once."""

    def __init__(self, head: CommitFiles, texts: BlobTexts) -> None:
        self._head = head
        self._texts = texts
        self._lost: dict[tuple[str, str], float] = {}

    def find_successors(self, pair: FilePair, paths: Iterable[str]) -> tuple[str, tuple[str, ...]]:
        """Return the file that a gone one became, and those that may hold a part of it."""
        best = ""
        parts: list[tuple[float, str]] = []
        for path in paths:
            new = self._head.oids[path]
            if new == pair.old or (pair.seen is not None and new.startswith(pair.seen.blob)):
                return path, ()
            if not pair.old:  # how it landed is not known
                continue
            lost = self._measure_lost(pair.old, new)
            if lost <= rules.HALF and not best:
                best = path
            if lost <= rules.MAX_LOST:
                parts.append((lost, path))
        return best, tuple(path for _share, path in sorted(parts)[:MAX_PARTS])

    def _measure_lost(self, old: str, new: str) -> float:
        """Return the share of a blob's lines that are not in another one, 1 if one is no text."""
        if (old, new) not in self._lost:
            texts = self._texts
            texts.load([old, new])
            is_text = texts.text(old) is not None and texts.text(new) is not None
            counts = texts.counts(old)
            share = rules.measure_share(counts, texts.counts(new)) if is_text and counts else 1.0
            self._lost[old, new] = share
        return self._lost[old, new]


def _build_unknown_pairs(question: DriftQuestion) -> Iterator[FilePair]:
    """Yield the pairs of a memory whose commit is not in this clone."""
    fault = f"commit {question.base.commit[:SHORT_ID_DIGITS]} is not here"
    for file in question.files:
        yield FilePair(file, file, "", "?", fault)


def _has_other_file(question: DriftQuestion, pair: FilePair, texts: BlobTexts) -> bool:
    """Return whether a path has most likely another file today: few lines are the same."""
    is_other = pair.path == pair.now and pair.old and pair.new and pair.old != pair.new
    if not is_other or pair.fault or pair.seen is not None or pair.path not in question.files:
        return False
    texts.load((pair.old, pair.new))
    if None in (texts.text(pair.old), texts.text(pair.new)):
        return False
    share = rules.measure_share(texts.counts(pair.old), texts.counts(pair.new))
    return share > rules.HALF


def _find_memory_folder(path: str) -> str:
    """Return the folder, with a slash, in which a memory is stored as TYPE/MONTH/ID.md."""
    path = path.partition("\0")[0]
    for _level in range(3):
        path = path.rpartition("/")[0]
    return f"{path}/" if path else ""


def _find_plain_blobs(head: CommitFiles, question: DriftQuestion) -> dict[str, str]:
    """Return the blobs of the files that a memory names individually."""
    return {path: head.oids[path] for path in question.files if path in head.oids}


def _is_as_recorded(head: CommitFiles, question: DriftQuestion) -> bool:
    """Return whether files that are too many to be recorded individually are all unchanged."""
    digest = question.seen.files_digest
    return bool(digest) and sighting.digest_files(_find_plain_blobs(head, question)) == digest


def _find_members(head: CommitFiles, file: str) -> tuple[tuple[str, ...], str]:
    """Return the files of a glob or folder (none for a file), and the token they depend on."""
    if file in head.entries:
        return (), file
    folder = _find_glob_folder(file)
    start = f"{file}/" if folder is None else f"{folder}/"
    members = []
    for path in head.find_by_prefix(start.lstrip("/")):
        if folder is None or matches_or_contains(file, path):
            members.append(path)
            if len(members) > MAX_MEMBERS:  # too many to tell which is meant
                return (file,), start
    return tuple(members), start if folder is not None or members else file


def _find_glob_folder(file: str) -> str | None:
    """Return the folder of a glob, empty for the top; None without wildcards."""
    star = min((at for at in (file.find("*"), file.find("?")) if at >= 0), default=-1)
    return file[:star].rpartition("/")[0] if star >= 0 else None


def _build_pair(head: CommitFiles, path: str, info: ObjectInfo | None) -> FilePair | None:
    """Return a file as it was and is, None if there is nothing to compare."""
    if info is None:
        return None  # it was not there when the memory was written, so it was not what was meant
    old, kind, size = info
    mode, now = head.entries.get(path, ("", ""))
    if kind == "tree":
        if mode:
            return FilePair(path, path, "", "?", "it was a folder")
        return None if any(head.find_by_prefix(f"{path}/")) else FilePair(path, "", old, "")
    if not mode and kind != ABSENT:
        return FilePair(path, "", old, "")
    if now != old and kind == ABSENT:
        return FilePair(path, path, "", "?", "this partial clone does not hold it")
    if now != old and mode not in REGULAR_MODES:
        return FilePair(path, path, "", "?", "it is a link or a submodule")
    if now != old and size > MAX_BLOB_BYTES:
        return FilePair(path, path, "", "?", "it is larger than 1 MiB")
    return FilePair(path, path, old, now)
