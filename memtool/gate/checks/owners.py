"""The owners check: what trust rules protect changes by the hand of an owner alone.

A range of commits is judged by the rules and the allowed signers of its base, which its own commits
cannot change. What counts is the difference between both ends: of each memory that a rule wants
signed, each file with a signature, and the gate's own files. The last commit that made a file what
it is must be signed by an owner; for a memory that is new, and for a claim of a candidate, an
owner's detached signature does as well. A memory that replaces another is judged by the rule of
that one, too. Authors' names prove nothing, and nobody is asked for them.

A squash or rebase merge of a forge drops the signatures of commits. So where the trusted ref holds
the range already, what only these could prove is a warning: the check of the pull request decided.
"""

from __future__ import annotations

from memtool.errors import MemtoolError
from memtool.gate.content import Content, OwnedChange, Protection
from memtool.memory import changes
from memtool.memory.schema import Problem
from memtool.store import config as config_file
from memtool.store import provenance, signatures, snapshot, trust_rules, versions
from memtool.store.files import POINTER_NAME
from memtool.store.provenance import SHORT
from memtool.store.trust_rules import SIGNED, TrustRule, rule_of
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from memtool.memory.changes import Version
    from memtool.memory.memory import Memory
    from memtool.store.context import Context
    from memtool.store.git import TreeEntry

ATTRIBUTES = ".gitattributes"
MOST_OWNERS = 3
"""Owners that a message names."""


def protection(context: Context, start: str, end: str) -> Protection | None:
    """Return what protects files from a range of commits; None where no rule wants signatures.

    Where the range has no start, as on a new branch, the trusted ref stands for it.

    Raises:
        MemtoolError: the rules of the base cannot be read, or a shallow clone does not hold where
            both ends parted.
    """
    repository = context.repository
    git = repository.git
    trusted = provenance.resolve_trusted(
        repository, context.project.trust_settings.text("trust.ref")
    )
    base = start or trusted
    if not base:
        return None
    directory = context.project.directory_at(base)
    settings = _settings(context, base, f"{directory}/{config_file.CONFIG_NAME}")
    rules = settings.rules
    gate = trust_rules.gate_rule(rules)
    if gate is None:
        return None
    bases = git.line("merge-base", "--all", base, end, allowed=(0, 1)).split()
    if not bases and repository.shallow_commits():
        raise MemtoolError(
            f"this shallow clone does not hold where {end[:SHORT]} and {base[:SHORT]} parted, so "
            "nobody can tell who changed what",
            hint="git fetch --unshallow, or fetch-depth: 0 in the workflow",
            code="shallow",
        )
    signers_path = settings.text("trust.allowed_signers")
    gate_paths = (
        f"{directory}/{config_file.CONFIG_NAME}",
        f"{directory}/{ATTRIBUTES}",
        ATTRIBUTES,
        POINTER_NAME,
        *([signers_path] if signers_path else []),
    )
    trees = [_entries(context, commit, directory, gate_paths) for commit in bases or [base]]
    is_settled = bool(trusted) and not git.line("rev-list", "--max-count=1", end, f"^{trusted}")
    # What the base, or the trusted ref, has as well is no change of this range: a merge brought it.
    tips = {base} if is_settled or not trusted else {base, trusted}
    there = [_entries(context, tip, directory, gate_paths) for tip in sorted(tips)]
    after = _entries(context, end, directory, gate_paths)
    found = []
    for path in sorted(set(after).union(*trees)):
        new = after.get(path)
        olds = [tree[path] for tree in trees if path in tree]
        if (
            new in olds
            or (new is None and len(olds) < len(trees))
            or any(tree.get(path) == new for tree in there)
        ):
            continue
        is_new_signature = not olds and signatures.is_signature_path(path, directory)
        if not is_new_signature:
            found.append(OwnedChange(path, tuple(olds), new))
    return Protection(
        context=context,
        base=base,
        end=end,
        directory=directory,
        rules=rules,
        gate=gate,
        signers=provenance.signers_at(repository, base, signers_path, is_cached=context.is_cached),
        olds={
            path: tuple(tree[path] for tree in trees if path in tree)
            for path in set().union(*trees)
        },
        changes=tuple(found),
        signed=frozenset(
            signatures.id_of(path)
            for path in after
            if signatures.is_signature_path(path, directory)
        ),
        is_settled=is_settled,
    )


