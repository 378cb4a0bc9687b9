"""The rules of the field table: whether raw fields form a valid memory, and problem codes.

It also parses sources: `commit:SHA`, `file:PATH#L10-L24@SHA`, `memory:ID` and the like.
"""

from __future__ import annotations

from memtool.memory import frontmatter, timestamps
from memtool.memory.fields import (
    BY_NAME,
    CAUSE_KINDS,
    DEFAULT_CATEGORIES,
    LIST_KINDS,
    OWN_PREFIX,
    REQUIRED,
    SOURCE_KINDS,
    Field,
)
from memtool.memory.memory import Fields, FieldValue
from memtool.value import HEX, Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

MAX_LINE = 500
MAX_SOURCES = 50
"""Sources that a candidate has at most when it gets those of others."""
MAX_ITEMS = 200
_ID_START = frozenset("abcdefghijklmnopqrstuvwxyz0123456789")
_ID_CHARS = _ID_START | frozenset("._-")
_NUMBER_CHARS = frozenset("0123456789.eE+-")
# Joiners that scripts and emoji need, and spaces that `isprintable` calls unprintable.
_HARMLESS = frozenset("\u200c\u200d\u00a0\u202f\u3000")


CODES: dict[str, str] = {
    "unreadable": "the file cannot be opened or read",
    "not-utf8": "the file is not UTF-8 text, or contains NUL bytes",
    "too-large": "the file is larger than a memory may be",
    "symlink": "a symbolic link, device or socket inside the memory tree",
    "no-frontmatter": "the file does not start with a closed `---` block",
    "bad-yaml": "the frontmatter is not the strict YAML of memtool",
    "conflict-markers": "the file contains the markers of an unfinished merge",
    "unknown-key": "the key is unknown",
    "missing-key": "a required key is absent",
    "bad-value": "the value is not valid for its key",
    "bad-window": "the memory ends before it starts",
    "wrong-name": "the file name is not the id",
    "duplicate-id": "two files have the same id",
    "dangling": "a relation names a memory that does not exist",
    "cycle": "memories supersede each other in a circle",
    "fork": "two heads supersede the same memory",
    "not-a-head": "it supersedes a memory that is already superseded",
    "hidden-character": "an invisible character, or one that reorders the text",
    "long-line": "a line is too long to read",
    "html-comment": "text that agents see, but users do not",
    "literal-return": "lines that end in the two characters `\\r`",
    "file-mode": "the file is executable",
    "ignored": "git ignores the file",
    "no-text": "a confirmed memory has no text below its headings",
    "missing-section": "a section that its type should have is missing",
    "secret": "something that looks like a password, key or token",
    "personal-data": "something that looks like an address, or a phone or card number",
    "silent-edit": "the claim of a confirmed, committed memory was changed in place",
    "backdated": "the timestamp of a confirmed memory was set back",
    "unconfirmed": "a confirmed memory became a candidate again",
    "removed": "a committed memory was removed",
    "reverted": "an earlier commit was reverted, with the memories that it added or changed",
    "moved": "a committed memory has another path or name",
    "broken-link": "it names a memory that does not exist",
    "broken-source": "a file or commit that it cites does not exist",
    "no-such-file": "its files do not match anything",
    "renamed-file": "files that it names have been renamed",
    "unsettled": "it rests on a memory that no longer holds",
    "bad-record": "what it recorded about the code cannot be read, or differs from its commit",
    "changed-since": "a range has changed the code that it names since the last check",
    "unowned": "no proof that an owner made this change, which a trust rule requires",
    "foreign-scope": "scope: global in a project",
    "user-setting": "a project sets a setting that only its users may set",
    "duplicate": "another active memory says the same, or nearly",
    "conflict": "another active memory says the opposite, or gives another value",
    "future": "a past moment is dated in the future",
    "stale-block": "the block in a file such as AGENTS.md is out of date",
    "edited-block": "the block in a file such as AGENTS.md was edited by hand",
    "broken-block": "the marks around the block in a file such as AGENTS.md are not one pair",
    "unfinished-commit": "a commit was killed, and git's index only intends to hold the file",
    "newer-format": "this version of memtool does not know the format of the memories",
    "unreachable": "a golden query expects a memory that is not found, such as a superseded one",
}
"""Every problem code and its meaning. Codes are stable: scripts may match them."""


