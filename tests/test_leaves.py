"""Leaves: a feature goes with its package, its verbs and its rows, and the rest works."""

from __future__ import annotations

import ast
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import Sandbox

import memtool
from memtool.cli.main import SERVERS
from memtool.commands import VERBS, Verb

ROOT = Path(memtool.__file__).parent
TABLES = (
    "api.py",
    "cli/main.py",
    "commands/__init__.py",
    "commands/_features.py",
    "calls/procedures.py",
    "web/pages/__init__.py",
)
"""Where a feature has rows: these files are edited, all others that need it are deleted."""
VERB_OF = {
    "fleet": "publish",
    "hosts": "install",
    "importing": "import",
    "mcp": "mcp",
    "upkeep": "maintain",
    "web": "serve",
}
"""A verb that goes with each."""
CALLS = (
    ("init",),
    ("remember", "Sessions live in redis."),
    ("search", "sessions in redis"),
    ("inject", "--primer"),
    ("inject", "--prompt", "where do sessions live?"),
    ("check",),
    ("status",),
    ("list",),
    ("log",),
    ("forget", "sessions live in redis", "--reason", "They are gone."),
    ("help",),
)
PROGRAM = """
import contextlib, io, json, sys
from importlib import import_module
from pathlib import Path
from memtool.cli.main import main
root = Path(sys.argv[1])
for path in sorted((root / "memtool").rglob("*.py")):
    name = ".".join(path.relative_to(root).with_suffix("").parts)
    if not name.endswith("__main__"):
        import_module(name.removesuffix(".__init__"))
answers = []
for call in json.loads(sys.argv[2]):
    with contextlib.redirect_stdout(io.TextIOWrapper(io.BytesIO(), "utf-8")) as out:
        code = main(call)
        out.flush()
        answers.append((code, out.buffer.getvalue().decode()))
print(json.dumps(answers))
"""
"""Imports every module of a copy, and prints how it answers to calls."""


def needs(tree: ast.Module, gone: set[str]) -> set[str]:
    """The names that a module takes from modules that are gone, as soon as it is imported."""
    names = set()
    for node in tree.body:
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:
                if not gone.isdisjoint({node.module, f"{node.module}.{alias.name}"}):
                    names.add(alias.asname or alias.name)
    return names


class WithoutRows(ast.NodeTransformer):
    """Takes out imports of what is gone, and the rows of tables that name it."""

    def __init__(self, names: set[str], texts: set[str]) -> None:
        self.names, self.texts = names, texts

    def names_it(self, node: ast.expr) -> bool:
        """Whether a row takes something that is gone, or begins with its name."""
        inner = list(ast.walk(node))
        first = node.args[0] if isinstance(node, ast.Call) and node.args else node
        is_called_so = isinstance(first, ast.Constant) and first.value in self.texts
        return is_called_so or any(
            isinstance(part, ast.Name) and part.id in self.names for part in inner
        )

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.ImportFrom | None:
        node.names = [
            alias for alias in node.names if (alias.asname or alias.name) not in self.names
        ]
        return node if node.names else None

    def visit_Tuple(self, node: ast.Tuple) -> ast.Tuple:
        node.elts = [element for element in node.elts if not self.names_it(element)]
        return node

    def visit_Dict(self, node: ast.Dict) -> ast.Dict:
        rows = [
            (key, value)
            for key, value in zip(node.keys, node.values, strict=True)
            if not (key is not None and self.names_it(key))
        ]
        node.keys, node.values = [row[0] for row in rows], [row[1] for row in rows]
        return node

    def visit_Assign(self, node: ast.Assign) -> ast.Assign | None:
        self.generic_visit(node)
        return None if self.names_it(node.value) else node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        return node  # a row is data


def module_of(verb: Verb) -> str:
    """The module that a verb is in."""
    return f"memtool.commands.{verb.module or verb.name}"


def delete(feature: str, root: Path) -> None:
    """Delete a feature from a copy of the package."""
    shutil.copytree(ROOT, root / "memtool", ignore=shutil.ignore_patterns("__pycache__"))
    place = root / "memtool"
    shutil.copytree(ROOT.parent / "templates", root / "templates")
    shutil.rmtree(place / feature)
    paths = {
        ".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__"): path
        for path in sorted(place.rglob("*.py"))
    }
    tables = {name for name, path in paths.items() if str(path.relative_to(place)) in TABLES}
    trees = {name: ast.parse(path.read_text(encoding="utf-8")) for name, path in paths.items()}
    gone = {f"memtool.{feature}"}
    gone |= {f"memtool.{feature}.{path.stem}" for path in (ROOT / feature).glob("*.py")}
    gone |= {module_of(verb) for verb in VERBS if SERVERS.get(verb.name) == f"memtool.{feature}"}
    while dead := {name for name in trees.keys() - tables - gone if needs(trees[name], gone)}:
        gone |= dead
    texts = {feature, *(verb.name for verb in VERBS if module_of(verb) in gone)}
    for name, path in paths.items():
        if name in gone:
            path.unlink()
        elif name in tables:
            tree = WithoutRows(needs(trees[name], gone), texts).visit(trees[name])
            path.write_text(ast.unparse(tree), encoding="utf-8")


@pytest.mark.parametrize("feature", VERB_OF)
def test_the_rest_works_without_it(sandbox: Sandbox, tmp_path: Path, feature: str) -> None:
    """Every module is imported, and everyday verbs answer as they do with it."""
    root = tmp_path / "copy"
    delete(feature, root)
    done = subprocess.run(
        [sys.executable, "-P", "-c", PROGRAM, str(root), json.dumps(CALLS)],
        cwd=sandbox.path,
        env=sandbox.env | {"PYTHONPATH": str(root)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    answers = {call[0]: answer for call, answer in zip(CALLS, json.loads(done.stdout), strict=True)}
    assert {name for name, (code, _text) in answers.items() if code > 1} == set(), done.stderr
    assert "redis" in answers["search"][1]
    assert "redis" in answers["inject"][1]
    verbs = {line.split()[0] for line in answers["help"][1].splitlines() if line.strip()}
    assert "search" in verbs
    assert VERB_OF[feature] not in verbs
