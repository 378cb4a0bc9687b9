"""Aliases: words that mean the same in a search.

A table of common ones, and `aliases.toml` of the memory directory, in which `word = ["other"]`
adds one or replaces the row of the table, and `word = []` takes that row away. An alias works both
ways: where `db` stands for `database`, a question about a database also finds `db`.
"""

from __future__ import annotations

from memtool.errors import MemtoolError
from memtool.search import terms
from memtool.store.config import read_toml

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

ALIASES_NAME = "aliases.toml"
WEIGHT = 0.5
"""What a term of an alias weighs beside 1 for a word of the question."""
MOST_WORDS = 1_000
MOST_LENGTH = 100

Aliases = dict[str, tuple[str, ...]]

DEFAULTS: Aliases = {
    "api": ("endpoint",),
    "auth": ("authentication", "authorization", "login"),
    "ci": ("pipeline", "continuous integration"),
    "config": ("configuration", "settings"),
    "cron": ("scheduled job",),
    "db": ("database",),
    "deps": ("dependencies",),
    "dev": ("development",),
    "env": ("environment",),
    "i18n": ("internationalization", "translation"),
    "js": ("javascript",),
    "k8s": ("kubernetes",),
    "lint": ("linter",),
    "perf": ("performance",),
    "pg": ("postgres", "postgresql"),
    "pr": ("pull request", "merge request"),
    "prod": ("production",),
    "py": ("python",),
    "regex": ("regular expression",),
    "repo": ("repository",),
    "ts": ("typescript",),
    "tz": ("timezone",),
    "ui": ("user interface", "frontend"),
}
"""What holds where `aliases.toml` says nothing else."""


def parse(data: bytes | None, path: str) -> Aliases:
    """Return the defaults with what a file says; None is no file.

    Raises:
        MemtoolError: the file is not TOML, or a row is not a list of words.
    """
    return DEFAULTS if data is None else merged(written(data, path))


def merged(own: Mapping[str, tuple[str, ...]]) -> Aliases:
    """Return the defaults with the rows of a file in their place, sorted by word."""
    both = DEFAULTS | dict(own)
    return {word: both[word] for word in sorted(both) if both[word]}


def written(data: bytes, path: str) -> Aliases:
    """Return just what the file says. Raises MemtoolError as `parse` does."""
    found: Aliases = {}
    for word, row in read_toml(data, path).items():
        others = [row] if isinstance(row, str) else row
        if not isinstance(others, list) or not all(isinstance(other, str) for other in others):
            raise _refusal(path, word, 'must be a list of words, such as ["authentication"]')
        found[key(word, path)] = tuple(key(other, path) for other in others)
    if len(found) > MOST_WORDS:
        raise _refusal(path, "", f"has {len(found):,} words, {MOST_WORDS:,} are allowed")
    return found


def key(text: str, path: str = "") -> str:
    """Return a word or phrase as aliases are compared: lower case, single spaces.

    Raises:
        MemtoolError: there is no word in it, or it is too long.
    """
    plain = " ".join(text.lower().split())
    if not terms.terms(plain) or len(plain) > MOST_LENGTH or not plain.isprintable():
        raise _refusal(path, repr(text), f"must hold a word, in at most {MOST_LENGTH} characters")
    return plain


def expand(weights: Mapping[str, float], aliases: Aliases) -> dict[str, float]:
    """Return the terms of a question with those of its aliases, at half the weight.

    `weights` is what `terms.query_terms` gives; a term that is already there keeps its weight. A
    phrase is called for where all of its words are in the question.
    """
    found = dict(weights)
    begins = frozenset(term[0] for term in weights)
    for word in sorted(aliases):
        for other in aliases[word]:
            for said, meant in ((word, other), (other, word)):
                # No stem begins otherwise than its word: most rows need no closer look.
                if said[0] in begins or not said[0].isalnum() or not said.isascii():
                    _add(found, weights, said, meant)
    return found


def _add(found: dict[str, float], weights: Mapping[str, float], said: str, meant: str) -> None:
    called = [weights.get(term, 0.0) for term in terms.terms(said)]
    weight = min(called, default=0.0) * WEIGHT
    if weight:
        for term, share in terms.query_terms(meant).items():
            if term not in weights:
                found[term] = max(found.get(term, 0.0), weight * share)


def _refusal(path: str, word: str, what: str) -> MemtoolError:
    where = " ".join(filter(None, (f"{path}:" if path else "an alias", word)))
    hint = f"edit {path}" if path else "memtool alias add WORD EXPANSION…"
    return MemtoolError(f"{where} {what}", hint=hint, code="bad-alias")
