"""The one write path: validate, refuse duplicates and secrets, write, commit.

The order is always the same: build the value, check it, show it (`--dry-run`) or write it whole,
then commit. A refusal at any step leaves the files as they were.

It is made complete in a directory beside its place, with its first commit, and then renamed: who
looks sees all of it or nothing, and of two processes that found it at once one is the first.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Mapping
from contextlib import nullcontext

from memtool.commands import init
from memtool.errors import MemtoolError
from memtool.gate import near_duplicates
from memtool.gate.checks import secrets
from memtool.gate.checks.secrets import Verdicts
from memtool.gate.near_duplicates import THRESHOLD_KEY, Twin
from memtool.index import index
from memtool.memory import document, ids, schema
from memtool.memory.fields import BY_NAME
from memtool.memory.memory import Fields, FieldValue, Memory, as_text
from memtool.redaction.find import allowlist
from memtool.store import files, usage_log, user_repository
from memtool.store.commits import commit_files
from memtool.store.context import Context
from memtool.store.git import Git, GitError
from memtool.store.repository import GLOBAL_VARIABLE, Repository, discover, is_global_made
from memtool.store.tree import Record, Tree, blob_hash
from memtool.value import Value

DRAWS = 20
"""Ids are drawn again when one is taken; twenty times never happens with 2^20 suffixes."""


DEFAULTS = {field.name: field.default for field in BY_NAME.values() if field.default}


class Written(Value):
    """A memory that was written, or with `dry_run` would be. `commit` is None without one.

    `duplicate_of` names the memory that says the same already and was strengthened instead: id,
    path and text are its own then.
    """

    id: str
    path: str
    commit: str | None
    text: str
    dry_run: bool = False
    duplicate_of: str | None = None


class Changed(Value):
    """Keys of a memory that were changed: `changes` maps each to its old and its new text."""

    id: str
    path: str
    commit: str | None
    changes: dict[str, tuple[str, str]]
    dry_run: bool = False


def render_written(written: Written) -> str:
    """Return the path, after the whole text where nothing was written."""
    return f"{written.text}\n{written.path}" if written.dry_run else written.path


def render_changed(changed: Changed) -> str:
    """Return one line per changed key, then the path."""
    rows = [f"{key}: {old or '-'} -> {new or '-'}" for key, (old, new) in changed.changes.items()]
    if not rows:
        rows = [f"{changed.id} was so already"]
    elif changed.dry_run:
        rows.insert(0, "would change:")
    return "\n".join([*rows, changed.path])


def check(context: Context, memory: Memory, known: bytes = b"") -> bytes:
    """Return the bytes of a memory that may be written: they read back as what they are.

    `known` is the file as it stands: what secrets it holds keep nobody from archiving it.

    Raises:
        MemtoolError: it breaks the field table, holds a secret, or no reader would take the file.
    """
    categories = context.settings.categories
    try:
        data = document.write(memory)
    except UnicodeEncodeError:
        raise MemtoolError("the text is not Unicode text", code="not-utf8") from None
    if len(data) > document.MAX_BYTES:
        raise MemtoolError(
            f"the memory has {len(data):,} bytes, {document.MAX_BYTES:,} are allowed",
            hint="keep the long text in a file and name it with --source file:PATH",
            code="too-large",
        )
    found = schema.problems(memory.fields, {}, "", categories)
    if found:
        problem = found[0]
        field = BY_NAME.get(problem.message.partition(":")[0])
        hint = f"{field.name} is {field.doc}" if field is not None else problem.hint
        raise MemtoolError(problem.message, hint=hint, code=problem.code)
    read(context, data)
    allowed = allowlist(context.settings)
    secrets.refuse_secrets(data.decode(), allowed, known=known.decode(errors="replace"))
    return data


def read(context: Context, data: bytes, path: str = "") -> Memory:
    """Read the bytes of a memory. Raises MemtoolError with the first thing that is wrong."""
    try:
        return document.read(data, path, context.settings.categories)
    except document.Unreadable as error:
        problem = error.problems[0]
        where = f"{problem.path or 'the memory'}, line {problem.line}: "
        raise MemtoolError(where + problem.message, hint=problem.hint, code=problem.code) from None


def write_new(
    context: Context,
    memory: Memory,
    *,
    draw: Callable[[], str] | None = None,
    commit: bool = False,
    dry_run: bool = False,
    reason: str = "",
) -> Written:
    """Write a new memory to its place. `draw` gives another id where the first one is taken.

    Raises:
        MemtoolError: it is not valid, its id is taken, or disk or git refuse.
    """
    prepare(context)
    if context.is_global:
        memory = memory.with_fields(scope="global")
    for _attempt in range(DRAWS):
        data = check(context, memory)
        path = f"{context.directory}/{ids.place(memory)}"
        try:
            _refuse_taken(context, memory.id)
            if not dry_run:
                files.create(context.repository.top, path, data)
                _note_clean(context, data)
        except files.NameTaken as taken:
            if draw is None:
                raise MemtoolError(
                    f"the id {memory.id} is taken: {taken.message}",
                    hint=f"memtool show {memory.id}, or choose another id",
                    code="id-taken",
                ) from None
            memory = memory.with_fields(id=draw())
            continue
        done = None
        if commit and not dry_run:
            trailers = {"Memory-Id": memory.id}
            if memory.supersedes:
                trailers["Supersedes"] = ", ".join(memory.supersedes)
            if reason:
                trailers["Reason"] = reason
            verb = "supersede" if memory.supersedes else "add"
            done = commit_files(context.repository, [path], subject(verb, memory), trailers)
        return Written(memory.id, path, done, data.decode(), dry_run)
    raise MemtoolError("no free id was found", hint="choose one with --id", code="id-taken")


def _note_clean(context: Context, data: bytes) -> None:
    """Let the hook know that the bytes of a memory were searched for secrets already."""
    if context.is_cached:
        verdicts = Verdicts(context.repository.cache_dir, context.settings)
        verdicts.add(blob_hash(context.repository.object_format)(data))
        verdicts.save()


def _refuse_taken(context: Context, id_: str) -> None:
    """An id may lie in another month's directory, where create-only would not see it."""
    for entry in context.snapshot().entries:
        if entry.path.endswith(f"/{id_}.md"):
            raise files.NameTaken(f"{entry.path} is already there", code="exists")


