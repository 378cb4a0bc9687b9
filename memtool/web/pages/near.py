"""What is near an address that leads to nothing: what memory, session or revision may be meant.

An offer is an address and its words. It leads to the same page with the wrong part replaced.
"""

from __future__ import annotations

from difflib import get_close_matches
from urllib.parse import quote, urlencode

from memtool.index import index
from memtool.memory import ids
from memtool.sessions import store

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from memtool.store.context import Context

    Pairs = Sequence[tuple[str, str]]

MOST = 8
"""Offers of a page."""
CUTOFF = 0.4
NAMES = {
    "unknown-id": ("id", "with"),
    "ambiguous-id": ("id", "with"),
    "no-session": ("id", "session"),
    "unknown-revision": ("at", "old", "new", "since", "range"),
}
"""The parts of an address, by the code of a refusal, that may be what is wrong."""
REFS = (
    "--sort=-committerdate",
    "--format=%(refname:short)",
    "refs/heads",
    "refs/remotes",
    "refs/tags",
)


def offers(
    context: Context, code: str, pattern: str, parts: Mapping[str, str], pairs: Pairs
) -> list[tuple[str, str]]:
    """Return addresses with words to show for a refusal of a code, the most likely meant first.

    `pattern` is the path of the page with `{id}` or the like in it, `parts` are their values, and
    `pairs` follow the `?`.

    Raises:
        MemtoolError: it cannot be looked up, as in a repository that is gone.
    """
    given = [(name, value) for name, value in (*parts.items(), *pairs) if name in NAMES[code]]
    found = [
        (_address(pattern, parts, pairs, name, other), other)
        for name, value in given
        for other in _near(context, code, name, value)
    ]
    return list(dict.fromkeys(found))[:MOST]


def bare(pattern: str, parts: Mapping[str, str], pairs: Pairs) -> list[tuple[str, str]]:
    """Return the page without what follows the `?`, nothing where nothing does."""
    return [(_address(pattern, parts, ()), "this page without a question")] if pairs else []


def _near(context: Context, code: str, name: str, value: str) -> list[str]:
    """Return what may be meant by a value that nothing is called; nothing where something is."""
    if code in ("unknown-id", "ambiguous-id"):
        known = index.open(context).ids
        if value in known:
            return []
        return (ids.meant(value, known) or ids.nearest(value, [*known], MOST))[:MOST]
    if code == "no-session":
        known = store.opened(context).ids()
        return [] if value in known else _closest(value, known)
    refs = ["HEAD", *context.repository.git.line("for-each-ref", *REFS).splitlines()]
    if name != "range":
        return _closest(value, refs)
    old, dots, new = value.partition("..")
    if not dots:
        return [f"{ref}..HEAD" for ref in _closest(value, refs) if ref != "HEAD"]
    known = [ref for ref in refs if ref in (old, new)]
    olds, news = ([side] if side in known else _closest(side, refs) for side in (old, new))
    return [f"{one}..{other}" for one in olds for other in news if one != other][:MOST]


def _closest(value: str, known: Iterable[str]) -> list[str]:
    """Return what is spelled most alike, else the first ones."""
    names = list(known)
    return get_close_matches(value, names, MOST, CUTOFF) or names[:MOST]


def _address(
    pattern: str, parts: Mapping[str, str], pairs: Pairs, name: str = "", value: str = ""
) -> str:
    """Return the address of a page, with one part replaced."""
    path = pattern
    for part, text in parts.items():
        chosen = value if part == name else text
        path = path.replace(f"{{{part}}}", quote(chosen, safe=""))
    kept = [(key, value if key == name else text) for key, text in pairs]
    return f"{path}?{urlencode(kept)}" if kept else path
