"""The demo: the repository of a made-up team, with memories in every state.

Its content is in `templates/demo/`: the story (`story.toml`) with people and commits, the memories
and the code that they commit, sessions, and questions. Authors and dates are fixed, so every commit
has the same id on every machine. All commits are one run of `git fast-import`; the usual modules
write sessions and the usage log, as if time had passed. A second team (`neighbour.toml`) has a bare
repository inside the first one, for a fleet of two.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from memtool import templates
from memtool.errors import MemtoolError, find_reason
from memtool.memory import document, ids, timestamps
from memtool.sessions import findings, lifecycle, promote, store
from memtool.sessions.model import Message, Session
from memtool.store import usage_log
from memtool.store.context import Context
from memtool.store.git import LOCATION_VARIABLES, Git
from memtool.store.repository import discover
from memtool.store.usage_log import AuditEvent, Note, ShownItem
from memtool.value import Value, digest

MAIN = "main"
ORIGIN, NEIGHBOUR = ".git/origin.git", ".git/lakes/ferries.git"
"""Where the remote of the demo lies, and the repository of another team: inside, so that removing
the directory removes all of it."""
_SETTINGS = {
    'remote "origin"': {"url": f"./{ORIGIN}", "fetch": "+refs/heads/*:refs/remotes/origin/*"},
    f'branch "{MAIN}"': {"remote": "origin", "merge": f"refs/heads/{MAIN}"},
}
_PLAIN = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", "GIT_TEMPLATE_DIR": ""}
"""A user's own git settings for new repositories must not change this one."""
_FIRST_HOUR, _HOURS = 8, 9
"""When people work, in UTC."""
_USUAL_MS = {"search": 14.0, "show": 9.0, "inject": 24.0, "hook-start": 31.0}


class Demo(Value):
    """A repository that was built, or would be: `now` is the moment at which its story ends."""

    directory: str
    memories: int
    commits: int
    branches: tuple[str, ...]
    sessions: int
    answers: int
    head: str
    now: str
    dry_run: bool = False


class Story(Value):
    """What `story.toml` says: each commit is a table, in the order in which they were made."""

    now: str
    pushed: int
    people: dict[str, str]
    commits: tuple[dict[str, Any], ...]

    @property
    def branches(self) -> tuple[str, ...]:
        """The branches in the order in which they began."""
        return tuple(dict.fromkeys(commit.get("branch", MAIN) for commit in self.commits))


def build(env: Mapping[str, str], place: str, *, dry_run: bool) -> Demo:
    """Build the repository in a directory that is absent or empty; a failure leaves nothing of it.

    Raises:
        MemtoolError: the directory holds something, or git or the disk refuses.
    """
    is_new = _refuse_taken(place)
    story = _read_story("story.toml")
    stream, count, pushed = _build_stream(story)
    neighbour, _count, _pushed = _build_stream(_read_story("neighbour.toml"))
    notes = list(_build_notes(story))
    sessions = [_read_session(name) for name in templates.list_names("demo/sessions")]
    made = Demo(
        place,
        count,
        len(story.commits),
        story.branches,
        len(sessions),
        len(notes),
        "",
        story.now,
        dry_run,
    )
    if dry_run:
        return made
    try:
        os.makedirs(place, exist_ok=True)
        head = _commit(env, place, stream, pushed, neighbour)
        context = _open_context(env, place, story.now)
        _keep_sessions(context, sessions)
        _keep_use(context, story, notes)
    except BaseException as error:
        _take_back(place, is_new=is_new)
        if isinstance(error, OSError):
            raise MemtoolError(
                f"cannot write to {place}: {find_reason(error)}",
                hint="name a directory that you can write to",
                code="disk",
            ) from None
        raise
    return made.replace(head=head)


def _refuse_taken(place: str) -> bool:
    """Return whether a directory is absent. Raises MemtoolError if it is not empty."""
    try:
        entries = os.listdir(place)
    except FileNotFoundError:
        return True
    except OSError as error:
        raise MemtoolError(
            f"cannot write to {place}: {find_reason(error)}",
            hint="memtool demo harbor",
            code="exists",
        ) from None
    if entries:
        raise MemtoolError(
            f"cannot write to {place}: the directory is not empty",
            hint="memtool demo harbor",
            code="exists",
        )
    return False


def _take_back(place: str, *, is_new: bool) -> None:
    for name in os.listdir(place) if os.path.isdir(place) else ():
        path = os.path.join(place, name)
        if os.path.isdir(path) and not os.path.islink(path):
            shutil.rmtree(path, ignore_errors=True)
        else:
            os.unlink(path)
    if is_new and os.path.isdir(place):
        os.rmdir(place)


