from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest
from conftest import PIPED, Sandbox

import memtool
from memtool.commands.eval import eval as evaluate
from memtool.commands.eval import render
from memtool.commands.inject import inject
from memtool.errors import MemtoolError
from memtool.store.context import Context

ROOT = Path(memtool.__file__).parents[1]
OWN = ROOT / ".memory"


def write(sandbox: Sandbox, *rows: dict[str, object], path: str = ".memory/golden.jsonl") -> str:
    numbered = [{"qid": f"q{number}"} | row for number, row in enumerate(rows, 1)]
    sandbox.write(path, "".join(json.dumps(row) + "\n" for row in numbered))
    return path


@pytest.fixture
def workspace(sandbox: Sandbox) -> Context:
    """Three memories about different things."""
    sandbox.memory("dec-a", "Sessions live in Redis.\n", title="Session store")
    sandbox.memory("dec-b", "Invoices are kept for ten years.\n", title="Invoices")
    sandbox.memory("dec-c", "The logo is green.\n", title="Logo", files=("art/logo.svg",))
    return sandbox.context()


def test_means_over_queries_that_find_and_that_do_not(sandbox: Sandbox, workspace: Context) -> None:
    """One query finds what it expects first, one finds half, one nothing."""
    write(
        sandbox,
        {"query": "where do sessions live?", "expect": ["dec-a"]},
        {"query": "how long are invoices kept?", "expect": ["dec-b", "dec-c"]},
        {"query": "which bird sings at night?", "expect": ["dec-a"]},
    )
    report = evaluate(workspace, verbose=True)
    assert report.plain()["recall@5"] == 0.5
    assert report.plain()["mrr@10"] == round(2 / 3, 4)
    assert (report.queries, report.exit_code, report.problems) == (3, 0, ())
    assert report.query_results is not None
    assert [(result.ranks, result.missed) for result in report.query_results] == [
        ({"dec-a": 1}, ()),
        ({"dec-b": 1}, ("dec-c",)),
        ({}, ("dec-a",)),
    ]


def test_the_json_has_the_four_measures(sandbox: Sandbox, workspace: Context) -> None:
    """Scripts read them by name; queries are listed only with --verbose."""
    write(sandbox, {"query": "sessions", "expect": ["dec-a"]})
    answer = sandbox.json("eval")
    assert {key: answer[key] for key in list(answer)[:5]} == {
        "queries": 1,
        "recall@5": 1.0,
        "recall@10": 1.0,
        "mrr@10": 1.0,
        "ndcg@10": 1.0,
    }
    assert "asked" not in answer
    (query,) = sandbox.json("eval", "--verbose")["asked"]
    assert query["results"] == ["dec-a"]
    assert (query["qid"], query["ndcg@10"], query["missed"]) == ("q1", 1.0, [])


def test_queries_are_prose(sandbox: Sandbox, workspace: Context) -> None:
    """Quotes, dashes, parentheses and filters in a query are text, as in a prompt."""
    write(sandbox, {"query": 'do "sessions (live -redis type:x OR @y', "expect": ["dec-a"]})
    assert evaluate(workspace).measures["recall@5"] == 1.0


def test_what_is_measured_through_the_gate_is_what_inject_finds(
    sandbox: Sandbox, workspace: Context
) -> None:
    """The gate is part of it: a memory that is too far from the query is not found."""
    query = "which colour do the sessions of the logo have in redis?"
    write(sandbox, {"query": query, "expect": ["dec-b"]})
    report = evaluate(workspace, verbose=True, gated=True)
    assert report.query_results is not None
    injected = [item.id for item in inject(workspace, prompt=query).items]
    assert injected == [id_ for id_ in report.query_results[0].results if id_ in injected]
    assert "dec-b" not in report.query_results[0].results


def test_without_the_gate_the_ranking_alone_is_measured(
    sandbox: Sandbox, workspace: Context
) -> None:
    """--gated shows whether the gate or the ranking lost a memory."""
    query = "which nightingale sings on the green branch of a birch at midnight?"
    write(sandbox, {"query": query, "expect": ["dec-c"]})
    assert evaluate(workspace, gated=True).measures["recall@5"] == 0.0
    assert evaluate(workspace).measures["recall@5"] == 1.0


