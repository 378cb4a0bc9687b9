"""Publishing: what leaves, and to a real server twice, late, killed, doubled, and rewritten."""

from __future__ import annotations

import json
import random
import subprocess
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from conftest import Sandbox
from fleet.conftest import push

from memtool.errors import MemtoolError
from memtool.fleet import opensearch, publish
from memtool.fleet.opensearch import SearchServer
from memtool.fleet.publish import Partition, Publication, PublishResult

on_a_server = pytest.mark.server
KEY = "AKIA" + "Q3EGRT5DWX7PL2MN"


def drafted(sandbox: Sandbox) -> Publication:
    """Return what the repository has to publish."""
    return publish.build_publication(sandbox.context())


def sent(sandbox: Sandbox, server: SearchServer) -> PublishResult:
    """Publish what the remote has."""
    context = sandbox.context()
    return publish.publish(context, server, publish.build_publication(context))


def documents(server: SearchServer) -> dict[str, dict[str, Any]]:
    """Return the memories in the index by id."""
    server.request("POST", f"/{server.index}/_refresh", timeout_s=60)
    body = {"size": 1_000, "query": {"exists": {"field": "repo"}}}
    response = server.request("POST", f"/{server.index}/_search", body, timeout_s=60)
    return {hit["_id"]: hit["_source"] for hit in response["hits"]["hits"]}


def there(server: SearchServer, repository: str = "") -> dict[str, tuple[str, int]]:
    """Return text and version of the memories in the index by id, of all repositories or of one."""
    return {
        id_: (document["data"], document["gen"])
        for id_, document in documents(server).items()
        if not repository or id_.startswith(f"{repository}/")
    }


def called(made: Publication, repository: str) -> Publication:
    """Return a draft as another repository would have it."""
    documents = {id_: document | {"repo": repository} for id_, document in made.documents.items()}
    return made.replace(repository=repository, documents=documents)


def wanted(made: Publication) -> dict[str, tuple[str, int]]:
    """Return the same of a draft, as the index should have it."""
    return {
        f"{made.repository}/{id_}": (document["data"], document["gen"])
        for id_, document in made.documents.items()
    }


@pytest.fixture
def history(remote: Sandbox) -> list[Publication]:
    """Four states of the memories, the oldest first: two are new in each, and one is gone."""
    drafts = []
    for number in range(4):
        for name in ("a", "b"):
            remote.memory(f"dec-{name}{number}", f"State {number} of {name}.\n")
        remote.memory("dec-gone", f"It is {number}.\n", status="archived")
        if number:
            (remote.path / f".memory/decision/2026-02/dec-a{number - 1}.md").unlink()
        remote.commit()
        push(remote)
        drafts.append(drafted(remote))
    return drafts


def test_what_leaves_is_what_is_trusted(remote: Sandbox) -> None:
    """Heads of the default branch that hold; not what is local, committed here, or out of use."""
    remote.memory("dec-old", "Sessions live in Postgres.\n")
    remote.memory("dec-new", "Sessions live in Redis.\n", supersedes=("dec-old",))
    remote.memory("sem-own", "Ada is ill.\n", privacy=("Personal",))
    remote.memory("sem-done", "It is over.\n", status="archived")
    remote.write(".memory/config.toml", '[fleet]\nteam = "payments"\n')
    remote.commit()
    tip = push(remote)
    remote.memory("dec-committed", "It is on this branch.\n")
    made = drafted(remote)
    assert (made.repository, made.commit, made.gen) == ("acme/shop", tip, 1)
    assert list(made.documents) == ["dec-new"]
    assert made.documents["dec-new"]["team"] == "payments"
    assert made.kept_back == ()
    assert sum(made.left_out.values()) == 3


def test_versions_count_changes_of_memories(remote: Sandbox) -> None:
    """Other commits publish nothing, and documents cite the commit that wrote them."""
    remote.memory("dec-a")
    remote.commit()
    push(remote)
    before = drafted(remote)
    remote.write("src/app.py", "pass\n")
    remote.commit()
    push(remote)
    assert drafted(remote) == before
    remote.memory("dec-b")
    remote.commit()
    push(remote)
    assert drafted(remote).gen == before.gen + 1


