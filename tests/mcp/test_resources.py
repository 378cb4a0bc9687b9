from __future__ import annotations

import pytest
from conftest import Sandbox

from memtool.errors import MemtoolError
from memtool.mcp import resources


def test_living_heads_are_listed_page_by_page(sandbox: Sandbox):
    """Each once, sorted by id, without superseded, deleted or archived ones."""
    for number in range(230):
        sandbox.memory(f"sem-{number:03}", f"Note {number}.\n", type="semantic")
    sandbox.memory("dec-new", supersedes=("sem-007",))
    sandbox.memory("sem-100", type="semantic", status="archived")
    ws = sandbox.context()
    listed: list[str] = []
    cursor, pages = "", 0
    while pages == 0 or cursor:
        records, cursor = resources.list_page(ws, cursor)
        listed += [record.id for record in records]
        pages += 1
    ids = ["dec-new"] + [f"sem-{n:03}" for n in range(230) if n not in (7, 100)]
    assert listed == ids
    assert pages == 3


def test_a_page_goes_on_though_its_last_memory_went(sandbox: Sandbox):
    """A cursor is a place, not a memory."""
    paths = [sandbox.memory(f"dec-{number:03}") for number in range(101)]
    _records, cursor = resources.list_page(sandbox.context(), "")
    (sandbox.path / paths[99]).unlink()
    records, _cursor = resources.list_page(sandbox.context(), cursor)
    assert [record.id for record in records] == ["dec-100"]


def test_a_memory_is_read_with_what_follows_from_the_others(sandbox: Sandbox):
    """Whoever reads a superseded memory by its address is told so; hidden marks are shown."""
    sandbox.memory("dec-old", "Use Redis.\u202e\n")
    sandbox.memory("dec-new", supersedes=("dec-old",))
    text = resources.read_resource(sandbox.context(), "memory://dec-old", {})
    assert "! Superseded by  dec-new  Title of dec-new" in text
    assert "\n\nUse Redis.\\u202e\n\n" in text


@pytest.mark.parametrize(
    "uri",
    [
        "",
        "memory://",
        "dec-a",
        "memory://dec",
        "memory://../dec-a",
        "file:///etc/passwd",
        "memory:///etc/passwd",
        "memory://dec-a?x",
        "memory://DEC-A",
        "memory://dec-b",
    ],
)
def test_only_ids_are_addresses(sandbox: Sandbox, uri: str):
    """No path, no beginning of an id, nothing else."""
    sandbox.memory("dec-a")
    with pytest.raises(MemtoolError):
        resources.read_resource(sandbox.context(), uri, {})


def test_a_cursor_of_somebody_else_is_refused(sandbox: Sandbox):
    """A wrong page would be worse."""
    with pytest.raises(MemtoolError, match="is not a cursor"):
        resources.list_page(sandbox.context(), "../x")


def test_ids_are_completed(sandbox: Sandbox):
    """Those of living heads that begin so, as many as one answer may hold."""
    for number in range(105):
        sandbox.memory(f"dec-{number:03}")
    sandbox.memory("sem-a", type="semantic")
    ws = sandbox.context()
    assert resources.complete(ws, "sem") == ("sem-a",)
    assert resources.complete(ws, "dec-00") == tuple(f"dec-00{n}" for n in range(10))
    assert resources.complete(ws, "zzz") == ()
    assert len(resources.complete(ws, "")) == resources.PAGE
