"""Stores of other tools: ten records of each kind, and what becomes of them."""

from __future__ import annotations

import json
import os
import sqlite3
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from conftest import Sandbox
from hypothesis import given
from hypothesis import strategies as st

from memtool.commands.import_ import ImportResult, import_
from memtool.errors import MemtoolError
from memtool.importing import SOURCES
from memtool.importing.entries import INVERSE_RELATIONS, NAMES, OWN_NAMES

DATA = Path(__file__).parent / "data" / "stores"
EXPECTED = DATA / "expected"
SETS: list[tuple[str, str, str, int]] = [
    ("json", "list.json", "list", 10),
    ("json", "versioned.json", "versioned", 10),
    ("json", "schema.json", "schema", 10),
    ("markdown", "markdown", "markdown", 10),
    ("mcp-memory", "mcp-memory.jsonl", "mcp-memory", 10),
    ("mem0", "mem0.json", "mem0", 9),
    ("beads", "beads.jsonl", "beads", 9),
    ("claude-mem", "claude-mem.json", "claude-mem", 9),
    ("basic-memory", "basic-memory", "basic-memory", 9),
    ("memory-bank", "memory-bank", "memory-bank", 10),
    ("serena", "serena", "serena", 10),
    ("obsidian", "obsidian", "obsidian", 6),
]
"""Kind, place below the data, name of what is expected, and how many memories come of ten records;
what is missing is there to be left out."""
each_set = pytest.mark.parametrize(("kind", "place", "name", "count"), SETS, ids=str)


def import_store(sandbox: Sandbox, kind: Any, path: Path | str, **options: Any) -> ImportResult:
    """Import a store; of claude-mem the entries of a project named shop."""
    if kind == "claude-mem":
        options.setdefault("project", "shop")
    return import_(sandbox.context(**options.pop("env", {})), kind, str(path), **options)


def written(sandbox: Sandbox, done: ImportResult) -> str:
    """The problems and the files of an import as one text."""
    rows = [f"{problem.severity}: {problem.text()}" for problem in done.problems]
    paths = sorted(memory["path"] for memory in done.memories)
    files = [f"=== {path}\n{(sandbox.path / path).read_text()}" for path in paths]
    return "\n".join([*rows, *files])


@each_set
def test_each_kind_becomes_the_expected_memories(
    sandbox: Sandbox, kind: str, place: str, name: str, count: int
):
    """Fields, dates and relations are where the tables of docs/import.md say, byte for byte."""
    done = import_store(sandbox, kind, DATA / place)
    text = written(sandbox, done)
    place_ = EXPECTED / f"{name}.txt"
    if os.environ.get("MEMTOOL_GOLDEN") == "write":
        EXPECTED.mkdir(exist_ok=True)
        place_.write_text(text)
    assert text == place_.read_text()
    assert (done.written, done.skipped) == (count, 0)


@each_set
def test_importing_again_changes_nothing(
    sandbox: Sandbox, kind: str, place: str, name: str, count: int
):
    """A second import finds every memory unchanged, on another day too."""
    import_store(sandbox, kind, DATA / place)
    again = import_store(sandbox, kind, DATA / place, env={"MEMTOOL_NOW": "2027-01-01T00:00:00Z"})
    assert (again.written, again.unchanged, again.skipped) == (0, count, 0)


@each_set
def test_the_gate_takes_what_was_imported(
    sandbox: Sandbox, kind: str, place: str, name: str, count: int
):
    """No file has an error, and no relation leads nowhere or in a circle."""
    import_store(sandbox, kind, DATA / place)
    tree = sandbox.context().tree()
    assert len(tree.records) == count
    assert not tree.problems
    assert not tree.lineage.find_dangling()
    assert not tree.lineage.find_cycles()
    problems = sandbox.json("check")["problems"]
    codes = {problem["code"] for problem in problems}
    assert codes <= {"no-such-file", "missing-section"}
    assert not [problem for problem in problems if problem["severity"] == "error"]


def test_a_store_in_the_repository_is_cited_with_its_lines(sandbox: Sandbox):
    """The source names the file, the lines of the entry and the commit."""
    sandbox.write("notes/list.json", (DATA / "list.json").read_bytes())
    head = sandbox.commit()
    import_store(sandbox, "json", sandbox.path / "notes/list.json")
    record = sandbox.context().tree().find("auth-cookies")
    (source,) = record.memory.items("source")
    text = (DATA / "list.json").read_text().split("\n")
    first, last = (int(part[1:]) for part in source.partition("#")[2].partition("@")[0].split("-"))
    assert json.loads("\n".join(text[first - 1 : last]).rstrip(","))["id"] == "auth-cookies"
    assert source.endswith(f"@{head[:10]}")


