"""Signatures: which keys of the allowed-signers file have signed a commit, or a memory's claim.

A signed commit vouches for the content that it wrote, until a forge squashes or rebases it. A
detached signature is a separate file, `_signatures/<YYYY-MM>/<id>.<12 digits>.sig` below the
memory directory: four lines with the memory's id, the digest of its claim and the moment, then the
signature over them, in the namespace `memtool`. The file name depends on its content and the file
never changes, so branches merge. A changed claim invalidates it; lifecycle keys are not signed.

Both kinds are verified as of the moment that the signer wrote, so a signature stays valid after its
key expires. A stolen key can claim any moment, so its line must be removed.

`ssh-keygen` does the cryptography. Its results are cached by the content of the signers' file.
"""

from __future__ import annotations

import binascii
import hashlib
import json
import os
import tempfile
from itertools import pairwise

from memtool.errors import MemtoolError, find_reason
from memtool.memory import document, timestamps
from memtool.memory.changes import id_from_path
from memtool.memory.fields import DEFAULT_CATEGORIES, is_mutable
from memtool.memory.memory import to_text
from memtool.store import kept, process
from memtool.store.git import GitError
from memtool.value import Value, split_batches

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from memtool.memory.memory import Memory
    from memtool.store.repository import Repository


FOLDER = "_signatures"
ENDING = ".sig"
NAMESPACE = "memtool"
KEYGEN = "ssh-keygen"
MAX_SIGNATURE_BYTES = 16 * 1024
"""Size limit of a signature file; an RSA key of 16,384 bits needs a third of it."""
MAX_SIGNATURES = 100
"""Signatures of one memory that are checked: each runs ssh-keygen, and any author can add some."""
TIMEOUT_S = 20.0
SIGNATURES_PER_BATCH = 50
"""Signatures checked between two writes to the cache: half a second of work."""
_BEGIN = "-----BEGIN SSH SIGNATURE-----"
_DIGITS = 12
_KIND = "verified 1"
_NO_KEYGEN = "ssh-keygen is not on the PATH, so no signature can be made or checked"


class SignedClaim(Value):
    """The content of a detached signature: a memory's id, and the digest of its claim."""

    id: str
    claim: str

    def build_payload(self, at: str) -> str:
        """Return the signed lines; `at` is an RFC 3339 moment."""
        return f"memtool signature 1\nid: {self.id}\nclaim: sha256:{self.claim}\nat: {at}\n"


class SignedVersion(Value):
    """A version of a memory: path, blob, and the commit that wrote it; empty for none."""

    path: str
    oid: str
    commit: str


def extract_claim(memory: Memory) -> SignedClaim:
    """Return the signed part of a memory: its claim and what it governs."""
    # `files` may change in place, but whoever signed a rule for a file has not signed another one.
    claim = {
        key: value for key, value in memory.fields.items() if key == "files" or not is_mutable(key)
    }
    whole = json.dumps([claim, memory.body.replace("\r\n", "\n")], sort_keys=True)
    return SignedClaim(memory.id, hashlib.sha256(whole.encode()).hexdigest())


def has_keygen(env: Mapping[str, str]) -> bool:
    """Return whether ssh-keygen is on the PATH."""
    folders = env.get("PATH", os.defpath).split(os.pathsep)
    return any(os.access(os.path.join(folder or ".", KEYGEN), os.X_OK) for folder in folders)


def refuse_without_keygen(env: Mapping[str, str]) -> None:
    """Raise MemtoolError if ssh-keygen is not on the PATH."""
    if not has_keygen(env):
        hint = "install OpenSSH's client, such as with apt-get install openssh-client"
        raise MemtoolError(_NO_KEYGEN, hint=hint, code="not-installed")