def test_files_and_moment_of_a_query_count(sandbox: Sandbox, workspace: Context) -> None:
    """`files` are open, and before `as_of` nothing had been written."""
    write(
        sandbox,
        {"query": "the", "expect": ["dec-c"], "files": ["art/logo.svg"]},
        {"query": "sessions", "expect": ["dec-a"], "as_of": "2026-02-22T19:32:59Z"},
        {"query": "sessions", "expect": ["dec-a"], "as_of": "2026-02-22T19:33:00Z"},
    )
    report = evaluate(workspace, verbose=True)
    assert report.query_results is not None
    assert [result.measures["mrr@10"] for result in report.query_results] == [1.0, 0.0, 1.0]
    assert [(problem.line, problem.code) for problem in report.problems] == [(2, "dangling")]


def test_the_run_file_has_a_line_per_result(sandbox: Sandbox, workspace: Context) -> None:
    """qid, id, rank and score, with tabs, in the order of the golden file."""
    write(
        sandbox,
        {"query": "the logo and the invoices", "expect": ["dec-b"], "as_of": "2026-02-28"},
        {"query": "sessions", "expect": ["dec-a"]},
    )
    evaluate(workspace, run="run.tsv")
    rows = [line.split("\t") for line in (sandbox.path / "run.tsv").read_text().splitlines()]
    assert [row[0] for row in rows] == ["q1", "q1", "q2"]
    assert [row[2] for row in rows] == ["1", "2", "1"]
    assert {row[1] for row in rows[:2]} == {"dec-b", "dec-c"}
    assert float(rows[0][3]) >= float(rows[1][3]) > 0
    first = (sandbox.path / "run.tsv").read_bytes()
    evaluate(sandbox.context(), run="run.tsv")
    assert (sandbox.path / "run.tsv").read_bytes() == first
    evaluate(workspace, run="run.tsv", limit=0)
    assert (sandbox.path / "run.tsv").read_bytes() == first
    evaluate(workspace, run="run.tsv", limit=1)
    assert len((sandbox.path / "run.tsv").read_text().splitlines()) == 2


def test_below_a_floor_the_exit_code_is_1(sandbox: Sandbox, workspace: Context) -> None:
    """CI sees when a measure is less than it may be; reaching it exactly is enough."""
    write(
        sandbox,
        {"query": "sessions", "expect": ["dec-a"]},
        {"query": "nightingale", "expect": ["dec-a"]},
    )
    assert sandbox.run("eval", "--floor", "recall@5=0.5").returncode == 0
    done = sandbox.run("eval", "--floor", "recall@5=0.5", "--floor", "mrr@10=0.51")
    assert done.returncode == 1
    assert "mrr@10     0.5000  below 0.51" in done.stdout
    assert sandbox.json("eval", "--floor", "mrr@10=0.51")["below"] == {"mrr@10": 0.51}


@pytest.mark.parametrize(
    "floor", ["recall@5", "recall@5=", "recall@5=x", "recall@5=2", "recall@5=nan", "recall=0.5"]
)
def test_a_floor_that_is_none_is_refused(sandbox: Sandbox, workspace: Context, floor: str) -> None:
    """A mistyped floor must not pass for one that is reached."""
    write(sandbox, {"query": "sessions", "expect": ["dec-a"]})
    with pytest.raises(MemtoolError):
        evaluate(workspace, floor=(floor,))


def test_what_cannot_be_found_is_a_problem(sandbox: Sandbox, workspace: Context) -> None:
    """An unknown id is an error with its line; a superseded one a warning, which costs no exit."""
    sandbox.memory("dec-d", "Sessions live in Postgres.\n", supersedes=("dec-a",))
    write(
        sandbox,
        {"query": "sessions", "expect": ["dec-a", "dec-d"]},
        {"query": "sessions", "expect": ["dec-d", "dec-zzz"]},
    )
    report = evaluate(workspace)
    assert [
        (problem.line, problem.code, problem.id, problem.severity) for problem in report.problems
    ] == [
        (1, "unreachable", "dec-a", "warning"),
        (2, "dangling", "dec-zzz", "error"),
    ]
    assert report.exit_code == 1
    assert ".memory/golden.jsonl:2: dangling q2 expects dec-zzz, which is not here" in render(
        report, PIPED
    )
    write(sandbox, {"query": "sessions", "expect": ["dec-a", "dec-d"]})
    assert evaluate(workspace).exit_code == 0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no golden query"),
        ("{}\n", "golden.jsonl:1: qid must be a text"),
        (
            '{"qid": "q", "query": "x", "expect": ["a"], "as_of": "soon"}\n',
            "golden.jsonl:1: 'soon'",
        ),
    ],
)
def test_a_bad_golden_file_is_an_error_with_its_line(
    sandbox: Sandbox, workspace: Context, text: str, message: str
) -> None:
    """Nothing is measured on half a file."""
    sandbox.write(".memory/golden.jsonl", text)
    with pytest.raises(MemtoolError) as caught:
        evaluate(workspace)
    assert message in caught.value.message


