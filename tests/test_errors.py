"""The codes of errors: each one that the package uses is explained, and none besides."""

from __future__ import annotations

import ast
import itertools
import re
import shlex
from pathlib import Path

import pytest

import memtool
from memtool.cli import arguments
from memtool.errors import ERROR_CODES, MemtoolError
from memtool.memory.schema import CODES

ROOT = Path(memtool.__file__).parent
Trees = dict[Path, ast.Module]


@pytest.fixture(scope="module")
def trees() -> Trees:
    """The syntax trees of the package, which nobody else waits for or holds in memory."""
    return {path: ast.parse(path.read_text("utf-8")) for path in sorted(ROOT.rglob("*.py"))}


@pytest.fixture(scope="module")
def all_hints(trees: Trees) -> dict[str, str]:
    """Every hint of the package, with the place that it is from."""
    return hints(trees)


def used(tree: ast.Module) -> set[str]:
    """The codes in calls, and those that parameters and attributes named code have by default."""
    constants = set()
    for node in ast.walk(tree):
        values: list[ast.expr | None] = []
        if isinstance(node, ast.keyword) and node.arg == "code":
            values = [node.value]
        elif isinstance(node, ast.arguments):
            both = [*node.posonlyargs, *node.args]
            defaults = [
                *zip(reversed(both), reversed(node.defaults), strict=False),
                *zip(node.kwonlyargs, node.kw_defaults, strict=True),
            ]
            values = [value for argument, value in defaults if argument.arg == "code"]
        for value in values:
            parts = [value.body, value.orelse] if isinstance(value, ast.IfExp) else [value]
            constants |= {part.value for part in parts if isinstance(part, ast.Constant)}
    return {code for code in constants if isinstance(code, str) and code}


def test_every_code_is_explained(trees: Trees) -> None:
    """Each error code for programs is in one of the two tables."""
    explained = ERROR_CODES.keys() | CODES.keys()
    absent = {str(path.relative_to(ROOT)): used(tree) - explained for path, tree in trees.items()}
    assert {path: codes for path, codes in absent.items() if codes} == {}


