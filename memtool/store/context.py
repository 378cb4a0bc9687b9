"""The context of a verb: repository, settings, clock, environment, agent, notes.

Every verb takes one. It is the only value that knows the machine; the rooms below get what they
need as arguments.
"""

from __future__ import annotations

import os

from memtool.errors import MemtoolError
from memtool.memory import timestamps
from memtool.store import config as config_file
from memtool.store import files, toml
from memtool.store.config import Config
from memtool.store.repository import (
    FIRST_GLOBAL,
    NO_GLOBAL,
    Repository,
    check_choices,
    checked_out,
    discover,
    global_directory,
    global_repository,
    is_global_made,
    local_environment,
    refuse,
)
from memtool.value import cached_property

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Self

    from memtool.memory.trust import Origin
    from memtool.store.deadline import Deadline
    from memtool.store.provenance import Witness
    from memtool.store.snapshot import Record, Snapshot, Tree
    from memtool.store.trust_rules import TrustRule

GLOBAL_MEMORIES = "global memories"
"""How the note begins that those of the user are not used, and their settings neither."""
_DIGITS = 10
"""More than a number of tokens has."""


class Context:
    """A repository opened for memtool, with the environment that it may read.

    `is_global` says that it is the one of the user's global memories, which hold in all projects.
    """

    def __init__(
        self, repository: Repository, env: Mapping[str, str], cwd: str, *, is_global: bool = False
    ) -> None:
        self.repository = repository
        self.env = env
        self.cwd = cwd
        self.is_global = is_global
        self.agent = ""
        """The program that speaks for the user, where the surface knows it."""
        self.is_resident = False
        """Whether the process answers many calls, so that what is loaded once serves them all."""
        self.deadline: Deadline | None = None
        """The moment from which on nobody else is waited for, if there is one."""
        self.is_person = False
        """Whether a person reads the answer at a terminal, and no program."""
        self.is_dry = False
        """Whether the verb that runs only says what it would do."""
        self.narrowed: frozenset[str] | None = None
        """The paths of the memories that an answer is limited to until there is an index."""
        self.notes: list[str] = []
        """What the user should know apart from the answer, such as files that could not be read."""
        self.clean: frozenset[str] = frozenset()
        """Blobs that the caller has searched for secrets and found to hold none."""
        self.left_out: frozenset[str] = frozenset()
        """Paths of memories that are not to be seen in a commit."""
        self.opened: dict[str, Tree] | None = None
        """The memories of commits by their ids, and of the worktree under no name, where several
        verbs are asked about the same moment."""
        self.is_commit = False
        """Whether a commit is all there is."""
        self._drawn = 0

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
        found = Context(self.repository, {**self.env, "MEMTOOL_PERSONAL": "off"}, self.cwd)
        found.directory = self.directory_at(commit)
        data = self.stored_file(f"{found.directory}/{config_file.CONFIG_NAME}", commit)
        own = config_file.DEFAULTS if data is None else config_file.parse(data, found.config_path)
        found.settings = own.replace(given=own.given | {"trust.ref": commit})
        found.now = int(self.repository.git.line("show", "-s", "--format=%ct", commit))
        found.opened, found.is_commit, found._agreed = {}, True, None
        return found

    @cached_property
    def beside(self) -> Context | None:
        """The context of the global memories, None where there are none or this is theirs.

        One that cannot be read is passed over with a note: no project fails for it.
        """
        if self.is_global or not self.is_personal:
            return None
        place = ""
        try:
            place = global_directory(self.env)
            if not place or not is_global_made(place):
                return None
            found = Context.at_global(self.env)
            if found.repository.common_dir == self.repository.common_dir:
                return None
            _ = found.settings  # a broken file is reported here, once
        except MemtoolError as error:
            where = f" in {place}" if place else ""
            self.notes.append(f"{GLOBAL_MEMORIES}{where} are passed over: {error}")
            return None
        return found

    @property
    def is_in_global(self) -> bool:
        """Whether this is the repository of the global memories, however it was opened."""
        if self.is_global:
            return True
        try:
            place = global_directory(self.env)
        except MemtoolError:
            return False
        return bool(place) and os.path.realpath(place) == os.path.realpath(self.repository.top)

    def enter(self, repository: Repository) -> None:
        """Go on in another repository; what was read of the one before is forgotten."""
        self.repository = repository
        for name in ("directory", "settings", "strict_settings", "trust_rules", "_agreed"):
            self.__dict__.pop(name, None)

    @property
    def is_off(self) -> bool:
        """Whether hooks answer nothing and capture nothing."""
        return bool(self.env.get("MEMTOOL_OFF"))

    @property
    def is_personal(self) -> bool:
        """Whether the user's own memories and settings are used beside those of the project."""
        return self._is_on("MEMTOOL_PERSONAL", default=True)

    @property
    def is_promoting(self) -> bool:
        """Whether the user wants candidates of each session that ends."""
        wanted = bool(self.own_settings.setting("capture.promote"))
        return self.is_capturing and wanted and not self.settings.is_newer

    @property
    def is_managing(self) -> bool:
        """Whether the user wants a plan for candidates after each session that is captured."""
        wanted = bool(self.own_settings.setting("manager.enabled"))
        wanted = self._is_on("MEMTOOL_MANAGER", default=wanted)
        return self.is_capturing and wanted and not self.settings.is_newer

    def _is_on(self, variable: str, *, default: bool) -> bool:
        """Return what a variable says. Raises VariableError where it is neither on nor off."""
        check_choices(self.env, (variable,))
        return (self.env.get(variable) or ("on" if default else "off")) == "on"

    @property
    def is_capturing(self) -> bool:
        """Whether sessions are captured and promoted unasked: nobody has switched it off.

        A project may not switch on what its user has switched off.
        """
        personal = self.settings.personal.get("capture.auto", True)
        return not self.is_off and bool(personal and self.settings.setting("capture.auto"))

    @property
    def is_extracting(self) -> bool:
        """Whether sessions are read for findings: neither project nor user has switched it off."""
        personal = self.settings.personal.get("extraction.enabled", True)
        return bool(personal and self.settings.setting("extraction.enabled"))

    @property
    def budget_tokens(self) -> int | None:
        """Most tokens of a block as the environment has it, None where it says nothing."""
        given = self.env.get("MEMTOOL_BUDGET")
        if not given:
            return None
        if not (given.isascii() and given.isdigit() and len(given) < _DIGITS):
            raise MemtoolError(
                f"MEMTOOL_BUDGET is {given!r}, which is not a number of tokens",
                hint="MEMTOOL_BUDGET=1200, or unset it",
                code="bad-budget",
            )
        return int(given)

    @cached_property
    def now(self) -> int:
        """The second that counts as now."""
        given = self.env.get("MEMTOOL_NOW")
        if not given:
            import time

            return int(time.time())
        try:
            return timestamps.start(given)
        except ValueError:
            raise MemtoolError(
                f"MEMTOOL_NOW is {given!r}, which is not a moment",
                hint="MEMTOOL_NOW=2026-02-22T19:33:00Z, or unset it",
                code="bad-time",
            ) from None

    @cached_property
    def is_cached(self) -> bool:
        """Whether what is derived may be read from and written to the cache."""
        return not self.env.get("MEMTOOL_NO_CACHE") and self.repository.is_made

    def random(self, count: int) -> bytes:
        """Return random bytes; with `MEMTOOL_SEED` the same ones in every run."""
        seed = self.env.get("MEMTOOL_SEED")
        if seed is None:
            return os.urandom(count)
        import hashlib

        self._drawn += 1
        return hashlib.sha256(f"{seed}/{self._drawn}".encode()).digest()[:count]

    def random_for(self, *claim: str) -> bytes:
        """Return three bytes for the end of an id: the same whenever this claim is drawn for here.

        So a preview names the id that is written. "Here" is this machine, clone, worktree and
        branch: wherever two files could meet in a merge, the bytes are as good as random.
        """
        if "MEMTOOL_SEED" in self.env:
            return self.random(3)
        import hashlib

        repository = self.repository
        try:
            clone = os.stat(repository.common_dir)
            number = f"{clone.st_dev}/{clone.st_ino}"
        except OSError:  # a global repository that is not made yet
            number = ""
        here = (os.uname().nodename, repository.git_dir, number, checked_out(repository))
        return hashlib.sha256("\0".join((*here, *claim)).encode(errors="replace")).digest()[:3]

    def moment(self, text: str, now: int | None = None) -> int:
        """Read a moment, a date or an age such as `30d`. Raises MemtoolError where it is none."""
        try:
            return timestamps.parse_when(text, self.now if now is None else now)
        except ValueError:
            raise MemtoolError(
                f"{text!r} is not a time",
                hint="write 2026-02-22, 2026-02-22T19:33:00Z, or an age such as 30d",
                code="bad-time",
            ) from None

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
        try:
            most = toml.MOST_BYTES + 1
            return files.read_regular(os.path.join(self.repository.top, path), most)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise MemtoolError(
                f"{path} cannot be read: {files.reason(error)}",
                hint=f"make {path} a file that you may read",
                code=code,
            ) from None

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
        return own if self.beside is None else own.over(self.beside.settings)

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
                file_at(self.repository, default, ":settings", read) if self.is_cached else read()
            )
            return config_file.DEFAULTS if data is None else config_file.parse(data, default)
        except MemtoolError as error:
            self.notes.append(f"settings of {place} are passed over: {error}")
            return config_file.DEFAULTS

    def snapshot(self, at: str | None = None) -> Snapshot:
        """Return the worktree's files, or those of a revision; `:index` is git's index."""
        from memtool.store import snapshot  # a catalog lists no file where nothing changed

        return snapshot.take(self.repository, self.directory, at)

    def tree(self, at: str | None = None, as_of: str | None = None) -> Tree:
        """Read the memories of the worktree or a revision, as they stood at a moment.

        Raises:
            MemtoolError: there is no memory directory, or it belongs to another tool.
        """
        from memtool.store.snapshot import read_tree

        second = self.moment(as_of) if as_of is not None else None
        taken = self.snapshot(at)
        if at is None:
            self.refuse_absent()
        tree = read_tree(taken, self.settings.categories, second)
        if not tree.count and at is None:
            self.refuse_foreign()
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
            shown = "1 file" if count == 1 else f"{count:,} files"
            left = f", but for {shown} that it cannot read" if count else ""
            note = f"{self._newer()}: it reads this tree{left}, and writes nothing; "
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

    def moment_of(self, as_of: str | None) -> int:
        """Return the second that a reading verb looks from: `--as-of`, or now."""
        return self.now if as_of is None else self.moment(as_of)

    def witness(self, tree: Tree) -> Witness:
        """Return what git can say about the records of a tree."""
        from memtool.store.provenance import Witness

        return Witness(
            tree.snapshot,
            self.trust_settings.text("trust.ref"),
            self.trust_settings.text("trust.allowed_signers"),
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

    def _newer(self) -> str:
        return (
            f"{self.directory} has format {self.settings.format}, and this memtool knows formats "
            f"up to {config_file.FORMAT}"
        )

    def refuse_newer(self) -> None:
        """Raise MemtoolError where the tree is of a newer format, which is never written."""
        if self.settings.is_newer:
            from memtool import installation

            raise MemtoolError(
                f"{self._newer()}: nothing is written", hint=installation.upgrade(), code="too-new"
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
