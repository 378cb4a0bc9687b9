from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest
from conftest import Sandbox

from memtool.commands.import_ import import_
from memtool.importing import host_memories
from memtool.importing.originals import ForeignRecord, ImportRequest
from memtool.memory.schema import Problem

CHANGED = 1_760_000_000  # 2025-10-09


@pytest.fixture
def home(tmp_path: Path) -> Path:
    place = tmp_path / "hosts"
    place.mkdir()
    return place


@pytest.fixture
def project(tmp_path: Path) -> Path:
    place = tmp_path / "shop.web"
    place.mkdir()
    return place


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    os.utime(path, (CHANGED, CHANGED))
    return path


def read(home: Path, project: Path, **options):
    return list(host_memories.drafts(str(home), ImportRequest(str(project), **options)))


def records(home: Path, project: Path, **options) -> list[ForeignRecord]:
    items = read(home, project, **options)
    return [item for item in items if isinstance(item, ForeignRecord)]


def folder_name(project: Path) -> str:
    return re.sub(r"\W|_", "-", str(project))


def claude_folder(base: Path, project: Path) -> Path:
    return base / "projects" / folder_name(project) / "memory"


def note(name: str, kind: str, about: str, text: str) -> str:
    return f"---\nname: {name}\ndescription: {about}\nmetadata:\n  type: {kind}\n---\n\n{text}\n"


@pytest.fixture
def claude(home: Path, project: Path) -> Path:
    folder = claude_folder(home / ".claude", project)
    index = "- [Ship](ship-weekly.md): weekly\n- [Rounding](rounding.md): cents\n"
    write(folder / "MEMORY.md", index)
    text = "Round once, at the end. See [[ship-weekly]]."
    write(folder / "rounding.md", note("rounding", "feedback", "Round prices once", text))
    write(folder / "ship-weekly.md", note("ship-weekly", "project", "Ship weekly", "Until May."))
    write(folder / "role.md", note("role", "user", "Writes Go", "The user writes Go."))
    return folder


def test_claudes_memories_are_candidates_of_claude(claude: Path, home: Path, project: Path):
    """Name, description and type become id, title and category; the index gives the importance."""
    rounding, ship = records(home, project)
    assert (rounding.id, rounding.fields["title"]) == ("claude-rounding", "Round prices once")
    assert rounding.body == "Round once, at the end. See ship-weekly."
    chosen = ("status", "confidence", "agent", "category", "importance", "related_to", "source")
    assert [rounding.fields[key] for key in chosen] == [
        "candidate",
        "low",
        "claude",
        "preference",
        "0.40",
        ("ship-weekly",),
        ("tool:claude memory rounding",),
    ]
    assert ship.fields["importance"] == "0.90"


def test_the_state_of_a_project_has_a_due_date(claude: Path, home: Path, project: Path):
    """It ends 30 days after the last change of its file."""
    _rounding, ship = records(home, project)
    assert (ship.fields["type"], ship.fields["valid_through"]) == ("state", "2025-11-08")


def test_memories_about_the_user_are_for_all_projects(claude: Path, home: Path, project: Path):
    """In a project they are counted, with the command; for all projects only they are read."""
    (problem,) = (item for item in read(home, project) if isinstance(item, Problem))
    assert problem.message.startswith("1 memory about the user is for all projects")
    assert problem.hint == "memtool --global import hosts"
    (role,) = read(home, project, is_global=True)
    assert role.id == "claude-role"


def test_variables_of_the_hosts_go_before_the_home_directory(
    claude: Path, home: Path, tmp_path: Path, project: Path
):
    """CLAUDE_CONFIG_DIR, CODEX_HOME and the like move a host's files."""
    base = tmp_path / "elsewhere"
    write(claude_folder(base, project) / "vat.md", note("vat", "reference", "VAT table", "A wiki."))
    write(base / "memories" / "MEMORY.md", CODEX.format(project=project))
    env = {"CLAUDE_CONFIG_DIR": str(base), "CODEX_HOME": str(base)}
    ids = [record.id for record in records(home, project, env=env)]
    assert ids[0] == "claude-vat"
    assert all(id_.startswith("codex-") for id_ in ids[1:])