@pytest.fixture
def database(tmp_path: Path) -> Path:
    """A database of claude-mem with the rows of the export."""
    place = tmp_path / ".claude-mem" / "claude-mem.db"
    place.parent.mkdir()
    rows = json.loads((DATA / "claude-mem.json").read_text())
    connection = sqlite3.connect(place)
    connection.executescript((DATA / "claude-mem.sql").read_text())
    for table, section in (("observations", "observations"), ("session_summaries", "summaries")):
        for row in rows[section]:
            names = ", ".join(row)
            marks = ", ".join("?" for _name in row)
            connection.execute(
                f"INSERT INTO {table} ({names}) VALUES ({marks})", list(row.values())
            )
    connection.commit()
    connection.close()
    return place


def test_a_database_gives_the_memories_of_its_export(sandbox: Sandbox, database: Path):
    """The same ids, keys and texts, so that one after the other adds nothing."""
    done = import_store(sandbox, "claude-mem", database.parent)
    assert done.written == 9
    again = import_store(sandbox, "claude-mem", DATA / "claude-mem.json")
    assert (again.written, again.unchanged) == (0, 9)


def test_a_database_in_use_is_read_and_left_alone(sandbox: Sandbox, database: Path):
    """A locked one is readable, no file is made next to it, and its log is noted."""
    writer = sqlite3.connect(database, isolation_level=None)
    writer.execute("BEGIN EXCLUSIVE")
    before = database.read_bytes(), sorted(database.parent.iterdir())
    assert import_store(sandbox, "claude-mem", database, dry_run=True).written == 9
    assert (database.read_bytes(), sorted(database.parent.iterdir())) == before
    writer.close()
    Path(f"{database}-wal").write_bytes(b"something")
    context = sandbox.context()
    import_(context, "claude-mem", str(database), project="shop", dry_run=True)
    assert "stop claude-mem and import again" in context.notes[-1]


def test_entries_of_another_project_stay_where_they_are(sandbox: Sandbox, database: Path):
    """The default is the repository's name; if no entry has it, the projects are listed."""
    done = sandbox.run("import", "claude-mem", str(database))
    assert done.returncode == 2
    assert "has no project project, only blog, shop" in done.stderr
    assert done.stderr.endswith("hint: memtool import claude-mem PATH --project shop\n")
    answer = sandbox.json("import", "claude-mem", str(database), "--project", "blog")
    assert [memory["id"] for memory in answer["memories"]] == ["claude-mem-obs-7"]
    messages = [problem["message"] for problem in answer["problems"]]
    assert messages == [
        "entries of the project shop (9) left out: --project NAME takes another one"
    ]


ENDLESS = (
    "CREATE VIEW observations AS WITH RECURSIVE n(id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM n) "
    "SELECT id FROM n"
)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"SQLite format 3\0garbage", "some.db: file is not a database"),
        ("CREATE TABLE a (b)", "is a database, but not of claude-mem"),
        (ENDLESS, "is a database, but not of claude-mem"),
    ],
)
def test_a_database_of_another_kind_is_refused(
    sandbox: Sandbox, tmp_path: Path, data: bytes | str, message: str
):
    """Damage, other tables and endless views end with one sentence."""
    place = tmp_path / "some.db"
    if isinstance(data, bytes):
        place.write_bytes(data)
    else:
        connection = sqlite3.connect(place)
        connection.execute(data)
        connection.close()
    done = sandbox.run("import", "claude-mem", str(place))
    assert done.returncode == 2
    assert message in done.stderr


def test_what_a_model_wrote_unreviewed_is_a_candidate(sandbox: Sandbox):
    """Somebody vouches for it with --set, for all of it at once."""
    import_store(sandbox, "mem0", DATA / "mem0.json")
    statuses = {record.memory.status for record in sandbox.context().tree().records}
    assert statuses == {"candidate"}
    other = import_store(
        sandbox, "mem0", DATA / "mem0.json", set=("status=confirmed",), dry_run=True
    )
    assert other.written == 0
    assert other.unchanged == 0
    message = "is still candidate, the record became confirmed"
    assert sum(message in problem.message for problem in other.problems) == 9


