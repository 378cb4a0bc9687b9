"""Tests of `memtool alias`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from conftest import PIPED

from memtool.commands.alias import alias, render
from memtool.commands.search import search
from memtool.errors import MemtoolError
from memtool.search.expansion import DEFAULTS

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import Sandbox


def stored(sandbox: Sandbox) -> Path:
    return sandbox.path / ".memory/aliases.toml"


def test_an_added_alias_is_found_by(sandbox: Sandbox) -> None:
    """It is in the file, in the list, and in the next search."""
    sandbox.memory("dec-a", "Keycloak is ours.\n")
    ws = sandbox.context()
    assert search(ws, "idp").total == 0
    done = alias(ws, "add", "IdP", "identity  provider", "Keycloak")
    assert done.changed
    assert stored(sandbox).read_text() == 'idp = ["identity provider", "keycloak"]\n'
    assert search(ws, "idp").total == 1
    (row,) = alias(ws, "list", "idp").aliases
    assert (row.expansions, row.is_default) == (("identity provider", "keycloak"), False)


def test_adding_again_adds_to_what_is_there(sandbox: Sandbox) -> None:
    """A known word gets more expansions, a default word keeps its own; a repeat changes nothing."""
    ws = sandbox.context()
    alias(ws, "add", "db", "store")
    assert alias(ws, "list", "db").aliases[0].expansions == (*DEFAULTS["db"], "store")
    assert not alias(ws, "add", "DB", "Store").changed


def test_comments_and_spelling_of_the_file_stay(sandbox: Sandbox) -> None:
    """A person's file is edited, not rewritten."""
    text = '# ours\nIdP = ["sso"] # single sign-on\n\nzz = ["top"]\n'
    sandbox.write(".memory/aliases.toml", text)
    alias(sandbox.context(), "add", "idp", "keycloak")
    expected = text.replace('["sso"]', '["sso", "keycloak"]')
    assert stored(sandbox).read_text() == expected


def test_removing_takes_the_row_or_switches_a_default_off(sandbox: Sandbox) -> None:
    """Afterwards the word has no alias, whoever defined it."""
    ws = sandbox.context()
    alias(ws, "add", "idp", "sso")
    alias(ws, "remove", "idp")
    assert stored(sandbox).read_text() == ""
    alias(ws, "remove", "db")
    assert stored(sandbox).read_text() == "db = []\n"
    words = [row.word for row in alias(ws).aliases]
    assert "db" not in words
    assert words == sorted(set(DEFAULTS) - {"db"})
    with pytest.raises(MemtoolError, match="no alias"):
        alias(ws, "remove", "db")


def test_a_dry_run_writes_nothing(sandbox: Sandbox) -> None:
    """The result is shown, the disk is left alone."""
    shown = alias(sandbox.context(), "add", "idp", "sso", dry_run=True)
    assert not stored(sandbox).exists()
    layout = sandbox.layout()
    assert render(shown, layout) == "idp  sso"
    assert layout.reports == ["Would change .memory/aliases.toml"]


def test_a_commit_holds_just_the_file(sandbox: Sandbox) -> None:
    """--commit records the aliases and leaves other changes alone."""
    sandbox.memory("dec-a")
    done = alias(sandbox.context(), "add", "idp", "sso", commit=True)
    assert done.commit == sandbox.git("rev-parse", "HEAD").strip()
    names = sandbox.git("show", "--name-only", "--format=%s", "HEAD").split("\n")
    assert names[:3] == ["memory: add alias idp", "", ".memory/aliases.toml"]


BAD = [
    ("add", "", ()),
    ("add", "idp", ()),
    ("add", "!!", ("x",)),
    ("add", "idp", ("!!",)),
    ("add", "idp", ("x" * 200,)),
    ("remove", "", ()),
    ("remove", "nope", ()),
    ("remove", "db", ("x",)),
    ("list", "db", ("x",)),
]


@pytest.mark.parametrize(("action", "word", "expansions"), BAD)
def test_what_makes_no_sense_is_refused(
    sandbox: Sandbox, action: str, word: str, expansions: tuple[str, ...]
) -> None:
    """Nothing is written for a call that cannot be meant."""
    with pytest.raises(MemtoolError):
        alias(sandbox.context(), action, word, *expansions)  # type: ignore[arg-type]
    assert not stored(sandbox).exists()


@pytest.mark.parametrize("text", ["db = 1\n", "db = [\n", "[db]\nx = 1\n"])
def test_a_broken_file_is_left_as_it_is(sandbox: Sandbox, text: str) -> None:
    """Neither a search nor an edit guesses what a broken file means."""
    sandbox.write(".memory/aliases.toml", text)
    ws = sandbox.context()
    for call in (lambda: alias(ws, "add", "idp", "sso"), lambda: alias(ws)):
        with pytest.raises(MemtoolError, match=r"aliases\.toml"):
            call()
    assert stored(sandbox).read_text() == text


def test_a_link_in_the_place_of_the_file_is_not_written_through(sandbox: Sandbox) -> None:
    """No write leaves the memory directory."""
    outside = sandbox.write("outside.toml", "")
    stored(sandbox).symlink_to(outside)
    with pytest.raises(MemtoolError):
        alias(sandbox.context(), "add", "idp", "sso")
    assert outside.read_text() == ""


def test_the_list_says_what_is_built_in(sandbox: Sandbox) -> None:
    """Own words come first; the built-in ones are counted, and listed with --all."""
    alias(sandbox.context(), "add", "idp", "sso")
    listed = alias(sandbox.context())
    count = sum(row.is_default for row in listed.aliases)
    assert render(listed, PIPED).splitlines() == [
        "idp  sso",
        f"and {count} built-in words (memtool alias list --all)",
    ]
    whole = render(alias(sandbox.context(), all=True), PIPED).splitlines()
    assert len(whole) == len(listed.aliases)
    assert sandbox.json("alias", "list", "k8s")["aliases"] == [
        {"word": "k8s", "expansions": ["kubernetes"], "is_default": True}
    ]
