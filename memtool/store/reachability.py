"""Which commits that somebody names are here, and lead to what is checked out or trusted."""

from __future__ import annotations

from memtool.store.git import GitError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from memtool.store.repository import Repository

REACHED, UNREACHABLE, MISSING, UNKNOWN = "ok", "unreachable", "missing", "unknown"


def commit_states(
    repository: Repository, named: Iterable[str], tips: Iterable[str]
) -> dict[str, tuple[str, str]]:
    """Return status and full id of commits, by the maybe shortened ids that name them.

    `ok` are those that lead to one of the `tips`: a commit that is merely here, as a rebase leaves
    it behind, is in no other clone. `unknown` is what a shallow or partial clone need not hold,
    and what several commits begin with. Two processes, however many there are.
    """
    ends = [tip for tip in tips if tip]
    is_whole = not repository.shallow_commits() and not repository.is_partial
    absent = MISSING if is_whole else UNKNOWN
    try:
        full = full_ids(repository, named)
    except GitError:  # what a partial clone does not hold
        return dict.fromkeys(named, (UNKNOWN, ""))
    here = sorted({id_ for id_ in full.values() if id_ not in ("", "ambiguous")})
    lost: frozenset[str] = frozenset()
    if here:
        asked = "".join(f"{line}\n" for line in [*here, *(f"^{end}" for end in ends)])
        answer = repository.git.run("rev-list", "--stdin", stdin=asked.encode())
        lost = frozenset(answer.decode().split()).intersection(here)
    found = {}
    for name, id_ in full.items():
        status = UNREACHABLE if id_ in lost else REACHED
        found[name] = (status, id_)
        if id_ in ("", "ambiguous"):
            found[name] = (UNKNOWN if id_ else absent, "")
    return found


def full_ids(repository: Repository, named: Iterable[str]) -> dict[str, str]:
    """Return the full ids of shortened ones: empty for none, `ambiguous` for several."""
    wanted = sorted(set(named))
    if not wanted:
        return {}
    answer = repository.git.run(
        "cat-file",
        "--batch-check=%(objectname)",
        stdin="".join(f"{name}^{{commit}}\n" for name in wanted).encode(),
    )
    found = {}
    for name, row in zip(wanted, answer.decode().splitlines(), strict=True):
        if row.endswith(" ambiguous"):
            found[name] = "ambiguous"
        else:  # a branch may have a hexadecimal name, and is not what was meant
            found[name] = row if row.startswith(name) and " " not in row else ""
    return found