class Problem(Value):
    """One finding about one file. `line` counts from 1; 0 means the whole file."""

    path: str
    line: int
    code: str
    message: str
    hint: str = ""
    id: str = ""
    severity: str = "error"

    def text(self) -> str:
        """Return the one-line form `path:line: CODE message`."""
        return f"{self.path}:{self.line}: {self.code} {self.message}"


def is_id(text: str) -> bool:
    """Return whether the text may be an id: `[a-z0-9][a-z0-9._-]{2,119}`."""
    return 3 <= len(text) <= 120 and text[0] in _ID_START and _ID_CHARS.issuperset(text)


def is_line(text: str) -> bool:
    """Return whether a text is one visible line: no controls or direction marks, not too long."""
    if text.isprintable():
        return len(text) <= MAX_LINE
    return len(text) <= MAX_LINE and all(c.isprintable() or c in _HARMLESS for c in text)


def is_inside(path: str) -> bool:
    """Return whether a path or glob is relative, uses `/`, and stays inside the repository."""
    return bool(path) and path[0] not in "/~" and "\\" not in path and ".." not in path.split("/")


def find_source_fault(source: str) -> str:
    """Return the fault of a source as a clause; empty if it is valid."""
    kind, colon, target = source.partition(":")
    if not colon or kind not in SOURCE_KINDS or not target.strip():
        return f"{source!r} is not a source: write one of " + ", ".join(
            f"{name}:…" for name in SOURCE_KINDS
        )
    if kind == "commit" and not (4 <= len(target) <= 64 and set(target) <= HEX):
        return f"{source!r} does not name a commit by its hexadecimal id"
    if kind == "file" and not is_inside(target):
        return f"{source!r} must name a file inside the repository, relative to its top"
    if kind == "memory" and not is_id(target):
        return f"{source!r} does not name a memory by its id"
    return ""


class Source(Value):
    """A parsed source. `target` follows the kind; for a file it is the path alone.

    `lines` are the first and last line of a file, from 1, or None. `commit` is the hexadecimal id
    in a commit or file source, perhaps shortened, else empty.
    """

    kind: str
    target: str
    lines: tuple[int, int] | None = None
    commit: str = ""


def parse_source(text: str) -> Source:
    """Take a valid source apart. What does not look like lines or a commit belongs to the path."""
    kind, _colon, target = text.partition(":")
    if kind == "commit":
        return Source(kind, target, None, target)
    if kind != "file":
        return Source(kind, target)
    commit = ""
    path, at, behind = target.rpartition("@")
    if at and path and 4 <= len(behind) <= 64 and set(behind) <= HEX:
        target, commit = path, behind
    path, mark, span = target.rpartition("#")
    lines = _parse_lines(span) if mark and path else None
    return Source(kind, path if lines else target, lines, commit)


def find_lines_fault(source: str) -> str:
    """Return the fault of the lines that a source seems to name; empty if there is none.

    Existing memories are still read: the text counts as part of the file's name.
    """
    span = parse_source(source).target.rpartition("#")[2]
    first, _dash, last = span.partition("-")
    if source.startswith("file:") and "#" in source and _parse_line(first) and _parse_line(last):
        return f"{source!r} names lines from {_parse_line(first)} back to {_parse_line(last)}"
    return ""


def _parse_lines(span: str) -> tuple[int, int] | None:
    first, dash, last = span.partition("-")
    start = _parse_line(first)
    end = _parse_line(last) if dash else start
    return (start, end) if 0 < start <= end else None


def _parse_line(text: str) -> int:
    """Return the number of `L12`, 0 for anything else."""
    digits = text[1:]
    is_number = digits.isascii() and digits.isdigit() and len(digits) < 10
    return int(digits) if text[:1] == "L" and is_number else 0


