"""Small derived facts: they come back until they are damaged or unused, and nothing raises."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from memtool.store import facts, kept
from memtool.store.state import State, close_shared

if TYPE_CHECKING:
    from pathlib import Path

DAY_S = 86_400.0


def test_a_fact_comes_back_for_its_kind_basis_and_key(tmp_path: Path) -> None:
    """Any bytes, empty ones too; another kind, basis or key knows nothing."""
    for key, data in ((b"", b""), (b"\xff", b"\0a\0")):
        kept.write(str(tmp_path), "kind", b"basis", data, key)
        assert kept.read(str(tmp_path), "kind", b"basis", key) == data
    for kind, basis, key in (
        ("other", b"basis", b""),
        ("kind", b"", b""),
        ("kind", b"basis", b"x"),
    ):
        assert kept.read(str(tmp_path), kind, basis, key) is None


def test_plain_values_come_back(tmp_path: Path) -> None:
    """Lists, dicts, texts, numbers and None."""
    fact = [1, {"a": None}, "ü"]
    assert kept.read_json(str(tmp_path), "kind", b"basis") is None
    kept.write_json(str(tmp_path), "kind", b"basis", fact)
    assert kept.read_json(str(tmp_path), "kind", b"basis") == fact


def test_a_fact_that_is_unused_for_a_month_goes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Reading counts as use; facts of other kinds stay until one of their own is written."""
    now = [1000 * DAY_S]
    monkeypatch.setattr(kept.time, "time", lambda: now[0])
    for kind, basis in (("kind", b"read"), ("kind", b"unread"), ("other", b"unread")):
        kept.write(str(tmp_path), kind, basis, b"data")
    now[0] += 20 * DAY_S
    assert kept.read(str(tmp_path), "kind", b"read") == b"data"
    now[0] += 20 * DAY_S
    kept.write(str(tmp_path), "kind", b"new", b"data")
    assert kept.read(str(tmp_path), "kind", b"read") == b"data"
    assert kept.read(str(tmp_path), "kind", b"unread") is None
    assert kept.read(str(tmp_path), "other", b"unread") == b"data"


def test_one_of_many_facts_that_is_unused_for_a_month_goes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of the same basis that are in use stay."""
    now = [1000 * DAY_S]
    monkeypatch.setattr(kept.time, "time", lambda: now[0])
    kept.write_all(str(tmp_path), "kind", b"basis", {b"read": b"1", b"unread": b"2"})
    for _time in range(3):
        now[0] += 20 * DAY_S
        assert kept.read_all(str(tmp_path), "kind", b"basis", [b"read"]) == {b"read": b"1"}
    assert kept.read(str(tmp_path), "kind", b"basis", b"unread") is None


def test_enough_bases_of_a_kind_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that were used last."""
    now = [1000 * DAY_S]
    monkeypatch.setattr(kept.time, "time", lambda: now[0])
    bases = [b"%d" % number for number in range(kept.MAX_BASES + 2)]
    for basis in bases:
        now[0] += 1
        kept.write(str(tmp_path), "kind", basis, b"data")
        kept.write(str(tmp_path), "kind", basis, b"more", b"key")
    remaining = [basis for basis in bases if kept.read(str(tmp_path), "kind", basis) is not None]
    assert remaining == bases[2:]


def damages(cache_dir: Path) -> list[str]:
    return State.find_damaged_files(str(cache_dir / facts.FOLDER))


def test_a_damaged_fact_is_absent_until_it_is_written_again(tmp_path: Path) -> None:
    """The database is named as damaged, dropped by its reader, and made anew by the next writer."""
    kept.write(str(tmp_path), "kind", b"basis", b"some data")
    assert damages(tmp_path) == []
    close_shared()
    (path,) = tmp_path.glob("state/*.db")
    path.write_bytes(path.read_bytes().replace(b"some data", b"more data"))
    assert damages(tmp_path) == [str(path)]
    assert kept.read(str(tmp_path), "kind", b"basis") is None
    assert damages(tmp_path) == []
    kept.write(str(tmp_path), "kind", b"basis", b"some data")
    assert kept.read(str(tmp_path), "kind", b"basis") == b"some data"


def test_every_file_that_is_not_as_it_was_is_named(tmp_path: Path) -> None:
    """A database or pointer that is cut, longer, gone or a folder; and a file as the folder."""
    kept.write(str(tmp_path), "kind", b"basis", b"data")
    close_shared()
    (database,) = tmp_path.glob("state/*.db")
    pointer = database.with_name(database.name.rsplit("-", 2)[0])
    for path in (database, pointer):
        whole = path.read_bytes()
        for data in (whole[:-1], whole + b"\0", whole[: len(whole) // 2]):
            path.write_bytes(data)
            assert damages(tmp_path) == [str(path)]
        path.unlink()
        path.mkdir()
        assert damages(tmp_path) == [str(path)]
        path.rmdir()
        path.write_bytes(whole)
    assert damages(tmp_path) == []
    assert damages(database) == []
    (tmp_path / "file").mkdir()
    (tmp_path / "file" / facts.FOLDER).write_text("in the way")
    assert damages(tmp_path / "file") == [str(tmp_path / "file" / facts.FOLDER)]


def test_what_cannot_be_kept_is_made_again(tmp_path: Path) -> None:
    """A place that takes no files costs nothing but the fact."""
    (tmp_path / facts.FOLDER).write_text("in the way")
    kept.write(str(tmp_path), "kind", b"basis", b"data")
    assert kept.read(str(tmp_path), "kind", b"basis") is None
    assert State.open(str(tmp_path), facts.FACTS) is None
