"""Originals: the files of another tool, and the records that importers read from them.

Here is how files are found and read, what git knows about them, how a memory cites them, and how
the states, dates, names and long texts of other tools become those of a memory. Reading is
bounded, follows no link below the named path, and opens nothing but plain files.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping
from io import BufferedReader

from memtool import value
from memtool.errors import MemtoolError, reason_of
from memtool.memory import schema, strict, timestamps
from memtool.memory.fields import STATUSES
from memtool.memory.memory import Fields
from memtool.memory.schema import Problem
from memtool.store.files import open_file
from memtool.store.provenance import SHORT
from memtool.store.repository import Repository
from memtool.value import Value

MAX_BYTES = 1 << 20
"""A text file above this size is no record of a decision."""
_VERSION = re.compile(r"(#L\d+(-L\d+)?)?(@[0-9a-f]{7,64})?$")
_PASSED_OVER = frozenset({"node_modules", "vendor", "venv", "site-packages", "__pycache__"})
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
"""Problems that only importing finds, next to those of `memory.schema`."""


class Original(Value):
    """A file to import from.

    `name` is its path from the repository's top, empty if it lies outside; `shown` is the name,
    or outside the last two parts of the path, so that it does not depend on the machine. Lines of
    a compressed file are not those that people see in it, and are not cited.
    """

    path: str
    name: str
    shown: str
    is_compressed: bool = False


class ForeignRecord(Value):
    """A record of another tool: `key` is its unique name there, `names` are its other names.

    `fields` are those that the record has, no more; relations contain the names of other records,
    `superseded_by` is inverted later. `lines` are the first and last in its file; `part` says
    which part of the file a record is. An exact record is a memory already and stays as it is.
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
    is_exact: bool = False

    def items(self, key: str) -> tuple[str, ...]:
        """Return a field that is a list; empty if it is absent or no list."""
        found = self.fields.get(key, ())
        return found if isinstance(found, tuple) else ()

    def problem(self, code: str, message: str, hint: str = "", severity: str = "error") -> Problem:
        """Return a problem at the place of the record."""
        return Problem(
            self.original.shown, self.lines[0], code, message, hint, self.id, severity=severity
        )


def original(path: str, top: str) -> Original:
    """Return the original at an absolute path."""
    name = os.path.relpath(path, os.path.realpath(top)).replace(os.sep, "/")
    is_outside = name == ".." or name.startswith("../")
    return Original(path, "" if is_outside else name, tail(path) if is_outside else name)


def tail(path: str) -> str:
    """Return the last two parts of a path; one that has no more stays as it is."""
    whole = path.replace(os.sep, "/")
    parts = whole.strip("/").split("/")
    return "/".join(parts[-2:]) if len(parts) > 2 else whole


def located(path: str) -> str:
    """Return the real path of what the user named. Raises MemtoolError where nothing is there."""
    try:
        os.stat(path)
    except (OSError, ValueError) as error:
        reason = reason_of(error)
        raise MemtoolError(
            f"{path} cannot be read: {reason}",
            hint="name a file or directory that exists; ls shows what is there",
            code="no-file",
        ) from None
    return os.path.realpath(path)


def texts(
    path: str, top: str, is_wanted: Callable[[str], bool]
) -> Iterator[tuple[Original, str] | Problem]:
    """Yield the text of the file itself, or of the wanted files below a directory, by path.

    Links, hidden directories and those of dependencies are passed over. A file or directory that
    cannot be read is a problem.
    """
    for source in files(path, top, is_wanted):
        if isinstance(source, Problem):
            yield source
            continue
        text = read_text(source)
        yield text if isinstance(text, Problem) else (source, text)


