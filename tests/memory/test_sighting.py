"""The line `checked.saw`: written, read back, and compared with a text of today."""

import posixpath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memtool.memory import drift, sighting
from memtool.memory.sighting import SeenFile, SeenLines, SeenNames, Sighting

BLOB = "3f2a91c0de12"


def test_a_line_is_read_as_it_was_written() -> None:
    seen = Sighting(
        {
            "src/x.py": SeenFile(
                BLOB, (SeenLines(5, 7, 3, "9c1d02ab"), SeenLines(9, 9, 1, "0" * 8))
            ),
            "src/a b%=#@.py": SeenFile(BLOB, (SeenLines(1, 4, 2, "9c1d02ab"),)),
            "names": SeenFile(BLOB),
            "src/y.py@acb22241e8": SeenFile(BLOB),
        },
        SeenNames(0b1011, 4),
        {"acb22241e8": 1795548250},
    )
    line = sighting.render(seen)
    assert line.startswith(f"src/x.py={BLOB}#L5-L7=9c1d02ab#L9-L9=00000000 ")
    assert "#L1-L4=9c1d02ab.2 " in line
    assert line.endswith("names=b.4 acb22241e8=1795548250")
    assert sighting.parse(line) == seen


paths = st.text(
    st.characters(blacklist_categories=("Cs", "Cc", "Zs", "Zl", "Zp")) | st.sampled_from(" %=#@/"),
    min_size=1,
    max_size=20,
).filter(lambda path: posixpath.normpath(path) == path and path != ".")


@given(st.dictionaries(paths, st.just(SeenFile(BLOB)), max_size=5))
def test_any_path_is_read_as_it_was_written(files: dict[str, SeenFile]) -> None:
    assert sighting.parse(sighting.render(Sighting(files, None, {}))) == Sighting(files, None, {})


@pytest.mark.parametrize(
    "line",
    [
        "src/x.py",
        f"={BLOB}",
        "src/x.py=3f2a",
        f"src/x.py={BLOB}#L5-L3=9c1d02ab",
        f"src/x.py={BLOB}#L0-L3=9c1d02ab",
        f"src/x.py={BLOB}#L1-L3=9c1d02ab.4",
        f"src/x.py={BLOB}#L1-L3=9c1d",
        f"src/x.py={BLOB}#L1-L99999999999=9c1d02ab",
        f"src/x.py@branch={BLOB}",
        "names=xyz.3",
        "names=b",
        "names=b.-1",
        "files=3f2a",
        "acb22241e8=soon",
    ],
)
def test_what_is_no_record_is_refused(line: str) -> None:
    with pytest.raises(ValueError, match=r"^'"):
        sighting.parse(line)


def test_too_many_files_become_one_digest() -> None:
    files = {f"src/{number}.py": SeenFile(BLOB) for number in range(9)}
    line = sighting.render(Sighting(files, SeenNames(1, 1), {}))
    seen = sighting.parse(line)
    assert not seen.files
    assert seen.files_digest == sighting.digest_files(dict.fromkeys(files, BLOB + "ab"))
    assert seen.files_digest != sighting.digest_files(dict.fromkeys(files, "0" * 40))
    assert seen.names == SeenNames(1, 1)


def test_more_commits_than_fit_are_left_out() -> None:
    line = sighting.render(Sighting({}, None, {f"{n:010x}": n for n in range(200)}))
    assert len(line) <= sighting.MAX_CHARACTERS
    assert 10 < len(sighting.parse(line).seconds) < 200


TEXT = drift.strip_lines("a\n\n  b = 1\nc\n\nd\n")


def test_lines_are_found_where_they_moved_to() -> None:
    seen = sighting.digest_lines(TEXT, (1, 4))
    assert seen is not None
    assert seen.filled == 3
    assert sighting.find_lines(TEXT, seen) == (1, 4)
    assert sighting.find_lines(drift.strip_lines("x\ny\na\nb=1\n\n\nc\nd"), seen) == (3, 7)
    assert sighting.find_lines(drift.strip_lines("a\nb = 2\nc\n"), seen) is None
    assert sighting.find_lines([], seen) is None


def test_lines_that_are_not_there_or_blank_say_nothing() -> None:
    assert sighting.digest_lines(TEXT, (5, 9)) is None
    assert sighting.digest_lines(TEXT, (2, 2)) is None


@given(st.lists(st.sampled_from(["", "a", "b", "c"]), min_size=1), st.data())
def test_a_digest_finds_what_drift_finds(rows: list[str], data: st.DataObject) -> None:
    first = data.draw(st.integers(1, len(rows)))
    last = data.draw(st.integers(first, len(rows)))
    now = data.draw(st.lists(st.sampled_from(["", "a", "b", "c"])))
    seen = sighting.digest_lines(rows, (first, last))
    if seen is None:
        return
    here = sighting.find_lines(now, seen)
    there = drift.find_lines(rows, now, (first, last))
    assert (here is None) == (there is None)
    if here is not None and there is not None:
        assert [row for row in now[here[0] - 1 : here[1]] if row] == [
            row for row in now[there[0] - 1 : there[1]] if row
        ]


def test_names_count_only_while_the_text_has_as_many() -> None:
    """A redaction takes names away, and the others get other numbers."""
    seen = SeenNames(0b101, 3)
    assert seen.filter(["a_a", "b_b", "c_c"]) == ["a_a", "c_c"]
    assert seen.filter(["b_b", "c_c"]) == []
