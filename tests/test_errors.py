"""The codes of errors: each one that the package uses is explained, and none besides."""

from __future__ import annotations

import ast
from pathlib import Path

import memtool
from memtool.errors import ERROR_CODES
from memtool.memory.schema import CODES

ROOT = Path(memtool.__file__).parent
TREES = {path: ast.parse(path.read_text(encoding="utf-8")) for path in sorted(ROOT.rglob("*.py"))}


def used(tree: ast.Module) -> set[str]:
    """The codes in calls, and those that parameters and attributes named code have by default."""
    found = set()
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
            found |= {part.value for part in parts if isinstance(part, ast.Constant)}
    return {code for code in found if isinstance(code, str) and code}


def test_every_code_is_explained() -> None:
    """What programs get as a code stands in one of the two tables."""
    explained = ERROR_CODES.keys() | CODES.keys()
    absent = {str(path.relative_to(ROOT)): used(tree) - explained for path, tree in TREES.items()}
    assert {path: codes for path, codes in absent.items() if codes} == {}


def test_no_code_is_left_over() -> None:
    """What no module says any more is not promised."""
    said = {
        node.value
        for tree in TREES.values()
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    inside = {
        node.value for node in ast.walk(TREES[ROOT / "errors.py"]) if isinstance(node, ast.Constant)
    }
    elsewhere = set().union(*(used(tree) for tree in TREES.values())) | (said - inside)
    assert ERROR_CODES.keys() - elsewhere == set()


def test_a_code_has_one_meaning() -> None:
    """Those of errors and those of problems are different words, in kebab-case and in order."""
    assert ERROR_CODES.keys() & CODES.keys() == set()
    assert list(ERROR_CODES) == sorted(ERROR_CODES)
    for code, meaning in ERROR_CODES.items():
        assert code == code.lower().replace("_", "-").replace(" ", "-")
        assert meaning
        assert not meaning.endswith(".")
