"""Labels of privacy: what is hidden from programs and agents, and what a digest may quote."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from conftest import Sandbox, read_terminal

from memtool.commands.inject import inject
from memtool.commands.list import list as list_
from memtool.commands.search import search
from memtool.memory.fields import PRIVATE_LABELS

ASKED = "when do payroll exports run"


@pytest.fixture
def labelled(sandbox: Sandbox) -> Sandbox:
    """A repository with one memory of each kind of label."""
    sandbox.memory("dec-open", "Payroll exports run at night.\n")
    sandbox.memory(
        "dec-secret",
        "Payroll exports run for Ada Byron too.\n",
        privacy=("Confidential",),
        status="pinned",
    )
    sandbox.memory("dec-own", "Payroll exports run on my laptop.\n", privacy=("personal", "x"))
    sandbox.memory("dec-inner", "Payroll exports run in Oslo.\n", privacy=("internal",))
    sandbox.commit()
    return sandbox


def search_ids(sandbox: Sandbox, *query: str, is_person: bool = False) -> tuple[list[str], str]:
    """Return the ids that a search finds, sorted, and its notes."""
    context = sandbox.context()
    context.caller.is_person = is_person
    searched = search(context, *query)
    return sorted(result.id for result in searched.results), "\n".join(context.notes)


def test_a_program_is_not_shown_what_is_private_unless_it_asks(labelled: Sandbox) -> None:
    """Search and list leave it out with a note; the label, or the id, asks for it."""
    ids, notes = search_ids(labelled, ASKED)
    assert ids == ["dec-inner", "dec-open"]
    assert "2 memories labelled Confidential or labelled personal are left out" in notes
    assert "Ada" not in notes
    assert search_ids(labelled, ASKED, "privacy:confidential")[0] == ["dec-secret"]
    assert search_ids(labelled, ASKED, "privacy:*")[0] == ["dec-inner", "dec-own", "dec-secret"]
    assert search_ids(labelled, "id:dec-own") == (["dec-own"], "")
    assert search_ids(labelled, "harbour")[1] == "no memory matches"
    assert "is:superseded" not in search_ids(labelled, "is:head", "laptop")[1]
    context = labelled.context()
    assert {memory.id for memory in list_(context).memories} == {"dec-inner", "dec-open"}
    assert "left out" in context.notes[0]
    explained = labelled.run("search", ASKED, "--explain").stderr
    assert "dec-secret" not in explained
    why = labelled.run("search", ASKED, "--why-not", "dec-secret").stdout
    assert why == "dec-secret  Title of dec-secret: labelled Confidential\n"


def test_a_person_at_a_terminal_sees_all(labelled: Sandbox) -> None:
    """A terminal is private; a pipe may pass text on."""
    everything = ["dec-inner", "dec-open", "dec-own", "dec-secret"]
    assert search_ids(labelled, ASKED, is_person=True) == (everything, "")
    leader, follower = os.openpty()
    argv = [sys.executable, "-m", "memtool", "list"]
    done = subprocess.run(argv, cwd=labelled.path, env=labelled.env, stdout=follower, check=True)
    os.close(follower)
    assert "dec-secret" in read_terminal(leader)
    os.close(leader)
    assert done.returncode == 0


def test_no_agent_is_given_what_is_private(labelled: Sandbox) -> None:
    """Neither pinned, nor as an answer, nor in a primer, nor in AGENTS.md; --explain says why."""
    block = inject(labelled.context(), prompt=ASKED, explain=True)
    text = str(block.text)
    assert "at night" in text
    assert "Oslo" in text
    assert "Ada" not in text
    assert "laptop" not in text
    context = labelled.context()
    inject(context, prompt=ASKED, explain=True)
    assert any("labelled Confidential (inject.exclude_privacy)" in note for note in context.notes)
    assert "Ada" not in str(inject(labelled.context(), primer=True).text)
    labelled.run("inject", "--into", "AGENTS.md")
    assert "dec-secret" not in (labelled.path / "AGENTS.md").read_text()


def test_the_labels_are_a_setting_that_no_branch_narrows(labelled: Sandbox) -> None:
    """A project may keep more or less to itself; the settings of the trusted ref are a floor."""
    labelled.run("config", "inject.exclude_privacy", "internal")
    assert search_ids(labelled, ASKED)[0] == ["dec-open", "dec-own", "dec-secret"]
    assert "Oslo" not in str(inject(labelled.context(), prompt=ASKED).text)
    settings = labelled.context().settings
    trusted = settings.replace(values={"inject.exclude_privacy": ("personal",)})
    labels = settings.with_strictest([trusted]).texts("inject.exclude_privacy")
    assert sorted(labels) == ["internal", "personal"]
    silent = settings.replace(values={})
    assert sorted(settings.with_strictest([silent]).texts("inject.exclude_privacy")) == [
        "confidential",
        "internal",
        "personal",
        "private",
    ]


def test_a_digest_never_quotes_what_is_private(labelled: Sandbox) -> None:
    """It is left out of the page; labelled later, it makes the digest stale until it is rebuilt."""
    (page,) = labelled.json("digest", "decision")["digests"]
    assert page["told"] == 2
    text = (labelled.path / page["path"]).read_text()
    assert "Ada" not in text
    labelled.memory("dec-open", "Payroll exports run at night.\n", privacy=("personal",))
    ids, notes = search_ids(labelled, "payroll")
    assert ids == ["dec-inner"]
    assert "1 digest is left out" in notes
    assert "at night" not in str(inject(labelled.context(), prompt=ASKED).text)
    assert labelled.json("digest", "decision")["digests"][0]["told"] == 1


def test_a_digest_follows_what_is_forgotten_or_superseded(labelled: Sandbox) -> None:
    """The verb rebuilds it in a commit of its own; a stale digest is left out."""
    labelled.json("digest", "decision", "--commit")
    dry = labelled.run("forget", "dec-open", "--reason", "wrong", "--dry-run")
    assert "the digest of decision would be rebuilt" in dry.stderr
    done = labelled.run("forget", "dec-open", "--reason", "wrong", "--commit")
    assert "the digest of decision quoted it, and is now sem-" in done.stderr
    assert labelled.git("status", "--porcelain") == ""
    heads = labelled.json("list", "tag:digest")["memories"]
    assert len(heads) == 1
    assert "at night" not in (labelled.path / heads[0]["path"]).read_text()
    done = labelled.run(
        "supersede",
        "dec-inner",
        "Exports in Rome",
        "--body",
        "Payroll exports run in Rome alone.",
        "--commit",
    )
    assert "is now sem-" in done.stderr
    (head,) = labelled.json("list", "tag:digest")["memories"]
    text = (labelled.path / head["path"]).read_text()
    assert ("Rome" in text, "Oslo" in text) == (True, False)
    assert "is now sem-" in labelled.run("undo", "dec-inner", "--commit").stderr
    (head,) = labelled.json("list", "tag:digest")["memories"]
    text = (labelled.path / head["path"]).read_text()
    assert ("Rome" in text, "Oslo" in text) == (False, True)


def test_a_digest_that_nobody_rebuilt_is_not_read(labelled: Sandbox) -> None:
    """A pull may end a memory; a digest that quotes it is skipped meanwhile."""
    labelled.json("digest", "decision", "--commit")
    labelled.memory("dec-new", "Payroll exports run in Rome.\n", supersedes=("dec-open",))
    ids, notes = search_ids(labelled, "payroll")
    assert ids == ["dec-inner", "dec-new"]
    assert "1 digest is left out: what they quote" in notes
    assert search_ids(labelled, "payroll", "is:superseded")[0] == ["dec-open"]
    assert search_ids(labelled, "tag:digest")[0] == []


DOORS: dict[str, tuple[str, ...]] = {
    "inject": ("inject", "--prompt", ASKED),
    "AGENTS.md": ("inject", "--into", "AGENTS.md"),
    "search": ("search", ASKED),
    "list": ("list",),
    "digest": ("digest", "decision", "--dry-run"),
    "site": ("site", "made"),
}


@pytest.mark.parametrize("label", PRIVATE_LABELS)
@pytest.mark.parametrize("door", DOORS)
def test_every_door_keeps_the_same_labels_back(sandbox: Sandbox, door: str, label: str) -> None:
    """A private memory passes no interface, and a public one passes each."""
    for name, body, labels in (
        ("open", "Payroll exports run at night.", ()),
        ("second", "Payroll exports run after the backup of the ledger.", ()),
        ("hidden", "Payroll exports run for Zanzibar.", (label.title(),)),
    ):
        sandbox.memory(f"dec-{name}", f"{body}\n", title=body.rstrip("."), privacy=labels)
    sandbox.commit()
    done = sandbox.run(*DOORS[door])
    assert done.returncode == 0, done.stderr
    made = [path for path in sandbox.path.rglob("*") if path.is_file() and path.name != "config"]
    outside = [path for path in made if not {".git", ".memory"} & set(path.parts)]
    text = done.stdout + "".join(path.read_text(errors="replace") for path in outside)
    assert "anzibar" not in text
    assert "at night" in text
