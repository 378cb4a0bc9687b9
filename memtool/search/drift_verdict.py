"""The verdict on a memory, by git: its files at the commit that was checked, and at HEAD.

No history is walked: one `cat-file` says what stood at each checked commit, one `ls-tree` what
stands in HEAD. A renamed file is followed: to the same bytes elsewhere, or to a new file of its
name or folder that holds half of its lines. A glob or folder stands for a set: it is gone with its
last file, and names are looked for in its files of the same path.
"""

from __future__ import annotations

import posixpath
from collections import Counter

from memtool.memory import drift as rules
from memtool.memory.drift import BROKEN, CHANGED, SAME, TOUCHED, UNKNOWN, Drift, FileDrift
from memtool.memory.schema import parse_source
from memtool.store import sources
from memtool.store.commit_files import MOST_BYTES, BlobTexts, CommitFiles
from memtool.store.files import governs
from memtool.store.git import REGULAR, SUBMODULE, GitError
from memtool.store.provenance import LISTED_MOST
from memtool.store.sources import (
    ABSENT,
    MISSING,
    OK,
    UNREACHABLE,
    Citation,
    is_usable,
    objects_at,
    present_commits,
)
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from memtool.store.provenance import Basis, Witness
    from memtool.store.repository import Repository
    from memtool.store.tree import Record

MOST_MEMBERS = 50
"""Files of a glob or folder that are compared; of a larger one only its end is seen."""
MAX_CITED_PLACES = 100
"""Places of one file that a memory cites and that are looked for, each in time linear in lines."""
_NOTHING: Mapping[str, str] = {}


class DriftQuestion(Value):
    """A memory that is to be looked at, and the commit since which; `files` are paths and globs.

    `citations` are its sources that git can look up.
    """

    path: str
    oid: str
    text: str
    files: tuple[str, ...]
    cited: tuple[tuple[str, tuple[int, int]], ...]
    base: str
    citations: tuple[Citation, ...] = ()


def bases(
    records: Sequence[Record], witness: Witness, known: Mapping[str, str] = _NOTHING
) -> dict[str, str]:
    """Return by path the commit at which each memory was last confirmed, else that of its claim.

    That is the one which added the file: what pinned or strengthened it looked at no code. Only a
    candidate may still change its claim, so that of its bytes counts. Empty is what is in no commit
    of this clone; `known` is by path what need not be asked.
    """
    basis = witness.basis
    origins = witness.origins(records)
    found: dict[str, str] = {}
    for record in records:
        checked = record.memory.table("checked").get("commit", "")
        origin = origins[record.path]
        is_told = not origin.commit or origin.is_first or record.memory.status == "candidate"
        if checked or is_told:
            found[record.path] = checked or origin.commit
        elif record.path in known:
            found[record.path] = known[record.path]
    changed = sorted(record.path for record in records if record.path not in found)
    return found if basis is None or not changed else found | _added(basis, changed)


def _added(basis: Basis, paths: Sequence[str]) -> dict[str, str]:
    """Return the newest commit that added each path, empty where this clone does not know it."""
    repository, wanted = basis.repository, frozenset(paths)
    limit = paths if len(paths) <= LISTED_MOST else [basis.directory]
    try:
        rows = repository.git.log_raw(
            "log",
            "--full-history",
            "--topo-order",
            "--no-renames",
            "--diff-filter=A",
            "--format=%H",
            "--end-of-options",
            basis.head,
            "--",
            *limit,
            is_wanted=wanted.__contains__,
        )
    except GitError:  # a partial clone does not hold the folders of older commits
        rows = iter(())
    cut = repository.shallow_commits()
    found: dict[str, str] = {}
    for commit, row in rows:
        found.setdefault(row.path, "" if commit in cut else commit)
    return {path: found.get(path, "") for path in paths}


def questions(
    records: Sequence[Record], witness: Witness, known: Mapping[str, str] = _NOTHING
) -> list[DriftQuestion]:
    """Return memories with the commit since which each is looked at; `known` is as for `bases`."""
    since = bases(records, witness, known)
    found = []
    for record in records:
        memory = record.memory
        parsed = [parse_source(one) for one in memory.items("source")]
        cited = {
            (posixpath.normpath(one.target), one.lines)
            for one in parsed
            if one.kind == "file" and one.lines
        }
        files = [posixpath.normpath(one) for one in memory.items("files")]
        files += [posixpath.normpath(one.target) for one in parsed if one.kind == "file"]
        text = f"{memory.title}\n{memory.body}"
        for path in files:
            cited.update((path, lines) for lines in rules.cited(text, path))
        usable = dict.fromkeys(path for path in files if is_usable(path))
        base = since[record.path]
        citations = [Citation(one, base) for one in parsed if one.kind in ("commit", "file")]
        found.append(
            DriftQuestion(
                record.path,
                record.oid,
                text,
                tuple(usable),
                tuple(sorted(cited)),
                base,
                tuple(citations),
            )
        )
    return found


RESOLVED, UNRESOLVED, UNTOLD = "resolved", "unresolved", ""


