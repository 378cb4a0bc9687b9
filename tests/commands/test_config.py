"""`memtool auto`: whether anything is captured unasked, and who said no."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from conftest import PIPED, Sandbox

from memtool.commands.config import auto, config, render
from memtool.errors import MemtoolError
from memtool.hosts.edits import load_commands
from memtool.sessions import consent
from memtool.store.config import OPTIONS, USER_ONLY, find_option
from memtool.store.context import Context

TOML = "# ours\n[inject]\nbudget_tokens = 900 # small\n\n[categories.decision]\nttl_days = 0\n"


def toml(sandbox: Sandbox) -> Path:
    return sandbox.path / ".memory/config.toml"


def test_without_a_key_every_setting_is_shown(sandbox: Sandbox):
    """The list says value, origin and meaning of each row of the table."""
    sandbox.write(".memory/config.toml", TOML)
    shown = config(sandbox.context())
    assert [row.key for row in shown.settings] == [option.key for option in OPTIONS]
    text = render(shown, PIPED)
    assert text.startswith("inject.budget_tokens = 900  (set here; default 2000)\n  most tokens")
    assert text.endswith(f"\nand {len(OPTIONS) - 1} defaults (memtool config --all)")
    text = render(config(sandbox.context(), all=True), PIPED)
    assert 'inject.trust = "local"  (default)\n  least trust' in text


def test_a_key_shows_one_setting(sandbox: Sandbox):
    """A program reads one value."""
    answer = sandbox.json("config", "search.limit")
    assert [(row["key"], row["value"], row["is_default"]) for row in answer["settings"]] == [
        ("search.limit", 10, True)
    ]


def test_a_setting_of_the_user_alone_is_not_used_from_a_project(sandbox: Sandbox):
    """Who reads the list, or that setting, learns that the project's value counts for nothing."""
    sandbox.write(".memory/config.toml", '[search]\nsemantic = "off"\n')
    for key, count in (("", 1), ("search.semantic", 1), ("search.limit", 0)):
        context = sandbox.context()
        config(context, key)
        notes = [note for note in context.notes if note.startswith("search.semantic of .memory/")]
        assert len(notes) == count


def test_a_change_keeps_comments_and_all_else(sandbox: Sandbox):
    """Only the line of the setting changes."""
    sandbox.write(".memory/config.toml", TOML)
    shown = config(sandbox.context(), "inject.budget_tokens", "1200")
    assert toml(sandbox).read_text() == TOML.replace("900", "1200")
    assert (shown.changed, shown.settings[0].value) == (True, 1200)
    layout = sandbox.layout()
    render(shown, layout)
    assert layout.reports == ["Changed .memory/config.toml"]


@pytest.mark.parametrize(
    ("key", "text", "value"),
    [
        ("search.limit", "7", 7),
        ("inject.threshold", "1", 1.0),
        ("inject.threshold", "0.25", 0.25),
        ("inject.trust", "trusted", "trusted"),
        ("trust.ref", "origin/main", "origin/main"),
        ("trust.allowed_signers", 'odd "name"', 'odd "name"'),
        ("redaction.allow_emails", "acme.io, acme.dev", ("acme.io", "acme.dev")),
        ("redaction.allow_emails", "", ()),
        ("trust.ref", "", ""),
    ],
)
def test_a_value_is_written_in_the_type_of_the_setting(
    sandbox: Sandbox, key: str, text: str, value: object
):
    """The file is created if it is missing, and reads back as set."""
    config(sandbox.context(), key, text)
    assert sandbox.context().settings.values == {key: value}


def test_an_empty_list_takes_the_place_of_one_that_is_set(sandbox: Sandbox):
    """The answer shows the new value, and that the file was changed; a number is never empty."""
    sandbox.run("config", "redaction.allow_emails", "acme.io")
    done = sandbox.run("config", "redaction.allow_emails", "")
    assert done.stdout.startswith("redaction.allow_emails = []  (set here; default [])")
    assert done.stderr == "Changed .memory/config.toml\n"
    assert sandbox.run("config", "search.limit", "").returncode == 2


def test_unset_brings_the_default_back(sandbox: Sandbox):
    """A setting that is removed leaves the others alone."""
    sandbox.write(".memory/config.toml", TOML)
    shown = config(sandbox.context(), "inject.budget_tokens", unset=True)
    assert (shown.settings[0].value, shown.settings[0].is_default) == (2000, True)
    assert config(sandbox.context(), "inject.budget_tokens", unset=True).changed is False


