"""Reading one file that may be anything."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from memtool.store.files import read_regular


@pytest.mark.parametrize("size", [0, 1, 4096, 70_000])
@pytest.mark.parametrize("most", [-1, 0, 1, 4096, 70_000, 70_001])
def test_a_file_is_read_to_its_end_or_to_what_is_asked(
    tmp_path: Path, size: int, most: int
) -> None:
    """No byte is lost, and none is read past the most."""
    data = os.urandom(size)
    (tmp_path / "file").write_bytes(data)
    assert read_regular(str(tmp_path / "file"), most) == (data if most < 0 else data[:most])


def test_a_file_without_a_size_is_read() -> None:
    """What the system writes as one reads it, and calls empty, is read to its end, too."""
    place = Path("/proc/self/mounts")
    if not place.exists():
        pytest.skip("no such file here")
    assert read_regular(str(place)) == place.read_bytes()


def test_a_pipe_is_no_file(tmp_path: Path) -> None:
    """A pipe is refused at once, not waited for."""
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match=os.strerror(errno.ELOOP)) as caught:
        read_regular(str(tmp_path / "pipe"))
    assert caught.value.errno == errno.ELOOP
