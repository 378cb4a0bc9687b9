"""What changed between two versions of a memory, and which changes are allowed.

Git says which bytes differ; this says what that means: added, confirmed, forgotten, redacted, or
edited behind the back of a confirmation. `log` and `diff` share it.
"""

from __future__ import annotations

from itertools import pairwise

from memtool.memory.fields import SETTLED, is_mutable, order
from memtool.memory.memory import FieldValue, Memory
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

KINDS: dict[str, str] = {
    "added": "a memory that was not there before",
    "superseded": "another memory took its place; the file itself is as it was",
    "confirmed": "somebody vouched for it",
    "pinned": "it is injected first from now on",
    "unpinned": "it is no longer pinned",
    "deprecated": "it is no longer recommended",
    "archived": "it was put away",
    "forgotten": "it was deleted softly",
    "restored": "deprecating, archiving or forgetting it was undone",
    "redacted": "spans of its claim became [REDACTED:kind], and nothing else",
    "settled": "it was said to hold although what it rests on changed",
    "faded": "it was not used on its first day as a candidate, so it counts less",
    "edited": "other keys or its body changed; silent where a confirmed claim did",
    "moved": "its file lies elsewhere, or it got another id",
    "unreadable": "its file can no longer be read as a memory",
    "mended": "its file can be read again",
    "removed": "its file is gone",
    "unknown": "history is cut off before it was written (shallow clone)",
}
"""Every kind of change, in the order in which those of one memory are listed."""

BODY = "body"
"""The name of the body among the keys that changed."""

_ORDER = {kind: number for number, kind in enumerate(KINDS)}
_PUT_AWAY = {"deprecated": "deprecated", "archived": "archived", "deleted": "forgotten"}
_FADING = frozenset({"importance", "faded"})
_TOLD_OTHERWISE = frozenset({"id", "status"})

Detail = str | bool | tuple[str, ...]


class Version(Value):
    """A version of a memory file. If it is unreadable, `memory` is None and `fault` the reason."""

    path: str
    memory: Memory | None
    fault: str = ""

    @property
    def id(self) -> str:
        """The id, which is the file's name."""
        return id_from_path(self.path)

    @property
    def title(self) -> str:
        return self.memory.title if self.memory else ""


class Change(Value):
    """One change of one memory; `details` depends on its kind.

    `by` (superseded: an id; confirmed and forgotten: a person), `reason`, `on` (settled: causes),
    `from` (moved: the old path; put away or restored: the old status), `from_id` (moved: the old
    id), `supersedes`
    or `proposes` (added), `keys` (edited, faded, redacted: keys, and `body`), `silent` (edited),
    `fault` (unreadable).
    """

    kind: str
    id: str
    title: str
    path: str
    details: dict[str, Detail]


def id_from_path(path: str) -> str:
    """Return the id that a path names: the file name without `.md`."""
    return path.rpartition("/")[2].removesuffix(".md")


def compare(
    before: Iterable[Version], after: Iterable[Version], paired: Mapping[str, str] | None = None
) -> tuple[Change, ...]:
    """Return the changes between two sets of versions, sorted by id, kind and path.

    Versions with the same id belong together, even under another path. A memory that got another id
    is recognised by its timestamp and title, or by `paired` (new path to old path, from git's
    similarity). A memory is never taken for the one that it supersedes.
    """
    change_list: list[Change] = []
    titles: dict[str, tuple[str, str]] = {}
    for old, new in _pair_versions(before, after, paired or {}):
        change_list.extend(find_changes(old, new))
        for version in (old, new):
            if version is not None:
                titles[version.id] = (version.title, version.path)
    for number, change in enumerate(change_list):
        if change.kind == "superseded":
            title, path = titles.get(change.id, ("", ""))
            change_list[number] = change.replace(title=title, path=path)
    return tuple(sorted(change_list, key=lambda c: (c.id, _ORDER[c.kind], c.path, str(c.details))))


def find_changes(before: Version | None, after: Version | None) -> tuple[Change, ...]:
    """Return the changes of one memory; None means that the file does not exist.

    If it newly supersedes other memories, those get changes too, without title and path.
    """
    if before == after:
        return ()
    if after is None:
        return (_change("removed", before),) if before else ()
    if before is None:
        return tuple(_find_beginning(after))
    return tuple(_find_later_changes(before, after))


def _find_beginning(after: Version) -> Iterator[Change]:
    if after.memory is None:
        yield _change("unreadable", after, fault=after.fault)
        return
    lineage = {"supersedes": after.memory.replaces, "proposes": after.memory.proposes}
    yield _change("added", after, **{key: ids for key, ids in lineage.items() if ids})
    yield from _find_superseded(None, after.memory)


def _find_later_changes(before: Version, after: Version) -> Iterator[Change]:
    if before.id != after.id:
        yield _change("moved", after, **{"from": before.path, "from_id": before.id})
    elif before.path != after.path:
        yield _change("moved", after, **{"from": before.path})
    old, new = before.memory, after.memory
    if new is None:
        if old is not None:
            yield _change("unreadable", after, fault=after.fault).replace(title=old.title)
        return
    if old is None:
        yield _change("mended", after)
        return
    yield from _lifecycle(old, new, after)
    yield from _find_edits(old, new, after)
    yield from _find_superseded(old, new)


