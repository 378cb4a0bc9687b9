"""The state of the worktree when an agent's command failed.

A transcript records what was run and printed, but not the files, which can only be seen at the
moment of the failure. So a host's failure event triggers a look at the worktree. The agent waits
for it, so it is limited to one `git status`, a `git diff` if files were changed, and version
queries that were not answered before. Anything slower than its share of the time stays unknown. The
row waits in the session's directory until a capture finds the message that it belongs to.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress

from memtool import tables
from memtool.errors import MemtoolError
from memtool.memory.environment import (
    CLEAN,
    MAX_LINE,
    REDACTED,
    FailureEnvironment,
    parse_command_line,
    parse_exit_code,
    write_environment,
)
from memtool.sessions import journal, store
from memtool.sessions.model import Message
from memtool.sessions.store import Sessions, clean_texts
from memtool.sessions.transcripts.markup import call_line
from memtool.store import files, process
from memtool.store.context import Context
from memtool.store.deadline import Deadline
from memtool.store.repository import read_head_commit
from memtool.value import digest

STATES = "states.jsonl"
MAX_STATES = 256 * 1024
"""Bytes of waiting rows in one session; later failures are not recorded."""
NEAR_S = 30
"""Maximum seconds between a row and its message."""
BUDGET_S = 1.2
"""Time limit for the look at the worktree; a hook has two seconds for everything."""
VERSION_S = 0.4
INTERPRETERS = "interpreters"
"""File of known versions, in the cache directory, each for one program by size and time."""
MAX_KNOWN = 64 * 1024
PROGRAMS: tuple[tuple[str, tuple[str, ...], tuple[tuple[str, ...], ...]], ...] = (
    (
        "python",
        ("pyproject.toml", "setup.py", "setup.cfg", "requirements.txt", "tox.ini"),
        (("python", "--version"), ("python3", "--version")),
    ),
    ("node", ("package.json",), (("node", "--version"),)),
    ("go", ("go.mod",), (("go", "version"),)),
    ("rust", ("Cargo.toml",), (("rustc", "--version"),)),
)
"""Each interpreter, the files that show that a project uses it, and the calls that print its
version."""
LOCKS = tables.read_words("sessions/lock_files")
MAX_LOCK = 16 << 20
_VERSION = re.compile(rb"\d+\.\d+(?:\.\d+)?(?:[-+.\w]{0,30})")


def note(
    context: Context, host: str, session: str, command: str, printed: str, directory: str
) -> str:
    """Record the state in which a session's command just failed; return the session's id.

    `printed` is the tool's answer, `directory` the session's directory. Nothing is recorded, and
    the id is empty, if the session has no name or its rows are full.

    Raises:
        MemtoolError: git or the disk refuses.
    """
    sessions = store.open_sessions(context)
    line = call_line({"command": command})
    if not session or not line:
        return ""
    id_ = sessions.find_name(host, session)
    path = os.path.join(sessions.directory, id_, STATES)
    if _measure_size(path) > MAX_STATES:
        return ""
    observed = observe(context, command, directory, printed, sessions)
    lines = write_environment(observed)
    if len(lines) > MAX_LINE:
        return ""
    row = {
        "call": digest(line.encode(errors="replace")),
        "moment": context.clock.now,
        "state": lines,
    }
    with journal.explain_errors(path, "written"):
        os.makedirs(os.path.dirname(path), mode=journal.FOLDER_MODE, exist_ok=True)
    journal.append(path, [row])
    return id_


def _measure_size(path: str) -> int:
    try:
        return os.lstat(path).st_size
    except OSError:
        return 0


def attach_states(folder: str, messages: list[Message]) -> list[Message]:
    """Add the recorded states to the messages of failures.

    A row belongs to one message: the failing answer to the same call that is nearest in time. An
    answer without a time gets no state, since it might belong to another run.

    Raises:
        MemtoolError: the rows cannot be read.
    """
    rows, _torn = journal.read(os.path.join(folder, STATES))
    if not rows:
        return messages
    answers = [
        (n, digest(message.call.encode(errors="replace")))
        for n, message in enumerate(messages)
        if message.role == "tool" and message.call and message.is_ok is not True and message.moment
    ]
    pairs = sorted(
        (abs(row["moment"] - messages[n].moment), at, n, row["state"])
        for n, key in answers
        for at, row in enumerate(rows)
        if row.get("call") == key and _is_row(row)
    )
    made = list(messages)
    used: set[int] = set()
    done: set[int] = set()
    for away_s, at, n, state in pairs:
        if away_s <= NEAR_S and at not in used and n not in done:
            made[n] = made[n].replace(state=state)
            used.add(at)
            done.add(n)
    return made


def _is_row(row: Mapping[str, object]) -> bool:
    return type(row.get("moment")) is int and isinstance(row.get("state"), str)


def observe(
    context: Context, command: str, directory: str, printed: str, sessions: Sessions
) -> FailureEnvironment:
    """Record what a re-run of the command needs, as far as it can be read in time."""
    deadline = Deadline(BUDGET_S)
    repository = context.repository
    environment = _parse_command(
        command, os.path.realpath(repository.top), os.path.realpath(directory)
    )
    words = {*environment.argv, command, environment.cwd}
    clean = clean_texts(words, sessions.allowed)
    if any(clean[word] != word for word in words):
        environment = FailureEnvironment(lack=REDACTED)
    commit, diff, untracked = _commit_and_diff(context, deadline)
    facts = {"untracked": str(untracked) if untracked else ""}
    facts |= read_facts(context, environment.cwd, deadline)
    return environment.replace(
        exit=parse_exit_code(printed),
        commit=commit,
        diff=diff,
        facts=tuple((key, text) for key, text in facts.items() if text),
    )


def _parse_command(command: str, top: str, directory: str) -> FailureEnvironment:
    """Parse argv and directory of a session's command line.

    Hosts may report the directory before or after the command. These differ if the line starts with
    `cd`; if both are possible, neither is used.
    """
    environment = parse_command_line(command, top, directory)
    if not environment.cwd or not command.lstrip().startswith("cd "):
        return environment
    here = os.path.relpath(directory, top)
    after = [environment]
    base = directory
    while base != top and base.startswith(f"{top}/"):
        base = os.path.dirname(base)
        after.append(parse_command_line(command, top, base))
    # It is certain if only one of the directories exists, or all are the same.
    meant = {command.cwd: command for command in after[1:] if command.cwd == here}
    if os.path.isdir(os.path.join(top, environment.cwd)):
        meant[environment.cwd] = environment
    return meant.popitem()[1] if len(meant) == 1 else environment.replace(cwd="")


def _commit_and_diff(context: Context, deadline: Deadline) -> tuple[str, str, int]:
    """Return the commit, `clean` or a hash of the changes, and the number of untracked files.

    Changes in the memory directory do not count: they do not affect a command. If git does not
    answer in time, commit and changes are both empty, since one without the other is useless.
    """
    git = context.repository.git
    try:
        commit = read_head_commit(context.repository) or git.head()
        rows = git.status(untracked="normal", timeout_s=deadline.remaining_s())
        inside = f"{context.directory}/"
        changed = [row for row in rows if not row[1].startswith(inside)]
        if not commit or not changed:
            return commit, CLEAN if commit else "", 0
        patch = git.run("diff", "--no-ext-diff", "HEAD", timeout_s=deadline.remaining_s())
    except MemtoolError:
        return "", "", 0
    untracked = sum(letters == "??" for letters, _path in changed)
    names = "\0".join(sorted(path for letters, path in changed if letters == "??"))
    whole = patch + b"\0" + names.encode(errors="surrogateescape")
    return commit, hashlib.sha256(whole if names else patch).hexdigest(), untracked


def read_facts(context: Context, cwd: str, deadline: Deadline) -> dict[str, str]:
    """Return operating system, machine, interpreter versions and hashes of lock files, by key."""
    system = os.uname()
    top = context.repository.top
    folders = list(dict.fromkeys(("", cwd if cwd != "." else "")))
    facts = {"os": system.sysname.lower(), "arch": system.machine}
    present = {name for folder in folders for name in _list_names(os.path.join(top, folder))}
    facts |= dict(_read_versions(context, present, deadline))
    for folder in folders:
        for name in LOCKS:
            path = os.path.join(folder, name)
            if name in present and (lock := _lock(os.path.join(top, path))):
                facts[f"lock {path}"] = lock
    return facts


def _list_names(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []


def _lock(path: str) -> str:
    """Return the SHA-256 of a lock file, empty if it is unreadable or too large."""
    data = files.read_or_none(path, MAX_LOCK + 1)
    if data is None or len(data) > MAX_LOCK:
        return ""
    return hashlib.sha256(data).hexdigest()


def _read_versions(
    context: Context, present: set[str], deadline: Deadline
) -> Iterator[tuple[str, str]]:
    """Yield the versions of a project's interpreters; each program is queried only once."""
    path = os.path.join(context.repository.cache_dir, INTERPRETERS)
    stored = _read_stored(path)
    before = dict(stored)
    for name, marks, calls in PROGRAMS:
        if present.isdisjoint(marks):
            continue
        for program, *arguments in calls:
            place = _find_program(program, context.caller.env.get("PATH", os.defpath))
            key = _identify(place)
            if not key:
                continue
            time_left = min(VERSION_S, deadline.remaining_s())
            if f"{place}/".startswith(f"{context.repository.top}/"):
                stored[key] = _read_venv_version(place)
            elif key not in stored and time_left > 0:
                stored[key] = _ask_version([place, *arguments], context.caller.env, time_left)
            if stored.get(key):
                yield name, stored[key]
            break
    stored = {
        key: version for key, version in stored.items() if version
    }  # an empty version is queried again
    if stored != before:
        text = json.dumps(stored).encode()
        with suppress(OSError):
            os.makedirs(context.repository.cache_dir, mode=0o700, exist_ok=True)
            files.write_private(context.repository.cache_dir, INTERPRETERS, text)