def subject(verb: str, memory: Memory) -> str:
    """Return the first line of a commit: at most 72 characters, cut between words."""
    line = f"memory: {verb} {memory.title}"
    return line if len(line) <= 72 else line[:71].rpartition(" ")[0] + " …"


def change(
    context: Context,
    wanted: str,
    changes: Callable[[Memory], Mapping[str, FieldValue | None]],
    verb: str,
    *,
    commit: bool = False,
    dry_run: bool = False,
    reason: str = "",
    needs_head: bool = False,
) -> Changed:
    """Change keys of a memory in place; `changes` gets it as it stands and says the new values.

    With `commit` a change that was made before and is not committed yet goes in as well.

    Raises:
        MemtoolError: the id is not known, it is superseded where a head is needed, the result
            would not be valid, or disk or git refuse.
    """
    prepare(context, begins=False)
    why = one_line(reason)
    # A catalog reads one memory instead of all, but may keep an index: no dry run writes that.
    tree = context.tree() if dry_run else index.open(context, exact=True)
    record = tree.find(wanted)
    if needs_head and not tree.lineage.is_head(record.id):
        raise superseded(tree, record.id, f"memtool {verb}")
    repository = context.repository
    with nullcontext() if dry_run else files.locked(repository.cache_dir, "write.lock"):
        before = bytes_of(repository.top, record.path)
        if before is None:
            raise MemtoolError(
                f"{record.path} is left out of this sparse checkout",
                hint=f"git sparse-checkout add {context.directory}",
                code="not-here",
            )
        memory = read(context, before, record.path)
        new = {
            key: value
            for key, value in changes(memory).items()
            if (memory.fields.get(key) or DEFAULTS.get(key)) != value
        }
        after = document.edit(before, new, record.path) if new else before
        check(context, read(context, after, record.path), before)
        shown = {
            key: (as_text(memory.fields.get(key)), as_text(value)) for key, value in new.items()
        }
        if new and not dry_run:
            with usage_log.changing(context, verb, record.id, why):
                files.replace(repository.top, record.path, after, expected=before)
    done = None
    if commit and not dry_run and (new or is_dirty(repository, record.path)):
        trailers = {"Memory-Id": record.id} | ({"Reason": why} if why else {})
        done = _committed(repository, record.path, subject(verb, memory), trailers)
    return Changed(record.id, record.path, done, shown, dry_run)


def _committed(repository: Repository, path: str, line: str, trailers: Mapping[str, str]) -> str:
    """Commit one changed file, and return the commit that holds the change."""
    try:
        return commit_files(repository, [path], line, trailers)
    except MemtoolError:
        if is_dirty(repository, path):
            raise
    # Another process has changed the same file at the same time, and committed both changes.
    return repository.git.line("log", "-1", "--format=%H", "--", path)


