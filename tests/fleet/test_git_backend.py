"""The embedded backend: synchronisation, queries, and bad repositories."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path

import pytest
from fleet_scene import Fleet

from memtool.errors import MemtoolError
from memtool.fleet import git_backend
from memtool.fleet.backend import FleetCandidate, FleetQuery, FleetUnavailable, build_terms
from memtool.fleet.git_backend import NOT_ALLOWED, GitBackend, read_state
from memtool.fleet.repositories import MAX_PACKS, open_bare
from memtool.index import scoring
from memtool.memory import document, timestamps

NOW = timestamps.parse("2026-03-01T12:00:00Z")


def ask(fleet: Fleet, question: str, **which: tuple[str, ...] | int) -> list[FleetCandidate]:
    """The candidates for a question."""
    weights = scoring.content_terms(scoring.parse_question(question))
    return GitBackend(fleet.home, NOW).find_candidates(FleetQuery(weights, **which), 1.0)


def ids(candidates: Iterable[FleetCandidate]) -> list[str]:
    """The ids of candidates, sorted."""
    return sorted(candidate.path.rpartition("/")[2].removesuffix(".md") for candidate in candidates)


def names(fleet: Fleet) -> dict[str, tuple[int, str]]:
    """Memories and problem of each row of the last sync, by name or else by source."""
    state = read_state(fleet.home)
    assert state is not None
    return {row.name or row.source: (row.count, row.problem) for row in state.repositories}


def test_candidates_of_all_repositories_come_as_they_are_in_git(acme: Fleet) -> None:
    """Each with its repository, trusted commit, path and bytes, and the terms of these."""
    candidates = ask(acme, "sessions in redis")
    assert {candidate.repository for candidate in candidates} == {"acme/shop", "other/billing"}
    for candidate in candidates:
        folder = {"acme/shop": "acme/shop", "other/billing": "other/billing-work"}
        place = acme.folder / "src" / folder[candidate.repository]
        assert candidate.data == (place / candidate.path).read_bytes()
        assert candidate.text == build_terms(document.read(candidate.data, candidate.path))
        head = (place / ".git/refs/heads/main").read_text().strip()
        assert candidate.commit == head
    assert {candidate.team for candidate in candidates if candidate.repository == "acme/shop"} == {
        "web"
    }


def test_only_living_heads_without_a_label_are_candidates(acme: Fleet) -> None:
    """Superseded, expired or confidential memories are not; their successors are."""
    assert ids(ask(acme, "sessions")) == ["dec-ledger", "dec-new", "dec-redis", "sem-login"]
    earlier = timestamps.parse("2026-02-24T00:00:00Z")
    weights = {"session": 1.0}
    candidates = GitBackend(acme.home, earlier).find_candidates(FleetQuery(weights), 1.0)
    assert "sta-past" in ids(candidates)


@pytest.mark.parametrize(
    ("which", "expected"),
    [
        ({"repositories": ("acme/*",)}, ["dec-new", "dec-redis", "sem-login"]),
        ({"repositories": ("*/billing", "none/*")}, ["dec-ledger"]),
        ({"teams": ("web",)}, ["dec-new", "dec-redis", "sem-login"]),
        ({"teams": ("core",)}, []),
        ({"types": ("semantic",)}, ["sem-login"]),
        ({"tags": ("AUTH*",)}, ["sem-login"]),
        ({"allow": ("other/*",)}, ["dec-ledger"]),
        ({"allow": ("other/*",), "repositories": ("acme/*",)}, []),
        ({"excluded": "acme/shop"}, ["dec-ledger"]),
    ],
)
def test_a_question_says_whose_memories_count(
    acme: Fleet, which: dict[str, tuple[str, ...]], expected: list[str]
) -> None:
    """By repository, team, type and tag, and always by what the user allows."""
    assert ids(ask(acme, "sessions", **which)) == expected


def test_one_repository_does_not_fill_the_candidates(fleet: Fleet) -> None:
    """A flood gets its share, and the others are found behind it."""
    flood = {f"dec_flood_{n}": "redis redis redis redis\n" for n in range(12)}
    fleet.near("evil/flood", **flood)
    for n in range(5):
        fleet.near(f"acme/r{n}", dec_one="Some word about redis, among many others here.\n")
    fleet.set("SRC/*/*")
    fleet.sync()
    candidates = ask(fleet, "redis", limit=10)
    assert [candidate.repository for candidate in candidates][:2] == ["evil/flood"] * 2
    assert sorted(candidate.repository for candidate in candidates)[:5] == [
        f"acme/r{n}" for n in range(5)
    ]
    assert len(candidates) == 7
    assert len(ask(fleet, "redis", limit=10, repositories=("evil/*",))) == 10


def test_what_did_not_change_is_not_indexed_again(fleet: Fleet) -> None:
    """A second sync writes no segment; one memory more indexes one repository more."""
    shop = fleet.near("acme/shop", dec_a="Alpha is here.\n")
    fleet.near("acme/pay", dec_b="Beta is here.\n")
    fleet.set("SRC/*/*")
    assert fleet.sync().indexed == 2
    before = os.listdir(f"{fleet.home}/index")
    assert fleet.sync().indexed == 0
    assert os.listdir(f"{fleet.home}/index") == before
    shop.memory("dec-c", "Gamma is new.\n")
    shop.commit()
    assert ask(fleet, "gamma") == []
    assert fleet.sync().indexed == 1
    assert ids(ask(fleet, "gamma")) == ["dec-c"]
    assert ids(ask(fleet, "alpha beta")) == ["dec-a", "dec-b"]
    shop.write("README", "no memory\n")
    commit = shop.commit()
    assert fleet.sync().indexed == 0
    assert ask(fleet, "gamma")[0].commit == commit


def test_what_is_not_trusted_is_not_asked(fleet: Fleet) -> None:
    """Neither the worktree nor another branch counts, and of a clone only what was fetched."""
    shop = fleet.near("acme/shop", dec_a="Alpha is here.\n")
    shop.memory("dec-dirty", "Alpha is not committed.\n")
    shop.git("checkout", "--quiet", "-b", "topic")
    shop.commit()
    clone = fleet.far("acme/pay", dec_b="Alpha was pushed.\n")
    clone.git("fetch", "--quiet", "origin")
    clone.memory("dec-mine", "Alpha was not pushed.\n")
    clone.commit()
    fleet.set("SRC/acme/shop", "SRC/acme/pay-work")
    fleet.sync()
    assert ids(ask(fleet, "alpha")) == ["dec-a", "dec-b"]
    assert {candidate.repository for candidate in ask(fleet, "alpha")} == {"acme/shop", "acme/pay"}
    clone.git("push", "--quiet", "origin", "main")
    assert fleet.sync().indexed == 1
    assert ids(ask(fleet, "alpha")) == ["dec-a", "dec-b", "dec-mine"]


def test_a_remote_is_one_shallow_commit_and_follows_its_default_branch(fleet: Fleet) -> None:
    """A force-push and another default branch are followed; old memories are gone."""
    work = fleet.far("acme/pay", dec_b="Alpha was pushed.\n")
    fleet.set(fleet.url("acme/pay"))
    assert "it was never fetched" in fleet.project.run("fleet", "sync", "--dry-run").stdout
    assert not os.path.exists(fleet.home)
    fleet.sync()
    clone = clone_of(fleet)
    assert (clone / "shallow").exists()
    assert not (clone / "hooks").exists()
    work.git("checkout", "--quiet", "--orphan", "next")
    work.git("rm", "-rfq", ".")
    work.memory("dec-next", "Alpha is next.\n")
    commit = work.commit()
    work.git("push", "--quiet", "origin", "next")
    assert fleet.sync().indexed == 0
    far = str(fleet.folder / "far/acme/pay.git")
    work.git("--git-dir", far, "symbolic-ref", "HEAD", "refs/heads/next")
    assert fleet.sync().indexed == 1
    (candidate,) = ask(fleet, "alpha")
    assert (candidate.commit, candidate.repository) == (commit, "acme/pay")
    fleet.set("SRC/acme/pay-work")
    fleet.sync()
    assert not clone.exists()


def clone_of(fleet: Fleet) -> Path:
    """The one clone of a fleet."""
    (clone,) = (fleet.folder / "home/.cache/memtool/fleet/clones").iterdir()
    return clone


@pytest.mark.parametrize(
    ("server", "has_all"),
    [("uploadpack.allowFilter", False), ("protocol.version", True), ("", True)],
)
def test_a_clone_holds_what_is_read_alone(fleet: Fleet, server: str, *, has_all: bool) -> None:
    """Whole commits are fetched only if the server cannot leave files out."""
    work = fleet.far("acme/mono", dec_a="Alpha is here.\n")
    far = fleet.folder / "far/acme/mono.git"
    if server:
        work.git("--git-dir", str(far), "config", "uploadpack.allowFilter", "true")
    if server == "protocol.version":
        fleet.env |= {
            "GIT_CONFIG_COUNT": "1",
            "GIT_CONFIG_KEY_0": server,
            "GIT_CONFIG_VALUE_0": "0",
        }
    fleet.set(fleet.url("acme/mono"))

    def pushed(**files: str) -> list[str]:
        for path, text in files.items():
            work.write(path, text)
        work.commit()
        work.git("push", "--quiet", "origin", "main")
        assert [row.problem for row in fleet.sync().state.repositories] == [""]
        return ids(ask(fleet, "alpha"))

    assert pushed(large="x" * 9000, path=".memtool") == ["dec-a"]
    blobs = work.git("rev-parse", "HEAD:large", "HEAD:.memory/decision/2026-02/dec-a.md").split()
    here = open_bare(str(clone_of(fleet)), fleet.env).git.list_objects()
    assert [blob in here for blob in blobs] == [has_all, True]
    work.memory("dec-b", "Alpha is there, too.\n")
    assert pushed() == ["dec-a", "dec-b"]
    work.git("mv", ".memory", "notes")
    assert pushed(**{".memtool.toml": 'directory = "notes"\n'}) == ["dec-a", "dec-b"]


def test_repositories_of_both_object_formats_are_asked(fleet: Fleet) -> None:
    """At a path and as remotes, in one segment, also where a remote was made anew in the other."""
    fleet.near("acme/old", dec_a="Alpha is old.\n")
    work = fleet.far("acme/pay", dec_b="Alpha is of the day before.\n")
    fleet.set("SRC/acme/*", fleet.url("acme/pay"))
    work.git("remote", "set-url", "origin", "https://git.example.org/acme/work.git")
    fleet.sync()
    fleet.drop("src/acme/pay-work")
    fleet.drop("far/acme/pay.git")
    fleet.env["GIT_DEFAULT_HASH"] = "sha256"
    fleet.far("acme/pay", dec_c="Alpha is new.\n")
    fleet.sync()
    candidates = ask(fleet, "alpha", repositories=("acme/old", "acme/pay"))
    assert sorted((candidate.repository, len(candidate.commit)) for candidate in candidates) == [
        ("acme/old", 40),
        ("acme/pay", 64),
    ]


@pytest.mark.parametrize("what", ["lock", "packs", "damage"])
def test_what_a_killed_sync_leaves_is_mended(fleet: Fleet, what: str) -> None:
    """A lock of git's, packs half written, damaged objects: at the second sync all is well."""
    work = fleet.far("acme/pay", dec_a="Alpha is here.\n")
    fleet.set(fleet.url("acme/pay"))
    fleet.sync()
    clone = clone_of(fleet)
    if what == "lock":
        (clone / "shallow.lock").touch()
    for number in range(MAX_PACKS * (what == "packs")):
        (clone / f"objects/pack/tmp_pack_{number}").touch()
    for pack in clone.glob("objects/pack/*.pack" if what == "damage" else "none"):
        pack.chmod(0o600)
        pack.write_bytes(pack.read_bytes()[:12] + b"x" * (pack.stat().st_size - 12))
    work.memory("dec-b", "Alpha is there, too.\n")
    work.commit()
    work.git("push", "--quiet", "origin", "main")
    fleet.sync()
    fleet.sync()
    assert names(fleet)["acme/pay"] == (2, "")
    assert ids(ask(fleet, "alpha")) == ["dec-a", "dec-b"]
    assert not list(clone.glob("objects/pack/tmp_*"))


