"""Six months of a team: three clones, the real framework with both hooks, the real git.

Ada, Ben and Cleo share one repository. What memtool acknowledged is noted, and looked for in the
end. `python tests/test_story.py` prints what happened, month by month.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest
import yaml

from memtool.commands._layout import shorten_foreign as shorten

ROOT = Path(__file__).parents[1]
KEY = "AK" + "IA" + "QWERTYUIOPASDFGH"
CHECKED = ("memtool-check", "memtool-redact")


class Team:
    """A shared repository, the clock that everybody follows, and what was written."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.now = "2026-01-05T09:00:00Z"
        self.people: dict[str, Person] = {}
        self.acknowledged: dict[str, str] = {}
        self.story: list[str] = []
        subprocess.run(
            ["git", "init", "--quiet", "--bare", "--initial-branch=main", str(place / "origin")],
            check=True,
        )

    def tell(self, text: str) -> None:
        self.story.append(f"{self.now[:10]}  {text}")

    def joined_by(self, name: str) -> Person:
        path = self.place / name
        person = Person(self, name, path)
        subprocess.run(
            ["git", "clone", "--quiet", str(self.place / "origin"), str(path)],
            check=True,
            env=person.env,
            stderr=subprocess.DEVNULL,
        )
        person.git("config", "pull.rebase", "false")
        self.people[name] = person
        return person


class Person:
    """Somebody with a clone."""

    def __init__(self, team: Team, name: str, path: Path) -> None:
        self.team = team
        self.name = name
        self.path = path

    @property
    def env(self) -> dict[str, str]:
        import os

        home = self.team.place / f"home-{self.name}"
        home.mkdir(exist_ok=True)
        inherited = {
            k: v for k, v in os.environ.items() if not k.startswith(("GIT_", "MEMTOOL", "XDG"))
        }
        person = {f"GIT_{role}_NAME": self.name.title() for role in ("AUTHOR", "COMMITTER")}
        person |= {
            f"GIT_{role}_EMAIL": f"{self.name}@example.org" for role in ("AUTHOR", "COMMITTER")
        }
        person |= {f"GIT_{role}_DATE": self.team.now for role in ("AUTHOR", "COMMITTER")}
        return (
            inherited
            | person
            | {
                "HOME": str(home),
                "GIT_CONFIG_GLOBAL": os.devnull,
                "GIT_CONFIG_NOSYSTEM": "1",
                "MEMTOOL_NOW": self.team.now,
                "PRE_COMMIT_HOME": str(self.team.place / "pre-commit"),
            }
        )

    def run(self, *words: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            words,
            cwd=self.path,
            env=self.env,
            input=stdin,
            capture_output=True,
            text=True,
            check=False,
        )

    def git(self, *words: str) -> str:
        done = self.run("git", *words)
        assert done.returncode == 0, (words, done.stdout, done.stderr)
        return done.stdout

    def memtool(self, *words: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        done = self.run(sys.executable, "-m", "memtool", *words, stdin=stdin)
        assert "Traceback" not in done.stderr, done.stderr
        return done

    def does(self, *words: str, stdin: str = "") -> Any:
        """Run a verb that must succeed, and return what it answered as JSON."""
        done = self.memtool(*words, "--json", stdin=stdin)
        assert done.returncode == 0, (words, done.stdout, done.stderr)
        return json.loads(done.stdout)

    def writes(self, *words: str) -> str:
        """Write and commit a memory, note that it was acknowledged, and return its id."""
        answer = self.does(*words, "--commit")
        id_: str = answer["id"]
        self.team.acknowledged[id_] = answer["path"]
        self.team.tell(f"{self.name}: {words[0]} {id_}")
        return id_

    def is_refused(self, reason: str, *words: str) -> None:
        """Run a command that must be refused for a reason, without showing the key."""
        before = self.git("rev-parse", "HEAD")
        done = self.run(*words)
        output = done.stdout + done.stderr
        assert done.returncode != 0, (words, output)
        assert reason in output, (reason, output)
        assert KEY not in output
        assert self.git("rev-parse", "HEAD") == before
        self.team.tell(f"{self.name}: refused: {reason}")

    def shares(self) -> None:
        """Take what others pushed, and push."""
        self.git("pull", "--quiet", "--no-edit")
        self.git("push", "--quiet", "origin", "HEAD")


def hooks() -> str:
    """Return a configuration of the framework with both hooks that README recommends."""
    rows = []
    for row in yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text()):
        row.pop("minimum_pre_commit_version")
        rows.append(row | {"language": "system", "entry": f"{sys.executable} -m {row['entry']}"})
    assert tuple(row["id"] for row in rows) == CHECKED
    return yaml.safe_dump({"repos": [{"repo": "local", "hooks": rows}]})