def test_no_code_is_left_over(trees: Trees) -> None:
    """A code that no module raises is not documented."""
    literals = {
        node.value
        for tree in trees.values()
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    inside = {
        node.value for node in ast.walk(trees[ROOT / "errors.py"]) if isinstance(node, ast.Constant)
    }
    elsewhere = set().union(*(used(tree) for tree in trees.values())) | (literals - inside)
    assert ERROR_CODES.keys() - elsewhere == set()


def test_a_code_has_one_meaning() -> None:
    """Those of errors and those of problems are different words, in kebab-case and in order."""
    assert ERROR_CODES.keys() & CODES.keys() == set()
    assert list(ERROR_CODES) == sorted(ERROR_CODES)
    for code, meaning in ERROR_CODES.items():
        assert code == code.lower().replace("_", "-").replace(" ", "-")
        assert meaning
        assert not meaning.endswith(".")


FILLED = {
    "AGENTS[0]": "claude",
    "action": "add",
    "face.name": "list",
    "from_": "adr",
    "host": "claude",
    "host or '--all'": "claude",
    "kind or 'KIND'": "adr",
    "only": "index",
    "AGAIN": "memtool migrate",
    "range_": "HEAD",
    "verb": "confirm",
    "which": "claude",
}
"""What stands in a hint for a placeholder that is not an id or a path, by its expression."""
FILLED_IN = {
    "commands/doctor.py": {"name": "claude"},
    "commands/fleet.py": {"name": "--shards"},
    "hosts/install.py": {"verb": "install"},
    "reports/answers.py": {"verb": "check"},
    "search/filters.py": {"name": "repo"},
}
"""The same for single modules, by path."""
STEP = re.compile(r"(?:[^:]*: )?(memtool [a-z].*)")
"""A line of a hint that is a command, after words such as `all of them:`."""


def spell(node: ast.expr, words: dict[str, str]) -> set[str]:
    """The texts that an expression of a hint can have, with words in place of its values."""
    if isinstance(node, ast.Constant):
        return {str(node.value)}
    if isinstance(node, ast.IfExp):
        return spell(node.body, words) | spell(node.orelse, words)
    if isinstance(node, ast.BoolOp):
        return set().union(*(spell(part, words) for part in node.values))
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        pairs = itertools.product(spell(node.left, words), spell(node.right, words))
        return {first + second for first, second in pairs}
    if isinstance(node, ast.JoinedStr):
        parts = [spell(part, words) for part in node.values]
        return {"".join(texts) for texts in itertools.product(*parts)}
    if isinstance(node, ast.FormattedValue):
        inner = node.value
        if isinstance(inner, ast.IfExp):
            return spell(inner, words)
        return {words.get(ast.unparse(inner), "7")}
    return set()


def hints(trees: Trees) -> dict[str, str]:
    """Every text that can be a hint of an error or a problem, with the place that it is from."""
    places = {}
    for path, tree in trees.items():
        words = FILLED | FILLED_IN.get(str(path.relative_to(ROOT)), {})
        for node in ast.walk(tree):
            if not isinstance(node, ast.keyword | ast.Assign):
                continue
            name = node.arg if isinstance(node, ast.keyword) else ast.unparse(node.targets[0])
            for text in spell(node.value, words) if name and name.endswith("hint") else ():
                places[text] = f"{path.relative_to(ROOT)}:{node.value.lineno}"
    return places


def refused(line: str) -> str:
    """Why a command line is no call; empty if it is one."""
    try:
        arguments.parse(shlex.split(line)[1:])
    except (MemtoolError, ValueError) as error:
        return str(error)
    return ""


def test_a_hint_has_three_lines_at_most(all_hints: dict[str, str]) -> None:
    """Each is printed as a line of its own, and nobody reads a fourth."""
    assert len(all_hints) > 300
    long = {text: place for text, place in all_hints.items() if text.count("\n") > 2}
    assert long == {}


def test_a_hint_that_is_a_command_can_be_pasted(all_hints: dict[str, str]) -> None:
    """With words in place of ids and paths it parses as a call."""
    commands = {
        step[1]: place
        for text, place in all_hints.items()
        for line in re.split(r"\n|, or ", text)
        if (step := STEP.fullmatch(line))
    }
    assert len(commands) > 100
    wrong = {line: (place, refused(line)) for line, place in commands.items() if refused(line)}
    assert wrong == {}


def test_the_hints_of_the_golden_errors_can_be_pasted() -> None:
    """As above, for hints that are put together where they are printed."""
    golden = (Path(__file__).parent / "golden" / "errors.txt").read_text(encoding="utf-8")
    lines = [
        step[1]
        for line in golden.splitlines()
        if line.startswith("hint: ") and (step := STEP.fullmatch(line.removeprefix("hint: ")))
    ]
    assert lines
    assert [line for line in lines if refused(line)] == []


BY_MESSAGE = {
    *("bad-event", "foreign-request", "no-home", "no-job", "no-revision", "not-signed"),
    *("partial-commit", "port-taken", "rests-on-change", "rewrite", "session-damaged"),
    *("session-full", "sessions-full", "too-slow", "unknown-event"),
}
"""Codes whose tests name the message or the status of HTTP alone."""


def test_every_code_is_provoked_by_a_test() -> None:
    """A test or a golden file names it, or at least the message."""
    tests = Path(__file__).parent
    texts = [
        path.read_text(encoding="utf-8")
        for path in [*tests.rglob("*.py"), *tests.glob("golden/*.txt")]
        if path != Path(__file__)
    ]
    untested = {code for code in ERROR_CODES if not any(f'"{code}"' in text for text in texts)}
    assert untested == BY_MESSAGE