def test_one_bad_repository_is_a_row_and_stops_no_other(fleet: Fleet) -> None:
    """Gone, damaged, without memories, of a newer format, unreachable: each says so."""
    good = fleet.near("acme/good", dec_a="Alpha is here.\n")
    good.git("worktree", "add", "--quiet", "../linked")
    none = fleet.repository("src/acme/none")
    none.write("README", "x\n")
    none.commit()
    drafts = fleet.repository("src/acme/drafts")
    drafts.memory("dec-g", "Alpha is a draft.\n", status="candidate")
    drafts.memory("dec-h", "Alpha is another.\n", status="candidate")
    drafts.commit()
    newer = fleet.near("acme/newer", dec_b="Alpha is of tomorrow.\n")
    newer.write(".memory/config.toml", "format = 99\n")
    newer.commit()
    broken = fleet.near("acme/broken", dec_c="Alpha is lost.\n")
    tree = broken.git("rev-parse", "HEAD:.memory").strip()
    blob = broken.git("ls-tree", "-r", tree).split()[2]
    lost = broken.path / f".git/objects/{blob[:2]}/{blob[2:]}"
    lost.rename(f"{lost}.away")
    odd = fleet.near("acme/odd", dec_d="Alpha is odd.\n")
    odd.write(".memory/config.toml", "[search\n")
    odd.write(".memory/decision/2026-02/dec-bad.md", "no memory\n")
    odd.commit()
    fleet.near("more/good", dec_e="Alpha as well.\n")
    fleet.repository("src/acme/empty")
    fleet.near("acme/gone", dec_f="Alpha is gone.\n")
    fleet.write(
        "SRC/acme/*",
        "SRC/more/good",
        "SRC/more/good/.memory",
        "SRC/nowhere",
        "SRC/no*where",
        "-oProxyCommand=x:y",
        "relative/path",
        "http://example.invalid/a/b",
        "ext::sh -c true",
        fleet.url("acme/absent"),
    )
    fleet.sync()
    assert ids(ask(fleet, "alpha")) == ["dec-a", "dec-b", "dec-d", "dec-e", "dec-f"]
    fleet.drop("src/acme/gone")
    fleet.sync()
    assert ids(ask(fleet, "alpha")) == ["dec-a", "dec-b", "dec-d", "dec-e"]
    rows = names(fleet)
    problems = {key.rpartition("/src/")[2]: problem for key, (_count, problem) in rows.items()}
    assert rows["acme/good"] == rows["more/good"] == (1, "")
    assert problems["acme/newer"].startswith("its memories have format 99")
    assert problems["acme/broken"].startswith("its memories cannot be read: ")
    assert problems["acme/odd"].startswith("its settings cannot be read: ")
    assert problems["more/good/.memory"] == "it is not the top of a git repository"
    assert problems["nowhere"] == "the folder does not exist"
    assert problems["no*where"] == "no repository is there"
    assert problems["-oProxyCommand=x:y"].startswith("it is neither an absolute path")
    assert problems["relative/path"].startswith("it is neither an absolute path")
    assert problems["http://example.invalid/a/b"].startswith("http is no protocol that is fetched")
    assert problems["ext::sh -c true"].startswith("ext is no protocol")
    assert "git fetch failed" in problems[fleet.url("acme/absent")]
    state = read_state(fleet.home)
    assert state is not None
    assert {row.name: row.note for row in state.repositories if row.note} == {
        "acme/none": "no .memory in its default branch, as last pushed",
        "acme/empty": "it has no commit",
        "acme/drafts": "none of 2 memories counts, the first since nobody confirmed it",
        "acme/odd": "1 file is not a memory",
    }
    assert not rows["acme/none"][1] + rows["acme/empty"][1] + rows["acme/drafts"][1]
    lost.with_name(f"{lost.name}.away").rename(lost)
    done = fleet.project.run("fleet", "sync")
    assert done.returncode == 1
    *lines, _totals = done.stdout.splitlines()
    problems = [problem for _count, problem in names(fleet).values() if problem]
    last = "\n".join(lines[-len(problems) :])
    assert all(problem in last for problem in problems), "problems are next to the totals"
    rows = names(fleet)
    assert rows["acme/broken"] == (1, "")
    assert "acme/linked" not in rows


