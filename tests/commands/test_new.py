from __future__ import annotations

import json

import pytest
from conftest import Sandbox

from memtool.commands.archive import pin
from memtool.commands.new import new, render
from memtool.errors import MemtoolError
from memtool.memory import document
from memtool.memory.memory import Memory

HIDDEN = "title: has hidden characters, line breaks or over 500 characters"


def written(sandbox: Sandbox, path: str) -> Memory:
    return document.read((sandbox.path / path).read_bytes(), path)


def refusal(sandbox: Sandbox, title: str = "T", **options: object) -> MemtoolError:
    with pytest.raises(MemtoolError) as caught:
        new(sandbox.context(), "decision", title, **options)  # type: ignore[arg-type]
    assert list(sandbox.path.glob(".memory/**/*.md")) == []
    return caught.value


def test_a_new_memory_has_the_defaults_and_the_place_of_its_type(sandbox: Sandbox):
    """Who says only type and title gets a complete, valid memory."""
    made = new(sandbox.context(), "decision", "Keep sessions in Redis")
    memory = written(sandbox, made.path)
    assert made.path == f".memory/decision/2026-03/{made.id}.md"
    assert made.id.startswith("dec-2026-03-01-keep-sessions-in-redis-")
    assert memory.fields == {
        "id": made.id,
        "timestamp": "2026-03-01T12:00:00Z",
        "type": "decision",
        "title": "Keep sessions in Redis",
        "status": "confirmed",
        "confidence": "medium",
        "source": ("human:Ada",),
    }
    assert memory.body.startswith("## Options considered\n\n## Chosen\n")


def test_every_option_reaches_its_key(sandbox: Sandbox):
    """Options are keys of the memory under their own names."""
    old = new(sandbox.context(), "semantic", "Old", id="sem-old")
    made = new(
        sandbox.context(MEMTOOL_SEED="b"),
        "semantic",
        "T",
        body="It is so.",
        category="warning",
        tag=("a", "b"),
        file=("src/*.py",),
        source=("url:https://example.org", "commit:0123abcd"),
        confidence="high",
        importance=0.25,
        valid_through="2026-12-31",
        supersedes=("sem-o",),
        set=("domain=billing", "x-team=core", "status=candidate"),
    )
    fields = written(sandbox, made.path).fields
    assert fields["category"] == "warning"
    assert fields["tags"] == ("a", "b")
    assert fields["files"] == ("src/*.py",)
    assert fields["source"] == ("url:https://example.org", "commit:0123abcd")
    assert fields["confidence"] == "high"
    assert fields["importance"] == "0.25"
    assert fields["valid_through"] == "2026-12-31"
    assert fields["supersedes"] == (old.id,)
    assert (fields["domain"], fields["x-team"], fields["status"]) == (
        "billing",
        "core",
        "candidate",
    )


def test_the_path_is_the_last_line_and_json_has_id_path_and_commit(sandbox: Sandbox):
    """Scripts read the path from stdout, programs from JSON."""
    done = sandbox.run("new", "decision", "T", "--dry-run")
    assert done.stdout.splitlines()[-1].startswith(".memory/decision/2026-03/dec-2026-03-01-t-")
    answer = sandbox.json("new", "decision", "T", "--commit")
    assert answer["commit"] == sandbox.git("rev-parse", "HEAD").strip()
    assert answer["path"].endswith(f"/{answer['id']}.md")
    assert json.dumps(answer["dry_run"]) == "false"


def test_a_title_is_put_on_one_line(sandbox: Sandbox):
    """Line breaks and tabs of a title become spaces."""
    made = new(sandbox.context(), "decision", " Keep\n\tit \r\n so ")
    assert written(sandbox, made.path).title == "Keep it so"


@pytest.mark.parametrize(
    ("options", "code", "message", "hint"),
    [
        ({"title": ""}, "bad-value", "title: is empty", "title is one line that says it"),
        ({"title": " \n "}, "bad-value", "title: is empty", "title is one line that says it"),
        ({"title": "\x1b[31mred"}, "bad-value", HIDDEN, "title is one line that says it"),
        ({"title": "x" * 501}, "bad-value", HIDDEN, "title is one line that says it"),
        ({"importance": 2.0}, "bad-value", "importance: 2 is not between 0 and 1",
         "importance is 0 to 1; 0.5 when absent"),
        ({"importance": -0.5}, "bad-value", "importance: -0.5 is not between 0 and 1",
         "importance is 0 to 1; 0.5 when absent"),
        ({"valid_through": "soon"}, "bad-value",
         "valid_through: 'soon' is not a time such as 2026-12-31 or 2026-02-22T19:33:00Z",
         "valid_through is not alive after this moment or day"),
        ({"valid_through": "2026-02-30"}, "bad-value",
         "valid_through: '2026-02-30' is not a time such as 2026-12-31 or 2026-02-22T19:33:00Z",
         "valid_through is not alive after this moment or day"),
        ({"valid_through": "2026-01-01", "set": ("valid_from=2026-02-01",)}, "bad-window",
         "it is valid through 2026-01-01, before it begins on 2026-02-01", "correct valid_through"),
        ({"file": ("../secret",)}, "bad-value",
         "files: '../secret' is not a path inside the repository, relative to its top",
         "files is files or globs that it governs"),
        ({"id": "No!"}, "bad-value", "id: 'No!' is not an id: 3 to 120 of a-z 0-9 . _ -",
         "id is the file name without .md"),
        ({"id": "../../x"}, "bad-value", "id: '../../x' is not an id: 3 to 120 of a-z 0-9 . _ -",
         "id is the file name without .md"),
        ({"section": ("Rationale",)}, "usage", "--section 'Rationale' is not NAME=TEXT",
         '--section "Rationale=it is the smallest change"'),
        ({"section": ("=x",)}, "usage", "--section '=x' is not NAME=TEXT",
         '--section "Rationale=it is the smallest change"'),
        ({"section": ("Chosen=a", "chosen=b")}, "usage", "the section 'Chosen' is given twice",
         "put both texts into one --section"),
        ({"set": ("domain",)}, "usage", "--set 'domain' is not KEY=VALUE", "--set domain=billing"),
        ({"set": ("timestamp=now",)}, "bad-value",
         "timestamp: 'now' is not a time such as 2026-02-22T19:33:00Z",
         "timestamp is when it was written, RFC 3339 with a zone"),
        ({"supersedes": ("dec-x",)}, "unknown-id", "no memory has the id 'dec-x'",
         "memtool list shows every id"),
    ],
)  # fmt: skip
def test_what_is_no_memory_is_refused_with_what_fits(
    sandbox: Sandbox, options: dict[str, object], code: str, message: str, hint: str
):
    """Each wrong value is named, and the hint says what the key holds."""
    error = refusal(sandbox, **options)
    assert (error.code, error.message, error.hint) == (code, message, hint)


