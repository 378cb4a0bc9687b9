"""A project: its memory directory, and its settings from worktree, user and trusted ref.

Limits of a block and rules of trust also depend on the trusted ref, so that no branch can loosen
them by changing a file.
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
    find_global_directory,
    refuse_foreign_tree,
)
from memtool.value import cached_property

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from memtool.store.caller import Caller
    from memtool.store.trust_rules import TrustRule


class Project:
    """The memory directory of a repository and its settings. Files are read when needed."""

    def __init__(
        self,
        repository: Repository,
        caller: Caller,
        notes: list[str],
        read_user_settings: Callable[[], Config | None],
        *,
        is_global: bool = False,
    ) -> None:
        """Take the repository and the caller.

        Args:
            repository: the repository of the project.
            caller: has the environment that names the user's global repository.
            notes: collects notes for the user, such as settings that are not used.
            read_user_settings: returns the user's own settings, None if there are none.
            is_global: whether this is the project of the user's global memories.
        """
        self.repository = repository
        self.notes = notes
        self.is_global = is_global
        self._caller = caller
        self._read_user_settings = read_user_settings

    def at_commit(self, commit: str) -> Project:
        """Return the project of a commit alone, independent of user, refs and worktree.

        The commit is its own trusted ref. Raises MemtoolError if its settings cannot be read.
        """
        project = Project(self.repository, self._caller, self.notes, lambda: None)
        project.directory = self.read_directory_at(commit)
        data = self.read_stored_file(project.config_path, commit)
        own = config_file.DEFAULTS if data is None else config_file.parse(data, project.config_path)
        project.settings = own.replace(values=own.values | {"trust.ref": commit})
        project._default_branch_settings = None
        return project

    @property
    def is_in_global(self) -> bool:
        """Whether this is the repository of the global memories, however it was opened."""
        if self.is_global:
            return True
        try:
            place = find_global_directory(self._caller.env)
        except MemtoolError:
            return False
        return bool(place) and os.path.realpath(place) == os.path.realpath(self.repository.top)

    @cached_property
    def directory(self) -> str:
        """The memory directory, relative to the top: `.memory`, or the one in `.memtool.toml`."""
        data = self.read_file(files.POINTER_NAME)
        if data is None:
            return config_file.DEFAULT_DIRECTORY
        return parse_directory(data)

    def read_file(self, path: str, code: str = "config") -> bytes | None:
        """Read a small file of the worktree, or of HEAD in a bare repository; None if missing.

        Raises:
            MemtoolError: it cannot be read; the error has this `code`.
        """
        if self.repository.is_bare:
            return self.read_stored_file(path, "HEAD")
        hint = f"make {path} a file that you may read"
        with files.explaining_errors(f"{path} cannot be read", hint, code):
            try:
                max_bytes = toml.MAX_BYTES + 1
                return files.read_regular(os.path.join(self.repository.top, path), max_bytes)
            except (FileNotFoundError, NotADirectoryError):
                return None

    def read_stored_file(self, path: str, revision: str) -> bytes | None:
        """Read a small file of a revision; None if missing."""
        git = self.repository.git
        entries = git.ls_tree(revision, path, recursive=False, allowed=(0, 128))
        return next(git.blobs([entries[0].oid], toml.MAX_BYTES)) if entries else None

    def read_directory_at(self, commit: str) -> str:
        """Return the memory directory of a commit. Raises MemtoolError if its name is invalid."""
        data = self.read_stored_file(files.POINTER_NAME, commit)
        return config_file.DEFAULT_DIRECTORY if data is None else parse_directory(data)

    @property
    def config_path(self) -> str:
        """Path of the settings file, relative to the top."""
        return f"{self.directory}/{config_file.CONFIG_NAME}"

    @cached_property
    def settings(self) -> Config:
        """Settings of the worktree (HEAD in a bare repository), with the user's as fallback."""
        data = self.read_file(self.config_path)
        own = config_file.DEFAULTS if data is None else config_file.parse(data, self.config_path)
        user_settings = self._read_user_settings()
        self._note_old_keys(own, user_settings)
        return own if user_settings is None else own.with_user(user_settings)

    def _note_old_keys(self, own: Config, user: Config | None) -> None:
        """Add one note, once, if the files of the project and the user have old names."""
        user_file = "config.toml of your global memories"
        sentences = [
            config_file.format_old_keys(path, config.old_keys)
            for path, config in (
                (user_file if self.is_global else self.config_path, own),
                (user_file, user),
            )
            if config is not None and config.old_keys
        ]
        note = "; ".join(sentences)
        self.notes += [note] if note and note not in self.notes else []

    @property
    def user_settings(self) -> Config:
        """The user's own settings, without those of the project."""
        return self.settings if self.is_in_global else self.settings.replace(values={})

    def explain_unused(self, key: str) -> str:
        """Return why the project's value of an option is not used; empty if it is used or unset."""
        if key not in self.settings.values or key not in config_file.USER_ONLY or self.is_in_global:
            return ""
        what = config_file.USER_ONLY[key]
        return f"{key} of {self.config_path} is {what}, with memtool --global config"

    def note_unused(self, key: str) -> None:
        """Add a note, once, if the project sets an option that only the user can set."""
        note = self.explain_unused(key)
        if note and note not in self.notes:
            self.notes.append(note)

    @cached_property
    def strict_settings(self) -> Config:
        """The settings for a block, whose limits the checked-out branch cannot loosen.

        Options in `config.STRICT` have the strictest value of user, trusted ref and worktree; all
        others are as in `settings`.
        """
        return self.settings.with_strictest(self.agreed_settings)

    @property
    def agreed_settings(self) -> tuple[Config, ...]:
        """Settings of the remote's default branch, and of the trusted ref if configured."""
        from memtool.store import provenance

        configs = () if self._default_branch_settings is None else (self._default_branch_settings,)
        ref = self.trust_settings.text("trust.ref")
        if not ref:
            return configs
        commit = provenance.resolve_trusted(self.repository, ref)
        return (*configs, self._settings_at(commit, f"the trusted ref {ref}"))

    @property
    def trust_settings(self) -> Config:
        """The settings that define trust: those of the remote's default branch.

        A branch must not gain trust by changing them. Without a remote it is the worktree's.
        """
        return (
            self.settings
            if self._default_branch_settings is None
            else self._default_branch_settings
        )

    @property
    def has_trusted_ref(self) -> bool:
        """Whether there is a trusted ref."""
        return self._default_branch_settings is not None or bool(
            self.trust_settings.text("trust.ref")
        )

    @cached_property
    def trust_rules(self) -> tuple[TrustRule, ...]:
        """The trust rules of the trusted ref.

        Without a trusted ref there are none, and a note reports those that are not in effect.
        """
        ref = self.trust_settings.text("trust.ref")
        config = self._default_branch_settings
        if ref:
            from memtool.store import provenance

            commit = provenance.resolve_trusted(self.repository, ref)
            config = self._settings_at(commit, f"the trusted ref {ref}")
        if config is not None:
            return config.rules
        if self.settings.rules:
            self.notes.append(
                f"the {len(self.settings.rules)} trust.rules of {self.config_path} do not apply: "
                "there is no trusted branch to read them from"
            )
        return ()

    @cached_property
    def _default_branch_settings(self) -> Config | None:
        """The settings of the remote's default branch as last fetched; None without a remote."""
        from memtool.store import provenance

        default = provenance.resolve_trusted(self.repository, "")
        return self._settings_at(default, "the remote's default branch") if default else None

    def _settings_at(self, commit: str, place: str) -> Config:
        """Return the settings of a commit; the defaults if they cannot be read.

        The commit's own memory directory counts, so that no branch can hide them by moving it.
        """
        from memtool.store.provenance import read_cached_file

        def read() -> bytes | None:
            return self.read_stored_file(f"{self.read_directory_at(commit)}/{name}", commit)

        name = config_file.CONFIG_NAME
        try:
            data = (
                read_cached_file(self.repository, commit, ":settings", read)
                if self._caller.can_cache(self.repository)
                else read()
            )
            return config_file.DEFAULTS if data is None else config_file.parse(data, commit)
        except MemtoolError as error:
            self.notes.append(f"settings of {place} are passed over: {error}")
            return config_file.DEFAULTS

    @property
    def has_directory(self) -> bool:
        """Whether there is a memory directory."""
        return os.path.isdir(os.path.join(self.repository.top, self.directory))

    def refuse_absent(self) -> None:
        """Raise MemtoolError if the worktree has no memory directory.

        For the global repository a note is enough, since the first write creates the directory.
        """
        if not self.has_directory:
            if os.path.exists(os.path.join(self.repository.git_dir, "info", "sparse-checkout")):
                return  # a sparse checkout: files come from the index
            if self.is_global:
                note = f"{NO_GLOBAL}; {FIRST_GLOBAL}"
                self.notes += [note] if note not in self.notes else []
                return
            raise MemtoolError(
                f"no {self.directory} in {self.repository.top}",
                hint="memtool init",
                code="no-memory",
            )

    def describe_newer(self) -> str:
        """Return the sentence for a tree with a newer format than this memtool knows."""
        return (
            f"{self.directory} has format {self.settings.format}, and this memtool knows formats "
            f"up to {config_file.FORMAT}"
        )

    def refuse_newer(self) -> None:
        """Raise MemtoolError if the tree has a newer format, which must not be written."""
        if self.settings.is_newer:
            from memtool import installation

            raise MemtoolError(
                f"cannot write: {self.describe_newer()}",
                hint=installation.upgrade_command(),
                code="too-new",
            )

    def refuse_foreign(self) -> None:
        """Raise MemtoolError if the memory directory looks like another tool's."""
        refuse_foreign_tree(self.repository.top, self.directory)


def parse_directory(data: bytes) -> str:
    """Parse the pointer file. Raises MemtoolError if it names no directory in the repository."""
    from memtool.memory.schema import is_inside

    directory = toml.read(data, files.POINTER_NAME).get("directory")
    parts = (
        directory.rstrip("/").split("/")
        if isinstance(directory, str) and is_inside(directory)
        else [""]
    )
    if any(part in ("", ".") or part.lower() == ".git" or not part.isprintable() for part in parts):
        raise MemtoolError(
            f'{files.POINTER_NAME} must have directory = "NAME", inside the repository',
            hint=f"edit {files.POINTER_NAME}",
            code="config",
        )
    return "/".join(parts)
