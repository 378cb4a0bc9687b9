"""Originals: the files of another tool, and the records that importers read from them.

This module finds and reads files, looks them up in git, builds citations, and converts states,
dates, names and long texts of other tools. Reading is limited in size, follows no links below the
given path, and opens only plain files.
"""

from __future__ import annotations

import os
import re
import stat
import unicodedata
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from io import BufferedReader

from memtool import value
from memtool.errors import MemtoolError, find_reason
from memtool.memory import schema, strict, timestamps
from memtool.memory.fields import DEFAULT_CATEGORIES, STATUSES
from memtool.memory.memory import Fields
from memtool.memory.schema import Problem
from memtool.memory.trust import CITED_DIGITS
from memtool.store.files import open_file
from memtool.value import Value

MAX_BYTES = 1 << 20
"""Limit of a text file; a larger one is not a record."""
_VERSION = re.compile(r"(#L\d+(-L\d+)?)?(@[0-9a-f]{7,64})?$")
_SKIPPED_FOLDERS = frozenset({"node_modules", "vendor", "venv", "site-packages", "__pycache__"})
CODES: dict[str, str] = {
    "changed": "the record says something else than the memory that was made of it",
    "not-json": "a line that is no JSON object",
    "not-a-record": "a file that says neither what it decides nor where it stands",
    "unknown-state": "a state that no record is known to have; it becomes a candidate",
    "unused-map": "a --map path that no record has",
    "duplicate-record": "the same record twice; the first one counts",
    "empty-entry": "an entry of a store that says nothing",
    "left-out": "what a store has, and a memory has no place for",
}
"""Problems that only an import finds, in addition to those of `memory.schema`."""


class Original(Value):
    """A file to import from.

    `name` is its path from the repository's top, empty if outside. `shown` is the name, or outside
    the last two parts of the path, so that it does not depend on the machine. Lines of a compressed
    file are not cited, as they are not visible in it.
    """

    path: str
    name: str
    shown: str
    is_compressed: bool = False


class ImportRequest(Value):
    """The context of an import: the top of the repository, its categories, the current time.

    `project` is the requested one if a store has several; empty for the repository's. `places` maps
    keys to paths in entries, in addition to the tables. `stdin` are lines that are read instead of
    a file. `env` are the user's environment variables, and `is_global` says that the memories are
    for all projects: the hosts' own memories are found and chosen by them.
    """

    top: str
    categories: Collection[str] = tuple(DEFAULT_CATEGORIES)
    now: int = 0
    project: str = ""
    places: Mapping[str, Sequence[str]] = {}
    stdin: bytes | None = None
    env: Mapping[str, str] = {}
    is_global: bool = False


class ForeignRecord(Value):
    """A record of another tool: `key` is its unique name there, `names` are its other names.

    `fields` has only the fields of the record; relations contain names of other records, and
    `superseded_by` is inverted later. `lines` are its first and last line in the file; `part` names
    the part of the file. An exact record is an exported memory and is not changed.

    `status_from` and `date_from` say to a person where the record has its status and its date, such
    as `“Akzeptiert” (German)` and `Datum`; empty if the record has none of its own.
    """

    key: str
    id: str
    fields: Fields
    body: str
    original: Original
    lines: tuple[int, int]
    names: tuple[str, ...] = ()
    superseded_by: tuple[str, ...] = ()
    part: str = ""
    status_from: str = ""
    date_from: str = ""
    is_exact: bool = False

    def items(self, key: str) -> tuple[str, ...]:
        """Return a list field; empty if it is missing or not a list."""
        value_ = self.fields.get(key, ())
        return value_ if isinstance(value_, tuple) else ()

    def problem(self, code: str, message: str, hint: str = "", severity: str = "error") -> Problem:
        """Build a problem at the location of the record."""
        return Problem(
            self.original.shown, self.lines[0], code, message, hint, self.id, severity=severity
        )


def build_original(path: str, top: str) -> Original:
    """Build the original for an absolute path."""
    name = os.path.relpath(path, os.path.realpath(top)).replace(os.sep, "/")
    is_outside = name == ".." or name.startswith("../")
    return Original(path, "" if is_outside else name, tail(path) if is_outside else name)


def tail(path: str) -> str:
    """Return the last two parts of a path, or the path if it has no more."""
    whole = path.replace(os.sep, "/")
    parts = whole.strip("/").split("/")
    return "/".join(parts[-2:]) if len(parts) > 2 else whole


def locate(path: str) -> str:
    """Return the real path of a user's argument. Raises MemtoolError if it does not exist."""
    try:
        os.stat(path)
    except (OSError, ValueError) as error:
        reason = find_reason(error)
        raise MemtoolError(
            f"cannot read {path}: {reason}",
            hint="name a file or directory that exists",
            code="no-file",
        ) from None
    return os.path.realpath(path)