def _lifecycle(old: Memory, new: Memory, after: Version) -> Iterator[Change]:
    was, now = old.status, new.status
    vouched = _confirmation(new) if _confirmation(new) != _confirmation(old) else {}
    by: dict[str, Detail] = {"by": vouched["by"]} if vouched.get("by") else {}
    if was != now:
        if now in _PUT_AWAY:
            table = new.table("deleted") if now == "deleted" else {}
            why: dict[str, Detail] = {k: table[k] for k in ("by", "reason") if table.get(k)}
            yield _change(_PUT_AWAY[now], after, **{"from": was}, **why)
        elif was in _PUT_AWAY:
            yield _change("restored", after, **{"from": was})
        elif now == "pinned":
            yield _change("pinned", after)
        elif was == "pinned":
            yield _change("unpinned", after)
        elif now == "candidate":
            yield _change("edited", after, keys=("status",), silent=False)
    if vouched or (was == "candidate" and now == "confirmed"):
        yield _change("confirmed", after, **by)
    if gained := _find_settled(old, new):
        yield _change("settled", after, on=gained)


def _find_settled(old: Memory, new: Memory) -> tuple[str, ...]:
    """Return the causes on which a memory was settled, if the change only added some."""
    before, now = old.items(SETTLED), new.items(SETTLED)
    if not set(before) <= set(now):
        return ()
    return tuple(cause for cause in now if cause not in before)


def _confirmation(memory: Memory) -> dict[str, str]:
    """Return who confirmed a memory, when and at which commit; a sighting alone does not count."""
    return {key: text for key, text in memory.table("checked").items() if key != "saw"}


def _find_edits(old: Memory, new: Memory, after: Version) -> Iterator[Change]:
    keys = find_changed_keys(old, new)
    redacted = tuple(key for key in keys if is_redacted(_get_value(old, key), _get_value(new, key)))
    edited = tuple(key for key in keys if key not in redacted)
    if redacted:
        yield _change("redacted", after, keys=redacted)
    if _FADING.issuperset(edited) and "faded" in edited and new.table("faded"):
        yield _change("faded", after, keys=edited)
    elif edited:
        silent = old.status != "candidate" and any(map(is_claim, edited))
        yield _change("edited", after, keys=edited, silent=silent)


def _find_superseded(old: Memory | None, new: Memory) -> Iterator[Change]:
    """Only what takes effect now counts: a proposal when it is confirmed."""
    before = old.replaces if old else ()
    for id_ in new.replaces:
        if id_ not in before:
            yield Change("superseded", id_, "", "", {"by": new.id})


def is_claim(key: str) -> bool:
    """Return whether a key, or `body`, is part of a memory's claim."""
    return key == BODY or not is_mutable(key)


def find_changed_keys(old: Memory, new: Memory) -> tuple[str, ...]:
    """Return the keys that differ, in the table's order, with `body` last.

    The id and the lifecycle keys (status, checked, deleted, retired, settled_on) are left out.
    """
    names = (old.fields.keys() | new.fields.keys()) - _TOLD_OTHERWISE
    if new.table("checked"):  # else it was taken away, which no change of the lifecycle says
        names -= {"checked"}
    if old.status != new.status:
        names -= {"deleted", "retired"}
    if _find_settled(old, new):
        names -= {SETTLED}
    keys = [k for k in sorted(names, key=order) if old.fields.get(k) != new.fields.get(k)]
    return (*keys, BODY) if old.body != new.body and _says_another(old, new) else tuple(keys)


def _says_another(old: Memory, new: Memory) -> bool:
    """Return whether bodies differ in more than a formatter may change."""
    from memtool.memory.plain_claim import find_plain_claim  # bodies hardly ever differ

    return find_plain_claim(old.body) != find_plain_claim(new.body)


def _get_value(memory: Memory, key: str) -> FieldValue | None:
    return memory.body if key == BODY else memory.fields.get(key)


def _change(kind: str, version: Version | None, **details: Detail) -> Change:
    assert version is not None
    return Change(kind, version.id, version.title, version.path, details)


def _pair_versions(
    before: Iterable[Version], after: Iterable[Version], paired: Mapping[str, str]
) -> Iterator[tuple[Version | None, Version | None]]:
    """Yield which version became which, first by path, then by id, then as renamed ids."""
    olds = {version.path: version for version in sorted(before, key=lambda v: v.path)}
    news = {version.path: version for version in sorted(after, key=lambda v: v.path)}
    for path in sorted(olds.keys() & news.keys()):
        yield olds.pop(path), news.pop(path)
    lying: dict[str, list[str]] = {}
    for path in reversed(olds):
        lying.setdefault(olds[path].id, []).append(path)
    for path in [path for path in news if news[path].id in lying]:
        places = lying[news[path].id]
        if places:
            yield olds.pop(places.pop()), news.pop(path)
    for path in list(news) if olds else ():
        old = _find_renamed(olds, news[path], paired.get(path, ""))
        if old is not None:
            yield olds.pop(old.path), news.pop(path)
    yield from ((old, None) for old in olds.values())
    yield from ((None, new) for new in news.values())


