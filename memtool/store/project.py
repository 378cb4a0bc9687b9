"""A project: its memory directory, and its settings as each place that has a say gives them.

A setting comes from the worktree, from the user, and where a block is bounded or something is
trusted, from the trusted ref: no branch lowers the bar by changing a file.
"""

from __future__ import annotations

import os

from memtool.errors import MemtoolError
from memtool.store import config as config_file
from memtool.store import files, toml
from memtool.store.config import Config
from memtool.store.repository import (
    FIRST_GLOBAL,
    NO_GLOBAL,
    Repository,
    global_directory,
    refuse,
)
from memtool.value import cached_property

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from memtool.store.caller import Caller
    from memtool.store.trust_rules import TrustRule


class Project:
    """The memory directory of a repository, and its settings."""

    def __init__(
        self,
        repository: Repository,
        caller: Caller,
        notes: list[str],
        of_user: Callable[[], Config | None],
        *,
        is_global: bool = False,
    ) -> None:
        """Read nothing yet.

        Args:
            repository: where it is.
            caller: whose environment says where the user's own memories are.
            notes: gets what the user should know, such as settings that do not hold.
            of_user: returns the user's own settings, None where there are none.
            is_global: whether this is the project of the user's global memories.
        """
        self.repository = repository
        self.notes = notes
        self.is_global = is_global
        self._caller = caller
        self._of_user = of_user

    def at_commit(self, commit: str) -> Project:
        """Return what a commit alone says: no user, ref or worktree has a say.

        The commit is its own trusted ref. Raises MemtoolError where its settings cannot be read.
        """
        project = Project(self.repository, self._caller, self.notes, lambda: None)
        project.directory = self.directory_at(commit)
        data = self.stored_file(project.config_path, commit)
        own = config_file.DEFAULTS if data is None else config_file.parse(data, project.config_path)
        project.settings = own.replace(given=own.given | {"trust.ref": commit})
        project._agreed = None
        return project

    @property
    def is_in_global(self) -> bool:
        """Whether this is the repository of the global memories, however it was opened."""
        if self.is_global:
            return True
        try:
            place = global_directory(self._caller.env)
        except MemtoolError:
            return False
        return bool(place) and os.path.realpath(place) == os.path.realpath(self.repository.top)

    @cached_property
    def directory(self) -> str:
        """The memory directory, relative to the top: `.memory`, or what `.memtool.toml` names."""
        data = self.file(files.POINTER_NAME)
        if data is None:
            return config_file.DEFAULT_DIRECTORY
        return directory_named_by(data)

    def file(self, path: str, code: str = "config") -> bytes | None:
        """Return a small file of the worktree, or of HEAD in a bare repository; None for none.

        Raises:
            MemtoolError: it cannot be read, with this code.
        """
        if self.repository.is_bare:
            return self.stored_file(path, "HEAD")
        hint = f"make {path} a file that you may read"
        with files.refusing(f"{path} cannot be read", hint, code):
            try:
                most = toml.MOST_BYTES + 1
                return files.read_regular(os.path.join(self.repository.top, path), most)
            except (FileNotFoundError, NotADirectoryError):
                return None

    def stored_file(self, path: str, revision: str) -> bytes | None:
        """Return a small file that a revision holds, None where it holds none."""
        git = self.repository.git
        entries = git.ls_tree(revision, path, recursive=False, allowed=(0, 128))
        return next(git.blobs([entries[0].oid], toml.MOST_BYTES)) if entries else None

    def directory_at(self, commit: str) -> str:
        """Return the memory directory of a commit. Raises MemtoolError where it names none."""
        data = self.stored_file(files.POINTER_NAME, commit)
        return config_file.DEFAULT_DIRECTORY if data is None else directory_named_by(data)

    @property
    def config_path(self) -> str:
        """The settings file, relative to the top."""
        return f"{self.directory}/{config_file.CONFIG_NAME}"

    @cached_property
    def settings(self) -> Config:
        """The settings of the worktree (of HEAD in a bare repository), above the user's own."""
        data = self.file(self.config_path)
        own = config_file.DEFAULTS if data is None else config_file.parse(data, self.config_path)
        of_user = self._of_user()
        return own if of_user is None else own.over(of_user)

    @property
    def own_settings(self) -> Config:
        """The user's own settings alone, whatever the project says."""
        return self.settings if self.is_in_global else self.settings.replace(given={})

    def unused(self, key: str) -> str:
        """Return why a value that the project's file gives an option is not used, if it is not."""
        if key not in self.settings.given or key not in config_file.USER_ONLY or self.is_in_global:
            return ""
        what = config_file.USER_ONLY[key]
        return f"{key} of {self.config_path} is {what}, with memtool --global config"

    def note_unused(self, key: str) -> None:
        """Note once where the project's file has a value of an option of the user alone."""
        note = self.unused(key)
        if note and note not in self.notes:
            self.notes.append(note)

    @cached_property
    def strict_settings(self) -> Config:
        """The settings by which a block is made: no checked-out branch lowers the bar.

        What bounds a block is the strictest of what the user's own settings, those of the trusted
        ref and those of the worktree say (`config.STRICT`); all else is as in `settings`.
        """
        return self.settings.bounded(self.agreed_settings)

    @property
    def agreed_settings(self) -> tuple[Config, ...]:
        """The settings of the remote's default branch, and of the trusted ref if it is another."""
        from memtool.store import provenance

        agreed = () if self._agreed is None else (self._agreed,)
        ref = self.trust_settings.text("trust.ref")
        if not ref:
            return agreed
        commit = provenance.resolve_trusted(self.repository, ref)
        return (*agreed, self._settings_at(commit, f"the trusted ref {ref}"))

    @property
    def trust_settings(self) -> Config:
        """The settings that say what is trusted: those of the remote's default branch.

        A branch must not vouch for itself by changing them. Without a remote the worktree's hold.
        """
        return self.settings if self._agreed is None else self._agreed

    @property
    def has_trusted_ref(self) -> bool:
        """Whether there is a ref whose tree is trusted."""
        return self._agreed is not None or bool(self.trust_settings.text("trust.ref"))

    @cached_property
    def trust_rules(self) -> tuple[TrustRule, ...]:
        """The rules about who must have signed what, as the trusted ref has them; often none.

        Where there is no trusted ref, none holds, and a note says so.
        """
        ref = self.trust_settings.text("trust.ref")
        held = self._agreed
        if ref:
            from memtool.store import provenance

            commit = provenance.resolve_trusted(self.repository, ref)
            held = self._settings_at(commit, f"the trusted ref {ref}")
        if held is not None:
            return held.rules
        if self.settings.rules:
            self.notes.append(
                f"the {len(self.settings.rules)} trust.rules of {self.config_path} do not hold: "
                "there is no trusted ref to read them from"
            )
        return ()

    @cached_property
    def _agreed(self) -> Config | None:
        """The settings of the remote's default branch as last fetched, None without a remote."""
        from memtool.store import provenance

        default = provenance.resolve_trusted(self.repository, "")
        return self._settings_at(default, "the remote's default branch") if default else None

    def _settings_at(self, default: str, place: str) -> Config:
        """Return the settings that a commit holds; where they cannot be read, the defaults.

        They lie where that commit itself says so: no branch moves them out of sight.
        """
        from memtool.store.provenance import file_at

        def read() -> bytes | None:
            return self.stored_file(f"{self.directory_at(default)}/{name}", default)

        name = config_file.CONFIG_NAME
        try:
            data = (
                file_at(self.repository, default, ":settings", read)
                if self._caller.is_caching(self.repository)
                else read()
            )
            return config_file.DEFAULTS if data is None else config_file.parse(data, default)
        except MemtoolError as error:
            self.notes.append(f"settings of {place} are passed over: {error}")
            return config_file.DEFAULTS

    @property
    def is_begun(self) -> bool:
        """Whether there is a memory directory."""
        return os.path.isdir(os.path.join(self.repository.top, self.directory))

    def refuse_absent(self) -> None:
        """Raise MemtoolError where the worktree has no memory directory.

        The global repository needs none: it is made when something is written.
        """
        if not self.is_begun:
            if os.path.exists(os.path.join(self.repository.git_dir, "info", "sparse-checkout")):
                return  # its files come from the index
            if self.is_global:
                note = f"{NO_GLOBAL}; {FIRST_GLOBAL}"
                self.notes += [note] if note not in self.notes else []
                return
            raise MemtoolError(
                f"there is no {self.directory} in {self.repository.top}",
                hint="memtool init makes it",
                code="no-memory",
            )

    def newer(self) -> str:
        """Return a sentence about a tree whose format is newer than what this memtool knows."""
        return (
            f"{self.directory} has format {self.settings.format}, and this memtool knows formats "
            f"up to {config_file.FORMAT}"
        )

    def refuse_newer(self) -> None:
        """Raise MemtoolError where the tree is of a newer format, which is never written."""
        if self.settings.is_newer:
            from memtool import installation

            raise MemtoolError(
                f"{self.newer()}: nothing is written", hint=installation.upgrade(), code="too-new"
            )

    def refuse_foreign(self) -> None:
        """Raise MemtoolError if the memory directory looks like another tool's."""
        refuse(self.repository.top, self.directory)


def directory_named_by(data: bytes) -> str:
    """Read the pointer file. Raises MemtoolError where it names no directory inside."""
    from memtool.memory.schema import is_inside

    named = toml.read(data, files.POINTER_NAME).get("directory")
    parts = named.rstrip("/").split("/") if isinstance(named, str) and is_inside(named) else [""]
    if any(part in ("", ".") or part.lower() == ".git" or not part.isprintable() for part in parts):
        raise MemtoolError(
            f'{files.POINTER_NAME} must say directory = "NAME", inside the repository',
            hint=f"edit {files.POINTER_NAME}",
            code="config",
        )
    return "/".join(parts)
