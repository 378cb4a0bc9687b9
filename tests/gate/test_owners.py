"""Owners: what a trust rule of the base protects changes by a key that it names, and no other."""

from __future__ import annotations

import pytest
from conftest import Keyring, Sandbox

from memtool.commands.check import check
from memtool.errors import MemtoolError
from memtool.memory.schema import Problem

RULES = """\
[trust]
allowed_signers = "signers"

[[trust.rules]]
match = "type:decision"
owners = ["ann@example.org"]

[[trust.rules]]
match = "tag:security"
require = "signed"
"""


@pytest.fixture
def ruled(sandbox: Sandbox, keyring: Keyring) -> Sandbox:
    """A repository with a decision and rules, and ann and bob as signers."""
    sandbox.write(".memory/config.toml", RULES)
    sandbox.write("signers", keyring.line("ann") + keyring.line("bob"))
    sandbox.memory("dec-old", "Sessions live in Redis.\n")
    sandbox.memory("sem-old", "The staging host is a small one.\n", type="semantic")
    sandbox.commit()
    sandbox.git("tag", "base")
    return sandbox


def unowned(sandbox: Sandbox, range: str = "base..HEAD") -> list[Problem]:
    problems = check(sandbox.context(), range=range).problems
    return [problem for problem in problems if problem.code == "unowned"]


def paths(sandbox: Sandbox, range: str = "base..HEAD") -> list[str]:
    return [problem.path.rpartition("/")[2] for problem in unowned(sandbox, range)]


def test_a_new_memory_needs_the_key_of_an_owner(ruled: Sandbox, keyring: Keyring) -> None:
    """No signature, another signer's and a stranger's are none; the owner's is one."""
    base = ruled.git("rev-parse", "HEAD").strip()
    for name, expected in (("", True), ("bob", True), ("eve", True), ("ann", False)):
        ruled.git("reset", "--quiet", "--hard", base)
        keyring.sign_as(ruled, name)
        ruled.memory("dec-new", "Pages are rendered on the server.\n")
        ruled.commit()
        assert bool(unowned(ruled)) is expected, name
    ruled.git("reset", "--quiet", "--hard", base)
    keyring.sign_as(ruled, "bob")
    ruled.memory("dec-new", "Pages are rendered on the server.\n")
    commit = ruled.commit()
    (problem,) = unowned(ruled)
    assert problem.severity == "error"
    assert "ann@example.org must sign" in problem.message
    assert "signed by bob@example.org" in problem.message
    assert commit


def test_an_author_proves_nothing(ruled: Sandbox, keyring: Keyring) -> None:
    """A commit may name any author; the message says so."""
    keyring.sign_as(ruled, "eve")
    ruled.memory("dec-new", "Pages are rendered on the server.\n")
    ruled.git("config", "user.email", "ann@example.org")
    ruled.commit()
    (problem,) = unowned(ruled)
    assert "must make this change with git commit -S" in problem.hint or "sign" in problem.hint


def test_what_no_rule_matches_is_free(ruled: Sandbox) -> None:
    """A memory of another type needs no owner."""
    ruled.memory("sem-new", "The staging host is called blue.\n", type="semantic")
    ruled.commit()
    assert unowned(ruled) == []


def test_acts_and_removals_are_protected(ruled: Sandbox, keyring: Keyring) -> None:
    """Archiving, retagging and removing a decision are changes as well."""
    ruled.memory("dec-old", "Sessions live in Redis.\n", status="archived")
    ruled.commit()
    assert paths(ruled) == ["dec-old.md"]
    keyring.sign_as(ruled, "ann")
    ruled.memory("dec-old", "Sessions live in Redis.\n", status="archived", tags=("x",))
    ruled.commit()
    assert paths(ruled) == []  # who signs the last bytes answers for them
    keyring.sign_as(ruled, "")
    ruled.git("rm", "--quiet", ".memory/decision/2026-02/dec-old.md")
    ruled.git("commit", "--quiet", "-m", "gone\n\nPurges: dec-old")
    assert paths(ruled) == ["dec-old.md"]


