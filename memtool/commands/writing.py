"""Writing: how every verb makes a memory file or changes keys of one, and commits it if asked.

The order is always the same: build the value, check it, show it (`--dry-run`) or write it whole,
then commit. A refusal at any step leaves the files as they were.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence

from memtool.errors import MemtoolError
from memtool.memory import document, identity, schema
from memtool.memory.fields import BY_NAME, LIST_KINDS, OWN_PREFIX
from memtool.memory.memory import FieldValue, Memory
from memtool.store import files
from memtool.store.commits import commit_files
from memtool.value import Value
from memtool.workspace import Workspace

DRAWS = 20
"""Ids are drawn again when one is taken; twenty times never happens with 2^20 suffixes."""


class Written(Value):
    """A memory that was written, or with `dry_run` would be. `commit` is None without one."""

    id: str
    path: str
    commit: str | None
    text: str
    dry_run: bool = False


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
    if not changed.changes:
        return f"{changed.id} was so already, nothing changed\n{changed.path}"
    rows = [f"{key}: {old or '-'} -> {new or '-'}" for key, (old, new) in changed.changes.items()]
    return "\n".join([*rows, changed.path])


def check(workspace: Workspace, memory: Memory, path: str = "") -> None:
    """Raise MemtoolError if a memory breaks the field table; the first breach is told."""
    found = schema.problems(memory.fields, {}, path, workspace.config.categories)
    if len(document.write(memory)) > document.MAX_BYTES:
        raise MemtoolError(
            f"the memory is larger than {document.MAX_BYTES:,} bytes",
            hint="keep the long text in a file and name it with --source file:PATH",
            code="too-large",
        )
    if found:
        raise MemtoolError(found[0].message, hint=found[0].hint, code=found[0].code)


def write_new(
    workspace: Workspace,
    memory: Memory,
    *,
    draw: Callable[[], str] | None = None,
    commit: bool = False,
    dry_run: bool = False,
) -> Written:
    """Write a new memory to its place. `draw` gives another id where the first one is taken.

    Raises:
        MemtoolError: it is not valid, its id is taken, or disk or git refuse.
    """
    prepare(workspace)
    for _attempt in range(DRAWS):
        path = f"{workspace.directory}/{identity.place(memory)}"
        check(workspace, memory, path)
        text = document.write(memory)
        if dry_run:
            return Written(memory.id, path, None, text.decode(), dry_run=True)
        try:
            _refuse_taken(workspace, memory.id, path)
            files.create(workspace.repository.top, path, text)
        except files.Taken:
            if draw is None:
                raise MemtoolError(
                    f"the id {memory.id} is taken",
                    hint=f"memtool show {memory.id}, or choose another --id",
                    code="id-taken",
                ) from None
            memory = memory.with_fields(id=draw())
            continue
        trailers = {"Memory-Id": memory.id}
        if memory.supersedes:
            trailers["Supersedes"] = ", ".join(memory.supersedes)
        verb = "supersede" if memory.supersedes else "add"
        done = None
        if commit:
            subject = f"memory: {verb} {memory.title}"[:72]
            done = commit_files(workspace.repository, [path], subject, trailers)
        return Written(memory.id, path, done, text.decode())
    raise MemtoolError("no free id was found", hint="choose one with --id", code="id-taken")


def _refuse_taken(workspace: Workspace, id_: str, path: str) -> None:
    """An id may lie in another month's directory, where create-only would not see it."""
    for entry in workspace.snapshot().entries:
        if entry.path.endswith(f"/{id_}.md") and entry.path != path:
            raise files.Taken(f"{entry.path} is already there", code="exists")


def change(
    workspace: Workspace,
    wanted: str,
    changes: Callable[[Memory], Mapping[str, FieldValue | None]],
    verb: str,
    *,
    commit: bool = False,
    dry_run: bool = False,
    reason: str = "",
) -> Changed:
    """Change keys of a memory in place; `changes` gets it as it stands and says the new values.

    Raises:
        MemtoolError: the id is not known, the result would not be valid, or disk or git refuse.
    """
    prepare(workspace)
    record = workspace.tree().find(wanted)
    top = workspace.repository.top
    with files.locked(workspace.repository.cache_dir, "write.lock"):
        with open(os.path.join(top, record.path), "rb") as file:
            before = file.read()
        memory = document.read(before, record.path, workspace.config.categories)
        new = {
            key: value for key, value in changes(memory).items() if memory.fields.get(key) != value
        }
        after = document.edit(before, new, record.path) if new else before
        check(workspace, document.read(after, record.path, workspace.config.categories))
        shown = {
            key: (as_text(memory.fields.get(key)), as_text(value)) for key, value in new.items()
        }
        if dry_run or not new:
            return Changed(record.id, record.path, None, shown, dry_run)
        files.replace(top, record.path, after, expected=before)
    done = None
    if commit:
        subject = f"memory: {verb} {memory.title}"[:72]
        trailers = {"Memory-Id": record.id} | ({"Reason": reason} if reason else {})
        done = commit_files(workspace.repository, [record.path], subject, trailers)
    return Changed(record.id, record.path, done, shown)


def as_text(value: FieldValue | None) -> str:
    """Return a key's value on one line, empty where it is absent."""
    if isinstance(value, dict):
        return ", ".join(f"{key} {text}" for key, text in value.items())
    return ", ".join(value) if isinstance(value, tuple) else value or ""


def prepare(workspace: Workspace) -> None:
    """Raise MemtoolError where no memory may be written: bare, absent or somebody else's."""
    if workspace.repository.is_bare:
        raise MemtoolError(
            "a bare repository has no work tree to write to",
            hint="run memtool in a clone or linked worktree",
            code="bare",
        )
    if not os.path.isdir(os.path.join(workspace.repository.top, workspace.directory)):
        raise MemtoolError(
            f"there is no {workspace.directory} in {workspace.repository.top}",
            hint="memtool init makes it",
            code="no-memory",
        )
    workspace.refuse_foreign()


def author(workspace: Workspace) -> str:
    """Return the name of the person at work, as git knows it, else the account's."""
    name = workspace.repository.git.line("config", "user.name", allowed=(0, 1))
    return name or workspace.env.get("USER", "") or "unknown"


def settings(pairs: Sequence[str]) -> dict[str, FieldValue]:
    """Read `--set KEY=VALUE`: list keys take values between commas, or several `--set`.

    Raises:
        MemtoolError: a pair has no `=`, or names a key that has its own option or no memory has.
    """
    found: dict[str, FieldValue] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        field = BY_NAME.get(key)
        if not equals:
            raise MemtoolError(f"--set {pair!r} is not KEY=VALUE", hint="--set domain=billing")
        if field is not None and field.kind == "mapping":
            raise MemtoolError(
                f"{key} is written by its verb, not by --set",
                hint="memtool confirm, memtool forget",
            )
        if field is None and not key.startswith(OWN_PREFIX):
            raise MemtoolError(
                f"no memory has the key {key!r}",
                hint=f"for a key of your own: --set {OWN_PREFIX}{pair}",
                code="unknown-key",
            )
        if field is not None and field.kind in LIST_KINDS:
            items = tuple(part.strip() for part in value.split(",") if part.strip())
            so_far = found.get(key, ())
            found[key] = (so_far if isinstance(so_far, tuple) else ()) + items
        else:
            found[key] = value
    return found