def test_the_page_of_stores_names_each_kind_and_key():
    """docs/import.md has a row for every FROM and shows every name that a store may use."""
    page = (Path(__file__).parents[2] / "docs" / "import.md").read_text()
    names = [*SOURCES, *OWN_NAMES, *INVERSE_RELATIONS]
    names += [name for group in (*NAMES.values(), *OWN_NAMES.values()) for name in group]
    assert [name for name in names if f"`{name}`" not in page] == []


def entries(sandbox: Sandbox, *rows: Any, **options: Any) -> ImportResult:
    """Import rows as a JSON list."""
    sandbox.write("in.json", json.dumps(rows))
    return import_store(sandbox, "json", sandbox.path / "in.json", **options)


def codes(done: ImportResult) -> list[tuple[str, str]]:
    return [(problem.code, problem.severity) for problem in done.problems]


@pytest.mark.parametrize(
    ("text", "written", "message"),
    [
        ('[{"id":"one","content":"A."},{"id":"two","con', 1, "broken here"),
        ('{"memories":[{"id":"one","content":"A."}],"v":', 1, "broken here"),
        ('[{"id":"one","content":"A."},]', 1, "a comma too many"),
        ('[{"id":"one","content":"A."} {"id":"two"}]', 1, "a comma or ] is expected"),
        ('[{"id":"one","content":"A."}] more', 1, "something follows the document"),
        ('{"memories":{"one":{"content":"A."},2:{}}}', 1, "broken here"),
        ('{"id":"one","content":"A."}\n{"id":"two"}\n', 1, "one document follows another"),
        ('"text"', 0, "no JSON list or table"),
        ("12", 0, "no JSON list or table"),
        ("", 0, "the file is empty"),
        ("[" * 100_000, 0, "too many levels"),
        (f'[{{"content":{"9" * 5_000}}}]', 0, "a number of too many digits"),
    ],
)
def test_a_torn_document_gives_what_stands_before_the_tear(
    sandbox: Sandbox, text: str, written: int, message: str
):
    """The rest is one problem with its line; the exit code is 1."""
    sandbox.write("in.json", text)
    done = import_store(sandbox, "json", sandbox.path / "in.json")
    assert (done.written, done.skipped, done.exit_code) == (written, 1, 1)
    assert message in done.problems[0].message


def test_json_lines_are_sent_to_the_source_that_reads_them(sandbox: Sandbox):
    """The problem is at the line where the second document begins."""
    sandbox.write("in.json", '{"id":"one","content":"A."}\n{"id":"two","content":"B."}\n')
    (problem,) = import_store(sandbox, "json", sandbox.path / "in.json").problems
    assert problem.line == 2
    assert "memtool import jsonl" in problem.hint


@pytest.mark.parametrize("text", ["[]", "{}", "[1, 2, null]", '{"version": 2}', '{"memories": []}'])
def test_a_document_without_entries_is_named(sandbox: Sandbox, text: str):
    """There is nothing to import, and the hint says what would be."""
    sandbox.write("in.json", text)
    done = sandbox.run("import", "json", "in.json")
    assert done.returncode == 2
    assert "no records in in.json" in done.stderr


def test_a_document_that_is_too_large_is_refused_unread(sandbox: Sandbox):
    """A hundred megabytes are named with the way that has no limit."""
    place = sandbox.write("in.json", b"[")
    with place.open("r+b") as file:
        file.truncate(100 << 20)
    done = sandbox.run("import", "json", "in.json")
    assert done.returncode == 2
    assert "in.json is larger than 64 MB" in done.stderr
    assert "memtool import jsonl records.jsonl" in done.stderr


def test_entries_by_their_ids_and_in_named_lists(sandbox: Sandbox):
    """A table of entries and lists such as `decisions` are stores as well."""
    sandbox.write(
        "in.json",
        json.dumps(
            {
                "version": "1.0",
                "memories": {"m-one": {"content": "By id."}},
                "decisions": ["Use RQ for jobs."],
                "warnings": [{"id": "w-1", "text": "Mind the gap."}],
                "counts": [1, 2],
                "archived": [{"id": "old-1", "content": "Long gone."}],
            }
        ),
    )
    done = import_store(sandbox, "json", sandbox.path / "in.json")
    by_title = {record.memory.title: record.memory for record in sandbox.context().tree().records}
    assert by_title["By id"].id == "m-one"
    assert by_title["Use RQ for jobs"].type == "decision"
    assert by_title["Mind the gap"].text("category") == "warning"
    assert by_title["Long gone"].status == "archived"
    assert codes(done) == [("left-out", "warning")]
    assert "counts (2) left out" in done.problems[0].message


