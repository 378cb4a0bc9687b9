"""Changed here: a worktree that differs from the trusted ref silences nothing without a word."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import Sandbox

from memtool.index import analyzer, index
from memtool.inject import changed_here
from memtool.store.context import Context

BODY = "Deploys of the shop run on Tuesdays only, at nine.\n"
EDITED = "Deploys of the shop run at any time.\n"
PROMPT = "when do deploys of the shop run?"
MARK = "edited on this branch, not merged yet"
NAME = ".memory/semantic/2026-02/sem-deploys.md"
LEVELS = ("committed", "trusted")
Change = Callable[[Sandbox], object]


def deploys(sandbox: Sandbox, body: str = BODY, **fields: Any) -> None:
    sandbox.memory("sem-deploys", body, **{"type": "semantic", "title": "Deploys"} | fields)


def remove(sandbox: Sandbox) -> None:
    (sandbox.path / NAME).unlink()


SILENCING: dict[str, Change] = {
    "deprecated": lambda sandbox: deploys(sandbox, status="deprecated"),
    "archived": lambda sandbox: deploys(sandbox, status="archived"),
    "ended": lambda sandbox: deploys(sandbox, valid_through="2026-02-25"),
    "deleted": lambda sandbox: deploys(sandbox, status="deleted"),
    "removed": remove,
}
LATER: dict[str, Change] = SILENCING | {
    "broken": lambda sandbox: sandbox.write(NAME, "---\nid: [\n---\n"),
    "edited": lambda sandbox: deploys(sandbox, EDITED),
    "old": lambda sandbox: deploys(sandbox, timestamp="1999-01-01T00:00:00Z"),
    "candidate": lambda sandbox: deploys(sandbox, status="candidate"),
}


@pytest.fixture
def trusted(sandbox: Sandbox) -> Sandbox:
    """A repository with a memory in its remote's default branch."""
    deploys(sandbox)
    sandbox.memory("dec-tea", "Tea is at four.\n", title="Tea")
    sandbox.commit()
    fetch(sandbox)
    return sandbox


def fetch(sandbox: Sandbox, commit: str = "HEAD") -> None:
    sandbox.git("update-ref", "refs/remotes/origin/main", commit)


def at_level(sandbox: Sandbox, level: str) -> dict[str, Any]:
    """Answer the prompt where memories need a level of trust."""
    place = sandbox.path / ".memory/config.toml"
    place.write_text(f'[inject]\ntrust = "{level}"\n')
    return sandbox.json("inject", "--prompt", PROMPT)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("change", LATER)
def test_a_raised_bar_shows_the_version_of_its_level(trusted: Sandbox, level: str, change: str):
    """Whatever changed in the file here, the committed and trusted version is shown, marked."""
    head = trusted.git("rev-parse", "HEAD").strip()
    LATER[change](trusted)
    (item,) = at_level(trusted, level)["items"]
    assert (item["id"], item["trust"], item["commit"]) == ("sem-deploys", "trusted", head)
    assert BODY.strip() in item["text"]
    ref = "origin/main" if level == "trusted" else "HEAD"
    assert f"as {ref} has it, edited here" in item["text"]


@pytest.mark.parametrize("level", LEVELS)
def test_without_a_cache_it_is_the_same(trusted: Sandbox, level: str):
    """The comparison that is kept changes no byte."""
    deploys(trusted, EDITED)
    expected = at_level(trusted, level)
    assert at_level(trusted, level) == expected
    args = ("inject", "--prompt", PROMPT)
    assert trusted.json(*args, MEMTOOL_NO_CACHE="1") == expected


@pytest.mark.parametrize("change", SILENCING)
def test_at_the_default_a_change_takes_effect_and_is_told(trusted: Sandbox, change: str):
    """It is not shown, and stderr and the JSON name what the trusted ref would have said."""
    SILENCING[change](trusted)
    answer = trusted.json("inject", "--prompt", PROMPT)
    assert (answer["items"], answer["silenced"]) == ([], ["sem-deploys"])
    done = trusted.run("inject", "--prompt", PROMPT)
    notice = "not shown, since changed here and not yet in origin/main: sem-deploys"
    assert notice in done.stderr
    shown = "Not shown, since edited on this branch and not merged yet: sem-deploys"
    assert f"{shown} (`memtool show ID --at origin/main`)" in done.stdout
    assert trusted.run("inject", "--prompt", PROMPT, "--budget", "40").stdout == ""


