"""The house: layers, owners, docstrings. What no single module can hold itself."""

from __future__ import annotations

import ast
import inspect
import sys
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest

import memtool
from memtool.commands import VERBS

ROOT = Path(memtool.__file__).parent
LAYERS = (
    ("value", "errors", "templates", "loading", "packing"),
    ("memory",),
    ("store",),
    ("index",),
    ("search",),
    ("gate",),
    ("inject",),
    ("sessions",),
    ("upkeep",),
    ("hosts",),
    ("workspace",),
    ("commands",),
    ("cli", "api", "mcp", "web"),
    ("__main__", "__init__"),
)
"""Rooms and single modules, the ground first. A module imports from its own row or one before."""
LAYER = {name: number for number, names in enumerate(LAYERS) for name in names}
MODULES = {
    ".".join(path.relative_to(ROOT.parent).with_suffix("").parts).removesuffix(".__init__"): path
    for path in sorted(ROOT.rglob("*.py"))
}


@cache
def tree_of(module: str) -> ast.Module:
    return ast.parse(MODULES[module].read_text(encoding="utf-8"))


def room(module: str) -> str:
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else "__init__"


def targets(node: ast.AST) -> list[str]:
    """The modules that an import statement names."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        inner = [f"{node.module}.{alias.name}" for alias in node.names]
        found = [name for name in inner if name in MODULES]
        return found if len(found) == len(inner) else [str(node.module), *found]
    return []


def imports(module: str, *, at_once: bool = False) -> set[str]:
    """Everything a module imports; `at_once` only what runs when it is imported."""
    found: set[str] = set()
    todo: list[ast.AST] = [tree_of(module)]
    while todo:
        node = todo.pop()
        found.update(targets(node))
        is_later = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) or (
            isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        )
        if not (at_once and is_later):
            todo.extend(ast.iter_child_nodes(node))
        elif isinstance(node, ast.If):
            todo.extend(node.orelse)
    return found


def is_ours(name: str) -> bool:
    return name == "memtool" or name.startswith("memtool.")


@pytest.mark.parametrize("module", MODULES)
def test_imports_go_down_only(module: str) -> None:
    """No module imports from a layer above its own, not even later."""
    own = LAYER[room(module)]
    above = {name for name in imports(module) if is_ours(name) and LAYER[room(name)] > own}
    assert above - {"memtool"} == set()


@pytest.mark.parametrize("module", MODULES)
def test_every_import_of_ours_exists(module: str) -> None:
    """What is imported is a module here, not a name of the past."""
    absent = {name for name in imports(module) if is_ours(name) and name not in MODULES}
    assert absent == set()


def test_no_module_imports_itself_in_a_circle() -> None:
    """The imports that run at once are a graph without circles."""
    graph = {name: imports(name, at_once=True) & set(MODULES) for name in MODULES}
    done: set[str] = set()
    while free := {name for name in graph if name not in done and graph[name] <= done}:
        done |= free
    assert set(graph) - done == set()


def test_each_third_party_package_has_one_owner() -> None:
    """One module imports it, so that replacing it touches one file."""
    owners: dict[str, set[str]] = {}
    for module in MODULES:
        for name in imports(module):
            package = name.partition(".")[0]
            if package not in sys.stdlib_module_names and not is_ours(package):
                owners.setdefault(package, set()).add(module)
    assert {package: names for package, names in owners.items() if len(names) > 1} == {}


@pytest.mark.parametrize("module", [name for name in MODULES if room(name) == "memory"])
def test_the_ground_floor_is_pure(module: str) -> None:
    """What a memory is needs no disk, clock, process or network."""
    impure = {
        "os",
        "io",
        "time",
        "datetime",
        "subprocess",
        "socket",
        "pathlib",
        "tempfile",
        "random",
    }
    assert {name.partition(".")[0] for name in imports(module)} & impure == set()


@pytest.mark.parametrize("module", MODULES)
def test_modules_classes_and_public_functions_say_what_they_are(module: str) -> None:
    """Each has a docstring; those of functions begin with one line."""
    tree = tree_of(module)
    assert (ast.get_docstring(tree) or "").strip()
    kinds = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
    for node in tree.body:
        if isinstance(node, kinds) and not node.name.startswith("_"):
            first = (ast.get_docstring(node) or "").partition("\n")[0]
            assert first.endswith((".", "`", ":", "…")), f"{module}.{node.name}"


@pytest.mark.parametrize("module", MODULES)
def test_modules_stay_readable(module: str) -> None:
    """None is longer than 900 lines."""
    assert len(MODULES[module].read_text(encoding="utf-8").splitlines()) <= 900


@pytest.mark.parametrize("module", MODULES)
def test_only_the_boundary_catches_everything(module: str) -> None:
    """`except Exception` stands in the entry points of the surfaces only."""
    broad = [
        node.lineno
        for node in ast.walk(tree_of(module))
        if isinstance(node, ast.ExceptHandler)
        and (node.type is None or ast.unparse(node.type) == "Exception")
    ]
    assert not broad or room(module) in ("cli", "mcp", "web")


@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb.name)
def test_verbs_document_every_parameter(verb: object) -> None:
    """A verb has a function and a renderer; Args names each parameter but the workspace, once."""
    name = getattr(verb, "module", "") or getattr(verb, "name", "")
    module = import_module(f"memtool.commands.{name}")
    assert callable(module.render)
    function = getattr(module, name)
    (workspace, *parameters) = inspect.signature(function).parameters
    assert workspace == "ws"
    doc = inspect.getdoc(function) or ""
    assert "Example:\n" in doc
    assert (getattr(verb, "summary", "") + doc).isprintable() or "\n" in doc
    args = doc.partition("Args:\n")[2].splitlines()
    named = [row.strip().partition(":")[0].lstrip("*") for row in args if row[4:5].strip()]
    assert named == parameters


def test_every_verb_has_its_own_module() -> None:
    """The table of verbs and the modules of the room agree: nothing is left over."""
    helpers = {"__init__", "writing", "drafting"}
    verbs = {verb.module or verb.name for verb in VERBS}
    functions = {
        module.rpartition(".")[2]
        for module in MODULES
        if room(module) == "commands" and any(
            isinstance(node, ast.FunctionDef) and node.name == "render"
            for node in tree_of(module).body
        )
    }  # fmt: skip
    assert functions - helpers <= verbs
