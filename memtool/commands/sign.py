"""`memtool sign`: sign memories with an ssh key, in files of their own."""

from __future__ import annotations

import os

from memtool.authoring import write
from memtool.commands._layout import Layout
from memtool.errors import MemtoolError
from memtool.memory import timestamps
from memtool.memory.schema import Problem
from memtool.store import files, provenance, signatures
from memtool.store.commits import commit_files
from memtool.store.context import Context
from memtool.store.messages import MEMORY_ID
from memtool.store.snapshot import LineEnds
from memtool.store.tree import Record
from memtool.value import Value

MAX_SIGNED_MEMORIES = 500


class SignedMemory(Value):
    """A signed memory and its signature file; `path` is empty in a dry run."""

    id: str
    path: str


class SignedMemories(Value):
    """The signed memories, the principals of the key, and the commit if there is one.

    `by` are the principals of the key in the allowed-signers file of the trusted ref, empty if it
    does not list the key.
    """

    signed: tuple[SignedMemory, ...]
    by: tuple[str, ...]
    commit: str | None = None
    dry_run: bool = False


def sign(
    context: Context, *id: str, key: str = "", commit: bool = False, dry_run: bool = False
) -> SignedMemories:
    """Sign memories with an ssh key, to vouch for what they say.

    A signature covers the id and the claim. It stays valid if the memory is pinned or archived
    later, and survives squash and rebase merges. It counts once it is on the trusted branch, if
    that branch lists the key (setting trust.allowed_signers).

    Example:
        memtool sign dec-8t7d --commit
        memtool sign dec-8t7d --key ~/.ssh/id_ed25519.pub

    Args:
        id: the memories, by id or words
        key: the ssh key, private or public; by default git's user.signingKey
        commit: commit the new files only
        dry_run: list what would be signed, write nothing
    """
    context.repository.refuse_bare("sign in a clone with a worktree")
    context.project.refuse_newer()
    if not id:
        raise MemtoolError("ID is missing", hint="memtool sign ID")
    if len(id) > MAX_SIGNED_MEMORIES:
        raise MemtoolError(
            f"cannot sign {len(id)} memories at once: the limit is {MAX_SIGNED_MEMORIES}",
            hint="name fewer memories",
        )
    git = context.repository.git
    signatures.refuse_without_keygen(git.user_env)
    tree = write.open_current_tree(context, dry_run=dry_run)
    records = list({record.id: record for record in map(tree.find, id)}.values())
    for record in records:
        write.refuse_deleted(record.memory)
    claims = [(record, _read_claim(context, record)) for record in records]
    chosen = _find_key(context, key)
    if dry_run:
        planned = tuple(SignedMemory(record.id, "") for record in records)
        return SignedMemories(planned, (), dry_run=True)
    write.prepare(context, dry_run=dry_run)
    at = timestamps.render(context.clock.now)
    signature_files = []
    by: tuple[str, ...] = ()
    for _record, claim in claims:
        payload = claim.build_payload(at)
        armored = signatures.sign(git.user_env, chosen, payload)
        by = by or _find_principals(context, armored, at)
        data = payload.encode() + armored
        signature_files.append(
            (signatures.build_path(context.directory, claim, data, context.clock.now), data)
        )
    new = [(path, data) for path, data in signature_files if not _is_stored(context, path, data)]
    files.create_all(context.repository.top, new)
    done = None
    if commit:
        first = write.summarize("sign", records[0].memory)
        line = first if len(records) == 1 else f"sign {len(records)}"
        trailers = {MEMORY_ID: ", ".join(record.id for record in records)}
        done = commit_files(context, [path for path, _data in signature_files], line, trailers)
    _note_unknown(context, by)
    rows = tuple(
        SignedMemory(record.id, path)
        for record, (path, _d) in zip(records, signature_files, strict=True)
    )
    return SignedMemories(rows, by, done)


def render(signed: SignedMemories, layout: Layout) -> str:
    """Return the path of each signature file; in a dry run the ids."""
    if signed.dry_run:
        return "\n".join(f"would sign {layout.name(memory.id)}" for memory in signed.signed)
    return "\n".join(memory.path for memory in signed.signed)


def _read_claim(context: Context, record: Record) -> signatures.SignedClaim:
    """Return the claim to sign, from the file as git stores it (line ends normalised)."""
    data = LineEnds(context.repository, context.directory).read_file(record.path)
    claim = None if isinstance(data, Problem) else signatures.parse_claim(data, record.path)
    if claim is None:
        raise MemtoolError(
            f"cannot sign: {record.path} is not a readable memory", hint="memtool check"
        )
    if record.memory.status == "candidate":
        context.notes.append(
            f"{record.id} is a candidate: a change of its claim makes this signature void"
        )
    return claim


def _find_key(context: Context, argument: str) -> str:
    """Return the path of the key, or the public key itself if git's settings have it inline.

    Raises:
        MemtoolError: no key is given or configured, or its file is missing.
    """
    hint = "memtool sign ID --key ~/.ssh/id_ed25519, or git config user.signingKey FILE"
    git = context.repository.git
    if not argument:
        form = git.line("config", "--get", "gpg.format", allowed=(0, 1))
        argument = git.line("config", "--type=path", "--get", "user.signingKey", allowed=(0, 1))
        if not argument or form != "ssh":
            raise MemtoolError("cannot sign: no ssh key is configured", hint=hint, code="no-key")
        if argument.startswith(("key::", "ssh-", "ecdsa-", "sk-")):
            return argument.removeprefix("key::")
    path = os.path.join(context.caller.cwd, os.path.expanduser(argument))
    if not os.path.isfile(path):
        raise MemtoolError(f"cannot sign: no key at {argument}", hint=hint, code="no-key")
    return path


def _find_principals(context: Context, armored: bytes, at: str) -> tuple[str, ...]:
    """Return the principals that the trusted ref gives the key of a signature."""
    settings = context.project.trust_settings
    repository = context.repository
    trusted = provenance.resolve_trusted(repository, settings.text("trust.ref"))
    path = settings.text("trust.allowed_signers")
    signers = provenance.read_signers(repository, trusted, path, is_cached=context.is_cached)
    return signatures.find_principals(repository.git.env, armored, signers, at)


def _is_stored(context: Context, path: str, data: bytes) -> bool:
    """Return whether this very signature is already stored."""
    try:
        return files.read_regular(os.path.join(context.repository.top, path)) == data
    except OSError:
        return False


def _note_unknown(context: Context, by: tuple[str, ...]) -> None:
    if by:
        return
    path = context.project.trust_settings.text("trust.allowed_signers")
    where = f"{path} of the trusted ref" if path else "trust.allowed_signers, which names no file"
    context.notes.append(f"this signature counts once its key is in {where}")
