"""`memtool review`: whether a change mentions the decisions that govern its files."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from urllib.parse import unquote

from memtool.errors import MemtoolError
from memtool.index import index
from memtool.memory import lifecycle
from memtool.memory.memory import Memory, links
from memtool.memory.schema import parse_source
from memtool.memory.visibility import is_alive
from memtool.redaction.mask import Mask
from memtool.search import picks
from memtool.search.scope import drift_in
from memtool.store import config
from memtool.store.context import Context
from memtool.store.files import governs
from memtool.store.git import GitError
from memtool.store.history import UPHOLDS, upholding
from memtool.store.provenance import SHORT
from memtool.store.tree import Record, Tree
from memtool.value import Value, plural

REFERRING = ("related_to", "resolves", "derived_from", "parent", "blocked_by")
"""Keys by which a new memory refers to one that stays."""
STATES = ("unmentioned", "superseded", "upheld", "referenced")


class Governor(Value):
    """A memory that governs a touched file. `by` says how it names it: files, source or link.

    `state` is one of `STATES`; `reason` is the id of the commit or memory that makes it so, or
    the status that it has now, empty for an unmentioned one. `due` says that somebody should look
    at the memory itself again, since its category's time is over; it holds until then. `breaks`
    says what of its files the change takes away, empty for nothing.
    """

    id: str
    title: str
    path: str
    by: str
    state: str
    reason: str
    due: bool = False
    breaks: str = ""


class Rule(Value):
    """A memory that governs a file. `by` says how it names it: `files`, `source` or `link`."""

    record: Record
    by: str


class ReviewedFile(Value):
    """A file that the change touches; `old_path` differs from `path` where it was renamed."""

    path: str
    old_path: str
    memories: tuple[Governor, ...]


class Review(Value):
    """What governs a change. `old` and `new` are commit ids; `touched` counts all its files.

    `files` are those that a decision governs, sorted by path; `unmentioned` counts decisions.
    """

    json_names = (("old", "from"), ("new", "to"))

    old: str
    new: str
    policy: str
    touched: int
    files: tuple[ReviewedFile, ...]
    unmentioned: int

    @property
    def exit_code(self) -> int:
        """1 where the policy is to fail and a decision is not mentioned."""
        return int(self.policy == "fail" and self.unmentioned > 0)


def review(context: Context, range: str) -> Review:
    """Show which decisions and warnings govern the files of a change, and if it mentions them.

    Compared is what B changed since it parted from A, as in a pull request of B into A. A decision
    governs the files that it names in files, in its sources, or with a link of its body. It is
    upheld by a commit with the trailer Upholds: ID, superseded or referenced by a memory that the
    change adds, and else unmentioned.

    A decision that the change breaks is named as such: a file of it is gone, or a name or cited
    lines of one are (see memtool drift).

    By the setting review.policy, taken from A, an unmentioned decision is told, or ends the
    command with 1.

    Example:
        memtool review origin/main..HEAD

    Args:
        range: A..B; an empty side is HEAD, and A alone means A..HEAD
    """
    target, base, new = _ends(context, range)
    files = dict(_touched(context, base, new))
    governing = index.open_catalog(context, target)
    context.note_problems(governing)
    categories = context.settings.categories
    living = [
        record
        for record in governing.records
        if picks.is_ruling(record)
        and governing.lineage.is_head(record.id)
        and is_alive(record.memory, context.clock.now, categories)
    ]
    by_file = rules(living, {path: (path, old) for path, old in files.items()})
    rows = {rule.record.id for those in by_file.values() for rule in those}
    states = _states(context, governing, base, new, rows) if rows else {}
    broken = _broken(context, base, new, rows) if rows else {}
    touched = tuple(
        ReviewedFile(
            path,
            files[path],
            tuple(_governor(rule, states, broken, context) for rule in by_file[path]),
        )
        for path in sorted(files)
        if by_file[path]
    )
    return Review(
        old=base,
        new=new,
        policy=_policy(context, target),
        touched=len(files),
        files=touched,
        unmentioned=sum(states[id_][0] == STATES[0] for id_ in rows),
    )


def render(review: Review) -> str:
    """Return each decision with its state and the files that it governs, unmentioned ones first."""
    files: dict[str, list[str]] = {}
    governors: dict[str, Governor] = {}
    for file in review.files:
        for memory in file.memories:
            governors[memory.id] = memory
            renamed = f" (was {file.old_path})" if file.old_path != file.path else ""
            files.setdefault(memory.id, []).append(f"  {file.path}{renamed}, by {memory.by}")
    ends = f"{review.old[:SHORT]}..{review.new[:SHORT]}"
    touched = f"{plural(review.touched, 'file')} touched"
    governed = f"{len(review.files):,} of them" if review.files else "none"
    count = (
        "a decision or warning"
        if len(governors) < 2
        else f"{len(governors):,} decisions or warnings"
    )
    rows = [f"{ends}: {touched}, {governed} governed by {count}"]
    for id_ in sorted(governors, key=lambda id_: (STATES.index(governors[id_].state), id_)):
        memory = governors[id_]
        due = " (due for review)" if memory.due else ""
        rows += [f"{_said(memory)}: {id_}  {memory.title}{due}", *files[id_]]
        rows += [f"  BREAKS IT: {memory.breaks}"] if memory.breaks else []
    if review.unmentioned:
        first = next(id_ for id_ in sorted(governors) if governors[id_].state == STATES[0])
        rows.append(
            f"hint: a commit with the trailer {UPHOLDS}: {first} says that it still holds, "
            f"memtool supersede {first} TITLE corrects it"
        )
    return "\n".join(rows)


def _said(memory: Governor) -> str:
    if memory.state == STATES[0]:
        return memory.state.upper()
    is_commit = memory.state == "upheld"
    return f"{memory.state} by {memory.reason[:SHORT] if is_commit else memory.reason}"


def rules(
    records: Iterable[Record], files: Mapping[str, tuple[str, ...]]
) -> dict[str, tuple[Rule, ...]]:
    """Return the memories that govern files, by the key of the file; files have several paths.

    Memories are sorted by id; one that names a file in several ways is there once.
    """
    exact: dict[str, list[Rule]] = {}
    patterns: dict[str, list[Rule]] = {}
    for record in records:
        for by, name in _named_files(record):
            plain = "/".join(part for part in name.split("/") if part)
            is_glob = by == "files" and ("*" in plain or "?" in plain)
            table = patterns if is_glob else exact
            table.setdefault(plain, []).append(Rule(record, by))
    found = {}
    for file, paths in files.items():
        own = [
            rule for path in paths for above in picks.ways_up(path) for rule in exact.get(above, ())
        ]
        for pattern, those in patterns.items():
            if any(governs(pattern, path) for path in paths):
                own += those
        own.sort(key=lambda rule: (rule.record.id, rule.record.path, _WAYS.index(rule.by)))
        first = {rule.record.path: rule for rule in reversed(own)}
        found[file] = tuple(first[path] for path in sorted(first, key=lambda p: first[p].record.id))
    return found


_WAYS = ("files", "source", "link")


def _named_files(record: Record) -> Iterator[tuple[str, str]]:
    """Yield how a memory names files, and which: `files` may be globs, the others are paths."""
    for pattern in record.memory.items("files"):
        yield "files", pattern
    for text in record.memory.items("source"):
        source = parse_source(text)
        if source.kind == "file":
            yield "source", os.path.normpath(source.target)
    text = record.memory.body
    if "](" not in text and "]:" not in text:  # reading markdown costs a millisecond
        return
    for link in links(text):
        target = unquote(link.target.partition("#")[0].partition("?")[0])
        if link.kind == "url" and target and ":" not in target:
            # Renderers start at the file, people often at the top.
            for start in ("", os.path.dirname(record.path)):
                path = os.path.normpath(os.path.join(start, target.lstrip("/")))
                if path != "." and not path.startswith("../"):
                    yield "link", path


def _broken(context: Context, base: str, new: str, ids: Iterable[str]) -> dict[str, str]:
    """Return what a change takes away from the memories that it breaks, by id."""
    found: list[dict[str, str]] = []
    for commit in (base, new):
        tree = context.tree(commit)
        there = [tree[id_] for id_ in sorted(ids) if id_ in tree]
        found.append(drift_in(tree, partial(context.witness, tree)).broken(there))
    return {id_: why for id_, why in found[1].items() if id_ not in found[0]}


def _governor(
    rule: Rule, states: dict[str, tuple[str, str]], broken: Mapping[str, str], context: Context
) -> Governor:
    record = rule.record
    state, by = states[record.id]
    due = lifecycle.is_due(record.memory, context.clock.now, context.settings.categories)
    title = Mask(context.settings).line(record.memory.title)
    return Governor(
        record.id, title, record.path, rule.by, state, by, due, broken.get(record.id, "")
    )


def _ends(context: Context, range_: str) -> tuple[str, str, str]:
    """Return the commits A, where B parted from it, and B."""
    git = context.repository.git
    left, _dots, right = range_.partition("..")
    target, new = git.rev(left or "HEAD"), git.rev(right.removeprefix(".") or "HEAD")
    try:
        return target, git.line("merge-base", target, new), new
    except GitError:
        shallow = context.repository.is_shallow
        raise MemtoolError(
            f"{left or 'HEAD'} and {right or 'HEAD'} have no commit in common"
            + (" in this shallow clone" if shallow else ""),
            hint="git fetch --unshallow" if shallow else "git merge-base A B must find one",
            code="unrelated",
        ) from None


def _touched(context: Context, old: str, new: str) -> Iterator[tuple[str, str]]:
    """Yield path and old path of each file that differs, memories left out."""
    for row in context.repository.git.diff_raw("diff-tree", "-r", "-M", old, new):
        if not row.path.startswith(context.directory + "/"):
            yield row.path, row.old_path


def _policy(context: Context, commit: str) -> str:
    """Return review.policy of a commit's settings, so that a change cannot relax its own policy."""
    data = context.project.stored_file(context.project.config_path, commit) or b""
    return config.parse(data, context.project.config_path).text("review.policy")