def qualities(basis: Basis, asked: Sequence[DriftQuestion]) -> dict[str, tuple[str, str]]:
    """Return by path whether all commits and files that a memory cites resolve.

    `resolved` and `unresolved` are known for good, and nothing is where a memory cites none of
    them or this clone cannot tell. With it comes the trusted commit if the answer depends on that.
    """
    cited = {citation for one in asked for citation in one.citations}
    resolved = sources.resolve(basis.repository, cited, (basis.head, basis.trusted_at))
    found = {}
    for one in asked:
        rows = [(each.source.commit, resolved[each]) for each in one.citations]
        statuses = {row.status for _commit, row in rows}
        quality = RESOLVED if statuses == {OK} else UNTOLD
        quality = UNRESOLVED if statuses & {MISSING, UNREACHABLE} else quality
        is_open = any(commit and row.tip != basis.head for commit, row in rows)
        found[one.path] = quality, (basis.trusted_at or "none") if is_open else ""
    return found


class FilePair(Value):
    """A file as it was and is. `new` is empty where it is gone, `fault` says why nobody knows.

    `is_set` marks a glob that matches no file any more, with one of those that it stood for: it
    governs nothing, wherever that file went.
    """

    path: str
    now: str
    old: str
    new: str
    fault: str = ""
    is_set: bool = False


STEP = 100
"""Memories whose texts are read at once."""


def judge(
    repository: Repository, head: CommitFiles, asked: Sequence[DriftQuestion]
) -> dict[str, tuple[Drift, set[str]]]:
    """Return what became of the files of memories, with what that depends on, by path."""
    if not asked:
        return {}
    with repository.git.reading():
        pairs, watched = _pairs(repository, head, asked)
        texts = BlobTexts(repository, head.own)
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
    repository: Repository, head: CommitFiles, asked: Sequence[DriftQuestion]
) -> tuple[dict[str, list[FilePair]], dict[str, set[str]]]:
    known = present_commits(repository, {one.base for one in asked})
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
        if one.base in known
        for file in one.files
        for path in (file, *members[one.path, file])
    }
    there = objects_at(repository, wanted)
    pairs: dict[str, list[FilePair]] = {}
    lost: dict[tuple[str, str], str] = {}
    for one in asked:
        rows = pairs[one.path] = []
        for file in one.files:
            if one.base in known:
                paths = members[one.path, file]
                rows += _pairs_of(repository, head, one.base, file, paths, there, lost)
            else:
                rows.append(FilePair(file, file, "", "?", f"commit {one.base[:10]} is not here"))
    gone = [
        (one, pair)
        for one in asked
        for pair in pairs[one.path]
        if not (pair.new or pair.fault or pair.is_set)
    ]
    _follow(repository, head, gone, pairs, watched)
    return pairs, watched


def _pairs_of(
    repository: Repository,
    head: CommitFiles,
    base: str,
    file: str,
    members: tuple[str, ...],
    there: Mapping[tuple[str, str], tuple[str, str, int] | None],
    lost: dict[tuple[str, str], str],
) -> Iterator[FilePair]:
    """Yield the pairs of a file, or of the members of a glob or folder.

    `lost` holds what was found of globs without a member, so that git is asked once for each.
    """
    info = there.get((base, file))
    if info is not None and info[1] == "blob":
        members = ()
    if not members and file not in head.entries and info is None:
        if (base, file) not in lost:
            lost[base, file] = _lost_member(repository, base, file)
        if lost[base, file]:
            yield FilePair(file, "", lost[base, file], "", is_set=True)
    for path in members or (file,):
        info = there.get((base, path))
        pair = _pair(head, path, info)
        if info is None and head.entries.get(path, ("",))[0] == SUBMODULE:
            pair = _submodule(repository, head, base, path)
        if pair is not None:
            yield pair


def _members(head: CommitFiles, file: str) -> tuple[tuple[str, ...], str]:
    """Return the files of a glob or folder, none for a file, and what they depend on."""
    if file in head.entries:
        return (), file
    folder = _folder_of_glob(file)
    start = f"{file}/" if folder is None else f"{folder}/"
    found = []
    for path in head.below(start.lstrip("/")):
        if folder is None or governs(file, path):
            found.append(path)
            if len(found) > MOST_MEMBERS:  # of so many nobody could say which is meant
                return (file,), start
    return tuple(found), start if folder is not None or found else file


def _folder_of_glob(file: str) -> str | None:
    """Return the folder below which a glob looks, empty for the top; None for what is no glob."""
    star = min((at for at in (file.find("*"), file.find("?")) if at >= 0), default=-1)
    return file[:star].rpartition("/")[0] if star >= 0 else None


