from __future__ import annotations

import gzip
import json

import pytest

from memtool.errors import MemtoolError
from memtool.importing import jsonl
from memtool.importing.originals import ImportRequest
from memtool.memory.schema import Problem


@pytest.fixture
def read(tmp_path):
    """Read drafts and problems from rows or raw lines."""

    def drafts(*rows, pairs=(), compress=False):
        place = tmp_path / "records.jsonl"
        data = b"\n".join(r if isinstance(r, bytes) else json.dumps(r).encode() for r in rows)
        place.write_bytes(gzip.compress(data) if compress else data)
        return list(
            jsonl.drafts(str(place), ImportRequest("/nowhere", places=jsonl.build_field_map(pairs)))
        )

    return drafts


def test_mapped_paths_lead_into_objects_and_lists(read):
    """A path goes through tables by name and lists by number; a key with dots is one key."""
    value = {"id": "abc", "meta": {"who": [{"n": "Ada"}]}, "a.b": "here"}
    (draft,) = read(value, pairs=("domain=meta.who.0.n", "feature=a.b"))
    assert (draft.fields["domain"], draft.fields["feature"]) == ("Ada", "here")


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("tags", "a, b,,a", ("a", "b")),
        ("tags", ["a", 2, True], ("a", "2", "true")),
        ("importance", 0.5, "0.5"),
        ("action_required", True, "true"),
        ("status", "Rejected", "deprecated"),
        ("type", "Decision", "decision"),
        ("timestamp", "2020-01-02", "2020-01-02T00:00:00Z"),
        ("timestamp", 1577923200, "2020-01-02T00:00:00Z"),
        ("timestamp", 1577923200000, "2020-01-02T00:00:00Z"),
        ("timestamp", "soon", "soon"),
        ("source", "https://example.org/a", ("url:https://example.org/a",)),
        ("x-who", ["Ada", "Grace"], "Ada, Grace"),
        ("checked", {"at": "2020-01-02T00:00:00Z"}, {"at": "2020-01-02T00:00:00Z"}),
    ],
)
def test_values_become_what_their_key_holds(read, name, value, expected):
    """Lists, numbers, days and states are turned into the text of a memory."""
    draft = read({"id": "abc", "v": value}, pairs=(f"{name}=v",))[-1]
    assert draft.fields[name] == expected


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("tags", {"a": 1}),
        ("body", ["a"]),
        ("domain", {"a": 1}),
        ("status", ["a"]),
        ("checked", "x"),
    ],
)
def test_values_of_another_shape_are_problems(read, name, value):
    """A table instead of a line refuses that record, with its line number."""
    (problem,) = read({"id": "abc", "v": value}, pairs=(f"{name}=v",))
    assert (problem.code, problem.line, problem.severity) == ("bad-value", 1, "error")


@pytest.mark.parametrize(
    "line",
    [
        b"{",
        b"nonsense",
        b"\xff\xfe",
        b"1",
        b'"text"',
        b"[" * 100_000,
        b'{"a": ' * 100_000,
        b'{"id": ' + b"9" * 10_000 + b"}",
    ],
    ids=["open", "word", "bytes", "number", "string", "deep-list", "deep-table", "long-number"],
)
def test_lines_that_are_no_objects_are_problems(read, line):
    """A broken line is told with its number, and the next one is read."""
    problem, draft = read({"id": "first"}, line, {"id": "third"})[1:]
    assert (problem.code, problem.line) == ("not-json", 2)
    assert draft.lines == (3, 3)


def test_a_line_without_end_is_passed_over(read, monkeypatch):
    """A line above the bound is never held in memory, and the next one is read."""
    monkeypatch.setattr(jsonl, "MAX_LINE_BYTES", 1000)
    problem, draft = read({"id": "abc", "text": "x" * 10_000}, {"id": "def"})
    assert (problem.code, problem.line) == ("too-large", 1)
    assert draft.id == "def"


def test_compressed_files_are_known_by_their_bytes(read):
    """Gzip needs no name, and lines keep their numbers."""
    draft, problem = read({"id": "abc"}, b"{", compress=True)
    assert draft.original.is_compressed
    assert problem.line == 2


