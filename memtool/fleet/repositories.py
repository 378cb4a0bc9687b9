"""The repositories of a fleet on this machine: their paths, names and trusted commits.

The user's own settings list paths, globs and remotes. A path is read in place and never written.
For a remote there is a bare clone of one commit in the user's cache, with only the memory files if
the remote supports partial clones. Only `scan` fetches; everything else works offline. The trusted
commit is the default branch of the remote as last fetched or, without a remote, the repository's
own. Settings, team and memories are read from it, independent of the checkout.

A repository that is missing, damaged or unreachable becomes a row with a problem, and does not
affect the others.
"""

from __future__ import annotations

import glob
import os
import shutil

from memtool.errors import MemtoolError, find_reason
from memtool.fleet.backend import TEAM
from memtool.memory.visibility import EXCLUDE
from memtool.store import config, provenance
from memtool.store.context import Context
from memtool.store.files import POINTER_NAME
from memtool.store.git import Git, GitError
from memtool.store.repository import (
    Repository,
    discover,
    read_branch_commit,
    read_head_commit,
    without_location,
)
from memtool.value import Value, digest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from memtool.store.git import TreeEntry

CLONES = "clones"
TRUSTED_REF, FETCHED_REF = "refs/heads/fleet", "refs/heads/fetched"
"""Refs in our clone for the remote's default branch: the complete one, and one whose files are
still being fetched."""
LOCAL_BRANCHES = ("refs/heads/main", "refs/heads/master")
"""Default branches of a repository without a remote; if there is neither, HEAD is used."""
PROTOCOLS = ("https", "ssh", "file")
LOOPBACK = ("localhost", "127.0.0.1")
FETCH_TIMEOUT_S = 180.0
# Stop after half a minute without data, as other repositories are waiting.
STALL_TIMEOUT = {"GIT_HTTP_LOW_SPEED_LIMIT": "1", "GIT_HTTP_LOW_SPEED_TIME": "30"}
"""Git's settings for a server that does not respond."""
OBJECT_FORMATS = ("sha1", "sha256")
"""Git's object formats; a repository can only fetch from one of the same format."""
FORMAT_MISMATCH = "mismatched algorithms"
"""In git's error for a remote of another object format."""
# A partial clone stores the name of its remote; a URL in its place could contain a password.
REMOTE_NAME = "memtool-fleet"
NO_BLOBS, NO_NEGOTIATION = "--filter=blob:none", {"fetch.negotiationAlgorithm": "noop"}
FILE_SUFFIXES = (".md", ".toml")
"""Suffixes of the files that are fetched: memories and settings."""
NO_SINGLE_FILES = "does not allow request"
"""In git's error for a server that cannot send single files (protocol before 2018)."""
NO_HEAD = "couldn't find remote ref HEAD"
"""In git's error for a remote without commits on its default branch."""
STALE_PREFIX = "as it was last fetched; now "
"""Start of the problem of a remote that can no longer be fetched."""
UNREADABLE_PREFIX = "its memories cannot be read: "
"""Start of the problem of a repository with damaged or missing objects."""
# Then a clone is created again, as nothing else removes old packs and those of killed fetches.
MAX_PACKS = 60
MAX_NAME_CHARS = 60
"""Limit for a team's label, and for each part of a repository's name."""


class FleetSource(Value):
    """A repository that an entry of the settings names: a folder (`place`) or a `remote`.

    The other one is empty, or both if there is a problem. `text` is for messages: the folder, or
    the remote without a password.
    """

    text: str
    place: str = ""
    remote: str = ""
    problem: str = ""


class FleetRepository(Value):
    """The last known state of a repository.

    One that cannot be read has a problem and no tree. One without memories (most matches of a glob)
    has a note and no tree.

    `name` is `org/name`. `commit` is the trusted commit, `tree` the id of its memory directory;
    empty if there is none. `git_dir` has its objects. `private` are the labels that its own
    settings hide from agents. `stamp` changes whenever any of this may have changed. `count` is the
    number of indexed memories, `note` explains missing ones, `key` identifies the state they were
    read from.
    """

    source: str
    name: str = ""
    git_dir: str = ""
    commit: str = ""
    directory: str = ""
    tree: str = ""
    team: str = ""
    private: tuple[str, ...] = ()
    problem: str = ""
    stamp: str = ""
    count: int = 0
    note: str = ""
    key: str = ""


