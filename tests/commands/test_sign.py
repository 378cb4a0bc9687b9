"""`memtool sign`: a signature of a claim that outlives the commit, and vouches for nothing else."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from conftest import Keyring, Sandbox
from test_hot import DATABASE, HEAVY
from watched import libraries, warm

from memtool.commands.check import check

RULES = """\
[trust]
allowed_signers = "signers"

[[trust.rules]]
match = "type:decision"
owners = ["ann@example.org"]
"""
BODY = "Sessions live in Redis, since web processes come and go.\n"


@pytest.fixture
def ruled(sandbox: Sandbox, keyring: Keyring) -> Sandbox:
    """A repository with rules in its trusted ref, and an unsigned decision on a branch."""
    sandbox.write(".memory/config.toml", RULES)
    sandbox.write("signers", keyring.line("ann") + keyring.line("bob"))
    sandbox.commit()
    publish(sandbox)
    sandbox.git("switch", "--quiet", "-c", "side")
    sandbox.memory("dec-redis", BODY, title="Sessions live in Redis")
    sandbox.commit()
    return sandbox


def publish(sandbox: Sandbox) -> None:
    sandbox.git("update-ref", "refs/remotes/origin/main", "HEAD")


def sign(sandbox: Sandbox, keyring: Keyring, name: str, *ids: str, **env: str) -> str:
    """Sign as a person, and return the path of the file."""
    done = sandbox.run(
        "sign", *(ids or ("dec-redis",)), "--key", keyring.path(name), "--commit", **env
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def trust(sandbox: Sandbox, id_: str = "dec-redis") -> tuple[str, list[tuple[str, str]]]:
    """The trust of a memory and its signatures, the same with the cache and without."""
    shown = sandbox.json("show", id_)
    bare = sandbox.json("show", id_, MEMTOOL_NO_CACHE="1")
    assert (shown["trust"], shown["signed_by"]) == (bare["trust"], bare["signed_by"])
    return shown["trust"], [(signature["how"], signature["by"]) for signature in shown["signed_by"]]


def errors(sandbox: Sandbox, range: str = "origin/main..HEAD") -> list[str]:
    problems = check(sandbox.context(), range=range).problems
    return [problem.code for problem in problems if problem.severity == "error"]


ANN = ("signed", [("signature", "ann@example.org")])


@pytest.mark.parametrize("way", ["squash", "rebase", "merge"])
def test_it_survives_every_merge_of_a_forge(ruled: Sandbox, keyring: Keyring, way: str) -> None:
    """Forges make new unsigned commits by other authors; the claim is still ann's."""
    assert errors(ruled) == ["unowned"]
    path = sign(ruled, keyring, "ann")
    assert path.startswith(".memory/_signatures/2026-03/dec-redis.")
    assert errors(ruled) == []
    ruled.git("switch", "--quiet", "main")
    ruled.write("other", "")
    ruled.commit()
    if way == "squash":
        ruled.git("merge", "--squash", "--quiet", "side")
        ruled.git("commit", "--quiet", "-m", "squashed")
    elif way == "rebase":
        ruled.git("rebase", "--quiet", "main", "side")
        ruled.git("switch", "--quiet", "main")
        ruled.git("merge", "--quiet", "--ff-only", "side")
    else:
        ruled.git("merge", "--quiet", "--no-edit", "side")
    assert errors(ruled) == []
    publish(ruled)
    assert trust(ruled) == ANN
    assert "signed by ann@example.org (signature)" in ruled.run("why", "dec-redis").stdout
    assert "UNPROVEN" not in ruled.run("inject", "--prompt", "where do sessions live").stdout


def test_keys_of_the_lifecycle_are_no_part_of_it(ruled: Sandbox, keyring: Keyring) -> None:
    """A memory that is pinned and tagged later still says what ann has signed."""
    sign(ruled, keyring, "ann")
    publish(ruled)
    assert trust(ruled) == ANN
    ruled.memory("dec-redis", BODY, title="Sessions live in Redis", status="pinned", tags=("a",))
    ruled.commit()
    publish(ruled)
    assert trust(ruled) == ANN


def test_a_signature_covers_what_a_claim_governs(ruled: Sandbox, keyring: Keyring) -> None:
    """Files may change in place, but who signed a rule for some has not signed it for others."""
    sign(ruled, keyring, "ann")
    assert errors(ruled) == []
    ruled.memory("dec-redis", BODY, title="Sessions live in Redis", tags=("cache",))
    ruled.commit()
    assert errors(ruled) == []
    ruled.memory("dec-redis", BODY, title="Sessions live in Redis", files=("src/session.py",))
    ruled.write("src/session.py", "\n")
    ruled.commit()
    assert errors(ruled) == ["unowned"]


