from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from conftest import NOW, Sandbox

from memtool.calls import run as calls
from memtool.calls.bind import bind, split_arguments
from memtool.calls.run import Answer, ServedRepository
from memtool.errors import MemtoolError
from memtool.mcp.server import list_tools

TOOLS = list_tools(every=True)


def read(name: str, **values: Any) -> tuple[list[Any], dict[str, Any]]:
    tool = TOOLS[name]
    return split_arguments(tool.face, bind(tool.signature, values))


def test_a_call_reaches_the_verb_in_its_types():
    """Places in order, names as the verb spells them, lists as tuples, defaults filled in."""
    places, names = read("new", title="T", type="decision", tag=["a", "b"], importance=1)
    assert places == ["decision", "T"]
    assert (names["tag"], names["importance"], names["commit"]) == (("a", "b"), 1.0, False)
    assert type(names["importance"]) is float
    assert read("inject", **{"for": "claude"})[1]["for_"] == "claude"
    assert read("search", query="a b", limit=5.0) == (
        ["a b"],
        read("search", query="a b", limit=5)[1],
    )
    assert read("conflicts", ids=["x", "y"])[0] == ["x", "y"]


def test_null_means_not_given():
    """Some clients send every argument, empty ones as null."""
    assert read("search", query="x", limit=None, at=None) == read("search", query="x")


@pytest.mark.parametrize(
    ("name", "values", "message"),
    [
        ("search", {}, "query is missing"),
        ("search", {"query": None}, "query is missing"),
        ("search", {"query": "  "}, "query is empty"),
        ("forget", {"id": "dec-a"}, "reason is missing"),
        ("resolve", {"ids": [], "keep": "both", "reason": "x"}, "ids is missing"),
        ("search", {"query": 7}, "query takes a text, not a whole number"),
        ("search", {"query": ["a", "b"]}, "query takes a text, not a list"),
        ("search", {"query": "x", "limit": "5"}, "limit takes a whole number, not a text"),
        ("search", {"query": "x", "limit": 1.5}, "limit takes a whole number, not this number"),
        (
            "search",
            {"query": "x", "limit": 1e30},
            "limit takes a whole number, not a number this large",
        ),
        ("search", {"query": "x", "limit": True}, "limit takes a whole number, not true or false"),
        ("search", {"query": "x", "limit": 10**30}, "limit takes a whole number"),
        ("search", {"query": "x", "limit": float("inf")}, "limit takes a whole number"),
        ("new", {"type": "decision", "title": "T", "importance": float("nan")}, "importance takes"),
        ("list", {"sort": "best"}, "sort is one of newest, oldest"),
        ("new", {"type": "wish", "title": "T"}, "type is one of decision, semantic"),
        ("new", {"type": "decision", "title": "T", "tag": "a"}, "tag takes a list of texts, not a"),
        ("new", {"type": "decision", "title": "T", "tag": [{}]}, "tag takes a text, not an object"),
        (
            "new",
            {"type": "decision", "title": "T", "tag": ["a"] * 1001},
            "tag takes at most 1,000 items",
        ),
        ("new", {"type": "decision", "title": "T", "body": "-"}, "body cannot be -"),
        ("new", {"type": "decision", "title": "T", "edit": True}, "new has no argument 'edit'"),
        ("new", {"type": "decision", "title": "T", "id": "dec-x"}, "new has no argument 'id'"),
        (
            "new",
            {"type": "decision", "title": "T", "set": ["status=pinned"]},
            "set does not take 'st",
        ),
        ("new", {"type": "decision", "title": "T", "set": ["x-a=b"]}, "set does not take 'x-a'"),
        (
            "remember",
            {"text": "x" * (1 << 20) + "x"},
            "text has 1,048,577 characters, the limit is 1,048,576",
        ),
        ("show", {"id": "x" * 10_001}, "id has 10,001 characters"),
        ("show", {"id": "a\0b"}, "id is not valid Unicode"),
        ("show", {"id": "a\ud800"}, "id is not valid Unicode"),
        ("show", {"ide": "x" * 1000}, "show has no argument 'ide'"),
    ],
)
def test_a_bad_call_is_refused_with_one_sentence(name: str, values: dict[str, Any], message: str):
    """The verb never sees it, and what was wrong is said without showing a value."""
    with pytest.raises(MemtoolError) as caught:
        read(name, **values)
    assert caught.value.message.startswith(message)
    assert len(caught.value.message) < 200


