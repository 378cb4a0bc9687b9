"""The one write path: validate, refuse repetitions and secrets, write, commit.

A new memory is serialised, checked and searched for secrets once, and these bytes are written. A
change replaces only the lines of the keys that change; so it is with settings and the other files
of the memory directory. With `dry_run` everything happens but the writing. A refusal at any step
leaves the files as they were.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from memtool.authoring.tree import bytes_of, is_dirty, never_committed, ready_global
from memtool.errors import MemtoolError
from memtool.gate import near_duplicates
from memtool.gate.checks import secrets
from memtool.gate.checks.schema import hidden_characters
from memtool.gate.checks.secrets import Verdicts
from memtool.gate.near_duplicates import THRESHOLD_KEY, Twin
from memtool.index import index
from memtool.memory import document, ids, schema
from memtool.memory.fields import BY_NAME
from memtool.memory.memory import Fields, FieldValue, Memory, as_text
from memtool.memory.visibility import is_alive
from memtool.redaction.find import allowlist, find, redact
from memtool.redaction.mask import Mask
from memtool.search import contradictions
from memtool.store import config as config_file
from memtool.store import files, toml, usage_log
from memtool.store.commits import commit_files, follow_head
from memtool.store.config import Scalar
from memtool.store.context import Context
from memtool.store.snapshot import blob_hash
from memtool.store.tree import Record, Tree
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal

    Repeats = Literal["write", "refuse", "strengthen", "leave"]

GLOBAL = "global"
PROPOSES = "Proposes"
"""The trailer of a commit with candidates: what they would replace if somebody confirmed it."""
DRAWS = 20
"""Ids are drawn again when one is taken, the second half of the times at random."""
DEFAULTS = {field.name: field.default for field in BY_NAME.values() if field.default}
MORE = 0.1
"""How much importance a memory gains when it is stated again; it ends at 1."""


class Written(Value):
    """A memory that was written, or with `dry_run` would be. `commit` is None without one.

    `duplicate_of` names the memory that states the same already and was strengthened instead: id,
    path and text are its own then.
    """

    id: str
    path: str
    commit: str | None
    text: str
    dry_run: bool = False
    duplicate_of: str | None = None


class WrittenTogether(Value):
    """Memories that were written at once, in the order that they were given in."""

    memories: tuple[Written, ...]
    commit: str | None
    dry_run: bool = False


class Changed(Value):
    """Keys of a memory that were changed: `changes` maps each to its old and its new text."""

    id: str
    path: str
    commit: str | None
    changes: dict[str, tuple[str, str]]
    dry_run: bool = False


class EditedFile(Value):
    """The bytes of a file of settings after it was edited; `commit` is None without one."""

    data: bytes
    changed: bool
    commit: str | None


def prepare(context: Context, *, dry_run: bool, begins: bool = True) -> None:
    """Raise MemtoolError where no memory may be written: bare, absent, another tool's, too new.

    An absent global repository is made for a verb that `begins` something; others find nothing.
    """
    context.repository.refuse_bare("run memtool in a clone or linked worktree")
    if context.is_global and not dry_run:
        ready_global(context, begins=begins)
    context.project.refuse_absent()
    context.project.refuse_foreign()
    context.project.refuse_newer()
    if not dry_run:
        files.ignore_temporaries(context.repository.common_dir)


def validated(context: Context, memory: Memory) -> bytes:
    """Return the bytes of a memory that may be written: they read back as what they are.

    Raises:
        MemtoolError: it breaks the field table, holds a secret or a character that nobody sees, or
            no reader would take the file.
    """
    if memory.text("scope") == GLOBAL and not context.is_global:
        raise MemtoolError(
            "scope: global has no effect in the file of a project",
            hint="memtool --global new, remember or supersede keeps it for all your projects",
            code="foreign-scope",
        )
    try:
        data = document.write(memory)
    except UnicodeEncodeError:
        raise MemtoolError(
            "the text is not Unicode text", hint="it holds half of a character", code="not-utf8"
        ) from None
    if len(data) > document.MAX_BYTES:
        raise MemtoolError(
            f"the memory has {len(data):,} bytes, {document.MAX_BYTES:,} are allowed",
            hint="keep the long text in a file and name it with --source file:PATH",
            code="too-large",
        )
    found = schema.problems(memory.fields, {}, "", context.settings.categories)
    if found:
        problem = found[0]
        field = BY_NAME.get(problem.message.partition(":")[0])
        hint = f"{field.name} is {field.doc}" if field is not None else problem.hint
        raise MemtoolError(problem.message, hint=hint, code=problem.code)
    read(context, data)
    reversed_ = next(filter(None, map(schema.lines_fault, memory.items("source"))), "")
    if reversed_:
        raise MemtoolError(
            f"source: {reversed_}", hint="file:PATH#L3-L9 names lines 3 to 9", code="bad-value"
        )
    hidden = next((one for one in hidden_characters(memory.body) if one[2]), None)
    if hidden is not None:
        line, name, _is_error = hidden
        raise MemtoolError(
            f"the text holds {name}, which no reader sees",
            hint=f"take the character out of line {line}",
            code="hidden-character",
        )
    secrets.refuse_secrets(data.decode(), allowlist(context.settings))
    return data


def refuse_blank(memory: Memory) -> None:
    """Raise MemtoolError where a confirmed memory says nothing that a reader would see."""
    if not memory.has_text and memory.status != "candidate":
        raise MemtoolError(
            "it has no text: headings and comments say nothing",
            hint="write what holds as plain text",
            code="empty",
        )


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
    repeats: Repeats = "write",
    has_own_id: bool = False,
    commit: bool = False,
    dry_run: bool = False,
    reason: str = "",
) -> Written:
    """Write a new memory to its place; an id that is taken is drawn again unless it is its own.

    `repeats` decides about one that states what a living memory states. With `refuse` it is an
    error, but the same words strengthen that memory; with `strengthen` nearly the same do as well;
    with `leave` only candidates are strengthened.

    Raises:
        MemtoolError: it is not valid, repeats another, its id is taken, or disk or git refuse.
    """
    prepare(context, dry_run=dry_run)
    if context.is_global:
        memory = memory.with_fields(scope="global")
    data = validated(context, memory)
    if not dry_run:  # that shows a template which an editor would fill in
        refuse_blank(memory)
    twin: Twin | None = None
    clashes: list[tuple[str, str]] = []
    if repeats != "write":
        # Its id may be taken, and is drawn again then.
        ((twin, clashes),) = _said_before(context, [_judged(context, memory, data, "")])
    if twin is not None:
        if repeats == "refuse" and (memory.supersedes or not twin.is_exact):
            raise _repetition(twin, memory, Mask(context.settings))
        if repeats == "leave" and twin.record.memory.status != "candidate":
            return left(twin.record, dry_run=dry_run)
        return strengthen(context, twin.record, memory, commit=commit, dry_run=dry_run)
    memory, path, data = _placed(context, memory, data, has_own_id=has_own_id, dry_run=dry_run)
    context.notes.extend(  # what strengthens findings reports its own
        f"it may contradict {other}: {reason}; if only the new one holds: "
        f"memtool resolve {memory.id} {other} --keep newer --why REASON"
        for other, reason in clashes
        if repeats == "refuse"
    )
    done = None
    if commit and not dry_run:
        trailers = {"Memory-Id": memory.id}
        if memory.supersedes:
            name = "Supersedes" if memory.replaces else PROPOSES
            trailers[name] = ", ".join(memory.supersedes)
        if reason:
            trailers["Reason"] = reason
        verb = "supersede" if memory.replaces else "propose" if memory.proposes else "add"
        paths = [path, *never_committed(context, memory.supersedes)]
        done = commit_files(context, paths, subject(verb, memory), trailers)
    return Written(memory.id, path, done, data.decode(), dry_run)


def _placed(
    context: Context, memory: Memory, data: bytes, *, has_own_id: bool, dry_run: bool
) -> tuple[Memory, str, bytes]:
    """Create the file of a memory whose bytes are `data`, under another id if its own is taken."""
    for attempt in range(1, DRAWS + 1):
        path = f"{context.directory}/{ids.place(memory)}"
        try:
            for entry in context.snapshot().entries:
                # An id may be taken in another month's directory, which `create` does not look at.
                if entry.path.endswith(f"/{memory.id}.md"):
                    raise files.NameTaken(f"{entry.path} is already there", code="exists")
            if not dry_run:
                files.create(context.repository.top, path, data)
                _note_clean(context, data)
        except files.NameTaken as taken:
            if has_own_id:
                raise MemtoolError(
                    f"the id {memory.id} is taken: {taken.message}",
                    hint=f"memtool show {memory.id}, or choose another id",
                    code="id-taken",
                ) from None
            # The copies of one text are told apart by number, and in the end by chance.
            salt = str(attempt) if attempt < DRAWS // 2 else context.caller.random(8).hex()
            random = context.random_for(memory.title, memory.body, salt)
            drawn = ids.make_id(memory.type, memory.timestamp, memory.title, random)
            memory = memory.with_fields(id=drawn)
            data = validated(context, memory)
        else:
            return memory, path, data
    raise MemtoolError("no free id was found", hint="choose one with --id", code="id-taken")


def draw_id(context: Context, type_: str, title: str, text: str) -> str:
    """Return the id of a memory that is written now; `text` is what sets it apart from others."""
    return ids.make_id(type_, context.clock.now, title, context.random_for(title, text))


def _note_clean(context: Context, data: bytes) -> None:
    """Let the hook know that the bytes of a memory were searched for secrets already."""
    if context.is_cached:
        verdicts = Verdicts(context.repository.cache_dir, context.settings)
        verdicts.add(blob_hash(context.repository.object_format)(data))
        verdicts.save()


def _judged(context: Context, memory: Memory, data: bytes, path: str) -> Record:
    """Return a memory that is not written yet, for its repetitions; without a path it has no id."""
    oid = blob_hash(context.repository.object_format)(data)
    return Record(memory if path else memory.with_fields(id=""), path, oid)


def _said_before(
    context: Context, judged: Sequence[Record]
) -> list[tuple[Twin | None, list[tuple[str, str]]]]:
    """Return for each memory the living one of the worktree that states the same, and clashes.

    A clash is the id of a memory that it may contradict, and a reason that quotes both statements.
    """
    if not context.repository.is_made:  # a dry run leaves the global one unmade
        return [(None, []) for _record in judged]
    near = near_duplicates.of_worktree(context.repository, context.directory, context.settings)
    categories = context.settings.categories
    threshold = context.settings.number(THRESHOLD_KEY)
    twins = near_duplicates.twins(judged, near, threshold, context.clock.now, categories)
    return [
        (
            twin,
            [
                (other.id, clash.reason)
                for other in (one.record.memory for one in similar)
                if is_alive(other, context.clock.now, categories)
                and (clash := contradictions.between(record.memory, other)) is not None
            ],
        )
        for record, twin, similar in zip(judged, twins, near.of(judged), strict=True)
    ]


def write_together(
    context: Context, memories: Sequence[Memory], *, commit: bool, dry_run: bool
) -> WrittenTogether:
    """Write new memories, in one commit if asked: all of them or none.

    None may say what another or a living memory says. A commit that is refused takes the files
    away again.

    Raises:
        MemtoolError: one is not valid, repeats another, or its id is taken; or disk or git refuse.
            Nothing was written then.
    """
    prepare(context, dry_run=dry_run)
    repository = context.repository
    taken = {entry.path.rpartition("/")[2] for entry in context.snapshot().entries}
    judged: list[Record] = []
    texts: list[bytes] = []
    for number, given in enumerate(memories, 1):
        memory = given.with_fields(scope="global") if context.is_global else given
        try:
            data = validated(context, memory)
            refuse_blank(memory)
            if f"{memory.id}.md" in taken:
                raise MemtoolError(
                    f"the id {memory.id} is taken", hint="choose another id", code="id-taken"
                )
        except MemtoolError as error:
            raise numbered(error, number) from None
        taken.add(f"{memory.id}.md")
        path = f"{context.directory}/{ids.place(memory)}"
        judged.append(_judged(context, memory, data, path))
        texts.append(data)
    _refuse_repetitions(context, judged)
    items = [(record.path, data) for record, data in zip(judged, texts, strict=True)]
    done = None
    if items and not dry_run:
        files.create_all(repository.top, items)
        for data in texts:
            _note_clean(context, data)
        done = _committed_together(context, judged) if commit else None
    written = tuple(
        Written(record.id, path, done, data.decode(), dry_run)
        for record, (path, data) in zip(judged, items, strict=True)
    )
    return WrittenTogether(written, done, dry_run)


def numbered(error: MemtoolError, number: int) -> MemtoolError:
    """Return an error with the number of the memory that it is about, from 1."""
    error.message = f"memory {number}: {error.message}; nothing is written"
    return error


def _refuse_repetitions(context: Context, judged: Sequence[Record]) -> None:
    """Raise MemtoolError where one of some memories says what another says; note clashes."""
    categories = context.settings.categories
    threshold = context.settings.number(THRESHOLD_KEY)
    inner = near_duplicates.Neighbours(judged)
    own = near_duplicates.twins(judged, inner, threshold, context.clock.now, categories)
    numbers = {record.id: number for number, record in enumerate(judged, 1)}
    before = _said_before(context, judged)
    for record, twin, (older, clashes) in zip(judged, own, before, strict=True):
        number = numbers[record.id]
        if older is not None:
            raise numbered(_repetition(older, record.memory, Mask(context.settings)), number)
        if twin is not None and numbers[twin.record.id] < number:
            raise numbered(
                MemtoolError(
                    f"this says what memory {numbers[twin.record.id]} says",
                    hint="give one of them",
                    code="duplicate",
                ),
                number,
            )
        context.notes.extend(
            f"{record.id} may contradict {other}: {reason}" for other, reason in clashes
        )


def _committed_together(context: Context, judged: Sequence[Record]) -> str | None:
    """Commit new memories; where that is refused, take their files away again."""
    paths = [record.path for record in judged]
    trailers = {"Memory-Id": ", ".join(record.id for record in judged)}
    older = [id_ for record in judged for id_ in record.memory.replaces]
    if older:
        trailers["Supersedes"] = ", ".join(dict.fromkeys(older))
    line = subject("add", judged[0].memory) if len(judged) == 1 else f"memory: add {len(judged)}"
    try:
        return commit_files(context, paths, line, trailers)
    except MemtoolError as error:
        if error.code != "index-behind":  # then the commit is made
            left = files.take_back(context.repository.top, paths)
            error.message = f"none of {len(paths)} is written: {error.message.partition(': ')[2]}"
            error.hint = "correct what git says, and write them again"
            if left:
                error.message = error.message.replace("none", f"none but {', '.join(left)}", 1)
        raise


def _repetition(twin: Twin, memory: Memory, mask: Mask) -> MemtoolError:
    """Return why a memory is not written, and what to do instead."""
    other = twin.record
    hint = (
        f"add --supersedes {other.id}"
        if memory.supersedes
        else f'memtool supersede {other.id} "{memory.title}"'
    )
    if not twin.is_exact:
        hint += f"; if both are meant, memtool new with --set related_to={other.id}"
    return MemtoolError(
        f"this says {twin.how} {other.id}, {mask.line(other.memory.title)!r}",
        hint=hint,
        code="duplicate",
    )


def left(record: Record, *, dry_run: bool) -> Written:
    """Return the answer for a memory that says it already and is not changed."""
    text = document.write(record.memory).decode()
    return Written(record.id, record.path, None, text, dry_run, record.id)


def strengthen(
    context: Context, record: Record, again: Memory, *, commit: bool = False, dry_run: bool = False
) -> Written:
    """Raise the importance of a memory that is said again instead of writing its words again.

    A candidate also gets the sources of what says so, and its date where that is later: nobody has
    vouched for a claim yet. Raises MemtoolError as `change` does.
    """
    after = f"{min(1.0, round(record.memory.importance + MORE, 4)):g}"

    def stronger(known: Memory) -> Fields:
        found: Fields = {} if known.importance >= 1.0 else {"importance": after}
        if known.status != "candidate":
            return found
        sources = tuple(dict.fromkeys((*known.items("source"), *again.items("source"))))
        if len(sources) <= schema.MOST_SOURCES:
            found["source"] = sources
        if again.timestamp > known.timestamp:
            found["timestamp"] = again.text("timestamp")
        return found

    changed = change(context, record.id, stronger, "strengthen", commit=commit, dry_run=dry_run)
    data = bytes_of(context.repository.top, changed.path) or b""
    text = data
    if dry_run and changed.changes:
        new = {key: stronger(record.memory)[key] for key in changed.changes}
        text = document.edit(data, new, changed.path)
    would = "would be" if dry_run else "is now"
    context.notes.append(
        f"{record.id} says this already; its importance {would} {after}"
        if "importance" in changed.changes
        else f"{record.id} says this already, and no importance is greater than its own"
    )
    return Written(record.id, changed.path, changed.commit, text.decode(), dry_run, record.id)


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
    trailers: Mapping[str, str] | None = None,
) -> Changed:
    """Change keys of a memory in place; `changes` maps the memory to the new values.

    With `commit` a change that was made before and is not committed yet goes in as well.
    `trailers` stand in its message beside the id and the reason.

    Raises:
        MemtoolError: the id is not known, it is superseded where a head is needed, the result
            would not be valid, or disk or git refuse.
    """
    prepare(context, begins=False, dry_run=dry_run)
    why = one_line(context, reason)
    tree = current(context, dry_run=dry_run)
    record = tree.find(wanted)
    if needs_head and not tree.lineage.is_head(record.id):
        raise superseded(tree, record.id, f"memtool {verb}")
    repository = context.repository
    with files.locked(repository.cache_dir, "write.lock", is_needed=not dry_run):
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
        after = before
        if new:
            after = document.edit(before, new, record.path)
            read(context, after, record.path)
            # A secret that the file holds already keeps nobody from archiving it.
            known = before.decode(errors="replace")
            secrets.refuse_secrets(after.decode(), allowlist(context.settings), known=known)
        shown = {
            key: (as_text(memory.fields.get(key)), as_text(value)) for key, value in new.items()
        }
        if new and not dry_run:
            with usage_log.changing(context, verb, record.id, why):
                files.replace(repository.top, record.path, after, expected=before)
    done = None
    if commit and not dry_run and (new or is_dirty(repository, record.path)):
        given = {"Memory-Id": record.id, **(trailers or {})} | ({"Reason": why} if why else {})
        done = _committed(context, record.path, subject(verb, memory), given)
    return Changed(record.id, record.path, done, shown, dry_run)


def change_all(
    context: Context,
    wanted: Sequence[str],
    changes: Callable[[Memory], Mapping[str, FieldValue | None]],
    verb: str,
    *,
    dry_run: bool = False,
    reason: str = "",
) -> list[Changed]:
    """Change keys of several memories in place: all of them or none.

    Raises:
        MemtoolError: as `change` does; what was changed before is changed back, unless the message
            says that it stays.
    """
    planned = [change(context, id_, changes, verb, dry_run=True, reason=reason) for id_ in wanted]
    if dry_run:
        return planned
    olds: dict[str, dict[str, FieldValue | None]] = {}

    def noted(memory: Memory) -> Mapping[str, FieldValue | None]:
        new = changes(memory)
        olds[memory.id] = {key: memory.fields.get(key) for key in new}
        return new

    def as_before(memory: Memory) -> Mapping[str, FieldValue | None]:
        old = olds[memory.id]
        return {key: value for key, value in old.items() if memory.fields.get(key) != value}

    try:
        return [change(context, id_, noted, verb, reason=reason) for id_ in wanted]
    except MemtoolError as error:
        stuck = []
        for id_ in list(olds):
            try:
                change(context, id_, as_before, "restore")
            except MemtoolError:
                stuck.append(id_)
        raise files.partly(error, stuck) from None


def _committed(context: Context, path: str, line: str, trailers: Mapping[str, str]) -> str | None:
    """Commit one changed file, and return the commit that holds the change."""
    repository = context.repository
    try:
        return commit_files(context, [path], line, trailers)
    except MemtoolError:
        if repository.git.names("diff", "--name-only", "-z", "HEAD", "--", path):
            raise
    # Another process has changed the same file at the same time, and committed both changes. Git
    # reads a file twice to commit it, for its index and for the commit, and may have met one
    # change first and then both: its index would undo the second with the next commit.
    if is_dirty(repository, path):
        follow_head(repository, [path])
    return repository.git.line("log", "-1", "--format=%H", "--", path)


def edit_file(
    context: Context,
    path: str,
    edit: Callable[[bytes], bytes],
    line: str,
    *,
    commit: bool,
    dry_run: bool,
) -> EditedFile:
    """Write what `edit` makes of a file, of no bytes where there is none, and commit it if asked.

    With `commit` a change that was made before and is not committed yet goes in as well.

    Raises:
        MemtoolError: nothing may be written here, or `edit`, disk or git refuse.
    """
    prepare(context, dry_run=dry_run)
    repository = context.repository
    with files.locked(repository.cache_dir, "write.lock", is_needed=not dry_run):
        before = bytes_of(repository.top, path)
        after = edit(before or b"")
        was, is_now = ((data or b"").decode(errors="replace") for data in (before, after))
        secrets.refuse_secrets(is_now, allowlist(context.settings), known=was, name="the file")
        changed = after != (before or b"")
        if changed and not dry_run:
            files.replace(repository.top, path, after, expected=before)
    done = None
    if commit and not dry_run and (changed or is_dirty(repository, path)):
        done = commit_files(context, [path], line[:72], {})
    return EditedFile(after, changed, done)


def set_option(
    context: Context,
    key: str,
    value: Scalar | tuple[str, ...] | None,
    *,
    commit: bool,
    dry_run: bool,
) -> EditedFile:
    """Set a key of the settings file, or remove it where the value is None."""
    path = context.project.config_path

    def edited(before: bytes) -> bytes:
        toml.read(before, path)  # a broken file is reported, and left alone
        after = toml.set_key(before.decode(), key, value, config_file.BY_CATEGORY).encode()
        config_file.parse(after, path)
        return after

    return edit_file(context, path, edited, f"memory: set {key}", commit=commit, dry_run=dry_run)


def subject(verb: str, memory: Memory) -> str:
    """Return the first line of a commit: at most 72 characters, cut between words.

    A secret that an old title holds does not get into a message.
    """
    line = redact(f"memory: {verb} {memory.title}", find(f"memory: {verb} {memory.title}"))
    return line if len(line) <= 72 else line[:71].rpartition(" ")[0] + " …"


def current(context: Context, *, dry_run: bool) -> Tree:
    """Return the memories of the worktree as they are now.

    A catalog reads one memory instead of all, but may keep an index, which no dry run writes.
    """
    return context.tree() if dry_run else index.open(context, exact=True)


def replaceable(tree: Tree, wanted: Sequence[str]) -> tuple[str, ...]:
    """Return the full ids of memories that may be superseded: they exist and are heads.

    Raises:
        MemtoolError: one is not there, is deleted, or something superseded it already.
    """
    found = []
    for name in wanted:
        record = tree.find(name)
        refuse_deleted(record.memory)
        if not tree.lineage.is_head(record.id):
            raise superseded(tree, record.id, "memtool supersede")
        found.append(record.id)
    return tuple(dict.fromkeys(found))


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


def one_line(context: Context, reason: str) -> str:
    """Return a reason, which goes into a file or a commit message, on one line.

    Raises:
        MemtoolError: it holds what no line may, or a secret.
    """
    line = " ".join(reason.split())
    if not schema.is_line(line):
        raise MemtoolError(
            "the reason holds hidden characters or is over 500 characters long",
            hint='--why "one line of text"',
        )
    if line:
        secrets.refuse_secrets(line, allowlist(context.settings), name="the reason")
    return line


def speaker(context: Context) -> str:
    """Return the source of a memory that names none: the agent that writes it, else the user."""
    return f"tool:{context.caller.agent}" if context.caller.agent else f"human:{author(context)}"


def author(context: Context) -> str:
    """Return the name of the person at work, as git knows it, else the account's."""
    named = context.caller.env.get("GIT_AUTHOR_NAME", "").strip()
    name = named or context.repository.git.line("config", "user.name", allowed=(0, 1))
    return name or context.caller.env.get("USER", "") or "unknown"