def test_a_secret_is_kept_back(remote: Sandbox) -> None:
    """It was committed past the gate; it is named, not shown, and the others leave."""
    remote.memory("dec-a", "Sessions live in Redis.\n")
    remote.memory("dec-leak", f"The key of the bucket is {KEY}.\n")
    remote.write(".memory/decision/2026-02/dec-broken.md", "---\nid: [\n---\n")
    remote.commit()
    push(remote)
    done = remote.run("publish", "--dry-run", "--json")
    report = json.loads(done.stdout)
    assert done.returncode == 1
    assert [(row["id"], row["code"]) for row in report["kept_back"]] == [
        ("dec-broken", "bad-yaml"),
        ("dec-leak", "secret"),
    ]
    assert report["memories"] == 1
    assert KEY not in done.stdout + done.stderr + repr(drafted(remote).documents)


def test_a_memory_that_a_check_refuses_is_kept_back(remote: Sandbox) -> None:
    """Redaction is not all of the gate."""
    remote.memory("dec-a", "It is so.\n", supersedes=("dec-none",))
    remote.memory("dec-b", "It is so\u200b, too.\n")
    remote.commit()
    push(remote)
    codes = {problem.id: problem.code for problem in drafted(remote).kept_back}
    assert codes == {"dec-a": "dangling", "dec-b": "hidden-character"}


def test_labels_of_the_user_hold_too(remote: Sandbox) -> None:
    """A repository that stops calling a label private does not publish what carries it."""
    remote.write(".memory/config.toml", '[inject]\nexclude_privacy = ["secret"]\n')
    for label in ("secret", "private", "personal", "confidential", "public"):
        remote.memory(f"sem-{label}", f"A {label} thing.\n", privacy=(label,))
    remote.commit()
    push(remote)
    assert list(drafted(remote).documents) == ["sem-public"]


def test_a_shallow_clone_is_refused(remote: Sandbox, tmp_path: Path) -> None:
    """It cannot count, and the hint names the way out in CI."""
    for name in ("dec-a", "dec-b"):
        remote.memory(name)
        remote.commit(name)
    clone = tmp_path / "clone"
    subprocess.run(
        ["git", "clone", "-q", "--depth=1", f"file://{remote.path}", clone],
        check=True,
        env=remote.env,
    )
    done = remote.run("publish", "--dry-run", cwd=clone)
    assert done.returncode == 2
    assert "cannot publish from a shallow clone" in done.stderr
    assert "fetch-depth: 0" in done.stderr


def test_another_branch_is_refused(remote: Sandbox) -> None:
    """Unmerged memories are not published."""
    remote.memory("dec-a")
    remote.commit()
    done = remote.run("publish", "--dry-run")
    assert done.returncode == 2
    assert "has no default branch" in done.stderr
    push(remote)
    assert remote.run("publish", "--dry-run").returncode == 0
    remote.git("switch", "--quiet", "-c", "feature")
    remote.memory("dec-b")
    remote.commit()
    done = remote.run("publish", "--dry-run")
    assert done.returncode == 2
    assert "HEAD is not on origin/main, and only the default branch is published" in done.stderr


def test_a_server_must_be_named(remote: Sandbox) -> None:
    """By the user or the environment; never by the repository."""
    remote.memory("dec-a")
    remote.write(".memory/config.toml", '[fleet]\nurl = "https://evil.example.org/memories"\n')
    remote.commit()
    push(remote)
    done = remote.run("publish")
    assert done.returncode == 2
    assert "cannot publish: no server is configured" in done.stderr


