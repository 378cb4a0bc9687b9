"""Tests of packs: the same modules as Python makes, never older than their sources."""

from __future__ import annotations

import os
import py_compile
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from conftest import Sandbox

import memtool
from memtool import loading, packing

OUTER = '''"""Uses it."""

from memtool.inner import sample
from memtool.inner.sample import SAID

class Thing:
    kind = "thing"


def said():
    return SAID


def fail():
    raise ValueError(SAID)
'''
WRITE = """
from memtool import packing
packing.ROOTS["search"] = ("memtool.outer",)
packing.write("search")
"""
SHOW = """
import sys
from memtool import loading
loading.install()
print(loading.unpack("search"))
names = ["memtool.inner", "memtool.inner.sample", "memtool.outer"]
print([name in sys.modules for name in names])
import memtool.outer
for name in names:
    module = sys.modules[name]
    spec = module.__spec__
    print(name, module.__file__, module.__cached__, module.__package__, module.__doc__,
          getattr(module, "__path__", None), spec.name, spec.origin, spec.cached, spec.parent,
          spec.has_location, spec.submodule_search_locations)
print(memtool.inner.sample.SAID, memtool.outer.sample is memtool.inner.sample)
"""
BEHAVE = """
import importlib, inspect, pickle, traceback
from memtool import loading
loading.install()
loading.unpack("search")
from memtool import outer
assert "return SAID" in inspect.getsource(outer)
assert pickle.loads(pickle.dumps(outer.Thing())).kind == "thing"
assert importlib.reload(outer) is outer
try:
    outer.fail()
except ValueError:
    traceback.print_exc()
"""


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A small `memtool`: a package, a module in it, and one that imports both."""
    top = tmp_path / "memtool"
    for folder in (top, top / "cli", top / "inner"):
        folder.mkdir()
        (folder / "__init__.py").write_text('"""A package."""\n')
    (top / "cli" / "main.py").write_text("")
    for module in (loading, packing):
        shutil.copy(module.__file__, top)
    (top / "inner" / "sample.py").write_text('SAID = "one"\n')
    (top / "outer.py").write_text(OUTER)
    return top


def run(package: Path, script: str, *flags: str, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *flags, "-c", script], cwd=package.parent, capture_output=True, text=True,
        check=False, env={"PATH": os.environ["PATH"]} | env,
    )  # fmt: skip


def shown(package: Path, *flags: str, **env: str) -> tuple[list[str], list[str]]:
    """Whether there was a pack and what it brought; and what can be seen of the modules."""
    done = run(package, SHOW, *flags, **env)
    assert done.stderr == ""
    rows = done.stdout.splitlines()
    return rows[:2], rows[2:]


def pack(package: Path) -> Path:
    return package / "__pycache__" / f"search.{sys.implementation.cache_tag}.pack"


NONE = ["False", "[False, False, False]"]
ALL = ["True", "[True, True, True]"]


def test_packed_modules_look_as_python_makes_them(package: Path) -> None:
    """Names, files, packages and specs; whoever imports one gets the same."""
    packed, by_python = shown(package)
    assert packed == NONE
    assert run(package, WRITE).stderr == ""
    assert shown(package) == (ALL, by_python)


def test_a_pack_that_was_asked_for_has_everything(package: Path) -> None:
    """Also where Python is told to write no byte-code, as in many containers."""
    run(package, WRITE, PYTHONDONTWRITEBYTECODE="1")
    shutil.rmtree(package / "inner" / "__pycache__")
    assert shown(package)[0] == ALL
    assert not (package / "inner" / "__pycache__").exists()  # nothing was compiled


def test_packed_modules_behave_as_others(package: Path) -> None:
    """Their source is shown, they can be pickled and loaded again, tracebacks have the line."""
    run(package, WRITE)
    done = run(package, BEHAVE)
    line = f'  File "{package / "outer.py"}", line 15, in fail\n    raise ValueError(SAID)\n'
    assert done.returncode == 0, done.stderr
    assert line in done.stderr


def test_a_changed_source_is_what_counts(package: Path) -> None:
    """Of another size, of another time, or gone: none of the pack is used then."""
    source = package / "inner" / "sample.py"
    run(package, WRITE)
    status = source.stat()
    source.write_text('SAID = "longer"\n')
    os.utime(source, ns=(status.st_atime_ns, status.st_mtime_ns))
    packed, (*_specs, said) = shown(package)
    assert (packed, said) == (NONE, "longer True")
    run(package, WRITE)
    source.write_text('SAID = "double"\n')
    os.utime(source, ns=(status.st_atime_ns, status.st_mtime_ns + 5_000_000_000))
    packed, (*_specs, said) = shown(package)
    assert (packed, said) == (NONE, "double True")
    run(package, WRITE)
    source.unlink()
    assert "No module named" in run(package, SHOW).stderr or "cannot import" in (
        run(package, SHOW).stderr
    )


def test_a_pack_that_is_none_is_passed_over(package: Path) -> None:
    """Empty, cut off anywhere, or of another Python."""
    _packed, by_python = shown(package)
    run(package, WRITE)
    whole = pack(package).read_bytes()
    header = len(loading.PACK_HEADER)
    for end in (0, 1, header, header + 1, len(whole) // 2, len(whole) - 1):
        pack(package).write_bytes(whole[:end])
        assert shown(package) == (NONE, by_python)
    for bent in (b"x" + whole[1:], whole[: header - 4] + b"????" + whole[header:]):
        pack(package).write_bytes(bent)
        assert shown(package) == (NONE, by_python)
    pack(package).unlink()
    pack(package).mkdir()
    assert shown(package) == (NONE, by_python)


def test_a_package_that_was_moved_brings_its_pack_along(package: Path, tmp_path: Path) -> None:
    """Paths are those of the place where it is now."""
    run(package, WRITE)
    moved = tmp_path / "elsewhere" / "memtool"
    moved.parent.mkdir()
    shutil.move(package, moved)
    packed, rows = shown(moved)
    assert packed == ALL
    assert str(package) not in "".join(rows)
    assert f'File "{moved / "outer.py"}", line 15' in run(moved, BEHAVE).stderr


def test_what_is_in_doubt_is_left_to_python(package: Path) -> None:
    """Byte-code that goes by the hash of its source is not packed: Python looks at it each time."""
    source = package / "inner" / "sample.py"
    mode = py_compile.PycInvalidationMode.CHECKED_HASH
    py_compile.compile(str(source), doraise=True, invalidation_mode=mode)
    run(package, WRITE)
    assert shown(package)[0] == ALL
    status = source.stat()
    source.write_text('SAID = "two"\n')
    os.utime(source, ns=(status.st_atime_ns, status.st_mtime_ns))
    packed, (*_specs, said) = shown(package)
    assert (packed, said) == (ALL, "two True")


def test_a_module_that_raises_is_not_imported(package: Path) -> None:
    """It is met again where it is imported, and what came before it stays."""
    source = package / "outer.py"
    text = source.read_text() + "import os\nif os.environ.get('BREAK'):\n    raise OSError('no')\n"
    source.write_text(text)
    run(package, WRITE)
    script = (
        "import sys\nfrom memtool import loading\nloading.install()\n"
        "try:\n    loading.unpack('search')\nexcept OSError as error:\n    print(error)\n"
        "print('memtool.outer' in sys.modules, 'memtool.inner.sample' in sys.modules)\n"
        "import memtool\nprint(hasattr(memtool, 'outer'))\nimport memtool.outer\n"
    )
    done = run(package, script, BREAK="1")
    assert done.stdout == "no\nFalse True\nFalse\n"
    assert done.stderr.endswith("OSError: no\n")
    assert run(package, script).stdout == "True True\nTrue\n"


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All of memtool, without byte-code."""
    place = tmp_path_factory.mktemp("copy") / "memtool"
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(Path(memtool.__file__).parent, place, ignore=ignored)
    return place


