"""Trust rules in answers: what is not proven is marked, and replaces nothing."""

from __future__ import annotations

import pytest
from conftest import Keyring, Sandbox, make_memory

from memtool.errors import MemtoolError
from memtool.store import config
from memtool.store.trust_rules import find_rule

RULES = """\
[trust]
allowed_signers = "signers"

[[trust.rules]]
match = "type:decision"
owners = ["ann@example.org"]

[[trust.rules]]
match = "category:warning"
require = "trusted"
"""
BODY = "Sessions live in Redis, since web processes come and go.\n"


def publish(sandbox: Sandbox) -> None:
    sandbox.git("update-ref", "refs/remotes/origin/main", "HEAD")


@pytest.fixture
def ruled(sandbox: Sandbox, keyring: Keyring) -> Sandbox:
    """A repository with rules in its trusted ref, and a decision that ann signed."""
    keyring.sign_as(sandbox, "ann")
    sandbox.write(".memory/config.toml", RULES)
    sandbox.write("signers", keyring.line("ann") + keyring.line("bob"))
    sandbox.memory("dec-redis", BODY, title="Sessions live in Redis")
    sandbox.commit()
    publish(sandbox)
    return sandbox


def block(sandbox: Sandbox, **env: str) -> str:
    return sandbox.run("inject", "--prompt", "where do sessions live", **env).stdout


def test_a_signed_decision_of_an_owner_is_proven(ruled: Sandbox) -> None:
    """It is shown without a note; who signed it stands in `show` and `why`."""
    text = block(ruled)
    assert "UNPROVEN" not in text
    (item,) = ruled.json("inject", "--prompt", "where do sessions live")["items"]
    assert item["trust"] == "signed"
    assert ruled.json("show", "dec-redis")["signed_by"] == [
        {"how": "commit", "by": "ann@example.org"}
    ]
    assert "signed by ann@example.org (commit)" in ruled.run("why", "dec-redis").stdout


@pytest.mark.parametrize("who", ["", "bob", "eve"])
def test_a_decision_that_no_owner_signed_replaces_nothing(
    ruled: Sandbox, keyring: Keyring, who: str
) -> None:
    """Even in the trusted ref: both are shown, the newer one marked."""
    keyring.sign_as(ruled, who)
    ruled.memory(
        "dec-files",
        "Sessions live in files, not in Redis.\n",
        title="Sessions live in files",
        supersedes=("dec-redis",),
    )
    ruled.commit()
    publish(ruled)
    text = block(ruled)
    assert "UNPROVEN: its rule wants it signed by ann@example.org" in text
    assert "dec-redis@" in text
    assert "dec-files@" in text
    assert block(ruled, MEMTOOL_NO_CACHE="1") == text
    (item,) = (
        item
        for item in ruled.json("inject", "--prompt", "where do sessions live", "--format", "json")[
            "items"
        ]
        if item["id"] == "dec-files"
    )
    assert "signed by ann@example.org" in item["unproven"]


def test_another_signer_does_not_stand_for_an_owner(ruled: Sandbox, keyring: Keyring) -> None:
    """A similar memory gives way to the one that the owner signed, however well it fits."""
    words = "Sessions live in {} since web processes come and go and nobody keeps them in memory.\n"
    ruled.memory("dec-ann", words.format("Redis"), title="Sessions live somewhere")
    ruled.commit()
    keyring.sign_as(ruled, "bob")
    ruled.memory("dec-aaa", words.format("files"), title="Sessions live somewhere")
    ruled.commit()
    publish(ruled)
    items = ruled.json("inject", "--prompt", "do sessions live in files?", "--explain")["items"]
    assert "dec-ann" in [item["id"] for item in items]


def test_an_owner_replaces_it(ruled: Sandbox) -> None:
    """Once the trusted ref holds what ann has signed, the older one is gone."""
    ruled.memory(
        "dec-files",
        "Sessions live in files, not in Redis.\n",
        title="Sessions live in files",
        supersedes=("dec-redis",),
    )
    ruled.commit()
    assert "dec-redis@" in block(ruled)  # not yet in the trusted ref
    publish(ruled)
    text = block(ruled)
    assert "dec-redis@" not in text
    assert "UNPROVEN" not in text


def test_a_memory_of_another_type_does_not_replace_it_either(ruled: Sandbox) -> None:
    """The rule of a decision applies to its successors."""
    ruled.git("config", "commit.gpgSign", "false")
    ruled.memory(
        "sem-files",
        "Sessions live in files, not in Redis.\n",
        type="semantic",
        title="Sessions live in files",
        supersedes=("dec-redis",),
    )
    ruled.commit()
    publish(ruled)
    text = block(ruled)
    assert "dec-redis@" in text
    assert "CONFLICT: sem-files is newer but not proven as its rule wants" in text