def _check_each(test: Callable[[str], bool], complaint: str) -> Callable[[tuple[str, ...]], str]:
    def fault(items: tuple[str, ...]) -> str:
        return next((f"{item!r} {complaint}" for item in items if not test(item)), "")

    return fault


def _is_cause(text: str) -> bool:
    kind, _colon, id_ = text.partition(":")
    return kind in CAUSE_KINDS and is_id(id_)


def _require_parse(read: Callable[[str], int], example: str) -> Callable[[str], str]:
    def fault(text: str) -> str:
        try:
            read(text)
        except ValueError:
            return f"{text!r} is not a time such as {example}"
        return ""

    return fault


def _find_number_fault(text: str, maximum: float) -> str:
    try:
        number = float(text)
    except ValueError:
        return f"{text!r} is not a number"
    if not _NUMBER_CHARS.issuperset(text):  # Python also reads "1_0", " 1", "infinity" and "\u0661"
        return f"{text!r} is not a number"
    return "" if 0 <= number <= maximum else f"{text} is not between 0 and {maximum:g}"


_SCALAR_FAULTS: dict[str, Callable[[str], str]] = {
    "id": lambda t: "" if is_id(t) else f"{t!r} is not an id: 3 to 120 of a-z 0-9 . _ -",
    "moment": _require_parse(timestamps.parse, "2026-02-22T19:33:00Z"),
    "when": _require_parse(timestamps.start, "2026-12-31 or 2026-02-22T19:33:00Z"),
    "line": lambda t: "" if t.strip() else "is empty",
    "flag": lambda t: "" if t in ("true", "false") else f"{t!r} is neither true nor false",
    "count": lambda t: "" if t.isascii() and t.isdigit() else f"{t!r} is not a whole number",
    "number": lambda t: _find_number_fault(t, 1e6),
    "share": lambda t: _find_number_fault(t, 1.0),
    "choice": lambda _t: "",
    "category": lambda _t: "",
}
_LIST_FAULTS: dict[str, Callable[[tuple[str, ...]], str]] = {
    "words": _check_each(lambda t: bool(t.strip()), "is an empty item"),
    "paths": _check_each(is_inside, "is not a path inside the repository, relative to its top"),
    "ids": _check_each(is_id, "is not an id"),
    "sources": lambda items: next(filter(None, map(find_source_fault, items)), ""),
    "causes": _check_each(
        _is_cause, f"is not a cause: write {' or '.join(f'{name}:ID' for name in CAUSE_KINDS)}"
    ),
}


def find_value_fault(field: Field, value: FieldValue, categories: Collection[str]) -> str:
    """Return the fault of a key's value as one clause; empty if it is valid."""
    if field.kind == "mapping":
        return _find_mapping_fault(field, value)
    if field.kind in LIST_KINDS:
        if not isinstance(value, tuple):
            return f"is a list: write [{value if isinstance(value, str) else ''}]"
        if len(value) > MAX_ITEMS:
            return f"has {len(value)} items, the limit is {MAX_ITEMS}"
        if not all(map(is_line, value)):
            return "has an item with hidden characters or over 500 characters"
        return _LIST_FAULTS[field.kind](value)
    if not isinstance(value, str):
        return "is one line of text, not a list or table"
    if not is_line(value):
        return "has hidden characters, line breaks or over 500 characters"
    choices = field.choices if field.kind == "choice" else categories
    if field.kind in ("choice", "category") and value not in choices:
        near = _suggest_nearest(value, choices)
        return f"{value!r} is not one of {', '.join(sorted(choices))}{near}"
    return _SCALAR_FAULTS[field.kind](value)


def _find_mapping_fault(field: Field, value: FieldValue) -> str:
    if not isinstance(value, dict):
        return f"is a table of {', '.join(field.choices)}"
    for key, text in value.items():
        if key not in field.choices:
            return f"cannot have {key!r}, only {', '.join(field.choices)}"
        if not is_line(text):
            return f"has hidden characters, line breaks or over 500 characters in {key}"
    if value.keys() == {"saw"}:  # a sighting alone is not a confirmation
        return ""
    if "at" not in value:
        return "needs `at`, the moment when it happened"
    return _SCALAR_FAULTS["moment"](value["at"])