def transcript(path: Path, session: str, when: str, *says: str) -> Path:
    """Write what a person said to an agent, as Claude Code keeps it."""
    rows = []
    for number, text in enumerate(says):
        rows += [
            {
                "type": "user",
                "sessionId": session,
                "timestamp": f"{when}T10:{number:02}:00Z",
                "message": {"role": "user", "content": text},
            },
            {
                "type": "assistant",
                "sessionId": session,
                "timestamp": f"{when}T10:{number:02}:30Z",
                "message": {"role": "assistant", "content": [{"type": "text", "text": "Yes."}]},
            },
        ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def january(team: Team) -> None:
    """Set up: Ada begins, Ben and Cleo clone; everybody's commits pass both hooks."""
    ada = team.joined_by("ada")
    (ada.path / "app").mkdir()
    (ada.path / "app" / "sessions.py").write_text(
        "def open_session(user):\n    return POSTGRES.insert('sessions', user)\n"
    )
    (ada.path / ".pre-commit-config.yaml").write_text(hooks())
    ada.does("init")
    ada.git("add", "--all")
    ada.git("commit", "--quiet", "-m", "begin")
    ada.git("push", "--quiet", "origin", "HEAD")
    for person in (ada, team.joined_by("ben"), team.joined_by("cleo")):
        done = person.run(
            sys.executable,
            "-m",
            "pre_commit",
            "install",
            "-t",
            "pre-commit",
            "-t",
            "pre-merge-commit",
        )
        assert done.returncode == 0, done.stderr
        person.does("install", "git", "--yes")
    ben, cleo = team.people["ben"], team.people["cleo"]
    team.tell("ada sets up, ben and cleo clone; the framework runs both hooks in three clones")
    ada.writes(
        "new",
        "decision",
        "Keep sessions in Postgres",
        "--file",
        "app/sessions.py",
        "--section",
        "Chosen=`open_session` inserts into Postgres; one database to back up.",
        "--section",
        "Rationale=Two databases are one too many for three people.",
    )
    ben.writes("remember", "Always run the tests with -x before a push.")
    cleo.writes("remember", "Never deploy on a Friday, not even a hotfix.")
    for person in (ada, ben, cleo, ada, ben):
        person.shares()


def february(team: Team) -> None:
    """Secrets and silent edits are refused."""
    team.now = "2026-02-09T09:00:00Z"
    ada, ben, cleo = team.people.values()
    me = (sys.executable, "-m", "memtool")
    ben.is_refused("cannot write this", *me, "remember", f"The deploy key is {KEY}.", "--commit")
    (ben.path / ".memory" / "note.md").write_text(f"The deploy key is {KEY}.\n")
    ben.git("add", "--all")
    ben.is_refused("memtool", "git", "commit", "-m", "note")
    ben.git("rm", "--quiet", "-f", "--cached", ".memory/note.md")
    (ben.path / ".memory" / "note.md").unlink()
    first = next(iter(team.acknowledged))
    place = ada.path / team.acknowledged[first]
    text = place.read_text()
    place.write_text(text.replace("Postgres", "Redis"))
    ada.is_refused("silent-edit", "git", "commit", "-am", "we moved")
    place.write_text(text)
    ada.writes(
        "supersede",
        first,
        "Keep sessions in Postgres, partitioned by day",
        "--file",
        "app/sessions.py",
        "--section",
        "Chosen=`open_session` inserts into a partition of the day.",
        "--section",
        "Rationale=Old sessions are dropped with their partition.",
    )
    cleo.writes("remember", "The staging database is rebuilt every Monday at six.")
    for person in (ada, ben, cleo, ada, ben):
        person.shares()


def march(team: Team) -> None:
    """Branches: lifecycle edits of one memory merge, a contradiction is settled by one memory."""
    team.now = "2026-03-09T09:00:00Z"
    ada, ben, cleo = team.people.values()
    friday = next(id_ for id_ in team.acknowledged if "friday" in id_)
    ben.git("switch", "--quiet", "-c", "ben")
    ben.does("pin", friday, "--commit")
    cached = ben.writes("remember", "Always cache the product pages in the CDN for one hour.")
    cleo.git("switch", "--quiet", "-c", "cleo")
    cleo.does("deprecate", friday, "--reason", "we may deploy on any day from March on", "--commit")
    team.now = "2026-03-10T09:00:00Z"
    never = cleo.writes("remember", "Never cache the product pages in the CDN for one hour.")
    for person in (ben, cleo):
        person.git("push", "--quiet", "origin", "HEAD")
    ada.git("fetch", "--quiet")
    ada.git("merge", "--quiet", "--no-edit", "origin/ben")
    ada.git("merge", "--quiet", "--no-edit", "origin/cleo")
    status = ada.does("show", friday)["status"]
    team.tell(f"ada merges both branches without a conflict: {friday} is {status}")
    assert status == "deprecated"
    clusters = ada.memtool("conflicts").stdout
    assert shorten(cached) in clusters
    assert shorten(never) in clusters
    settled = ada.does(
        "resolve", cached, never, "--keep", "newer", "--reason", "prices change", "--commit"
    )
    team.tell(f"ada: resolve: {settled.get('id', never)} holds")
    assert "no open conflict" in ada.memtool("conflicts").stderr
    for person in (ben, cleo):
        person.git("switch", "--quiet", "main")
    for person in (ada, ben, cleo):
        person.shares()


def april(team: Team) -> None:
    """Agents: what was said becomes a candidate, and no old remark replaces a decision."""
    team.now = "2026-04-13T09:00:00Z"
    ada, ben, cleo = team.people.values()
    rule = "Remember: always use the queue for e-mails, never send them from a request."
    for number, person in enumerate((ben, cleo)):
        file = transcript(team.place / f"t{number}.jsonl", f"s{number}", "2026-04-10", rule)
        person.does("capture", str(file), "--host", "claude", "--end")
    promoted = ben.does("promote", "--commit")
    team.tell(f"ben: capture, promote: {json.dumps(promoted)[:100]}")
    ids = [row["id"] for row in ben.does("list", "status:candidate")["memories"]]
    assert len(ids) == 1
    team.acknowledged |= {id_: ben.does("show", id_)["path"] for id_ in ids}
    ben.shares()
    cleo.shares()
    cleo.does("promote", "--commit")
    assert [row["id"] for row in cleo.does("list", "status:candidate")["memories"]] == ids
    decided = cleo.writes(
        "new",
        "decision",
        "Write access logs to the object store",
        "--section",
        "Chosen=Access logs go to the object store, never to the database.",
    )
    old = transcript(
        team.place / "old.jsonl",
        "old",
        "2026-01-15",
        "Remember: always write access logs to the database, never to the object store.",
    )
    ada.git("pull", "--quiet", "--no-edit")
    cleo.shares()
    ada.git("pull", "--quiet", "--no-edit")
    ada.does("capture", str(old), "--host", "claude", "--end")
    (remark,) = ada.does("promote", "--commit")["memories"]
    assert remark["is_new"]
    plan = json.dumps(ada.does("curate"))
    assert f'"{decided}"' not in plan or "supersede" not in plan, plan
    team.acknowledged |= {
        row["id"]: ada.does("show", row["id"])["path"]
        for row in ada.does("list", "status:candidate")["memories"]
    }
    team.tell("ada: a remark of January is promoted, and does not replace the decision of April")
    for person in (ada, ben, cleo):
        person.shares()


def may(team: Team) -> None:
    """The code moves: drift is seen, a mistake is undone, something is forgotten for good."""
    team.now = "2026-05-11T09:00:00Z"
    ada, ben, cleo = team.people.values()
    ben.git("rm", "--quiet", "app/sessions.py")
    (ben.path / "app").mkdir(exist_ok=True)
    (ben.path / "app" / "store.py").write_text("def keep(row):\n    return DB.put(row)\n")
    ben.git("add", "--all")
    ben.git("commit", "--quiet", "-m", "sessions go into the store")
    partitioned = next(id_ for id_ in team.acknowledged if "partitioned" in id_)
    flagged = ben.memtool("drift").stdout
    assert shorten(partitioned) in flagged
    team.tell(f"ben removes app/sessions.py; drift: {partitioned} is broken")
    ben.writes(
        "supersede",
        partitioned,
        "Keep sessions in the store",
        "--file",
        "app/store.py",
        "--section",
        "Chosen=`keep` in `app/store.py` takes sessions like any other row.",
    )
    assert shorten(partitioned) not in ben.memtool("drift").stdout
    staging = next(id_ for id_ in team.acknowledged if "staging" in id_)
    wrong = cleo.writes(
        "supersede",
        staging,
        "The staging database is rebuilt every day",
        "--body",
        "The staging database is rebuilt every day at six.",
    )
    hint = json.loads(cleo.memtool("undo", wrong, "--commit", "--json").stderr)["error"]["hint"]
    assert hint == f"memtool undo {staging} takes back that it was replaced"
    cleo.does("undo", staging, "--commit")
    team.acknowledged.pop(wrong)
    assert cleo.does("show", staging)["state"] == "alive"
    team.tell(f"cleo: undo: {staging} is alive again")
    personal = ada.writes("remember", "The intern of the summer likes to review in the morning.")
    ada.does("forget", personal, "--reason", "it is about a person", "--commit")
    early = ada.memtool("purge", personal, "--apply", "--commit")
    assert "is not due until 2026-06-10" in early.stderr
    team.tell(f"ada: forget: {personal}; it may be restored until 2026-06-10")
    for person in (ada, ben, cleo, ada, ben):
        person.shares()


def june(team: Team) -> None:
    """Upkeep, and a new developer, with an agent that learns the current decisions."""
    team.now = "2026-06-15T09:00:00Z"
    ada = team.people["ada"]
    personal = next(id_ for id_ in team.acknowledged if "intern" in id_)
    ada.does("purge", personal, "--apply", "--commit")
    team.acknowledged.pop(personal)
    team.tell(f"ada: purge: {personal} is gone from this commit on")
    ada.does("digest", "--all", "--commit")
    done = ada.memtool("maintain", "--monthly", "--apply")
    assert done.returncode == 0, done.stderr
    ada.shares()
    dora = team.joined_by("dora")
    for person in team.people.values():
        person.git("pull", "--quiet", "--no-edit")
    block = dora.memtool("inject", "--prompt", "where do we keep the sessions of users?").stdout
    assert "Keep sessions in the store" in block
    assert "partitioned" not in block
    team.tell("dora clones; her agent is told that sessions are kept in the store")


MONTHS = (january, february, march, april, may, june)


def tell(place: Path) -> Team:
    """Let the months pass, then look for everything that was acknowledged."""
    team = Team(place)
    for month in MONTHS:
        month(team)
    ada, *teammates = team.people.values()
    head = ada.git("rev-parse", "HEAD")
    assert all(person.git("rev-parse", "HEAD") == head for person in teammates)
    there = set(ada.git("ls-tree", "-r", "--name-only", "HEAD", ".memory").split("\n"))
    lost = {id_ for id_, path in team.acknowledged.items() if path not in there}
    assert not lost
    root = ada.git("rev-list", "--max-parents=0", "HEAD").strip()
    for words in (("check",), ("check", "--range", f"{root}..HEAD"), ("check", "--history")):
        for person in team.people.values():
            done = person.memtool(*words)
            assert done.returncode == 0, (words, done.stdout, done.stderr)
    assert KEY not in ada.git("log", "--all", "-p")
    assert not ada.git("fsck", "--strict", "--no-dangling")
    commits = ada.git("rev-list", "--count", "HEAD").strip()
    team.tell(f"{len(team.acknowledged)} memories written, {len(lost)} lost, {commits} commits")
    return team


@pytest.mark.slow
def test_six_months_of_a_team_lose_nothing(tmp_path: Path) -> None:
    tell(tmp_path)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        print("\n".join(tell(Path(folder)).story))
