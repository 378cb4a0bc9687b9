"""`memtool tag`: tags of one or several memories are added and removed in one commit."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from memtool.commands.tag import tag
from memtool.errors import MemtoolError

if TYPE_CHECKING:
    from conftest import Sandbox


@pytest.fixture
def begun(sandbox: Sandbox) -> Sandbox:
    """Two committed memories with tags, and one without."""
    sandbox.memory("sem-a", tags=("auth", "web"))
    sandbox.memory("sem-b", "Another thing.\n", tags=("web",))
    sandbox.memory("sem-c", "A third thing.\n")
    sandbox.commit()
    return sandbox


def tags(sandbox: Sandbox, id_: str) -> list[str]:
    return list(sandbox.json("show", id_).get("tags", []))


def test_tags_are_added_and_removed_in_one_commit(begun: Sandbox) -> None:
    """All that a query matches get them; the other tags stay in their order."""
    words = ("tag:web", "--add", "#http", "--remove", "web", "--reason", "one word", "--commit")
    done = begun.json("tag", *words)
    assert len(done["memories"]) == 2
    assert (tags(begun, "sem-a"), tags(begun, "sem-b")) == (["auth", "http"], ["http"])
    assert "Reason: one word" in begun.git("log", "-1", "--format=%B")
    assert begun.git("status", "--porcelain") == ""


def test_the_last_tag_takes_the_key_with_it(begun: Sandbox) -> None:
    """A file without tags has no key for them, and undo brings it back."""
    begun.json("tag", "sem-b", "--remove", "web", "--commit")
    assert "tags" not in next(begun.path.rglob("sem-b.md")).read_text()
    begun.json("undo", "sem-b", "--commit")
    assert tags(begun, "sem-b") == ["web"]
    assert begun.json("check")["problems"] == []


def test_what_is_so_already_writes_nothing(begun: Sandbox) -> None:
    """To add a tag that is there, or remove one that is not, is no error and no commit."""
    before = begun.git("rev-parse", "HEAD")
    done = begun.run("tag", "sem-b", "--add", "web", "--remove", "auth", "--commit")
    assert done.returncode == 0
    assert "nothing changed" in done.stderr
    assert begun.git("rev-parse", "HEAD") == before


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({}, "no tag is given"),
        ({"add": ("a",), "remove": ("#a",)}, "added and removed"),
        ({"add": (" # ",)}, "a tag is empty"),
        ({"add": ("a\nb",)}, "tags"),
        ({"add": ("AKIA" + "Z7QX3M5T2W4Y6P8R",)}, "aws access key"),
    ],
)
def test_what_is_no_tag_is_refused(
    begun: Sandbox, options: dict[str, tuple[str, ...]], says: str
) -> None:
    """Nothing is written if a tag is missing, contradicts itself, or is a secret."""
    with pytest.raises(MemtoolError) as caught:
        tag(begun.context(), "sem-a", "sem-c", **options)  # type: ignore[arg-type]
    assert says in caught.value.message
    assert begun.git("status", "--porcelain") == ""
