"""Plans are carried out as a whole, or not at all."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from memtool.errors import MemtoolError
from memtool.hosts.install import FileStep, carry_out


def state(root: Path) -> dict[str, tuple[bytes, int]]:
    return {
        str(path.relative_to(root)): (
            path.read_bytes() if path.is_file() else b"",
            stat.S_IMODE(path.stat().st_mode),
        )
        for path in sorted(root.rglob("*"))
    }


def steps(root: Path) -> list[FileStep]:
    """One step of each kind, in an order that could be carried out."""
    (root / "hook").write_text("theirs\n")
    (root / "hook").chmod(0o700)
    (root / "old").write_text("old\n")
    (root / "settings").write_text("{}")
    (root / "settings").chmod(0o600)
    (root / "deep" / "er").mkdir(parents=True)
    (root / "deep" / "er" / "ours").write_text("ours\n")
    top = str(root)
    return [
        FileStep("rename", f"{top}/hook", f"{top}/hook.kept"),
        FileStep("write", f"{top}/hook", data=b"#!/bin/sh\n"),
        FileStep("remove", f"{top}/old"),
        FileStep("edit", f"{top}/settings", data=b'{"a": 1}', before=b"{}"),
        FileStep("edit", f"{top}/new/er/one", data=b"one\n"),
        FileStep("remove", f"{top}/deep/er/ours", target=top, before=b"ours\n"),
    ]


def test_every_kind_of_step_is_done(tmp_path: Path) -> None:
    """Settings keep their permissions, programs may be run, empty directories go."""
    carry_out(steps(tmp_path))
    assert {name: data for name, (data, _mode) in state(tmp_path).items()} == {
        "hook": b"#!/bin/sh\n",
        "hook.kept": b"theirs\n",
        "new": b"",
        "new/er": b"",
        "new/er/one": b"one\n",
        "settings": b'{"a": 1}',
    }
    assert stat.S_IMODE((tmp_path / "settings").stat().st_mode) == 0o600
    assert (tmp_path / "hook").stat().st_mode & 0o100


@pytest.mark.parametrize("count", range(7))
@pytest.mark.parametrize(
    "last",
    [
        FileStep("edit", "/proc/nothing/x", data=b"x"),
        FileStep("rename", "/nowhere/a", "/nowhere/b"),
        FileStep("remove", "/nowhere/a"),
        FileStep("remove", "/nowhere/a", target="/", before=b"x"),
        FileStep("edit", "ROOT/settings", data=b"x", before=b"other bytes"),
    ],
    ids=["makes", "renames", "removes", "drops", "changed"],
)
def test_a_refusal_undoes_what_was_done(tmp_path: Path, count: int, last: FileStep) -> None:
    """Bytes, permissions and directories are as before, whichever step it is."""
    planned = steps(tmp_path)[:count]
    before = state(tmp_path)
    path = last.path.replace("ROOT", str(tmp_path))
    with pytest.raises(MemtoolError):
        carry_out([*planned, last.replace(path=path)])
    assert state(tmp_path) == before