def find_proofs(
    repository: Repository,
    at: str,
    directory: str,
    wanted: Iterable[SignedVersion],
    signers: bytes,
    cache_dir: str = "",
) -> dict[str, tuple[tuple[str, str], ...]] | None:
    """Return who signed versions of memories, by path: `commit` or `signature`, and the principal.

    `at` is the commit with the detached signatures, `signers` the content of an allowed-signers
    file; an empty `cache_dir` means no cache. None if ssh-keygen is not available.
    """
    versions = list(wanted)
    if not signers:
        return {version.path: () for version in versions}
    if not has_keygen(repository.git.env):
        return None
    commits = find_commit_signers(
        repository, {version.commit for version in versions if version.commit}, signers, cache_dir
    )
    try:
        detached = find_detached_signers(repository, at, directory, versions, signers, cache_dir)
    except GitError:
        if not repository.is_partial:
            raise
        detached = {}  # the signatures are not in this partial clone
    proofs_by_path = {}
    for version in versions:
        principal = commits.get(version.commit, "")
        commit_proofs = (("commit", principal),) if principal else ()
        proofs_by_path[version.path] = (
            *commit_proofs,
            *(("signature", who) for who in detached.get(version.path, ())),
        )
    return proofs_by_path


def find_commit_signers(
    repository: Repository, commits: set[str], signers: bytes, cache_dir: str = ""
) -> dict[str, str]:
    """Return the principal who signed each commit, for commits with a valid signature."""
    if not signers or not commits:
        return {}
    names_by_commit = _read_cached(cache_dir, signers, commits)
    missing = sorted(commits - names_by_commit.keys())
    with tempfile.NamedTemporaryFile(prefix="memtool-signers-") as file:
        file.write(signers)
        file.flush()
        for batch in split_batches(missing, SIGNATURES_PER_BATCH):
            verified = _verify_with_git(repository, batch, file.name)
            fresh = {commit: (verified[commit],) if commit in verified else () for commit in batch}
            _write_cached(cache_dir, signers, fresh)
            names_by_commit |= fresh
    return {commit: names[0] for commit, names in names_by_commit.items() if names}


def _verify_with_git(
    repository: Repository, commits: Sequence[str], signers: str
) -> dict[str, str]:
    # Only ssh signatures: others depend on the keyring of the current user, not on the file.
    settings: Mapping[str, str] = {
        "gpg.program": "false",
        "gpg.openpgp.program": "false",
        "gpg.x509.program": "false",
        "gpg.ssh.program": KEYGEN,
        "gpg.ssh.allowedSignersFile": signers,
    }
    options = [part for key, value in settings.items() for part in ("-c", f"{key}={value}")]
    answer = repository.git.run(
        *options,
        "log",
        "--no-walk=unsorted",
        "--stdin",
        "--format=%H %G? %GS",
        stdin="\n".join(commits).encode() + b"\n",
    )
    rows = (row.split(" ", 2) for row in answer.decode(errors="replace").splitlines())
    return {
        commit: principal
        for commit, verdict, principal in rows
        if verdict == "G" and principal.isprintable()
    }


