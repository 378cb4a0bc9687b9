"""Mentions: the paths that the text of an imported decision names."""

from __future__ import annotations

import pytest
from conftest import make_memory

from memtool.memory.mentions import find_mentions, is_code, list_endings

DOCUMENT = ("file:docs/adr/0003-tides.md#L1-L20@0123abcd",)


def read(text: str) -> tuple[str, ...]:
    """Return the mentions in the text of a decision that was imported."""
    return find_mentions(make_memory("adr-0003-tides", text, source=DOCUMENT))


@pytest.mark.parametrize(
    ("text", "paths"),
    [
        (
            "The clock is in src/tide/clock.py, and in `lib/moon.go`.",
            "src/tide/clock.py lib/moon.go",
        ),
        ("See **config/ports.yaml**: it lists them.", "config/ports.yaml"),
        ("Lines src/tide/clock.py:12 and src/tide/clock.py#L4 agree.", "src/tide/clock.py"),
        ("[the clock](../../src/tide/clock.py) and [a note](notes.md)", "src/tide/clock.py"),
        ("Run `.github/workflows/tides.yml` daily.", ".github/workflows/tides.yml"),
        ("The `tide-table.ts` and `TideTable.java` hold it.", "tide-table.ts TideTable.java"),
        ("The Makefile in deploy/Makefile starts it.", "deploy/Makefile"),
    ],
)
def test_a_path_in_prose_is_a_mention(text: str, paths: str) -> None:
    """Punctuation, lines and links around a path do not belong to it."""
    assert read(text) == tuple(paths.split())


@pytest.mark.parametrize(
    "text",
    [
        "As in https://example.org/harbor/blob/main/src/tide/clock.py it was.",
        "As in [src/tide/clock.py](https://example.org/src/tide/clock.py) it was.",
        "<!-- put it into src/tide/clock.py -->",
        "```sh\npython src/tide/clock.py\n```",
        "All of src/tide/*.py and src/$NAME/a.py and src/{a,b}.py",
        "The table tide-table.ts is not marked, and `config.yml` may be any.",
        "See docs/tides.md, docs/img/moon.png, website/a.js and go.sum.",
        "and/or, 1.5, e.g. this.",
        "../../../../outside/a.py",
    ],
)
def test_no_mention(text: str) -> None:
    """Addresses, comments, commands, patterns, documents and vague names say nothing."""
    assert [path for path in read(text) if "." in path] == []


def test_only_a_decision_from_a_document_has_mentions() -> None:
    """What somebody wrote as a memory names its files in `files`."""
    text = "The clock is in src/tide/clock.py.\n"
    assert find_mentions(make_memory("dec-a", text)) == ()
    assert find_mentions(make_memory("dec-a", text, source=("file:src/tide/clock.py",))) == ()
    assert find_mentions(make_memory("sem-a", text, type="semantic", source=DOCUMENT)) == ()
    assert make_memory("dec-a", text, source=DOCUMENT).document == "docs/adr/0003-tides.md"


def test_code_and_the_ends_of_a_path() -> None:
    """A text, a picture and a lock file are no code, nor is anything in a folder of documents."""
    paths = ("src/a.py", "Makefile", "a.lock", "docs/conf.py", "a.svg", "README.md", "x/go.sum")
    assert [path for path in paths if is_code(path)] == ["src/a.py", "Makefile"]
    assert list(list_endings("a/b/c.py")) == ["a/b/c.py", "b/c.py", "c.py"]
