"""Writing: how every verb makes a memory file or changes keys of one, and commits it if asked.

The order is always the same: build the value, check it, show it (`--dry-run`) or write it whole,
then commit. A refusal at any step leaves the files as they were.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import nullcontext

from memtool.commands import auditing
from memtool.errors import MemtoolError
from memtool.gate.checks import secrets
from memtool.gate.checks.secrets import Verdicts
from memtool.memory import document, identity, schema
from memtool.memory.fields import BY_NAME
from memtool.memory.memory import FieldValue, Memory
from memtool.redaction.find import allowlist
from memtool.store import files
from memtool.store.commits import commit_files
from memtool.store.repository import Repository
from memtool.store.tree import Tree, blob_hash
from memtool.value import Value
from memtool.workspace import Workspace

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


def check(workspace: Workspace, memory: Memory, known: bytes = b"") -> bytes:
    """Return the bytes of a memory that may be written: they read back as what they are.

    `known` is the file as it stands: what secrets it holds keep nobody from archiving it.

    Raises:
        MemtoolError: it breaks the field table, holds a secret, or no reader would take the file.
    """
    categories = workspace.settings.categories
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
    read(workspace, data)
    allowed = allowlist(workspace.settings)
    secrets.refuse_secrets(data.decode(), allowed, known=known.decode(errors="replace"))
    return data


def read(workspace: Workspace, data: bytes, path: str = "") -> Memory:
    """Read the bytes of a memory. Raises MemtoolError with the first thing that is wrong."""
    try:
        return document.read(data, path, workspace.settings.categories)
    except document.Unreadable as error:
        problem = error.problems[0]
        where = f"{problem.path or 'the memory'}, line {problem.line}: "
        raise MemtoolError(where + problem.message, hint=problem.hint, code=problem.code) from None


def write_new(
    workspace: Workspace,
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
    prepare(workspace)
    if workspace.is_global:
        memory = memory.with_fields(scope="global")
    for _attempt in range(DRAWS):
        data = check(workspace, memory)
        path = f"{workspace.directory}/{identity.place(memory)}"
        try:
            _refuse_taken(workspace, memory.id)
            if not dry_run:
                files.create(workspace.repository.top, path, data)
                _note_clean(workspace, data)
        except files.Taken as taken:
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
            done = commit_files(workspace.repository, [path], subject(verb, memory), trailers)
        return Written(memory.id, path, done, data.decode(), dry_run)
    raise MemtoolError("no free id was found", hint="choose one with --id", code="id-taken")


def _note_clean(workspace: Workspace, data: bytes) -> None:
    """Let the hook know that the bytes of a memory were searched for secrets already."""
    if workspace.is_cached:
        verdicts = Verdicts(workspace.repository.cache_dir, workspace.settings)
        verdicts.add(blob_hash(workspace.repository.object_format)(data))
        verdicts.save()


def _refuse_taken(workspace: Workspace, id_: str) -> None:
    """An id may lie in another month's directory, where create-only would not see it."""
    for entry in workspace.snapshot().entries:
        if entry.path.endswith(f"/{id_}.md"):
            raise files.Taken(f"{entry.path} is already there", code="exists")


def subject(verb: str, memory: Memory) -> str:
    """Return the first line of a commit: at most 72 characters, cut between words."""
    line = f"memory: {verb} {memory.title}"
    return line if len(line) <= 72 else line[:71].rpartition(" ")[0] + " …"


def change(
    workspace: Workspace,
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
    prepare(workspace, begins=False)
    why = one_line(reason)
    # A catalog reads one memory instead of all, but may keep an index: no dry run writes that.
    tree = workspace.tree() if dry_run else workspace.catalog(exact=True)
    record = tree.find(wanted)
    if needs_head and not tree.lineage.is_head(record.id):
        raise superseded(tree, record.id, f"memtool {verb}")
    repository = workspace.repository
    with nullcontext() if dry_run else files.locked(repository.cache_dir, "write.lock"):
        before = bytes_of(repository.top, record.path)
        if before is None:
            raise MemtoolError(
                f"{record.path} is left out of this sparse checkout",
                hint=f"git sparse-checkout add {workspace.directory}",
                code="not-here",
            )
        memory = read(workspace, before, record.path)
        new = {
            key: value
            for key, value in changes(memory).items()
            if (memory.fields.get(key) or DEFAULTS.get(key)) != value
        }
        after = document.edit(before, new, record.path) if new else before
        check(workspace, read(workspace, after, record.path), before)
        shown = {
            key: (as_text(memory.fields.get(key)), as_text(value)) for key, value in new.items()
        }
        if new and not dry_run:
            with auditing.changing(workspace, verb, record.id, why):
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
    return bool(
        repository.git.run("status", "--porcelain", "-z", "--untracked-files=all", "--", path)
    )


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


def as_text(value: FieldValue | None) -> str:
    """Return a key's value on one line, empty where it is absent."""
    if isinstance(value, dict):
        return ", ".join(f"{key} {text}" for key, text in value.items())
    return ", ".join(value) if isinstance(value, tuple) else value or ""


def prepare(workspace: Workspace, *, begins: bool = True) -> None:
    """Raise MemtoolError where no memory may be written: bare, absent or somebody else's.

    An absent global repository is made for a verb that `begins` something: others find nothing.
    """
    if workspace.repository.is_bare:
        raise MemtoolError(
            "a bare repository has no work tree to write to",
            hint="run memtool in a clone or linked worktree",
            code="bare",
        )
    if workspace.is_global and not workspace.is_dry:
        from memtool.commands import founding  # once in the life of a user

        founding.found(workspace, begins=begins)
    workspace.refuse_absent()
    workspace.refuse_foreign()


def speaker(workspace: Workspace) -> str:
    """Return the source of what is said without another: the agent that said it, else the user."""
    return f"tool:{workspace.agent}" if workspace.agent else f"human:{author(workspace)}"


def author(workspace: Workspace) -> str:
    """Return the name of the person at work, as git knows it, else the account's."""
    named = workspace.env.get("GIT_AUTHOR_NAME", "").strip()
    name = named or workspace.repository.git.line("config", "user.name", allowed=(0, 1))
    return name or workspace.env.get("USER", "") or "unknown"
