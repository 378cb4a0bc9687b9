"""The house: layers, cycles, owners, verbs, docstrings. What no single module can hold itself.

Each rule reads all modules at once. None counts modules, lines or names: such numbers were met to
the last one, and bent the code.
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from importlib.metadata import packages_distributions
from itertools import groupby
from pathlib import Path

import memtool
from memtool.calls.signature import read_interface
from memtool.commands import VERBS

ROOT = Path(memtool.__file__).parent
INTERFACES = ("cli", "mcp", "web", "api")
LAYERS = (
    (
        "value",
        "errors",
        "pattern",
        "plain_toml",
        "tables",
        "agents",
        "templates",
        "version",
        "installation",
    ),
    ("memory", "redaction"),
    ("store",),
    ("index",),
    ("search",),
    ("inject", "authoring", "gate"),
    ("sessions",),
    ("hosts", "upkeep", "importing", "fleet", "demo", "reports"),
    ("commands",),
    ("calls",),
    INTERFACES,
    ("__main__", "__init__"),
)
"""Rooms and single modules, the ground first. A module imports from its own row or one before."""
LAYER = {name: number for number, names in enumerate(LAYERS) for name in names}
MODULES = {
    ".".join(path.relative_to(ROOT.parent).with_suffix("").parts).removesuffix(".__init__"): path
    for path in sorted(ROOT.rglob("*.py"))
}
PACKAGES = {name for name, path in MODULES.items() if path.name == "__init__.py"}
PRIVATE_ALLOWED = {"_blake2", "_signal"}
"""Private modules of CPython that one module each may import: `hashlib` and `signal` cost a cold
start more than a tenth of an interpreter."""
SUPERVISOR = "memtool.sessions.supervisor"
POSIX_ONLY = {
    **dict.fromkeys(
        ("import fcntl", "os.O_CLOEXEC", "os.O_DIRECTORY", "os.O_NOFOLLOW", "os.O_NONBLOCK"),
        "memtool.store.files",
    ),
    **dict.fromkeys(
        ("import _signal", "os.fork", "os.kill", "os.killpg", "os.posix_spawn", "os.setsid"),
        "memtool.store.process",
    ),
    **dict.fromkeys(("import pty", "import resource", "import termios", "import tty"), SUPERVISOR),
    "import pwd": "memtool.hosts.install",
}
"""What only POSIX has, and the one module that may name it."""
LEAVES = ("importing", "upkeep", "hosts", "fleet", "reports", "mcp", "web")
"""Features: only verbs use them, so that each can go with its verbs and its rows in tables."""
IMPURE = {
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


@cache
def source_of(module: str) -> str:
    return MODULES[module].read_text(encoding="utf-8")


@cache
def tree_of(module: str) -> ast.Module:
    return ast.parse(source_of(module))


@cache
def statements_of(module: str) -> tuple[ast.AST, ...]:
    """All statements of a module with what handles their errors, without any expression."""
    statements: list[ast.AST] = [tree_of(module)]
    for node in statements:
        for name in ("body", "orelse", "finalbody", "handlers", "cases"):
            inner = getattr(node, name, ())
            statements.extend(inner if isinstance(inner, list) else ())
    return tuple(statements)


def room(module: str) -> str:
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else "__init__"


def is_ours(name: str) -> bool:
    return name == "memtool" or name.startswith("memtool.")


def targets(node: ast.AST) -> list[str]:
    """The modules that an import statement names."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        inner = [f"{node.module}.{alias.name}" for alias in node.names]
        modules = [name for name in inner if name in MODULES]
        return modules if len(modules) == len(inner) else [str(node.module), *modules]
    return []


@cache
def imports(module: str) -> frozenset[str]:
    """Everything a module imports: at once, in a function, or for its types alone."""
    return frozenset(name for node in statements_of(module) for name in targets(node))


def edges(module: str) -> set[str]:
    """Return the modules of ours that one imports; a package counts if it is named itself."""
    return {name for name in imports(module) if name in MODULES and name != module}