def superseded(tree: Tree, id_: str, command: str) -> MemtoolError:
    """Return the refusal of what only a head may get; the hint says it of the head."""
    newer = tree.lineage.superseded_by[id_]
    heads = tree.lineage.heads_of(id_) or newer
    return MemtoolError(
        f"{id_} is superseded already, by {', '.join(newer)}",
        hint=" or ".join(f"{command} {head}" for head in heads),
        code="not-a-head",
    )


def refuse_deleted(memory: Memory) -> None:
    """Raise MemtoolError where a memory is softly deleted: it must be restored first."""
    if memory.status == "deleted":
        raise MemtoolError(
            f"{memory.id} is deleted", hint=f"memtool restore {memory.id}", code="deleted"
        )


def is_dirty(repository: Repository, path: str) -> bool:
    """Tell whether a file differs from what HEAD holds, or is not tracked."""
    return bool(repository.git.status(path))


def bytes_of(top: str, path: str) -> bytes | None:
    """Return the bytes of a file of the worktree, None where there is none.

    Raises:
        MemtoolError: something is there that cannot be read.
    """
    try:
        return files.read_regular(os.path.join(top, path))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise MemtoolError(
            f"{path} cannot be read: {os.strerror(error.errno or 0)}",
            hint="move what is there out of the way",
            code="disk",
        ) from None


def one_line(reason: str) -> str:
    """Return a reason on one line. Raises MemtoolError where it holds what no line may."""
    line = " ".join(reason.split())
    if not schema.is_line(line):
        raise MemtoolError(
            "the reason holds hidden characters or is over 500 characters long",
            hint='--why "one line of text"',
        )
    return line


def prepare(context: Context, *, begins: bool = True) -> None:
    """Raise MemtoolError where no memory may be written: bare, absent or somebody else's.

    An absent global repository is made for a verb that `begins` something: others find nothing.
    """
    if context.repository.is_bare:
        raise MemtoolError(
            "a bare repository has no work tree to write to",
            hint="run memtool in a clone or linked worktree",
            code="bare",
        )
    if context.is_global and not context.is_dry:
        found(context, begins=begins)
    context.refuse_absent()
    context.refuse_foreign()


def speaker(context: Context) -> str:
    """Return the source of what is said without another: the agent that said it, else the user."""
    return f"tool:{context.agent}" if context.agent else f"human:{author(context)}"


def author(context: Context) -> str:
    """Return the name of the person at work, as git knows it, else the account's."""
    named = context.env.get("GIT_AUTHOR_NAME", "").strip()
    name = named or context.repository.git.line("config", "user.name", allowed=(0, 1))
    return name or context.env.get("USER", "") or "unknown"


MORE = 0.1
"""How much importance a memory gains when it is said again; it ends at 1."""


def twin_of(context: Context, memory: Memory, *, dry_run: bool) -> Twin | None:
    """Return the living memory of the worktree that says the same, None where there is none."""
    categories = context.settings.categories
    near = near_duplicates.of_worktree(
        context.repository, context.directory, categories, is_kept=not dry_run
    )
    threshold = context.settings.number(THRESHOLD_KEY)
    draft = Record(
        memory.with_fields(id=""), "", ""
    )  # its id may be taken, and is drawn again then
    (found,) = near_duplicates.twins([draft], near, threshold, context.now, categories)
    return found


def strengthen(context: Context, twin: Twin, *, commit: bool, dry_run: bool) -> Written:
    """Raise the importance of an exact twin instead of writing its words again."""
    record = twin.record
    before = record.memory.importance
    after = f"{min(1.0, round(before + MORE, 4)):g}"

    def stronger(memory: Memory) -> Fields:
        return {} if memory.importance >= 1.0 else {"importance": after}

    changed = change(context, record.id, stronger, "strengthen", commit=commit, dry_run=dry_run)
    data = bytes_of(context.repository.top, changed.path) or b""
    text = document.edit(data, stronger(record.memory), changed.path) if dry_run else data
    would = "would be" if dry_run else "is now"
    context.notes.append(
        f"{record.id} says this already; its importance {would} {after}"
        if changed.changes
        else f"{record.id} says this already, and no importance is greater than its own"
    )
    return Written(record.id, changed.path, changed.commit, text.decode(), dry_run, record.id)


