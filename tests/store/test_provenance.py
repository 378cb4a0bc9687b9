"""Provenance: what git can prove of the present bytes, and no word more."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest
from conftest import Sandbox
from hypothesis import given
from hypothesis import strategies as st

from memtool.errors import MemtoolError
from memtool.memory.trust import Origin
from memtool.store import bases, facts, provenance
from memtool.store.bases import CITATION
from memtool.store.provenance import Basis, Citation, ProvenanceReader
from memtool.store.state import close_shared


def origins(sandbox: Sandbox, at: str | None = None, **settings: str) -> dict[str, Origin]:
    """Origins by id."""
    tree = sandbox.context().tree(at)
    by_path = ProvenanceReader(tree.location, **settings).origins(tree.records)
    return {record.id: by_path[record.path] for record in tree.records}


def trust(sandbox: Sandbox, at: str | None = None, **settings: str) -> dict[str, str]:
    return {id_: origin.trust for id_, origin in origins(sandbox, at, **settings).items()}


def publish(sandbox: Sandbox) -> None:
    """Let the present commit be the remote's default branch, as last fetched."""
    sandbox.git("update-ref", "refs/remotes/origin/main", "HEAD")


def test_trust_rises_from_file_to_commit_to_trusted_ref(sandbox: Sandbox) -> None:
    """Local, committed, trusted: each needs the same bytes at the same path."""
    sandbox.memory("dec-trusted")
    sandbox.memory("dec-edited")
    sandbox.memory("dec-staged", "one\n")
    sandbox.commit()
    publish(sandbox)
    sandbox.memory("dec-committed")
    sandbox.memory("dec-changed")
    sandbox.commit()
    sandbox.memory("dec-edited", "other\n")
    sandbox.memory("dec-staged", "two\n")
    sandbox.git("add", ".memory")
    sandbox.memory("dec-local")
    assert trust(sandbox) == {
        "dec-trusted": "trusted",
        "dec-edited": "local",
        "dec-staged": "local",
        "dec-committed": "committed",
        "dec-changed": "committed",
        "dec-local": "local",
    }
    assert set(trust(sandbox, "HEAD").values()) == {"trusted", "committed"}
    assert set(trust(sandbox, "HEAD~1").values()) == {"trusted"}


def test_the_same_bytes_at_another_path_are_not_trusted(sandbox: Sandbox) -> None:
    """A copy in another directory proves nothing."""
    path = sandbox.memory("dec-a")
    sandbox.commit()
    publish(sandbox)
    sandbox.git("mv", path, ".memory/dec-a.md")
    sandbox.commit()
    assert trust(sandbox) == {"dec-a": "committed"}


def test_nothing_is_committed_before_the_first_commit(sandbox: Sandbox) -> None:
    """On an unborn branch everything is local, and no commit is named."""
    sandbox.memory("dec-a")
    sandbox.git("add", ".")
    assert origins(sandbox) == {"dec-a": Origin("", "", 0, "local")}


def test_commit_author_and_date_are_those_of_the_present_bytes(sandbox: Sandbox) -> None:
    """The last commit that wrote the file is named, not later ones that wrote others."""
    sandbox.memory("dec-a", "one\n")
    sandbox.commit()
    sandbox.memory("dec-a", "two\n")
    sandbox.memory("dec-b")
    second = sandbox.commit()
    sandbox.write("other", "")
    sandbox.commit()
    origin = origins(sandbox)["dec-a"]
    date = int(sandbox.git("log", "-1", "--format=%at", second))
    assert origin == Origin(second, "Ada", date, "committed")
    assert provenance.cite("dec-a", origin) == f"dec-a@{second[:10]}"


def test_a_merge_that_kept_one_side_names_its_author(sandbox: Sandbox) -> None:
    """A commit dropped by a merge is not the origin, however new it is."""
    for id_ in ("dec-a", "dec-b"):
        sandbox.memory(id_, "base\n")
    sandbox.commit()
    sandbox.memory("dec-a", "ours\n")
    ours = sandbox.commit()
    sandbox.git("checkout", "--quiet", "-b", "theirs", "HEAD~1")
    sandbox.memory("dec-a", "theirs\n")
    sandbox.memory("dec-b", "theirs\n")
    theirs = sandbox.commit()
    sandbox.git("checkout", "--quiet", "main")
    sandbox.git("merge", "--quiet", "--no-edit", "-X", "ours", "theirs")
    commits = {id_: origin.commit for id_, origin in origins(sandbox).items()}
    assert commits == {"dec-a": ours, "dec-b": theirs}