def test_what_would_not_answer_is_not_told(trusted: Sandbox):
    """Overrides that do not concern the question are not reported."""
    remove(trusted)
    done = trusted.run("inject", "--prompt", "when is the tea?")
    assert "changed here" not in done.stdout + done.stderr
    assert "silenced" not in trusted.json("inject", "--prompt", "when is the tea?")


def test_at_the_default_an_edited_body_is_local_and_marked(trusted: Sandbox):
    """The edit is shown for what it is."""
    deploys(trusted, EDITED)
    (item,) = trusted.json("inject", "--prompt", PROMPT)["items"]
    assert (item["trust"], item["commit"]) == ("local", None)
    assert EDITED.strip() in item["text"]
    assert MARK in item["text"]


def test_what_a_branch_committed_is_changed_here_as_well(trusted: Sandbox):
    """A commit is not the trusted ref; where only that counts, its version is shown."""
    deploys(trusted, EDITED)
    trusted.commit()
    (item,) = trusted.json("inject", "--prompt", PROMPT)["items"]
    assert (item["trust"], MARK in item["text"]) == ("committed", True)
    (item,) = at_level(trusted, "trusted")["items"]
    assert item["trust"] == "trusted"
    assert "as origin/main has it, edited here" in item["text"]
    assert BODY.strip() in item["text"]
    (item,) = at_level(trusted, "committed")["items"]
    assert (EDITED.strip() in item["text"], MARK in item["text"]) == (True, True)


def test_nothing_is_marked_where_nothing_differs_or_nothing_is_trusted(sandbox: Sandbox):
    """Neither an unchanged worktree, nor one without a remote, nor a memory that is new."""
    deploys(sandbox)
    sandbox.commit()
    deploys(sandbox, EDITED)
    assert "edited" not in sandbox.run("inject", "--prompt", PROMPT).stdout
    sandbox.commit()
    fetch(sandbox)
    assert "edited" not in sandbox.run("inject", "--prompt", PROMPT).stdout
    sandbox.memory("sem-new", "Deploys of the shop run from main.\n", type="semantic")
    text = sandbox.run("inject", "--prompt", PROMPT).stdout
    assert "sem-new" in text
    assert "edited" not in text


def test_what_came_to_the_trusted_ref_since_was_not_changed_here(trusted: Sandbox):
    """Edits of the ref are marked only if its version is shown, new memories always."""
    old = trusted.git("rev-parse", "HEAD").strip()
    deploys(trusted, status="pinned")
    trusted.memory("sem-more", "Deploys of the shop run from main only.\n", type="semantic")
    fetch(trusted, trusted.commit())
    trusted.git("reset", "--quiet", "--hard", old)
    answer = trusted.json("inject", "--prompt", PROMPT)
    assert [item["id"] for item in answer["items"]] == ["sem-deploys", "sem-more"]
    assert "edited" not in answer["text"]
    assert "silenced" not in answer
    items = at_level(trusted, "trusted")["items"]
    assert {item["id"]: item["trust"] for item in items} == {
        "sem-deploys": "trusted",
        "sem-more": "trusted",
    }
    texts = {item["id"]: item["text"] for item in items}
    assert "as origin/main has it, not on this branch yet" in texts["sem-deploys"]
    assert "on origin/main, not in this branch yet" in texts["sem-more"]


def test_a_silenced_pin_is_told_whatever_is_asked(trusted: Sandbox):
    """It would have been in every block."""
    trusted.memory("dec-force", "Never force-push.\n", title="Force", status="pinned")
    fetch(trusted, trusted.commit())
    trusted.memory("dec-force", "Never force-push.\n", title="Force", status="archived")
    assert trusted.json("inject", "--prompt", "hello")["silenced"] == ["dec-force"]
    (item,) = [item for item in at_level(trusted, "trusted")["items"] if item["tier"] == "pinned"]
    assert (item["id"], item["trust"]) == ("dec-force", "trusted")