def _find_renamed(olds: Mapping[str, Version], new: Version, paired: str) -> Version | None:
    """Return which of the versions without a successor became this one under another id."""
    if paired in olds and is_renamed(olds[paired], new):
        return olds[paired]
    same = (old for old in olds.values() if old.title == new.title and is_renamed(old, new))
    return next(same, None)


def is_renamed(old: Version, new: Version) -> bool:
    """Return whether two similar files with different ids are one memory that was renamed.

    Git also finds a removed memory similar to its successor. The successor has another timestamp
    and names the memory that it replaces.
    """
    if old.memory is None or new.memory is None:
        return False
    return (
        old.memory.text("timestamp") == new.memory.text("timestamp")
        and old.id not in new.memory.supersedes
        and new.id not in old.memory.supersedes
    )


def describe_change(change: Change) -> str:
    """Return the details of a change as a clause for people; empty if there are none."""
    clauses = []
    for key, words in _WORDS.items():
        value = change.details.get(key)
        if isinstance(value, tuple):
            value = ", ".join(value)
        if value:
            clauses.append(words.format(value))
    return "; ".join(clauses)


_WORDS: dict[str, str] = {
    "supersedes": "supersedes {}",
    "proposes": "proposes to replace {}",
    "keys": "{}",
    "silent": "SILENT EDIT of a confirmed claim",
    "from_id": "was {}",
    "from": "from {}",
    "on": "on {}",
    "by": "by {}",
    "reason": "{}",
    "fault": "{}",
}


MARK = "[REDACTED:"
"""How every mark begins; a kind, maybe a colon and a label, and a closing bracket follow."""
LONGEST = 54
"""Characters of kind and label. A longer span, or one with other characters, is not a mark."""
MAX_MARKS = 1_000
"""Most marks of a text that may be a redaction: each old mark is looked for among all new ones."""
_WORD = frozenset("abcdefghijklmnopqrstuvwxyz0123456789-:")


def is_redacted(old: FieldValue | None, new: FieldValue | None) -> bool:
    """Return whether the value of a key differs only by spans that became marks."""
    if isinstance(old, str) and isinstance(new, str):
        return is_redaction(old, new)
    if isinstance(old, dict) and isinstance(new, dict) and list(old) == list(new):
        return is_redacted(tuple(old.values()), tuple(new.values()))
    if not (isinstance(old, tuple) and isinstance(new, tuple) and len(old) == len(new)):
        return False
    different = [(o, n) for o, n in zip(old, new, strict=True) if o != n]
    return bool(different) and all(is_redaction(o, n) for o, n in different)


def is_redaction(before: str, after: str) -> bool:
    """Return whether a text differs only by spans that became `[REDACTED:kind]`.

    A new mark replaces one character or more, and never another mark. So each old mark is still in
    the new text, and the text between two old marks became the text between the same marks.
    """
    olds, news = list(_split_marks(before)), list(_split_marks(after))
    if not len(olds) < len(news) <= MAX_MARKS:
        return False
    begins = {0}  # the pieces of the new text that can correspond to the beginning of the old one
    for (_mark, text), (following, _text) in pairwise(olds):
        begins = {
            end
            for begin in begins
            for end in range(begin + 1, min(len(news), begin + 2 + len(text)))
            if news[end][0] == following and _became(text, news[begin:end])
        }
    return any(_became(olds[-1][1], news[begin:]) for begin in begins)


def _became(text: str, pieces: list[tuple[str, str]]) -> bool:
    """Return whether a text without marks may have become these pieces, the first without its mark.

    The first place at which a piece fits leaves most to the others.
    """
    (_mark, start), *later = pieces
    if not later:
        return text == start
    if not text.startswith(start):
        return False
    position = len(start)
    for _mark, piece in later[:-1]:
        at = text.find(piece, position + 1)
        if at < 0 or MARK in text[position:at]:
            return False
        position = at + len(piece)
    end = later[-1][1]
    at = len(text) - len(end)
    return at > position and text.endswith(end) and MARK not in text[position:at]


def _split_marks(text: str) -> Iterator[tuple[str, str]]:
    """Yield (mark, text behind it); the first mark is empty."""
    mark, searched = "", 0
    while True:
        begin = text.find(MARK, searched)
        if begin < 0:
            yield mark, text
            return
        end = text.find("]", begin, begin + len(MARK) + LONGEST + 1)
        word = text[begin + len(MARK) : end]
        if end < 0 or not word or not _WORD.issuperset(word):
            searched = begin + 1
            continue
        yield mark, text[:begin]
        mark, text, searched = text[begin : end + 1], text[end + 1 :], 0
