"""`memtool review`: the decisions that govern a change, and what the change takes away."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Annotated
from urllib.parse import unquote

from memtool.commands import _review_premises
from memtool.commands._layout import Layout, shorten_commit
from memtool.commands._review_premises import FAIL, WARN, PremisesPart
from memtool.errors import MemtoolError
from memtool.memory import lifecycle
from memtool.memory.memory import Memory, find_links, is_document
from memtool.memory.premises import FAULTS, REPLACED
from memtool.memory.schema import parse_source
from memtool.memory.short_ids import ShortIds
from memtool.memory.trust import SHORT_ID_DIGITS
from memtool.memory.visibility import is_alive
from memtool.redaction.mask import Mask
from memtool.reports import FORMATS, TEXT, format_report
from memtool.reports.report import ERROR, SETTLED, WARNING, Finding, Report
from memtool.search import picks
from memtool.search.change_trees import ChangeTrees
from memtool.search.features import NO_MOVES, Moves
from memtool.search.premise_changes import (
    VALUES,
    PremiseReview,
    compare_premises,
)
from memtool.store import config
from memtool.store.change import Change
from memtool.store.context import Context
from memtool.store.files import matches_or_contains
from memtool.store.git import GitError
from memtool.store.history import UpholdingCommit, list_upholding_commits
from memtool.store.messages import UPHOLDS
from memtool.store.provenance import format_trusted_ref, resolve_trusted
from memtool.store.tree import Record
from memtool.value import HEX, Value, first_few, format_count, split_batches

REFERENCE_KEYS = ("related_to", "resolves", "derived_from", "parent", "blocked_by")
"""Keys by which a new memory refers to another without replacing it."""
STATES = ("unmentioned", "superseded", "upheld", "referenced")
MAX_NAMED_FILES = 5
"""Files in the heading of those that the same memories govern."""
MAX_PATCHED_FILES = 200
"""Files of one call of git that looks for their first changed lines."""
BROKEN = "broken"
RULES = {
    BROKEN: "the change removes a file, name or lines that a memory cites",
    STATES[0]: "the change touches a file that a decision or warning governs, and neither "
    "upholds nor corrects it",
    _review_premises.UNSETTLED: "the change takes away what a memory rests on, and nobody has "
    "settled that",
}
"""The findings of a review that need action, and their meaning."""


class Governor(Value):
    """A memory that governs a touched file. `by` says how it names the file.

    - `by`: files, source or link
    - `state`: one of `STATES`
    - `reason`: id of the commit or memory that causes the state, or the memory's new status; "" if
      unmentioned
    - `due`: the memory is due for review; it still holds
    - `breaks`: what the change removes from its files, "" for nothing
    - `was`: the memory's name of the file, if it was renamed before the change, else ""
    - `pull_request`: that of the upholding commit, such as `#12`, "" if its message names none
    """

    json_optional = "pull_request"

    id: str
    title: str
    path: str
    by: str
    state: str
    reason: str
    due: bool = False
    breaks: str = ""
    was: str = ""
    pull_request: str = ""


class Rule(Value):
    """A memory that governs a file. `by` says how it names the file: `files`, `source` or `link`.

    `was` is the named path or glob, if it was renamed, else "".
    """

    record: Record
    by: str
    was: str = ""


class ReviewedFile(Value):
    """A file that the change touches; `old_path` differs from `path` if it was renamed.

    `line` is the first changed line of the new file; 0 if it has none, as in a removed file.
    """

    path: str
    old_path: str
    memories: tuple[Governor, ...]
    line: int = 0


class Review(PremiseReview):
    """The decisions that govern a change, and what the change takes away.

    `old` and `new` are commit ids; `new` is empty for what is staged. `touched` counts all files of
    the change, `files` are those that a decision governs, sorted by path, and `unmentioned` counts
    decisions.

    `target` is the commit that the change goes into, and `branch` its name. `short_ids` has the
    short forms of the ids after the change.
    """

    json_fields = (
        "old new policy touched files unmentioned "
        "target branch unsettled_policy premises unsettled vouched earlier settled needs_target"
    )
    json_names = (("old", "from"), ("new", "to"))

    old: str
    new: str
    policy: str
    touched: int
    files: tuple[ReviewedFile, ...]
    unmentioned: int
    target: str = ""
    branch: str = ""
    unsettled_policy: str = WARN
    short_ids: ShortIds | None = None
    format: str = TEXT

    @property
    def exit_code(self) -> int:
        """1 if a policy is to fail, and a decision is not mentioned or not settled."""
        is_unmentioned = self.policy == FAIL and self.unmentioned > 0
        return int(is_unmentioned or (self.unsettled_policy == FAIL and self.vouched > 0))


def review(
    context: Context,
    range: str = "",
    *,
    staged: bool = False,
    format: Annotated[str, FORMATS] = TEXT,
    from_: str = "",
) -> Review:
    """Show which decisions govern a change, and what rests on what it takes away.

        upheld          a commit has the trailer Upholds: ID
        superseded      a memory of the change replaces it
        referenced      a memory of the change names it
        not mentioned   none of these; if the setting review.policy is fail, the exit code is 1
        broken          a file, name or lines that it cites are gone
        rests on it     the change takes away what it rests on; as above, with review.unsettled

    The change is compared with the tip of A: what A has got since then counts as well.

    Example:
        memtool review origin/main..HEAD
        memtool review --staged
        memtool review --format markdown

    Args:
        range: A..B, or A for A..HEAD: changes since B left A; without it, since the default branch
        staged: what the next commit would change
        format: text, markdown, github (annotations) or sarif (code scanning)
        from_: review nothing, and format the answer of --json in this file
    """
    if sum((bool(range), staged, bool(from_))) > 1:
        raise MemtoolError(
            "a range, --staged and --from exclude each other", hint="leave out all but one of them"
        )
    if from_:
        answer = _read_review(context, from_)
    elif staged:
        head = context.repository.git.resolve("HEAD")
        answer = _review(context, Change(context.repository, head, head, ""), "HEAD")
    else:
        answer = _review(context, *_parse_range(context, range))
    return answer.replace(format=format)


def _read_review(context: Context, path: str) -> Review:
    """Read a review that --json wrote, perhaps in a workflow that anybody can change."""
    from memtool.reports.answers import read_answer, refuse_answer

    answer = read_answer(
        path, Review, (ReviewedFile, Governor, *VALUES), directory=context.caller.cwd, verb="review"
    )
    if not (HEX.issuperset(answer.old) and HEX.issuperset(answer.new)):
        raise refuse_answer(path, "review", "from and to are not commits")
    if any(memory.state not in STATES for file in answer.files for memory in file.memories):
        raise refuse_answer(path, "review", f"a state is none of {', '.join(STATES)}")
    if any(change.reason not in (REPLACED, *FAULTS) for change in answer.premises):
        raise refuse_answer(path, "review", f"a reason is none of {REPLACED}, {', '.join(FAULTS)}")
    return answer


def _review(context: Context, change: Change, branch: str) -> Review:
    trees = ChangeTrees(context, change)
    governing = trees.before
    files = {
        row.path: row.old_path
        for row in change.rows
        if not row.path.startswith(context.directory + "/")
    }
    categories = context.settings.categories
    living = [
        record
        for record in governing.records
        if picks.is_ruling(record)
        and governing.lineage.is_head(record.id)
        and is_alive(record.memory, context.clock.now, categories)
    ]
    moves = trees.drift_before.find_moves()
    by_file = find_rules(living, {path: (path, old) for path, old in files.items()}, moves)
    rows = {rule.record.id for file_rules in by_file.values() for rule in file_rules}
    states = _judge_states(context, trees, rows) if rows else {}
    broken = trees.find_breaks(sorted(rows)) if rows else {}
    governed = [path for path in sorted(files) if by_file[path]]
    lines = _find_first_lines(change, {path: files[path] for path in governed})
    touched = tuple(
        ReviewedFile(
            path,
            files[path],
            tuple(_build_governor(rule, states, broken, context) for rule in by_file[path]),
            lines.get(path, 0),
        )
        for path in governed
    )
    policy, unsettled_policy = _read_policies(context, change.target)
    premises = compare_premises(trees, context.clock.now, context.notes)
    return Review(
        **{name: getattr(premises, name) for name in PremiseReview.field_names},
        old=change.base,
        new=change.new,
        policy=policy,
        touched=len(files),
        files=touched,
        unmentioned=sum(states[id_][0] == STATES[0] for id_ in rows),
        target=change.target,
        branch=branch,
        unsettled_policy=unsettled_policy,
        short_ids=trees.after.short_ids,
    )


def render(review: Review, layout: Layout) -> str:
    """Return what the change takes away, and then the files with the memories that govern them.

    Unmentioned memories come first, and then what to do. Files that the same memories govern share
    a heading.
    """
    if review.format != TEXT:
        return format_report(_build_report(review, layout), review.format)
    ends = f"{shorten_commit(review.old)}..{shorten_commit(review.new)}"
    if not review.new:
        ends = f"staged on {shorten_commit(review.old)}"
    rows = _review_premises.format_part(_get_premises(review, layout), layout)
    if review.touched or not rows:
        rows += _format_governed(review, layout)
    rows[0] = f"{ends}: {rows[0]}"
    return "\n".join(rows)


def _get_premises(review: Review, layout: Layout) -> PremisesPart:
    """Return the part of a review that is about premises."""
    short_ids = review.short_ids
    return PremisesPart(
        review,
        review.branch,
        review.unsettled_policy,
        layout.short if short_ids is None else short_ids.shorten,
    )


def _format_governed(review: Review, layout: Layout) -> list[str]:
    """Return a line with the counts, the files with their memories, and what to do."""
    governors = {memory.id: memory for file in review.files for memory in file.memories}
    rows = [_format_counts(review)]
    for states, files in _group_files(review.files).items():
        rows += [_name_files(files), *_format_governors(states, layout)]
    unmentioned = sorted(id_ for id_ in governors if governors[id_].state == STATES[0])
    if unmentioned:
        count = len(unmentioned)
        are, them = ("1 is", "it") if count == 1 else (f"{count:,} are", "them")
        rows.append(
            f"{are} not mentioned. If your change keeps {them}, say so; if not, correct {them}:"
        )
        short_id, is_staged = layout.short(unmentioned[0]), not review.new
        rows += [f"  {command}" for command in _list_answers(short_id, is_staged=is_staged)]
    return rows


def _format_counts(review: Review) -> str:
    touched = f"{format_count(review.touched, 'file')} changed"
    if not review.files:
        if not review.touched:
            return "no file changed outside the memory directory"
        return f"{touched}, governed by no decision or warning"
    ids = {memory.id for file in review.files for memory in file.memories}
    governed = "" if len(review.files) == review.touched else f"{len(review.files):,} of them "
    return f"{touched}, {governed}governed by {format_count(len(ids), 'memory', 'memories')}"


def _list_answers(short_id: str, *, is_staged: bool) -> tuple[str, str]:
    """Return the command that upholds a memory, and the one that corrects it."""
    amend = "" if is_staged else " --amend"
    return (
        f'git commit{amend} --trailer "{UPHOLDS}: {short_id}"',
        f"memtool supersede {short_id} TITLE",
    )


def _build_report(review: Review, layout: Layout) -> Report:
    """Return the governing memories for a format of other programs, unmentioned ones first."""
    findings = [
        finding
        for file in review.files
        for memory in file.memories
        for finding in _build_findings(file, memory, review.policy, layout)
    ]
    counts = _format_counts(review)
    if review.unmentioned:
        is_single = review.unmentioned == 1
        counts += f"; {'1 is' if is_single else f'{review.unmentioned:,} are'} not mentioned"
    part = _get_premises(review, layout)
    findings += _review_premises.build_findings(part)
    unsettled = _review_premises.count_unsettled(part.review)
    return Report(
        verb="review",
        title="Decisions that govern this change",
        summary="\n".join(filter(None, (counts, unsettled))),
        rules=RULES,
        findings=tuple(sorted(findings, key=lambda row: (row.level, row.code, row.id, row.path))),
        advice="If the change keeps a decision, say so in a commit message, as `Upholds: ID`; "
        "if not, correct it with `memtool supersede ID TITLE`.",
        task_title="What rests on what this change takes away",
        tasks=tuple(_review_premises.build_tasks(part)),
        task_advice="If one still holds, so does what rests on it: "
        "`memtool confirm ID --still-holds`. If it has changed: `memtool supersede ID TITLE`. "
        "If it no longer holds: `memtool forget ID --reason TEXT`.",
        task_command=f"git merge {review.branch}" if review.needs_target else "",
        settled=tuple(part.shorten(row.id) for row in review.settled),
    )


def _build_findings(
    file: ReviewedFile, memory: Governor, policy: str, layout: Layout
) -> Iterator[Finding]:
    """Yield a finding about the state of a memory, and one about what the change breaks of it."""
    is_open = memory.state == STATES[0]
    level = SETTLED
    if is_open:
        level = ERROR if policy == "fail" else WARNING
    finding = Finding(
        code=memory.state,
        level=level,
        label="not mentioned" if is_open else f"{memory.state} by",
        message=memory.title,
        path=file.path,
        line=file.line,
        id=memory.id,
        name=layout.short(memory.id),
        by="" if is_open else _describe_state(memory, layout).partition(" by ")[2],
    )
    yield finding
    if memory.breaks:
        yield finding.replace(
            code=BROKEN,
            level=WARNING,
            label="breaks it:",
            by=layout.shorten(memory.breaks),
        )


def _group_files(
    files: Iterable[ReviewedFile],
) -> dict[tuple[Governor, ...], list[ReviewedFile]]:
    """Return the files by the memories that govern them, in the order of the first of each."""
    groups: dict[tuple[Governor, ...], list[ReviewedFile]] = {}
    for file in files:
        groups.setdefault(file.memories, []).append(file)
    return groups


def _name_files(files: Sequence[ReviewedFile]) -> str:
    names = [
        f"{file.path} (was {file.old_path})" if file.old_path != file.path else file.path
        for file in files
    ]
    return first_few(names, MAX_NAMED_FILES)


def _format_governors(memories: Iterable[Governor], layout: Layout) -> list[str]:
    """Return a row for each memory, and a line below for what the change breaks of it."""
    ordered = sorted(memories, key=lambda memory: (STATES.index(memory.state), memory.id))
    rows = [
        (
            _describe_state(memory, layout),
            layout.short(memory.id),
            memory.title,
            ", ".join(filter(None, ("due" * memory.due, f"names {memory.was}" * bool(memory.was)))),
        )
        for memory in ordered
    ]
    lines = []
    table = layout.table(rows, title=2, drop=(3,), indent="  ")
    for memory, line in zip(ordered, table, strict=True):
        lines += [line, *([f"    BREAKS IT: {memory.breaks}"] if memory.breaks else [])]
    return lines


def _describe_state(memory: Governor, layout: Layout) -> str:
    if memory.state == STATES[0]:
        return "not mentioned"
    number = f" ({memory.pull_request})" if memory.pull_request else ""
    is_commit = memory.state == "upheld"
    by = shorten_commit(memory.reason) + number if is_commit else layout.short(memory.reason)
    return f"{memory.state} by {by}"


def find_rules(
    records: Iterable[Record], files: Mapping[str, tuple[str, ...]], moves: Moves = NO_MOVES
) -> dict[str, tuple[Rule, ...]]:
    """Return the memories that govern each file, by its key in `files`; a file has several paths.

    With `moves` a memory also governs renamed files under their new paths.

    Memories are sorted by id; one that names a file in several ways is listed once.
    """
    exact: dict[str, list[Rule]] = {}
    patterns: dict[str, list[Rule]] = {}
    for record in records:
        for by, name, was in _with_moves(record, moves):
            plain = "/".join(part for part in name.split("/") if part)
            is_glob = by == "files" and ("*" in plain or "?" in plain)
            table = patterns if is_glob else exact
            table.setdefault(plain, []).append(Rule(record, by, was))
    rules_by_file = {}
    for file, paths in files.items():
        governing = [
            rule
            for path in paths
            for above in picks.find_parents(path)
            for rule in exact.get(above, ())
        ]
        for pattern, pattern_rules in patterns.items():
            if any(matches_or_contains(pattern, path) for path in paths):
                governing += pattern_rules
        governing.sort(
            key=lambda rule: (
                rule.record.id,
                rule.record.path,
                bool(rule.was),
                _NAMING_ORDER.index(rule.by),
            )
        )
        first = {rule.record.path: rule for rule in reversed(governing)}
        rules_by_file[file] = tuple(
            first[path] for path in sorted(first, key=lambda p: first[p].record.id)
        )
    return rules_by_file


_NAMING_ORDER = ("files", "source", "link")


def _with_moves(record: Record, moves: Moves) -> Iterator[tuple[str, str, str]]:
    """Yield (by, path or glob, old name) of each file of a memory; old name "" if not renamed."""
    today = {move.path: move.now for move in moves.find(record)}
    for by, name in _find_named_files(record):
        yield by, name, ""
        if (was := os.path.normpath(name)) in today:
            yield by, today[was], name


def _find_named_files(record: Record) -> Iterator[tuple[str, str]]:
    """Yield (by, name) of each file that a memory names; with `files` a name may be a glob."""
    for pattern in record.memory.items("files"):
        yield "files", pattern
    for text in record.memory.items("source"):
        source = parse_source(text)
        if source.kind == "file" and not is_document(source.target):
            yield "source", os.path.normpath(source.target)
    text = record.memory.body
    if "](" not in text and "]:" not in text:  # parsing markdown takes a millisecond
        return
    for link in find_links(text):
        target = unquote(link.target.partition("#")[0].partition("?")[0])
        if link.kind == "url" and target and ":" not in target:
            # Renderers resolve a link from its file; people often write it from the top.
            for start in ("", os.path.dirname(record.path)):
                path = os.path.normpath(os.path.join(start, target.lstrip("/")))
                if path != "." and not path.startswith("../"):
                    yield "link", path


def _build_governor(
    rule: Rule, states: dict[str, tuple[str, str, str]], broken: Mapping[str, str], context: Context
) -> Governor:
    record = rule.record
    state, by, pull_request = states[record.id]
    due = lifecycle.is_due(record.memory, context.clock.now, context.settings.categories)
    title = Mask(context.settings).line(record.memory.title)
    return Governor(
        record.id,
        title,
        record.path,
        rule.by,
        state,
        by,
        due,
        broken.get(record.id, ""),
        rule.was,
        pull_request,
    )


def _parse_range(context: Context, range_: str) -> tuple[Change, str]:
    """Return the change of a range, and the name of the branch that it goes into."""
    git = context.repository.git
    start_name, _dots, end_name = range_.partition("..")
    trusted_ref = context.project.trust_settings.text("trust.ref")
    if not range_:
        start_name = resolve_trusted(context.repository, trusted_ref)
        if not start_name:
            raise MemtoolError(
                "a review needs a range: the default branch is not here",
                hint="memtool review A..B\ngit remote set-head origin --auto",
            )
    target, new = (
        git.resolve(start_name or "HEAD"),
        git.resolve(end_name.removeprefix(".") or "HEAD"),
    )
    branch = start_name.removeprefix("refs/remotes/").removeprefix("refs/heads/") or "HEAD"
    if target.startswith(branch):
        branch = _name_target(context, target, trusted_ref)
    try:
        base = git.line("merge-base", target, new)
    except GitError:
        shallow = context.repository.is_shallow
        raise MemtoolError(
            f"{start_name or 'HEAD'} and {end_name or 'HEAD'} have no commit in common"
            + (" in this shallow clone" if shallow else ""),
            hint="git fetch --unshallow\nin CI: fetch-depth: 0"
            if shallow
            else "git log --oneline --graph --all",
            code="unrelated",
        ) from None
    return Change(context.repository, target, base, new), branch


def _name_target(context: Context, target: str, trusted_ref: str) -> str:
    """Return the name of the trusted branch if it has a commit, else the commit's first digits."""
    try:
        trusted = resolve_trusted(context.repository, trusted_ref)
        if trusted:
            context.repository.git.run("merge-base", "--is-ancestor", target, trusted)
            return format_trusted_ref(context.repository, trusted_ref)
    except MemtoolError:  # it is not part of the branch, or there is none
        pass
    return target[:SHORT_ID_DIGITS]