def test_a_remote_with_a_relative_address_names_nothing(fleet: Fleet) -> None:
    """The folder does, as it does without a remote."""
    shop = fleet.near("acme/shop", dec_a="Alpha is here.\n")
    shop.git("remote", "add", "origin", "./.git/origin.git")
    fleet.set("SRC/*/*")
    fleet.sync()
    assert list(names(fleet)) == ["acme/shop"]


def test_a_remote_that_is_gone_stays_as_it_was_fetched(fleet: Fleet) -> None:
    """Its memories are still searched, with the problem noted, until it is back."""
    fleet.far("acme/pay", dec_b="Alpha was pushed.\n")
    fleet.set(fleet.url("acme/pay"))
    fleet.sync()
    place = fleet.folder / "far/acme/pay.git"
    place.rename(f"{place}.away")
    fleet.sync()
    assert ids(ask(fleet, "alpha")) == ["dec-b"]
    assert names(fleet)["acme/pay"][1].startswith("as it was last fetched; now git fetch failed")
    place.with_name("pay.git.away").rename(place)
    fleet.sync()
    assert names(fleet)["acme/pay"] == (1, "")


def test_two_repositories_of_one_name_are_one(fleet: Fleet) -> None:
    """The first counts; the other is reported, and no memory is listed twice under a name."""
    fleet.far("acme/pay", dec_b="Alpha was pushed.\n")
    fleet.set(fleet.url("acme/pay"), "SRC/acme/pay-work")
    fleet.sync()
    state = read_state(fleet.home)
    assert state is not None
    assert [(row.name, row.count, row.problem) for row in state.repositories] == [
        ("acme/pay", 1, ""),
        ("acme/pay", 0, f"{fleet.url('acme/pay')} is acme/pay already"),
    ]
    assert len(ask(fleet, "alpha")) == 1