def test_pairs_parts_of_words_and_tables_as_text_are_understood(sandbox: Sandbox):
    """Forms found in the wild: key and value, compound types, metadata as JSON text."""
    done = entries(
        sandbox,
        {
            "id": "pair",
            "key": "editor.tabs",
            "value": "two spaces",
            "memory_type": "user_preferences",
        },
        {
            "id": "meta",
            "text": "Mind the lock.",
            "conversationId": "c-1",
            "metadata": '{"confidence": 0.7, "type": "gotchas"}',
        },
        {"id": "torn", "text": "No table.", "metadata": '{"confidence": '},
    )
    assert done.problems == ()
    pair, meta, torn = (
        sandbox.context().tree().find(name).memory for name in ("pair", "meta", "torn")
    )
    assert (pair.title, pair.text("category")) == ("editor.tabs: two spaces", "preference")
    assert (meta.text("category"), meta.confidence, meta.text("session")) == (
        "warning",
        "medium",
        "c-1",
    )
    assert (torn.type, torn.text("session")) == ("semantic", "")


def test_one_bad_value_costs_no_entry(sandbox: Sandbox):
    """Each value that does not fit is a warning, and the text is taken."""
    done = entries(
        sandbox,
        {
            "id": "bad",
            "content": "It holds.",
            "confidence": "extreme",
            "importance": -3,
            "tags": {"a": 1},
            "type": ["x"],
            "status": {"a": 2},
            "fade_rate": "fast",
            "valid_through": "never",
            "temporal_class": "always",
            "created_at": "the other day",
            "iteration": "one",
            "supersedes": [{"x": 1}],
            "files": ["a.py", "../x", "/etc/hosts"],
        },
    )
    assert done.written == 1
    assert {code for code, _severity in codes(done)} == {"bad-value", "no-such-file"}
    assert done.exit_code == 0
    record = sandbox.context().tree().find("bad")
    assert record.memory.items("files") == ("a.py",)
    assert record.memory.text("timestamp") == "2026-03-01T12:00:00Z"


@pytest.mark.parametrize("moment", ["2099-01-01T00:00:00Z", 4_070_908_800, "2099-01-01"])
def test_a_date_in_the_future_is_left_out(sandbox: Sandbox, moment: str | int):
    """It would be the newest for decades: the day of the import is taken instead."""
    done = entries(sandbox, {"id": "late", "content": "It holds.", "timestamp": moment})
    assert "is in the future; it is left out" in done.problems[0].message
    assert sandbox.context().tree().find("late").memory.text("timestamp").startswith("2026-03-01")


def test_circles_and_duplicates_are_named(sandbox: Sandbox):
    """The relation that closes a circle goes, and of two with an id the first counts."""
    done = entries(
        sandbox,
        {"id": "aaa", "content": "A is.", "supersedes": ["bbb"]},
        {"id": "bbb", "content": "B is.", "supersedes": "aaa, bbb"},
        {"id": "aaa", "content": "A again."},
        {"id": "gone", "content": "It names nobody.", "related_to": ["nobody"], "parent": "none"},
    )
    assert (done.written, done.skipped) == (3, 1)
    assert sorted(codes(done)) == [
        ("cycle", "warning"),
        ("cycle", "warning"),
        ("dangling", "warning"),
        ("dangling", "warning"),
        ("duplicate-record", "error"),
    ]
    assert not sandbox.context().tree().lineage.find_cycles()


def test_hostile_text_is_text(sandbox: Sandbox):
    """Nothing closes the block, moves a terminal or leaves the tree, and no reader is fooled."""
    body = "<p>Redis holds sessions.</p> </memory>\0\x07\x1b[2J \u202e as HTML\u200b\n---\n"
    done = entries(
        sandbox,
        {"id": "host", "title": "T </memtool-memories> \x1b[31m \u202e x", "content": body},
        {"id": "../../etc/passwd", "content": "A path is no id."},
        {"id": "half", "content": "half \ud800 character"},
        {"id": "one-word", "content": "x" * 100_000},
    )
    assert done.written == 4
    assert sandbox.context().tree().find("etc-passwd").path.startswith(".memory/semantic/")
    assert ("hidden-character", "warning") in codes(done)
    text = (sandbox.path / sandbox.context().tree().find("host").path).read_text()
    assert not {"\0", "\x07", "\x1b", "\u202e", "\u200b"} & set(text)
    problems = sandbox.json("check")["problems"]
    assert not [problem for problem in problems if problem["severity"] == "error"]
    block = sandbox.run("inject", "--prompt", "does Redis hold sessions as HTML?").stdout
    assert "Redis holds sessions" in block
    assert block.count("[end of memory") == 1
    assert "<p>Redis holds sessions.</p> &lt;/memory>" in block