@pytest.mark.parametrize(
    "path", ["/etc/passwd", "../other", "a/../../other", "~/x", "out/x", "/tmp", "..", "~"]
)
def test_a_path_stays_in_the_repository(tmp_path: Path, path: str):
    """Neither dots nor an absolute path nor a link lead out of it."""
    top = tmp_path / "top"
    top.mkdir()
    (top / "out").symlink_to(tmp_path)
    with pytest.raises(MemtoolError, match="is not in the repository"):
        calls.refuse_outside(str(top), str(top), [path])


def test_paths_inside_are_taken(tmp_path: Path):
    """Also from a subdirectory, and if the file does not exist yet."""
    below = tmp_path / "a"
    below.mkdir()
    inside = ["../b.py", "c/**/*.py", ".", "..", str(tmp_path / "d"), "..a", "~a/../b"]
    calls.refuse_outside(str(tmp_path), str(below), inside[:-1])


def place_of(sandbox: Sandbox) -> ServedRepository:
    return ServedRepository(str(sandbox.path), sandbox.env, is_structured=True)


def call(sandbox: Sandbox, name: str, **values: Any) -> Answer:
    return calls.call(
        TOOLS[name], values, ServedRepository(str(sandbox.path), sandbox.env, is_structured=True)
    )


def test_an_answer_does_not_fill_the_window(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch):
    """Rows and text have an end, and what was left out is said."""
    monkeypatch.setattr(calls, "MAX_ROWS", 3)
    monkeypatch.setattr(calls, "MAX_CHARS", 150)
    for number in range(9):
        sandbox.memory(f"dec-{number}")
    answer = call(sandbox, "list")
    assert answer.structured is not None
    assert len(answer.structured["memories"]) == 3
    assert answer.structured["total"] == 9
    assert answer.text.endswith("\ndec-1  Title of dec-1  not committed  2026-02-22  decision\n")
    assert answer.notes == (
        "memories: the first 3 of 9",
        f"the text ends here, after {len(answer.text)} characters; ask for less",
    )


def test_a_block_ends_as_it_was_written(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch):
    """It has a budget, and a frame that must be closed."""
    sandbox.memory("dec-a", "Sessions live in Redis.\n")
    whole = call(sandbox, "inject", prompt="sessions")
    monkeypatch.setattr(calls, "MAX_CHARS", 10)
    assert call(sandbox, "inject", prompt="sessions") == whole


def test_nothing_invisible_reaches_an_agent(sandbox: Sandbox):
    """Neither in the text nor in any value: hidden words would be read by a model alone."""
    sandbox.memory("dec-a", "Use Redis.\U000e0041\u202e\x1b[2J\n")
    answer = call(sandbox, "show", id="dec-a")
    assert answer.structured is not None
    assert answer.structured["body"] == "Use Redis.\\U000e0041\\u202e\\x1b[2J\n"
    assert "\\u202e" in answer.text


def test_a_bug_is_an_answer(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch):
    """It names the log, and whoever asked can go on."""

    def broken(_value: object, _layout: object) -> str:
        raise RuntimeError("surprise")

    sandbox.memory("dec-a")
    tool = TOOLS["list"].replace(face=TOOLS["list"].face.replace(render=broken))
    answer = calls.call(
        tool, {}, ServedRepository(str(sandbox.path), sandbox.env, is_structured=True)
    )
    assert answer.error is not None
    assert (answer.error["code"], answer.error["recoverable"]) == ("bug", False)
    assert "RuntimeError: surprise" in answer.text
    assert "Traceback" not in answer.text


def test_a_dry_run_leaves_no_trace(sandbox: Sandbox):
    """A dry run of an agent is recorded nowhere, not even as a statistic."""
    sandbox.memory("dec-a")
    sandbox.commit()
    before = sorted(path for path in sandbox.path.rglob("*"))
    for name, values in (
        ("new", {"type": "decision", "title": "Use Postgres", "body": "For all."}),
        ("pin", {"id": "dec-a"}),
        ("forget", {"id": "dec-a", "reason": "gone"}),
    ):
        answer = call(sandbox, name, **values, dry_run=True, commit=True)
        assert answer.error is None
    assert sorted(path for path in sandbox.path.rglob("*")) == before


