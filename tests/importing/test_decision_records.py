"""Decision records: forms of files and folders, relations between them, and what is left out."""

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
        ("# n. Use S3", "Use S3"),
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
        (f"20200101-{'long-' * 16}name.md", f"adr-20200101-{'long-' * 16}".rstrip("-")),
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


def test_other_files_are_left_out_by_name(tmp_path):
    """Index, template and other pages are listed; hidden directories are not read."""
    for name in ("README.md", "index.md", "template.md", ".git/0001-x.md", "glossary.md"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("# Text\n")
    problems = list(decision_records.adr_drafts(str(tmp_path), ImportRequest("/nowhere")))
    assert {(problem.code, problem.severity) for problem in problems} == {
        ("not-a-record", "warning")
    }
    assert [problem.message for problem in problems] == [
        "it is the README of its folder; it is left out",
        "neither its name has a number nor its text a known status; it is left out",
        "it is an index, by its name; it is left out",
        "it is a template, by its name; it is left out",
    ]


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


@pytest.fixture
def folder(tmp_path):
    """Write files by their names, and return a reader of their records by id, and of problems."""

    def read_all(files, now=0):
        for name, text in files.items():
            place = tmp_path / "adr" / name
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(text if isinstance(text, bytes) else text.encode())
        request = ImportRequest(str(tmp_path / "elsewhere"), now=now)
        results = list(decision_records.adr_drafts(str(tmp_path / "adr"), request))
        problems = [result for result in results if isinstance(result, Problem)]
        return {r.id: r for r in results if not isinstance(r, Problem)}, problems

    return read_all


ACCEPTED = "\n\n## Status\n\nAccepted\n\n## Decision\n\nYes.\n"


@pytest.mark.parametrize(
    ("text", "status", "words"),
    [
        ("Akzeptiert", "confirmed", "\u201cAkzeptiert\u201d (German)"),
        ("Rejet\u00e9", "deprecated", "\u201cRejet\u00e9\u201d (French)"),
        ("Aceptada", "confirmed", "\u201cAceptada\u201d (Spanish)"),
        ("Rejeitado", "deprecated", "\u201cRejeitado\u201d (Portuguese)"),
        ("Approvato", "confirmed", "\u201cApprovato\u201d (Italian)"),
        ("Geaccepteerd", "confirmed", "\u201cGeaccepteerd\u201d (Dutch)"),
        ("Zaakceptowane", "confirmed", "\u201cZaakceptowane\u201d (Polish)"),
        ("\u041e\u0442\u043a\u043b\u043e\u043d\u0435\u043d\u043e", "deprecated", "(Russian)"),
        ("\u63d0\u6848\u4e2d", "candidate", "(Japanese)"),
        ("Obsoleto", "deprecated", "(Italian or Portuguese or Spanish)"),
        ("Superseded", "deprecated", "\u201cSuperseded\u201d, by no record here"),
        ("Implementing", "confirmed", "\u201cImplementing\u201d"),
        ("Accepted, though the proposal of May was rejected", "confirmed", "\u201cAccepted\u201d"),
        ("<!-- Proposed -->\nAccepted", "confirmed", "\u201cAccepted\u201d"),
        ("* [ ] Proposed\n* [x] Accepted", "confirmed", "\u201cAccepted\u201d"),
        ("Accepted\n\nProposed by the web team", "confirmed", "\u201cAccepted\u201d"),
        ("Accepted\n\nRejected alternatives are below", "confirmed", "\u201cAccepted\u201d"),
    ],
)
def test_a_status_says_its_word_and_language(read, text, status, words):
    """The first known words count, in any language; a person sees them."""
    draft = read(f"# T\n\n## Status\n\n{text}\n\n## Decision\n\nYes.\n")
    assert draft.fields["status"] == status
    assert draft.status_from.endswith(words)


@pytest.mark.parametrize(
    "text",
    [
        "# T\n\n## Decision\n\nYes.\n",
        "---\nstatus:\n---\n# T\n",
        "# T\n\n* Status: [proposed | rejected | accepted]\n",
        "# T\n\n## Status\n\n<!-- accepted -->\n\n## Decision\n\nYes.\n",
        "# T\n\nStatus: n/a\n",
    ],
)
def test_no_status_is_not_guessed(read, text):
    """A record that says no state has none, so that the import decides."""
    draft = read(text)
    assert "status" not in draft.fields
    assert draft.status_from == ""


def test_an_unknown_status_is_reported(folder):
    """A word that nobody knows makes a candidate, and a warning that quotes it."""
    records, problems = folder({"0001-x.md": "# X\n\nStatus: purple\n"})
    assert records["adr-0001-x"].fields["status"] == "candidate"
    assert [(p.code, p.severity, p.id) for p in problems] == [
        ("unknown-state", "warning", "adr-0001-x")
    ]
    assert "'purple'" in problems[0].message


@pytest.mark.parametrize(
    ("text", "day", "place"),
    [
        ("# T\n\n- **Fecha**: 2025-03-04\n", "2025-03-04", "Fecha"),
        ("# T\n\nDatum: 6. Mai 2024\n", "2024-05-06", "Datum"),
        ("# T\n\nData: 08/07/2024\n", "2024-07-08", "Data"),
        ("---\ncreation-date: '2021-01-27'\n---\n# T\n", "2021-01-27", "creation-date"),
        ("---\ncreated: 2021-01-27\ndate: 2021-02-03\n---\n# T\n", "2021-02-03", "date"),
        ("# T\n\n## Changelog\n\n- 2022-12-01: b\n- 2022-11-26: a\n", "2022-11-26", "Changelog"),
        ("# T\n\n## Changelog\n\n- 02-10-2018: a\n- 16-01-2019: b\n", "2018-10-02", "Changelog"),
        ("# T\n\n## Status\n\nAccepted (2020-01-02)\n", "2020-01-02", "Status"),
        ("# T\n\n| Status | Date |\n|--|--|\n| Accepted | 2020-01-02 |\n", "2020-01-02", "Date"),
        ("# T\n\n| Date | 2020-01-02 |\n|--|--|\n| Status | Accepted |\n", "2020-01-02", "Date"),
        ("# T\n\n**Status:** Accepted | **Date:** 2020-01-02\n", "2020-01-02", "Date"),
        (
            "# T\n\n## Timeline\n\n- Started: 2020-01-01\n- Accepted: 2020-01-02\n",
            "2020-01-02",
            "Accepted",
        ),
        ("# T\n\n## Status\n\nSuperseded by ADR-9 (2020-01-02)\n", "", ""),
        ("# T\n\nDate: 0000-01-01\n", "", ""),
        ("# T\n\nDate: YYYY-MM-DD\n", "", ""),
        ("# T\n\nLast updated: 2020-01-02\n", "", ""),
    ],
)
def test_a_date_is_that_of_the_decision(read, text, day, place):
    """The surest date of a record counts, and a person sees where it is from."""
    draft = read(text)
    assert draft.fields.get("timestamp", "")[:10] == day
    assert draft.date_from == place


def test_a_date_in_the_future_is_no_date(folder):
    """A slip of a century is kept as it is, and orders nothing."""
    text = "---\ndate: 2202-01-01\n---\n# X\n"
    records, _problems = folder({"0001-x.md": text}, now=1_700_000_000)
    assert "timestamp" not in records["adr-0001-x"].fields
    assert records["adr-0001-x"].fields["x-date"].startswith("2202-01-01")


def test_relations_lead_to_the_records_of_the_batch(folder):
    """A number, a path and a stale file name mean the record that has them, in both directions."""
    records, problems = folder(
        {
            "0001-a.md": f"# A{ACCEPTED}",
            "0002-b.md": "# B\n\n## Status\n\nAccepted\n\nSupersedes ADR-1\n",
            "0003-c.md": "# C\n\n## Status\n\nSuperseded by [4](0004-old-name.md)\n",
            "0004-d.md": "# D\n\n## Status\n\nAccepted\n\nAmends [2. B](./0002-b.md)\n",
            "0005-e.md": "# E\n\n## Status\n\nAccepted\n\nSupersedes: None (see ADR-2)\n",
            "0006-f.md": "# F\n\n## Status\n\nProposed. Supersedes RFC 2.\n",
        }
    )
    assert problems == []
    assert records["adr-0002-b"].fields["supersedes"] == ("0001-a.md",)
    assert records["adr-0003-c"].superseded_by == ("0004-d.md",)
    assert records["adr-0004-d"].premises == ("0002-b.md",)
    assert "related_to" not in records["adr-0004-d"].fields
    assert "Amends [2. B]" in records["adr-0004-d"].body
    assert "supersedes" not in records["adr-0005-e"].fields
    assert "supersedes" not in records["adr-0006-f"].fields


def test_two_records_of_one_number_are_not_guessed(folder):
    """A relation that may mean either of two records is left out, with both named."""
    records, problems = folder(
        {
            "0001-a.md": "# A\n",
            "0001-b.md": "# B\n",
            "0002-c.md": "# C\n\n## Status\n\nAccepted\n\nSupersedes ADR-0001\n",
        }
    )
    assert "supersedes" not in records["adr-0002-c"].fields
    (problem,) = problems
    assert problem.code == "dangling"
    assert "adr-0001-a, adr-0001-b" in problem.message


@pytest.mark.parametrize(
    ("name", "id", "aliases"),
    [
        ("2023-06-19_024-x.md", "adr-024-x", ()),
        ("2023-06-19-use-it.md", "adr-2023-06-19-use-it", ()),
        ("ADR-12a-x.md", "adr-12a-x", ("ADR-12a",)),
        ("rfc-0042-x.md", "adr-rfc-0042-x", ()),
        ("adr_0007.md", "adr-0007", ()),
    ],
)
def test_names_with_dates_words_and_letters_have_numbers(folder, name, id, aliases):
    """A record is known by its number, whatever else its file name has."""
    records, _problems = folder({name: f"# T{ACCEPTED}"})
    assert records[id].fields.get("aliases", ()) == aliases


def test_a_letter_is_part_of_the_number(folder):
    """ADR-12a is another record than ADR-12."""
    records, _problems = folder(
        {
            "ADR-12-x.md": f"# ADR-12: X{ACCEPTED}",
            "ADR-12a-y.md": f"# ADR-12a: Y{ACCEPTED}",
            "ADR-13-z.md": "# Z\n\n## Status\n\nAccepted, supersedes ADR-12a\n",
        }
    )
    assert records["adr-12a-y"].fields["title"] == "Y"
    assert records["adr-13-z"].fields["supersedes"] == ("ADR-12a-y.md",)


KEP_FACTS = """title: Fast pods
kep-number: 12
status: implementable # provisional|implementable|implemented
creation-date: 2021-08-25
replaces:
  - "/keps/sig-node/7-old-pods"
"""


def test_a_folder_with_facts_is_one_record(folder):
    """README.md is the text and kep.yaml the facts; other pages of the folder belong to it."""
    records, problems = folder(
        {
            "sig-node/12-fast-pods/kep.yaml": KEP_FACTS,
            "sig-node/12-fast-pods/README.md": "# KEP-12: Fast\n\n## Summary\n\nFaster.\n",
            "sig-node/12-fast-pods/design.md": "# Design\n",
            "sig-node/7-old-pods/kep.yaml": "title: Old pods\nstatus: replaced\n",
        }
    )
    fast, old = records["kep-12-fast-pods"], records["kep-7-old-pods"]
    assert (fast.fields["title"], fast.fields["status"]) == ("Fast pods", "confirmed")
    assert fast.fields["timestamp"] == "2021-08-25T00:00:00Z"
    assert fast.fields["supersedes"] == (old.key,)
    assert fast.body.strip() == "## Summary\n\nFaster."
    assert [(p.path.rpartition("/")[2], p.message) for p in problems] == [
        ("design.md", "it belongs to the record of its folder; it is left out")
    ]


@pytest.mark.parametrize(
    "facts", ["title: [x\nstatus: implemented\n", "status: implemented\n\t: - {"]
)
def test_broken_facts_are_read_as_far_as_they_can_be(folder, facts):
    """A kep.yaml that is not YAML is read line by line."""
    records, _problems = folder({"9-x/kep.yaml": facts, "9-x/README.md": "# KEP-9: X\n\nText.\n"})
    assert records["kep-9-x"].fields["status"] == "confirmed"


def test_facts_that_are_no_text_leave_the_record(folder):
    """Bytes in place of facts are reported, and the text is imported."""
    records, problems = folder(
        {"9-x/kep.yaml": b"\xff\x00", "9-x/README.md": "# KEP-9: X\n\nText.\n"}
    )
    assert records["kep-9-x"].fields["title"] == "X"
    assert [problem.code for problem in problems] == ["not-utf8"]


def test_a_numbered_folder_is_a_record(folder):
    """A README.md in a folder with a date or number is that record."""
    records, problems = folder(
        {"README.md": "# All\n", "2022-02-07-metrics/README.md": f"# Metrics{ACCEPTED}"}
    )
    assert records["adr-2022-02-07-metrics"].fields["timestamp"] == "2022-02-07T00:00:00Z"
    assert [problem.path.rpartition("/")[2] for problem in problems] == ["README.md"]


def test_proposals_have_their_facts_in_lists(folder):
    """The name in a list is the title, also below a heading for such facts."""
    records, _problems = folder(
        {
            "0001-a.md": "# Meta\n[meta]: #meta\n- Name: `pack` versions\n"
            "- Start Date: 2019-08-05\n"
            "- Status: Implemented\n- Supersedes: N/A\n\n# Summary\n\nText.\n",
            "0002-b.md": "- Feature Name: `fast_io`\n- Start Date: 2019-08-06\n"
            "- RFC PR: [a/b#2](https://example.org/2)\n\n# Summary\n\nText.\n",
            "0003-c.md": "# Feature Name: `relations`\n\n## Summary\n\nText.\n",
            "0004-d.md": "# 0004 | Use `|` as a mark\n\nText.\n",
            "0005-e.md": "# Architecture Decision Record: Use E\n\nText.\n",
        }
    )
    titles = {id_: record.fields["title"] for id_, record in records.items()}
    assert titles == {
        "adr-0001-a": "`pack` versions",
        "adr-0002-b": "fast_io",
        "adr-0003-c": "relations",
        "adr-0004-d": "Use `|` as a mark",
        "adr-0005-e": "Use E",
    }
    assert records["adr-0001-a"].fields["timestamp"] == "2019-08-05T00:00:00Z"
    assert records["adr-0001-a"].body.strip() == "# Summary\n\nText."
    assert "supersedes" not in records["adr-0001-a"].fields


def test_markup_of_other_kinds_is_read(folder):
    """Title, facts and sections of reStructuredText and AsciiDoc are those of markdown."""
    records, _problems = folder(
        {
            "0001-a.rst": "1. Use A\n========\n\n:Status: Accepted\n:Date: 2020-01-02\n\n"
            "Decision\n--------\n\nYes.\n",
            "0002-b.adoc": "= 2. Use B\n:status: accepted\n:date: 2020-01-03\n\n"
            "== Decision\n\nYes.\n",
            "0003-c.rst": "Use C\n*****\n\nStatus\n~~~~~~\n\nSuperseded by `1 <0001-a.rst>`_\n",
        }
    )
    assert [record.fields["title"] for record in records.values()] == ["Use A", "Use B", "Use C"]
    assert {record.fields["status"] for record in records.values()} == {"confirmed"}
    assert records["adr-0001-a"].fields["timestamp"] == "2020-01-02T00:00:00Z"
    assert records["adr-0002-b"].fields["timestamp"] == "2020-01-03T00:00:00Z"
    assert records["adr-0001-a"].body.strip() == "## Decision\n\nYes."
    assert records["adr-0003-c"].superseded_by == ("0001-a.rst",)


def test_a_pep_is_read_among_other_records(folder):
    """A file with the headers of a PEP is that PEP."""
    records, _problems = folder({"pep-0008.rst": "PEP: 8\nTitle: Style\nStatus: Active\n\nText.\n"})
    assert records["pep-0008"].fields["status"] == "confirmed"


@pytest.mark.parametrize(
    "name",
    [
        "0000-adr-template.md",
        "NNNN-template.md",
        "plantilla.md",
        "adr-template-madr.md",
        "YYYYMMDD-x.md",
        "0000-index.md",
        "_partial.md",
    ],
)
def test_templates_and_indexes_are_left_out_by_their_names(folder, name):
    """What is there to be copied or to list records decides nothing."""
    records, problems = folder({name: f"# Use it{ACCEPTED}"})
    assert records == {}
    assert problems[0].message.endswith("; it is left out")


def test_a_decision_on_templates_is_a_record(folder):
    """The word for a template does not make one of a record with a number."""
    records, _problems = folder({"0012-template-engine.md": f"# Use it{ACCEPTED}"})
    assert list(records) == ["adr-0012-template-engine"]


def test_a_list_of_links_is_an_index(folder):
    """A page that mostly links to records is left out, whatever it is called."""
    links = "".join(f"* [{n}](000{n}-x.md)\n" for n in range(1, 5))
    files = {f"000{n}-x.md": f"# X{n}{ACCEPTED}" for n in range(1, 5)}
    records, problems = folder(files | {"0000-records.md": f"# Records\n\n{links}"})
    assert len(records) == 4
    assert [problem.message for problem in problems] == ["it is a list of records; it is left out"]


def test_a_record_needs_no_number_if_it_decides(folder):
    """Sections for a decision and its context make a record of a page."""
    records, _problems = folder(
        {"use-it.md": "# Use it\n\n## Kontext\n\nC\n\n## Entscheidung\n\nD\n"}
    )
    assert list(records) == ["adr-use-it"]


@pytest.mark.parametrize("unit", ["<!-- ", "[", "| a ", "**x", "Supersedes ", "`<", "a, "])
def test_a_large_record_is_read(folder, unit):
    """A record of a megabyte is read, whatever marks it is full of."""
    records, _problems = folder({"0001-x.md": "# T\n\n" + unit * (900_000 // len(unit))})
    assert records["adr-0001-x"].fields["title"] == "T"


def test_a_status_may_be_in_a_heading(read):
    """A heading with a key and its value is that fact; the date of an acceptance is a status."""
    heading = read("# T\n\n## Summary\n\nS\n\n### Status: **Approved**\n\n## Context\n\nC\n")
    assert heading.fields["status"] == "confirmed"
    assert "Approved" not in heading.body
    settled = read("# T\n\n## Timeline\n\n- Started: 2020-01-01\n- Rejected: 2020-01-02\n")
    assert settled.fields["status"] == "deprecated"


def test_a_record_without_successor_is_not_shown_as_valid(folder):
    """A superseded record is confirmed only if the record that replaces it is there."""
    records, _problems = folder(
        {
            "0001-a.md": "# A\n\n## Status\n\nSuperseded\n",
            "0002-b.md": "# B\n\n## Status\n\nAccepted\n\nSupersedes ADR-1\n",
            "0003-c.md": "# C\n\n## Status\n\nSuperseded\n",
            "0004-d.md": "# D\n\n## Status\n\nAccepted\n\nSuperseded by ADR-99\n",
            "0005-e.md": "# E\n\n* Status: accepted, superseded by ADR-99\n",
            "0006-f.md": "---\nstatus: accepted\nsuperseded-by: /our-past-effort.md\n---\n# F\n",
        }
    )
    statuses = [record.fields["status"] for record in records.values()]
    assert statuses == ["confirmed", "confirmed", *["deprecated"] * 3, "confirmed"]


def test_dates_of_a_folder_show_which_number_is_the_day(folder):
    """`03/04/2020` is read as the other dates of the folder must be, and else not at all."""
    both = {"0001-a.md": "# A\n\nDate: 03/04/2020\n", "0002-b.md": "# B\n\nDate: 23/04/2020\n"}
    records, _problems = folder({"0001-a.md": both["0001-a.md"]})
    assert records["adr-0001-a"].fields["x-date"] == "03/04/2020"
    records, _problems = folder(both)
    assert records["adr-0001-a"].fields["timestamp"] == "2020-04-03T00:00:00Z"
    assert records["adr-0001-a"].date_from == "Date"


@pytest.mark.parametrize(
    "names",
    [
        ("metadata.yaml", "README.md"),
        ("metadata.yaml", "fast-pods.md"),
        ("metadata.yaml", "vep.md", "notes.md"),
    ],
)
def test_other_folders_have_facts_and_a_text(folder, names):
    """The text of a numbered folder is its README.md, its only page, or one such as vep.md."""
    facts = "title: fast-pods\nstatus: implementable\ncreation-date: 2021-08-25\n"
    texts = {"metadata.yaml": facts, "notes.md": "# Notes\n"}
    page = "# VEP #12: Fast pods\n\nText.\n"
    records, _problems = folder({f"12-fast-pods/{name}": texts.get(name, page) for name in names})
    (record,) = records.values()
    assert (record.id, record.fields["title"]) == ("adr-12-fast-pods", "Fast pods")
    assert (record.fields["status"], record.body.strip()) == ("confirmed", "Text.")


def test_the_folder_of_a_year_is_not_a_record(folder):
    """Pages in a folder with only a number are records of their own."""
    records, _problems = folder({"2024/0001-x.md": f"# X{ACCEPTED}"})
    assert list(records) == ["adr-0001-x"]


def test_a_readme_with_a_status_is_the_record_of_its_folder(folder):
    """In a folder without a number, the front matter of the README.md tells."""
    records, problems = folder(
        {
            "README.md": "---\nstatus: accepted\n---\n# All\n",
            "fast-pods/README.md": "---\ntitle: x\nstatus: implementable\n---\n"
            "# Fast pods\n\nText.\n",
            "images/README.md": "# Images\n\nStatus: accepted\n",
        }
    )
    assert {id_: record.fields["title"] for id_, record in records.items()} == {
        "adr-fast-pods": "Fast pods"
    }
    assert len(problems) == 2


def test_a_link_to_a_renumbered_record_means_its_words(sandbox):
    """The number of a file that is gone says nothing if another record has it now."""
    text = "# {}. {}\n\n## Status\n\n{}\n\n## Decision\n\nSo.\n"
    sandbox.write(
        "adr/0014-papers.md", text.format(14, "Papers", "Superseded by [16](0016-papers-again.md)")
    )
    sandbox.write("adr/0016-uploads.md", text.format(16, "Uploads", "Accepted"))
    sandbox.write("adr/0025-papers-again.md", text.format(25, "Papers again", "Accepted"))
    rows = sandbox.json("import", "adr", "adr", "--dry-run")["memories"]
    assert [row["supersedes"] for row in rows] == [[], [], ["adr-0014-papers"]]


def test_a_relation_to_a_refused_record_is_left_out(sandbox):
    """The name of a file is no id of a memory, so nothing dangles in the tree."""
    text = "# {}. T{}\n\n## Status\n\n{}\n\n## Decision\n\n{}\n"
    card = "4111 1111 1111 1111"
    sandbox.write("adr/0001-a.md", text.format(1, 1, "Accepted", f"Pay with the card {card}."))
    amends = "Accepted\n\nAmends [1](0001-a.md)\n\nExtends [1](0001-a.md)"
    sandbox.write("adr/0002-b.md", text.format(2, 2, amends, "Do so."))
    answer = sandbox.json("import", "adr", "adr", "--dry-run")
    assert [row["related_to"] for row in answer["memories"]] == [[]]
    assert sorted(problem["code"] for problem in answer["problems"]) == [
        "dangling",
        "dangling",
        "personal-data",
    ]


@pytest.mark.parametrize(
    "text",
    [
        "---\nrequires: [1, 2]\n---\n# C\n",
        "---\ndepends-on: 0001-a.md, 0002-b.md\n---\n# C\n",
        "# C\n\n- Depends on: ADR-1 (storage), ADR-2 (names)\n",
        "# C\n\n- Depends on: ADR-1 (storage),\n  ADR-2 (names)\n\n## Context\n\nC\n",
        "# C\n\n* Status: accepted\n* Amends: ADR-1 and ADR-2\n",
        "# C\n\nDate: 2020-01-02 \u00b7 Status: accepted \u00b7 Builds on: ADR-1, ADR-2\n",
        "# C\n\n## Status\n\nAccepted\n\nAmends [1](0001-a.md)\n\nRequires ADR 2\n",
        "# C\n\n## Links\n\n* Based on [1](0001-a.md), [2](0002-b.md)\n",
        "# C\n\n## Dependencies\n\n- [ADR-1](0001-a.md)\n- ADR-2: names\n- Node 18\n- 3 days\n",
        "# C\n\n## Dependencies\n\n| Depends on | ADR-001 |\n| Requires | ADR-2 |\n| Like | 4 |\n",
        "# C\n\nBasiert auf: ADR-1\n\nSetzt voraus: ADR-2\n",
        "# C\n\nModifie : ADR-1\n\nD\u00e9pend de : ADR-2\n",
    ],
)
def test_a_record_rests_on_what_it_requires(folder, text):
    """What a record requires, depends on, is based on or amends is its premise, in any place."""
    bases = {
        f"000{n}-{name}.md": f"# {name}{ACCEPTED}" for n, name in ((1, "a"), (2, "b"), (4, "d"))
    }
    records, problems = folder({**bases, "0003-c.md": text})
    assert records["adr-0003-c"].premises == ("0001-a.md", "0002-b.md")
    assert "related_to" not in records["adr-0003-c"].fields
    assert [problem.code for problem in problems] == []


def test_the_line_of_a_premise_stays(folder):
    """It may say why, or name what is no record."""
    records, _problems = folder(
        {
            "0001-a.md": f"# A{ACCEPTED}",
            "0002-b.md": "---\nrequires: 1\n---\n# B\n\nDepends on: ADR-1 (storage)\n\n"
            "Requires: Node 18\n",
            "0003-c.md": "---\nrequires: Node 18\n---\n# C\n\nText.\n",
        }
    )
    assert records["adr-0002-b"].fields["x-requires"] == "1"
    assert "Depends on: ADR-1 (storage)" in records["adr-0002-b"].body
    assert "Requires: Node 18" in records["adr-0002-b"].body
    assert records["adr-0003-c"].fields["x-requires"] == "Node 18"
    assert records["adr-0003-c"].premises == ()


@pytest.mark.parametrize("word", ["Amended by", "Required by", "Ge\u00e4ndert durch"])
def test_the_amendment_rests_on_its_base_and_not_the_base_on_it(folder, word):
    """If only the base says so, the amendment still gets the premise; the base is related."""
    records, _problems = folder(
        {
            "0001-a.md": f"# A\n\n## Status\n\nAccepted\n\n{word} [2](0002-b.md)\n",
            "0002-b.md": f"# B{ACCEPTED}",
        }
    )
    assert records["adr-0001-a"].premises == ()
    assert records["adr-0001-a"].fields["related_to"] == ("0002-b.md",)
    assert records["adr-0002-b"].premises == ("0001-a.md",)


def test_a_premise_that_is_not_here_is_reported(sandbox):
    """A record that is named by its number is missed; any other page is not."""
    text = "# {0}\n\n## Status\n\nAccepted\n\nDepends on {1}\n\n## Decision\n\n{0}.\n"
    sandbox.write("adr/0001-a.md", text.format("Store files on disk", "ADR-9"))
    page = "[the design](../design.md)"
    sandbox.write("adr/0002-b.md", text.format("Pay with credit cards", page))
    problems = sandbox.json("import", "adr", "adr", "--dry-run")["problems"]
    assert [(problem["code"], problem["id"]) for problem in problems] == [
        ("dangling", "adr-0001-a")
    ]
