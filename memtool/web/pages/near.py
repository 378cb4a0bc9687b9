"""Suggestions for an address that leads nowhere: a similar memory, session or revision.

An offer is an address and its words. It leads to the same page with the wrong part replaced.
"""

from __future__ import annotations

from difflib import get_close_matches
from urllib.parse import quote, urlencode

from memtool.index import index
from memtool.memory import ids, short_ids
from memtool.sessions import store

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from memtool.store.context import Context

    Pairs = Sequence[tuple[str, str]]

MAX_OFFERS = 8
"""Offers of a page."""
CUTOFF = 0.4
NAMES = {
    "unknown-id": ("id", "with"),
    "ambiguous-id": ("id", "with"),
    "no-session": ("id", "session"),
    "unknown-revision": ("at", "old", "new", "since", "range"),
}
"""The parts of an address that may be wrong, by the code of a refusal."""
REFS = (
    "--sort=-committerdate",
    "--format=%(refname:short)",
    "refs/heads",
    "refs/remotes",
    "refs/tags",
)


def build_offers(
    context: Context, code: str, pattern: str, parts: Mapping[str, str], pairs: Pairs
) -> list[tuple[str, str]]:
    """Return addresses with words to show for a refusal of a code, the most likely meant first.

    `pattern` is the path of the page with `{id}` or the like in it, `parts` are their values, and
    `pairs` follow the `?`.

    Raises:
        MemtoolError: it cannot be looked up, as in a repository that is gone.
    """
    named = [(name, value) for name, value in (*parts.items(), *pairs) if name in NAMES[code]]
    guesses = [
        (_build_address(pattern, parts, pairs, name, other), other)
        for name, value in named
        for other in _find_near(context, code, name, value)
    ]
    return list(dict.fromkeys(guesses))[:MAX_OFFERS]


def without_query(pattern: str, parts: Mapping[str, str], pairs: Pairs) -> list[tuple[str, str]]:
    """Return the page without its query string; nothing if there is none."""
    return [(_build_address(pattern, parts, ()), "this page without a question")] if pairs else []


def _find_near(context: Context, code: str, name: str, value: str) -> list[str]:
    """Return suggestions for a value that names nothing; none if it does."""
    if code in ("unknown-id", "ambiguous-id"):
        known_ids = index.open(context).ids
        if value in known_ids:
            return []
        return (
            short_ids.find_meant(value, known_ids)
            or ids.find_nearest(value, [*known_ids], MAX_OFFERS)
        )[:MAX_OFFERS]
    if code == "no-session":
        known_ids = store.open_sessions(context).ids()
        return [] if value in known_ids else _find_closest(value, known_ids)
    refs = ["HEAD", *context.repository.git.line("for-each-ref", *REFS).splitlines()]
    if name != "range":
        return _find_closest(value, refs)
    old, dots, new = value.partition("..")
    if not dots:
        return [f"{ref}..HEAD" for ref in _find_closest(value, refs) if ref != "HEAD"]
    known_ids = [ref for ref in refs if ref in (old, new)]
    olds, news = ([side] if side in known_ids else _find_closest(side, refs) for side in (old, new))
    return [f"{old}..{other}" for old in olds for other in news if old != other][:MAX_OFFERS]


def _find_closest(value: str, values: Iterable[str]) -> list[str]:
    """Return the most similar values, else the first ones."""
    names = list(values)
    return get_close_matches(value, names, MAX_OFFERS, CUTOFF) or names[:MAX_OFFERS]


def _build_address(
    pattern: str, parts: Mapping[str, str], pairs: Pairs, name: str = "", value: str = ""
) -> str:
    """Return the address of a page, with one part replaced."""
    path = pattern
    for part, text in parts.items():
        chosen = value if part == name else text
        path = path.replace(f"{{{part}}}", quote(chosen, safe=""))
    remaining = [(key, value if key == name else text) for key, text in pairs]
    return f"{path}?{urlencode(remaining)}" if remaining else path
