"""Jobs without a person, as in CI: what would leave an agent there without memories.

A person sees that an agent knows nothing; a job goes on without it. So what is a warning elsewhere,
or nothing, is a fault in a job if it keeps an agent silent.
"""

from __future__ import annotations

from memtool.agents import BY_NAME, PROMPT, START
from memtool.hosts.diagnostics import ABSENT, BROKEN, GOOD, WARNING, CheckResult

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from memtool.store.context import Context

WHOLE_CLONE = "git fetch --unshallow; in a workflow: fetch-depth: 0"
_SILENCING = frozenset({"installed", "subdirectory", "switch"})
"""Checks that leave an agent without memories if they are not good."""


def judge(context: Context, results: Sequence[CheckResult], host: str) -> Iterator[CheckResult]:
    """Yield the results of all checks as a job must take them, then those that only a job needs.

    `host` is the agent host that the job runs, empty if any will do.
    """
    installed = {row.area for row in results if row.name == "installed" and row.state == GOOD}
    for result in results:
        is_wanted = result.area not in BY_NAME or result.area in (host, *installed)
        is_silencing = result.name in _SILENCING and result.state in (ABSENT, WARNING)
        yield result.replace(state=BROKEN) if is_wanted and is_silencing else result
    if not (host or installed):
        what = "memtool is installed for no agent"
        hint = "memtool install --all"
        yield CheckResult("agents", "installed", BROKEN, what, hint)
    for name in sorted(installed):
        if not any(row.meaning in (START, PROMPT) for row in BY_NAME[name].events):
            continue  # its hooks speak only of files that a memory governs
        runs = [row for row in results if row.area == name and row.name.startswith("works: ")]
        if runs and not any(run.shown or run.state == BROKEN for run in runs):
            what = "its hooks run, and no agent would see a memory"
            is_off = bool(context.caller.env.get("MEMTOOL_OFF"))
            hint = "unset MEMTOOL_OFF" if is_off else "memtool status"
            yield CheckResult(name, "silent", BROKEN, what, hint)
    yield from _check_clone(context)


def _check_clone(context: Context) -> Iterator[CheckResult]:
    """Warn of a clone that cannot tell what was reviewed, or what has changed since."""
    repository = context.repository
    if repository.shallow_commits():
        what = "this clone is shallow: whether code has changed since a decision is unknown"
        yield CheckResult("repository", "history", WARNING, what, WHOLE_CLONE)
    else:
        yield CheckResult("repository", "history", GOOD, "this clone has all of it")
    if repository.git.run("remote") and not context.project.has_trusted_ref:
        what = "the remote's branch is not here: nothing tells reviewed memories from proposed ones"
        yield CheckResult("repository", "reviewed", WARNING, what, WHOLE_CLONE)
