"""The repositories of a fleet on this machine: which there are, by which name, and what is trusted.

The user's own settings name paths, globs of paths, and remotes. A path is read where it lies and
never written. A remote is kept as a bare clone of one commit below the user's cache, of whose files
it holds the memories alone where the remote can leave out others, and fetched by `scan` alone:
everything else works without a network. What is trusted is the default branch of the remote as last
fetched, or, without a remote, the repository's own; its settings, team and memories are read from
there, whatever is checked out.

One repository that is gone, damaged or unreachable is a row with its problem, and stops no other.
"""

from __future__ import annotations

import glob
import os
import shutil

from memtool.errors import MemtoolError, reason_of
from memtool.fleet.backend import TEAM
from memtool.memory.visibility import EXCLUDE
from memtool.store import config, provenance
from memtool.store.context import Context
from memtool.store.files import POINTER_NAME
from memtool.store.git import Git, GitError
from memtool.store.repository import (
    Repository,
    branch_commit,
    discover,
    head_commit,
    local_environment,
)
from memtool.value import Value, digest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from memtool.store.git import TreeEntry

CLONES = "clones"
TRUSTED, FETCHED = "refs/heads/fleet", "refs/heads/fetched"
"""The refs of a clone of ours that hold the remote's default branch: with the files that are read,
and while these are fetched."""
OWN_BRANCHES = ("refs/heads/main", "refs/heads/master")
"""The default branch of a repository without a remote; where it has neither, what is checked out.
"""
PROTOCOLS = ("https", "ssh", "file")
LOOPBACK = ("localhost", "127.0.0.1")
FETCH_S = 180.0
"""Seconds that one fetch may take."""
NOT_SILENT = {"GIT_HTTP_LOW_SPEED_LIMIT": "1", "GIT_HTTP_LOW_SPEED_TIME": "30"}
"""A server may say nothing for half a minute: others wait behind it."""
OBJECT_FORMATS = ("sha1", "sha256")
"""How git may name objects. A repository fetches from others of its own format alone, ..."""
OTHER_FORMAT = "mismatched algorithms"
"""... and so git begins its refusal of another."""
REMOTE = "memtool-fleet"
"""What git calls a remote: a clone that lacks files keeps the name of where they are, and the
address may hold a password."""
ONLY_NAMED, HAVING_NOTHING = "--filter=blob:none", {"fetch.negotiationAlgorithm": "noop"}
FILES = (".md", ".toml")
"""How the names end of files that are read: memories and settings."""
UNASKED = "does not allow request"
"""What git says where a server does not give single files, as under its protocol of before 2018."""
NO_HEAD = "couldn't find remote ref HEAD"
"""What git says of a remote that is empty, or whose default branch is."""
AS_FETCHED = "as it was last fetched; now "
"""How the problem begins of a remote that cannot be fetched any more."""
UNREAD = "its memories cannot be read: "
"""How the problem begins of a repository whose objects are damaged or not all there."""
MOST_PACKS = 60
"""Packs that a clone keeps, with those of killed fetches; then it is made anew, since nothing else
ever cleans it up."""
MOST_NAME = 60
"""Characters of a team's label, and of each part of a repository's name."""


class FleetSource(Value):
    """What an entry of the settings leads to. `place` is a folder, `remote` what git fetches.

    One of the two is empty, or both, where there is a problem. `text` is what people are shown: a
    remote without the password that may be in it.
    """

    text: str
    place: str = ""
    remote: str = ""
    problem: str = ""