@pytest.mark.parametrize("change", ["archive", "remove", "retag"])
def test_a_change_of_a_branch_takes_nothing_out_of_use(ruled: Sandbox, change: str) -> None:
    """The version of the trusted ref is shown, with a mark that it was changed here."""
    path = ".memory/decision/2026-02/dec-redis.md"
    if change == "remove":
        (ruled.path / path).unlink()
    else:
        fields = {"status": "archived"} if change == "archive" else {"tags": ("other",)}
        ruled.memory("dec-redis", BODY, title="Sessions live in Redis", **fields)
    text = block(ruled)
    assert "as origin/main has it, edited here" in text
    assert "UNPROVEN" not in text
    ruled.commit()
    assert block(ruled) == text


def test_rules_of_a_worktree_hold_nowhere(ruled: Sandbox) -> None:
    """A branch that drops the rules, or adds others, changes no answer."""
    ruled.git("config", "commit.gpgSign", "false")
    ruled.memory(
        "dec-files",
        "Sessions live in files, not in Redis.\n",
        title="Sessions live in files",
        supersedes=("dec-redis",),
    )
    ruled.commit()
    text = block(ruled)
    ruled.write(".memory/config.toml", "")
    assert block(ruled) == text
    done = ruled.run("config", "trust.rules")
    assert done.stdout.splitlines() == [
        "trust.rules 1 = type:decision: signed by ann@example.org",
        "trust.rules 2 = category:warning: trusted",
    ]
    assert "trust.rules are those of the trusted ref" in done.stderr


def test_a_branch_moves_the_rules_nowhere(ruled: Sandbox) -> None:
    """With another memory directory those of the trusted ref hold as before."""
    ruled.git("config", "commit.gpgSign", "false")
    ruled.write(".memtool.toml", 'directory = "notes"\n')
    ruled.git("mv", ".memory", "notes")
    (ruled.path / "notes/config.toml").unlink()
    ruled.commit()
    text = block(ruled)
    assert "UNPROVEN: its rule wants it signed by ann@example.org, it is committed" in text
    assert block(ruled, MEMTOOL_NO_CACHE="1") == text


def test_without_a_trusted_ref_no_rule_holds_and_that_is_said(sandbox: Sandbox) -> None:
    """It is reported once, next to the answer."""
    sandbox.write(".memory/config.toml", RULES)
    sandbox.memory("dec-redis", BODY, title="Sessions live in Redis")
    sandbox.commit()
    done = sandbox.run("inject", "--prompt", "where do sessions live")
    assert "UNPROVEN" not in done.stdout
    assert done.stderr.count("there is no trusted branch to read them from") == 1
    assert sandbox.json("config")["rules"] == []


def test_unproven_is_shown_where_trust_is(ruled: Sandbox) -> None:
    """Search, list, show and why say it, and why advises to ask."""
    ruled.git("config", "commit.gpgSign", "false")
    ruled.memory("dec-new", "Sessions expire after a day.\n", title="Sessions expire")
    ruled.commit()
    for call in (("search", "sessions expire"), ("list",), ("why", "dec-new")):
        text = ruled.run(*call).stdout
        assert "unproven" in text or "it is committed" in text, call
    lacking = "its rule wants it signed by ann@example.org, it is committed"
    assert lacking in ruled.run("show", "dec-new").stdout
    assert ruled.json("why", "dec-new")["advice"] == f"ask before you act on it: {lacking}"
    assert ruled.json("search", "sessions expire")["results"][0]["unproven"] == lacking


