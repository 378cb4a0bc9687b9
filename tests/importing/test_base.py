"""An import: relations, ids, citations, secrets, and what is refused."""

from __future__ import annotations

import json
import os
import random
from pathlib import Path
from typing import Any

import pytest
from conftest import Sandbox, make_memory
from hypothesis import given
from hypothesis import strategies as st
from redaction import corpus

from memtool.commands.import_ import import_
from memtool.errors import MemtoolError
from memtool.importing.base import without_cycles
from memtool.memory import document
from memtool.memory.lineage import Lineage
from memtool.store import files


@pytest.fixture
def lines(sandbox):
    """Write rows as JSON lines next to the repository, import them, and return the result."""

    def write_and_import(*rows, to=None, **options):
        place = sandbox.path.parent / "records.jsonl"
        place.write_text("".join(json.dumps(row) + "\n" for row in rows))
        return import_(to or sandbox.context(), "jsonl", str(place), **options)

    return write_and_import


def row(id, **other):
    return {
        "id": id,
        "title": f"Title of {id}",
        "type": "decision",
        "text": f"Text of {id}.",
    } | other


def memory(sandbox, id):
    return sandbox.context().tree()[id].memory


def codes(done):
    return [(problem.code, problem.severity) for problem in done.problems]


EDGES = ("superseded_by=newer", "supersedes=older")


def test_superseded_by_is_stored_on_the_newer_record(sandbox, lines):
    """The older memory keeps silent; the newer one names it, once if both said so."""
    lines(row("dec-old", newer="dec-new"), row("dec-new", older=["dec-old"]), map=EDGES)
    assert memory(sandbox, "dec-new").supersedes == ("dec-old",)
    assert "supersedes" not in memory(sandbox, "dec-old").fields


def test_an_edge_to_nowhere_is_left_out_with_a_warning(sandbox, lines):
    """A dangling relation is not written, which is not an error."""
    done = lines(row("dec-new", older="dec-gone"), row("dec-old", newer="dec-lost"), map=EDGES)
    assert codes(done) == [("dangling", "warning"), ("dangling", "warning")]
    assert done.exit_code == 0
    assert memory(sandbox, "dec-new").supersedes == ()


def test_a_refused_record_takes_the_edges_to_it_along(sandbox, lines):
    """No memory supersedes a record that could not be taken."""
    done = lines(row("dec-new", older="dec-bad"), row("dec-bad", type="poem"), map=EDGES[1:])
    assert sorted(codes(done)) == [("bad-value", "error"), ("dangling", "warning")]
    assert memory(sandbox, "dec-new").supersedes == ()


def test_an_edge_may_lead_into_the_tree(sandbox, lines):
    """A record may supersede a memory that was there before."""
    sandbox.memory("dec-here")
    lines(row("dec-new", older="dec-here"), map=EDGES)
    assert memory(sandbox, "dec-new").supersedes == ("dec-here",)


def test_a_circle_loses_one_edge(sandbox, lines):
    """Records that supersede each other become a line, and the refused edge is told."""
    done = lines(row("dec-aa", newer="dec-bb"), row("dec-bb", newer="dec-aa"), map=EDGES[:1])
    assert codes(done) == [("cycle", "warning")]
    assert done.written == 2
    assert sandbox.context().tree().lineage.find_cycles() == ()


def test_a_record_does_not_supersede_itself(sandbox, lines):
    """The smallest circle is refused as well."""
    done = lines(row("dec-aa", newer="dec-aa"), map=EDGES[:1])
    assert codes(done) == [("cycle", "warning")]
    assert memory(sandbox, "dec-aa").supersedes == ()


def test_a_changed_record_supersedes_its_memory(sandbox, lines):
    """The memory keeps its bytes; the new one names it, and a repeated import adds nothing."""
    lines(row("dec-aa"))
    path = sandbox.path / sandbox.context().tree()["dec-aa"].path
    before = path.read_bytes()
    changed_row = row("dec-aa", text="It is otherwise.", title="It's new")
    done = lines(changed_row)
    assert path.read_bytes() == before
    assert (done.written, done.updated, done.skipped, done.problems) == (1, 1, 0, ())
    new = memory(sandbox, done.memories[0]["id"])
    assert (new.title, new.supersedes) == ("It's new", ("dec-aa",))
    assert lines(changed_row).unchanged == 1