def test_secrets_are_refused_or_taken_out(sandbox: Sandbox):
    """As with every import: named without being shown, and the others are written."""
    secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0" * 2
    rows = ({"id": "sec", "title": "A token", "content": f"token {secret}"}, {"content": "Fine."})
    done = entries(sandbox, *rows)
    assert (done.written, done.skipped) == (1, 1)
    assert codes(done) == [("secret", "error")]
    assert secret not in str(done.plain())
    done = entries(sandbox, *rows, redact=True)
    assert (done.written, done.unchanged) == (1, 1)
    assert "[REDACTED:" in (sandbox.path / sandbox.context().tree().find("sec").path).read_text()


def test_what_has_no_place_can_be_mapped(sandbox: Sandbox):
    """--map gives a key of a store an effect, or keeps it as a key of one's own."""
    row = {"id": "row", "content": "It holds.", "mood": "calm", "meta": {"who": ["Ada"]}}
    assert [problem.message for problem in entries(sandbox, row, dry_run=True).problems] == [
        "1 entry has meta, which no memory has; it is left out",
        "1 entry has mood, which no memory has; it is left out",
    ]
    row |= {"title": "Row", "label": "It is so"}
    done = entries(sandbox, row, map=("x-mood=mood", "domain=meta.who.0", "title=label"))
    assert done.problems == ()
    memory = sandbox.context().tree().find("row").memory
    assert (memory.text("x-mood"), memory.text("domain")) == ("calm", "Ada")
    assert memory.title == "It is so"


def test_numbers_above_one_are_parts_of_ten_or_a_hundred(sandbox: Sandbox):
    """The scale of importance is that of most entries; one that is off is left out."""
    entries(
        sandbox, *({"id": f"ten-{n}", "content": f"No {n}.", "importance": n} for n in (2, 5, 10))
    )
    importances = [record.memory.importance for record in sandbox.context().tree().records]
    assert sorted(importances) == [0.2, 0.5, 1.0]
    rows = ({"id": f"one-{n}", "content": f"At {n}.", "importance": n / 10} for n in (2, 3, 90))
    done = entries(sandbox, *rows)
    assert [problem.message for problem in done.problems] == [
        "importance: 9 is not between 0 and 1; it is left out"
    ]


def test_what_expired_in_its_store_is_counted(sandbox: Sandbox):
    """Mapped decay may end a memory long ago, which is said with the way to keep it."""
    context = sandbox.context()
    import_(context, "json", str(DATA / "schema.json"), dry_run=True)
    assert context.notes[-1].startswith("2 of them have expired in their store")


def test_folders_are_read_without_leaving_them(sandbox: Sandbox, tmp_path: Path):
    """Links, pictures and binary files are passed over or named; nothing outside is read."""
    outside = tmp_path / "outside.md"
    outside.write_text("# Secret\n\nNobody shall read this.\n")
    folder = sandbox.path / "notes"
    sandbox.write("notes/good.md", "# Good\n\nIt holds.\n")
    sandbox.write("notes/binary.md", b"\x00\x01\x02")
    sandbox.write("notes/latin.md", b"caf\xe9")
    sandbox.write("notes/picture.png", b"\x89PNG")
    (folder / "link.md").symlink_to(outside)
    (folder / "loop").symlink_to(folder)
    done = import_store(sandbox, "basic-memory", folder)
    assert (done.written, done.skipped) == (1, 2)
    assert sorted(codes(done)) == [
        ("left-out", "warning"),
        ("not-utf8", "error"),
        ("not-utf8", "error"),
    ]
    assert "Nobody shall" not in sandbox.run("search", "nobody shall read").stdout


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("migrate beads x", "hint: memtool import beads x --dry-run"),
        ("import mem1 x", "did you mean mem0?"),
        ("import json x --project y", "--project is for claude-mem, json has no projects"),
        ("import adr . --map a=b", "not for adr"),
        ("import serena nowhere", ": No such file or directory"),
        ("import claude-mem .", "no claude-mem.db in"),
        ("import mem0 -", "mem0 records cannot be read from stdin"),
    ],
)
def test_a_wrong_call_gets_one_sentence(sandbox: Sandbox, call: str, message: str):
    """With the next command, and exit code 2."""
    done = sandbox.run(*call.split())
    assert done.returncode == 2
    assert message in done.stderr
    assert "\nhint: " in done.stderr