def _read_story(name: str) -> Story:
    table = _read_toml(name)
    return Story(table["now"], table["pushed"], table["people"], tuple(table["commit"]))


def _read_toml(name: str) -> dict[str, Any]:
    return tomllib.loads(templates.read(f"demo/{name}"))


def _open_context(env: Mapping[str, str], place: str, now: str) -> Context:
    own = {key: value for key, value in env.items() if key not in LOCATION_VARIABLES}
    own |= {"MEMTOOL_NOW": now, "MEMTOOL_PERSONAL": "off"}
    return Context(discover(place, own), own, place)


def _build_stream(story: Story) -> tuple[bytes, int, tuple[str, ...]]:
    """Return the commits as `git fast-import` reads them, the memories, and the pushed branches."""
    trees: dict[str, dict[str, bytes]] = {}
    begun: dict[str, dict[str, bytes]] = {}
    marks: dict[str, int] = {}
    parts: list[bytes] = []
    pushed: dict[str, int] = {}
    memories: set[str] = set()
    for mark, commit in enumerate(story.commits, 1):
        branch = commit.get("branch", MAIN)
        parent = marks.get(branch) or marks.get(MAIN)
        if branch not in trees:
            begun[branch] = dict(trees.get(MAIN, {}))
            trees[branch] = dict(begun[branch])
        changed = dict(_iterate_files(commit, trees[branch]))
        if merged := commit.get("merge"):
            base = begun[merged]
            changed |= {p: d for p, d in trees[merged].items() if base.get(p) != d}
        trees[branch] |= changed
        memories |= {path for path in changed if path.startswith(".memory/") and path[-3:] == ".md"}
        marks[branch] = mark
        at = f"{timestamps.parse(commit['at'])} {_format_zone(commit['at'])}"
        who = f"{story.people[commit['by']]} {at}\n"
        body = f"\n{commit['body']}\n" if "body" in commit else ""
        parts += [
            f"commit refs/heads/{branch}\nmark :{mark}\nauthor {who}committer {who}".encode(),
            _format_data(f"{commit['subject']}\n{body}".encode()),
            f"from :{parent}\n".encode() if parent else b"",
            f"merge :{marks[merged]}\n".encode() if merged else b"",
            *(
                b"M 100644 inline %s\n%s" % (p.encode(), _format_data(d))
                for p, d in changed.items()
            ),
        ]
        if mark <= story.pushed:
            pushed[branch] = mark
    ends = [f"reset refs/remotes/origin/{name}\nfrom :{mark}\n" for name, mark in pushed.items()]
    return (
        b"".join([*parts, *(end.encode() for end in ends), b"done\n"]),
        len(memories),
        tuple(pushed),
    )


def _format_zone(moment: str) -> str:
    return moment[-6:].replace(":", "")


def _format_data(data: bytes) -> bytes:
    return b"data %d\n%s\n" % (len(data), data)


def _iterate_files(
    commit: Mapping[str, Any], tree: Mapping[str, bytes]
) -> Iterator[tuple[str, bytes]]:
    """Yield the path and the bytes of each file that a commit of the story writes."""
    for name in commit.get("files", ()):
        yield name.rpartition(".")[0], templates.read(f"demo/files/{name}").encode()
    for id_ in commit.get("memories", ()):
        data = templates.read(f"demo/memories/{id_}.md").encode()
        yield f".memory/{ids.make_path(document.read(data))}", data
    for id_, keys in commit.get("change", {}).items():
        (path,) = (path for path in tree if path.endswith(f"/{id_}.md"))
        fields = {k: tuple(v) if isinstance(v, list) else v for k, v in keys.items()}
        yield path, document.edit(tree[path], fields, path)


def _commit(
    env: Mapping[str, str], place: str, stream: bytes, names: Iterable[str], neighbour: bytes
) -> str:
    """Make the repositories, check the branch out, and return the commit of HEAD."""
    git = Git(place, {k: v for k, v in env.items() if k not in LOCATION_VARIABLES} | _PLAIN)
    new = ("init", "--quiet", "--object-format=sha1", f"--initial-branch={MAIN}")
    git.run(*new)
    git.run("fast-import", "--quiet", "--done", stdin=stream)
    git.run("symbolic-ref", "refs/remotes/origin/HEAD", f"refs/remotes/origin/{MAIN}")
    git.run("read-tree", "--reset", "-u", "HEAD")
    git.run(*new, "--bare", ORIGIN)
    git.run(
        "-c",
        "protocol.file.allow=always",
        "push",
        "--quiet",
        f"./{ORIGIN}",
        *(f"refs/remotes/origin/{name}:refs/heads/{name}" for name in names),
        env={"GIT_ALLOW_PROTOCOL": "file"},
    )
    git.run(*new, "--bare", NEIGHBOUR)
    git.run("fast-import", "--quiet", "--done", stdin=neighbour, env={"GIT_DIR": NEIGHBOUR})
    _configure(os.path.join(place, ".git", "config"))
    return git.resolve("HEAD")