def test_the_rule_of_a_file_is_that_of_the_level(trusted: Sandbox):
    """The hook after an edit warns as the trusted ref does, and the primer holds its pins."""
    rule = {"title": "Leave it", "files": ("src/a.py",), "category": "warning", "type": "semantic"}
    trusted.memory("sem-rule", "Never edit this file by hand.\n", **rule)
    trusted.memory("dec-pin", "Never force-push.\n", title="Force", status="pinned")
    fetch(trusted, trusted.commit())
    trusted.write("src/a.py", "x = 1\n")
    trusted.memory("sem-rule", "Never edit this file by hand.\n", **rule, status="archived")
    trusted.memory("dec-pin", "Never force-push.\n", title="Force", status="archived")
    trusted.write(".memory/config.toml", '[inject]\ntrust = "trusted"\n')
    event = {
        "session_id": "s",
        "tool_name": "Edit",
        "hook_event_name": "PostToolUse",
        "tool_input": {"file_path": str(trusted.path / "src/a.py")},
    }
    output = trusted.run("hook", "claude", "post-tool-use", stdin=json.dumps(event)).stdout
    assert "Never edit this file by hand." in output
    assert "Never force-push." in trusted.run("inject", "--primer").stdout


def test_a_superseding_file_that_is_local_disputes_as_before(trusted: Sandbox):
    """New files have no version of the level; trust weighs what they replace."""
    deploys(trusted, EDITED)
    trusted.memory(
        "sem-next",
        "Deploys of the shop run on Fridays.\n",
        type="semantic",
        supersedes=("sem-deploys",),
    )
    (item,) = at_level(trusted, "trusted")["items"]
    assert (item["id"], item["conflicts"]) == ("sem-deploys", ["sem-next"])
    assert BODY.strip() in item["text"]


def test_a_session_is_shown_again_what_was_changed_here(trusted: Sandbox):
    """Another version, or another mark, is news."""
    args = ("inject", "--prompt", PROMPT, "--session", "s")
    assert BODY.strip() in trusted.run(*args).stdout
    assert trusted.run(*args).stdout == ""
    deploys(trusted, EDITED)
    assert MARK in trusted.run(*args).stdout


def test_a_revision_is_shown_as_it_is(trusted: Sandbox, tmp_path: Path):
    """Who asks for another time or commit gets that, without marks."""
    deploys(trusted, EDITED)
    answer = trusted.json("inject", "--prompt", PROMPT, "--at", "HEAD")
    assert BODY.strip() in answer["text"]
    assert "edited" not in answer["text"]


@pytest.mark.parametrize("least", ["committed", "trusted"])
def test_the_version_of_a_level_is_masked(sandbox: Sandbox, least: str) -> None:
    """The trusted commit may hold a secret that got past the gate."""
    secret = "ghp_" + "".join("aB3dE5fG7h"[n % 10] for n in range(36))
    body = "Releases of the shop need two reviewers.\n"
    sandbox.memory("sem-good", f"{body}\nThe bot uses {secret} for it.\n")
    sandbox.write(".memory/config.toml", f'[inject]\ntrust = "{least}"\n')
    sandbox.commit()
    sandbox.git("update-ref", "refs/remotes/origin/main", "HEAD")
    sandbox.git("symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/main")
    sandbox.memory("sem-good", "Releases of the shop need nobody.\n")
    done = sandbox.run("inject", "--prompt", "who reviews releases of the shop?")
    assert ("two reviewers" in done.stdout, "[REDACTED:" in done.stdout) == (True, True)
    assert secret not in done.stdout + done.stderr