def files(path: str, top: str, is_wanted: Callable[[str], bool]) -> Iterator[Original | Problem]:
    """Yield the file itself, or the wanted files below a directory, by path, as `texts` does."""
    path = located(path)
    refused: list[OSError] = []
    is_folder = os.path.isdir(path)
    found = [] if is_folder else [path]
    for folder, folders, names in os.walk(path, onerror=refused.append) if is_folder else ():
        folders[:] = sorted({name for name in folders if name[0] != "."} - _PASSED_OVER)
        places = (os.path.join(folder, name) for name in filter(is_wanted, names))
        found += [place for place in places if not os.path.islink(place)]
    for error in refused:
        reason = f"it cannot be read: {reason_of(error)}"
        place = original(str(error.filename), top).shown
        yield Problem(place, 0, "unreadable", reason, "give yourself permission to read it")
    yield from (original(place, top) for place in sorted(found))


def read_text(source: Original, most_bytes: int = MAX_BYTES) -> str | Problem:
    """Return the text of a file, or the problem that kept it from being read."""

    def problem(code: str, what: str, hint: str, line: int = 0) -> Problem:
        return Problem(source.shown, line, code, what, hint)

    try:
        with open_plain(source) as file:
            data = file.read(most_bytes + 1)
    except OSError as error:
        reason = f"it cannot be read: {reason_of(error)}"
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
    """Return the front matter, and how many lines it takes; none is read line by line.

    Front matter of others is often not YAML (`status: [ADR-5](5.md)`), so what is not is read as
    plain `key: value` lines.
    """
    if lines[0].rstrip() != "---":
        return {}, 0
    end = next((n for n, line in enumerate(lines[1:], 1) if line.rstrip() in ("---", "...")), 0)
    if not end:
        return {}, 0
    try:
        return strict.read_header("\n".join(lines[1:end]) + "\n").fields, end + 1
    except strict.NotStrict:
        pairs = (line.partition(":") for line in lines[1:end] if line[:1].isalpha())
        return {key.strip(): rest.strip(" \"'") for key, colon, rest in pairs if colon}, end + 1


def facts(repository: Repository, path: str) -> tuple[str, dict[str, str]]:
    """Return the commit in HEAD, and its blobs at or below a path, by name; empty without one."""
    head = repository.git.head()
    entries = repository.git.ls_tree(head, *_limit(path)) if head else []
    return head, {entry.path: entry.oid for entry in entries}


def first_seconds(repository: Repository, path: str, head: str) -> dict[str, int]:
    """Return when each file at or below a path was first committed, in one walk over history.

    Empty without a commit, and in a shallow clone, whose first commits are not the first.
    """
    if not head or repository.is_shallow:
        return {}
    added = repository.git.log_names(
        "--format=%x00%at",
        "--diff-filter=A",
        "--no-renames",
        "--end-of-options",
        head,
        "--",
        *_limit(path),
    )
    # newest first, so the oldest stays
    return {name: int(second) for second, names in added for name in names}


def _limit(path: str) -> list[str]:
    return [] if path in ("", ".") else [path]


def committed(
    sources: Iterable[Original], blobs: Mapping[str, str], object_format: str
) -> set[str]:
    """Return the names of the originals whose bytes are those of the blobs of these names."""
    paths = {source.name: source.path for source in sources if source.name in blobs}
    return {name for name, path in paths.items() if _blob_id(path, object_format) == blobs[name]}


def _blob_id(path: str, object_format: str) -> str:
    made = hashlib.new(object_format, usedforsecurity=False)
    try:
        with open(path, "rb") as file:
            made.update(b"blob %d\0" % os.fstat(file.fileno()).st_size)
            return hashlib.file_digest(file, lambda: made).hexdigest()
    except OSError:
        return ""


def citation(source: Original, lines: tuple[int, int], commit: str) -> str:
    """Return `file:PATH#Lx-Ly@SHA` for a file of the repository, empty for any other.

    An empty commit leaves the revision out.
    """
    if not source.name:
        return ""
    span = "" if source.is_compressed else f"#L{lines[0]}-L{lines[1]}"
    at = f"@{commit[:SHORT]}" if commit else ""
    text = f"file:{source.name}{span}{at}"
    return "" if schema.source_fault(text) or not schema.is_line(text) else text


def tool_citation(tool: str, source: Original, record: str) -> str:
    """Return `tool:import-NAME FILE record KEY`, for what lies outside the repository."""
    which = f" record {record}" if record else ""
    return f"tool:import-{tool} {line(source.shown + which, 300)}"