def test_no_way_around_through_another_type_tag_or_lineage(
    ruled: Sandbox, keyring: Keyring
) -> None:
    """The rule of a protected memory applies to its successors, and to changes that escape it."""
    ruled.memory("sem-new", "Sessions live in files.\n", type="semantic", supersedes=("dec-old",))
    ruled.commit()
    assert paths(ruled) == ["sem-new.md"]
    keyring.sign_as(ruled, "bob")
    ruled.memory("sem-safe", "Keys are rotated.\n", type="semantic", tags=("security",))
    ruled.commit()
    assert paths(ruled) == ["sem-new.md"]  # any signer does for that rule
    ruled.git("tag", "tagged")
    keyring.sign_as(ruled, "")
    ruled.memory("sem-safe", "Keys are rotated.\n", type="semantic", tags=("other",))
    ruled.commit()
    assert paths(ruled, "tagged..HEAD") == ["sem-safe.md"]


def test_a_branch_lowers_no_rule_and_names_no_signer(ruled: Sandbox, keyring: Keyring) -> None:
    """Rules and signers are those of the base; the files that hold them are owned themselves."""
    ruled.write(".memory/config.toml", "")
    ruled.write("signers", keyring.line("eve").replace("eve@", "ann@"))
    ruled.write(".gitattributes", "* text\n")
    keyring.sign_as(ruled, "eve")
    ruled.memory("dec-new", "Pages are rendered on the server.\n")
    ruled.commit()
    assert paths(ruled) == [".gitattributes", "config.toml", "dec-new.md", "signers"]


def test_the_gates_files_alone_are_looked_at(ruled: Sandbox, keyring: Keyring) -> None:
    """A range that touches no memory may still touch what protects them; an owner may."""
    ruled.write("signers", "")
    ruled.commit()
    assert paths(ruled) == ["signers"]
    keyring.sign_as(ruled, "bob")
    ruled.write("signers", "# nobody\n")
    ruled.commit()
    assert paths(ruled) == []  # bob owns by the rule that names nobody


def test_a_rule_for_the_gate_names_its_owners(sandbox: Sandbox, keyring: Keyring) -> None:
    """With a rule that matches `gate`, owners of other rules do not own the gate's files."""
    sandbox.write(
        ".memory/config.toml",
        RULES + '[[trust.rules]]\nmatch = "gate"\nowners = ["*@example.net", "bob@*"]\n',
    )
    sandbox.write("signers", keyring.line("ann") + keyring.line("bob"))
    sandbox.commit()
    sandbox.git("tag", "base")
    for name, expected in (("ann", ["signers"]), ("bob", [])):
        keyring.sign_as(sandbox, name)
        sandbox.write("signers", f"# {name}\n")
        sandbox.commit()
        assert paths(sandbox) == expected


def test_a_merge_that_goes_back_is_found(ruled: Sandbox, keyring: Keyring) -> None:
    """Merging the base but keeping an older state is an unsigned change."""
    ruled.git("switch", "--quiet", "-c", "side")
    ruled.write("x", "")
    ruled.commit()
    ruled.git("switch", "--quiet", "main")
    keyring.sign_as(ruled, "ann")
    ruled.memory("dec-old", "Sessions live in Redis.\n", status="pinned")
    ruled.commit()
    ruled.git("switch", "--quiet", "side")
    keyring.sign_as(ruled, "")
    assert unowned(ruled, "main..HEAD") == []  # what came to the base since is no change of ours
    ruled.git("merge", "--quiet", "-s", "ours", "-m", "merge", "main")
    (problem,) = unowned(ruled, "main..HEAD")
    assert "a merge went back" in problem.message


def test_an_older_base_is_no_change(ruled: Sandbox, keyring: Keyring) -> None:
    """A branch that merged its base holds signed changes of the base, and is not asked for them."""
    ruled.git("switch", "--quiet", "-c", "side")
    ruled.write("x", "")
    ruled.commit()
    ruled.git("switch", "--quiet", "main")
    ruled.memory("dec-new", "Pages are rendered on the server.\n")  # somehow there, unsigned
    ruled.commit()
    ruled.git("switch", "--quiet", "side")
    ruled.git("merge", "--quiet", "--no-edit", "main")
    assert unowned(ruled, "main..HEAD") == []