def check(copy: Path, sandbox: Sandbox, *flags: str, **env: str) -> str:
    """Run a hot verb from the copy; packing runs beside it and may take a while."""
    script = "from memtool.cli.main import command; command()"
    kept = {name: value for name, value in sandbox.env.items() if not name.startswith("PYTHON")}
    done = subprocess.run(
        [sys.executable, *flags, "-c", script, "check", "--staged"], cwd=sandbox.path, check=False,
        capture_output=True, text=True, env=kept | {"PYTHONPATH": str(copy.parent)} | env,
    )  # fmt: skip
    return done.stdout + done.stderr


def packs(copy: Path) -> list[str]:
    return sorted(path.name.partition(".")[0] for path in copy.rglob("*.pack*"))


CHECK = ["check", "check-new", "check-staged"]


def wait_for_pack(copy: Path) -> Path:
    place = copy / "__pycache__" / f"check.{sys.implementation.cache_tag}.pack"
    for _try in range(600):
        if packs(copy) == CHECK:
            break
        time.sleep(0.05)
    return place


def test_nothing_is_written_where_python_writes_nothing(copy: Path, sandbox: Sandbox) -> None:
    """Told not to, told another place, or optimised."""
    sandbox.memory("dec-a")
    assert check(copy, sandbox, PYTHONDONTWRITEBYTECODE="1") == ""
    assert not list(copy.rglob("__pycache__"))
    assert check(copy, sandbox) == ""  # from here on there is a folder
    wait_for_pack(copy)
    for place in copy.rglob("*.pack"):
        place.unlink()
    assert check(copy, sandbox, PYTHONDONTWRITEBYTECODE="1") == ""
    assert check(copy, sandbox, "-O") == ""
    assert check(copy, sandbox, PYTHONPYCACHEPREFIX=str(copy.parent / "elsewhere")) == ""
    assert packs(copy) == []


def test_the_first_run_has_the_pack_of_its_verb_written(copy: Path, sandbox: Sandbox) -> None:
    """Once, and again when a source was changed; both say the same."""
    sandbox.memory("dec-a")
    assert check(copy, sandbox) == ""
    place = wait_for_pack(copy)
    written = place.stat().st_mtime_ns
    assert check(copy, sandbox) == ""
    assert (place.stat().st_mtime_ns, packs(copy)) == (written, CHECK)
    source = copy / "commands" / "check.py"
    source.write_text(source.read_text() + "\nraise ValueError('seen')\n")
    assert "ValueError: seen" in check(copy, sandbox)
    source.write_text(source.read_text().replace("raise ValueError('seen')", "print('changed')"))
    assert check(copy, sandbox) == "changed\n"
    for _try in range(600):
        if place.stat().st_mtime_ns != written:
            break
        time.sleep(0.05)
    assert check(copy, sandbox) == "changed\n"
    wait_for_pack(copy)  # each run that met the old pack has a process write the new one
    assert packs(copy) == CHECK


def test_every_packed_verb_has_roots() -> None:
    """And the other way round."""
    names = [name for verb in loading.PACKED for name in packing.packs(verb)]
    assert sorted(packing.ROOTS) == sorted(names)
