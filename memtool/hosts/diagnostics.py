"""Diagnostics: checks of the program, the repository and the hooks of a host.

Hooks are tried with a sample event, the way the host runs them. Only the command that memtool
itself writes is run, as the settings of a repository may name another one. Only `repair` changes
anything: it rebuilds derived files.
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
from contextlib import suppress
from functools import partial
from importlib.util import cache_from_source, find_spec

from memtool import installation, version
from memtool.agents import START
from memtool.authoring.tree import ATTRIBUTES_NAME, read_bytes, restore_command, with_way_back
from memtool.errors import MemtoolError, find_reason
from memtool.hosts import contracts, git, git_hooks, pre_commit
from memtool.hosts.contracts import CONTRACTS, Contract
from memtool.hosts.edits import Hook, Site
from memtool.hosts.install import Host
from memtool.index import index
from memtool.memory import timestamps
from memtool.memory.document import MAX_BYTES
from memtool.memory.drift import BROKEN as DRIFTED
from memtool.memory.drift import UNKNOWN
from memtool.memory.schema import parse_source
from memtool.memory.trust import SHORT_ID_DIGITS, TRUST_LEVELS
from memtool.search import conflicts
from memtool.search.features import Facts, list_governed_paths
from memtool.search.scope import build_drift_witness
from memtool.search.stages import MATCHERS
from memtool.sessions import retention, store
from memtool.store import (
    commits,
    derived,
    fetched,
    files,
    git_locks,
    ledger,
    provenance,
    signatures,
)
from memtool.store import config as config_file
from memtool.store.config import STRICT, rank_strictness
from memtool.store.context import Context
from memtool.store.landing import build_landings
from memtool.store.nested import describe_takeover, find_nested_directories
from memtool.store.sources import UNRECORDED, Citation, resolve
from memtool.store.tree import Record
from memtool.store.trust_rules import SIGNED, find_rule
from memtool.value import Value, first_few, format_count

TIMEOUT_S = 10
MESSAGE_PREFIX = "memtool: "
"""Prefix of a hook's message to the user."""
TRIAL_ENV = {"MEMTOOL_NO_LEDGER": "1", "MEMTOOL_LOG": "off", "MEMTOOL_DEBUG": "1"}
"""Variables for a hook: record nothing, and explain on stderr why there is no answer."""
PROBE_NAME = "doctor.probe"
MIN_FREE_BYTES = 100_000_000


class HookTrial(Value):
    """The result of a hook: the `text` for the agent, or the `fault` of the hook."""

    event: str
    text: str
    fault: str
    took_ms: float


def try_hooks(host: Host, site: Site, prompt: str, env: Mapping[str, str]) -> Iterator[HookTrial]:
    """Run the hooks of a host that give text to the agent, with a sample prompt."""
    calls = {
        part.event: shlex.join([part.program, *part.call])  # unguarded, to see failures
        for part in host.parts(site)
        if isinstance(part, Hook)
    }
    for contract in CONTRACTS:
        if contract.host == host.name and contract.event in host.samples:
            own = f"{site.program} hook {host.name} {contract.event}"  # of a plugin
            command = calls.get(contract.name, own)
            event = build_sample(host, contract, site.project, prompt)
            yield _try_hook(contract, command, site.project, event, env)


def build_sample(host: Host, contract: Contract, project: str, prompt: str) -> dict[str, object]:
    """Build an event as the host sends it, for a project and a prompt; without a session."""
    sample_prompt = "" if contract.meaning == START else prompt
    words = {"{project}": project, "{name}": contract.name, "{prompt}": sample_prompt}

    def fill_in(value: object) -> object:
        if isinstance(value, list):
            return [fill_in(item) for item in value]
        if isinstance(value, dict):
            return {key: fill_in(item) for key, item in value.items()}
        if not isinstance(value, str):
            return value
        place, mark, suffix = value.partition("}")
        return words.get(place + mark, place + mark) + suffix

    return {key: fill_in(value) for key, value in host.samples[contract.event].items()}


