"""`memtool redact`: take secrets and personal data out of files and of what git has staged."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from typing import Literal

from memtool.authoring import write
from memtool.authoring.tree import bytes_of
from memtool.errors import MemtoolError
from memtool.gate import rewrite
from memtool.gate.rewrite import Rewrite, Rules
from memtool.redaction.find import allowlist
from memtool.store import files, usage_log
from memtool.store.context import Context
from memtool.store.git import IndexEntry
from memtool.store.snapshot import is_memory_path
from memtool.value import Value

FRAMEWORK = "PRE_COMMIT"
"""The variable that the pre-commit framework sets for the hooks it runs."""
_HINT = "name text files of this worktree; without any, all memories are looked through"


class Spot(Value):
    """One finding: its kind, its line from 1, and the fingerprint to allow it by.

    `where` is `worktree`, `staged`, or `both` where both hold the same.
    """

    kind: str
    line: int
    fingerprint: str
    where: str


class RedactedFile(Value):
    """A file with findings; `staged` says whether what git has staged is rewritten as well."""

    path: str
    findings: tuple[Spot, ...]
    staged: bool


class Redacted(Value):
    """What was redacted, or with `dry_run` would be; `checked` counts the files looked through."""

    checked: int
    files: tuple[RedactedFile, ...]
    strategy: str
    dry_run: bool = False

    @property
    def exit_code(self) -> int:
        """1 if anything was found, as the fixers of pre-commit end that changed a file."""
        return int(bool(self.files))


class _Side(Value):
    """The bytes of one side of a file, and what is to become of them."""

    data: bytes
    new: Rewrite


def redact(
    context: Context,
    *path: str,
    strategy: Literal["redact", "hash", "token"] = "redact",
    staged: bool = False,
    dry_run: bool = False,
) -> Redacted:
    """Replace secrets and personal data in files by marks, and stage them again.

    Any text file of the worktree may be named; without one all memories are looked through. A
    mark is [REDACTED:kind]. With hash it also has 8 digits of a hash, equal for equal secrets in
    this clone only, whose key stays in its git directory. With token it has a number, equal for
    equal secrets in one file.

    A file and what is staged of it are redacted each on its own, so unstaged edits stay unstaged.
    Run by the pre-commit framework it leaves the index alone: add the files again. What was
    committed before stays in history: change such a secret where it is used.

    What is harmless may stay: on one line with the comment memtool: allow KIND, in a whole file
    with memtool: allow-file KIND -- REASON, everywhere by the setting redaction.allow.

    Ends with 1 if it found something, as fixers do, and with 0 if there was nothing to do.

    Example:
        memtool redact
        memtool redact docs/setup.md --strategy token
        memtool redact --staged --dry-run

    Args:
        path: a file; all memories without any
        strategy: redact hides all, hash and token let equal secrets be recognised
        staged: only files with staged changes
        dry_run: say what would be replaced, write nothing
    """
    write.prepare(context, begins=False, dry_run=dry_run)
    repository = context.repository
    named = tuple(dict.fromkeys(_located(context, one) for one in path))
    needs_key = strategy == "hash"
    key = rewrite.key(repository.cache_dir) if needs_key and not dry_run else b"\0" * needs_key
    rules = Rules(allowlist(context.settings), strategy, key, context.settings.categories)
    with files.locked(repository.cache_dir, "write.lock", is_needed=not dry_run):
        entries = rewrite.staged(repository, named or (context.directory,))
        names = _paths(context, named, entries, only_staged=staged)
        found = {}
        for name, on_disk, in_index in _sides(
            context, names, entries, rules, is_strict=bool(named)
        ):
            if on_disk.new.found or in_index.new.found:
                found[name] = on_disk, in_index
        may_stage = FRAMEWORK not in context.caller.env
        if may_stage and not dry_run and any(side.new.found for _disk, side in found.values()):
            rewrite.refuse_partial_commit(context.caller.env)
        with usage_log.act(context, "redact", *found, dry_run=dry_run or not found):
            if not dry_run:
                _write(context, found, entries, may_stage=may_stage)
    if found and not may_stage and not dry_run:
        context.notes.append(
            "git add the files again; if they came back as they were, the framework undid this: "
            "memtool redact --staged"
        )
    return Redacted(
        checked=len(names),
        files=tuple(
            RedactedFile(name, _spots(*sides), may_stage and bool(sides[1].new.found))
            for name, sides in found.items()
        ),
        strategy=strategy,
        dry_run=dry_run,
    )


def render(redacted: Redacted) -> str:
    """Return one line per file with kinds and lines, never with what was there."""
    files = "1 file" if redacted.checked == 1 else f"{redacted.checked:,} files"
    if not redacted.files:
        return f"nothing to redact in {files}"
    rows = [
        f"{file.path}: {_counted(file.findings)}{' (staged again)' if file.staged else ''}"
        for file in redacted.files
    ]
    if redacted.dry_run:
        rows = [row.replace(" (staged again)", " (staged as well)") for row in rows]
        rows.insert(0, "would redact:")
    return "\n".join(rows)


def _counted(spots: Sequence[Spot]) -> str:
    """Return how many findings of which kind are on which lines."""
    lines: dict[tuple[str, str], list[int]] = {}
    for spot in spots:
        lines.setdefault((spot.kind, spot.where), []).append(spot.line)
    rows = []
    for (kind, where), numbers in lines.items():
        only = "" if where == "both" else f" of the {'staged text' if where == 'staged' else where}"
        plural = "s" if len(numbers) > 1 else ""
        rows.append(f"{len(numbers)} {kind} in line{plural} {', '.join(map(str, numbers))}{only}")
    return "; ".join(rows)


def _spots(on_disk: _Side, in_index: _Side) -> tuple[Spot, ...]:
    """Return the findings of both sides in order of lines, those that both have only once."""
    rest = list(in_index.new.found)
    spots = []
    for one in on_disk.new.found:
        is_both = one in rest
        if is_both:
            rest.remove(one)
        where = "both" if is_both else "worktree"
        spots.append(Spot(one.kind, one.line, one.fingerprint, where))
    spots += [Spot(one.kind, one.line, one.fingerprint, "staged") for one in rest]
    return tuple(sorted(spots, key=lambda spot: (spot.line, spot.kind, spot.where)))


def _write(
    context: Context,
    found: dict[str, tuple[_Side, _Side]],
    entries: dict[str, IndexEntry],
    *,
    may_stage: bool,
) -> None:
    """Write the index first, all at once: where it is locked, nothing is changed at all."""
    top = context.repository.top
    if may_stage:
        rewrite.restage(
            context.repository,
            [
                (entries[name], side.new.data)
                for name, (_disk, side) in found.items()
                if side.new.found
            ],
        )
    written = (
        ["git's index"] if may_stage and any(new.new.found for _, new in found.values()) else []
    )
    with files.naming(written):
        for name, (side, _index) in found.items():
            if side.new.found:
                files.replace(top, name, side.new.data, expected=side.data)
                written.append(name)


def _paths(
    context: Context, named: tuple[str, ...], entries: dict[str, IndexEntry], *, only_staged: bool
) -> list[str]:
    """Return the paths to look at, those of all memories unless some are named, sorted."""
    found = set(named)
    if not named:
        found = {entry.path for entry in context.snapshot().entries}
        found |= {path for path in entries if is_memory_path(path, context.directory)}
    return sorted(found & rewrite.changed(context.repository) if only_staged else found)


def _sides(
    context: Context,
    names: Sequence[str],
    entries: dict[str, IndexEntry],
    rules: Rules,
    *,
    is_strict: bool,
) -> Iterator[tuple[str, _Side, _Side]]:
    """Yield each path with its side on disk and its side in the index; a side may be empty.

    A file that cannot be redacted is an error if it was named, and is noted otherwise.
    """
    oids = [entries[name].oid for name in names if name in entries]
    blobs = context.repository.git.blobs(oids, rewrite.MOST_BYTES)
    for name in names:
        staged = next(blobs) if name in entries else b""
        try:
            data = bytes_of(context.repository.top, name)
            if data is None and name not in entries:
                raise MemtoolError(f"there is no file {name}", hint=_HINT, code="no-file")
            on_disk = rewrite.rewrite(data or b"", name, rules)
            same = on_disk if data == staged else rewrite.rewrite(staged, name, rules)
        except MemtoolError as error:
            if is_strict:
                raise
            context.notes.append(f"passed over: {error}")
            continue
        yield name, _Side(data or b"", on_disk), _Side(staged, same)


def _located(context: Context, given: str) -> str:
    """Return a path that was given, from the top. Raises MemtoolError where it is no file here."""
    folder, name = os.path.split(os.path.join(context.caller.cwd, given))
    try:
        path = os.path.relpath(os.path.join(os.path.realpath(folder), name), context.repository.top)
        mode = os.lstat(os.path.join(context.repository.top, path)).st_mode
    except (FileNotFoundError, NotADirectoryError):
        mode = stat.S_IFREG  # perhaps it is staged, and deleted in the worktree
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "that is no file name"
        raise MemtoolError(f"{given!r} cannot be read: {reason}", hint=_HINT) from None
    parts = path.split("/")
    if parts[0] == ".." or parts[0].lower() == ".git":
        raise MemtoolError(f"{given!r} is not in this worktree", hint=_HINT, code="outside")
    if stat.S_ISDIR(mode) or name in ("", ".", ".."):
        raise MemtoolError(f"{given!r} is a directory", hint=_HINT)
    if not stat.S_ISREG(mode):
        raise MemtoolError(f"{given!r} is a link or device", hint=_HINT, code="symlink")
    return path
