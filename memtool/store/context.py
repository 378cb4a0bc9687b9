"""The context of a verb: repository, project with its settings, clock and caller.

Every verb takes one. Lower layers get the parts that they need as arguments.
"""

from __future__ import annotations

import os

from memtool.errors import MemtoolError
from memtool.store.caller import Caller
from memtool.store.clock import Clock
from memtool.store.project import Project
from memtool.store.repository import (
    Repository,
    discover,
    find_global_directory,
    is_global_created,
    open_global_repository,
    read_head_ref,
    without_location,
)
from memtool.value import cached_property, format_count

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Self

    from memtool.memory.trust import Origin
    from memtool.store.config import Config
    from memtool.store.provenance import ProvenanceReader
    from memtool.store.snapshot import Snapshot
    from memtool.store.tree import Record, Tree

GLOBAL_NOTE_PREFIX = "global memories"
"""Beginning of the note that the user's global memories and settings are not used."""


class Context:
    """An open repository with its settings, clock and caller.

    `is_global` marks the repository of the user's global memories, which apply to all projects.
    """

    def __init__(
        self, repository: Repository, env: Mapping[str, str], cwd: str, *, is_global: bool = False
    ) -> None:
        self.repository = repository
        self.caller = Caller(env, cwd)
        self.clock = Clock(env)
        self.is_global = is_global
        self.notes: list[str] = []
        """Messages for the user next to the answer, such as which files could not be read."""
        self.trees_by_commit: dict[str, Tree] | None = None
        """Trees by commit id, with the worktree's under an empty key. Set if several verbs run on
        the same moment."""
        self.is_commit = False
        """Whether the context sees a single commit only; see `at_commit`."""
        self.project = self._project()

    def _project(self) -> Project:
        return Project(
            self.repository, self.caller, self.notes, self._user_settings, is_global=self.is_global
        )

    def _user_settings(self) -> Config | None:
        return None if self.global_context is None else self.global_context.settings

    @classmethod
    def at(cls, directory: str, env: Mapping[str, str] | None = None) -> Self:
        """Open the repository that contains a directory. Raises MemtoolError if none does."""
        env = os.environ if env is None else env
        return cls(discover(directory, env), env, os.path.abspath(directory))

    @classmethod
    def at_global(cls, env: Mapping[str, str] | None = None) -> Self:
        """Open the user's global repository. The first verb that writes creates a missing one.

        Raises:
            MemtoolError: no directory for it is known, or the directory holds something else.
        """
        env = os.environ if env is None else env
        repository = open_global_repository(env)
        env = without_location(env)
        return cls(repository, env, os.path.abspath("."), is_global=True)

    def at_commit(self, commit: str) -> Context:
        """Return a context that sees only one commit, so that it is the same in every clone.

        It has the settings of the commit, its commit time as now, and the commit as trusted ref.
        The user, refs, the worktree and the clock have no influence.

        Raises:
            MemtoolError: the settings of the commit cannot be read.
        """
        env = {**self.caller.env, "MEMTOOL_PERSONAL": "off"}
        context = Context(self.repository, env, self.caller.cwd)
        context.project = context.project.at_commit(commit)
        commit_time = self.repository.git.line("show", "-s", "--format=%ct", commit)
        context.clock = Clock.fixed_at(int(commit_time))
        context.trees_by_commit, context.is_commit = {}, True
        return context

    @property
    def settings(self) -> Config:
        """The settings of the project on top of the user's own. Raises MemtoolError."""
        return self.project.settings

    @property
    def directory(self) -> str:
        """The memory directory, relative to the top of the worktree. Raises MemtoolError."""
        return self.project.directory

    @cached_property
    def global_context(self) -> Context | None:
        """The context of the global memories; None if there are none or this is that context.

        If it cannot be read, a note says so: no project fails because of it.
        """
        if self.is_global or not self.caller.is_personal:
            return None
        place = ""
        try:
            place = find_global_directory(self.caller.env)
            if not place or not is_global_created(place):
                return None
            context = Context.at_global(self.caller.env)
            if context.repository.common_dir == self.repository.common_dir:
                return None
            _ = context.settings  # a broken file is reported here, once
        except MemtoolError as error:
            where = f" in {place}" if place else ""
            self.notes.append(f"{GLOBAL_NOTE_PREFIX}{where} are passed over: {error}")
            return None
        return context

    def enter(self, repository: Repository) -> None:
        """Switch to another repository and drop everything read from the previous one."""
        self.repository = repository
        self.project = self._project()

    @cached_property
    def is_cached(self) -> bool:
        """Whether derived data may be read from and written to the cache."""
        return self.caller.can_cache(self.repository)

    @property
    def cache_dir(self) -> str:
        """The directory of derived data that may be read and written; empty for none."""
        return self.repository.cache_dir if self.is_cached else ""

    def random_id_bytes(self, *claim: str) -> bytes:
        """Return three bytes for the end of an id, always the same for a claim in this place.

        So a preview shows the id that will be written. The place is machine, clone, worktree and
        branch: for two files that could meet in a merge, the bytes are as good as random.
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
        here = (os.uname().nodename, repository.git_dir, number, read_head_ref(repository))
        return hashlib.sha256("\0".join((*here, *claim)).encode(errors="replace")).digest()[:3]

    def snapshot(self, at: str | None = None) -> Snapshot:
        """Return the files of the worktree or of a revision; `:index` means git's index."""
        from memtool.store import snapshot  # not needed if nothing changed since the last index

        return snapshot.take_snapshot(self.repository, self.directory, at)

    def tree(self, at: str | None = None, as_of: str | None = None) -> Tree:
        """Read the memories of the worktree or of a revision, optionally as of a moment.

        Raises:
            MemtoolError: the memory directory is missing or belongs to another tool.
        """
        from memtool.store.tree import read_tree

        second = self.clock.parse_moment(as_of) if as_of is not None else None
        snapshot = self.snapshot(at)
        if at is None:
            self.project.refuse_absent()
        tree = read_tree(snapshot, self.settings.categories, second)
        if not tree.count and at is None:
            self.project.refuse_foreign()
        self.note_problems(tree)
        return tree

    @cached_property
    def whole_tree(self) -> Tree:
        """The memories of the worktree, read once. Raises MemtoolError as `tree` does."""
        return self.tree()

    def note_problems(self, tree: Tree) -> None:
        """Add a note, once, on how many files are not memories or are in an unfinished merge.

        A tree of a newer format gets a single note that says what this version can do with it.
        """
        broken = [problem for problem in tree.problems if problem.severity == "error"]
        if self.settings.is_newer:
            from memtool import installation

            count = len({problem.path for problem in broken})
            unreadable = (
                f", but for {format_count(count, 'file')} that it cannot read" if count else ""
            )
            newer = self.project.describe_newer()
            note = f"{newer}: it reads this tree{unreadable}, and writes nothing; "
            note += installation.upgrade_command()
            self.notes += [note] if note not in self.notes else []
            return
        in_merge = [problem for problem in tree.problems if problem.severity != "error"]
        for problems, singular, plural_text, hint in (
            (broken, "file is not a memory", "files are not memories", "memtool status lists why"),
            (
                in_merge,
                "memory is in an unfinished merge",
                "memories are in an unfinished merge",
                "memtool resolve settles that",
            ),
        ):
            count = len({problem.path for problem in problems})
            note = f"{count} {singular if count == 1 else plural_text}, {hint}; first: "
            if problems and (note := note + problems[0].text()) not in self.notes:
                self.notes.append(note)

    def provenance_reader(self, tree: Tree) -> ProvenanceReader:
        """Return a reader of the provenance of a tree's records."""
        from memtool.store.provenance import ProvenanceReader

        return ProvenanceReader(
            tree.location,
            self.project.trust_settings.text("trust.ref"),
            self.project.trust_settings.text("trust.allowed_signers"),
            is_cached=self.is_cached,
            is_hurried=self.caller.deadline is not None,
        ).with_overlay(tree.overlay)

    def origins(self, tree: Tree, records: Iterable[Record]) -> dict[str, Origin]:
        """Return commit, author, date and trust of the records of a tree, by path."""
        origins = self.provenance_reader(tree).origins(records)
        if not self.is_commit:
            return origins
        # The commit is its own trusted ref here, so only a signature raises trust above committed.
        return {
            path: origin.replace(trust="committed") if origin.trust == "trusted" else origin
            for path, origin in origins.items()
        }
