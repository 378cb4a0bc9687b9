"""The page about the code is true: its modules, its layers, and the ways of calls through them."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType

from conftest import Sandbox, make_memory
from test_source import LAYER, LAYERS

import memtool
from memtool.memory import document

PACKAGE = Path(memtool.__file__).parent
PAGE = (PACKAGE.parent / "docs" / "architecture.md").read_text(encoding="utf-8")
TRANSCRIPT = PACKAGE.parent / "tests" / "sessions" / "data" / "claude.jsonl"


def test_every_module_that_the_page_names_exists() -> None:
    """A reader who follows a verb file by file finds each file."""
    named = set(re.findall(r"`((?:[a-z_]+/)+[a-z_]+\.py)`", PAGE))
    tops = (PACKAGE, PACKAGE.parent)
    assert {name for name in named if not any((top / name).exists() for top in tops)} == set()


def test_every_path_that_contributors_are_sent_to_exists() -> None:
    """Files and folders of the page on contributing; not those that a reader makes."""
    page = (PACKAGE.parent / "docs" / "contributing.md").read_text(encoding="utf-8")
    quoted = " ".join(
        re.findall(r"`([^`\n]+)`", page) + re.findall(r"```sh\n(.*?)```", page, re.DOTALL)
    )
    named = set(re.findall(r"(?<![\w/.-])(?:\.ci|bench|docs|memtool|tests)/[\w./*-]+", quoted))
    assert len(named) > 30
    made = set(re.findall(r"`([\w/]+\.py)`:\n\n```python\n", page))
    absent = {name for name in named - made if not list(PACKAGE.parent.glob(name))}
    assert {name for name in absent if "NAME" not in name and "FILE" not in name} == set()


def test_every_name_that_contributors_are_sent_to_exists() -> None:
    """`NAME` in `path/of/module.py`, and what the fixture `sandbox` can do."""
    page = (PACKAGE.parent / "docs" / "contributing.md").read_text(encoding="utf-8")
    pairs = re.findall(r"`([A-Za-z_]+)`\s(?:in|of)\s`((?:memtool|tests)/[\w/]+\.py)`", page)
    here = re.findall(r"`([A-Za-z_]+)` in `([\w/]+\.py)`", PAGE)
    pairs += [(name, f"memtool/{path}") for name, path in here]
    pairs += [(name, "tests/conftest.py") for name in re.findall(r"`sandbox\.(\w+)\(", page)]
    assert len(pairs) > 8
    absent = [
        (name, path)
        for name, path in pairs
        if not re.search(
            rf"(?m)^\s*(?:def |class )?{name}\b",
            (PACKAGE.parent / path).read_text(encoding="utf-8"),
        )
    ]
    assert absent == []


def test_the_layers_are_drawn_as_they_are_checked() -> None:
    """Each group of lines is a layer of `tests/test_source.py`, the highest first."""
    drawn = PAGE.partition("```\n")[2].partition("```")[0].split("\n\n")
    names = [{line.split()[0].rstrip("/") for line in group.splitlines()} for group in drawn]
    assert names == [set(layer) for layer in reversed(LAYERS[:-1])]


def journeys() -> dict[str, list[str]]:
    """The modules that the page lists below each command."""
    lists = re.findall(r"(?m)^`memtool (\w+)[^`]*`[^\n]*:\n\n((?:[- ] .*\n)+)", PAGE)
    return {verb: re.findall(r"(?m)^- `([\w/]+\.py)`", text) for verb, text in lists}


def passed(call: Callable[[], object]) -> set[str]:
    """The modules of memtool that run a function during a call."""
    files = set()

    def note(frame: FrameType, event: str, _argument: object) -> None:
        if event == "call" and frame.f_code.co_name != "<module>":
            files.add(frame.f_code.co_filename)

    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(None)
    return {name.removeprefix(f"{PACKAGE}/") for name in files if name.startswith(str(PACKAGE))}


def test_calls_pass_through_the_modules_of_their_journeys(sandbox: Sandbox, tmp_path: Path) -> None:
    """In the demo; a list names one module of a room at most, and goes down the layers."""
    demo = tmp_path / "harbor"
    sandbox.run("demo", str(demo))
    calls = {
        "search": ("how long is a seat held",),
        "inject": ("--prompt", "how long is a seat held?"),
        "remember": ("From now on, tickets are refunded within a day of the request.",),
        "check": ("--staged",),
        "capture": (str(TRANSCRIPT),),
        "promote": (),
    }
    assert journeys().keys() == calls.keys()
    for verb, args in calls.items():
        if verb == "check":
            path = demo / ".memory" / "decision" / "2026-02" / "dec-a.md"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(document.write(make_memory(body="Seats are held for a day.\n")))
            subprocess.run(["git", "add", "--all"], cwd=demo, env=sandbox.env, check=True)
        modules = journeys()[verb]
        rooms = [module.partition("/")[0] for module in modules]
        assert len(set(rooms)) == len(rooms)
        assert [LAYER[room] for room in rooms] == sorted(LAYER[room] for room in rooms)[::-1]
        seen = passed(lambda verb=verb, args=args: sandbox.run(verb, *args, cwd=demo))
        assert [module for module in modules if module not in seen] == [], verb


def test_the_glossary_is_sorted() -> None:
    """A word is found where a reader looks for it."""
    page = (PACKAGE.parent / "docs" / "glossary.md").read_text(encoding="utf-8")
    words = re.findall(r"(?m)^\| ([a-z][a-z -]+) \|", page)[1:]
    assert words == sorted(words)
