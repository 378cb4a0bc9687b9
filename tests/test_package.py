from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile
from email import message_from_bytes, policy
from email.message import EmailMessage
from pathlib import Path

import pytest

import memtool
from memtool.installation import DISTRIBUTION, REPOSITORY_LABEL

ROOT = Path(memtool.__file__).parents[1]
LAUNCHER = ROOT / "templates" / "launcher"
MAX_WHEEL_BYTES = 3_000_000
SOURCES = ("memtool", "templates", "pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    """The wheel as it would be published."""
    return build(tmp_path_factory.mktemp("tree"), "wheel")


def build(copy: Path, kind: str) -> zipfile.ZipFile:
    """Build the `wheel`, or the `editable` one, from a copy of the tree."""
    pytest.importorskip("hatch_fancy_pypi_readme")
    for name in SOURCES:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, copy / name)
    subprocess.run(
        [sys.executable, "-c", f"from hatchling.build import build_{kind}; build_{kind}('out')"],
        cwd=copy,
        capture_output=True,
        check=True,
    )
    (built,) = (copy / "out").iterdir()
    return zipfile.ZipFile(built)


def read_metadata(wheel: zipfile.ZipFile) -> EmailMessage:
    name = f"git_memtool-{memtool.__version__}.dist-info/METADATA"
    return message_from_bytes(wheel.read(name), policy=policy.default)


def test_the_wheel_has_the_name_and_version_of_the_package(wheel: zipfile.ZipFile):
    """A build reads the version where the program does."""
    metadata = read_metadata(wheel)
    assert (metadata["Name"], metadata["Version"]) == (DISTRIBUTION, memtool.__version__)


def test_the_changes_begin_with_this_version():
    """So a tag needs no other commit before it."""
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.findall(r"^## (.*)", text, re.MULTILINE)[0] == memtool.__version__


def test_the_readme_of_an_index_links_to_the_tag_of_the_release(wheel: zipfile.ZipFile):
    """An index has neither our pages nor our pictures."""
    metadata = read_metadata(wheel)
    addresses = dict(row.split(", ", 1) for row in metadata.get_all("Project-URL"))
    repository, tag = addresses[REPOSITORY_LABEL], f"v{memtool.__version__}"
    targets = re.findall(r"\]\(([^)\s]+)", metadata.get_payload())
    assert f"{repository}/raw/{tag}/docs/pictures/status.png" in targets
    assert f"{repository}/blob/{tag}/docs/index.md" in targets
    assert [target for target in targets if not target.startswith(("https:", "#"))] == []


def test_the_wheel_holds_code_tables_types_templates_and_licence(wheel: zipfile.ZipFile):
    """Whoever installs memtool gets all that it needs to run and to be type-checked."""
    names = set(wheel.namelist())
    files = [p for pattern in ("*.py", "data/*") for p in (ROOT / "memtool").rglob(pattern)]
    code = {p.relative_to(ROOT).as_posix() for p in files}
    templates = {
        f"memtool/{p.relative_to(ROOT).as_posix()}"
        for p in (ROOT / "templates").rglob("*")
        if p.is_file()
    }
    assert (code | templates) - names == set()
    assert {"memtool/py.typed", "memtool/templates/memory/decision.md"} <= names
    assert any(name.endswith("/LICENSE") for name in names)


def test_the_wheel_holds_nothing_else(wheel: zipfile.ZipFile):
    """Tests, caches and memories stay at home, and it is small."""
    outside = [n for n in wheel.namelist() if not n.startswith(("memtool/", "git_memtool-"))]
    odd = [n for n in wheel.namelist() if "test" in n.lower() or "__pycache__" in n]
    assert (outside, odd) == ([], [])
    assert Path(str(wheel.filename)).stat().st_size <= MAX_WHEEL_BYTES


def test_the_wheel_runs_from_where_it_was_put(wheel: zipfile.ZipFile, tmp_path: Path):
    """The templates are found inside an installed package as in a checkout."""
    wheel.extractall(tmp_path)
    script = (
        "import sys; sys.path.insert(0, sys.argv[1]); import memtool.templates as t; "
        "assert t.__file__.startswith(sys.argv[1]); print(t.read('memory/decision.md'))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.startswith("## Options considered")


def test_the_source_archive_holds_all_that_the_tests_read(tmp_path: Path):
    """Whoever packages memtool runs its tests: benchmarks, our memories and workflows, too."""
    pytest.importorskip("hatch_fancy_pypi_readme")
    if not (ROOT / ".git").exists():
        pytest.skip("only git knows which files are ours")
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    script = "import sys; from hatchling.build import build_sdist; build_sdist(sys.argv[1])"
    subprocess.run(
        [sys.executable, "-c", script, str(tmp_path)], cwd=ROOT, capture_output=True, check=True
    )
    (archive,) = tmp_path.iterdir()
    with tarfile.open(archive) as packed:
        names = {name.partition("/")[2] for name in packed.getnames()}
    assert {name for name in listed.split("\0") if name and (ROOT / name).exists()} - names == set()
    assert {name for name in names if "__pycache__" in name or name.startswith(".venv")} == set()


def installed(wheel: zipfile.ZipFile, folder: Path) -> Path:
    """Install the wheel alone into a new environment, and return its Python."""
    venv.create(folder / "venv", with_pip=True, symlinks=True)
    python = folder / "venv" / "bin" / "python"
    subprocess.run(
        [
            python,
            "-m",
            "pip",
            "install",
            "--quiet",
            "--no-deps",
            "--no-index",
            "--disable-pip-version-check",
            str(wheel.filename),
        ],
        capture_output=True,
        check=True,
    )
    return python


@pytest.mark.slow
def test_the_command_is_installed_with_a_launcher_of_its_own(
    wheel: zipfile.ZipFile, tmp_path: Path
):
    """pip puts `memtool` next to its Python, with byte-code; starting it imports memtool alone."""
    python = installed(wheel, tmp_path)
    command = tmp_path / "venv" / "bin" / "memtool"
    done = subprocess.run([command, "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == f"memtool {memtool.__version__}\n"
    rows = command.read_text().splitlines()
    assert rows == [f"#!{python}", *LAUNCHER.read_text().splitlines()[1:]]
    assert [row for row in rows if "import" in row] == ["from memtool.cli.main import command"]
    (package,) = (tmp_path / "venv" / "lib").glob("python*/site-packages/memtool")
    sources = {path.stem for path in package.glob("*.py")}
    assert sources <= {path.name.partition(".")[0] for path in package.glob("__pycache__/*.pyc")}


def test_an_editable_install_has_the_same_launcher(tmp_path: Path):
    """Whoever works on memtool measures what users get."""
    built = build(tmp_path, "editable")
    (script,) = (name for name in built.namelist() if name.endswith(".data/scripts/memtool"))
    assert built.read(script).decode().splitlines()[1:] == LAUNCHER.read_text().splitlines()[1:]


@pytest.mark.slow
def test_uninstalling_leaves_nothing_behind(wheel: zipfile.ZipFile, tmp_path: Path):
    """Verbs, `install` and `doctor` among them, change no file of the program; pip removes all."""
    python = installed(wheel, tmp_path)
    (site,) = (tmp_path / "venv" / "lib").glob("python*/site-packages")

    def own() -> dict[str, bytes]:
        """Every file below a name of memtool in the environment."""
        paths = [path for root in (site, python.parent) for path in root.rglob("*")]
        return {
            str(path): path.read_bytes()
            for path in paths
            if path.is_file()
            and any(p.startswith(("memtool", "git_memtool")) for p in path.parts[-4:])
        }

    before = own()
    assert len(before) > 100
    borrowed = site / "borrowed.pth"  # the packages that memtool needs, from this environment
    borrowed.write_text(f"{sysconfig.get_path('purelib')}\n")
    repository, home = tmp_path / "repository", tmp_path / "home"
    home.mkdir()
    env = {"HOME": str(home), "PATH": f"{python.parent}:{os.defpath}"}
    subprocess.run(["git", "init", "-q", str(repository)], check=True, env=env)
    for words in (
        "init",
        "search anything",
        "install git",
        "install pre-commit",
        "install claude",
        "doctor --fix",
        "uninstall --all --yes",
    ):
        done = subprocess.run(
            [python.parent / "memtool", *words.split()],
            cwd=repository,
            env=env,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, (words, done.stdout, done.stderr)
    borrowed.unlink()
    assert own() == before
    subprocess.run(
        [python, "-m", "pip", "uninstall", "--yes", "--quiet", DISTRIBUTION],
        capture_output=True,
        check=True,
    )
    leftovers = [path for root in (site, python.parent) for path in root.rglob("*memtool*")]
    assert leftovers == []