def in_cycles(graph: dict[str, set[str]]) -> list[list[str]]:
    """The groups of modules that reach each other, each with two members or more."""

    def reached(start: str) -> set[str]:
        seen: set[str] = set()
        todo = list(graph[start])
        while todo:
            name = todo.pop()
            if name not in seen:
                seen.add(name)
                todo.extend(graph[name])
        return seen

    reach = {name: reached(name) for name in graph}
    groups = {
        tuple(sorted(other for other in reach[name] if name in reach[other]))
        for name in graph
        if name in reach[name]
    }
    return [list(group) for group in sorted(groups)]


def third_party() -> Iterator[tuple[str, str]]:
    """Each package that is neither ours nor Python's, with a module that imports it."""
    for module in MODULES:
        for package in {name.partition(".")[0] for name in imports(module)}:
            if package not in sys.stdlib_module_names and not is_ours(package):
                yield package, module


def verb_modules() -> set[str]:
    return {f"memtool.commands.{verb.module or verb.name}" for verb in VERBS}


def test_imports_go_down_only() -> None:
    """No module imports from a layer above its own, not even in a function or for its types."""
    wrong = sorted(
        f"{module} -> {name}"
        for module in MODULES
        for name in imports(module)
        if is_ours(name) and name != "memtool" and LAYER[room(name)] > LAYER[room(module)]
    )
    assert wrong == []


def test_features_are_leaves() -> None:
    """Nothing imports a feature but verbs: no other feature, no layer above, not for types."""
    wrong = sorted(
        f"{module} -> {name}"
        for module in MODULES
        for name in imports(module)
        if is_ours(name) and room(name) in LEAVES and room(module) not in (room(name), "commands")
    )
    assert wrong == []


def test_no_interface_imports_another() -> None:
    """Their shared code is in calls."""
    wrong = sorted(
        f"{module} -> {name}"
        for module in MODULES
        for name in imports(module)
        if is_ours(name)
        and room(name) in INTERFACES
        and room(module) in {*INTERFACES} - {room(name)}
    )
    assert wrong == []


def test_every_import_of_ours_exists() -> None:
    """Every imported module exists, without old names."""
    absent = {
        f"{module} -> {name}"
        for module in MODULES
        for name in imports(module)
        if is_ours(name) and name not in MODULES
    }
    assert absent == set()


def test_every_room_has_a_layer() -> None:
    """A new room is put into the table of layers."""
    assert {room(module) for module in MODULES} - LAYER.keys() == set()


def test_no_import_cycle() -> None:
    """A cycle hidden in a function, or needed for types alone, is a cycle too."""
    assert in_cycles({name: edges(name) for name in MODULES}) == []


def test_each_third_party_package_has_one_owner() -> None:
    """One module imports it, so that replacing it touches one file."""
    owners: dict[str, set[str]] = {}
    for package, module in third_party():
        owners.setdefault(package, set()).add(module)
    several = {package: sorted(names) for package, names in owners.items() if len(names) > 1}
    assert several == {}


def test_what_is_imported_is_declared_and_nothing_else() -> None:
    """`pip install` brings all that memtool needs, and no package that it does not."""
    project = tomllib.loads((ROOT.parent / "pyproject.toml").read_text("utf-8"))["project"]
    extras = project["optional-dependencies"]
    rows = project["dependencies"] + extras["semantic"] + extras["web"]
    declared = {re.match(r"[\w-]+", row)[0] for row in rows}
    providers = packages_distributions()
    imported = {providers[package][0].lower().replace("_", "-") for package, _ in third_party()}
    assert imported == declared


def test_what_only_posix_has_is_in_two_modules() -> None:
    """Opening and locking, starting and ending: another system is two modules away.

    The supervisor is a program of its own, which imports no module of ours.
    """
    wrong = sorted(
        f"{module}: {name}"
        for module in MODULES
        for name in {
            *(f"import {name.partition('.')[0]}" for name in imports(module)),
            *attributes(module),
        }
        if name in POSIX_ONLY and module not in (POSIX_ONLY[name], SUPERVISOR)
    )
    assert wrong == []