def test_a_linked_worktree_has_the_memories_of_its_repository(claude: Path, home: Path, project):
    """Claude Code keeps them by the main worktree."""
    linked = project.parent / "linked"
    linked.mkdir()
    (linked / ".git").write_text(f"gitdir: {project}/.git/worktrees/linked\n")
    assert [record.id for record in records(home, linked)] == [
        "claude-rounding",
        "claude-ship-weekly",
    ]


def test_an_index_alone_is_read(home: Path, project: Path):
    """An older version kept all of its notes in one file."""
    folder = claude_folder(home / ".claude", project)
    write(folder / "MEMORY.md", "# Memory\n\n## Prices\n\nPrices are in cents.\n")
    (record,) = records(home, project)
    assert (record.fields["title"], record.body) == ("Prices", "Prices are in cents.")


CODEX = """# Task Group: shop / prices

scope: prices and taxes
applies_to: cwd={project}; reuse_rule=safe while the tables stand

## Task 1: round prices, done

### rollout_summary_files

- rollout_summaries/one.md (cwd={project}, thread_id=1)

## User preferences

- when prices change, the user asked for a table first [Task 1]

## Reusable knowledge

- the rates of a country come from the table taxes, never from the code [Task 1]

## Failures and how to do differently

- the export hangs on Mondays -> run it with one worker [Task 1]

# Task Group: blog / posts

scope: posts
applies_to: cwd={project}-blog; reuse_rule=any

## Reusable knowledge

- posts are written in the second person [Task 1]
"""


def test_codex_gives_what_it_learned_in_this_project(home: Path, project: Path):
    """Tasks are no memories, and neither are blocks for another directory."""
    write(home / ".codex/memories/MEMORY.md", CODEX.format(project=project))
    write(home / ".codex/memories/raw_memories.md", "- raw\n")
    write(
        home / ".codex/memories/memory_summary.md",
        "v1\n\n## User Profile\n\nA person.\n\n## User preferences\n\n- likes short answers\n",
    )
    drafts = records(home, project)
    assert [(record.fields["category"], record.body) for record in drafts] == [
        ("preference", "when prices change, the user asked for a table first"),
        ("discovery", "the rates of a country come from the table taxes, never from the code"),
        ("warning", "the export hangs on Mondays -> run it with one worker"),
    ]
    assert {record.fields["agent"] for record in drafts} == {"codex"}
    (mine,) = records(home, project, is_global=True)
    assert mine.body == "likes short answers"


def test_gemini_gives_its_notes_and_its_inbox(home: Path, project: Path):
    """Added memories are the user's; patches give what they add, pointers are none."""
    base = home / ".gemini"
    write(base / "GEMINI.md", "# Mine\n\nText.\n\n## Gemini Added Memories\n- I use zsh.\n")
    write(base / "projects.json", json.dumps({"projects": {str(project): "shop"}}))
    folder = base / "tmp/shop/memory"
    write(
        folder / "MEMORY.md", f"- Taxes are per country.\n- See {folder}/export.md for exports.\n"
    )
    write(folder / "export.md", "# The export\n\nIt hangs on Mondays.\n")
    patch = (
        f"--- /dev/null\n+++ {folder}/queue.md\n@@ -0,0 +1,3 @@\n+# The queue\n+\n+It retries.\n"
        f"--- {folder}/MEMORY.md\n+++ {folder}/MEMORY.md\n@@ -1,1 +1,3 @@\n- Taxes\n"
        f"+- Mail is sent once.\n+- See {folder}/queue.md for the queue.\n"
    )
    write(folder / ".inbox/private/extraction.patch", patch)
    write(
        folder / ".inbox/global/extraction.patch",
        "--- /x/GEMINI.md\n+++ /x/GEMINI.md\n@@ -1 +1,2 @@\n text\n+- I prefer tabs.\n",
    )
    drafts = [(record.fields["title"], record.body) for record in records(home, project)]
    assert drafts == [
        ("Taxes are per country", "Taxes are per country."),
        ("The export", "It hangs on Mondays."),
        ("The queue", "It retries."),
        ("Mail is sent once", "Mail is sent once."),
    ]
    mine = [record.body for record in records(home, project, is_global=True)]
    assert mine == ["I use zsh.", "I prefer tabs."]