def _suggest_nearest(word: str, choices: Collection[str]) -> str:
    import difflib  # only a wrong word pays for it

    near = difflib.get_close_matches(word, sorted(choices), n=1)
    return f" (did you mean {near[0]}?)" if near else ""


def find_problems(
    fields: Fields,
    lines: dict[str, int],
    path: str,
    categories: Collection[str] = DEFAULT_CATEGORIES,
) -> list[Problem]:
    """Return every breach of the field table, in the order of the file.

    `lines` gives the line of each key; `path` is the file's place in the repository, empty for
    a draft that has none yet.
    """
    problems = list(_find_key_problems(fields, lines, path, categories))
    name = path.rpartition("/")[2]
    written_id = fields.get("id")
    is_clear = isinstance(written_id, str) and is_id(written_id)
    if name and is_clear and name != f"{written_id}.md":
        problems.append(
            Problem(
                path,
                lines.get("id", 1),
                "wrong-name",
                f"the file is named {name} but its id is {written_id}",
                f"git mv {path} {path[: len(path) - len(name)]}{written_id}.md",
            )
        )
    if not problems:
        problems.extend(_find_window_problems(fields, lines, path))
    return problems


def is_sound(key: str, value: FieldValue, categories: Collection[str]) -> bool:
    """Return whether there is nothing wrong with a key and its value."""
    field = BY_NAME.get(key)
    if field is not None:
        return not find_value_fault(field, value, categories)
    is_own = key.startswith(OWN_PREFIX) and frontmatter.is_key(key)
    return is_own and isinstance(value, str) and is_line(value)


def is_whole(fields: Fields, path: str) -> bool:
    """Return whether fields, each of them sound, surely are those of the memory at a path.

    Where not, `problems` knows whether there is one.
    """
    name = path.rpartition("/")[2]
    return (
        all(map(fields.get, REQUIRED))
        and (not name or name == f"{fields['id']}.md")
        and not ("valid_from" in fields and "valid_through" in fields)
    )


def _find_key_problems(
    fields: Fields, lines: dict[str, int], path: str, categories: Collection[str]
) -> Iterator[Problem]:
    for key, value in fields.items():
        line = lines.get(key, 1)
        field = BY_NAME.get(key)
        if field is not None:
            fault = find_value_fault(field, value, categories)
            if fault:
                yield Problem(path, line, "bad-value", f"{key}: {fault}", f"edit {path or key}")
        elif not key.startswith(OWN_PREFIX):
            near = _suggest_nearest(key, BY_NAME)
            yield Problem(
                path,
                line,
                "unknown-key",
                f"no memory has the key {key!r}{near}",
                f"for a key of your own write {OWN_PREFIX}{key}",
            )
        elif not frontmatter.is_key(key):
            yield Problem(
                path,
                line,
                "unknown-key",
                f"{key!r} cannot be a key",
                f"write {OWN_PREFIX} and at most 100 letters, digits, - and _",
            )
        elif not isinstance(value, str) or not is_line(value):
            yield Problem(path, line, "bad-value", f"{key}: is one line of visible text", "")
    for key in REQUIRED:
        if not fields.get(key):
            yield Problem(
                path,
                lines.get(key, 1),
                "missing-key",
                f"the key {key} is required",
                f"add {key}: {BY_NAME[key].doc}",
            )


def _find_window_problems(fields: Fields, lines: dict[str, int], path: str) -> Iterator[Problem]:
    begin, finish = fields.get("valid_from"), fields.get("valid_through")
    if (
        isinstance(begin, str)
        and isinstance(finish, str)
        and timestamps.end(finish) < timestamps.start(begin)
    ):
        yield Problem(
            path,
            lines.get("valid_through", 1),
            "bad-window",
            f"it is valid through {finish}, before it begins on {begin}",
            "correct valid_through",
        )
