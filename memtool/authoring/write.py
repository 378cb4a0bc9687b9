"""The one write path: validate, refuse duplicates and secrets, write, commit.

A new memory is serialised, checked and searched for secrets once, and exactly these bytes are
written. A change replaces only the lines of the changed keys, also in settings and other files of
the memory directory. With `dry_run` everything is done except the writing. If any step refuses, the
files stay unchanged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress

from memtool.authoring.tree import (
    find_dirty,
    find_never_committed,
    is_dirty,
    read_bytes,
    refuse_dirty,
    require_global,
)
from memtool.errors import MemtoolError
from memtool.gate import near_duplicates
from memtool.gate.checks import secrets
from memtool.gate.checks.schema import find_hidden_characters
from memtool.gate.checks.secrets import Verdicts
from memtool.gate.near_duplicates import THRESHOLD_KEY, Duplicate
from memtool.index import index
from memtool.memory import document, ids, schema, short_ids
from memtool.memory.changes import id_from_path
from memtool.memory.fields import BY_NAME, SETTLED
from memtool.memory.memory import Fields, FieldValue, Memory, to_text
from memtool.memory.premises import MEMORY, accept
from memtool.memory.visibility import is_alive
from memtool.redaction.find import build_allowlist, clean_text
from memtool.redaction.mask import Mask
from memtool.search import contradictions
from memtool.store import config as config_file
from memtool.store import files, sightings, toml, usage_log
from memtool.store.commits import commit_files, find_remedy, update_index_to_head
from memtool.store.config import Scalar
from memtool.store.context import Context
from memtool.store.git import MAX_PATH_ARGUMENTS
from memtool.store.messages import MEMORY_ID, PROPOSES, REASON, SUPERSEDES, name_memories
from memtool.store.provenance import resolve_trusted
from memtool.store.snapshot import make_blob_hash
from memtool.store.tree import Record, Tree
from memtool.value import Value, first_few, split_batches

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal

    Repeats = Literal["write", "refuse", "strengthen", "leave"]

GLOBAL = "global"
DRAWS = 20
"""Attempts to draw a free id; those of the second half are random."""
DEFAULTS = {field.name: field.default for field in BY_NAME.values() if field.default}
MAX_REASONS = 5
"""Memories whose reason an error gives, if several cannot be changed."""
Changes = Callable[[Memory], Mapping[str, FieldValue | None]]
"""Maps a memory to new values of its keys; None removes a key."""
IMPORTANCE_STEP = 0.1
"""Importance that a memory gains when it is stated again, up to 1."""


class WriteResult(Value):
    """A memory that was written, or with `dry_run` would be. `commit` is None without one.

    `duplicate_of` names an existing memory that states the same and was strengthened instead; then
    id, path and text are those of that memory.
    """

    id: str
    path: str
    commit: str | None
    text: str
    dry_run: bool = False
    duplicate_of: str | None = None


class WrittenTogether(Value):
    """Memories that were written together, in the order of the arguments."""

    memories: tuple[WriteResult, ...]
    commit: str | None
    dry_run: bool = False


class ChangeResult(Value):
    """Keys of a memory that were changed: `changes` maps each to its old and its new text."""

    id: str
    path: str
    commit: str | None
    changes: dict[str, tuple[str, str]]
    dry_run: bool = False


class ChangedMemories(Value):
    """Memories whose keys were changed together; `commit` is None without one.

    `id`, `path` and `changes` are those of a single memory; of several they are empty.
    """

    json_fields = "id path commit changes dry_run memories"

    memories: tuple[ChangeResult, ...]
    commit: str | None
    dry_run: bool = False

    @property
    def _single(self) -> ChangeResult | None:
        return self.memories[0] if len(self.memories) == 1 else None

    @property
    def id(self) -> str:
        return self._single.id if self._single else ""

    @property
    def path(self) -> str:
        return self._single.path if self._single else ""

    @property
    def changes(self) -> dict[str, tuple[str, str]]:
        return self._single.changes if self._single else {}


class EditedFile(Value):
    """The bytes of an edited file; `commit` is None without one."""

    data: bytes
    changed: bool
    commit: str | None


def prepare(context: Context, *, dry_run: bool, begins: bool = True) -> None:
    """Raise MemtoolError if memories cannot be written: bare, absent, another tool's, too new.

    An absent global repository is created for a verb that `begins` something.
    """
    context.repository.refuse_bare("run memtool in a clone or linked worktree")
    if context.is_global and not dry_run:
        require_global(context, begins=begins)
    context.project.refuse_absent()
    context.project.refuse_foreign()
    context.project.refuse_newer()
    if not dry_run:
        files.ignore_temporaries(context.repository.common_dir)


def validate(context: Context, memory: Memory) -> bytes:
    """Serialise a memory, and check that the bytes may be written and can be read back.

    Raises:
        MemtoolError: it breaks the field table, contains a secret or an invisible character, or
            could not be read back.
    """
    if memory.text("scope") == GLOBAL and not context.is_global:
        raise MemtoolError(
            "cannot write this: scope: global has no effect in a project",
            hint="for all your projects: memtool --global new",
            code="foreign-scope",
        )
    try:
        data = document.write(memory)
    except UnicodeEncodeError:
        raise MemtoolError(
            "the text is not valid Unicode", hint="remove the unpaired surrogate", code="not-utf8"
        ) from None
    if len(data) > document.MAX_BYTES:
        raise MemtoolError(
            f"cannot write this: it has {len(data):,} bytes, the limit is {document.MAX_BYTES:,}",
            hint="put the long text into a file, and cite it with --source file:PATH",
            code="too-large",
        )
    problems = schema.find_problems(memory.fields, {}, "", context.settings.categories)
    if problems:
        problem = problems[0]
        field = BY_NAME.get(problem.message.partition(":")[0])
        hint = f"{field.name} is {field.doc}" if field is not None else problem.hint
        raise MemtoolError(problem.message, hint=hint, code=problem.code)
    read(context, data)
    reversed_ = next(filter(None, map(schema.find_lines_fault, memory.items("source"))), "")
    if reversed_:
        raise MemtoolError(
            f"source: {reversed_}", hint="lines 3 to 9: file:PATH#L3-L9", code="bad-value"
        )
    hidden = next(
        (character for character in find_hidden_characters(memory.body) if character[2]), None
    )
    if hidden is not None:
        line, name, _is_error = hidden
        raise MemtoolError(
            f"cannot write this: the text contains an invisible character ({name})",
            hint=f"remove the character from line {line}",
            code="hidden-character",
        )
    secrets.refuse_secrets(data.decode(), build_allowlist(context.settings))
    return data


def refuse_blank(memory: Memory) -> None:
    """Raise MemtoolError if a confirmed memory has no visible text."""
    if not memory.has_text and memory.status != "candidate":
        raise MemtoolError(
            "cannot write this: it has no text besides headings and comments",
            hint="add a sentence of plain text",
            code="empty",
        )


def read(context: Context, data: bytes, path: str = "") -> Memory:
    """Parse the bytes of a memory. Raises MemtoolError with the first problem."""
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
    settles: Sequence[str] = (),
) -> WriteResult:
    """Write a new memory; if its id is taken, draw another, unless the user chose it.

    The memories with the ids `settles` accept it as a cause, in the same commit.

    `repeats` decides about a memory that repeats an active one. `write`: write it. `refuse`: raise
    an error, but exactly the same words strengthen the other memory. `strengthen`: a near-duplicate
    strengthens the other memory, too. `leave`: only a candidate is strengthened.

    Raises:
        MemtoolError: it is not valid, repeats another, its id is taken, or disk or git refuse.
    """
    prepare(context, dry_run=dry_run)
    if context.is_global:
        memory = memory.with_fields(scope="global")
    (memory,) = sightings.with_sightings(context.repository, [memory])
    data = validate(context, memory)
    if not dry_run:  # a dry run may show an empty template, which an editor would fill in
        refuse_blank(memory)
    twin: Duplicate | None = None
    clashes: list[tuple[str, str]] = []
    if repeats != "write":
        # It is compared without its id, which may be taken and drawn again.
        ((twin, clashes),) = _find_repetitions(context, [_judge(context, memory, data, "")])
    if twin is not None:
        if repeats == "refuse" and (memory.supersedes or not twin.is_exact):
            raise _repetition_error(twin, memory, Mask(context.settings))
        if repeats == "leave" and twin.record.memory.status != "candidate":
            return unwritten(twin.record, dry_run=dry_run)
        return strengthen(context, twin.record, memory, commit=commit, dry_run=dry_run)
    readings = _read_all(context, settles, is_clean=commit and not dry_run)
    memory, path, data = _place(context, memory, data, has_own_id=has_own_id, dry_run=dry_run)
    settled = [] if dry_run else _settle_all(context, readings, memory.id, path)
    context.notes.extend(  # callers that strengthen report their own
        f"it may contradict {other}: {reason}; if only the new one holds: "
        f"memtool resolve {memory.id} {other} --keep newer --reason REASON"
        for other, reason in clashes
        if repeats == "refuse"
    )
    done = None
    if commit and not dry_run:
        trailers = {MEMORY_ID: name_memories([memory.id, *settles])}
        if memory.supersedes:
            name = SUPERSEDES if memory.replaces else PROPOSES
            trailers[name] = ", ".join(memory.supersedes)
        if reason:
            trailers[REASON] = reason
        verb = "supersede" if memory.replaces else "propose" if memory.proposes else "add"
        paths = [path, *find_never_committed(context, memory.supersedes), *settled]
        done = commit_files(context, paths, summarize(verb, memory), trailers)
    return WriteResult(memory.id, path, done, data.decode(), dry_run)


def _read_all(context: Context, ids: Sequence[str], *, is_clean: bool) -> list[MemoryReading]:
    """Read memories that a new one settles.

    Raises:
        MemtoolError: one cannot be read, or with `is_clean` has changes that are not committed.
    """
    if not ids:
        return []
    tree = open_current_tree(context, dry_run=False)
    readings = [_read_record(context, tree[id_]) for id_ in ids]
    if is_clean:
        paths = [reading.record.path for reading in readings]
        refuse_dirty(context.repository, paths, "cannot settle what rests on it")
    return readings


def _settle_all(
    context: Context, readings: Sequence[MemoryReading], id_: str, path: str
) -> list[str]:
    """Let memories accept the new memory `id_`; return their paths.

    Raises:
        MemtoolError: one cannot be changed. None is then, and the new file is removed again.
    """

    def settle(memory: Memory) -> Fields:
        return {SETTLED: accept(memory, (f"{MEMORY}{id_}",))}

    if not readings:
        return []
    try:
        edits = [_plan_edit(context, reading, settle(reading.memory)) for reading in readings]
        with files.locked(context.repository.cache_dir, "write.lock"):
            _write_edits(context, edits, "settle", "")
    except BaseException:
        files.undo_create(context.repository.top, [path])
        raise
    return [edit.path for edit in edits]


def _place(
    context: Context, memory: Memory, data: bytes, *, has_own_id: bool, dry_run: bool
) -> tuple[Memory, str, bytes]:
    """Create the file of a memory with the bytes `data`, under another id if its own is taken."""
    for attempt in range(1, DRAWS + 1):
        path = f"{context.directory}/{ids.make_path(memory)}"
        try:
            # If no drawn short form is free, the id is shown with its date.
            is_short_needed = not has_own_id and attempt < DRAWS // 2
            _refuse_taken(context, memory.id, is_short_needed=is_short_needed)
            if not dry_run:
                files.create(context.repository.top, path, data)
                _note_clean(context, data)
        except files.NameTakenError as name_taken:
            if has_own_id:
                raise MemtoolError(
                    f"the id {memory.id} is taken: {name_taken.message}",
                    hint=f"memtool show {memory.id}\nor choose another id",
                    code="exists",
                ) from None
            # Copies of the same text differ by number, and in the second half at random.
            salt = str(attempt) if attempt < DRAWS // 2 else context.caller.random(8).hex()
            random = context.random_id_bytes(memory.title, memory.body, salt)
            drawn = ids.make_id(memory.type, memory.timestamp, memory.title, random)
            memory = memory.with_fields(id=drawn)
            data = validate(context, memory)
        else:
            return memory, path, data
    raise MemtoolError("cannot find a free id", hint="choose an id with --id", code="exists")


def _refuse_taken(context: Context, id_: str, *, is_short_needed: bool) -> None:
    """Raise NameTakenError if an id is taken, or if its short form is, and a free one is needed.

    The trusted branch counts as well, so that two memories share a short form only by a merge.
    """
    # `create` does not see an id that is taken in another month's directory.
    paths = {id_from_path(entry.path): entry.path for entry in context.snapshot().entries}
    if id_ in paths:
        raise files.NameTakenError(f"{paths[id_]} is already there", code="exists")
    parts = short_ids.parse(id_)
    if parts is None or not is_short_needed:
        return
    with suppress(MemtoolError):  # the settings may name a branch that is not here
        ref = context.project.trust_settings.text("trust.ref")
        if trusted := resolve_trusted(context.repository, ref):
            entries = context.snapshot(trusted).entries
            paths |= {id_from_path(entry.path): entry.path for entry in entries}
    for path in map(paths.__getitem__, short_ids.find_short(parts.short, paths)):
        raise files.NameTakenError(f"{path} is called {parts.short}", code="exists")


def draw_id(context: Context, type_: str, title: str, text: str) -> str:
    """Draw the id of a new memory; `text` distinguishes it from others with the same title."""
    return ids.make_id(type_, context.clock.now, title, context.random_id_bytes(title, text))


def _note_clean(context: Context, data: bytes) -> None:
    """Record for the hook that the bytes of a memory contain no secret."""
    if context.is_cached:
        verdicts = Verdicts(context.repository.cache_dir, context.settings)
        verdicts.add(make_blob_hash(context.repository.object_format)(data))
        verdicts.save()


def _judge(context: Context, memory: Memory, data: bytes, path: str) -> Record:
    """Build the record of an unwritten memory, to find duplicates; without a path it has no id."""
    oid = make_blob_hash(context.repository.object_format)(data)
    return Record(memory if path else memory.with_fields(id=""), path, oid)


def _find_repetitions(
    context: Context, judged: Sequence[Record]
) -> list[tuple[Duplicate | None, list[tuple[str, str]]]]:
    """Return for each memory its active duplicate in the worktree, and its clashes.

    A clash is the id of a memory that it may contradict, and a reason that quotes both statements.
    """
    if not context.repository.is_created:  # a dry run does not create the global repository
        return [(None, []) for _record in judged]
    near = near_duplicates.from_worktree(context.repository, context.directory, context.settings)
    categories = context.settings.categories
    threshold = context.settings.number(THRESHOLD_KEY)
    twins = near_duplicates.find_duplicates(judged, near, threshold, context.clock.now, categories)
    return [
        (
            twin,
            [
                (other.id, clash.reason)
                for other in (hit.record.memory for hit in similar)
                if is_alive(other, context.clock.now, categories)
                and (clash := contradictions.find_between(record.memory, other)) is not None
            ],
        )
        for record, twin, similar in zip(judged, twins, near.find_similar(judged), strict=True)
    ]


def write_together(
    context: Context, memories: Sequence[Memory], *, commit: bool, dry_run: bool
) -> WrittenTogether:
    """Write new memories, in one commit if asked: all of them or none.

    None may repeat another one or an active memory. If the commit is refused, the files are removed
    again.

    Raises:
        MemtoolError: one is not valid, repeats another, or its id is taken; or disk or git refuse.
            Then nothing was written.
    """
    prepare(context, dry_run=dry_run)
    repository = context.repository
    names = {entry.path.rpartition("/")[2] for entry in context.snapshot().entries}
    judged: list[Record] = []
    texts: list[bytes] = []
    for number, new_memory in enumerate(sightings.with_sightings(context.repository, memories), 1):
        memory = new_memory.with_fields(scope="global") if context.is_global else new_memory
        try:
            data = validate(context, memory)
            refuse_blank(memory)
            if f"{memory.id}.md" in names:
                raise MemtoolError(
                    f"the id {memory.id} is taken", hint="choose another id", code="exists"
                )
        except MemtoolError as error:
            raise with_number(error, number) from None
        names.add(f"{memory.id}.md")
        path = f"{context.directory}/{ids.make_path(memory)}"
        judged.append(_judge(context, memory, data, path))
        texts.append(data)
    _refuse_repetitions(context, judged)
    items = [(record.path, data) for record, data in zip(judged, texts, strict=True)]
    done = None
    if items and not dry_run:
        files.create_all(repository.top, items)
        for data in texts:
            _note_clean(context, data)
        done = _commit_together(context, judged) if commit else None
    written = tuple(
        WriteResult(record.id, path, done, data.decode(), dry_run)
        for record, (path, data) in zip(judged, items, strict=True)
    )
    return WrittenTogether(written, done, dry_run)


def with_number(error: MemtoolError, number: int) -> MemtoolError:
    """Add the number of the memory, from 1, to the message of an error; return the error."""
    error.message = f"memory {number}: {error.message}; nothing is written"
    return error


def _refuse_repetitions(context: Context, judged: Sequence[Record]) -> None:
    """Raise MemtoolError if a memory repeats another new or an existing one; note clashes."""
    categories = context.settings.categories
    threshold = context.settings.number(THRESHOLD_KEY)
    inner = near_duplicates.DuplicateIndex(judged)
    own = near_duplicates.find_duplicates(judged, inner, threshold, context.clock.now, categories)
    numbers = {record.id: number for number, record in enumerate(judged, 1)}
    before = _find_repetitions(context, judged)
    for record, twin, (older, clashes) in zip(judged, own, before, strict=True):
        number = numbers[record.id]
        if older is not None:
            raise with_number(
                _repetition_error(older, record.memory, Mask(context.settings)), number
            )
        if twin is not None and numbers[twin.record.id] < number:
            raise with_number(
                MemtoolError(
                    f"it says the same as memory {numbers[twin.record.id]}",
                    hint="leave out one of them",
                    code="duplicate",
                ),
                number,
            )
        context.notes.extend(
            f"{record.id} may contradict {other}: {reason}" for other, reason in clashes
        )


def _commit_together(context: Context, judged: Sequence[Record]) -> str | None:
    """Commit new memories; if that is refused, remove their files again."""
    paths = [record.path for record in judged]
    trailers = {MEMORY_ID: name_memories([record.id for record in judged])}
    older = [id_ for record in judged for id_ in record.memory.replaces]
    if older:
        trailers[SUPERSEDES] = ", ".join(dict.fromkeys(older))
    line = summarize("add", judged[0].memory) if len(judged) == 1 else f"add {len(judged)}"
    try:
        return commit_files(context, paths, line, trailers)
    except MemtoolError as error:
        if error.code != "index-behind":  # then the commit exists
            remaining = files.undo_create(context.repository.top, paths)
            error.message = f"none of {len(paths)} is written: {error.message.partition(': ')[2]}"
            remedy = find_remedy(error)
            again = "then write them again"
            error.hint = f"{remedy}\n{again}" if remedy else f"fix the error of git, {again}"
            if remaining:
                error.message = error.message.replace("none", f"none but {', '.join(remaining)}", 1)
        raise


ALIKE = 0.995
"""Likeness from which on two memories say the same to a reader."""
_REPEATS = {
    near_duplicates.PART_OF: "says this already, and more",
    near_duplicates.SAME_TITLE_AS: "has the same title",
}


def _repetition_error(twin: Duplicate, memory: Memory, mask: Mask) -> MemtoolError:
    """Build the refusal of a duplicate, with the command to use instead."""
    other = twin.record
    correct = (
        f"correct both: add --supersedes {other.id}"
        if memory.supersedes
        else f"correct it: memtool supersede {other.id} TITLE"
    )
    both = "" if twin.is_exact else f"\nkeep both: add --set related_to={other.id}"
    alike = "says nearly the same" if twin.likeness < ALIKE else "says this already"
    says = _REPEATS.get(twin.how, alike)
    return MemtoolError(
        f'cannot write this: "{mask.line(other.memory.title)}" ({other.id}) {says}',
        hint=correct + both,
        code="duplicate",
    )


def unwritten(record: Record, *, dry_run: bool) -> WriteResult:
    """Build the result for an existing memory that says the same and is not changed."""
    text = document.write(record.memory).decode()
    return WriteResult(record.id, record.path, None, text, dry_run, record.id)


def strengthen(
    context: Context, record: Record, again: Memory, *, commit: bool = False, dry_run: bool = False
) -> WriteResult:
    """Raise the importance of a memory that is stated again, instead of writing a duplicate.

    A candidate also gets the sources of the new statement, and its date if that is later. Raises
    MemtoolError as `change` does.
    """
    # Only a candidate, since no user has vouched for its claim yet.
    after = f"{min(1.0, round(record.memory.importance + IMPORTANCE_STEP, 4)):g}"

    def raise_importance(stored: Memory) -> Fields:
        updates: Fields = {} if stored.importance >= 1.0 else {"importance": after}
        if stored.status != "candidate":
            return updates
        sources = tuple(dict.fromkeys((*stored.items("source"), *again.items("source"))))
        if len(sources) <= schema.MAX_SOURCES:
            updates["source"] = sources
        if again.timestamp > stored.timestamp:
            updates["timestamp"] = again.text("timestamp")
        return updates

    changed = change(
        context, record.id, raise_importance, "strengthen", commit=commit, dry_run=dry_run
    )
    data = read_bytes(context.repository.top, changed.path) or b""
    text = data
    if dry_run and changed.changes:
        new = {key: raise_importance(record.memory)[key] for key in changed.changes}
        text = document.edit(data, new, changed.path)
    would = "would be" if dry_run else "is now"
    context.notes.append(
        f"{record.id} says this already; its importance {would} {after}"
        if "importance" in changed.changes
        else f"{record.id} says this already, and has the highest importance"
    )
    return WriteResult(record.id, changed.path, changed.commit, text.decode(), dry_run, record.id)


def change(
    context: Context,
    wanted: str,
    changes: Changes,
    verb: str,
    *,
    commit: bool = False,
    dry_run: bool = False,
    reason: str = "",
    trailers: Mapping[str, str] | None = None,
) -> ChangeResult:
    """Change keys of a memory in place, as `change_all` does for several."""
    done = change_all(
        context,
        [wanted],
        changes,
        verb,
        commit=commit,
        dry_run=dry_run,
        reason=reason,
        trailers=trailers,
    )
    return done.memories[0]


def change_all(
    context: Context,
    wanted: Iterable[str],
    changes: Changes,
    verb: str,
    *,
    commit: bool = False,
    dry_run: bool = False,
    reason: str = "",
    needs_head: bool = False,
    trailers: Mapping[str, str] | None = None,
    look: Callable[[Sequence[Memory]], None] = lambda _memories: None,
) -> ChangedMemories:
    """Change keys of memories in place, all of them or none, with `commit` in one commit.

    `changes` maps a memory to its new values, after `look` has seen all of them. Earlier
    uncommitted changes of the files are committed as well. `trailers` are added to the message,
    next to the ids and the reason.

    Raises:
        MemtoolError: an id is unknown, a memory is superseded although a head is needed, a result
            would not be valid, or disk or git refuse. Nothing is changed then, unless the message
            says so.
        PartRefusedError: some of several memories cannot be changed, so none is.
    """
    prepare(context, begins=False, dry_run=dry_run)
    why = to_one_line(context, reason)
    tree = open_current_tree(context, dry_run=dry_run)
    records = list({record.id: record for record in map(tree.find, wanted)}.values())
    repository = context.repository
    with files.locked(repository.cache_dir, "write.lock", is_needed=not dry_run):
        readings = [_read_record(context, record) for record in records]
        look([reading.memory for reading in readings])
        edits, errors = [], {}
        for reading in readings:
            try:
                if needs_head and not tree.lineage.is_head(reading.record.id):
                    raise superseded_error(tree, reading.record.id, f"memtool {verb}")
                edits.append(_plan_edit(context, reading, changes(reading.memory)))
            except MemtoolError as error:
                errors[reading.record.id] = error
        if errors:
            raise _build_refusal(verb, errors, len(records))
        if not dry_run:
            _write_edits(context, edits, verb, why)
    done: str | None = None
    committed: set[str] = set()
    if commit and not dry_run:
        committed = {edit.path for edit in edits if edit.shown}
        committed |= find_dirty(repository, [edit.path for edit in edits if not edit.shown])
    if committed:
        part = [edit for edit in edits if edit.path in committed]
        named = {MEMORY_ID: name_memories([edit.memory.id for edit in part]), **(trailers or {})}
        summary = (
            summarize(verb, part[0].memory) if len(part) == 1 else f"{verb} {len(part)} memories"
        )
        done = _commit_changes(
            context,
            [edit.path for edit in part],
            summary,
            named | ({REASON: why} if why else {}),
        )
    rows = (
        ChangeResult(
            edit.memory.id,
            edit.path,
            done if edit.path in committed else None,
            edit.shown,
            dry_run,
        )
        for edit in edits
    )
    return ChangedMemories(tuple(rows), done, dry_run)


class PartRefusedError(MemtoolError):
    """Some of several memories cannot be changed: those with `ids`, each for its reason."""

    def __init__(
        self, message: str, *, hint: str, code: str, ids: tuple[str, ...], reasons: tuple[str, ...]
    ) -> None:
        super().__init__(message, hint=hint, code=code)
        self.ids = ids
        self.reasons = reasons


def _build_refusal(verb: str, errors: Mapping[str, MemtoolError], count: int) -> MemtoolError:
    """Return the error for memories that cannot be changed; for a single memory its own."""
    first = next(iter(errors.values()))
    if count == 1:
        return first
    reasons = [
        error.message.removeprefix(f"cannot {verb}: ").removeprefix(f"cannot {verb} ")
        for error in errors.values()
    ]
    shown = first_few(reasons, MAX_REASONS, "\n  and {:,} more", "\n  ")
    return PartRefusedError(
        f"cannot {verb} {len(errors):,} of {count:,} memories, so nothing was changed:\n  {shown}",
        hint=first.hint,
        code=first.code,
        ids=tuple(errors),
        reasons=tuple(reasons),
    )


class MemoryReading(Value):
    """A memory as read from its file, which has the bytes `data`."""

    record: Record
    data: bytes
    memory: Memory


class MemoryEdit(Value):
    """A planned change of a file; `shown` has the old and new text of each changed key."""

    memory: Memory
    path: str
    before: bytes
    after: bytes
    shown: dict[str, tuple[str, str]]


def _read_record(context: Context, record: Record) -> MemoryReading:
    data = read_bytes(context.repository.top, record.path)
    if data is None:
        raise MemtoolError(
            f"{record.path} is not part of this sparse checkout",
            hint=f"git sparse-checkout add {context.directory}",
            code="not-here",
        )
    return MemoryReading(record, data, read(context, data, record.path))


def _plan_edit(
    context: Context, reading: MemoryReading, values: Mapping[str, FieldValue | None]
) -> MemoryEdit:
    """Return the file with the new values; refuse one that would not be valid."""
    memory, path = reading.memory, reading.record.path
    new = {
        key: value
        for key, value in values.items()
        if (memory.fields.get(key) or DEFAULTS.get(key)) != value
    }
    after = reading.data
    if new:
        after = document.edit(reading.data, new, path)
        read(context, after, path)
        # An old secret in the file must not prevent archiving it.
        text = reading.data.decode(errors="replace")
        secrets.refuse_secrets(after.decode(), build_allowlist(context.settings), old_text=text)
    shown = {
        key: (_format_value(memory.fields.get(key)), _format_value(value))
        for key, value in new.items()
    }
    return MemoryEdit(memory, path, reading.data, after, shown)


def _write_edits(context: Context, edits: Sequence[MemoryEdit], verb: str, why: str) -> None:
    """Write the changed files, all or none."""
    top = context.repository.top
    written: list[MemoryEdit] = []
    folders: set[str] = set()
    try:
        for edit in edits:
            if not edit.shown:
                continue
            folder = edit.path.rpartition("/")[0]
            with usage_log.audit_change(context, verb, edit.memory.id, why):
                files.replace(
                    top, edit.path, edit.after, expected=edit.before, sweeps=folder not in folders
                )
            folders.add(folder)
            written.append(edit)
    except BaseException as error:
        remaining = _take_back(context, written)
        if isinstance(error, MemtoolError):
            raise files.add_done(error, remaining) from None
        raise


def _take_back(context: Context, edits: Iterable[MemoryEdit]) -> list[str]:
    """Restore changed files; return the ids of memories for which that is not possible."""
    remaining = []
    for edit in edits:
        try:
            with usage_log.audit_change(context, "restore", edit.memory.id, ""):
                files.replace(context.repository.top, edit.path, edit.before, expected=edit.after)
        except MemtoolError:
            remaining.append(edit.memory.id)
    return remaining


def _format_value(value: FieldValue | None) -> str:
    """Format the value of a key for people: without the digests of a sighting."""
    if isinstance(value, dict):
        value = {key: text for key, text in value.items() if key != "saw"}
    return to_text(value)


def _commit_changes(
    context: Context, paths: Sequence[str], summary: str, trailers: Mapping[str, str]
) -> str | None:
    """Commit changed files, and return the commit that contains the changes."""
    repository = context.repository
    try:
        return commit_files(context, paths, summary, trailers)
    except MemtoolError:
        differing = (
            repository.git.names("diff", "--name-only", "-z", "HEAD", "--", *batch)
            for batch in split_batches(paths, MAX_PATH_ARGUMENTS)
        )
        if any(differing):
            raise
    # Another process changed the same file at the same time, and committed both changes. To commit
    # a file git reads it twice, for its index and for the commit. If it saw one change the first
    # time and both the second time, its index would undo the second change in the next commit.
    dirty = find_dirty(repository, paths)
    if dirty:
        update_index_to_head(repository, sorted(dirty))
    return repository.git.line("log", "-1", "--format=%H", "--", paths[0])


def edit_file(
    context: Context,
    path: str,
    edit: Callable[[bytes], bytes],
    line: str,
    *,
    commit: bool,
    dry_run: bool,
) -> EditedFile:
    """Edit a file, and commit it if asked; `edit` maps the old bytes, b"" if absent, to the new.

    With `commit`, earlier uncommitted changes of the file are committed as well.

    Raises:
        MemtoolError: memories cannot be written here, or `edit`, disk or git refuse.
    """
    prepare(context, dry_run=dry_run)
    repository = context.repository
    with files.locked(repository.cache_dir, "write.lock", is_needed=not dry_run):
        before = read_bytes(repository.top, path)
        after = edit(before or b"")
        was, is_now = ((data or b"").decode(errors="replace") for data in (before, after))
        secrets.refuse_secrets(
            is_now, build_allowlist(context.settings), old_text=was, name="the file"
        )
        changed = after != (before or b"")
        if changed and not dry_run:
            files.replace(repository.top, path, after, expected=before)
    done = None
    if commit and not dry_run and (changed or is_dirty(repository, path)):
        done = commit_files(context, [path], line, {})
    return EditedFile(after, changed, done)


def set_option(
    context: Context,
    key: str,
    value: Scalar | tuple[str, ...] | None,
    *,
    commit: bool,
    dry_run: bool,
) -> EditedFile:
    """Set a key of the settings file, or remove it if the value is None; an old name goes."""
    path = context.project.config_path

    def edit(before: bytes) -> bytes:
        toml.read(before, path)  # a broken file is reported, not edited
        text = before.decode()
        for old_key, current_key in config_file.RENAMED.items():
            if current_key == config_file.find_option(key).key:
                text = toml.rename_key(text, old_key, current_key)
        after = toml.set_key(text, key, value, config_file.BY_CATEGORY).encode()
        config_file.parse(after, path)
        return after

    return edit_file(context, path, edit, f"set {key}", commit=commit, dry_run=dry_run)


def quote_memory(memory: Memory) -> str:
    """Return a memory within a sentence: `"Hold a seat for 20 minutes" (ID)`.

    Secrets in an old title are redacted.
    """
    return f'"{clean_text(memory.title)}" ({memory.id})'


def summarize(verb: str, memory: Memory) -> str:
    """Return the summary of a commit about one memory; secrets in an old title are redacted."""
    return clean_text(f"{verb} {memory.title}")


def open_current_tree(context: Context, *, dry_run: bool) -> Tree:
    """Return the current memories of the worktree."""
    # The index reads one memory instead of all, but may be written, which a dry run must not do.
    return context.tree() if dry_run else index.open(context, exact=True)


def find_replaceable(tree: Tree, wanted: Sequence[str]) -> tuple[str, ...]:
    """Return the full ids of memories that may be superseded: they exist and are heads.

    Raises:
        MemtoolError: one does not exist, is deleted, or is already superseded.
    """
    targets = []
    for name in wanted:
        record = tree.find(name)
        refuse_deleted(record.memory)
        if not tree.lineage.is_head(record.id):
            raise superseded_error(tree, record.id, "memtool supersede")
        targets.append(record.id)
    return tuple(dict.fromkeys(targets))


def superseded_error(tree: Tree, id_: str, command: str) -> MemtoolError:
    """Build the refusal of a superseded memory; the hint gives the command for its head."""
    newer = tree.lineage.superseded_by[id_]
    heads = tree.lineage.find_heads(id_) or newer
    newest = max(heads, key=lambda head: (tree[head].memory.timestamp, head))
    verb = command.removeprefix("memtool ")
    title = " TITLE" if verb == "supersede" else ""
    what = f"cannot {verb}: {quote_memory(tree[id_].memory)} is superseded by"
    return MemtoolError(
        f"{what}:{tree.list_titles(newer)}",
        hint="\n".join(
            [f"{command} {newest}{title}", *(["memtool conflicts"] if len(heads) > 1 else [])]
        ),
        code="not-a-head",
    )


def refuse_deleted(memory: Memory) -> None:
    """Raise MemtoolError if a memory is softly deleted: it must be restored first."""
    if memory.status == "deleted":
        raise MemtoolError(
            f"{quote_memory(memory)} is deleted",
            hint=f"memtool restore {memory.id}",
            code="deleted",
        )


def to_one_line(context: Context, reason: str) -> str:
    """Put a reason, for a file or a commit message, on one line.

    Raises:
        MemtoolError: it is too long, or contains hidden characters or a secret.
    """
    line = " ".join(reason.split())
    if not schema.is_line(line):
        raise MemtoolError(
            "the reason contains invisible characters or is longer than 500 characters",
            hint='--reason "one line of text"',
        )
    if line:
        secrets.refuse_secrets(line, build_allowlist(context.settings), name="the reason")
    return line


def find_speaker(context: Context) -> str:
    """Return the default source of a memory: the agent that writes it, else the user."""
    return (
        f"tool:{context.caller.agent}" if context.caller.agent else f"human:{find_author(context)}"
    )


def find_author(context: Context) -> str:
    """Return the user's name from git, else the account's."""
    named = context.caller.env.get("GIT_AUTHOR_NAME", "").strip()
    name = named or context.repository.git.line("config", "user.name", allowed=(0, 1))
    return name or context.caller.env.get("USER", "") or "unknown"