def test_a_merge_that_made_new_bytes_is_their_origin(sandbox: Sandbox) -> None:
    """Where the result is on neither side, the merge wrote it."""
    path = sandbox.memory("dec-a", "base\n")
    sandbox.commit()
    sandbox.git("checkout", "--quiet", "-b", "theirs")
    sandbox.memory("dec-a", "theirs\n")
    sandbox.commit()
    sandbox.git("checkout", "--quiet", "main")
    sandbox.memory("dec-a", "ours\n")
    sandbox.commit()
    sandbox.git("merge", "theirs", check=False)
    sandbox.memory("dec-a", "both\n")
    merge = sandbox.commit("merge", path)
    assert origins(sandbox)["dec-a"].commit == merge


def test_dates_that_were_made_up_do_not_change_the_origin(sandbox: Sandbox) -> None:
    """Which commit is the last follows from descent, not from what its author wrote for a date."""
    sandbox.memory("dec-a", "one\n")
    sandbox.commit()
    sandbox.git("checkout", "--quiet", "-b", "side")
    sandbox.write("x", "")
    sandbox.commit()
    sandbox.git("checkout", "--quiet", "main")
    sandbox.memory("dec-a", "two\n")
    sandbox.git("add", ".memory")
    old = {"GIT_AUTHOR_DATE": "1999-01-01T00:00:00Z", "GIT_COMMITTER_DATE": "1999-01-01T00:00:00Z"}
    subprocess.run(
        ["git", "commit", "--quiet", "-m", "old"],
        cwd=sandbox.path,
        env=sandbox.env | old,
        check=True,
    )
    backdated = sandbox.git("rev-parse", "HEAD").strip()
    sandbox.git("merge", "--quiet", "--no-edit", "side")
    assert origins(sandbox)["dec-a"].commit == backdated


def test_the_answer_does_not_depend_on_what_else_is_asked(sandbox: Sandbox) -> None:
    """One record and all of them, few or many, get the same commits."""
    for number in range(60):
        sandbox.memory(f"dec-{number:02}")
        if number % 7 == 0:
            sandbox.commit()
    sandbox.commit()
    tree = sandbox.context().tree()
    together = ProvenanceReader(tree.location).origins(tree.records)
    for record in tree.records[::13]:
        assert ProvenanceReader(tree.location).origins([record]) == {
            record.path: together[record.path]
        }
    assert ProvenanceReader(tree.location).origins([]) == {}


def test_a_forged_author_changes_nothing_about_trust(sandbox: Sandbox) -> None:
    """The name is what the commit says, odd characters and dates included; trust is git's."""
    sandbox.memory("dec-a")
    sandbox.git("add", ".")
    for author in ("Linus <torvalds@example.org>", "a\x1b[31m\tb <x@example.org>"):
        sandbox.git("commit", "--quiet", "--allow-empty", "--author", author, "-m", "x")
    assert trust(sandbox) == {"dec-a": "committed"}
    raw = sandbox.git("cat-file", "commit", "HEAD~1")
    name = raw.partition("author ")[2].partition(" <")[0]
    for date in ("99999999999999999999 +0000", "-1 +0000", "yesterday", ""):
        forged = "\n".join(
            f"author {name} <a@example.org> {date}" if line.startswith("author ") else line
            for line in raw.split("\n")
        )
        (sandbox.path.parent / "raw").write_text(forged)
        commit = sandbox.git(
            "hash-object", "-t", "commit", "-w", "--literally", str(sandbox.path.parent / "raw")
        ).strip()
        sandbox.git("update-ref", "refs/heads/main", commit)
        origin = origins(sandbox)["dec-a"]
        assert (origin.trust, origin.commit, origin.author) == ("committed", commit, "Linus")


def test_a_replaced_commit_or_object_is_not_looked_at(sandbox: Sandbox) -> None:
    """Replace refs of a repository change neither bytes nor authors."""
    sandbox.memory("dec-a")
    real = sandbox.commit()
    sandbox.git("commit", "--quiet", "--amend", "--author", "Eve <eve@example.org>", "-m", "x")
    fake = sandbox.git("rev-parse", "HEAD").strip()
    sandbox.git("update-ref", "refs/heads/main", real)
    sandbox.git("replace", real, fake)
    assert origins(sandbox)["dec-a"].author == "Ada"