def test_what_stands_in_is_read_in_the_language_of_the_settings(sandbox: Sandbox):
    """The version of another commit has the stems of `search.language`, as the index has."""
    sandbox.write(".memory/config.toml", '[search]\nlanguage = "german"\n')
    sandbox.memory("sem-deploys", "Nachts.\n", type="semantic", title="Sicherungen")
    sandbox.commit()
    context = Context.at(str(sandbox.path), sandbox.env)
    tree = index.open(context)
    (stem,) = analyzer.terms("Sicherungen", "german")
    assert analyzer.terms("Sicherungen") != [stem]
    over = changed_here.with_versions(tree, tree.records, context.settings)
    assert (tree.index.df(stem), over.index.df(stem)) == (1, 1)


BREAKING: dict[str, Callable[[str], str]] = {
    "fence": lambda text: text.replace("---\n", "---\n---\n", 1),
    "merge": lambda text: text.replace(
        BODY, f"<<<<<<< HEAD\n{BODY}=======\n{EDITED}>>>>>>> other\n"
    ),
    "key": lambda text: text.replace("title:", "titel:", 1),
    "cut off": lambda text: text[:40],
    "empty": lambda _text: "",
}


@pytest.mark.parametrize("name", ["origin/main", "HEAD"])
@pytest.mark.parametrize("how", BREAKING)
def test_a_broken_file_is_no_act_that_ends_a_memory(sandbox: Sandbox, how: str, name: str) -> None:
    """The last good version is shown at every level, and says that its file cannot be read."""
    deploys(sandbox)
    sandbox.commit()
    if name != "HEAD":
        fetch(sandbox)
    place = sandbox.path / NAME
    broken = BREAKING[how](place.read_text())
    for level in ("local", "committed"):
        place.write_text(broken)
        answer = at_level(sandbox, level)
        assert [item["id"] for item in answer["items"]] == ["sem-deploys"]
        assert BODY.strip() in answer["text"]
        assert "silenced" not in answer
    answer = at_level(sandbox, "local")
    assert f"as {name} has it, since its file here cannot be read" in answer["text"]
    place.unlink()
    gone = at_level(sandbox, "local")
    assert gone["items"] == []


def test_in_a_primer_and_at_an_edit_a_broken_file_hides_nothing(trusted: Sandbox) -> None:
    """A pinned memory and a rule about a file are shown as in the trusted ref."""
    deploys(trusted, status="pinned", category="warning", files=("deploy.sh",))
    trusted.write("deploy.sh", "true\n")
    trusted.commit()
    fetch(trusted)
    place = trusted.path / NAME
    place.write_text(place.read_text().replace("---\n", "---\n---\n", 1))
    for options in (("--primer",), ("--files", "deploy.sh")):
        assert BODY.strip() in trusted.run("inject", *options).stdout


def test_what_differs_is_found_wherever_the_index_keeps_a_file(trusted: Sandbox) -> None:
    """In the segment and in what changed since, whatever git's mode, as by comparing all files."""
    for number in range(6):
        trusted.memory(f"dec-{number}", f"Rule {number} holds.\n")
    trusted.commit()
    fetch(trusted)
    index.open(trusted.context())  # all of it is one segment
    place = ".memory/decision/2026-02"
    trusted.memory("dec-0", "Rule 0 was edited here.\n")
    (trusted.path / place / "dec-1.md").unlink()
    (trusted.path / place / "dec-2.md").chmod(0o755)
    trusted.git("update-index", "--chmod=+x", f"{place}/dec-2.md")
    trusted.memory("dec-new", "A rule that is only here.\n")
    trusted.git("commit", "--quiet", "--all", "--message", "change")
    for is_cached in ("", "1"):
        context = trusted.context(**({"MEMTOOL_NO_CACHE": "1"} if is_cached else {}))
        tree = index.open(context)
        basis = context.provenance_reader(tree).basis
        assert basis is not None
        differences = changed_here._compute_differences(context, tree, basis, basis.trusted_head)
        listed = trusted.git("ls-tree", "-r", basis.trusted_head, "--", place).splitlines()
        there = {row.partition("\t")[2]: row.split()[2] for row in listed}
        expected = {path for path, oid in there.items() if tree.blobs.get(path) != oid}
        assert {difference.path for difference in differences} == expected
        assert expected == {f"{place}/dec-0.md", f"{place}/dec-1.md"}
        assert all(
            difference.base == difference.there and difference.is_from_here
            for difference in differences
        )
