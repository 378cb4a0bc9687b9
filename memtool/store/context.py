"""The context of a verb: a repository, its project and settings, the clock, and who calls.

Every verb takes one. Lower layers are given what they need of it as arguments.
"""

from __future__ import annotations

import os

from memtool.errors import MemtoolError
from memtool.store.caller import Caller
from memtool.store.clock import Clock
from memtool.store.project import Project
from memtool.store.repository import (
    Repository,
    checked_out,
    discover,
    global_directory,
    global_repository,
    is_global_made,
    local_environment,
)
from memtool.value import cached_property, plural

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Self

    from memtool.memory.trust import Origin
    from memtool.store.config import Config
    from memtool.store.provenance import Witness
    from memtool.store.snapshot import Snapshot
    from memtool.store.tree import Record, Tree

GLOBAL_MEMORIES = "global memories"
"""How the note begins that those of the user are not used, and their settings neither."""


class Context:
    """A repository that is open for a caller, with its settings and a clock.

    `is_global` says that it is the one of the user's global memories, which hold in all projects.
    """

    def __init__(
        self, repository: Repository, env: Mapping[str, str], cwd: str, *, is_global: bool = False
    ) -> None:
        self.repository = repository
        self.caller = Caller(env, cwd)
        self.clock = Clock(env)
        self.is_global = is_global
        self.notes: list[str] = []
        """What the user should know apart from the answer, such as files that could not be read."""
        self.opened: dict[str, Tree] | None = None
        """The memories of commits by their ids, and of the worktree under no name, where several
        verbs are asked about the same moment."""
        self.is_commit = False
        """Whether a commit is all there is."""
        self.project = self._project()

    def _project(self) -> Project:
        return Project(
            self.repository, self.caller, self.notes, self._user_settings, is_global=self.is_global
        )

    def _user_settings(self) -> Config | None:
        return None if self.beside is None else self.beside.settings

    @classmethod
    def at(cls, directory: str, env: Mapping[str, str] | None = None) -> Self:
        """Open the repository that a directory lies in. Raises MemtoolError where there is none."""
        env = os.environ if env is None else env
        return cls(discover(directory, env), env, os.path.abspath(directory))

    @classmethod
    def at_global(cls, env: Mapping[str, str] | None = None) -> Self:
        """Open the user's global repository; an absent one is made by the first writing verb.

        Raises:
            MemtoolError: there is no place for it, or something else is there.
        """
        env = os.environ if env is None else env
        found = global_repository(env)
        env = local_environment(env)
        return cls(found, env, os.path.abspath("."), is_global=True)

    def at_commit(self, commit: str) -> Context:
        """Return a context in which a commit is all there is: the same in every clone.

        Settings are those of the commit, now is when it was committed, and it is the trusted ref
        itself. Nothing of the user, of refs, of the worktree or of the clock has a say.

        Raises:
            MemtoolError: its settings cannot be read.
        """
        env = {**self.caller.env, "MEMTOOL_PERSONAL": "off"}
        found = Context(self.repository, env, self.caller.cwd)
        found.project = found.project.at_commit(commit)
        committed = self.repository.git.line("show", "-s", "--format=%ct", commit)
        found.clock = Clock.stopped_at(int(committed))
        found.opened, found.is_commit = {}, True
        return found

    @property
    def settings(self) -> Config:
        """The settings of the project, above the user's own. Raises MemtoolError."""
        return self.project.settings

    @property
    def directory(self) -> str:
        """The memory directory, relative to the top. Raises MemtoolError."""
        return self.project.directory

    @cached_property
    def beside(self) -> Context | None:
        """The context of the global memories, None where there are none or this is theirs.

        One that cannot be read is passed over with a note: no project fails for it.
        """
        if self.is_global or not self.caller.is_personal:
            return None
        place = ""
        try:
            place = global_directory(self.caller.env)
            if not place or not is_global_made(place):
                return None
            found = Context.at_global(self.caller.env)
            if found.repository.common_dir == self.repository.common_dir:
                return None
            _ = found.settings  # a broken file is reported here, once
        except MemtoolError as error:
            where = f" in {place}" if place else ""
            self.notes.append(f"{GLOBAL_MEMORIES}{where} are passed over: {error}")
            return None
        return found

    def enter(self, repository: Repository) -> None:
        """Go on in another repository; what was read of the one before is forgotten."""
        self.repository = repository
        self.project = self._project()

    @cached_property
    def is_cached(self) -> bool:
        """Whether what is derived may be read from and written to the cache."""
        return self.caller.is_caching(self.repository)

    def random_for(self, *claim: str) -> bytes:
        """Return three bytes for the end of an id: the same whenever this claim is drawn for here.

        So a preview names the id that is written. "Here" is this machine, clone, worktree and
        branch: wherever two files could meet in a merge, the bytes are as good as random.
        """
        if "MEMTOOL_SEED" in self.caller.env:
            return self.caller.random(3)
        import hashlib

        repository = self.repository
        try:
            clone = os.stat(repository.common_dir)
            number = f"{clone.st_dev}/{clone.st_ino}"
        except OSError:  # a global repository that is not made yet
            number = ""
        here = (os.uname().nodename, repository.git_dir, number, checked_out(repository))
        return hashlib.sha256("\0".join((*here, *claim)).encode(errors="replace")).digest()[:3]

    def snapshot(self, at: str | None = None) -> Snapshot:
        """Return the worktree's files, or those of a revision; `:index` is git's index."""
        from memtool.store import snapshot  # a catalog lists no file where nothing changed

        return snapshot.take(self.repository, self.directory, at)

    def tree(self, at: str | None = None, as_of: str | None = None) -> Tree:
        """Read the memories of the worktree or a revision, as they stood at a moment.

        Raises:
            MemtoolError: there is no memory directory, or it belongs to another tool.
        """
        from memtool.store.tree import read_tree

        second = self.clock.moment(as_of) if as_of is not None else None
        taken = self.snapshot(at)
        if at is None:
            self.project.refuse_absent()
        tree = read_tree(taken, self.settings.categories, second)
        if not tree.count and at is None:
            self.project.refuse_foreign()
        self.note_problems(tree)
        return tree

    @cached_property
    def whole_tree(self) -> Tree:
        """The memories of the worktree, all read once, for who asks several things of the same.

        Raises:
            MemtoolError: as `tree` does.
        """
        return self.tree()

    def note_problems(self, tree: Tree) -> None:
        """Note how many files of a tree are not memories, or in an unfinished merge, once.

        Of a tree of a newer format it is said in one sentence that it is, and what that means.
        """
        broken = [problem for problem in tree.problems if problem.severity == "error"]
        if self.settings.is_newer:
            from memtool import installation

            count = len({problem.path for problem in broken})
            left = f", but for {plural(count, 'file')} that it cannot read" if count else ""
            note = f"{self.project.newer()}: it reads this tree{left}, and writes nothing; "
            note += installation.upgrade()
            self.notes += [note] if note not in self.notes else []
            return
        divided = [problem for problem in tree.problems if problem.severity != "error"]
        for found, one, many, hint in (
            (broken, "file is not a memory", "files are not memories", "memtool status lists why"),
            (
                divided,
                "memory is in an unfinished merge",
                "memories are in an unfinished merge",
                "memtool resolve settles that",
            ),
        ):
            count = len({problem.path for problem in found})
            note = f"{count} {one if count == 1 else many}, {hint}; first: "
            if found and (note := note + found[0].text()) not in self.notes:
                self.notes.append(note)

    def witness(self, tree: Tree) -> Witness:
        """Return what git can say about the records of a tree."""
        from memtool.store.provenance import Witness

        return Witness(
            tree.location,
            self.project.trust_settings.text("trust.ref"),
            self.project.trust_settings.text("trust.allowed_signers"),
            is_cached=self.is_cached,
        )

    def origins(self, tree: Tree, records: Iterable[Record]) -> dict[str, Origin]:
        """Return commit, author, date and trust of records of a tree, by path."""
        found = self.witness(tree).origins(records)
        if not self.is_commit:
            return found
        # A commit that is its own trusted ref makes nothing more than committed, but by signatures.
        return {
            path: one.replace(trust="committed") if one.trust == "trusted" else one
            for path, one in found.items()
        }
