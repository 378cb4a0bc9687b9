"""Adoption: what `memtool init` can set up in a repository that has a history.

Features offer it: stores of knowledge to import, hooks of git, agents. The user takes all or some
of it, and what belongs to the tree becomes one commit.
"""

from __future__ import annotations

from memtool.errors import MemtoolError
from memtool.store.commits import commit_files
from memtool.store.context import Context
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence


class Adopted(Value):
    """What was set up: `paths` of the tree for the commit, and lines that tell it to the user."""

    paths: tuple[str, ...] = ()
    lines: tuple[str, ...] = ()


class Offer(Value):
    """Something that can be set up.

    `name` is what `--only` calls it, `what` its line in the plan, and `command` sets it up later.
    `apply` does so now; None if that is left to the user. It gets a context that knows what was
    written before.
    """

    name: str
    what: str
    command: str
    apply: Callable[[Context], Adopted] | None = None


class Change(Value):
    """What has changed since it was set up, and the command that brings it here."""

    what: str
    command: str


def choose_offers(offers: Sequence[Offer], names: Sequence[str]) -> list[Offer]:
    """Return the offers that can be set up and have one of the names; all for no names.

    Raises:
        MemtoolError: a name is none of an offer, or all are empty.
    """
    possible = [offer for offer in offers if offer.apply is not None]
    wanted = [name.strip() for text in names for name in text.split(",") if name.strip()]
    if names and not wanted:
        raise MemtoolError("--only needs a name of the plan", hint="memtool init --dry-run")
    for name in wanted:
        if name not in {offer.name for offer in possible}:
            names_here = ", ".join(offer.name for offer in possible)
            raise MemtoolError(
                f"cannot set up {name!r}: it was not found here",
                hint=f"--only takes one of {names_here}" if names_here else "memtool init",
            )
    return [offer for offer in possible if not wanted or offer.name in wanted]


def apply_offers(context: Context, offers: Iterable[Offer]) -> Adopted:
    """Set up the offers one after the other; what fails is told, and the others go on."""
    paths: list[str] = []
    lines: list[str] = []
    for offer in offers:
        assert offer.apply is not None
        current = Context(context.repository, context.caller.env, context.caller.cwd)
        try:
            adopted = offer.apply(current)
        except MemtoolError as error:
            lines.append(f"{offer.name}: {error.message}; try {offer.command}")
            continue
        finally:
            context.notes += [note for note in current.notes if note not in context.notes]
        paths += adopted.paths
        lines += adopted.lines
    return Adopted(tuple(dict.fromkeys(paths)), tuple(lines))


def list_dirty(context: Context) -> frozenset[str]:
    """Return the tracked files with uncommitted changes, which are the user's to commit."""
    status = context.repository.git.status()
    return frozenset(path for letters, path in status if letters != "??")


def commit_adoption(context: Context, paths: Sequence[str], lines: Sequence[str]) -> str | None:
    """Commit what was set up in the tree, in one commit, without files that git ignores."""
    ignored = find_ignored(context, paths)
    wanted = [path for path in paths if path not in ignored]
    body = "".join(f"- {line}\n" for line in lines)
    return commit_files(context, wanted, "begin", {}, body) if wanted else None


def find_ignored(context: Context, paths: Sequence[str]) -> set[str]:
    """Return those of some paths that git ignores, as they were given."""
    request = b"".join(path.encode(errors="surrogateescape") + b"\0" for path in paths)
    plain = {"GIT_LITERAL_PATHSPECS": "0"}  # check-ignore refuses literal pathspecs
    output = context.repository.git.run(
        "check-ignore", "-z", "--stdin", stdin=request, allowed=(0, 1), env=plain
    )
    return {path.decode(errors="surrogateescape") for path in output.split(b"\0") if path}
