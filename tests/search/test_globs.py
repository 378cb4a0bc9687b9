"""Tests of path globs."""

from __future__ import annotations

import pytest

from memtool.search.filters import governs, matches, name_matches

MATCHES = [
    ("src/a.py", "src/a.py", True),
    ("src/a.py", "src/b.py", False),
    ("src/*.py", "src/a.py", True),
    ("src/*.py", "src/deep/a.py", False),
    ("src/**/*.py", "src/a.py", True),
    ("src/**/*.py", "src/deep/er/a.py", True),
    ("**/a.py", "a.py", True),
    ("**", "any/thing", True),
    ("s?c/a.py", "src/a.py", True),
    ("app/[id]/page.tsx", "app/[id]/page.tsx", True),
    ("app/[id]/page.tsx", "app/i/page.tsx", False),
    ("a/**/b/**/c", "a/x/b/y/z/c", True),
    ("a/**/b/**/c", "a/x/y/z/c", False),
    ("", "a", False),
]


@pytest.mark.parametrize(("pattern", "path", "expected"), MATCHES)
def test_a_glob_matches_whole_paths(pattern: str, path: str, expected: object) -> None:
    """Stars stay inside a name, double stars cross directories, brackets are themselves."""
    assert matches(pattern, path) is expected


def test_a_directory_governs_what_lies_in_it() -> None:
    """A memory about a directory is about its files, but not about its name's extensions."""
    assert governs("src/auth/", "src/auth/login.py")
    assert governs("src/auth", "src/auth/deep/login.py")
    assert not governs("src/auth", "src/authority.py")


def test_many_stars_take_no_exponential_time() -> None:
    """A hostile glob costs a product of lengths at worst."""
    assert not name_matches("*a" * 100 + "b", "a" * 2_000)
    assert not matches("/".join(["**", "a"] * 50) + "/b", "/".join("a" * 400))
