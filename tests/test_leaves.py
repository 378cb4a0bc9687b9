"""Leaves: a feature goes with its modules, its verbs and its rows in tables, and the rest works.

That nothing else names a feature is read from the sources, for all of them. The slow tests delete
each in a copy, import the rest, and run it.
"""

from __future__ import annotations

import ast
import compileall
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path

import pytest
from conftest import Sandbox
from test_source import MODULES, source_of, targets

import memtool
from memtool.agents import AGENTS
from memtool.commands import VERBS
from memtool.reports import FORMATS as REPORTS
from memtool.sessions.transcripts.formats import FORMATS, PLAIN
from memtool.value import Value

ROOT = Path(memtool.__file__).parents[1]
VERB_TABLES = (
    "memtool.api",
    "memtool.calls.procedures",
    "memtool.cli.main",
    "memtool.commands",
    "memtool.commands._features",
    "memtool.web.pages",
)
"""Where verbs and what they add have rows."""


class Leaf(Value):
    """A feature: patterns of its modules, its verbs, the tables with its rows.

    `texts` are how rows begin that name it without an import.
    """

    modules: tuple[str, ...]
    verbs: tuple[str, ...] = ()
    tables: tuple[str, ...] = VERB_TABLES
    texts: tuple[str, ...] = ()


LEAVES: dict[str, Leaf] = {
    "demo": Leaf(("memtool.demo",), ("demo",)),
    "fleet": Leaf(
        ("memtool.fleet", "memtool.fleet.*", "memtool.web.pages.fleet"),
        ("fleet status", "fleet sync", "fleet init", "fleet similar", "publish"),
        texts=("fleet",),
    ),
    "hosts": Leaf(
        ("memtool.hosts", "memtool.hosts.*", "memtool.cli.hooks", "memtool.web.pages.health"),
        ("doctor", "hook", "install", "package", "uninstall"),
        texts=("hosts",),
    ),
    "importing": Leaf(
        ("memtool.importing", "memtool.importing.*"),
        ("export", "import", "import git", "migrate"),
        texts=("importing",),
    ),
    "map": Leaf(
        ("memtool.web.map_areas", "memtool.web.pages.memory_map", "memtool.web.site_map"),
        tables=("memtool.web.pages", "memtool.web.site"),
    ),
    "mcp": Leaf(("memtool.mcp", "memtool.mcp.*"), ("mcp",)),
    "premises": Leaf(("memtool.web.pages.premises",), tables=("memtool.web.pages",)),
    "review": Leaf(
        (
            "memtool.commands._review_premises",
            "memtool.search.change_trees",
            "memtool.search.premise_changes",
            "memtool.store.change",
            "memtool.web.pages.review",
        ),
        ("review",),
    ),
    "semantics": Leaf(
        ("memtool.search.encoder", "memtool.search.model", "memtool.search.semantic"),
        tables=("memtool.hosts.diagnostics", "memtool.search.stages"),
        texts=("semantic",),
    ),
    "web": Leaf(("memtool.web", "memtool.web.*"), ("serve", "site")),
}
LEAVES |= {
    f"host {name}": Leaf(
        (f"memtool.hosts.{name}",),
        tables=("memtool.agents", "memtool.hosts.packages"),
        texts=(name,),
    )
    for name in AGENTS
}
LEAVES |= {
    f"transcript {name}": Leaf(
        (f"memtool.sessions.transcripts.{name}",), tables=("memtool.sessions.transcripts.formats",)
    )
    for name in dict.fromkeys(format_name.rpartition("-")[2] for format_name in FORMATS)
    if name != PLAIN  # what is left if no other format knows a text
}
LEAVES |= {
    f"report {name}": Leaf((module,), tables=("memtool.reports",), texts=(name,))
    for name, module in REPORTS.items()
    if module
}
CALLS = (
    ("init",),
    ("remember", "Sessions live in redis.", "--commit"),
    ("search", "sessions in redis"),
    ("inject", "--primer"),
    ("inject", "--prompt", "where do sessions live?"),
    ("alias", "add", "session", "login"),
    ("blame", "sessions live in redis"),
    ("check",),
    ("completion", "bash"),
    ("config",),
    ("conflicts",),
    ("curate",),
    ("doctor",),
    ("drift",),
    ("export",),
    ("fleet", "status"),
    ("install", "git", "--dry-run"),
    ("list",),
    ("log",),
    ("maintain",),
    ("migrate",),
    ("pin", "sessions live in redis"),
    ("promote",),
    ("redact", "--dry-run"),
    ("schema",),
    ("session", "list"),
    ("show", "sessions live in redis"),
    ("stats",),
    ("status",),
    ("tag", "sessions live in redis", "--add", "cache"),
    ("verify",),
    ("why", "sessions live in redis"),
    ("undo", "sessions live in redis"),
    ("forget", "sessions live in redis", "--reason", "They are gone."),
    ("help",),
)
"""A call of each verb that needs no more than a repository."""
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
from memtool.commands import VERBS
names = [verb.name for verb in VERBS]
words = {name.partition(" ")[0] for name in names} | {"help"}
calls = [call for call in json.loads(sys.argv[2]) if call[0] in words]
answers = []
for call in calls + [[*name.split(), "--help"] for name in names]:
    with contextlib.redirect_stdout(io.TextIOWrapper(io.BytesIO(), "utf-8")) as out:
        code = main(call)
        out.flush()
        answers.append((" ".join(call), code, out.buffer.getvalue().decode()))