@pytest.mark.parametrize(
    ("args", "message", "hint"),
    [
        (
            ("inject.budget", "5"),
            "unknown setting 'inject.budget'",
            "did you mean inject.budget_tokens",
        ),
        (("wxyz",), "unknown setting 'wxyz'", "memtool config"),
        (("search.limit", "many"), "search.limit must be a whole number", ""),
        (("search.limit", "0"), "search.limit must be between 1 and 100000", ""),
        (("search.limit", "2.5"), "search.limit must be a whole number", ""),
        (("inject.threshold", "nan"), "inject.threshold must be between 0 and 1", ""),
        (("inject.trust", "blind"), "inject.trust must be one of local, committed", ""),
    ],
)
def test_a_value_that_does_not_fit_is_refused(
    sandbox: Sandbox, args: tuple[str, ...], message: str, hint: str
):
    """Settings are checked before they are written."""
    with pytest.raises(MemtoolError) as caught:
        config(sandbox.context(), *args)
    assert message in caught.value.message
    assert hint in caught.value.hint
    assert not toml(sandbox).exists()


def test_contradictions_are_refused(sandbox: Sandbox):
    """A value and --unset exclude each other, and --unset needs a key."""
    with pytest.raises(MemtoolError, match="exclude each other"):
        config(sandbox.context(), "search.limit", "5", unset=True)
    with pytest.raises(MemtoolError, match="needs a setting"):
        config(sandbox.context(), unset=True)


@pytest.mark.parametrize("data", [b"not toml", b"\xff", b"[inject]\nbudget = 1\n", b"[inject\n"])
def test_a_broken_file_is_told_and_left_alone(sandbox: Sandbox, data: bytes):
    """No edit makes a broken file worse."""
    sandbox.write(".memory/config.toml", data)
    for args in ((), ("search.limit",), ("search.limit", "5")):
        with pytest.raises(MemtoolError) as caught:
            config(sandbox.context(), *args)
        assert caught.value.code == "config"
    assert toml(sandbox).read_bytes() == data


def test_a_directory_in_the_place_of_the_file_is_told(sandbox: Sandbox):
    """An unreadable settings file is reported in a sentence."""
    sandbox.write(".memory/config.toml/x", "")
    with pytest.raises(MemtoolError, match="cannot be read"):
        config(sandbox.context(), "search.limit", "5")


def test_the_settings_of_a_bare_repository_are_those_of_head(sandbox: Sandbox):
    """Reading needs no worktree."""
    sandbox.write(".memory/config.toml", TOML)
    sandbox.commit()
    sandbox.git("clone", "--quiet", "--bare", ".", "../bare.git")
    bare = Context.at(str(sandbox.path.parent / "bare.git"), sandbox.env)
    assert config(bare, "inject.budget_tokens").settings[0].value == 900


def test_the_number_of_a_category_is_set_shown_and_removed_alone(sandbox: Sandbox):
    """It is listed after the number for all other categories."""
    shown = config(sandbox.context(), "inject.threshold.decision", "0.3")
    row = shown.settings[0]
    assert (row.key, row.value, row.default) == ("inject.threshold.decision", 0.3, 0.6)
    keys = [row.key for row in config(sandbox.context()).settings]
    assert keys[keys.index("inject.threshold") + 1] == "inject.threshold.decision"
    row = config(sandbox.context(), "inject.threshold.error").settings[0]
    assert (row.key, row.value, row.is_default) == ("inject.threshold.error", 0.6, True)
    config(sandbox.context(), "inject.threshold.decision", unset=True)
    assert sandbox.context().settings.values == {}
    with pytest.raises(MemtoolError, match="is not a category"):
        config(sandbox.context(), "inject.threshold.nonsense", "0.3")
    with pytest.raises(MemtoolError, match="must be between 0 and 1"):
        config(sandbox.context(), "inject.threshold.decision", "3")


FINGERPRINT = "0123456789abcdef"