def test_a_broken_archive_gives_what_came_before(tmp_path):
    """A truncated download is reported at its end."""
    place = tmp_path / "a.gz"
    rows = "".join(json.dumps({"id": f"dec-{n}", "text": str(n) * 50}) + "\n" for n in range(5000))
    place.write_bytes(gzip.compress(rows.encode())[:20_000])
    *drafts, problem = jsonl.drafts(str(place), ImportRequest("/nowhere"))
    assert len(drafts) > 10
    assert (problem.code, problem.line) == ("unreadable", len(drafts) + 1)


@pytest.mark.parametrize("data", [b"\x89PNG\r\n\0\0\n", b'[{"id": "a"}]', b' [\n{"id": "a"}\n]'])
def test_other_files_are_refused_as_a_whole(tmp_path, data):
    """A picture or one JSON list is an error of the user, with the way out."""
    (tmp_path / "a").write_bytes(data)
    with pytest.raises(MemtoolError) as caught:
        list(jsonl.drafts(str(tmp_path / "a"), ImportRequest("/nowhere")))
    assert caught.value.code == "no-file"
    assert caught.value.hint


def test_a_directory_is_no_file_of_lines(tmp_path):
    """Where a file is needed, a directory is refused with a hint."""
    with pytest.raises(MemtoolError, match="not a plain file"):
        list(jsonl.drafts(str(tmp_path), ImportRequest("/nowhere")))
    with pytest.raises(MemtoolError, match=r"^/dev/zero cannot be read"):
        list(jsonl.drafts("/dev/zero", ImportRequest("/nowhere")))


@pytest.mark.parametrize("pair", ["status", "=a", "status=", "colour=a", "x-=a", "status=."])
def test_maps_name_keys_of_memories(pair):
    """A pair that no memory can use is refused before anything is read."""
    with pytest.raises(MemtoolError):
        jsonl.build_field_map([pair])


def test_a_path_that_hits_nothing_is_told_once(read):
    """One warning for the whole file, and the records are taken."""
    *drafts, problem = read({"id": "abc"}, {"id": "def"}, pairs=("domain=meta.area",))
    assert len(drafts) == 2
    assert (problem.code, problem.severity) == ("unused-map", "warning")


def test_unknown_states_become_candidates(read):
    """A word that no table knows is not taken for a confirmation, and is told."""
    problem, draft = read({"id": "abc", "s": "purple"}, pairs=("status=s",))
    assert isinstance(problem, Problem)
    assert (problem.code, problem.severity) == ("unknown-state", "warning")
    assert draft.fields["status"] == "candidate"


def test_keys_of_the_first_designs_have_a_place(read):
    """A numeric confidence is one of three; keys without effect here become x- keys."""
    *_, draft = read(
        {
            "id": "abc",
            "text": "T",
            "confidence": 0.85,
            "emotional_resonance": "relief",
            "context_type": "debugging",
            "problem_solution": {"problem": "a", "solution": "b"},
        }
    )
    assert {key: draft.fields[key] for key in draft.fields if key.startswith("x-")} == {
        "x-confidence": "0.85",
        "x-context-type": "debugging",
        "x-emotional-resonance": "relief",
        "x-problem-solution": '{"problem": "a", "solution": "b"}',
    }
    assert draft.fields["confidence"] == "high"
    words = [read({"id": "abc", "confidence": n})[-1].fields["confidence"] for n in (0, 0.5, 1)]
    assert words == ["low", "medium", "high"]


def test_two_objects_on_a_line_are_two_records(read):
    """A store that was damaged so loses nothing; a third one that is cut off is reported."""
    first, second = b'{"id": "alpha", "title": "Alpha"}', b'{"id": "beta", "title": "Beta"}'
    drafts = read(first + second, second[:9])
    assert [draft.id for draft in drafts if not isinstance(draft, Problem)] == ["alpha", "beta"]
    (problem,) = (draft for draft in drafts if isinstance(draft, Problem))
    assert (problem.line, problem.code) == (2, "not-json")
    *drafts, problem = read(first + second + second[:9])
    assert [draft.id for draft in drafts] == ["alpha", "beta"]
    assert problem.message.startswith("after 2 objects comes something else: ")
