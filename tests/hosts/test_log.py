"""The log of the hooks: small, private, and never in the way."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from memtool.hosts import log


def test_an_entry_is_one_paragraph(tmp_path: Path) -> None:
    """Further lines of an entry are indented, so that each entry can be told from the next."""
    log.note(str(tmp_path / "deep"), "NOW", "hook claude stop", "first\nsecond\n")
    log.note(str(tmp_path / "deep"), "NOW", "hook claude stop", "third \udcff")
    told = (tmp_path / "deep" / log.NAME).read_text()
    assert told == "NOW hook claude stop: first\n  second\nNOW hook claude stop: third \\udcff\n"
    assert (tmp_path / "deep" / log.NAME).stat().st_mode & 0o777 == 0o600


def test_the_log_stays_small(tmp_path: Path) -> None:
    """Two files of bounded size are all that is ever kept."""
    for number in range(100):
        log.note(str(tmp_path), "NOW", "hook", f"{number} " + "x" * 10_000)
    files = sorted(tmp_path.iterdir())
    assert [file.name for file in files] == [log.NAME, log.NAME + log.OLD]
    assert all(file.stat().st_size <= log.FULL_BYTES + log.MOST_BYTES for file in files)
    assert files[0].read_text().splitlines()[-1].startswith("NOW hook: 99 ")


@pytest.mark.parametrize("kind", ["link", "directory", "pipe"])
def test_only_a_real_file_is_written(tmp_path: Path, kind: str) -> None:
    """Whatever stands in its place, no other file is written, and nobody waits."""
    place, other = tmp_path / log.NAME, tmp_path / "other"
    other.write_text("")
    if kind == "link":
        place.symlink_to(other)
    elif kind == "directory":
        place.mkdir()
    else:
        os.mkfifo(place)
    log.note(str(tmp_path), "NOW", "hook", "failed")
    assert other.read_text() == ""


@pytest.mark.parametrize(
    ("given", "kept"),
    [("", {"error"}), ("error", {"error"}), ("off", set()), ("all", {"error", "all"}),
     ("loud", {"error"})],
)  # fmt: skip
def test_the_variable_says_what_is_kept(given: str, kept: set[str]) -> None:
    """Errors are kept unless somebody says off; what is not known means nothing."""
    assert {level for level in ("error", "all") if log.is_kept(level, given)} == kept