def test_an_expired_key_signs_nothing_after_its_end(sandbox: Sandbox, keyring: Keyring) -> None:
    """By valid-before a signature counts by the moment that the commit has."""
    for end, expected in (("20260101", ["dec-new.md"]), ("20270101", [])):
        keyring.sign_as(sandbox, "ann")
        sandbox.write(".memory/config.toml", RULES)
        sandbox.write("signers", keyring.line("ann", f'valid-before="{end}"'))
        sandbox.commit()
        sandbox.git("tag", "--force", "base")
        sandbox.memory("dec-new", f"Pages are rendered on the server {end}.\n", status="candidate")
        sandbox.commit()
        assert paths(sandbox) == expected


def test_garbage_for_signers_lets_nobody_pass(sandbox: Sandbox, keyring: Keyring) -> None:
    """A file without keys gives no trust, and causes no traceback."""
    for signers in (b"\x00\xff garbage\n\xfe", b"ann@example.org ssh-ed25519 AAAA\n", b""):
        sandbox.write(".memory/config.toml", RULES)
        sandbox.write("signers", signers)
        sandbox.commit()
        sandbox.git("tag", "--force", "base")
        keyring.sign_as(sandbox, "ann")
        sandbox.memory("dec-new", f"Pages {len(signers)}.\n", status="candidate")
        sandbox.commit()
        assert paths(sandbox) == ["dec-new.md"]


def test_a_base_that_cannot_be_read_is_said(ruled: Sandbox) -> None:
    """Rules with a mistake are a failure with a sentence; settings without rules are none."""
    ruled.write(".memory/config.toml", RULES + "owner = 1\n")
    ruled.commit()
    ruled.git("tag", "--force", "base")
    ruled.write(".memory/config.toml", RULES)
    ruled.commit()
    with pytest.raises(MemtoolError, match=r"cannot check owners: .*has the unknown key 'owner'"):
        unowned(ruled)
    ruled.write(".memory/config.toml", "[no]\nsuch = 1\n")
    ruled.commit()
    ruled.git("tag", "--force", "base")
    ruled.write(".memory/config.toml", "")
    ruled.commit()
    assert unowned(ruled) == []


def test_a_shallow_clone_says_that_it_cannot_know(ruled: Sandbox) -> None:
    """If it lacks the merge base of a branch, it does not pass the branch."""
    for number in range(3):
        ruled.write("x", str(number))
        ruled.commit()
    ruled.git("switch", "--quiet", "-c", "side", "HEAD~2")
    ruled.memory("dec-new", "Pages are rendered on the server.\n")
    ruled.commit()
    ruled.git("clone", "--quiet", "--depth=1", "--no-single-branch", f"file://{ruled.path}", "far")
    clone = Sandbox(ruled.path / "far", ruled.env)
    with pytest.raises(MemtoolError, match="this shallow clone lacks the merge base"):
        unowned(clone, "origin/main..origin/side")


def test_a_new_branch_is_judged_by_the_trusted_ref(ruled: Sandbox) -> None:
    """A forge sends zeros as the start of a new branch; then the trusted ref is the base."""
    ruled.memory("dec-new", "Pages are rendered on the server.\n")
    ruled.commit()
    zeros = "0" * 40
    assert paths(ruled, f"{zeros}..HEAD") == []  # no ref is trusted here
    ruled.git("update-ref", "refs/remotes/origin/main", "base")
    assert paths(ruled, f"{zeros}..HEAD") == ["dec-new.md"]


def test_what_the_trusted_ref_holds_is_warned_of(ruled: Sandbox) -> None:
    """After a squash merge no act is signed, so the check of the push only warns."""
    ruled.memory("dec-old", "Sessions live in Redis.\n", status="archived")
    ruled.memory("dec-new", "Pages are rendered on the server.\n")
    ruled.commit()
    assert {problem.severity for problem in unowned(ruled)} == {"error"}
    ruled.git("update-ref", "refs/remotes/origin/main", "HEAD")
    severities = {problem.id: problem.severity for problem in unowned(ruled)}
    assert severities == {"dec-old": "warning", "dec-new": "error"}


