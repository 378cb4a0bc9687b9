"""The pages tell the truth: their commands are run, and what they print is compared.

`python tests/test_readme.py` writes the outputs again, of all pages or of those that are named.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
PAGES = (
    "README.md",
    "docs/memories.md",
    "docs/teams.md",
    "docs/troubleshooting.md",
    "docs/fleet.md",
)
"""Every `console` block of these pages is run."""
WRITTEN = (README, ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").glob("*.md")))
"""Every page that people read."""
CONSOLE = "```console\n"
REFUSED = 2
"""The highest exit code that a page may show: a refusal. Above it are bugs and missing programs."""


def transcript(page: str, folder: Path) -> str:
    """Run every console block of a page in one fresh repository; return it with the outputs."""
    env = _environment(folder)
    project = folder / "shop"
    project.mkdir()
    subprocess.run(["git", "init", "-q", "-b", "main"], cwd=project, env=env, check=True)
    (project / "app" / "session").mkdir(parents=True)
    (project / "app" / "session" / "store.py").write_text("SESSIONS = {}\n")
    _run_block("$ git add app && git commit -qm 'Keep sessions'\n", project, env)
    parts = page.split(CONSOLE)
    renewed = [parts[0]]
    for part in parts[1:]:
        block, fence, after = part.partition("```\n")
        renewed += [CONSOLE, _run_block(block, project, env), fence, after]
    return "".join(renewed)


def _environment(folder: Path) -> dict[str, str]:
    person = {"NAME": "Ada", "EMAIL": "ada@example.org"}
    commands = folder / "bin"
    commands.mkdir()
    script = commands / "memtool"
    script.write_text(f'#!/bin/sh\nexec {sys.executable} -m memtool "$@"\n')
    script.chmod(0o755)
    inherited = {
        k: v for k, v in os.environ.items() if not k.startswith(("GIT_", "MEMTOOL_", "XDG_"))
    }
    return (
        inherited
        | {
            f"GIT_{role}_{key}": text
            for role in ("AUTHOR", "COMMITTER")
            for key, text in person.items()
        }
        | {
            "HOME": str(folder),
            "PATH": f"{commands}:{os.environ['PATH']}",
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_CONFIG_NOSYSTEM": "1",
            "LC_ALL": "C.UTF-8",
            "LANGUAGE": "",
        }
    )


def _run_block(block: str, project: Path, env: dict[str, str]) -> str:
    shown = []
    for command in _commands(block):
        # One minute per command, so that commit ids and the order of events are always the same.
        minute = (
            int(
                subprocess.run(
                    ["git", "config", "--default", "0", "tour.minute"],
                    cwd=project,
                    env=env,
                    capture_output=True,
                    check=True,
                ).stdout
            )
            + 1
        )
        subprocess.run(
            ["git", "config", "tour.minute", str(minute)], cwd=project, env=env, check=True
        )
        now = f"2026-03-01T09:{minute:02}:00Z"
        clock = {"GIT_AUTHOR_DATE": now, "GIT_COMMITTER_DATE": now, "MEMTOOL_NOW": now}
        # Two branches draw different ids, as two people do.
        branch = subprocess.run(
            ["git", "branch", "--show-current"],
            cwd=project,
            env=env,
            text=True,
            capture_output=True,
            check=True,
        ).stdout.strip()
        seed = {"MEMTOOL_SEED": "tour" if branch == "main" else branch}
        done = subprocess.run(
            ["sh", "-c", command],
            cwd=project,
            env=env | clock | seed,
            text=True,
            capture_output=True,
            check=False,
        )
        assert done.returncode <= REFUSED, f"{command}\n{done.stderr}"
        shown.append(f"$ {command}{done.stdout}{done.stderr}")
    return "".join(shown)


def _commands(block: str) -> list[str]:
    """Return the commands of a block, each with its line feeds, without their output."""
    commands: list[str] = []
    is_open = False
    for line in block.splitlines(keepends=True):
        if is_open:
            commands[-1] += line
        elif line.startswith("$ "):
            commands.append(line[2:])
        else:
            continue
        is_open = line.endswith("\\\n")
    return commands


@pytest.mark.parametrize(
    "page",
    [pytest.param(page, marks=[pytest.mark.slow] * (page != "README.md")) for page in PAGES],
)
def test_commands_print_what_the_page_shows(page: str, tmp_path: Path) -> None:
    """Every command of a page prints exactly what is shown below it."""
    shown = (ROOT / page).read_text()
    assert shown == transcript(shown, tmp_path), f"renew with: python tests/test_readme.py {page}"


def test_ci_runs_the_test_command_of_the_readme() -> None:
    """The test command that a newcomer copies is the one that CI reads there and runs."""
    block = README.read_text().split("<!-- test-command -->\n```sh\n")[1]
    pattern = "^python3 -m venv .*pytest"
    commands = re.findall(f"{pattern}.*$", README.read_text(), re.MULTILINE)
    assert commands == [block.partition("\n")[0]]
    assert f"grep '{pattern}' README.md" in (ROOT / ".ci" / "as-user").read_text()
    assert '.ci/as-user "$work/clone"' in (ROOT / ".ci" / "run").read_text().splitlines()


def _anchors(page: Path) -> set[str]:
    """Return the anchors of the headings of a page, as forges make them."""
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    headings = re.findall(r"^#+ (.+)$", text, flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading).lower().replace(" ", "-") for heading in headings}


def _links(page: Path) -> list[str]:
    """Return the links of a page that lead to files and headings of this repository."""
    links = re.findall(r"\]\(([^)]+)\)", page.read_text())
    return [link for link in links if not link.startswith("http")]


@pytest.mark.parametrize("page", WRITTEN, ids=lambda page: page.name)
def test_every_link_leads_somewhere(page: Path) -> None:
    """A link of a page names a file and a heading that exist."""
    for link in _links(page):
        path, _, anchor = link.partition("#")
        target = page.parent / path if path else page
        assert target.exists(), link
        assert not anchor or anchor in _anchors(target), link


@pytest.mark.parametrize("page", WRITTEN[2:], ids=lambda page: page.name)
def test_a_page_says_whom_it_is_for(page: Path) -> None:
    """Below its title is one line of one form: for whom it is, and what it has."""
    title, line, _text = page.read_text().split("\n\n", 2)
    assert title.startswith("# ")
    assert re.fullmatch(r"For [^:]{3,70}: .{10,80}[.]", line), line


def test_the_index_names_every_page() -> None:
    """A page of the documentation can be found from its index."""
    named = {link.partition("#")[0] for link in _links(ROOT / "docs" / "index.md")}
    assert {page.name for page in (ROOT / "docs").glob("*.md")} - named == {"index.md"}


if __name__ == "__main__":
    for name in sys.argv[1:] or PAGES:
        if name not in PAGES:  # its commands are not meant to be run, such as those of pip
            sys.exit(f"{name} is none of {', '.join(PAGES)}")
        with tempfile.TemporaryDirectory() as temporary:
            path = ROOT / name
            path.write_text(transcript(path.read_text(), Path(temporary)))
