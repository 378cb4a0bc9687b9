"""`memtool redact`: remove secrets and personal data from files and from what is staged."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from typing import Literal

from memtool.authoring import write
from memtool.authoring.tree import read_bytes
from memtool.commands._layout import Layout
from memtool.errors import MemtoolError
from memtool.gate import rewrite
from memtool.gate.checks.secrets import name_kind, quote_masked
from memtool.gate.rewrite import Rewrite, Rules
from memtool.redaction.explain import explain as explain_all
from memtool.redaction.find import Allowlist, build_allowlist, compute_fingerprint, find
from memtool.store import files, usage_log
from memtool.store.context import Context
from memtool.store.git import IndexEntry
from memtool.store.snapshot import is_memory_path
from memtool.value import Value

FRAMEWORK = "PRE_COMMIT"
"""The variable that the pre-commit framework sets for the hooks it runs."""
_HINT = "name text files of this worktree; without any, all memories are looked through"


class Spot(Value):
    """One finding: its kind, its line (from 1), and the fingerprint for redaction.allow.

    `where` is `worktree`, `staged`, or `both` if it is in both. If explained, `by` is what gave it
    away, `form` what the value is like, and `excerpt` the line with marks for all secrets.
    """

    json_optional = "by form excerpt"

    kind: str
    line: int
    fingerprint: str
    where: str
    by: str = ""
    form: str = ""
    excerpt: str = ""


class RedactedFile(Value):
    """A file with findings; `staged` if the staged content is rewritten as well."""

    path: str
    findings: tuple[Spot, ...]
    staged: bool


class RedactResult(Value):
    """The redacted files; `checked` counts all that were scanned."""

    checked: int
    files: tuple[RedactedFile, ...]
    strategy: str
    dry_run: bool = False

    @property
    def exit_code(self) -> int:
        """1 if anything was found, like fixers of pre-commit that changed a file."""
        return int(bool(self.files))


class _Side(Value):
    """One side of a file, on disk or staged: its bytes and its redaction."""

    data: bytes
    new: Rewrite


def redact(
    context: Context,
    *path: str,
    strategy: Literal["redact", "hash", "token"] = "redact",
    staged: bool = False,
    explain: bool = False,
    dry_run: bool = False,
) -> RedactResult:
    """Remove secrets and personal data from files, and stage the files again.

    How a secret is replaced:
        redact   [REDACTED:kind]
        hash     with a hash that is equal for equal secrets in this clone
        token    with a number that is equal for equal secrets in one file

    What may stay:
        memtool: allow KIND                  in a comment on the line
        memtool: allow-file KIND -- REASON   in a comment, for the whole file
        redaction.allow                      a setting, for all files

    Staged and unstaged changes stay separate. What was committed before stays in history: change
    such a secret where it is used. Exit code 1 means that something was replaced.

    Example:
        memtool redact
        memtool redact docs/setup.md --strategy token
        memtool redact --staged --dry-run
        memtool redact docs/setup.md --explain

    Args:
        path: files; without any, all memories
        strategy: redact (default), hash or token, see above
        staged: only files with staged changes
        explain: show why each was found, write nothing
        dry_run: show what would be replaced, write nothing
    """
    dry_run = dry_run or explain
    write.prepare(context, begins=False, dry_run=dry_run)
    repository = context.repository
    named = tuple(dict.fromkeys(_resolve_path(context, argument) for argument in path))
    needs_key = strategy == "hash"
    key = rewrite.load_key(repository.cache_dir) if needs_key and not dry_run else b"\0" * needs_key
    rules = Rules(build_allowlist(context.settings), strategy, key, context.settings.categories)
    with files.locked(repository.cache_dir, "write.lock", is_needed=not dry_run):
        entries = rewrite.find_staged(repository, named or (context.directory,))
        names = _list_paths(context, named, entries, only_staged=staged)
        sides_by_path = {}
        for name, on_disk, in_index in _read_sides(
            context, names, entries, rules, is_strict=bool(named)
        ):
            if on_disk.new.removals or in_index.new.removals:
                sides_by_path[name] = on_disk, in_index
        may_stage = FRAMEWORK not in context.caller.env
        if (
            may_stage
            and not dry_run
            and any(side.new.removals for _disk, side in sides_by_path.values())
        ):
            rewrite.refuse_partial_commit(context.caller.env)
        with usage_log.audit(
            context, "redact", *sides_by_path, dry_run=dry_run or not sides_by_path
        ):
            if not dry_run:
                _write_files(context, sides_by_path, entries, may_stage=may_stage)
    if sides_by_path and not may_stage and not dry_run:
        context.notes.append(
            "git add the files again; if they are unchanged, the framework undid this: "
            "memtool redact --staged"
        )
    return RedactResult(
        checked=len(names),
        files=tuple(
            RedactedFile(
                name,
                _merge_spots(*sides, rules.allowed if explain else None),
                may_stage and bool(sides[1].new.removals),
            )
            for name, sides in sides_by_path.items()
        ),
        strategy=strategy,
        dry_run=dry_run,
    )


def render(result: RedactResult, _layout: Layout) -> str:
    """Return a line per file with kinds and line numbers, never with the secrets."""
    files = "1 file" if result.checked == 1 else f"{result.checked:,} files"
    if not result.files:
        return f"nothing to redact in {files}"
    if any(spot.by for file in result.files for spot in file.findings):
        return "\n".join(
            row for file in result.files for spot in file.findings for row in _format(file, spot)
        )
    rows = [
        f"{file.path}: {_count_spots(file.findings)}{' (staged again)' if file.staged else ''}"
        for file in result.files
    ]
    if result.dry_run:
        rows = [row.replace(" (staged again)", " (staged as well)") for row in rows]
        rows.insert(0, "would redact:")
    return "\n".join(rows)


def _format(file: RedactedFile, spot: Spot) -> Iterator[str]:
    """Yield the lines that explain one finding."""
    yield f'{file.path}:{spot.line}: {name_kind(spot.kind)}, by {spot.by}: "{spot.excerpt}"'
    yield f"  {spot.form}"
    yield f'  harmless: memtool config redaction.allow.{spot.fingerprint} "REASON"'


def _count_spots(spots: Sequence[Spot]) -> str:
    """Return the number of findings of each kind, with their lines."""
    lines: dict[tuple[str, str], list[int]] = {}
    for spot in spots:
        lines.setdefault((spot.kind, spot.where), []).append(spot.line)
    rows = []
    for (kind, where), numbers in lines.items():
        only = "" if where == "both" else f" of the {'staged text' if where == 'staged' else where}"
        plural = "s" if len(numbers) > 1 else ""
        rows.append(f"{len(numbers)} {kind} in line{plural} {', '.join(map(str, numbers))}{only}")
    return "; ".join(rows)


def _merge_spots(
    on_disk: _Side, in_index: _Side, explained: Allowlist | None = None
) -> tuple[Spot, ...]:
    """Return the findings of both sides by line; a finding that both have is listed once.

    They are explained if it is said what is allowed.
    """
    remaining = list(in_index.new.removals)
    spots = []
    for finding in on_disk.new.removals:
        is_both = finding in remaining
        if is_both:
            remaining.remove(finding)
        where = "both" if is_both else "worktree"
        spots.append(Spot(finding.kind, finding.line, finding.fingerprint, where))
    spots += [
        Spot(finding.kind, finding.line, finding.fingerprint, "staged") for finding in remaining
    ]
    if explained is not None:
        reasons = _explain(in_index.data, explained) | _explain(on_disk.data, explained)
        spots = [spot.replace(**reasons.get((spot.fingerprint, spot.line), {})) for spot in spots]
    return tuple(sorted(spots, key=lambda spot: (spot.line, spot.kind, spot.where)))


def _explain(data: bytes, allowed: Allowlist) -> dict[tuple[str, int], dict[str, str]]:
    """Return why each finding in a file was made, by its fingerprint and line."""
    text = data.decode(errors="surrogateescape")
    detections, every = find(text, allowed), find(text)
    reasons = {}
    for detection, why in zip(detections, explain_all(text, detections), strict=True):
        mark = compute_fingerprint(text[detection.start : detection.end])
        excerpt = quote_masked(text, detection, every)[1]
        form = f"among {why.detector}; {why.form}"
        reasons[mark, detection.line] = {"by": why.by, "form": form, "excerpt": excerpt}
    return reasons


def _write_files(
    context: Context,
    sides_by_path: dict[str, tuple[_Side, _Side]],
    entries: dict[str, IndexEntry],
    *,
    may_stage: bool,
) -> None:
    """Write the redacted files, git's index first: if it is locked, nothing changes."""
    top = context.repository.top
    if may_stage:
        rewrite.restage(
            context.repository,
            [
                (entries[name], side.new.data)
                for name, (_disk, side) in sides_by_path.items()
                if side.new.removals
            ],
        )
    written = (
        ["git's index"]
        if may_stage and any(new.new.removals for _, new in sides_by_path.values())
        else []
    )
    with files.reporting_done(written):
        for name, (side, _index) in sides_by_path.items():
            if side.new.removals:
                files.replace(top, name, side.new.data, expected=side.data)
                written.append(name)


