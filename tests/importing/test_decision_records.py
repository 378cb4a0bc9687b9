"""Decision records and PEPs: what is read, and which files are skipped."""

from __future__ import annotations

import pytest

from memtool.importing import decision_records
from memtool.importing.originals import ImportRequest
from memtool.memory.schema import Problem


@pytest.fixture
def read(tmp_path):
    """Read one record from a text; the name of its file may be given."""

    def draft(text, name="0007-use-it.md"):
        place = tmp_path / "adr" / name
        place.parent.mkdir(exist_ok=True)
        place.write_text(text)
        (result,) = decision_records.adr_drafts(
            str(place), ImportRequest(str(tmp_path / "elsewhere"))
        )
        return result

    return draft


@pytest.mark.parametrize(
    ("heading", "title"),
    [
        ("# 3. Use S3", "Use S3"),
        ("# ADR-0003: Use S3", "Use S3"),
        ("# ADR 3 - Use S3", "Use S3"),
        ("# [ADR-3] Use S3", "Use S3"),
        ("# ADR: Use S3", "Use S3"),
        ("# 0003. Use S3", "Use S3"),
        ("# 3 tiers for S3", "3 tiers for S3"),
        ("# 1.5 is enough", "1.5 is enough"),
        ("Use S3\n======", "Use S3"),
        ("## Use S3", "Use S3"),
        ("## Context", "Use it"),
        ("no heading", "Use it"),
    ],
)
def test_titles_lose_their_number(read, heading, title):
    """The title is the first heading without its number, else the words of the file name."""
    assert read(f"{heading}\n\nText.\n").fields["title"] == title


@pytest.mark.parametrize(
    ("name", "id"),
    [
        ("0007-use-postgres.md", "adr-0007-use-postgres"),
        ("ADR-0007-Use_Postgres.md", "adr-0007-use-postgres"),
        ("adr007.md", "adr-007"),
        ("20200101-use-it.md", "adr-20200101-use-it"),
    ],
)
def test_ids_come_from_file_names(read, name, id):
    """A file name keeps its id, whatever its title becomes."""
    assert read("# 7. Any\n", name).id == id


@pytest.mark.parametrize(
    "text",
    [
        "---\nstatus: rejected\n---\n# T\n",
        "# T\n\n* Status: rejected\n",
        "# T\n\n- Status: Rejected\n",
        "# T\n\n**Status:** rejected\n",
        "# T\n\nStatus: rejected\n",
        "# T\n\n## Status\n\nRejected\n",
        "# T\n\n## Status\n\nProposed 2020-01-01\n\nRejected 2020-02-01\n",
    ],
)
def test_status_is_read_wherever_it_stands(read, text):
    """Front matter, lists, lines and sections mean the same, and leave the body."""
    draft = read(text)
    assert draft.fields["status"] == "deprecated"
    assert "status" not in draft.body.lower()


@pytest.mark.parametrize(
    "text",
    [
        "---\nstatus: superseded by [ADR-0005](0005-x.md)\n---\n# T\n",
        "---\nstatus: [ADR-0005](0005-x.md) superseded by [ADR-0005](0005-x.md)\n---\n# T\n",
        "---\nsuperseded_by: [0005-x.md]\n---\n# T\n",
        "# T\n\n* Status: superseded by [ADR-0005](./0005-x.md#top)\n",
        "# T\n\n## Status\n\nSuperceded by [5. X](0005-x.md)\n",
        "# T\n\n## Status\n\nAccepted, superseded by [5. X](0005-x.md)\n",
        "# T\n\n## Status\n\nSuperseded by 0005-x\n",
        "# T\n\n## Links\n\n* superseded by [5. X](0005-x.md)\n",
    ],
)
def test_superseding_links_name_the_other_record(read, text):
    """Every spelling of the link leads to the id of the newer record."""
    assert read(text).superseded_by == ("adr-0005-x",)


def test_numbers_name_records_of_the_same_directory(tmp_path):
    """`ADR-5` means the record with that number in the same directory."""
    (tmp_path / "0005-x.md").write_text("# 5. X\n\n## Status\n\nAccepted\n\nSupersedes ADR-4\n")
    (tmp_path / "0004-y.md").write_text("# 4. Y\n")
    older, newer = decision_records.adr_drafts(str(tmp_path), ImportRequest("/nowhere"))
    assert set(newer.fields["supersedes"]) & set(older.names)


def test_links_to_other_places_stay_in_the_text(read):
    """A record cannot be superseded by a page on the web; the line stays."""
    draft = read(
        "# T\n\n## Status\n\nSuperseded by [RFC](https://example.org/5)\n\n## Context\n\nC\n"
    )
    assert draft.superseded_by == ()
    assert "https://example.org/5" in draft.body


def test_what_the_status_section_says_beside_stays(read):
    """Only lines that became keys leave the section."""
    draft = read("# T\n\n## Status\n\nAccepted\n\nAmended by [6](0006.md)\n\n## Context\n\nC\n")
    assert draft.body == "\n## Status\n\nAmended by [6](0006.md)\n\n## Context\n\nC\n"


def test_code_is_no_heading(read):
    """A fenced `## Status` neither counts nor goes away."""
    draft = read("# T\n\n## Context\n\n```\n## Status\n\nRejected\n```\n")
    assert "status" not in draft.fields
    assert "Rejected" in draft.body


