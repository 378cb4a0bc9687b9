"""Diagnostics: whether the program, the repository and the hooks of a host are as they should be.

A hook is rehearsed with a sample event, as its host runs it. Only the very command that memtool
writes is run: the settings of a repository may name another one. Nothing is changed but by `mend`,
which rebuilds derived files.
"""

from __future__ import annotations

import glob
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import partial
from importlib.util import cache_from_source, find_spec

from memtool import installation, version
from memtool.authoring.tree import ATTRIBUTES_NAME, bytes_of, way_back, with_way_back
from memtool.errors import MemtoolError, reason_of
from memtool.hosts import contracts, git, git_hooks, pre_commit
from memtool.hosts.contracts import CONTRACTS, PROMPT, START, Contract
from memtool.hosts.edits import Hook, Site
from memtool.hosts.install import Host
from memtool.index import index
from memtool.memory import timestamps
from memtool.memory.document import MAX_BYTES
from memtool.memory.drift import BROKEN as DRIFTED
from memtool.memory.drift import UNKNOWN
from memtool.memory.trust import TRUST_LEVELS
from memtool.search import conflicts
from memtool.search.features import Facts, governed
from memtool.search.scope import drift_in
from memtool.sessions import retention, store
from memtool.store import commits, derived, files, git_locks, ledger, provenance, signatures
from memtool.store import config as config_file
from memtool.store.config import STRICT, strictness
from memtool.store.context import Context
from memtool.store.nested import nested_directories, take_over
from memtool.store.tree import Record
from memtool.store.trust_rules import SIGNED, rule_of
from memtool.value import Value, first_few, plural

LIMIT_S = 10
COMPLAINT = "memtool: "
"""Begins the message of a hook for a person."""
UNSEEN = {"MEMTOOL_NO_LEDGER": "1", "MEMTOOL_LOG": "off", "MEMTOOL_DEBUG": "1"}
"""Keeps a hook from leaving a trace, and makes it say on stderr why it is silent."""
PROBE = "doctor.probe"
LITTLE_ROOM = 100_000_000
"""Bytes below which a disk is nearly full."""
MEANINGS = (START, PROMPT)
"""The events that put something before the agent."""


class Rehearsed(Value):
    """The result of one event: the `text` that the agent would see, or the `fault` of the hook."""

    event: str
    text: str
    fault: str
    took_ms: float


def rehearse(host: Host, site: Site, prompt: str, env: Mapping[str, str]) -> Iterator[Rehearsed]:
    """Run the hooks of a host that put something before the agent; `prompt` is what is asked."""
    calls = {
        part.event: shlex.join([part.program, *part.call])  # unguarded: what fails is to be seen
        for part in host.parts(site)
        if isinstance(part, Hook)
    }
    for contract in CONTRACTS:
        if contract.host == host.name and contract.meaning in MEANINGS:
            own = f"{site.program} hook {host.name} {contract.event}"  # of a plugin
            yield _run(contract, calls.get(contract.name, own), site.project, prompt, env)


_NAMED = {
    "session_id": "",
    "transcript_path": "{project}/none.jsonl",
    "cwd": "{project}",
    "hook_event_name": "{name}",
}
_CODEX = {**_NAMED, "model": "gpt-5.5-codex", "permission_mode": "default"}
_GEMINI = {**_NAMED, "timestamp": "2026-11-22T05:00:00.000Z"}
_OPENCODE: dict[str, object] = {
    "session_id": "",
    "cwd": "{project}",
    "prompt": "{prompt}",
    "files": [],
}
SENT: dict[tuple[str, str], dict[str, object]] = {
    ("claude", "session-start"): {**_NAMED, "source": "startup", "model": "claude-opus-5-5"},
    ("claude", "subagent-start"): {
        **_NAMED,
        "prompt_id": "p-1",
        "agent_id": "a-1",
        "agent_type": "general-purpose",
    },
    ("claude", "user-prompt-submit"): {
        **_NAMED,
        "permission_mode": "default",
        "prompt_id": "p-1",
        "prompt": "{prompt}",
    },
    ("codex", "session-start"): {**_CODEX, "source": "startup"},
    ("codex", "user-prompt-submit"): {**_CODEX, "turn_id": "1", "prompt": "{prompt}"},
    ("gemini", "session-start"): {**_GEMINI, "source": "startup"},
    ("gemini", "before-agent"): {**_GEMINI, "prompt": "{prompt}"},
    ("cursor", "session-start"): {
        "conversation_id": "",
        "generation_id": "490b90b7",
        "model": "claude-4.6-sonnet",
        "cursor_version": "3.7.21",
        "workspace_roots": ["{project}"],
        "user_email": "ada@example.org",
        "transcript_path": None,
        "hook_event_name": "{name}",
        "session_id": "",
        "is_background_agent": False,
        "composer_mode": "agent",
    },
    ("opencode", "session-start"): _OPENCODE,
    ("opencode", "prompt"): _OPENCODE,
}
"""What each host sends, key by key, as it was recorded; but sessions have no name here, so that
nothing is noted of them."""


