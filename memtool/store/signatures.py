"""Signatures: which keys of the allowed-signers file vouch for a commit, or for what a memory says.

A signed commit vouches for the bytes that it wrote, until a forge squashes or rebases it away. A
detached signature is a file of its own, `_signatures/<YYYY-MM>/<id>.<12 digits>.sig` below the
memory directory: four lines that name the memory, the digest of its claim and the moment, and the
signature over them, in the namespace `memtool`. It is named by its content and never changed, so
branches merge. Another claim, or another memory, is not what was signed; keys of the lifecycle are
no part of it. Both kinds are judged by the moment that the signer wrote, so that what was signed
before a key ended stays good; who has a stolen key writes any moment, so its line must go.

`ssh-keygen` does the cryptography. What it found of some bytes is kept, by the signers' bytes.
"""

from __future__ import annotations

import binascii
import hashlib
import json
import os
import tempfile
from itertools import pairwise

from memtool.errors import MemtoolError, reason_of
from memtool.memory import document, timestamps
from memtool.memory.changes import stem
from memtool.memory.fields import DEFAULT_CATEGORIES, is_mutable
from memtool.memory.memory import as_text
from memtool.store import kept, process
from memtool.store.git import GitError
from memtool.value import Value, batches

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from memtool.memory.memory import Memory
    from memtool.store.repository import Repository


FOLDER = "_signatures"
ENDING = ".sig"
NAMESPACE = "memtool"
KEYGEN = "ssh-keygen"
MOST_BYTES = 16 * 1024
"""Of a file with a signature; one by an RSA key of 16,384 bits takes a third of it."""
MOST_FILES = 100
"""Signatures of one memory that are looked at: each costs ssh-keygen, and anybody may add some."""
TIMEOUT_S = 20.0
BATCH = 50
"""Signatures that are checked before what was found is kept: half a second's work."""
_BEGIN = "-----BEGIN SSH SIGNATURE-----"
_DIGITS = 12
_KIND = "verified 1"
_NO_KEYGEN = "ssh-keygen is not on the PATH, so no signature can be made or checked"


class Signed(Value):
    """A memory as a detached signature names it: its id, and the digest of its claim."""

    id: str
    claim: str

    def payload(self, at: str) -> str:
        """Return the lines that are signed; `at` is an RFC 3339 moment."""
        return f"memtool signature 1\nid: {self.id}\nclaim: sha256:{self.claim}\nat: {at}\n"


class Asked(Value):
    """A version of a memory: its path, its blob, and the commit that wrote it; empty for none."""

    path: str
    oid: str
    commit: str


def signed_part(memory: Memory) -> Signed:
    """Return what a signature of a memory is about: everything but keys of the lifecycle."""
    claim = {key: value for key, value in memory.fields.items() if not is_mutable(key)}
    whole = json.dumps([claim, memory.body.replace("\r\n", "\n")], sort_keys=True)
    return Signed(memory.id, hashlib.sha256(whole.encode()).hexdigest())


def has_keygen(env: Mapping[str, str]) -> bool:
    """Tell whether ssh-keygen is on the path."""
    folders = env.get("PATH", os.defpath).split(os.pathsep)
    return any(os.access(os.path.join(one or ".", KEYGEN), os.X_OK) for one in folders)


def refuse_without_keygen(env: Mapping[str, str]) -> None:
    """Raise MemtoolError where there is no ssh-keygen."""
    if not has_keygen(env):
        hint = "install OpenSSH's client, such as with apt-get install openssh-client"
        raise MemtoolError(_NO_KEYGEN, hint=hint, code="no-ssh-keygen")


def proofs(
    repository: Repository,
    at: str,
    directory: str,
    asked: Iterable[Asked],
    signers: bytes,
    cache_dir: str = "",
) -> dict[str, tuple[tuple[str, str], ...]] | None:
    """Return who signed versions of memories, by path: `commit` or `signature`, and the principal.

    `at` is the commit that holds detached signatures, `signers` the bytes of an allowed-signers
    file, `cache_dir` where it is kept what was checked, if it is. None where there is no
    ssh-keygen to ask.
    """
    versions = list(asked)
    if not signers:
        return {one.path: () for one in versions}
    if not has_keygen(repository.git.env):
        return None
    commits = signed_by(
        repository, {one.commit for one in versions if one.commit}, signers, cache_dir
    )
    try:
        detached = detached_by(repository, at, directory, versions, signers, cache_dir)
    except GitError:
        if not repository.is_partial:
            raise
        detached = {}  # nobody can tell what was signed
    found = {}
    for one in versions:
        by = commits.get(one.commit, "")
        own = (("commit", by),) if by else ()
        found[one.path] = (*own, *(("signature", who) for who in detached.get(one.path, ())))
    return found


