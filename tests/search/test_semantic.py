"""Semantic search: what is found by meaning, which model is taken, what is kept and loaded."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("model2vec", reason="the extra semantic brings model2vec")

import numpy as np
from model2vec import StaticModel
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

from memtool import installation
from memtool.calls.run import ServedRepository, call
from memtool.mcp.server import list_tools
from memtool.search import semantic
from memtool.store import facts
from memtool.store.state import close_shared

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import Sandbox

WORDS = {
    "invoice": (0.0, 0.1, 0.9),
    "bill": (0.0, 0.0, 1.0),
    "customer": (0.3, 0.0, 0.7),
    "redis": (0.0, 1.0, 0.0),
    "cache": (0.0, 0.9, 0.2),
    "login": (1.0, 0.0, 0.0),
}
"""What a made model takes words to mean: the third number is about money."""


def make_model(folder: Path, words: dict[str, tuple[float, ...]]) -> Path:
    """Save a model of static embeddings that knows a few words."""
    vocabulary = {"[UNK]": 0} | {word: number for number, word in enumerate(words, 1)}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    none = [0.0] * len(next(iter(words.values())))
    vectors = np.array([none, *words.values()], dtype=np.float32)
    StaticModel(vectors, tokenizer).save_pretrained(folder)
    return folder


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return make_model(tmp_path / "model", WORDS)


@pytest.fixture
def shop(sandbox: Sandbox, model: Path) -> Sandbox:
    """Three memories, and a user with a model in their own settings."""
    choose(sandbox, str(model))
    sandbox.memory("dec-invoice", "One invoice a month.\n", title="Invoice")
    sandbox.memory("dec-redis", "Redis is the cache.\n", title="Redis")
    sandbox.memory("dec-login", "The login form is blue.\n", title="Login")
    return sandbox


def choose(sandbox: Sandbox, name: str) -> None:
    done = sandbox.run("--global", "config", "search.semantic", name)
    assert done.returncode == 0, done.stderr


def ask(sandbox: Sandbox, *words: str, **env: str) -> list[str]:
    """Return the ids that a semantic search finds."""
    answer = sandbox.json("search", "--semantic", *words, **env)
    return [row["id"] for row in answer["results"]]


def read_vectors(sandbox: Sandbox) -> list[dict[bytes, bytes]]:
    """Return the vectors that are kept of each model, by blob."""
    cache_dir = str(sandbox.path / ".git/memtool")
    stored = facts.read(cache_dir, lambda rows: list(rows.find("kept", "kind = ?", semantic.KIND)))
    return [parted(row[3]) for row in stored or [] if isinstance(row[3], bytes)]


def parted(data: bytes) -> dict[bytes, bytes]:
    names, _line, rows = data.partition(b"\n")
    blobs = names.split()
    width = len(rows) // len(blobs)
    return {blob: rows[n * width : (n + 1) * width] for n, blob in enumerate(blobs)}


def test_what_shares_no_word_is_found_by_its_meaning(shop: Sandbox) -> None:
    """The model says that a bill is an invoice; words alone find nothing."""
    assert shop.json("search", "bill")["results"] == []
    (hit,) = shop.json("search", "--semantic", "bill")["results"]
    assert hit["id"] == "dec-invoice"
    assert hit["cosine"] > 0.9


def test_only_a_semantic_search_tells_a_cosine(shop: Sandbox) -> None:
    """Without the option the answer has the shape that it always had."""
    (hit,) = shop.json("search", "invoice")["results"]
    assert "cosine" not in hit
    assert "similarity of meaning" not in shop.run("search", "--explain", "invoice").stdout
    assert (
        "similarity of meaning 0.99" in shop.run("search", "--explain", "--semantic", "bill").stdout
    )


def test_meaning_is_added_to_the_score_of_the_words(shop: Sandbox) -> None:
    """Of two memories with the same words, the one nearer in meaning comes first."""
    shop.memory("dec-a", "The gateway is about login.\n", title="Gateway")
    shop.memory("dec-b", "The gateway is about customer.\n", title="Gateway")
    words = ("gateway", "bill")
    by_words = [row["id"] for row in shop.json("search", *words)["results"]]
    assert by_words == ["dec-a", "dec-b"]
    assert ask(shop, *words) == ["dec-b", "dec-a", "dec-invoice"]


def test_what_means_something_else_is_not_found(shop: Sandbox) -> None:
    """A question with unknown words, or near to no memory, finds nothing."""
    assert ask(shop, "xylophone") == []
    assert ask(shop, "-invoice", "zebra") == []
    assert ask(shop, "login") == ["dec-login"]


def test_filters_and_states_hold_for_what_is_near(shop: Sandbox) -> None:
    """Nearness opens no door: what a filter or its state leaves out is not found by meaning."""
    shop.memory("sem-fee", "A customer gets an invoice.\n", type="semantic", title="Fee")
    shop.memory("dec-gone", "Bill by invoice.\n", title="Invoice", status="archived")
    assert set(ask(shop, "bill")) == {"dec-invoice", "sem-fee"}
    assert ask(shop, "bill", "type:semantic") == ["sem-fee"]
    assert ask(shop, "bill", "-month", "type:decision") == []
    assert ask(shop, "bill", "is:archived") == ["dec-gone"]


def test_a_superseded_memory_is_near_for_its_successor(shop: Sandbox) -> None:
    """The meaning of what was replaced leads to what replaced it, as its words do."""
    shop.memory("dec-new", "Monthly statements.\n", title="Statements", supersedes=("dec-invoice",))
    assert ask(shop, "bill") == ["dec-new"]


def test_vectors_are_kept_and_only_those_of_new_memories_are_made(shop: Sandbox) -> None:
    """A second search reads what the first one wrote; a new memory adds its own row."""
    ask(shop, "bill")
    (first,) = read_vectors(shop)
    assert len(first) == 3
    ask(shop, "login")
    assert read_vectors(shop) == [first]
    shop.memory("dec-fee", "The customer pays.\n", title="Fee")
    (shop.path / ".memory/decision/2026-02/dec-redis.md").unlink()
    assert ask(shop, "bill") == ["dec-invoice", "dec-fee"]
    (second,) = read_vectors(shop)
    assert len(second) == 3
    assert len(first.keys() & second.keys()) == 2
    assert all(second[blob] == first[blob] for blob in first.keys() & second.keys())


def test_another_model_makes_all_vectors_again(shop: Sandbox, model: Path) -> None:
    """What one model said about a blob is nothing to another, also in the same folder."""
    assert ask(shop, "bill") == ["dec-invoice"]
    (first,) = read_vectors(shop)
    shutil.rmtree(model)
    make_model(model, WORDS | {"bill": WORDS["login"], "invoice": WORDS["redis"]})
    assert ask(shop, "bill") == ["dec-login"]
    both = read_vectors(shop)
    assert first in both
    assert [vectors.keys() for vectors in both] == [first.keys()] * 2
    assert both[0] != both[1]


def test_damaged_vectors_are_made_again(shop: Sandbox) -> None:
    """Those that are altered cost time, not the answer."""
    expected = shop.json("search", "--semantic", "bill")["results"]
    (whole,) = read_vectors(shop)
    close_shared()
    (path,) = shop.path.glob(".git/memtool/state/*.db")
    data, vector = path.read_bytes(), next(iter(whole.values()))
    path.write_bytes(data.replace(vector, bytes(len(vector))))
    assert shop.json("search", "--semantic", "bill")["results"] == expected
    assert read_vectors(shop) == [whole]


def test_without_a_cache_the_answer_is_the_same(shop: Sandbox) -> None:
    """Nothing is written if caching is off."""
    results = shop.json("search", "--semantic", "bill", MEMTOOL_NO_CACHE="1")["results"]
    assert read_vectors(shop) == []
    assert results == shop.json("search", "--semantic", "bill")["results"]


def test_a_revision_is_searched_without_touching_what_is_kept(shop: Sandbox) -> None:
    """The vectors of the worktree stay after a search of another revision."""
    shop.commit()
    shop.memory("dec-fee", "The customer pays.\n", title="Fee")
    assert ask(shop, "bill") == ["dec-invoice", "dec-fee"]
    before = read_vectors(shop)
    shop.memory("dec-due", "The customer owes.\n", title="Due")
    assert ask(shop, "bill", "--at", "HEAD") == ["dec-invoice"]
    assert read_vectors(shop) == before


def test_how_memories_are_spread_over_the_index_changes_no_score(shop: Sandbox) -> None:
    """A memory outside the base segment scores as it does inside."""
    ask(shop, "bill")
    for number in range(40):
        shop.memory(f"dec-{number:02}", f"The customer {number} has an invoice.\n")
    results = shop.json("search", "--semantic", "bill", "--limit", "50")["results"]
    shutil.rmtree(shop.path / ".git/memtool")
    assert shop.json("search", "--semantic", "bill", "--limit", "50")["results"] == results


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("/nowhere/at/all", "cannot read a model from /nowhere/at/all"),
        ("~/nothing", "cannot read a model from "),
        ("acme/absent", "the model 'acme/absent' is not on this disk"),
        ("../no name", "the model '../no name' is not on this disk"),
    ],
)
def test_a_model_that_is_not_there_is_one_sentence(
    shop: Sandbox, name: str, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is searched with less than what was asked for, and no network is asked instead."""
    choose(shop, name)
    refuse_network(monkeypatch)
    done = shop.run("search", "--semantic", "invoice")
    assert (done.returncode, done.stdout) == (2, "")
    message, *hints = done.stderr.splitlines()
    assert expected in message
    assert hints
    assert all(hint.startswith("hint: ") for hint in hints)


