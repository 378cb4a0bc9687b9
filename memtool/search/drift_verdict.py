"""Drift verdicts: compare a memory's files at the checked commit with those at HEAD.

`file_pairs` finds which file became which; this module compares the two texts by the rules of
drift. A glob or folder stands for a set: it is gone with its last file, and names are searched in
its files under the same paths, or where they moved.
"""

from __future__ import annotations

from collections import Counter

from memtool.memory import drift as rules
from memtool.memory import sighting
from memtool.memory.drift import BROKEN, CHANGED, SAME, TOUCHED, UNKNOWN, Drift, FileDrift
from memtool.memory.subjects import find_names
from memtool.search.file_pairs import FilePair, find_pairs
from memtool.store.commit_files import BlobTexts, CommitFiles
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from memtool.search.drift_questions import DriftQuestion
    from memtool.store.repository import Repository

MAX_CITED_PLACES = 100
"""Cited places of one file that are located, each in time linear in lines."""
STEP = 100
"""Memories whose texts are read together."""


def judge(
    repository: Repository, head: CommitFiles, questions: Sequence[DriftQuestion]
) -> dict[str, tuple[Drift, set[str]]]:
    """Return the drift of memories, with the tokens that it depends on, by path."""
    if not questions:
        return {}
    with repository.git.open_objects():
        texts = BlobTexts(repository, head.own_texts)
        paired = find_pairs(repository, head, questions, texts)
        verdicts = {}
        for start in range(0, len(questions), STEP):
            some = questions[start : start + STEP]
            # Texts are read if anything of their memory differs: a name may have moved.
            differing = [
                question
                for question in some
                if not all(pair.is_as_before for pair in paired.pairs[question.path])
            ]
            texts.load(
                oid
                for question in differing
                for pair in paired.pairs[question.path]
                for oid in (pair.old, pair.new)
                if oid and not pair.fault
            )
            for question in some:
                drift = _judge_question(question, paired.pairs[question.path], texts)
                drift = drift.replace(moves=tuple(paired.moves.get(question.path, ())))
                verdicts[question.path] = (drift, paired.watched[question.path])
    return verdicts


def _judge_question(question: DriftQuestion, pairs: Sequence[FilePair], texts: BlobTexts) -> Drift:
    """Judge a memory by its files."""
    since, has_landed = question.base.commit, question.base.has_landed
    if all(pair.is_as_before for pair in pairs):
        moved = [FileDrift(pair.path, pair.now, TOUCHED) for pair in pairs if pair.path != pair.now]
        level = TOUCHED if moved else SAME
        return Drift(level, since, tuple(moved), has_landed=has_landed)
    compared = [pair for pair in pairs if not pair.fault and pair.new]
    texts_now = [texts.text(pair.new) for pair in compared]
    is_whole = None not in texts_now and not any(pair.fault for pair in pairs)
    names = find_names(question.subjects) if is_whole else ()
    absent = [
        name for name in names if not any(rules.holds(text or "", name) for text in texts_now)
    ]
    recorded = question.seen.names.filter(names) if question.seen.names is not None else []
    counts_now: Counter[str] = Counter()
    for oid in {pair.new for pair in compared} if names else ():
        counts_now.update(texts.counts(oid))
    names_now = NamesNow(names, absent, [name for name in absent if name in recorded], counts_now)
    files = [_judge_file(question, pair, texts, names_now) for pair in pairs]
    level = rules.find_worst(file.level for file in files)
    shown = [file for file in files if file.level != SAME]
    shown.sort(key=lambda file: (rules.LEVELS.index(file.level), file.path))
    return Drift(level, since, tuple(shown), has_landed=has_landed)


class NamesNow(Value):
    """The names in a memory, and their state in all of its files of today.

    `absent` are in none of the files; `lost` are those of them that were recorded as present.
    `lines` counts the lines of all files.
    """

    names: Sequence[str]
    absent: Sequence[str]
    lost: Sequence[str]
    lines: Counter[str]


def _judge_file(
    question: DriftQuestion, pair: FilePair, texts: BlobTexts, names_now: NamesNow
) -> FileDrift:
    """Judge one file."""
    path, now = pair.path, pair.now
    if pair.fault:
        return FileDrift(path, now, UNKNOWN, "", pair.fault)
    if pair.is_as_before:
        return FileDrift(path, now, SAME if path == now else TOUCHED)
    if not pair.new:
        return FileDrift(path, "", BROKEN, "gone", " and ".join(pair.probably), None, 1.0)
    if texts.text(pair.new) is None or (pair.seen is None and texts.text(pair.old) is None):
        return FileDrift(path, now, UNKNOWN, "", "it is no text of up to 1 MiB")
    judged = _compare_texts(question, pair, texts, names_now)
    return judged.replace(since_landing=True) if pair.seen is not None else judged


def _compare_texts(
    question: DriftQuestion, pair: FilePair, texts: BlobTexts, names_now: NamesNow
) -> FileDrift:
    """Judge a text that differs from the old one."""
    path, now = pair.path, pair.now
    old = texts.text(pair.old) if pair.old else None
    share = None
    if old is not None:
        share = round(rules.measure_share(texts.counts(pair.old), texts.counts(pair.new)), 2)
    gone = (
        names_now.lost if pair.seen else [n for n in names_now.absent if rules.holds(old or "", n)]
    )
    if gone:
        return FileDrift(path, now, BROKEN, "name", gone[0], None, share)
    moved: tuple[tuple[int, int], tuple[int, int]] | None = None
    places = [lines for cited, lines in question.subjects.cited if cited == path]
    if len(places) > MAX_CITED_PLACES:
        why = f"more than {MAX_CITED_PLACES} places of it are cited"
        return FileDrift(path, now, UNKNOWN, "", why)
    for lines in places:
        place = _find_place(pair, texts, lines)
        if place is None:
            return FileDrift(path, now, BROKEN, "lines", "", lines, share)
        moved = moved or ((lines, place) if lines != place else None)
    was, is_now = moved or (None, None)
    own = [name for name in names_now.names if rules.holds(old or "", name)]
    naming = rules.count_named_lines(texts.counts(pair.old), names_now.lines, own) if own else None
    is_half = share is not None and share >= rules.HALF
    if is_half or (naming and naming[0] and naming[0] >= rules.HALF * naming[1]):
        return FileDrift(path, now, CHANGED, "share", "", was, share, is_now, naming)
    return FileDrift(path, now, TOUCHED, "", "", was, share, is_now)


def _find_place(pair: FilePair, texts: BlobTexts, lines: tuple[int, int]) -> tuple[int, int] | None:
    """Return today's place of cited lines, None if they are gone."""
    rows = texts.rows(pair.new)
    if pair.seen is None:
        return rules.find_lines(texts.rows(pair.old), rows, lines)
    seen = next(
        (
            lines_seen
            for lines_seen in pair.seen.lines
            if (lines_seen.first, lines_seen.last) == lines
        ),
        None,
    )
    return lines if seen is None else sighting.find_lines(rows, seen)  # else it cited nothing