NO_MATCH = "no repository is there"
"""The problem of a glob without matches."""


def find_sources(entries: Iterable[str], home: str) -> list[FleetSource]:
    """Return the repositories that the entries of the settings name, without duplicates.

    `home` is the user's home directory. A glob gives the repositories among its matches.
    """
    sources_by_place: dict[str, FleetSource] = {}
    for entry in entries:
        for source in _parse_entry(entry.strip(), home):
            sources_by_place.setdefault(source.remote or source.place or source.text, source)
    return list(sources_by_place.values())


def refuse_unreachable(key: str, entries: Iterable[str]) -> None:
    """Refuse entries that no sync can read: a relative path, an unknown protocol.

    Raises:
        MemtoolError: there is one; `key` is the setting that has them.
    """
    for source in find_sources(entries, "/"):
        if source.problem not in ("", NO_MATCH):
            raise MemtoolError(
                f"{key}: {source.text}: {source.problem}",
                hint=f"memtool --global config {key} '~/src/*'",
                code="config",
            )


def _parse_entry(entry: str, home: str) -> Iterator[FleetSource]:
    shown = without_password(entry)
    if "\0" in entry:
        yield FleetSource(shown, problem="no path or remote holds a NUL")
        return
    if is_remote(entry):
        kind = entry.partition("://")[0] if "://" in entry else "ssh"
        if "::" in entry.partition("[")[0]:  # such as `ext::…`, which would run a program
            kind = entry.partition("::")[0]
        host = entry.partition("://")[2].partition("/")[0].rpartition("@")[2]
        is_local = host.partition(":")[0] in LOOPBACK or host.startswith("[::1]")
        if kind in PROTOCOLS or (kind == "http" and is_local):
            yield FleetSource(shown, remote=entry)
        else:
            protocols = ", ".join(PROTOCOLS)
            yield FleetSource(
                shown, problem=f"{kind} is no protocol that is fetched: {protocols} are"
            )
        return
    place = entry
    if entry == "~" or entry.startswith("~/"):
        place = home + entry[1:]
    if not os.path.isabs(place):
        yield FleetSource(
            shown, problem="it is neither an absolute path, nor one from ~/, nor a remote"
        )
        return
    place = os.path.normpath(place)
    if not glob.has_magic(place) or os.path.exists(place):
        yield FleetSource(shown, place)
        return
    matched = sorted(filter(_is_repository, glob.iglob(place)))
    for path in matched:
        yield FleetSource(path, path)
    if not matched:
        yield FleetSource(shown, problem=NO_MATCH)


def is_remote(entry: str) -> bool:
    """Return whether an entry is a remote, such as a URL or `git@host:org/name`."""
    before, colon, _after = entry.partition(":")
    if before.startswith("-"):  # an option of git or ssh
        return False
    return "://" in entry or bool(colon and "/" not in before and not before.startswith("~"))


def without_password(remote: str) -> str:
    """Return a remote for messages, without user and password."""
    scheme, mark, address = remote.partition("://")
    host, slash, path = address.partition("/")
    return f"{scheme}{mark}{host.rpartition('@')[2]}{slash}{path}" if mark else remote


def _is_repository(place: str) -> bool:
    parts = ("HEAD", "objects", "refs")
    is_bare = all(os.path.exists(os.path.join(place, part)) for part in parts)
    return is_bare or os.path.exists(os.path.join(place, ".git"))