def _list_paths(
    context: Context, named: tuple[str, ...], entries: dict[str, IndexEntry], *, only_staged: bool
) -> list[str]:
    """Return the paths to scan, sorted: the named ones, else those of all memories."""
    paths = set(named)
    if not named:
        paths = {entry.path for entry in context.snapshot().entries}
        paths |= {path for path in entries if is_memory_path(path, context.directory)}
    return sorted(paths & rewrite.find_changed(context.repository) if only_staged else paths)


def _read_sides(
    context: Context,
    names: Sequence[str],
    entries: dict[str, IndexEntry],
    rules: Rules,
    *,
    is_strict: bool,
) -> Iterator[tuple[str, _Side, _Side]]:
    """Yield each path with its side on disk and its side in git's index; a side may be empty.

    A file that cannot be redacted is an error with `is_strict`, otherwise a note.
    """
    oids = [entries[name].oid for name in names if name in entries]
    blobs = context.repository.git.blobs(oids, rewrite.MAX_BYTES)
    for name in names:
        staged = next(blobs) if name in entries else b""
        try:
            data = read_bytes(context.repository.top, name)
            if data is None and name not in entries:
                raise MemtoolError(f"no file {name}", hint=_HINT, code="no-file")
            on_disk = rewrite.rewrite(data or b"", name, rules)
            same = on_disk if data == staged else rewrite.rewrite(staged, name, rules)
        except MemtoolError as error:
            if is_strict:
                raise
            context.notes.append(f"passed over: {error}")
            continue
        yield name, _Side(data or b"", on_disk), _Side(staged, same)


def _resolve_path(context: Context, argument: str) -> str:
    """Return an argument as a path from the top. Raises MemtoolError if it is not a file here."""
    folder, name = os.path.split(os.path.join(context.caller.cwd, argument))
    try:
        path = os.path.relpath(os.path.join(os.path.realpath(folder), name), context.repository.top)
        mode = os.lstat(os.path.join(context.repository.top, path)).st_mode
    except (FileNotFoundError, NotADirectoryError):
        mode = stat.S_IFREG  # may be staged, and deleted in the worktree
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "that is no file name"
        raise MemtoolError(f"cannot read {argument!r}: {reason}", hint=_HINT) from None
    parts = path.split("/")
    if parts[0] == ".." or parts[0].lower() == ".git":
        raise MemtoolError(f"{argument!r} is not in this worktree", hint=_HINT, code="outside")
    if stat.S_ISDIR(mode) or name in ("", ".", ".."):
        raise MemtoolError(f"{argument!r} is a directory", hint=_HINT)
    if not stat.S_ISREG(mode):
        raise MemtoolError(f"{argument!r} is a link or device", hint=_HINT, code="symlink")
    return path