def test_an_unknown_category_names_the_nearest(sandbox: Sandbox):
    """A typing error in a category is told with the right word."""
    assert "(did you mean architecture?)" in refusal(sandbox, category="architcture").message


def test_a_category_of_the_settings_is_known(sandbox: Sandbox):
    """A team's own category is as good as one that came along."""
    sandbox.write(".memory/config.toml", "[categories.security]\nweight = 1.3\n")
    made = new(sandbox.context(), "decision", "T", category="security")
    assert made.id in made.path


def test_a_source_that_names_nothing_is_refused(sandbox: Sandbox):
    """A source has one of the known kinds."""
    assert "is not a source: write one of commit:…" in refusal(sandbox, source=("chat",)).message


def test_a_taken_id_is_refused_wherever_its_file_lies(sandbox: Sandbox):
    """An id is taken in any month and below any directory, in a dry run too."""
    sandbox.memory("dec-a")
    for dry_run in (False, True):
        with pytest.raises(MemtoolError) as caught:
            new(sandbox.context(), "semantic", "T", id="dec-a", dry_run=dry_run)
        assert caught.value.code == "id-taken"
        assert ".memory/decision/2026-02/dec-a.md is already there" in caught.value.message


def test_a_made_id_that_is_taken_is_drawn_again(sandbox: Sandbox):
    """Two processes that draw the same id both get a file."""
    one = new(sandbox.context(), "decision", "T")
    other = new(sandbox.context(), "decision", "T", body="Another text.")
    assert one.id != other.id
    assert (sandbox.path / one.path).exists()
    assert (sandbox.path / other.path).exists()


def test_superseding_a_memory_that_is_no_head_leads_to_the_head(sandbox: Sandbox):
    """A correction of what was corrected already would fork the lineage."""
    sandbox.memory("dec-a")
    sandbox.memory("dec-b", supersedes=("dec-a",))
    sandbox.memory("dec-c", supersedes=("dec-b",))
    for call in (
        lambda: new(sandbox.context(), "decision", "T", supersedes=("dec-a",)),
        lambda: pin(sandbox.context(), "dec-a"),
    ):
        with pytest.raises(MemtoolError) as caught:
            call()
        assert caught.value.code == "not-a-head"
        assert caught.value.message == "dec-a is superseded already, by dec-b"
        assert caught.value.hint.endswith(" dec-c")


def test_the_text_of_a_dry_run_is_the_file(sandbox: Sandbox):
    """What a dry run shows is, byte for byte, what would be written."""
    shown = new(sandbox.context(), "decision", "T", body="B", dry_run=True)
    made = new(sandbox.context(), "decision", "T", body="B")
    assert (sandbox.path / made.path).read_text() == shown.text
    assert shown.path == made.path
    assert render(shown) == f"{shown.text}\n{shown.path}"
    assert render(made) == made.path


@pytest.mark.parametrize("where", ["sub/dir", ".memory/decision"])
def test_a_subdirectory_is_as_good_as_the_top(sandbox: Sandbox, where: str):
    """The memory goes to the repository's directory, wherever the shell is."""
    folder = sandbox.path / where
    folder.mkdir(parents=True)
    done = sandbox.run("new", "decision", "T", "--id", "dec-a", cwd=folder)
    assert done.stdout == ".memory/decision/2026-03/dec-a.md\n"
    assert (sandbox.path / ".memory/decision/2026-03/dec-a.md").exists()


def test_a_wrong_clock_is_told_by_its_name(sandbox: Sandbox):
    """A variable of the environment that cannot be read is named."""
    done = sandbox.run("new", "decision", "T", MEMTOOL_NOW="yesterday")
    assert done.returncode == 2
    assert "MEMTOOL_NOW is 'yesterday', which is not a moment" in done.stderr
