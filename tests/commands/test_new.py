from __future__ import annotations

import json

import pytest
from conftest import PIPED, Sandbox

from memtool.commands.archive import pin
from memtool.commands.new import new, remember, render, supersede
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
    """Who gives only type, title and text gets a complete, valid memory."""
    made = new(
        sandbox.context(), "decision", "Keep sessions in Redis", body="It is so, and this is why."
    )
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
    assert memory.body == "It is so, and this is why.\n"


def test_every_option_reaches_its_key(sandbox: Sandbox):
    """Options are keys of the memory under their own names."""
    old = new(sandbox.context(), "semantic", "Old", id="sem-old", body="It is so, and this is why.")
    commit = sandbox.commit()
    made = new(
        sandbox.context(MEMTOOL_SEED="b"),
        "semantic",
        "T",
        body="It is so.",
        category="warning",
        tag=("a", "b"),
        file=("src/*.py",),
        source=("url:https://example.org", f"commit:{commit}"),
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
    assert fields["source"] == ("url:https://example.org", f"commit:{commit}")
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
    done = sandbox.run("new", "decision", "T", "--dry-run", "--body", "It is so, and this is why.")
    assert done.stdout.splitlines()[-1].startswith(".memory/decision/2026-03/dec-2026-03-01-t-")
    answer = sandbox.json(
        "new", "decision", "T", "--commit", "--body", "It is so, and this is why."
    )
    assert answer["commit"] == sandbox.git("rev-parse", "HEAD").strip()
    assert answer["path"].endswith(f"/{answer['id']}.md")
    assert json.dumps(answer["dry_run"]) == "false"


def test_a_title_is_put_on_one_line(sandbox: Sandbox):
    """Line breaks and tabs of a title become spaces."""
    made = new(
        sandbox.context(), "decision", " Keep\n\tit \r\n so ", body="It is so, and this is why."
    )
    assert written(sandbox, made.path).title == "Keep it so"


@pytest.mark.parametrize(
    ("options", "code", "message", "hint"),
    [
        ({"title": ""}, "bad-value", "title: is empty", "title is one line that says it"),
        ({"title": " \n "}, "bad-value", "title: is empty", "title is one line that says it"),
        ({"title": "\x1b[31mred"}, "bad-value", HIDDEN, "title is one line that says it"),
        ({"title": "x" * 501}, "bad-value", HIDDEN, "title is one line that says it"),
        (
            {"importance": 2.0},
            "bad-value",
            "importance: 2 is not between 0 and 1",
            "importance is 0 to 1; 0.5 when absent",
        ),
        (
            {"importance": -0.5},
            "bad-value",
            "importance: -0.5 is not between 0 and 1",
            "importance is 0 to 1; 0.5 when absent",
        ),
        (
            {"valid_through": "soon"},
            "bad-value",
            "valid_through: 'soon' is not a time such as 2026-12-31 or 2026-02-22T19:33:00Z",
            "valid_through is not active after this moment or day",
        ),
        (
            {"valid_through": "2026-02-30"},
            "bad-value",
            "valid_through: '2026-02-30' is not a time such as 2026-12-31 or 2026-02-22T19:33:00Z",
            "valid_through is not active after this moment or day",
        ),
        (
            {"valid_through": "2026-01-01", "set": ("valid_from=2026-02-01",)},
            "bad-window",
            "it is valid through 2026-01-01, before it begins on 2026-02-01",
            "correct valid_through",
        ),
        (
            {"file": ("../secret",)},
            "bad-value",
            "files: '../secret' is not a path inside the repository, relative to its top",
            "files is files or globs that it governs",
        ),
        (
            {"id": "No!"},
            "bad-value",
            "id: 'No!' is not an id: 3 to 120 of a-z 0-9 . _ -",
            "id is the file name without .md",
        ),
        (
            {"id": "../../x"},
            "bad-value",
            "id: '../../x' is not an id: 3 to 120 of a-z 0-9 . _ -",
            "id is the file name without .md",
        ),
        (
            {"section": ("Rationale",)},
            "usage",
            "--section takes NAME=TEXT, not 'Rationale'",
            '--section "Rationale=it is the smallest change"',
        ),
        (
            {"section": ("=x",)},
            "usage",
            "--section takes NAME=TEXT, not '=x'",
            '--section "Rationale=it is the smallest change"',
        ),
        (
            {"section": ("Chosen=a", "chosen=b")},
            "usage",
            "two sections are called 'Chosen'",
            "put both texts into one --section",
        ),
        (
            {"set": ("domain",)},
            "usage",
            "--set takes KEY=VALUE, not 'domain'",
            "--set domain=billing",
        ),
        (
            {"set": ("timestamp=now",)},
            "bad-value",
            "timestamp: 'now' is not a time such as 2026-02-22T19:33:00Z",
            "timestamp is when it was written, RFC 3339 with a zone",
        ),
        (
            {"supersedes": ("dec-x",)},
            "unknown-id",
            'no memory is called "dec-x"',
            "memtool search dec-x",
        ),
    ],
)
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
    made = new(
        sandbox.context(), "decision", "T", category="security", body="It is so, and this is why."
    )
    assert made.id in made.path


def test_a_source_that_names_nothing_is_refused(sandbox: Sandbox):
    """A source has one of the known kinds."""
    assert "is not a source: write one of commit:…" in refusal(sandbox, source=("chat",)).message


def test_a_taken_id_is_refused_wherever_its_file_lies(sandbox: Sandbox):
    """An id is taken in any month and below any directory, in a dry run too."""
    sandbox.memory("dec-a")
    for dry_run in (False, True):
        with pytest.raises(MemtoolError) as caught:
            new(
                sandbox.context(),
                "semantic",
                "T",
                id="dec-a",
                dry_run=dry_run,
                body="It is so, and this is why.",
            )
        assert caught.value.code == "exists"
        assert ".memory/decision/2026-02/dec-a.md is already there" in caught.value.message


def test_a_made_id_that_is_taken_is_drawn_again(sandbox: Sandbox):
    """Two processes that draw the same id both get a file."""
    first = new(sandbox.context(), "decision", "T", body="It is so, and this is why.")
    other = new(sandbox.context(), "semantic", "T", body="Another text.", source=("human:Ada",))
    assert first.id != other.id
    assert (sandbox.path / first.path).exists()
    assert (sandbox.path / other.path).exists()


def test_superseding_a_memory_that_is_no_head_leads_to_the_head(sandbox: Sandbox):
    """A correction of what was corrected already would fork the lineage."""
    sandbox.memory("dec-a")
    sandbox.memory("dec-b", supersedes=("dec-a",))
    sandbox.memory("dec-c", supersedes=("dec-b",))
    for call in (
        lambda: new(
            sandbox.context(),
            "decision",
            "T",
            supersedes=("dec-a",),
            body="It is so, and this is why.",
        ),
        lambda: pin(sandbox.context(), "dec-a"),
    ):
        with pytest.raises(MemtoolError) as caught:
            call()
        assert caught.value.code == "not-a-head"
        assert "(dec-a) is superseded by:\n  dec-b  " in caught.value.message
        assert " dec-c" in caught.value.hint.split("\n")[0]


def test_the_text_of_a_dry_run_is_the_file(sandbox: Sandbox):
    """A dry run shows the file byte for byte."""
    shown = new(sandbox.context(), "decision", "T", body="B", dry_run=True)
    made = new(sandbox.context(), "decision", "T", body="B")
    assert (sandbox.path / made.path).read_text() == shown.text
    assert shown.path == made.path
    assert render(shown, PIPED) == f"{shown.text}\n{shown.path}"
    assert render(made, PIPED) == made.path


@pytest.mark.parametrize("where", ["sub/dir", ".memory/decision"])
def test_a_subdirectory_is_as_good_as_the_top(sandbox: Sandbox, where: str):
    """The memory goes to the repository's directory, wherever the shell is."""
    folder = sandbox.path / where
    folder.mkdir(parents=True)
    done = sandbox.run(
        "new", "decision", "T", "--id", "dec-a", "--body", "It is so, and this is why.", cwd=folder
    )
    assert done.stdout == ".memory/decision/2026-03/dec-a.md\n"
    assert (sandbox.path / ".memory/decision/2026-03/dec-a.md").exists()


def test_a_wrong_clock_is_told_by_its_name(sandbox: Sandbox):
    """A variable of the environment that cannot be read is named."""
    done = sandbox.run(
        "new", "decision", "T", "--body", "It is so, and this is why.", MEMTOOL_NOW="yesterday"
    )
    assert done.returncode == 2
    assert "MEMTOOL_NOW must be a moment, not 'yesterday'" in done.stderr


def test_words_become_a_confirmed_fact_of_the_user(sandbox: Sandbox):
    """The user's own words are the body, their first sentence the title."""
    made = remember(sandbox.context(), "Deploys", "run on Tuesdays. Never on Fridays!")
    memory = document.read((sandbox.path / made.path).read_bytes())
    assert memory.title == "Deploys run on Tuesdays"
    assert memory.body == "Deploys run on Tuesdays. Never on Fridays!\n"
    assert (memory.type, memory.status, memory.category) == ("semantic", "confirmed", "preference")
    assert (memory.confidence, memory.items("source")) == ("high", ("human:Ada",))


def test_options_reach_their_keys(sandbox: Sandbox):
    """Category, tags and files are said as in `new`."""
    sandbox.write("x.py", "")
    made = remember(sandbox.context(), "It is so.", category="warning", tag=("a",), file=("x.py",))
    memory = document.read((sandbox.path / made.path).read_bytes())
    assert (memory.category, memory.items("tags"), memory.items("files")) == (
        "warning",
        ("a",),
        ("x.py",),
    )


def test_the_text_may_come_from_stdin(sandbox: Sandbox):
    """A lone dash reads stdin, line breaks and all."""
    done = sandbox.run("remember", "-", stdin="One line.\nAnother.\n")
    body = (sandbox.path / done.stdout.strip()).read_text().partition("\n---\n")[2]
    assert body == "One line.\nAnother.\n"


@pytest.mark.parametrize(
    ("words", "category"),
    [
        ("We decided to keep sessions in Redis.", "decision"),
        ("The gateway is written in Go.", "architecture"),
        ("The QA lead is Bo.", "discovery"),
        ("Handlers must never touch the database.", "pattern"),
        ("Deploys run on Tuesdays only, never before a holiday.", "preference"),
        ("Careful: the staging database is shared.", "warning"),
        ("Please do not edit src/gen/ by hand.", "warning"),
        ("Answer in British English.", "preference"),
    ],
)
def test_the_words_decide_the_category(sandbox: Sandbox, words: str, category: str):
    """As in a session, and the receipt names it; `--category` decides."""
    done = sandbox.run("remember", words)
    assert f"\n  {category}; not committed" in done.stderr
    assert sandbox.json("list", "--limit", "0")["memories"][0]["category"] == category
    chosen = sandbox.run("remember", "So be it.", "--category", "pattern")
    assert "\n  pattern; not committed" in chosen.stderr


def test_what_is_forbidden_about_a_file_is_shown_when_it_is_edited(sandbox: Sandbox):
    """A warning governs the file: an edit is told of it, and review names it."""
    sandbox.run("init")
    sandbox.write("gen.py", "x = 1\n")
    sandbox.commit()
    words = "Never edit gen.py by hand."
    assert sandbox.run("remember", words, "--file", "gen.py", "--commit").returncode == 0
    event = {
        "hook_event_name": "PostToolUse",
        "session_id": "s",
        "tool_name": "Edit",
        "tool_input": {"file_path": str(sandbox.path / "gen.py")},
    }
    assert words in sandbox.run("hook", "claude", "post-tool-use", stdin=json.dumps(event)).stdout
    sandbox.write("gen.py", "x = 2\n")
    sandbox.commit()
    assert words.rstrip(".") in sandbox.run("review", "HEAD~1..HEAD").stdout


@pytest.mark.parametrize("words", [(), ("",), (" \n ",)])
def test_nothing_to_remember_is_told(sandbox: Sandbox, words: tuple[str, ...]):
    """An empty text makes no memory."""
    with pytest.raises(MemtoolError, match="cannot remember: the text is missing"):
        remember(sandbox.context(), *words)


def test_an_unknown_category_is_told(sandbox: Sandbox):
    """The category table is the same as for `new`."""
    with pytest.raises(MemtoolError, match="did you mean preference"):
        remember(sandbox.context(), "It is so.", category="preferences")


def made_by(sandbox: Sandbox, *args: str, **options: object) -> Memory:
    options = {"body": "It is so, and this is why."} | options
    made = supersede(sandbox.context(), *args, **options)  # type: ignore[arg-type]
    return document.read((sandbox.path / made.path).read_bytes(), made.path)


def test_the_new_memory_names_the_old_one_which_keeps_every_byte(sandbox: Sandbox):
    """A correction is a new file; lineage does the rest."""
    path = sandbox.memory("dec-a")
    before = (sandbox.path / path).read_bytes()
    memory = made_by(sandbox, "dec-a", "Another way", body="So.")
    assert memory.supersedes == ("dec-a",)
    assert (sandbox.path / path).read_bytes() == before
    assert sandbox.context().tree().lineage.superseded_by["dec-a"] == (memory.id,)


def test_what_it_is_found_by_is_taken_over(sandbox: Sandbox):
    """A correction is found like the memory that it corrects, and handled like it."""
    inherited = {
        "category": "architecture",
        "tags": ("a", "b"),
        "files": ("src/**",),
        "aliases": ("cache",),
        "trigger_phrases": ("which cache",),
        "domain": "billing",
        "importance": "0.9",
        "privacy": ("internal",),
    }
    own = {"scope": "global", "valid_through": "2026-12-31", "task_id": "T-1", "confidence": "low"}
    sandbox.memory("dec-a", **inherited, **own)  # type: ignore[arg-type]
    memory = made_by(sandbox, "dec-a", "Another way")
    assert {key: memory.fields.get(key) for key in inherited} == inherited
    assert memory.confidence == "medium"
    assert "valid_through" not in memory.fields
    assert "task_id" not in memory.fields


def test_what_is_given_wins_over_what_is_taken_over(sandbox: Sandbox):
    """Options of the correction are the last word."""
    sandbox.memory("dec-a", tags=("a",), category="architecture", importance="0.9")
    memory = made_by(
        sandbox,
        "dec-a",
        "T",
        tag=("new",),
        category="warning",
        importance=0.0,
        id="dec-b",
        set=("environment=ci",),
    )
    assert memory.items("tags") == ("new",)
    assert memory.category == "warning"
    assert memory.importance == 0.0
    assert (memory.id, memory.text("environment")) == ("dec-b", "ci")


def test_a_project_keeps_no_memory_for_all_projects(sandbox: Sandbox):
    """The refusal names --global; global memories already there are not moved."""
    with pytest.raises(MemtoolError) as caught:
        new(sandbox.context(), "decision", "T", body="It is so.", set=("scope=global",))
    assert (caught.value.code, "--global" in caught.value.hint) == ("foreign-scope", True)
    sandbox.memory("dec-a", scope="global")
    assert made_by(sandbox, "dec-a", "T").text("scope") == ""


def test_another_type_has_its_own_category(sandbox: Sandbox):
    """The category of a decision says nothing about a fact."""
    sandbox.memory("dec-a", category="decision")
    assert made_by(sandbox, "dec-a", "T", type="semantic").category == "pattern"


def test_a_pinned_memory_stays_pinned_through_its_correction(sandbox: Sandbox):
    """A correction stays in the tier of the memory that it corrects."""
    sandbox.memory("dec-a", status="pinned")
    assert made_by(sandbox, "dec-a", "T").status == "pinned"


@pytest.mark.parametrize("status", ["candidate", "deprecated", "archived"])
def test_a_correction_is_confirmed_whatever_the_old_one_was(sandbox: Sandbox, status: str):
    """Writing a correction confirms it."""
    sandbox.memory("dec-a", status=status)
    assert made_by(sandbox, "dec-a", "T").status == "confirmed"


def test_a_fork_is_joined_by_naming_the_other_head(sandbox: Sandbox):
    """One memory that supersedes both heads settles a fork."""
    sandbox.memory("dec-a")
    sandbox.memory("dec-b", supersedes=("dec-a",))
    sandbox.memory("dec-c", supersedes=("dec-a",))
    memory = made_by(sandbox, "dec-b", "Both", supersedes=("dec-c", "dec-b"))
    assert memory.supersedes == ("dec-b", "dec-c")
    assert sandbox.context().tree().lineage.find_forks() == ()


def test_what_is_superseded_already_leads_to_its_heads(sandbox: Sandbox):
    """The hint is the command for the memory that holds now."""
    sandbox.memory("dec-a")
    sandbox.memory("dec-b", supersedes=("dec-a",))
    with pytest.raises(MemtoolError) as caught:
        supersede(sandbox.context(), "dec-a", "T", body="It is so, and this is why.")
    assert (caught.value.code, caught.value.hint) == ("not-a-head", "memtool supersede dec-b TITLE")


def test_a_path_names_a_memory_too(sandbox: Sandbox):
    """The path printed by `new` can be pasted."""
    path = sandbox.memory("dec-a")
    assert made_by(sandbox, path, "T").supersedes == ("dec-a",)


def test_tags_of_living_memories_are_proposed(sandbox: Sandbox) -> None:
    """Those that the text names, then those of its files; never of what is out of use."""
    sandbox.write("src/a.py", "")
    for number in range(3):
        sandbox.memory(f"sem-{number}", type="semantic", tags=("auth", "web"), files=("src/a.py",))
    sandbox.memory("sem-x", type="semantic", tags=("rate-limit", "cache"))
    sandbox.memory("sem-y", type="semantic", tags=("redis",), status="archived")
    sandbox.memory("sem-z", type="semantic", tags=("rate",))

    def proposed(*args: str) -> str:
        done = sandbox.run("new", "semantic", "A title", "--dry-run", *args)
        assert done.returncode == 0
        note = done.stderr.partition("matching tags of other memories: ")[2]
        return note.partition(" (")[0]

    assert proposed("--body", "The rate limits are in Redis.") == "rate, rate-limit"
    assert proposed("--body", "It is so.", "--file", "src/a.py") == "auth, web"
    assert proposed("--body", "The cache.", "--file", "src/a.py") == "cache, auth, web"
    assert proposed("--body", "The cache.", "--tag", "mine") == ""
    assert proposed("--body", "Nothing fits here.") == ""