def read_texts(
    path: str, top: str, is_wanted: Callable[[str], bool]
) -> Iterator[tuple[Original, str] | Problem]:
    """Yield the text of the file itself, or of the wanted files below a directory, by path.

    Links, hidden directories and those of dependencies are skipped. A file or directory that cannot
    be read gives a problem.
    """
    for source in find_files(path, top, is_wanted):
        if isinstance(source, Problem):
            yield source
            continue
        text = read_text(source)
        yield text if isinstance(text, Problem) else (source, text)


def find_files(
    path: str,
    top: str,
    is_wanted: Callable[[str], bool],
    hidden_folders: Collection[str] = (),
    *,
    links_within: str = "",
    is_wanted_path: Callable[[str], bool] = bool,
) -> Iterator[Original | Problem]:
    """Yield the file itself, or the wanted files below a directory, by path, as `read_texts` does.

    Of the hidden directories, only those with one of the names are searched. A link to a file below
    `links_within` is yielded like a file. `is_wanted_path` chooses by the whole path.
    """
    path = locate(path)
    refused: list[OSError] = []
    is_folder = os.path.isdir(path)
    paths = [] if is_folder else [path]
    for folder, folders, names in os.walk(path, onerror=refused.append) if is_folder else ():
        visible = {name for name in folders if name[0] != "." or name in hidden_folders}
        folders[:] = sorted(visible - _SKIPPED_FOLDERS)
        places = (os.path.join(folder, name) for name in filter(is_wanted, names))
        paths += [
            place
            for place in places
            if is_wanted_path(place)
            and (not os.path.islink(place) or _leads_into(place, links_within))
        ]
    for error in refused:
        reason = f"it cannot be read: {find_reason(error)}"
        place = build_original(str(error.filename), top).shown
        yield Problem(place, 0, "unreadable", reason, "give yourself permission to read it")
    yield from (build_original(place, top) for place in sorted(paths))


def _leads_into(link: str, folder: str) -> bool:
    target = os.path.realpath(link)
    return bool(folder) and target.startswith(f"{folder}{os.sep}") and os.path.isfile(target)


def read_text(source: Original, most_bytes: int = MAX_BYTES) -> str | Problem:
    """Read the text of a file, or return the problem."""

    def problem(code: str, what: str, hint: str, line: int = 0) -> Problem:
        return Problem(source.shown, line, code, what, hint)

    try:
        with open_plain(source) as file:
            data = file.read(most_bytes + 1)
    except OSError as error:
        reason = f"it cannot be read: {find_reason(error)}"
        return problem("unreadable", reason, "name a plain file that you may read")
    if len(data) > most_bytes:
        return problem("too-large", f"it is larger than {most_bytes:,} bytes", "split it")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        hint = f"iconv -t UTF-8 {source.shown} converts it"
        return problem("not-utf8", "it is not UTF-8 text", hint, line)
    if "\0" in text:
        return problem("not-utf8", "it holds NUL bytes", "name a text file")
    return text.replace("\r\n", "\n")


def open_plain(source: Original) -> BufferedReader:
    """Open a plain file for reading bytes. Raises OSError for anything else, without waiting."""
    handle = open_file(source.path, follows=True)
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError(0, "it is not a plain file")
    return open(handle, "rb")


def front_matter(lines: list[str]) -> tuple[Fields, int]:
    """Parse the front matter; return its fields and number of lines, 0 if there is none.

    Other tools' front matter is often not valid YAML (`status: [ADR-5](5.md)`, `globs: **/*.ts`);
    then it is read as plain `key: value` lines and `- item` lines.
    """
    if lines[0].rstrip() != "---":
        return {}, 0
    end = next((n for n, line in enumerate(lines[1:], 1) if line.rstrip() in ("---", "...")), 0)
    if not end:
        return {}, 0
    try:
        return strict.read_header("\n".join(lines[1:end]) + "\n").fields, end + 1
    except strict.NotStrict:
        return _read_plain_header(lines[1:end]), end + 1


def _read_plain_header(lines: Sequence[str]) -> Fields:
    fields: Fields = {}
    key = ""
    for line in lines:
        item = line.strip()
        if line[:1].isalpha() and ":" in line:
            key, _colon, text = line.partition(":")
            key = key.strip()
            fields[key] = text.strip(" \"'")
        elif item.startswith("- ") and isinstance(items := fields.get(key) or (), tuple):
            fields[key] = (*items, item[2:].strip(" \"'"))
    return fields


def build_citation(source: Original, lines: tuple[int, int], commit: str) -> str:
    """Return `file:PATH#Lx-Ly@SHA` for a file of the repository; empty for any other.

    Without a commit, there is no `@SHA`.
    """
    if not source.name:
        return ""
    span = "" if source.is_compressed else f"#L{lines[0]}-L{lines[1]}"
    at = f"@{commit[:CITED_DIGITS]}" if commit else ""
    text = f"file:{source.name}{span}{at}"
    return "" if schema.find_source_fault(text) or not schema.is_line(text) else text


def build_tool_citation(tool: str, source: Original, record: str) -> str:
    """Return `tool:import-NAME FILE record KEY`, for a file outside the repository."""
    which = f" record {record}" if record else ""
    return f"tool:import-{tool} {to_line(source.shown + which, 300)}"