def _find_first_lines(change: Change, old_paths: Mapping[str, str]) -> dict[str, int]:
    """Return the first changed line of files of a change; `old_paths` are by new path."""
    lines = {}
    for batch in split_batches(old_paths.items(), max_items=MAX_PATCHED_FILES):
        patch = change.repository.git.run(
            *change.list_arguments(
                "-M",
                "--patch",
                "--unified=0",
                "--no-color",
                "--no-ext-diff",
                "--no-textconv",
                "--src-prefix=a/",
                "--dst-prefix=b/",
            ),
            "--",
            *sorted({path for pair in batch for path in pair}),
            settings={"core.quotePath": "false"},
        )
        path = None
        for row in patch.split(b"\n"):
            # A line of a file begins with `+`, `-` or a backslash, and comes after the first `@@`.
            if row.startswith(b"diff --git "):
                path = ""
            elif path == "" and row.startswith(b"+++ b/"):
                path = os.fsdecode(row[6:].removesuffix(b"\t"))
            elif path and row.startswith(b"@@ "):
                lines[path] = max(_parse_hunk_start(row), 1)
                path = None
    return lines


def _parse_hunk_start(row: bytes) -> int:
    """Return the first line of the new side of `@@ -1,2 +3,4 @@`."""
    return int(row.partition(b" +")[2].partition(b" @@")[0].partition(b",")[0])