print(json.dumps((names, answers)))
"""
"""Imports every module of a copy, and prints its verbs and how it answers to calls."""
IMPORT = re.compile(
    r"^ *(?:from (?P<module>memtool[\w.]*) import (?P<names>\([^)]*\)|.*)"
    r"|import (?P<whole>memtool[\w.]*))",
    re.MULTILINE,
)


def modules_of(leaf: Leaf) -> set[str]:
    """The modules of a feature, with those of its verbs."""
    assert {verb.name for verb in VERBS} >= {*leaf.verbs}
    patterns = (
        *leaf.modules,
        *(
            f"memtool.commands.{verb.module or verb.name}"
            for verb in VERBS
            if verb.name in leaf.verbs
        ),
    )
    return {name for name in MODULES if any(fnmatchcase(name, each) for each in patterns)}


@cache
def names_in(module: str) -> frozenset[str]:
    """What a module may import of ours: by its text, so that few have to be parsed."""
    names: set[str] = set()
    for match in IMPORT.finditer(source_of(module)):
        base = match["module"] or match["whole"]
        inner = re.findall(r"\w+", match["names"] or "")
        names |= {base, *(f"{base}.{name}" for name in inner)}
    return frozenset(names)


def imported(tree: ast.AST) -> set[str]:
    """What a part of a module imports, also in its functions."""
    return {name for node in ast.walk(tree) for name in targets(node)}


def bound_by(node: ast.AST, gone: set[str]) -> Iterator[str]:
    """The names that a statement binds: to what is gone, or to a function that asks for it."""
    if isinstance(node, ast.ImportFrom):
        for alias in node.names:
            if not gone.isdisjoint({str(node.module), f"{node.module}.{alias.name}"}):
                yield alias.asname or alias.name
    elif isinstance(node, ast.FunctionDef) and not gone.isdisjoint(imported(node)):
        yield node.name


def used_in(tree: ast.AST) -> set[str]:
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}


class WithoutRows(ast.NodeTransformer):
    """Takes out what is gone: imports, functions that ask for it, and the rows that name it."""

    def __init__(self, tree: ast.Module, gone: set[str], texts: set[str]) -> None:
        self.texts = texts
        self.names = {name for node in tree.body for name in bound_by(node, gone)}
        functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
        rows = [node for node in functions if node.name.startswith("_")]
        while dead := {node.name for node in rows if self.names & used_in(node)} - self.names:
            self.names |= dead

    def names_it(self, node: ast.expr) -> bool:
        """Whether a row takes something that is gone, or begins with its name."""
        first = node.args[0] if isinstance(node, ast.Call) and node.args else node
        is_called_so = isinstance(first, ast.Constant) and first.value in self.texts
        return is_called_so or bool(self.names & used_in(node))

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
            if key is None or not (self.names_it(key) or self.names & used_in(value))
        ]
        node.keys, node.values = [row[0] for row in rows], [row[1] for row in rows]
        return node

    def visit_Assign(self, node: ast.Assign) -> ast.Assign | None:
        self.generic_visit(node)
        return None if self.names_it(node.value) else node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef | None:
        return None if node.name in self.names else node


def without(leaf: Leaf, table: str) -> tuple[ast.Module, set[str]]:
    """A table without a feature, and the names that are gone from it."""
    tree = ast.parse(source_of(table))
    cutter = WithoutRows(tree, modules_of(leaf), {*leaf.texts, *leaf.verbs})
    return cutter.visit(tree), cutter.names


@pytest.mark.parametrize("name", LEAVES)
def test_only_tables_name_a_feature(name: str) -> None:
    """Without its modules, verbs and rows, no module imports it, and no table uses it."""
    leaf = LEAVES[name]
    gone = modules_of(leaf)
    assert gone
    tables = {table for table in leaf.tables if table not in gone}
    wrong = {
        f"{module} -> {target}"
        for module in MODULES.keys() - gone - tables
        if not gone.isdisjoint(names_in(module))
        for target in imported(ast.parse(source_of(module))) & gone
    }
    for table in tables:
        if leaf.texts or leaf.verbs or not gone.isdisjoint(names_in(table)):
            tree, names = without(leaf, table)
            wrong |= {f"{table} -> {target}" for target in imported(tree) & gone}
            wrong |= {f"{table} uses {used}" for used in names & used_in(tree)}
    assert wrong == set()


@pytest.fixture(scope="session")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A compiled copy of the package, for all tests of a worker."""
    root = tmp_path_factory.mktemp("package")
    for name in ("memtool", "templates"):
        shutil.copytree(ROOT / name, root / name)
    compileall.compile_dir(root / "memtool", quiet=1)
    return root


