"""What a change takes away, and what rests on it.

The causes after the change are compared with those before it (see `search.unsettled` and
`search.change_trees`). A cause that came with the change, or meets a conclusion of the change, is
left to settle, and whoever settles the lowest conclusions settles all.
"""

from __future__ import annotations

from fnmatch import fnmatchcase

from memtool.agents import INSTRUCTION_FILES, RULE_FILES
from memtool.errors import MemtoolError
from memtool.memory import drift
from memtool.memory.drift import BROKEN as BROKEN_LEVEL
from memtool.memory.fields import SETTLED
from memtool.memory.premises import BROKEN, ENDED, MAX_CAUSES, MEMORY, REPLACED, describe_fault
from memtool.search.levels import find_digests_in_use
from memtool.search.unsettled import Unsettled
from memtool.store.grep import find_words
from memtool.value import Value, cached_property

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from memtool.memory.premises import Cause
    from memtool.search.change_trees import ChangeTrees

    Members = dict[str, Cause]
    """The conclusions that rest on one premise, by id, with the nearest cause of each."""

MAX_CONCLUSIONS = 5_000
"""Conclusions of one change that are listed; all are counted."""
MAX_SETTLED = 1_000
MAX_MENTIONS = 20
"""Places of one premise and its conclusions that are listed."""
MAX_IDS = 200
"""Memories whose ids are looked for in the code."""
VOUCHED = frozenset(("confirmed", "pinned"))
"""The status of a conclusion that fails a check if it is left unsettled."""
ARCHIVED = "archived"


class Head(Value):
    """A memory that a premise is now. `on_target`: the commit that the change goes into has it."""

    id: str
    title: str
    on_target: bool


class Conclusion(Value):
    """A memory that rests on what the change takes away.

    `rests_on` is the premise, or the conclusion between them; `depth` counts from 1. `path` and
    `line` are where it says so. `is_new` is true if it is part of the change, `on_target` if only
    the commit that the change goes into has it, and `was_unsettled` if it was so before.
    """

    id: str
    title: str
    status: str
    rests_on: str
    depth: int
    path: str
    line: int
    is_new: bool
    on_target: bool
    was_unsettled: bool


class Mention(Value):
    """A place that names a premise or conclusion by its id.

    `command` rebuilds a digest, and is empty for a line of a file. `is_rule` marks files that
    agents read.
    """

    id: str
    path: str
    line: int
    is_rule: bool
    command: str


class PremiseChange(Value):
    """A premise that is out after a change, with the conclusions that are left to settle.

    `reason` is `replaced`, and `heads` are what it is now; or why it no longer holds, such as
    `broken`, and then `detail` says what is gone. `on_target` is true if this is so before the
    change. `path` and `line` are where the change says so, empty and 0 otherwise. `count` is the
    number of conclusions that are left, more than are listed if there are very many.
    """

    id: str
    title: str
    reason: str
    detail: str
    on_target: bool
    heads: tuple[Head, ...]
    path: str
    line: int
    count: int
    conclusions: tuple[Conclusion, ...]
    mentions: tuple[Mention, ...]

    @property
    def fault(self) -> str:
        """Why the premise no longer holds, as a clause about it; empty if it is replaced."""
        return "" if self.heads else describe_fault(self.reason, "it")

    @property
    def lowest(self) -> tuple[str, ...]:
        """The memories to settle: all that rest on them are then settled too."""
        if self.reason == BROKEN:
            return (self.id,)
        return tuple(row.id for row in self.conclusions if row.depth == 1)


class SettledConclusion(Value):
    """A memory that the change settles, or whose cause the change takes away."""

    id: str
    title: str


VALUES = (PremiseChange, Head, Conclusion, Mention, SettledConclusion)
"""The values in a result."""


class PremiseReview(Value):
    """What a change takes away: `premises`.

    `unsettled` counts the conclusions to settle, and `vouched` those of them that are confirmed or
    pinned. `earlier` counts those that are as unsettled as before. `needs_target` is true if the
    change lacks a memory that is concerned, so that it cannot settle all of them by itself.
    """

    premises: tuple[PremiseChange, ...]
    unsettled: int
    vouched: int
    earlier: int
    settled: tuple[SettledConclusion, ...]
    needs_target: bool


def compare_premises(trees: ChangeTrees, now: int, notes: list[str]) -> PremiseReview:
    """Return what a change takes away, as of the second `now`.

    If the files cannot be searched for ids in time, a note says so.
    """
    return _Comparison(trees, now, notes).build()


