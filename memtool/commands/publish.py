"""`memtool publish`: the trusted memories of a repository into the shared index of a fleet."""

from __future__ import annotations

from memtool.errors import MemtoolError
from memtool.fleet import opensearch
from memtool.fleet import publish as protocol
from memtool.fleet.backend import URL_VARIABLE, FleetUnavailable, settings_of
from memtool.fleet.opensearch import FleetRefused
from memtool.fleet.publish import EPOCH_BITS, LATE, UNCHANGED, Published
from memtool.store.context import Context
from memtool.store.provenance import SHORT
from memtool.value import plural

WITHOUT = "memtool publish --dry-run shows what would leave"
AGAIN = (
    "run it again: what is written by now does no harm; memtool fleet init makes an index that "
    "is missing"
)
PUBLISHER = (
    "MEMTOOL_FLEET_USER and MEMTOOL_FLEET_PASSWORD, or MEMTOOL_FLEET_KEY, must be those of a "
    "publisher; memtool fleet init --dry-run prints its role"
)


def publish(context: Context, *, dry_run: bool = False) -> Published:
    """Send the trusted memories of this repository to the server of a fleet; for its CI.

    What leaves is what the remote's default branch holds, as last fetched: memories that are
    confirmed, that nothing supersedes, and that pass every check. Those with a label of privacy
    stay, and so do candidates. One that a check refuses is named, and the exit code is then 1; the
    others go. Where a newer version was published, or the same, nothing is written.

    It may run late, twice at once, or be killed: the next run makes it right. The clone must hold
    all of history, since what is newer is counted by its commits. The server is that of
    MEMTOOL_FLEET_URL or the user's fleet.url; docs/fleet.md says how to set it up.

    Example:
        memtool publish --dry-run

    Args:
        dry_run: say what would leave, and ask no server
    """
    url = settings_of(context).url
    if not (url or dry_run):
        raise MemtoolError(
            "there is no server to publish to",
            hint=f"{URL_VARIABLE}=https://search.example.org/memories; {WITHOUT}",
            code="no-fleet",
        )
    server = opensearch.server_at(url, context.caller.env) if url else None
    made = protocol.draft(context)
    if server is None or dry_run:
        return protocol.planned(made)
    try:
        return protocol.publish(context, server, made)
    except FleetUnavailable as error:
        hint = PUBLISHER if isinstance(error, FleetRefused) else AGAIN
        raise MemtoolError(
            f"not everything is published: {error}", hint=hint, code="fleet"
        ) from None


def render(done: Published) -> str:
    """Return what was kept back, a line each, what was left out, and what became of the rest."""
    rows = [f"{one.path}: {one.code} kept back: {one.reason}" for one in done.kept_back]
    counts = ", ".join(f"{count} {why}" for why, count in done.left_out.items())
    rows += [f"left out: {counts}"] if counts else []
    epoch, change = divmod(done.version, 1 << EPOCH_BITS)
    name = f"{done.repository}@{done.commit[:SHORT]}"
    what = plural(done.memories, "memory", "memories")
    place = f"change {change}" + (f" of epoch {epoch}" if epoch else "")
    beside = [
        f"{count:,} {word}"
        for count, word in ((done.deleted, "deleted"), (done.newer, "newer there already"))
        if count
    ]
    end = f"; {', '.join(beside)}" if beside else ""
    if done.dry_run:
        rows.append(f"would publish {name}: {what}, {place}")
    elif done.state == LATE:
        newer = f"{done.ahead[:SHORT]} is published, newer than {name}"
        rows.append(f"nothing is written: {newer}, {place}{end}")
    elif done.state == UNCHANGED:
        rows.append(f"nothing is written: {name} is published: {what}, {place}{end}")
    else:
        rows.append(f"published {name} to {done.index}: {what}, {place}{end}")
    return "\n".join(rows)