def _read_cached(cache_dir: str, signers: bytes, keys: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Return the cached results for commits and claims with this allowed-signers file."""
    return kept.read_texts(cache_dir, _KIND, _basis(signers), keys) if cache_dir else {}


def _write_cached(cache_dir: str, signers: bytes, results: Mapping[str, tuple[str, ...]]) -> None:
    if cache_dir:
        kept.write_texts(cache_dir, _KIND, _basis(signers), results)


def _basis(signers: bytes) -> bytes:
    return hashlib.sha256(signers).digest()


class Signers(Value):
    """The principals of an allowed-signers file, and its lines without a key, counted from 1."""

    principals: tuple[str, ...]
    bad_lines: tuple[int, ...]


def read_signers(data: bytes) -> Signers:
    """Parse an allowed-signers file. Like ssh-keygen, it skips invalid lines."""
    names: list[str] = []
    bad = []
    for number, line in enumerate(data.decode(errors="replace").splitlines(), 1):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        if any(_is_key(kind, key) for kind, key in pairwise(words)):
            names += words[0].strip('"').split(",")
        else:
            bad.append(number)
    return Signers(tuple(dict.fromkeys(names)), tuple(bad))


def _is_key(kind: str, key: str) -> bool:
    """Return whether two words are the type of a key and a key of that type."""
    if not kind.startswith(("ssh-", "ecdsa-", "sk-")):
        return False
    try:
        data = binascii.a2b_base64(key, strict_mode=True)
    except ValueError:
        return False
    return data.startswith(len(kind).to_bytes(4, "big") + kind.encode()) and len(data) > 32


def is_signature_path(path: str, directory: str) -> bool:
    """Return whether a path can be a detached signature."""
    return path.startswith(f"{directory}/{FOLDER}/") and path.endswith(ENDING)


def parse_id(path: str) -> str:
    """Return the memory's id in the name of a signature file."""
    return path.rpartition("/")[2].removesuffix(ENDING).rpartition(".")[0]


def build_path(directory: str, signed: SignedClaim, data: bytes, second: int) -> str:
    """Return the path of a new signature file, which depends only on its content."""
    digits = hashlib.sha256(data).hexdigest()[:_DIGITS]
    return f"{directory}/{FOLDER}/{timestamps.format_date(second)[:7]}/{signed.id}.{digits}{ENDING}"


def find_detached_signers(
    repository: Repository,
    at: str,
    directory: str,
    versions: Iterable[SignedVersion],
    signers: bytes,
    cache_dir: str = "",
) -> dict[str, tuple[str, ...]]:
    """Return, by path, the principals of a commit's detached signatures of memory versions."""
    files: dict[str, list[str]] = {}
    for entry in repository.git.ls_tree(at, f"{directory}/{FOLDER}"):
        if entry.kind == "blob" and is_signature_path(entry.path, directory):
            files.setdefault(parse_id(entry.path), []).append(entry.oid)
    files = {id_: oids[:MAX_SIGNATURES] for id_, oids in files.items()}
    wanted = [version for version in versions if id_from_path(version.path) in files]
    if not wanted:
        return {}
    texts = repository.git.blobs([version.oid for version in wanted], document.MAX_BYTES)
    claims = {
        version.path: parse_claim(data, version.path)
        for version, data in zip(wanted, texts, strict=True)
    }
    pairs = sorted(
        {
            (oid, claim)
            for version in wanted
            for oid in files[id_from_path(version.path)]
            if (claim := claims[version.path]) is not None
        },
        key=lambda pair: (pair[0], pair[1].claim),
    )
    principals_by_pair = _verify_all(repository, pairs, signers, cache_dir)
    principals_by_path: dict[str, tuple[str, ...]] = {}
    for version in wanted:
        claim = claims[version.path]
        name_groups = (
            principals_by_pair[oid, claim.claim]
            for oid in files[id_from_path(version.path)]
            if claim is not None
        )
        principals_by_path[version.path] = tuple(
            sorted({principal for names in name_groups for principal in names})
        )
    return principals_by_path


def parse_claim(data: bytes, path: str) -> SignedClaim | None:
    """Return the signed part of a memory's file; None if it is not a memory."""
    try:
        fields, _lines = document.read_field_lines(data, path)
        category = to_text(fields.get("category"))  # allowed here, regardless of the settings
        memory = document.read(data, path, (*DEFAULT_CATEGORIES, category))
    except document.Unreadable:
        return None
    return extract_claim(memory)


def _verify_all(
    repository: Repository, pairs: list[tuple[str, SignedClaim]], signers: bytes, cache_dir: str
) -> dict[tuple[str, str], tuple[str, ...]]:
    """Return the principals by signature blob and claim; each is checked once per signers' file."""
    results = _read_cached(
        cache_dir, signers, [f"{oid} {signature.claim}" for oid, signature in pairs]
    )
    missing = [
        (oid, signature) for oid, signature in pairs if f"{oid} {signature.claim}" not in results
    ]
    with tempfile.TemporaryDirectory(prefix="memtool-signers-") as folder:
        signers_path = os.path.join(folder, "signers")
        _write(signers_path, signers)
        for batch in split_batches(missing, SIGNATURES_PER_BATCH):
            texts = repository.git.blobs([oid for oid, _signature in batch], MAX_SIGNATURE_BYTES)
            fresh = {
                f"{oid} {signature.claim}": tuple(
                    _verify(repository, signature, data, folder, signers_path)
                )
                for (oid, signature), data in zip(batch, texts, strict=True)
            }
            _write_cached(cache_dir, signers, fresh)
            results |= fresh
    return {(oid, signature.claim): results[f"{oid} {signature.claim}"] for oid, signature in pairs}


def _verify(
    repository: Repository, signed: SignedClaim, data: bytes, folder: str, signers: str
) -> Iterator[str]:
    """Yield the principals whose key signed a claim; `data` is a signature file."""
    head, begin, armored = data.decode(errors="replace").partition(_BEGIN)
    at = head.rstrip("\n").rpartition("\nat: ")[2]
    try:
        moment = timestamps.parse(at)
    except ValueError:
        return
    if not begin or head != signed.build_payload(at) or "\t" in head:
        return
    path = os.path.join(folder, "signature")
    _write(path, (begin + armored).encode())
    for name in _find_principals(repository.git.env, path, signers, moment):
        arguments = ("-Y", "verify", "-f", signers, "-I", name, "-n", NAMESPACE, "-s", path)
        answer = run_keygen(
            repository.git.env, *arguments, _format_time(moment), stdin=head.encode()
        )
        if not answer.status:
            yield name


def find_principals(
    env: Mapping[str, str], armored: bytes, signers: bytes, at: str
) -> tuple[str, ...]:
    """Return the principals of the key that made a signature, per an allowed-signers file."""
    with tempfile.TemporaryDirectory(prefix="memtool-signers-") as folder:
        path, signers_path = os.path.join(folder, "signature"), os.path.join(folder, "signers")
        _write(path, armored)
        _write(signers_path, signers)
        return tuple(_find_principals(env, path, signers_path, timestamps.parse(at)))


def _find_principals(env: Mapping[str, str], path: str, signers: str, moment: int) -> Iterator[str]:
    arguments = ("-Y", "find-principals", "-s", path, "-f", signers)
    answer = run_keygen(env, *arguments, _format_time(moment))
    names = answer.stdout.decode(errors="replace").splitlines() if not answer.status else []
    for name in dict.fromkeys(names):
        if name.isprintable() and not name.startswith("-"):
            yield name


def _format_time(moment: int) -> str:
    digits = timestamps.render(moment).translate({ord(sign): "" for sign in "-:TZ"})
    return f"-Overify-time={digits}"


def sign(env: Mapping[str, str], key: str, payload: str) -> bytes:
    """Sign a payload and return the armored signature; `key` is a file or a public key's text.

    There is no time limit, since ssh-keygen may ask for a passphrase or a touch.

    Raises:
        MemtoolError: ssh-keygen did not sign.
    """
    with tempfile.TemporaryDirectory(prefix="memtool-key-") as folder:
        if not os.path.isabs(key):
            _write(os.path.join(folder, "key.pub"), key.encode() + b"\n")
            key = os.path.join(folder, "key.pub")
        done = run_keygen(
            env, "-Y", "sign", "-f", key, "-n", NAMESPACE, stdin=payload.encode(), timeout_s=None
        )
    if done.status or not done.stdout.startswith(_BEGIN.encode()):
        error_lines = done.stderr.decode(errors="replace").strip().splitlines() or [
            "no reason given"
        ]
        raise MemtoolError(
            f"ssh-keygen did not sign: {error_lines[-1]}",
            hint="ssh-add FILE",
            code="not-signed",
        )
    return done.stdout


def run_keygen(
    env: Mapping[str, str], *args: str, stdin: bytes = b"", timeout_s: float | None = TIMEOUT_S
) -> process.ProcessResult:
    """Run ssh-keygen in UTC. Raises MemtoolError if it cannot be run."""
    try:
        return process.run([KEYGEN, *args], {**env, "TZ": "UTC"}, stdin, timeout_s)
    except TimeoutError:
        raise MemtoolError(f"ssh-keygen did not finish within {TIMEOUT_S:g} s") from None
    except OSError as error:
        raise MemtoolError(
            f"cannot run ssh-keygen: {find_reason(error)}", code="not-installed"
        ) from None


def _write(path: str, data: bytes) -> None:
    with open(path, "wb") as file:
        file.write(data)
