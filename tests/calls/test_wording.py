"""Refusals for programs: they never name an option of the command line."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest

from memtool.calls.procedures import AGENT, HTTP, build_procedures
from memtool.calls.run import ServedRepository, call
from memtool.web import rest

if TYPE_CHECKING:
    from conftest import Sandbox

TOOLS = build_procedures(AGENT)
ROUTES = build_procedures(HTTP)
SHELL = re.compile(r"\b(?:git|memtool) [a-z-](?:\"[^\"]*\"|[^,;\"])*")
"""A command that a hint names, to be run in a shell."""
ROUTED = re.compile(rf"\bmemtool ({'|'.join(route.choice.verb for route in ROUTES.values())})\b")
COMMAND = re.compile(
    r"(?<!the user can run )(?<!user to run: )(?<!the user's \")"
    r"\b(?:memtool (?!help)|git (?!repository))[a-z-]+"
)
"""A command that a hint does not leave to the user."""
NEW = {"type": "decision", "title": "Use Postgres", "body": "For all."}

REFUSED: list[tuple[str, dict[str, Any]]] = [
    ("search", {"query": "since:soon"}),
    ("search", {"query": "parent:dec-a", "depth": 0}),
    ("search", {"query": "x", "limit": -1}),
    ("search", {"query": "x", "at": "nope"}),
    ("search", {"query": "x" * 5_000}),
    ("search", {"query": "dec-a", "depth": 2}),
    ("search", {"query": "x", "at": "HEAD", "as_of": "never"}),
    ("show", {"id": "dec-none"}),
    ("show", {"id": "dec"}),
    ("why", {"id": "dec-none"}),
    ("list", {"filters": "words of a query"}),
    ("list", {"filters": "is:nothing"}),
    ("inject", {}),
    ("inject", {"prompt": "x", "budget": -5}),
    ("inject", {"prompt": "x", "primer": True}),
    ("inject", {"files": ["/etc/passwd"]}),
    ("log", {"injected": True, "audit": True}),
    ("log", {"since": "2026-01-01"}),
    ("log", {"audit": True, "at": "HEAD"}),
    ("log", {"injected": True, "at": "HEAD"}),
    ("diff", {"range": "nope"}),
    ("review", {"range": "nope"}),
    ("review", {"range": "HEAD"}),
    ("check", {"staged": True, "history": True}),
    ("check", {"range": "x"}),
    ("drift", {"worktree": True, "at": "HEAD"}),
    ("drift", {"since": "never"}),
    ("verify", {"ids": ["dec-none"]}),
    ("blame", {"id": "dec-new"}),
    ("new", {**NEW, "section": ["x"]}),
    ("new", {**NEW, "set": ["domain"]}),
    ("new", {**NEW, "set": ["status=pinned"]}),
    ("new", {**NEW, "source": ["x"]}),
    ("new", {**NEW, "category": "none"}),
    ("new", {**NEW, "importance": 7.0}),
    ("new", {**NEW, "supersedes": ["dec-none"]}),
    ("new", {**NEW, "body": "-"}),
    ("new", {"type": "decision", "title": "T"}),
    ("new", {**NEW, "section": ["A=x", "A=y"]}),
    ("new", {**NEW, "set": ["scope=global"]}),
    ("new", {**NEW, "valid_through": "soon"}),
    ("remember", {"text": "x" * 300_000}),
    ("remember", {"text": "It is so."}),
    ("supersede", {"old": "dec-none", "title": "T"}),
    ("supersede", {"old": "dec-a", "title": ""}),
    ("resolve", {"ids": ["dec-a"], "reason": "x"}),
    ("resolve", {"ids": ["dec-a"], "reason": ""}),
    ("resolve", {"ids": ["dec-a", "dec-b"], "reason": "x", "keep": "best"}),
    ("resolve", {"ids": ["dec-a", "dec-b"], "reason": "x", "body": "y", "keep": "newer"}),
    ("resolve", {"ids": ["dec-a"], "reason": "x", "keep": "newer", "merge": "T"}),
    ("resolve", {"ids": ["dec-a"], "reason": "x", "all": True, "keep": "newer"}),
    ("confirm", {"id": "dec-a"}),
    ("confirm", {"id": "dec-none"}),
    ("unpin", {"id": "dec-a"}),
    ("restore", {"id": "dec-none"}),
    ("undo", {"id": "dec-new"}),
    ("undo", {"id": "dec-none"}),
    ("forget", {"id": "dec-a", "reason": "two\nlines"}),
    ("forget", {"id": "x:y", "reason": "z"}),
    ("forget", {"id": "type:decision", "reason": "z"}),
    ("pin", {"id": "dec-none"}),
    ("archive", {"id": "dec-none"}),
    ("deprecate", {"id": "dec-none"}),
    ("session-add", {"id": "ses-none", "text": "x"}),
    ("session-end", {"id": "none"}),
    ("session-show", {"id": "ses-2026-01-01-none"}),
    ("session-delete", {}),
    ("session-delete", {"id": ["x"], "older_than": "2d"}),
    ("session-prune", {}),
    ("session-diff", {"a": "x", "b": "y"}),
    ("session-fork", {"id": "x"}),
    ("capture", {"transcript": "x", "host": "codex"}),
    ("capture", {"transcript": ""}),
    ("promote", {"session": "none"}),
    ("promote", {"finding": ["none"]}),
    ("promote", {"dismiss": ["x"]}),
    ("promote", {"list": True, "dismiss": ["x"], "reason": "y"}),
    ("curate", {}),
    ("curate", {"session": "none"}),
    ("curate", {"apply": True, "drop": True}),
    ("digest", {"category": "none"}),
    ("digest", {}),
    ("digest", {"category": "note"}),
    ("maintain", {"only": "none"}),
    ("maintain", {"only": "decay", "nightly": True}),
    ("maintain", {"branch": "main", "apply": True}),
    ("maintain", {"due": True, "nightly": True}),
    ("auto", {"switch": "maybe"}),
    ("doctor", {"host": "none"}),
    ("export", {"filters": "x y"}),
]


ANSWERED: list[tuple[str, dict[str, Any]]] = [
    ("search", {"query": "x", "limit": 1}),
    ("show", {"id": "dec-a"}),
    ("list", {"limit": 1}),
    ("list", {"filters": "tag:none"}),
    ("inject", {"primer": True}),
    ("inject", {"prompt": "what is so?"}),
    ("why", {"id": "dec-a"}),
    ("log", {"limit": 1}),
    ("log", {"injected": True, "limit": 1}),
    ("blame", {"id": "dec-a"}),
    ("diff", {}),
    ("conflicts", {}),
    ("check", {}),
    ("status", {}),
    ("new", NEW | {"supersedes": ["dec-b"]}),
    ("remember", {"text": "Deploys of all services are on Tuesdays."}),
    ("supersede", {"old": "dec-a", "title": "Use MySQL", "body": "It is there."}),
    ("pin", {"id": "dec-a"}),
    ("unpin", {"id": "dec-a"}),
    ("forget", {"id": "dec-a", "reason": "x"}),
    ("restore", {"id": "dec-a"}),
    ("undo", {"id": "dec-a", "dry_run": True}),
    ("resolve", {"ids": ["dec-b", "dec-new"], "keep": "newer", "reason": "x"}),
]


@pytest.fixture
def place(sandbox: Sandbox) -> ServedRepository:
    """A repository with a lineage, a conflict, and what is in no commit."""
    sandbox.memory("dec-a")
    sandbox.memory("dec-b")
    sandbox.commit()
    sandbox.memory("dec-new", "It is new.\n")
    return ServedRepository(str(sandbox.path), sandbox.env, is_structured=True)


def options_in(text: str) -> list[str]:
    """Return the options of a command line that a text names outside of commands for a shell."""
    return re.findall(r"(?<![\w'\"=`-])--[a-z][a-z-]*", SHELL.sub("", text))


def test_no_refusal_names_an_option(place: ServedRepository):
    """Each refusal that can be reached, over HTTP and to an agent."""
    refused, wrong = 0, []
    for name, values in REFUSED:
        answer = rest.ask(ROUTES[name], values, place)
        error = answer.body.get("error")
        if error is not None:
            refused += 1
            text = f"{error['message']} / {error['hint']}"
            assert answer.status < 500, f"{name} {values}: {text}"
            if options_in(text) or ROUTED.search(error["hint"]):
                wrong.append(f"{name} {values}: {text}")
        if name in TOOLS:
            text = call(TOOLS[name], values, place.replace(tools=TOOLS)).text
            if options_in(text) or COMMAND.search(text):
                wrong.append(f"{name} {values}: {text}")
    assert not wrong, "\n".join(wrong)
    assert refused > len(REFUSED) * 0.8


def test_no_answer_names_a_command(place: ServedRepository, sandbox: Sandbox):
    """Neither the text of a tool nor its notes; texts of memories are not touched."""
    sandbox.memory("dec-c", "Run `memtool check` first.\n", status="pinned", supersedes=("dec-b",))
    sandbox.memory("dec-d", "Run `git gc` first.\n", status="candidate", supersedes=("dec-b",))
    sandbox.commit()
    wrong = []
    for name, values in ANSWERED:
        answer = call(TOOLS[name], values, place.replace(tools=TOOLS))
        text = "\n".join([answer.text, *answer.notes])
        own = re.sub(r"Run `.*` first\.", "", text)
        if COMMAND.search(own) or options_in(own):
            wrong.append(f"{name} {values}: {text}")
    assert not wrong, "\n".join(wrong)
    block = call(TOOLS["inject"], {"primer": True}, place.replace(tools=TOOLS)).text
    assert "| Run `memtool check` first." in block
    assert "`search` WORDS" in block