def test_a_record_that_goes_back_supersedes_again(sandbox, lines):
    """What a record says now counts, also if it said so before."""
    for text in ("One.", "Two.", "One.", "Two."):
        assert lines(row("dec-aa", text=text)).written == 1
        assert lines(row("dec-aa", text=text)).unchanged == 1
    tree = sandbox.context().tree()
    (head,) = tree.lineage.find_heads("dec-aa")
    assert (tree[head].memory.body, len(tree.records)) == ("Two.\n", 4)


def test_a_changed_record_keeps_what_people_decided(sandbox, lines):
    """A record without a status does not unpin its memory, nor confirm it."""
    lines(row("dec-aa"))
    path = sandbox.context().tree()["dec-aa"].path
    data = (sandbox.path / path).read_bytes()
    (sandbox.path / path).write_bytes(document.edit(data, {"status": "pinned"}))
    done = lines(row("dec-aa", text="It is otherwise."))
    assert memory(sandbox, done.memories[0]["id"]).status == "pinned"


def test_a_corrected_memory_is_not_superseded_by_its_record(sandbox, lines):
    """If a person corrected the memory and the record changed too, a person decides."""
    lines(row("dec-aa"))
    sandbox.memory("dec-ab", "A correction.\n", supersedes=("dec-aa",))
    assert lines(row("dec-aa")).unchanged == 1
    done = lines(row("dec-aa", text="It is otherwise.", title="It's new"))
    assert (done.written, done.skipped, done.exit_code) == (0, 1, 0)
    assert "another title, body" in done.problems[0].message
    assert done.problems[0].hint == "memtool supersede dec-ab 'It'\"'\"'s new'"


def test_an_unchanged_file_is_unchanged_however_it_is_read(sandbox):
    """A newer memtool may read a file differently, which is no change of its record."""
    sandbox.write("docs/0001-one.md", "# 1. One\n\nText.\n")
    sandbox.commit()
    import_(sandbox.context(), "adr", str(sandbox.path / "docs"))
    (record,) = sandbox.context().tree().records
    path = sandbox.path / record.path
    path.write_text(path.read_text().replace("\nText.", "\nRead in an older way."))
    assert import_(sandbox.context(), "adr", str(sandbox.path / "docs")).unchanged == 1
    sandbox.write("docs/0001-one.md", "# 1. One\n\nAnother text.\n")
    done = import_(sandbox.context(), "adr", str(sandbox.path / "docs"))
    assert (done.written, done.updated) == (1, 1)


def test_a_successor_with_the_new_words_settles_a_change(sandbox, lines):
    """Once a memory that says what the record says supersedes it, the record is unchanged."""
    lines(row("dec-aa"))
    sandbox.memory("dec-ab", "It is otherwise.\n", supersedes=("dec-aa",))
    assert lines(row("dec-aa", text="It is otherwise.")).unchanged == 1
    done = lines(row("dec-aa", text="And again."))
    assert done.problems[0].hint.startswith("memtool supersede dec-ab ")


def test_what_people_changed_since_is_no_change_of_the_record(sandbox, lines):
    """Lifecycle and tags belong to the tree once they are there."""
    lines(row("dec-aa", tags=["old"], status="accepted"), map=("status=status",))
    path = sandbox.context().tree()["dec-aa"].path
    data = (sandbox.path / path).read_bytes()
    (sandbox.path / path).write_bytes(document.edit(data, {"status": "pinned", "tags": ("new",)}))
    done = lines(row("dec-aa", tags=["old"], status="accepted"), map=("status=status",))
    assert (done.unchanged, done.problems) == (1, ())


