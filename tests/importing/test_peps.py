"""Python Enhancement Proposals: their headers, and which files are skipped."""

from __future__ import annotations

import pytest

from memtool.importing import peps
from memtool.importing.originals import ImportRequest


def test_headers_go_on_in_indented_lines():
    """A value may take many lines, and the body begins behind the blank one."""
    headers, line = peps.parse_pep_headers("PEP: 1\nAuthor: A,\n  B,\n\tC\nTitle: T\n\nText\n")
    assert headers == {"pep": "1", "author": "A, B, C", "title": "T"}
    assert line == 6


@pytest.mark.parametrize("text", ["", "\n", "PEP 8\n", "---\n", ": x\n", " PEP: 1\n"])
def test_what_is_no_header_gives_none(text):
    """Any text may be asked for its headers."""
    assert peps.parse_pep_headers(text)[0] == {}


def test_a_file_named_so_must_be_one(tmp_path):
    """A pep-0001.rst without headers is a problem; other files next to it are not."""
    (tmp_path / "pep-0001.rst").write_text("Nothing.\n")
    (tmp_path / "conf.txt").write_text("Nothing.\n")
    (problem,) = peps.pep_drafts(str(tmp_path), ImportRequest("/nowhere"))
    assert (problem.code, problem.severity) == ("not-a-record", "error")


def test_a_named_file_must_be_one(tmp_path):
    """A file that the user names is not passed over in silence."""
    (tmp_path / "notes.txt").write_text("Nothing.\n")
    (problem,) = peps.pep_drafts(str(tmp_path / "notes.txt"), ImportRequest("/nowhere"))
    assert problem.code == "not-a-record"


def test_addresses_of_authors_are_left_out(tmp_path):
    """Names are provenance; mail addresses are not carried on."""
    (tmp_path / "a.rst").write_text("PEP: 1\nTitle: T\nAuthor: Ada <ada@example.org>, Grace\n")
    (draft,) = peps.pep_drafts(str(tmp_path), ImportRequest("/nowhere"))
    assert draft.fields["x-author"] == "Ada, Grace"


def test_absurd_numbers_are_no_peps(tmp_path):
    """A number with thousands of digits is refused, not converted."""
    (tmp_path / "pep-1.rst").write_text(f"PEP: {'9' * 5000}\nTitle: T\n")
    (problem,) = peps.pep_drafts(str(tmp_path), ImportRequest("/nowhere"))
    assert problem.code == "not-a-record"


def test_the_status_of_a_pep_says_its_word(tmp_path):
    """A known status and date say where they are from; without a status there is none."""
    (tmp_path / "pep-0001.rst").write_text(
        "PEP: 1\nTitle: T\nStatus: Final\nCreated: 13-Jun-2000\n"
    )
    (tmp_path / "pep-0002.rst").write_text("PEP: 2\nTitle: T\n")
    first, second = peps.pep_drafts(str(tmp_path), ImportRequest("/nowhere"))
    assert (first.status_from, first.date_from) == ("\u201cFinal\u201d", "Created")
    assert "status" not in second.fields


def test_an_unknown_status_of_a_pep_is_reported(tmp_path):
    """A word that nobody knows makes a candidate, with a warning."""
    (tmp_path / "pep-0001.rst").write_text("PEP: 1\nTitle: T\nStatus: Purple\n")
    problem, record = peps.pep_drafts(str(tmp_path), ImportRequest("/nowhere"))
    assert (problem.code, record.fields["status"]) == ("unknown-state", "candidate")