def delete(leaf: Leaf, package: Path, root: Path) -> None:
    """Make a copy without a feature; files that stay are links to those of the package."""
    for name in ("memtool", "templates"):
        shutil.copytree(package / name, root / name, copy_function=os.link)
    gone = modules_of(leaf)
    for module in (*gone, *(table for table in leaf.tables if table not in gone)):
        path = root / MODULES[module].relative_to(ROOT)
        path.unlink()
        if module not in gone:
            path.write_text(ast.unparse(without(leaf, module)[0]), encoding="utf-8")


@pytest.mark.slow
@pytest.mark.parametrize("name", LEAVES)
def test_the_rest_works_without_it(
    sandbox: Sandbox, package: Path, tmp_path: Path, name: str
) -> None:
    """Every module is imported, and every other verb has its help and answers."""
    root, leaf = tmp_path / "copy", LEAVES[name]
    delete(leaf, package, root)
    sandbox.write("session.py", "import redis\n")
    sandbox.commit()
    done = subprocess.run(
        [sys.executable, "-P", "-c", PROGRAM, str(root), json.dumps(CALLS)],
        cwd=sandbox.path,
        env=sandbox.env | {"PYTHONPATH": str(root)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    verbs, answers = json.loads(done.stdout)
    assert verbs == [verb.name for verb in VERBS if verb.name not in leaf.verbs]
    assert [call for call, code, _text in answers if code > 1] == [], done.stderr
    texts = {call: text for call, _code, text in answers}
    assert "redis" in texts["search sessions in redis"]
    assert "redis" in texts["inject --prompt where do sessions live?"]


VERB_TESTS = ("calls", "cli", "mcp")
"""Folders of the tests that run verbs. Below verbs nothing changes: no module there imports a table
that has rows of a feature, which the layers see to."""
NAMED = {"fleet": r"fleet|publish", "web": r"\bweb\b|\"serve\"|\"site\""}
"""What tests name that are about a feature, too."""
ABOUT_DOCS = "not (documentation or reference_in_the_docs or variables_of_the_environment)"
"""Leaves out tests that compare the code with pages, which tell of all features."""


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMED)
def test_the_tests_of_verbs_pass_without_it(package: Path, tmp_path: Path, name: str) -> None:
    """All that do not name the feature, in a copy of the repository."""
    root, env = tmp_path / "copy", dict(os.environ)
    delete(LEAVES[name], package, root)
    shutil.copytree(ROOT / "tests", root / "tests", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", root)
    chosen = [
        str(path)
        for folder in VERB_TESTS
        for path in sorted((root / "tests" / folder).rglob("test_*.py"))
        if not re.search(NAMED[name], path.read_text(encoding="utf-8"))
    ]
    assert len(chosen) > 10
    for variable in [each for each in env if each.startswith("PYTEST_")]:
        del env[variable]
    options = ("-p", "no:cacheprovider", "--basetemp", str(tmp_path / "tests"), "--tb=short")
    options += ("-k", ABOUT_DOCS)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, *chosen],
        cwd=root,
        env=env | {"PYTHONPATH": str(root)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-8_000:] + done.stderr[-2_000:]
