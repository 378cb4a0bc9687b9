"""Leaves: a feature goes with its package, its verbs and its rows, and the rest works."""

from __future__ import annotations

import ast
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import Sandbox

import memtool
from memtool.cli.main import SURFACES
from memtool.commands import VERBS, Verb

ROOT = Path(memtool.__file__).parent
TABLES = (
    "api.py",
    "cli/main.py",
    "commands/__init__.py",
    "commands/_features.py",
    "rpc/procedures.py",
    "web/pages/__init__.py",
)
"""Where a feature has rows: these files are edited, all others that need it are deleted."""
CALLS = (
    ("remember", "Sessions live in redis."),
    ("search", "sessions in redis"),
    ("inject", "--prompt", "where do sessions live?"),
    ("inject", "--primer"),
    ("check",),
    ("status",),
    ("list",),
    ("log",),
    ("doctor",),
)
IMPORT_ALL = """
import sys
from importlib import import_module
from pathlib import Path
root = Path(sys.argv[1])
for path in sorted((root / "memtool").rglob("*.py")):
    name = ".".join(path.relative_to(root).with_suffix("").parts)
    if not name.endswith("__main__"):
        import_module(name.removesuffix(".__init__"))
"""
RUN = "import sys; from memtool.cli.main import main; sys.exit(main(sys.argv[1:]))"


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
            isinstance(one, ast.Name) and one.id in self.names for one in inner
        )

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.ImportFrom | None:
        node.names = [one for one in node.names if (one.asname or one.name) not in self.names]
        return node if node.names else None

    def visit_Tuple(self, node: ast.Tuple) -> ast.Tuple:
        node.elts = [one for one in node.elts if not self.names_it(one)]
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
    gone |= {module_of(verb) for verb in VERBS if SURFACES.get(verb.name) == f"memtool.{feature}"}
    while found := {name for name in trees.keys() - tables - gone if needs(trees[name], gone)}:
        gone |= found
    texts = {feature, *(verb.name for verb in VERBS if module_of(verb) in gone)}
    for name, path in paths.items():
        if name in gone:
            path.unlink()
        elif name in tables:
            tree = WithoutRows(needs(trees[name], gone), texts).visit(trees[name])
            path.write_text(ast.unparse(tree), encoding="utf-8")


@pytest.mark.parametrize("feature", ["fleet", "web"])
def test_the_rest_works_without_it(sandbox: Sandbox, tmp_path: Path, feature: str) -> None:
    """Every module is imported, and everyday verbs answer as they do with it."""
    root = tmp_path / "copy"
    delete(feature, root)
    env = sandbox.env | {"PYTHONPATH": str(root)}

    def run(*args: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-P", "-c", *args],
            cwd=sandbox.path, env=env, capture_output=True, text=True, check=False,
        )  # fmt: skip

    imported = run(IMPORT_ALL, str(root))
    assert (imported.returncode, imported.stderr) == (0, "")
    assert run(RUN, "init").returncode == 0
    for call in CALLS:
        done = run(RUN, *call)
        assert done.returncode in (0, 1), (call, done.stderr)
    assert "redis" in run(RUN, "search", "sessions").stdout
    verbs = {line.split()[0] for line in run(RUN, "help").stdout.splitlines() if line.strip()}
    assert "search" in verbs
    assert {"fleet": "publish", "web": "serve"}[feature] not in verbs
