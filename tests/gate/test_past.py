from __future__ import annotations

from conftest import Sandbox

from memtool.commands.check import check
from memtool.gate import sources

KEY = "AK" + "IA" + "QWERTYUIOPASDFGH"


def test_every_ref_and_every_version_is_searched(sandbox: Sandbox) -> None:
    """Each secret is told once, with the commit that first held it and its author."""
    sandbox.memory("dec-a", f"The key is {KEY}.\n")
    first = sandbox.commit()
    sandbox.memory("dec-a", "The key is gone.\n")
    sandbox.commit()
    sandbox.git("checkout", "--quiet", "-b", "side")
    sandbox.write(".memory/config.toml", f"# {KEY}\n")
    second = sandbox.commit()
    sandbox.git("checkout", "--quiet", "main")
    sandbox.git("tag", "kept", "side")
    sandbox.git("branch", "--quiet", "-D", "side")
    found = check(sandbox.context(), history=True)
    assert [(p.path, p.code, p.line) for p in found.problems] == [
        (".memory/config.toml", "secret", 1),
        (".memory/decision/2026-02/dec-a.md", "secret", 10),
    ]
    assert [commit[:10] in p.message for p, commit in zip(
        found.problems, (second, first), strict=True)] == [True, True]  # fmt: skip
    assert all("by Ada on 2026-02-" in problem.message for problem in found.problems)
    assert KEY not in repr(found)
    assert (found.checked, found.exit_code) == (3, 1)


def test_only_the_memory_directory_is_searched(sandbox: Sandbox) -> None:
    """The rest of the repository has other scanners."""
    sandbox.write("src/key.py", f"KEY = '{KEY}'\n")
    sandbox.commit()
    assert check(sandbox.context(), history=True).checked == 0


def test_no_history_is_no_problem(sandbox: Sandbox) -> None:
    """Before the first commit there is nothing to find."""
    assert check(sandbox.context(), history=True).problems == ()


def test_batches_find_what_one_pass_finds(sandbox: Sandbox, monkeypatch) -> None:
    """However few blobs are in memory at once, none is passed over."""
    for number in range(7):
        sandbox.memory(f"dec-{number:03}", f"Number {number}: {KEY if number % 3 == 0 else ''}.\n")
        sandbox.commit()
    whole = check(sandbox.context(), history=True)
    monkeypatch.setattr(sources, "HISTORY_BATCH", 2)
    assert check(sandbox.context(), history=True) == whole
    assert (whole.checked, len(whole.problems)) == (7, 3)