class _Comparison:
    """The premises before and after a change."""

    def __init__(self, trees: ChangeTrees, now: int, notes: list[str]) -> None:
        self._trees = trees
        self._notes = notes
        self._before = Unsettled(trees.before, now, trees.drift_before)
        self._after = Unsettled(trees.after, now, trees.drift_after)
        self._roots: dict[tuple[str, str], str] = {}

    def build(self) -> PremiseReview:
        """Return the result."""
        self._before.all  # noqa: B018  # judges all at once what is asked one by one below
        members_by_root: dict[str, Members] = {}
        names_by_root: dict[str, set[str]] = {}
        open_ids = set()
        for id_, causes in self._find_new_causes():
            open_ids.add(id_)
            for cause in causes:
                root = self._find_root(id_, cause.name)
                members_by_root.setdefault(root, {}).setdefault(id_, cause)
                names_by_root.setdefault(root, set()).add(cause.name)
        room = MAX_CONCLUSIONS
        changes = []
        for root, members in sorted(members_by_root.items()):
            changes.append(self._build_change(root, members, names_by_root[root], open_ids, room))
            room -= len(changes[-1].conclusions)
        changes = self._with_mentions(changes)
        vouched = [id_ for id_ in open_ids if self._trees.after[id_].memory.status in VOUCHED]
        return PremiseReview(
            tuple(changes),
            len(open_ids),
            len(vouched),
            len(self._after.all.keys() - open_ids),
            tuple(self._find_settled()),
            self._needs_target(changes),
        )

    def _find_new_causes(self) -> Iterator[tuple[str, list[Cause]]]:
        """Yield the conclusions that have causes that they had not before."""
        olds = self._before.find(self._after.all)
        for id_, causes in self._after.all.items():
            old = olds.get(id_, {})
            fresh = [cause for name, cause in causes.items() if name not in old]
            if len(old) >= MAX_CAUSES:  # there may have been others, which were left out
                fresh = [
                    cause
                    for cause in fresh
                    if not self._before.is_out(self._find_root(id_, cause.name))
                ]
            if fresh:
                yield id_, fresh

    def _find_root(self, id_: str, name: str) -> str:
        """Return the premise that gave a cause to a memory."""
        path: list[tuple[str, str]] = []
        while (id_, name) not in self._roots:
            path.append((id_, name))
            cause = self._after.find((id_,))[id_][name]
            if cause.is_direct:
                self._roots[id_, name] = cause.via
            else:
                id_ = cause.via
        root = self._roots[id_, name]
        self._roots.update(dict.fromkeys(path, root))
        return root

    # One premise

    def _build_change(
        self, root: str, members: Members, names: set[str], open_ids: set[str], room: int
    ) -> PremiseChange:
        reason = next(iter(members.values())).reason
        heads = [name.removeprefix(MEMORY) for name in sorted(names) if name.startswith(MEMORY)]
        olds = () if self._before.lineage.is_head(root) else self._before.lineage.find_heads(root)
        rows = tuple(Head(head, self._find_title(head), on_target=head in olds) for head in heads)
        on_target = all(row.on_target for row in rows) if rows else self._before.is_out(root)
        path, line = ("", 0) if on_target else self._find_place(root, reason, heads)
        conclusions = self._list_conclusions(root, members)
        return PremiseChange(
            id=root,
            title=self._find_title(root),
            reason=reason,
            detail=self._describe_break(root) if reason == BROKEN else "",
            on_target=on_target,
            heads=rows,
            path=path,
            line=line,
            count=len(open_ids & members.keys()),
            conclusions=tuple(
                self._build_conclusion(id_, parent, depth, open_ids)
                for id_, parent, depth in conclusions[:room]
            ),
            mentions=(),
        )

    def _list_conclusions(self, root: str, members: Members) -> list[tuple[str, str, int]]:
        """Return id, what it rests on, and depth of each conclusion, below what it rests on.

        Those that were unsettled before are included where others rest on them.
        """
        members = dict(members)
        for cause in [*members.values()]:
            lower = cause
            while not lower.is_direct and lower.via not in members:
                id_ = lower.via
                lower = members[id_] = self._after.find((id_,))[id_][cause.name]
        return _order_tree(root, members, self._after.is_listed)

    def _build_conclusion(
        self, id_: str, parent: str, depth: int, open_ids: set[str]
    ) -> Conclusion:
        record = self._trees.after[id_]
        is_touched = self._trees.is_touched(record)
        line = 0
        if is_touched and depth == 1:
            line = find_line(self._trees.read_text(record), parent)
        return Conclusion(
            id=id_,
            title=record.memory.title,
            status=record.memory.status,
            rests_on=parent,
            depth=depth,
            path=record.path,
            line=line,
            is_new=is_touched and id_ not in self._trees.before,
            on_target=not is_touched and record.path not in self._paths_of_change,
            was_unsettled=id_ not in open_ids,
        )

    def _find_title(self, id_: str) -> str:
        record = self._trees.after.get(id_) or self._trees.before.get(id_)
        return "" if record is None else record.memory.title

    def _describe_break(self, root: str) -> str:
        """Return what is gone of the code that a memory names."""
        broken = self._trees.drift_after(self._trees.after[root])
        if broken is None:
            return ""
        gone = [file for file in broken.files if file.why == "gone" and not file.name]
        return f"{gone[0].path} is gone" if gone else drift.summarize(broken)

    def _find_place(self, root: str, reason: str, heads: Iterable[str]) -> tuple[str, int]:
        """Return the path and line by which the change takes a premise away."""
        after = self._trees.after
        if reason == REPLACED:
            newer = (*self._after.lineage.superseded_by.get(root, ()), *heads)
            records = (after.get(id_) for id_ in newer)
            record = next((r for r in records if r and self._trees.is_touched(r)), None)
            if record is None:
                return "", 0
            return record.path, find_line(self._trees.read_text(record), root, "supersedes")
        record = after.get(root)
        if record is None:
            old = self._trees.before.get(root)
            return ("", 0) if old is None else (old.path, 0)
        text, key = "", "valid_through" if reason == ENDED else "status"
        if reason == BROKEN:
            broken = self._trees.drift_after(record)
            files = () if broken is None else broken.files
            text = next((file.path for file in files if file.level == BROKEN_LEVEL), "")
            key = "files"
        return record.path, find_line(self._trees.read_text(record), text, key)

    # What the change lacks

    @cached_property
    def _paths_of_change(self) -> Mapping[str, str]:
        """The blobs of the memories that the change has by itself, by path."""
        change, directory = self._trees.change, self._trees.after.location.directory
        if not change.is_behind:
            return self._trees.after.blobs
        return change.repository.git.blobs_below(change.head, directory)

    def _needs_target(self, changes: Iterable[PremiseChange]) -> bool:
        """Return whether the change lacks a conclusion, or what takes a premise away."""
        return self._trees.change.is_behind and any(map(self._is_lacking, changes))

    def _is_lacking(self, change: PremiseChange) -> bool:
        if any(row.on_target for row in change.conclusions):
            return True
        if not change.heads:
            record = self._trees.before.get(change.id)
            is_same = record and self._paths_of_change.get(record.path) == record.oid
            return change.on_target and (change.reason == BROKEN or not is_same)
        for head in change.heads:
            record = self._trees.after.get(head.id)
            if head.on_target and record and record.path not in self._paths_of_change:
                return True
        return False

    # What the change settles

    def _find_settled(self) -> Iterator[SettledConclusion]:
        cited = {id_ for ids in self._trees.before.premises.values() for id_ in ids}
        taken_away = [
            id_ for id_ in sorted(cited) if self._after.is_out(id_) and not self._before.is_out(id_)
        ]
        above = self._before.list_above(taken_away)
        reached = {*taken_away, *above}
        own = [
            id_
            for id_ in taken_away
            if self._before.is_listed(id_) and reached & {*self._before.list_premises(id_)}
        ]
        concerned = {*above, *own, *self._before.all, *self._find_accepting()}
        settled = [*filter(self._is_settled, sorted(concerned))]
        for id_ in settled[:MAX_SETTLED]:
            yield SettledConclusion(id_, self._find_title(id_))

    def _find_accepting(self) -> Iterator[str]:
        """Yield the memories of the change that accept what they did not accept before."""
        after = self._trees.after
        for record in after.with_ids(after.find_kinds(lambda kind: bool(kind.fields.get(SETTLED)))):
            old = self._trees.before.get(record.id)
            accepted = () if old is None else old.memory.items(SETTLED)
            is_own = self._trees.is_touched(record)
            if is_own and not set(accepted).issuperset(record.memory.items(SETTLED)):
                yield record.id

    def _is_settled(self, id_: str) -> bool:
        """Return whether nothing is left to ask about a conclusion that is not just put aside."""
        record = self._trees.after.get(id_)
        if record is None or record.memory.status == ARCHIVED:
            return False
        return not self._after.is_listed(id_) or not self._after.find((id_,))

    # Where ids are named

    def _with_mentions(self, changes: list[PremiseChange]) -> list[PremiseChange]:
        """Add the places that name a premise, or a conclusion that rests on it."""
        shorten = self._trees.after.short_ids.shorten
        ids_by_change = [
            [change.id, *(row.id for row in change.conclusions if not row.was_unsettled)]
            for change in changes
        ]
        ids = [*dict.fromkeys(id_ for ids in ids_by_change for id_ in ids)][:MAX_IDS]
        mentions: dict[str, list[Mention]] = {}
        for mention in (*self._find_digests(ids), *self._find_lines(ids, shorten)):
            mentions.setdefault(mention.id, []).append(mention)
        return [
            change.replace(
                mentions=tuple([m for id_ in own for m in mentions.get(id_, ())][:MAX_MENTIONS])
            )
            for change, own in zip(changes, ids_by_change, strict=True)
        ]

    def _find_digests(self, ids: Iterable[str]) -> Iterator[Mention]:
        wanted = set(ids)
        for record in find_digests_in_use(self._trees.after) if wanted else ():
            for id_ in record.memory.items("derived_from"):
                if id_ in wanted:
                    command = f"memtool digest {record.memory.category}"
                    yield Mention(id_, record.path, 0, is_rule=False, command=command)

    def _find_lines(self, ids: Iterable[str], shorten: Callable[[str], str]) -> Iterator[Mention]:
        """Yield the lines of files that name ids, whole or short."""
        id_by_word = {word: id_ for id_ in ids for word in (id_, shorten(id_))}
        change, directory = self._trees.change, self._trees.after.location.directory
        git = change.repository.git
        try:
            places = find_words(git, id_by_word, change.new, directory)
            if change.is_behind:  # what the change did not touch is as the target has it
                places = [place for place in places if place.path in change.paths]
                places += [
                    place
                    for place in find_words(git, id_by_word, change.target, directory)
                    if place.path not in change.paths
                ]
        except MemtoolError as error:
            self._notes.append(f"the files were not searched for ids: {error}")
            return
        for place in sorted(places, key=lambda place: (place.path, place.line)):
            id_ = id_by_word[place.word]
            yield Mention(id_, place.path, place.line, is_rule_file(place.path), "")


