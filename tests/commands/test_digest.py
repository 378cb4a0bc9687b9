"""`memtool digest`: pages that are written, left, or archived."""

from __future__ import annotations

import sys

import pytest
from conftest import Sandbox


def begun(sandbox: Sandbox) -> None:
    sandbox.memory("dec-a", "Sessions live in Redis.\n", title="Keep sessions in Redis")
    sandbox.memory("dec-b", "Events go to Kafka.\n", title="Use Kafka for events")
    sandbox.commit()


def test_a_digest_is_one_commit_that_the_gate_lets_pass(sandbox: Sandbox) -> None:
    """It repeats its sources, and neither check nor conflicts complains."""
    begun(sandbox)
    answer = sandbox.json("digest", "decision", "--commit")
    (page,) = answer["digests"]
    message = sandbox.git("log", "-1", "--format=%B")
    assert f"Memory-Id: {page['id']}" in message
    assert sandbox.json("check")["problems"] == []
    assert sandbox.json("conflicts")["conflicts"] == []


def test_the_digest_of_a_single_memory_is_no_duplicate(sandbox: Sandbox) -> None:
    """Neither is the memory one of its digest when it is checked again."""
    sandbox.memory("dec-a", "Sessions live in Redis and nowhere else at all.\n")
    sandbox.commit()
    sandbox.json("digest", "decision", "--commit")
    assert sandbox.json("check")["problems"] == []


def test_a_second_run_writes_nothing(sandbox: Sandbox) -> None:
    """The same memories give no new file and no commit."""
    begun(sandbox)
    sandbox.json("digest", "decision", "--commit")
    head = sandbox.git("rev-parse", "HEAD")
    again = sandbox.json("digest", "decision", "--commit", MEMTOOL_NOW="2026-03-02T00:00:00Z")
    assert again["digests"][0]["change"] == "unchanged"
    assert (again["commit"], sandbox.git("rev-parse", "HEAD")) == (None, head)


def test_a_changed_digest_supersedes_the_one_before(sandbox: Sandbox) -> None:
    """One digest of a category is listed at a time."""
    begun(sandbox)
    first = sandbox.json("digest", "decision", "--commit")["digests"][0]["id"]
    sandbox.memory("dec-c", "Orders live in Postgres.\n")
    sandbox.commit()
    page = sandbox.json("digest", "--all", "--commit")["digests"][0]
    assert (page["change"], page["replaces"], page["told"]) == ("changed", [first], 3)
    assert f"Supersedes: {first}" in sandbox.git("log", "-1", "--format=%B")
    listed = [memory["id"] for memory in sandbox.json("list", "tag:digest")["memories"]]
    assert listed == [page["id"]]


def test_a_digest_that_was_not_committed_goes_along_with_the_one_that_replaces_it(
    sandbox: Sandbox,
) -> None:
    """A commit never names a memory that it does not hold."""
    begun(sandbox)
    first = sandbox.json("digest", "decision")["digests"][0]["path"]
    sandbox.run("forget", "dec-b", "--reason", "it is wrong", "--commit")
    assert sandbox.git("status", "--porcelain", ".memory") == ""
    assert first in sandbox.git("show", "--name-only", "--format=", "HEAD")
    assert sandbox.json("check")["problems"] == []


def test_a_digest_is_archived_with_the_last_memory(sandbox: Sandbox) -> None:
    """An empty digest is archived."""
    begun(sandbox)
    made = sandbox.json("digest", "decision", "--commit")["digests"][0]["id"]
    for id_ in ("dec-a", "dec-b"):
        sandbox.run("archive", id_)
    assert sandbox.json("digest", "decision", "--commit")["digests"][0]["change"] == "archived"
    assert sandbox.json("show", made)["status"] == "archived"


def test_a_dry_run_shows_the_page_and_writes_nothing(sandbox: Sandbox) -> None:
    """The whole text is printed, with the path that it would get."""
    begun(sandbox)
    shown = sandbox.run("digest", "decision", "--dry-run").stdout
    assert "- **Use Kafka for events.** Events go to Kafka." in shown
    assert sandbox.git("status", "--porcelain") == ""


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("decisoin",), "did you mean decision?"),
        (("decision", "--all"), "exclude each other"),
        (("warning",), "no active memory has the category warning"),
    ],
)
def test_what_cannot_be_summed_up_is_refused(
    sandbox: Sandbox, args: tuple[str, ...], message: str
) -> None:
    """One sentence, a hint, exit code 2, nothing written."""
    begun(sandbox)
    done = sandbox.run("digest", *args)
    assert (done.returncode, message in done.stderr, done.stdout) == (2, True, "")
    assert sandbox.git("status", "--porcelain") == ""


@pytest.mark.parametrize("args", [(), ("",)])
def test_without_a_category_they_are_listed(sandbox: Sandbox, args: tuple[str, ...]) -> None:
    """With the number of memories and the digest of each, and nothing is written."""
    begun(sandbox)
    before = sandbox.run("digest", *args)
    assert (before.returncode, before.stderr) == (0, "")
    rows = [row.split() for row in before.stdout.splitlines()]
    assert rows[0][0] == "decision"
    assert rows[0][2:] == ["memories", "no", "digest"]
    assert before.stdout.endswith(
        "\nTo write one: memtool digest CATEGORY, or memtool digest --all\n"
    )
    assert sandbox.git("status", "--porcelain") == ""
    path = sandbox.run("digest", "decision", "--commit").stdout.strip()
    (row, *_rows) = sandbox.run("digest", *args).stdout.splitlines()
    short = sandbox.layout().short(path.rpartition("/")[2].removesuffix(".md"))
    assert row.endswith(f"digest {short}, 2026-03-01")


MODEL = """
import json, sys
rows = [json.loads(row) for row in sys.stdin.read().splitlines() if row.startswith('{"id"')]
print(json.dumps({"lines": [
    {"id": "dec-a", "text": "Redis is where sessions live"},
    {"id": "dec-b", "text": "Events go to RabbitMQ 3"},
    {"id": "dec-z", "text": "Sessions live in Redis"}, 7]}))
"""


@pytest.fixture
def with_model(sandbox: Sandbox) -> Sandbox:
    """A user whose own settings name a model that lies about one memory of two."""
    script = sandbox.path.parent / "model.py"
    script.write_text(MODEL)
    sandbox.run("--global", "config", "extraction.command", f"{sys.executable},{script}")
    return sandbox


def test_a_model_words_only_what_the_memory_bears_out(with_model: Sandbox) -> None:
    """A name that the memory does not have makes the line its own again."""
    begun(with_model)
    path = with_model.json("digest", "decision")["digests"][0]["path"]
    text = (with_model.path / path).read_text()
    assert "Redis is where sessions live (2026" in text
    assert "Events go to Kafka." in text
    assert "RabbitMQ" not in text


def test_a_model_that_fails_is_replaced_by_the_rules(sandbox: Sandbox) -> None:
    """The page is still written, and the user is notified."""
    sandbox.run("--global", "config", "extraction.command", f"{sys.executable},-c,print(1)")
    begun(sandbox)
    done = sandbox.run("digest", "decision")
    assert done.returncode == 0
    assert "the memories' own words were used instead" in done.stderr