def _states(
    context: Context, governing: Tree, base: str, new: str, ids: Iterable[str]
) -> dict[str, tuple[str, str]]:
    """Return state and reason of memories, the strongest that holds."""
    after = context.tree(new)
    known = {*governing.ids, *context.tree(base).ids}
    added = [r.memory for r in after.records if r.id not in known and r.memory.status != "deleted"]
    superseded = {old: memory.id for memory in added for old in memory.replaces}
    referenced = {id_: memory.id for memory in added for id_ in _referred(memory)}
    upheld = _upheld(context, base, new, governing, after)
    states = {}
    for id_ in ids:
        record = after.get(id_)
        status = record.memory.status if record else ""
        if id_ in superseded:
            states[id_] = ("superseded", superseded[id_])
        elif id_ in upheld:
            states[id_] = ("upheld", upheld[id_])
        elif id_ in referenced:
            states[id_] = ("referenced", referenced[id_])
        elif status and status not in picks.RULING_STATUSES:
            states[id_] = ("referenced", f"its status, {status}")
        else:
            states[id_] = (STATES[0], "")
    return states


def _referred(memory: Memory) -> Iterator[str]:
    for key in REFERRING:
        yield from memory.items(key) or filter(None, (memory.text(key),))
    for text in memory.items("source"):
        source = parse_source(text)
        if source.kind == "memory":
            yield source.target
    if "[[" in memory.body:
        yield from (link.target for link in links(memory.body) if link.kind == "memory")


def _upheld(context: Context, base: str, new: str, governing: Tree, after: Tree) -> dict[str, str]:
    """Return the memories that commits say they uphold, with the newest such commit."""
    found: dict[str, str] = {}
    for one in upholding(context.repository, f"{base}..{new}"):
        for name in one.names:
            try:
                found.setdefault(governing.find(name, by_words=False).id, one.commit)
            except MemtoolError as error:
                if name not in after:
                    context.notes.append(f"{UPHOLDS}: {name} of {one.commit[:SHORT]}: {error}")
    return found
