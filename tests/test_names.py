"""Names that do not describe what they hold are counted: in the package, its tests and benches."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import memtool

ROOT = Path(memtool.__file__).parents[1]
TREES = ("memtool", "tests", "bench")
BANNED = frozenset(
    ("one", "found", "asked", "known", "said", "told", "held", "kept", "given", "taken", "beside")
)
SCARCE = frozenset(("left", "more", "rest", "others", "few", "most"))
"""Words that are sometimes the right name, such as the left side of a comparison."""
MAX_SCARCE = 12
PREFIXES = ("MOST", "LEAST")
"""A limit is a MAX_ or MIN_, as everywhere else."""


def bound_names(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield every name that a module binds, with its line."""
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name):
                yield node.lineno, name
            case ast.Attribute(attr=name, ctx=ast.Store()):
                yield node.lineno, name
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield node.lineno, name
            case ast.ClassDef(name=name):
                yield node.lineno, name
            case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)):
                yield node.lineno, name
            case ast.MatchStar(name=str(name)) | ast.MatchMapping(rest=str(name)):
                yield node.lineno, name
            case ast.alias(asname=str(name)):
                yield node.lineno, name


def names_of(tree: str) -> list[tuple[str, str]]:
    """Return every place below a directory that binds a name, and the name without underscores."""
    return [
        (f"{path.relative_to(ROOT)}:{line} {name}", name.strip("_"))
        for path in sorted((ROOT / tree).rglob("*.py"))
        for line, name in bound_names(ast.parse(path.read_text(encoding="utf-8")))
    ]


def test_every_kind_of_binding_is_seen() -> None:
    """A rule that misses loops or parameters would prove nothing."""
    source = """
import os as kept
def found(one, *, told): pass
class asked:
    held: int = 1
for given in []: pass
[0 for known in []]
try: pass
except OSError as said: pass
match 1:
    case taken: pass
    case [1, *rest]: pass
    case {2: 3, **left}: pass
async def more(*others, **few): pass
kept.beside = most = 1
"""
    assert {name for _line, name in bound_names(ast.parse(source))} == BANNED | SCARCE


def test_names_describe_what_they_hold() -> None:
    """`record`, `hits`, `query` and `ids` do; no participle or pronoun does, and few scarce words.

    All rules are one test, since the sources are parsed for it.
    """
    names = [row for tree in TREES for row in names_of(tree)]
    assert len(names) > 10_000
    assert [place for place, name in names if name in BANNED] == []
    assert [place for place, name in names if name.partition("_")[0] in PREFIXES] == []
    scarce = [place for place, name in names if name in SCARCE]
    assert len(scarce) <= MAX_SCARCE, scarce