def attributes(module: str) -> Iterator[str]:
    """What a module names as `os.fork`; few modules have a text like that."""
    if any(name in source_of(module) for name in POSIX_ONLY):
        for node in ast.walk(tree_of(module)):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                yield f"{node.value.id}.{node.attr}"


def test_no_private_module_of_python() -> None:
    """Python's own import and its public modules; two exceptions have one owner each."""
    owners: dict[str, set[str]] = {}
    for module in MODULES:
        for name in imports(module):
            package = name.partition(".")[0]
            if package.startswith("_") and package != "__future__":
                owners.setdefault(package, set()).add(module)
    wrong = [
        f"{module} -> {package}"
        for package, modules in sorted(owners.items())
        for module in sorted(modules)
        if package not in PRIVATE_ALLOWED or len(modules) > 1
    ]
    assert wrong == []


def test_the_ground_floor_is_pure() -> None:
    """Memories and secrets are defined without disk, clock, process or network."""
    impure = {
        (module, name)
        for module in MODULES
        if room(module) in ("memory", "redaction")
        for name in imports(module)
        if name.partition(".")[0] in IMPURE
    }
    assert impure == set()


def test_modules_classes_and_public_functions_say_what_they_are() -> None:
    """Each has a docstring; those of functions begin with one line."""
    kinds = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
    silent = []
    for module in MODULES:
        tree = tree_of(module)
        if not (ast.get_docstring(tree) or "").strip():
            silent.append(module)
        for node in tree.body:
            if isinstance(node, kinds) and not node.name.startswith("_"):
                first = (ast.get_docstring(node) or "").partition("\n")[0]
                if not first.endswith((".", "`", ":", "…")):
                    silent.append(f"{module}.{node.name}")
    assert silent == []


def test_commands_are_verbs() -> None:
    """A file in commands is a verb of the table, or one of seven shared ones that begin with _."""
    files = {name for name in MODULES if room(name) == "commands" and name not in PACKAGES}
    shared = {name for name in files if name.rpartition(".")[2].startswith("_")}
    assert len(shared) <= 7
    assert verb_modules() <= files
    assert sorted(files - verb_modules() - shared) == []


def test_no_verb_imports_another() -> None:
    """Code shared by two verbs is in a layer below them."""
    verbs = verb_modules()
    wrong = sorted(
        f"{module} -> {name}" for module in verbs for name in imports(module) & verbs - {module}
    )
    assert wrong == []


def test_only_the_boundary_catches_everything() -> None:
    """`except Exception` is in one module, for processes and for servers."""
    broad = [
        f"{module}:{node.lineno}"
        for module in MODULES
        if module != "memtool.calls.boundary"
        for node in statements_of(module)
        if isinstance(node, ast.ExceptHandler)
        and (node.type is None or "Exception" in re.findall(r"\w+", ast.unparse(node.type)))
    ]
    assert broad == []


def test_verbs_document_every_parameter() -> None:
    """A verb has a function and a renderer; each parameter has a help, in the order of its own."""
    wrong = []
    for verb in VERBS:
        face = read_interface(verb)
        parameters = face.parameters
        doc = inspect.getdoc(face.run) or ""
        args = doc.partition("Args:\n")[2].splitlines()
        named = [row.strip().partition(":")[0].lstrip("*") for row in args if row[4:5].strip()]
        if not (
            callable(face.render)
            and "Example:\n" in doc
            and (verb.summary + doc).replace("\n", "").isprintable()
            and named == [parameter.name for parameter in parameters if parameter.name in named]
            and all(parameter.help for parameter in parameters)
        ):
            wrong.append(verb.name)
    assert wrong == []


def test_every_test_that_takes_long_is_there() -> None:
    """A test that was renamed or removed is not listed any more."""
    tests = Path(__file__).parent
    rows = (tests / "long.txt").read_text().split()
    assert rows == sorted(set(rows))
    for path, group in groupby(rows, key=lambda row: row.partition("::")[0]):
        text = (tests.parent / path).read_text(encoding="utf-8")
        assert [row for row in group if f"def {row.rpartition('::')[2]}(" not in text] == []