def test_other_front_matter_is_kept(read):
    """Keys that memories do not have become the user's own, on one line."""
    draft = read("---\nstatus: accepted\nDecision Makers:\n  - Ada\n  - Grace\n---\n# T\n")
    assert draft.fields["x-decision-makers"] == "Ada, Grace"


@pytest.mark.parametrize(
    "text",
    [
        "---\nid: 007\ndecided: 2026-05-24\ntitle: 'ADR-007: Use S3'\n---\n",
        "# Use S3\n\nDate: 2026-05-24\n",
        "# Use S3\n\n## Date\n\n2026-05-24\n",
    ],
)
def test_the_day_is_read_wherever_it_stands(read, text):
    """Front matter, lines and sections mean the same, and leave the body."""
    draft = read(f"{text}\n## Context\n\nC\n")
    assert draft.fields == {
        "type": "decision",
        "title": "Use S3",
        "timestamp": "2026-05-24T00:00:00Z",
    }
    assert draft.body.strip() == "## Context\n\nC"


def test_what_the_section_of_the_day_says_beside_stays(read):
    """Nothing that a record says is lost."""
    draft = read("# Use S3\n\n## Date\n\n2026-05-24\n\nOwner: Ada\n")
    assert draft.fields["timestamp"] == "2026-05-24T00:00:00Z"
    assert "Owner: Ada" in draft.body


@pytest.mark.parametrize(
    "text",
    [
        "# ADR-000: [Short Title]\n",
        "# {short title, of problem and solution}\n",
        "---\ntitle: <title>\n---\nText\n",
    ],
)
def test_templates_are_passed_over(read, text):
    """A title that is still to be filled in is that of no decision."""
    assert read(text).code == "not-a-record"


def test_a_day_that_cannot_be_read_is_kept(read):
    """A date of two meanings is not guessed, and not lost."""
    draft = read("---\ndate: 03/04/2024\n---\n# T\n")
    assert "timestamp" not in draft.fields
    assert draft.fields["x-date"] == "03/04/2024"


def test_files_that_are_no_records_are_passed_over(tmp_path):
    """Index, template and hidden directories are silent; other pages are told."""
    for name in ("README.md", "index.md", "template.md", ".git/0001-x.md", "glossary.md"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("# Text\n")
    (problem,) = decision_records.adr_drafts(str(tmp_path), ImportRequest("/nowhere"))
    assert (problem.code, problem.severity) == ("not-a-record", "warning")


@pytest.mark.parametrize(
    "data", [b"\xff\xfe", b"# T\n\0", b"# T\n" + b"x" * (2 << 20)], ids=["utf16", "nul", "large"]
)
def test_files_that_are_no_text_are_problems(tmp_path, data):
    """Bytes that cannot be read as text are told, not raised."""
    (tmp_path / "0001-x.md").write_bytes(data)
    (problem,) = decision_records.adr_drafts(str(tmp_path), ImportRequest("/nowhere"))
    assert isinstance(problem, Problem)


@pytest.mark.parametrize(
    "text", ["", "---", "---\n---\n", "---\n&a: *a\n---\n", "#", "\n\n", "===="]
)
def test_odd_files_are_records_or_problems(read, text):
    """Nothing that a file may hold raises."""
    assert read(text).id == "adr-0007-use-it"


def test_headers_go_on_in_indented_lines():
    """A value may take many lines, and the body begins behind the blank one."""
    headers, line = decision_records.parse_pep_headers(
        "PEP: 1\nAuthor: A,\n  B,\n\tC\nTitle: T\n\nText\n"
    )
    assert headers == {"pep": "1", "author": "A, B, C", "title": "T"}
    assert line == 6


@pytest.mark.parametrize("text", ["", "\n", "PEP 8\n", "---\n", ": x\n", " PEP: 1\n"])
def test_what_is_no_header_gives_none(text):
    """Any text may be asked for its headers."""
    assert decision_records.parse_pep_headers(text)[0] == {}


def test_a_file_named_so_must_be_one(tmp_path):
    """A pep-0001.rst without headers is a problem; other files next to it are not."""
    (tmp_path / "pep-0001.rst").write_text("Nothing.\n")
    (tmp_path / "conf.txt").write_text("Nothing.\n")
    (problem,) = decision_records.pep_drafts(str(tmp_path), ImportRequest("/nowhere"))
    assert (problem.code, problem.severity) == ("not-a-record", "error")


def test_a_named_file_must_be_one(tmp_path):
    """A file that the user names is not passed over in silence."""
    (tmp_path / "notes.txt").write_text("Nothing.\n")
    (problem,) = decision_records.pep_drafts(str(tmp_path / "notes.txt"), ImportRequest("/nowhere"))
    assert problem.code == "not-a-record"


def test_addresses_of_authors_are_left_out(tmp_path):
    """Names are provenance; mail addresses are not carried on."""
    (tmp_path / "a.rst").write_text("PEP: 1\nTitle: T\nAuthor: Ada <ada@example.org>, Grace\n")
    (draft,) = decision_records.pep_drafts(str(tmp_path), ImportRequest("/nowhere"))
    assert draft.fields["x-author"] == "Ada, Grace"


def test_absurd_numbers_are_no_peps(tmp_path):
    """A number with thousands of digits is refused, not converted."""
    (tmp_path / "pep-1.rst").write_text(f"PEP: {'9' * 5000}\nTitle: T\n")
    (problem,) = decision_records.pep_drafts(str(tmp_path), ImportRequest("/nowhere"))
    assert problem.code == "not-a-record"