def _try_hook(
    contract: Contract,
    command: str,
    project: str,
    event: Mapping[str, object],
    env: Mapping[str, str],
) -> HookTrial:
    start = time.monotonic()
    try:
        done = subprocess.run(
            ["sh", "-c", command],
            input=json.dumps(event).encode(),
            cwd=project,
            env={**env, **TRIAL_ENV},
            capture_output=True,
            timeout=TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return HookTrial(contract.event, "", f"no answer within {TIMEOUT_S} s", TIMEOUT_S * 1000.0)
    except OSError as error:
        return HookTrial(contract.event, "", find_reason(error), 0.0)
    took_ms = round((time.monotonic() - start) * 1000, 1)
    message = done.stderr.decode(errors="replace").strip().partition("\n")[0]
    if done.returncode:
        return HookTrial(contract.event, "", f"exit {done.returncode}: {message}", took_ms)
    if message.startswith(MESSAGE_PREFIX):
        return HookTrial(contract.event, "", message.removeprefix(MESSAGE_PREFIX), took_ms)
    try:
        text = _parse_answer(done.stdout.decode(), is_json=bool(contract.silence))
    except ValueError:
        return HookTrial(contract.event, "", "the answer is not what the host reads", took_ms)
    return HookTrial(contract.event, text, "", took_ms)


def _parse_answer(answer: str, *, is_json: bool) -> str:
    """Return the text that the model would get from an answer.

    Raises:
        ValueError: the host cannot read it.
    """
    if not is_json and not answer.lstrip().startswith("{"):
        return answer
    fields = json.loads(answer)
    if not isinstance(fields, dict):
        raise ValueError  # noqa: TRY004  # of the host, not ours
    specific = fields.get("hookSpecificOutput")
    inner = specific if isinstance(specific, dict) else fields
    texts = (inner.get("additionalContext"), *map(fields.get, ("additional_context", "text")))
    return str(next(filter(None, texts), ""))


_VERSION = re.compile(r"\d+(?:\.\d+)+")


def check_program(host: Host, site: Site, env: Mapping[str, str]) -> Iterator[CheckResult]:
    """Check the version of a host's program, and which hooks it refuses to run."""
    match = _VERSION.search(_read_output([host.program, "--version"], site.project, env))
    if match and host.tested_version:
        installed, tested = (
            tuple(map(int, number.split("."))) for number in (match[0], host.tested_version)
        )
        if installed < tested:
            detail = f"{match[0]}, older than {host.tested_version}, with which memtool was tried"
            yield CheckResult(host.name, "version", WARNING, detail, f"update {host.title}")
        else:
            newer = f"newer than {host.tested_version}, with which memtool was tried"
            how = "as tried" if installed == tested else newer
            yield CheckResult(host.name, "version", GOOD, f"{match[0]}, {how}")
    refusal = host.refusal(site, env)
    if refusal:
        yield CheckResult(host.name, "accepted", BROKEN, refusal, host.trust_hint)


def _read_output(call: list[str], folder: str, env: Mapping[str, str]) -> str:
    """Run a program and return its stdout; empty if it fails."""
    try:
        done = subprocess.run(
            call,
            cwd=folder,
            env=dict(env),
            capture_output=True,
            timeout=TIMEOUT_S,
            check=False,
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.decode(errors="replace")


GOOD, ABSENT, WARNING, BROKEN = "good", "absent", "warning", "broken"
MIN_GIT = (2, 28)
RECENT_S = 7 * 86_400
"""Age up to which a failed hook is reported."""


class CheckResult(Value):
    """The result of one check. `area` is memtool, repository or a host.

    `shown` is the text that an agent would see.
    """

    area: str
    name: str
    state: str
    detail: str
    hint: str = ""
    shown: str = ""


def check_memtool(context: Context) -> Iterator[CheckResult]:
    """Check the program: version, command, compiled modules, extras."""
    python = ".".join(map(str, sys.version_info[:3]))
    yield CheckResult("memtool", "version", GOOD, f"{version.__version__}, Python {python}")
    yield _check_launcher(context)
    package = os.path.dirname(version.__file__)
    missing = 0 if _can_compile(package) else _count_uncompiled(package)
    if missing:
        detail = f"{missing} modules are compiled anew at every start"
        hint = f"{shlex.quote(sys.executable)} -m compileall -q {shlex.quote(package)}"
        yield CheckResult("memtool", "byte code", WARNING, detail, hint)
    else:
        yield CheckResult("memtool", "byte code", GOOD, "compiled")
    yield _check_extras(context)
    if context.caller.env.get("MEMTOOL_OFF"):
        yield CheckResult("memtool", "switch", WARNING, "MEMTOOL_OFF is set: agents get nothing")


def check_repository(context: Context) -> Iterator[CheckResult]:
    """Check git, settings, the trusted ref, index, ledger, sessions and hooks."""
    yield _git(context)
    damage = _check_derived(context)
    if damage.state == BROKEN:
        context.is_cached = False  # otherwise it would be repaired before it is reported
    yield damage
    checks = (
        _settings,
        _check_trusted,
        _limits,
        _storage,
        _lock,
        _check_unfinished_commits,
        _memories,
        _due,
        _drift,
        _landings,
        _conflicts,
        _index,
        _ledger,
        _sessions,
        hooks,
        _merge_driver,
        _log,
    )
    for check in checks:
        yield _run_check(check, context)
    if _has_trust_rules(context):
        yield _run_check(_owners, context)
    for place in find_nested_directories(context.repository, context.directory):
        yield _repository_result(
            "nested", WARNING, f"{place} is not read", describe_takeover(place)
        )


def _run_check(check: Callable[[Context], CheckResult], context: Context) -> CheckResult:
    try:
        return check(context)
    except MemtoolError as error:
        return _repository_result(
            check.__name__.lstrip("_").removeprefix("check_").replace("_", " "),
            BROKEN,
            error.message,
            error.hint.replace("\n", "; "),
        )


def repair(context: Context) -> Iterator[str]:
    """Rebuild damaged derived data, and yield a sentence for each repair."""
    if _check_derived(context).state == BROKEN or _run_check(_index, context).state == BROKEN:
        derived.drop_all(context.repository)
        context.trees_by_commit = None
        index.open(context, exact=True)
        yield "made the search index and the other derived files anew"
    if _run_check(_ledger, context).state == BROKEN:
        ledger.fold(context.repository.cache_dir)
        yield "put a broken ledger aside: statistics begin anew"
    yield from _repair_git_index(context)
    sessions = store.open_sessions(context)
    for damage in retention.find_damages(sessions, limit=None):
        if damage.is_mendable:
            try:
                files = ", ".join(retention.repair(sessions, damage.id, context.clock.now))
            except MemtoolError as error:
                context.notes.append(f"{damage.id} cannot be repaired: {error.message}")
                continue
            yield f"rebuilt {files} of session {damage.id}; what was there is next to it"


def _repair_git_index(context: Context) -> Iterator[str]:
    """Remove the entries that a killed commit left in git's index."""
    if not context.repository.is_bare:
        dropped = len(commits.drop_intent_to_add(context.repository, context.directory))
        if dropped:
            what = "an entry" if dropped == 1 else f"{dropped} entries"
            yield f"took {what} of a killed commit out of git's index"


def _can_compile(folder: str) -> bool:
    """Return whether Python itself writes the byte code of a module that it imports first."""
    return not sys.dont_write_bytecode and os.access(sys.pycache_prefix or folder, os.W_OK)


def _count_uncompiled(folder: str) -> int:
    """Count the modules below a directory with missing or outdated byte code."""
    paths = glob.iglob(f"{glob.escape(folder)}/**/*.py", recursive=True)
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


_repository_result = partial(CheckResult, "repository")


def _check_launcher(context: Context) -> CheckResult:
    place = shutil.which("memtool", path=context.caller.env.get("PATH"))
    if place is None:
        detail = "memtool is not on the PATH, where hooks look for it"
        hint = f"{installation.install_on_path()}, or add its directory to PATH"
        return CheckResult("memtool", "command", WARNING, detail, hint)
    try:
        with open(place, "rb") as file:
            text = file.read(4096)
    except OSError as error:
        reason = find_reason(error)
        return CheckResult("memtool", "command", BROKEN, f"{place} cannot be read: {reason}")
    program = text.partition(b"\n")[0].removeprefix(b"#!").strip().partition(b" ")[0]
    if b"python" in program and os.path.realpath(program) != os.fsencode(
        os.path.realpath(sys.executable)
    ):
        return CheckResult(
            "memtool", "command", WARNING, f"{place} runs another Python than this memtool"
        )
    return CheckResult("memtool", "command", GOOD, place)


EXTRA_PACKAGES = {"semantic": "safetensors", "purge": "git_filter_repo", "web": "starlette"}
"""Optional extras, and a package that shows whether each is installed."""


def _check_extras(context: Context) -> CheckResult:
    """Check which extras are installed, and whether the user's settings need a missing one."""
    present = [name for name, package in EXTRA_PACKAGES.items() if find_spec(package) is not None]
    problems: dict[str, tuple[str, str]] = {}
    with suppress(MemtoolError):  # unreadable settings have their own check
        for row in MATCHERS:
            problems[row.extra] = row.check_setup(context, is_installed=row.extra in present)
    for extra, (detail, hint) in problems.items():
        if detail and extra not in present:
            return CheckResult("memtool", "extras", WARNING, detail, hint)
    absent = [name for name in EXTRA_PACKAGES if name not in present]
    parts = [f"{', '.join(present)} installed"] * bool(present)
    parts += [f"{', '.join(absent)} not installed"] * bool(absent)
    parts += [detail for detail, _hint in problems.values() if detail]
    hint = next((hint for _detail, hint in problems.values() if hint), "")
    return CheckResult("memtool", "extras", GOOD if present else ABSENT, "; ".join(parts), hint)


def _git(context: Context) -> CheckResult:
    answer = context.repository.git.line("--version")
    match = re.match(r"git version (\d+)\.(\d+)", answer)
    if match is None:
        return _repository_result("git", WARNING, f"{answer!r} names no version")
    if (int(match[1]), int(match[2])) < MIN_GIT:
        wanted = ".".join(map(str, MIN_GIT))
        return _repository_result("git", BROKEN, answer, f"memtool needs git {wanted} or newer")
    return _repository_result("git", GOOD, answer)


def _settings(context: Context) -> CheckResult:
    context.project.refuse_absent()
    own, newest = context.settings.format, config_file.FORMAT
    if own != newest:
        detail = f"{context.project.config_path}: format {own}; this memtool writes {newest}"
        hint = installation.upgrade_command() if own > newest else "memtool migrate"
        return _repository_result("settings", WARNING, detail, hint)
    return _repository_result("settings", GOOD, context.project.config_path)


def _check_trusted(context: Context) -> CheckResult:
    repository, ref = context.repository, context.project.trust_settings.text("trust.ref")
    commit = provenance.resolve_trusted(repository, ref)
    if not commit:
        return _repository_result("trusted ref", GOOD, "none: there is no remote")
    name, second = (
        provenance.format_trusted_ref(repository, ref),
        fetched.find_last_fetch(repository, ref),
    )
    detail = f"{name} at {commit[:SHORT_ID_DIGITS]}"
    detail += f", last fetched {timestamps.render(second)}" if second else ""
    proposed = fetched.find_upstream_branch(repository) if not ref else ""
    if proposed:
        detail += f"; the fork's own branch, beside a remote upstream ({proposed})"
        return _repository_result(
            "trusted ref", WARNING, detail, f"memtool config trust.ref {proposed}"
        )
    return _repository_result("trusted ref", GOOD, detail)


def _has_trust_rules(context: Context) -> bool:
    try:
        return bool(context.settings.rules or context.project.trust_rules)
    except MemtoolError:
        return False  # the check of the settings reports it


MAX_NAMED = 3
"""Owners, lines, memories or damaged files in one sentence."""


def _owners(context: Context) -> CheckResult:
    """Check that the trust rules can be fulfilled: a trusted ref, signers, a key for each owner.

    Then count the memories in the trusted ref that lack a signature a rule requires.
    """
    rules = context.project.trust_rules
    if not context.project.has_trusted_ref:
        detail = f"{len(context.settings.rules)} trust rules hold nowhere: there is no trusted ref"
        return _repository_result(
            "owners", WARNING, detail, "git fetch, or memtool config trust.ref REF"
        )
    signing = [rule for rule in rules if rule.require == SIGNED]
    if not rules:
        detail = f"{len(context.settings.rules)} trust rules are not in the trusted ref yet"
        return _repository_result(
            "owners", WARNING, detail, "they hold once they are merged and fetched"
        )
    if not signing:
        return _repository_result(
            "owners", GOOD, f"{len(rules)} rules of the trusted ref want no signature"
        )
    repository, settings = context.repository, context.project.trust_settings
    signatures.refuse_without_keygen(repository.git.env)
    trusted = provenance.resolve_trusted(repository, settings.text("trust.ref"))
    path = settings.text("trust.allowed_signers")
    data = provenance.read_signers(repository, trusted, path, is_cached=context.is_cached)
    if not data:
        reason = f"{path} is not in the trusted ref" if path else "trust.allowed_signers is not set"
        hint = "commit a file of lines `ann@example.org ssh-ed25519 AAAA…`, and name it there"
        return _repository_result("owners", BROKEN, f"rules want signatures, and {reason}", hint)
    signers = signatures.read_signers(data)
    unknown_owners = [
        owner
        for rule in signing
        for owner in rule.owners
        if not any(files.matches_name(owner, principal) for principal in signers.principals)
    ]
    faults = [f"line {number} of {path} is no key" for number in signers.bad_lines]
    faults += [f"{owner} is no principal of {path}" for owner in dict.fromkeys(unknown_owners)]
    if faults:
        hint = f"git show {trusted[:SHORT_ID_DIGITS]}:{path}"
        return _repository_result(
            "owners", WARNING, first_few(faults, MAX_NAMED, between="; "), hint
        )
    unsigned = _find_unsigned(context)
    if unsigned:
        detail = f"{len(unsigned)} memories of the trusted ref are not signed as their rule wants"
        hint = f"as an owner: memtool sign {' '.join(unsigned[:MAX_NAMED])} --commit"
        return _repository_result("owners", WARNING, detail, hint)
    detail = f"{len(rules)} rules, {len(signers.principals)} principals, nothing unsigned"
    return _repository_result("owners", GOOD, detail)


def _find_unsigned(context: Context) -> list[str]:
    """Return the ids of memories in the trusted ref that lack the signature of an owner."""
    tree = index.open(context)
    rules_by_record = [
        (record, rule)
        for record in tree.records
        if (rule := find_rule(context.project.trust_rules, record.memory, record.path)) is not None
        and rule.require == SIGNED
    ]
    origins = context.origins(tree, [record for record, _rule in rules_by_record])
    trusted = TRUST_LEVELS[2:]
    return [
        record.id
        for record, rule in rules_by_record
        if origins[record.path].trust in trusted and rule.find_gap(origins[record.path])
    ]


def _limits(context: Context) -> CheckResult:
    """Compare the effective limits of a block with this worktree's; weaker ones have no effect."""
    own, agreed = context.settings, context.project.agreed_settings
    bounded = own.replace(values={}).with_strictest(agreed)
    agreed_alone = own.replace(values={}, personal={}).with_strictest(agreed)
    weaker: list[str] = []
    personal: list[str] = []
    for key in STRICT:
        wanted, effective = own.values.get(key), bounded.values.get(key)
        if (
            wanted is None
            or effective is None
            or rank_strictness(key, wanted) >= rank_strictness(key, effective)
        ):
            continue
        first = agreed_alone.values.get(key)
        is_agreed = first is not None and rank_strictness(key, wanted) < rank_strictness(key, first)
        (weaker if is_agreed else personal).append(f"{key} {wanted}, not {effective}")
    if weaker:
        detail = f"this worktree asks for less than the trusted ref: {', '.join(weaker)}"
        hint = f"the stricter holds; git diff of {context.project.config_path} shows who asks"
        return _repository_result("limits", WARNING, detail, hint)
    if personal:
        return _repository_result("limits", GOOD, f"your own are stricter: {', '.join(personal)}")
    return _repository_result("limits", GOOD, "as this worktree asks for them")


def _storage(context: Context) -> CheckResult:
    """Write a file to memtool's cache directory, and check the free disk space."""
    place = context.repository.cache_dir
    try:
        os.makedirs(place, exist_ok=True)
        files.write_private(place, PROBE_NAME, b"written by memtool doctor\n", is_lasting=True)
        os.unlink(os.path.join(place, PROBE_NAME))
        state = os.statvfs(place)
    except OSError as error:
        reason = find_reason(error)
        hint = "free some room, or give yourself the right to write there"
        if isinstance(error, PermissionError):
            hint = files.build_chown_command(place) or hint
        return _repository_result("storage", BROKEN, f"{place} cannot be written: {reason}", hint)
    free = state.f_bavail * state.f_frsize
    if free < MIN_FREE_BYTES:
        hint = "memtool session prune"
        return _repository_result("storage", WARNING, f"{free // 1_000_000:,} MB are left", hint)
    return _repository_result("storage", GOOD, "a file was written, and there is room")


def _lock(context: Context) -> CheckResult:
    """Check for a stale lock on git's index."""
    if context.repository.is_bare:
        return _repository_result("lock", GOOD, "none")
    text, removal = git_locks.describe_index_lock(context.repository)
    if removal:
        return _repository_result("lock", BROKEN, text, removal)
    return _repository_result("lock", GOOD, text or "none")


def _memories(context: Context) -> CheckResult:
    """Check for invalid or truncated memory files, with a hint how to restore them."""
    tree = context.whole_tree
    problems = with_way_back(context, tree.problems)
    errors = [problem for problem in problems if problem.severity == "error"]
    if not errors:
        truncated = _find_truncated(context)
        if truncated:
            count_text = f", and {len(truncated) - 1} more" if len(truncated) > 1 else ""
            what = f"{truncated[0]} ends before the text that it has in HEAD does{count_text}"
            return _repository_result("memories", WARNING, what, restore_command(truncated[0]))
        masked = [*index.open(context, exact=True).withheld()]
        if masked:
            count_text = format_count(len(masked), "memory holds", "memories hold")
            what = f"{count_text} a secret or personal data"
            return _repository_result("memories", WARNING, what, f"memtool redact {masked[0]}")
        return _repository_result("memories", GOOD, f"{tree.count} can be read")
    first = f"{errors[0].path}: {errors[0].message}"
    count_text = f", and {len(errors) - 1} more (memtool check)" if len(errors) > 1 else ""
    return _repository_result("memories", BROKEN, first + count_text, errors[0].hint)


def _find_truncated(context: Context) -> list[str]:
    """Return the memory files that are a truncated copy of the file in HEAD."""
    repository = context.repository
    head = "" if repository.is_bare else repository.git.head()
    if not head:
        return []
    changed = [
        path
        for letters, path in repository.git.status(context.directory)
        if "M" in letters and path.endswith(".md")
    ]
    stored = provenance.list_blobs(repository, head, *changed) if changed else {}
    contents = repository.git.blobs([*stored.values()], MAX_BYTES)
    truncated = []
    for path, data in zip(stored, contents, strict=True):
        current = read_bytes(repository.top, path) or b""
        if len(current) < len(data) and data.startswith(current):
            truncated.append(path)
    return truncated


def _due(context: Context) -> CheckResult:
    """Count the memories that are due for review."""
    tree = context.whole_tree
    facts = Facts(tree, context.clock.now, dict)
    due = [record for record in facts.due() if facts.is_current(record)]
    if due:
        text = f"{len(due)} of {format_count(tree.count, 'memory', 'memories')} are due for review"
        hint = "memtool list is:due, then memtool confirm ID or memtool archive ID"
        return _repository_result("due", WARNING, text, hint)
    return _repository_result("due", GOOD, "no memory is due for review")


def _drift(context: Context) -> CheckResult:
    """Count the memories with drift."""
    tree = context.whole_tree
    facts = Facts(tree, context.clock.now, dict)
    records = [
        record
        for record in tree.records
        if list_governed_paths(record) and facts.is_current(record)
    ]
    drifts = build_drift_witness(tree, lambda: context.provenance_reader(tree)).find(records)
    broken = sum(drift.level == DRIFTED for drift in drifts.values())
    unknown = sum(drift.level == UNKNOWN for drift in drifts.values())
    naming = format_count(len(records), "memory names", "memories name")
    from_files = sum(not record.memory.items("files") for record in records)
    only = f", {from_files} of them only what they are taken from" if from_files else ""
    text = f"{naming} files{only}: {broken} broken, {unknown} unknown"
    if broken:
        return _repository_result("drift", WARNING, text, "memtool drift shows why")
    return _repository_result("drift", GOOD, text)


def _landings(context: Context) -> CheckResult:
    """Count the memories that rest on commits lost in a squash or rebase, without a record."""
    tree = context.whole_tree
    facts = Facts(tree, context.clock.now, dict)
    unrecorded = [
        record
        for record in tree.records
        if "saw" not in record.memory.table("checked") and facts.is_current(record)
    ]
    witness = context.provenance_reader(tree)
    drifts = build_drift_witness(tree, lambda: witness).find(
        record for record in unrecorded if list_governed_paths(record)
    )
    paths = {
        record.path
        for record in unrecorded
        if record.path in drifts and drifts[record.path].has_landed
    }
    cited = [
        Citation(source, "", record.path)
        for record in unrecorded
        for source in map(parse_source, record.memory.items("source"))
        if source.commit
    ]
    if cited and witness.basis is not None:
        tips = (witness.basis.head, witness.basis.trusted_head)
        resolved = resolve(context.repository, cited, tips, build_landings(witness))
        paths |= {citation.path for citation, state in resolved.items() if state.type == UNRECORDED}
    if not paths:
        return _repository_result("landings", GOOD, "no memory rests on a commit that is lost")
    text = (
        f"{format_count(len(paths), 'memory rests', 'memories rest')} "
        "on commits that a squash or a "
        "rebase has replaced, without a record of them"
    )
    hint = (
        "git fetch origin refs/pull/N/head (GitLab: refs/merge-requests/N/head) brings the commits "
        "of pull request N back, then memtool migrate --commit"
    )
    return _repository_result("landings", WARNING, text, hint)


def _conflicts(context: Context) -> CheckResult:
    """Count forks and contradictions."""
    tree = index.open(context)
    contradictions = conflicts.find_open_contradictions(tree, context.clock.now, context.cache_dir)
    if contradictions is None:
        text = "not compared since memories changed"
        return _repository_result("conflicts", GOOD, text, "memtool conflicts compares them")
    certain = sum(contradiction.is_certain for contradiction in contradictions)
    forks = format_count(len(tree.lineage.find_forks()), "fork")
    certain_text = format_count(certain, "contradiction")
    text = f"{forks}, {certain_text}, {len(contradictions) - certain:,} more suspected"
    if certain:
        return _repository_result(
            "conflicts", WARNING, text, "memtool conflicts shows them side by side"
        )
    return _repository_result("conflicts", GOOD, text)


def _check_derived(context: Context) -> CheckResult:
    """Verify the checksum of every derived file."""
    damages = derived.find_damaged_files(context.repository)
    if not damages:
        return _repository_result("derived files", GOOD, "as they were written")
    here = context.repository.cache_dir + os.sep
    names = first_few([path.removeprefix(here) for path in damages], MAX_NAMED, ", and {:,} more")
    what = f"damaged in {here[:-1]}: {names}"
    return _repository_result("derived files", BROKEN, what, "memtool doctor --fix makes them anew")


def _index(context: Context) -> CheckResult:
    """Compare the memories in the index with those in the files."""
    tree = context.whole_tree
    stored = index.open(context, exact=True)
    masked = set(stored.withheld())  # their content in the index is deliberately masked
    if [_comparable(record, masked) for record in stored.records] != [
        _comparable(record, masked) for record in tree.records
    ]:
        detail = "the cache gives other memories than the files"
        return _repository_result("index", BROKEN, detail, "memtool doctor --fix makes it anew")
    place = context.repository.cache_dir
    if context.is_cached and tree.count and not os.access(place, os.W_OK):
        detail = f"{place} cannot be written: every answer is slower"
        return _repository_result("index", WARNING, detail, files.build_chown_command(place))
    return _repository_result(
        "index", GOOD, f"{format_count(tree.count, 'memory', 'memories')}, as in the files"
    )


def _comparable(record: Record, masked: Collection[str]) -> tuple[object, ...]:
    return record.path, record.oid, None if record.path in masked else record.memory


def _ledger(context: Context) -> CheckResult:
    with ledger.open_ledger(context.repository.cache_dir) as opened:
        answers, _since = opened.answers()
    text = f"{format_count(answers, 'answer')} noted"
    aside = os.path.join(context.repository.cache_dir, ledger.BROKEN_NAME)
    if os.path.exists(aside):
        since = timestamps.format_date(int(os.stat(aside).st_ctime))
        what = f"{text} since {since}, when a damaged one was put aside"
        return _repository_result(
            "ledger", WARNING, what, "memtool maintain --weekly --apply removes it after a day"
        )
    return _repository_result("ledger", GOOD, text)


MAX_NAMED_SESSIONS = 5


def _sessions(context: Context) -> CheckResult:
    """Compare the disk usage of sessions with its limit, and check for damaged ones."""
    sessions = store.open_sessions(context)
    stored = retention.measure(sessions)
    damages = retention.find_damages(sessions)
    if damages:
        here = f"{sessions.directory}{os.sep}"
        lines = [
            f"{damage.id}: {damage.what.replace(here, '')}"
            for damage in damages[:MAX_NAMED_SESSIONS]
        ]
        if len(damages) > MAX_NAMED_SESSIONS:
            lines.append(f"{len(damages) - MAX_NAMED_SESSIONS} more")
        state = BROKEN if any(damage.is_lost for damage in damages) else WARNING
        hint = "rebuild them from the messages: memtool doctor --fix"
        if not any(damage.is_mendable for damage in damages):
            hint = f"look into {sessions.directory}; sessions never leave it"
        return _repository_result(
            "sessions", state, f"{stored.text()}; damaged: {'; '.join(lines)}", hint
        )
    if stored.is_nearly_full:
        hint = "memtool session prune, or memtool session delete --older-than 180d"
        return _repository_result("sessions", WARNING, stored.text(), hint)
    return _repository_result(
        "sessions", GOOD, stored.text() if stored.sessions else "none are stored"
    )


def hooks(context: Context) -> CheckResult:
    """Check that the gate runs at each commit, through git's hooks or the framework."""
    if context.repository.is_bare:
        return _repository_result("hooks", ABSENT, "a bare repository commits nothing")
    framework = git.find_framework_hooks(context.repository)
    site = git.find_hook_site(context.repository, context.directory)
    files_by_hook = {name: git_hooks.find_gate_hook(site, name) for name in git_hooks.HOOKS}
    present = [name for name in git_hooks.HOOKS if files_by_hook[name]]
    missing = [
        name for name in git_hooks.GATES if not files_by_hook[name] and name not in framework
    ]
    if framework and not present:
        return _repository_result("hooks", GOOD, f"{pre_commit.HOOK} of the pre-commit framework")
    if not missing:
        return _check_hook_versions(site, framework, present)
    if not present and pre_commit.is_installed(context.repository.top):
        what = f"{pre_commit.HOOK} is in {pre_commit.CONFIG}, which no hook of this clone runs"
        return _repository_result("hooks", WARNING, what, pre_commit.INSTALL_COMMAND)
    entry = git_hooks.find_tool_entry(site)
    if entry:
        what = f"{entry} has the entry, and git does not run {', '.join(missing)}"
        return _repository_result("hooks", WARNING, what, git_hooks.REINSTALL_COMMANDS[site.tool])
    state = WARNING if present else ABSENT
    what = f"git does not run it at {', '.join(missing)}" if present else "not installed"
    return _repository_result("hooks", state, what, "memtool install git")


def _check_hook_versions(
    site: git_hooks.HookSite, framework: tuple[str, ...], present: list[str]
) -> CheckResult:
    """Check whether the hooks that git runs are those of this version."""
    outdated = [os.path.basename(step.path) for step in git_hooks.plan_install(site, framework)]
    if outdated:
        return _repository_result(
            "hooks",
            WARNING,
            f"missing or older: {', '.join(sorted({*outdated}))}",
            "memtool install git",
        )
    by = f"{pre_commit.HOOK} of the pre-commit framework, and " if framework else ""
    through = f" through {site.tool}" if site.tool else ""
    return _repository_result("hooks", GOOD, f"{by}{', '.join(present)}{through}")


def _check_unfinished_commits(context: Context) -> CheckResult:
    """Check for entries that a killed commit left in git's index; they block `git stash`."""
    paths = (
        ()
        if context.repository.is_bare
        else commits.list_intent_to_add(context.repository, context.directory)
    )
    if not paths:
        return _repository_result("unfinished commits", GOOD, "none")
    what = f"git's index only intends to hold {first_few(paths, 1)}, so that git refuses to stash"
    return _repository_result(
        "unfinished commits", WARNING, what, "memtool doctor --fix takes that out"
    )


def _merge_driver(context: Context) -> CheckResult:
    """Check that both parts of the merge driver exist: the attribute and the setting."""
    name = "merge driver"
    if context.repository.is_bare:
        return _repository_result(name, ABSENT, "a bare repository merges nothing")
    command = git.read_driver(context.repository)
    is_named = git.is_driver_named(context.repository, context.directory)
    if command and is_named:
        if command != git.build_driver():
            detail = "another Python's or an older one"
            return _repository_result(
                name, WARNING, detail, "memtool install git brings it up to date"
            )
        return _repository_result(name, GOOD, "memories are merged key by key")
    if is_named:
        detail = f"{ATTRIBUTES_NAME} names it, and this clone lacks it: git merges memories as text"
        return _repository_result(name, WARNING, detail, "memtool install git")
    if command:
        detail = f"{ATTRIBUTES_NAME} does not name it, so git does not run it"
        return _repository_result(name, WARNING, detail, "memtool init adds the line")
    return _repository_result(name, ABSENT, "not installed", "memtool install git")


def _log(context: Context) -> CheckResult:
    """Check for a recent failure in the log, as hooks show no errors."""
    moment, _space, what = contracts.find_last_failure(context.repository.cache_dir).partition(" ")
    if not what or moment < timestamps.render(context.clock.now - RECENT_S):
        return _repository_result("hook log", GOOD, "no failure of late")
    detail = f"{moment[:10]}: {what}"
    where = os.path.join(context.repository.cache_dir, contracts.LOG_NAME)
    return _repository_result("hook log", WARNING, detail, f"{where} holds the rest")
