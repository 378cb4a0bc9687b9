"""Tests of loading: byte-code is taken where Python would take it, and nowhere else."""

from __future__ import annotations

import os
import py_compile
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import memtool

SHOW = """
import sys
from memtool import loading
loading.install()
import memtool.sample as sample
from memtool import inner
print(type(sample.__loader__).__name__, sample.SAID, inner.SAID, sample.__file__, sample.__cached__)
print(inner.__path__, inner.__package__, sample.__spec__.has_location)
"""


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A small `memtool` with the loader in it, a module and a package."""
    top = tmp_path / "memtool"
    for folder in (top, top / "inner"):
        folder.mkdir()
        (folder / "__init__.py").write_text('SAID = "inner"\n')
    shutil.copy(Path(memtool.__file__).parent / "loading.py", top)
    (top / "sample.py").write_text('SAID = "one"\n')
    return top


def kept(source: Path) -> Path:
    return source.parent / "__pycache__" / f"{source.stem}.{sys.implementation.cache_tag}.pyc"


def run(package: Path, *flags: str, **env: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, *flags, "-c", SHOW], cwd=package.parent, capture_output=True, text=True,
        check=True, env={"PATH": os.environ["PATH"], "PYTHONDONTWRITEBYTECODE": "1"} | env,
    )  # fmt: skip
    return done.stdout.split()


def compiled(source: Path, **how: object) -> None:
    py_compile.compile(str(source), doraise=True, **how)  # type: ignore[arg-type]


def test_byte_code_of_the_source_is_loaded(package: Path) -> None:
    """A module and a package come from their byte-code, and look as Python makes them."""
    source = package / "sample.py"
    by_python = run(package)
    compiled(source)
    compiled(package / "inner" / "__init__.py")
    assert run(package) == ["Loader", *by_python[1:]]
    assert by_python[0] == "SourceFileLoader"


def test_a_changed_source_is_what_counts(package: Path) -> None:
    """Of another size or another time: its byte-code is of the past."""
    source = package / "sample.py"
    compiled(source)
    status = source.stat()
    source.write_text('SAID = "longer"\n')
    os.utime(source, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert run(package)[:2] == ["SourceFileLoader", "longer"]
    compiled(source)
    source.write_text('SAID = "double"\n')
    os.utime(source, ns=(status.st_atime_ns, status.st_mtime_ns + 5_000_000_000))
    assert run(package)[:2] == ["SourceFileLoader", "double"]


def test_what_is_in_doubt_is_left_to_python(package: Path) -> None:
    """No byte-code, damaged, of another version, checked by hash, or a flag about it."""
    source = package / "sample.py"
    expected = run(package)
    compiled(source)
    whole = kept(source).read_bytes()
    for bent in (b"", whole[:10], b"????" + whole[4:]):
        kept(source).write_bytes(bent)
        assert run(package) == expected
    compiled(source, invalidation_mode=py_compile.PycInvalidationMode.CHECKED_HASH)
    assert run(package) == expected
    compiled(source)
    assert run(package, "-O")[:2] == ["SourceFileLoader", "one"]
    assert run(package, PYTHONPYCACHEPREFIX="/nowhere")[:2] == ["SourceFileLoader", "one"]


def test_byte_code_that_was_moved_names_the_file_that_is_here(package: Path) -> None:
    """A traceback shows the line of the source, as after any import."""
    source = package / "sample.py"
    source.write_text('SAID = "one"\n\n\ndef fail():\n    raise ValueError(SAID)\n')
    compiled(source, dfile="/elsewhere/sample.py")
    script = "from memtool import loading; loading.install(); import memtool.sample as s; s.fail()"
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=package.parent, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert f'File "{source}", line 5, in fail\n    raise ValueError(SAID)' in done.stderr


def test_a_module_that_is_not_there_is_missed_as_ever(package: Path) -> None:
    """The error is Python's own."""
    script = "from memtool import loading; loading.install(); import memtool.absent"
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=package.parent, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert done.stderr.splitlines()[-1] == ("ModuleNotFoundError: No module named 'memtool.absent'")


COMPILED = """
import sys
if "direct" in sys.argv:
    from memtool import loading
    loading.install()
import Stemmer, _blake2, math, zlib
for module in (Stemmer, _blake2, math, zlib):
    spec = module.__spec__
    print(module.__name__, module.__loader__, spec.origin, getattr(module, "__file__", ""))
    assert spec.has_location is bool(getattr(module, "__file__", ""))
"""


def test_compiled_modules_are_those_that_python_finds():
    """They come from the same files, and look the same, whether it lists directories or not."""
    direct, by_python = (
        subprocess.run(
            [sys.executable, "-P", "-c", COMPILED, how], capture_output=True, text=True, check=True
        ).stdout
        for how in ("direct", "by Python")
    )
    assert hide(by_python) == hide(direct)


def hide(shown: str) -> str:
    """Return lines without the addresses of objects."""
    return "".join(line.split(" at 0x")[0] + line[line.find(">") :] for line in shown.splitlines())


def test_a_compiled_module_that_is_not_there_is_left_to_python():
    """Where Python was built with a module inside, or lacks it, nothing of ours stands between."""
    script = """
import sys
from memtool import loading
sys.path[:] = ["", "/nowhere"]
print(loading.LOADER.find_spec("math", None))
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout == "None\n"
