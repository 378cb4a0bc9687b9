"""Compiled patterns: what is kept is what `re` compiles, or nothing."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from gate.corpus import benign_notes, secret_notes

from memtool.gate import (
    blocks,
    chance,
    columns,
    compiled,
    context,
    entropy,
    fitting,
    glue,
    keywords,
    personal,
    redaction,
    shapes,
    tokens,
    userinfo,
    values,
)
from memtool.gate.pattern import Pattern

MODULES = (blocks, chance, columns, context, entropy, fitting, glue, keywords, personal, redaction,
           tokens, userinfo, values)  # fmt: skip
SOURCES = sorted(
    {found.source for module in MODULES for found in vars(module).values()
     if isinstance(found, Pattern)}
    | {source for _kind, _needles, source in shapes.ROWS}
    | {row.follows.source for rows in tokens._BY_PREFIX.values() for row in rows}
)  # fmt: skip


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An installation that keeps no pattern yet."""
    monkeypatch.setattr(compiled, "PLACE", str(tmp_path))
    monkeypatch.setattr(compiled, "_kept", {})
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    return tmp_path


def forget(monkeypatch: pytest.MonkeyPatch) -> None:
    """Do as a new process does, which has read nothing yet."""
    monkeypatch.setattr(compiled, "_kept", {})


def test_a_kept_pattern_is_the_one_that_re_compiles(place: Path, monkeypatch: pytest.MonkeyPatch):
    """Every pattern of redaction finds the same, kept or compiled, with the same groups."""
    assert [compiled.pattern(source) for source in SOURCES] == [None] * len(SOURCES)
    compiled.keep(SOURCES)
    forget(monkeypatch)
    notes = [note.text for make in (secret_notes, benign_notes) for note in make("held", 3)[::40]]
    for source in SOURCES:
        kept, expected = compiled.pattern(source), re.compile(source)
        assert kept is not None
        assert kept == expected
        assert (kept.flags, kept.groups, kept.groupindex) == (
            expected.flags, expected.groups, expected.groupindex
        )  # fmt: skip
        for text in notes:
            found = [(match.span(), match.groupdict()) for match in kept.finditer(text)]
            assert found == [(m.span(), m.groupdict()) for m in expected.finditer(text)]


def test_patterns_are_added_to_those_that_are_kept(place: Path, monkeypatch: pytest.MonkeyPatch):
    """Each process adds what it had to compile."""
    for source in ("a+", "b+"):
        compiled.keep([source])
        forget(monkeypatch)
    assert all(map(compiled.pattern, ("a+", "b+")))
    assert compiled.pattern("c+") is None
    assert [path.name for path in place.iterdir()] == [Path(compiled._path()).name]


@pytest.mark.parametrize("at", [0, 20, 130, 200, -3])
def test_a_damaged_pattern_is_not_used(place: Path, monkeypatch: pytest.MonkeyPatch, at: int):
    """Whatever byte is another one, a pattern is whole or none."""
    compiled.keep(["(?P<word>[a-z]+)-(\\d)?"])
    path = Path(compiled._path())
    data = bytearray(path.read_bytes())
    data[at] ^= 0x55
    for damaged in (bytes(data), path.read_bytes()[:at], b""):
        path.write_bytes(damaged)
        forget(monkeypatch)
        assert compiled.pattern("(?P<word>[a-z]+)-(\\d)?") is None
        assert redaction.find("the password is hunter-4x!9Q")


def test_patterns_of_another_interpreter_are_not_used(place: Path, monkeypatch: pytest.MonkeyPatch):
    """Numbers mean something to the interpreter alone that wrote them."""
    compiled.keep(["a+"])
    monkeypatch.setattr(sys, "version", "4.0")
    forget(monkeypatch)
    assert compiled.pattern("a+") is None


def test_nothing_is_kept_where_python_keeps_nothing(place: Path, monkeypatch: pytest.MonkeyPatch):
    """Without byte-code, or in a folder of somebody else, patterns are compiled each time."""
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    compiled.keep(["a+"])
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    monkeypatch.setattr(compiled, "PLACE", str(place / "nowhere"))
    compiled.keep(["a+"])
    assert list(place.iterdir()) == []
