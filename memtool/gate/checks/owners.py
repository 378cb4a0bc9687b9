"""The owners check: only an owner may change what trust rules protect.

A range of commits is judged by the rules and allowed signers of its base, which its own commits
cannot change. The check compares both ends: each memory that a rule requires to be signed, each
signature file, and the gate's own files. An owner must have signed the last commit that gave a file
its final content. For a new memory, or a claim of a candidate, an owner's detached signature is
enough. A memory that replaces another is judged by the rule of that one, too. Authors' names prove
nothing and are not used.

A squash or rebase merge of a forge drops the signatures of commits. So if the trusted ref already
contains the range, a missing commit signature is a warning: the check of the pull request decided.
"""

from __future__ import annotations

from memtool.errors import MemtoolError
from memtool.gate.content import Content, OwnedChange, Protection
from memtool.memory import changes
from memtool.memory.schema import Problem
from memtool.memory.trust import SHORT_ID_DIGITS
from memtool.store import config as config_file
from memtool.store import provenance, signatures, snapshot, trust_rules, versions
from memtool.store.files import POINTER_NAME
from memtool.store.trust_rules import SIGNED, TrustRule, find_rule
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from memtool.memory.changes import Version
    from memtool.memory.memory import Memory
    from memtool.store.context import Context
    from memtool.store.git import TreeEntry

ATTRIBUTES = ".gitattributes"
MAX_NAMED_OWNERS = 3


