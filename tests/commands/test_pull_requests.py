"""How answers cite a commit of a pull request, perhaps written by several people."""

from __future__ import annotations

import json

import pytest
from conftest import Sandbox

MESSAGE = """\
Keep sessions in redis (#12)

* Try sqlite

* Use redis

---------

Co-authored-by: Bo <bo@example.org>
Co-authored-by: Ada <ada@example.org>
"""


@pytest.fixture
def squashed(sandbox: Sandbox) -> str:
    """The first seven digits of a commit with one memory, as GitHub squashes a branch."""
    sandbox.memory("dec-a", source=("file:app.py",))
    sandbox.write("app.py", "x = 1\n")
    return sandbox.commit(MESSAGE)[:7]


@pytest.mark.parametrize("verb", ["show", "why", "log", "blame"])
def test_a_commit_is_named_with_its_pull_request_and_people(
    sandbox: Sandbox, squashed: str, verb: str
) -> None:
    """The number is next to the commit, and co-authors are next to the author.

    `show` prints the commit in full, with the other keys that are rarely needed.
    """
    text = sandbox.run(verb, "dec-a", *(["--all"] if verb == "show" else [])).stdout
    name = sandbox.git("rev-parse", "HEAD").strip() if verb == "show" else squashed
    assert f"{name} (#12)" in text
    assert "Ada, with Bo" in text


@pytest.mark.parametrize("verb", ["show", "why", "log", "blame"])
def test_json_has_them_where_a_commit_names_them(
    sandbox: Sandbox, squashed: str, verb: str
) -> None:
    """Keys are added for such a commit, and left out for one that names nothing."""
    sandbox.memory("dec-b")
    sandbox.commit("plain")

    def rows(id_: str) -> list[dict[str, object]]:
        answer = json.loads(sandbox.run(verb, id_, "--json").stdout)
        places = {"log": "events", "blame": "fields", "why": "sources"}
        inner = answer.get(places.get(verb, ""), [])
        return inner if verb in ("log", "blame") else [answer, *inner]

    assert rows("dec-a")
    for row in rows("dec-a"):
        if row.get("kind") != "file" or row["commit"]:
            assert (row["pull_request"], row["co_authors"]) == ("#12", ["Bo"])
    assert not any("pull_request" in row or "co_authors" in row for row in rows("dec-b"))
    assert squashed in json.dumps(rows("dec-a"))


def test_many_co_authors_are_counted(sandbox: Sandbox) -> None:
    """Three are named, then the number of the others."""
    sandbox.memory("dec-a")
    lines = "".join(f"Co-authored-by: P{n} <p{n}@example.org>\n" for n in range(5))
    sandbox.commit(f"Keep\n\n{lines}")
    assert "Ada, with P0, P1, P2 and 2 more" in sandbox.run("log", "dec-a").stdout