def test_another_claim_is_not_signed(ruled: Sandbox, keyring: Keyring) -> None:
    """A signature over an older claim is void, as is one that was copied to another memory."""
    path = sign(ruled, keyring, "ann")
    ruled.memory("dec-redis", "Sessions live in files.\n", title="Sessions live in Redis")
    ruled.memory("dec-copy", BODY, title="Sessions live in Redis")
    ruled.write(path.replace("dec-redis", "dec-copy"), (ruled.path / path).read_bytes())
    ruled.commit()
    assert errors(ruled).count("unowned") == 2
    messages = {
        problem.id: problem.message
        for problem in check(ruled.context(), range="origin/main..").problems
    }
    assert "they are for another claim or memory, or the key" in messages["dec-copy"]
    publish(ruled)
    assert trust(ruled) == ("trusted", [])
    assert trust(ruled, "dec-copy") == ("trusted", [])
    text = ruled.run("inject", "--prompt", "where do sessions live").stdout
    assert "UNPROVEN: its rule" in text


@pytest.mark.parametrize("who", ["bob", "eve"])
def test_an_owner_must_have_signed(ruled: Sandbox, keyring: Keyring, who: str) -> None:
    """A signer who is not an owner is named; a stranger's signature does not count."""
    sign(ruled, keyring, who)
    assert errors(ruled) == ["unowned"]
    publish(ruled)
    expected = [("signature", "bob@example.org")] if who == "bob" else []
    assert trust(ruled) == ("signed" if expected else "trusted", expected)
    assert ruled.json("show", "dec-redis")["unproven"]
    sign(ruled, keyring, "ann")
    publish(ruled)
    assert ("signature", "ann@example.org") in trust(ruled)[1]
    assert ruled.json("show", "dec-redis")["unproven"] == ""


def test_two_people_sign_on_two_branches(ruled: Sandbox, keyring: Keyring) -> None:
    """Files are created only, so both branches merge, and both signatures hold."""
    ruled.git("branch", "other")
    sign(ruled, keyring, "ann")
    ruled.git("switch", "--quiet", "other")
    sign(ruled, keyring, "bob")
    ruled.git("merge", "--quiet", "--no-edit", "side")
    publish(ruled)
    assert trust(ruled) == (
        "signed",
        [("signature", "ann@example.org"), ("signature", "bob@example.org")],
    )


def test_acts_need_a_signed_commit(ruled: Sandbox, keyring: Keyring) -> None:
    """The signature of a claim archives nothing, and only an owner may remove it."""
    path = sign(ruled, keyring, "ann")
    publish(ruled)
    ruled.memory("dec-redis", BODY, title="Sessions live in Redis", status="archived")
    ruled.commit()
    assert errors(ruled) == ["unowned"]
    ruled.git("reset", "--quiet", "--hard", "origin/main")
    ruled.git("rm", "--quiet", path)
    ruled.git("commit", "--quiet", "-m", "gone")
    assert errors(ruled) == ["unowned"]


@pytest.mark.parametrize(("end", "expected"), [("20260101", ("trusted", [])), ("20260401", ANN)])
def test_a_key_that_has_ended_signs_no_more(
    ruled: Sandbox, keyring: Keyring, end: str, expected: object
) -> None:
    """Earlier signatures stay valid; the moment is the signer's word."""
    sign(ruled, keyring, "ann")
    ruled.write("signers", keyring.line("ann", f'valid-before="{end}"'))
    ruled.commit()
    publish(ruled)
    assert trust(ruled) == expected


def test_a_revoked_key_has_signed_nothing(ruled: Sandbox, keyring: Keyring) -> None:
    """Where its line is gone from the trusted ref, so is all that it vouched for."""
    sign(ruled, keyring, "ann")
    publish(ruled)
    assert trust(ruled) == ANN
    ruled.write("signers", keyring.line("bob"))
    ruled.commit()
    publish(ruled)
    assert trust(ruled) == ("trusted", [])