def test_a_record_that_moved_on_is_told(sandbox, lines):
    """A proposal that was accepted at its home is to be confirmed here, by a person."""
    lines(row("dec-aa", status="proposed"), map=("status=status",))
    done = lines(row("dec-aa", status="accepted"), map=("status=status",))
    assert done.problems[0].hint == "memtool confirm dec-aa"
    assert memory(sandbox, "dec-aa").status == "candidate"


def test_an_id_of_somebody_else_gets_a_lasting_suffix(sandbox, lines):
    """A record with a taken id is written next to it, the same way each time."""
    sandbox.memory("dec-aa", "Something else.\n")
    first = lines(row("dec-aa"))
    assert first.memories[0]["id"].startswith("dec-aa-")
    assert lines(row("dec-aa")).unchanged == 1


def test_an_unreadable_file_keeps_its_id(sandbox, lines):
    """No second file is written for it, since both would be the same memory."""
    sandbox.write(".memory/decision/dec-aa.md", "no memory\n")
    done = lines(row("dec-aa"))
    assert codes(done) == [("duplicate-id", "error")]
    assert done.exit_code == 1


def test_files_of_the_repository_are_cited_with_lines_and_commit(sandbox):
    """A committed file is cited at its revision, a changed one without."""
    sandbox.write("docs/0001-one.md", "# 1. One\n\nText.\n")
    sandbox.write("docs/0002-two.md", "# 2. Two\n\nText.\n")
    head = sandbox.commit()
    sandbox.write("docs/0002-two.md", "# 2. Two\n\nOther text.\n")
    import_(sandbox.context(), "adr", "docs")
    assert memory(sandbox, "adr-0001-one").items("source") == (
        f"file:docs/0001-one.md#L1-L3@{head[:10]}",
    )
    assert memory(sandbox, "adr-0002-two").items("source") == ("file:docs/0002-two.md#L1-L3",)


def test_a_later_commit_is_no_change_of_the_record(sandbox):
    """The revision in the source moves with HEAD; the memory stays unchanged."""
    sandbox.write("docs/0001-one.md", "# 1. One\n\nText.\n")
    sandbox.commit()
    import_(sandbox.context(), "adr", "docs", commit=True)
    assert import_(sandbox.context(), "adr", "docs").unchanged == 1


def test_a_record_without_date_has_that_of_its_first_commit(sandbox):
    """Git knows when a file came; of what it does not know, now is the time."""
    sandbox.write("docs/0001-one.md", "# 1. One\n\nText.\n")
    sandbox.commit()
    first = sandbox.git("log", "-1", "--format=%at").strip()
    sandbox.write("docs/0001-one.md", "# 1. One\n\nMore text.\n")
    sandbox.commit()
    sandbox.write("docs/0002-two.md", "# 2. Two\n")
    import_(sandbox.context(), "adr", "docs")
    assert memory(sandbox, "adr-0001-one").timestamp == int(first)
    assert memory(sandbox, "adr-0002-two").text("timestamp") == "2026-03-01T12:00:00Z"


def test_paths_are_relative_to_where_the_user_stands(sandbox):
    """A relative path counts from the caller's directory, not from the top."""
    sandbox.write("docs/adr/0001-one.md", "# 1. One\n")
    done = sandbox.run("import", "adr", "adr", cwd=sandbox.path / "docs")
    assert done.returncode == 0, done.stderr
    assert "file:docs/adr/0001-one.md#L1-L1" in memory(sandbox, "adr-0001-one").items("source")


def test_a_long_body_is_cut_to_a_memory(sandbox, lines):
    """A text above the limit is cut at a paragraph, and importing it again changes nothing."""
    long = row("dec-aa", text="A paragraph of text.\n\n" * 6_000)
    lines(long)
    size = 6_000 * 22 - 1
    end = f"A paragraph of text.\n\n[cut here: the whole text of {size:,} bytes is in "
    assert end in memory(sandbox, "dec-aa").body[-150:]
    assert lines(long).unchanged == 1


def test_imported_memories_do_not_expire(sandbox, lines):
    """They are eternal unless the record or the user says otherwise."""
    lines(row("dec-aa"))
    assert memory(sandbox, "dec-aa").text("temporal_class") == "eternal"
    lines(row("dec-bb"), set=("temporal_class=long_term",))
    assert memory(sandbox, "dec-bb").text("temporal_class") == "long_term"