def place_of(source: str) -> str:
    """Return a source without its lines and revision: where it comes from, whatever the version."""
    return _VERSION.sub("", source) if source.startswith("file:") else source


TITLE_LENGTH = 200
ID_LENGTH = 120

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
"""The status of a memory for each state that records of decisions or issues are known to have.

A superseded record is confirmed: the one that replaces it says so.
"""

_MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
_DAYS = (
    re.compile(r"(?P<year>\d{4})[-/](?P<month>\d{1,2})[-/](?P<day>\d{1,2})(?!\d)"),
    re.compile(r"(?P<day>\d{1,2})[-\s.]+(?P<month>[A-Za-z]{3,9})[-\s,.]+(?P<year>\d{4})(?!\d)"),
    re.compile(r"(?P<month>[A-Za-z]{3,9})\.?\s+(?P<day>\d{1,2})[a-z]{0,2},?\s+(?P<year>\d{4})"),
)
_NAIVE = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(\.\d+)?")


def state(text: str) -> str:
    """Return the status that a state such as `Accepted (2020-01-01)` means, or an empty text.

    The first two words or the first one decide; a template's `{proposed | accepted}` is no state,
    and what follows ` #` is a comment.
    """
    text = text.partition(" #")[0]
    words = re.findall("[a-z]+", text.lower())
    if not words or "|" in text:
        return ""
    return STATES.get(" ".join(words[:2])) or STATES.get(words[0], "")


def moment(text: str) -> str:
    """Return a date or time in one of the usual spellings as RFC 3339, or an empty text.

    A full RFC 3339 moment stays as it was written; a plain day begins at midnight UTC.
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
        found = pattern.search(text)
        if found:
            month = found["month"][:3].lower()
            try:
                number = int(month) if month.isdigit() else _MONTHS.index(month) + 1
                day = f"{found['year']}-{number:02}-{int(found['day']):02}"
                return timestamps.render(timestamps.parse_date(day))
            except ValueError:
                continue
    return ""


def line(text: str, most: int = schema.MAX_LINE) -> str:
    """Return text as one visible line: blanks joined, hidden characters dropped, the end cut."""
    shown = "".join(char for char in " ".join(text.split()) if schema.is_line(char))
    return shown if len(shown) <= most else shown[: most - 1].rstrip() + "…"


def body(text: str) -> str:
    """Return text as the body of a memory: no NUL, no lone surrogates, LF, one final line feed."""
    whole = text.replace("\0", "").replace("\r\n", "\n")
    whole = whole.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace").strip("\n")
    return f"{whole}\n" if whole.strip() else ""


def cut(text: str, most_bytes: int, where: str) -> str:
    """Return a body that fits, cut after a paragraph, with a last line that says where the rest is.

    A single paragraph that does not fit is cut after a word or character.
    """
    data = text.encode()
    if len(data) <= most_bytes:
        return text
    end = f"\n\n[cut here: the whole text of {len(data):,} bytes is in {where}]\n"
    kept = data[: max(most_bytes - len(end.encode()), 0)].decode(errors="ignore")
    for edge in ("\n\n", "\n", " "):
        head = kept.rpartition(edge)[0]
        if len(head) > len(kept) // 2:
            kept = head
            break
    return kept.rstrip() + end


def digest(text: str) -> str:
    """Return six hexadecimal digits that tell names apart which read the same as ids."""
    return value.digest(text.encode(errors="surrogatepass"), 3)


def as_id(name: str, prefix: str) -> str:
    """Return a name as an id; the prefix completes one that is too short, a digest a cut one."""
    if schema.is_id(name):
        return name
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode().lower()
    chosen = re.sub("[^a-z0-9._-]+", "-", plain).strip("-._")
    if len(chosen) < 3:
        chosen = f"{prefix}-{chosen or digest(name)}"
    return chosen if len(chosen) <= ID_LENGTH else suffixed(chosen, name)


def suffixed(id_: str, name: str) -> str:
    """Return an id with the digest of the full name behind it."""
    return f"{id_[: ID_LENGTH - 7].rstrip('-._')}-{digest(name)}"