def test_calls_are_noted_like_those_of_the_command_line(sandbox: Sandbox):
    """Memories shown to an agent are in the log of injections."""
    sandbox.memory("dec-a", "Sessions live in Redis.\n")
    assert call(sandbox, "inject", prompt="where do sessions live?").text
    answer = call(sandbox, "log", injected=True)
    assert answer.structured is not None
    assert [injection["id"] for injection in answer.structured["injections"]] == ["dec-a"]


def test_what_an_agent_writes_is_told_from_what_a_person_says(sandbox: Sandbox):
    """The agent is named; it is the source of its own words, not of those that it wrote down."""
    sandbox.run("init")
    place = place_of(sandbox).replace(agent="acme")
    for name, values, kind in (
        ("new", {"type": "decision", "title": "Use Postgres", "body": "For all."}, "tool:acme"),
        (
            "new",
            {
                "type": "state",
                "title": "Half done",
                "body": "Half of it is done.",
                "source": ["url:https://x.org"],
            },
            "url:https://x.org",
        ),
        ("remember", {"text": "Deploys run on Tuesdays only."}, "tool:acme"),
    ):
        answer = calls.call(TOOLS[name], values, place)
        assert answer.structured is not None, answer.text
        memory = sandbox.context().tree().find(answer.structured["id"]).memory
        assert memory.text("agent") == "acme"
        assert (memory.items("source"), memory.status) == ((kind,), "candidate")


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("pin", {"id": "dec-new"}),
        ("restore", {"id": "dec-away"}),
        ("resolve", {"ids": ["dec-new", "dec-old"], "keep": "dec-new", "reason": "It is mine."}),
    ],
)
def test_an_agent_vouches_for_no_candidate(sandbox: Sandbox, name: str, values: dict[str, object]):
    """No verb lets an agent confirm a memory, and no tool does either."""
    sandbox.memory("dec-old", "Sessions live in Redis.\n")
    sandbox.memory("dec-new", "Sessions live in Postgres.\n", status="candidate")
    sandbox.memory(
        "dec-away",
        "Sessions live in files.\n",
        status="archived",
        supersedes=("dec-old",),
        retired={"at": NOW, "by": "Ada", "was": "candidate"},
    )
    sandbox.commit()
    assert "confirm" not in TOOLS
    answer = calls.call(TOOLS[name], values, place_of(sandbox).replace(agent="acme"))
    assert answer.error is not None
    assert answer.error["code"] == "agent", answer.text
    assert "memtool confirm dec-" in str(answer.error)
    assert sandbox.git("status", "--porcelain") == ""


def test_the_words_of_the_user_are_quoted_for_a_reviewer(sandbox: Sandbox):
    """With them the user vouches, in the file for all to see; a name alone vouches for nothing."""
    sandbox.run("init")
    place = place_of(sandbox).replace(agent="acme")
    body = {"type": "decision", "title": "Use Postgres", "body": "For all."}
    claimed = calls.call(TOOLS["new"], body | {"source": ["human:Ada"]}, place)
    assert claimed.error is not None
    assert claimed.error["code"] == "no-quote"
    quote = {"said_by_user": "fine,\n\nlet us take postgres"}
    made = calls.call(TOOLS["new"], body | quote, place).structured
    assert made is not None
    memory = sandbox.context().tree().find(made["id"]).memory
    assert (memory.items("source"), memory.status) == (("human:Ada", "tool:acme"), "confirmed")
    assert memory.body.endswith("\n## Said by the user\n\n> fine, let us take postgres\n")
    sandbox.commit()
    correction = {"old": made["id"], "title": "Use SQLite", "body": "It is enough."}
    for words, replaces in (({}, False), (quote, True)):
        done = calls.call(TOOLS["supersede"], correction | words | {"dry_run": True}, place)
        assert done.structured is not None, done.text
        assert ("status: confirmed" in done.structured["text"]) is replaces


def test_an_old_argument_means_the_new_one_and_is_noted(sandbox: Sandbox):
    """A client that has the schema of the version before is answered as well."""
    sandbox.memory("dec-a")
    sandbox.commit()
    answer = call(sandbox, "forget", id="dec-a", why="gone", dry_run=True)
    assert answer.error is None
    assert answer.notes[0] == "why is called reason now"
    assert "why" not in TOOLS["forget"].parameters
    withheld = call(sandbox, "resolve", ids=["dec-a"], reason="x", keep_both=True)
    assert withheld.text.startswith("resolve has no argument 'keep_both'")