def test_an_index_that_is_damaged_or_absent_is_no_traceback(fleet: Fleet) -> None:
    """Who asks hears to sync, and the sync makes all of it again."""
    with pytest.raises(FleetUnavailable, match="memtool fleet sync"):
        ask(fleet, "alpha")
    with pytest.raises(MemtoolError, match="cannot ask other repositories"):
        fleet.sync()
    fleet.near("acme/shop", dec_a="Alpha is here.\n")
    fleet.set("SRC/*/*")
    fleet.sync()
    index = fleet.folder / "home/.cache/memtool/fleet/index"
    for file in index.glob("*.db"):
        file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
    git_backend._open_fleets.clear()  # as in another process
    with pytest.raises(FleetUnavailable, match="memtool fleet sync"):
        ask(fleet, "alpha")
    fleet.sync()
    assert ids(ask(fleet, "alpha")) == ["dec-a"]
    shutil.rmtree(index)
    with pytest.raises(FleetUnavailable, match="memtool fleet sync"):
        ask(fleet, "alpha")


def test_a_sync_makes_an_index_anew_in_which_a_row_is_damaged(fleet: Fleet) -> None:
    """Damage that only the sync meets is mended by it."""
    shop = fleet.near("acme/shop", dec_a="Alpha is here.\n")
    fleet.near("acme/pay", dec_b="Alpha is paid.\n")
    fleet.set("SRC/*/*")
    fleet.sync()
    (database,) = Path(fleet.home, "index").glob("*.db")
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("UPDATE posting SET data = x'00'")
        connection.commit()
    shop.memory("dec-c", "Alpha is new.\n")
    shop.commit()
    fleet.sync()
    assert ids(ask(fleet, "alpha")) == ["dec-a", "dec-b", "dec-c"]