def sample(contract: Contract, project: str, prompt: str) -> dict[str, object]:
    """Return an event as the host sends it, for a project and a prompt."""
    asked = "" if contract.meaning == START else prompt
    words = {"{project}": project, "{name}": contract.name, "{prompt}": asked}

    def filled(value: object) -> object:
        if isinstance(value, list):
            return [filled(one) for one in value]
        if not isinstance(value, str):
            return value
        place, mark, rest = value.partition("}")
        return words.get(place + mark, place + mark) + rest

    return {key: filled(value) for key, value in SENT[contract.host, contract.event].items()}


def _run(
    contract: Contract, command: str, project: str, prompt: str, env: Mapping[str, str]
) -> Rehearsed:
    event = sample(contract, project, prompt)
    began = time.monotonic()
    try:
        done = subprocess.run(
            ["sh", "-c", command],
            input=json.dumps(event).encode(),
            cwd=project,
            env={**env, **UNSEEN},
            capture_output=True,
            timeout=LIMIT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return Rehearsed(contract.event, "", f"no answer within {LIMIT_S} s", LIMIT_S * 1000.0)
    except OSError as error:
        return Rehearsed(contract.event, "", reason_of(error), 0.0)
    took_ms = round((time.monotonic() - began) * 1000, 1)
    message = done.stderr.decode(errors="replace").strip().partition("\n")[0]
    if done.returncode:
        return Rehearsed(contract.event, "", f"exit {done.returncode}: {message}", took_ms)
    if message.startswith(COMPLAINT):
        return Rehearsed(contract.event, "", message.removeprefix(COMPLAINT), took_ms)
    try:
        text = _text(done.stdout.decode(), is_json=bool(contract.silence))
    except ValueError:
        return Rehearsed(contract.event, "", "the answer is not what the host reads", took_ms)
    return Rehearsed(contract.event, text, "", took_ms)


def _text(answer: str, *, is_json: bool) -> str:
    """Return what the model would get of an answer.

    Raises:
        ValueError: the host cannot read it.
    """
    if not is_json and not answer.lstrip().startswith("{"):
        return answer
    fields = json.loads(answer)
    if not isinstance(fields, dict):
        raise ValueError  # noqa: TRY004  # of the host, not ours
    specific = fields.get("hookSpecificOutput")
    inner = specific.get("additionalContext") if isinstance(specific, dict) else None
    return str(inner or fields.get("additional_context") or fields.get("text") or "")


_VERSION = re.compile(r"\d+(?:\.\d+)+")


def of_program(host: Host, site: Site, env: Mapping[str, str]) -> Iterator[Sign]:
    """Ask a host's own program for its version, and which of the hooks it does not run."""
    found = _VERSION.search(_printed([host.program, "--version"], site.project, env))
    if found and host.tried:
        own, tried = (tuple(map(int, one.split("."))) for one in (found[0], host.tried))
        if own < tried:
            detail = f"{found[0]}, older than {host.tried}, with which memtool was tried"
            yield Sign(host.name, "version", WARNING, detail, f"update {host.title}")
        else:
            how = "as tried" if own == tried else f"tried with {host.tried}"
            yield Sign(host.name, "version", GOOD, f"{found[0]}, {how}")
    refusal = host.refusal(site, env)
    if refusal:
        yield Sign(host.name, "accepted", BROKEN, refusal, host.trust)


def _printed(call: list[str], folder: str, env: Mapping[str, str]) -> str:
    """Return what a program prints, empty where it fails."""
    try:
        done = subprocess.run(
            call,
            cwd=folder,
            env=dict(env),
            capture_output=True,
            timeout=LIMIT_S,
            check=False,
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.decode(errors="replace")


GOOD, ABSENT, WARNING, BROKEN = "good", "absent", "warning", "broken"
OLDEST_GIT = (2, 28)
RECENT_S = 7 * 86_400
"""How long a failure of a hook is reported."""


class Sign(Value):
    """The result of one check. `area` is memtool, repository or a host.

    `shown` is what an agent would see.
    """

    area: str
    name: str
    state: str
    detail: str
    hint: str = ""
    shown: str = ""


def of_memtool(context: Context) -> Iterator[Sign]:
    """Check the program: where it is, how it starts, and whether its modules are compiled."""
    python = ".".join(map(str, sys.version_info[:3]))
    yield Sign("memtool", "version", GOOD, f"{version.__version__}, Python {python}")
    yield _launcher(context)
    package = os.path.dirname(version.__file__)
    missing = _count_uncompiled(package)
    if missing:
        detail = f"{missing} modules are compiled anew at every start"
        hint = f"python3 -m compileall -q {package}"
        yield Sign("memtool", "byte code", WARNING, detail, hint)
    else:
        yield Sign("memtool", "byte code", GOOD, "compiled")
    yield _extras(context)
    if context.caller.env.get("MEMTOOL_OFF"):
        yield Sign("memtool", "switch", WARNING, "MEMTOOL_OFF is set: agents get nothing")


def of_repository(context: Context) -> Iterator[Sign]:
    """Check git, settings, the trusted ref, index, ledger, sessions and hooks."""
    yield _git(context)
    damage = _derived(context)
    if damage.state == BROKEN:
        context.is_cached = False  # else it would be mended before it is named
    yield damage
    checks = (
        _settings,
        _trusted,
        _limits,
        _storage,
        _lock,
        _unfinished_commits,
        _memories,
        _due,
        _drift,
        _conflicts,
        _index,
        _ledger,
        _sessions,
        hooks,
        _merge_driver,
        _log,
    )
    for check in checks:
        yield _result(check, context)
    if _has_rules(context):
        yield _result(_owners, context)
    for place in nested_directories(context.repository, context.directory):
        yield _sign("nested", WARNING, f"{place} is not read", take_over(place))


def _result(check: Callable[[Context], Sign], context: Context) -> Sign:
    try:
        return check(context)
    except MemtoolError as error:
        return _sign(
            check.__name__.lstrip("_").replace("_", " "), BROKEN, error.message, error.hint
        )


def mend(context: Context) -> Iterator[str]:
    """Rebuild what is derived and broken, and yield what was done."""
    if _derived(context).state == BROKEN or _result(_index, context).state == BROKEN:
        derived.drop(context.repository)
        context.opened = None
        index.open(context, exact=True)
        yield "made the search index and the other derived files anew"
    if _result(_ledger, context).state == BROKEN:
        ledger.fold(context.repository.cache_dir)
        yield "put a broken ledger aside: statistics begin anew"
    yield from _mended_commits(context)
    sessions = store.opened(context)
    for damage in retention.damages(sessions, most=None):
        if damage.is_mendable:
            try:
                files = ", ".join(retention.repair(sessions, damage.id, context.clock.now))
            except MemtoolError as error:
                context.notes.append(f"{damage.id} is not repaired: {error.message}")
                continue
            yield f"rebuilt {files} of session {damage.id}; what was there is next to it"


def _mended_commits(context: Context) -> Iterator[str]:
    """Take out of git's index what a killed commit left there, and yield how much it was."""
    if not context.repository.is_bare:
        dropped = len(commits.drop_intended(context.repository, context.directory))
        if dropped:
            what = "an entry" if dropped == 1 else f"{dropped} entries"
            yield f"took {what} of a killed commit out of git's index"


def _count_uncompiled(package: str) -> int:
    """Return how many modules below a directory have no byte code, or an older one."""
    paths = glob.iglob(f"{glob.escape(package)}/**/*.py", recursive=True)
    return sum(not _is_compiled(path) for path in paths)


def _is_compiled(path: str) -> bool:
    try:
        with open(cache_from_source(path), "rb") as file:
            head = file.read(16)
        status = os.stat(path)
    except OSError:
        return False
    flags = int.from_bytes(head[4:8], "little")
    written = int(status.st_mtime) & 0xFFFFFFFF
    return bool(flags) or int.from_bytes(head[8:12], "little") == written


_sign = partial(Sign, "repository")


def _launcher(context: Context) -> Sign:
    place = shutil.which("memtool", path=context.caller.env.get("PATH"))
    if place is None:
        detail = "memtool is not on the PATH, where hooks look for it"
        hint = f"{installation.install_on_path()}, or add its directory to PATH"
        return Sign("memtool", "command", WARNING, detail, hint)
    try:
        with open(place, "rb") as file:
            text = file.read(4096)
    except OSError as error:
        reason = reason_of(error)
        return Sign("memtool", "command", BROKEN, f"{place} cannot be read: {reason}")
    program = text.partition(b"\n")[0].removeprefix(b"#!").strip().partition(b" ")[0]
    if b"python" in program and os.path.realpath(program) != os.fsencode(
        os.path.realpath(sys.executable)
    ):
        return Sign("memtool", "command", WARNING, f"{place} runs another Python than this memtool")
    return Sign("memtool", "command", GOOD, place)


EXTRAS = {"semantic": "model2vec", "purge": "git_filter_repo", "web": "starlette"}
"""What is installed only where somebody wants it, and a package by which it is known."""


def _extras(context: Context) -> Sign:
    """Look which extras are installed, and whether one is missing that the user's settings need."""
    here = [name for name, package in EXTRAS.items() if find_spec(package) is not None]
    try:
        wanted = context.project.own_settings.text("search.semantic")
    except MemtoolError:  # settings that cannot be read are a sign of their own
        wanted = ""
    if wanted and "semantic" not in here:
        detail = f"search.semantic names {wanted}, and the extra semantic is not installed"
        return Sign("memtool", "extras", WARNING, detail, installation.install("semantic"))
    absent = [name for name in EXTRAS if name not in here]
    parts = [f"{', '.join(here)} installed"] * bool(here)
    parts += [f"{', '.join(absent)} not installed"] * bool(absent)
    return Sign("memtool", "extras", GOOD if here else ABSENT, "; ".join(parts))


def _git(context: Context) -> Sign:
    answer = context.repository.git.line("--version")
    found = re.match(r"git version (\d+)\.(\d+)", answer)
    if found is None:
        return _sign("git", WARNING, f"{answer!r} names no version")
    if (int(found[1]), int(found[2])) < OLDEST_GIT:
        wanted = ".".join(map(str, OLDEST_GIT))
        return _sign("git", BROKEN, answer, f"memtool needs git {wanted} or newer")
    return _sign("git", GOOD, answer)


def _settings(context: Context) -> Sign:
    context.project.refuse_absent()
    own, newest = context.settings.format, config_file.FORMAT
    if own != newest:
        detail = f"{context.project.config_path}: format {own}; this memtool writes {newest}"
        hint = installation.upgrade() if own > newest else "memtool migrate"
        return _sign("settings", WARNING, detail, hint)
    return _sign("settings", GOOD, context.project.config_path)


def _trusted(context: Context) -> Sign:
    commit = provenance.resolve_trusted(
        context.repository, context.project.trust_settings.text("trust.ref")
    )
    if not commit:
        return _sign("trusted ref", GOOD, "none: there is no remote")
    return _sign("trusted ref", GOOD, commit[: provenance.SHORT])


def _has_rules(context: Context) -> bool:
    try:
        return bool(context.settings.rules or context.project.trust_rules)
    except MemtoolError:
        return False  # which the check of the settings has told


MOST_NAMED = 3
"""Owners, lines, memories or damaged files that one sentence names."""


def _owners(context: Context) -> Sign:
    """Look whether the trust rules can be fulfilled: a trusted ref, signers, a key of each owner.

    Then count the memories of the trusted ref that a rule wants signed and no owner signed.
    """
    rules = context.project.trust_rules
    if not context.project.has_trusted_ref:
        detail = f"{len(context.settings.rules)} trust rules hold nowhere: there is no trusted ref"
        return _sign("owners", WARNING, detail, "git fetch, or memtool config trust.ref REF")
    signing = [rule for rule in rules if rule.require == SIGNED]
    if not rules:
        detail = f"{len(context.settings.rules)} trust rules are not in the trusted ref yet"
        return _sign("owners", WARNING, detail, "they hold once they are merged and fetched")
    if not signing:
        return _sign("owners", GOOD, f"{len(rules)} rules of the trusted ref want no signature")
    repository, settings = context.repository, context.project.trust_settings
    signatures.refuse_without_keygen(repository.git.env)
    trusted = provenance.resolve_trusted(repository, settings.text("trust.ref"))
    path = settings.text("trust.allowed_signers")
    data = provenance.signers_at(repository, trusted, path, is_cached=context.is_cached)
    if not data:
        named = f"{path} is not in the trusted ref" if path else "trust.allowed_signers is not set"
        hint = "commit a file of lines `ann@example.org ssh-ed25519 AAAA…`, and name it there"
        return _sign("owners", BROKEN, f"rules want signatures, and {named}", hint)
    signers = signatures.read_signers(data)
    strangers = [
        owner
        for rule in signing
        for owner in rule.owners
        if not any(files.name_matches(owner, one) for one in signers.principals)
    ]
    faults = [f"line {number} of {path} is no key" for number in signers.bad_lines]
    faults += [f"{owner} is no principal of {path}" for owner in dict.fromkeys(strangers)]
    if faults:
        hint = f"git show {trusted[: provenance.SHORT]}:{path}"
        return _sign("owners", WARNING, first_few(faults, MOST_NAMED, between="; "), hint)
    unsigned = _unsigned(context)
    if unsigned:
        detail = f"{len(unsigned)} memories of the trusted ref are not signed as their rule wants"
        hint = f"memtool sign {' '.join(unsigned[:MOST_NAMED])} --commit, as an owner"
        return _sign("owners", WARNING, detail, hint)
    detail = f"{len(rules)} rules, {len(signers.principals)} principals, nothing unsigned"
    return _sign("owners", GOOD, detail)


def _unsigned(context: Context) -> list[str]:
    """Return the ids of memories that the trusted ref holds and an owner should have signed."""
    tree = index.open(context)
    ruled = [
        (record, rule)
        for record in tree.records
        if (rule := rule_of(context.project.trust_rules, record.memory, record.path)) is not None
        and rule.require == SIGNED
    ]
    origins = context.origins(tree, [record for record, _rule in ruled])
    trusted = TRUST_LEVELS[2:]
    return [
        record.id
        for record, rule in ruled
        if origins[record.path].trust in trusted and rule.gap(origins[record.path])
    ]


def _limits(context: Context) -> Sign:
    """Compare what bounds a block with what this worktree asks for: less is not granted."""
    own, agreed = context.settings, context.project.agreed_settings
    bound = own.replace(given={}).bounded(agreed)
    agreed_alone = own.replace(given={}, personal={}).bounded(agreed)
    weaker: list[str] = []
    personal: list[str] = []
    for key in STRICT:
        wanted, held = own.given.get(key), bound.given.get(key)
        if wanted is None or held is None or strictness(key, wanted) >= strictness(key, held):
            continue
        first = agreed_alone.given.get(key)
        is_agreed = first is not None and strictness(key, wanted) < strictness(key, first)
        (weaker if is_agreed else personal).append(f"{key} {wanted}, not {held}")
    if weaker:
        detail = f"this worktree asks for less than the trusted ref: {', '.join(weaker)}"
        hint = f"the stricter holds; git diff of {context.project.config_path} shows who asks"
        return _sign("limits", WARNING, detail, hint)
    if personal:
        return _sign("limits", GOOD, f"your own are stricter: {', '.join(personal)}")
    return _sign("limits", GOOD, "as this worktree asks for them")


def _storage(context: Context) -> Sign:
    """Write a file where memtool keeps its caches, and look how much room is left there."""
    place = context.repository.cache_dir
    try:
        os.makedirs(place, exist_ok=True)
        files.put(place, PROBE, b"written by memtool doctor\n", is_lasting=True)
        os.unlink(os.path.join(place, PROBE))
        state = os.statvfs(place)
    except OSError as error:
        reason = reason_of(error)
        hint = "free some room, or give yourself the right to write there"
        if isinstance(error, PermissionError):
            hint = files.chown_command(place) or hint
        return _sign("storage", BROKEN, f"{place} cannot be written: {reason}", hint)
    free = state.f_bavail * state.f_frsize
    if free < LITTLE_ROOM:
        hint = "memtool session prune frees what sessions take"
        return _sign("storage", WARNING, f"{free // 1_000_000:,} MB are left", hint)
    return _sign("storage", GOOD, "a file was written, and there is room")


def _lock(context: Context) -> Sign:
    """Look for a lock on git's index that nobody holds any more."""
    if context.repository.is_bare:
        return _sign("lock", GOOD, "none")
    text, removal = git_locks.index_lock(context.repository)
    if removal:
        return _sign("lock", BROKEN, text, removal)
    return _sign("lock", GOOD, text or "none")


def _memories(context: Context) -> Sign:
    """Look for files that are no memories, and say where the last commit has a whole one."""
    tree = context.whole_tree
    problems = with_way_back(context, tree.problems)
    wrong = [one for one in problems if one.severity == "error"]
    if not wrong:
        short = _cut_off(context)
        if short:
            more = f", and {len(short) - 1} more" if len(short) > 1 else ""
            what = f"{short[0]} ends before the text that it has in HEAD does{more}"
            return _sign("memories", WARNING, what, way_back(short[0]))
        return _sign("memories", GOOD, f"{tree.count} can be read")
    first = f"{wrong[0].path}: {wrong[0].message}"
    more = f", and {len(wrong) - 1} more (memtool check)" if len(wrong) > 1 else ""
    return _sign("memories", BROKEN, first + more, wrong[0].hint)


def _cut_off(context: Context) -> list[str]:
    """Return the files of memories that are only the beginning of what HEAD has there."""
    repository = context.repository
    head = "" if repository.is_bare else repository.git.head()
    if not head:
        return []
    changed = [
        path
        for letters, path in repository.git.status(context.directory)
        if "M" in letters and path.endswith(".md")
    ]
    stored = provenance.blobs(repository, head, *changed) if changed else {}
    whole = repository.git.blobs([*stored.values()], MAX_BYTES)
    found = []
    for path, data in zip(stored, whole, strict=True):
        here = bytes_of(repository.top, path) or b""
        if len(here) < len(data) and data.startswith(here):
            found.append(path)
    return found


def _due(context: Context) -> Sign:
    """Count the memories that somebody should look at again."""
    tree = context.whole_tree
    facts = Facts(tree, context.clock.now, dict)
    found = [one for one in facts.due() if facts.is_current(one)]
    if found:
        text = f"{len(found)} of {plural(tree.count, 'memory', 'memories')} are due for review"
        hint = "memtool list is:due, then memtool confirm ID or memtool archive ID"
        return _sign("due", WARNING, text, hint)
    return _sign("due", GOOD, "no memory is due for review")


def _drift(context: Context) -> Sign:
    """Count the memories whose files are not what they were."""
    tree = context.whole_tree
    facts = Facts(tree, context.clock.now, dict)
    named = [one for one in tree.records if governed(one) and facts.is_current(one)]
    found = drift_in(tree, lambda: context.witness(tree)).of(named)
    broken = sum(one.level == DRIFTED for one in found.values())
    unknown = sum(one.level == UNKNOWN for one in found.values())
    naming = plural(len(named), "memory names", "memories name")
    from_files = sum(not one.memory.items("files") for one in named)
    only = f", {from_files} of them only what they are taken from" if from_files else ""
    text = f"{naming} files{only}: {broken} broken, {unknown} unknown"
    if broken:
        return _sign("drift", WARNING, text, "memtool drift shows why")
    return _sign("drift", GOOD, text)


def _conflicts(context: Context) -> Sign:
    """Count the memories that cannot all hold."""
    tree = index.open(context)
    cache_dir = context.repository.cache_dir if context.is_cached else ""
    found = conflicts.open_contradictions(tree, context.clock.now, cache_dir)
    if found is None:
        text = "not compared since memories changed"
        return _sign("conflicts", GOOD, text, "memtool conflicts compares them")
    certain = sum(one.is_certain for one in found)
    forks = plural(len(tree.lineage.forks()), "fork")
    sure = plural(certain, "contradiction")
    text = f"{forks}, {sure}, {len(found) - certain:,} more suspected"
    if certain:
        return _sign("conflicts", WARNING, text, "memtool conflicts shows them side by side")
    return _sign("conflicts", GOOD, text)


def _derived(context: Context) -> Sign:
    """Read every derived file, and compare it with its checksum."""
    found = derived.damages(context.repository)
    if not found:
        return _sign("derived files", GOOD, "as they were written")
    here = context.repository.cache_dir + os.sep
    named = first_few([path.removeprefix(here) for path in found], MOST_NAMED, ", and {:,} more")
    what = f"damaged in {here[:-1]}: {named}"
    return _sign("derived files", BROKEN, what, "memtool doctor --fix makes them anew")


def _index(context: Context) -> Sign:
    """Compare what the cache answers with what is read from the files."""
    tree = context.whole_tree
    stored = index.open(context, exact=True)
    masked = set(stored.withheld())  # what is known of these is not what their files say
    if [_known(one, masked) for one in stored.records] != [
        _known(one, masked) for one in tree.records
    ]:
        detail = "the cache gives other memories than the files"
        return _sign("index", BROKEN, detail, "memtool doctor --fix makes it anew")
    place = context.repository.cache_dir
    if context.is_cached and tree.count and not os.access(place, os.W_OK):
        detail = f"{place} cannot be written: every answer is slower"
        return _sign("index", WARNING, detail, files.chown_command(place))
    return _sign("index", GOOD, f"{plural(tree.count, 'memory', 'memories')}, as in the files")


def _known(record: Record, masked: Collection[str]) -> tuple[object, ...]:
    return record.path, record.oid, None if record.path in masked else record.memory


def _ledger(context: Context) -> Sign:
    with ledger.reading(context.repository.cache_dir) as opened:
        answers, _since = opened.answers()
    text = f"{plural(answers, 'answer')} noted"
    aside = os.path.join(context.repository.cache_dir, ledger.ASIDE)
    if os.path.exists(aside):
        since = timestamps.date(int(os.stat(aside).st_ctime))
        what = f"{text} since {since}, when a damaged one was put aside"
        return _sign(
            "ledger", WARNING, what, "memtool maintain --weekly --apply removes it after a day"
        )
    return _sign("ledger", GOOD, text)


MOST_DAMAGED = 5
"""Damaged sessions that are named."""


def _sessions(context: Context) -> Sign:
    """Compare what sessions take with their limit, and look for damaged ones."""
    sessions = store.opened(context)
    stored = retention.stored(sessions)
    found = retention.damages(sessions)
    if found:
        here = f"{sessions.directory}{os.sep}"
        named = [f"{one.id}: {one.what.replace(here, '')}" for one in found[:MOST_DAMAGED]]
        if len(found) > MOST_DAMAGED:
            named.append(f"{len(found) - MOST_DAMAGED} more")
        state = BROKEN if any(one.is_lost for one in found) else WARNING
        hint = "memtool doctor --fix sets damaged files aside and rebuilds them from the messages"
        if not any(one.is_mendable for one in found):
            hint = f"look into {sessions.directory}; sessions never leave it"
        return _sign("sessions", state, f"{stored.text()}; damaged: {'; '.join(named)}", hint)
    if stored.is_nearly_full:
        hint = "memtool session prune, or memtool session delete --older-than 180d"
        return _sign("sessions", WARNING, stored.text(), hint)
    return _sign("sessions", GOOD, stored.text() if stored.sessions else "none are stored")


def hooks(context: Context) -> Sign:
    """Look whether the gate runs at each commit, by git's own hooks or by the framework."""
    if context.repository.is_bare:
        return _sign("hooks", ABSENT, "a bare repository commits nothing")
    framework = git.run_by_the_framework(context.repository)
    site = git.site_of(context.repository, context.directory)
    runs = {name: git_hooks.reached(site, name) for name in git_hooks.HOOKS}
    present = [name for name in git_hooks.HOOKS if runs[name]]
    unreached = [name for name in git_hooks.GATES if not runs[name] and name not in framework]
    if framework and not present:
        return _sign("hooks", GOOD, f"{pre_commit.HOOK} of the pre-commit framework")
    if not unreached:
        return _current_hooks(site, framework, present)
    if not present and pre_commit.is_installed(context.repository.top):
        what = f"{pre_commit.HOOK} is in {pre_commit.CONFIG}, which no hook of this clone runs"
        return _sign("hooks", WARNING, what, pre_commit.INSTALL)
    entry = git_hooks.entry_of(site)
    if entry:
        what = f"{entry} has the entry, and git does not run {', '.join(unreached)}"
        return _sign("hooks", WARNING, what, git_hooks.AGAIN[site.tool])
    state = WARNING if present else ABSENT
    what = f"git does not run it at {', '.join(unreached)}" if present else "not installed"
    return _sign("hooks", state, what, "memtool install git")


def _current_hooks(
    site: git_hooks.HookSite, framework: tuple[str, ...], present: list[str]
) -> Sign:
    """Return the sign of hooks that git runs: whether they are what this version writes."""
    old = [os.path.basename(step.path) for step in git_hooks.install(site, framework)]
    if old:
        return _sign(
            "hooks",
            WARNING,
            f"missing or older: {', '.join(sorted({*old}))}",
            "memtool install git",
        )
    by = f"{pre_commit.HOOK} of the pre-commit framework, and " if framework else ""
    through = f" through {site.tool}" if site.tool else ""
    return _sign("hooks", GOOD, f"{by}{', '.join(present)}{through}")


def _unfinished_commits(context: Context) -> Sign:
    """Look for entries of git's index that a killed commit left, with which git cannot stash."""
    paths = (
        ()
        if context.repository.is_bare
        else commits.intended(context.repository, context.directory)
    )
    if not paths:
        return _sign("unfinished commits", GOOD, "none")
    what = f"git's index only intends to hold {first_few(paths, 1)}, so that git refuses to stash"
    return _sign("unfinished commits", WARNING, what, "memtool doctor --fix takes that out")


def _merge_driver(context: Context) -> Sign:
    """Look whether both halves of the merge driver are there: the attribute and the setting."""
    name = "merge driver"
    if context.repository.is_bare:
        return _sign(name, ABSENT, "a bare repository merges nothing")
    command = git.driver_of(context.repository)
    is_named = git.is_driver_named(context.repository, context.directory)
    if command and is_named:
        if command != git.driver():
            detail = "another Python's or an older one"
            return _sign(name, WARNING, detail, "memtool install git brings it up to date")
        return _sign(name, GOOD, "memories are merged key by key")
    if is_named:
        detail = f"{ATTRIBUTES_NAME} names it, and this clone lacks it: git merges memories as text"
        return _sign(name, WARNING, detail, "memtool install git")
    if command:
        detail = f"{ATTRIBUTES_NAME} does not name it, so git does not run it"
        return _sign(name, WARNING, detail, "memtool init adds the line")
    return _sign(name, ABSENT, "not installed", "memtool install git")


def _log(context: Context) -> Sign:
    """Look for a recent failure: hooks fail in silence."""
    moment, _space, what = contracts.last_failure(context.repository.cache_dir).partition(" ")
    if not what or moment < timestamps.render(context.clock.now - RECENT_S):
        return _sign("hook log", GOOD, "no failure of late")
    detail = f"{moment[:10]}: {what}"
    where = os.path.join(context.repository.cache_dir, contracts.LOG_NAME)
    return _sign("hook log", WARNING, detail, f"{where} holds the rest")
