from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memtool.store import usage_log
from memtool.store.usage_log import Note, ShownItem

WORDS = st.from_regex(r"[a-z0-9._-]{1,30}", fullmatch=True)
TEXTS = st.lists(WORDS, max_size=5).map(" ".join)
SCORES = st.none() | st.floats(0, 1000).map(lambda score: float(f"{score:.6g}"))
ITEMS = st.builds(ShownItem, id=WORDS, tier=WORDS | st.just(""), score=SCORES, reason=TEXTS)
NOTES = st.builds(
    Note,
    moment=st.integers(0, 1 << 33),
    verb=WORDS,
    elapsed_ms=st.integers(0, 10**9).map(lambda thousandths: thousandths / 1000),
    prompt=WORDS | st.just(""),
    session=TEXTS,
    items=st.lists(ITEMS, max_size=5).map(tuple),
)
NOTE = Note(
    7, "inject", 1.5, "0123456789abcdef", "s 1", (ShownItem("dec-a", "pinned", None, "why"),)
)


@given(st.lists(NOTES, max_size=4))
def test_a_note_is_read_as_it_was_written(notes: list[Note]) -> None:
    """Nothing of a note is lost or changed on the way through the file."""
    assert list(usage_log.read_notes(b"".join(map(usage_log.note_line, notes)))) == notes


@given(NOTES, NOTES, st.data())
def test_a_torn_line_spoils_no_other(first: Note, second: Note, data: st.DataObject) -> None:
    """Of a line that was cut off anywhere nothing is believed, and the next one is whole."""
    line = usage_log.note_line(first)
    cut = data.draw(st.integers(0, len(line) - 2))
    assert list(usage_log.read_notes(line[:cut])) == []
    assert list(usage_log.read_notes(line[:cut] + usage_log.note_line(second))) == [second]


@given(st.binary(max_size=200))
def test_no_bytes_make_reading_fail(data: bytes) -> None:
    """What somebody else wrote into the file is passed over."""
    assert all(isinstance(note, Note) for note in usage_log.read_notes(data))


@pytest.mark.parametrize(
    "line",
    [
        b"x\tshow\t1.0\t\t\t.",
        b"1\tshow\tnan\t\t\t.",
        b"1\tshow\t-1\t\t\t.",
        b"1\tshow\t1\t\t.",
        b"1\tshow\t1\t\t\tdec-a\t.",
        b"1\tshow\t1\t\t\tdec-a t x r\t.",
        b"9" * 40 + b"\tshow\t1\t\t\t.",
    ],
)
def test_a_line_that_no_answer_wrote_is_passed_over(line: bytes) -> None:
    """A number that is none, too few fields, an impossible moment: no note."""
    assert list(usage_log.read_notes(b"\n" + line + b"\n")) == []


def test_what_people_name_cannot_break_the_line(tmp_path: Path) -> None:
    """A session may be named in any way; its tabs and line feeds become spaces."""
    usage_log.append_note(str(tmp_path), NOTE.replace(session="a\tb\nc\0\ud800", items=()))
    (note,) = usage_log.read_notes((tmp_path / "spool" / "notes").read_bytes())
    assert note.session == "a b c\0?"


def test_a_long_answer_is_noted_in_part() -> None:
    """However many memories an answer shows and however long a text is, a line stays small."""
    many = tuple(ShownItem(f"dec-{number}", "", 1.0, "r" * 5_000) for number in range(1_000))
    (note,) = usage_log.read_notes(usage_log.note_line(NOTE.replace(items=many)))
    assert len(note.items) == usage_log.MOST_ITEMS
    assert {len(item.reason) for item in note.items} == {usage_log.MOST_TEXT}


def test_notes_are_appended_and_the_size_is_told(tmp_path: Path) -> None:
    """Who appends learns when the file should be taken over."""
    first = usage_log.append_note(str(tmp_path), NOTE)
    assert (
        usage_log.append_note(str(tmp_path), NOTE)
        == 2 * first
        == 2 * len(usage_log.note_line(NOTE))
    )


def test_what_was_set_aside_gets_no_more_notes(tmp_path: Path) -> None:
    """After sealing, the next note opens a new file."""
    usage_log.append_note(str(tmp_path), NOTE)
    usage_log.seal(str(tmp_path))
    size = usage_log.append_note(str(tmp_path), NOTE)
    assert size == len(usage_log.note_line(NOTE))
    (path,) = usage_log.sealed(str(tmp_path))
    assert len(list(usage_log.read_notes(Path(path).read_bytes()))) == 1


def test_sealing_nothing_is_nothing(tmp_path: Path) -> None:
    """Without a file of notes there is nothing to set aside."""
    usage_log.seal(str(tmp_path))
    assert usage_log.sealed(str(tmp_path)) == []


def test_a_file_is_claimed_by_one_only(tmp_path: Path) -> None:
    """While one process takes a file over, another leaves it alone; when it is gone, too."""
    usage_log.append_note(str(tmp_path), NOTE)
    usage_log.seal(str(tmp_path))
    (path,) = usage_log.sealed(str(tmp_path))
    handle = usage_log.claim(path)
    assert handle is not None
    assert usage_log.claim(path) is None
    os.unlink(path)
    os.close(handle)
    assert usage_log.claim(path) is None


def test_nobody_waits_for_a_file_that_is_being_taken_over(tmp_path: Path) -> None:
    """A held lock gives an error after a few tries, and no note; it never blocks an answer."""
    import fcntl

    usage_log.append_note(str(tmp_path), NOTE)
    with (tmp_path / "spool" / "notes").open("rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(BlockingIOError):
            usage_log.append_note(str(tmp_path), NOTE)


@pytest.mark.parametrize("kind", ["link", "pipe", "folder"])
def test_only_a_real_file_is_written(tmp_path: Path, kind: str) -> None:
    """Notes never go through a link, into a pipe without a reader, or over a directory."""
    place = tmp_path / "spool" / "notes"
    place.parent.mkdir()
    target = tmp_path / "target"
    if kind == "link":
        place.symlink_to(target)
    elif kind == "pipe":
        os.mkfifo(place)
    else:
        place.mkdir()
    with pytest.raises(OSError, match=r"\w"):
        usage_log.append_note(str(tmp_path), NOTE)
    assert not target.exists()