@pytest.mark.parametrize("damage", ["torn", "moment", "head", "bytes", "huge", "namespace"])
def test_a_file_that_was_tampered_with_is_no_signature(
    ruled: Sandbox, keyring: Keyring, damage: str
) -> None:
    """Whatever it contains, it causes no traceback and gives no trust."""
    path = ruled.path / sign(ruled, keyring, "ann")
    data = path.read_bytes()
    changed = {
        "torn": data[: len(data) // 2],
        "moment": data.replace(b"2026-03-01T12", b"2026-02-01T12"),
        "head": data.replace(b"memtool signature 1", b"memtool signature 2"),
        "bytes": b"\x00\xff\n",
        "huge": data + b"x" * 20_000,
        "namespace": data.replace(b"U1NIU0lH", b"U1NIU0lI"),
    }[damage]
    assert changed != data
    path.write_bytes(changed)
    ruled.commit()
    assert "unowned" in errors(ruled)
    publish(ruled)
    assert trust(ruled) == ("trusted", [])


@pytest.mark.slow
def test_a_warm_answer_checks_nothing(ruled: Sandbox, keyring: Keyring) -> None:
    """Who signed what is kept: neither git nor ssh-keygen is started, nothing heavy is loaded."""
    sign(ruled, keyring, "ann")
    publish(ruled)
    args = ("inject", "--prompt", "where do sessions live")
    text = ruled.run(*args).stdout
    assert "dec-redis@" in text
    answer, trace = warm(ruled, *args)
    assert answer.decode() == text
    assert trace["started"] == []
    assert libraries(trace) & HEAVY <= DATABASE
    assert "memtool.store.signatures" not in trace["loaded"]


def test_without_ssh_keygen_nothing_is_signed(ruled: Sandbox, tmp_path: Path) -> None:
    """The verb says what is missing; an answer that cannot look calls nothing signed, for now."""
    folder = tmp_path / "bin"
    folder.mkdir()
    git = shutil.which("git")
    assert git is not None
    (folder / "git").symlink_to(git)
    done = ruled.run("sign", "dec-redis", "--key", "x", PATH=str(folder))
    assert done.returncode == 2
    assert "ssh-keygen is not on the PATH" in done.stderr
    assert "openssh-client" in done.stderr


def test_a_missing_tool_is_not_remembered(ruled: Sandbox, keyring: Keyring, tmp_path: Path) -> None:
    """A check that failed for a missing tool is repeated later."""
    sign(ruled, keyring, "ann")
    publish(ruled)
    folder = tmp_path / "bin"
    folder.mkdir()
    git = shutil.which("git")
    assert git is not None
    (folder / "git").symlink_to(git)
    assert ruled.json("show", "dec-redis", PATH=str(folder))["trust"] == "trusted"
    assert trust(ruled) == ANN


def test_each_signature_is_checked_once(ruled: Sandbox, keyring: Keyring, tmp_path: Path) -> None:
    """A trusted ref that moves on asks about nothing that was checked by the same signers."""
    real, log = shutil.which("ssh-keygen"), tmp_path / "log"
    fake = tmp_path / "bin/ssh-keygen"
    fake.parent.mkdir()
    fake.write_text(f'#!/bin/sh\necho "$2" >> "{log}"\nexec {real} "$@"\n')
    fake.chmod(0o755)
    path = f"{fake.parent}:{os.environ['PATH']}"
    keyring.sign_as(ruled, "bob")
    sign(ruled, keyring, "ann")
    ruled.memory("dec-b", "Pages are rendered.\n", title="Pages are rendered")
    ruled.commit()
    publish(ruled)
    assert ruled.json("list", "is:signed", PATH=path)["total"] == 2
    calls = log.read_text().split()
    assert sorted(set(calls)) == ["find-principals", "verify"]
    ruled.write("x", "")
    ruled.commit()
    publish(ruled)
    assert ruled.json("list", "is:signed", PATH=path)["total"] == 2
    assert log.read_text().split() == calls


def test_bad_input_gets_a_sentence(ruled: Sandbox, keyring: Keyring, tmp_path: Path) -> None:
    """No key, a key that is none, a memory that is none, nothing at all."""
    garbage = tmp_path / "garbage"
    garbage.write_bytes(b"\x00\x01")
    for call, message in (
        ((), "ID is missing"),
        (("dec-nothing",), "no memory is called"),
        (("dec-redis",), "cannot sign: no ssh key is configured"),
        (("dec-redis", "--key", "/nowhere/key"), "no key at /nowhere/key"),
        (("dec-redis", "--key", str(garbage)), "ssh-keygen did not sign"),
        (("dec-redis", "--key", f"{keyring.path('ann')}.pub"), ""),
    ):
        done = ruled.run("sign", *call)
        assert message in done.stderr
        assert done.returncode == (2 if message else 0)
    before = ruled.git("status", "--porcelain")
    done = ruled.run("sign", "dec-redis", "--key", keyring.path("ann"), "--dry-run")
    assert done.stdout == "would sign dec-redis  Sessions live in Redis\n"
    assert ruled.git("status", "--porcelain") == before


def test_the_key_of_git_is_used_and_a_strange_one_is_told(ruled: Sandbox, keyring: Keyring) -> None:
    """`user.signingKey` will do; a key that the trusted ref does not know proves nothing yet."""
    keyring.sign_as(ruled, "eve")
    ruled.git("config", "user.signingKey", keyring.path("eve"))
    done = ruled.run("sign", "dec-redis")
    assert done.returncode == 0
    assert "counts once its key is in signers of the trusted ref" in done.stderr
    ruled.git("config", "user.signingKey", keyring.path("ann"))
    answer = ruled.json("sign", "dec-redis")
    assert answer["by"] == ["ann@example.org"]
    assert ruled.json("sign", "dec-redis")["signed"] == answer["signed"]  # the same second


def test_a_signature_is_no_secret_and_no_memory(ruled: Sandbox, keyring: Keyring) -> None:
    """The gate takes the file, in the hook as in CI, and no verb takes it for a memory."""
    sign(ruled, keyring, "ann")
    assert check(ruled.context()).problems == ()
    ruled.git("add", "--all")
    assert ruled.run("check", "--history").returncode == 0
    assert ruled.json("list")["total"] == 1
