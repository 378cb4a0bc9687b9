"""The pack: the same modules as on disk, never older than their sources."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import memtool

LOADED = """
import sys
from memtool import pack
packed = pack.use()
from memtool.cli.main import main
main(sys.argv[1:])
pack.keep(packed)
names = sorted(name for name in sys.modules if name.startswith("memtool."))
print(*(type(sys.modules[name].__spec__.loader).__name__ for name in names))
"""


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of the package without byte-code."""
    place = tmp_path / "memtool"
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(Path(memtool.__file__).parent, place, ignore=ignored)
    return place


def run(copy: Path, *args: str, script: str = LOADED, **env: str) -> str:
    """Run memtool from the copy."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
    done = subprocess.run(
        [sys.executable, "-c", script, *args], cwd=copy.parent, capture_output=True, text=True,
        check=False, env=kept | {"PYTHONPATH": str(copy.parent)} | env,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def packs(copy: Path) -> list[Path]:
    return sorted((copy / "__pycache__").glob("*.bin"))


def test_the_second_run_takes_its_modules_from_the_pack(copy: Path) -> None:
    """The first run finds them one by one and writes the pack; both say the same."""
    first = run(copy, "--help")
    assert len(packs(copy)) == 1
    second = run(copy, "--help")
    assert second.splitlines()[:-1] == first.splitlines()[:-1]
    assert "Pack" not in first.splitlines()[-1].split()
    loaders = second.splitlines()[-1].split()
    # Only the pack itself comes from disk.
    assert loaders.count("Pack") == len(loaders) - 1


def test_a_changed_source_is_read(copy: Path) -> None:
    """Same size or not: a source that was written since counts, and the pack is made anew."""
    run(copy, "--help")
    run(copy, "--help")
    source = copy / "cli" / "pages.py"
    text = source.read_text()
    assert "usage: memtool" in text
    source.write_text(text.replace("usage: memtool", "USAGE: memtool"))
    os.utime(source, ns=(1, 1))
    assert run(copy, "--help").startswith("USAGE: memtool")
    assert run(copy, "--help").startswith("USAGE: memtool")
    assert run(copy, "--help").splitlines()[-1].split().count("Pack") > 3


@pytest.mark.parametrize("bent", ["", "memtool pack", "cut", "other"])
def test_a_pack_that_is_none_is_written_anew(copy: Path, bent: str) -> None:
    """Empty, cut off or of another version: the modules come from disk, then from a new pack."""
    run(copy, "--help")
    (place,) = packs(copy)
    data = place.read_bytes()
    place.write_bytes({"cut": data[:-1], "other": b"x" + data[1:]}.get(bent, bent.encode()))
    assert "Pack" not in run(copy, "--help").splitlines()[-1].split()
    assert "Pack" in run(copy, "--help").splitlines()[-1].split()


def test_byte_code_that_goes_by_hashes_is_left_to_python(copy: Path) -> None:
    """Such modules come from disk, and the pack is not written again and again for them."""
    subprocess.run(
        [sys.executable, "-m", "compileall", "-q", "--invalidation-mode", "checked-hash", copy],
        check=True,
    )
    run(copy, "--help")
    (place,) = packs(copy)
    written = place.stat().st_mtime_ns
    assert "Pack" not in run(copy, "--help").splitlines()[-1].split()
    assert place.stat().st_mtime_ns == written


def test_nothing_is_written_where_no_byte_code_is(copy: Path) -> None:
    """PYTHONDONTWRITEBYTECODE, and byte-code kept elsewhere, are respected."""
    run(copy, "--help", PYTHONDONTWRITEBYTECODE="1")
    assert not (copy / "__pycache__").exists()
    run(copy, "--help", PYTHONPYCACHEPREFIX=str(copy.parent / "elsewhere"))
    assert not (copy / "__pycache__").exists()


def test_packed_modules_know_where_they_come_from(copy: Path) -> None:
    """Templates are found, and sources can be shown."""
    run(copy, "--help")
    script = (
        "from memtool import pack; pack.use()\n"
        "import inspect, memtool.templates as t, memtool.store as s\n"
        "print(type(t.__spec__.loader).__name__, t.__file__, list(s.__path__), t.__name__)\n"
        "assert t.read('memory/decision.md')\n"
        "assert 'def read' in inspect.getsource(t)\n"
    )
    shutil.copytree(Path(memtool.__file__).parents[1] / "templates", copy / "templates")
    run(copy, "--version")
    expected = f"Pack {copy / 'templates.py'} ['{copy / 'store'}'] memtool.templates\n"
    run(copy, script="import memtool.templates, memtool.pack as p; p.make()")
    assert run(copy, script=script) == expected