def find_name(repository: Repository) -> str:
    """Return `org/name` from the remote `origin`, else the first remote, else the folder.

    A remote with a relative path is ignored. A linked worktree has the name of its repository.
    """
    rows = repository.git.run(
        "config", "-z", "--get-regexp", r"^remote\..*\.url$", allowed=(0, 1)
    ).decode(errors="replace")
    urls = dict(row.split("\n", 1) for row in rows.split("\0") if "\n" in row)
    url = urls.get("remote.origin.url") or (urls[min(urls)] if urls else "")
    if is_remote(url) or os.path.isabs(url):
        return parse_name(url)
    is_linked = repository.git_dir != repository.common_dir
    return parse_name(repository.common_dir if is_linked else repository.top or repository.git_dir)


def parse_name(place: str) -> str:
    """Return `org/name` from the last two parts of the path of a remote or folder."""
    path = place.partition("://")[2].partition("/")[2] if "://" in place else place
    if is_remote(place) and "://" not in place:
        path = place.partition(":")[2]
    parts = [part for part in path.split("/") if part not in ("", ".git")]
    parts = [to_label(part.removesuffix(".git")) for part in parts[-2:]]
    if not parts:
        return "local/unnamed"
    return "/".join(parts if len(parts) == 2 else ["local", *parts])


def to_label(text: str) -> str:
    """Return a name that is safe to show: one short word of printable characters."""
    shown = "".join(char if char.isprintable() else "" for char in text)
    return "-".join(shown.split())[:MAX_NAME_CHARS] or "unnamed"


