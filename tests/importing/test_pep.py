from __future__ import annotations

import pytest

from memtool.importing import pep


def test_headers_go_on_in_indented_lines():
    """A value may take many lines, and the body begins behind the blank one."""
    headers, line = pep.read_headers("PEP: 1\nAuthor: A,\n  B,\n\tC\nTitle: T\n\nText\n")
    assert headers == {"pep": "1", "author": "A, B, C", "title": "T"}
    assert line == 6


@pytest.mark.parametrize("text", ["", "\n", "PEP 8\n", "---\n", ": x\n", " PEP: 1\n"])
def test_what_is_no_header_gives_none(text):
    """Any text may be asked for its headers."""
    assert pep.read_headers(text)[0] == {}


def test_a_file_named_so_must_be_one(tmp_path):
    """A pep-0001.rst without headers is a problem; other files beside it are none."""
    (tmp_path / "pep-0001.rst").write_text("Nothing.\n")
    (tmp_path / "conf.txt").write_text("Nothing.\n")
    (found,) = pep.drafts(str(tmp_path), "/nowhere")
    assert (found.code, found.severity) == ("not-a-record", "error")


def test_a_named_file_must_be_one(tmp_path):
    """A file that the user names is not passed over in silence."""
    (tmp_path / "notes.txt").write_text("Nothing.\n")
    (found,) = pep.drafts(str(tmp_path / "notes.txt"), "/nowhere")
    assert found.code == "not-a-record"


def test_addresses_of_authors_are_left_out(tmp_path):
    """Names are provenance; mail addresses are not carried on."""
    (tmp_path / "a.rst").write_text("PEP: 1\nTitle: T\nAuthor: Ada <ada@example.org>, Grace\n")
    (found,) = pep.drafts(str(tmp_path), "/nowhere")
    assert found.fields["x-author"] == "Ada, Grace"


def test_absurd_numbers_are_no_peps(tmp_path):
    """A number with thousands of digits is refused, not converted."""
    (tmp_path / "pep-1.rst").write_text(f"PEP: {'9' * 5000}\nTitle: T\n")
    (found,) = pep.drafts(str(tmp_path), "/nowhere")
    assert found.code == "not-a-record"
