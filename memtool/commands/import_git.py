"""`memtool import git`: what commit messages state, as findings that wait for a reviewer."""

from __future__ import annotations

from memtool.commands._layout import Layout, shorten_commit
from memtool.errors import MemtoolError
from memtool.importing import history
from memtool.sessions import findings, model, store
from memtool.value import Value, format_count

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from memtool.sessions.model import Finding
    from memtool.store.context import Context

MAX_SHOWN = 20
MAX_PER_THOUSAND = 1_000
SOURCE = "git"
"""The name of the history in `memtool promote`."""


class OfferedFinding(Value):
    """A finding of a commit. `kind` is decision, revert, choice or breaking change."""

    id: str
    kind: str
    title: str
    content: str
    commit: str
    date: str
    files: tuple[str, ...]


class HistoryResult(Value):
    """The new findings, best first, and counts of what else the commits state.

    `known` were offered before, `secret` are left out because of a secret, `further` are beyond the
    limit.
    """

    json_names = (
        ("commit_count", "commits"),
        ("known_count", "known"),
        ("secret_count", "secret"),
        ("further_count", "further"),
    )

    commit_count: int
    findings: tuple[OfferedFinding, ...]
    known_count: int
    secret_count: int
    further_count: int
    dry_run: bool = False


def import_git(
    context: Context, range: str = "", *, per_thousand: int = 20, dry_run: bool = False
) -> HistoryResult:
    """Offer what commit messages state as lessons that wait for a reviewer.

    Offered:
        decisions  the trailers Decision: and Rationale:
        reverts    those that say what was wrong
        choices    a sentence that says what is deliberate, and why
        breaks     what holds after a BREAKING CHANGE:, if it says enough

    Nothing becomes a memory: memtool promote git --list shows the lessons, and a user promotes
    or dismisses each. What was offered once is never offered again. Merges, and commits that were
    reverted later, are left out.

    Example:
        memtool import git --dry-run
        memtool import git v2.0..HEAD
        memtool promote --finding f-3f2a --commit

    Args:
        range: A..B, or A for A..HEAD; default: all commits
        per_thousand: lessons for every 1,000 commits, at most
        dry_run: show what would be offered, store nothing
    """
    if not 0 < per_thousand <= MAX_PER_THOUSAND:
        raise MemtoolError(
            f"cannot import: --per-thousand is from 1 to {MAX_PER_THOUSAND:,}, not {per_thousand}",
            hint="memtool import git --per-thousand 50",
        )
    repository = context.repository
    ids = _list_commits(context, range)
    if repository.is_shallow:
        context.notes.append(
            "this clone is shallow, so older commits were not read: git fetch --unshallow"
        )
    sessions = store.open_sessions(context)
    ever = findings.read_all_ever(sessions, findings.HISTORY)
    before = findings.read_all_learned(sessions, sessions.heads()[0])
    before = before.replace(findings=tuple(ever.values()))
    done = history.find_findings(
        repository, ids, per_thousand, before, sessions.allowed, context.directory
    )
    if not dry_run and done.findings:
        findings.offer(sessions, done.findings)
    return HistoryResult(
        commit_count=done.commit_count,
        findings=tuple(map(_describe, done.findings)),
        known_count=done.known_count,
        secret_count=done.secret_count,
        further_count=done.further_count,
        dry_run=dry_run,
    )


def _list_commits(context: Context, range_: str) -> list[str]:
    """Return the commits of a range. Raises MemtoolError if there are none."""
    git = context.repository.git
    start_name, _dots, end_name = range_.partition("..")
    if end_name.startswith("."):
        raise MemtoolError(
            f"cannot import: {range_} is no range of commits",
            hint=f"memtool import git {start_name}..{end_name.lstrip('.') or 'HEAD'}",
        )
    if not git.head() and end_name in ("", "HEAD"):
        raise MemtoolError(
            "cannot import: there is no commit yet", hint="git commit", code="no-records"
        )
    start = git.resolve(start_name) if start_name else ""
    end = git.resolve(end_name or "HEAD")
    ids = history.list_commits(context.repository, start, end)
    if not ids:
        raise MemtoolError(
            f"cannot import: no commits in {range_ or 'HEAD'}",
            hint=f"memtool import git {end_name or 'HEAD'}..{start_name}"
            if start_name and history.list_commits(context.repository, end, start)
            else "memtool import git",
            code="no-records",
        )
    return ids


def _describe(finding: Finding) -> OfferedFinding:
    return OfferedFinding(
        id=finding.id,
        kind=finding.field("kind"),
        title=finding.title,
        content=finding.content,
        commit=finding.field("commit"),
        date=finding.field("said"),
        files=finding.files,
    )


def render(result: HistoryResult, layout: Layout) -> str:
    """Return each finding, then counts, then what to do with them."""
    return "\n".join(_format(result, layout))


def _format(result: HistoryResult, layout: Layout) -> Iterator[str]:
    short = model.shorten_ids([row.id for row in result.findings])
    for row in result.findings[:MAX_SHOWN]:
        label = f"{short[row.id]}  "
        margin = " " * len(label)
        for number, line in enumerate(layout.wrap(row.title, margin)):
            yield label + line.lstrip() if not number else line
        yield from layout.wrap(row.content, margin)
        yield f"{margin}{row.kind}, {shorten_commit(row.commit)}, {row.date[:10]}"
    hidden = len(result.findings) - MAX_SHOWN
    if hidden > 0:
        yield f"and {hidden:,} more: memtool promote {SOURCE} --list"
    yield from layout.wrap(_count(result))
    if result.findings and not result.dry_run:
        first = short[result.findings[0].id]
        yield from layout.wrap(
            f"Each waits for a user. To make a candidate of one: memtool promote --finding "
            f"{first}. Never again: memtool promote --dismiss {first}"
        )


def _count(result: HistoryResult) -> str:
    new = "new" if result.dry_run else "offered"
    commits = format_count(result.commit_count, "commit")
    counts = [f"{commits}: {len(result.findings):,} {new}"]
    counts += [f"{result.known_count:,} known"] * bool(result.known_count)
    counts += [f"{result.secret_count:,} left out with a secret"] * bool(result.secret_count)
    counts += [f"{result.further_count:,} beyond the limit"] * bool(result.further_count)
    return ", ".join(counts) + (" (--per-thousand offers more)" if result.further_count else "")