def refusal(twin: Twin, memory: Memory) -> MemtoolError:
    """Return why a memory is not written, and what to do instead."""
    other = twin.record
    how = "the same as" if twin.is_exact else f"nearly ({twin.likeness:.2f}) the same as"
    hint = (
        f"add --supersedes {other.id}"
        if memory.supersedes
        else f'memtool supersede {other.id} "{memory.title}"'
    )
    if not twin.is_exact:
        hint += f"; if both are meant, memtool new with --set related_to={other.id}"
    return MemtoolError(
        f"this says {how} {other.id}, {other.memory.title!r}", hint=hint, code="duplicate"
    )


BRANCH = "main"
_PREFIX = ".memtool-"
"""Begins the name of what is being made, before the number of the process that makes it."""


def found(context: Context, *, begins: bool) -> None:
    """Make sure that the global repository can be written to: it is there, and on a branch.

    One that is absent stays so unless the verb `begins` something.

    Raises:
        MemtoolError: it cannot be made, and nothing is left of it; or it has no branch.
    """
    if not context.repository.is_made:
        if begins:
            make(context)
        return
    git = context.repository.git
    if not git.run("symbolic-ref", "--quiet", "HEAD", allowed=(0, 1)):
        top = context.repository.top
        raise MemtoolError(
            f"the global repository {top} has no branch checked out, so a commit would be lost",
            hint=f"git -C {top} switch {BRANCH}",
            code="detached",
        )
    if begins and not context.is_begun:
        init.init(context, commit=True)


def make(context: Context) -> None:
    """Make the global repository, and go on in it.

    Raises:
        MemtoolError: its place is within another repository, not writable, or git does not know
            who commits.
    """
    place = context.repository.top
    parent = os.path.dirname(place)
    _refuse_within(context, place)
    try:
        os.makedirs(parent, mode=0o700, exist_ok=True)
        _sweep(parent)
        temp = tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-", dir=parent)
        try:
            _fill(context, temp)
            _move(temp, place)
        finally:
            shutil.rmtree(temp, ignore_errors=True)
    except OSError as error:
        raise MemtoolError(
            f"the global repository {place} cannot be made: {os.strerror(error.errno or 0)}",
            hint=f"git init {place}, or name another directory with {GLOBAL_VARIABLE}",
            code="global",
        ) from None
    context.enter(user_repository.repository(context.env))
    context.notes.append(f"the global repository is {place}")


def _fill(context: Context, directory: str) -> None:
    git = Git(directory, context.env)
    git.run("init", "--quiet", f"--initial-branch={BRANCH}")
    try:
        for name in ("GIT_AUTHOR_IDENT", "GIT_COMMITTER_IDENT"):
            git.run("var", name)
    except GitError:
        raise MemtoolError(
            "git does not know who you are, and global memories are committed; nothing was written",
            hint="git config --global user.name NAME; git config --global user.email ADDRESS",
            code="no-identity",
        ) from None
    init.init(Context(discover(directory, context.env), context.env, directory), commit=True)


def _move(made: str, place: str) -> None:
    """Put what was made into its place, unless another process was faster."""
    try:
        os.rename(made, place)
    except OSError:
        if not is_global_made(place):
            raise


def _sweep(parent: str) -> None:
    """Remove what a process left behind that was killed while it made the repository."""
    for name in os.listdir(parent):
        number = name.removeprefix(_PREFIX).partition("-")[0]
        if name.startswith(_PREFIX) and number.isdecimal() and not _runs(int(number)):
            shutil.rmtree(os.path.join(parent, name), ignore_errors=True)


def _runs(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):  # somebody else's, or no number of a process
        return True
    return True


def _refuse_within(context: Context, place: str) -> None:
    """Raise MemtoolError where another repository would take this one for a part of itself."""
    above = os.path.dirname(place)  # another process may just have made what is in its place
    while not os.path.isdir(above):
        above = os.path.dirname(above)
    try:
        around = discover(above, context.env)
    except MemtoolError as error:
        if error.code == "no-repository":
            return
        raise
    if not around.is_bare:
        plain = {"GIT_LITERAL_PATHSPECS": "0"}  # paths are literal there, and git says no to this
        if around.git.run("check-ignore", "--", place, allowed=(0, 1), env=plain):
            return
    raise MemtoolError(
        f"{place} lies inside the repository {around.top or around.git_dir}",
        hint=f"{GLOBAL_VARIABLE} names a directory outside of every repository",
        code="global",
    )