def _settings(context: Context, base: str, path: str) -> config_file.Config:
    """Return the settings of the base; without rules it does not matter whether they are sound."""
    data = context.project.stored_file(path, base) or b""
    try:
        return config_file.parse(data, f"{base[:SHORT]}:{path}")
    except MemtoolError as error:
        if b"rules" not in data:
            return config_file.DEFAULTS
        raise MemtoolError(
            f"nobody can tell who owns what: {error}",
            hint=f"mend {path} in the branch that the range starts from",
            code="config",
        ) from None


def _entries(
    context: Context, commit: str, directory: str, gate_paths: Sequence[str]
) -> dict[str, TreeEntry]:
    """Return the files of a commit that may be protected, by path."""
    listed = context.repository.git.ls_tree(commit, directory, *gate_paths)
    return {
        entry.path: entry
        for entry in listed
        if entry.path in gate_paths
        or snapshot.is_memory_path(entry.path, directory)
        or signatures.is_signature_path(entry.path, directory)
    }


class Demand(Value):
    """What a change must be proven by: rules, each with why it applies, and how.

    `is_act` says that only a commit can prove it, since no claim is all that is new.
    """

    change: OwnedChange
    id: str
    rules: tuple[TrustRule, ...]
    is_act: bool


def check(content: Content) -> Iterator[Problem]:
    """Yield what an owner should have changed, and nobody can tell that one did."""
    held = content.protection
    if held is None or not held.changes:
        return
    demands = list(_demands(held, content.settings.categories))
    if not demands:
        return
    repository = content.repository
    signatures.refuse_without_keygen(repository.git.env)
    last = _last_commits(held, [one.change for one in demands])
    signers = signatures.signed_by(repository, set(last.values()), held.signers, _cache_dir(held))
    claims = [
        signatures.Asked(one.change.path, one.change.after.oid, "")
        for one in demands
        if not one.is_act and one.change.after is not None
    ]
    detached = (
        signatures.detached_by(
            repository, held.end, held.directory, claims, held.signers, _cache_dir(held)
        )
        if claims and held.signers
        else {}
    )
    for one in demands:
        path = one.change.path
        commit = last.get(path, "")
        by = [signers[commit]] if commit in signers else []
        by += [] if one.is_act else detached.get(path, ())
        missing = [rule for rule in one.rules if not any(map(rule.is_owner, by))]
        if missing:
            yield _problem(held, one, missing[0], commit, by)


def _demands(held: Protection, categories: Iterable[str]) -> Iterator[Demand]:
    """Yield the changes that a rule wants to be signed."""
    versions = _versions(held, frozenset(categories))
    by_id = {
        changes.stem(path): path
        for path in held.olds
        if snapshot.is_memory_path(path, held.directory)
    }

    def ruling(memory: Memory | None, path: str) -> list[TrustRule]:
        rule = rule_of(held.rules, memory, path)
        if rule is None and memory is None:
            rule = held.gate  # nobody can tell which one is about it
        return [rule] if rule is not None and rule.require == SIGNED else []

    def before(path: str) -> list[Version]:
        return [versions[path, entry.oid] for entry in held.olds.get(path, ())]

    for one in held.changes:
        path = one.path
        if signatures.is_signature_path(path, held.directory):
            id_ = signatures.id_of(path)
            place = by_id.get(id_, "")
            rules = [r for old in before(place) for r in ruling(old.memory, place)] if place else []
            is_act = True
        elif not snapshot.is_memory_path(path, held.directory):
            id_, is_act = "", True
            rules = [held.gate] if held.gate is not None else []
        else:
            id_ = changes.stem(path)
            olds = before(path)
            new = None if one.after is None else versions[path, one.after.oid]
            is_act = _is_act(olds, new)
            rules = [rule for old in olds for rule in ruling(old.memory, path)]
            if new is not None:
                rules += ruling(new.memory, path)
            for other in _replaced(olds, new):
                place = by_id.get(other, "")
                rules += [r for old in before(place) for r in ruling(old.memory, place)]
        if rules:
            yield Demand(one, id_, tuple(dict.fromkeys(rules)), is_act)


