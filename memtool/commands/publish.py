"""`memtool publish`: the trusted memories of a repository into the shared index of a fleet."""

from __future__ import annotations

from memtool.commands._layout import Layout
from memtool.errors import MemtoolError
from memtool.fleet import opensearch
from memtool.fleet import publish as protocol
from memtool.fleet.backend import URL_VARIABLE, FleetUnavailable, read_settings
from memtool.fleet.opensearch import FleetAccessError
from memtool.fleet.publish import EPOCH_BITS, LATE, UNCHANGED, PublishResult
from memtool.memory.trust import SHORT_ID_DIGITS
from memtool.store.context import Context
from memtool.value import format_count

DRY_RUN_HINT = "memtool publish --dry-run"
RETRY_HINT = (
    "run the command again; what was already written does no harm\n"
    "if the index is missing: memtool fleet init"
)
CREDENTIALS_HINT = (
    "set MEMTOOL_FLEET_USER and MEMTOOL_FLEET_PASSWORD, or MEMTOOL_FLEET_KEY, of a publisher\n"
    "its role: memtool fleet init --dry-run"
)


def publish(context: Context, *, dry_run: bool = False) -> PublishResult:
    """Send the trusted memories of this repository to a fleet's server; for CI.

    It sends confirmed memories on the default branch that nothing supersedes and that pass every
    check. Candidates and private memories are not sent. Exit code 1 means that a check refused one;
    the others are sent.

    It may run late, twice or be interrupted: the next run corrects it. The clone needs all of its
    history. docs/fleet.md explains how to set up the server.

    Example:
        memtool publish --dry-run

    Args:
        dry_run: list what would be sent, do not contact the server
    """
    url = read_settings(context).url
    if not (url or dry_run):
        raise MemtoolError(
            "cannot publish: no server is configured",
            hint=f"{URL_VARIABLE}=https://search.example.org/memories\n{DRY_RUN_HINT}",
            code="no-fleet",
        )
    server = opensearch.parse_server(url, context.caller.env) if url else None
    draft = protocol.build_publication(context)
    if server is None or dry_run:
        return protocol.build_dry_result(draft)
    try:
        return protocol.publish(context, server, draft)
    except FleetUnavailable as error:
        hint = CREDENTIALS_HINT if isinstance(error, FleetAccessError) else RETRY_HINT
        raise MemtoolError(
            f"not everything was published: {error}", hint=hint, code="fleet"
        ) from None


def render(done: PublishResult, _layout: Layout) -> str:
    """Return a line per refused memory, the counts of omitted ones, and the outcome."""
    rows = [
        f"{refusal.path}: {refusal.code} kept back: {refusal.reason}" for refusal in done.kept_back
    ]
    counts = ", ".join(f"{count} {why}" for why, count in done.left_out.items())
    rows += [f"left out: {counts}"] if counts else []
    epoch, change = divmod(done.version, 1 << EPOCH_BITS)
    name = f"{done.repository}@{done.commit[:SHORT_ID_DIGITS]}"
    what = format_count(done.memories, "memory", "memories")
    change_name = f"change {change}" + (f" of epoch {epoch}" if epoch else "")
    server_counts = [
        f"{count:,} {word}"
        for count, word in ((done.deleted, "deleted"), (done.newer, "newer there already"))
        if count
    ]
    end = f"; {', '.join(server_counts)}" if server_counts else ""
    if done.dry_run:
        rows.append(f"would publish {name}: {what}, {change_name}")
    elif done.state == LATE:
        newer = f"{done.ahead[:SHORT_ID_DIGITS]} is published, newer than {name}"
        rows.append(f"nothing is written: {newer}, {change_name}{end}")
    elif done.state == UNCHANGED:
        rows.append(f"nothing is written: {name} is published: {what}, {change_name}{end}")
    else:
        rows.append(f"published {name} to {done.index}: {what}, {change_name}{end}")
    return "\n".join(rows)