def _order_tree(
    root: str, members: Mapping[str, Cause], is_listed: Callable[[str], bool]
) -> list[tuple[str, str, int]]:
    """Return id, parent and depth of the listed members, each below what it rests on."""
    children: dict[str, list[str]] = {}
    for id_ in sorted(filter(is_listed, members)):
        parent = id_
        while not members[parent].is_direct:
            parent = members[parent].via
            if is_listed(parent):
                break
        else:
            parent = root
        children.setdefault(parent, []).append(id_)
    ordered: list[tuple[str, str, int]] = []
    todo = [(id_, root, 1) for id_ in reversed(children.get(root, ()))]
    while todo:
        id_, parent, depth = todo.pop()
        ordered.append((id_, parent, depth))
        todo += [(above, id_, depth + 1) for above in reversed(children.get(id_, ()))]
    return ordered


def find_line(data: bytes, text: str, key: str = "") -> int:
    """Return the first line of a memory's header that has a text, from that of the key on.

    That of the key if none has the text, else 1.
    """
    lines = data.decode(errors="replace").split("\n")
    end = next((at for at, line in enumerate(lines) if at and line.rstrip() == "---"), len(lines))
    start = next((at for at in range(end) if key and lines[at].startswith(f"{key}:")), 0)
    first = next((at for at in range(start, end) if text and text in lines[at]), start)
    return first + 1


def is_rule_file(path: str) -> bool:
    """Return whether agents read a file as rules: by its name, or by its hidden folder."""
    folder, _slash, name = path.rpartition("/")
    is_hidden = folder.startswith(".") and name.endswith(".md")
    is_rules = any(fnmatchcase(name, pattern) for pattern in RULE_FILES)
    return name in INSTRUCTION_FILES or is_rules or is_hidden
