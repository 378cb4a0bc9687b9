"""Tests of the names of repositories, and of what the entries of the settings lead to."""

from __future__ import annotations

from pathlib import Path

import pytest

from memtool.fleet.repositories import FleetSource, find_sources, parse_name, without_password


@pytest.mark.parametrize(
    ("place", "expected"),
    [
        ("https://example.org/acme/shop.git", "acme/shop"),
        ("https://ann:pw@example.org:8443/acme/shop", "acme/shop"),
        ("git@example.org:acme/shop.git", "acme/shop"),
        ("ssh://git@example.org/deep/acme/shop.git/", "acme/shop"),
        ("example.org:shop", "local/shop"),
        ("https://example.org/shop.git", "local/shop"),
        ("/home/ann/src/acme/shop", "acme/shop"),
        ("/home/ann/src/shop/.git", "src/shop"),
        ("file:///srv/git/acme/shop.git", "acme/shop"),
        ("https://example.org/a\x1bcme/s hop.git", "acme/s-hop"),
        ("https://example.org/", "local/unnamed"),
    ],
)
def test_a_repository_is_named_by_the_end_of_its_path(place: str, expected: str) -> None:
    """The last two parts, each one printable word."""
    assert parse_name(place) == expected


def test_entries_lead_to_folders_and_remotes(tmp_path: Path) -> None:
    """A glob gives the repositories among what it matches, and nothing comes twice."""
    for name in ("src/a/.git", "src/b", "src/c/.git"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "src/[e]/.git").mkdir(parents=True)
    bare = tmp_path / "src/d.git"
    for name in ("HEAD", "objects", "refs"):
        (bare / name).mkdir(parents=True)
    sources = find_sources(
        [
            "~/src/*",
            f"{tmp_path}/src/a/",
            "git@example.org:a/b",
            "https://x:y@e.org/a/b",
            "~/src/[e]",
            "https://e.org/\0",
        ],
        str(tmp_path),
    )
    assert sources == [
        *(
            FleetSource(f"{tmp_path}/src/{n}", f"{tmp_path}/src/{n}")
            for n in ("[e]", "a", "c", "d.git")
        ),
        FleetSource("git@example.org:a/b", remote="git@example.org:a/b"),
        FleetSource("https://e.org/a/b", remote="https://x:y@e.org/a/b"),
        FleetSource("https://e.org/\0", problem="no path or remote holds a NUL"),
    ]


@pytest.mark.parametrize(
    ("remote", "expected"),
    [
        ("https://ann:pw@example.org/a/b", "https://example.org/a/b"),
        ("https://to@ken@example.org/a/b", "https://example.org/a/b"),
        ("git@example.org:a/b", "git@example.org:a/b"),
        ("/a/b@c/d", "/a/b@c/d"),
    ],
)
def test_a_password_is_left_out(remote: str, expected: str) -> None:
    """User and password in a URL are never shown."""
    assert without_password(remote) == expected