class RepositoryScanner:
    """Scans the repositories of a fleet; may be used by several threads."""

    def __init__(
        self, home: str, env: Mapping[str, str], previous: Iterable[FleetRepository] = ()
    ) -> None:
        """Take the fleet's directory, and the rows of the previous scan."""
        self._clones = os.path.join(home, CLONES)
        self._env = without_location(env)
        self._previous = {row.source: row for row in previous}

    def scan(self, source: FleetSource, *, is_fetching: bool = True) -> FleetRepository:
        """Return the current state of a repository, after fetching a remote. Raises nothing."""
        previous = self._previous.get(source.text)
        if source.problem:
            return FleetRepository(source.text, problem=source.problem)
        problem = ""
        try:
            if source.remote:
                repository, problem = self._fetch_clone(source, is_fetching=is_fetching)
                name, stamp = parse_name(source.remote), _find_commit(repository, TRUSTED_REF)
                commit = stamp
            else:
                repository = self._open_at(source.place)
                name, commit = "", find_trusted_commit(repository)
                stamp = f"{commit} {_config_changed_ns(repository)}"
            if previous is not None and previous.stamp == stamp and previous.name:
                old_problem = (
                    ""
                    if previous.problem.startswith((STALE_PREFIX, UNREADABLE_PREFIX))
                    else previous.problem
                )
                return previous.replace(problem=problem or old_problem)
            name = name or find_name(repository)
            row = FleetRepository(source.text, name, repository.common_dir, problem=problem)
            return _read_row(repository, row, commit, self._env).replace(stamp=stamp)
        except MemtoolError as error:
            return FleetRepository(source.text, problem=_to_clause(str(error), source))
        except OSError as error:
            reason = find_reason(error)
            return FleetRepository(source.text, problem=f"it cannot be read: {reason}")

    def _open_at(self, place: str) -> Repository:
        """Open the repository at a folder. Raises MemtoolError if the folder is not its top."""
        if not os.path.isdir(place):
            raise MemtoolError("the folder does not exist")
        if not _is_repository(place):
            raise MemtoolError("it is not the top of a git repository")
        return discover(place, self._env)

    def find_clone(self, remote: str) -> str:
        """Return the path of the clone of a remote."""
        return os.path.join(self._clones, f"{digest(remote.encode())}.git")

    def _fetch_clone(self, source: FleetSource, *, is_fetching: bool) -> tuple[Repository, str]:
        """Return the clone of a remote, and the problem if it is not up to date."""
        place = self.find_clone(source.remote)
        clone = open_bare(place, self._env)
        trusted = _find_commit(clone, TRUSTED_REF) if os.path.isdir(place) else ""
        if not is_fetching:
            if not trusted:
                raise MemtoolError("it was never fetched")
            return clone, ""
        try:
            if not trusted or len(_find_packs(place)) > MAX_PACKS:
                self._fetch_anew(place, source.remote)
            else:
                try:
                    self._fetch(clone, source.remote)
                except GitError as error:
                    # A killed fetch leaves its lock; a remote may have been created again.
                    if not error.is_lock and FORMAT_MISMATCH not in error.stderr:
                        raise
                    self._fetch_anew(place, source.remote)
        except MemtoolError as error:
            if not trusted:
                raise
            return clone, f"{STALE_PREFIX}{_to_clause(str(error), source)}"
        return clone, ""

    def _fetch_anew(self, place: str, remote: str) -> None:
        """Clone a remote to a temporary path, and move it into place when complete."""
        os.makedirs(self._clones, mode=0o700, exist_ok=True)
        fresh = f"{place}.new"
        for object_format in OBJECT_FORMATS:
            shutil.rmtree(fresh, ignore_errors=True)
            Git(self._clones, self._env).run(
                "init",
                "--quiet",
                "--bare",
                "--template=",
                f"--object-format={object_format}",
                fresh,
            )
            clone = open_bare(fresh, self._env)
            clone.git.run("config", "fetch.unpackLimit", "1")
            try:
                self._fetch(clone, remote)
                break
            except GitError as error:
                if FORMAT_MISMATCH not in error.stderr or object_format == OBJECT_FORMATS[-1]:
                    shutil.rmtree(fresh, ignore_errors=True)
                    raise
        shutil.rmtree(place, ignore_errors=True)
        os.rename(fresh, place)

    def _fetch(self, clone: Repository, remote: str) -> None:
        """Fetch the default branch of a remote, with only the needed files if possible.

        Raises:
            MemtoolError: the fetch failed; the trusted commit stays as it was.
        """
        git = clone.git
        protocols = (*PROTOCOLS, "http") if remote.startswith("http:") else PROTOCOLS
        env = {"GIT_ALLOW_PROTOCOL": ":".join(protocols), **STALL_TIMEOUT}
        if not self._env.get("GIT_SSH_COMMAND"):
            env["GIT_SSH_COMMAND"] = "ssh -o BatchMode=yes -o ConnectTimeout=30"

        def fetch(
            *options: str,
            refs: Sequence[str] = (),
            stdin: bytes = b"",
            settings: Mapping[str, str] = {},
        ) -> None:
            git.run(
                "fetch",
                "--quiet",
                "--no-tags",
                "--no-recurse-submodules",
                "--no-write-fetch-head",
                *options,
                "--end-of-options",
                REMOTE_NAME,
                *refs,
                env=env,
                stdin=stdin,
                timeout_s=FETCH_TIMEOUT_S,
                settings={f"remote.{REMOTE_NAME}.url": remote, **settings},
            )

        def fetch_files(entries: Iterable[TreeEntry]) -> None:
            missing = {
                entry.oid for entry in entries if entry.path.endswith(FILE_SUFFIXES)
            } - git.list_objects()
            if missing:  # without negotiation: git would assume that a commit has all its files
                rows = "".join(f"{oid}\n" for oid in sorted(missing))
                fetch(NO_BLOBS, "--stdin", stdin=rows.encode(), settings=NO_NEGOTIATION)

        branch = f"+HEAD:{FETCHED_REF}"
        fetch("--depth=1", NO_BLOBS, refs=[branch])
        commit = _find_commit(clone, FETCHED_REF)
        if commit == _find_commit(clone, TRUSTED_REF):
            return
        try:
            entries = git.ls_tree(commit, POINTER_NAME, config.DEFAULT_DIRECTORY)
            fetch_files(entries)
            if any(entry.path == POINTER_NAME for entry in entries):
                directory = Context(clone, self._env, clone.git_dir).project.read_directory_at(
                    commit
                )
                fetch_files(git.ls_tree(commit, directory))
        except GitError as error:
            if NO_SINGLE_FILES not in error.stderr:
                raise
            fetch("--depth=1", "--no-filter", "--refetch", refs=[branch])
        git.run("update-ref", TRUSTED_REF, FETCHED_REF)

    def sweep(self, remotes: Iterable[str]) -> None:
        """Remove the clones of all other remotes."""
        current = {os.path.basename(self.find_clone(remote)) for remote in remotes}
        for name in sorted(set(_list_folder(self._clones)) - current):
            shutil.rmtree(os.path.join(self._clones, name), ignore_errors=True)