def find_protection(context: Context, start: str, end: str) -> Protection | None:
    """Return the protection against a range of commits, None if no rule requires signatures.

    If the range has no start, as on a new branch, the trusted ref is the base.

    Raises:
        MemtoolError: the rules of the base cannot be read, or a shallow clone does not contain the
            merge base.
    """
    repository = context.repository
    git = repository.git
    trusted = provenance.resolve_trusted(
        repository, context.project.trust_settings.text("trust.ref")
    )
    base = start or trusted
    if not base:
        return None
    directory = context.project.read_directory_at(base)
    settings = _read_settings(context, base, f"{directory}/{config_file.CONFIG_NAME}")
    rules = settings.rules
    gate = trust_rules.find_gate_rule(rules)
    if gate is None:
        return None
    bases = git.line("merge-base", "--all", base, end, allowed=(0, 1)).split()
    if not bases and repository.shallow_commits():
        raise MemtoolError(
            f"cannot check owners: this shallow clone lacks the merge base of "
            f"{end[:SHORT_ID_DIGITS]} and {base[:SHORT_ID_DIGITS]}",
            hint="git fetch --unshallow\nin CI: fetch-depth: 0",
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
    trees = [_list_entries(context, commit, directory, gate_paths) for commit in bases or [base]]
    is_settled = bool(trusted) and not git.line("rev-list", "--max-count=1", end, f"^{trusted}")
    # A version that the base or the trusted ref has as well came by a merge: it is not a change.
    tips = {base} if is_settled or not trusted else {base, trusted}
    tip_trees = [_list_entries(context, tip, directory, gate_paths) for tip in sorted(tips)]
    after = _list_entries(context, end, directory, gate_paths)
    owned_changes = []
    for path in sorted(set(after).union(*trees)):
        new = after.get(path)
        olds = [tree[path] for tree in trees if path in tree]
        if (
            new in olds
            or (new is None and len(olds) < len(trees))
            or any(tree.get(path) == new for tree in tip_trees)
        ):
            continue
        is_new_signature = not olds and signatures.is_signature_path(path, directory)
        if not is_new_signature:
            owned_changes.append(OwnedChange(path, tuple(olds), new))
    return Protection(
        context=context,
        base=base,
        end=end,
        directory=directory,
        rules=rules,
        gate=gate,
        signers=provenance.read_signers(
            repository, base, signers_path, is_cached=context.is_cached
        ),
        olds={
            path: tuple(tree[path] for tree in trees if path in tree)
            for path in set().union(*trees)
        },
        changes=tuple(owned_changes),
        signed=frozenset(
            signatures.parse_id(path)
            for path in after
            if signatures.is_signature_path(path, directory)
        ),
        is_settled=is_settled,
    )


def _read_settings(context: Context, base: str, path: str) -> config_file.Config:
    """Return the settings of the base; if they have no rules, they need not be valid."""
    data = context.project.read_stored_file(path, base) or b""
    try:
        return config_file.parse(data, f"{base[:SHORT_ID_DIGITS]}:{path}")
    except MemtoolError as error:
        if b"rules" not in data:
            return config_file.DEFAULTS
        raise MemtoolError(
            f"cannot check owners: {error}",
            hint=f"fix {path} on the branch where the range starts",
            code="config",
        ) from None


def _list_entries(
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


class RequiredProof(Value):
    """A change and the rules by which an owner must have signed it.

    `is_act` means that only a signed commit proves it, since more than a claim changed.
    """

    change: OwnedChange
    id: str
    rules: tuple[TrustRule, ...]
    is_act: bool


def check(content: Content) -> Iterator[Problem]:
    """Yield the changes that require an owner's signature and have none."""
    protection = content.protection
    if protection is None or not protection.changes:
        return
    proofs = list(_find_required_proofs(protection, content.settings.categories))
    if not proofs:
        return
    repository = content.repository
    signatures.refuse_without_keygen(repository.git.env)
    last = _find_last_commits(protection, [proof.change for proof in proofs])
    signers = signatures.find_commit_signers(
        repository, set(last.values()), protection.signers, protection.context.cache_dir
    )
    claims = [
        signatures.SignedVersion(proof.change.path, proof.change.after.oid, "")
        for proof in proofs
        if not proof.is_act and proof.change.after is not None
    ]
    detached = (
        signatures.find_detached_signers(
            repository,
            protection.end,
            protection.directory,
            claims,
            protection.signers,
            protection.context.cache_dir,
        )
        if claims and protection.signers
        else {}
    )
    for proof in proofs:
        path = proof.change.path
        commit = last.get(path, "")
        principals = [signers[commit]] if commit in signers else []
        principals += [] if proof.is_act else detached.get(path, ())
        missing = [rule for rule in proof.rules if not any(map(rule.is_owner, principals))]
        if missing:
            yield _make_problem(protection, proof, missing[0], commit, principals)


def _find_required_proofs(
    protection: Protection, categories: Iterable[str]
) -> Iterator[RequiredProof]:
    """Yield the changes that a rule requires to be signed."""
    versions = _read_versions(protection, frozenset(categories))
    by_id = {
        changes.id_from_path(path): path
        for path in protection.olds
        if snapshot.is_memory_path(path, protection.directory)
    }

    def find_rules(memory: Memory | None, path: str) -> list[TrustRule]:
        rule = find_rule(protection.rules, memory, path)
        if rule is None and memory is None:
            rule = protection.gate  # unknown which rule applies
        return [rule] if rule is not None and rule.require == SIGNED else []

    def find_old_versions(path: str) -> list[Version]:
        return [versions[path, entry.oid] for entry in protection.olds.get(path, ())]

    for change in protection.changes:
        path = change.path
        if signatures.is_signature_path(path, protection.directory):
            id_ = signatures.parse_id(path)
            place = by_id.get(id_, "")
            rules = (
                [r for old in find_old_versions(place) for r in find_rules(old.memory, place)]
                if place
                else []
            )
            is_act = True
        elif not snapshot.is_memory_path(path, protection.directory):
            id_, is_act = "", True
            rules = [protection.gate] if protection.gate is not None else []
        else:
            id_ = changes.id_from_path(path)
            olds = find_old_versions(path)
            new = None if change.after is None else versions[path, change.after.oid]
            is_act = _is_act(olds, new)
            rules = [rule for old in olds for rule in find_rules(old.memory, path)]
            if new is not None:
                rules += find_rules(new.memory, path)
            for other in _find_replaced(olds, new):
                place = by_id.get(other, "")
                rules += [
                    r for old in find_old_versions(place) for r in find_rules(old.memory, place)
                ]
        if rules:
            yield RequiredProof(change, id_, tuple(dict.fromkeys(rules)), is_act)


def _read_versions(
    protection: Protection, categories: frozenset[str]
) -> dict[tuple[str, str], Version]:
    """Return the versions of changed memories, and of those that they may replace."""
    directory = protection.directory
    stamps = {
        (change.path, change.after.oid)
        for change in protection.changes
        if change.after is not None and snapshot.is_memory_path(change.path, directory)
    }
    repository = protection.context.repository
    version_by_stamp = versions.read_blobs(repository, stamps, categories)
    ids = {
        signatures.parse_id(change.path)
        for change in protection.changes
        if signatures.is_signature_path(change.path, directory)
    }
    for version in version_by_stamp.values():
        ids.update(version.memory.supersedes if version.memory is not None else ())
    changed = {change.path for change in protection.changes}
    wanted = {
        (path, entry.oid)
        for path, entries in protection.olds.items()
        if snapshot.is_memory_path(path, directory)
        and (path in changed or changes.id_from_path(path) in ids)
        for entry in entries
    }
    version_by_stamp |= versions.read_blobs(
        repository, wanted - version_by_stamp.keys(), categories
    )
    if any(version.fault == versions.ABSENT_FAULT for version in version_by_stamp.values()):
        raise MemtoolError(
            "cannot check owners: this partial clone lacks the memories that the range changed",
            hint="git fetch --refetch --no-filter",
            code="shallow",
        )
    return version_by_stamp


def _is_act(olds: Sequence[Version], new: Version | None) -> bool:
    """Return whether more than a claim changed: a file is gone, or a lifecycle key differs."""
    if new is None or new.memory is None:
        return True
    return any(
        old.memory is None
        or old.memory.status != new.memory.status
        or old.memory.table("checked") != new.memory.table("checked")
        or not all(map(changes.is_claim, changes.find_changed_keys(old.memory, new.memory)))
        for old in olds
    )


def _find_replaced(olds: Sequence[Version], new: Version | None) -> set[str]:
    """Return the ids that a memory replaces now but did not before."""
    if new is None or new.memory is None:
        return set()
    replaced_before = [set(old.memory.replaces) for old in olds if old.memory is not None]
    return set(new.memory.replaces).difference(*replaced_before)


def _find_last_commits(protection: Protection, changed: Sequence[OwnedChange]) -> dict[str, str]:
    """Return the last commit of the range that gave each file its final content, by path.

    A file without one was restored to an older state by a merge.
    """
    wanted = {change.path: change for change in changed}
    rows = provenance.walk_changes(
        protection.context.repository,
        [protection.end, f"^{protection.base}"],
        wanted,
        (),
        is_strict=True,
    )
    commit_by_path: dict[str, str] = {}
    for commit, row in rows:
        after = wanted[row.path].after
        is_gone = not row.mode.strip("0")
        is_final = is_gone if after is None else (row.mode, row.oid) == (after.mode, after.oid)
        if is_final:
            commit_by_path.setdefault(row.path, commit)
    return commit_by_path


def _make_problem(
    protection: Protection,
    proof: RequiredProof,
    rule: TrustRule,
    commit: str,
    principals: Sequence[str],
) -> Problem:
    names = " or ".join(rule.owners[:MAX_NAMED_OWNERS]) or "an allowed signer"
    if len(rule.owners) > MAX_NAMED_OWNERS:
        names += f" or {len(rule.owners) - MAX_NAMED_OWNERS} others"
    done = (
        "removed" if proof.change.after is None else "changed" if proof.change.befores else "added"
    )
    if not protection.signers:
        base = protection.base[:SHORT_ID_DIGITS]
        what = f"trust.allowed_signers of {base} is not a file with signers"
    elif principals:
        what = f"it was signed by {', '.join(principals)}"
    elif commit:
        what = f"commit {commit[:SHORT_ID_DIGITS]} has no valid signature of an allowed signer"
    else:
        what = "no commit of the range did this: a merge went back to it"
    if proof.id in protection.signed and not proof.is_act and not principals:
        what += ", and its signature files are not valid: they are for another claim or memory, "
        what += "or the key is not of an allowed signer"
    message = f"it was {done}, which {names} must sign ({rule.match}); {what}"
    hint = "an owner must make this change with git commit -S"
    if not proof.is_act:
        hint = f"an owner must run: memtool sign {proof.id} --commit"
    is_settled = proof.is_act and protection.is_settled
    return Problem(
        proof.change.path,
        1 if proof.change.after else 0,
        "unowned",
        message,
        hint,
        proof.id,
        "warning" if is_settled else "error",
    )