class FleetRepository(Value):
    """A repository as it was last looked at; one that cannot be read has a problem and no tree.

    One without memories, as most are that a glob finds, has a note and no tree.

    `name` is `org/name`. `commit` is the trusted one, `tree` the id of its memory directory, both
    empty where there is none. `git_dir` is where its objects are. `private` are the labels that its
    own settings keep from agents. `stamp` changes when anything of this may have. `count` is how
    many memories are indexed, and `note` says which are not; `key` is what they were made of.
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


NOTHING_THERE = "no repository is there"
"""The problem of a glob that matches none yet."""


def sources(entries: Iterable[str], home: str) -> list[FleetSource]:
    """Return what the entries of the settings lead to, each once, in their order.

    `home` is the user's home directory. A glob gives the repositories among what it matches.
    """
    found: dict[str, FleetSource] = {}
    for entry in entries:
        for one in _sources(entry.strip(), home):
            found.setdefault(one.remote or one.place or one.text, one)
    return list(found.values())


def _sources(entry: str, home: str) -> Iterator[FleetSource]:
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
            known = ", ".join(PROTOCOLS)
            yield FleetSource(shown, problem=f"{kind} is no protocol that is fetched: {known} are")
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
    for one in matched:
        yield FleetSource(one, one)
    if not matched:
        yield FleetSource(shown, problem=NOTHING_THERE)


def is_remote(entry: str) -> bool:
    """Tell whether an entry is what git fetches from, such as a URL or `git@host:org/name`."""
    before, colon, _after = entry.partition(":")
    if before.startswith("-"):  # an option of git or ssh
        return False
    return "://" in entry or bool(colon and "/" not in before and not before.startswith("~"))


def without_password(remote: str) -> str:
    """Return a remote as it may be shown: without what stands before the host of a URL."""
    scheme, mark, rest = remote.partition("://")
    host, slash, path = rest.partition("/")
    return f"{scheme}{mark}{host.rpartition('@')[2]}{slash}{path}" if mark else remote


def _is_repository(place: str) -> bool:
    parts = ("HEAD", "objects", "refs")
    is_bare = all(os.path.exists(os.path.join(place, part)) for part in parts)
    return is_bare or os.path.exists(os.path.join(place, ".git"))


def name_of(repository: Repository) -> str:
    """Return `org/name`: of the remote `origin`, else of the first remote, else of the folder.

    A remote whose address depends on where the repository lies names nothing. A linked worktree has
    the name of the repository that it belongs to.
    """
    rows = repository.git.run(
        "config", "-z", "--get-regexp", r"^remote\..*\.url$", allowed=(0, 1)
    ).decode(errors="replace")
    urls = dict(row.split("\n", 1) for row in rows.split("\0") if "\n" in row)
    url = urls.get("remote.origin.url") or (urls[min(urls)] if urls else "")
    if is_remote(url) or os.path.isabs(url):
        return named_by(url)
    is_linked = repository.git_dir != repository.common_dir
    return named_by(repository.common_dir if is_linked else repository.top or repository.git_dir)


def named_by(place: str) -> str:
    """Return the last two parts of a remote's path, or of a folder's, as `org/name`."""
    path = place.partition("://")[2].partition("/")[2] if "://" in place else place
    if is_remote(place) and "://" not in place:
        path = place.partition(":")[2]
    parts = [part for part in path.split("/") if part not in ("", ".git")]
    parts = [label(part.removesuffix(".git")) for part in parts[-2:]]
    if not parts:
        return "local/unnamed"
    return "/".join(parts if len(parts) == 2 else ["local", *parts])


def label(text: str) -> str:
    """Return a name as it may be shown anywhere: one word of printable characters, not too long."""
    shown = "".join(char if char.isprintable() else "" for char in text)
    return "-".join(shown.split())[:MOST_NAME] or "unnamed"


class RepositoryScanner:
    """Looks at the repositories of a fleet; several may be looked at at once, by threads."""

    def __init__(
        self, home: str, env: Mapping[str, str], known: Iterable[FleetRepository] = ()
    ) -> None:
        """Take where clones are kept, and what was seen the last time."""
        self._clones = os.path.join(home, CLONES)
        self._env = local_environment(env)
        self._known = {row.source: row for row in known}

    def scan(self, source: FleetSource, *, is_fetching: bool = True) -> FleetRepository:
        """Return a repository as it is now; a remote is fetched before. Raises nothing."""
        known = self._known.get(source.text)
        if source.problem:
            return FleetRepository(source.text, problem=source.problem)
        problem = ""
        try:
            if source.remote:
                repository, problem = self._fetched(source, is_fetching=is_fetching)
                name, stamp = named_by(source.remote), _commit(repository, TRUSTED)
                commit = stamp
            else:
                repository = self._at(source.place)
                name, commit = "", trusted_commit(repository)
                stamp = f"{commit} {_changed_ns(repository)}"
            if known is not None and known.stamp == stamp and known.name:
                held = "" if known.problem.startswith((AS_FETCHED, UNREAD)) else known.problem
                return known.replace(problem=problem or held)
            name = name or name_of(repository)
            found = FleetRepository(source.text, name, repository.common_dir, problem=problem)
            return _read(repository, found, commit, self._env).replace(stamp=stamp)
        except MemtoolError as error:
            return FleetRepository(source.text, problem=_clause(str(error), source))
        except OSError as error:
            reason = reason_of(error)
            return FleetRepository(source.text, problem=f"it cannot be read: {reason}")

    def _at(self, place: str) -> Repository:
        """Open the repository whose top a folder is. Raises MemtoolError where it is none."""
        if not os.path.isdir(place):
            raise MemtoolError("it is gone: there is no such folder")
        if not _is_repository(place):
            raise MemtoolError("it is not the top of a git repository")
        return discover(place, self._env)

    def clone_of(self, remote: str) -> str:
        """Return where the clone of a remote is kept."""
        return os.path.join(self._clones, f"{digest(remote.encode())}.git")

    def _fetched(self, source: FleetSource, *, is_fetching: bool) -> tuple[Repository, str]:
        """Return the clone of a remote, and why it is not as the remote is, if it is not."""
        place = self.clone_of(source.remote)
        clone = open_bare(place, self._env)
        held = _commit(clone, TRUSTED) if os.path.isdir(place) else ""
        if not is_fetching:
            if not held:
                raise MemtoolError("it was never fetched")
            return clone, ""
        try:
            if not held or len(_packs(place)) > MOST_PACKS:
                self._fetch_anew(place, source.remote)
            else:
                try:
                    self._fetch(clone, source.remote)
                except GitError as error:
                    # A killed fetch leaves its lock, and a remote may have been made anew.
                    if not error.is_lock and OTHER_FORMAT not in error.stderr:
                        raise
                    self._fetch_anew(place, source.remote)
        except MemtoolError as error:
            if not held:
                raise
            return clone, f"{AS_FETCHED}{_clause(str(error), source)}"
        return clone, ""

    def _fetch_anew(self, place: str, remote: str) -> None:
        """Clone a remote beside its place, and put it there when it is whole."""
        os.makedirs(self._clones, mode=0o700, exist_ok=True)
        fresh = f"{place}.new"
        for form in OBJECT_FORMATS:
            shutil.rmtree(fresh, ignore_errors=True)
            Git(self._clones, self._env).run(
                "init", "--quiet", "--bare", "--template=", f"--object-format={form}", fresh
            )
            clone = open_bare(fresh, self._env)
            clone.git.run("config", "fetch.unpackLimit", "1")
            try:
                self._fetch(clone, remote)
                break
            except GitError as error:
                if OTHER_FORMAT not in error.stderr or form == OBJECT_FORMATS[-1]:
                    shutil.rmtree(fresh, ignore_errors=True)
                    raise
        shutil.rmtree(place, ignore_errors=True)
        os.rename(fresh, place)

    def _fetch(self, clone: Repository, remote: str) -> None:
        """Fetch the default branch of a remote, with the files that are read of it.

        A server that leaves out no files sends all of them at once.

        Raises:
            MemtoolError: it cannot be fetched, and what was trusted before still is.
        """
        git = clone.git
        protocols = (*PROTOCOLS, "http") if remote.startswith("http:") else PROTOCOLS
        env = {"GIT_ALLOW_PROTOCOL": ":".join(protocols), **NOT_SILENT}
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
                REMOTE,
                *refs,
                env=env,
                stdin=stdin,
                timeout_s=FETCH_S,
                settings={f"remote.{REMOTE}.url": remote, **settings},
            )

        def fetch_files(entries: Iterable[TreeEntry]) -> None:
            wanted = {one.oid for one in entries if one.path.endswith(FILES)} - git.present()
            if wanted:  # asked for as if nothing was here: a commit stands for all of its files
                rows = "".join(f"{oid}\n" for oid in sorted(wanted))
                fetch(ONLY_NAMED, "--stdin", stdin=rows.encode(), settings=HAVING_NOTHING)

        branch = f"+HEAD:{FETCHED}"
        fetch("--depth=1", ONLY_NAMED, refs=[branch])
        commit = _commit(clone, FETCHED)
        if commit == _commit(clone, TRUSTED):
            return
        try:
            first = git.ls_tree(commit, POINTER_NAME, config.DEFAULT_DIRECTORY)
            fetch_files(first)
            if any(one.path == POINTER_NAME for one in first):
                directory = Context(clone, self._env, clone.git_dir).project.directory_at(commit)
                fetch_files(git.ls_tree(commit, directory))
        except GitError as error:
            if UNASKED not in error.stderr:
                raise
            fetch("--depth=1", "--no-filter", "--refetch", refs=[branch])
        git.run("update-ref", TRUSTED, FETCHED)

    def sweep(self, remotes: Iterable[str]) -> None:
        """Remove the clones of other remotes than these."""
        kept = {os.path.basename(self.clone_of(remote)) for remote in remotes}
        for name in sorted(set(_listed(self._clones)) - kept):
            shutil.rmtree(os.path.join(self._clones, name), ignore_errors=True)


def open_bare(place: str, env: Mapping[str, str]) -> Repository:
    """Return a repository without a work tree by its git directory; nothing is looked at."""
    named = dict(env) | {"GIT_DIR": place}
    return Repository("", place, place, lambda: Git(place, named), env)


def trusted_commit(repository: Repository) -> str:
    """Return the trusted commit of a repository at a path, empty where there is none."""
    found = provenance.resolve_trusted(repository, "")
    for name in OWN_BRANCHES if not found else ():
        found = found or _commit(repository, name)
    return found or head_commit(repository) or repository.git.head()


def unique(rows: Iterable[FleetRepository]) -> list[FleetRepository]:
    """Return rows of which no two with a tree have one name: the first of them counts.

    Of the worktrees of one repository, and of links to it, there is one row.
    """
    first: dict[str, FleetRepository] = {}
    found = []
    for row in rows:
        before = first.setdefault(row.name.casefold(), row) if row.tree else row
        if before is row:
            found.append(row)
        elif before.git_dir != row.git_dir:
            problem = f"{before.source} is {row.name} already"
            found.append(row.replace(tree="", problem=problem, stamp="", count=0, note="", key=""))
    return found


def _read(
    repository: Repository, found: FleetRepository, commit: str, env: Mapping[str, str]
) -> FleetRepository:
    """Return a row with what the trusted commit says. Raises MemtoolError where git cannot."""
    if not commit:
        return found.replace(note="it has no commit")
    git = repository.git
    with git.reading():
        context = Context(repository, env, repository.git_dir)
        directory = context.project.directory_at(commit)
        (tree,) = git.infos([f"{commit}:{directory}"])
        found = found.replace(commit=commit, directory=directory)
        if tree is None or tree[1] != "tree":
            return found.replace(note=f"no {directory} in its default branch, as last pushed")
        found = found.replace(tree=tree[0])
        path = f"{directory}/{config.CONFIG_NAME}"
        data = context.project.stored_file(path, commit)
    if data is None:
        return found
    try:
        own = config.parse(data, path)
    except MemtoolError as error:
        return found.replace(problem=found.problem or f"its settings cannot be read: {error}")
    if own.is_newer:
        what = f"its memories have format {own.format}, and this memtool knows {config.FORMAT}: "
        found = found.replace(problem=found.problem or what + "what it can read is here")
    team = own.text(TEAM)
    return found.replace(team=label(team) if team.strip() else "", private=own.texts(EXCLUDE))


def _commit(repository: Repository, ref: str) -> str:
    known = branch_commit(repository, ref)
    if known is None:
        names = ("rev-parse", "--verify", "--quiet", f"{ref}^{{commit}}")
        known = repository.git.line(*names, allowed=(0, 1, 128))
    return known


def _changed_ns(repository: Repository) -> int:
    """Return when the file last changed that names the remotes."""
    try:
        return os.stat(os.path.join(repository.common_dir, "config")).st_mtime_ns
    except OSError:
        return 0


def _listed(folder: str) -> Sequence[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return ()


def _packs(place: str) -> list[str]:
    names = _listed(os.path.join(place, "objects", "pack"))
    return [name for name in names if name.endswith(".pack") or name.startswith("tmp_")]


def _clause(message: str, source: FleetSource) -> str:
    """Return what git said of a repository, without its password, as one clause."""
    if NO_HEAD in message:
        return "its default branch has no commit"
    if source.remote:
        message = message.replace(source.remote, source.text)
    shown = "".join(char if char.isprintable() else " " for char in message)
    return " ".join(shown.split())[:300]