def _versions(held: Protection, categories: frozenset[str]) -> dict[tuple[str, str], Version]:
    """Return the versions of memories that changed, and of those that they may replace."""
    directory = held.directory
    stamps = {
        (one.path, one.after.oid)
        for one in held.changes
        if one.after is not None and snapshot.is_memory_path(one.path, directory)
    }
    repository = held.context.repository
    found = versions.of_blobs(repository, stamps, categories)
    ids = {
        signatures.id_of(one.path)
        for one in held.changes
        if signatures.is_signature_path(one.path, directory)
    }
    for version in found.values():
        ids.update(version.memory.supersedes if version.memory is not None else ())
    changed = {one.path for one in held.changes}
    wanted = {
        (path, entry.oid)
        for path, entries in held.olds.items()
        if snapshot.is_memory_path(path, directory)
        and (path in changed or changes.stem(path) in ids)
        for entry in entries
    }
    found |= versions.of_blobs(repository, wanted - found.keys(), categories)
    if any(version.fault == versions.ABSENT for version in found.values()):
        raise MemtoolError(
            "this partial clone does not hold the memories that the range changed, so nobody can "
            "tell which rules are about them",
            hint="git fetch --refetch --no-filter brings all of it",
            code="shallow",
        )
    return found


def _is_act(olds: Sequence[Version], new: Version | None) -> bool:
    """Tell whether more changed than a claim: a file is gone, or a key of the lifecycle differs."""
    if new is None or new.memory is None:
        return True
    return any(
        old.memory is None
        or old.memory.status != new.memory.status
        or old.memory.table("checked") != new.memory.table("checked")
        or not all(map(changes.is_claim, changes.changed_keys(old.memory, new.memory)))
        for old in olds
    )


def _replaced(olds: Sequence[Version], new: Version | None) -> set[str]:
    """Return the ids that a memory replaces, and did not before."""
    if new is None or new.memory is None:
        return set()
    known = [set(old.memory.replaces) for old in olds if old.memory is not None]
    return set(new.memory.replaces).difference(*known)


def _cache_dir(held: Protection) -> str:
    """Return the directory in which is kept what was verified; empty for none."""
    return held.context.repository.cache_dir if held.context.is_cached else ""


def _last_commits(held: Protection, changed: Sequence[OwnedChange]) -> dict[str, str]:
    """Return the last commit of the range that made each file what it is at the end, by path.

    One that is missing was made so by no commit of the range: a merge went back to an older state.
    """
    wanted = {one.path: one for one in changed}
    rows = provenance.changes_of(
        held.context.repository, [held.end, f"^{held.base}"], wanted, (), is_strict=True
    )
    found: dict[str, str] = {}
    for commit, row in rows:
        after = wanted[row.path].after
        is_gone = not row.mode.strip("0")
        is_so = is_gone if after is None else (row.mode, row.oid) == (after.mode, after.oid)
        if is_so:
            found.setdefault(row.path, commit)
    return found


def _problem(
    held: Protection, one: Demand, rule: TrustRule, commit: str, by: Sequence[str]
) -> Problem:
    names = " or ".join(rule.owners[:MOST_OWNERS]) or "an allowed signer"
    if len(rule.owners) > MOST_OWNERS:
        names += f" or {len(rule.owners) - MOST_OWNERS} others"
    done = "removed" if one.change.after is None else "changed" if one.change.befores else "added"
    if not held.signers:
        what = f"trust.allowed_signers of {held.base[:SHORT]} names no file with signers"
    elif by:
        what = f"it was signed by {', '.join(by)}"
    elif commit:
        what = f"commit {commit[:SHORT]} has no good signature of a signer"
    else:
        what = "no commit of the range made it so: a merge went back to it"
    if one.id in held.signed and not one.is_act and not by:
        what += ", and no file with its signature is good: they are over another claim or memory, "
        what += "or by a key that no signer has"
    message = f"it was {done}, which {names} must sign ({rule.match}); {what}"
    hint = "an owner makes that change, with git commit -S; the name of an author proves nothing"
    if not one.is_act:
        hint = f"an owner runs memtool sign {one.id} --commit, or commits it with git commit -S"
    is_settled = one.is_act and held.is_settled
    return Problem(
        one.change.path,
        1 if one.change.after else 0,
        "unowned",
        message,
        hint,
        one.id,
        "warning" if is_settled else "error",
    )