def open_bare(place: str, env: Mapping[str, str]) -> Repository:
    """Open a repository without a worktree at a git directory, without checking it."""
    git_env = dict(env) | {"GIT_DIR": place}
    return Repository("", place, place, lambda: Git(place, git_env), env)


def find_trusted_commit(repository: Repository) -> str:
    """Return the trusted commit of a local repository; empty if there is none."""
    commit = provenance.resolve_trusted(repository, "")
    for name in LOCAL_BRANCHES if not commit else ():
        commit = commit or _find_commit(repository, name)
    return commit or read_head_commit(repository) or repository.git.head()


def without_duplicates(rows: Iterable[FleetRepository]) -> list[FleetRepository]:
    """Keep one row per repository (it may have several worktrees or links).

    Of different repositories with the same name, later ones get a problem and no tree.
    """
    first: dict[str, FleetRepository] = {}
    unique_rows = []
    for row in rows:
        before = first.setdefault(row.name.casefold(), row) if row.tree else row
        if before is row:
            unique_rows.append(row)
        elif before.git_dir != row.git_dir:
            problem = f"{before.source} is {row.name} already"
            unique_rows.append(
                row.replace(tree="", problem=problem, stamp="", count=0, note="", key="")
            )
    return unique_rows


def _read_row(
    repository: Repository, row: FleetRepository, commit: str, env: Mapping[str, str]
) -> FleetRepository:
    """Fill a row from the trusted commit. Raises MemtoolError if git fails."""
    if not commit:
        return row.replace(note="it has no commit")
    git = repository.git
    with git.open_objects():
        context = Context(repository, env, repository.git_dir)
        directory = context.project.read_directory_at(commit)
        (tree,) = git.infos([f"{commit}:{directory}"])
        row = row.replace(commit=commit, directory=directory)
        if tree is None or tree[1] != "tree":
            return row.replace(note=f"no {directory} in its default branch, as last pushed")
        row = row.replace(tree=tree[0])
        path = f"{directory}/{config.CONFIG_NAME}"
        data = context.project.read_stored_file(path, commit)
    if data is None:
        return row
    try:
        settings = config.parse(data, path)
    except MemtoolError as error:
        return row.replace(problem=row.problem or f"its settings cannot be read: {error}")
    if settings.is_newer:
        what = (
            f"its memories have format {settings.format}, and this memtool knows {config.FORMAT}: "
        )
        row = row.replace(problem=row.problem or what + "what it can read is here")
    team = settings.text(TEAM)
    return row.replace(team=to_label(team) if team.strip() else "", private=settings.texts(EXCLUDE))


def _find_commit(repository: Repository, ref: str) -> str:
    commit = read_branch_commit(repository, ref)
    if commit is None:
        names = ("rev-parse", "--verify", "--quiet", f"{ref}^{{commit}}")
        commit = repository.git.line(*names, allowed=(0, 1, 128))
    return commit


def _config_changed_ns(repository: Repository) -> int:
    """Return the modification time of the file that names the remotes; 0 if unknown."""
    try:
        return os.stat(os.path.join(repository.common_dir, "config")).st_mtime_ns
    except OSError:
        return 0


def _list_folder(folder: str) -> Sequence[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return ()


def _find_packs(place: str) -> list[str]:
    names = _list_folder(os.path.join(place, "objects", "pack"))
    return [name for name in names if name.endswith(".pack") or name.startswith("tmp_")]


def _to_clause(message: str, source: FleetSource) -> str:
    """Return an error message of git as one clause, without a password."""
    if NO_HEAD in message:
        return "its default branch has no commit"
    if source.remote:
        message = message.replace(source.remote, source.text)
    shown = "".join(char if char.isprintable() else " " for char in message)
    return " ".join(shown.split())[:300]