def test_shallow_clones_say_so(sandbox: Sandbox, tmp_path: Path) -> None:
    """Where history was cut off the boundary's author is not taken for that of older files."""
    sandbox.memory("dec-old")
    sandbox.commit()
    sandbox.write("x", "")
    sandbox.commit()
    sandbox.git("clone", "--quiet", "--depth", "1", f"file://{sandbox.path}", str(tmp_path / "c"))
    clone = Sandbox(tmp_path / "c", sandbox.env)
    clone.memory("dec-new")
    made = clone.commit()
    by_id = origins(clone, allowed_signers="x")
    assert by_id["dec-old"] == Origin("", "", 0, "trusted", is_shallow=True)
    assert provenance.cite("dec-old", by_id["dec-old"]) == "dec-old@shallow"
    assert (by_id["dec-new"].commit, by_id["dec-new"].is_shallow) == (made, False)
    assert clone.context().repository.is_shallow
    assert provenance.cite("dec-x", None) == "dec-x@local"


def test_the_trusted_ref_is_the_remotes_default_branch_or_the_configured_one(
    sandbox: Sandbox,
) -> None:
    """origin/HEAD wins over main and master; a configured ref that is missing is an error."""
    sandbox.memory("dec-a")
    first = sandbox.commit()
    repository = sandbox.context().repository
    assert provenance.resolve_trusted(repository, "") == ""
    second = sandbox.commit() if sandbox.memory("dec-b") else ""
    sandbox.git("update-ref", "refs/remotes/origin/master", first)
    assert provenance.resolve_trusted(repository, "") == first
    sandbox.git("update-ref", "refs/remotes/origin/main", second)
    assert provenance.resolve_trusted(repository, "") == second
    sandbox.git("symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/gone")
    assert provenance.resolve_trusted(repository, "") == second
    sandbox.git("symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/master")
    assert provenance.resolve_trusted(repository, "") == first
    assert provenance.resolve_trusted(repository, "main") == second
    for absent in ("gone", "--all", "a..b"):
        with pytest.raises(MemtoolError, match="does not exist here"):
            provenance.resolve_trusted(repository, absent)


def sign(sandbox: Sandbox, name: str) -> str:
    """Make a key, sign from now on with it, and return its line for an allowed-signers file."""
    key = sandbox.path.parent / name
    subprocess.run(
        ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", str(key)], check=True
    )
    for setting, value in (
        ("gpg.format", "ssh"),
        ("user.signingKey", f"{key}.pub"),
        ("commit.gpgSign", "true"),
    ):
        sandbox.git("config", setting, value)
    return f"{name}@example.org {key.with_suffix('.pub').read_text()}"


@pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="ssh-keygen makes the signatures")
def test_signed_needs_a_key_that_the_trusted_ref_allows(sandbox: Sandbox) -> None:
    """A good signature of a listed key on the last trusted commit; each part is needed."""
    line = sign(sandbox, "ada")
    sandbox.write("signers", line)
    sandbox.memory("dec-signed")
    sandbox.commit()
    sandbox.git("config", "commit.gpgSign", "false")
    sandbox.memory("dec-unsigned")
    sandbox.commit()
    stranger = sign(sandbox, "eve")
    sandbox.memory("dec-stranger")
    sandbox.commit()
    publish(sandbox)
    sandbox.write("signers", line + stranger)  # of the branch, not of the trusted ref
    sandbox.memory("dec-branch")
    sandbox.commit()
    assert trust(sandbox, allowed_signers="signers") == {
        "dec-signed": "signed",
        "dec-unsigned": "trusted",
        "dec-stranger": "trusted",
        "dec-branch": "committed",
    }
    assert set(trust(sandbox, allowed_signers="absent").values()) == {"trusted", "committed"}
    assert set(trust(sandbox, allowed_signers="../signers").values()) == {"trusted", "committed"}
    assert "signed" not in trust(sandbox).values()


@pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="ssh-keygen makes the signatures")
def test_a_signature_outside_of_the_trusted_ref_lifts_nothing(sandbox: Sandbox) -> None:
    """The commit that counts is the last one in the trusted ref, not a local one with its bytes."""
    sandbox.write("signers", sign(sandbox, "ada"))
    sandbox.git("config", "commit.gpgSign", "false")
    sandbox.write("signers", (sandbox.path / "signers").read_text())
    sandbox.commit()
    base = sandbox.git("rev-parse", "HEAD").strip()
    path = sandbox.memory("dec-a")
    sandbox.commit()
    publish(sandbox)
    data = (sandbox.path / path).read_bytes()
    sandbox.git("reset", "--quiet", "--hard", base)
    sandbox.write(path, data)
    sandbox.git("config", "commit.gpgSign", "true")
    sandbox.commit()
    assert trust(sandbox, allowed_signers="signers") == {"dec-a": "trusted"}