def test_a_refused_write_leaves_nothing_behind(sandbox, lines):
    """Where one file cannot be written, those before it are removed again."""
    blocked = sandbox.path / ".memory" / "state"
    blocked.write_text("a file where a directory should be")
    with pytest.raises(MemtoolError):
        lines(row("dec-aa"), row("sta-zz", type="state"))
    assert [p for p in (sandbox.path / ".memory").rglob("*") if p.is_file()] == [blocked]


def test_create_all_keeps_what_was_there(tmp_path):
    """A taken name refuses the batch, and the file that has it keeps its bytes."""
    files.create(str(tmp_path), "a/two", b"old")
    with pytest.raises(files.NameTakenError):
        files.create_all(str(tmp_path), [("a/one", b"1"), ("a/two", b"2"), ("a/three", b"3")])
    assert sorted(os.listdir(tmp_path / "a")) == ["two"]
    assert (tmp_path / "a/two").read_bytes() == b"old"


def test_the_same_records_give_the_same_bytes_anywhere(sandbox, lines, tmp_path):
    """Nothing of the machine or the run gets into a file."""
    lines(row("dec-aa"), row("dec-bb"))
    first = {p.name: p.read_bytes() for p in Path(sandbox.path / ".memory").rglob("*.md")}
    for path in Path(sandbox.path / ".memory").rglob("*.md"):
        path.unlink()
    lines(row("dec-bb"), row("dec-aa"))
    again = {p.name: p.read_bytes() for p in Path(sandbox.path / ".memory").rglob("*.md")}
    assert again == first


TOKEN = corpus.draw_value("ghp_{a36}", random.Random(1))


def imported(sandbox: Sandbox, records: list[dict[str, Any]], *args: str) -> dict[str, Any]:
    text = "".join(json.dumps(record) + "\n" for record in records)
    path = sandbox.write("../records.jsonl", text)
    done = sandbox.run("import", "jsonl", str(path), "--json", *args)
    assert TOKEN not in done.stdout + done.stderr
    return dict(json.loads(done.stdout) | {"code": done.returncode})


def record(id: str, **fields: Any) -> dict[str, Any]:
    base = {"id": id, "type": "decision", "title": f"Title of {id}", "text": "It is so."}
    return base | fields


def test_a_record_with_a_secret_is_skipped_and_the_others_are_written(sandbox: Sandbox) -> None:
    """The problem names the kind and the line of the record, and how to go on."""
    records = [record("dec-a"), record("dec-b", text=f"Use {TOKEN}."), record("dec-c")]
    done = imported(sandbox, records)
    assert (done["found"], done["written"], done["skipped"], done["code"]) == (3, 2, 1, 1)
    (problem,) = done["problems"]
    assert (problem["code"], problem["line"], problem["id"]) == ("secret", 2, "dec-b")
    assert problem["message"] == "it contains a github token"
    assert "--redact takes it out" in problem["hint"]
    assert imported(sandbox, records)["unchanged"] == 2


def test_a_refused_file_is_named_with_the_line_and_the_whole_command(sandbox: Sandbox) -> None:
    """Records that are whole files are named with their line; hints can be typed."""
    sandbox.write(
        "my adrs/0001-x.md", "# 1. X\n\n## Status\n\nAccepted\n\nAsk jane.roe@acme.dev.\n"
    )
    done = sandbox.json("import", "adr", "my adrs")
    (problem,) = done["problems"]
    assert (problem["path"], problem["line"]) == ("my adrs/0001-x.md", 7)
    assert problem["hint"].startswith("memtool import adr 'my adrs' --redact takes it out; ")


def test_what_refers_to_a_skipped_record_loses_only_that(sandbox: Sandbox) -> None:
    """A refused record leaves no dangling id behind."""
    records = [record("dec-a", text=TOKEN), record("dec-b", supersedes=["dec-a"])]
    done = imported(sandbox, records, "--map", "supersedes=supersedes")
    assert [memory["id"] for memory in done["memories"]] == ["dec-b"]
    assert "supersedes" not in (sandbox.path / done["memories"][0]["path"]).read_text()


