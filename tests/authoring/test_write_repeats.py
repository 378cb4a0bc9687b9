from __future__ import annotations

import pytest
from conftest import Sandbox

from memtool.authoring.write import WriteResult
from memtool.commands.new import new, remember, supersede
from memtool.errors import MemtoolError
from memtool.memory import document
from memtool.memory.memory import Memory

TEXT = "Sessions live in Redis because the cookie store grew past four kilobytes."
NEAR = TEXT + " Ask twice."


def made(sandbox: Sandbox, body: str = TEXT, **options: object) -> WriteResult:
    seed = str(len(list(sandbox.path.glob(".memory/*/*/*.md"))))
    return new(
        sandbox.context(MEMTOOL_SEED=seed), "decision", "Sessions in Redis", body=body, **options
    )  # type: ignore[arg-type]


def on_disk(sandbox: Sandbox, written: WriteResult) -> Memory:
    return document.read((sandbox.path / written.path).read_bytes(), written.path)


def files(sandbox: Sandbox) -> int:
    return len(list(sandbox.path.glob(".memory/*/*/*.md")))


def test_what_is_said_already_is_strengthened_instead(sandbox: Sandbox):
    """The answer names the memory that was there; no file is written."""
    first = made(sandbox)
    ws = sandbox.context(MEMTOOL_SEED="x")
    again = new(ws, "decision", "sessions  in redis", body=TEXT.upper())
    assert (again.id, again.path, again.duplicate_of) == (first.id, first.path, first.id)
    assert on_disk(sandbox, first).text("importance") == "0.6"
    assert files(sandbox) == 1
    assert ws.notes == [f"{first.id} says this already; its importance is now 0.6"]
    assert first.duplicate_of is None


def test_importance_ends_at_one(sandbox: Sandbox):
    """A memory that is said often is not more than important."""
    first = made(sandbox, importance=0.75)
    for expected in ("0.85", "0.95", "1", "1"):
        made(sandbox)
        assert on_disk(sandbox, first).text("importance") == expected


def test_strengthening_is_committed_as_asked(sandbox: Sandbox):
    """One commit with the id as trailer; without a change there is none."""
    first = made(sandbox, commit=True)
    again = made(sandbox, commit=True)
    assert again.commit == sandbox.git("rev-parse", "HEAD").strip()
    message = sandbox.git("log", "-1", "--format=%B").strip()
    assert message == f"memory: strengthen Sessions in Redis\n\nMemory-Id: {first.id}"
    for _time in range(5):
        again = made(sandbox, commit=True)
    assert again.commit is None


def test_a_dry_run_says_what_would_be(sandbox: Sandbox):
    """The text shows the new importance, the file keeps the old one."""
    first = made(sandbox)
    again = made(sandbox, dry_run=True)
    assert again.duplicate_of == first.id
    assert "importance: 0.6" in again.text
    assert on_disk(sandbox, first).text("importance") == ""


def test_json_names_the_twin_and_the_exit_code_is_0(sandbox: Sandbox):
    """A script goes on with the id that it gets."""
    first = sandbox.json("remember", TEXT)
    again = sandbox.json("remember", TEXT)
    assert first["duplicate_of"] is None
    assert (again["duplicate_of"], again["path"]) == (first["id"], first["path"])
    done = sandbox.run("remember", TEXT)
    assert (done.returncode, done.stdout.strip()) == (0, first["path"])


def test_a_near_twin_is_refused_with_the_way_on(sandbox: Sandbox):
    """The hint is the command that replaces it."""
    first = made(sandbox)
    with pytest.raises(MemtoolError) as caught:
        made(sandbox, NEAR)
    assert caught.value.code == "duplicate"
    assert caught.value.hint.startswith(
        f"correct it: memtool supersede {first.id} TITLE\nkeep both: "
    )
    assert files(sandbox) == 1
    with pytest.raises(MemtoolError, match="says nearly the same"):
        remember(sandbox.context(), "Sessions in Redis. " + NEAR)


@pytest.mark.parametrize("option", [{"supersedes": ("dec-",)}, {"set": ("related_to=ID",)}])
def test_who_names_the_twin_may_write(sandbox: Sandbox, option: dict):
    """A relation shows that both are meant."""
    first = made(sandbox)
    options = {key: tuple(v.replace("ID", first.id) for v in vs) for key, vs in option.items()}
    assert made(sandbox, NEAR, **options).duplicate_of is None
    assert files(sandbox) == 2


def test_superseding_with_nearly_the_same_is_what_it_is_for(sandbox: Sandbox):
    """A correction is like what it corrects; only a third memory is in its way."""
    first = made(sandbox)
    newer = supersede(sandbox.context(), first.id, "Sessions in Redis", body=NEAR)
    assert files(sandbox) == 2
    third = new(sandbox.context(MEMTOOL_SEED="t"), "decision", "Cookies", body="Name only.")
    with pytest.raises(MemtoolError) as caught:
        supersede(sandbox.context(MEMTOOL_SEED="u"), third.id, "Sessions in Redis", body=NEAR)
    assert caught.value.hint == f"correct both: add --supersedes {newer.id}"


def test_another_value_is_another_memory(sandbox: Sandbox):
    """The same sentence about another port is not a repetition."""
    for port in (8080, 9090):
        new(
            sandbox.context(MEMTOOL_SEED=str(port)),
            "decision",
            f"The API listens on {port}",
            body="It is so, and this is why.",
        )
    assert files(sandbox) == 2


def test_what_is_out_of_use_may_be_said_again(sandbox: Sandbox):
    """An archived memory is not brought back by accident."""
    first = made(sandbox)
    path = sandbox.path / first.path
    path.write_text(path.read_text().replace("status: confirmed", "status: archived"))
    assert made(sandbox).duplicate_of is None
    assert files(sandbox) == 2


def test_an_unreadable_cache_hides_no_twin(sandbox: Sandbox):
    """A blocked cache costs time only."""
    made(sandbox, commit=True)
    sandbox.write(".git/memtool/twins/twins1-00000000-0", b"junk")
    assert made(sandbox).duplicate_of