def test_keys_of_the_own_keyring_sign_nothing(sandbox: Sandbox, tmp_path: Path) -> None:
    """A signature that gpg finds good is not one of the allowed-signers file."""
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "gpg").write_text(
        "#!/bin/sh\nprintf '[GNUPG:] NEWSIG\\n[GNUPG:] GOODSIG 0123456789ABCDEF Ada\\n"
        "[GNUPG:] VALIDSIG %040d 2026-02-01 0 0 4 0 22 8 00 %040d\\n"
        "[GNUPG:] TRUST_ULTIMATE 0 pgp\\n' 1 1\n"
    )
    (programs / "gpg").chmod(0o755)
    sandbox.env["PATH"] = f"{programs}:{sandbox.env['PATH']}"
    sandbox.write("signers", "ada@example.org ssh-ed25519 AAAA\n")
    sandbox.memory("dec-a")
    sandbox.commit()
    raw = sandbox.git("cat-file", "commit", "HEAD")
    signature = "gpgsig -----BEGIN PGP SIGNATURE-----\n \n AAAA\n -----END PGP SIGNATURE-----"
    (tmp_path / "raw").write_text(raw.replace("\n\n", f"\n{signature}\n\n", 1))
    commit = sandbox.git("hash-object", "-t", "commit", "-w", str(tmp_path / "raw")).strip()
    sandbox.git("update-ref", "refs/heads/main", commit)
    publish(sandbox)
    assert sandbox.git("log", "-1", "--format=%G?").strip() == "G"
    assert trust(sandbox, allowed_signers="signers") == {"dec-a": "trusted"}


def test_names_with_any_bytes_have_origins(sandbox: Sandbox) -> None:
    """Paths that are not UTF-8, or hold line feeds, are found in the log as they are."""
    path = sandbox.memory("dec-a")
    for name in (b"\xff.md", b"new\nline.md", b":raw.md", b"commit:x.md"):
        target = os.fsencode(sandbox.path / ".memory") + b"/" + name
        shutil.copy(os.fsencode(sandbox.path / path), target)
    commit = sandbox.commit()
    listed = [entry.path for entry in sandbox.context().snapshot().entries]
    repository = sandbox.context().repository
    assert len(listed) == 5
    for many in (listed, listed + [f"x{n}" for n in range(60)]):
        last_commits = provenance.find_last_commits(repository, "HEAD", many, ".memory")
        assert last_commits == dict.fromkeys(listed, commit)


def basis(sandbox: Sandbox) -> Basis:
    current = ProvenanceReader(sandbox.context().snapshot()).basis
    assert current is not None
    return current


def database(sandbox: Sandbox) -> Path:
    """The file of the shared database, with all that was written in it."""
    close_shared()
    (path,) = (sandbox.path / ".git/memtool" / facts.FOLDER).glob("*.db")
    return path


def counts(sandbox: Sandbox, table: str) -> int:
    """Count the rows of a table."""
    cache_dir = sandbox.context().repository.cache_dir
    return facts.read(cache_dir, lambda rows: len(list(rows.find(table, "1")))) or 0


def both(sandbox: Sandbox, **settings: str) -> dict[str, Origin]:
    """Origins by id, the same from the cache and from git."""
    tree = sandbox.context().tree()
    by_path = ProvenanceReader(tree.location, **settings).origins(tree.records)
    plain = ProvenanceReader(tree.location, is_cached=False, **settings).origins(tree.records)
    assert by_path == plain
    return {record.id: by_path[record.path] for record in tree.records}


def without_git(sandbox: Sandbox) -> Sandbox:
    """The same repository for processes that cannot start git."""
    return Sandbox(sandbox.path, sandbox.env | {"PATH": "/nowhere"})


words = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
oids = st.text("0123456789abcdef", min_size=1, max_size=8)
BASIS = bases.BasisRow(0, "scope", "", "head", b"", 0)
rows = st.builds(Citation, oids, words, words, st.integers(), st.booleans(), words, words)