def test_many_syncs_give_the_answers_of_one(fleet: Fleet) -> None:
    """However often repositories change, come and go, the index is as if it were built now."""
    shops = [fleet.near(f"acme/r{n}", dec_a=f"Alpha {n}.\n") for n in range(3)]
    fleet.set("SRC/*/*")
    for turn in range(6):
        shop = shops[turn % 3]
        shop.memory(f"dec-t{turn}", f"Alpha turn {turn}.\n")
        shop.commit()
        fleet.sync()
    shutil.rmtree(shops[1].path)
    fleet.sync()
    candidates = ask(fleet, "alpha turn")
    assert (
        len(candidates)
        == len({(candidate.repository, candidate.path) for candidate in candidates})
        == 6
    )
    shutil.rmtree(f"{fleet.home}/index")
    fleet.sync()
    assert ask(fleet, "alpha turn") == candidates


def test_the_verbs_say_what_there_is(acme: Fleet) -> None:
    """Status and sync list every repository, with memories, team, commit and size."""
    shown = acme.project.json("fleet", "status")
    assert {
        (repository["repository"], repository["memories"], repository["team"])
        for repository in shown["repositories"]
    } == {
        ("acme/pay", 1, ""),
        ("acme/shop", 5, "web"),
        ("other/billing", 1, ""),
    }
    assert (shown["memories"], shown["synced"]) == (7, "2026-03-01T12:00:00Z")
    assert shown["size"] > 1000
    done = acme.project.run("fleet", "sync", "--dry-run")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1].endswith("0 would be indexed anew")
    text = acme.project.run("fleet").stdout
    assert "acme/shop" in text
    assert "3 repositories, 7 memories, " in text