def strip_version(source: str) -> str:
    """Remove the lines and revision from a source, to compare its origin."""
    return _VERSION.sub("", source) if source.startswith("file:") else source


MAX_TITLE_CHARS = 200
MAX_ID_CHARS = 120

_STATES: dict[str, str] = {
    "confirmed": "accepted active adopted agreed approved closed complete completed decided done "
    "final finished hooked implementable implemented open released replaced resolved superceded "
    "superseded",
    "candidate": "deferred draft pending planned proposal proposed provisional rfc wip",
    "deprecated": "abandoned canceled cancelled declined deprecated obsolete rejected removed "
    "retired reverted withdrawn wontfix",
}
STATES: dict[str, str] = {
    **{status: status for status in STATUSES},
    **{word: status for status, words in _STATES.items() for word in words.split()},
    "in progress": "confirmed",
    "in review": "candidate",
    "under review": "candidate",
    "april fool": "deprecated",
}
"""The status of a memory for each known state of decision records and issues.

A superseded record is confirmed, because its successor expresses the replacement.
"""

_MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
_DAYS = (
    re.compile(r"(?P<year>\d{4})[-/](?P<month>\d{1,2})[-/](?P<day>\d{1,2})(?!\d)"),
    re.compile(r"(?P<day>\d{1,2})[-\s.]+(?P<month>[A-Za-z]{3,9})[-\s,.]+(?P<year>\d{4})(?!\d)"),
    re.compile(r"(?P<month>[A-Za-z]{3,9})\.?\s+(?P<day>\d{1,2})[a-z]{0,2},?\s+(?P<year>\d{4})"),
)
_NAIVE = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(\.\d+)?")


def find_state(text: str) -> str:
    """Return the status for a state such as `Accepted (2020-01-01)`; empty if unknown.

    The first two words or the first one count. A template's `{proposed | accepted}` is not a state,
    and text after ` #` is a comment.
    """
    text = text.partition(" #")[0]
    words = re.findall("[a-z]+", text.lower())
    if not words or "|" in text:
        return ""
    return STATES.get(" ".join(words[:2])) or STATES.get(words[0], "")


def parse_moment(text: str) -> str:
    """Convert a date or time in a usual format to RFC 3339; empty if it is not one.

    A full RFC 3339 moment is not changed; a plain day becomes midnight UTC.
    """
    text = text.strip().strip("\"'")
    if _NAIVE.fullmatch(text):
        text += "Z"
    try:
        timestamps.parse(text)
        return text
    except ValueError:
        pass
    for pattern in _DAYS:
        match = pattern.search(text)
        if match:
            month = match["month"][:3].lower()
            try:
                number = int(month) if month.isdigit() else _MONTHS.index(month) + 1
                day = f"{match['year']}-{number:02}-{int(match['day']):02}"
                return timestamps.render(timestamps.parse_date(day))
            except ValueError:
                continue
    return ""


def to_line(text: str, max_chars: int = schema.MAX_LINE) -> str:
    """Convert text to one visible line: collapse blanks, drop hidden characters, cut the end."""
    shown = "".join(char for char in " ".join(text.split()) if schema.is_line(char))
    return shown if len(shown) <= max_chars else shown[: max_chars - 1].rstrip() + "…"


def to_body(text: str) -> str:
    """Convert text to the body of a memory: no NUL or lone surrogates, LF, one final line feed."""
    whole = text.replace("\0", "").replace("\r\n", "\n")
    whole = whole.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace").strip("\n")
    return f"{whole}\n" if whole.strip() else ""


def cut_body(text: str, max_bytes: int, where: str) -> str:
    """Cut a body to a size, after a paragraph, and add a line that names the full text's location.

    A single paragraph that does not fit is cut after a word or character.
    """
    data = text.encode()
    if len(data) <= max_bytes:
        return text
    end = f"\n\n[cut here: the whole text of {len(data):,} bytes is in {where}]\n"
    head_text = data[: max(max_bytes - len(end.encode()), 0)].decode(errors="ignore")
    for edge in ("\n\n", "\n", " "):
        head = head_text.rpartition(edge)[0]
        if len(head) > len(head_text) // 2:
            head_text = head
            break
    return head_text.rstrip() + end


def digest(text: str) -> str:
    """Return six hexadecimal digits that distinguish names with the same id form."""
    return value.digest(text.encode(errors="surrogatepass"), 3)


def to_id(name: str, prefix: str) -> str:
    """Convert a name to an id; one that is too short gets the prefix, a cut one a digest."""
    if schema.is_id(name):
        return name
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode().lower()
    chosen = re.sub("[^a-z0-9._-]+", "-", plain).strip("-._")
    if len(chosen) < 3:
        chosen = f"{prefix}-{chosen or digest(name)}"
    return chosen if len(chosen) <= MAX_ID_CHARS else with_suffix(chosen, name)


def with_suffix(id_: str, name: str) -> str:
    """Append the digest of the full name to an id."""
    return f"{id_[: MAX_ID_CHARS - 7].rstrip('-._')}-{digest(name)}"