@given(rows)
def test_a_citation_comes_back_as_it_was_kept(row: Citation) -> None:
    """Whatever dates and names git has."""
    with tempfile.TemporaryDirectory() as place:
        basis = bases.add(place, CITATION, BASIS, {"path": row.cells})
        assert basis is not None
        cells_by_path = bases.read(place, CITATION, basis)
    assert {path: Citation.from_cells(cells) for path, cells in (cells_by_path or {}).items()} == {
        "path": row
    }


def test_a_lost_row_is_asked_of_git(sandbox: Sandbox) -> None:
    """A path that has no row is not taken for one that no commit holds."""
    sandbox.memory("dec-a")
    sandbox.commit()
    expected = both(sandbox)
    cache_dir = sandbox.context().repository.cache_dir
    facts.write(cache_dir, lambda rows: rows.remove("citation"))
    assert both(sandbox) == expected
    assert counts(sandbox, "citation") == 1


def test_the_warm_answer_starts_no_git(sandbox: Sandbox) -> None:
    """Once the table is there, citations and trust come without a child process."""
    sandbox.memory("dec-a")
    sandbox.memory("dec-b")
    sandbox.commit()
    sandbox.git("update-ref", "refs/remotes/origin/main", "HEAD")
    sandbox.memory("dec-b", "other\n")
    sandbox.memory("dec-c")
    expected = both(sandbox)
    assert [origin.trust for origin in expected.values()] == ["trusted", "local", "local"]
    first = sandbox.context()
    tree = first.tree()
    first.origins(tree, tree.records)
    ws = without_git(sandbox).context()
    assert ws.origins(tree, tree.records) == {r.path: expected[r.id] for r in tree.records}


@pytest.mark.parametrize("damage", ["empty", "cut", "flip", "folder", "none"])
def test_a_broken_cache_costs_time_only(sandbox: Sandbox, damage: str) -> None:
    """Missing, cut, changed or in the way: git answers, and the rows are whole again."""
    for name in ("a", "b", "c"):
        sandbox.memory(f"dec-{name}")
    sandbox.commit()
    expected = both(sandbox)
    place = database(sandbox)
    data = place.read_bytes()
    place.unlink()
    if damage == "folder":
        place.mkdir()
    elif damage != "none":
        bent = {"empty": b"", "cut": data[:-9], "flip": data.replace(b"Ada", b"Eve")}
        place.write_bytes(bent[damage])
    assert both(sandbox) == expected
    assert both(sandbox) == expected
    if damage == "flip":
        assert counts(sandbox, "citation") == 3


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_an_unwritable_cache_costs_time_only(sandbox: Sandbox) -> None:
    """Where nothing can be kept, git is asked every time."""
    sandbox.memory("dec-a")
    sandbox.commit()
    (sandbox.path / ".git").chmod(0o555)
    try:
        assert both(sandbox)["dec-a"].trust == "committed"
    finally:
        (sandbox.path / ".git").chmod(0o755)


@pytest.mark.slow
def test_every_history_gives_the_same_with_and_without_a_table(sandbox: Sandbox) -> None:
    """Commits, edits, reverts, deletions, renames, merges, resets: never another origin."""
    draw = random.Random(5)
    sandbox.memory("dec-0")
    sandbox.commit()
    for step in range(1, 26):
        kind = draw.choice(("add", "edit", "edit", "delete", "merge", "reset", "push", "none"))
        name = f"dec-{draw.randrange(step)}"
        if kind == "add":
            sandbox.memory(f"dec-{step}")
        elif kind == "edit":
            sandbox.memory(name, draw.choice(("one\n", "two\n")))
        elif kind == "delete":
            sandbox.git(
                "rm", "--quiet", "-f", "--ignore-unmatch", f".memory/decision/2026-02/{name}.md"
            )
        elif kind == "merge":
            sandbox.git("checkout", "--quiet", "-b", f"side{step}", "HEAD~1", check=False)
            sandbox.memory(f"dec-side{step}")
            sandbox.memory(name, "two\n")
            sandbox.git("add", ".")
            sandbox.git("commit", "--quiet", "--allow-empty", "-m", "side")
            sandbox.git("checkout", "--quiet", "main")
            sandbox.git("merge", "--quiet", "--no-edit", "-X", "ours", f"side{step}", check=False)
        elif kind == "reset":
            sandbox.git("reset", "--quiet", "--hard", "HEAD~1", check=False)
        elif kind == "push":
            sandbox.git("update-ref", "refs/remotes/origin/main", "HEAD")
        sandbox.git("add", "--all")
        sandbox.git("commit", "--quiet", "--allow-empty", "-m", kind)
        both(sandbox)
    assert counts(sandbox, "basis") <= bases.BASES_PER_WORKTREE