def test_an_entry_of_a_table_is_set_and_removed_alone(sandbox: Sandbox):
    """Secrets are allowed one by one, each with its reason."""
    sandbox.write(".memory/config.toml", f'# ours\n[redaction.allow]\n{"f" * 16} = "old"\n')
    key = f"redaction.allow.{FINGERPRINT}"
    shown = config(sandbox.context(), key, "the key of the demo")
    table = {FINGERPRINT: "the key of the demo", "f" * 16: "old"}
    assert sandbox.context().settings.values == {"redaction.allow": table}
    assert f'{{{FINGERPRINT} = "the key of the demo", {"f" * 16} = "old"}}' in render(shown, PIPED)
    config(sandbox.context(), key, unset=True)
    assert toml(sandbox).read_text() == f'# ours\n[redaction.allow]\n{"f" * 16} = "old"\n'


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("redaction.allow", "why"), "is a table: name an entry"),
        (("redaction.allow.demo", "why"), "redaction.allow.demo must be named by 16 of 0-9 a-f"),
        ((f"redaction.allow.{FINGERPRINT}", " "), "must be a table of lines"),
        (("redaction.allow_emails", "a@acme.io,,"), "must be a list of texts that are not empty"),
    ],
)
def test_a_list_or_table_that_does_not_fit_is_refused(
    sandbox: Sandbox, args: tuple[str, ...], message: str
):
    """An allowed secret needs its fingerprint and a reason, a list no empty text."""
    with pytest.raises(MemtoolError, match=message):
        config(sandbox.context(), *args)
    assert not toml(sandbox).exists()


def test_it_is_on_until_somebody_says_no(sandbox: Sandbox):
    """The project may, in its own settings; the rest of the file stays."""
    sandbox.write(".memory/config.toml", "# ours\n[search]\nlimit = 7\n")
    assert render(auto(sandbox.context()), PIPED) == "automatic capture is on"
    shown = auto(sandbox.context(), "off")
    assert (shown.on, shown.off_by, shown.changed) == (False, (".memory/config.toml",), True)
    assert not consent.is_capturing(sandbox.context())
    text = (sandbox.path / ".memory" / "config.toml").read_text()
    assert text == "# ours\n[search]\nlimit = 7\n\n[capture]\nauto = false\n"
    assert auto(sandbox.context(), "on").on
    assert consent.is_capturing(sandbox.context())
    text = (sandbox.path / ".memory" / "config.toml").read_text()
    assert text == "# ours\n[search]\nlimit = 7\n\n"


def test_the_file_of_the_users_own_settings_is_named_whole(sandbox: Sandbox):
    """Its full path tells it from the project's file."""
    sandbox.run("--global", "remember", "Deploys run on Tuesdays only.")
    done = sandbox.run("--global", "config", "search.limit", "7")
    path = os.path.join(sandbox.env["XDG_DATA_HOME"], "memtool", ".memory", "config.toml")
    assert f"Changed {path}\n" in done.stderr
    assert sandbox.json("--global", "config", "search.limit")["path"] == path
    assert sandbox.json("--global", "auto")["path"] == path


@pytest.mark.parametrize("entry", ["relative/*", "~ada/src", "ftp://example.org/a.git"])
def test_a_repository_that_no_sync_reaches_is_refused(sandbox: Sandbox, entry: str):
    """When it is set, and not only by `fleet sync`; a glob that matches none yet is taken."""
    sandbox.run("--global", "remember", "Deploys run on Tuesdays only.")
    done = sandbox.run("--global", "config", "fleet.repositories", f"~/src/*,{entry}")
    assert done.returncode == 2
    assert f"fleet.repositories: {entry}: " in done.stderr
    assert sandbox.run("--global", "config", "fleet.repositories", "~/src/*").returncode == 0


def test_a_switch_is_on_or_off_and_written_as_true_or_false(sandbox: Sandbox):
    """A person says `on`; TOML has no such word."""
    for word, written in (("on", "true"), ("OFF", "false"), ("yes", "true"), ("no", "false")):
        config(sandbox.context(), "extraction.enabled", word)
        assert toml(sandbox).read_text().endswith(f"enabled = {written}\n")


def test_a_dry_run_changes_nothing(sandbox: Sandbox):
    """It only says what would be."""
    shown = auto(sandbox.context(), "off", dry_run=True)
    layout = sandbox.layout()
    assert render(shown, layout) == "automatic capture is off, by .memory/config.toml"
    assert layout.reports == ["Would change .memory/config.toml"]
    assert consent.is_capturing(sandbox.context())


