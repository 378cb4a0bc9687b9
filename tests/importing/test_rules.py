from __future__ import annotations

from pathlib import Path

import pytest
from conftest import Sandbox

from memtool.importing import rules
from memtool.importing.originals import ForeignRecord, ImportRequest
from memtool.importing.stores import find_stores
from memtool.memory.schema import Problem


def read(path):
    return list(rules.drafts(str(path), ImportRequest(str(path))))


def records(path):
    return [item for item in read(path) if isinstance(item, ForeignRecord)]


def problems(path):
    return [(item.code, item.message) for item in read(path) if isinstance(item, Problem)]


def write(folder: Path, name: str, text: str | bytes) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


HANDLERS = """---
description: How handlers answer
globs: src/**/*.ts,src/*.{tsx,jsx}
alwaysApply: false
---

# Handlers

A handler returns a result and throws nothing.
"""


def test_a_scoped_rule_has_its_files_and_is_called_by_its_description(tmp_path):
    """The front matter is no text; braces are expanded."""
    write(tmp_path, ".cursor/rules/handlers.mdc", HANDLERS)
    (record,) = records(tmp_path)
    assert record.fields["title"] == "How handlers answer"
    assert record.fields["files"] == ("src/**/*.ts", "src/*.tsx", "src/*.jsx")
    assert record.body == "A handler returns a result and throws nothing."
    assert record.lines == (7, 9)


@pytest.mark.parametrize(
    ("name", "front", "files"),
    [
        (".github/instructions/ts.instructions.md", 'applyTo: "**/*.ts"', ("**/*.ts",)),
        (".github/instructions/ts.instructions.md", "applyTo: '*.ts'", ("*.ts",)),
        (".github/instructions/all.instructions.md", "applyTo: '**'", None),
        (".cursor/rules/ts.mdc", "globs: *.ts", ("**/*.ts",)),
        (".cursor/rules/ts.mdc", "globs:\n  - **/*.ts\n  - src/*.tsx", ("**/*.ts", "src/*.tsx")),
        (".cursor/rules/ts.mdc", 'globs: ["src/*.ts"]', ("src/*.ts",)),
        (".cursor/rules/ts.mdc", "globs:", None),
        (".claude/rules/ts.md", "paths:\n  - src/**/*.ts", ("src/**/*.ts",)),
        (".windsurf/rules/ts.md", "trigger: glob\nglobs: src/**/*.ts", ("src/**/*.ts",)),
        (".kiro/steering/ts.md", "fileMatchPattern: 'src/*.ts'", ("src/*.ts",)),
        ("web/.cursor/rules/ts.mdc", "globs: src/*.ts", ("web/src/*.ts",)),
        ("web/.cursor/rules/ts.mdc", "alwaysApply: true", ("web/**",)),
    ],
)
def test_each_tool_says_in_its_own_way_which_files_a_rule_governs(tmp_path, name, front, files):
    """Also where the front matter is no YAML, and for rules of a subdirectory."""
    write(tmp_path, name, f"---\n{front}\n---\n\nErrors are values.\n")
    (record,) = records(tmp_path)
    assert record.fields.get("files") == files
    assert record.body == "Errors are values."


@pytest.mark.parametrize(
    ("name", "is_rule"),
    [
        (".cursorrules", True),
        (".windsurfrules", True),
        (".clinerules", True),
        (".clinerules/style.md", True),
        (".clinerules/workflows/release.md", False),
        (".roo/rules/style.md", True),
        (".roo/rules-code/deep/style.txt", True),
        (".roo/modes/style.md", False),
        (".github/copilot-instructions.md", True),
        (".github/workflows/notes.md", False),
        ("deep/inside/.windsurf/rules/style.md", True),
        ("docs/style.md", False),
    ],
)
def test_rules_are_known_by_their_place(tmp_path, name, is_rule):
    """Other files of the same folders are none."""
    write(tmp_path, name, "Errors are values.\n")
    assert len(records(tmp_path)) == is_rule


def test_what_is_always_given_to_the_agent_has_a_tag(tmp_path):
    """It is not pinned; the tag is how a user finds and pins it."""
    write(tmp_path, ".cursor/rules/a.mdc", "---\nalwaysApply: true\n---\nErrors are values.\n")
    write(tmp_path, ".windsurf/rules/b.md", "---\ntrigger: always_on\n---\nPrices are cents.\n")
    write(tmp_path, ".roo/rules-code/c.md", "Names are words.\n")
    assert [(record.fields["status"], record.fields["tags"]) for record in records(tmp_path)] == [
        ("confirmed", ("always-apply",)),
        ("confirmed", ("code",)),
        ("confirmed", ("always-apply",)),
    ]


def test_each_rule_of_a_list_is_one_memory_of_the_same_files(tmp_path):
    """The description of several memories is kept, and is not their title."""
    text = "---\ndescription: Style\nglobs: src/*.ts\n---\n- Use cents.\n- Never use floats.\n"
    write(tmp_path, ".cursor/rules/style.mdc", text)
    drafts = records(tmp_path)
    assert [draft.fields["title"] for draft in drafts] == ["Use cents", "Never use floats"]
    assert {draft.fields["files"] for draft in drafts} == {("src/*.ts",)}
    assert {draft.fields["x-description"] for draft in drafts} == {"Style"}
    assert [draft.lines for draft in drafts] == [(5, 5), (6, 6)]