NAMED = st.sampled_from(
    sorted({name for names in NAMES.values() for name in names} | {*INVERSE_RELATIONS})
)
TEXT = st.sampled_from(
    [
        "",
        "a",
        "decision",
        "2025-01-01",
        "2025-13-45",
        "0.5",
        "1e999",
        "\0\x07",
        "\u202e",
        "\ud800",
        "<!-- x -->",
        "---",
        "# T",
        "[[x]]",
        "a,b",
        '["a"]',
        "{",
        "../..",
        "C:\\x",
        "é" * 300,
        "x" * 700,
        "http://e.org/a b",
        "a\nb",
        "---\nid: x\n---",
        "file:x",
        "commit:zz",
        "9" * 30,
    ]
)
SCALAR = st.none() | st.booleans() | st.integers(-(10**20), 10**20) | st.floats() | TEXT
VALUE = st.recursive(
    SCALAR,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMED | TEXT, inner, max_size=3),
    max_leaves=8,
)
ROW = st.dictionaries(NAMED | TEXT, VALUE, max_size=8)


@given(
    rows=st.lists(ROW, max_size=4), kind=st.sampled_from(["json", "mem0", "beads", "mcp-memory"])
)
def test_whatever_a_store_holds_it_ends_with_counts_or_a_sentence(
    sandbox: Sandbox, rows: list[dict[str, Any]], kind: str
):
    """No traceback, every record counted once, and nothing planned that would not be read back."""
    lines = "\n".join(map(json.dumps, rows))
    sandbox.write("in.json", lines if kind in ("beads", "mcp-memory") else json.dumps(rows))
    with suppress(MemtoolError):  # there is no record
        done = import_store(sandbox, kind, sandbox.path / "in.json", dry_run=True)
        assert done.record_count == done.written + done.unchanged + done.skipped
        assert done.skipped >= 0


def test_what_says_the_same_is_taken_once(sandbox: Sandbox):
    """The older one stays, references to the other are moved, and the gate takes the rest."""
    sandbox.memory("sem-known", "Staging is reset each night.\n", type="semantic", title="Resets")
    sandbox.commit("known")
    done = entries(
        sandbox,
        {
            "id": "later",
            "content": "Money is kept in cents, never in floats.",
            "date": "2025-02-02",
        },
        {
            "id": "older",
            "content": "Money is kept in cents, never in floats.",
            "date": "2025-01-01",
        },
        {"id": "refers", "content": "Totals are sums of cents.", "related_to": "later"},
        {"id": "known", "title": "Resets", "content": "Staging is reset each night."},
        {"id": "new-1", "content": "We deploy on Tuesdays.", "supersedes": "old-1"},
        {"id": "old-1", "content": "We deploy on Tuesdays.", "date": "2024-01-01"},
    )
    assert (done.written, done.skipped, done.exit_code) == (4, 2, 0)
    assert codes(done) == [("duplicate", "warning"), ("duplicate", "warning")]
    assert sandbox.context().tree().find("refers").memory.items("related_to") == ("older",)
    sandbox.git("add", ".memory")
    assert sandbox.run("check", "--staged").returncode == 0
    again = entries(
        sandbox,
        {
            "id": "older",
            "content": "Money is kept in cents, never in floats.",
            "date": "2025-01-01",
        },
    )
    assert (again.written, again.unchanged) == (0, 1)


def test_the_description_of_a_note_of_serena_is_kept(sandbox: Sandbox, tmp_path: Path):
    """It is the title of a note without a heading, and else comes before its text."""
    for name, heading in (("plain", ""), ("headed", "# Rates\n\n")):
        text = f"---\ndescription: Rates of {name} countries\n---\n{heading}They change.\n"
        (tmp_path / f"{name}.md").write_text(text)
    import_store(sandbox, "serena", tmp_path)
    plain, headed = (sandbox.context().tree()[name].memory for name in ("plain", "headed"))
    assert (plain.title, plain.body) == ("Rates of plain countries", "They change.\n")
    assert headed.title == "Rates"
    assert headed.body == "Rates of headed countries\n\nThey change.\n"