def _read_stored(path: str) -> dict[str, str]:
    try:
        versions = json.loads(files.read_regular(path, MAX_KNOWN))
    except (OSError, ValueError, RecursionError):
        return {}
    rows = versions.items() if isinstance(versions, dict) else ()
    return {key: text for key, text in rows if isinstance(text, str) and len(text) < 100}


def _find_program(program: str, path: str) -> str:
    """Return a program's path from the absolute folders of PATH, empty if it is not found."""
    places = (os.path.join(folder, program) for folder in path.split(":") if os.path.isabs(folder))
    return next((place for place in places if os.access(place, os.X_OK)), "")


def _identify(place: str) -> str:
    """Identify a program by path, size and time, which change with its version."""
    if not place:
        return ""
    try:
        status = os.stat(place)
    except OSError:
        return ""
    return f"{place}:{status.st_size}:{status.st_mtime_ns}"


def _read_venv_version(place: str) -> str:
    """Read the version of an interpreter inside the worktree from its `pyvenv.cfg`.

    It is not run: the repository may have brought it along.
    """
    folder = os.path.dirname(os.path.dirname(place))
    data = files.read_or_none(os.path.join(folder, "pyvenv.cfg"), MAX_KNOWN)
    for line in (data or b"").splitlines():
        key, _equals, value = line.partition(b"=")
        if key.strip() in (b"version", b"version_info") and (version := _VERSION.search(value)):
            return version[0].decode()
    return ""


def _ask_version(argv: Sequence[str], env: Mapping[str, str], limit_s: float) -> str:
    """Run a program for its version; empty if it fails or takes too long."""
    try:
        done = process.run([*argv], env, timeout_s=limit_s)
    except OSError:
        return ""
    version = _VERSION.search(done.stdout or done.stderr)
    return version[0].decode(errors="replace") if version and done.status == 0 else ""