def test_a_plain_commit_moves_the_rows_on(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a straight commit only what it touched is looked for in history and written."""
    for name in "abc":
        sandbox.memory(f"dec-{name}")
    first = sandbox.commit()
    both(sandbox)
    sandbox.memory("dec-b", "other\n")
    sandbox.git("rm", "-q", ".memory/decision/2026-02/dec-c.md")
    second = sandbox.commit()
    expected = both(sandbox)
    assert {id_: origin.commit for id_, origin in expected.items()} == {
        "dec-a": first,
        "dec-b": second,
    }
    assert (counts(sandbox, "basis"), counts(sandbox, "citation")) == (1, 3)
    monkeypatch.setattr(provenance, "find_last_commits", lambda *_a, **_k: pytest.fail("walked"))
    sandbox.memory("dec-a", "other\n")
    third = sandbox.commit()
    tree = sandbox.context().tree()
    by_path = ProvenanceReader(tree.location).origins(tree.records)
    assert sorted(origin.commit for origin in by_path.values()) == sorted((second, third))


def test_a_worktree_has_rows_of_its_own_once_it_moves_on(sandbox: Sandbox, tmp_path: Path) -> None:
    """Two worktrees share the rows of a commit; a commit of one leaves the other its rows."""
    sandbox.memory("dec-a")
    sandbox.commit()
    both(sandbox)
    sandbox.git("worktree", "add", "-q", "-b", "side", str(tmp_path / "side"))
    side = Sandbox(tmp_path / "side", sandbox.env)
    both(side)
    assert counts(sandbox, "basis") == 1
    side.memory("dec-a", "other\n")
    side.commit()
    both(side)
    assert counts(sandbox, "basis") == 2
    assert [both(worktree)["dec-a"] for worktree in (sandbox, side)] == [
        origins(worktree, is_cached=False)["dec-a"] for worktree in (sandbox, side)
    ]


def test_rows_that_moved_on_meanwhile_are_not_used(sandbox: Sandbox) -> None:
    """Who has found the rows of a commit asks git once they are those of another one."""
    sandbox.memory("dec-a", "one\n")
    first = sandbox.commit()
    tree = sandbox.context().tree("HEAD")
    early = ProvenanceReader(tree.location)
    assert [origin.commit for origin in early.origins(tree.records).values()] == [first]
    sandbox.memory("dec-a", "two\n")
    sandbox.commit()
    both(sandbox)
    assert [origin.commit for origin in early.origins(tree.records).values()] == [first]


def test_what_cannot_be_written_is_made_again(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the database refuses changes the answer is as without it."""
    sandbox.memory("dec-a")
    sandbox.memory("dec-b")
    sandbox.commit()
    both(sandbox)
    monkeypatch.setattr(facts, "write", lambda *_: False)
    sandbox.memory("dec-a", "other\n")
    sandbox.git("rm", "-q", ".memory/decision/2026-02/dec-b.md")
    sandbox.commit()
    assert both(sandbox).keys() == {"dec-a"}


def test_a_table_of_another_clone_depth_is_not_used(sandbox: Sandbox, tmp_path: Path) -> None:
    """When a shallow clone is deepened, the authors become known."""
    sandbox.memory("dec-a")
    first = sandbox.commit()
    sandbox.memory("dec-b")
    sandbox.commit()
    sandbox.git("clone", "--quiet", "--depth", "1", f"file://{sandbox.path}", str(tmp_path / "c"))
    clone = Sandbox(tmp_path / "c", sandbox.env)
    assert both(clone)["dec-a"].is_shallow
    clone.git("fetch", "--quiet", "--unshallow")
    assert both(clone)["dec-a"].commit == first


def test_a_file_of_a_commit_is_read_once(sandbox: Sandbox) -> None:
    """The settings of the trusted side are kept, absent ones too; a bent copy is read anew."""
    commit = "1" * 40
    repository = sandbox.context().repository
    for data in (b"[trust]\n", None):
        name = f"x-{data!r}"
        assert provenance.read_cached_file(repository, commit, name, lambda data=data: data) == data
        assert provenance.read_cached_file(repository, commit, name, lambda: b"other") == data
    place = database(sandbox)
    place.write_bytes(place.read_bytes().replace(b"x-None", b"y-None"))
    assert provenance.read_cached_file(repository, commit, "y-None", lambda: b"new") == b"new"
