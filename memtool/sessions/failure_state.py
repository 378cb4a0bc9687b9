"""The state of the worktree at the moment when a command of an agent failed.

A transcript tells what was run and what it printed, not what the files were: only who is there when
it fails can see that. So a host's event of a failure is answered with a look at the worktree, which
an agent waits for: one `git status`, a `git diff` where something was changed, and no program for a
version that was asked for before. What takes longer than its share stays unknown. The row waits in
the directory of its session until a capture finds the message that it belongs to.
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
    MOST_LINE,
    REDACTED,
    FailureEnvironment,
    environment_of_line,
    exit_code_of,
    write_environment,
)
from memtool.sessions import journal, store
from memtool.sessions.model import Message
from memtool.sessions.store import Sessions, clean_texts
from memtool.sessions.transcripts.markup import call_line
from memtool.store import files, process
from memtool.store.context import Context
from memtool.store.deadline import Deadline
from memtool.store.repository import head_commit
from memtool.value import digest

STATES = "states.jsonl"
MOST_STATES = 256 * 1024
"""Bytes of the rows of one session that wait; what comes after is not noted."""
NEAR_S = 30
"""Seconds between a row and the message that it belongs to."""
BUDGET_S = 1.2
"""Seconds that a look at the worktree may take; a hook has two for everything."""
VERSION_S = 0.4
INTERPRETERS = "interpreters"
"""Versions that were asked for, in the cache directory, each for one program as it was then."""
MOST_KNOWN = 64 * 1024
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
"""An interpreter, the files that say that a project uses it, and how it is asked for its version.
"""
LOCKS = tables.words("sessions/lock_files")
MOST_LOCK = 16 << 20
_VERSION = re.compile(rb"\d+\.\d+(?:\.\d+)?(?:[-+.\w]{0,30})")


def note(
    context: Context, host: str, session: str, command: str, printed: str, directory: str
) -> str:
    """Note the state in which a command of a session has just failed; return the session's id.

    `printed` is what the tool answered, `directory` where the session is. Nothing is noted, and the
    id is empty, where the session has no name or no room for it.

    Raises:
        MemtoolError: git or the disk refuses.
    """
    sessions = store.opened(context)
    line = call_line({"command": command})
    if not session or not line:
        return ""
    id_ = sessions.named(host, session)
    path = os.path.join(sessions.directory, id_, STATES)
    if _size(path) > MOST_STATES:
        return ""
    found = observe(context, command, directory, printed, sessions)
    lines = write_environment(found)
    if len(lines) > MOST_LINE:
        return ""
    row = {
        "call": digest(line.encode(errors="replace")),
        "moment": context.clock.now,
        "state": lines,
    }
    with journal.refused(path, "written"):
        os.makedirs(os.path.dirname(path), mode=journal.FOLDER_MODE, exist_ok=True)
    journal.append(path, [row])
    return id_


def _size(path: str) -> int:
    try:
        return os.lstat(path).st_size
    except OSError:
        return 0


def attached(folder: str, messages: list[Message]) -> list[Message]:
    """Return messages, those of failures with the state that was noted for them.

    A row belongs to the failing answer of the same call whose moment is nearest, and to one only;
    an answer without a moment has none, since it could be that of another run.

    Raises:
        MemtoolError: the rows cannot be read.
    """
    rows, _torn = journal.read(os.path.join(folder, STATES))
    if not rows:
        return messages
    answers = [
        (n, digest(one.call.encode(errors="replace")))
        for n, one in enumerate(messages)
        if one.role == "tool" and one.call and one.is_ok is not True and one.moment
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
    """Return what a command needs to be run again, as far as it can be seen in time."""
    deadline = Deadline(BUDGET_S)
    repository = context.repository
    found = _command(command, os.path.realpath(repository.top), os.path.realpath(directory))
    words = {*found.argv, command, found.cwd}
    clean = clean_texts(words, sessions.allowed)
    if any(clean[word] != word for word in words):
        found = FailureEnvironment(lack=REDACTED)
    commit, diff, untracked = _commit_and_diff(context, deadline)
    facts = {"untracked": str(untracked) if untracked else ""}
    facts |= facts_of(context, found.cwd, deadline)
    return found.replace(
        exit=exit_code_of(printed),
        commit=commit,
        diff=diff,
        facts=tuple((key, text) for key, text in facts.items() if text),
    )


def _command(command: str, top: str, directory: str) -> FailureEnvironment:
    """Return argv and directory of a command line that was run in a session.

    A host may name the directory from before the command or the one after it, which differ where
    the line begins with `cd`: where both could be meant, neither is taken.
    """
    found = environment_of_line(command, top, directory)
    if not found.cwd or not command.lstrip().startswith("cd "):
        return found
    here = os.path.relpath(directory, top)
    after = [found]
    base = directory
    while base != top and base.startswith(f"{top}/"):
        base = os.path.dirname(base)
        after.append(environment_of_line(command, top, base))
    # It is known where only one of the directories is there, or all are the same.
    meant = {one.cwd: one for one in after[1:] if one.cwd == here}
    if os.path.isdir(os.path.join(top, found.cwd)):
        meant[found.cwd] = found
    return meant.popitem()[1] if len(meant) == 1 else found.replace(cwd="")


def _commit_and_diff(context: Context, deadline: Deadline) -> tuple[str, str, int]:
    """Return the commit, `clean` or a hash of what differs from it, and how many files are new.

    Changes in the memory directory alone change nothing that a command does. What git does not say
    in time is empty, and the two are empty together: half of a state is none.
    """
    git = context.repository.git
    try:
        commit = head_commit(context.repository) or git.head()
        rows = git.status(untracked="normal", timeout_s=deadline.left_s())
        inside = f"{context.directory}/"
        changed = [row for row in rows if not row[1].startswith(inside)]
        if not commit or not changed:
            return commit, CLEAN if commit else "", 0
        patch = git.run("diff", "--no-ext-diff", "HEAD", timeout_s=deadline.left_s())
    except MemtoolError:
        return "", "", 0
    untracked = sum(letters == "??" for letters, _path in changed)
    names = "\0".join(sorted(path for letters, path in changed if letters == "??"))
    whole = patch + b"\0" + names.encode(errors="surrogateescape")
    return commit, hashlib.sha256(whole if names else patch).hexdigest(), untracked


def facts_of(context: Context, cwd: str, deadline: Deadline) -> dict[str, str]:
    """Return operating system, machine, interpreters and hashes of lock files, by their keys."""
    system = os.uname()
    top = context.repository.top
    folders = list(dict.fromkeys(("", cwd if cwd != "." else "")))
    facts = {"os": system.sysname.lower(), "arch": system.machine}
    present = {name for folder in folders for name in _names(os.path.join(top, folder))}
    facts |= dict(_versions(context, present, deadline))
    for folder in folders:
        for name in LOCKS:
            path = os.path.join(folder, name)
            if name in present and (found := _lock(os.path.join(top, path))):
                facts[f"lock {path}"] = found
    return facts


def _names(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []


def _lock(path: str) -> str:
    """Return the SHA-256 of a lock file, empty where it is none or too large."""
    data = files.read_or_none(path, MOST_LOCK + 1)
    if data is None or len(data) > MOST_LOCK:
        return ""
    return hashlib.sha256(data).hexdigest()


def _versions(context: Context, present: set[str], deadline: Deadline) -> Iterator[tuple[str, str]]:
    """Yield the versions of the interpreters that a project uses, asked for once a program."""
    path = os.path.join(context.repository.cache_dir, INTERPRETERS)
    known = _known(path)
    before = dict(known)
    for name, marks, calls in PROGRAMS:
        if present.isdisjoint(marks):
            continue
        for program, *arguments in calls:
            place = _found(program, context.caller.env.get("PATH", os.defpath))
            key = _identity(place)
            if not key:
                continue
            left = min(VERSION_S, deadline.left_s())
            if f"{place}/".startswith(f"{context.repository.top}/"):
                known[key] = _of_venv(place)
            elif key not in known and left > 0:
                known[key] = _asked([place, *arguments], context.caller.env, left)
            if known.get(key):
                yield name, known[key]
            break
    known = {key: version for key, version in known.items() if version}  # else it is asked again
    if known != before:
        text = json.dumps(known).encode()
        with suppress(OSError):
            os.makedirs(context.repository.cache_dir, mode=0o700, exist_ok=True)
            files.put(context.repository.cache_dir, INTERPRETERS, text)


def _known(path: str) -> dict[str, str]:
    try:
        held = json.loads(files.read_regular(path, MOST_KNOWN))
    except (OSError, ValueError, RecursionError):
        return {}
    rows = held.items() if isinstance(held, dict) else ()
    return {key: text for key, text in rows if isinstance(text, str) and len(text) < 100}


def _found(program: str, path: str) -> str:
    """Return where a program is by the absolute folders of a path, empty where it is nowhere."""
    places = (os.path.join(folder, program) for folder in path.split(":") if os.path.isabs(folder))
    return next((place for place in places if os.access(place, os.X_OK)), "")


def _identity(place: str) -> str:
    """Name a program as it is now: another version has another size or time."""
    if not place:
        return ""
    try:
        status = os.stat(place)
    except OSError:
        return ""
    return f"{place}:{status.st_size}:{status.st_mtime_ns}"


def _of_venv(place: str) -> str:
    """Return the version of an interpreter in the worktree, by what made its environment.

    Nothing that a repository may have brought along is run.
    """
    folder = os.path.dirname(os.path.dirname(place))
    data = files.read_or_none(os.path.join(folder, "pyvenv.cfg"), MOST_KNOWN)
    for line in (data or b"").splitlines():
        key, _equals, value = line.partition(b"=")
        if key.strip() in (b"version", b"version_info") and (found := _VERSION.search(value)):
            return found[0].decode()
    return ""


def _asked(argv: Sequence[str], env: Mapping[str, str], limit_s: float) -> str:
    """Return what a program says of its version; empty where it does not, or not in time."""
    try:
        done = process.run([*argv], env, timeout_s=limit_s)
    except OSError:
        return ""
    found = _VERSION.search(done.stdout or done.stderr)
    return found[0].decode(errors="replace") if found and done.status == 0 else ""
