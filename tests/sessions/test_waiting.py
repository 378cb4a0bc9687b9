"""Tests of what waits."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from memtool.inject.session_seen import WAITING, waiting
from memtool.sessions import promote


def test_a_number_is_noted_until_another_one_is(tmp_path: Path) -> None:
    """Nothing noted is none."""
    (tmp_path / "sessions").mkdir()
    folder = str(tmp_path)
    assert waiting(folder) == 0
    for count in (3, 12, 0):
        promote.note_waiting(folder, count)
        assert waiting(folder) == count


@pytest.mark.parametrize("data", [b"", b"x\n", b"-1\n", b"\xb2\n"])
def test_another_hand_writes_nothing_that_counts(tmp_path: Path, data: bytes) -> None:
    """What is no small number is none."""
    (tmp_path / "sessions").mkdir()
    (tmp_path / WAITING).write_bytes(data)
    assert waiting(str(tmp_path)) == 0


def test_where_nothing_can_be_written_nothing_happens(tmp_path: Path) -> None:
    """A number that is lost is no reason to fail."""
    promote.note_waiting(str(tmp_path / "absent"), 3)
    (tmp_path / "sessions").mkdir()
    os.symlink("/dev/zero", tmp_path / WAITING)
    assert waiting(str(tmp_path)) == 0
    promote.note_waiting(str(tmp_path), 3)
    assert waiting(str(tmp_path)) == 3