def _configure(path: str) -> None:
    """Add the settings of the demo to those of its new repository."""
    from git import GitConfigParser  # it takes as long as nine interpreters

    with GitConfigParser(path, read_only=False) as settings:
        for section, values in _SETTINGS.items():
            for key, value in values.items():
                settings.set_value(section, key, value)


class DemoSession(Value):
    """A session of the story: its head, its messages, and the moment of its end, 0 for none."""

    head: Session
    messages: tuple[Message, ...]
    end: int


def _read_session(name: str) -> DemoSession:
    """Read a session: a line about it, then a line for each message."""
    first, *rows = map(json.loads, templates.read(f"demo/sessions/{name}").splitlines())
    end = first.pop("end", "")
    messages = tuple(map(_build_message, rows))
    head = Session(id=name.partition(".")[0], started=messages[0].moment, **first)
    return DemoSession(head, messages, timestamps.parse(end) if end else 0)


def _build_message(row: dict[str, Any]) -> Message:
    at, files = timestamps.parse(row.pop("at")), tuple(row.pop("files", ()))
    return Message(number=0, moment=at, files=files, **row)


def _keep_sessions(context: Context, demo_sessions: Iterable[DemoSession]) -> None:
    """Write the sessions, read them for findings, and end those that have ended."""
    sessions = store.open_sessions(context)
    for session in demo_sessions:
        id_ = session.head.id
        sessions.create(session.head.replace(worktree=context.repository.top))
        store.add(sessions, id_, session.messages, session.messages[-1].moment)
        findings.learn(sessions, id_)
        if session.end:
            lifecycle.end(sessions, id_, "", session.end)
    promote.count(context, sessions)


def _build_notes(story: Story) -> Iterator[Note]:
    """Yield the questions of the days before the end of the story, the oldest first.

    The choice of a question and its latency depend on its number alone.
    """
    use = _read_toml("use.toml")
    questions = [question for question in use["question"] for _time in range(question["often"])]
    first = timestamps.parse(story.now) // timestamps.DAY_S - use["days"]
    number = 0
    for day in range(first, first + use["days"]):
        is_weekend = (day + 3) % 7 >= 5  # the first day of all was a Thursday
        for place in range(use["per_day"] // (7 if is_weekend else 1)):
            number += 1
            draw = int.from_bytes(hashlib.sha256(b"%d" % number).digest()[:6], "big")
            question = questions[draw % len(questions)]
            hour = _FIRST_HOUR + _HOURS * place / use["per_day"]
            factor = 1 + (draw >> 8) % 100 / 80 + (6 if (draw >> 16) % 40 == 0 else 0)
            yield Note(
                moment=day * timestamps.DAY_S + int(hour * 3600) + (draw >> 24) % 1800,
                verb=question["verb"],
                elapsed_ms=round(_USUAL_MS[question["verb"]] * factor, 3),
                prompt=digest(question["text"].encode())[:16] if question["text"] else "",
                session=f"s-{day}" if question["verb"] in ("inject", "hook-start") else "",
                items=tuple(
                    ShownItem(
                        id_, "retrieval", round(0.9 - 0.1 * at, 2), "the words of the question"
                    )
                    for at, id_ in enumerate(question["memories"])
                    if id_[4:14]
                    <= timestamps.format_date(day * timestamps.DAY_S)  # it was there by then
                ),
            )


def _keep_use(context: Context, story: Story, notes: Iterable[Note]) -> None:
    """Write the usage log: the questions, and the acts of the story."""
    if not usage_log.is_enabled(context):
        return
    directory = context.repository.cache_dir
    usage_log.append_line(directory, b"".join(map(usage_log.format_note, notes)))
    for commit in story.commits:
        for id_, keys in commit.get("change", {}).items():
            if "deleted" in keys:
                moment, why = timestamps.parse(keys["deleted"]["at"]), keys["deleted"]["reason"]
                name = digest(id_.encode())[:12]
                event = AuditEvent(moment, name, "forget", usage_log.DONE, (id_,), why)
                usage_log.append_event(directory, event)
