from __future__ import annotations

import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

import memtool

ROOT = Path(memtool.__file__).parents[1]
SOURCES = ("memtool", "templates", "pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md")


def project() -> dict[str, object]:
    table = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert isinstance(table, dict)
    return table


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    """The wheel as it would be published, from a copy of the tree."""
    pytest.importorskip("hatchling")
    copy = tmp_path_factory.mktemp("tree")
    for name in SOURCES:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, copy / name)
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(copy / "out")],
        cwd=copy, capture_output=True, check=True,
    )  # fmt: skip
    (built,) = (copy / "out").iterdir()
    return zipfile.ZipFile(built)


def test_the_version_stands_once(wheel: zipfile.ZipFile):
    """`memtool.__version__`, the project file and the wheel agree."""
    assert memtool.__version__ == project()["version"]
    assert f"memtool-{memtool.__version__}.dist-info/METADATA" in wheel.namelist()


def test_the_wheel_holds_code_types_templates_and_licence(wheel: zipfile.ZipFile):
    """Whoever installs memtool gets all that it needs to run and to be type-checked."""
    names = set(wheel.namelist())
    code = {p.relative_to(ROOT).as_posix() for p in (ROOT / "memtool").rglob("*.py")}
    templates = {
        f"memtool/{p.relative_to(ROOT).as_posix()}"
        for p in (ROOT / "templates").rglob("*")
        if p.is_file()
    }
    assert (code | templates) - names == set()
    assert {"memtool/py.typed", "memtool/templates/memory/decision.md"} <= names
    assert any(name.endswith("/LICENSE") for name in names)


def test_the_wheel_holds_nothing_else(wheel: zipfile.ZipFile):
    """Tests, caches and memories stay at home."""
    outside = [n for n in wheel.namelist() if not n.startswith(("memtool/", "memtool-"))]
    odd = [n for n in wheel.namelist() if "test" in n.lower() or "__pycache__" in n]
    assert (outside, odd) == ([], [])


def test_the_wheel_runs_from_where_it_was_put(wheel: zipfile.ZipFile, tmp_path: Path):
    """The templates are found inside an installed package as in a checkout."""
    wheel.extractall(tmp_path)
    script = (
        "import sys; sys.path.insert(0, sys.argv[1]); import memtool.templates as t; "
        "assert t.__file__.startswith(sys.argv[1]); print(t.read('memory/decision.md'))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path)],
        cwd=tmp_path, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout.startswith("## Options considered")


def test_the_script_is_the_entry_point(wheel: zipfile.ZipFile):
    """Installing makes the command `memtool`."""
    name = f"memtool-{memtool.__version__}.dist-info/entry_points.txt"
    assert "memtool = memtool.cli.main:main" in wheel.read(name).decode()