def test_two_rules_of_one_description_have_two_titles(tmp_path):
    """The gate would refuse the same title twice."""
    for name, text in (("a", "Errors are values."), ("b", "Prices are cents.")):
        write(tmp_path, f".cursor/rules/{name}.mdc", f"---\ndescription: Style\n---\n{text}\n")
    assert [draft.fields["title"] for draft in records(tmp_path)] == [
        "Style",
        "Prices are cents",
    ]


def test_what_cannot_be_taken_over_is_named(tmp_path):
    """A file without text, one that only points elsewhere, a glob, a key, and no text at all."""
    write(tmp_path, ".cursor/rules/a.mdc", "---\ndescription: Style\n---\n\n")
    write(tmp_path, ".cursor/rules/b.mdc", "@docs/style.md\n")
    write(tmp_path, ".cursor/rules/c.mdc", "---\nglobs: '!a/**'\nmood: mild\n---\nUse cents.\n")
    write(tmp_path, ".cursor/rules/d.mdc", b"\xff\xfe\x00")
    write(tmp_path, ".cursor/rules/e.mdc", b"x" * (1 << 20) + b"y")
    assert len(records(tmp_path)) == 1
    assert problems(tmp_path) == [
        ("empty-entry", "it has no text; it is left out"),
        ("empty-entry", "it only points to other files; it is left out"),
        ("left-out", "the glob '!a/**' is left out: it excludes files"),
        ("not-utf8", "it is not UTF-8 text"),
        ("too-large", "it is larger than 1,048,576 bytes"),
        ("left-out", "1 file has mood, which is left out"),
    ]


def test_links_out_of_the_folder_are_not_read(tmp_path):
    """Neither a file nor a folder."""
    write(tmp_path, "outside/rules/a.mdc", "Errors are values.\n")
    inside = tmp_path / "repository"
    write(inside, ".cursor/rules/b.mdc", "Prices are cents.\n")
    (inside / ".cursor/rules/a.mdc").symlink_to("../../../outside/rules/a.mdc")
    (inside / ".windsurf").symlink_to("../outside")
    assert [record.body for record in records(inside)] == ["Prices are cents."]


def test_a_second_import_adds_nothing(sandbox: Sandbox):
    """A changed rule supersedes its memory."""
    place = write(sandbox.path, ".cursor/rules/handlers.mdc", HANDLERS)
    first = sandbox.json("import", "rules", ".")
    again = sandbox.json("import", "rules", ".")
    assert (first["written"], again["written"], again["unchanged"]) == (1, 0, 1)
    place.write_text(HANDLERS.replace("throws nothing", "never throws"))
    (memory,) = sandbox.json("import", "rules", ".")["memories"]
    assert "supersedes:\n  - cursor-rules-handlers" in (sandbox.path / memory["path"]).read_text()


def test_a_large_rule_is_cut_and_says_where_the_whole_is(sandbox: Sandbox):
    """A memory has a limit; the source is named."""
    write(sandbox.path, ".cursorrules", "Errors are values.\n\n" + "More about errors.\n\n" * 5_000)
    done = sandbox.json("import", "rules", ".")
    assert done["written"] == 1
    text = (sandbox.path / done["memories"][0]["path"]).read_text()
    assert "the whole text of" in text
    assert ".cursorrules" in text


def test_a_rule_of_two_tools_is_one_memory(tmp_path):
    """Many projects write the same rules for each agent."""
    for name in (".cursorrules", ".windsurfrules"):
        write(tmp_path, name, "- Use cents.\n- Never use floats.\n")
    assert len(records(tmp_path)) == 2


@pytest.mark.parametrize("text", ["[", "[a", "* ", "`a``@b", "<!-- ", "a.b/", "> ", "**a"])
def test_a_file_of_one_sign_ends_soon(tmp_path, text):
    """No pattern takes quadratic time; a list of thousands of items stays in its section."""
    write(tmp_path, ".cursorrules", text * (200_000 // len(text)))
    assert len(records(tmp_path)) <= 1


@pytest.mark.parametrize(
    ("paths", "places"),
    [
        ([".cursor/rules/a.mdc", ".cursor/rules/deep/b.mdc"], [".cursor/rules"]),
        (
            [".github/copilot-instructions.md", ".github/instructions/a.instructions.md"],
            [".github"],
        ),
        ([".github/workflows/notes.md"], []),
        ([".roo/rules-code/a.md", ".clinerules/b.md"], [".clinerules", ".roo/rules-code"]),
        ([".cursor/rules/a.mdc", ".cursorrules"], ["."]),
    ],
)
def test_places_of_rules_are_found_once(paths, places):
    """A store inside another of its format belongs to it, so nothing is offered twice."""
    stores = find_stores(paths)
    assert {store.source for store in stores} <= {"rules"}
    assert [store.path for store in stores] == places


def test_the_rules_that_memtool_gave_to_an_agent_are_none(sandbox):
    """What memtool tells Cursor is no knowledge of the project."""
    sandbox.write(".cursor/rules/own.mdc", "---\ndescription: Own\n---\n- Never edit gen.py.\n")
    sandbox.run("install", "cursor", "--yes")
    assert len(list((sandbox.path / ".cursor/rules").iterdir())) == 2
    answer = sandbox.json("import", "rules", ".", "--dry-run")
    assert [row["title"] for row in answer["memories"]] == ["Own"]
