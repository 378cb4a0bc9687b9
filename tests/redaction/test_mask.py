"""Masking: a secret that is in a file is printed by nothing that shows memories."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from conftest import make_memory

import memtool.redaction
from memtool import tables
from memtool.index import index
from memtool.memory import document
from memtool.redaction.find import NOTHING, compute_fingerprint, find
from memtool.redaction.mask import mask_memory

if TYPE_CHECKING:
    from conftest import Sandbox

KEY = "ghp_" + "n2MKju3qOFhTpV4LycRU" + "SSrpMX83mlxsLkJA"
OTHER = "ghp_" + "Zq81LmWk3vYxTbN5cDfG" + "7hJr2sPuVaEi94oX"
ID = "dec-bucket"
MARK = "[REDACTED:github-token]"


@pytest.fixture
def leaky(sandbox: Sandbox) -> Sandbox:
    """A memory with secrets in its title, tags, source and body, committed past the gate."""
    sandbox.memory(
        ID,
        f"Deploys use a bucket.\n\n## Access\n\nThe token is {KEY} for now.\n",
        title=f"Deploys use {KEY} in the bucket",
        tags=(f"deploys-{OTHER}",),
        status="pinned",
        source=(f"url:https://example.org/{OTHER}",),
    )
    sandbox.memory("dec-plain", "Deploys happen on Tuesdays.\n", title="Deploys on Tuesdays")
    sandbox.commit()
    return sandbox


VERBS = (
    ("search", "deploys", "bucket"),
    ("search", "deploys", "--at", "HEAD"),
    ("show", ID),
    ("show", ID, "--at", "HEAD"),
    ("list",),
    ("list", "tag:deploys*"),
    ("why", ID),
    ("blame", ID),
    ("log",),
    ("log", ID),
    ("diff", "HEAD~1..HEAD"),
    ("status",),
    ("export",),
    ("stats",),
    ("conflicts",),
    ("curate",),
    ("check",),
    ("review", "HEAD~1..HEAD"),
    ("maintain", "--nightly"),
    ("inject", "--prompt", "how do deploys use the bucket?"),
    ("inject", "--primer"),
    ("remember", "Deploys use a bucket.", "--dry-run"),
    ("forget", ID, "--reason", "x", "--dry-run"),
)


@pytest.mark.parametrize("verb", VERBS, ids=" ".join)
@pytest.mark.parametrize("cache", ["", "1"])
def test_no_verb_prints_a_secret(leaky: Sandbox, verb: tuple[str, ...], cache: str) -> None:
    """However it got into the file, with an index and without one, in text and in --json."""
    for options in ((), ("--json",)):
        done = leaky.run(*verb, *options, MEMTOOL_NO_CACHE=cache)
        for secret in (KEY, OTHER):
            assert secret not in done.stdout + done.stderr


def test_a_hook_and_the_tools_give_the_mark(leaky: Sandbox) -> None:
    """An agent reads the mark in place of the secret."""
    event = json.dumps(
        {"cwd": str(leaky.path), "session_id": "s", "prompt": "how do deploys use the bucket?"}
    )
    output = leaky.run("hook", "claude", "user-prompt-submit", "--input", event).stdout
    assert MARK in output
    assert KEY not in output
    shown = leaky.json("show", ID)
    assert shown["title"] == f"Deploys use {MARK} in the bucket"
    assert shown["tags"] == [f"deploys-{MARK}"]
    assert shown["source"] == [f"url:https://example.org/{MARK}"]
    assert f"The token is {MARK} for now." in shown["body"]


def test_nothing_derived_holds_it(leaky: Sandbox) -> None:
    """Neither the index nor any other file of the cache; it is found by no word of the secret."""
    leaky.run("search", "deploys")
    leaky.run("inject", "--prompt", "how do deploys use the bucket?")
    for path in (leaky.path / ".git" / "memtool").rglob("*"):
        if path.is_file():
            data = path.read_bytes().lower()
            assert KEY.lower().encode() not in data
            assert OTHER.lower().encode() not in data
    assert leaky.json("search", KEY)["total"] == 0


def test_the_user_is_told_which_file_holds_it(leaky: Sandbox) -> None:
    """Once, with the command that takes it out; afterwards nothing is masked."""
    note = (
        "1 memory holds a secret or personal data, which is masked here; "
        f"memtool redact .memory/decision/2026-02/{ID}.md takes it out of the file"
    )
    assert leaky.run("list").stderr.count(note) == 1
    assert index.open(leaky.context()).withheld() == {
        f".memory/decision/2026-02/{ID}.md": ("github-token",)
    }
    assert index.open(leaky.context())[ID].memory.withheld == ("github-token",)  # type: ignore[attr-defined]
    assert leaky.run("redact", f".memory/decision/2026-02/{ID}.md").returncode in (0, 1)
    assert note not in leaky.run("list").stderr
    assert index.open(leaky.context()).withheld() == {}


def test_the_gate_still_sees_the_bytes(leaky: Sandbox) -> None:
    """Text that is masked for reading is still in the file, and refused by the check."""
    codes = {problem["code"] for problem in leaky.json("check")["problems"]}
    assert "secret" in codes
    assert KEY in (leaky.path / f".memory/decision/2026-02/{ID}.md").read_text()
    leaky.run("unpin", ID)
    assert KEY in (leaky.path / f".memory/decision/2026-02/{ID}.md").read_text()


def test_a_change_is_masked_before_it_is_indexed(leaky: Sandbox) -> None:
    """A file that changed since the index was built is searched as it is read."""
    leaky.run("list")
    leaky.memory("dec-new", f"A new token: {OTHER}.\n", title="New token")
    shown = leaky.json("show", "dec-new")
    assert OTHER not in json.dumps(shown)
    assert [*index.open(leaky.context()).withheld()] == [
        f".memory/decision/2026-02/{name}.md" for name in (ID, "dec-new")
    ]


def test_what_the_settings_allow_is_shown_at_once(leaky: Sandbox) -> None:
    """The allowlist is part of what an index depends on."""
    assert MARK in leaky.run("show", ID).stdout
    allowed = "\n".join(f'{compute_fingerprint(secret)} = "a test"' for secret in (KEY, OTHER))
    leaky.write(".memory/config.toml", f"[redaction.allow]\n{allowed}\n")
    assert KEY in leaky.run("show", ID).stdout
    leaky.write(".memory/config.toml", "")
    assert KEY not in leaky.run("show", ID).stdout


@pytest.mark.parametrize(
    "quoted", [KEY, KEY.replace("g", "\\x67", 1), KEY.replace("h", "\\u0068", 1)]
)
def test_an_escaped_secret_is_masked(quoted: str) -> None:
    """Escapes of YAML are decoded before the search."""
    memory = make_memory(ID, "Text.\n", title="TITLE")
    text = document.write(memory).decode().replace("title: TITLE", f'title: "It is {quoted}"')
    read = document.read(text.encode(), f"{ID}.md")
    assert read.title == f"It is {KEY}"
    masked = mask_memory(read, text, NOTHING)
    assert masked.title == f"It is {MARK}"
    assert "github-token" in masked.withheld
    assert masked.id == ID


def test_a_memory_without_a_secret_is_the_same_value() -> None:
    """Nothing is copied, and a comment that allows a kind is heeded."""
    memory = make_memory(ID, "Write to jo@corp.example. <!-- memtool: allow email -->\n")
    text = document.write(memory).decode()
    assert mask_memory(memory, text, NOTHING) is memory
    bare = make_memory(ID, "Write to jo@corp-mail.org.\n")
    assert mask_memory(bare, document.write(bare).decode(), NOTHING).body == (
        "Write to [REDACTED:email].\n"
    )


def test_no_masked_text_holds_what_is_found() -> None:
    """A second look at what is shown finds nothing."""
    memory = make_memory(
        ID, f"password: Tr0ub4dor&3x\n\n{KEY} and jo@corp-mail.org, {KEY}.\n", title=f"{OTHER} here"
    )
    masked = mask_memory(memory, document.write(memory).decode(), NOTHING)
    assert find(document.write(masked).decode()) == ()


def test_the_version_follows_the_code(monkeypatch: pytest.MonkeyPatch) -> None:
    """An index that other detectors have searched is not used."""
    before = memtool.redaction.compute_version()
    code = tables.read_code("redaction")
    assert any("MAX_ROUNDS = 6" in text for text in code)
    changed = [text.replace("MAX_ROUNDS = 6", "MAX_ROUNDS = 7") for text in code]
    monkeypatch.setattr(tables, "read_code", lambda _room: changed)
    assert memtool.redaction.compute_version() != before


@pytest.mark.parametrize("name", tables.list_names("redaction"))
def test_the_version_follows_the_tables(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who adds a row changes no code, and what was searched without it is searched again."""
    before = memtool.redaction.compute_version()
    read = tables.read
    extra = {f"redaction/{name}": "one more row\n"}
    monkeypatch.setattr(tables, "read", lambda path: read(path) + extra.get(path, ""))
    assert memtool.redaction.compute_version() != before