def test_without_ssh_keygen_the_check_fails(ruled: Sandbox) -> None:
    """Without it a signature can be called neither good nor bad."""
    ruled.memory("dec-new", "Pages are rendered on the server.\n")
    ruled.commit()
    folder = ruled.path / "bin"
    folder.mkdir()
    git = ruled.git("--exec-path").strip()
    (folder / "git").symlink_to(f"{git}/git")
    context = ruled.context(PATH=str(folder))
    with pytest.raises(MemtoolError, match="ssh-keygen is not on the PATH"):
        check(context, range="base..HEAD")


def test_what_came_with_the_trusted_ref_is_no_change_of_the_branch(ruled: Sandbox) -> None:
    """A forge checks a merge with its newest base, and may name an older one as the start."""
    ruled.git("switch", "--quiet", "-c", "side")
    ruled.write("x", "")
    ruled.commit()
    ruled.git("switch", "--quiet", "main")
    ruled.memory("dec-old", "Sessions live in Redis.\n", status="archived")  # squashed, unsigned
    ruled.commit()
    ruled.git("update-ref", "refs/remotes/origin/main", "HEAD")
    ruled.git("switch", "--quiet", "side")
    ruled.git("merge", "--quiet", "--no-edit", "main")
    assert unowned(ruled) == []
    ruled.memory("dec-old", "Sessions live in Redis.\n", status="pinned")
    ruled.commit()
    assert paths(ruled) == ["dec-old.md"]


def test_addresses_of_owners_may_stand_where_they_are_named(sandbox: Sandbox) -> None:
    """The settings and the signers are there to name people; a memory is not."""
    address = "ann.miller@" + "acme-payments.com"
    rules = RULES.replace("ann@example.org", address).replace('"signers"', '".memory/signers"')
    sandbox.write(".memory/config.toml", rules)
    sandbox.write(".memory/signers", f"{address} ssh-ed25519 AAAA\n")
    sandbox.commit()
    assert check(sandbox.context()).problems == ()
    assert check(sandbox.context(), history=True).problems == ()
    sandbox.write(".memory/other", f"{address}\n")
    assert [problem.path for problem in check(sandbox.context()).problems] == [".memory/other"]
    sandbox.write(".memory/config.toml", f"# {address}\n")
    places = {problem.path for problem in check(sandbox.context()).problems}
    assert places == {".memory/config.toml", ".memory/other", ".memory/signers"}


def test_a_partial_clone_says_that_it_cannot_know(ruled: Sandbox) -> None:
    """If a removed memory is not here, the check does not claim that no rule applied."""
    ruled.git("rm", "--quiet", ".memory/decision/2026-02/dec-old.md")
    ruled.git("commit", "--quiet", "-m", "gone\n\nPurges: dec-old")
    ruled.git("config", "uploadpack.allowFilter", "true")
    ruled.git("clone", "--quiet", "--filter=blob:limit=150", f"file://{ruled.path}", "far")
    clone = Sandbox(ruled.path / "far", ruled.env)
    with pytest.raises(MemtoolError, match="this partial clone lacks"):
        unowned(clone)


def test_a_memory_that_moves_or_cannot_be_read_is_owned_as_well(ruled: Sandbox) -> None:
    """Neither another place, nor a link, nor garbage takes it out of the hands of its owner."""
    path = ".memory/decision/2026-02/dec-old.md"
    ruled.git("mv", path, ".memory/dec-old.md")
    ruled.commit()
    assert paths(ruled) == ["dec-old.md", "dec-old.md"]
    ruled.git("reset", "--quiet", "--hard", "base")
    (ruled.path / path).unlink()
    (ruled.path / path).symlink_to("elsewhere")
    ruled.commit()
    assert paths(ruled) == ["dec-old.md"]
    ruled.git("reset", "--quiet", "--hard", "base")
    ruled.write(path, b"\x00garbage")
    ruled.commit()
    assert paths(ruled) == ["dec-old.md"]
    ruled.git("tag", "--force", "base")
    ruled.git("rm", "--quiet", path)
    ruled.git("commit", "--quiet", "-m", "gone")
    assert paths(ruled) == ["dec-old.md"]