def refuse_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_args: Any) -> None:
        raise AssertionError("the network was asked")

    monkeypatch.setattr(socket, "getaddrinfo", refused)
    monkeypatch.setattr(socket.socket, "connect", refused)


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("tokenizer.json", "{}"),
        ("tokenizer.json", '{"model": {'),
        ("tokenizer.json", '{"model": {"type": "WordLevel", "vocab": {"a": 0}, "unk_token": "a"}}'),
        ("model.safetensors", "{}"),
        ("config.json", "["),
    ],
)
def test_a_damaged_model_is_one_sentence(shop: Sandbox, model: Path, file: str, text: str) -> None:
    """A folder that holds no whole model is refused by its name."""
    (model / file).write_text(text)
    done = shop.run("search", "--semantic", "bill")
    assert (done.returncode, done.stdout) == (2, "")
    assert str(model) in done.stderr.splitlines()[0]
    assert done.stderr.splitlines()[1].startswith("hint: ")


def test_without_a_model_the_option_says_how_to_set_one(sandbox: Sandbox) -> None:
    """The option without the setting is a usage error, not a search by words."""
    done = sandbox.run("search", "--semantic", "bill")
    assert done.returncode == 2
    assert "memtool --global config search.semantic" in done.stderr


def test_without_the_package_the_option_says_how_to_get_it(
    shop: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One sentence with the command of pip."""
    monkeypatch.setitem(sys.modules, "model2vec", None)
    done = shop.run("search", "--semantic", "bill")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.splitlines() == [
        "memtool: cannot search by meaning: the package model2vec is not installed",
        f"hint: {installation.install('semantic')}",
    ]


def test_a_repository_chooses_no_model(shop: Sandbox, model: Path) -> None:
    """The model that a project names is passed over, with a note, and the user's own is taken."""
    choose(shop, str(model))
    shop.write(".memory/config.toml", '[search]\nsemantic = "/nowhere"\n')
    done = shop.run("search", "--semantic", "bill")
    assert "Invoice" in done.stdout
    assert "search.semantic of .memory/config.toml is not used" in done.stderr
    assert done.stderr.count("is not used") == 1


def test_a_project_alone_cannot_switch_it_on(sandbox: Sandbox, model: Path) -> None:
    """Where only the repository names a model, none is loaded."""
    sandbox.write(".memory/config.toml", f'[search]\nsemantic = "{model}"\n')
    sandbox.memory("dec-invoice", "One invoice a month.\n")
    done = sandbox.run("search", "--semantic", "bill")
    assert (done.returncode, done.stdout) == (2, "")


def test_a_name_is_no_folder_of_the_repository(shop: Sandbox) -> None:
    """What a repository has under the name of the model is not loaded."""
    make_model(shop.path / "acme" / "tiny", WORDS)
    choose(shop, "acme/tiny")
    done = shop.run("search", "--semantic", "bill")
    assert (done.returncode, done.stdout) == (2, "")
    assert "the model 'acme/tiny' is not on this disk" in done.stderr


@pytest.mark.parametrize("variable", ["HF_HUB_CACHE", "HF_HOME", "XDG_CACHE_HOME", ""])
def test_a_name_is_found_among_the_models_on_this_disk(
    shop: Sandbox, tmp_path: Path, variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A model that Hugging Face's tools have brought is opened by its name, without a network."""
    below = {
        "HF_HUB_CACHE": "",
        "HF_HOME": "hub",
        "XDG_CACHE_HOME": "huggingface/hub",
    }
    for name in below:
        shop.env.pop(name, None)
    if variable:
        shop.env[variable] = str(tmp_path / "kept")
    hub = (
        tmp_path / "kept" / below[variable]
        if variable
        else tmp_path / "home/.cache/huggingface/hub"
    )
    place = hub / "models--acme--tiny"
    make_model(place / "snapshots" / ("a" * 40), WORDS)
    (place / "refs").mkdir()
    (place / "refs/main").write_text("a" * 40)
    choose(shop, "acme/tiny")
    refuse_network(monkeypatch)
    assert ask(shop, "bill") == ["dec-invoice"]


def test_a_tilde_is_the_home_of_the_user(shop: Sandbox, model: Path, tmp_path: Path) -> None:
    """A folder may be named from home."""
    shutil.copytree(model, tmp_path / "home" / "models" / "own")
    choose(shop, "~/models/own")
    assert ask(shop, "bill") == ["dec-invoice"]


def tool_search(sandbox: Sandbox, query: str) -> tuple[list[str], tuple[str, ...]]:
    """Ask as a client of the MCP server does; return the ids and the notes."""
    place = ServedRepository(str(sandbox.path), sandbox.env, is_structured=True)
    answer = call(list_tools()["search"], {"query": query}, place)
    assert answer.structured is not None, answer.text
    return [row["id"] for row in answer.structured["results"]], answer.notes


def test_the_mcp_server_searches_by_meaning_where_its_user_has_set_a_model(shop: Sandbox) -> None:
    """An agent gets it unasked: the process stays, so that the model is loaded once."""
    assert tool_search(shop, "bill")[0] == ["dec-invoice"]
    choose(shop, "/nowhere")
    ids, notes = tool_search(shop, "invoice")
    assert ids == ["dec-invoice"]
    assert any("only words were searched" in note for note in notes)


def test_the_mcp_server_loads_nothing_where_no_model_is_set(sandbox: Sandbox) -> None:
    """Off is the default."""
    sandbox.memory("dec-invoice", "One invoice a month.\n")
    assert tool_search(sandbox, "bill")[0] == []
    assert tool_search(sandbox, "invoice") == (["dec-invoice"], ())


@pytest.mark.parametrize("verb", ["search", "inject", "hook"])
def test_nothing_is_loaded_that_was_not_asked_for(shop: Sandbox, verb: str) -> None:
    """A set model costs a search by words, a block and a hook no module and no file."""
    event = json.dumps({"cwd": str(shop.path), "session_id": "s", "prompt": "an invoice a month"})
    calls = {
        "search": ["search", "invoice"],
        "inject": ["inject", "--prompt", "an invoice a month"],
        "hook": ["hook", "claude", "user-prompt-submit", "--input", event],
    }
    report = (
        "import os, sys\n"
        "leave = os._exit\n"
        "def report(status):\n"
        "    wanted = {'model2vec', 'tokenizers', 'memtool.search.semantic'}\n"
        "    print(status, sorted(wanted & sys.modules.keys()), file=sys.stderr, flush=True)\n"
        "    leave(status)\n"
        "os._exit = report\n"
        "from memtool.cli.main import command\n"
        "command()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", report, *calls[verb]],
        cwd=shop.path,
        env=shop.env,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr.splitlines()[-1] == "0 []"
    assert "nvoice" in done.stdout
    assert read_vectors(shop) == []


def test_a_process_of_its_own_prints_the_answer_alone(shop: Sandbox) -> None:
    """The packages that load a model say nothing on either stream."""
    done = shop.process("search", "--semantic", "bill")
    assert done.returncode == 0
    assert done.stdout.startswith("1. Invoice  [dec-invoice]\n")
    assert done.stderr == ""
