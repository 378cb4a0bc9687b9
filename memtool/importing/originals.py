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
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from io import BufferedReader

from memtool import tables, value
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
    `superseded_by` is inverted later. `premises` are the names of those that the record rests on,
    and become sources. `lines` are its first and last line in the file; `part` names
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
    premises: tuple[str, ...] = ()
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


def left_out(source: Original, reason: str, hint: str = "") -> Problem:
    """Build the warning that a file is not a record."""
    message = f"{reason}; it is left out"
    return Problem(source.shown, 1, "not-a-record", message, hint, severity="warning")


def unknown_state(record: ForeignRecord, state: str) -> Problem:
    """Build the warning that a record's status is not known."""
    return record.problem(
        "unknown-state",
        f"{to_line(state, 80)!r} is no known state, it becomes a candidate",
        f"memtool confirm {record.id}, if it holds",
        severity="warning",
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

_MAX_STATE_WORDS = 4
_CJK = re.compile("[\u3040-\u30ff\u3400-\u9fff]")
_WORD = re.compile(r"[^\W\d_]+(?:['\u2019][^\W\d_]+)*")
_BOX = re.compile(r"\s*(?:[*+-]\s+)?\[(?P<mark>[ xX])\]")
_MARKUP = re.compile(r"!?\[([^\[\]]*)\]\([^()]*\)|<[^<>]*>|[*_~`\"#>]+")


class State(Value):
    """A state in a text: its words there, the languages that have it, and the status it means."""

    words: str
    languages: tuple[str, ...]
    status: str
    is_superseded: bool = False

    @property
    def shown(self) -> str:
        """The words for a person, with the languages if none is English."""
        language = "" if "English" in self.languages else f" ({' or '.join(self.languages)})"
        return f"\u201c{self.words}\u201d{language}"


def fold_word(text: str) -> str:
    """Return words in a form that is compared: without case, accents and double blanks."""
    plain = unicodedata.normalize("NFKD", text.casefold())
    return " ".join("".join(char for char in plain if not unicodedata.combining(char)).split())


SUPERSEDED = "superseded"


def _load_states() -> dict[str, State]:
    states = {status: State(status, ("English",), status) for status in STATUSES}
    for word, language, status in tables.read_rows("importing/state_words"):
        is_superseded = status == SUPERSEDED
        meaning = "confirmed" if is_superseded else status
        state = states.get(fold_word(word), State(word, (), meaning, is_superseded))
        states[fold_word(word)] = state.replace(languages=(*state.languages, language))
    return states


STATES: dict[str, State] = _load_states()
"""The known states of decision records and issues, by their folded words.

A superseded record is confirmed, because its successor expresses the replacement.
"""


def match_state(text: str) -> State | None:
    """Return the known state that a text begins with, in its own words; None if there is none.

    The longest one of up to four words counts, whatever follows it. The choice of a template and
    the empty box of a list are not states, and text after ` #` is a comment.
    """
    text = text[: schema.MAX_LINE].partition(" #")[0]
    box = _BOX.match(text)
    if is_choice(text) or (box and box["mark"] == " "):
        return None
    text = text.partition("|")[0]
    words = _WORD.findall(_MARKUP.sub(r" \1 ", text[box.end() if box else 0 :]))
    for count in range(min(len(words), _MAX_STATE_WORDS), 0, -1):
        state = STATES.get(fold_word(" ".join(words[:count])))
        if state:
            return state.replace(words=" ".join(words[:count]))
    return _match_beginning(words[0]) if words and _CJK.search(words[0]) else None


def _match_beginning(word: str) -> State | None:
    """Return the state that a word without blanks, as in Japanese, begins with."""
    for end in range(len(word) - 1, 1, -1):
        state = STATES.get(fold_word(word[:end]))
        if state:
            return state.replace(words=word[:end])
    return None


def is_choice(text: str) -> bool:
    """Return whether a text lists states to choose from, as in a template, and none is checked."""
    box = _BOX.match(text)
    if box and box["mark"] != " ":
        return False
    parts = re.split(r"[|/,]", text[: schema.MAX_LINE].strip(" {}[]<>*_`()"))
    words = (" ".join(_WORD.findall(part)) for part in parts)
    count = sum(fold_word(word) in STATES for word in words)
    return count > 2 or (count > 1 and "|" in text)


def find_state(text: str) -> str:
    """Return the status for a state such as `Accepted (2020-01-01)`; empty if unknown."""
    state = match_state(text)
    return state.status if state else ""


_MONTHS: dict[str, int] = {
    fold_word(word): int(month)
    for word, _language, month in tables.read_rows("importing/month_names")
}
_MONTH = r"(?P<month>[^\W\d_]{3,15})"
_YEAR = r"(?P<year>\d{4})(?!\d)"
_DAYS = (
    re.compile(r"(?<!\d)(?P<year>\d{4})([-/.])(?P<month>\d{1,2})\2(?P<day>\d{1,2})(?!\d)"),
    re.compile(
        r"(?P<year>\d{4})\s?\u5e74\s?(?P<month>\d{1,2})\s?\u6708\s?(?P<day>\d{1,2})\s?\u65e5"
    ),
    re.compile(
        rf"(?<![\d.])(?P<day>\d{{1,2}})(?:st|nd|rd|th|er|\u00ba)?[-\s./]{{1,3}}(?:(?:de|of|d)\s)?{_MONTH}"
        rf"[-\s,./]{{1,3}}(?:(?:de|del|of)\s)?{_YEAR}"
    ),
    re.compile(rf"{_MONTH}[.\s]{{1,2}}(?P<day>\d{{1,2}})(?:st|nd|rd|th)?,?\s{_YEAR}"),
    re.compile(rf"(?<!\d)(?P<year>\d{{4}})[-\s]{_MONTH}[-\s](?P<day>\d{{1,2}})(?!\d)"),
)
_NUMBERS = re.compile(rf"(?<![\d.])(\d{{1,2}})([-/.])\s?(\d{{1,2}})\2\s?{_YEAR}(?![.]\d)")
_NAIVE = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d(:\d\d(\.\d+)?)?")


def parse_moment(text: str, *, is_day_first: bool = False) -> str:
    """Convert a date or time in a usual format to RFC 3339; empty if it is not one.

    A full RFC 3339 moment is not changed; a plain day becomes midnight UTC. Months have names in
    ten languages. `03/04/2024` has two meanings, and is a day only if `is_day_first`;
    `03.04.2024` and `23/04/2024` have one.
    """
    text = text.strip().strip("\"'")[: schema.MAX_LINE]
    if _NAIVE.fullmatch(text):
        text += "Z" if text.count(":") > 1 else ":00Z"
    try:
        timestamps.parse(text)
        return text
    except ValueError:
        pass
    for pattern in _DAYS:
        for match in pattern.finditer(text):
            name = match["month"]
            month = int(name) if name.isdecimal() else _MONTHS.get(fold_word(name), 0)
            moment = _render_day(int(match["year"]), month, int(match["day"]))
            if moment:
                return moment
    for match in _NUMBERS.finditer(text):
        first, second, year = int(match[1]), int(match[3]), int(match["year"])
        if is_day_first or match[2] == "." or first > _MONTH_COUNT or first == second:
            moment = _render_day(year, second, first)
        else:
            moment = _render_day(year, first, second) if second > _MONTH_COUNT else ""
        if moment:
            return moment
    return ""


_MONTH_COUNT = 12


def has_day_first(texts: Iterable[str]) -> bool:
    """Return whether dates in numbers such as 23/04/2024 are in texts, and none the other way."""
    pairs = [(int(match[1]), int(match[3])) for text in texts for match in _NUMBERS.finditer(text)]
    is_month_first = any(second > _MONTH_COUNT for _first, second in pairs)
    return not is_month_first and any(first > _MONTH_COUNT for first, _second in pairs)


def _render_day(year: int, month: int, day: int) -> str:
    """Return midnight of a day; empty if there is no such day."""
    try:
        return timestamps.render(timestamps.parse_date(f"{year:04}-{month:02}-{day:02}"))
    except ValueError:
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