def test_commit_takes_just_the_settings(sandbox: Sandbox):
    """Other staged files stay staged."""
    sandbox.write("other", "x")
    sandbox.git("add", "other")
    shown = auto(sandbox.context(), "off", commit=True)
    assert sandbox.git("show", "--format=", "--name-only").split() == [".memory/config.toml"]
    assert shown.commit == sandbox.git("rev-parse", "HEAD").strip()


@pytest.mark.parametrize("key", USER_ONLY)
def test_a_project_has_no_say_in_what_is_the_users_alone(sandbox: Sandbox, key: str):
    """It cannot be set; a value in its file is shown as unused, next to the effective one."""
    done = sandbox.run("config", key, "2")
    assert (done.returncode, USER_ONLY[key] in done.stderr) == (2, True)
    assert f"hint: memtool --global config {key} VALUE" in done.stderr
    assert not (sandbox.path / ".memory/config.toml").exists()
    default, choices = find_option(key).default, find_option(key).choices
    text = choices[-1] if choices else "/x"
    value = {str: f'"{text}"', bool: "true", tuple: '["x"]'}.get(type(default), "1")
    section, name = key.split(".")
    sandbox.write(".memory/config.toml", f"[{section}]\n{name} = {value}\n")
    (row,) = sandbox.json("config", key)["settings"]
    assert (row["value"], row["is_default"]) == (
        list(default) if isinstance(default, tuple) else default,
        True,
    )
    assert USER_ONLY[key] in row["unused"]
    assert USER_ONLY[key] in sandbox.run("config").stderr
    assert "unused" not in sandbox.json("config", "search.limit")["settings"][0]
    assert sandbox.run("config", key, "--unset").returncode == 0
    assert "unused" not in sandbox.json("config", key)["settings"][0]


def test_no_project_switches_on_what_its_user_switched_off(sandbox: Sandbox):
    """The user's no wins in all projects, even if a project says yes."""
    sandbox.write(".memory/config.toml", "[capture]\nauto = true\n")
    assert sandbox.run("auto", "--global", "off").returncode == 0
    assert not consent.is_capturing(sandbox.context())
    assert sandbox.json("auto")["off_by"] == ["your global settings"]
    assert sandbox.json("auto", "on")["on"] is False
    assert sandbox.run("auto", "--global", "on").returncode == 0
    assert consent.is_capturing(sandbox.context())


def test_one_process_is_switched_off_by_its_environment(sandbox: Sandbox):
    """MEMTOOL_OFF holds whatever the files say."""
    ws = sandbox.context(MEMTOOL_OFF="1")
    assert not consent.is_capturing(ws)
    assert auto(ws).off_by == ("MEMTOOL_OFF",)


def test_the_switch_leaves_a_broken_file_alone(sandbox: Sandbox):
    """A switch must not make it worse."""
    sandbox.write(".memory/config.toml", "[capture\n")
    for switch in ("", "off"):
        with pytest.raises(MemtoolError, match="is not TOML"):
            auto(sandbox.context(), switch)  # type: ignore[arg-type]  # one of the choices
    assert (sandbox.path / ".memory" / "config.toml").read_text() == "[capture\n"


@pytest.mark.parametrize(
    ("command", "words", "key", "value"),
    [
        ("memory-auto", {}, "capture.auto", False),
        ("memory-budget", {"NUMBER": "700"}, "inject.budget_tokens", 700),
        (
            "memory-config",
            {"KEY": "search.preset", "VALUE": "precision"},
            "search.preset",
            "precision",
        ),
        (
            "memory-config",
            {"KEY": "promote.preset", "VALUE": "conservative"},
            "promote.preset",
            "conservative",
        ),
    ],
)
def test_what_a_slash_command_sets_is_the_users_own(
    sandbox: Sandbox, command: str, words: dict[str, str], key: str, value: object
):
    """The command that the template names changes no file of the project, and holds there."""
    (text,) = (
        slash_command.body for slash_command in load_commands() if slash_command.name == command
    )
    (call,) = (
        line.split()
        for line in re.findall("`memtool ([^`]+)`", text)
        if "--global" in line and line.split()[-1] != "on"
    )
    before = sandbox.git("status", "--porcelain")
    done = sandbox.run(*(words.get(word, word) for word in call))
    assert (done.returncode, "each project" in done.stderr) == (0, False), done.stderr
    assert sandbox.git("status", "--porcelain") == before
    assert sandbox.json("config", key)["settings"][0]["value"] == value
    assert consent.is_capturing(sandbox.context()) is (key != "capture.auto")


