"""`memtool sign`: vouch for what memories say with an ssh key, in files beside them."""

from __future__ import annotations

import os

from memtool.authoring import write
from memtool.errors import MemtoolError
from memtool.memory import timestamps
from memtool.memory.schema import Problem
from memtool.store import files, provenance, signatures
from memtool.store.commits import commit_files
from memtool.store.context import Context
from memtool.store.snapshot import LineEnds
from memtool.store.tree import Record
from memtool.value import Value

MOST_SIGNED = 500
"""Memories of one call."""


class SignedMemory(Value):
    """A memory that was signed, and the file that says so; in a dry run there is none yet."""

    id: str
    path: str


class SignedMemories(Value):
    """What was signed, by whom as the trusted ref knows the key, and the commit if there is one.

    `by` holds the principals that its allowed-signers file gives the key, none where it is unknown.
    """

    signed: tuple[SignedMemory, ...]
    by: tuple[str, ...]
    commit: str | None = None
    dry_run: bool = False


def sign(
    context: Context, *id: str, key: str = "", commit: bool = False, dry_run: bool = False
) -> SignedMemories:
    """Vouch for what memories say, with an ssh key.

    What is signed is the id and the claim: everything that never changes once it is confirmed. So a
    signature stays good when the memory is pinned or archived later, and is worth nothing for a
    memory that says something else. It is a file of its own below _signatures in the memory
    directory, and unlike the signature of a commit it survives the squash and rebase merges of a
    forge. It counts once the trusted ref holds it, where the allowed-signers file of that ref
    (trust.allowed_signers) has the key.

    The key is that of --key, or the user.signingKey of git. Where ssh asks for a passphrase or a
    touch, so does this.

    Example:
        memtool sign dec-2026-02-22-keep-sessions-in-redis --commit

    Args:
        id: the memories, each by its id or words of it
        key: the file of the ssh key, private, or public where an agent holds the other half
        commit: commit just the new files
        dry_run: say what would be signed, write nothing
    """
    context.repository.refuse_bare("sign in a clone with a worktree")
    context.project.refuse_newer()
    if not id:
        raise MemtoolError("ID is missing", hint="memtool sign ID")
    if len(id) > MOST_SIGNED:
        raise MemtoolError(
            f"{len(id)} memories at once: {MOST_SIGNED} at most are signed in one call",
            hint="memtool sign ID …, with fewer of them",
        )
    git = context.repository.git
    signatures.refuse_without_keygen(git.user_env)
    tree = write.current(context, dry_run=dry_run)
    records = list({record.id: record for record in map(tree.find, id)}.values())
    for record in records:
        write.refuse_deleted(record.memory)
    claims = [(record, _claim(context, record)) for record in records]
    chosen = _key(context, key)
    if dry_run:
        planned = tuple(SignedMemory(record.id, "") for record in records)
        return SignedMemories(planned, (), dry_run=True)
    write.prepare(context, dry_run=dry_run)
    at = timestamps.render(context.clock.now)
    made = []
    by: tuple[str, ...] = ()
    for _record, claim in claims:
        payload = claim.payload(at)
        armored = signatures.made(git.user_env, chosen, payload)
        by = by or _principals(context, armored, at)
        data = payload.encode() + armored
        made.append((signatures.place(context.directory, claim, data, context.clock.now), data))
    new = [(path, data) for path, data in made if not _is_there(context, path, data)]
    files.create_all(context.repository.top, new)
    done = None
    if commit:
        first = write.subject("sign", records[0].memory)
        line = first if len(records) == 1 else f"memory: sign {len(records)}"
        trailers = {"Memory-Id": ", ".join(record.id for record in records)}
        done = commit_files(context, [path for path, _data in made], line, trailers)
    _note_unknown(context, by)
    rows = tuple(SignedMemory(one.id, path) for one, (path, _d) in zip(records, made, strict=True))
    return SignedMemories(rows, by, done)


def render(signed: SignedMemories) -> str:
    """Return the path of each new file; in a dry run the ids."""
    if signed.dry_run:
        return "\n".join(f"would sign {one.id}" for one in signed.signed)
    return "\n".join(one.path for one in signed.signed)


def _claim(context: Context, record: Record) -> signatures.Signed:
    """Return what there is to sign, of the bytes as git has or would have them."""
    data = LineEnds(context.repository, context.directory).read_file(record.path)
    claim = None if isinstance(data, Problem) else signatures.signed_of(data, record.path)
    if claim is None:
        raise MemtoolError(f"{record.path} cannot be read as a memory", hint="memtool check")
    if record.memory.status == "candidate":
        context.notes.append(
            f"{record.id} is a candidate: once its claim is changed, this signature is void"
        )
    return claim


def _key(context: Context, given: str) -> str:
    """Return the file of the key, or the public key itself as git's settings may have it.

    Raises:
        MemtoolError: there is none.
    """
    hint = "memtool sign ID --key ~/.ssh/id_ed25519, or git config user.signingKey FILE"
    git = context.repository.git
    if not given:
        form = git.line("config", "--get", "gpg.format", allowed=(0, 1))
        given = git.line("config", "--type=path", "--get", "user.signingKey", allowed=(0, 1))
        if not given or form != "ssh":
            raise MemtoolError("no ssh key is configured to sign with", hint=hint, code="no-key")
        if given.startswith(("key::", "ssh-", "ecdsa-", "sk-")):
            return given.removeprefix("key::")
    path = os.path.join(context.caller.cwd, os.path.expanduser(given))
    if not os.path.isfile(path):
        raise MemtoolError(f"there is no key at {given}", hint=hint, code="no-key")
    return path


def _principals(context: Context, armored: bytes, at: str) -> tuple[str, ...]:
    """Return who the trusted ref says has the key of a signature."""
    settings = context.project.trust_settings
    repository = context.repository
    trusted = provenance.resolve_trusted(repository, settings.text("trust.ref"))
    path = settings.text("trust.allowed_signers")
    signers = provenance.signers_at(repository, trusted, path, is_cached=context.is_cached)
    return signatures.principals(repository.git.env, armored, signers, at)


def _is_there(context: Context, path: str, data: bytes) -> bool:
    """Tell whether the same key signed the same claim in the same second."""
    try:
        return files.read_regular(os.path.join(context.repository.top, path)) == data
    except OSError:
        return False


def _note_unknown(context: Context, by: tuple[str, ...]) -> None:
    if by:
        return
    path = context.project.trust_settings.text("trust.allowed_signers")
    where = f"{path} of the trusted ref" if path else "trust.allowed_signers, which names no file"
    context.notes.append(f"this signature proves nothing before its key is in {where}")