def test_a_server_that_is_gone_is_an_error(
    remote: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After some tries, in one sentence."""
    monkeypatch.setattr(publish, "PAUSES_S", (0.0,))
    remote.memory("dec-a")
    remote.commit()
    push(remote)
    done = remote.run("publish", MEMTOOL_FLEET_URL="http://127.0.0.1:1/memories")
    assert done.returncode == 2
    assert "not everything was published: http://127.0.0.1:1/memories cannot be" in done.stderr
    assert "run the command again" in done.stderr


@on_a_server
def test_it_is_published_once(remote: Sandbox, server: SearchServer) -> None:
    """The second run of one commit writes nothing; the command line says so."""
    remote.memory("dec-a", "Sessions live in Redis.\n")
    remote.memory("dec-b", "Queues live in Redis.\n")
    remote.commit()
    push(remote)
    first, second = (remote.run("publish", MEMTOOL_FLEET_URL=server.name) for _run in range(2))
    assert (first.returncode, second.returncode) == (0, 0)
    assert first.stdout.startswith("published acme/shop@")
    assert second.stdout.startswith("nothing is written: acme/shop@")
    assert there(server) == wanted(drafted(remote))


@on_a_server
def test_what_is_gone_is_deleted(
    remote: Sandbox, history: list[Publication], server: SearchServer
) -> None:
    """Each state takes the place of the one before, whole."""
    context = remote.context()
    for made in history:
        publish.publish(context, server, made)
        assert there(server) == wanted(made)


@on_a_server
def test_a_late_run_changes_nothing(
    remote: Sandbox, history: list[Publication], server: SearchServer
) -> None:
    """It reports that it was late, and does not fail."""
    context = remote.context()
    publish.publish(context, server, history[3])
    late = publish.publish(context, server, history[1])
    assert (late.state, late.written, late.deleted) == ("late", 0, 0)
    assert there(server) == wanted(history[3])


@on_a_server
def test_a_late_writer_sweeps_behind_itself(
    remote: Sandbox, history: list[Publication], server: SearchServer
) -> None:
    """One that had begun before the newer one, and writes what that had deleted."""
    context = remote.context()
    publish.publish(context, server, history[3])
    place = Partition(server, "acme/shop")
    place.write(history[0])
    assert there(server) != wanted(history[3])
    place.sweep(history[0])
    assert there(server) == wanted(history[3])


class Cut(Exception):
    """Where a publisher is killed."""


@on_a_server
def test_one_that_is_killed_is_mended_by_the_next(
    remote: Sandbox,
    history: list[Publication],
    server: SearchServer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Wherever that was: after each of its requests."""
    monkeypatch.setattr(publish, "BATCH_DOCUMENTS", 2)
    context, ask = remote.context(), SearchServer.send
    for requests in range(1, 40):
        old, new = (called(draft, f"acme/k{requests}") for draft in history[2:])
        publish.publish(context, server, old)
        remaining = [requests]

        def counted(*args: Any, remaining: list[int] = remaining, **kwargs: Any) -> Any:
            if not remaining[0]:
                raise Cut
            remaining[0] -= 1
            return ask(*args, **kwargs)

        with monkeypatch.context() as patch:
            patch.setattr(SearchServer, "send", counted)
            is_cut = False
            try:
                publish.publish(context, server, new)
            except Cut:
                is_cut = True
        publish.publish(context, server, new)
        assert there(server, new.repository) == wanted(new)
        if not is_cut:
            return
    raise AssertionError("it never came to its end")


@on_a_server
def test_what_a_killed_one_left_does_not_pass_for_published(
    remote: Sandbox, server: SearchServer
) -> None:
    """A reverted change gives the same files, and is still a newer version."""
    texts = ("It is so.\n", "It is not so.\n", "It is so.\n")
    drafts = []
    for text in texts:
        remote.memory("dec-a", text)
        remote.commit()
        push(remote)
        drafts.append(drafted(remote))
    context = remote.context()
    publish.publish(context, server, drafts[0])
    Partition(server, "acme/shop")._send_bulk(
        [
            (
                {
                    "index": {
                        "_id": "acme/shop/dec-a",
                        "version": drafts[1].gen,
                        "version_type": "external_gte",
                    }
                },
                drafts[1].documents["dec-a"],
            )
        ]
    )
    assert drafts[2].tree == drafts[0].tree
    publish.publish(context, server, drafts[2])
    assert there(server) == wanted(drafts[2])


@on_a_server
def test_three_at_once_end_as_the_newest(
    remote: Sandbox,
    history: list[Publication],
    server: SearchServer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """In whatever order, with pauses at random, they leave what the newest one has."""
    monkeypatch.setattr(publish, "BATCH_DOCUMENTS", 1)
    ask, chance = SearchServer.send, random.Random(17)

    def slow(*args: Any, **kwargs: Any) -> Any:
        threading.Event().wait(chance.random() / 50)
        return ask(*args, **kwargs)

    monkeypatch.setattr(SearchServer, "send", slow)
    context = remote.context()
    for round_ in range(6):
        own = [called(draft, f"acme/shop{round_}") for draft in history]
        publish.publish(context, server, own[0])
        racing = own[1:]
        chance.shuffle(racing)
        with ThreadPoolExecutor(3) as threads:
            done = threads.map(lambda made: publish.publish(context, server, made), racing)
            assert {outcome.state for outcome in done} <= {"published", "late"}
        assert there(server, own[3].repository) == wanted(own[3])


@on_a_server
def test_two_repositories_do_not_touch_each_other(
    remote: Sandbox, history: list[Publication], server: SearchServer
) -> None:
    """Nor does one with a name that begins like the other's."""
    context = remote.context()
    other = called(history[0], "acme/shop-two")
    publish.publish(context, server, other)
    for made in history:
        publish.publish(context, server, made)
    assert there(server) == wanted(history[3]) | wanted(other)


@on_a_server
def test_a_rewritten_history_needs_an_epoch(remote: Sandbox, server: SearchServer) -> None:
    """The newer version cannot be computed then, so the user must name it once."""
    for name in ("dec-a", "dec-b"):
        remote.memory(name)
        remote.commit()
    push(remote)
    sent(remote, server)
    (remote.path / ".memory/decision/2026-02/dec-b.md").unlink()
    remote.memory("dec-c")
    remote.git("add", "--all")
    remote.git("commit", "--quiet", "--amend", "--message", "rewritten")
    push(remote)
    before = there(server)
    done = remote.run("publish", MEMTOOL_FLEET_URL=server.name)
    assert done.returncode == 2
    assert "does not contain it" in done.stderr
    assert "memtool config fleet.epoch 1" in done.stderr
    assert there(server) == before
    remote.run("config", "fleet.epoch", "1")
    remote.commit()
    push(remote)
    assert remote.run("publish", MEMTOOL_FLEET_URL=server.name).returncode == 0
    assert sorted(there(server)) == ["acme/shop/dec-a", "acme/shop/dec-c"]


@on_a_server
def test_a_shorter_history_that_is_known_here_is_rewritten(
    remote: Sandbox, server: SearchServer
) -> None:
    """If the clone still has the old commit, a reset is not a late run."""
    for name in ("dec-a", "dec-b"):
        remote.memory(name)
        remote.commit()
    push(remote)
    sent(remote, server)
    remote.git("reset", "--quiet", "--hard", "HEAD~1")
    remote.memory("dec-c")
    remote.git("add", "--all")
    remote.git("commit", "--quiet", "--amend", "--message", "rewritten")
    push(remote)
    with pytest.raises(MemtoolError, match="does not contain it"):
        sent(remote, server)


@on_a_server
def test_an_index_that_is_lost_is_published_again(
    remote: Sandbox, history: list[Publication], server: SearchServer
) -> None:
    """Whole or in part: git has all of it."""
    context = remote.context()
    publish.publish(context, server, history[3])
    server.request("DELETE", f"/{server.index}", timeout_s=60)
    done = remote.run("publish", MEMTOOL_FLEET_URL=server.name)
    assert done.returncode == 2
    assert "has no index" in done.stderr
    assert "memtool fleet init" in done.stderr
    opensearch.prepare(server, shards=1, replicas=0, timeout_s=60)
    publish.publish(context, server, history[3])
    assert there(server) == wanted(history[3])
    gone = {"_id": "acme/shop/dec-b2", "version": history[3].gen, "version_type": "external_gte"}
    assert Partition(server, "acme/shop")._send_bulk([({"delete": gone}, None)]) == 0
    again = publish.publish(context, server, history[3])
    assert again.state == "published"
    assert there(server) == wanted(history[3])


@on_a_server
def test_another_version_of_memtool_publishes_anew(
    remote: Sandbox,
    history: list[Publication],
    server: SearchServer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its checks may be stricter: what they keep back now is gone from the index."""
    context = remote.context()
    publish.publish(context, server, history[3])
    monkeypatch.setattr(publish, "__version__", "9.9.9")
    reduced = {id_: document for id_, document in history[3].documents.items() if id_ != "dec-b1"}
    stricter = history[3].replace(documents=reduced)
    done = publish.publish(context, server, stricter)
    assert (done.state, done.deleted) == ("published", 1)
    assert there(server) == wanted(stricter)


@on_a_server
def test_a_publisher_may_write_in_anothers_name(
    remote: Sandbox, history: list[Publication], server: SearchServer
) -> None:
    """Nothing in the index proves who wrote: the name's owner sees it when it publishes next."""
    context = remote.context()
    publish.publish(context, server, history[0])
    own = {"dec-b0": history[0].documents["dec-b0"] | {"gen": 1 << 50, "data": "Forged."}}
    forged = history[0].replace(gen=1 << 50, commit="f" * 40, documents=own)
    Partition(server, "acme/shop").write(forged)
    done = publish.publish(context, server, history[3])
    assert (done.state, done.ahead) == ("late", "f" * 40)
    assert there(server)["acme/shop/dec-b0"] == ("Forged.", 1 << 50)