def test_a_rule_for_trusted_asks_for_no_key(ruled: Sandbox) -> None:
    """A warning of a branch is unproven until the trusted ref holds it, whoever signed it."""
    ruled.git("config", "commit.gpgSign", "false")
    ruled.memory(
        "sem-trap",
        "Sessions of Redis need a timeout.\n",
        type="semantic",
        category="warning",
        title="Sessions need a timeout",
    )
    ruled.commit()
    text = ruled.run("inject", "--prompt", "do sessions need a timeout").stdout
    assert "UNPROVEN: its rule wants it trusted, it is committed" in text
    publish(ruled)
    assert "UNPROVEN" not in ruled.run("inject", "--prompt", "do sessions need a timeout").stdout


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            'match = "type:decision"',
            "trust.rules 1 needs require, one of committed, trusted, signed",
        ),
        ('require = "signed"', "trust.rules 1 needs match"),
        ('match = "type:novel"\nrequire = "signed"', "is not a type"),
        ('match = "category:novel"\nrequire = "signed"', "is not a category"),
        ('match = "is:head"\nrequire = "signed"', "matches 'is:head'"),
        ('match = "tag:"\nrequire = "signed"', "matches 'tag:'"),
        ('match = "id:*"\nrequire = "high"', "needs require, one of"),
        ('match = "id:*"\nrequire = "trusted"\nowners = ["a@b"]', "must require signed"),
        ('match = "id:*"\nowners = []', "has no owner"),
        ('match = "id:*"\nowners = "ann"', "must have owners as a list"),
        ('match = "id:*"\nowners = ["a b"]', "must have owners as a list"),
        ('match = "id:*"\nrequire = "signed"\nowner = "a"', "has the unknown key 'owner'"),
        ('match = "gate"\nrequire = "trusted"', "must require signed"),
    ],
)
def test_a_bad_rule_gets_one_sentence(text: str, message: str) -> None:
    """It names the file, the number of the rule and what is wrong."""
    with pytest.raises(MemtoolError) as caught:
        config.parse(f"[[trust.rules]]\n{text}\n".encode(), "FILE")
    assert message in str(caught.value)
    assert str(caught.value).startswith("FILE: trust.rules 1 ")


@pytest.mark.parametrize(
    ("match", "expected"),
    [
        ("type:decision", True),
        ("type:semantic,decision", True),
        ("type:semantic", False),
        ("tag:Auth*", True),
        ("tag:web", False),
        ("id:dec-*", True),
        ("id:dec-b", False),
        ("category:decision", True),
        ("path:.memory/decision", True),
        ("path:/.memory/**/*.md", True),
        ("path:.memory/semantic", False),
        ("type:decision tag:auth", True),
        ("type:decision tag:web", False),
        ("gate", False),
    ],
)
def test_what_a_rule_matches(match: str, expected: bool) -> None:  # noqa: FBT001  # a table
    """All filters must fit, of values one; globs as in a search; the first rule that fits holds."""
    (rule,) = config.parse(
        f'[[trust.rules]]\nmatch = "{match}"\nrequire = "signed"\n'.encode(), "FILE"
    ).rules
    memory = make_memory("dec-a", tags=("auth",))
    path = ".memory/decision/2026-02/dec-a.md"
    assert rule.matches(memory, path) is expected
    other = rule.replace(match="other")
    assert find_rule((rule, other), memory, path) is (rule if expected else None)


def test_rules_must_be_tables() -> None:
    """A list of anything else is refused, and so are too many."""
    with pytest.raises(MemtoolError, match="must be tables"):
        config.parse(b'[trust]\nrules = ["type:decision"]\n', "FILE")
    many = '[[trust.rules]]\nmatch = "id:*"\nrequire = "signed"\n' * 201
    with pytest.raises(MemtoolError, match="the limit is 200"):
        config.parse(many.encode(), "FILE")


def test_rules_of_a_newer_format_are_never_less() -> None:
    """Rules that this version can read apply; if it cannot, all memories must be signed."""
    parsed = config.parse(f"format = 99\n{RULES}".encode(), "FILE")
    assert [rule.match for rule in parsed.rules] == ["type:decision", "category:warning"]
    unknown = config.parse(f"format = 99\n{RULES}quorum = 2\n".encode(), "FILE")
    assert [(rule.match, rule.require) for rule in unknown.rules] == [("id:*", "signed")]


def test_a_setting_beside_rules_is_set_and_kept(sandbox: Sandbox) -> None:
    """Writing trust.ref leaves the rules as they are, and goes into none of them."""
    sandbox.write(".memory/config.toml", RULES)
    sandbox.run("config", "trust.ref", "refs/heads/main")
    after = config.parse((sandbox.path / ".memory/config.toml").read_bytes(), "FILE")
    assert after.values["trust.ref"] == "refs/heads/main"
    assert [rule.match for rule in after.rules] == ["type:decision", "category:warning"]
    sandbox.write(".memory/config.toml", RULES.partition("\n\n")[2])
    sandbox.run("config", "trust.ref", "refs/heads/main")
    after = config.parse((sandbox.path / ".memory/config.toml").read_bytes(), "FILE")
    assert after.values["trust.ref"] == "refs/heads/main"
    assert len(after.rules) == 2
    assert "edit .memory/config.toml" in sandbox.run("config", "trust.rules", "x").stderr