def signed_by(
    repository: Repository, commits: set[str], signers: bytes, cache_dir: str = ""
) -> dict[str, str]:
    """Return the principal who signed each commit, for those with a good signature by a signer."""
    if not signers or not commits:
        return {}
    known = _known(cache_dir, signers, commits)
    missing = sorted(commits - known.keys())
    with tempfile.NamedTemporaryFile(prefix="memtool-signers-") as file:
        file.write(signers)
        file.flush()
        for some in batches(missing, BATCH):
            found = _asked_of_git(repository, some, file.name)
            new = {one: (found[one],) if one in found else () for one in some}
            _keep(cache_dir, signers, new)
            known |= new
    return {commit: names[0] for commit, names in known.items() if names}


def _asked_of_git(repository: Repository, commits: Sequence[str], signers: str) -> dict[str, str]:
    # Only ssh signatures: the others are good by the keyring of whoever looks, not by the file.
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


def _known(cache_dir: str, signers: bytes, keys: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Return what is known of commits and claims by the bytes of an allowed-signers file."""
    return kept.read_texts(cache_dir, _KIND, _basis(signers), keys) if cache_dir else {}


def _keep(cache_dir: str, signers: bytes, found: Mapping[str, tuple[str, ...]]) -> None:
    if cache_dir:
        kept.write_texts(cache_dir, _KIND, _basis(signers), found)


def _basis(signers: bytes) -> bytes:
    return hashlib.sha256(signers).digest()


class Signers(Value):
    """What an allowed-signers file says: all principals, and the lines that name no key, from 1."""

    principals: tuple[str, ...]
    bad_lines: tuple[int, ...]


def read_signers(data: bytes) -> Signers:
    """Read an allowed-signers file as far as it goes; ssh-keygen passes over what is wrong."""
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
    """Tell whether two words are a kind of key, and such a key."""
    if not kind.startswith(("ssh-", "ecdsa-", "sk-")):
        return False
    try:
        data = binascii.a2b_base64(key, strict_mode=True)
    except ValueError:
        return False
    return data.startswith(len(kind).to_bytes(4, "big") + kind.encode()) and len(data) > 32


def is_signature_path(path: str, directory: str) -> bool:
    """Tell whether a path is where a detached signature may be."""
    return path.startswith(f"{directory}/{FOLDER}/") and path.endswith(ENDING)


def id_of(path: str) -> str:
    """Return the id of the memory that a file with a signature is named by."""
    return path.rpartition("/")[2].removesuffix(ENDING).rpartition(".")[0]


def place(directory: str, signed: Signed, data: bytes, second: int) -> str:
    """Return the path of a new file with a signature, which follows from what is in it."""
    digits = hashlib.sha256(data).hexdigest()[:_DIGITS]
    return f"{directory}/{FOLDER}/{timestamps.date(second)[:7]}/{signed.id}.{digits}{ENDING}"


def detached_by(
    repository: Repository,
    at: str,
    directory: str,
    versions: Iterable[Asked],
    signers: bytes,
    cache_dir: str = "",
) -> dict[str, tuple[str, ...]]:
    """Return by path who signed what versions of memories say, in files that a commit holds."""
    files: dict[str, list[str]] = {}
    for entry in repository.git.ls_tree(at, f"{directory}/{FOLDER}"):
        if entry.kind == "blob" and is_signature_path(entry.path, directory):
            files.setdefault(id_of(entry.path), []).append(entry.oid)
    files = {id_: oids[:MOST_FILES] for id_, oids in files.items()}
    wanted = [one for one in versions if stem(one.path) in files]
    if not wanted:
        return {}
    texts = repository.git.blobs([one.oid for one in wanted], document.MAX_BYTES)
    claims = {one.path: signed_of(data, one.path) for one, data in zip(wanted, texts, strict=True)}
    pairs = sorted(
        {
            (oid, claim)
            for one in wanted
            for oid in files[stem(one.path)]
            if (claim := claims[one.path]) is not None
        },
        key=lambda pair: (pair[0], pair[1].claim),
    )
    held = _verified(repository, pairs, signers, cache_dir)
    found: dict[str, tuple[str, ...]] = {}
    for one in wanted:
        claim = claims[one.path]
        who = (held[oid, claim.claim] for oid in files[stem(one.path)] if claim is not None)
        found[one.path] = tuple(sorted({principal for names in who for principal in names}))
    return found


def signed_of(data: bytes, path: str) -> Signed | None:
    """Return what may have been signed of the bytes of a memory, None where they are none."""
    try:
        fields, _lines = document.lines_of(data, path)
        own = as_text(fields.get("category"))  # whatever the settings say of categories
        memory = document.read(data, path, (*DEFAULT_CATEGORIES, own))
    except document.Unreadable:
        return None
    return signed_part(memory)


def _verified(
    repository: Repository, pairs: list[tuple[str, Signed]], signers: bytes, cache_dir: str
) -> dict[tuple[str, str], tuple[str, ...]]:
    """Return who signed which claim in which blob; each is checked once, by the same signers."""
    known = _known(cache_dir, signers, [f"{oid} {one.claim}" for oid, one in pairs])
    missing = [(oid, one) for oid, one in pairs if f"{oid} {one.claim}" not in known]
    with tempfile.TemporaryDirectory(prefix="memtool-signers-") as place:
        listed = os.path.join(place, "signers")
        _put(listed, signers)
        for some in batches(missing, BATCH):
            texts = repository.git.blobs([oid for oid, _one in some], MOST_BYTES)
            new = {
                f"{oid} {one.claim}": tuple(_checked(repository, one, data, place, listed))
                for (oid, one), data in zip(some, texts, strict=True)
            }
            _keep(cache_dir, signers, new)
            known |= new
    return {(oid, one.claim): known[f"{oid} {one.claim}"] for oid, one in pairs}


def _checked(
    repository: Repository, signed: Signed, data: bytes, place: str, signers: str
) -> Iterator[str]:
    """Yield the principals whose key signed a claim, by the bytes of a file with a signature."""
    head, begin, rest = data.decode(errors="replace").partition(_BEGIN)
    at = head.rstrip("\n").rpartition("\nat: ")[2]
    try:
        moment = timestamps.parse(at)
    except ValueError:
        return
    if not begin or head != signed.payload(at) or "\t" in head:
        return
    path = os.path.join(place, "signature")
    _put(path, (begin + rest).encode())
    for name in _principals(repository.git.env, path, signers, moment):
        given = ("-Y", "verify", "-f", signers, "-I", name, "-n", NAMESPACE, "-s", path)
        answer = keygen(repository.git.env, *given, _time(moment), stdin=head.encode())
        if not answer.status:
            yield name


def principals(env: Mapping[str, str], armored: bytes, signers: bytes, at: str) -> tuple[str, ...]:
    """Return whose key made a signature, by an allowed-signers file; none where it has no such."""
    with tempfile.TemporaryDirectory(prefix="memtool-signers-") as room:
        path, listed = os.path.join(room, "signature"), os.path.join(room, "signers")
        _put(path, armored)
        _put(listed, signers)
        return tuple(_principals(env, path, listed, timestamps.parse(at)))


def _principals(env: Mapping[str, str], path: str, signers: str, moment: int) -> Iterator[str]:
    asked = ("-Y", "find-principals", "-s", path, "-f", signers)
    found = keygen(env, *asked, _time(moment))
    names = found.stdout.decode(errors="replace").splitlines() if not found.status else []
    for name in dict.fromkeys(names):
        if name.isprintable() and not name.startswith("-"):
            yield name


def _time(moment: int) -> str:
    digits = timestamps.render(moment).translate({ord(sign): "" for sign in "-:TZ"})
    return f"-Overify-time={digits}"


def made(env: Mapping[str, str], key: str, payload: str) -> bytes:
    """Return the armored signature of a payload by a key: a file, or the text of a public one.

    ssh-keygen may ask for a passphrase or a touch, so it has all the time it needs.

    Raises:
        MemtoolError: it refused.
    """
    with tempfile.TemporaryDirectory(prefix="memtool-key-") as room:
        if not os.path.isabs(key):
            _put(os.path.join(room, "key.pub"), key.encode() + b"\n")
            key = os.path.join(room, "key.pub")
        done = keygen(
            env, "-Y", "sign", "-f", key, "-n", NAMESPACE, stdin=payload.encode(), timeout_s=None
        )
    if done.status or not done.stdout.startswith(_BEGIN.encode()):
        said = done.stderr.decode(errors="replace").strip().splitlines() or ["no reason given"]
        raise MemtoolError(
            f"ssh-keygen did not sign: {said[-1]}",
            hint="give the private key, or load it into your ssh-agent: ssh-add FILE",
            code="not-signed",
        )
    return done.stdout


def keygen(
    env: Mapping[str, str], *args: str, stdin: bytes = b"", timeout_s: float | None = TIMEOUT_S
) -> process.Done:
    """Run ssh-keygen, in which times are of UTC. Raises MemtoolError where it cannot be run."""
    try:
        return process.run([KEYGEN, *args], {**env, "TZ": "UTC"}, stdin, timeout_s)
    except TimeoutError:
        raise MemtoolError(f"ssh-keygen did not end within {TIMEOUT_S:g} s") from None
    except OSError as error:
        raise MemtoolError(
            f"ssh-keygen cannot be run: {reason_of(error)}", code="no-ssh-keygen"
        ) from None


def _put(path: str, data: bytes) -> None:
    with open(path, "wb") as file:
        file.write(data)