def test_redact_takes_secrets_out_the_same_way_every_time(sandbox: Sandbox) -> None:
    """Body and values get marks, and importing again changes nothing."""
    records = [record("dec-a", text=f"Use {TOKEN}, ask jane.roe@acme.dev.", tags=["auth", TOKEN])]
    done = imported(sandbox, records, "--redact")
    assert (done["written"], done["code"]) == (1, 0)
    text = (sandbox.path / done["memories"][0]["path"]).read_text()
    assert "\nUse [REDACTED:github-token], ask [REDACTED:email].\n" in text
    assert 'tags: [auth, "[REDACTED:github-token]"]\n' in text
    assert imported(sandbox, records, "--redact")["unchanged"] == 1
    assert not sandbox.run("redact").returncode


@pytest.mark.parametrize("field", ["title", "id"])
def test_a_secret_in_the_name_is_refused_even_so(sandbox: Sandbox, field: str) -> None:
    """The id is the file's name, and often made of the title; no hint leads into a dead end."""
    secret = corpus.draw_value("glpat-{l20}", random.Random(3))
    for options in ((), ("--redact",)):
        done = imported(sandbox, [record("dec-a") | {field: secret}], *options)
        assert (done["written"], done["problems"][0]["code"]) == (0, "secret")
        assert done["problems"][0]["hint"].startswith("take it out of the record: --redact leaves")
        assert secret not in done["problems"][0]["message"]


def test_addresses_are_personal_data_unless_they_are_allowed(sandbox: Sandbox) -> None:
    """An address of somebody is refused; a setting allows all of a domain."""
    records = [record("dec-a", text="Write to ann.lee@acme.io.")]
    assert imported(sandbox, records)["problems"][0]["code"] == "personal-data"
    sandbox.write(".memory/config.toml", '[redaction]\nallow_emails = ["acme.io"]\n')
    assert imported(sandbox, records)["written"] == 1


def test_a_secret_for_every_record_is_refused_at_once(sandbox: Sandbox) -> None:
    """A value on the command line would be written into each record."""
    path = sandbox.write("../records.jsonl", json.dumps(record("dec-a")) + "\n")
    done = sandbox.run("import", "jsonl", str(path), "--set", f"x-note={TOKEN}")
    assert done.returncode == 2
    assert "the text contains a github token: " in done.stderr


IDS = [f"dec-{letter}" for letter in "abcdef"]
OLDER = st.lists(st.sampled_from(IDS), unique=True, max_size=4).map(tuple)
GRAPHS = st.fixed_dictionaries(dict.fromkeys(IDS, OLDER))


def _cycles(older):
    return Lineage(make_memory(id_, supersedes=olds) for id_, olds in older.items()).find_cycles()


@given(GRAPHS)
def test_no_circle_is_left(older):
    """The remaining edges have no circle, and together with the dropped they are all edges."""
    acyclic, dropped = without_cycles(older)
    assert _cycles(acyclic) == ()
    edges = {(newer, old) for newer, olds in acyclic.items() for old in olds} | set(dropped)
    assert edges == {(newer, old) for newer, olds in older.items() for old in olds}


@given(GRAPHS)
def test_no_edge_is_dropped_without_need(older):
    """A graph without circles keeps every edge, and a dropped edge would close a circle."""
    acyclic, dropped = without_cycles(older)
    if not _cycles(older):
        assert dropped == []
    for newer, old in dropped:
        assert _cycles(acyclic | {newer: (*acyclic[newer], old)})


def test_long_chains_do_not_recurse():
    """A chain of thousands that bites its tail loses just one edge."""
    names = [f"dec-{number:05}" for number in range(20_000)]
    older = {newer: (two,) for newer, two in zip(names, [*names[1:], names[0]], strict=True)}
    _acyclic, dropped = without_cycles(older)
    assert dropped == [(names[-1], names[0])]