@pytest.mark.parametrize("name", ["absent.jsonl", ".memory", "link.jsonl"])
def test_a_golden_file_that_cannot_be_read_is_an_error(
    sandbox: Sandbox, workspace: Context, name: str
) -> None:
    """Absent, a directory or a link: one sentence, no traceback."""
    (sandbox.path / "link.jsonl").symlink_to("/dev/zero")
    with pytest.raises(MemtoolError, match="cannot be read"):
        evaluate(workspace, name)


def test_a_run_file_that_cannot_be_written_is_an_error(
    sandbox: Sandbox, workspace: Context
) -> None:
    """A directory that is not there is told, not made."""
    write(sandbox, {"query": "sessions", "expect": ["dec-a"]})
    with pytest.raises(MemtoolError, match="cannot be written"):
        evaluate(workspace, run="no/where.tsv")


def test_a_golden_file_is_found_from_where_one_stands(sandbox: Sandbox, workspace: Context) -> None:
    """A named file is relative to the caller, the default one is in the memory directory."""
    write(sandbox, {"query": "sessions", "expect": ["dec-a"]})
    write(sandbox, {"query": "sessions", "expect": ["dec-a"]}, path="sub/g.jsonl")
    for args in (("eval",), ("eval", "g.jsonl")):
        done = sandbox.run(*args, cwd=sandbox.path / "sub")
        assert (done.returncode, done.stderr) == (0, "")


def test_an_empty_corpus_measures_nothing(sandbox: Sandbox) -> None:
    """Without memories every measure is 0, and every expected id is missing."""
    sandbox.write(".memory/config.toml", "")
    write(sandbox, {"query": "sessions", "expect": ["dec-a"]})
    report = evaluate(sandbox.context())
    assert (set(report.measures.values()), report.exit_code) == ({0.0}, 1)


@pytest.mark.skipif(not OWN.is_dir(), reason="a source archive has no memories")
def test_our_own_memory_answers_our_own_questions(sandbox: Sandbox) -> None:
    """The golden queries of this repository name memories that are there, and most are found."""
    shutil.rmtree(sandbox.path / ".memory")
    shutil.copytree(OWN, sandbox.path / ".memory")
    report = evaluate(sandbox.context(MEMTOOL_NOW="2026-12-01"))
    assert report.queries >= 30
    assert report.problems == ()
    assert report.measures["recall@5"] >= 0.7
    assert report.measures["mrr@10"] >= 0.65


@pytest.mark.skipif(not OWN.is_dir(), reason="a source archive has no memories")
def test_our_own_saved_queries_can_be_asked(sandbox: Sandbox) -> None:
    """Each parses, and says what it is for."""
    from memtool.search import saved

    queries = saved.parse_saved((OWN / saved.QUERIES_NAME).read_bytes(), saved.QUERIES_NAME)
    assert len(queries) >= 2
    assert all(query.doc for query in queries.values())


def test_the_template_for_ci_runs_this_verb() -> None:
    """It names the measures that there are, and neither a machine nor a registry."""
    text = (ROOT / "templates" / "ci" / "memtool-eval.yml").read_text()
    (command,) = [row for row in text.split("- ") if "memtool eval" in row and "--floor" in row]
    floors = [word for word in command.split() if "@" in word]
    assert [word.partition("=")[0] for word in floors] == ["recall@5", "mrr@10"]
    assert "://" not in text
    assert not any(word.startswith("/") for word in text.split())


def test_the_examples_of_the_guide_are_real() -> None:
    """The golden and saved queries that the guide shows can be read, and it names each measure."""
    from memtool.search import evaluation, saved

    text = (ROOT / "docs" / "measuring.md").read_text()
    blocks = {part.partition("\n")[0]: part.partition("\n")[2] for part in text.split("```")[1::2]}
    assert evaluation.parse(blocks["json"].encode(), "guide")
    assert set(saved.parse_saved(blocks["toml"].encode(), "guide")) == {"pinned", "open", "recent"}
    assert all(f"`{name}`" in text for name in evaluation.MEASURES)


def test_a_pipe_is_no_golden_file(sandbox: Sandbox) -> None:
    """It is named for what it is, and nothing waits for it."""
    os.mkfifo(sandbox.path / "golden")
    done = sandbox.run("eval", "golden")
    assert (done.returncode, "no plain file" in done.stderr) == (
        2,
        True,
    )