def test_without_a_fleet_the_verbs_say_how_to_set_one(fleet: Fleet) -> None:
    """One sentence and a command, also outside of every repository; only sync is refused."""
    for verb, status in (("status", 0), ("sync", 2)):
        for place in (fleet.project.path, fleet.folder):
            done = fleet.project.run("fleet", verb, cwd=place)
            assert done.returncode == status
            assert "cannot ask other repositories" in done.stderr
            assert ": memtool --global config fleet.repositories" in done.stderr
    fleet.set("SRC/*")
    (settings,) = (fleet.folder / "home").glob("**/config.toml")
    assert fleet.project.run("fleet", "status", cwd=settings.parent).returncode == 0
    settings.write_text('[fleet]\nrepositories = "not a list"\n')
    assert "fleet.repositories must be a list" in fleet.project.run("fleet", "sync").stderr


def test_no_password_of_a_remote_is_shown(fleet: Fleet) -> None:
    """A remote with one in it is named without, wherever it is told of."""
    fleet.set("SRC/*")
    (settings,) = (fleet.folder / "home").glob("**/config.toml")
    remote = "https://ann:hunter2@localhost:1/acme/shop.git"
    settings.write_text(f'[fleet]\nrepositories = ["{remote}"]\n')
    done = fleet.project.run("fleet", "sync", "--json")
    assert done.returncode == 1
    assert "hunter2" not in done.stdout + done.stderr + fleet.project.run("fleet").stdout
    assert "https://localhost:1/acme/shop.git" in done.stdout
    fleet.far("acme/pay", dec_b="Alpha was pushed.\n")
    remote = fleet.url("acme/pay").replace("//", "//ann:hunter2@", 1)
    settings.write_text(f'[fleet]\nrepositories = ["{remote}"]\n')
    fleet.env |= {
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": f"url.{fleet.url('acme/pay')}.insteadOf",
        "GIT_CONFIG_VALUE_0": remote,
    }
    assert fleet.sync().state.repositories[0].count == 1
    files = [path for path in Path(fleet.home).rglob("*") if path.is_file()]
    assert not [path for path in files if b"hunter2" in path.read_bytes()]


def test_what_is_not_allowed_is_not_indexed(fleet: Fleet) -> None:
    """A flood that is not allowed moves no statistics; once allowed it is searched again."""
    fleet.near("acme/shop", dec_redis="We keep sessions in redis.\n")
    fleet.near("evil/flood", **{f"dec_flood_{n}": "redis sessions\n" for n in range(4)})
    fleet.set("SRC/acme/*", "SRC/evil/*")
    assert fleet.sync().state.repositories[1].count == 4
    for allow, count, note in (("acme/*", 0, NOT_ALLOWED), ("*", 4, "")):
        assert fleet.project.run("--global", "config", "fleet.allow", allow).returncode == 0
        row = fleet.sync().state.repositories[1]
        assert (row.name, row.count, row.note) == ("evil/flood", count, note)
        reader = GitBackend(fleet.home, 0).open_fleet().reader
        assert reader.df("redi") == 1 + count