def test_a_setting_of_each_project_is_named_when_it_is_set_for_all(sandbox: Sandbox):
    """Setting it for all projects has no effect, which a note says."""
    done = sandbox.run("config", "--global", "check.duplicate_threshold", "0.9")
    assert (done.returncode, "only set for the global memories" in done.stderr) == (0, True)


OLD_FILE = "[inject]\nshare = 0.9\nfloor = 2.0\n"
OLD_NOTE = (
    ".memory/config.toml names inject.share, inject.floor; they are called inject.min_coverage, "
    "inject.min_rare_words now"
)


def test_old_names_of_settings_are_told_in_one_note(sandbox: Sandbox):
    """All files together make one note, in every verb that reads them."""
    sandbox.memory("dec-a")
    sandbox.write(".memory/config.toml", OLD_FILE)
    assert sandbox.run("list").stderr == f"memtool: {OLD_NOTE}\n"
    sandbox.run("--global", "remember", "Deploys run on Tuesdays only.")
    own = os.path.join(sandbox.env["XDG_DATA_HOME"], "memtool", ".memory", "config.toml")
    sandbox.write(own, "[inject]\npinned_most = 3\n")
    note = (
        "config.toml of your global memories names inject.pinned_most; it is called "
        "inject.max_pinned now"
    )
    assert sandbox.run("list").stderr == f"memtool: {OLD_NOTE}; {note}\n"
    assert sandbox.run("--global", "list").stderr == f"memtool: {note}\n"
    sandbox.write(".memory/config.toml", "[inject]\nmin_coverage = 0.9\n")
    assert sandbox.run("list").stderr == f"memtool: {note}\n"


def test_an_old_name_shows_the_setting(sandbox: Sandbox):
    """With one note, whether the file has the old name or not."""
    done = sandbox.run("config", "inject.share")
    assert done.stdout.startswith("inject.min_coverage = 0.4  (default)")
    assert done.stderr == "memtool: inject.share is now called inject.min_coverage\n"
    sandbox.write(".memory/config.toml", OLD_FILE)
    done = sandbox.run("config", "inject.share")
    assert done.stdout.startswith("inject.min_coverage = 0.9  (set here; default 0.4)")
    assert done.stderr == f"memtool: {OLD_NOTE}\n"


def test_setting_an_old_name_writes_the_new_one(sandbox: Sandbox):
    """The old line goes, by which name ever it is set or unset; other old names stay."""
    assert sandbox.run("config", "inject.floor", "3").returncode == 0
    assert toml(sandbox).read_text() == "[inject]\nmin_rare_words = 3.0\n"
    for key in ("inject.share", "inject.min_coverage"):
        sandbox.write(".memory/config.toml", OLD_FILE)
        assert sandbox.run("config", key, "0.5").returncode == 0
        assert toml(sandbox).read_text() == "[inject]\nfloor = 2.0\nmin_coverage = 0.5\n"
        sandbox.write(".memory/config.toml", OLD_FILE)
        assert sandbox.run("config", key, "--unset").returncode == 0
        assert toml(sandbox).read_text() == "[inject]\nfloor = 2.0\n"


def test_a_number_for_a_category_joins_those_of_the_old_name(sandbox: Sandbox):
    """The table gets the new name, and the other categories keep their numbers."""
    sandbox.write(".memory/config.toml", "[inject.share]\nerror = 0.7 # strict\n")
    assert sandbox.run("config", "inject.share.decision", "0.3").returncode == 0
    expected = "\n[inject.min_coverage]\nerror = 0.7 # strict\ndecision = 0.3\n"
    assert toml(sandbox).read_text() == expected


def test_the_gate_takes_old_names(sandbox: Sandbox):
    """A file that was right before is right for one version more."""
    sandbox.memory("dec-a")
    sandbox.commit("first")
    sandbox.write(".memory/config.toml", OLD_FILE + '[extractor]\ncommand = ["llm"]\n')
    sandbox.commit("settings")
    done = sandbox.run("check", "--range", "HEAD~1..HEAD")
    assert done.returncode == 0, done.stdout
    assert "extraction.command of a project is not run" in sandbox.run("check").stdout