def _pair(head: CommitFiles, path: str, info: tuple[str, str, int] | None) -> FilePair | None:
    """Return a file as it was and is, None where there is nothing to compare."""
    if info is None:
        return None  # it was not there when the memory was written, so it was not what was meant
    old, kind, size = info
    mode, now = head.entries.get(path, ("", ""))
    if kind == "tree":
        if mode:
            return FilePair(path, path, "", "?", "it was a folder")
        return None if any(head.below(f"{path}/")) else FilePair(path, "", old, "")
    if not mode and kind != ABSENT:
        return FilePair(path, "", old, "")
    if now != old and kind == ABSENT:
        return FilePair(path, path, "", "?", "this partial clone does not hold it")
    if now != old and mode not in REGULAR:
        return FilePair(path, path, "", "?", "it is a link or a submodule")
    if now != old and size > MOST_BYTES:
        return FilePair(path, path, "", "?", "it is larger than 1 MiB")
    return FilePair(path, path, old, now)


def _submodule(repository: Repository, head: CommitFiles, base: str, path: str) -> FilePair | None:
    """Return the pair of a submodule, of which git lists a commit and holds none."""
    try:
        rows = repository.git.ls_tree(base, path, recursive=False)
    except GitError:
        rows = []
    if not rows or head.entries[path][1] == rows[0].oid:
        return None
    return FilePair(path, path, "", "?", "it is a link or a submodule")


def _lost_member(repository: Repository, base: str, file: str) -> str:
    """Return one of the files that a glob stood for, which has none today; empty for none."""
    folder = _folder_of_glob(file)
    if folder is None:
        return ""
    try:
        rows = repository.git.ls_tree(base, *([folder] if folder else []))
    except GitError:  # a partial clone does not hold the folder
        return ""
    return next((one.oid for one in rows if governs(file, one.path)), "")


def _follow(
    repository: Repository,
    head: CommitFiles,
    gone: Sequence[tuple[DriftQuestion, FilePair]],
    pairs: Mapping[str, list[FilePair]],
    watched: Mapping[str, set[str]],
) -> None:
    """Put where a file lies today in the place of one that is gone, where it was renamed."""
    near = [(one, pair, head.near(pair.path, pair.old)) for one, pair in gone]
    were = objects_at(
        repository, {(one.base, path) for one, _pair, paths in near for path in paths}
    )
    is_new = {key for key, info in were.items() if info is None}
    texts = BlobTexts(repository, head.own)
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


def _verdict(asked: DriftQuestion, pairs: Sequence[FilePair], texts: BlobTexts) -> Drift:
    """Judge a memory by its files."""
    if all(pair.old == pair.new for pair in pairs):
        moved = [FileDrift(one.path, one.now, TOUCHED) for one in pairs if one.path != one.now]
        return Drift(TOUCHED if moved else SAME, asked.base, tuple(moved))
    compared = [pair for pair in pairs if not pair.fault and pair.new]
    texts_now = [texts.text(pair.new) for pair in compared]
    is_whole = None not in texts_now and not any(pair.fault for pair in pairs)
    names = rules.names(_without_paths(asked)) if is_whole else ()
    absent = [one for one in names if not any(rules.holds(text or "", one) for text in texts_now)]
    counts_now: Counter[str] = Counter()
    for oid in {pair.new for pair in compared} if names else ():
        counts_now.update(texts.counts(oid))
    files = [_judged(asked, pair, texts, names, absent, counts_now) for pair in pairs]
    level = rules.worst(one.level for one in files)
    shown = [one for one in files if one.level != SAME]
    shown.sort(key=lambda one: (rules.LEVELS.index(one.level), one.path))
    return Drift(level, asked.base, tuple(shown))


def _without_paths(asked: DriftQuestion) -> str:
    """Return the text of a memory without the names of its files, which need not stand in them."""
    text = asked.text
    for path in sorted(asked.files, key=len, reverse=True):
        text = text.replace(path, " ").replace(posixpath.basename(path) or path, " ")
    return text


def _judged(
    asked: DriftQuestion,
    pair: FilePair,
    texts: BlobTexts,
    names: Sequence[str],
    absent: Sequence[str],
    counts_now: Counter[str],
) -> FileDrift:
    """Judge one file; `counts_now` are the lines of all files of the memory as they are today."""
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
    moved: tuple[tuple[int, int], tuple[int, int]] | None = None
    places = [lines for cited, lines in asked.cited if cited == path]
    if len(places) > MAX_CITED_PLACES:
        why = f"more than {MAX_CITED_PLACES} places of it are cited"
        return FileDrift(path, now, UNKNOWN, "", why)
    for lines in places:
        place = rules.place(texts.rows(pair.old), texts.rows(pair.new), lines)
        if place is None:
            return FileDrift(path, now, BROKEN, "lines", "", lines, share)
        moved = moved or ((lines, place) if lines != place else None)
    was, is_now = moved or (None, None)
    own = [name for name in names if rules.holds(old, name)]
    naming = rules.named_lines(texts.counts(pair.old), counts_now, own) if own else None
    if share >= rules.HALF or (naming and naming[0] and naming[0] >= rules.HALF * naming[1]):
        return FileDrift(path, now, CHANGED, "share", "", was, share, is_now, naming)
    return FileDrift(path, now, TOUCHED, "", "", was, share, is_now)