def test_qwen_gives_both_private_tiers(home: Path, project: Path):
    """Those of the project, also pinned ones, and those of the user."""
    folder = home / ".qwen/projects" / folder_name(project) / "memory"
    write(folder / "pinned/export.md", note("export", "project", "The export", "It hangs."))
    write(home / ".qwen/memories/editor.md", note("editor", "user", "The editor", "It is vi."))
    assert [record.id for record in records(home, project)] == ["qwen-export"]
    assert [record.id for record in records(home, project, is_global=True)] == ["qwen-editor"]


def test_copilot_gives_the_notes_of_the_workspaces_of_this_project(home: Path, project: Path):
    """Sessions and other workspaces are left alone."""
    user = home / ".config/Code/User"
    notes = "GitHub.copilot-chat/memory-tool/memories"
    for name, folder in (("one", project), ("two", project.parent)):
        base = user / "workspaceStorage" / name
        write(base / "workspace.json", json.dumps({"folder": folder.as_uri()}))
        write(base / notes / "repo/build.md", f"Build {name} with make.\n")
        write(base / notes / "c2Vzc2lvbg/plan.md", "A plan.\n")
    write(
        user / "workspaceStorage/one" / notes / "repo/taxes.json",
        json.dumps({"subject": "taxes", "fact": "Taxes are per country.", "reason": "Asked."}),
    )
    write(
        user / "globalStorage/github.copilot-chat/memory-tool/memories/shell.md",
        "- I use zsh.\n- I use vi.\n",
    )
    assert [record.body for record in records(home, project)] == ["Build one with make."]
    mine = [record.body for record in records(home, project, is_global=True)]
    assert mine == ["I use zsh.", "I use vi."]


@pytest.mark.parametrize("text", ["", "[]", '{"projects": 1}', "\0", "{" * 5_000])
def test_damaged_files_of_a_host_are_skipped(home: Path, project: Path, text: str):
    """Their formats are internal, and other hosts are still read."""
    write(home / ".gemini/projects.json", text)
    write(home / ".codex/memories/MEMORY.md", text)
    write(home / ".config/Code/User/workspaceStorage/one/workspace.json", text)
    assert records(home, project) == []


def test_a_second_import_adds_only_what_changed(sandbox: Sandbox, home: Path):
    """A touched file changes nothing; a changed one supersedes its memory, and is a candidate."""
    folder = claude_folder(home / ".claude", sandbox.path.resolve())
    place = write(folder / "vat.md", note("vat", "project", "VAT is new", "It is 19 %."))
    first = sandbox.json("import", "hosts", str(home))
    os.utime(place)
    again = sandbox.json("import", "hosts", str(home))
    assert (first["written"], again["written"], again["unchanged"]) == (1, 0, 1)
    assert again["problems"] == []
    write(place, note("vat", "project", "VAT is new", "It is 20 %."))
    (memory,) = sandbox.json("import", "hosts", str(home))["memories"]
    text = (sandbox.path / memory["path"]).read_text()
    assert "supersedes:\n  - claude-vat\n" in text
    assert "status: candidate\n" in text


def test_the_home_directory_is_that_of_the_environment(sandbox: Sandbox, home: Path):
    """Without PATH, HOME counts."""
    folder = claude_folder(home / ".claude", sandbox.path.resolve())
    write(folder / "vat.md", note("vat", "feedback", "VAT is new", "It is 19 %."))
    done = import_(sandbox.context(HOME=str(home)), "hosts")
    assert done.written == 1


def test_a_secret_in_a_host_is_refused(sandbox: Sandbox, home: Path):
    """As in every import; the others are written."""
    folder = claude_folder(home / ".claude", sandbox.path.resolve())
    secret = "the password is hunter2-Tiger!9x"
    write(folder / "login.md", note("login", "reference", "The login", secret))
    write(folder / "vat.md", note("vat", "feedback", "VAT is new", "It is 19 %."))
    done = sandbox.json("import", "hosts", str(home))
    assert (done["written"], done["skipped"]) == (1, 1)
    assert "hunter2" not in json.dumps(done)