def _read_policies(context: Context, commit: str) -> tuple[str, str]:
    """Return review.policy and review.unsettled of the target: a change cannot relax them."""
    data = context.project.read_stored_file(context.project.config_path, commit) or b""
    settings = config.parse(data, context.project.config_path)
    return settings.text("review.policy"), settings.text("review.unsettled")


def _judge_states(
    context: Context, trees: ChangeTrees, ids: Iterable[str]
) -> dict[str, tuple[str, str, str]]:
    """Return the strongest state of each memory, with its reason and pull request."""
    after = trees.after
    added_paths = {row.path for row in trees.change.rows if row.status == "A"}
    added = [
        record.memory
        for record in after.records
        if record.path in added_paths
        and record.id not in trees.before
        and record.memory.status != "deleted"
    ]
    superseded = {old: memory.id for memory in added for old in memory.replaces}
    referenced = {id_: memory.id for memory in added for id_ in _find_referenced(memory)}
    upheld = _find_upheld(context, trees)
    states = {}
    for id_ in ids:
        record = after.get(id_)
        status = record.memory.status if record else ""
        if id_ in superseded:
            states[id_] = ("superseded", superseded[id_], "")
        elif id_ in upheld:
            states[id_] = ("upheld", upheld[id_].commit, upheld[id_].pull_request)
        elif id_ in referenced:
            states[id_] = ("referenced", referenced[id_], "")
        elif status and status not in picks.RULING_STATUSES:
            states[id_] = ("referenced", f"its status, {status}", "")
        else:
            states[id_] = (STATES[0], "", "")
    return states


def _find_referenced(memory: Memory) -> Iterator[str]:
    for key in REFERENCE_KEYS:
        yield from memory.items(key) or filter(None, (memory.text(key),))
    for text in memory.items("source"):
        source = parse_source(text)
        if source.kind == "memory":
            yield source.target
    if "[[" in memory.body:
        yield from (link.target for link in find_links(memory.body) if link.kind == "memory")


def _find_upheld(context: Context, trees: ChangeTrees) -> dict[str, UpholdingCommit]:
    """Return the memories that commits uphold, by id, with the newest such commit."""
    upholdings: dict[str, UpholdingCommit] = {}
    change = trees.change
    if not change.new:
        return upholdings
    for statement in list_upholding_commits(context.repository, f"{change.base}..{change.new}"):
        for name in statement.names:
            try:
                upholdings.setdefault(trees.before.find(name, by_words=False).id, statement)
            except MemtoolError as error:
                if name not in trees.after:
                    context.notes.append(
                        f"{UPHOLDS}: {name} of {statement.commit[:SHORT_ID_DIGITS]}: {error}"
                    )
    return upholdings
